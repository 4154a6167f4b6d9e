/* Requests to services: what is tried again and what is not, with which signature, and what the error says. */
#include "aws_home.h"
#include "http_fake.h"
#include "aws/aws_send_int.h"

#define NOW_MS 1772409598000ll /* 2026-03-01T23:59:58Z */
static const char SECRET[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", TOKEN[] = "IQoJb3JpZ2luX2VjE//abc+def==thisisalongtoken0123456789";

static int64_t waits[64];
static int n_waits;
static pthread_mutex_t waits_lock = PTHREAD_MUTEX_INITIALIZER; /* test_threads waits in four threads at once */
static void no_sleep(int64_t ms) {
    pthread_mutex_lock(&waits_lock);
    if (n_waits < 64) waits[n_waits++] = ms;
    pthread_mutex_unlock(&waits_lock);
}

static fz_error err;
static aws_session *the_session;
static http_fake *fake;

static void begin(const http_reply *r, size_t n) {
    fz_pair o[] = {{.key = "client.region", .value = "eu-west-1"}};
    assert_int_equal(aws_session_new(o, 1, &the_session, &err), FZ_OK);
    fake = http_fake_start(r, n);
    n_waits = 0;
}
#define BEGIN(...) begin((http_reply[]){__VA_ARGS__}, sizeof((http_reply[]){__VA_ARGS__}) / sizeof(http_reply))
static void end_all(void) {
    http_fake_stop(fake);
    aws_session_unref(the_session);
}

static void no_secret(const char *text) {
    if (strstr(text, SECRET) || strstr(text, TOKEN) || strstr(text, "IQoJb3JpZ2luX2VjE") || strstr(text, "AKIDEXAMPLE")) fail_msg("a secret in: %s", text);
}

/* Sends with temporary credentials, unless rq has a provider; no error may hold a secret. */
static fz_status send_it(aws_request *rq, aws_answer *out) {
    aws_provider *p = rq->provider ? NULL : aws_provider_static("AKIDEXAMPLE", SECRET, TOKEN, "test");
    if (p) rq->provider = p;
    rq->endpoint = http_fake_url(fake);
    if (!rq->service) rq->service = "s3";
    if (!rq->method) rq->method = "GET";
    if (!rq->path) rq->path = "/k";
    memset(&err, 0, sizeof err);
    fz_status st = aws_send(the_session, rq, out, &err);
    no_secret(err.message);
    no_secret(err.detail);
    no_secret(err.hint);
    no_secret(out->error_message);
    no_secret(out->error_code);
    if (p) {
        rq->provider = NULL;
        aws_provider_unref(p);
    }
    return st;
}

static const char *sent_header(size_t i, const char *name) {
    static char v[4][1200];
    static int at;
    at = (at + 1) % 4;
    return http_fake_header(http_fake_seen(fake, i), name, v[at], sizeof v[at]) ? v[at] : "";
}

static void test_ok(void **state) {
    (void)state;
    BEGIN({.body = "data", .headers = "x-amz-request-id: R1\r\n"});
    aws_request rq = {.method = "PUT", .path = "/dt%3D1/a%2Bb%2520//..", .query = "partNumber=1&uploadId=a%2Fb", .body = {.p = "body", .n = 4}, .headers = (net_header[]){{"X-Amz-Meta-A", "1"}}, .n_headers = 1};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    assert_int_equal(an.attempts, 1);
    assert_false(an.maybe_applied);
    assert_memory_equal(an.http.body.data, "data", 4);
    aws_answer_free(&an);
    assert_string_equal(http_fake_seen(fake, 0)->target, "/dt%3D1/a%2Bb%2520//..?partNumber=1&uploadId=a%2Fb");
    char hash[65];
    aws_sha256_hex("body", 4, hash);
    assert_string_equal(sent_header(0, "x-amz-content-sha256"), hash);
    assert_string_equal(sent_header(0, "x-amz-security-token"), TOKEN);
    /* Signed here once more, from what came over the wire. */
    fz_arena *a = fz_arena_new();
    aws_credentials c = {.access_key = "AKIDEXAMPLE", .secret_key = SECRET, .token = TOKEN};
    aws_sign_input in = {.service = "s3", .region = "eu-west-1", .method = "PUT", .host = http_fake_url(fake) + 7, .path = rq.path, .query = rq.query, .headers = rq.headers, .n_headers = 1,
                         .payload_sha256 = hash, .now_ms = NOW_MS, .content_sha256_header = true};
    net_header h[4];
    size_t n;
    aws_sign(&c, &in, a, h, &n);
    assert_string_equal(sent_header(0, "authorization"), h[n - 1].value);
    fz_arena_free(a);
    end_all();
}

static void test_body_of_file(void **state) {
    (void)state;
    BEGIN({.status = 500}, {.status = 200});
    char path[] = "/tmp/aws-body-XXXXXX", hash[65];
    int fd = mkstemp(path);
    unlink(path);
    size_t n = 600000;
    char *data = fz_malloc(n);
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 7 >> 2);
    assert_int_equal(write(fd, data, n), (ssize_t)n);
    aws_request rq = {.method = "PUT", .body = {.n = n - 20, .fd = fd, .from = 10}, .idempotent = true};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    aws_sha256_hex(data + 10, n - 20, hash);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(sent_header(i, "x-amz-content-sha256"), hash);
        assert_int_equal(http_fake_seen(fake, i)->n_body, n - 20);
        assert_memory_equal(http_fake_seen(fake, i)->body, data + 10, n - 20);
    }
    aws_answer_free(&an);
    rq.payload_sha256 = "UNSIGNED-PAYLOAD";
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    assert_string_equal(sent_header(2, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    aws_answer_free(&an);
    fz_free(data);
    close(fd);
    end_all();
}

/* Refused because of too much traffic: nothing happened, so anything may be sent again. */
static void test_throttled(void **state) {
    (void)state;
    static const http_reply slow[] = {{.status = 503, .body = "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>R2</RequestId></Error>"},
                                      {.status = 429}, {.status = 400, .body = "{\"__type\":\"com.amazon.coral.availability#ThrottlingException\",\"message\":\"Rate exceeded\"}"},
                                      {.status = 400, .headers = "x-amzn-ErrorType: TooManyRequestsException:http://x/\r\n"}};
    for (size_t i = 0; i < 4; i++) {
        BEGIN(slow[i], slow[i], {.status = 200});
        aws_request rq = {.method = "POST", .service = "glue"};
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), FZ_OK);
        assert_int_equal(an.attempts, 3);
        assert_false(an.maybe_applied);
        assert_int_equal(n_waits, 2);
        assert_in_range(waits[0], 0, 500);
        assert_in_range(waits[1], 0, 1000);
        aws_answer_free(&an);
        end_all();
        BEGIN(slow[i]);
        assert_int_equal(send_it(&rq, &an), FZ_RETRY);
        assert_string_equal(err.code, "aws.throttled");
        assert_int_equal(an.attempts, 5);
        assert_int_equal(n_waits, 4);
        aws_answer_free(&an);
        rq.max_attempts = 2;
        assert_int_equal(send_it(&rq, &an), FZ_RETRY);
        assert_int_equal(an.attempts, 2);
        if (i == 0) assert_string_equal(err.message, "glue POST /k: HTTP 503 SlowDown: Please reduce your request rate. (2 attempts)");
        if (i == 0) assert_non_null(strstr(err.detail, "request id R2"));
        aws_answer_free(&an);
        end_all();
    }
}

/* Outcomes that may have been an effect: once only unless idempotent, and said so. */
static void test_unknown(void **state) {
    (void)state;
    static const http_reply lost[] = {{.status = 500}, {.status = 502, .body = "<html>Bad Gateway</html>"}, {.status = 503}, {.status = 504}, {.close_before = true}, {.reset = true},
                                      {.body = "0123456789", .cut = true, .cut_at = 3}, {.status = 520},
                                      {.status = 400, .body = "{\"__type\":\"OperationTimeoutException\",\"Message\":\"The operation timed out.\"}"},
                                      {.status = 503, .body = "{\"error\":{\"message\":\"commit conflict\",\"type\":\"AlreadyExistsException\",\"code\":503}}"}};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        BEGIN(lost[i], {.status = 200});
        aws_request rq = {.method = "POST", .service = "glue", .body = {.p = "commit", .n = 6}};
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), FZ_UNKNOWN);
        assert_string_equal(err.code, "aws.unknown");
        assert_int_equal(http_fake_count(fake), 1);
        assert_int_equal(an.attempts, 1);
        assert_true(an.maybe_applied);
        aws_answer_free(&an);
        end_all();
        BEGIN(lost[i], lost[i], {.status = 200});
        rq.idempotent = true;
        assert_int_equal(send_it(&rq, &an), FZ_OK);
        assert_int_equal(an.attempts, 3);
        assert_int_equal(http_fake_count(fake), 3);
        assert_true(an.maybe_applied);
        aws_answer_free(&an);
        end_all();
        BEGIN(lost[i]);
        assert_int_equal(send_it(&rq, &an), FZ_RETRY);
        assert_string_equal(err.code, "aws.unavailable");
        assert_int_equal(an.attempts, 5);
        assert_true(an.maybe_applied);
        aws_answer_free(&an);
        end_all();
    }
}

/* The refusal of a large body is lost when the server closes at once; the second attempt asks before it sends, and so learns of it. */
static void test_lost_refusal(void **state) {
    (void)state;
    BEGIN({.early = true, .reset = true}, {.early = true, .status = 403, .body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"});
    size_t n = 9u << 20;
    char *data = fz_calloc(n, 1);
    aws_request rq = {.method = "PUT", .body = {.p = data, .n = n}, .idempotent = true};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_string_equal(err.code, "aws.denied");
    assert_int_equal(an.attempts, 2);
    assert_string_equal(sent_header(0, "expect"), "");
    assert_string_equal(sent_header(1, "expect"), "100-continue");
    aws_answer_free(&an);
    fz_free(data);
    end_all();
}

/* A conflict after a lost answer may be our own doing, also when the transport was the one that sent again. */
static void test_maybe_applied(void **state) {
    (void)state;
    BEGIN({.close_before = true}, {.status = 412, .body = "<Error><Code>PreconditionFailed</Code><Message>x</Message></Error>"});
    aws_request rq = {.method = "PUT", .idempotent = true};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_CONFLICT);
    assert_true(an.maybe_applied);
    assert_int_equal(an.attempts, 2);
    aws_answer_free(&an);
    end_all();
    BEGIN({.status = 200}, {.close_before = true}, {.status = 412}, {.status = 412});
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    aws_answer_free(&an);
    assert_int_equal(send_it(&rq, &an), FZ_CONFLICT);
    assert_int_equal(http_fake_count(fake), 3);
    assert_int_equal(an.attempts, 1);
    assert_true(an.maybe_applied);
    aws_answer_free(&an);
    assert_int_equal(send_it(&rq, &an), FZ_CONFLICT);
    assert_false(an.maybe_applied);
    aws_answer_free(&an);
    end_all();
}

static void test_not_connected(void **state) {
    (void)state;
    BEGIN({0});
    char url[64];
    snprintf(url, sizeof url, "%s", http_fake_url(fake));
    http_fake_stop(fake); /* nobody listens any more */
    aws_request rq = {.service = "glue", .method = "POST", .endpoint = url, .path = "/", .provider = aws_provider_static("AKIDEXAMPLE", SECRET, NULL, "test"),
                      .headers = (net_header[]){{"X-Amz-Target", "AWSGlue.GetTable"}}, .n_headers = 1};
    aws_answer an;
    assert_int_equal(aws_send(the_session, &rq, &an, &err), FZ_RETRY);
    assert_string_equal(err.code, "aws.unavailable");
    assert_string_equal(err.detail, "net.connect");
    assert_non_null(strstr(err.message, "glue GetTable (5 attempts): "));
    assert_int_equal(an.attempts, 5);
    assert_false(an.maybe_applied);
    aws_answer_free(&an);
    rq.endpoint = "http://127.0.0.1:1/path";
    assert_int_equal(aws_send(the_session, &rq, &an, NULL), FZ_USER);
    aws_answer_free(&an);
    aws_provider_unref(rq.provider);
    aws_session_unref(the_session);
}

static void test_errors(void **state) {
    (void)state;
    static const struct { const char *service; http_reply r; fz_status cls; const char *code, *error, *message; } cases[] = {
        {"s3", {.status = 404, .body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>The key &quot;a&amp;b&quot; does not exist</Message></Error>"}, FZ_USER, "aws.not-found", "NoSuchKey", "The key \"a&b\" does not exist"},
        {"s3", {.status = 403, .body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"}, FZ_USER, "aws.denied", "AccessDenied", "Access Denied"},
        {"s3", {.status = 403}, FZ_USER, "aws.denied", "Forbidden", ""},
        {"s3", {.status = 404}, FZ_USER, "aws.not-found", "NotFound", ""},
        {"s3", {.status = 412}, FZ_CONFLICT, "aws.conflict", "PreconditionFailed", ""},
        {"s3", {.status = 409, .body = "<Error><Code>ConditionalRequestConflict</Code></Error>"}, FZ_CONFLICT, "aws.conflict", "ConditionalRequestConflict", ""},
        {"s3", {.status = 400, .body = "<Error><Code>EntityTooSmall</Code><Message>m</Message></Error>"}, FZ_USER, "aws.request", "EntityTooSmall", "m"},
        {"s3", {.status = 501, .body = "<Error><Code>NotImplemented</Code><Message>A header</Message></Error>"}, FZ_USER, "aws.request", "NotImplemented", "A header"},
        {"glue", {.status = 400, .body = "{\"__type\":\"EntityNotFoundException\",\"Message\":\"Table t not found.\"}"}, FZ_USER, "aws.not-found", "EntityNotFoundException", "Table t not found."},
        {"glue", {.status = 400, .body = "{\"__type\":\"com.amazonaws.glue#ConcurrentModificationException\",\"message\":\"Update conflict\"}"}, FZ_CONFLICT, "aws.conflict", "ConcurrentModificationException", "Update conflict"},
        {"glue", {.status = 400, .body = "{\"__type\":\"AlreadyExistsException\"}"}, FZ_CONFLICT, "aws.conflict", "AlreadyExistsException", ""},
        {"glue", {.status = 400, .body = "{\"__type\":\"AccessDeniedException\",\"Message\":\"User is not authorized\\nto do it\"}"}, FZ_USER, "aws.denied", "AccessDeniedException", "User is not authorized to do it"},
        {"glue", {.status = 400, .body = "{\"__type\":\"InvalidInputException\",\"Message\":\"no\"}"}, FZ_USER, "aws.request", "InvalidInputException", "no"},
        {"s3tables", {.status = 409, .headers = "x-amzn-ErrorType: ConflictException\r\n", .body = "{\"message\":\"version token\"}"}, FZ_CONFLICT, "aws.conflict", "ConflictException", "version token"},
        {"s3tables", {.status = 404, .headers = "x-amzn-errortype: NotFoundException:http://internal.amazon.com/\r\n", .body = "{\"message\":\"n\"}"}, FZ_USER, "aws.not-found", "NotFoundException", "n"},
        {"s3tables", {.status = 403, .body = "{\"error\":{\"message\":\"no\",\"type\":\"ForbiddenException\",\"code\":403}}"}, FZ_USER, "aws.denied", "ForbiddenException", "no"},
        {"sts", {.status = 403, .body = "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User: x is not authorized</Message></Error><RequestId>R7</RequestId></ErrorResponse>"}, FZ_USER, "aws.denied", "AccessDenied", "User: x is not authorized"},
        {"glue", {.status = 400, .body = "Bad Request"}, FZ_USER, "aws.request", "", "Bad Request"},
        {"glue", {.status = 400, .body = "{broken"}, FZ_USER, "aws.request", "", ""},
        {"glue", {.status = 302}, FZ_USER, "aws.request", "", ""},
        {"s3", {.status = 401, .body = "x"}, FZ_USER, "aws.denied", "", "x"},
        {"s3", {.status = 301, .body = "<Error><Code>PermanentRedirect</Code><Message>use the endpoint</Message></Error>"}, FZ_USER, "aws.region", "PermanentRedirect", "use the endpoint"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(&cases[i].r, 1);
        aws_request rq = {.service = cases[i].service, .method = "POST", .idempotent = i % 2};
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), cases[i].cls);
        assert_string_equal(err.code, cases[i].code);
        assert_string_equal(an.error_code, cases[i].error);
        assert_string_equal(an.error_message, cases[i].message);
        assert_int_equal(an.attempts, 1);
        assert_false(an.maybe_applied);
        assert_int_equal(an.http.status, cases[i].r.status);
        if (strcmp(err.code, "aws.denied") == 0) assert_non_null(strstr(err.detail, "credentials from test, access key ****MPLE"));
        aws_answer_free(&an);
        end_all();
    }
}

/* ---- credentials ---- */

typedef struct rotating { int n; } rotating;
static fz_status rotate(void *cx, fz_arena *a, aws_credentials *out, fz_error *e) {
    (void)e;
    rotating *r = cx;
    r->n++;
    *out = (aws_credentials){.access_key = fz_arena_printf(a, "ASIAKEY%d", r->n), .secret_key = SECRET, .token = TOKEN, .source = "rotating"};
    return FZ_OK;
}

static void test_expired(void **state) {
    (void)state;
    static const char *const codes[] = {"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "UnrecognizedClientException", "InvalidAccessKeyId"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char body[200];
        snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>The provided token has expired.</Message><Token-0>%s</Token-0></Error>", codes[i], TOKEN);
        BEGIN({.status = i % 2 ? 403 : 400, .body = body}, {.status = 200});
        rotating r = {0};
        aws_provider *p = aws_provider_custom(rotate, &r, NULL);
        aws_request rq = {.method = "POST", .provider = p}; /* not idempotent: a refused signature is no effect */
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), FZ_OK);
        assert_int_equal(an.attempts, 2);
        assert_int_equal(n_waits, 0);
        assert_int_equal(r.n, 2);
        assert_non_null(strstr(sent_header(0, "authorization"), "=ASIAKEY1/"));
        assert_non_null(strstr(sent_header(1, "authorization"), "=ASIAKEY2/"));
        assert_false(an.maybe_applied);
        aws_answer_free(&an);
        end_all();
        /* Refused for ever: bounded. */
        BEGIN({.status = 400, .body = body});
        assert_int_equal(send_it(&rq, &an), FZ_USER);
        assert_string_equal(err.code, "aws.denied");
        assert_int_equal(an.attempts, 3);
        aws_answer_free(&an);
        end_all();
        aws_provider_unref(p);
        /* A provider that has no others: not asked again. */
        BEGIN({.status = 400, .body = body});
        aws_request fixed = {.method = "POST"};
        assert_int_equal(send_it(&fixed, &an), FZ_USER);
        assert_string_equal(err.code, "aws.denied");
        assert_string_equal(an.error_code, codes[i]);
        assert_int_equal(an.attempts, 1);
        aws_answer_free(&an);
        end_all();
    }
}

/* Keys without a token that the service does not know are wrong, not expired. */
static void test_unknown_keys(void **state) {
    (void)state;
    BEGIN({.status = 403, .body = "<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist</Message></Error>"});
    aws_provider *p = aws_provider_static("AKIDEXAMPLE", SECRET, NULL, "environment");
    aws_request rq = {.provider = p};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_int_equal(an.attempts, 1);
    assert_non_null(strstr(err.detail, "credentials from environment"));
    aws_answer_free(&an);
    aws_provider_unref(p);
    end_all();
}

/* ---- the server's clock ---- */

static void test_skew(void **state) {
    (void)state;
    static const struct { const char *service, *date; int64_t ahead_s; int status; const char *body; } cases[] = {
        {"s3", "Mon, 02 Mar 2026 00:19:58 GMT", 1200, 403, "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"},
        {"s3", "Sun, 01 Mar 2026 22:59:58 GMT", -3600, 403, "<Error><Code>SignatureDoesNotMatch</Code><Message>x</Message></Error>"},
        {"glue", "Mon, 02 Mar 2026 00:04:58 GMT", 300, 400, "{\"__type\":\"InvalidSignatureException\",\"message\":\"Signature not yet current: 20260302T000458Z\"}"},
        {"sts", "Sun, 01 Mar 2026 23:49:58 GMT", -600, 400, "<ErrorResponse><Error><Code>RequestExpired</Code></Error></ErrorResponse>"},
        {"s3", "Mon, 02 Mar 2026 01:59:58 GMT", 7200, 403, ""}}; /* HEAD */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char date[100], when[17];
        snprintf(date, sizeof date, "Date: %s\r\n", cases[i].date);
        BEGIN({.status = cases[i].status, .headers = date, .body = cases[i].body}, {.status = 200});
        aws_request rq = {.service = cases[i].service, .method = "POST"};
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), FZ_OK);
        assert_int_equal(an.attempts, 2);
        assert_false(an.maybe_applied);
        aws_answer_free(&an);
        assert_string_equal(sent_header(0, "x-amz-date"), "20260301T235958Z");
        aws_time_basic(NOW_MS + cases[i].ahead_s * 1000, when);
        assert_string_equal(sent_header(1, "x-amz-date"), when);
        assert_int_equal(send_it(&rq, &an), FZ_OK); /* remembered */
        assert_int_equal(an.attempts, 1);
        assert_string_equal(sent_header(2, "x-amz-date"), when);
        aws_answer_free(&an);
        end_all();
        /* Once only; and not at all when the clocks agree. */
        BEGIN({.status = cases[i].status, .headers = date, .body = cases[i].body}, {.status = cases[i].status, .headers = "Date: Sun, 01 Mar 2026 12:00:00 GMT\r\n", .body = cases[i].body});
        assert_int_equal(send_it(&rq, &an), FZ_USER);
        assert_string_equal(err.code, "aws.denied");
        assert_int_equal(an.attempts, 2);
        aws_answer_free(&an);
        end_all();
        BEGIN({.status = cases[i].status, .headers = "Date: Mon, 02 Mar 2026 00:02:00 GMT\r\n", .body = cases[i].body});
        assert_int_equal(send_it(&rq, &an), FZ_USER);
        assert_int_equal(an.attempts, 1);
        aws_answer_free(&an);
        end_all();
    }
}

/* ---- another region ---- */

static void test_region(void **state) {
    (void)state;
    static const http_reply told[] = {
        {.status = 400, .body = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'eu-west-1' is wrong; expecting 'ap-south-1'</Message><Region>ap-south-1</Region></Error>"},
        {.status = 301, .headers = "x-amz-bucket-region: ap-south-1\r\n"},
        {.status = 400, .headers = "x-amz-bucket-region: ap-south-1\r\n"},
        {.status = 307, .headers = "x-amz-bucket-region: ap-south-1\r\nLocation: http://other/\r\n"}};
    for (size_t i = 0; i < 4; i++) {
        BEGIN(told[i], {.status = 200});
        aws_request rq = {.method = "POST"};
        aws_answer an;
        for (int k = 0; k < 2; k++) {
            assert_int_equal(send_it(&rq, &an), FZ_OK);
            assert_int_equal(an.attempts, k ? 1 : 2); /* the second request knows */
            aws_answer_free(&an);
        }
        assert_non_null(strstr(sent_header(0, "authorization"), "/eu-west-1/s3/"));
        assert_non_null(strstr(sent_header(1, "authorization"), "/ap-south-1/s3/"));
        assert_non_null(strstr(sent_header(2, "authorization"), "/ap-south-1/s3/"));
        end_all();
        BEGIN(told[i], {.status = 301, .headers = "x-amz-bucket-region: ca-west-1\r\n"});
        assert_int_equal(send_it(&rq, &an), FZ_USER);
        assert_string_equal(err.code, "aws.region");
        assert_non_null(strstr(err.message, "ca-west-1"));
        assert_non_null(strstr(err.message, "ap-south-1"));
        assert_int_equal(an.attempts, 2);
        aws_answer_free(&an);
        end_all();
    }
    /* A region that cannot be one is not believed; other services have no such answer. */
    BEGIN({.status = 400, .body = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>a/b c</Region></Error>"}, {.status = 200});
    aws_request rq = {0};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_string_equal(err.code, "aws.region");
    aws_answer_free(&an);
    end_all();
    BEGIN({.status = 301, .headers = "x-amz-bucket-region: ap-south-1\r\n"});
    rq.service = "glue";
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_string_equal(err.code, "aws.request");
    aws_answer_free(&an);
    end_all();
}

/* Hosts of AWS itself, reached through a proxy: the name follows the bucket's region; the global endpoints are signed for their own. */
static void test_hosts(void **state) {
    (void)state;
    BEGIN({.status = 301, .headers = "x-amz-bucket-region: ap-south-1\r\n"}, {.status = 200}, {.status = 200}, {.status = 200});
    setenv("http_proxy", http_fake_url(fake), 1);
    unsetenv("NO_PROXY");
    aws_provider *p = aws_provider_static("AK", SECRET, NULL, "test");
    aws_request rq = {.service = "s3", .method = "GET", .endpoint = "http://b.s3.eu-west-1.amazonaws.com", .path = "/k", .provider = p};
    aws_answer an;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(aws_send(the_session, &rq, &an, &err), FZ_OK);
        aws_answer_free(&an);
    }
    rq.service = "sts";
    rq.endpoint = "http://sts.amazonaws.com:80";
    assert_int_equal(aws_send(the_session, &rq, &an, &err), FZ_OK);
    aws_answer_free(&an);
    assert_string_equal(http_fake_seen(fake, 0)->target, "http://b.s3.eu-west-1.amazonaws.com/k");
    assert_string_equal(http_fake_seen(fake, 1)->target, "http://b.s3.ap-south-1.amazonaws.com/k");
    assert_string_equal(http_fake_seen(fake, 2)->target, "http://b.s3.ap-south-1.amazonaws.com/k");
    assert_string_equal(sent_header(2, "host"), "b.s3.ap-south-1.amazonaws.com");
    assert_non_null(strstr(sent_header(3, "authorization"), "/us-east-1/sts/"));
    assert_string_equal(sent_header(3, "host"), "sts.amazonaws.com");
    unsetenv("http_proxy");
    aws_provider_unref(p);
    end_all();
}

static void test_learned_regions_bounded(void **state) {
    (void)state;
    BEGIN({.status = 200});
    static const http_reply told = {.status = 301, .headers = "x-amz-bucket-region: ap-south-1\r\n"};
    for (int i = 0; i < FZ_MAX_LEARNED_REGIONS + 5; i++) { /* each server is another host:port */
        http_fake *one = http_fake_start((http_reply[]){told, {.status = 200}}, 2);
        aws_provider *p = aws_provider_static("AK", SECRET, NULL, "test");
        aws_request rq = {.service = "s3", .method = "GET", .endpoint = http_fake_url(one), .path = "/", .provider = p};
        aws_answer an;
        assert_int_equal(aws_send(the_session, &rq, &an, &err), FZ_OK);
        aws_answer_free(&an);
        aws_provider_unref(p);
        http_fake_stop(one);
    }
    assert_int_equal(aws_session_send_state(the_session)->n_learned, FZ_MAX_LEARNED_REGIONS);
    end_all();
}

/* ---- what else ---- */

static void test_error_in_200(void **state) {
    (void)state;
    static const char failed[] = "<?xml version=\"1.0\"?>\n\n  <Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>";
    static const char gone[] = "<Error><Code>NoSuchUpload</Code><Message>gone</Message></Error>";
    aws_request rq = {.method = "POST", .idempotent = true};
    aws_answer an;
    BEGIN({.body = failed}, {.body = "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"});
    assert_int_equal(send_it(&rq, &an), FZ_OK); /* not asked for */
    assert_int_equal(an.attempts, 1);
    aws_answer_free(&an);
    end_all();
    rq.error_in_200 = true;
    BEGIN({.body = failed}, {.body = "<CompleteMultipartUploadResult><Error>no</Error></CompleteMultipartUploadResult>"});
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    assert_int_equal(an.attempts, 2);
    assert_true(an.maybe_applied);
    aws_answer_free(&an);
    end_all();
    BEGIN({.body = gone});
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_string_equal(err.code, "aws.not-found");
    assert_int_equal(an.attempts, 1);
    aws_answer_free(&an);
    end_all();
    BEGIN({.body = failed});
    rq.idempotent = false;
    assert_int_equal(send_it(&rq, &an), FZ_UNKNOWN);
    assert_int_equal(an.attempts, 1);
    aws_answer_free(&an);
    end_all();
}

/* What services quote of our request does not come through. */
static void test_secrets(void **state) {
    (void)state;
    char bodies[4][1500];
    snprintf(bodies[0], 1500, "{\"__type\":\"InvalidSignatureException\",\"message\":\"The request signature we calculated does not match. The Canonical String for this request should have been\\n'POST\\n/\\n\\nx-amz-security-token:%s\\n'\"}", TOKEN);
    snprintf(bodies[1], 1500, "<Error><Code>X</Code><Message>token %s and again %s key %s</Message></Error>", TOKEN, TOKEN, SECRET);
    char filler[500];
    memset(filler, 'x', sizeof filler);
    snprintf(bodies[2], 1500, "<Error><Code>X</Code><Message>%.*s%s</Message></Error>", 470, filler, TOKEN);
    snprintf(bodies[3], 1500, "<Error><Code>%s</Code><Message>m</Message></Error>", TOKEN);
    for (size_t i = 0; i < 4; i++) {
        BEGIN({.status = 400, .body = bodies[i]});
        aws_request rq = {.query = "X-Amz-Security-Token=IQoJb3JpZ2luX2VjE", .method = "POST"};
        aws_answer an;
        assert_int_equal(send_it(&rq, &an), FZ_USER);
        if (i == 0) assert_string_equal(an.error_message, "The request signature we calculated does not match. ");
        if (i == 1) assert_string_equal(an.error_message, "token *** and again *** key ***");
        aws_answer_free(&an);
        end_all();
    }
}

static void test_anonymous(void **state) {
    (void)state;
    BEGIN({.status = 403, .body = "<Error><Code>ExpiredToken</Code></Error>"});
    aws_request rq = {.anonymous = true};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_USER);
    assert_int_equal(an.attempts, 1);
    assert_string_equal(sent_header(0, "authorization"), "");
    assert_string_equal(sent_header(0, "x-amz-date"), "");
    aws_answer_free(&an);
    end_all();
}

static void test_backoff(void **state) {
    (void)state;
    int64_t most = 0, least = INT64_MAX;
    for (int i = 0; i < 2000; i++) {
        int64_t w = aws_backoff_ms(3, false, NULL, 0);
        assert_in_range(w, 0, 400);
        if (w > most) most = w;
        if (w < least) least = w;
        assert_in_range(aws_backoff_ms(40, i % 2, NULL, 0), 0, AWS_BACKOFF_CAP_MS);
    }
    assert_in_range(most, 350, 400); /* full jitter: over the whole range */
    assert_in_range(least, 0, 50);
    assert_in_range(aws_backoff_ms(1, false, "3", 0), 3000, 3100);
    assert_in_range(aws_backoff_ms(1, false, "0", 0), 0, 100);
    assert_in_range(aws_backoff_ms(1, false, "-5", 0), 0, 100);
    assert_in_range(aws_backoff_ms(1, false, "soon", 0), 0, 100);
    assert_int_equal(aws_backoff_ms(1, false, "86400", 0), AWS_BACKOFF_CAP_MS);
    assert_int_equal(aws_backoff_ms(1, false, "99999999999999999999", 0) <= AWS_BACKOFF_CAP_MS, 1);
    assert_in_range(aws_backoff_ms(1, false, "Mon, 02 Mar 2026 00:00:03 GMT", NOW_MS), 5000, 5100);
    assert_in_range(aws_backoff_ms(1, false, "Sun, 01 Mar 2026 00:00:03 GMT", NOW_MS), 0, 100);
    BEGIN({.status = 503, .headers = "Retry-After: 7\r\n"}, {.status = 200});
    aws_request rq = {.idempotent = true};
    aws_answer an;
    assert_int_equal(send_it(&rq, &an), FZ_OK);
    assert_in_range(waits[0], 7000, 7100);
    aws_answer_free(&an);
    end_all();
}

static void test_json_call(void **state) {
    (void)state;
    BEGIN({.body = "{\"Table\":{\"Name\":\"t\"}}"}, {.body = ""}, {.body = "{"}, {.body = "{"}, {.status = 400, .body = "{\"__type\":\"EntityNotFoundException\",\"Message\":\"m\"}"});
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    json_t *in = json_pack("{s:s}", "Name", "t\xc3\xa9"), *out = NULL;
    aws_answer an;
    assert_int_equal(aws_json_call(the_session, "glue", http_fake_url(fake), "AWSGlue.GetTable", in, true, &out, NULL, &err), FZ_OK);
    assert_string_equal(json_string_value(json_object_get(json_object_get(out, "Table"), "Name")), "t");
    json_decref(out);
    assert_string_equal(http_fake_seen(fake, 0)->body, "{\"Name\":\"t\xc3\xa9\"}");
    assert_string_equal(sent_header(0, "x-amz-target"), "AWSGlue.GetTable");
    assert_string_equal(sent_header(0, "content-type"), "application/x-amz-json-1.1");
    assert_string_equal(sent_header(0, "x-amz-content-sha256"), "");
    assert_non_null(strstr(sent_header(0, "authorization"), "SignedHeaders=content-type;host;x-amz-date;x-amz-target,"));
    assert_int_equal(aws_json_call(the_session, "glue", http_fake_url(fake), "AWSGlue.X", in, true, &out, NULL, &err), FZ_OK);
    assert_int_equal(json_object_size(out), 0);
    json_decref(out);
    assert_int_equal(aws_json_call(the_session, "glue", http_fake_url(fake), "AWSGlue.X", in, true, &out, NULL, &err), FZ_RETRY);
    assert_int_equal(aws_json_call(the_session, "glue", http_fake_url(fake), "AWSGlue.X", in, false, &out, NULL, &err), FZ_UNKNOWN);
    assert_string_equal(err.code, "aws.answer");
    assert_null(out);
    assert_int_equal(aws_json_call(the_session, "glue", http_fake_url(fake), "AWSGlue.GetTable", in, true, &out, &an, &err), FZ_USER);
    assert_string_equal(err.message, "glue GetTable: HTTP 400 EntityNotFoundException: m");
    assert_string_equal(an.error_code, "EntityNotFoundException");
    aws_answer_free(&an);
    json_decref(in);
    end_all();
}

static void test_caller_identity(void **state) {
    (void)state;
    BEGIN({.body = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/A&amp;B</Arn><UserId>AIDA</UserId>"
                   "<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"}, {.body = "<x/>"});
    aws_session_unref(the_session);
    setenv("AWS_ENDPOINT_URL_STS", http_fake_url(fake), 1);
    setenv("AWS_REGION", "eu-west-1", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    assert_int_equal(aws_session_new(NULL, 0, &the_session, &err), FZ_OK);
    fz_arena *a = fz_arena_new();
    aws_identity id;
    assert_int_equal(aws_caller_identity(the_session, a, &id, &err), FZ_OK);
    assert_string_equal(id.account, "123456789012");
    assert_string_equal(id.arn, "arn:aws:iam::123456789012:user/A&B");
    assert_string_equal(id.user_id, "AIDA");
    assert_string_equal(http_fake_seen(fake, 0)->body, "Action=GetCallerIdentity&Version=2011-06-15");
    assert_non_null(strstr(sent_header(0, "authorization"), "/eu-west-1/sts/aws4_request"));
    assert_int_equal(aws_caller_identity(the_session, a, &id, &err), FZ_RETRY);
    assert_string_equal(err.code, "aws.answer");
    fz_arena_free(a);
    end_all();
}

static void test_xml(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    static const struct { const char *xml, *name, *want; } cases[] = {
        {"<a><b>x</b></a>", "b", "x"}, {"<a><b>x</b><b>y</b></a>", "b", "x"}, {"<a><bb>x</bb><b>y</b></a>", "b", "y"}, {"<a/>", "b", NULL}, {"<a><b/></a>", "b", ""}, {"<b></b>", "b", ""},
        {"<s3:b xmlns:s3='u' a=\"1\">x</s3:b>", "b", "x"}, {"<b>&lt;&amp;&gt;&quot;&apos;&#65;&#xe9;&#x1F600;</b>", "b", "<&>\"'A\xc3\xa9\xf0\x9f\x98\x80"},
        {"<b>&nope;&#xD800;&#0;&</b>", "b", "&nope;&#xD800;&#0;&"}, {"<b><![CDATA[<x>&amp;]]>&amp;</b>", "b", "<x>&amp;&"}, {"<!-- <b>no</b> --><b>yes</b>", "b", "yes"},
        {"<![CDATA[<b>no</b>]]><b>yes</b>", "b", "yes"}, {"<b>open", "b", NULL}, {"<b", "b", NULL}, {"", "b", NULL}, {"not xml", "b", NULL}, {"<b \n>x</b\n>", "b", "x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = aws_xml_text(a, cases[i].xml, cases[i].name);
        if (!cases[i].want) assert_null(got);
        else {
            assert_non_null(got);
            assert_string_equal(got, cases[i].want);
        }
    }
    fz_arena_free(a);
}

/* Answers with bytes changed, lost and doubled: read without harm. */
static void test_damaged_answers(void **state) {
    (void)state;
    static const char *const seeds[] = {"<?xml version=\"1.0\"?><Error><Code>A&amp;B</Code><Message><![CDATA[x]]>&#x1F600;</Message><Region>r</Region><RequestId/></Error>",
                                        "{\"__type\":\"a.b#C:d\",\"message\":\"m\",\"error\":{\"type\":\"T\",\"message\":null}}"};
    uint32_t r = 12345;
    for (int i = 0; i < 20000; i++) {
        aws_answer an = {.http = {.status = 400, .arena = fz_arena_new()}};
        fz_buf_reserve(&an.http.body, 1024);
        fz_buf_puts(&an.http.body, seeds[i & 1]);
        for (int k = 0; k < 1 + i % 4; k++) {
            r = r * 1664525 + 1013904223;
            size_t at = (r >> 8) % an.http.body.len;
            if (r & 0x80000000) an.http.body.data[at] = (uint8_t)"<>&;#x:/![]{}\"\\ \0\xff"[(r >> 3) % 19];
            else if (an.http.body.len > 8 && (r & 64)) an.http.body.len = at + 1;
            else fz_buf_append(&an.http.body, an.http.body.data + at / 2, at - at / 2 < 64 ? at - at / 2 : 64);
        }
        fz_buf exact = {0}; /* no byte behind its NUL, so that reading on is seen */
        exact.data = fz_malloc(an.http.body.len + 1);
        memcpy(exact.data, an.http.body.data, an.http.body.len);
        exact.data[an.http.body.len] = 0;
        exact.len = an.http.body.len;
        exact.cap = exact.len + 1;
        fz_buf_free(&an.http.body);
        an.http.body = exact;
        aws_error_parse(&an);
        assert_true(strlen(an.error_code) < sizeof an.error_code && strlen(an.error_message) < sizeof an.error_message);
        assert_null(strpbrk(an.error_message, "\r\n"));
        aws_answer_free(&an);
    }
}

static void *many(void *cx) {
    (void)cx;
    size_t bad = 0;
    for (int i = 0; i < 30; i++) {
        aws_provider *p = aws_provider_static("AK", SECRET, TOKEN, "test");
        aws_request rq = {.service = i % 2 ? "s3" : "glue", .method = "PUT", .endpoint = http_fake_url(fake), .path = "/k", .provider = p, .body = {.p = "x", .n = 1}, .idempotent = true, .max_attempts = 40};
        aws_answer an;
        fz_error e;
        bad += aws_send(the_session, &rq, &an, &e) != FZ_OK;
        aws_answer_free(&an);
        aws_provider_unref(p);
    }
    return (void *)bad;
}
static void mixed(void *cx, const http_seen *rq, size_t i, http_reply *out) {
    (void)cx;
    char v[1200] = "";
    http_fake_header(rq, "authorization", v, sizeof v);
    if (strstr(v, "/eu-west-1/s3/")) *out = (http_reply){.status = 301, .headers = "x-amz-bucket-region: ap-south-1\r\n"};
    else if (i % 5 == 0) *out = (http_reply){.status = 503};
    else if (i % 11 == 0) out->close_before = true;
}
static void test_threads(void **state) {
    (void)state;
    BEGIN({.status = 200});
    http_fake_handle(fake, mixed, NULL);
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, many, NULL);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    end_all();
}

static int set_up(void **state) {
    fz_clock_fix(NOW_MS * 1000);
    fz_log_set_level(FZ_LOG_OFF);
    aws_sleep = no_sleep;
    setenv("NO_PROXY", "127.0.0.1", 1);
    return home_up(state);
}
int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, home_down)
    const struct CMUnitTest tests[] = {T(test_ok), T(test_body_of_file), T(test_throttled), T(test_unknown), T(test_lost_refusal), T(test_maybe_applied), T(test_not_connected), T(test_errors), T(test_expired),
                                       T(test_unknown_keys), T(test_skew), T(test_region), T(test_hosts), T(test_learned_regions_bounded), T(test_error_in_200), T(test_secrets), T(test_anonymous),
                                       T(test_backoff), T(test_json_call), T(test_caller_identity), T(test_xml), T(test_damaged_answers), T(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
