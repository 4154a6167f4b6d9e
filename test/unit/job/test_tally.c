/* The balance of a delivery: in = delivered + filtered + rejected + unparseable + diverted + by_other + buffered after every step, and a record that is read twice counts once. */
#include "job/tally.h"
#include "unit.h"

enum { PATHS = 2, STEPS = 4000, MOST = 16 };

static void balanced(const job_tally *t) {
    assert_int_equal(t->in, t->delivered + t->filtered + t->rejected + t->unparseable + t->diverted + t->by_other + t->buffered);
}

/* One split and one sink as job.c drives them: reads up to `next`, cuts [from, next), commits or drops. */
typedef struct sink { job_tally t; job_again again; int64_t from, next, committed, highest; uint64_t read; } sink;

static void take(sink *s, uint32_t n) {
    fz_record rec[MOST] = {{0}};
    for (uint32_t i = 0; i < n; i++) rec[i].offset = s->next + i;
    if (s->again.left && s->again.to > s->next && s->again.to < s->next + n) n = (uint32_t)(s->again.to - s->next);
    const job_taken x = {.n = {.added = (uint64_t)n * PATHS}, .paths = PATHS, .bytes = n, .arrival_ms = 1000 + s->next};
    s->next += n;
    s->read += n;
    job_tally_take(&s->t, &x, &s->again, rec, n, s->next);
    if (s->next > s->highest) s->highest = s->next;
}

static job_counts cut(sink *s) {
    job_counts c = {.read = s->read * PATHS, .added = s->read * PATHS};
    c.added -= c.filtered = c.added / 3;
    c.added -= c.rejected = c.added / 5;
    s->read = 0;
    job_tally_send(&s->t);
    return c;
}

static void rewind_to(sink *s, int64_t at) {
    job_tally_dropped(&s->t);
    job_again_add(&s->again, s->read, s->next);
    s->read = 0;
    s->from = s->next = at;
    job_again_skip(&s->again, &s->t, PATHS, at);
}

static void random_walk(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        sink s = {0};
        uint64_t last_in = 0, last_settled = 0;
        job_tally_init(&s.t);
        srand(seed);
        for (int i = 0; i < STEPS; i++) {
            int what = rand() % 20;
            if (what < 12) take(&s, (uint32_t)(rand() % MOST));
            else {
                int64_t to = s.next;
                uint64_t had = s.read;
                job_counts c = cut(&s);
                if (rand() % 2) take(&s, 3); /* workers go on */
                if (what < 17) {
                    job_tally_settle(&s.t, &(job_settled){.n = c, .given_up = what == 16 ? c.added / 2 : 0, .diverted = what == 16});
                    s.committed = to;
                    s.from = to;
                } else { /* the lot has no answer or a wrong one: what the other side says counts */
                    job_tally_failed(&s.t);
                    job_again_add(&s.again, had, to);
                    if (what == 18) s.committed = to; /* another copy had it */
                    rewind_to(&s, s.committed);
                }
            }
            balanced(&s.t);
            uint64_t settled = s.t.delivered + s.t.filtered + s.t.rejected + s.t.unparseable + s.t.diverted + s.t.by_other;
            assert_true(s.t.in >= last_in && settled >= last_settled); /* only buffered falls */
            last_in = s.t.in;
            last_settled = settled;
            assert_int_equal(s.t.in, (uint64_t)s.highest * PATHS); /* each record once, however often it is read */
        }
        job_counts c = cut(&s);
        job_tally_settle(&s.t, &(job_settled){.n = c});
        if (!s.again.left) assert_int_equal(s.t.buffered, 0);
        assert_int_equal(s.t.buffered, s.again.left * PATHS);
        job_tally_free(&s.t);
    }
}

/* A table that was rolled back: what had been delivered is read and delivered again, and counts again. */
static void rollback_counts_again(void **state) {
    (void)state;
    sink s = {0};
    job_tally_init(&s.t);
    take(&s, 10);
    job_tally_settle(&s.t, &(job_settled){.n = cut(&s)});
    take(&s, 4);
    rewind_to(&s, 0);
    balanced(&s.t);
    assert_int_equal(s.t.in, 14 * PATHS);
    while (s.next < 14) take(&s, 7);
    balanced(&s.t);
    assert_int_equal(s.t.in, 24 * PATHS);
    assert_int_equal(s.t.buffered, 14 * PATHS);
    job_tally_free(&s.t);
}

static void age_of_what_waits(void **state) {
    (void)state;
    sink s = {0};
    job_tally_init(&s.t);
    int64_t now = 100000000;
    assert_int_equal(job_tally_age_s(&s.t, 0, now), 0);
    s.next = 1000;
    take(&s, 2); /* arrived at 2000 */
    assert_int_equal(job_tally_age_s(&s.t, 0, 7000), 5);
    assert_int_equal(job_tally_age_s(&s.t, 1000, 7000), 6); /* an older one is not read yet */
    job_counts c = cut(&s);
    take(&s, 1);
    assert_int_equal(job_tally_age_s(&s.t, 0, 7000), 5); /* on its way is not delivered */
    job_tally_failed(&s.t);
    rewind_to(&s, 1000);
    assert_int_equal(job_tally_age_s(&s.t, 0, 7000), 5); /* nor is what was dropped */
    take(&s, 3);
    job_tally_settle(&s.t, &(job_settled){.n = cut(&s)});
    (void)c;
    assert_int_equal(job_tally_age_s(&s.t, 0, now), 0);
    /* Stuck with nothing to deliver: it rises all the same, and from what waits if that is known. */
    job_tally_stuck(&s.t, true, 0);
    assert_true(job_tally_age_s(&s.t, 0, fz_now_ms() + 9000) >= 8);
    job_tally_stuck(&s.t, true, 5000);
    assert_int_equal(job_tally_age_s(&s.t, 0, 9000), 4);
    job_tally_free(&s.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_walk), cmocka_unit_test(rollback_counts_again), cmocka_unit_test(age_of_what_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
