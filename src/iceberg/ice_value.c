/* Single values: from columns, equality, order, and the binary form of bounds (Appendix D). See iceberg.h. */
#include "iceberg/iceberg_int.h"

ice_value ice_value_of(const ice_type *t, const col_vec *v, uint32_t row) {
    ice_value r = {.kind = (uint8_t)t->kind};
    if (col_is_null(v, row)) {
        r.is_null = true;
        return r;
    }
    const col_vec *f = col_at(v, &row);
    switch (f->type->kind) {
    case COL_BOOLEAN: r.i = f->u8[row]; break;
    case COL_FLOAT: r.d = (double)f->f32[row]; break;
    case COL_DOUBLE: r.d = f->f64[row]; break;
    case COL_DECIMAL: r.dec = f->i128[row]; break;
    case COL_CHAR:
    case COL_VARCHAR:
    case COL_BINARY:
    case COL_VARBINARY: r.s = col_sv(f, row); break;
    case COL_TIME: r.i = (int64_t)f->i32[row] * 1000; break;
    case COL_BIGINT:
    case COL_INTERVAL_DAY:
    case COL_TIMESTAMP:
    case COL_TIMESTAMP_LTZ: r.i = f->i64[row]; break;
    case COL_TINYINT:
    case COL_SMALLINT:
    case COL_INT:
    case COL_DATE:
    case COL_INTERVAL_MONTH: r.i = f->i32[row]; break;
    default: r.is_null = true; /* nested values and NULL are no single values */
    }
    return r;
}

ice_value ice_value_clone(fz_arena *a, ice_value v) {
    if (!v.is_null && ice_has_bytes(v.kind)) v.s.p = fz_arena_strndup(a, v.s.p, v.s.n);
    return v;
}

/* Bits with all NaNs alike, so that equal values have equal bits. */
static uint64_t bits_of(double d) {
    uint64_t u;
    if (d != d) return 0x7ff8000000000000ull;
    memcpy(&u, &d, sizeof u);
    return u;
}

bool ice_value_eq(const ice_value *a, const ice_value *b) {
    if (a->is_null || b->is_null) return a->is_null == b->is_null;
    if (a->kind != b->kind) return false;
    if (ice_has_bytes(a->kind)) return fz_sv_eq(a->s, b->s);
    if (a->kind == ICE_FLOAT || a->kind == ICE_DOUBLE) return bits_of(a->d) == bits_of(b->d);
    return a->kind == ICE_DECIMAL ? a->dec == b->dec : a->i == b->i;
}

static int cmp_double(double a, double b) {
    if (a < b) return -1;
    if (a > b) return 1;
    bool na = a != a, nb = b != b;
    if (na || nb) return na - nb;
    return (__builtin_signbit(b) != 0) - (__builtin_signbit(a) != 0);
}

int ice_value_cmp(const ice_value *a, const ice_value *b) {
    if (ice_has_bytes(a->kind)) return fz_sv_cmp(a->s, b->s);
    if (a->kind == ICE_FLOAT || a->kind == ICE_DOUBLE) return cmp_double(a->d, b->d);
    if (a->kind == ICE_DECIMAL) return a->dec < b->dec ? -1 : a->dec > b->dec;
    return a->i < b->i ? -1 : a->i > b->i;
}

static uint64_t hash_value(uint64_t h, const ice_value *v) {
    uint64_t x;
    if (v->is_null) x = 0x9ae16a3b2f90404full;
    else if (ice_has_bytes(v->kind)) x = fz_hash(v->s.p, v->s.n);
    else if (v->kind == ICE_FLOAT || v->kind == ICE_DOUBLE) x = bits_of(v->d);
    else if (v->kind == ICE_DECIMAL) x = fz_hash(&v->dec, sizeof v->dec);
    else x = (uint64_t)v->i;
    h = (h ^ x) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

uint64_t ice_tuple_hash(ice_tuple t) {
    uint64_t h = 0x2545F4914F6CDD1Dull;
    for (uint32_t i = 0; i < t.n; i++) h = hash_value(h, &t.v[i]);
    return h;
}

bool ice_tuple_eq(ice_tuple a, ice_tuple b) {
    if (a.n != b.n) return false;
    for (uint32_t i = 0; i < a.n; i++)
        if (!ice_value_eq(&a.v[i], &b.v[i])) return false;
    return true;
}

ice_tuple ice_tuple_clone(fz_arena *a, ice_tuple t) {
    ice_value *v = FZ_ANEWN(a, ice_value, t.n);
    for (uint32_t i = 0; i < t.n; i++) v[i] = ice_value_clone(a, t.v[i]);
    return (ice_tuple){t.n, v};
}

ice_tuple ice_tuple_of(fz_arena *a, const ice_type *const *types, col_vec *const *vecs, uint32_t n, uint32_t row) {
    ice_value *v = FZ_ANEWN(a, ice_value, n);
    for (uint32_t i = 0; i < n; i++) v[i] = ice_value_clone(a, ice_value_of(types[i], vecs[i], row));
    return (ice_tuple){n, v};
}

/* Bytes of the fixed-width kinds; 0 for the others. */
static size_t width(ice_kind k) {
    switch (k) {
    case ICE_BOOLEAN: return 1;
    case ICE_INT:
    case ICE_DATE:
    case ICE_FLOAT: return 4;
    case ICE_LONG:
    case ICE_DOUBLE:
    case ICE_TIME:
    case ICE_TIMESTAMP:
    case ICE_TIMESTAMPTZ: return 8;
    default: return 0;
    }
}

static void put_le(uint8_t *out, uint64_t v, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static uint64_t raw_bits(ice_kind k, const ice_value *v) {
    if (k == ICE_FLOAT) {
        float f = (float)v->d;
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        return u;
    }
    if (k == ICE_DOUBLE) {
        uint64_t u;
        memcpy(&u, &v->d, sizeof u);
        return u;
    }
    return (uint64_t)v->i;
}

/* Shortest two's complement, big-endian, as BigInteger.toByteArray; returns the length, the bytes end out[16]. */
static size_t decimal_bytes(col_i128 v, uint8_t out[16]) {
    for (int i = 0; i < 16; i++) out[15 - i] = (uint8_t)((unsigned __int128)v >> (8 * i));
    size_t skip = 0;
    while (skip < 15 && ((out[skip] == 0 && !(out[skip + 1] & 0x80)) || (out[skip] == 0xff && (out[skip + 1] & 0x80)))) skip++;
    return 16 - skip;
}

fz_sv ice_value_encode(fz_arena *a, const ice_type *t, const ice_value *v) {
    if (v->is_null) return (fz_sv){NULL, 0};
    size_t w = width(t->kind);
    if (w) {
        uint8_t *out = fz_arena_alloc(a, w);
        put_le(out, raw_bits(t->kind, v), w);
        return (fz_sv){(char *)out, w};
    }
    if (t->kind == ICE_DECIMAL) {
        uint8_t b[16];
        size_t n = decimal_bytes(v->dec, b);
        return (fz_sv){fz_arena_strndup(a, (char *)b + 16 - n, n), n};
    }
    return (fz_sv){fz_arena_strndup(a, v->s.p, v->s.n), v->s.n};
}

static double double_of(const uint8_t *p, size_t n) {
    uint64_t u = get_le(p, n);
    if (n == 4) {
        uint32_t u4 = (uint32_t)u;
        float f;
        memcpy(&f, &u4, sizeof f);
        return (double)f;
    }
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

static col_i128 decimal_of(const uint8_t *p, size_t n) {
    unsigned __int128 u = n && (p[0] & 0x80) ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < n; i++) u = u << 8 | p[i];
    return (col_i128)u;
}

fz_status ice_value_decode(const ice_type *t, fz_sv b, ice_value *out, fz_error *err) {
    const uint8_t *p = (const uint8_t *)b.p;
    size_t w = width(t->kind);
    *out = (ice_value){.kind = (uint8_t)t->kind};
    if (!b.p) {
        out->is_null = true;
        return FZ_OK;
    }
    bool promoted = b.n == 4 && (t->kind == ICE_LONG || t->kind == ICE_DOUBLE);
    if (w ? b.n != w && !promoted : t->kind == ICE_DECIMAL ? b.n == 0 || b.n > 16 : t->kind == ICE_UUID ? b.n != 16 : !ice_has_bytes(t->kind)) {
        fz_buf text = {0};
        ice_type_text(&text, t);
        fz_status s = fz_fail(err, FZ_FATAL, "iceberg.manifest", "%zu bytes cannot be a value of type %s", b.n, fz_buf_cstr(&text));
        fz_buf_free(&text);
        return s;
    }
    if (t->kind == ICE_FLOAT || t->kind == ICE_DOUBLE) out->d = double_of(p, b.n);
    else if (t->kind == ICE_BOOLEAN) out->i = p[0] != 0;
    else if (w) out->i = b.n == 4 ? (int64_t)(int32_t)(uint32_t)get_le(p, 4) : (int64_t)get_le(p, 8);
    else if (t->kind == ICE_DECIMAL) out->dec = decimal_of(p, b.n);
    else out->s = b;
    return FZ_OK;
}

fz_status ice_bound_cmp(const ice_type *t, fz_sv a, fz_sv b, int *out, fz_error *err) {
    ice_value x, y;
    FZ_TRY(ice_value_decode(t, a, &x, err));
    FZ_TRY(ice_value_decode(t, b, &y, err));
    if (x.is_null || y.is_null) return fz_fail(err, FZ_FATAL, "iceberg.manifest", "a bound is missing");
    *out = ice_value_cmp(&x, &y);
    return FZ_OK;
}
