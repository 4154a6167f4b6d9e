/* The spool as its users see it: numbers, durability, reading from memory and from disk, limits, trimming, trouble with the disk. */
#include "spool_test.h"
#include <fcntl.h>
#include <pthread.h>

static void test_append_read(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    assert_int_equal(spool_durable(s), 0);
    uint64_t at = 0, sum;
    for (int i = 0; i < 20; i++) {
        uint64_t ticket = append(s, at, (uint32_t)i + 1, 3);
        at += (uint64_t)i + 1;
        assert_int_equal(ticket, at);
        assert_true(spool_durable(s) >= ticket);
    }
    assert_int_equal(read_all(s, 0, &sum, NULL), at);
    assert_int_equal(sum, sum_to(at));
    assert_int_equal(read_all(s, 100, &sum, NULL), at - 100); /* from the middle of a frame */
    assert_int_equal(sum, sum_to(at) - sum_to(100));
    char inc[37];
    snprintf(inc, sizeof inc, "%s", spool_incarnation(s));
    spool_close(s);
    s = open_spool(NULL); /* now from disk */
    assert_string_equal(inc, spool_incarnation(s));
    assert_int_equal(spool_durable(s), at);
    assert_int_equal(read_all(s, 0, &sum, NULL), at);
    assert_int_equal(read_all(s, 100, &sum, NULL), at - 100);
    append(s, at, 5, 3);
    assert_int_equal(read_all(s, 0, &sum, NULL), at + 5);
    assert_int_equal(sum, sum_to(at + 5));
    spool_close(s);
}

/* Frames of `each` records up to `to`; record i came in at BEGAN + i. */
enum { BEGAN = 1000000 };
static void append_dated(spool *s, uint64_t from, uint64_t to, uint32_t each) {
    uint64_t ticket = 0;
    for (; from < to; from += each) {
        made m;
        make_frame(&m, from, each, 1);
        m.f.arrival_ms = BEGAN + (int64_t)from;
        OK(spool_append(s, &m.f, 1, 1000, &ticket, err_));
        drop_frame(&m);
    }
    OK(spool_wait(s, ticket, 10000, err_));
}
/* What is told about a record's arrival is never too late, and too early by `step` at most. */
static void check_arrivals(spool *s, uint64_t from, uint64_t to, int64_t step) {
    for (uint64_t i = from; i < to; i += 37) {
        int64_t ms = spool_arrival_ms(s, i), right = BEGAN + (int64_t)i;
        if (ms > right || ms < right - step) fail_msg("record %" PRIu64 " came in at %" PRId64 ", and %" PRId64 " is told", i, right, ms);
    }
    assert_int_equal(spool_arrival_ms(s, to), 0);
}

static void test_arrivals_and_stats(void **state) {
    (void)state;
    spool_options o = {.segment_bytes = 64 << 10};
    spool *s = open_spool(&o);
    spool_stats st = spool_get_stats(s);
    assert_int_equal(st.waiting + (uint64_t)st.oldest_ms + st.unsynced + (uint64_t)st.unsynced_ms, 0);
    assert_false(st.full || st.failing);
    append_dated(s, 0, 20000, 50);
    check_arrivals(s, 0, 20000, 550);
    st = spool_get_stats(s);
    assert_int_equal(st.waiting, 20000);
    assert_int_equal(st.oldest_ms, BEGAN);
    assert_int_equal(st.disk_bytes, spool_bytes(s));
    assert_int_equal(st.max_bytes, 1 << 30);
    OK(spool_trim(s, 9000, err_));
    st = spool_get_stats(s);
    assert_int_equal(st.waiting, 11000);
    assert_true(st.oldest_ms <= BEGAN + 9000 && st.oldest_ms > BEGAN + 8400);
    spool_close(s);
    s = open_spool(&o); /* what was trimmed within a segment is not known any more */
    check_arrivals(s, 9000, 20000, 20000);
    append_dated(s, 20000, 2000000, 500); /* marks are thinned out */
    check_arrivals(s, 20000, 2000000, 1600);
    OK(spool_trim(s, 2000000, err_));
    st = spool_get_stats(s);
    assert_int_equal(st.waiting + (uint64_t)st.oldest_ms, 0);
    spool_close(s);
}

static void test_failing_is_told(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    uint64_t ticket;
    OK(fz_fault_arm("spool.fsync:1:eio", err_));
    OK(try_append(s, 0, 5, 1, 0, &ticket, err_));
    for (int i = 0; i < 5000 && !spool_get_stats(s).failing && spool_durable(s) < 5; i++) usleep(1000);
    spool_stats st = spool_get_stats(s);
    if (spool_durable(s) < 5) {
        assert_true(st.failing);
        assert_int_equal(st.unsynced, 5);
        assert_true(st.unsynced_ms >= 0);
    }
    OK(spool_wait(s, ticket, 10000, err_));
    st = spool_get_stats(s);
    assert_false(st.failing);
    assert_int_equal(st.unsynced + (uint64_t)st.unsynced_ms, 0);
    spool_close(s);
}

static void test_frames_of_one_append(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    made m[3];
    spool_frame f[4];
    make_frame(&m[0], 0, 3, 1);
    make_frame(&m[1], 3, 1, 1);
    make_frame(&m[2], 4, 6, 1);
    for (int i = 0; i < 3; i++) f[i] = m[i].f;
    f[3] = (spool_frame){.n = 0};
    uint64_t ticket;
    OK(spool_append(s, f, 4, 0, &ticket, err_));
    assert_int_equal(ticket, 10);
    OK(spool_wait(s, ticket, 5000, err_));
    spool_reader *r = spool_reader_new(s, 1);
    for (int i = 0; i < 3; i++) {
        spool_view v;
        bool got;
        OK(spool_next(r, 0, &v, &got, err_));
        assert_true(got);
        assert_int_equal(v.n, i == 0 ? 2 : f[i].n);
        assert_int_equal(v.context_len, f[i].context_len);
        assert_memory_equal(v.context, f[i].context, v.context_len);
        assert_int_equal(v.arrival_ms, f[i].arrival_ms);
        assert_true((v.time_ns != NULL) == (f[i].time_ns != NULL));
        spool_view_release(&v);
    }
    spool_reader_free(r);
    spool_close(s);
    for (int i = 0; i < 3; i++) drop_frame(&m[i]);
}

/* More than memory holds: the older part comes from segments, and views outlive what they came from. */
static void test_small_memory(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 8 << 20, .segment_bytes = 64 << 10, .memory = 32 << 10};
    spool *s = open_spool(&o);
    for (uint64_t at = 0; at < 20000; at += 100) append(s, at, 100, 20);
    uint64_t sum;
    assert_int_equal(read_all(s, 0, &sum, NULL), 20000);
    assert_int_equal(sum, sum_to(20000));
    for (uint64_t from = 0; from < 20000; from += 997) assert_int_equal(read_all(s, from, &sum, NULL), 20000 - from);
    spool_reader *r = spool_reader_new(s, 0);
    spool_view v[50];
    bool got;
    for (int i = 0; i < 50; i++) OK(spool_next(r, 0, &v[i], &got, err_));
    fz_error err;
    assert_int_equal(spool_trim(s, 20000, &err), FZ_OK);
    spool_reader_free(r);
    spool_close(s);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(value_of(v[i].bytes, v[i].len[0]), (uint64_t)i * 100);
        spool_view_release(&v[i]);
    }
}

static void test_full_and_trim(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 256 << 10, .segment_bytes = 64 << 10, .memory = 1 << 20};
    spool *s = open_spool(&o);
    uint64_t at = 0, ticket, sum;
    fz_error err = {0};
    fz_status rc;
    while ((rc = try_append(s, at, 10, 500, 1000, &ticket, &err)) == FZ_OK) at += 10;
    assert_int_equal(rc, FZ_RETRY);
    assert_string_equal(err.code, "spool.full");
    assert_true(spool_full(s));
    OK(spool_wait(s, at, 5000, err_));
    assert_true(spool_bytes(s) <= 256 << 10);
    assert_true(spool_bytes(s) > 200 << 10);
    assert_int_equal(read_all(s, 0, &sum, NULL), at);
    OK(spool_trim(s, 5, err_)); /* nothing whole is below */
    assert_true(spool_full(s));
    assert_int_equal(spool_low(s), 0);
    OK(spool_trim(s, at / 2, err_));
    assert_false(spool_full(s));
    assert_true(spool_low(s) > 0 && spool_low(s) <= at / 2);
    uint64_t low = spool_low(s);
    assert_int_equal(read_all(s, 0, &sum, NULL), at - low);
    append(s, at, 10, 500);
    spool_close(s);
    s = open_spool(&o);
    assert_int_equal(spool_low(s), low);
    assert_int_equal(spool_durable(s), at + 10);
    spool_close(s);
}

/* One message as large as half the spool, again and again: the last segment goes too once it is committed. */
static void test_large_messages(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 1 << 20, .segment_bytes = 64 << 10};
    spool *s = open_spool(&o);
    uint64_t ticket;
    fz_error err = {0};
    for (uint64_t i = 0; i < 6; i++) {
        fz_status rc = FZ_RETRY;
        for (int k = 0; k < 1000 && rc == FZ_RETRY; k++) {
            rc = try_append(s, i, 1, 600000, 100, &ticket, &err);
            if (rc == FZ_RETRY) fz_sleep_ms(2);
        }
        if (rc != FZ_OK) fail_msg("%s %s", err.code, err.message);
        OK(spool_wait(s, ticket, 5000, err_));
        OK(spool_trim(s, ticket, err_));
    }
    assert_int_equal(try_append(s, 6, 1, 2 << 20, 100, &ticket, &err), FZ_DATA);
    assert_string_equal(err.code, "spool.too-large");
    spool_close(s);
    s = open_spool(&o);
    assert_int_equal(spool_durable(s), 6);
    spool_close(s);
}

static void test_in_use(void **state) {
    (void)state;
    spool *s = open_spool(NULL), *t;
    fz_error err = {0};
    assert_int_equal(spool_open(dir, NULL, &t, &err), FZ_USER);
    assert_string_equal(err.code, "spool.in-use");
    assert_true(spool_in_use(dir));
    spool_close(s);
    assert_false(spool_in_use(dir));
    spool_close(open_spool(NULL));
    char *file = file_of("a-file");
    put_file("a-file", "x", 1);
    assert_int_equal(spool_open(file, NULL, &t, &err), FZ_USER);
    assert_string_equal(err.code, "spool.directory");
    fz_free(file);
    file = file_of("a-file/below");
    assert_int_equal(spool_open(file, NULL, &t, &err), FZ_USER);
    assert_string_equal(err.code, "spool.directory");
    fz_free(file);
}

/* ---- many threads ---- */
enum { WRITERS = 4, APPENDS = 300 };
static _Atomic int calls;
static void count_call(void *cx) {
    (void)cx;
    atomic_fetch_add(&calls, 1);
}
static void *writer(void *p) {
    spool *s = p;
    for (int i = 0; i < APPENDS; i++) {
        uint32_t len[3] = {8, 0, 5};
        spool_frame f = {.n = 3, .len = len, .bytes = "01234567abcde", .arrival_ms = i};
        uint64_t ticket = 0;
        fz_error err = {0};
        if (spool_append(s, &f, 1, 10000, &ticket, &err) != FZ_OK) return (void *)1;
        if (i % 50 == 0 && spool_wait(s, ticket, 10000, &err) != FZ_OK) return (void *)1;
        if (i % 50 == 0 && spool_durable(s) < ticket) return (void *)1;
    }
    return NULL;
}
static void *reader(void *p) {
    spool *s = p;
    spool_reader *r = spool_reader_new(s, 0);
    uint64_t next = 0;
    fz_error err;
    while (next < WRITERS * APPENDS * 3) {
        spool_view v;
        bool got;
        if (spool_next(r, 5000, &v, &got, &err) != FZ_OK || !got || v.first != next || v.n != 3) return (void *)1;
        if (memcmp(v.bytes, "01234567abcde", 13) != 0 || v.first + v.n > spool_durable(s)) return (void *)1;
        next += v.n;
        spool_view_release(&v);
    }
    spool_reader_free(r);
    return NULL;
}
static void test_threads(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 4 << 20, .segment_bytes = 16 << 10, .memory = 16 << 10};
    spool *s = open_spool(&o);
    atomic_store(&calls, 0);
    spool_watch(s, count_call, NULL);
    pthread_t t[WRITERS + 2];
    for (int i = 0; i < WRITERS + 2; i++) pthread_create(&t[i], NULL, i < WRITERS ? writer : reader, s);
    for (int i = 0; i < WRITERS + 2; i++) {
        void *rc;
        pthread_join(t[i], &rc);
        assert_null(rc);
    }
    assert_true(atomic_load(&calls) > 0);
    spool_unwatch(s, count_call, NULL);
    spool_stats st = spool_get_stats(s);
    assert_int_equal(st.records_in, WRITERS * APPENDS * 3);
    assert_int_equal(st.bytes_in, WRITERS * APPENDS * 13);
    assert_true(st.syncs > 0 && st.syncs <= WRITERS * APPENDS);
    spool_close(s);
}

/* ---- the disk's troubles ---- */
/* A point fails: nothing is acknowledged meanwhile; when it works again all is written, once. */
static void trouble(const char *spec, const char *code) {
    spool *s = open_spool(NULL);
    uint64_t ticket, sum, n = append(s, 0, 10, 5);
    fz_error err = {0};
    OK(fz_fault_arm(spec, err_));
    OK(try_append(s, 10, 10, 5, 100, &ticket, err_));
    uint64_t durable = spool_durable(s);
    for (int i = 0; i < 2000 && !spool_full(s); i++) fz_sleep_ms(2);
    assert_true(spool_full(s));
    assert_int_equal(durable, spool_durable(s));
    assert_int_equal(try_append(s, 1000, 1, 5, 10, &ticket, &err), FZ_RETRY);
    assert_string_equal(err.code, code);
    assert_int_equal(spool_wait(s, n + 1, 1, &err), FZ_RETRY);
    assert_string_equal(err.code, "spool.io");
    OK(fz_fault_arm(NULL, err_));
    OK(spool_wait(s, n + 10, 10000, err_));
    assert_false(spool_full(s));
    append(s, 20, 10, 5);
    assert_int_equal(read_all(s, 0, &sum, NULL), 30);
    assert_int_equal(sum, sum_to(30));
    spool_close(s);
    s = open_spool(NULL);
    assert_int_equal(read_all(s, 0, &sum, NULL), 30);
    assert_int_equal(sum, sum_to(30));
    assert_int_equal(spool_get_stats(s).damaged_bytes, 0);
    assert_int_equal(spool_get_stats(s).lost_records, 0);
    spool_close(s);
}
static void test_enospc(void **state) { (void)state; trouble("spool.write:0:enospc", "spool.no-space"); }
static void test_write_eio(void **state) { (void)state; trouble("spool.write:0:eio", "spool.io"); }
static void test_fsync_eio(void **state) { (void)state; trouble("spool.fsync:0:eio", "spool.io"); }
static void test_fsync_enospc(void **state) { (void)state; trouble("spool.fsync:0:enospc", "spool.no-space"); }

static void test_first_sync_fails(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    OK(fz_fault_arm("spool.fsync:1:eio", err_));
    uint64_t sum;
    append(s, 0, 10, 5);
    append(s, 10, 10, 5);
    assert_int_equal(read_all(s, 0, &sum, NULL), 20);
    spool_close(s);
    s = open_spool(NULL);
    assert_int_equal(read_all(s, 0, &sum, NULL), 20);
    spool_close(s);
}
static void test_close_while_failing(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    append(s, 0, 10, 5);
    OK(fz_fault_arm("spool.write:0:eio", err_));
    uint64_t ticket, sum;
    OK(try_append(s, 10, 10, 5, 100, &ticket, err_));
    spool_close(s);
    OK(fz_fault_arm(NULL, err_));
    s = open_spool(NULL);
    assert_int_equal(read_all(s, 0, &sum, NULL), 10);
    assert_int_equal(spool_durable(s), 10);
    spool_close(s);
}
static void test_trim_fails(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 1 << 20, .segment_bytes = 4 << 10};
    spool *s = open_spool(&o);
    for (uint64_t at = 0; at < 1000; at += 10) append(s, at, 10, 50);
    fz_error err = {0};
    OK(fz_fault_arm("spool.trim:0:eio", err_));
    assert_int_equal(spool_trim(s, 500, &err), FZ_RETRY);
    assert_int_equal(spool_low(s), 0);
    OK(fz_fault_arm(NULL, err_));
    OK(spool_trim(s, 500, err_));
    assert_true(spool_low(s) > 400 && spool_low(s) <= 500);
    spool_close(s);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {T(test_append_read), T(test_arrivals_and_stats), T(test_failing_is_told), T(test_frames_of_one_append), T(test_small_memory), T(test_full_and_trim), T(test_large_messages), T(test_in_use), T(test_threads),
                                       T(test_enospc), T(test_write_eio), T(test_fsync_eio), T(test_fsync_enospc), T(test_first_sync_fails), T(test_close_while_failing), T(test_trim_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
