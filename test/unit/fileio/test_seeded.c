/* The seeded faulty store: faults come, the same for the same seed, and what is acknowledged is there. */
#include "fileio/fileio.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { N = 400 };

/* One process: N puts under faults. The outcome of each as a letter; checks what is promised. */
static int run(const char *dir, char out[N + 1]) {
    int bad = 0;
    for (int i = 0; i < N; i++) {
        char path[128], text[16];
        fz_error err;
        snprintf(path, sizeof path, "%s/f%d", dir, i);
        size_t n = (size_t)snprintf(text, sizeof text, "%d", i);
        fz_status rc = fio_put_if_absent(NULL, path, text, n, &err);
        out[i] = rc == FZ_OK ? '.' : rc == FZ_RETRY ? 'r' : rc == FZ_UNKNOWN ? 'u' : 'X';
        fz_buf b = {0};
        bool there = fio_read(NULL, path, 100, &b, &err) == FZ_OK;
        if (there && (b.len != n || memcmp(b.data, text, n) != 0)) bad++; /* never half an object */
        if (rc == FZ_OK && !there) bad++;
        if (rc == FZ_RETRY && there) bad++;
        fz_buf_free(&b);
    }
    return bad;
}

static void test_seeded(void **state) {
    (void)state;
    char root[] = "/tmp/frazil-seeded-XXXXXX", first[N + 1] = {0}, again[N + 1] = {0};
    assert_non_null(mkdtemp(root));
    setenv("FRAZIL_STORE_SEED", "42:150", 1);
    fz_log_set_level(FZ_LOG_OFF);
    for (int k = 0; k < 2; k++) {
        int fd[2];
        assert_int_equal(pipe(fd), 0);
        pid_t pid = fork();
        if (pid == 0) { /* the count of calls is the process's */
            char out[N + 1] = {0}, dir[64];
            snprintf(dir, sizeof dir, "%s/%d", root, k);
            int bad = run(dir, out);
            ssize_t w = write(fd[1], out, N);
            _exit(bad || w != N);
        }
        close(fd[1]);
        char *to = k ? again : first;
        for (ssize_t got = 0, r; got < N && (r = read(fd[0], to + got, (size_t)(N - got))) > 0;) got += r;
        close(fd[0]);
        int st;
        waitpid(pid, &st, 0);
        assert_int_equal(st, 0);
    }
    assert_string_equal(first, again);
    assert_non_null(strchr(first, '.'));
    assert_non_null(strchr(first, 'r'));
    assert_null(strchr(first, 'X'));
    fz_error err;
    assert_int_equal(fio_delete_tree(NULL, root, &err), FZ_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeded)};
    return cmocka_run_group_tests_name("seeded store", tests, NULL, NULL);
}
