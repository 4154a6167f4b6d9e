/* Probe objects: put, get, list, delete where a job would write; and the directories that settings name.
 *
 * Invariants
 *  1. Nothing is left behind. That the probe can be deleted is found out before it is put: deleting an object that is not there needs the same right.
 *  2. A refusal for a key of KMS is doctor.kms, whichever request met it.
 */
#include "ops/doctor_int.h"
#include "job/records.h"
#include <stdio.h>
#include <unistd.h>

static const char payload[] = "frazil doctor\n";

typedef struct probe {
    doctor *d;
    fio *io;
    const char *location, *subject; /* of the object; of the steps */
    doc_step *put, *get, *list, *remove;
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
        doc_fail_error(d, s, e);
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

static void list_and_delete(probe *p, const char *directory) {
    doctor *d = p->d;
    fz_error e = {0};
    const char *name = strrchr(p->location, '/') + 1;
    const void *want[2] = {name, NULL};
    doc_asked(d, p->list, "ListObjectsV2 %s/", directory);
    if (fio_list(p->io, fz_arena_printf(d->a, "%s/", directory), see, want, &e) != FZ_OK) failed(p, p->list, "s3:ListBucket", &e);
    else doc_ok(d, p->list, "%s", want[1] ? "the probe is in the list" : "listed");
    if (p->put->status != OPS_STEP_OK) {
        doc_ok(d, p->remove, "allowed (of an object that is not there)");
        return;
    }
    if (fio_delete(p->io, p->location, &e) != FZ_OK) {
        failed(p, p->remove, "s3:DeleteObject", &e);
        doc_advise(d, p->remove, "remove the probe by hand: %s", p->location);
    } else doc_ok(d, p->remove, "deleted");
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

static bool is_table_bucket(const char *location) {
    const char *p = strstr(location, "://");
    if (!p) return false;
    p += 3;
    size_t n = strcspn(p, "/");
    return n > 10 && memcmp(p + n - 10, "--table-s3", 10) == 0;
}

/* ---- local files ---- */

/* The directory, or the nearest one above it that is there. */
static const char *nearest(fz_arena *a, const char *path) {
    char *p = fz_arena_strdup(a, path);
    while (*p && access(p, F_OK) != 0) {
        char *slash = strrchr(p, '/');
        if (!slash) return ".";
        if (slash == p) return "/";
        *slash = 0;
    }
    return *p ? p : ".";
}

static void local(doctor *d, doc_step *s, const char *path) {
    const char *dir = nearest(d->a, path);
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
    doc_advise(d, s, "let the user of this process (uid %d) write in %s", (int)geteuid(), dir);
}

/* ---- tables ---- */

void doc_store_probe(doctor *d, fio *io, const char *location, const char *subject, const doc_step *on) {
    const char *path = fio_local_path(location);
    if (path) {
        doc_step *s = doc_begin(d, "doctor.files", subject);
        if (!doc_blocked(d, s, on)) local(d, s, path);
        return;
    }
    if (is_table_bucket(location)) {
        table_bucket(d, io, location, subject, on);
        return;
    }
    char id[37];
    fz_uuid4(id);
    probe p = {.d = d, .io = io, .subject = subject, .location = fio_join(d->a, location, fz_arena_printf(d->a, "frazil-doctor-%s", id))};
    p.put = doc_begin(d, "doctor.s3.put", subject);
    p.get = doc_begin(d, "doctor.s3.get", subject);
    p.list = doc_begin(d, "doctor.s3.list", subject);
    p.remove = doc_begin(d, "doctor.s3.delete", subject);
    doc_step *const all[] = {p.put, p.get, p.list, p.remove};
    bool blocked = false;
    for (int i = 0; i < 4; i++) blocked |= doc_blocked(d, all[i], on);
    if (blocked) return;
    fz_error e = {0};
    doc_asked(d, p.remove, "DeleteObject %s", p.location);
    if (fio_delete(io, p.location, &e) != FZ_OK) {
        /* Without a right to delete, or without a bucket at all, a probe is not put. */
        doc_step *wrong = is_refusal(&e) ? p.remove : p.put;
        if (wrong == p.put) doc_asked(d, p.put, "%s", p.remove->asked);
        failed(&p, wrong, wrong == p.put ? "s3:PutObject" : "s3:DeleteObject", &e);
        if (wrong == p.remove) doc_advise(d, wrong, "the probe was not written, since it could not have been removed");
        for (int i = 0; i < 4; i++)
            if (all[i] != wrong) (void)doc_blocked(d, all[i], wrong);
        return;
    }
    put_and_get(&p);
    list_and_delete(&p, fz_arena_strndup(d->a, p.location, (size_t)(strrchr(p.location, '/') - p.location)));
}

/* ---- directories of the settings ---- */

/* One step for all four requests. */
static void directory(doctor *d, const char *code, const char *location, doc_catalog *c, const fz_error *why) {
    const char *path = fio_local_path(location);
    bool far = !path && strstr(location, "://");
    if (far && c->io && !c->need) doc_settings_ground(d, c);
    doc_step *s = doc_begin(d, code, location);
    if (doc_blocked(d, s, far ? c->store : NULL)) return;
    if (!far) {
        local(d, s, path ? path : location);
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
    doc_store_probe(&inner, c->io, location, location, NULL);
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
}

void doc_directories(doctor *d) {
    const conf *s = d->plan->settings;
    const char *checkpoint = conf_get(s, "execution.checkpointing.dir"), *savepoint = conf_get(s, "execution.checkpointing.savepoint-dir");
    doc_catalog c = {0};
    fz_error e = {0};
    if (job_settings_store(s, &c.io, &e) != FZ_OK) c.io = NULL;
    if (checkpoint && *checkpoint) directory(d, "doctor.checkpoint-dir", checkpoint, &c, &e);
    if (savepoint && *savepoint) directory(d, "doctor.savepoint-dir", savepoint, &c, &e);
    if (conf_is(s, "frazil.on-row-error", "dead-letter")) {
        const char *letters = conf_get(s, "frazil.dead-letter.path");
        directory(d, "doctor.dead-letters", letters && *letters ? letters : fz_arena_printf(d->a, "%s/dead-letter", conf_get(s, "frazil.state.dir")), &c, &e);
    }
    fio_unref(c.io);
}
