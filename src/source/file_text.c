/* Lines of a stream: blocks of text are read until they hold whole lines, which a chunk takes over. See file_int.h. */
#include "source/file_int.h"

enum { BLOCK = 256 << 10 };

void file_text_close(file_text *t) {
    file_stream_free(t->stream);
    fz_free(t->held);
    *t = (file_text){0};
}

static void drop_held(file_text *t, size_t n) {
    memmove(t->held, t->held + n, t->n_held - n);
    t->n_held -= n;
}

/* The rest of a line that is too large: one oversized record when its end is in sight. */
static void skip_held(file_text *t, fz_chunk *c, bool end) {
    uint32_t cap = 0;
    const uint8_t *q = t->n_held ? memchr(t->held, '\n', t->n_held) : NULL;
    size_t n = q ? (size_t)(q - t->held) + 1 : t->n_held;
    drop_held(t, n);
    t->skipped += (int64_t)n;
    if (!q && !end) return;
    file_add_record(c, &cap, c->from)->oversized = true;
    c->to = c->from + t->skipped;
    t->skipped = 0;
}

/* Hands the whole lines of what is held out; the chunk gets the bytes, a copy of the rest is held. */
static void take_lines(file_text *t, file_chunk *f, bool end, uint32_t max) {
    fz_chunk *c = &f->chunk;
    if (t->skipped) skip_held(t, c, end);
    else if (t->n_held) {
        file_split_lines(c, t->held, t->n_held, end, max);
        size_t used = (size_t)(c->to - c->from), rest = t->n_held - used;
        if (c->n) {
            f->bytes = t->held;
            t->held = rest ? fz_malloc(rest) : NULL;
            if (rest) memcpy(t->held, f->bytes + used, rest);
            t->n_held = t->cap_held = rest;
        } else if (rest > (size_t)max + 2) { /* no line end in more than a line may have with CR LF */
            t->skipped = (int64_t)rest;
            t->n_held = 0;
        }
    }
}

fz_status file_text_lines(file_text *t, file_chunk *f, file_text_how how, int64_t timeout_ms, uint32_t max, bool *ended, fz_error *err) {
    for (bool end = how == FILE_TEXT_REST, idle = how == FILE_TEXT_WHOLE;;) {
        if (t->n_held >= BLOCK || t->skipped || end || idle) take_lines(t, f, end, max);
        *ended = end && !t->n_held && !t->skipped;
        if (f->chunk.n || idle || end) return FZ_OK;
        if (t->cap_held - t->n_held < BLOCK / 4) {
            t->cap_held = (t->cap_held < BLOCK ? BLOCK : t->cap_held) + t->cap_held / 2 + BLOCK / 4;
            t->held = fz_realloc(t->held, t->cap_held);
        }
        size_t got;
        FZ_TRY(file_stream_read(t->stream, t->held + t->n_held, t->cap_held - t->n_held, t->n_held ? 0 : timeout_ms, &got, &end, err));
        t->n_held += got;
        idle = !got && !end;
    }
}
