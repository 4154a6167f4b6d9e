/* Text views and growable byte buffers. A view (fz_sv) owns nothing and need not end in NUL; a buffer owns its bytes.
 *
 * Invariants
 *  1. buf->len <= buf->cap; data is NULL only while cap is 0.
 *  2. Numbers are parsed whole or not at all: trailing bytes are a failure.
 */
#ifndef FZ_STR_H
#define FZ_STR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct fz_sv { const char *p; size_t n; } fz_sv;
#define FZ_SV(lit) ((fz_sv){(lit), sizeof(lit) - 1})
static inline fz_sv fz_sv_of(const char *s) { return (fz_sv){s, s ? strlen(s) : 0}; }
static inline bool fz_sv_eq(fz_sv a, fz_sv b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }
bool fz_sv_ieq(fz_sv a, fz_sv b);            /* ASCII case-insensitive */
bool fz_ieq(const char *a, const char *b);   /* the same for C strings */
int fz_sv_cmp(fz_sv a, fz_sv b);             /* unsigned bytes, shorter first */
bool fz_starts(const char *s, const char *prefix);
bool fz_ends(const char *s, const char *suffix);
fz_sv fz_sv_trim(fz_sv s);                   /* ASCII blanks off both ends */
bool fz_parse_i64(fz_sv s, int64_t *out);    /* decimal, optional sign; false on overflow or other bytes */
bool fz_parse_u64(fz_sv s, uint64_t *out);
bool fz_parse_f64(fz_sv s, double *out);

/* UTF-8: true if s is well formed (no surrogates, no overlongs, <= U+10FFFF). */
bool fz_utf8_valid(const char *s, size_t n);
/* Number of code points of a well-formed text. */
size_t fz_utf8_len(const char *s, size_t n);
/* Decodes the code point at s[*i] and moves *i past it; an ill-formed byte gives U+FFFD and moves one byte. */
uint32_t fz_utf8_next(const char *s, size_t n, size_t *i);
/* Writes cp (1 to 4 bytes) and returns the number of bytes. */
size_t fz_utf8_put(char *out, uint32_t cp);

typedef struct fz_buf { uint8_t *data; size_t len, cap; } fz_buf;
void fz_buf_reserve(fz_buf *b, size_t more);       /* room for `more` bytes after len */
static inline void fz_buf_append(fz_buf *b, const void *p, size_t n) {
    if (!n) return;
    if (b->cap - b->len < n) fz_buf_reserve(b, n);
    memcpy(b->data + b->len, p, n);
    b->len += n;
}
static inline void fz_buf_putc(fz_buf *b, char c) {
    if (b->len == b->cap) fz_buf_reserve(b, 1);
    b->data[b->len++] = (uint8_t)c;
}
void fz_buf_puts(fz_buf *b, const char *s);
void fz_buf_printf(fz_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Copies bytes of s to d, which has room for n, until one has to be escaped in a JSON string. Returns how many; n: all of them. */
size_t fz_json_plain(uint8_t *d, const char *s, size_t n);
/* Has none of the n bytes to be escaped in a JSON string? */
bool fz_json_is_plain(const char *s, size_t n);
/* A JSON string literal with its quotes; control characters escaped, other bytes as they are. */
void fz_buf_json(fz_buf *b, const char *s, size_t n);
void fz_buf_base64(fz_buf *b, const void *p, size_t n);
bool fz_base64_decode(const char *s, size_t n, fz_buf *out); /* appends; false: it is no base64 with padding (RFC 4648, 4) and nothing else, and nothing is appended */
/* Ends the text with a NUL that len does not count, and returns it. */
const char *fz_buf_cstr(fz_buf *b);
void fz_buf_free(fz_buf *b);                       /* leaves an empty buffer */
char *fz_buf_steal(fz_buf *b);                     /* NUL-terminated, the caller frees it */
#endif
