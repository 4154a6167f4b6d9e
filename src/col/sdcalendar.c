/* java.util.GregorianCalendar in its lenient form: Julian before 1582-10-15, weeks from Sunday, the first holding January 1st (sd_int.h).
 *
 * Invariants
 *  1. Each field may be any 32-bit number; what is too large runs over into the next one.
 *  2. Which fields give the day is decided by the order in which they were set: the latest complete combination.
 */
#include "col/datetime.h"
#include "col/sd_int.h"

#define CUTOVER (-141427LL) /* 1582-10-15 */

static int64_t julian_days(int64_t year, int64_t month, int64_t day) { /* month 1..12 */
    int64_t y = month <= 2 ? year - 1 : year;
    return y * 365 + dt_floor_div(y, 4) + (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1 - 719470;
}

/* First day of a month that may be out of range, in one of the calendars. */
static int64_t month_start(bool julian, int64_t year, int64_t month) {
    year += dt_floor_div(month - 1, 12);
    month = dt_floor_mod(month - 1, 12) + 1;
    return julian ? julian_days(year, month, 1) : dt_days_of(year, (int)month, 1);
}

static int64_t choose(int64_t year, int64_t gregorian, int64_t julian) {
    if (year > 1582) return gregorian >= CUTOVER ? gregorian : julian;
    if (year < 1582) return julian;
    return gregorian >= CUTOVER ? gregorian : julian;
}

int64_t sd_days_of(int64_t year, int64_t month, int64_t day) {
    return choose(year, month_start(false, year, month) + day - 1, month_start(true, year, month) + day - 1);
}

void sd_date_of(int64_t days, int64_t *year, int32_t *month, int32_t *day) {
    if (days >= CUTOVER) {
        int32_t y;
        dt_date_of(days, &y, month, day);
        *year = y;
        return;
    }
    int64_t d = days + 719470, cycle = dt_floor_div(d, 1461), rest = d - cycle * 1461;
    int64_t of = rest / 365 > 3 ? 3 : rest / 365, doy = rest - of * 365, m = (5 * doy + 2) / 153;
    *day = (int32_t)(doy - (153 * m + 2) / 5 + 1);
    *month = (int32_t)(m < 10 ? m + 3 : m - 9);
    *year = cycle * 4 + of + (m >= 10);
}

void sd_set(sd_calendar *c, sd_field f, int32_t v) {
    c->v[f] = v;
    c->stamp[f] = ++c->next;
}

static int both(int a, int b) { return a && b ? (a > b ? a : b) : 0; }

static int larger(int a, int b) { return a > b ? a : b; }

/* The day on or before `day` of the week `dow` (1 Sunday). */
static int64_t dow_on_or_before(int64_t day, int64_t dow) { return day - dt_floor_mod(day + 4 - (dow - 1), 7); }

typedef enum { BY_DAY, BY_WEEK_OF_MONTH, BY_DOW_IN_MONTH, BY_DAY_OF_YEAR, BY_WEEK } how;

static how select_fields(const sd_calendar *c) {
    const int *s = c->stamp;
    int dow = s[SF_DAY_OF_WEEK], dom = s[SF_DAY], wom = both(s[SF_WEEK_OF_MONTH], dow), dim = both(s[SF_DOW_IN_MONTH], dow);
    int doy = s[SF_DAY_OF_YEAR], woy = both(s[SF_WEEK], dow);
    int best = larger(larger(larger(dom, wom), larger(dim, doy)), woy);
    if (!best) {
        wom = s[SF_WEEK_OF_MONTH];
        dim = larger(s[SF_DOW_IN_MONTH], dow);
        woy = s[SF_WEEK];
        best = larger(larger(wom, dim), woy);
        if (!best) best = dom = s[SF_MONTH];
    }
    if (best == dom) return BY_DAY;
    if (best == wom && s[SF_WEEK_OF_MONTH] >= s[SF_WEEK]) return BY_WEEK_OF_MONTH;
    if (best == dim && s[SF_DOW_IN_MONTH] >= s[SF_WEEK]) return s[SF_DOW_IN_MONTH] >= s[SF_WEEK_OF_MONTH] ? BY_DOW_IN_MONTH : BY_WEEK_OF_MONTH;
    return best == doy ? BY_DAY_OF_YEAR : BY_WEEK;
}

static int64_t by_fields(const sd_calendar *c, how h, bool julian, int64_t year) {
    bool has_dow = c->stamp[SF_DAY_OF_WEEK];
    int64_t month = c->stamp[SF_MONTH] ? c->v[SF_MONTH] + 1LL : 1, dow = has_dow ? c->v[SF_DAY_OF_WEEK] : 1;
    int64_t first = month_start(julian, year, h == BY_DAY_OF_YEAR || h == BY_WEEK ? 1 : month);
    switch (h) {
    case BY_DAY: return first + (c->stamp[SF_DAY] ? c->v[SF_DAY] - 1LL : 0);
    case BY_DAY_OF_YEAR: return first + c->v[SF_DAY_OF_YEAR] - 1LL;
    case BY_WEEK: case BY_WEEK_OF_MONTH: {
        int64_t sunday = dow_on_or_before(first, 1), week = c->v[h == BY_WEEK ? SF_WEEK : SF_WEEK_OF_MONTH];
        return sunday + (week - 1) * 7 + dow - 1;
    }
    case BY_DOW_IN_MONTH: {
        int64_t n = c->stamp[SF_DOW_IN_MONTH] ? c->v[SF_DOW_IN_MONTH] : 1;
        if (n >= 0) return dow_on_or_before(first + 7 * n - 1, dow);
        int64_t last = month_start(julian, year, month + 1) - 1;
        return dow_on_or_before(last + 7 * (n + 1), dow);
    }
    }
    return first;
}

static int64_t time_of_day(const sd_calendar *c) {
    const int *s = c->stamp;
    int hour = both(s[SF_HOUR], s[SF_AMPM]), best = larger(hour, s[SF_HOUR_OF_DAY]);
    if (!best) best = larger(s[SF_HOUR], s[SF_AMPM]);
    int64_t h = !best ? 0 : best == s[SF_HOUR_OF_DAY] ? c->v[SF_HOUR_OF_DAY] : (int64_t)c->v[SF_HOUR] + 12LL * (s[SF_AMPM] ? c->v[SF_AMPM] : 0);
    return ((h * 60 + c->v[SF_MINUTE]) * 60 + c->v[SF_SECOND]) * 1000 + c->v[SF_MS];
}

static int64_t week_date(const sd_calendar *c, int64_t year) {
    int64_t week = c->stamp[SF_WEEK] ? c->v[SF_WEEK] : 1, dow = c->stamp[SF_DAY_OF_WEEK] ? c->v[SF_DAY_OF_WEEK] : 1;
    return dow_on_or_before(sd_days_of(year, 1, 1), 1) + (week - 1) * 7 + dow - 1;
}

bool sd_calendar_ms(const sd_calendar *c, const tz_zone *z, int64_t *ms) {
    int64_t year = c->stamp[SF_YEAR] ? c->v[SF_YEAR] : 1970, tod = time_of_day(c), over = dt_floor_div(tod, DT_MS_PER_DAY), days;
    if (c->stamp[SF_ERA] && c->v[SF_ERA] == 0) year = 1 - year;
    if (c->stamp[SF_WEEK_YEAR] > c->stamp[SF_YEAR]) {
        days = week_date(c, c->v[SF_WEEK_YEAR]) + over;
    } else {
        how h = select_fields(c);
        int64_t j = by_fields(c, h, true, year) + over, g = by_fields(c, h, false, year) + over;
        days = year == 1582 && (h == BY_DAY_OF_YEAR || h == BY_WEEK) ? j : choose(year, g, j);
    }
    int64_t local = (int64_t)((uint64_t)days * (uint64_t)DT_MS_PER_DAY) + dt_floor_mod(tod, DT_MS_PER_DAY); /* wraps around, as in Java */
    int64_t off = c->stamp[SF_ZONE] ? c->v[SF_ZONE] : tz_offset_of_local_legacy(z, dt_floor_div(local, 1000)) * 1000LL;
    *ms = local - off;
    return true;
}

void sd_moment_of(int64_t ms, const tz_zone *z, sd_moment *o) {
    int64_t s = dt_floor_div(ms, 1000);
    o->offset = tz_offset_at_legacy(z, s);
    s += o->offset;
    o->days = dt_floor_div(s, 86400);
    o->ms_of_day = (int32_t)(s - o->days * 86400) * 1000 + (int32_t)dt_floor_mod(ms, 1000);
    sd_date_of(o->days, &o->year, &o->month, &o->day);
}

int64_t sd_day_of_year(const sd_moment *m) { return m->days - sd_days_of(m->year, 1, 1) + 1; }

int64_t sd_week(const sd_moment *m, int64_t *week_year) {
    int64_t sunday = dow_on_or_before(m->days, 1);
    *week_year = m->year;
    if (sunday + 7 > sd_days_of(m->year + 1, 1, 1)) {
        *week_year = m->year + 1;
        return 1;
    }
    return (sunday - dow_on_or_before(sd_days_of(m->year, 1, 1), 1)) / 7 + 1;
}
