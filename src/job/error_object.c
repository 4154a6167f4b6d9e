/* See error_object.h. */
#include "job/error_object.h"
#include <inttypes.h>

#define PART ((size_t)1 << 20)
#define LONGEST_LINE ((size_t)256 << 20)

static fz_status damaged(const job_error_read *o, fz_error *err) { return fz_fail(err, FZ_DATA, "replay.damaged", "error object '%s' is not as it was written", o->object); }

typedef struct walk { uint64_t records, hash; } walk;

static fz_status one_line(const job_error_read *o, walk *w, const char *line, size_t n, job_error_fn fn, void *cx, fz_error *err) {
    job_error_record r;
    w->records++;
    w->hash = job_lines_hash(w->hash, line, n);
    if (!job_error_line_take(line, n - 1, o->arena, &r)) return damaged(o, err);
    return fn(cx, &r, err);
}

static fz_status each(const job_error_read *o, fz_buf *b, walk *w, job_error_fn fn, void *cx, fz_error *err) {
    uint64_t size, at = 0;
    FZ_TRY(fio_size(o->io, o->object, &size, err));
    while (at < size) {
        size_t n = size - at < PART ? (size_t)(size - at) : PART, done = 0;
        if (b->len > LONGEST_LINE) return damaged(o, err);
        fz_buf_reserve(b, n);
        FZ_TRY(fio_read_range(o->io, o->object, at, n, b->data + b->len, err));
        b->len += n;
        at += n;
        for (const uint8_t *lf; (lf = memchr(b->data + done, '\n', b->len - done)); done = (size_t)(lf - b->data) + 1) FZ_TRY(one_line(o, w, (const char *)b->data + done, (size_t)(lf - b->data) + 1 - done, fn, cx, err));
        memmove(b->data, b->data + done, b->len - done);
        b->len -= done;
    }
    return b->len ? damaged(o, err) : FZ_OK;
}

fz_status job_error_object_each(const job_error_read *o, job_error_fn fn, void *cx, fz_error *err) {
    fz_buf b = {0};
    walk w = {0};
    fz_status rc = each(o, &b, &w, fn, cx, err);
    fz_buf_free(&b);
    if (rc == FZ_OK && o->check && (w.records != o->records || w.hash != o->hash)) rc = damaged(o, err);
    return rc;
}

typedef struct counting { const job_split_key *key; int64_t from, to; uint64_t *records, *rows; fz_arena *scratch; } counting;

static fz_status count_one(void *cx, const job_error_record *r, fz_error *err) {
    (void)err;
    counting *c = cx;
    const job_split_key key = {r->identity, r->topic, r->partition};
    if (job_split_key_cmp(&key, c->key) == 0 && r->record.offset >= c->from && r->record.offset < c->to) {
        ++*c->records;
        *c->rows += r->rows;
    }
    fz_arena_reset(c->scratch);
    return FZ_OK;
}

fz_status job_error_object_count(fio *io, const char *object, const job_split_key *key, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *err) {
    counting c = {key, from, to, records, rows, fz_arena_new()};
    *records = *rows = 0;
    fz_status rc = job_error_object_each(&(job_error_read){.io = io, .object = object, .arena = c.scratch}, count_one, &c, err);
    fz_arena_free(c.scratch);
    return rc;
}
