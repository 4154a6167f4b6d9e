/* Sources that make rows up at a given rate, as JSON documents. A source is a struct that begins with src_paced.
 *
 * Invariants
 *  1. No more rows are given than `rate` times the time since the split was assigned, and none after the split's stop.
 * Threads: as in source.h; all state belongs to the reader of split 0.
 */
#ifndef SRC_PACED_H
#define SRC_PACED_H
#include "source/source_int.h"

typedef struct src_paced src_paced;
struct src_paced {
    src_source base;
    void (*row)(src_paced *s, int64_t number, fz_buf *out); /* appends one document */
    bool dated;               /* records carry the time at which they are made */
    int64_t rate, started_ns, first, pos;
    bool assigned;
};
/* rows: INT64_MAX for no end. row is set by the caller. */
void src_paced_init(src_paced *s, const src_ops *ops, const src_context *cx, const char *split, int64_t rate, int64_t rows);
fz_status src_positive_option(const fz_pair *o, size_t n, const char *name, int64_t dflt, int64_t *out, fz_error *err) FZ_MUST_USE;
fz_status src_paced_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) FZ_MUST_USE;
fz_status src_paced_unassign_all(src_source *base, fz_error *err) FZ_MUST_USE;
fz_status src_paced_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) FZ_MUST_USE;
void src_paced_drain(src_source *base);
#define SRC_PACED_OPS .drain = src_paced_drain, .assign = src_paced_assign, .unassign_all = src_paced_unassign_all, .poll = src_paced_poll
#endif
