/* What a state directory knows of the lots of one delivery.
 *
 *     <dir>/intents/000000000007.json    lot 7 was begun: its ranges, where it goes, the positions after it
 *     <dir>/done/000000000006.json       lot 6 is delivered, and these are the positions
 *     <dir>/diverted/000000000005.json   lot 5 is in the error path, whole; kept
 *     <dir>/replayed/000000000005.json   it was delivered after all
 *
 * Each is a line of JSON and a line with its SHA-256.
 *
 * Invariants
 *  1. An intent and a done record are put if absent and never changed: of two processes that share the directory one owns a number, unless both carry the same ranges, and then they write the same.
 *  2. The newest done record is never removed. An intent is removed only when the done record of its number is there, a done record only when a newer one is. So who has put an intent and
 *     then sees no done record of that number or above owns it, however long it slept before.
 *  3. A damaged record is an error that names it, never "no record": what it says may have been delivered.
 */
#include "delivery/archive_int.h"
#include "fileio/checked.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RECORD ((size_t)64 << 20) /* states of very many splits */
#define TRIES 10

static const char *const names[] = {"intents", "done", "diverted", "replayed"};
static const char *path_of(const arc_log *g, fz_arena *a, arc_kind kind, uint64_t lot) {
    return fio_join(a, g->dir, fz_arena_printf(a, "%s/%012" PRIu64 ".json", names[kind], lot));
}

/* ---- text ---- */

static void encode(const arc_log *g, const arc_record *r, fz_buf *out) {
    fio_checked_put(out, json_pack("{s:i, s:s, s:I, s:s, s:I, s:I, s:s, s:s, s:s}", "version", 1, "delivery", g->what, "lot", (json_int_t)r->lot, "object", r->object, "rows", (json_int_t)r->rows, "bytes",
                                   (json_int_t)r->bytes, "diverted", r->diverted ? r->diverted : "", "ranges", r->ranges, "state", r->state));
}

static const char *text_of(fz_arena *a, const json_t *j, const char *key) {
    const char *s = json_string_value(json_object_get(j, key));
    return s ? fz_arena_strdup(a, s) : NULL;
}

static bool decode(fz_arena *a, const fz_buf *b, uint64_t lot, arc_record *r) {
    json_t *j = fio_checked_get(b->data, b->len);
    *r = (arc_record){.lot = (uint64_t)json_integer_value(json_object_get(j, "lot")), .ranges = text_of(a, j, "ranges"), .state = text_of(a, j, "state"), .object = text_of(a, j, "object"),
                      .rows = (uint64_t)json_integer_value(json_object_get(j, "rows")), .bytes = (uint64_t)json_integer_value(json_object_get(j, "bytes")), .diverted = text_of(a, j, "diverted")};
    bool ok = json_integer_value(json_object_get(j, "version")) == 1 && r->lot == lot && r->ranges && r->state && r->object && r->diverted;
    json_decref(j);
    return ok;
}

fz_status arc_log_read(const arc_log *g, arc_kind kind, uint64_t lot, fz_arena *a, arc_record *out, fz_error *err) {
    const char *path = path_of(g, a, kind, lot);
    fz_buf b = {0};
    fz_status rc = fio_read(g->io, path, MAX_RECORD, &b, err);
    if (rc != FZ_OK) (void)!fz_context(err, "state of %s", g->what);
    else if (!decode(a, &b, lot, out)) {
        rc = fz_fail(err, FZ_FATAL, "delivery.state", "delivery %s: the record '%s' is damaged", g->what, path);
        (void)!fz_hint(err, kind == ARC_DONE ? "restore it; without it nothing says how far the source was delivered"
                                 : "restore it, or remove it when the object of that lot is known to be missing or is removed too: its records are then delivered under another name");
    }
    fz_buf_free(&b);
    return rc;
}

/* ---- what is there ---- */

typedef struct seen { uint64_t done, *v; bool *is_done; uint32_t n, cap; } seen;

static bool note(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    seen *s = cx;
    size_t n = strlen(location);
    uint64_t lot;
    if (n < 18 || !fz_ends(location, ".json") || !fz_parse_u64((fz_sv){location + n - 17, 12}, &lot)) return true;
    fz_sv before = {location, n - 17};
    bool done = before.n >= 6 && memcmp(before.p + before.n - 6, "/done/", 6) == 0, intent = before.n >= 9 && memcmp(before.p + before.n - 9, "/intents/", 9) == 0;
    if (!done && !intent) return true;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 8;
        s->v = fz_realloc(s->v, s->cap * sizeof *s->v);
        s->is_done = fz_realloc(s->is_done, s->cap * sizeof *s->is_done);
    }
    s->v[s->n] = lot;
    s->is_done[s->n++] = done;
    if (done && lot > s->done) s->done = lot;
    return true;
}

static void seen_free(seen *s) {
    fz_free(s->v);
    fz_free(s->is_done);
}

static fz_status look(const arc_log *g, fz_arena *a, const char *below, seen *s, fz_error *err) {
    fz_status rc = fio_list(g->io, below ? fio_join(a, g->dir, below) : g->dir, note, s, err);
    return rc == FZ_OK ? rc : fz_context(err, "state of %s", g->what);
}

fz_status arc_log_newest(const arc_log *g, uint64_t *lot, fz_error *err) {
    fz_arena *a = fz_arena_new();
    seen s = {0};
    fz_status rc = look(g, a, "done/", &s, err);
    *lot = s.done;
    seen_free(&s);
    fz_arena_free(a);
    return rc;
}

static fz_status strange(const arc_log *g, uint64_t lot, uint64_t done, fz_error *err) {
    fz_fail(err, FZ_FATAL, "delivery.state", "delivery %s: there is an intent of lot %" PRIu64 " in '%s', but the newest lot that is done is %" PRIu64, g->what, lot, g->dir, done);
    return fz_hint(err, "done records are missing: restore them, or remove the whole directory to deliver the source anew from where the script says");
}

/* One attempt; *again: what was listed has been replaced meanwhile. */
static fz_status load_once(const arc_log *g, fz_arena *a, arc_record *done, arc_record *intent, bool *again, fz_error *err) {
    seen s = {0};
    fz_status rc = look(g, a, NULL, &s, err);
    if (rc == FZ_OK && s.done) rc = arc_log_read(g, ARC_DONE, s.done, a, done, err);
    const char **old = FZ_ANEWN(a, const char *, s.n + 1);
    size_t n_old = 0;
    for (uint32_t i = 0; rc == FZ_OK && i < s.n; i++) {
        if (s.is_done[i] ? s.v[i] < s.done : s.v[i] <= s.done) old[n_old++] = path_of(g, a, s.is_done[i] ? ARC_DONE : ARC_INTENT, s.v[i]);
        else if (!s.is_done[i]) rc = s.v[i] == s.done + 1 ? arc_log_read(g, ARC_INTENT, s.v[i], a, intent, err) : strange(g, s.v[i], s.done, err);
    }
    seen_free(&s);
    *again = rc != FZ_OK && strcmp(err->code, "file.not-found") == 0;
    fz_error ignored;
    if (rc == FZ_OK && n_old) (void)!fio_delete_many(g->io, old, n_old, &ignored);
    return rc;
}

fz_status arc_log_load(const arc_log *g, fz_arena *a, arc_record *done, arc_record *intent, fz_error *err) {
    bool again = true;
    fz_status rc = FZ_OK;
    for (int i = 0; again && i < TRIES; i++) {
        *done = *intent = (arc_record){.ranges = "", .state = "", .object = "", .diverted = ""};
        rc = load_once(g, a, done, intent, &again, err);
    }
    if (again) err->cls = rc = FZ_RETRY; /* a listing that is behind what it lists */
    return rc;
}

typedef struct numbers { const char *below; uint64_t *v; uint32_t n, cap; } numbers;

static bool take_number(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    numbers *l = cx;
    size_t n = strlen(location), below = strlen(l->below);
    uint64_t lot;
    if (n < 17 + below || !fz_ends(location, ".json") || !fz_parse_u64((fz_sv){location + n - 17, 12}, &lot) || memcmp(location + n - 17 - below, l->below, below) != 0) return true;
    FZ_GROW(l->v, l->n, l->cap);
    l->v[l->n++] = lot;
    return true;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

fz_status arc_log_list(const arc_log *g, arc_kind kind, fz_arena *a, uint64_t **lots, uint32_t *n, fz_error *err) {
    numbers l = {.below = fz_arena_printf(a, "/%s/", names[kind])};
    fz_status rc = fio_list(g->io, fio_join(a, g->dir, l.below + 1), take_number, &l, err);
    *n = rc == FZ_OK ? l.n : 0;
    *lots = FZ_ANEWN(a, uint64_t, l.n + 1);
    if (l.n) memcpy(*lots, l.v, l.n * sizeof *l.v);
    if (l.n > 1) qsort(*lots, l.n, sizeof **lots, by_number);
    fz_free(l.v);
    return rc == FZ_OK ? rc : fz_context(err, "state of %s", g->what);
}

/* ---- changes ---- */

fz_status arc_log_put(arc_log *g, arc_kind kind, const arc_record *r, fz_arena *a, arc_record *there, fz_error *err) {
    const char *path = path_of(g, a, kind, r->lot);
    fz_buf b = {0};
    encode(g, r, &b);
    fz_status rc = fio_put_if_absent(g->io, path, b.data, b.len, err);
    *there = *r;
    if (rc == FZ_CONFLICT) {
        rc = arc_log_read(g, kind, r->lot, a, there, err);
        if (rc == FZ_USER && strcmp(err->code, "file.not-found") == 0) err->cls = rc = FZ_RETRY; /* it was settled and removed in between: the next look tells */
        /* Ours, perhaps, and then perhaps not yet durable: the same bytes again. */
        if (rc == FZ_OK && g->unsure && strcmp(there->ranges, r->ranges) == 0 && strcmp(there->object, r->object) == 0) rc = fio_put(g->io, path, b.data, b.len, err);
    }
    g->unsure = rc == FZ_UNKNOWN;
    fz_buf_free(&b);
    return rc == FZ_OK ? rc : fz_context(err, "state of %s", g->what);
}

fz_status arc_log_divert(const arc_log *g, const arc_record *r, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_buf b = {0};
    encode(g, r, &b);
    fz_status rc = fio_put(g->io, path_of(g, a, ARC_DIVERTED, r->lot), b.data, b.len, err);
    if (rc != FZ_OK) (void)!fz_context(err, "state of %s", g->what);
    fz_buf_free(&b);
    fz_arena_free(a);
    return rc;
}

void arc_log_clean(const arc_log *g, uint64_t lot) {
    fz_arena *a = fz_arena_new();
    fz_error ignored;
    const char *old[2] = {path_of(g, a, ARC_INTENT, lot), path_of(g, a, ARC_DONE, lot - 1)};
    (void)fz_fault("delivery.clean");
    (void)!fio_delete_many(g->io, old, lot > 1 ? 2 : 1, &ignored);
    fz_arena_free(a);
}
