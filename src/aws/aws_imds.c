/* The instance metadata service, version 2 only: a token is asked for with PUT, then everything else with it. Version 1 is not fallen back to: every
 * instance speaks version 2, and a refused PUT means that somebody forbade it.
 *
 * Source: EC2 User Guide, "Use IMDSv2"; variables: AWS SDKs and Tools Reference Guide, "IMDS credential provider".
 */
#include "aws/aws_cred_int.h"
#include <stdlib.h>

typedef struct imds {
    const aws_settings *settings;
    fz_arena *a;
    const char *base, *token;
    int64_t timeout_ms;
    int attempts;
} imds;

static const char *setting(const aws_settings *s, const char *variable, const char *key) {
    const char *v = aws_env(variable);
    return v ? v : aws_settings_profile(s, key);
}

static int64_t bounded(const char *variable, int64_t dflt, int64_t most) {
    const char *v = aws_env(variable);
    int64_t n;
    return v && fz_parse_i64(fz_sv_of(v), &n) && n >= 1 ? (n < most ? n : most) : dflt;
}

static fz_status start(const aws_settings *s, fz_arena *a, imds *m, fz_error *err) {
    const char *base = setting(s, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
    const char *mode = setting(s, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode");
    net_url u;
    if (mode && !fz_ieq(mode, "IPv4") && !fz_ieq(mode, "IPv6"))
        return fz_fail(err, FZ_USER, "aws.setting", "the mode of the instance metadata service, '%.20s', is neither IPv4 nor IPv6", mode);
    if (!base) base = mode && fz_ieq(mode, "IPv6") ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    if (net_url_parse(base, a, &u, NULL) != FZ_OK) return fz_fail(err, FZ_USER, "aws.setting", "the endpoint of the instance metadata service is no http URL");
    size_t n = strlen(base);
    while (n && base[n - 1] == '/') n--;
    *m = (imds){.settings = s, .a = a, .base = fz_arena_strndup(a, base, n), .timeout_ms = bounded("AWS_METADATA_SERVICE_TIMEOUT", 1, 60) * 1000,
                .attempts = (int)bounded("AWS_METADATA_SERVICE_NUM_ATTEMPTS", 1, 10)};
    return FZ_OK;
}

static fz_status call(const imds *m, const char *method, const char *path, net_answer *ans, fz_error *err) {
    net_header ttl = {"x-aws-ec2-metadata-token-ttl-seconds", "21600"}, token = {"x-aws-ec2-metadata-token", m->token};
    aws_ask_http rq = {.who = "instance metadata service", .method = method, .url = fz_arena_printf(m->a, "%s%s", m->base, path), .headers = m->token ? &token : &ttl,
                       .n_headers = 1, .timeout_ms = m->timeout_ms, .attempts = m->attempts, .no_proxy = true};
    return aws_ask_send(m->settings, &rq, ans, err);
}

/* 0: text is the answer; else the status. */
static fz_status get(const imds *m, const char *path, int *status, const char **text, fz_error *err) {
    net_answer ans = {0};
    fz_status rc = call(m, m->token ? "GET" : "PUT", path, &ans, err);
    *status = ans.status == 200 ? 0 : ans.status;
    *text = rc == FZ_OK ? fz_arena_strndup(m->a, ans.body.data ? (const char *)ans.body.data : "", ans.body.len) : "";
    aws_buf_wipe(&ans.body);
    net_answer_free(&ans);
    return rc;
}

static fz_status token(imds *m, int *status, fz_error *err) {
    const char *text;
    FZ_TRY(get(m, "/latest/api/token", status, &text, err));
    for (const char *p = text; *status == 0 && *p; p++)
        if (*p < ' ' || *p > '~') *status = 1;
    if (*status == 0 && *text) m->token = text;
    else if (*status == 0) *status = 1;
    return FZ_OK;
}

static fz_status of_role(const imds *m, const char *role, aws_credentials *out, fz_error *err) {
    static const aws_json_names names = {"AccessKeyId", "SecretAccessKey", "Token", "Expiration", "AccountId"};
    const char *text;
    int status;
    fz_buf path = {0};
    fz_buf_puts(&path, "/latest/meta-data/iam/security-credentials/");
    net_encode(&path, role, strlen(role), false);
    fz_status rc = get(m, fz_buf_cstr(&path), &status, &text, err);
    fz_buf_free(&path);
    FZ_TRY(rc);
    if (status) return fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "instance metadata service: status %d for role %.80s", status, role);
    json_t *o = json_loads(text, 0, NULL);
    const char *code = json_string_value(json_object_get(o, "Code"));
    if (code && strcmp(code, "Success") != 0) rc = fz_fail(err, FZ_USER, "aws.credentials", "instance metadata service: role %.80s: %.80s", role, code);
    json_decref(o);
    FZ_TRY(rc);
    FZ_TRY(aws_credentials_of_json("instance metadata service", text, strlen(text), &names, m->a, out, err));
    out->source = fz_arena_printf(m->a, "IMDSv2, role %.80s", role);
    return FZ_OK;
}

static const char *silent(const imds *m, const fz_error *err) {
    return strstr(err->message, "no answer within") ? fz_arena_printf(m->a, "no answer within %lld s", (long long)m->timeout_ms / 1000)
                                                    : fz_arena_printf(m->a, "no answer (%.160s)", err->message);
}

fz_status aws_link_imds(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    imds m;
    int status;
    const char *role;
    fz_error why = {0};
    if (q->settings->metadata_disabled) {
        fz_buf_puts(q->said, "AWS_EC2_METADATA_DISABLED is true");
        return FZ_OK;
    }
    FZ_TRY(start(q->settings, q->a, &m, err));
    if (token(&m, &status, &why) != FZ_OK) { /* nobody there, or behind one hop too many */
        fz_buf_puts(q->said, silent(&m, &why));
        return FZ_OK;
    }
    if (status) {
        fz_buf_printf(q->said, "no token (status %d to PUT /latest/api/token)", status);
        return FZ_OK;
    }
    FZ_TRY(get(&m, "/latest/meta-data/iam/security-credentials/", &status, &role, err));
    role = fz_arena_strndup(m.a, role, strcspn(role, "\r\n"));
    if (status || !*role) {
        fz_buf_puts(q->said, status && status != 404 ? fz_arena_printf(m.a, "status %d", status) : "the instance has no role");
        return FZ_OK;
    }
    *there = true;
    return of_role(&m, role, out, err);
}

fz_status aws_imds_region(const aws_settings *s, fz_arena *a, const char **region, fz_error *err) {
    imds m;
    int status;
    const char *text;
    *region = NULL;
    if (s->metadata_disabled) return FZ_OK;
    FZ_TRY(start(s, a, &m, err));
    if (token(&m, &status, NULL) != FZ_OK || status || get(&m, "/latest/meta-data/placement/region", &status, &text, NULL) != FZ_OK || status) return FZ_OK;
    FZ_TRY(aws_region_check(text, "instance metadata service", err));
    *region = text;
    return FZ_OK;
}
