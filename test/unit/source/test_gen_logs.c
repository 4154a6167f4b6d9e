/* Made-up records: well-formed, repeatable, of six severities in like shares. */
#include "source/gen_logs.h"
#include "unit.h"
#include <jansson.h>

static void the_same_seed_gives_the_same_bytes(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        fz_buf a = {0}, b = {0}, c = {0};
        src_gen x = src_gen_new((src_gen_kind)kind, 7), y = src_gen_new((src_gen_kind)kind, 7), z = src_gen_new((src_gen_kind)kind, 8);
        for (int i = 0; i < 50; i++) {
            src_gen_record(&x, 1795000000123 + i, &a);
            src_gen_record(&y, 1795000000123 + i, &b);
            src_gen_record(&z, 1795000000123 + i, &c);
        }
        assert_string_equal(fz_buf_cstr(&a), fz_buf_cstr(&b));
        assert_string_not_equal(fz_buf_cstr(&a), fz_buf_cstr(&c));
        fz_buf_free(&a);
        fz_buf_free(&b);
        fz_buf_free(&c);
    }
}

static void severities_have_their_numbers(void **state) {
    (void)state;
    static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    int seen[6] = {0};
    src_gen g = src_gen_new(SRC_GEN_OTEL, 1);
    for (int i = 0; i < 6000; i++) {
        fz_buf b = {0};
        src_gen_record(&g, 1795000000123, &b);
        json_t *j = json_loadb((const char *)b.data, b.len, 0, NULL);
        assert_non_null(j);
        const char *text = json_string_value(json_object_get(j, "severityText"));
        json_int_t number = json_integer_value(json_object_get(j, "severityNumber"));
        for (int k = 0; k < 6; k++)
            if (strcmp(text, names[k]) == 0) {
                assert_int_equal(number, 1 + 4 * k);
                seen[k]++;
            }
        assert_int_equal(strlen(json_string_value(json_object_get(j, "traceId"))), 32);
        assert_true(fz_starts(json_string_value(json_object_get(j, "timeUnixNano")), "1795000000123"));
        assert_string_equal(json_string_value(json_object_get(j, "timestamp")), "2026-11-18T11:06:40.123Z");
        json_decref(j);
        fz_buf_free(&b);
    }
    for (int k = 0; k < 6; k++) assert_in_range(seen[k], 800, 1200);
}

static void syslog_records_fit_the_examples(void **state) {
    (void)state;
    for (int kind = SRC_GEN_SYSLOG; kind <= SRC_GEN_AUTHLOG; kind++) {
        src_gen g = src_gen_new((src_gen_kind)kind, 3);
        fz_buf b = {0};
        src_gen_record(&g, 1795000000123, &b);
        json_t *j = json_loadb((const char *)b.data, b.len, 0, NULL);
        assert_non_null(j);
        assert_int_equal(json_object_size(j), 4);
        assert_string_equal(json_string_value(json_object_get(j, "ts")), "2026-11-18T20:06:40+09:00");
        assert_non_null(json_object_get(j, "src_host"));
        assert_non_null(json_object_get(j, "program"));
        assert_non_null(json_object_get(j, "message"));
        json_decref(j);
        fz_buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_seed_gives_the_same_bytes), cmocka_unit_test(severities_have_their_numbers), cmocka_unit_test(syslog_records_fit_the_examples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
