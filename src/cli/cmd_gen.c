/* `frazil gen`: made-up log records on standard output, one JSON document a line, at a rate or as fast as they are taken. */
#include "cli/cli_int.h"
#include "job/job.h"
#include "source/gen_logs.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define AT_ONCE 1000 /* records in one write, when there is no rate */

static bool number(const char *text, const char *what, int64_t dflt, int64_t least, int64_t *out) {
    *out = dflt;
    if (!text || (fz_parse_i64(fz_sv_of(text), out) && *out >= least)) return true;
    fprintf(stderr, "frazil: %s is a whole number from %lld on, not %s\n", what, (long long)least, text);
    return false;
}

static bool put(const fz_buf *b) {
    for (size_t at = 0; at < b->len;) {
        ssize_t k = write(STDOUT_FILENO, b->data + at, b->len - at);
        if (k < 0 && errno == EINTR && !job_stop_requested()) continue;
        if (k <= 0) return false;
        at += (size_t)k;
    }
    return true;
}

int cli_gen(const cli_args *a) {
    src_gen_kind kind;
    int64_t count, rate, seed, done = 0;
    if (!src_gen_kind_parse(a->topic, &kind)) {
        fprintf(stderr, "frazil: gen makes otel, syslog or authlog records, not %s\n", a->topic);
        return JOB_USAGE;
    }
    if (!number(a->count, "--count", INT64_MAX, 0, &count) || !number(a->rate, "--rate", 0, 0, &rate) || !number(a->seed, "--seed", 1, INT64_MIN, &seed)) return JOB_USAGE;
    src_gen g = src_gen_new(kind, (uint64_t)seed);
    fz_buf b = {0};
    int64_t began = fz_mono_ns();
    bool ok = true;
    while (ok && done < count && !job_stop_requested()) {
        int64_t n = count - done < AT_ONCE ? count - done : AT_ONCE;
        if (rate) {
            int64_t due = (int64_t)((double)(fz_mono_ns() - began) / 1e9 * (double)rate) + 1 - done;
            if (due <= 0) {
                fz_sleep_ms(rate > 100 ? 5 : 1000 / rate / 2 + 1);
                continue;
            }
            if (due < n) n = due;
        }
        b.len = 0;
        for (int64_t i = 0; i < n; i++) {
            src_gen_record(&g, fz_now_ms(), &b);
            fz_buf_putc(&b, '\n');
        }
        ok = put(&b); /* who reads may have had enough */
        done += n;
    }
    fz_buf_free(&b);
    return JOB_DONE;
}
