/* What libcurl's outcomes mean. The one question that matters above: can the other side have acted?
 *
 * `sent` comes from CURLOPT_PREREQFUNCTION, which libcurl calls after the connection (with proxy and TLS) stands and before the first byte of
 * the request. Not called: nothing was sent. Called: something may have arrived.
 */
#include "net/net_int.h"
#include <errno.h>
#include <openssl/x509_vfy.h>

/* libcurl's own text, unless it might quote a user name and password (proxies' URLs). */
static const char *reason(const net_failure *f) {
    const char *t = f->curl_text;
    return t && t[0] && !strchr(t, '@') ? t : curl_easy_strerror(f->rc);
}

static fz_status fail_certificate(const net_failure *f, fz_error *err) {
    long v = 0;
    curl_easy_getinfo(f->curl, CURLINFO_SSL_VERIFYRESULT, &v);
    /* libcurl compares names itself, before it asks OpenSSL for its verdict. */
    if ((v == X509_V_OK || v == X509_V_ERR_UNSPECIFIED) && strstr(reason(f), "match")) v = X509_V_ERR_HOSTNAME_MISMATCH;
    switch (v) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the server's certificate has expired", f->where);
        return fz_hint(err, "check this machine's clock; else the server needs a new certificate");
    case X509_V_ERR_CERT_NOT_YET_VALID:
        fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the server's certificate is not valid yet", f->where);
        return fz_hint(err, "check this machine's clock");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the server's certificate is not signed by an authority that is trusted here (%s)", f->where,
                X509_verify_cert_error_string(v));
        return fz_hint(err, f->tls->ca_file ? "%s is what is trusted; is the authority of this server (or of a proxy that opens TLS) in it?"
                                            : "a private authority (or a proxy that opens TLS) needs its certificate named, for AWS by AWS_CA_BUNDLE", f->tls->ca_file);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the server's certificate is for another name (%s)", f->where, reason(f));
        return fz_hint(err, "is this the right host? A bucket with dots in its name needs path-style access over https");
    default:
        return fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the server's certificate is not accepted: %s", f->where, reason(f));
    }
}

static fz_status fail_time(const net_failure *f, fz_error *err) {
    if (f->sent && f->stalled)
        return fz_fail(err, FZ_UNKNOWN, "net.timeout", "%s: no byte came or went for %lld ms", f->where, (long long)f->stall_ms);
    if (f->sent) return fz_fail(err, FZ_UNKNOWN, "net.timeout", "%s: no whole answer within %lld ms", f->where, (long long)f->timeout_ms);
    long connected = 0; /* the local port: known once the TCP connection stands */
    curl_easy_getinfo(f->curl, CURLINFO_LOCAL_PORT, &connected);
    int64_t limit = f->timeout_ms > 0 && f->timeout_ms < f->connect_ms ? f->timeout_ms : f->connect_ms;
    if (connected > 0 && strcmp(f->scheme, "https") == 0)
        return fz_fail(err, FZ_RETRY, "net.tls", "%s: connected, but the TLS handshake was not done within %lld ms", f->where, (long long)limit);
    curl_off_t resolved = 0;
    curl_easy_getinfo(f->curl, CURLINFO_NAMELOOKUP_TIME_T, &resolved);
    if (resolved == 0) return fz_fail(err, FZ_RETRY, "net.resolve", "%s: the host name was not resolved within %lld ms", f->where, (long long)limit);
    fz_fail(err, FZ_RETRY, "net.connect", "%s: no connection within %lld ms", f->where, (long long)limit);
    return fz_hint(err, "a firewall or a security group that drops packets looks like this");
}

static fz_status fail_before(const net_failure *f, fz_error *err) {
    long os = 0, by_proxy = 0;
    switch (f->rc) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return fz_fail(err, FZ_USER, "net.url", "%s: %s", f->where, reason(f));
    case CURLE_COULDNT_RESOLVE_HOST: return fz_fail(err, FZ_RETRY, "net.resolve", "%s: the host name cannot be resolved", f->where);
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY: return fz_fail(err, FZ_RETRY, "net.proxy", "%s: the proxy cannot be used: %s", f->where, reason(f));
    case CURLE_PEER_FAILED_VERIFICATION: return fail_certificate(f, err);
    case CURLE_SSL_CACERT_BADFILE:
        return fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the file of trusted certificates %s cannot be read", f->where, f->tls->ca_file ? f->tls->ca_file : "of the system");
    case CURLE_SSL_CERTPROBLEM: return fz_fail(err, FZ_USER, "net.tls-certificate", "%s: the client certificate cannot be used: %s", f->where, reason(f));
    default: break;
    }
    curl_easy_getinfo(f->curl, CURLINFO_HTTP_CONNECTCODE, &by_proxy);
    if (by_proxy && by_proxy / 100 != 2) return fz_fail(err, FZ_RETRY, "net.proxy", "%s: the proxy refused the connection with status %ld", f->where, by_proxy);
    if (f->rc == CURLE_SSL_CONNECT_ERROR || f->rc == CURLE_RECV_ERROR || f->rc == CURLE_SEND_ERROR) {
        fz_fail(err, FZ_RETRY, "net.tls", "%s: the TLS handshake failed: %s", f->where, reason(f));
        return strstr(reason(f), "wrong version number") ? fz_hint(err, "does this port speak plain http?") : FZ_RETRY;
    }
    curl_easy_getinfo(f->curl, CURLINFO_OS_ERRNO, &os);
    if (os) return fz_fail(err, FZ_RETRY, "net.connect", "%s: no connection: %s", f->where, strerror((int)os));
    return fz_fail(err, FZ_RETRY, "net.connect", "%s: no connection: %s", f->where, reason(f));
}

fz_status net_fail_exchange(const net_failure *f, fz_error *err) {
    if (f->stalled || f->rc == CURLE_OPERATION_TIMEDOUT) return fail_time(f, err);
    if (!f->sent) return fail_before(f, err);
    if (f->status)
        return fz_fail(err, FZ_UNKNOWN, "net.short-answer", "%s: the answer (status %d) broke off: %s", f->where, f->status, reason(f));
    if (f->rc == CURLE_UNSUPPORTED_PROTOCOL || f->rc == CURLE_WEIRD_SERVER_REPLY) {
        fz_fail(err, FZ_UNKNOWN, "net.no-answer", "%s: the answer is not HTTP/1.1", f->where);
        return fz_hint(err, "does this port speak TLS (https) or another protocol?");
    }
    return fz_fail(err, FZ_UNKNOWN, "net.no-answer", "%s: the connection ended before an answer came: %s", f->where, reason(f));
}
