/* Projection push-down: which columns of a scan anything above it uses. */
#include "sql/bind_int.h"

static void mark_expr(const sql_bound *e, bool *need) {
    if (!e) return;
    if (e->kind == SQL_B_COLUMN) need[e->column] = true;
    for (uint32_t i = 0; i < e->n_args; i++) mark_expr(e->args[i], need);
}

static void mark(fz_arena *a, sql_plan *p, const bool *need) {
    if (p->kind == SQL_P_SCAN) {
        for (uint32_t k = 0; k < p->schema->n; k++) p->wanted[k] |= need[k];
        return;
    }
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        sql_plan *in = p->inputs[i];
        bool *below = FZ_ANEWN(a, bool, in->schema->n + 1);
        bool through = p->kind == SQL_P_FILTER || p->kind == SQL_P_SORT || p->kind == SQL_P_LIMIT || p->kind == SQL_P_UNION;
        for (uint32_t k = 0; through && k < in->schema->n; k++) below[k] = need[k];
        mark_expr(p->predicate, below);
        for (uint32_t k = 0; k < p->n_exprs; k++)
            if (p->kind != SQL_P_PROJECT || need[k]) mark_expr(p->exprs[k], below);
        for (uint32_t k = 0; k < p->n_aggs; k++) {
            mark_expr(p->aggs[k].arg, below);
            mark_expr(p->aggs[k].filter, below);
        }
        mark(a, in, below);
    }
}

void plan_mark_wanted(fz_arena *a, sql_plan *root) {
    bool *all = FZ_ANEWN(a, bool, root->schema->n + 1);
    memset(all, 1, root->schema->n);
    mark(a, root, all);
}
