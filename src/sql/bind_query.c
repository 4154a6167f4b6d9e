/* Queries: WITH, SELECT, UNION ALL; and the outward sql_bind_query. */
#include "sql/bind_int.h"

sql_plan *bind_plan_node(fz_arena *a, sql_plan_kind kind, const col_schema *schema, sql_plan *input) {
    sql_plan *p = FZ_ANEW(a, sql_plan);
    p->kind = kind;
    p->schema = schema;
    p->limit = -1;
    if (input) {
        p->inputs = FZ_ANEWN(a, sql_plan *, 1);
        p->inputs[0] = input;
        p->n_inputs = 1;
    }
    return p;
}

static bool is_constant_true(const sql_bound *e) { return e->kind == SQL_B_LITERAL && !col_is_null(e->literal, 0) && col_bool(e->literal, 0); }

/* One SELECT with its ORDER BY, without LIMIT. */
static fz_status bind_core(sql_bind *b, const sql_query *q, bool ordered, sql_plan **out, fz_error *err) {
    bind_scope scope;
    sql_plan *in;
    FZ_TRY(bind_from(b, &q->from, &in, &scope, err));
    sql_bind inner = *b;
    inner.scope = &scope;
    inner.aggregates = inner.inside_aggregate = false;
    if (q->where) {
        sql_bound *e;
        FZ_TRY(bind_bool(&inner, q->where, "WHERE", &e, err));
        if (!is_constant_true(e)) {
            in = bind_plan_node(b->a, SQL_P_FILTER, in->schema, in);
            in->predicate = e;
        }
    }
    sql_query plain = *q;
    if (!ordered) plain.n_order = 0;
    if (bind_is_grouped(&plain)) return bind_grouped(&inner, &plain, in, out, err);
    bind_select sel = {.in = in};
    FZ_TRY(bind_items(&inner, &plain, &sel, err));
    FZ_TRY(bind_order_keys(&inner, &plain, &sel, err));
    *out = bind_select_build(&inner, &plain, &sel);
    return FZ_OK;
}

static uint32_t count_branches(const sql_query *q) {
    uint32_t n = 0;
    for (; q; q = q->union_all) n++;
    return n;
}

/* Columns of all branches in their common types. */
static fz_status unite(sql_bind *b, const sql_query *q, sql_plan *u, fz_error *err) {
    const col_schema *first = u->inputs[0]->schema;
    const col_type **t = FZ_ANEWN(b->a, const col_type *, u->n_inputs);
    col_field *f = FZ_ANEWN(b->a, col_field, first->n + 1);
    for (uint32_t i = 1; i < u->n_inputs; i++)
        if (u->inputs[i]->schema->n != first->n) {
            fz_fail(err, FZ_USER, "sql.column-count", "UNION ALL of %u and %u columns", first->n, u->inputs[i]->schema->n);
            return fz_at(err, q->pos.line, q->pos.column);
        }
    for (uint32_t c = 0; c < first->n; c++) {
        for (uint32_t i = 0; i < u->n_inputs; i++) t[i] = u->inputs[i]->schema->fields[c].type;
        f[c] = first->fields[c];
        f[c].type = bind_common_type(b->a, t, u->n_inputs);
        if (f[c].type) continue;
        fz_fail(err, FZ_USER, "sql.type-mismatch", "column '%s' of UNION ALL is %s here and %s there", f[c].name, bind_type_name(b->a, t[0]), bind_type_name(b->a, t[1]));
        return fz_at(err, q->pos.line, q->pos.column);
    }
    col_schema *s = FZ_ANEW(b->a, col_schema);
    *s = (col_schema){first->n, f};
    u->schema = s;
    const char **names = FZ_ANEWN(b->a, const char *, first->n + 1);
    for (uint32_t c = 0; c < first->n; c++) names[c] = f[c].name;
    for (uint32_t i = 0; i < u->n_inputs; i++) {
        sql_bound **e = FZ_ANEWN(b->a, sql_bound *, first->n + 1);
        for (uint32_t c = 0; c < first->n; c++) e[c] = bind_cast(b, bind_column_ref(b, u->inputs[i]->schema, c, q->pos), f[c].type);
        u->inputs[i] = bind_project(b, u->inputs[i], first->n, e, names);
    }
    return FZ_OK;
}

static fz_status bind_union(sql_bind *b, const sql_query *q, sql_plan **out, fz_error *err) {
    sql_plan *u = bind_plan_node(b->a, SQL_P_UNION, NULL, NULL);
    u->inputs = FZ_ANEWN(b->a, sql_plan *, count_branches(q));
    for (const sql_query *branch = q; branch; branch = branch->union_all) FZ_TRY(bind_core(b, branch, false, &u->inputs[u->n_inputs++], err));
    FZ_TRY(unite(b, q, u, err));
    *out = u;
    if (!q->n_order) return FZ_OK;
    bind_scope scope = {.schema = u->schema};
    sql_bind inner = *b;
    inner.scope = &scope;
    bind_select sel = {.in = u};
    const sql_expr star = {.kind = SQL_X_STAR, .pos = q->pos};
    sql_item item = {(sql_expr *)&star, NULL};
    sql_query all = {.n_items = 1, .items = &item, .n_order = q->n_order, .order = q->order, .pos = q->pos};
    FZ_TRY(bind_items(&inner, &all, &sel, err));
    FZ_TRY(bind_order_keys(&inner, &all, &sel, err));
    *out = bind_select_build(&inner, &all, &sel);
    return FZ_OK;
}

fz_status bind_query(sql_bind *b, const sql_query *q, sql_plan **out, fz_error *err) {
    if (b->depth >= FZ_MAX_SQL_DEPTH) {
        fz_fail(err, FZ_USER, "sql.too-deep", "queries are nested too deep");
        return fz_at(err, q->pos.line, q->pos.column);
    }
    sql_bind inner = *b;
    for (uint32_t i = 0; i < q->n_with; i++) {
        bind_cte *c = FZ_ANEW(b->a, bind_cte);
        *c = (bind_cte){q->with[i].name, q->with[i].query, inner.ctes};
        inner.ctes = c;
    }
    sql_plan *p;
    if (q->union_all) FZ_TRY(bind_union(&inner, q, &p, err));
    else FZ_TRY(bind_core(&inner, q, true, &p, err));
    return bind_limit(&inner, q, p, out, err);
}
