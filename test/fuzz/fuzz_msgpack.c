/* Fuzzes the MessagePack decoder: a batch gives what its records give one by one with a new decoder each (hints, dictionaries and reused memory change nothing), what a query does not want changes no fate,
 * columns keep their invariants, and the text of a record is well-formed JSON.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: a byte of flags, then records that are divided by bytes 0xc1, which MessagePack has no use for. Bits of the flags: 0 ignore-parse-errors, 1 documents in a field,
 * 2 ISO-8601, 3 and 4 the table, 5 only every second column is wanted.
 */
#include "decode/msgpack_int.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_msgpack.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_RECORDS = 12 };

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
    col_field logs[] = {field("log", text), field("source", text), field("n", num), field("s", text)};
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

typedef struct result { dec_output out; fz_rejects rejects; fz_arena *a; dec_decoder *d; } result;

static void run(result *r, const fz_chunk *c, unsigned flags, const col_schema *s, bool all) {
    bool wanted[8];
    fz_error err;
    for (uint32_t i = 0; i < s->n; i++) wanted[i] = all || !(flags & 32) || i % 2 == 0;
    fz_pair opts[] = {{.key = "msgpack.ignore-parse-errors", .value = flags & 1 ? "true" : "false"},
                      {.key = "msgpack.timestamp-format.standard", .value = flags & 4 ? "ISO-8601" : "SQL"},
                      {.key = "msgpack.json-field", .value = "log"}};
    memset(r, 0, sizeof *r);
    CHECK(dec_new("msgpack", opts, flags & 2 ? 3 : 2, s, wanted, false, &r->d, &err) == FZ_OK);
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

static bool is_json(const fz_buf *b) {
    js_parser *p = calloc(1, sizeof *p);
    uint32_t open = 0;
    fz_sv s;
    bool ok = true;
    js_parser_start(p, b->data, b->len);
    do {
        ok = js_next(p) && p->cur != JT_NONE;
        if (p->cur == JT_START_OBJECT || p->cur == JT_START_ARRAY) open++;
        else if (p->cur == JT_END_OBJECT || p->cur == JT_END_ARRAY) open--;
        else ok = ok && js_text(p, &s);
    } while (ok && open);
    js_parser_free(p);
    free(p);
    return ok;
}

/* Row `row` of the batch is the only row of one. */
static void same_row(const result *batch, uint32_t row, const result *one, const col_schema *s) {
    for (uint32_t k = 0; k < s->n; k++) {
        const col_vec *x = batch->out.cols[k], *y = one->out.cols[k];
        if (!x || !y) continue;
        CHECK(col_is_null(x, row) == col_is_null(y, 0));
        if (!col_is_null(x, row)) CHECK(col_equal(x, row, y, 0));
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
        const uint8_t *q = p < end ? memchr(p, 0xc1, (size_t)(end - p)) : NULL;
        if (!q) q = end;
        copy[c.n] = malloc((size_t)(q - p) + !(q - p)); /* blocks of the exact size: a read past the end is seen */
        memcpy(copy[c.n], p, (size_t)(q - p));
        rec[c.n] = (fz_record){.value = copy[c.n], .value_len = (int32_t)(q - p), .key_len = -1};
        c.n++;
        p = q + 1;
    }
    const col_schema *s = &schemas[(flags >> 3) & 3];
    result batch, one;
    run(&batch, &c, flags, s, false);
    for (uint32_t i = 0, row = 0, rej = 0; i < c.n; i++) {
        fz_chunk single = {.rec = &rec[i], .n = 1};
        run(&one, &single, flags, s, true);
        bool in_batch = row < batch.out.n_rows && batch.out.row_rec[row] == i;
        CHECK(in_batch == (one.out.n_rows == 1));
        if (in_batch) same_row(&batch, row++, &one, s);
        bool rejected = rej < batch.rejects.n && batch.rejects.v[rej].rec == i;
        CHECK(rejected == (one.rejects.n == 1));
        if (rejected) CHECK(strcmp(batch.rejects.v[rej++].message, one.rejects.v[0].message) == 0);
        fz_buf t = {0};
        if (dec_record_text(one.d, &rec[i], &t)) CHECK(fz_utf8_valid((const char *)t.data, t.len) && is_json(&t));
        else CHECK(t.len == 0);
        fz_buf_free(&t);
        release(&one);
    }
    release(&batch);
    for (uint32_t i = 0; i < c.n; i++) free(copy[i]);
    return 0;
}

#include "replay.h"
