/* Lots that CloudWatch Logs did not take in time, sent after all: what `frazil replay` does for them.
 *
 *     error object -> its events, with the times that they had -> PutLogEvents -> record in replayed/ (put if absent)
 *
 * At least once, like the delivery: the service keeps no key by which a repeat could be known. A replay that ends between the events and the record, and two at the same time, send them twice.
 */
#include "delivery/logs_int.h"
#include <inttypes.h>

static void add_event(void *cx, fz_sv raw, int64_t arrival_ms) { logs_add(cx, arrival_ms, raw.p, raw.n); }

static fz_status replay_one(dlv_delivery *d, const arc_record *r, uint64_t *refused, bool *bad, fz_error *err) {
    logs *x = d->impl;
    logs_events e = {0};
    logs_lot l = {.events = &e};
    *refused = 0;
    fz_status rc = arc_error_lines(x->io, r, add_event, &e, bad, err);
    if (rc == FZ_OK) rc = fz_fault_status("replay.object", err);
    if (rc == FZ_OK) {
        logs_prepare(&e);
        rc = logs_send_all(x, &l, err);
    }
    if (rc == FZ_OK) rc = logs_settle_refused(d, &l, r->diverted, err);
    *refused = l.lot.rejected;
    logs_free(&e);
    return rc;
}

fz_status logs_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) {
    logs *x = d->impl;
    if (!x->io) FZ_TRY(fio_new(d->options, d->n_options, &x->io, err)); /* the script has no error.path any more: the objects are there all the same */
    return arc_replay_lots(d, &x->log, prefix, replay_one, fn, cx, err);
}
