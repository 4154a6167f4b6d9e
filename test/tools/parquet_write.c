/* Writes sample Parquet files for strangers to read: parquet_write DIR. Values are formulas of the row number that
 * test/interop/parquet_roundtrip.py repeats. Build: see the head of that script. */
#include "col/col.h"
#include "parquet/parquet.h"
#include <stdio.h>
#include <stdlib.h>

static fz_status to_file(void *cx, const void *p, size_t n, fz_error *err) {
    return fwrite(p, 1, n, cx) == n ? FZ_OK : fz_fail(err, FZ_RETRY, "file.write", "short write");
}
static void must(fz_status s, const fz_error *err) {
    if (s == FZ_OK) return;
    char text[2048];
    fprintf(stderr, "parquet_write: %s\n", fz_error_text(err, text, sizeof text));
    exit(1);
}
enum { N_FIELDS = 20 };
typedef struct sample { fz_arena *a; pq_field f[N_FIELDS]; col_builder *b[N_FIELDS]; } sample;

static const pq_field *leaf(fz_arena *a, const char *name, int32_t id, bool required, const col_type *t) {
    pq_field *f = FZ_ANEW(a, pq_field);
    *f = (pq_field){.name = name, .field_id = id, .required = required, .type = t, .metrics_truncate = 16};
    return f;
}
static void fields(sample *s) {
    fz_arena *a = s->a;
    const struct { const char *name; const col_type *t; } flat[] = {
        {"b", col_simple(COL_BOOLEAN, true)}, {"i", col_simple(COL_INT, true)}, {"l", col_simple(COL_BIGINT, true)},
        {"f", col_simple(COL_FLOAT, true)}, {"d", col_simple(COL_DOUBLE, true)}, {"s", col_string(true)},
        {"bin", col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true)}, {"dt", col_simple(COL_DATE, true)}, {"tm", col_sized(a, COL_TIME, 3, 0, true)},
        {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true)}, {"tz", col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true)},
        {"d9", col_sized(a, COL_DECIMAL, 9, 2, true)}, {"d18", col_sized(a, COL_DECIMAL, 18, 4, true)}, {"d38", col_sized(a, COL_DECIMAL, 38, 10, true)},
        {"fx", col_sized(a, COL_BINARY, 4, 0, true)}, {"msg", col_string(false)},
    };
    for (int32_t i = 0; i < 16; i++) s->f[i] = *leaf(a, flat[i].name, i + 1, i == 15, flat[i].t);
    s->f[14].is_fixed = true;
    const col_type *str = col_string(true), *in = col_simple(COL_INT, true), *key = col_string(false);
    pq_field *el = fz_arena_calloc(a, 1, sizeof *el), *kv = fz_arena_calloc(a, 2, sizeof *kv), *st = fz_arena_calloc(a, 2, sizeof *st);
    *el = *leaf(a, "element", 20, false, str);
    kv[0] = *leaf(a, "key", 21, true, key);
    kv[1] = *leaf(a, "value", 22, false, in);
    st[0] = *leaf(a, "x", 23, false, str);
    st[1] = *leaf(a, "y", 24, true, col_simple(COL_INT, false));
    const col_field row[] = {{"x", str, NULL}, {"y", col_simple(COL_INT, false), NULL}};
    s->f[16] = (pq_field){.name = "arr", .field_id = 17, .type = col_array(a, str, true), .children = el, .n_children = 1};
    s->f[17] = (pq_field){.name = "mp", .field_id = 18, .type = col_map(a, key, in, true), .children = kv, .n_children = 2};
    s->f[18] = (pq_field){.name = "st", .field_id = 19, .type = col_row(a, row, 2, true), .children = st, .n_children = 2};
    s->f[19] = *leaf(a, "id", 25, true, key);
    for (int i = 0; i < N_FIELDS; i++) s->b[i] = col_builder_new(a, s->f[i].type);
}
static void add_text(col_builder *b, const char *fmt, uint32_t k) {
    char t[64];
    col_add_bytes(b, t, (size_t)snprintf(t, sizeof t, fmt, (unsigned)k));
}
static void nested(sample *s, uint32_t i) {
    if (i % 5 == 0) col_add_null(s->b[16]);
    else {
        for (uint32_t j = 0; j < i % 4; j++) {
            if ((i + j) % 6 == 0) col_add_null(col_builder_child(s->b[16], 0));
            else add_text(col_builder_child(s->b[16], 0), "e%u", (i + j) % 50);
        }
        col_add_nested(s->b[16]);
    }
    if (i % 6 == 0) col_add_null(s->b[17]);
    else {
        for (uint32_t j = 0; j < i % 3; j++) {
            add_text(col_builder_child(s->b[17], 0), "k%u", j);
            if ((i + j) % 4 == 0) col_add_null(col_builder_child(s->b[17], 1));
            else col_add_i64(col_builder_child(s->b[17], 1), i + j);
        }
        col_add_nested(s->b[17]);
    }
    if (i % 9 == 0) col_add_null(s->b[18]);
    else {
        if (i % 2) add_text(col_builder_child(s->b[18], 0), "x%u", i);
        else col_add_null(col_builder_child(s->b[18], 0));
        col_add_i64(col_builder_child(s->b[18], 1), i);
        col_add_nested(s->b[18]);
    }
}
static void row(sample *s, uint32_t i) {
    col_builder **b = s->b;
    char msg[160];
    for (uint32_t k = 0; k < 15; k++)
        if ((i + k) % 7 == 3) col_add_null(b[k]);
        else switch (k) {
        case 0: col_add_bool(b[k], i % 3 == 0); break;
        case 1: col_add_i64(b[k], (int64_t)i * 7 - 1000); break;
        case 2: col_add_i64(b[k], ((int64_t)i - 500) * 1000000007); break;
        case 3: col_add_f64(b[k], (double)((int)i - 400) * 0.5); break;
        case 4: col_add_f64(b[k], (double)((int)i - 300) * 0.25); break;
        case 5: add_text(b[k], "caf\xc3\xa9-%u", i % 37); break;
        case 6: col_add_bytes(b[k], "\xff\x00\xfe\xff", i % 5); break;
        case 7: col_add_i64(b[k], (int64_t)i - 500); break;
        case 8: col_add_i64(b[k], (int64_t)i * 1001 % 86400000); break;
        case 9: col_add_i64(b[k], ((int64_t)i - 10) * 1000001); break;
        case 10: col_add_i64(b[k], (int64_t)(i / 10) * 1000000); break;
        case 11: col_add_dec(b[k], (col_i128)i * 1001 - 500000); break;
        case 12: col_add_dec(b[k], ((col_i128)i - 500) * 1000000000007); break;
        case 13: col_add_dec(b[k], ((col_i128)i - 500) * 1000000000000000007 * 1000000000000); break;
        default: { char t[8]; snprintf(t, sizeof t, "%04u", (unsigned)(i % 10000)); col_add_bytes(b[k], t, 4); }
        }
    col_add_bytes(b[15], msg, (size_t)snprintf(msg, sizeof msg, "message %u: session opened for user root by (uid=0) %032u", (unsigned)i, (unsigned)(i * 2654435761u)));
    nested(s, i);
    uint64_t x = (i + 1ull) * 0x9E3779B97F4A7C15u;
    for (int k = 0; k < 2; k++) x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    col_add_bytes(b[19], msg, (size_t)snprintf(msg, sizeof msg, "%016llx%016llx", (unsigned long long)(x ^ x >> 31), (unsigned long long)(x * 0x94D049BB133111EBu)));
}
static void write_sample(const char *dir, const char *name, const pq_options *opt, uint32_t n, uint32_t step, uint32_t group_rows) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.parquet", dir, name);
    FILE *out = fopen(path, "wb");
    if (!out) { perror(path); exit(1); }
    fz_error err;
    sample s = {.a = fz_arena_new()};
    fields(&s);
    for (uint32_t i = 0; i < n; i++) row(&s, i);
    col_vec *v[N_FIELDS];
    for (int k = 0; k < N_FIELDS; k++) v[k] = col_builder_finish(s.b[k]);
    const fz_pair kv = {.key = "iceberg.schema", .value = "{\"type\":\"struct\"}"};
    pq_writer *w;
    pq_codec *c = pq_codec_new();
    must(pq_writer_new(s.f, N_FIELDS, opt, &kv, 1, &w, &err), &err);
    uint32_t *sel = fz_malloc((n + 1) * sizeof *sel);
    for (uint32_t i = 0; i < n; i++) sel[i] = i;
    for (uint32_t i = 0, in_group = 0; i < n; i += step) {
        uint32_t m = n - i < step ? n - i : step;
        must(pq_writer_append(w, v, sel + i, m, c, to_file, out, &err), &err);
        in_group += m;
        if (group_rows && in_group >= group_rows) {
            must(pq_writer_flush_row_group(w, c, to_file, out, &err), &err);
            in_group = 0;
        }
    }
    pq_file_info info;
    must(pq_writer_finish(w, c, to_file, out, s.a, &info, &err), &err);
    printf("%s %llu rows %llu bytes\n", name, (unsigned long long)info.rows, (unsigned long long)info.size);
    fclose(out);
    fz_free(sel);
    pq_writer_free(w);
    pq_codec_free(c);
    fz_arena_free(s.a);
}
int main(int argc, char **argv) {
    if (argc != 2) { fprintf(stderr, "usage: parquet_write DIR\n"); return 1; }
    pq_options o = {.compression = PQ_ZSTD, .page_size = 1 << 20, .page_rows = 20000, .dict_size = 2 << 20, .row_group_size = 128 << 20};
    write_sample(argv[1], "plain1000", &o, 1000, 64, 0);
    write_sample(argv[1], "one", &o, 1, 1, 0);
    write_sample(argv[1], "zero", &o, 0, 1, 0);
    o.page_rows = 100;
    write_sample(argv[1], "pages", &o, 3000, 333, 0);
    write_sample(argv[1], "groups", &o, 3000, 250, 1000);
    o.page_rows = 20000;
    o.page_size = 2000;
    o.dict_size = 300;
    write_sample(argv[1], "fallback", &o, 5000, 500, 0);
    o.page_size = 1 << 20;
    o.dict_size = 2 << 20;
    const char *names[] = {"none", "snappy", "gzip", "lz4", "zstd"};
    for (int i = 0; i < 5; i++) {
        o.compression = (pq_compression)i;
        write_sample(argv[1], names[i], &o, 2000, 2000, 0);
    }
    return 0;
}
