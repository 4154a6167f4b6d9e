/* Dates and times against java.time, SimpleDateFormat and Flink's DateTimeUtils; patterns. */
#include "col/vectors.h"
#include "col/datetime.h"
#include "col/dtpattern.h"
#include "col/sdpattern.h"

static long long num(const char *s) { return strtoll(s, NULL, 10); }

static void show(char *out, size_t cap, bool ok, long long v) {
    if (ok) snprintf(out, cap, "%lld", v);
    else snprintf(out, cap, "NULL");
}

static void take(char *out, size_t cap, bool ok, fz_buf *b) {
    snprintf(out, cap, "%s", ok ? fz_buf_cstr(b) : "NULL");
    fz_buf_free(b);
}

/* Operations with a pattern; false: not one of them. */
static bool run_pattern(const char *op, char **a, char *out, size_t cap) {
    fz_sv s = fz_sv_of(a[0]);
    int64_t v = 0;
    fz_error e;
    dt_pattern *d = NULL;
    sd_pattern *p = NULL;
    bool is_dt = !strcmp(op, "TS2") || !strcmp(op, "FMT"), is_sd = !strcmp(op, "SDP") || !strcmp(op, "SDF") || !strcmp(op, "DATEF");
    if (!is_dt && !is_sd) return false;
    if ((is_dt ? dt_pattern_new(fz_sv_of(a[1]), &d, &e) : sd_pattern_new(fz_sv_of(a[1]), &p, &e)) != FZ_OK) {
        assert_string_equal(e.code, "datetime.pattern");
        show(out, cap, false, 0);
        return true;
    }
    fz_buf b = {0};
    if (!strcmp(op, "TS2")) {
        bool ok = dt_to_timestamp(d, s, &v);
        show(out, cap, ok, v);
    } else if (!strcmp(op, "FMT")) {
        take(out, cap, dt_pattern_format(d, num(a[0]), &b, &e) == FZ_OK, &b);
    } else if (!strcmp(op, "SDP")) {
        bool ok = sd_pattern_parse(p, s, tz_find_lenient(fz_sv_of(a[2])), &v);
        show(out, cap, ok, v);
    } else if (!strcmp(op, "SDF")) {
        sd_pattern_format(p, num(a[0]), tz_find_lenient(fz_sv_of(a[2])), &b);
        take(out, cap, true, &b);
    } else {
        show(out, cap, true, sd_to_date(p, s));
    }
    dt_pattern_free(d);
    sd_pattern_free(p);
    return true;
}

static bool run_parse(const char *op, char **a, char *out, size_t cap) {
    fz_sv s = fz_sv_of(a[0]);
    int64_t v = 0;
    int32_t w = 0;
    bool ok = false, wide = true;
    if (!strcmp(op, "TS1")) ok = dt_parse_timestamp(s, (int)num(a[1]), &v);
    else if (!strcmp(op, "JTS")) ok = dt_parse_json_timestamp(s, a[1][0] == '1', &v);
    else if (!strcmp(op, "JLTZ")) ok = dt_parse_json_timestamp_ltz(s, a[1][0] == '1', &v);
    else if (!strcmp(op, "DATE")) ok = dt_parse_date(s, &w) == DT_OK, wide = false;
    else if (!strcmp(op, "TIME")) ok = dt_parse_time(s, &w) == DT_OK, wide = false;
    else if (!strcmp(op, "JDATE")) ok = dt_parse_json_date(s, &w), wide = false;
    else if (!strcmp(op, "JTIME")) ok = dt_parse_json_time(s, &w), wide = false;
    else return false;
    show(out, cap, ok, wide ? v : w);
    return true;
}

static bool run(const char *op, char **a, char *out, size_t cap) {
    int64_t v = 0;
    if (run_pattern(op, a, out, cap) || run_parse(op, a, out, cap)) return true;
    if (!strcmp(op, "EXT")) {
        bool ok = dt_extract_timestamp(dt_unit_of(fz_sv_of(a[0])), num(a[1]), &v);
        show(out, cap, ok, v);
    } else if (!strcmp(op, "FLR") || !strcmp(op, "CEL")) {
        bool ok = dt_round_timestamp(dt_unit_of(fz_sv_of(a[0])), op[0] == 'C', num(a[1]), &v);
        show(out, cap, ok, v);
    } else if (!strcmp(op, "ADDM")) {
        show(out, cap, true, dt_add_months(num(a[0]), (int32_t)num(a[1])));
    } else if (!strcmp(op, "SUBM")) {
        show(out, cap, true, dt_months_between(num(a[0]), num(a[1])));
    } else if (!strcmp(op, "DTXT")) {
        out[dt_date_text((int32_t)num(a[0]), out)] = 0;
    } else if (!strcmp(op, "TTXT")) {
        out[dt_time_text((int32_t)num(a[0]), (int)num(a[1]), out)] = 0;
    } else if (!strcmp(op, "TSTXT")) {
        out[dt_timestamp_text(num(a[0]), (int)num(a[1]), out)] = 0;
    } else if (!strcmp(op, "IMTXT")) {
        out[dt_interval_month_text((int32_t)num(a[0]), out)] = 0;
    } else if (!strcmp(op, "IDTXT")) {
        out[dt_interval_day_text(num(a[0]), out)] = 0;
    } else {
        return false;
    }
    return true;
}

static void test_java_answers(void **state) {
    (void)state;
    vector_run("test/data/col/jdk17_datetime.tsv", run, 1400);
}

static void ts_is(const char *s, const char *want) {
    int64_t us;
    char t[DT_TEXT_MAX + 1];
    bool ok = dt_parse_timestamp(fz_sv_of(s), 3, &us);
    if (ok != (want != NULL)) fail_msg("'%s'", s);
    if (!ok) return;
    t[dt_timestamp_text(us, 3, t)] = 0;
    assert_string_equal(t, want);
}

static void test_default_form(void **state) {
    (void)state;
    ts_is("2025-1-2 3:4:5", "2025-01-02 03:04:05.000");
    ts_is("2025-01-02", "2025-01-02 00:00:00.000");
    ts_is("2025-02-30 10:00:00", "2025-02-28 10:00:00.000");
    ts_is("2025-04-31 10:00:00", "2025-04-30 10:00:00.000");
    ts_is("2025-01-01 24:00:00", "2025-01-02 00:00:00.000");
    ts_is("2025-01-02 03:04:05.", "2025-01-02 03:04:05.000");
    ts_is("2025-01-02 03:04:05.123999999", "2025-01-02 03:04:05.123");
    static const char *const none[] = {"2025-01-02 03:04:05.1234567890", "2025-01-02 03:04:60", "2025-01-02T03:04:05", "2025-01-02 03:04:05Z", " 2025-01-02",
                                       "2025-01-02 ", "", "0000-01-01", "10000-01-01", "2025-00-01", "2025-13-01", "2025-01-02 24:00:01", "2025-01-02 03:04"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) ts_is(none[i], NULL);
    ts_is("2025-011-02", "2025-01-02 00:00:00.000"); /* [MM][M]: the same month twice */
}

static void to_ts_is(const char *pattern, const char *s, const char *want) {
    dt_pattern *p;
    fz_error e;
    int64_t us;
    char t[DT_TEXT_MAX + 1];
    assert_int_equal(dt_pattern_new(fz_sv_of(pattern), &p, &e), FZ_OK);
    bool ok = dt_to_timestamp(p, fz_sv_of(s), &us);
    dt_pattern_free(p);
    if (ok != (want != NULL)) fail_msg("'%s' by '%s'", s, pattern);
    if (!ok) return;
    t[dt_timestamp_text(us, 6, t)] = 0;
    assert_string_equal(t, want);
}

static void test_patterns(void **state) {
    (void)state;
    const char *plain = "yyyy-MM-dd HH:mm:ss";
    to_ts_is(plain, "2025-02-30 10:00:00", "2025-02-28 10:00:00.000000");
    to_ts_is(plain, "2025-1-2 3:4:5", "2025-01-02 03:04:05.000000"); /* the JDBC form */
    to_ts_is(plain, "2025-01-02 03:04:05.123456789", "2025-01-02 03:04:05.123456");
    to_ts_is(plain, "2025-01-02", "2025-01-02 00:00:00.000000");
    to_ts_is(plain, "2025-02-29", "2025-03-01 00:00:00.000000");
    to_ts_is(plain, "2025-01-02T03:04:05Z", NULL);
    to_ts_is("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-02-30T12:34:56+09:00", "2026-02-28 12:34:56.000000");
    to_ts_is("yyyyMMddHHmmssSSS", "20260916123456789", "2026-09-16 12:34:56.789000");
    to_ts_is("yyyy-MM-dd[ HH:mm]", "2026-09-16", "2026-09-16 00:00:00.000000");
    to_ts_is("EEE, d MMM yyyy", "Wed, 16 Sep 2026", "2026-09-16 00:00:00.000000");
    to_ts_is("EEE, d MMM yyyy", "Thu, 16 Sep 2026", NULL);
    to_ts_is("h:mm a", "12:04 AM", "1970-01-01 00:04:00.000000");
    to_ts_is("yyyy-DDD", "2026-366", NULL);
    to_ts_is("YYYY-'W'ww-e", "2026-W38-4", "2026-09-16 00:00:00.000000");
    static const char *const bad[] = {"yyyy-MM-dd'", "I", "ddd", "]", "{", "MMMMMM", "cc", "p"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dt_pattern *p;
        fz_error e;
        assert_int_equal(dt_pattern_new(fz_sv_of(bad[i]), &p, &e), FZ_USER);
        assert_string_equal(e.code, "datetime.pattern");
    }
}

static void test_copies(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    dt_pattern *d;
    sd_pattern *s;
    fz_buf b = {0};
    assert_int_equal(dt_pattern_new(FZ_SV("yyyy-'W'ww"), &d, NULL), FZ_OK);
    assert_int_equal(sd_pattern_new(FZ_SV("d/M/yyyy"), &s, NULL), FZ_OK);
    const dt_pattern *dc = dt_pattern_copy(a, d);
    const sd_pattern *sc = sd_pattern_copy(a, s);
    dt_pattern_free(d);
    sd_pattern_free(s);
    assert_int_equal(dt_pattern_format(dc, 1789562096000000, &b, NULL), FZ_OK);
    fz_buf_putc(&b, ' ');
    sd_pattern_format(sc, 1789562096000, tz_utc(), &b);
    assert_string_equal(fz_buf_cstr(&b), "2026-W38 16/9/2026");
    fz_buf_free(&b);
    fz_arena_free(a);
}

static void test_calendar(void **state) {
    (void)state;
    for (int64_t days = -800000; days < 3000000; days += 97) {
        int32_t y, m, d;
        dt_date_of(days, &y, &m, &d);
        assert_true(dt_days_of(y, m, d) == days);
        int64_t sy;
        sd_date_of(days, &sy, &m, &d);
        assert_true(sd_days_of(sy, m, d) == days);
    }
    assert_true(dt_days_of(1, 1, 1) == -719162);
    assert_true(sd_days_of(1, 1, 1) == -719164); /* Julian */
    assert_true(sd_days_of(1582, 10, 15) == -141427 && sd_days_of(1582, 10, 4) == -141428);
    assert_int_equal(dt_timestamp_to_date(-1), 0); /* Flink's division */
    assert_int_equal(dt_timestamp_to_time(-1), 0);
    assert_int_equal(dt_timestamp_to_time(-3661000000), 86400000 - 3661000);
    assert_true(dt_cut(-1, 3) == -1000 && dt_cut(1999, 3) == 1000);
    int64_t v;
    assert_false(dt_extract_time(DT_U_YEAR, 0, &v));
    assert_true(dt_extract_interval_month(DT_U_MONTH, 14, &v) && v == 2);
    assert_true(dt_extract_interval_day(DT_U_HOUR, 90000000, &v) && v == 1);
    assert_int_equal(dt_unit_of(FZ_SV("SQL_TSI_day")), DT_U_DAY);
    assert_int_equal(dt_unit_of(FZ_SV("FORTNIGHT")), DT_U_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_java_answers), cmocka_unit_test(test_default_form), cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_copies), cmocka_unit_test(test_calendar)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
