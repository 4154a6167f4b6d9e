/* Iceberg types: making, text, equality, and Flink's types there and back. See iceberg.h; spec: Schemas and Data Types. */
#include "iceberg/iceberg_int.h"

static const ice_type simple[] = {
#define T(k) [k] = {.kind = k}
    T(ICE_BOOLEAN), T(ICE_INT), T(ICE_LONG), T(ICE_FLOAT), T(ICE_DOUBLE), T(ICE_DATE), T(ICE_TIME), T(ICE_TIMESTAMP), T(ICE_TIMESTAMPTZ),
    T(ICE_STRING), T(ICE_UUID), T(ICE_BINARY),
#undef T
};

const ice_type *ice_type_simple(ice_kind k) { return &simple[k]; }

const ice_type *ice_type_sized(fz_arena *a, ice_kind k, int32_t precision, int32_t scale) {
    ice_type *t = FZ_ANEW(a, ice_type);
    t->kind = k;
    t->precision = precision;
    t->scale = scale;
    return t;
}

static ice_type *with_fields(fz_arena *a, ice_kind k, uint32_t n, ice_field **fields) {
    ice_type *t = FZ_ANEW(a, ice_type);
    *fields = FZ_ANEWN(a, ice_field, n);
    t->kind = k;
    t->n_fields = n;
    t->fields = *fields;
    return t;
}

const ice_type *ice_type_list(fz_arena *a, int32_t id, bool required, const ice_type *element) {
    ice_field *f;
    ice_type *t = with_fields(a, ICE_LIST, 1, &f);
    f[0] = (ice_field){.id = id, .required = required, .name = "element", .type = element};
    return t;
}

const ice_type *ice_type_map(fz_arena *a, int32_t key_id, const ice_type *key, int32_t value_id, bool required, const ice_type *value) {
    ice_field *f;
    ice_type *t = with_fields(a, ICE_MAP, 2, &f);
    f[0] = (ice_field){.id = key_id, .required = true, .name = "key", .type = key};
    f[1] = (ice_field){.id = value_id, .required = required, .name = "value", .type = value};
    return t;
}

void ice_type_text(fz_buf *b, const ice_type *t) {
    static const char *const names[] = {"boolean", "int", "long", "float", "double", "decimal", "date", "time", "timestamp", "timestamptz",
                                        "string", "uuid", "fixed", "binary"};
    switch (t->kind) {
    case ICE_DECIMAL: fz_buf_printf(b, "decimal(%d, %d)", t->precision, t->scale); return;
    case ICE_FIXED: fz_buf_printf(b, "fixed[%d]", t->precision); return;
    case ICE_OTHER: fz_buf_puts(b, t->text); return;
    case ICE_STRUCT:
        fz_buf_puts(b, "struct<");
        for (uint32_t i = 0; i < t->n_fields; i++) {
            const ice_field *f = &t->fields[i];
            fz_buf_printf(b, "%s%d: %s: %s ", i ? ", " : "", f->id, f->name, f->required ? "required" : "optional");
            ice_type_text(b, f->type);
        }
        fz_buf_putc(b, '>');
        return;
    case ICE_LIST:
    case ICE_MAP:
        fz_buf_puts(b, t->kind == ICE_LIST ? "list<" : "map<");
        for (uint32_t i = 0; i < t->n_fields; i++) {
            if (i) fz_buf_puts(b, ", ");
            ice_type_text(b, t->fields[i].type);
        }
        fz_buf_putc(b, '>');
        return;
    default: fz_buf_puts(b, names[t->kind]);
    }
}

bool ice_type_eq(const ice_type *a, const ice_type *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->precision != b->precision || a->scale != b->scale || a->n_fields != b->n_fields) return false;
    if (a->kind == ICE_OTHER) return strcmp(a->text, b->text) == 0;
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const ice_field *f = &a->fields[i], *g = &b->fields[i];
        if (f->id != g->id || f->required != g->required || strcmp(f->name, g->name) != 0 || !ice_type_eq(f->type, g->type)) return false;
        if (strcmp(f->doc ? f->doc : "", g->doc ? g->doc : "") != 0) return false;
    }
    return true;
}

int ice_decimal_bytes(int precision) {
    /* smallest n with 2^(8n-1) - 1 >= 10^precision - 1 */
    col_i128 most = 1;
    for (int i = 0; i < precision && i < 38; i++) most *= 10;
    for (int n = 1; n < 16; n++)
        if (((col_i128)1 << (8 * n - 1)) >= most) return n;
    return 16;
}

static fz_status refuse(const col_type *t, const char *why, fz_error *err) {
    fz_buf b = {0};
    col_type_text(&b, t);
    fz_status s = fz_fail(err, FZ_USER, "iceberg.type", "Iceberg tables of format version 2 have no type for %s", fz_buf_cstr(&b));
    fz_buf_free(&b);
    if (why) s = fz_hint(err, "%s", why);
    return s;
}

/* Java numbers the direct children of a type before those of its children (AssignFreshIds). */
static fz_status nested_from_col(fz_arena *a, const col_type *t, int32_t *next_id, const ice_type **out, fz_error *err) {
    ice_kind k = t->kind == COL_ROW ? ICE_STRUCT : t->kind == COL_ARRAY ? ICE_LIST : ICE_MAP;
    ice_field *f;
    ice_type *r = with_fields(a, k, t->n_fields, &f);
    static const char *const map_names[] = {"key", "value"};
    for (uint32_t i = 0; i < t->n_fields; i++) {
        f[i].id = (*next_id)++;
        f[i].required = !t->fields[i].type->nullable || (k == ICE_MAP && i == 0);
        f[i].name = k == ICE_STRUCT ? fz_arena_strdup(a, t->fields[i].name) : k == ICE_LIST ? "element" : map_names[i];
        if (k == ICE_STRUCT && t->fields[i].comment) f[i].doc = fz_arena_strdup(a, t->fields[i].comment);
    }
    for (uint32_t i = 0; i < t->n_fields; i++) FZ_TRY(ice_type_from_col(a, t->fields[i].type, next_id, &f[i].type, err));
    *out = r;
    return FZ_OK;
}

fz_status ice_type_from_col(fz_arena *a, const col_type *t, int32_t *next_id, const ice_type **out, fz_error *err) {
    ice_kind k;
    switch (t->kind) {
    case COL_BOOLEAN: k = ICE_BOOLEAN; break;
    case COL_TINYINT:
    case COL_SMALLINT:
    case COL_INT: k = ICE_INT; break;
    case COL_BIGINT: k = ICE_LONG; break;
    case COL_FLOAT: k = ICE_FLOAT; break;
    case COL_DOUBLE: k = ICE_DOUBLE; break;
    case COL_CHAR:
    case COL_VARCHAR: k = ICE_STRING; break;
    case COL_VARBINARY: k = ICE_BINARY; break;
    case COL_DATE: k = ICE_DATE; break;
    case COL_TIME: k = ICE_TIME; break;
    case COL_DECIMAL: *out = ice_type_sized(a, ICE_DECIMAL, t->precision, t->scale); return FZ_OK;
    case COL_BINARY: *out = ice_type_sized(a, ICE_FIXED, t->precision, 0); return FZ_OK;
    case COL_TIMESTAMP:
    case COL_TIMESTAMP_LTZ:
        if (t->precision > 6) return refuse(t, "Use a precision of 6 or less: nanoseconds need format version 3.", err);
        k = t->kind == COL_TIMESTAMP ? ICE_TIMESTAMP : ICE_TIMESTAMPTZ;
        break;
    case COL_ARRAY:
    case COL_MAP:
    case COL_ROW: return nested_from_col(a, t, next_id, out, err);
    default: return refuse(t, NULL, err);
    }
    *out = ice_type_simple(k);
    return FZ_OK;
}

static fz_status nested_to_col(fz_arena *a, const ice_type *t, bool nullable, const col_type **out, fz_error *err) {
    col_field *f = FZ_ANEWN(a, col_field, t->n_fields);
    for (uint32_t i = 0; i < t->n_fields; i++) {
        f[i].name = fz_arena_strdup(a, t->fields[i].name);
        f[i].comment = t->fields[i].doc ? fz_arena_strdup(a, t->fields[i].doc) : NULL;
        FZ_TRY(ice_type_to_col(a, t->fields[i].type, !t->fields[i].required, &f[i].type, err));
    }
    *out = t->kind == ICE_STRUCT ? col_row(a, f, t->n_fields, nullable)
           : t->kind == ICE_LIST ? col_array(a, f[0].type, nullable)
                                 : col_map(a, f[0].type, f[1].type, nullable);
    return FZ_OK;
}

fz_status ice_type_to_col(fz_arena *a, const ice_type *t, bool nullable, const col_type **out, fz_error *err) {
    switch (t->kind) {
    case ICE_BOOLEAN: *out = col_simple(COL_BOOLEAN, nullable); return FZ_OK;
    case ICE_INT: *out = col_simple(COL_INT, nullable); return FZ_OK;
    case ICE_LONG: *out = col_simple(COL_BIGINT, nullable); return FZ_OK;
    case ICE_FLOAT: *out = col_simple(COL_FLOAT, nullable); return FZ_OK;
    case ICE_DOUBLE: *out = col_simple(COL_DOUBLE, nullable); return FZ_OK;
    case ICE_DECIMAL: *out = col_sized(a, COL_DECIMAL, t->precision, t->scale, nullable); return FZ_OK;
    case ICE_DATE: *out = col_simple(COL_DATE, nullable); return FZ_OK;
    case ICE_TIME: *out = col_sized(a, COL_TIME, 0, 0, nullable); return FZ_OK;
    case ICE_TIMESTAMP: *out = col_sized(a, COL_TIMESTAMP, 6, 0, nullable); return FZ_OK;
    case ICE_TIMESTAMPTZ: *out = col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, nullable); return FZ_OK;
    case ICE_STRING: *out = col_string(nullable); return FZ_OK;
    case ICE_UUID: *out = col_sized(a, COL_BINARY, 16, 0, nullable); return FZ_OK;
    case ICE_FIXED: *out = col_sized(a, COL_BINARY, t->precision, 0, nullable); return FZ_OK;
    case ICE_BINARY: *out = col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, nullable); return FZ_OK;
    case ICE_STRUCT:
    case ICE_LIST:
    case ICE_MAP: return nested_to_col(a, t, nullable, out, err);
    case ICE_OTHER: break;
    }
    return fz_fail(err, FZ_USER, "iceberg.type", "Iceberg type %s belongs to a format version that is not supported", t->text);
}
