/* What the Parquet writer costs in its typical use: 80 open files, each getting its rows of batches of 8192 (host decides the file),
 * seven columns as the log pipeline gives them. Prints ns a row with and without compression, bytes held and written.
 * Build: gcc -std=c17 -D_GNU_SOURCE -O2 -Isrc bench/bench_parquet.c build/lib/parquet.a build/lib/col.a build/lib/base.a
 *        -lzstd -llz4 -lsnappy -ldeflate -lm -pthread -o build/bench_parquet */
#include "col/col.h"
#include "parquet/parquet.h"
#include <stdio.h>
#include <stdlib.h>

enum { FILES = 80, ROWS = 8192, COLS = 7, MADE = 64 }; /* MADE: distinct batches, used in turn */
static fz_status count_bytes(void *cx, const void *p, size_t n, fz_error *err) {
    (void)p;
    (void)err;
    *(uint64_t *)cx += n;
    return FZ_OK;
}
static uint64_t seed = 88172645463325252ull;
static uint32_t rnd(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % n);
}
static void must(fz_status s, const fz_error *err) {
    if (s == FZ_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}
static col_vec *text_dict(fz_arena *a, const char *fmt, uint32_t n, uint32_t base) {
    col_builder *b = col_builder_new(a, col_string(true));
    char t[64];
    for (uint32_t i = 0; i < n; i++) col_add_bytes(b, t, (size_t)snprintf(t, sizeof t, fmt, (unsigned)(base + i)));
    return col_builder_finish(b);
}
static col_vec *int_dict(fz_arena *a, const col_type *t, uint32_t n, int64_t base, int64_t step) {
    col_builder *b = col_builder_new(a, t);
    for (uint32_t i = 0; i < n; i++) col_add_i64(b, base + step * i);
    return col_builder_finish(b);
}
static void make_batch(fz_arena *a, uint32_t batch, col_vec **v, uint32_t **sel, uint32_t *n_sel) {
    static const char *words[] = {"session", "opened", "for", "user", "root", "by", "connection", "from", "port", "closed", "accepted", "publickey", "failed", "password", "invalid", "kernel", "device", "eth0", "link", "up"};
    col_vec *dict[6] = {text_dict(a, "Sep 16 12:34:%02u", 16, batch * 16 % 60), int_dict(a, col_sized(a, COL_TIMESTAMP, 6, 0, true), 16, 1789560000000000 + (int64_t)batch * 16000000, 1000000),
                        text_dict(a, "host-%u.example", FILES, 0), text_dict(a, "program%u", 6, 0), int_dict(a, col_simple(COL_DATE, true), 1, 20712, 1), int_dict(a, col_simple(COL_INT, true), 1, 12, 1)};
    col_builder *msg = col_builder_new(a, col_string(true));
    for (int k = 0; k < 6; k++) v[k < 4 ? k : k + 1] = col_vec_dict(a, dict[k], ROWS);
    for (uint32_t f = 0; f < FILES; f++) n_sel[f] = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        char t[400];
        int n = 0;
        for (int k = 0; k < 12; k++) n += snprintf(t + n, sizeof t - (size_t)n, "%s%s", k ? " " : "", words[rnd(20)]);
        n += snprintf(t + n, sizeof t - (size_t)n, " %u.%u.%u.%u:%u pid=%u", rnd(256), rnd(256), rnd(256), rnd(256), rnd(65536), rnd(100000));
        col_add_bytes(msg, t, (size_t)n);
        uint32_t f = rnd(FILES), s = i * 16 / ROWS;
        v[0]->idx[i] = s;
        v[1]->idx[i] = s;
        v[2]->idx[i] = f;
        v[3]->idx[i] = rnd(6);
        v[5]->idx[i] = 0;
        v[6]->idx[i] = 0;
        sel[f][n_sel[f]++] = i;
    }
    v[4] = col_builder_finish(msg);
}
/* A batch has just been made when it comes to the writer: bring it near, as that would. */
static void warm(col_vec *const *v) {
    uint64_t sum = 0;
    for (int k = 0; k < COLS; k++) {
        const char *p = v[k]->idx ? (const char *)v[k]->idx : v[k]->bytes;
        size_t n = v[k]->idx ? ROWS * sizeof(uint32_t) : v[k]->off[ROWS];
        for (size_t i = 0; i < n; i += 64) sum += (uint8_t)p[i];
    }
    __asm__ volatile("" : : "r"(sum));
}
static void run(const char *what, pq_compression compression, bool with_msg, uint32_t batches, col_vec *(*v)[COLS], uint32_t *(*sel)[FILES], uint32_t (*n_sel)[FILES], size_t page_size) {
    const col_type *str = col_string(true), *ts = col_sized(fz_arena_new(), COL_TIMESTAMP, 6, 0, true);
    const col_type *types[COLS] = {str, ts, str, str, str, col_simple(COL_DATE, true), col_simple(COL_INT, true)};
    const char *names[COLS] = {"ts_raw", "ts", "host", "program", "msg", "dt", "hr"};
    pq_field f[COLS];
    uint32_t n_cols = 0, pick[COLS];
    for (uint32_t k = 0; k < COLS; k++) {
        if (k == 4 && !with_msg) continue;
        pick[n_cols] = k;
        f[n_cols++] = (pq_field){.name = names[k], .field_id = (int32_t)k + 1, .type = types[k], .metrics_truncate = 16};
    }
    pq_options o = {.compression = compression, .page_size = page_size, .page_rows = 20000, .dict_size = 2 << 20, .row_group_size = 128 << 20};
    pq_writer *w[FILES];
    pq_codec *c = pq_codec_new();
    fz_arena *a = fz_arena_new();
    fz_error err;
    uint64_t out = 0, rows = 0;
    size_t empty = 0, held = 0;
    for (int i = 0; i < FILES; i++) {
        must(pq_writer_new(f, n_cols, &o, NULL, 0, &w[i], &err), &err);
        empty = pq_writer_bytes(w[i]);
    }
    int64_t spent = 0;
    for (uint32_t b = 0; b < batches; b++) {
        warm(v[b % MADE]);
        int64_t t0 = fz_cpu_ns();
        for (int i = 0; i < FILES; i++) {
            col_vec *cols[COLS];
            for (uint32_t k = 0; k < n_cols; k++) cols[k] = v[b % MADE][pick[k]];
            must(pq_writer_append(w[i], cols, sel[b % MADE][i], n_sel[b % MADE][i], c, count_bytes, &out, &err), &err);
            rows += n_sel[b % MADE][i];
        }
        spent += fz_cpu_ns() - t0;
    }
    int64_t t1 = fz_cpu_ns();
    for (int i = 0; i < FILES; i++) held += pq_writer_bytes(w[i]);
    for (int i = 0; i < FILES; i++) {
        pq_file_info info;
        must(pq_writer_finish(w[i], c, count_bytes, &out, a, &info, &err), &err);
        pq_writer_free(w[i]);
    }
    int64_t t2 = fz_cpu_ns();
    printf("%-28s %8llu rows: append %5.1f ns/row, finish %6.1f ns/row; empty writer %zu B, held %.1f B/row, written %.1f B/row\n", what, (unsigned long long)rows, (double)spent / (double)rows,
           (double)(t2 - t1) / (double)rows, empty, (double)held / (double)rows, (double)out / (double)rows);
    pq_codec_free(c);
    fz_arena_free(a);
}
int main(int argc, char **argv) {
    uint32_t batches = argc > 1 ? (uint32_t)atol(argv[1]) : 64; /* arguments: batches, page size in KiB */
    size_t page_size = (argc > 2 ? (size_t)atol(argv[2]) : 1024) << 10;
    fz_arena *a = fz_arena_new();
    col_vec *(*v)[COLS] = fz_calloc(MADE, sizeof *v);
    uint32_t *(*sel)[FILES] = fz_calloc(MADE, sizeof *sel), (*n_sel)[FILES] = fz_calloc(MADE, sizeof *n_sel);
    for (uint32_t b = 0; b < MADE; b++) {
        for (int i = 0; i < FILES; i++) sel[b][i] = fz_arena_alloc(a, ROWS * sizeof(uint32_t) / 8);
        make_batch(a, b, v[b], sel[b], n_sel[b]);
    }
    for (int round = 0; round < 2; round++) {
        run("six columns, uncompressed", PQ_UNCOMPRESSED, false, batches, v, sel, n_sel, page_size);
        run("six columns, zstd", PQ_ZSTD, false, batches, v, sel, n_sel, page_size);
        run("with msg, uncompressed", PQ_UNCOMPRESSED, true, batches, v, sel, n_sel, page_size);
        run("with msg, zstd", PQ_ZSTD, true, batches, v, sel, n_sel, page_size);
    }
    fz_arena_free(a);
    return 0;
}
