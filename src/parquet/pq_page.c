/* A page in progress becomes a finished data page (v1): levels and values encoded, bounds taken, compressed, kept in the chunk.
 *
 * Invariants
 *  1. A page with values has bounds, or the chunk gets no column index (all values NaN, or a bound that is too long).
 *  2. A page of NULLs only is PLAIN unless the chunk has a dictionary already, so that no chunk needs a dictionary without entries.
 * Source: parquet.thrift (PageHeader, ColumnIndex); README of parquet-format, "Data Pages". */
#include "parquet/parquet_int.h"
#include <libdeflate.h>

enum { MAX_INDEX_BOUND = 4096 }; /* a bound that cannot be cut (a run of 0xFF) may be that long in the column index */

void pq_chunk_free(pq_chunk *c) {
    if (!c) return;
    for (uint32_t i = 0; i < c->n_pages; i++) fz_free(c->pages[i].bytes);
    fz_buf_free(&c->keys);
    fz_free(c->pages);
    pq_bounds_free(&c->bounds);
    fz_free(c);
}
void pq_page_header(fz_buf *out, int type, uint32_t raw, fz_sv body, uint32_t n_values, int encoding) {
    tc_out o = tc_out_on(out);
    tc_put_i32(&o, 1, type);
    tc_put_i32(&o, 2, (int32_t)raw);
    tc_put_i32(&o, 3, (int32_t)body.n);
    tc_put_i32(&o, 4, (int32_t)libdeflate_crc32(0, body.p, body.n));
    tc_begin(&o, type == PQ_PAGE_DICTIONARY ? 7 : 5);
    tc_put_i32(&o, 1, (int32_t)n_values);
    tc_put_i32(&o, 2, encoding);
    if (type == PQ_PAGE_DATA) {
        tc_put_i32(&o, 3, PQ_ENC_RLE);
        tc_put_i32(&o, 4, PQ_ENC_RLE);
    }
    tc_end(&o);
    tc_end(&o);
}

/* ---- body ---- */
static void put_levels(fz_buf *b, const uint8_t *levels, uint32_t n, uint32_t constant, unsigned max) {
    size_t at = b->len;
    unsigned width = pq_bits(max);
    fz_buf_append(b, "\0\0\0", 4);
    if (levels) pq_rle_encode(b, levels, 1, n, width);
    else pq_rle_run(b, constant, n, width);
    uint32_t len = (uint32_t)(b->len - at - 4);
    memcpy(b->data + at, &len, 4);
}
static void put_booleans(fz_buf *b, const uint8_t *v, uint32_t n) {
    size_t bytes = ((size_t)n + 7) / 8;
    fz_buf_reserve(b, bytes);
    uint8_t *to = b->data + b->len;
    memset(to, 0, bytes);
    for (uint32_t i = 0; i < n; i++) to[i >> 3] |= (uint8_t)((v[i] & 1u) << (i & 7));
    b->len += bytes;
}
static fz_sv page_body(pq_column *c, pq_codec *k, bool dict) {
    fz_buf *b = &k->body;
    b->len = 0;
    if (c->leaf.max_rep) put_levels(b, c->rep.p, c->page_entries, 0, c->leaf.max_rep);
    if (c->leaf.max_def) put_levels(b, c->def.n ? c->def.p : NULL, c->page_entries, c->page_values ? 1 : 0, c->leaf.max_def);
    if (dict) {
        unsigned width = c->dict.n > 1 ? pq_bits(c->dict.n - 1) : 0;
        fz_buf_putc(b, (char)width);
        pq_rle_encode(b, pq_vals(c), c->idx_size, c->page_values, width);
    } else if (c->leaf.phys == PQ_BOOLEAN) put_booleans(b, pq_vals(c), c->page_values);
    else if (c->page_values && b->len <= PQ_HEAD) { /* the usual case: levels go into the room before the values */
        uint8_t *at = c->vals.p + PQ_HEAD - b->len;
        if (b->len) memcpy(at, b->data, b->len);
        return (fz_sv){(const char *)at, b->len + pq_vals_n(c)};
    } else fz_buf_append(b, pq_vals(c), c->page_values ? pq_vals_n(c) : 0);
    return (fz_sv){(const char *)b->data, b->len};
}

/* ---- bounds ---- */
static void range_of_dictionary(pq_range *r, const pq_column *c, bool all_used) {
    const pq_dict *d = &c->dict;
    pq_order o = (pq_order)c->leaf.order;
    uint8_t *used = fz_calloc(d->n ? d->n : 1, 1);
    if (all_used) memset(used, 1, d->n);
    else
        for (uint32_t i = 0; i < c->page_values; i++) used[pq_index_at(c, i)] = 1;
    bool nan = false;
    for (uint32_t e = 0; e < d->n; e++) {
        if (!used[e]) continue;
        uint32_t n;
        const uint8_t *p = pq_dict_value(d, c->leaf.width, e, &n);
        used[e] = pq_value_is_nan(o, p);
        nan |= used[e];
        pq_range_add(r, o, p, n);
    }
    if (nan) {
        r->nans = 0;
        for (uint32_t i = 0; i < c->page_values; i++) r->nans += used[pq_index_at(c, i)];
    }
    fz_free(used);
}
static void put_bound(fz_buf *keys, const pq_leaf *l, const uint8_t *p, uint32_t n, bool upper) {
    fz_buf_append(keys, p, n);
    if (n) pq_zero_bound((pq_order)l->order, keys->data + keys->len - n, n, upper);
}
static void index_bounds(pq_chunk *h, pq_page *pg, const pq_leaf *l, const pq_range *r) {
    pg->key = (uint32_t)h->keys.len;
    bool cut = l->phys == PQ_BYTE_ARRAY, text = pq_is_text(l);
    pg->min_n = cut ? pq_cut(r->min, r->min_n, PQ_BOUND_BYTES, text ? PQ_CUT_UTF8 : PQ_CUT_BYTES) : r->min_n;
    put_bound(&h->keys, l, r->min, pg->min_n, false);
    pg->max_n = cut ? pq_cut(r->max, r->max_n, PQ_BOUND_BYTES, text ? PQ_CUT_UTF8 : PQ_CUT_BYTES) : r->max_n;
    fz_buf_reserve(&h->keys, pg->max_n + 4);
    size_t at = h->keys.len;
    put_bound(&h->keys, l, r->max, pg->max_n, true);
    if (pg->max_n == r->max_n) return;
    if (pq_increment(h->keys.data + at, &pg->max_n, text)) { h->keys.len = at + pg->max_n; return; }
    pg->max_n = r->max_n; /* no greater value of that length: the whole one, if it is not too long */
    h->keys.len = at;
    if (r->max_n > MAX_INDEX_BOUND) { h->no_index = true; pg->max_n = 0; return; }
    fz_buf_append(&h->keys, r->max, r->max_n);
}
static pq_page *add_page(pq_chunk *h) {
    FZ_GROW(h->pages, h->n_pages, h->cap_pages);
    pq_page *pg = &h->pages[h->n_pages++];
    memset(pg, 0, sizeof *pg);
    return pg;
}
static void take_statistics(pq_column *c, pq_page *pg, bool dict) {
    pq_chunk *h = c->chunk;
    pq_range r = {0};
    pg->first_row = h->rows;
    pg->nulls = c->page_entries - c->page_values;
    pg->null_page = c->page_values == 0;
    if (c->page_values && dict) range_of_dictionary(&r, c, !h->n_dict);
    else if (c->page_values && c->leaf.width) pq_range_plain(&r, &c->leaf, pq_vals(c), c->page_values);
    else if (c->page_values) pq_edges_range(&r, &c->edges, c->vals.p);
    if (r.min) {
        index_bounds(h, pg, &c->leaf, &r);
        pq_bounds_merge(&h->bounds, (pq_order)c->leaf.order, r.min, r.min_n, r.max, r.max_n);
    } else if (c->page_values) h->no_index = true;
    h->nans += r.nans;
    h->nulls += pg->nulls;
    h->entries += c->page_entries;
    h->rows += c->page_rows;
}

fz_status pq_page_flush(pq_writer *w, pq_column *c, pq_codec *k, fz_error *err) {
    if (!c->page_entries) return FZ_OK;
    if (!c->chunk) c->chunk = FZ_NEW(pq_chunk);
    pq_chunk *h = c->chunk;
    if (c->mode == PQ_MODE_DICT && c->page_values && !h->n_dict && !pq_column_dict_pays(c)) pq_column_to_plain(c);
    bool dict = c->mode == PQ_MODE_DICT && (c->page_values || h->n_dict);
    pq_page *pg = add_page(h);
    take_statistics(c, pg, dict);
    fz_sv raw = page_body(c, k, dict), body;
    if (raw.n > INT32_MAX) return fz_fail(err, FZ_DATA, "parquet.page-too-large", "a page of column '%s' has %zu bytes", c->leaf.field->name, raw.n);
    FZ_TRY(pq_compress_page(k, w->opt, pq_column_key(w, c) + dict, raw.p, raw.n, dict || c->leaf.phys != PQ_BYTE_ARRAY ? SIZE_MAX : raw.n - pq_vals_n(c), &body, err));
    k->head.len = 0;
    pq_page_header(&k->head, PQ_PAGE_DATA, (uint32_t)raw.n, body, c->page_entries, dict ? PQ_ENC_RLE_DICTIONARY : PQ_ENC_PLAIN);
    pg->size = (uint32_t)(k->head.len + body.n);
    pg->bytes = fz_malloc(pg->size);
    memcpy(pg->bytes, k->head.data, k->head.len);
    memcpy(pg->bytes + k->head.len, body.p, body.n);
    h->raw += k->head.len + raw.n;
    h->size += pg->size;
    if (dict) h->n_dict++;
    else h->n_plain++;
    w->pages_raw += raw.n;
    w->pages_size += body.n;
    c->vals.n = c->def.n = c->rep.n = 0;
    c->page_entries = c->page_rows = c->page_values = 0;
    return FZ_OK;
}
