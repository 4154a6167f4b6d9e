/* Select lists, ORDER BY, LIMIT. */
#include "sql/bind_int.h"

static fz_status fail_at(fz_error *err, sql_pos pos, const char *code, const char *message) {
    fz_fail(err, FZ_USER, code, "%s", message);
    return fz_at(err, pos.line, pos.column);
}

sql_plan *bind_project(sql_bind *b, sql_plan *in, uint32_t n, sql_bound **exprs, const char *const *names) {
    col_field *f = FZ_ANEWN(b->a, col_field, n + 1);
    bool same = n == in->schema->n;
    for (uint32_t k = 0; k < n; k++) {
        f[k] = (col_field){names[k], exprs[k]->type, NULL};
        same = same && exprs[k]->kind == SQL_B_COLUMN && exprs[k]->column == k && !strcmp(names[k], in->schema->fields[k].name);
    }
    if (same) return in;
    col_schema *s = FZ_ANEW(b->a, col_schema);
    *s = (col_schema){n, f};
    sql_plan *p = bind_plan_node(b->a, SQL_P_PROJECT, s, in);
    p->n_exprs = n;
    p->exprs = exprs;
    return p;
}

static void add_item(sql_bind *b, bind_select *sel, sql_bound *e, const char *name) {
    if (sel->n == sel->cap) {
        uint32_t cap = sel->cap ? sel->cap * 2 : 16;
        sel->expr = fz_arena_realloc(b->a, sel->expr, sel->cap * sizeof *sel->expr, cap * sizeof *sel->expr);
        sel->name = fz_arena_realloc(b->a, sel->name, sel->cap * sizeof *sel->name, cap * sizeof *sel->name);
        sel->cap = cap;
    }
    sel->expr[sel->n] = e;
    sel->name[sel->n++] = name;
}

static bool star_matches(const sql_bind *b, const sql_name *q) {
    if (!q->n) return true;
    const char *last = q->part[q->n - 1];
    if (b->scope->alias) return !strcmp(b->scope->alias, last);
    return b->scope->table && !strcmp(b->scope->table->part[b->scope->table->n - 1], last);
}

static fz_status expand_star(sql_bind *b, const sql_expr *e, bind_select *sel, fz_error *err) {
    if (!b->scope || !b->scope->schema->n) return fail_at(err, e->pos, "sql.syntax", "* needs a FROM clause");
    if (!star_matches(b, &e->col)) return fail_at(err, e->pos, "sql.table-not-found", fz_arena_printf(b->a, "'%s' is not in FROM", e->col.part[e->col.n - 1]));
    for (uint32_t k = 0; k < b->scope->schema->n; k++) {
        sql_bound *c = bind_column_ref(b, b->scope->schema, k, e->pos);
        if (sel->group) FZ_TRY(bind_over_groups(b, sel->group, c, &c, err));
        add_item(b, sel, c, b->scope->schema->fields[k].name);
    }
    return FZ_OK;
}

/* Binds over the scope and, with groups, over the aggregate node. */
static fz_status bind_item(sql_bind *b, bind_select *sel, const sql_expr *e, sql_bound **out, fz_error *err) {
    b->aggregates = sel->group != NULL;
    fz_status s = bind_expr(b, e, out, err);
    b->aggregates = false;
    if (s == FZ_OK && sel->group) s = bind_over_groups(b, sel->group, *out, out, err);
    return s;
}

fz_status bind_items(sql_bind *b, const sql_query *q, bind_select *sel, fz_error *err) {
    for (uint32_t i = 0; i < q->n_items; i++) {
        const sql_expr *e = q->items[i].expr;
        if (e->kind == SQL_X_STAR) {
            FZ_TRY(expand_star(b, e, sel, err));
            continue;
        }
        sql_bound *x;
        FZ_TRY(bind_item(b, sel, e, &x, err));
        const char *name = q->items[i].alias;
        if (!name) name = e->kind == SQL_X_COLUMN ? e->col.part[e->col.n - 1] : fz_arena_printf(b->a, "EXPR$%u", sel->n);
        add_item(b, sel, x, name);
    }
    return FZ_OK;
}

/* An ordinal, an output name, an item written again, or (not with DISTINCT) another expression. */
static fz_status order_key(sql_bind *b, const sql_query *q, bind_select *sel, const sql_expr *e, int32_t *item, sql_bound **expr, fz_error *err) {
    *item = -1;
    if (e->kind == SQL_X_NUMBER) {
        int64_t n;
        if (!fz_parse_i64((fz_sv){e->text, e->text_len}, &n) || n < 1 || n > sel->n)
            return fail_at(err, e->pos, "sql.ordinal", fz_arena_printf(b->a, "ORDER BY %.*s: there are %u columns", (int)e->text_len, e->text, sel->n));
        *item = (int32_t)n - 1;
        return FZ_OK;
    }
    if (e->kind == SQL_X_COLUMN && e->col.n == 1)
        for (uint32_t k = 0; k < sel->n && *item < 0; k++)
            if (!strcmp(sel->name[k], e->col.part[0])) *item = (int32_t)k;
    if (*item >= 0) return FZ_OK;
    FZ_TRY(bind_item(b, sel, e, expr, err));
    for (uint32_t k = 0; k < sel->n && *item < 0; k++)
        if (bind_same(sel->expr[k], *expr)) *item = (int32_t)k;
    if (*item < 0 && q->distinct) return fail_at(err, e->pos, "sql.order-by", "with SELECT DISTINCT, ORDER BY takes selected columns only");
    return FZ_OK;
}

fz_status bind_order_keys(sql_bind *b, const sql_query *q, bind_select *sel, fz_error *err) {
    uint32_t n = sel->n_keys = q->n_order;
    sel->key_item = FZ_ANEWN(b->a, int32_t, n + 1);
    sel->key_expr = FZ_ANEWN(b->a, sql_bound *, n + 1);
    sel->desc = FZ_ANEWN(b->a, bool, n + 1);
    sel->nulls_first = FZ_ANEWN(b->a, bool, n + 1);
    for (uint32_t k = 0; k < n; k++) {
        const sql_order *o = &q->order[k];
        sel->desc[k] = o->desc;
        sel->nulls_first[k] = o->nulls_first < 0 ? !o->desc : o->nulls_first != 0; /* Flink: NULL is the least value */
        FZ_TRY(order_key(b, q, sel, o->expr, &sel->key_item[k], &sel->key_expr[k], err));
        const col_type *t = sel->key_item[k] >= 0 ? sel->expr[sel->key_item[k]]->type : sel->key_expr[k]->type;
        if (t->kind == COL_MAP) return fail_at(err, o->expr->pos, "sql.type-mismatch", "maps have no order");
    }
    return FZ_OK;
}

static sql_plan *distinct(sql_bind *b, sql_plan *in) {
    sql_plan *p = bind_plan_node(b->a, SQL_P_AGGREGATE, in->schema, in);
    p->n_exprs = in->schema->n;
    p->exprs = FZ_ANEWN(b->a, sql_bound *, p->n_exprs + 1);
    for (uint32_t k = 0; k < p->n_exprs; k++) p->exprs[k] = bind_column_ref(b, in->schema, k, (sql_pos){0, 0});
    return p;
}

sql_plan *bind_select_build(sql_bind *b, const sql_query *q, bind_select *sel) {
    uint32_t n = sel->n, *at = FZ_ANEWN(b->a, uint32_t, sel->n_keys + 1);
    for (uint32_t k = 0; k < sel->n_keys; k++) {
        at[k] = sel->key_item[k] >= 0 ? (uint32_t)sel->key_item[k] : sel->n;
        if (sel->key_item[k] < 0) add_item(b, sel, sel->key_expr[k], fz_arena_printf(b->a, "$key%u", k));
    }
    sql_plan *p = bind_project(b, sel->in, sel->n, sel->expr, sel->name);
    if (q->distinct) p = distinct(b, p);
    if (!sel->n_keys) return p;
    sql_plan *sort = bind_plan_node(b->a, SQL_P_SORT, p->schema, p);
    sort->n_exprs = sel->n_keys;
    sort->exprs = FZ_ANEWN(b->a, sql_bound *, sel->n_keys);
    for (uint32_t k = 0; k < sel->n_keys; k++) sort->exprs[k] = bind_column_ref(b, p->schema, at[k], (sql_pos){0, 0});
    sort->desc = sel->desc;
    sort->nulls_first = sel->nulls_first;
    if (n == sel->n) return sort;
    sql_bound **keep = FZ_ANEWN(b->a, sql_bound *, n + 1);
    for (uint32_t k = 0; k < n; k++) keep[k] = bind_column_ref(b, sort->schema, k, (sql_pos){0, 0});
    return bind_project(b, sort, n, keep, sel->name);
}

static fz_status row_count(sql_bind *b, const sql_expr *e, const char *what, int64_t dflt, int64_t *out, fz_error *err) {
    *out = dflt;
    if (!e) return FZ_OK;
    sql_bound *x;
    FZ_TRY(bind_expr(b, e, &x, err));
    if (bind_int_value(x, out) && *out >= 0) return FZ_OK;
    return fail_at(err, e->pos, "sql.limit", fz_arena_printf(b->a, "%s needs a whole number", what));
}
fz_status bind_limit(sql_bind *b, const sql_query *q, sql_plan *in, sql_plan **out, fz_error *err) {
    *out = in;
    if (!q->limit && !q->offset) return FZ_OK;
    sql_bind plain = *b;
    plain.scope = NULL;
    sql_plan *p = bind_plan_node(b->a, SQL_P_LIMIT, in->schema, in);
    FZ_TRY(row_count(&plain, q->limit, "LIMIT", -1, &p->limit, err));
    FZ_TRY(row_count(&plain, q->offset, "OFFSET", 0, &p->offset, err));
    *out = p;
    return FZ_OK;
}
