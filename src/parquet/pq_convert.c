/* Physical values to the form of the wanted type, with the promotions that Iceberg allows (int to long, float to double, wider
 * decimals) and the units other writers use for times. */
#include "parquet/pq_read_int.h"

static fz_status mismatch(const pq_node *n, const pq_field *f, fz_error *err) {
    static const char *const names[] = {"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
    fz_buf b = {0};
    col_type_text(&b, f->type);
    fz_status s = fz_fail(err, FZ_USER, "parquet.type-mismatch", "column '%s' of type %s cannot be read from Parquet type %s (logical %d, converted %d)", f->name, fz_buf_cstr(&b),
                          names[n->type], (int)n->logical, (int)n->converted);
    fz_buf_free(&b);
    return s;
}
static bool is_decimal(const pq_node *n) { return n->logical == PQ_LOGICAL_DECIMAL || n->converted == PQ_CONV_DECIMAL; }

static col_vec *vector(fz_arena *a, const col_type *t, uint32_t n) {
    col_vec *v = FZ_ANEW(a, col_vec);
    v->type = t;
    v->len = n;
    return v;
}
static int64_t floor_div(int64_t x, int64_t by) { return x / by - (x % by < 0); }
static int unit_of(const pq_node *n) {
    if (n->unit) return n->unit;
    return n->converted == PQ_CONV_TIME_MILLIS || n->converted == PQ_CONV_TIMESTAMP_MILLIS ? 1 : 2;
}
static fz_status time_values(const pq_node *n, const pq_values *v, const pq_field *f, col_vec *o, fz_arena *a, fz_error *err) {
    int unit = unit_of(n);
    if (n->type == PQ_INT32 && unit != 1) return mismatch(n, f, err);
    o->i32 = fz_arena_alloc(a, (size_t)v->n * 4);
    for (uint32_t i = 0; i < v->n; i++) {
        int64_t x;
        if (n->type == PQ_INT32) { int32_t y; memcpy(&y, v->fix + (size_t)i * 4, 4); x = y; }
        else {
            memcpy(&x, v->fix + (size_t)i * 8, 8);
            x = unit == 1 ? x : floor_div(x, unit == 2 ? 1000 : 1000000);
        }
        if (x < 0 || x >= 86400000) return pq_corrupt(err, "a time of day is outside of the day");
        o->i32[i] = (int32_t)x;
    }
    return FZ_OK;
}
static fz_status timestamp_values(const pq_node *n, const pq_values *v, col_vec *o, fz_arena *a, fz_error *err) {
    int unit = unit_of(n);
    if (unit == 2) { o->data = v->fix; return FZ_OK; }
    o->i64 = fz_arena_alloc(a, (size_t)v->n * 8);
    for (uint32_t i = 0; i < v->n; i++) {
        int64_t x;
        memcpy(&x, v->fix + (size_t)i * 8, 8);
        if (unit == 3) x = floor_div(x, 1000);
        else if (__builtin_mul_overflow(x, 1000, &x)) return pq_corrupt(err, "a timestamp is too far away");
        o->i64[i] = x;
    }
    return FZ_OK;
}
static bool big_endian(const uint8_t *p, uint32_t n, col_i128 *out) {
    unsigned __int128 x = n && (p[0] & 0x80) ? ~(unsigned __int128)0 : 0;
    uint8_t sign = (uint8_t)x;
    for (; n > 16; p++, n--)
        if (*p != sign || ((p[1] ^ sign) & 0x80)) return false;
    for (uint32_t i = 0; i < n; i++) x = x << 8 | p[i];
    *out = (col_i128)x;
    return true;
}
static fz_status decimal_values(const pq_node *n, const pq_values *v, const pq_field *f, col_vec *o, fz_arena *a, fz_error *err) {
    if (!is_decimal(n) || n->scale != f->type->scale || n->precision > f->type->precision) return mismatch(n, f, err);
    o->i128 = fz_arena_alloc(a, (size_t)v->n * 16);
    for (uint32_t i = 0; i < v->n; i++) {
        bool ok = true;
        if (n->type == PQ_INT32) { int32_t x; memcpy(&x, v->fix + (size_t)i * 4, 4); o->i128[i] = x; }
        else if (n->type == PQ_INT64) { int64_t x; memcpy(&x, v->fix + (size_t)i * 8, 8); o->i128[i] = x; }
        else if (n->type == PQ_FLBA) ok = big_endian(v->fix + (size_t)i * v->width, v->width, &o->i128[i]);
        else if (n->type == PQ_BYTE_ARRAY) ok = big_endian(v->data + v->off[i], v->off[i + 1] - v->off[i], &o->i128[i]);
        else return mismatch(n, f, err);
        if (!ok) return pq_corrupt(err, "a decimal has more than 38 digits");
    }
    return FZ_OK;
}
static bool all_ascii(const uint8_t *p, size_t n) {
    uint64_t any = 0, w;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) { memcpy(&w, p + i, 8); any |= w; }
    for (; i < n; i++) any |= p[i];
    return !(any & 0x8080808080808080ull);
}
static fz_status byte_values(const pq_node *n, pq_values *v, const pq_field *f, col_vec *o, fz_arena *a, fz_error *err) {
    if (n->type == PQ_FLBA) {
        if ((uint64_t)v->n * v->width > UINT32_MAX) return fz_fail(err, FZ_FATAL, "parquet.too-large", "column '%s' of a row group is too large", f->name);
        o->off = fz_arena_alloc(a, ((size_t)v->n + 1) * 4);
        for (uint32_t i = 0; i <= v->n; i++) o->off[i] = i * v->width;
        o->data = v->fix;
    } else if (n->type == PQ_BYTE_ARRAY) {
        o->off = v->off ? v->off : fz_arena_calloc(a, 1, 4);
        o->data = v->data;
    } else return mismatch(n, f, err);
    if (!o->data) o->data = fz_arena_alloc(a, 0);
    if (!col_is_text(f->type->kind) || all_ascii((const uint8_t *)o->bytes, o->off[v->n])) return FZ_OK;
    for (uint32_t i = 0; i < v->n; i++)
        if (!fz_utf8_valid(o->bytes + o->off[i], o->off[i + 1] - o->off[i])) return fz_fail(err, FZ_FATAL, "parquet.invalid-utf8", "column '%s' has text that is not UTF-8", f->name);
    return FZ_OK;
}
static fz_status wider(const pq_node *n, const pq_values *v, col_vec *o, fz_arena *a) { /* int to long, float to double */
    o->data = fz_arena_alloc(a, (size_t)v->n * 8);
    for (uint32_t i = 0; i < v->n; i++) {
        if (n->type == PQ_INT32) { int32_t x; memcpy(&x, v->fix + (size_t)i * 4, 4); o->i64[i] = x; }
        else { float x; memcpy(&x, v->fix + (size_t)i * 4, 4); o->f64[i] = (double)x; }
    }
    return FZ_OK;
}
static fz_status flat_values(const pq_node *n, pq_values *v, const pq_field *f, col_vec *o, fz_arena *a, fz_error *err) {
    if (n->type == PQ_INT96) return fz_fail(err, FZ_USER, "parquet.int96", "column '%s' has physical type INT96, which is not supported", f->name);
    #define SAME_IF(cond) do { if (!(cond)) break; o->data = v->fix ? v->fix : fz_arena_alloc(a, 0); return FZ_OK; } while (0)
    bool number = !is_decimal(n);
    switch (f->type->kind) {
    case COL_BOOLEAN: SAME_IF(n->type == PQ_BOOLEAN); break;
    case COL_TINYINT: case COL_SMALLINT: case COL_INT: case COL_DATE: SAME_IF(n->type == PQ_INT32 && number); break;
    case COL_BIGINT:
        if (n->type == PQ_INT32 && number) return wider(n, v, o, a);
        SAME_IF(n->type == PQ_INT64 && number);
        break;
    case COL_FLOAT: SAME_IF(n->type == PQ_FLOAT); break;
    case COL_DOUBLE:
        if (n->type == PQ_FLOAT) return wider(n, v, o, a);
        SAME_IF(n->type == PQ_DOUBLE);
        break;
    case COL_TIME:
        if (n->type == PQ_INT32 || n->type == PQ_INT64) return time_values(n, v, f, o, a, err);
        break;
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ:
        if (n->type == PQ_INT64 && number) return timestamp_values(n, v, o, a, err);
        break;
    case COL_DECIMAL: return decimal_values(n, v, f, o, a, err);
    case COL_CHAR: case COL_VARCHAR: case COL_BINARY: case COL_VARBINARY: return byte_values(n, v, f, o, a, err);
    default: break;
    }
    #undef SAME_IF
    return mismatch(n, f, err);
}
fz_status pq_values_convert(const pq_node *node, pq_values *v, const pq_field *wanted, fz_arena *a, col_vec **out, fz_error *err) {
    *out = vector(a, wanted->type, v->n);
    if (!v->idx) return flat_values(node, v, wanted, *out, a, err);
    col_vec *d = vector(a, wanted->type, v->dict->n);
    FZ_TRY(flat_values(node, v->dict, wanted, d, a, err));
    (*out)->idx = v->idx;
    (*out)->dict = d;
    return FZ_OK;
}
