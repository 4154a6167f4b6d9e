/* MessagePack values as text: what a column of text holds, and whole records as JSON.
 *
 *   integers      decimal                        floats    as Java's Double.toString and Float.toString; NaN and infinities as JSON strings
 *   bool, nil     true, false, null              str, bin  a string; ill-formed UTF-8 replaced by U+FFFD
 *   map, array    JSON without blanks; of equal keys the last counts; keys that are numbers and the like as their text, and none
 *                 that are maps or arrays
 *   EventTime and timestamps   "2025-01-02T03:04:05.123456789Z"
 *   other ext     Base64 of its bytes
 */
#include "decode/msgpack_int.h"
#include "col/datetime.h"
#include "col/numtext.h"
#include "decode/json_fast_int.h"

static uint64_t be(const uint8_t *p, unsigned n) {
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

bool mpd_time_of(const mp_item *v, int64_t *sec, uint32_t *nsec) {
    uint64_t ns;
    if (v->ext == 0 && v->n == 8) {
        *sec = (int64_t)be(v->p, 4);
        ns = be(v->p + 4, 4);
    } else if (v->ext == -1 && v->n == 4) {
        *sec = (int64_t)be(v->p, 4);
        ns = 0;
    } else if (v->ext == -1 && v->n == 8) {
        ns = be(v->p, 8) >> 34;
        *sec = (int64_t)(be(v->p, 8) & 0x3ffffffffu);
    } else if (v->ext == -1 && v->n == 12) {
        ns = be(v->p, 4);
        *sec = (int64_t)be(v->p + 4, 8);
    } else return false;
    *nsec = (uint32_t)ns;
    return ns < 1000000000 && *sec >= -62135596800 && *sec <= 253402300799; /* years 1 to 9999 */
}

fz_sv mpd_utf8(mp_decoder *d, fz_sv s) { return js_utf8_repaired(&d->repaired, s); }

static void time_text(fz_buf *b, int64_t sec, uint32_t nsec) {
    dt_fields f;
    dt_fields_of(sec * DT_US_PER_SECOND, &f);
    fz_buf_printf(b, "%04d-%02d-%02dT%02d:%02d:%02d", f.year, f.month, f.day, f.hour, f.minute, f.second);
    if (nsec) fz_buf_printf(b, ".%09u", nsec);
    fz_buf_putc(b, 'Z');
}

bool mpd_scalar_text(mp_decoder *d, const mp_item *v, js_token *tok, fz_sv *out) {
    char t[NT_TEXT_MAX];
    fz_buf *b = &d->text;
    int64_t sec;
    uint32_t nsec;
    b->len = 0;
    switch (v->type) {
    case MP_BOOL:
        *tok = v->b ? JT_TRUE : JT_FALSE;
        fz_buf_puts(b, v->b ? "true" : "false");
        break;
    case MP_INT:
        *tok = JT_INT;
        fz_buf_append(b, t, nt_int_text(v->i, t));
        break;
    case MP_UINT:
        *tok = JT_INT;
        fz_buf_printf(b, "%llu", (unsigned long long)v->u);
        break;
    case MP_FLOAT: case MP_DOUBLE:
        *tok = JT_FLOAT;
        fz_buf_append(b, t, v->type == MP_FLOAT ? nt_float_text((float)v->d, t) : nt_double_text(v->d, t));
        break;
    case MP_STR: case MP_BIN:
        *tok = JT_STRING;
        *out = (fz_sv){(const char *)v->p, v->n};
        return true;
    case MP_EXT:
        *tok = JT_STRING;
        if (mpd_time_of(v, &sec, &nsec)) time_text(b, sec, nsec);
        else fz_buf_base64(b, v->p, v->n);
        break;
    default: return false;
    }
    *out = (fz_sv){b->data ? (const char *)b->data : "", b->len};
    return true;
}

static bool broken(mp_decoder *d) { return js_error(&d->json.parser, "the record ends in the middle of a value"); }

static bool members(mp_decoder *d, const uint8_t **p, const uint8_t *end, uint32_t n, uint32_t depth, fz_buf *out, js_members *m) {
    for (uint32_t k = 0; k < n; k++) {
        mp_item name;
        js_token tok;
        fz_sv s = {0};
        if (k) fz_buf_putc(out, ',');
        if (mp_read(p, end, &name) != MP_OK) return broken(d);
        size_t key = out->len;
        if (name.type == MP_NIL) js_quote(out, FZ_SV("null"));
        else if (mpd_scalar_text(d, &name, &tok, &s)) js_quote(out, mpd_utf8(d, s));
        else return js_error(&d->json.parser, "a key is an array or a map"); /* their text, quoted again at each level, would grow without bound */
        uint32_t i = (uint32_t)(js_member_of(m, out, key, out->len - key) - m->v);
        fz_buf_putc(out, ':');
        size_t from = out->len;
        if (!mpd_json_text(d, p, end, depth + 1, out)) return false;
        m->v[i].value = from;
        m->v[i].value_len = out->len - from;
    }
    return true;
}

bool mpd_json_text(mp_decoder *d, const uint8_t **p, const uint8_t *end, uint32_t depth, fz_buf *out) {
    mp_item v;
    js_token tok;
    fz_sv s;
    if (depth > FZ_MAX_JSON_DEPTH) return js_error(&d->json.parser, "values are nested deeper than %d", FZ_MAX_JSON_DEPTH);
    if (mp_read(p, end, &v) != MP_OK) return broken(d);
    if (v.type == MP_MAP) {
        js_members m = {0};
        fz_buf_putc(out, '{');
        size_t from = out->len;
        bool ok = members(d, p, end, v.n, depth, out, &m);
        js_members_end(&m, out, from);
        fz_buf_putc(out, '}');
        return ok;
    }
    if (v.type == MP_ARRAY) {
        fz_buf_putc(out, '[');
        for (uint32_t k = 0; k < v.n; k++) {
            if (k) fz_buf_putc(out, ',');
            if (!mpd_json_text(d, p, end, depth + 1, out)) return false;
        }
        fz_buf_putc(out, ']');
        return true;
    }
    if (v.type == MP_NIL) fz_buf_puts(out, "null");
    else {
        mpd_scalar_text(d, &v, &tok, &s);
        if (tok == JT_STRING || (tok == JT_FLOAT && v.d - v.d != 0)) js_quote(out, mpd_utf8(d, s));
        else fz_buf_append(out, s.p, s.n);
    }
    return true;
}
