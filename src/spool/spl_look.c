/* A spool from outside: who it is, who has it, how much is in it. Nothing is taken into use or changed. See spool.h.
 *
 * Which of its records are wanted no file of a spool that runs says: trimming goes by whole segments. At its end it leaves the number up to which all was trimmed in <dir>/trimmed, with the incarnation that
 * the number is of; after a kill that number is too low, and what is counted is the most that can be there.
 */
#include "spool/spool_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

fz_status spool_look(const char *dir, bool *found_one, char incarnation[37], uint64_t *low, fz_error *err) {
    char *path = fz_asprintf("%s/incarnation", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC), e = errno;
    size_t got = 0;
    memset(incarnation, 0, 37);
    *low = 0;
    fz_status rc = fd < 0 && e != ENOENT ? spl_fail(err, e, "read", path) : FZ_OK;
    if (fd >= 0) {
        spl_read_at(fd, 0, (uint8_t *)incarnation, 36, &got);
        close(fd);
    }
    *found_one = got == 36 && spl_looks_like_uuid(incarnation);
    DIR *d = *found_one ? opendir(dir) : NULL;
    uint64_t first, least = UINT64_MAX;
    for (struct dirent *x; d && (x = readdir(d));)
        if (spl_segment_name(x->d_name, &first) && first < least) least = first;
    if (d) closedir(d);
    spl_head h = {.after = UINT64_MAX};
    char *name = fz_asprintf("%s/%020" PRIu64 ".seg", dir, least);
    if (least != UINT64_MAX && (fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) >= 0) {
        spl_read_at(fd, 0, (uint8_t *)&h, sizeof h, &got);
        close(fd);
    }
    fz_free(name);
    if (least != UINT64_MAX) *low = spl_head_right(&h) && h.after < least ? h.after : least;
    fz_free(path);
    return rc;
}

bool spool_in_use(const char *dir) {
    char *path = fz_asprintf("%s/lock", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    fz_free(path);
    if (fd < 0) return false;
    bool used = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd); /* and lets go of the lock */
    return used;
}

/* ---- how much is in it ---- */
void spl_note_trimmed(const spool *s) {
    char text[64];
    fz_error err;
    if (!s->trim_to) return;
    int n = snprintf(text, sizeof text, "%s %020" PRIu64 "\n", s->incarnation, s->trim_to);
    (void)!spl_file_put(s, "trimmed", text, (size_t)n, &err); /* without room what is counted is too much */
}
static uint64_t trimmed_of(const char *dir, const char *incarnation) {
    char *path = fz_asprintf("%s/trimmed", dir), text[58] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t got = 0;
    uint64_t n = 0;
    if (fd >= 0) {
        spl_read_at(fd, 0, (uint8_t *)text, 57, &got);
        close(fd);
    }
    fz_free(path);
    return got == 57 && memcmp(text, incarnation, 36) == 0 && fz_parse_u64((fz_sv){text + 37, 20}, &n) ? n : 0;
}

typedef struct seen { uint64_t first; char *path; } seen;
static int by_first(const void *a, const void *b) {
    uint64_t x = ((const seen *)a)->first, y = ((const seen *)b)->first;
    return (x > y) - (x < y);
}

/* Records of the frames of one segment, numbered [from, below). */
static uint64_t count_in(const seen *g, uint64_t from, uint64_t below) {
    spl_head h;
    size_t got;
    struct stat st;
    uint64_t n = 0;
    int fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    spl_read_at(fd, 0, (uint8_t *)&h, sizeof h, &got);
    if (got == sizeof h && spl_head_right(&h) && fstat(fd, &st) == 0) {
        spl_walk w = {.fd = fd, .at = SPL_HEAD, .limit = (uint64_t)st.st_size, .seed = h.seed, .least = g->first, .most = below};
        for (spl_blob *b; (b = spl_walk_next(&w)) || w.bad_n;) {
            for (size_t at = 0; b && at < b->bytes;) {
                const spl_frame *f = (const spl_frame *)(const void *)(b->data + at);
                uint64_t lo = f->first > from ? f->first : from;
                if (f->first + f->n > lo) n += f->first + f->n - lo;
                at += f->size;
            }
            spl_blob_unref(b);
        }
    }
    close(fd);
    return n;
}

uint64_t spool_count(const char *dir) {
    bool found;
    char incarnation[37];
    uint64_t low, n = 0;
    fz_error err;
    if (spool_look(dir, &found, incarnation, &low, &err) != FZ_OK || !found) return 0;
    uint64_t from = trimmed_of(dir, incarnation);
    seen *v = NULL;
    size_t n_v = 0, cap = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        seen g = {0};
        if (!spl_segment_name(e->d_name, &g.first)) continue;
        g.path = fz_asprintf("%s/%s", dir, e->d_name);
        FZ_GROW(v, n_v, cap);
        v[n_v++] = g;
    }
    if (d) closedir(d);
    if (n_v) qsort(v, n_v, sizeof *v, by_first);
    for (size_t i = 0; i < n_v; i++) {
        uint64_t below = i + 1 < n_v ? v[i + 1].first : UINT64_MAX;
        if (below > from) n += count_in(&v[i], from, below);
    }
    for (size_t i = 0; i < n_v; i++) fz_free(v[i].path);
    fz_free(v);
    return n;
}

void spool_unread(const char *state_dir, void (*fn)(void *cx, const char *dir, uint64_t records), void *cx) {
    char *all = fz_asprintf("%s/spool", state_dir);
    DIR *d = opendir(all);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char *dir = fz_asprintf("%s/%s", all, e->d_name);
        uint64_t n = spool_in_use(dir) ? 0 : spool_count(dir);
        if (n) fn(cx, dir, n);
        fz_free(dir);
    }
    if (d) closedir(d);
    fz_free(all);
}
