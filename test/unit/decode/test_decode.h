/* What the tests of this room share: schemas from text, one-record chunks, values as Flink's CAST(x AS STRING) has them. */
#ifndef TEST_DECODE_H
#define TEST_DECODE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "col/datetime.h"
#include "col/decimal.h"
#include "col/numtext.h"
#include "decode/decode.h"

#define FLINK_SCHEMA "s STRING, n INT, b BIGINT, d DOUBLE, f BOOLEAN, t TIMESTAMP(6), dt DATE, arr ARRAY<STRING>, m MAP<STRING,STRING>, r ROW<a STRING, b INT>"

/* ---- schemas: "name TYPE, name TYPE"; types as in Flink, without backquotes ---- */
static inline const char *skip_blanks(const char *s) { return s + strspn(s, " "); }

static inline const col_type *parse_type(fz_arena *a, const char **s);

static inline uint32_t parse_fields(fz_arena *a, const char **s, col_field *out) {
    uint32_t n = 0;
    for (;;) {
        *s = skip_blanks(*s);
        size_t len = strcspn(*s, " ");
        out[n].name = fz_arena_strndup(a, *s, len);
        out[n].comment = NULL;
        *s = skip_blanks(*s + len);
        out[n++].type = parse_type(a, s);
        *s = skip_blanks(*s);
        if (**s != ',') return n;
        ++*s;
    }
}

static inline const col_type *parse_type(fz_arena *a, const char **s) {
    static const struct { const char *name; col_kind kind; int p; int scale; } known[] = {
        {"STRING", COL_VARCHAR, COL_MAX_LENGTH, 0}, {"BYTES", COL_VARBINARY, COL_MAX_LENGTH, 0}, {"VARCHAR", COL_VARCHAR, 1, 0}, {"CHAR", COL_CHAR, 1, 0},
        {"TINYINT", COL_TINYINT, 0, 0}, {"SMALLINT", COL_SMALLINT, 0, 0}, {"INT", COL_INT, 0, 0}, {"BIGINT", COL_BIGINT, 0, 0},
        {"FLOAT", COL_FLOAT, 0, 0}, {"DOUBLE", COL_DOUBLE, 0, 0}, {"BOOLEAN", COL_BOOLEAN, 0, 0}, {"DATE", COL_DATE, 0, 0},
        {"TIME", COL_TIME, 0, 0}, {"TIMESTAMP_LTZ", COL_TIMESTAMP_LTZ, 6, 0}, {"TIMESTAMP", COL_TIMESTAMP, 6, 0}, {"DECIMAL", COL_DECIMAL, 10, 0}};
    size_t len = strcspn(*s, " ,<>()");
    fz_sv w = {*s, len};
    *s += len;
    if (fz_sv_eq(w, FZ_SV("ARRAY"))) {
        ++*s;
        const col_type *e = parse_type(a, s);
        ++*s;
        return col_array(a, e, true);
    }
    if (fz_sv_eq(w, FZ_SV("MAP"))) {
        ++*s;
        const col_type *k = parse_type(a, s);
        ++*s;
        const col_type *v = parse_type(a, s);
        ++*s;
        return col_map(a, k, v, true);
    }
    if (fz_sv_eq(w, FZ_SV("ROW"))) {
        col_field f[16];
        ++*s;
        uint32_t n = parse_fields(a, s, f);
        ++*s;
        return col_row(a, f, n, true);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!fz_sv_eq(w, fz_sv_of(known[i].name))) continue;
        int p = known[i].p, scale = known[i].scale;
        if (**s == '(') {
            char *end;
            p = (int)strtol(*s + 1, &end, 10);
            if (*end == ',') scale = (int)strtol(end + 1, &end, 10);
            *s = end + 1;
        }
        return col_sized(a, known[i].kind, p, scale, true);
    }
    fail_msg("type '%.*s'", (int)w.n, w.p);
    return NULL;
}

static inline const col_schema *parse_schema(fz_arena *a, const char *s) {
    col_field f[64];
    col_schema *r = FZ_ANEW(a, col_schema);
    r->n = parse_fields(a, &s, f);
    col_field *copy = FZ_ANEWN(a, col_field, r->n);
    memcpy(copy, f, r->n * sizeof *f);
    r->fields = copy;
    return r;
}

/* ---- chunks ---- */
typedef struct decoded { fz_arena *a; dec_output out; fz_rejects rejects; dec_decoder *dec; } decoded;

static inline void decode_into(decoded *d, fz_record *rec, uint32_t n) {
    fz_error err;
    fz_chunk c = {.n = n, .rec = rec};
    d->a = fz_arena_new();
    if (dec_decode(d->dec, &c, d->a, &d->out, &d->rejects, &err) != FZ_OK) fail_msg("decode: %s", err.message);
    assert_int_equal(d->out.n_rows + d->out.n_unparseable + d->rejects.n, n);
}

static inline void decoded_free(decoded *d) {
    fz_arena_free(d->a);
    fz_free(d->rejects.v);
    dec_free(d->dec);
}

/* One record; len -1: null. The bytes are copied to a block of their exact size, so that ASan sees reads past the end. */
static inline decoded decode_one(const char *format, const fz_pair *opts, size_t n_opts, const col_schema *schema, const void *doc, int32_t len) {
    decoded d = {0};
    fz_error err;
    if (dec_new(format, opts, n_opts, schema, NULL, false, &d.dec, &err) != FZ_OK) fail_msg("open: %s", err.message);
    uint8_t *copy = malloc(len > 0 ? (size_t)len : 1);
    if (len > 0) memcpy(copy, doc, (size_t)len);
    fz_record r = {.value = len < 0 ? NULL : copy, .value_len = len, .key_len = -1};
    decode_into(&d, &r, 1);
    free(copy);
    return d;
}

/* ---- text of values ---- */
static inline void cast_text(fz_buf *b, const col_vec *v, uint32_t i) {
    char t[64];
    size_t n = 0;
    if (col_is_null(v, i)) {
        fz_buf_puts(b, "NULL");
        return;
    }
    const col_vec *f = v;
    switch (v->type->kind) {
    case COL_BOOLEAN: fz_buf_puts(b, col_bool(v, i) ? "TRUE" : "FALSE"); return;
    case COL_TINYINT: case COL_SMALLINT: case COL_INT: n = nt_int_text(col_i32(v, i), t); break;
    case COL_BIGINT: n = nt_int_text(col_i64(v, i), t); break;
    case COL_FLOAT: n = nt_float_text(col_f32(v, i), t); break;
    case COL_DOUBLE: n = nt_double_text(col_f64(v, i), t); break;
    case COL_DECIMAL: n = dcm_text(col_dec(v, i), v->type->scale, t); break;
    case COL_DATE: n = dt_date_text(col_i32(v, i), t); break;
    case COL_TIME: n = dt_time_text(col_i32(v, i), v->type->precision, t); break;
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: n = dt_timestamp_text(col_i64(v, i), v->type->precision, t); break;
    case COL_ARRAY: case COL_MAP:
        f = col_at(v, &i);
        fz_buf_putc(b, v->type->kind == COL_MAP ? '{' : '[');
        for (uint32_t k = f->off[i]; k < f->off[i + 1]; k++) {
            if (k > f->off[i]) fz_buf_puts(b, ", ");
            cast_text(b, f->child[0], k);
            if (v->type->kind == COL_MAP) {
                fz_buf_putc(b, '=');
                cast_text(b, f->child[1], k);
            }
        }
        fz_buf_putc(b, v->type->kind == COL_MAP ? '}' : ']');
        return;
    case COL_ROW:
        f = col_at(v, &i);
        fz_buf_putc(b, '(');
        for (uint32_t k = 0; k < f->n_child; k++) {
            if (k) fz_buf_puts(b, ", ");
            cast_text(b, f->child[k], i);
        }
        fz_buf_putc(b, ')');
        return;
    default: {
        fz_sv s = col_sv(v, i);
        fz_buf_append(b, s.p, s.n);
        return;
    }
    }
    fz_buf_append(b, t, n);
}
#endif
