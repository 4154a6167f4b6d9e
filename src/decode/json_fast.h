/* The fast path's body, compiled once for each width of vectors: V is 32 (AVX2), 16 (SSE2) or 1 (portable). Define V and NAME first.
 *
 * A record is walked once. Names are not looked up but expected: the text between two values (`,"host":`) is compared with what
 * stood there in the record before. Strings without escapes are copied, or found in the column's dictionary, while their end is
 * looked for. Whatever is unusual ends the attempt (NULL, false), and js_exact does the record.
 *
 * Invariants
 *  1. No byte at or after end is read, nor one before in.
 *  2. A value that is taken here is one that js_exact would take with the same result; in particular a column is set once at most,
 *     and once as many fields were found as the row has, the rest is only checked.
 */
#include "decode/json_fast_int.h"

typedef struct run { json_decoder *d; struct js_fast *f; const uint8_t *in, *end; } run;

#if V == 32
typedef __m256i vec;
static inline vec v_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline void v_store(char *p, vec v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
static inline uint32_t v_high(vec v) { return (uint32_t)_mm256_movemask_epi8(v); }
static inline uint32_t v_special(vec v) {
    return v_high(_mm256_or_si256(_mm256_cmpeq_epi8(v, _mm256_set1_epi8('"')), _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'))));
}
static inline uint32_t v_same(const uint8_t *a, const uint8_t *b) { return v_high(_mm256_cmpeq_epi8(v_load(a), v_load(b))); }
#elif V == 16
typedef __m128i vec;
static inline vec v_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
static inline void v_store(char *p, vec v) { _mm_storeu_si128((__m128i *)(void *)p, v); }
static inline uint32_t v_high(vec v) { return (uint32_t)_mm_movemask_epi8(v); }
static inline uint32_t v_special(vec v) {
    return v_high(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
}
static inline uint32_t v_same(const uint8_t *a, const uint8_t *b) {
    return v_high(_mm_cmpeq_epi8(v_load(a), v_load(b))) | v_high(_mm_cmpeq_epi8(v_load(a + 16), v_load(b + 16))) << 16;
}
#endif

/* Up to 31 bytes, without touching others than these n of src; dst has room for 32. */
static inline void copy_few(char *dst, const uint8_t *src, size_t n) {
    if (n >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    } else if (n >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + n - 8, src + n - 8, 8);
    } else
        for (size_t i = 0; i < n; i++) dst[i] = (char)src[i];
}

/* First quote or backslash at or after p, or NULL; *high is set if a byte before it is not ASCII. */
static inline const uint8_t *find_special(const run *r, const uint8_t *p, uint32_t *high) {
#if V > 1
    while (r->end - p >= V) {
        vec v = v_load(p);
        uint32_t m = v_special(v), h = v_high(v);
        if (m) {
            *high |= h & (m ^ (m - 1)) >> 1;
            return p + __builtin_ctz(m);
        }
        *high |= h;
        p += V;
    }
    if (r->end - r->in >= V && p < r->end) {
        unsigned past = (unsigned)(V - (r->end - p)); /* the last V bytes hold the rest */
        vec v = v_load(r->end - V);
        uint32_t m = v_special(v) >> past, h = v_high(v) >> past;
        if (!m) return NULL;
        *high |= h & (m ^ (m - 1)) >> 1;
        return p + __builtin_ctz(m);
    }
#endif
    for (; p < r->end; p++) {
        if (*p == '"' || *p == '\\') return p;
        *high |= *p & 0x80;
    }
    return NULL;
}

/* The same, copying what is passed to *dst, which has room for it and V more. */
static inline const uint8_t *copy_to_special(const run *r, const uint8_t *p, char **dst, uint32_t *high) {
#if V > 1
    while (r->end - p >= V) {
        vec v = v_load(p);
        uint32_t m = v_special(v), h = v_high(v);
        v_store(*dst, v);
        if (m) {
            *high |= h & (m ^ (m - 1)) >> 1;
            *dst += __builtin_ctz(m);
            return p + __builtin_ctz(m);
        }
        *high |= h;
        p += V;
        *dst += V;
    }
#endif
    const uint8_t *q = find_special(r, p, high);
    if (!q) return NULL;
#if V > 1
    copy_few(*dst, p, (size_t)(q - p));
#else
    memcpy(*dst, p, (size_t)(q - p));
#endif
    *dst += q - p;
    return q;
}

static inline const uint8_t *space(const run *r, const uint8_t *p) {
    while (p < r->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    return p;
}

/* The rest of a string, p behind its opening quote, decoded to dst (room for all of the record and 64 more). Returns p behind the
 * closing quote and its length in *n. */
static inline const uint8_t *decode_string(const run *r, const uint8_t *p, char *dst, size_t *n) {
    char *at = dst;
    uint32_t high = 0;
    for (;;) {
        p = copy_to_special(r, p, &at, &high);
        if (!p) return NULL;
        if (*p == '"') break;
        if (r->end - p < 2) return NULL;
        uint8_t c = js_escapes[p[1]];
        if (__builtin_expect(c != 0, 1)) {
            *at++ = (char)c;
            p += 2;
            continue;
        }
        p = js_unicode_escape(p, r->end, &at);
        if (!p) return NULL;
    }
    *n = (size_t)(at - dst);
    if (high && !js_utf8_ok((const uint8_t *)dst, *n)) return NULL;
    return p + 1;
}

static inline const uint8_t *skip_string(const run *r, const uint8_t *p) {
    const uint8_t *from = p;
    uint32_t high = 0;
    for (;;) {
        p = find_special(r, p, &high);
        if (!p) return NULL;
        if (*p == '"') break;
        if (r->end - p < 2) return NULL;
        if (js_escapes[p[1]]) p += 2;
        else if (!(p = js_unicode_escape(p, r->end, NULL))) return NULL;
    }
    if (high && !js_utf8_ok(from, (size_t)(p - from))) return NULL;
    return p + 1;
}

#define IN_TEXT(kind) ((kind) == COL_VARCHAR || (kind) == COL_CHAR)

/* A string into a text column. */
static inline const uint8_t *string_value(const run *r, js_col *c, const uint8_t *p) {
    size_t n;
    if (c->use_dict) {
        uint32_t high = 0;
        const uint8_t *q = find_special(r, p, &high);
        if (!q) return NULL;
        if (__builtin_expect(*q == '"', 1)) {
            n = (size_t)(q - p);
            if (high && !js_utf8_ok(p, n)) return NULL;
#if V > 1
            /* The value of the row before, compared in one step: dictionaries have room to spare behind each entry. */
            if (n <= 32 && r->end - p >= 32 && c->n_dict) {
                uint32_t e = c->last, mask = n == 32 ? ~0u : (1u << n) - 1;
                if (c->off[e + 1] - c->off[e] == n && (v_same(p, (const uint8_t *)c->bytes + c->off[e]) & mask) == mask) {
                    js_put_same(c);
                    return q + 1;
                }
            }
#endif
            js_put_dict(c, (const char *)p, n);
            return q + 1;
        }
        fz_buf *t = &r->f->text;
        t->len = 0;
        fz_buf_reserve(t, (size_t)(r->end - p) + 64);
        p = decode_string(r, p, (char *)t->data, &n);
        if (p) js_put_dict(c, (const char *)t->data, n);
        return p;
    }
    if (c->discard) {
        p = skip_string(r, p);
        if (p) js_put_bytes(c, "", 0);
        return p;
    }
    p = decode_string(r, p, js_bytes_room(c, (size_t)(r->end - p)), &n);
    if (p) js_put_placed(c, n);
    return p;
}

/* A name, p behind its opening quote: no escapes. *q is the closing quote. */
static inline bool plain_name(const run *r, const uint8_t *p, const uint8_t **q) {
    uint32_t high = 0;
    *q = find_special(r, p, &high);
    return *q && **q == '"' && *q - p <= 4096 && !(high && !js_utf8_ok(p, (size_t)(*q - p)));
}

/* Behind a name's closing quote: past the colon, to the value. */
static inline const uint8_t *colon(const run *r, const uint8_t *p) {
    p = space(r, p);
    return p < r->end && *p == ':' ? space(r, p + 1) : NULL;
}

static const uint8_t *skip_scalar(const run *r, const uint8_t *p) {
    if (p >= r->end) return NULL;
    if (*p == '"') return skip_string(r, p + 1);
    bool is_float;
    return (*p >= '0' && *p <= '9') || *p == '-' ? js_number_end(p, r->end, &is_float) : js_literal_end(p, r->end);
}

/* Past any value, which is checked. */
static const uint8_t *skip_value(const run *r, const uint8_t *p) {
    uint8_t close[128];
    unsigned depth = 0;
    for (;;) {
        if (p >= r->end) return NULL;
        if (*p == '{' || *p == '[') {
            bool object = *p == '{';
            if (depth == sizeof close) return NULL;
            close[depth] = object ? '}' : ']';
            p = space(r, p + 1);
            if (p < r->end && *p == close[depth]) p++;
            else {
                depth++;
                if (object) goto name;
                continue;
            }
        } else if (!(p = skip_scalar(r, p))) return NULL;
        for (;;) { /* behind a value */
            if (!depth) return p;
            p = space(r, p);
            if (p >= r->end) return NULL;
            if (*p == ',') break;
            if (*p++ != close[--depth]) return NULL;
        }
        p = space(r, p + 1);
        if (close[depth - 1] == ']') continue;
    name:
        if (p >= r->end || *p != '"') return NULL;
        if (!plain_name(r, p + 1, &p) || !(p = colon(r, p + 1))) return NULL;
    }
}

static const uint8_t *value(const run *r, js_col *c, const uint8_t *p);

static const uint8_t *array_value(const run *r, js_col *c, const uint8_t *p) {
    p = space(r, p + 1);
    if (p < r->end && *p == ']') {
        js_put_array(c);
        return p + 1;
    }
    for (;;) {
        p = value(r, &c->child[0], p);
        if (!p || (p = space(r, p)) >= r->end) return NULL;
        if (*p == ']') break;
        if (*p != ',') return NULL;
        p = space(r, p + 1);
    }
    js_put_array(c);
    return p + 1;
}

static const uint8_t *map_value(const run *r, js_col *c, const uint8_t *p) {
    p = space(r, p + 1);
    if (p < r->end && *p == '}') {
        js_put_map(c);
        return p + 1;
    }
    for (;;) {
        const uint8_t *name = p + 1, *q;
        if (p >= r->end || *p != '"' || !plain_name(r, name, &q) || !(p = colon(r, q + 1))) return NULL;
        js_put_bytes(&c->child[0], (const char *)name, (size_t)(q - name));
        p = value(r, &c->child[1], p);
        if (!p || (p = space(r, p)) >= r->end) return NULL;
        if (*p == '}') break;
        if (*p != ',') return NULL;
        p = space(r, p + 1);
    }
    js_put_map(c);
    return p + 1;
}

/* One field of a row: set, or skipped where it is unknown (k < 0) or the row is full. */
static inline const uint8_t *member(const run *r, js_col *row, int k, uint32_t *count, const uint8_t *p) {
    if (k < 0 || *count >= row->n_child) return skip_value(r, p);
    js_col *c = &row->child[k];
    if (c->len != row->len) return NULL; /* a second time: the last value counts */
    ++*count;
    return value(r, c, p);
}

static inline bool close_row(const run *r, js_col *row, uint32_t count) {
    if (count < row->n_child) {
        if (r->d->fail_on_missing) return false;
        for (uint32_t i = 0; i < row->n_child; i++)
            if (row->child[i].len == row->len) js_put_null(&row->child[i]);
    }
    js_put_row(row);
    return true;
}

static const uint8_t *row_value(const run *r, js_col *row, const uint8_t *p) {
    uint32_t count = 0;
    p = space(r, p + 1);
    if (p < r->end && *p == '}') return close_row(r, row, 0) ? p + 1 : NULL;
    for (;;) {
        const uint8_t *name = p + 1, *q;
        if (p >= r->end || *p != '"' || !plain_name(r, name, &q) || !(p = colon(r, q + 1))) return NULL;
        p = member(r, row, js_col_find(row, (const char *)name, (size_t)(q - name)), &count, p);
        if (!p || (p = space(r, p)) >= r->end) return NULL;
        if (*p == '}') break;
        if (*p != ',') return NULL;
        p = space(r, p + 1);
    }
    return close_row(r, row, count) ? p + 1 : NULL;
}

/* Strings for other columns than text ones, numbers and literals. */
static const uint8_t *other_value(const run *r, js_col *c, const uint8_t *p) {
    const uint8_t *from = p, *q;
    bool is_float = false;
    js_token tok;
    if (*p == '"') {
        uint32_t high = 0;
        q = find_special(r, p + 1, &high);
        if (!q || *q != '"' || high || c->kind == COL_VARBINARY || c->kind == COL_BINARY) return NULL;
        return js_put_scalar(r->d, c, JT_STRING, (fz_sv){(const char *)p + 1, (size_t)(q - p - 1)}, &r->d->parser) ? q + 1 : NULL;
    }
    if (*p == 't' || *p == 'f') {
        tok = *p == 't' ? JT_TRUE : JT_FALSE;
        q = js_literal_end(p, r->end);
    } else {
        if (c->kind == COL_BIGINT && (q = js_small_int(p, r->end, c))) return q;
        q = js_number_end(p, r->end, &is_float);
        tok = is_float ? JT_FLOAT : JT_INT;
    }
    if (!q || q - from > JS_MAX_NUMBER) return NULL;
    if (c->kind == COL_DOUBLE && tok != JT_TRUE && tok != JT_FALSE && js_put_short_double(c, from, q)) return q;
    return js_put_scalar(r->d, c, tok, (fz_sv){(const char *)from, (size_t)(q - from)}, &r->d->parser) ? q : NULL;
}

static const uint8_t *value(const run *r, js_col *c, const uint8_t *p) {
    if (p >= r->end) return NULL;
    switch (*p) {
    case '"':
        if (IN_TEXT(c->kind)) return string_value(r, c, p + 1);
        break;
    case 'n':
        p = js_literal_end(p, r->end);
        if (p) js_put_null(c);
        return p;
    case '[': return c->kind == COL_ARRAY ? array_value(r, c, p) : NULL;
    case '{': return c->kind == COL_ROW ? row_value(r, c, p) : c->kind == COL_MAP ? map_value(r, c, p) : NULL;
    case 't': case 'f': case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9': break;
    default: return NULL;
    }
    if (c->n_child) return NULL;
    return other_value(r, c, p);
}

static inline bool hint_fits(const run *r, const js_hint *h, const uint8_t *p) {
    size_t left = (size_t)(r->end - p);
#if V > 1
    if (h->len <= 32 && left >= 32) return (v_same(p, h->text) & h->mask) == h->mask;
#endif
    return left >= h->len && memcmp(p, h->text, h->len) == 0;
}

/* The text before the k-th value, read the long way, and kept as a hint. *done: the document ends instead. */
static const uint8_t *read_separator(const run *r, uint32_t k, const uint8_t *p, int *col, bool *done) {
    const uint8_t *from = p, *name, *q;
    p = space(r, p);
    if (p >= r->end) return NULL;
    if (k && *p == '}') {
        *done = true;
        return p + 1;
    }
    if (*p != (k ? ',' : '{')) return NULL;
    p = space(r, p + 1);
    if (!k && p < r->end && *p == '}') {
        *done = true;
        return p + 1;
    }
    name = p + 1;
    if (p >= r->end || *p != '"' || !plain_name(r, name, &q) || !(p = colon(r, q + 1))) return NULL;
    *col = js_col_find(&r->d->root, (const char *)name, (size_t)(q - name));
    size_t n = (size_t)(p - from);
    if (k < JS_HINTS && n <= sizeof r->f->hint[k].text) {
        js_hint *h = &r->f->hint[k];
        memcpy(h->text, from, n);
        h->len = (uint32_t)n;
        h->mask = n >= 32 ? ~0u : (1u << n) - 1;
        h->col = *col;
    }
    return p;
}

static bool whole_row(const run *r) {
    js_col *root = &r->d->root;
    const uint8_t *p = r->in;
    uint32_t count = 0;
    for (uint32_t k = 0;; k++) {
        int col = -1;
        bool done = false;
        if (k && p < r->end && *p == '}') break;
        const js_hint *h = &r->f->hint[k < JS_HINTS ? k : 0];
        if (k < JS_HINTS && h->len && hint_fits(r, h, p)) {
            p += h->len;
            col = h->col;
        } else if (!(p = read_separator(r, k, p, &col, &done))) return false;
        if (done) break;
        p = member(r, root, col, &count, p);
        if (!p) return false;
    }
    return close_row(r, root, count);
}

bool NAME(json_decoder *d, const uint8_t *in, size_t n) {
    struct js_fast *f = d->fast;
    if (f->misses >= JS_MISSES && f->misses++ % JS_MISSES != 0) return false;
    run r = {d, f, in, in + n};
    uint32_t rows = d->root.len;
    if (n < JS_MAX_STRING && whole_row(&r)) {
        f->misses = 0;
        return true;
    }
    js_col_cut(&d->root, rows);
    if (f->misses < JS_MISSES) f->misses++;
    return false;
}
