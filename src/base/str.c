/* See str.h. */
#include "base/str.h"
#include "base/mem.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

bool fz_sv_ieq(fz_sv a, fz_sv b) {
    if (a.n != b.n) return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower((unsigned char)a.p[i]) != lower((unsigned char)b.p[i])) return false;
    return true;
}
bool fz_ieq(const char *a, const char *b) { return fz_sv_ieq(fz_sv_of(a), fz_sv_of(b)); }
int fz_sv_cmp(fz_sv a, fz_sv b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c) return c;
    return a.n < b.n ? -1 : a.n > b.n;
}
bool fz_starts(const char *s, const char *prefix) { return strncmp(s, prefix, strlen(prefix)) == 0; }
bool fz_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}
static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }
fz_sv fz_sv_trim(fz_sv s) {
    while (s.n && blank(s.p[0])) s.p++, s.n--;
    while (s.n && blank(s.p[s.n - 1])) s.n--;
    return s;
}

bool fz_parse_u64(fz_sv s, uint64_t *out) {
    if (s.n == 0 || s.n > 20) return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v)) return false;
    }
    *out = v;
    return true;
}
bool fz_parse_i64(fz_sv s, int64_t *out) {
    bool neg = s.n && s.p[0] == '-';
    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) s.p++, s.n--;
    uint64_t v;
    if (!fz_parse_u64(s, &v) || v > (uint64_t)INT64_MAX + (neg ? 1 : 0)) return false;
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}
bool fz_parse_f64(fz_sv s, double *out) {
    char tmp[512];
    if (s.n == 0 || s.n >= sizeof tmp || blank(s.p[0])) return false;
    memcpy(tmp, s.p, s.n);
    tmp[s.n] = 0;
    char *end;
    *out = strtod(tmp, &end);
    return end == tmp + s.n;
}

uint32_t fz_utf8_next(const char *s, size_t n, size_t *i) {
    const unsigned char *p = (const unsigned char *)s + *i;
    size_t left = n - *i;
    uint32_t c = p[0];
    if (c < 0x80) return *i += 1, c;
    unsigned need = c >= 0xF0 && c <= 0xF4 ? 3 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xC2 && c < 0xE0 ? 1 : 0;
    if (need == 0 || left <= need) return *i += 1, 0xFFFD;
    uint32_t cp = c & (0x3Fu >> need);
    for (unsigned k = 1; k <= need; k++) {
        if ((p[k] & 0xC0) != 0x80) return *i += 1, 0xFFFD;
        cp = cp << 6 | (p[k] & 0x3F);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (cp < least[need] || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) return *i += 1, 0xFFFD;
    *i += need + 1;
    return cp;
}

bool fz_utf8_valid(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        /* Eight ASCII bytes at a time: logs are mostly ASCII. */
        uint64_t w;
        while (n - i >= 8 && (memcpy(&w, s + i, 8), (w & 0x8080808080808080ull) == 0)) i += 8;
        if (i == n) break;
        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        size_t at = i;
        uint32_t cp = fz_utf8_next(s, n, &i);
        if (cp == 0xFFFD && i - at == 1) return false;
    }
    return true;
}
size_t fz_utf8_len(const char *s, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((unsigned char)s[i] & 0xC0) != 0x80;
    return k;
}
size_t fz_utf8_put(char *out, uint32_t cp) {
    unsigned char *o = (unsigned char *)out;
    if (cp < 0x80) return o[0] = (unsigned char)cp, 1;
    if (cp < 0x800) return o[0] = (unsigned char)(0xC0 | cp >> 6), o[1] = (unsigned char)(0x80 | (cp & 63)), 2;
    if (cp < 0x10000)
        return o[0] = (unsigned char)(0xE0 | cp >> 12), o[1] = (unsigned char)(0x80 | (cp >> 6 & 63)), o[2] = (unsigned char)(0x80 | (cp & 63)), 3;
    o[0] = (unsigned char)(0xF0 | cp >> 18);
    o[1] = (unsigned char)(0x80 | (cp >> 12 & 63));
    o[2] = (unsigned char)(0x80 | (cp >> 6 & 63));
    o[3] = (unsigned char)(0x80 | (cp & 63));
    return 4;
}

void fz_buf_reserve(fz_buf *b, size_t more) {
    if (b->cap - b->len >= more) return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->len < more) cap *= 2;
    b->data = fz_realloc(b->data, cap);
    b->cap = cap;
}
void fz_buf_puts(fz_buf *b, const char *s) { fz_buf_append(b, s, strlen(s)); }
void fz_buf_printf(fz_buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        fz_buf_reserve(b, (size_t)n + 1);
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}
/* One byte that a JSON string cannot hold as it is, or a plain one. */
static void put_json_byte(fz_buf *b, unsigned char c) {
    switch (c) {
    case '"': fz_buf_puts(b, "\\\""); return;
    case '\\': fz_buf_puts(b, "\\\\"); return;
    case '\n': fz_buf_puts(b, "\\n"); return;
    case '\r': fz_buf_puts(b, "\\r"); return;
    case '\t': fz_buf_puts(b, "\\t"); return;
    default:
        if (c < 0x20) fz_buf_printf(b, "\\u%04x", c);
        else fz_buf_putc(b, (char)c);
    }
}
/* Has one of the 8 bytes to be escaped? */
static inline bool has_special(uint64_t w) {
    const uint64_t ones = 0x0101010101010101u, high = ones << 7;
    uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
    return (((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & high;
}
/* In steps of 16, 8 and 4 bytes; the last one goes back over bytes that were copied before. */
size_t fz_json_plain(uint8_t *d, const char *s, size_t n) {
    size_t i = 0;
    uint64_t w;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    while (n - i >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s + i));
        __m128i bad = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)), _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        _mm_storeu_si128((__m128i *)(void *)(d + i), v);
        int mask = _mm_movemask_epi8(bad);
        if (mask) return i + (size_t)__builtin_ctz((unsigned)mask);
        i += 16;
        if (i < n && n - i < 16) i = n - 16;
    }
#endif
    while (n - i >= 8) {
        memcpy(&w, s + i, 8);
        if (has_special(w)) break;
        memcpy(d + i, &w, 8);
        i += 8;
        if (i < n && n - i < 8) i = n - 8;
    }
    if (n >= 4 && n < 8) { /* both ends of it */
        uint32_t a, b;
        memcpy(&a, s, 4);
        memcpy(&b, s + n - 4, 4);
        memcpy(d, &a, 4);
        memcpy(d + n - 4, &b, 4);
        if (!has_special((uint64_t)b << 32 | a)) return n;
    }
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\') break;
        d[i] = c;
    }
    return i;
}
bool fz_json_is_plain(const char *s, size_t n) {
    size_t i = 0;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    for (; n - i >= 64; i += 64) {
        __m128i bad = _mm_setzero_si128();
        for (size_t k = 0; k < 64; k += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s + i + k));
            bad = _mm_or_si128(bad, _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)), _mm_cmpeq_epi8(_mm_min_epu8(v, control), v)));
        }
        if (_mm_movemask_epi8(bad)) return false;
    }
#endif
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        if (has_special(w)) return false;
    }
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == '"' || c == '\\') return false;
    }
    return true;
}
void fz_buf_json(fz_buf *b, const char *s, size_t n) {
    fz_buf_reserve(b, n + 2);
    b->data[b->len++] = '"';
    for (size_t i = 0; i < n;) {
        size_t plain = fz_json_plain(b->data + b->len, s + i, n - i);
        b->len += plain;
        i += plain;
        for (unsigned k = 0; k < 8 && i < n; k++, i++) put_json_byte(b, (unsigned char)s[i]); /* what stopped it, and what mostly stands near it */
        fz_buf_reserve(b, n - i + 1);
    }
    b->data[b->len++] = '"';
}
void fz_buf_base64(fz_buf *b, const void *p, size_t n) {
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = p;
    fz_buf_reserve(b, (n + 2) / 3 * 4);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < n ? (uint32_t)s[i + 1] << 8 : 0) | (i + 2 < n ? s[i + 2] : 0);
        char out[4] = {abc[v >> 18], abc[v >> 12 & 63], i + 1 < n ? abc[v >> 6 & 63] : '=', i + 2 < n ? abc[v & 63] : '='};
        fz_buf_append(b, out, 4);
    }
}
/* What a character stands for, with bit 6 set; 0: nothing. */
static const uint8_t sextet[256] = {
    ['A'] = 64, ['B'] = 65, ['C'] = 66, ['D'] = 67, ['E'] = 68, ['F'] = 69, ['G'] = 70, ['H'] = 71, ['I'] = 72, ['J'] = 73, ['K'] = 74, ['L'] = 75,
    ['M'] = 76, ['N'] = 77, ['O'] = 78, ['P'] = 79, ['Q'] = 80, ['R'] = 81, ['S'] = 82, ['T'] = 83, ['U'] = 84, ['V'] = 85, ['W'] = 86, ['X'] = 87,
    ['Y'] = 88, ['Z'] = 89, ['a'] = 90, ['b'] = 91, ['c'] = 92, ['d'] = 93, ['e'] = 94, ['f'] = 95, ['g'] = 96, ['h'] = 97, ['i'] = 98, ['j'] = 99,
    ['k'] = 100, ['l'] = 101, ['m'] = 102, ['n'] = 103, ['o'] = 104, ['p'] = 105, ['q'] = 106, ['r'] = 107, ['s'] = 108, ['t'] = 109, ['u'] = 110,
    ['v'] = 111, ['w'] = 112, ['x'] = 113, ['y'] = 114, ['z'] = 115, ['0'] = 116, ['1'] = 117, ['2'] = 118, ['3'] = 119, ['4'] = 120, ['5'] = 121,
    ['6'] = 122, ['7'] = 123, ['8'] = 124, ['9'] = 125, ['+'] = 126, ['/'] = 127};
static uint32_t sextets(const uint8_t *p, int n, uint32_t *good) { /* n characters as the first bits of 24 */
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t x = i < n ? sextet[p[i]] : 64;
        *good &= x;
        v = v << 6 | (x & 63);
    }
    return v;
}
bool fz_base64_decode(const char *s, size_t n, fz_buf *out) {
    const uint8_t *p = (const uint8_t *)s;
    if (n % 4) return false;
    if (!n) return true;
    size_t pad = p[n - 1] == '=' ? p[n - 2] == '=' ? 2 : 1 : 0, whole = n - (pad ? 4 : 0);
    fz_buf_reserve(out, n / 4 * 3);
    uint8_t *to = out->data + out->len;
    uint32_t good = 64;
    for (size_t i = 0; i < whole; i += 4, to += 3) {
        uint32_t v = sextets(p + i, 4, &good);
        to[0] = (uint8_t)(v >> 16);
        to[1] = (uint8_t)(v >> 8);
        to[2] = (uint8_t)v;
    }
    if (pad) {
        uint32_t v = sextets(p + whole, (int)(4 - pad), &good);
        *to++ = (uint8_t)(v >> 16);
        if (pad == 1) *to++ = (uint8_t)(v >> 8);
    }
    if (!good) return false;
    out->len = (size_t)(to - out->data);
    return true;
}
const char *fz_buf_cstr(fz_buf *b) {
    fz_buf_reserve(b, 1);
    b->data[b->len] = 0;
    return (const char *)b->data;
}
void fz_buf_free(fz_buf *b) {
    fz_free(b->data);
    *b = (fz_buf){0};
}
char *fz_buf_steal(fz_buf *b) {
    char *r = (char *)(uintptr_t)fz_buf_cstr(b);
    *b = (fz_buf){0};
    return r;
}
