/* Values into a column's page in progress.
 *
 * A chunk begins with a dictionary. Rows of a dictionary vector cost a table look-up each: the entry's code in the file's
 * dictionary is found once per call and kept in the thread's translation table, whose entries carry the number of the call (so
 * it is never cleared). Whether the dictionary pays is asked after 128, 512, 2048, ... values, so that a column of distinct
 * messages is hashed for a short while only; and again when the first page ends, and when the dictionary outgrows its limit. */
#include "parquet/parquet_int.h"

enum { NULL_CODE = 0xFFFFFFFF, FIRST_CHECK = 128 };

/* ---- one value in PLAIN form ---- */
static inline void fetch(const pq_leaf *l, const col_vec *f, uint32_t row, uint8_t *out) {
    switch ((pq_src)l->src) {
    case PQ_SRC_BOOL: *out = f->u8[row]; break;
    case PQ_SRC_4: memcpy(out, f->i32 + row, 4); break;
    case PQ_SRC_8: memcpy(out, f->i64 + row, 8); break;
    case PQ_SRC_TIME: { int64_t x = (int64_t)f->i32[row] * 1000; memcpy(out, &x, 8); break; }
    case PQ_SRC_DEC4: { int32_t x = (int32_t)f->i128[row]; memcpy(out, &x, 4); break; }
    case PQ_SRC_DEC8: { int64_t x = (int64_t)f->i128[row]; memcpy(out, &x, 8); break; }
    case PQ_SRC_DECN: {
        col_i128 x = f->i128[row];
        for (uint32_t i = l->width; i-- > 0; x >>= 8) out[i] = (uint8_t)x;
        break;
    }
    default: break;
    }
}
/* Where the value of a row stands in PLAIN form: in the vector itself, or in tmp. */
static inline const uint8_t *value_of(const pq_leaf *l, const col_vec *f, uint32_t row, uint8_t *tmp, uint32_t *n) {
    if (l->src == PQ_SRC_BYTES || l->src == PQ_SRC_FIXED) {
        *n = f->off[row + 1] - f->off[row];
        return (const uint8_t *)f->bytes + f->off[row];
    }
    fetch(l, f, row, tmp);
    *n = l->width;
    return tmp;
}

/* ---- indices ---- */
static void widen(pq_column *c, uint8_t size) {
    pq_bytes nb = {0};
    uint32_t n = c->page_values;
    pq_bytes_room(&nb, PQ_HEAD + (size_t)n * size);
    uint8_t *to = nb.p + PQ_HEAD;
    const uint8_t *from = c->idx_size ? pq_vals(c) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = c->idx_size == 0 ? 0 : c->idx_size == 1 ? from[i] : ((const uint16_t *)(const void *)from)[i];
        if (size == 1) to[i] = (uint8_t)x;
        else if (size == 2) ((uint16_t *)(void *)to)[i] = (uint16_t)x;
        else ((uint32_t *)(void *)to)[i] = x;
    }
    nb.n = PQ_HEAD + n * size;
    pq_bytes_free(&c->vals);
    c->vals = nb;
    c->idx_size = size;
}
static void put_codes(pq_column *c, const uint32_t *codes, uint32_t n) {
    uint8_t need = c->dict.n <= 1 ? 0 : c->dict.n <= 256 ? 1 : c->dict.n <= 65536 ? 2 : 4;
    if (need > c->idx_size) widen(c, need);
    if (c->idx_size) {
        if (!c->vals.n) {
            pq_bytes_room(&c->vals, PQ_HEAD);
            c->vals.n = PQ_HEAD;
        }
        pq_bytes_room(&c->vals, (size_t)n * c->idx_size);
        uint8_t *to = c->vals.p + c->vals.n;
        if (c->idx_size == 1) for (uint32_t i = 0; i < n; i++) to[i] = (uint8_t)codes[i];
        else if (c->idx_size == 2) for (uint32_t i = 0; i < n; i++) ((uint16_t *)(void *)to)[i] = (uint16_t)codes[i];
        else memcpy(to, codes, (size_t)n * 4);
        c->vals.n += n * c->idx_size;
    }
    c->page_values += n;
    c->dict_values += n;
}
/* Bytes that the page's values would take in PLAIN form. */
static uint64_t raw_bytes(const pq_column *c) {
    if (c->leaf.width) return (uint64_t)c->page_values * c->leaf.width;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->page_values; i++) {
        uint32_t n;
        pq_dict_value(&c->dict, 0, pq_index_at(c, i), &n);
        sum += n + 4u;
    }
    return sum;
}
static uint64_t coded_bytes(const pq_column *c) {
    unsigned bits = c->dict.n > 1 ? pq_bits(c->dict.n - 1) : 0;
    return c->dict.vals.n + (uint64_t)c->page_values * bits / 8;
}
bool pq_column_dict_pays(const pq_column *c) {
    uint64_t coded = coded_bytes(c) + 48; /* 48: a page header and a compressed frame more */
    return coded < (uint64_t)c->page_values * 4 || coded < raw_bytes(c);
}

void pq_column_to_plain(pq_column *c) {
    pq_bytes nb = {0};
    pq_bytes_room(&nb, PQ_HEAD + raw_bytes(c));
    nb.n = PQ_HEAD;
    for (uint32_t i = 0; i < c->page_values; i++) {
        uint32_t n;
        const uint8_t *p = pq_dict_value(&c->dict, c->leaf.width, pq_index_at(c, i), &n);
        if (!c->leaf.width) pq_bytes_put(&nb, &n, 4);
        pq_bytes_put(&nb, p, n);
    }
    pq_bytes_free(&c->vals);
    pq_dict_free(&c->dict);
    c->vals = nb;
    c->mode = PQ_MODE_PLAIN;
    if (c->leaf.width) return;
    uint32_t n, at = PQ_HEAD;
    for (uint32_t i = 0; i < c->page_values; i++, at += n + 4) {
        memcpy(&n, nb.p + at, 4);
        pq_edges_add(&c->edges, nb.p, at, i != 0);
    }
}
/* Few repeats after many values: plain is as good, and hashing is saved. The more values were seen the more repeats are asked for. */
static bool looks_distinct(const pq_column *c) {
    uint64_t raw = raw_bytes(c), coded = coded_bytes(c);
    unsigned percent = c->page_values < 512 ? 98 : c->page_values < 2048 ? 92 : c->page_values < 8192 ? 80 : 66;
    return coded * 100 > raw * percent;
}
static fz_status check_dictionary(pq_writer *w, pq_column *c, pq_codec *k, fz_error *err) {
    bool first_page = !c->chunk || !c->chunk->n_dict;
    bool full = c->dict.vals.n > w->opt->dict_size;
    if (c->dict_values >= c->next_check) {
        c->next_check = c->dict_values < (1u << 29) ? c->dict_values * 4 : UINT32_MAX;
        if (first_page && looks_distinct(c)) { pq_column_to_plain(c); return FZ_OK; }
    }
    if (!full) return FZ_OK;
    if (first_page && !pq_column_dict_pays(c)) { pq_column_to_plain(c); return FZ_OK; }
    FZ_TRY(pq_page_flush(w, c, k, err));
    c->mode = PQ_MODE_PLAIN; /* the dictionary stays for the pages that use it; its table does not */
    fz_free(c->dict.slot);
    c->dict.slot = NULL;
    return FZ_OK;
}

/* ---- values of rows[0..n): dictionary ---- */
static void codes_of_dictionary(pq_column *c, pq_codec *k, const col_vec *v, const uint32_t *rows, uint32_t n, uint32_t *codes) {
    const pq_leaf *l = &c->leaf;
    const uint32_t *idx = v->idx;
    pq_xlat *x = k->xlat;
    uint32_t gen = k->gen, last = NULL_CODE, code = 0;
    bool constant = v->dict->len == 1;
    for (uint32_t i = 0; i < (constant ? 1 : n); i++) {
        uint32_t e = idx[rows[i]];
        if (e != last) {
            last = e;
            if (x[e].gen == gen) code = x[e].code;
            else {
                uint8_t tmp[16];
                uint32_t len;
                const uint8_t *p = value_of(l, v->dict, e, tmp, &len);
                code = pq_dict_code(&c->dict, l->width, p, len);
                x[e] = (pq_xlat){gen, code};
            }
        }
        codes[i] = code;
    }
    if (constant && c->dict.n > 1)
        for (uint32_t i = 1; i < n; i++) codes[i] = code;
}
/* A value of at most 16 bytes as two numbers, which with its length are all of it. */
static inline void short_key(const uint8_t *p, uint32_t n, uint64_t *a, uint64_t *b) {
    *a = *b = 0;
    if (n >= 8) {
        memcpy(a, p, 8);
        memcpy(b, p + n - 8, 8);
    } else if (n >= 4) {
        memcpy(a, p, 4);
        memcpy(b, p + n - 4, 4);
    } else if (n) *a = (uint64_t)p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
}
/* Codes of rows[0..) while the dictionary has few entries: most values are found by their bytes, without hash or comparison. How many were done. */
static uint32_t codes_of_few(pq_column *c, pq_codec *k, const col_vec *v, const uint32_t *rows, uint32_t n, uint32_t *codes) {
    const pq_leaf *l = &c->leaf;
    uint32_t i = 0;
    for (; i < n && c->dict.n <= PQ_MEMOS; i++) {
        uint8_t tmp[16];
        uint32_t len;
        const uint8_t *p = value_of(l, v, rows[i], tmp, &len);
        if (len > 16) { codes[i] = pq_dict_code(&c->dict, l->width, p, len); continue; }
        uint64_t a, b;
        short_key(p, len, &a, &b);
        pq_memo *m = &k->memo[((a ^ (b << 29 | b >> 35)) * 0x9E3779B97F4A7C15u + len) >> 58];
        if (m->gen != k->gen || m->a != a || m->b != b || m->n != len) *m = (pq_memo){a, b, k->gen, len, pq_dict_code(&c->dict, l->width, p, len)};
        codes[i] = m->code;
    }
    return i;
}
static void codes_of_flat(pq_column *c, pq_codec *k, const col_vec *v, const uint32_t *rows, uint32_t n, uint32_t *codes) {
    const pq_leaf *l = &c->leaf;
    uint8_t tmp[16];
    uint32_t len, i = codes_of_few(c, k, v, rows, n, codes);
    if (!l->width) {
        pq_dict_codes(&c->dict, v->bytes, v->off, rows + i, n - i, codes + i);
        return;
    }
    for (; i < n; i++) {
        const uint8_t *p = value_of(l, v, rows[i], tmp, &len);
        if (i) { /* neighbours are often equal */
            uint32_t m;
            const uint8_t *q = pq_dict_value(&c->dict, l->width, codes[i - 1], &m);
            if (m == len && memcmp(p, q, len) == 0) { codes[i] = codes[i - 1]; continue; }
        }
        codes[i] = pq_dict_code(&c->dict, l->width, p, len);
    }
}

/* ---- values of rows[0..n): plain ---- */
static inline void copy_text(uint8_t *to, const char *from, uint32_t n) { /* most are short: no call for them */
    if (n > 96) memcpy(to, from, n);
    else if (n >= 16) {
        for (uint32_t i = 0; i + 16 < n; i += 16) memcpy(to + i, from + i, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else
        for (uint32_t i = 0; i < n; i++) to[i] = (uint8_t)from[i];
}
static void plain_strings(pq_column *c, const col_vec *v, const uint32_t *rows, uint32_t n) {
    enum { AHEAD = 6 }; /* rows of one file are scattered over the batch: ask for their bytes in time */
    const uint32_t *idx = v->idx;
    const col_vec *f = idx ? v->dict : v;
    pq_bytes b = c->vals;
    pq_edges e = c->edges;
    bool any = c->page_values != 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i + AHEAD < n) {
            uint32_t next = rows[i + AHEAD];
            const char *at = f->bytes + f->off[idx ? idx[next] : next];
            __builtin_prefetch(at);
            __builtin_prefetch(at + 64);
        }
        uint32_t r = idx ? idx[rows[i]] : rows[i], from = f->off[r], len = f->off[r + 1] - from;
        pq_bytes_room(&b, (size_t)len + 4);
        memcpy(b.p + b.n, &len, 4);
        copy_text(b.p + b.n + 4, f->bytes + from, len);
        if (!any || len < 8 || pq_edges_may(&e, b.p + b.n + 4)) pq_edges_add(&e, b.p, b.n, any);
        any = true;
        b.n += len + 4;
    }
    c->vals = b;
    c->edges = e;
}
static void plain_fixed(pq_column *c, const col_vec *v, const uint32_t *rows, uint32_t n) {
    const pq_leaf *l = &c->leaf;
    const uint32_t *idx = v->idx;
    const col_vec *f = idx ? v->dict : v;
    pq_bytes_room(&c->vals, (size_t)n * l->width);
    uint8_t *to = c->vals.p + c->vals.n;
    c->vals.n += n * l->width;
    if (l->src == PQ_SRC_4) {
        for (uint32_t i = 0; i < n; i++) memcpy(to + (size_t)i * 4, f->i32 + (idx ? idx[rows[i]] : rows[i]), 4);
    } else if (l->src == PQ_SRC_8) {
        for (uint32_t i = 0; i < n; i++) memcpy(to + (size_t)i * 8, f->i64 + (idx ? idx[rows[i]] : rows[i]), 8);
    } else {
        for (uint32_t i = 0; i < n; i++, to += l->width) {
            uint32_t len;
            const uint8_t *p = value_of(l, f, idx ? idx[rows[i]] : rows[i], to, &len);
            if (p != to) memcpy(to, p, len);
        }
    }
}
static fz_status append_values(pq_writer *w, pq_column *c, const col_vec *v, const uint32_t *rows, uint32_t n, pq_codec *k, fz_error *err) {
    if (!n) return FZ_OK;
    if (c->mode == PQ_MODE_DICT) {
        if (k->codes_cap < n) {
            k->codes_cap = n > PQ_ROWS_AT_ONCE ? n : PQ_ROWS_AT_ONCE;
            k->codes = fz_realloc(k->codes, (size_t)k->codes_cap * sizeof *k->codes);
        }
        if (v->idx) codes_of_dictionary(c, k, v, rows, n, k->codes);
        else codes_of_flat(c, k, v, rows, n, k->codes);
        put_codes(c, k->codes, n);
        return c->dict_values >= c->next_check || c->dict.vals.n > w->opt->dict_size ? check_dictionary(w, c, k, err) : FZ_OK;
    }
    if (!c->vals.n) {
        pq_bytes_room(&c->vals, PQ_HEAD);
        c->vals.n = PQ_HEAD;
    }
    if (c->leaf.width) plain_fixed(c, v, rows, n);
    else plain_strings(c, v, rows, n);
    c->page_values += n;
    return FZ_OK;
}

/* ---- rows ---- */
/* A new call: codes of an earlier vector are void. */
static void begin_vector(pq_codec *k, const col_vec *v) {
    if (v->idx && k->xlat_cap < v->dict->len) {
        fz_free(k->xlat);
        k->xlat_cap = v->dict->len + v->dict->len / 2;
        k->xlat = fz_calloc(k->xlat_cap, sizeof *k->xlat);
    }
    if (++k->gen == 0) {
        if (k->xlat) memset(k->xlat, 0, (size_t)k->xlat_cap * sizeof *k->xlat);
        memset(k->memo, 0, sizeof k->memo);
        k->gen = 1;
    }
}
/* How many of rows[0..n) go into this page: values of variable length may fill it up early. At least one. */
static uint32_t fitting(const pq_writer *w, const pq_column *c, const col_vec *v, const uint32_t *rows, uint32_t n) {
    if (c->leaf.width || v->type->kind == COL_NULL) return n;
    const col_vec *f = v->idx ? v->dict : v;
    size_t held = c->mode == PQ_MODE_PLAIN ? c->vals.n : 0, limit = w->opt->page_size;
    uint64_t all = f->len ? (uint64_t)(f->off[f->len] - f->off[0]) : 0;
    if (c->mode == PQ_MODE_DICT && v->idx ? all <= limit : held + all + 4ull * n <= limit) return n;
    uint32_t i = 0;
    do {
        uint32_t r = v->idx ? v->idx[rows[i]] : rows[i];
        held += f->off[r + 1] - f->off[r] + 4;
        i++;
    } while (i < n && held < limit);
    return i;
}
static bool page_full(const pq_writer *w, const pq_column *c) {
    return c->page_rows >= w->opt->page_rows || c->vals.n >= w->opt->page_size;
}
static fz_status end_step(pq_writer *w, pq_column *c, pq_codec *k, fz_error *err) {
    return page_full(w, c) ? pq_page_flush(w, c, k, err) : FZ_OK;
}
/* Definition levels of a flat column stay implicit while the page is all values or all NULL. */
static void put_flat_levels(pq_column *c, const col_vec *v, const uint32_t *rows, uint32_t m, uint32_t n_values) {
    bool implicit = !c->def.n && ((n_values == m && c->page_values == c->page_entries) || (!n_values && !c->page_values));
    if (implicit) return;
    if (!c->def.n) {
        pq_bytes_room(&c->def, (size_t)c->page_entries + m);
        if (c->page_entries) memset(c->def.p, c->page_values ? 1 : 0, c->page_entries);
        c->def.n = c->page_entries;
    }
    pq_bytes_room(&c->def, m);
    uint8_t *d = c->def.p + c->def.n;
    c->def.n += m;
    if (n_values == m || !n_values) { memset(d, n_values ? 1 : 0, m); return; }
    for (uint32_t i = 0; i < m; i++) d[i] = !col_is_null(v, rows[i]);
}
fz_status pq_column_append_flat(pq_writer *w, pq_column *c, const col_vec *v, const uint32_t *sel, uint32_t n, pq_codec *k, fz_error *err) {
    begin_vector(k, v);
    bool nulls = v->type->kind == COL_NULL || v->valid || (v->idx && v->dict->valid);
    while (n) {
        uint32_t m = w->opt->page_rows - c->page_rows;
        if (m > n) m = n;
        if (m > PQ_ROWS_AT_ONCE) m = PQ_ROWS_AT_ONCE;
        m = fitting(w, c, v, sel, m);
        const uint32_t *rows = sel;
        uint32_t n_values = m;
        if (nulls) {
            if (k->rows_cap < m) {
                k->rows_cap = PQ_ROWS_AT_ONCE;
                k->rows = fz_realloc(k->rows, (size_t)k->rows_cap * sizeof *k->rows);
            }
            n_values = 0;
            for (uint32_t i = 0; i < m; i++)
                if (!col_is_null(v, sel[i])) k->rows[n_values++] = sel[i];
            rows = k->rows;
        }
        if (c->leaf.max_def) put_flat_levels(c, v, sel, m, n_values);
        c->page_entries += m;
        c->page_rows += m;
        FZ_TRY(append_values(w, c, v, rows, n_values, k, err));
        FZ_TRY(end_step(w, c, k, err));
        sel += m;
        n -= m;
    }
    return FZ_OK;
}
fz_status pq_column_append_shred(pq_writer *w, pq_column *c, const pq_shred *s, pq_codec *k, fz_error *err) {
    static const col_vec no_values = {.type = NULL};
    if (s->vec) begin_vector(k, s->vec);
    uint32_t at = 0, value = 0;
    while (at < s->n) { /* steps of whole rows; a page begins with a new row */
        uint32_t end = at, rows = 0, values = 0;
        size_t bytes = 0, limit = w->opt->page_size;
        while (end < s->n && (s->rep[end] || (rows < 256 && rows + c->page_rows < w->opt->page_rows && bytes < limit))) {
            if (!s->rep[end]) rows++;
            if (s->def[end] == c->leaf.max_def) {
                bytes += c->leaf.width ? c->leaf.width : col_sv(s->vec, s->row[value + values]).n + 4;
                values++;
            }
            end++;
        }
        if (c->leaf.max_def) pq_bytes_put(&c->def, s->def + at, end - at);
        if (c->leaf.max_rep) pq_bytes_put(&c->rep, s->rep + at, end - at);
        c->page_entries += end - at;
        c->page_rows += rows;
        FZ_TRY(append_values(w, c, s->vec ? s->vec : &no_values, s->row + value, values, k, err));
        FZ_TRY(end_step(w, c, k, err));
        at = end;
        value += values;
    }
    return FZ_OK;
}

void pq_column_reset(pq_column *c) {
    pq_bytes_free(&c->vals);
    pq_bytes_free(&c->def);
    pq_bytes_free(&c->rep);
    pq_dict_free(&c->dict);
    pq_chunk_free(c->chunk);
    c->chunk = NULL;
    c->page_entries = c->page_rows = c->page_values = c->dict_values = 0;
    c->next_check = FIRST_CHECK;
    c->idx_size = 0;
    c->mode = c->leaf.phys == PQ_BOOLEAN ? PQ_MODE_PLAIN : PQ_MODE_DICT;
}
size_t pq_column_bytes(const pq_column *c) {
    size_t n = (size_t)c->vals.cap + c->def.cap + c->rep.cap + c->dict.vals.cap + (size_t)c->dict.ent_cap * sizeof(pq_entry);
    if (c->dict.slot) n += ((size_t)c->dict.mask + 1) * sizeof *c->dict.slot;
    if (c->chunk) n += sizeof *c->chunk + c->chunk->size + c->chunk->n_pages * 16u + c->chunk->keys.cap + (size_t)c->chunk->cap_pages * sizeof(pq_page) + c->chunk->bounds.min.cap + c->chunk->bounds.max.cap;
    if (c->totals) n += sizeof *c->totals + c->totals->bounds.min.cap + c->totals->bounds.max.cap;
    return n;
}
uint64_t pq_column_raw(const pq_column *c) {
    uint64_t n = c->dict.vals.n;
    if (c->mode == PQ_MODE_PLAIN) return n + (c->leaf.phys == PQ_BOOLEAN ? c->page_values / 8 : pq_vals_n(c));
    return n + (c->dict.n > 1 ? (uint64_t)c->page_values * pq_bits(c->dict.n - 1) / 8 : 0);
}
