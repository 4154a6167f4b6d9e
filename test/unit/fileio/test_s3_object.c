/* The S3 store against a fake: whole objects, errors in terms of stores, put if absent with lost answers, listings, deletes. */
#include "s3_fake.h"
#include "unit.h"

static fz_error err;
static s3_fake *fake;
static fio *io;

#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s %s", #x, err.code, err.message); } while (0)
#define FAILS(x, cls, c) do { assert_int_equal((x), (cls)); assert_string_equal(err.code, (c)); } while (0)

static int setup(void **state) {
    (void)state;
    fz_log_set_level(FZ_LOG_OFF);
    fake = s3_fake_start();
    io = s3_fake_io(fake, NULL);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fio_unref(io);
    s3_fake_stop(fake);
    return 0;
}
static void use(const char *const *options) {
    fio_unref(io);
    io = s3_fake_io(fake, options);
}
#define O(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *value(const char *head, const char *name) { /* of a header in a request's head */
    static char out[512];
    http_seen s = {.head = (char *)head};
    return http_fake_header(&s, name, out, sizeof out) ? out : NULL;
}
static const char *head_of_put(const char *key) { return s3_fake_find(fake, key)->head; }

static void test_round(void **state) {
    (void)state;
    static const char *const keys[] = {"k", "w/t/data/dt=2025-01-02/host=web+1%2F..%2F%C3%A9/0.parquet", "/a//b/../c", "d e\xC3\xA9&<>\"'", "q?x=1#y"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char location[256];
        fz_buf b = {0};
        uint64_t size;
        bool there;
        uint8_t part[3];
        snprintf(location, sizeof location, "%s://b/%s", (const char *[]){"s3", "s3a", "s3n", "s3p"}[i % 4], keys[i]);
        OK(fio_exists(io, location, &there, &err));
        assert_false(there);
        OK(fio_put(io, location, "hello", 5, &err));
        assert_non_null(s3_fake_find(fake, keys[i]));
        OK(fio_exists(io, location, &there, &err));
        assert_true(there);
        OK(fio_size(io, location, &size, &err));
        assert_int_equal(size, 5);
        fz_buf_puts(&b, "x");
        OK(fio_read(io, location, 5, &b, &err));
        assert_string_equal(fz_buf_cstr(&b), "xhello");
        b.len = 0;
        OK(fio_read(io, location, 5, &b, &err));
        assert_string_equal(fz_buf_cstr(&b), "hello");
        FAILS(fio_read(io, location, 4, &b, &err), FZ_FATAL, "file.too-large");
        OK(fio_read_range(io, location, 1, 3, part, &err));
        assert_memory_equal(part, "ell", 3);
        FAILS(fio_read_range(io, location, 3, 3, part, &err), FZ_FATAL, "file.short");
        FAILS(fio_read_range(io, location, 5, 1, part, &err), FZ_FATAL, "file.short");
        OK(fio_read_range(io, location, 5, 0, part, &err));
        FAILS(fio_put_if_absent(io, location, "x", 1, &err), FZ_CONFLICT, "file.exists");
        OK(fio_delete(io, location, &err));
        OK(fio_delete(io, location, &err));
        FAILS(fio_read(io, location, 4, &b, &err), FZ_USER, "file.not-found");
        FAILS(fio_size(io, location, &size, &err), FZ_USER, "file.not-found");
        OK(fio_put_if_absent(io, location, "x", 1, &err));
        OK(fio_delete(io, location, &err));
        fz_buf_free(&b);
    }
    OK(fio_put(io, "s3://b/empty", NULL, 0, &err));
    fz_buf b = {0};
    OK(fio_read(io, "s3://b/empty", 0, &b, &err));
    assert_int_equal(b.len, 0);
    fz_buf_free(&b);
    FAILS(fio_put(NULL, "s3://b/k", "x", 1, &err), FZ_USER, "file.scheme");
    FAILS(fio_dir_make("s3://b/k", &err), FZ_USER, "file.scheme");
    assert_non_null(strstr(err.message, "directories"));
    FAILS(fio_put(io, "gs://b/k", "x", 1, &err), FZ_USER, "file.scheme");
    assert_int_equal(fake->n, 1);
}

static void test_headers(void **state) {
    (void)state;
    OK(fio_put(io, "s3://b/plain", "hello", 5, &err));
    const char *h = head_of_put("plain");
    assert_string_equal(value(h, "x-amz-content-sha256"), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    assert_null(value(h, "x-amz-server-side-encryption"));
    assert_null(value(h, "x-amz-checksum-sha256"));
    assert_null(value(h, "content-md5"));
    assert_null(value(h, "x-amz-tagging"));
    use(O("s3.sse.type", "kms", "s3.sse.key", "arn:aws:kms:x", "s3.acl", "bucket-owner-full-control", "s3.write.storage-class", "STANDARD_IA", "s3.write.tags.a", "1 2",
          "s3.requester-pays-enabled", "true", "s3.checksum-enabled", "true"));
    OK(fio_put(io, "s3://b/rich", "hello", 5, &err));
    h = head_of_put("rich");
    assert_string_equal(value(h, "x-amz-server-side-encryption"), "aws:kms");
    assert_string_equal(value(h, "x-amz-server-side-encryption-aws-kms-key-id"), "arn:aws:kms:x");
    assert_string_equal(value(h, "x-amz-acl"), "bucket-owner-full-control");
    assert_string_equal(value(h, "x-amz-storage-class"), "STANDARD_IA");
    assert_string_equal(value(h, "x-amz-tagging"), "a=1%202");
    assert_string_equal(value(h, "x-amz-request-payer"), "requester");
    assert_string_equal(value(h, "x-amz-checksum-sha256"), "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
    use(O("s3.anonymous", "true"));
    OK(fio_put(io, "s3://b/anonymous", "hello", 5, &err));
    assert_null(value(head_of_put("anonymous"), "authorization"));
}

/* ---- errors ---- */

static struct { int status; const char *code; const char *op; int times; bool lost; } fault;
static bool refuse(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)rq;
    if (fault.times <= 0 || (fault.op && strcmp(op, fault.op) != 0)) return false;
    fault.times--;
    s3_fake_error(f, r, fault.status, fault.code);
    r->body = strcmp(rq->method, "HEAD") == 0 ? "" : fz_buf_cstr(&f->body);
    return true;
}
static void lose(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)f, (void)rq;
    if (fault.times <= 0 || (fault.op && strcmp(op, fault.op) != 0)) return;
    fault.times--;
    r->close_before = true;
}
#define REFUSE(...) S3_FAKE_LOCKED(fake, memcpy(&fault, &(__typeof__(fault)){__VA_ARGS__}, sizeof fault); fake->before = refuse)
#define LOSE(...) S3_FAKE_LOCKED(fake, memcpy(&fault, &(__typeof__(fault)){__VA_ARGS__}, sizeof fault); fake->after = lose)

static void test_errors(void **state) {
    (void)state;
    uint64_t size;
    fz_buf b = {0};
    bool there;
    s3_fake_put(fake, "k", "hello", 5);
    REFUSE(403, "AccessDenied", .times = 1);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_USER, "file.permission");
    assert_non_null(strstr(err.hint, "s3:PutObject"));
    assert_non_null(strstr(err.message, "AccessDenied"));
    assert_null(strstr(err.message, "hush"));
    REFUSE(403, "AccessDenied", .times = 1);
    FAILS(fio_read(io, "s3://b/k", 9, &b, &err), FZ_USER, "file.permission");
    assert_non_null(strstr(err.hint, "s3:GetObject"));
    REFUSE(403, "x", .times = 9);
    FAILS(fio_exists(io, "s3://b/k", &there, &err), FZ_USER, "file.permission"); /* never "not there" */
    assert_non_null(strstr(err.hint, "s3:ListBucket"));
    REFUSE(403, "SignatureDoesNotMatch", .times = 9);
    FAILS(fio_read(io, "s3://b/k", 9, &b, &err), FZ_USER, "file.permission");
    assert_non_null(strstr(err.hint, "credentials"));
    REFUSE(404, "NoSuchBucket", .times = 1);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_USER, "file.no-bucket");
    REFUSE(400, "KMS.DisabledException", .times = 1);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_USER, "file.kms");
    REFUSE(405, "MethodNotAllowed", .times = 1);
    FAILS(fio_delete(io, "s3://b/k", &err), FZ_USER, "file.unsupported");
    REFUSE(400, "InvalidStorageClass", .times = 1);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_USER, "file.request");
    REFUSE(409, "OperationAborted", .times = 1);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_RETRY, "file.conflicting");
    REFUSE(503, "SlowDown", .times = 1);
    OK(fio_size(io, "s3://b/k", &size, &err));
    assert_int_equal(fault.times, 0);
    use(O("s3.retry.num-retries", "1"));
    REFUSE(503, "SlowDown", .times = 2);
    FAILS(fio_put(io, "s3://b/k", "x", 1, &err), FZ_RETRY, "aws.throttled");
    assert_int_equal(fault.times, 0);
    REFUSE(500, "InternalError", .times = 2);
    FAILS(fio_read(io, "s3://b/k", 9, &b, &err), FZ_RETRY, "aws.unavailable");
    OK(fio_read(io, "s3://b/k", 9, &b, &err));
    assert_int_equal(b.len, 5);
    fz_buf_free(&b);
}

/* A portal between us and S3 answers everything with a page. */
static bool portal(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)op, (void)f;
    if (fault.times <= 0 || (fault.op && strcmp(op, fault.op) != 0)) return false;
    fault.times--;
    r->status = fault.status;
    r->headers = "Content-Type: text/html\r\n";
    r->body = strcmp(rq->method, "HEAD") == 0 ? "" : "<html>log in</html>";
    return true;
}
#define PORTAL(...) S3_FAKE_LOCKED(fake, memcpy(&fault, &(__typeof__(fault)){__VA_ARGS__}, sizeof fault); fake->before = portal)

static void test_not_s3(void **state) {
    (void)state;
    fz_buf b = {0};
    uint64_t size;
    s3_fake_put(fake, "k", "hello", 5);
    PORTAL(200, .times = 99);
    FAILS(fio_put(io, "s3://b/new", "x", 1, &err), FZ_RETRY, "file.not-s3"); /* never "stored" */
    FAILS(fio_put_if_absent(io, "s3://b/new", "x", 1, &err), FZ_UNKNOWN, "file.unknown");
    FAILS(fio_read(io, "s3://b/k", 99, &b, &err), FZ_RETRY, "file.not-s3");
    FAILS(fio_size(io, "s3://b/k", &size, &err), FZ_RETRY, "file.not-s3");
    PORTAL(404, .times = 99);
    FAILS(fio_put(io, "s3://b/new", "x", 1, &err), FZ_RETRY, "file.not-s3"); /* nothing is missing when something is written */
    FAILS(fio_read(io, "s3://b/k", 99, &b, &err), FZ_RETRY, "file.not-s3");
    REFUSE(404, "XAdminUserNotFound", .times = 99);
    FAILS(fio_read(io, "s3://b/k", 99, &b, &err), FZ_USER, "file.refused");
    assert_non_null(strstr(err.message, "XAdminUserNotFound"));
    REFUSE(404, "NoSuchKey", .times = 1);
    FAILS(fio_read(io, "s3://b/k", 99, &b, &err), FZ_USER, "file.not-found");
    PORTAL(200, .op = "PUT object", .times = 1); /* and gone again: the next try finds S3 */
    OK(fio_put_if_absent(io, "s3://b/new", "x", 1, &err));
    assert_int_equal(s3_fake_find(fake, "new")->n, 1);
    fz_buf_free(&b);
}

/* ---- put if absent, and answers that are lost ---- */

static void test_if_absent(void **state) {
    (void)state;
    LOSE(.op = "PUT object", .times = 1); /* it landed; the second try meets it */
    OK(fio_put_if_absent(io, "s3://b/ours", "hello", 5, &err));
    assert_int_equal(fault.times, 0);
    S3_FAKE_LOCKED(fake, fake->after = NULL);
    s3_fake_put(fake, "other", "world", 5);
    REFUSE(500, "InternalError", .op = "PUT object", .times = 1); /* it did not land, and somebody was faster */
    FAILS(fio_put_if_absent(io, "s3://b/other", "hello", 5, &err), FZ_CONFLICT, "file.exists");
    s3_fake_put(fake, "longer", "hello!", 6);
    REFUSE(500, "InternalError", .op = "PUT object", .times = 1);
    FAILS(fio_put_if_absent(io, "s3://b/longer", "hello", 5, &err), FZ_CONFLICT, "file.exists");
    REFUSE(409, "ConditionalRequestConflict", .op = "PUT object", .times = 1);
    OK(fio_put_if_absent(io, "s3://b/again", "hello", 5, &err));
    assert_int_equal(s3_fake_find(fake, "again")->n, 5);
    REFUSE(403, "AccessDenied", .op = "PUT object", .times = 1);
    FAILS(fio_put_if_absent(io, "s3://b/denied", "x", 1, &err), FZ_USER, "file.permission");
    REFUSE(501, "NotImplemented", .op = "PUT object", .times = 9);
    FAILS(fio_put_if_absent(io, "s3://b/old", "x", 1, &err), FZ_USER, "file.no-conditional-writes");
    assert_non_null(strstr(err.hint, "s3.conditional-writes"));
    use(O("s3.retry.num-retries", "1"));
    REFUSE(500, "InternalError", .op = "PUT object", .times = 9); /* to the end, and nothing is there: it may come yet */
    FAILS(fio_put_if_absent(io, "s3://b/never", "x", 1, &err), FZ_UNKNOWN, "file.unknown");
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    LOSE(.op = "PUT object", .times = 9); /* each try is lost, but the object can be read back */
    OK(fio_put_if_absent(io, "s3://b/readback", "x", 1, &err));
    LOSE(.op = NULL, .times = 99);
    FAILS(fio_put_if_absent(io, "s3://b/dark", "x", 1, &err), FZ_UNKNOWN, "file.unknown");
    S3_FAKE_LOCKED(fake, fake->after = NULL);
    use(O("s3.conditional-writes", "false"));
    OK(fio_put_if_absent(io, "s3://b/looked", "x", 1, &err));
    FAILS(fio_put_if_absent(io, "s3://b/looked", "x", 1, &err), FZ_CONFLICT, "file.exists");
    assert_null(value(head_of_put("looked"), "if-none-match"));
}

static void test_replace_lost(void **state) {
    (void)state;
    LOSE(.op = "PUT object", .times = 1);
    OK(fio_put(io, "s3://b/k", "hello", 5, &err));
    assert_int_equal(fake->requests, 2);
    LOSE(.op = "DELETE object", .times = 1);
    OK(fio_delete(io, "s3://b/k", &err));
    assert_int_equal(fake->n, 0);
}

/* ---- listings ---- */

typedef struct names { char text[4096]; unsigned n, stop; } names;
static bool note(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    names *l = cx;
    assert_int_equal(mtime_ms, 1255369830123ll);
    size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s=%llu\n", location, (unsigned long long)size);
    return ++l->n != l->stop;
}
static bool note_dir(void *cx, const char *name) {
    names *l = cx;
    size_t at = strlen(l->text);
    snprintf(l->text + at, sizeof l->text - at, "%s\n", name);
    return ++l->n != l->stop;
}

static void test_list(void **state) {
    (void)state;
    static const char *const keys[] = {"w/a b", "w/a+b", "w/x%2Fy", "w//z", "w/d/1", "w/d/2", "w/e/1", "w/f/", "wa", "v"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) s3_fake_put(fake, keys[i], keys[i], strlen(keys[i]) - (strcmp(keys[i], "w/f/") == 0 ? 4 : 0));
    for (fake->page = 1; fake->page < 5; fake->page++) {
        names l = {0};
        OK(fio_list(io, "s3a://b/w", note, &l, &err));
        assert_string_equal(l.text, "s3a://b/w//z=4\ns3a://b/w/a b=5\ns3a://b/w/a+b=5\ns3a://b/w/d/1=5\ns3a://b/w/d/2=5\ns3a://b/w/e/1=5\ns3a://b/w/x%2Fy=7\n");
        l = (names){.stop = 2};
        OK(fio_list(io, "s3://b/w/", note, &l, &err));
        assert_int_equal(l.n, 2);
        l = (names){0};
        OK(fio_list_dirs(io, "s3://b/w", note_dir, &l, &err));
        assert_string_equal(l.text, "d\ne\nf\n");
        l = (names){0};
        OK(fio_list_dirs(io, "s3://b", note_dir, &l, &err));
        assert_string_equal(l.text, "w\n");
        l = (names){0};
        OK(fio_list(io, "s3://b", note, &l, &err));
        assert_int_equal(l.n, 9);
        l = (names){0};
        OK(fio_list(io, "s3://b/nothing", note, &l, &err));
        assert_int_equal(l.n, 0);
    }
    REFUSE(200, "InternalError", .op = "LIST", .times = 1); /* an answer that is no listing */
    names l = {0};
    FAILS(fio_list(io, "s3://b/w", note, &l, &err), FZ_RETRY, "file.answer");
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    fake->page = 3;
    OK(fio_delete_tree(io, "s3://b/w", &err));
    assert_int_equal(fake->n, 2);
}

/* ---- deletes ---- */

static char last_delete[65536], delete_md5[64];
static unsigned deletes;
static void keep_delete(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)f, (void)r;
    if (strcmp(op, "DELETE many") != 0) return;
    deletes++;
    snprintf(last_delete, sizeof last_delete, "%s", rq->body);
    http_fake_header(rq, "content-md5", delete_md5, sizeof delete_md5);
}
static unsigned slow;
static bool slow_first(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) { /* one key of the first batch has to come again */
    (void)rq;
    if (strcmp(op, "DELETE many") != 0 || slow++ > 0) return false;
    s3_fake_drop(f, "p0");
    f->body.len = 0;
    fz_buf_puts(&f->body, "<DeleteResult><Error><Key>p1</Key><Code>SlowDown</Code><Message>later</Message></Error></DeleteResult>");
    r->body = fz_buf_cstr(&f->body);
    return true;
}

static void test_delete_many(void **state) {
    (void)state;
    char text[600][32];
    const char *v[600];
    for (int i = 0; i < 600; i++) {
        snprintf(text[i], sizeof text[i], "s3://b/x&%03d", i);
        v[i] = text[i];
        s3_fake_put(fake, text[i] + 7, "x", 1);
    }
    S3_FAKE_LOCKED(fake, fake->after = keep_delete);
    deletes = 0;
    OK(fio_delete_many(io, v, 600, &err));
    assert_int_equal(fake->n, 0);
    assert_int_equal(deletes, 3);
    assert_non_null(strstr(last_delete, "<Key>x&amp;599</Key>"));
    assert_int_equal(strlen(delete_md5), 24);
    OK(fio_delete_many(io, v, 600, &err)); /* not there */
    OK(fio_delete_many(io, v, 0, &err));
    s3_fake_put(fake, "a", "x", 1), s3_fake_put(fake, "denied1", "x", 1), s3_fake_put(fake, "denied2", "x", 1), s3_fake_put(fake, "c\x01", "x", 1);
    const char *some[] = {"s3://b/denied2", "s3://b/a", "s3://b/denied1", "s3://b/c\x01"};
    FAILS(fio_delete_many(io, some, 4, &err), FZ_USER, "file.permission");
    assert_non_null(strstr(err.message, "denied1"));
    assert_non_null(strstr(err.detail, "1 more"));
    assert_int_equal(fake->n, 2);
    assert_null(strstr(last_delete, "c\x01"));
    s3_fake_put(fake, "p0", "x", 1), s3_fake_put(fake, "p1", "x", 1);
    S3_FAKE_LOCKED(fake, fake->before = slow_first);
    OK(fio_delete_many(io, (const char *[]){"s3://b/p0", "s3://b/p1"}, 2, &err));
    assert_null(s3_fake_find(fake, "p1"));
    assert_null(strstr(last_delete, "p0"));
    REFUSE(403, "AccessDenied", .op = "DELETE many", .times = 9);
    FAILS(fio_delete_many(io, v, 2, &err), FZ_USER, "file.permission");
    assert_non_null(strstr(err.hint, "s3:DeleteObject"));
}

static void test_delete_tags(void **state) {
    (void)state;
    use(O("s3.delete-enabled", "false", "s3.delete.tags.gone", "yes<", "s3.delete.tags.old", "2"));
    s3_fake_put(fake, "k", "x", 1);
    OK(fio_delete(io, "s3://b/k", &err));
    assert_int_equal(fake->n, 1);
    assert_non_null(strstr(fake->v[0].tags, "<Tag><Key>old</Key><Value>2</Value></Tag><Tag><Key>gone</Key><Value>yes&lt;</Value></Tag>"));
    use(O("s3.delete.tags.gone", "yes"));
    REFUSE(403, "AccessDenied", .op = "PUT tags", .times = 9); /* the tag is for people: the delete goes on */
    OK(fio_delete_many(io, (const char *[]){"s3://b/k"}, 1, &err));
    assert_int_equal(fake->n, 0);
}

static void test_table_bucket(void **state) {
    (void)state;
    fake->requests = 0;
    OK(fio_delete(io, "s3://abc--table-s3/k", &err));
    OK(fio_delete_many(io, (const char *[]){"s3://abc--table-s3/k", "s3://abc--table-s3/l"}, 2, &err));
    size_t n;
    OK(fio_abort_uploads(io, "s3://abc--table-s3/k", INT64_MAX, &n, &err));
    assert_int_equal(fake->requests, 0);
}

static void test_sweep(void **state) {
    (void)state;
    s3_store *s;
    OK(fio_s3(io, &s, &err));
    for (int i = 0; i < 3; i++) {
        s3_request rq = {.op = "CreateMultipartUpload", .method = "POST", .location = "s3://b/w/x", .query = "uploads="};
        aws_answer a;
        OK(s3_send(s, &rq, &a, &err));
        aws_answer_free(&a);
    }
    size_t n;
    OK(fio_abort_uploads(io, "s3://b/w/", 1577836800000ll, &n, &err)); /* begun at that moment: not before it */
    assert_int_equal(n, 0);
    OK(fio_abort_uploads(io, "s3://b/w/", 1577836800001ll, &n, &err));
    assert_int_equal(n, 3);
    assert_int_equal(fake->n_up, 0);
    OK(fio_abort_uploads(NULL, "/local", 0, &n, &err));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(test_round), T(test_headers), T(test_errors), T(test_not_s3), T(test_if_absent), T(test_replace_lost), T(test_list), T(test_delete_many), T(test_delete_tags), T(test_table_bucket), T(test_sweep)};
    return cmocka_run_group_tests_name("s3 objects", tests, NULL, NULL);
}
