/* What a start and a reader make of a damaged directory: torn tails at every byte, flipped bytes at every byte, segments that are gone, empty, foreign or not to be read. */
#include "spool_test.h"
#include "spool/spl_sum.h"
#include <sys/wait.h>

/* Values of records stand for their numbers here: what is read tells what is lost. */
static uint64_t read_some(uint64_t from, uint64_t *holes, spool_stats *st) {
    spool *s = open_spool(NULL);
    uint64_t sum, n = read_all(s, from, &sum, holes);
    *st = spool_get_stats(s);
    spool_close(s);
    return n;
}

static void fresh_dir(void) {
    char *cmd = fz_asprintf("rm -rf '%s'/*", dir);
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
}

/* Bytes of the frame at `at`. */
static size_t frame_at(const fz_buf *b, size_t at) {
    spl_frame f;
    memcpy(&f, b->data + at, sizeof f);
    return f.size;
}

/* Four frames of 3 records; the last is cut at each of its bytes. The three before are always there, and a new record gets a number that nobody has seen. */
static void test_torn_tail(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    for (uint64_t at = 0; at < 9; at += 3) append(s, at, 3, 2);
    spool_close(s);
    char name[40];
    seg_name(name, 0);
    fz_buf three = {0}, four = {0};
    get_file(name, &three);
    fresh_dir(); /* the fourth comes from a spool that wrote four into one segment */
    s = open_spool(NULL);
    for (uint64_t at = 0; at < 12; at += 3) append(s, at, 3, 2);
    spool_close(s);
    get_file(name, &four);
    fz_buf inc = {0};
    get_file("incarnation", &inc);
    size_t begin = three.len; /* frames are as long in both */
    assert_true(four.len > begin && four.len < begin + 200);
    for (size_t len = begin; len <= four.len; len++) {
        fresh_dir();
        put_file("incarnation", inc.data, inc.len);
        put_file(name, four.data, len);
        s = open_spool(NULL);
        bool whole = len == four.len, clean = whole || len == begin;
        uint64_t sum, gap, n = read_all(s, 0, &sum, &gap);
        assert_int_equal(gap, clean ? 0 : SPL_LEAP); /* told before anything comes behind it */
        assert_int_equal(n, whole ? 12 : 9);
        if (clean) assert_int_equal(spool_durable(s), n);
        else assert_true(spool_durable(s) >= SPL_LEAP);
        uint64_t holes, ticket = append(s, 100, 1, 2);
        assert_int_equal(ticket, spool_durable(s));
        assert_int_equal(read_all(s, 0, &sum, &holes), n + 1);
        assert_int_equal(spool_get_stats(s).lost_records, 0); /* a leap loses nothing */
        assert_int_equal(spool_get_stats(s).damaged_bytes, 0);
        spool_close(s);
        spool_stats st;
        assert_int_equal(read_some(0, &holes, &st), n + 1); /* once more: nothing is found any more */
        assert_int_equal(st.damaged_bytes, 0);
        assert_int_equal(st.lost_records, 0);
    }
    fz_buf_free(&three);
    fz_buf_free(&four);
    fz_buf_free(&inc);
}

/* Each byte of a small segment is flipped, once as the last segment and once with another behind it. At most one frame is lost, the rest is delivered, and never a wrong record. */
static void flip_everywhere(bool last) {
    spool *s = open_spool(NULL);
    for (uint64_t at = 0; at < 12; at += 3) append(s, at, 3, 2);
    spool_close(s);
    if (!last) {
        s = open_spool(NULL);
        append(s, 12, 3, 2);
        spool_close(s);
    }
    uint64_t total = last ? 12 : 15;
    char name[40], next[40], damaged[60];
    seg_name(name, 0);
    seg_name(next, 12);
    snprintf(damaged, sizeof damaged, "%s.damaged", name);
    fz_buf seg = {0}, behind = {0}, inc = {0};
    get_file(name, &seg);
    get_file("incarnation", &inc);
    if (!last) get_file(next, &behind);
    for (size_t i = 0; i < seg.len; i++) {
        fresh_dir();
        put_file("incarnation", inc.data, inc.len);
        if (!last) put_file(next, behind.data, behind.len);
        seg.data[i] ^= 0x10;
        put_file(name, seg.data, seg.len);
        seg.data[i] ^= 0x10;
        uint64_t holes;
        spool_stats st;
        uint64_t n = read_some(0, &holes, &st);
        bool head = i < SPL_HEAD, tail_frame = last && i >= SPL_HEAD + (seg.len - SPL_HEAD) / 4 * 3 + 8;
        assert_int_equal(n, head ? total - 12 : total - 3);
        if (!head && !tail_frame && n == total - 3 && st.damaged_bytes) {
            assert_true(st.damaged_bytes < 200);
            assert_int_equal(st.lost_records, 3);
            assert_int_equal(holes, 3);
            assert_true(file_there(damaged));
        }
        if (head) {
            assert_int_equal(st.damaged_bytes, seg.len);
            assert_int_equal(st.damaged_segments, 1);
            assert_true(file_there(damaged));
            if (!last) assert_int_equal(st.lost_records, 12);
            assert_int_equal(read_some(0, &holes, &st), n); /* not met again */
            assert_int_equal(st.damaged_bytes, 0);
        }
        if (!last && !head) assert_int_equal(st.damaged_segments, 1);
        /* new records are taken and read */
        s = open_spool(NULL);
        append(s, 1000, 2, 2);
        uint64_t sum;
        assert_int_equal(read_all(s, 0, &sum, &holes), n + 2);
        spool_close(s);
    }
    fz_buf_free(&seg);
    fz_buf_free(&behind);
    fz_buf_free(&inc);
}
static void test_flip_last(void **state) { (void)state; flip_everywhere(true); }
static void test_flip_middle(void **state) { (void)state; flip_everywhere(false); }

/* Three segments: a flipped byte in the middle one, the last one cut to nothing or to half a frame, one that cannot be opened. */
static uint64_t three_segments(uint64_t *first2, uint64_t *first3) {
    spool_options o = {.max_bytes = 1 << 20, .segment_bytes = 4096};
    spool *s = open_spool(&o);
    uint64_t at = 0;
    for (; s->n_segs < 3 || at < 100; at += 5) append(s, at, 5, 40);
    *first2 = s->segs[1].first;
    *first3 = s->segs[2].first;
    spool_close(s);
    return at;
}
static void test_three_segments(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        fresh_dir();
        uint64_t first2, first3, total = three_segments(&first2, &first3), sum, holes;
        char middle[40], last[40], damaged[60];
        seg_name(middle, first2);
        seg_name(last, first3);
        fz_buf b = {0};
        get_file(middle, &b);
        b.data[b.len / 2] ^= 1;
        put_file(middle, b.data, b.len);
        get_file(last, &b);
        size_t size = b.len;
        if (how == 0) put_file(last, b.data, 0);
        if (how == 1) put_file(last, b.data, SPL_HEAD + (size - SPL_HEAD) / 2 + 9);
        if (how == 2) { /* a directory in its place can be opened by nobody, not even root */
            char *path = file_of(last);
            assert_int_equal(unlink(path), 0);
            assert_int_equal(mkdir(path, 0700), 0);
            fz_free(path);
        }
        if (how == 3) {
            char *path = file_of(last);
            assert_int_equal(chmod(path, 0), 0);
            fz_free(path);
        }
        spool *s = open_spool(NULL);
        uint64_t n = read_all(s, 0, &sum, &holes);
        assert_true(n >= total - 5 - (total - first3) && n <= total - 5);
        assert_true(spool_get_stats(s).damaged_bytes > 0);
        assert_int_equal(spool_get_stats(s).lost_records, 5);
        snprintf(damaged, sizeof damaged, "%s.damaged", middle);
        assert_true(file_there(damaged));
        snprintf(damaged, sizeof damaged, "%s.damaged", last);
        if (how == 0 || how == 2) assert_true(file_there(damaged));
        bool readable = how == 3 && geteuid() == 0; /* root reads all */
        if (!readable) assert_true(spool_durable(s) >= SPL_LEAP);
        append(s, 5000, 5, 40);
        assert_int_equal(read_all(s, 0, &sum, &holes), n + 5);
        OK(spool_trim(s, spool_durable(s), err_)); /* damaged ones go like the others */
        assert_true(spool_low(s) >= first3 || readable);
        spool_close(s);
        s = open_spool(NULL);
        assert_int_equal(spool_get_stats(s).damaged_bytes, 0);
        assert_true(read_all(s, 0, &sum, &holes) >= 5);
        spool_close(s);
        fz_buf_free(&b);
    }
}

/* Bytes that look like a frame inside a record are never taken for one. */
static void test_forged(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    append(s, 0, 3, 2);
    append(s, 3, 3, 2);
    fz_buf b = {0};
    char name[40];
    seg_name(name, 0);
    get_file(name, &b);
    size_t second = SPL_HEAD + frame_at(&b, SPL_HEAD), frame = frame_at(&b, second);
    /* the second frame with another record, its checksum made as a stranger would */
    uint8_t *forged = fz_malloc(frame);
    memcpy(forged, b.data + second, frame);
    spl_frame h;
    memcpy(&h, forged, sizeof h);
    h.first = 6;
    h.mark ^= 1;
    memcpy(forged, &h, sizeof h);
    h.sum = XXH3_64bits(forged + 8, frame - 8);
    memcpy(forged, &h, sizeof h);
    uint32_t len = (uint32_t)frame;
    spool_frame f = {.n = 1, .len = &len, .bytes = forged};
    uint64_t ticket;
    OK(spool_append(s, &f, 1, 0, &ticket, err_));
    OK(spool_wait(s, ticket, 5000, err_));
    append(s, 7, 3, 2);
    spool_close(s);
    get_file(name, &b);
    b.data[second + frame + 20] ^= 1; /* the frame that carries it */
    put_file(name, b.data, b.len);
    uint64_t holes;
    spool_stats st;
    assert_int_equal(read_some(0, &holes, &st), 9);
    assert_int_equal(holes, 1);
    assert_int_equal(st.lost_records, 1);
    fz_free(forged);
    fz_buf_free(&b);
}

/* Bytes are missing or too many in the middle: the frames behind them stand elsewhere and are found. */
static void test_shifted(void **state) {
    (void)state;
    for (int delta = -5; delta <= 5; delta++) {
        if (!delta) continue;
        fresh_dir();
        spool *s = open_spool(NULL);
        for (uint64_t at = 0; at < 30; at += 3) append(s, at, 3, 2);
        spool_close(s);
        s = open_spool(NULL);
        append(s, 30, 3, 2);
        spool_close(s);
        char name[40];
        seg_name(name, 0);
        fz_buf b = {0}, c = {0};
        get_file(name, &b);
        size_t cut = SPL_HEAD + 90;
        fz_buf_append(&c, b.data, cut);
        for (int i = 0; i < delta; i++) fz_buf_putc(&c, 'z');
        size_t from = delta < 0 ? cut + (size_t)-delta : cut;
        fz_buf_append(&c, b.data + from, b.len - from);
        put_file(name, c.data, c.len);
        uint64_t holes;
        spool_stats st;
        assert_int_equal(read_some(0, &holes, &st), 30);
        assert_int_equal(st.lost_records, 3);
        fz_buf_free(&b);
        fz_buf_free(&c);
    }
}

/* Large runs are filled up to a page and go past the page cache: cut and spoilt they are told apart like the others. */
static void test_large_runs(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    for (uint64_t at = 0; at < 50; at += 10) append(s, at, 10, 7000);
    append(s, 50, 1, 3); /* a small one behind them */
    append(s, 51, 10, 7000);
    append(s, 61, 10, 7000);
    bool direct = s->direct_fd >= 0;
    spool_close(s);
    char name[40];
    seg_name(name, 0);
    fz_buf b = {0}, inc = {0};
    get_file(name, &b);
    get_file("incarnation", &inc);
    assert_int_equal(b.len % SPL_PAGE, 0);
    uint64_t holes;
    spool_stats st;
    assert_int_equal(read_some(0, &holes, &st), 71);
    assert_int_equal(holes + st.damaged_bytes, 0);
    size_t last = b.len - frame_at(&b, b.len - 18 * SPL_PAGE); /* the last run has 18 pages */
    for (size_t len = last; len < b.len; len += SPL_PAGE) {
        fresh_dir();
        put_file("incarnation", inc.data, inc.len);
        put_file(name, b.data, len);
        assert_int_equal(read_some(0, &holes, &st), 61);
        assert_int_equal(holes, len == last ? 0 : SPL_LEAP);
        assert_int_equal(st.damaged_bytes, 0);
    }
    fresh_dir();
    put_file("incarnation", inc.data, inc.len);
    memset(b.data + 3 * SPL_PAGE, 0, 2 * SPL_PAGE); /* two pages in the first run were lost */
    put_file(name, b.data, b.len);
    assert_int_equal(read_some(0, &holes, &st), 61);
    assert_int_equal(st.lost_records, 10);
    print_message("past the page cache: %s\n", direct ? "yes" : "no");
    fz_buf_free(&b);
    fz_buf_free(&inc);
}

static void remove_segments(void) {
    char *cmd = fz_asprintf("rm '%s'/*.seg", dir);
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
}

static void test_incarnation(void **state) {
    (void)state;
    char first[37], other[37];
    spool *s = open_spool(NULL);
    append(s, 0, 3, 2);
    snprintf(first, sizeof first, "%s", spool_incarnation(s));
    spool_close(s);
    /* its file is lost or spoilt: the segments know it */
    for (int i = 0; i < 2; i++) {
        char *path = file_of("incarnation");
        assert_int_equal(unlink(path), 0);
        fz_free(path);
        if (i) put_file("incarnation", "nonsense", 8);
        s = open_spool(NULL);
        assert_string_equal(spool_incarnation(s), first);
        assert_int_equal(spool_durable(s), 3);
        spool_close(s);
        assert_true(file_there("incarnation"));
    }
    /* all segments are lost, and with them the knowledge which numbers were given: another spool, each time */
    char before[37];
    for (int i = 0; i < 2; i++) {
        snprintf(before, sizeof before, "%s", first);
        remove_segments();
        s = open_spool(NULL);
        assert_string_not_equal(spool_incarnation(s), before);
        assert_int_equal(spool_durable(s), 0);
        append(s, 0, 1, 1);
        snprintf(first, sizeof first, "%s", spool_incarnation(s));
        spool_close(s);
        s = open_spool(NULL);
        assert_string_equal(spool_incarnation(s), first);
        assert_int_equal(spool_durable(s), 1);
        spool_close(s);
    }
    /* a segment of another spool */
    char name[40];
    fz_buf b = {0};
    seg_name(name, 0);
    get_file(name, &b);
    seg_name(name, SPL_LEAP);
    fresh_dir();
    s = open_spool(NULL);
    snprintf(other, sizeof other, "%s", spool_incarnation(s));
    assert_string_not_equal(first, other);
    append(s, 0, 3, 2);
    spool_close(s);
    put_file(name, b.data, b.len);
    s = open_spool(NULL);
    uint64_t sum, holes;
    assert_string_equal(spool_incarnation(s), other);
    assert_int_equal(read_all(s, 0, &sum, &holes), 3);
    assert_int_equal(spool_get_stats(s).damaged_segments, 1);
    assert_true(spool_durable(s) > SPL_LEAP);
    spool_close(s);
    fz_buf_free(&b);
}

static void test_newer_version(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    append(s, 0, 3, 2);
    spool_close(s);
    char name[40];
    fz_buf b = {0};
    seg_name(name, 0);
    get_file(name, &b);
    spl_head h;
    memcpy(&h, b.data, sizeof h);
    h.version = SPL_VERSION + 1;
    h.sum = XXH3_64bits(&h, offsetof(spl_head, sum));
    memcpy(b.data, &h, sizeof h);
    put_file(name, b.data, b.len);
    fz_error err = {0};
    assert_int_equal(spool_open(dir, NULL, &s, &err), FZ_FATAL);
    assert_string_equal(err.code, "spool.format");
    assert_true(file_there(name));
    fz_buf_free(&b);
}

/* Rests of a start that was killed: temporary files are removed, foreign files are left alone. */
static void test_rests(void **state) {
    (void)state;
    put_file("00000000000000000000.seg.tmp", "x", 1);
    put_file("notes.txt", "x", 1);
    put_file("12.seg", "x", 1);
    spool *s = open_spool(NULL);
    append(s, 0, 3, 2);
    spool_close(s);
    assert_false(file_there("00000000000000000000.seg.tmp"));
    assert_true(file_there("notes.txt") && file_there("12.seg"));
}

/* Frames that were written but not known to be durable, and then written again into the next segment, are read once. */
static void test_superseded(void **state) {
    (void)state;
    spool *s = open_spool(NULL);
    append(s, 0, 3, 2);
    append(s, 3, 3, 2);
    spool_close(s);
    char name[40], next[40];
    seg_name(name, 0);
    seg_name(next, 3);
    fz_buf two = {0};
    get_file(name, &two);
    fresh_dir();
    fz_buf one = {0};
    fz_buf_append(&one, two.data, SPL_HEAD + frame_at(&two, SPL_HEAD));
    put_file(name, one.data, one.len);
    s = open_spool(NULL);
    append(s, 3, 3, 2); /* into its own segment */
    spool_close(s);
    assert_true(file_there(next));
    put_file(name, two.data, two.len);
    uint64_t holes;
    spool_stats st;
    assert_int_equal(read_some(0, &holes, &st), 6);
    assert_int_equal(holes, 0);
    assert_int_equal(st.damaged_bytes, 0);
    fz_buf_free(&one);
    fz_buf_free(&two);
}

/* ---- a start that has to leap is killed, or finds no room ---- */

/* Three segments of one frame each. what: 0 the last one's head is damaged, 1 its frame is cut, 2 the middle one's head is damaged as well. */
static void three(int what) {
    fresh_dir();
    for (uint64_t at = 0; at < 30; at += 10) {
        spool *s = open_spool(NULL);
        append(s, at, 10, 5);
        spool_close(s);
    }
    char name[40];
    fz_buf b = {0};
    for (uint64_t first = what == 2 ? 10 : 20; first <= 20; first += 10) {
        seg_name(name, first);
        get_file(name, &b);
        if (what != 1) memset(b.data, 0, 16);
        put_file(name, b.data, what == 1 ? b.len - 20 : b.len);
    }
    fz_buf_free(&b);
}

/* Whatever has happened: the numbers that were given are not given again, and what was not damaged is there, with the records that came after it. */
static void numbers_have_leapt(spool *s, int what, uint64_t later, const char *how) {
    uint64_t sum, holes, ticket = append(s, 100 + later, 1, 1);
    if (ticket < SPL_LEAP + 20) fail_msg("%s: the number %" PRIu64 " is given again", how, ticket - 1);
    assert_int_equal(spool_low(s), 0);
    assert_int_equal(read_all(s, 0, &sum, &holes), (what == 2 ? 10 : 20) + later + 1);
    assert_true(spool_get_stats(s).lost_records <= 20); /* what was never given is not lost */
    spool_close(s);
}

static void open_and_die(const char *fault) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        spool *s;
        fz_error err;
        if (fz_fault_arm(fault, &err) == FZ_OK && spool_open(dir, NULL, &s, &err) == FZ_OK) spool_close(s);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_start_is_killed(void **state) {
    (void)state;
    static const char *const points[] = {"spool.write", "spool.segment", "spool.leapt", "spool.kept"};
    for (int what = 0; what < 3; what++)
        for (size_t p = 0; p < sizeof points / sizeof *points; p++)
            for (int nth = 1; nth <= 4; nth++) {
                char fault[64];
                snprintf(fault, sizeof fault, "%s:%d:kill", points[p], nth);
                three(what);
                open_and_die(fault);
                open_and_die(fault);
                for (uint64_t later = 0; later < 2; later++) numbers_have_leapt(open_spool(NULL), what, later, fault);
            }
}

static void test_start_without_room(void **state) {
    (void)state;
    for (int what = 0; what < 3; what++)
        for (int trouble = 0; trouble < 3; trouble++) {
            static const char *const faults[] = {"spool.write:0:enospc", "spool.write:1:enospc", "spool.segment:0:eio"};
            three(what);
            open_and_die(faults[trouble]); /* ends without having written anything */
            OK(fz_fault_arm(faults[trouble], err_));
            spool *s = open_spool(NULL);
            OK(fz_fault_arm(NULL, err_));
            numbers_have_leapt(s, what, 0, faults[trouble]);
            numbers_have_leapt(open_spool(NULL), what, 1, faults[trouble]);
        }
}

/* Records of a last segment were committed before it was damaged. What is trimmed then must not look as if records in front of the leap were gone unread. */
static void test_low_before_leap(void **state) {
    (void)state;
    for (int what = 0; what < 2; what++) {
        three(what);
        spool *s = open_spool(NULL);
        append(s, 100, 1, 1);
        OK(spool_trim(s, 25, err_));
        assert_in_range(spool_low(s), 20, 25);
        spool_close(s);
        s = open_spool(NULL);
        assert_in_range(spool_low(s), 20, 25);
        uint64_t sum, holes;
        assert_int_equal(read_all(s, 25, &sum, &holes), 1);
        assert_int_equal(holes, SPL_LEAP - 5);
        assert_int_equal(spool_get_stats(s).lost_records, 0);
        spool_close(s);
        bool found;
        char incarnation[37];
        uint64_t low;
        OK(spool_look(dir, &found, incarnation, &low, err_));
        assert_true(found);
        assert_in_range(low, 20, 25);
    }
}

/* A segment that one processor has written is read by another. */
static void sums_are_the_same_however_they_are_counted(void **state) {
    (void)state;
    uint8_t p[5000];
    for (size_t i = 0; i < sizeof p; i++) p[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_true(spl_sum(p, 2000, 1) != spl_sum(p, 2000, 2));
    for (size_t n = 0; n <= sizeof p; n += n < 300 ? 1 : 97) {
        const uint64_t seed = n * 0x9e3779b97f4a7c15u;
        assert_true(spl_sum(p + n % 8, n - n % 8, seed) == XXH3_64bits_withSeed(p + n % 8, n - n % 8, seed));
    }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_the_same_however_they_are_counted), T(test_torn_tail), T(test_flip_last), T(test_flip_middle), T(test_three_segments), T(test_forged), T(test_shifted), T(test_large_runs), T(test_incarnation),
                                       T(test_newer_version), T(test_rests), T(test_superseded), T(test_start_is_killed), T(test_start_without_room), T(test_low_before_leap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
