/* The disk's room: what the spool leaves, what it gives back, what is told of it; and what is in a spool that nobody has open. */
#include "spool_test.h"
#include <dirent.h>

static void until(spool *s, bool (*done)(spool *s)) {
    for (int i = 0; i < 5000 && !done(s); i++) fz_sleep_ms(2);
    assert_true(done(s));
}
static bool is_full(spool *s) { return spool_full(s); }
static bool has_room(spool *s) { return !spool_full(s); }
static bool empty(spool *s) { return spool_bytes(s) == SPL_HEAD; }

/* Files of the directory that were removed and are held open. */
static unsigned held_open(void) {
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], to[512] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t got = readlink(path, to, sizeof to - 1);
        if (got > 0) n += strstr(to, dir) && strstr(to, "(deleted)");
    }
    closedir(d);
    return n;
}

/* Without room nothing is taken in, and nothing that was taken in waits; what is trimmed goes, however little it is. */
static void test_given_back(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    uint64_t ticket, sum, n = append(s, 0, 10, 500);
    fz_error err = {0};
    OK(spool_trim(s, n, err_));
    assert_true(spool_bytes(s) > 5000);
    OK(fz_fault_arm("spool.room:0:enospc", err_));
    s->room = 0;
    uint64_t refused = spool_get_stats(s).refused;
    assert_int_equal(try_append(s, 10, 10, 500, 0, &ticket, &err), FZ_RETRY);
    assert_string_equal(err.code, "spool.no-space");
    assert_int_equal(spool_get_stats(s).refused, refused + 1);
    assert_true(spool_full(s) && spool_refuses(s));
    assert_int_equal(spool_get_stats(s).refused, refused + 2);
    assert_int_equal(spool_get_stats(s).unsynced, 0);
    until(s, empty);
    OK(fz_fault_arm(NULL, err_));
    until(s, has_room); /* by itself */
    assert_false(spool_refuses(s));
    assert_int_equal(append(s, 10, 10, 5), 20);
    assert_int_equal(read_all(s, 0, &sum, NULL), 10);
    spool_close(s);
    s = open_spool(NULL);
    assert_int_equal(read_all(s, 0, &sum, NULL), 10);
    assert_int_equal(spool_durable(s), 20);
    assert_int_equal(spool_get_stats(s).damaged_bytes, 0);
    spool_close(s);
}

/* Records that are still wanted stay, and so does the room that their deliveries need: a queue that somebody else's bytes have overtaken waits. */
static void test_wanted_stay(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    uint64_t ticket, sum;
    append(s, 0, 10, 500);
    OK(fz_fault_arm("spool.room:0:enospc", err_));
    OK(try_append(s, 10, 10, 5, 0, &ticket, err_)); /* there was room when it was looked at last */
    until(s, is_full);
    assert_int_equal(spool_durable(s), 10);
    OK(spool_trim(s, 5, err_));
    assert_int_equal(read_all(s, 0, &sum, NULL), 10);
    OK(fz_fault_arm(NULL, err_));
    OK(spool_wait(s, ticket, 10000, err_));
    until(s, has_room);
    assert_int_equal(read_all(s, 0, &sum, NULL), 20);
    spool_close(s);
}

/* No room for the head of a new segment: the old one, of which nothing is wanted, gives it; a start after a kill there gives no number twice. */
static void test_shortened(void **state) {
    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        spool *s = open_spool(NULL);
        uint64_t from = spool_durable(s), ticket, sum, n = append(s, from, 10, 500);
        fz_error err = {0};
        assert_int_equal(n, from + 10);
        OK(fz_fault_arm("spool.write:0:enospc", err_));
        OK(try_append(s, n, 10, 5, 0, &ticket, err_));
        until(s, is_full);
        OK(spool_trim(s, n, err_));
        for (int i = 0; i < 5000 && spool_bytes(s) > SPL_HEAD + sizeof(spl_frame); i++) fz_sleep_ms(2);
        assert_int_equal(spool_bytes(s), SPL_HEAD + sizeof(spl_frame) / 2);
        assert_int_equal(spool_wait(s, ticket, 1, &err), FZ_RETRY);
        if (killed) {
            spool_close(s); /* what could not be written was never acknowledged */
            OK(fz_fault_arm(NULL, err_));
            s = open_spool(NULL);
            assert_true(spool_durable(s) >= from + SPL_LEAP);
            assert_true(append(s, n + 10, 10, 5) > ticket);
        } else {
            OK(fz_fault_arm(NULL, err_));
            OK(spool_wait(s, ticket, 10000, err_));
            assert_int_equal(spool_durable(s), ticket);
            assert_int_equal(read_all(s, n, &sum, NULL), 10);
            assert_int_equal(append(s, n + 10, 10, 5), ticket + 10);
            assert_int_equal(spool_low(s), n);
        }
        assert_int_equal(spool_get_stats(s).damaged_segments, 0);
        spool_close(s);
    }
}

static void test_reader_lets_go(void **state) {
    (void)state;
    spool_options o = {.max_bytes = 1 << 20, .segment_bytes = 4 << 10};
    spool *s = open_spool(&o);
    for (uint64_t at = 0; at < 200; at += 10) append(s, at, 10, 100);
    spool_close(s);
    s = open_spool(&o); /* nothing is in memory */
    spool_reader *r = spool_reader_new(s, 0);
    spool_view v;
    bool got = true;
    while (got) {
        OK(spool_next(r, 0, &v, &got, err_));
        if (got) spool_view_release(&v);
    }
    append(s, 200, 10, 100);
    OK(spool_trim(s, 210, err_));
    until(s, empty);
    OK(spool_next(r, 0, &v, &got, err_));
    assert_true(got);
    spool_view_release(&v);
    assert_int_equal(held_open(), 0);
    spool_reader_free(r);
    spool_close(s);
}

/* ---- from outside ---- */
typedef struct told { unsigned n; uint64_t records; char dir[200]; } told;
static void note(void *cx, const char *path, uint64_t records) {
    told *t = cx;
    t->n++;
    t->records += records;
    snprintf(t->dir, sizeof t->dir, "%s", path);
}

static void test_unread(void **state) {
    (void)state;
    char *mine = fz_asprintf("%s/spool/old", dir);
    spool *s = NULL;
    told t = {0};
    spool_unread(dir, note, &t);
    assert_int_equal(spool_count(mine), 0);
    OK(spool_open(mine, NULL, &s, err_));
    append(s, 0, 10, 5);
    spool_unread(dir, note, &t);
    assert_int_equal(t.n, 0); /* it is open */
    spool_close(s);
    spool_unread(dir, note, &t);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.records, 10);
    assert_string_equal(t.dir, mine);
    OK(spool_open(mine, NULL, &s, err_));
    append(s, 10, 10, 5);
    OK(spool_trim(s, 13, err_));
    spool_close(s);
    assert_int_equal(spool_count(mine), 7);
    OK(spool_open(mine, NULL, &s, err_));
    OK(spool_trim(s, 20, err_));
    spool_close(s);
    assert_int_equal(spool_count(mine), 0); /* though the segment is there */
    OK(spool_open(mine, NULL, &s, err_));
    append(s, 20, 3, 5);
    spool_close(s);
    assert_int_equal(spool_count(mine), 3);
    fz_free(mine);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {T(test_given_back), T(test_wanted_stay), T(test_shortened), T(test_reader_lets_go), T(test_unread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
