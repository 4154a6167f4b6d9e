/* Kernels of arrays, maps and rows. */
#include "exec/exec_int.h"

static void add(col_builder *b, const ex_call *c, uint32_t k, uint32_t i) {
    if (ex_is_null(c, k, i)) col_add_null(b);
    else col_add_from(b, c->arg[k], ex_ix(c, k, i));
}
static void k_array(ex_call *c) {
    col_builder *b = col_builder_new(c->a, c->type);
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t k = 0; k < c->n_args; k++) add(col_builder_child(b, 0), c, k, i);
        col_add_nested(b);
    }
    c->out = col_builder_finish(b);
}
/* A later pair with the same key takes the earlier one's place. */
static void k_map(ex_call *c) {
    col_builder *b = col_builder_new(c->a, c->type);
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t k = 0; k < c->n_args; k += 2) {
            bool again = false;
            for (uint32_t j = k + 2; j < c->n_args && !again; j += 2) {
                bool nk = ex_is_null(c, k, i), nj = ex_is_null(c, j, i);
                again = nk || nj ? nk && nj : col_equal(c->arg[k], ex_ix(c, k, i), c->arg[j], ex_ix(c, j, i));
            }
            if (again) continue;
            add(col_builder_child(b, 0), c, k, i);
            add(col_builder_child(b, 1), c, k + 1, i);
        }
        col_add_nested(b);
    }
    c->out = col_builder_finish(b);
}
static void k_row(ex_call *c) {
    col_builder *b = col_builder_new(c->a, c->type);
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t k = 0; k < c->n_args; k++) add(col_builder_child(b, k), c, k, i);
        col_add_nested(b);
    }
    c->out = col_builder_finish(b);
}

/* Element of an array (from 1) or a map's value; -1: there is none. */
static int64_t find_item(ex_call *c, uint32_t i) {
    const col_vec *v = c->arg[0];
    uint32_t r = ex_ix(c, 0, i);
    if (v->type->kind == COL_MAP) {
        for (uint32_t k = v->off[r]; k < v->off[r + 1]; k++)
            if (!col_is_null(v->child[0], k) && col_equal(v->child[0], k, c->arg[1], ex_ix(c, 1, i))) return k;
        return -1;
    }
    int64_t at = ex_i64(c, 1, i);
    if (at < 1) {
        ex_fail_row(c, i, "array.index", "array indexes begin at 1, not %lld", (long long)at);
        return -2;
    }
    return at <= v->off[r + 1] - v->off[r] ? v->off[r] + at - 1 : -1;
}
static void k_item(ex_call *c) {
    const col_vec *values = c->arg[0]->child[c->arg[0]->type->kind == COL_MAP];
    col_builder *b = col_builder_new(c->a, c->type);
    c->out = col_vec_nulls(c->a, col_simple(COL_BOOLEAN, true), c->n); /* takes the marks of failed rows */
    const col_type *t = c->type;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t k = ex_is_null(c, 0, i) || ex_is_null(c, 1, i) ? -1 : find_item(c, i);
        if (k < 0 || col_is_null(values, (uint32_t)k)) col_add_null(b);
        else col_add_from(b, values, (uint32_t)k);
    }
    c->out = col_builder_finish(b);
    c->out->type = t;
}
/* (row, number of the field): the child itself; it is NULL where the row is. */
static void k_field(ex_call *c) {
    const col_vec *v = c->arg[0], *f = v->child[ex_int(c, 1, 0)];
    col_vec *o = FZ_ANEW(c->a, col_vec);
    *o = *f;
    if (v->valid) {
        o->valid = fz_arena_alloc(c->a, v->len);
        for (uint32_t i = 0; i < v->len; i++) o->valid[i] = v->valid[i] && (!f->valid || f->valid[i]);
    }
    if (o->idx) o = col_flat(c->a, o);
    if (o == f) {
        o = FZ_ANEW(c->a, col_vec);
        *o = *f;
    }
    o->type = c->type;
    c->out = o;
}

const ex_kernel_entry ex_kernels_nested[] = {
    {SQL_K_ARRAY, k_array}, {SQL_K_MAP, k_map}, {SQL_K_ROW, k_row}, {SQL_K_ITEM, k_item}, {SQL_K_FIELD, k_field}, {SQL_K_NONE, NULL},
};
