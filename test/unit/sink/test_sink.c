/* Partition fan-out and open files. */
#include "unit.h"
#include "fileio/fileio.h"
#include "parquet/parquet.h"
#include "sink/sink.h"
#include <stdlib.h>

static fz_arena *arena;
static ice_metadata *meta;

static void make_table(const char *const *by, uint32_t n_by, const fz_pair *props, uint32_t n_props) {
    fz_error err;
    arena = fz_arena_new();
    col_field f[] = {{"id", col_simple(COL_BIGINT, false), NULL}, {"host", col_string(true), NULL}, {"dt", col_simple(COL_DATE, true), NULL}, {"msg", col_string(true), NULL}};
    col_schema cols = {4, f};
    ice_schema *schema;
    assert_int_equal(ice_schema_from_cols(arena, &cols, NULL, 0, &schema, &err), FZ_OK);
    ice_term terms[2] = {{0}};
    for (uint32_t i = 0; i < n_by; i++) terms[i].column = by[i];
    ice_spec *spec;
    assert_int_equal(ice_spec_build(arena, schema, terms, n_by, &spec, &err), FZ_OK);
    assert_int_equal(ice_metadata_new("mem://sink/t", schema, spec, NULL, props, n_props, "11111111-1111-4111-8111-111111111111", 1700000000000, &meta, &err), FZ_OK);
}
static void drop_table(void) {
    ice_metadata_free(meta);
    fz_arena_free(arena);
}

/* n rows; host as a dictionary with doubled and NULL entries, dt flat with NULLs. */
static col_batch *make_batch(uint32_t n, uint32_t hosts, unsigned seed) {
    srand(seed);
    col_batch *b = col_batch_new(NULL, n);
    fz_arena *a = b->arena;
    col_builder *id = col_builder_new(a, col_simple(COL_BIGINT, false)), *dict = col_builder_new(a, col_string(true)), *dt = col_builder_new(a, col_simple(COL_DATE, true)),
                *msg = col_builder_new(a, col_string(true));
    for (uint32_t h = 0; h < hosts; h++) {
        char name[32];
        int len = snprintf(name, sizeof name, "host-%u", h / 2); /* each value twice */
        if (h % 7 == 6) col_add_null(dict);
        else col_add_bytes(dict, name, (size_t)len);
    }
    col_vec *host = col_vec_dict(a, col_builder_finish(dict), n);
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "message %u %d", i, rand());
        col_add_i64(id, i);
        host->idx[i] = (uint32_t)rand() % hosts;
        if (rand() % 11 == 0) col_add_null(dt);
        else col_add_i64(dt, 20000 + rand() % 3);
        col_add_bytes(msg, text, (size_t)len);
    }
    for (uint32_t i = 0; i < n; i += 13) col_vec_mask(a, host)[i] = 0;
    col_vec **cols = FZ_ANEWN(a, col_vec *, 4);
    cols[0] = col_builder_finish(id);
    cols[1] = host;
    cols[2] = col_builder_finish(dt);
    cols[3] = col_builder_finish(msg);
    b->cols = cols;
    return b;
}

static void every_row_goes_to_its_tuple_once(void **state) {
    (void)state;
    fz_error err;
    static const char *const by[] = {"dt", "host"};
    make_table(by, 2, NULL, 0);
    sink_table *t;
    assert_int_equal(sink_table_new(NULL, meta, "run", 0, &t, &err), FZ_OK);
    col_batch *b = make_batch(3000, 30, 5);
    sink_route_result r;
    assert_int_equal(sink_route(t, b->cols, 3000, b->arena, &r, &err), FZ_OK);
    uint8_t *seen = calloc(3000, 1);
    for (uint32_t p = 0; p < r.n; p++) {
        for (uint32_t q = 0; q < p; q++) assert_false(ice_tuple_eq(r.parts[p].tuple, r.parts[q].tuple));
        for (uint32_t k = 0; k < r.parts[p].n_sel; k++) {
            uint32_t row = r.parts[p].sel[k];
            assert_int_equal(seen[row]++, 0);
            if (k) assert_true(row > r.parts[p].sel[k - 1]);
            const ice_value *dt = &r.parts[p].tuple.v[0], *host = &r.parts[p].tuple.v[1];
            assert_int_equal(dt->is_null, col_is_null(b->cols[2], row));
            if (!dt->is_null) assert_int_equal(dt->i, col_i32(b->cols[2], row));
            assert_int_equal(host->is_null, col_is_null(b->cols[1], row));
            if (!host->is_null) assert_true(fz_sv_eq(host->s, col_sv(b->cols[1], row)));
        }
    }
    for (uint32_t i = 0; i < 3000; i++) assert_int_equal(seen[i], 1);
    free(seen);
    col_batch_release(b);
    sink_table_free(t);
    drop_table();
}

static void required_columns_are_checked(void **state) {
    (void)state;
    fz_error err;
    make_table(NULL, 0, NULL, 0);
    sink_table *t;
    assert_int_equal(sink_table_new(NULL, meta, "run", 0, &t, &err), FZ_OK);
    col_batch *b = make_batch(10, 3, 1);
    col_vec_mask(b->arena, b->cols[0])[4] = 0;
    const uint32_t *keep;
    uint32_t n;
    fz_rejects rejects = {0};
    sink_check_required(t, b->cols, 10, b->arena, &keep, &n, &rejects);
    assert_int_equal(n, 9);
    assert_int_equal(keep[4], 5);
    assert_int_equal(rejects.n, 1);
    assert_string_equal(rejects.v[0].code, "not-null");
    assert_int_equal(rejects.v[0].rec, 4);
    fz_free(rejects.v);
    col_batch_release(b);
    sink_table_free(t);
    drop_table();
}

static uint64_t write_batches(sink_shard *s, sink_table *t, int n, uint32_t hosts) {
    fz_error err;
    uint64_t rows = 0;
    for (int i = 0; i < n; i++) {
        col_batch *b = make_batch(4000, hosts, (unsigned)i);
        sink_route_result r;
        assert_int_equal(sink_route(t, b->cols, 4000, b->arena, &r, &err), FZ_OK);
        const sink_part **parts = FZ_ANEWN(b->arena, const sink_part *, r.n);
        for (uint32_t p = 0; p < r.n; p++) parts[p] = &r.parts[p];
        assert_int_equal(sink_shard_write(s, t, b->cols, parts, r.n, &err), FZ_OK);
        rows += 4000;
        col_batch_release(b);
    }
    return rows;
}
static uint64_t stored_rows(const sink_files *f) {
    fz_error err;
    for (uint32_t i = 0; i < f->n; i++) {
        uint64_t size;
        assert_int_equal(fio_size(NULL, f->v[i].path, &size, &err), FZ_OK);
        assert_int_equal(size, f->v[i].file_size);
        for (uint32_t k = 0; k < i; k++) assert_string_not_equal(f->v[i].path, f->v[k].path);
    }
    return f->rows;
}

static void one_file_a_partition_within_the_budget(void **state) {
    (void)state;
    fz_error err;
    static const char *const by[] = {"host"};
    make_table(by, 1, NULL, 0);
    sink_table *t;
    assert_int_equal(sink_table_new(NULL, meta, "22222222-2222-4222-8222-222222222222", 0, &t, &err), FZ_OK);
    sink_shard *s = sink_shard_new(0, 64 << 20);
    uint64_t rows = write_batches(s, t, 10, 20);
    sink_files f;
    assert_int_equal(sink_shard_close(s, t, &f, &err), FZ_OK);
    assert_int_equal(f.n, 11); /* host-0 .. host-9 less none, and NULL */
    assert_int_equal(stored_rows(&f), rows);
    assert_int_equal(sink_shard_bytes(s), 0);
    sink_files_free(&f);
    sink_shard_free(s);
    sink_table_free(t);
    drop_table();
}

static void a_tight_budget_ends_row_groups_not_rows(void **state) {
    (void)state;
    fz_error err;
    static const char *const by[] = {"host"};
    make_table(by, 1, NULL, 0);
    sink_table *t;
    assert_int_equal(sink_table_new(NULL, meta, "33333333-3333-4333-8333-333333333333", 0, &t, &err), FZ_OK);
    sink_shard *s = sink_shard_new(0, 1 << 20);
    uint64_t rows = write_batches(s, t, 60, 6);
    assert_true(sink_shard_bytes(s) <= (2u << 20));
    sink_files f;
    assert_int_equal(sink_shard_close(s, t, &f, &err), FZ_OK);
    assert_int_equal(stored_rows(&f), rows);
    sink_files_free(&f);
    rows = write_batches(s, t, 2, 3000); /* many tiny files: these are closed early */
    assert_int_equal(sink_shard_close(s, t, &f, &err), FZ_OK);
    assert_int_equal(stored_rows(&f), rows);
    sink_files_free(&f);
    sink_shard_free(s);
    sink_table_free(t);
    drop_table();
}

static bool count_object(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)location, (void)size, (void)mtime_ms;
    ++*(int *)cx;
    return true;
}
static void abort_leaves_nothing(void **state) {
    (void)state;
    fz_error err;
    static const char *const by[] = {"host"};
    make_table(by, 1, NULL, 0);
    sink_table *t;
    assert_int_equal(sink_table_new(NULL, meta, "44444444-4444-4444-8444-444444444444", 0, &t, &err), FZ_OK);
    int before = 0, after = 0;
    assert_int_equal(fio_list(NULL, "mem://sink/", count_object, &before, &err), FZ_OK);
    sink_shard *s = sink_shard_new(0, 300 << 10);
    write_batches(s, t, 5, 200);
    sink_shard_abort(s, t);
    assert_int_equal(sink_shard_bytes(s), 0);
    assert_int_equal(fio_list(NULL, "mem://sink/", count_object, &after, &err), FZ_OK);
    assert_int_equal(before, after);
    sink_shard_free(s);
    sink_table_free(t);
    drop_table();
}

static void tables_that_cannot_be_written_are_refused(void **state) {
    (void)state;
    fz_error err;
    static const struct { const char *key, *value, *code; } cases[] = {{"write.format.default", "avro", "sink.file-format"}, {"write.upsert.enabled", "true", "iceberg.property"},
                                                                       {"write.parquet.compression-codec", "brotli", "sink.compression"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_pair p = {.key = cases[i].key, .value = cases[i].value};
        make_table(NULL, 0, &p, 1);
        sink_table *t = NULL;
        assert_int_equal(sink_table_new(NULL, meta, "run", 0, &t, &err), FZ_USER);
        assert_string_equal(err.code, cases[i].code);
        drop_table();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_goes_to_its_tuple_once), cmocka_unit_test(required_columns_are_checked), cmocka_unit_test(one_file_a_partition_within_the_budget),
        cmocka_unit_test(a_tight_budget_ends_row_groups_not_rows), cmocka_unit_test(abort_leaves_nothing), cmocka_unit_test(tables_that_cannot_be_written_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
