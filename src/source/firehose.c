/* The connector 'firehose': a server of the Amazon Data Firehose API (JSON 1.1), to which Fluent Bit, FireLens and the AWS SDKs send: PutRecord, PutRecordBatch, DescribeDeliveryStream,
 * ListDeliveryStreams. There is one stream, 'stream-name'.
 *
 * A record is the blob as it was sent, without one newline at its end. It is one document, as in Firehose's own delivery to Iceberg: a blob with several lines is not divided (the format 'json' reads the first document of it).
 *
 * Answers are given when what they call accepted is durable. Where only the first records of a batch find room the others get ServiceUnavailableException, each by itself, in an answer with the status 200 (FailedPutCount), as from
 * AWS; where none does the call fails with ServiceUnavailableException and 503. Firehose knows no duplicates: what is sent again is taken again.
 *
 * Errors have AWS's shape: x-amzn-ErrorType, and a body with __type and message.
 * Threads: everything but open and close runs in the source's loop.
 */
#include "aws/aws.h"
#include "source/firehose_int.h"
#include <inttypes.h>
#include <openssl/crypto.h>

#define HEALTH_PATH "/healthz"
#define TARGET "Firehose_20150804."
#define CONTENT_TYPE "application/x-amz-json-1.1"
enum { KEEP_BYTES = 1 << 20 };

static const fz_option firehose_options[] = {
    SRC_LISTEN_OPTIONS,
    SRC_SPOOL_OPTIONS,
    {.name = "format", .type = FZ_OPT_STRING, .dflt = "json", .doc = "Format of a record, which is the data blob of one Firehose record without a newline at its end."},
    {.name = "value.format", .type = FZ_OPT_STRING, .doc = "The same as format."},
    {.name = "stream-name", .type = FZ_OPT_STRING, .doc = "Name of the delivery stream. Calls for another one are answered ResourceNotFoundException. Required."},
    {.name = "auth", .type = FZ_OPT_ENUM, .dflt = "none", .allowed = "none|sigv4", .doc = "Who may send: anybody who reaches the address, or who signs (Signature Version 4) with a key of 'access-key-id'."},
    {.name = "access-key-id", .type = FZ_OPT_LIST, .doc = "Access keys that may sign, divided by ';', so that a key can be replaced while its senders still use it. Keys of AWS's token service cannot be checked here."},
    {.name = "secret-access-key", .type = FZ_OPT_LIST, .doc = "The secrets of 'access-key-id', in the same order, divided by ';'."},
    {.name = "region", .type = FZ_OPT_STRING, .doc = "Region that signatures have to be for; without it any will do. It also stands in the stream's ARN (there the default is us-east-1)."},
    {0}};

static const src_metadata_column firehose_metadata[] = {{"arrival_time", "TIMESTAMP_LTZ(3) NOT NULL"}, {"record", "STRING NOT NULL"}, {NULL, NULL}};

typedef struct fh_key { char *id, *secret; } fh_key;
typedef struct fh_stats { _Atomic uint64_t calls, records, refused_bad, refused_auth, refused_records; } fh_stats;
typedef struct firehose_source {
    src_spooled s;
    char *stream, *region;
    bool signed_only, open_to_all;
    fh_key *keys;
    size_t n_keys;
    int64_t opened_ms;
    src_frame frame;
    fz_log_limit log_limit;
    fh_stats stats;
} firehose_source;

/* A call whose records are on their way to the disk. */
typedef struct fh_waiting { firehose_source *f; net_http_request *r; uint32_t n, accepted, pending; bool batch, lost, sent; } fh_waiting;

static void count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }

/* ---- answers ---- */

static void answer(net_http_request *r, int status, const char *error, const fz_buf *body) {
    char id[37];
    fz_uuid4(id);
    net_http_field f[3] = {{"Content-Type", CONTENT_TYPE}, {"x-amzn-RequestId", id}, {"x-amzn-ErrorType", error}};
    net_http_answer(r, status, f, error ? 3 : 2, body->data, body->len);
}

static void answer_error(net_http_request *r, int status, const char *type, const char *message) {
    fz_buf b = {0};
    fz_buf_printf(&b, "{\"__type\":\"%s\",\"message\":", type);
    fz_buf_json(&b, message, strlen(message));
    fz_buf_puts(&b, "}");
    answer(r, status, type, &b);
    fz_buf_free(&b);
}
static void refuse(firehose_source *f, net_http_request *r, const fz_error *e) {
    count(&f->stats.refused_bad, 1);
    answer_error(r, 400, e->code, e->message);
}
static void no_room(firehose_source *f, net_http_request *r, uint32_t n) {
    count(&f->stats.refused_records, n);
    answer_error(r, 503, "ServiceUnavailableException", "Slow down.");
}

static void answer_put(const fh_waiting *w) {
    fz_buf b = {0};
    char id[37];
    fz_uuid4(id);
    if (!w->batch) fz_buf_printf(&b, "{\"RecordId\":\"%s-000\",\"Encrypted\":false}", id);
    else {
        fz_buf_printf(&b, "{\"FailedPutCount\":%u,\"Encrypted\":false,\"RequestResponses\":[", w->n - w->accepted);
        for (uint32_t i = 0; i < w->n; i++) {
            fz_buf_puts(&b, i ? "," : "");
            if (i < w->accepted) fz_buf_printf(&b, "{\"RecordId\":\"%s-%03u\"}", id, i);
            else fz_buf_puts(&b, "{\"ErrorCode\":\"ServiceUnavailableException\",\"ErrorMessage\":\"Slow down.\"}");
        }
        fz_buf_puts(&b, "]}");
    }
    answer(w->r, 200, NULL, &b);
    fz_buf_free(&b);
}

/* ---- taking in ---- */

static void finish(fh_waiting *w) {
    if (!w->sent || w->pending) return;
    if (w->lost || !w->accepted) no_room(w->f, w->r, w->n);
    else {
        count(&w->f->stats.records, w->accepted);
        count(&w->f->stats.refused_records, w->n - w->accepted);
        answer_put(w);
    }
    fz_free(w);
}
static void on_durable(void *cx, bool durable) {
    fh_waiting *w = cx;
    w->pending--;
    w->lost |= !durable;
    finish(w);
}

/* As many of the first records as there is room for: all, or by halves. */
static void append(firehose_source *f, net_http_request *r, bool batch) {
    src_frame *fr = &f->frame;
    fh_waiting *w = FZ_NEW(fh_waiting);
    *w = (fh_waiting){.f = f, .r = r, .n = fr->n, .batch = batch};
    int64_t now = fz_now_ms();
    size_t at = 0; /* bytes of the accepted ones */
    for (uint32_t step = fr->n; step;) {
        fz_error e;
        spool_frame v = {.n = step, .arrival_ms = now, .len = fr->len + w->accepted, .bytes = fr->bytes.data + at};
        if (w->accepted + step > fr->n || src_spooled_append(&f->s, &v, 1, on_durable, w, &e) != FZ_OK) {
            step /= 2;
            continue;
        }
        for (uint32_t i = 0; i < step; i++) at += v.len[i];
        w->accepted += step;
        w->pending++;
        if (w->accepted == fr->n) break;
    }
    w->sent = true;
    finish(w);
}

/* The service takes records without bytes, and so must this; no format has a row for one, and nothing of it could lie among the dead letters. */
static void note_empty(firehose_source *f) {
    uint64_t n = 0, suppressed;
    for (uint32_t i = 0; i < f->frame.n; i++) n += !f->frame.len[i];
    if (!n || !fz_log_allowed(&f->log_limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, "firehose.empty", FZ_KV("table", "%s", f->s.base.cx.table), FZ_KV("records", "%" PRIu64, n), FZ_KV("suppressed", "%" PRIu64, suppressed),
           FZ_KV("reason", "%s", "records without bytes are taken, as the service takes them, and give no row: they count as unparseable"), NULL);
}

static void put(firehose_source *f, net_http_request *r, const json_t *call, bool batch) {
    fz_error e;
    if ((batch ? fh_records : fh_record)(call, &f->frame, &e) != FZ_OK) refuse(f, r, &e);
    else {
        note_empty(f);
        append(f, r, batch);
    }
    if (f->frame.bytes.cap > KEEP_BYTES) src_frame_free(&f->frame);
}

/* ---- what tells about streams ---- */

static void describe(firehose_source *f, net_http_request *r) {
    fz_buf b = {0};
    fz_buf_printf(&b, "{\"DeliveryStreamDescription\":{\"DeliveryStreamName\":\"%s\",\"DeliveryStreamARN\":\"arn:%s:firehose:%s:000000000000:deliverystream/%s\",\"DeliveryStreamStatus\":\"ACTIVE\","
                      "\"DeliveryStreamEncryptionConfiguration\":{\"Status\":\"DISABLED\"},\"DeliveryStreamType\":\"DirectPut\",\"VersionId\":\"1\",\"CreateTimestamp\":%lld.%03d,"
                      "\"Destinations\":[{\"DestinationId\":\"destinationId-000000000001\"}],\"HasMoreDestinations\":false}}",
                  f->stream, aws_partition(f->region ? f->region : "us-east-1"), f->region ? f->region : "us-east-1", f->stream, (long long)(f->opened_ms / 1000), (int)(f->opened_ms % 1000));
    answer(r, 200, NULL, &b);
    fz_buf_free(&b);
}

static void list(firehose_source *f, net_http_request *r, const json_t *call) {
    const char *type, *after;
    fz_error e;
    fz_buf b = {0};
    if (fh_text(call, "DeliveryStreamType", &type, &e) != FZ_OK || fh_text(call, "ExclusiveStartDeliveryStreamName", &after, &e) != FZ_OK) {
        refuse(f, r, &e);
        return;
    }
    bool has = (!type || strcmp(type, "DirectPut") == 0) && (!after || strcmp(after, f->stream) < 0);
    fz_buf_printf(&b, "{\"DeliveryStreamNames\":[%s%s%s],\"HasMoreDeliveryStreams\":false}", has ? "\"" : "", has ? f->stream : "", has ? "\"" : "");
    answer(r, 200, NULL, &b);
    fz_buf_free(&b);
}

/* ---- calls ---- */

typedef struct fields { net_header v[FZ_MAX_HTTP_FIELDS + 8]; size_t n; } fields;
static void add_field(void *cx, const char *name, const char *value) {
    fields *f = cx;
    if (f->n < sizeof f->v / sizeof *f->v) f->v[f->n++] = (net_header){name, value};
}
static const char *secret_of(void *cx, const char *access_key) {
    firehose_source *f = cx;
    for (size_t i = 0; i < f->n_keys; i++)
        if (strcmp(f->keys[i].id, access_key) == 0) return f->keys[i].secret;
    return NULL;
}

typedef enum { OP_PUT, OP_PUT_BATCH, OP_DESCRIBE, OP_LIST, OP_UNKNOWN } operation;
static operation operation_of(const net_http_request *r) {
    static const char *const names[] = {"PutRecord", "PutRecordBatch", "DescribeDeliveryStream", "ListDeliveryStreams"};
    const char *t = net_http_header(r, "x-amz-target");
    if (strcmp(r->method, "POST") != 0 || strcmp(r->path, "/") != 0 || !t || !fz_starts(t, TARGET)) return OP_UNKNOWN;
    for (int i = 0; i < OP_UNKNOWN; i++)
        if (strcmp(t + strlen(TARGET), names[i]) == 0) return (operation)i;
    return OP_UNKNOWN;
}

static bool refuse_caller(firehose_source *f, net_http_request *r, int status, const char *type, const char *message) {
    count(&f->stats.refused_auth, 1);
    answer_error(r, status, type, message);
    return false;
}

/* What can be said before the body is read. false: it is answered. */
static bool admit(firehose_source *f, net_http_request *r) {
    bool open = f->open_to_all && net_http_header(r, "origin"); /* any page in a browser on this machine could write else */
    if (open) return refuse_caller(f, r, 403, "AccessDeniedException", "web pages may send only where 'auth' = 'sigv4'");
    if (f->signed_only && !net_http_header(r, "authorization")) return refuse_caller(f, r, 400, "MissingAuthenticationTokenException", "Missing Authentication Token");
    if (operation_of(r) != OP_UNKNOWN) return true;
    count(&f->stats.refused_bad, 1);
    answer_error(r, strcmp(r->method, "POST") == 0 ? 400 : 404, "UnknownOperationException", "PutRecord, PutRecordBatch, DescribeDeliveryStream and ListDeliveryStreams are there, by POST to /");
    return false;
}

static bool signature_fits(firehose_source *f, net_http_request *r) {
    fz_error e;
    if (!f->signed_only) return true;
    fields h = {.n = 0};
    net_http_each_header(r, add_field, &h);
    aws_verify_input in = {.service = "firehose", .region = f->region, .method = r->method, .path = r->path, .query = r->query, .headers = h.v, .n_headers = h.n, .body = r->body, .n_body = r->n_body,
                           .now_ms = fz_now_ms(), .encode_path_twice = true};
    return aws_verify(&in, secret_of, f, &e) == FZ_OK || refuse_caller(f, r, 400, e.code, e.message);
}

/* Is the call for our stream? */
static bool names_stream(firehose_source *f, net_http_request *r, const json_t *call) {
    const char *name;
    fz_error e;
    fz_status rc = fh_text(call, "DeliveryStreamName", &name, &e);
    if (rc == FZ_OK && (!name || !*name))
        rc = fz_fail(&e, FZ_USER, "InvalidArgumentException", "1 validation error detected: Value %s at 'deliveryStreamName' failed to satisfy constraint: Member must %s", name ? "''" : "null", name ? "have length greater than or equal to 1" : "not be null");
    else if (rc == FZ_OK && strcmp(name, f->stream) != 0) rc = fz_fail(&e, FZ_USER, "ResourceNotFoundException", "Firehose %.64s under account 000000000000 not found.", name);
    if (rc != FZ_OK) refuse(f, r, &e);
    return rc == FZ_OK;
}

static void call(firehose_source *f, net_http_request *r) {
    json_t *in;
    fz_error e;
    operation op = operation_of(r);
    if (!admit(f, r) || !signature_fits(f, r)) return;
    if (op <= OP_PUT_BATCH && src_spooled_refuses(&f->s)) { /* before any work is done */
        no_room(f, r, 1);
        return;
    }
    if (fh_parse(r->body, r->n_body, &in, &e) != FZ_OK) {
        refuse(f, r, &e);
        return;
    }
    if (op == OP_LIST) list(f, r, in);
    else if (names_stream(f, r, in)) {
        if (op == OP_DESCRIBE) describe(f, r);
        else put(f, r, in, op == OP_PUT_BATCH);
    }
    json_decref(in);
}

static bool asks_for_health(const net_http_request *r) { return strcmp(r->path, HEALTH_PATH) == 0 && (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0); }

static void on_head(void *cx, net_http_request *r) {
    firehose_source *f = cx;
    if (!asks_for_health(r) && !admit(f, r)) count(&f->stats.calls, 1);
}

static void on_request(void *cx, net_http_request *r) {
    firehose_source *f = cx;
    static const net_http_field json[] = {{"Content-Type", "application/json"}};
    count(&f->stats.calls, 1);
    if (asks_for_health(r)) {
        bool full = src_spooled_full(&f->s) || f->s.closing;
        const char *body = full ? "{\"status\":\"full\"}\n" : "{\"status\":\"ok\"}\n";
        net_http_answer(r, full ? 503 : 200, json, 1, body, strlen(body));
    } else call(f, r);
}

/* ---- life ---- */

static bool wants_signatures(const fz_pair *o, size_t n) {
    const char *auth = fz_pair_get(o, n, "auth");
    return auth && fz_ieq(auth, "sigv4");
}

/* The i-th of a ';'-separated list. */
static fz_sv item(const char *list, size_t i) {
    for (; i && list; i--) {
        list = strchr(list, ';');
        if (list) list++;
    }
    return list ? fz_sv_trim((fz_sv){list, strcspn(list, ";")}) : (fz_sv){0};
}
static size_t items(const char *list) {
    size_t n = 1;
    for (const char *p = list; *p; p++) n += *p == ';';
    return n;
}

static fz_status check_keys(const fz_pair *o, size_t n, fz_error *err) {
    const char *ids = fz_pair_get(o, n, "access-key-id"), *secrets = fz_pair_get(o, n, "secret-access-key");
    if (!wants_signatures(o, n)) return ids || secrets ? fz_fail(err, FZ_USER, "option.conflict", "options 'access-key-id' and 'secret-access-key' need 'auth' = 'sigv4'") : FZ_OK;
    if (!ids || !secrets) return fz_fail(err, FZ_USER, "option.missing", "option 'auth' = 'sigv4' needs 'access-key-id' and 'secret-access-key'");
    if (items(ids) != items(secrets)) return fz_fail(err, FZ_USER, "option.conflict", "options 'access-key-id' and 'secret-access-key' have not the same number of values");
    for (size_t i = 0; i < items(ids); i++)
        if (!item(ids, i).n || !item(secrets, i).n) return fz_fail(err, FZ_USER, "option.invalid", "option 'access-key-id' or 'secret-access-key' has an empty value");
    return FZ_OK;
}

static fz_status firehose_check(const fz_pair *o, size_t n, fz_error *err) {
    const char *stream = fz_pair_get(o, n, "stream-name"), *region = fz_pair_get(o, n, "region");
    net_listen_options unused;
    if (!stream) return fz_fail(err, FZ_USER, "option.missing", "option 'stream-name' is missing");
    size_t len = strlen(stream);
    if (!len || len > 64 || strspn(stream, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != len)
        return fz_fail(err, FZ_USER, "option.invalid", "option 'stream-name': '%s' is no name of a delivery stream: 1 to 64 letters, digits, '_', '.', '-'", stream);
    if (region && (!*region || strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region))) return fz_fail(err, FZ_USER, "option.invalid", "option 'region': '%s' is no region", region);
    FZ_TRY(check_keys(o, n, err));
    return src_listen_options(NULL, o, n, "listen", wants_signatures(o, n), &unused, err);
}

static unsigned long long got(const _Atomic uint64_t *c) { return (unsigned long long)atomic_load_explicit(c, memory_order_relaxed); }
static void firehose_ended(src_spooled *s) {
    firehose_source *f = (firehose_source *)s;
    if (!s->base.cx.look)
        fz_log(FZ_LOG_INFO, "firehose.ended", FZ_KV("table", "%s", s->base.cx.table), FZ_KV("calls", "%llu", got(&f->stats.calls)), FZ_KV("records", "%llu", got(&f->stats.records)),
               FZ_KV("refused_bad", "%llu", got(&f->stats.refused_bad)), FZ_KV("refused_auth", "%llu", got(&f->stats.refused_auth)), FZ_KV("refused_records", "%llu", got(&f->stats.refused_records)), NULL);
    for (size_t i = 0; i < f->n_keys; i++) {
        OPENSSL_cleanse(f->keys[i].secret, strlen(f->keys[i].secret));
        fz_free(f->keys[i].id);
        fz_free(f->keys[i].secret);
    }
    fz_free(f->keys);
    src_frame_free(&f->frame);
    fz_free(f->stream);
    fz_free(f->region);
}

static char *text_of(fz_sv s) {
    char *t = fz_malloc(s.n + 1);
    memcpy(t, s.p, s.n);
    t[s.n] = 0;
    return t;
}

static void take_options(firehose_source *f, const fz_pair *o, size_t n) {
    const char *region = fz_pair_get(o, n, "region"), *ids = fz_pair_get(o, n, "access-key-id"), *secrets = fz_pair_get(o, n, "secret-access-key");
    f->stream = fz_strdup(fz_pair_get(o, n, "stream-name"));
    f->region = region ? fz_strdup(region) : NULL;
    f->signed_only = wants_signatures(o, n);
    f->open_to_all = !f->signed_only && !fz_pair_get(o, n, "tls.ca");
    f->opened_ms = fz_now_ms();
    if (!f->signed_only) return;
    f->n_keys = items(ids);
    f->keys = fz_malloc(f->n_keys * sizeof *f->keys);
    for (size_t i = 0; i < f->n_keys; i++) f->keys[i] = (fh_key){text_of(item(ids, i)), text_of(item(secrets, i))};
}

static fz_status firehose_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    FZ_TRY(firehose_check(o, n, err));
    firehose_source *f = FZ_NEW(firehose_source);
    net_listen_options lo;
    f->s.ended = firehose_ended;
    take_options(f, o, n);
    fz_status rc = src_spooled_open(&f->s, &src_firehose_ops, o, n, cx, err);
    if (rc == FZ_OK) rc = src_listen_options(&f->s, o, n, "listen", f->signed_only, &lo, err);
    lo.http_head = on_head;
    if (rc == FZ_OK) rc = src_spooled_http(&f->s, &lo, on_request, f, err);
    if (rc == FZ_OK) *out = &f->s.base;
    else src_spooled_close(&f->s.base);
    return rc;
}

static void firehose_metrics(src_source *base, src_metric_fn fn, void *cx) {
    const firehose_source *x = (const firehose_source *)base;
    const src_counter own[] = {{FZ_M_FIREHOSE_CALLS, NULL, &x->stats.calls}, {FZ_M_FIREHOSE_RECORDS, NULL, &x->stats.records}, {FZ_M_FIREHOSE_BAD, NULL, &x->stats.refused_bad}, {FZ_M_FIREHOSE_AUTH, NULL, &x->stats.refused_auth}, {FZ_M_FIREHOSE_REFUSED, NULL, &x->stats.refused_records}};
    src_spooled_metrics((src_spooled *)base, own, sizeof own / sizeof *own, fn, cx);
}

const src_ops src_firehose_ops = {
    .name = "firehose",
    .doc = "A server of the Amazon Data Firehose API: PutRecord and PutRecordBatch are answered when the records are durable, with AWS's limits, partial failures and errors, and Signature Version 4 if wanted.",
    .options = firehose_options,
    .metadata = firehose_metadata,
    .format = "json",
    .open = firehose_open,
    .check = firehose_check,
    .metrics = firehose_metrics,
    SRC_SPOOLED_OPS};
