/* When records came in: a sparse list of (number, arrival) that tells how old the oldest record is that somebody still waits for, without reading it. See spool_int.h.
 *
 * Marks are at least step_ms apart; when there are MOST of them every second one goes and the step doubles. What they say is never too young, and too old by a step at most; after a start by
 * the span of one segment at most, since of old segments only the first frame is looked at.
 */
#include "spool/spool_int.h"
#include <fcntl.h>
#include <unistd.h>

enum { MOST = 2048, FIRST_STEP_MS = 500 };

void spl_marks_note(spl_marks *m, uint64_t first, int64_t arrival_ms) {
    if (m->n && (arrival_ms < m->v[m->n - 1].arrival_ms + m->step_ms || first <= m->v[m->n - 1].first)) return;
    if (!m->step_ms) m->step_ms = FIRST_STEP_MS;
    if (m->n == MOST) {
        for (uint32_t i = 0; i < MOST / 2; i++) m->v[i] = m->v[2 * i];
        m->n = MOST / 2;
        m->step_ms *= 2;
    }
    FZ_GROW(m->v, m->n, m->cap);
    m->v[m->n++] = (spl_mark){first, arrival_ms};
}

/* The last one at or below `at`. */
static uint32_t find(const spl_marks *m, uint64_t at) {
    uint32_t lo = 0, hi = m->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (m->v[mid].first <= at) lo = mid + 1;
        else hi = mid;
    }
    return lo ? lo - 1 : 0;
}

int64_t spl_marks_at(const spl_marks *m, uint64_t at) { return m->n ? m->v[find(m, at)].arrival_ms : 0; }

void spl_marks_forget(spl_marks *m, uint64_t below) {
    uint32_t k = m->n ? find(m, below) : 0;
    if (!k) return;
    memmove(m->v, m->v + k, (m->n - k) * sizeof *m->v);
    m->n -= k;
}

void spl_marks_blob(spl_marks *m, const spl_blob *b) {
    for (size_t at = 0; at < b->bytes;) {
        const spl_frame *f = (const spl_frame *)(const void *)(b->data + at);
        spl_marks_note(m, f->first, f->arrival_ms);
        at += f->size;
    }
}

/* The first frame of a segment that is whole. */
void spl_marks_segment(spool *s, const spl_seg *g) {
    char *path = spl_path(s, g->first, ".seg");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t head[sizeof(spl_frame)];
    size_t got = 0;
    if (fd >= 0) spl_read_at(fd, SPL_HEAD, head, sizeof head, &got);
    if (fd >= 0) close(fd);
    if (got == sizeof head && spl_frame_plausible(head, got, g->size, g->seed)) {
        spl_frame f;
        memcpy(&f, head, sizeof f);
        spl_marks_note(&s->marks, f.first, f.arrival_ms);
    }
    fz_free(path);
}
