/* See metric.h. */
#include "base/metric.h"
#include <stdatomic.h>

static _Atomic uint64_t values[FZ_M_COUNT];
static const fz_metric_info infos[] = {
#define X(id, name, kind, unit, labels, origin, help) {name, FZ_METRIC_##kind, unit, labels, origin, help},
    FZ_METRICS(X)
#undef X
};
void fz_metric_add(fz_metric m, uint64_t n) { atomic_fetch_add_explicit(&values[m], n, memory_order_relaxed); }
void fz_metric_set(fz_metric m, uint64_t v) { atomic_store_explicit(&values[m], v, memory_order_relaxed); }
uint64_t fz_metric_get(fz_metric m) { return atomic_load_explicit(&values[m], memory_order_relaxed); }
const fz_metric_info *fz_metric_describe(fz_metric m) { return &infos[m]; }
