/* Numbers and booleans as text, against JDK 17 and Flink. */
#include "col/vectors.h"
#include "col/numtext.h"

static bool run(const char *op, char **a, char *out, size_t cap) {
    fz_sv s = fz_sv_of(a[0]);
    int64_t v;
    bool b;
    double d;
    float f;
    snprintf(out, cap, "NULL");
    if (!strcmp(op, "LONG")) {
        if (nt_parse_int(s, INT64_MIN, INT64_MAX, &v) == NT_OK) snprintf(out, cap, "%lld", (long long)v);
    } else if (!strcmp(op, "INT")) {
        if (nt_parse_int(s, INT32_MIN, INT32_MAX, &v) == NT_OK) snprintf(out, cap, "%lld", (long long)v);
    } else if (!strcmp(op, "BOOL")) {
        if (nt_parse_bool(s, &b)) snprintf(out, cap, "%s", b ? "true" : "false");
    } else if (!strcmp(op, "DBL")) {
        uint64_t u;
        if (nt_parse_double(s, &d)) memcpy(&u, &d, sizeof u), snprintf(out, cap, "%llx", (unsigned long long)u);
    } else if (!strcmp(op, "FLT")) {
        uint32_t u;
        if (nt_parse_float(s, &f)) memcpy(&u, &f, sizeof u), snprintf(out, cap, "%x", u);
    } else if (!strcmp(op, "DTEXT")) {
        uint64_t u = strtoull(a[0], NULL, 16);
        memcpy(&d, &u, sizeof d);
        out[nt_double_text(d, out)] = 0;
    } else if (!strcmp(op, "FTEXT")) {
        uint32_t u = (uint32_t)strtoull(a[0], NULL, 16);
        memcpy(&f, &u, sizeof f);
        out[nt_float_text(f, out)] = 0;
    } else {
        return false;
    }
    return true;
}

static void test_java_answers(void **state) {
    (void)state;
    vector_run("test/data/col/jdk17_number.tsv", run, 500);
}

static void double_is(double v, const char *want) {
    char t[NT_TEXT_MAX + 1];
    t[nt_double_text(v, t)] = 0;
    assert_string_equal(t, want);
}
static void float_is(float v, const char *want) {
    char t[NT_TEXT_MAX + 1];
    t[nt_float_text(v, t)] = 0;
    assert_string_equal(t, want);
}

static void test_text(void **state) {
    (void)state;
    double_is(0.0, "0.0");
    double_is(-0.0, "-0.0");
    double_is(1e-3, "0.001");
    double_is(9.99e-4, "9.99E-4");
    double_is(1e7, "1.0E7");
    double_is(9999999.0, "9999999.0");
    double_is(123456789.98765433, "1.2345678998765433E8");
    double_is(0x1p-44, "5.6843418860808015E-14"); /* the shortest would be ...802 */
    double_is(2.0e-3, "0.002");
    double_is(4.9e-324, "4.9E-324");
    double_is(1.7976931348623157e308, "1.7976931348623157E308");
    double_is(9223372036854775807.0, "9.223372036854776E18");
    float_is(2147483648.0f, "2.14748365E9");
    float_is(1789529696.0f, "1.78952973E9");
    float_is(1e10f, "1.0E10");
    float_is(1.4e-45f, "1.4E-45");
    float_is(3.4028235e38f, "3.4028235E38");
    char t[NT_TEXT_MAX];
    assert_int_equal(nt_int_text(INT64_MIN, t), 20);
    assert_memory_equal(t, "-9223372036854775808", 20);
    assert_int_equal(nt_int_text(0, t), 1);
}

static void test_ints(void **state) {
    (void)state;
    int64_t v;
    assert_int_equal(nt_parse_int(FZ_SV(" 12 "), INT32_MIN, INT32_MAX, &v), NT_OK);
    assert_int_equal(v, 12);
    assert_int_equal(nt_parse_int(FZ_SV("1.50"), INT32_MIN, INT32_MAX, &v), NT_OK);
    assert_int_equal(v, 1);
    assert_int_equal(nt_parse_int(FZ_SV("-9223372036854775808"), INT64_MIN, INT64_MAX, &v), NT_OK);
    assert_true(v == INT64_MIN);
    assert_int_equal(nt_parse_int(FZ_SV("9223372036854775808"), INT64_MIN, INT64_MAX, &v), NT_OVERFLOW);
    assert_int_equal(nt_parse_int(FZ_SV("128"), INT8_MIN, INT8_MAX, &v), NT_OVERFLOW);
    assert_int_equal(nt_parse_int(FZ_SV("  "), INT32_MIN, INT32_MAX, &v), NT_EMPTY);
    assert_int_equal(nt_parse_int(FZ_SV("\t12"), INT32_MIN, INT32_MAX, &v), NT_INVALID);
    assert_int_equal(nt_parse_int(FZ_SV("1e3"), INT32_MIN, INT32_MAX, &v), NT_INVALID);
    assert_int_equal(nt_parse_int(FZ_SV("1.x"), INT32_MIN, INT32_MAX, &v), NT_INVALID);
    assert_int_equal(nt_parse_int(FZ_SV("-"), INT32_MIN, INT32_MAX, &v), NT_INVALID);
    int32_t w;
    assert_true(nt_parse_java_int(FZ_SV("-2147483648"), &w) && w == INT32_MIN);
    assert_false(nt_parse_java_int(FZ_SV("2147483648"), &w));
    assert_false(nt_parse_java_int(FZ_SV("1.0"), &w));
}

static void test_floats(void **state) {
    (void)state;
    double d;
    assert_true(nt_parse_double(FZ_SV("\t 1d\n"), &d) && d == 1);
    assert_true(nt_parse_double(FZ_SV("0x1.8p1"), &d) && d == 3);
    assert_false(nt_parse_double(FZ_SV("0x1.8"), &d));
    assert_false(nt_parse_double(FZ_SV("1_0"), &d));
    assert_false(nt_parse_double(FZ_SV("inf"), &d));
    assert_false(nt_parse_double(FZ_SV("1e"), &d));
    assert_false(nt_parse_double(FZ_SV("."), &d));
    assert_true(nt_parse_double(FZ_SV("-Infinity"), &d) && d < 0 && d - d != 0);
    assert_true(nt_parse_double(FZ_SV("1e400"), &d) && d > 0 && d - d != 0);
    char longer[400];
    memset(longer, '1', sizeof longer);
    assert_true(nt_parse_double((fz_sv){longer, 300}, &d) && d > 1e298);
    assert_int_equal(nt_double_to_int(1e300), INT32_MAX);
    assert_true(nt_double_to_long(-1e300) == INT64_MIN);
    assert_int_equal(nt_double_to_long(__builtin_nan("")), 0);
    assert_int_equal(nt_double_to_int(-2.9), -2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_java_answers), cmocka_unit_test(test_text), cmocka_unit_test(test_ints), cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
