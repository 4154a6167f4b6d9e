/* Listeners: loops, connections, datagrams, HTTP/1.1. libevent and OpenSSL do the work; this room gives them limits, so that no peer can hold more than its share.
 *
 * What it does not do: it knows no protocol above HTTP, and stores nothing.
 *
 * Invariants
 *  1. Every listener has limits on connections, on bytes that one connection may have in memory, and on time: for the TLS handshake, for a message to be completed once begun
 *     (slow loris), and between messages. What passes one is closed (HTTP: answered 408, 413, 431, 503 first) and counted.
 *  2. A listener binds to loopback unless its options have something that authenticates (or say auth = none and allow-unauthenticated = true): net_listen_check.
 *  3. All functions of a protocol run in its loop's thread; they must not block. net_loop_call hands work to that thread from any other.
 *  4. At the limit of connections new ones are accepted and closed at once (TCP) or answered 503 (HTTP); those that are there are unharmed.
 * Threads: as said at each function; "loop" means only within that loop's thread.
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H
#include "base/base.h"

typedef struct net_loop net_loop;
fz_status net_loop_new(const char *name, net_loop **out, fz_error *err) FZ_MUST_USE; /* with its thread */
void net_loop_free(net_loop *l);                                   /* runs the calls that wait, stops its listeners, gives connections half a second to send what was written last, closes them, joins the thread; NULL is allowed. Not in the loop */
void net_loop_call(net_loop *l, void (*fn)(void *cx), void *cx);   /* any thread; runs once, in order */
void net_loop_after(net_loop *l, int64_t ms, void (*fn)(void *cx), void *cx); /* loop */

struct net_http_request;
typedef struct net_listen_options {
    const char *address;          /* "127.0.0.1:24224", "[::1]:514", "0.0.0.0:4318", "host:0" (any free port) */
    const char *tls_cert, *tls_key, *tls_ca; /* PEM files, read again when they have changed; cert NULL: plain; ca not NULL: client certificates are demanded */
    uint32_t max_connections;     /* 0: 1024 */
    size_t max_message;           /* bytes of one message (HTTP: body after decompression is the caller's); 0: 16 MiB */
    size_t max_buffered;          /* bytes over all connections that wait to be worked off; above it nothing is read but one message at a time; 0: 32 MiB */
    int64_t handshake_timeout_ms; /* 0: 10 s */
    int64_t message_timeout_ms;   /* 0: 30 s */
    int64_t idle_timeout_ms;      /* 0: 5 min */
    /* HTTP; may be NULL. Called in the loop when a request's head is whole and its body is still to come (n_body is 0): it answers at once, and the connection is closed without reading the body,
     * or leaves it, and the handler gets the request when it is whole. For those who may not send at all. */
    void (*http_head)(void *cx, struct net_http_request *r);
    /* HTTP; may be NULL: text. Called in the loop when a body is larger than max_message: the answer's body and its type, in the manner of the protocol. content_type: the request's, NULL: none. */
    void (*http_too_large)(const char *content_type, const char *why, const char **type, fz_buf *body);
} net_listen_options;
/* authenticated: something in the options authenticates peers; opt_out: the user said that anybody may. USER "listen.open" for a wider address without either; "listen.address". */
fz_status net_listen_check(const char *address, bool authenticated, bool opt_out, fz_error *err) FZ_MUST_USE;
/* Could a listener be made? Takes the address and gives it back at once. Errors as of the listeners, but those of TLS. Any thread. */
fz_status net_listen_try(const net_listen_options *o, bool datagrams, fz_error *err) FZ_MUST_USE;
/* Can the PEM files be read, and do they belong together? *expires_s: end of the server's certificate, seconds since the epoch. USER "listen.tls". Any thread. */
fz_status net_listen_try_tls(const net_listen_options *o, int64_t *expires_s, fz_error *err) FZ_MUST_USE;

typedef struct net_listener net_listener;
typedef struct net_stats { uint64_t accepted, refused, timed_out, too_large, tls_failed; uint32_t open; uint64_t bytes_in, buffered; } net_stats;
net_stats net_listener_stats(const net_listener *l);     /* any thread */
const char *net_listener_address(const net_listener *l); /* as bound, with the real port */
/* Any thread. Takes no more connections (datagrams); those between two messages are closed, the others when their message is over (HTTP: answered with Connection: close). */
void net_listener_stop(net_listener *l);

/* ---- streams: forward, syslog over TCP, gRPC ---- */
typedef struct net_conn net_conn;
typedef enum { NET_EXPIRED_IDLE, NET_EXPIRED_MESSAGE, NET_EXPIRED_OVERLOAD /* memory is full, and this message did not come to its end */ } net_expiry;
typedef struct net_proto {
    /* All in the loop. state is what open returned; NULL closes the connection. */
    void *(*open)(void *cx, net_conn *c);
    /* New bytes stand at p (contiguous, all that are not consumed yet). Returns how many were consumed; SIZE_MAX: close. Called again with the rest when more comes; a protocol that
     * consumes nothing of max_message bytes is closed. */
    size_t (*data)(void *state, const uint8_t *p, size_t n);
    void (*eof)(void *state, const uint8_t *p, size_t n); /* the peer has closed; p: what was never consumed. A protocol that still has something to write calls net_conn_pause here, and net_conn_end later */
    void (*close)(void *state);                           /* always last */
    /* A last word before a connection is closed for its time; NULL: it is just closed. What it writes is sent, then the connection is ended. */
    void (*expired)(void *state, net_expiry why);
    /* Once, when the listener has been stopped: a word to peers that would keep the connection (HTTP/2's GOAWAY). NULL: nothing is said. */
    void (*stopping)(void *state);
} net_proto;
/* alpn: "h2" for gRPC over TLS, NULL: none. Any thread, before traffic. USER "listen.in-use", "listen.address", "listen.tls"; FATAL else. */
fz_status net_listen_stream(net_loop *l, const net_listen_options *o, const char *alpn, const net_proto *p, void *cx, net_listener **out, fz_error *err) FZ_MUST_USE;
void net_conn_write(net_conn *c, const void *p, size_t n); /* loop; copied */
void net_conn_pause(net_conn *c);                          /* loop; no more data is read: back-pressure. Time-outs stand still */
void net_conn_resume(net_conn *c);
void net_conn_end(net_conn *c);                            /* loop; closes when all is written */
/* A protocol that consumes a message piece by piece says when one begins (true, each time) and ends (false): message_timeout_ms counts between. Not needed where unconsumed bytes are the sign. loop */
void net_conn_message(net_conn *c, bool begun);
void net_conn_hold(net_conn *c, size_t bytes);             /* loop; bytes that the protocol now has in memory for this connection (the sum, not a difference): they count as buffered */
const char *net_conn_peer(const net_conn *c);              /* "127.0.0.1:50514" */
const char *net_conn_tls_name(const net_conn *c);          /* common name of the client's certificate, or NULL */

/* ---- datagrams: syslog over UDP ---- */
typedef void (*net_datagram_fn)(void *cx, const uint8_t *p, size_t n, const char *peer); /* loop */
fz_status net_listen_datagrams(net_loop *l, const net_listen_options *o, net_datagram_fn fn, void *cx, net_listener **out, fz_error *err) FZ_MUST_USE;
void net_datagram_answer(net_listener *l, const void *p, size_t n); /* loop, within net_datagram_fn only: to where the datagram at hand came from; lost when it cannot be sent at once */
void net_datagrams_pause(net_listener *l, bool pause); /* loop; while paused the kernel's buffer fills, then it drops: counted as `refused` where the kernel tells */

/* ---- HTTP/1.1 ---- */
typedef struct net_http_request {
    const char *method, *path, *query; /* as on the wire, undecoded; query NULL: none */
    const char *peer, *tls_name;
    const uint8_t *body;               /* whole, contiguous, as sent (Content-Encoding is the handler's) */
    size_t n_body;
    void *inner;                       /* the room's own */
} net_http_request;
const char *net_http_header(const net_http_request *r, const char *name); /* any case; NULL: not there */
/* Calls fn for each header as sent, in order: for signatures. */
void net_http_each_header(const net_http_request *r, void (*fn)(void *cx, const char *name, const char *value), void *cx);
/* loop. The handler answers now or keeps r and answers later (net_http_answer, in the loop); r lives until it is answered, also when the peer goes away; the end of the loop frees
 * those that never were. Requests of one connection come one after the other. */
typedef void (*net_http_fn)(void *cx, net_http_request *r);
fz_status net_listen_http(net_loop *l, const net_listen_options *o, net_http_fn fn, void *cx, net_listener **out, fz_error *err) FZ_MUST_USE;
typedef struct net_http_field { const char *name, *value; } net_http_field;
void net_http_answer(net_http_request *r, int status, const net_http_field *h, size_t n, const void *body, size_t n_body); /* loop; frees r. Date, Content-Length and Connection are added; a HEAD's body is left out */

/* Inflates gzip (all members) or zstd into out, at most max bytes. DATA "body.encoding" (broken), "body.too-large" (found while inflating). coding: "gzip", "x-gzip", "zstd", "deflate", "identity" (copies) in any case;
 * USER "body.coding" for others. Any thread. */
fz_status net_inflate(const char *coding, const void *p, size_t n, size_t max, fz_buf *out, fz_error *err) FZ_MUST_USE;
#endif
