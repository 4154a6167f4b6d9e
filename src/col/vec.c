/* Vectors: making, gathering, copying. See col.h. */
#include "col/col.h"

col_vec *col_vec_new(fz_arena *a, const col_type *t, uint32_t len) {
    col_vec *v = FZ_ANEW(a, col_vec);
    v->type = t;
    v->len = len;
    unsigned w = col_width(t->kind);
    if (w) v->data = fz_arena_alloc(a, (size_t)w * len);
    if (col_is_varlen(t->kind) || t->kind == COL_ARRAY || t->kind == COL_MAP) {
        v->off = fz_arena_alloc(a, ((size_t)len + 1) * sizeof *v->off);
        v->off[0] = 0;
    }
    if (t->n_fields) {
        v->n_child = t->n_fields;
        v->child = FZ_ANEWN(a, col_vec *, t->n_fields);
    }
    return v;
}

col_vec *col_vec_dict(fz_arena *a, col_vec *dict, uint32_t len) {
    col_vec *v = FZ_ANEW(a, col_vec);
    v->type = dict->type;
    v->len = len;
    v->dict = dict;
    v->idx = fz_arena_alloc(a, (size_t)len * sizeof *v->idx);
    return v;
}

col_vec *col_vec_nulls(fz_arena *a, const col_type *t, uint32_t len) {
    col_vec *v = col_vec_new(a, t, len);
    v->valid = fz_arena_calloc(a, len, 1);
    if (v->data) memset(v->data, 0, (size_t)col_width(t->kind) * len);
    if (v->off) memset(v->off, 0, ((size_t)len + 1) * sizeof *v->off);
    for (uint32_t k = 0; k < v->n_child; k++) v->child[k] = col_vec_nulls(a, t->fields[k].type, t->kind == COL_ROW ? len : 0);
    return v;
}

col_vec *col_vec_const(fz_arena *a, const col_vec *v, uint32_t row, uint32_t len) {
    col_vec *one = col_gather(a, v, &row, 1);
    col_vec *r = col_vec_dict(a, one, len);
    memset(r->idx, 0, (size_t)len * sizeof *r->idx);
    return r;
}

uint8_t *col_vec_mask(fz_arena *a, col_vec *v) {
    if (!v->valid) {
        v->valid = fz_arena_alloc(a, v->len);
        memset(v->valid, 1, v->len);
    }
    return v->valid;
}

/* Row of the flat vector for output row i. */
static inline uint32_t source_row(const col_vec *v, const uint32_t *sel, uint32_t i) {
    uint32_t r = sel ? sel[i] : i;
    return v->idx ? v->idx[r] : r;
}

static void gather_fixed(void *out, const void *in, unsigned w, const col_vec *v, const uint32_t *sel, uint32_t n) {
#define COPY(T)                                                                              \
    for (uint32_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)in)[source_row(v, sel, i)]; \
    break
    switch (w) {
    case 1: COPY(uint8_t);
    case 4: COPY(uint32_t);
    case 8: COPY(uint64_t);
    default: COPY(col_i128);
    }
#undef COPY
}

static void gather_bytes(fz_arena *a, col_vec *o, const col_vec *flat, const col_vec *v, const uint32_t *sel, uint32_t n) {
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = source_row(v, sel, i);
        total += flat->off[r + 1] - flat->off[r];
    }
    o->bytes = fz_arena_alloc(a, total);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = source_row(v, sel, i), len = flat->off[r + 1] - flat->off[r];
        if (len) memcpy(o->bytes + at, flat->bytes + flat->off[r], len);
        at += len;
        o->off[i + 1] = at;
    }
}

static void gather_lists(fz_arena *a, col_vec *o, const col_vec *flat, const col_vec *v, const uint32_t *sel, uint32_t n) {
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = source_row(v, sel, i);
        total += flat->off[r + 1] - flat->off[r];
    }
    uint32_t *inner = fz_arena_alloc(a, total * sizeof *inner), at = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = source_row(v, sel, i);
        for (uint32_t k = flat->off[r]; k < flat->off[r + 1]; k++) inner[at++] = k;
        o->off[i + 1] = at;
    }
    for (uint32_t k = 0; k < flat->n_child; k++) o->child[k] = col_gather(a, flat->child[k], inner, at);
}

/* sel NULL: all rows in order. */
static col_vec *gather(fz_arena *a, const col_vec *v, const uint32_t *sel, uint32_t n) {
    const col_vec *flat = v->idx ? v->dict : v;
    col_vec *o = col_vec_new(a, v->type, n);
    bool nulls = v->valid || flat->valid;
    if (nulls && v->type->kind != COL_NULL) {
        o->valid = fz_arena_alloc(a, n);
        for (uint32_t i = 0; i < n; i++) o->valid[i] = !col_is_null(v, sel ? sel[i] : i);
    }
    unsigned w = col_width(v->type->kind);
    if (w) gather_fixed(o->data, flat->data, w, v, sel, n);
    else if (col_is_varlen(v->type->kind)) gather_bytes(a, o, flat, v, sel, n);
    else if (v->type->kind == COL_ARRAY || v->type->kind == COL_MAP) gather_lists(a, o, flat, v, sel, n);
    else if (v->type->kind == COL_ROW) {
        const uint32_t *rows = sel;
        if (v->idx) {
            uint32_t *mapped = fz_arena_alloc(a, (size_t)n * sizeof *mapped);
            for (uint32_t i = 0; i < n; i++) mapped[i] = source_row(v, sel, i);
            rows = mapped;
        }
        for (uint32_t k = 0; k < flat->n_child; k++) o->child[k] = gather(a, flat->child[k], rows, n);
    }
    return o;
}

col_vec *col_gather(fz_arena *a, const col_vec *v, const uint32_t *sel, uint32_t n_sel) { return gather(a, v, sel, n_sel); }

col_vec *col_select(fz_arena *a, const col_vec *v, const uint32_t *sel, uint32_t n_sel) {
    if (!v->idx) return gather(a, v, sel, n_sel);
    col_vec *o = col_vec_dict(a, v->dict, n_sel);
    for (uint32_t i = 0; i < n_sel; i++) o->idx[i] = v->idx[sel[i]];
    if (v->valid) {
        o->valid = fz_arena_alloc(a, n_sel);
        for (uint32_t i = 0; i < n_sel; i++) o->valid[i] = v->valid[sel[i]];
    }
    return o;
}

col_vec *col_flat(fz_arena *a, const col_vec *v) { return v->idx ? gather(a, v, NULL, v->len) : (col_vec *)(uintptr_t)v; }

col_vec *col_vec_clone(fz_arena *a, const col_vec *v) {
    const col_type *t = col_type_clone(a, v->type);
    if (!v->idx) {
        col_vec *o = gather(a, v, NULL, v->len);
        o->type = t;
        for (uint32_t k = 0; k < o->n_child; k++) o->child[k] = col_vec_clone(a, o->child[k]);
        return o;
    }
    col_vec *o = col_vec_dict(a, col_vec_clone(a, v->dict), v->len);
    o->type = t;
    if (v->len) memcpy(o->idx, v->idx, (size_t)v->len * sizeof *o->idx);
    if (v->valid) {
        o->valid = fz_arena_alloc(a, v->len);
        memcpy(o->valid, v->valid, v->len);
    }
    return o;
}
