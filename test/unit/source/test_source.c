/* What every connector shares: the check of options, the table of connectors, the hash of a record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "source/source_int.h"

static const fz_option table[] = {
    {"path", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "doc", NULL},
    {"format", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "doc", NULL},
    {"key.format", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "doc", NULL},
    {"interval", FZ_OPT_DURATION, FZ_OPT_USED, NULL, NULL, "doc", NULL},
    {"old", FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, "doc", "use 'path'"},
    {"idle.*", FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, "doc", "nothing idles"},
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};
static fz_status check(const char *key, const char *value, fz_error *err) {
    fz_pair o[] = {{"connector", "x", 1, 1}, {"format", "json", 2, 2}, {"key.format", "raw", 3, 3}, {key, value, 4, 5}};
    *err = (fz_error){0};
    return src_check_options(table, "x", o, 4, err);
}

static void options_are_checked(void **state) {
    (void)state;
    fz_error err;
    fz_log_set_level(FZ_LOG_OFF);
    assert_int_equal(check("path", "p", &err), FZ_OK);
    assert_int_equal(check("json.ignore-parse-errors", "true", &err), FZ_OK);
    assert_int_equal(check("key.raw.charset", "UTF-8", &err), FZ_OK);
    assert_int_equal(check("value.json.x", "1", &err), FZ_OK);
    assert_int_equal(check("idle.time", "1", &err), FZ_OK);
    assert_int_equal(check("avro.x", "1", &err), FZ_USER);
    assert_int_equal(check("pth", "p", &err), FZ_USER);
    assert_string_equal(err.code, "option.unknown");
    assert_non_null(strstr(err.hint, "'path'"));
    assert_int_equal(err.line, 4);
    assert_int_equal(err.column, 5);
    assert_int_equal(check("old", "p", &err), FZ_USER);
    assert_string_equal(err.code, "option.refused");
    assert_string_equal(err.hint, "use 'path'");
    assert_int_equal(check("interval", "soon", &err), FZ_USER);
    assert_string_equal(err.code, "option.invalid");
    assert_int_equal(err.line, 4);
}

static void connectors_are_listed(void **state) {
    (void)state;
    bool kafka = false;
    for (const src_connector_info *c = src_connectors(); c->name; c++) {
        assert_true(strlen(c->doc) > 10);
        kafka |= strcmp(c->name, "kafka") == 0;
        for (const fz_option *o = c->options; o->name; o++) {
            const char *text = o->state == FZ_OPT_USED ? o->doc : o->why; /* what it is for, or why it is not taken */
            assert_true(text && *text);
            for (const fz_option *p = c->options; p != o; p++)
                if (strcmp(p->name, o->name) == 0) fail_msg("%s: '%s' stands twice", c->name, o->name);
        }
    }
    assert_true(kafka);
    assert_string_equal(src_metadata_columns("kafka")[0].key, "topic");
    assert_null(src_metadata_columns("nosuch")[0].key);
    fz_error err;
    src_source *s;
    fz_pair o[] = {{"connector", "nosuch", 0, 0}};
    src_context cx = {.table = "t", .readers = 1};
    assert_int_equal(src_open(o, 1, &cx, &s, &err), FZ_USER);
    assert_string_equal(err.code, "source.unknown-connector");
    assert_int_equal(src_open(o, 0, &cx, &s, &err), FZ_USER);
    assert_string_equal(err.code, "option.missing");
}

static fz_record record(const char *key, const char *value) {
    return (fz_record){.key = (const uint8_t *)key, .value = (const uint8_t *)value, .key_len = key ? (int32_t)strlen(key) : -1, .value_len = value ? (int32_t)strlen(value) : -1};
}

static void hashes_tell_records_apart(void **state) {
    (void)state;
    fz_record r[] = {record("ab", "c"), record("a", "bc"), record(NULL, "abc"), record("", "abc"), record("abc", NULL), record("abc", ""), record(NULL, NULL), record("", "")};
    enum { N = sizeof r / sizeof *r };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) assert_int_equal(src_record_hash(&r[i]) == src_record_hash(&r[j]), i == j);
    fz_record same = record("ab", "c");
    same.offset = 99; /* the place is no part of it */
    assert_int_equal(src_record_hash(&same), src_record_hash(&r[0]));
    assert_int_equal(src_record_hash(&r[0]), 0x4ff2938c8e6a2299ULL); /* it stands in tables: it must never change */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_are_checked), cmocka_unit_test(connectors_are_listed), cmocka_unit_test(hashes_tell_records_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
