/* Times in syslog messages: RFC 5424 6.2.3, and RFC 3164 4.1.2 with what senders have made of it (a fraction, a year, one or two digits for the day). */
#include "col/datetime.h"
#include "decode/syslog_parts.h"

#define A_MONTH_US (31 * DT_US_PER_DAY)
enum { LEAP_SEARCH = 9 }; /* years back to the one before the last leap year, over a century that has none */

static bool digits(const char **p, const char *end, unsigned least, unsigned most, int *out) {
    unsigned n = 0;
    *out = 0;
    for (; n < most && *p < end && **p >= '0' && **p <= '9'; n++) *out = *out * 10 + (*(*p)++ - '0');
    return n >= least;
}
static bool skip(const char **p, const char *end, char c) {
    if (*p == end || **p != c) return false;
    ++*p;
    return true;
}

/* hh:mm:ss[.fraction] -> microseconds of the day. A leap second is the second before it. */
static bool time_of_day(const char **p, const char *end, int64_t *us) {
    int h, m, s;
    if (!digits(p, end, 2, 2, &h) || !skip(p, end, ':') || !digits(p, end, 2, 2, &m) || !skip(p, end, ':') || !digits(p, end, 2, 2, &s)) return false;
    if (h > 23 || m > 59 || s > 60) return false;
    *us = ((h * 60 + m) * 60 + (s == 60 ? 59 : s)) * DT_US_PER_SECOND;
    if (end - *p < 2 || ((*p)[0] != '.' && (*p)[0] != ',') || (*p)[1] < '0' || (*p)[1] > '9') return true;
    ++*p;
    int64_t unit = 100000;
    for (unsigned n = 0; *p < end && **p >= '0' && **p <= '9'; ++*p, n++) {
        if (n == 9) return false;
        *us += unit * (**p - '0');
        unit /= 10;
    }
    return true;
}

static bool is_date(int64_t year, int month, int day) { return month >= 1 && month <= 12 && day >= 1 && day <= dt_month_length(year, month); }

/* Z, +hh:mm, -hh:mm, +hhmm; nothing. *has false: nothing. */
static bool offset(const char **p, const char *end, bool *has, int64_t *us) {
    int h, m;
    *has = true;
    *us = 0;
    if (skip(p, end, 'Z') || skip(p, end, 'z')) return true;
    if (*p == end || (**p != '+' && **p != '-')) return *has = false, true;
    int sign = *(*p)++ == '-' ? -1 : 1;
    if (!digits(p, end, 2, 2, &h)) return false;
    (void)skip(p, end, ':');
    if (!digits(p, end, 2, 2, &m) || h > 23 || m > 59) return false;
    *us = sign * (h * 60 + m) * 60 * DT_US_PER_SECOND;
    return true;
}

static bool at_end(const char *p, const char *end) { return p == end || *p == ' '; }

size_t sys_time_iso(fz_sv s, const tz_zone *zone, int64_t *us) {
    const char *p = s.p, *end = s.p + s.n;
    int year, month, day;
    int64_t of_day, off;
    bool has;
    if (!digits(&p, end, 4, 4, &year) || !skip(&p, end, '-') || !digits(&p, end, 2, 2, &month) || !skip(&p, end, '-') || !digits(&p, end, 2, 2, &day)) return 0;
    if (!is_date(year, month, day) || (!skip(&p, end, 'T') && !skip(&p, end, 't'))) return 0;
    if (!time_of_day(&p, end, &of_day) || !offset(&p, end, &has, &off) || !at_end(p, end)) return 0;
    int64_t local = dt_days_of(year, month, day) * DT_US_PER_DAY + of_day;
    *us = has ? local - off : tz_to_utc(zone, local);
    return (size_t)(p - s.p);
}

static int month_of(const char *p) {
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    char low[3];
    for (int k = 0; k < 3; k++) low[k] = (char)(p[k] | 0x20);
    for (int i = 0; i < 12; i++)
        if (memcmp(names + 3 * i, low, 3) == 0) return i + 1;
    return 0;
}

static bool guess_year(int month, int day, int64_t of_day, const tz_zone *zone, int64_t arrival_us, int64_t *us) {
    int32_t year, m, d;
    int64_t local = tz_to_local(zone, arrival_us);
    dt_date_of(dt_floor_div(local, DT_US_PER_DAY), &year, &m, &d);
    for (int64_t y = (int64_t)year + 1; y > (int64_t)year - LEAP_SEARCH; y--) {
        if (!is_date(y, month, day)) continue;
        *us = tz_to_utc(zone, dt_days_of(y, month, day) * DT_US_PER_DAY + of_day);
        if (*us <= arrival_us + A_MONTH_US) return true;
    }
    return false;
}

size_t sys_time_bsd(fz_sv s, const tz_zone *zone, int64_t arrival_ms, int64_t *us) {
    const char *p = s.p, *end = s.p + s.n, *before;
    int month, day, year = 0;
    int64_t of_day;
    if (s.n < 14 || !(month = month_of(p)) || p[3] != ' ') return 0;
    p += 4;
    (void)skip(&p, end, ' ');
    if (!digits(&p, end, 1, 2, &day) || day < 1 || !skip(&p, end, ' ')) return 0;
    before = p;
    bool has_year = digits(&p, end, 4, 4, &year) && skip(&p, end, ' ');
    if (!has_year) p = before;
    if (!time_of_day(&p, end, &of_day)) return 0;
    before = p;
    if (!has_year && skip(&p, end, ' ') && digits(&p, end, 4, 4, &year) && year >= 1970 && year < 2200 && at_end(p, end)) has_year = true;
    else if (!has_year) p = before;
    if (!at_end(p, end) && *p != ':') return 0;
    if (has_year && !is_date(year, month, day)) return 0;
    if (has_year) *us = tz_to_utc(zone, dt_days_of(year, month, day) * DT_US_PER_DAY + of_day);
    else if (!guess_year(month, day, of_day, zone, arrival_ms * 1000, us)) return 0;
    return (size_t)(p - s.p);
}
