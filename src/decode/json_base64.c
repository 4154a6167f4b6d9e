/* Base64 of a string token, read straight from the document as Jackson does: the variant MIME-NO-LINEFEEDS, in which white space may
 * stand between units of four characters and padding is required. After an error the rest of the string is still unread.
 */
#include "decode/json_int.h"

static int bits_of(uint32_t c) { /* -1: no character of it; -2: padding */
    if (c >= 'A' && c <= 'Z') return (int)c - 'A';
    if (c >= 'a' && c <= 'z') return (int)c - 'a' + 26;
    if (c >= '0' && c <= '9') return (int)c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : c == '=' ? -2 : -1;
}

static bool read_char(js_parser *p, uint32_t *c) {
    if (p->ptr >= p->end) return js_error(p, "Unexpected end-of-input in VALUE_STRING");
    *c = p->in[p->ptr++];
    return true;
}

static bool invalid(js_parser *p, uint32_t c, int at) {
    return js_error(p, "Failed to decode VALUE_STRING as base64 (MIME-NO-LINEFEEDS): Illegal character (code 0x%x) as character #%d of 4-char base64 unit", c, at + 1);
}

/* Bits of the next character of a unit, the at-th; escapes are resolved. */
static bool next_bits(js_parser *p, uint32_t c, int at, int *bits) {
    *bits = bits_of(c);
    if (*bits == -1 && c == '"' && at >= 2) {
        p->ptr--;
        return js_error(p, "Failed to decode VALUE_STRING as base64 (MIME-NO-LINEFEEDS): Unexpected end of base64-encoded String: "
                           "base64 variant 'MIME-NO-LINEFEEDS' expects padding (one or more '=' characters) at the end");
    }
    if (*bits == -1 && c == '\\') {
        if (!js_escape(p, &c)) return false;
        if (c <= ' ' && at == 0) return true; /* a blank between units */
        *bits = bits_of(c);
    }
    return (*bits >= 0 || (*bits == -2 && at >= 2)) || invalid(p, c, at);
}

/* One unit that begins with character c. */
static bool unit(js_parser *p, uint32_t c, fz_buf *out) {
    uint32_t acc = 0;
    int bits = 0, n = 0;
    for (; n < 4; n++) {
        if (n && !read_char(p, &c)) return false;
        if (!next_bits(p, c, n, &bits)) return false;
        if (bits < 0) break;
        acc = (acc << 6) | (uint32_t)bits;
    }
    if (n == 0) return true;
    if (n == 2) { /* "xx=" wants another "=" */
        if (!read_char(p, &c)) return false;
        if (c == '\\' && !js_escape(p, &c)) return false;
        if (c != '=') return invalid(p, c, 3);
        fz_buf_putc(out, (char)(acc >> 4));
        return true;
    }
    if (n == 4) fz_buf_putc(out, (char)(acc >> 16));
    else acc >>= 2;
    fz_buf_putc(out, (char)(acc >> 8));
    fz_buf_putc(out, (char)acc);
    return true;
}

bool js_base64(js_parser *p, fz_buf *out) {
    if (p->cur != JT_STRING || !p->incomplete) return js_error(p, "Current token not VALUE_STRING or VALUE_EMBEDDED_OBJECT, can not access as binary");
    for (;;) {
        uint32_t c;
        do
            if (!read_char(p, &c)) return false;
        while (c <= ' ');
        if (c == '"') break;
        if (!unit(p, c, out)) return false;
    }
    p->incomplete = false;
    return true;
}
