/* Roles that are not a profile's: the pod's (web identity) and the options' (client.assume-role.*). */
#include "aws/aws_cred_int.h"

fz_status aws_link_web_identity(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    const char *file = aws_env("AWS_WEB_IDENTITY_TOKEN_FILE");
    aws_role role = {.arn = aws_env("AWS_ROLE_ARN"), .session_name = aws_env("AWS_ROLE_SESSION_NAME")};
    if (aws_settings_option(q->settings, "client.profile-name")) {
        fz_buf_puts(q->said, "not asked, since client.profile-name is set");
        return FZ_OK;
    }
    if (!file) { /* AWS_ROLE_ARN alone is of other tools */
        fz_buf_puts(q->said, "AWS_WEB_IDENTITY_TOKEN_FILE is not set");
        return FZ_OK;
    }
    if (!role.arn) return fz_fail(err, FZ_USER, "aws.credentials", "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
    role.source = fz_arena_printf(q->a, "web identity, role %s", role.arn);
    FZ_TRY(aws_sts_region(q->settings, NULL, &role.region, err));
    *there = true;
    return aws_web_identity(q->settings, &role, file, q->a, out, err);
}

/* --- client.assume-role.* --- */

typedef struct assumed { aws_settings *settings; aws_provider *base; fz_arena *arena; aws_role role; } assumed;

static void assumed_free(void *cx) {
    assumed *x = cx;
    aws_settings_unref(x->settings);
    aws_provider_unref(x->base);
    fz_arena_free(x->arena);
    fz_free(x);
}

static fz_status fetch(void *cx, fz_arena *a, aws_credentials *out, fz_error *err) {
    assumed *x = cx;
    aws_credentials base;
    FZ_TRY(aws_provider_get(x->base, a, &base, err));
    FZ_TRY(aws_sts_region(x->settings, NULL, &x->role.region, err));
    fz_error first = {0};
    fz_status rc = aws_sts_assume(x->settings, &x->role, &base, a, out, &first);
    if (rc == FZ_USER && strstr(first.message, "ExpiredToken")) { /* the base's own: once more with new ones */
        aws_provider_expired(x->base, base.generation);
        FZ_TRY(aws_provider_get(x->base, a, &base, err));
        rc = aws_sts_assume(x->settings, &x->role, &base, a, out, &first);
    }
    if (rc != FZ_OK && err) *err = first;
    if (rc == FZ_OK) out->source = fz_arena_printf(a, "%s, assumed by %s", x->role.source, base.source);
    return rc;
}

static fz_status check_factory(const aws_settings *s, bool *assume, fz_error *err) {
    const char *factory = aws_settings_option(s, "client.factory"), *arn = aws_settings_option(s, "client.assume-role.arn");
    *assume = arn && *arn;
    if (!factory || strcmp(factory, "org.apache.iceberg.aws.AwsClientFactories$DefaultAwsClientFactory") == 0) return FZ_OK;
    if (strcmp(factory, "org.apache.iceberg.aws.AssumeRoleAwsClientFactory") == 0) {
        if (*assume && aws_settings_option(s, "client.assume-role.region")) return FZ_OK;
        return fz_fail(err, FZ_USER, "option.missing", "option client.factory = AssumeRoleAwsClientFactory needs client.assume-role.arn and client.assume-role.region");
    }
    fz_fail(err, FZ_USER, "option.refused", "option client.factory: '%.120s' is not supported", factory);
    return fz_hint(err, fz_ends(factory, "LakeFormationAwsClientFactory") ? "credentials vended by Lake Formation are not supported; let the role itself have access to the data"
                                                                        : "classes of one's own cannot run here; without the option the standard clients are used");
}

static fz_status read_role(const aws_settings *s, assumed *x, fz_error *err) {
    static const char prefix[] = "client.assume-role.tags.";
    const char *timeout = aws_settings_option(s, "client.assume-role.timeout-sec");
    x->role = (aws_role){.arn = aws_settings_option(s, "client.assume-role.arn"), .session_name = aws_settings_option(s, "client.assume-role.session-name"),
                         .external_id = aws_settings_option(s, "client.assume-role.external-id"), .duration_s = 3600};
    x->role.source = fz_arena_printf(x->arena, "role %s", x->role.arn);
    if (timeout && (!fz_parse_i64(fz_sv_of(timeout), &x->role.duration_s) || x->role.duration_s < 900 || x->role.duration_s > 43200))
        return fz_fail(err, FZ_USER, "option.invalid", "option client.assume-role.timeout-sec: '%s' is not a number from 900 to 43200", timeout);
    fz_pair *tags = FZ_ANEWN(x->arena, fz_pair, s->n_options);
    for (size_t i = 0; i < s->n_options; i++)
        if (fz_starts(s->options[i].key, prefix)) tags[x->role.n_tags++] = (fz_pair){s->options[i].key + sizeof prefix - 1, s->options[i].value, 0, 0};
    x->role.tags = tags;
    if (x->role.n_tags > 50) return fz_fail(err, FZ_USER, "option.invalid", "client.assume-role.tags: a session has at most 50 tags");
    return FZ_OK;
}

fz_status aws_role_provider(aws_settings *s, aws_provider *base, aws_provider **out, fz_error *err) {
    bool assume;
    *out = NULL;
    FZ_TRY(check_factory(s, &assume, err));
    if (!assume) {
        *out = aws_provider_ref(base);
        return FZ_OK;
    }
    assumed *x = FZ_NEW(assumed);
    x->settings = aws_settings_ref(s);
    x->base = aws_provider_ref(base);
    x->arena = fz_arena_new();
    fz_status rc = read_role(s, x, err);
    if (rc == FZ_OK) *out = aws_provider_custom(fetch, x, assumed_free);
    else assumed_free(x);
    return rc;
}
