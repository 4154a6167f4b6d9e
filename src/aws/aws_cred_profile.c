/* The link of the profile files, which are read anew each time: tools rewrite them.
 *
 * What a profile holds is looked at in the order of the SDK for Java v2: role with web identity, SSO, role with source_profile or
 * credential_source, credential_process, static keys. A source_profile may be the profile itself if that has static keys; any other loop is refused.
 *
 * Invariants
 *  1. A chain of source profiles ends: at most MAX_DEPTH, and none twice.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Assume role credential provider" and its neighbours.
 */
#include "aws/aws_cred_int.h"

enum { MAX_DEPTH = 8 };

typedef struct resolver {
    const aws_settings *settings;
    aws_ask *q;
    const aws_profiles *p;
    const char *visited[MAX_DEPTH];
    size_t n_visited;
    fz_error *err;
} resolver;

static const char *get(const resolver *r, const char *profile, const char *key) {
    const char *v = aws_profiles_get(r->p, AWS_SECTION_PROFILE, profile, key);
    return v && *v ? v : NULL;
}
static const char *copy(const resolver *r, const char *s) { return s ? fz_arena_strdup(r->q->a, s) : NULL; }

static fz_status wrong(const resolver *r, const char *profile, const char *why) { return fz_fail(r->err, FZ_USER, "aws.credentials", "profile '%s': %s", profile, why); }

static fz_status static_keys(const resolver *r, const char *profile, aws_credentials *out, bool *there) {
    const char *key = get(r, profile, "aws_access_key_id"), *secret = get(r, profile, "aws_secret_access_key");
    if (!key && !secret) return FZ_OK;
    if (!key || !secret) return wrong(r, profile, key ? "it has aws_access_key_id, but no aws_secret_access_key" : "it has aws_secret_access_key, but no aws_access_key_id");
    *out = (aws_credentials){.access_key = copy(r, key), .secret_key = copy(r, secret), .token = copy(r, get(r, profile, "aws_session_token")),
                             .account = copy(r, get(r, profile, "aws_account_id")), .source = fz_arena_printf(r->q->a, "profile '%s'", profile)};
    *there = true;
    return aws_credentials_check(out->source, out, r->err);
}

static fz_status resolve(resolver *r, const char *profile, aws_credentials *out, bool *there);

static fz_status from_source_profile(resolver *r, const char *profile, const char *source, aws_credentials *out) {
    bool there = false;
    if (!aws_profiles_has(r->p, AWS_SECTION_PROFILE, source))
        return fz_fail(r->err, FZ_USER, "aws.credentials", "profile '%s': its source_profile '%s' is not in %s or %s", profile, source,
                       r->settings->config_path ? r->settings->config_path : "(no config file)", r->settings->credentials_path ? r->settings->credentials_path : "(no credentials file)");
    if (strcmp(source, profile) == 0) {
        FZ_TRY(static_keys(r, profile, out, &there));
        return there ? FZ_OK : wrong(r, profile, "its source_profile is itself, but it has no keys");
    }
    FZ_TRY(resolve(r, source, out, &there));
    return there ? FZ_OK : fz_fail(r->err, FZ_USER, "aws.credentials", "profile '%s': its source_profile '%s' has no credentials", profile, source);
}

static fz_status from_credential_source(resolver *r, const char *profile, const char *source, aws_credentials *out) {
    static const struct { const char *name; aws_link_fn ask; } known[] = {
        {"Environment", aws_environment}, {"Ec2InstanceMetadata", aws_link_imds}, {"EcsContainer", aws_link_container}};
    for (size_t i = 0; i < 3; i++) {
        if (!fz_ieq(source, known[i].name)) continue;
        fz_buf said = {0};
        aws_ask q = {r->q->settings, r->q->a, &said};
        bool there = false;
        fz_status rc = known[i].ask(&q, out, &there, r->err);
        if (rc == FZ_OK && !there) {
            bool silent = known[i].ask == aws_link_imds; /* it may be starting */
            rc = fz_fail(r->err, silent ? FZ_RETRY : FZ_USER, silent ? "aws.credentials-unavailable" : "aws.credentials", "profile '%s': credential_source %s: %s", profile, known[i].name, fz_buf_cstr(&said));
        }
        fz_buf_free(&said);
        return rc;
    }
    fz_fail(r->err, FZ_USER, "aws.credentials", "profile '%s': credential_source '%.40s' is not known", profile, source);
    return fz_hint(r->err, "it is Environment, Ec2InstanceMetadata or EcsContainer");
}

static fz_status role_settings(const resolver *r, const char *profile, aws_role *role) {
    const char *duration = get(r, profile, "duration_seconds");
    *role = (aws_role){.arn = get(r, profile, "role_arn"), .session_name = get(r, profile, "role_session_name"), .external_id = get(r, profile, "external_id")};
    role->source = fz_arena_printf(r->q->a, "role %s of profile '%s'", role->arn, profile);
    if (duration && (!fz_parse_i64(fz_sv_of(duration), &role->duration_s) || role->duration_s < 900 || role->duration_s > 43200))
        return wrong(r, profile, "duration_seconds is not a number from 900 to 43200");
    return aws_sts_region(r->settings, get(r, profile, "region"), &role->region, r->err);
}

static fz_status assume(resolver *r, const char *profile, aws_credentials *out) {
    const char *source = get(r, profile, "source_profile"), *named = get(r, profile, "credential_source");
    aws_credentials base = {0};
    aws_role role;
    if (get(r, profile, "mfa_serial")) {
        wrong(r, profile, "mfa_serial asks for a one-time code, which nobody is there to type");
        return fz_hint(r->err, "use a role without MFA, or let 'aws configure export-credentials' or a credential_process provide the credentials");
    }
    if (source && named) return wrong(r, profile, "it has both source_profile and credential_source");
    if (!source && !named) return wrong(r, profile, "it has role_arn, but neither source_profile nor credential_source");
    FZ_TRY(source ? from_source_profile(r, profile, source, &base) : from_credential_source(r, profile, named, &base));
    FZ_TRY(role_settings(r, profile, &role));
    return aws_sts_assume(r->settings, &role, &base, r->q->a, out, r->err);
}

fz_status aws_web_identity(const aws_settings *s, aws_role *role, const char *token_file, fz_arena *a, aws_credentials *out, fz_error *err) {
    fz_buf token = {0};
    int e = aws_file_read(token_file, FZ_MAX_AWS_FILE, &token);
    if (e) return fz_fail(err, FZ_USER, "aws.credentials", "web identity token file %s: %s", token_file, strerrordesc_np(e));
    fz_sv t = fz_sv_trim((fz_sv){(const char *)token.data, token.len});
    char *text = fz_strndup(t.p ? t.p : "", t.n);
    aws_buf_wipe(&token);
    role->web_token = text;
    fz_status rc = *text ? aws_sts_assume(s, role, NULL, a, out, err) : fz_fail(err, FZ_USER, "aws.credentials", "web identity token file %s is empty", token_file);
    role->web_token = NULL;
    explicit_bzero(text, strlen(text));
    fz_free(text);
    return rc;
}

static fz_status with_web_identity(resolver *r, const char *profile, const char *file, aws_credentials *out) {
    aws_role role;
    FZ_TRY(role_settings(r, profile, &role));
    return aws_web_identity(r->settings, &role, file, r->q->a, out, r->err);
}

static bool has_sso(const resolver *r, const char *profile) {
    static const char *const keys[] = {"sso_session", "sso_start_url", "sso_account_id", "sso_role_name", "sso_region"};
    for (size_t i = 0; i < 5; i++)
        if (get(r, profile, keys[i])) return true;
    return false;
}

static fz_status resolve(resolver *r, const char *profile, aws_credentials *out, bool *there) {
    for (size_t i = 0; i < r->n_visited; i++)
        if (strcmp(r->visited[i], profile) == 0) return wrong(r, profile, "its chain of source_profile comes back to itself");
    if (r->n_visited == MAX_DEPTH) return wrong(r, profile, "the chain of source_profile is too long");
    r->visited[r->n_visited++] = profile;
    const char *role = get(r, profile, "role_arn"), *file = get(r, profile, "web_identity_token_file"), *process = get(r, profile, "credential_process");
    *there = true;
    if (role && file) return with_web_identity(r, profile, file, out);
    if (has_sso(r, profile)) return aws_sso_credentials(r->settings, r->p, profile, r->q->a, out, r->err);
    if (role) return assume(r, profile, out);
    if (get(r, profile, "login_session") && !process && !get(r, profile, "aws_access_key_id")) {
        wrong(r, profile, "login_session (of 'aws login') is not supported");
        return fz_hint(r->err, "in another profile: credential_process = aws configure export-credentials --profile %.60s --format process", profile);
    }
    if (process) return aws_process_credentials(r->settings, process, fz_arena_printf(r->q->a, "credential_process of profile '%s'", profile), r->q->a, out, r->err);
    *there = false;
    return static_keys(r, profile, out, there);
}

static fz_status missing(const resolver *r, const char *profile, fz_arena *a) {
    const aws_settings *s = r->settings;
    const char *names = aws_profiles_names(r->p, a);
    fz_fail(r->err, FZ_USER, "aws.credentials", "profile '%s' (%s) is in neither %s nor %s", profile, s->profile_from, s->config_path ? s->config_path : "(no config file)",
            s->credentials_path ? s->credentials_path : "(no credentials file)");
    fz_detail(r->err, "%s", aws_profiles_note(r->p));
    return fz_hint(r->err, "%s%s; in the config file a profile begins with [profile %.60s]", *names ? "profiles that are there: " : "there are no profiles at all", names, profile);
}

fz_status aws_link_profile(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) {
    const aws_settings *s = q->settings;
    aws_profiles *p;
    FZ_TRY(aws_profiles_load(s->config_path, s->credentials_path, &p, err));
    resolver r = {.settings = s, .q = q, .p = p, .err = err};
    fz_status rc = FZ_OK;
    if (aws_profiles_has(p, AWS_SECTION_PROFILE, s->profile)) {
        rc = resolve(&r, s->profile, out, there);
        if (rc == FZ_OK && !*there) fz_buf_printf(q->said, "'%s' has no credentials", s->profile);
        if (rc == FZ_OK && !*there && s->profile_from && strcmp(s->profile_from, "option client.profile-name") == 0) rc = wrong(&r, s->profile, "it has no credentials");
    } else if (s->profile_from) {
        rc = missing(&r, s->profile, q->a);
    } else {
        fz_buf_printf(q->said, "'%s' is not there", s->profile);
        if (*aws_profiles_note(p)) fz_buf_printf(q->said, " (%s)", aws_profiles_note(p));
    }
    aws_profiles_free(p);
    return rc;
}
