/* Lots of the archive that were given up, delivered after all: what `frazil replay` does for it.
 *
 *     error object -> its rows under the lot's own key -> record in replayed/ (put if absent)
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

/* The rawData of each line, with its LF. */
static fz_status take_rows(const fz_buf *lines, fz_buf *out, uint64_t *n, fz_error *err) {
    const char *p = (const char *)lines->data, *end = p + lines->len;
    *n = 0;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        json_t *j = lf ? json_loadb(p, (size_t)(lf - p), 0, NULL) : NULL;
        const char *raw = json_string_value(json_object_get(j, "rawData"));
        bool ok = raw && fz_base64_decode(raw, strlen(raw), out);
        json_decref(j);
        if (!ok) return fz_fail(err, FZ_DATA, "replay.damaged", "line %" PRIu64 " is none of an error object", *n + 1);
        fz_buf_putc(out, '\n');
        ++*n;
        p = lf + 1;
    }
    return FZ_OK;
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

/* *bad: the object cannot be taken (err), the others can. */
static fz_status replay_one(archive *x, fz_arena *a, const arc_record *r, bool *bad, fz_error *err) {
    fz_buf lines = {0}, rows = {0}, body = {0};
    uint64_t n = 0;
    arc_record there;
    fz_status rc = fio_read(x->io, r->diverted, MAX_ERROR_OBJECT, &lines, err);
    if (rc == FZ_OK) rc = take_rows(&lines, &rows, &n, err);
    if (rc == FZ_OK && n != r->rows) rc = fz_fail(err, FZ_DATA, "replay.damaged", "it has %" PRIu64 " rows, and %" PRIu64 " were given up", n, r->rows);
    *bad = rc == FZ_DATA || (rc == FZ_USER && strcmp(err->code, "file.not-found") == 0);
    if (rc != FZ_OK) (void)!fz_context(err, "error object '%s'", r->diverted);
    fz_buf_free(&lines);
    if (rc == FZ_OK) rc = fz_fault_status("replay.object", err);
    if (rc == FZ_OK) {
        pack(x, &rows, &body);
        rc = fio_put(x->io, r->object, body.data, body.len, err);
    }
    if (rc == FZ_OK) rc = arc_log_put(&x->log, ARC_REPLAYED, r, a, &there, err);
    if (rc == FZ_OK) rc = fz_fault_status("replay.done", err);
    fz_buf_free(&rows);
    fz_buf_free(&body);
    return rc;
}

static bool has(const uint64_t *v, uint32_t n, uint64_t lot) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == lot) return true;
    return false;
}

fz_status arc_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) {
    archive *x = d->impl;
    fz_arena *a = fz_arena_new();
    uint64_t *lots, *done;
    uint32_t n, n_done;
    fz_status rc = arc_log_list(&x->log, ARC_DIVERTED, a, &lots, &n, err);
    if (rc == FZ_OK) rc = arc_log_list(&x->log, ARC_REPLAYED, a, &done, &n_done, err);
    for (uint32_t i = 0; rc == FZ_OK && i < n; i++) {
        arc_record r;
        if ((rc = arc_log_read(&x->log, ARC_DIVERTED, lots[i], a, &r, err)) != FZ_OK) break;
        dlv_replay_object o = {.object = r.diverted, .rows = r.rows, .state = DLV_OPEN};
        bool bad = false;
        if (has(done, n_done, lots[i])) o.state = DLV_REPLAYED_BEFORE;
        else if (dlv_location_under(r.diverted, prefix)) {
            rc = replay_one(x, a, &r, &bad, err);
            o.state = rc == FZ_OK ? DLV_REPLAYED : DLV_UNREADABLE;
            o.err = rc == FZ_OK ? NULL : err;
            if (bad) rc = FZ_OK;
        }
        fn(cx, &o);
    }
    fz_arena_free(a);
    return rc;
}
