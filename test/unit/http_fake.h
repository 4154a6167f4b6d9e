/* An HTTP server inside a test: it answers what the test scripted and records what came, byte for byte.
 *
 *   http_fake *f = http_fake_start((http_reply[]){{.status = 200, .body = "x"}, {.close_before = true}}, 2);
 *   ... http_fake_url(f) is "http://127.0.0.1:PORT" ...
 *   assert_int_equal(http_fake_count(f), 2);  http_fake_seen(f, 0)->head starts with "GET / HTTP/1.1\r\n"
 *   http_fake_stop(f);
 *
 * Request i gets reply i; after the last one the last repeats. http_fake_handle sets a function that answers instead (it runs under the server's lock, one
 * at a time). Each connection has a thread of its own and is kept alive until a reply closes it.
 */
#ifndef HTTP_FAKE_H
#define HTTP_FAKE_H
#include "base/base.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct http_reply {
    int status;            /* 0: 200 */
    const char *headers;   /* "A: b\r\nC: d\r\n", NULL: none; Content-Length is added unless `raw` or no_length */
    const char *body;
    size_t n_body;         /* 0: strlen(body) */
    const char *raw;       /* these bytes instead of all of the above */
    int delay_ms;          /* before the answer */
    bool cut;              /* only cut_at bytes of the body, then the connection is closed */
    size_t cut_at;
    bool early;            /* answers before the request's body has been read, and reads none of it */
    bool close_before;     /* reads the request (acts on it), then closes without an answer */
    bool reset;            /* ... with a reset (RST) instead of an orderly end */
    bool close_after;      /* closes after the answer, without having said so */
    bool no_length;        /* no Content-Length */
} http_reply;

typedef struct http_seen {
    char *head;            /* request line and headers, as they came, ends with "\r\n\r\n" and NUL */
    char *body;
    size_t n_body;
    int connection;        /* 0 for the first connection that was accepted, ... */
    char method[16];
    char *target;          /* as on the wire */
} http_seen;

typedef struct http_fake {
    int fd, port, n_connections, live[256];
    http_reply *replies;
    size_t n_replies, n_seen, cap_seen;
    http_seen *seen;
    void (*handle)(void *cx, const http_seen *rq, size_t index, http_reply *out);
    void *cx;
    pthread_t thread, workers[256];
    pthread_mutex_t lock;
    bool stop;
    char url[64];
} http_fake;

typedef struct http_fake_conn { http_fake *f; int fd, number; } http_fake_conn;

static inline bool http_fake_send(int fd, const void *p, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);
        if (got <= 0) return false;
        at += (size_t)got;
    }
    return true;
}

/* Value of a request's header, into out; false: not there. */
static inline bool http_fake_header(const http_seen *s, const char *name, char *out, size_t cap) {
    size_t n = strlen(name);
    for (const char *l = strstr(s->head, "\r\n"); l && l[2] && strncmp(l, "\r\n\r\n", 4); l = strstr(l + 2, "\r\n")) {
        if (strncasecmp(l + 2, name, n) || l[2 + n] != ':') continue;
        const char *v = l + 3 + n;
        while (*v == ' ') v++;
        snprintf(out, cap, "%.*s", (int)strcspn(v, "\r"), v);
        return true;
    }
    return false;
}

static inline bool http_fake_answer(int fd, const http_seen *s, const http_reply *r) {
    if (r->delay_ms) usleep((useconds_t)r->delay_ms * 1000);
    if (r->reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    if (r->close_before || r->reset) return false;
    if (r->raw) return http_fake_send(fd, r->raw, strlen(r->raw)) && !r->close_after;
    size_t n = r->n_body ? r->n_body : r->body ? strlen(r->body) : 0;
    fz_buf b = {0};
    int status = r->status ? r->status : 200;
    fz_buf_printf(&b, "HTTP/1.1 %d Text\r\n%s", status, r->headers ? r->headers : "");
    if (!r->no_length && status != 204) fz_buf_printf(&b, "Content-Length: %zu\r\n", n);
    fz_buf_puts(&b, "\r\n");
    if (strcmp(s->method, "HEAD")) fz_buf_append(&b, r->body, r->cut ? r->cut_at : n);
    bool ok = http_fake_send(fd, b.data, b.len);
    fz_buf_free(&b);
    return ok && !r->cut && !r->close_after && !r->early;
}

/* Reads one request's head; *in keeps what came after it. */
static inline bool http_fake_read_head(int fd, fz_buf *in, http_seen *s) {
    char *end;
    for (;;) {
        fz_buf_cstr(in);
        if (in->len && (end = strstr((char *)in->data, "\r\n\r\n"))) break;
        fz_buf_reserve(in, 65536);
        ssize_t got = recv(fd, in->data + in->len, 65536, 0);
        if (got <= 0) return false;
        in->len += (size_t)got;
    }
    size_t n = (size_t)(end + 4 - (char *)in->data);
    s->head = fz_strndup((char *)in->data, n);
    memmove(in->data, in->data + n, in->len - n);
    in->len -= n;
    size_t m = strcspn(s->head, " "), t = strcspn(s->head + m + 1, " ");
    snprintf(s->method, sizeof s->method, "%.*s", (int)m, s->head);
    s->target = fz_strndup(s->head + m + 1, t);
    return true;
}

static inline void http_fake_read_body(int fd, fz_buf *in, http_seen *s) {
    char v[32];
    size_t want = http_fake_header(s, "content-length", v, sizeof v) ? strtoull(v, NULL, 10) : 0;
    if (http_fake_header(s, "expect", v, sizeof v)) http_fake_send(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    while (in->len < want) {
        fz_buf_reserve(in, 65536);
        ssize_t got = recv(fd, in->data + in->len, 65536, 0);
        if (got <= 0) break;
        in->len += (size_t)got;
    }
    s->n_body = in->len < want ? in->len : want;
    s->body = fz_strndup(in->len ? (char *)in->data : "", s->n_body);
    if (s->n_body) memmove(in->data, in->data + s->n_body, in->len - s->n_body);
    in->len -= s->n_body;
}

static inline void http_fake_choose(http_fake *f, const http_seen *s, http_reply *r, bool record) {
    pthread_mutex_lock(&f->lock);
    size_t i = f->n_seen;
    *r = (http_reply){0};
    if (f->n_replies) *r = f->replies[i < f->n_replies ? i : f->n_replies - 1];
    if (record) {
        FZ_GROW(f->seen, f->n_seen, f->cap_seen);
        f->seen[f->n_seen++] = *s;
        if (f->handle) f->handle(f->cx, s, i, r);
    }
    pthread_mutex_unlock(&f->lock);
}

static inline void *http_fake_serve(void *cx) {
    http_fake_conn *c = cx;
    http_fake *f = c->f;
    fz_buf in = {0};
    for (bool on = true; on;) {
        http_seen s = {.connection = c->number};
        if (!http_fake_read_head(c->fd, &in, &s)) break;
        http_reply r;
        http_fake_choose(f, &s, &r, false);
        if (r.early) s.body = fz_strdup("");
        else http_fake_read_body(c->fd, &in, &s);
        http_fake_choose(f, &s, &r, true);
        on = http_fake_answer(c->fd, &s, &r);
    }
    fz_buf_free(&in);
    pthread_mutex_lock(&f->lock);
    f->live[c->number] = -1;
    close(c->fd);
    pthread_mutex_unlock(&f->lock);
    fz_free(c);
    return NULL;
}

static inline void *http_fake_accept(void *cx) {
    http_fake *f = cx;
    for (;;) {
        int fd = accept(f->fd, NULL, NULL);
        pthread_mutex_lock(&f->lock);
        bool stop = f->stop || f->n_connections == 256;
        if (fd >= 0 && !stop) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            http_fake_conn *c = FZ_NEW(http_fake_conn);
            *c = (http_fake_conn){f, fd, f->n_connections};
            f->live[f->n_connections] = fd;
            pthread_create(&f->workers[f->n_connections++], NULL, http_fake_serve, c);
        } else if (fd >= 0) close(fd);
        pthread_mutex_unlock(&f->lock);
        if (stop) return NULL;
    }
}

static inline http_fake *http_fake_start(const http_reply *replies, size_t n) {
    http_fake *f = FZ_NEW(http_fake);
    pthread_mutex_init(&f->lock, NULL);
    f->replies = fz_calloc(n + 1, sizeof *replies);
    if (n) memcpy(f->replies, replies, n * sizeof *replies);
    f->n_replies = n;
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    if (bind(f->fd, (struct sockaddr *)&a, sizeof a) || listen(f->fd, 64) || getsockname(f->fd, (struct sockaddr *)&a, &len)) abort();
    f->port = ntohs(a.sin_port);
    snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d", f->port);
    pthread_create(&f->thread, NULL, http_fake_accept, f);
    return f;
}
static inline void http_fake_handle(http_fake *f, void (*handle)(void *, const http_seen *, size_t, http_reply *), void *cx) {
    pthread_mutex_lock(&f->lock);
    f->handle = handle;
    f->cx = cx;
    pthread_mutex_unlock(&f->lock);
}
static inline const char *http_fake_url(const http_fake *f) { return f->url; }
static inline size_t http_fake_count(http_fake *f) {
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_seen;
    pthread_mutex_unlock(&f->lock);
    return n;
}
/* Valid until the next request comes. */
static inline const http_seen *http_fake_seen(http_fake *f, size_t i) {
    pthread_mutex_lock(&f->lock);
    const http_seen *s = i < f->n_seen ? &f->seen[i] : NULL;
    pthread_mutex_unlock(&f->lock);
    if (!s) abort();
    return s;
}
static inline void http_fake_stop(http_fake *f) {
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    shutdown(f->fd, SHUT_RDWR);
    for (int i = 0; i < f->n_connections; i++)
        if (f->live[i] >= 0) shutdown(f->live[i], SHUT_RDWR);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    close(f->fd);
    for (int i = 0; i < f->n_connections; i++) pthread_join(f->workers[i], NULL);
    for (size_t i = 0; i < f->n_seen; i++) {
        fz_free(f->seen[i].head);
        fz_free(f->seen[i].body);
        fz_free(f->seen[i].target);
    }
    fz_free(f->seen);
    fz_free(f->replies);
    pthread_mutex_destroy(&f->lock);
    fz_free(f);
}
#endif
