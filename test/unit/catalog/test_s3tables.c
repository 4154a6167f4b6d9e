/* The S3 Tables catalog against table buckets in memory. Imitates the REST-JSON API of Amazon S3 Tables (API reference), as strict as the service is known to be: the ARN is
 * one encoded segment, no header comes twice, no Keep-Alive, signed as s3tables. */
#include "aws_fake.h"

#define ARN "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake"
#define ARN_SEGMENT "arn%3Aaws%3As3tables%3Aeu-central-1%3A123456789012%3Abucket%2Flake"

static cat_catalog *c;
static cat_ident id;
static cat_table *base;
static char why_refused[256]; /* what the strict side did not like */
static int n_buckets;

static void reply_error(http_reply *out, int status, const char *code, const char *message) {
    out->status = status ? status : 400;
    out->headers = keep_text(fz_asprintf("x-amzn-errortype: %s:http://internal.amazon.com/\r\nContent-Type: application/json\r\n", code));
    out->body = keep_text(fz_asprintf("{\"message\":\"%s\"}", message ? message : code));
}
static bool nameless; /* what is not there is not named */
static void not_found(http_reply *out, const char *what) {
    reply_error(out, 404, "NotFoundException", nameless ? "The specified resource could not be found." : keep_text(fz_asprintf("The specified %s does not exist.", what)));
}

static const char *key_of(const json_t *in) {
    static char key[600];
    snprintf(key, sizeof key, "%s.%s", str(in, "ns"), str(in, "name"));
    return key;
}
static void bump(json_t *t) { json_object_set_new(t, "versionToken", json_sprintf("v%d", 1 + (int)strtol(str(t, "versionToken") + 1, NULL, 10))); }

static json_t *page(const json_t *all, const json_t *in, const char *member, const char *prefix) {
    json_t *list = json_array(), *v, *out;
    const char *key, *token = str(in, "continuationToken");
    size_t from = token ? strtoul(token + 2, NULL, 10) : 0, i = 0;
    bool more = false;
    json_object_foreach((json_t *)(uintptr_t)all, key, v) {
        if (!fz_starts(key, prefix)) continue;
        if (i >= from && i < from + 2)
            json_array_append_new(list, *prefix ? json_pack("{s:s, s:[s]}", "name", key + strlen(prefix), "namespace", "x") : json_pack("{s:[s]}", "namespace", key));
        more |= i >= from + 2;
        i++;
    }
    out = json_pack("{s:o}", member, list);
    if (more) json_object_set_new(out, "continuationToken", json_sprintf("=&%zu", from + 2)); /* must be encoded */
    return out;
}

static void apply_table(const char *op, const json_t *in, http_reply *out) {
    json_t *t = json_object_get(fg.tables, key_of(in));
    if (!strcmp(op, "CreateTable")) {
        if (t) return reply_error(out, 409, "ConflictException", "A table with an identical name already exists in the namespace.");
        t = json_pack("{s:s, s:o}", "versionToken", "v0", "warehouseLocation", json_sprintf("mem://%d-s3tables-unit--table-s3", n_buckets++));
        json_object_set_new(fg.tables, key_of(in), t);
        return reply_json(out, json_pack("{s:s, s:s}", "tableARN", "x", "versionToken", "v0"));
    }
    if (!t) return not_found(out, "table");
    if (!strcmp(op, "GetTableMetadataLocation")) return reply_json(out, json_deep_copy(t));
    if (!strcmp(op, "DeleteTable")) {
        if (str(in, "versionToken") && strcmp(str(in, "versionToken"), str(t, "versionToken"))) return reply_error(out, 409, "ConflictException", "Provided version token does not match.");
        json_object_del(fg.tables, key_of(in));
        out->status = 204;
        return;
    }
    if (!str(in, "versionToken") || strcmp(str(in, "versionToken"), str(t, "versionToken"))) return reply_error(out, 409, "ConflictException", "Provided version token does not match.");
    if (strstr(str(in, "metadataLocation"), "3//metadata")) return reply_error(out, 400, "BadRequestException", "The location has an empty segment.");
    json_object_set(t, "metadataLocation", json_object_get(in, "metadataLocation"));
    bump(t);
    reply_json(out, json_deep_copy(t));
}

static void apply(const char *op, const json_t *in, http_reply *out) {
    const char *ns = str(in, "ns");
    if (strcmp(str(in, "arn"), ARN)) return not_found(out, "bucket");
    if (!strcmp(op, "ListNamespaces")) return reply_json(out, page(fg.spaces, in, "namespaces", ""));
    if (!strcmp(op, "CreateNamespace")) {
        ns = json_string_value(json_array_get(json_object_get(in, "namespace"), 0));
        if (json_object_get(fg.spaces, ns)) return reply_error(out, 409, "ConflictException", "A namespace with an identical name already exists in the bucket.");
        json_object_set_new(fg.spaces, ns, json_object());
        return reply_json(out, json_object());
    }
    if (!json_object_get(fg.spaces, ns)) return not_found(out, "namespace");
    if (!strcmp(op, "GetNamespace")) return reply_json(out, json_pack("{s:[s]}", "namespace", ns));
    if (!strcmp(op, "ListTables")) return reply_json(out, page(fg.tables, in, "tables", keep_text(fz_asprintf("%s.", ns))));
    if (!strcmp(op, "DeleteNamespace")) {
        json_object_del(fg.spaces, ns);
        out->status = 204;
        return;
    }
    apply_table(op, in, out);
}

/* Which operation a request is; its path's and query's parts become members of in. */
static const char *route(const http_seen *rq, json_t *in) {
    char target[2048], *save, *part[6];
    int n = 0;
    snprintf(target, sizeof target, "%s", rq->target);
    char *query = strchr(target, '?');
    if (query) *query++ = 0;
    for (char *p = strtok_r(target, "/", &save); p && n < 6; p = strtok_r(NULL, "/", &save)) part[n++] = p;
    for (char *q = query ? strtok_r(query, "&", &save) : NULL; q; q = strtok_r(NULL, "&", &save)) {
        char *eq = strchr(q, '=');
        fz_buf b = {0};
        *eq = 0;
        net_decode(&b, eq + 1, strlen(eq + 1));
        json_object_set_new(in, strcmp(q, "namespace") ? q : "ns", json_stringn((const char *)b.data, b.len));
        fz_buf_free(&b);
    }
    if (n < 2) return NULL;
    fz_buf b = {0};
    net_decode(&b, part[1], strlen(part[1]));
    json_object_set_new(in, "arn", json_stringn((const char *)b.data, b.len));
    fz_buf_free(&b);
    if (n > 2) json_object_set_new(in, "ns", json_string(part[2]));
    if (n > 3) json_object_set_new(in, !strcmp(part[0], "tables") ? "name" : "x", json_string(part[3]));
    bool tables = !strcmp(part[0], "tables"), get = !strcmp(rq->method, "GET"), put = !strcmp(rq->method, "PUT"), del = !strcmp(rq->method, "DELETE");
    if (!tables && n == 2) return get ? "ListNamespaces" : put ? "CreateNamespace" : NULL;
    if (!tables && n == 3) return get ? "GetNamespace" : del ? "DeleteNamespace" : NULL;
    if (tables && n == 2) return get ? "ListTables" : NULL;
    if (tables && n == 3) return put ? "CreateTable" : NULL;
    if (tables && n == 4) return del ? "DeleteTable" : NULL;
    return tables && n == 5 && !strcmp(part[4], "metadata-location") ? get ? "GetTableMetadataLocation" : put ? "UpdateTableMetadataLocation" : NULL : NULL;
}

static void be_strict(const http_seen *rq) {
    char names[64][64], v[1024];
    int n = 0;
    for (const char *l = strstr(rq->head, "\r\n"); l && l[2] && strncmp(l, "\r\n\r\n", 4) && n < 64; l = strstr(l + 2, "\r\n"), n++) {
        snprintf(names[n], sizeof names[n], "%.*s", (int)strcspn(l + 2, ":"), l + 2);
        for (int i = 0; i < n; i++)
            if (!strcasecmp(names[i], names[n])) snprintf(why_refused, sizeof why_refused, "header %s twice", names[n]);
        if (!strcasecmp(names[n], "keep-alive")) snprintf(why_refused, sizeof why_refused, "Keep-Alive");
    }
    if (!http_fake_header(rq, "authorization", v, sizeof v) || !strstr(v, "/eu-central-1/s3tables/aws4_request")) snprintf(why_refused, sizeof why_refused, "authorization %s", v);
    if (!strstr(rq->target, "/" ARN_SEGMENT) && strstr(rq->target, "lake")) snprintf(why_refused, sizeof why_refused, "path %s", rq->target);
}

static void handle(void *cx, const http_seen *rq, size_t index, http_reply *out) {
    (void)cx, (void)index;
    json_t *in = rq->n_body ? json_loadb(rq->body, rq->n_body, 0, NULL) : json_object();
    const char *op = json_is_object(in) ? route(rq, in) : NULL;
    be_strict(rq);
    if (!op) reply_error(out, 400, "BadRequestException", "what?");
    else fake_call(op, in, out);
    json_decref(in);
}

static int tables_setup(void **state) {
    fg.apply = apply;
    fg.error = reply_error;
    why_refused[0] = 0;
    return fake_begin(state, handle);
}
static int tables_teardown(void **state) {
    assert_string_equal(why_refused, "");
    return fake_end(state);
}

static fz_status open_tables(const char *warehouse, const fz_pair *more, size_t n) {
    fz_pair o[16] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "s3tables"}, {.key = "s3tables.endpoint", .value = fg.http->url},
                     {.key = "client.access-key-id", .value = "AKIATEST"}, {.key = "client.secret-access-key", .value = "secret"}, {.key = "warehouse", .value = warehouse}};
    if (n) memcpy(o + 6, more, n * sizeof *more);
    return cat_open("lake", o, 6 + n, NULL, &c, &err);
}
static void begin(void) {
    OK(open_tables(ARN, NULL, 0));
    id = ident("logs", "t");
    OK(cat_create_namespace(c, ns1("logs"), NULL, 0, &err));
    base = make_table(c, &id, NULL, 0);
}
static void end(void) {
    cat_table_free(base);
    cat_close(c);
}
static bool there(const char *location) {
    bool out;
    OK(fio_exists(NULL, location, &out, &err));
    return out;
}
static json_t *table(void) { return json_object_get(fg.tables, "logs.t"); }

/* ---- ordinary life ---- */

static void test_life(void **state) {
    (void)state;
    cat_names v;
    bool is;
    const char *location;
    OK(open_tables(ARN, NULL, 0));
    for (int i = 0; i < 5; i++) OK(cat_create_namespace(c, ns1(fz_arena_printf(arena, "ns%d", i)), NULL, 0, &err));
    FAILS(cat_create_namespace(c, ns1("ns1"), NULL, 0, &err), FZ_USER, "catalog.namespace-exists");
    OK(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err));
    assert_string_equal(joined(&v), "ns0 ns1 ns2 ns3 ns4 ");
    OK(cat_namespace_exists(c, ns1("nope"), &is, &err));
    assert_false(is);
    id = ident("ns0", "t");
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, ""); /* the service chooses */
    cat_table *t = make_table(c, &id, NULL, 0), *t2, *t3;
    assert_true(fz_starts(t->metadata->location, "mem://") && fz_ends(t->metadata->location, "--table-s3"));
    assert_true(fz_starts(t->metadata_location, fz_arena_printf(arena, "%s/metadata/00000-", t->metadata->location))); /* one slash */
    assert_string_equal(ice_data_location(arena, t->metadata), fz_arena_printf(arena, "%s/data", t->metadata->location));
    assert_int_equal(t->metadata->n_metadata_log, 0);
    const json_t *in = request("CreateTable", 0);
    assert_string_equal(str(in, "format"), "ICEBERG");
    assert_null(json_object_get(in, "metadata"));
    OK(set_property(c, t, "k", "v", &t2));
    assert_string_equal(str(request("UpdateTableMetadataLocation", 1), "versionToken"), "v1");
    assert_string_equal(str(request("UpdateTableMetadataLocation", 1), "metadataLocation"), t2->metadata_location);
    OK(cat_load_table(c, &id, &t3, &err));
    assert_string_equal(t3->metadata_location, t2->metadata_location);
    assert_string_equal(t3->metadata->uuid, t->metadata->uuid);
    cat_table_free(t), cat_table_free(t2), cat_table_free(t3);
    for (int i = 0; i < 4; i++) {
        cat_ident more = ident("ns0", fz_arena_printf(arena, "t%d", i));
        cat_table_free(make_table(c, &more, NULL, 0));
    }
    OK(cat_list_tables(c, ns1("ns0"), arena, &v, &err));
    assert_string_equal(joined(&v), "t t0 t1 t2 t3 ");
    FAILS(cat_list_tables(c, ns1("nope"), arena, &v, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_drop_namespace(c, ns1("ns0"), &err), FZ_USER, "catalog.namespace-not-empty");
    assert_int_equal(count_ops("DeleteNamespace"), 0);
    OK(cat_drop_table(c, &id, true, &err));
    assert_string_equal(str(request("DeleteTable", 0), "versionToken"), "v2");
    FAILS(cat_drop_table(c, &id, true, &err), FZ_USER, "catalog.table-not-found");
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.table-not-found");
    OK(cat_drop_namespace(c, ns1("ns1"), &err));
    cat_close(c);
}

static void test_options(void **state) {
    (void)state;
    static const char *const bad[] = {"s3://bucket/wh", "arn:aws:s3:::lake", "arn:aws:s3tables:eu-central-1:123456789012:table/x", "arn:aws:s3tables::123456789012:bucket/x",
                                      "arn:aws:s3tables:eu-central-1:123456789012:bucket/"};
    for (unsigned i = 0; i < 5; i++) FAILS(open_tables(bad[i], NULL, 0), FZ_USER, "catalog.option");
    FAILS(open_tables("", NULL, 0), FZ_USER, "catalog.option");
    static const fz_pair refused[] = {{.key = "s3.sse.type", .value = "kms"}, {.key = "s3.acl", .value = "private"}, {.key = "s3.write.storage-class", .value = "STANDARD_IA"},
                                      {.key = "s3.write.tags.a", .value = "b"}, {.key = "s3.delete-enabled", .value = "true"}, {.key = "client.region", .value = "us-east-1"}};
    for (unsigned i = 0; i < 6; i++) {
        FAILS(open_tables(ARN, &refused[i], 1), FZ_USER, "catalog.option");
        assert_non_null(strstr(err.message, refused[i].key));
    }
    static const fz_pair fine[] = {{.key = "s3.sse.type", .value = "s3"}, {.key = "client.region", .value = "eu-central-1"}};
    OK(open_tables(ARN, fine, 2));
    const fz_pair comment = {.key = "comment", .value = "x"};
    FAILS(cat_create_namespace(c, ns1("a"), &comment, 1, &err), FZ_USER, "catalog.option");
    FAILS(cat_create_namespace(c, ns1("A"), NULL, 0, &err), FZ_USER, "catalog.name");
    FAILS(cat_create_namespace(c, ns2("a", "b"), NULL, 0, &err), FZ_USER, "catalog.name");
    cat_close(c);
    cat_names v;
    OK(open_tables(ARN "x", NULL, 0));
    FAILS(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err), FZ_USER, "catalog.no-table-bucket");
    bool is; /* a service that says the same of everything that is not there: the bucket is asked for by itself */
    nameless = true;
    FAILS(cat_namespace_exists(c, ns1("logs"), &is, &err), FZ_USER, "catalog.no-table-bucket");
    FAILS(cat_list_tables(c, ns1("logs"), arena, &v, &err), FZ_USER, "catalog.no-table-bucket");
    nameless = false;
    assert_non_null(strstr(err.message, ARN "x"));
    cat_close(c);
    why_refused[0] = 0; /* of the other ARN */
}

/* ---- commits ---- */

static void commit_beside(const char *from) {
    static int number;
    ice_metadata *m, *m2;
    ice_changes ch = ice_changes_new();
    const fz_pair p = {.key = "theirs", .value = "1"};
    OK(cat_metadata_read(NULL, from, &m, &err));
    ice_update_set_properties(&ch, &p, 1);
    OK(ice_metadata_apply(m, &ch, fz_now_ms(), from, &m2, NULL, &err));
    const char *to = fz_arena_printf(arena, "%s/metadata/000%d-theirs.metadata.json", m->location, 20 + number++);
    OK(cat_metadata_write(NULL, to, m2, &err));
    json_object_set_new(table(), "metadataLocation", json_string(to));
    bump(table());
    ice_changes_free(&ch);
    ice_metadata_free(m);
    ice_metadata_free(m2);
}
static void theirs(void) { commit_beside(str(table(), "metadataLocation")); }
static void touched(void) { bump(table()); }
static void dropped(void) { json_object_del(fg.tables, "logs.t"); }
static void unreadable(void) {
    json_object_set_new(table(), "metadataLocation", json_string("mem://nowhere/metadata/00001-x.metadata.json"));
    bump(table());
}

#define UPDATE "UpdateTableMetadataLocation"
static const struct { const char *name; trick t; fz_status want; const char *code; bool keeps_file; } commit_cases[] = {
    {"plain", {.kind = TRICK_NONE}, FZ_OK, "", true},
    {"lost after it was applied", {.kind = TRICK_APPLY_LOST}, FZ_OK, "", true},
    {"applied, and called a conflict", {.kind = TRICK_APPLY_ERROR, .status = 409, .code = "ConflictException"}, FZ_OK, "", true},
    {"applied, and another commit on top", {.kind = TRICK_APPLY_LOST, .after = theirs}, FZ_OK, "", true},
    {"applied, then 500", {.kind = TRICK_APPLY_ERROR, .status = 500, .code = "InternalServerErrorException"}, FZ_OK, "", true},
    {"applied, then 503", {.kind = TRICK_APPLY_ERROR, .status = 503, .code = "ServiceUnavailable"}, FZ_OK, "", true},
    {"lost", {.kind = TRICK_LOST}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"500", {.kind = TRICK_ERROR, .status = 500, .code = "InternalServerErrorException"}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"lost, and another has committed", {.kind = TRICK_LOST, .after = theirs}, FZ_CONFLICT, "catalog.conflict", false},
    {"another commits in between", {.kind = TRICK_NONE, .before = theirs}, FZ_CONFLICT, "catalog.conflict", false},
    {"touched in between", {.kind = TRICK_NONE, .before = touched}, FZ_CONFLICT, "catalog.conflict", false},
    {"lost, and cannot be decided", {.kind = TRICK_LOST, .after = unreadable}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"lost, and dropped", {.kind = TRICK_LOST, .after = dropped}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"dropped in between", {.kind = TRICK_NONE, .before = dropped}, FZ_USER, "catalog.table-not-found", false},
    {"refused", {.kind = TRICK_ERROR, .status = 403, .code = "ForbiddenException"}, FZ_USER, "catalog.denied", false},
    {"no good", {.kind = TRICK_ERROR, .status = 400, .code = "BadRequestException"}, FZ_USER, "catalog.invalid-input", false},
};

static void test_commits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof commit_cases / sizeof *commit_cases; i++) {
        json_object_clear(fg.tables);
        json_object_clear(fg.spaces);
        json_array_clear(fg.requests);
        begin();
        cat_table *next = NULL;
        trick t = commit_cases[i].t;
        t.op = UPDATE;
        play(t);
        fz_status rc = set_property(c, base, "k", "v", &next);
        const char *name = commit_cases[i].name, *ours = str(request(UPDATE, 1), "metadataLocation");
        if (rc != commit_cases[i].want || (rc != FZ_OK && strcmp(err.code, commit_cases[i].code) != 0))
            fail_msg("%s: %s %s: %s", name, fz_status_name(rc), rc ? err.code : "", rc ? err.message : "");
        assert_int_equal(count_ops(UPDATE), 2);
        if (there(ours) != commit_cases[i].keeps_file) fail_msg("%s: the metadata file is %s", name, commit_cases[i].keeps_file ? "gone" : "left");
        if (rc == FZ_OK) assert_string_equal(next->metadata_location, ours);
        assert_true(there(base->metadata_location));
        cat_table_free(next);
        forget_tricks();
        end();
    }
}

static void test_stale_base(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    theirs();
    FAILS(set_property(c, base, "k", "v", &next), FZ_CONFLICT, "catalog.conflict");
    assert_int_equal(count_ops(UPDATE), 1);
    assert_int_equal(metadata_files(base->metadata->location), 2);
    end();
}

static void test_fault_points(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    const char *points[] = {"commit.metadata:1:conflict", "commit.swap:1:retry", "commit.accepted:1:unknown"};
    for (unsigned i = 0; i < 3; i++) {
        OK(fz_fault_arm(points[i], &err));
        fz_status rc = set_property(c, base, "k", "v", &next);
        OK(fz_fault_arm(NULL, &err));
        assert_int_equal(rc, i == 0 ? FZ_CONFLICT : i == 1 ? FZ_RETRY : FZ_UNKNOWN);
        assert_int_equal(count_ops(UPDATE), 1 + (i == 2));
    }
    end();
}

/* ---- creation ---- */

static void made_empty(void) {
    json_object_set_new(fg.tables, "logs.new", json_pack("{s:s, s:o}", "versionToken", "v5", "warehouseLocation", json_sprintf("mem://%d-s3tables-unit--table-s3/", n_buckets++)));
}
static void made_whole(void) {
    made_empty();
    json_object_set_new(json_object_get(fg.tables, "logs.new"), "metadataLocation", json_string("mem://other/metadata/00000-x.metadata.json"));
}
static void taken_up(void) {
    json_t *t = json_object_get(fg.tables, "logs.new");
    json_object_set_new(t, "metadataLocation", json_string("mem://nowhere/metadata/00000-x.metadata.json"));
    bump(t);
}

static void test_creation(void **state) {
    (void)state;
    static const struct { const char *name; trick t; fz_status want; const char *code; bool entry_stays; } cases[] = {
        {"plain", {.op = "CreateTable"}, FZ_OK, "", true},
        {"lost after it was made", {.op = "CreateTable", .kind = TRICK_APPLY_LOST}, FZ_OK, "", true},
        {"left without metadata before", {.op = "CreateTable", .before = made_empty}, FZ_OK, "", true},
        {"lost", {.op = "CreateTable", .kind = TRICK_LOST}, FZ_RETRY, "aws.unknown", false},
        {"made by another", {.op = "CreateTable", .before = made_whole}, FZ_USER, "catalog.table-exists", true},
        {"refused", {.op = "CreateTable", .kind = TRICK_ERROR, .status = 403, .code = "ForbiddenException"}, FZ_USER, "catalog.denied", false},
        {"first metadata lost after it was applied", {.op = UPDATE, .kind = TRICK_APPLY_LOST}, FZ_OK, "", true},
        {"first metadata lost", {.op = UPDATE, .kind = TRICK_LOST}, FZ_UNKNOWN, "catalog.commit-unknown", true},
        {"first metadata refused", {.op = UPDATE, .kind = TRICK_ERROR, .status = 403, .code = "AccessDeniedException"}, FZ_USER, "catalog.denied", false},
        {"another's metadata first", {.op = UPDATE, .before = taken_up}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cat_ident new = ident("logs", "new");
        cat_table *t = NULL;
        ice_metadata *m = small_metadata("", NULL, 0);
        play(cases[i].t);
        fz_status rc = cat_create_table(c, &new, m, &t, &err);
        if (rc != cases[i].want || (rc != FZ_OK && strcmp(err.code, cases[i].code) != 0)) fail_msg("%s: %s %s: %s", cases[i].name, fz_status_name(rc), rc ? err.code : "", rc ? err.message : "");
        if ((json_object_get(fg.tables, "logs.new") != NULL) != cases[i].entry_stays) fail_msg("%s: the entry is %s", cases[i].name, cases[i].entry_stays ? "gone" : "left");
        if (rc == FZ_OK) {
            assert_string_equal(t->metadata_location, str(json_object_get(fg.tables, "logs.new"), "metadataLocation"));
            assert_true(there(t->metadata_location));
            assert_true(fz_ends(t->metadata->location, "--table-s3"));
        } else ice_metadata_free(m);
        cat_table_free(t);
        json_object_del(fg.tables, "logs.new");
        forget_tricks();
    }
    end();
}

static void test_creation_refused(void **state) {
    (void)state;
    begin();
    cat_table *t = NULL;
    cat_ident new = ident("logs", "new"), nowhere = ident("nope", "new");
    const fz_pair lz4 = {.key = "write.parquet.compression-codec", .value = "lz4"};
    ice_metadata *m = small_metadata("", &lz4, 1), *placed = small_metadata("mem://x/y", NULL, 0);
    FAILS(cat_create_table(c, &new, m, &t, &err), FZ_USER, "catalog.codec");
    FAILS(cat_create_table(c, &new, placed, &t, &err), FZ_USER, "catalog.location");
    FAILS(cat_create_table(c, &nowhere, placed, &t, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_create_table(c, &id, placed, &t, &err), FZ_USER, "catalog.table-exists");
    assert_int_equal(count_ops("CreateTable"), 1);
    ice_metadata_free(m);
    ice_metadata_free(placed);
    end();
}

static void test_drop(void **state) {
    (void)state;
    begin();
    play((trick){.op = "DeleteTable", .before = touched}); /* a commit in between */
    OK(cat_drop_table(c, &id, false, &err));
    assert_int_equal(count_ops("DeleteTable"), 2);
    assert_null(table());
    play((trick){.op = "CreateNamespace", .kind = TRICK_APPLY_LOST});
    OK(cat_create_namespace(c, ns1("fresh"), NULL, 0, &err));
    play((trick){.op = "DeleteNamespace", .kind = TRICK_APPLY_LOST});
    OK(cat_drop_namespace(c, ns1("fresh"), &err));
    end();
}

static void test_denied(void **state) {
    (void)state;
    begin();
    bool is;
    cat_table *t = NULL;
    play((trick){.op = "GetTableMetadataLocation", .kind = TRICK_ERROR, .status = 403, .code = "AccessDeniedException", .message = "User is not authorized", .times = -1});
    play((trick){.op = "GetNamespace", .kind = TRICK_ERROR, .status = 403, .code = "ForbiddenException", .times = -1});
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.denied");
    assert_non_null(strstr(err.hint, "s3tables:GetTableMetadataLocation"));
    FAILS(cat_namespace_exists(c, ns1("logs"), &is, &err), FZ_USER, "catalog.denied");
    assert_null(strstr(err.message, "not exist"));
    forget_tricks();
    end();
}

#define T(f) cmocka_unit_test_setup_teardown(f, tables_setup, tables_teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(test_life), T(test_options), T(test_commits), T(test_stale_base), T(test_fault_points), T(test_creation), T(test_creation_refused), T(test_drop), T(test_denied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
