/* The format 'syslog': RFC 5424 with its structured data, RFC 3164 as senders write it, times without years and zones, and what is neither. */
#include "test_decode.h"
#include "decode/syslog_parts.h"

#define SCHEMA "priority INT, facility INT, severity INT, version INT, facility_text STRING, severity_text STRING, timestamp TIMESTAMP_LTZ(6), hostname STRING, app_name STRING, procid STRING, msgid STRING, " \
               "structured_data MAP<STRING,MAP<STRING,STRING>>, message STRING, raw STRING, format STRING"
#define JAN_2_2025 1735787045000000ll /* 2025-01-02T03:04:05Z */

typedef struct row { dec_decoder *d; fz_arena *a; dec_output out; fz_rejects rejects; } row;

static void open_row(row *r, const char *schema, const char *zone) {
    fz_pair o = {.key = "syslog.time-zone", .value = zone};
    fz_error err;
    memset(r, 0, sizeof *r);
    r->a = fz_arena_new();
    if (dec_new("syslog", &o, zone ? 1 : 0, parse_schema(r->a, schema), NULL, false, &r->d, &err) != FZ_OK) fail_msg("open: %s", err.message);
}
static void close_row(row *r) {
    dec_free(r->d);
    fz_free(r->rejects.v);
    fz_arena_free(r->a);
}
static void decode_at(row *r, const void *p, size_t n, int64_t arrival_ms) {
    fz_record rec = {.value = p, .value_len = (int32_t)n, .key_len = -1, .timestamp_ms = arrival_ms};
    fz_chunk c = {.n = 1, .rec = &rec};
    fz_error err;
    r->rejects.n = 0;
    assert_int_equal(dec_decode(r->d, &c, r->a, &r->out, &r->rejects, &err), FZ_OK);
    assert_int_equal(r->out.n_rows, 1);
    assert_int_equal(r->rejects.n, 0);
}
static void decode(row *r, const char *text) { decode_at(r, text, strlen(text), JAN_2_2025 / 1000); }

static const col_vec *flat(const col_vec *v, uint32_t *i) {
    if (v->idx) {
        *i = v->idx[*i];
        return v->dict;
    }
    return v;
}
/* NULL: the value is NULL. */
static const char *text_at(row *r, const col_vec *v, uint32_t i) {
    if (col_is_null(v, i)) return NULL;
    v = flat(v, &i);
    return fz_arena_strndup(r->a, v->bytes + v->off[i], v->off[i + 1] - v->off[i]);
}
static const char *text(row *r, uint32_t col) { return text_at(r, r->out.cols[col], 0); }
static void is_text(row *r, uint32_t col, const char *want) {
    const char *got = text(r, col);
    if (!want || !got) assert_true(want == got);
    else assert_string_equal(got, want);
}
static void is_int(row *r, uint32_t col, int want) {
    assert_int_equal(col_is_null(r->out.cols[col], 0), want < 0);
    if (want >= 0) assert_int_equal(r->out.cols[col]->i32[0], want);
}
static void is_time(row *r, int64_t us) {
    assert_false(col_is_null(r->out.cols[6], 0));
    assert_int_equal(r->out.cols[6]->i64[0], us);
}
/* The value of a parameter, NULL: it is not there. */
static const char *sd(row *r, const char *id, const char *name) {
    const col_vec *ids = r->out.cols[11], *maps = ids->child[1];
    for (uint32_t i = ids->off[0]; i < ids->off[1]; i++) {
        if (strcmp(text_at(r, ids->child[0], i), id) != 0) continue;
        for (uint32_t k = maps->off[i]; k < maps->off[i + 1]; k++)
            if (strcmp(text_at(r, maps->child[0], k), name) == 0) return text_at(r, maps->child[1], k);
    }
    return NULL;
}

/* Escapes in structured data; a bracket in the message. */
static void test_structured_data(void **state) {
    (void)state;
    row r;
    open_row(&r, SCHEMA, NULL);
    decode(&r, "<29>1 2025-01-02T03:04:05Z h1 app - m [x@32473 a=\"1\\\\2\" b=\"q\\\"q\" c=\"e\\]e\" d=\"C:\\Temp\"][y@1 k=\"\"] ok [tail]");
    is_text(&r, 14, "rfc5424");
    is_int(&r, 0, 29);
    is_int(&r, 1, 3);
    is_int(&r, 2, 5);
    is_int(&r, 3, 1);
    is_text(&r, 4, "daemon");
    is_text(&r, 5, "notice");
    is_time(&r, JAN_2_2025);
    is_text(&r, 7, "h1");
    is_text(&r, 8, "app");
    is_text(&r, 9, NULL);
    is_text(&r, 10, "m");
    is_text(&r, 12, "ok [tail]");
    assert_string_equal(sd(&r, "x@32473", "a"), "1\\2");
    assert_string_equal(sd(&r, "x@32473", "b"), "q\"q");
    assert_string_equal(sd(&r, "x@32473", "c"), "e]e");
    assert_string_equal(sd(&r, "x@32473", "d"), "C:\\Temp");
    assert_string_equal(sd(&r, "y@1", "k"), "");
    /* A quote that is escaped, before the one that closes; a backslash that is escaped there; elements without parameters; a value with blanks, brackets and an equals sign. */
    decode(&r, "<29>1 - - - - - [a x=\"\\\"\" y=\"\\\\\"][b][c z=\"[p=q] r\"]");
    assert_string_equal(sd(&r, "a", "x"), "\"");
    assert_string_equal(sd(&r, "a", "y"), "\\");
    assert_string_equal(sd(&r, "c", "z"), "[p=q] r");
    assert_int_equal(r.out.cols[11]->off[1], 3);
    is_text(&r, 12, "");
    assert_true(col_is_null(r.out.cols[6], 0));
    /* A name that comes twice: the last value. */
    decode(&r, "<29>1 - - - - - [o ip=\"1\" ip=\"2\"] m");
    assert_string_equal(sd(&r, "o", "ip"), "2");
    decode(&r, "<29>1 - - - - - - -");
    assert_true(col_is_null(r.out.cols[11], 0));
    is_text(&r, 12, "-");
    close_row(&r);
    open_row(&r, "structured_data STRING, host STRING, program STRING, pid STRING, msg STRING, priority BIGINT, severity STRING, timestamp STRING", NULL);
    decode(&r, "<29>1 2025-01-02T03:04:05+09:00 h1 app 7 m [y@1 k=\"\\\"\"] t");
    is_text(&r, 0, "[y@1 k=\"\\\"\"]");
    is_text(&r, 1, "h1");
    is_text(&r, 2, "app");
    is_text(&r, 3, "7");
    is_text(&r, 4, "t");
    assert_int_equal(r.out.cols[5]->i64[0], 29);
    is_text(&r, 6, "5");
    is_text(&r, 7, "2025-01-02T03:04:05+09:00");
    close_row(&r);
}

/* What is broken stays in the message. */
static void test_broken_data(void **state) {
    (void)state;
    static const char *const broken[] = {"[x a=\"1\" m", "[x a=1] m", "[x a=\"1\\\"] m", "[", "[]", "[ x] m", "[x a=\"1\"b=\"2\"] m", "[x a=\"1\"]m", "[x][y m", "text without data", "[x \"a\"] m", "[x a=\"", "[x a=\"\\"};
    row r;
    open_row(&r, SCHEMA, NULL);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char line[128];
        snprintf(line, sizeof line, "<34>1 2025-01-02T03:04:05Z h1 app - - %s", broken[i]);
        decode(&r, line);
        is_text(&r, 14, "rfc5424");
        is_text(&r, 7, "h1");
        is_text(&r, 12, broken[i]);
        assert_true(col_is_null(r.out.cols[11], 0));
    }
    close_row(&r);
}

static void test_rfc5424_times(void **state) {
    (void)state;
    static const struct { const char *text; int64_t us; } times[] = {
        {"2025-01-02T03:04:05Z", JAN_2_2025}, {"2025-01-02T03:04:05.123456Z", JAN_2_2025 + 123456}, {"2025-01-02T03:04:05.000003-07:00", JAN_2_2025 + 7 * 3600000000ll + 3},
        {"2025-01-02T12:04:05+09:00", JAN_2_2025}, {"2025-01-02t03:04:05.5z", JAN_2_2025 + 500000}, {"2025-01-02T03:04:05.123456789Z", JAN_2_2025 + 123456}, {"2025-01-02T03:04:60Z", JAN_2_2025 + 54000000},
        {"2025-01-02T08:34:05+0530", JAN_2_2025}};
    static const char *const wrong[] = {"2025-02-29T03:04:05Z", "2025-13-02T03:04:05Z", "2025-01-02T24:04:05Z", "2025-01-02T03:04:05+24:00", "2025-01-02 03:04:05", "2025-01-02T03:04:05.1234567891Z", "yesterday", "1735787045"};
    row r;
    char line[160];
    open_row(&r, SCHEMA, NULL);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        snprintf(line, sizeof line, "<34>1 %s h1 app - - - m", times[i].text);
        decode(&r, line);
        is_text(&r, 14, "rfc5424");
        is_time(&r, times[i].us);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "<34>1 %s h1 app - - - m", wrong[i]);
        decode(&r, line);
        is_text(&r, 14, "none");
        is_text(&r, 12, line);
        is_int(&r, 0, 34);
        is_text(&r, 7, NULL);
    }
    close_row(&r);
}

static void test_rfc5424_examples(void **state) {
    (void)state;
    row r;
    open_row(&r, SCHEMA, NULL);
    decode(&r, "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed for lonvick on /dev/pts/8"); /* RFC 5424 6.5 */
    is_int(&r, 1, 4);
    is_int(&r, 2, 2);
    is_time(&r, 1065910455003000ll);
    is_text(&r, 10, "ID47");
    is_text(&r, 12, "'su root' failed for lonvick on /dev/pts/8");
    decode(&r, "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.");
    is_time(&r, 1061727255000003ll);
    is_text(&r, 4, "local4");
    is_text(&r, 9, "8710");
    is_text(&r, 12, "%% It's time to make the do-nuts.");
    decode(&r, "<34>1 2025-01-02T03:04:05Z h1 app - - - line1\nline2");
    is_text(&r, 12, "line1\nline2");
    decode(&r, "<34>1 2025-01-02T03:04:05Z h1 app - - - caf\xc3\xa9 \xff");
    is_text(&r, 12, "caf\xc3\xa9 \xef\xbf\xbd");
    is_text(&r, 13, "<34>1 2025-01-02T03:04:05Z h1 app - - - caf\xc3\xa9 \xef\xbf\xbd");
    decode(&r, "<34>1 2025-01-02T03:04:05Z h1 app - -");
    is_text(&r, 14, "rfc5424");
    is_text(&r, 12, "");
    close_row(&r);
}

typedef struct old { const char *line, *format; int pri; const char *host, *app, *pid, *message; bool timed; } old;
static const old olds[] = {
    {"<34>Oct 11 22:14:15 mymachine su: 'su root' failed", "rfc3164", 34, "mymachine", "su", NULL, "'su root' failed", true},
    {"<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!", "rfc3164", 13, "10.0.0.99", NULL, NULL, "Use the BFG!", true},
    {"<165>Aug 24 05:34:00 2003 myproc[10]: %% It's time", "rfc3164", 165, NULL, "myproc", "10", "%% It's time", true},
    {"<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!", "none", 0, NULL, NULL, NULL, "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!", false},
    {"<30>Jan  2 03:04:05 h1 systemd[1]: Started x.", "rfc3164", 30, "h1", "systemd", "1", "Started x.", true},
    {"<30>Jan 2 03:04:05.123 h1 sshd[12]:no blank", "rfc3164", 30, "h1", "sshd", "12", "no blank", true},
    {"<30>Jan  2 03:04:05 tag: without a host", "rfc3164", 30, NULL, "tag", NULL, "without a host", true},
    {"<30>2025-01-02T03:04:05.5+00:00 h1 a-b/c[7]: x", "rfc3164", 30, "h1", "a-b/c", "7", "x", true},
    {"<30>Jan  2 03:04:05 h1 last message repeated 2 times", "rfc3164", 30, "h1", NULL, NULL, "last message repeated 2 times", true},
    {"<30>Jan  2 03:04:05 h1 at 12:30 it rained", "rfc3164", 30, "h1", NULL, NULL, "at 12:30 it rained", true},
    {"<30>app[3]: no time", "rfc3164", 30, NULL, "app", "3", "no time", false},
    {"<30>*Jan  2 03:04:05.1: %SYS-5-CONFIG_I: by vty0", "rfc3164", 30, NULL, "%SYS-5-CONFIG_I", NULL, "by vty0", true},
    {"Jan  2 03:04:05 h1 app: a line of a file", "rfc3164", -1, "h1", "app", NULL, "a line of a file", true},
    {"\xef\xbb\xbf<30>Jan  2 03:04:05 h1 app: bom", "rfc3164", 30, "h1", "app", NULL, "bom", true},
    {"<30>Jan  2 03:04:05 h1 app: \xef\xbb\xbf" "bom", "rfc3164", 30, "h1", "app", NULL, "bom", true},
    {"<30>Jan  2 03:04:05", "rfc3164", 30, NULL, NULL, NULL, "", true},
    {"<30>Jan  2 03:04:05 h1", "rfc3164", 30, "h1", NULL, NULL, "", true},
    {"<30>Jan 32 03:04:05 h1 app: x", "none", 30, NULL, NULL, NULL, "<30>Jan 32 03:04:05 h1 app: x", false},
    {"<192>Jan  2 03:04:05 h1 app: x", "none", -1, NULL, NULL, NULL, "<192>Jan  2 03:04:05 h1 app: x", false},
    {"<>x", "none", -1, NULL, NULL, NULL, "<>x", false},
    {"<1234>x", "none", -1, NULL, NULL, NULL, "<1234>x", false},
    {"<34", "none", -1, NULL, NULL, NULL, "<34", false},
    {"<34>", "none", 34, NULL, NULL, NULL, "<34>", false},
    {"hello world", "none", -1, NULL, NULL, NULL, "hello world", false},
    {"{\"json\": [1]}", "none", -1, NULL, NULL, NULL, "{\"json\": [1]}", false},
    {"", "none", -1, NULL, NULL, NULL, "", false},
};

static void test_rfc3164(void **state) {
    (void)state;
    row r;
    open_row(&r, SCHEMA, NULL);
    for (size_t i = 0; i < sizeof olds / sizeof *olds; i++) {
        const old *o = &olds[i];
        decode(&r, o->line);
        if (!text(&r, 14) || strcmp(text(&r, 14), o->format) != 0) fail_msg("%s: %s", o->line, text(&r, 14));
        is_int(&r, 0, o->pri);
        is_int(&r, 3, -1);
        is_text(&r, 7, o->host);
        is_text(&r, 8, o->app);
        is_text(&r, 9, o->pid);
        is_text(&r, 12, o->message);
        is_text(&r, 13, o->line);
        assert_int_equal(!col_is_null(r.out.cols[6], 0), o->timed);
    }
    close_row(&r);
}

static int64_t at(int year, int month, int day, int hour) { return dt_days_of(year, month, day) * DT_US_PER_DAY + hour * 3600 * DT_US_PER_SECOND; }

/* The year is that of the arrival, but around New Year, and where a 29th of February tells. */
static void test_years(void **state) {
    (void)state;
    const struct { const char *time; int64_t arrival, want; } v[] = {
        {"Dec 31 23:00:00", at(2025, 1, 1, 0), at(2024, 12, 31, 23)}, {"Jan  1 00:00:00", at(2024, 12, 31, 23), at(2025, 1, 1, 0)}, {"Jun 15 12:00:00", at(2025, 6, 15, 12), at(2025, 6, 15, 12)},
        {"Dec 15 00:00:00", at(2025, 2, 1, 0), at(2024, 12, 15, 0)}, {"Jan 15 00:00:00", at(2025, 12, 31, 0), at(2026, 1, 15, 0)}, {"Jun 30 00:00:00", at(2025, 6, 1, 0), at(2025, 6, 30, 0)},
        {"Feb 29 01:00:00", at(2025, 1, 3, 0), at(2024, 2, 29, 1)}, {"Feb 29 01:00:00", at(2028, 3, 1, 0), at(2028, 2, 29, 1)}, {"Nov  1 00:00:00", at(2025, 3, 1, 0), at(2024, 11, 1, 0)},
        {"Jan  2 2019 03:00:00", at(2025, 3, 1, 0), at(2019, 1, 2, 3)}, {"Jan  2 03:00:00 2019", at(2025, 3, 1, 0), at(2019, 1, 2, 3)}};
    row r;
    char line[80];
    open_row(&r, SCHEMA, NULL);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        int n = snprintf(line, sizeof line, "<13>%s h app: m", v[i].time);
        decode_at(&r, line, (size_t)n, v[i].arrival / 1000);
        is_text(&r, 8, "app");
        is_time(&r, v[i].want);
    }
    close_row(&r);
    /* New Year comes where the zone says: it is already 2025 in Tokyo. */
    open_row(&r, SCHEMA, "Asia/Tokyo");
    decode_at(&r, "<13>Jan  1 00:30:00 h app: m", 28, (at(2024, 12, 31, 15) + 1800 * DT_US_PER_SECOND) / 1000);
    is_time(&r, at(2024, 12, 31, 15) + 1800 * DT_US_PER_SECOND);
    decode(&r, "<13>1 2025-01-02T03:04:05Z h app - - - m");
    is_time(&r, JAN_2_2025);
    close_row(&r);
    open_row(&r, "timestamp TIMESTAMP(3), message STRING", "+09:00");
    decode(&r, "<13>Jan  2 12:04:05.123987 h app: m");
    assert_int_equal(r.out.cols[0]->i64[0], JAN_2_2025 + 123000);
    close_row(&r);
}

/* Every text is a row; every cut of a good message too, and nothing of its end is lost. */
static void test_never_rejects(void **state) {
    (void)state;
    static const char good[] = "<29>1 2025-01-02T03:04:05.123456+01:00 host app 12 id [x@1 a=\"1\\\\2\" b=\"q\\\"q\"][y@1 k=\"\"] \xef\xbb\xbfok [tail]";
    row r;
    fz_error err;
    open_row(&r, SCHEMA, NULL);
    for (size_t n = 0; n < sizeof good; n++) {
        char *exact = malloc(n + !n); /* a read past the end is seen */
        memcpy(exact, good, n);
        decode_at(&r, exact, n, 0);
        if (fz_utf8_valid(good, n)) assert_string_equal(text(&r, 13), fz_arena_strndup(r.a, good, n));
        free(exact);
    }
    fz_record rec[2] = {{.value_len = -1, .key_len = -1}, {.value_len = 9, .key_len = -1, .oversized = true}};
    fz_chunk c = {.n = 2, .rec = rec};
    assert_int_equal(dec_decode(r.d, &c, r.a, &r.out, &r.rejects, &err), FZ_OK);
    assert_int_equal(r.out.n_rows, 0);
    assert_int_equal(r.out.n_unparseable, 1);
    assert_int_equal(r.rejects.n, 1);
    assert_string_equal(r.rejects.v[0].code, "record.too-large");
    close_row(&r);
}

static void refused(const char *schema, const char *zone, const char *code) {
    fz_arena *a = fz_arena_new();
    fz_pair o = {.key = "syslog.time-zone", .value = zone};
    dec_decoder *d;
    fz_error err;
    assert_int_equal(dec_new("syslog", &o, zone ? 1 : 0, parse_schema(a, schema), NULL, false, &d, &err), FZ_USER);
    assert_string_equal(err.code, code);
    fz_arena_free(a);
}
static void test_refused(void **state) {
    (void)state;
    refused("message STRING, level STRING", NULL, "syslog.column");
    refused("Message STRING", NULL, "syslog.column");
    refused("priority DOUBLE", NULL, "syslog.type");
    refused("message INT", NULL, "syslog.type");
    refused("timestamp BIGINT", NULL, "syslog.type");
    refused("structured_data MAP<STRING,STRING>", NULL, "syslog.type");
    refused("message STRING", "Mars/Base", "option.invalid");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structured_data), cmocka_unit_test(test_broken_data), cmocka_unit_test(test_rfc5424_times), cmocka_unit_test(test_rfc5424_examples),
        cmocka_unit_test(test_rfc3164),         cmocka_unit_test(test_years),       cmocka_unit_test(test_never_rejects), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
