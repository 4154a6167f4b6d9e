/* A home of one's own for tests: no AWS_* variable of the caller's, an empty directory as HOME, no metadata service. */
#ifndef AWS_HOME_H
#define AWS_HOME_H
#include "unit.h"
#include "aws/aws_cred_int.h"
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;
static char home_dir[64];

static int home_unlink(const char *path, const struct stat *st, int flag, struct FTW *f) {
    (void)st, (void)flag, (void)f;
    return remove(path);
}

static int home_up(void **state) {
    (void)state;
    for (bool again = true; again;) {
        again = false;
        for (char **e = environ; *e && !again; e++)
            if (strncmp(*e, "AWS_", 4) == 0) {
                char name[128];
                snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
                unsetenv(name);
                again = true;
            }
    }
    unsetenv("SSL_CERT_FILE");
    snprintf(home_dir, sizeof home_dir, "/tmp/aws-home-XXXXXX");
    assert_non_null(mkdtemp(home_dir));
    setenv("HOME", home_dir, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    return 0;
}

static int home_down(void **state) {
    (void)state;
    nftw(home_dir, home_unlink, 16, FTW_DEPTH | FTW_PHYS);
    fz_clock_fix(0);
    return 0;
}

/* Writes a file below the home; directories are made. Returns its path (static). */
static inline const char *home_file(const char *name, const char *text) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", home_dir, name);
    for (char *p = path + strlen(home_dir) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static inline aws_session *session_with(const fz_pair *o, size_t n) {
    aws_session *s = NULL;
    fz_error err = {0};
    if (aws_session_new(o, n, &s, &err) != FZ_OK) fail_msg("%s: %s (%s)", err.code, err.message, err.detail);
    return s;
}
static inline aws_session *session(void) { return session_with(NULL, 0); }

static inline void get(aws_session *s, fz_arena *a, aws_credentials *c) {
    fz_error err = {0};
    if (aws_provider_get(aws_session_provider(s), a, c, &err) != FZ_OK) fail_msg("%s: %s (%s) %s", err.code, err.message, err.detail, err.hint);
}
#endif
