/* A client in a test: bytes out as scripted, bytes in until they are what is waited for. Plain sockets and TLS. */
#ifndef SERVER_CLIENT_H
#define SERVER_CLIENT_H
#include "net/server.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct client { int fd; SSL *ssl; char *got; size_t n, cap; } client;

static inline struct sockaddr_in client_address(const net_listener *l) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strrchr(net_listener_address(l), ':') + 1));
    return a;
}

static inline client client_open(const net_listener *l) {
    struct sockaddr_in a = client_address(l);
    client c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    return c;
}

static inline void client_close(client *c) {
    if (c->ssl) SSL_free(c->ssl);
    close(c->fd);
    fz_free(c->got);
    *c = (client){.fd = -1};
}

/* false: the server has closed. */
static inline bool client_send_n(client *c, const void *p, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t k = c->ssl ? SSL_write(c->ssl, (const char *)p + at, (int)(n - at)) : send(c->fd, (const char *)p + at, n - at, MSG_NOSIGNAL);
        if (k <= 0) return false;
        at += (size_t)k;
    }
    return true;
}
static inline bool client_send(client *c, const char *text) { return client_send_n(c, text, strlen(text)); }

/* Reads once, waiting up to ms. 1: bytes came; 0: closed; -1: nothing in time. */
static inline int client_read(client *c, int ms) {
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    if (!(c->ssl && SSL_pending(c->ssl)) && poll(&p, 1, ms) <= 0) return -1;
    FZ_GROW(c->got, c->n + 65536, c->cap);
    ssize_t k = c->ssl ? SSL_read(c->ssl, c->got + c->n, 65535) : recv(c->fd, c->got + c->n, 65535, 0);
    if (k <= 0) return 0;
    c->n += (size_t)k;
    c->got[c->n] = 0;
    return 1;
}

/* Reads until `text` is among what came; fails the test when the server closes before, or after 30 s. */
static inline void client_expect(client *c, const char *text) {
    int64_t end = fz_mono_ns() + 30000000000ll;
    size_t from = 0, k = strlen(text);
    while (!c->n || !memmem(c->got + from, c->n - from, text, k)) {
        from = c->n >= k ? c->n - k + 1 : 0;
        int rc = client_read(c, 10000);
        if (rc != 1 || fz_mono_ns() > end) {
            print_error("wanted \"%s\", have \"%.*s\" (%s)\n", text, c->n > 300 ? 300 : (int)c->n, c->n ? c->got : "", rc == 0 ? "closed" : "time over");
            fail();
        }
    }
}
static inline void client_expect_closed(client *c) {
    int rc;
    while ((rc = client_read(c, 10000)) == 1) {}
    assert_int_equal(rc, 0);
}
static inline void client_forget(client *c) {
    c->n = 0;
    if (c->got) c->got[0] = 0;
}
static inline int client_times(const client *c, const char *text) {
    int n = 0;
    for (const char *p = c->n ? c->got : ""; (p = strstr(p, text)); p++) n++;
    return n;
}

/* Waits until cond is true, at most 10 s. */
#define WAIT_FOR(cond)                                                                    \
    do {                                                                                  \
        int64_t end_ = fz_mono_ns() + 10000000000ll;                                      \
        while (!(cond) && fz_mono_ns() < end_) usleep(2000);                              \
        assert_true(cond);                                                                \
    } while (0)
#endif
