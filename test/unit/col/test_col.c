/* Types, vectors, builders, comparison. */
#include "unit.h"
#include "col/col.h"

static void assert_type(const col_type *t, const char *want) {
    fz_buf b = {0};
    col_type_text(&b, t);
    assert_string_equal(fz_buf_cstr(&b), want);
    fz_buf_free(&b);
}

static void types_print_as_flink(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    assert_type(col_string(true), "STRING");
    assert_type(col_simple(COL_BIGINT, false), "BIGINT NOT NULL");
    assert_type(col_sized(a, COL_DECIMAL, 10, 2, true), "DECIMAL(10, 2)");
    assert_type(col_sized(a, COL_CHAR, 32, 0, true), "CHAR(32)");
    assert_type(col_map(a, col_string(false), col_simple(COL_INT, true), true), "MAP<STRING NOT NULL, INT>");
    col_field f[] = {{"a", col_string(true), NULL}, {"b`c", col_simple(COL_BIGINT, true), NULL}};
    assert_type(col_row(a, f, 2, false), "ROW<`a` STRING, `b``c` BIGINT> NOT NULL");
    fz_arena_free(a);
}

static void builder_nests_and_gathers(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    col_builder *b = col_builder_new(a, col_map(a, col_string(false), col_simple(COL_INT, true), true));
    for (int i = 0; i < 100; i++) {
        if (i % 7 == 0) {
            col_add_null(b);
            continue;
        }
        for (int k = 0; k < i % 3; k++) {
            char key[16];
            int n = snprintf(key, sizeof key, "k%d", k);
            col_add_bytes(col_builder_child(b, 0), key, (size_t)n);
            col_add_i64(col_builder_child(b, 1), i * 10 + k);
        }
        col_add_nested(b);
    }
    col_vec *v = col_builder_finish(b);
    assert_int_equal(v->len, 100);
    assert_true(col_is_null(v, 7));
    uint32_t sel[] = {99, 7, 2, 5};
    col_vec *g = col_gather(a, v, sel, 4);
    assert_true(col_is_null(g, 1));
    assert_true(col_equal(g, 2, v, 2));
    assert_true(col_equal(g, 3, v, 5));
    assert_int_equal(col_hash(g, 2), col_hash(v, 2));
    assert_int_equal(g->child[1]->i32[g->off[2]], 20);
    fz_arena_free(a);
}

static void dictionary_nulls_come_from_both_sides(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    col_builder *b = col_builder_new(a, col_string(true));
    col_add_bytes(b, "x", 1);
    col_add_null(b);
    col_vec *dict = col_builder_finish(b), *v = col_vec_dict(a, dict, 3);
    v->idx[0] = 0, v->idx[1] = 1, v->idx[2] = 0;
    col_vec_mask(a, v)[2] = 0;
    assert_false(col_is_null(v, 0));
    assert_true(col_is_null(v, 1));
    assert_true(col_is_null(v, 2));
    col_vec *flat = col_flat(a, v);
    assert_true(col_is_null(flat, 1) && col_is_null(flat, 2) && !col_is_null(flat, 0));
    col_vec *c = col_vec_const(a, v, 1, 5);
    assert_int_equal(c->len, 5);
    assert_true(col_is_null(c, 4));
    uint32_t sel[] = {2, 0};
    col_vec *s = col_select(a, v, sel, 2);
    assert_true(s->dict == dict && col_is_null(s, 0) && !col_is_null(s, 1));
    fz_arena_free(a);
}

static void doubles_order_as_java(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    col_builder *b = col_builder_new(a, col_simple(COL_DOUBLE, true));
    double vals[] = {-0.0, 0.0, 1, __builtin_nan("")};
    for (int i = 0; i < 4; i++) col_add_f64(b, vals[i]);
    col_vec *v = col_builder_finish(b);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = 0; j < 4; j++) assert_int_equal(col_compare(v, i, v, j), i < j ? -1 : i > j);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(types_print_as_flink), cmocka_unit_test(builder_nests_and_gathers),
                                       cmocka_unit_test(dictionary_nulls_come_from_both_sides), cmocka_unit_test(doubles_order_as_java)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
