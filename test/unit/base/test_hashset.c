/* The set of hashes: what was added is there, nothing else, over many growths; 0 is a hash like any other. */
#include "base/base.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_hashset(void **state) {
    (void)state;
    fz_hashset s = {0};
    assert_false(fz_hashset_has(&s, 0));
    assert_true(fz_hashset_add(&s, 0));
    assert_false(fz_hashset_add(&s, 0));
    for (uint64_t i = 0; i < 50000; i++) assert_true(fz_hashset_add(&s, (i + 2) << 40)); /* the low bits are all the same */
    for (uint64_t i = 0; i < 50000; i++) {
        assert_false(fz_hashset_add(&s, (i + 2) << 40));
        assert_true(fz_hashset_has(&s, (i + 2) << 40));
        assert_false(fz_hashset_has(&s, ((i + 2) << 40) + 3));
    }
    fz_hashset_free(&s);
    assert_false(fz_hashset_has(&s, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hashset)};
    return cmocka_run_group_tests_name("hashset", tests, NULL, NULL);
}
