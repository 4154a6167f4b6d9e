/* Reads JSON text value by value, by RFC 8259. See otlp_int.h. No tree is built: what a text costs is what its strings with escapes take, one at a time. */
#include "source/otlp_int.h"

static bool wrong(otlp_lex *x, const char *why) {
    if (!x->why) x->why = why;
    return false;
}
static bool cut_off(otlp_lex *x) { return wrong(x, "it ends in the middle of a value"); }

void otlp_blanks(otlp_lex *x) {
    while (x->p < x->end && (*x->p == ' ' || *x->p == '\n' || *x->p == '\r' || *x->p == '\t')) x->p++;
}
int otlp_peek(otlp_lex *x) {
    otlp_blanks(x);
    return x->p < x->end ? *x->p : -1;
}

/* ---- strings ---- */

static bool hex4(otlp_lex *x, uint32_t *out) {
    uint32_t v = 0;
    if (x->end - x->p < 4) return cut_off(x);
    for (int i = 0; i < 4; i++) {
        uint8_t c = *x->p++, lower = c | 0x20;
        if (c >= '0' && c <= '9') v = v << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') v = v << 4 | (uint32_t)(lower - 'a' + 10);
        else return wrong(x, "an escape in a string has a digit that is none");
    }
    *out = v;
    return true;
}

/* After "\u". */
static bool code_point(otlp_lex *x, uint32_t *out) {
    uint32_t low;
    if (!hex4(x, out)) return false;
    if (*out < 0xd800 || *out > 0xdfff) return true;
    if (*out < 0xdc00 && x->end - x->p >= 6 && x->p[0] == '\\' && x->p[1] == 'u') {
        const uint8_t *back = x->p;
        x->p += 2;
        if (!hex4(x, &low)) return false;
        if (low >= 0xdc00 && low <= 0xdfff) {
            *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
            return true;
        }
        x->p = back;
    }
    *out = 0xfffd; /* half a pair: loggers cut texts in the middle of one */
    return true;
}

static bool escape(otlp_lex *x) {
    char t[4];
    uint32_t cp;
    if (x->p == x->end) return cut_off(x);
    uint8_t c = *x->p++;
    switch (c) {
    case '"': case '\\': case '/': fz_buf_putc(&x->text, (char)c); return true;
    case 'b': fz_buf_putc(&x->text, '\b'); return true;
    case 'f': fz_buf_putc(&x->text, '\f'); return true;
    case 'n': fz_buf_putc(&x->text, '\n'); return true;
    case 'r': fz_buf_putc(&x->text, '\r'); return true;
    case 't': fz_buf_putc(&x->text, '\t'); return true;
    case 'u':
        if (!code_point(x, &cp)) return false;
        fz_buf_append(&x->text, t, fz_utf8_put(t, cp));
        return true;
    default: return wrong(x, "a string has an escape that is none");
    }
}

/* To the next quote, backslash or control character. */
static const uint8_t *plain(const uint8_t *p, const uint8_t *end) {
    while (end - p >= 8) {
        uint64_t v = pb_u64(p), ones = 0x0101010101010101u, high = 0x8080808080808080u;
        uint64_t quote = v ^ (ones * '"'), back = v ^ (ones * '\\');
        if ((((quote - ones) & ~quote) | ((back - ones) & ~back) | ((v - ones * 0x20) & ~v)) & high) break;
        p += 8;
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) p++;
    return p;
}

bool otlp_string(otlp_lex *x, fz_sv *out) {
    if (otlp_peek(x) != '"') return wrong(x, "a string is missing");
    const uint8_t *from = ++x->p;
    bool copied = false;
    for (;;) {
        x->p = plain(x->p, x->end);
        if (x->p == x->end) return cut_off(x);
        if (*x->p < 0x20) return wrong(x, "a string has a control character");
        if (*x->p == '"' && !copied) {
            *out = (fz_sv){(const char *)from, (size_t)(x->p++ - from)};
            return true;
        }
        if (!copied) x->text.len = 0;
        copied = true;
        fz_buf_append(&x->text, from, (size_t)(x->p - from));
        if (*x->p++ == '"') break;
        if (!escape(x)) return false;
        from = x->p;
    }
    *out = (fz_sv){x->text.data ? (const char *)x->text.data : "", x->text.len};
    return true;
}

/* ---- numbers and words ---- */

static bool digits(otlp_lex *x) {
    const uint8_t *from = x->p;
    while (x->p < x->end && *x->p >= '0' && *x->p <= '9') x->p++;
    return x->p > from;
}

bool otlp_number(otlp_lex *x, fz_sv *out) {
    otlp_blanks(x);
    const uint8_t *from = x->p;
    if (x->p < x->end && *x->p == '-') x->p++;
    const uint8_t *first = x->p;
    if (!digits(x)) return wrong(x, "a value is missing");
    if (*first == '0' && x->p - first > 1) return wrong(x, "a number begins with 0");
    if (x->p < x->end && *x->p == '.') {
        x->p++;
        if (!digits(x)) return wrong(x, "a number ends with a point");
    }
    if (x->p < x->end && (*x->p | 0x20) == 'e') {
        x->p++;
        if (x->p < x->end && (*x->p == '+' || *x->p == '-')) x->p++;
        if (!digits(x)) return wrong(x, "a number has no exponent after its E");
    }
    *out = (fz_sv){(const char *)from, (size_t)(x->p - from)};
    return true;
}

bool otlp_word(otlp_lex *x, const char *word) {
    size_t n = strlen(word);
    otlp_blanks(x);
    if ((size_t)(x->end - x->p) < n || memcmp(x->p, word, n) != 0) return wrong(x, "a value is neither a string, a number, an object, an array, true, false nor null");
    x->p += n;
    return true;
}

/* ---- objects and arrays ---- */

static int step(otlp_lex *x, uint32_t n, char open, char close) {
    int c = otlp_peek(x);
    if (c < 0) return cut_off(x), -1;
    if (n == 0) {
        if (c != open) return wrong(x, open == '{' ? "an object is missing" : "an array is missing"), -1;
        x->p++;
        if (otlp_peek(x) != close) return 1;
        x->p++;
        return 0;
    }
    x->p++;
    if (c == close) return 0;
    if (c != ',') return wrong(x, "a comma is missing"), -1;
    return 1;
}

int otlp_member(otlp_lex *x, uint32_t *n, fz_sv *key) {
    int rc = step(x, *n, '{', '}');
    if (rc != 1) return rc;
    *n = 1;
    if (!otlp_string(x, key)) return -1;
    if (otlp_peek(x) != ':') return wrong(x, "a colon is missing"), -1;
    x->p++;
    return 1;
}
int otlp_element(otlp_lex *x, uint32_t *n) {
    int rc = step(x, *n, '[', ']');
    if (rc == 1) *n = 1;
    return rc;
}

static bool skip_scalar(otlp_lex *x, int c) {
    fz_sv s;
    switch (c) {
    case '"': return otlp_string(x, &s);
    case 't': return otlp_word(x, "true");
    case 'f': return otlp_word(x, "false");
    case 'n': return otlp_word(x, "null");
    default: return otlp_number(x, &s);
    }
}

bool otlp_skip(otlp_lex *x) {
    uint8_t object[FZ_MAX_JSON_DEPTH];
    uint32_t depth = 0;
    uint32_t n = 0; /* of the innermost: whether something stood in it already */
    for (;;) {
        int c = otlp_peek(x), rc = 1;
        if (c == '{' || c == '[') {
            if (depth == FZ_MAX_JSON_DEPTH) return wrong(x, "it is nested too deep");
            object[depth++] = c == '{';
            n = 0;
        } else if (!skip_scalar(x, c)) return false;
        else if (!depth) return true;
        do {
            fz_sv key;
            rc = object[depth - 1] ? otlp_member(x, &n, &key) : otlp_element(x, &n);
            if (rc < 0) return false;
            if (rc == 0) {
                depth--;
                n = 1;
            }
        } while (rc == 0 && depth);
        if (!depth) return true;
    }
}
