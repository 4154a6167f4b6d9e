/* Everything that is written is read back: types, NULLs, nesting, pages, row groups, dictionaries, codecs. */
#include "pq_test.h"

enum { FLAT = 17, ALL = 20 };
typedef struct table { pq_field f[ALL]; col_vec *v[ALL]; uint32_t n; } table;

static uint64_t state_;
static uint32_t rnd(uint32_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state_ >> 33) % n;
}
static void fields(fz_arena *a, table *t) {
    const struct { const char *name; const col_type *type; } flat[FLAT] = {
        {"b", col_simple(COL_BOOLEAN, true)}, {"t", col_simple(COL_TINYINT, true)}, {"i", col_simple(COL_INT, true)}, {"l", col_simple(COL_BIGINT, true)},
        {"f", col_simple(COL_FLOAT, true)}, {"d", col_simple(COL_DOUBLE, true)}, {"s", col_string(true)}, {"bin", col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true)},
        {"dt", col_simple(COL_DATE, true)}, {"tm", col_sized(a, COL_TIME, 3, 0, true)}, {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true)}, {"tz", col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true)},
        {"d9", col_sized(a, COL_DECIMAL, 9, 2, true)}, {"d18", col_sized(a, COL_DECIMAL, 18, 4, true)}, {"d25", col_sized(a, COL_DECIMAL, 25, 3, true)},
        {"u", col_sized(a, COL_BINARY, 16, 0, true)}, {"req", col_string(false)}};
    for (int32_t k = 0; k < FLAT; k++) t->f[k] = field(flat[k].name, k + 1, flat[k].type);
    t->f[15].is_uuid = true;
    const col_type *str = col_string(true), *key = col_string(false), *in = col_simple(COL_INT, true);
    pq_field *inner = FZ_ANEWN(a, pq_field, 1), *el = FZ_ANEWN(a, pq_field, 1), *kv = FZ_ANEWN(a, pq_field, 2), *st = FZ_ANEWN(a, pq_field, 2);
    *inner = field("element", 31, in);
    *el = field("element", 30, col_array(a, in, true));
    el->children = inner;
    el->n_children = 1;
    kv[0] = field("key", 32, key);
    kv[1] = field("value", 33, str);
    st[0] = field("a", 34, str);
    st[1] = field("b", 35, col_array(a, in, true));
    pq_field *deep = FZ_ANEWN(a, pq_field, 1);
    *deep = field("element", 36, in);
    st[1].children = deep;
    st[1].n_children = 1;
    const col_field row[] = {{"a", st[0].type, NULL}, {"b", st[1].type, NULL}};
    t->f[17] = field("lists", 27, col_array(a, el->type, true));
    t->f[17].children = el;
    t->f[18] = field("map", 28, col_map(a, key, str, true));
    t->f[18].children = kv;
    t->f[19] = field("row", 29, col_row(a, row, 2, true));
    t->f[19].children = st;
    t->f[17].n_children = 1;
    t->f[18].n_children = t->f[19].n_children = 2;
}
static void int_list(col_builder *b) {
    uint32_t n = rnd(5);
    if (n == 4) { col_add_null(b); return; }
    for (uint32_t i = 0; i < n; i++) {
        if (rnd(6) == 0) col_add_null(col_builder_child(b, 0));
        else col_add_i64(col_builder_child(b, 0), rnd(1000));
    }
    col_add_nested(b);
}
static void text(col_builder *b, const char *fmt, uint32_t x) {
    char s[200];
    col_add_bytes(b, s, (size_t)snprintf(s, sizeof s, fmt, (unsigned)x));
}
static void nested(table *t, col_builder **b) {
    (void)t;
    if (rnd(5) == 0) col_add_null(b[17]);
    else {
        for (uint32_t i = rnd(4); i; i--) int_list(col_builder_child(b[17], 0));
        col_add_nested(b[17]);
    }
    if (rnd(5) == 0) col_add_null(b[18]);
    else {
        for (uint32_t i = rnd(4); i; i--) {
            text(col_builder_child(b[18], 0), "key%u", i);
            if (rnd(3)) text(col_builder_child(b[18], 1), "value%u", rnd(20));
            else col_add_null(col_builder_child(b[18], 1));
        }
        col_add_nested(b[18]);
    }
    if (rnd(5) == 0) col_add_null(b[19]);
    else {
        if (rnd(3)) text(col_builder_child(b[19], 0), "r%u", rnd(1000000));
        else col_add_null(col_builder_child(b[19], 0));
        int_list(col_builder_child(b[19], 1));
        col_add_nested(b[19]);
    }
}
/* distinct: how many values a column has, about; nulls: one row in that many (0: none). */
static table make(fz_arena *a, uint32_t n, uint32_t distinct, uint32_t nulls) {
    table t = {.n = n};
    col_builder *b[ALL];
    fields(a, &t);
    state_ = n * 31 + distinct;
    for (int k = 0; k < ALL; k++) b[k] = col_builder_new(a, t.f[k].type);
    for (uint32_t i = 0; i < n; i++) {
        for (int k = 0; k < FLAT - 1; k++) {
            uint32_t x = rnd(distinct);
            if (nulls && rnd(nulls) == 0) { col_add_null(b[k]); continue; }
            switch (k) {
            case 0: col_add_bool(b[k], x & 1); break;
            case 4: case 5: col_add_f64(b[k], (double)x * 0.125 - 3); break;
            case 6: text(b[k], "caf\xc3\xa9 %u", x); break;
            case 7: col_add_bytes(b[k], "\xff\x00\x80\x7f\xff", x % 6); break;
            case 9: col_add_i64(b[k], x % 86400000); break;
            case 12: case 13: case 14: col_add_dec(b[k], ((col_i128)x - 50) * (k == 12 ? 1 : k == 13 ? 1000000007 : (col_i128)1000000007 * 1000000000)); break;
            case 15: { char u[17]; snprintf(u, sizeof u, "%016u", (unsigned)x); col_add_bytes(b[k], u, 16); break; }
            default: col_add_i64(b[k], (int64_t)x - 40);
            }
        }
        text(b[FLAT - 1], "a message of some length that is different each time: %u", i * 7919);
        nested(&t, b);
    }
    for (int k = 0; k < ALL; k++) t.v[k] = col_builder_finish(b[k]);
    return t;
}
static void check(uint32_t n, uint32_t distinct, uint32_t nulls, const pq_options *o, uint32_t step, uint32_t group) {
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    table t = make(a, n, distinct, nulls);
    write_all(a, t.f, ALL, o, t.v, n, step, group, &out);
    read_back(a, t.f, ALL, t.v, n, &out);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void codecs(void **state) {
    (void)state;
    pq_options o = options();
    for (int c = PQ_UNCOMPRESSED; c <= PQ_ZSTD; c++) {
        o.compression = (pq_compression)c;
        check(700, 90, 6, &o, 100, 0);
    }
}
static void sizes_of_appends_and_groups(void **state) {
    (void)state;
    pq_options o = options();
    check(1, 1, 0, &o, 1, 0);
    check(0, 1, 0, &o, 1, 0);
    check(1000, 3, 2, &o, 7, 0);
    check(3000, 1000000, 0, &o, 3000, 1000);
    check(3000, 300, 9, &o, 64, 500);
}
static void small_pages(void **state) {
    (void)state;
    pq_options o = options();
    o.page_rows = 37;
    check(1500, 50, 4, &o, 100, 0);
    o.page_rows = 20000;
    o.page_size = 500;
    check(1500, 5000, 4, &o, 1500, 0);
    o.page_size = 1;
    check(200, 50, 4, &o, 10, 0);
}
static void dictionary_outgrows_its_limit(void **state) {
    (void)state;
    pq_options o = options();
    o.dict_size = 200;
    o.page_rows = 100;
    check(3000, 400, 5, &o, 50, 0);
    check(3000, 30, 0, &o, 500, 0);
}
static void row_group_target(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    o.compression = PQ_UNCOMPRESSED;
    o.row_group_size = 20000;
    table t = make(a, 2000, 1000, 5);
    pq_file_info info = write_all(a, t.f, ALL, &o, t.v, t.n, 100, 0, &out);
    assert_true(info.n_split_offsets > 3);
    assert_int_equal(info.split_offsets[0], 4);
    read_back(a, t.f, ALL, t.v, t.n, &out);
    fz_buf_free(&out);
    fz_arena_free(a);
}
/* Dictionary vectors, each batch with its own dictionary, entries repeated, unused and NULL in it; rows selected out of order. */
static void dictionary_vectors(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf out = {0};
    pq_options o = options();
    pq_field f[2] = {field("s", 1, col_string(true)), field("i", 2, col_simple(COL_INT, true))};
    pq_codec *c = pq_codec_new();
    pq_writer *w;
    OK(pq_writer_new(f, 2, &o, NULL, 0, &w, &err));
    col_builder *want[2] = {col_builder_new(a, f[0].type), col_builder_new(a, f[1].type)};
    for (uint32_t batch = 0; batch < 30; batch++) {
        col_builder *d[2] = {col_builder_new(a, f[0].type), col_builder_new(a, f[1].type)};
        for (uint32_t e = 0; e < 20; e++) {
            if (e == 7) { col_add_null(d[0]); col_add_null(d[1]); continue; }
            text(d[0], "value %u", (batch + e / 2) % 40);
            col_add_i64(d[1], (batch * 3 + e) % 50);
        }
        col_vec *v[2];
        uint32_t sel[25];
        for (int k = 0; k < 2; k++) {
            v[k] = col_vec_dict(a, col_builder_finish(d[k]), 50);
            for (uint32_t i = 0; i < 50; i++) v[k]->idx[i] = (i * 7 + batch) % 20;
        }
        if (batch % 3 == 0) { memset(col_vec_mask(a, v[0]), 1, 50); v[0]->valid[batch] = 0; v[0]->idx[batch] = 0; }
        for (uint32_t i = 0; i < 25; i++) sel[i] = (i * 2 + batch) % 50;
        OK(pq_writer_append(w, v, sel, 25, c, mem_write, &out, &err));
        for (uint32_t i = 0; i < 25; i++)
            for (int k = 0; k < 2; k++) {
                if (col_is_null(v[k], sel[i])) col_add_null(want[k]);
                else if (k) col_add_i64(want[k], col_i32(v[k], sel[i]));
                else { fz_sv s = col_sv(v[k], sel[i]); col_add_bytes(want[k], s.p, s.n); }
            }
    }
    pq_file_info info;
    OK(pq_writer_finish(w, c, mem_write, &out, a, &info, &err));
    col_vec *all[2] = {col_builder_finish(want[0]), col_builder_finish(want[1])};
    read_back(a, f, 2, all, 750, &out);
    pq_reader *r;
    col_vec *got[2];
    uint32_t n;
    OK(pq_reader_open(out.len, mem_read, &out, &r, &err));
    OK(pq_reader_read(r, 0, f, 2, a, got, &n, &err));
    assert_non_null(got[0]->idx); /* 39 values in 750 rows: a dictionary it is, and it stays one when read */
    assert_int_equal(got[0]->dict->len, 39);
    pq_reader_free(r);
    pq_writer_free(w);
    pq_codec_free(c);
    fz_buf_free(&out);
    fz_arena_free(a);
}
/* Flat vectors of short values that differ in a byte or in their length only, few and many of them, in several files from one batch. */
static void short_values_are_told_apart(void **state) {
    (void)state;
    for (uint32_t distinct = 3; distinct < 400; distinct *= 2) {
        fz_arena *a = fz_arena_new();
        pq_field f[3] = {field("s", 1, col_string(false)), field("i", 2, col_simple(COL_INT, false)), field("l", 3, col_simple(COL_BIGINT, false))};
        col_builder *b[3] = {col_builder_new(a, f[0].type), col_builder_new(a, f[1].type), col_builder_new(a, f[2].type)};
        enum { ROWS = 6000 };
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t k = i * 2654435761u % distinct;
            char t[20] = {0};
            memset(t, k % 3 ? 'a' : 0, k % 19);
            if (k % 19) t[k / 19 % (k % 19)] = (char)(k / 19);
            col_add_bytes(b[0], t, k % 19);
            col_add_i64(b[1], (int64_t)(int32_t)((k % 2 ? k : k << 16) * (k % 5 ? 1u : ~0u)));
            col_add_i64(b[2], k % 2 ? (int64_t)k : (int64_t)k << 40);
        }
        col_vec *v[3] = {col_builder_finish(b[0]), col_builder_finish(b[1]), col_builder_finish(b[2])};
        pq_options o = options();
        for (uint32_t step = 500; step <= ROWS; step *= 4) {
            fz_buf out = {0};
            write_all(a, f, 3, &o, v, ROWS, step, 0, &out);
            read_back(a, f, 3, v, ROWS, &out);
            fz_buf_free(&out);
        }
        fz_arena_free(a);
    }
}
static void promotion_and_missing_columns(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf out = {0};
    pq_options o = options();
    pq_field f[3] = {field("i", 1, col_simple(COL_INT, true)), field("f", 2, col_simple(COL_FLOAT, true)), field("d", 3, col_sized(a, COL_DECIMAL, 9, 2, true))};
    col_builder *b[3];
    for (int k = 0; k < 3; k++) b[k] = col_builder_new(a, f[k].type);
    for (int i = 0; i < 10; i++) {
        col_add_i64(b[0], i - 5);
        col_add_f64(b[1], i * 0.5);
        col_add_dec(b[2], i * 100 - 7);
    }
    col_vec *v[3];
    for (int k = 0; k < 3; k++) v[k] = col_builder_finish(b[k]);
    write_all(a, f, 3, &o, v, 10, 10, 0, &out);
    pq_field want[4] = {field("renamed", 1, col_simple(COL_BIGINT, true)), field("f", 2, col_simple(COL_DOUBLE, true)), field("d", 3, col_sized(a, COL_DECIMAL, 30, 2, true)), field("new", 9, col_string(true))};
    pq_reader *r;
    col_vec *got[4];
    uint32_t n;
    OK(pq_reader_open(out.len, mem_read, &out, &r, &err));
    OK(pq_reader_read(r, 0, want, 4, a, got, &n, &err));
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(col_i64(got[0], i), (int)i - 5);
        assert_true(col_f64(got[1], i) == i * 0.5);
        assert_true(col_dec(got[2], i) == (int)i * 100 - 7);
        assert_true(col_is_null(got[3], i));
    }
    want[0].type = col_string(true);
    assert_int_equal(pq_reader_read(r, 0, want, 1, a, got, &n, &err), FZ_USER);
    assert_string_equal(err.code, "parquet.type-mismatch");
    pq_reader_free(r);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void refused_rows_leave_nothing(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf out = {0};
    pq_options o = options();
    const col_type *fixed = col_sized(a, COL_BINARY, 4, 0, true);
    pq_field f[3] = {field("a", 1, col_simple(COL_INT, true)), field("must", 2, col_string(true)), field("x", 3, fixed)};
    f[1].required = true;
    f[2].is_fixed = true;
    col_builder *b[3];
    for (int k = 0; k < 3; k++) b[k] = col_builder_new(a, f[k].type);
    for (int i = 0; i < 4; i++) {
        col_add_i64(b[0], i);
        if (i == 2) col_add_null(b[1]);
        else col_add_bytes(b[1], "yes", 3);
        col_add_bytes(b[2], "abcdefgh", i == 3 ? 5 : 4);
    }
    col_vec *v[3];
    for (int k = 0; k < 3; k++) v[k] = col_builder_finish(b[k]);
    pq_codec *c = pq_codec_new();
    pq_writer *w;
    uint32_t bad[] = {0, 1, 2}, longer[] = {0, 3}, good[] = {1, 0};
    OK(pq_writer_new(f, 3, &o, NULL, 0, &w, &err));
    assert_true(pq_writer_bytes(w) < 2048);
    assert_int_equal(pq_writer_append(w, v, bad, 3, c, mem_write, &out, &err), FZ_DATA);
    assert_string_equal(err.code, "not-null");
    assert_non_null(strstr(err.message, "must"));
    assert_int_equal(pq_writer_append(w, v, longer, 2, c, mem_write, &out, &err), FZ_DATA);
    assert_string_equal(err.code, "parquet.fixed-length");
    OK(pq_writer_append(w, v, good, 2, c, mem_write, &out, &err));
    pq_file_info info;
    OK(pq_writer_finish(w, c, mem_write, &out, a, &info, &err));
    assert_int_equal(info.rows, 2);
    col_vec *want[3];
    for (int k = 0; k < 3; k++) want[k] = col_gather(a, v[k], good, 2);
    read_back(a, f, 3, want, 2, &out);
    pq_writer_free(w);
    o.bloom = true;
    assert_int_equal(pq_writer_new(f, 3, &o, NULL, 0, &w, &err), FZ_USER);
    f[0].type = col_simple(COL_INTERVAL_DAY, true);
    o.bloom = false;
    assert_int_equal(pq_writer_new(f, 3, &o, NULL, 0, &w, &err), FZ_USER);
    assert_string_equal(err.code, "parquet.unsupported-type");
    pq_codec_free(c);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void pages_end_under_pressure(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf out = {0};
    pq_options o = options();
    table t = make(a, 4000, 100000, 5);
    pq_codec *c = pq_codec_new();
    pq_writer *w;
    pq_file_info info;
    OK(pq_writer_new(t.f, ALL, &o, NULL, 0, &w, &err));
    uint32_t sel[4000];
    for (uint32_t i = 0; i < 4000; i++) sel[i] = i;
    for (uint32_t i = 0; i < 4000; i += 1000) {
        OK(pq_writer_append(w, t.v, sel + i, 1000, c, mem_write, &out, &err));
        size_t before = pq_writer_bytes(w);
        OK(pq_writer_flush_pages(w, i == 2000 ? 0 : 4096, c, &err));
        assert_true(pq_writer_bytes(w) < before - before / 4);
        assert_int_equal(out.len, 0); /* nothing leaves before the row group does */
    }
    OK(pq_writer_finish(w, c, mem_write, &out, a, &info, &err));
    assert_int_equal(info.n_split_offsets, 1);
    read_back(a, t.f, ALL, t.v, t.n, &out);
    pq_writer_free(w);
    pq_codec_free(c);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static fz_status failing_write(void *cx, const void *p, size_t n, fz_error *err) {
    (void)p;
    (void)n;
    return --*(int *)cx < 0 ? fz_fail(err, FZ_RETRY, "test.full", "no room") : FZ_OK;
}
static void failed_writes_come_through(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    pq_options o = options();
    table t = make(a, 100, 10, 3);
    uint32_t sel[100];
    for (uint32_t i = 0; i < 100; i++) sel[i] = i;
    for (int calls = 0; calls < 12; calls++) {
        int left = calls;
        pq_codec *c = pq_codec_new();
        pq_writer *w;
        pq_file_info info;
        OK(pq_writer_new(t.f, ALL, &o, NULL, 0, &w, &err));
        OK(pq_writer_append(w, t.v, sel, 100, c, failing_write, &left, &err));
        assert_int_equal(pq_writer_finish(w, c, failing_write, &left, a, &info, &err), FZ_RETRY);
        assert_int_equal(pq_writer_append(w, t.v, sel, 100, c, failing_write, &left, &err), FZ_FATAL);
        pq_writer_free(w);
        pq_codec_free(c);
    }
    fz_arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs), cmocka_unit_test(sizes_of_appends_and_groups), cmocka_unit_test(small_pages), cmocka_unit_test(dictionary_outgrows_its_limit),
        cmocka_unit_test(row_group_target), cmocka_unit_test(dictionary_vectors), cmocka_unit_test(short_values_are_told_apart), cmocka_unit_test(promotion_and_missing_columns),
        cmocka_unit_test(refused_rows_leave_nothing), cmocka_unit_test(pages_end_under_pressure), cmocka_unit_test(failed_writes_come_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
