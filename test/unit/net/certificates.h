/* Certificates for tests, made with libcrypto: files NAME.pem and NAME.key in a directory. */
#ifndef CERTIFICATES_H
#define CERTIFICATES_H
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

typedef struct made_cert { X509 *cert; EVP_PKEY *key; char pem[160], key_file[160]; } made_cert;

static inline void cert_extend(X509 *c, X509 *issuer, int nid, const char *value) {
    X509V3_CTX cx;
    X509V3_set_ctx(&cx, issuer, c, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &cx, nid, value);
    assert_non_null(e);
    X509_add_ext(c, e, -1);
    X509_EXTENSION_free(e);
}

/* issuer NULL: it signs itself and is an authority. */
static inline made_cert cert_make(const char *dir, const char *name, const made_cert *issuer) {
    static long serial = 1;
    made_cert m = {X509_new(), EVP_EC_gen("P-256"), "", ""};
    X509_set_version(m.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(m.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(m.cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(m.cert), 3600);
    X509_set_pubkey(m.cert, m.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(m.cert), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509 *by = issuer ? issuer->cert : m.cert;
    X509_set_issuer_name(m.cert, X509_get_subject_name(by));
    cert_extend(m.cert, by, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    cert_extend(m.cert, by, NID_subject_alt_name, "IP:127.0.0.1");
    assert_true(X509_sign(m.cert, issuer ? issuer->key : m.key, EVP_sha256()) > 0);
    snprintf(m.pem, sizeof m.pem, "%s/%s.pem", dir, name);
    snprintf(m.key_file, sizeof m.key_file, "%s/%s.key", dir, name);
    FILE *f = fopen(m.pem, "w");
    assert_non_null(f);
    PEM_write_X509(f, m.cert);
    fclose(f);
    f = fopen(m.key_file, "w");
    assert_non_null(f);
    PEM_write_PrivateKey(f, m.key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    return m;
}
static inline void cert_free(made_cert *m) {
    remove(m->pem);
    remove(m->key_file);
    X509_free(m->cert);
    EVP_PKEY_free(m->key);
}
#endif
