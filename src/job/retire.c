/* Positions of logs that are gone: what would grow for ever when files are rotated every day. See job_int.h and positions.h.
 *
 * A position is marked when every source of its sink that could have the log says that there is nothing of it any more, and the mark is taken off when it comes back: it goes on where it was left. Marked
 * positions are carried like the others; from JOB_GONE_KEPT on those that are gone for longest are left out, but none that went within JOB_GONE_MS. A log that comes back after that is a new one.
 */
#include "job/job_int.h"

static bool gone(const job *j, const job_sink *s, const job_split_key *key) {
    bool known = false;
    for (uint32_t k = 0; k < j->n_sources; k++) {
        const src_source *source = j->sources[k]->source;
        if (!s->splits[k] || !source || !src_identity(source) || strcmp(src_identity(source), key->source) != 0) continue;
        if (!src_gone(source, key->topic)) return false;
        known = true;
    }
    return known;
}

void job_mark_gone(const job *j, const job_sink *s, job_position *p, int64_t now_ms) {
    if (!gone(j, s, &p->key)) p->gone_ms = 0;
    else if (!p->gone_ms) p->gone_ms = now_ms;
    if (p->gone_ms) p->has_last = false;
}
