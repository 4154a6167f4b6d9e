/* The forms of time that AWS writes and reads. See aws_int.h. */
#include "aws/aws_int.h"
#include <stdlib.h>
#include <time.h>

void (*aws_sleep)(int64_t ms) = fz_sleep_ms;

void aws_time_basic(int64_t ms, char out[17]) {
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, 17, "%Y%m%dT%H%M%SZ", &tm);
}

static bool digits(const char **p, int n, int *out) {
    *out = 0;
    for (int i = 0; i < n; i++) {
        if ((*p)[i] < '0' || (*p)[i] > '9') return false;
        *out = *out * 10 + ((*p)[i] - '0');
    }
    *p += n;
    return true;
}
static bool skip(const char **p, char c) {
    if (**p != c) return false;
    ++*p;
    return true;
}
static bool in_range(const struct tm *t) {
    return t->tm_mon >= 0 && t->tm_mon < 12 && t->tm_mday >= 1 && t->tm_mday <= 31 && t->tm_hour < 24 && t->tm_min < 60 && t->tm_sec <= 60;
}
static bool clock_part(const char **p, struct tm *t) {
    return digits(p, 2, &t->tm_hour) && skip(p, ':') && digits(p, 2, &t->tm_min) && skip(p, ':') && digits(p, 2, &t->tm_sec);
}

/* RFC 3339: 2015-08-30T12:36:00[.123](Z|+00:00). Some write a blank for the T or leave the Z out (UTC then). */
static bool parse_iso(const char *p, int64_t *ms) {
    struct tm t = {0};
    int64_t fraction = 0, offset = 0;
    if (!digits(&p, 4, &t.tm_year) || !skip(&p, '-') || !digits(&p, 2, &t.tm_mon) || !skip(&p, '-') || !digits(&p, 2, &t.tm_mday)) return false;
    if ((*p != 'T' && *p != 't' && *p != ' ') || (p++, !clock_part(&p, &t))) return false;
    if (skip(&p, '.'))
        for (int64_t unit = 100; *p >= '0' && *p <= '9'; p++, unit /= 10) fraction += unit * (*p - '0');
    if (*p == '+' || *p == '-') {
        int sign = *p++ == '-' ? -1 : 1, h, m;
        if (!digits(&p, 2, &h)) return false;
        (void)skip(&p, ':');
        if (!digits(&p, 2, &m)) return false;
        offset = sign * (h * 60 + m) * (int64_t)60000;
    } else if (*p == 'Z' || *p == 'z') p++;
    else if (strncmp(p, "UTC", 3) == 0) p += 3;
    t.tm_year -= 1900;
    t.tm_mon--;
    if (*p || !in_range(&t)) return false;
    *ms = (int64_t)timegm(&t) * 1000 + fraction - offset;
    return true;
}

/* RFC 9110 IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT. */
static bool parse_http(const char *p, int64_t *ms) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *comma = strchr(p, ',');
    struct tm t = {0};
    if (!comma) return false;
    p = comma + 1;
    while (*p == ' ') p++;
    if (!digits(&p, 2, &t.tm_mday) || !skip(&p, ' ')) return false;
    t.tm_mon = -1;
    for (int i = 0; i < 12; i++)
        if (strncmp(p, months + 3 * i, 3) == 0) t.tm_mon = i;
    if (t.tm_mon < 0) return false;
    p += 3;
    if (!skip(&p, ' ') || !digits(&p, 4, &t.tm_year) || !skip(&p, ' ') || !clock_part(&p, &t) || strcmp(p, " GMT") != 0) return false;
    t.tm_year -= 1900;
    if (!in_range(&t)) return false;
    *ms = (int64_t)timegm(&t) * 1000;
    return true;
}

bool aws_time_parse(const char *text, int64_t *ms) {
    return text && (parse_iso(text, ms) || parse_http(text, ms));
}
