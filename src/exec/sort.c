/* ORDER BY: all rows are kept until the input ends; below a LIMIT only the first ones are, plus what came since the last cut. */
#include "exec/query_int.h"
#include <stdlib.h>

enum { CUT_ROWS = 4 * FZ_BATCH_ROWS }; /* rows that may gather before a cut */

typedef struct sort_row { uint32_t batch, row, key; /* key: row of the keys' columns */ uint64_t number; } sort_row;
typedef struct sort_batch { col_batch *b; col_vec **keys; } sort_batch;
typedef struct sort_state {
    const sql_plan *plan;
    ex_exprs keys;
    sort_batch *batches;
    uint32_t n_batches, cap_batches;
    sort_row *rows;
    size_t n_rows, cap_rows, at;
    uint64_t number; /* rows seen */
    bool sorted;
} sort_state;

static int compare_rows(const void *x, const void *y, void *cx) {
    const sort_row *a = x, *b = y;
    const sort_state *s = cx;
    for (uint32_t k = 0; k < s->plan->n_exprs; k++) {
        const col_vec *va = s->batches[a->batch].keys[k], *vb = s->batches[b->batch].keys[k];
        bool na = col_is_null(va, a->key), nb = col_is_null(vb, b->key);
        if (na && nb) continue;
        if (na != nb) return (na == s->plan->nulls_first[k]) ? -1 : 1;
        int c = col_compare(va, a->key, vb, b->key);
        if (c) return s->plan->desc[k] ? -c : c;
    }
    return a->number < b->number ? -1 : a->number > b->number; /* equal keys stay in the order they came in */
}

static void add_batch(sort_state *s, col_batch *b, const ex_result *keys) {
    FZ_GROW(s->batches, s->n_batches, s->cap_batches);
    s->batches[s->n_batches] = (sort_batch){b, keys->cols};
    for (uint32_t i = 0; i < keys->n_rows; i++) {
        FZ_GROW(s->rows, s->n_rows, s->cap_rows);
        s->rows[s->n_rows++] = (sort_row){s->n_batches, keys->row[i], i, s->number++};
    }
    s->n_batches++;
}

/* Rows from..from+n in order, as a batch of their own. */
static col_batch *copy_rows(const sort_state *s, size_t from, uint32_t n) {
    col_batch *b = col_batch_new(s->plan->schema, n);
    for (uint32_t c = 0; c < b->n_cols; c++) {
        col_builder *v = col_builder_new(b->arena, s->plan->schema->fields[c].type);
        for (uint32_t i = 0; i < n; i++) {
            const sort_row *r = &s->rows[from + i];
            const col_vec *x = s->batches[r->batch].b->cols[c];
            if (col_is_null(x, r->row)) col_add_null(v);
            else col_add_from(v, x, r->row);
        }
        b->cols[c] = col_builder_finish(v);
    }
    return b;
}

static fz_status take_batch(ex_op *op, sort_state *s, col_batch *b, fz_error *err) {
    ex_result keys;
    fz_status st = ex_exprs_run(op->q, &s->keys, b, &keys, err);
    if (st != FZ_OK) col_batch_release(b);
    else add_batch(s, b, &keys);
    return st;
}
static void sort_rows(sort_state *s) {
    if (s->n_rows) qsort_r(s->rows, s->n_rows, sizeof *s->rows, compare_rows, s);
}
static void drop_batches(sort_state *s) {
    for (uint32_t i = 0; i < s->n_batches; i++) col_batch_release(s->batches[i].b);
    s->n_batches = 0;
    s->n_rows = 0;
}
/* Keeps the first `top` rows. */
static fz_status cut(ex_op *op, sort_state *s, fz_error *err) {
    sort_rows(s);
    col_batch *first = copy_rows(s, 0, (uint32_t)op->top);
    drop_batches(s);
    return take_batch(op, s, first, err);
}

static fz_status fill(ex_op *op, sort_state *s, fz_error *err) {
    for (;;) {
        col_batch *b;
        FZ_TRY(op->inputs[0]->next(op->inputs[0], &b, err));
        if (!b) break;
        FZ_TRY(take_batch(op, s, b, err));
        if (op->top > 0 && op->top <= CUT_ROWS / 2 && s->n_rows > CUT_ROWS) FZ_TRY(cut(op, s, err));
    }
    sort_rows(s);
    s->sorted = true;
    return FZ_OK;
}

static fz_status sort_next(ex_op *op, col_batch **out, fz_error *err) {
    sort_state *s = op->cx;
    *out = NULL;
    if (!s->sorted) FZ_TRY(fill(op, s, err));
    if (s->at == s->n_rows) return FZ_OK;
    size_t left = s->n_rows - s->at;
    uint32_t n = left < FZ_BATCH_ROWS ? (uint32_t)left : FZ_BATCH_ROWS;
    *out = copy_rows(s, s->at, n);
    s->at += n;
    return FZ_OK;
}

static void sort_close(ex_op *op) {
    sort_state *s = op->cx;
    drop_batches(s);
    fz_free(s->batches);
    fz_free(s->rows);
    ex_exprs_free(&s->keys);
}

void ex_sort_open(ex_op *op) {
    sort_state *s = FZ_ANEW(op->q->a, sort_state);
    s->plan = op->plan;
    s->keys = ex_exprs_new(op->q, op->plan->inputs[0], op->plan->exprs, op->plan->n_exprs);
    op->cx = s;
    op->next = sort_next;
    op->close = sort_close;
}
