/* One catalog, several threads: commits to one table and to tables of their own, listings in between. For ThreadSanitizer too. */
#include "cat_test.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, COMMITS = 8 };
typedef struct work { cat_catalog *c; int me; atomic_int *failed; } work;

static const char *const level[] = {"db"};

static bool add_one(cat_catalog *c, const char *table) {
    cat_ident id = {{1, level}, table};
    for (int tries = 0; tries < 1000; tries++) {
        cat_table *t, *t2;
        fz_error e;
        if (cat_load_table(c, &id, &t, &e) != FZ_OK) return false;
        char n[24];
        snprintf(n, sizeof n, "%lld", (long long)ice_property_i64(t->metadata, "count", 0) + 1);
        fz_pair p = {.key = "count", .value = n};
        ice_changes ch = ice_changes_new();
        ice_update_set_properties(&ch, &p, 1);
        fz_status rc = cat_commit(c, t, &ch, &t2, &e);
        ice_changes_free(&ch);
        cat_table_free(t);
        if (rc == FZ_OK) return cat_table_free(t2), true;
        if (rc != FZ_CONFLICT && rc != FZ_RETRY) return false;
    }
    return false;
}

static void *run(void *cx) {
    work *w = cx;
    char own[16];
    snprintf(own, sizeof own, "own%d", w->me);
    for (int i = 0; i < COMMITS; i++) {
        fz_arena *a = fz_arena_new();
        cat_names v;
        fz_error e;
        bool ok = add_one(w->c, "shared") && add_one(w->c, own) && cat_list_tables(w->c, (cat_namespace){1, level}, a, &v, &e) == FZ_OK && v.n == THREADS + 1;
        if (!ok) atomic_fetch_add(w->failed, 1);
        fz_arena_free(a);
    }
    return NULL;
}

static int64_t count_of(cat_catalog *c, const char *table) {
    cat_ident id = {{1, level}, table};
    cat_table *t;
    OK(cat_load_table(c, &id, &t, &err));
    int64_t n = ice_property_i64(t->metadata, "count", 0);
    cat_table_free(t);
    return n;
}

static void threads(const char *kind) {
    cat_catalog *c = open_catalog(kind);
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_ident shared = ident("db", "shared");
    cat_table_free(make_table(c, &shared, NULL, 0));
    pthread_t th[THREADS];
    work w[THREADS];
    atomic_int failed = 0;
    for (int i = 0; i < THREADS; i++) {
        cat_ident own = ident("db", fz_arena_printf(arena, "own%d", i));
        cat_table_free(make_table(c, &own, NULL, 0));
    }
    for (int i = 0; i < THREADS; i++) {
        w[i] = (work){c, i, &failed};
        assert_int_equal(pthread_create(&th[i], NULL, run, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(th[i], NULL);
    assert_int_equal(failed, 0);
    assert_int_equal(count_of(c, "shared"), THREADS * COMMITS);
    for (int i = 0; i < THREADS; i++) assert_int_equal(count_of(c, fz_arena_printf(arena, "own%d", i)), COMMITS);
    cat_close(c);
}
static void test_threads_sql(void **state) { (void)state; threads("sql"); }
static void test_threads_hadoop(void **state) { (void)state; threads("hadoop"); }

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_threads_sql), T(test_threads_hadoop),
    };
    return cmocka_run_group_tests_name("catalog threads", tests, NULL, NULL);
}
