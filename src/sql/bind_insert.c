/* INSERT: the query's columns against the target's, with the casts that Flink makes and checks of NOT NULL. */
#include "sql/bind_int.h"

bool sql_can_store(const col_type *from, const col_type *to) { return bind_can_store(from, to); }

static fz_status store_mismatch(sql_bind *b, const sql_bound *e, const col_field *to, fz_error *err) {
    fz_fail(err, FZ_USER, "sql.type-mismatch", "column '%s' is %s, the query gives %s", to->name, bind_type_name(b->a, to->type), bind_type_name(b->a, e->type));
    fz_hint(err, "add CAST(... AS %s)", bind_type_name(b->a, col_with_null(b->a, to->type, true)));
    return fz_at(err, e->pos.line, e->pos.column);
}

/* A value as it goes into a column: cast, and checked where the column is NOT NULL. The value's type is no proof: a decimal that does not fit is NULL
 * whatever its type says, in Flink as here. */
static fz_status store(sql_bind *b, sql_bound *e, const col_field *to, sql_bound **out, fz_error *err) {
    if (!bind_can_store(e->type, to->type)) return store_mismatch(b, e, to, err);
    sql_bound *x = bind_cast(b, e, to->type);
    if (!to->type->nullable) {
        sql_bound *args[2] = {x, bind_text_literal(b, to->name, strlen(to->name), e->pos)};
        x = bind_call(b, sql_fn_of(SQL_K_NOT_NULL), NULL, args, 2, e);
        x->text = to->name;
        FZ_TRY(rule_not_null(b, x, err));
    }
    *out = x;
    return FZ_OK;
}

/* Where a column of a projection comes from, for the position of a message. */
static sql_bound *source_ref(sql_bind *b, const sql_plan *p, uint32_t k) {
    sql_bound *c = bind_column_ref(b, p->schema, k, (sql_pos){0, 0});
    while (p->kind == SQL_P_SORT || p->kind == SQL_P_LIMIT || p->kind == SQL_P_FILTER) p = p->inputs[0];
    if (p->kind == SQL_P_PROJECT) c->pos = p->exprs[k]->pos;
    if (p->kind == SQL_P_VALUES && p->n_rows) c->pos = p->values[k]->pos;
    return c;
}

/* map[t]: column of the plan for target column t; -1: left out. */
static fz_status store_plan(sql_bind *b, sql_plan *in, const col_schema *target, const int32_t *map, sql_bound *const *fixed, sql_pos pos, sql_plan **out, fz_error *err) {
    sql_bound **e = FZ_ANEWN(b->a, sql_bound *, target->n + 1);
    const char **names = FZ_ANEWN(b->a, const char *, target->n + 1);
    for (uint32_t t = 0; t < target->n; t++) {
        const col_field *to = &target->fields[t];
        names[t] = to->name;
        sql_bound *x = map[t] >= 0 ? source_ref(b, in, (uint32_t)map[t]) : fixed && fixed[t] ? bind_cast(b, fixed[t], to->type) : bind_null_literal(b, pos, "NULL");
        if (map[t] < 0 && !to->type->nullable && !(fixed && fixed[t])) {
            fz_fail(err, FZ_USER, "sql.not-null", "column '%s' is NOT NULL and gets no value", to->name);
            return fz_at(err, pos.line, pos.column);
        }
        if (x->pos.line == 0) x->pos = pos;
        FZ_TRY(store(b, x, to, &e[t], err));
    }
    *out = bind_project(b, in, target->n, e, names);
    return FZ_OK;
}

static fz_status check_columns(uint32_t got, uint32_t want, sql_pos pos, fz_error *err) {
    if (got == want) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.column-count", "the query gives %u columns, the target takes %u", got, want);
    return fz_at(err, pos.line, pos.column);
}

fz_status sql_bind_query(fz_arena *a, const sql_query *q, const sql_resolver *r, const sql_settings *s, const col_schema *target, sql_plan **out, fz_error *err) {
    sql_bind b = {.a = a, .resolver = r, .settings = s};
    sql_plan *p;
    FZ_TRY(bind_query(&b, q, &p, err));
    if (target) {
        FZ_TRY(check_columns(p->schema->n, target->n, q->pos, err));
        int32_t *map = FZ_ANEWN(a, int32_t, target->n + 1);
        for (uint32_t t = 0; t < target->n; t++) map[t] = (int32_t)t;
        FZ_TRY(store_plan(&b, p, target, map, NULL, q->pos, &p, err));
    }
    plan_mark_wanted(a, p);
    *out = p;
    return FZ_OK;
}

/* Columns that an INSERT can fill: physical ones, and metadata that is not VIRTUAL. */
static const col_schema *sink_schema(sql_bind *b, const sql_table *t) {
    col_field *f = FZ_ANEWN(b->a, col_field, t->n_columns + 1);
    col_schema *s = FZ_ANEW(b->a, col_schema);
    s->fields = f;
    for (uint32_t k = 0; k < t->n_columns; k++) {
        const sql_column *c = &t->columns[k];
        if (c->kind == SQL_COL_PHYSICAL || (c->kind == SQL_COL_METADATA && !c->is_virtual)) f[s->n++] = (col_field){c->name, c->type, c->comment};
    }
    return s;
}

static fz_status find_target(sql_bind *b, const col_schema *s, const sql_table *t, const char *name, sql_pos pos, uint32_t *out, fz_error *err) {
    int k = col_schema_find(s, name);
    if (k < 0) {
        fz_fail(err, FZ_USER, "sql.unknown-column", "table %s has no column '%s'", t->path, name);
        for (uint32_t i = 0; i < s->n; i++)
            if (fz_ieq(s->fields[i].name, name)) fz_hint(err, "did you mean '%s'?", s->fields[i].name);
        return fz_at(err, pos.line, pos.column);
    }
    (void)b;
    *out = (uint32_t)k;
    return FZ_OK;
}

/* PARTITION (k = v): constants; a part without value stays with the query. */
static fz_status fixed_values(sql_bind *b, const sql_stmt *st, const col_schema *s, const sql_table *t, sql_bound **fixed, uint32_t *n, fz_error *err) {
    *n = 0;
    for (uint32_t i = 0; i < st->n_partition_values; i++) {
        const fz_pair *p = &st->partition_values[i];
        uint32_t k;
        FZ_TRY(find_target(b, s, t, p->key, (sql_pos){p->line, p->column}, &k, err));
        if (!p->value) continue;
        fixed[k] = bind_text_literal(b, p->value, strlen(p->value), (sql_pos){p->line, p->column});
        ++*n;
    }
    return FZ_OK;
}

static fz_status map_columns(sql_bind *b, const sql_stmt *st, const col_schema *s, const sql_table *t, sql_bound *const *fixed, int32_t *map, uint32_t *n, fz_error *err) {
    *n = 0;
    for (uint32_t k = 0; k < s->n; k++) map[k] = -1;
    if (!st->n_insert_cols) {
        for (uint32_t k = 0; k < s->n; k++)
            if (!fixed[k]) map[k] = (int32_t)(*n)++;
        return FZ_OK;
    }
    for (uint32_t i = 0; i < st->n_insert_cols; i++) {
        uint32_t k;
        FZ_TRY(find_target(b, s, t, st->insert_cols[i], st->pos, &k, err));
        if (map[k] >= 0 || fixed[k]) {
            fz_fail(err, FZ_USER, "sql.column-twice", "column '%s' is given twice", st->insert_cols[i]);
            return fz_at(err, st->pos.line, st->pos.column);
        }
        map[k] = (int32_t)(*n)++;
    }
    return FZ_OK;
}

fz_status sql_bind_insert(fz_arena *a, const sql_stmt *insert, const sql_table *target, const sql_resolver *r, const sql_settings *s, sql_plan **out, fz_error *err) {
    sql_bind b = {.a = a, .resolver = r, .settings = s};
    if (insert->overwrite) {
        fz_fail(err, FZ_USER, "sql.unsupported", "INSERT OVERWRITE is not supported");
        return fz_at(err, insert->pos.line, insert->pos.column);
    }
    if (target->kind == SQL_T_VIEW) {
        fz_fail(err, FZ_USER, "sql.unsupported", "%s is a view; INSERT needs a table", target->path);
        return fz_at(err, insert->pos.line, insert->pos.column);
    }
    const col_schema *sink = sink_schema(&b, target);
    sql_bound **fixed = FZ_ANEWN(a, sql_bound *, sink->n + 1);
    int32_t *map = FZ_ANEWN(a, int32_t, sink->n + 1);
    uint32_t n_fixed, n;
    FZ_TRY(fixed_values(&b, insert, sink, target, fixed, &n_fixed, err));
    FZ_TRY(map_columns(&b, insert, sink, target, fixed, map, &n, err));
    sql_plan *p;
    FZ_TRY(bind_query(&b, insert->query, &p, err));
    fz_status st = check_columns(p->schema->n, n, insert->query->pos, err);
    if (st != FZ_OK) return fz_detail(err, "INSERT INTO %s", target->path);
    FZ_TRY(store_plan(&b, p, sink, map, fixed, insert->pos, &p, err));
    plan_mark_wanted(a, p);
    *out = p;
    return FZ_OK;
}
