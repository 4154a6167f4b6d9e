/* blackhole: takes rows and forgets them. For measuring a pipeline without its end. */
#include "delivery/delivery_int.h"

static const fz_option options[] = {{NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL}};

static fz_status hole_open(dlv_delivery *d, fz_error *err) {
    (void)err;
    d->impl = FZ_ANEW(d->arena, uint64_t); /* rows since the last cut */
    return FZ_OK;
}
static void hole_close(dlv_delivery *d) { (void)d; }
static fz_status hole_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) {
    (void)err;
    *(uint64_t *)d->impl += r->n;
    return FZ_OK;
}
static dlv_lot *hole_cut(dlv_delivery *d) {
    uint64_t *rows = d->impl;
    if (!*rows) return NULL;
    dlv_lot *lot = FZ_NEW(dlv_lot);
    *lot = (dlv_lot){.ops = &dlv_blackhole_ops, .rows = *rows};
    *rows = 0;
    return lot;
}
static void hole_drop(dlv_delivery *d) { *(uint64_t *)d->impl = 0; }
static fz_status hole_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) {
    (void)lot, (void)ranges;
    return dlv_state_save(d, state, err);
}
static void hole_lot_free(dlv_lot *lot) { fz_free(lot); }

const dlv_ops dlv_blackhole_ops = {
    .name = "blackhole", .doc = "Takes rows and forgets them.", .options = options, .open = hole_open, .close = hole_close, .write = hole_write, .cut = hole_cut,
    .drop = hole_drop, .commit = hole_commit, .lot_free = hole_lot_free,
};
