/* Kernels of units and arithmetic: EXTRACT, FLOOR and CEIL, TIMESTAMPADD and TIMESTAMPDIFF, temporal +- interval, OVERLAPS.
 *
 * Invariants
 *  1. A TIMESTAMP_LTZ is seen in the session's zone by EXTRACT, FLOOR and CEIL; arithmetic goes on its UTC value, as in Flink.
 *  2. A result that its type cannot hold fails the row.
 */
#include "exec/fn_temporal_int.h"

dt_unit ft_unit(const ex_call *c, uint32_t k) { return c->n ? dt_unit_of(ex_sv(c, k, 0)) : DT_U_NONE; }

void ft_overflow(ex_call *c, uint32_t i) { ex_fail_row(c, i, "datetime.overflow", "the result is out of range"); }

static void no_unit(ex_call *c, uint32_t i) { ex_fail_row(c, i, "datetime.unit", "the unit does not apply to the type"); }

static bool fits32(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

static bool add_us(int64_t us, int64_t ms, int64_t *out) { return !__builtin_mul_overflow(ms, 1000, &ms) && !__builtin_add_overflow(us, ms, out); }

bool ft_add(const col_type *t, int64_t v, col_kind interval, int64_t n, int sign, int64_t *out) {
    if (__builtin_mul_overflow(n, sign, &n)) return false;
    if (interval == COL_INTERVAL_MONTH) {
        if (!fits32(n)) return false;
        *out = t->kind == COL_DATE ? dt_add_months_date((int32_t)v, (int32_t)n) : dt_add_months(v, (int32_t)n);
        return true;
    }
    switch (t->kind) {
    case COL_DATE: *out = v + n / DT_MS_PER_DAY; return fits32(*out);
    case COL_TIME: *out = (v + DT_MS_PER_DAY + n % DT_MS_PER_DAY) % DT_MS_PER_DAY; return true;
    default: return add_us(v, n, out);
    }
}

static void plus(ex_call *c, int sign) {
    const col_type *t = c->arg[0]->type;
    col_kind interval = ex_kind(c, 1);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t v;
        if (!ex_live(c, i)) continue;
        if (ft_add(t, ex_int(c, 0, i), interval, ex_int(c, 1, i), sign, &v)) ft_put(c, i, v);
        else ft_overflow(c, i);
    }
}
void ft_plus(ex_call *c) { plus(c, 1); }
void ft_minus(ex_call *c) { plus(c, -1); }

/* ---- EXTRACT ---- */

static int64_t zone_offset_us(const tz_zone *z, int64_t us) { return tz_offset_at_legacy(z, dt_floor_div(us, DT_US_PER_SECOND)) * DT_US_PER_SECOND; }

static bool extract(dt_unit u, col_kind k, int64_t v, const tz_zone *z, int64_t *out) {
    switch (k) {
    case COL_DATE: return dt_extract_date(u, (int32_t)v, out);
    case COL_TIME: return dt_extract_time(u, (int32_t)v, out);
    case COL_TIMESTAMP: return dt_extract_timestamp(u, v, out);
    case COL_TIMESTAMP_LTZ: return dt_extract_timestamp(u, v + zone_offset_us(z, v), out); /* EPOCH too, as in Flink */
    case COL_INTERVAL_MONTH: return dt_extract_interval_month(u, (int32_t)v, out);
    case COL_INTERVAL_DAY: return dt_extract_interval_day(u, v, out);
    default: return false;
    }
}

void ft_extract(ex_call *c) {
    dt_unit u = ft_unit(c, 0);
    col_kind k = ex_kind(c, 1);
    const tz_zone *z = ft_session_zone(c);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        if (!extract(u, k, ex_int(c, 1, i), z, &c->out->i64[i])) no_unit(c, i);
    }
}

/* ---- FLOOR and CEIL ---- */

static bool round_to(dt_unit u, bool up, col_kind k, int64_t v, const tz_zone *z, int64_t *out) {
    int32_t r;
    int64_t off = k == COL_TIMESTAMP_LTZ ? zone_offset_us(z, v) : 0;
    switch (k) {
    case COL_DATE: return dt_round_date(u, up, (int32_t)v, &r) && (*out = r, true);
    case COL_TIME: return dt_round_time(u, up, (int32_t)v, &r) && (*out = r, true);
    default:
        if (!dt_round_timestamp(u, up, v + off, out)) return false;
        *out -= off;
        return true;
    }
}
static void round_rows(ex_call *c, bool up) {
    dt_unit u = ft_unit(c, 1);
    col_kind k = ex_kind(c, 0);
    const tz_zone *z = ft_session_zone(c);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t v;
        if (!ex_live(c, i)) continue;
        if (round_to(u, up, k, ex_int(c, 0, i), z, &v)) ft_put(c, i, v);
        else no_unit(c, i);
    }
}
void ft_floor_to(ex_call *c) { round_rows(c, false); }
void ft_ceil_to(ex_call *c) { round_rows(c, true); }

/* ---- TIMESTAMPADD and TIMESTAMPDIFF ---- */

/* A unit as an interval: months, or milliseconds. false: neither. */
static bool unit_interval(dt_unit u, col_kind *kind, int64_t *per) {
    static const struct { dt_unit u; col_kind k; int64_t per; } t[] = {
        {DT_U_MILLENNIUM, COL_INTERVAL_MONTH, 12000}, {DT_U_CENTURY, COL_INTERVAL_MONTH, 1200}, {DT_U_DECADE, COL_INTERVAL_MONTH, 120},
        {DT_U_YEAR, COL_INTERVAL_MONTH, 12}, {DT_U_QUARTER, COL_INTERVAL_MONTH, 3}, {DT_U_MONTH, COL_INTERVAL_MONTH, 1},
        {DT_U_WEEK, COL_INTERVAL_DAY, 7 * DT_MS_PER_DAY}, {DT_U_DAY, COL_INTERVAL_DAY, DT_MS_PER_DAY}, {DT_U_HOUR, COL_INTERVAL_DAY, 3600000},
        {DT_U_MINUTE, COL_INTERVAL_DAY, 60000}, {DT_U_SECOND, COL_INTERVAL_DAY, 1000}, {DT_U_MILLISECOND, COL_INTERVAL_DAY, 1}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        if (t[i].u == u) return *kind = t[i].k, *per = t[i].per, true;
    return false;
}

void ft_timestampadd(ex_call *c) {
    dt_unit u = ft_unit(c, 0);
    const col_type *t = c->arg[2]->type;
    col_kind kind = COL_INTERVAL_DAY;
    int64_t per = 1;
    bool micro = u == DT_U_MICROSECOND && t->kind != COL_TIME && t->kind != COL_DATE, known = unit_interval(u, &kind, &per) || micro;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t n, v;
        if (!ex_live(c, i)) continue;
        bool ok = !__builtin_mul_overflow(ex_i64(c, 1, i), per, &n);
        if (!known) no_unit(c, i);
        else if (!ok) ft_overflow(c, i);
        else if (micro && !__builtin_add_overflow(ex_i64(c, 2, i), n, &v)) ft_put(c, i, v);
        else if (!micro && ft_add(t, ex_int(c, 2, i), kind, n, 1, &v)) ft_put(c, i, v);
        else ft_overflow(c, i);
    }
}

static int64_t as_us(const ex_call *c, uint32_t k, uint32_t i) {
    int64_t v = ex_int(c, k, i);
    return ex_kind(c, k) == COL_DATE ? v * DT_US_PER_DAY : ex_kind(c, k) == COL_TIME ? v * 1000 : v;
}

void ft_timestampdiff(ex_call *c) {
    dt_unit u = ft_unit(c, 0);
    col_kind kind = COL_INTERVAL_DAY;
    int64_t per = 1;
    bool known = unit_interval(u, &kind, &per), micro = u == DT_U_MICROSECOND;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t from = as_us(c, 1, i), to = as_us(c, 2, i), v;
        if (!known && !micro) {
            no_unit(c, i);
            continue;
        }
        if (micro) v = to - from;
        else if (kind == COL_INTERVAL_MONTH) v = dt_months_between(to, from) / per;
        else v = (dt_floor_div(to, 1000) - dt_floor_div(from, 1000)) / per;
        c->out->i32[i] = (int32_t)(uint32_t)(uint64_t)v; /* Flink's INT wraps around */
    }
}

/* ---- OVERLAPS ---- */

static bool period_end(ex_call *c, uint32_t k, uint32_t i, int64_t *out) { /* argument k is the start, k + 1 its end or length */
    int64_t v = ex_int(c, k + 1, i);
    col_kind kind = ex_kind(c, k + 1);
    if (kind != COL_INTERVAL_DAY && kind != COL_INTERVAL_MONTH) return *out = v, true;
    return ft_add(c->arg[k]->type, ex_int(c, k, i), kind, v, 1, out);
}

void ft_overlaps(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t b[2], e[2];
        if (!ex_live(c, i)) continue;
        if (!period_end(c, 0, i, &e[0]) || !period_end(c, 2, i, &e[1])) {
            ft_overflow(c, i);
            continue;
        }
        for (uint32_t k = 0; k < 2; k++) {
            b[k] = ex_int(c, 2 * k, i);
            if (b[k] > e[k]) {
                int64_t x = b[k];
                b[k] = e[k];
                e[k] = x;
            }
        }
        c->out->u8[i] = e[0] >= b[1] && e[1] >= b[0];
    }
}
