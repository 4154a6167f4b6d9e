/* Reads a Kafka table through the source room and prints what it was given, for run.sh.
 *
 *   kafka_reader [FLAG...] OPTION=VALUE...        options of the connector; 'connector' = 'kafka' is added
 *     --readers N       workers (they are polled in turn by one thread)            --memory BYTES    --max-record BYTES
 *     --from SPLIT=N    assign this split at N, not at its start                   --only            assign only splits named by --from
 *     --probe SPLIT=N   print the record before N and end                          --headers         print headers too
 *     --quiet           do not print records                                       --chunks          print ranges
 *     --ms N            end after N ms without a record (default 20000: a failure) --idle-ok         ... which is no failure
 *     --report          report the final positions to the group                    --wait-file F     go on with reading when F exists
 *     --work NS         spend NS of CPU on each record                             --rewind          read all twice, by unassign and assign
 *
 * Prints, one a line: split NAME START EARLIEST STOP LOW HIGH LATER; record NAME OFFSET KEY VALUE; chunk NAME FROM TO N; end NAME POSITION;
 * total RECORDS BYTES LAG; cpu NS-A-RECORD; hwm KB; identity ID; error CLASS CODE MESSAGE. Exit code: 0, 1 usage, 3 error. */
#include "source/source.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct args {
    fz_pair pairs[64];
    size_t n;
    uint32_t readers;
    struct { const char *split; int64_t at; } from[64];
    size_t n_from;
    const char *probe_split, *wait_file;
    int64_t probe_at, idle_ms, work_ns;
    bool only, headers, quiet, chunks, idle_ok, report, rewind;
    uint64_t memory;
    uint32_t max_record;
} args;

static int64_t *positions;
static uint64_t records, bytes;

static void fail(const fz_error *err) {
    char text[4096];
    printf("error %s %s %s\n", fz_status_name(err->cls), err->code, fz_error_text(err, text, sizeof text));
    fflush(stdout);
    exit(3);
}
#define MUST(x) do { fz_error e_; if ((x) != FZ_OK) fail(&e_); } while (0)

static const char *split_arg(char *text, int64_t *at) {
    char *eq = strrchr(text, '=');
    if (!eq) exit(1);
    *eq = 0;
    *at = strtoll(eq + 1, NULL, 10);
    return text;
}

static void parse(int argc, char **argv, args *a) {
    for (int i = 1; i < argc; i++) {
        char *s = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (strncmp(s, "--", 2) != 0) {
            char *eq = strchr(s, '=');
            if (!eq || a->n == 60) exit(1);
            *eq = 0;
            a->pairs[a->n++] = (fz_pair){s, eq + 1, 0, 0};
        } else if (!strcmp(s, "--only")) a->only = true;
        else if (!strcmp(s, "--headers")) a->headers = true;
        else if (!strcmp(s, "--quiet")) a->quiet = true;
        else if (!strcmp(s, "--chunks")) a->chunks = true;
        else if (!strcmp(s, "--idle-ok")) a->idle_ok = true;
        else if (!strcmp(s, "--report")) a->report = true;
        else if (!strcmp(s, "--rewind")) a->rewind = true;
        else if (!next) exit(1);
        else {
            i++;
            if (!strcmp(s, "--readers")) a->readers = (uint32_t)strtoul(next, NULL, 10);
            else if (!strcmp(s, "--memory")) a->memory = strtoull(next, NULL, 10);
            else if (!strcmp(s, "--max-record")) a->max_record = (uint32_t)strtoul(next, NULL, 10);
            else if (!strcmp(s, "--ms")) a->idle_ms = strtoll(next, NULL, 10);
            else if (!strcmp(s, "--work")) a->work_ns = strtoll(next, NULL, 10);
            else if (!strcmp(s, "--wait-file")) a->wait_file = next;
            else if (!strcmp(s, "--probe")) a->probe_split = split_arg(next, &a->probe_at);
            else if (!strcmp(s, "--from") && a->n_from < 64) {
                a->from[a->n_from].split = split_arg(next, &a->from[a->n_from].at);
                a->n_from++;
            } else exit(1);
        }
    }
    a->pairs[a->n++] = (fz_pair){"connector", "kafka", 0, 0};
}

static void put(const uint8_t *p, int32_t n) {
    if (n < 0) fputs("<null>", stdout);
    else fwrite(p, 1, (size_t)n, stdout);
}

static void print_chunk(const args *a, src_source *s, const fz_chunk *c) {
    const char *name = src_get_split(s, c->split)->name;
    if (a->chunks) printf("chunk %s %" PRId64 " %" PRId64 " %u\n", name, c->from, c->to, c->n);
    if (c->from != positions[c->split]) {
        printf("error ranges do not abut: %s at %" PRId64 ", chunk from %" PRId64 "\n", name, positions[c->split], c->from);
        exit(3);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const fz_record *r = &c->rec[i];
        if (r->offset < c->from || r->offset >= c->to) {
            printf("error record %" PRId64 " outside of its chunk\n", r->offset);
            exit(3);
        }
        if (a->quiet) continue;
        printf("record %s %" PRId64 " ", name, r->offset);
        put(r->key, r->key_len);
        putchar(' ');
        if (r->oversized) fputs("<oversized>", stdout);
        else put(r->value, r->value_len);
        for (uint32_t h = 0; h < r->n_headers; h++) {
            printf(" %s=", r->headers[h].key);
            put(r->headers[h].value, r->headers[h].value_len);
        }
        putchar('\n');
    }
}

static void spend(int64_t ns) {
    int64_t end = fz_mono_ns() + ns;
    while (fz_mono_ns() < end) {}
}

static void read_all(const args *a, src_source *s) {
    int64_t last = fz_mono_ns();
    for (bool all_done = false; !all_done;) {
        all_done = true;
        bool any = false;
        for (uint32_t r = 0; r < a->readers; r++) {
            fz_chunk *c = NULL;
            bool done = false;
            fz_error err;
            fz_status rc = src_poll(s, r, a->readers == 1 ? 100 : 1, &c, &done, &err);
            if (rc == FZ_RETRY) {
                printf("retry %s\n", err.code);
                fz_sleep_ms(100);
                all_done = false;
                continue;
            }
            if (rc != FZ_OK) fail(&err);
            all_done = all_done && done;
            if (!c) continue;
            any = true;
            print_chunk(a, s, c);
            records += c->n;
            bytes += c->bytes;
            positions[c->split] = c->to;
            if (a->work_ns) spend(a->work_ns * c->n);
            fz_chunk_release(c);
        }
        if (any) last = fz_mono_ns();
        else fflush(stdout);
        uint32_t added = 0;
        fz_error err;
        if (src_discover(s, &added, &err) != FZ_OK) printf("retry %s\n", err.code);
        for (uint32_t i = src_n_splits(s) - added; i < src_n_splits(s); i++) {
            const src_split *p = src_get_split(s, i);
            printf("split %s %" PRId64 " %d - %" PRId64 " %" PRId64 " %d\n", p->name, p->start, p->start_is_earliest, p->low, p->high, p->found_later);
            positions[i] = p->start;
            MUST(src_assign(s, i, p->start, &e_));
        }
        if (fz_mono_ns() - last > a->idle_ms * 1000000) {
            if (a->idle_ok) return;
            printf("error no end: idle for %" PRId64 " ms\n", a->idle_ms);
            exit(3);
        }
    }
}

static void assign_all(const args *a, src_source *s) {
    for (uint32_t i = 0; i < src_n_splits(s); i++) {
        const src_split *p = src_get_split(s, i);
        int64_t at = p->start;
        bool named = false;
        for (size_t j = 0; j < a->n_from; j++)
            if (!strcmp(a->from[j].split, p->name)) at = a->from[j].at, named = true;
        if (a->only && !named) continue;
        positions[i] = at;
        MUST(src_assign(s, i, at, &e_));
    }
}

static int probe(const args *a, src_source *s) {
    static const char *const names[] = {"ok", "gone", "beyond"};
    for (uint32_t i = 0; i < src_n_splits(s); i++) {
        if (strcmp(src_get_split(s, i)->name, a->probe_split)) continue;
        src_probe p;
        MUST(src_probe_before(s, i, a->probe_at, &p, &e_));
        printf("probe %s %" PRId64 " %016" PRIx64 "\n", names[p.result], p.result ? -1 : p.offset, p.result ? 0 : p.hash);
    }
    src_close(s);
    return 0;
}

static void print_peak(int64_t cpu) {
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM:", 6)) printf("hwm %ld\n", strtol(line + 6, NULL, 10));
    if (f) fclose(f);
    printf("cpu %.0f\n", records ? (double)cpu / (double)records : 0.0);
}

int main(int argc, char **argv) {
    args a = {.readers = 1, .idle_ms = 20000, .memory = 24u << 20};
    parse(argc, argv, &a);
    src_context cx = {.table = "t", .job = "j", .readers = a.readers, .memory = a.memory, .max_record_size = a.max_record, .need_key = true, .need_headers = a.headers};
    src_source *s = NULL;
    MUST(src_open(a.pairs, a.n, &cx, &s, &e_));
    printf("identity %s\n", src_identity(s));
    positions = fz_calloc(10000, sizeof *positions);
    if (a.probe_split) return probe(&a, s);
    for (uint32_t i = 0; i < src_n_splits(s); i++) {
        const src_split *p = src_get_split(s, i);
        printf("split %s %" PRId64 " %d ", p->name, p->start, p->start_is_earliest);
        if (p->stop == INT64_MAX) putchar('-');
        else printf("%" PRId64, p->stop);
        printf(" %" PRId64 " %" PRId64 " %d\n", p->low, p->high, p->found_later);
    }
    fflush(stdout);
    while (a.wait_file && access(a.wait_file, F_OK) != 0) fz_sleep_ms(50);
    int64_t cpu = fz_cpu_ns();
    assign_all(&a, s);
    read_all(&a, s);
    if (a.rewind) {
        MUST(src_unassign_all(s, &e_));
        assign_all(&a, s);
        read_all(&a, s);
    }
    cpu = fz_cpu_ns() - cpu;
    for (uint32_t i = 0; i < src_n_splits(s); i++) printf("end %s %" PRId64 "\n", src_get_split(s, i)->name, positions[i]);
    if (a.report) {
        uint32_t n = src_n_splits(s), *which = fz_calloc(n + 1, sizeof *which);
        for (uint32_t i = 0; i < n; i++) which[i] = i;
        MUST(src_report(s, which, positions, n, &e_));
        fz_free(which);
    }
    printf("total %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", records, bytes, src_lag(s));
    print_peak(cpu);
    src_close(s);
    fz_free(positions);
    return 0;
}
