/* The calendar, Flink's default text forms, and the forms of its JSON format (datetime.h). Units and rounding stand in dtunit.c.
 *
 * Invariants
 *  1. Text is scanned by bytes: no form here has anything but ASCII in it.
 *  2. Where Java computes in 32 bits and wraps around, wrap32 does so too, since the answers show it.
 */
#include "col/datetime.h"

#include "col/dt_int.h"
#include "col/numtext.h"

int64_t dt_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t dt_floor_mod(int64_t a, int64_t b) { return a - dt_floor_div(a, b) * b; }

bool dt_is_leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

int dt_month_length(int64_t year, int month) {
    static const int8_t n[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && dt_is_leap(year) ? 29 : n[month - 1];
}

int64_t dt_days_of(int64_t year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year, era = dt_floor_div(y, 400), of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void dt_date_of(int64_t days, int32_t *year, int32_t *month, int32_t *day) {
    days += 719468;
    int64_t era = dt_floor_div(days, 146097);
    uint32_t d = (uint32_t)(days - era * 146097);
    uint32_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365, doy = d - (365 * y + y / 4 - y / 100), m = (5 * doy + 2) / 153;
    *day = (int32_t)(doy - (153 * m + 2) / 5 + 1);
    *month = (int32_t)(m < 10 ? m + 3 : m - 9);
    *year = (int32_t)(era * 400 + y + (m >= 10));
}

void dt_fields_of(int64_t us, dt_fields *o) {
    int64_t days = dt_floor_div(us, DT_US_PER_DAY), t = us - days * DT_US_PER_DAY;
    dt_date_of(days, &o->year, &o->month, &o->day);
    int32_t s = (int32_t)(t / DT_US_PER_SECOND);
    o->nano = (int32_t)(t % DT_US_PER_SECOND) * 1000;
    o->hour = s / 3600;
    o->minute = s / 60 % 60;
    o->second = s % 60;
}

int64_t dt_us_of(const dt_fields *f) {
    int64_t s = dt_days_of(f->year, f->month, f->day) * 86400 + f->hour * 3600LL + f->minute * 60LL + f->second;
    return s * DT_US_PER_SECOND + f->nano / 1000;
}

bool dt_us_fits(const dt_fields *f) { return f->year >= -290000 && f->year <= 290000; }

int64_t dt_cut(int64_t us, int precision) {
    static const int64_t unit[7] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    return precision >= 6 ? us : us - dt_floor_mod(us, unit[precision]);
}

/* ---- Flink's lenient date and time ---- */

static int32_t wrap32(int64_t v) { return (int32_t)(uint32_t)(uint64_t)v; }

static fz_sv java_trim(fz_sv s) {
    while (s.n && (unsigned char)s.p[0] <= ' ') s.p++, s.n--;
    while (s.n && (unsigned char)s.p[s.n - 1] <= ' ') s.n--;
    return s;
}

/* Digits only, trimmed. */
static dt_status number_part(fz_sv s, int32_t *out) {
    s = java_trim(s);
    if (!s.n) return DT_NONE;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9') return DT_NONE;
    return nt_parse_java_int(s, out) ? DT_OK : DT_OVERFLOW;
}

static size_t index_of(fz_sv s, char c, size_t from) { /* s.n: not there */
    for (; from < s.n; from++)
        if (s.p[from] == c) return from;
    return s.n;
}

#define DT_TRY(expr) do { dt_status st_ = (expr); if (st_ != DT_OK) return st_; } while (0)

dt_status dt_parse_date(fz_sv s, int32_t *days) {
    size_t blank = index_of(s, ' ', 0);
    if (blank > 0 && blank < s.n) s.n = blank;
    int32_t y, m = 1, d = 1;
    size_t h1 = index_of(s, '-', 0);
    DT_TRY(number_part((fz_sv){s.p, h1}, &y));
    if (h1 < s.n) {
        size_t h2 = index_of(s, '-', h1 + 1);
        DT_TRY(number_part((fz_sv){s.p + h1 + 1, h2 - h1 - 1}, &m));
        if (h2 < s.n) DT_TRY(number_part((fz_sv){s.p + h2 + 1, s.n - h2 - 1}, &d));
    }
    if (y > 9999 || m < 1 || m > 12 || d < 1 || d > dt_month_length(y, m)) return DT_NONE;
    *days = (int32_t)dt_days_of(y, m, d);
    return DT_OK;
}

/* Thousandths of a second; digits that are none count as 0, the fourth one rounds. */
static int32_t fraction_ms(fz_sv s) {
    int32_t r = 0, unit = 100;
    s = java_trim(s);
    for (size_t i = 0; i < s.n; i++) {
        r += unit * (s.p[i] < '0' || s.p[i] > '9' ? 0 : s.p[i] - '0');
        if (unit == 1) {
            if (i + 1 < s.n && (unsigned char)s.p[i + 1] >= '5') r++;
            break;
        }
        unit /= 10;
    }
    return r;
}

static fz_sv part(fz_sv s, size_t from, size_t to) { return (fz_sv){s.p + from, to - from}; }

dt_status dt_parse_time(fz_sv s, int32_t *ms) {
    int32_t h, m = 0, sec = 0, frac = 0, zone_h = 0, zone_m = 0, sign = -1;
    size_t zone = index_of(s, '-', 0), end = s.n, c1 = index_of(s, ':', 0);
    if (zone == s.n) zone = index_of(s, '+', 0), sign = 1;
    if (zone < s.n) {
        end = zone;
        size_t c = index_of(s, ':', zone);
        DT_TRY(number_part(part(s, zone + 1, c), &zone_h));
        if (c < s.n) DT_TRY(number_part(part(s, c + 1, s.n), &zone_m));
    }
    if (c1 == s.n) {
        DT_TRY(number_part(part(s, 0, end), &h));
    } else {
        DT_TRY(number_part(part(s, 0, c1), &h));
        size_t c2 = index_of(s, ':', c1 + 1);
        if (c2 == s.n) {
            if (c1 + 1 > end) return DT_OVERFLOW; /* Java: index out of bounds */
            DT_TRY(number_part(part(s, c1 + 1, end), &m));
        } else {
            DT_TRY(number_part(part(s, c1 + 1, c2), &m));
            size_t dot = index_of(s, '.', c2);
            if ((dot < s.n ? dot : c2) + 1 > end) return DT_OVERFLOW;
            DT_TRY(number_part(part(s, c2 + 1, dot < s.n ? dot : end), &sec));
            if (dot < s.n) frac = fraction_ms(part(s, dot + 1, end));
        }
    }
    int64_t hh = (int64_t)h + sign * (int64_t)zone_h, mm = (int64_t)m + sign * (int64_t)zone_m;
    *ms = wrap32(wrap32(hh) * 3600000LL + wrap32(mm) * 60000LL + sec * 1000LL + frac);
    return DT_OK;
}

/* ---- fixed forms ---- */

/* n digits of s at *i; false: not there. */
static bool digits(fz_sv s, size_t *i, int n, int32_t *out) {
    int32_t v = 0;
    if (*i + (size_t)n > s.n) return false;
    for (int k = 0; k < n; k++) {
        unsigned d = (unsigned char)s.p[*i + (size_t)k] - '0';
        if (d > 9) return false;
        v = v * 10 + (int32_t)d;
    }
    *i += (size_t)n;
    *out = v;
    return true;
}

static bool literal(fz_sv s, size_t *i, char c) {
    if (*i >= s.n || s.p[*i] != c) return false;
    ++*i;
    return true;
}

/* [.[0-9]{0,9}] */
static void fraction(fz_sv s, size_t *i, int32_t *nano) {
    int32_t unit = 100000000;
    *nano = 0;
    if (!literal(s, i, '.')) return;
    for (int k = 0; k < 9 && *i < s.n && s.p[*i] >= '0' && s.p[*i] <= '9'; k++, ++*i, unit /= 10) *nano += (s.p[*i] - '0') * unit;
}

/* java.time's year of 4 to 10 digits, where more than four want a sign. */
static bool iso_year(fz_sv s, size_t *i, int32_t *out) {
    bool neg = *i < s.n && s.p[*i] == '-', pos = *i < s.n && s.p[*i] == '+';
    size_t j = *i + (neg || pos), from = j;
    int64_t v = 0;
    for (; j < s.n && j - from < 10 && s.p[j] >= '0' && s.p[j] <= '9'; j++) v = v * 10 + (s.p[j] - '0');
    size_t n = j - from;
    if (n < 4 || (n > 4 && !neg && !pos) || (n == 4 && pos) || (neg && v == 0) || v > 999999999) return false;
    *out = (int32_t)(neg ? -v : v);
    *i = j;
    return true;
}

static bool iso_date(fz_sv s, size_t *i, dt_fields *f) {
    return iso_year(s, i, &f->year) && literal(s, i, '-') && digits(s, i, 2, &f->month) && literal(s, i, '-') && digits(s, i, 2, &f->day);
}

/* SMART: days 29 to 31 are held within the month, 24:00:00 is midnight of the next day (the hour stays 24); strict: neither. */
static bool settle(dt_fields *f, bool strict) {
    if (f->month < 1 || f->month > 12 || f->day < 1 || f->day > 31 || f->minute > 59 || f->second > 59) return false;
    if (f->hour > 23 && (strict || f->hour != 24 || f->minute || f->second || f->nano)) return false;
    int last = dt_month_length(f->year, f->month);
    if (f->day > last) {
        if (strict) return false;
        f->day = last;
    }
    return true;
}

bool dt_parse_timestamp(fz_sv s, int precision, int64_t *us) {
    dt_fields f = {0};
    size_t i = 0;
    bool plain = digits(s, &i, 4, &f.year) && literal(s, &i, '-') && digits(s, &i, 2, &f.month) && literal(s, &i, '-') && digits(s, &i, 2, &f.day);
    if (plain && i < s.n) {
        plain = literal(s, &i, ' ') && digits(s, &i, 2, &f.hour) && literal(s, &i, ':') && digits(s, &i, 2, &f.minute) && literal(s, &i, ':') &&
                digits(s, &i, 2, &f.second);
        if (plain) fraction(s, &i, &f.nano);
    }
    if (plain && i == s.n) {
        if (f.year < 1 || !settle(&f, false)) return false;
    } else if (!dt_pattern_parse(dt_pattern_default(), s, &f)) {
        return false;
    }
    if (!dt_us_fits(&f)) return false;
    *us = dt_cut(dt_us_of(&f), precision);
    return true;
}

/* HH:mm[:ss[.fraction]]; the seconds may be absent where the form says so. */
static bool clock_part(fz_sv s, size_t *i, bool seconds_optional, dt_fields *f) {
    if (!digits(s, i, 2, &f->hour) || !literal(s, i, ':') || !digits(s, i, 2, &f->minute)) return false;
    size_t j = *i;
    if (!literal(s, &j, ':') || !digits(s, &j, 2, &f->second)) return seconds_optional;
    fraction(s, &j, &f->nano);
    *i = j;
    return true;
}

static bool json_timestamp(fz_sv s, bool iso, bool zulu, int64_t *us) {
    dt_fields f = {0};
    size_t i = 0;
    bool strict = iso && !zulu; /* ISO_LOCAL_DATE_TIME itself is strict, and takes "t"; what is built from it is SMART */
    if (!iso_date(s, &i, &f)) return false;
    if (!literal(s, &i, iso ? 'T' : ' ') && !(strict && literal(s, &i, 't'))) return false;
    if (!clock_part(s, &i, iso, &f) || (zulu && !literal(s, &i, 'Z')) || i != s.n) return false;
    if (!settle(&f, strict) || !dt_us_fits(&f)) return false;
    *us = dt_us_of(&f);
    return true;
}

bool dt_parse_json_timestamp(fz_sv s, bool iso, int64_t *us) { return json_timestamp(s, iso, false, us); }

bool dt_parse_json_timestamp_ltz(fz_sv s, bool iso, int64_t *us) { return json_timestamp(s, iso, true, us); }

bool dt_parse_json_date(fz_sv s, int32_t *days) {
    dt_fields f = {0};
    size_t i = 0;
    if (!iso_date(s, &i, &f) || i != s.n || !settle(&f, true)) return false;
    *days = wrap32(dt_days_of(f.year, f.month, f.day));
    return true;
}

bool dt_parse_json_time(fz_sv s, int32_t *ms) {
    dt_fields f = {.year = 1970, .month = 1, .day = 1};
    size_t i = 0;
    if (!clock_part(s, &i, false, &f) || i != s.n || !settle(&f, false)) return false;
    *ms = (f.hour % 24 * 3600 + f.minute * 60 + f.second) * 1000;
    return true;
}

/* ---- text ---- */

static size_t two(char *out, int32_t v) { /* Java's '0' + remainder, for negative values too */
    out[0] = (char)('0' + v / 10 % 10);
    out[1] = (char)('0' + v % 10);
    return 2;
}

static size_t date_text(char *out, int32_t y, int32_t m, int32_t d) {
    size_t k = two(out, y / 100);
    k += two(out + k, y);
    out[k++] = '-';
    k += two(out + k, m);
    out[k++] = '-';
    return k + two(out + k, d);
}

size_t dt_timestamp_text(int64_t us, int precision, char out[DT_TEXT_MAX]) {
    dt_fields f;
    dt_fields_of(us, &f);
    size_t k = date_text(out, f.year, f.month, f.day);
    out[k++] = ' ';
    k += two(out + k, f.hour);
    out[k++] = ':';
    k += two(out + k, f.minute);
    out[k++] = ':';
    k += two(out + k, f.second);
    if (precision <= 0) return k;
    out[k++] = '.';
    for (int32_t i = 0, unit = 100000000; i < precision && i < 9; i++, unit /= 10) out[k++] = (char)('0' + f.nano / unit % 10);
    return k;
}

/* The inverse of Flink's day number, in 32 bits with wrap-around, so that impossible days print as Flink prints them. */
size_t dt_date_text(int32_t days, char out[DT_TEXT_MAX]) {
    int32_t j = wrap32((int64_t)wrap32((int64_t)days + 2440588) + 32044);
    int32_t g = j / 146097, dg = j % 146097;
    int32_t c = (dg / 36524 + 1) * 3 / 4, dc = dg - c * 36524;
    int32_t b = dc / 1461, db = dc % 1461;
    int32_t a = (db / 365 + 1) * 3 / 4, da = db - a * 365;
    int32_t m = (da * 5 + 308) / 153 - 2, d = da - (m + 4) * 153 / 5 + 122;
    return date_text(out, g * 400 + c * 100 + b * 4 + a - 4800 + (m + 2) / 12, (m + 2) % 12 + 1, d + 1);
}

size_t dt_time_text(int32_t ms, int precision, char out[DT_TEXT_MAX]) {
    if (ms < 0) ms = (int32_t)dt_floor_mod(ms, DT_MS_PER_DAY); /* a time after midnight may be beyond 24 hours: Flink leaves it so */
    size_t k = two(out, ms / 3600000);
    out[k++] = ':';
    k += two(out + k, ms / 60000 % 60);
    out[k++] = ':';
    k += two(out + k, ms / 1000 % 60);
    if (precision <= 0) return k;
    out[k++] = '.';
    for (int32_t rest = ms % 1000; precision > 0; precision--) {
        out[k++] = (char)('0' + rest / 100);
        rest = rest % 100 * 10;
        if (!rest) break;
    }
    return k;
}

static size_t padded(char *out, int64_t v, size_t width) {
    char tmp[NT_TEXT_MAX];
    size_t n = nt_int_text(v, tmp), k = 0;
    for (size_t i = n; i < width; i++) out[k++] = '0';
    memcpy(out + k, tmp, n);
    return k + n;
}

size_t dt_interval_month_text(int32_t months, char out[DT_TEXT_MAX]) {
    int64_t v = months < 0 ? -(int64_t)months : months;
    out[0] = months < 0 ? '-' : '+';
    size_t k = 1 + nt_int_text(v / 12, out + 1);
    out[k++] = '-';
    return k + padded(out + k, v % 12, 2);
}

size_t dt_interval_day_text(int64_t ms, char out[DT_TEXT_MAX]) {
    uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    out[0] = ms < 0 ? '-' : '+';
    size_t k = 1 + nt_int_text(wrap32((int64_t)(v / 86400000)), out + 1);
    out[k++] = ' ';
    k += padded(out + k, (int64_t)(v / 3600000 % 24), 2);
    out[k++] = ':';
    k += padded(out + k, (int64_t)(v / 60000 % 60), 2);
    out[k++] = ':';
    k += padded(out + k, (int64_t)(v / 1000 % 60), 2);
    out[k++] = '.';
    return k + padded(out + k, (int64_t)(v % 1000), 3);
}
