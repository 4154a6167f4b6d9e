/* Flink's conversion of Jackson's tokens into a row, step for step (JsonParserToRowDataConverters of Flink 2.0).
 *
 * Flink does not look for the end of a value that it could not convert; it goes on with the next token. So {"n":{"s":"x"}} sets s when
 * n is an INT and errors are ignored, and the inner brace ends the row. That is kept.
 *
 * Invariants
 *  1. A converter adds exactly one value to its column, or fails and leaves the column's length as it was.
 *  2. With ignore_errors a failure inside a field becomes NULL at the innermost value that failed.
 */
#include "decode/json_int.h"
#include "col/datetime.h"
#include "col/decimal.h"
#include "col/numtext.h"
#include <stdio.h>

static bool convert_nullable(json_decoder *d, js_col *c);

/* ---- scalars ---- */

static fz_sv trim(fz_sv s) { /* String.trim: everything up to U+0020 */
    while (s.n && (uint8_t)s.p[0] <= ' ') s.p++, s.n--;
    while (s.n && (uint8_t)s.p[s.n - 1] <= ' ') s.n--;
    return s;
}

/* Zeros of the decimal digits in the basic plane that Java's Character.digit knows. */
static const uint16_t zeros[] = {0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6,
                                 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0,
                                 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10};

/* Other scripts' digits as ASCII, since Integer.parseInt and BigDecimal take them. Gives s itself when it is ASCII or too long. */
static fz_sv ascii_digits(fz_sv s, char *buf, size_t cap) {
    size_t n = 0, i = 0;
    while (i < s.n && (uint8_t)s.p[i] < 0x80) i++;
    if (i == s.n || s.n > cap) return s;
    for (i = 0; i < s.n;) {
        uint32_t cp = fz_utf8_next(s.p, s.n, &i);
        char out = cp < 0x80 ? (char)cp : 'x';
        for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++)
            if (cp >= zeros[k] && cp < zeros[k] + 10u) out = (char)('0' + (cp - zeros[k]));
        buf[n++] = out;
    }
    return (fz_sv){buf, n};
}

static bool bad_number(js_parser *p, fz_sv s) {
    return js_error(p, "For input string: \"%.*s\"", (int)(s.n > 100 ? 100 : s.n), s.p);
}

/* getIntValue and getLongValue for numbers, parseInt and parseLong for the rest. */
static bool to_integer(js_parser *p, js_token tok, bool floats, fz_sv text, int64_t min, int64_t max, int64_t *out) {
    if (tok == JT_FLOAT && floats) {
        double v;
        if (!nt_parse_double(text, &v) || !(v >= (double)min) || !(v <= (double)max))
            return js_error(p, "Numeric value (%.*s) out of range", (int)(text.n > 100 ? 100 : text.n), text.p);
        *out = v >= 9223372036854775808.0 ? INT64_MAX : (int64_t)v;
        return true;
    }
    char buf[64];
    fz_sv s = text;
    if (tok != JT_INT) s = ascii_digits(trim(text), buf, sizeof buf);
    bool sign = s.n && (s.p[0] == '+' || s.p[0] == '-');
    if (s.n <= sign || s.p[sign] < '0' || s.p[sign] > '9') return bad_number(p, text);
    if (sign && s.p[0] == '+') s.p++, s.n--;
    if (!fz_parse_i64(s, out)) return bad_number(p, text);
    if (*out < min || *out > max) return js_error(p, "Numeric value (%.*s) out of range", (int)(text.n > 100 ? 100 : text.n), text.p);
    return true;
}

/* new BigDecimal(String) accepts it. */
static bool is_decimal(fz_sv s) {
    size_t i = 0, n = 0;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) i++;
    for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) n++;
    if (i < s.n && s.p[i] == '.')
        for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) n++;
    if (!n) return false;
    if (i == s.n) return true;
    if ((s.p[i++] | 0x20) != 'e') return false;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) i++;
    size_t from = i;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9') i++;
    while (from < i && s.p[from] == '0') from++;
    return i == s.n && s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9' && i - from <= 10;
}

static bool put_decimal(js_parser *p, js_col *c, js_token tok, fz_sv text) {
    if (tok != JT_STRING && tok != JT_INT && tok != JT_FLOAT) return js_error(p, "Current token not numeric, can not use numeric value accessors");
    char buf[256];
    fz_sv s = tok == JT_STRING ? ascii_digits(trim(text), buf, sizeof buf) : text;
    if (!is_decimal(s)) return bad_number(p, text);
    col_i128 v;
    if (dcm_parse(s, c->type->precision, c->type->scale, &v)) js_put_dec(c, v);
    else js_put_null(c); /* more digits than the type holds */
    return true;
}

static bool put_time(json_decoder *d, js_col *c, fz_sv s, js_parser *p) {
    int64_t us;
    int32_t v;
    bool ok;
    switch (c->kind) {
    case COL_DATE:
    case COL_TIME:
        ok = c->kind == COL_DATE ? dt_parse_json_date(s, &v) : dt_parse_json_time(s, &v);
        if (ok) js_put_i32(c, v);
        break;
    default:
        ok = c->kind == COL_TIMESTAMP ? dt_parse_json_timestamp(s, d->iso, &us) : dt_parse_json_timestamp_ltz(s, d->iso, &us);
        if (ok) js_put_i64(c, dt_cut(us, c->type->precision));
    }
    return ok || js_error(p, "Text '%.*s' could not be parsed", (int)(s.n > 100 ? 100 : s.n), s.p);
}

static bool put_floating(js_parser *p, js_col *c, fz_sv s) {
    double v;
    float f;
    if (c->kind == COL_DOUBLE ? !nt_parse_double(s, &v) : !nt_parse_float(s, &f)) return bad_number(p, s);
    if (c->kind == COL_DOUBLE) js_put_f64(c, v);
    else js_put_f32(c, f);
    return true;
}

bool js_put_scalar(json_decoder *d, js_col *c, js_token tok, fz_sv text, js_parser *p) {
    int64_t v;
    switch (c->kind) {
    case COL_NULL: js_put_null(c); return true;
    case COL_BOOLEAN: js_put_bool(c, fz_sv_ieq(trim(text), FZ_SV("true"))); return true;
    case COL_TINYINT:
        if (!to_integer(p, tok, false, text, INT8_MIN, INT8_MAX, &v)) return false;
        js_put_i32(c, (int32_t)v);
        return true;
    case COL_SMALLINT:
        if (!to_integer(p, tok, false, text, INT16_MIN, INT16_MAX, &v)) return false;
        js_put_i32(c, (int32_t)v);
        return true;
    case COL_INT: case COL_INTERVAL_MONTH:
        if (!to_integer(p, tok, true, text, INT32_MIN, INT32_MAX, &v)) return false;
        js_put_i32(c, (int32_t)v);
        return true;
    case COL_BIGINT: case COL_INTERVAL_DAY:
        if (!to_integer(p, tok, true, text, INT64_MIN, INT64_MAX, &v)) return false;
        js_put_i64(c, v);
        return true;
    case COL_FLOAT: case COL_DOUBLE: return put_floating(p, c, text);
    case COL_DECIMAL: return put_decimal(p, c, tok, text);
    case COL_CHAR: case COL_VARCHAR: js_put_bytes(c, text.p, text.n); return true;
    case COL_DATE: case COL_TIME: case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: return put_time(d, c, text, p);
    default: return js_error(p, "not a scalar type");
    }
}

static bool convert_text(json_decoder *d, js_col *c) {
    js_parser *p = &d->parser;
    d->tree.len = 0;
    if (!js_tree_text(p, d->plain_decimals, &d->tree)) return false;
    js_put_bytes(c, (const char *)d->tree.data, d->tree.len);
    return true;
}

static bool convert_bytes(json_decoder *d, js_col *c) {
    d->tree.len = 0;
    if (!js_base64(&d->parser, &d->tree)) return false;
    js_put_bytes(c, (const char *)d->tree.data, d->tree.len);
    return true;
}

/* ---- nested ---- */

static bool convert_array(json_decoder *d, js_col *c) {
    js_parser *p = &d->parser;
    if (p->cur != JT_START_ARRAY) return js_error(p, "Illegal JSON array data...");
    for (;;) {
        if (!js_next(p)) return false;
        if (p->cur == JT_END_ARRAY) break;
        if (p->ended) return js_error(p, "Unexpected end-of-input"); /* Flink would not come back */
        if (!convert_nullable(d, &c->child[0])) return false;
    }
    js_put_array(c);
    return true;
}

static bool convert_map(json_decoder *d, js_col *c) {
    js_parser *p = &d->parser;
    if (p->cur != JT_START_OBJECT) return js_error(p, "Illegal JSON map data...");
    for (;;) {
        if (!js_next(p)) return false;
        if (p->cur == JT_END_OBJECT) break;
        if (p->ended) return js_error(p, "Unexpected end-of-input"); /* Flink would not come back */
        if (!convert_nullable(d, &c->child[0])) return false;
        if (!js_next(p) || !convert_nullable(d, &c->child[1])) return false;
    }
    js_put_map(c);
    return true;
}

/* Past the current token, or past the object or array that it opens, to the next one. */
static bool skip_to_next(js_parser *p) {
    if (p->cur == JT_NONE) return js_error(p, "Unexpected end-of-input");
    if (p->cur == JT_START_OBJECT || p->cur == JT_START_ARRAY)
        for (uint32_t open = 1; open > 0;) {
            if (!js_next(p)) return false;
            if (p->cur == JT_END_OBJECT || p->cur == JT_END_ARRAY) open--;
            else if (p->cur == JT_START_OBJECT || p->cur == JT_START_ARRAY) open++;
            else if (p->ended) return js_error(p, "Unexpected end-of-input");
        }
    return js_next(p);
}

/* One name and its value. *found: it is a field of c. */
static bool convert_member(json_decoder *d, js_col *c, uint32_t *count) {
    js_parser *p = &d->parser;
    fz_sv name;
    if (!js_text(p, &name)) return false;
    int k = name.p && !(p->cur == JT_NAME && p->name_odd) ? js_col_find(c, name.p, name.n) : -1;
    if (!js_next(p)) return false;
    if (k < 0) return skip_to_next(p);
    js_col *f = &c->child[k];
    js_col_cut(f, c->len);
    if (!convert_nullable(d, f)) {
        snprintf(d->field, sizeof d->field, "%s", f->name);
        return false;
    }
    ++*count;
    return js_next(p);
}

static bool convert_members(json_decoder *d, js_col *c) {
    js_parser *p = &d->parser;
    uint32_t count = 0;
    if (!js_next(p)) return false;
    while (p->cur != JT_END_OBJECT) {
        /* Once as many fields were found as the row has, the rest is skipped: repeated names count. */
        if (count >= c->n_child ? !skip_to_next(p) : !convert_member(d, c, &count)) return false;
    }
    if (count < c->n_child && d->fail_on_missing) return js_error(p, "Some field is missing in the JSON data.");
    return true;
}

static bool convert_row(json_decoder *d, js_col *c) {
    if (d->parser.cur != JT_START_OBJECT) return js_error(&d->parser, "Illegal JSON object data...");
    if (!convert_members(d, c)) return false;
    for (uint32_t i = 0; i < c->n_child; i++)
        if (c->child[i].len == c->len) js_put_null(&c->child[i]);
    js_put_row(c);
    return true;
}

static bool convert(json_decoder *d, js_col *c) {
    js_parser *p = &d->parser;
    fz_sv text;
    switch (c->kind) {
    case COL_ARRAY: return convert_array(d, c);
    case COL_MAP: return convert_map(d, c);
    case COL_ROW: return convert_row(d, c);
    case COL_BINARY: case COL_VARBINARY: return convert_bytes(d, c);
    case COL_CHAR: case COL_VARCHAR:
        if (p->cur == JT_START_OBJECT || p->cur == JT_START_ARRAY) return convert_text(d, c);
        break;
    default: break;
    }
    return js_text(p, &text) && js_put_scalar(d, c, p->cur, text, p);
}

static bool convert_nullable(json_decoder *d, js_col *c) {
    if (d->parser.cur == JT_NONE || d->parser.cur == JT_NULL) {
        js_put_null(c);
        return true;
    }
    uint32_t n = c->len;
    if (convert(d, c)) return true;
    js_col_cut(c, n);
    if (!d->ignore_errors) return false;
    d->field[0] = 0;
    js_put_null(c);
    return true;
}

/* ---- the document ---- */

/* Jackson's guess at the encoding: 4, 2 or 1 bytes a unit. */
static unsigned unit_size(const uint8_t *in, size_t n, bool *big, size_t *bom) {
    *big = true;
    *bom = 0;
    if (n >= 3 && in[0] == 0xef && in[1] == 0xbb && in[2] == 0xbf) {
        *bom = 3;
        return 1;
    }
    if (n >= 4) {
        uint32_t q = (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
        *big = q == 0xfeff || (q >> 8) == 0;
        *bom = q == 0xfeff || q == 0xfffe0000u ? 4 : 0;
        if (*bom || *big || (q & 0xffffff) == 0) return 4;
    }
    if (n < 2) return 1;
    uint32_t h = (uint32_t)in[0] << 8 | in[1];
    *bom = h == 0xfeff || h == 0xfffe ? 2 : 0;
    *big = h == 0xfeff || (h & 0xff00) == 0;
    return *bom || *big || (h & 0xff) == 0 ? 2 : 1;
}

static uint32_t read_unit(const uint8_t *in, unsigned size, bool big) {
    uint32_t v = 0;
    for (unsigned k = 0; k < size; k++) v |= (uint32_t)in[k] << 8 * (big ? size - 1 - k : k);
    return v;
}

static void widen(fz_buf *out, const uint8_t *in, size_t n, unsigned size, bool big) {
    out->len = 0;
    for (size_t i = 0; i + size <= n; i += size) {
        uint32_t c = read_unit(in + i, size, big);
        char t[4];
        if (size == 2 && c >= 0xd800 && c < 0xdc00 && i + 4 <= n) {
            uint32_t low = read_unit(in + i + 2, 2, big);
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
                i += 2;
            }
        }
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
        fz_buf_append(out, t, fz_utf8_put(t, c));
    }
}

bool js_exact(json_decoder *d, const uint8_t *in, size_t n) {
    js_parser *p = &d->parser;
    bool big;
    size_t bom;
    unsigned size = unit_size(in, n, &big, &bom);
    d->field[0] = 0;
    if (size > 1) {
        widen(&d->wide, in + bom, n - bom, size, big);
        js_parser_start(p, d->wide.data, d->wide.len);
    } else {
        js_parser_start(p, in, n);
        p->ptr = bom;
    }
    if (!js_next(p)) return false;
    if (p->cur != JT_START_OBJECT) return js_error(p, "No content to map due to end-of-input");
    uint32_t rows = d->root.len;
    if (convert_row(d, &d->root)) return true;
    js_col_cut(&d->root, rows);
    return false;
}
