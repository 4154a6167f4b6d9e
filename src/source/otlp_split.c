/* An ExportLogsServiceRequest becomes records with their contexts. See otlp_int.h.
 *
 * Everything is walked to its leaves, so that a request whose bytes are broken is refused at the door (400), not found out about when it has been acknowledged. A record that is whole but can never
 * be taken is refused alone: an id of the wrong length, values nested too deep, too large. Ids of 32 and 16 hexadecimal digits are taken: some senders put the text where the bytes belong.
 *
 * Fields that are not known, or known with another wire type, are passed over and stay in the record.
 */
#include "source/otlp_int.h"
#include <stdio.h>

typedef enum { SOUND, BROKEN, TOO_DEEP, BAD_TRACE_ID, BAD_SPAN_ID } verdict;

typedef struct split {
    otlp_batch *b;
    size_t max_record, max_context;
    size_t built;          /* bytes of contexts so far, those that were the same as the one before included: what a message may cost */
    bool known;            /* the context at hand has its run */
    fz_error *err;
} split;

static verdict check_any(const uint8_t *p, size_t n, uint32_t depth);

static verdict check_pairs_of(const pb_field *f, uint32_t depth) { /* one KeyValue */
    const uint8_t *p = f->p, *end = p + f->n;
    pb_field k;
    pb_result r;
    while ((r = pb_next(&p, end, &k)) == PB_FIELD)
        if (k.number == OTLP_VALUE && k.wire == PB_BYTES) {
            verdict v = check_any(k.p, k.n, depth + 1);
            if (v != SOUND) return v;
        }
    return r == PB_END ? SOUND : BROKEN;
}

static verdict check_list(const pb_field *list, bool pairs, uint32_t depth) {
    const uint8_t *p = list->p, *end = p + list->n;
    pb_field f;
    pb_result r;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.number != OTLP_LIST_VALUES || f.wire != PB_BYTES) continue;
        verdict v = pairs ? check_pairs_of(&f, depth) : check_any(f.p, f.n, depth + 1);
        if (v != SOUND) return v;
    }
    return r == PB_END ? SOUND : BROKEN;
}

static verdict check_any(const uint8_t *p, size_t n, uint32_t depth) {
    const uint8_t *end = p + n;
    pb_field f;
    pb_result r;
    if (depth > OTLP_MAX_DEPTH) return TOO_DEEP;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire != PB_BYTES || (f.number != OTLP_ANY_ARRAY && f.number != OTLP_ANY_KVLIST)) continue;
        verdict v = check_list(&f, f.number == OTLP_ANY_KVLIST, depth);
        if (v != SOUND) return v;
    }
    return r == PB_END ? SOUND : BROKEN;
}

/* A Resource or a scope: `attributes` is the number of its repeated KeyValue. */
static verdict check_holder(const pb_field *holder, uint32_t attributes) {
    const uint8_t *p = holder->p, *end = p + holder->n;
    pb_field f;
    pb_result r;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD)
        if (f.number == attributes && f.wire == PB_BYTES) {
            verdict v = check_pairs_of(&f, 0);
            if (v != SOUND) return v;
        }
    return r == PB_END ? SOUND : BROKEN;
}

static bool id_fits(const pb_field *f, size_t want) {
    if (f->n == 0 || f->n == want) return true;
    if (f->n != 2 * want) return false;
    for (size_t i = 0; i < f->n; i++) {
        uint8_t c = f->p[i], lower = c | 0x20;
        if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'f')) return false;
    }
    return true;
}

/* *id: bytes of an id that has the wrong length. */
static verdict check_record(const pb_field *record, uint64_t *time, size_t *id) {
    const uint8_t *p = record->p, *end = p + record->n;
    uint64_t observed = 0;
    pb_field f;
    pb_result r;
    verdict bad = SOUND, v;
    *time = 0;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        v = SOUND;
        if (f.wire == PB_FIXED64) {
            if (f.number == OTLP_RECORD_TIME) *time = f.v;
            else if (f.number == OTLP_RECORD_OBSERVED_TIME) observed = f.v;
        } else if (f.wire == PB_BYTES) {
            if (f.number == OTLP_RECORD_ATTRIBUTES) v = check_pairs_of(&f, 0);
            else if (f.number == OTLP_RECORD_BODY) v = check_any(f.p, f.n, 1);
            else if (f.number == OTLP_RECORD_TRACE_ID && !id_fits(&f, OTLP_TRACE_ID)) v = BAD_TRACE_ID;
            else if (f.number == OTLP_RECORD_SPAN_ID && !id_fits(&f, OTLP_SPAN_ID)) v = BAD_SPAN_ID;
            if (v == BROKEN) return BROKEN;
            if (v == BAD_TRACE_ID || v == BAD_SPAN_ID) *id = f.n;
            if (v != SOUND) bad = v; /* the rest of it is looked at all the same: it may be broken */
        }
    }
    if (!*time) *time = observed;
    return r == PB_END ? bad : BROKEN;
}

/* ---- records ---- */

static void refuse(otlp_batch *b, const char *fmt, ...) FZ_PRINTF(2, 3);
static void refuse(otlp_batch *b, const char *fmt, ...) {
    if (b->refused++) return;
    va_list ap;
    int n = snprintf(b->why, sizeof b->why, "log record %llu: ", (unsigned long long)b->seen - 1);
    va_start(ap, fmt);
    vsnprintf(b->why + n, sizeof b->why - (size_t)n, fmt, ap);
    va_end(ap);
}

static fz_status broken(split *s, const char *what) { return fz_fail(s->err, FZ_DATA, "otlp.protobuf", "the message is no ExportLogsServiceRequest: %s is broken", what); }

/* The run that the next record belongs to; a new one where the context is not that of the run before. */
static fz_status run_of(split *s, otlp_run **out) {
    otlp_batch *b = s->b;
    otlp_run *last = b->n_runs ? &b->runs[b->n_runs - 1] : NULL;
    size_t n = b->context.len;
    *out = last;
    if (s->known) return FZ_OK;
    s->known = true;
    if (last && last->context_len == n && (!n || memcmp(b->contexts.data + last->context, b->context.data, n) == 0)) return FZ_OK;
    if (b->n_runs == OTLP_MAX_FRAMES) return fz_fail(s->err, FZ_DATA, "otlp.too-many", "the message has more than %u groups of log records", OTLP_MAX_FRAMES);
    FZ_GROW(b->runs, b->n_runs, b->cap_runs);
    b->runs[b->n_runs] = (otlp_run){.context = b->contexts.len, .context_len = (uint32_t)n, .first = b->n};
    fz_buf_append(&b->contexts, b->context.data, n);
    *out = &b->runs[b->n_runs++];
    return FZ_OK;
}

static fz_status add(split *s, const pb_field *f, uint64_t time) {
    otlp_batch *b = s->b;
    otlp_run *r;
    if (b->n == OTLP_MAX_RECORDS) return fz_fail(s->err, FZ_DATA, "otlp.too-many", "the message has more than %u log records", OTLP_MAX_RECORDS);
    FZ_TRY(run_of(s, &r));
    if (b->n == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 256;
        b->at = fz_realloc(b->at, b->cap * sizeof *b->at);
        b->len = fz_realloc(b->len, b->cap * sizeof *b->len);
        b->time_ns = fz_realloc(b->time_ns, b->cap * sizeof *b->time_ns);
    }
    b->at[b->n] = f->p;
    b->len[b->n] = (uint32_t)f->n;
    b->time_ns[b->n++] = time && time <= INT64_MAX ? (int64_t)time : INT64_MIN;
    r->n++;
    return FZ_OK;
}

static fz_status take_record(split *s, const pb_field *f) {
    otlp_batch *b = s->b;
    uint64_t time;
    size_t id = 0;
    verdict v = check_record(f, &time, &id);
    b->seen++;
    if (v == BROKEN) {
        char what[64];
        snprintf(what, sizeof what, "log record %llu", (unsigned long long)b->seen - 1);
        return broken(s, what);
    }
    if (v == BAD_TRACE_ID) refuse(b, "trace_id has %zu bytes, not %u", id, OTLP_TRACE_ID);
    else if (v == BAD_SPAN_ID) refuse(b, "span_id has %zu bytes, not %u", id, OTLP_SPAN_ID);
    else if (v == TOO_DEEP) refuse(b, "its values are nested deeper than %u", OTLP_MAX_DEPTH);
    else if (f->n > s->max_record) refuse(b, "it has %zu bytes, more than 'source.max-record-size' (%zu)", f->n, s->max_record);
    else return add(s, f, time);
    return FZ_OK;
}

/* ---- groups of records ---- */

static fz_status too_much(split *s) {
    return fz_fail(s->err, FZ_DATA, "otlp.too-many", "resources and scopes of the message unfold to more than %zu bytes", s->max_context);
}

/* The parts of a ResourceLogs or ScopeLogs that its records share, appended to b. They may stand behind the records. */
static fz_status share(split *s, const pb_field *holder, bool resource, fz_buf *b) {
    const uint8_t *p = holder->p, *end = p + holder->n;
    pb_field f;
    pb_result r;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire != PB_BYTES) continue;
        if (f.number == 1) { /* the resource, the scope */
            verdict v = check_holder(&f, resource ? OTLP_RESOURCE_ATTRIBUTES : OTLP_SCOPE_ATTRIBUTES);
            if (v == TOO_DEEP) return fz_fail(s->err, FZ_DATA, "otlp.too-deep", "values of a %s are nested deeper than %u", resource ? "resource" : "scope", OTLP_MAX_DEPTH);
            if (v != SOUND) return broken(s, resource ? "a resource" : "a scope");
            pb_put_bytes(b, resource ? OTLP_CONTEXT_RESOURCE : OTLP_CONTEXT_SCOPE, f.p, f.n);
        } else if (f.number == 3 && f.n) pb_put_bytes(b, resource ? OTLP_CONTEXT_RESOURCE_SCHEMA_URL : OTLP_CONTEXT_SCOPE_SCHEMA_URL, f.p, f.n);
    }
    return r == PB_END ? FZ_OK : broken(s, resource ? "a ResourceLogs" : "a ScopeLogs");
}

static bool has_records(const pb_field *scope_logs) {
    const uint8_t *p = scope_logs->p, *end = p + scope_logs->n;
    pb_field f;
    while (pb_next(&p, end, &f) == PB_FIELD)
        if (f.number == OTLP_SCOPE_LOGS_RECORDS && f.wire == PB_BYTES) return true;
    return false;
}

static fz_status take_scope(split *s, const pb_field *scope_logs) {
    const uint8_t *p = scope_logs->p, *end = p + scope_logs->n;
    fz_buf *c = &s->b->context;
    pb_field f;
    c->len = 0;
    if (has_records(scope_logs)) { /* the resource is copied for nobody else */
        s->built += s->b->resource.len;
        if (s->built > s->max_context) return too_much(s);
        fz_buf_append(c, s->b->resource.data, s->b->resource.len);
    }
    size_t before = c->len;
    FZ_TRY(share(s, scope_logs, false, c));
    s->built += c->len - before;
    if (s->built > s->max_context) return too_much(s);
    s->known = false;
    while (pb_next(&p, end, &f) == PB_FIELD)
        if (f.number == OTLP_SCOPE_LOGS_RECORDS && f.wire == PB_BYTES) FZ_TRY(take_record(s, &f));
    return FZ_OK;
}

static fz_status take_resource(split *s, const pb_field *resource_logs) {
    const uint8_t *p = resource_logs->p, *end = p + resource_logs->n;
    pb_field f;
    s->b->resource.len = 0;
    FZ_TRY(share(s, resource_logs, true, &s->b->resource));
    while (pb_next(&p, end, &f) == PB_FIELD)
        if (f.number == OTLP_RESOURCE_LOGS_SCOPE_LOGS && f.wire == PB_BYTES) FZ_TRY(take_scope(s, &f));
    return FZ_OK;
}

static void reset(otlp_batch *b) {
    b->contexts.len = 0;
    b->n = b->n_runs = 0;
    b->seen = b->refused = 0;
    b->why[0] = 0;
}

fz_status otlp_split(const void *message, size_t n, size_t max_record, size_t max_context, otlp_batch *b, fz_error *err) {
    const uint8_t *p = n ? message : (const uint8_t *)"", *end = p + n;
    split s = {.b = b, .max_record = max_record, .max_context = max_context, .err = err};
    pb_field f;
    pb_result r;
    reset(b);
    while ((r = pb_next(&p, end, &f)) == PB_FIELD)
        if (f.number == OTLP_REQUEST_RESOURCE_LOGS && f.wire == PB_BYTES) FZ_TRY(take_resource(&s, &f));
    return r == PB_END ? FZ_OK : fz_fail(err, FZ_DATA, "otlp.protobuf", "the message is no ExportLogsServiceRequest");
}

spool_frame *otlp_frames(otlp_batch *b, int64_t arrival_ms) {
    if (b->cap_frames < b->n_runs) {
        b->cap_frames = b->cap_runs;
        b->frames = fz_realloc(b->frames, b->cap_frames * sizeof *b->frames);
    }
    for (uint32_t i = 0; i < b->n; i++) /* a record without a time has that of its arrival */
        if (b->time_ns[i] == INT64_MIN) b->time_ns[i] = arrival_ms * 1000000;
    for (uint32_t i = 0; i < b->n_runs; i++) {
        const otlp_run *r = &b->runs[i];
        b->frames[i] = (spool_frame){.context = b->contexts.data ? b->contexts.data + r->context : NULL, .context_len = r->context_len, .n = r->n, .arrival_ms = arrival_ms,
                                     .len = b->len + r->first, .time_ns = b->time_ns + r->first, .at = b->at + r->first};
    }
    return b->frames;
}

void otlp_batch_free(otlp_batch *b) {
    fz_free(b->at);
    fz_buf_free(&b->contexts);
    fz_buf_free(&b->resource);
    fz_buf_free(&b->context);
    fz_free(b->len);
    fz_free(b->time_ns);
    fz_free(b->runs);
    fz_free(b->frames);
    *b = (otlp_batch){0};
}
