/* Inside the servers of this room: what a loop, a listener and a connection are made of.
 *
 *   server_loop.c     the loop's thread, calls from other threads, timers
 *   server_address.c  texts of addresses, sockets that are bound
 *   server_listen.c   listeners: options, accepting, limits on connections, the sweep that finds what is over its time
 *   server_conn.c     one connection: bytes in, bytes out, pauses, its end
 *   server_tls.c      contexts and handshakes
 *   server_udp.c      datagrams
 *   server_http.c     requests and answers; http_head.c reads heads, http_chunks.c chunked bodies
 *
 * Invariants
 *  1. A connection is changed by its loop's thread only; it is freed only by conn_pump and by the end of its loop, never below a protocol's function.
 *  2. listener.buffered is the sum of conn.counted over its connections; conn_account keeps it so.
 *  3. While buffered is over its limit one connection reads on (the `favoured` one), so that half messages that fill the memory cannot wait for one another for ever. The others
 *     read on up to a sip: who sends small messages does not wait for who holds large ones, and a sip for each connection is all that the limit is exceeded by.
 */
#ifndef NET_SERVER_INT_H
#define NET_SERVER_INT_H
#include "net/server.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum {
    NET_SPARE = 4,                /* buffers that a loop keeps, of NET_LEAST_SPARE to NET_MOST_SPARE bytes */
    NET_LEAST_SPARE = 32 << 10,
    NET_MOST_SPARE = 1 << 20,
    NET_SCRATCH = 64 << 10,       /* what one read takes at most */
    NET_READS_PER_TURN = 4,       /* then the others have their turn */
    NET_OUT_HIGH = 256 << 10,     /* a peer that leaves so much unread is not read from */
    NET_LINGER_MS = 2000,         /* after the last answer, for the peer to read it */
    NET_LINGER_BYTES = 64 << 20,  /* that are thrown away meanwhile */
    NET_FAREWELL_MS = 500,        /* for connections when the loop is freed */
    NET_FAREWELL_STEP_MS = 5,
    NET_GRACE_MS = 500,           /* for the favoured connection to end its message, or to get on by so many bytes: */
    NET_GRACE_BYTES = 16 << 10,
    NET_SIP = 4 << 10,            /* what a connection may hold while memory is full: messages that are no larger go on */
    NET_REFUSING = 64,            /* connections above the limit that are being answered 503 */
    NET_ADDRESS = 64
};

typedef struct net_call { struct net_call *next; void (*fn)(void *cx); void *cx; } net_call;

struct net_loop {
    struct event_base *base;
    pthread_t thread;
    char name[16];
    int wake_fd;
    struct event *wake, *again;
    pthread_mutex_t lock;
    net_call *calls, **calls_end; /* under lock */
    int64_t stop_ms;              /* loop: when connections that are left are dropped */
    net_listener *listeners;      /* loop */
    net_conn *again_first, *again_last; /* loop: connections that have something to do */
    struct net_later *laters;     /* loop: timers that have not run */
    uint8_t *scratch;
    fz_buf spare[NET_SPARE];      /* loop: what connections have let go of, for the next message that comes in pieces */
    uint32_t n_spare;
};

typedef struct net_tls_files net_tls_files; /* where a context came from */
typedef enum { NET_STREAM, NET_DATAGRAMS, NET_HTTP } net_kind;

struct net_listener {
    net_loop *loop;
    net_listener *next;
    net_kind kind;
    int fd;
    struct event *ev, *sweep, *retry;
    net_listen_options o; /* with its defaults filled in; the strings are not kept */
    net_proto proto;
    void *cx;
    SSL_CTX *ssl;
    net_tls_files *tls_files;
    char address[NET_ADDRESS];
    net_conn *conns;
    net_conn *favoured;
    int64_t favoured_ms;  /* since when, or since it last got on */
    size_t favoured_got;  /* bytes that it has read since then */
    uint32_t n_refusing;
    bool starving, stopped;
    fz_log_limit log_limit;
    net_datagram_fn datagram;
    uint32_t kernel_drops;
    const struct sockaddr_storage *from; /* of the datagram that is being handed out */
    socklen_t from_len;
    net_http_fn http;
    void *http_cx;
    struct http_exchange *exchanges; /* that are in work */
    _Atomic uint64_t accepted, refused, timed_out, too_large, tls_failed, bytes_in, buffered;
    _Atomic uint32_t open;
};

typedef enum { CONN_HANDSHAKE, CONN_OPEN, CONN_ENDING, CONN_LINGER, CONN_DEAD } conn_phase;

struct net_conn {
    net_listener *l;
    net_conn *prev, *next, *again_next;
    int fd;
    conn_phase phase;
    SSL *ssl;
    struct event ev_read, ev_write;
    void *state;
    fz_buf in, out;
    size_t in_at, out_at;
    size_t held, counted, lingered;
    int64_t since_ms;     /* begin of what is waited for: the handshake, the message, the next message, the end */
    int64_t stopped_ms;   /* since when time stands still; 0: it runs */
    int64_t out_ms;       /* when bytes last went out, or the first of those that wait was written */
    bool paused, starved; /* why it is not read from */
    bool resumed;         /* the protocol is to look at the rest again */
    bool begun;           /* the protocol says that a message has begun */
    bool partial;         /* a message has begun, by either sign */
    bool queued, read_armed, write_armed, eof, read_wants_write, refusing;
    bool told;            /* that the listener has been stopped */
    bool timed_out;       /* counted as such */
    char peer[NET_ADDRESS];
    char *tls_name;
};

static inline int64_t net_now_ms(void) { return fz_mono_ns() / 1000000; }
static inline void net_count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }

/* Runs fn in the loop and waits until it has run. Any thread. */
void net_loop_run(net_loop *l, void (*fn)(void *cx), void *cx);
void net_loop_again(net_loop *l, net_conn *c); /* loop: conn_pump is called soon */

/* "host:port" -> addresses. USER "listen.address". The caller frees *out with freeaddrinfo. */
struct addrinfo;
fz_status net_address_resolve(const char *address, int socktype, struct addrinfo **out, fz_error *err) FZ_MUST_USE;
/* A bound socket, not blocking; TCP: listening. USER "listen.in-use", "listen.address". */
fz_status net_address_bind(const char *address, int socktype, int *fd, char text[NET_ADDRESS], fz_error *err) FZ_MUST_USE;
void net_address_text(const struct sockaddr_storage *a, char out[NET_ADDRESS]);

/* USER "listen.tls" names the file. */
fz_status net_server_tls(const net_listen_options *o, const char *alpn, SSL_CTX **out, fz_error *err) FZ_MUST_USE;
net_tls_files *net_tls_files_new(const net_listen_options *o, const char *alpn); /* alpn: not copied */
void net_tls_files_free(net_tls_files *f);       /* NULL is allowed */
bool net_tls_files_changed(net_tls_files *f);    /* since it was last asked */
void net_tls_renew(net_listener *l);             /* loop: takes changed files into use */
char *net_tls_peer_name(SSL *ssl); /* heap, or NULL */

void net_options_fill(net_listen_options *out, const net_listen_options *in);
fz_status net_listener_make(net_loop *l, net_kind kind, const net_listen_options *o, const char *alpn, net_listener **out, fz_error *err) FZ_MUST_USE;
void net_listener_start(net_listener *l);   /* any thread */
void net_listener_free(net_listener *l);    /* loop, or the loop is over */
bool net_udp_arm(net_listener *l);

net_conn *net_conn_make(net_listener *l, int fd, const struct sockaddr_storage *peer);
void net_conn_refuse(net_conn *c, const char *answer); /* writes it and ends */
void net_conn_pump(net_conn *c, bool readable); /* may free c */
void net_conn_drop(net_conn *c);                /* closes; frees now or when the queue lets go of it */
void net_conn_sweep(net_conn *c, int64_t now);  /* may free c */
void net_conn_favour(net_listener *l);          /* chooses who may read on */

/* ---- HTTP ---- */
typedef struct http_head {
    const char *method, *path, *query; /* in the text, ended by NULs */
    net_http_field *field;             /* heap */
    size_t n, cap;
    int minor;                         /* HTTP/1.minor */
    bool chunked, has_length, keep, expect;
    uint64_t length;
} http_head;
/* Where the head ends in n bytes at p (past the empty line), 0: not yet, SIZE_MAX: a line ends without CR. *line: begin of the line that is not whole yet; 0 at first. */
size_t http_head_end(const uint8_t *p, size_t n, size_t *line);
/* Reads a head of n bytes in place; the text must live as long as h is used. Returns 0, or the status to answer, with *why. */
int http_head_parse(char *text, size_t n, http_head *h, const char **why);

typedef struct http_chunks { int state; uint64_t left; size_t line; bool digits; } http_chunks;
/* Takes what it can of n bytes at p, appends the payload to out (at most max bytes in all). Returns how many bytes were taken; *status: 0 more is needed, 200 the body is whole, 400, 413. */
size_t http_chunks_take(http_chunks *c, const uint8_t *p, size_t n, size_t max, fz_buf *out, int *status);

extern const net_proto net_http_proto;
void net_http_forget(net_listener *l); /* frees requests that were never answered */
#define HTTP_BUSY "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nConnection: close\r\n\r\ntoo many connections\n"
#endif
