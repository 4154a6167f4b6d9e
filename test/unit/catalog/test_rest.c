/* The REST catalog against a scripted server: configuration, namespaces, tables, and what each outcome of a commit or a creation means. */
#include "rest_test.h"

/* ---- configuration ---- */

static void config(void **state) {
    (void)state;
    START({"GET /v1/config?warehouse=my%2Flake%20%C3%A9", {.body = "{\"defaults\": {\"rest-page-size\": \"5\", \"header.X-A\": \"server\", \"table-default.a\": \"1\", \"table-default.b\": \"1\"},"
                                                                  "\"overrides\": {\"prefix\": \"/cat%2Falog/x y/\", \"namespace-separator\": \"%2E\", \"table-override.c\": \"3\", \"default-database\": \"no\"}}"}});
    setenv("REST_TEST_VALUE", "from-env", 1);
    cat_catalog *c = rest_opened(WITH(P("warehouse", "my/lake \xc3\xa9"), P("rest-page-size", "7"), P("table-default.b", "2"), P("header.X-B", "env:REST_TEST_VALUE"), P("header.accept", "text/x")));
    assert_string_equal(header(0, "X-B"), "from-env");
    assert_null(header(0, "X-A"));
    assert_string_equal(header(0, "Accept"), "text/x");
    strict(0);
    const rest *r = c->impl;
    assert_string_equal(r->prefix, "cat%2Falog/x%20y");
    assert_string_equal(r->page_size, "7"); /* the client's goes before a default */
    assert_string_equal(rest_path(r, arena, &(cat_namespace){2, (const char *[]){"a +", "b"}}, "t\xc3\xa9", "/x"), "/v1/cat%2Falog/x%20y/namespaces/a%20%2B%2Eb/tables/t%C3%A9/x");
    assert_string_equal(cat_default_database(c), "default");
    fz_pair *p;
    size_t n;
    OK(cat_table_properties(c, arena, NULL, 0, &p, &n, &err));
    assert_string_equal(fz_pair_get(p, n, "a"), "1");
    assert_string_equal(fz_pair_get(p, n, "b"), "2");
    assert_string_equal(fz_pair_get(p, n, "c"), "3");
    bool there;
    FAILS(cat_namespace_exists(c, ns1("a.b"), &there, &err), FZ_USER, "catalog.name"); /* it would be taken for two */
    cat_close(c);
    finish();
}

static void config_refused(void **state) {
    (void)state;
    cat_catalog *c;
    START({"GET /v1/config", {.status = 404, .body = ERROR_BODY("NoSuchWarehouseException", "no such warehouse: x")}}, {"GET /v1/config", {.body = "<html><body>Welcome</body></html>"}},
          {"GET /v1/config", {.status = 403, .body = ""}}, {"GET /v1/config", {.status = 302, .headers = "Location: /login\r\n"}});
    FAILS(rest_try(WITH(P("warehouse", "x")), &c), FZ_USER, "catalog.rest-not-found");
    assert_non_null(strstr(err.message, "no such warehouse: x"));
    FAILS(rest_try(NULL, 0, &c), FZ_USER, "catalog.rest-answer");
    assert_non_null(strstr(err.detail, "Welcome"));
    assert_null(strstr(err.detail, "<"));
    FAILS(rest_try(NULL, 0, &c), FZ_USER, "catalog.rest-forbidden");
    FAILS(rest_try(NULL, 0, &c), FZ_USER, "catalog.rest-request");
    finish();
    START(PLAIN);
    sc.n = 0;
    FAILS(rest_try(WITH(P("rest.nothing", "1")), &c), FZ_USER, "catalog.option");
    assert_non_null(strstr(err.message, "rest.nothing"));
    FAILS(rest_try(WITH(P("rest.client.tls.configurer-impl", "x.Y")), &c), FZ_USER, "catalog.option");
    FAILS(rest_try(WITH(P("rest.auth.type", "google")), &c), FZ_USER, "catalog.option");
    FAILS(rest_try(WITH(P("rest-page-size", "0")), &c), FZ_USER, "catalog.option");
    FAILS(rest_try(WITH(P("rest.auth.type", "basic")), &c), FZ_USER, "catalog.option");
    FAILS(cat_open("lake", WITH(P("type", "iceberg"), P("catalog-impl", "org.apache.iceberg.rest.RESTCatalog")), NULL, &c, &err), FZ_USER, "catalog.option");
    finish();
}

/* Nobody there: nothing was sent, so that even a creation may be tried again, for a while. */
static void nobody(void **state) {
    (void)state;
    START(PLAIN);
    cat_catalog *c = rest_opened(WITH(P("rest.client.connection-timeout-ms", "300"), P("rest.client.max-retries", "3")));
    finish();
    FAILS(cat_create_namespace(c, ns1("db"), NULL, 0, &err), FZ_RETRY, "net.connect");
    assert_true(slept > 0);
    cat_close(c);
}

/* The options of one kind are idle in another: warned of, and not checked. */
static void ignored_options(void **state) {
    (void)state;
    START(PLAIN);
    cat_catalog *c = rest_opened(WITH(P("snapshot-loading-mode", "refs"), P("rest-metrics-reporting-enabled", "true"), P("client.refresh-credentials-enabled", "true"), P("glue.id", "1")));
    const cat_names *v = cat_ignored_options(c);
    assert_string_equal(joined(v), "snapshot-loading-mode rest-metrics-reporting-enabled glue.id ");
    cat_close(c);
    finish();
    OK(try_open("hadoop", "h", WITH(P("credential", "a:b"), P("rest.signing-name", "glue")), &c));
    assert_string_equal(joined(cat_ignored_options(c)), "credential rest.signing-name ");
    cat_close(c);
}

/* What is not listed is not asked for. */
static void endpoints(void **state) {
    (void)state;
    START({"GET /v1/config", {.body = "{\"endpoints\": [\"GET /v1/{prefix}/namespaces\", \"GET /v1/{prefix}/namespaces/{namespace}\"]}"}}, {"GET " NS "/db", {.body = "{\"namespace\": [\"db\"]}"}},
          {"GET " NS "/db", {.body = "{\"namespace\": [\"db\"]}"}});
    cat_catalog *c = rest_opened(NULL, 0);
    cat_names v;
    FAILS(cat_list_tables(c, ns1("db"), arena, &v, &err), FZ_USER, "catalog.rest-endpoint");
    assert_non_null(strstr(err.message, "GET /v1/{prefix}/namespaces/{namespace}/tables"));
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.rest-endpoint");
    cat_close(c);
    finish();
}

/* ---- namespaces ---- */

static void namespaces(void **state) {
    (void)state;
    START(MODERN, {"HEAD " NS "/db", {.status = 204}}, {"HEAD " NS "/no", {.status = 404}}, {"HEAD " NS "/hidden", {.status = 403}},
          {"POST " NS, {.body = "{\"namespace\": [\"new\"], \"properties\": {}}"}}, {"POST " NS, {.status = 409, .body = ERROR_BODY("AlreadyExistsException", "x")}},
          {"HEAD " NS "/db", {.status = 204}}, {"GET " NS "/db", {.body = "{\"namespace\": [\"db\"], \"properties\": {\"a\": \"1\", \"location\": \"s3://x\"}}"}},
          {"HEAD " NS "/db", {.status = 204}}, {"DELETE " NS "/db", {.status = 409, .body = ERROR_BODY("NamespaceNotEmptyException", "Namespace db is not empty")}},
          {"HEAD " NS "/db", {.status = 204}}, {"DELETE " NS "/db", {.status = 503}}, {"DELETE " NS "/db", {.status = 404}}, /* the first one has done it */
          {"HEAD " NS "/db", {.status = 204}}, {"DELETE " NS "/db", {.status = 404}});
    cat_catalog *c = rest_opened(NULL, 0);
    bool there;
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_true(there);
    OK(cat_namespace_exists(c, ns1("no"), &there, &err));
    assert_false(there);
    FAILS(cat_namespace_exists(c, ns1("hidden"), &there, &err), FZ_USER, "catalog.rest-forbidden"); /* never "does not exist" */
    OK(cat_create_namespace(c, ns1("new"), WITH(P("comment", "c")), &err));
    assert_non_null(strstr(seen(4)->body, "\"namespace\":[\"new\"]"));
    assert_non_null(strstr(seen(4)->body, "\"comment\":\"c\""));
    FAILS(cat_create_namespace(c, ns1("new"), NULL, 0, &err), FZ_USER, "catalog.namespace-exists");
    fz_pair *p;
    size_t n;
    OK(cat_namespace_properties(c, ns1("db"), arena, &p, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(fz_pair_get(p, n, "location"), "s3://x");
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-empty");
    OK(cat_drop_namespace(c, ns1("db"), &err));
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-found");
    cat_close(c);
    finish();
}

static void namespace_outcomes(void **state) {
    (void)state;
    START(PLAIN, {"POST " NS, {.status = 503}}, {"POST " NS, {.reset = true}}, {"POST " NS, {.status = 429}}, {"GET " NS "/db", {.body = "{}"}},
          {"POST " NS "/db/properties", {.status = 502}}, {"POST " NS "/db/properties", {.body = "{\"updated\": [\"a\"]}"}});
    cat_catalog *c = rest_opened(NULL, 0);
    FAILS(cat_create_namespace(c, ns1("new"), NULL, 0, &err), FZ_UNKNOWN, "catalog.commit-unknown");
    FAILS(cat_create_namespace(c, ns1("new"), NULL, 0, &err), FZ_UNKNOWN, "catalog.commit-unknown");
    FAILS(cat_create_namespace(c, ns1("new"), NULL, 0, &err), FZ_RETRY, "catalog.rest-throttled");
    OK(cat_set_namespace_properties(c, ns1("db"), WITH(P("a", "1")), &err)); /* twice does no harm */
    assert_non_null(strstr(seen(6)->body, "\"updates\":{\"a\":\"1\"}"));
    cat_close(c);
    finish();
}

static void lists(void **state) {
    (void)state;
    START(PLAIN, {"GET " NS "?pageToken=&pageSize=2", {.body = "{\"namespaces\": [[\"b\"], [\"a\"]], \"next-page-token\": \"p/2 =\"}"}},
          {"GET " NS "?pageToken=p%2F2%20%3D&pageSize=2", {.body = "{\"namespaces\": [[\"c\"]], \"next-page-token\": null}"}}, {"GET " NS "/a%1Fb", {.body = "{}"}},
          {"GET " NS "?pageToken=&pageSize=2&parent=a%1Fb", {.body = "{\"namespaces\": [[\"a\", \"b\", \"c\"], [\"a\"]]}"}}, {"GET " NS "/a", {.body = "{}"}},
          {"GET " NS "/a/tables?pageToken=&pageSize=2", {.body = "{\"identifiers\": [{\"namespace\": [\"a\"], \"name\": \"t2\"}], \"next-page-token\": \"x\"}"}},
          {"GET " NS "/a/tables?pageToken=x&pageSize=2", {.body = "{\"identifiers\": [{\"namespace\": [\"a\"], \"name\": \"t1\"}], \"next-page-token\": \"\"}"}}, {"GET " NS "/a", {.body = "{}"}},
          {"GET " NS "/a/tables?pageToken=&", {.body = "{\"identifiers\": [], \"next-page-token\": \"x\"}"}}, {"GET " NS "/a/tables?pageToken=x&", {.body = "{\"identifiers\": [], \"next-page-token\": \"x\"}"}},
          {"GET " NS "/no", {.body = "{}"}}, {"GET " NS "?pageToken=&pageSize=2&parent=no", {.status = 404, .body = ERROR_BODY("NoSuchNamespaceException", "x")}});
    cat_catalog *c = rest_opened(WITH(P("rest-page-size", "2")));
    cat_names v;
    OK(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err));
    assert_string_equal(joined(&v), "a b c ");
    OK(cat_list_namespaces(c, ns2("a", "b"), arena, &v, &err));
    assert_string_equal(joined(&v), "c ");
    OK(cat_list_tables(c, ns1("a"), arena, &v, &err));
    assert_string_equal(joined(&v), "t1 t2 ");
    FAILS(cat_list_tables(c, ns1("a"), arena, &v, &err), FZ_FATAL, "catalog.rest-answer"); /* a token that comes again */
    FAILS(cat_list_namespaces(c, ns1("no"), arena, &v, &err), FZ_USER, "catalog.namespace-not-found");
    cat_close(c);
    finish();
}

/* ---- tables ---- */

static void load(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0);
    http_reply answer = table_answer(m, "s3://b/x/metadata/00003-u.metadata.json", ", \"config\": {\"a\\\"}\": \"}\"}");
    START(PLAIN, {"GET " NS "/db/tables/t?snapshots=all", answer}, {"GET " NS "/db/tables/t", NO_TABLE}, {"GET " NS "/db/tables/t", {.status = 404, .body = ERROR_BODY("NoSuchNamespaceException", "x")}},
          {"GET " NS "/db/tables/t", {.status = 403}}, {"GET " NS "/db/tables/t", {.status = 503, .headers = "Retry-After: 3\r\n"}}, {"GET " NS "/db/tables/t", {.close_before = true}},
          {"GET " NS "/db/tables/t", answer}, {"GET " NS "/db/tables/t", {.body = "{\"metadata\": {\"format-version\": 2}}"}}, {"GET " NS "/db/tables/t", {.body = "{\"metadata\": "}},
          {"GET " NS "/db/tables/t?snapshots=refs", answer}, {"GET " NS "/db/tables/t", NO_TABLE}, {"GET " NS "/db/tables/t", {.status = 403}});
    cat_catalog *c = rest_opened(NULL, 0);
    cat_table *t;
    OK(cat_load_table(c, &id, &t, &err));
    assert_string_equal(t->metadata_location, "s3://b/x/metadata/00003-u.metadata.json");
    assert_int_equal(t->version, 3);
    assert_string_equal(t->metadata->uuid, m->uuid);
    assert_ptr_equal(t->io, c->io);
    assert_string_equal(header(1, "X-Iceberg-Access-Delegation"), "vended-credentials");
    strict(1);
    cat_table_free(t);
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.table-not-found");
    assert_non_null(strstr(err.detail, "Table does not exist: db.t"));
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.rest-forbidden");
    assert_non_null(strstr(err.message, "status 403 without a word why"));
    OK(cat_load_table(c, &id, &t, &err)); /* after a 503 and a lost answer */
    assert_true(slept >= 3000);
    cat_table_free(t);
    FAILS(cat_load_table(c, &id, &t, &err), FZ_FATAL, "iceberg.metadata");
    FAILS(cat_load_table(c, &id, &t, &err), FZ_RETRY, "catalog.rest-answer");
    bool there;
    OK(cat_table_exists(c, &id, &there, &err));
    assert_true(there);
    OK(cat_table_exists(c, &id, &there, &err));
    assert_false(there);
    FAILS(cat_table_exists(c, &id, &there, &err), FZ_USER, "catalog.rest-forbidden");
    cat_close(c);
    finish();
    ice_metadata_free(m);
}

/* An answer that breaks off anywhere, in memory that ends there: an error, never a table. */
static void broken_off(void **state) {
    (void)state;
    const rest r = {.name = "lake"};
    ice_metadata *m = small_metadata("s3://b/x\\\"{", NULL, 0);
    http_reply whole = table_answer(m, "s3://b/x/metadata/1.metadata.json", ", \"config\": {\"a\\\\\": \"}]\\\"\"}");
    rest_result out;
    size_t n = strlen(whole.body);
    for (size_t i = 0; i <= n; i++) {
        rest_answer a = {.http = {.status = 200, .body = {fz_malloc(i + 1), i, i}}};
        a.http.body.data = fz_realloc(a.http.body.data, i ? i : 1);
        memcpy(a.http.body.data, whole.body, i);
        if (i < n) FAILS(rest_result_parse(&r, &a, &out, &err), FZ_RETRY, "catalog.rest-answer");
        else {
            OK(rest_result_parse(&r, &a, &out, &err));
            assert_memory_equal(out.metadata, "{\"", 2);
            assert_string_equal(json_string_value(json_object_get(json_object_get(out.rest, "config"), "a\\")), "}]\"");
            ice_metadata *again;
            OK(ice_metadata_parse(out.metadata, out.n_metadata, &again, &err));
            assert_string_equal(again->location, "s3://b/x\\\"{");
            ice_metadata_free(again);
            json_decref(out.rest);
        }
        fz_buf_free(&a.http.body);
    }
    ice_metadata_free(m);
}

static void drop(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    START(MODERN, {"HEAD " NS "/db/tables/t", {.status = 204}}, {"DELETE " NS "/db/tables/t", {.status = 204}}, {"HEAD " NS "/db/tables/t", {.status = 200}},
          {"DELETE " NS "/db/tables/t?purgeRequested=true", {.close_before = true}}, {"DELETE " NS "/db/tables/t?purgeRequested=true", NO_TABLE}, {"HEAD " NS "/db/tables/t", {.status = 404}});
    cat_catalog *c = rest_opened(NULL, 0);
    OK(cat_drop_table(c, &id, false, &err));
    assert_null(strchr(seen(2)->target, '?'));
    OK(cat_drop_table(c, &id, true, &err)); /* the lost answer's request has done it */
    FAILS(cat_drop_table(c, &id, true, &err), FZ_USER, "catalog.table-not-found");
    cat_close(c);
    finish();
}

static ice_metadata *to_create(const char *location) {
    col_field f[2] = {{"ts", col_simple(COL_DATE, false), NULL}, {"name", col_string(true), NULL}};
    col_schema s = {2, f};
    ice_schema *is;
    ice_spec *spec;
    ice_metadata *m;
    ice_term term = {.column = "ts"};
    fz_pair p = P("write.format.default", "parquet");
    OK(ice_schema_from_cols(arena, &s, NULL, 0, &is, &err));
    OK(ice_spec_build(arena, is, &term, 1, &spec, &err));
    OK(ice_metadata_new(location, is, spec, NULL, &p, 1, "00000000-0000-4000-8000-000000000001", fz_now_ms(), &m, &err));
    return m;
}

#define BEFORE_CREATE {"HEAD " NS "/db", {.status = 204}}, {"HEAD " NS "/db/tables/t", {.status = 404}}

static void create(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *first = to_create(""), *made = small_metadata("s3://b/server/chose", NULL, 0);
    START(MODERN, {"HEAD " NS "/db", {.status = 204}}, BEFORE_CREATE, {"POST " NS "/db/tables", table_answer(made, "s3://b/server/chose/metadata/00000-x.metadata.json", "")}, BEFORE_CREATE,
          {"POST " NS "/db/tables", {.status = 409, .body = ERROR_BODY("AlreadyExistsException", "x")}}, BEFORE_CREATE, {"POST " NS "/db/tables", {.status = 404, .body = ERROR_BODY("NoSuchNamespaceException", "x")}},
          {"HEAD " NS "/db", {.status = 204}}, {"HEAD " NS "/db/tables/t", {.status = 204}}, BEFORE_CREATE, {"POST " NS "/db/tables", {.status = 400, .body = ERROR_BODY("BadRequestException", "bad schema")}});
    cat_catalog *c = rest_opened(NULL, 0);
    const char *location;
    cat_table *t;
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, ""); /* the server's to choose */
    OK(cat_create_table(c, &id, first, &t, &err));
    assert_string_equal(t->metadata->location, "s3://b/server/chose");
    assert_string_equal(t->metadata->uuid, made->uuid);
    cat_table_free(t);
    json_t *b = json_loads(seen(4)->body, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(b, "name")), "t");
    assert_null(json_object_get(b, "location"));
    assert_true(json_is_false(json_object_get(b, "stage-create")));
    assert_int_equal(json_array_size(json_object_get(json_object_get(b, "schema"), "fields")), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(json_object_get(b, "partition-spec"), "fields"), 0), "name")), "ts");
    assert_string_equal(json_string_value(json_object_get(json_object_get(b, "properties"), "format-version")), "2");
    assert_string_equal(json_string_value(json_object_get(json_object_get(b, "properties"), "write.format.default")), "parquet");
    json_decref(b);
    first = to_create("s3://mine/t/");
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_USER, "catalog.table-exists");
    assert_non_null(strstr(seen(7)->body, "\"location\":\"s3://mine/t\""));
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_USER, "catalog.table-exists");
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_USER, "catalog.rest-request");
    cat_close(c);
    finish();
    ice_metadata_free(first);
    ice_metadata_free(made);
}

/* An outcome that is not known: the name is looked up. */
static void create_unknown(void **state) {
    (void)state;
    cat_ident id = ident("db", "t");
    ice_metadata *first = to_create("s3://mine/t"), *other = small_metadata("s3://mine/t", NULL, 0);
    http_reply same = table_answer(first, "s3://mine/t/metadata/00000-x.metadata.json", ""), different = table_answer(other, "s3://mine/t/metadata/00000-y.metadata.json", "");
    START(MODERN, BEFORE_CREATE, {"POST " NS "/db/tables", {.status = 503}}, {"GET " NS "/db/tables/t", different}, BEFORE_CREATE, {"POST " NS "/db/tables", {.status = 504}},
          {"GET " NS "/db/tables/t", NO_TABLE}, BEFORE_CREATE, {"POST " NS "/db/tables", {.reset = true}}, {"GET " NS "/db/tables/t", {.status = 403}}, BEFORE_CREATE,
          {"POST " NS "/db/tables", {.body = "<html>proxy</html>"}}, {"GET " NS "/db/tables/t", same});
    cat_catalog *c = rest_opened(NULL, 0);
    cat_table *t;
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_USER, "catalog.table-exists");
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_UNKNOWN, "catalog.commit-unknown");
    assert_non_null(strstr(err.message, "not there yet"));
    FAILS(cat_create_table(c, &id, first, &t, &err), FZ_UNKNOWN, "catalog.commit-unknown");
    OK(cat_create_table(c, &id, first, &t, &err));
    assert_string_equal(t->metadata->location, "s3://mine/t");
    cat_table_free(t);
    cat_close(c);
    finish();
    ice_metadata_free(other);
}

/* ---- commits ---- */

#define TABLE NS "/db/tables/t"
#define ADDED 7001

typedef struct commit_case {
    const char *what;
    http_reply post;
    int then;         /* 0: nothing is asked after it; 1: the table without our snapshot, 2: with it, 3: the table is forbidden, 4: it is gone, 5: another one in the place of ours, 6: so
                          far that the list does not tell */
    fz_status cls;
    const char *code; /* NULL: FZ_OK */
} commit_case;

static void commit_one(const commit_case *k, const ice_metadata *m, const ice_metadata *after, const ice_changes *ch, const http_reply others[2]) {
    cat_ident id = ident("db", "t");
    http_reply now = table_answer(m, "s3://b/x/metadata/00001-a.metadata.json", ""), landed = table_answer(after, "s3://b/x/metadata/00002-b.metadata.json", ""),
               looks[] = {{0}, now, landed, {.status = 403}, NO_TABLE, others[0], others[1]};
    START(PLAIN, {"GET " TABLE, now}, {"POST " TABLE, k->post}, {"GET " TABLE, looks[k->then]});
    if (!k->then) sc.n--;
    if (k->post.status == -1) ((step *)(uintptr_t)sc.steps)[2].r = landed;
    cat_catalog *c = rest_opened(NULL, 0);
    cat_table *t, *next = NULL;
    OK(cat_load_table(c, &id, &t, &err));
    fz_status rc = cat_commit(c, t, ch, &next, &err);
    if (rc != k->cls || (k->code && strcmp(err.code, k->code) != 0)) fail_msg("%s: %s, code %s: %s", k->what, fz_status_name(rc), rc ? err.code : "", rc ? err.message : "");
    if (rc == FZ_OK) {
        assert_non_null(ice_metadata_snapshot(next->metadata, ADDED));
        assert_string_equal(next->metadata_location, "s3://b/x/metadata/00002-b.metadata.json");
        assert_ptr_equal(next->io, t->io);
    } else assert_null(next);
    strict(2);
    cat_table_free(next);
    cat_table_free(t);
    cat_close(c);
    finish(); /* one POST, whatever came */
}

static void commits(void **state) {
    (void)state;
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0), *foreign = small_metadata("s3://b/x", NULL, 0);
    ice_changes ch = add_snapshot(m, ADDED);
    ice_metadata *after = applied(m, &ch);
    ice_changes first = add_snapshot(m, 8001);
    ice_metadata *one = applied(m, &first);
    ice_changes second = add_snapshot(one, 8002);
    int64_t forgotten = 8001;
    ice_update_remove_snapshots(&second, &forgotten, 1);
    ice_metadata *two = applied(one, &second);
    const http_reply others[2] = {table_answer(one, "x", ""), table_answer(two, "x", "")};
    const commit_case cases[] = {
        {"accepted", {.status = -1}, 0, FZ_OK, NULL},
        {"conflict", {.status = 409, .body = ERROR_BODY("CommitFailedException", "moved")}, 1, FZ_CONFLICT, "catalog.conflict"},
        {"conflict with our own success", {.status = 409, .body = ERROR_BODY("CommitFailedException", "moved")}, 2, FZ_OK, NULL},
        {"conflict, and nobody tells with what", {.status = 409}, 3, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"conflict, and the table is gone", {.status = 409}, 4, FZ_CONFLICT, "catalog.conflict"},
        {"conflict with another snapshot", {.status = 409}, 5, FZ_CONFLICT, "catalog.conflict"},
        {"conflict, and a list that does not reach back", {.status = 409}, 6, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"bad request", {.status = 400, .body = ERROR_BODY("BadRequestException", "no")}, 0, FZ_USER, "catalog.rest-request"},
        {"not authorised", {.status = 401}, 0, FZ_USER, "catalog.rest-unauthorized"},
        {"forbidden", {.status = 403, .body = ERROR_BODY("ForbiddenException", "no")}, 0, FZ_USER, "catalog.rest-forbidden"},
        {"gone", NO_TABLE, 0, FZ_USER, "catalog.table-not-found"},
        {"not processable", {.status = 422}, 0, FZ_USER, "catalog.rest-request"},
        {"redirect", {.status = 307, .headers = "Location: http://127.0.0.1:1/\r\n"}, 0, FZ_USER, "catalog.rest-request"},
        {"throttled", {.status = 429, .headers = "Retry-After: 1\r\n"}, 0, FZ_RETRY, "catalog.rest-throttled"},
        {"not supported", {.status = 501, .body = ERROR_BODY("UnsupportedOperationException", "no")}, 0, FZ_USER, "catalog.rest-request"},
        {"408", {.status = 408}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"500", {.status = 500, .body = ERROR_BODY("CommitStateUnknownException", "no")}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"501 of a proxy", {.status = 501, .body = "<html>"}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"502", {.status = 502, .body = "<html><h1>Bad Gateway</h1></html>"}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"503", {.status = 503}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"503 with Retry-After", {.status = 503, .headers = "Retry-After: 1\r\n", .body = ERROR_BODY("SlowDown", "later")}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"504", {.status = 504}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"closed", {.close_before = true}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"reset", {.reset = true}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"cut", {.body = "{\"metadata-location\": \"x\", \"metadata\": {}}", .cut = true, .cut_at = 5}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"empty 200", {.body = ""}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"204", {.status = 204}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"200 of a proxy", {.body = "<html>please log in</html>"}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"200 with half a table", {.body = "{\"metadata\": {\"format-version\": 2}}"}, 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"200 with the old table", table_answer(m, "x", ""), 0, FZ_UNKNOWN, "catalog.commit-unknown"},
        {"200 with another table", table_answer(foreign, "x", ""), 0, FZ_UNKNOWN, "catalog.commit-unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) commit_one(&cases[i], m, after, &ch, others);
    ice_changes_free(&ch);
    ice_changes_free(&first);
    ice_changes_free(&second);
    ice_metadata_free(m);
    ice_metadata_free(foreign);
    ice_metadata_free(after);
    ice_metadata_free(one);
    ice_metadata_free(two);
}

/* The request itself, and that a silent server is UNKNOWN after the time-out. */
static void commit_request(void **state) {
    (void)state;
    cat_ident id = {ns2("a b", "c"), "1"};
    ice_metadata *m = small_metadata("s3://b/x", NULL, 0);
    ice_changes ch = add_snapshot(m, ADDED);
    START({"GET /v1/config", {.body = "{\"idempotency-key-lifetime\": \"PT30M\"}"}}, {"GET " NS "/a%20b%1Fc/tables/1", table_answer(m, "s3://b/x/metadata/00001-a.metadata.json", "")},
          {"POST " NS "/a%20b%1Fc/tables/1", {.delay_ms = 2500, .status = 200, .body = "{}"}});
    cat_catalog *c = rest_opened(WITH(P("rest.client.socket-timeout-ms", "300")));
    cat_table *t, *next;
    OK(cat_load_table(c, &id, &t, &err));
    assert_null(header(1, "Idempotency-Key"));
    FAILS(cat_commit(c, t, &ch, &next, &err), FZ_UNKNOWN, "catalog.commit-unknown");
    json_t *b = json_loads(seen(2)->body, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(b, "identifier"), "name")), "1");
    assert_int_equal(json_array_size(json_object_get(json_object_get(b, "identifier"), "namespace")), 2);
    assert_true(json_equal(json_object_get(b, "requirements"), ch.requirements));
    assert_true(json_equal(json_object_get(b, "updates"), ch.updates));
    assert_string_equal(header(2, "Content-Type"), "application/json");
    assert_int_equal(header(2, "Idempotency-Key")[14], '7'); /* UUID version 7 */
    assert_null(header(2, "X-Iceberg-Access-Delegation"));
    json_decref(b);
    OK(fz_fault_arm("commit.swap:1:unknown", &err));
    FAILS(cat_commit(c, t, &ch, &next, &err), FZ_UNKNOWN, "fault.injected"); /* before the POST: the script has no further request */
    cat_table_free(t);
    cat_close(c);
    finish();
    ice_changes_free(&ch);
    ice_metadata_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(config, rest_setup, teardown), cmocka_unit_test_setup_teardown(config_refused, rest_setup, teardown), cmocka_unit_test_setup_teardown(nobody, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(ignored_options, rest_setup, teardown), cmocka_unit_test_setup_teardown(endpoints, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(namespaces, rest_setup, teardown), cmocka_unit_test_setup_teardown(namespace_outcomes, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(lists, rest_setup, teardown), cmocka_unit_test_setup_teardown(load, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(drop, rest_setup, teardown), cmocka_unit_test_setup_teardown(broken_off, rest_setup, teardown), cmocka_unit_test_setup_teardown(create, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(create_unknown, rest_setup, teardown), cmocka_unit_test_setup_teardown(commits, rest_setup, teardown),
        cmocka_unit_test_setup_teardown(commit_request, rest_setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
