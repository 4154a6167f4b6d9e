/* The writer's outward calls: checks first, so that a refused row leaves nothing behind; then column by column. */
#include "parquet/parquet_int.h"

static fz_status check_options(const pq_options *o, fz_error *err) {
    if (o->bloom) return fz_fail(err, FZ_USER, "parquet.bloom", "bloom filters are not supported");
    if ((unsigned)o->compression > PQ_ZSTD) return fz_fail(err, FZ_USER, "parquet.codec", "unknown compression %d", (int)o->compression);
    int lo = o->compression == PQ_ZSTD ? -131072 : 0, hi = o->compression == PQ_ZSTD ? 22 : o->compression == PQ_GZIP ? 12 : INT32_MAX;
    if (o->compression_level < lo || o->compression_level > hi)
        return fz_fail(err, FZ_USER, "parquet.compression-level", "compression level %d is outside %d to %d", o->compression_level, lo, hi);
    if (!o->page_size || o->page_size > (512u << 20) || !o->page_rows || !o->dict_size || o->dict_size > (512u << 20) || !o->row_group_size)
        return fz_fail(err, FZ_USER, "parquet.sizes", "page, dictionary and row group sizes must be above 0, pages and dictionaries at most 512 MiB");
    return FZ_OK;
}
fz_status pq_writer_new(const pq_field *fields, uint32_t n, const pq_options *opt, const fz_pair *key_values, size_t n_kv, pq_writer **out, fz_error *err) {
    uint32_t n_cols = 0;
    *out = NULL;
    FZ_TRY(check_options(opt, err));
    FZ_TRY(pq_leaves(fields, n, NULL, &n_cols, err));
    if (!n_cols) return fz_fail(err, FZ_USER, "parquet.no-columns", "a Parquet file needs a column");
    pq_leaf few[32], *leaves = n_cols <= 32 ? few : fz_malloc(n_cols * sizeof *leaves);
    fz_status s = pq_leaves(fields, n, leaves, &n_cols, err);
    pq_writer *w = fz_calloc(1, sizeof *w + n_cols * sizeof(pq_column));
    w->fields = fields;
    w->n_fields = n;
    w->opt = opt;
    w->kv = key_values;
    w->n_kv = n_kv;
    w->n_cols = n_cols;
    for (uint32_t i = 0; i < n_cols; i++) {
        w->cols[i].leaf = leaves[i];
        w->nested |= leaves[i].nested || leaves[i].max_rep;
        pq_column_reset(&w->cols[i]);
    }
    if (leaves != few) fz_free(leaves);
    *out = w;
    return s;
}

/* ---- checks of an append ---- */
static bool same_form(const pq_field *f, const col_type *t) { /* the vector holds values in the form of the field's type */
    col_kind a = f->type->kind, b = t->kind;
    if (a == b || b == COL_NULL) return true;
    if (col_is_text(a) && col_is_text(b)) return true;
    if ((a == COL_BINARY || a == COL_VARBINARY) && (b == COL_BINARY || b == COL_VARBINARY)) return true;
    return (a == COL_TINYINT || a == COL_SMALLINT || a == COL_INT) && (b == COL_TINYINT || b == COL_SMALLINT || b == COL_INT);
}
static fz_status check_form(const pq_field *f, const col_vec *v, fz_error *err) {
    const col_vec *flat = v->idx ? v->dict : v;
    if (!same_form(f, v->type)) return fz_fail(err, FZ_FATAL, "parquet.vector", "the vector of column '%s' has another type than the column", f->name);
    if (v->type->kind == COL_NULL) return FZ_OK;
    if (f->n_children && flat->n_child != f->n_children) return fz_fail(err, FZ_FATAL, "parquet.vector", "the vector of column '%s' has not the fields of its type", f->name);
    for (uint32_t i = 0; i < f->n_children; i++) FZ_TRY(check_form(&f->children[i], flat->child[i], err));
    if (col_is_varlen(f->type->kind) && flat->len && flat->off[flat->len] - flat->off[0] > PQ_MAX_VALUE)
        return fz_fail(err, FZ_DATA, "parquet.value-too-large", "a batch of column '%s' has more than %u bytes", f->name, PQ_MAX_VALUE);
    return FZ_OK;
}
static fz_status check_value(const pq_leaf *l, const col_vec *v, uint32_t row, fz_error *err) {
    if (col_is_null(v, row)) return FZ_OK;
    const col_type *t = l->field->type;
    if (l->src == PQ_SRC_FIXED) {
        fz_sv s = col_sv(v, row);
        return s.n == l->width ? FZ_OK : fz_fail(err, FZ_DATA, "parquet.fixed-length", "column '%s' takes values of %u bytes, this one has %zu", l->field->name, (unsigned)l->width, s.n);
    }
    col_i128 x = col_dec(v, row), limit = 1;
    for (int32_t i = 0; i < t->precision; i++) limit *= 10;
    if (x < limit && x > -limit) return FZ_OK;
    return fz_fail(err, FZ_DATA, "parquet.decimal-range", "a value of column '%s' has more than %d digits", l->field->name, (int)t->precision);
}
/* Required columns without NULL, fixed columns with values of their length, decimals within their precision. */
static fz_status check_leaf(const pq_leaf *l, const col_vec *v, const uint32_t *sel, uint32_t n, fz_error *err) {
    bool nulls = v->type->kind == COL_NULL || v->valid || (v->idx && v->dict->valid);
    if (l->field->required && nulls)
        for (uint32_t i = 0; i < n; i++)
            if (col_is_null(v, sel[i])) return fz_fail(err, FZ_DATA, "not-null", "column '%s' is NOT NULL but a row has NULL in it", l->field->name);
    if ((l->src == PQ_SRC_FIXED || l->field->type->kind == COL_DECIMAL) && v->type->kind != COL_NULL)
        for (uint32_t i = 0; i < n; i++) FZ_TRY(check_value(l, v, sel[i], err));
    return FZ_OK;
}
static uint32_t n_leaves(const pq_field *f) {
    if (!f->n_children) return 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_children; i++) n += n_leaves(&f->children[i]);
    return n;
}
static fz_status check_append(pq_writer *w, col_vec *const *cols, const uint32_t *sel, uint32_t n, pq_codec *k, fz_error *err) {
    uint32_t leaf = 0;
    if (w->nested) pq_shred_room(k, w->n_cols);
    for (uint32_t i = 0; i < w->n_fields; i++) {
        const pq_field *f = &w->fields[i];
        FZ_TRY(check_form(f, cols[i], err));
        if (!f->n_children) {
            FZ_TRY(check_leaf(&w->cols[leaf++].leaf, cols[i], sel, n, err));
            continue;
        }
        FZ_TRY(pq_shred_field(k, f, cols[i], sel, n, leaf, err));
        for (uint32_t end = leaf + n_leaves(f); leaf < end; leaf++) {
            const pq_shred *s = &k->shred[leaf];
            if (s->vec) FZ_TRY(check_leaf(&w->cols[leaf].leaf, s->vec, s->row, s->n_rows, err));
        }
    }
    return FZ_OK;
}

fz_status pq_writer_append(pq_writer *w, col_vec *const *cols, const uint32_t *sel, uint32_t n_sel, pq_codec *c, pq_write_fn write, void *cx, fz_error *err) {
    if (w->broken) return fz_fail(err, FZ_FATAL, "parquet.broken", "this file failed or was finished before and cannot be continued");
    if (!n_sel) return FZ_OK;
    FZ_TRY(check_append(w, cols, sel, n_sel, c, err));
    uint32_t leaf = 0;
    fz_status s = FZ_OK;
    for (uint32_t i = 0; i < w->n_fields && s == FZ_OK; i++) {
        if (!w->fields[i].n_children) {
            s = pq_column_append_flat(w, &w->cols[leaf++], cols[i], sel, n_sel, c, err);
            continue;
        }
        for (uint32_t end = leaf + n_leaves(&w->fields[i]); leaf < end && s == FZ_OK; leaf++)
            s = pq_column_append_shred(w, &w->cols[leaf], &c->shred[leaf], c, err);
    }
    if (s != FZ_OK) {
        w->broken = true;
        return s;
    }
    w->rows += n_sel;
    w->group_rows += n_sel;
    if (w->group_rows >= PQ_MAX_GROUP_ROWS || pq_writer_file_bytes(w) - w->out >= w->opt->row_group_size) return pq_group_write(w, c, write, cx, err);
    return FZ_OK;
}
size_t pq_writer_bytes(const pq_writer *w) {
    size_t n = sizeof *w + w->n_cols * sizeof(pq_column);
    for (uint32_t i = 0; i < w->n_cols; i++) n += pq_column_bytes(&w->cols[i]);
    if (w->footer)
        n += sizeof *w->footer + w->footer->meta.cap + w->footer->ci.cap + w->footer->oi.cap + (size_t)w->footer->cap_chunks * sizeof(pq_chunk_rec) +
             (size_t)w->footer->cap_groups * sizeof(pq_group_rec);
    return n;
}
uint64_t pq_writer_rows(const pq_writer *w) { return w->rows; }
uint64_t pq_writer_file_bytes(const pq_writer *w) {
    uint64_t done = 0, raw = 0;
    for (uint32_t i = 0; i < w->n_cols; i++) {
        if (w->cols[i].chunk) done += w->cols[i].chunk->size;
        raw += pq_column_raw(&w->cols[i]);
    }
    if (w->pages_raw) raw = (uint64_t)((double)raw * ((double)w->pages_size / (double)w->pages_raw));
    else if (w->opt->compression != PQ_UNCOMPRESSED) raw /= 4; /* no page yet: what logs compress to, roughly */
    return w->out + done + raw;
}
fz_status pq_writer_flush_row_group(pq_writer *w, pq_codec *c, pq_write_fn write, void *cx, fz_error *err) {
    if (w->broken) return fz_fail(err, FZ_FATAL, "parquet.broken", "this file failed or was finished before and cannot be continued");
    return pq_group_write(w, c, write, cx, err);
}
fz_status pq_writer_flush_pages(pq_writer *w, size_t min_bytes, pq_codec *c, fz_error *err) {
    if (w->broken) return fz_fail(err, FZ_FATAL, "parquet.broken", "this file failed or was finished before and cannot be continued");
    for (uint32_t i = 0; i < w->n_cols; i++) {
        pq_column *col = &w->cols[i];
        if (!col->page_entries || (size_t)col->vals.n + col->def.n + col->rep.n < min_bytes) continue;
        fz_status s = pq_page_flush(w, col, c, err);
        if (s != FZ_OK) {
            w->broken = true;
            return s;
        }
        pq_bytes_free(&col->vals);
        pq_bytes_free(&col->def);
        pq_bytes_free(&col->rep);
    }
    return FZ_OK;
}
fz_status pq_writer_finish(pq_writer *w, pq_codec *c, pq_write_fn write, void *cx, fz_arena *a, pq_file_info *info, fz_error *err) {
    FZ_TRY(pq_writer_flush_row_group(w, c, write, cx, err));
    FZ_TRY(pq_footer_write(w, write, cx, err));
    pq_metrics(w, a, info);
    w->broken = true; /* a finished file takes no more rows */
    return FZ_OK;
}
void pq_writer_free(pq_writer *w) {
    if (!w) return;
    for (uint32_t i = 0; i < w->n_cols; i++) {
        pq_column_reset(&w->cols[i]);
        if (w->cols[i].totals) pq_bounds_free(&w->cols[i].totals->bounds);
        fz_free(w->cols[i].totals);
    }
    if (w->footer) {
        fz_buf_free(&w->footer->meta);
        fz_buf_free(&w->footer->ci);
        fz_buf_free(&w->footer->oi);
        fz_free(w->footer->chunks);
        fz_free(w->footer->groups);
    }
    fz_free(w->footer);
    fz_free(w);
}
