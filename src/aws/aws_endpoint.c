/* Where a service is: configured endpoints, else the pattern of its region's partition.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints"; partitions and patterns: General Reference, "Service endpoints". What is
 * derived was compared with botocore's rule sets for each service named here, in each partition (test/data/aws/endpoints.tsv).
 */
#include "aws/aws_cred_int.h"

typedef struct partition { const char *name, *prefix, *suffix, *dual_suffix; } partition;

/* The first whose prefix fits; the last fits all. */
static const partition partitions[] = {
    {"aws-cn", "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "amazonaws.com", "api.aws"},
    {"aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"aws-eusc", "eusc-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws", "", "amazonaws.com", "api.aws"},
};
static const partition *partition_of(const char *region) {
    const partition *p = partitions;
    while (!fz_starts(region, p->prefix)) p++;
    return p;
}
const char *aws_dns_suffix(const char *region) { return partition_of(region)->suffix; }
const char *aws_partition(const char *region) { return partition_of(region)->name; }

/* What a service is called elsewhere than in its signature. */
typedef struct known_service {
    const char *name;
    const char *id;      /* AWS_ENDPOINT_URL_<ID>, in lower case in a services section */
    const char *host;
    bool gov_is_fips;    /* its plain host in us-gov is a FIPS endpoint and has no other name */
} known_service;
static const known_service services[] = {
    {"sts", "STS", "sts", true},
    {"logs", "CLOUDWATCH_LOGS", "logs", true},
    {"sso", "SSO", "portal.sso", true},
    {"sso-oidc", "SSO_OIDC", "oidc", true},
    {NULL, NULL, NULL, false},
};
static const known_service *service_of(const char *name) {
    for (const known_service *s = services; s->name; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

/* --- configured --- */

static bool ignored(const aws_settings *s) {
    const char *v = aws_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (!v) v = aws_settings_profile(s, "ignore_configured_endpoint_urls");
    return v && fz_ieq(v, "true");
}

static const char *configured(const aws_settings *s, const char *service, fz_arena *a, const char **from) {
    const known_service *known = service_of(service);
    char id[64], low[64];
    size_t n = 0;
    for (const char *p = known ? known->id : service; *p && n + 1 < sizeof id; p++, n++) {
        char c = *p == '-' || *p == ' ' ? '_' : *p;
        id[n] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        low[n] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    id[n] = low[n] = 0;
    if (ignored(s)) return NULL;
    const char *v = aws_env(*from = fz_arena_printf(a, "AWS_ENDPOINT_URL_%s", id));
    if (!v) v = aws_env(*from = "AWS_ENDPOINT_URL");
    const char *section = v ? NULL : aws_settings_profile(s, "services");
    if (section) {
        *from = fz_arena_printf(a, "services section '%s'", section);
        v = aws_profiles_sub(s->profiles, AWS_SECTION_SERVICES, section, low, "endpoint_url", a);
    }
    if (!v || !*v) {
        *from = fz_arena_printf(a, "endpoint_url of profile '%s'", s->profile);
        v = aws_settings_profile(s, "endpoint_url");
    }
    return v && *v ? v : NULL;
}

/* scheme://host[:port][/path] without a slash at its end. */
static fz_status clean(const char *given, const char *from, fz_arena *a, const char **url, fz_error *err) {
    net_url u;
    fz_status rc = fz_starts(given, "http://") || fz_starts(given, "https://") ? net_url_parse(given, a, &u, NULL) : FZ_USER;
    if (rc != FZ_OK || !*u.host || u.query || strchr(given, '@') || strchr(given, '#')) {
        fz_fail(err, FZ_USER, "aws.endpoint", "%s is not the URL of an endpoint", from);
        return fz_hint(err, "write http://host:port or https://host, without user, query or fragment");
    }
    size_t n = strlen(given);
    while (n && given[n - 1] == '/') n--;
    *url = fz_arena_strndup(a, given, n);
    return FZ_OK;
}

/* --- derived --- */

static const char *derived(const aws_settings *s, const char *service, const char *region, fz_arena *a) {
    const partition *p = partition_of(region);
    const known_service *known = service_of(service);
    const char *host = known ? known->host : service;
    const char *fips = s->fips && !(known && known->gov_is_fips && !s->dualstack && strcmp(p->name, "aws-us-gov") == 0) ? "-fips" : "";
    if (strcmp(service, "s3") == 0) return fz_arena_printf(a, "https://s3%s.%s%s.%s", fips, s->dualstack ? "dualstack." : "", region, p->suffix);
    return fz_arena_printf(a, "https://%s%s.%s.%s", host, fips, region, s->dualstack ? p->dual_suffix : p->suffix);
}

fz_status aws_endpoint_of(const aws_settings *s, const char *service, const char *region, const char *given, fz_arena *a, const char **url, bool *custom, fz_error *err) {
    const char *from = "the endpoint given";
    *url = NULL;
    if (!given || !*given) given = configured(s, service, a, &from);
    *custom = given != NULL;
    if (given) return clean(given, from, a, url, err);
    if (region) *url = derived(s, service, region, a);
    return FZ_OK;
}
