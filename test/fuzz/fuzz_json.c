/* Fuzzes the JSON decoder: the fast path must give what the exact path gives, record by record, and columns must keep their
 * invariants (col.h): well-formed text, offsets that only grow, dictionary indexes in range.
 *
 *   make build/lib/{base,col,decode}.a is not enough: the sources are compiled with the fuzzer's instrumentation.
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -mavx2 -std=c17 -D_GNU_SOURCE -Isrc test/fuzz/fuzz_json.c src/decode/x.c src/col/x.c src/base/x.c
 *     (x: *) -lm -pthread -o build/fuzz_json && build/fuzz_json -max_total_time=300 build/corpus test/fuzz/corpus/json
 *   With -DFUZZ_REPLAY and any compiler: a program that runs each file named on its command line once.
 *
 * Input: a byte of flags, then records that are divided by bytes 0x1e. Bits of the flags: 0 ignore-parse-errors, 1 fail-on-missing-field,
 * 2 ISO-8601, 3 and 4 the table, 5 only every second column is wanted.
 */
#include "decode/json_int.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_json.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_RECORDS = 64 };

static fz_arena *types;
static col_schema schemas[4];

static col_field field(const char *name, const col_type *t) { return (col_field){name, t, NULL}; }

static void set_schema(col_schema *s, const col_field *f, uint32_t n) {
    col_field *copy = FZ_ANEWN(types, col_field, n);
    memcpy(copy, f, n * sizeof *f);
    *s = (col_schema){n, copy};
}

static void make_schemas(void) {
    types = fz_arena_new();
    const col_type *text = col_string(true), *num = col_simple(COL_INT, true), *dbl = col_simple(COL_DOUBLE, true);
    col_field small[] = {field("a", text), field("b", num)};
    const col_type *row = col_row(types, small, 2, true);
    col_field flat[] = {field("s", text), field("n", num), field("b", col_simple(COL_BIGINT, true)), field("d", dbl), field("f", col_simple(COL_BOOLEAN, true)),
                        field("t", col_sized(types, COL_TIMESTAMP, 6, 0, true)), field("dt", col_simple(COL_DATE, true))};
    col_field nested[] = {field("arr", col_array(types, text, true)), field("m", col_map(types, text, text, true)), field("r", row), field("s", text)};
    col_field deep[] = {field("aa", col_array(types, col_array(types, num, true), true)), field("mn", col_map(types, text, row, true)), field("by", col_sized(types, COL_VARBINARY, COL_MAX_LENGTH, 0, true)),
                        field("de", col_sized(types, COL_DECIMAL, 10, 2, true)), field("lt", col_sized(types, COL_TIMESTAMP_LTZ, 3, 0, true)), field("l", col_array(types, row, true))};
    col_field logs[] = {field("ts", text), field("src_host", text), field("program", text), field("message", text)};
    set_schema(&schemas[0], flat, 7);
    set_schema(&schemas[1], nested, 4);
    set_schema(&schemas[2], deep, 6);
    set_schema(&schemas[3], logs, 4);
}

static void check_vec(const col_vec *v) {
    if (v->idx) {
        for (uint32_t i = 0; i < v->len; i++) CHECK(!v->valid || v->valid[i] ? v->idx[i] < v->dict->len : v->idx[i] == 0);
        check_vec(v->dict);
        return;
    }
    for (uint32_t i = 0; v->off && i < v->len; i++) CHECK(v->off[i] <= v->off[i + 1]);
    if (col_is_text(v->type->kind))
        for (uint32_t i = 0; i < v->len; i++) CHECK(fz_utf8_valid(v->bytes + v->off[i], v->off[i + 1] - v->off[i]));
    for (uint32_t k = 0; k < v->n_child; k++) {
        CHECK(v->child[k]->len == (v->type->kind == COL_ROW ? v->len : v->off[v->len]));
        check_vec(v->child[k]);
    }
}

static bool no_fast_path(json_decoder *d, const uint8_t *in, size_t n) {
    (void)d, (void)in, (void)n;
    return false;
}

typedef struct result { dec_output out; fz_rejects rejects; fz_arena *a; dec_decoder *d; } result;

static void run(result *r, const fz_chunk *c, unsigned flags, const col_schema *s, js_fast_fn row) {
    bool wanted[8];
    fz_error err;
    for (uint32_t i = 0; i < s->n; i++) wanted[i] = !(flags & 32) || i % 2 == 0;
    fz_pair opts[] = {{.key = "json.ignore-parse-errors", .value = flags & 1 ? "true" : "false"},
                      {.key = "json.fail-on-missing-field", .value = (flags & 3) == 2 ? "true" : "false"},
                      {.key = "json.timestamp-format.standard", .value = flags & 4 ? "ISO-8601" : "SQL"}};
    memset(r, 0, sizeof *r);
    CHECK(dec_new("json", opts, 3, s, wanted, false, &r->d, &err) == FZ_OK);
    ((json_decoder *)r->d)->row = row;
    r->a = fz_arena_new();
    CHECK(dec_decode(r->d, c, r->a, &r->out, &r->rejects, &err) == FZ_OK);
    CHECK(r->out.n_rows + r->out.n_unparseable + r->rejects.n == c->n);
    for (uint32_t k = 0; k < s->n; k++) {
        CHECK(!r->out.cols[k] == !wanted[k]);
        if (!wanted[k]) continue;
        CHECK(r->out.cols[k]->len == r->out.n_rows);
        check_vec(r->out.cols[k]);
    }
}

static void release(result *r) {
    dec_free(r->d);
    fz_arena_free(r->a);
    fz_free(r->rejects.v);
}

static void compare(const result *a, const result *b, const col_schema *s) {
    CHECK(a->out.n_rows == b->out.n_rows && a->rejects.n == b->rejects.n && a->out.n_unparseable == b->out.n_unparseable);
    for (uint32_t i = 0; i < a->out.n_rows; i++) CHECK(a->out.row_rec[i] == b->out.row_rec[i]);
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t i = 0; a->out.cols[k] && i < a->out.n_rows; i++) {
            const col_vec *x = a->out.cols[k], *y = b->out.cols[k];
            CHECK(col_is_null(x, i) == col_is_null(y, i));
            if (!col_is_null(x, i)) CHECK(col_equal(x, i, y, i));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    if (!types) make_schemas();
    unsigned flags = data[0];
    fz_record rec[MAX_RECORDS];
    uint8_t *copy[MAX_RECORDS];
    fz_chunk c = {.rec = rec};
    for (const uint8_t *p = data + 1, *end = data + size; p <= end && c.n < MAX_RECORDS;) {
        const uint8_t *q = memchr(p, 0x1e, (size_t)(end - p));
        if (!q) q = end;
        copy[c.n] = malloc((size_t)(q - p) + !(q - p)); /* blocks of the exact size: a read past the end is seen */
        memcpy(copy[c.n], p, (size_t)(q - p));
        rec[c.n] = (fz_record){.value = copy[c.n], .value_len = (int32_t)(q - p), .key_len = -1};
        c.n++;
        p = q + 1;
    }
    const col_schema *s = &schemas[(flags >> 3) & 3];
    result exact, base, best;
    run(&exact, &c, flags, s, no_fast_path);
    run(&base, &c, flags, s, js_fast_row_base);
    run(&best, &c, flags, s, js_fast_pick());
    compare(&exact, &base, s);
    compare(&exact, &best, s);
    release(&exact);
    release(&base);
    release(&best);
    for (uint32_t i = 0; i < c.n; i++) free(copy[i]);
    return 0;
}

#include "replay.h"
