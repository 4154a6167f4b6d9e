/* Delivering a lot of the archive, exactly once, and giving one up.
 *
 *     intent (put if absent) -> no newer done record? -> object -> done record (put if absent) -> old records removed
 *
 * What can go wrong, and why each record is in one object in the end
 *  - killed before the object: the next run finds the intent, delivers the same ranges under the key that stands in it;
 *  - killed after it: the next run finds the object of the intent whole, and only writes the done record;
 *  - killed while rows are given up: before the record that says so the lot is tried again (error objects can then hold rows that are delivered after all), after it they stay given up;
 *  - the PUT of a killed process arrives late: it brings the same rows under the same key;
 *  - two processes: one owns the intent of a number; the other finds it, drops its lot ("delivery.moved") and reads again from what the directory says. One that slept meets its own intent,
 *    which is as good as the other's, or a newer done record (arc_log.c, invariant 2);
 *  - the ranges of an intent cannot be read again (the source has lost them): the lot is written off in the log, its object, if it comes, stays, and the next lot gets the next number.
 * A script whose rows change with the time of day (NOW()) brings other bytes under the same key, of the same records.
 *
 * Sources without positions have no state: their lots go out under names that follow from the commit's id, again and again until it works, and a second run delivers them again.
 */
#include "col/tz.h"
#include "delivery/archive_int.h"
#include <inttypes.h>

#define SMALL ((uint64_t)1 << 20) /* objects up to here are put together in memory where they are not yet */
#define ERROR_TYPE "s3-failed"

static fz_status moved(const dlv_delivery *d, uint64_t lot, fz_error *err) {
    fz_fail(err, FZ_CONFLICT, "delivery.moved", "delivery %s: another copy of this pipeline has begun or delivered lot %" PRIu64 " with other records", d->cx.table, lot);
    return fz_hint(err, "this copy drops its lot and reads again from what '%s' says; two copies of one pipeline share no work", d->cx.state_dir);
}

char *arc_location(const archive *x, int64_t ms, const char *ranges, const char *error_type) {
    char uuid[37];
    fz_buf b = {0}, id = {0};
    int64_t local = tz_to_local(x->zone, ms * 1000);
    fz_buf_printf(&id, "%s%s%s", error_type ? error_type : "", error_type ? ":" : "", ranges);
    arc_uuid5(x->space, fz_buf_cstr(&id), uuid);
    fz_buf_puts(&b, error_type ? x->error_base : x->base);
    arc_prefix_eval(error_type ? x->error_prefix : x->prefix, local, uuid, error_type, &b);
    arc_name(&b, x->stream, x->version, local, uuid, error_type ? "" : x->extension);
    fz_buf_free(&id);
    return fz_buf_steal(&b);
}

/* ---- the object ---- */

static fz_status to_buf(void *cx, const void *p, size_t n, fz_error *err) {
    (void)err;
    fz_buf_append(cx, p, n);
    return FZ_OK;
}
static fz_status to_writer(void *cx, const void *p, size_t n, fz_error *err) { return fio_writer_append(cx, p, n, err); }

/* A bucket, a key of KMS or a directory that is missing may come, as a permission may: retry.duration is the time for it. */
static fz_status may_come(fz_status rc, fz_error *err) {
    static const char *const codes[] = {"file.no-bucket", "file.not-found", "file.kms"};
    for (size_t i = 0; rc == FZ_USER && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(err->code, codes[i]) == 0) return err->cls = FZ_RETRY;
    return rc;
}

static fz_status put_object(archive *x, archive_lot *l, const char *location, fz_error *err) {
    l->tried = true;
    l->attempts++;
    fz_status rc;
    const void *whole = arc_body_whole(l->body);
    if (whole) rc = fio_put(x->io, location, whole, arc_body_size(l->body), err);
    else if (arc_body_size(l->body) <= SMALL) {
        fz_buf b = {0};
        fz_buf_reserve(&b, arc_body_size(l->body));
        rc = arc_body_read(l->body, to_buf, &b, err);
        if (rc == FZ_OK) rc = fio_put(x->io, location, b.data, b.len, err);
        fz_buf_free(&b);
    } else {
        fio_writer *w;
        uint64_t size;
        rc = fio_writer_open(x->io, location, &w, err);
        if (rc == FZ_OK && (rc = arc_body_read(l->body, to_writer, w, err)) != FZ_OK) fio_writer_abort(w);
        else if (rc == FZ_OK) rc = fio_writer_finish(w, &size, err);
    }
    l->last_attempt_ms = fz_now_ms();
    return rc == FZ_OK ? fz_fault_status("delivery.object", err) : may_come(rc, err);
}

/* Is the object there, whole? Only a clear yes counts. */
static bool is_there(archive *x, const char *location, uint64_t bytes) {
    fz_error ignored;
    uint64_t size;
    return *location && bytes && fio_size(x->io, location, &size, &ignored) == FZ_OK && size == bytes;
}

/* ---- the records ---- */

static void know(archive *x, fz_arena *known, const char *state) {
    pthread_mutex_lock(&x->lock);
    fz_arena_free(x->known);
    x->known = known;
    x->state = state;
    pthread_mutex_unlock(&x->lock);
}

static void remember(archive *x, const arc_record *done) {
    fz_arena *a = fz_arena_new();
    x->lot = done->lot;
    x->intent = (arc_record){0};
    know(x, a, fz_arena_strdup(a, done->state));
}


static fz_status settled(archive *x, const arc_record *r) {
    remember(x, r);
    arc_log_clean(&x->log, r->lot);
    atomic_store(&x->last_ns, fz_mono_ns());
    return FZ_OK;
}

static fz_status finish(dlv_delivery *d, const arc_record *r, fz_arena *a, fz_error *err) {
    archive *x = d->impl;
    arc_record there;
    FZ_TRY(arc_log_put(&x->log, ARC_DONE, r, a, &there, err));
    if (strcmp(there.ranges, r->ranges) != 0) return moved(d, r->lot, err);
    FZ_TRY(fz_fault_status("delivery.done", err));
    return settled(x, r);
}

/* The intent of an earlier run whose ranges will not come again. */
static fz_status write_off(dlv_delivery *d, fz_arena *a, fz_error *err) {
    archive *x = d->impl;
    arc_record r = x->intent;
    fz_log(FZ_LOG_WARN, "delivery.written-off", FZ_KV("delivery", "%s", d->cx.table), FZ_KV("object", "%s", r.object), FZ_KV("ranges", "%s", r.ranges),
           FZ_KV("reason", "%s", "its records cannot be read again; the object may come all the same, from a process that is still alive"), NULL);
    r.state = x->state;
    r.object = "";
    r.rows = r.bytes = 0;
    return finish(d, &r, a, err);
}

/* Owns the number of the next lot. *landed: it is done already. */
static fz_status begin(dlv_delivery *d, archive_lot *l, const char *ranges, const char *state, fz_arena *a, arc_record *r, bool *landed, fz_error *err) {
    archive *x = d->impl;
    uint64_t newest;
    *landed = false;
    FZ_TRY(fz_fault_status("delivery.begin", err));
    if (x->intent.lot && strcmp(x->intent.ranges, ranges) != 0) FZ_TRY(write_off(d, a, err));
    if (x->intent.lot) *r = x->intent;
    else {
        if (l && !l->object) l->object = arc_location(x, l->oldest_ms, ranges, NULL);
        const arc_record mine = {.lot = x->lot + 1, .ranges = ranges, .state = state, .object = l ? l->object : "", .rows = l ? l->lot.rows : 0, .bytes = l ? arc_body_size(l->body) : 0, .diverted = ""};
        FZ_TRY(arc_log_put(&x->log, ARC_INTENT, &mine, a, r, err));
        if (strcmp(r->ranges, ranges) != 0) return moved(d, mine.lot, err);
    }
    FZ_TRY(fz_fault_status("delivery.intent", err));
    FZ_TRY(arc_log_newest(&x->log, &newest, err));
    if (newest < r->lot) return FZ_OK;
    arc_record done;
    fz_status rc = newest == r->lot ? arc_log_read(&x->log, ARC_DONE, newest, a, &done, err) : moved(d, r->lot, err);
    if (rc != FZ_OK || strcmp(done.ranges, ranges) != 0) return rc == FZ_OK ? moved(d, r->lot, err) : rc;
    *r = done;
    *landed = true;
    return FZ_OK;
}

static fz_status commit_with_state(dlv_delivery *d, archive_lot *l, const char *ranges, const char *state, fz_arena *a, fz_error *err) {
    archive *x = d->impl;
    arc_record r;
    bool landed;
    FZ_TRY(begin(d, l, ranges, state, a, &r, &landed, err));
    if (landed) return settled(x, &r);
    if (l && !*r.object) return moved(d, r.lot, err); /* the same ranges without a row: another script */
    if (l) FZ_TRY(put_object(x, l, r.object, err));
    return finish(d, &r, a, err);
}

static fz_status commit(dlv_delivery *d, archive_lot *l, const char *ranges, const char *state, fz_error *err) {
    archive *x = d->impl;
    if (!state) { /* a source without positions */
        if (l && !l->object) l->object = arc_location(x, l->oldest_ms, ranges, NULL);
        if (l) FZ_TRY(put_object(x, l, l->object, err));
        atomic_store(&x->last_ns, fz_mono_ns());
        return FZ_OK;
    }
    fz_arena *a = fz_arena_new();
    fz_status rc = commit_with_state(d, l, ranges, state, a, err);
    fz_arena_free(a);
    return rc;
}

fz_status arc_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) {
    archive *x = d->impl;
    pthread_mutex_lock(&x->turn);
    fz_status rc = commit(d, (archive_lot *)(uintptr_t)lot, ranges, state, err);
    pthread_mutex_unlock(&x->turn);
    return rc;
}

/* Its rows are in the error path: there they stay. */
static bool was_diverted(archive *x, arc_record *intent, fz_arena *a) {
    arc_record r;
    fz_error ignored;
    if (arc_log_read(&x->log, ARC_DIVERTED, intent->lot, a, &r, &ignored) != FZ_OK || strcmp(r.ranges, intent->ranges) != 0) return false;
    intent->diverted = r.diverted;
    return true;
}

static fz_status load(dlv_delivery *d, fz_arena *a, const char **state, const char **intent_ranges, const char **intent_state, fz_error *err) {
    archive *x = d->impl;
    arc_record done, intent;
    fz_arena *known = fz_arena_new();
    fz_status rc = arc_log_load(&x->log, known, &done, &intent, err);
    if (rc != FZ_OK) return fz_arena_free(known), rc;
    x->lot = done.lot;
    x->intent = intent;
    know(x, known, done.state);
    if (intent.lot && is_there(x, intent.object, intent.bytes)) {
        fz_log(FZ_LOG_INFO, "delivery.found", FZ_KV("delivery", "%s", d->cx.table), FZ_KV("object", "%s", intent.object), FZ_KV("rows", "%" PRIu64, intent.rows),
               FZ_KV("reason", "%s", "an earlier run has delivered it and ended before it could say so"), NULL);
        FZ_TRY(finish(d, &intent, a, err));
    } else if (intent.lot && was_diverted(x, &intent, a)) FZ_TRY(finish(d, &intent, a, err));
    *state = fz_arena_strdup(a, x->state);
    if (!x->intent.lot) return FZ_OK;
    *intent_ranges = fz_arena_strdup(a, x->intent.ranges);
    *intent_state = fz_arena_strdup(a, x->intent.state);
    return FZ_OK;
}

fz_status arc_load(dlv_delivery *d, fz_arena *a, const char **state, const char **intent_ranges, const char **intent_state, fz_error *err) {
    archive *x = d->impl;
    if (atomic_load(&x->lots)) { /* asked for the sake of a split that was just found: this process's own state is the answer, until a commit finds that somebody has moved it */
        pthread_mutex_lock(&x->lock);
        *state = fz_arena_strdup(a, x->state);
        pthread_mutex_unlock(&x->lock);
        return FZ_OK;
    }
    pthread_mutex_lock(&x->turn);
    fz_status rc = load(d, a, state, intent_ranges, intent_state, err);
    pthread_mutex_unlock(&x->turn);
    return rc;
}

/* ---- giving up ---- */

typedef struct error_lines { arc_failure f; int64_t oldest_ms; fio_writer *w; fz_buf line; } error_lines;

static fz_status error_line(void *cx, fz_sv row, int64_t time_ms, fz_error *err) {
    error_lines *e = cx;
    e->line.len = 0;
    arc_error_line(&e->f, row, time_ms >= 0 ? time_ms : e->oldest_ms, &e->line);
    return fio_writer_append(e->w, e->line.data, e->line.len, err);
}

static fz_status put_errors(dlv_delivery *d, archive_lot *l, const char *location, const fz_error *why, fz_error *err) {
    archive *x = d->impl;
    error_lines e = {.f = {dlv_error_code(why), why->message, d->cx.table, l->attempts, l->last_attempt_ms}, .oldest_ms = l->oldest_ms};
    uint64_t size;
    FZ_TRY(fio_writer_open(x->io, location, &e.w, err));
    fz_status rc = arc_body_lines(l->body, error_line, &e, err);
    if (rc == FZ_OK) rc = fio_writer_finish(e.w, &size, err);
    else fio_writer_abort(e.w);
    fz_buf_free(&e.line);
    if (rc == FZ_OK) {
        l->lot.rejected = l->lot.rows;
        l->lot.bytes = 0;
        fz_log(FZ_LOG_WARN, "delivery.diverted", FZ_KV("delivery", "%s", d->cx.table), FZ_KV("rows", "%" PRIu64, l->lot.rows), FZ_KV("object", "%s", location), FZ_KV("code", "%s", e.f.code), NULL);
    }
    return rc;
}

static fz_status divert_with_state(dlv_delivery *d, archive_lot *l, const char *ranges, const char *state, const char *to, const fz_error *why, fz_arena *a, fz_error *err) {
    archive *x = d->impl;
    arc_record r;
    bool landed;
    FZ_TRY(begin(d, l, ranges, state, a, &r, &landed, err));
    if (landed) return settled(x, &r);
    if (is_there(x, r.object, arc_body_size(l->body))) return finish(d, &r, a, err); /* an attempt whose answer was lost */
    FZ_TRY(put_errors(d, l, to, why, err));
    r.diverted = to;
    FZ_TRY(arc_log_divert(&x->log, &r, err));
    FZ_TRY(fz_fault_status("delivery.diverted", err));
    return finish(d, &r, a, err);
}

static fz_status divert(dlv_delivery *d, archive_lot *l, const char *ranges, const char *state, const fz_error *why, fz_error *err) {
    archive *x = d->impl;
    if (!l) return commit(d, l, ranges, state, err); /* positions only: there is nothing to give up */
    fz_error own;
    if (!l->tried) { /* it was the state directory that failed: no reason to give rows up */
        fz_status rc = commit(d, l, ranges, state, err);
        if (rc == FZ_OK || !l->tried) return rc;
        own = *err;
        why = &own;
    }
    if (!x->error_prefix) return fz_fail(err, FZ_USER, "delivery.no-error-path", "table %s has no 'error.path' for rows that are given up", d->cx.table);
    fz_arena *a = fz_arena_new();
    char *to = arc_location(x, l->oldest_ms, ranges, ERROR_TYPE);
    fz_status rc = state ? divert_with_state(d, l, ranges, state, to, why, a, err) : put_errors(d, l, to, why, err);
    fz_free(to);
    fz_arena_free(a);
    return rc;
}

fz_status arc_divert(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err) {
    archive *x = d->impl;
    pthread_mutex_lock(&x->turn);
    fz_status rc = divert(d, (archive_lot *)(uintptr_t)lot, ranges, state, why, err);
    pthread_mutex_unlock(&x->turn);
    return rc;
}
