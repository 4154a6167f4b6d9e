/* Kernels of dates and times: texts to timestamps and back, Unix times, zones, the clock; the table of all temporal kernels. Units and arithmetic
 * stand in fn_temporal_unit.c, casts in cast_temporal.c.
 *
 * Invariants
 *  1. Flink has two families here: java.time (TO_TIMESTAMP, DATE_FORMAT of timestamps) and SimpleDateFormat (TO_DATE with a pattern, UNIX_TIMESTAMP,
 *     FROM_UNIXTIME, CONVERT_TZ, DATE_FORMAT of texts). Each function keeps to its own.
 *  2. What cannot be parsed is NULL, or what Flink gives instead (UNIX_TIMESTAMP: the smallest number).
 */
#include "col/decimal.h"
#include "col/numtext.h"
#include "exec/fn_temporal_int.h"

#define DEFAULT_PATTERN FZ_SV("yyyy-MM-dd HH:mm:ss")

/* ---- patterns and zones ---- */

typedef struct site { const dt_pattern *dt; const sd_pattern *sd; } site;

void ft_patterns_open(ft_patterns *p, ex_call *c, uint32_t arg, bool legacy) {
    *p = (ft_patterns){.c = c, .arg = arg, .legacy = legacy};
}

static void drop_own(ft_patterns *p) {
    dt_pattern_free(p->own_dt);
    sd_pattern_free(p->own_sd);
    p->own_dt = NULL;
    p->own_sd = NULL;
}

void ft_patterns_close(ft_patterns *p) { drop_own(p); }

/* A call without the argument has the default pattern: it is a constant too. */
static bool is_constant(const ft_patterns *p) { return p->arg >= p->c->n_args || !p->c->step[p->arg]; }

static void compile(ft_patterns *p, fz_sv text) {
    drop_own(p);
    p->text = text;
    p->ready = true;
    p->dt = NULL, p->sd = NULL;
    site *s = is_constant(p) ? *p->c->slot : NULL;
    if (s) {
        p->dt = s->dt, p->sd = s->sd;
        p->bad = false;
        return;
    }
    p->bad = (p->legacy ? sd_pattern_new(text, &p->own_sd, &p->err) : dt_pattern_new(text, &p->own_dt, &p->err)) != FZ_OK;
    if (p->bad) return;
    if (!is_constant(p)) {
        p->dt = p->own_dt, p->sd = p->own_sd;
        return;
    }
    s = FZ_ANEW(p->c->keep, site);
    if (p->legacy) s->sd = sd_pattern_copy(p->c->keep, p->own_sd);
    else s->dt = dt_pattern_copy(p->c->keep, p->own_dt);
    *p->c->slot = s;
    p->dt = s->dt, p->sd = s->sd;
    drop_own(p);
}

bool ft_patterns_at(ft_patterns *p, uint32_t i) {
    fz_sv text = p->arg < p->c->n_args ? ex_sv(p->c, p->arg, i) : DEFAULT_PATTERN;
    if (!p->ready || (!is_constant(p) && !fz_sv_eq(text, p->text))) compile(p, text);
    if (!p->bad) return true;
    if (p->lenient) ex_put_null(p->c, i);
    else ex_fail_row(p->c, i, p->err.code, "%s (%s)", p->err.message, p->err.detail);
    return false;
}

const tz_zone *ft_session_zone(const ex_call *c) {
    const tz_zone *z = c->time_zone ? tz_find(fz_sv_of(c->time_zone)) : NULL;
    return z ? z : tz_utc();
}

/* ---- to timestamps and dates ---- */

static void k_to_timestamp(ex_call *c) {
    ft_patterns p;
    ft_patterns_open(&p, c, 1, false);
    p.lenient = true; /* Flink catches whatever TO_TIMESTAMP throws */
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        int64_t us;
        if (c->n_args == 1) {
            if (dt_parse_timestamp(s, 3, &us)) c->out->i64[i] = us;
            else ex_put_null(c, i);
        } else if (ft_patterns_at(&p, i)) {
            if (dt_to_timestamp(p.dt, s, &us)) c->out->i64[i] = us;
            else ex_put_null(c, i);
        }
    }
    ft_patterns_close(&p);
}

static void ltz_of_text(ex_call *c) {
    ft_patterns p;
    ft_patterns_open(&p, c, 1, false);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        int64_t us;
        if (c->n_args == 1) {
            if (dt_parse_timestamp(s, 3, &us)) c->out->i64[i] = us;
            else ex_fail_row(c, i, "datetime.parse", "'%.*s' is no timestamp", (int)(s.n > 200 ? 200 : s.n), s.p);
            continue;
        }
        if (!ft_patterns_at(&p, i)) continue;
        const tz_zone *z = c->n_args > 2 ? tz_find(ex_sv(c, 2, i)) : tz_utc();
        if (z && dt_to_timestamp(p.dt, s, &us)) c->out->i64[i] = tz_to_utc(z, us);
        else ex_put_null(c, i);
    }
    ft_patterns_close(&p);
}

#define MIN_EPOCH_S (-62167219200LL)
#define MAX_EPOCH_S 253402300799LL

/* Milliseconds of an epoch number, by precision 0 or 3; false: out of the years 0 to 9999. */
static bool epoch_ms(const ex_call *c, uint32_t i, bool seconds, int64_t *ms) {
    const col_type *t = c->arg[0]->type;
    int64_t v;
    if (t->kind == COL_FLOAT || t->kind == COL_DOUBLE) {
        double d = t->kind == COL_FLOAT ? (double)ex_f32(c, 0, i) : ex_f64(c, 0, i);
        if (seconds && !(d >= (double)MIN_EPOCH_S && d <= (double)MAX_EPOCH_S)) return false;
        *ms = nt_double_to_long(seconds ? d * 1000 : d);
    } else {
        v = t->kind == COL_DECIMAL ? dcm_to_long(ex_dec(c, 0, i), t->scale) : ex_int(c, 0, i);
        if (seconds && (v < MIN_EPOCH_S || v > MAX_EPOCH_S)) return false;
        *ms = seconds ? v * 1000 : v;
    }
    return *ms >= MIN_EPOCH_S * 1000 && *ms <= MAX_EPOCH_S * 1000 + 999;
}

static void k_to_timestamp_ltz(ex_call *c) {
    if (col_is_text(ex_kind(c, 0))) {
        ltz_of_text(c);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t precision = c->n_args > 1 ? ex_int(c, 1, i) : 3, ms;
        if (precision != 0 && precision != 3)
            ex_fail_row(c, i, "datetime.precision", "precision %lld of TO_TIMESTAMP_LTZ is neither 0 (seconds) nor 3 (milliseconds)", (long long)precision);
        else if (epoch_ms(c, i, precision == 0, &ms)) c->out->i64[i] = ms * 1000;
        else ex_put_null(c, i);
    }
}

static void k_to_date(ex_call *c) {
    ft_patterns p;
    ft_patterns_open(&p, c, 1, true);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        if (c->n_args > 1) {
            if (ft_patterns_at(&p, i)) c->out->i32[i] = sd_to_date(p.sd, s);
            continue;
        }
        switch (dt_parse_date(s, &c->out->i32[i])) {
        case DT_OK: break;
        case DT_NONE: ex_put_null(c, i); break;
        case DT_OVERFLOW: ex_fail_row(c, i, "datetime.parse", "'%.*s' holds a number that is too large", (int)(s.n > 200 ? 200 : s.n), s.p); break;
        }
    }
    ft_patterns_close(&p);
}

/* ---- Unix times ---- */

static void k_unix_timestamp(ex_call *c) {
    if (c->n_args == 0) {
        for (uint32_t i = 0; i < c->n; i++) c->out->i64[i] = c->now_us / DT_US_PER_SECOND;
        return;
    }
    const tz_zone *z = ft_session_zone(c);
    ft_patterns p;
    ft_patterns_open(&p, c, 1, true);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t ms;
        if (!ex_live(c, i) || !ft_patterns_at(&p, i)) continue;
        c->out->i64[i] = sd_pattern_parse(p.sd, ex_sv(c, 0, i), z, &ms) ? ms / 1000 : INT64_MIN;
    }
    ft_patterns_close(&p);
}

static void k_from_unixtime(ex_call *c) {
    const tz_zone *z = ft_session_zone(c);
    fz_buf b = {0};
    ft_patterns p;
    ft_patterns_open(&p, c, 1, true);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i) || !ft_patterns_at(&p, i)) continue;
        b.len = 0;
        sd_pattern_format(p.sd, (int64_t)((uint64_t)ex_int(c, 0, i) * 1000), z, &b); /* wraps around, as in Java */
        ex_put(c, i, b.data, b.len);
    }
    ft_patterns_close(&p);
    fz_buf_free(&b);
}

/* ---- to text ---- */

static void format_texts(ex_call *c) { /* in UTC whatever the session's zone */
    const tz_zone *z = tz_utc();
    fz_buf b = {0};
    ft_patterns to;
    sd_pattern *from;
    if (sd_pattern_new(DEFAULT_PATTERN, &from, NULL) != FZ_OK) return;
    ft_patterns_open(&to, c, 1, true);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t ms;
        if (!ex_live(c, i) || !ft_patterns_at(&to, i)) continue;
        if (!sd_pattern_parse(from, ex_sv(c, 0, i), z, &ms)) {
            ex_put_null(c, i);
            continue;
        }
        b.len = 0;
        sd_pattern_format(to.sd, ms, z, &b);
        ex_put(c, i, b.data, b.len);
    }
    ft_patterns_close(&to);
    sd_pattern_free(from);
    fz_buf_free(&b);
}

static void k_date_format(ex_call *c) {
    if (col_is_text(ex_kind(c, 0))) {
        format_texts(c);
        return;
    }
    const tz_zone *z = ex_kind(c, 0) == COL_TIMESTAMP_LTZ ? ft_session_zone(c) : NULL;
    fz_buf b = {0};
    ft_patterns p;
    ft_patterns_open(&p, c, 1, false);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i) || !ft_patterns_at(&p, i)) continue;
        int64_t us = ex_i64(c, 0, i);
        b.len = 0;
        if (dt_pattern_format(p.dt, z ? tz_to_local(z, us) : us, &b, &p.err) == FZ_OK) ex_put(c, i, b.data, b.len);
        else ex_fail_row(c, i, p.err.code, "%s", p.err.message);
    }
    ft_patterns_close(&p);
    fz_buf_free(&b);
}

static void k_convert_tz(ex_call *c) {
    fz_buf b = {0};
    sd_pattern *p;
    if (sd_pattern_new(DEFAULT_PATTERN, &p, NULL) != FZ_OK) return;
    const tz_zone *from = NULL, *to = NULL;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t ms;
        if (!ex_live(c, i)) continue;
        if (c->step[1] || !from) from = tz_find_lenient(ex_sv(c, 1, i));
        if (c->step[2] || !to) to = tz_find_lenient(ex_sv(c, 2, i));
        if (!sd_pattern_parse(p, ex_sv(c, 0, i), from, &ms)) {
            ex_put_null(c, i);
            continue;
        }
        b.len = 0;
        sd_pattern_format(p, ms, to, &b);
        ex_put(c, i, b.data, b.len);
    }
    sd_pattern_free(p);
    fz_buf_free(&b);
}

/* ---- the clock ---- */

static void k_current_timestamp(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->i64[i] = dt_cut(c->now_us, 3);
}
static void k_localtimestamp(ex_call *c) {
    int64_t us = tz_to_local(ft_session_zone(c), dt_cut(c->now_us, 3));
    for (uint32_t i = 0; i < c->n; i++) c->out->i64[i] = us;
}
static void k_current_date(ex_call *c) {
    int32_t days = (int32_t)dt_floor_div(tz_to_local(ft_session_zone(c), c->now_us), DT_US_PER_DAY);
    for (uint32_t i = 0; i < c->n; i++) c->out->i32[i] = days;
}
static void k_current_time(ex_call *c) {
    int64_t us = dt_floor_mod(tz_to_local(ft_session_zone(c), c->now_us), DT_US_PER_DAY);
    for (uint32_t i = 0; i < c->n; i++) c->out->i32[i] = (int32_t)(us / DT_US_PER_SECOND) * 1000;
}

const ex_kernel_entry ex_kernels_temporal[] = {
    {SQL_K_TO_TIMESTAMP, k_to_timestamp}, {SQL_K_TO_TIMESTAMP_LTZ, k_to_timestamp_ltz}, {SQL_K_TO_DATE, k_to_date},
    {SQL_K_UNIX_TIMESTAMP, k_unix_timestamp}, {SQL_K_FROM_UNIXTIME, k_from_unixtime}, {SQL_K_DATE_FORMAT, k_date_format},
    {SQL_K_EXTRACT, ft_extract}, {SQL_K_FLOOR_TO, ft_floor_to}, {SQL_K_CEIL_TO, ft_ceil_to}, {SQL_K_TIMESTAMPADD, ft_timestampadd},
    {SQL_K_TIMESTAMPDIFF, ft_timestampdiff}, {SQL_K_TEMPORAL_PLUS, ft_plus}, {SQL_K_TEMPORAL_MINUS, ft_minus}, {SQL_K_CONVERT_TZ, k_convert_tz},
    {SQL_K_CURRENT_DATE, k_current_date}, {SQL_K_CURRENT_TIME, k_current_time}, {SQL_K_LOCALTIMESTAMP, k_localtimestamp},
    {SQL_K_CURRENT_TIMESTAMP, k_current_timestamp}, {SQL_K_OVERLAPS, ft_overlaps}, {SQL_K_NONE, NULL}};
