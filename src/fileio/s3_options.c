/* Options of the S3 store: the names of Iceberg's S3FileIOProperties (1.10), PyIceberg's where Java has none, and those of Flink's file systems for S3. */
#include "fileio/s3_int.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
#define ONE_OF(name, dflt, allowed, doc) {name, FZ_OPT_ENUM, FZ_OPT_USED, dflt, allowed, doc, NULL}
#define IDLE(name, why) {name, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, why}
#define NO(name, why) {name, FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, NULL, why}
#define READER "it tunes Java's reader"
#define BACK_OFF "waits between tries are drawn at random and grow from 0.1 s to 20 s"

const fz_option s3_options[] = {
    USED("s3.endpoint", STRING, NULL, "URL of the service, when it is not AWS. Else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's, AWS's own in the region."),
    USED("s3.region", STRING, NULL, "Region of the buckets. Else client.region and what stands behind it."),
    USED("s3.access-key-id", STRING, NULL, "Access key for S3 alone; goes before the credentials of the other AWS clients. Better not in a script: use the environment or a profile."),
    USED("s3.secret-access-key", STRING, NULL, "Secret key that goes with s3.access-key-id."),
    USED("s3.session-token", STRING, NULL, "Session token that goes with s3.access-key-id, if they are temporary."),
    USED("s3.anonymous", BOOL, "false", "Sends requests without a signature (public buckets)."),
    USED("s3.path-style-access", BOOL, "false", "Puts the bucket into the path instead of the host name. Always so for endpoints that are an IP address or a name without dots, and for buckets whose name cannot be part of a host name."),
    USED("s3.force-virtual-addressing", BOOL, "false", "Puts the bucket into the host name even where the endpoint is a name without dots."),
    ONE_OF("s3.sse.type", "none", "none|s3|kms|dsse-kms|custom", "Encryption at rest that is asked for new objects: none (the bucket's own), s3, kms, dsse-kms, or custom with a key of yours (SSE-C; https only)."),
    USED("s3.sse.key", STRING, NULL, "With kms and dsse-kms the KMS key's id or ARN (none: the key aws/s3); with custom the base64 of 32 bytes."),
    USED("s3.sse.md5", STRING, NULL, "With custom: base64 of the key's MD5; checked when given."),
    ONE_OF("s3.acl", NULL, "private|public-read|public-read-write|authenticated-read|aws-exec-read|bucket-owner-read|bucket-owner-full-control", "Canned ACL of new objects."),
    USED("s3.write.storage-class", STRING, NULL, "Storage class of new objects, as x-amz-storage-class has it: STANDARD_IA, INTELLIGENT_TIERING, ..."),
    USED("s3.write.tags.*", STRING, NULL, "Tags of new objects: s3.write.tags.<key> = <value>; at most ten."),
    USED("s3.delete-enabled", BOOL, "true", "false: nothing is deleted; objects get the tags s3.delete.tags.* for a lifecycle rule to act on."),
    USED("s3.delete.tags.*", STRING, NULL, "Tags that an object gets before it is deleted, besides those that it has."),
    USED("s3.delete.batch-size", INT, "250", "Keys in one DeleteObjects, at most 1000."),
    USED("s3.multipart.part-size-bytes", INT, "33554432", "Bytes of one part of a large object: 5 MiB to 5 GiB. An object has at most 10,000 parts."),
    USED("s3.multipart.threshold", DOUBLE, "1.5", "An object that reaches so many times the part size is uploaded in parts while it is written."),
    USED("s3.multipart.num-threads", INT, NULL, "Threads that upload, for the whole process, at most 16. Unless set, four times the processors, at least 4."),
    USED("s3.staging-dir", STRING, NULL, "Directory for what a file being written has above 256 KiB. Unless set, TMPDIR, else /tmp. Files there begin with .frazil- and are removed when their object is stored."),
    USED("s3.checksum-enabled", BOOL, "false", "Stores an SHA-256 with each object (x-amz-checksum-sha256), as buckets with Object Lock demand. Payloads are verified on their way in any case."),
    USED("s3.requester-pays", BOOL, "false", "Sends x-amz-request-payer: requester."),
    USED("s3.requester-pays-enabled", BOOL, "false", "The same."),
    USED("s3.access-points.*", STRING, NULL, "s3.access-points.<bucket> = ARN or alias of the access point through which that bucket is reached."),
    USED("s3.use-arn-region-enabled", BOOL, "false", "Whether an access point's ARN may name another region than the client's."),
    USED("s3.dualstack-enabled", BOOL, "false", "AWS's endpoints with IPv6 beside IPv4."),
    USED("s3.acceleration-enabled", BOOL, "false", "AWS's transfer acceleration endpoint."),
    USED("s3.conditional-writes", BOOL, "true", "false, for stores that do not know If-None-Match: an object that must not be there yet is looked for and then put, which two writers at the same moment can both do. Only where names carry a UUID."),
    USED("s3.remote-signing-enabled", BOOL, "false", "Must be false: requests are signed here."),
    USED("s3.access-grants.enabled", BOOL, "false", "Must be false: credentials of S3 Access Grants are not fetched; use a role that may use the bucket."),
    USED("s3.retry.num-retries", INT, NULL, "How often a request is tried again. Unless set, AWS_MAX_ATTEMPTS, the profile's max_attempts, or 4."),
    USED("s3.request-timeout", DOUBLE, NULL, "Seconds that one try of a request may take. Unless set it may take as long as bytes come or go."),
    USED("s3.access-key", STRING, NULL, "The same as s3.access-key-id, as Flink's configuration has it."),
    USED("s3.secret-key", STRING, NULL, "The same as s3.secret-access-key, as Flink's configuration has it."),
    USED("s3.path.style.access", BOOL, "false", "The same as s3.path-style-access, as Flink's configuration has it."),
    USED("s3.endpoint.region", STRING, NULL, "The same as s3.region, as Flink's configuration has it."),
    IDLE("s3.retry.min-wait-ms", BACK_OFF),
    IDLE("s3.retry.max-wait-ms", BACK_OFF),
    IDLE("s3.connect-timeout", "it is http-client.apache.connection-timeout-ms here"),
    IDLE("s3.session-token-expires-at-ms", "a catalog that vends credentials renews them; others do not expire here"),
    IDLE("s3.preload-client-enabled", "the first request makes the client"),
    IDLE("s3.chunked-encoding-enabled", "payloads are never sent in chunks"),
    IDLE("s3.cross-region-access-enabled", "a bucket of another region is always found, by what AWS answers"),
    IDLE("s3.resolve-region", "a bucket of another region is always found, by what AWS answers"),
    IDLE("s3.delete.num-threads", "deletes are batches of s3.delete.batch-size"),
    IDLE("s3.crt.*", "it tunes Java's reader and writer"),
    IDLE("s3.analytics-accelerator.*", READER),
    IDLE("s3.directory-bucket.*", "directory buckets cannot be used"),
    IDLE("s3.access-grants.*", "S3 Access Grants are not used"),
    IDLE("s3.signer.*", "it counts with s3.remote-signing-enabled only"),
    IDLE("s3.signer", "it counts with s3.remote-signing-enabled only"),
    IDLE("s3.entropy.*", "files of tables get their names from Iceberg's rules"),
    IDLE("s3.upload.*", "uploads are tuned by s3.multipart.*"),
    NO("s3.client-factory-impl", "it names a Java class; write s3.endpoint, s3.region and s3.access-key-id"),
    NO("s3.retry-strategy-impl", "it names a Python class; write s3.retry.num-retries"),
    NO("s3.write.table-tag-enabled", "write s3.write.tags.iceberg.table = <table>"),
    NO("s3.write.namespace-tag-enabled", "write s3.write.tags.iceberg.namespace = <namespace>"),
    NO("s3.proxy-uri", "write http-client.proxy-endpoint, or set HTTPS_PROXY"),
    NO("s3.role-arn", "write client.assume-role.arn"),
    NO("s3.role-session-name", "write client.assume-role.session-name"),
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

typedef struct reader { const fz_pair *o; size_t n; fz_arena *a; fz_error *err; fz_status rc; } reader;

static const char *get(const reader *r, const char *key) {
    const char *v = NULL;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->o[i].key, key) == 0) v = r->o[i].value;
    return v && *v ? fz_arena_strdup(r->a, v) : NULL;
}
static const char *either(const reader *r, const char *key, const char *other) {
    const char *v = get(r, key);
    return v ? v : get(r, other);
}
static bool on(const reader *r, const char *key) {
    const char *v = get(r, key);
    return v ? fz_ieq(v, "true") : strcmp(fz_option_find(s3_options, key)->dflt, "true") == 0;
}
static void bad(reader *r, const char *key, const char *why) {
    if (r->rc == FZ_OK) r->rc = fz_fail(r->err, FZ_USER, "option.invalid", "option '%s': %s", key, why);
}
/* The value of a secret is not for messages, so the check's own message may not be used for it. */
static void number(reader *r, const char *key, int64_t least, int64_t most, int64_t dflt, int64_t *out) {
    const char *v = get(r, key);
    *out = dflt;
    if (!v) return;
    if (!fz_parse_i64(fz_sv_of(v), out) || *out < least || *out > most) {
        char text[160];
        snprintf(text, sizeof text, "'%s' is not a whole number from %lld to %lld", v, (long long)least, (long long)most);
        bad(r, key, text);
        *out = dflt;
    }
}
static double real(reader *r, const char *key, double least, double dflt) {
    const char *v = get(r, key);
    double x = dflt;
    if (v && (!fz_parse_f64(fz_sv_of(v), &x) || !(x >= least && x < 1e9))) {
        char text[160];
        snprintf(text, sizeof text, "'%s' is not a number of %g or more", v, least);
        bad(r, key, text);
        x = dflt;
    }
    return x;
}

/* Each option is known, of its type, and not refused. */
static void check(reader *r) {
    for (size_t i = 0; i < r->n && r->rc == FZ_OK; i++) {
        const fz_pair *p = &r->o[i];
        if (!fz_starts(p->key, "s3.")) continue;
        const fz_option *o = fz_option_find(s3_options, p->key);
        if (!o) {
            const char *near = fz_option_nearest(s3_options, p->key);
            r->rc = fz_fail(r->err, FZ_USER, "option.unknown", "unknown option '%s'", p->key);
            if (near) fz_hint(r->err, "did you mean '%s'?", near);
        } else if (o->state == FZ_OPT_REFUSED) {
            r->rc = fz_fail(r->err, FZ_USER, "option.refused", "option '%s' cannot be honoured: %s", p->key, o->why);
        } else if (o->state == FZ_OPT_USED && *p->value && (r->rc = fz_option_check(o, p->value, r->err)) != FZ_OK) {
            fz_context(r->err, "option '%s'", p->key);
        }
        if (r->rc != FZ_OK) fz_at(r->err, p->line, p->column);
    }
}

static const fz_pair *family(const reader *r, const char *prefix, size_t *n) {
    size_t skip = strlen(prefix);
    fz_pair *v = FZ_ANEWN(r->a, fz_pair, r->n);
    *n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (fz_starts(r->o[i].key, prefix) && r->o[i].key[skip])
            v[(*n)++] = (fz_pair){.key = fz_arena_strdup(r->a, r->o[i].key + skip), .value = fz_arena_strdup(r->a, r->o[i].value)};
    return v;
}

static const char *tagging(reader *r) {
    size_t n;
    const fz_pair *v = family(r, "s3.write.tags.", &n);
    if (n == 0) return NULL;
    if (n > 10) bad(r, "s3.write.tags.*", "an object can have ten tags at most");
    fz_buf b = {0};
    for (size_t i = 0; i < n; i++) {
        if (i > 0) fz_buf_putc(&b, '&');
        net_encode(&b, v[i].key, strlen(v[i].key), false);
        fz_buf_putc(&b, '=');
        net_encode(&b, v[i].value, strlen(v[i].value), false);
    }
    const char *out = fz_arena_strndup(r->a, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return out;
}

static void customer_key(reader *r, s3_config *c) {
    uint8_t key[96], md5[16];
    size_t n = c->sse_key ? strlen(c->sse_key) : 0;
    if (n != 44 || c->sse_key[43] != '=' || EVP_DecodeBlock(key, (const uint8_t *)c->sse_key, (int)n) != 33) {
        bad(r, "s3.sse.key", "with s3.sse.type = custom it must be the base64 of 32 bytes");
        return;
    }
    unsigned len;
    if (EVP_Digest(key, 32, md5, &len, EVP_md5(), NULL) != 1) {
        bad(r, "s3.sse.type", "custom needs MD5, which this system's OpenSSL does not allow (FIPS)");
        return;
    }
    fz_buf b = {0};
    fz_buf_base64(&b, md5, 16);
    if (c->sse_md5 && strcmp(c->sse_md5, fz_buf_cstr(&b)) != 0) bad(r, "s3.sse.md5", "it is not the MD5 of s3.sse.key");
    c->sse_md5 = fz_arena_strdup(r->a, fz_buf_cstr(&b));
    fz_buf_free(&b);
}

static void encryption(reader *r, s3_config *c) {
    static const char *const names[] = {"none", "s3", "kms", "dsse-kms", "custom"};
    const char *type = get(r, "s3.sse.type");
    for (unsigned i = 0; type && i < sizeof names / sizeof *names; i++)
        if (fz_ieq(type, names[i])) c->sse = (s3_sse)i;
    c->sse_key = get(r, "s3.sse.key");
    c->sse_md5 = get(r, "s3.sse.md5");
    if (c->sse == S3_SSE_CUSTOM) customer_key(r, c);
}

static void identity(reader *r, s3_config *c) {
    c->access_key = either(r, "s3.access-key-id", "s3.access-key");
    c->secret_key = either(r, "s3.secret-access-key", "s3.secret-key");
    c->token = get(r, "s3.session-token");
    c->anonymous = on(r, "s3.anonymous");
    if (c->access_key && !c->secret_key) bad(r, "s3.secret-access-key", "it is missing beside s3.access-key-id");
    if (c->secret_key && !c->access_key) bad(r, "s3.access-key-id", "it is missing beside s3.secret-access-key");
    if (c->token && !c->access_key) bad(r, "s3.access-key-id", "it is missing beside s3.session-token");
    if (on(r, "s3.remote-signing-enabled")) bad(r, "s3.remote-signing-enabled", "requests cannot be signed by the catalog; let it vend credentials, or give credentials here");
    if (on(r, "s3.access-grants.enabled")) bad(r, "s3.access-grants.enabled", "S3 Access Grants cannot be used; use a role that may use the bucket");
}

static void sizes(reader *r, s3_config *c) {
    int64_t v;
    number(r, "s3.multipart.part-size-bytes", (int64_t)S3_PART_MIN, (int64_t)FZ_MAX_S3_PART, 32 << 20, &v);
    c->part_size = (uint64_t)v;
    double threshold = (double)c->part_size * real(r, "s3.multipart.threshold", 1, 1.5);
    c->threshold = threshold < (double)FZ_MAX_S3_PART ? (uint64_t)threshold : FZ_MAX_S3_PART; /* the most that one PUT takes */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    number(r, "s3.multipart.num-threads", 1, 4096, cores > 1 ? cores * 4 : 4, &v);
    c->threads = v < FZ_MAX_UPLOAD_THREADS ? (unsigned)v : FZ_MAX_UPLOAD_THREADS;
    number(r, "s3.delete.batch-size", 1, 1000, 250, &v);
    c->delete_batch = (size_t)v;
    number(r, "s3.retry.num-retries", 0, 1000, -1, &v);
    c->max_attempts = (int)v + 1;
    c->timeout_ms = (int64_t)(real(r, "s3.request-timeout", 0, 0) * 1000);
}

fz_status s3_config_read(const fz_pair *o, size_t n, fz_arena *a, s3_config *c, fz_error *err) {
    reader r = {.o = o, .n = n, .a = a, .err = err};
    *c = (s3_config){0};
    check(&r);
    if (r.rc != FZ_OK) return r.rc;
    c->endpoint = get(&r, "s3.endpoint");
    c->region = either(&r, "s3.region", "s3.endpoint.region");
    identity(&r, c);
    c->path_style = on(&r, "s3.path-style-access") || on(&r, "s3.path.style.access");
    c->virtual_style = on(&r, "s3.force-virtual-addressing");
    if (c->path_style && c->virtual_style) bad(&r, "s3.force-virtual-addressing", "it contradicts s3.path-style-access");
    encryption(&r, c);
    c->acl = get(&r, "s3.acl");
    c->storage_class = get(&r, "s3.write.storage-class");
    c->tagging = tagging(&r);
    c->delete_tags = family(&r, "s3.delete.tags.", &c->n_delete_tags);
    c->delete_enabled = on(&r, "s3.delete-enabled");
    sizes(&r, c);
    const char *tmp = getenv("TMPDIR");
    c->staging_dir = get(&r, "s3.staging-dir");
    if (!c->staging_dir) c->staging_dir = fz_arena_strdup(a, tmp && *tmp == '/' ? tmp : "/tmp");
    if (*c->staging_dir != '/') bad(&r, "s3.staging-dir", "it must be an absolute path");
    c->checksum = on(&r, "s3.checksum-enabled");
    c->requester_pays = on(&r, "s3.requester-pays") || on(&r, "s3.requester-pays-enabled");
    c->access_points = family(&r, "s3.access-points.", &c->n_access_points);
    c->arn_region = on(&r, "s3.use-arn-region-enabled");
    c->dualstack = on(&r, "s3.dualstack-enabled");
    c->accelerate = on(&r, "s3.acceleration-enabled");
    if (c->accelerate && c->path_style) bad(&r, "s3.acceleration-enabled", "it cannot go with s3.path-style-access");
    c->conditional = on(&r, "s3.conditional-writes");
    return r.rc;
}
