/* The format 'msgpack': one MessagePack map a record becomes one row. Keys of the map become the columns of the same name; what is no column is checked and skipped.
 *
 * What becomes of a value, by the column's type
 *   nil                          NULL
 *   bool, integer, float, str    as the same value in a JSON document would (Flink's rules: '12' goes into INT, '2025-01-02 03:04:05' into TIMESTAMP, 1 never into BOOLEAN ...)
 *   bin                          the same as str; BYTES take the bytes of either as they are
 *   ext                          EventTime and timestamps into TIMESTAMP, TIMESTAMP_LTZ, DATE, TIME, and as ISO text into STRING; others: Base64 in STRING, their bytes in BYTES
 *   map                          ROW, MAP; in STRING as JSON text          array     ARRAY; in STRING as JSON text
 * A key that comes twice: the last value counts. Keys may be str or bin; integers and the like are their text.
 *
 * With msgpack.json-field = 'log', a record whose `log` is a text with a JSON object gets that object's keys as if they were its own, read as the format 'json' reads them; where both have a value that is
 * not NULL, the record's own stays: what a program prints cannot forge what the agent says about it. A text that is no JSON object is just a text.
 *
 * What becomes of a record
 *   null, or no bytes at all                 no row, counted as unparseable
 *   no map, broken, bytes after its end      ignore-parse-errors: no row, counted as unparseable; otherwise a reject "msgpack.parse"
 *   a value that its column cannot take      ignore-parse-errors: NULL; otherwise a reject that names the field
 *   larger than the ceiling                  reject "record.too-large"
 */
#include "decode/msgpack_int.h"
#include "col/datetime.h"
#include "col/numtext.h"
#include "decode/json_fast_int.h"
#include <stdio.h>

const fz_option dec_msgpack_options[] = {
    {.name = "msgpack.ignore-parse-errors", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "A value that its column cannot take becomes NULL and a record that cannot be read gives no row (counted in frazil_decode_unparseable_total); otherwise such a record is a rejected row."},
    {.name = "msgpack.timestamp-format.standard", .type = FZ_OPT_ENUM, .dflt = "SQL", .allowed = "SQL|ISO-8601", .doc = "Form of timestamps that come as text: SQL is '2026-09-16 12:34:56.123', ISO-8601 is '2026-09-16T12:34:56.123'; both end in 'Z' for TIMESTAMP_LTZ."},
    {.name = "msgpack.json-field", .type = FZ_OPT_STRING, .doc = "Name of a key, 'log' for FireLens. When a record has a text under it that is a JSON object, the object's keys are taken as if they were the record's own. Where both have a value, the record's own stays."},
    {0}};

static bool put_value(mp_decoder *d, js_col *c, const uint8_t **p, const uint8_t *end, uint32_t depth);

static bool broken(mp_decoder *d) { return js_error(&d->json.parser, "the record ends in the middle of a value"); }
static bool mismatch(mp_decoder *d, const char *what) { return js_error(&d->json.parser, "%s does not fit the column's type", what); }

/* ---- scalars ---- */

static void put_text(mp_decoder *d, js_col *c, const uint8_t *p, uint32_t n) {
    fz_sv s = mpd_utf8(d, (fz_sv){(const char *)p, n});
    js_put_bytes(c, s.p, s.n);
}

/* n bytes from p, where `left` can be read, to `to`, which has 64 more; true: one of them is not ASCII. */
static inline bool copy_text(char *to, const uint8_t *p, size_t n, size_t left) {
    uint64_t a, b, high = 0;
#ifdef __SSE2__
    if (left >= 64 && n <= 64) { /* the same steps for every length: lengths are what the processor cannot guess */
        uint64_t bits = 0;
        for (unsigned i = 0; i < 64; i += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
            _mm_storeu_si128((__m128i *)(void *)(to + i), v);
            bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(v) << i;
        }
        return n && bits << (64 - n);
    }
#endif
    if (n < 8) {
        for (size_t i = 0; i < n; i++) high |= (uint8_t)(to[i] = (char)p[i]);
        return high & 0x80;
    }
    for (size_t i = 0; i + 16 <= n; i += 16) {
        memcpy(&a, p + i, 8);
        memcpy(&b, p + i + 8, 8);
        memcpy(to + i, &a, 8);
        memcpy(to + i + 8, &b, 8);
        high |= a | b;
    }
    if (n & 8) { /* the last 16 bytes, of which some may have been copied before */
        memcpy(&a, p + (n & ~(size_t)15), 8);
        memcpy(to + (n & ~(size_t)15), &a, 8);
        high |= a;
    }
    memcpy(&a, p + n - 8, 8);
    memcpy(to + n - 8, &a, 8);
    return (high | a) & 0x8080808080808080u;
}

/* The common case: a str of less than 64 KiB into a column of text. false: nothing has happened. */
static inline bool put_plain_text(js_col *c, const uint8_t **p, const uint8_t *end) {
    const uint8_t *q = *p;
    size_t left = (size_t)(end - q), n;
    if (left >= 1 && (q[0] & 0xe0) == 0xa0) n = q[0] & 0x1f, q += 1;
    else if (left >= 2 && q[0] == 0xd9) n = q[1], q += 2;
    else if (left >= 3 && q[0] == 0xda) n = (size_t)q[1] << 8 | q[2], q += 3;
    else return false;
    left = (size_t)(end - q);
    if (n > left) return false;
    if (c->use_dict) {
        uint32_t e = c->last;
        if (js_likely_same(c) && c->off[e + 1] - c->off[e] == n && js_same_bytes(c->bytes + c->off[e], q, n, left)) js_put_same(c);
        else if (!js_put_known(c, (const char *)q, n, left)) {
            if (!js_utf8_ok(q, n)) return false;
            js_put_dict(c, (const char *)q, n);
        }
    } else {
        char *to = js_bytes_room(c, n);
        if (copy_text(to, q, n, left) && !js_utf8_ok(q, n)) return false;
        js_put_placed(c, n);
    }
    *p = q + n;
    return true;
}

/* What most values are. false: nothing has happened. */
static inline bool put_common(js_col *c, const uint8_t **p, const uint8_t *end) {
    if (col_is_text(c->kind)) return put_plain_text(c, p, end);
    if (*p < end && **p < 0x80 && (c->kind == COL_INT || c->kind == COL_BIGINT)) {
        if (c->kind == COL_INT) js_put_i32(c, *(*p)++);
        else js_put_i64(c, *(*p)++);
        return true;
    }
    if (c->kind == COL_MAP && c->use_dict) {
        size_t n = js_map_before(c, *p, (size_t)(end - *p)); /* no value's bytes are the beginning of another's */
        if (!n) return false;
        js_put_same(c);
        *p += n;
        return true;
    }
    return false;
}

static bool put_time(mp_decoder *d, js_col *c, int64_t sec, uint32_t nsec) {
    int64_t us = sec * DT_US_PER_SECOND + nsec / 1000;
    switch (c->kind) {
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: js_put_i64(c, dt_cut(us, c->type->precision)); return true;
    case COL_DATE: js_put_i32(c, dt_timestamp_to_date(us)); return true;
    case COL_TIME: js_put_i32(c, dt_timestamp_to_time(us)); return true;
    default: return mismatch(d, "a time");
    }
}

/* By way of the text that the value would have in a JSON document. */
static bool put_as_text(mp_decoder *d, js_col *c, const mp_item *v) {
    js_token tok = JT_STRING;
    fz_sv s;
    if (!mpd_scalar_text(d, v, &tok, &s)) return mismatch(d, v->type == MP_MAP ? "a map" : "an array");
    if (tok == JT_STRING) s = mpd_utf8(d, s);
    if (c->kind == COL_BINARY || c->kind == COL_VARBINARY) return mismatch(d, "a number");
    return js_put_scalar(&d->json, c, tok, s, &d->json.parser);
}

static bool put_scalar(mp_decoder *d, js_col *c, const mp_item *v) {
    int64_t sec;
    uint32_t nsec;
    if (v->type == MP_STR || v->type == MP_BIN) {
        if (col_is_text(c->kind)) put_text(d, c, v->p, v->n);
        else if (col_is_varlen(c->kind)) js_put_bytes(c, (const char *)v->p, v->n);
        else return put_as_text(d, c, v);
        return true;
    }
    if (v->type == MP_EXT) {
        if (c->kind == COL_BINARY || c->kind == COL_VARBINARY) js_put_bytes(c, (const char *)v->p, v->n);
        else if (!col_is_text(c->kind) && mpd_time_of(v, &sec, &nsec)) return put_time(d, c, sec, nsec);
        else if (!col_is_text(c->kind)) return mismatch(d, "an extension value");
        else return put_as_text(d, c, v);
        return true;
    }
    if (v->type == MP_INT) {
        if (c->kind == COL_BIGINT) js_put_i64(c, v->i);
        else if (c->kind == COL_INT && v->i >= INT32_MIN && v->i <= INT32_MAX) js_put_i32(c, (int32_t)v->i);
        else if (c->kind == COL_DOUBLE) js_put_f64(c, (double)v->i);
        else return put_as_text(d, c, v);
        return true;
    }
    if (c->kind == COL_DOUBLE && (v->type == MP_DOUBLE || v->type == MP_FLOAT)) js_put_f64(c, v->d);
    else if (c->kind == COL_FLOAT && (v->type == MP_DOUBLE || v->type == MP_FLOAT)) js_put_f32(c, (float)v->d);
    else if (c->kind == COL_BOOLEAN && v->type == MP_BOOL) js_put_bool(c, v->b);
    else return put_as_text(d, c, v);
    return true;
}

/* ---- nested ---- */

static bool put_array(mp_decoder *d, js_col *c, uint32_t n, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    for (uint32_t i = 0; i < n; i++)
        if (!put_value(d, &c->child[0], p, end, depth + 1)) return false;
    js_put_array(c);
    return true;
}

static bool put_map(mp_decoder *d, js_col *c, uint32_t n, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    for (uint32_t i = 0; i < n; i++)
        if (!put_value(d, &c->child[0], p, end, depth + 1) || !put_value(d, &c->child[1], p, end, depth + 1)) return false;
    js_put_map(c);
    return true;
}

/* A MAP in dictionary form: what came before is not read again. */
static bool put_same_map(mp_decoder *d, js_col *c, uint32_t n, const uint8_t *from, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    const uint8_t *after = from;
    if (mp_skip(&after, end) != MP_OK) return broken(d);
    size_t len = (size_t)(after - from);
    if (js_put_map_again(c, from, len)) {
        *p = after;
        return true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!put_value(d, &c->child[0], p, end, depth + 1) || !put_value(d, &c->child[1], p, end, depth + 1)) return false;
    js_map_order(c);
    js_put_map_of(c, from, len);
    return true;
}

/* The key at *p and the child of row that it names; -1: none. */
static bool read_key(mp_decoder *d, const js_col *row, const uint8_t **p, const uint8_t *end, int *col, fz_sv *name) {
    mp_item v;
    js_token tok;
    const uint8_t *at = *p;
    *col = -1;
    *name = (fz_sv){0};
    if (mp_read(p, end, &v) != MP_OK) return broken(d);
    if (v.type == MP_ARRAY || v.type == MP_MAP) {
        *p = at;
        return mp_skip(p, end) == MP_OK || broken(d);
    }
    if (!mpd_scalar_text(d, &v, &tok, name)) return true; /* nil */
    *col = js_col_find(row, name->p, name->n);
    return true;
}

static bool put_uncommon(mp_decoder *d, js_col *c, const uint8_t **p, const uint8_t *end, uint32_t depth);

static inline bool put_member(mp_decoder *d, js_col *row, int k, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    if (k < 0) return mp_skip(p, end) == MP_OK || broken(d);
    js_col *c = &row->child[k];
    if (c->len != row->len) js_col_cut(c, row->len); /* a second time: the last value counts */
    if (put_common(c, p, end) || put_uncommon(d, c, p, end, depth)) return true;
    snprintf(d->json.field, sizeof d->json.field, "%s", c->name);
    return false;
}

static void close_row(js_col *row) {
    for (uint32_t i = 0; i < row->n_child; i++)
        if (row->child[i].len == row->len) js_put_null(&row->child[i]);
    js_put_row(row);
}

static bool put_row(mp_decoder *d, js_col *c, uint32_t n, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    for (uint32_t i = 0; i < n; i++) {
        int k;
        fz_sv name;
        if (!read_key(d, c, p, end, &k, &name) || !put_member(d, c, k, p, end, depth + 1)) return false;
    }
    close_row(c);
    return true;
}

static bool put_json(mp_decoder *d, js_col *c, const uint8_t *from, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    fz_buf *b = &d->json.tree;
    b->len = 0;
    *p = from;
    if (!mpd_json_text(d, p, end, depth, b)) return false;
    js_put_bytes(c, (const char *)b->data, b->len);
    return true;
}

static bool put_any(mp_decoder *d, js_col *c, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    mp_item v;
    const uint8_t *from = *p;
    if (depth > FZ_MAX_JSON_DEPTH) return js_error(&d->json.parser, "values are nested deeper than %d", FZ_MAX_JSON_DEPTH);
    if (mp_read(p, end, &v) != MP_OK) return broken(d);
    if (v.type == MP_NIL) {
        js_put_null(c);
        return true;
    }
    bool map = v.type == MP_MAP, array = v.type == MP_ARRAY;
    if (c->kind == COL_ROW) return map ? put_row(d, c, v.n, p, end, depth) : mismatch(d, "a value that is no map");
    if (c->kind == COL_MAP && map && c->use_dict) return put_same_map(d, c, v.n, from, p, end, depth);
    if (c->kind == COL_MAP) return map ? put_map(d, c, v.n, p, end, depth) : mismatch(d, "a value that is no map");
    if (c->kind == COL_ARRAY) return array ? put_array(d, c, v.n, p, end, depth) : mismatch(d, "a value that is no array");
    if ((map || array) && col_is_text(c->kind)) return put_json(d, c, from, p, end, depth);
    return put_scalar(d, c, &v);
}

static bool put_value(mp_decoder *d, js_col *c, const uint8_t **p, const uint8_t *end, uint32_t depth) { return put_common(c, p, end) || put_uncommon(d, c, p, end, depth); }

static bool put_uncommon(mp_decoder *d, js_col *c, const uint8_t **p, const uint8_t *end, uint32_t depth) {
    const uint8_t *from = *p;
    uint32_t n = c->len;
    if (put_any(d, c, p, end, depth)) return true;
    js_col_cut(c, n);
    if (!d->json.ignore_errors) return false;
    *p = from;
    if (mp_skip(p, end) != MP_OK) return broken(d);
    d->json.field[0] = 0;
    js_put_null(c);
    return true;
}

/* ---- the record ---- */

static inline bool hint_fits(const mpd_hint *h, const uint8_t *p, const uint8_t *end) { return h->len && js_same_bytes(h->text, p, h->len, (size_t)(end - p)); }

static void keep_hint(mpd_hint *h, const uint8_t *from, size_t n, int col, bool is_json) {
    h->len = 0;
    if (n > MPD_HINT_BYTES) return;
    memset(h->text, 0, sizeof h->text);
    memcpy(h->text, from, n);
    h->len = (uint32_t)n;
    h->col = col;
    h->is_json = is_json;
}

/* The k-th key. */
static inline bool key_of(mp_decoder *d, uint32_t k, const uint8_t **p, const uint8_t *end, int *col, bool *is_json) {
    mpd_hint *h = &d->hint[k < MPD_HINTS ? k : 0];
    if (k < MPD_HINTS && hint_fits(h, *p, end)) {
        *p += h->len;
        *col = h->col;
        *is_json = h->is_json;
        return true;
    }
    const uint8_t *from = *p;
    fz_sv name;
    if (!read_key(d, &d->root, p, end, col, &name)) return false;
    *is_json = d->json_field && name.n == d->json_field_len && memcmp(name.p, d->json_field, name.n) == 0;
    if (k < MPD_HINTS) keep_hint(h, from, (size_t)(*p - from), *col, *is_json);
    return true;
}

static void note_document(mp_decoder *d, const uint8_t *p, const uint8_t *end) {
    mp_item v;
    d->document = (fz_sv){0};
    if (mp_read(&p, end, &v) != MP_OK || (v.type != MP_STR && v.type != MP_BIN)) return;
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.p[i] == '{') d->document = (fz_sv){(const char *)v.p, v.n};
        if (v.p[i] != ' ' && v.p[i] != '\t' && v.p[i] != '\n' && v.p[i] != '\r') return;
    }
}

static bool put_record(mp_decoder *d, const uint8_t *p, size_t n) {
    const uint8_t *end = p + n;
    mp_item map;
    d->json.field[0] = 0;
    d->document = (fz_sv){0};
    if (mp_read(&p, end, &map) != MP_OK || map.type != MP_MAP) return js_error(&d->json.parser, "the record is not a map");
    for (uint32_t k = 0; k < map.n; k++) {
        int col;
        bool is_json;
        if (!key_of(d, k, &p, end, &col, &is_json)) return false;
        if (is_json) note_document(d, p, end);
        if (!put_member(d, &d->root, col, &p, end, 1)) return false;
    }
    if (p != end) return js_error(&d->json.parser, "%zu bytes follow the record", (size_t)(end - p));
    close_row(&d->root);
    return true;
}

/* ---- documents in a field ---- */

static bool well_formed(json_decoder *j, fz_sv s) {
    js_parser *p = &j->parser;
    uint32_t open = 0;
    js_parser_start(p, (const uint8_t *)s.p, s.n);
    do {
        if (!js_next(p) || p->ended || p->cur == JT_NONE) return false;
        if (p->cur == JT_START_OBJECT || p->cur == JT_START_ARRAY) open++;
        else if (p->cur == JT_END_OBJECT || p->cur == JT_END_ARRAY) open--;
        else if (p->incomplete) {
            fz_sv ignored;
            if (!js_text(p, &ignored)) return false;
        }
    } while (open);
    return true;
}

static void catch_up(mp_decoder *d, uint32_t rows) {
    while (d->json.root.len < rows) js_put_null(&d->json.root);
}

/* The document's row, beside the record's, which is closed already. false: it is JSON, and a value does not fit its column. */
static bool put_document(mp_decoder *d) {
    json_decoder *j = &d->json;
    fz_sv s = d->document;
    if (!s.p) return true;
    catch_up(d, d->root.len - 1);
    if (j->row(j, (const uint8_t *)s.p, s.n) || js_exact(j, (const uint8_t *)s.p, s.n)) return true;
    if (!j->field[0]) return true; /* no JSON: it stays a text */
    char field[sizeof j->field], msg[sizeof j->parser.msg];
    memcpy(field, j->field, sizeof field);
    memcpy(msg, j->parser.msg, sizeof msg);
    if (!well_formed(j, s)) return true; /* cut off, as long lines are */
    memcpy(j->field, field, sizeof field);
    memcpy(j->parser.msg, msg, sizeof msg);
    js_col_cut(&d->root, d->root.len - 1);
    return false;
}

static bool all_null(const col_vec *v) {
    if (v->type->kind == COL_NULL) return true;
    return v->valid && !memchr(v->valid, 1, v->len);
}
static bool none_null(const col_vec *v) {
    return !v->valid || !memchr(v->valid, 0, v->len);
}

/* The record's own value where it has one, else the document's. */
static col_vec *merge(fz_arena *a, col_vec *own, col_vec *doc) {
    if (all_null(doc) || none_null(own)) return own;
    if (all_null(own)) return doc;
    col_builder *b = col_builder_new(a, own->type);
    for (uint32_t i = 0; i < own->len; i++) col_add_from(b, col_is_null(own, i) ? doc : own, i);
    return col_builder_finish(b);
}

/* ---- the format ---- */

static void unparseable(dec_output *out, uint32_t rec, const char *message) {
    out->n_unparseable++;
    if (out->sample || !message) return;
    out->sample = message;
    out->sample_rec = rec;
}

static const char *message_of(mp_decoder *d, fz_arena *a) {
    if (!d->json.field[0]) return fz_arena_strdup(a, d->json.parser.msg);
    return fz_arena_printf(a, "Fail to deserialize at field: %s. (%s)", d->json.field, d->json.parser.msg);
}

static void decode_record(mp_decoder *d, const fz_chunk *c, uint32_t i, fz_arena *a, dec_output *out, fz_rejects *rejects) {
    int32_t n;
    const uint8_t *in = dec_bytes(&d->base, &c->rec[i], &n);
    if (c->rec[i].oversized) {
        dec_reject(rejects, i, "record.too-large", "the record is larger than source.max-record-size");
        return;
    }
    if (n <= 0) {
        unparseable(out, i, NULL);
        out->n_tombstones += n < 0;
        return;
    }
    uint32_t rows = d->root.len;
    if (put_record(d, in, (size_t)n) && put_document(d)) {
        out->row_rec[out->n_rows++] = i;
        return;
    }
    js_col_cut(&d->root, rows);
    const char *message = d->json.ignore_errors && out->sample ? NULL : message_of(d, a);
    if (d->json.ignore_errors) unparseable(out, i, message);
    else dec_reject(rejects, i, "msgpack.parse", message);
}

static fz_status msgpack_decode(dec_decoder *base, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    mp_decoder *d = (mp_decoder *)base;
    (void)err;
    fz_arena_reset(d->scratch);
    fz_arena_reset(d->json.scratch);
    js_columns_begin(&d->root, a, d->scratch, c->n);
    if (d->json_field) js_columns_begin(&d->json.root, a, d->json.scratch, c->n);
    for (uint32_t i = 0; i < c->n; i++) decode_record(d, c, i, a, out, rejects);
    bool documents = d->json_field && d->json.root.len > 0;
    if (documents) catch_up(d, d->root.len);
    for (uint32_t k = 0; k < d->root.n_child; k++) {
        if (d->root.child[k].discard) continue;
        out->cols[k] = js_col_finish(&d->root.child[k]);
        if (documents) out->cols[k] = merge(a, out->cols[k], js_col_finish(&d->json.root.child[k]));
    }
    return FZ_OK;
}

static void msgpack_close(dec_decoder *base) {
    mp_decoder *d = (mp_decoder *)base;
    js_col_free(&d->root);
    fz_arena_free(d->scratch);
    fz_buf_free(&d->text);
    fz_buf_free(&d->repaired);
    js_decoder_release(&d->json);
    fz_free(d);
}

static fz_status msgpack_open(const dec_open *o, dec_decoder **out, fz_error *err) {
    int ignore = 0;
    FZ_TRY(js_check_types(o->schema, "MessagePack", "msgpack.map-key", err));
    FZ_TRY(fz_parse_bool(dec_option(o, dec_msgpack_options, "msgpack.ignore-parse-errors"), &ignore, err));
    mp_decoder *d = FZ_NEW(mp_decoder);
    d->json.ignore_errors = ignore != 0;
    d->json.iso = fz_ieq(dec_option(o, dec_msgpack_options, "msgpack.timestamp-format.standard"), "ISO-8601");
    js_decoder_init(&d->json, o->schema, o->wanted);
    js_columns_init(d->json.own, &d->root, o->schema, o->wanted);
    for (uint32_t i = 0; i < o->schema->n; i++) js_map_in_dictionary(&d->root.child[i]);
    d->scratch = fz_arena_new();
    const char *field = dec_option(o, dec_msgpack_options, "msgpack.json-field");
    if (field && *field) {
        d->json_field = fz_arena_strdup(d->json.own, field);
        d->json_field_len = strlen(field);
    }
    *out = &d->base;
    return FZ_OK;
}

static bool msgpack_text(dec_decoder *base, const uint8_t *p, size_t n, fz_buf *out) {
    const uint8_t *end = p + n;
    size_t from = out->len;
    if (mpd_json_text((mp_decoder *)base, &p, end, 0, out) && p == end) return true;
    out->len = from;
    return false;
}

const dec_format dec_msgpack = {.name = "msgpack", .options = dec_msgpack_options, .open = msgpack_open, .close = msgpack_close, .decode = msgpack_decode, .text = msgpack_text};
