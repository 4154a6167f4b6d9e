/* Running a program over a batch: filter, project, reject. See exec.h. */
#include "exec/prog_int.h"

static uint32_t *all_rows(fz_arena *a, uint32_t n) {
    uint32_t *v = fz_arena_alloc(a, n * sizeof *v);
    for (uint32_t i = 0; i < n; i++) v[i] = i;
    return v;
}

static void reject(fz_rejects *r, uint32_t row, const ex_error_row *e) {
    FZ_GROW(r->v, r->n, r->cap);
    r->v[r->n++] = (fz_reject){.rec = row, .code = e->code, .message = e->message, .expr = e->expr};
}

/* Rows of f without those in errors; the errors become rejects. `base`: rows of f in the batch, NULL: the same. */
static uint32_t drop_failed(const ex_errors *x, const uint32_t *base, uint32_t n, uint32_t *keep, fz_rejects *rejects) {
    uint32_t m = 0, j = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (j < x->n && x->v[j].row == i) {
            reject(rejects, base ? base[i] : i, &x->v[j]);
            j++;
        } else keep[m++] = i;
    }
    return m;
}

/* Filters: the rows that are TRUE in all of them (NULL: all rows). */
static uint32_t *filter(ex_eval *e, uint32_t n_rows, uint32_t *n_out, ex_result *out, fz_rejects *rejects) {
    *n_out = n_rows;
    ex_truth t = ex_conjunction(e, &e->root, e->p->filters, e->p->n_filters);
    if (!t.t && !t.errors) return NULL;
    uint32_t *sel = fz_arena_alloc(e->a, (n_rows + 1) * sizeof *sel), n = 0, failed = 0;
    if (!t.errors) {
        for (uint32_t i = 0; i < n_rows; i++) {
            sel[n] = i;
            n += t.t[i] == EX_TRUE;
        }
    } else {
        for (uint32_t i = 0; i < n_rows; i++) {
            if (failed < t.errors->n && t.errors->v[failed].row == i) reject(rejects, i, &t.errors->v[failed++]);
            else if (!t.t || t.t[i] == EX_TRUE) sel[n++] = i;
        }
    }
    out->n_filtered = n_rows - n - failed;
    out->n_rejected = failed;
    *n_out = n;
    return n == n_rows ? NULL : sel;
}

static col_vec *output(ex_eval *e, ex_frame *f, uint32_t node) {
    ex_val *x = ex_get(e, f, node);
    if (e->node_dom[node] == EX_CONST) return col_vec_const(e->a, x->v, 0, f->n);
    const col_type *t = e->p->nodes[node].type;
    if (x->v->type == t) return x->v;
    col_vec *v = FZ_ANEW(e->a, col_vec);
    *v = *x->v;
    v->type = t;
    return v;
}
static ex_errors *output_errors(ex_eval *e, ex_frame *f) {
    ex_errors *all = NULL;
    for (uint32_t k = 0; k < e->p->n_outputs; k++) {
        uint32_t node = e->p->outputs[k];
        ex_errors *x = ex_get(e, f, node)->errors;
        if (x && e->node_dom[node] == EX_CONST) x = ex_errors_spread(e, x, FZ_ANEWN(e->a, uint32_t, f->n + 1), f->n);
        all = ex_errors_union(e, all, x);
    }
    return all;
}

fz_status ex_run(const ex_program *p, ex_state *st, col_vec *const *in, uint32_t n_rows, fz_arena *a, ex_result *out, fz_rejects *rejects, fz_error *err) {
    (void)err;
    *out = (ex_result){.cols = FZ_ANEWN(a, col_vec *, p->n_outputs + 1)};
    ex_eval e;
    ex_eval_open(&e, p, st, in, n_rows, a);
    uint32_t n, *rows = filter(&e, n_rows, &n, out, rejects);
    ex_frame *f = rows ? ex_child(&e, &e.root, rows, n) : &e.root;
    ex_errors *failed = n ? output_errors(&e, f) : NULL;
    if (failed) {
        uint32_t *keep = fz_arena_alloc(a, (n + 1) * sizeof *keep), m = drop_failed(failed, rows, n, keep, rejects);
        out->n_rejected += failed->n;
        uint32_t *own = fz_arena_alloc(a, (m + 1) * sizeof *own);
        for (uint32_t i = 0; i < m; i++) own[i] = rows ? rows[keep[i]] : keep[i];
        f = ex_child(&e, f, keep, m);
        rows = own;
        n = m;
    }
    for (uint32_t k = 0; k < p->n_outputs; k++) out->cols[k] = output(&e, f, p->outputs[k]);
    out->n_rows = n;
    out->row = rows ? rows : all_rows(a, n_rows);
    return FZ_OK;
}
