/* Casts from and to dates, times, timestamps and intervals, and from text to numbers (ex_cast_temporal). The rest stands in cast.c.
 *
 * Invariants
 *  1. A text that is no value of the target fails the row; under TRY_CAST that is NULL (ex_fail_row sees to it).
 *  2. TIMESTAMP and TIMESTAMP_LTZ meet in the session's zone. Values are cut to the target's precision.
 */
#include <stdio.h>

#include "col/decimal.h"
#include "col/numtext.h"
#include "exec/fn_temporal_int.h"

static bool is_int(col_kind k) { return k >= COL_TINYINT && k <= COL_BIGINT; }

/* ---- text to ... ---- */

static void fail_text(ex_call *c, uint32_t i, fz_sv s, const char *why) {
    static const char *const names[] = {[COL_TINYINT] = "TINYINT", [COL_SMALLINT] = "SMALLINT", [COL_INT] = "INT", [COL_BIGINT] = "BIGINT",
                                        [COL_FLOAT] = "FLOAT", [COL_DOUBLE] = "DOUBLE", [COL_DECIMAL] = "DECIMAL", [COL_DATE] = "DATE", [COL_TIME] = "TIME",
                                        [COL_TIMESTAMP] = "TIMESTAMP", [COL_TIMESTAMP_LTZ] = "TIMESTAMP_LTZ"};
    int n = (int)s.n;
    if (n > 200)
        for (n = 200; n > 0 && ((unsigned char)s.p[n] & 0xC0) == 0x80;) n--;
    ex_fail_row(c, i, "cast.failed", "'%.*s' is no %s: %s", n, s.p, names[c->type->kind], why);
}

static void k_text_to_int(ex_call *c) {
    static const int64_t lo[] = {[COL_TINYINT] = INT8_MIN, [COL_SMALLINT] = INT16_MIN, [COL_INT] = INT32_MIN, [COL_BIGINT] = INT64_MIN};
    static const int64_t hi[] = {[COL_TINYINT] = INT8_MAX, [COL_SMALLINT] = INT16_MAX, [COL_INT] = INT32_MAX, [COL_BIGINT] = INT64_MAX};
    static const char *const why[] = {[NT_EMPTY] = "it is empty", [NT_INVALID] = "invalid character", [NT_OVERFLOW] = "out of range"};
    col_kind k = c->type->kind;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t v;
        nt_status st = nt_parse_int(ex_sv(c, 0, i), lo[k], hi[k], &v);
        if (st == NT_OK) ft_put(c, i, v);
        else fail_text(c, i, ex_sv(c, 0, i), why[st]);
    }
}

/* Flink's planner folds a constant of type FLOAT to a decimal literal of seven digits, and cannot do so for NaN and infinities. */
static bool fold_float(float *v) {
    char t[32];
    if (*v - *v != 0) return false;
    int n = snprintf(t, sizeof t, "%.6e", (double)*v);
    return n > 0 && nt_parse_float((fz_sv){t, (size_t)n}, v);
}

static void k_text_to_float(ex_call *c) {
    bool folded = !c->step[0] && !c->try_cast;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        float v;
        if (!nt_parse_float(ex_sv(c, 0, i), &v)) fail_text(c, i, ex_sv(c, 0, i), "not a number");
        else if (folded && !fold_float(&v)) fail_text(c, i, ex_sv(c, 0, i), "infinite or NaN");
        else c->out->f32[i] = v;
    }
}

static void k_text_to_double(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i) && !nt_parse_double(ex_sv(c, 0, i), &c->out->f64[i])) fail_text(c, i, ex_sv(c, 0, i), "not a number");
}

static void k_text_to_decimal(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        col_i128 v;
        if (!ex_live(c, i)) continue;
        if (dcm_parse_cast(ex_sv(c, 0, i), c->type->precision, c->type->scale, &v)) c->out->i128[i] = v;
        else fail_text(c, i, ex_sv(c, 0, i), "not a number, or out of range");
    }
}

static void k_text_to_day(ex_call *c) { /* DATE and TIME */
    dt_status (*parse)(fz_sv, int32_t *) = c->type->kind == COL_DATE ? dt_parse_date : dt_parse_time;
    for (uint32_t i = 0; i < c->n; i++) {
        int32_t v;
        if (!ex_live(c, i)) continue;
        if (parse(ex_sv(c, 0, i), &v) == DT_OK) c->out->i32[i] = v;
        else fail_text(c, i, ex_sv(c, 0, i), "no such form");
    }
}

static void k_text_to_timestamp(ex_call *c) {
    const tz_zone *z = c->type->kind == COL_TIMESTAMP_LTZ ? ft_session_zone(c) : NULL;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t us;
        if (!ex_live(c, i)) continue;
        if (dt_parse_timestamp(ex_sv(c, 0, i), c->type->precision, &us)) c->out->i64[i] = z ? tz_to_utc(z, us) : us;
        else fail_text(c, i, ex_sv(c, 0, i), "no such form");
    }
}

static ex_kernel from_text(col_kind to) {
    if (is_int(to)) return k_text_to_int;
    switch (to) {
    case COL_FLOAT: return k_text_to_float;
    case COL_DOUBLE: return k_text_to_double;
    case COL_DECIMAL: return k_text_to_decimal;
    case COL_DATE: case COL_TIME: return k_text_to_day;
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: return k_text_to_timestamp;
    default: return NULL;
    }
}

/* ---- ... to text ---- */

static void k_to_text(ex_call *c) {
    const col_type *t = c->arg[0]->type;
    const tz_zone *z = t->kind == COL_TIMESTAMP_LTZ ? ft_session_zone(c) : NULL;
    char text[DT_TEXT_MAX];
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t v = ex_int(c, 0, i);
        size_t n;
        switch (t->kind) {
        case COL_DATE: n = dt_date_text((int32_t)v, text); break;
        case COL_TIME: n = dt_time_text((int32_t)v, t->precision, text); break;
        case COL_INTERVAL_MONTH: n = dt_interval_month_text((int32_t)v, text); break;
        case COL_INTERVAL_DAY: n = dt_interval_day_text(v, text); break;
        default: n = dt_timestamp_text(z ? tz_to_local(z, v) : v, t->precision, text);
        }
        ex_put(c, i, text, n);
    }
}

/* ---- among themselves ---- */

/* The value as a local timestamp. */
static int64_t local_of(const ex_call *c, uint32_t i, const tz_zone *z) {
    int64_t v = ex_int(c, 0, i);
    switch (ex_kind(c, 0)) {
    case COL_DATE: return v * DT_US_PER_DAY;
    case COL_TIME: return v * 1000;
    case COL_TIMESTAMP_LTZ: return tz_to_local(z, v);
    default: return v;
    }
}

static void k_to_timestamp(ex_call *c) {
    const tz_zone *z = ft_session_zone(c);
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) c->out->i64[i] = dt_cut(local_of(c, i, z), c->type->precision);
}

static void k_to_ltz(ex_call *c) {
    const tz_zone *z = ft_session_zone(c);
    bool same = ex_kind(c, 0) == COL_TIMESTAMP_LTZ;
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) c->out->i64[i] = dt_cut(same ? ex_i64(c, 0, i) : tz_to_utc(z, local_of(c, i, z)), c->type->precision);
}

/* Flink rounds a TIMESTAMP's day towards 1970, but a TIMESTAMP_LTZ's down. */
static void k_to_date(ex_call *c) {
    const tz_zone *z = ft_session_zone(c);
    bool ltz = ex_kind(c, 0) == COL_TIMESTAMP_LTZ;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t us = local_of(c, i, z);
        c->out->i32[i] = ltz ? (int32_t)dt_floor_div(us, DT_US_PER_DAY) : dt_timestamp_to_date(us);
    }
}

static void k_to_time(ex_call *c) {
    const tz_zone *z = ft_session_zone(c);
    bool ltz = ex_kind(c, 0) == COL_TIMESTAMP_LTZ;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t us = local_of(c, i, z);
        c->out->i32[i] = ltz ? (int32_t)(dt_floor_mod(us, DT_US_PER_DAY) / 1000) : dt_timestamp_to_time(us);
    }
}

/* The same number under another type: TIME of another precision; intervals from and to whole numbers. */
static void k_number(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t v = ex_kind(c, 0) == COL_DECIMAL ? dcm_to_long(ex_dec(c, 0, i), c->arg[0]->type->scale) : ex_int(c, 0, i);
        switch (c->type->kind) {
        case COL_TINYINT: c->out->i32[i] = (int8_t)v; break;
        case COL_SMALLINT: c->out->i32[i] = (int16_t)v; break;
        case COL_DECIMAL:
            if (!dcm_from_long(v, c->type->precision, c->type->scale, &c->out->i128[i])) ex_put_null(c, i);
            break;
        default: ft_put(c, i, v);
        }
    }
}

static bool is_interval(col_kind k) { return k == COL_INTERVAL_MONTH || k == COL_INTERVAL_DAY; }
static bool is_exact(col_kind k) { return is_int(k) || k == COL_DECIMAL; }
static bool is_timestamp(col_kind k) { return k == COL_TIMESTAMP || k == COL_TIMESTAMP_LTZ; }

ex_kernel ex_cast_temporal(col_kind f, col_kind t) {
    if (col_is_text(f)) return from_text(t);
    bool temporal = f >= COL_DATE && f <= COL_TIMESTAMP_LTZ;
    if (col_is_text(t)) return temporal || is_interval(f) ? k_to_text : NULL;
    if ((is_interval(f) && (is_exact(t) || f == t)) || (is_exact(f) && is_interval(t))) return k_number;
    if (!temporal) return NULL;
    if (t == COL_TIMESTAMP) return k_to_timestamp;
    if (t == COL_TIMESTAMP_LTZ) return k_to_ltz;
    if (t == COL_DATE) return f == COL_DATE ? k_number : is_timestamp(f) ? k_to_date : NULL;
    if (t == COL_TIME) return f == COL_TIME ? k_number : is_timestamp(f) ? k_to_time : NULL;
    return NULL;
}
