/* Which authorities are trusted. A bundle of certificates is read once in a process, not once in a connection: 150 of them cost 15 ms and a megabyte.
 *
 * Invariants
 *  1. A bundle is read again when the file has changed; connections that stand keep what they were made with.
 * The system's own certificates are looked up one by one in its directory of hashes, where it has one.
 */
#include "net/net_int.h"
#include <dirent.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/stat.h>

#define SYSTEM_DIRECTORY "/etc/ssl/certs"
#define N_BUNDLES 8

typedef struct bundle { char *path; struct timespec changed; off_t size; X509_STORE *store; uint64_t used; } bundle;
static bundle bundles[N_BUNDLES];
static uint64_t uses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_directory;

static void look_once(void) {
    DIR *d = opendir(SYSTEM_DIRECTORY);
    if (!d) return;
    for (const struct dirent *e; !has_directory && (e = readdir(d));) has_directory = fz_ends(e->d_name, ".0");
    closedir(d);
}

static X509_STORE *load(const char *path) {
    X509_STORE *s = X509_STORE_new();
    if (!s || X509_STORE_load_file(s, path) != 1) {
        X509_STORE_free(s);
        return NULL;
    }
    /* As libcurl sets them: what the file names is trusted, an intermediate authority too. */
    X509_STORE_set_flags(s, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN);
    return s;
}

static void put(bundle *b, const char *path, const struct stat *st, X509_STORE *s) {
    fz_free(b->path);
    X509_STORE_free(b->store);
    *b = (bundle){fz_strdup(path), st->st_mtim, st->st_size, s, 0};
}

/* The caller's to free. NULL: it cannot be read, or no certificate is in it. */
static X509_STORE *store_of(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return NULL;
    pthread_mutex_lock(&lock);
    bundle *b = &bundles[0], *found = NULL;
    for (size_t i = 0; i < N_BUNDLES && !found; i++) {
        bool same = bundles[i].path && strcmp(bundles[i].path, path) == 0;
        if (same || bundles[i].used < b->used) b = &bundles[i];
        if (same) found = b;
    }
    bool fresh = found && found->size == st.st_size && found->changed.tv_sec == st.st_mtim.tv_sec && found->changed.tv_nsec == st.st_mtim.tv_nsec;
    if (!fresh) {
        X509_STORE *s = load(path);
        if (s) put(b, path, &st, s);
        found = s ? b : NULL;
    }
    X509_STORE *out = found ? found->store : NULL;
    if (out) {
        X509_STORE_up_ref(out);
        found->used = ++uses;
    }
    pthread_mutex_unlock(&lock);
    return out;
}

static CURLcode on_context(CURL *c, void *context, void *cx) {
    (void)c;
    SSL_CTX_set1_cert_store(context, cx);
    return CURLE_OK;
}

fz_status net_set_tls(CURL *c, const net_url *u, const net_tls *tls, X509_STORE **held, fz_error *err) {
    *held = NULL;
    if (strcmp(u->scheme, "https")) return FZ_OK;
    pthread_once(&once, look_once);
    if (tls->ca_file && !tls->no_verify) {
        if (!(*held = store_of(tls->ca_file)))
            return fz_fail(err, FZ_USER, "net.tls-certificate", "the file of trusted certificates %s cannot be read, or has none", tls->ca_file);
        curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(c, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* else libcurl would put the store of the first connection over ours */
        curl_easy_setopt(c, CURLOPT_SSL_CTX_FUNCTION, on_context);
        curl_easy_setopt(c, CURLOPT_SSL_CTX_DATA, *held);
    } else if (has_directory) {
        curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(c, CURLOPT_CAPATH, SYSTEM_DIRECTORY);
    }
    if (tls->cert_file) curl_easy_setopt(c, CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_file) curl_easy_setopt(c, CURLOPT_SSLKEY, tls->key_file);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, tls->no_verify ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, tls->no_verify ? 0L : 2L);
    return FZ_OK;
}

void net_release_tls(X509_STORE *held) { X509_STORE_free(held); }
