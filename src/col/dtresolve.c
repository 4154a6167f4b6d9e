/* Resolving of parsed fields, as java.time does it in SMART style for the ISO calendar (dtresolve.h).
 *
 * Invariants
 *  1. A field that has been used is taken out of the set; what remains when the date or time is known must agree with it.
 *  2. Without a whole date or time Flink takes the fields that are there: 1970, 1, 1, 0, 0, 0 for the others.
 */
#include "col/dtresolve.h"

static bool has(const dt_parsed *f, dt_field k) { return f->has >> k & 1; }

static int64_t take(dt_parsed *f, dt_field k) {
    f->has &= ~(1u << k);
    return f->v[k];
}

/* Sets a derived field; it must agree with one that was parsed. */
static bool put(dt_parsed *f, dt_field k, int64_t v) {
    if (has(f, k)) return f->v[k] == v;
    f->has |= 1u << k;
    f->v[k] = v;
    return true;
}

static bool within(int64_t v, int64_t lo, int64_t hi) { return v >= lo && v <= hi; }

#define YEAR_MAX 999999999

typedef struct date { bool known; int64_t days; } date;

static bool know(date *d, int64_t days) {
    if (d->known) return d->days == days;
    *d = (date){true, days};
    return true;
}

static bool resolve_era(dt_parsed *f) {
    if (!has(f, DF_YEAR_OF_ERA)) return !has(f, DF_ERA) || within(f->v[DF_ERA], 0, 1);
    int64_t yoe = take(f, DF_YEAR_OF_ERA);
    if (!within(yoe, 1, YEAR_MAX)) return false;
    if (has(f, DF_ERA)) return put(f, DF_YEAR, take(f, DF_ERA) == 1 ? yoe : 1 - yoe);
    return put(f, DF_YEAR, !has(f, DF_YEAR) || f->v[DF_YEAR] > 0 ? yoe : 1 - yoe);
}

static bool resolve_date(dt_parsed *f, date *d) {
    if (!resolve_era(f)) return false;
    if (!has(f, DF_YEAR)) return true;
    int64_t y = f->v[DF_YEAR];
    bool ymd = has(f, DF_MONTH) && has(f, DF_DAY), yd = has(f, DF_DAY_OF_YEAR);
    if (!ymd && !yd && !(has(f, DF_MONTH) && has(f, DF_WEEK_OF_MONTH) && has(f, DF_DAY_OF_WEEK))) return true;
    if (!within(y, -YEAR_MAX, YEAR_MAX)) return false;
    if (ymd) {
        take(f, DF_YEAR);
        int64_t m = take(f, DF_MONTH), dom = take(f, DF_DAY);
        if (!within(m, 1, 12) || !within(dom, 1, 31)) return false;
        int last = dt_month_length(y, (int)m);
        return know(d, dt_days_of(y, (int)m, (int)(dom > last ? last : dom)));
    }
    if (yd) {
        take(f, DF_YEAR);
        int64_t doy = take(f, DF_DAY_OF_YEAR);
        if (!within(doy, 1, dt_is_leap(y) ? 366 : 365)) return false;
        return know(d, dt_days_of(y, 1, 1) + doy - 1);
    }
    int64_t m = f->v[DF_MONTH], week = f->v[DF_WEEK_OF_MONTH], dow = f->v[DF_DAY_OF_WEEK];
    if (!within(m, 1, 12) || !within(week, 0, 6) || !within(dow, 1, 7)) return false;
    take(f, DF_YEAR), take(f, DF_MONTH), take(f, DF_WEEK_OF_MONTH), take(f, DF_DAY_OF_WEEK);
    int64_t first = dt_days_of(y, (int)m, 1);
    return know(d, first + (week - dt_week_of_month(first)) * 7 + dow % 7 + 1 - dt_local_dow(first));
}

/* Week fields and the modified julian day. */
static bool resolve_weeks(dt_parsed *f, date *d) {
    if (has(f, DF_LOCAL_DOW)) {
        int64_t v = take(f, DF_LOCAL_DOW);
        if (!within(v, 1, 7) || !put(f, DF_DAY_OF_WEEK, dt_floor_mod(v + 5, 7) + 1)) return false;
    }
    if (has(f, DF_MJD) && !know(d, take(f, DF_MJD) - 40587)) return false;
    if (!has(f, DF_WEEK_YEAR) || !has(f, DF_WEEK) || !has(f, DF_DAY_OF_WEEK)) return true;
    int64_t y = take(f, DF_WEEK_YEAR), w = take(f, DF_WEEK), dow = take(f, DF_DAY_OF_WEEK);
    if (!within(y, -YEAR_MAX, YEAR_MAX) || !within(w, 1, 53) || !within(dow, 1, 7)) return false;
    int64_t first = dt_days_of(y, 1, 1), lead = dt_local_dow(first) - 1, len = dt_is_leap(y) ? 366 : 365;
    int64_t last = (lead + len) / 7; /* weeks that end in the year */
    if (w > last) w = last;
    return know(d, first - lead + (w - 1) * 7 + dow % 7);
}

static bool resolve_clock(dt_parsed *f) {
    if (has(f, DF_CLOCK_HOUR)) {
        int64_t v = take(f, DF_CLOCK_HOUR);
        if (!within(v, 0, 24) || !put(f, DF_HOUR, v % 24)) return false;
    }
    if (has(f, DF_CLOCK_HOUR_OF_AMPM)) {
        int64_t v = take(f, DF_CLOCK_HOUR_OF_AMPM);
        if (!within(v, 0, 12) || !put(f, DF_HOUR_OF_AMPM, v % 12)) return false;
    }
    if (has(f, DF_AMPM) && has(f, DF_HOUR_OF_AMPM)) {
        int64_t ap = take(f, DF_AMPM), h = take(f, DF_HOUR_OF_AMPM);
        if (!within(h, 0, 11) || !put(f, DF_HOUR, ap * 12 + h)) return false;
    }
    if (has(f, DF_NANO_OF_DAY)) {
        int64_t v = take(f, DF_NANO_OF_DAY);
        if (!within(v, 0, 86400000000000 - 1)) return false;
        if (!put(f, DF_HOUR, v / 3600000000000) || !put(f, DF_MINUTE, v / 60000000000 % 60) || !put(f, DF_SECOND, v / 1000000000 % 60) ||
            !put(f, DF_NANO, v % 1000000000))
            return false;
    }
    if (has(f, DF_MILLI_OF_DAY)) {
        int64_t v = take(f, DF_MILLI_OF_DAY);
        if (!within(v, 0, DT_MS_PER_DAY - 1)) return false;
        if (!put(f, DF_HOUR, v / 3600000) || !put(f, DF_MINUTE, v / 60000 % 60) || !put(f, DF_SECOND, v / 1000 % 60)) return false;
        if (has(f, DF_NANO)) { /* finer than the milliseconds, which must agree */
            if (f->v[DF_NANO] / 1000000 != v % 1000) return false;
        } else {
            put(f, DF_NANO, v % 1000 * 1000000);
        }
    }
    return true;
}

/* With a part of the day ("in the morning") the hour of the half day, or the part's middle. */
static bool resolve_period(dt_parsed *f) {
    static const int middle[] = {0, 720, 540, 900, 1170, 90};
    if (has(f, DF_PERIOD)) {
        int64_t p = take(f, DF_PERIOD);
        if (has(f, DF_HOUR_OF_AMPM) && !has(f, DF_HOUR)) {
            int64_t h = take(f, DF_HOUR_OF_AMPM);
            if (!within(h, 0, 11)) return false;
            bool later = dt_period_of((int)h * 60 + (has(f, DF_MINUTE) ? (int)f->v[DF_MINUTE] : 0)) != (uint32_t)p;
            return put(f, DF_HOUR, later ? h + 12 : h);
        }
        if (has(f, DF_HOUR)) return dt_period_of((int)(f->v[DF_HOUR] * 60 + (has(f, DF_MINUTE) ? f->v[DF_MINUTE] : 0))) == (uint32_t)p;
        return has(f, DF_MINUTE) || (put(f, DF_HOUR, middle[p] / 60) && put(f, DF_MINUTE, middle[p] % 60));
    }
    if (has(f, DF_AMPM) && !has(f, DF_HOUR) && !has(f, DF_MINUTE) && !has(f, DF_SECOND) && !has(f, DF_NANO)) return put(f, DF_HOUR, take(f, DF_AMPM) * 12 + 6);
    return true;
}

/* *ms of the time fields; *next_day for 24:00:00. */
static bool resolve_time(dt_parsed *f, dt_fields *o, bool *known, bool *next_day) {
    *known = *next_day = false;
    if (!resolve_clock(f) || !resolve_period(f)) return false;
    bool m = has(f, DF_MINUTE), s = has(f, DF_SECOND), n = has(f, DF_NANO);
    if (has(f, DF_HOUR) && (m || (!s && !n)) && (s || !n)) {
        int64_t hv = take(f, DF_HOUR), mv = m ? take(f, DF_MINUTE) : 0, sv = s ? take(f, DF_SECOND) : 0, nv = n ? take(f, DF_NANO) : 0;
        if (hv == 24 && mv == 0 && sv == 0 && nv == 0) *next_day = true, hv = 0;
        if (!within(hv, 0, 23) || !within(mv, 0, 59) || !within(sv, 0, 59) || !within(nv, 0, 999999999)) return false;
        o->hour = (int32_t)hv, o->minute = (int32_t)mv, o->second = (int32_t)sv, o->nano = (int32_t)nv;
        *known = true;
    }
    static const struct { dt_field f; int64_t hi; } range[] = {{DF_HOUR, 23}, {DF_MINUTE, 59}, {DF_SECOND, 59}, {DF_NANO, 999999999}, {DF_HOUR_OF_AMPM, 11}, {DF_AMPM, 1}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (has(f, range[i].f) && !within(f->v[range[i].f], 0, range[i].hi)) return false;
    return true;
}

static bool agrees(const dt_parsed *f, dt_field k, int64_t v) { return !has(f, k) || f->v[k] == v; }

static bool check_date(const dt_parsed *f, int64_t days) {
    int32_t y, m, d;
    int64_t wy, w = dt_week_of_year(days, &wy);
    dt_date_of(days, &y, &m, &d);
    return agrees(f, DF_YEAR, y) && agrees(f, DF_MONTH, m) && agrees(f, DF_DAY, d) && agrees(f, DF_QUARTER, (m + 2) / 3) && agrees(f, DF_ERA, y > 0) &&
           agrees(f, DF_DAY_OF_YEAR, days - dt_days_of(y, 1, 1) + 1) && agrees(f, DF_DAY_OF_WEEK, dt_floor_mod(days + 3, 7) + 1) &&
           agrees(f, DF_ALIGNED_DAY, (d - 1) % 7 + 1) && agrees(f, DF_WEEK, w) && agrees(f, DF_WEEK_YEAR, wy) && agrees(f, DF_WEEK_OF_MONTH, dt_week_of_month(days));
}

static int32_t or_else(const dt_parsed *f, dt_field k, int32_t v) { return has(f, k) ? (int32_t)f->v[k] : v; }

bool dt_resolve(dt_parsed *f, dt_fields *o) {
    date d = {0};
    bool time_known, next_day;
    *o = (dt_fields){.year = 1970, .month = 1, .day = 1};
    if (!resolve_date(f, &d) || !resolve_weeks(f, &d) || (!d.known && !resolve_date(f, &d)) || !resolve_time(f, o, &time_known, &next_day)) return false;
    if (d.known) {
        if (!check_date(f, d.days)) return false;
        if (time_known && has(f, DF_OFFSET) && !within(f->v[DF_OFFSET], -18 * 3600, 18 * 3600)) return false;
        dt_date_of(d.days + (next_day && time_known), &o->year, &o->month, &o->day);
    } else {
        if (has(f, DF_YEAR) && !within(f->v[DF_YEAR], -YEAR_MAX, YEAR_MAX)) return false;
        if (has(f, DF_MONTH) && !within(f->v[DF_MONTH], 1, 12)) return false;
        o->year = or_else(f, DF_YEAR, 1970), o->month = or_else(f, DF_MONTH, 1);
        if (has(f, DF_DAY) && !within(f->v[DF_DAY], 1, dt_month_length(o->year, o->month))) return false;
        o->day = or_else(f, DF_DAY, 1);
    }
    if (time_known) {
        if (has(f, DF_AMPM)) return f->v[DF_AMPM] == o->hour / 12;
        return agrees(f, DF_HOUR_OF_AMPM, o->hour % 12);
    }
    o->hour = or_else(f, DF_HOUR, 0), o->minute = or_else(f, DF_MINUTE, 0);
    o->second = or_else(f, DF_SECOND, 0), o->nano = or_else(f, DF_NANO, 0);
    return true;
}
