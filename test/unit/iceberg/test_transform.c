/* Transforms, human text, single-value bytes and object-storage names, against what Iceberg's Java implementation gave
 * (test/data/iceberg/java_transforms.tsv); columns against single values. */
#include "ice_test.h"

typedef struct line { char *field[8]; int n; } line;

static bool next_line(char **p, line *l) {
    if (!**p) return false;
    char *end = strchr(*p, '\n');
    if (end) *end = 0;
    l->n = 0;
    for (char *s = *p; s;) {
        l->field[l->n++] = s;
        s = strchr(s, '\t');
        if (s) *s++ = 0;
    }
    *p = end ? end + 1 : *p + strlen(*p);
    return true;
}

static const ice_type *type_of(fz_arena *a, const char *text) {
    json_t *j = json_pack("{s:s, s:[{s:i, s:s, s:b, s:s}]}", "type", "struct", "fields", "id", 1, "name", "x", "required", 0, "type", text);
    ice_schema *s;
    fz_error err;
    must(ice_schema_parse(a, j, &s, &err), &err);
    json_decref(j);
    return s->fields[0].type;
}

static fz_sv unhex(fz_arena *a, const char *s) {
    size_t n = strlen(s + 1) / 2;
    char *out = fz_arena_alloc(a, n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned v;
        sscanf(s + 1 + 2 * i, "%2x", &v);
        out[i] = (char)v;
    }
    return (fz_sv){out, n};
}

static col_i128 dec_of(const char *s) {
    col_i128 v = 0;
    bool neg = *s == '-';
    for (s += neg; *s; s++) v = v * 10 + (*s - '0');
    return neg ? -v : v;
}

static ice_value value_of(fz_arena *a, const ice_type *t, const char *s) {
    ice_value v = {.kind = (uint8_t)t->kind};
    fz_error err;
    if (strcmp(s, "-") == 0) v.is_null = true;
    else if (*s == 'x' && (t->kind == ICE_FLOAT || t->kind == ICE_DOUBLE)) must(ice_value_decode(t, unhex(a, s), &v, &err), &err);
    else if (*s == 'x') v.s = unhex(a, s);
    else if (t->kind == ICE_DECIMAL) v.dec = dec_of(s);
    else v.i = strtoll(s, NULL, 10);
    return v;
}

static void check_val(fz_arena *a, const line *l) {
    const ice_type *t = type_of(a, l->field[1]);
    ice_transform tr = ice_transform_parse(a, l->field[2]);
    const ice_type *rt = ice_transform_result(&tr, t);
    assert_non_null(rt);
    ice_value in = value_of(a, t, l->field[3]), want = value_of(a, rt, l->field[4]);
    ice_value got = ice_transform_value(&tr, t, &in);
    if (!ice_value_eq(&got, &want)) fail_msg("%s of %s %s: another value than %s", l->field[2], l->field[1], l->field[3], l->field[4]);
    fz_sv bytes = ice_value_encode(a, rt, &got);
    if (strcmp(l->field[5], "-") == 0) assert_null(bytes.p);
    else {
        fz_sv w = unhex(a, l->field[5]);
        if (!fz_sv_eq(bytes, w)) fail_msg("%s of %s %s: other bytes than %s", l->field[2], l->field[1], l->field[3], l->field[5]);
        ice_value back;
        fz_error err;
        must(ice_value_decode(rt, bytes, &back, &err), &err);
        assert_true(ice_value_eq(&back, &got));
    }
    fz_buf text = {0}, url = {0};
    ice_value_human(&text, &tr, rt, &got);
    ice_url_encode(&url, (fz_sv){(char *)text.data, text.len});
    assert_string_equal(fz_buf_cstr(&url), l->field[6]);
    fz_buf_free(&text);
    fz_buf_free(&url);
}

static void check_type(fz_arena *a, const line *l, bool can) {
    const ice_type *t = type_of(a, l->field[1]);
    ice_transform tr = ice_transform_parse(a, l->field[2]);
    const ice_type *rt = ice_transform_result(&tr, t);
    if (!can) {
        if (rt) fail_msg("%s can not be applied to %s", l->field[2], l->field[1]);
        return;
    }
    assert_non_null(rt);
    fz_buf b = {0};
    ice_type_text(&b, rt);
    assert_string_equal(fz_buf_cstr(&b), l->field[3]);
    fz_buf_free(&b);
}

/* "{k=v, k=v}" */
static void check_object(fz_arena *a, const line *l) {
    fz_pair p[4];
    uint32_t n = 0;
    for (char *s = l->field[2] + 1; *s && *s != '}';) {
        char *eq = strchr(s, '='), *end = eq + strcspn(eq, ",}");
        bool last = *end == '}';
        *eq = *end = 0;
        p[n++] = (fz_pair){.key = s, .value = eq + 1};
        if (last) break;
        s = end + 2;
    }
    ice_schema s = {0};
    ice_metadata *m;
    fz_error err;
    must(ice_metadata_new(l->field[1], &s, NULL, NULL, p, n, "u", 1, &m, &err), &err);
    assert_string_equal(ice_data_file_location(a, m, l->field[3], l->field[4]), l->field[5]);
    ice_metadata_free(m);
}

static void java_says(void **state) {
    (void)state;
    fz_buf b = {0};
    read_file("test/data/iceberg/java_transforms.tsv", &b);
    char *p = (char *)(uintptr_t)fz_buf_cstr(&b);
    line l;
    int seen = 0;
    fz_arena *a = fz_arena_new();
    while (next_line(&p, &l)) {
        fz_arena_reset(a);
        if (strcmp(l.field[0], "val") == 0) check_val(a, &l);
        else if (strcmp(l.field[0], "obj") == 0) check_object(a, &l);
        else check_type(a, &l, strcmp(l.field[0], "type") == 0);
        seen++;
    }
    assert_true(seen > 1000);
    fz_arena_free(a);
    fz_buf_free(&b);
}

/* Appendix B's examples. */
static void spec_hashes(void **state) {
    (void)state;
    const struct { ice_value v; int32_t hash; } cases[] = {
        {{.kind = ICE_INT, .i = 34}, 2017239379}, {{.kind = ICE_LONG, .i = 34}, 2017239379}, {{.kind = ICE_DECIMAL, .dec = 1420}, -500754589},
        {{.kind = ICE_DATE, .i = 17486}, -653330422}, {{.kind = ICE_TIME, .i = 81068000000}, -662762989},
        {{.kind = ICE_TIMESTAMP, .i = 1510871468000000}, -2047944441}, {{.kind = ICE_TIMESTAMP, .i = 1510871468000001}, -1207196810},
        {{.kind = ICE_STRING, .s = {"iceberg", 7}}, 1210000089},
        {{.kind = ICE_UUID, .s = {"\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7", 16}}, 1488055340},
        {{.kind = ICE_FIXED, .s = {"\0\1\2\3", 4}}, -188683207}, {{.kind = ICE_BINARY, .s = {"\0\1\2\3", 4}}, -188683207}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_int_equal((int32_t)ice_bucket_hash(&cases[i].v), cases[i].hash);
}

static col_vec *sample(fz_arena *a, const col_type *t) {
    col_builder *b = col_builder_new(a, t);
    static const char *const texts[] = {"", "iceberg", "日本語", "😀😀x", "abcdefghijklm", "null"};
    static const int64_t numbers[] = {0, 34, -34, -1, 2000000000, -719162};
    for (int i = 0; i < 12; i++) {
        if (i % 5 == 4) col_add_null(b);
        else if (col_is_varlen(t->kind)) col_add_bytes(b, t->kind == COL_BINARY ? "\xff\0ab" : texts[i % 6], t->kind == COL_BINARY ? 4 : strlen(texts[i % 6]));
        else if (t->kind == COL_DECIMAL) col_add_dec(b, numbers[i % 6]);
        else col_add_i64(b, col_width(t->kind) == 8 ? numbers[i % 6] * 1000003 : t->kind == COL_TIME ? (numbers[i % 6] & 0xffff) : numbers[i % 6]);
    }
    return col_builder_finish(b);
}

static void compare(fz_arena *a, const ice_transform *t, const ice_type *source, col_vec *v) {
    col_vec *out;
    fz_error err;
    must(ice_transform_apply(a, t, source, v, &out, &err), &err);
    assert_int_equal(out->len, v->len);
    assert_true((out->idx != NULL) == (v->idx != NULL) || t->kind == ICE_VOID);
    const ice_type *rt = ice_transform_result(t, source);
    for (uint32_t i = 0; i < v->len; i++) {
        ice_value in = ice_value_of(source, v, i), want = ice_transform_value(t, source, &in), got = ice_value_of(rt, out, i);
        if (!ice_value_eq(&want, &got)) fail_msg("%s, row %u", t->text, i);
    }
}

static void columns(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_type *types[] = {col_simple(COL_TINYINT, true), col_simple(COL_INT, true), col_simple(COL_BIGINT, true), col_simple(COL_DATE, true),
                               col_sized(a, COL_TIME, 3, 0, true), col_sized(a, COL_TIMESTAMP, 3, 0, true), col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true),
                               col_string(true), col_sized(a, COL_BINARY, 4, 0, true), col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true),
                               col_sized(a, COL_DECIMAL, 20, 2, true)};
    static const char *const names[] = {"identity", "bucket[16]", "truncate[3]", "year", "month", "day", "hour", "void"};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        int32_t id = 1;
        const ice_type *source;
        fz_error err;
        must(ice_type_from_col(a, types[k], &id, &source, &err), &err);
        col_vec *flat = sample(a, types[k]);
        col_vec *dict = col_vec_dict(a, flat, 40);
        for (uint32_t i = 0; i < 40; i++) dict->idx[i] = (i * 7) % flat->len;
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            ice_transform t = ice_transform_parse(a, names[n]);
            if (!ice_transform_result(&t, source)) continue;
            compare(a, &t, source, flat);
            compare(a, &t, source, dict);
        }
    }
    fz_arena_free(a);
}

static void unknown_is_refused(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    ice_transform t = ice_transform_parse(a, "zorder[3]");
    col_vec *v = sample(a, col_string(true)), *out;
    fz_error err;
    assert_int_equal(t.kind, ICE_UNKNOWN_TRANSFORM);
    assert_string_equal(t.text, "zorder[3]");
    assert_int_equal(ice_transform_apply(a, &t, ice_type_simple(ICE_STRING), v, &out, &err), FZ_USER);
    assert_non_null(strstr(err.message, "zorder[3]"));
    ice_transform zero = ice_transform_parse(a, "bucket[0]");
    assert_int_equal(zero.kind, ICE_UNKNOWN_TRANSFORM);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(java_says), cmocka_unit_test(spec_hashes), cmocka_unit_test(columns),
                                       cmocka_unit_test(unknown_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
