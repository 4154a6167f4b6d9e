/* What the temporal kernels share: patterns compiled once a call site, zones, arithmetic. */
#ifndef EX_FN_TEMPORAL_INT_H
#define EX_FN_TEMPORAL_INT_H
#include "col/datetime.h"
#include "col/dtpattern.h"
#include "col/sdpattern.h"
#include "col/tz.h"
#include "exec/exec_int.h"

/* The pattern of an argument. A constant one is compiled once and kept with the call site; one that differs by rows is compiled whenever it changes. */
typedef struct ft_patterns {
    ex_call *c;
    uint32_t arg;
    bool legacy;            /* SimpleDateFormat's, not java.time's */
    fz_sv text;             /* of the pattern at hand */
    const dt_pattern *dt;
    const sd_pattern *sd;
    dt_pattern *own_dt;     /* those that go with the call */
    sd_pattern *own_sd;
    bool ready, bad;
    bool lenient;           /* a wrong pattern gives NULL */
    fz_error err;
} ft_patterns;
void ft_patterns_open(ft_patterns *p, ex_call *c, uint32_t arg, bool legacy);
/* false: the pattern of row i is wrong, and the row has failed (NULL where `lenient`). */
bool ft_patterns_at(ft_patterns *p, uint32_t i);
void ft_patterns_close(ft_patterns *p);

const tz_zone *ft_session_zone(const ex_call *c); /* UTC where the setting is no zone */
/* The unit that argument k names (a constant). */
dt_unit ft_unit(const ex_call *c, uint32_t k);
/* v (a value of t) plus sign * interval n of kind; false: out of range. */
bool ft_add(const col_type *t, int64_t v, col_kind interval, int64_t n, int sign, int64_t *out);
/* Stores a temporal or integer value by the kind of the result. */
static inline void ft_put(ex_call *c, uint32_t i, int64_t v) {
    if (col_width(c->type->kind) == 8) c->out->i64[i] = v;
    else c->out->i32[i] = (int32_t)v;
}
void ft_overflow(ex_call *c, uint32_t i); /* the row fails */

/* fn_temporal_unit.c */
void ft_extract(ex_call *c);
void ft_floor_to(ex_call *c);
void ft_ceil_to(ex_call *c);
void ft_timestampadd(ex_call *c);
void ft_timestampdiff(ex_call *c);
void ft_plus(ex_call *c);
void ft_minus(ex_call *c);
void ft_overlaps(ex_call *c);
#endif
