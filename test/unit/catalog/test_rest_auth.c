/* Logins of the REST catalog (OAuth2, Basic, AWS signatures), the credentials that it vends for a table's store, and that no secret is told. */
#include "rest_test.h"

#define TOKEN(t, more) {.body = "{\"access_token\": \"" t "\", \"token_type\": \"bearer\"" more "}"}
#define UNAUTHORIZED {.status = 401, .body = ERROR_BODY("NotAuthorizedException", "token tok-one is not good")}
#define DB {"GET " NS "/db", {.body = "{}"}}
#define NOW_US 1800000000000000ll

static bool exists(cat_catalog *c) {
    bool there = false;
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    return there;
}
static int auth_teardown(void **state) {
    fz_clock_fix(0);
    return teardown(state);
}

/* ---- OAuth2 ---- */

static void client_credentials(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    START({"POST /v1/oauth/tokens", TOKEN("tok-one", ", \"expires_in\": 1000")}, PLAIN, DB, DB, {"POST /v1/oauth/tokens", TOKEN("tok-two", ", \"expires_in\": \"1000\"")}, DB);
    cat_catalog *c = rest_opened(WITH(P("credential", "id-1:se cr:et&1"), P("scope", "PRINCIPAL_ROLE:ALL"), P("audience", "aud")));
    assert_string_equal(seen(0)->body, "grant_type=client_credentials&client_id=id-1&client_secret=se%20cr%3Aet%261&scope=PRINCIPAL_ROLE%3AALL&audience=aud");
    assert_string_equal(header(0, "Content-Type"), "application/x-www-form-urlencoded");
    assert_null(header(0, "Authorization"));
    assert_string_equal(header(1, "Authorization"), "Bearer tok-one");
    assert_true(exists(c));
    fz_clock_fix(NOW_US + 899 * 1000000ll); /* a tenth of 1000 s before the end it is renewed, no sooner */
    assert_true(exists(c));
    assert_string_equal(header(3, "Authorization"), "Bearer tok-one");
    fz_clock_fix(NOW_US + 901 * 1000000ll);
    assert_true(exists(c));
    assert_string_equal(header(5, "Authorization"), "Bearer tok-two");
    assert_non_null(strstr(seen(4)->body, "grant_type=client_credentials&"));
    strict(5);
    cat_close(c);
    finish();
}

/* While the old token is good a failed renewal is a warning; after its end it is an error. */
static void renewal_fails(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    START({"POST /v1/oauth/tokens", TOKEN("tok-one", ", \"expires_in\": 1000")}, PLAIN, {"POST /v1/oauth/tokens", {.status = 400, .body = "{\"error\": \"invalid_client\", \"error_description\": \"no secret-one\"}"}}, DB,
          {"POST /v1/oauth/tokens", {.status = 401, .body = "{\"error\": \"invalid_client\", \"error_description\": \"secret-one tok-one\"}"}});
    cat_catalog *c = rest_opened(WITH(P("credential", "me:secret-one")));
    fz_clock_fix(NOW_US + 950 * 1000000ll);
    assert_true(exists(c));
    assert_string_equal(header(3, "Authorization"), "Bearer tok-one");
    fz_clock_fix(NOW_US + 1001 * 1000000ll);
    bool there;
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-login");
    assert_non_null(strstr(err.message, "invalid_client"));
    assert_null(strstr(err.message, "secret-one"));
    assert_null(strstr(err.message, "tok-one"));
    cat_close(c);
    finish();
}

/* 401: not acted upon; one new login and the same request once more, also for a commit. */
static void refused_token(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0);
    ice_changes ch = add_snapshot(m, 7001);
    ice_metadata *after = applied(m, &ch);
    START({"POST /tok?x=y", TOKEN("tok-one", "")}, PLAIN, {"GET " NS "/db/tables/t", table_answer(m, "s3://b/x/metadata/1.metadata.json", "")}, {"POST " NS "/db/tables/t", UNAUTHORIZED},
          {"POST /tok?x=y", TOKEN("tok-two", "")}, {"POST " NS "/db/tables/t", table_answer(after, "s3://b/x/metadata/2.metadata.json", "")}, {"GET " NS "/db", {.status = 419}}, {"POST /tok?x=y", TOKEN("tok-three", "")},
          {"GET " NS "/db", UNAUTHORIZED});
    cat_catalog *c = rest_opened(WITH(P("credential", "secret-only"), P("oauth2-server-uri", fz_arena_printf(arena, "%s/tok?x=y", http_fake_url(sc.f)))));
    assert_string_equal(seen(0)->body, "grant_type=client_credentials&client_secret=secret-only&scope=catalog");
    cat_table *t, *next;
    OK(cat_load_table(c, &id, &t, &err));
    OK(cat_commit(c, t, &ch, &next, &err));
    assert_string_equal(header(3, "Authorization"), "Bearer tok-one");
    assert_string_equal(header(5, "Authorization"), "Bearer tok-two");
    assert_string_equal(seen(3)->body, seen(5)->body);
    cat_table_free(t);
    cat_table_free(next);
    bool there;
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-unauthorized"); /* twice is enough */
    cat_close(c);
    finish();
    ice_changes_free(&ch);
    ice_metadata_free(m);
    ice_metadata_free(after);
}

static void login_fails(void **state) {
    (void)state;
    cat_catalog *c;
    START({"POST /v1/oauth/tokens", {.status = 503}}, {"POST /v1/oauth/tokens", {.close_before = true}}, {"POST /v1/oauth/tokens", {.status = 401, .body = "{\"error\": \"unauthorized_client\"}"}},
          {"POST /v1/oauth/tokens", {.body = "{\"token\": \"x\"}"}});
    FAILS(rest_try(WITH(P("credential", "a:secret-one"), P("rest.client.max-retries", "2")), &c), FZ_USER, "catalog.rest-login");
    assert_non_null(strstr(err.message, "unauthorized_client"));
    assert_non_null(strstr(err.hint, "oauth2-server-uri"));
    FAILS(rest_try(WITH(P("credential", "a:secret-one")), &c), FZ_USER, "catalog.rest-login");
    finish();
}

/* A token alone: exchanged before its end, which the claim exp tells; without an exchange it is used as it stands. */
static void token_alone(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    /* {"exp": 1800001000} */
    const char *jwt = "eyJhbGciOiJub25lIn0.eyJleHAiOiAxODAwMDAxMDAwfQ.c2ln";
    START(PLAIN, DB, {"POST /v1/oauth/tokens", TOKEN("tok-new", ", \"expires_in\": 50, \"issued_token_type\": \"urn:ietf:params:oauth:token-type:jwt\"")}, DB,
          {"POST /v1/oauth/tokens", TOKEN("tok-newer", "")}, DB);
    cat_catalog *c = rest_opened(WITH(P("token", jwt)));
    assert_string_equal(header(0, "Authorization"), fz_arena_printf(arena, "Bearer %s", jwt));
    assert_true(exists(c));
    fz_clock_fix(NOW_US + 950 * 1000000ll);
    assert_true(exists(c));
    assert_non_null(strstr(seen(2)->body, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&scope=catalog&subject_token="));
    assert_non_null(strstr(seen(2)->body, "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"));
    assert_string_equal(header(2, "Authorization"), fz_arena_printf(arena, "Bearer %s", jwt));
    assert_string_equal(header(3, "Authorization"), "Bearer tok-new");
    fz_clock_fix(NOW_US + 996 * 1000000ll);
    assert_true(exists(c));
    assert_non_null(strstr(seen(4)->body, "subject_token=tok-new&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt"));
    cat_close(c);
    finish();
    START(PLAIN, {"GET " NS "/db", UNAUTHORIZED}, PLAIN, DB);
    c = rest_opened(WITH(P("token", "tok-one"), P("token-exchange-enabled", "false")));
    bool there;
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-unauthorized");
    assert_null(strstr(err.message, "tok-one")); /* the server's message had it */
    assert_non_null(strstr(err.message, "is not good"));
    cat_close(c);
    c = rest_opened(WITH(P("token", "tok-one"), P("token-refresh-enabled", "false"), P("token-expires-in-ms", "1000")));
    fz_clock_fix(NOW_US + 5000 * 1000000ll);
    assert_true(exists(c));
    cat_close(c);
    finish();
}

/* A token that came with a table is for its requests; when it is refused the catalog's own is tried. */
static void table_token(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0);
    ice_changes ch = add_snapshot(m, 7001);
    ice_metadata *after = applied(m, &ch);
    START(PLAIN, {"GET " NS "/db/tables/t", table_answer(m, "s3://b/x/metadata/1.metadata.json", ", \"config\": {\"token\": \"tok-table\"}")}, {"POST " NS "/db/tables/t", {.status = 401, .body = "tok-table is stale"}},
          {"POST " NS "/db/tables/t", table_answer(after, "s3://b/x/metadata/2.metadata.json", "")}, {"GET " NS "/db/tables/t", {.status = 403, .body = "not for tok-one"}});
    cat_catalog *c = rest_opened(WITH(P("token", "tok-one"), P("token-exchange-enabled", "false")));
    cat_table *t, *next;
    OK(cat_load_table(c, &id, &t, &err));
    OK(cat_commit(c, t, &ch, &next, &err));
    assert_string_equal(header(1, "Authorization"), "Bearer tok-one");
    assert_string_equal(header(2, "Authorization"), "Bearer tok-table");
    assert_string_equal(header(3, "Authorization"), "Bearer tok-one");
    cat_table_free(t);
    cat_table_free(next);
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.rest-forbidden");
    assert_non_null(strstr(err.message, "not for *******"));
    cat_close(c);
    finish();
    ice_changes_free(&ch);
    ice_metadata_free(m);
    ice_metadata_free(after);
}

/* A token of another type is exchanged first, once. */
static void table_token_exchanged(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0);
    http_reply answer = table_answer(m, "s3://b/x/metadata/1.metadata.json", ", \"config\": {\"urn:ietf:params:oauth:token-type:jwt\": \"the-jwt\"}");
    START(PLAIN, {"GET " NS "/db/tables/t", answer}, {"POST /v1/oauth/tokens", TOKEN("tok-table", "")}, {"GET " NS "/db/tables/t", answer}, {"GET " NS "/db/tables/t?snapshots=refs", answer},
          {"DELETE " NS "/db/tables/t", {.status = 204}});
    cat_catalog *c = rest_opened(WITH(P("token", "tok-one")));
    cat_table *t;
    for (int i = 0; i < 2; i++) {
        OK(cat_load_table(c, &id, &t, &err));
        cat_table_free(t);
    }
    assert_non_null(strstr(seen(2)->body, "&subject_token=the-jwt&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt&actor_token=tok-one&actor_token_type="));
    assert_string_equal(header(2, "Authorization"), "Bearer tok-one");
    OK(cat_drop_table(c, &id, false, &err));
    assert_string_equal(header(5, "Authorization"), "Bearer tok-table");
    cat_close(c);
    finish();
    ice_metadata_free(m);
}

static void basic(void **state) {
    (void)state;
    START(PLAIN, {"GET " NS "/db", {.status = 403, .body = ERROR_BODY("ForbiddenException", "Basic dTpwdzEyMw== has no rights, nor has pw123")}});
    cat_catalog *c = rest_opened(WITH(P("rest.auth.type", "basic"), P("rest.auth.basic.username", "u"), P("rest.auth.basic.password", "pw123")));
    bool there;
    assert_string_equal(header(0, "Authorization"), "Basic dTpwdzEyMw==");
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-forbidden");
    assert_null(strstr(err.message, "pw123"));
    assert_null(strstr(err.message, "dTpwdzEyMw"));
    cat_close(c);
    finish();
}

/* ---- AWS ---- */

#define ARN "arn:aws:s3tables:eu-west-1:123456789012:bucket/logs"
#define ENCODED "arn%3Aaws%3As3tables%3Aeu-west-1%3A123456789012%3Abucket%2Flogs"
#define SIGNED P("rest.sigv4-enabled", "true"), P("rest.signing-name", "s3tables"), P("rest.signing-region", "eu-west-1"), P("warehouse", ARN), \
               P("rest.access-key-id", "AKIDEXAMPLE"), P("rest.secret-access-key", "secret-key-one")

static void sigv4(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    START({"GET /v1/config?warehouse=arn%3Aaws%3As3tables%3Aeu-west-1%3A123456789012%3Abucket%2Flogs", {.body = "{\"defaults\": {}, \"overrides\": {}}"}},
          {"GET /v1/" ENCODED "/namespaces/db/tables/t?snapshots=all", {.status = 403, .headers = "x-amzn-requestid: rq-1\r\n", .body = "{\"message\": \"User is not authorized\"}"}});
    cat_catalog *c = rest_opened(WITH(SIGNED, P("header.Authorization", "Bearer other")));
    cat_table *t;
    strict(0);
    assert_non_null(strstr(header(0, "Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"));
    assert_non_null(strstr(header(0, "Authorization"), "/eu-west-1/s3tables/aws4_request"));
    assert_string_equal(header(0, "Original-Authorization"), "Bearer other");
    assert_string_equal(header(0, "x-amz-content-sha256"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_non_null(header(0, "x-amz-date"));
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.rest-forbidden");
    assert_non_null(strstr(err.hint, "s3tables:GetTableMetadataLocation"));
    assert_non_null(strstr(err.detail, "rq-1"));
    assert_null(header(1, "X-Iceberg-Access-Delegation")); /* the same credentials open the store */
    strict(1);
    cat_close(c);
    finish();
}

/* The clock of a server that calls ours wrong is taken; once. */
static void sigv4_clock(void **state) {
    (void)state;
    fz_clock_fix(NOW_US); /* 2027-01-15T08:00:00Z */
    START(PLAIN, {"GET /v1/" ENCODED "/namespaces/db", {.status = 403, .headers = "Date: Fri, 15 Jan 2027 09:30:00 GMT\r\n", .body = "{\"message\": \"Signature expired: 20270115T080000Z is now earlier than ...\"}"}},
          {"GET /v1/" ENCODED "/namespaces/db", {.body = "{}"}}, {"GET /v1/" ENCODED "/namespaces/db", {.status = 403, .headers = "Date: Fri, 15 Jan 2027 09:30:00 GMT\r\n", .body = "{\"message\": \"Signature expired\"}"}});
    cat_catalog *c = rest_opened(WITH(SIGNED));
    bool there;
    assert_string_equal(header(0, "x-amz-date"), "20270115T080000Z");
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_string_equal(header(2, "x-amz-date"), "20270115T093000Z");
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-forbidden");
    cat_close(c);
    finish();
}

/* What the address of an AWS endpoint tells. */
static void sigv4_scope(void **state) {
    (void)state;
    static const struct { const char *base, *scope; } cases[] = {
        {"https://s3tables.eu-west-1.amazonaws.com/iceberg", "/eu-west-1/s3tables/"},      {"https://glue.us-gov-west-1.amazonaws.com/iceberg", "/us-gov-west-1/glue/"},
        {"https://s3tables-fips.us-east-1.amazonaws.com/iceberg", "/us-east-1/s3tables/"}, {"https://glue.cn-north-1.amazonaws.com.cn/iceberg", "/cn-north-1/glue/"},
        {"https://glue.eu-north-1.api.aws/iceberg", "/eu-north-1/glue/"},                  {"https://vpce-1.s3tables.us-east-1.vpce.amazonaws.com/iceberg", "/ap-south-1/execute-api/"},
        {"https://abc.execute-api.us-east-1.amazonaws.com/x", "/ap-south-1/execute-api/"}, {"https://gluey.example.com", "/ap-south-1/execute-api/"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fz_pair o[] = {P("rest.auth.type", "sigv4"), P("client.region", "ap-south-1"), P("rest.access-key-id", "AK"), P("rest.secret-access-key", "sk")};
        rest r = {.arena = arena, .name = "lake", .base = cases[i].base, .options = o, .n_options = 4};
        rest_headers h = {0};
        uint64_t mark;
        OK(rest_auth_new(&r, &r.auth, &err));
        OK(rest_auth_add(&r, &(rest_outgoing){.method = "GET", .url = cases[i].base}, arena, &h, &mark, &err));
        if (!strstr(rest_header_get(&h, "authorization"), cases[i].scope)) fail_msg("%s: %s", cases[i].base, rest_header_get(&h, "authorization"));
        rest_auth_free(r.auth);
    }
}

/* ---- vended credentials ---- */

#define KEYS(key, ends) "\"s3.access-key-id\": \"" key "\", \"s3.secret-access-key\": \"sk\", \"s3.session-token\": \"st-" key "\", \"s3.session-token-expires-at-ms\": \"" ends "\""
#define CONFIG(endpoint) ", \"config\": {\"s3.endpoint\": \"%s\", \"s3.path-style-access\": \"true\", \"client.region\": \"eu-west-1\", \"s3.unheard-of\": \"1\", \"s3.remote-signing-enabled\": \"true\"" endpoint "}"

static cat_table *load_vended(cat_catalog *c) {
    cat_ident id = ident("db", "t");
    cat_table *t;
    OK(cat_load_table(c, &id, &t, &err));
    return t;
}
/* Who signs a read from the store now? */
static void reads_as(const cat_table *t, size_t request, const char *key) {
    fz_buf b = {0};
    OK(fio_read(t->io, "s3://bucket/wh/t/x", 100, &b, &err));
    fz_buf_free(&b);
    const char *a = header(request, "Authorization");
    assert_non_null(a);
    if (!strstr(a, fz_arena_printf(arena, "Credential=%s/", key))) fail_msg("request %zu is signed %s, not by %s", request, a, key);
}

static void vended(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    ice_metadata *m = small_metadata("s3://bucket/wh/t", NULL, 0);
    START(PLAIN, {"GET " NS "/db/tables/t", {0}}, {"GET /bucket/wh/t/x", {.headers = "ETag: \"e\"\r\n", .body = "x"}}, {"GET " NS "/db/tables/t", {0}}, {"GET /bucket/wh/t/x", {.headers = "ETag: \"e\"\r\n", .body = "x"}}, {"GET " NS "/db/tables/t?snapshots=refs", {0}},
          {"GET /bucket/wh/t/x", {.headers = "ETag: \"e\"\r\n", .body = "x"}});
    step *s = (step *)(uintptr_t)sc.steps;
    const char *config = fz_arena_printf(arena, CONFIG(""), http_fake_url(sc.f));
    const char *first = fz_arena_printf(arena, "%s, \"storage-credentials\": [{\"prefix\": \"s3://bucket/\", \"config\": {" KEYS("AKWIDE", "1800003600000") "}}, {\"prefix\": \"s3://bucket/wh/t\", \"config\": {" KEYS(
                                        "AKONE", "1800003600000") "}}, {\"prefix\": \"s3://bucket/wh/t2\", \"config\": {" KEYS("AKOTHER", "1800003600000") "}}]", config);
    s[1].r = s[3].r = table_answer(m, "s3://bucket/wh/t/metadata/1.metadata.json", first);
    s[5].r = table_answer(m, "s3://bucket/wh/t/metadata/1.metadata.json", fz_arena_printf(arena, "%s, \"storage-credentials\": [{\"prefix\": \"s3\", \"config\": {" KEYS("AKTWO", "1800007200000") "}}]", config));
    cat_catalog *c = rest_opened(NULL, 0);
    cat_table *t = load_vended(c);
    reads_as(t, 2, "AKONE"); /* of the longest prefix */
    assert_string_equal(header(2, "x-amz-security-token"), "st-AKONE");
    cat_table *again = load_vended(c);
    assert_ptr_equal(again->io, t->io); /* the same settings: the same store */
    reads_as(again, 4, "AKONE");
    cat_table_free(again);
    fz_clock_fix(NOW_US + 3400 * 1000000ll); /* they end in 200 s: the server is asked again */
    reads_as(t, 6, "AKTWO");
    cat_close(c); /* the table outlives its catalog */
    cat_table_free(t);
    finish();
    ice_metadata_free(m);
}

/* Renewal where the server says; S3's refusal asks for new ones too. */
static void vended_endpoint(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    ice_metadata *m = small_metadata("s3://bucket/wh/t", NULL, 0);
    START(PLAIN, {"GET " NS "/db/tables/t", {0}}, {"GET /bucket/wh/t/x", {.headers = "ETag: \"e\"\r\n", .body = "x"}},
          {"GET /bucket/wh/t/x", {.status = 400, .body = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"}},
          {"GET /v1/here/credentials", {.body = "{\"storage-credentials\": [{\"prefix\": \"s3://bucket\", \"config\": {" KEYS("AKTWO", "1800007200000") "}}]}"}}, {"GET /bucket/wh/t/x", {.headers = "ETag: \"e\"\r\n", .body = "x"}});
    step *s = (step *)(uintptr_t)sc.steps;
    const char *config = fz_arena_printf(arena, CONFIG(", \"client.refresh-credentials-endpoint\": \"v1/here/credentials\", " KEYS("AKONE", "1800003600000")), http_fake_url(sc.f));
    s[1].r = table_answer(m, "s3://bucket/wh/t/metadata/1.metadata.json", config);
    cat_catalog *c = rest_opened(WITH(P("token", "tok-one")));
    cat_table *t = load_vended(c);
    reads_as(t, 2, "AKONE");
    reads_as(t, 5, "AKTWO");
    assert_string_equal(header(4, "Authorization"), "Bearer tok-one");
    cat_table_free(t);
    cat_close(c);
    finish();
    ice_metadata_free(m);
}

/* Our login goes to no other server, whatever a table says. */
static void vended_elsewhere(void **state) {
    (void)state;
    fz_clock_fix(NOW_US);
    ice_metadata *m = small_metadata("s3://bucket/wh/t", NULL, 0);
    START({"GET /v1/config", {.body = "{\"endpoints\": [\"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}\", \"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials\"]}"}},
          {"GET " NS "/db/tables/t", {0}}, {"GET " NS "/db/tables/t/credentials", {.body = "{\"storage-credentials\": []}"}});
    step *s = (step *)(uintptr_t)sc.steps;
    s[1].r = table_answer(m, "s3://bucket/wh/t/metadata/1.metadata.json",
                          fz_arena_printf(arena, CONFIG(", \"client.refresh-credentials-endpoint\": \"http://localhost:%d/steal\", " KEYS("AKONE", "1799999000000")), http_fake_url(sc.f), sc.f->port));
    cat_catalog *c = rest_opened(WITH(P("token", "tok-one")));
    cat_table *t = load_vended(c);
    fz_buf b = {0};
    FAILS(fio_read(t->io, "s3://bucket/wh/t/x", 100, &b, &err), FZ_USER, "catalog.rest-credentials");
    fz_buf_free(&b);
    cat_table_free(t);
    cat_close(c);
    finish();
    ice_metadata_free(m);
}

/* ---- threads ---- */

typedef struct crowd { int issued, used; const char *table; } crowd;

/* A token is good for 40 requests of all, and the one before it goes on for as long. */
static void crowd_answer(void *cx, const http_seen *rq, size_t i, http_reply *out) {
    (void)i;
    static char body[128];
    crowd *k = cx;
    char given[64] = "";
    if (strcmp(rq->target, "/v1/oauth/tokens") == 0) {
        snprintf(body, sizeof body, "{\"access_token\": \"tok-%d\", \"expires_in\": 3600}", ++k->issued);
        k->used = 0;
        *out = (http_reply){.body = body};
        return;
    }
    int n = http_fake_header(rq, "Authorization", given, sizeof given) && strncmp(given, "Bearer tok-", 11) == 0 ? (int)strtol(given + 11, NULL, 10) : 0;
    bool good = n == k->issued ? ++k->used <= 40 : n == k->issued - 1;
    *out = good ? (http_reply){.body = strstr(rq->target, "/tables/") ? k->table : "{}"} : (http_reply){.status = 401};
}

static void *crowd_member(void *cx) {
    fz_error own;
    cat_namespace ns = {1, (const char *[]){"db"}};
    cat_ident id = {ns, "t"};
    for (int i = 0; i < 40; i++) {
        cat_table *t;
        if (cat_load_table(cx, &id, &t, &own) != FZ_OK) return fz_strdup(own.message);
        cat_table_free(t);
    }
    return NULL;
}

/* Many at once, while tokens are refused and credentials change. */
static void threads(void **state) {
    (void)state;
    ice_metadata *m = small_metadata("s3://bucket/wh/t", NULL, 0);
    crowd k = {.table = table_answer(m, "s3://bucket/wh/t/metadata/1.metadata.json", ", \"config\": {\"client.region\": \"eu-west-1\", " KEYS("AKONE", "1800003600000") "}").body};
    sc = (script){.f = http_fake_start(NULL, 0)};
    http_fake_handle(sc.f, crowd_answer, &k);
    cat_catalog *c = rest_opened(WITH(P("credential", "a:bcde")));
    pthread_t t[6];
    for (int i = 0; i < 6; i++) pthread_create(&t[i], NULL, crowd_member, c);
    for (int i = 0; i < 6; i++) {
        void *why;
        pthread_join(t[i], &why);
        if (why) fail_msg("%s", (char *)why);
    }
    cat_close(c);
    http_fake_stop(sc.f);
    assert_true(k.issued >= 5 && k.issued <= 12); /* one new token a refusal, not one a thread */
    ice_metadata_free(m);
}

int main(void) {
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(client_credentials, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(renewal_fails, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(refused_token, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(login_fails, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(token_alone, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(table_token, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(table_token_exchanged, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(basic, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(sigv4, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(sigv4_clock, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(sigv4_scope, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(vended, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(vended_endpoint, rest_setup, auth_teardown), cmocka_unit_test_setup_teardown(vended_elsewhere, rest_setup, auth_teardown),
        cmocka_unit_test_setup_teardown(threads, rest_setup, auth_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
