/* What everything of AWS rests on, asked once for catalogs that share it: region, credentials, role, identity, clock, endpoints. */
#include "ops/doctor_int.h"
#include <stdio.h>
#include <time.h>

enum { SKEW_MS = 300000 };

typedef struct doc_scope {
    const char *key;
    doc_step *region, *credentials, *role, *identity; /* NULL: not asked */
    const char *region_name, *account, *arn;
    struct doc_scope *next;
} doc_scope;

static const char *opt(const doc_catalog *c, const char *key) { return fz_pair_get(c->need->options, c->need->n_options, key); }
static bool on_s3(const char *location) { return location && location[0] == 's' && location[1] == '3'; }

/* Nothing of AWS but S3 is used. */
static bool only_store(const doc_catalog *c) { return strcmp(c->kind, "glue") != 0 && strcmp(c->kind, "s3tables") != 0 && strcmp(c->kind, "rest") != 0; }

/* Options that decide who and where we are. */
static const char *scope_key(doctor *d, const doc_catalog *c) {
    fz_buf b = {0};
    for (size_t i = 0; i < c->need->n_options; i++) {
        const fz_pair *p = &c->need->options[i];
        if (fz_starts(p->key, "client.") || strcmp(p->key, "s3.region") == 0 || strcmp(p->key, "s3.access-key-id") == 0) fz_buf_printf(&b, "%s=%s\n", p->key, p->value);
    }
    const char *key = fz_arena_strdup(d->a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return key;
}

/* ---- region and credentials ---- */

static void region_step(doctor *d, doc_scope *s, doc_catalog *c) {
    fz_error e = {0};
    const char *source = "";
    s->region = doc_begin(d, "doctor.region", c->need->name);
    doc_asked(d, s->region, "client.region, AWS_REGION, AWS_DEFAULT_REGION, the profile's region, the instance");
    fz_status rc = fio_aws(c->io, &c->aws, &e);
    if (rc == FZ_OK) rc = aws_session_region(c->aws, &s->region_name, &source, &e);
    if (rc == FZ_OK) {
        s->region_name = fz_arena_strdup(d->a, s->region_name); /* the session may be gone before the examination is over */
        doc_ok(d, s->region, "%s (%s)", s->region_name, source ? source : "?");
        return;
    }
    if (only_store(c) && c->aws && opt(c, "s3.region")) {
        s->region_name = opt(c, "s3.region");
        doc_ok(d, s->region, "%s (option s3.region)", s->region_name);
        return;
    }
    if (!c->aws && !strstr(e.code, "region")) { /* the profile's file or an option is wrong */
        doc_ok(d, s->region, "not known: the session cannot be made");
        s->credentials = doc_begin(d, "doctor.credentials", c->need->name);
        doc_asked(d, s->credentials, "options, environment and profile files");
        doc_fail_error(d, s->credentials, &e);
        return;
    }
    doc_fail_error(d, s->region, &e);
    doc_advise(d, s->region, "export AWS_REGION=... in the environment of this process (systemd: EnvironmentFile), or 'client.region' in CREATE CATALOG %s", c->need->name);
}

static void tell_credentials(doctor *d, doc_step *s, const aws_credentials *cr) {
    char key[64] = "****";
    size_t n = strlen(cr->access_key);
    if (n > 4) snprintf(key, sizeof key, "****%s", cr->access_key + n - 4);
    if (!cr->expires_ms) doc_ok(d, s, "%s, access key %s", cr->source, key);
    else doc_ok(d, s, "%s, access key %s, valid for %lld minutes", cr->source, key, (long long)((cr->expires_ms - fz_now_ms()) / 60000));
}

static bool credentials_of(doctor *d, doc_step *s, aws_session *aws) {
    fz_error e = {0};
    aws_credentials cr;
    if (aws_provider_get(aws_session_provider(aws), d->a, &cr, &e) == FZ_OK) {
        tell_credentials(d, s, &cr);
        return true;
    }
    doc_fail_error(d, s, &e);
    return false;
}

/* The session without the role, for what the role itself rests on. */
static aws_session *base_session(doctor *d, const doc_catalog *c) {
    fz_pair *v = FZ_ANEWN(d->a, fz_pair, c->need->n_options + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->need->n_options; i++)
        if (!fz_starts(c->need->options[i].key, "client.assume-role.") && strcmp(c->need->options[i].key, "client.factory") != 0) v[n++] = c->need->options[i];
    aws_session *s = NULL;
    fz_error ignored;
    return aws_session_new(v, n, &s, &ignored) == FZ_OK ? s : NULL;
}

/* ---- the role ---- */

static fz_status get_role(doctor *d, aws_session *s, const char *name, const char *region, aws_answer *ans, fz_error *err) {
    bool custom = false;
    const char *url, *signing = strcmp(aws_partition(region), "aws-cn") == 0 ? "cn-north-1" : strcmp(aws_partition(region), "aws-us-gov") == 0 ? "us-gov-west-1" : "us-east-1";
    *ans = (aws_answer){0};
    FZ_TRY(aws_endpoint(s, "iam", NULL, d->a, &url, &custom, err));
    if (!custom) /* IAM has one place a partition */
        url = strcmp(signing, "us-east-1") == 0 ? "https://iam.amazonaws.com" : fz_arena_printf(d->a, "https://iam.%s.%s", signing, aws_dns_suffix(region));
    fz_buf b = {0};
    fz_buf_puts(&b, "Action=GetRole&Version=2010-05-08&RoleName=");
    net_encode(&b, name, strlen(name), false);
    const net_header headers[] = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    aws_request rq = {.service = "iam", .region = signing, .method = "POST", .endpoint = url, .path = "/", .headers = headers, .n_headers = 1,
                      .body = {.p = b.data, .n = b.len, .fd = -1}, .idempotent = true, .max_attempts = 2, .timeout_ms = DOC_STEP_MS};
    fz_status rc = aws_send(s, &rq, ans, err);
    fz_buf_free(&b);
    return rc;
}

static const char *role_name(const char *arn) { return strrchr(arn, '/') ? strrchr(arn, '/') + 1 : arn; }

doc_step *doc_principal(doctor *d, aws_session *aws, const char *arn, const char *region) {
    doc_step *s = doc_find(d, "doctor.principal", arn);
    if (s) return s;
    s = doc_begin(d, "doctor.principal", arn);
    fz_error e = {0};
    aws_answer ans = {0};
    doc_asked(d, s, "iam GetRole %s", role_name(arn));
    fz_status rc = get_role(d, aws, role_name(arn), region, &ans, &e);
    if (rc == FZ_OK) doc_ok(d, s, "the role exists");
    else if (strcmp(ans.error_code, "NoSuchEntity") == 0 || ans.http.status == 404) {
        doc_fail_error(d, s, &e);
        doc_advise(d, s, "the role was never created, or its name is misspelt: terraform apply, or aws iam create-role --role-name %s --assume-role-policy-document ...", role_name(arn));
    } else doc_ok(d, s, "cannot be looked at: %s", doc_error_text(d, &e)); /* the right to look is not needed to assume it */
    if (rc == FZ_OK || ans.http.arena) aws_answer_free(&ans);
    return s;
}

static void role_steps(doctor *d, doc_scope *s, doc_catalog *c, const char *arn) {
    aws_session *base = base_session(d, c);
    s->credentials = doc_begin(d, "doctor.credentials", c->need->name);
    doc_asked(d, s->credentials, "the chain of credentials, below the role");
    if (doc_blocked(d, s->credentials, s->region)) return;
    if (!base || !credentials_of(d, s->credentials, base)) {
        if (!base) doc_fail(d, s->credentials, "the session without the role cannot be made");
        aws_session_unref(base);
        return;
    }
    const doc_step *principal = doc_principal(d, base, arn, s->region_name);
    s->role = doc_begin(d, "doctor.assume-role", arn);
    doc_asked(d, s->role, "sts AssumeRole %s", arn);
    if (!doc_blocked(d, s->role, principal) && !credentials_of(d, s->role, c->aws))
        doc_advise(d, s->role, "allow sts:AssumeRole on %s to the identity, and name the identity in the role's trust policy", arn);
    aws_session_unref(base);
}

/* ---- identity and clock ---- */

/* The Date of an answer, whatever its status, against our clock. */
static void clock_step(doctor *d, const char *url, const net_tls *tls, const char *subject) {
    net_request rq = {.method = "HEAD", .url = fz_arena_printf(d->a, "%s/", url), .tls = tls ? *tls : (net_tls){0}, .connect_timeout_ms = DOC_STEP_MS / 2, .timeout_ms = DOC_STEP_MS / 2,
                      .repeatable = true};
    net_answer ans;
    fz_error ignored;
    const char *date = net_exchange(&rq, &ans, &ignored) == FZ_OK ? net_answer_header(&ans, "date") : NULL;
    struct tm tm = {0};
    if (date && strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm)) {
        int64_t theirs = (int64_t)timegm(&tm) * 1000, ours = (ans.sent_ms + ans.received_ms) / 2, off = ours - theirs;
        doc_step *s = doc_begin(d, "doctor.clock", subject);
        doc_asked(d, s, "Date in an answer of %s", url);
        if (off > SKEW_MS || off < -SKEW_MS) {
            doc_warn(d, s, "this machine's clock is %lld s %s the service's", (long long)(off < 0 ? -off : off) / 1000, off < 0 ? "behind" : "ahead of");
            doc_advise(d, s, "set the clock (chronyc makestep): signatures are corrected by the difference, but presigned logins and certificates are not");
        } else doc_ok(d, s, "within %lld s of the service's", (long long)((off < 0 ? -off : off) / 1000 + 1));
    }
    net_answer_free(&ans);
}

static bool refused(const fz_error *e) { return e->cls == FZ_USER; }

static void identity_step(doctor *d, doc_scope *s, doc_catalog *c, bool services_elsewhere) {
    const char *url;
    bool custom = false;
    fz_error e = {0};
    s->identity = doc_begin(d, "doctor.identity", c->need->name);
    doc_asked(d, s->identity, "sts GetCallerIdentity");
    if (doc_blocked(d, s->identity, s->region) || doc_blocked(d, s->identity, s->credentials) || doc_blocked(d, s->identity, s->role)) return;
    if (aws_endpoint(c->aws, "sts", NULL, d->a, &url, &custom, &e) != FZ_OK) {
        doc_fail_error(d, s->identity, &e);
        return;
    }
    if (services_elsewhere && !custom) {
        doc_ok(d, s->identity, "not asked: the endpoints of the script are not AWS's");
        return;
    }
    aws_identity me;
    const char *address = "";
    if (net_reach(url, aws_session_tls(c->aws), DOC_STEP_MS / 2, d->a, &address, &e) != FZ_OK) {
        doc_warn(d, s->identity, "STS cannot be reached: %s [%s]", e.message, e.code);
        doc_advise(d, s->identity, "nothing but this step needs %s, unless a role is assumed; without it nobody can say whose credentials these are", url);
        return;
    }
    if (aws_caller_identity(c->aws, d->a, &me, &e) == FZ_OK) {
        s->account = me.account;
        s->arn = me.arn;
        doc_ok(d, s->identity, "%s", me.arn);
        clock_step(d, url, aws_session_tls(c->aws), c->need->name);
        return;
    }
    if (!refused(&e)) {
        doc_warn(d, s->identity, "%s", doc_error_text(d, &e));
        return;
    }
    doc_fail_error(d, s->identity, &e);
    if (strstr(e.message, "Expired")) doc_advise(d, s->identity, "renew the credentials (aws sso login, or a new session token), or let the profile name a role so that they renew themselves");
    else doc_advise(d, s->identity, "check access key and secret key of the source that doctor.credentials names");
}

static doc_scope *scope_of(doctor *d, doc_catalog *c, bool services_elsewhere) {
    const char *key = scope_key(d, c), *arn = opt(c, "client.assume-role.arn");
    for (doc_scope *s = d->scopes; s; s = s->next)
        if (strcmp(s->key, key) == 0) {
            fz_error ignored;
            if (fio_aws(c->io, &c->aws, &ignored) != FZ_OK) c->aws = NULL;
            return s;
        }
    doc_scope *s = FZ_ANEW(d->a, doc_scope);
    s->key = key;
    s->next = d->scopes;
    d->scopes = s;
    region_step(d, s, c);
    if (s->credentials) return s; /* has failed already */
    const char *own = only_store(c) ? opt(c, "s3.access-key-id") : NULL;
    if (own) {
        s->credentials = doc_begin(d, "doctor.credentials", c->need->name);
        doc_asked(d, s->credentials, "the options of the store");
        if (!doc_blocked(d, s->credentials, s->region)) doc_ok(d, s->credentials, "option s3.access-key-id, access key ****%s", strlen(own) > 4 ? own + strlen(own) - 4 : "");
        return s;
    }
    if (arn) role_steps(d, s, c, arn);
    else {
        s->credentials = doc_begin(d, "doctor.credentials", c->need->name);
        doc_asked(d, s->credentials, "the chain: options, environment, web identity, profile, container, instance");
        if (!doc_blocked(d, s->credentials, s->region)) (void)credentials_of(d, s->credentials, c->aws);
    }
    identity_step(d, s, c, services_elsewhere);
    return s;
}

/* ---- endpoints ---- */

/* Something of our own answers there, not AWS: on this machine, in this network, or under a name that is not AWS's. */
static bool is_aws(const char *url) { return strstr(url, ".amazonaws.com") || strstr(url, ".api.aws") || strstr(url, ".on.aws"); }
static bool on_this_machine(const char *url) {
    const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
    return fz_starts(host, "127.") || fz_starts(host, "localhost") || fz_starts(host, "[::1]") || fz_starts(host, "0.0.0.0");
}

static void advise_unreachable(doctor *d, doc_step *s, const char *url, const char *service) {
    if (on_this_machine(url)) doc_advise(d, s, "nothing answers at %s on this machine: start what should listen there, or correct the endpoint (the option of this script, or AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_... in the environment)", url);
    else if (!is_aws(url)) doc_advise(d, s, "is the service at %s up, and does a firewall or proxy stand between? Else correct the endpoint", url);
    else doc_advise(d, s, "let HTTPS out: route and security group, HTTPS_PROXY, or in a VPC without a way out an endpoint for com.amazonaws.REGION.%s", service);
}

static void reach(doctor *d, doc_step *s, const char *url, const net_tls *tls, const char *service) {
    fz_error e = {0};
    const char *address = "";
    doc_asked(d, s, "connect to %s", url);
    if (net_reach(url, tls, DOC_STEP_MS, d->a, &address, &e) == FZ_OK) {
        doc_ok(d, s, "reached%s%s%s", *address ? " at " : "", address, fz_starts(url, "https") ? ", TLS good" : "");
        return;
    }
    doc_fail_error(d, s, &e);
    if (strcmp(e.code, "net.resolve") == 0) doc_advise(d, s, "the name does not resolve: is the region spelt right, does DNS work on this machine (getent hosts)?");
    else if (strcmp(e.code, "net.tls-certificate") == 0) doc_advise(d, s, "the certificate is not trusted: a proxy that opens TLS needs its CA in AWS_CA_BUNDLE; else somebody else answers under this name");
    else if (strcmp(e.code, "net.tls") == 0) doc_advise(d, s, "the port does not speak TLS: http instead of https, or a proxy?");
    else if (strcmp(e.code, "net.proxy") == 0) doc_advise(d, s, "check HTTPS_PROXY and NO_PROXY of this process");
    else advise_unreachable(d, s, url, service);
}

/* The endpoint of a service as the options and the environment name it; `on` must be good (the region). */
static const doc_step *endpoint_step(doctor *d, doc_catalog *c, const char *code, const char *service, const char *given, const doc_step *on) {
    const char *url = given;
    fz_error e = {0};
    if (on && !doc_good(on)) {
        doc_step *s = doc_begin(d, code, given);
        (void)doc_blocked(d, s, on);
        return s;
    }
    if (service && aws_endpoint(c->aws, service, given, d->a, &url, NULL, &e) != FZ_OK) {
        doc_step *s = doc_begin(d, code, given);
        doc_fail_error(d, s, &e);
        return s;
    }
    doc_step *s = doc_find(d, code, url);
    if (s) return s;
    s = doc_begin(d, code, url);
    if (!doc_blocked(d, s, NULL)) reach(d, s, url, c->aws ? aws_session_tls(c->aws) : NULL, service ? service : "execute-api");
    return s;
}

/* ---- all together ---- */

static const doc_step *first_bad(const doc_step *const *v, int n) {
    const doc_step *last = NULL;
    for (int i = 0; i < n; i++) {
        if (v[i] && !doc_good(v[i])) return v[i];
        if (v[i]) last = v[i];
    }
    return last;
}

/* Some table of the catalog lies in S3. */
static bool tables_on_s3(const doctor *d, const doc_catalog *c) {
    if (on_s3(opt(c, "warehouse"))) return true;
    for (uint32_t i = 0; i < d->plan->n_tables; i++)
        if (&d->catalogs[d->plan->tables[i].catalog] == c && on_s3(d->plan->tables[i].location)) return true;
    return false;
}

void doc_aws_ground(doctor *d, doc_catalog *c) {
    bool glue = strcmp(c->kind, "glue") == 0, tables = strcmp(c->kind, "s3tables") == 0, rest = strcmp(c->kind, "rest") == 0;
    const char *sigv4 = opt(c, "rest.sigv4-enabled");
    bool s3 = glue || tables || tables_on_s3(d, c);
    if (rest) { /* credentials for the store come with the table, unless the same sign both */
        const doc_step *e = endpoint_step(d, c, "doctor.endpoint.rest", NULL, opt(c, "uri"), NULL);
        c->ground = e;
        if (!sigv4 || !fz_ieq(sigv4, "true")) return;
        s3 = false;
    }
    if (!glue && !tables && !s3 && !rest) return;
    const char *service_url = glue ? opt(c, "glue.endpoint") : tables ? opt(c, "s3tables.endpoint") : rest ? opt(c, "uri") : opt(c, "s3.endpoint");
    bool elsewhere = service_url && !is_aws(service_url);
    doc_scope *s = scope_of(d, c, elsewhere);
    c->region = s->region_name;
    c->account = s->account;
    c->arn = s->arn;
    const doc_step *known[] = {s->region, s->credentials, s->role, s->identity, NULL}, *who = first_bad(known, 4), *place = first_bad(known, 1);
    const doc_step *service = glue     ? endpoint_step(d, c, "doctor.endpoint.glue", "glue", opt(c, "glue.endpoint"), place)
                              : tables ? endpoint_step(d, c, "doctor.endpoint.s3tables", "s3tables", opt(c, "s3tables.endpoint"), place)
                                       : c->ground;
    const doc_step *store = s3 ? endpoint_step(d, c, "doctor.endpoint.s3", "s3", opt(c, "s3.endpoint"), place) : NULL;
    const doc_step *for_catalog[] = {who, service}, *for_store[] = {who, store};
    if (glue || tables || rest) c->ground = first_bad(for_catalog, 2);
    c->store = store ? first_bad(for_store, 2) : NULL;
}

/* The store of directories that settings name. */
void doc_settings_ground(doctor *d, doc_catalog *c) {
    const conf *s = d->plan->settings;
    fz_pair *v = FZ_ANEWN(d->a, fz_pair, 3);
    size_t n = 0;
    const char *region = conf_get(s, "s3.region") ? conf_get(s, "s3.region") : conf_get(s, "s3.endpoint.region");
    const char *key = conf_get(s, "s3.access-key") ? conf_get(s, "s3.access-key") : conf_get(s, "s3.access.key");
    if (region) v[n++] = (fz_pair){.key = "client.region", .value = region};
    if (key) v[n++] = (fz_pair){.key = "s3.access-key-id", .value = key};
    if (conf_get(s, "s3.endpoint")) v[n++] = (fz_pair){.key = "s3.endpoint", .value = conf_get(s, "s3.endpoint")};
    doc_store_ground(d, c, "directories of the settings", v, n);
}

static doc_scope *scope_for(doctor *d, doc_catalog *c, const char *kind, const char *name, const fz_pair *options, size_t n, const char *given) {
    ops_need_catalog *need = FZ_ANEW(d->a, ops_need_catalog);
    *need = (ops_need_catalog){.name = name, .options = options, .n_options = n};
    c->need = need;
    c->kind = kind;
    doc_scope *x = scope_of(d, c, given && !is_aws(given));
    c->region = x->region_name;
    c->account = x->account;
    c->arn = x->arn;
    return x;
}

void doc_store_ground(doctor *d, doc_catalog *c, const char *name, const fz_pair *options, size_t n) {
    const char *given = fz_pair_get(options, n, "s3.endpoint");
    doc_scope *x = scope_for(d, c, "store", name, options, n, given);
    const doc_step *known[] = {x->region, x->credentials, x->role, x->identity};
    const doc_step *who = first_bad(known, 4), *store = endpoint_step(d, c, "doctor.endpoint.s3", "s3", given, first_bad(known, 1)), *both[] = {who, store};
    c->store = first_bad(both, 2);
}

void doc_service_ground(doctor *d, doc_catalog *c, const char *name, const fz_pair *options, size_t n, const char *service, const char *code, const char *given, const char **url) {
    fz_error e = {0};
    *url = NULL;
    if (fio_new(options, n, &c->io, &e) != FZ_OK) {
        doc_step *s = doc_begin(d, code, name);
        doc_fail_error(d, s, &e);
        c->ground = s;
        return;
    }
    doc_scope *x = scope_for(d, c, "rest", name, options, n, given); /* the chain counts, not keys of a store */
    const doc_step *known[] = {x->region, x->credentials, x->role, x->identity};
    const doc_step *who = first_bad(known, 4), *there = endpoint_step(d, c, code, service, given, first_bad(known, 1)), *both[] = {who, there};
    c->ground = first_bad(both, 2);
    if (c->aws && aws_endpoint(c->aws, service, given, d->a, url, NULL, &e) != FZ_OK) *url = NULL;
}

/* What a source's login with credentials of AWS rests on. */
const doc_step *doc_login_ground(doctor *d, const char *subject, const fz_pair *options, size_t n) {
    ops_need_catalog need = {.name = subject, .options = options, .n_options = n};
    doc_catalog c = {.need = &need, .kind = "rest"}; /* the chain counts, not keys of a store */
    fz_error e = {0};
    if (fio_new(options, n, &c.io, &e) != FZ_OK) {
        doc_step *s = doc_begin(d, "doctor.credentials", subject);
        doc_fail_error(d, s, &e);
        return s;
    }
    doc_scope *x = scope_of(d, &c, false);
    fio_unref(c.io);
    const doc_step *known[] = {x->region, x->credentials, x->role, x->identity};
    return first_bad(known, 4);
}
