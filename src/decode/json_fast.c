/* The fast path for every processor (SSE2 where there is one), what the widths share, and the choice between them. */
#if defined(__SSE2__)
#include <emmintrin.h>
#define V 16
#else
#define V 1
#endif
#define NAME js_fast_row_base
#include "decode/json_fast.h"

const uint8_t js_escapes[256] = {['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};

struct js_fast *js_fast_new(void) { return FZ_NEW(struct js_fast); }

void js_fast_free(struct js_fast *f) {
    if (f) fz_buf_free(&f->text);
    fz_free(f);
}

js_fast_fn js_fast_pick(void) {
#ifdef JS_HAVE_AVX2
    if (__builtin_cpu_supports("avx2")) return js_fast_row_avx2;
#endif
    return js_fast_row_base;
}

static int hex4(const uint8_t *p) {
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int c = p[i], h = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
        if (h < 0) return -1;
        v = v << 4 | h;
    }
    return v;
}

const uint8_t *js_unicode_escape(const uint8_t *p, const uint8_t *end, char **at) {
    if (end - p < 6 || p[1] != 'u') return NULL;
    int v = hex4(p + 2);
    if (v < 0 || (v >= 0xdc00 && v < 0xe000)) return NULL;
    uint32_t cp = (uint32_t)v;
    p += 6;
    if (v >= 0xd800 && v < 0xdc00) {
        if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return NULL;
        int low = hex4(p + 2);
        if (low < 0xdc00 || low >= 0xe000) return NULL;
        cp = 0x10000 + ((uint32_t)(v & 0x3ff) << 10) + (uint32_t)(low & 0x3ff);
        p += 6;
    }
    if (at) *at += fz_utf8_put(*at, cp);
    return p;
}

static bool tail_ok(const uint8_t *s, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return false;
    return true;
}

static inline bool js_three_bytes(const uint8_t *s) {
    uint32_t w = (uint32_t)s[0] << 16 | (uint32_t)s[1] << 8 | s[2], free_bits = w & 0x0f2000;
    return (w & 0xf0c0c0) == 0xe08080 && free_bits != 0 && free_bits != 0x0d2000;
}

bool js_utf8_ok(const uint8_t *s, size_t n) {
    const uint8_t *end = s + n;
    while (s < end) {
        if (*s < 0x80) {
            uint64_t w;
            if (end - s >= 8 && (memcpy(&w, s, 8), (w & 0x8080808080808080u) == 0)) s += 8;
            else s++;
            continue;
        }
        /* Three bytes at once, as most of Japanese text is: 1110xxxx 10xxxxxx 10xxxxxx, neither overlong nor a surrogate. */
        while (end - s >= 4 && js_three_bytes(s)) s += 3;
        if (s == end || *s < 0x80) continue;
        uint8_t c = *s;
        unsigned more = c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 0;
        if (!more || (size_t)(end - s) <= more || !tail_ok(s + 1, more)) return false;
        if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f)) return false;
        s += more + 1;
    }
    return true;
}

fz_sv js_utf8_repaired(fz_buf *scratch, fz_sv s) {
    if (js_utf8_ok((const uint8_t *)s.p, s.n)) return s;
    scratch->len = 0;
    for (size_t i = 0; i < s.n;) {
        char t[4];
        uint32_t cp = fz_utf8_next(s.p, s.n, &i);
        fz_buf_append(scratch, t, fz_utf8_put(t, cp));
    }
    return (fz_sv){(const char *)scratch->data, scratch->len};
}

static inline const uint8_t *digits(const uint8_t *p, const uint8_t *end) {
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

const uint8_t *js_number_end(const uint8_t *p, const uint8_t *end, bool *is_float) {
    const uint8_t *from = p, *q;
    *is_float = false;
    if (p < end && *p == '-') p++;
    q = digits(p, end);
    if (q == p || (*p == '0' && q - p > 1)) return NULL;
    if (q < end && *q == '.') {
        *is_float = true;
        p = q + 1;
        if ((q = digits(p, end)) == p) return NULL;
    }
    if (q < end && (*q | 0x20) == 'e') {
        *is_float = true;
        p = q + 1;
        if (p < end && (*p == '-' || *p == '+')) p++;
        if ((q = digits(p, end)) == p) return NULL;
    }
    return q - from > JS_MAX_NUMBER ? NULL : q;
}

const uint8_t *js_literal_end(const uint8_t *p, const uint8_t *end) {
    static const struct { const char *word; unsigned n; } words[] = {{"null", 4}, {"true", 4}, {"false", 5}};
    for (unsigned i = 0; i < 3; i++)
        if (end - p >= words[i].n && memcmp(p, words[i].word, words[i].n) == 0) return p + words[i].n;
    return NULL;
}

const uint8_t *js_small_int(const uint8_t *p, const uint8_t *end, js_col *c) {
    bool neg = *p == '-';
    const uint8_t *from = p + neg;
    int64_t v = 0;
    for (p = from; p < end && *p >= '0' && *p <= '9' && p - from < 18; p++) v = v * 10 + (*p - '0');
    if (p == from || (*from == '0' && p - from > 1)) return NULL;
    if (p < end && ((*p >= '0' && *p <= '9') || *p == '.' || (*p | 0x20) == 'e')) return NULL;
    js_put_i64(c, neg ? -v : v);
    return p;
}

bool js_put_short_double(js_col *c, const uint8_t *p, const uint8_t *q) {
    static const double pow10[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool neg = *p == '-', point = false;
    int exp = 0, n = 0;
    uint64_t m = 0;
    for (p += neg; p < q && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (++n > 15) return false;
        m = m * 10 + (uint64_t)(*p - '0');
        exp -= point;
    }
    if (p < q) {
        int64_t e;
        if (!fz_parse_i64((fz_sv){(const char *)p + 1, (size_t)(q - p - 1)}, &e) || e > 100 || e < -100) return false;
        exp += (int)e;
    }
    if (exp < -22 || exp > 22) return false;
    double v = exp < 0 ? (double)m / pow10[-exp] : (double)m * pow10[exp];
    js_put_f64(c, neg ? -v : v);
    return true;
}
