/* What holds for both kinds of catalog: namespaces, tables, commits and what their status promises; and the options. */
#include "cat_test.h"

static void namespaces(const char *kind) {
    cat_catalog *c = open_catalog(kind);
    bool there;
    cat_names v;
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_false(there);
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    FAILS(cat_create_namespace(c, ns1("db"), NULL, 0, &err), FZ_USER, "catalog.namespace-exists");
    OK(cat_create_namespace(c, ns1("db%_x"), NULL, 0, &err));
    OK(cat_create_namespace(c, ns2("db", "inner"), NULL, 0, &err));
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_true(there);
    OK(cat_namespace_exists(c, ns1("d"), &there, &err)); /* no prefixes, no patterns */
    assert_false(there);
    OK(cat_namespace_exists(c, ns1("d%"), &there, &err));
    assert_false(there);
    OK(cat_list_namespaces(c, (cat_namespace){0}, arena, &v, &err));
    assert_string_equal(joined(&v), "db db%_x ");
    OK(cat_list_namespaces(c, ns1("db"), arena, &v, &err));
    assert_string_equal(joined(&v), "inner ");
    FAILS(cat_list_namespaces(c, ns1("no"), arena, &v, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_list_tables(c, ns1("no"), arena, &v, &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-empty");
    OK(cat_drop_namespace(c, ns2("db", "inner"), &err));
    OK(cat_drop_namespace(c, ns1("db"), &err));
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-found");
    FAILS(cat_create_namespace(c, ns1("a/b"), NULL, 0, &err), FZ_USER, "catalog.name");
    FAILS(cat_create_namespace(c, ns1(".."), NULL, 0, &err), FZ_USER, "catalog.name");
    FAILS(cat_create_namespace(c, ns1(""), NULL, 0, &err), FZ_USER, "catalog.name");
    FAILS(cat_create_namespace(c, (cat_namespace){0}, NULL, 0, &err), FZ_USER, "catalog.name");
    cat_close(c);
}

static void tables(const char *kind) {
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t"), other = ident("db", "nothing");
    cat_names v;
    bool there;
    cat_table *t, *l;
    const char *location;
    FAILS(cat_default_location(c, &id, arena, &location, &err), FZ_USER, "catalog.namespace-not-found");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    FAILS(cat_load_table(c, &id, &t, &err), FZ_USER, "catalog.table-not-found");
    OK(cat_default_location(c, &id, arena, &location, &err));
    assert_string_equal(location, fz_arena_printf(arena, "file://%s/wh/db/t", root));
    t = make_table(c, &id, NULL, 0);
    assert_true(fz_starts(t->metadata_location, location));
    assert_int_equal(t->version, strcmp(kind, "sql") == 0 ? 0 : 1);
    ice_metadata *again = small_metadata(location, NULL, 0);
    FAILS(cat_create_table(c, &id, again, &l, &err), FZ_USER, "catalog.table-exists");
    ice_metadata_free(again);
    OK(cat_load_table(c, &id, &l, &err));
    assert_string_equal(l->metadata_location, t->metadata_location);
    assert_string_equal(l->metadata->uuid, t->metadata->uuid);
    assert_int_equal(l->version, t->version);
    assert_string_equal(cat_ident_text(arena, &l->ident), "db.t");
    cat_table_free(l);
    OK(cat_table_exists(c, &id, &there, &err));
    assert_true(there);
    OK(cat_table_exists(c, &other, &there, &err));
    assert_false(there);
    OK(cat_list_tables(c, ns1("db"), arena, &v, &err));
    assert_string_equal(joined(&v), "t ");
    OK(cat_list_namespaces(c, ns1("db"), arena, &v, &err)); /* a table is no namespace */
    assert_int_equal(v.n, 0);
    FAILS(cat_drop_namespace(c, ns1("db"), &err), FZ_USER, "catalog.namespace-not-empty");
    cat_ident bad = ident("db", "a/b");
    FAILS(cat_load_table(c, &bad, &l, &err), FZ_USER, "catalog.name");
    OK(cat_drop_table(c, &id, true, &err));
    assert_int_equal(metadata_files(location), 0);
    FAILS(cat_drop_table(c, &id, false, &err), FZ_USER, "catalog.table-not-found");
    cat_table_free(t);
    cat_close(c);
}

static void commits(const char *kind) {
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t");
    cat_table *t0, *t1, *t2, *t3, *l;
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    t0 = make_table(c, &id, NULL, 0);
    OK(set_property(c, t0, "k", "1", &t1));
    assert_string_equal(ice_property(t1->metadata, "k", ""), "1");
    assert_int_equal(t1->version, t0->version + 1);
    assert_int_equal(t1->metadata->n_metadata_log, 1);
    assert_string_equal(t1->metadata->metadata_log[0].location, t0->metadata_location);
    int files = metadata_files(t0->metadata->location);
    FAILS(set_property(c, t0, "k", "lost", &t2), FZ_CONFLICT, "catalog.conflict"); /* t0 is stale */
    assert_int_equal(metadata_files(t0->metadata->location), files);
    OK(set_property(c, t1, "k", "2", &t2)); /* what a commit gave is a base */
    OK(cat_load_table(c, &id, &l, &err));
    assert_string_equal(l->metadata_location, t2->metadata_location);
    assert_string_equal(ice_property(l->metadata, "k", ""), "2");
    cat_table_free(l);
    ice_changes ch = ice_changes_new();
    ice_assert_uuid(&ch, "00000000-0000-4000-8000-000000000000");
    FAILS(cat_commit(c, t2, &ch, &t3, &err), FZ_CONFLICT, "iceberg.requirement");
    ice_changes_free(&ch);
    cat_table_free(t2);
    cat_table_free(t1);
    cat_table_free(t0);
    cat_close(c);
}

/* What each status promises, at each point of the commit. */
static void faults(const char *kind) {
    static const struct { const char *spec; fz_status want; bool applied; } cases[] = {
        {"commit.metadata:1:retry", FZ_RETRY, false},    {"commit.metadata:1:enospc", FZ_RETRY, false},  {"commit.metadata:1:unknown", FZ_UNKNOWN, false},
        {"commit.swap:1:conflict", FZ_CONFLICT, false},  {"commit.swap:1:retry", FZ_RETRY, false},       {"commit.swap:1:unknown", FZ_UNKNOWN, false},
        {"commit.accepted:1:unknown", FZ_UNKNOWN, true}, {"commit.accepted:1:retry", FZ_RETRY, true},    {"commit.answered:1:unknown", FZ_UNKNOWN, true},
        {"file.write:1:enospc", FZ_RETRY, false},        {"file.fsync:1:eio", FZ_RETRY, false},
    };
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table_free(make_table(c, &id, NULL, 0));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        cat_table *t, *t2 = NULL;
        OK(cat_load_table(c, &id, &t, &err));
        int before = metadata_files(t->metadata->location);
        const char *value = fz_arena_printf(arena, "%u", i);
        OK(fz_fault_arm(cases[i].spec, &err));
        fz_status rc = set_property(c, t, "k", value, &t2);
        OK(fz_fault_arm(NULL, &err));
        if (rc != cases[i].want) fail_msg("%s: %s (%s)", cases[i].spec, fz_status_name(rc), err.message);
        assert_null(t2);
        cat_table *l;
        OK(cat_load_table(c, &id, &l, &err));
        if ((strcmp(ice_property(l->metadata, "k", ""), value) == 0) != cases[i].applied) fail_msg("%s: applied?", cases[i].spec);
        int after = metadata_files(t->metadata->location);
        /* Not applied for sure: the file is gone. Unknown, or applied: it is there. */
        bool kept = cases[i].applied || (rc == FZ_UNKNOWN && strcmp(kind, "sql") == 0);
        if (after - before != kept) fail_msg("%s: %d files more", cases[i].spec, after - before);
        cat_table_free(l);
        cat_table_free(t);
    }
    cat_close(c);
}

/* Old metadata files: deleted only when the table asks for it, and only after a known success. */
static void old_metadata(const char *kind) {
    static const fz_pair props[] = {{.key = "write.metadata.delete-after-commit.enabled", .value = "true"}, {.key = "write.metadata.previous-versions-max", .value = "2"}};
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t"), keep = ident("db", "keep");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, props, 2), *k = make_table(c, &keep, props + 1, 1), *t2;
    const char *loc = fz_arena_strdup(arena, t->metadata->location), *kloc = fz_arena_strdup(arena, k->metadata->location);
    cat_table_free(t);
    cat_table_free(k);
    for (int i = 0; i < 6; i++) {
        set_now(c, &id, "n", fz_arena_printf(arena, "%d", i));
        set_now(c, &keep, "n", "x");
    }
    assert_int_equal(metadata_files(loc), 3);
    assert_int_equal(metadata_files(kloc), 7);
    OK(cat_load_table(c, &id, &t, &err));
    OK(fz_fault_arm("commit.accepted:1:unknown", &err));
    FAILS(set_property(c, t, "n", "7", &t2), FZ_UNKNOWN, "fault.injected");
    OK(fz_fault_arm(NULL, &err));
    assert_int_equal(metadata_files(loc), 4);
    cat_table_free(t);
    cat_close(c);
}

#define BOTH(f)                                                                                                        \
    static void test_##f##_sql(void **state) { (void)state; f("sql"); }                                                \
    static void test_##f##_hadoop(void **state) { (void)state; f("hadoop"); }
BOTH(namespaces)
BOTH(tables)
BOTH(commits)
BOTH(faults)
BOTH(old_metadata)

/* ---- options ---- */

static void test_options(void **state) {
    (void)state;
    cat_catalog *c;
    fz_pair wh = {.key = "warehouse", .value = root, .line = 1, .column = 1};
    struct { fz_pair o[3]; const char *code, *part; } bad[] = {
        {{{"catalog-type", "sql", 0, 0}, wh}, "catalog.option", "no option 'type'"},
        {{{"type", "hive", 3, 4}, wh}, "catalog.option", "'hive'"},
        {{{"type", "iceberg", 0, 0}, wh}, "catalog.option", "catalog-type"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "hive", 2, 5}, wh}, "catalog.not-in-this-build", "hive"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "dynamodb", 0, 0}, wh}, "catalog.not-in-this-build", "dynamodb"},
        {{{"type", "iceberg", 0, 0}, {"catalog-impl", "org.apache.iceberg.nessie.NessieCatalog", 0, 0}, wh}, "catalog.not-in-this-build", "nessie"},
        {{{"type", "iceberg", 0, 0}, {"catalog-impl", "com.example.Cat", 0, 0}, wh}, "catalog.option", "com.example.Cat"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "sqll", 0, 0}, wh}, "catalog.option", "sqll"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "sql", 0, 0}, {"catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog", 0, 0}}, "catalog.option", "both"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "hadoop", 0, 0}, {"warehous", "/x", 7, 9}}, "catalog.option", "warehous"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "hadoop", 0, 0}, {"clients", "x", 0, 0}}, "catalog.option", "warehouse"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "sql", 0, 0}, wh}, "catalog.option", "uri"},
        {{{"type", "iceberg", 0, 0}, {"catalog-type", "hadoop", 0, 0}, {"warehouse", "s3://b/wh", 0, 0}}, "catalog.option", "s3://b/wh"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        fz_status rc = cat_open("lake", bad[i].o, bad[i].o[2].key ? 3 : 2, NULL, &c, &err);
        if (rc != FZ_USER || strcmp(err.code, bad[i].code) != 0 || !strstr(err.message, bad[i].part)) fail_msg("case %u: %s %s: %s", i, fz_status_name(rc), err.code, err.message);
        if (i == 3) assert_true(err.line == 2 && err.column == 5 && strstr(err.hint, "hadoop"));
        if (i == 9) assert_true(err.line == 7 && strstr(err.hint, "'warehouse'"));
    }
}

static void test_known_options(void **state) {
    (void)state;
    cat_catalog *c;
    const fz_pair more[] = {{.key = "io-impl", .value = "x"}, {.key = "cache-enabled", .value = "false"}, {.key = "clients", .value = "5"}, {.key = "property-version", .value = "1"},
                            {.key = "glue.id", .value = "1"}, {.key = "table-default.a", .value = "1"}, {.key = "table-default.b", .value = "1"}, {.key = "table-override.c", .value = "3"},
                            {.key = "base-namespace", .value = "x.y"}, {.key = "default-database", .value = "d"}};
    OK(try_open("hadoop", "lake", more, 10, &c));
    assert_string_equal(joined(cat_ignored_options(c)), "io-impl cache-enabled clients property-version glue.id ");
    assert_string_equal(cat_default_database(c), "d");
    assert_string_equal(cat_name(c), "lake");
    assert_string_equal(cat_type(c), "hadoop");
    cat_ident id = cat_ident_of(c, arena, "db", "t");
    assert_string_equal(cat_ident_text(arena, &id), "x.y.db.t");
    const fz_pair given[] = {{.key = "a", .value = "2"}, {.key = "c", .value = "2"}, {.key = "d", .value = "4"}};
    fz_pair *p;
    size_t n;
    OK(cat_table_properties(c, arena, given, 3, &p, &n, &err));
    assert_int_equal(n, 4);
    assert_string_equal(fz_pair_get(p, n, "a"), "2");
    assert_string_equal(fz_pair_get(p, n, "b"), "1");
    assert_string_equal(fz_pair_get(p, n, "c"), "3");
    assert_string_equal(fz_pair_get(p, n, "d"), "4");
    cat_close(c);
    for (const fz_option *o = cat_options(); o->name; o++) /* the reference page has a text for each */
        assert_true(o->state == FZ_OPT_USED ? o->doc != NULL : o->why != NULL);
}

static void test_sqlite_uris(void **state) {
    (void)state;
    static const struct { const char *uri, *file; bool is_uri; } good[] = {
        {"sqlite:////abs/x.db", "/abs/x.db", false}, {"sqlite:///rel.db", "rel.db", false}, {"sqlite+pysqlite:////abs/x.db?timeout=3", "/abs/x.db", false},
        {"sqlite://", ":memory:", false}, {"sqlite:///:memory:", ":memory:", false}, {"jdbc:sqlite:/abs/x.db", "/abs/x.db", false}, {"jdbc:sqlite:", ":memory:", false},
        {"jdbc:sqlite:/abs/x.db?journal_mode=WAL", "/abs/x.db", false}, {"jdbc:sqlite:file:/abs/x.db?mode=rwc", "file:/abs/x.db?mode=rwc", true},
    };
    const char *file;
    bool is_uri;
    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        OK(cat_sqlite_file(arena, good[i].uri, &file, &is_uri, &err));
        assert_string_equal(file, good[i].file);
        assert_int_equal(is_uri, good[i].is_uri);
    }
    FAILS(cat_sqlite_file(arena, "jdbc:mysql://h/db?user=root&password=geheim", &file, &is_uri, &err), FZ_USER, "catalog.not-in-this-build");
    FAILS(cat_sqlite_file(arena, "mysql+pymysql://root:geheim@h/db", &file, &is_uri, &err), FZ_USER, "catalog.not-in-this-build");
    assert_null(strstr(err.message, "geheim")); /* the rest of the URI may hold a password */
    FAILS(cat_sqlite_file(arena, "/abs/x.db", &file, &is_uri, &err), FZ_USER, "catalog.option");
    FAILS(cat_sqlite_file(arena, "sqlite://host/x.db", &file, &is_uri, &err), FZ_USER, "catalog.option");
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_namespaces_sql), T(test_namespaces_hadoop), T(test_tables_sql), T(test_tables_hadoop), T(test_commits_sql), T(test_commits_hadoop),
        T(test_faults_sql), T(test_faults_hadoop), T(test_old_metadata_sql), T(test_old_metadata_hadoop), T(test_options), T(test_known_options), T(test_sqlite_uris),
    };
    return cmocka_run_group_tests_name("catalog", tests, NULL, NULL);
}
