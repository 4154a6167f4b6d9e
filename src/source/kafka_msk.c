/* Logins to Amazon MSK with IAM access control.
 *
 * The Java library's own mechanism, AWS_MSK_IAM, signs the login itself; the same brokers take the same rights as SASL/OAUTHBEARER with a presigned
 * request as the token. Scripts are written with the Java names of either; librdkafka gets OAUTHBEARER.
 *
 * Whose credentials: the login module's options (a profile, or a role to assume), else the standard chain of AWS. As in Java, a profile goes before a
 * role when both are named. The region is that of the brokers' names, else the session's.
 *
 * Invariants
 *  1. Neither tokens nor the module's options stand in an error or a log.
 *
 * Source: options of MSKCredentialProvider in aws-msk-iam-auth 2.3; MSK Developer Guide, "IAM access control".
 */
#include "source/kafka_int.h"
#include "aws/aws.h"
#include <stdio.h>

struct kafka_msk {
    aws_session *session;
    char region[64];   /* "": the session's */
    bool debug;        /* awsDebugCreds: tell once who we are */
};

static const char *property(const fz_pair *o, size_t n, const char *java) {
    char key[96];
    snprintf(key, sizeof key, "properties.%s", java);
    return fz_pair_get(o, n, key);
}

static bool over_sasl(const fz_pair *o, size_t n) {
    const char *protocol = property(o, n, "security.protocol");
    return protocol && (fz_ieq(protocol, "SASL_SSL") || fz_ieq(protocol, "SASL_PLAINTEXT"));
}

bool kafka_msk_wanted(const fz_pair *o, size_t n) {
    const char *mechanism = property(o, n, "sasl.mechanism"), *handler = property(o, n, "sasl.login.callback.handler.class");
    if (!mechanism || !over_sasl(o, n)) return false;
    return fz_ieq(mechanism, "AWS_MSK_IAM") || (fz_ieq(mechanism, "OAUTHBEARER") && handler && fz_ends(handler, ".IAMOAuthBearerLoginCallbackHandler"));
}

/* --- the login module's options --- */

static const struct { const char *java, *ours; } mapped[] = {
    {"awsProfileName", "client.profile-name"},
    {"awsRoleArn", "client.assume-role.arn"},
    {"awsRoleSessionName", "client.assume-role.session-name"},
    {"awsRoleExternalId", "client.assume-role.external-id"},
    {"awsRoleAccessKeyId", "client.access-key-id"},
    {"awsRoleSecretAccessKey", "client.secret-access-key"},
    {"awsRoleSessionToken", "client.session-token"},
    {"awsStsRegion", "client.region"},
    {"awsDebugCreds", NULL},
    {"awsMaxRetries", NULL},       /* renewals are tried again for as long as it takes */
    {"awsMaxBackOffTimeMs", NULL},
};
enum { N_MAPPED = sizeof mapped / sizeof *mapped };

static fz_status check_module(const fz_pair *o, size_t n, const kafka_jaas *j, fz_error *err) {
    bool iam = fz_ieq(property(o, n, "sasl.mechanism"), "AWS_MSK_IAM");
    const char *module = iam ? "software.amazon.msk.auth.iam.IAMLoginModule" : "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
    if (!fz_ends(j->module, module)) {
        fz_fail(err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config names another login module than mechanism %s needs", iam ? "AWS_MSK_IAM" : "OAUTHBEARER");
        return fz_hint(err, "write: %s required;", module);
    }
    for (size_t i = 0; i < j->n_options; i++) {
        size_t k = 0;
        while (k < N_MAPPED && strcmp(mapped[k].java, j->options[i].name) != 0) k++;
        if (k < N_MAPPED) continue;
        fz_fail(err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config has an option that the login module for MSK does not know");
        return fz_hint(err, "it knows awsProfileName, awsRoleArn, awsRoleSessionName, awsRoleExternalId, awsRoleAccessKeyId, awsRoleSecretAccessKey, awsRoleSessionToken, awsStsRegion, awsDebugCreds");
    }
    if (j->username || j->password) return fz_fail(err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config: the login module for MSK has no username and password");
    return FZ_OK;
}

static fz_status parse(const fz_pair *o, size_t n, kafka_jaas *j, fz_error *err) {
    const char *text = property(o, n, "sasl.jaas.config");
    if (!text)
        return fz_fail(err, FZ_USER, "option.missing", "option 'properties.sasl.jaas.config' is missing: write software.amazon.msk.auth.iam.IAMLoginModule required;");
    FZ_TRY(kafka_jaas_parse(text, j, err));
    fz_status rc = check_module(o, n, j, err);
    if (rc != FZ_OK) kafka_jaas_free(j);
    return rc;
}

fz_status kafka_msk_check(const fz_pair *o, size_t n, fz_error *err) {
    kafka_jaas j;
    FZ_TRY(parse(o, n, &j, err));
    kafka_jaas_free(&j);
    return FZ_OK;
}

/* --- region --- */

static bool region_of_host(fz_sv host, char out[64]) {
    static const char *const suffixes[] = {".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".c2s.ic.gov", ".sc2s.sgov.gov"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(suffixes[i]);
        if (host.n <= n || !fz_sv_ieq((fz_sv){host.p + host.n - n, n}, fz_sv_of(suffixes[i]))) continue;
        size_t end = host.n - n, at = end;
        while (at && host.p[at - 1] != '.') at--;
        fz_sv before = {host.p, at ? at - 1 : 0}; /* what stands in front of the region's label */
        size_t label = before.n;
        while (label && before.p[label - 1] != '.') label--;
        fz_sv service = {before.p + label, before.n - label};
        if (end == at || end - at >= 64 || !(fz_sv_ieq(service, FZ_SV("kafka")) || fz_sv_ieq(service, FZ_SV("kafka-serverless")))) return false;
        for (size_t k = at; k < end; k++) out[k - at] = host.p[k] >= 'A' && host.p[k] <= 'Z' ? (char)(host.p[k] + 32) : host.p[k];
        out[end - at] = 0;
        return true;
    }
    return false;
}

bool kafka_msk_region(const char *servers, char out[64]) {
    out[0] = 0;
    for (const char *p = servers; p && *p;) {
        size_t n = strcspn(p, ",");
        fz_sv one = fz_sv_trim((fz_sv){p, n});
        size_t host = one.n;
        while (host && one.p[host - 1] != ':') host--;
        if (region_of_host((fz_sv){one.p, host ? host - 1 : one.n}, out)) return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* --- session and tokens --- */

/* Options of the session, by our names; room for N_MAPPED + 2. They point into j and region. */
static size_t session_options(const kafka_jaas *j, const char *region, fz_pair *o) {
    size_t n = 0;
    const char *profile = kafka_jaas_get(j, "awsProfileName"), *role = kafka_jaas_get(j, "awsRoleArn");
    for (size_t i = 0; i < N_MAPPED; i++) {
        const char *v = kafka_jaas_get(j, mapped[i].java);
        bool of_role = fz_starts(mapped[i].java, "awsRole") || fz_starts(mapped[i].java, "awsSts");
        if (!v || !*v || !mapped[i].ours || (of_role && (profile || !role))) continue;
        o[n++] = (fz_pair){mapped[i].ours, v, 0, 0};
    }
    if (role && !profile && !kafka_jaas_get(j, "awsRoleSessionName")) o[n++] = (fz_pair){"client.assume-role.session-name", "aws-msk-iam-auth", 0, 0};
    if (role && !profile && !kafka_jaas_get(j, "awsStsRegion") && region[0]) o[n++] = (fz_pair){"client.region", region, 0, 0};
    return n;
}

static fz_status make_session(kafka_msk *m, const kafka_jaas *j, fz_error *err) {
    fz_pair o[N_MAPPED + 2];
    size_t n = session_options(j, m->region, o);
    if (kafka_jaas_get(j, "awsProfileName") && kafka_jaas_get(j, "awsRoleArn"))
        fz_log(FZ_LOG_WARN, "kafka.role-unused", FZ_KV("why", "%s", "sasl.jaas.config names awsProfileName and awsRoleArn: the profile goes first, as in Java"), NULL);
    const char *debug = kafka_jaas_get(j, "awsDebugCreds");
    m->debug = debug && fz_ieq(debug, "true");
    return aws_session_new(o, n, &m->session, err);
}

fz_status kafka_msk_new(const fz_pair *o, size_t n, kafka_msk **out, fz_error *err) {
    kafka_jaas j;
    *out = NULL;
    if (!kafka_msk_wanted(o, n)) return FZ_OK;
    FZ_TRY(parse(o, n, &j, err));
    kafka_msk *m = FZ_NEW(kafka_msk);
    kafka_msk_region(property(o, n, "bootstrap.servers"), m->region);
    fz_status rc = make_session(m, &j, err);
    kafka_jaas_free(&j);
    if (rc == FZ_OK) *out = m;
    else kafka_msk_free(m);
    return rc;
}

void kafka_msk_free(kafka_msk *m) {
    if (!m) return;
    aws_session_unref(m->session);
    fz_free(m);
}

static void tell_identity(kafka_msk *m, fz_arena *a) {
    aws_identity who;
    fz_error err = {0};
    m->debug = false;
    if (aws_caller_identity(m->session, a, &who, &err) == FZ_OK)
        fz_log(FZ_LOG_INFO, "kafka.identity", FZ_KV("arn", "%s", who.arn), FZ_KV("account", "%s", who.account), NULL);
    else fz_log_error(FZ_LOG_WARN, "kafka.identity", &err);
}

fz_status kafka_msk_give_token(kafka_msk *m, rd_kafka_t *rk, fz_error *err) {
    fz_arena *a = fz_arena_new();
    const char *token, *whose;
    int64_t expires_ms;
    char text[256];
    if (m->debug) tell_identity(m, a);
    fz_status rc = aws_msk_token(m->session, m->region[0] ? m->region : NULL, a, &token, &expires_ms, &whose, err);
    if (rc == FZ_OK && rd_kafka_oauthbearer_set_token(rk, token, expires_ms, whose, NULL, 0, text, sizeof text) != RD_KAFKA_RESP_ERR_NO_ERROR)
        rc = fz_fail(err, FZ_RETRY, "kafka.token", "the Kafka client does not take the token for MSK: %s", text);
    fz_arena_free(a);
    return rc;
}

fz_status kafka_aws_login(const fz_pair *options, size_t n, fz_arena *a, fz_pair **out, size_t *n_out, bool *wanted, fz_error *err) {
    kafka_jaas j;
    char region[64];
    *n_out = 0;
    if (!(*wanted = kafka_msk_wanted(options, n))) return FZ_OK;
    FZ_TRY(parse(options, n, &j, err));
    kafka_msk_region(property(options, n, "bootstrap.servers"), region);
    fz_pair *o = *out = FZ_ANEWN(a, fz_pair, N_MAPPED + 3);
    size_t k = session_options(&j, region, o);
    if (region[0] && !fz_pair_get(o, k, "client.region")) o[k++] = (fz_pair){"client.region", region, 0, 0}; /* tokens are signed for it */
    for (size_t i = 0; i < k; i++) o[i].value = fz_arena_strdup(a, o[i].value);
    *n_out = k;
    kafka_jaas_free(&j);
    return FZ_OK;
}
