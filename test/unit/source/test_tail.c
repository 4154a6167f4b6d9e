/* Files that are followed: whole lines, rotation by renaming and by copying and truncating, files that are removed, positions that survive. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "source/source.h"

static char dir[64];

static int setup(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/frazil-test-tail-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}
static int teardown(void **state) {
    (void)state;
    char *cmd = fz_asprintf("rm -rf '%s'", dir);
    int rc = system(cmd);
    fz_free(cmd);
    return rc;
}

static const char *at(const char *name) {
    static char path[4][160];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, 160, "%s/%s", dir, name);
    return p;
}
static void put(const char *name, const char *mode, const char *text) {
    FILE *f = fopen(at(name), mode);
    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0, 1);
    fclose(f);
}
static void move(const char *from, const char *to) { assert_int_equal(rename(at(from), at(to)), 0); }
/* Last written to a minute ago. */
static void age(const char *name) {
    struct timespec t[2] = {{.tv_sec = time(NULL) - 60}, {.tv_sec = time(NULL) - 60}};
    assert_int_equal(utimensat(AT_FDCWD, at(name), t, 0), 0);
}

static src_source *open_tail(const char *path) {
    fz_pair o[] = {{.key = "connector", .value = "filesystem"}, {.key = "path", .value = path}, {.key = "format", .value = "json"}, {.key = "source.monitor-interval", .value = "1 ms"}};
    src_context cx = {.table = "t", .job = "j", .readers = 1, .max_record_size = 400};
    src_source *s;
    fz_error err;
    if (src_open(o, 4, &cx, &s, &err) != FZ_OK) fail_msg("%s", err.message);
    assert_true(src_replayable(s));
    assert_false(src_bounded(s));
    for (uint32_t i = 0; i < src_n_splits(s); i++) assert_int_equal(src_assign(s, i, 0, &err), FZ_OK);
    return s;
}

static int64_t position[64]; /* of each split: where its next chunk has to begin */

static void discover(src_source *s) {
    uint32_t had = src_n_splits(s), added;
    fz_error err;
    usleep(2000);
    assert_int_equal(src_discover(s, &added, &err), FZ_OK);
    assert_int_equal(src_n_splits(s), had + added);
    for (uint32_t i = had; i < had + added; i++) {
        assert_true(src_get_split(s, i)->found_later);
        position[i] = 0;
        assert_int_equal(src_assign(s, i, 0, &err), FZ_OK);
    }
}

/* What can be had now, sorted by nothing: as "text|". */
static char *take(src_source *s, bool *done) {
    fz_buf b = {0};
    fz_error err;
    for (;;) {
        fz_chunk *c;
        if (src_poll(s, 0, 0, &c, done, &err) != FZ_OK) fail_msg("%s", err.message);
        if (!c) break;
        assert_int_equal(c->from, position[c->split]);
        position[c->split] = c->to;
        for (uint32_t i = 0; i < c->n; i++) {
            if (c->rec[i].oversized) fz_buf_puts(&b, "<big>");
            else fz_buf_append(&b, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(&b, '|');
        }
        fz_chunk_release(c);
    }
    fz_buf_putc(&b, 0);
    return fz_buf_steal(&b);
}
#define EXPECT(s, want) do { \
    bool done_; \
    discover(s); \
    char *got_ = take(s, &done_); \
    assert_string_equal(got_, want); \
    assert_false(done_); \
    fz_free(got_); \
} while (0)

static src_source *begin(const char *path) {
    memset(position, 0, sizeof position);
    return open_tail(path);
}

static void test_lines(void **state) {
    (void)state;
    src_source *s = begin(dir);
    assert_int_equal(src_n_splits(s), 0);
    EXPECT(s, "");
    put("app.log", "w", "one"); /* not known before its first line is whole */
    put(".hidden", "w", "x\n");
    put("old.log.1.gz", "w", "x\n");
    EXPECT(s, "");
    assert_int_equal(src_n_splits(s), 0);
    put("app.log", "a", "\ntwo\r\nthr");
    EXPECT(s, "one|two|");
    assert_int_equal(src_n_splits(s), 1);
    put("app.log", "a", "ee\n");
    EXPECT(s, "three|");
    fz_buf b = {0};
    for (int i = 0; i < 3 << 20; i++) fz_buf_putc(&b, 'x');
    put("app.log", "a", fz_buf_cstr(&b));
    EXPECT(s, "");
    put("app.log", "a", "\nend\n");
    EXPECT(s, "<big>|end|");
    fz_buf_free(&b);
    src_close(s);
}

/* app.log -> app.log.1: read to its end, also what is written to it afterwards; the new app.log is another log. */
static void test_renamed(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\n");
    src_source *s = begin(dir);
    EXPECT(s, "a1|a2|");
    put("app.log", "a", "a3\na4");
    move("app.log", "app.log.1");
    put("app.log", "w", "b1\n");
    discover(s);
    assert_int_equal(src_n_splits(s), 2);
    EXPECT(s, "a3|b1|");
    put("app.log.1", "a", "-\na5\nlast");
    EXPECT(s, "a4-|a5|");
    age("app.log.1");
    EXPECT(s, "last|"); /* nobody writes to it any more */
    move("app.log.1", "app.log.2");
    move("app.log", "app.log.1");
    put("app.log", "w", "c1\n");
    EXPECT(s, "c1|");
    assert_int_equal(src_n_splits(s), 3);
    src_close(s);
}

static void test_removed(void **state) {
    (void)state;
    put("app.log", "w", "a1\n");
    src_source *s = begin(at("*.log"));
    EXPECT(s, "a1|");
    put("app.log", "a", "a2\nla");
    FILE *f = fopen(at("app.log"), "ab"); /* its writer does not know that it was removed */
    unlink(at("app.log"));
    EXPECT(s, "a2|");
    fputs("st", f);
    fflush(f);
    EXPECT(s, "");
    struct timespec old[2] = {{.tv_sec = time(NULL) - 60}, {.tv_sec = time(NULL) - 60}};
    assert_int_equal(futimens(fileno(f), old), 0);
    EXPECT(s, "last|");
    fclose(f);
    fz_error err;
    /* Not all is committed: a sink may ask for it again. */
    assert_int_equal(src_report(s, &(uint32_t){0}, &(int64_t){6}, 1, &err), FZ_OK);
    assert_int_equal(src_unassign_all(s, &err), FZ_OK);
    assert_int_equal(src_assign(s, 0, position[0] = 3, &err), FZ_OK);
    EXPECT(s, "a2|last|");
    assert_int_equal(src_report(s, &(uint32_t){0}, &(int64_t){10}, 1, &err), FZ_OK);
    EXPECT(s, "");
    put("app.log", "w", "b1\n");
    EXPECT(s, "b1|");
    src_close(s);
}

static void copy(const char *from, const char *to) {
    char *cmd = fz_asprintf("cp '%s' '%s'", at(from), at(to));
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
}

/* What was not read before the truncation comes from the copy, once; what follows is another log. */
static void test_copytruncate(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\n");
    src_source *s = begin(dir);
    EXPECT(s, "a1|a2|");
    put("app.log", "a", "a3\n");
    copy("app.log", "app.log.1");
    put("app.log", "w", "");
    EXPECT(s, "a3|");
    EXPECT(s, "");
    put("app.log", "a", "b1\n");
    EXPECT(s, "b1|");
    /* The new content is longer than what was read. */
    copy("app.log", "app.log.1");
    put("app.log", "w", "c1 is long\nc2\n");
    bool done;
    char *got = take(s, &done); /* before the next look: nothing of it is taken for the old log's */
    assert_string_equal(got, "");
    fz_free(got);
    EXPECT(s, "c1 is long|c2|");
    assert_int_equal(src_n_splits(s), 3);
    src_close(s);
}

/* A log keeps its name and its position whatever its file is called. */
static void test_positions(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\na3\n");
    src_source *s = begin(dir);
    char topic[64];
    src_probe before, after;
    fz_error err;
    snprintf(topic, sizeof topic, "%s", src_get_split(s, 0)->topic);
    assert_true(fz_starts(topic, "app.log#"));
    assert_string_equal(src_identity(s), "files");
    fz_chunk *c;
    bool done;
    assert_int_equal(src_poll(s, 0, 0, &c, &done, &err), FZ_OK);
    assert_int_equal(c->n, 3);
    uint64_t hash = src_record_hash(&c->rec[1]);
    assert_int_equal(c->rec[1].offset, 3);
    fz_chunk_release(c);
    assert_int_equal(src_probe_before(s, 0, 6, &before, &err), FZ_OK);
    assert_int_equal(before.result, SRC_PROBE_OK);
    assert_int_equal(before.offset, 3);
    assert_true(before.hash == hash);
    assert_int_equal(src_probe_before(s, 0, 10, &after, &err), FZ_OK);
    assert_int_equal(after.result, SRC_PROBE_BEYOND);
    src_close(s);

    move("app.log", "app.log-20261129");
    put("app.log", "w", "b1\n");
    s = begin(dir);
    assert_int_equal(src_n_splits(s), 2);
    uint32_t i = strcmp(src_get_split(s, 0)->topic, topic) == 0 ? 0 : 1;
    assert_string_equal(src_get_split(s, i)->topic, topic);
    assert_string_not_equal(src_get_split(s, !i)->topic, topic);
    int64_t low, high;
    assert_int_equal(src_bounds(s, i, &low, &high, &err), FZ_OK);
    assert_int_equal(low, 0);
    assert_int_equal(high, 9);
    assert_int_equal(src_unassign_all(s, &err), FZ_OK);
    assert_int_equal(src_assign(s, i, position[i] = 6, &err), FZ_OK);
    EXPECT(s, "a3|");
    src_close(s);
}

/* Draining ends behind the last whole line. */
static void test_drain(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\nno");
    src_source *s = begin(dir);
    fz_error err;
    assert_int_equal(src_drain(s, &err), FZ_OK);
    assert_true(src_bounded(s));
    assert_int_equal(src_get_split(s, 0)->stop, 6);
    put("app.log", "a", "t any more\n");
    bool done;
    char *got = take(s, &done);
    assert_string_equal(got, "a1|a2|");
    assert_true(done);
    fz_free(got);
    src_close(s);
}

static void count_splits(void *cx, fz_metric m, const char *label, uint64_t v) {
    assert_null(label);
    if (m == FZ_M_SOURCE_SPLITS) *(uint64_t *)cx = v;
}
/* How far behind, in bytes: all files together, the beginning of a line too; nothing is behind a stop. */
static void test_lag(void **state) {
    (void)state;
    uint64_t splits = 99;
    src_source *s = begin(dir);
    assert_int_equal(src_lag(s), 0);
    put("app.log", "w", "12345\n");
    put("web.log", "w", "w\n");
    discover(s);
    assert_int_equal(src_lag(s), 8);
    bool done;
    fz_free(take(s, &done));
    assert_int_equal(src_lag(s), 0);
    put("app.log", "a", "abc\nde");
    assert_int_equal(src_lag(s), 6);
    EXPECT(s, "abc|");
    assert_int_equal(src_lag(s), 2);
    put("web.log", "a", "more\n");
    assert_int_equal(src_lag(s), 7);
    src_metrics(s, count_splits, &splits);
    assert_int_equal(splits, 2);
    fz_error err;
    assert_int_equal(src_drain(s, &err), FZ_OK);
    put("web.log", "a", "behind the stop\n");
    assert_int_equal(src_lag(s), 5); /* the line that has no end is left to the next run */
    uint64_t app = 0; /* of the two logs the one that holds 10 bytes of whole lines */
    for (uint32_t i = 0; i < 2; i++) app += src_behind(s, i, 4) == 6 && src_behind(s, i, 10) == 0;
    assert_int_equal(app, 1);
    src_close(s);
}

/* Two logs that begin with the same line cannot be told apart: the second is not read. */
static void test_same_beginning(void **state) {
    (void)state;
    put("app.log", "w", "head\na1\n");
    src_source *s = begin(dir);
    EXPECT(s, "head|a1|");
    put("app2.log", "w", "head\nb1 and more\n");
    EXPECT(s, "");
    put("web.log", "w", "head\nw1\n"); /* another stem */
    EXPECT(s, "head|w1|");
    put("web.log", "w", "head\n"); /* truncated, and begun anew with the same line */
    EXPECT(s, "");
    put("web.log", "a", "w2\nw3 and more\n");
    EXPECT(s, "");
    put("web.log.1", "w", "head\nnot w1\n"); /* nor is this a copy of what it was */
    EXPECT(s, "");
    put("web.log.2", "w", "head\nw1\nw1.5\n"); /* this is */
    EXPECT(s, "w1.5|");
    src_close(s);
}

/* ---- packed files ---- */

/* The way logrotate does it: beside the file, which is removed afterwards. */
static void pack(const char *from, const char *to) {
    char *cmd = fz_asprintf(fz_ends(to, ".zst") ? "zstd -q -f '%s' -o '%s' && rm '%s'" : "gzip -c '%s' > '%s' && rm '%s'", at(from), at(to), at(from));
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
}
static void assign_at(src_source *s, uint32_t i, int64_t from) {
    fz_error err;
    assert_int_equal(src_unassign_all(s, &err), FZ_OK);
    assert_int_equal(src_assign(s, i, position[i] = from, &err), FZ_OK);
}
static void report(src_source *s, uint32_t split, int64_t offset) {
    fz_error err;
    assert_int_equal(src_report(s, &split, &offset, 1, &err), FZ_OK);
}

/* Rotated and packed before anybody looked: read like the plain ones, and called as those would be. */
static void test_packed(void **state) {
    (void)state;
    put("app.log.2", "w", "a1\na2");
    put("app.log-20261128", "w", "b1\nb2\n");
    put("app.log", "w", "c1\n");
    pack("app.log.2", "app.log.2.gz");
    pack("app.log-20261128", "app.log-20261128.zst");
    age("app.log.2.gz");
    put("app.log.9.bz2", "w", "BZh\n");
    put("empty.gz", "w", "");
    src_source *s = begin(dir);
    assert_int_equal(src_n_splits(s), 3);
    bool done;
    char *got = take(s, &done);
    assert_true(fz_starts(got, "c1|"));
    assert_non_null(strstr(got, "a1|a2|"));
    assert_non_null(strstr(got, "b1|b2|"));
    assert_int_equal(strlen(got), 15);
    fz_free(got);
    for (uint32_t i = 0; i < 3; i++) assert_true(fz_starts(src_get_split(s, i)->topic, "app.log#"));
    EXPECT(s, "");
    src_close(s);
}

/* Read in part, then packed while nobody looked: on from there, after the record before it was found. */
static void test_packed_position(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        const char *to = way == 1 ? "app.log.1.zst" : "app.log.1.gz";
        put("app.log", "w", "a1\na2\na3\n");
        src_source *s = begin(dir);
        src_probe was, is;
        fz_error err;
        assert_int_equal(src_probe_before(s, 0, 6, &was, &err), FZ_OK);
        assert_int_equal(was.result, SRC_PROBE_OK);
        char topic[64];
        snprintf(topic, sizeof topic, "%s", src_get_split(s, 0)->topic);
        src_close(s);
        pack("app.log", to);
        s = begin(dir);
        assert_int_equal(src_n_splits(s), 1);
        assert_string_equal(src_get_split(s, 0)->topic, topic);
        assert_int_equal(src_probe_before(s, 0, 6, &is, &err), FZ_OK);
        assert_int_equal(is.result, SRC_PROBE_OK);
        assert_true(is.offset == was.offset && is.hash == was.hash && is.timestamp_ms == was.timestamp_ms);
        assert_int_equal(src_probe_before(s, 0, 10, &is, &err), FZ_OK);
        assert_int_equal(is.result, SRC_PROBE_BEYOND);
        assert_int_equal(src_probe_before(s, 0, 9, &is, &err), FZ_OK);
        assert_int_equal(is.result, way == 1 ? SRC_PROBE_OK : SRC_PROBE_SAME);
        assign_at(s, 0, 6);
        EXPECT(s, "a3|");
        EXPECT(s, "");
        assign_at(s, 0, 3); /* a sink wants it again */
        EXPECT(s, "a2|a3|");
        assign_at(s, 0, 9);
        EXPECT(s, "");
        report(s, 0, 9);
        assign_at(s, 0, 9);
        EXPECT(s, "");
        assert_int_equal(src_drain(s, &err), FZ_OK);
        assert_int_equal(src_get_split(s, 0)->stop, 9);
        src_close(s);
        unlink(at(to));
    }
}

/* Packed while it is followed: what was not read comes from the file that is open; the packed one adds nothing, unless it holds more than that did. */
static void test_packed_while_followed(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\n");
    src_source *s = begin(dir);
    EXPECT(s, "a1|a2|");
    put("app.log", "a", "a3\n");
    move("app.log", "app.log.1");
    copy("app.log.1", ".more");
    age("app.log.1");
    pack("app.log.1", "app.log.1.gz");
    put("app.log", "w", "b1\n");
    EXPECT(s, "a3|b1|");
    discover(s); /* nobody has written to it for long */
    report(s, 0, 9);
    EXPECT(s, "");
    report(s, 0, 9);
    move("app.log.1.gz", "app.log.2.gz");
    EXPECT(s, "");
    put(".more", "a", "a4\n"); /* a writer that was late */
    unlink(at("app.log.2.gz"));
    mkdir(at("old"), 0777);
    pack(".more", "old/app.log.2.gz");
    EXPECT(s, "a4|");
    report(s, 0, 12);
    EXPECT(s, "");
    copy("old/app.log.2.gz", "app.log.3.gz"); /* two of them do not make it read again and again */
    EXPECT(s, "");
    EXPECT(s, "");
    assert_int_equal(src_n_splits(s), 2);
    src_close(s);
}

/* Copied, truncated and packed between two looks. */
static void test_packed_copytruncate(void **state) {
    (void)state;
    put("app.log", "w", "a1\na2\n");
    src_source *s = begin(dir);
    EXPECT(s, "a1|a2|");
    put("app.log", "a", "a3\n");
    copy("app.log", "app.log.1");
    put("app.log", "w", "b1\n");
    pack("app.log.1", "app.log.1.gz");
    discover(s);
    EXPECT(s, "a3|b1|");
    report(s, 0, 9);
    EXPECT(s, "");
    assert_int_equal(src_n_splits(s), 2);
    src_close(s);
}

/* A packer that is at work, and one that never ended. */
static void test_packed_in_part(void **state) {
    (void)state;
    fz_buf b = {0};
    for (int i = 0; i < 40000; i++) fz_buf_printf(&b, "%d %x\n", i, (unsigned)i * 2654435761u);
    put("app.log.1", "w", fz_buf_cstr(&b));
    pack("app.log.1", "whole");
    char *cmd = fz_asprintf("head -c 100000 '%s' > '%s'", at("whole"), at("app.log.1.gz"));
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
    move("whole", ".whole");
    src_source *s = begin(dir);
    bool done;
    char *first = take(s, &done), *again = take(s, &done);
    assert_true(fz_starts(first, "0 0|1 9e3779b1|"));
    size_t n = strlen(first);
    assert_true(n > 100000 && n < b.len);
    assert_string_equal(again, "");
    cmd = fz_asprintf("cat '%s' > '%s'", at(".whole"), at("app.log.1.gz"));
    assert_int_equal(system(cmd), 0);
    fz_free(cmd);
    age("app.log.1.gz");
    discover(s);
    char *rest = take(s, &done);
    assert_int_equal(n + strlen(rest), b.len);
    for (size_t i = 0; i < b.len; i++) assert_int_equal(b.data[i] == '\n' ? '|' : b.data[i], i < n ? first[i] : rest[i - n]);
    assert_int_equal(src_n_splits(s), 1);
    fz_free(first);
    fz_free(again);
    fz_free(rest);
    fz_buf_free(&b);
    src_close(s);
}

/* A packed file that only begins as a log does is not taken for it. */
static void test_packed_same_beginning(void **state) {
    (void)state;
    put("app.log", "w", "head\na1\na2\n");
    src_source *s = begin(dir);
    EXPECT(s, "head|a1|a2|");
    put("app.log", "w", "b1\n");
    put("app.log.1", "w", "head\nx1\nx2\nx3\n");
    pack("app.log.1", "app.log.1.gz");
    put("app.log.2", "w", "head\na1\n");
    pack("app.log.2", "app.log.2.gz");
    EXPECT(s, "b1|");
    for (int i = 0; i < 3; i++) EXPECT(s, "");
    put("app.log.3", "w", "head\na1\na2\na3\n");
    pack("app.log.3", "app.log.3.gz");
    EXPECT(s, "a3|");
    src_close(s);
}

/* A plain file of the same log, when there is one, is read in place of the packed one. */
static void test_packed_and_plain(void **state) {
    (void)state;
    put("app.log.1", "w", "a1\na2\n");
    copy("app.log.1", "copy");
    pack("copy", "app.log.1.gz"); /* whole, and not removed yet */
    src_source *s = begin(dir);
    assert_int_equal(src_n_splits(s), 1);
    EXPECT(s, "a1|a2|");
    put("app.log.1", "a", "a3\n");
    EXPECT(s, "a3|");
    src_close(s);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_lines), T(test_renamed), T(test_removed), T(test_copytruncate), T(test_positions), T(test_drain), T(test_lag), T(test_same_beginning), T(test_packed), T(test_packed_position),
                                       T(test_packed_while_followed), T(test_packed_copytruncate), T(test_packed_in_part), T(test_packed_same_beginning), T(test_packed_and_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
