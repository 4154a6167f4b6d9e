/* The spool alone: records per CPU-second and what one costs, appended, made durable and read.
 *
 *     bench_spool DIR [records] [per frame] [bytes of a record]
 *
 * Appends as fast as back-pressure lets it while a reader follows and trims, then reads all of a second spool back from disk. CPU time is the process's, user and system.
 */
#include "spool/spool.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t n_records = 3000000;
static uint32_t per_frame = 1000, record_bytes = 240;

static void die(const char *what, const fz_error *err) {
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}
static void append_all(spool *s, uint64_t n, int64_t *waited) {
    uint32_t *len = fz_malloc(per_frame * sizeof *len);
    int64_t *time = fz_malloc(per_frame * sizeof *time);
    uint8_t *bytes = fz_malloc((size_t)per_frame * record_bytes);
    for (uint32_t i = 0; i < per_frame; i++) len[i] = record_bytes, time[i] = i;
    for (size_t i = 0; i < (size_t)per_frame * record_bytes; i++) bytes[i] = (uint8_t)(i * 31);
    spool_frame f = {.context = "app.log", .context_len = 7, .n = per_frame, .arrival_ms = 1, .len = len, .time_ns = time, .bytes = bytes};
    uint64_t ticket = 0;
    fz_error err;
    for (uint64_t at = 0; at < n;) {
        fz_status rc = spool_append(s, &f, 1, 1000, &ticket, &err);
        if (rc == FZ_OK) at += per_frame;
        else if (rc == FZ_RETRY) fz_sleep_ms(1), ++*waited;
        else die("append", &err);
    }
    if (spool_wait(s, ticket, 60000, &err) != FZ_OK) die("wait", &err);
    fz_free(len);
    fz_free(time);
    fz_free(bytes);
}
static uint64_t sum;
static uint64_t read_to(spool *s, uint64_t n, bool trims) {
    spool_reader *r = spool_reader_new(s, 0);
    uint64_t got_n = 0, trimmed = 0;
    fz_error err;
    while (got_n < n) {
        spool_view v;
        bool got;
        if (spool_next(r, 1000, &v, &got, &err) != FZ_OK) die("next", &err);
        if (!got) continue;
        got_n += v.n;
        sum += v.bytes[0] + v.len[v.n - 1];
        spool_view_release(&v);
        if (trims && got_n - trimmed > 200000) {
            if (spool_trim(s, got_n, &err) != FZ_OK) die("trim", &err);
            trimmed = got_n;
        }
    }
    spool_reader_free(r);
    return got_n;
}
static void *reader(void *s) {
    read_to(s, n_records, true);
    return NULL;
}
static void tell(const char *what, uint64_t n, int64_t cpu, int64_t wall) {
    printf("%-28s %10.0f records/CPU-s  %6.1f ns CPU a record  %8.0f records/s\n", what, (double)n * 1e9 / (double)cpu, (double)cpu / (double)n, (double)n * 1e9 / (double)wall);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: bench_spool DIR [records] [per frame] [bytes]\n"), 1;
    if (argc > 2) n_records = strtoull(argv[2], NULL, 10);
    if (argc > 3) per_frame = (uint32_t)strtoul(argv[3], NULL, 10);
    if (argc > 4) record_bytes = (uint32_t)strtoul(argv[4], NULL, 10);
    n_records -= n_records % per_frame;
    char *a = fz_asprintf("%s/following", argv[1]), *b = fz_asprintf("%s/kept", argv[1]);
    spool *s;
    fz_error err;
    spool_options o = {.max_bytes = 256 << 20, .memory = 12 << 20};
    if (spool_open(a, &o, &s, &err) != FZ_OK) die("open", &err);
    pthread_t t;
    pthread_create(&t, NULL, reader, s);
    int64_t cpu = fz_cpu_ns(), wall = fz_mono_ns(), waited = 0;
    append_all(s, n_records, &waited);
    pthread_join(t, NULL);
    tell("append, sync, read, trim", n_records, fz_cpu_ns() - cpu, fz_mono_ns() - wall);
    spool_stats st = spool_get_stats(s);
    printf("%-28s %10.0f records, %lld refusals, %.1f MiB resident\n", "a sync covers", (double)st.records_in / (double)st.syncs, (long long)waited, (double)fz_rss() / 1048576);
    spool_close(s);
    o = (spool_options){.max_bytes = 2ll << 30, .memory = 12 << 20};
    uint64_t kept = n_records / 4 / per_frame * per_frame;
    if (spool_open(b, &o, &s, &err) != FZ_OK) die("open", &err);
    append_all(s, kept, &waited);
    cpu = fz_cpu_ns(), wall = fz_mono_ns();
    read_to(s, kept, false);
    tell("read back from disk", kept, fz_cpu_ns() - cpu, fz_mono_ns() - wall);
    spool_close(s);
    cpu = fz_cpu_ns(), wall = fz_mono_ns();
    if (spool_open(b, &o, &s, &err) != FZ_OK) die("open", &err);
    printf("%-28s %10.1f ms\n", "start", (double)(fz_mono_ns() - wall) / 1e6);
    spool_close(s);
    fz_free(a);
    fz_free(b);
    return sum == 0;
}
