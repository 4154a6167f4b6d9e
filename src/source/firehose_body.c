/* What stands in a call of the Firehose API: JSON, Base64, and AWS's limits. */
#include "source/firehose_int.h"

static fz_status serialization(const char *what, fz_error *err) { return fz_fail(err, FZ_USER, "SerializationException", "%s", what); }

fz_status fh_parse(const void *body, size_t n, json_t **out, fz_error *err) {
    json_error_t e;
    *out = NULL;
    json_t *o = n ? json_loadb(body, n, 0, &e) : json_object();
    if (!o) return fz_fail(err, FZ_USER, "SerializationException", "the body is not JSON: %s (at byte %d)", e.text, e.position);
    if (!json_is_object(o)) {
        json_decref(o);
        return serialization("the body is not a JSON object", err);
    }
    *out = o;
    return FZ_OK;
}

fz_status fh_text(const json_t *o, const char *name, const char **out, fz_error *err) {
    const json_t *v = json_object_get(o, name);
    *out = json_string_value(v);
    return !v || json_is_null(v) || *out ? FZ_OK : fz_fail(err, FZ_USER, "SerializationException", "'%s' is not a string", name);
}

/* ---- records ---- */

static uint32_t without_newline(const uint8_t *p, size_t n) {
    if (n && p[n - 1] == '\n') n -= n > 1 && p[n - 2] == '\r' ? 2 : 1;
    return (uint32_t)n;
}

/* Adds the record, and its size before anything is cut off to *total. at: its number, for people. */
static fz_status add(const json_t *record, size_t at, fz_buf *tmp, src_frame *out, size_t *total, fz_error *err) {
    const json_t *data = json_object_get(record, "Data");
    if (!json_is_object(record)) return fz_fail(err, FZ_USER, "SerializationException", "record %zu is not an object", at);
    if (!data || json_is_null(data))
        return fz_fail(err, FZ_USER, "InvalidArgumentException", "1 validation error detected: Value null at 'records.%zu.member.data' failed to satisfy constraint: Member must not be null", at);
    if (!json_is_string(data)) return fz_fail(err, FZ_USER, "SerializationException", "the Data of record %zu is not a string", at);
    tmp->len = 0;
    if (!fz_base64_decode(json_string_value(data), json_string_length(data), tmp)) return fz_fail(err, FZ_USER, "SerializationException", "the Data of record %zu is not Base64", at);
    if (tmp->len > FH_MOST_RECORD)
        return fz_fail(err, FZ_USER, "InvalidArgumentException", "1 validation error detected: Value at 'records.%zu.member.data' failed to satisfy constraint: Member must have length less than or equal to %d", at, (int)FH_MOST_RECORD);
    *total += tmp->len;
    fz_buf_reserve(&out->bytes, 1); /* also when all records are empty there is a place where they stand */
    src_frame_add(out, tmp->data, without_newline(tmp->data, tmp->len), INT64_MIN);
    return FZ_OK;
}

static fz_status no_member(const char *name, fz_error *err) {
    return fz_fail(err, FZ_USER, "InvalidArgumentException", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", name);
}

fz_status fh_record(const json_t *call, src_frame *out, fz_error *err) {
    const json_t *r = json_object_get(call, "Record");
    fz_buf tmp = {0};
    size_t total = 0;
    src_frame_reset(out);
    if (!r || json_is_null(r)) return no_member("record", err);
    fz_status rc = add(r, 1, &tmp, out, &total, err);
    fz_buf_free(&tmp);
    return rc;
}

fz_status fh_records(const json_t *call, src_frame *out, fz_error *err) {
    const json_t *all = json_object_get(call, "Records");
    src_frame_reset(out);
    if (!all || json_is_null(all)) return no_member("records", err);
    if (!json_is_array(all)) return serialization("'Records' is not an array", err);
    size_t n = json_array_size(all), total = 0;
    if (!n || n > FH_MOST_RECORDS)
        return fz_fail(err, FZ_USER, "InvalidArgumentException", "1 validation error detected: Value at 'records' failed to satisfy constraint: Member must have length %s than or equal to %d", n ? "less" : "greater", n ? (int)FH_MOST_RECORDS : 1);
    fz_buf tmp = {0};
    fz_status rc = FZ_OK;
    for (size_t i = 0; i < n && rc == FZ_OK; i++) {
        rc = add(json_array_get(all, i), i + 1, &tmp, out, &total, err);
        if (rc == FZ_OK && total > FH_MOST_CALL) rc = fz_fail(err, FZ_USER, "InvalidArgumentException", "Records size exceeds 4 MB limit");
    }
    fz_buf_free(&tmp);
    return rc;
}
