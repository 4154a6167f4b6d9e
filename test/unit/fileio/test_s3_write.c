/* Streaming writes and batches to S3 against a fake: staging, parts, the end of an upload whose answers are lost, what is left behind (nothing). */
#include "s3_fake.h"
#include "unit.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MB (1u << 20)
static fz_error err;
static s3_fake *fake;
static fio *io;
static char dir[64];
static uint8_t *bytes; /* 32 MB of them */

#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s %s", #x, err.code, err.message); } while (0)
#define FAILS(x, cls, c) do { assert_int_equal((x), (cls)); assert_string_equal(err.code, (c)); } while (0)

static void use(const char *retries) {
    fio_unref(io);
    io = s3_fake_io(fake, (const char *[]){"s3.multipart.part-size-bytes", "5242880", "s3.staging-dir", dir, "s3.multipart.num-threads", "4", retries ? "s3.retry.num-retries" : NULL, retries, NULL});
}

static int setup(void **state) {
    (void)state;
    fz_log_set_level(FZ_LOG_OFF);
    if (!bytes) {
        bytes = fz_malloc(32 * MB);
        uint64_t x = 1;
        for (size_t i = 0; i < 32 * MB / 8; i++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            memcpy(bytes + i * 8, &x, 8);
        }
    }
    strcpy(dir, "/tmp/frazil-s3-XXXXXX");
    assert_non_null(mkdtemp(dir));
    fake = s3_fake_start();
    io = NULL;
    use(NULL);
    return 0;
}

/* Staging files of the store's own directory; *dirs (may be NULL): how many directories there are. */
static unsigned staged_in(uint64_t *blocks, unsigned *dirs) {
    unsigned n = 0;
    DIR *top = opendir(dir);
    if (blocks) *blocks = 0;
    if (dirs) *dirs = 0;
    for (struct dirent *e; top && (e = readdir(top));) {
        char path[400];
        if (!fz_starts(e->d_name, ".frazil-s3-")) continue;
        if (dirs) ++*dirs;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        DIR *d = opendir(path);
        for (struct dirent *x; d && (x = readdir(d));) {
            struct stat st;
            if (x->d_name[0] == '.' || strcmp(x->d_name, "lock") == 0) continue;
            if (fstatat(dirfd(d), x->d_name, &st, 0) == 0 && blocks) *blocks += (uint64_t)st.st_blocks * 512;
            n++;
        }
        if (d) closedir(d);
    }
    if (top) closedir(top);
    return n;
}
static unsigned staged(uint64_t *blocks) { return staged_in(blocks, NULL); }

static int teardown(void **state) {
    (void)state;
    fio_unref(io);
    assert_int_equal(fake->n_up, 0); /* no test leaves an upload open, */
    assert_int_equal(fake->n_part, 0);
    s3_fake_stop(fake);
    assert_int_equal(staged(NULL), 0); /* or a staging file */
    assert_int_equal(rmdir(dir), 0);
    return 0;
}

static struct { int status; const char *code, *op; int times; } fault;
static bool hit(const char *op) {
    if (fault.times <= 0 || strcmp(op, fault.op) != 0) return false;
    return fault.times--, true;
}
static bool refuse(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)rq;
    if (!hit(op)) return false;
    s3_fake_error(f, r, fault.status, fault.code);
    r->body = strcmp(rq->method, "HEAD") == 0 ? "" : fz_buf_cstr(&f->body);
    return true;
}
static void lose(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)f, (void)rq;
    if (hit(op)) r->close_before = true;
}
#define REFUSE(...) S3_FAKE_LOCKED(fake, memcpy(&fault, &(__typeof__(fault)){__VA_ARGS__}, sizeof fault); fake->before = refuse)
#define LOSE(...) S3_FAKE_LOCKED(fake, memcpy(&fault, &(__typeof__(fault)){__VA_ARGS__}, sizeof fault); fake->after = lose)

static fio_writer *open_at(const char *key) {
    fio_writer *w;
    char location[64];
    snprintf(location, sizeof location, "s3://b/%s", key);
    OK(fio_writer_open(io, location, &w, &err));
    return w;
}
static fz_status feed(fio_writer *w, size_t from, size_t to, size_t step) {
    for (size_t at = from; at < to; at += step) FZ_TRY(fio_writer_append(w, bytes + at, to - at < step ? to - at : step, &err));
    return FZ_OK;
}
static void holds(const char *key, size_t n) {
    s3_fake_object *o = s3_fake_find(fake, key);
    assert_non_null(o);
    assert_int_equal(o->n, n);
    assert_int_equal(memcmp(o->p, bytes, n), 0);
}

static unsigned parts, creates, plain, tries;
static void count(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)f, (void)rq, (void)r;
    parts += strcmp(op, "PART") == 0;
    creates += strcmp(op, "CREATE") == 0;
    plain += strcmp(op, "PUT object") == 0;
    tries++;
}

static void test_sizes(void **state) {
    (void)state;
    static const struct { size_t n, step; unsigned parts, puts; } cases[] = {
        {0, 1, 0, 1},               {1, 1, 0, 1},           {256u << 10, 1000, 0, 1},     {(256u << 10) + 1, 1000, 0, 1}, {MB, 300000, 0, 1},
        {5 * MB, 65536, 0, 1},      {5 * MB + 1, 65536, 0, 1}, {7 * MB + MB / 2 - 1, 99999, 0, 1}, {7 * MB + MB / 2, 99999, 2, 0}, {10 * MB, 3 * MB, 2, 0},
        {17 * MB + 3, 7 * MB, 4, 0}, {20 * MB, 65536, 4, 0}, {23 * MB, 23 * MB, 5, 0},
    };
    S3_FAKE_LOCKED(fake, fake->after = count);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t size = 0;
        parts = creates = plain = 0;
        fio_writer *w = open_at("k");
        OK(feed(w, 0, cases[i].n, cases[i].step));
        assert_true(fio_writer_memory(w) < (300u << 10));
        OK(fio_writer_finish(w, &size, &err));
        assert_int_equal(size, cases[i].n);
        holds("k", cases[i].n);
        assert_int_equal(parts, cases[i].parts);
        assert_int_equal(creates, cases[i].parts > 0);
        assert_int_equal(plain, cases[i].puts);
        assert_int_equal(staged(NULL), 0);
    }
}

static void test_flush(void **state) {
    (void)state;
    fio_writer *w = open_at("k");
    OK(feed(w, 0, 1000, 1000));
    OK(fio_writer_flush(w, &err));
    assert_true(fio_writer_memory(w) < 2000);
    assert_int_equal(staged(NULL), 1);
    OK(feed(w, 1000, 2000, 1000));
    OK(fio_writer_finish(w, NULL, &err));
    holds("k", 2000);
}

static size_t stored_parts(void) {
    pthread_mutex_lock(&fake->http->lock);
    size_t n = fake->n_part;
    pthread_mutex_unlock(&fake->http->lock);
    return n;
}

static void test_room_is_given_back(void **state) {
    (void)state;
    fio_writer *w = open_at("k");
    OK(feed(w, 0, 21 * MB, MB));
    for (int i = 0; i < 1000 && stored_parts() < 4; i++) fz_sleep_ms(10); /* parts go while the object grows */
    assert_int_equal(stored_parts(), 4);
    uint64_t blocks = 99 * MB;
    for (int i = 0; i < 1000 && blocks > 3 * MB; i++) {
        staged(&blocks);
        fz_sleep_ms(5);
    }
    assert_true(blocks <= 3 * MB);
    OK(fio_writer_finish(w, NULL, &err));
    holds("k", 21 * MB);
}

static void test_dead_process(void **state) {
    (void)state;
    static const char *const stale[] = {".frazil-s3-dead", ".frazil-s3-live", ".frazil-s3-unfinished", "other"};
    int held = -1;
    unsigned dirs;
    for (int i = 0; i < 4; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", dir, stale[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        for (int k = 0; k < 2 && i != 2; k++) {
            snprintf(path, sizeof path, "%s/%s/%s", dir, stale[i], k ? "lock" : "0123");
            int fd = open(path, O_CREAT | O_RDWR, 0600);
            assert_true(fd >= 0);
            if (i == 1 && k) assert_int_equal(flock(held = fd, LOCK_EX), 0);
            else close(fd);
        }
    }
    fio_writer *w = open_at("k");
    OK(feed(w, 0, MB, MB));
    assert_int_equal(staged_in(NULL, &dirs), 2); /* ours and that of the live one */
    assert_int_equal(dirs, 3);
    OK(fio_writer_finish(w, NULL, &err));
    assert_int_equal(staged_in(NULL, &dirs), 1);
    close(held);
    use(NULL); /* the directory goes with its store; the next one finds a lock that nobody holds */
    w = open_at("k");
    OK(feed(w, 0, MB, MB));
    assert_int_equal(staged_in(NULL, &dirs), 1);
    assert_int_equal(dirs, 2);
    fio_writer_abort(w);
    char path[400];
    for (int i = 2; i < 4; i++) {
        if (i == 3)
            for (int k = 0; k < 2; k++) {
                snprintf(path, sizeof path, "%s/%s/%s", dir, stale[i], k ? "lock" : "0123");
                assert_int_equal(unlink(path), 0);
            }
        snprintf(path, sizeof path, "%s/%s", dir, stale[i]);
        assert_int_equal(rmdir(path), 0);
    }
}

static void test_abort(void **state) {
    (void)state;
    fio_writer *w = open_at("k");
    OK(feed(w, 0, 1000, 1000));
    fio_writer_abort(w); /* nothing but memory */
    w = open_at("k");
    OK(feed(w, 0, MB, MB));
    fio_writer_abort(w); /* a staging file */
    for (size_t n = 8 * MB; n <= 24 * MB; n += 8 * MB) { /* parts: queued, under way, stored */
        w = open_at("k");
        OK(feed(w, 0, n, MB));
        OK(feed(w, 0, 1, 1));
        fio_writer_abort(w);
        assert_int_equal(fake->n_up, 0);
        assert_int_equal(staged(NULL), 0);
    }
    assert_int_equal(fake->n, 0);
}

static void test_part_fails(void **state) {
    (void)state;
    use("0");
    REFUSE(500, "InternalError", "PART", 1);
    fio_writer *w = open_at("k");
    size_t at = 9 * MB;
    OK(feed(w, 0, at, MB));
    fz_status rc = FZ_OK;
    for (int i = 0; i < 2000 && rc == FZ_OK; i++, at += 1024) { /* until the failure has been seen: it takes nothing, and the same call may be made again */
        OK(fio_writer_append(w, bytes + at, 1024, &err));
        rc = fio_writer_flush(w, &err);
        fz_sleep_ms(2);
    }
    FAILS(rc, FZ_RETRY, "aws.unavailable");
    OK(fio_writer_flush(w, &err));
    OK(feed(w, at, 24 * MB, MB));
    OK(fio_writer_finish(w, NULL, &err));
    holds("k", 24 * MB);
    s3_fake_drop(fake, "k");
    REFUSE(403, "AccessDenied", "PART", 99);
    w = open_at("k");
    (void)!feed(w, 0, 10 * MB, MB);
    FAILS(fio_writer_finish(w, NULL, &err), FZ_USER, "file.permission");
    assert_int_equal(fake->n, 0);
    REFUSE(403, "AccessDenied", "CREATE", 1);
    w = open_at("k");
    FAILS(feed(w, 0, 10 * MB, MB), FZ_USER, "file.permission");
    fio_writer_abort(w);
}

static fz_status write_parts(const char *key) {
    fio_writer *w = open_at(key);
    OK(feed(w, 0, 11 * MB, MB));
    return fio_writer_finish(w, NULL, &err);
}

static bool aborted_outside(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)rq, (void)r;
    if (strcmp(op, "COMPLETE") == 0 && f->n_up) s3_fake_forget(f, f->up[0].id);
    return false;
}

static void test_complete(void **state) {
    (void)state;
    REFUSE(200, "InternalError", "COMPLETE", 2); /* an error in an answer that began as 200 */
    OK(write_parts("inside"));
    holds("inside", 11 * MB);
    REFUSE(200, "EntityTooSmall", "COMPLETE", 9);
    FAILS(write_parts("small"), FZ_USER, "file.request");
    REFUSE(403, "AccessDenied", "COMPLETE", 9);
    FAILS(write_parts("denied"), FZ_USER, "file.permission");
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    LOSE(.op = "COMPLETE", .times = 1); /* it has landed; the next try finds no upload, and HEAD the object with our mark */
    OK(write_parts("lost"));
    holds("lost", 11 * MB);
    LOSE(.op = "CREATE", .times = 1); /* an upload of which we never learned the id */
    OK(write_parts("stray"));
    holds("stray", 11 * MB);
    S3_FAKE_LOCKED(fake, fake->after = NULL);
    S3_FAKE_LOCKED(fake, fake->before = aborted_outside);
    FAILS(write_parts("aborted"), FZ_RETRY, "file.no-upload");
    assert_int_equal(fake->n, 3);
}

static int heads, completes;
static bool at_work(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) { /* a store that says "done" while the first try is still at work */
    (void)rq;
    if (strcmp(op, "HEAD object") == 0 && ++heads == 3) {
        s3_fake_put(f, "late", bytes, 11 * MB)->mark = fz_strdup(f->up[0].mark);
        s3_fake_forget(f, f->up[0].id);
    }
    if (strcmp(op, "COMPLETE") != 0) return false;
    if (completes++ < 2) r->close_before = true; /* (the transport asks twice) */
    else r->body = "<CompleteMultipartUploadResult><Key>late</Key></CompleteMultipartUploadResult>";
    return true;
}

static void test_complete_at_work(void **state) {
    (void)state;
    S3_FAKE_LOCKED(fake, fake->before = at_work; heads = completes = 0);
    OK(write_parts("late"));
    assert_int_equal(heads, 3);
    holds("late", 11 * MB);
}

static bool foreign(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) { /* the upload vanishes and another's object of that size appears */
    (void)rq, (void)r;
    if (strcmp(op, "COMPLETE") == 0 && f->n_up) {
        s3_fake_put(f, "k", bytes, 11 * MB)->mark = fz_strdup("somebody else's");
        s3_fake_forget(f, f->up[0].id);
    }
    return false;
}

static bool dark(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    (void)rq;
    if (strcmp(op, "COMPLETE") == 0 && f->n_up) {
        s3_fake_put(f, "gone", bytes, 11 * MB);
        s3_fake_forget(f, f->up[0].id);
    }
    if (strcmp(op, "HEAD object") == 0) return r->status = 500, true;
    return false;
}

static void test_complete_unclear(void **state) {
    (void)state;
    S3_FAKE_LOCKED(fake, fake->before = foreign);
    FAILS(write_parts("k"), FZ_RETRY, "file.no-upload");
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    use("0");
    LOSE(.op = "COMPLETE", .times = 99); /* each answer is lost, but HEAD tells */
    OK(write_parts("told"));
    S3_FAKE_LOCKED(fake, fake->after = NULL);
    S3_FAKE_LOCKED(fake, fake->before = dark); /* even that is not to be had: nobody knows the name, so it is deleted and can be tried again */
    FAILS(write_parts("gone"), FZ_RETRY, "file.no-upload");
    assert_null(s3_fake_find(fake, "gone"));
}

static void test_put_fails(void **state) {
    (void)state;
    use("0");
    REFUSE(500, "InternalError", "PUT object", 1);
    fio_writer *w = open_at("k");
    OK(feed(w, 0, 1000, 1000));
    FAILS(fio_writer_finish(w, NULL, &err), FZ_RETRY, "aws.unavailable");
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    for (size_t n = 1000; n <= MB; n += MB - 1000) { /* from memory, and from the staging file */
        LOSE(.op = "PUT object", .times = 2); /* (the transport asks twice) it is there, but we must say that it is not */
        w = open_at("k");
        OK(feed(w, 0, n, n));
        FAILS(fio_writer_finish(w, NULL, &err), FZ_RETRY, "aws.unavailable");
        assert_int_equal(fake->n, 0);
    }
    S3_FAKE_LOCKED(fake, fake->after = NULL);
    use("0");
    rmdir(dir); /* the staging directory is made when it is missing */
    w = open_at("k");
    OK(feed(w, 0, MB, MB));
    OK(fio_writer_finish(w, NULL, &err));
    OK(fz_fault_arm("file.write:1:enospc", &err));
    w = open_at("k");
    FAILS(feed(w, 0, MB, MB), FZ_RETRY, "file.no-space");
    assert_non_null(strstr(err.hint, "s3.staging-dir"));
    OK(feed(w, 0, MB, MB));
    OK(fio_writer_finish(w, NULL, &err));
    holds("k", MB);
    OK(fz_fault_arm("file.write:1:eio", &err));
    tries = 0;
    S3_FAKE_LOCKED(fake, fake->after = count);
    FAILS(fio_put(io, "s3://b/x", "x", 1, &err), FZ_RETRY, "file.io");
    assert_int_equal(tries, 0);
    OK(fz_fault_arm(NULL, &err));
}

/* ---- credentials that end in the middle of an upload ---- */

static unsigned vended, expired_seen;
static fz_status vend(void *cx, fz_arena *a, aws_credentials *out, fz_error *e) {
    (void)cx, (void)e;
    unsigned n = ++vended;
    *out = (aws_credentials){.access_key = fz_arena_printf(a, "AKIDVENDED%u", n), .secret_key = "hush", .token = fz_arena_printf(a, "token%u", n), .source = "a catalog"};
    return FZ_OK;
}
static bool expire(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) { /* the first ones end with the third part, the second ones with the last call */
    char v[512], part[8] = "";
    if (!http_fake_header(rq, "authorization", v, sizeof v)) return false;
    s3_fake_query(rq->target, "partNumber", part, sizeof part);
    bool first = strstr(v, "AKIDVENDED1/") != NULL, second = strstr(v, "AKIDVENDED2/") != NULL;
    if (!(first && atoi(part) >= 3) && !(first && strcmp(op, "COMPLETE") == 0) && !(second && strcmp(op, "COMPLETE") == 0)) return false;
    expired_seen++;
    s3_fake_error(f, r, 400, "ExpiredToken");
    r->body = fz_buf_cstr(&f->body);
    return true;
}

static void test_credentials_end(void **state) {
    (void)state;
    aws_provider *p = aws_provider_custom(vend, NULL, NULL);
    fio_set_provider(io, p);
    aws_provider_unref(p);
    S3_FAKE_LOCKED(fake, fake->before = expire; vended = expired_seen = 0);
    fio_writer *w = open_at("k");
    OK(feed(w, 0, 24 * MB, MB));
    OK(fio_writer_finish(w, NULL, &err));
    holds("k", 24 * MB);
    assert_int_equal(vended, 3);
    assert_true(expired_seen >= 2);
}

/* ---- batches ---- */

static fz_status batch_of(fio_batch *b, const char *prefix, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        char key[64];
        uint64_t size;
        snprintf(key, sizeof key, "%s%04u", prefix, i);
        fio_writer *w = open_at(key);
        OK(feed(w, 0, i == 7 ? 12 * MB : i * 997, 100000)); /* small, staged and in parts */
        FZ_TRY(fio_writer_finish_in(w, b, &size, &err));
        assert_int_equal(size, i == 7 ? 12 * MB : i * 997);
    }
    return FZ_OK;
}

static void test_batch(void **state) {
    (void)state;
    fio_batch *b = fio_batch_new();
    OK(fio_batch_sync(b, &err));
    for (int round = 0; round < 2; round++) {
        OK(batch_of(b, "k", 400));
        OK(fio_batch_sync(b, &err));
        assert_int_equal(fake->n, 400);
        for (unsigned i = 0; i < 400; i++) {
            char key[64];
            snprintf(key, sizeof key, "k%04u", i);
            holds(key, i == 7 ? 12 * MB : i * 997);
        }
    }
    OK(batch_of(b, "dropped", 20));
    fio_batch_free(b); /* what was not synced goes */
    assert_int_equal(fake->n, 400);
}

static bool refuse_two(s3_fake *f, const char *op, const http_seen *rq, http_reply *r) {
    bool a = strstr(rq->target, "k0005") != NULL, b = strstr(rq->target, "k0009") != NULL;
    if (strcmp(op, "PUT object") != 0 || (!a && !b)) return false;
    s3_fake_error(f, r, 403, a ? "AccessDenied" : "InvalidRequest");
    r->body = fz_buf_cstr(&f->body);
    r->delay_ms = a ? 60 : 0;
    return true;
}

static void test_batch_fails(void **state) {
    (void)state;
    fio_batch *b = fio_batch_new();
    use("0");
    S3_FAKE_LOCKED(fake, fake->before = refuse_two);
    fz_status rc = batch_of(b, "k", 12);
    if (rc == FZ_OK) rc = fio_batch_sync(b, &err);
    else assert_int_not_equal(fio_batch_sync(b, &err), FZ_OK);
    assert_string_equal(err.code, "file.permission"); /* k0005's, though k0009 may have failed before it */
    assert_non_null(strstr(err.message, "k0005"));
    assert_int_equal(fake->n, 0);
    S3_FAKE_LOCKED(fake, fake->before = NULL);
    OK(batch_of(b, "again", 12)); /* it is empty again */
    OK(fio_batch_sync(b, &err));
    assert_int_equal(fake->n, 12);
    fio_batch_free(b);
}

static void test_batch_mixed(void **state) {
    (void)state;
    char local[128];
    bool there;
    fio_batch *b = fio_batch_new();
    snprintf(local, sizeof local, "%s/made/x", dir);
    for (int round = 0; round < 2; round++) {
        fio_writer *w;
        if (round == 0) OK(fz_fault_arm("file.fsync:1:eio", &err)); /* the local one will fail: the remote one must go, too */
        OK(fio_writer_open(io, local, &w, &err));
        OK(fio_writer_append(w, "x", 1, &err));
        OK(fio_writer_finish_in(w, b, NULL, &err));
        w = open_at("k");
        OK(fio_writer_append(w, "x", 1, &err));
        OK(fio_writer_finish_in(w, b, NULL, &err));
        fz_status rc = fio_batch_sync(b, &err);
        OK(fz_fault_arm(NULL, &err));
        assert_int_equal(rc, round == 0 ? FZ_RETRY : FZ_OK);
        assert_int_equal(fake->n, round);
        OK(fio_exists(io, local, &there, &err));
        assert_int_equal(there, round);
    }
    fio_batch_free(b);
    OK(fio_delete_many(io, (const char *[]){local, "s3://b/k", "s3://b/nothing"}, 3, &err));
    assert_int_equal(fake->n, 0);
    snprintf(local, sizeof local, "%s/made", dir);
    OK(fio_delete_tree(NULL, local, &err));
}

/* A share of all requests fails before it is sent, the same for the same seed; what is acknowledged is there, what is not is not. */
static void seeded_run(const char *prefix, char out[101]) {
    for (int i = 0; i < 100; i++) {
        char key[32], location[64];
        snprintf(key, sizeof key, "%s%d", prefix, i);
        snprintf(location, sizeof location, "s3://b/%s", key);
        fz_status rc = fio_put(io, location, "x", 1, &err);
        out[i] = rc == FZ_OK ? '.' : rc == FZ_RETRY ? 'r' : 'X';
        if ((rc == FZ_OK) != (s3_fake_find(fake, key) != NULL)) out[i] = '!';
    }
    out[100] = 0;
}
static void test_seeded(void **state) {
    (void)state;
    char text[101];
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork(); /* the seed is read once in a process */
    if (pid == 0) {
        setenv("FRAZIL_STORE_SEED", "7:200", 1);
        fz_log_set_level(FZ_LOG_OFF);
        fake = s3_fake_start();
        io = s3_fake_io(fake, NULL);
        seeded_run("k", text);
        _exit(write(fd[1], text, 100) != 100);
    }
    close(fd[1]);
    for (ssize_t got = 0, r; got < 100 && (r = read(fd[0], text + got, (size_t)(100 - got))) > 0;) got += r;
    close(fd[0]);
    int st;
    waitpid(pid, &st, 0);
    assert_int_equal(st, 0);
    text[100] = 0;
    assert_int_equal(strspn(text, ".r"), 100);
    assert_true(strchr(text, '.') && strchr(text, 'r'));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeded), T(test_sizes),    T(test_flush),    T(test_room_is_given_back), T(test_dead_process), T(test_abort),       T(test_part_fails),
                                       T(test_complete), T(test_complete_unclear), T(test_complete_at_work), T(test_put_fails), T(test_batch),    T(test_batch_fails), T(test_batch_mixed), T(test_credentials_end)};
    return cmocka_run_group_tests_name("s3 writes", tests, NULL, NULL);
}
