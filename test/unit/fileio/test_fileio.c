/* Stores: whole objects, streaming writes, batches, faults in between, listing, locks. Each test that holds for every store
 * runs on the local one and on the memory one. */
#include "fileio/fileio_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char root[64];   /* "/tmp/frazil-fileio-XXXXXX" */
static char uri[80];    /* "file://" + root */
static fz_error err;

#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s", #x, err.message); } while (0)

static int setup(void **state) {
    (void)state;
    strcpy(root, "/tmp/frazil-fileio-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(uri, sizeof uri, "file://%s", root);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    OK(fz_fault_arm(NULL, &err));
    return fio_delete_tree(NULL, root, &err) != FZ_OK;
}

static char *path_of(const char *name) { /* leaks into the test's life */
    static char buf[8][512];
    static int k;
    k = (k + 1) % 8;
    snprintf(buf[k], sizeof buf[k], "%s/%s", uri, name);
    return buf[k];
}

static unsigned temporaries(const char *dir) {
    unsigned n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += fz_starts(e->d_name, FIO_TEMP_PREFIX);
    closedir(d);
    return n;
}

static void whole_objects(const char *base) {
    fz_arena *a = fz_arena_new();
    const char *x = fio_join(a, base, "d/x");
    fz_buf b = {0};
    bool there;
    uint64_t size;
    OK(fio_exists(NULL, x, &there, &err));
    assert_false(there);
    assert_int_equal(fio_read(NULL, x, 100, &b, &err), FZ_USER);
    assert_string_equal(err.code, "file.not-found");
    OK(fio_put(NULL, x, "hello", 5, &err));
    OK(fio_size(NULL, x, &size, &err));
    assert_int_equal(size, 5);
    OK(fio_read(NULL, x, 5, &b, &err));
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "hello", 5);
    assert_int_equal(fio_read(NULL, x, 4, &b, &err), FZ_FATAL);
    assert_string_equal(err.code, "file.too-large");
    assert_int_equal(b.len, 5);
    OK(fio_put(NULL, x, "", 0, &err));
    OK(fio_size(NULL, x, &size, &err));
    assert_int_equal(size, 0);
    assert_int_equal(fio_put_if_absent(NULL, x, "y", 1, &err), FZ_CONFLICT);
    assert_string_equal(err.code, "file.exists");
    const char *y = fio_join(a, base, "d/e/y");
    OK(fio_put_if_absent(NULL, y, "0123456789", 10, &err));
    char got[4];
    OK(fio_read_range(NULL, y, 6, 4, got, &err));
    assert_memory_equal(got, "6789", 4);
    assert_int_equal(fio_read_range(NULL, y, 7, 4, got, &err), FZ_FATAL);
    assert_string_equal(err.code, "file.short");
    OK(fio_delete(NULL, y, &err));
    OK(fio_delete(NULL, y, &err));
    OK(fio_exists(NULL, y, &there, &err));
    assert_false(there);
    OK(fio_delete_tree(NULL, fio_join(a, base, "d"), &err));
    OK(fio_exists(NULL, x, &there, &err));
    assert_false(there);
    fz_buf_free(&b);
    fz_arena_free(a);
}
static void test_whole_objects(void **state) {
    (void)state;
    whole_objects(uri);
    whole_objects(root);
    whole_objects("mem://whole");
}

/* Appends of many sizes, from a pattern that tells where each byte belongs. */
static void streaming(const char *base) {
    fz_arena *a = fz_arena_new();
    const char *x = fio_join(a, base, "s/x");
    static uint8_t pattern[3 << 20];
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (uint8_t)(i * 2654435761u >> 13);
    fio_writer *w;
    OK(fio_writer_open(NULL, x, &w, &err));
    size_t at = 0, step = 1;
    while (at < sizeof pattern) {
        size_t n = step < sizeof pattern - at ? step : sizeof pattern - at;
        OK(fio_writer_append(w, pattern + at, n, &err));
        at += n;
        step = step > 400000 ? 7 : step * 3 + 1;
        if (step == 13) OK(fio_writer_flush(w, &err));
    }
    bool there;
    OK(fio_exists(NULL, x, &there, &err));
    assert_false(there); /* not before it is whole */
    uint64_t size;
    OK(fio_writer_finish(w, &size, &err));
    assert_int_equal(size, sizeof pattern);
    fz_buf b = {0};
    OK(fio_read(NULL, x, sizeof pattern, &b, &err));
    assert_int_equal(b.len, sizeof pattern);
    assert_memory_equal(b.data, pattern, sizeof pattern);
    fz_buf_free(&b);
    OK(fio_writer_open(NULL, fio_join(a, base, "s/y"), &w, &err));
    OK(fio_writer_append(w, pattern, sizeof pattern, &err));
    fio_writer_abort(w);
    OK(fio_exists(NULL, fio_join(a, base, "s/y"), &there, &err));
    assert_false(there);
    fz_arena_free(a);
}
static void test_streaming(void **state) {
    (void)state;
    streaming(uri);
    streaming("mem://stream");
    char dir[100];
    snprintf(dir, sizeof dir, "%s/s", root);
    assert_int_equal(temporaries(dir), 0);
}

/* Thousands of writers under a small limit of descriptors, then one batch. */
static void test_many_open(void **state) {
    (void)state;
    enum { N = 3000 };
    struct rlimit old, few = {64, 64};
    getrlimit(RLIMIT_NOFILE, &old);
    few.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &few);
    static fio_writer *w[N];
    static char big[300000];
    memset(big, 'b', sizeof big);
    char name[64], text[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "many/p=%d/f", i);
        OK(fio_writer_open(NULL, path_of(name), &w[i], &err));
        OK(fio_writer_append(w[i], text, (size_t)snprintf(text, sizeof text, "%d", i), &err));
        assert_true(fio_writer_memory(w[i]) < 1024 + 200);
    }
    OK(fio_writer_append(w[7], big, sizeof big, &err));
    fio_batch *b = fio_batch_new();
    bool there;
    for (int i = 0; i < N; i++) OK(fio_writer_finish_in(w[i], b, NULL, &err));
    OK(fio_exists(NULL, path_of("many/p=2/f"), &there, &err));
    assert_false(there);
    OK(fio_batch_sync(b, &err));
    fz_buf got = {0};
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "many/p=%d/f", i);
        got.len = 0;
        OK(fio_read(NULL, path_of(name), 1 << 20, &got, &err));
        size_t n = (size_t)snprintf(text, sizeof text, "%d", i);
        assert_int_equal(got.len, n + (i == 7 ? sizeof big : 0));
        assert_memory_equal(got.data, text, n);
    }
    fz_buf_free(&got);
    OK(fio_batch_sync(b, &err)); /* empty: nothing to do */
    fio_batch_free(b);
    setrlimit(RLIMIT_NOFILE, &old);
}

static void test_append_fails_whole(void **state) {
    (void)state;
    static char block[200000];
    fio_writer *w;
    OK(fio_writer_open(NULL, path_of("f/x"), &w, &err));
    memset(block, 'a', sizeof block);
    OK(fio_writer_append(w, block, sizeof block, &err));
    OK(fz_fault_arm("file.write:1:enospc", &err));
    memset(block, 'b', sizeof block);
    assert_int_equal(fio_writer_append(w, block, sizeof block, &err), FZ_RETRY);
    assert_string_equal(err.code, "file.no-space");
    assert_non_null(strstr(err.message, "f/x"));
    OK(fio_writer_append(w, block, sizeof block, &err)); /* the very same call again */
    uint64_t size;
    OK(fio_writer_finish(w, &size, &err));
    assert_int_equal(size, 2 * sizeof block);
    fz_buf got = {0};
    OK(fio_read(NULL, path_of("f/x"), 1 << 20, &got, &err));
    assert_int_equal(got.len, 2 * sizeof block);
    for (size_t i = 0; i < got.len; i++) assert_int_equal(got.data[i], i < sizeof block ? 'a' : 'b');
    fz_buf_free(&got);
}

static uint8_t *pattern(size_t n) { /* on a page; tells where each byte belongs */
    uint8_t *p = fz_aligned(FIO_BLOCK, (n / FIO_BLOCK + 1) * FIO_BLOCK);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(i * 2654435761u >> 13);
    return p;
}
static void is_pattern(const char *location, const uint8_t *want, size_t n) {
    fz_buf got = {0};
    OK(fio_read(NULL, location, n, &got, &err));
    assert_int_equal(got.len, n);
    assert_memory_equal(got.data, want, n);
    fz_buf_free(&got);
}
/* Does the file system of the tests take O_DIRECT? */
static bool can_direct(void) {
    char path[100];
    snprintf(path, sizeof path, "%s/can-direct", root);
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
    void *p = fz_aligned(FIO_BLOCK, FIO_BLOCK);
    memset(p, 0, FIO_BLOCK);
    bool can = fd >= 0 && pwrite(fd, p, FIO_BLOCK, 0) == FIO_BLOCK;
    fz_free(p);
    if (fd >= 0) close(fd);
    return can;
}

/* Large objects, past the page cache or not, whoever refuses it and when: the same bytes. */
static void test_direct(void **state) {
    (void)state;
    enum { N = (3 << 20) + 12345 };
    static const char *const refusals[] = {NULL, "file.direct:1:eio", "file.direct:2:eio", "file.direct:4:eio", "file.direct:0:eio"};
    static const size_t steps[] = {1000, FIO_BUFFER, FIO_BUFFER + 1, N};
    static const size_t sizes[] = {FIO_BUFFER, FIO_BUFFER + 1, 2 * FIO_BUFFER + 100000, N};
    uint8_t *p = pattern(N);
    bool can = can_direct();
    for (size_t r = 0; r < sizeof refusals / sizeof *refusals; r++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
            for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
                OK(fz_fault_arm(refusals[r], &err));
                fio_batch *b = fio_batch_new();
                fio_writer *w;
                uint64_t size;
                OK(fio_writer_open(NULL, path_of("direct/w"), &w, &err));
                for (size_t at = 0; at < sizes[z]; at += steps[s]) OK(fio_writer_append(w, p + at, steps[s] < sizes[z] - at ? steps[s] : sizes[z] - at, &err));
                if (w->written) assert_int_equal(w->direct, can && (r == 0 || (r == 3 && w->written <= 2 * FIO_BUFFER)));
                OK(fio_writer_finish_in(w, z % 2 ? b : NULL, &size, &err));
                OK(fio_batch_sync(b, &err));
                fio_batch_free(b);
                assert_int_equal(size, sizes[z]);
                is_pattern(path_of("direct/w"), p, sizes[z]);
            }
    static const size_t puts[] = {65535, 65537, 69632, N};
    for (size_t r = 0; r < sizeof refusals / sizeof *refusals; r++)
        for (size_t z = 0; z < sizeof puts / sizeof *puts; z++)
            for (size_t off = 0; off < 2; off++) {
                OK(fz_fault_arm(refusals[r], &err));
                OK(fio_put(NULL, path_of("direct/p"), p + off, puts[z] - off, &err));
                is_pattern(path_of("direct/p"), p + off, puts[z] - off);
            }
    fz_free(p);
}

/* Any of the writes of one append fails: the same call may be made again, the object may end without it, or be given up. */
static void test_append_takes_back(void **state) {
    (void)state;
    enum { N = 1200000, FIRST = 5000 };
    uint8_t *p = pattern(N);
    char dir[100], spec[64];
    snprintf(dir, sizeof dir, "%s/back", root);
    for (int first = 0; first <= FIRST; first += FIRST)
        for (int n = 1; n <= 4; n++)
            for (int what = 0; what < 3; what++) {
                fio_writer *w;
                uint64_t size;
                OK(fio_writer_open(NULL, path_of("back/x"), &w, &err));
                OK(fio_writer_append(w, p, (size_t)first, &err));
                snprintf(spec, sizeof spec, "file.write:%d:enospc", n);
                OK(fz_fault_arm(spec, &err));
                assert_int_equal(fio_writer_append(w, p + first, (size_t)(N - first), &err), FZ_RETRY);
                assert_string_equal(err.code, "file.no-space");
                if (what == 0) OK(fio_writer_append(w, p + first, (size_t)(N - first), &err));
                if (what == 2) fio_writer_abort(w);
                else {
                    OK(fio_writer_finish(w, &size, &err));
                    assert_int_equal(size, what == 0 ? N : first);
                    is_pattern(path_of("back/x"), p, size);
                }
                assert_int_equal(temporaries(dir), 0);
            }
    fz_free(p);
}

/* More large objects at the same time than may keep their file open. */
static void test_many_large(void **state) {
    (void)state;
    enum { N = 100, SIZE = 700000 };
    struct rlimit old, few = {64, 64};
    getrlimit(RLIMIT_NOFILE, &old);
    few.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &few);
    uint8_t *p = pattern(SIZE + N);
    static fio_writer *w[N];
    char name[32];
    for (int round = 0; round < 2; round++) { /* twice: what was kept open is given back */
        for (int i = 0; i < N; i++) {
            snprintf(name, sizeof name, "large/f%d", i);
            OK(fio_writer_open(NULL, path_of(name), &w[i], &err));
        }
        for (int at = 0; at < SIZE; at += SIZE / 7)
            for (int i = 0; i < N; i++) OK(fio_writer_append(w[i], p + i + at, SIZE / 7, &err));
        if (round == 1) assert_true(w[0]->fd >= 0 && w[N - 1]->fd < 0);
        for (int i = 0; i < N; i++) {
            snprintf(name, sizeof name, "large/f%d", i);
            if (i % 3 == 0) fio_writer_abort(w[i]);
            else OK(fio_writer_finish(w[i], NULL, &err));
            if (i % 3) is_pattern(path_of(name), p + i, SIZE);
        }
    }
    setrlimit(RLIMIT_NOFILE, &old);
    fz_free(p);
    char dir[100];
    snprintf(dir, sizeof dir, "%s/large", root);
    assert_int_equal(temporaries(dir), 0);
}

/* A temporary that somebody removed is no object. */
static void test_temporary_removed(void **state) {
    (void)state;
    uint8_t *p = pattern(1 << 20);
    for (int batch = 0; batch < 2; batch++) {
        fio_writer *w;
        fio_batch *b = fio_batch_new();
        OK(fio_writer_open(NULL, path_of("away/x"), &w, &err));
        OK(fio_writer_append(w, p, 1 << 20, &err));
        char *temp = fio_temp_path(w->key, w->tag);
        assert_int_equal(unlink(temp), 0);
        fz_free(temp);
        fz_status rc = fio_writer_finish_in(w, batch ? b : NULL, NULL, &err);
        if (rc == FZ_OK) rc = fio_batch_sync(b, &err);
        assert_int_equal(rc, FZ_USER);
        bool there;
        OK(fio_exists(NULL, path_of("away/x"), &there, &err));
        assert_false(there);
        fio_batch_free(b);
    }
    fz_free(p);
}

/* Whatever call fails, the object is whole or not there, and no temporary is left. */
static void test_each_failure(void **state) {
    (void)state;
    static const char *const points[] = {"file.write", "file.fsync"};
    static char large[900000];
    for (unsigned p = 0; p < 2; p++)
        for (int n = 1; n <= 12; n++) {
            char spec[64], dir[128];
            snprintf(spec, sizeof spec, "%s:%d:eio", points[p], n);
            snprintf(dir, sizeof dir, "%s/each/%u-%d", root, p, n);
            OK(fz_fault_arm(spec, &err));
            fio_batch *b = fio_batch_new();
            fz_status rc = FZ_OK;
            for (int i = 0; i < 3 && rc == FZ_OK; i++) {
                char file[160];
                snprintf(file, sizeof file, "%s/f%d", dir, i);
                fio_writer *w;
                OK(fio_writer_open(NULL, file, &w, &err));
                OK(fio_writer_append(w, "0123456789", 10, &err));
                if (i == 1) rc = fio_writer_append(w, large, sizeof large, &err);
                if (rc != FZ_OK) fio_writer_abort(w);
                else rc = fio_writer_finish_in(w, b, NULL, &err);
            }
            if (rc == FZ_OK) rc = fio_batch_sync(b, &err);
            fio_batch_free(b);
            assert_true(rc == FZ_OK || rc == FZ_RETRY);
            OK(fz_fault_arm(NULL, &err));
            assert_int_equal(temporaries(dir), 0);
            for (int i = 0; i < 3; i++) {
                char file[160];
                bool there;
                snprintf(file, sizeof file, "%s/f%d", dir, i);
                OK(fio_exists(NULL, file, &there, &err));
                assert_int_equal(there, rc == FZ_OK);
            }
            if (n == 1) assert_int_equal(rc, FZ_RETRY);
        }
}

static void test_put_faults(void **state) {
    (void)state;
    OK(fio_put(NULL, path_of("p/x"), "old", 3, &err));
    for (int n = 1; n <= 3; n++) {
        char spec[64];
        snprintf(spec, sizeof spec, "file.fsync:%d:eio", n);
        OK(fz_fault_arm(spec, &err));
        fz_status rc = fio_put(NULL, path_of("p/x"), "new", 3, &err);
        assert_int_equal(rc, n <= 2 ? FZ_RETRY : FZ_OK);
        fz_buf got = {0};
        OK(fz_fault_arm(NULL, &err));
        OK(fio_read(NULL, path_of("p/x"), 10, &got, &err));
        assert_true(memcmp(got.data, n == 1 ? "old" : "new", 3) == 0);
        fz_buf_free(&got);
    }
    /* The directory cannot be synced any more after the name was taken: the caller must not think that nothing happened. */
    OK(fz_fault_arm("file.fsync:2:eio,file.fsync:3:eio,file.fsync:4:eio", &err));
    assert_int_equal(fio_put_if_absent(NULL, path_of("p/y"), "y", 1, &err), FZ_UNKNOWN);
    assert_string_equal(err.code, "file.unknown");
    OK(fz_fault_arm("file.fsync:1:eio", &err));
    assert_int_equal(fio_put_if_absent(NULL, path_of("p/z"), "z", 1, &err), FZ_RETRY);
    OK(fz_fault_arm(NULL, &err));
    OK(fio_put_if_absent(NULL, path_of("p/z"), "z", 1, &err));
    char dir[100];
    snprintf(dir, sizeof dir, "%s/p", root);
    assert_int_equal(temporaries(dir), 0);
}

/* Processes race for one name: one wins. */
static void test_put_if_absent_race(void **state) {
    (void)state;
    enum { N = 6, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof name, "race/r%d", round);
        pid_t pid[N];
        for (int i = 0; i < N; i++)
            if ((pid[i] = fork()) == 0) {
                char me = (char)('a' + i);
                fz_status rc = fio_put_if_absent(NULL, path_of(name), &me, 1, &err);
                _exit(rc == FZ_OK ? 1 : rc == FZ_CONFLICT ? 0 : 2);
            }
        int wins = 0;
        for (int i = 0; i < N; i++) {
            int st;
            waitpid(pid[i], &st, 0);
            assert_true(WIFEXITED(st) && WEXITSTATUS(st) < 2);
            wins += WEXITSTATUS(st);
        }
        assert_int_equal(wins, 1);
    }
}

static bool note(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    assert_true(mtime_ms > 1500000000000);
    fz_buf_printf(cx, "%s:%llu ", strrchr(location, '/') + 1, (unsigned long long)size);
    return true;
}
static bool only_first(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)location, (void)size, (void)mtime_ms;
    ++*(int *)cx;
    return false;
}
static bool note_dir(void *cx, const char *name) {
    fz_buf_printf(cx, "%s ", name);
    return true;
}
static void listing(const char *base, const char *want_dirs_a, const char *want_dirs_b) {
    fz_arena *a = fz_arena_new();
    OK(fio_put(NULL, fio_join(a, base, "l/one/a"), "1", 1, &err));
    OK(fio_put(NULL, fio_join(a, base, "l/one/deep/b"), "12", 2, &err));
    OK(fio_put(NULL, fio_join(a, base, "l/two/c"), "", 0, &err));
    OK(fio_put(NULL, fio_join(a, base, "lother"), "", 0, &err));
    fz_buf b = {0};
    OK(fio_list(NULL, fio_join(a, base, "l"), note, &b, &err));
    const char *s = fz_buf_cstr(&b);
    assert_int_equal(strlen(s), strlen("a:1 b:2 c:0 "));
    assert_true(strstr(s, "a:1 ") && strstr(s, "b:2 ") && strstr(s, "c:0 "));
    int calls = 0;
    OK(fio_list(NULL, fio_join(a, base, "l"), only_first, &calls, &err));
    assert_int_equal(calls, 1);
    b.len = 0;
    OK(fio_list_dirs(NULL, fio_join(a, base, "l"), note_dir, &b, &err));
    s = fz_buf_cstr(&b);
    assert_true(strcmp(s, want_dirs_a) == 0 || strcmp(s, want_dirs_b) == 0);
    b.len = 0;
    OK(fio_list(NULL, fio_join(a, base, "nothing"), note, &b, &err));
    OK(fio_list_dirs(NULL, fio_join(a, base, "nothing"), note_dir, &b, &err));
    assert_int_equal(b.len, 0);
    fz_buf_free(&b);
    fz_arena_free(a);
}
static void test_listing(void **state) {
    (void)state;
    char temp[128];
    snprintf(temp, sizeof temp, "%s/l/one/" FIO_TEMP_PREFIX "0", root);
    OK(fio_put(NULL, temp, "left over", 9, &err));
    listing(uri, "one two ", "two one ");
    listing("mem://list", "one two ", "one two ");
}

static void test_locations(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    assert_string_equal(fio_local_path("/a//b/../c"), "/a//b/../c");
    assert_string_equal(fio_local_path("file:/a b%20"), "/a b%20");
    assert_string_equal(fio_local_path("file:///a"), "/a");
    assert_string_equal(fio_local_path("file://localhost/a"), "/a");
    assert_null(fio_local_path("file://other/a"));
    assert_null(fio_local_path("file:a"));
    assert_null(fio_local_path("s3://b/a"));
    assert_null(fio_local_path("a/b"));
    assert_string_equal(fio_join(a, "file:///a/", "/b"), "file:///a/b");
    assert_string_equal(fio_join(a, "s3://b", "c"), "s3://b/c");
    assert_int_equal(fio_name_max("/a"), 255);
    assert_int_equal(fio_name_max("mem://a"), 0);
    static const char *const bad[] = {"s3://b/a", "a/b", "file://other/a", "file:a", "", "hdfs:/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(fio_delete(NULL, bad[i], &err), FZ_USER);
        assert_string_equal(err.code, "file.scheme");
    }
    char name[400];
    memset(name, 'n', 300);
    name[300] = 0;
    assert_int_equal(fio_put(NULL, path_of(name), "", 0, &err), FZ_USER);
    assert_string_equal(err.code, "file.name-too-long");
    fz_arena_free(a);
}

static void test_errno_classes(void **state) {
    (void)state;
    static const struct { int e; fz_status cls; } want[] = {{EIO, FZ_RETRY}, {ENOSPC, FZ_RETRY}, {EROFS, FZ_RETRY}, {EMFILE, FZ_RETRY}, {EDQUOT, FZ_RETRY},
        {EINTR, FZ_RETRY}, {ENOENT, FZ_USER}, {EACCES, FZ_USER}, {EEXIST, FZ_CONFLICT}, {ELOOP, FZ_FATAL}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_int_equal(fio_errno(&err, want[i].e, "write", "/some/path"), want[i].cls);
        assert_non_null(strstr(err.message, "/some/path"));
        assert_non_null(strstr(err.message, strerror(want[i].e)));
    }
    fio_errno(&err, EACCES, "write", "/x");
    assert_true(err.hint[0] != 0);
}

static void test_directory_removed_meanwhile(void **state) {
    (void)state;
    char dir[100];
    snprintf(dir, sizeof dir, "%s/gone/deep", root);
    for (int i = 0; i < 3; i++) {
        OK(fio_put(NULL, path_of("gone/deep/x"), "1", 1, &err));
        OK(fio_delete(NULL, path_of("gone/deep/x"), &err));
        assert_int_equal(rmdir(dir), 0);
    }
}

static long log_lines(const char *path) {
    fz_buf b = {0};
    long n = 0;
    OK(fio_read(NULL, path, 1 << 20, &b, &err));
    for (size_t i = 0; i < b.len; i++) n += b.data[i] == '\n';
    fz_buf_free(&b);
    return n;
}

/* What durability costs: one fsync a file and one a directory, and the chain above a new directory once. */
static void test_fsyncs_of_a_batch(void **state) {
    (void)state;
    static const struct { int dirs; long least, most; } steps[] = {{8, 8 + 8 + 3, 8 + 8 + 4}, {8, 16, 16}, {1, 9, 9}};
    char log[] = "/tmp/frazil-fsync-XXXXXX", name[64];
    close(mkstemp(log));
    setenv("FRAZIL_FAULT_LOG", log, 1);
    OK(fz_fault_arm("file.fsync:1000000:eio", &err));
    long before = 0;
    for (unsigned s = 0; s < sizeof steps / sizeof *steps; s++) {
        fio_batch *b = fio_batch_new();
        for (int i = 0; i < 8; i++) {
            fio_writer *w;
            snprintf(name, sizeof name, "sync/p=%d/f%u-%d", i % steps[s].dirs, s, i);
            OK(fio_writer_open(NULL, path_of(name), &w, &err));
            OK(fio_writer_finish_in(w, b, NULL, &err));
        }
        OK(fio_batch_sync(b, &err));
        fio_batch_free(b);
        long now = log_lines(log) - 8 * (s + 1); /* less one file.write a file */
        if (now - before < steps[s].least || now - before > steps[s].most) fail_msg("step %u: %ld fsyncs", s, now - before);
        before = now;
    }
    unlink(log);
}

static void test_directories(void **state) {
    (void)state;
    bool there;
    OK(fio_dir_exists(path_of("d1/d2"), &there, &err));
    assert_false(there);
    OK(fio_dir_make(path_of("d1/d2"), &err));
    OK(fio_dir_make(path_of("d1/d2"), &err));
    OK(fio_dir_exists(path_of("d1/d2"), &there, &err));
    assert_true(there);
    assert_int_equal(fio_dir_remove(path_of("d1"), &err), FZ_USER);
    assert_string_equal(err.code, "file.not-empty");
    OK(fio_dir_remove(path_of("d1/d2"), &err));
    OK(fio_dir_remove(path_of("d1"), &err));
    OK(fio_dir_exists(path_of("d1"), &there, &err));
    assert_false(there);
    assert_int_equal(fio_dir_make("mem://x", &err), FZ_USER);
}

static void test_lock(void **state) {
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/locks/t.lock", root);
    fio_lock *l, *l2;
    OK(fio_lock_take(path, 0, &l, &err));
    assert_int_equal(fio_lock_take(path, 5, &l2, &err), FZ_RETRY);
    assert_string_equal(err.code, "file.locked");
    fio_lock_release(l);
    OK(fio_lock_take(path, 0, &l2, &err));
    fio_lock_release(l2);
    /* A holder that dies lets go. */
    pid_t pid = fork();
    if (pid == 0) {
        fz_status rc = fio_lock_take(path, 0, &l, &err);
        _exit(rc == FZ_OK ? 0 : 1);
    }
    int st;
    waitpid(pid, &st, 0);
    assert_int_equal(st, 0);
    OK(fio_lock_take(path, 0, &l, &err));
    fio_lock_release(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_whole_objects), T(test_streaming), T(test_many_open), T(test_append_fails_whole), T(test_direct), T(test_append_takes_back), T(test_many_large), T(test_temporary_removed), T(test_each_failure), T(test_put_faults),
        T(test_put_if_absent_race), T(test_listing), T(test_locations), T(test_errno_classes), T(test_directory_removed_meanwhile), T(test_directories), T(test_lock), T(test_fsyncs_of_a_batch),
    };
    return cmocka_run_group_tests_name("fileio", tests, NULL, NULL);
}
