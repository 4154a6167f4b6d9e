/* The end of a file: column indexes, offset indexes, FileMetaData; and what Iceberg's manifest wants to know of it.
 * Source: parquet.thrift (FileMetaData, RowGroup, ColumnChunk); Iceberg spec, "Manifests" (data_file) and appendix D. */
#include "parquet/parquet_int.h"

static void row_group(tc_out *o, const pq_writer *w, uint32_t g, uint64_t ci_base, uint64_t oi_base) {
    const pq_footer *f = w->footer;
    const pq_group_rec *rec = &f->groups[g];
    tc_begin(o, 0);
    tc_list(o, 1, TC_STRUCT, w->n_cols);
    for (uint32_t i = 0; i < w->n_cols; i++) {
        const pq_chunk_rec *c = &f->chunks[(size_t)g * w->n_cols + i];
        tc_begin(o, 0);
        tc_put_i64(o, 2, 0); /* file_offset: deprecated, 0 as parquet-java writes it */
        tc_begin(o, 3);
        fz_buf_append(o->b, f->meta.data + c->meta, c->meta_n); /* its own stop byte ends the struct */
        o->depth--;
        tc_put_i64(o, 4, (int64_t)(oi_base + c->oi));
        tc_put_i32(o, 5, (int32_t)c->oi_n);
        if (c->ci_n) {
            tc_put_i64(o, 6, (int64_t)(ci_base + c->ci));
            tc_put_i32(o, 7, (int32_t)c->ci_n);
        }
        tc_end(o);
    }
    tc_put_i64(o, 2, (int64_t)rec->raw);
    tc_put_i64(o, 3, (int64_t)rec->rows);
    tc_put_i64(o, 5, (int64_t)rec->offset);
    tc_put_i64(o, 6, (int64_t)rec->size);
    tc_put_i16(o, 7, (int16_t)g);
    tc_end(o);
}
static void file_metadata(const pq_writer *w, fz_buf *b, uint64_t ci_base, uint64_t oi_base) {
    uint32_t n = w->footer ? w->footer->n_groups : 0;
    tc_out o = tc_out_on(b);
    tc_put_i32(&o, 1, 1);
    pq_schema_encode(&o, 2, w->fields, w->n_fields);
    tc_put_i64(&o, 3, (int64_t)w->rows);
    tc_list(&o, 4, TC_STRUCT, n);
    for (uint32_t g = 0; g < n; g++) row_group(&o, w, g, ci_base, oi_base);
    if (w->n_kv) {
        tc_list(&o, 5, TC_STRUCT, w->n_kv);
        for (size_t i = 0; i < w->n_kv; i++) {
            tc_begin(&o, 0);
            tc_put_bytes(&o, 1, w->kv[i].key, strlen(w->kv[i].key));
            if (w->kv[i].value) tc_put_bytes(&o, 2, w->kv[i].value, strlen(w->kv[i].value));
            tc_end(&o);
        }
    }
    tc_put_bytes(&o, 6, "frazil version 0.1.0", 20);
    tc_list(&o, 7, TC_STRUCT, w->n_cols);
    for (uint32_t i = 0; i < w->n_cols; i++) { /* each TYPE_ORDER */
        tc_begin(&o, 0);
        tc_begin(&o, 1);
        tc_end(&o);
        tc_end(&o);
    }
    tc_end(&o);
}
fz_status pq_footer_write(pq_writer *w, pq_write_fn write, void *cx, fz_error *err) {
    if (!w->out) FZ_TRY(pq_emit(w, write, cx, "PAR1", 4, err));
    fz_buf b = {0};
    uint64_t ci_base = w->out, oi_base = ci_base;
    if (w->footer) {
        oi_base += w->footer->ci.len;
        fz_buf_append(&b, w->footer->ci.data, w->footer->ci.len);
        fz_buf_append(&b, w->footer->oi.data, w->footer->oi.len);
    }
    size_t at = b.len;
    file_metadata(w, &b, ci_base, oi_base);
    uint32_t len = (uint32_t)(b.len - at);
    fz_buf_append(&b, &len, 4);
    fz_buf_append(&b, "PAR1", 4);
    fz_status s = b.len - at > INT32_MAX ? fz_fail(err, FZ_FATAL, "parquet.footer-too-large", "the footer has %zu bytes", b.len - at)
                                         : pq_emit(w, write, cx, b.data, b.len, err);
    fz_buf_free(&b);
    return s;
}

/* ---- Iceberg's metrics ---- */
/* A value in Iceberg's single-value serialisation; only decimals differ from Parquet's PLAIN. */
static uint32_t single_value(const pq_leaf *l, const uint8_t *p, uint32_t n, uint8_t *out) {
    if (n) memcpy(out, p, n);
    if (l->field->type->kind != COL_DECIMAL) return n;
    if (l->phys != PQ_FLBA) /* little-endian to big-endian */
        for (uint32_t i = 0; i < n; i++) out[i] = p[n - 1 - i];
    uint32_t skip = 0; /* the shortest two's complement form */
    while (skip + 1 < n && ((out[skip] == 0 && !(out[skip + 1] & 0x80)) || (out[skip] == 0xFF && (out[skip + 1] & 0x80)))) skip++;
    memmove(out, out + skip, n - skip);
    return n - skip;
}
static void bounds(const pq_leaf *l, const pq_bounds *b, fz_arena *a, pq_column_metrics *m) {
    int mode = l->field->metrics_truncate;
    bool text = pq_is_text(l), cuts = mode > 0 && (text || l->src == PQ_SRC_BYTES || (l->src == PQ_SRC_FIXED && !l->field->is_uuid));
    pq_cut_unit unit = text ? PQ_CUT_POINTS : PQ_CUT_BYTES;
    uint32_t min_n = cuts ? pq_cut(b->min.p, b->min.n, (uint32_t)mode, unit) : b->min.n;
    uint32_t max_n = cuts ? pq_cut(b->max.p, b->max.n, (uint32_t)mode, unit) : b->max.n;
    uint8_t *lower = fz_arena_alloc(a, min_n + 8), *upper = fz_arena_alloc(a, max_n + 8);
    m->lower = lower;
    m->lower_len = single_value(l, b->min.p, min_n, lower);
    uint32_t n = single_value(l, b->max.p, max_n, upper);
    if (max_n != b->max.n && !pq_increment(upper, &n, text)) return;
    m->upper = upper;
    m->upper_len = n;
}
void pq_metrics(const pq_writer *w, fz_arena *a, pq_file_info *info) {
    info->size = w->out;
    info->rows = w->rows;
    info->n_split_offsets = w->footer ? w->footer->n_groups : 0;
    info->split_offsets = fz_arena_calloc(a, info->n_split_offsets, sizeof *info->split_offsets);
    for (uint32_t i = 0; i < info->n_split_offsets; i++) info->split_offsets[i] = (int64_t)w->footer->groups[i].offset;
    info->n_columns = w->n_cols;
    info->columns = fz_arena_calloc(a, w->n_cols, sizeof *info->columns);
    for (uint32_t i = 0; i < w->n_cols; i++) {
        const pq_leaf *l = &w->cols[i].leaf;
        const pq_totals none = {0}, *t = w->cols[i].totals ? w->cols[i].totals : &none;
        pq_column_metrics *m = &info->columns[i];
        *m = (pq_column_metrics){.field_id = l->field->field_id, .column_size = (int64_t)t->size, .value_count = -1, .null_count = -1, .nan_count = -1};
        if (l->max_rep || l->field->metrics_truncate == 0) continue; /* inside lists and maps Iceberg keeps sizes only */
        m->value_count = (int64_t)t->entries;
        m->null_count = (int64_t)t->nulls;
        if (l->order == PQ_ORD_F32 || l->order == PQ_ORD_F64) m->nan_count = (int64_t)t->nans;
        if (l->field->metrics_truncate != -2 && t->bounds.set) bounds(l, &t->bounds, a, m);
    }
}
