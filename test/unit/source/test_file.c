/* The connector 'filesystem': which files, which lines, which refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "source/source.h"

static char dir[64];

static void write_file(const char *name, const char *text, size_t n) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}
#define WRITE(name, text) write_file(name, text, sizeof(text) - 1)

static int setup(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/frazil-test-file-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    char *cmd = fz_asprintf("rm -rf '%s'", dir);
    int rc = system(cmd);
    fz_free(cmd);
    return rc;
}

static fz_status open_path(const char *path, uint32_t readers, uint32_t max, src_source **s, fz_error *err) {
    fz_pair o[] = {{.key = "connector", .value = "filesystem"}, {.key = "path", .value = path}, {.key = "format", .value = "json"}, {.key = "json.ignore-parse-errors", .value = "true"}};
    src_context cx = {.table = "t", .job = "j", .readers = readers, .max_record_size = max, .bounded_job = true};
    return src_open(o, 4, &cx, s, err);
}

/* All lines of reader r as "text|", oversized ones as "<big>|". Checks offsets and ranges. */
static char *read_all(src_source *s, uint32_t r, uint32_t *chunks) {
    fz_buf b = {0};
    fz_error err;
    fz_chunk *c;
    bool done = false;
    int64_t next[16] = {0};
    for (uint32_t i = r; i < src_n_splits(s); i += 2)
        if (src_assign(s, i, 0, &err) != FZ_OK) fail_msg("%s", err.message);
    *chunks = 0;
    while (!done) {
        if (src_poll(s, r, 10, &c, &done, &err) != FZ_OK) fail_msg("%s", err.message);
        if (!c) continue;
        ++*chunks;
        assert_int_equal(c->from, next[c->split]);
        next[c->split] = c->to;
        for (uint32_t i = 0; i < c->n; i++) {
            assert_in_range(c->rec[i].offset, c->from, c->to - 1);
            if (c->rec[i].oversized) fz_buf_puts(&b, "<big>");
            else fz_buf_append(&b, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(&b, '|');
        }
        fz_chunk_release(c);
    }
    for (uint32_t i = r; i < src_n_splits(s); i += 2) assert_int_equal(next[i], src_get_split(s, i)->stop);
    return fz_buf_steal(&b);
}

static void test_lines(void **state) {
    (void)state;
    char path[128];
    fz_error err;
    src_source *s;
    uint32_t n;
    WRITE("b.json", "b1\r\n\nb3");
    WRITE("a.json", "a1\na2\n");
    WRITE(".hidden", "x\n");
    WRITE("_tmp", "x\n");
    snprintf(path, sizeof path, "%s/sub", dir);
    mkdir(path, 0700);
    WRITE("sub/c", "c1");
    WRITE("sub/empty", "");
    snprintf(path, sizeof path, "file://%s", dir);
    assert_int_equal(open_path(path, 2, 100, &s, &err), FZ_OK);
    assert_int_equal(src_n_splits(s), 4);
    assert_true(src_bounded(s));
    assert_false(src_replayable(s));
    assert_true(fz_ends(src_get_split(s, 0)->name, "/a.json"));
    assert_true(fz_ends(src_get_split(s, 3)->name, "/sub/empty"));
    char *even = read_all(s, 0, &n), *odd = read_all(s, 1, &n);
    assert_string_equal(even, "a1|a2|c1|");
    assert_string_equal(odd, "b1||b3|");
    fz_free(even);
    fz_free(odd);
    src_close(s);
}

/* A line of exactly the ceiling passes, one more byte does not; lines longer than a block; a position in the middle. */
static void test_large(void **state) {
    (void)state;
    enum { BIG = 3 << 20 };
    char path[128];
    fz_error err;
    src_source *s;
    uint32_t n;
    char *text = fz_malloc(BIG + 64);
    memset(text, 'x', BIG + 64);
    memcpy(text, "12345678\n123456789\nend\n", 23);
    text[23 + BIG] = '\n';
    memcpy(text + 24 + BIG, "last", 4);
    write_file("f", text, 28 + BIG);
    snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(open_path(path, 1, 8, &s, &err), FZ_OK);
    char *got = read_all(s, 0, &n);
    assert_string_equal(got, "12345678|<big>|end|<big>|last|");
    fz_free(got);
    fz_chunk *c;
    bool done;
    assert_int_equal(src_assign(s, 0, 19, &err), FZ_OK);
    assert_int_equal(src_poll(s, 0, 0, &c, &done, &err), FZ_OK);
    assert_int_equal(c->rec[0].value_len, 3);
    fz_chunk_release(c);
    assert_int_equal(src_assign(s, 0, 28 + BIG + 1, &err), FZ_FATAL);
    src_close(s);
    assert_int_equal(open_path(path, 1, BIG, &s, &err), FZ_OK);
    assert_int_equal(src_assign(s, 0, 23, &err), FZ_OK);
    assert_int_equal(src_poll(s, 0, 0, &c, &done, &err), FZ_OK);
    assert_int_equal(c->rec[0].value_len, BIG);
    fz_chunk_release(c);
    src_close(s);
    fz_free(text);
}

static void test_many_lines(void **state) {
    (void)state;
    char path[128];
    fz_error err;
    src_source *s;
    fz_buf b = {0};
    for (int i = 0; i < 200000; i++) fz_buf_printf(&b, "line %d\n", i);
    write_file("f", (const char *)b.data, b.len);
    snprintf(path, sizeof path, "%s", dir);
    assert_int_equal(open_path(path, 1, 0, &s, &err), FZ_OK);
    assert_int_equal(src_assign(s, 0, 0, &err), FZ_OK);
    uint32_t next = 0;
    for (bool done = false; !done;) {
        fz_chunk *c;
        char want[32];
        assert_int_equal(src_poll(s, 0, 0, &c, &done, &err), FZ_OK);
        for (uint32_t i = 0; c && i < c->n; i++) {
            snprintf(want, sizeof want, "line %u", next++);
            assert_int_equal(c->rec[i].value_len, strlen(want));
            assert_memory_equal(c->rec[i].value, want, strlen(want));
        }
        fz_chunk_release(c);
    }
    assert_int_equal(next, 200000);
    src_close(s);
    fz_buf_free(&b);
}

static void expect_refused(const char *key, const char *value, const char *code) {
    fz_pair o[] = {{.key = "connector", .value = "filesystem"}, {.key = "format", .value = "json"}, {.key = "path", .value = dir}, {.key = key, .value = value}};
    src_context cx = {.table = "t", .job = "j", .readers = 1};
    src_source *s = NULL;
    fz_error err = {0};
    fz_status rc = strcmp(key, "path") == 0 ? open_path(value, 1, 0, &s, &err) : src_open(o, 4, &cx, &s, &err);
    assert_int_equal(rc, FZ_USER);
    assert_string_equal(err.code, code);
}

static void test_refusals(void **state) {
    (void)state;
    char path[128];
    WRITE("x.json.gz", "");
    expect_refused("path", dir, "file.compressed");
    expect_refused("path", "s3://bucket/x", "file.scheme");
    snprintf(path, sizeof path, "%s/none", dir);
    expect_refused("path", path, "file.not-found");
    expect_refused("source.monitor-interval", "10 s", "option.refused");
    expect_refused("partition.default-name", "x", "option.refused");
    expect_refused("pth", "x", "option.unknown");
    fz_pair o[] = {{.key = "connector", .value = "filesystem"}, {.key = "path", .value = dir}};
    src_context cx = {.table = "t", .job = "j", .readers = 1};
    src_source *s;
    fz_error err;
    assert_int_equal(src_open(o, 2, &cx, &s, &err), FZ_USER);
    assert_string_equal(err.code, "option.missing");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_lines), T(test_large), T(test_many_lines), T(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
