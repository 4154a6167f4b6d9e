/* The chain: links asked in order until one has credentials; from then on only that one is asked (the credentials' owner does not change in a run).
 *
 * The order is that of the AWS SDK for Java v2: options, environment, web identity, profile, container, instance. Unlike there, a link that is
 * configured but wrong ends the search with its error: falling on to somebody else's credentials hides the mistake. A profile that somebody named
 * and that no file has is such an error, as in botocore and the CLI.
 *
 * Invariants
 *  1. "aws.no-credentials" says for each link, in order, what it said.
 * Threads: fetch is called by one thread at a time (aws_provider.c).
 */
#include "aws/aws_cred_int.h"

typedef struct link { const char *name; aws_link_fn ask; const char *provider; } link;

static const link links[] = {
    {"options", aws_link_options, NULL},
    {"environment", aws_link_environment, "EnvironmentVariableCredentialsProvider"},
    {"web identity", aws_link_web_identity, "WebIdentityTokenFileCredentialsProvider"},
    {"profile", aws_link_profile, "ProfileCredentialsProvider"},
    {"container", aws_link_container, "ContainerCredentialsProvider"},
    {"IMDS", aws_link_imds, "InstanceProfileCredentialsProvider"},
};
enum { N_LINKS = sizeof links / sizeof *links };

typedef struct chain {
    aws_settings *settings;
    const link *only;      /* besides the options; NULL: all */
    const link *found;     /* the one that had credentials */
    fz_arena *kept_arena;  /* credentials of the instance's role, see outlive */
    aws_credentials kept;
} chain;

static void chain_free(void *cx) {
    chain *c = cx;
    aws_settings_unref(c->settings);
    fz_arena_free(c->kept_arena);
    fz_free(c);
}

static fz_status none(const chain *c, fz_buf *said, fz_error *err) {
    fz_fail(err, FZ_USER, "aws.no-credentials", "no AWS credentials were found");
    fz_detail(err, "%s", fz_buf_cstr(said));
    const char *profile = c->settings->profile;
    if (strstr(err ? err->detail : "", "IMDS: no answer within"))
        return fz_hint(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure' for profile '%s'; on an instance with a role, from within a container: the hop limit of its metadata service must be 2", profile);
    return fz_hint(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure' for profile '%s', or give the instance, task or pod a role", profile);
}

enum { OUTLIVE_MS = 10 * 60 * 1000 };

/* An instance's metadata service that is out of order gives expired credentials, or no answer. The services take the old ones on then, so they are used
 * on, and new ones are asked for again and again ("static stability" of the SDKs). */
static fz_status outlive(chain *c, fz_status rc, fz_arena *a, aws_credentials *out, fz_error *err) {
    int64_t now = fz_now_ms();
    if (rc == FZ_OK && (out->expires_ms == 0 || out->expires_ms > now)) {
        fz_arena_free(c->kept_arena);
        c->kept_arena = fz_arena_new();
        c->kept = *out;
        c->kept.access_key = fz_arena_strdup(c->kept_arena, out->access_key);
        c->kept.secret_key = fz_arena_strdup(c->kept_arena, out->secret_key);
        c->kept.token = out->token ? fz_arena_strdup(c->kept_arena, out->token) : NULL;
        c->kept.source = fz_arena_strdup(c->kept_arena, out->source);
        c->kept.account = NULL;
        return FZ_OK;
    }
    if (rc != FZ_OK && (rc != FZ_RETRY || !c->kept_arena)) return rc;
    if (rc != FZ_OK) {
        *out = c->kept;
        out->access_key = fz_arena_strdup(a, out->access_key);
        out->secret_key = fz_arena_strdup(a, out->secret_key);
        out->token = out->token ? fz_arena_strdup(a, out->token) : NULL;
        out->source = fz_arena_strdup(a, out->source);
    }
    if (out->expires_ms < now + OUTLIVE_MS) out->expires_ms = now + OUTLIVE_MS;
    fz_log(FZ_LOG_WARN, "aws.credentials-extended", FZ_KV("source", "%s", out->source), FZ_KV("why", "%s", rc == FZ_OK ? "the metadata service gave expired ones" : err ? err->message : ""), NULL);
    return FZ_OK;
}

static fz_status ask(chain *c, const link *l, fz_arena *a, aws_credentials *out, bool *there, fz_buf *said, fz_error *err) {
    fz_buf one = {0};
    aws_ask q = {c->settings, a, &one};
    fz_status rc = l->ask(&q, out, there, err);
    if (rc == FZ_OK && !*there && c->found) rc = fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "%s: %s", l->name, fz_buf_cstr(&one));
    if (rc == FZ_USER && c->found && err && strcmp(err->code, "aws.profile-file") == 0) rc = err->cls = FZ_RETRY; /* it was whole once: somebody is writing it */
    if (l->ask == aws_link_imds && (rc != FZ_OK || *there)) {
        rc = outlive(c, rc, a, out, err);
        *there = rc == FZ_OK;
    }
    if (rc == FZ_OK && *there) c->found = l;
    else if (one.len) fz_buf_printf(said, "%s%s: %s", said->len ? "; " : "", l->name, fz_buf_cstr(&one));
    fz_buf_free(&one);
    return rc;
}

static fz_status fetch(void *cx, fz_arena *a, aws_credentials *out, fz_error *err) {
    chain *c = cx;
    fz_buf said = {0};
    fz_status rc = FZ_OK;
    bool there = false;
    for (size_t i = 0; i < N_LINKS && rc == FZ_OK && !there; i++) {
        if (c->found ? c->found != &links[i] : i && c->only && c->only != &links[i]) continue;
        rc = ask(c, &links[i], a, out, &there, &said, err);
    }
    if (rc == FZ_OK && !there) rc = none(c, &said, err);
    fz_buf_free(&said);
    return rc;
}

/* The links that option client.credentials-provider stands for. */
static fz_status choose(const aws_settings *s, const link **only, fz_error *err) {
    const char *option = aws_settings_option(s, "client.credentials-provider");
    *only = NULL;
    if (!option) return FZ_OK;
    const char *dot = strrchr(option, '.'), *name = dot ? dot + 1 : option;
    bool of_sdk = fz_starts(option, "software.amazon.awssdk.auth.credentials.") && dot == option + strlen("software.amazon.awssdk.auth.credentials");
    if (of_sdk && strcmp(name, "DefaultCredentialsProvider") == 0) return FZ_OK;
    for (size_t i = 0; of_sdk && i < N_LINKS; i++)
        if (links[i].provider && strcmp(links[i].provider, name) == 0) {
            *only = &links[i];
            return FZ_OK;
        }
    fz_fail(err, FZ_USER, "aws.credentials-provider", "option client.credentials-provider: '%.120s' is not supported", option);
    if (of_sdk && strcmp(name, "SystemPropertyCredentialsProvider") == 0) return fz_hint(err, "there are no Java system properties here: use the environment");
    return fz_hint(err, "classes of one's own cannot run here; a profile with credential_process may do what it does");
}

fz_status aws_chain_provider(aws_settings *s, aws_provider **out, fz_error *err) {
    chain *c = FZ_NEW(chain);
    fz_status rc = choose(s, &c->only, err);
    if (rc != FZ_OK) {
        fz_free(c);
        return rc;
    }
    c->settings = aws_settings_ref(s);
    *out = aws_provider_custom(fetch, c, chain_free);
    return FZ_OK;
}
