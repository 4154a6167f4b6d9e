/* HTTP requests a CPU-second of the server.
 *
 *   bench_http PORT PID CONNECTIONS DOCUMENTS SECONDS [gzip]   posts NDJSON to a running `frazil run`, whose CPU time is read from /proc/PID/stat
 *   bench_http self CONNECTIONS BYTES SECONDS                  the server of src/net alone, in this process: each request is answered at once
 *
 * Prints requests, documents, the server's CPU seconds, both per CPU-second, and the 50th and 99th percentile of the time to the answer.
 */
#include "net/server.h"
#include <arpa/inet.h>
#include <libdeflate.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct peer { int fd; int64_t sent_ns; char in[1024]; size_t n; } peer;
static fz_buf request;
static uint32_t *micros;
static size_t n_micros, cap_micros;

static int dial(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}
static void post(peer *p) {
    for (size_t at = 0; at < request.len;) {
        ssize_t k = send(p->fd, request.data + at, request.len - at, MSG_NOSIGNAL);
        if (k <= 0) {
            perror("send");
            exit(1);
        }
        at += (size_t)k;
    }
    p->sent_ns = fz_mono_ns();
    p->n = 0;
}
/* Has the answer come? It fits into one buffer. */
static bool answered(peer *p) {
    ssize_t k = recv(p->fd, p->in + p->n, sizeof p->in - 1 - p->n, 0);
    if (k <= 0) {
        fprintf(stderr, "the server has closed\n");
        exit(1);
    }
    p->n += (size_t)k;
    p->in[p->n] = 0;
    const char *body = strstr(p->in, "\r\n\r\n"), *length = strcasestr(p->in, "content-length: ");
    if (!body || !length || p->n < (size_t)(body + 4 - p->in) + strtoul(length + 16, NULL, 10)) return false;
    if (strncmp(p->in, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "%s\n", p->in);
        exit(1);
    }
    return true;
}

static int by_size(const void *a, const void *b) { return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b); }

static double cpu_of(int pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    unsigned long u = 0, s = 0;
    sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &u, &s);
    return (double)(u + s) / (double)sysconf(_SC_CLK_TCK);
}

static size_t load(int port, int connections, int seconds) {
    peer *p = fz_calloc((size_t)connections, sizeof *p);
    struct pollfd *w = fz_calloc((size_t)connections, sizeof *w);
    for (int i = 0; i < connections; i++) {
        p[i].fd = dial(port);
        w[i] = (struct pollfd){.fd = p[i].fd, .events = POLLIN};
        post(&p[i]);
    }
    int64_t end = fz_mono_ns() + seconds * 1000000000ll;
    for (int waiting = connections; waiting;) {
        poll(w, (nfds_t)connections, -1);
        int64_t now = fz_mono_ns();
        for (int i = 0; i < connections; i++) {
            if (!w[i].revents || !answered(&p[i])) continue;
            FZ_GROW(micros, n_micros, cap_micros);
            micros[n_micros++] = (uint32_t)((fz_mono_ns() - p[i].sent_ns) / 1000);
            if (now < end) post(&p[i]);
            else {
                w[i].fd = -1;
                waiting--;
            }
        }
    }
    for (int i = 0; i < connections; i++) close(p[i].fd);
    fz_free(p);
    fz_free(w);
    return n_micros;
}

static void report(size_t requests, size_t documents, double cpu) {
    qsort(micros, n_micros, sizeof *micros, by_size);
    printf("requests=%zu documents=%zu server_cpu_s=%.2f requests_per_cpu_s=%.0f documents_per_cpu_s=%.0f p50_us=%u p99_us=%u\n", requests, documents, cpu, (double)requests / cpu, (double)documents / cpu,
           micros[n_micros / 2], micros[n_micros * 99 / 100]);
}

static pthread_t server_thread;
static void note_thread(void *cx) {
    (void)cx;
    server_thread = pthread_self();
}
static void at_once(void *cx, net_http_request *r) {
    (void)cx;
    net_http_answer(r, 200, NULL, 0, "ok\n", 3);
}

static int self(int connections, size_t bytes, int seconds) {
    net_loop *loop;
    net_listener *l;
    fz_error err;
    if (net_loop_new("bench", &loop, &err) != FZ_OK || net_listen_http(loop, &(net_listen_options){.address = "127.0.0.1:0", .max_connections = 100000}, at_once, NULL, &l, &err) != FZ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    net_loop_call(loop, note_thread, NULL);
    char *body = fz_calloc(1, bytes + 1);
    fz_buf_printf(&request, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", bytes);
    fz_buf_append(&request, body, bytes);
    size_t n = load(atoi(strrchr(net_listener_address(l), ':') + 1), connections, seconds);
    clockid_t clock;
    struct timespec t;
    pthread_getcpuclockid(server_thread, &clock);
    clock_gettime(clock, &t);
    report(n, n, (double)t.tv_sec + (double)t.tv_nsec / 1e9);
    net_loop_free(loop);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "self") == 0) return self(atoi(argv[2]), strtoul(argv[3], NULL, 10), atoi(argv[4]));
    if (argc < 6) {
        fprintf(stderr, "usage: bench_http PORT PID CONNECTIONS DOCUMENTS SECONDS [gzip] | self CONNECTIONS BYTES SECONDS\n");
        return 1;
    }
    int documents = atoi(argv[4]);
    fz_buf body = {0};
    for (int i = 0; i < documents; i++)
        fz_buf_printf(&body, "{\"time\":\"2026-01-02T03:04:05.%06dZ\",\"severityText\":\"INFO\",\"severityNumber\":9,\"body\":\"user %d bought %d things in %d ms\",\"resource\":{\"service.name\":\"shop-%d\",\"host\":\"h%d\"},\"traceId\":\"%032x\"}\n", i,
                      i * 7919 % 10007, i % 9, i * 31 % 2003, i % 5, i % 17, i * 2654435761u);
    bool gz = argc > 6 && strcmp(argv[6], "gzip") == 0;
    if (gz) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
        fz_buf packed = {0};
        fz_buf_reserve(&packed, body.len + 1000);
        packed.len = libdeflate_gzip_compress(c, body.data, body.len, packed.data, packed.cap);
        fz_buf_free(&body);
        body = packed;
        libdeflate_free_compressor(c);
    }
    fz_buf_printf(&request, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n%sContent-Length: %zu\r\n\r\n", gz ? "Content-Encoding: gzip\r\n" : "", body.len);
    fz_buf_append(&request, body.data, body.len);
    int pid = atoi(argv[2]);
    double before = cpu_of(pid);
    size_t n = load(atoi(argv[1]), atoi(argv[3]), atoi(argv[5]));
    report(n, n * (size_t)documents, cpu_of(pid) - before);
    return 0;
}
