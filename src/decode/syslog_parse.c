/* One syslog message into its parts: RFC 5424, else RFC 3164, else none. It works on bytes alone and cannot fail: what is not understood stays in the message.
 *
 *   RFC 5424  <PRI>VERSION SP TIMESTAMP SP HOSTNAME SP APP-NAME SP PROCID SP MSGID SP STRUCTURED-DATA [SP MSG]. "-" is no value. The fields may be longer than the RFC allows. Structured data that is broken,
 *             or missing, stays in the message. A byte order mark before MSG is removed.
 *   RFC 3164  <PRI>TIMESTAMP SP HOSTNAME SP TAG[PID]: MSG. The timestamp may be in RFC 3339's form (rsyslog's forward format). The host may be missing (the word ends with a colon or has a [PID]: it is the tag), so may
 *             the tag: a word is one only with a colon or a [PID] behind it. A message with a PRI and a tag, but no time, is of this kind too.
 *   none      message is the whole text; a valid PRI in front of it is still read.
 */
#include "decode/syslog_parts.h"

const char *const sys_facilities[24] = {"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
                                        "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"};
const char *const sys_severities[8] = {"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* <0> to <191>; bytes, 0: none. */
static size_t priority(fz_sv s, int *out) {
    size_t i = 1;
    int v = 0;
    if (s.n < 3 || s.p[0] != '<') return 0;
    for (; i < s.n && i < 4 && is_digit(s.p[i]); i++) v = v * 10 + (s.p[i] - '0');
    if (i == 1 || i == s.n || s.p[i] != '>' || v > 191) return 0;
    *out = v;
    return i + 1;
}

static fz_sv without_bom(fz_sv s) { return s.n >= 3 && memcmp(s.p, "\xef\xbb\xbf", 3) == 0 ? (fz_sv){s.p + 3, s.n - 3} : s; }

/* A word and the blank behind it. false: none stands there. */
static bool word(const char **p, const char *end, fz_sv *out) {
    const char *from = *p, *blank = from < end ? memchr(from, ' ', (size_t)(end - from)) : NULL;
    const char *stop = blank ? blank : end;
    *out = (fz_sv){from, (size_t)(stop - from)};
    *p = blank ? blank + 1 : end;
    return out->n > 0;
}
static fz_sv no_nil(fz_sv s) { return s.n == 1 && s.p[0] == '-' ? (fz_sv){0} : s; }

/* ---- structured data ---- */

static bool is_name(char c) { return c > ' ' && c != '=' && c != ']' && c != '"' && c != 0x7f; }
static const char *name_end(const char *p, const char *end) {
    while (p < end && is_name(*p)) p++;
    return p;
}
/* p behind the opening quote; at the closing one, or NULL. */
static const char *value_end(const char *p, const char *end) {
    for (; p < end && *p != '"'; p++)
        if (*p == '\\' && end - p > 1 && (p[1] == '"' || p[1] == '\\' || p[1] == ']')) p++;
    return p < end ? p : NULL;
}

const char *sys_sd_element(const char *p, const char *end) {
    const char *q = name_end(++p, end);
    if (q == p) return NULL;
    while (q < end && *q == ' ') {
        while (q < end && *q == ' ') q++;
        if (q < end && *q == ']') break;
        p = q;
        q = name_end(p, end);
        if (q == p || end - q < 2 || q[0] != '=' || q[1] != '"' || !(q = value_end(q + 2, end))) return NULL;
        q++;
    }
    return q < end && *q == ']' ? q + 1 : NULL;
}

bool sys_sd_next(const char **p, const char *end, bool first, fz_sv *name, fz_sv *value) {
    while (*p < end && **p == ' ') ++*p;
    const char *q = name_end(*p, end);
    *name = (fz_sv){*p, (size_t)(q - *p)};
    *value = (fz_sv){0};
    if (q == *p) return false;
    if (first) {
        *p = q;
        return true;
    }
    const char *v = q + 2, *e = end - v >= 0 ? value_end(v, end) : NULL;
    if (!e) return false;
    *value = (fz_sv){v, (size_t)(e - v)};
    *p = e + 1;
    return true;
}

void sys_sd_unescape(fz_sv v, fz_buf *out) {
    for (size_t i = 0; i < v.n;) {
        const char *b = memchr(v.p + i, '\\', v.n - i);
        size_t plain = b ? (size_t)(b - v.p) - i : v.n - i;
        fz_buf_append(out, v.p + i, plain);
        i += plain;
        if (!b) break;
        if (v.n - i > 1 && (b[1] == '"' || b[1] == '\\' || b[1] == ']')) i++;
        fz_buf_putc(out, v.p[i++]);
    }
}

/* Returns where the message begins. */
static const char *structured_data(const char *p, const char *end, fz_sv *out) {
    const char *q = p;
    if (p < end && *p == '-' && (end - p == 1 || p[1] == ' ')) return end - p == 1 ? end : p + 2;
    while (q < end && *q == '[') {
        q = sys_sd_element(q, end);
        if (!q) return p;
    }
    if (q == p || (q < end && *q != ' ')) return p;
    *out = (fz_sv){p, (size_t)(q - p)};
    return q < end ? q + 1 : q;
}

/* ---- RFC 5424 ---- */

static bool rfc5424(const char *p, const char *end, const tz_zone *zone, sys_parts *out) {
    int version = 0;
    const char *d = p;
    fz_sv time, host, app, proc, id, sd = {0};
    while (p < end && p - d < 3 && is_digit(*p)) version = version * 10 + (*p++ - '0');
    if (p == d || *d == '0' || p == end || *p++ != ' ') return false;
    if (!word(&p, end, &time) || !word(&p, end, &host) || !word(&p, end, &app) || !word(&p, end, &proc) || !word(&p, end, &id)) return false;
    time = no_nil(time);
    if (time.p && sys_time_iso(time, zone, &out->time_us) != time.n) return false;
    p = structured_data(p, end, &sd);
    *out = (sys_parts){.format = SYS_RFC5424, .priority = out->priority, .version = version, .timed = time.p != NULL, .time_us = out->time_us, .time = time, .hostname = no_nil(host),
                       .app_name = no_nil(app), .procid = no_nil(proc), .msgid = no_nil(id), .structured_data = sd, .message = without_bom((fz_sv){p, (size_t)(end - p)})};
    return true;
}

/* ---- RFC 3164 ---- */

/* TAG[PID]: or TAG: at p. *after: behind it and one blank. */
static bool tag(const char *p, const char *end, fz_sv *app, fz_sv *pid, const char **after) {
    const char *q = p;
    bool letters = false;
    for (; q < end && *q != ' ' && *q != '[' && !(*q == ':' && (q + 1 == end || q[1] == ' ')); q++) letters |= !is_digit(*q);
    if (q == p || q == end || *q == ' ' || !letters) return false;
    fz_sv name = {p, (size_t)(q - p)};
    *pid = (fz_sv){0};
    if (*q == '[') {
        const char *close = memchr(q, ']', (size_t)(end - q)), *blank = memchr(q, ' ', (size_t)(end - q));
        if (!close || close == q + 1 || (blank && blank < close)) return false;
        *pid = (fz_sv){q + 1, (size_t)(close - q - 1)};
        q = close + 1;
        if (q < end && *q != ':' && *q != ' ') return false;
    }
    if (q < end && *q == ':') q++;
    if (q < end && *q == ' ') q++;
    *app = name;
    *after = q;
    return true;
}

static const char *bsd_time(const char *p, const char *end, const tz_zone *zone, int64_t arrival_ms, sys_parts *out) {
    const char *from = p;
    if (p < end && (*p == '*' || *p == '.')) from++; /* Cisco: the clock is not set */
    fz_sv s = {from, (size_t)(end - from)};
    size_t n = sys_time_iso(s, zone, &out->time_us);
    if (!n) n = sys_time_bsd(s, zone, arrival_ms, &out->time_us);
    if (!n) return p;
    out->timed = true;
    out->time = (fz_sv){from, n};
    p = from + n;
    if (p < end && *p == ':') p++;
    if (p < end && *p == ' ') p++;
    return p;
}

static bool rfc3164(const char *p, const char *end, const tz_zone *zone, int64_t arrival_ms, sys_parts *out) {
    const char *after;
    bool has_pri = out->priority >= 0;
    p = bsd_time(p, end, zone, arrival_ms, out);
    if (!out->timed && !has_pri) return false;
    out->format = SYS_RFC3164;
    if (!tag(p, end, &out->app_name, &out->procid, &after)) {
        if (!out->timed) return out->format = SYS_NONE, false;
        const char *q = p;
        fz_sv host;
        if (word(&q, end, &host)) {
            out->hostname = no_nil(host);
            p = q;
        }
        if (tag(p, end, &out->app_name, &out->procid, &after)) p = after;
    } else p = after;
    out->message = without_bom((fz_sv){p, (size_t)(end - p)});
    return true;
}

void sys_parse(fz_sv text, const tz_zone *zone, int64_t arrival_ms, sys_parts *out) {
    fz_sv s = without_bom(text);
    const char *p = s.p, *end = s.p + s.n;
    *out = (sys_parts){.priority = -1, .version = -1};
    size_t pri = priority(s, &out->priority);
    if (pri && rfc5424(p + pri, end, zone, out)) return;
    if (rfc3164(p + pri, end, zone, arrival_ms, out)) return;
    *out = (sys_parts){.priority = out->priority, .version = -1, .message = s};
}
