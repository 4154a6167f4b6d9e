/* MessagePack records: what each value becomes in each type of column, texts of whole records, documents in a field, and broken records cut at every byte. */
#include "test_decode.h"
#include "base/mp.h"
#include "decode/decode_int.h"

typedef struct fixture { fz_arena *a; } fixture;
static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = fz_arena_new();
    *state = f;
    return 0;
}
static int tear_down(void **state) {
    fixture *f = *state;
    fz_arena_free(f->a);
    free(f);
    return 0;
}

/* "81 a1 61 01" -> bytes. */
static uint32_t hex(const char *s, uint8_t *out) {
    uint32_t n = 0;
    for (; *s; s++) {
        if (*s == ' ') continue;
        unsigned v;
        assert_int_equal(sscanf(s, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        s++;
    }
    return n;
}

static decoded decode_hex(fixture *f, const char *schema, const fz_pair *opts, size_t n_opts, const char *bytes) {
    uint8_t b[4096];
    uint32_t n = hex(bytes, b);
    return decode_one("msgpack", opts, n_opts, parse_schema(f->a, schema), b, (int32_t)n);
}

/* The only row's columns, one after the other, divided by '|'. */
static const char *row_text(fixture *f, decoded *d) {
    fz_buf b = {0};
    for (uint32_t k = 0; k < d->dec->schema->n; k++) {
        if (k) fz_buf_putc(&b, '|');
        cast_text(&b, d->out.cols[k], 0);
    }
    const char *s = fz_arena_strdup(f->a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return s;
}

static void expect(fixture *f, const char *schema, const char *bytes, const char *want) {
    decoded d = decode_hex(f, schema, NULL, 0, bytes);
    if (d.rejects.n) fail_msg("%s: %s", bytes, d.rejects.v[0].message);
    assert_int_equal(d.out.n_rows, 1);
    assert_string_equal(row_text(f, &d), want);
    decoded_free(&d);
}

static void expect_reject(fixture *f, const char *schema, const char *bytes, const char *part) {
    decoded d = decode_hex(f, schema, NULL, 0, bytes);
    assert_int_equal(d.rejects.n, 1);
    assert_string_equal(d.rejects.v[0].code, "msgpack.parse");
    if (!strstr(d.rejects.v[0].message, part)) fail_msg("%s: '%s' lacks '%s'", bytes, d.rejects.v[0].message, part);
    decoded_free(&d);
}

static void integers(void **state) {
    fixture *f = *state;
    expect(f, "a BIGINT", "81 a1 61 07", "7");
    expect(f, "a BIGINT", "81 a1 61 ff", "-1");
    expect(f, "a BIGINT", "81 a1 61 e0", "-32");
    expect(f, "a BIGINT", "81 a1 61 cc ff", "255");
    expect(f, "a BIGINT", "81 a1 61 cd ff ff", "65535");
    expect(f, "a BIGINT", "81 a1 61 ce ff ff ff ff", "4294967295");
    expect(f, "a BIGINT", "81 a1 61 cf 7f ff ff ff ff ff ff ff", "9223372036854775807");
    expect(f, "a BIGINT", "81 a1 61 d0 80", "-128");
    expect(f, "a BIGINT", "81 a1 61 d1 80 00", "-32768");
    expect(f, "a BIGINT", "81 a1 61 d2 80 00 00 00", "-2147483648");
    expect(f, "a BIGINT", "81 a1 61 d3 80 00 00 00 00 00 00 00", "-9223372036854775808");
    expect_reject(f, "a BIGINT", "81 a1 61 cf 80 00 00 00 00 00 00 00", "9223372036854775808");
    expect(f, "a DECIMAL(20,0)", "81 a1 61 cf 80 00 00 00 00 00 00 00", "9223372036854775808");
    expect(f, "a STRING", "81 a1 61 cf ff ff ff ff ff ff ff ff", "18446744073709551615");
    expect(f, "a INT", "81 a1 61 ce 7f ff ff ff", "2147483647");
    expect_reject(f, "a INT", "81 a1 61 ce 80 00 00 00", "out of range");
    expect(f, "a TINYINT", "81 a1 61 d0 80", "-128");
    expect_reject(f, "a TINYINT", "81 a1 61 cc 80", "out of range");
    expect(f, "a SMALLINT", "81 a1 61 cd 7f ff", "32767");
    expect(f, "a DOUBLE", "81 a1 61 07", "7.0");
    expect(f, "a FLOAT", "81 a1 61 07", "7.0");
    expect(f, "a DECIMAL(10,2)", "81 a1 61 07", "7.00");
    expect(f, "a STRING", "81 a1 61 d3 80 00 00 00 00 00 00 00", "-9223372036854775808");
    expect(f, "a BOOLEAN", "81 a1 61 01", "FALSE");
    expect_reject(f, "a TIMESTAMP", "81 a1 61 01", "a");
    expect_reject(f, "a BYTES", "81 a1 61 01", "number");
}

static void floats_and_bools(void **state) {
    fixture *f = *state;
    expect(f, "a DOUBLE", "81 a1 61 cb 3f f8 00 00 00 00 00 00", "1.5");
    expect(f, "a DOUBLE", "81 a1 61 ca 3f c0 00 00", "1.5");
    expect(f, "a FLOAT", "81 a1 61 cb 3f f8 00 00 00 00 00 00", "1.5");
    expect(f, "a STRING", "81 a1 61 cb 3f f8 00 00 00 00 00 00", "1.5");
    expect(f, "a STRING", "81 a1 61 ca 3d cc cc cd", "0.1");
    expect(f, "a BIGINT", "81 a1 61 cb 3f f8 00 00 00 00 00 00", "1");
    expect_reject(f, "a BIGINT", "81 a1 61 cb 7f f8 00 00 00 00 00 00", "out of range");
    expect(f, "a DECIMAL(10,2)", "81 a1 61 cb 3f f8 00 00 00 00 00 00", "1.50");
    expect(f, "a BOOLEAN", "81 a1 61 c3", "TRUE");
    expect(f, "a BOOLEAN", "81 a1 61 c2", "FALSE");
    expect(f, "a STRING", "81 a1 61 c3", "true");
    expect_reject(f, "a INT", "81 a1 61 c3", "true");
    expect(f, "a INT, b STRING", "81 a1 61 c0", "NULL|NULL");
}

static void texts(void **state) {
    fixture *f = *state;
    expect(f, "a STRING", "81 a1 61 a3 66 6f 6f", "foo");
    expect(f, "a STRING", "81 a1 61 d9 03 66 6f 6f", "foo");
    expect(f, "a STRING", "81 a1 61 da 00 03 66 6f 6f", "foo");
    expect(f, "a STRING", "81 a1 61 db 00 00 00 03 66 6f 6f", "foo");
    expect(f, "a STRING", "81 a1 61 c4 03 66 6f 6f", "foo");
    expect(f, "a STRING", "81 c4 01 61 c5 00 03 66 6f 6f", "foo");
    expect(f, "a STRING", "81 a1 61 a3 66 ff 6f", "f\xef\xbf\xbdo");
    expect(f, "a STRING", "81 a1 61 a0", "");
    expect(f, "a INT", "81 a1 61 a2 31 32", "12");
    expect_reject(f, "a INT", "81 a1 61 a2 31 78", "Fail to deserialize at field: a.");
    expect(f, "a TIMESTAMP", "81 a1 61 b3 32 30 32 35 2d 30 31 2d 30 32 20 30 33 3a 30 34 3a 30 35", "2025-01-02 03:04:05.000000");
    expect(f, "a BOOLEAN", "81 a1 61 a4 54 72 75 65", "TRUE");
}

static void bytes_as_they_are(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        decoded d = decode_hex(f, "a BYTES", NULL, 0, i ? "81 a1 61 c4 03 66 ff 00" : "81 a1 61 a3 66 ff 00");
        assert_int_equal(d.out.n_rows, 1);
        fz_sv v = col_sv(d.out.cols[0], 0);
        assert_int_equal(v.n, 3);
        assert_memory_equal(v.p, "f\xff\0", 3);
        decoded_free(&d);
    }
}

static void times(void **state) {
    fixture *f = *state;
    expect(f, "a TIMESTAMP", "81 a1 61 d7 00 67 76 02 25 07 5b cd 15", "2025-01-02 03:04:05.123456");
    expect(f, "a TIMESTAMP", "81 a1 61 c7 08 00 67 76 02 25 07 5b cd 15", "2025-01-02 03:04:05.123456");
    expect(f, "a TIMESTAMP_LTZ(3)", "81 a1 61 d7 00 67 76 02 25 07 5b cd 15", "2025-01-02 03:04:05.123");
    expect(f, "a STRING", "81 a1 61 d7 00 67 76 02 25 07 5b cd 15", "2025-01-02T03:04:05.123456789Z");
    expect(f, "a TIMESTAMP", "81 a1 61 d6 ff 67 76 02 25", "2025-01-02 03:04:05.000000");
    expect(f, "a TIMESTAMP", "81 a1 61 d7 ff 1d 6f 34 54 67 76 02 25", "2025-01-02 03:04:05.123456");
    expect(f, "a TIMESTAMP", "81 a1 61 c7 0c ff 07 5b cd 15 00 00 00 00 67 76 02 25", "2025-01-02 03:04:05.123456");
    expect(f, "a DATE", "81 a1 61 d6 ff 67 76 02 25", "2025-01-02");
    expect_reject(f, "a TIMESTAMP", "81 a1 61 d4 05 aa", "extension");
    expect(f, "a STRING", "81 a1 61 d4 05 aa", "qg==");
}

static void nested(void **state) {
    fixture *f = *state;
    expect(f, "a ARRAY<INT>", "81 a1 61 93 01 c0 a1 33", "[1, NULL, 3]");
    expect(f, "m MAP<STRING,STRING>", "81 a1 6d 81 c4 01 6b a1 76", "{k=v}");
    expect(f, "m MAP<STRING,INT>", "81 a1 6d 82 01 02 c0 03", "{NULL=3, 1=2}");
    expect(f, "r ROW<a STRING, b INT>", "81 a1 72 82 a1 62 05 a1 78 91 c0", "(NULL, 5)");
    expect(f, "r ROW<a STRING, b INT>", "81 a1 72 82 a1 62 05 a1 62 06", "(NULL, 6)");
    expect_reject(f, "r ROW<a STRING>", "81 a1 72 01", "no map");
    expect_reject(f, "a ARRAY<INT>", "81 a1 61 80", "no array");
    expect_reject(f, "a INT", "81 a1 61 80", "a map");
    expect(f, "s STRING", "81 a1 73 82 a1 61 93 01 c0 c3 a1 62 a1 22", "{\"a\":[1,null,true],\"b\":\"\\\"\"}");
    expect(f, "s STRING", "81 a1 73 83 a1 61 01 a1 62 02 a1 61 03", "{\"a\":3,\"b\":2}");
    expect(f, "s STRING", "81 a1 73 81 c3 81 02 cb 7f f8 00 00 00 00 00 00", "{\"true\":{\"2\":\"NaN\"}}");
    expect_reject(f, "s STRING", "81 a1 73 81 91 01 02", "a key is an array or a map");
    expect(f, "s STRING", "81 a1 73 91 a2 c3 28", "[\"\xef\xbf\xbd(\"]");
}

static void keys(void **state) {
    fixture *f = *state;
    expect(f, "a INT, b INT", "83 a1 61 01 a1 62 02 a1 61 03", "3|2");
    expect(f, "a INT, b INT", "82 a1 78 de 00 01 01 02 a1 62 02", "NULL|2");
    expect(f, "a INT", "82 91 01 05 a1 61 02", "2");
    expect(f, "a INT", "de 00 01 a1 61 02", "2");
    expect(f, "a INT", "df 00 00 00 01 a1 61 02", "2");
}

/* Keys are expected where they stood before: other ones there, longer ones, and the same name with another header must be seen. */
static void hints(void **state) {
    fixture *f = *state;
    static const char *const docs[] = {
        "82 a1 61 01 a1 62 da 00 20 4141414141414141414141414141414141414141414141414141414141414141",
        "82 a1 62 a1 32 a1 61 03 ", "82 a1 61 01 a1 62 da 00 20 4242414141414141414141414141414141414141414141414141414141414141",
        "82 d9 01 61 04 c4 01 62 da 00 20 4343434141414141414141414141414141414141414141414141414141414141", "81 a2 61 61 01"};
    static const char *const want[] = {"1", "3", "1", "4", "NULL"};
    uint8_t b[5][128];
    fz_record rec[5] = {0};
    for (int i = 0; i < 5; i++) rec[i] = (fz_record){.value = b[i], .value_len = (int32_t)hex(docs[i], b[i]), .key_len = -1};
    decoded d = {0};
    fz_error err;
    assert_int_equal(dec_new("msgpack", NULL, 0, parse_schema(f->a, "a INT, b STRING"), NULL, false, &d.dec, &err), FZ_OK);
    decode_into(&d, rec, 5);
    assert_int_equal(d.out.n_rows, 5);
    for (uint32_t i = 0; i < 5; i++) {
        fz_buf t = {0};
        cast_text(&t, d.out.cols[0], i);
        assert_string_equal(fz_buf_cstr(&t), want[i]);
        fz_buf_free(&t);
    }
    assert_int_equal(col_sv(d.out.cols[1], 0).n, 32);
    assert_memory_equal(col_sv(d.out.cols[1], 2).p, "BBA", 3);
    assert_memory_equal(col_sv(d.out.cols[1], 1).p, "2", 1);
    decoded_free(&d);
}

/* Texts of every length, with a byte that is not ASCII or none, at the end of a record and before more of it, over and over and all different: columns have what came. */
static void lengths_of_texts(void **state) {
    fixture *f = *state;
    enum { N = 1400 };
    static fz_buf b[N];
    static fz_record rec[N];
    static char want[N][2][200];
    for (uint32_t i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++) {
            uint32_t n = k ? i / 2 % 9 + 1 : i % 140;
            memset(want[i][k], 'a' + (int)(i % 7), n);
            if (k == 0 && n > 1 && i % 3 == 0) memcpy(want[i][k] + i % (n - 1), "\xc3\xa4", 2);
            if (k == 0 && n > 3) want[i][k][n - 1] = (char)('0' + i / 140);
            if (k == 0 && n > 3 && i / 140 == 9) want[i][k][n - 1] = (char)0xff; /* ill-formed: replaced */
        }
        const char *long_text = want[i][0], *short_text = want[i][1];
        bool first = i % 2;
        bool ill = strlen(long_text) > 3 && i / 140 == 9;
        if (!ill && !fz_utf8_valid(long_text, strlen(long_text))) want[i][0][0] = 0; /* the digit has cut a letter */
        if (ill && i % 3 == 0) memset(want[i][0], 'b', strlen(want[i][0]) - 1);
        b[i].len = 0;
        mp_put_map(&b[i], 2);
        for (int k = 0; k < 2; k++) {
            const char *v = (k == 0) == first ? long_text : short_text;
            mp_put_str(&b[i], (k == 0) == first ? "l" : "s", 1);
            mp_put_str(&b[i], v, strlen(v));
        }
        uint8_t *exact = malloc(b[i].len);
        memcpy(exact, b[i].data, b[i].len);
        rec[i] = (fz_record){.value = exact, .value_len = (int32_t)b[i].len, .key_len = -1};
        fz_buf_free(&b[i]);
        if (ill) memcpy(want[i][0] + strlen(want[i][0]) - 1, "\xef\xbf\xbd", 4);
    }
    decoded d = {0};
    fz_error err;
    assert_int_equal(dec_new("msgpack", NULL, 0, parse_schema(f->a, "l STRING, s STRING"), NULL, false, &d.dec, &err), FZ_OK);
    decode_into(&d, rec, N);
    assert_int_equal(d.out.n_rows, N);
    assert_null(d.out.cols[0]->idx);
    assert_non_null(d.out.cols[1]->idx);
    for (uint32_t i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) assert_true(fz_sv_eq(col_sv(d.out.cols[k], i), fz_sv_of(want[i][k])));
    decoded_free(&d);
    for (uint32_t i = 0; i < N; i++) free((void *)(uintptr_t)rec[i].value);
}

static void every_cut_is_a_reject(void **state) {
    fixture *f = *state;
    uint8_t b[256];
    uint32_t n = hex("86 a1 61 93 01 c0 a1 33 a1 73 81 a1 78 91 cb 3f f8 00 00 00 00 00 00 a1 72 81 a1 62 d9 01 35 a1 6d 81 c4 01 6b a1 76 a1 75 d7 00 67 76 02 25 07 5b cd 15 a1 7a c4 02 00 01", b);
    const char *schema = "a ARRAY<INT>, s STRING, r ROW<a STRING, b INT>, m MAP<STRING,STRING>";
    for (uint32_t k = 1; k <= n; k++)
        for (int ignore = 0; ignore < 2; ignore++) {
            fz_pair o = {.key = "msgpack.ignore-parse-errors", .value = "true"};
            decoded d = decode_one("msgpack", &o, (size_t)ignore, parse_schema(f->a, schema), b, (int32_t)k);
            assert_int_equal(d.out.n_rows, k == n);
            assert_int_equal(d.rejects.n, k < n && !ignore);
            decoded_free(&d);
        }
    b[n] = 0xc0;
    decoded d = decode_one("msgpack", NULL, 0, parse_schema(f->a, schema), b, (int32_t)n + 1);
    assert_int_equal(d.rejects.n, 1);
    assert_non_null(strstr(d.rejects.v[0].message, "1 bytes follow"));
    decoded_free(&d);
    expect_reject(f, "a INT", "93 01 02 03", "not a map");
    expect_reject(f, "a INT", "81 a1 61 c1", "middle");
    expect_reject(f, "a STRING", "df ff ff ff ff", "middle");
    expect_reject(f, "a STRING", "81 a1 61 dd ff ff ff ff", "middle");
    expect_reject(f, "a STRING", "81 a1 61 db ff ff ff ff", "middle");
}

static void deep_nesting(void **state) {
    fixture *f = *state;
    for (int wanted = 0; wanted < 2; wanted++) {
        size_t n = 200000;
        uint8_t *b = fz_malloc(n + 4);
        memcpy(b, wanted ? "\x81\xa1s" : "\x81\xa1x", 3);
        memset(b + 3, 0x91, n);
        b[n + 3] = 0xc0;
        decoded d = decode_one("msgpack", NULL, 0, parse_schema(f->a, "s STRING"), b, (int32_t)n + 4);
        assert_int_equal(d.rejects.n, wanted);
        if (wanted) assert_non_null(strstr(d.rejects.v[0].message, "deeper"));
        decoded_free(&d);
        fz_free(b);
    }
}

static void errors_ignored_become_null(void **state) {
    fixture *f = *state;
    fz_pair o = {.key = "msgpack.ignore-parse-errors", .value = "true"};
    decoded d = decode_hex(f, "a INT, b ARRAY<INT>, c STRING", &o, 1, "83 a1 61 81 a1 78 01 a1 62 93 01 a1 78 03 a1 63 a1 7a");
    assert_int_equal(d.out.n_rows, 1);
    assert_string_equal(row_text(f, &d), "NULL|[1, NULL, 3]|z");
    decoded_free(&d);
}

/* Values that differ in every way from the one before, and are cut off anywhere: whatever was expected, the end is where it is. */
static void ends_of_values_that_are_alike(void **state) {
    (void)state;
    uint32_t seed = 7;
    mp_shape shape = {0};
    for (int round = 0; round < 4000; round++) {
        fz_buf b = {0};
        char text[300];
        memset(text, 'x', sizeof text);
        uint32_t r = seed = seed * 1664525u + 1013904223u, n = r >> 28 & 3;
        mp_put_map(&b, n + 20); /* more items than a shape remembers */
        for (uint32_t k = 0; k < n + 20; k++) {
            seed = seed * 1664525u + 1013904223u;
            mp_put_str(&b, text, round % 50 < 40 ? k : seed >> 24);
            if (seed >> 16 & 1) mp_put_int(&b, (int32_t)seed >> (seed & 31));
            else if (seed >> 17 & 1) mp_put_str(&b, text, seed >> 22 & 255);
            else if (seed >> 18 & 1) mp_put_array(&b, 0);
            else mp_put_bool(&b, seed & 1);
        }
        size_t cut = round % 3 == 0 ? seed % (b.len + 1) : b.len;
        uint8_t *exact = malloc(cut + !cut);
        memcpy(exact, b.data, cut);
        const uint8_t *x = exact, *y = exact;
        assert_int_equal(mp_skip_like(&y, exact + cut, &shape), mp_skip(&x, exact + cut));
        assert_ptr_equal(x, y);
        free(exact);
        fz_buf_free(&b);
    }
}

/* ---- maps in dictionary form ---- */

/* Of `distinct` maps; some rows have none, nil, a key twice, or one that does not fit after entries that do. */
static void put_map_record(fz_buf *b, uint32_t i, uint32_t distinct) {
    char key[16];
    if (i % 13 == 3) {
        mp_put_map(b, 0);
        return;
    }
    mp_put_map(b, 1);
    mp_put_str(b, "m", 1);
    if (i % 11 == 2) {
        mp_put_nil(b);
        return;
    }
    uint32_t x = (i + 1) * 7919 % distinct, n = x % 4;
    bool bad = i % 17 == 5;
    mp_put_map(b, n + bad);
    for (uint32_t k = 0; k < n + bad; k++) {
        mp_put_str(b, key, (size_t)snprintf(key, sizeof key, "k%u", x % 8 == 7 ? 0 : (x + k * 5) % 9));
        if (bad && k == n) mp_put_str(b, "no number", 9);
        else mp_put_int(b, x);
    }
}

/* Whether a batch has few values or so many that the dictionary is given up in its middle: each row is what its record gives alone. */
static void maps_in_a_batch(void **state) {
    fixture *f = *state;
    enum { N = 3000 };
    static const uint32_t distinct[] = {1, 90, 300, 2500};
    const col_schema *schema = parse_schema(f->a, "m MAP<STRING,INT>");
    for (uint32_t round = 0; round < 8; round++) { /* two batches a decoder */
        static decoded d;
        static fz_buf b[N];
        static fz_record rec[N];
        fz_error err;
        if (round % 2 == 0) assert_int_equal(dec_new("msgpack", NULL, 0, schema, NULL, false, &d.dec, &err), FZ_OK);
        for (uint32_t i = 0; i < N; i++) {
            b[i].len = 0;
            put_map_record(&b[i], i, distinct[round / 2]);
            rec[i] = (fz_record){.value = b[i].data, .value_len = (int32_t)b[i].len, .key_len = -1};
        }
        decode_into(&d, rec, N);
        assert_int_equal(d.out.cols[0]->idx != NULL, distinct[round / 2] < 100); /* a quarter of the first rows would be too many */
        if (d.out.cols[0]->idx) assert_true(d.out.cols[0]->dict->len <= distinct[round / 2]);
        const col_vec *v = d.out.cols[0];
        for (uint32_t i = 0; i < v->len; i++)
            if (!v->idx && col_is_null(v, i)) assert_int_equal(v->off[i], v->off[i + 1]);
        for (uint32_t i = 0, row = 0, rej = 0; i < N; i++) {
            decoded one = decode_one("msgpack", NULL, 0, schema, b[i].data, (int32_t)b[i].len);
            bool in_batch = row < d.out.n_rows && d.out.row_rec[row] == i;
            assert_int_equal(in_batch, one.out.n_rows);
            if (in_batch) {
                fz_buf x = {0}, y = {0};
                cast_text(&x, d.out.cols[0], row++);
                cast_text(&y, one.out.cols[0], 0);
                assert_string_equal(fz_buf_cstr(&x), fz_buf_cstr(&y));
                fz_buf_free(&x);
                fz_buf_free(&y);
            } else assert_int_equal(d.rejects.v[rej++].rec, i);
            decoded_free(&one);
        }
        fz_arena_free(d.a);
        fz_free(d.rejects.v);
        d.rejects = (fz_rejects){0};
        if (round % 2 == 0) continue;
        dec_free(d.dec);
        for (uint32_t i = 0; round == 7 && i < N; i++) fz_buf_free(&b[i]);
    }
}

/* ---- documents in a field ---- */
static const fz_pair json_field = {.key = "msgpack.json-field", .value = "log"};

static void put_pair(fz_buf *b, const char *k, const char *v) {
    mp_put_str(b, k, strlen(k));
    mp_put_str(b, v, strlen(v));
}

static const char *with_log(fixture *f, const char *schema, const char *log, const char *level, const fz_pair *opts, size_t n, bool *rejected) {
    fz_buf b = {0};
    mp_put_map(&b, level ? 3 : 2);
    put_pair(&b, "log", log);
    put_pair(&b, "container_name", "c1");
    if (level) put_pair(&b, "level", level);
    decoded d = decode_one("msgpack", opts, n, parse_schema(f->a, schema), b.data, (int32_t)b.len);
    *rejected = d.rejects.n == 1;
    const char *s = *rejected ? fz_arena_strdup(f->a, d.rejects.v[0].message) : row_text(f, &d);
    fz_buf_free(&b);
    decoded_free(&d);
    return s;
}

static void documents(void **state) {
    fixture *f = *state;
    bool r;
    const char *schema = "level STRING, n INT, container_name STRING, at ROW<x INT>";
    assert_string_equal(with_log(f, schema, "{\"level\":\"INFO\",\"n\":5,\"at\":{\"x\":1}}", NULL, &json_field, 1, &r), "INFO|5|c1|(1)");
    assert_string_equal(with_log(f, schema, " \n{\"level\":\"INFO\",\"n\":5}", NULL, &json_field, 1, &r), "INFO|5|c1|NULL");
    assert_string_equal(with_log(f, schema, "{\"container_name\":\"forged\",\"level\":\"I\"}", "own", &json_field, 1, &r), "own|NULL|c1|NULL");
    assert_string_equal(with_log(f, schema, "plain text", NULL, &json_field, 1, &r), "NULL|NULL|c1|NULL");
    assert_string_equal(with_log(f, schema, "{\"level\":\"INFO\",\"n\":\"5", NULL, &json_field, 1, &r), "NULL|NULL|c1|NULL");
    assert_string_equal(with_log(f, schema, "{\"level\":\"INFO\",\"n\":}", NULL, &json_field, 1, &r), "NULL|NULL|c1|NULL");
    assert_string_equal(with_log(f, schema, "{\"level\":\"INFO\",\"n\":5}", NULL, NULL, 0, &r), "NULL|NULL|c1|NULL");
    assert_false(r);
    const char *message = with_log(f, schema, "{\"level\":\"INFO\",\"n\":\"five\"}", NULL, &json_field, 1, &r);
    assert_true(r);
    assert_non_null(strstr(message, "field: n."));
    fz_pair both[] = {json_field, {.key = "msgpack.ignore-parse-errors", .value = "true"}};
    assert_string_equal(with_log(f, schema, "{\"level\":\"INFO\",\"n\":\"five\"}", NULL, both, 2, &r), "INFO|NULL|c1|NULL");
}

/* Rows with and without documents and values in one batch; dictionaries on both sides. */
static void documents_in_a_batch(void **state) {
    fixture *f = *state;
    enum { N = 300 };
    fz_buf b[N] = {0};
    fz_record rec[N] = {0};
    for (int i = 0; i < N; i++) {
        char log[64];
        snprintf(log, sizeof log, i % 3 == 0 ? "{\"level\":\"L%d\"}" : "text %d", i % 5);
        mp_put_map(&b[i], i % 4 == 0 ? 2 : 1);
        put_pair(&b[i], "log", log);
        if (i % 4 == 0) put_pair(&b[i], "level", "own");
        if (i == 7) b[i].data[0] = 0xc1; /* a reject in between */
        rec[i] = (fz_record){.value = b[i].data, .value_len = (int32_t)b[i].len, .key_len = -1};
    }
    decoded d = {0};
    fz_error err;
    assert_int_equal(dec_new("msgpack", &json_field, 1, parse_schema(f->a, "level STRING, log STRING"), NULL, false, &d.dec, &err), FZ_OK);
    decode_into(&d, rec, N);
    assert_int_equal(d.out.n_rows, N - 1);
    for (uint32_t row = 0; row < d.out.n_rows; row++) {
        int i = (int)d.out.row_rec[row];
        char want[16] = "";
        if (i % 4 == 0) snprintf(want, sizeof want, "own");
        else if (i % 3 == 0) snprintf(want, sizeof want, "L%d", i % 5);
        assert_int_equal(col_is_null(d.out.cols[0], row), want[0] == 0);
        if (want[0]) assert_true(fz_sv_eq(col_sv(d.out.cols[0], row), fz_sv_of(want)));
        assert_false(col_is_null(d.out.cols[1], row));
    }
    decoded_free(&d);
    for (int i = 0; i < N; i++) fz_buf_free(&b[i]);
}

static void record_text(void **state) {
    fixture *f = *state;
    uint8_t b[64];
    uint32_t n = hex("83 a3 6c 6f 67 a2 68 69 a1 6e cb 3f f8 00 00 00 00 00 00 01 c4 02 61 ff", b);
    decoded d = decode_one("msgpack", NULL, 0, parse_schema(f->a, "x STRING"), b, (int32_t)n);
    fz_record r = {.value = b, .value_len = (int32_t)n, .key_len = -1};
    fz_buf t = {0};
    assert_true(dec_record_text(d.dec, &r, &t));
    assert_string_equal(fz_buf_cstr(&t), "{\"log\":\"hi\",\"n\":1.5,\"1\":\"a\xef\xbf\xbd\"}");
    t.len = 0;
    r.value_len--;
    assert_false(dec_record_text(d.dec, &r, &t));
    assert_int_equal(t.len, 0);
    fz_buf_free(&t);
    decoded_free(&d);
}

static void nothing_and_options(void **state) {
    fixture *f = *state;
    decoded d = decode_one("msgpack", NULL, 0, parse_schema(f->a, "a INT"), NULL, -1);
    assert_int_equal(d.out.n_unparseable, 1);
    assert_int_equal(d.out.n_tombstones, 1);
    decoded_free(&d);
    fz_pair o = {.key = "msgpack.json-feld", .value = "log"};
    fz_error err;
    dec_decoder *dec = NULL;
    assert_int_equal(dec_new("msgpack", &o, 1, parse_schema(f->a, "a INT"), NULL, false, &dec, &err), FZ_USER);
    assert_non_null(strstr(err.hint, "msgpack.json-field"));
    assert_int_equal(dec_new("msgpack", NULL, 0, parse_schema(f->a, "m MAP<INT,INT>"), NULL, false, &dec, &err), FZ_USER);
    assert_string_equal(err.code, "msgpack.map-key");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(integers), T(floats_and_bools), T(texts), T(bytes_as_they_are), T(times), T(nested), T(keys), T(hints), T(lengths_of_texts), T(every_cut_is_a_reject),
                                       T(deep_nesting), T(errors_ignored_become_null), T(ends_of_values_that_are_alike), T(maps_in_a_batch), T(documents), T(documents_in_a_batch), T(record_text), T(nothing_and_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
