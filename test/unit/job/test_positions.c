/* Positions and ranges in summaries. */
#include "unit.h"
#include "job/positions.h"

static void round_trip(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    job_position p[] = {{{"kafka:c1", "syslog", 10}, 7, true, 6, 1700000000123, 0xfedcba9876543210ull, 0},
                        {{"kafka:c1", "syslog", 2}, 0, false, 0, 0, 0, 0},
                        {{"kafka:c1", "auth \"x\"", 0}, 1ll << 60, true, -1, -1, 1, 0}};
    job_range r[] = {{{"kafka:c1", "syslog", 10}, 3, 7, 4, 1, 1, 1, 1, 1, 0}};
    job_marks m = {.pipeline = "p\"1", .commit_id = "id-1", .checkpoint = 12, .new_chain = true, .n_positions = 3, .positions = p, .n_ranges = 1, .ranges = r}, back;
    fz_pair pairs[JOB_MAX_KEYS];
    size_t n = job_marks_encode(a, &m, pairs);
    assert_int_equal(n, 6);
    bool found;
    assert_int_equal(job_marks_decode(a, pairs, n, &back, &found, &err), FZ_OK);
    assert_true(found);
    assert_string_equal(back.pipeline, "p\"1");
    assert_int_equal(back.checkpoint, 12);
    assert_true(back.new_chain);
    assert_int_equal(back.n_positions, 3);
    job_position *q = job_position_find(back.positions, 3, &p[0].key);
    assert_non_null(q);
    assert_true(q->next == 7 && q->has_last && q->last_hash == p[0].last_hash && q->last_timestamp == 1700000000123);
    assert_false(job_position_find(back.positions, 3, &p[1].key)->has_last);
    assert_int_equal(job_position_find(back.positions, 3, &p[2].key)->next, 1ll << 60);
    assert_int_equal(back.ranges[0].unparseable, 1);
    job_marks again = m;
    job_position swapped[] = {p[2], p[0], p[1]};
    again.positions = swapped;
    fz_pair pairs2[JOB_MAX_KEYS];
    job_marks_encode(a, &again, pairs2);
    assert_string_equal(pairs[3].value, pairs2[3].value); /* canonical */
    job_adopted adopted[] = {{"old \"1\"", 1ll << 50}, {"older", -3}};
    again.n_adopted = 2;
    again.adopted = adopted;
    n = job_marks_encode(a, &again, pairs2);
    assert_int_equal(n, 7);
    assert_int_equal(job_marks_decode(a, pairs2, n, &back, &found, &err), FZ_OK);
    assert_true(back.n_adopted == 2 && job_adopted_find(back.adopted, 2, "old \"1\"")->as_of == 1ll << 50 && job_adopted_find(back.adopted, 2, "older")->as_of == -3 && !job_adopted_find(back.adopted, 2, "new"));
    job_mirror mi = {.snapshot_id = 42, .sequence_number = 9, .n = 3, .positions = p}, mb;
    assert_int_equal(job_mirror_decode(a, job_mirror_encode(a, &mi), &mb, &err), FZ_OK);
    assert_true(mb.snapshot_id == 42 && mb.sequence_number == 9 && mb.n == 3 && !mb.n_adopted);
    mi.n_adopted = 2;
    mi.adopted = adopted;
    assert_int_equal(job_mirror_decode(a, job_mirror_encode(a, &mi), &mb, &err), FZ_OK);
    assert_true(mb.n_adopted == 2 && job_adopted_find(mb.adopted, 2, "older")->as_of == -3);
    fz_arena_free(a);
}

static void adopted_are_merged(void **state) {
    (void)state;
    job_adopted v[2 * JOB_ADOPTED_KEPT] = {{"a", 1}, {"b", 2}}, more[] = {{"c", 3}, {"a", 4}};
    uint32_t n = job_adopted_merge(v, 2, more, 2);
    assert_true(n == 3 && job_adopted_find(v, n, "a")->as_of == 4 && strcmp(v[2].pipeline, "a") == 0 && job_adopted_find(v, n, "b")->as_of == 2);
    char names[JOB_ADOPTED_KEPT][8];
    for (int i = 0; i < JOB_ADOPTED_KEPT; i++) {
        snprintf(names[i], sizeof names[i], "p%d", i);
        n = job_adopted_merge(v, n, &(job_adopted){names[i], i}, 1);
    }
    assert_true(n == JOB_ADOPTED_KEPT && !job_adopted_find(v, n, "a") && job_adopted_find(v, n, "p0") && job_adopted_find(v, n, "p99"));
}

/* A table that was written from many logs (each spool that was lost leaves its position): what is decoded stays as it is while the arena is used on. */
static void many_sources(void **state) {
    (void)state;
    enum { N = 50 };
    fz_arena *a = fz_arena_new();
    fz_error err;
    job_position p[N];
    job_range r[N];
    for (int i = 0; i < N; i++) {
        job_split_key key = {fz_arena_printf(a, "spool:%d", i), "http", 0};
        p[i] = (job_position){.key = key, .next = i};
        r[i] = (job_range){.key = key, .from = i, .to = i + 1, .read = 1, .added = 1, .paths = 1};
    }
    job_marks m = {.pipeline = "p", .commit_id = "id", .checkpoint = 1, .n_positions = N, .positions = p, .n_ranges = N, .ranges = r}, back;
    fz_pair pairs[JOB_MAX_KEYS];
    size_t n = job_marks_encode(a, &m, pairs);
    bool found;
    assert_int_equal(job_marks_decode(a, pairs, n, &back, &found, &err), FZ_OK);
    memset(fz_arena_alloc(a, 4096), 0xc7, 4096);
    assert_int_equal(back.n_positions, N);
    assert_int_equal(back.n_ranges, N);
    for (int i = 0; i < N; i++) {
        const job_position *q = job_position_find(back.positions, N, &p[i].key);
        assert_non_null(q);
        assert_int_equal(q->next, i);
        assert_string_equal(back.ranges[i].key.topic, "http");
    }
    fz_arena_free(a);
}

static void damaged_text_is_an_error(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    job_marks m;
    bool found;
    fz_pair ok[] = {{.key = "operation", .value = "append"}};
    assert_int_equal(job_marks_decode(a, ok, 1, &m, &found, &err), FZ_OK);
    assert_false(found);
    static const char *const bad[] = {"", "{}", "{\"v\":2,\"s\":{}}", "{\"v\":1,\"s\":{\"k\":{\"t\":[[\"0\",1]]}}}", "{\"v\":1,\"s\":{\"k\":{\"t\":[[0]]}}}",
                                      "{\"v\":1,\"s\":{\"k\":{\"t\":[[0,1,2]]}}}", "{\"v\":1,\"s\":{\"k\":3}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fz_pair p[] = {{.key = JOB_KEY_PIPELINE, .value = "p"}, {.key = JOB_KEY_COMMIT_ID, .value = "x"}, {.key = JOB_KEY_POSITIONS, .value = bad[i]},
                       {.key = JOB_KEY_RANGES, .value = "{\"v\":1,\"s\":{}}"}};
        assert_int_equal(job_marks_decode(a, p, 4, &m, &found, &err), FZ_FATAL);
        assert_string_equal(err.code, "positions.unreadable");
    }
    fz_arena_free(a);
}

/* Marked positions survive the text; of many the oldest go, none that went within a day, and none that is there. */
static void gone(void **state) {
    (void)state;
    enum { N = JOB_GONE_KEPT + 20, DAY = JOB_GONE_MS };
    fz_arena *a = fz_arena_new();
    fz_error err;
    const int64_t now = 1800000000000;
    job_position p[N + 5], v[N + 5];
    for (int i = 0; i < N + 5; i++)
        p[i] = (job_position){.key = {"files", fz_arena_printf(a, "app.log#%d", i), 0}, .next = i, .has_last = i >= N, .gone_ms = i < N ? now - 40 * (int64_t)DAY + i * (int64_t)DAY / 10 : 0};
    job_mirror m = {.snapshot_id = 1, .sequence_number = 1, .n = N + 5, .positions = p}, back;
    assert_int_equal(job_mirror_decode(a, job_mirror_encode(a, &m), &back, &err), FZ_OK);
    for (int i = 0; i < N + 5; i++) {
        const job_position *q = job_position_find(back.positions, back.n, &p[i].key);
        assert_true(q && q->gone_ms == p[i].gone_ms && q->has_last == p[i].has_last && q->next == i);
    }
    memcpy(v, p, sizeof p);
    assert_int_equal(job_positions_retire(v, N + 5, now), N + 5 - 20);
    assert_int_equal(v[0].next, 20);
    assert_int_equal(v[N + 5 - 21].next, N + 4);
    assert_int_equal(job_positions_retire(v, N + 5 - 20, now), N + 5 - 20);
    memcpy(v, p, sizeof p);
    assert_int_equal(job_positions_retire(v, N + 5, now - 39 * (int64_t)DAY), N + 5); /* too early: only the first ten are a day old, and less */
    for (int i = 0; i < N; i++) v[i].gone_ms = now - 1;
    assert_int_equal(job_positions_retire(v, N + 5, now), N + 5);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(adopted_are_merged), cmocka_unit_test(many_sources), cmocka_unit_test(damaged_text_is_an_error), cmocka_unit_test(gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
