/* Inside the syslog decoder: the parts of one message. */
#ifndef DEC_SYSLOG_PARTS_H
#define DEC_SYSLOG_PARTS_H
#include "col/tz.h"
#include "decode/json_int.h"

typedef enum { SYS_NONE, SYS_RFC3164, SYS_RFC5424 } sys_format;

/* Views of the message's bytes; p NULL: it has no such part. */
typedef struct sys_parts {
    sys_format format;
    int priority, version;  /* -1: none */
    bool timed;
    int64_t time_us;        /* UTC */
    fz_sv time, hostname, app_name, procid, msgid, structured_data, message;
} sys_parts;

/* ---- syslog_parse.c ---- */

/* Takes a message apart; it never fails. zone and arrival_ms: for times without a zone, without a year. */
void sys_parse(fz_sv text, const tz_zone *zone, int64_t arrival_ms, sys_parts *out);
/* The end of one SD-ELEMENT that begins at p ('['), or NULL when it is none. */
const char *sys_sd_element(const char *p, const char *end);
/* Walks an element that sys_sd_element has accepted. First call: *p behind the '['; gives the SD-ID (*value.p NULL). Then PARAM-NAME and PARAM-VALUE, still with its escapes. false: it is over. */
bool sys_sd_next(const char **p, const char *end, bool first, fz_sv *name, fz_sv *value);
/* Appends a PARAM-VALUE without its escapes: \" \\ \] ; a backslash before anything else stays. */
void sys_sd_unescape(fz_sv v, fz_buf *out);

/* ---- syslog_time.c ---- */

/* RFC 3339 as RFC 5424 6.2.3 has it; up to 9 digits of fraction. Returns bytes read, 0: no time stands there. Without an offset it is a time of the zone. */
size_t sys_time_iso(fz_sv s, const tz_zone *zone, int64_t *us);
/* "Jan  2 03:04:05", with a fraction, with a year before or behind the time of day. Without a year: the latest one in which the time is at most 31 days after the arrival. */
size_t sys_time_bsd(fz_sv s, const tz_zone *zone, int64_t arrival_ms, int64_t *us);

extern const char *const sys_facilities[24], *const sys_severities[8];
#endif
