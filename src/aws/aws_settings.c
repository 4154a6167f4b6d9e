/* What a session knows without asking anybody: options, environment and profile, in this order of precedence.
 *
 * What it does not do: ask the network, or hold credentials other than those that the options carry.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Environment variables list", "Config file settings list".
 */
#include "aws/aws_cred_int.h"
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

const char *aws_env(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

const char *aws_settings_option(const aws_settings *s, const char *name) { return fz_pair_get(s->options, s->n_options, name); }
const char *aws_settings_profile(const aws_settings *s, const char *key) {
    const char *v = aws_profiles_get(s->profiles, AWS_SECTION_PROFILE, s->profile, key);
    return v && *v ? v : NULL;
}

aws_settings *aws_settings_ref(aws_settings *s) {
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void aws_settings_unref(aws_settings *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    for (size_t i = 0; i < s->n_options; i++) explicit_bzero((char *)s->options[i].value, strlen(s->options[i].value));
    aws_profiles_free(s->profiles);
    fz_arena_free(s->arena);
    fz_free(s);
}

static const char *home(fz_arena *a) {
    const char *h = aws_env("HOME");
    if (h) return fz_arena_strdup(a, h);
    struct passwd pw, *found = NULL;
    char buf[4096];
    if (getpwuid_r(geteuid(), &pw, buf, sizeof buf, &found) != 0 || !found || !found->pw_dir || !*found->pw_dir) return NULL;
    return fz_arena_strdup(a, found->pw_dir);
}

static const char *path(const aws_settings *s, const char *variable, const char *dflt) {
    const char *v = aws_env(variable);
    if (v && v[0] == '~' && v[1] == '/' && s->home) return fz_arena_printf(s->arena, "%s%s", s->home, v + 1);
    if (v) return fz_arena_strdup(s->arena, v);
    return s->home ? fz_arena_printf(s->arena, "%s/%s", s->home, dflt) : NULL;
}

/* Copies the options that are ours, and refuses those that cannot be honoured. */
static fz_status take_options(aws_settings *s, const fz_pair *o, size_t n, fz_error *err) {
    const fz_option *table = aws_options();
    s->options = FZ_ANEWN(s->arena, fz_pair, n);
    for (size_t i = 0; i < n; i++) {
        const fz_option *known = fz_option_find(table, o[i].key);
        if (!known || known->state == FZ_OPT_NO_MEANING) continue;
        fz_status rc = FZ_OK;
        if (known->state == FZ_OPT_REFUSED) {
            fz_fail(err, FZ_USER, "option.refused", "option '%s' is not supported", o[i].key);
            rc = fz_hint(err, "%s", known->why);
        } else rc = fz_option_check(known, o[i].value, err);
        if (rc != FZ_OK) return o[i].line ? fz_at(err, o[i].line, o[i].column) : rc;
        s->options[s->n_options++] = (fz_pair){fz_arena_strdup(s->arena, o[i].key), fz_arena_strdup(s->arena, o[i].value), o[i].line, o[i].column};
    }
    return FZ_OK;
}

fz_status aws_region_check(const char *region, const char *from, fz_error *err) {
    size_t n = strlen(region);
    bool ok = n >= 1 && n <= 63;
    for (size_t i = 0; ok && i < n; i++) ok = (region[i] >= 'a' && region[i] <= 'z') || (region[i] >= '0' && region[i] <= '9') || (region[i] == '-' && i && i + 1 < n);
    if (ok) return FZ_OK;
    fz_fail(err, FZ_USER, "aws.region", "'%.80s' (%s) is not the name of an AWS region", region, from);
    return fz_hint(err, "names look like eu-central-1");
}

static fz_status find_region(aws_settings *s, fz_error *err) {
    struct { const char *value, *from; } from[] = {
        {aws_settings_option(s, "client.assume-role.region"), "option client.assume-role.region"},
        {aws_settings_option(s, "client.region"), "option client.region"},
        {aws_env("AWS_REGION"), "AWS_REGION"},
        {aws_env("AWS_DEFAULT_REGION"), "AWS_DEFAULT_REGION"},
        {aws_settings_profile(s, "region"), NULL},
    };
    enum { N = sizeof from / sizeof *from };
    from[N - 1].from = fz_arena_printf(s->arena, "profile '%s'", s->profile);
    for (size_t i = 0; i < N; i++) {
        if (!from[i].value || !*from[i].value) continue;
        FZ_TRY(aws_region_check(from[i].value, from[i].from, err));
        const char *value = fz_arena_strdup(s->arena, from[i].value);
        if (!s->region) s->region = value, s->region_from = from[i].from;
        if (i) { /* the region of the assumed role does not concern STS */
            s->sts_region = value;
            break;
        }
    }
    return FZ_OK;
}

static fz_status flag(const aws_settings *s, const char *variable, const char *key, bool *out, fz_error *err) {
    const char *v = aws_env(variable), *from = variable;
    if (!v) v = aws_settings_profile(s, key), from = key;
    if (!v) return FZ_OK;
    *out = fz_ieq(v, "true");
    return *out || fz_ieq(v, "false") ? FZ_OK : fz_fail(err, FZ_USER, "aws.setting", "%s: '%.40s' is neither true nor false", from, v);
}

static fz_status number(const char *from, const char *v, int64_t least, int64_t *out, fz_error *err) {
    if (!v) return FZ_OK;
    if (fz_parse_i64(fz_sv_trim(fz_sv_of(v)), out) && *out >= least && *out <= 86400000) return FZ_OK;
    return fz_fail(err, FZ_USER, "aws.setting", "%s: '%.40s' is not a whole number from %lld on", from, v, (long long)least);
}

static fz_status http_settings(aws_settings *s, fz_error *err) {
    const char *type = aws_settings_option(s, "http-client.type"), *proxy = aws_settings_option(s, "http-client.proxy-endpoint");
    bool apache = !type || !fz_ieq(type, "urlconnection");
    const char *connect = apache ? "http-client.apache.connection-timeout-ms" : "http-client.urlconnection.connection-timeout-ms";
    const char *stall = apache ? "http-client.apache.socket-timeout-ms" : "http-client.urlconnection.socket-timeout-ms";
    FZ_TRY(number(connect, aws_settings_option(s, connect), 1, &s->connect_timeout_ms, err));
    FZ_TRY(number(stall, aws_settings_option(s, stall), 1, &s->stall_timeout_ms, err));
    s->proxy = proxy;
    const char *ca = aws_env("AWS_CA_BUNDLE");
    if (!ca) ca = aws_settings_profile(s, "ca_bundle");
    if (!ca) ca = aws_env("SSL_CERT_FILE");
    if (ca) s->tls.ca_file = fz_arena_strdup(s->arena, ca);
    return FZ_OK;
}

static fz_status read_all(aws_settings *s, const fz_pair *o, size_t n, fz_error *err) {
    FZ_TRY(take_options(s, o, n, err));
    s->home = home(s->arena);
    s->config_path = path(s, "AWS_CONFIG_FILE", ".aws/config");
    s->credentials_path = path(s, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
    FZ_TRY(aws_profiles_load(s->config_path, s->credentials_path, &s->profiles, err));
    struct { const char *value, *from; } names[] = {
        {aws_settings_option(s, "client.profile-name"), "option client.profile-name"}, {aws_env("AWS_PROFILE"), "AWS_PROFILE"}, {aws_env("AWS_DEFAULT_PROFILE"), "AWS_DEFAULT_PROFILE"}};
    s->profile = "default";
    for (size_t i = 0; i < 3 && !s->profile_from; i++)
        if (names[i].value && *names[i].value) {
            s->profile = fz_arena_strdup(s->arena, fz_arena_strdup(s->arena, names[i].value));
            s->profile_from = names[i].from;
        }
    FZ_TRY(find_region(s, err));
    FZ_TRY(flag(s, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint", &s->dualstack, err));
    FZ_TRY(flag(s, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", &s->fips, err));
    const char *disabled = aws_env("AWS_EC2_METADATA_DISABLED");
    s->metadata_disabled = disabled && fz_ieq(disabled, "true");
    int64_t attempts = 5;
    const char *most = aws_env("AWS_MAX_ATTEMPTS");
    FZ_TRY(number(most ? "AWS_MAX_ATTEMPTS" : "max_attempts of the profile", most ? most : aws_settings_profile(s, "max_attempts"), 1, &attempts, err));
    s->max_attempts = (int)(attempts > 100 ? 100 : attempts);
    return http_settings(s, err);
}

fz_status aws_settings_new(const fz_pair *o, size_t n, aws_settings **out, fz_error *err) {
    aws_settings *s = FZ_NEW(aws_settings);
    atomic_init(&s->refs, 1);
    s->arena = fz_arena_new();
    fz_status rc = read_all(s, o, n, err);
    if (rc != FZ_OK) {
        if (!s->profiles) s->profiles = aws_profiles_new();
        aws_settings_unref(s);
        s = NULL;
    }
    *out = s;
    return rc;
}
