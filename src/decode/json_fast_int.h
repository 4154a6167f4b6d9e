/* Inside the fast path: what the widths share. See json_fast.h. */
#ifndef DEC_JSON_FAST_INT_H
#define DEC_JSON_FAST_INT_H
#include "decode/json_int.h"

#define JS_HINTS 64u
#define JS_MISSES 16u /* after so many records in a row that were not for the fast path, only each 16th is tried */

/* Text that stood between two values (`,"host":`) and the column that follows it; -1: none. */
typedef struct js_hint { uint8_t text[64]; uint32_t len, mask; int col; } js_hint;

struct js_fast {
    js_hint hint[JS_HINTS];
    uint32_t misses;
    fz_buf text;
};

extern const uint8_t js_escapes[256]; /* what \c stands for; 0: nothing, or \u */
/* \u and four digits at p (and its second half), written to *at if at is not NULL. NULL: no such, or a lone surrogate. */
const uint8_t *js_unicode_escape(const uint8_t *p, const uint8_t *end, char **at);
bool js_utf8_ok(const uint8_t *s, size_t n);
/* s where it is well formed; else a copy in scratch (overwritten) with U+FFFD in place of each ill-formed byte. */
fz_sv js_utf8_repaired(fz_buf *scratch, fz_sv s);
/* Behind the number, literal at p; NULL: it is none. */
const uint8_t *js_number_end(const uint8_t *p, const uint8_t *end, bool *is_float);
const uint8_t *js_literal_end(const uint8_t *p, const uint8_t *end);
/* A whole number of up to 18 digits into c; NULL: it is something else. */
const uint8_t *js_small_int(const uint8_t *p, const uint8_t *end, js_col *c);
/* The number p..q into c, if its digits and exponent are small enough for one exact operation. */
bool js_put_short_double(js_col *c, const uint8_t *p, const uint8_t *q);
#endif
