/* json_split: what is one document, what is none, and where it is wrong. */
#include "unit.h"
#include "source/json_split.h"
#include <stdlib.h>

/* Splits the text; returns the number of documents, or -1. */
static int split_n(const char *p, size_t n, bool objects, fz_sv *docs, int most, json_split *s) {
    uint8_t *copy = fz_malloc(n ? n : 1); /* of exact size, for the sanitizer */
    memcpy(copy, p, n);
    fz_sv d;
    int k = 0, rc;
    json_split_init(s, copy, n, objects);
    while ((rc = json_split_next(s, &d)) == 1) {
        if (k < most) docs[k] = (fz_sv){p + (d.p - (const char *)copy), d.n};
        k++;
    }
    size_t where = s->where ? (size_t)(s->where - copy) : 0;
    size_t line = s->where ? json_split_line(s, s->where) : 0;
    s->p = (const uint8_t *)p;
    s->where = s->where ? (const uint8_t *)p + where : NULL;
    if (s->where) assert_int_equal(json_split_line(s, s->where), line);
    fz_free(copy);
    return rc == 0 ? k : -1;
}
static int split(const char *text, bool objects, fz_sv *docs, json_split *s) { return split_n(text, strlen(text), objects, docs, docs ? 8 : 0, s); }

static void test_documents(void **state) {
    (void)state;
    static const struct { const char *text; int n; const char *docs[4]; } cases[] = {
        {"", 0, {0}}, {" \r\n\t", 0, {0}}, {"[]", 0, {0}}, {" [ ] \n", 0, {0}},
        {"{}", 1, {"{}"}}, {" {\"a\":1} ", 1, {"{\"a\":1}"}}, {"\xEF\xBB\xBF{\"a\":1}", 1, {"{\"a\":1}"}},
        {"{\"a\":1}\n{\"a\":2}\n", 2, {"{\"a\":1}", "{\"a\":2}"}}, {"{\"a\":1}\r\n\r\n{\"a\":\r\n2}", 2, {"{\"a\":1}", "{\"a\":\r\n2}"}},
        {"{\"a\":1}{\"b\":2}", 2, {"{\"a\":1}", "{\"b\":2}"}},
        {"[{\"a\":1},{\"a\":2}]", 2, {"{\"a\":1}", "{\"a\":2}"}}, {"\n[ {\"a\":[1,{}]} ,\n{} ]\n", 2, {"{\"a\":[1,{}]}", "{}"}},
        {"1 2\n\"x\"\nnull", 4, {"1", "2", "\"x\"", "null"}}, {"[1,\"]\",[2]]", 3, {"1", "\"]\"", "[2]"}}, {"[[]]", 1, {"[]"}},
        {"{\"a\\\"}\":\"}{\"}", 1, {"{\"a\\\"}\":\"}{\"}"}}, {"{\"caf\xC3\xA9\":\"\\u00e9\\n\\/\"}", 1, {"{\"caf\xC3\xA9\":\"\\u00e9\\n\\/\"}"}},
        {"-0 0 1e5 1.5E-3 -10.25e+07", 4, {"-0", "0", "1e5", "1.5E-3"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_sv docs[8];
        json_split s;
        int n = split(cases[i].text, false, docs, &s), most = cases[i].n < 4 ? cases[i].n : 4;
        if (n < 0) print_error("%s: %s\n", cases[i].text, s.why);
        if (i + 1 < sizeof cases / sizeof *cases) assert_int_equal(n, cases[i].n);
        else assert_int_equal(n, 5);
        for (int k = 0; k < most; k++) assert_true(fz_sv_eq(docs[k], fz_sv_of(cases[i].docs[k])));
    }
}

static void test_wrong(void **state) {
    (void)state;
    static const char *const cases[] = {
        "{", "}", "[", "]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}", "{,}", "[1,]", "[,1]", "[1 2]", "[1", "[1,", "[{}", "[{}]x", "[{}][{}]", "[{}],", "{\"a\":[}", "{\"a\":]}", "{]", "[}",
        "nul", "tru", "True", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x10", "1a", "truefalse", "null1", "1\"x\"", "\"a", "\"a\\", "\"a\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "\"a\tb\"",
        "\"\x01\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "{\"a\":1}\n{\"a\":\xc0\x80}", "{\"a\":1};", "/* */{}", "{\"a\":1}//", "\"\\\0\"", "{\"a\":1}\0"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_split s;
        int n = split(cases[i], false, NULL, &s);
        if (i + 1 == sizeof cases / sizeof *cases) n = split_n("{\"a\":1}\0", 8, false, NULL, 0, &s);
        if (n != -1) print_error("taken: %s\n", cases[i]);
        assert_int_equal(n, -1);
        assert_non_null(s.why);
    }
}

static void test_lines(void **state) {
    (void)state;
    static const struct { const char *text; size_t line; } cases[] = {
        {"x", 1}, {"{}\n{}\nx\n{}", 3}, {"{}\n\n\n{\"a\":1]", 4}, {"[{},\n{},\n{\"a\"}\n]", 3}, {"{}\n{\"a\":\n\"abc", 3}, {"{}\n[]\n", 2}, {"{\"a\":1}\n17\n", 2}, {"{}\n{\"a\":\"\xff\"}\n", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_split s;
        assert_int_equal(split(cases[i].text, true, NULL, &s), -1);
        assert_int_equal(json_split_line(&s, s.where), cases[i].line);
    }
}

static void test_depth(void **state) {
    (void)state;
    json_split s;
    char *text = fz_malloc(3 * FZ_MAX_JSON_DEPTH + 10);
    for (int over = 0; over < 2; over++) {
        int n = FZ_MAX_JSON_DEPTH + over;
        memset(text, '[', (size_t)n + 1); /* the first is the array of documents */
        memset(text + n + 1, ']', (size_t)n + 1);
        assert_int_equal(split_n(text, 2 * (size_t)n + 2, false, NULL, 0, &s), over ? -1 : 1);
        size_t len = 0;
        text[len++] = '[';
        fz_buf b = {0};
        for (int i = 0; i < n; i++) fz_buf_puts(&b, i % 3 ? "{\"a\":" : "[");
        fz_buf_puts(&b, "1");
        for (int i = n - 1; i >= 0; i--) fz_buf_putc(&b, i % 3 ? '}' : ']');
        fz_buf all = {0};
        fz_buf_printf(&all, "[%s]", fz_buf_cstr(&b));
        assert_int_equal(split_n((char *)all.data, all.len, false, NULL, 0, &s), over ? -1 : 1);
        fz_buf_free(&b);
        fz_buf_free(&all);
    }
    fz_free(text);
    fz_buf b = {0};
    for (int i = 0; i < 100000; i++) fz_buf_puts(&b, "[{\"a\":");
    assert_int_equal(split_n((char *)b.data, b.len, false, NULL, 0, &s), -1);
    fz_buf_free(&b);
}

/* Each cut of a text is no whole document, or one less; each byte replaced never leads beyond the text. */
static void test_any_damage(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,-2.5e3,true,null,{\"b\":\"x\\u00e9\\\\\"}],\"caf\xC3\xA9\":{},\"z\":\"0123456789abcdef\"}";
    json_split s;
    assert_int_equal(split_n(text, sizeof text - 1, true, NULL, 0, &s), 1);
    for (size_t n = 1; n < sizeof text - 1; n++) assert_int_equal(split_n(text, n, true, NULL, 0, &s), -1);
    char copy[sizeof text];
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (int b = 0; b < 256; b++) {
            memcpy(copy, text, sizeof text);
            copy[i] = (char)b;
            (void)split_n(copy, sizeof text - 1, b & 1, NULL, 0, &s);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents), cmocka_unit_test(test_wrong), cmocka_unit_test(test_lines), cmocka_unit_test(test_depth), cmocka_unit_test(test_any_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
