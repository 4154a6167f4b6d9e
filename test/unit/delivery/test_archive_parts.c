/* The archive's parts on their own: the prefix language, names, blocks, lines, and that the same rows are the same bytes. */
#include "archive_fixture.h"
#include "col/datetime.h"

static int64_t when(int y, int mo, int d, int h, int mi, int s) {
    dt_fields f = {y, mo, d, h, mi, s, 0};
    return dt_us_of(&f);
}

static void expect(const char *text, bool is_error, const char *type, const char *want) {
    fz_arena *a = fz_arena_new();
    const arc_prefix *p;
    fz_error err = {0};
    fz_buf b = {0};
    if (arc_prefix_new(a, text, is_error, &p, &err) != FZ_OK) fail_msg("%s: %s (%s)", text, err.message, err.detail);
    arc_prefix_eval(p, when(2018, 8, 27, 10, 30, 5), "c0357a0f-495d-4eb6-9383-66b7d9347e15", type, &b);
    assert_string_equal(fz_buf_cstr(&b), want);
    fz_buf_free(&b);
    fz_arena_free(a);
}
static void refused(const char *text, bool is_error, const char *word) {
    fz_arena *a = fz_arena_new();
    const arc_prefix *p;
    fz_error err = {0};
    char all[4096];
    assert_int_equal(arc_prefix_new(a, text, is_error, &p, &err), FZ_USER);
    assert_string_equal(err.code, "delivery.prefix");
    fz_error_text(&err, all, sizeof all);
    if (!strstr(all, word)) fail_msg("%s: %s does not name %s", text, all, word);
    fz_arena_free(a);
}

static void prefixes_are_those_of_firehose(void **state) {
    (void)state;
    expect("", false, NULL, "2018/08/27/10/");
    expect("logs/", false, NULL, "logs/2018/08/27/10/");
    expect("logs", false, NULL, "logs2018/08/27/10/");
    expect("myPrefix/!{timestamp:yyyy/MM/dd}/", false, NULL, "myPrefix/2018/08/27/");
    expect("year=!{timestamp:yyyy}/month=!{timestamp:MM}/x", false, NULL, "year=2018/month=08/x");
    expect("!{timestamp:'yyyy'-yyyy}/", false, NULL, "yyyy-2018/");
    expect("a!b{c}/!{timestamp:HHmmss}", false, NULL, "a!b{c}/103005");
    expect("myFirehoseFailures/!{firehose:error-output-type}/", true, "processing-failed", "myFirehoseFailures/processing-failed/");
    expect("f/!{firehose:error-output-type}/!{timestamp:yyyy}", true, "iceberg-failed", "f/iceberg-failed/2018");
    expect("failed/", true, "s3-failed", "failed/s3-failed/2018/08/27/10/");
    refused("a/!{timestamp:yyyy", false, "closed");
    refused("a/!{timestamp}/", false, "namespace:value");
    refused("a/!{timestamp:}/", false, "pattern");
    refused("a/!{timestamp:yyyyiq}/", false, "DateTimeFormatter");
    refused("a/!{timestamp:XXX}/", false, "zone");
    refused("a/!{Timestamp:yyyy}/", false, "unknown namespace");
    refused("a/!{firehose:random}/", false, "random-string");
    refused("a/!{firehose:error-output-type}/", false, "error.path");
    refused("a/!{partitionKeyFromQuery:customer}/", false, "dynamic partitioning");
    refused("a/!{partitionKeyFromLambda:customer}/", true, "dynamic partitioning");
    refused("a/!{timestamp:yyyy}/", true, "error-output-type");
    char *text = fz_malloc(1026);
    memset(text, 'a', 1025);
    text[1025] = 0;
    refused(text, false, "1024");
    text[1024] = 0;
    fz_arena *a = fz_arena_new();
    const arc_prefix *p;
    assert_int_equal(arc_prefix_new(a, text, false, &p, NULL), FZ_OK);
    fz_arena_free(a);
    fz_free(text);
}

static void random_strings_follow_from_the_uuid(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const arc_prefix *p;
    fz_buf x = {0}, y = {0}, z = {0};
    assert_int_equal(arc_prefix_new(a, "!{firehose:random-string}/!{firehose:random-string}/!{timestamp:yyyy}", false, &p, NULL), FZ_OK);
    arc_prefix_eval(p, 0, "one", NULL, &x);
    arc_prefix_eval(p, 0, "one", NULL, &y);
    arc_prefix_eval(p, 0, "two", NULL, &z);
    assert_int_equal(x.len, 11 + 1 + 11 + 1 + 4);
    assert_string_equal(fz_buf_cstr(&x), fz_buf_cstr(&y));
    assert_string_not_equal(fz_buf_cstr(&x), fz_buf_cstr(&z));
    assert_memory_not_equal(x.data, x.data + 12, 11);
    for (int i = 0; i < 11; i++) assert_non_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", x.data[i]));
    fz_buf_free(&x);
    fz_buf_free(&y);
    fz_buf_free(&z);
    fz_arena_free(a);
}

static void names(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    char uuid[37];
    fz_buf b = {0};
    arc_uuid5("frazil:p/t", "[[\"c\",\"t\",0,0,10]]", uuid);
    assert_string_equal(uuid, "e9004e88-2c2a-57a8-9e92-251a31233a8b"); /* Python's uuid5(uuid5(NAMESPACE_URL, "frazil:p/t"), ...) */
    arc_name(&b, "meraki-firehose", "4", when(2025, 11, 19, 22, 30, 48), uuid, ".gz");
    assert_string_equal(fz_buf_cstr(&b), "meraki-firehose-4-2025-11-19-22-30-48-e9004e88-2c2a-57a8-9e92-251a31233a8b.gz");
    assert_string_equal(arc_stream_name(a, "my pipeline/ä:x"), "my-pipeline----x");
    assert_true(arc_stream_name_ok("a.b-c_9"));
    assert_false(arc_stream_name_ok(""));
    assert_false(arc_stream_name_ok("a b"));
    fz_buf_free(&b);
    fz_arena_free(a);
}

static void crc_of_pieces(void **state) {
    (void)state;
    uint8_t data[4000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 13);
    for (size_t cut = 0; cut <= sizeof data; cut += 499) {
        uint32_t x = libdeflate_crc32(0, data, cut), y = libdeflate_crc32(0, data + cut, sizeof data - cut);
        assert_int_equal(arc_crc_join(x, y, sizeof data - cut), libdeflate_crc32(0, data, sizeof data));
    }
}

static fz_status collect(void *cx, const void *p, size_t n, fz_error *err) {
    (void)err;
    fz_buf_append(cx, p, n);
    return FZ_OK;
}

/* Rows 0..n of two splits, in pieces of `step`, split 1 first or second. */
static void fill(arc_body *b, arc_packer *p, uint32_t n, uint32_t step, bool other_way, bool as_dict) {
    fz_error err;
    for (uint32_t first = 0; first < n; first += step)
        for (int turn = 0; turn < 2; turn++) {
            fz_arena *a = fz_arena_new();
            uint32_t split = turn ^ other_way, k = n - first < step ? n - first : step;
            const col_schema *s = schema_of(a);
            col_vec **cols = rows_of(a, s, first + 10000 * split, k, as_dict);
            int64_t *at = FZ_ANEWN(a, int64_t, k);
            for (uint32_t i = 0; i < k; i++) at[i] = i % 9 == 3 ? -1 : 1700000000000 + first + i - 40 * (i % 3);
            arc_lines *l = arc_lines_begin(arc_encoder_new(a, s, false, false), cols, k, a);
            assert_int_equal(arc_body_add(b, p, 0, split, l, k, at, &err), FZ_OK);
            arc_lines_end(l);
            fz_arena_free(a);
        }
    arc_body_seal(b, p);
}

static void object_of(arc_codec c, size_t memory, uint32_t n, uint32_t step, bool other_way, bool as_dict, fz_buf *out) {
    fz_error err;
    arc_packer *p = arc_packer_new(c);
    arc_body *b = arc_body_new(c, memory, true, "/tmp");
    fill(b, p, n, step, other_way, as_dict);
    assert_int_equal(arc_body_rows(b), 2 * n);
    assert_int_equal(arc_body_read(b, collect, out, &err), FZ_OK);
    assert_int_equal(out->len, arc_body_size(b));
    arc_body_free(b);
    arc_packer_free(p);
}

static void want_object(fz_buf *want, uint32_t n) {
    for (uint32_t split = 0; split < 2; split++)
        for (uint32_t i = 0; i < n; i++) want_line(want, i + 10000 * split);
}

static void same_rows_are_same_bytes(void **state) {
    (void)state;
    enum { N = 9000 }; /* several blocks a split */
    fz_buf want = {0};
    want_object(&want, N);
    for (arc_codec c = ARC_PLAIN; c <= ARC_ZSTD; c++) {
        fz_buf first = {0}, back = {0};
        object_of(c, 1 << 20, N, 500, false, false, &first);
        if (c == ARC_GZIP) unzip(&first, &back);
        else if (c == ARC_PLAIN) fz_buf_append(&back, first.data, first.len);
        else { /* frames one after the other */
            ZSTD_DCtx *d = ZSTD_createDCtx();
            fz_buf_reserve(&back, want.len + 1);
            back.len = ZSTD_decompressDCtx(d, back.data, back.cap, first.data, first.len);
            ZSTD_freeDCtx(d);
        }
        assert_int_equal(back.len, want.len);
        assert_memory_equal(back.data, want.data, want.len);
        static const struct { size_t memory; uint32_t step; bool other_way, dict; } ways[] = {{1 << 20, 1, true, false}, {1 << 20, N, false, true}, {1000, 777, true, true}, {0, 501, false, false}};
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            fz_buf again = {0};
            object_of(c, ways[i].memory, N, ways[i].step, ways[i].other_way, ways[i].dict, &again);
            assert_int_equal(again.len, first.len);
            assert_memory_equal(again.data, first.data, first.len);
            fz_buf_free(&again);
        }
        fz_buf_free(&first);
        fz_buf_free(&back);
    }
    fz_buf_free(&want);
}

/* Rows of one split in memory are packed where the object stands, whatever was packed there before. */
static void one_split_is_whole_in_memory(void **state) {
    (void)state;
    enum { N = 9000 };
    fz_error err;
    fz_buf want = {0};
    for (uint32_t i = 0; i < N; i++) want_line(&want, i);
    for (arc_codec c = ARC_PLAIN; c <= ARC_ZSTD; c++) {
        fz_buf apart = {0};
        for (int round = 0; round < 4; round++) { /* spilled, in memory, in that memory again, empty */
            fz_arena *a = fz_arena_new();
            const col_schema *s = schema_of(a);
            arc_packer *p = arc_packer_new(c);
            arc_body *b = arc_body_new(c, round ? 4 << 20 : 1000, false, "/tmp");
            arc_lines *l = arc_lines_begin(arc_encoder_new(a, s, false, false), rows_of(a, s, 0, N, false), N, a);
            if (round < 3) assert_int_equal(arc_body_add(b, p, 0, 0, l, N, NULL, &err), FZ_OK);
            arc_lines_end(l);
            arc_body_seal(b, p);
            const uint8_t *whole = arc_body_whole(b);
            assert_int_equal(whole != NULL, round > 0);
            fz_buf read = {0};
            assert_int_equal(arc_body_read(b, collect, &read, &err), FZ_OK);
            assert_int_equal(read.len, arc_body_size(b));
            if (round == 0) fz_buf_append(&apart, read.data, read.len);
            else if (round < 3) {
                assert_int_equal((uintptr_t)whole % 4096, 0);
                assert_int_equal(arc_body_size(b), apart.len);
                assert_memory_equal(whole, apart.data, apart.len);
                assert_memory_equal(read.data, apart.data, apart.len);
            }
            if (c == ARC_GZIP && round == 1) {
                fz_buf back = {0};
                unzip(&read, &back);
                assert_int_equal(back.len, want.len);
                assert_memory_equal(back.data, want.data, want.len);
                fz_buf_free(&back);
            }
            fz_buf_free(&read);
            arc_body_free(b);
            arc_packer_free(p);
            fz_arena_free(a);
        }
        fz_buf_free(&apart);
    }
    fz_buf_free(&want);
}

typedef struct walk { uint32_t n; fz_buf text; } walk;
static fz_status see_line(void *cx, fz_sv line, int64_t ms, fz_error *err) {
    (void)err;
    walk *w = cx;
    uint32_t i = w->n % 3000;
    assert_int_equal(ms, i % 500 % 9 == 3 ? -1 : 1700000000000 + i - 40 * (i % 500 % 3));
    fz_buf_append(&w->text, line.p, line.n);
    fz_buf_putc(&w->text, '\n');
    w->n++;
    return FZ_OK;
}

static void lines_come_back_with_their_times(void **state) {
    (void)state;
    fz_error err;
    fz_buf want = {0};
    want_object(&want, 3000);
    for (arc_codec c = ARC_PLAIN; c <= ARC_ZSTD; c++)
        for (size_t memory = 0; memory < 2 << 20; memory += 1 << 20) {
            walk w = {0};
            arc_packer *p = arc_packer_new(c);
            arc_body *b = arc_body_new(c, memory, true, "/tmp");
            fill(b, p, 3000, 500, true, false);
            assert_int_equal(arc_body_oldest_ms(b), 1700000000000 - 78);
            assert_int_equal(arc_body_lines(b, see_line, &w, &err), FZ_OK);
            assert_int_equal(w.text.len, want.len);
            assert_memory_equal(w.text.data, want.data, want.len);
            fz_buf_free(&w.text);
            arc_body_free(b);
            arc_packer_free(p);
        }
    fz_buf_free(&want);
}

static void no_room_to_spill(void **state) {
    (void)state;
    fz_error err;
    fz_arena *a = fz_arena_new();
    const col_schema *s = schema_of(a);
    arc_packer *p = arc_packer_new(ARC_PLAIN);
    arc_body *b = arc_body_new(ARC_PLAIN, 0, false, "/nowhere/at/all");
    arc_lines *l = arc_lines_begin(arc_encoder_new(a, s, true, true), rows_of(a, s, 0, 4000, false), 4000, a);
    assert_int_equal(arc_body_add(b, p, 0, 0, l, 4000, NULL, &err), FZ_RETRY);
    assert_string_equal(err.code, "delivery.spill");
    arc_lines_end(l);
    arc_body_free(b);
    arc_packer_free(p);
    fz_arena_free(a);
}

static void values(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_type *dec = col_sized(a, COL_DECIMAL, 10, 2, true), *bytes = col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true);
    col_field inner[] = {{"x", col_simple(COL_INT, true), NULL}, {"y \"", col_string(true), NULL}};
    const col_type *row = col_row(a, inner, 2, true), *list = col_array(a, col_sized(a, COL_TIMESTAMP, 0, 0, true), true), *map = col_map(a, col_string(false), col_simple(COL_DOUBLE, true), true);
    col_field fields[] = {{"d", dec, NULL}, {"b", bytes, NULL}, {"r", row, NULL}, {"l", list, NULL}, {"m", map, NULL}, {"f", col_simple(COL_BOOLEAN, true), NULL}};
    col_schema s = {6, fields};
    col_vec *cols[6];
    col_builder *v[6];
    for (int i = 0; i < 6; i++) v[i] = col_builder_new(a, fields[i].type);
    col_add_dec(v[0], -1250);
    col_add_bytes(v[1], "\0\xff", 2);
    col_add_null(col_builder_child(v[2], 0));
    col_add_bytes(col_builder_child(v[2], 1), "\x01", 1);
    col_add_nested(v[2]);
    col_add_i64(col_builder_child(v[3], 0), 1000000);
    col_add_nested(v[3]);
    col_add_bytes(col_builder_child(v[4], 0), "k", 1);
    col_add_f64(col_builder_child(v[4], 1), 1.5);
    col_add_nested(v[4]);
    col_add_null(v[5]);
    for (int i = 0; i < 6; i++) cols[i] = col_builder_finish(v[i]);
    for (int nulls = 0; nulls < 2; nulls++) {
        fz_buf out = {0};
        arc_lines *l = arc_lines_begin(arc_encoder_new(a, &s, nulls, true), cols, 1, a);
        arc_lines_add(l, 0, &out);
        arc_lines_end(l);
        char want[256];
        snprintf(want, sizeof want, "{\"d\":-12.50,\"b\":\"AP8=\",\"r\":{\"x\":null,\"y \\\"\":\"\\u0001\"},\"l\":[\"1970-01-01T00:00:01\"],\"m\":{\"k\":1.5}%s}\n", nulls ? ",\"f\":null" : "");
        assert_string_equal(fz_buf_cstr(&out), want);
        fz_buf_free(&out);
    }
    fz_arena_free(a);
}

/* Rows of texts, among them maps, as log records mostly are: the ways that do without a look at each value's type. */
static void texts_and_maps_of_texts(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    const col_type *text = col_string(true);
    col_field fields[] = {{"a", text, NULL}, {"m", col_map(a, col_string(false), text, true), NULL}, {"none", text, NULL}, {"d", text, NULL}};
    col_schema s = {4, fields};
    col_builder *v[3];
    for (int i = 0; i < 3; i++) v[i] = col_builder_new(a, fields[i].type);
    for (int row = 0; row < 3; row++) {
        if (row == 1) col_add_null(v[0]);
        else col_add_bytes(v[0], "x\"y", 3);
        for (int k = 0; k < row; k++) {
            col_add_bytes(col_builder_child(v[1], 0), k ? "l\n" : "k", k ? 2 : 1);
            if (k) col_add_null(col_builder_child(v[1], 1));
            else col_add_bytes(col_builder_child(v[1], 1), "\\", 1);
        }
        if (row == 0) col_add_null(v[1]);
        else col_add_nested(v[1]);
        col_add_null(v[2]);
    }
    col_builder *entries = col_builder_new(a, text);
    col_add_bytes(entries, "e", 1);
    col_add_null(entries);
    col_vec *cols[] = {col_builder_finish(v[0]), col_builder_finish(v[1]), col_builder_finish(v[2]), col_vec_dict(a, col_builder_finish(entries), 3)};
    memcpy(cols[3]->idx, (uint32_t[]){1, 0, 0}, 12);
    static const char *const want[2] = {"{\"a\":\"x\\\"y\"}\n{\"m\":{\"k\":\"\\\\\"},\"d\":\"e\"}\n{\"a\":\"x\\\"y\",\"m\":{\"k\":\"\\\\\",\"l\\n\":null},\"d\":\"e\"}\n",
                                        "{\"a\":\"x\\\"y\",\"m\":null,\"none\":null,\"d\":null}\n{\"a\":null,\"m\":{\"k\":\"\\\\\"},\"none\":null,\"d\":\"e\"}\n{\"a\":\"x\\\"y\",\"m\":{\"k\":\"\\\\\",\"l\\n\":null},\"none\":null,\"d\":\"e\"}\n"};
    for (int nulls = 0; nulls < 2; nulls++) {
        fz_buf out = {0};
        arc_lines *l = arc_lines_begin(arc_encoder_new(a, &s, nulls, true), cols, 3, a);
        for (uint32_t row = 0; row < 3; row++) arc_lines_add(l, row, &out);
        arc_lines_end(l);
        assert_string_equal(fz_buf_cstr(&out), want[nulls]);
        fz_buf_free(&out);
    }
    fz_arena_free(a);
}

/* Texts of every length up to some hundred bytes, flat, behind an index and as a dictionary, all plain or one byte of one of them not: the same lines. */
static void texts_of_every_length(void **state) {
    (void)state;
    enum { N = 400 };
    fz_arena *a = fz_arena_new();
    col_field fields[] = {{"a_name_that_is_longer_than_what_is_copied_at_once", col_string(true), NULL}, {"n", col_simple(COL_INT, true), NULL}, {"b", col_string(true), NULL}};
    col_schema s = {3, fields};
    for (int odd = -1; odd < N; odd += 37) {
        col_builder *texts = col_builder_new(a, fields[0].type), *numbers = col_builder_new(a, fields[1].type);
        fz_buf want = {0};
        char text[N + 1];
        for (int i = 0; i < N; i++) {
            int n = N - 1 - i;
            memset(text, 'a' + i % 26, (size_t)n);
            if (i == odd && n) text[n / 2] = "\"\\\n"[i % 3];
            if (i % 9 == 4) col_add_null(texts);
            else col_add_bytes(texts, text, (size_t)n);
            col_add_i64(numbers, i % 2 ? INT32_MIN + i : i);
        }
        col_vec *flat = col_builder_finish(texts);
        char *exact = malloc(flat->off[N]); /* a block of its size: a read past the end is seen */
        memcpy(exact, flat->bytes, flat->off[N]);
        flat->bytes = exact;
        col_vec *behind = col_vec_dict(a, flat, N - 1), *dict = col_vec_dict(a, flat, N);
        col_vec *cols[] = {flat, col_builder_finish(numbers), dict};
        for (uint32_t i = 0; i < N; i++) dict->idx[i] = i;
        for (uint32_t i = 0; i < N; i++) {
            fz_buf_puts(&want, "{");
            for (int c = 0; c < 3; c++) {
                if (col_is_null(cols[c], i)) continue;
                if (want.data[want.len - 1] != '{') fz_buf_puts(&want, ",");
                fz_buf_printf(&want, "\"%s\":", fields[c].name);
                if (c == 1) fz_buf_printf(&want, "%d", cols[1]->i32[i]);
                else fz_buf_json(&want, col_sv(flat, i).p, col_sv(flat, i).n);
            }
            fz_buf_puts(&want, "}\n");
        }
        fz_buf out = {0};
        arc_lines *l = arc_lines_begin(arc_encoder_new(a, &s, false, true), cols, N, a);
        for (uint32_t row = 0; row < N; row++) arc_lines_add(l, row, &out);
        arc_lines_end(l);
        assert_int_equal(out.len, want.len);
        assert_memory_equal(out.data, want.data, want.len);
        for (uint32_t i = 0; i < N - 1; i++) behind->idx[i] = i + 1; /* fewer rows than entries */
        cols[0] = cols[2] = behind;
        cols[1] = col_vec_nulls(a, fields[1].type, N - 1);
        out.len = want.len = 0;
        l = arc_lines_begin(arc_encoder_new(a, &s, true, true), cols, N - 1, a);
        for (uint32_t row = 0; row < N - 1; row++) {
            arc_lines_add(l, row, &out);
            for (int c = 0; c < 3; c++) {
                fz_buf_printf(&want, "%s\"%s\":", c ? "," : "{", fields[c].name);
                if (c == 1 || col_is_null(flat, row + 1)) fz_buf_puts(&want, "null");
                else fz_buf_json(&want, col_sv(flat, row + 1).p, col_sv(flat, row + 1).n);
            }
            fz_buf_puts(&want, "}\n");
        }
        arc_lines_end(l);
        assert_int_equal(out.len, want.len);
        assert_memory_equal(out.data, want.data, want.len);
        fz_buf_free(&out);
        fz_buf_free(&want);
        free(exact);
    }
    fz_arena_free(a);
}

static void fixed_parts(void **state) {
    (void)state;
    static const struct { const char *path, *errors, *want, *want_errors; } cases[] = {
        {"s3://b/p/!{timestamp:yyyy}/", "failed/!{firehose:error-output-type}/", "s3://b/p/", "s3://b/failed/"},
        {"s3://b/p/logs-!{timestamp:yyyy}/", "s3://e/x", "s3://b/p/logs-", "s3://e/x"},
        {"s3://b", "s3://e/", "s3://b/", "s3://e/"},
        {"/a/b", "file:///c/d", "/a/b/", "file:///c/d/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_arena *a = fz_arena_new();
        const fz_pair o[] = {{.key = "connector", .value = "firehose-s3"}, {.key = "path", .value = cases[i].path}, {.key = "error.path", .value = cases[i].errors}};
        dlv_place v[DLV_MAX_PLACES];
        uint32_t n;
        fz_error e;
        assert_int_equal(dlv_places(o, 3, a, v, &n, &e), FZ_OK);
        assert_int_equal(n, 2);
        assert_string_equal(v[0].location, cases[i].want);
        assert_string_equal(v[1].location, cases[i].want_errors);
        assert_string_equal(v[1].option, "error.path");
        fz_arena_free(a);
    }
}

/* Times in columns: the second of the row before is kept; also before 1970, and in each precision. */
static void times_in_rows(void **state) {
    (void)state;
    static const int64_t us[] = {0, 999999, 1000000, 1500000, -1, -1000000, -1000001, 1796000400123456, 1796000400123457, 1796000401000000, 253402300799999999};
    enum { N = sizeof us / sizeof *us };
    fz_arena *a = fz_arena_new();
    for (int p = 0; p <= 6; p++)
        for (int ltz = 0; ltz < 2; ltz++) {
            col_field f = {"t", col_sized(a, ltz ? COL_TIMESTAMP_LTZ : COL_TIMESTAMP, p, 0, true), NULL};
            col_schema s = {1, &f};
            col_builder *b = col_builder_new(a, f.type);
            for (int i = 0; i < N; i++) col_add_i64(b, dt_cut(us[i], p));
            col_vec *cols[] = {col_builder_finish(b)};
            arc_lines *l = arc_lines_begin(arc_encoder_new(a, &s, false, p % 2), cols, N, a);
            fz_buf out = {0};
            for (uint32_t i = 0; i < N; i++) {
                char want[80] = "{\"t\":\"", *at = want + strlen(want);
                size_t n = dt_timestamp_text(dt_cut(us[i], p), p, at);
                if (p % 2) *(char *)memchr(at, ' ', n) = 'T';
                snprintf(at + n, 8, "%s\"}\n", ltz ? "Z" : "");
                out.len = 0;
                arc_lines_add(l, i, &out);
                assert_string_equal(fz_buf_cstr(&out), want);
            }
            arc_lines_end(l);
            fz_buf_free(&out);
        }
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_those_of_firehose), cmocka_unit_test(random_strings_follow_from_the_uuid), cmocka_unit_test(names), cmocka_unit_test(crc_of_pieces),
        cmocka_unit_test(same_rows_are_same_bytes), cmocka_unit_test(one_split_is_whole_in_memory), cmocka_unit_test(lines_come_back_with_their_times), cmocka_unit_test(no_room_to_spill), cmocka_unit_test(values), cmocka_unit_test(texts_and_maps_of_texts), cmocka_unit_test(texts_of_every_length), cmocka_unit_test(times_in_rows), cmocka_unit_test(fixed_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
