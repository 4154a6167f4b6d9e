/* Fields that a pattern has found in a text, and what date and time they mean. */
#ifndef COL_DTRESOLVE_H
#define COL_DTRESOLVE_H
#include "col/dt_int.h"

typedef struct dt_parsed {
    uint32_t has; /* bit of each field that is set */
    bool broken;  /* a value that Java throws at: the whole parse fails */
    int64_t v[DF_COUNT];
} dt_parsed;

/* java.time's SMART resolving, then Flink's defaults for what is absent. false: impossible or contradictory. */
bool dt_resolve(dt_parsed *f, dt_fields *out);
#endif
