/* The container link: ECS's and EKS's agents tell credentials over HTTP.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Container credential provider".
 */
#include "aws/aws_cred_int.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 2000, ATTEMPTS = 3 };

static bool v4_allowed(const struct in_addr *a) {
    uint32_t v = ntohl(a->s_addr);
    return v >> 24 == 127 || v == 0xA9FEAA02 || v == 0xA9FEAA17; /* loopback, 169.254.170.2 (ECS), 169.254.170.23 (EKS) */
}
static bool v6_allowed(const struct in6_addr *a) {
    struct in6_addr eks;
    inet_pton(AF_INET6, "fd00:ec2::23", &eks);
    return IN6_IS_ADDR_LOOPBACK(a) || memcmp(a, &eks, sizeof eks) == 0;
}

/* Plain HTTP would show the credentials to the network: only to this machine, and to the agents' link-local addresses. */
static bool host_allowed(const char *host) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    if (getaddrinfo(host, NULL, &hints, &list) != 0) return false;
    bool ok = list != NULL;
    for (struct addrinfo *i = list; i && ok; i = i->ai_next) {
        if (i->ai_family == AF_INET) ok = v4_allowed(&((struct sockaddr_in *)(void *)i->ai_addr)->sin_addr);
        else ok = i->ai_family == AF_INET6 && v6_allowed(&((struct sockaddr_in6 *)(void *)i->ai_addr)->sin6_addr);
    }
    freeaddrinfo(list);
    return ok;
}

fz_status aws_container_url(fz_arena *a, const char **url, fz_error *err) {
    const char *relative = aws_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), *full = aws_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    net_url u;
    *url = NULL;
    if (relative) {
        if (*relative != '/') return fz_fail(err, FZ_USER, "aws.credentials", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
        *url = fz_arena_printf(a, "http://169.254.170.2%s", relative);
        return FZ_OK;
    }
    if (!full) return FZ_OK;
    if (net_url_parse(full, a, &u, NULL) != FZ_OK) return fz_fail(err, FZ_USER, "aws.credentials", "AWS_CONTAINER_CREDENTIALS_FULL_URI is no http or https URL");
    if (strcmp(u.scheme, "https") != 0 && !host_allowed(u.host)) {
        fz_fail(err, FZ_USER, "aws.credentials", "AWS_CONTAINER_CREDENTIALS_FULL_URI names host %.120s, which is not allowed over http", u.host);
        return fz_hint(err, "allowed are https, loopback, 169.254.170.2, 169.254.170.23 and fd00:ec2::23");
    }
    *url = fz_arena_strdup(a, full);
    return FZ_OK;
}

static fz_status token(fz_arena *a, const char **out, fz_error *err) {
    const char *file = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), *given = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    *out = NULL;
    if (file) {
        fz_buf b = {0};
        int e = aws_file_read(file, FZ_MAX_AWS_FILE, &b);
        if (e) return fz_fail(err, FZ_USER, "aws.credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE %s: %s", file, strerrordesc_np(e));
        fz_sv t = fz_sv_trim((fz_sv){(const char *)b.data, b.len});
        *out = fz_arena_strndup(a, t.p ? t.p : "", t.n);
        aws_buf_wipe(&b);
    } else if (given) *out = given;
    for (const char *p = *out; p && *p; p++)
        if ((unsigned char)*p < ' ') return fz_fail(err, FZ_USER, "aws.credentials", "the container's authorization token has line feeds or control characters");
    return FZ_OK;
}

static fz_status refused(const net_answer *ans, fz_arena *a, fz_error *err) {
    const char *code, *message;
    aws_json_message(ans, a, &code, &message);
    fz_fail(err, FZ_USER, "aws.credentials", "container credentials endpoint: status %d %s: %s", ans->status, code ? code : "", message ? message : "no message");
    if (ans->status == 401 || ans->status == 403) return fz_hint(err, "AWS_CONTAINER_AUTHORIZATION_TOKEN or the token file does not fit this endpoint");
    return err ? err->cls : FZ_USER;
}

fz_status aws_link_container(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    static const aws_json_names names = {"AccessKeyId", "SecretAccessKey", "Token", "Expiration", "AccountId"};
    const char *url, *tok;
    FZ_TRY(aws_container_url(q->a, &url, err));
    if (!url) {
        fz_buf_puts(q->said, "no AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI is set");
        return FZ_OK;
    }
    FZ_TRY(token(q->a, &tok, err));
    net_header h[] = {{"accept", "application/json"}, {"authorization", tok}};
    aws_ask_http rq = {.who = "container credentials endpoint", .method = "GET", .url = url, .headers = h, .n_headers = tok && *tok ? 2 : 1,
                       .timeout_ms = TIMEOUT_MS, .attempts = ATTEMPTS, .no_proxy = true};
    net_answer ans = {0};
    *there = true;
    fz_status rc = aws_ask_send(q->settings, &rq, &ans, err);
    if (rc == FZ_OK && ans.status != 200) rc = refused(&ans, q->a, err);
    else if (rc == FZ_OK) {
        rc = aws_credentials_of_json("container credentials endpoint", (const char *)ans.body.data, ans.body.len, &names, q->a, out, err);
        out->source = "container credentials";
    }
    aws_buf_wipe(&ans.body);
    net_answer_free(&ans);
    return rc;
}
