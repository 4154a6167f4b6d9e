/* Bounded queries: building operators from a plan; scans, VALUES, filters and projections, LIMIT, UNION ALL. See query_int.h. */
#include "exec/query_int.h"

/* ---- programs ------------------------------------------------------------------------------------------------------------------ */

ex_exprs ex_exprs_new(ex_query *q, const sql_plan *input, sql_bound *const *e, uint32_t n) {
    ex_exprs x = {.p = ex_program_new(q->settings)};
    x.p->scan = input;
    for (uint32_t k = 0; k < n; k++)
        if (e[k]) ex_add_output(x.p, ex_add_expr(x.p, e[k], NULL));
    ex_program_seal(x.p);
    x.st = ex_state_new(x.p);
    return x;
}
void ex_exprs_free(ex_exprs *x) {
    ex_state_free(x->st);
    ex_program_free(x->p);
}
/* Counts rejects, or makes the first one the query's error. */
static fz_status take_rejects(ex_query *q, fz_rejects *r, fz_error *err) {
    fz_status s = FZ_OK;
    if (r->n && !q->skip_bad_rows) {
        s = fz_fail(err, FZ_DATA, r->v[0].code, "%s", r->v[0].message);
        if (r->v[0].expr) fz_detail(err, "in %s", r->v[0].expr);
    }
    q->skipped += r->n;
    fz_free(r->v);
    return s;
}
fz_status ex_exprs_run(ex_query *q, ex_exprs *x, col_batch *b, ex_result *out, fz_error *err) {
    fz_rejects r = {0};
    FZ_TRY(ex_run(x->p, x->st, b->cols, b->n_rows, b->arena, out, &r, err));
    return take_rejects(q, &r, err);
}

static fz_status chain_next(ex_op *op, col_batch **out, fz_error *err) {
    ex_exprs *x = op->cx;
    for (;;) {
        FZ_TRY(op->inputs[0]->next(op->inputs[0], out, err));
        col_batch *b = *out;
        if (!b) return FZ_OK;
        ex_result r;
        fz_status s = ex_exprs_run(op->q, x, b, &r, err);
        if (s == FZ_OK && r.n_rows) {
            b->cols = r.cols;
            b->n_cols = op->plan->schema->n;
            b->n_rows = r.n_rows;
            b->schema = op->plan->schema;
            return FZ_OK;
        }
        col_batch_release(b);
        *out = NULL;
        if (s != FZ_OK) return s;
    }
}
static void chain_close(ex_op *op) { ex_exprs_free(op->cx); }

/* ---- sources ------------------------------------------------------------------------------------------------------------------- */

static fz_status scan_next(ex_op *op, col_batch **out, fz_error *err) {
    *out = NULL;
    col_batch *b = col_batch_new(op->plan->schema, 0);
    uint32_t n = 0;
    fz_status s = op->q->feed.next(op->q->feed.cx, op->plan, b->arena, &b->cols, &n, err);
    if (s != FZ_OK || !n) {
        col_batch_release(b);
        return s;
    }
    b->n_rows = n;
    *out = b;
    return FZ_OK;
}

/* Each row of VALUES is a program of its own, so that a row that fails is a row that is skipped. */
static fz_status values_row(ex_op *op, uint32_t r, col_builder **cols, bool *good, fz_error *err) {
    uint32_t n = op->plan->schema->n;
    ex_exprs x = ex_exprs_new(op->q, NULL, op->plan->values + (size_t)r * n, n);
    fz_arena *a = fz_arena_new();
    fz_rejects bad = {0};
    ex_result res;
    fz_status s = ex_run(x.p, x.st, NULL, 1, a, &res, &bad, err);
    *good = s == FZ_OK && res.n_rows == 1;
    for (uint32_t c = 0; *good && c < n; c++) {
        if (col_is_null(res.cols[c], 0)) col_add_null(cols[c]);
        else col_add_from(cols[c], res.cols[c], 0);
    }
    fz_status t = take_rejects(op->q, &bad, err);
    ex_exprs_free(&x);
    fz_arena_free(a);
    return s != FZ_OK ? s : t;
}
static fz_status values_next(ex_op *op, col_batch **out, fz_error *err) {
    uint32_t *at = op->cx, n = op->plan->schema->n, rows = 0;
    *out = NULL;
    if (*at >= op->plan->n_rows) return FZ_OK;
    col_batch *b = col_batch_new(op->plan->schema, 0);
    col_builder **cols = FZ_ANEWN(b->arena, col_builder *, n + 1);
    for (uint32_t c = 0; c < n; c++) cols[c] = col_builder_new(b->arena, op->plan->schema->fields[c].type);
    fz_status s = FZ_OK;
    for (; s == FZ_OK && *at < op->plan->n_rows && rows < FZ_BATCH_ROWS; ++*at) {
        bool good;
        s = values_row(op, *at, cols, &good, err);
        rows += good;
    }
    if (s != FZ_OK || !rows) {
        col_batch_release(b);
        return s == FZ_OK && *at < op->plan->n_rows ? values_next(op, out, err) : s;
    }
    for (uint32_t c = 0; c < n; c++) b->cols[c] = col_builder_finish(cols[c]);
    b->n_rows = rows;
    *out = b;
    return FZ_OK;
}

/* ---- LIMIT, UNION ALL ---------------------------------------------------------------------------------------------------------- */

typedef struct limit_state { int64_t skip, left; } limit_state;

static fz_status limit_next(ex_op *op, col_batch **out, fz_error *err) {
    limit_state *l = op->cx;
    *out = NULL;
    while (l->left != 0) {
        FZ_TRY(op->inputs[0]->next(op->inputs[0], out, err));
        col_batch *b = *out;
        if (!b) return FZ_OK;
        if (l->skip >= b->n_rows) {
            l->skip -= b->n_rows;
            col_batch_release(b);
            *out = NULL;
            continue;
        }
        uint32_t from = (uint32_t)l->skip, n = b->n_rows - from;
        l->skip = 0;
        if (l->left >= 0 && n > l->left) n = (uint32_t)l->left;
        if (l->left >= 0) l->left -= n;
        if (n != b->n_rows) {
            uint32_t *sel = fz_arena_alloc(b->arena, n * sizeof *sel);
            for (uint32_t i = 0; i < n; i++) sel[i] = from + i;
            for (uint32_t c = 0; c < b->n_cols; c++) b->cols[c] = col_select(b->arena, b->cols[c], sel, n);
            b->n_rows = n;
        }
        return FZ_OK;
    }
    return FZ_OK;
}
static fz_status union_next(ex_op *op, col_batch **out, fz_error *err) {
    uint32_t *at = op->cx;
    *out = NULL;
    for (; *at < op->n_inputs; ++*at) {
        FZ_TRY(op->inputs[*at]->next(op->inputs[*at], out, err));
        if (*out) return FZ_OK;
    }
    return FZ_OK;
}

/* ---- building ------------------------------------------------------------------------------------------------------------------ */

static ex_op *new_op(ex_query *q, const sql_plan *p);

static void add_inputs(ex_op *op, const sql_plan *const *in, uint32_t n) {
    op->inputs = FZ_ANEWN(op->q->a, ex_op *, n + 1);
    for (uint32_t i = 0; i < n; i++) op->inputs[i] = new_op(op->q, in[i]);
    op->n_inputs = n;
}

/* A sort below a LIMIT (perhaps under a projection that drops its keys) need not keep all rows. */
static void hint_sort(ex_op *limit) {
    const sql_plan *p = limit->plan;
    ex_op *op = limit->inputs[0];
    if (p->limit < 0 || p->limit > INT32_MAX || p->offset > INT32_MAX) return;
    if (op->plan->kind == SQL_P_PROJECT && op->inputs[0]->plan == op->plan->inputs[0]) op = op->inputs[0];
    if (op->plan->kind == SQL_P_SORT) op->top = p->limit + p->offset;
}

/* Filters and projections one above the other are one program. */
static void open_chain(ex_op *op) {
    ex_exprs *x = FZ_ANEW(op->q->a, ex_exprs);
    x->p = ex_program_new(op->q->settings);
    uint32_t *cols = ex_compile_chain(x->p, op->plan);
    for (uint32_t k = 0; k < op->plan->schema->n; k++) ex_add_output(x->p, cols[k]);
    ex_program_seal(x->p);
    x->st = ex_state_new(x->p);
    op->cx = x;
    op->next = chain_next;
    op->close = chain_close;
    add_inputs(op, &x->p->scan, 1);
}

static ex_op *new_op(ex_query *q, const sql_plan *p) {
    ex_op *op = FZ_ANEW(q->a, ex_op);
    op->q = q;
    op->plan = p;
    op->top = -1;
    if (p->kind == SQL_P_FILTER || p->kind == SQL_P_PROJECT) {
        open_chain(op);
        return op;
    }
    add_inputs(op, (const sql_plan *const *)p->inputs, p->n_inputs);
    switch (p->kind) {
    case SQL_P_SCAN: op->next = scan_next; break;
    case SQL_P_VALUES:
        op->cx = FZ_ANEW(q->a, uint32_t);
        op->next = values_next;
        break;
    case SQL_P_AGGREGATE: ex_aggregate_open(op); break;
    case SQL_P_SORT: ex_sort_open(op); break;
    case SQL_P_LIMIT: {
        limit_state *l = FZ_ANEW(q->a, limit_state);
        *l = (limit_state){p->offset, p->limit};
        op->cx = l;
        op->next = limit_next;
        hint_sort(op);
        break;
    }
    default:
        op->cx = FZ_ANEW(q->a, uint32_t);
        op->next = union_next;
    }
    return op;
}

static void close_op(ex_op *op) {
    for (uint32_t i = 0; i < op->n_inputs; i++) close_op(op->inputs[i]);
    if (op->close) op->close(op);
}

fz_status ex_query_open(const sql_plan *p, const sql_settings *s, const ex_feed *feed, bool skip_bad_rows, ex_query **out, fz_error *err) {
    (void)err;
    fz_arena *a = fz_arena_new();
    ex_query *q = FZ_ANEW(a, ex_query);
    q->a = a;
    sql_settings *own = FZ_ANEW(a, sql_settings);
    if (s) *own = *s;
    own->time_zone = fz_arena_strdup(a, s && s->time_zone ? s->time_zone : "UTC");
    q->settings = own;
    if (feed) q->feed = *feed;
    q->skip_bad_rows = skip_bad_rows;
    q->root = new_op(q, p);
    *out = q;
    return FZ_OK;
}
fz_status ex_query_next(ex_query *q, col_batch **out, fz_error *err) {
    *out = NULL;
    return q->root->next(q->root, out, err);
}
uint64_t ex_query_skipped(const ex_query *q) { return q->skipped; }
void ex_query_close(ex_query *q) {
    if (!q) return;
    close_op(q->root);
    fz_arena_free(q->a);
}
