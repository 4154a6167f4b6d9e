/* Where writers keep what is not in memory: a directory of this process's own in s3.staging-dir, and the removal of what killed processes left there.
 *
 *     <staging-dir>/.frazil-s3-<random>/lock          held locked (flock) as long as the store lives
 *     <staging-dir>/.frazil-s3-<random>/<writer>      a staging file, 0600
 *
 * Invariants
 *  1. A directory whose lock can be taken has no owner: its process is gone, however it died. Only such directories, of our own user, are removed.
 *  2. A directory counts as made only when its lock is held and its lock file still has its name, so that nobody removes it in between.
 * Threads: any.
 */
#include "fileio/fileio_int.h"
#include "fileio/s3_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define STAGE_PREFIX FIO_TEMP_PREFIX "s3-"

/* Removes the directory `name` in base if nobody holds it. */
static void remove_stale(int base, const char *name) {
    struct stat st;
    int dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) return;
    int lock = fstat(dir, &st) == 0 && st.st_uid == geteuid() ? openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        DIR *d = fdopendir(dup(dir));
        unsigned n = 0;
        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] != '.' && strcmp(e->d_name, "lock") != 0) n += unlinkat(dir, e->d_name, 0) == 0;
        if (d) closedir(d);
        unlinkat(dir, "lock", 0);
        unlinkat(base, name, AT_REMOVEDIR);
        if (n > 0) fz_log(FZ_LOG_INFO, "s3.staging-removed", FZ_KV("directory", "%s", name), FZ_KV("files", "%u", n), FZ_KV("reason", "%s", "their process is gone"), NULL);
    }
    if (lock >= 0) close(lock);
    close(dir);
}

static void remove_all_stale(const char *base) {
    DIR *d = opendir(base);
    for (struct dirent *e; d && (e = readdir(d));)
        if (fz_starts(e->d_name, STAGE_PREFIX)) remove_stale(dirfd(d), e->d_name);
    if (d) closedir(d);
}

/* 0 and *lock, or errno; EAGAIN: somebody took the directory for a stale one before it was locked. */
static int make(const char *dir, int *lock) {
    struct stat st;
    if (mkdir(dir, 0700) != 0) return errno;
    char *file = fz_asprintf("%s/lock", dir);
    *lock = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    fz_free(file);
    if (*lock < 0) return errno == ENOENT ? EAGAIN : errno;
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0 && fstat(*lock, &st) == 0 && st.st_nlink == 1) return 0;
    close(*lock);
    return EAGAIN;
}

fz_status s3_stage_open(s3_store *s, const char **dir, fz_error *err) {
    pthread_mutex_lock(&s->lock);
    int e = 0;
    for (int tries = 0; !s->stage_dir && tries < 4; tries++) {
        char *path = fz_asprintf("%s/" STAGE_PREFIX "%016llx", s->c.staging_dir, (unsigned long long)fio_tag());
        e = fio_dirs_make(path);
        if (e == 0) e = make(path, &s->stage_lock);
        if (e == 0) {
            s->stage_dir = path;
            remove_all_stale(s->c.staging_dir);
            break;
        }
        fz_free(path);
        if (e != EAGAIN) break;
    }
    *dir = s->stage_dir;
    pthread_mutex_unlock(&s->lock);
    if (*dir) return FZ_OK;
    fz_status rc = fio_errno(err, e, "make a staging directory in", s->c.staging_dir);
    return fz_hint(err, "s3.staging-dir chooses another directory"), rc;
}

void s3_stage_close(s3_store *s) {
    if (!s->stage_dir) return;
    char *lock = fz_asprintf("%s/lock", s->stage_dir);
    unlink(lock);
    rmdir(s->stage_dir);
    close(s->stage_lock);
    fz_free(lock);
    fz_free(s->stage_dir);
}
