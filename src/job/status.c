/* A thread that writes the metrics once a second, and the live line of a job on a terminal. See job_int.h.
 *
 * The control thread may wait long for a catalog: ages and lags go on rising meanwhile, and a scrape tells them.
 */
#include "job/job_int.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 1000 };
struct job_status {
    job *j;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, quit;            /* quit: under lock */
    bool live;
    const char *metrics_path;      /* or NULL */
    fz_log_limit metrics_limit;
    int64_t last_ns;
    uint64_t last_records;
};

static void erase_line(void) {
    ssize_t w = write(STDERR_FILENO, "\r\x1b[K", 4);
    (void)w; /* the terminal is gone: so is the line */
}

static void write_file(job_status *st, const fz_buf *b) {
    char *tmp = fz_asprintf("%s.tmp", st->metrics_path);
    FILE *f = fopen(tmp, "we");
    bool ok = f && fwrite(b->data, 1, b->len, f) == b->len;
    if (f) ok &= fclose(f) == 0;
    ok = ok && rename(tmp, st->metrics_path) == 0;
    uint64_t suppressed;
    if (!ok && fz_log_allowed(&st->metrics_limit, 1, 60000, &suppressed))
        fz_log(FZ_LOG_WARN, "metrics.unwritten", FZ_KV("path", "%s", st->metrics_path), FZ_KV("error", "%s", strerror(errno)), NULL);
    fz_free(tmp);
}

/* All metrics, those at zero too; the file by rename: a reader never sees half of it. */
static void write_metrics(job_status *st) {
    uint64_t lag = 0;
    for (uint32_t i = 0; i < st->j->n_sources; i++) lag += job_lag(st->j->sources[i]);
    fz_metric_set(FZ_M_LAG, lag);
    fz_metric_set(FZ_M_MEMORY, fz_rss());
    job_publisher_take(st->j->publisher, st->j);
    if (!st->metrics_path && !st->j->metrics) return;
    fz_buf b = {0};
    job_metrics_make(st->j, &b);
    job_metrics_set(st->j->metrics, &b);
    if (st->metrics_path) write_file(st, &b);
    fz_buf_free(&b);
}

static void clock_text(uint64_t ms, char out[16]) {
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    if (!ms || !localtime_r(&s, &tm)) snprintf(out, 16, "none");
    else strftime(out, 16, "%H:%M:%S", &tm);
}

static void write_line(job_status *st) {
    int64_t now = fz_mono_ns();
    uint64_t records = fz_metric_get(FZ_M_RECORDS_IN);
    char at[16], line[160];
    clock_text(fz_metric_get(FZ_M_LAST_COMMIT), at);
    int n = snprintf(line, sizeof line, "\r\x1b[K%.0f rows/s | lag %" PRIu64 " | last commit %s | rejected %" PRIu64 " | unparseable %" PRIu64 " | %" PRIu64 " MB",
                     (double)(records - st->last_records) * 1e9 / (double)(now - st->last_ns), fz_metric_get(FZ_M_LAG), at, fz_metric_get(FZ_M_ROWS_REJECTED),
                     fz_metric_get(FZ_M_ROWS_UNPARSEABLE), fz_metric_get(FZ_M_MEMORY) >> 20);
    ssize_t w = write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
    (void)w;
    st->last_ns = now;
    st->last_records = records;
}

/* false: the end. */
static bool wait_tick(job_status *st) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += TICK_MS / 1000;
    pthread_mutex_lock(&st->lock);
    while (!st->quit && pthread_cond_timedwait(&st->wake, &st->lock, &until) == 0) {}
    bool quit = st->quit;
    pthread_mutex_unlock(&st->lock);
    return !quit;
}

static void *status_main(void *arg) {
    job_status *st = arg;
    while (wait_tick(st)) {
        write_metrics(st);
        if (st->live) write_line(st);
    }
    return NULL;
}

job_status *job_status_new(job *j) {
    job_status *st = FZ_NEW(job_status);
    st->j = j;
    const conf *c = j->spec->settings;
    st->live = conf_is(c, "frazil.status", "always") || (conf_is(c, "frazil.status", "auto") && isatty(STDERR_FILENO));
    st->metrics_path = conf_get(c, "frazil.metrics.path");
    pthread_condattr_t mono;
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_mutex_init(&st->lock, NULL);
    pthread_cond_init(&st->wake, &mono);
    pthread_condattr_destroy(&mono);
    write_metrics(st);
    st->last_ns = fz_mono_ns();
    st->last_records = fz_metric_get(FZ_M_RECORDS_IN);
    if (st->live) fz_log_set_hook(erase_line);
    st->started = pthread_create(&st->thread, NULL, status_main, st) == 0;
    if (!st->started) fz_log(FZ_LOG_ERROR, "metrics.no-thread", FZ_KV("reason", "%s", "metrics and the live line stand still: a thread could not be started"), NULL);
    return st;
}

void job_note_stands(const job *j, job_sink *s) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < j->n_sources; k++) n += s->splits[k] && j->sources[k]->replayable ? s->n_splits[k] : 0;
    job_stand *v = fz_calloc(n + 1, sizeof *v), *old;
    n = 0;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) v[n++] = (job_stand){j->sources[k], i, s->splits[k][i].base};
    pthread_mutex_lock(&s->stand_lock);
    old = s->stands;
    s->stands = v;
    s->n_stands = n;
    pthread_mutex_unlock(&s->stand_lock);
    fz_free(old);
}

uint64_t job_lag(const job_source *src) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < atomic_load(&src->positioned); i++) n += src_behind(src->source, i, -1);
    return n;
}
uint64_t job_sink_lag(job_sink *s) {
    uint64_t n = 0;
    pthread_mutex_lock(&s->stand_lock);
    for (uint32_t i = 0; i < s->n_stands; i++)
        if (s->stands[i].at >= 0) n += src_behind(s->stands[i].source->source, s->stands[i].split, s->stands[i].at);
    pthread_mutex_unlock(&s->stand_lock);
    return n;
}

void job_status_free(job_status *st) {
    if (!st) return;
    pthread_mutex_lock(&st->lock);
    st->quit = true;
    pthread_cond_signal(&st->wake);
    pthread_mutex_unlock(&st->lock);
    if (st->started) pthread_join(st->thread, NULL);
    write_metrics(st); /* the last state stays for who looks later */
    if (st->live) {
        erase_line();
        fz_log_set_hook(NULL);
    }
    pthread_mutex_destroy(&st->lock);
    pthread_cond_destroy(&st->wake);
    fz_free(st);
}
