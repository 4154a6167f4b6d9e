/* What was last seen of a table's positions, in the state directory. */
#include "unit.h"
#include "fileio/fileio.h"
#include "job/seen.h"
#include "job/state_file.h"
#include <stdlib.h>
#include <unistd.h>

static fz_error err;
#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s %s", #x, err.code, err.message); } while (0)
static char dir[64];
static fz_arena *a;

static int setup(void **state) {
    (void)state;
    strcpy(dir, "/tmp/frazil-seen-XXXXXX");
    a = fz_arena_new();
    return mkdtemp(dir) == NULL;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(a);
    OK(fz_fault_arm(NULL, &err));
    return fio_delete_tree(NULL, dir, &err) != FZ_OK;
}

static const char *mirror(int64_t next) {
    job_position p = {.key = {"spool:u1", "http", 0}, .next = next, .has_last = true, .last_offset = next - 1, .last_timestamp = 5, .last_hash = 0xfedcba9876543210ull};
    return job_mirror_encode(a, &(job_mirror){.snapshot_id = 3, .sequence_number = 4, .n = next ? 1 : 0, .positions = &p});
}
/* -1: nothing is known; 0: the table had no position. */
static int64_t next(const char *pipeline, const char *table, const char *uuid) {
    job_mirror m;
    if (!job_seen_read(a, dir, pipeline, table, uuid, &m)) return -1;
    return m.n ? m.positions[0].next : 0;
}

static void comes_back(void **state) {
    (void)state;
    assert_int_equal(next("p/q", "c.d.t", "u"), -1);
    job_seen_write(dir, "p/q", "c.d.t", "u", mirror(0));
    assert_int_equal(next("p/q", "c.d.t", "u"), 0);
    job_seen_write(dir, "p/q", "c.d.t", "u", mirror(1ll << 50));
    job_mirror m;
    assert_true(job_seen_read(a, dir, "p/q", "c.d.t", "u", &m));
    assert_true(m.n == 1 && m.positions[0].next == 1ll << 50 && m.positions[0].has_last && m.positions[0].last_hash == 0xfedcba9876543210ull && m.snapshot_id == 3);
    assert_int_equal(next("p/q", "c.d.t", "v"), -1); /* another table of that name */
    assert_int_equal(next("p/q", "c.d.u", "u"), -1);
    assert_int_equal(next("p", "c.d.t", "u"), -1);
    job_seen_write(dir, "p/q", "c.d.t", NULL, mirror(7));
    assert_true(next("p/q", "c.d.t", NULL) == 7 && next("p/q", "c.d.t", "u") == -1);
}

static void damage(void **state) {
    (void)state;
    job_seen_write(dir, "p", "t", "u", mirror(9));
    char *path = job_state_path(dir, "seen", "p", "t");
    fz_buf b = {0};
    OK(fio_read(NULL, path, 1 << 20, &b, &err));
    for (size_t i = 0; i < b.len; i += 3) {
        b.data[i] ^= 1;
        OK(fio_put(NULL, path, b.data, b.len, &err));
        if (next("p", "t", "u") != -1) fail_msg("byte %zu", i);
        b.data[i] ^= 1;
        OK(fio_put(NULL, path, b.data, i, &err));
        if (next("p", "t", "u") != -1) fail_msg("%zu bytes", i);
    }
    OK(job_state_put(path, json_pack("{s:i, s:s, s:s, s:o}", "version", 2, "table", "t", "uuid", "u", "mirror", json_loads(mirror(9), 0, NULL)), &err)); /* of a later version */
    assert_int_equal(next("p", "t", "u"), -1);
    OK(job_state_put(path, json_pack("{s:i, s:s, s:s}", "version", 1, "table", "t", "uuid", "u"), &err));
    assert_int_equal(next("p", "t", "u"), -1);
    fz_buf_free(&b);
    fz_free(path);
}

/* What cannot be written leaves what was there: it lags behind, and that is allowed. */
static void no_room(void **state) {
    (void)state;
    job_seen_write(dir, "p", "t", "u", mirror(9));
    static const char *const points[] = {"file.write:1:enospc", "file.fsync:1:eio"};
    for (size_t i = 0; i < 2; i++) {
        OK(fz_fault_arm(points[i], &err));
        job_seen_write(dir, "p", "t", "u", mirror(20));
        OK(fz_fault_arm(NULL, &err));
        assert_int_equal(next("p", "t", "u"), 9);
    }
    job_seen_write(dir, "p", "t", "u", mirror(20));
    assert_int_equal(next("p", "t", "u"), 20);
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(comes_back, setup, teardown), cmocka_unit_test_setup_teardown(damage, setup, teardown), cmocka_unit_test_setup_teardown(no_room, setup, teardown)};
    return cmocka_run_group_tests_name("seen", tests, NULL, NULL);
}
