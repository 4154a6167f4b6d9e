/* TLS of the servers: contexts made from PEM files, and who is at the other end. TLS 1.2 and 1.3; no renegotiation.
 *
 * A certificate that is renewed counts from the next connection on: the files are looked at when one comes, once a second at most. Files that cannot be read or do not belong together
 * (one of them has been written, the other not yet) leave the old ones in use.
 */
#include "net/server_int.h"
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

enum { LOOK_MS = 1000 };
struct net_tls_files {
    char *path[3]; /* certificate, key, authorities; NULL: none */
    struct { struct timespec changed; off_t size; ino_t inode; } seen[3];
    const char *alpn;
    int64_t looked_ms;
    fz_log_limit log_limit;
};

static fz_status fail(fz_error *err, const char *what, const char *file) {
    char text[256] = "";
    unsigned long e = ERR_peek_last_error();
    if (e) ERR_error_string_n(e, text, sizeof text);
    ERR_clear_error();
    fz_fail(err, FZ_USER, "listen.tls", "%s %s", what, file);
    return e ? fz_detail(err, "%s", ERR_reason_error_string(e) ? ERR_reason_error_string(e) : text) : FZ_USER;
}

/* The wanted protocol, when the client offers it. A client that names protocols and not ours is refused where it must be this one (h2); HTTP/1.1 is spoken anyway. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n_out, const unsigned char *in, unsigned n, void *cx) {
    (void)ssl;
    const char *want = cx;
    size_t len = strlen(want);
    for (unsigned i = 0; i < n && i + 1u + in[i] <= n; i += 1u + in[i])
        if (in[i] == len && memcmp(in + i + 1, want, len) == 0) {
            *out = in + i + 1;
            *n_out = in[i];
            return SSL_TLSEXT_ERR_OK;
        }
    return strcmp(want, "h2") == 0 ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

static fz_status load(SSL_CTX *c, const net_listen_options *o, fz_error *err) {
    const char *key = o->tls_key ? o->tls_key : o->tls_cert;
    if (SSL_CTX_use_certificate_chain_file(c, o->tls_cert) != 1) return fail(err, "cannot read a certificate from", o->tls_cert);
    if (SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM) != 1) return fail(err, "cannot read the private key from", key);
    if (SSL_CTX_check_private_key(c) != 1) return fail(err, "the certificate and the private key do not belong together:", key);
    if (!o->tls_ca) return FZ_OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(o->tls_ca);
    if (!names || SSL_CTX_load_verify_file(c, o->tls_ca) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return fail(err, "cannot read certificates of authorities from", o->tls_ca);
    }
    SSL_CTX_set_client_CA_list(c, names);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return FZ_OK;
}

fz_status net_server_tls(const net_listen_options *o, const char *alpn, SSL_CTX **out, fz_error *err) {
    ERR_clear_error();
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    if (!c) return fz_fail(err, FZ_FATAL, "listen.tls", "OpenSSL gives no context");
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_id_context(c, (const unsigned char *)"frazil", 6);
    if (alpn) SSL_CTX_set_alpn_select_cb(c, choose_protocol, (void *)(uintptr_t)alpn);
    fz_status rc = load(c, o, err);
    if (rc != FZ_OK) SSL_CTX_free(c);
    else *out = c;
    return rc;
}

fz_status net_listen_try_tls(const net_listen_options *o, int64_t *expires_s, fz_error *err) {
    SSL_CTX *c;
    FZ_TRY(net_server_tls(o, NULL, &c, err));
    struct tm end = {0};
    bool known = ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(c)), &end) == 1;
    *expires_s = known ? (int64_t)timegm(&end) : INT64_MAX;
    SSL_CTX_free(c);
    return FZ_OK;
}

char *net_tls_peer_name(SSL *ssl) {
    X509 *cert = SSL_get0_peer_certificate(ssl);
    if (!cert) return NULL;
    const X509_NAME *name = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID((X509_NAME *)(uintptr_t)name, NID_commonName, -1);
    unsigned char *text = NULL;
    int n = at < 0 ? -1 : ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    char *out = n > 0 && !memchr(text, 0, (size_t)n) ? fz_strndup((char *)text, (size_t)n) : NULL;
    OPENSSL_free(text);
    return out;
}

net_tls_files *net_tls_files_new(const net_listen_options *o, const char *alpn) {
    net_tls_files *f = FZ_NEW(net_tls_files);
    const char *path[3] = {o->tls_cert, o->tls_key, o->tls_ca};
    for (int i = 0; i < 3; i++) f->path[i] = path[i] ? fz_strdup(path[i]) : NULL;
    f->alpn = alpn;
    (void)net_tls_files_changed(f);
    return f;
}
void net_tls_files_free(net_tls_files *f) {
    if (!f) return;
    for (int i = 0; i < 3; i++) fz_free(f->path[i]);
    fz_free(f);
}

bool net_tls_files_changed(net_tls_files *f) {
    bool changed = false;
    for (int i = 0; i < 3; i++) {
        struct stat st;
        if (!f->path[i] || stat(f->path[i], &st) != 0) continue;
        changed |= st.st_size != f->seen[i].size || st.st_ino != f->seen[i].inode || st.st_mtim.tv_sec != f->seen[i].changed.tv_sec || st.st_mtim.tv_nsec != f->seen[i].changed.tv_nsec;
        f->seen[i].size = st.st_size;
        f->seen[i].inode = st.st_ino;
        f->seen[i].changed = st.st_mtim;
    }
    return changed;
}

void net_tls_renew(net_listener *l) {
    net_tls_files *f = l->tls_files;
    int64_t now = net_now_ms();
    if (now - f->looked_ms < LOOK_MS) return;
    f->looked_ms = now;
    if (!net_tls_files_changed(f)) return;
    SSL_CTX *fresh;
    fz_error err;
    uint64_t suppressed;
    fz_status st = net_server_tls(&(net_listen_options){.tls_cert = f->path[0], .tls_key = f->path[1], .tls_ca = f->path[2]}, f->alpn, &fresh, &err);
    if (st == FZ_OK) {
        SSL_CTX_free(l->ssl);
        l->ssl = fresh;
        fz_log(FZ_LOG_INFO, "listen.certificate-renewed", FZ_KV("address", "%s", l->address), FZ_KV("file", "%s", f->path[0]), NULL);
    } else if (fz_log_allowed(&f->log_limit, 3, 60000, &suppressed)) fz_log_error(FZ_LOG_WARN, "listen.certificate-kept", &err);
    if (st != FZ_OK) memset(f->seen, 0, sizeof f->seen); /* to be looked at again */
}
