/* Private to net: the pool of libcurl handles, and how libcurl's outcomes become errors. */
#ifndef NET_NET_INT_H
#define NET_NET_INT_H
#include "net/net.h"
#include <curl/curl.h>
#include <openssl/types.h>
#include <signal.h>

#define NET_MAX_IDLE 16                 /* handles that are kept with their connections */
#define NET_CONNECTIONS_PER_HANDLE 4L
#define NET_IDLE_CONNECTION_S 30L       /* older ones are not used again: servers close them about then */
#define NET_DEFAULT_CONNECT_MS 10000
#define NET_DEFAULT_STALL_MS 30000

/* Server and certificates of a request. */
uint64_t net_pool_key(const net_url *u, const net_tls *tls);
/* A handle, reset, with the connections of earlier requests of the same key. The caller gives it back. Threads: any. */
CURL *net_pool_take(uint64_t key);
void net_pool_give(CURL *c, uint64_t key);
void net_pool_drop(CURL *c); /* instead of give: closes its connections */
/* Sets certificates. *held (may become NULL) must live as long as c is used; net_release_tls frees it. USER "net.tls-certificate". */
fz_status net_set_tls(CURL *c, const net_url *u, const net_tls *tls, X509_STORE **held, fz_error *err) FZ_MUST_USE;
void net_release_tls(X509_STORE *held);
void net_set_common(CURL *c, const char *proxy, int64_t connect_timeout_ms);

/* Everything that is known when an exchange fails. */
typedef struct net_failure {
    CURLcode rc;
    CURL *curl;
    const char *where;     /* scheme, host and path, for the message */
    const char *scheme;
    const char *curl_text; /* CURLOPT_ERRORBUFFER */
    const net_tls *tls;
    bool sent;             /* the request began to go out */
    int status;            /* of the answer's head, 0: none came */
    bool stalled;
    int64_t stall_ms, timeout_ms, connect_ms;
} net_failure;
fz_status net_fail_exchange(const net_failure *f, fz_error *err) FZ_MUST_USE;

/* SIGPIPE is held back from this thread while OpenSSL writes to a socket that may be closed. */
typedef struct net_sigpipe { sigset_t old; bool was_pending; } net_sigpipe;
void net_sigpipe_block(net_sigpipe *s);
void net_sigpipe_restore(const net_sigpipe *s);
#endif
