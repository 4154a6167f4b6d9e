/* The connector 'datagen': ends, ranges, refusals. The documents are looked at as text, since this room knows no formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>
#include "source/source.h"

static const src_field fields[] = {{"id", "BIGINT NOT NULL"}, {"n", "TINYINT"}, {"s", "VARCHAR(20)"}, {"d", "DOUBLE"}, {"de", "DECIMAL(5, 2)"},
                                   {"f", "BOOLEAN"}, {"t", "TIMESTAMP(3)"}, {"l", "TIMESTAMP_LTZ(3)"}, {"c", "CHAR(4)"}, {"x", "FLOAT"}};

static fz_status open_with(const fz_pair *o, size_t n, const src_field *f, uint32_t n_fields, bool bounded, src_source **s, fz_error *err) {
    src_context cx = {.table = "t", .job = "j", .readers = 2, .bounded_job = bounded, .fields = f, .n_fields = n_fields};
    return src_open(o, n, &cx, s, err);
}

static void test_rows(void **state) {
    (void)state;
    fz_pair o[] = {{.key = "connector", .value = "datagen"}, {.key = "rows-per-second", .value = "1000000"}, {.key = "number-of-rows", .value = "5000"},
                   {.key = "fields.id.kind", .value = "sequence"}, {.key = "fields.id.start", .value = "10"}, {.key = "fields.id.end", .value = "1009"},
                   {.key = "fields.n.min", .value = "-3"}, {.key = "fields.n.max", .value = "3"}, {.key = "fields.n.null-rate", .value = "0.5"}, {.key = "fields.s.length", .value = "7"}};
    fz_error err;
    src_source *s;
    if (open_with(o, 10, fields, 10, true, &s, &err) != FZ_OK) fail_msg("%s", err.message);
    assert_int_equal(src_get_split(s, 0)->stop, 1000); /* the sequence is shorter */
    assert_int_equal(src_assign(s, 0, 0, &err), FZ_OK);
    int64_t row = 0, nulls = 0;
    for (bool done = false; !done;) {
        fz_chunk *c;
        assert_int_equal(src_poll(s, 0, 100, &c, &done, &err), FZ_OK);
        for (uint32_t i = 0; c && i < c->n; i++, row++) {
            json_t *j = json_loadb((const char *)c->rec[i].value, (size_t)c->rec[i].value_len, 0, NULL);
            assert_non_null(j);
            assert_int_equal(json_integer_value(json_object_get(j, "id")), 10 + row);
            json_t *n = json_object_get(j, "n");
            nulls += json_is_null(n);
            if (!json_is_null(n)) assert_in_range(json_integer_value(n) + 3, 0, 6);
            assert_int_equal(json_string_length(json_object_get(j, "s")), 7);
            assert_int_equal(json_string_length(json_object_get(j, "c")), 4);
            assert_true(json_is_boolean(json_object_get(j, "f")));
            assert_true(json_number_value(json_object_get(j, "de")) < 1000);
            assert_int_equal(json_string_length(json_object_get(j, "t")), 23);
            assert_int_equal(json_string_value(json_object_get(j, "l"))[23], 'Z');
            json_decref(j);
        }
        fz_chunk_release(c);
    }
    assert_int_equal(row, 1000);
    assert_in_range(nulls, 350, 650);
    fz_chunk *c;
    bool done;
    assert_int_equal(src_poll(s, 1, 0, &c, &done, &err), FZ_OK);
    assert_true(done); /* the other reader has nothing */
    src_close(s);
}

static void refuse(const char *key, const char *value, const char *code) {
    fz_pair o[] = {{.key = "connector", .value = "datagen"}, {.key = key, .value = value}};
    fz_error err;
    src_source *s;
    assert_int_equal(open_with(o, 2, fields, 10, false, &s, &err), FZ_USER);
    assert_string_equal(err.code, code);
}

static void test_refusals(void **state) {
    (void)state;
    fz_error err;
    src_source *s;
    refuse("format", "json", "option.refused");
    refuse("fields.nix.kind", "random", "option.unknown");
    refuse("fields.id.knd", "random", "option.unknown");
    refuse("fields.id.kind", "sequenc", "option.invalid");
    refuse("fields.id.kind", "sequence", "option.missing");
    refuse("fields.f.kind", "sequence", "datagen.type");
    refuse("fields.n.max", "200", "option.invalid");
    refuse("fields.s.length", "21", "option.invalid");
    refuse("fields.n.null-rate", "1.5", "option.invalid");
    refuse("rows-per-second", "0", "option.invalid");
    fz_pair o[] = {{.key = "connector", .value = "datagen"}};
    const src_field array[] = {{"a", "ARRAY<INT>"}};
    assert_int_equal(open_with(o, 1, array, 1, false, &s, &err), FZ_USER);
    assert_string_equal(err.code, "datagen.type");
    assert_int_equal(open_with(o, 1, fields, 10, true, &s, &err), FZ_USER);
    assert_string_equal(err.code, "source.unbounded");
    assert_int_equal(open_with(o, 1, fields, 10, false, &s, &err), FZ_OK);
    assert_false(src_bounded(s));
    src_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
