/* Batches of CloudWatch Logs: order, sizes, spans, what no batch can hold. */
#include "unit.h"
#include "delivery/logs_int.h"
#include <stdlib.h>

#define DAY 86400000ll

static void check(const logs_events *e, uint32_t want_batches) {
    uint32_t batches = 0, seen = 0;
    int64_t last = INT64_MIN;
    for (uint32_t from = 0; from < e->n;) {
        uint32_t to = logs_batch_end(e, from), n = 0;
        uint64_t bytes = 0;
        int64_t first = -1;
        assert_true(to > from);
        for (uint32_t i = from; i < to; i++) {
            const logs_event *v = &e->v[i];
            if (!v->sendable) continue;
            assert_true(v->ms >= last);
            last = v->ms;
            if (first < 0) first = v->ms;
            assert_true(v->ms - first <= DAY);
            bytes += v->n + 26;
            n++;
        }
        assert_true(bytes <= 1048576 && n <= 10000);
        batches += n > 0;
        seen += n;
        from = to;
    }
    uint32_t sendable = 0;
    for (uint32_t i = 0; i < e->n; i++) sendable += e->v[i].sendable;
    assert_int_equal(seen, sendable);
    assert_int_equal(batches, want_batches);
}

static void sorted_and_within_a_day(void **state) {
    (void)state;
    logs_events e = {0};
    logs_add(&e, 1700000002000, "c", 1);
    logs_add(&e, 1700000000000, "a", 1);
    logs_add(&e, 1700000000000 + DAY + 1, "d", 1);
    logs_add(&e, 1700000000000, "b", 1);
    logs_prepare(&e);
    for (int i = 0; i < 4; i++) assert_int_equal(e.text.data[e.v[i].at], "abcd"[i]); /* of one time: as they came */
    check(&e, 2);
    assert_int_equal(logs_batch_end(&e, 0), 3);
    e.v[3].ms--;
    check(&e, 1);
    logs_free(&e);
}

static void ten_thousand(void **state) {
    (void)state;
    logs_events e = {0};
    for (int i = 0; i < 10001; i++) logs_add(&e, 1700000000000 + (i * 7919) % 10001, "x", 1);
    logs_prepare(&e);
    check(&e, 2);
    assert_int_equal(logs_batch_end(&e, 0), 10000);
    logs_free(&e);
}

static void bytes(void **state) {
    (void)state;
    static const struct { uint32_t n[3]; uint32_t batches, refused; } cases[] = {
        {{1048550, 0, 0}, 1, 2}, {{1048551, 1, 1}, 1, 1}, {{524262, 524262, 1}, 2, 0}, {{524262, 524262, 0}, 1, 1}, {{524262, 524263, 5}, 2, 0}, {{1048550, 1048550, 1048550}, 3, 0},
    };
    char *text = fz_calloc(1, 1 << 21);
    memset(text, 'x', 1 << 21);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        logs_events e = {0};
        uint32_t refused = 0;
        for (int i = 0; i < 3; i++) logs_add(&e, 1700000000000 + i, text, cases[c].n[i]);
        logs_prepare(&e);
        for (uint32_t i = 0; i < e.n; i++) refused += e.v[i].refused != NULL;
        assert_int_equal(refused, cases[c].refused);
        check(&e, cases[c].batches);
        logs_free(&e);
    }
    fz_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorted_and_within_a_day), cmocka_unit_test(ten_thousand), cmocka_unit_test(bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
