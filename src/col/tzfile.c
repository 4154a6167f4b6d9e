/* Reads TZif files and evaluates the POSIX rule at their end (tz_int.h).
 *
 * Invariants
 *  1. Nothing of a file is trusted: each read is bounded by its length, and a file that does not add up is no zone.
 *  2. Leap seconds are left out of account, as in Java.
 */
#include <stdio.h>

#include "col/datetime.h"
#include "col/tz_int.h"

#define MAX_FILE (1u << 20)

static int64_t be(const uint8_t *p, int n) {
    int64_t v = (int8_t)p[0];
    for (int i = 1; i < n; i++) v = (int64_t)((uint64_t)v << 8 | p[i]);
    return v;
}

typedef struct header { uint32_t isut, isstd, leap, time, type, chars; } header;

static bool read_header(const uint8_t *p, size_t n, header *h) {
    if (n < 44 || memcmp(p, "TZif", 4) != 0 || p[4] < '2') return false;
    uint32_t *v[6] = {&h->isut, &h->isstd, &h->leap, &h->time, &h->type, &h->chars};
    for (int i = 0; i < 6; i++) {
        int64_t x = be(p + 20 + 4 * i, 4);
        if (x < 0 || x > MAX_FILE) return false;
        *v[i] = (uint32_t)x;
    }
    return true;
}

static size_t body_size(const header *h, size_t w) { return (size_t)h->time * (w + 1) + (size_t)h->type * 6 + h->chars + (size_t)h->leap * (w + 4) + h->isstd + h->isut; }

static void copy_name(char out[8], const char *s, size_t n) {
    if (n > 7) n = 7;
    memcpy(out, s, n);
    out[n] = 0;
}

/* ---- POSIX TZ string: std offset [dst [offset] [,start,end]] ---- */

static bool posix_name(const char **s, char out[8]) {
    const char *from = *s;
    if (*from == '<') {
        const char *end = strchr(from, '>');
        if (!end) return false;
        copy_name(out, from + 1, (size_t)(end - from - 1));
        *s = end + 1;
        return true;
    }
    while ((**s | 0x20) >= 'a' && (**s | 0x20) <= 'z') ++*s;
    copy_name(out, from, (size_t)(*s - from));
    return *s - from >= 3;
}

static bool posix_int(const char **s, int *out) {
    if (**s < '0' || **s > '9') return false;
    for (*out = 0; **s >= '0' && **s <= '9' && *out < 100000; ++*s) *out = *out * 10 + (**s - '0');
    return true;
}

static bool posix_time(const char **s, int32_t *out) { /* [+-]h[:m[:s]] */
    int sign = **s == '-' ? -1 : 1, h, m = 0, sec = 0;
    if (**s == '-' || **s == '+') ++*s;
    if (!posix_int(s, &h)) return false;
    if (**s == ':' && (++*s, !posix_int(s, &m))) return false;
    if (**s == ':' && (++*s, !posix_int(s, &sec))) return false;
    *out = sign * (h * 3600 + m * 60 + sec);
    return true;
}

static bool posix_when(const char **s, tz_when *w) {
    if (*(*s)++ != ',') return false;
    w->kind = 'N';
    if (**s == 'M' || **s == 'J') w->kind = *(*s)++;
    if (w->kind == 'M') {
        if (!posix_int(s, &w->month) || *(*s)++ != '.' || !posix_int(s, &w->week) || *(*s)++ != '.' || !posix_int(s, &w->day)) return false;
        if (w->month < 1 || w->month > 12 || w->week < 1 || w->week > 5 || w->day > 6) return false;
    } else if (!posix_int(s, &w->day)) {
        return false;
    }
    w->time = 7200;
    return **s != '/' || (++*s, posix_time(s, &w->time));
}

static bool posix_rule(const char *s, tz_zone *z) {
    int32_t off;
    if (!posix_name(&s, z->std.name) || !posix_time(&s, &off)) return false;
    z->std.offset = -off;
    z->has_rule = true;
    if (!*s) return true;
    if (!posix_name(&s, z->dst.name)) return false;
    z->dst.dst = true;
    z->dst.offset = z->std.offset + 3600;
    if (*s && *s != ',') {
        if (!posix_time(&s, &off)) return false;
        z->dst.offset = -off;
    }
    z->has_dst = posix_when(&s, &z->start) && posix_when(&s, &z->end) && !*s;
    return z->has_dst;
}

/* Local seconds from the epoch at which w falls in a year. */
static int64_t when_in(const tz_when *w, int32_t year) {
    int64_t day;
    if (w->kind == 'M') {
        int64_t first = dt_days_of(year, w->month, 1);
        int64_t d = dt_floor_mod(w->day - dt_floor_mod(first + 4, 7), 7) + (w->week - 1) * 7;
        while (d >= dt_month_length(year, w->month)) d -= 7;
        day = first + d;
    } else {
        day = dt_days_of(year, 1, 1) + (w->kind == 'J' ? w->day - 1 + (dt_is_leap(year) && w->day > 59) : w->day);
    }
    return day * 86400 + w->time;
}

const tz_type *tz_rule_type(const tz_zone *z, int64_t utc_s) {
    if (!z->has_dst) return &z->std;
    int32_t y, m, d;
    dt_date_of(dt_floor_div(utc_s + z->std.offset, 86400), &y, &m, &d);
    int64_t from = when_in(&z->start, y) - z->std.offset, to = when_in(&z->end, y) - z->dst.offset;
    bool in = from < to ? utc_s >= from && utc_s < to : utc_s >= from || utc_s < to;
    return in ? &z->dst : &z->std;
}

/* ---- the file ---- */

static bool read_types(const uint8_t *p, const header *h, tz_zone *z) {
    const uint8_t *idx = p + (size_t)h->time * 8, *types = idx + h->time, *chars = types + (size_t)h->type * 6;
    z->n = h->time;
    z->at = fz_calloc(h->time + 1, sizeof *z->at);
    z->type = fz_calloc(h->time + 1, sizeof *z->type);
    for (uint32_t i = 0; i <= h->time; i++) { /* the last round is the type before all transitions */
        uint32_t t = i < h->time ? idx[i] : 0;
        if (t >= h->type) return false;
        const uint8_t *q = types + (size_t)t * 6;
        uint32_t at = q[5];
        if (at >= h->chars || !memchr(chars + at, 0, h->chars - at)) return false;
        tz_type *o = i < h->time ? &z->type[i] : &z->first;
        *o = (tz_type){.offset = (int32_t)be(q, 4), .dst = q[4] != 0};
        copy_name(o->name, (const char *)chars + at, strlen((const char *)chars + at));
        if (i < h->time) z->at[i] = be(p + (size_t)i * 8, 8);
    }
    return true;
}

static bool parse(const uint8_t *p, size_t n, tz_zone *z) {
    header h;
    if (!read_header(p, n, &h)) return false;
    size_t skip = 44 + body_size(&h, 4);
    if (skip > n || !read_header(p + skip, n - skip, &h)) return false;
    size_t body = body_size(&h, 8), at = skip + 44;
    if (h.type == 0 || at + body > n || !read_types(p + at, &h, z)) return false;
    at += body;
    if (at >= n || p[at] != '\n') return false;
    const uint8_t *end = memchr(p + at + 1, '\n', n - at - 1);
    if (!end) return false;
    char rule[128];
    size_t len = (size_t)(end - (p + at + 1));
    if (len >= sizeof rule) return false;
    memcpy(rule, p + at + 1, len);
    rule[len] = 0;
    return !len || posix_rule(rule, z);
}

void tz_zone_clear(tz_zone *z) {
    fz_free(z->at);
    fz_free(z->type);
    fz_free(z->id);
}

bool tz_file_read(const char *path, tz_zone *z) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    uint8_t *p = fz_malloc(MAX_FILE);
    size_t n = fread(p, 1, MAX_FILE, f);
    bool ok = !ferror(f) && n < MAX_FILE && parse(p, n, z);
    fclose(f);
    fz_free(p);
    return ok;
}
