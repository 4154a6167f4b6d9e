/* Iceberg tables as the session sees them: loading one for a statement, making one by CREATE TABLE, and its definition as SQL. */
#include "session/session_int.h"
#include <stdio.h>

void ses_iceberg_release(ses_session *s) {
    for (ses_iceberg *t = s->loaded; t; t = t->next) cat_table_free(t->loaded);
    s->loaded = NULL;
}

static fz_status fill_table(ses_session *s, ses_iceberg *t, const ses_path *p, fz_error *err) {
    const ice_metadata *m = t->loaded->metadata;
    col_schema *cols;
    FZ_TRY(ice_schema_to_cols(s->arena, m->schema, &cols, err));
    sql_column *v = FZ_ANEWN(s->arena, sql_column, cols->n);
    for (uint32_t i = 0; i < cols->n; i++)
        v[i] = (sql_column){.name = cols->fields[i].name, .kind = SQL_COL_PHYSICAL, .type = cols->fields[i].type, .comment = cols->fields[i].comment};
    const char **pk = FZ_ANEWN(s->arena, const char *, m->schema->n_identifier);
    for (uint32_t i = 0; i < m->schema->n_identifier; i++) pk[i] = ice_schema_field_name(s->arena, m->schema, m->schema->identifier[i]);
    t->table = (sql_table){.kind = SQL_T_ICEBERG, .path = ses_path_text(s->arena, p), .n_columns = cols->n, .columns = v, .n_options = m->n_properties,
                           .options = m->properties, .n_pk = m->schema->n_identifier, .pk = pk, .handle = t};
    return FZ_OK;
}

/* The table, or (an INSERT's target) what is remembered of it while its catalog is away. */
static fz_status load_or_recall(ses_session *s, ses_catalog *c, const cat_ident *id, bool target, cat_table **out, bool *recalled, fz_error *err) {
    fz_status rc = FZ_OK;
    fz_error own;
    *recalled = false;
    if (target && c->away && ses_remembers(s, c->iceberg, id)) *err = c->why;
    else {
        if (target) ses_ask(s, c->iceberg, id);
        rc = cat_load_table(c->iceberg, id, out, err);
        if (!target || !ses_stand_in(s, c, id, rc, err)) return rc;
    }
    if (ses_recall(s, c, id, out, &own) != FZ_OK) fz_log_error(FZ_LOG_WARN, "catalog.memory", &own);
    return *out ? *recalled = true, FZ_OK : err->cls;
}

fz_status ses_iceberg_load(ses_session *s, ses_catalog *c, const ses_path *p, bool target, ses_iceberg **out, fz_error *err) {
    cat_ident id = cat_ident_of(c->iceberg, s->arena, p->database, p->name);
    cat_table *loaded = NULL;
    bool recalled;
    FZ_TRY(load_or_recall(s, c, &id, target, &loaded, &recalled, err));
    ses_iceberg *t = FZ_ANEW(s->arena, ses_iceberg);
    t->catalog = c->iceberg;
    t->ident = id;
    t->loaded = loaded;
    t->away = recalled ? &c->why : NULL;
    t->next = s->loaded;
    s->loaded = t;
    FZ_TRY(fill_table(s, t, p, err));
    *out = t;
    return FZ_OK;
}

/* ---- CREATE TABLE ---- */

static fz_status refuse(sql_pos pos, const char *what, const char *hint, fz_error *err) {
    fz_fail(err, FZ_USER, "sql.unsupported", "%s", what);
    if (hint) fz_hint(err, "%s", hint);
    return ses_fail_at(err, pos);
}

static fz_status physical_schema(ses_session *s, const sql_stmt *st, col_schema *out, fz_error *err) {
    col_field *f = FZ_ANEWN(s->arena, col_field, st->n_columns);
    for (uint32_t i = 0; i < st->n_columns; i++) {
        const sql_column *c = &st->columns[i];
        if (c->kind == SQL_COL_METADATA) return refuse(c->pos, "an Iceberg table cannot have metadata columns", "declare them in the source table", err);
        if (c->kind == SQL_COL_COMPUTED) return refuse(c->pos, "an Iceberg table cannot have computed columns", "compute the value in the INSERT's query", err);
        f[i] = (col_field){c->name, c->type, c->comment};
    }
    if (st->watermark_text) return refuse(st->watermark_pos, "an Iceberg table cannot have a watermark", NULL, err);
    *out = (col_schema){st->n_columns, f};
    return FZ_OK;
}

static const char *lower_copy(fz_arena *a, const char *s) {
    char *out = fz_arena_strdup(a, s);
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
    return out;
}

/* dt | bucket(16, id) | truncate(10, s) | year(ts), years(ts), ... */
static fz_status partition_term(ses_session *s, const sql_expr *e, ice_term *out, fz_error *err) {
    *out = (ice_term){0};
    if (e->kind == SQL_X_COLUMN) {
        out->column = e->col.part[e->col.n - 1];
        return FZ_OK;
    }
    out->transform = lower_copy(s->arena, e->fn);
    const sql_expr *column = e->n_args ? e->args[e->n_args - 1] : NULL;
    int64_t n = 0;
    bool good = column && column->kind == SQL_X_COLUMN && e->n_args <= 2;
    if (good && e->n_args == 2) good = e->args[0]->kind == SQL_X_NUMBER && fz_parse_i64((fz_sv){e->args[0]->text, e->args[0]->text_len}, &n) && n > 0 && n <= INT32_MAX;
    if (!good) {
        fz_fail(err, FZ_USER, "sql.partition", "a partition field is a column or a transform of one: bucket(16, c), truncate(10, c), year(c), month(c), day(c), hour(c)");
        return ses_fail_at(err, e->pos);
    }
    out->n = (int32_t)n;
    out->column = column->col.part[column->col.n - 1];
    return FZ_OK;
}

static fz_status build_spec(ses_session *s, const sql_stmt *st, const ice_schema *schema, ice_spec **out, fz_error *err) {
    ice_term *terms = FZ_ANEWN(s->arena, ice_term, st->n_partition);
    for (uint32_t i = 0; i < st->n_partition; i++) FZ_TRY(partition_term(s, st->partition[i], &terms[i], err));
    fz_status rc = ice_spec_build(s->arena, schema, terms, st->n_partition, out, err);
    return rc == FZ_OK ? rc : ses_fail_at(err, st->n_partition ? st->partition[0]->pos : st->pos);
}

/* Splits WITH into the location and table properties, checked against the table of properties. */
static fz_status split_options(ses_session *s, const sql_stmt *st, fz_pair **props, size_t *n, const char **location, fz_error *err) {
    *props = FZ_ANEWN(s->arena, fz_pair, st->n_options + 1);
    *n = 0;
    *location = NULL;
    for (uint32_t i = 0; i < st->n_options; i++) {
        const fz_pair *o = &st->options[i];
        sql_pos pos = {o->line, o->column};
        if (strcmp(o->key, "connector") == 0)
            return refuse(pos.line ? pos : st->pos, "option 'connector' in an Iceberg catalog",
                          pos.line ? "a table of a connector is made with CREATE TEMPORARY TABLE, or in default_catalog" : "write LIKE ... (EXCLUDING OPTIONS)", err);
        if (fz_ieq(o->key, "location")) {
            *location = o->value;
            continue;
        }
        const fz_option *known = fz_option_find(ice_table_properties, o->key);
        if (known && known->state == FZ_OPT_REFUSED) {
            fz_fail(err, FZ_USER, "option.refused", "table property '%s' cannot be honoured: %s", o->key, known->why);
            return ses_fail_at(err, pos);
        }
        if (known && fz_option_check(known, o->value, err) != FZ_OK) {
            fz_context(err, "table property '%s'", o->key);
            return ses_fail_at(err, pos);
        }
        (*props)[(*n)++] = *o;
    }
    if (st->comment) (*props)[(*n)++] = (fz_pair){.key = "comment", .value = st->comment};
    return FZ_OK;
}

fz_status ses_iceberg_prepare(ses_session *s, const sql_stmt *st, ses_iceberg_parts *out, fz_error *err) {
    col_schema cols;
    if (st->n_columns == 0) return refuse(st->name.pos, "an Iceberg table without columns", NULL, err);
    FZ_TRY(physical_schema(s, st, &cols, err));
    FZ_TRY(ice_schema_from_cols(s->arena, &cols, st->pk, st->n_pk, &out->schema, err));
    FZ_TRY(build_spec(s, st, out->schema, &out->spec, err));
    return split_options(s, st, &out->given, &out->n_given, &out->location, err);
}

fz_status ses_iceberg_create(ses_session *s, ses_catalog *c, const ses_path *p, const sql_stmt *st, fz_error *err) {
    ses_iceberg_parts parts;
    fz_pair *props;
    size_t n_props;
    FZ_TRY(ses_iceberg_prepare(s, st, &parts, err));
    const char *location = parts.location;
    FZ_TRY(cat_table_properties(c->iceberg, s->arena, parts.given, parts.n_given, &props, &n_props, err));
    cat_ident id = cat_ident_of(c->iceberg, s->arena, p->database, p->name);
    if (!location) FZ_TRY(cat_default_location(c->iceberg, &id, s->arena, &location, err));
    char uuid[37];
    fz_uuid4(uuid);
    ice_metadata *first;
    FZ_TRY(ice_metadata_new(location, parts.schema, parts.spec, NULL, props, (uint32_t)n_props, uuid, fz_now_ms(), &first, err));
    cat_table *made = NULL;
    fz_status rc = cat_create_table(c->iceberg, &id, first, &made, err);
    if (rc != FZ_OK) {
        ice_metadata_free(first);
        return st->if_not_exists && err && strcmp(err->code, "catalog.table-exists") == 0 ? FZ_OK : rc; /* somebody else was faster */
    }
    cat_table_free(made);
    return FZ_OK;
}

/* ---- definition ---- */

/* Identity fields are columns; the others are calls with the transform's name. */
static sql_expr *term_expr(ses_session *s, const ice_metadata *m, const ice_spec_field *f) {
    const char *column = ice_schema_field_name(s->arena, m->schema, f->source_id);
    sql_expr *col = FZ_ANEW(s->arena, sql_expr);
    col->kind = SQL_X_COLUMN;
    col->col = (sql_name){.n = 1, .part = {column ? column : f->name}};
    if (f->transform.kind == ICE_IDENTITY) return col;
    bool with_n = f->transform.kind == ICE_BUCKET || f->transform.kind == ICE_TRUNCATE;
    sql_expr *call = FZ_ANEW(s->arena, sql_expr);
    call->kind = SQL_X_CALL;
    call->n_args = with_n ? 2 : 1;
    call->args = FZ_ANEWN(s->arena, sql_expr *, 2);
    char *name = fz_arena_strdup(s->arena, f->transform.text);
    if (strchr(name, '[')) *strchr(name, '[') = 0;
    call->fn = name;
    if (with_n) {
        sql_expr *n = FZ_ANEW(s->arena, sql_expr);
        n->kind = SQL_X_NUMBER;
        n->text = fz_arena_printf(s->arena, "%d", f->transform.n);
        n->text_len = (uint32_t)strlen(n->text);
        call->args[0] = n;
    }
    call->args[call->n_args - 1] = col;
    return call;
}

fz_status ses_iceberg_definition(ses_session *s, const ses_iceberg *t, sql_stmt **out, fz_error *err) {
    (void)err;
    const ice_metadata *m = t->loaded->metadata;
    sql_stmt *d = *out = FZ_ANEW(s->arena, sql_stmt);
    d->kind = SQL_S_CREATE_TABLE;
    d->n_columns = t->table.n_columns;
    d->columns = FZ_ANEWN(s->arena, sql_column, d->n_columns);
    memcpy(d->columns, t->table.columns, d->n_columns * sizeof *d->columns);
    d->n_pk = t->table.n_pk;
    d->pk = (const char **)(uintptr_t)t->table.pk;
    d->pk_not_enforced = true;
    d->options = FZ_ANEWN(s->arena, fz_pair, m->n_properties);
    for (uint32_t i = 0; i < m->n_properties; i++) {
        if (strcmp(m->properties[i].key, "comment") == 0) d->comment = m->properties[i].value;
        else if (!fz_starts(m->properties[i].key, "frazil.")) d->options[d->n_options++] = m->properties[i]; /* positions are no options */
    }
    d->partition = FZ_ANEWN(s->arena, sql_expr *, m->spec->n_fields);
    for (uint32_t i = 0; i < m->spec->n_fields; i++)
        if (m->spec->fields[i].transform.kind != ICE_VOID) d->partition[d->n_partition++] = term_expr(s, m, &m->spec->fields[i]);
    return FZ_OK;
}
