/* The floor of the benchmark of the listening inputs: the least that any program of this kind must do with the same messages. Reads them from the socket, walks them to their last record, deflates their bytes with
 * ISA-L in blocks of 64 KiB, writes that to a file, and answers. Nothing is durable, nothing is decoded, nothing is routed.
 *
 *   floor_inputs FILE   listens on a port that it prints; ends when the last connection is closed, and prints: records, bytes, written, cpu_s, vmhwm_kb
 */
#include "base/base.h"
#include "base/mp.h"
#include "base/otlp.h"
#include "base/protobuf.h"
#include <arpa/inet.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, SCRATCH = 256 << 10 };
typedef struct conn { int fd; fz_buf in; mp_scan scan; } conn;

static FILE *out;
static unsigned long long records, bytes, written;
static fz_buf packed, unpacked;

static void must(bool ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static void pack(const uint8_t *p, size_t n) {
    static uint8_t level[ISAL_DEF_LVL1_DEFAULT];
    for (size_t at = 0, k; at < n; at += k) {
        struct isal_zstream s;
        k = n - at < BLOCK ? n - at : BLOCK;
        packed.len = 0;
        fz_buf_reserve(&packed, 2 * BLOCK);
        isal_deflate_stateless_init(&s);
        s.level = 1;
        s.level_buf = level;
        s.level_buf_size = sizeof level;
        s.flush = FULL_FLUSH;
        s.next_in = (uint8_t *)(uintptr_t)p + at;
        s.avail_in = (uint32_t)k;
        s.next_out = packed.data;
        s.avail_out = 2 * BLOCK;
        must(isal_deflate_stateless(&s) == COMP_OK, "deflate");
        must(fwrite(packed.data, 1, s.total_out, out) == s.total_out, "write");
        written += s.total_out;
    }
    bytes += n;
}

static void answer(conn *c, const void *p, size_t n) { must(send(c->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n, "send"); }

/* ---- forward, packed mode ---- */

static void unpack(const mp_item *v) {
    struct inflate_state s;
    unpacked.len = 0;
    fz_buf_reserve(&unpacked, 4 << 20);
    isal_inflate_init(&s);
    s.crc_flag = ISAL_GZIP;
    s.next_in = (uint8_t *)(uintptr_t)v->p;
    s.avail_in = v->n;
    s.next_out = unpacked.data;
    s.avail_out = (uint32_t)unpacked.cap;
    must(isal_inflate(&s) == ISAL_DECOMP_OK, "inflate");
    unpacked.len = s.total_out;
}

static void forward_message(conn *c, const uint8_t *p, size_t n) {
    const uint8_t *end = p + n;
    mp_item a, tag, events, map, k, v;
    bool zip = false;
    uint8_t ack[64] = {0x81, 0xa3, 'a', 'c', 'k', 0xb8};
    must(mp_read(&p, end, &a) == MP_OK && mp_read(&p, end, &tag) == MP_OK && mp_read(&p, end, &events) == MP_OK && mp_read(&p, end, &map) == MP_OK && map.type == MP_MAP, "a message");
    for (uint32_t i = 0; i < map.n; i++) {
        must(mp_read(&p, end, &k) == MP_OK && mp_read(&p, end, &v) == MP_OK, "the option");
        if (k.n == 5 && v.n == 24) memcpy(ack + 6, v.p, 24);
        zip |= k.n == 10;
    }
    if (zip) unpack(&events);
    const uint8_t *q = zip ? unpacked.data : events.p, *from = q, *last = q + (zip ? unpacked.len : events.n);
    for (; q < last; records++) must(mp_skip(&q, last) == MP_OK, "an event");
    pack(from, (size_t)(last - from));
    answer(c, ack, 30);
}

/* ---- OTLP/HTTP ---- */

static void walk(const uint8_t *p, const uint8_t *end, int depth) {
    static const uint32_t way[] = {OTLP_REQUEST_RESOURCE_LOGS, OTLP_RESOURCE_LOGS_SCOPE_LOGS, OTLP_SCOPE_LOGS_RECORDS};
    pb_field f;
    pb_result r;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (depth == 3) continue;
        if (f.number == way[depth] && f.wire == PB_BYTES) walk(f.p, f.p + f.n, depth + 1);
    }
    must(r == PB_END, "a request");
    records += depth == 3;
}

/* Bytes of the request at p, 0: it is not whole. */
static size_t request(conn *c, const uint8_t *p, size_t n) {
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    const uint8_t *body = memmem(p, n < 4096 ? n : 4096, "\r\n\r\n", 4);
    if (!body) return 0;
    const char *len = memmem(p, (size_t)(body - p), "Content-Length: ", 16);
    must(len != NULL, "a length");
    size_t k = strtoul(len + 16, NULL, 10), head = (size_t)(body + 4 - p);
    if (n < head + k) return 0;
    walk(p + head, p + head + k, 0);
    pack(p + head, k);
    answer(c, ok, sizeof ok - 1);
    return head + k;
}

/* ---- the loop ---- */

static size_t message(conn *c, const uint8_t *p, size_t n) {
    if (p[0] == 'P') return request(c, p, n);
    if (mp_scan_more(&c->scan, p, n, 64 << 20) != MP_OK) return 0;
    size_t k = c->scan.at;
    c->scan = (mp_scan){0};
    forward_message(c, p, k);
    return k;
}

/* false: the peer has closed. */
static bool pull(conn *c) {
    fz_buf_reserve(&c->in, SCRATCH);
    ssize_t k = recv(c->fd, c->in.data + c->in.len, SCRATCH, 0);
    if (k <= 0) return false;
    c->in.len += (size_t)k;
    size_t at = 0;
    for (size_t m; at < c->in.len && (m = message(c, c->in.data + at, c->in.len - at));) at += m;
    if (at) memmove(c->in.data, c->in.data + at, c->in.len - at);
    c->in.len -= at;
    return true;
}

int main(int argc, char **argv) {
    must(argc == 2 && (out = fopen(argv[1], "w")), "usage: floor_inputs FILE");
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    conn listener = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    must(bind(listener.fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener.fd, 1024) == 0 && getsockname(listener.fd, (struct sockaddr *)&a, &n) == 0, "listen");
    printf("%u\n", ntohs(a.sin_port));
    fflush(stdout);
    int ep = epoll_create1(0), open_ = 0;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = &listener}, ev[64];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener.fd, &e);
    for (bool any = false; !any || open_;) {
        int k = epoll_wait(ep, ev, 64, -1);
        for (int i = 0; i < k; i++) {
            conn *c = ev[i].data.ptr;
            if (c == &listener) {
                c = FZ_NEW(conn);
                c->fd = accept(listener.fd, NULL, NULL);
                e.data.ptr = c;
                epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
                open_++;
                any = true;
            } else if (!pull(c)) {
                close(c->fd);
                fz_buf_free(&c->in);
                fz_free(c);
                open_--;
            }
        }
    }
    must(fclose(out) == 0, "close");
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("{\"records\": %llu, \"bytes\": %llu, \"written\": %llu, \"cpu_s\": %.3f, \"vmhwm_kb\": %ld}\n", records, bytes, written,
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6, u.ru_maxrss);
    return 0;
}
