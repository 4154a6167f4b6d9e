/* Draining: take in nothing more, deliver all that is there, say what became of it, end. See job_int.h.
 *
 *     SIGUSR1 (frazil drain) -> sources are given their present end as a stop -> the job runs to it like a bounded one -> report
 *
 * While it runs a job has <state dir>/<pipeline>.run, by which `frazil drain` finds it (written again and again until the disk takes it); at the end of a drain it leaves <pipeline>.drained.
 * Spools of the state directory that nobody has open and that hold records belong to tables that the script does not read, or does not name so any more: who was acknowledged believes them safe, so that they are
 * told of at the start, and a drain with them is not clean.
 */
#include "job/job_int.h"
#include "spool/spool.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int requests;
void job_request_drain(void) { atomic_store(&requests, 1); }
bool job_drain_requested(void) { return atomic_load(&requests); }

char *job_run_file(const char *state_dir, const char *pipeline, const char *ending) {
    fz_buf b = {0};
    fz_buf_printf(&b, "%s/", state_dir);
    for (const char *p = pipeline; *p; p++) { /* a name is one component */
        if (*p == '/' || *p == '%' || (*p == '.' && p == pipeline)) fz_buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*p);
        else fz_buf_putc(&b, *p);
    }
    fz_buf_puts(&b, ending);
    return fz_buf_steal(&b);
}

static bool write_file(const char *path, json_t *j, bool quiet) {
    char *text = json_dumps(j, JSON_INDENT(2)), *tmp = fz_asprintf("%s.tmp", path);
    FILE *f = fopen(tmp, "we");
    bool ok = f && fputs(text, f) >= 0;
    if (f) ok &= fclose(f) == 0;
    ok = ok && rename(tmp, path) == 0;
    if (!ok && !quiet) fz_log(FZ_LOG_WARN, "job.run-file", FZ_KV("path", "%s", path), FZ_KV("error", "%s", strerror(errno)), NULL);
    if (!ok) unlink(tmp);
    fz_free(tmp);
    free(text); /* jansson's own allocation */
    json_decref(j);
    return ok;
}

/* Together with the pid, the time at which the process began tells it from a later one of the same number (proc(5), stat, field 22). */
uint64_t job_process_start(int64_t pid) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *p = strrchr(text, ')');
    if (p && (p[2] == 'Z' || p[2] == 'X')) return 0; /* it has ended; only its parent has not asked yet */
    for (int field = 2; p && field < 22; field++) p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

bool job_run_file_write(const job *j, bool quiet) {
    const char *dir = conf_get(j->spec->settings, "frazil.state.dir");
    char *path = job_run_file(dir, j->spec->name, ".run"), *old = job_run_file(dir, j->spec->name, ".drained");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST && !quiet) fz_log(FZ_LOG_WARN, "job.run-file", FZ_KV("path", "%s", dir), FZ_KV("error", "%s", strerror(errno)), NULL);
    unlink(old);
    bool ok = write_file(path, json_pack("{s:s, s:s, s:I, s:I}", "pipeline", j->spec->name, "run-id", j->run_id, "pid", (json_int_t)getpid(), "started", (json_int_t)job_process_start(getpid())), quiet);
    fz_free(path);
    fz_free(old);
    return ok;
}

/* ---- spools that nobody reads ---- */
typedef struct unread { json_t *all; uint64_t n; } unread;
static void note_unread(void *cx, const char *dir, uint64_t records) {
    unread *u = cx;
    u->n += records;
    json_array_append_new(u->all, json_pack("{s:s, s:I}", "directory", dir, "records", (json_int_t)records));
    fz_log(FZ_LOG_WARN, "spool.unread", FZ_KV("dir", "%s", dir), FZ_KV("records", "%" PRIu64, records), FZ_KV("reason", "%s", "it holds acknowledged records, and no table of this job has its name"),
           FZ_KV("hint", "%s", "name the table as before, or drain with the old script"), NULL);
}
/* The job's own spools are open, and so not among them. */
static unread find_unread(const job *j) {
    unread u = {json_array(), 0};
    spool_unread(conf_get(j->spec->settings, "frazil.state.dir"), note_unread, &u);
    return u;
}
void job_tell_unread(const job *j) { json_decref(find_unread(j).all); }

void job_run_file_remove(const job *j) {
    char *path = job_run_file(conf_get(j->spec->settings, "frazil.state.dir"), j->spec->name, ".run");
    unlink(path);
    fz_free(path);
}

void job_drain_begin(job *j) {
    fz_error err;
    j->draining = true;
    fz_log(FZ_LOG_INFO, "drain.begin", FZ_KV("pipeline", "%s", j->spec->name), NULL);
    job_park(j);
    for (uint32_t i = 0; i < j->n_sources; i++) {
        job_source *s = j->sources[i];
        fz_status rc = src_drain(s->source, &err);
        for (int tries = 0; rc == FZ_RETRY && tries < 30 && !job_stop_over(); tries++) { /* the end of a log is to be had from its broker only */
            fz_sleep_ms(1000);
            rc = src_drain(s->source, &err);
        }
        s->bounded = true;
        if (rc == FZ_OK && s->replayable) rc = job_source_seek(j, s, &err);
        if (rc != FZ_OK) {
            (void)!fz_context(&err, "drain");
            job_fail(j, &err);
        }
    }
    job_unpark(j);
}

/* Records of s that are taken in and not committed, times the INSERTs that read them. */
static uint64_t left_of(const job *j, const job_sink *s, uint64_t buffered) {
    uint64_t left = 0;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            const job_split_state *st = &s->splits[k][i];
            const src_split *sp = src_get_split(j->sources[k]->source, i);
            int64_t at = st->base_diverted ? st->base : st->known ? st->remembered : sp->start;
            if (sp->stop != INT64_MAX && at >= 0 && at < sp->stop) left += (uint64_t)(sp->stop - at) * s->paths_of[k];
        }
    return left + (s->replayable ? 0 : buffered);
}

fz_status job_drain_report(job *j, fz_status rc, fz_error *err) {
    static const char *const names[] = {"delivered", "waiting", "stopped", "waiting"};
    json_t *all = json_array();
    uint64_t left = 0;
    bool stopped = false;
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        const job_tally t = job_tally_get(&s->tally);
        uint64_t n = left_of(j, s, t.buffered);
        left += n;
        stopped |= s->status != SINK_RUNNING;
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "delivery", s->text, "state", n ? "left" : names[s->status], "delivered", (json_int_t)t.delivered, "filtered",
                                             (json_int_t)t.filtered, "rejected", (json_int_t)t.rejected, "unparseable", (json_int_t)t.unparseable, "diverted", (json_int_t)t.diverted, "left", (json_int_t)n));
        fz_log(n ? FZ_LOG_ERROR : FZ_LOG_INFO, "drain.delivery", FZ_KV("delivery", "%s", s->text), FZ_KV("delivered", "%" PRIu64, t.delivered), FZ_KV("rejected", "%" PRIu64, t.rejected),
               FZ_KV("left", "%" PRIu64, n), NULL);
    }
    unread u = find_unread(j);
    bool clean = !left && !u.n && !stopped && rc == FZ_OK && !atomic_load(&j->failed);
    char *path = job_run_file(conf_get(j->spec->settings, "frazil.state.dir"), j->spec->name, ".drained");
    (void)write_file(path, json_pack("{s:s, s:s, s:b, s:o, s:o}", "pipeline", j->spec->name, "run-id", j->run_id, "drained", clean, "deliveries", all, "unread", u.all), false);
    fz_free(path);
    if (clean || rc != FZ_OK) return rc;
    if (!left && !stopped && u.n) {
        fz_fail(err, FZ_FATAL, "drain.unread", "%" PRIu64 " records are left in spools that no table of this job reads", u.n);
        return fz_hint(err, "name the table as before, or drain with the old script; the log names the directories (spool.unread)");
    }
    fz_fail(err, FZ_FATAL, "drain.left", "the drain has ended with %" PRIu64 " records that are not delivered", left);
    return fz_hint(err, "start the job again: it goes on where its deliveries stand");
}
