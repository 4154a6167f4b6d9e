/* Bounds: Iceberg metrics and their modes, statistics, column and offset index, and how bounds are cut. */
#include "pq_test.h"
#include "parquet/parquet_int.h"
#include "parquet/pq_read_int.h"
#include <math.h>

static col_vec *doubles(fz_arena *a, const double *x, uint32_t n) { /* 12345 stands for NULL */
    col_builder *b = col_builder_new(a, col_simple(COL_DOUBLE, true));
    for (uint32_t i = 0; i < n; i++) {
        if (x[i] == 12345) col_add_null(b);
        else col_add_f64(b, x[i]);
    }
    return col_builder_finish(b);
}
static col_vec *texts(fz_arena *a, const char *const *s, uint32_t n) {
    col_builder *b = col_builder_new(a, col_string(true));
    for (uint32_t i = 0; i < n; i++) {
        if (s[i]) col_add_bytes(b, s[i], strlen(s[i]));
        else col_add_null(b);
    }
    return col_builder_finish(b);
}

/* ---- what the footer and the indexes of a file say, parsed apart from the room's reader ---- */
typedef struct parsed {
    int64_t ci, oi, null_count;
    int32_t ci_n, oi_n;
    fz_sv min, max;
    bool has_min, has_max, min_inexact, max_inexact;
    uint32_t n;
    bool null_page[64];
    fz_sv lo[64], hi[64];
    int order;
    int64_t nulls[64], off[64], size[64], row[64];
} parsed;
static void parse_stats(tc_in *in, int type, parsed *p) {
    int id, t;
    assert_true(tc_struct(in, type));
    while (tc_field(in, &id, &t)) switch (id) {
        case 3: p->null_count = tc_int(in, t); break;
        case 5: p->max = tc_bytes(in, t); p->has_max = true; break;
        case 6: p->min = tc_bytes(in, t); p->has_min = true; break;
        case 7: p->max_inexact = !tc_bool(t); break;
        case 8: p->min_inexact = !tc_bool(t); break;
        default: fail();
    }
}
static void parse_indexes(const fz_buf *file, parsed *p) {
    int id, t, e;
    if (p->ci_n) {
        tc_in in = tc_in_on(file->data + p->ci, (size_t)p->ci_n);
        while (tc_field(&in, &id, &t)) {
            if (id == 4) { p->order = (int)tc_int(&in, t); continue; }
            uint32_t n = tc_list_begin(&in, t, &e);
            p->n = n;
            for (uint32_t i = 0; i < n; i++) {
                if (id == 1) p->null_page[i] = *in.p++ == 1;
                else if (id == 5) p->nulls[i] = tc_int(&in, e);
                else *(id == 2 ? &p->lo[i] : &p->hi[i]) = tc_bytes(&in, e);
            }
        }
        assert_false(in.bad);
        assert_ptr_equal(in.p, in.end);
    }
    tc_in in = tc_in_on(file->data + p->oi, (size_t)p->oi_n);
    while (tc_field(&in, &id, &t)) {
        p->n = tc_list_begin(&in, t, &e);
        for (uint32_t i = 0; i < p->n; i++) {
            assert_true(tc_struct(&in, e));
            p->off[i] = (tc_field(&in, &id, &t), tc_int(&in, t));
            p->size[i] = (tc_field(&in, &id, &t), tc_int(&in, t));
            p->row[i] = (tc_field(&in, &id, &t), tc_int(&in, t));
            assert_false(tc_field(&in, &id, &t));
        }
    }
    assert_false(in.bad);
    assert_ptr_equal(in.p, in.end);
}
static parsed parse(const fz_buf *file, uint32_t column) {
    static parsed zero;
    parsed p = zero;
    uint32_t len;
    int id, t, e, g;
    memcpy(&len, file->data + file->len - 8, 4);
    tc_in in = tc_in_on(file->data + file->len - 8 - len, len);
    while (tc_field(&in, &id, &t)) {
        if (id != 4) { tc_skip(&in, t); continue; }
        assert_int_equal(tc_list_begin(&in, t, &g), 1);
        assert_true(tc_struct(&in, g));
        while (tc_field(&in, &id, &t)) {
            if (id != 1) { tc_skip(&in, t); continue; }
            uint32_t n = tc_list_begin(&in, t, &e);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(tc_struct(&in, e));
                parsed one = zero;
                while (tc_field(&in, &id, &t)) {
                    if (id == 3 && tc_struct(&in, t)) {
                        while (tc_field(&in, &id, &t)) {
                            if (id == 12) parse_stats(&in, t, &one);
                            else tc_skip(&in, t);
                        }
                    } else if (id == 4) one.oi = tc_int(&in, t);
                    else if (id == 5) one.oi_n = (int32_t)tc_int(&in, t);
                    else if (id == 6) one.ci = tc_int(&in, t);
                    else if (id == 7) one.ci_n = (int32_t)tc_int(&in, t);
                    else tc_skip(&in, t);
                }
                if (i == column) p = one;
            }
        }
    }
    assert_false(in.bad);
    parse_indexes(file, &p);
    return p;
}
static void assert_bytes(fz_sv got, const void *want, size_t n) {
    assert_int_equal(got.n, n);
    if (n) assert_memory_equal(got.p, want, n);
}

/* ---- pages ---- */
static void pages_of_nulls(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    o.page_rows = 10;
    /* column 1: NULL in the first 3 pages, then one value behind 4 NULLs; column 2: NULL throughout; column 3: pages that fall */
    col_builder *b[3] = {col_builder_new(a, col_string(true)), col_builder_new(a, col_simple(COL_INT, true)), col_builder_new(a, col_simple(COL_INT, true))};
    for (int i = 0; i < 40; i++) {
        if (i == 34) col_add_bytes(b[0], "value", 5);
        else col_add_null(b[0]);
        col_add_null(b[1]);
        if (i / 10 == 1) col_add_null(b[2]);
        else col_add_i64(b[2], 100 - i);
    }
    col_vec *v[3];
    for (int k = 0; k < 3; k++) v[k] = col_builder_finish(b[k]);
    pq_field f[3] = {field("a", 1, col_string(true)), field("b", 2, col_simple(COL_INT, true)), field("c", 3, col_simple(COL_INT, true))};
    pq_file_info info = write_all(a, f, 3, &o, v, 40, 7, 0, &out);
    read_back(a, f, 3, v, 40, &out);
    parsed p = parse(&out, 0);
    assert_int_equal(p.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(p.null_page[i], i < 3);
        assert_int_equal(p.nulls[i], i < 3 ? 10 : 9);
        assert_int_equal(p.row[i], i * 10);
        assert_bytes(p.lo[i], "value", i < 3 ? 0 : 5);
        assert_bytes(p.hi[i], "value", i < 3 ? 0 : 5);
        if (i) assert_true(p.off[i] >= p.off[i - 1] + p.size[i - 1]);
    }
    assert_int_equal(p.order, 1);
    assert_int_equal(p.null_count, 39);
    p = parse(&out, 1);
    assert_false(p.has_min || p.has_max);
    assert_int_equal(p.null_count, 40);
    for (uint32_t i = 0; i < 4; i++) assert_true(p.null_page[i] && p.nulls[i] == 10);
    p = parse(&out, 2);
    assert_int_equal(p.order, 2); /* falls, and the page of NULLs in the middle does not count */
    assert_true(p.null_page[1] && !p.null_page[0]);
    const int32_t lo = 91;
    assert_bytes(p.lo[0], &lo, 4);
    assert_int_equal(metrics_of(&info, 2)->null_count, 40);
    assert_null(metrics_of(&info, 2)->lower);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void nan_and_zeros(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    const double x[] = {3, NAN, 0.0, -0.0, 12345, NAN}, nan[] = {NAN, NAN, 12345, NAN, NAN, NAN}, zero[] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    pq_field f[3] = {field("x", 1, col_simple(COL_DOUBLE, true)), field("nan", 2, col_simple(COL_DOUBLE, true)), field("zero", 3, col_simple(COL_DOUBLE, true))};
    col_vec *v[3] = {doubles(a, x, 6), doubles(a, nan, 6), doubles(a, zero, 6)};
    const double minus = -0.0, plus = 0.0, three = 3;
    for (int big = 0; big < 2; big++) { /* few rows are PLAIN, many a dictionary */
        uint32_t n = big ? 1200 : 6;
        uint32_t *sel = fz_arena_alloc(a, n * sizeof *sel);
        for (uint32_t i = 0; i < n; i++) sel[i] = i % 6;
        col_vec *w[3];
        for (int k = 0; k < 3; k++) w[k] = col_gather(a, v[k], sel, n);
        out.len = 0;
        pq_file_info info = write_all(a, f, 3, &o, w, n, n, 0, &out);
        const pq_column_metrics *m = metrics_of(&info, 1);
        assert_int_equal(m->nan_count, n / 3);
        assert_int_equal(m->null_count, n / 6);
        assert_memory_equal(m->lower, &minus, 8); /* -0.0 is below 0.0 */
        assert_memory_equal(m->upper, &three, 8);
        m = metrics_of(&info, 2);
        assert_int_equal(m->nan_count, n / 6 * 5);
        assert_null(m->lower);
        assert_null(m->upper);
        m = metrics_of(&info, 3);
        assert_memory_equal(m->lower, &plus, 8);
        assert_memory_equal(m->upper, &plus, 8);
        parsed p = parse(&out, 0);
        assert_bytes(p.min, &minus, 8);
        assert_bytes(p.max, &three, 8);
        p = parse(&out, 1); /* values without bounds: no column index, the offset index stays */
        assert_int_equal(p.ci_n, 0);
        assert_int_equal(p.n, 1);
        assert_false(p.has_min || p.has_max);
        p = parse(&out, 2); /* Parquet's rule: a zero bound covers both zeros */
        assert_bytes(p.min, &minus, 8);
        assert_bytes(p.max, &plus, 8);
        assert_bytes(p.lo[0], &minus, 8);
        assert_bytes(p.hi[0], &plus, 8);
    }
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void unsigned_text_order(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    const char *s[] = {"z", "\xc3\xa9", NULL, ""};
    pq_field f[1] = {field("s", 1, col_string(true))};
    col_vec *v[1] = {texts(a, s, 2)};
    pq_file_info info = write_all(a, f, 1, &o, v, 2, 2, 0, &out);
    const pq_column_metrics *m = metrics_of(&info, 1);
    assert_bytes((fz_sv){(const char *)m->lower, m->lower_len}, "z", 1);
    assert_bytes((fz_sv){(const char *)m->upper, m->upper_len}, "\xc3\xa9", 2);
    v[0] = texts(a, s, 4);
    out.len = 0;
    info = write_all(a, f, 1, &o, v, 4, 4, 0, &out);
    m = metrics_of(&info, 1);
    assert_int_equal(m->lower_len, 0); /* the empty text is a bound, not a missing one */
    assert_non_null(m->lower);
    parsed p = parse(&out, 0);
    assert_true(p.has_min && p.min.n == 0 && !p.null_page[0]);
    fz_buf_free(&out);
    fz_arena_free(a);
}

/* ---- cutting ---- */
static void cut(const char *s, int mode, const char *lower, const char *upper) {
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    pq_field f[1] = {field("s", 1, col_string(true))};
    f[0].metrics_truncate = mode;
    col_vec *v[1] = {texts(a, &s, 1)};
    pq_file_info info = write_all(a, f, 1, &o, v, 1, 1, 0, &out);
    const pq_column_metrics *m = metrics_of(&info, 1);
    assert_bytes((fz_sv){(const char *)m->lower, m->lower_len}, lower, strlen(lower));
    if (upper) assert_bytes((fz_sv){(const char *)m->upper, m->upper_len}, upper, strlen(upper));
    else assert_null(m->upper);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void metrics_are_cut_on_code_points(void **state) {
    (void)state;
    cut("abcdefghijklmnop", 16, "abcdefghijklmnop", "abcdefghijklmnop");
    cut("abcdefghijklmnopq", 16, "abcdefghijklmnop", "abcdefghijklmnoq");
    cut("\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9\xc3\xa9", "\xc3\xa9\xc3\xaa");
    cut("a\x7f!", 2, "a\x7f", "a\xc2\x80");                                                  /* the successor is longer in bytes */
    cut("a\xed\x9f\xbf!", 2, "a\xed\x9f\xbf", "a\xee\x80\x80");                              /* U+D7FF -> U+E000: surrogates are skipped */
    cut("a\xf4\x8f\xbf\xbf!", 2, "a\xf4\x8f\xbf\xbf", "b");                                  /* U+10FFFF has none: the one before it moves */
    cut("\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf!", 2, "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf", NULL);   /* no successor: no upper bound */
    cut("abcdefghijklmnopqrstuvwxyz", -1, "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz");
}
static void modes(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    const char *s[] = {"x", NULL};
    pq_field f[2] = {field("none", 1, col_string(true)), field("counts", 2, col_string(true))};
    f[0].metrics_truncate = 0;
    f[1].metrics_truncate = -2;
    col_vec *v[2] = {texts(a, s, 2), texts(a, s, 2)};
    pq_file_info i = write_all(a, f, 2, &o, v, 2, 2, 0, &out);
    assert_int_equal(metrics_of(&i, 1)->value_count, -1);
    assert_true(metrics_of(&i, 1)->column_size > 0);
    assert_int_equal(metrics_of(&i, 2)->value_count, 2);
    assert_int_equal(metrics_of(&i, 2)->null_count, 1);
    assert_null(metrics_of(&i, 2)->lower);
    fz_buf_free(&out);
    fz_arena_free(a);
}
static void binary_successors(void **state) {
    (void)state;
    uint8_t b[8] = {1, 0xFF, 0xFF};
    uint32_t n = 3;
    assert_true(pq_increment(b, &n, false));
    assert_int_equal(n, 1);
    assert_int_equal(b[0], 2);
    b[0] = b[1] = 0xFF;
    n = 2;
    assert_false(pq_increment(b, &n, false));
}
static void long_values_are_cut_in_the_index(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    char t[200], ff[200];
    memset(t, 'm', sizeof t);
    memset(ff, 0xFF, sizeof ff);
    memcpy(t + 63, "\xc3\xa9", 2); /* a character across the limit goes whole */
    const col_type *bin = col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true);
    pq_field f[2] = {field("t", 1, col_string(true)), field("b", 2, bin)};
    col_builder *b[2] = {col_builder_new(a, f[0].type), col_builder_new(a, bin)};
    col_add_bytes(b[0], t, sizeof t);
    col_add_bytes(b[1], ff, sizeof ff);
    col_vec *v[2] = {col_builder_finish(b[0]), col_builder_finish(b[1])};
    pq_file_info info = write_all(a, f, 2, &o, v, 1, 1, 0, &out);
    char up[64];
    memset(up, 'm', 62);
    up[62] = 'n';
    parsed p = parse(&out, 0);
    assert_bytes(p.lo[0], t, 63);
    assert_bytes(p.hi[0], up, 63);
    assert_bytes(p.min, t, 63);
    assert_bytes(p.max, up, 63);
    assert_true(p.min_inexact && p.max_inexact);
    p = parse(&out, 1); /* nothing is above 0xFF...: the index keeps the whole value, the statistics none */
    assert_bytes(p.lo[0], ff, 64);
    assert_bytes(p.hi[0], ff, 200);
    assert_true(p.has_min && !p.has_max);
    assert_int_equal(metrics_of(&info, 2)->lower_len, 16);
    assert_null(metrics_of(&info, 2)->upper);
    fz_buf_free(&out);
    fz_arena_free(a);
}
/* Bounds of pages and of the chunk, for a column that begins with a dictionary and falls back, against a plain search. */
static void bounds_of_many_pages(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_buf out = {0};
    pq_options o = options();
    o.page_rows = 100;
    o.dict_size = 1500;
    enum { ROWS = 3000 };
    col_builder *b = col_builder_new(a, col_string(true));
    for (uint32_t i = 0; i < ROWS; i++) {
        char s[48];
        uint32_t k = i < 1500 ? (i * 37) % 60 : i * 2654435761u % 100000;
        col_add_bytes(b, s, (size_t)snprintf(s, sizeof s, "same prefix %05u", (unsigned)k));
    }
    pq_field f[1] = {field("s", 1, col_string(true))};
    col_vec *v[1] = {col_builder_finish(b)};
    write_all(a, f, 1, &o, v, ROWS, 64, 0, &out);
    read_back(a, f, 1, v, ROWS, &out);
    parsed p = parse(&out, 0);
    assert_true(p.n >= 30 && p.n < 64);
    fz_sv least = {0}, most = {0};
    for (uint32_t g = 0; g < p.n; g++) {
        uint32_t from = (uint32_t)p.row[g], to = g + 1 < p.n ? (uint32_t)p.row[g + 1] : ROWS;
        fz_sv lo = col_sv(v[0], from), hi = lo;
        for (uint32_t i = from; i < to; i++) {
            fz_sv s = col_sv(v[0], i);
            if (fz_sv_cmp(s, lo) < 0) lo = s;
            if (fz_sv_cmp(s, hi) > 0) hi = s;
        }
        assert_bytes(p.lo[g], lo.p, lo.n);
        assert_bytes(p.hi[g], hi.p, hi.n);
        if (!g || fz_sv_cmp(lo, least) < 0) least = lo;
        if (!g || fz_sv_cmp(hi, most) > 0) most = hi;
    }
    assert_bytes(p.min, least.p, least.n);
    assert_bytes(p.max, most.p, most.n);
    assert_int_equal(p.order, 0);
    fz_buf_free(&out);
    fz_arena_free(a);
}
/* Distinct values must not stay in the dictionary for long; repeated ones must. */
static void dictionary_when_it_pays(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    pq_options o = options();
    o.compression = PQ_UNCOMPRESSED;
    for (uint32_t distinct = 50; distinct <= 5000; distinct *= 100) {
        fz_buf out = {0};
        col_builder *b = col_builder_new(a, col_string(true));
        uint64_t raw = 0;
        for (uint32_t i = 0; i < 5000; i++) {
            char s[200];
            int n = snprintf(s, sizeof s, "a message number %u with a certain length that is typical of logs %080u", (unsigned)(i % distinct), (unsigned)(i % distinct));
            raw += (unsigned)n + 4;
            col_add_bytes(b, s, (size_t)n);
        }
        pq_field f[1] = {field("s", 1, col_string(true))};
        col_vec *v[1] = {col_builder_finish(b)}, *got[1];
        write_all(a, f, 1, &o, v, 5000, 100, 0, &out);
        if (distinct == 50) assert_true(out.len < raw / 20);
        else assert_true(out.len < raw + raw / 50);
        pq_reader *r;
        uint32_t n;
        OK(pq_reader_open(out.len, mem_read, &out, &r, &err));
        OK(pq_reader_read(r, 0, f, 1, a, got, &n, &err));
        assert_int_equal(got[0]->idx != NULL, distinct == 50);
        pq_reader_free(r);
        fz_buf_free(&out);
    }
    fz_arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_nulls), cmocka_unit_test(nan_and_zeros), cmocka_unit_test(unsigned_text_order), cmocka_unit_test(metrics_are_cut_on_code_points),
        cmocka_unit_test(modes), cmocka_unit_test(binary_successors), cmocka_unit_test(long_values_are_cut_in_the_index), cmocka_unit_test(bounds_of_many_pages),
        cmocka_unit_test(dictionary_when_it_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
