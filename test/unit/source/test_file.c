/* The connector 'filesystem': which files, which lines, which refusals; packed files, whole and damaged; standard input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>
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
    WRITE("x.json.bz2", "");
    expect_refused("path", dir, "file.compressed");
    expect_refused("path", "s3://bucket/x", "file.scheme");
    snprintf(path, sizeof path, "%s/none", dir);
    expect_refused("path", path, "file.not-found");
    expect_refused("source.monitor-interval", "x", "option.invalid");
    expect_refused("partition.default-name", "x", "option.refused");
    expect_refused("pth", "x", "option.unknown");
    fz_pair o[] = {{.key = "connector", .value = "filesystem"}, {.key = "path", .value = dir}};
    src_context cx = {.table = "t", .job = "j", .readers = 1};
    src_source *s;
    fz_error err;
    assert_int_equal(src_open(o, 2, &cx, &s, &err), FZ_USER);
    assert_string_equal(err.code, "option.missing");
}

/* ---- packed files ---- */

/* One gzip member, ISA-L's level 0. */
static void gzip_member(const void *p, size_t n, fz_buf *out) {
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)p;
    z.avail_in = (uint32_t)n;
    fz_buf_reserve(out, n + n / 8 + 1024);
    z.next_out = out->data + out->len;
    z.avail_out = (uint32_t)(out->cap - out->len);
    assert_int_equal(isal_deflate(&z), COMP_OK);
    assert_int_equal(z.internal_state.state, ZSTATE_END);
    out->len = (size_t)(z.next_out - out->data);
}

static void zstd_frame(const void *p, size_t n, int window_log, fz_buf *out) {
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    if (window_log) ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
    fz_buf_reserve(out, ZSTD_compressBound(n) + 64);
    ZSTD_inBuffer in = {p, n, 0};
    ZSTD_outBuffer to = {out->data + out->len, out->cap - out->len, 0};
    if (window_log) assert_int_equal(ZSTD_compressStream2(c, &to, &in, ZSTD_e_flush), 0); /* the size is not known yet: the window is as it was asked for */
    assert_int_equal(ZSTD_compressStream2(c, &to, &in, ZSTD_e_end), 0);
    out->len += to.pos;
    ZSTD_freeCCtx(c);
}

static void many_lines(fz_buf *b, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) fz_buf_printf(b, "line %u %08x\n", i, i * 2654435761u);
}

/* Reads split 0 to its end: lines as many_lines makes them, and nothing else; lines NULL: any (damage may show at the end only). Gives the first failure. */
static fz_status read_many(const char *path, uint32_t *lines, fz_error *err) {
    src_source *s;
    fz_status rc = FZ_OK;
    FZ_TRY(open_path(path, 1, 0, &s, err));
    assert_int_equal(src_assign(s, 0, 0, err), FZ_OK);
    if (lines) *lines = 0;
    int64_t at = 0;
    for (bool done = false; !done && rc == FZ_OK;) {
        fz_chunk *c;
        char want[64];
        rc = src_poll(s, 0, 10, &c, &done, err);
        if (rc == FZ_OK && c) {
            assert_int_equal(c->from, at);
            at = c->to;
            assert_true(c->n > 0);
        }
        for (uint32_t i = 0; lines && rc == FZ_OK && c && i < c->n; i++, ++*lines) {
            snprintf(want, sizeof want, "line %u %08x", *lines, *lines * 2654435761u);
            assert_int_equal(c->rec[i].value_len, strlen(want));
            assert_memory_equal(c->rec[i].value, want, strlen(want));
        }
        if (rc == FZ_OK) fz_chunk_release(c);
    }
    src_close(s);
    return rc;
}

static char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* Several members and frames, by name and by magic; members end in the middle of lines. */
static void test_packed(void **state) {
    (void)state;
    fz_buf text = {0}, gz = {0}, zst = {0};
    fz_error err;
    uint32_t n;
    many_lines(&text, 0, 150000);
    size_t a = text.len / 3 + 1, b = text.len - 7;
    gzip_member(text.data, a, &gz);
    gzip_member("", 0, &gz);
    gzip_member(text.data + a, b - a, &gz);
    gzip_member(text.data + b, text.len - b, &gz);
    zstd_frame(text.data, a, 0, &zst);
    fz_buf_append(&zst, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11); /* a skippable frame */
    zstd_frame(text.data + a, text.len - a, 0, &zst);
    static const char *const names[] = {"a.gz", "a.log", "b.zst", "b.log"};
    for (int i = 0; i < 4; i++) {
        const fz_buf *f = i < 2 ? &gz : &zst;
        write_file(names[i], (const char *)f->data, f->len);
        if (read_many(path_of(names[i]), &n, &err) != FZ_OK) fail_msg("%s: %s", names[i], err.message);
        assert_int_equal(n, 150000);
    }
    fz_buf_free(&text);
    fz_buf_free(&gz);
    fz_buf_free(&zst);
}

/* Lines at and above the ceiling, a last line without an end, a member without text; dealt to two readers. */
static void test_packed_lines(void **state) {
    (void)state;
    enum { BIG = 700 << 10 };
    fz_buf text = {0}, gz = {0};
    fz_error err;
    src_source *s;
    uint32_t n;
    fz_buf_puts(&text, "12345678\r\n123456789\n\n");
    for (int i = 0; i < BIG; i++) fz_buf_putc(&text, 'x');
    fz_buf_puts(&text, "\nlast");
    gzip_member(text.data, text.len, &gz);
    write_file("a.gz", (const char *)gz.data, gz.len);
    gz.len = 0;
    gzip_member("", 0, &gz);
    write_file("b.gz", (const char *)gz.data, gz.len);
    assert_int_equal(open_path(dir, 1, 8, &s, &err), FZ_OK);
    assert_int_equal(src_n_splits(s), 2);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(src_assign(s, i, 0, &err), FZ_OK);
    fz_buf got = {0};
    int64_t at = 0;
    for (bool done = false; !done;) {
        fz_chunk *c;
        assert_int_equal(src_poll(s, 0, 0, &c, &done, &err), FZ_OK);
        if (!c) continue;
        assert_int_equal(c->from, at);
        at = c->to;
        for (n = 0; n < c->n; n++) {
            if (c->rec[n].oversized) fz_buf_puts(&got, "<big>");
            else fz_buf_append(&got, c->rec[n].value, (size_t)c->rec[n].value_len);
            fz_buf_putc(&got, '|');
        }
        fz_chunk_release(c);
    }
    assert_int_equal(at, text.len);
    assert_string_equal(fz_buf_cstr(&got), "12345678|<big>||<big>|last|");
    assert_int_equal(src_assign(s, 0, 3, &err), FZ_FATAL);
    src_close(s);
    fz_buf_free(&got);
    fz_buf_free(&text);
    fz_buf_free(&gz);
}

static void expect_damaged(const char *name, const fz_buf *b, size_t len, const char *code) {
    fz_error err = {0};
    write_file(name, (const char *)b->data, len);
    if (read_many(path_of(name), NULL, &err) != FZ_FATAL) fail_msg("%s of %zu bytes was read", name, len);
    assert_string_equal(err.code, code);
    assert_non_null(strstr(err.message, name));
}

static void test_damaged(void **state) {
    (void)state;
    fz_buf text = {0}, gz = {0}, zst = {0}, none = {0};
    many_lines(&text, 0, 30000);
    gzip_member(text.data, text.len, &gz);
    zstd_frame(text.data, text.len, 0, &zst);
    fz_buf_reserve(&none, 1);
    expect_damaged("a.gz", &none, 0, "file.damaged");
    expect_damaged("a.zst", &none, 0, "file.damaged");
    expect_damaged("a.gz", &text, text.len, "file.damaged"); /* not packed at all */
    expect_damaged("a.zst", &text, text.len, "file.damaged");
    for (size_t cut = 1; cut < 40; cut += 3) {
        expect_damaged("a.gz", &gz, gz.len - cut, "file.damaged");
        expect_damaged("a.zst", &zst, zst.len - cut, "file.damaged");
        expect_damaged("b.gz", &gz, cut, "file.damaged");
        expect_damaged("b.zst", &zst, cut, "file.damaged");
    }
    gz.data[gz.len - 8] ^= 1; /* the checksum */
    expect_damaged("a.gz", &gz, gz.len, "file.damaged");
    gz.data[gz.len - 8] ^= 1;
    gz.data[3] |= 0x80; /* a reserved flag */
    expect_damaged("a.gz", &gz, gz.len, "file.damaged");
    gz.data[3] ^= 0x80;
    zst.data[zst.len / 2] ^= 0x10;
    expect_damaged("a.zst", &zst, zst.len, "file.damaged");
    fz_buf_puts(&gz, "what follows");
    expect_damaged("a.gz", &gz, gz.len, "file.damaged");
    zst.len = 0;
    zstd_frame(text.data, text.len, 27, &zst);
    expect_damaged("wide.zst", &zst, zst.len, "file.zstd-window");
    fz_buf_free(&none);
    fz_buf_free(&text);
    fz_buf_free(&gz);
    fz_buf_free(&zst);
}

/* ---- standard input ---- */

/* Makes the reading end of a pipe standard input; gives the other end. */
static int pipe_stdin(void) {
    int p[2];
    assert_int_equal(pipe(p), 0);
    assert_int_equal(dup2(p[0], 0), 0);
    close(p[0]);
    return p[1];
}

static void feed(int fd, const void *p, size_t n) { assert_int_equal(write(fd, p, n), n); }

/* All that can be had now, as "text|"; *done as src_poll says. */
static char *poll_text(src_source *s, bool *done) {
    fz_buf b = {0};
    fz_error err;
    fz_chunk *c;
    do {
        if (src_poll(s, 0, 0, &c, done, &err) != FZ_OK) fail_msg("%s", err.message);
        for (uint32_t i = 0; c && i < c->n; i++) {
            fz_buf_append(&b, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(&b, '|');
        }
        bool got = c != NULL;
        fz_chunk_release(c);
        if (!got) break;
    } while (!*done);
    fz_buf_putc(&b, 0);
    return fz_buf_steal(&b);
}
static void expect_text(src_source *s, const char *want, bool over) {
    bool done;
    char *got = poll_text(s, &done);
    assert_string_equal(got, want);
    assert_int_equal(done, over);
    fz_free(got);
}

static src_source *open_stdin(const char *path) {
    src_source *s, *other;
    fz_error err;
    if (open_path(path, 1, 0, &s, &err) != FZ_OK) fail_msg("%s", err.message);
    assert_true(src_bounded(s));
    assert_int_equal(open_path("-", 1, 0, &other, &err), FZ_USER);
    assert_string_equal(err.code, "file.stdin");
    assert_int_equal(src_assign(s, 0, 0, &err), FZ_OK);
    return s;
}

static void test_stdin(void **state) {
    (void)state;
    int saved = dup(0), w = pipe_stdin();
    src_source *s = open_stdin("-");
    expect_text(s, "", false);
    feed(w, "P", 1); /* might begin a skippable frame of zstd */
    expect_text(s, "", false);
    feed(w, "ne\ntwo\r\nthr", 11);
    expect_text(s, "Pne|two|", false);
    feed(w, "ee\n\nlast", 8);
    expect_text(s, "three||", false);
    close(w);
    expect_text(s, "last|", true);
    fz_error err;
    assert_int_equal(src_assign(s, 0, 0, &err), FZ_FATAL);
    src_close(s);

    w = pipe_stdin(); /* a line that is shorter than a magic number is handed out */
    s = open_stdin("file:///dev/stdin");
    feed(w, "x\n", 2);
    expect_text(s, "x|", false);
    feed(w, "y\nz", 3);
    expect_text(s, "y|", false);
    src_close(s);
    close(w);

    w = pipe_stdin(); /* draining ends it while the other side goes on */
    s = open_stdin("-");
    feed(w, "a\n", 2);
    expect_text(s, "a|", false);
    assert_int_equal(src_drain(s, &err), FZ_OK);
    feed(w, "b\n", 2);
    expect_text(s, "", true);
    src_close(s);
    close(w);
    dup2(saved, 0);
    close(saved);
}

/* Packed input that comes byte by byte: members and frames end anywhere. */
static void test_stdin_packed(void **state) {
    (void)state;
    int saved = dup(0);
    for (int z = 0; z < 2; z++) {
        fz_buf in = {0};
        if (z) zstd_frame("one\ntw", 6, 0, &in), zstd_frame("o\nthree", 7, 0, &in);
        else gzip_member("one\ntw", 6, &in), gzip_member("o\nthree", 7, &in);
        int w = pipe_stdin();
        src_source *s = open_stdin("-");
        fz_buf all = {0};
        bool done = false;
        for (size_t i = 0; i <= in.len; i++) {
            if (i < in.len) feed(w, in.data + i, 1);
            else close(w);
            char *got = poll_text(s, &done);
            fz_buf_puts(&all, got);
            fz_free(got);
            assert_int_equal(done, i == in.len);
        }
        assert_string_equal(fz_buf_cstr(&all), "one|two|three|");
        src_close(s);
        fz_buf_free(&all);
        fz_buf_free(&in);
    }
    dup2(saved, 0);
    close(saved);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_lines), T(test_large), T(test_many_lines), T(test_refusals), T(test_packed), T(test_packed_lines), T(test_damaged), T(test_stdin), T(test_stdin_packed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
