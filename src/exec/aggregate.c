/* GROUP BY, aggregates, DISTINCT: a hash table of groups in memory; rows come out in the order in which groups were first seen. */
#include "col/decimal.h"
#include "exec/query_int.h"

/* Byte strings to numbers 0, 1, 2, ... in order of first sight. */
typedef struct key_table {
    fz_buf bytes;
    struct { uint64_t hash; size_t from; uint32_t len; } *key;
    uint32_t n, cap, *slot, size;
} key_table;

typedef struct accumulator {
    int64_t n;            /* rows that counted */
    bool overflow;
    union { int64_t i; double d; col_i128 dec; struct { char *p; uint32_t len, cap; } s; } v;
} accumulator;

typedef struct agg_state {
    const sql_plan *plan;
    ex_exprs exprs;       /* keys, then for each aggregate its argument and its filter where it has them */
    key_table groups;
    col_builder **keys;
    fz_arena *a;          /* of keys */
    accumulator **acc;    /* by aggregate, then group */
    uint32_t *cap_acc;
    key_table *distinct;  /* by aggregate: group number and value */
    bool filled;
    uint32_t at;
    col_vec **key_cols;
} agg_state;

/* ---- keys ---------------------------------------------------------------------------------------------------------------------- */

static void put_value(fz_buf *b, const col_vec *vec, uint32_t row) {
    bool null = col_is_null(vec, row);
    fz_buf_putc(b, !null);
    if (null) return;
    const col_vec *v = col_at(vec, &row);
    unsigned w = col_width(v->type->kind);
    if (w) {
        fz_buf_append(b, (const char *)v->data + (size_t)w * row, w);
    } else if (col_is_varlen(v->type->kind)) {
        fz_sv s = col_sv(v, row);
        fz_buf_append(b, &s.n, sizeof s.n);
        fz_buf_append(b, s.p, s.n);
    } else if (v->type->kind == COL_ROW) {
        for (uint32_t k = 0; k < v->n_child; k++) put_value(b, v->child[k], row);
    } else {
        uint32_t n = v->off[row + 1] - v->off[row];
        fz_buf_append(b, &n, sizeof n);
        for (uint32_t i = v->off[row]; i < v->off[row + 1]; i++)
            for (uint32_t k = 0; k < v->n_child; k++) put_value(b, v->child[k], i);
    }
}

static void grow_table(key_table *t) {
    t->size = t->size ? t->size * 2 : 256;
    fz_free(t->slot);
    t->slot = fz_calloc(t->size, sizeof *t->slot);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t h = (uint32_t)t->key[i].hash & (t->size - 1);
        while (t->slot[h]) h = (h + 1) & (t->size - 1);
        t->slot[h] = i + 1;
    }
}
/* The key is what stands in bytes from `from` on; it stays there if it is new. */
static uint32_t find_key(key_table *t, size_t from, bool *is_new) {
    if (t->n * 2 >= t->size) grow_table(t);
    fz_buf_reserve(&t->bytes, 1);
    uint32_t len = (uint32_t)(t->bytes.len - from);
    uint64_t hash = fz_hash(t->bytes.data + from, len);
    uint32_t h = (uint32_t)hash & (t->size - 1);
    *is_new = false;
    for (; t->slot[h]; h = (h + 1) & (t->size - 1)) {
        uint32_t k = t->slot[h] - 1;
        if (t->key[k].hash != hash || t->key[k].len != len || memcmp(t->bytes.data + t->key[k].from, t->bytes.data + from, len)) continue;
        t->bytes.len = from;
        return k;
    }
    *is_new = true;
    FZ_GROW(t->key, t->n, t->cap);
    t->key[t->n].hash = hash;
    t->key[t->n].from = from;
    t->key[t->n].len = len;
    t->slot[h] = ++t->n;
    return t->n - 1;
}
static void free_table(key_table *t) {
    fz_buf_free(&t->bytes);
    fz_free(t->key);
    fz_free(t->slot);
}

/* ---- accumulating -------------------------------------------------------------------------------------------------------------- */

static void add_number(accumulator *x, const col_vec *v, uint32_t r) {
    const col_vec *f = col_at(v, &r);
    switch (f->type->kind) {
    case COL_DOUBLE: x->v.d += f->f64[r]; return;
    case COL_FLOAT: x->v.d += (double)f->f32[r]; return;
    case COL_DECIMAL:
        if (x->overflow || !dcm_add(x->v.dec, f->type->scale, f->i128[r], f->type->scale, 38, f->type->scale, &x->v.dec)) x->overflow = true;
        return;
    default: x->v.i = (int64_t)((uint64_t)x->v.i + (uint64_t)(col_width(f->type->kind) == 8 ? f->i64[r] : f->i32[r]));
    }
}
static void keep_text(accumulator *x, fz_sv s) {
    if (s.n > x->v.s.cap) {
        x->v.s.cap = (uint32_t)s.n * 2;
        x->v.s.p = fz_realloc(x->v.s.p, x->v.s.cap);
    }
    if (s.n) memcpy(x->v.s.p, s.p, s.n);
    x->v.s.len = (uint32_t)s.n;
}
static int order(int64_t a, int64_t b) { return a < b ? -1 : a > b; }
static void keep_extreme(accumulator *x, const col_vec *v, uint32_t r, int sign) {
    const col_vec *f = col_at(v, &r);
    bool first = x->n == 1;
    switch (f->type->kind) {
    case COL_FLOAT: case COL_DOUBLE: {
        double d = f->type->kind == COL_FLOAT ? (double)f->f32[r] : f->f64[r];
        if (first || (sign > 0 ? d > x->v.d || d != d : d < x->v.d || (x->v.d != x->v.d && d == d))) x->v.d = d;
        return;
    }
    case COL_DECIMAL:
        if (first || (sign > 0 ? f->i128[r] > x->v.dec : f->i128[r] < x->v.dec)) x->v.dec = f->i128[r];
        return;
    case COL_CHAR: case COL_VARCHAR: case COL_BINARY: case COL_VARBINARY: {
        fz_sv s = col_sv(f, r);
        if (first || sign * fz_sv_cmp(s, (fz_sv){x->v.s.p, x->v.s.len}) > 0) keep_text(x, s);
        return;
    }
    default: {
        int64_t i = f->type->kind == COL_BOOLEAN ? f->u8[r] : col_width(f->type->kind) == 8 ? f->i64[r] : f->i32[r];
        if (first || sign * order(i, x->v.i) > 0) x->v.i = i;
    }
    }
}
static void accumulate(accumulator *x, sql_kernel k, const col_vec *v, uint32_t r) {
    if (k == SQL_K_AGG_COUNT_IF && !col_bool(v, r)) return;
    x->n++;
    if (k == SQL_K_AGG_SUM || k == SQL_K_AGG_AVG) add_number(x, v, r);
    else if (k == SQL_K_AGG_MIN) keep_extreme(x, v, r, -1);
    else if (k == SQL_K_AGG_MAX) keep_extreme(x, v, r, 1);
}

static void add_groups(agg_state *s) {
    for (uint32_t k = 0; k < s->plan->n_aggs; k++) {
        uint32_t had = s->cap_acc[k];
        if (s->groups.n <= had) continue;
        FZ_GROW(s->acc[k], s->groups.n, s->cap_acc[k]);
        memset(s->acc[k] + had, 0, (s->cap_acc[k] - had) * sizeof **s->acc);
    }
}
/* Number of the group of each row of a result. */
static void group_rows(agg_state *s, const ex_result *r, uint32_t *group) {
    for (uint32_t i = 0; i < r->n_rows; i++) {
        size_t from = s->groups.bytes.len;
        for (uint32_t k = 0; k < s->plan->n_exprs; k++) put_value(&s->groups.bytes, r->cols[k], i);
        bool is_new;
        group[i] = find_key(&s->groups, from, &is_new);
        for (uint32_t k = 0; is_new && k < s->plan->n_exprs; k++) {
            if (col_is_null(r->cols[k], i)) col_add_null(s->keys[k]);
            else col_add_from(s->keys[k], r->cols[k], i);
        }
    }
    add_groups(s);
}
static bool seen_before(key_table *t, uint32_t group, const col_vec *v, uint32_t r) {
    size_t from = t->bytes.len;
    fz_buf_append(&t->bytes, &group, sizeof group);
    put_value(&t->bytes, v, r);
    bool is_new;
    find_key(t, from, &is_new);
    return !is_new;
}
static void take_batch(agg_state *s, const ex_result *r, fz_arena *a) {
    uint32_t *group = FZ_ANEWN(a, uint32_t, r->n_rows + 1), col = s->plan->n_exprs;
    if (s->plan->n_exprs) group_rows(s, r, group);
    for (uint32_t k = 0; k < s->plan->n_aggs; k++) {
        const sql_agg *g = &s->plan->aggs[k];
        const col_vec *arg = g->arg ? r->cols[col++] : NULL, *filter = g->filter ? r->cols[col++] : NULL;
        for (uint32_t i = 0; i < r->n_rows; i++) {
            if (filter && (col_is_null(filter, i) || !col_bool(filter, i))) continue;
            if (arg && col_is_null(arg, i)) continue;
            if (g->distinct && seen_before(&s->distinct[k], group[i], arg, i)) continue;
            accumulate(&s->acc[k][group[i]], g->fn->kernel, arg, i);
        }
    }
}

static fz_status fill(ex_op *op, agg_state *s, fz_error *err) {
    if (!s->plan->n_exprs) { /* no keys: one group, even of no rows */
        bool is_new;
        find_key(&s->groups, 0, &is_new);
        add_groups(s);
    }
    for (;;) {
        col_batch *b;
        FZ_TRY(op->inputs[0]->next(op->inputs[0], &b, err));
        if (!b) break;
        ex_result r;
        fz_status st = ex_exprs_run(op->q, &s->exprs, b, &r, err);
        if (st == FZ_OK) take_batch(s, &r, b->arena);
        col_batch_release(b);
        if (st != FZ_OK) return st;
    }
    s->key_cols = FZ_ANEWN(s->a, col_vec *, s->plan->n_exprs + 1);
    for (uint32_t k = 0; k < s->plan->n_exprs; k++) s->key_cols[k] = col_builder_finish(s->keys[k]);
    s->filled = true;
    return FZ_OK;
}

/* ---- results ------------------------------------------------------------------------------------------------------------------- */

static void put_average(col_builder *b, const sql_agg *g, const accumulator *x) {
    const col_type *t = g->type;
    col_i128 d;
    if (t->kind == COL_DOUBLE || t->kind == COL_FLOAT) col_add_f64(b, x->v.d / (double)x->n);
    else if (t->kind != COL_DECIMAL) col_add_i64(b, x->v.i / x->n);
    else if (x->overflow || !dcm_div(x->v.dec, g->arg->type->scale, x->n, 0, t->precision, t->scale, &d)) col_add_null(b);
    else col_add_dec(b, d);
}
static int64_t wrap(col_kind k, int64_t v) { return k == COL_TINYINT ? (int8_t)v : k == COL_SMALLINT ? (int16_t)v : k == COL_INT ? (int32_t)v : v; }

static void put_result(col_builder *b, const sql_agg *g, const accumulator *x) {
    sql_kernel k = g->fn->kernel;
    if (k == SQL_K_AGG_COUNT || k == SQL_K_AGG_COUNT_IF) col_add_i64(b, x->n);
    else if (!x->n) col_add_null(b);
    else if (k == SQL_K_AGG_AVG) put_average(b, g, x);
    else switch (g->type->kind) {
        case COL_FLOAT: case COL_DOUBLE: col_add_f64(b, x->v.d); break;
        case COL_DECIMAL:
            if (x->overflow) col_add_null(b);
            else col_add_dec(b, x->v.dec);
            break;
        case COL_CHAR: case COL_VARCHAR: case COL_BINARY: case COL_VARBINARY: col_add_bytes(b, x->v.s.p, x->v.s.len); break;
        case COL_BOOLEAN: col_add_bool(b, x->v.i != 0); break;
        default: col_add_i64(b, wrap(g->type->kind, x->v.i));
        }
}

static fz_status aggregate_next(ex_op *op, col_batch **out, fz_error *err) {
    agg_state *s = op->cx;
    *out = NULL;
    if (!s->filled) FZ_TRY(fill(op, s, err));
    if (s->at == s->groups.n) return FZ_OK;
    uint32_t left = s->groups.n - s->at, n = left < FZ_BATCH_ROWS ? left : FZ_BATCH_ROWS;
    col_batch *b = col_batch_new(op->plan->schema, n);
    uint32_t *sel = FZ_ANEWN(b->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) sel[i] = s->at + i;
    for (uint32_t k = 0; k < s->plan->n_exprs; k++) b->cols[k] = col_gather(b->arena, s->key_cols[k], sel, n);
    for (uint32_t k = 0; k < s->plan->n_aggs; k++) {
        col_builder *v = col_builder_new(b->arena, s->plan->aggs[k].type);
        for (uint32_t i = 0; i < n; i++) put_result(v, &s->plan->aggs[k], &s->acc[k][s->at + i]);
        b->cols[s->plan->n_exprs + k] = col_builder_finish(v);
    }
    s->at += n;
    *out = b;
    return FZ_OK;
}

static void aggregate_close(ex_op *op) {
    agg_state *s = op->cx;
    for (uint32_t k = 0; k < s->plan->n_aggs; k++) {
        const col_type *t = s->plan->aggs[k].type;
        for (uint32_t g = 0; s->acc[k] && g < s->groups.n && g < s->cap_acc[k] && col_is_varlen(t->kind); g++) fz_free(s->acc[k][g].v.s.p);
        fz_free(s->acc[k]);
        free_table(&s->distinct[k]);
    }
    free_table(&s->groups);
    fz_arena_free(s->a);
    ex_exprs_free(&s->exprs);
}

void ex_aggregate_open(ex_op *op) {
    fz_arena *qa = op->q->a;
    const sql_plan *p = op->plan;
    agg_state *s = FZ_ANEW(qa, agg_state);
    s->plan = p;
    s->a = fz_arena_new();
    s->keys = FZ_ANEWN(qa, col_builder *, p->n_exprs + 1);
    for (uint32_t k = 0; k < p->n_exprs; k++) s->keys[k] = col_builder_new(s->a, p->exprs[k]->type);
    s->acc = FZ_ANEWN(qa, accumulator *, p->n_aggs + 1);
    s->cap_acc = FZ_ANEWN(qa, uint32_t, p->n_aggs + 1);
    s->distinct = FZ_ANEWN(qa, key_table, p->n_aggs + 1);
    sql_bound **e = FZ_ANEWN(qa, sql_bound *, p->n_exprs + 2 * p->n_aggs + 1);
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_exprs; k++) e[n++] = p->exprs[k];
    for (uint32_t k = 0; k < p->n_aggs; k++) {
        e[n++] = p->aggs[k].arg;
        e[n++] = p->aggs[k].filter;
    }
    s->exprs = ex_exprs_new(op->q, p->inputs[0], e, n);
    op->cx = s;
    op->next = aggregate_next;
    op->close = aggregate_close;
}
