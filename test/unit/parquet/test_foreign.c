/* Files of other writers: parquet-java (as Flink and Iceberg write), arrow, DuckDB. And our own file of the same rows as the
 * Java one: same schema bytes, same metrics as the Java manifest has for it. */
#include "pq_test.h"
#include "parquet/parquet_int.h"

/* The rows of java_types.parquet, in the schema that it was written with. */
enum { N = 17 };
typedef struct table { pq_field f[N]; col_vec *v[N]; } table;
static table java_table(fz_arena *a) {
    table t;
    const struct { const char *name; const col_type *type; } flat[14] = {
        {"i", col_simple(COL_INT, true)}, {"l", col_simple(COL_BIGINT, true)}, {"f", col_simple(COL_FLOAT, true)}, {"d", col_simple(COL_DOUBLE, true)}, {"b", col_simple(COL_BOOLEAN, true)},
        {"s", col_string(true)}, {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true)}, {"tz", col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true)}, {"dt", col_simple(COL_DATE, true)},
        {"tm", col_sized(a, COL_TIME, 3, 0, true)}, {"de", col_sized(a, COL_DECIMAL, 10, 2, true)}, {"de38", col_sized(a, COL_DECIMAL, 38, 4, true)},
        {"bin", col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true)}, {"fx", col_sized(a, COL_BINARY, 4, 0, true)}};
    for (int32_t k = 0; k < 14; k++) t.f[k] = field(flat[k].name, k + 1, flat[k].type);
    t.f[13].is_fixed = true;
    const col_type *str = col_string(true), *in = col_simple(COL_INT, true), *key = col_string(false);
    pq_field *el = FZ_ANEWN(a, pq_field, 1), *kv = FZ_ANEWN(a, pq_field, 2), *st = FZ_ANEWN(a, pq_field, 2), *c = FZ_ANEWN(a, pq_field, 1);
    *el = field("element", 18, str);
    kv[0] = field("key", 19, key);
    kv[1] = field("value", 20, in);
    *c = field("c", 23, in);
    const col_field inner[] = {{"c", in, NULL}};
    st[0] = field("a", 21, str);
    st[1] = field("b", 22, col_row(a, inner, 1, true));
    st[1].children = c;
    st[1].n_children = 1;
    const col_field outer[] = {{"a", str, NULL}, {"b", st[1].type, NULL}};
    t.f[14] = field("arr", 15, col_array(a, str, true));
    t.f[14].children = el;
    t.f[14].n_children = 1;
    t.f[15] = field("mp", 16, col_map(a, key, in, true));
    t.f[15].children = kv;
    t.f[16] = field("st", 17, col_row(a, outer, 2, true));
    t.f[16].children = st;
    t.f[15].n_children = t.f[16].n_children = 2;
    col_builder *b[N];
    for (int k = 0; k < N; k++) b[k] = col_builder_new(a, t.f[k].type);
    col_i128 big = 0;
    for (const char *p = "12345678901234567890123456789012345678"; *p; p++) big = big * 10 + (*p - '0');
    const char *s[2] = {"AAAAAAAAAAAAAAA\xe2\x80\xa2 tail", "zz\xc3\xa9"}, *bin[2] = {"bytes", ""}, *fx[2] = {"abcd", "wxyz"};
    const int64_t ints[2][11] = {{1, INT64_MAX, 0, 0, 1, 0, -1, 1789562096123456, -1, 86399000, -1234567890}, {-1, INT64_MIN, 0, 0, 0, 0, 1789562096123456, 0, 20712, 0, 5}};
    for (int r = 0; r < 2; r++) {
        for (int k = 0; k < 11; k++) {
            if (k == 2 || k == 3) col_add_f64(b[k], k == 2 ? (r ? -3.25 : 1.5) : (r ? 1e300 : 0.0));
            else if (k == 4) col_add_bool(b[k], ints[r][k] != 0);
            else if (k == 5) col_add_bytes(b[k], s[r], strlen(s[r]));
            else if (k == 10) col_add_dec(b[k], ints[r][k]);
            else col_add_i64(b[k], ints[r][k]);
        }
        col_add_dec(b[11], r ? -10000 : big);
        col_add_bytes(b[12], bin[r], strlen(bin[r]));
        col_add_bytes(b[13], fx[r], 4);
        col_add_bytes(col_builder_child(b[14], 0), r ? "y" : "x", 1);
        if (!r) col_add_null(col_builder_child(b[14], 0));
        col_add_nested(b[14]);
        col_add_bytes(col_builder_child(b[15], 0), r ? "q" : "k", 1);
        col_add_i64(col_builder_child(b[15], 1), r + 1);
        col_add_nested(b[15]);
        col_add_bytes(col_builder_child(b[16], 0), r ? "b" : "a", 1);
        col_add_i64(col_builder_child(col_builder_child(b[16], 1), 0), 5 + r);
        col_add_nested(col_builder_child(b[16], 1));
        col_add_nested(b[16]);
    }
    for (int k = 0; k < N; k++) {
        col_add_null(b[k]);
        t.v[k] = col_builder_finish(b[k]);
    }
    return t;
}
static void reads_java(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    table t = java_table(a);
    fz_buf file = load_file("test/data/parquet/java_types.parquet");
    read_back(a, t.f, N, t.v, 3, &file);
    fz_buf_free(&file);
    fz_arena_free(a);
}
static void schema_bytes_are_java_s(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    table t = java_table(a);
    fz_buf file = load_file("test/data/parquet/java_types.parquet"), b = {0};
    uint32_t len;
    memcpy(&len, file.data + file.len - 8, 4);
    tc_out o = tc_out_on(&b);
    tc_put_i32(&o, 1, 1);
    pq_schema_encode(&o, 2, t.f, N);
    assert_true(b.len < len);
    assert_memory_equal(file.data + file.len - 8 - len, b.data, b.len);
    assert_int_equal(file.data[file.len - 8 - len + b.len], 0x16); /* num_rows comes next */
    fz_buf_free(&b);
    fz_buf_free(&file);
    fz_arena_free(a);
}
static void bound(const pq_file_info *i, int32_t id, const char *lower, uint32_t ln, const char *upper, uint32_t un) {
    const pq_column_metrics *m = metrics_of(i, id);
    assert_int_equal(m->value_count, 3);
    assert_int_equal(m->null_count, 1);
    assert_int_equal(m->nan_count, id == 3 || id == 4 ? 0 : -1);
    assert_int_equal(m->lower_len, ln);
    assert_memory_equal(m->lower, lower, ln);
    assert_int_equal(m->upper_len, un);
    assert_memory_equal(m->upper, upper, un);
}
static void metrics_are_java_s(void **state) { /* the values of the Java manifest's entry for java_types.parquet */
    (void)state;
    fz_arena *a = fz_arena_new();
    table t = java_table(a);
    fz_buf out = {0};
    pq_options o = options();
    pq_file_info i = write_all(a, t.f, N, &o, t.v, 3, 3, 0, &out);
    read_back(a, t.f, N, t.v, 3, &out);
    bound(&i, 1, "\xff\xff\xff\xff", 4, "\1\0\0\0", 4);
    bound(&i, 2, "\0\0\0\0\0\0\0\x80", 8, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    bound(&i, 3, "\0\0P\xc0", 4, "\0\0\xc0?", 4);
    bound(&i, 4, "\0\0\0\0\0\0\0\0", 8, "\x9cu\0\x88<\xe4" "7~", 8);
    bound(&i, 5, "\0", 1, "\1", 1);
    bound(&i, 6, "AAAAAAAAAAAAAAA\xe2\x80\xa2", 18, "zz\xc3\xa9", 4);
    bound(&i, 7, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, "@\xfe\n\xe5\x98[\6\0", 8);
    bound(&i, 9, "\xff\xff\xff\xff", 4, "\xe8P\0\0", 4);
    bound(&i, 10, "\0\0\0\0\0\0\0\0", 8, "\xc0\x1d\xc8\x1d\x14\0\0\0", 8);
    bound(&i, 11, "\xb6i\xfd.", 4, "\5", 1);
    bound(&i, 12, "\xd8\xf0", 2, "\tI\xb0\xf6\xf0\x02" "3\x13\xc4I\x90P\xde" "8\xf3N", 16);
    bound(&i, 13, "", 0, "bytes", 5);
    bound(&i, 14, "abcd", 4, "wxyz", 4);
    bound(&i, 21, "a", 1, "b", 1);
    bound(&i, 23, "\5\0\0\0", 4, "\6\0\0\0", 4);
    for (int32_t id = 18; id <= 20; id++) { /* inside of lists and maps: sizes only */
        const pq_column_metrics *m = metrics_of(&i, id);
        assert_true(m->column_size > 0);
        assert_int_equal(m->value_count, -1);
        assert_int_equal(m->null_count, -1);
        assert_null(m->lower);
        assert_null(m->upper);
    }
    assert_int_equal(i.n_columns, 19);
    assert_int_equal(i.n_split_offsets, 1);
    assert_int_equal(i.split_offsets[0], 4);
    fz_buf_free(&out);
    fz_arena_free(a);
}

/* arrow and DuckDB wrote the same 200 rows; NULL where i % 7 == 3. */
static void foreign(const char *path) {
    fz_error err;
    fz_arena *a = fz_arena_new();
    fz_buf file = load_file(path);
    pq_reader *r;
    pq_field *f;
    uint32_t nf, n;
    OK(pq_reader_open(file.len, mem_read, &file, &r, &err));
    OK(pq_reader_fields(r, a, &f, &nf, &err));
    assert_int_equal(nf, 12);
    assert_string_equal(f[8].name, "ns");
    assert_int_equal(f[8].type->kind, COL_TIMESTAMP);
    assert_int_equal(f[9].type->kind, COL_TIME);
    col_vec *v[12];
    OK(pq_reader_read(r, 0, f, nf, a, v, &n, &err));
    assert_int_equal(n, 200);
    for (uint32_t i = 0; i < n; i++) {
        for (int k = 0; k < 11; k++) assert_int_equal(col_is_null(v[k], i), i % 7 == 3);
        const col_vec *list = v[11];
        assert_int_equal(col_is_null(list, i), i % 5 == 0);
        if (i % 5) {
            assert_int_equal(list->off[i + 1] - list->off[i], i % 4);
            for (uint32_t j = 0; j < i % 4; j++) assert_int_equal(col_i32(list->child[0], list->off[i] + j), j);
        }
        if (i % 7 == 3) continue;
        char want[32];
        int64_t x = (int64_t)i * 1001 - 70001;
        assert_int_equal(col_i32(v[0], i), (int)(i * 37 % 101) - 50);
        assert_true(col_i64(v[1], i) == ((int64_t)i * i - 1000) * 1000000000);
        assert_true(col_f64(v[2], i) == i / 4.0);
        assert_true(col_f32(v[3], i) == (float)i / 2);
        snprintf(want, sizeof want, "prefix-%05u", (unsigned)i * 7);
        assert_true(fz_sv_eq(col_sv(v[4], i), fz_sv_of(want)));
        snprintf(want, sizeof want, "\xc3\xa9%u", (unsigned)i % 9);
        assert_true(fz_sv_eq(col_sv(v[5], i), fz_sv_of(want)));
        assert_int_equal(col_bool(v[6], i), i % 3 == 0);
        assert_true(col_i64(v[7], i) == ((int64_t)i * 1000 - 5001) * 1000);
        assert_true(col_i64(v[8], i) == (x < 0 ? -((-x + 999) / 1000) : x / 1000));
        assert_int_equal(col_i32(v[9], i), i * 1001);
        assert_true(col_dec(v[10], i) == (int)i - 100);
    }
    pq_reader_free(r);
    fz_buf_free(&file);
    fz_arena_free(a);
}
static void reads_arrow_v2_delta(void **state) { (void)state; foreign("test/data/parquet/arrow_v2_delta.parquet"); }
static void reads_arrow_v1_dictionary(void **state) { (void)state; foreign("test/data/parquet/arrow_v1_dict.parquet"); }
static void reads_duckdb(void **state) { (void)state; foreign("test/data/parquet/duckdb.parquet"); }

/* Any byte changed, any cut: an error or other values, never a crash (the sanitizer builds watch). */
static void damaged(const char *path) {
    fz_buf file = load_file(path), copy = {0};
    fz_error err;
    for (size_t i = 0; i < file.len * 2; i++) {
        copy.len = 0;
        fz_buf_append(&copy, file.data, i < file.len ? file.len : i - file.len);
        if (i < file.len) copy.data[i] ^= (uint8_t)(1u << (i * 7 % 8));
        else if (copy.len >= 8) memcpy(copy.data + copy.len - 8, file.data + file.len - 8, 8);
        pq_reader *r;
        if (pq_reader_open(copy.len, mem_read, &copy, &r, &err) != FZ_OK) continue;
        fz_arena *a = fz_arena_new();
        pq_field *f;
        uint32_t nf, n;
        if (pq_reader_rows(r) < 100000 && pq_reader_fields(r, a, &f, &nf, &err) == FZ_OK) {
            col_vec **v = fz_arena_calloc(a, nf + 1, sizeof *v);
            for (uint32_t g = 0; g < pq_reader_row_groups(r); g++)
                if (pq_reader_read(r, g, f, nf, a, v, &n, &err) != FZ_OK) break;
        }
        fz_arena_free(a);
        pq_reader_free(r);
    }
    fz_buf_free(&copy);
    fz_buf_free(&file);
}
static void damaged_files_are_errors(void **state) {
    (void)state;
    damaged("test/data/parquet/java_types.parquet");
    damaged("test/data/parquet/arrow_v2_delta.parquet");
    damaged("test/data/parquet/arrow_v1_dict.parquet");
    damaged("test/data/parquet/duckdb.parquet");
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_java), cmocka_unit_test(schema_bytes_are_java_s), cmocka_unit_test(metrics_are_java_s), cmocka_unit_test(reads_arrow_v2_delta),
        cmocka_unit_test(reads_arrow_v1_dictionary), cmocka_unit_test(reads_duckdb), cmocka_unit_test(damaged_files_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
