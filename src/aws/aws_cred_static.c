/* Links whose credentials are texts: options and environment. */
#include "aws/aws_cred_int.h"

fz_status aws_link_options(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    const aws_settings *s = q->settings;
    const char *key = aws_settings_option(s, "client.access-key-id"), *secret = aws_settings_option(s, "client.secret-access-key");
    const char *token = aws_settings_option(s, "client.session-token");
    if (!key && !secret) return FZ_OK; /* nobody misses them: they are not mentioned */
    if (!key || !secret || !*key || !*secret)
        return fz_fail(err, FZ_USER, "aws.credentials", "options client.access-key-id and client.secret-access-key must be given together");
    *out = (aws_credentials){.access_key = key, .secret_key = secret, .token = token && *token ? token : NULL, .source = "options client.access-key-id"};
    *there = true;
    return FZ_OK;
}

/* A line feed at the end, from $(cat file), would break the headers. */
static const char *trimmed(fz_arena *a, const char *s) {
    fz_sv t = fz_sv_trim(fz_sv_of(s));
    return fz_arena_strndup(a, t.p, t.n);
}

fz_status aws_environment(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    const char *key = aws_env("AWS_ACCESS_KEY_ID"), *secret = aws_env("AWS_SECRET_ACCESS_KEY"), *token = aws_env("AWS_SESSION_TOKEN");
    if (!key && !secret) {
        fz_buf_puts(q->said, "AWS_ACCESS_KEY_ID is not set");
        return FZ_OK;
    }
    if (!key || !secret) {
        fz_fail(err, FZ_USER, "aws.credentials", "%s is set, but %s is not", key ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY", key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
        return fz_hint(err, "set both, or none");
    }
    *out = (aws_credentials){.access_key = trimmed(q->a, key), .secret_key = trimmed(q->a, secret), .token = token ? trimmed(q->a, token) : NULL,
                             .source = "environment", .account = aws_env("AWS_ACCOUNT_ID")};
    *there = true;
    return FZ_OK;
}

fz_status aws_link_environment(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    if (!aws_settings_option(q->settings, "client.profile-name")) return aws_environment(q, out, there, err);
    fz_buf_puts(q->said, "not asked, since client.profile-name is set");
    return FZ_OK;
}
