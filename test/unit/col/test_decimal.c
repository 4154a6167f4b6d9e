/* Decimals, against BigDecimal and Flink's DecimalData. */
#include "col/vectors.h"
#include "col/decimal.h"

static col_i128 i128(const char *s) {
    bool neg = *s == '-';
    col_i128 v = 0;
    for (s += neg; *s; s++) v = v * 10 + (*s - '0');
    return neg ? -v : v;
}

typedef bool (*binary)(col_i128, int, col_i128, int, int, int, col_i128 *);

static int num(const char *s) { return (int)strtol(s, NULL, 10); }

static bool run(const char *op, char **a, char *out, size_t cap) {
    static const struct { const char *op; binary fn; } ops[] = {{"DADD", dcm_add}, {"DSUB", dcm_sub}, {"DMUL", dcm_mul}, {"DDIV", dcm_div}, {"DMOD", dcm_mod}};
    col_i128 r = 0;
    bool ok = false;
    int scale = 0;
    double d;
    uint64_t u;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        if (strcmp(op, ops[k].op) != 0) continue;
        ok = ops[k].fn(i128(a[0]), num(a[1]), i128(a[2]), num(a[3]), num(a[4]), scale = num(a[5]), &r);
        goto done;
    }
    if (!strcmp(op, "DEC")) ok = dcm_parse_cast(fz_sv_of(a[0]), num(a[1]), scale = num(a[2]), &r);
    else if (!strcmp(op, "BDEC")) ok = dcm_parse(fz_sv_of(a[0]), num(a[1]), scale = num(a[2]), &r);
    else if (!strcmp(op, "DRND")) ok = dcm_round(i128(a[0]), num(a[1]), num(a[2]), num(a[3]), &r, &scale);
    else if (!strcmp(op, "DDBL")) {
        u = strtoull(a[0], NULL, 16);
        memcpy(&d, &u, sizeof d);
        ok = dcm_from_double(d, num(a[1]), scale = num(a[2]), &r);
    } else if (!strcmp(op, "DTOD")) {
        d = dcm_to_double(i128(a[0]), num(a[1]), num(a[2]));
        memcpy(&u, &d, sizeof u);
        snprintf(out, cap, "%llx", (unsigned long long)u);
        return true;
    } else {
        return false;
    }
done:
    if (ok) out[dcm_text(r, scale, out)] = 0;
    else snprintf(out, cap, "NULL");
    return true;
}

static void test_java_answers(void **state) {
    (void)state;
    vector_run("test/data/col/jdk17_decimal.tsv", run, 500);
}

static void cast_is(const char *s, int p, int scale, const char *want) {
    col_i128 v = 0;
    char t[DCM_TEXT_MAX + 1];
    bool ok = dcm_parse_cast(fz_sv_of(s), p, scale, &v);
    assert_int_equal(ok, want != NULL);
    if (!ok) return;
    t[dcm_text(v, scale, t)] = 0;
    assert_string_equal(t, want);
}

static void test_cast(void **state) {
    (void)state;
    cast_is(" 12 ", 10, 2, "12.00");
    cast_is("f", 10, 2, "0.00"); /* Flink's short parser swallows one byte */
    cast_is("abc", 10, 2, NULL);
    cast_is("12.7", 38, 0, "13");
    cast_is("1e3", 38, 0, "1000");
    cast_is("99999999.995", 10, 2, "100000000.00"); /* rounded past the precision, unchecked there */
    cast_is("999999999.99", 10, 2, NULL);
    cast_is("123456789012345678901234567890123456789", 38, 0, NULL);
    cast_is("12345678901234567890123456789012345678", 38, 0, "12345678901234567890123456789012345678");
    cast_is("0.000000000000000000000000000000000000005", 38, 38, "0.00000000000000000000000000000000000001");
    cast_is("", 10, 2, NULL);
    cast_is("415.1829", 38, 37, NULL);
}

static void test_arithmetic(void **state) {
    (void)state;
    col_i128 r, big = dcm_pow10(38) - 1;
    assert_true(dcm_mul(big, 38, big, 38, 38, 38, &r)); /* 76 digits in between */
    assert_true(r == big - 1);
    assert_false(dcm_mul(big, 0, 10, 0, 38, 0, &r));
    assert_false(dcm_add(big, 0, 1, 0, 38, 0, &r));
    assert_true(dcm_sub(big, 0, big, 0, 38, 0, &r) && r == 0);
    assert_true(dcm_div(1, 0, 3, 0, 38, 37, &r));
    char t[DCM_TEXT_MAX + 1];
    t[dcm_text(r, 37, t)] = 0;
    assert_string_equal(t, "0.3333333333333333333333333333333333333");
    assert_true(dcm_div(-9223372036854775807LL - 1, 0, 300, 2, 32, 11, &r));
    t[dcm_text(r, 11, t)] = 0;
    assert_string_equal(t, "-3074457345618258602.66666666667");
    assert_int_equal(dcm_compare(100, 2, 1, 0), 0);
    assert_int_equal(dcm_compare(-101, 2, -1, 0), -1);
    assert_int_equal(dcm_compare(big, 38, big, 0), -1);
    assert_true(dcm_floor(-250, 2) == -3 && dcm_ceil(-250, 2) == -2 && dcm_ceil(250, 2) == 3);
    int scale;
    assert_true(dcm_truncate(-1999, 3, 1, &scale) == -19 && scale == 1);
    assert_true(dcm_truncate(1999, 0, -2, &scale) == 1900 && scale == 0);
    assert_true(dcm_to_long(-15, 1) == -1);
}

static void test_java_text(void **state) {
    (void)state;
    char t[DCM_TEXT_MAX + 1];
    t[dcm_java_text(0, 8, t)] = 0;
    assert_string_equal(t, "0E-8");
    t[dcm_java_text(-123, 10, t)] = 0;
    assert_string_equal(t, "-1.23E-8");
    t[dcm_java_text(123, 2, t)] = 0;
    assert_string_equal(t, "1.23");
    t[dcm_text(-5, 2, t)] = 0;
    assert_string_equal(t, "-0.05");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_java_answers), cmocka_unit_test(test_cast), cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_java_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
