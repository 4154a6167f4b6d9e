/* The handshake of the forward protocol, server's side: who knows the shared key, and a user's password where there are users. Digests are compared in constant time.
 * Source: Forward Protocol Specification v1, "Handshake messages". */
#include "source/forward_int.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

typedef struct part { const void *p; size_t n; } part;

/* SHA-512 of the parts, as lower-case hexadecimal digits. */
static bool digest(const part *v, size_t n, char out[FWD_DIGEST]) {
    static const char hex[] = "0123456789abcdef";
    uint8_t md[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD_CTX *cx = EVP_MD_CTX_new();
    bool ok = cx && EVP_DigestInit_ex(cx, EVP_sha512(), NULL) == 1;
    for (size_t i = 0; ok && i < n; i++) ok = EVP_DigestUpdate(cx, v[i].p, v[i].n) == 1;
    ok = ok && EVP_DigestFinal_ex(cx, md, &len) == 1 && len * 2 == FWD_DIGEST;
    EVP_MD_CTX_free(cx);
    for (unsigned i = 0; ok && i < len; i++) {
        out[2 * i] = hex[md[i] >> 4];
        out[2 * i + 1] = hex[md[i] & 15];
    }
    OPENSSL_cleanse(md, sizeof md);
    return ok;
}

static part text(const char *s) { return (part){s, strlen(s)}; }
static part of(const mp_item *v) { return (part){v->p, v->n}; }

fz_status fwd_put_helo(const fwd_secrets *s, fwd_hello *h, fz_buf *out, fz_error *err) {
    if (RAND_bytes(h->nonce, sizeof h->nonce) != 1 || RAND_bytes(h->auth, sizeof h->auth) != 1) return fz_fail(err, FZ_FATAL, "forward.random", "no random bytes can be had");
    mp_put_array(out, 2);
    mp_put_str(out, "HELO", 4);
    mp_put_map(out, 3);
    mp_put_str(out, "nonce", 5);
    mp_put_bin(out, h->nonce, sizeof h->nonce);
    mp_put_str(out, "auth", 4);
    if (s->username) mp_put_bin(out, h->auth, sizeof h->auth);
    else mp_put_str(out, "", 0);
    mp_put_str(out, "keepalive", 9);
    mp_put_bool(out, true);
    return FZ_OK;
}

static bool same(const mp_item *v, const char want[FWD_DIGEST]) { return v->n == FWD_DIGEST && CRYPTO_memcmp(v->p, want, FWD_DIGEST) == 0; }

static void put_pong(fz_buf *b, bool ok, const char *why, const char *host, const char *hash, size_t n_hash) {
    mp_put_array(b, 5);
    mp_put_str(b, "PONG", 4);
    mp_put_bool(b, ok);
    mp_put_str(b, why, strlen(why));
    mp_put_str(b, host, strlen(host));
    mp_put_str(b, hash, n_hash);
}

/* v: salt, host, digest, user, digest of the password behind "PING". */
static const char *check(const fwd_secrets *s, const fwd_hello *h, const mp_item *host, const mp_item *salt, const mp_item *key, const mp_item *user, const mp_item *pass) {
    char want[FWD_DIGEST];
    part nonce = {h->nonce, sizeof h->nonce}, auth = {h->auth, sizeof h->auth};
    if (!digest((part[]){of(salt), of(host), nonce, text(s->shared_key)}, 4, want)) return "digests cannot be made";
    if (!same(key, want)) return "shared_key mismatch";
    if (!s->username) return NULL;
    if (!digest((part[]){auth, text(s->username), text(s->password)}, 3, want)) return "digests cannot be made";
    bool known = user->n == strlen(s->username) && CRYPTO_memcmp(user->p, s->username, user->n) == 0, right = same(pass, want);
    return known && right ? NULL : "username/password mismatch";
}

fz_status fwd_ping(const fwd_secrets *s, const fwd_hello *h, const uint8_t *p, size_t n, fz_buf *pong, bool *ok, const char **why, fz_error *err) {
    const uint8_t *end = p + n;
    mp_item a, v[6];
    *ok = false;
    bool good = mp_read(&p, end, &a) == MP_OK && a.type == MP_ARRAY && a.n == 6;
    for (uint32_t i = 0; good && i < 6; i++) good = mp_read(&p, end, &v[i]) == MP_OK && (v[i].type == MP_STR || v[i].type == MP_BIN);
    if (!good || v[0].n != 4 || memcmp(v[0].p, "PING", 4) != 0) return fz_fail(err, FZ_DATA, "forward.ping", "the client has not begun with a PING of six texts");
    char mine[FWD_DIGEST];
    part nonce = {h->nonce, sizeof h->nonce};
    *why = check(s, h, &v[1], &v[2], &v[3], &v[4], &v[5]);
    if (!*why && !digest((part[]){of(&v[2]), text(s->self_hostname), nonce, text(s->shared_key)}, 4, mine)) *why = "digests cannot be made";
    if (*why) put_pong(pong, false, *why, "", "", 0);
    else put_pong(pong, true, "", s->self_hostname, mine, FWD_DIGEST);
    *ok = !*why;
    return FZ_OK;
}
