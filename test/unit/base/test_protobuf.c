/* Protocol Buffers on the wire: every wire type, cut at every byte, hostile lengths and groups; what the writer makes is read back. */
#include "unit.h"
#include <stdlib.h>
#include "base/base.h"
#include "base/protobuf.h"

static pb_result first(const char *bytes, size_t n, pb_field *f, size_t *used) {
    uint8_t *copy = malloc(n + !n);
    if (n) memcpy(copy, bytes, n);
    const uint8_t *p = copy;
    pb_result r = pb_next(&p, copy + n, f);
    *used = (size_t)(p - copy);
    free(copy);
    return r;
}
#define FIRST(lit) first(lit, sizeof(lit) - 1, &f, &used)

static void test_fields(void **state) {
    (void)state;
    pb_field f;
    size_t used;
    assert_int_equal(FIRST(""), PB_END);
    assert_int_equal(FIRST("\x08\x96\x01"), PB_FIELD);
    assert_int_equal(f.number, 1);
    assert_int_equal(f.wire, PB_VARINT);
    assert_int_equal(f.v, 150);
    assert_int_equal(FIRST("\x09\x01\0\0\0\0\0\0\x80"), PB_FIELD);
    assert_true(f.v == 0x8000000000000001ull);
    assert_int_equal(FIRST("\x0d\xff\xff\xff\xff"), PB_FIELD);
    assert_int_equal(f.v, UINT32_MAX);
    assert_int_equal(FIRST("\x12\x02hi"), PB_FIELD);
    assert_int_equal(f.number, 2);
    assert_int_equal(f.n, 2);
    assert_int_equal(used, 4);
    assert_int_equal(FIRST("\x12\x82\x00hi"), PB_FIELD); /* a length in more bytes than it needs */
    assert_int_equal(f.n, 2);
    assert_int_equal(FIRST("\x82\x01\x00"), PB_FIELD);
    assert_int_equal(f.number, 16);
    assert_int_equal(FIRST("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), PB_FIELD);
    assert_true(f.v == UINT64_MAX);
}

static void test_broken(void **state) {
    (void)state;
    static const struct { const char *p; size_t n; } bad[] = {
#define B(lit) {lit, sizeof(lit) - 1}
        B("\x08"), B("\x08\x96"), B("\x09\x01\0\0\0\0\0\0"), B("\x0d\0\0\0"), B("\x12\x03hi"), B("\x12"), B("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* a length of 2^64 - 1 */
        B("\x00\x00"), B("\x02\x00"), B("\x07\x00"), B("\x0e\x00"), B("\x0f\x00"), /* field 0; wire types 6 and 7 */
        B("\x0c"), B("\x0b"), B("\x0b\x14"), B("\x0b\x08"), /* the end of a group alone; a group without its end; of another number; cut off */
        B("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* a varint of 11 bytes */
        B("\xff\xff\xff\xff\x7f\x00")}; /* a number above 2^29 */
    pb_field f;
    size_t used;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (first(bad[i].p, bad[i].n, &f, &used) != PB_BAD) fail_msg("%zu is taken", i);
}

static void test_groups(void **state) {
    (void)state;
    pb_field f;
    size_t used;
    assert_int_equal(FIRST("\x0b\x08\x01\x13\x12\x01x\x14\x0c\x18\x05"), PB_FIELD); /* 1 { 1: 1  2 { 2: "x" } }, then 3: 5 */
    assert_int_equal(f.wire, PB_GROUP);
    assert_int_equal(used, 9);
    char deep[2 * PB_MAX_GROUPS + 2];
    memset(deep, 0x0b, PB_MAX_GROUPS);
    memset(deep + PB_MAX_GROUPS, 0x0c, PB_MAX_GROUPS);
    assert_int_equal(first(deep, 2 * PB_MAX_GROUPS, &f, &used), PB_FIELD);
    memset(deep, 0x0b, PB_MAX_GROUPS + 1);
    memset(deep + PB_MAX_GROUPS + 1, 0x0c, PB_MAX_GROUPS + 1);
    assert_int_equal(first(deep, 2 * PB_MAX_GROUPS + 2, &f, &used), PB_BAD);
}

static void test_written(void **state) {
    (void)state;
    fz_buf b = {0};
    char big[20000];
    memset(big, 'x', sizeof big);
    pb_put_uint(&b, 1, UINT64_MAX);
    pb_put_fixed64(&b, 2, 0x0102030405060708ull);
    pb_put_fixed32(&b, 3, 7);
    size_t outer = pb_begin(&b, 4), inner = pb_begin(&b, 5);
    pb_put_bytes(&b, 100, big, sizeof big);
    pb_end(&b, inner);
    size_t empty = pb_begin(&b, 6);
    pb_end(&b, empty);
    pb_end(&b, outer);
    const uint8_t *p = b.data, *end = p + b.len;
    pb_field f;
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_true(f.v == UINT64_MAX);
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_true(f.v == 0x0102030405060708ull);
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_int_equal(f.v, 7);
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_int_equal(f.number, 4);
    assert_int_equal(pb_next(&p, end, &(pb_field){0}), PB_END);
    p = f.p;
    end = f.p + f.n;
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_int_equal(f.number, 5);
    const uint8_t *q = f.p, *q_end = f.p + f.n;
    pb_field x;
    assert_int_equal(pb_next(&q, q_end, &x), PB_FIELD);
    assert_int_equal(x.number, 100);
    assert_int_equal(x.n, sizeof big);
    assert_memory_equal(x.p, big, sizeof big);
    assert_ptr_equal(q, q_end);
    assert_int_equal(pb_next(&p, end, &f), PB_FIELD);
    assert_int_equal(f.number, 6);
    assert_int_equal(f.n, 0);
    assert_int_equal(pb_next(&p, end, &f), PB_END);
    fz_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_broken), cmocka_unit_test(test_groups), cmocka_unit_test(test_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
