/* What the tests of the parquet room share: a file in memory, short ways to fields and vectors. */
#ifndef PQ_TEST_H
#define PQ_TEST_H
#include "unit.h"
#include "parquet/parquet.h"
#include <string.h>

__attribute__((unused)) static fz_status mem_write(void *cx, const void *p, size_t n, fz_error *err) {
    (void)err;
    fz_buf_append(cx, p, n);
    return FZ_OK;
}
__attribute__((unused)) static fz_status mem_read(void *cx, uint64_t from, size_t n, void *out, fz_error *err) {
    const fz_buf *b = cx;
    if (from > b->len || n > b->len - from) return fz_fail(err, FZ_FATAL, "test.range", "read outside of the file");
    if (n) memcpy(out, b->data + from, n);
    return FZ_OK;
}
__attribute__((unused)) static fz_buf load_file(const char *path) {
    fz_buf b = {0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fz_buf_reserve(&b, 1 << 16);
    b.len = fread(b.data, 1, 1 << 16, f);
    fclose(f);
    return b;
}
#define OK(call) do { fz_error *e_ = &err; if ((call) != FZ_OK) fail_msg("%s: %s", e_->code, e_->message); } while (0)
__attribute__((unused)) static pq_options options(void) {
    return (pq_options){.compression = PQ_ZSTD, .page_size = 1 << 20, .page_rows = 20000, .dict_size = 2 << 20, .row_group_size = 128 << 20};
}
__attribute__((unused)) static pq_field field(const char *name, int32_t id, const col_type *t) {
    return (pq_field){.name = name, .field_id = id, .required = !t->nullable, .type = t, .metrics_truncate = 16};
}
/* Writes rows 0..n of the columns in steps; group: rows of a row group (0: one). */
__attribute__((unused)) static pq_file_info write_all(fz_arena *a, const pq_field *f, uint32_t nf, const pq_options *o, col_vec **v, uint32_t n, uint32_t step, uint32_t group, fz_buf *out) {
    fz_error err;
    pq_writer *w;
    pq_codec *c = pq_codec_new();
    pq_file_info info;
    OK(pq_writer_new(f, nf, o, NULL, 0, &w, &err));
    uint32_t *sel = fz_arena_alloc(a, (n + 1) * sizeof *sel);
    for (uint32_t i = 0; i < n; i++) sel[i] = i;
    for (uint32_t i = 0, held = 0; i < n; i += step) {
        uint32_t m = n - i < step ? n - i : step;
        OK(pq_writer_append(w, v, sel + i, m, c, mem_write, out, &err));
        held += m;
        if (group && held >= group) {
            OK(pq_writer_flush_row_group(w, c, mem_write, out, &err));
            held = 0;
        }
    }
    assert_int_equal(pq_writer_rows(w), n);
    OK(pq_writer_finish(w, c, mem_write, out, a, &info, &err));
    assert_int_equal(info.size, out->len);
    assert_int_equal(info.rows, n);
    pq_writer_free(w);
    pq_codec_free(c);
    return info;
}
/* Every row of every column is what was written. */
__attribute__((unused)) static void read_back(fz_arena *a, const pq_field *f, uint32_t nf, col_vec **v, uint32_t n, fz_buf *file) {
    fz_error err;
    pq_reader *r;
    OK(pq_reader_open(file->len, mem_read, file, &r, &err));
    assert_int_equal(pq_reader_rows(r), n);
    uint32_t at = 0;
    for (uint32_t g = 0; g < pq_reader_row_groups(r); g++) {
        col_vec **got = fz_arena_calloc(a, nf, sizeof *got);
        uint32_t rows;
        OK(pq_reader_read(r, g, f, nf, a, got, &rows, &err));
        for (uint32_t k = 0; k < nf; k++) {
            assert_int_equal(got[k]->len, rows);
            for (uint32_t i = 0; i < rows; i++) {
                bool null = col_is_null(v[k], at + i);
                if (null != col_is_null(got[k], i) || (!null && !col_equal(v[k], at + i, got[k], i))) fail_msg("column %s row %u differs", f[k].name, (unsigned)(at + i));
            }
        }
        at += rows;
    }
    assert_int_equal(at, n);
    pq_reader_free(r);
}
__attribute__((unused)) static const pq_column_metrics *metrics_of(const pq_file_info *info, int32_t id) {
    for (uint32_t i = 0; i < info->n_columns; i++)
        if (info->columns[i].field_id == id) return &info->columns[i];
    fail_msg("no metrics of field %d", (int)id);
    return NULL;
}
#endif
