/* HTTP from the client's side: one request, one answer, nothing more. libcurl speaks TLS and HTTP; this room gives it our errors,
 * limits and time-outs.
 *
 * What it does not do: it retries nothing (but see 2), follows no redirect, signs nothing, decodes no Content-Encoding, and adds no header but Host,
 * Content-Length, User-Agent and those given (no Accept, no Expect, no Keep-Alive).
 *
 * Invariants
 *  1. net_exchange says what it knows about a request that got no whole answer:
 *       FZ_RETRY    nothing of it was sent: "net.resolve", "net.connect", "net.tls" (the handshake), "net.proxy"
 *       FZ_UNKNOWN  some of it may have arrived: "net.no-answer" (reset, closed), "net.timeout", "net.short-answer"
 *       FZ_USER     the URL or the certificate settings are wrong: "net.url", "net.tls-certificate" (not trusted, wrong name), "net.header"
 *       FZ_FATAL    "net.too-large": the answer is larger than max_answer; "net.body": the file that was to be sent cannot be read
 *     Any HTTP status is FZ_OK.
 *  2. A connection taken from the pool that turns out to be dead before a byte of the answer came is FZ_UNKNOWN too, unless the
 *     request says `repeatable`: then it is sent again over another connection (answer->resent). A request that is not repeatable always gets a connection
 *     of its own, which costs a handshake.
 *  3. Credentials in headers, queries or URLs never stand in an error or a log line: errors name scheme, host and path only.
 * Threads: any; connections are pooled process-wide by host and settings, and bounded.
 */
#ifndef NET_NET_H
#define NET_NET_H
#include "base/base.h"

typedef struct net_header { const char *name, *value; } net_header;

/* What goes into a request: n bytes at p, or (fd >= 0 and p NULL) n bytes of the file fd from offset `from`, read with pread. */
typedef struct net_body { const void *p; size_t n; int fd; uint64_t from; } net_body;

typedef struct net_tls {
    const char *ca_file;          /* PEM; NULL: the system's (also AWS_CA_BUNDLE, SSL_CERT_FILE are the caller's to read) */
    const char *cert_file, *key_file; /* client certificate, NULL: none */
    bool no_verify;
} net_tls;

typedef struct net_request {
    const char *method;           /* "GET", "HEAD", "PUT", ... */
    const char *url;              /* http or https, percent-encoded already: path and query go onto the wire byte for byte ("//", ".." stay) */
    const net_header *headers;    /* sent in this order; "Host" replaces the one made from the URL */
    size_t n_headers;
    net_body body;                /* n == 0 and method PUT or POST: Content-Length: 0 */
    net_tls tls;
    const char *proxy;            /* NULL: HTTPS_PROXY, HTTP_PROXY, NO_PROXY as curl reads them; "": none */
    int64_t connect_timeout_ms;   /* 0: 10 s */
    int64_t timeout_ms;           /* whole exchange; 0: none but the stall limit */
    int64_t stall_timeout_ms;     /* no byte either way for so long ends it; 0: 30 s */
    size_t max_answer;            /* bytes of body that are taken; 0: 64 MiB */
    void *into;                   /* not NULL: a 2xx body goes here (at most max_answer bytes) instead of answer->body; others go to body */
    bool repeatable;              /* invariant 2 */
    bool expect_continue;         /* the server is asked before the body is sent (at most 1 s): a refusal of a large body is then read for sure, see body_cut */
} net_request;

typedef struct net_answer {
    int status;
    net_header *headers;          /* in arena; names in lower case */
    size_t n_headers;
    fz_buf body;                  /* a NUL follows it (data is NULL when nothing came); freed by net_answer_free */
    size_t n_into;                /* bytes written to request->into */
    int64_t sent_ms, received_ms; /* fz_now_ms around the exchange */
    bool body_cut;                /* the connection ended while the body was on its way: an answer that the server sent before it closed (403, 307) may be lost */
    bool resent;                  /* a repeatable request was sent more than once: the first may have had its effect */
    fz_arena *arena;
} net_answer;

/* Fills *out in any case (status 0 without an answer); free it with net_answer_free. */
fz_status net_exchange(const net_request *rq, net_answer *out, fz_error *err) FZ_MUST_USE;
void net_answer_free(net_answer *a);
const char *net_answer_header(const net_answer *a, const char *name); /* case-insensitive; NULL: not there */

/* Can a TCP (and for https a TLS) connection be made? For the doctor: says what failed as net_exchange does, and the peer's address. */
fz_status net_reach(const char *url, const net_tls *tls, int64_t timeout_ms, fz_arena *a, const char **address, fz_error *err) FZ_MUST_USE;
/* The same for a port that speaks no HTTP: name and TCP only, past any proxy. */
fz_status net_reach_tcp(const char *host, int port, int64_t timeout_ms, fz_arena *a, const char **address, fz_error *err) FZ_MUST_USE;

/* ---- text of URLs (RFC 3986) ---- */
/* Appends s with all but unreserved characters (A-Z a-z 0-9 - . _ ~) as %XX; '/' stays when keep_slash. */
void net_encode(fz_buf *out, const char *s, size_t n, bool keep_slash);
/* Undoes %XX; '+' stays. false: a broken escape. */
bool net_decode(fz_buf *out, const char *s, size_t n);
typedef struct net_url { const char *scheme, *host; int port; const char *path, *query; } net_url; /* port 0: the scheme's; host without brackets; path "" or "/..." encoded */
fz_status net_url_parse(const char *url, fz_arena *a, net_url *out, fz_error *err) FZ_MUST_USE;
/* The process is about to end: while fn says so, a request of which no byte comes or goes for 3 s is given up, and callers need not try again. Any thread; fn too. NULL: never. */
typedef bool (*net_hurry_fn)(void);
void net_set_hurry(net_hurry_fn fn);
/* The same for what the calling thread asks more than ms from now, whoever it asks: somebody waits behind it. 0: no more. */
void net_patience(int64_t ms);
bool net_hurried(void); /* for who waits for sockets of his own: NET_HURRIED_STALL_MS without a byte are enough then */
#define NET_HURRIED_STALL_MS 3000
#endif
