/* The filesystem catalog alone: version files and hint as Iceberg's HadoopTableOperations leaves and finds them. */
#include "cat_test.h"

static const char *meta(const char *name) { return fz_arena_printf(arena, "%s/wh/db/t/metadata/%s", root, name); }
static const char *text_of(const char *path) {
    fz_buf b = {0};
    OK(fio_read(NULL, path, 1 << 20, &b, &err));
    const char *s = fz_arena_strndup(arena, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return s;
}
static bool there(const char *path) {
    bool x;
    OK(fio_exists(NULL, path, &x, &err));
    return x;
}
static cat_catalog *with_table(const fz_pair *props, uint32_t n) {
    cat_catalog *c = open_catalog("hadoop");
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table_free(make_table(c, &id, props, n));
    return c;
}
static const char *value_of_k(cat_catalog *c, int64_t *version) {
    cat_table *t;
    cat_ident id = ident("db", "t");
    OK(cat_load_table(c, &id, &t, &err));
    const char *v = fz_arena_strdup(arena, ice_property(t->metadata, "k", "none"));
    *version = t->version;
    cat_table_free(t);
    return v;
}

static void test_files(void **state) {
    (void)state;
    cat_catalog *c = with_table(NULL, 0);
    cat_ident id = ident("db", "t");
    assert_true(there(meta("v1.metadata.json")));
    assert_string_equal(text_of(meta("version-hint.text")), "1");
    set_now(c, &id, "k", "2");
    set_now(c, &id, "k", "3");
    assert_true(there(meta("v3.metadata.json")));
    assert_false(there(meta("v4.metadata.json")));
    assert_string_equal(text_of(meta("version-hint.text")), "3");
    OK(fio_put(NULL, meta(".version-hint.text.crc"), "crc", 3, &err)); /* as Java leaves it: of another hint */
    set_now(c, &id, "k", "4");
    assert_false(there(meta(".version-hint.text.crc")));
    cat_close(c);
}

static void test_hints(void **state) {
    (void)state;
    static const char *const hints[] = {"1", "2", "3", "3\n", "9", "", "x", NULL};
    cat_catalog *c = with_table(NULL, 0);
    cat_ident id = ident("db", "t");
    int64_t v;
    set_now(c, &id, "k", "2");
    set_now(c, &id, "k", "3");
    for (unsigned i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (hints[i]) OK(fio_put(NULL, meta("version-hint.text"), hints[i], strlen(hints[i]), &err));
        else OK(fio_delete(NULL, meta("version-hint.text"), &err));
        assert_string_equal(value_of_k(c, &v), "3");
        assert_int_equal(v, 3);
    }
    cat_names names; /* without a hint it still is a table */
    OK(cat_list_tables(c, ns1("db"), arena, &names, &err));
    assert_string_equal(joined(&names), "t ");
    /* Versions that have expired: the hint's own file is gone. */
    OK(fio_put(NULL, meta("version-hint.text"), "1", 1, &err));
    OK(fio_delete(NULL, meta("v1.metadata.json"), &err));
    OK(fio_delete(NULL, meta("v2.metadata.json"), &err));
    assert_string_equal(value_of_k(c, &v), "3");
    cat_close(c);
}

static void test_gzip(void **state) {
    (void)state;
    const fz_pair gz = {.key = "write.metadata.compression-codec", .value = "gzip"};
    cat_catalog *c = with_table(&gz, 1);
    cat_ident id = ident("db", "t");
    int64_t v;
    assert_true(there(meta("v1.gz.metadata.json")));
    set_now(c, &id, "k", "2");
    assert_true(there(meta("v2.gz.metadata.json")));
    set_now(c, &id, "write.metadata.compression-codec", "none");
    assert_true(there(meta("v3.metadata.json")));
    assert_string_equal(value_of_k(c, &v), "2");
    assert_int_equal(v, 3);
    /* The name that old versions of Iceberg gave. */
    fz_buf b = {0};
    OK(fio_read(NULL, meta("v2.gz.metadata.json"), 1 << 20, &b, &err));
    OK(fio_put(NULL, meta("v4.metadata.json.gz"), b.data, b.len, &err));
    fz_buf_free(&b);
    value_of_k(c, &v);
    assert_int_equal(v, 4);
    cat_close(c);
}

/* A stale base whose successor was already deleted as an old version must not make that version anew. */
static void test_stale_base(void **state) {
    (void)state;
    static const fz_pair props[] = {{.key = "write.metadata.delete-after-commit.enabled", .value = "true"}, {.key = "write.metadata.previous-versions-max", .value = "1"}};
    cat_catalog *c = with_table(props, 2);
    cat_ident id = ident("db", "t");
    cat_table *old, *t2;
    OK(cat_load_table(c, &id, &old, &err));
    for (int i = 0; i < 5; i++) set_now(c, &id, "k", fz_arena_printf(arena, "%d", i));
    assert_false(there(meta("v2.metadata.json")));
    FAILS(set_property(c, old, "k", "stale", &t2), FZ_CONFLICT, "catalog.conflict");
    assert_false(there(meta("v2.metadata.json")));
    int64_t v;
    assert_string_equal(value_of_k(c, &v), "4");
    cat_table_free(old);
    cat_close(c);
}

static void test_locations(void **state) {
    (void)state;
    cat_catalog *c = with_table(NULL, 0);
    cat_ident id = ident("db", "u");
    cat_table *t, *t2;
    ice_metadata *m = small_metadata("file:///elsewhere", NULL, 0);
    FAILS(cat_create_table(c, &id, m, &t, &err), FZ_USER, "catalog.option");
    ice_metadata_free(m);
    cat_ident have = ident("db", "t");
    OK(cat_load_table(c, &have, &t, &err));
    ice_changes ch = ice_changes_new();
    ice_update_location(&ch, "file:///elsewhere");
    FAILS(cat_commit(c, t, &ch, &t2, &err), FZ_USER, "catalog.option");
    ice_changes_free(&ch);
    FAILS(set_property(c, t, "write.metadata.path", "/x", &t2), FZ_USER, "catalog.option");
    cat_table_free(t);
    const fz_pair comment = {.key = "comment", .value = "x"};
    FAILS(cat_create_namespace(c, ns1("withcomment"), &comment, 1, &err), FZ_USER, "catalog.option");
    cat_close(c);
}

static void test_failed_create_leaves_nothing(void **state) {
    (void)state;
    cat_catalog *c = with_table(NULL, 0);
    cat_ident id = ident("db", "u");
    cat_table *t;
    cat_names v;
    const char *location;
    OK(cat_default_location(c, &id, arena, &location, &err));
    ice_metadata *m = small_metadata(location, NULL, 0);
    OK(fz_fault_arm("file.write:1:enospc", &err));
    FAILS(cat_create_table(c, &id, m, &t, &err), FZ_RETRY, "file.no-space");
    OK(fz_fault_arm(NULL, &err));
    OK(cat_list_namespaces(c, ns1("db"), arena, &v, &err));
    assert_int_equal(v.n, 0);
    OK(cat_create_table(c, &id, m, &t, &err));
    cat_table_free(t);
    cat_close(c);
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_files), T(test_hints), T(test_gzip), T(test_stale_base), T(test_locations), T(test_failed_create_leaves_nothing),
    };
    return cmocka_run_group_tests_name("hadoop catalog", tests, NULL, NULL);
}
