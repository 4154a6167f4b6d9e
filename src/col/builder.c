/* Row-at-a-time builders and batches. See col.h. */
#include "col/col.h"
#include <stdatomic.h>

struct col_builder {
    fz_arena *a;
    const col_type *type;
    uint32_t n, cap;
    bool nulls;
    uint8_t *valid;
    void *data;
    uint32_t *off;
    size_t bytes, bytes_cap;
    uint32_t n_child;
    col_builder **child;
};

col_builder *col_builder_new(fz_arena *a, const col_type *t) {
    col_builder *b = FZ_ANEW(a, col_builder);
    b->a = a;
    b->type = t;
    if (t->n_fields) {
        b->n_child = t->n_fields;
        b->child = FZ_ANEWN(a, col_builder *, t->n_fields);
        for (uint32_t k = 0; k < t->n_fields; k++) b->child[k] = col_builder_new(a, t->fields[k].type);
    }
    return b;
}

static void grow(col_builder *b) {
    uint32_t cap = b->cap ? b->cap * 2 : 16;
    unsigned w = col_width(b->type->kind);
    b->valid = fz_arena_realloc(b->a, b->valid, b->cap, cap);
    if (w) b->data = fz_arena_realloc(b->a, b->data, (size_t)w * b->cap, (size_t)w * cap);
    else if (b->type->kind != COL_ROW) {
        size_t had = b->cap ? ((size_t)b->cap + 1) * sizeof *b->off : 0;
        b->off = fz_arena_realloc(b->a, b->off, had, ((size_t)cap + 1) * sizeof *b->off);
        if (!had) b->off[0] = 0;
    }
    b->cap = cap;
}

/* Opens row n: valid, zero value. */
static uint32_t next_row(col_builder *b) {
    if (b->n == b->cap) grow(b);
    uint32_t i = b->n++;
    b->valid[i] = 1;
    if (b->off) b->off[i + 1] = b->off[i];
    return i;
}

void col_add_null(col_builder *b) {
    uint32_t i = next_row(b);
    b->valid[i] = 0;
    b->nulls = true;
    unsigned w = col_width(b->type->kind);
    if (w) memset((char *)b->data + (size_t)w * i, 0, w);
    if (b->type->kind == COL_ROW)
        for (uint32_t k = 0; k < b->n_child; k++) col_add_null(b->child[k]);
}
void col_add_bool(col_builder *b, bool v) {
    uint32_t i = next_row(b);
    ((uint8_t *)b->data)[i] = v;
}
void col_add_i64(col_builder *b, int64_t v) {
    uint32_t i = next_row(b);
    if (col_width(b->type->kind) == 4) ((int32_t *)b->data)[i] = (int32_t)v;
    else ((int64_t *)b->data)[i] = v;
}
void col_add_f64(col_builder *b, double v) {
    uint32_t i = next_row(b);
    if (b->type->kind == COL_FLOAT) ((float *)b->data)[i] = (float)v;
    else ((double *)b->data)[i] = v;
}
void col_add_dec(col_builder *b, col_i128 unscaled) {
    uint32_t i = next_row(b);
    ((col_i128 *)b->data)[i] = unscaled;
}
void col_add_bytes(col_builder *b, const void *p, size_t n) {
    uint32_t i = next_row(b);
    if (b->bytes + n > b->bytes_cap) {
        size_t cap = b->bytes_cap ? b->bytes_cap * 2 : 256;
        while (cap < b->bytes + n) cap *= 2;
        b->data = fz_arena_realloc(b->a, b->data, b->bytes_cap, cap);
        b->bytes_cap = cap;
    }
    if (n) memcpy((char *)b->data + b->bytes, p, n);
    b->bytes += n;
    b->off[i + 1] = (uint32_t)b->bytes;
}
col_builder *col_builder_child(col_builder *b, uint32_t k) { return b->child[k]; }
void col_add_nested(col_builder *b) {
    uint32_t i = next_row(b);
    if (b->type->kind != COL_ROW) b->off[i + 1] = b->child[0]->n;
}

void col_add_from(col_builder *b, const col_vec *v, uint32_t i) {
    if (col_is_null(v, i)) {
        col_add_null(b);
        return;
    }
    const col_vec *f = col_at(v, &i);
    switch (b->type->kind) {
    case COL_NULL: col_add_null(b); break;
    case COL_BOOLEAN: col_add_bool(b, f->u8[i]); break;
    case COL_FLOAT: col_add_f64(b, (double)f->f32[i]); break;
    case COL_DOUBLE: col_add_f64(b, f->f64[i]); break;
    case COL_DECIMAL: col_add_dec(b, f->i128[i]); break;
    case COL_CHAR:
    case COL_VARCHAR:
    case COL_BINARY:
    case COL_VARBINARY: col_add_bytes(b, f->bytes + f->off[i], f->off[i + 1] - f->off[i]); break;
    case COL_ARRAY:
    case COL_MAP:
        for (uint32_t k = 0; k < b->n_child; k++)
            for (uint32_t e = f->off[i]; e < f->off[i + 1]; e++) col_add_from(b->child[k], f->child[k], e);
        col_add_nested(b);
        break;
    case COL_ROW:
        for (uint32_t k = 0; k < b->n_child; k++) col_add_from(b->child[k], f->child[k], i);
        col_add_nested(b);
        break;
    default: col_add_i64(b, col_width(b->type->kind) == 4 ? f->i32[i] : f->i64[i]);
    }
}

uint32_t col_builder_len(const col_builder *b) { return b->n; }

col_vec *col_builder_finish(col_builder *b) {
    if (b->n == 0) {
        col_vec *v = col_vec_nulls(b->a, b->type, 0);
        v->valid = NULL;
        return v;
    }
    col_vec *v = FZ_ANEW(b->a, col_vec);
    v->type = b->type;
    v->len = b->n;
    v->valid = b->nulls ? b->valid : NULL;
    v->data = b->data;
    v->off = b->off;
    if (col_is_varlen(b->type->kind) && !v->data) v->data = fz_arena_alloc(b->a, 0);
    v->n_child = b->n_child;
    if (b->n_child) {
        v->child = FZ_ANEWN(b->a, col_vec *, b->n_child);
        for (uint32_t k = 0; k < b->n_child; k++) v->child[k] = col_builder_finish(b->child[k]);
    }
    return v;
}

col_batch *col_batch_new(const col_schema *schema, uint32_t n_rows) {
    fz_arena *a = fz_arena_new();
    col_batch *b = FZ_NEW(col_batch);
    b->arena = a;
    b->schema = schema;
    b->n_rows = n_rows;
    b->n_cols = schema ? schema->n : 0;
    b->cols = FZ_ANEWN(a, col_vec *, b->n_cols);
    atomic_init(&b->refs, 1);
    return b;
}
col_batch *col_batch_retain(col_batch *b) {
    atomic_fetch_add(&b->refs, 1);
    return b;
}
void col_batch_release(col_batch *b) {
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
    fz_arena_free(b->arena);
    fz_free(b);
}
