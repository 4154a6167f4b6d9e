/* See error_line.h. */
#include "job/error_line.h"
#include <inttypes.h>
#include <jansson.h>

static void put_text(fz_buf *b, const char *key, const char *value) {
    fz_buf_printf(b, ",\"%s\":", key);
    if (value) fz_buf_json(b, value, strlen(value));
    else fz_buf_puts(b, "null");
}
static void put_bytes(fz_buf *b, const char *key, const void *p, int32_t n) {
    fz_buf_printf(b, ",\"%s\":", key);
    if (n < 0) {
        fz_buf_puts(b, "null");
        return;
    }
    fz_buf_putc(b, '"');
    fz_buf_base64(b, p, (size_t)n);
    fz_buf_putc(b, '"');
}
static void put_headers(fz_buf *b, const fz_record *r) {
    fz_buf_puts(b, ",\"headers\":[");
    for (uint16_t i = 0; i < r->n_headers; i++) {
        fz_buf_puts(b, i ? ",{" : "{");
        fz_buf_puts(b, "\"key\":");
        fz_buf_json(b, r->headers[i].key, strlen(r->headers[i].key));
        put_bytes(b, "value", r->headers[i].value, r->headers[i].value_len);
        fz_buf_putc(b, '}');
    }
    fz_buf_putc(b, ']');
}

void job_error_line_put(fz_buf *b, const job_error_line *l) {
    const fz_record *r = l->record;
    fz_buf_printf(b, "{\"attemptsMade\":%" PRIu32 ",\"arrivalTimestamp\":%" PRId64, l->attempts, r->timestamp_ms);
    put_text(b, "errorCode", l->code);
    put_text(b, "errorMessage", l->message);
    fz_buf_printf(b, ",\"attemptEndingTimestamp\":%" PRId64, l->ended_ms);
    put_bytes(b, "rawData", r->value, r->oversized ? -1 : r->value_len);
    put_text(b, "table", l->table);
    if (l->expression) put_text(b, "expression", l->expression);
    put_text(b, "source", l->source);
    put_text(b, "identity", l->identity);
    put_text(b, "topic", l->topic);
    fz_buf_printf(b, ",\"partition\":%" PRId32 ",\"offset\":%" PRId64 ",\"size\":%" PRId32 ",\"timestamp\":%" PRId64 ",\"timestampType\":%u,\"time\":%" PRId64, l->partition, r->offset, r->value_len, r->timestamp_ms,
                  (unsigned)r->timestamp_type, r->time_ns);
    put_bytes(b, "key", r->key, r->key_len);
    if (r->n_headers) put_headers(b, r);
    fz_buf_printf(b, ",\"rows\":%" PRIu32 "}\n", l->rows);
}

/* ---- back ---- */

static bool take_text(const json_t *j, const char *key, fz_arena *a, const char **out) {
    const char *s = json_string_value(json_object_get(j, key));
    *out = s ? fz_arena_strdup(a, s) : NULL;
    return s != NULL;
}
static bool take_int(const json_t *j, const char *key, int64_t *out) {
    const json_t *v = json_object_get(j, key);
    *out = json_integer_value(v);
    return json_is_integer(v);
}
static bool take_bytes(const json_t *v, fz_arena *a, const uint8_t **p, int32_t *n) {
    *p = NULL;
    *n = -1;
    if (json_is_null(v)) return true;
    fz_buf b = {0};
    bool ok = json_is_string(v) && fz_base64_decode(json_string_value(v), json_string_length(v), &b);
    if (ok) {
        *p = (const uint8_t *)fz_arena_strndup(a, b.len ? (const char *)b.data : "", b.len);
        *n = (int32_t)b.len;
    }
    fz_buf_free(&b);
    return ok;
}
static bool take_headers(const json_t *j, fz_arena *a, fz_record *r) {
    json_t *all = json_object_get(j, "headers"), *h;
    size_t i, n = json_array_size(all);
    if (!n) return true;
    fz_header *v = FZ_ANEWN(a, fz_header, n);
    json_array_foreach(all, i, h)
        if (!take_text(h, "key", a, &v[i].key) || !take_bytes(json_object_get(h, "value"), a, &v[i].value, &v[i].value_len)) return false;
    r->headers = v;
    r->n_headers = (uint16_t)n;
    return n <= UINT16_MAX;
}

static bool take(const json_t *j, fz_arena *a, job_error_record *out) {
    int64_t partition, type, rows;
    fz_record *r = &out->record;
    *out = (job_error_record){0};
    bool ok = take_text(j, "source", a, &out->source) && take_text(j, "identity", a, &out->identity) && take_text(j, "topic", a, &out->topic) && take_int(j, "partition", &partition) &&
              take_int(j, "offset", &r->offset) && take_int(j, "timestamp", &r->timestamp_ms) && take_int(j, "timestampType", &type) && take_int(j, "time", &r->time_ns) && take_int(j, "rows", &rows) &&
              take_bytes(json_object_get(j, "rawData"), a, &r->value, &r->value_len) && take_bytes(json_object_get(j, "key"), a, &r->key, &r->key_len) && take_headers(j, a, r);
    if (!ok) return false;
    (void)take_text(j, "table", a, &out->table);
    out->partition = (int32_t)partition;
    out->rows = (uint32_t)rows;
    r->timestamp_type = (uint8_t)type;
    return true;
}

bool job_error_line_take(const char *p, size_t n, fz_arena *a, job_error_record *out) {
    json_t *j = json_loadb(p, n, 0, NULL);
    bool ok = take(j, a, out);
    json_decref(j);
    return ok;
}

uint64_t job_lines_hash(uint64_t so_far, const void *line, size_t n) { return (so_far << 7 | so_far >> 57) * 0x9e3779b97f4a7c15ull + fz_hash(line, n); }
