/* A column chunk to levels and values: page headers, checksums, decompression, levels, values. */
#include "parquet/pq_read_int.h"
#include <libdeflate.h>

typedef struct page_header {
    int64_t type, raw, size, n_values, encoding, def_encoding, rep_encoding, def_bytes, rep_bytes;
    int64_t crc;
    bool has_crc, compressed;
} page_header;

static void sub_header(tc_in *in, int type, page_header *h, bool v2) {
    int id, t;
    if (!tc_struct(in, type)) return;
    while (tc_field(in, &id, &t)) {
        if (id == 1) h->n_values = tc_int(in, t);
        else if (v2 && id == 4) h->encoding = tc_int(in, t);
        else if (v2 && id == 5) h->def_bytes = tc_int(in, t);
        else if (v2 && id == 6) h->rep_bytes = tc_int(in, t);
        else if (v2 && id == 7) h->compressed = tc_bool(t);
        else if (!v2 && id == 2) h->encoding = tc_int(in, t);
        else if (!v2 && id == 3 && h->type == PQ_PAGE_DATA) h->def_encoding = tc_int(in, t);
        else if (!v2 && id == 4 && h->type == PQ_PAGE_DATA) h->rep_encoding = tc_int(in, t);
        else tc_skip(in, t);
    }
}
static bool read_header(tc_in *in, page_header *h) {
    int id, t;
    *h = (page_header){.type = -1, .raw = -1, .size = -1, .n_values = -1, .encoding = -1, .def_encoding = PQ_ENC_RLE, .rep_encoding = PQ_ENC_RLE, .compressed = true};
    in->depth = 0;
    in->last[0] = 0;
    while (tc_field(in, &id, &t)) switch (id) {
        case 1: h->type = tc_int(in, t); break;
        case 2: h->raw = tc_int(in, t); break;
        case 3: h->size = tc_int(in, t); break;
        case 4: h->crc = tc_int(in, t); h->has_crc = true; break;
        case 5: case 7: sub_header(in, t, h, false); break;
        case 8: sub_header(in, t, h, true); break;
        default: tc_skip(in, t);
    }
    return !in->bad && h->raw >= 0 && h->size >= 0 && h->size <= in->end - in->p && h->raw <= PQ_MAX_PAGE;
}
/* A page cannot grow more than its codec can: a header that claims so is not believed. */
static bool plausible(int codec, int64_t raw, int64_t size) {
    int64_t times = codec == PQ_CODEC_SNAPPY ? 64 : codec == PQ_CODEC_LZ4_RAW ? 256 : codec == PQ_CODEC_GZIP ? 1040 : codec == PQ_CODEC_ZSTD ? 50000 : 0;
    return !times || raw <= (size + 16) * times;
}

typedef struct chunk_in {
    pq_reader *r;
    const pq_node *node;
    const pq_chunk_meta *meta;
    fz_arena *a;
    pq_levels *out;
    uint8_t *page; /* decompressed */
    size_t page_cap;
    fz_error *err;
} chunk_in;

static fz_status inflate(chunk_in *c, const uint8_t *p, size_t n, size_t raw, const uint8_t **out) {
    if (c->meta->codec == PQ_CODEC_UNCOMPRESSED) {
        if (n != raw) return pq_corrupt(c->err, "an uncompressed page has two sizes");
        *out = p;
        return FZ_OK;
    }
    if (!plausible(c->meta->codec, (int64_t)raw, (int64_t)n)) return pq_corrupt(c->err, "a page claims a size that its codec cannot reach");
    if (c->page_cap < raw) {
        fz_free(c->page);
        c->page = fz_malloc(raw + 16);
        c->page_cap = raw;
    }
    *out = c->page ? c->page : p;
    return raw ? pq_decompress(c->r->codec, c->meta->codec, p, n, c->page, raw, c->err) : FZ_OK;
}
static fz_status levels(chunk_in *c, const uint8_t *p, size_t n, unsigned max, uint32_t nv, uint8_t *to) {
    pq_rle_in r;
    uint32_t tmp[1024];
    pq_rle_open(&r, p, n, pq_bits(max));
    for (uint32_t at = 0, m; at < nv; at += m) {
        m = nv - at < 1024 ? nv - at : 1024;
        if (!pq_rle_read(&r, tmp, m)) return pq_corrupt(c->err, "a page has fewer levels than values");
        for (uint32_t i = 0; i < m; i++) {
            if (tmp[i] > max) return pq_corrupt(c->err, "a level is above its maximum");
            to[at + i] = (uint8_t)tmp[i];
        }
    }
    return FZ_OK;
}
static uint8_t *room(fz_arena *a, uint8_t **v, uint32_t *cap, uint32_t n, uint32_t more) {
    if (*cap - n < more) {
        uint32_t want = n + more;
        if (want < *cap + *cap / 2) want = *cap + *cap / 2;
        *v = fz_arena_realloc(a, *v, *cap, want);
        *cap = want;
    }
    return *v + n;
}
/* Definition levels that are all at the maximum are not kept. */
static fz_status def_levels(chunk_in *c, const uint8_t *p, size_t n, uint32_t nv, uint32_t *n_values) {
    pq_levels *o = c->out;
    unsigned max = c->node->def;
    uint64_t h = 0;
    unsigned shift = 0;
    size_t at = 0;
    while (at < n && shift < 35) {
        h |= (uint64_t)(p[at] & 0x7f) << shift;
        shift += 7;
        if (!(p[at++] & 0x80)) break;
    }
    *n_values = nv;
    if (!o->def && at < n && !(h & 1) && h >> 1 >= nv && p[at] == max) return FZ_OK;
    if (!o->def) {
        room(c->a, &o->def, &o->cap_def, 0, o->n + nv > o->values.expect ? o->n + nv : o->values.expect);
        memset(o->def, (int)max, o->n);
    }
    uint8_t *to = room(c->a, &o->def, &o->cap_def, o->n, nv);
    FZ_TRY(levels(c, p, n, max, nv, to));
    uint32_t present = 0;
    for (uint32_t i = 0; i < nv; i++) present += to[i] == max;
    *n_values = present;
    return FZ_OK;
}
static fz_status rep_levels(chunk_in *c, const uint8_t *p, size_t n, uint32_t nv) {
    return levels(c, p, n, c->node->rep, nv, room(c->a, &c->out->rep, &c->out->cap_rep, c->out->n, nv));
}
static fz_status values(chunk_in *c, int encoding, const uint8_t *p, size_t n, uint32_t nv) {
    pq_values *v = &c->out->values;
    if (encoding != PQ_ENC_RLE_DICTIONARY && encoding != PQ_ENC_PLAIN_DICTIONARY) {
        if (!nv) return FZ_OK;
        FZ_TRY(pq_values_expand(v, c->a, c->err));
        return pq_decode_values(v, c->node->type, encoding, p, n, nv, c->a, c->err);
    }
    if (v->idx || !v->n) return pq_values_append_indices(v, p, n, nv, c->a, c->err);
    pq_values more = {.width = v->width, .dict = v->dict}; /* plain pages before: the values of these follow */
    FZ_TRY(pq_values_append_indices(&more, p, n, nv, c->a, c->err));
    if (!nv) return FZ_OK;
    const pq_values *d = v->dict;
    for (uint32_t i = 0; i < nv; i++) { /* seldom: one by one */
        uint32_t k = more.idx[i], len = v->width ? v->width : d->off[k + 1] - d->off[k];
        uint8_t *one = fz_arena_alloc(c->a, len + 4u);
        memcpy(one, &len, 4);
        memcpy(one + 4, v->width ? d->fix + (size_t)k * len : d->data + d->off[k], len);
        if (c->node->type == PQ_BOOLEAN) return pq_corrupt(c->err, "a dictionary of booleans");
        FZ_TRY(pq_decode_values(v, c->node->type, PQ_ENC_PLAIN, v->width ? one + 4 : one, v->width ? len : len + 4u, 1, c->a, c->err));
    }
    return FZ_OK;
}
static bool take_levels(const uint8_t **p, size_t *n, const uint8_t **levels_at, uint32_t *len) {
    if (*n < 4) return false;
    memcpy(len, *p, 4);
    if (*len > *n - 4) return false;
    *levels_at = *p + 4;
    *p += 4 + *len;
    *n -= 4 + *len;
    return true;
}
static fz_status data_page(chunk_in *c, const page_header *h, const uint8_t *body) {
    const uint8_t *p = body, *def = NULL, *rep = NULL;
    size_t n = (size_t)h->raw;
    uint32_t nv = (uint32_t)h->n_values, n_values = nv, def_n = 0, rep_n = 0;
    if (!nv) return FZ_OK;
    if (h->type == PQ_PAGE_DATA) {
        if (h->def_encoding != PQ_ENC_RLE || h->rep_encoding != PQ_ENC_RLE) {
            bool counts = (c->node->def && h->def_encoding != PQ_ENC_RLE) || (c->node->rep && h->rep_encoding != PQ_ENC_RLE);
            if (counts) return fz_fail(c->err, FZ_FATAL, "parquet.encoding", "levels in encoding BIT_PACKED are not supported");
        }
        FZ_TRY(inflate(c, body, (size_t)h->size, n, &p));
        if (c->node->rep && !take_levels(&p, &n, &rep, &rep_n)) return pq_corrupt(c->err, "a page is shorter than its levels");
        if (c->node->def && !take_levels(&p, &n, &def, &def_n)) return pq_corrupt(c->err, "a page is shorter than its levels");
    } else {
        if (h->def_bytes < 0 || h->rep_bytes < 0 || h->def_bytes + h->rep_bytes > h->size || h->def_bytes + h->rep_bytes > h->raw) return pq_corrupt(c->err, "a page is shorter than its levels");
        rep = body;
        rep_n = (uint32_t)h->rep_bytes;
        def = body + rep_n;
        def_n = (uint32_t)h->def_bytes;
        n -= rep_n + def_n;
        p = def + def_n;
        size_t stored = (size_t)h->size - rep_n - def_n;
        if (h->compressed && n) FZ_TRY(inflate(c, p, stored, n, &p));
        else if (stored < n) return pq_corrupt(c->err, "a page is shorter than it says");
    }
    if (c->node->rep) FZ_TRY(rep_levels(c, rep, rep_n, nv));
    if (c->node->def) FZ_TRY(def_levels(c, def, def_n, nv, &n_values));
    c->out->n += nv;
    return values(c, (int)h->encoding, p, n, n_values);
}
static fz_status dictionary_page(chunk_in *c, const page_header *h, const uint8_t *body) {
    pq_values *v = &c->out->values;
    if (v->dict) return pq_corrupt(c->err, "a column chunk has two dictionaries");
    if (h->encoding != PQ_ENC_PLAIN && h->encoding != PQ_ENC_PLAIN_DICTIONARY)
        return fz_fail(c->err, FZ_FATAL, "parquet.encoding", "a dictionary page uses encoding %d, which is not supported", (int)h->encoding);
    const uint8_t *p;
    FZ_TRY(inflate(c, body, (size_t)h->size, (size_t)h->raw, &p));
    v->dict = FZ_ANEW(c->a, pq_values);
    v->dict->width = v->width;
    if (!h->n_values) return FZ_OK;
    return pq_decode_values(v->dict, c->node->type, PQ_ENC_PLAIN, p, (size_t)h->raw, (uint32_t)h->n_values, c->a, c->err);
}
static fz_status pages(chunk_in *c, const uint8_t *p, size_t n) {
    tc_in in = tc_in_on(p, n);
    page_header h;
    while (c->out->n < c->meta->n_values) {
        if (!read_header(&in, &h)) return pq_corrupt(c->err, "a page header cannot be parsed");
        const uint8_t *body = in.p;
        in.p += h.size;
        if (h.has_crc && (uint32_t)h.crc != libdeflate_crc32(0, body, (size_t)h.size)) return pq_corrupt(c->err, "a page has another checksum than its header says");
        if (h.type != PQ_PAGE_DATA && h.type != PQ_PAGE_DATA_V2 && h.type != PQ_PAGE_DICTIONARY) continue;
        int64_t most = h.type == PQ_PAGE_DICTIONARY ? PQ_MAX_GROUP_VALUES : c->meta->n_values - c->out->n;
        if (h.n_values < 0 || h.n_values > most) return pq_corrupt(c->err, "a page has more values than its column chunk");
        FZ_TRY(h.type == PQ_PAGE_DICTIONARY ? dictionary_page(c, &h, body) : data_page(c, &h, body));
    }
    return FZ_OK;
}
fz_status pq_chunk_read(pq_reader *r, uint32_t group, uint32_t leaf, fz_arena *a, pq_levels *out, fz_error *err) {
    static const uint32_t width[] = {1, 4, 8, 12, 4, 8, 0, 0};
    const pq_node *node = &r->nodes[r->leaf_node[leaf]];
    const pq_chunk_meta *m = &r->groups[group].chunks[leaf];
    if (m->n_values > PQ_MAX_GROUP_VALUES) return fz_fail(err, FZ_FATAL, "parquet.too-large", "a row group has more than %u values in a column", PQ_MAX_GROUP_VALUES);
    out->values.width = node->type == PQ_FLBA ? (uint32_t)node->type_length : width[node->type];
    out->loaded = true;
    out->values.expect = m->n_values < PQ_EXPECT ? (uint32_t)m->n_values : PQ_EXPECT;
    out->values.expect_bytes = m->raw > 0 && m->raw / 64 <= m->size ? (m->raw < PQ_EXPECT_BYTES ? (size_t)m->raw : PQ_EXPECT_BYTES) : 0;
    if (!m->n_values) return FZ_OK;
    uint64_t start = (uint64_t)(m->dict_page >= 0 ? m->dict_page : m->data_page);
    uint8_t *bytes = fz_malloc((size_t)m->size + 1);
    chunk_in c = {.r = r, .node = node, .meta = m, .a = a, .out = out, .err = err};
    fz_status s = r->read(r->cx, start, (size_t)m->size, bytes, err);
    if (s == FZ_OK) s = pages(&c, bytes, (size_t)m->size);
    fz_free(c.page);
    fz_free(bytes);
    return s;
}
