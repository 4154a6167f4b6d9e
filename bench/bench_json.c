/* How long the JSON decoder takes for a record, without anything around it.
 *
 *   cc -O2 -march=x86-64 -Isrc bench/bench_json.c build/lib/decode.a build/lib/col.a build/lib/base.a -lm -pthread -o build/bench_json
 *   bench/gen_logs.py syslog 200000 > logs.ndjson; build/bench_json logs.ndjson [ROUNDS]
 *
 * Prints the best round: nanoseconds a record and bytes a second. Four STRING columns; batches of 8192 records.
 */
#include "col/col.h"
#include "decode/decode.h"
#include <stdio.h>
#include <stdlib.h>

static fz_record *load(const char *path, uint32_t *n, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = fz_malloc(*bytes + 1);
    if (fread(data, 1, *bytes, f) != *bytes) exit(1);
    fclose(f);
    fz_record *r = NULL;
    uint32_t cap = 0;
    *n = 0;
    for (uint8_t *p = data, *end = data + *bytes; p < end;) {
        uint8_t *q = memchr(p, '\n', (size_t)(end - p));
        if (!q) q = end;
        FZ_GROW(r, *n, cap);
        r[(*n)++] = (fz_record){.value = p, .value_len = (int32_t)(q - p), .key_len = -1};
        p = q + 1;
    }
    return r;
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: bench_json FILE [ROUNDS]\n"), 2;
    uint32_t n;
    size_t bytes;
    fz_record *r = load(argv[1], &n, &bytes);
    col_field f[4] = {{"ts", col_string(true), NULL}, {"src_host", col_string(true), NULL}, {"program", col_string(true), NULL}, {"message", col_string(true), NULL}};
    col_schema s = {4, f};
    fz_error err;
    dec_decoder *d;
    if (dec_new("json", NULL, 0, &s, NULL, false, &d, &err) != FZ_OK) return fprintf(stderr, "%s\n", err.message), 1;
    fz_arena *a = fz_arena_new();
    fz_rejects rejects = {0};
    int64_t best = INT64_MAX;
    uint64_t rows = 0;
    bool dict[4] = {0};
    for (int round = argc > 2 ? atoi(argv[2]) : 20; round > 0; round--) {
        int64_t t = fz_cpu_ns();
        rows = 0;
        for (uint32_t i = 0; i < n; i += FZ_BATCH_ROWS) {
            fz_chunk c = {.n = n - i < FZ_BATCH_ROWS ? n - i : FZ_BATCH_ROWS, .rec = r + i};
            dec_output out;
            fz_arena_reset(a);
            if (dec_decode(d, &c, a, &out, &rejects, &err) != FZ_OK) return 1;
            rows += out.n_rows;
            for (int k = 0; k < 4; k++) dict[k] = out.cols[k]->idx != NULL;
        }
        t = fz_cpu_ns() - t;
        if (t < best) best = t;
    }
    printf("%llu rows of %u records, %.1f ns a record, %.2f GB/s, dictionaries: %d%d%d%d\n", (unsigned long long)rows, n, (double)best / n,
           (double)bytes / (double)best, dict[0], dict[1], dict[2], dict[3]);
    fz_arena_free(a);
    dec_free(d);
    return 0;
}
