/* SHA-256 and HMAC over OpenSSL, and the text forms that signatures need. See aws.h and aws_int.h. */
#include "aws/aws_int.h"
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

struct aws_sha256 { EVP_MD_CTX *cx; };

void aws_hex(const uint8_t *p, size_t n, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = 0;
}

void aws_sha256_raw(const void *p, size_t n, uint8_t out[32]) {
    if (EVP_Digest(n ? p : "", n, out, NULL, EVP_sha256(), NULL) != 1) abort();
}

void aws_hmac_sha256(const void *key, size_t n_key, const void *p, size_t n, uint8_t out[32]) {
    unsigned len = 32;
    if (!HMAC(EVP_sha256(), key, (int)n_key, p, n, out, &len)) abort();
}

void aws_sha256_hex(const void *p, size_t n, char out[65]) {
    uint8_t raw[32];
    aws_sha256_raw(p, n, raw);
    aws_hex(raw, sizeof raw, out);
}

static void start(aws_sha256 *h) {
    if (EVP_DigestInit_ex(h->cx, EVP_sha256(), NULL) != 1) abort();
}

aws_sha256 *aws_sha256_new(void) {
    aws_sha256 *h = FZ_NEW(aws_sha256);
    h->cx = EVP_MD_CTX_new();
    if (!h->cx) abort();
    start(h);
    return h;
}

void aws_sha256_add(aws_sha256 *h, const void *p, size_t n) {
    if (n && EVP_DigestUpdate(h->cx, p, n) != 1) abort();
}

void aws_sha256_hex_end(aws_sha256 *h, char out[65]) {
    uint8_t raw[32];
    if (EVP_DigestFinal_ex(h->cx, raw, NULL) != 1) abort();
    aws_hex(raw, sizeof raw, out);
    start(h);
}

void aws_sha256_free(aws_sha256 *h) {
    if (!h) return;
    EVP_MD_CTX_free(h->cx);
    fz_free(h);
}
