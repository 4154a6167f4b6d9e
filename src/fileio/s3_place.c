/* Where an object is: location -> bucket and key -> endpoint and path of its requests. See s3_int.h, invariant 1.
 *
 * The bucket stands in the host name ("virtual-host style") unless it cannot: path style was asked for, the endpoint is an IP address or a name without dots, the
 * bucket is no DNS label, or it has dots and the endpoint speaks TLS (a wildcard certificate covers one label). Access points have hosts of their own.
 * Source: Amazon S3 User Guide, "Virtual hosting of buckets", "Using access points", "Amazon S3 dual-stack endpoints", "Transfer Acceleration". */
#include "fileio/s3_int.h"
#include <stdio.h>

static const char *after_scheme(const char *location) {
    if (location[0] != 's' || location[1] != '3') return NULL;
    const char *p = location + 2;
    if (*p == 'a' || *p == 'n' || *p == 'p') p++;
    return fz_starts(p, "://") ? p + 3 : NULL;
}

/* An ARN's resource "accesspoint/name" has a slash that does not end the bucket. */
static size_t bucket_len(const char *p) {
    size_t n = strcspn(p, "/");
    if (!fz_starts(p, "arn:")) return n;
    const char *resource = memmem(p, n, ":accesspoint", 12);
    return resource && resource + 12 == p + n && p[n] == '/' ? n + 1 + strcspn(p + n + 1, "/") : n;
}

bool s3_split(const char *location, fz_sv *bucket, const char **key) {
    const char *p = after_scheme(location);
    if (!p) return false;
    size_t n = bucket_len(p);
    *bucket = (fz_sv){p, n};
    *key = p[n] == '/' ? p + n + 1 : p + n;
    return true;
}

size_t s3_root_len(const char *location) {
    fz_sv bucket;
    const char *key;
    return s3_split(location, &bucket, &key) ? (size_t)(bucket.p + bucket.n - location) : 0;
}

static bool ends(fz_sv s, const char *with) {
    size_t n = strlen(with);
    return s.n > n && memcmp(s.p + s.n - n, with, n) == 0;
}
bool s3_is_table_bucket(fz_sv bucket) { return ends(bucket, "--table-s3"); }

static bool is_ip(const char *host) {
    return strchr(host, ':') || (strspn(host, "0123456789.") == strlen(host) && *host);
}

static bool dns_like(fz_sv b) {
    if (b.n < 3 || b.n > 63) return false;
    for (size_t i = 0; i < b.n; i++) {
        char c = b.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool inner = i > 0 && i + 1 < b.n;
        if (!alnum && !(inner && (c == '-' || (c == '.' && b.p[i - 1] != '.' && b.p[i - 1] != '-' && b.p[i + 1] != '-')))) return false;
    }
    return true;
}

static fz_status find_base(s3_store *s, fz_error *err) { /* the lock is held */
    if (s->base) return FZ_OK;
    const char *region = s->c.region, *base;
    bool custom = s->c.endpoint != NULL;
    if (!region) FZ_TRY(aws_session_region(s->aws, &region, NULL, err));
    fz_error e;
    if (aws_endpoint(s->aws, "s3", s->c.endpoint, s->arena, &base, &custom, &e) != FZ_OK) {
        /* No endpoint is configured, and the session knows no region to derive one from; this store has its own. */
        if (strcmp(e.code, "aws.no-region") != 0) {
            if (err) *err = e;
            return e.cls;
        }
        custom = false;
        base = fz_arena_printf(s->arena, "https://s3.%s.%s", region, aws_dns_suffix(region));
    }
    if (s->c.sse == S3_SSE_CUSTOM && !fz_starts(custom ? base : "https:", "https:"))
        return fz_fail(err, FZ_USER, "option.invalid", "s3.sse.type = custom sends its key with each request, which only https may carry: '%s'", base);
    s->region = fz_arena_strdup(s->arena, region);
    s->custom = custom;
    s->base = base;
    return FZ_OK;
}

typedef struct place {
    s3_store *s;
    fz_arena *a;
    fz_error *err;
    const char *base, *region, *suffix;
    bool custom, fips, dual;
    net_url url;      /* of base */
    const char *host; /* of url, as it stands in a URL, with the port */
} place;

static fz_status begin(place *p) {
    s3_store *s = p->s;
    pthread_mutex_lock(&s->lock);
    fz_status rc = find_base(s, p->err);
    if (rc == FZ_OK) {
        p->base = s->base;
        p->region = s->region;
        p->custom = s->custom;
    }
    pthread_mutex_unlock(&s->lock);
    FZ_TRY(rc);
    FZ_TRY(net_url_parse(p->base, p->a, &p->url, p->err));
    p->host = strchr(p->url.host, ':') ? fz_arena_printf(p->a, "[%s]", p->url.host) : p->url.host;
    if (p->url.port) p->host = fz_arena_printf(p->a, "%s:%d", p->host, p->url.port);
    p->suffix = aws_dns_suffix(p->region);
    p->fips = !p->custom && aws_session_fips(s->aws);
    p->dual = !p->custom && (s->c.dualstack || aws_session_dualstack(s->aws));
    return FZ_OK;
}

static const char *encoded(const place *p, const char *prefix, const char *key) {
    fz_buf b = {0};
    fz_buf_puts(&b, prefix);
    if (key) {
        fz_buf_putc(&b, '/');
        net_encode(&b, key, strlen(key), true);
    }
    if (b.len == 0) fz_buf_putc(&b, '/');
    const char *out = fz_arena_strndup(p->a, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return out;
}

/* arn:partition:s3:region:account:accesspoint/name */
static fz_status access_point(place *p, const char *arn, const char *key, s3_target *out) {
    const char *f[6] = {arn};
    fz_error *err = p->err;
    for (int i = 1; i < 6; i++) {
        const char *colon = strchr(f[i - 1], ':');
        if (!colon) return fz_fail(err, FZ_USER, "file.access-point", "'%s' is no ARN of an access point", arn);
        f[i] = colon + 1;
    }
    int len[5];
    for (int i = 0; i < 5; i++) len[i] = (int)(f[i + 1] - f[i]) - 1;
    const char *name = f[5] + 12;
    if (strncmp(f[2], "s3:", 3) != 0) return fz_fail(err, FZ_USER, "file.access-point", "access points of '%.*s' cannot be used: '%s'", len[2], f[2], arn);
    if (!fz_starts(f[5], "accesspoint/") && !fz_starts(f[5], "accesspoint:"))
        return fz_fail(err, FZ_USER, "file.access-point", "'%s' is no ARN of an access point", arn);
    if (len[3] == 0) {
        fz_fail(err, FZ_USER, "file.access-point", "'%s' is a multi-region access point, whose requests need signatures of version 4A, which frazil does not make", arn);
        return fz_hint(err, "use the bucket's own name, or an access point of one region");
    }
    if (len[4] == 0 || !dns_like(fz_sv_of(name))) return fz_fail(err, FZ_USER, "file.access-point", "'%s' lacks the account or the access point's name", arn);
    const char *region = fz_arena_strndup(p->a, f[3], (size_t)len[3]);
    if (strcmp(region, p->region) != 0 && !p->s->c.arn_region) {
        fz_fail(err, FZ_USER, "file.access-point", "the access point '%s' is in %s, the client in %s", arn, region, p->region);
        return fz_hint(err, "set s3.use-arn-region-enabled = true, or s3.region = %s", region);
    }
    if (p->s->c.path_style || (p->custom && is_ip(p->url.host)))
        return fz_fail(err, FZ_USER, "file.access-point", "access points stand in the host name, which path style and '%s' do not allow: '%s'", p->base, arn);
    if (p->s->c.accelerate) return fz_fail(err, FZ_USER, "file.access-point", "access points do not go with s3.acceleration-enabled: '%s'", arn);
    out->region = region;
    if (p->custom) out->endpoint = fz_arena_printf(p->a, "%s://%s-%.*s.%s", p->url.scheme, name, len[4], f[4], p->host);
    else
        out->endpoint = fz_arena_printf(p->a, "https://%s-%.*s.s3-accesspoint%s%s.%s.%s", name, len[4], f[4], p->fips ? "-fips" : "", p->dual ? ".dualstack" : "", region, aws_dns_suffix(region));
    out->path = encoded(p, p->custom ? p->url.path : "", key);
    return FZ_OK;
}

static fz_status aws_place(place *p, fz_sv b, const char *key, s3_target *out) {
    bool virtual_host = !p->s->c.path_style && dns_like(b) && !memchr(b.p, '.', b.n);
    const char *host = fz_arena_printf(p->a, "s3%s%s.%s.%s", p->fips ? "-fips" : "", p->dual ? ".dualstack" : "", p->region, p->suffix);
    if (p->s->c.accelerate) {
        if (!virtual_host) return fz_fail(p->err, FZ_USER, "file.bucket", "the bucket '%.*s' has a name that transfer acceleration does not allow", (int)b.n, b.p);
        if (p->fips) return fz_fail(p->err, FZ_USER, "option.invalid", "transfer acceleration has no FIPS endpoint");
        host = fz_arena_printf(p->a, "s3-accelerate%s.%s", p->dual ? ".dualstack" : "", p->suffix);
    }
    if (virtual_host) {
        out->endpoint = fz_arena_printf(p->a, "https://%.*s.%s", (int)b.n, b.p, host);
        out->path = encoded(p, "", key);
    } else {
        out->endpoint = fz_arena_printf(p->a, "https://%s", host);
        out->path = encoded(p, fz_arena_printf(p->a, "/%.*s", (int)b.n, b.p), key);
    }
    return FZ_OK;
}

static fz_status custom_place(place *p, fz_sv b, const char *key, s3_target *out) {
    const char *name = p->url.host;
    bool tls = strcmp(p->url.scheme, "https") == 0, one_label = !strchr(name, '.');
    bool path_style = p->s->c.path_style || is_ip(name) || !dns_like(b) || (tls && memchr(b.p, '.', b.n)) || ((one_label || fz_ieq(name, "localhost")) && !p->s->c.virtual_style);
    if (path_style) {
        out->endpoint = fz_arena_printf(p->a, "%s://%s", p->url.scheme, p->host);
        out->path = encoded(p, fz_arena_printf(p->a, "%s/%.*s", p->url.path, (int)b.n, b.p), key);
    } else {
        out->endpoint = fz_arena_printf(p->a, "%s://%.*s.%s", p->url.scheme, (int)b.n, b.p, p->host);
        out->path = encoded(p, p->url.path, key);
    }
    return FZ_OK;
}

static fz_status check_names(fz_sv b, const char *key, fz_error *err) {
    int n = (int)b.n;
    if (b.n == 0) return fz_fail(err, FZ_USER, "file.bucket", "a location of S3 must name a bucket: s3://bucket/key");
    if (ends(b, "--x-s3")) {
        fz_fail(err, FZ_USER, "file.bucket", "'%.*s' is a directory bucket (S3 Express One Zone), whose sessions frazil does not make", n, b.p);
        return fz_hint(err, "use a general purpose bucket");
    }
    if (ends(b, ".mrap"))
        return fz_fail(err, FZ_USER, "file.access-point", "'%.*s' is a multi-region access point, whose requests need signatures of version 4A, which frazil does not make", n, b.p);
    for (size_t i = 0; i < b.n; i++)
        if ((unsigned char)b.p[i] <= ' ' || strchr("?#@\\%\"<>", b.p[i]) || (unsigned char)b.p[i] >= 0x7f)
            return fz_fail(err, FZ_USER, "file.bucket", "'%.*s' is no name of a bucket", n, b.p);
    if (!key) return FZ_OK;
    if (!*key) return fz_fail(err, FZ_USER, "file.name", "'s3://%.*s' names a bucket, not an object", n, b.p);
    if (strlen(key) > FZ_MAX_S3_KEY)
        return fz_fail(err, FZ_USER, "file.name-too-long", "a key of S3 has at most %u bytes; this one has %zu: '%.200s...'", FZ_MAX_S3_KEY, strlen(key), key);
    return FZ_OK;
}

fz_status s3_locate(s3_store *s, fz_sv bucket, const char *key, fz_arena *a, s3_target *out, fz_error *err) {
    for (size_t i = 0; i < s->c.n_access_points; i++)
        if (fz_sv_eq(bucket, fz_sv_of(s->c.access_points[i].key))) {
            bucket = fz_sv_of(s->c.access_points[i].value);
            break;
        }
    bool arn = bucket.n > 4 && memcmp(bucket.p, "arn:", 4) == 0;
    FZ_TRY(check_names(bucket, key, err));
    place p = {.s = s, .a = a, .err = err};
    FZ_TRY(begin(&p));
    if (arn) return access_point(&p, fz_arena_strndup(a, bucket.p, bucket.n), key, out);
    out->region = p.region;
    return p.custom ? custom_place(&p, bucket, key, out) : aws_place(&p, bucket, key, out);
}
