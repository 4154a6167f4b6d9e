/* Jackson's tokens: a pull parser that reads bytes in the same steps as Jackson's UTF8StreamJsonParser, so that it stands at the
 * same byte after an error. That matters, since Flink goes on after an error inside a field (json.ignore-parse-errors).
 *
 * Laxer than RFC 8259, as Jackson is with Flink's settings: raw control characters in strings, overlong UTF-8 forms, surrogates in
 * UTF-8 and alone in escapes, code points above U+10FFFF. Text that is no well-formed UTF-16 in Java becomes '?' for each lone surrogate.
 *
 * Invariants
 *  1. ptr <= end. A token's value is read together with its name (pending), except for a string's text, which is read when
 *     it is asked for or skipped (incomplete).
 *  2. type[0] is the root; type[depth] is the innermost open object or array.
 * Source: jackson-core 2.18 (behaviour), StreamReadConstraints.
 */
#include "decode/json_int.h"
#include <stdarg.h>
#include <stdio.h>

bool js_error(js_parser *p, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->msg, sizeof p->msg, fmt, ap);
    va_end(ap);
    /* It may quote the document: one line of well-formed text is what comes out. */
    size_t n = strlen(p->msg);
    for (size_t i = 0; i < n;) {
        size_t at = i;
        uint32_t c = fz_utf8_next(p->msg, n, &i);
        if (c == 0xfffd || c < 0x20 || c == 0x7f) memset(p->msg + at, '?', i - at);
    }
    return false;
}

void js_parser_start(js_parser *p, const uint8_t *in, size_t n) {
    p->in = in;
    p->ptr = 0;
    p->end = n;
    p->cur = p->pending = JT_NONE;
    p->incomplete = p->ended = false;
    p->depth = 0;
    p->type[0] = 'r';
    p->index[0] = -1;
    p->msg[0] = 0;
    p->text.len = 0;
}

void js_parser_free(js_parser *p) {
    fz_buf_free(&p->name);
    fz_buf_free(&p->text);
}

static const char *const token_names[] = {"null", "START_OBJECT", "END_OBJECT", "START_ARRAY", "END_ARRAY", "FIELD_NAME", "VALUE_STRING",
                                          "VALUE_NUMBER_INT", "VALUE_NUMBER_FLOAT", "VALUE_TRUE", "VALUE_FALSE", "VALUE_NULL"};

static const char *context_name(const js_parser *p) {
    uint8_t t = p->type[p->depth];
    return t == 'o' ? "Object" : t == 'a' ? "Array" : "root";
}

static bool unexpected(js_parser *p, uint32_t c, const char *where, const char *why) {
    char desc[40];
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) snprintf(desc, sizeof desc, "(CTRL-CHAR, code %u)", c);
    else {
        char utf8[5];
        utf8[fz_utf8_put(utf8, c >= 0xd800 && c < 0xe000 ? '?' : c)] = 0;
        if (c > 255) snprintf(desc, sizeof desc, "'%s' (code %u / 0x%x)", utf8, c, c);
        else snprintf(desc, sizeof desc, "'%s' (code %u)", utf8, c);
    }
    return js_error(p, "Unexpected character (%s)%s: %s", desc, where, why);
}

static bool eof(js_parser *p, const char *where) { return js_error(p, "Unexpected end-of-input%s", where); }
static bool eof_in_token(js_parser *p) { return js_error(p, "Unexpected end-of-input in %s", token_names[p->cur]); }

/* ---- characters ---- */

/* Continuation byte into *v. */
static bool continuation(js_parser *p, uint32_t *v) {
    if (p->ptr >= p->end) return eof_in_token(p);
    uint8_t d = p->in[p->ptr++];
    if ((d & 0xc0) != 0x80) return js_error(p, "Invalid UTF-8 middle byte 0x%x", d);
    *v = (*v << 6) | (d & 0x3f);
    return true;
}

/* The rest of a character that began with c >= 0x80: unchecked code point (overlong and too large forms pass). */
static bool utf8_rest(js_parser *p, uint32_t c, uint32_t *out, unsigned *bytes) {
    unsigned n = (c & 0xe0) == 0xc0 ? 1 : (c & 0xf0) == 0xe0 ? 2 : (c & 0xf8) == 0xf0 ? 3 : 0;
    if (!n) return js_error(p, "Invalid UTF-8 start byte 0x%x", c);
    *bytes = n + 1;
    *out = c & (n == 1 ? 0x1fu : n == 2 ? 0x0fu : 0x07u);
    for (; n; n--)
        if (!continuation(p, out)) return false;
    return true;
}

/* Java's UTF-16 as it grows, written as UTF-8 with '?' for lone surrogates. */
typedef struct units { fz_buf *b; uint32_t high; uint64_t n; bool lone; } units;

static void put_lone(units *u) {
    fz_buf_putc(u->b, '?');
    u->high = 0;
    u->lone = true;
}

static void put_unit(units *u, uint32_t c) {
    u->n++;
    if (c >= 0xdc00 && c < 0xe000 && u->high) {
        char t[4];
        fz_buf_append(u->b, t, fz_utf8_put(t, 0x10000 + ((u->high & 0x3ff) << 10) + (c & 0x3ff)));
        u->high = 0;
        return;
    }
    if (u->high) put_lone(u);
    if (c < 0x80) fz_buf_putc(u->b, (char)c);
    else if (c >= 0xd800 && c < 0xdc00) u->high = c;
    else if (c >= 0xdc00 && c < 0xe000) put_lone(u);
    else {
        char t[4];
        fz_buf_append(u->b, t, fz_utf8_put(t, c));
    }
}

/* A code point from UTF-8 as Jackson turns it into units; names add where values or (they differ for ill-formed input only). */
static void put_point(units *u, uint32_t c, unsigned bytes, bool name) {
    if (bytes < 4) {
        put_unit(u, c);
        return;
    }
    int32_t s = (int32_t)c - 0x10000;
    int32_t h = s >= 0 ? s >> 10 : -((-s + 1023) >> 10);
    put_unit(u, (name ? (uint32_t)(0xd800 + h) : (0xd800u | (uint32_t)h)) & 0xffff);
    put_unit(u, 0xdc00u | ((uint32_t)s & 0x3ff));
}

static int hex_value(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands in a message about the character that begins with byte c; reads the rest of it. */
static bool char_for_error(js_parser *p, uint32_t c, uint32_t *out) {
    unsigned bytes;
    *out = c;
    return c < 0x80 || utf8_rest(p, c, out, &bytes);
}

/* After a backslash. */
bool js_escape(js_parser *p, uint32_t *out) {
    if (p->ptr >= p->end) return eof(p, " in character escape sequence");
    uint8_t c = p->in[p->ptr++];
    switch (c) {
    case 'b': *out = '\b'; return true;
    case 't': *out = '\t'; return true;
    case 'n': *out = '\n'; return true;
    case 'f': *out = '\f'; return true;
    case 'r': *out = '\r'; return true;
    case '"': case '/': case '\\': *out = c; return true;
    case 'u': break;
    default: {
        uint32_t e;
        if (!char_for_error(p, c, &e)) return false;
        return js_error(p, "Unrecognized character escape (code %u)", e);
    }
    }
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        if (p->ptr >= p->end) return eof(p, " in character escape sequence");
        c = p->in[p->ptr++];
        int h = hex_value(c);
        if (h < 0) return unexpected(p, c, "", "expected a hex-digit for character escape sequence");
        v = (v << 4) | (uint32_t)h;
    }
    *out = v;
    return true;
}

/* ---- strings and names ---- */

static bool finish_string(js_parser *p) {
    units u = {.b = &p->text};
    p->text.len = 0;
    p->incomplete = false;
    for (;;) {
        size_t from = p->ptr;
        while (p->ptr < p->end && p->in[p->ptr] != '"' && p->in[p->ptr] != '\\' && p->in[p->ptr] < 0x80) p->ptr++;
        if (p->ptr > from) {
            if (u.high) put_lone(&u);
            fz_buf_append(u.b, p->in + from, p->ptr - from);
            u.n += p->ptr - from;
        }
        if (p->ptr >= p->end) return eof_in_token(p);
        uint32_t c = p->in[p->ptr++];
        unsigned bytes = 1;
        if (c == '"') break;
        if (c == '\\') {
            if (!js_escape(p, &c)) return false;
            put_unit(&u, c);
        } else {
            if (!utf8_rest(p, c, &c, &bytes)) return false;
            put_point(&u, c, bytes, false);
        }
    }
    if (u.high) put_lone(&u);
    if (u.n > JS_MAX_STRING) return js_error(p, "String value length (%llu) exceeds the maximum allowed (%d)", (unsigned long long)u.n, JS_MAX_STRING);
    return true;
}

static bool skip_string(js_parser *p) {
    p->incomplete = false;
    for (;;) {
        while (p->ptr < p->end && p->in[p->ptr] != '"' && p->in[p->ptr] != '\\' && p->in[p->ptr] < 0x80) p->ptr++;
        if (p->ptr >= p->end) return eof_in_token(p);
        uint32_t c = p->in[p->ptr++];
        unsigned bytes;
        if (c == '"') return true;
        if (c == '\\' ? !js_escape(p, &c) : !utf8_rest(p, c, &c, &bytes)) return false;
    }
}

/* Decodes a name's bytes once all of them are there; ptr is behind the name by then. */
static bool decode_name(js_parser *p, const uint8_t *s, size_t n) {
    units u = {.b = &p->name};
    p->name.len = 0;
    if (n > JS_MAX_NAME) return js_error(p, "Name length (%zu) exceeds the maximum allowed (%d)", n, JS_MAX_NAME);
    for (size_t i = 0; i < n;) {
        uint32_t c = s[i++];
        if (c < 0x80) {
            put_unit(&u, c);
            continue;
        }
        unsigned more = (c & 0xe0) == 0xc0 ? 1 : (c & 0xf0) == 0xe0 ? 2 : (c & 0xf8) == 0xf0 ? 3 : 0;
        if (!more) return js_error(p, "Invalid UTF-8 start byte 0x%x", c);
        if (i + more > n) return eof(p, " in field name");
        c &= more == 1 ? 0x1fu : more == 2 ? 0x0fu : 0x07u;
        for (unsigned k = 0; k < more; k++, i++) {
            if ((s[i] & 0xc0) != 0x80) return js_error(p, "Invalid UTF-8 middle byte 0x%x", s[i]);
            c = (c << 6) | (s[i] & 0x3fu);
        }
        put_point(&u, c, more + 1, true);
    }
    if (u.high) put_lone(&u);
    p->name_odd = u.lone;
    return true;
}

/* i is the character where a name must begin; ptr is behind it. */
static bool parse_name(js_parser *p, uint32_t i) {
    if (i != '"') {
        uint32_t e;
        if (!char_for_error(p, i, &e)) return false;
        return unexpected(p, e, "", "was expecting double-quote to start field name");
    }
    size_t from = p->ptr;
    while (p->ptr < p->end && p->in[p->ptr] != '"' && p->in[p->ptr] != '\\') p->ptr++;
    if (p->ptr < p->end && p->in[p->ptr] == '"') return decode_name(p, p->in + from, p->ptr++ - from);
    fz_buf *raw = &p->text; /* no string is being read now */
    raw->len = 0;
    fz_buf_append(raw, p->in + from, p->ptr - from);
    for (;;) {
        if (p->ptr >= p->end) return eof(p, " in field name");
        uint32_t c = p->in[p->ptr++];
        if (c == '"') break;
        if (c == '\\') {
            if (!js_escape(p, &c)) return false;
            if (c >= 0x800) {
                fz_buf_putc(raw, (char)(0xe0 | (c >> 12)));
                fz_buf_putc(raw, (char)(0x80 | ((c >> 6) & 0x3f)));
            } else if (c >= 0x80) fz_buf_putc(raw, (char)(0xc0 | (c >> 6)));
            if (c >= 0x80) c = 0x80 | (c & 0x3f);
        }
        fz_buf_putc(raw, (char)c);
    }
    return decode_name(p, raw->data, raw->len);
}

/* ---- numbers and literals ---- */

/* Jackson reads the rest of what looks like a word, and the character after it, into its message. */
static bool invalid_token(js_parser *p, size_t from) {
    while (p->ptr < p->end) {
        uint32_t c = p->in[p->ptr++], e;
        if (!char_for_error(p, c, &e)) return false;
        bool part = (e >= '0' && e <= '9') || (e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || e == '_' || e == '$' || e >= 0xaa ||
                    e < 9 || (e >= 0x0e && e < 0x1c) || (e >= 0x7f && e < 0xa0);
        if (!part || p->ptr - from >= 256) break;
    }
    size_t n = p->ptr - from;
    return js_error(p, "Unrecognized token '%.*s': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
                    (int)(n > 60 ? 60 : n), (const char *)p->in + from);
}

/* The rest of a word whose first `done` characters have been read. */
static bool match(js_parser *p, const char *word, size_t done) {
    size_t from = p->ptr - done;
    for (size_t i = done; word[i]; i++) {
        if (p->ptr >= p->end || p->in[p->ptr] != (uint8_t)word[i]) return invalid_token(p, from);
        p->ptr++;
    }
    if (p->ptr >= p->end) return true;
    uint32_t c = p->in[p->ptr];
    if (c < '0' || c == ']' || c == '}') return true;
    if (c >= 0x80) { /* Jackson reads the character to look at it, and does not put it back */
        p->ptr++;
        if (!char_for_error(p, c, &c)) return false;
        return c < 0xaa || invalid_token(p, from);
    }
    bool part = (c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == 0x7f;
    return !part || invalid_token(p, from);
}

static bool number_char(js_parser *p, uint32_t c, const char *why) { return unexpected(p, c, " in numeric value", why); }

static bool invalid_number_start(js_parser *p, uint32_t c, bool negative) {
    if (c == 'I') {
        if (p->ptr >= p->end) return eof(p, " in a Number value");
        c = p->in[p->ptr++];
        const char *word = c == 'N' ? (negative ? "-INF" : "+INF") : c == 'n' ? (negative ? "-Infinity" : "+Infinity") : NULL;
        if (word) {
            if (!match(p, word, 3)) return false;
            return js_error(p, "Non-standard token '%s': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow", word);
        }
    }
    if (!negative)
        return number_char(p, '+', "JSON spec does not allow numbers to have plus signs: enable `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow");
    return number_char(p, c, "expected digit (0-9) to follow minus sign, for valid numeric value");
}

/* At the root a number must be followed by white space, which is read. */
static bool root_space(js_parser *p) {
    if (p->type[p->depth] != 'r' || p->ptr >= p->end) return true;
    uint8_t c = p->in[p->ptr];
    if (c == '\r') return true;
    p->ptr++;
    return c == ' ' || c == '\t' || c == '\n' || unexpected(p, c, "", "Expected space separating root-level values");
}

static bool number_end(js_parser *p, js_token t, size_t digits, js_token *out) {
    p->num_len = p->ptr - p->num;
    if (!root_space(p)) return false;
    if (digits > JS_MAX_NUMBER)
        return js_error(p, "Number value length (%zu) exceeds the maximum allowed (%d)", digits, JS_MAX_NUMBER);
    *out = t;
    return true;
}

static size_t digits(js_parser *p) {
    size_t from = p->ptr;
    while (p->ptr < p->end && p->in[p->ptr] >= '0' && p->in[p->ptr] <= '9') p->ptr++;
    return p->ptr - from;
}

/* From the fraction or exponent on; c (the character at ptr - 1) is '.', 'e' or 'E'. */
static bool parse_float(js_parser *p, uint32_t c, size_t int_digits, js_token *out) {
    size_t fraction = 0, exponent = 0;
    if (c == '.') {
        fraction = digits(p);
        if (!fraction) {
            if (p->ptr < p->end) c = p->in[p->ptr++];
            return number_char(p, c, "Decimal point not followed by a digit");
        }
        c = 0;
        if (p->ptr < p->end && (p->in[p->ptr] | 0x20) == 'e') c = p->in[p->ptr++];
    }
    if (c) {
        if (p->ptr >= p->end) return eof_in_token(p);
        if (p->in[p->ptr] == '-' || p->in[p->ptr] == '+') {
            if (++p->ptr >= p->end) return eof_in_token(p);
        }
        exponent = digits(p);
        if (!exponent) {
            c = p->in[p->ptr++];
            return number_char(p, c, "Exponent indicator not followed by a digit");
        }
    }
    return number_end(p, JT_FLOAT, int_digits + fraction + exponent, out);
}

/* c is the digit at ptr - 1, or the minus sign. */
static bool parse_number(js_parser *p, uint32_t c, js_token *out) {
    p->num = p->ptr - 1;
    if (c == '-') {
        if (p->ptr >= p->end) return eof_in_token(p);
        c = p->in[p->ptr++];
        if (c == '.') return unexpected(p, '.', "", "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')");
        if (c < '0' || c > '9') return invalid_number_start(p, c, true);
    }
    if (c == '0' && p->ptr < p->end && p->in[p->ptr] >= '0' && p->in[p->ptr] <= '9') return js_error(p, "Invalid numeric value: Leading zeroes not allowed");
    size_t n = 1 + digits(p);
    if (p->ptr < p->end) {
        c = p->in[p->ptr];
        if (c == '.' || (c | 0x20) == 'e') {
            p->ptr++;
            return parse_float(p, c, n, out);
        }
    }
    return number_end(p, JT_INT, n, out);
}

static bool unexpected_value(js_parser *p, uint32_t c) {
    switch (c) {
    case ']':
        if (p->type[p->depth] != 'a') break;
        /* fall through */
    case ',': case '}':
        return unexpected(p, c, "", "expected a value");
    case 'N': case 'I': {
        const char *word = c == 'N' ? "NaN" : "Infinity";
        if (!match(p, word, 1)) return false;
        return js_error(p, "Non-standard token '%s': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow", word);
    }
    case '+':
        if (p->ptr >= p->end) return eof(p, " in a Number value");
        c = p->in[p->ptr++];
        return invalid_number_start(p, c, false);
    default: break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 0xc0) return invalid_token(p, p->ptr - 1);
    return unexpected(p, c, "", "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')");
}

/* The value that begins with c (at ptr - 1); strings and nested values only begin. */
static bool parse_value(js_parser *p, uint32_t c, js_token *out) {
    switch (c) {
    case '"':
        p->incomplete = true;
        *out = JT_STRING;
        return true;
    case '{': *out = JT_START_OBJECT; return true;
    case '[': *out = JT_START_ARRAY; return true;
    case 't': *out = JT_TRUE; return match(p, "true", 1);
    case 'f': *out = JT_FALSE; return match(p, "false", 1);
    case 'n': *out = JT_NULL; return match(p, "null", 1);
    default: break;
    }
    if (c == '-' || (c >= '0' && c <= '9')) return parse_number(p, c, out);
    return unexpected_value(p, c);
}

/* ---- structure ---- */

/* Next character that is no white space, read; 0 with *end: there is none. */
static bool skip_space(js_parser *p, uint32_t *c, bool *at_end) {
    *at_end = false;
    while (p->ptr < p->end) {
        *c = p->in[p->ptr++];
        if (*c == ' ' || *c == '\n' || *c == '\t' || *c == '\r') continue;
        if (*c < 0x20)
            return js_error(p, "Illegal character ((CTRL-CHAR, code %u)): only regular white space (\\r, \\n, \\t) is allowed between tokens", *c);
        if (*c == '/')
            return unexpected(p, '/', "", "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser)");
        return true;
    }
    *at_end = true;
    *c = 0;
    return true;
}

static bool open_scope(js_parser *p, js_token t) {
    if (t == JT_START_OBJECT || t == JT_START_ARRAY) {
        if (p->depth > FZ_MAX_JSON_DEPTH) return js_error(p, "Depth (%u) exceeds the maximum allowed nesting depth (%d)", p->depth + 1, FZ_MAX_JSON_DEPTH);
        p->depth++;
        p->type[p->depth] = t == JT_START_OBJECT ? 'o' : 'a';
        p->index[p->depth] = -1;
        if (p->depth > FZ_MAX_JSON_DEPTH) return js_error(p, "Depth (%u) exceeds the maximum allowed nesting depth (%d)", p->depth, FZ_MAX_JSON_DEPTH);
    }
    p->cur = t;
    return true;
}

static bool close_scope(js_parser *p, uint32_t c) {
    if (p->type[p->depth] != (c == ']' ? 'a' : 'o'))
        return js_error(p, "Unexpected close marker '%c': expected '%c'", (char)c, c == ']' ? '}' : ']');
    p->depth--;
    p->cur = c == ']' ? JT_END_ARRAY : JT_END_OBJECT;
    return true;
}

static bool next_name(js_parser *p, uint32_t c) {
    bool at_end;
    if (!parse_name(p, c)) return false;
    p->cur = JT_NAME;
    p->pending = JT_NONE;
    if (!skip_space(p, &c, &at_end)) return false;
    if (at_end) return eof(p, " within/between Object entries");
    if (c != ':') return unexpected(p, c, "", "was expecting a colon to separate field name and value");
    if (!skip_space(p, &c, &at_end)) return false;
    if (at_end) return eof(p, " within/between Object entries");
    js_token t = JT_NONE;
    if (!parse_value(p, c, &t)) return false;
    p->pending = t;
    return true;
}

bool js_next(js_parser *p) {
    if (p->cur == JT_NAME) {
        js_token t = p->pending;
        p->pending = JT_NONE;
        return open_scope(p, t);
    }
    if (p->incomplete && !skip_string(p)) return false;
    uint32_t c;
    bool at_end;
    if (!skip_space(p, &c, &at_end)) return false;
    if (at_end) {
        if (p->depth) return js_error(p, "Unexpected end-of-input: expected close marker for %s", context_name(p));
        p->cur = JT_NONE;
        p->ended = true;
        return true;
    }
    if (c == ']' || c == '}') return close_scope(p, c);
    int32_t index = ++p->index[p->depth];
    if (p->depth && index > 0) {
        if (c != ',') {
            char why[64];
            snprintf(why, sizeof why, "was expecting comma to separate %s entries", context_name(p));
            return unexpected(p, c, "", why);
        }
        if (!skip_space(p, &c, &at_end)) return false;
        if (at_end) return js_error(p, "Unexpected end-of-input within/between %s entries", context_name(p));
    }
    if (p->type[p->depth] == 'o') return next_name(p, c);
    js_token t = JT_NONE;
    if (!parse_value(p, c, &t)) return false;
    return open_scope(p, t);
}

bool js_text(js_parser *p, fz_sv *out) {
    *out = (fz_sv){NULL, 0};
    switch (p->cur) {
    case JT_NONE: break;
    case JT_NAME: *out = (fz_sv){(const char *)p->name.data, p->name.len}; break;
    case JT_STRING:
        if (p->incomplete && !finish_string(p)) return false;
        *out = (fz_sv){(const char *)p->text.data, p->text.len};
        break;
    case JT_INT: case JT_FLOAT: *out = (fz_sv){(const char *)p->in + p->num, p->num_len}; break;
    case JT_START_OBJECT: *out = FZ_SV("{"); break;
    case JT_END_OBJECT: *out = FZ_SV("}"); break;
    case JT_START_ARRAY: *out = FZ_SV("["); break;
    case JT_END_ARRAY: *out = FZ_SV("]"); break;
    case JT_TRUE: *out = FZ_SV("true"); break;
    case JT_FALSE: *out = FZ_SV("false"); break;
    case JT_NULL: *out = FZ_SV("null"); break;
    }
    if (p->cur != JT_NONE && !out->p) out->p = "";
    return true;
}
