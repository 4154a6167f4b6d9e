/* `frazil replay ERROR_PREFIX -f job.sql`: brings in what the script's job gave up, once. */
#include "cli/cli_int.h"
#include "job/job.h"
#include "job/replay.h"
#include <inttypes.h>
#include <stdio.h>

typedef struct tally { bool as_json; uint64_t n[JOB_REPLAY_UNNAMED + 1], rows; } tally;

static const char *const names[] = {"replayed", "done", "failed", "waiting", "other", "elsewhere", "unnamed"};

static void put(fz_buf *b, const char *key, const char *value) {
    fz_buf_printf(b, ",\"%s\":", key);
    fz_buf_json(b, value, strlen(value));
}

static void put_json(const job_replay_object *o) {
    fz_buf b = {0};
    fz_buf_printf(&b, "{\"state\":\"%s\"", names[o->state]);
    put(&b, "object", o->object);
    if (o->target) put(&b, "table", o->target);
    if (o->state == JOB_REPLAY_DONE || o->state == JOB_REPLAY_FAILED || o->state == JOB_REPLAY_BEFORE || o->state == JOB_REPLAY_OTHER) fz_buf_printf(&b, ",\"rows\":%" PRIu64, o->rows);
    if (o->state == JOB_REPLAY_DONE)
        fz_buf_printf(&b, ",\"added\":%" PRIu64 ",\"filtered\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"unparseable\":%" PRIu64, o->added, o->filtered, o->rejected, o->unparseable);
    if (o->err) put(&b, "code", o->err->code), put(&b, "message", o->err->message), put(&b, "hint", o->err->hint);
    fz_buf_puts(&b, "}\n");
    fwrite(b.data, 1, b.len, stdout);
    fz_buf_free(&b);
}

static void tell(void *cx, const job_replay_object *o) {
    tally *t = cx;
    t->n[o->state]++;
    t->rows += o->added;
    if (t->as_json) {
        put_json(o);
        return;
    }
    printf("%-8s %s", names[o->state], o->object);
    switch (o->state) {
    case JOB_REPLAY_DONE:
        printf("  into %s: %" PRIu64 " rows given up, %" PRIu64 " added, %" PRIu64 " filtered, %" PRIu64 " rejected, %" PRIu64 " unparseable\n", o->target, o->rows, o->added, o->filtered, o->rejected, o->unparseable);
        break;
    case JOB_REPLAY_BEFORE: printf("  into %s: another replay has brought its rows\n", o->target); break;
    case JOB_REPLAY_FAILED: printf("  for %s: %s [%s]\n", o->target, o->err->message, o->err->code); break;
    case JOB_REPLAY_WAITING: printf("  for %s: the table does not name it yet; the job's next commit does\n", o->target); break;
    case JOB_REPLAY_OTHER:
    case JOB_REPLAY_ELSEWHERE: printf("  for %s: %s [%s]; %s\n", o->target, o->err->message, o->err->code, o->err->hint); break;
    case JOB_REPLAY_UNNAMED: printf("  nobody names it: left alone\n"); break;
    }
}

static int run(const cli_args *a, tally *t) {
    static const ses_output none;
    conf *settings;
    fz_error err = {0};
    if (cli_load_config(a, &settings, &err) != FZ_OK) {
        cli_print_error(a->config, &err);
        return JOB_USAGE;
    }
    ses_session *s = ses_new(settings, &none);
    conf_free(settings);
    job_replay *r = job_replay_new(a->topic, tell, t);
    ses_set_replay(s, r);
    int code = cli_run_file(s, a->files[0], false);
    uint64_t n = 0;
    bool ran = code != JOB_USAGE;
    if (ran && job_replay_list(r, &n, &code, &err) != FZ_OK) {
        (void)!fz_context(&err, "listing of %s", a->topic);
        cli_print_error(NULL, &err);
        if (code == JOB_DONE) code = JOB_FAILED;
    } else if (ran && !n && code == JOB_DONE) {
        fprintf(stderr, "frazil: no error objects below %s\n", a->topic);
        code = JOB_USAGE;
    }
    ses_free(s);
    job_replay_free(r);
    return code;
}

int cli_replay(const cli_args *a) {
    if (a->format == CLI_CSV) {
        fputs("frazil: --format is text or json here\n", stderr);
        return JOB_USAGE;
    }
    tally t = {.as_json = a->format == CLI_JSON};
    int code = run(a, &t);
    if (code == JOB_USAGE || t.as_json) return code;
    uint64_t open = t.n[JOB_REPLAY_WAITING] + t.n[JOB_REPLAY_OTHER] + t.n[JOB_REPLAY_ELSEWHERE];
    if (open && !t.n[JOB_REPLAY_DONE] && !t.n[JOB_REPLAY_FAILED])
        printf("nothing could be replayed, and %" PRIu64 " objects are open: %" PRIu64 " waiting for the job to tell the table, %" PRIu64 " of another pipeline, %" PRIu64 " of a table that the script does not write into\n", open,
               t.n[JOB_REPLAY_WAITING], t.n[JOB_REPLAY_OTHER], t.n[JOB_REPLAY_ELSEWHERE]);
    else if (!t.n[JOB_REPLAY_DONE] && !t.n[JOB_REPLAY_FAILED]) puts("nothing to do");
    else printf("%" PRIu64 " objects replayed with %" PRIu64 " rows, %" PRIu64 " failed\n", t.n[JOB_REPLAY_DONE], t.rows, t.n[JOB_REPLAY_FAILED]);
    return code;
}
