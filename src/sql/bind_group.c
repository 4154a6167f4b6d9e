/* GROUP BY and aggregates: expressions over the input become expressions over the aggregate node, whose columns are the keys, then the aggregates. */
#include "sql/bind_int.h"

struct bind_group {
    uint32_t n_keys, n_aggs, cap;
    sql_bound **keys;
    sql_agg *aggs;
    const bind_agg_call **calls; /* what each of aggs came from */
};

static bool is_aggregate_name(const char *fn) {
    const sql_fn *f = sql_fn_find(fn);
    return f && f->aggregate;
}
bool bind_has_aggregate(const sql_expr *e) {
    if (!e) return false;
    if (e->kind == SQL_X_CALL && is_aggregate_name(e->fn)) return true;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (bind_has_aggregate(e->args[i])) return true;
    return false;
}
bool bind_is_grouped(const sql_query *q) {
    if (q->n_group || q->having) return true;
    for (uint32_t i = 0; i < q->n_items; i++)
        if (bind_has_aggregate(q->items[i].expr)) return true;
    for (uint32_t i = 0; i < q->n_order; i++)
        if (bind_has_aggregate(q->order[i].expr)) return true;
    return false;
}

static bool same_aggregate(const bind_agg_call *x, const bind_agg_call *y) {
    if (x->bound.fn != y->bound.fn || x->distinct != y->distinct || x->bound.n_args != y->bound.n_args || !x->filter != !y->filter) return false;
    if (x->filter && !bind_same(x->filter, y->filter)) return false;
    return !x->bound.n_args || bind_same(x->bound.args[0], y->bound.args[0]);
}

static uint32_t add_aggregate(sql_bind *b, bind_group *g, const bind_agg_call *c) {
    for (uint32_t k = 0; k < g->n_aggs; k++)
        if (same_aggregate(g->calls[k], c)) return k;
    if (g->n_aggs == g->cap) {
        uint32_t cap = g->cap ? g->cap * 2 : 8;
        g->aggs = fz_arena_realloc(b->a, g->aggs, g->cap * sizeof *g->aggs, cap * sizeof *g->aggs);
        g->calls = fz_arena_realloc(b->a, g->calls, g->cap * sizeof *g->calls, cap * sizeof *g->calls);
        g->cap = cap;
    }
    sql_bound *arg = c->bound.n_args ? c->bound.args[0] : NULL;
    const col_type *t = c->bound.type;
    if (g->n_keys && arg && !arg->type->nullable && !c->filter) t = col_with_null(b->a, t, false);
    if (arg && arg->type->kind == COL_NULL) arg = bind_cast(b, arg, t);
    g->aggs[g->n_aggs] = (sql_agg){.fn = c->bound.fn, .distinct = c->distinct, .arg = arg, .filter = c->filter, .type = t};
    g->calls[g->n_aggs] = c;
    return g->n_aggs++;
}

static sql_bound *output(sql_bind *b, uint32_t column, const col_type *t, const sql_bound *origin) {
    sql_bound *c = bind_node(b, SQL_B_COLUMN, t, origin->pos, origin->text);
    c->column = column;
    return c;
}

fz_status bind_over_groups(sql_bind *b, bind_group *g, sql_bound *e, sql_bound **out, fz_error *err) {
    for (uint32_t k = 0; k < g->n_keys; k++)
        if (bind_same(g->keys[k], e)) {
            *out = output(b, k, g->keys[k]->type, e);
            return FZ_OK;
        }
    if (e->kind == SQL_B_CALL && e->fn->aggregate) {
        uint32_t k = add_aggregate(b, g, (const bind_agg_call *)e); /* bound is its first member */
        *out = output(b, g->n_keys + k, g->aggs[k].type, e);
        return FZ_OK;
    }
    if (e->kind == SQL_B_COLUMN) {
        fz_fail(err, FZ_USER, "sql.not-grouped", "column '%s' is neither grouped nor aggregated", e->text);
        fz_hint(err, "put it into GROUP BY or into an aggregate such as MAX(%s)", e->text);
        return fz_at(err, e->pos.line, e->pos.column);
    }
    sql_bound *c = FZ_ANEW(b->a, sql_bound);
    *c = *e;
    c->args = FZ_ANEWN(b->a, sql_bound *, e->n_args + 1);
    for (uint32_t i = 0; i < e->n_args; i++) FZ_TRY(bind_over_groups(b, g, e->args[i], &c->args[i], err));
    *out = c;
    return FZ_OK;
}

/* A key is an expression, the ordinal of an item, or (where no column has that name) an item's alias. */
static const sql_expr *key_source(sql_bind *b, const sql_query *q, const sql_expr *e, fz_error *err) {
    if (e->kind == SQL_X_NUMBER) {
        int64_t n;
        if (fz_parse_i64((fz_sv){e->text, e->text_len}, &n) && n >= 1 && n <= q->n_items && q->items[n - 1].expr->kind != SQL_X_STAR) return q->items[n - 1].expr;
        fz_fail(err, FZ_USER, "sql.ordinal", "GROUP BY %.*s: there are %u columns", (int)e->text_len, e->text, q->n_items);
        fz_at(err, e->pos.line, e->pos.column);
        return NULL;
    }
    if (e->kind == SQL_X_COLUMN && e->col.n == 1 && (!b->scope || col_schema_find(b->scope->schema, e->col.part[0]) < 0))
        for (uint32_t i = 0; i < q->n_items; i++)
            if (q->items[i].alias && !strcmp(q->items[i].alias, e->col.part[0])) return q->items[i].expr;
    return e;
}

static fz_status bind_keys(sql_bind *b, const sql_query *q, bind_group *g, fz_error *err) {
    g->keys = FZ_ANEWN(b->a, sql_bound *, q->n_group + 1);
    for (uint32_t k = 0; k < q->n_group; k++) {
        const sql_expr *e = key_source(b, q, q->group[k], err);
        if (!e) return FZ_USER;
        sql_bound *x;
        FZ_TRY(bind_expr(b, e, &x, err));
        bool twice = false;
        for (uint32_t j = 0; j < g->n_keys; j++) twice |= bind_same(g->keys[j], x);
        if (!twice) g->keys[g->n_keys++] = x;
    }
    return FZ_OK;
}

static sql_plan *aggregate_node(sql_bind *b, bind_group *g, sql_plan *in) {
    uint32_t n = g->n_keys + g->n_aggs;
    col_field *f = FZ_ANEWN(b->a, col_field, n + 1);
    for (uint32_t k = 0; k < g->n_keys; k++) f[k] = (col_field){g->keys[k]->text, g->keys[k]->type, NULL};
    for (uint32_t k = 0; k < g->n_aggs; k++) f[g->n_keys + k] = (col_field){g->calls[k]->bound.text, g->aggs[k].type, NULL};
    col_schema *s = FZ_ANEW(b->a, col_schema);
    *s = (col_schema){n, f};
    sql_plan *p = bind_plan_node(b->a, SQL_P_AGGREGATE, s, in);
    p->n_exprs = g->n_keys;
    p->exprs = g->keys;
    p->n_aggs = g->n_aggs;
    p->aggs = g->aggs;
    return p;
}

fz_status bind_grouped(sql_bind *b, const sql_query *q, sql_plan *in, sql_plan **out, fz_error *err) {
    bind_group g = {0};
    FZ_TRY(bind_keys(b, q, &g, err));
    bind_select sel = {.group = &g};
    FZ_TRY(bind_items(b, q, &sel, err));
    sql_bound *having = NULL;
    if (q->having) {
        b->aggregates = true;
        fz_status s = bind_bool(b, q->having, "HAVING", &having, err);
        b->aggregates = false;
        if (s != FZ_OK) return s;
        FZ_TRY(bind_over_groups(b, &g, having, &having, err));
    }
    FZ_TRY(bind_order_keys(b, q, &sel, err));
    sel.in = aggregate_node(b, &g, in);
    if (having) {
        sql_plan *f = bind_plan_node(b->a, SQL_P_FILTER, sel.in->schema, sel.in);
        f->predicate = having;
        sel.in = f;
    }
    *out = bind_select_build(b, q, &sel);
    return FZ_OK;
}
