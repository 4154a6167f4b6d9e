/* FROM: tables, views, common table expressions, subqueries, VALUES. */
#include "sql/bind_int.h"

static const col_schema *schema_of(sql_bind *b, const col_field *f, uint32_t n) {
    col_schema *s = FZ_ANEW(b->a, col_schema);
    s->n = n;
    s->fields = f;
    return s;
}

/* Other names for the columns of a plan: (a, b) after an alias, or a view's. */
static fz_status rename_columns(sql_bind *b, sql_plan *in, uint32_t n, const char *const *names, sql_pos pos, sql_plan **out, fz_error *err) {
    *out = in;
    if (!n) return FZ_OK;
    if (n != in->schema->n) {
        fz_fail(err, FZ_USER, "sql.column-count", "%u column names for %u columns", n, in->schema->n);
        return fz_at(err, pos.line, pos.column);
    }
    sql_bound **e = FZ_ANEWN(b->a, sql_bound *, n);
    for (uint32_t k = 0; k < n; k++) e[k] = bind_column_ref(b, in->schema, k, pos);
    *out = bind_project(b, in, n, e, names);
    return FZ_OK;
}

/* ---- tables -------------------------------------------------------------------------------------------------------------------- */

static sql_plan *scan(sql_bind *b, const sql_table *t) {
    col_field *f = FZ_ANEWN(b->a, col_field, t->n_columns + 1);
    const char **keys = FZ_ANEWN(b->a, const char *, t->n_columns + 1);
    uint32_t n = 0, physical;
    for (uint32_t k = 0; k < t->n_columns; k++)
        if (t->columns[k].kind == SQL_COL_PHYSICAL) f[n++] = (col_field){t->columns[k].name, t->columns[k].type, t->columns[k].comment};
    physical = n;
    for (uint32_t k = 0; k < t->n_columns; k++)
        if (t->columns[k].kind == SQL_COL_METADATA) {
            keys[n - physical] = t->columns[k].metadata_key ? t->columns[k].metadata_key : t->columns[k].name;
            f[n++] = (col_field){t->columns[k].name, t->columns[k].metadata_type ? t->columns[k].metadata_type : t->columns[k].type, t->columns[k].comment};
        }
    sql_plan *p = bind_plan_node(b->a, SQL_P_SCAN, schema_of(b, f, n), NULL);
    p->table = t;
    p->n_scan_physical = physical;
    p->scan_metadata = keys;
    p->wanted = FZ_ANEWN(b->a, bool, n + 1);
    return p;
}

/* A metadata column may be declared as any type that its own one can be cast to. */
static fz_status cast_metadata(sql_bind *b, const sql_table *t, sql_plan *in, sql_plan **out, fz_error *err) {
    uint32_t n = in->schema->n;
    sql_bound **e = FZ_ANEWN(b->a, sql_bound *, n);
    const char **names = FZ_ANEWN(b->a, const char *, n);
    bool same = true;
    for (uint32_t k = 0; k < n; k++) {
        names[k] = in->schema->fields[k].name;
        e[k] = bind_column_ref(b, in->schema, k, (sql_pos){0});
    }
    for (uint32_t k = 0; k < t->n_columns; k++) {
        const sql_column *c = &t->columns[k];
        if (!c->metadata_type || col_type_eq(c->metadata_type, c->type, false)) continue;
        if (!bind_can_cast(c->metadata_type, c->type)) {
            fz_fail(err, FZ_USER, "sql.metadata", "table %s: metadata column '%s' is %s, which cannot be cast to %s", t->path, c->name, bind_type_name(b->a, c->metadata_type), bind_type_name(b->a, c->type));
            return FZ_USER;
        }
        uint32_t at = (uint32_t)col_schema_find(in->schema, c->name);
        e[at] = bind_cast(b, e[at], c->type);
        same = false;
    }
    *out = same ? in : bind_project(b, in, n, e, names);
    return FZ_OK;
}

/* Columns in declared order; computed ones are made here. They may use any column that is not computed. */
static fz_status declared_columns(sql_bind *b, const sql_table *t, sql_plan *in, sql_plan **out, fz_error *err) {
    sql_bound **e = FZ_ANEWN(b->a, sql_bound *, t->n_columns);
    const char **names = FZ_ANEWN(b->a, const char *, t->n_columns);
    bind_scope scope = {.schema = in->schema};
    sql_bind inner = *b;
    inner.scope = &scope;
    inner.aggregates = false;
    bool same = true;
    for (uint32_t k = 0; k < t->n_columns; k++) {
        names[k] = t->columns[k].name;
        if (t->columns[k].kind == SQL_COL_COMPUTED) {
            fz_status s = bind_expr(&inner, t->columns[k].expr, &e[k], err);
            if (s != FZ_OK) return fz_context(err, "computed column '%s' of %s", names[k], t->path);
        } else e[k] = bind_column_ref(b, in->schema, (uint32_t)col_schema_find(in->schema, names[k]), t->columns[k].pos);
        same &= e[k]->kind == SQL_B_COLUMN && e[k]->column == k;
    }
    *out = same ? in : bind_project(b, in, t->n_columns, e, names);
    return FZ_OK;
}

static fz_status bind_view(sql_bind *b, const sql_table *t, sql_pos pos, sql_plan **out, fz_error *err) {
    if (b->depth >= FZ_MAX_SQL_DEPTH) return fz_fail(err, FZ_USER, "sql.too-deep", "view %s is nested too deep", t->path);
    sql_bind inner = {.a = b->a, .resolver = b->resolver, .settings = b->settings, .depth = b->depth + 1};
    sql_plan *p;
    fz_status s = bind_query(&inner, t->view, &p, err);
    if (s != FZ_OK) return fz_context(err, "view %s", t->path);
    return rename_columns(b, p, t->n_view_cols, t->view_cols, pos, out, err);
}

static const bind_cte *find_cte(const sql_bind *b, const sql_name *n) {
    if (n->n != 1) return NULL;
    for (const bind_cte *c = b->ctes; c; c = c->outer)
        if (!strcmp(c->name, n->part[0])) return c;
    return NULL;
}

static fz_status bind_table(sql_bind *b, const sql_from *f, sql_plan **out, fz_error *err) {
    const bind_cte *c = find_cte(b, &f->table);
    if (c) {
        sql_bind inner = *b;
        inner.ctes = c->outer;
        inner.scope = NULL;
        inner.aggregates = inner.inside_aggregate = false;
        inner.depth = b->depth + 1;
        return bind_query(&inner, c->query, out, err);
    }
    const sql_table *t = NULL;
    if (!b->resolver) {
        fz_fail(err, FZ_USER, "sql.table-not-found", "table '%s' is not there", f->table.part[f->table.n - 1]);
        return fz_at(err, f->table.pos.line, f->table.pos.column);
    }
    fz_status s = b->resolver->table(b->resolver->cx, &f->table, &f->hint, &t, err);
    if (s != FZ_OK) {
        if (err && !err->line) fz_at(err, f->table.pos.line, f->table.pos.column);
        return s;
    }
    if (t->kind == SQL_T_VIEW) return bind_view(b, t, f->pos, out, err);
    sql_plan *in;
    FZ_TRY(cast_metadata(b, t, scan(b, t), &in, err));
    return declared_columns(b, t, in, out, err);
}

/* ---- VALUES -------------------------------------------------------------------------------------------------------------------- */

static fz_status bind_values(sql_bind *b, const sql_from *f, sql_plan **out, fz_error *err) {
    sql_bound **v = FZ_ANEWN(b->a, sql_bound *, (size_t)f->n_rows * f->n_cols + 1);
    col_field *fields = FZ_ANEWN(b->a, col_field, f->n_cols + 1);
    const col_type **t = FZ_ANEWN(b->a, const col_type *, f->n_rows + 1);
    sql_bind inner = *b;
    inner.scope = NULL;
    inner.aggregates = false;
    for (uint32_t i = 0; i < f->n_rows * f->n_cols; i++) FZ_TRY(bind_expr(&inner, f->values[i], &v[i], err));
    for (uint32_t c = 0; c < f->n_cols; c++) {
        for (uint32_t r = 0; r < f->n_rows; r++) t[r] = v[r * f->n_cols + c]->type;
        const col_type *common = bind_common_type(b->a, t, f->n_rows);
        if (!common) {
            fz_fail(err, FZ_USER, "sql.type-mismatch", "column %u of VALUES mixes %s with other types", c + 1, bind_type_name(b->a, t[0]));
            return fz_at(err, f->pos.line, f->pos.column);
        }
        fields[c] = (col_field){fz_arena_printf(b->a, "EXPR$%u", c), common, NULL};
        for (uint32_t r = 0; r < f->n_rows; r++) v[r * f->n_cols + c] = bind_cast(b, v[r * f->n_cols + c], common);
    }
    sql_plan *p = bind_plan_node(b->a, SQL_P_VALUES, schema_of(b, fields, f->n_cols), NULL);
    p->n_rows = f->n_rows;
    p->values = v;
    *out = p;
    return FZ_OK;
}

fz_status bind_from(sql_bind *b, const sql_from *f, sql_plan **out, bind_scope *scope, fz_error *err) {
    *scope = (bind_scope){.alias = f->alias};
    switch (f->kind) {
    case SQL_FROM_TABLE:
        FZ_TRY(bind_table(b, f, out, err));
        scope->table = &f->table;
        break;
    case SQL_FROM_QUERY: {
        sql_bind inner = *b;
        inner.scope = NULL;
        inner.aggregates = inner.inside_aggregate = false;
        inner.depth = b->depth + 1;
        FZ_TRY(bind_query(&inner, f->query, out, err));
        break;
    }
    case SQL_FROM_VALUES: FZ_TRY(bind_values(b, f, out, err)); break;
    default: /* one row without columns */
        *out = bind_plan_node(b->a, SQL_P_VALUES, schema_of(b, FZ_ANEWN(b->a, col_field, 1), 0), NULL);
        (*out)->n_rows = 1;
    }
    FZ_TRY(rename_columns(b, *out, f->n_alias_cols, f->alias_cols, f->pos, out, err));
    scope->schema = (*out)->schema;
    return FZ_OK;
}
