/* Buckets; probe objects: put, get, list, delete where a job would write; and the directories that settings name.
 *
 * Invariants
 *  1. Nothing is left behind. That the probe can be deleted is found out before it is put: deleting an object that is not there needs the same right.
 *  2. Where the job itself has no need of a right, its absence is a warning and nothing more.
 *  3. A refusal for a key of KMS is doctor.kms, whichever request met it.
 */
#include "ops/doctor_int.h"
#include "job/records.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char payload[] = "frazil doctor\n";
#define LEAST_STAGING ((uint64_t)64 << 20)

typedef struct probe {
    doctor *d;
    fio *io;
    const char *location, *subject; /* of the object; of the steps */
    doc_step *put, *get, *list, *remove;
    bool only_put;               /* the job itself needs no more */
} probe;

/* "s3://bucket/key" and kin -> the parts of an ARN. */
static const char *arn_of(doctor *d, const char *location, bool bucket_only) {
    const char *p = strstr(location, "://");
    if (!p) return location;
    p += 3;
    size_t n = strcspn(p, "/");
    return bucket_only ? fz_arena_printf(d->a, "arn:aws:s3:::%.*s", (int)n, p) : fz_arena_printf(d->a, "arn:aws:s3:::%.*s%s", (int)n, p, p[n] ? fz_arena_printf(d->a, "%.*s/*", (int)(strrchr(p + n, '/') - (p + n)), p + n) : "");
}

static bool names_kms(const fz_error *e) { return strcmp(e->code, "file.kms") == 0; }
static bool is_refusal(const fz_error *e) { return strcmp(e->code, "file.permission") == 0 || strcmp(e->code, "aws.denied") == 0; }

static void advise(probe *p, doc_step *s, const char *action, const fz_error *e) {
    doctor *d = p->d;
    bool list = strcmp(action, "s3:ListBucket") == 0;
    if (strcmp(e->code, "file.no-bucket") == 0)
        doc_advise(d, s, "the bucket does not exist: correct its name (option 'warehouse', 'location'), or aws s3api create-bucket --bucket ...");
    else if (strcmp(e->code, "aws.region") == 0)
        doc_advise(d, s, "set 'client.region' (or AWS_REGION) to the bucket's region");
    else if (is_refusal(e) && fz_starts(action, "s3tables:"))
        doc_advise(d, s, "allow %s on the table (arn:aws:s3tables:REGION:ACCOUNT:bucket/BUCKET/table/*) to the identity of doctor.identity", action);
    else if (is_refusal(e))
        doc_advise(d, s, "allow %s on %s to the identity of doctor.identity, and look for a deny in the bucket's policy%s", action, arn_of(d, p->location, list),
                 list ? ", for this prefix" : "");
}

/* A failed request: at its own step, or at doctor.kms. */
static void failed(probe *p, doc_step *s, const char *action, const fz_error *e) {
    doctor *d = p->d;
    if (doc_blame_credentials(d->outer ? d->outer : d, s, e)) return;
    if (!names_kms(e)) {
        if (p->only_put && s != p->put) doc_warn(d, s, "%s", doc_error_text(d, e));
        else doc_fail_error(d, s, e);
        advise(p, s, action, e);
        return;
    }
    doc_step *kms = doc_begin(d, "doctor.kms", p->subject);
    doc_asked(d, kms, "%s", s->asked);
    doc_fail_error(d, kms, e);
    doc_advise(d, kms, "allow kms:GenerateDataKey and kms:Decrypt on the key in the message, in the identity's policy and in the key's own; the right to S3 itself is there");
    s->status = OPS_STEP_SKIPPED;
    s->because = kms;
}

static bool see(void *cx, const char *location, uint64_t size, int64_t mtime) {
    const void **want = cx;
    (void)size, (void)mtime;
    if (!fz_ends(location, want[0])) return true;
    want[1] = location; /* seen */
    return false;
}

static void put_and_get(probe *p) {
    doctor *d = p->d;
    fz_error e = {0};
    fz_buf b = {0};
    doc_asked(d, p->put, "PutObject %s (%zu bytes)", p->location, sizeof payload - 1);
    if (fio_put(p->io, p->location, payload, sizeof payload - 1, &e) != FZ_OK) {
        failed(p, p->put, "s3:PutObject", &e);
        (void)doc_blocked(d, p->get, p->put);
        return;
    }
    doc_ok(d, p->put, "written");
    doc_asked(d, p->get, "GetObject %s", p->location);
    if (fio_read(p->io, p->location, sizeof payload, &b, &e) != FZ_OK) failed(p, p->get, "s3:GetObject", &e);
    else if (b.len != sizeof payload - 1 || memcmp(b.data, payload, b.len) != 0) doc_fail(d, p->get, "other bytes came back than were written");
    else doc_ok(d, p->get, "read, the same bytes");
    fz_buf_free(&b);
}

static void list_step(probe *p, const char *directory) {
    doctor *d = p->d;
    fz_error e = {0};
    const void *want[2] = {strrchr(p->location, '/') + 1, NULL};
    doc_asked(d, p->list, "ListObjectsV2 %s/", directory);
    if (fio_list(p->io, fz_arena_printf(d->a, "%s/", directory), see, want, &e) != FZ_OK) failed(p, p->list, "s3:ListBucket", &e);
    else doc_ok(d, p->list, "%s", want[1] ? "the probe is in the list" : "listed");
}

static void remove_step(probe *p) {
    doctor *d = p->d;
    fz_error e = {0};
    if (fio_delete(p->io, p->location, &e) != FZ_OK) {
        failed(p, p->remove, "s3:DeleteObject", &e);
        doc_advise(d, p->remove, "remove the probe by hand: %s", p->location);
    } else doc_ok(d, p->remove, "deleted");
}

static bool see_one(void *cx, const char *location, uint64_t size, int64_t mtime) {
    (void)cx, (void)location, (void)size, (void)mtime;
    return false;
}

/* ---- buckets ---- */

typedef struct doc_bucket { const char *name; const doc_step *on, *step; struct doc_bucket *next; } bucket;

static bool is_table_bucket(const char *location) {
    const char *p = strstr(location, "://");
    if (!p) return false;
    p += 3;
    size_t n = strcspn(p, "/");
    return n > 10 && memcmp(p + n - 10, "--table-s3", 10) == 0;
}

const doc_step *doc_bucket(doctor *d, fio *io, const char *location, const doc_step *on) {
    const char *p = strstr(location, "://");
    if (!p || fio_local_path(location) || !fz_starts(location, "s3") || is_table_bucket(location)) return on;
    const char *name = fz_arena_strndup(d->a, p + 3, strcspn(p + 3, "/"));
    for (bucket *b = d->buckets; b; b = b->next)
        if (b->on == on && strcmp(b->name, name) == 0) return b->step;
    doc_step *s = doc_begin(d, "doctor.s3.bucket", name);
    bucket *b = FZ_ANEW(d->a, bucket);
    *b = (bucket){name, on, s, d->buckets};
    d->buckets = b;
    fz_error e = {0};
    const char *slash = strrchr(p + 3, '/'), *directory = slash ? fz_arena_strndup(d->a, location, (size_t)(slash + 1 - location)) : fz_arena_printf(d->a, "%s/", location);
    doc_asked(d, s, "ListObjectsV2 %s", directory);
    if (doc_blocked(d, s, on)) return s;
    if (fio_list(io, directory, see_one, NULL, &e) == FZ_OK) doc_ok(d, s, "it is there");
    else if (doc_blame_credentials(d, s, &e)) return s;
    else if (strcmp(e.code, "file.no-bucket") == 0) {
        doc_fail_error(d, s, &e);
        doc_advise(d, s, "the bucket does not exist: correct its name where the script has it ('warehouse', 'location', 'path'; execution.checkpointing.dir), or aws s3api create-bucket --bucket %s", name);
    } else if (strcmp(e.code, "aws.region") == 0) {
        doc_fail_error(d, s, &e);
        doc_advise(d, s, "set 'client.region' (or AWS_REGION) to the bucket's region");
    } else doc_ok(d, s, "cannot be looked at: %s", doc_error_text(d, &e)); /* the steps below say which right is missing */
    return s;
}

/* S3 Tables have neither list nor delete: an upload that is begun and given up again leaves nothing. */
static void table_bucket(doctor *d, fio *io, const char *location, const char *subject, const doc_step *on) {
    doc_step *s = doc_begin(d, "doctor.s3.put", subject);
    char id[37];
    fz_uuid4(id);
    const char *object = fio_join(d->a, location, fz_arena_printf(d->a, "data/frazil-doctor-%s", id));
    doc_asked(d, s, "CreateMultipartUpload and AbortMultipartUpload of %s", object);
    if (doc_blocked(d, s, on)) return;
    probe p = {.d = d, .io = io, .location = object, .subject = subject};
    fz_error e = {0};
    fz_status rc = fio_try_upload(io, object, &e);
    if (rc != FZ_OK) failed(&p, s, "s3tables:PutTableData", &e);
    else doc_ok(d, s, "an upload was begun and given up again; S3 Tables offer no list and no delete, and none is asked for");
}

/* ---- local files ---- */

const char *doc_nearest(doctor *d, const char *path) {
    char *p = fz_arena_strdup(d->a, path);
    while (*p && access(p, F_OK) != 0) {
        char *slash = strrchr(p, '/');
        if (!slash) return ".";
        if (slash == p) return "/";
        *slash = 0;
    }
    return *p ? p : ".";
}

void doc_local_directory(doctor *d, doc_step *s, const char *path) {
    const char *dir = doc_nearest(d, path);
    char id[37];
    fz_uuid4(id);
    const char *object = fz_arena_printf(d->a, "%s/frazil-doctor-%s", dir, id);
    fz_error e = {0};
    fz_buf b = {0};
    bool there = strcmp(dir, path) == 0;
    doc_asked(d, s, "write, read and remove %s", object);
    if (object[0] != '/') {
        char cwd[4096];
        if (getcwd(cwd, sizeof cwd)) object = fz_arena_printf(d->a, "%s/%s", cwd, object);
    }
    fz_status rc = fio_put(NULL, object, payload, sizeof payload - 1, &e);
    if (rc == FZ_OK) rc = fio_read(NULL, object, sizeof payload, &b, &e);
    fz_error ignored;
    if (rc == FZ_OK) rc = fio_delete(NULL, object, &e);
    else (void)!fio_delete(NULL, object, &ignored);
    fz_buf_free(&b);
    if (rc == FZ_OK) {
        const char *what = there ? "written, read and removed" : "not there yet, and can be made";
        if (strcmp(s->subject, path) == 0) doc_ok(d, s, "%s", what);
        else doc_ok(d, s, "%s: %s", path, what);
        return;
    }
    doc_fail_error(d, s, &e);
    struct stat st;
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) doc_advise(d, s, "%s is a file: remove it, or name a directory", dir);
    else doc_advise(d, s, "let the user of this process (uid %d) write in %s", (int)geteuid(), dir);
}

/* ---- tables and archives ---- */

static void all_four(probe *p, const doc_step *on) {
    doctor *d = p->d;
    p->put = doc_begin(d, "doctor.s3.put", p->subject);
    p->get = doc_begin(d, "doctor.s3.get", p->subject);
    p->list = doc_begin(d, "doctor.s3.list", p->subject);
    p->remove = doc_begin(d, "doctor.s3.delete", p->subject);
    doc_step *const all[] = {p->put, p->get, p->list, p->remove};
    bool blocked = false;
    for (int i = 0; i < 4; i++) blocked |= doc_blocked(d, all[i], on);
    if (blocked) return;
    fz_error e = {0};
    doc_asked(d, p->remove, "DeleteObject %s", p->location);
    if (fio_delete(p->io, p->location, &e) != FZ_OK) {
        /* Without a right to delete, or without a bucket at all, a probe is not put. */
        doc_step *wrong = is_refusal(&e) ? p->remove : p->put;
        if (wrong == p->put) doc_asked(d, p->put, "%s", p->remove->asked);
        failed(p, wrong, wrong == p->put ? "s3:PutObject" : "s3:DeleteObject", &e);
        if (wrong == p->remove) doc_advise(d, wrong, "the probe was not written, since it could not have been removed");
        for (int i = 0; i < 4; i++)
            if (all[i] != wrong) (void)doc_blocked(d, all[i], wrong);
        return;
    }
    put_and_get(p);
    list_step(p, fz_arena_strndup(d->a, p->location, (size_t)(strrchr(p->location, '/') - p->location)));
    if (p->put->status != OPS_STEP_OK) doc_ok(d, p->remove, "allowed (of an object that is not there)");
    else remove_step(p);
}

void doc_store_probe(doctor *d, fio *io, const char *location, const char *subject, const doc_step *on) {
    const char *path = fio_local_path(location);
    if (path) {
        doc_step *s = doc_begin(d, "doctor.files", subject);
        if (!doc_blocked(d, s, on)) doc_local_directory(d, s, path);
        return;
    }
    if (is_table_bucket(location)) {
        table_bucket(d, io, location, subject, on);
        return;
    }
    char id[37];
    fz_uuid4(id);
    probe p = {.d = d, .io = io, .subject = subject, .location = fio_join(d->a, location, fz_arena_printf(d->a, "frazil-doctor-%s", id))};
    all_four(&p, doc_bucket(d, io, location, on));
}

/* Needs put only, so that a probe is an upload in parts, begun and given up, where an object could not be removed again. */
static void put_only(probe *p) {
    doctor *d = p->d;
    fz_error e = {0};
    doc_asked(d, p->put, "CreateMultipartUpload and AbortMultipartUpload of %s", p->location);
    if (fio_try_upload(p->io, p->location, &e) != FZ_OK) failed(p, p->put, "s3:PutObject", &e);
    else doc_ok(d, p->put, "an upload was begun and given up again: a probe object could not be removed (no s3:DeleteObject, which the job does not need)");
}

void doc_archive_probe(doctor *d, fio *io, const char *fixed, const char *subject, bool replayed, const doc_step *on) {
    const char *path = fio_local_path(fixed);
    char id[37];
    fz_error e = {0};
    fz_uuid4(id);
    if (path) {
        const char *slash = strrchr(path, '/');
        doc_step *s = doc_begin(d, "doctor.files", subject);
        if (!doc_blocked(d, s, on)) doc_local_directory(d, s, slash == path ? "/" : fz_arena_strndup(d->a, path, (size_t)(slash - path)));
        return;
    }
    probe p = {.d = d, .io = io, .subject = subject, .location = fz_arena_printf(d->a, "%sfrazil-doctor-%s", fixed, id), .only_put = true};
    const doc_step *bucket_step = doc_bucket(d, io, fixed, on);
    p.put = doc_begin(d, "doctor.s3.put", subject);
    if (doc_blocked(d, p.put, bucket_step)) return;
    if (fio_delete(io, p.location, &e) != FZ_OK) {
        if (!is_refusal(&e)) doc_asked(d, p.put, "DeleteObject %s", p.location);
        if (is_refusal(&e)) put_only(&p);
        else failed(&p, p.put, "s3:PutObject", &e);
        return;
    }
    p.get = doc_begin(d, "doctor.s3.get", subject);
    put_and_get(&p);
    if (replayed) p.list = doc_begin(d, "doctor.s3.list", subject);
    if (replayed && !doc_blocked(d, p.list, p.put)) list_step(&p, fz_arena_strndup(d->a, p.location, (size_t)(strrchr(p.location, '/') - p.location)));
    if (p.put->status != OPS_STEP_OK) return;
    p.remove = doc_begin(d, "doctor.s3.delete", subject);
    doc_asked(d, p.remove, "DeleteObject %s", p.location);
    remove_step(&p);
}

/* ---- directories of the settings ---- */

/* An archive's intents lie in the directory of the checkpoints. */
static bool keeps_intents(const doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_deliveries; i++) {
        const sql_table *t = d->plan->deliveries[i].target;
        const char *connector = fz_pair_get(t->options, t->n_options, "connector");
        if (connector && strcmp(connector, "firehose-s3") == 0) return true;
    }
    return false;
}

/* Of two who put the same name if it is absent, one must be told so. */
static void conditional(doctor *d, doc_step *s, fio *io, const char *location) {
    char id[37];
    fz_error e = {0}, ignored;
    fz_uuid4(id);
    const char *object = fio_join(d->a, location, fz_arena_printf(d->a, "frazil-doctor-%s", id));
    doc_asked(d, s, "PutObject %s twice, if it is absent", object);
    fz_status rc = fio_put_if_absent(io, object, payload, sizeof payload - 1, &e);
    if (rc == FZ_OK) {
        rc = fio_put_if_absent(io, object, payload, sizeof payload - 1, &e);
        if (rc == FZ_OK) rc = fz_fail(&e, FZ_USER, "file.no-conditional-writes", "the store has written the same object twice, though both requests said: if it is absent");
        else if (rc == FZ_CONFLICT) rc = FZ_OK;
    }
    (void)!fio_delete(io, object, &ignored);
    if (rc == FZ_OK) {
        doc_ok(d, s, "conditional writes are understood: an archive's intents can be kept here");
        return;
    }
    doc_fail_error(d, s, &e);
    doc_advise(d, s, "the archive keeps its intents here and needs a store with conditional writes (If-None-Match): another execution.checkpointing.dir, local or on S3");
}

/* One step for all four requests. */
static void directory(doctor *d, const char *code, const char *location, doc_catalog *c, const fz_error *why) {
    const char *path = fio_local_path(location);
    bool far = !path && strstr(location, "://");
    if (far && c->io && !c->need) doc_settings_ground(d, c);
    const doc_step *on = far && c->io ? doc_bucket(d, c->io, location, c->store) : NULL;
    doc_step *s = doc_begin(d, code, location);
    if (doc_blocked(d, s, on)) return;
    if (!far) {
        doc_local_directory(d, s, path ? path : location);
        return;
    }
    doc_asked(d, s, "PutObject, GetObject, ListObjectsV2 and DeleteObject below %s", location);
    if (!c->io) {
        doc_fail_error(d, s, why);
        return;
    }
    doctor inner = *d; /* the probe's own steps stay out of the report: the first that fails speaks for all */
    inner.outer = d;
    inner.first = NULL;
    inner.last = &inner.first;
    doc_store_probe(&inner, c->io, location, location, c->store);
    for (const doc_step *i = inner.first; i; i = i->next)
        if (i->status == OPS_STEP_SKIPPED && i->because && doc_find(d, i->because->code, i->because->subject) == i->because) {
            (void)doc_blocked(d, s, i->because);
            return;
        } else if (i->status == OPS_STEP_FAIL) {
            doc_fail(d, s, "%s: %s", i->asked, i->answer);
            doc_advise(d, s, "%s", i->advice);
            return;
        }
    doc_ok(d, s, "written, read, listed and deleted");
    if (strcmp(code, "doctor.checkpoint-dir") == 0 && keeps_intents(d)) conditional(d, s, c->io, location);
}

void doc_staging(doctor *d, const fz_pair *options, size_t n) {
    const char *given = fz_pair_get(options, n, "s3.staging-dir"), *tmp = getenv("TMPDIR"), *dir = given ? given : tmp && *tmp == '/' ? tmp : "/tmp";
    struct statvfs v;
    if (doc_find(d, "doctor.staging-dir", dir)) return;
    doc_step *s = doc_begin(d, "doctor.staging-dir", dir);
    if (doc_blocked(d, s, NULL)) return;
    doc_local_directory(d, s, dir);
    if (s->status == OPS_STEP_FAIL) {
        doc_advise(d, s, "or name another directory: 's3.staging-dir' in CREATE CATALOG, TMPDIR in the environment");
        return;
    }
    if (statvfs(doc_nearest(d, dir), &v) != 0) return;
    uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
    if (room >= LEAST_STAGING) doc_ok(d, s, "%llu MiB are free", (unsigned long long)(room >> 20));
    else {
        doc_warn(d, s, "only %llu MiB are free; files that are being written wait there, each until its parts of 32 MiB are uploaded", (unsigned long long)(room >> 20));
        doc_advise(d, s, "make room, or name another directory: 's3.staging-dir' in CREATE CATALOG, TMPDIR in the environment");
    }
}

static void state_directory(doctor *d) {
    const char *dir = conf_get(d->plan->settings, "frazil.state.dir"), *checkpoint = conf_get(d->plan->settings, "execution.checkpointing.dir");
    bool needed = d->plan->n_deliveries && !(checkpoint && *checkpoint);
    if (!d->plan->n_deliveries && !d->plan->n_inserts) return;
    doc_step *s = doc_begin(d, "doctor.state-dir", dir);
    if (doc_blocked(d, s, NULL)) return;
    doc_local_directory(d, s, dir);
    if (s->status == OPS_STEP_FAIL && !needed) { /* of a job without deliveries of its own positions nothing must be there */
        s->status = OPS_STEP_WARN;
        doc_ok(d, s, "the job runs without it, and `frazil drain` does not find the job");
    } else if (needed) doc_ok(d, s, "positions and intents of deliveries are kept here: on S3 (execution.checkpointing.dir) they would outlive a lost disk");
}

void doc_directories(doctor *d) {
    const conf *s = d->plan->settings;
    const char *checkpoint = conf_get(s, "execution.checkpointing.dir"), *savepoint = conf_get(s, "execution.checkpointing.savepoint-dir");
    doc_catalog c = {0};
    fz_error e = {0};
    if (job_settings_store(s, &c.io, &e) != FZ_OK) c.io = NULL;
    state_directory(d);
    if (checkpoint && *checkpoint) directory(d, "doctor.checkpoint-dir", checkpoint, &c, &e);
    if (savepoint && *savepoint) directory(d, "doctor.savepoint-dir", savepoint, &c, &e);
    if (conf_is(s, "frazil.on-row-error", "dead-letter")) {
        const char *letters = conf_get(s, "frazil.dead-letter.path");
        directory(d, "doctor.dead-letters", letters && *letters ? letters : fz_arena_printf(d->a, "%s/dead-letter", conf_get(s, "frazil.state.dir")), &c, &e);
    }
    fio_unref(c.io);
}
