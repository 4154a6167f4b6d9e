/* Schemas and specs: Flink's types there and back, field ids as Java gives them, JSON, names of partition fields. */
#include "ice_test.h"

#define T_META0 "test/data/iceberg/types/00000-6b019763-688f-4483-8cbe-68d86e1b9a37.metadata.json"
#define T_META1 "test/data/iceberg/types/00001-efa72cd3-9963-4fb9-a151-3e5b58812286.metadata.json"
#define P_META0 "test/data/iceberg/part_values/00000-c953f953-1dfe-4291-8dae-578b3b121e59.metadata.json"

static json_t *load_json(const char *path) {
    fz_buf b = {0};
    read_file(path, &b);
    json_t *j = json_of(fz_buf_cstr(&b));
    fz_buf_free(&b);
    return j;
}

/* The columns of the golden table `types`, as its CREATE TABLE had them. */
static col_schema *types_columns(fz_arena *a) {
    const col_field c = {"c", col_simple(COL_INT, true), NULL};
    const col_field ab[] = {{"a", col_string(true), NULL}, {"b", col_row(a, &c, 1, true), NULL}};
    const col_field f[] = {
        {"i", col_simple(COL_INT, true), NULL}, {"l", col_simple(COL_BIGINT, true), NULL}, {"f", col_simple(COL_FLOAT, true), NULL},
        {"d", col_simple(COL_DOUBLE, true), NULL}, {"b", col_simple(COL_BOOLEAN, true), NULL}, {"s", col_string(true), NULL},
        {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true), NULL}, {"tz", col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true), NULL}, {"dt", col_simple(COL_DATE, true), NULL},
        {"tm", col_sized(a, COL_TIME, 0, 0, true), NULL}, {"de", col_sized(a, COL_DECIMAL, 10, 2, true), NULL}, {"de38", col_sized(a, COL_DECIMAL, 38, 4, true), NULL},
        {"bin", col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true), NULL}, {"fx", col_sized(a, COL_BINARY, 4, 0, true), NULL},
        {"arr", col_array(a, col_string(true), true), NULL}, {"mp", col_map(a, col_string(false), col_simple(COL_INT, true), true), NULL},
        {"st", col_row(a, ab, 2, true), NULL}};
    col_schema *s = FZ_ANEW(a, col_schema);
    s->n = sizeof f / sizeof *f;
    col_field *copy = FZ_ANEWN(a, col_field, s->n);
    memcpy(copy, f, sizeof f);
    s->fields = copy;
    return s;
}

static void ids_as_java(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    col_schema *cols = types_columns(a), *back;
    ice_schema *s, *parsed;
    must(ice_schema_from_cols(a, cols, NULL, 0, &s, &err), &err);
    json_t *meta = load_json(T_META1), *want = json_array_get(json_object_get(meta, "schemas"), 0), *got = ice_schema_json(s);
    assert_true(json_equal(want, got));
    assert_int_equal(ice_schema_highest_id(s), 23);
    must(ice_schema_parse(a, want, &parsed, &err), &err);
    assert_true(ice_schema_eq(s, parsed));
    must(ice_schema_to_cols(a, parsed, &back, &err), &err);
    for (uint32_t i = 0; i < cols->n; i++) {
        assert_string_equal(cols->fields[i].name, back->fields[i].name);
        if (!col_type_eq(cols->fields[i].type, back->fields[i].type, true)) fail_msg("column %s has another type", cols->fields[i].name);
    }
    json_decref(meta);
    json_decref(got);
    fz_arena_free(a);
}

/* The first metadata of both golden tables, made from columns. */
static void create_as_java(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_schema *s;
    ice_spec *spec;
    ice_metadata *m;
    must(ice_schema_from_cols(a, types_columns(a), NULL, 0, &s, &err), &err);
    must(ice_metadata_new("s3://golden/wh/gold.db/types/", s, NULL, NULL, NULL, 0, "675de5b6-5f34-444e-ba1c-ca81b11caa8a", 1795960630827, &m, &err), &err);
    json_t *want = load_json(T_META0);
    assert_true(json_equal(want, (json_t *)(uintptr_t)m->root));
    json_decref(want);
    ice_metadata_free(m);

    const col_field f[] = {{"id", col_simple(COL_INT, false), NULL}, {"host", col_string(true), NULL}, {"dt", col_simple(COL_DATE, true), NULL}};
    const col_schema cols = {3, f};
    const ice_term terms[] = {{.column = "dt"}, {.column = "host"}};
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), &err);
    must(ice_spec_build(a, s, terms, 2, &spec, &err), &err);
    const fz_pair props[] = {{.key = "format-version", .value = "2"}};
    must(ice_metadata_new("s3://golden/wh/gold.db/part_values", s, spec, NULL, props, 1, "46bc691b-9005-471d-9aeb-a23969278cdc", 1795960630006, &m, &err), &err);
    want = load_json(P_META0);
    assert_true(json_equal(want, (json_t *)(uintptr_t)m->root));
    json_decref(want);
    ice_metadata_free(m);
    fz_arena_free(a);
}

static void nested_ids(void **state) {
    (void)state;
    /* ROW<x ARRAY<ROW<p INT, q INT>>, y INT>, MAP<STRING, ROW<v INT>>: children of one type first, then theirs */
    fz_arena *a = fz_arena_new();
    fz_error err;
    const col_field pq[] = {{"p", col_simple(COL_INT, true), NULL}, {"q", col_simple(COL_INT, true), "second"}};
    const col_field xy[] = {{"x", col_array(a, col_row(a, pq, 2, true), true), NULL}, {"y", col_simple(COL_INT, false), NULL}};
    const col_field v = {"v", col_simple(COL_INT, true), NULL};
    const col_field f[] = {{"r", col_row(a, xy, 2, true), NULL}, {"m", col_map(a, col_string(false), col_row(a, &v, 1, true), true), NULL}};
    const col_schema cols = {2, f};
    ice_schema *s;
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), &err);
    const struct { const char *name; int32_t id; } want[] = {{"r", 1}, {"m", 2}, {"r.x", 3}, {"r.y", 4}, {"r.x.element", 5}, {"r.x.element.p", 6},
                                                             {"r.x.element.q", 7}, {"m.key", 8}, {"m.value", 9}, {"m.value.v", 10}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const ice_field *x = ice_schema_field_named(s, want[i].name);
        assert_non_null(x);
        assert_int_equal(x->id, want[i].id);
        assert_ptr_equal(ice_schema_field(s, want[i].id), x);
        assert_string_equal(ice_schema_field_name(a, s, want[i].id), want[i].name);
    }
    assert_null(ice_schema_field(s, 11));
    assert_null(ice_schema_field_named(s, "r.z"));
    assert_string_equal(ice_schema_field_named(s, "r.x.element.q")->doc, "second");
    assert_true(ice_schema_field_named(s, "r.y")->required);
    fz_arena_free(a);
}

static void primary_key(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    const col_field f[] = {{"id", col_simple(COL_BIGINT, true), "the key"}, {"d", col_simple(COL_DOUBLE, true), NULL}};
    const col_schema cols = {2, f};
    ice_schema *s, *again;
    const char *pk[] = {"id"};
    must(ice_schema_from_cols(a, &cols, pk, 1, &s, &err), &err);
    assert_true(s->n_identifier == 1 && s->identifier[0] == 1 && s->fields[0].required);
    json_t *j = ice_schema_json(s);
    must(ice_schema_parse(a, j, &again, &err), &err);
    json_decref(j);
    assert_true(ice_schema_eq(s, again));
    assert_string_equal(again->fields[0].doc, "the key");
    pk[0] = "d";
    assert_int_equal(ice_schema_from_cols(a, &cols, pk, 1, &s, &err), FZ_USER);
    pk[0] = "nope";
    assert_int_equal(ice_schema_from_cols(a, &cols, pk, 1, &s, &err), FZ_USER);
    assert_non_null(strstr(err.message, "nope"));
    fz_arena_free(a);
}

static void refused_types(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const struct { const col_type *type; const char *text; } cases[] = {
        {col_sized(a, COL_TIMESTAMP, 9, 0, true), "TIMESTAMP(9)"}, {col_simple(COL_NULL, true), "NULL"},
        {col_array(a, col_sized(a, COL_TIMESTAMP_LTZ, 7, 0, true), true), "TIMESTAMP_LTZ(7)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_error err;
        const col_field f = {"bad_one", cases[i].type, NULL};
        const col_schema cols = {1, &f};
        ice_schema *s;
        assert_int_equal(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), FZ_USER);
        assert_string_equal(err.code, "iceberg.type");
        assert_non_null(strstr(err.message, "bad_one"));
        if (!strstr(err.message, cases[i].text)) fail_msg("%s does not name %s", err.message, cases[i].text);
    }
    /* types of a later version live on in JSON, but are no columns */
    fz_error err;
    ice_schema *s;
    col_schema *cols;
    json_t *j = json_of("{\"type\":\"struct\",\"schema-id\":1,\"fields\":[{\"id\":1,\"name\":\"t\",\"required\":false,\"type\":\"timestamp_ns\"},"
                        "{\"id\":2,\"name\":\"g\",\"required\":false,\"type\":{\"type\":\"geo\",\"crs\":\"x\"},\"initial-default\":[1],\"write-default\":\"a\"}]}");
    must(ice_schema_parse(a, j, &s, &err), &err);
    json_t *k = ice_schema_json(s);
    assert_true(json_equal(j, k));
    assert_int_equal(ice_schema_to_cols(a, s, &cols, &err), FZ_USER);
    assert_non_null(strstr(err.message, "timestamp_ns"));
    json_decref(j);
    json_decref(k);
    /* uuid and time */
    const col_type *t;
    must(ice_type_to_col(a, ice_type_simple(ICE_UUID), true, &t, &err), &err);
    assert_true(t->kind == COL_BINARY && t->precision == 16);
    fz_arena_free(a);
}

static void broken_schemas(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[]", "{}", "{\"fields\":[{}]}", "{\"fields\":[{\"id\":1,\"name\":\"a\",\"type\":\"decimal(39,2)\"}]}", "{\"fields\":[{\"id\":1,\"name\":\"a\"}]}",
        "{\"fields\":[{\"id\":1,\"name\":\"a\",\"type\":\"fixed[-1]\"}]}", "{\"fields\":[{\"id\":\"1\",\"name\":\"a\",\"type\":\"int\"}]}",
        "{\"fields\":[{\"id\":4294967297,\"name\":\"a\",\"type\":\"int\"}]}", "{\"fields\":[{\"id\":1,\"name\":\"a\",\"type\":{\"type\":\"list\"}}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fz_arena *a = fz_arena_new();
        fz_error err;
        ice_schema *s;
        json_t *j = json_of(bad[i]);
        if (ice_schema_parse(a, j, &s, &err) != FZ_FATAL) fail_msg("%s is taken", bad[i]);
        json_decref(j);
        fz_arena_free(a);
    }
}

static void specs(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    const col_field in = {"z", col_string(true), NULL};
    const col_field f[] = {{"id", col_simple(COL_INT, true), NULL}, {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true), NULL}, {"c", col_string(true), NULL},
                           {"r", col_row(a, &in, 1, true), NULL}, {"l", col_array(a, col_string(true), true), NULL}, {"fx", col_sized(a, COL_BINARY, 4, 0, true), NULL}};
    const col_schema cols = {6, f};
    ice_schema *s;
    ice_spec *spec, *again;
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), &err);
    const ice_term good[] = {{.column = "id", .transform = "bucket", .n = 16}, {.column = "c", .transform = "truncate", .n = 4},
                             {.column = "ts", .transform = "HOURS"}, {.column = "r.z"}, {.column = "id", .transform = "void", .name = "gone"}};
    must(ice_spec_build(a, s, good, 5, &spec, &err), &err);
    static const char *const names[] = {"id_bucket", "c_trunc", "ts_hour", "r.z", "gone"};
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(spec->fields[i].name, names[i]);
        assert_int_equal(spec->fields[i].field_id, 1000 + (int)i);
    }
    assert_string_equal(spec->fields[0].transform.text, "bucket[16]");
    json_t *j = ice_spec_json(spec), *k;
    must(ice_spec_parse(a, j, &again, &err), &err);
    k = ice_spec_json(again);
    assert_true(json_equal(j, k));
    json_decref(j);
    json_decref(k);
    const ice_term bad[] = {{.column = "nope"}, {.column = "c", .transform = "days"}, {.column = "id", .transform = "bucket", .n = 0},
                            {.column = "id", .transform = "zorder"}, {.column = "l.element"}, {.column = "r"}, {.column = "fx"}, {.column = "id", .transform = "bucket", .n = 3, .name = "c"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ice_spec_build(a, s, &bad[i], 1, &spec, &err), FZ_USER);
        assert_string_equal(err.code, "iceberg.partition");
    }
    const ice_term twice[] = {{.column = "ts", .transform = "days"}, {.column = "ts", .transform = "hours"}};
    assert_int_equal(ice_spec_build(a, s, twice, 2, &spec, &err), FZ_USER);
    fz_arena_free(a);
}

/* Sources inside structs: NULL where the struct is NULL. */
static void nested_source(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    const col_field in[] = {{"y", col_simple(COL_INT, true), NULL}, {"z", col_string(true), NULL}};
    const col_type *row = col_row(a, in, 2, true);
    const col_field f = {"r", row, NULL};
    const col_schema cols = {1, &f};
    ice_schema *s;
    ice_spec *spec;
    const ice_term terms[] = {{.column = "r.z", .transform = "truncate", .n = 1}, {.column = "r.y"}};
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), &err);
    must(ice_spec_build(a, s, terms, 2, &spec, &err), &err);
    col_builder *b = col_builder_new(a, row);
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            col_add_null(b);
            continue;
        }
        col_add_i64(col_builder_child(b, 0), i);
        col_add_bytes(col_builder_child(b, 1), "xyz" + i % 3, 1);
        col_add_nested(b);
    }
    col_vec *v = col_builder_finish(b), *out[2];
    col_vec *dict = col_vec_dict(a, v, 5);
    for (uint32_t i = 0; i < 5; i++) dict->idx[i] = i % 4;
    const ice_type **types = ice_spec_types(a, spec, s);
    for (int form = 0; form < 2; form++) {
        col_vec *c = form ? dict : v;
        must(ice_spec_apply(a, s, spec, &c, out, &err), &err);
        ice_tuple t0 = ice_tuple_of(a, types, out, 2, 0), t2 = ice_tuple_of(a, types, out, 2, 2), t3 = ice_tuple_of(a, types, out, 2, 3);
        assert_string_equal(ice_tuple_path(a, spec, types, t0), "r.z_trunc=x/r.y=0");
        assert_string_equal(ice_tuple_path(a, spec, types, t2), "r.z_trunc=null/r.y=null");
        assert_string_equal(ice_tuple_path(a, spec, types, t3), "r.z_trunc=x/r.y=3");
        assert_true(ice_tuple_eq(ice_tuple_clone(a, t3), t3));
        assert_false(ice_tuple_eq(t0, t3));
    }
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_as_java), cmocka_unit_test(create_as_java), cmocka_unit_test(nested_ids),
                                       cmocka_unit_test(primary_key), cmocka_unit_test(refused_types), cmocka_unit_test(broken_schemas),
                                       cmocka_unit_test(specs), cmocka_unit_test(nested_source)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
