/* Fuzz target of the Parquet reader: any bytes are a file, or an error, never a crash. What opens is read whole in its own schema,
 * and every value that comes out is touched; what was read is written again, and that file must read back with as many rows.
 * With -DFUZZ_REPLAY it is a program that runs the files named on its command line through the target. */
#include "parquet/parquet.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct view { const uint8_t *p; size_t n; } view;
static fz_status range(void *cx, uint64_t from, size_t n, void *out, fz_error *err) {
    const view *v = cx;
    if (from > v->n || n > v->n - from) return fz_fail(err, FZ_FATAL, "fuzz.range", "outside of the file");
    if (n) memcpy(out, v->p + from, n);
    return FZ_OK;
}
static fz_status keep(void *cx, const void *p, size_t n, fz_error *err) {
    (void)err;
    fz_buf_append(cx, p, n);
    return FZ_OK;
}
static void touch(const col_vec *v, uint32_t n) {
    uint64_t h = 0;
    if (v->len != n) abort();
    for (uint32_t i = 0; i < n; i++)
        if (!col_is_null(v, i)) h ^= col_hash(v, i);
    __asm__ volatile("" : : "r"(h));
}
static void again(const pq_field *f, uint32_t nf, col_vec **v, uint32_t n, fz_arena *a) {
    pq_options o = {.compression = PQ_SNAPPY, .page_size = 4096, .page_rows = 500, .dict_size = 4096, .row_group_size = 1 << 20};
    pq_writer *w;
    pq_file_info info;
    fz_error err;
    fz_buf out = {0};
    if (pq_writer_new(f, nf, &o, NULL, 0, &w, &err) != FZ_OK) return;
    pq_codec *c = pq_codec_new();
    uint32_t *sel = fz_arena_alloc(a, (size_t)n * sizeof *sel + 1);
    for (uint32_t i = 0; i < n; i++) sel[i] = i;
    if (pq_writer_append(w, v, sel, n, c, keep, &out, &err) == FZ_OK) { /* may refuse: a decimal out of range */
        if (pq_writer_finish(w, c, keep, &out, a, &info, &err) != FZ_OK || info.size != out.len) abort();
        view file = {out.data, out.len};
        pq_reader *r;
        if (pq_reader_open(file.n, range, &file, &r, &err) != FZ_OK || pq_reader_rows(r) != n) abort();
        col_vec **got = fz_arena_calloc(a, nf, sizeof *got);
        uint32_t rows;
        for (uint32_t g = 0; g < pq_reader_row_groups(r); g++)
            if (pq_reader_read(r, g, f, nf, a, got, &rows, &err) != FZ_OK) abort();
        pq_reader_free(r);
    }
    pq_writer_free(w);
    pq_codec_free(c);
    fz_buf_free(&out);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    view file = {data, size};
    fz_error err = {0};
    pq_reader *r;
    if (pq_reader_open(size, range, &file, &r, &err) != FZ_OK) {
        if (!err.code[0] || !err.message[0]) abort();
        return 0;
    }
    fz_arena *a = fz_arena_new();
    pq_field *f;
    uint32_t nf, n;
    if (pq_reader_rows(r) <= 100000 && pq_reader_fields(r, a, &f, &nf, &err) == FZ_OK && nf) {
        col_vec **v = fz_arena_calloc(a, nf, sizeof *v);
        for (uint32_t g = 0; g < pq_reader_row_groups(r); g++) {
            if (pq_reader_read(r, g, f, nf, a, v, &n, &err) != FZ_OK) continue;
            for (uint32_t k = 0; k < nf; k++) touch(v[k], n);
            again(f, nf, v, n, a);
        }
    }
    fz_arena_free(a);
    pq_reader_free(r);
    return 0;
}

#include "replay.h"
