/* Lots that were given up, delivered after all: what `frazil replay` does for the archive, and what of that is the same for other deliveries.
 *
 *     error object -> its rows under the lot's own key (archive) -> record in replayed/ (put if absent)
 *
 * Invariants
 *  1. Only what a record in diverted/ names is taken, and only when it holds as many rows as the record says.
 *  2. The rows go under the key that the lot's intent had: whoever does it again, or at the same time, overwrites the same object with the same bytes. A lot that a record in replayed/ names is left alone.
 */
#include "delivery/archive_int.h"
#include <inttypes.h>
#include <jansson.h>

#define MAX_ERROR_OBJECT ((size_t)2 << 30)
#define PART ((size_t)1 << 20)

/* ---- for all deliveries ---- */

static bool take_line(const char *p, size_t n, arc_raw_fn fn, void *cx, fz_buf *raw) {
    json_t *j = json_loadb(p, n, 0, NULL);
    const char *text = json_string_value(json_object_get(j, "rawData"));
    raw->len = 0;
    bool ok = text && fz_base64_decode(text, strlen(text), raw);
    if (ok) fn(cx, (fz_sv){(const char *)raw->data, raw->len}, json_integer_value(json_object_get(j, "arrivalTimestamp")));
    json_decref(j);
    return ok;
}

static fz_status take_lines(const fz_buf *lines, const arc_record *r, arc_raw_fn fn, void *cx, fz_error *err) {
    const char *p = (const char *)lines->data, *end = p + lines->len;
    fz_buf raw = {0};
    uint64_t n = 0;
    bool ok = true;
    for (const char *lf; ok && p < end; p = lf + 1) {
        lf = memchr(p, '\n', (size_t)(end - p));
        ok = lf && take_line(p, (size_t)(lf - p), fn, cx, &raw);
        if (!ok) break;
        n++;
    }
    fz_buf_free(&raw);
    if (!ok) return fz_fail(err, FZ_DATA, "replay.damaged", "line %" PRIu64 " is none of an error object", n + 1);
    return n == r->rows ? FZ_OK : fz_fail(err, FZ_DATA, "replay.damaged", "it has %" PRIu64 " rows, and %" PRIu64 " were given up", n, r->rows);
}

fz_status arc_error_lines(fio *io, const arc_record *r, arc_raw_fn fn, void *cx, bool *bad, fz_error *err) {
    fz_buf lines = {0};
    fz_status rc = fio_read(io, r->diverted, MAX_ERROR_OBJECT, &lines, err);
    if (rc == FZ_OK) rc = take_lines(&lines, r, fn, cx, err);
    *bad = rc == FZ_DATA || (rc == FZ_USER && strcmp(err->code, "file.not-found") == 0);
    fz_buf_free(&lines);
    return rc == FZ_OK ? rc : fz_context(err, "error object '%s'", r->diverted);
}

static bool has(const uint64_t *v, uint32_t n, uint64_t lot) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == lot) return true;
    return false;
}

fz_status arc_replay_lots(dlv_delivery *d, arc_log *log, const char *prefix, arc_replay_one one, dlv_replay_fn fn, void *cx, fz_error *err) {
    fz_arena *a = fz_arena_new();
    uint64_t *lots, *done;
    uint32_t n, n_done;
    fz_status rc = arc_log_list(log, ARC_DIVERTED, a, &lots, &n, err);
    if (rc == FZ_OK) rc = arc_log_list(log, ARC_REPLAYED, a, &done, &n_done, err);
    for (uint32_t i = 0; rc == FZ_OK && i < n; i++) {
        arc_record r, there;
        if ((rc = arc_log_read(log, ARC_DIVERTED, lots[i], a, &r, err)) != FZ_OK) break;
        dlv_replay_object o = {.object = r.diverted, .rows = r.rows, .state = DLV_OPEN};
        bool bad = false;
        if (has(done, n_done, lots[i])) o.state = DLV_REPLAYED_BEFORE;
        else if (dlv_location_under(r.diverted, prefix)) {
            rc = one(d, &r, &o.refused, &bad, err);
            if (rc == FZ_OK) rc = arc_log_put(log, ARC_REPLAYED, &r, a, &there, err);
            if (rc == FZ_OK) rc = fz_fault_status("replay.done", err);
            o.state = rc == FZ_OK ? DLV_REPLAYED : DLV_UNREADABLE;
            o.err = rc == FZ_OK ? NULL : err;
            if (bad) rc = FZ_OK;
        }
        fn(cx, &o);
    }
    fz_arena_free(a);
    return rc;
}

/* ---- the archive ---- */

static void add_row(void *cx, fz_sv raw, int64_t arrival_ms) {
    (void)arrival_ms;
    fz_buf_append(cx, raw.p, raw.n);
    fz_buf_putc(cx, '\n');
}

static void pack(const archive *x, const fz_buf *rows, fz_buf *out) {
    uint32_t all = 0, crc;
    arc_packer *p = arc_packer_new(x->codec);
    arc_head(x->codec, out);
    for (size_t at = 0; at < rows->len; at += PART) {
        size_t n = rows->len - at < PART ? rows->len - at : PART;
        arc_pack(p, rows->data + at, n, out, &crc);
        all = at ? arc_crc_join(all, crc, n) : crc;
    }
    arc_tail(x->codec, all, rows->len, out);
    arc_packer_free(p);
}

static fz_status replay_one(dlv_delivery *d, const arc_record *r, uint64_t *refused, bool *bad, fz_error *err) {
    archive *x = d->impl;
    fz_buf rows = {0}, body = {0};
    *refused = 0;
    fz_status rc = arc_error_lines(x->io, r, add_row, &rows, bad, err);
    if (rc == FZ_OK) rc = fz_fault_status("replay.object", err);
    if (rc == FZ_OK) {
        pack(x, &rows, &body);
        rc = fio_put(x->io, r->object, body.data, body.len, err);
    }
    fz_buf_free(&rows);
    fz_buf_free(&body);
    return rc;
}

fz_status arc_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) { return arc_replay_lots(d, &((archive *)d->impl)->log, prefix, replay_one, fn, cx, err); }
