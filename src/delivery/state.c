/* Positions of a delivery whose other side keeps none: one small object beside its intents, replaced as a whole. */
#include "delivery/delivery_int.h"

#define MAX_STATE (16u << 20)

static const char *path_of(const dlv_delivery *d, fz_arena *a) { return fio_join(a, d->cx.state_dir, "positions.json"); }

fz_status dlv_state_load(dlv_delivery *d, fz_arena *a, const char **state, fz_error *err) {
    fz_buf b = {0};
    fz_error own;
    fz_status rc = fio_read(d->cx.state_io, path_of(d, a), MAX_STATE, &b, &own);
    *state = rc == FZ_OK ? fz_arena_strndup(a, (const char *)b.data, b.len) : "";
    fz_buf_free(&b);
    if (rc == FZ_OK || strcmp(own.code, "file.not-found") == 0) return FZ_OK;
    *err = own;
    return fz_context(err, "positions of %s", d->cx.table);
}

fz_status dlv_state_save(dlv_delivery *d, const char *state, fz_error *err) {
    if (!state) return FZ_OK; /* sources without positions */
    FZ_TRY(fz_fault_status("delivery.positions", err));
    fz_arena *a = fz_arena_new();
    fz_status rc = fio_put(d->cx.state_io, path_of(d, a), state, strlen(state), err);
    if (rc != FZ_OK) (void)!fz_context(err, "positions of %s", d->cx.table);
    fz_arena_free(a);
    return rc;
}
