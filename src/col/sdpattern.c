/* Patterns of java.text.SimpleDateFormat: compiling, parsing the beginning of a text, printing (sdpattern.h). The calendar stands in sdcalendar.c.
 *
 * Invariants
 *  1. A number takes as many digits as there are, unless another field follows it without a break: then as many as it has letters.
 *  2. Blanks and tabs before a field are skipped; after the last field anything may follow.
 */
#include "col/sdpattern.h"

#include <stdio.h>

#include "col/dt_int.h"
#include "col/numtext.h"
#include "col/sd_int.h"

#define LETTERS "GyYMLwWDdFEuaHkKhmsSzZX"

typedef struct sd_node { char letter; int n; uint32_t at, len; } sd_node; /* letter 0: literal bytes at..at+len */
struct sd_pattern { uint32_t n, cap; sd_node *v; fz_buf text; };

static void literal(sd_pattern *p, const char *s, size_t n) {
    if (!n) return;
    uint32_t at = (uint32_t)p->text.len;
    fz_buf_append(&p->text, s, n);
    if (p->n && !p->v[p->n - 1].letter) {
        p->v[p->n - 1].len += (uint32_t)n;
        return;
    }
    FZ_GROW(p->v, p->n, p->cap);
    p->v[p->n++] = (sd_node){.at = at, .len = (uint32_t)n};
}

static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

static fz_status compile(sd_pattern *p, fz_sv s, fz_error *err) {
    bool quoted = false;
    for (size_t i = 0; i < s.n;) {
        char c = s.p[i];
        if (c == '\'') {
            if (i + 1 < s.n && s.p[i + 1] == '\'') literal(p, "'", 1), i += 2;
            else quoted = !quoted, i++;
        } else if (quoted || !is_letter(c)) {
            literal(p, &c, 1), i++;
        } else {
            if (!strchr(LETTERS, c)) return fz_fail(err, FZ_USER, "datetime.pattern", "Illegal pattern character '%c'", c);
            int n = 0;
            while (i < s.n && s.p[i] == c) i++, n++;
            FZ_GROW(p->v, p->n, p->cap);
            p->v[p->n++] = (sd_node){.letter = c, .n = n};
        }
    }
    if (quoted) return fz_fail(err, FZ_USER, "datetime.pattern", "Unterminated quote");
    return FZ_OK;
}

fz_status sd_pattern_new(fz_sv s, sd_pattern **out, fz_error *err) {
    sd_pattern *p = FZ_NEW(sd_pattern);
    fz_status st = compile(p, s, err);
    if (st != FZ_OK) {
        sd_pattern_free(p);
        return fz_detail(err, "pattern '%.*s'", (int)(s.n < 200 ? s.n : 200), s.p), st;
    }
    *out = p;
    return FZ_OK;
}

void sd_pattern_free(sd_pattern *p) {
    if (!p) return;
    fz_free(p->v);
    fz_buf_free(&p->text);
    fz_free(p);
}

const sd_pattern *sd_pattern_copy(fz_arena *a, const sd_pattern *p) {
    sd_pattern *c = FZ_ANEW(a, sd_pattern);
    *c = *p;
    c->v = fz_arena_alloc(a, p->n * sizeof *p->v);
    if (p->n) memcpy(c->v, p->v, p->n * sizeof *p->v);
    c->text.data = (uint8_t *)fz_arena_strndup(a, p->text.len ? (const char *)p->text.data : "", p->text.len);
    return c;
}

/* ---- parsing ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* DecimalFormat of whole numbers: minus, digits, an exponent after E; "NaN" is 0, the sign of infinity the largest number. */
static bool number(fz_sv s, size_t *i, int32_t *out) {
    size_t j = *i;
    bool neg = j < s.n && s.p[j] == '-';
    if (s.n - j >= 3 && memcmp(s.p + j, "NaN", 3) == 0) return *i = j + 3, *out = 0, true;
    j += neg;
    if (s.n - j >= 3 && memcmp(s.p + j, "\xE2\x88\x9E", 3) == 0) return *i = j + 3, *out = neg ? INT32_MIN : INT32_MAX, true;
    uint64_t v = 0;
    bool over = false;
    double d = 0;
    size_t from = j;
    for (; j < s.n && is_digit(s.p[j]); j++) {
        unsigned x = (unsigned)(s.p[j] - '0');
        d = d * 10 + x;
        over |= v > ((uint64_t)INT64_MAX - x) / 10;
        v = v * 10 + x;
    }
    if (j == from) return false;
    if (j + 1 < s.n && s.p[j] == 'E' && (is_digit(s.p[j + 1]) || (s.p[j + 1] == '-' && j + 2 < s.n && is_digit(s.p[j + 2])))) {
        bool down = s.p[j + 1] == '-';
        int e = 0;
        for (j += 1 + down; j < s.n && is_digit(s.p[j]); j++)
            if (e < 400) e = e * 10 + (s.p[j] - '0');
        for (; e > 0; e--) d = down ? d / 10 : d * 10;
        over = d >= 9.2e18;
        v = over ? 0 : (uint64_t)d;
    }
    *i = j;
    if (over) *out = neg ? INT32_MIN : INT32_MAX;
    else *out = (int32_t)(uint32_t)(neg ? 0 - v : v);
    return true;
}

/* The longest of the names, in any case. */
static bool name(fz_sv s, size_t *i, dt_field f, int32_t *out) {
    size_t best = 0;
    for (dt_style st = DT_SHORT; st <= DT_FULL; st++) {
        uint32_t n;
        const char *const *names = dt_names(f, st, &n);
        for (uint32_t k = 0; k < n; k++) {
            size_t len = strlen(names[k]);
            if (len > best && len <= s.n - *i && fz_sv_ieq((fz_sv){s.p + *i, len}, (fz_sv){names[k], len})) best = len, *out = (int32_t)k;
        }
        if (f == DF_ERA || f == DF_AMPM) break;
    }
    *i += best;
    return best > 0;
}

/* Hours and minutes of an offset after its sign. letters: of X, 0 for z and Z. */
static bool numeric_zone(fz_sv s, size_t *i, int sign, int letters, bool colon, sd_calendar *c) {
    size_t j = *i;
    if (j + 1 >= s.n || !is_digit(s.p[j])) return false;
    int h = s.p[j++] - '0', m = 0;
    if (is_digit(s.p[j])) h = h * 10 + (s.p[j++] - '0');
    else if (letters > 0 || !colon) return false;
    if (h > 23) return false;
    if (letters != 1) {
        if (colon && (j >= s.n || s.p[j++] != ':')) return false;
        if (j + 1 >= s.n || !is_digit(s.p[j]) || !is_digit(s.p[j + 1])) return false;
        m = (s.p[j] - '0') * 10 + (s.p[j + 1] - '0');
        j += 2;
        if (m > 59) return false;
    }
    sd_set(c, SF_ZONE, sign * (h * 60 + m) * 60000);
    *i = j;
    return true;
}

static const struct { const char *name; int minutes; } zone_names[] = {
    {"UTC", 0}, {"EST", -300}, {"EDT", -240}, {"CST", -360}, {"CDT", -300}, {"MST", -420}, {"MDT", -360}, {"PST", -480}, {"PDT", -420}, {"HST", -600},
    {"JST", 540}, {"KST", 540}, {"IST", 330}, {"WET", 0}, {"WEST", 60}, {"CET", 60}, {"CEST", 120}, {"EET", 120}, {"EEST", 180}, {"MSK", 180}, {"BST", 60},
    {"AEST", 600}, {"AEDT", 660}, {"ACST", 570}, {"AWST", 480}, {"NZST", 720}, {"NZDT", 780}, {"HKT", 480}, {"SGT", 480}, {"SAST", 120}};

static bool general_zone(fz_sv s, size_t *i, sd_calendar *c) {
    char ch = s.p[*i];
    if (ch == '+' || ch == '-') return ++*i, numeric_zone(s, i, ch == '-' ? -1 : 1, 0, false, c);
    if (s.n - *i >= 3 && fz_sv_ieq((fz_sv){s.p + *i, 3}, FZ_SV("GMT"))) {
        *i += 3;
        if (*i < s.n && (s.p[*i] == '+' || s.p[*i] == '-')) {
            int sign = s.p[*i] == '-' ? -1 : 1;
            return ++*i, numeric_zone(s, i, sign, 0, true, c);
        }
        return sd_set(c, SF_ZONE, 0), true;
    }
    size_t best = 0;
    for (size_t k = 0; k < sizeof zone_names / sizeof *zone_names; k++) {
        size_t len = strlen(zone_names[k].name);
        if (len <= best || len > s.n - *i || !fz_sv_ieq((fz_sv){s.p + *i, len}, fz_sv_of(zone_names[k].name))) continue;
        best = len;
        sd_set(c, SF_ZONE, zone_names[k].minutes * 60000);
    }
    *i += best;
    return best > 0;
}

static bool iso_zone(const sd_node *d, fz_sv s, size_t *i, sd_calendar *c) {
    char ch = s.p[(*i)++];
    if (ch == 'Z') return sd_set(c, SF_ZONE, 0), true;
    return (ch == '+' || ch == '-') && numeric_zone(s, i, ch == '-' ? -1 : 1, d->n, d->n == 3, c);
}

/* Two digits of a year mean the one that is at most 80 years ago and 20 ahead. */
static int32_t full_year(int32_t v) {
    int64_t days = dt_floor_div(fz_now_ms(), DT_MS_PER_DAY);
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    int32_t start = y - 80;
    return v + start / 100 * 100 + (v < start % 100 ? 100 : 0);
}

static void store(char letter, int32_t v, sd_calendar *c) {
    switch (letter) {
    case 'y': sd_set(c, SF_YEAR, v); break;
    case 'Y': sd_set(c, SF_WEEK_YEAR, v); break;
    case 'M': case 'L': sd_set(c, SF_MONTH, (int32_t)((uint32_t)v - 1)); break;
    case 'd': sd_set(c, SF_DAY, v); break;
    case 'D': sd_set(c, SF_DAY_OF_YEAR, v); break;
    case 'F': sd_set(c, SF_DOW_IN_MONTH, v); break;
    case 'w': sd_set(c, SF_WEEK, v); break;
    case 'W': sd_set(c, SF_WEEK_OF_MONTH, v); break;
    case 'u': sd_set(c, SF_DAY_OF_WEEK, v >= 1 && v <= 7 ? v % 7 + 1 : v); break;
    case 'k': sd_set(c, SF_HOUR_OF_DAY, v == 24 ? 0 : v); break;
    case 'H': sd_set(c, SF_HOUR_OF_DAY, v); break;
    case 'h': sd_set(c, SF_HOUR, v == 12 ? 0 : v); break;
    case 'K': sd_set(c, SF_HOUR, v); break;
    case 'm': sd_set(c, SF_MINUTE, v); break;
    case 's': sd_set(c, SF_SECOND, v); break;
    case 'S': sd_set(c, SF_MS, v); break;
    default: break;
    }
}

static bool parse_field(const sd_node *d, bool counted, fz_sv s, size_t *i, sd_calendar *c) {
    size_t start = *i, at = start;
    int32_t v;
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t')) at++;
    if (at == s.n) return false;
    *i = at;
    switch (d->letter) {
    case 'z': case 'Z': return general_zone(s, i, c);
    case 'X': return iso_zone(d, s, i, c);
    case 'G': return *i = start, name(s, i, DF_ERA, &v) && (sd_set(c, SF_ERA, v), true);
    case 'a': return *i = start, name(s, i, DF_AMPM, &v) && (sd_set(c, SF_AMPM, v), true);
    case 'E': return *i = start, name(s, i, DF_DAY_OF_WEEK, &v) && (sd_set(c, SF_DAY_OF_WEEK, (v + 1) % 7 + 1), true);
    case 'M': case 'L':
        if (d->n > 2) return *i = start, name(s, i, DF_MONTH, &v) && (sd_set(c, SF_MONTH, v), true);
        break;
    default: break;
    }
    if (counted) {
        if (start + (size_t)d->n > s.n) return false;
        s.n = start + (size_t)d->n;
        if (at >= s.n) return false;
    }
    if (!number(s, i, &v)) return false;
    bool year = d->letter == 'y' || d->letter == 'Y';
    if (year && d->n <= 2 && *i - at == 2 && is_digit(s.p[at]) && is_digit(s.p[at + 1])) v = full_year(v);
    store(d->letter, v, c);
    return true;
}

/* Whether a field ends the digits of the one before it: one that is a number itself does. */
static bool ends_run(const sd_node *next) {
    if (!next->letter) return false;
    return strchr("ML", next->letter) ? next->n <= 2 : !strchr("GEazZX", next->letter);
}

bool sd_pattern_parse(const sd_pattern *p, fz_sv s, const tz_zone *z, int64_t *ms) {
    sd_calendar c = {0};
    size_t i = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const sd_node *d = &p->v[k];
        if (d->letter) {
            bool counted = k + 1 < p->n && ends_run(&p->v[k + 1]);
            if (!parse_field(d, counted, s, &i, &c)) return false;
        } else {
            if (d->len > s.n - i || memcmp(s.p + i, p->text.data + d->at, d->len) != 0) return false;
            i += d->len;
        }
    }
    return i > 0 && sd_calendar_ms(&c, z, ms);
}

int32_t sd_to_date(const sd_pattern *p, fz_sv s) {
    int64_t ms;
    int32_t y, m, d;
    if (!sd_pattern_parse(p, s, tz_utc(), &ms)) ms = INT64_MIN;
    dt_date_of(dt_floor_div(ms, DT_MS_PER_DAY), &y, &m, &d);
    return dt_java_days(y, m, d);
}

/* ---- printing ---- */

static void padded(fz_buf *out, int64_t v, int width) {
    char t[NT_TEXT_MAX];
    size_t n = nt_int_text(v < 0 ? -v : v, t);
    if (v < 0) fz_buf_putc(out, '-');
    for (size_t k = n; k < (size_t)width; k++) fz_buf_putc(out, '0');
    fz_buf_append(out, t, n);
}

static void print_zone(const sd_node *d, const sd_moment *m, int64_t ms, const tz_zone *z, fz_buf *out) {
    int min = m->offset / 60, a = min < 0 ? -min : min;
    char text[16];
    switch (d->letter) {
    case 'z': fz_buf_append(out, text, tz_abbreviation(z, dt_floor_div(ms, 1000), text)); return;
    case 'Z': fz_buf_printf(out, "%c%02d%02d", min < 0 ? '-' : '+', a / 60, a % 60); return;
    default:
        if (m->offset == 0) {
            fz_buf_putc(out, 'Z');
            return;
        }
        fz_buf_printf(out, "%c%02d", min < 0 ? '-' : '+', a / 60);
        if (d->n > 1) fz_buf_printf(out, d->n == 2 ? "%02d" : ":%02d", a % 60);
    }
}

static void print_name(dt_field f, bool full, int64_t i, fz_buf *out) {
    uint32_t n;
    fz_buf_puts(out, dt_names(f, full ? DT_FULL : DT_SHORT, &n)[i]);
}

static void print_field(const sd_node *d, const sd_moment *m, int64_t ms, const tz_zone *z, fz_buf *out) {
    int64_t wy, week = 0, dow = dt_floor_mod(m->days + 4, 7); /* 0 Sunday */
    int32_t h = m->ms_of_day / 3600000;
    int64_t year = m->year > 0 ? m->year : 1 - m->year;
    if (strchr("wY", d->letter)) week = sd_week(m, &wy);
    switch (d->letter) {
    case 'G': print_name(DF_ERA, false, m->year > 0, out); break;
    case 'y': padded(out, d->n == 2 ? year % 100 : year, d->n); break;
    case 'Y': padded(out, d->n == 2 ? wy % 100 : wy, d->n); break;
    case 'M': case 'L':
        if (d->n > 2) print_name(DF_MONTH, d->n > 3, m->month - 1, out);
        else padded(out, m->month, d->n);
        break;
    case 'w': padded(out, week, d->n); break;
    case 'W': padded(out, (m->day + 6 + dt_floor_mod(dow + 1 - m->day, 7)) / 7, d->n); break;
    case 'D': padded(out, sd_day_of_year(m), d->n); break;
    case 'd': padded(out, m->day, d->n); break;
    case 'F': padded(out, (m->day - 1) / 7 + 1, d->n); break;
    case 'E': print_name(DF_DAY_OF_WEEK, d->n > 3, (dow + 6) % 7, out); break;
    case 'u': padded(out, dow ? dow : 7, d->n); break;
    case 'a': print_name(DF_AMPM, false, h / 12, out); break;
    case 'H': padded(out, h, d->n); break;
    case 'k': padded(out, h ? h : 24, d->n); break;
    case 'K': padded(out, h % 12, d->n); break;
    case 'h': padded(out, h % 12 ? h % 12 : 12, d->n); break;
    case 'm': padded(out, m->ms_of_day / 60000 % 60, d->n); break;
    case 's': padded(out, m->ms_of_day / 1000 % 60, d->n); break;
    case 'S': padded(out, m->ms_of_day % 1000, d->n); break;
    default: print_zone(d, m, ms, z, out); break;
    }
}

void sd_pattern_format(const sd_pattern *p, int64_t ms, const tz_zone *z, fz_buf *out) {
    sd_moment m;
    sd_moment_of(ms, z, &m);
    for (uint32_t k = 0; k < p->n; k++) {
        const sd_node *d = &p->v[k];
        if (d->letter) print_field(d, &m, ms, z, out);
        else fz_buf_append(out, p->text.data + d->at, d->len);
    }
}
