/* See gen_logs.h. Severities of OTel records are drawn with equal weight: their numbers are those of the log data model (TRACE 1 ... FATAL 21). */
#include "source/gen_logs.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t draw(src_gen *g) { /* splitmix64 */
    uint64_t z = g->state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
static uint32_t below(src_gen *g, uint32_t n) { return (uint32_t)((draw(g) >> 32) * n >> 32); }
#define ONE_OF(g, v) ((v)[below((g), (uint32_t)(sizeof(v) / sizeof *(v)))])

bool src_gen_kind_parse(const char *name, src_gen_kind *out) {
    static const char *const names[] = {"otel", "syslog", "authlog"};
    for (int i = 0; i < 3; i++)
        if (fz_ieq(name, names[i])) return *out = (src_gen_kind)i, true;
    return false;
}
src_gen src_gen_new(src_gen_kind kind, uint64_t seed) { return (src_gen){kind, seed * 0x2545F4914F6CDD1Dull + (uint64_t)kind}; }

static void put_time(fz_buf *b, int64_t ms, int zone_hours) {
    time_t s = (time_t)(ms / 1000) + zone_hours * 3600;
    struct tm t;
    gmtime_r(&s, &t);
    fz_buf_printf(b, "\"%04d-%02d-%02dT%02d:%02d:%02d", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
    if (zone_hours) fz_buf_printf(b, "+%02d:00\"", zone_hours);
    else fz_buf_printf(b, ".%03dZ\"", (int)(ms % 1000));
}

static void otel(src_gen *g, int64_t at_ms, fz_buf *b) {
    static const struct { const char *text; int number; } severities[] = {{"TRACE", 1}, {"DEBUG", 5}, {"INFO", 9}, {"WARN", 13}, {"ERROR", 17}, {"FATAL", 21}};
    static const char *const services[] = {"checkout", "cart", "payment", "catalogue", "shipping"}, *const methods[] = {"GET", "POST", "PUT"};
    static const char *const bodies[6][3] = {
        {"entering handler", "cache lookup", "leaving handler"}, {"query planned in %u us", "connection %u taken from the pool", "payload of %u bytes"},
        {"request served in %u ms", "order %u accepted", "user %u logged in"}, {"slow request: %u ms", "retry %u of 5", "queue holds %u messages"},
        {"upstream answered 503 after %u ms", "payment %u declined", "database timeout after %u ms"}, {"out of memory after %u MB", "disk full: %u bytes left", "panic in worker %u"}};
    uint32_t s = below(g, 6), service = below(g, 5);
    uint64_t t1 = draw(g), t2 = draw(g), span = draw(g);
    char body[128];
    snprintf(body, sizeof body, bodies[s][below(g, 3)], below(g, 5000) + 1);
    fz_buf_puts(b, "{\"timestamp\":");
    put_time(b, at_ms, 0);
    fz_buf_printf(b, ",\"timeUnixNano\":\"%" PRId64 "%06u\",\"severityText\":\"%s\",\"severityNumber\":%d,\"body\":\"%s\",\"resource\":{\"service.name\":\"%s\",\"service.version\":\"1.%u.0\",\"host.name\":\"ip-10-0-%u-%u\"}",
                  at_ms, below(g, 1000000), severities[s].text, severities[s].number, body, services[service], service, below(g, 4), below(g, 250) + 1);
    fz_buf_printf(b, ",\"attributes\":{\"http.method\":\"%s\",\"http.status_code\":%d},\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\"}", ONE_OF(g, methods),
                  s >= 4 ? 500 : 200, t1, t2, span);
}

static void system_log(src_gen *g, int64_t at_ms, fz_buf *b, bool auth) {
    static const char *const hosts[] = {"web01-tky", "web02-tky", "db01-tky", "app01-osk", "gw01-nrt", "raspi4-3"}, *const users[] = {"root", "admin", "deploy", "git", "postgres", "backup"};
    static const char *const programs[] = {"nginx", "dockerd", "CRON", "kernel", "systemd"};
    static const char *const messages[] = {"request from 203.0.113.%u served", "container %u started", "job %u finished", "eth0: link up, %u Mbps", "Started session %u of user deploy."};
    static const char *const logins[] = {"Failed password for %s from 203.0.113.%u port 50022 ssh2", "Accepted publickey for %s from 203.0.113.%u port 50022 ssh2",
                                         "pam_unix(sshd:session): session opened for user %s(uid=%u) by (uid=0)"};
    char text[160];
    uint32_t k = below(g, 5), host = below(g, 6) * below(g, 6) / 6; /* a few hosts write most of it */
    if (auth) snprintf(text, sizeof text, ONE_OF(g, logins), ONE_OF(g, users), below(g, 254) + 1);
    else snprintf(text, sizeof text, messages[k], below(g, 254) + 1);
    fz_buf_puts(b, "{\"ts\":");
    put_time(b, at_ms, 9);
    fz_buf_printf(b, ",\"src_host\":\"%s\",\"program\":\"%s\",\"message\":", hosts[host], auth ? "sshd" : programs[k]);
    fz_buf_json(b, text, strlen(text));
    fz_buf_putc(b, '}');
}

void src_gen_record(src_gen *g, int64_t at_ms, fz_buf *out) {
    if (g->kind == SRC_GEN_OTEL) otel(g, at_ms, out);
    else system_log(g, at_ms, out, g->kind == SRC_GEN_AUTHLOG);
}
