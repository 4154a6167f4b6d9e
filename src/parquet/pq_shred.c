/* Nested columns to levels (Dremel): for each leaf under a top-level field the pairs of repetition and definition level and the
 * rows of the leaf's vector that hold its values. A NULL in a required field ends it with an error, before anything is appended. */
#include "parquet/parquet_int.h"

typedef struct shredder { pq_codec *c; uint8_t rep, def; fz_error *err; } shredder;

void pq_shred_room(pq_codec *c, uint32_t n_leaves) {
    if (c->n_shred >= n_leaves) return;
    c->shred = fz_realloc(c->shred, (size_t)n_leaves * sizeof *c->shred);
    memset(c->shred + c->n_shred, 0, (size_t)(n_leaves - c->n_shred) * sizeof *c->shred);
    c->n_shred = n_leaves;
}
static void emit(pq_shred *s, unsigned rep, unsigned def) {
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1024;
        s->def = fz_realloc(s->def, s->cap);
        s->rep = fz_realloc(s->rep, s->cap);
        s->row = fz_realloc(s->row, (size_t)s->cap * sizeof *s->row);
    }
    s->def[s->n] = (uint8_t)def;
    s->rep[s->n++] = (uint8_t)rep;
}
/* The value ends above all leaves of f. */
static uint32_t emit_absent(pq_codec *c, const pq_field *f, unsigned rep, unsigned def, uint32_t leaf) {
    if (!f->n_children) {
        emit(&c->shred[leaf], rep, def);
        return leaf + 1;
    }
    for (uint32_t i = 0; i < f->n_children; i++) leaf = emit_absent(c, &f->children[i], rep, def, leaf);
    return leaf;
}
static fz_status walk(pq_codec *c, const pq_field *f, const col_vec *v, uint32_t row, unsigned rep, unsigned def, unsigned depth, uint32_t *leaf, fz_error *err) {
    if (col_is_null(v, row)) {
        if (f->required) return fz_fail(err, FZ_DATA, "not-null", "column '%s' is NOT NULL but a row has NULL in it", f->name);
        *leaf = emit_absent(c, f, rep, def, *leaf);
        return FZ_OK;
    }
    if (!f->required) def++;
    if (!f->n_children) {
        pq_shred *s = &c->shred[(*leaf)++];
        s->vec = v;
        emit(s, rep, def);
        s->row[s->n_rows++] = row;
        return FZ_OK;
    }
    const col_vec *flat = col_at(v, &row);
    if (flat->n_child != f->n_children) return fz_fail(err, FZ_FATAL, "parquet.vector", "the vector of column '%s' has not the fields of its type", f->name);
    if (f->type->kind == COL_ROW) {
        for (uint32_t i = 0; i < f->n_children; i++) FZ_TRY(walk(c, &f->children[i], flat->child[i], row, rep, def, depth, leaf, err));
        return FZ_OK;
    }
    uint32_t from = flat->off[row], to = flat->off[row + 1], first = *leaf;
    if (from == to) {
        *leaf = emit_absent(c, f, rep, def, first);
        return FZ_OK;
    }
    for (uint32_t j = from; j < to; j++) {
        *leaf = first;
        for (uint32_t i = 0; i < f->n_children; i++)
            FZ_TRY(walk(c, &f->children[i], flat->child[i], j, j == from ? rep : depth + 1, def + 1, depth + 1, leaf, err));
    }
    return FZ_OK;
}
static uint32_t clear(pq_codec *c, const pq_field *f, uint32_t leaf) {
    if (!f->n_children) {
        c->shred[leaf].n = c->shred[leaf].n_rows = 0;
        c->shred[leaf].vec = NULL;
        return leaf + 1;
    }
    for (uint32_t i = 0; i < f->n_children; i++) leaf = clear(c, &f->children[i], leaf);
    return leaf;
}
fz_status pq_shred_field(pq_codec *c, const pq_field *f, const col_vec *v, const uint32_t *sel, uint32_t n, uint32_t leaf, fz_error *err) {
    clear(c, f, leaf);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = leaf;
        FZ_TRY(walk(c, f, v, sel[i], 0, 0, 0, &at, err));
    }
    return FZ_OK;
}
