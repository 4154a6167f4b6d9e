/* Iceberg metadata -> Glue's TableInput, as Iceberg's GlueTableOperations and IcebergToGlueConverter (1.10) make it.
 *
 * Invariants
 *  1. What somebody else keeps in the entry survives: every member of the table, of its StorageDescriptor, its Parameters and its columns that is not set here goes back
 *     as it came. Java drops some of it; nothing relies on that.
 *  2. Columns are for people and for grants; the truth is in the metadata file.
 */
#include "catalog/glue_int.h"

#define COMMENT_MAX 255u /* characters that Glue takes */

/* Members of Table that TableInput has not (API reference of AWS Glue). What is in neither list is kept. */
static bool only_in_answers(const char *key) {
    static const char *const names[] = {"DatabaseName", "CreateTime", "UpdateTime", "CreatedBy", "IsRegisteredWithLakeFormation", "CatalogId", "VersionId", "IsMultiDialectView",
                                        "IsMaterializedView", "IcebergTableMetadata", "Status", "RLSProperties"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}

/* Copy of an object without nulls; an empty one for what is no object. */
static json_t *copy_object(const json_t *from) {
    json_t *out = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)from, key, v) if (!json_is_null(v)) pointer_put(out, key, json_deep_copy(v));
    return out;
}

static void type_text(fz_buf *b, const ice_type *t) {
    switch (t->kind) {
    case ICE_BOOLEAN: fz_buf_puts(b, "boolean"); break;
    case ICE_INT: fz_buf_puts(b, "int"); break;
    case ICE_LONG: fz_buf_puts(b, "bigint"); break;
    case ICE_FLOAT: fz_buf_puts(b, "float"); break;
    case ICE_DOUBLE: fz_buf_puts(b, "double"); break;
    case ICE_DATE: fz_buf_puts(b, "date"); break;
    case ICE_TIME:
    case ICE_UUID:
    case ICE_STRING: fz_buf_puts(b, "string"); break;
    case ICE_TIMESTAMP:
    case ICE_TIMESTAMPTZ: fz_buf_puts(b, "timestamp"); break;
    case ICE_FIXED:
    case ICE_BINARY: fz_buf_puts(b, "binary"); break;
    case ICE_DECIMAL: fz_buf_printf(b, "decimal(%d,%d)", t->precision, t->scale); break;
    case ICE_STRUCT:
        fz_buf_puts(b, "struct<");
        for (uint32_t i = 0; i < t->n_fields; i++) {
            fz_buf_printf(b, "%s%s:", i ? "," : "", t->fields[i].name);
            type_text(b, t->fields[i].type);
        }
        fz_buf_putc(b, '>');
        break;
    case ICE_LIST:
    case ICE_MAP:
        fz_buf_puts(b, t->kind == ICE_LIST ? "array<" : "map<");
        for (uint32_t i = 0; i < t->n_fields; i++) {
            if (i) fz_buf_putc(b, ',');
            type_text(b, t->fields[i].type);
        }
        fz_buf_putc(b, '>');
        break;
    case ICE_OTHER: /* Java's name of the type in lower case; here its JSON text, without the quotes of a plain name */
        for (const char *p = t->text; p && *p; p++)
            if (*p != '"') fz_buf_putc(b, *p);
        break;
    }
}

static json_t *comment_of(const char *doc) {
    size_t n = strlen(doc), i = 0;
    for (unsigned k = 0; i < n && k < COMMENT_MAX; k++) fz_utf8_next(doc, n, &i);
    json_t *j = json_stringn(doc, i);
    return j ? j : json_string("");
}

static json_t *column(const ice_field *f, bool current, const json_t *was) {
    fz_buf b = {0};
    json_t *c = copy_object(was);
    type_text(&b, f->type);
    pointer_put(c, "Name", pointer_string(f->name));
    pointer_put(c, "Type", pointer_string(fz_buf_cstr(&b)));
    fz_buf_free(&b);
    if (f->doc && *f->doc) pointer_put(c, "Comment", comment_of(f->doc));
    json_t *p = copy_object(json_object_get(was, "Parameters"));
    pointer_put(p, "iceberg.field.id", json_sprintf("%d", f->id));
    pointer_put(p, "iceberg.field.optional", json_string(f->required ? "false" : "true"));
    pointer_put(p, "iceberg.field.current", json_string(current ? "true" : "false"));
    pointer_put(c, "Parameters", p);
    return c;
}

static const json_t *column_named(const json_t *columns, const char *name) {
    size_t i;
    json_t *c;
    json_array_foreach((json_t *)(uintptr_t)columns, i, c) {
        const char *n = pointer_text(c, "Name");
        if (n && strcmp(n, name) == 0) return c;
    }
    return NULL;
}

/* The current schema's columns, then those of other schemas whose names are not among them yet. */
static json_t *columns_of(const ice_metadata *m, const json_t *was) {
    json_t *out = json_array();
    for (uint32_t k = 0; k <= m->n_schemas; k++) {
        const ice_schema *s = k == 0 ? m->schema : m->schemas[k - 1];
        if (k > 0 && s->schema_id == m->current_schema_id) continue;
        for (uint32_t i = 0; i < s->n_fields; i++)
            if (!column_named(out, s->fields[i].name)) (void)json_array_append_new(out, column(&s->fields[i], k == 0, column_named(was, s->fields[i].name)));
    }
    return out;
}

static json_t *additional_locations(const ice_metadata *m) {
    static const char *const keys[] = {"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"};
    json_t *out = json_array();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *v = ice_property(m, keys[i], NULL);
        bool there = !v;
        for (size_t k = 0; v && k < json_array_size(out); k++) there |= strcmp(json_string_value(json_array_get(out, k)), v) == 0;
        if (!there) (void)json_array_append_new(out, pointer_string(v));
    }
    return out;
}

bool glue_is_iceberg(const json_t *table) {
    const char *type = pointer_text(json_object_get(table, "Parameters"), "table_type");
    return type && fz_ieq(type, "ICEBERG");
}

json_t *glue_table_input(const json_t *table, const char *name, const ice_metadata *m, const char *location, const char *previous) {
    json_t *in = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)table, key, v) if (!only_in_answers(key) && !json_is_null(v)) pointer_put(in, key, json_deep_copy(v));
    pointer_put(in, "Name", pointer_string(name));
    pointer_put(in, "TableType", json_string("EXTERNAL_TABLE"));
    const char *comment = ice_property(m, "comment", NULL);
    if (comment) pointer_put(in, "Description", pointer_string(comment));
    json_t *p = copy_object(json_object_get(table, "Parameters"));
    pointer_put(p, "table_type", json_string("ICEBERG"));
    pointer_put(p, "metadata_location", pointer_string(location));
    if (previous) pointer_put(p, "previous_metadata_location", pointer_string(previous));
    pointer_put(in, "Parameters", p);
    const json_t *was = json_object_get(table, "StorageDescriptor");
    json_t *sd = copy_object(was);
    pointer_put(sd, "Location", pointer_string(m->location));
    pointer_put(sd, "AdditionalLocations", additional_locations(m));
    pointer_put(sd, "Columns", columns_of(m, json_object_get(was, "Columns")));
    pointer_put(in, "StorageDescriptor", sd);
    return in;
}
