/* What is kept of tables for a start without their catalog, and catalogs that are opened later. */
#include "rest_test.h"

static const char *memory(void) { return in_root("memory"); }

static cat_catalog *with(const char *name, const fz_pair *more, size_t n) {
    cat_catalog *c;
    OK(try_open("hadoop", name, more, n, &c));
    return c;
}
static bool recalls(cat_catalog *c, const cat_ident *id) {
    cat_table *t;
    OK(cat_recall(memory(), c, id, &t, &err));
    bool known = t != NULL;
    cat_table_free(t);
    return known;
}
static const char *only_file(void) {
    char *cmd = fz_asprintf("ls %s/*/*.json", memory());
    FILE *f = popen(cmd, "r");
    char line[400] = "";
    assert_non_null(fgets(line, sizeof line, f));
    line[strcspn(line, "\n")] = 0;
    pclose(f);
    fz_free(cmd);
    return fz_arena_strdup(arena, line);
}

static void comes_back(void **state) {
    (void)state;
    cat_catalog *c = with("lake", NULL, 0);
    const cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table_free(make_table(c, &id, (fz_pair[]){{.key = "write.format.default", .value = "parquet"}, {.key = "frazil.mirror.p", .value = "{}"}, {.key = "commit.retry.num-retries", .value = "9"}}, 3));
    set_now(c, &id, "k", "v");
    cat_table *t, *r;
    OK(cat_load_table(c, &id, &t, &err));
    assert_false(recalls(c, &id));
    OK(cat_remember(memory(), c, t, &err));
    OK(cat_recall(memory(), c, &id, &r, &err));
    assert_non_null(r);
    assert_string_equal(r->metadata->uuid, t->metadata->uuid);
    assert_string_equal(r->metadata_location, t->metadata_location);
    assert_string_equal(cat_ident_text(arena, &r->ident), "db.t");
    assert_true(r->metadata->current_schema_id == t->metadata->current_schema_id && r->metadata->default_spec_id == t->metadata->default_spec_id);
    assert_true(r->metadata->schema->fields[0].required && r->metadata->schema->fields[0].id == t->metadata->schema->fields[0].id);
    assert_int_equal(ice_property_i64(r->metadata, "commit.retry.num-retries", 0), 9);
    assert_string_equal(ice_property(r->metadata, "k", "none"), "v");
    assert_string_equal(ice_property(r->metadata, "frazil.mirror.p", "none"), "none");
    assert_true(r->metadata->n_snapshots == 0 && r->metadata->n_metadata_log == 0 && r->metadata->current_snapshot_id == ICE_NONE);
    cat_table_free(r);
    cat_table_free(t);
    cat_close(c);
}

static void whose(void **state) {
    (void)state;
    cat_catalog *c = with("lake", WITH(P("s3.secret-access-key", "one"), P("s3.access-key-id", "x"), P("s3.endpoint", "http://a"))), *other;
    const cat_ident id = ident("db", "t"), deep = {ns2("a/../b", "c.d"), "x y"}, long_name = ident("db", fz_arena_printf(arena, "%0250d", 7)), longer = ident("db", fz_arena_printf(arena, "%0250d", 8));
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0);
    assert_false(cat_remembers(memory(), c, NULL));
    OK(cat_remember(memory(), c, t, &err));
    t->ident = deep;
    OK(cat_remember(memory(), c, t, &err));
    t->ident = long_name;
    OK(cat_remember(memory(), c, t, &err));
    assert_true(recalls(c, &id) && recalls(c, &deep) && recalls(c, &long_name) && !recalls(c, &longer));
    assert_true(cat_remembers(memory(), c, NULL) && cat_remembers(memory(), c, &id) && cat_remembers(memory(), c, &(cat_ident){ns1("db"), NULL}) && cat_remembers(memory(), c, &(cat_ident){ns2("a/../b", "c.d"), NULL}));
    const cat_ident no = ident("db", "u"), nowhere = {ns1("d"), NULL};
    assert_false(cat_remembers(memory(), c, &no) || cat_remembers(memory(), c, &nowhere));
    other = with("lake", WITH(P("s3.access-key-id", "x"), P("s3.endpoint", "http://a"), P("s3.secret-access-key", "two"))); /* a new secret, and another order */
    assert_true(recalls(other, &id));
    cat_close(other);
    other = with("lake", WITH(P("s3.access-key-id", "x"), P("s3.endpoint", "http://b"), P("s3.secret-access-key", "one")));
    assert_false(recalls(other, &id) || cat_remembers(memory(), other, NULL));
    cat_close(other);
    cat_table_free(t);
    cat_close(c);
}

/* A file is whole or as good as none, byte for byte; one that cannot be replaced stays. */
static void damage(void **state) {
    (void)state;
    cat_catalog *c = with("lake", NULL, 0);
    const cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table *t = make_table(c, &id, NULL, 0);
    OK(cat_remember(memory(), c, t, &err));
    const char *path = only_file();
    fz_buf whole = {0};
    OK(fio_read(NULL, path, 1 << 20, &whole, &err));
    for (size_t i = 0; i < whole.len; i += 7) {
        whole.data[i] ^= 1;
        OK(fio_put(NULL, path, whole.data, whole.len, &err));
        if (recalls(c, &id)) fail_msg("byte %zu", i);
        whole.data[i] ^= 1;
        OK(fio_put(NULL, path, whole.data, i, &err));
        if (recalls(c, &id)) fail_msg("%zu bytes", i);
    }
    OK(fio_put(NULL, path, whole.data, whole.len, &err));
    assert_true(recalls(c, &id));
    static const char *const points[] = {"file.write:1:enospc", "file.fsync:1:eio"};
    for (size_t i = 0; i < 2; i++) {
        OK(fz_fault_arm(points[i], &err));
        assert_int_not_equal(cat_remember(memory(), c, t, &err), FZ_OK);
        OK(fz_fault_arm(NULL, &err));
        assert_true(recalls(c, &id));
    }
    fz_buf_free(&whole);
    cat_table_free(t);
    cat_close(c);
}

/* A catalog is reached by the first call that needs it, and by the next one when that has failed; one that was never reached can be closed. */
static void opened_later(void **state) {
    (void)state;
    cat_catalog *c;
    bool there;
    START({"GET /v1/config", {.status = 403, .body = ""}}, {"GET /v1/config", {.status = 403, .body = ""}}, PLAIN, {"GET " NS "/db", {.body = "{\"namespace\": [\"db\"], \"properties\": {}}"}},
          {"GET " NS "/db", {.body = "{\"namespace\": [\"db\"], \"properties\": {}}"}});
    const fz_pair o[] = {P("type", "iceberg"), P("catalog-type", "rest"), P("uri", http_fake_url(sc.f)), P("glue.id", "1")};
    OK(cat_open_later("lake", o, 4, NULL, &c, &err));
    cat_close(c);
    OK(cat_open_later("lake", o, 4, NULL, &c, &err));
    assert_string_equal(cat_type(c), "rest");
    assert_string_equal(cat_default_database(c), "default");
    FAILS(cat_reach(c, &err), FZ_USER, "catalog.rest-forbidden");
    FAILS(cat_namespace_exists(c, ns1("db"), &there, &err), FZ_USER, "catalog.rest-forbidden");
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_true(there);
    OK(cat_reach(c, &err));
    OK(cat_namespace_exists(c, ns1("db"), &there, &err));
    assert_string_equal(joined(cat_ignored_options(c)), "glue.id ");
    cat_close(c);
    finish();
    FAILS(cat_open_later("lake", o, 1, NULL, &c, &err), FZ_USER, "catalog.option");
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(comes_back), T(whose), T(damage), cmocka_unit_test_setup_teardown(opened_later, rest_setup, teardown),
    };
    return cmocka_run_group_tests_name("remembered tables", tests, NULL, NULL);
}
