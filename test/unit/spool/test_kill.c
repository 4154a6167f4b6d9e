/* A writer is killed again and again, at random and at each fault point: every record that was durable is there under its number, in every later round. */
#include "spool_test.h"
#include <signal.h>
#include <sys/wait.h>

typedef struct acked { uint64_t number, value; } acked;
static const spool_options small = {.max_bytes = 4 << 20, .segment_bytes = 8 << 10, .memory = 16 << 10};

/* The child: appends frames of 1 to 9 records and tells what is durable; trims what is old when it is told to. */
static _Noreturn void writer(int out, uint64_t base, const char *fault, bool trims) {
    fz_error err;
    spool *s;
    if (fz_fault_arm(fault, &err) != FZ_OK || spool_open(dir, &small, &s, &err) != FZ_OK) _exit(3);
    for (uint64_t at = base;;) {
        acked a[9];
        uint32_t n = (uint32_t)(at % 9) + 1;
        uint64_t ticket;
        if (try_append(s, at, n, 30, 1000, &ticket, &err) != FZ_OK || spool_wait(s, ticket, 5000, &err) != FZ_OK) _exit(4);
        for (uint32_t i = 0; i < n; i++) a[i] = (acked){ticket - n + i, at + i};
        if (write(out, a, n * sizeof *a) != (ssize_t)(n * sizeof *a)) _exit(5);
        at += n;
        if (trims && ticket > 200 && at % 50 < 9 && spool_trim(s, ticket - 200, &err) != FZ_OK) _exit(6);
    }
}

static void check(const acked *v, size_t n, uint64_t *low) {
    spool *s = open_spool(&small);
    assert_true(spool_low(s) >= *low);
    *low = spool_low(s);
    spool_reader *r = spool_reader_new(s, 0);
    size_t i = 0;
    while (i < n && v[i].number < *low) i++;
    for (;;) {
        spool_view w;
        bool got;
        OK(spool_next(r, 0, &w, &got, err_));
        if (!got) break;
        const uint8_t *p = w.bytes;
        for (uint32_t k = 0; k < w.n; k++) {
            uint64_t value = value_of(p, w.len[k]);
            if (i < n && v[i].number == w.first + k) assert_int_equal(value, v[i++].value);
            else if (i < n) assert_true(v[i].number > w.first + k);
            p += w.len[k];
        }
        spool_view_release(&w);
    }
    assert_int_equal(i, n);
    assert_int_equal(spool_get_stats(s).damaged_bytes, 0);
    assert_int_equal(spool_get_stats(s).lost_records, 0);
    spool_reader_free(r);
    spool_close(s);
}

static void rounds(int how_many, const char *const *faults, int n_faults, bool trims) {
    acked *v = NULL;
    size_t n = 0, cap = 0;
    uint64_t low = 0, rnd = 0;
    fz_random(&rnd, sizeof rnd);
    print_message("seed %" PRIu64 "\n", rnd);
    for (int round = 0; round < how_many; round++) {
        int p[2], status;
        assert_int_equal(pipe(p), 0);
        uint64_t base = (uint64_t)round * 1000000;
        char fault[64] = "";
        if (n_faults) snprintf(fault, sizeof fault, faults[round % n_faults], 1 + round);
        pid_t pid = fork();
        if (pid == 0) writer(p[1], base, n_faults ? fault : NULL, trims);
        close(p[1]);
        rnd = rnd * 6364136223846793005u + 1442695040888963407u;
        /* At random: after so many acknowledged records (a slow machine has some too) and a moment more; each fourth at any time, also while it opens. */
        size_t until = n_faults ? SIZE_MAX : round % 4 ? n + (rnd >> 33) % 150 : n;
        bool killed = n_faults > 0;
        acked a;
        for (;;) {
            if (!killed && n >= until) {
                usleep((useconds_t)((rnd >> 41) % (round % 4 ? 2000 : 15000)));
                kill(pid, SIGKILL);
                killed = true;
            }
            if (read(p[0], &a, sizeof a) != (ssize_t)sizeof a) break;
            FZ_GROW(v, n, cap);
            v[n++] = a;
        }
        close(p[0]);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        check(v, n, &low);
    }
    assert_true(n > 0);
    fz_free(v);
}

static void test_random(void **state) { (void)state; rounds(40, NULL, 0, false); }
static void test_random_trim(void **state) { (void)state; rounds(40, NULL, 0, true); }
static void test_points(void **state) {
    (void)state;
    static const char *const at[] = {"spool.write:%d:kill", "spool.fsync:%d:kill", "spool.durable:%d:kill", "spool.trim:%d:kill"};
    rounds(16, at, 4, true);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {T(test_random), T(test_random_trim), T(test_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
