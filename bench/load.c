/* Sends log records to a listening input of frazil, or to its floor, and times the acknowledgements. One thread, as little CPU as possible: all messages are made before the first is sent.
 *
 *   load forward|forward-gzip|otlp PORT [--records N] [--chunk N] [--connections N] [--window N] [--rate RECORDS_PER_SECOND] [--together]
 *
 * window: messages on their way on one connection (OTLP: 1). Without a rate each connection sends as soon as it may. together: each connection sends its first message without its last byte; when all have,
 * the last bytes go.
 * Prints: records, json_bytes, sent_bytes, wall_s, cpu_s (its own, without the making), p50_ms, p99_ms, max_ms of the time from the last byte sent to the acknowledgement read.
 */
#include "base/mp.h"
#include "base/otlp.h"
#include "base/protobuf.h"
#include "base/base.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum { LOAD_FORWARD, LOAD_FORWARD_GZIP, LOAD_OTLP } load_kind;
typedef struct message { uint8_t *p; size_t n; int64_t sent_ns; } message;
typedef struct conn {
    int fd;
    bool writing, held;
    uint32_t out, at;        /* index of the message that is being sent, bytes of it that are gone */
    size_t done;
    uint32_t *waiting, head, n_waiting; /* messages without an answer, a ring of `window` */
    uint8_t in[4096];
    size_t n_in;
} conn;

static struct { load_kind kind; int port; uint32_t records, chunk, conns, window; double rate; bool together; } o = {.records = 600000, .chunk = 1000, .conns = 4, .window = 4};
static message *msgs;
static uint32_t n_msgs, next_msg, answered;
static double *took_ms;
static conn *conns;
static int ep;

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- records ---- */

/* One of three is ERROR or FATAL; texts, ids and times differ from record to record. */
typedef struct record { const char *severity, *service; uint32_t number; char time[32], body[80], trace[33], span[17]; uint64_t ns, id[3]; } record;

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static record make_record(uint32_t i) {
    static const struct { const char *text; uint32_t number; const char *body; } kinds[] = {
        {"TRACE", 1, "entering the handler of request %u, user %u"}, {"DEBUG", 5, "query %u planned in %u us, from the cache"}, {"INFO", 9, "request %u served in %u ms, status 200"},
        {"WARN", 13, "slow request %u: it took %u ms"}, {"ERROR", 17, "upstream answered 503 to %u after %u ms"}, {"FATAL", 21, "database timeout: order %u lost after %u ms"}};
    static const char *const services[] = {"checkout", "cart", "payment", "catalogue", "shipping"};
    uint64_t state = i * 0x2545F4914F6CDD1Dull + 1, r = draw(&state);
    uint32_t ms = i / 40; /* 40,000 records a second */
    record x = {.severity = kinds[r % 6].text, .number = kinds[r % 6].number, .service = services[r / 6 % 5], .ns = 1796000400000000000ull + ms * 1000000ull};
    x.id[0] = draw(&state);
    x.id[1] = draw(&state);
    x.id[2] = draw(&state);
    snprintf(x.body, sizeof x.body, kinds[r % 6].body, (uint32_t)(r >> 8 & 0xffff), (uint32_t)(r >> 40) % 5000 + 1);
    snprintf(x.trace, sizeof x.trace, "%016llx%016llx", (unsigned long long)x.id[0], (unsigned long long)x.id[1]);
    snprintf(x.span, sizeof x.span, "%016llx", (unsigned long long)x.id[2]);
    snprintf(x.time, sizeof x.time, "2026-11-29T%02u:%02u:%02u.%03uZ", 9 + ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
    return x;
}

static uint64_t json_size(const record *x) {
    return (uint64_t)snprintf(NULL, 0, "{\"timestamp\":\"%s\",\"severityText\":\"%s\",\"severityNumber\":%u,\"body\":\"%s\",\"resource\":{\"service.name\":\"%s\"},\"traceId\":\"%s\",\"spanId\":\"%s\"}\n", x->time, x->severity,
                              x->number, x->body, x->service, x->trace, x->span);
}

static void text(fz_buf *b, const char *k, const char *v) {
    mp_put_str(b, k, strlen(k));
    mp_put_str(b, v, strlen(v));
}

static void put_event(fz_buf *b, const record *x) {
    uint8_t time[10] = {0xd7, 0};
    uint32_t part[2] = {htonl((uint32_t)(x->ns / 1000000000)), htonl((uint32_t)(x->ns % 1000000000))};
    memcpy(time + 2, part, 8);
    mp_put_array(b, 2);
    fz_buf_append(b, time, sizeof time);
    mp_put_map(b, 7);
    text(b, "timestamp", x->time);
    text(b, "severityText", x->severity);
    mp_put_str(b, "severityNumber", 14);
    mp_put_int(b, x->number);
    text(b, "body", x->body);
    mp_put_str(b, "resource", 8);
    mp_put_map(b, 1);
    text(b, "service.name", x->service);
    text(b, "traceId", x->trace);
    text(b, "spanId", x->span);
}

static void gzip(const fz_buf *in, fz_buf *out) {
    struct isal_zstream s;
    static uint8_t level[ISAL_DEF_LVL1_DEFAULT];
    isal_deflate_init(&s);
    s.level = 1;
    s.level_buf = level;
    s.level_buf_size = sizeof level;
    s.gzip_flag = IGZIP_GZIP;
    s.end_of_stream = 1;
    s.next_in = in->data;
    s.avail_in = (uint32_t)in->len;
    fz_buf_reserve(out, in->len + 4096);
    s.next_out = out->data + out->len;
    s.avail_out = (uint32_t)in->len + 4096;
    if (isal_deflate(&s) != COMP_OK || s.avail_in) exit(1);
    out->len += s.total_out;
}

/* Packed mode, as Fluent Bit sends it. */
static void put_forward(fz_buf *out, uint32_t chunk, uint32_t first, uint32_t n, uint64_t *json) {
    fz_buf events = {0}, packed = {0};
    char id[25];
    for (uint32_t i = 0; i < n; i++) {
        record x = make_record(first + i);
        put_event(&events, &x);
        *json += json_size(&x);
    }
    bool zip = o.kind == LOAD_FORWARD_GZIP;
    if (zip) gzip(&events, &packed);
    mp_put_array(out, 3);
    mp_put_str(out, "app.otel", 8);
    if (zip) mp_put_bin(out, packed.data, packed.len);
    else mp_put_bin(out, events.data, events.len);
    mp_put_map(out, zip ? 3 : 2);
    snprintf(id, sizeof id, "%024u", chunk);
    text(out, "chunk", id);
    mp_put_str(out, "size", 4);
    mp_put_int(out, n);
    if (zip) text(out, "compressed", "gzip");
    fz_buf_free(&events);
    fz_buf_free(&packed);
}

static void string_value(fz_buf *b, uint32_t field, const char *s) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_ANY_STRING, s, strlen(s));
    pb_end(b, at);
}

static void put_log_record(fz_buf *b, const record *x) {
    uint64_t id[3] = {__builtin_bswap64(x->id[0]), __builtin_bswap64(x->id[1]), __builtin_bswap64(x->id[2])};
    size_t r = pb_begin(b, OTLP_SCOPE_LOGS_RECORDS);
    pb_put_fixed64(b, OTLP_RECORD_TIME, x->ns);
    pb_put_uint(b, OTLP_RECORD_SEVERITY_NUMBER, x->number);
    pb_put_bytes(b, OTLP_RECORD_SEVERITY_TEXT, x->severity, strlen(x->severity));
    string_value(b, OTLP_RECORD_BODY, x->body);
    pb_put_bytes(b, OTLP_RECORD_TRACE_ID, id, 16);
    pb_put_bytes(b, OTLP_RECORD_SPAN_ID, id + 2, 8);
    pb_put_fixed64(b, OTLP_RECORD_OBSERVED_TIME, x->ns);
    pb_end(b, r);
}

/* One resource a request, as an SDK's exporter sends it. */
static void put_otlp(fz_buf *out, uint32_t first, uint32_t n, uint64_t *json) {
    fz_buf b = {0};
    size_t rl = pb_begin(&b, OTLP_REQUEST_RESOURCE_LOGS), r = pb_begin(&b, OTLP_RESOURCE_LOGS_RESOURCE), at = pb_begin(&b, OTLP_RESOURCE_ATTRIBUTES);
    pb_put_bytes(&b, OTLP_KEY, "service.name", 12);
    string_value(&b, OTLP_VALUE, make_record(first).service);
    pb_end(&b, at);
    pb_end(&b, r);
    size_t sl = pb_begin(&b, OTLP_RESOURCE_LOGS_SCOPE_LOGS);
    for (uint32_t i = 0; i < n; i++) {
        record x = make_record(first + i);
        put_log_record(&b, &x);
        *json += json_size(&x);
    }
    pb_end(&b, sl);
    pb_end(&b, rl);
    fz_buf_printf(out, "POST /v1/logs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf\r\nContent-Length: %zu\r\n\r\n", b.len);
    fz_buf_append(out, b.data, b.len);
    fz_buf_free(&b);
}

/* ---- sending ---- */

static void watch(conn *c, bool writing) {
    struct epoll_event e = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c};
    if (c->writing == writing) return;
    c->writing = writing;
    must(epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e) == 0, "epoll_ctl");
}

static void dial(conn *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(c->fd >= 0 && connect(c->fd, (const struct sockaddr *)&to, sizeof to) == 0, "connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->waiting = fz_calloc(o.window, sizeof *c->waiting);
    c->out = UINT32_MAX;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e) == 0, "epoll_ctl");
}

/* Is a message due? */
static bool due(int64_t began) {
    if (next_msg == n_msgs) return false;
    return o.rate <= 0 || (double)(fz_mono_ns() - began) * 1e-9 * o.rate >= (double)next_msg * o.chunk;
}

static void push(conn *c, int64_t began) {
    for (;;) {
        if (c->out == UINT32_MAX) {
            if (c->n_waiting == o.window || !due(began)) break;
            c->out = next_msg++;
            c->done = 0;
        }
        message *m = &msgs[c->out];
        size_t end = c->held ? m->n - 1 : m->n;
        if (c->done == end) break;
        ssize_t k = send(c->fd, m->p + c->done, end - c->done, MSG_NOSIGNAL);
        if (k < 0 && errno == EAGAIN) {
            watch(c, true);
            return;
        }
        must(k > 0, "send");
        c->done += (size_t)k;
        if (c->done < m->n) continue;
        m->sent_ns = fz_mono_ns();
        c->waiting[(c->head + c->n_waiting++) % o.window] = c->out;
        c->out = UINT32_MAX;
    }
    watch(c, false);
}

/* Length of the answer at p; 0: it is not whole. */
static size_t answer_len(const uint8_t *p, size_t n) {
    if (o.kind != LOAD_OTLP) return n >= 30 ? 30 : 0; /* 81 a3 "ack" b8 and 24 bytes */
    const char *end = memmem(p, n, "\r\n\r\n", 4), *len = memmem(p, n, "Content-Length: ", 16);
    if (!end) return 0;
    must(n > 12 && memcmp(p, "HTTP/1.1 200", 12) == 0 && len, "an answer that is not 200");
    size_t all = (size_t)(end + 4 - (const char *)p) + strtoul(len + 16, NULL, 10);
    return n >= all ? all : 0;
}

static void pull(conn *c) {
    ssize_t k = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, 0);
    if (k < 0 && errno == EAGAIN) return;
    must(k > 0, "the connection has ended");
    c->n_in += (size_t)k;
    size_t at = 0, n;
    int64_t now = fz_mono_ns();
    while ((n = answer_len(c->in + at, c->n_in - at))) {
        must(c->n_waiting > 0, "an answer that was not asked for");
        uint32_t m = c->waiting[c->head];
        c->head = (c->head + 1) % o.window;
        c->n_waiting--;
        took_ms[answered++] = (double)(now - msgs[m].sent_ns) / 1e6;
        at += n;
    }
    memmove(c->in, c->in + at, c->n_in - at);
    c->n_in -= at;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Every connection has sent its first message but for the last byte? Some may not be read from before others are done: they are not waited for for ever. */
static void let_go(int64_t until) {
    for (uint32_t i = 0; i < o.conns && fz_mono_ns() < until; i++)
        if (conns[i].out != UINT32_MAX && conns[i].done + 1 < msgs[conns[i].out].n) return;
    for (uint32_t i = 0; i < o.conns; i++) conns[i].held = false;
    o.together = false;
}

static void run(void) {
    struct epoll_event ev[64];
    int64_t began = fz_mono_ns(), until = began + 5000000000ll;
    while (answered < n_msgs) {
        bool was = o.together;
        if (o.together) let_go(until);
        if (o.rate > 0 || was)
            for (uint32_t i = 0; i < o.conns; i++) push(&conns[i], began);
        int n = epoll_wait(ep, ev, 64, o.rate > 0 ? 1 : 100);
        for (int i = 0; i < n; i++) {
            conn *c = ev[i].data.ptr;
            if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) pull(c);
            push(c, began);
        }
    }
}

static void options(int argc, char **argv) {
    static const char *const kinds[] = {"forward", "forward-gzip", "otlp"};
    int k = 0;
    while (k < 3 && argc > 2 && strcmp(argv[1], kinds[k]) != 0) k++;
    must(argc > 2 && k < 3, "usage: load forward|forward-gzip|otlp PORT ...");
    o.kind = (load_kind)k;
    o.port = atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--together") == 0) {
            o.together = true;
            continue;
        }
        if (strcmp(argv[i], "--records") == 0) o.records = (uint32_t)atoi(v);
        else if (strcmp(argv[i], "--chunk") == 0) o.chunk = (uint32_t)atoi(v);
        else if (strcmp(argv[i], "--connections") == 0) o.conns = (uint32_t)atoi(v);
        else if (strcmp(argv[i], "--window") == 0) o.window = (uint32_t)atoi(v);
        else if (strcmp(argv[i], "--rate") == 0) o.rate = atof(v);
        else must(false, argv[i]);
        i++;
    }
    if (o.kind == LOAD_OTLP) o.window = 1;
    must(o.records && o.chunk && o.conns && o.window, "a number is missing");
}

int main(int argc, char **argv) {
    uint64_t json = 0, sent = 0;
    options(argc, argv);
    n_msgs = (o.records + o.chunk - 1) / o.chunk;
    msgs = fz_calloc(n_msgs, sizeof *msgs);
    took_ms = fz_calloc(n_msgs, sizeof *took_ms);
    for (uint32_t i = 0; i < n_msgs; i++) {
        uint32_t left = o.records - i * o.chunk;
        fz_buf b = {0};
        if (left > o.chunk) left = o.chunk;
        if (o.kind == LOAD_OTLP) put_otlp(&b, i * o.chunk, left, &json);
        else put_forward(&b, i, i * o.chunk, left, &json);
        msgs[i] = (message){.p = b.data, .n = b.len};
        sent += b.len;
    }
    ep = epoll_create1(EPOLL_CLOEXEC);
    conns = fz_calloc(o.conns, sizeof *conns);
    double cpu = cpu_s();
    int64_t wall = fz_mono_ns();
    for (uint32_t i = 0; i < o.conns; i++) {
        dial(&conns[i]);
        conns[i].held = o.together;
    }
    for (uint32_t i = 0; i < o.conns; i++) push(&conns[i], wall);
    run();
    wall = fz_mono_ns() - wall;
    cpu = cpu_s() - cpu;
    qsort(took_ms, n_msgs, sizeof *took_ms, ascending);
    printf("{\"records\": %u, \"json_bytes\": %llu, \"sent_bytes\": %llu, \"wall_s\": %.3f, \"cpu_s\": %.3f, \"p50_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.2f}\n", o.records, (unsigned long long)json, (unsigned long long)sent,
           (double)wall / 1e9, cpu, took_ms[n_msgs / 2], took_ms[(size_t)n_msgs * 99 / 100], took_ms[n_msgs - 1]);
    return 0;
}
