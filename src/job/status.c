/* Gauges, once a second, and the live line of a job on a terminal. See job_int.h. */
#include "job/job_int.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct job_status {
    job *j;
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
    job_publisher_take(st->j->publisher, st->j);
    if (!st->metrics_path && !st->j->metrics) return;
    fz_buf b = {0};
    job_metrics_make(st->j, &b);
    job_metrics_set(st->j->metrics, &b);
    if (st->metrics_path) write_file(st, &b);
    fz_buf_free(&b);
}

job_status *job_status_new(job *j) {
    job_status *st = FZ_NEW(job_status);
    st->j = j;
    const conf *c = j->spec->settings;
    st->live = conf_is(c, "frazil.status", "always") || (conf_is(c, "frazil.status", "auto") && isatty(STDERR_FILENO));
    st->metrics_path = conf_get(c, "frazil.metrics.path");
    write_metrics(st);
    st->last_ns = fz_mono_ns();
    st->last_records = fz_metric_get(FZ_M_RECORDS_IN);
    if (st->live) fz_log_set_hook(erase_line);
    return st;
}

static void clock_text(uint64_t ms, char out[16]) {
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    if (!ms || !localtime_r(&s, &tm)) snprintf(out, 16, "none");
    else strftime(out, 16, "%H:%M:%S", &tm);
}

void job_status_tick(job_status *st) {
    int64_t now = fz_mono_ns();
    if (now - st->last_ns < 1000000000) return;
    uint64_t lag = 0, records = fz_metric_get(FZ_M_RECORDS_IN);
    for (uint32_t i = 0; i < st->j->n_sources; i++) lag += src_lag(st->j->sources[i]->source);
    fz_metric_set(FZ_M_LAG, lag);
    fz_metric_set(FZ_M_MEMORY, fz_rss());
    write_metrics(st);
    if (st->live) {
        char at[16], line[160];
        clock_text(fz_metric_get(FZ_M_LAST_COMMIT), at);
        int n = snprintf(line, sizeof line, "\r\x1b[K%.0f rows/s | lag %" PRIu64 " | last commit %s | rejected %" PRIu64 " | unparseable %" PRIu64 " | %" PRIu64 " MB",
                         (double)(records - st->last_records) * 1e9 / (double)(now - st->last_ns), lag, at, fz_metric_get(FZ_M_ROWS_REJECTED),
                         fz_metric_get(FZ_M_ROWS_UNPARSEABLE), fz_metric_get(FZ_M_MEMORY) >> 20);
        ssize_t w = write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
        (void)w;
    }
    st->last_ns = now;
    st->last_records = records;
}

void job_status_free(job_status *st) {
    if (!st) return;
    write_metrics(st); /* the last state stays for who looks later */
    if (st->live) {
        erase_line();
        fz_log_set_hook(NULL);
    }
    fz_free(st);
}
