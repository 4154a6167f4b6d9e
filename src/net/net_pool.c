/* The process's libcurl handles. Each keeps the connections, DNS answers and TLS sessions of its last requests.
 *
 * Invariants
 *  1. A handle belongs to one thread between take and give.
 *  2. At most FZ_MAX_HTTP_EXCHANGES are in use, at most NET_MAX_IDLE are kept unused.
 *  3. A handle serves one server with one set of certificates all its life: its connections cannot be taken for another's.
 * Handles are not shared through CURLSH: its connection cache is not safe between threads.
 */
#include "net/net_int.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct idle_handle { CURL *c; uint64_t key, given; } idle_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static idle_handle idle[NET_MAX_IDLE];
static size_t n_idle;
static unsigned n_busy;
static uint64_t clock_of_gives;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init_once(void) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) abort(); /* no memory or no OpenSSL */
}

uint64_t net_pool_key(const net_url *u, const net_tls *tls) {
    fz_buf b = {0};
    fz_buf_printf(&b, "%s %s %d %d", u->scheme, u->host, u->port, tls->no_verify);
    const char *const files[] = {tls->ca_file, tls->cert_file, tls->key_file};
    for (size_t i = 0; i < 3; i++) fz_buf_append(&b, files[i] ? files[i] : "", files[i] ? strlen(files[i]) + 1 : 1);
    uint64_t key = fz_hash(b.data, b.len);
    fz_buf_free(&b);
    return key;
}

CURL *net_pool_take(uint64_t key) {
    pthread_once(&once, init_once);
    pthread_mutex_lock(&lock);
    while (n_busy >= FZ_MAX_HTTP_EXCHANGES) pthread_cond_wait(&returned, &lock);
    n_busy++;
    size_t best = n_idle;
    for (size_t i = 0; i < n_idle; i++) /* the youngest: its connection lives */
        if (idle[i].key == key && (best == n_idle || idle[i].given > idle[best].given)) best = i;
    CURL *c = NULL;
    if (best < n_idle) {
        c = idle[best].c;
        idle[best] = idle[--n_idle];
    }
    pthread_mutex_unlock(&lock);
    /* net_pool_give has reset it. */
    if (!c && !(c = curl_easy_init())) abort();
    return c;
}

void net_pool_give(CURL *c, uint64_t key) {
    curl_easy_reset(c); /* pointers into the last request must not stay behind */
    CURL *surplus = NULL;
    pthread_mutex_lock(&lock);
    n_busy--;
    size_t at = n_idle;
    if (n_idle == NET_MAX_IDLE) { /* the oldest goes, with its connections */
        at = 0;
        for (size_t i = 1; i < n_idle; i++)
            if (idle[i].given < idle[at].given) at = i;
        surplus = idle[at].c;
    } else n_idle++;
    idle[at] = (idle_handle){c, key, ++clock_of_gives};
    pthread_cond_signal(&returned);
    pthread_mutex_unlock(&lock);
    if (surplus) curl_easy_cleanup(surplus);
}

void net_pool_drop(CURL *c) {
    curl_easy_cleanup(c);
    pthread_mutex_lock(&lock);
    n_busy--;
    pthread_cond_signal(&returned);
    pthread_mutex_unlock(&lock);
}

void net_set_common(CURL *c, const char *proxy, int64_t connect_timeout_ms) {
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPIDLE, 60L);
    curl_easy_setopt(c, CURLOPT_TCP_KEEPINTVL, 15L);
    curl_easy_setopt(c, CURLOPT_MAXCONNECTS, NET_CONNECTIONS_PER_HANDLE);
    curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, NET_IDLE_CONNECTION_S);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_timeout_ms > 0 ? connect_timeout_ms : NET_DEFAULT_CONNECT_MS));
    if (proxy) curl_easy_setopt(c, CURLOPT_PROXY, proxy);
}

void net_sigpipe_block(net_sigpipe *s) {
    sigset_t pipe_only, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    s->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &s->old);
}

void net_sigpipe_restore(const net_sigpipe *s) {
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    struct timespec none = {0, 0};
    if (!s->was_pending) sigtimedwait(&pipe_only, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &s->old, NULL);
}
