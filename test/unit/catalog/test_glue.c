/* The Glue catalog against a Glue in memory: what it sends (beside what Iceberg's own catalog has sent), and what it makes of every answer. */
#include "glue_fake.h"
#include "catalog/glue_int.h"

static cat_catalog *c;
static cat_ident id;
static cat_table *base;

/* A catalog with the database "logs" and the table "logs.t". */
static void begin(void) {
    OK(open_glue(NULL, 0, &c));
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
static int files(void) { return metadata_files(fz_arena_printf(arena, "%s/logs.db/t", cat_warehouse(c))); }

/* ---- what is sent ---- */

static ice_metadata *metadata_of(const char *schema_json, const char *location) {
    json_t *j = json_loads(schema_json, 0, NULL);
    ice_schema *s;
    ice_metadata *m;
    assert_non_null(j);
    OK(ice_schema_parse(arena, j, &s, &err));
    json_decref(j);
    OK(ice_metadata_new(location, s, NULL, NULL, NULL, 0, "11111111-2222-4333-8444-555555555555", 1, &m, &err));
    return m;
}

static void beside_java(const json_t *oracle, const char *key, const char *schema_json) {
    json_t *want = json_deep_copy(json_object_get(oracle, key));
    assert_non_null(want);
    const json_t *p = json_object_get(want, "Parameters");
    ice_metadata *m = metadata_of(schema_json, str(json_object_get(want, "StorageDescriptor"), "Location"));
    json_t *got = glue_table_input(NULL, str(want, "Name"), m, str(p, "metadata_location"), str(p, "previous_metadata_location"));
    json_t *again = glue_table_input(want, str(want, "Name"), m, str(p, "metadata_location"), str(p, "previous_metadata_location"));
    json_object_del(want, "DatabaseName");
    json_object_del(want, "CatalogId");
    json_object_del(want, "VersionId");
    char *g = json_dumps(got, JSON_SORT_KEYS), *w = json_dumps(want, JSON_SORT_KEYS), *a = json_dumps(again, JSON_SORT_KEYS);
    assert_string_equal(g, w);
    assert_string_equal(a, w); /* over what Java has written nothing is lost or added */
    free(g), free(w), free(a);
    json_decref(got);
    json_decref(again);
    json_decref(want);
    ice_metadata_free(m);
}

#define F(id, name, type) "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
static void test_beside_java(void **state) {
    (void)state;
    json_error_t at;
    json_t *oracle = json_load_file("test/data/catalog/glue_get_table.json", 0, &at);
    if (!oracle) fail_msg("%s", at.text);
    beside_java(oracle, "logs.syslog_events", "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" F(1, "ts_raw", "\"string\"") "," F(2, "ts", "\"timestamp\"") "," F(3, "host", "\"string\"")
                "," F(4, "program", "\"string\"") "," F(5, "msg", "\"string\"") "," F(6, "dt", "\"date\"") "," F(7, "hr", "\"int\"") "]}");
    beside_java(oracle, "gold.types", "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" F(1, "i", "\"int\"") "," F(2, "l", "\"long\"") "," F(3, "f", "\"float\"") "," F(4, "d", "\"double\"") ","
                F(5, "b", "\"boolean\"") "," F(6, "s", "\"string\"") "," F(7, "ts", "\"timestamp\"") "," F(8, "tz", "\"timestamptz\"") "," F(9, "dt", "\"date\"") "," F(10, "tm", "\"time\"") ","
                F(11, "de", "\"decimal(10, 2)\"") "," F(12, "de38", "\"decimal(38, 4)\"") "," F(13, "bin", "\"binary\"") "," F(14, "fx", "\"fixed[4]\"") ","
                F(15, "arr", "{\"type\":\"list\",\"element-id\":18,\"element\":\"string\",\"element-required\":false}") ","
                F(16, "mp", "{\"type\":\"map\",\"key-id\":19,\"key\":\"string\",\"value-id\":20,\"value\":\"int\",\"value-required\":false}") ","
                F(17, "st", "{\"type\":\"struct\",\"fields\":[" F(21, "a", "\"string\"") "," F(22, "b", "{\"type\":\"struct\",\"fields\":[" F(23, "c", "\"int\"") "]}") "]}") "]}");
    beside_java(oracle, "gold.part_values", "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"int\"}," F(2, "host", "\"string\"") ","
                F(3, "dt", "\"date\"") "]}");
    json_decref(oracle);
}

static const char *column_text(const json_t *in) {
    const char *s = "";
    size_t i;
    json_t *col;
    json_array_foreach(json_object_get(json_object_get(in, "StorageDescriptor"), "Columns"), i, col) {
        const json_t *p = json_object_get(col, "Parameters");
        s = fz_arena_printf(arena, "%s%s:%s:%s:%s:%s ", s, str(col, "Name"), str(col, "Type"), str(p, "iceberg.field.id"), str(p, "iceberg.field.current"), str(col, "Comment") ? str(col, "Comment") : "-");
    }
    return s;
}

static void test_columns(void **state) {
    (void)state;
    ice_metadata *m = metadata_of("{\"type\":\"struct\",\"schema-id\":0,\"fields\":[" F(1, "a", "\"int\"") "," F(2, "b", "\"string\"") "," F(3, "c", "\"uuid\"") "]}", "mem://x/t"), *m2;
    json_t *j = json_loads("{\"type\":\"struct\",\"schema-id\":1,\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"long\",\"doc\":\"from the schema\"}," F(4, "b", "\"int\"") "]}", 0, NULL);
    ice_schema *s;
    OK(ice_schema_parse(arena, j, &s, &err));
    json_decref(j);
    ice_changes ch = ice_changes_new();
    const fz_pair props[] = {{.key = "comment", .value = "all of it"}, {.key = "write.data.path", .value = "mem://y/d"}, {.key = "write.metadata.path", .value = "mem://y/d"}};
    ice_update_add_schema(&ch, s);
    ice_update_current_schema(&ch, -1);
    ice_update_set_properties(&ch, props, 3);
    OK(ice_metadata_apply(m, &ch, 2, NULL, &m2, NULL, &err));
    ice_changes_free(&ch);
    json_t *was = json_loads("{\"StorageDescriptor\":{\"Columns\":[{\"Name\":\"a\",\"Type\":\"int\",\"Comment\":\"old\"},{\"Name\":\"b\",\"Type\":\"string\",\"Comment\":\"kept\",\"Parameters\":{\"mine\":\"1\"}},"
                             "{\"Name\":\"gone\",\"Type\":\"int\"}]}}", 0, NULL);
    json_t *in = glue_table_input(was, "t", m2, "mem://x/t/metadata/m.json", NULL);
    assert_string_equal(column_text(in), "a:bigint:1:true:from the schema b:int:4:true:kept c:string:3:false:- ");
    const json_t *sd = json_object_get(in, "StorageDescriptor");
    assert_string_equal(str(json_object_get(json_array_get(json_object_get(sd, "Columns"), 1), "Parameters"), "mine"), "1");
    assert_string_equal(str(in, "Description"), "all of it");
    assert_int_equal(json_array_size(json_object_get(sd, "AdditionalLocations")), 1);
    assert_null(str(json_object_get(in, "Parameters"), "previous_metadata_location"));
    json_decref(in);
    json_decref(was);
    ice_metadata_free(m);
    ice_metadata_free(m2);
}

static void test_long_comment(void **state) {
    (void)state;
    char doc[900] = "";
    for (int i = 0; i < 300; i++) memcpy(doc + 2 * i, "é", 3);
    ice_metadata *m = metadata_of(fz_arena_printf(arena, "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\",\"doc\":\"%s\"}]}", doc), "mem://x/t");
    json_t *in = glue_table_input(NULL, "t", m, "mem://x/t/m.json", NULL);
    const char *comment = str(json_array_get(json_object_get(json_object_get(in, "StorageDescriptor"), "Columns"), 0), "Comment");
    assert_int_equal(strlen(comment), 510); /* 255 characters, whole ones */
    json_decref(in);
    ice_metadata_free(m);
}

/* ---- ordinary life ---- */

static void test_life(void **state) {
    (void)state;
    const fz_pair props[] = {{.key = "comment", .value = "raw logs"}, {.key = "location", .value = "mem://elsewhere/logs/"}, {.key = "team", .value = "home"}};
    cat_names v;
    bool is;
    OK(open_glue(NULL, 0, &c));
    OK(cat_create_namespace(c, ns1("logs"), props, 3, &err));
    const json_t *in = json_object_get(request("CreateDatabase", 0), "DatabaseInput");
    assert_string_equal(str(in, "Name"), "logs");
    assert_string_equal(str(in, "Description"), "raw logs");
    assert_string_equal(str(in, "LocationUri"), "mem://elsewhere/logs/");
    assert_string_equal(str(json_object_get(in, "Parameters"), "team"), "home");
    assert_null(json_object_get(request("CreateDatabase", 0), "CatalogId"));
    FAILS(cat_create_namespace(c, ns1("logs"), NULL, 0, &err), FZ_USER, "catalog.namespace-exists");
    for (int i = 0; i < 4; i++) OK(cat_create_namespace(c, ns1(fz_arena_printf(arena, "db%d", i)), NULL, 0, &err));
    OK(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err));
    assert_string_equal(joined(&v), "db0 db1 db2 db3 logs "); /* in three pages */
    OK(cat_list_namespaces(c, ns1("logs"), arena, &v, &err));
    assert_int_equal(v.n, 0);
    OK(cat_namespace_exists(c, ns1("nope"), &is, &err));
    assert_false(is);

    const char *location;
    id = ident("logs", "t");
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, "mem://elsewhere/logs/t");
    id = ident("db0", "t");
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, fz_arena_printf(arena, "%s/db0.db/t", cat_warehouse(c)));

    cat_table *t = make_table(c, &id, NULL, 0), *t2, *t3;
    assert_string_equal(t->metadata_location, current_location("db0.t"));
    assert_non_null(strstr(t->metadata_location, "/db0.db/t/metadata/00000-"));
    OK(set_property(c, t, "k", "v", &t2));
    assert_non_null(strstr(t2->metadata_location, "/metadata/00001-"));
    OK(cat_load_table(c, &id, &t3, &err));
    assert_string_equal(t3->metadata_location, t2->metadata_location);
    assert_string_equal(ice_property(t3->metadata, "k", ""), "v");
    cat_table_free(t), cat_table_free(t2), cat_table_free(t3);

    json_object_set_new(fg.tables, "db0.hive", json_pack("{s:s, s:{s:s}}", "Name", "hive", "Parameters", "EXTERNAL", "TRUE"));
    json_object_set_new(fg.tables, "db0.bare", json_pack("{s:s}", "Name", "bare"));
    json_object_set_new(fg.tables, "db0.small", json_pack("{s:s, s:{s:s, s:s}}", "Name", "small", "Parameters", "table_type", "iceberg", "metadata_location", "mem://x/y.metadata.json"));
    OK(cat_list_tables(c, ns1("db0"), arena, &v, &err));
    assert_string_equal(joined(&v), "small t "); /* in two pages, the others left out */
    FAILS(cat_drop_namespace(c, ns1("db0"), &err), FZ_USER, "catalog.namespace-not-empty");
    assert_int_equal(count_ops("DeleteDatabase"), 0);
    OK(cat_drop_table(c, &id, false, &err));
    FAILS(cat_drop_table(c, &id, false, &err), FZ_USER, "catalog.table-not-found");
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.table-not-found");
    OK(cat_drop_namespace(c, ns1("db1"), &err));
    FAILS(cat_drop_namespace(c, ns1("db1"), &err), FZ_USER, "catalog.namespace-not-found");
    cat_close(c);
}

static void test_properties(void **state) {
    (void)state;
    begin();
    json_t *d = json_object_get(fg.spaces, "logs");
    json_object_set_new(d, "Parameters", json_pack("{s:s}", "theirs", "1"));
    json_object_set_new(d, "CreateTableDefaultPermissions", json_pack("[{s:[s]}]", "Permissions", "ALL"));
    const fz_pair props[] = {{.key = "comment", .value = "x"}, {.key = "ours", .value = "2"}};
    OK(cat_set_namespace_properties(c, ns1("logs"), props, 2, &err));
    const json_t *in = json_object_get(request("UpdateDatabase", 0), "DatabaseInput");
    assert_int_equal(json_array_size(json_object_get(in, "CreateTableDefaultPermissions")), 1);
    assert_null(json_object_get(in, "CreateTime"));
    fz_pair *p;
    size_t n;
    OK(cat_namespace_properties(c, ns1("logs"), arena, &p, &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(fz_pair_get(p, n, "theirs"), "1");
    assert_string_equal(fz_pair_get(p, n, "ours"), "2");
    assert_string_equal(fz_pair_get(p, n, "comment"), "x");
    end();
}

/* Three commits over an entry that others have written into. */
static void test_kept_unchanged(void **state) {
    (void)state;
    begin();
    json_t *t = json_object_get(fg.tables, "logs.t"), *more = json_loads(
        "{\"Description\":\"by hand\",\"Owner\":\"etl\",\"Retention\":7,\"LastAccessTime\":1.5,\"PartitionKeys\":[{\"Name\":\"p\",\"Type\":\"string\"}],\"FutureMember\":{\"a\":[1]}}", 0, NULL);
    json_object_update(t, more);
    json_object_set_new(json_object_get(t, "Parameters"), "team", json_string("home"));
    json_object_set_new(json_object_get(t, "StorageDescriptor"), "SerdeInfo", json_pack("{s:s}", "Name", "s"));
    json_object_set_new(json_object_get(t, "StorageDescriptor"), "InputFormat", json_string("f"));
    for (int i = 0; i < 3; i++) {
        char value[8];
        snprintf(value, sizeof value, "%d", i);
        cat_table *next;
        OK(set_property(c, base, "k", value, &next));
        const json_t *rq = request("UpdateTable", i), *in = json_object_get(rq, "TableInput"), *p = json_object_get(in, "Parameters"), *sd = json_object_get(in, "StorageDescriptor");
        assert_true(json_is_true(json_object_get(rq, "SkipArchive")));
        assert_string_equal(str(rq, "VersionId"), value); /* of the entry just read */
        assert_string_equal(str(rq, "DatabaseName"), "logs");
        assert_string_equal(str(p, "previous_metadata_location"), base->metadata_location);
        assert_string_equal(str(p, "metadata_location"), next->metadata_location);
        assert_string_equal(str(p, "table_type"), "ICEBERG");
        assert_string_equal(str(p, "team"), "home");
        assert_string_equal(str(sd, "InputFormat"), "f");
        assert_string_equal(str(json_object_get(sd, "SerdeInfo"), "Name"), "s");
        const char *key;
        json_t *v;
        json_object_foreach(more, key, v) if (!json_equal(v, json_object_get(in, key))) fail_msg("%s was not kept", key);
        assert_null(json_object_get(in, "VersionId"));
        assert_null(json_object_get(in, "CreatedBy"));
        cat_table_free(base);
        base = next;
    }
    assert_int_equal(count_ops("UpdateTable"), 3);
    json_decref(more);
    end();
}

static void test_options(void **state) {
    (void)state;
    const fz_pair more[] = {{.key = "glue.id", .value = "210987654321"}, {.key = "glue.skip-archive", .value = "false"}, {.key = "glue.skip-name-validation", .value = "true"}};
    OK(open_glue(more, 3, &c));
    OK(cat_create_namespace(c, ns1("My-Db"), NULL, 0, &err));
    id = ident("My-Db", "T-1");
    base = make_table(c, &id, NULL, 0);
    cat_table *next;
    OK(set_property(c, base, "k", "v", &next));
    assert_true(json_is_false(json_object_get(request("UpdateTable", 0), "SkipArchive")));
    for (size_t i = 0; i < json_array_size(fg.requests); i++) assert_string_equal(str(json_object_get(json_array_get(fg.requests, i), "in"), "CatalogId"), "210987654321");
    cat_table_free(next);
    end();
    const fz_pair lf = {.key = "glue.lakeformation-enabled", .value = "true"};
    FAILS(open_glue(&lf, 1, &c), FZ_USER, "catalog.option");
    const fz_pair unknown = {.key = "glue.skip-archives", .value = "true"};
    FAILS(open_glue(&unknown, 1, &c), FZ_USER, "catalog.option");
    assert_non_null(strstr(err.hint, "glue.skip-archive"));
}

static void test_names(void **state) {
    (void)state;
    bool is;
    char longest[254];
    memset(longest, 'a', 253);
    longest[253] = 0;
    OK(open_glue(NULL, 0, &c));
    const char *bad[] = {"My", "a-b", "é", "a b", longest};
    for (unsigned i = 0; i < 5; i++) FAILS(cat_create_namespace(c, ns1(bad[i]), NULL, 0, &err), FZ_USER, "catalog.name");
    id = ident("ok_1", "Bad");
    FAILS(cat_table_exists(c, &id, &is, &err), FZ_USER, "catalog.name");
    FAILS(cat_create_namespace(c, ns2("a", "b"), NULL, 0, &err), FZ_USER, "catalog.name");
    assert_int_equal(json_array_size(fg.requests), 0);
    cat_close(c);
}

static void test_no_warehouse(void **state) {
    (void)state;
    const fz_pair o[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-impl", .value = "org.apache.iceberg.aws.glue.GlueCatalog"}, {.key = "glue.endpoint", .value = fg.http->url},
                         {.key = "client.region", .value = "eu-central-1"}, {.key = "client.access-key-id", .value = "AKIATEST"}, {.key = "client.secret-access-key", .value = "secret"}};
    const fz_pair at = {.key = "location", .value = "mem://bare/db"};
    const char *location;
    OK(cat_open("lake", o, 6, NULL, &c, &err));
    OK(cat_create_namespace(c, ns1("with"), &at, 1, &err));
    OK(cat_create_namespace(c, ns1("without"), NULL, 0, &err));
    id = ident("with", "t");
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, "mem://bare/db/t");
    id = ident("without", "t");
    FAILS(cat_default_location(c, &id, arena, &location, &err), FZ_USER, "catalog.option");
    assert_non_null(strstr(err.hint, "warehouse"));
    cat_close(c);
}

static void test_not_iceberg(void **state) {
    (void)state;
    begin();
    cat_table *t;
    bool is;
    json_object_set_new(fg.tables, "logs.hive", json_pack("{s:s, s:s, s:{s:s}}", "Name", "hive", "TableType", "EXTERNAL_TABLE", "Parameters", "EXTERNAL", "TRUE"));
    cat_ident hive = ident("logs", "hive");
    FAILS(cat_load_table(c, &hive, &t, &err), FZ_USER, "catalog.not-iceberg");
    FAILS(cat_table_exists(c, &hive, &is, &err), FZ_USER, "catalog.not-iceberg");
    FAILS(cat_drop_table(c, &hive, true, &err), FZ_USER, "catalog.not-iceberg");
    assert_int_equal(count_ops("DeleteTable"), 0);
    json_object_set_new(json_object_get(json_object_get(fg.tables, "logs.t"), "Parameters"), "table_type", json_string("iceberg"));
    cat_table *next;
    OK(set_property(c, base, "k", "v", &next)); /* as PyIceberg once wrote it */
    cat_table_free(next);
    json_object_del(json_object_get(json_object_get(fg.tables, "logs.t"), "Parameters"), "metadata_location");
    FAILS(cat_load_table(c, &id, &t, &err), FZ_FATAL, "catalog.damaged");
    end();
}

/* ---- others at the same table ---- */

/* Somebody's commit on top of what is current: a metadata file that follows it, and the entry that points there. */
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
    json_t *t = json_object_get(fg.tables, "logs.t"), *params = json_object_get(t, "Parameters");
    json_object_set_new(params, "metadata_location", json_string(to));
    json_object_set_new(t, "VersionId", json_sprintf("%d", 1 + (int)strtol(str(t, "VersionId"), NULL, 10)));
    ice_changes_free(&ch);
    ice_metadata_free(m);
    ice_metadata_free(m2);
}
static void theirs_on_current(void) { commit_beside(current_location("logs.t")); }
static void touched(void) { /* a crawler or a person changes the entry, not the table */
    json_t *t = json_object_get(fg.tables, "logs.t");
    json_object_set_new(t, "VersionId", json_sprintf("%d", 1 + (int)strtol(str(t, "VersionId"), NULL, 10)));
}
static void replaced(void) { /* another table's metadata, with no log */
    static int number;
    ice_metadata *m = small_metadata("mem://other/t", NULL, 0);
    const char *to = fz_arena_printf(arena, "mem://other/t/metadata/00000-other%d.metadata.json", number++);
    OK(cat_metadata_write(NULL, to, m, &err));
    ice_metadata_free(m);
    json_object_set_new(json_object_get(json_object_get(fg.tables, "logs.t"), "Parameters"), "metadata_location", json_string(to));
    touched();
}
static void dropped(void) { json_object_del(fg.tables, "logs.t"); }

/* One commit from base with a trick on UpdateTable; *ours: the file that it wrote. */
static fz_status commit_with(trick t, const char **ours) {
    cat_table *next = NULL;
    t.op = "UpdateTable";
    play(t);
    int before = count_ops("UpdateTable");
    fz_status rc = set_property(c, base, "k", "v", &next);
    *ours = count_ops("UpdateTable") > before ? str(json_object_get(json_object_get(request("UpdateTable", before), "TableInput"), "Parameters"), "metadata_location") : NULL;
    if (rc == FZ_OK) {
        assert_string_equal(next->metadata_location, *ours);
        assert_string_equal(ice_property(next->metadata, "k", ""), "v");
    }
    assert_true(count_ops("UpdateTable") <= before + 1); /* never sent twice */
    cat_table_free(next);
    assert_true(there(base->metadata_location));
    return rc;
}

typedef struct commit_case { const char *name; trick t; fz_status want; const char *code; bool keeps_file; } commit_case;
static const commit_case commit_cases[] = {
    {"lost after it was applied", {.kind = TRICK_APPLY_LOST}, FZ_OK, "", true},
    {"applied, and called a conflict by a second try", {.kind = TRICK_APPLY_ERROR, .code = "ConcurrentModificationException"}, FZ_OK, "", true},
    {"applied, and another commit on top of it", {.kind = TRICK_APPLY_LOST, .after = theirs_on_current}, FZ_OK, "", true},
    {"applied, conflict, and another commit on top", {.kind = TRICK_APPLY_ERROR, .code = "ConcurrentModificationException", .after = theirs_on_current}, FZ_OK, "", true},
    {"applied, then 500", {.kind = TRICK_APPLY_ERROR, .status = 500, .code = "InternalServiceException"}, FZ_OK, "", true},
    {"applied, then 502 of a proxy", {.kind = TRICK_APPLY_ERROR, .status = 502, .code = "BadGateway"}, FZ_OK, "", true},
    {"applied, then 503", {.kind = TRICK_APPLY_ERROR, .status = 503, .code = "ServiceUnavailable"}, FZ_OK, "", true},
    {"applied, then 504", {.kind = TRICK_APPLY_ERROR, .status = 504, .code = "GatewayTimeout"}, FZ_OK, "", true},
    {"applied, then a time-out of the operation", {.kind = TRICK_APPLY_ERROR, .code = "OperationTimeoutException"}, FZ_OK, "", true},
    {"lost before it came", {.kind = TRICK_LOST}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"500 before it was applied", {.kind = TRICK_ERROR, .status = 500, .code = "InternalServiceException"}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"504 before it was applied", {.kind = TRICK_ERROR, .status = 504, .code = "GatewayTimeout"}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"time-out before it was applied", {.kind = TRICK_ERROR, .code = "OperationTimeoutException"}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"lost, and another has committed on the base", {.kind = TRICK_LOST, .after = theirs_on_current}, FZ_CONFLICT, "catalog.conflict", false},
    {"another commits in between", {.kind = TRICK_NONE, .before = theirs_on_current}, FZ_CONFLICT, "catalog.conflict", false},
    {"the entry is touched in between", {.kind = TRICK_NONE, .before = touched}, FZ_CONFLICT, "catalog.conflict", false},
    {"replaced in between", {.kind = TRICK_NONE, .before = replaced}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"lost, and replaced", {.kind = TRICK_LOST, .after = replaced}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"lost, and dropped", {.kind = TRICK_LOST, .after = dropped}, FZ_UNKNOWN, "catalog.commit-unknown", true},
    {"dropped in between", {.kind = TRICK_NONE, .before = dropped}, FZ_USER, "catalog.table-not-found", false},
    {"refused input", {.kind = TRICK_ERROR, .code = "InvalidInputException"}, FZ_USER, "catalog.invalid-input", false},
    {"refused", {.kind = TRICK_ERROR, .code = "AccessDeniedException", .message = "not authorized to perform: glue:UpdateTable"}, FZ_USER, "catalog.denied", false},
    {"no more versions", {.kind = TRICK_ERROR, .code = "ResourceNumberLimitExceededException"}, FZ_RETRY, "catalog.quota", false},
    {"not ready", {.kind = TRICK_ERROR, .code = "ResourceNotReadyException"}, FZ_RETRY, "catalog.not-ready", false},
    {"encrypted", {.kind = TRICK_ERROR, .code = "GlueEncryptionException"}, FZ_USER, "catalog.denied", false},
    {"federated", {.kind = TRICK_ERROR, .code = "FederationSourceException"}, FZ_RETRY, "catalog.federation", false},
    {"throttled to the end", {.kind = TRICK_ERROR, .code = "ThrottlingException", .times = -1}, FZ_RETRY, "aws.throttled", false},
};

static void test_commits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof commit_cases / sizeof *commit_cases; i++) {
        const commit_case *k = &commit_cases[i];
        const char *ours;
        json_object_clear(fg.tables);
        json_object_clear(fg.spaces);
        json_array_clear(fg.requests);
        forget_tricks();
        begin();
        fz_status rc;
        if (k->t.times == -1) { /* sent again and again, since nothing happened */
            cat_table *next = NULL;
            trick t = k->t;
            t.op = "UpdateTable";
            play(t);
            rc = set_property(c, base, "k", "v", &next);
            assert_true(count_ops("UpdateTable") > 1);
            ours = str(json_object_get(json_object_get(request("UpdateTable", 0), "TableInput"), "Parameters"), "metadata_location");
        } else rc = commit_with(k->t, &ours);
        if (rc != k->want || (rc != FZ_OK && strcmp(err.code, k->code) != 0)) fail_msg("%s: %s %s: %s", k->name, fz_status_name(rc), rc ? err.code : "", rc ? err.message : "");
        if (there(ours) != k->keeps_file) fail_msg("%s: the metadata file is %s", k->name, k->keeps_file ? "gone" : "left");
        if (strcmp(k->name, "no more versions") == 0) assert_non_null(strstr(err.hint, "skip-archive"));
        forget_tricks();
        end();
    }
}

static void test_stale_base(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    theirs_on_current();
    int before = files();
    FAILS(set_property(c, base, "k", "v", &next), FZ_CONFLICT, "catalog.conflict");
    assert_non_null(strstr(err.detail, base->metadata_location));
    assert_int_equal(count_ops("UpdateTable"), 0);
    assert_int_equal(files(), before);
    end();
}

static void reads_fail(void) { play((trick){.op = "GetTable", .kind = TRICK_ERROR, .status = 500, .code = "InternalServiceException", .times = -1}); }
/* After an unknown outcome the service cannot be asked: still unknown. */
static void test_read_back_fails(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    play((trick){.op = "UpdateTable", .kind = TRICK_APPLY_LOST, .after = reads_fail});
    FAILS(set_property(c, base, "k", "v", &next), FZ_UNKNOWN, "catalog.commit-unknown");
    assert_true(there(current_location("logs.t")));
    assert_string_not_equal(current_location("logs.t"), base->metadata_location);
    forget_tricks();
    end();
}

static void test_no_version(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    json_object_del(json_object_get(fg.tables, "logs.t"), "VersionId");
    FAILS(set_property(c, base, "k", "v", &next), FZ_USER, "catalog.no-version");
    assert_int_equal(count_ops("UpdateTable"), 0);
    assert_int_equal(files(), 1);
    end();
}

/* Threads of one catalog, each of which commits over the others. */
static void *commit_often(void *cx) {
    for (int k = 0; k < 5;) {
        fz_error e;
        cat_table *t = NULL, *next = NULL;
        if (cat_load_table(c, &id, &t, &e) != FZ_OK) return (void *)"load";
        ice_changes ch = ice_changes_new();
        char key[32];
        snprintf(key, sizeof key, "%s-%d", (const char *)cx, k);
        const fz_pair p = {.key = key, .value = "x"};
        ice_update_set_properties(&ch, &p, 1);
        fz_status rc = cat_commit(c, t, &ch, &next, &e);
        ice_changes_free(&ch);
        cat_table_free(t);
        cat_table_free(next);
        if (rc == FZ_OK) k++;
        else if (rc != FZ_CONFLICT) return (void *)"commit";
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    begin();
    pthread_t threads[4];
    static char names[4][4] = {"a", "b", "c", "d"};
    cat_table *t;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, commit_often, names[i]);
    for (int i = 0; i < 4; i++) {
        void *why;
        pthread_join(threads[i], &why);
        if (why) fail_msg("%s", (const char *)why);
    }
    OK(cat_load_table(c, &id, &t, &err));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 5; k++) assert_string_equal(ice_property(t->metadata, fz_arena_printf(arena, "%s-%d", names[i], k), ""), "x");
    assert_int_equal(t->metadata->n_metadata_log, 20); /* each on top of another */
    assert_int_equal(files(), 21);                    /* and none left of those that lost */
    cat_table_free(t);
    end();
}

/* ---- creation ---- */

static const char *created(void) { return str(json_object_get(json_object_get(request("CreateTable", count_ops("CreateTable") - 1), "TableInput"), "Parameters"), "metadata_location"); }
static void made_by_another(void) {
    json_object_set_new(fg.tables, "logs.new", json_pack("{s:s, s:s, s:{s:s, s:s}}", "Name", "new", "VersionId", "0", "Parameters", "table_type", "ICEBERG", "metadata_location",
                                                         "mem://other/new/metadata/00000-x.metadata.json"));
}
static void database_goes(void) { json_object_del(fg.spaces, "logs"); }

static void test_creation(void **state) {
    (void)state;
    static const struct { const char *name; trick t; fz_status want; const char *code; bool keeps_file; } cases[] = {
        {"plain", {.kind = TRICK_NONE}, FZ_OK, "", true},
        {"lost after it was applied", {.kind = TRICK_APPLY_LOST}, FZ_OK, "", true},
        {"applied, and exists already", {.kind = TRICK_APPLY_ERROR, .code = "AlreadyExistsException"}, FZ_OK, "", true},
        {"lost", {.kind = TRICK_LOST}, FZ_UNKNOWN, "catalog.commit-unknown", true},
        {"500", {.kind = TRICK_ERROR, .status = 500, .code = "InternalServiceException"}, FZ_UNKNOWN, "catalog.commit-unknown", true},
        {"made by another", {.kind = TRICK_NONE, .before = made_by_another}, FZ_USER, "catalog.table-exists", false},
        {"lost, and made by another", {.kind = TRICK_LOST, .after = made_by_another}, FZ_UNKNOWN, "catalog.commit-unknown", true},
        {"no database any more", {.kind = TRICK_NONE, .before = database_goes}, FZ_USER, "catalog.namespace-not-found", false},
        {"refused", {.kind = TRICK_ERROR, .code = "AccessDeniedException", .message = "Insufficient Lake Formation permission(s): Required Create Table on logs"}, FZ_USER, "catalog.denied", false},
        {"too many tables", {.kind = TRICK_ERROR, .code = "ResourceNumberLimitExceededException"}, FZ_USER, "catalog.quota", false},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cat_ident new = ident("logs", "new");
        const char *location;
        cat_table *t = NULL;
        trick k = cases[i].t;
        k.op = "CreateTable";
        OK(cat_default_location(c, &new, arena, &location, &err));
        play(k);
        ice_metadata *m = small_metadata(location, NULL, 0);
        fz_status rc = cat_create_table(c, &new, m, &t, &err);
        if (rc != cases[i].want || (rc != FZ_OK && strcmp(err.code, cases[i].code) != 0)) fail_msg("%s: %s %s: %s", cases[i].name, fz_status_name(rc), rc ? err.code : "", rc ? err.message : "");
        if (there(created()) != cases[i].keeps_file) fail_msg("%s: the metadata file is %s", cases[i].name, cases[i].keeps_file ? "gone" : "left");
        if (strcmp(cases[i].name, "refused") == 0) assert_non_null(strstr(err.hint, "CREATE_TABLE"));
        if (rc != FZ_OK) ice_metadata_free(m);
        cat_table_free(t);
        json_object_del(fg.tables, "logs.new");
        json_object_set_new(fg.spaces, "logs", json_pack("{s:s}", "Name", "logs"));
        forget_tricks();
    }
    end();
}

static void test_drop(void **state) {
    (void)state;
    begin();
    play((trick){.op = "DeleteTable", .kind = TRICK_APPLY_LOST}); /* sent again: not found, but by our own doing */
    OK(cat_drop_table(c, &id, true, &err));
    assert_int_equal(files(), 0);
    play((trick){.op = "CreateDatabase", .kind = TRICK_APPLY_LOST});
    OK(cat_create_namespace(c, ns1("fresh"), NULL, 0, &err));
    play((trick){.op = "DeleteDatabase", .kind = TRICK_APPLY_LOST});
    OK(cat_drop_namespace(c, ns1("fresh"), &err));
    end();
}

/* ---- refusals ---- */

static void test_denied(void **state) {
    (void)state;
    begin();
    bool is = true;
    cat_names v;
    cat_table *t = NULL;
    const char *location;
    cat_ident new = ident("logs", "new");
    OK(cat_default_location(c, &new, arena, &location, &err));
    ice_metadata *m = small_metadata(location, NULL, 0);
    play((trick){.op = "GetTable", .kind = TRICK_ERROR, .code = "AccessDeniedException", .message = "Insufficient Lake Formation permission(s): Required Describe on t", .times = -1});
    play((trick){.op = "GetTables", .kind = TRICK_ERROR, .status = 403, .code = "AccessDeniedException", .times = -1});
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.denied");
    assert_non_null(strstr(err.message, "Required Describe on t"));
    assert_non_null(strstr(err.hint, "DESCRIBE on the table"));
    assert_null(strstr(err.message, "not exist"));
    FAILS(cat_table_exists(c, &new, &is, &err), FZ_USER, "catalog.denied");
    FAILS(cat_create_table(c, &new, m, &t, &err), FZ_USER, "catalog.denied"); /* nothing is made because of a refusal */
    assert_int_equal(count_ops("CreateTable"), 1);
    FAILS(cat_list_tables(c, ns1("logs"), arena, &v, &err), FZ_USER, "catalog.denied");
    assert_non_null(strstr(err.hint, "glue:GetTables"));
    FAILS(cat_drop_namespace(c, ns1("logs"), &err), FZ_USER, "catalog.denied");
    assert_int_equal(count_ops("DeleteDatabase"), 0);
    play((trick){.op = "GetDatabase", .kind = TRICK_ERROR, .status = 403, .code = "AccessDeniedException", .times = -1});
    FAILS(cat_namespace_exists(c, ns1("logs"), &is, &err), FZ_USER, "catalog.denied");
    FAILS(cat_list_tables(c, ns1("logs"), arena, &v, &err), FZ_USER, "catalog.denied");
    assert_non_null(strstr(err.hint, "DESCRIBE on the database"));
    forget_tricks();
    play((trick){.op = "GetTable", .kind = TRICK_ERROR, .code = "EntityNotFoundException", .message = "Database logs not found.", .times = -1});
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.namespace-not-found");
    forget_tricks();
    play((trick){.op = "GetTable", .kind = TRICK_ERROR, .code = "UnrecognizedClientException", .message = "The security token included in the request is invalid.", .times = -1});
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "aws.denied"); /* credentials, not grants */
    forget_tricks();
    ice_metadata_free(m);
    end();
}

static void test_reads_pass(void **state) {
    (void)state;
    begin();
    cat_table *t;
    static const trick passing[] = {{.op = "GetTable", .kind = TRICK_LOST}, {.op = "GetTable", .kind = TRICK_ERROR, .status = 500, .code = "InternalServiceException"},
                                    {.op = "GetTable", .kind = TRICK_ERROR, .code = "ThrottlingException"}};
    for (unsigned i = 0; i < 3; i++) {
        play(passing[i]);
        OK(cat_load_table(c, &id, &t, &err));
        cat_table_free(t);
    }
    play((trick){.op = "GetTable", .kind = TRICK_ERROR, .code = "OperationTimeoutException", .times = -1});
    fz_status rc = cat_load_table(c, &id, &t, &err);
    assert_int_equal(rc, FZ_RETRY);
    forget_tricks();
    end();
}

/* ---- fault points ---- */

static void test_fault_points(void **state) {
    (void)state;
    begin();
    cat_table *next = NULL;
    const char *points[] = {"commit.metadata:1:conflict", "commit.swap:1:retry", "commit.accepted:1:unknown"};
    for (unsigned i = 0; i < 3; i++) {
        int before = count_ops("UpdateTable");
        OK(fz_fault_arm(points[i], &err));
        fz_status rc = set_property(c, base, "k", "v", &next);
        OK(fz_fault_arm(NULL, &err));
        assert_int_equal(rc, i == 0 ? FZ_CONFLICT : i == 1 ? FZ_RETRY : FZ_UNKNOWN);
        assert_int_equal(count_ops("UpdateTable"), before + (i == 2));
        assert_int_equal(files(), i == 2 ? 2 : 1);
    }
    assert_string_not_equal(current_location("logs.t"), base->metadata_location);
    end();
}

#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(test_beside_java), T(test_columns), T(test_long_comment), T(test_life), T(test_properties), T(test_kept_unchanged), T(test_options), T(test_names),
                                       T(test_no_warehouse), T(test_not_iceberg), T(test_commits), T(test_stale_base), T(test_read_back_fails), T(test_no_version), T(test_threads), T(test_creation),
                                       T(test_drop), T(test_denied), T(test_reads_pass), T(test_fault_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
