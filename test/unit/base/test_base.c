/* Arenas, text, options, queues, faults, errors. */
#include "unit.h"
#include "base/base.h"
#include <pthread.h>
#include <stdlib.h>

static void arena_keeps_what_it_gave(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    char *p[2000];
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)(i * 37 % 900 + 1);
        p[i] = fz_arena_alloc(a, n);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], i, n);
    }
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)(i * 37 % 900 + 1);
        for (size_t k = 0; k < n; k++) assert_int_equal((unsigned char)p[i][k], i & 255);
    }
    char *big = fz_arena_alloc(a, 1 << 20), *grown = fz_arena_realloc(a, NULL, 0, 10);
    memset(big, 1, 1 << 20);
    memcpy(grown, "abcdefghi", 10);
    grown = fz_arena_realloc(a, grown, 10, 5000);
    assert_string_equal(grown, "abcdefghi");
    fz_arena_free(a);
}

static void text_is_parsed_whole_or_not(void **state) {
    (void)state;
    int64_t i;
    assert_true(fz_parse_i64(FZ_SV("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_false(fz_parse_i64(FZ_SV("9223372036854775808"), &i));
    assert_false(fz_parse_i64(FZ_SV("12 "), &i));
    assert_false(fz_parse_i64(FZ_SV(""), &i));
    assert_true(fz_utf8_valid("caf\xC3\xA9 \xF0\x9F\x98\x80", 10));
    assert_false(fz_utf8_valid("\xED\xA0\x80", 3));
    assert_false(fz_utf8_valid("\xC3", 1));
    assert_false(fz_utf8_valid("\xC0\x80", 2));
    fz_buf b = {0};
    fz_buf_json(&b, "a\"\\\n\x01\xC3\xA9", 7);
    assert_string_equal(fz_buf_cstr(&b), "\"a\\\"\\\\\\n\\u0001\xC3\xA9\"");
    b.len = 0;
    fz_buf_base64(&b, "hello", 5);
    assert_string_equal(fz_buf_cstr(&b), "aGVsbG8=");
    fz_buf_free(&b);
}

static void base64_is_strict(void **state) {
    (void)state;
    static const struct { const char *text, *bytes; size_t n; } good[] = {{"", "", 0}, {"YQ==", "a", 1}, {"YWI=", "ab", 2}, {"YWJj", "abc", 3}, {"AAD/+/8=", "\0\0\xff\xfb\xff", 5}, {"YWJjZA==", "abcd", 4}};
    static const char *const bad[] = {"Y", "YQ", "YQ=", "====", "Y===", "YQ==YQ==", "YW I", "YWJ-", "YW=j", "=YWJ", "YWJj\n", "\xc3\xa9YW", "YWJjYW==YWJj", "Y\x01==", "YWJ\x7f"};
    fz_buf b = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        b.len = 0;
        assert_true(fz_base64_decode(good[i].text, strlen(good[i].text), &b));
        assert_int_equal(b.len, good[i].n);
        if (b.len) assert_memory_equal(b.data, good[i].bytes, b.len);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t had = b.len;
        if (fz_base64_decode(bad[i], strlen(bad[i]), &b) || b.len != had) fail_msg("%s", bad[i]);
    }
    for (int c = 0; c < 256; c++) { /* each byte at each place of a unit: 64 of them are digits */
        for (int at = 0; at < 4; at++) {
            char unit[] = "AAAAAAAA";
            unit[at] = (char)c;
            bool digit = c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", c);
            assert_int_equal(fz_base64_decode(unit, 8, &b), digit);
        }
    }
    for (size_t n = 0; n < 200; n++) { /* there and back */
        uint8_t raw[200];
        fz_buf text = {0};
        fz_random(raw, sizeof raw);
        fz_buf_base64(&text, raw, n);
        b.len = 0;
        assert_true(fz_base64_decode((const char *)text.data, text.len, &b));
        assert_int_equal(b.len, n);
        if (n) assert_memory_equal(b.data, raw, n);
        fz_buf_free(&text);
    }
    fz_buf_free(&b);
}

/* Every byte at every place of texts of all lengths around the widths that are copied at once. */
static void json_strings_are_escaped_wherever_it_stands(void **state) {
    (void)state;
    for (size_t n = 0; n < 52; n++)
        for (size_t at = 0; at <= n; at++)
            for (unsigned c = 0; c < 256; c++) {
                char s[64], want[80] = "\"";
                size_t k = 1;
                for (size_t i = 0; i < n; i++) {
                    unsigned char x = s[i] = (char)(i == at ? c : (i + 7 == at || at == n) && c == '\\' ? '"' : 0x20 + (i * 7 + n) % 2);
                    if (x == '"' || x == '\\') want[k++] = '\\';
                    if (x == '\n' || x == '\r' || x == '\t') k += (size_t)sprintf(want + k, "\\%c", x == '\n' ? 'n' : x == '\r' ? 'r' : 't');
                    else if (x < 0x20) k += (size_t)sprintf(want + k, "\\u%04x", x);
                    else want[k++] = (char)x;
                    if (k > 72) break;
                }
                if (k > 72) continue; /* nothing but quotes */
                want[k++] = '"';
                fz_buf b = {0};
                fz_buf_json(&b, s, n);
                assert_int_equal(b.len, k);
                assert_memory_equal(b.data, want, k);
                fz_buf_free(&b);
            }
}

static void durations_and_sizes_are_flinks(void **state) {
    (void)state;
    fz_error err;
    int64_t v;
    static const struct { const char *s; int64_t ms; } good[] = {{"5 min", 300000}, {"30s", 30000}, {"500 ms", 500}, {"1 h", 3600000}, {"7 d", 604800000}, {"12", 12}, {"1500 us", 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(fz_parse_duration_ms(good[i].s, &v, &err), FZ_OK);
        assert_int_equal(v, good[i].ms);
    }
    static const char *const bad[] = {"", "min", "5 fortnights", "-1 s", "9223372036854775807 d", "1.5 s", "999999 d", "9223372036854775807"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(fz_parse_duration_ms(bad[i], &v, &err), FZ_USER);
    assert_int_equal(fz_parse_size("128 mb", &v, &err), FZ_OK);
    assert_int_equal(v, 128 << 20);
}

static void *push_many(void *q) {
    for (uintptr_t i = 1; i <= 10000; i++)
        if (!fz_queue_push(q, (void *)i)) return NULL;
    return NULL;
}
static void queue_loses_nothing(void **state) {
    (void)state;
    fz_queue *q = fz_queue_new(3);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, push_many, q);
    uint64_t sum = 0;
    for (int i = 0; i < 30000; i++) sum += (uintptr_t)fz_queue_pop(q, -1);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_int_equal(sum, 3ull * 10000 * 10001 / 2);
    assert_null(fz_queue_pop(q, 1));
    fz_queue_close(q);
    assert_false(fz_queue_push(q, q));
    assert_null(fz_queue_pop(q, -1));
    fz_queue_free(q);
}

static void faults_fire_at_their_hit(void **state) {
    (void)state;
    fz_error err;
    assert_int_equal(fz_fault_arm("commit.swap:2:eio,commit.load:0:unknown", &err), FZ_OK);
    assert_int_equal(fz_fault("commit.swap"), FZ_FAULT_NONE);
    assert_int_equal(fz_fault("commit.swap"), FZ_FAULT_EIO);
    assert_int_equal(fz_fault("commit.swap"), FZ_FAULT_NONE);
    assert_int_equal(fz_fault_status("commit.load", &err), FZ_UNKNOWN);
    assert_int_equal(fz_fault_arm("commit.nowhere:1:kill", &err), FZ_USER);
    assert_int_equal(fz_fault_arm("commit.swap:1:explode", &err), FZ_USER);
    assert_int_equal(fz_fault_arm(NULL, &err), FZ_OK);
    assert_int_equal(fz_fault("commit.load"), FZ_FAULT_NONE);
}

static void errors_carry_their_parts(void **state) {
    (void)state;
    fz_error e;
    char text[2048];
    assert_int_equal(fz_fail(&e, FZ_USER, "a.b", "no %s", "cake"), FZ_USER);
    fz_detail(&e, "asked %d times", 3);
    fz_hint(&e, "bake one");
    fz_at(&e, 4, 7);
    fz_context(&e, "kitchen");
    assert_string_equal(fz_error_text(&e, text, sizeof text), "[a.b] kitchen: no cake at line 4, column 7 (asked 3 times). Hint: bake one");
}

static void secrets_are_known_by_name(void **state) {
    (void)state;
    static const char *const secret[] = {"s3.secret-access-key", "s3.access-key-id", "s3.session-token", "properties.sasl.jaas.config", "jdbc.password", "credential", "token",
                                         "properties.ssl.key.password", "header.Authorization", "rest.auth.basic.password", "s3.sse.key"};
    static const char *const open[] = {"s3.endpoint", "token-refresh-enabled", "oauth2-server-uri", "uri", "warehouse", "client.credentials-provider", "token-expires-in-ms", "rest.auth.type"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!fz_option_secret(secret[i])) fail_msg("%s is a secret", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (fz_option_secret(open[i])) fail_msg("%s is no secret", open[i]);
    static const char *const shown[][3] = {
        {"s3.secret-access-key", "x", "******"}, {"uri", "sqlite:////dir/c.db", "sqlite:////dir/c.db"}, {"warehouse", "s3://b/p", "s3://b/p"}, {"comment", "why? a@b:c", "why? a@b:c"},
        {"uri", "postgresql+psycopg2://me:hunter2@h:5432/d?user=a@b&password=hunter2", "postgresql+psycopg2://me:******@h:5432/d?user=a@b&password=******"},
        {"uri", "postgresql://me:hun/t@er2@h/d", "postgresql://me:******@h/d"}, {"uri", "postgresql://h:5432/d", "postgresql://h:5432/d"},
        {"uri", "jdbc:postgresql:d?password=hunter2&ssl&sslpassword=hunter2&user=u", "jdbc:postgresql:d?password=******&ssl&sslpassword=******&user=u"},
        {"uri", "jdbc:mysql://me:hunter2@h/d", "jdbc:mysql://me:******@h/d"}, {"uri", "http://h:80/?token", "http://h:80/?token"}, {"x", "", ""},
    };
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        fz_buf b = {0};
        fz_option_show(&b, shown[i][0], shown[i][1]);
        assert_string_equal(fz_buf_cstr(&b), shown[i][2]);
        fz_buf_free(&b);
    }
    fz_error e;
    fz_option o = {.name = "x.token", .type = FZ_OPT_INT};
    assert_int_equal(fz_option_check(&o, "hunter2", &e), FZ_USER);
    assert_null(strstr(e.message, "hunter2"));
}

/* Metrics exist at zero and have what a reference page needs. */
static void metrics_are_complete(void **state) {
    (void)state;
    for (int i = 0; i < FZ_M_COUNT; i++) {
        const fz_metric_info *m = fz_metric_describe((fz_metric)i);
        assert_true(m->name && m->help && m->unit);
        assert_true(m->kind != FZ_METRIC_COUNTER || m->origin || strstr(m->name, "_total")); /* what others have named keeps its name */
        for (int k = 0; k < i; k++) assert_string_not_equal(m->name, fz_metric_describe((fz_metric)k)->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(arena_keeps_what_it_gave), cmocka_unit_test(text_is_parsed_whole_or_not), cmocka_unit_test(json_strings_are_escaped_wherever_it_stands), cmocka_unit_test(durations_and_sizes_are_flinks),
                                       cmocka_unit_test(base64_is_strict), cmocka_unit_test(queue_loses_nothing), cmocka_unit_test(faults_fire_at_their_hit), cmocka_unit_test(errors_carry_their_parts),
                                       cmocka_unit_test(metrics_are_complete), cmocka_unit_test(secrets_are_known_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
