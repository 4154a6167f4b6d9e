/* Fuzzes OTLP's protobuf: a request is split at the door, and what the door takes is decoded, as are the input's bytes as a record alone. Columns must keep their invariants (col.h); what the door has
 * let through cannot be broken for the decoder.
 *
 * Built by replay.sh. Input: a byte of flags, then the request. Bits of the flags: 0 ignore-parse-errors, 1 and 2 the table, 3 only every second column is wanted.
 */
#include "decode/decode_int.h"
#include "source/otlp_int.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_otlp_pb.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_RECORDS = 4096 };

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
    const col_type *text = col_string(true), *num = col_simple(COL_INT, true), *big = col_simple(COL_BIGINT, true), *map = col_map(types, text, text, true);
    col_field small[] = {field("a", text), field("b", num)};
    const col_type *row = col_row(types, small, 2, true);
    col_field logs[] = {field("time_unix_nano", big), field("severity_text", text), field("body", text), field("attributes", map), field("resource_attributes", map), field("trace_id", text), field("span_id", text), field("scope_name", text)};
    col_field json[] = {field("time_unix_nano", col_sized(types, COL_TIMESTAMP_LTZ, 6, 0, true)), field("attributes", text), field("scope_attributes", text), field("resource_attributes", text), field("a", text), field("b", num)};
    col_field deep[] = {field("body", col_array(types, map, true)), field("a", row), field("b", col_map(types, text, col_array(types, big, true), true)), field("attributes", row), field("trace_id", col_sized(types, COL_VARBINARY, COL_MAX_LENGTH, 0, true)),
                        field("severity_number", num), field("flags", big)};
    col_field odd[] = {field("body", col_simple(COL_DOUBLE, true)), field("a", col_sized(types, COL_DECIMAL, 10, 2, true)), field("b", col_sized(types, COL_VARBINARY, COL_MAX_LENGTH, 0, true)), field("", col_simple(COL_BOOLEAN, true)),
                       field("severity_number", col_simple(COL_TINYINT, true)), field("event_name", text), field("scope_version", text), field("resource_schema_url", text), field("dropped_attributes_count", big)};
    set_schema(&schemas[0], logs, 8);
    set_schema(&schemas[1], json, 6);
    set_schema(&schemas[2], deep, 7);
    set_schema(&schemas[3], odd, 9);
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

static void decode(const fz_chunk *c, unsigned flags, bool sound) {
    const col_schema *s = &schemas[flags >> 1 & 3];
    fz_pair o = {.key = "otlp.ignore-parse-errors", .value = flags & 1 ? "true" : "false"};
    bool wanted[16];
    dec_decoder *d;
    dec_output out;
    fz_rejects rejects = {0};
    fz_error err;
    fz_arena *a = fz_arena_new();
    for (uint32_t i = 0; i < s->n; i++) wanted[i] = !(flags & 8) || i % 2 == 0;
    CHECK(dec_new("otlp", &o, 1, s, wanted, false, &d, &err) == FZ_OK);
    CHECK(dec_decode(d, c, a, &out, &rejects, &err) == FZ_OK);
    CHECK(out.n_rows + out.n_unparseable + rejects.n == c->n);
    if (sound)
        for (uint32_t i = 0; i < rejects.n; i++) CHECK(!strstr(rejects.v[i].message, "is broken"));
    for (uint32_t k = 0; k < s->n; k++) {
        CHECK(!out.cols[k] == !wanted[k]);
        if (!wanted[k]) continue;
        CHECK(out.cols[k]->len == out.n_rows);
        check_vec(out.cols[k]);
    }
    fz_buf text = {0};
    for (uint32_t i = 0; i < c->n && i < 16; i++) {
        text.len = 0;
        bool ok = dec_record_text(d, &c->rec[i], &text);
        CHECK(ok || !sound);
        CHECK(fz_utf8_valid((const char *)text.data, text.len));
    }
    fz_buf_free(&text);
    dec_free(d);
    fz_arena_free(a);
    fz_free(rejects.v);
}

static void decode_taken(otlp_batch *b, unsigned flags) {
    static fz_record rec[MAX_RECORDS];
    fz_chunk c = {.rec = rec};
    spool_frame *f = otlp_frames(b, 1);
    for (uint32_t i = 0; i < b->n_runs; i++) {
        for (uint32_t k = 0; k < f[i].n && c.n < MAX_RECORDS; k++)
            rec[c.n++] = (fz_record){.value = f[i].at[k], .value_len = (int32_t)f[i].len[k], .key = f[i].context, .key_len = f[i].context_len ? (int32_t)f[i].context_len : -1};
    }
    if (c.n) decode(&c, flags, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    if (!types) make_schemas();
    unsigned flags = data[0];
    size_t n = size - 1;
    uint8_t *copy = malloc(n + !n); /* a block of the exact size: a read past the end is seen */
    memcpy(copy, data + 1, n);
    otlp_batch b = {0};
    fz_error err;
    if (otlp_split(copy, n, 1 << 20, 1 << 20, &b, &err) == FZ_OK) {
        CHECK(b.n + b.refused == b.seen);
        decode_taken(&b, flags);
    }
    otlp_batch_free(&b);
    fz_record alone[2] = {{.value = copy, .value_len = (int32_t)n, .key_len = -1}, {.value = (const uint8_t *)"", .value_len = 0, .key = copy, .key_len = (int32_t)n}};
    fz_chunk c = {.rec = alone, .n = 2};
    decode(&c, flags, false);
    free(copy);
    return 0;
}

#include "replay.h"
