/* Parsing by compiled java.time patterns: strict matching, then resolving the fields in SMART style (dtpattern.h).
 *
 * Invariants
 *  1. A field parsed twice must have the same value both times, or the second parse fails where it stands (inside an option: the option is left out).
 *  2. A failing option gives back the position and all fields set within it.
 *  3. Positions are bytes; what is parsed beyond literals and names is ASCII.
 */
#include "col/dtpattern.h"

#include "col/dt_int.h"
#include "col/dtresolve.h"
#include "col/numtext.h"
#include "col/sdpattern.h"
#include "col/tz.h"

#define FAIL SIZE_MAX

static bool set(dt_parsed *f, dt_field k, int64_t v) {
    if (f->has >> k & 1) return f->v[k] == v;
    f->has |= 1u << k;
    f->v[k] = v;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits of s from i on, between min and max of them; the value is cut where 64 bits end, as in Java. Returns the position after them. */
static size_t take_digits(fz_sv s, size_t i, int min, int max, int64_t *out) {
    int64_t v = 0;
    int n = 0;
    for (; n < max && i < s.n && is_digit(s.p[i]); n++, i++) {
        int64_t w;
        if (__builtin_mul_overflow(v, 10, &w) || __builtin_add_overflow(w, s.p[i] - '0', &w)) break;
        v = w;
    }
    *out = v;
    return n < min ? FAIL : i;
}

static size_t parse_number(const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    if (i == s.n) return FAIL;
    bool neg = s.p[i] == '-', pos = s.p[i] == '+';
    if ((pos && d->sign != DS_EXCEEDS_PAD) || (neg && d->sign == DS_NOT_NEGATIVE)) return FAIL;
    i += neg || pos;
    if (i + (size_t)d->min > s.n) return FAIL;
    int64_t v;
    size_t end = take_digits(s, i, d->min, d->max + d->following, &v);
    if (end == FAIL) return FAIL;
    if (d->following > 0) {
        int n = (int)(end - i) - d->following;
        end = take_digits(s, i, d->min, n > d->min ? n : d->min, &v);
        if (end == FAIL) return FAIL;
    }
    int n = (int)(end - i);
    if (neg && v == 0) return FAIL;
    if (!neg && d->sign == DS_EXCEEDS_PAD && pos != (n > d->min)) return FAIL;
    if (neg) v = -v;
    if (d->kind == DN_REDUCED && n == 2) v += 2000;
    return set(f, d->field, v) ? end : FAIL;
}

static size_t parse_fraction(const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    if (i == s.n) return d->min > 0 ? FAIL : i;
    if (d->point) {
        if (s.p[i] != '.') return d->min > 0 ? FAIL : i;
        i++;
    }
    int64_t v;
    size_t end = take_digits(s, i, d->min, d->max, &v);
    if (end == FAIL) return FAIL;
    for (size_t n = end - i; n < 9; n++) v *= 10;
    return set(f, d->field, v) ? end : FAIL;
}

static bool starts(fz_sv s, size_t i, const char *t, size_t n) { return n <= s.n - i && memcmp(s.p + i, t, n) == 0; }

static size_t parse_text(const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    uint32_t n;
    const char *const *names = dt_names(d->field, d->style, &n);
    for (uint32_t k = n; k-- > 0;) { /* of several with one letter Java knows the last */
        size_t len = strlen(names[k]);
        if (starts(s, i, names[k], len)) return set(f, d->field, dt_name_value(d->field, k)) ? i + len : FAIL;
    }
    return FAIL;
}

static size_t two_digits(fz_sv s, size_t i, int64_t *out) { return take_digits(s, i, 2, 2, out); }

/* Hour, minute and second of an offset after its sign, in one of Java's forms; the minute and second may be optional. */
static size_t offset_parts(int type, fz_sv s, size_t i, int64_t out[3]) {
    bool colon = type > 0 && type % 2 == 0, minute_must = type >= 3;
    out[1] = out[2] = 0;
    i = two_digits(s, i, &out[0]);
    if (i == FAIL || type == 0) return i;
    for (int k = 1; k < (type >= 5 ? 3 : 2); k++) {
        size_t j = i;
        bool must = k == 1 && minute_must;
        if (colon) {
            if (j == s.n || s.p[j] != ':') return must ? FAIL : i;
            j++;
        }
        j = two_digits(s, j, &out[k]);
        if (j == FAIL || out[k] > 59) {
            out[k] = 0;
            return must ? FAIL : i;
        }
        i = j;
    }
    return i;
}

static size_t parse_offset(int type, const char *zero, fz_sv s, size_t i, dt_parsed *f) {
    if (i == s.n) return FAIL;
    size_t n = strlen(zero);
    if (starts(s, i, zero, n)) return set(f, DF_OFFSET, 0) ? i + n : FAIL;
    if (s.p[i] != '+' && s.p[i] != '-') return FAIL;
    int64_t v[3];
    size_t end = offset_parts(type, s, i + 1, v);
    if (end == FAIL) return FAIL;
    if (v[0] > 23) {
        f->broken = true; /* Java throws: no option saves it */
        return FAIL;
    }
    int64_t total = v[0] * 3600 + v[1] * 60 + v[2];
    return set(f, DF_OFFSET, s.p[i] == '-' ? -total : total) ? end : FAIL;
}

static size_t parse_local_offset(const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    if (!starts(s, i, "GMT", 3)) return FAIL;
    i += 3;
    if (i == s.n || (s.p[i] != '+' && s.p[i] != '-')) return set(f, DF_OFFSET, 0) ? i : FAIL;
    bool neg = s.p[i++] == '-';
    int64_t h, part[2] = {0, 0};
    size_t j = take_digits(s, i, d->style == DT_FULL ? 2 : 1, 2, &h);
    if (j == FAIL) return FAIL;
    i = j;
    for (int k = 0; k < 2; k++) {
        if (i == s.n || s.p[i] != ':' || (j = two_digits(s, i + 1, &part[k])) == FAIL) {
            if (d->style == DT_FULL && k == 0) return FAIL;
            break;
        }
        i = j;
    }
    int64_t total = h * 3600 + part[0] * 60 + part[1];
    return set(f, DF_OFFSET, neg ? -total : total) ? i : FAIL;
}

/* A zone's id, offset or abbreviation: the longest one that there is. It has no bearing on the local time. */
static size_t parse_zone(fz_sv s, size_t i) {
    size_t end = i;
    while (end < s.n && end - i < 64 && (is_digit(s.p[end]) || (s.p[end] | 0x20) >= 'a' || strchr("/_+-:.~", s.p[end])) && (signed char)s.p[end] > ' ') end++;
    for (; end > i; end--) {
        fz_sv id = {s.p + i, end - i};
        if (tz_find(id)) return end;
        if (id.n >= 3 && id.n <= 4 && tz_is_abbreviation(id)) return end;
    }
    return FAIL;
}

static size_t parse_node(const dt_pattern *p, const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    switch (d->kind) {
    case DN_LITERAL: return starts(s, i, (const char *)p->text.data + d->at, d->n) ? i + d->n : FAIL;
    case DN_NUMBER: case DN_REDUCED: return parse_number(d, s, i, f);
    case DN_FRACTION: return parse_fraction(d, s, i, f);
    case DN_TEXT: return parse_text(d, s, i, f);
    case DN_OFFSET: return parse_offset(d->offset_type, d->no_offset, s, i, f);
    case DN_LOCAL_OFFSET: return parse_local_offset(d, s, i, f);
    case DN_ZONE: return parse_zone(s, i);
    case DN_OPTION: case DN_OPTION_END: break;
    }
    return FAIL;
}

static size_t parse_padded(const dt_pattern *p, const dt_node *d, fz_sv s, size_t i, dt_parsed *f) {
    size_t end = i + (size_t)d->pad;
    if (i == s.n || end > s.n) return FAIL;
    while (i < end && s.p[i] == ' ') i++;
    return parse_node(p, d, (fz_sv){s.p, end}, i, f) == end ? end : FAIL;
}

/* Nodes from..to of the pattern; options call it again. */
static size_t parse_nodes(const dt_pattern *p, uint32_t from, uint32_t to, fz_sv s, size_t i, dt_parsed *f) {
    for (uint32_t k = from; k < to; k++) {
        const dt_node *d = &p->v[k];
        if (d->kind == DN_OPTION_END) continue;
        if (d->kind == DN_OPTION) {
            dt_parsed before = *f;
            size_t end = parse_nodes(p, k + 1, d->end, s, i, f);
            if (f->broken) return FAIL;
            if (end == FAIL) *f = before;
            else i = end;
            k = d->end;
            continue;
        }
        i = d->pad ? parse_padded(p, d, s, i, f) : parse_node(p, d, s, i, f);
        if (i == FAIL) return FAIL;
    }
    return i;
}

/* The common form: no branch but the digits. false: the general way has to look at it. */
static bool parse_fast(const dt_pattern *p, fz_sv s, dt_fields *o) {
    int32_t v[DF_COUNT];
    uint32_t has = 0;
    size_t i = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const dt_node *d = &p->v[k];
        if (d->kind == DN_LITERAL) {
            if (memcmp(s.p + i, p->text.data + d->at, d->n) != 0) return false;
            i += d->n;
            continue;
        }
        int n = d->kind == DN_FRACTION ? d->max : d->min;
        int32_t x = 0;
        for (int j = 0; j < n; j++) {
            unsigned c = (unsigned char)s.p[i++] - '0';
            if (c > 9) return false;
            x = x * 10 + (int32_t)c;
        }
        for (int j = n; d->kind == DN_FRACTION && j < 9; j++) x *= 10;
        v[d->field == DF_YEAR ? DF_YEAR_OF_ERA : d->field] = x;
        has |= 1u << (d->field == DF_YEAR ? DF_YEAR_OF_ERA : d->field);
    }
    const uint32_t date = 1u << DF_YEAR_OF_ERA | 1u << DF_MONTH | 1u << DF_DAY, hm = 1u << DF_HOUR | 1u << DF_MINUTE, sec = 1u << DF_SECOND, nano = 1u << DF_NANO;
    if ((has & date) != date || ((has & ~date) && (has & hm) != hm) || ((has & nano) && !(has & sec))) return false;
    o->year = v[DF_YEAR_OF_ERA], o->month = v[DF_MONTH], o->day = v[DF_DAY];
    o->hour = has & hm ? v[DF_HOUR] : 0, o->minute = has & hm ? v[DF_MINUTE] : 0;
    o->second = has & sec ? v[DF_SECOND] : 0, o->nano = has & nano ? v[DF_NANO] : 0;
    return o->year > 0 && o->month >= 1 && o->month <= 12 && o->day >= 1 && o->day <= dt_month_length(o->year, o->month) && o->hour < 24 && o->minute < 60 &&
           o->second < 60;
}

bool dt_pattern_parse(const dt_pattern *p, fz_sv s, dt_fields *out) {
    if (p->fast && s.n == (size_t)p->fast && parse_fast(p, s, out)) return true;
    dt_parsed f = {0};
    return parse_nodes(p, 0, p->n, s, 0, &f) == s.n && dt_resolve(&f, out);
}

/* ---- java.sql.Timestamp.valueOf and Date.valueOf ---- */

static bool int_between(fz_sv s, size_t from, size_t to, int32_t *out) { return from <= to && nt_parse_java_int((fz_sv){s.p + from, to - from}, out); }

static size_t index_of(fz_sv s, char c, size_t from) { /* s.n: not there */
    for (; from < s.n; from++)
        if (s.p[from] == c) return from;
    return s.n;
}

static bool jdbc_date(fz_sv s, int32_t ymd[3]) {
    size_t d1 = index_of(s, '-', 0), d2 = index_of(s, '-', d1 + 1);
    if (d1 != 4 || d2 >= s.n || d2 - d1 < 2 || d2 - d1 > 3 || s.n - d2 < 2 || s.n - d2 > 3) return false;
    return int_between(s, 0, d1, &ymd[0]) && int_between(s, d1 + 1, d2, &ymd[1]) && int_between(s, d2 + 1, s.n, &ymd[2]) && ymd[1] >= 1 && ymd[1] <= 12 &&
           ymd[2] >= 1 && ymd[2] <= 31;
}

static bool jdbc_time(fz_sv s, int32_t hms[3], int32_t *nano) {
    size_t c1 = index_of(s, ':', 0), c2 = index_of(s, ':', c1 + 1);
    if (c2 + 1 >= s.n) return false;
    size_t dot = index_of(s, '.', c2 + 1);
    *nano = 0;
    if (!int_between(s, 0, c1, &hms[0]) || !int_between(s, c1 + 1, c2, &hms[1]) || !int_between(s, c2 + 1, dot, &hms[2])) return false;
    if (dot == s.n) return true;
    size_t n = s.n - dot - 1;
    if (n == 0 || n > 9 || !is_digit(s.p[dot + 1]) || !int_between(s, dot + 1, s.n, nano)) return false;
    for (; n < 9; n++) *nano *= 10;
    return true;
}

static bool jdbc_timestamp(fz_sv s, int64_t *us) {
    while (s.n && (unsigned char)s.p[0] <= ' ') s.p++, s.n--;
    while (s.n && (unsigned char)s.p[s.n - 1] <= ' ') s.n--;
    size_t blank = index_of(s, ' ', 0);
    int32_t ymd[3], hms[3] = {0}, nano = 0, y32, m, d;
    if (!jdbc_date((fz_sv){s.p, blank}, ymd)) return false;
    if (blank < s.n && !jdbc_time((fz_sv){s.p + blank + 1, s.n - blank - 1}, hms, &nano)) return false;
    /* the fields are normalised in the calendar that was in use, and read off as they are */
    int64_t secs = hms[0] * 3600LL + hms[1] * 60LL + hms[2], y, days = sd_days_of(ymd[0], ymd[1], ymd[2]) + dt_floor_div(secs, 86400);
    sd_date_of(days, &y, &m, &d);
    if (y <= 0) y = 1 - y; /* java.util.Date gives the year of the era */
    if (y < -290000 || y > 290000) return false;
    y32 = (int32_t)y;
    if (d > dt_month_length(y32, m)) return false;
    *us = (dt_days_of(y32, m, d) * 86400 + dt_floor_mod(secs, 86400)) * DT_US_PER_SECOND + nano / 1000;
    return true;
}

bool dt_to_timestamp(const dt_pattern *p, fz_sv s, int64_t *us) {
    dt_fields f;
    if (!dt_pattern_parse(p, s, &f)) return jdbc_timestamp(s, us);
    if (!dt_us_fits(&f)) return false;
    *us = dt_cut(dt_us_of(&f), 3);
    return true;
}
