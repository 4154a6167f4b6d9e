/* OTLP's JSON form of an ExportLogsServiceRequest -> protobuf. See otlp_int.h.
 *
 *   names          lowerCamelCase; snake_case too, as the collector takes them: what is sent shall not vanish. Others are passed over
 *   64-bit numbers a number or a text of digits, never by way of a double; 1e3 and 5.0 are whole numbers, 1.5 is none
 *   ids            hexadecimal in any case, 32 and 16 digits or none
 *   enums          a number or a name; names that nobody knows are 0
 *   bytes          Base64, of either alphabet, with or without padding
 *   doubles        a number or a text: digits, "NaN", "Infinity", "-Infinity"
 *   null           as if the field were not there
 * Source: opentelemetry-proto docs/specification.md (JSON Protobuf Encoding), protobuf.dev/programming-guides/json.
 */
#include "source/otlp_int.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef enum { J_STRING, J_BYTES, J_TRACE_ID, J_SPAN_ID, J_FIXED64, J_FIXED32, J_UINT32, J_INT64, J_DOUBLE, J_BOOL, J_SEVERITY, J_MESSAGE, J_REPEATED } json_kind;
typedef struct json_message json_message;
typedef struct json_field { const char *name; uint32_t number; json_kind kind; const json_message *message; } json_field;
struct json_message { const json_field *fields; bool any; /* null among its elements stands for an empty one */ };

static const json_message any_value, array_value, kvlist_value;
static const json_message key_value = {(const json_field[]){{"key", OTLP_KEY, J_STRING, NULL}, {"value", OTLP_VALUE, J_MESSAGE, &any_value}, {0}}, false};
static const json_message array_value = {(const json_field[]){{"values", OTLP_LIST_VALUES, J_REPEATED, &any_value}, {0}}, false};
static const json_message kvlist_value = {(const json_field[]){{"values", OTLP_LIST_VALUES, J_REPEATED, &key_value}, {0}}, false};
static const json_message any_value = {(const json_field[]){
    {"stringValue", OTLP_ANY_STRING, J_STRING, NULL}, {"intValue", OTLP_ANY_INT, J_INT64, NULL}, {"boolValue", OTLP_ANY_BOOL, J_BOOL, NULL}, {"doubleValue", OTLP_ANY_DOUBLE, J_DOUBLE, NULL},
    {"arrayValue", OTLP_ANY_ARRAY, J_MESSAGE, &array_value}, {"kvlistValue", OTLP_ANY_KVLIST, J_MESSAGE, &kvlist_value}, {"bytesValue", OTLP_ANY_BYTES, J_BYTES, NULL}, {0}}, true};
static const json_message resource = {(const json_field[]){
    {"attributes", OTLP_RESOURCE_ATTRIBUTES, J_REPEATED, &key_value}, {"droppedAttributesCount", OTLP_RESOURCE_DROPPED, J_UINT32, NULL}, {0}}, false};
static const json_message scope = {(const json_field[]){
    {"name", OTLP_SCOPE_NAME, J_STRING, NULL}, {"version", OTLP_SCOPE_VERSION, J_STRING, NULL}, {"attributes", OTLP_SCOPE_ATTRIBUTES, J_REPEATED, &key_value},
    {"droppedAttributesCount", OTLP_SCOPE_DROPPED, J_UINT32, NULL}, {0}}, false};
static const json_message log_record = {(const json_field[]){
    {"timeUnixNano", OTLP_RECORD_TIME, J_FIXED64, NULL}, {"observedTimeUnixNano", OTLP_RECORD_OBSERVED_TIME, J_FIXED64, NULL}, {"severityNumber", OTLP_RECORD_SEVERITY_NUMBER, J_SEVERITY, NULL},
    {"severityText", OTLP_RECORD_SEVERITY_TEXT, J_STRING, NULL}, {"body", OTLP_RECORD_BODY, J_MESSAGE, &any_value}, {"attributes", OTLP_RECORD_ATTRIBUTES, J_REPEATED, &key_value},
    {"droppedAttributesCount", OTLP_RECORD_DROPPED, J_UINT32, NULL}, {"flags", OTLP_RECORD_FLAGS, J_FIXED32, NULL}, {"traceId", OTLP_RECORD_TRACE_ID, J_TRACE_ID, NULL},
    {"spanId", OTLP_RECORD_SPAN_ID, J_SPAN_ID, NULL}, {"eventName", OTLP_RECORD_EVENT_NAME, J_STRING, NULL}, {0}}, false};
static const json_message scope_logs = {(const json_field[]){
    {"scope", OTLP_SCOPE_LOGS_SCOPE, J_MESSAGE, &scope}, {"logRecords", OTLP_SCOPE_LOGS_RECORDS, J_REPEATED, &log_record}, {"schemaUrl", OTLP_SCOPE_LOGS_SCHEMA_URL, J_STRING, NULL}, {0}}, false};
static const json_message resource_logs = {(const json_field[]){
    {"resource", OTLP_RESOURCE_LOGS_RESOURCE, J_MESSAGE, &resource}, {"scopeLogs", OTLP_RESOURCE_LOGS_SCOPE_LOGS, J_REPEATED, &scope_logs},
    {"schemaUrl", OTLP_RESOURCE_LOGS_SCHEMA_URL, J_STRING, NULL}, {0}}, false};
static const json_message request = {(const json_field[]){{"resourceLogs", OTLP_REQUEST_RESOURCE_LOGS, J_REPEATED, &resource_logs}, {0}}, false};

enum { MAX_NESTING = 3 * OTLP_MAX_DEPTH + 16 }; /* messages within messages; deeper values are refused with their request: the record that they stand in cannot be told from the rest */
typedef struct place { const json_field *field; uint32_t index; } place;
typedef struct reader {
    otlp_lex x;
    fz_buf *out, bytes;
    place at[MAX_NESTING];
    uint32_t depth;
    const uint8_t *begin;
    const char *why;
    fz_error *err;
} reader;

static bool wrong(reader *r, const char *why) {
    if (!r->why) r->why = why;
    return false;
}

/* ---- numbers ---- */

/* A decimal number that is whole: sign and magnitude. */
static bool whole(fz_sv s, bool *negative, uint64_t *out) {
    uint64_t v = 0;
    int64_t point = 0, exponent = 0;
    size_t i = 0;
    bool any = false, fraction = false;
    *negative = i < s.n && s.p[i] == '-';
    i += *negative;
    uint32_t zeros = 0; /* digits 0 that were not yet counted in */
    for (; i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] == '.' && !fraction)); i++) {
        if (s.p[i] == '.') {
            fraction = true;
            continue;
        }
        any = true;
        point += fraction;
        unsigned d = (unsigned)(s.p[i] - '0');
        if (!d) {
            if (v) zeros++;
            continue;
        }
        for (; zeros; zeros--)
            if (__builtin_mul_overflow(v, 10u, &v)) return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, d, &v)) return false;
    }
    if (!any) return false;
    if (i < s.n && (s.p[i] | 0x20) == 'e') {
        fz_sv e = {s.p + i + 1, s.n - i - 1};
        if (!fz_parse_i64(e, &exponent) || exponent > 1000000 || exponent < -1000000) return v == 0 && e.n > 0;
    } else if (i < s.n) return false;
    exponent += (int64_t)zeros - point;
    *out = v;
    if (!v) return true;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(*out, 10u, out)) return false;
    return exponent == 0; /* below: digits stand behind the point, none of them 0 at the end */
}

/* The text of a number, or of a string in its place. */
static bool number_text(reader *r, fz_sv *s) {
    int c = otlp_peek(&r->x);
    if (c == '"') return otlp_string(&r->x, s);
    if (c == '-' || (c >= '0' && c <= '9')) return otlp_number(&r->x, s);
    return c < 0 ? otlp_number(&r->x, s) : wrong(r, "a number, or a text of digits, is wanted");
}

static bool integer(reader *r, int64_t min, uint64_t max, uint64_t *out) {
    fz_sv s;
    bool negative;
    if (!number_text(r, &s)) return false;
    if (!whole(s, &negative, out)) return wrong(r, "it is no whole number of 64 bits");
    if (negative && *out) {
        if (min == 0 || *out > (uint64_t)-(min + 1) + 1) return wrong(r, "it is out of range");
        *out = -*out;
        return true;
    }
    return *out <= max || wrong(r, "it is out of range");
}

static bool floating(reader *r, double *out) {
    fz_sv s;
    char t[64], *end;
    int c = otlp_peek(&r->x);
    if (c != '"' && c != '-' && (c < '0' || c > '9') && c >= 0) return wrong(r, "a number is wanted");
    bool text = c == '"';
    if (!number_text(r, &s)) return false;
    if (text && fz_sv_eq(s, FZ_SV("NaN"))) *out = (double)NAN;
    else if (text && fz_sv_eq(s, FZ_SV("Infinity"))) *out = (double)INFINITY;
    else if (text && fz_sv_eq(s, FZ_SV("-Infinity"))) *out = -(double)INFINITY;
    else {
        if (text) {
            otlp_lex x = {.p = (const uint8_t *)s.p, .end = (const uint8_t *)s.p + s.n};
            fz_sv all;
            if (!s.n || !((*s.p >= '0' && *s.p <= '9') || *s.p == '-') || !otlp_number(&x, &all) || all.n != s.n) return wrong(r, "the text is no number");
        }
        if (s.n >= sizeof t) { /* rare: longer than any double needs */
            char *copy = fz_strndup(s.p, s.n);
            *out = strtod(copy, NULL);
            fz_free(copy);
        } else {
            memcpy(t, s.p, s.n);
            t[s.n] = 0;
            *out = strtod(t, &end);
        }
        if (isinf(*out)) return wrong(r, "it is out of range");
    }
    return true;
}

/* ---- texts with a meaning ---- */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool id(reader *r, uint32_t number, uint32_t bytes) {
    uint8_t t[OTLP_TRACE_ID];
    fz_sv s;
    if (otlp_peek(&r->x) != '"') return wrong(r, "a text of hexadecimal digits is wanted");
    if (!otlp_string(&r->x, &s)) return false;
    if (!s.n) return true;
    if (s.n != 2 * bytes) return wrong(r, bytes == OTLP_TRACE_ID ? "it does not have 32 hexadecimal digits" : "it does not have 16 hexadecimal digits");
    for (uint32_t i = 0; i < bytes; i++) {
        int high = hex_digit(s.p[2 * i]), low = hex_digit(s.p[2 * i + 1]);
        if (high < 0 || low < 0) return wrong(r, "it has characters that are no hexadecimal digits");
        t[i] = (uint8_t)(high << 4 | low);
    }
    pb_put_bytes(r->out, number, t, bytes);
    return true;
}

static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static bool base64(reader *r, uint32_t number) {
    fz_sv s;
    uint32_t v = 0;
    if (otlp_peek(&r->x) != '"') return wrong(r, "a text in Base64 is wanted");
    if (!otlp_string(&r->x, &s)) return false;
    for (int i = 0; i < 2 && s.n && s.p[s.n - 1] == '='; i++) s.n--;
    r->bytes.len = 0;
    for (size_t i = 0; i < s.n; i++) {
        int d = base64_digit(s.p[i]);
        if (d < 0) return wrong(r, "it is no Base64");
        v = v << 6 | (uint32_t)d;
        if (i % 4) fz_buf_putc(&r->bytes, (char)(v >> (6 - i % 4 * 2) & 0xff));
    }
    if (s.n % 4 == 1) return wrong(r, "it is no Base64");
    pb_put_bytes(r->out, number, r->bytes.data, r->bytes.len);
    return true;
}

static bool severity(reader *r, uint32_t number) {
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    uint64_t v = 0;
    fz_sv s;
    int64_t given;
    if (otlp_peek(&r->x) != '"') {
        if (!integer(r, INT32_MIN, INT32_MAX, &v)) return false;
        pb_put_uint(r->out, number, v);
        return true;
    }
    if (!otlp_string(&r->x, &s)) return false;
    if (fz_parse_i64(s, &given) && given >= INT32_MIN && given <= INT32_MAX) v = (uint64_t)given;
    else if (s.n > 16 && memcmp(s.p, "SEVERITY_NUMBER_", 16) == 0) {
        s = (fz_sv){s.p + 16, s.n - 16};
        unsigned nth = s.n && s.p[s.n - 1] >= '2' && s.p[s.n - 1] <= '4' ? (unsigned)(s.p[s.n - 1] - '1') : 0;
        s.n -= nth > 0;
        for (unsigned i = 0; i < 6; i++)
            if (fz_sv_eq(s, fz_sv_of(names[i]))) v = i * 4 + nth + 1;
    }
    pb_put_uint(r->out, number, v);
    return true;
}

static bool boolean(reader *r, uint32_t number) {
    int c = otlp_peek(&r->x);
    if (c != 't' && c != 'f') return wrong(r, "true or false is wanted");
    if (!otlp_word(&r->x, c == 't' ? "true" : "false")) return false;
    pb_put_uint(r->out, number, c == 't');
    return true;
}

/* ---- messages ---- */

/* lowerCamelCase, or the same in snake_case. */
static bool names(const char *camel, fz_sv key) {
    size_t i = 0;
    for (; *camel && i < key.n; camel++, i++) {
        if (*camel == key.p[i]) continue;
        if (*camel < 'A' || *camel > 'Z' || key.p[i] != '_' || ++i == key.n || key.p[i] != (*camel | 0x20)) return false;
    }
    return !*camel && i == key.n;
}

static bool put_message(reader *r, const json_field *f);

static bool put_scalar(reader *r, const json_field *f) {
    uint64_t v;
    double d;
    fz_sv s;
    switch (f->kind) {
    case J_STRING:
        if (otlp_peek(&r->x) != '"') return wrong(r, "a text is wanted");
        if (!otlp_string(&r->x, &s)) return false;
        pb_put_bytes(r->out, f->number, s.p, s.n);
        return true;
    case J_BYTES: return base64(r, f->number);
    case J_TRACE_ID: return id(r, f->number, OTLP_TRACE_ID);
    case J_SPAN_ID: return id(r, f->number, OTLP_SPAN_ID);
    case J_SEVERITY: return severity(r, f->number);
    case J_BOOL: return boolean(r, f->number);
    case J_FIXED64:
        if (!integer(r, 0, UINT64_MAX, &v)) return false;
        pb_put_fixed64(r->out, f->number, v);
        return true;
    case J_FIXED32: case J_UINT32:
        if (!integer(r, 0, UINT32_MAX, &v)) return false;
        if (f->kind == J_FIXED32) pb_put_fixed32(r->out, f->number, (uint32_t)v);
        else pb_put_uint(r->out, f->number, v);
        return true;
    case J_INT64:
        if (!integer(r, INT64_MIN, INT64_MAX, &v)) return false;
        pb_put_uint(r->out, f->number, v);
        return true;
    case J_DOUBLE:
        if (!floating(r, &d)) return false;
        memcpy(&v, &d, sizeof v);
        pb_put_fixed64(r->out, f->number, v);
        return true;
    default: return false;
    }
}

static bool put_field(reader *r, const json_field *f) {
    if (otlp_peek(&r->x) == 'n') return otlp_word(&r->x, "null");
    if (r->depth == MAX_NESTING) return wrong(r, "values are nested too deep");
    place *at = &r->at[r->depth++];
    *at = (place){f, UINT32_MAX};
    bool ok = true;
    if (f->kind == J_REPEATED) {
        uint32_t n = 0;
        int rc;
        if (otlp_peek(&r->x) != '[') return wrong(r, "an array is wanted");
        while (ok && (rc = otlp_element(&r->x, &n)) != 0) {
            at->index++;
            if (rc < 0) ok = false;
            else if (otlp_peek(&r->x) == 'n' && f->message->any) {
                ok = otlp_word(&r->x, "null");
                if (ok) pb_put_bytes(r->out, f->number, NULL, 0);
            } else ok = put_message(r, f);
        }
    } else ok = f->kind == J_MESSAGE ? put_message(r, f) : put_scalar(r, f);
    if (ok) r->depth--; /* else the place stays, for the error */
    return ok;
}

static bool put_members(reader *r, const json_message *m) {
    uint32_t n = 0;
    fz_sv key;
    int rc;
    if (otlp_peek(&r->x) != '{') return wrong(r, "an object is wanted");
    const json_field *next = m->fields; /* members mostly come in one order */
    while ((rc = otlp_member(&r->x, &n, &key)) == 1) {
        const json_field *f = next;
        while (f->name && !names(f->name, key)) f++;
        if (!f->name)
            for (f = m->fields; f->name && !names(f->name, key);) f++;
        if (f->name) next = f + 1;
        if (!(f->name ? put_field(r, f) : otlp_skip(&r->x))) return false;
    }
    return rc == 0;
}

static bool put_message(reader *r, const json_field *f) {
    size_t begun = pb_begin(r->out, f->number);
    if (!put_members(r, f->message)) return false;
    pb_end(r->out, begun);
    return true;
}

/* ---- errors ---- */

static fz_status fail(reader *r) {
    fz_buf b = {0};
    uint32_t from = r->depth > 8 ? r->depth - 8 : 0;
    if (from) fz_buf_puts(&b, "...");
    for (uint32_t i = from; i < r->depth; i++) {
        fz_buf_printf(&b, "%s%s", i > from || from ? "." : "", r->at[i].field->name);
        if (r->at[i].index != UINT32_MAX) fz_buf_printf(&b, "[%u]", r->at[i].index);
    }
    if (r->why && otlp_peek(&r->x) < 0) r->why = "the body ends in the middle of it";
    if (!r->why) fz_fail(r->err, FZ_DATA, "otlp.json", "the body is no JSON, at byte %zu%s%s: %s", (size_t)(r->x.p - r->begin), b.len ? ", " : "", b.len ? fz_buf_cstr(&b) : "", r->x.why ? r->x.why : "something follows it");
    else fz_fail(r->err, FZ_DATA, "otlp.json", "%s: %s", b.len ? fz_buf_cstr(&b) : "the body", r->why);
    fz_buf_free(&b);
    return FZ_DATA;
}

fz_status otlp_json_request(const void *p, size_t n, fz_buf *out, fz_error *err) {
    reader r = {.x = {.p = p, .end = (const uint8_t *)p + n}, .begin = p, .out = out, .err = err};
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) r.x.p += 3;
    bool ok = put_members(&r, &request);
    if (ok && otlp_peek(&r.x) >= 0) {
        ok = false;
        r.depth = 0;
    }
    fz_status rc = ok ? FZ_OK : fail(&r);
    fz_buf_free(&r.x.text);
    fz_buf_free(&r.bytes);
    return rc;
}
