/* AnyValue: into a column of any type, and as JSON text. See otlp_dec_int.h and, for what becomes of which value, otlp_format.c. */
#include "decode/otlp_dec_int.h"
#include "col/numtext.h"
#include "decode/json_fast_int.h"
#include <stdio.h>

enum { FEW = 16 }; /* so many keys are compared with one another */

bool odc_broken(otlp_decoder *d) { return js_error(&d->json.parser, "the record's protobuf is broken"); }
static bool mismatch(otlp_decoder *d, const char *what) { return js_error(&d->json.parser, "%s does not fit the column's type", what); }
static bool too_deep(otlp_decoder *d) { return js_error(&d->json.parser, "values are nested deeper than %u", OTLP_MAX_DEPTH); }

bool odc_read_any(otlp_decoder *d, odc_bytes any, odc_value *out) {
    const uint8_t *p = any.n ? any.p : (const uint8_t *)"", *end = p + any.n;
    pb_field f;
    pb_result r;
    out->kind = 0;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        switch (f.number) {
        case OTLP_ANY_STRING: case OTLP_ANY_ARRAY: case OTLP_ANY_KVLIST: case OTLP_ANY_BYTES:
            if (f.wire != PB_BYTES) continue;
            out->b = (odc_bytes){f.p, f.n};
            break;
        case OTLP_ANY_BOOL: case OTLP_ANY_INT:
            if (f.wire != PB_VARINT) continue;
            out->v = f.v;
            break;
        case OTLP_ANY_DOUBLE:
            if (f.wire != PB_FIXED64) continue;
            out->v = f.v;
            break;
        default: continue;
        }
        out->kind = f.number; /* of several the last one counts */
    }
    return r == PB_END || odc_broken(d);
}

bool odc_read_pair(otlp_decoder *d, odc_bytes pair, fz_sv *key, odc_bytes *value) {
    const uint8_t *p = pair.p, *end = pair.p + pair.n;
    pb_field f;
    pb_result r;
    *key = (fz_sv){"", 0};
    *value = (odc_bytes){NULL, 0};
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire != PB_BYTES) continue;
        if (f.number == OTLP_KEY) *key = (fz_sv){(const char *)f.p, f.n};
        else if (f.number == OTLP_VALUE) *value = (odc_bytes){f.p, f.n};
    }
    return r == PB_END || odc_broken(d);
}

/* The next of the values of an ArrayValue or KeyValueList. */
static pb_result next_of(const uint8_t **p, const uint8_t *end, odc_bytes *out) {
    pb_field f;
    pb_result r;
    while ((r = pb_next(p, end, &f)) == PB_FIELD)
        if (f.number == OTLP_LIST_VALUES && f.wire == PB_BYTES) {
            *out = (odc_bytes){f.p, f.n};
            return PB_FIELD;
        }
    return r;
}

fz_sv odc_utf8(otlp_decoder *d, fz_sv s) { return js_utf8_repaired(&d->repaired, s); }

/* ---- scalars ---- */

bool odc_put_text(otlp_decoder *d, js_col *c, odc_bytes s) {
    if (c->use_dict && c->n_dict) { /* mostly the value of the row before */
        uint32_t e = c->last;
        if (c->off[e + 1] - c->off[e] == s.n && memcmp(c->bytes + c->off[e], s.n ? s.p : (const uint8_t *)"", s.n) == 0) {
            js_put_same(c);
            return true;
        }
    }
    fz_sv t = odc_utf8(d, (fz_sv){s.n ? (const char *)s.p : "", s.n});
    js_put_bytes(c, t.p, t.n);
    return true;
}

static bool put_scalar(otlp_decoder *d, js_col *c, js_token tok, fz_sv text, const char *what) {
    if (c->kind == COL_BINARY || c->kind == COL_VARBINARY || c->kind == COL_ROW || c->kind == COL_MAP || c->kind == COL_ARRAY) return mismatch(d, what);
    return js_put_scalar(&d->json, c, tok, text, &d->json.parser);
}

bool odc_put_integer(otlp_decoder *d, js_col *c, int64_t v) {
    char t[NT_TEXT_MAX];
    if (c->kind == COL_BIGINT) js_put_i64(c, v);
    else if (c->kind == COL_INT && v >= INT32_MIN && v <= INT32_MAX) js_put_i32(c, (int32_t)v);
    else if (c->kind == COL_DOUBLE) js_put_f64(c, (double)v);
    else return put_scalar(d, c, JT_INT, (fz_sv){t, nt_int_text(v, t)}, "an integer");
    return true;
}

static bool put_double(otlp_decoder *d, js_col *c, double v) {
    char t[NT_TEXT_MAX];
    if (c->kind == COL_DOUBLE) js_put_f64(c, v);
    else if (c->kind == COL_FLOAT) js_put_f32(c, (float)v);
    else return put_scalar(d, c, JT_FLOAT, (fz_sv){t, nt_double_text(v, t)}, "a floating-point number");
    return true;
}

static bool put_bytes(otlp_decoder *d, js_col *c, odc_bytes b) {
    if (c->kind == COL_BINARY || c->kind == COL_VARBINARY) js_put_bytes(c, (const char *)b.p, b.n);
    else if (col_is_text(c->kind)) {
        d->text.len = 0;
        fz_buf_base64(&d->text, b.p, b.n);
        js_put_bytes(c, (const char *)d->text.data, d->text.len);
    } else return mismatch(d, "a value of bytes");
    return true;
}

/* ---- pairs ---- */

static bool put_pair(otlp_decoder *d, js_col *c, odc_bytes pair, uint32_t depth) {
    fz_sv key;
    odc_bytes value;
    if (!odc_read_pair(d, pair, &key, &value)) return false;
    if (c->kind == COL_MAP) return odc_put_text(d, &c->child[0], (odc_bytes){(const uint8_t *)key.p, key.n}) && odc_put_any(d, &c->child[1], value, depth + 1);
    int k = js_col_find(c, key.p, key.n);
    if (k < 0) return true;
    js_col *child = &c->child[k];
    if (child->len != c->len) js_col_cut(child, c->len); /* a second time: the last value counts */
    return odc_put_any(d, child, value, depth + 1);
}

static bool keys_differ(const js_col *keys, uint32_t from, uint32_t n) {
    for (uint32_t i = from + 1; i < from + n; i++)
        for (uint32_t j = from; j < i; j++) {
            uint32_t len = keys->off[i + 1] - keys->off[i];
            if (keys->off[j + 1] - keys->off[j] == len && memcmp(keys->bytes + keys->off[i], keys->bytes + keys->off[j], len) == 0) return false;
        }
    return true;
}

static void close_pairs(otlp_decoder *d, js_col *c) {
    if (c->kind == COL_ROW) {
        for (uint32_t i = 0; i < c->n_child; i++)
            if (c->child[i].len == c->len) js_put_null(&c->child[i]);
        js_put_row(c);
        return;
    }
    uint32_t from = js_map_from(c), n = c->child[0].len - from;
    if (n > FEW || !keys_differ(&c->child[0], from, n)) js_map_order(c); /* else in the order in which they came */
    if (c->use_dict) js_put_map_of(c, d->cx.raw.p, d->cx.raw.n);
    else js_put_array(c);
}

static bool put_kvlist(otlp_decoder *d, js_col *c, odc_bytes list, uint32_t depth) {
    const uint8_t *p = list.p, *end = list.p + list.n;
    odc_bytes pair;
    pb_result r;
    while ((r = next_of(&p, end, &pair)) == PB_FIELD)
        if (!put_pair(d, c, pair, depth)) return false;
    if (r != PB_END) return odc_broken(d);
    close_pairs(d, c);
    return true;
}

static bool put_array(otlp_decoder *d, js_col *c, odc_bytes list, uint32_t depth) {
    const uint8_t *p = list.p, *end = list.p + list.n;
    odc_bytes v;
    pb_result r;
    while ((r = next_of(&p, end, &v)) == PB_FIELD)
        if (!odc_put_any(d, &c->child[0], v, depth + 1)) return false;
    if (r != PB_END) return odc_broken(d);
    js_put_array(c);
    return true;
}

/* ---- any column ---- */

static bool put_value(otlp_decoder *d, js_col *c, const odc_value *v, odc_bytes any, uint32_t depth) {
    bool text = col_is_text(c->kind), pairs = v->kind == OTLP_ANY_KVLIST, array = v->kind == OTLP_ANY_ARRAY;
    if (pairs && (c->kind == COL_MAP || c->kind == COL_ROW)) return put_kvlist(d, c, v->b, depth);
    if (array && c->kind == COL_ARRAY) return put_array(d, c, v->b, depth);
    if ((pairs || array) && text) {
        d->text.len = 0;
        if (!odc_json_any(d, any, depth, &d->text)) return false;
        js_put_bytes(c, (const char *)d->text.data, d->text.len);
        return true;
    }
    switch (v->kind) {
    case OTLP_ANY_STRING:
        if (text) return odc_put_text(d, c, v->b);
        if (col_is_varlen(c->kind)) {
            js_put_bytes(c, (const char *)v->b.p, v->b.n);
            return true;
        }
        return put_scalar(d, c, JT_STRING, odc_utf8(d, (fz_sv){(const char *)v->b.p, v->b.n}), "a text");
    case OTLP_ANY_BYTES: return put_bytes(d, c, v->b);
    case OTLP_ANY_INT: return odc_put_integer(d, c, (int64_t)v->v);
    case OTLP_ANY_DOUBLE: return put_double(d, c, pb_double(v->v));
    case OTLP_ANY_BOOL:
        if (c->kind != COL_BOOLEAN) return put_scalar(d, c, v->v ? JT_TRUE : JT_FALSE, v->v ? FZ_SV("true") : FZ_SV("false"), "a boolean");
        js_put_bool(c, v->v != 0);
        return true;
    default: return mismatch(d, pairs ? "a list of pairs" : "an array");
    }
}

bool odc_put_any(otlp_decoder *d, js_col *c, odc_bytes any, uint32_t depth) {
    odc_value v;
    uint32_t n = c->len;
    if (depth > OTLP_MAX_DEPTH) return too_deep(d);
    if (!odc_read_any(d, any, &v)) return false;
    if (!v.kind) {
        js_put_null(c);
        return true;
    }
    if (put_value(d, c, &v, any, depth)) return true;
    js_col_cut(c, n);
    if (!d->json.ignore_errors) return false;
    js_put_null(c);
    return true;
}

/* ---- JSON text ---- */

static bool json_pair(otlp_decoder *d, odc_bytes pair, uint32_t depth, fz_buf *out, js_members *m) {
    fz_sv key;
    odc_bytes value;
    if (!odc_read_pair(d, pair, &key, &value)) return false;
    size_t at = out->len;
    js_quote(out, odc_utf8(d, key));
    uint32_t i = m ? (uint32_t)(js_member_of(m, out, at, out->len - at) - m->v) : 0;
    fz_buf_putc(out, ':');
    size_t from = out->len;
    if (!odc_json_any(d, value, depth + 1, out)) return false;
    if (m) {
        m->v[i].value = from;
        m->v[i].value_len = out->len - from;
    }
    return true;
}

static bool json_kvlist(otlp_decoder *d, odc_bytes list, uint32_t depth, fz_buf *out) {
    const uint8_t *p = list.p, *end = list.p + list.n;
    js_members m = {0};
    odc_bytes pair;
    pb_result r = PB_END;
    fz_buf_putc(out, '{');
    size_t from = out->len;
    bool ok = true;
    while (ok && (r = next_of(&p, end, &pair)) == PB_FIELD) {
        if (out->len > from) fz_buf_putc(out, ',');
        ok = json_pair(d, pair, depth, out, &m);
    }
    js_members_end(&m, out, from);
    fz_buf_putc(out, '}');
    return ok && (r == PB_END || odc_broken(d));
}

static bool json_array(otlp_decoder *d, odc_bytes list, uint32_t depth, fz_buf *out) {
    const uint8_t *p = list.p, *end = list.p + list.n;
    odc_bytes v;
    pb_result r;
    fz_buf_putc(out, '[');
    size_t from = out->len;
    while ((r = next_of(&p, end, &v)) == PB_FIELD) {
        if (out->len > from) fz_buf_putc(out, ',');
        if (!odc_json_any(d, v, depth + 1, out)) return false;
    }
    fz_buf_putc(out, ']');
    return r == PB_END || odc_broken(d);
}

bool odc_json_any(otlp_decoder *d, odc_bytes any, uint32_t depth, fz_buf *out) {
    odc_value v;
    char t[NT_TEXT_MAX];
    if (depth > OTLP_MAX_DEPTH) return too_deep(d);
    if (!odc_read_any(d, any, &v)) return false;
    switch (v.kind) {
    case OTLP_ANY_STRING: js_quote(out, odc_utf8(d, (fz_sv){(const char *)v.b.p, v.b.n})); return true;
    case OTLP_ANY_BOOL: fz_buf_puts(out, v.v ? "true" : "false"); return true;
    case OTLP_ANY_INT: fz_buf_append(out, t, nt_int_text((int64_t)v.v, t)); return true;
    case OTLP_ANY_DOUBLE: {
        double x = pb_double(v.v);
        bool odd = x - x != 0; /* NaN and infinities are no JSON numbers */
        if (odd) fz_buf_putc(out, '"');
        fz_buf_append(out, t, nt_double_text(x, t));
        if (odd) fz_buf_putc(out, '"');
        return true;
    }
    case OTLP_ANY_BYTES:
        fz_buf_putc(out, '"');
        fz_buf_base64(out, v.b.p, v.b.n);
        fz_buf_putc(out, '"');
        return true;
    case OTLP_ANY_ARRAY: return json_array(d, v.b, depth, out);
    case OTLP_ANY_KVLIST: return json_kvlist(d, v.b, depth, out);
    default: fz_buf_puts(out, "null"); return true;
    }
}

/* ---- attributes ---- */

static bool json_pairs(otlp_decoder *d, const odc_list *l, fz_buf *out) {
    js_members m = {0};
    bool ok = true;
    fz_buf_putc(out, '{');
    size_t from = out->len;
    for (uint32_t i = 0; ok && i < l->n; i++) {
        if (i) fz_buf_putc(out, ',');
        ok = json_pair(d, l->v[i], 0, out, l->n > 1 ? &m : NULL);
    }
    js_members_end(&m, out, from);
    fz_buf_putc(out, '}');
    return ok;
}

bool odc_put_pairs(otlp_decoder *d, js_col *c, const odc_list *l) {
    uint32_t n = c->len;
    if (col_is_text(c->kind)) {
        d->text.len = 0;
        if (!json_pairs(d, l, &d->text)) return false;
        return odc_put_text(d, c, (odc_bytes){d->text.data, d->text.len});
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (!put_pair(d, c, l->v[i], 0)) {
            js_col_cut(c, n);
            return false;
        }
    close_pairs(d, c);
    return true;
}
