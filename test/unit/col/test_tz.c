/* Zones: offsets, gaps and overlaps against ZonedDateTime and GregorianCalendar. */
#include "col/vectors.h"
#include "col/tz.h"

static bool run(const char *op, char **a, char *out, size_t cap) {
    const tz_zone *z = tz_find(fz_sv_of(a[0])), *l = tz_find_lenient(fz_sv_of(a[0]));
    if (!strcmp(op, "ZID")) {
        char strict[16] = "NULL";
        if (z) snprintf(strict, sizeof strict, "%d", tz_offset_at(z, 1700000000));
        snprintf(out, cap, "%s %d", strict, tz_offset_at_legacy(l, 1700000000));
        return true;
    }
    long long t = strtoll(a[1], NULL, 10);
    if (!z) return false;
    if (!strcmp(op, "TZO")) snprintf(out, cap, "%d %d", tz_offset_at_legacy(l, t), tz_offset_at(z, t));
    else if (!strcmp(op, "TZL")) snprintf(out, cap, "%lld %lld", t - tz_offset_of_local(z, t), t - tz_offset_of_local_legacy(l, t));
    else return false;
    return true;
}

static void test_java_answers(void **state) {
    (void)state;
    vector_run("test/data/col/jdk17_zone.tsv", run, 100);
}

static void test_gap_and_overlap(void **state) {
    (void)state;
    const tz_zone *ny = tz_find(FZ_SV("America/New_York"));
    assert_non_null(ny);
    /* 2026-03-08 02:30 does not exist: 03:30 EDT. 2026-11-01 01:30 is twice: EDT first, EST for the legacy calendar. */
    assert_int_equal(tz_offset_of_local(ny, 1772937000), -5 * 3600);
    assert_int_equal(tz_offset_of_local(ny, 1793496600), -4 * 3600);
    assert_int_equal(tz_offset_of_local_legacy(ny, 1793496600), -5 * 3600);
    assert_true(tz_to_utc(ny, 1772937000500000) == 1772955000500000);
    assert_true(tz_to_local(ny, -1) == -5LL * 3600 * 1000000 - 1);
    char t[16];
    t[tz_abbreviation(ny, 1789562096, t)] = 0;
    assert_string_equal(t, "EDT");
    assert_int_equal(tz_offset_at(ny, 4102444800), -5 * 3600); /* by the rule at the end of the file */
    assert_int_equal(tz_offset_at(ny, 4118083200), -4 * 3600);
}

static void test_ids(void **state) {
    (void)state;
    assert_null(tz_find(FZ_SV("Nowhere/City")));
    assert_null(tz_find(FZ_SV("../../etc/passwd")));
    assert_null(tz_find(FZ_SV("Asia/../Asia/Tokyo")));
    assert_null(tz_find(FZ_SV("posix/Asia/Tokyo")));
    assert_null(tz_find(FZ_SV("EST")));
    assert_null(tz_find(FZ_SV("+9:00")));
    assert_null(tz_find(FZ_SV("Asia")));
    assert_ptr_equal(tz_find(FZ_SV("Asia/Tokyo")), tz_find(FZ_SV("Asia/Tokyo")));
    int32_t off;
    assert_true(tz_is_fixed(tz_find(FZ_SV("-09:30")), &off) && off == -34200);
    assert_true(tz_is_fixed(tz_find(FZ_SV("GMT+09:00")), &off) && off == 32400);
    assert_true(tz_is_fixed(tz_utc(), &off) && off == 0);
    assert_true(tz_is_fixed(tz_find_lenient(FZ_SV("bogus")), &off) && off == 0);
    assert_int_equal(tz_offset_at(tz_find_lenient(FZ_SV("JST")), 0), 32400);
    /* before 1900 java.time knows local mean time, the legacy calendar does not */
    const tz_zone *tokyo = tz_find(FZ_SV("Asia/Tokyo"));
    assert_int_equal(tz_offset_at(tokyo, -62135596800), 33539);
    assert_int_equal(tz_offset_at_legacy(tokyo, -62135596800), 32400);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_java_answers), cmocka_unit_test(test_gap_and_overlap), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
