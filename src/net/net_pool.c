/* The process's libcurl handles. Each keeps the connections, DNS answers and TLS sessions of its last requests.
 *
 * Invariants
 *  1. A handle belongs to one thread between take and give.
 *  2. At most NET_MAX_HANDLES exist, at most NET_MAX_IDLE of them unused.
 * Handles are not shared through CURLSH: its connection cache is not safe between threads.
 */
#include "net/net_int.h"
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct idle_handle { CURL *c; char server[128]; uint64_t given; } idle_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static idle_handle idle[NET_MAX_IDLE];
static size_t n_idle;
static unsigned n_busy;
static uint64_t clock_of_gives;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ca_directory; /* the system's certificates are there one by one, by hash */

/* Reading the system's bundle costs 15 ms and megabytes for each connection; the directory is looked up certificate by certificate. */
static void init_once(void) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) abort(); /* no memory or no OpenSSL */
    DIR *d = opendir("/etc/ssl/certs");
    if (!d) return;
    for (const struct dirent *e; !ca_directory && (e = readdir(d));) ca_directory = fz_ends(e->d_name, ".0");
    closedir(d);
}

CURL *net_pool_take(const char *server) {
    pthread_once(&once, init_once);
    pthread_mutex_lock(&lock);
    while (n_busy >= NET_MAX_HANDLES) pthread_cond_wait(&returned, &lock);
    n_busy++;
    CURL *c = NULL;
    if (n_idle) {
        size_t best = 0;
        bool same = false;
        for (size_t i = 0; i < n_idle; i++) {
            bool s = strcmp(idle[i].server, server) == 0;
            /* Of its own server's the youngest (its connection lives), else the oldest. */
            if (i == 0 || (s && (!same || idle[i].given > idle[best].given)) || (!s && !same && idle[i].given < idle[best].given)) best = i, same = s;
        }
        /* With room left a new handle is better than one whose connections belong to another server. */
        if (same || n_idle == NET_MAX_IDLE) {
            c = idle[best].c;
            idle[best] = idle[--n_idle];
        }
    }
    pthread_mutex_unlock(&lock);
    if (c) curl_easy_reset(c);
    else if (!(c = curl_easy_init())) abort();
    return c;
}

void net_pool_give(CURL *c, const char *server) {
    /* Pointers into the last request must not stay behind. */
    curl_easy_reset(c);
    CURL *surplus = c;
    pthread_mutex_lock(&lock);
    n_busy--;
    if (n_idle < NET_MAX_IDLE) {
        idle_handle *h = &idle[n_idle++];
        h->c = c;
        h->given = ++clock_of_gives;
        snprintf(h->server, sizeof h->server, "%s", server);
        surplus = NULL;
    }
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

void net_set_tls(CURL *c, const net_tls *tls) {
    if (tls->ca_file) {
        curl_easy_setopt(c, CURLOPT_CAINFO, tls->ca_file);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    } else if (ca_directory) {
        curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(c, CURLOPT_CAPATH, "/etc/ssl/certs");
    }
    if (tls->cert_file) curl_easy_setopt(c, CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_file) curl_easy_setopt(c, CURLOPT_SSLKEY, tls->key_file);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, tls->no_verify ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, tls->no_verify ? 0L : 2L);
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
