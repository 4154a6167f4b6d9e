/* A LogRecord as text: OTLP's JSON, fields in the order of their numbers, those that are not set left out. */
#include "decode/otlp_dec_int.h"
#include "col/numtext.h"

void odc_hex(const uint8_t *p, size_t n, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
}

static void name(fz_buf *out, size_t from, const char *s) {
    if (out->len > from) fz_buf_putc(out, ',');
    fz_buf_printf(out, "\"%s\":", s);
}
static void text(otlp_decoder *d, fz_buf *out, odc_bytes s) { js_quote(out, odc_utf8(d, (fz_sv){s.n ? (const char *)s.p : "", s.n})); }
static void number64(fz_buf *out, size_t from, const char *s, uint64_t v) {
    if (!v) return;
    name(out, from, s);
    fz_buf_printf(out, "\"%llu\"", (unsigned long long)v);
}
static void number32(fz_buf *out, size_t from, const char *s, int64_t v) {
    if (!v) return;
    name(out, from, s);
    fz_buf_printf(out, "%lld", (long long)v);
}
static void named_text(otlp_decoder *d, fz_buf *out, size_t from, const char *s, odc_bytes v) {
    if (!v.n) return;
    name(out, from, s);
    text(d, out, v);
}
static bool id(otlp_decoder *d, fz_buf *out, size_t from, const char *s, odc_bytes v, uint32_t want) {
    uint8_t bytes[OTLP_TRACE_ID];
    char hex[2 * OTLP_TRACE_ID];
    uint32_t n;
    if (!odc_id(v, want, bytes, &n)) return odc_broken(d);
    if (!n) return true;
    name(out, from, s);
    fz_buf_putc(out, '"');
    odc_hex(bytes, n, hex);
    fz_buf_append(out, hex, 2 * n);
    fz_buf_putc(out, '"');
    return true;
}

static bool any(otlp_decoder *d, odc_bytes v, uint32_t depth, fz_buf *out);

static bool pair(otlp_decoder *d, odc_bytes p, uint32_t depth, fz_buf *out) {
    fz_sv key;
    odc_bytes value;
    if (!odc_read_pair(d, p, &key, &value)) return false;
    fz_buf_puts(out, "{\"key\":");
    js_quote(out, odc_utf8(d, key));
    if (value.p) {
        fz_buf_puts(out, ",\"value\":");
        if (!any(d, value, depth + 1, out)) return false;
    }
    fz_buf_putc(out, '}');
    return true;
}

static bool values(otlp_decoder *d, odc_bytes list, bool pairs, uint32_t depth, fz_buf *out) {
    const uint8_t *p = list.p, *end = list.p + list.n;
    pb_field f;
    pb_result r;
    bool first = true;
    fz_buf_puts(out, "{\"values\":[");
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.number != OTLP_LIST_VALUES || f.wire != PB_BYTES) continue;
        if (!first) fz_buf_putc(out, ',');
        first = false;
        odc_bytes b = {f.p, f.n};
        if (!(pairs ? pair(d, b, depth, out) : any(d, b, depth + 1, out))) return false;
    }
    fz_buf_puts(out, "]}");
    return r == PB_END || odc_broken(d);
}

static bool any(otlp_decoder *d, odc_bytes v, uint32_t depth, fz_buf *out) {
    static const char *const names[] = {"", "stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue"};
    odc_value x;
    bool ok = true;
    if (depth > OTLP_MAX_DEPTH || !odc_read_any(d, v, &x)) return false;
    if (!x.kind) {
        fz_buf_puts(out, "{}");
        return true;
    }
    fz_buf_printf(out, "{\"%s\":", names[x.kind]);
    if (x.kind == OTLP_ANY_ARRAY || x.kind == OTLP_ANY_KVLIST) ok = values(d, x.b, x.kind == OTLP_ANY_KVLIST, depth, out);
    else if (x.kind == OTLP_ANY_INT) fz_buf_printf(out, "\"%lld\"", (long long)x.v);
    else ok = odc_json_any(d, v, depth, out); /* the same as the plain form */
    fz_buf_putc(out, '}');
    return ok;
}

static bool record(otlp_decoder *d, size_t from, fz_buf *out) {
    const odc_record *r = &d->rec;
    number64(out, from, "timeUnixNano", r->time);
    number32(out, from, "severityNumber", (int32_t)r->severity_number);
    named_text(d, out, from, "severityText", r->severity_text);
    if (r->body.p) {
        name(out, from, "body");
        if (!any(d, r->body, 1, out)) return false;
    }
    if (r->attributes.n) {
        name(out, from, "attributes");
        for (uint32_t i = 0; i < r->attributes.n; i++) {
            fz_buf_putc(out, i ? ',' : '[');
            if (!pair(d, r->attributes.v[i], 0, out)) return false;
        }
        fz_buf_putc(out, ']');
    }
    number32(out, from, "droppedAttributesCount", (uint32_t)r->dropped);
    number32(out, from, "flags", (int64_t)r->flags);
    if (!id(d, out, from, "traceId", r->trace_id, OTLP_TRACE_ID) || !id(d, out, from, "spanId", r->span_id, OTLP_SPAN_ID)) return false;
    number64(out, from, "observedTimeUnixNano", r->observed);
    named_text(d, out, from, "eventName", r->event_name);
    return true;
}

bool odc_record_text(dec_decoder *base, const uint8_t *p, size_t n, fz_buf *out) {
    otlp_decoder *d = (otlp_decoder *)base;
    size_t before = out->len;
    fz_buf_putc(out, '{');
    if (odc_read_record(d, p, n) && record(d, out->len, out)) {
        fz_buf_putc(out, '}');
        return true;
    }
    out->len = before;
    return false;
}
