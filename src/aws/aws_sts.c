/* STS: AssumeRole and AssumeRoleWithWebIdentity, at the region's own endpoint.
 *
 * Source: STS API reference, version 2011-06-15.
 */
#include "aws/aws_cred_int.h"
#include <stdlib.h>

enum { TIMEOUT_MS = 10000, ATTEMPTS = 3, SKEW_MS = 4 * 60 * 1000 };

static void add(fz_buf *b, const char *name, const char *value) {
    fz_buf_printf(b, "&%s=", name);
    net_encode(b, value, strlen(value), false);
}

static void make_body(const aws_role *r, fz_buf *b) {
    fz_buf_printf(b, "Action=%s&Version=2011-06-15", r->web_token ? "AssumeRoleWithWebIdentity" : "AssumeRole");
    char number[32], name[64];
    add(b, "RoleArn", r->arn);
    snprintf(name, sizeof name, "frazil-%lld", (long long)fz_now_ms());
    add(b, "RoleSessionName", r->session_name && *r->session_name ? r->session_name : name);
    snprintf(number, sizeof number, "%lld", (long long)r->duration_s);
    if (r->duration_s) add(b, "DurationSeconds", number);
    if (r->web_token) {
        add(b, "WebIdentityToken", r->web_token);
        return;
    }
    if (r->external_id && *r->external_id) add(b, "ExternalId", r->external_id);
    for (size_t i = 0; i < r->n_tags; i++) {
        snprintf(name, sizeof name, "Tags.member.%zu.Key", i + 1);
        add(b, name, r->tags[i].key);
        snprintf(name, sizeof name, "Tags.member.%zu.Value", i + 1);
        add(b, name, r->tags[i].value);
    }
}

static fz_status refused(const aws_role *r, const net_answer *ans, fz_arena *a, fz_error *err) {
    const char *xml = (const char *)ans->body.data, *what = r->web_token ? "AssumeRoleWithWebIdentity" : "AssumeRole";
    const char *code = aws_xml_text(a, xml, "Code"), *message = aws_xml_text(a, xml, "Message");
    if (!code) code = "";
    if (strstr(code, "Throttl") || strcmp(code, "IDPCommunicationError") == 0 || strcmp(code, "RequestLimitExceeded") == 0)
        return fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "STS %s for %s: %s", what, r->arn, code);
    fz_fail(err, FZ_USER, "aws.credentials", "STS refuses %s for %s: status %d %s: %.300s", what, r->arn, ans->status, code, message ? message : "no message");
    fz_detail(err, "asked by %s, in region %s", r->source, r->region);
    if (fz_starts(code, "ExpiredToken")) return fz_hint(err, "%s", r->web_token ? "the token file is stale: is whoever renews it still running?" : "the credentials that the role is assumed with have expired");
    if (strcmp(code, "AccessDenied") == 0) return fz_hint(err, "the role's trust policy must allow this principal, and for a user or role its own policy sts:AssumeRole");
    if (strcmp(code, "RegionDisabledException") == 0) return fz_hint(err, "activate STS in region %s, or name another one", r->region);
    return err ? err->cls : FZ_USER;
}

static const char *account_of(const char *arn, fz_arena *a) {
    for (int i = 0; arn && i < 4; i++) {
        arn = strchr(arn, ':');
        if (arn) arn++;
    }
    return arn ? fz_arena_strndup(a, arn, strcspn(arn, ":")) : NULL;
}

static fz_status read_answer(const aws_role *r, const net_answer *ans, fz_arena *a, aws_credentials *out, fz_error *err) {
    const char *xml = (const char *)ans->body.data, *expires = aws_xml_text(a, xml, "Expiration");
    *out = (aws_credentials){.access_key = aws_xml_text(a, xml, "AccessKeyId"), .secret_key = aws_xml_text(a, xml, "SecretAccessKey"),
                             .token = aws_xml_text(a, xml, "SessionToken"), .source = r->source, .account = account_of(aws_xml_text(a, xml, "Arn"), a)};
    if (out->access_key && out->secret_key && out->token && expires && aws_time_parse(expires, &out->expires_ms)) return aws_credentials_check("STS", out, err);
    return fz_fail(err, FZ_USER, "aws.credentials", "STS answers for %s without credentials", r->arn);
}

/* One signed exchange at the given time. */
static fz_status send(const aws_settings *s, const aws_role *r, const aws_credentials *base, const char *url, const char *body, int64_t now_ms, fz_arena *a, net_answer *ans, fz_error *err) {
    net_header h[8] = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}, {"accept", "application/xml"}};
    size_t n = 2, more = 0;
    net_url u;
    FZ_TRY(net_url_parse(url, a, &u, err));
    const char *path = u.path && *u.path ? u.path : "/";
    if (!r->web_token) {
        char sha[65];
        aws_sha256_hex(body, strlen(body), sha);
        const char *host = strstr(url, "://") + 3;
        aws_sign_input in = {.service = "sts", .region = r->region, .method = "POST", .host = fz_arena_strndup(a, host, strcspn(host, "/")), .path = path,
                             .headers = h, .n_headers = 1, .payload_sha256 = sha, .now_ms = now_ms, .encode_path_twice = true};
        aws_sign(base, &in, a, h + n, &more);
    }
    const char *full = *u.path ? url : fz_arena_printf(a, "%s/", url);
    aws_ask_http q = {.who = fz_arena_printf(a, "STS (%s)", url), .method = "POST", .url = full, .headers = h, .n_headers = n + more, .body = body,
                      .timeout_ms = TIMEOUT_MS, .attempts = ATTEMPTS};
    return aws_ask_send(s, &q, ans, err);
}

fz_status aws_sts_assume(const aws_settings *s, const aws_role *r, const aws_credentials *base, fz_arena *a, aws_credentials *out, fz_error *err) {
    const char *url;
    bool custom;
    FZ_TRY(aws_endpoint_of(s, "sts", r->region, NULL, a, &url, &custom, err));
    fz_buf body = {0};
    make_body(r, &body);
    net_answer ans = {0};
    fz_status rc = send(s, r, base, url, fz_buf_cstr(&body), fz_now_ms(), a, &ans, err);
    const char *date = rc == FZ_OK && ans.status >= 400 && !r->web_token ? net_answer_header(&ans, "date") : NULL;
    int64_t theirs = 0;
    if (date && aws_time_parse(date, &theirs) && llabs(theirs - fz_now_ms()) > SKEW_MS) { /* our clock is wrong: theirs counts */
        net_answer_free(&ans);
        rc = send(s, r, base, url, fz_buf_cstr(&body), theirs, a, &ans, err);
    }
    if (rc == FZ_OK) {
        fz_buf_cstr(&ans.body);
        rc = ans.status == 200 ? read_answer(r, &ans, a, out, err) : refused(r, &ans, a, err);
    }
    net_answer_free(&ans);
    aws_buf_wipe(&body);
    return rc;
}

fz_status aws_sts_region(const aws_settings *s, const char *of_profile, const char **region, fz_error *err) {
    *region = of_profile && *of_profile ? of_profile : s->sts_region ? s->sts_region : s->region;
    if (*region) return aws_region_check(*region, "region for STS", err);
    fz_fail(err, FZ_USER, "aws.no-region", "no region is configured whose STS could be asked for a role");
    return fz_hint(err, "set AWS_REGION, or the option client.region");
}
