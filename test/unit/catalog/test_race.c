/* Processes that commit to one table at once: all succeed in turn, and none undoes another's work. */
#include "cat_test.h"
#include <signal.h>
#include <sys/wait.h>

enum { PROCS = 4, COMMITS = 12 };

/* Adds 1 to a counter in the table's properties: lost or doubled commits show in the sum. */
static void worker(const char *kind, int me) {
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t");
    for (int done = 0; done < COMMITS;) {
        cat_table *t, *t2;
        OK(cat_load_table(c, &id, &t, &err));
        int64_t n = ice_property_i64(t->metadata, "count", 0);
        fz_pair p[2] = {{.key = "count", .value = fz_arena_printf(arena, "%lld", (long long)n + 1)},
                        {.key = fz_arena_printf(arena, "by.%d", me), .value = fz_arena_printf(arena, "%d", done + 1)}};
        ice_changes ch = ice_changes_new();
        ice_assert_uuid(&ch, t->metadata->uuid);
        ice_update_set_properties(&ch, p, 2);
        fz_status rc = cat_commit(c, t, &ch, &t2, &err);
        ice_changes_free(&ch);
        cat_table_free(t);
        if (rc == FZ_OK) {
            cat_table_free(t2);
            done++;
        } else if (rc != FZ_CONFLICT && rc != FZ_RETRY) {
            fprintf(stderr, "worker %d: %s %s\n", me, fz_status_name(rc), err.message);
            _exit(1);
        }
    }
    cat_close(c);
}

static void race(const char *kind) {
    cat_catalog *c = open_catalog(kind);
    cat_ident id = ident("db", "t");
    OK(cat_create_namespace(c, ns1("db"), NULL, 0, &err));
    cat_table_free(make_table(c, &id, NULL, 0));
    cat_close(c); /* a connection must not pass through fork */
    pid_t pid[PROCS];
    for (int i = 0; i < PROCS; i++)
        if ((pid[i] = fork()) == 0) {
            worker(kind, i);
            _exit(0);
        }
    for (int i = 0; i < PROCS; i++) {
        int st;
        waitpid(pid[i], &st, 0);
        assert_int_equal(st, 0);
    }
    c = open_catalog(kind);
    cat_table *t;
    OK(cat_load_table(c, &id, &t, &err));
    assert_int_equal(ice_property_i64(t->metadata, "count", 0), PROCS * COMMITS);
    for (int i = 0; i < PROCS; i++) assert_int_equal(ice_property_i64(t->metadata, fz_arena_printf(arena, "by.%d", i), 0), COMMITS);
    assert_int_equal(t->version, PROCS * COMMITS + (strcmp(kind, "hadoop") == 0));
    assert_int_equal(metadata_files(t->metadata->location), PROCS * COMMITS + 1); /* and no litter of those that lost */
    cat_table_free(t);
    cat_close(c);
}
static void test_race_sql(void **state) { (void)state; race("sql"); }
static void test_race_hadoop(void **state) { (void)state; race("hadoop"); }

/* All open a catalog that is not there yet, and make the same table: one of them gets it. */
static void create_race(const char *kind) {
    for (int round = 0; round < 5; round++) {
        pid_t pid[PROCS];
        const char *table = fz_arena_printf(arena, "t%d", round);
        if (round > 0 && strcmp(kind, "sql") == 0) OK(fio_delete(NULL, in_root("cat.db"), &err));
        for (int i = 0; i < PROCS; i++)
            if ((pid[i] = fork()) == 0) {
                cat_catalog *c = open_catalog(kind);
                cat_ident id = ident("db", table);
                cat_table *t;
                const char *location;
                fz_status rc = cat_create_namespace(c, ns1("db"), NULL, 0, &err);
                if (rc != FZ_OK && strcmp(err.code, "catalog.namespace-exists") != 0) _exit(3);
                if (cat_default_location(c, &id, arena, &location, &err) != FZ_OK) _exit(4);
                rc = cat_create_table(c, &id, small_metadata(location, NULL, 0), &t, &err);
                if (rc != FZ_OK && strcmp(err.code, "catalog.table-exists") != 0) {
                    fprintf(stderr, "%s %s\n", err.code, err.message);
                    _exit(5);
                }
                _exit(rc == FZ_OK ? 1 : 0);
            }
        int wins = 0;
        for (int i = 0; i < PROCS; i++) {
            int st;
            waitpid(pid[i], &st, 0);
            assert_true(WIFEXITED(st) && WEXITSTATUS(st) < 2);
            wins += WEXITSTATUS(st);
        }
        assert_int_equal(wins, 1);
        cat_catalog *c = open_catalog(kind);
        cat_ident id = ident("db", table);
        cat_table *t;
        OK(cat_load_table(c, &id, &t, &err));
        assert_int_equal(metadata_files(t->metadata->location), 1);
        cat_table_free(t);
        cat_close(c);
    }
}
static void test_create_race_sql(void **state) { (void)state; create_race("sql"); }
static void test_create_race_hadoop(void **state) { (void)state; create_race("hadoop"); }

/* A process that is killed at any point of a commit leaves a table that loads and takes the next commit. */
static void killed(const char *kind) {
    static const struct { const char *spec; const char *want; } cases[] = {
        {"commit.metadata:1:kill", "none"}, {"commit.swap:1:kill", "none"}, {"commit.accepted:1:kill", "killed"}, {"commit.answered:1:kill", "killed"}};
    for (unsigned i = 0; i < 4; i++) {
        const char *table = fz_arena_printf(arena, "k%u", i);
        cat_ident id = ident("db", table);
        cat_catalog *c = open_catalog(kind);
        fz_status rc = cat_create_namespace(c, ns1("db"), NULL, 0, &err);
        assert_true(rc == FZ_OK || strcmp(err.code, "catalog.namespace-exists") == 0);
        cat_table_free(make_table(c, &id, NULL, 0));
        cat_close(c);
        pid_t pid = fork();
        if (pid == 0) {
            c = open_catalog(kind);
            OK(fz_fault_arm(cases[i].spec, &err));
            set_now(c, &id, "k", "killed");
            _exit(0);
        }
        int st;
        waitpid(pid, &st, 0);
        assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
        c = open_catalog(kind);
        cat_table *t;
        OK(cat_load_table(c, &id, &t, &err));
        assert_string_equal(ice_property(t->metadata, "k", "none"), cases[i].want);
        cat_table_free(t);
        set_now(c, &id, "k", "next");
        cat_close(c);
    }
}
static void test_killed_sql(void **state) { (void)state; killed("sql"); }
static void test_killed_hadoop(void **state) { (void)state; killed("hadoop"); }

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_race_sql), T(test_race_hadoop), T(test_create_race_sql), T(test_create_race_hadoop), T(test_killed_sql), T(test_killed_hadoop),
    };
    return cmocka_run_group_tests_name("catalog races", tests, NULL, NULL);
}
