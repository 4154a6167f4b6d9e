/* A row group goes out: for each column its dictionary page and its data pages; what the footer needs of it stays behind as
 * encoded ColumnMetaData, ColumnIndex and OffsetIndex.
 * Source: parquet.thrift (ColumnMetaData, Statistics, ColumnIndex, OffsetIndex), PageIndex.md. */
#include "parquet/parquet_int.h"

fz_status pq_emit(pq_writer *w, pq_write_fn write, void *cx, const void *p, size_t n, fz_error *err) {
    if (!n) return FZ_OK;
    fz_status s = write(cx, p, n, err);
    if (s != FZ_OK) w->broken = true;
    else w->out += n;
    return s;
}

/* ---- column index, offset index ---- */
static int compare_keys(const pq_column *c, const pq_page *a, const pq_page *b, bool max) {
    const uint8_t *k = c->chunk->keys.data;
    pq_order o = (pq_order)c->leaf.order;
    if (max) return pq_value_cmp(o, k + a->key + a->min_n, a->max_n, k + b->key + b->min_n, b->max_n);
    return pq_value_cmp(o, k + a->key, a->min_n, k + b->key, b->min_n);
}
static int boundary_order(const pq_column *c) { /* 0 unordered, 1 ascending, 2 descending; pages of NULLs do not count */
    bool up = true, down = true;
    const pq_page *last = NULL;
    for (uint32_t i = 0; i < c->chunk->n_pages; i++) {
        const pq_page *p = &c->chunk->pages[i];
        if (p->null_page) continue;
        if (last) {
            int lo = compare_keys(c, last, p, false), hi = compare_keys(c, last, p, true);
            if (lo > 0 || hi > 0) up = false;
            if (lo < 0 || hi < 0) down = false;
        }
        last = p;
    }
    return up ? 1 : down ? 2 : 0;
}
static void column_index(const pq_column *c, fz_buf *b) {
    const pq_chunk *h = c->chunk;
    const uint8_t *keys = h->keys.data ? h->keys.data : (const uint8_t *)"";
    tc_out o = tc_out_on(b);
    tc_list(&o, 1, TC_TRUE, h->n_pages);
    for (uint32_t i = 0; i < h->n_pages; i++) tc_e_bool(&o, h->pages[i].null_page);
    tc_list(&o, 2, TC_BINARY, h->n_pages);
    for (uint32_t i = 0; i < h->n_pages; i++) tc_e_bytes(&o, keys + h->pages[i].key, h->pages[i].min_n);
    tc_list(&o, 3, TC_BINARY, h->n_pages);
    for (uint32_t i = 0; i < h->n_pages; i++) tc_e_bytes(&o, keys + h->pages[i].key + h->pages[i].min_n, h->pages[i].max_n);
    tc_put_i32(&o, 4, boundary_order(c));
    tc_list(&o, 5, TC_I64, h->n_pages);
    for (uint32_t i = 0; i < h->n_pages; i++) tc_e_i64(&o, h->pages[i].nulls);
    tc_end(&o);
}
static void offset_index(const pq_chunk *h, uint64_t base, fz_buf *b) {
    tc_out o = tc_out_on(b);
    tc_list(&o, 1, TC_STRUCT, h->n_pages);
    for (uint32_t i = 0; i < h->n_pages; i++) {
        tc_begin(&o, 0);
        tc_put_i64(&o, 1, (int64_t)base);
        base += h->pages[i].size;
        tc_put_i32(&o, 2, (int32_t)h->pages[i].size);
        tc_put_i64(&o, 3, (int64_t)h->pages[i].first_row);
        tc_end(&o);
    }
    tc_end(&o);
}

/* ---- column metadata ---- */
static void statistics(tc_out *o, const pq_column *c) {
    const pq_chunk *h = c->chunk;
    const pq_leaf *l = &c->leaf;
    bool cut = l->phys == PQ_BYTE_ARRAY && l->field->metrics_truncate != -1, text = pq_is_text(l), have_max = h->bounds.set;
    pq_cut_unit unit = text ? PQ_CUT_UTF8 : PQ_CUT_BYTES;
    uint32_t min_n = cut && h->bounds.set ? pq_cut(h->bounds.min.p, h->bounds.min.n, PQ_BOUND_BYTES, unit) : h->bounds.min.n;
    uint32_t max_n = cut && h->bounds.set ? pq_cut(h->bounds.max.p, h->bounds.max.n, PQ_BOUND_BYTES, unit) : h->bounds.max.n;
    bool max_exact = max_n == h->bounds.max.n;
    pq_bytes min = {0}, max = {0};
    if (h->bounds.set) {
        pq_bytes_set(&min, h->bounds.min.p, min_n);
        pq_bytes_set(&max, h->bounds.max.p, max_n);
        pq_bytes_room(&max, 8);
        pq_zero_bound((pq_order)l->order, min.p, min.n, false);
        pq_zero_bound((pq_order)l->order, max.p, max.n, true);
        if (!max_exact) have_max = pq_increment(max.p, &max.n, text);
    }
    tc_begin(o, 12);
    tc_put_i64(o, 3, (int64_t)h->nulls);
    if (have_max) tc_put_bytes(o, 5, max.p, max.n);
    if (h->bounds.set) tc_put_bytes(o, 6, min.p, min.n);
    if (have_max && !max_exact) tc_put_bool(o, 7, false);
    if (h->bounds.set && min_n != h->bounds.min.n) tc_put_bool(o, 8, false);
    tc_end(o);
    pq_bytes_free(&min);
    pq_bytes_free(&max);
}
static void encoding_stat(tc_out *o, int page, int encoding, uint32_t n) {
    tc_begin(o, 0);
    tc_put_i32(o, 1, page);
    tc_put_i32(o, 2, encoding);
    tc_put_i32(o, 3, (int32_t)n);
    tc_end(o);
}
static int codec_number(pq_compression c) {
    static const int number[] = {PQ_CODEC_UNCOMPRESSED, PQ_CODEC_SNAPPY, PQ_CODEC_GZIP, PQ_CODEC_LZ4_RAW, PQ_CODEC_ZSTD};
    return number[c];
}
typedef struct chunk_place { uint64_t start, data, raw, size; } chunk_place; /* start: of its first page; data: of its first data page */
static void column_metadata(const pq_writer *w, const pq_column *c, const pq_path *path, const chunk_place *at, fz_buf *b) {
    const pq_chunk *h = c->chunk;
    tc_out o = tc_out_on(b);
    tc_put_i32(&o, 1, c->leaf.phys);
    tc_list(&o, 2, TC_I32, h->n_dict ? 3 : 2);
    tc_e_i32(&o, PQ_ENC_PLAIN);
    tc_e_i32(&o, PQ_ENC_RLE);
    if (h->n_dict) tc_e_i32(&o, PQ_ENC_RLE_DICTIONARY);
    tc_list(&o, 3, TC_BINARY, path->n);
    for (uint32_t i = 0; i < path->n; i++) tc_e_bytes(&o, path->part[i].p, path->part[i].n);
    tc_put_i32(&o, 4, codec_number(w->opt->compression));
    tc_put_i64(&o, 5, (int64_t)h->entries);
    tc_put_i64(&o, 6, (int64_t)at->raw);
    tc_put_i64(&o, 7, (int64_t)at->size);
    tc_put_i64(&o, 9, (int64_t)at->data);
    if (h->n_dict) tc_put_i64(&o, 11, (int64_t)at->start);
    statistics(&o, c);
    tc_list(&o, 13, TC_STRUCT, (h->n_dict ? 2u : 0u) + (h->n_plain ? 1u : 0u));
    if (h->n_dict) {
        encoding_stat(&o, PQ_PAGE_DICTIONARY, PQ_ENC_PLAIN, 1);
        encoding_stat(&o, PQ_PAGE_DATA, PQ_ENC_RLE_DICTIONARY, h->n_dict);
    }
    if (h->n_plain) encoding_stat(&o, PQ_PAGE_DATA, PQ_ENC_PLAIN, h->n_plain);
    tc_end(&o);
}

/* ---- the row group ---- */
static void add_totals(pq_column *c, uint64_t size) {
    if (!c->totals) c->totals = FZ_NEW(pq_totals);
    const pq_chunk *h = c->chunk;
    c->totals->size += size;
    c->totals->entries += h->entries;
    c->totals->nulls += h->nulls;
    c->totals->nans += h->nans;
    if (h->bounds.set)
        pq_bounds_merge(&c->totals->bounds, (pq_order)c->leaf.order, h->bounds.min.p, h->bounds.min.n, h->bounds.max.p, h->bounds.max.n);
}
static fz_status write_dictionary(pq_writer *w, const pq_column *c, pq_codec *k, pq_write_fn write, void *cx, chunk_place *at, fz_error *err) {
    const pq_bytes *v = &c->dict.vals;
    fz_sv body;
    FZ_TRY(pq_compress_page(k, w->opt, pq_column_key(w, c) + 2, v->p, v->n, c->leaf.phys == PQ_BYTE_ARRAY ? 0 : SIZE_MAX, &body, err));
    k->body.len = 0;
    pq_page_header(&k->body, PQ_PAGE_DICTIONARY, v->n, body, c->dict.n, PQ_ENC_PLAIN);
    at->raw += k->body.len + v->n;
    fz_buf_append(&k->body, body.p, body.n); /* one write for both */
    w->pages_raw += v->n;
    w->pages_size += body.n;
    return pq_emit(w, write, cx, k->body.data, k->body.len, err);
}
static fz_status write_column(pq_writer *w, pq_column *c, const pq_path *path, pq_codec *k, pq_write_fn write, void *cx, pq_chunk_rec *rec, chunk_place *at, fz_error *err) {
    FZ_TRY(pq_page_flush(w, c, k, err));
    pq_footer *f = w->footer;
    *at = (chunk_place){.start = w->out};
    if (c->chunk->n_dict) FZ_TRY(write_dictionary(w, c, k, write, cx, at, err));
    at->data = w->out;
    at->raw += c->chunk->raw;
    for (uint32_t i = 0; i < c->chunk->n_pages; i++) {
        FZ_TRY(pq_emit(w, write, cx, c->chunk->pages[i].bytes, c->chunk->pages[i].size, err));
        fz_free(c->chunk->pages[i].bytes);
        c->chunk->pages[i].bytes = NULL;
    }
    at->size = w->out - at->start;
    rec->ci = f->ci.len;
    if (!c->chunk->no_index) column_index(c, &f->ci);
    rec->ci_n = (uint32_t)(f->ci.len - rec->ci);
    rec->oi = f->oi.len;
    offset_index(c->chunk, at->data, &f->oi);
    rec->oi_n = (uint32_t)(f->oi.len - rec->oi);
    rec->meta = (uint32_t)f->meta.len;
    column_metadata(w, c, path, at, &f->meta);
    rec->meta_n = (uint32_t)(f->meta.len - rec->meta);
    add_totals(c, at->size);
    pq_column_reset(c);
    return FZ_OK;
}
typedef struct group_walk {
    pq_writer *w;
    pq_codec *k;
    pq_write_fn write;
    void *cx;
    fz_error *err;
    fz_status status;
    uint32_t column;
    pq_chunk_rec *recs;
    pq_group_rec *group;
} group_walk;
static void on_leaf(void *cx, const pq_field *leaf, const pq_path *path) {
    group_walk *g = cx;
    (void)leaf;
    if (g->status != FZ_OK) return;
    chunk_place at;
    uint32_t i = g->column++;
    g->status = write_column(g->w, &g->w->cols[i], path, g->k, g->write, g->cx, &g->recs[i], &at, g->err);
    if (g->status != FZ_OK) return;
    g->group->raw += at.raw;
    g->group->size += at.size;
}
fz_status pq_group_write(pq_writer *w, pq_codec *k, pq_write_fn write, void *cx, fz_error *err) {
    if (!w->group_rows) return FZ_OK;
    if (!w->footer) w->footer = FZ_NEW(pq_footer);
    pq_footer *f = w->footer;
    if (f->n_groups >= INT16_MAX) return fz_fail(err, FZ_FATAL, "parquet.row-groups", "a file cannot have more than %d row groups", INT16_MAX);
    if (!w->out) FZ_TRY(pq_emit(w, write, cx, "PAR1", 4, err));
    FZ_GROW(f->groups, f->n_groups, f->cap_groups);
    uint32_t chunks = (f->n_groups + 1) * w->n_cols;
    if (chunks > f->cap_chunks) {
        f->cap_chunks = chunks + (f->n_groups ? chunks / 2 : 0);
        f->chunks = fz_realloc(f->chunks, (size_t)f->cap_chunks * sizeof *f->chunks);
    }
    pq_group_rec *g = &f->groups[f->n_groups];
    *g = (pq_group_rec){.offset = w->out, .rows = w->group_rows};
    group_walk walk = {w, k, write, cx, err, FZ_OK, 0, f->chunks + (size_t)f->n_groups * w->n_cols, g};
    pq_walk_paths(w->fields, w->n_fields, on_leaf, &walk);
    if (walk.status != FZ_OK) {
        w->broken = true;
        return walk.status;
    }
    f->n_groups++;
    w->group_rows = 0;
    return FZ_OK;
}
