/* The session: settings, the provider of credentials, and the region, which may have to be asked for.
 *
 * Invariants
 *  1. Settings do not change; the region, once known, neither.
 * Threads: any.
 */
#include "aws/aws_cred_int.h"

struct aws_session {
    atomic_uint refs;
    aws_settings *settings;
    aws_provider *provider;
    pthread_mutex_t lock;
    char *imds_region;    /* under lock; set once */
    aws_send_state send;
};

fz_status aws_session_new(const fz_pair *o, size_t n, aws_session **out, fz_error *err) {
    aws_settings *settings;
    *out = NULL;
    FZ_TRY(aws_settings_new(o, n, &settings, err));
    aws_provider *chain = NULL, *provider = NULL;
    fz_status rc = aws_chain_provider(settings, &chain, err);
    if (rc == FZ_OK) rc = aws_role_provider(settings, chain, &provider, err);
    aws_provider_unref(chain);
    if (rc != FZ_OK) {
        aws_settings_unref(settings);
        return rc;
    }
    aws_session *s = FZ_NEW(aws_session);
    atomic_init(&s->refs, 1);
    s->settings = settings;
    s->provider = provider;
    pthread_mutex_init(&s->lock, NULL);
    aws_send_state_init(&s->send);
    *out = s;
    return FZ_OK;
}

aws_session *aws_session_ref(aws_session *s) {
    if (s) atomic_fetch_add(&s->refs, 1);
    return s;
}

void aws_session_unref(aws_session *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    aws_provider_unref(s->provider);
    aws_settings_unref(s->settings);
    aws_send_state_free(&s->send);
    pthread_mutex_destroy(&s->lock);
    fz_free(s->imds_region);
    fz_free(s);
}

aws_send_state *aws_session_send_state(aws_session *s) { return &s->send; }
int aws_session_max_attempts(const aws_session *s) { return s->settings->max_attempts; }
aws_provider *aws_session_provider(aws_session *s) { return s->provider; }
const char *aws_session_profile(const aws_session *s) { return s->settings->profile; }
const net_tls *aws_session_tls(const aws_session *s) { return &s->settings->tls; }
const char *aws_session_proxy(const aws_session *s) { return s->settings->proxy; }
int64_t aws_session_connect_timeout_ms(const aws_session *s) { return s->settings->connect_timeout_ms; }
int64_t aws_session_stall_timeout_ms(const aws_session *s) { return s->settings->stall_timeout_ms; }
bool aws_session_dualstack(const aws_session *s) { return s->settings->dualstack; }
bool aws_session_fips(const aws_session *s) { return s->settings->fips; }

static fz_status no_region(const aws_settings *s, fz_error *err) {
    fz_fail(err, FZ_USER, "aws.no-region", "no AWS region is configured");
    fz_detail(err, "option client.region, AWS_REGION and AWS_DEFAULT_REGION are not set; profile '%s' has none%s%s; %s", s->profile, *aws_profiles_note(s->profiles) ? ": " : "",
              aws_profiles_note(s->profiles), s->metadata_disabled ? "AWS_EC2_METADATA_DISABLED is true" : "the instance metadata service does not tell");
    return fz_hint(err, "set AWS_REGION, or the option client.region");
}

fz_status aws_session_region(aws_session *s, const char **region, const char **source, fz_error *err) {
    fz_status rc = FZ_OK;
    *region = s->settings->region;
    if (source) *source = s->settings->region_from;
    if (*region) return FZ_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->imds_region) {
        fz_arena *a = fz_arena_new();
        const char *told = NULL;
        rc = aws_imds_region(s->settings, a, &told, err);
        if (rc == FZ_OK && told) s->imds_region = fz_strdup(told);
        else if (rc == FZ_OK) rc = no_region(s->settings, err);
        fz_arena_free(a);
    }
    *region = s->imds_region;
    pthread_mutex_unlock(&s->lock);
    if (source) *source = "instance metadata";
    return rc;
}

fz_status aws_endpoint(aws_session *s, const char *service, const char *given, fz_arena *a, const char **url, bool *custom, fz_error *err) {
    bool configured = false;
    const char *region = NULL;
    fz_status rc = aws_endpoint_of(s->settings, service, s->settings->region, given, a, url, &configured, err);
    if (rc == FZ_OK && !*url) { /* not configured, and the region is still to be asked for */
        FZ_TRY(aws_session_region(s, &region, NULL, err));
        rc = aws_endpoint_of(s->settings, service, region, given, a, url, &configured, err);
    }
    if (custom) *custom = configured;
    return rc;
}
