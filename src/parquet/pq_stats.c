/* Order of values, bounds of pages, and how bounds are cut.
 *
 * Invariants
 *  1. NaN is never a bound. -0.0 is below +0.0 (as Java's compare); what is written as min is -0.0 for either zero and +0.0
 *     as max (pq_zero_bound), as Parquet's rules for floating point want; Iceberg's metrics keep the zero that was there.
 *  2. A cut lower bound is a prefix; a cut upper bound is the least successor of a prefix, or there is none.
 * Source: parquet.thrift (ColumnOrder, Statistics), Iceberg spec appendix D and its metrics modes. */
#include "parquet/parquet_int.h"
#include <math.h>

static inline uint64_t key8(const uint8_t *p, uint32_t n) { /* first eight bytes as a big-endian number, zero padded */
    uint64_t x = 0;
    memcpy(&x, p, n < 8 ? n : 8);
    return __builtin_bswap64(x);
}
static inline int cmp_bytes(const uint8_t *a, uint32_t an, const uint8_t *b, uint32_t bn) {
    uint32_t n = an < bn ? an : bn;
    int r = n ? memcmp(a, b, n) : 0;
    return r ? r : (an > bn) - (an < bn);
}
static inline int cmp_f64(double a, double b) {
    if (a < b) return -1;
    if (a > b) return 1;
    return (int)(signbit(b) != 0) - (int)(signbit(a) != 0);
}
int pq_value_cmp(pq_order o, const uint8_t *a, uint32_t an, const uint8_t *b, uint32_t bn) {
    switch (o) {
    case PQ_ORD_BOOL: return (int)*a - (int)*b;
    case PQ_ORD_I32: { int32_t x, y; memcpy(&x, a, 4); memcpy(&y, b, 4); return (x > y) - (x < y); }
    case PQ_ORD_I64: { int64_t x, y; memcpy(&x, a, 8); memcpy(&y, b, 8); return (x > y) - (x < y); }
    case PQ_ORD_F32: { float x, y; memcpy(&x, a, 4); memcpy(&y, b, 4); return cmp_f64((double)x, (double)y); }
    case PQ_ORD_F64: { double x, y; memcpy(&x, a, 8); memcpy(&y, b, 8); return cmp_f64(x, y); }
    case PQ_ORD_SIGNED_BYTES: /* two's complement, equal lengths: the sign decides, then unsigned bytes do */
        if ((*a ^ *b) & 0x80) return *a & 0x80 ? -1 : 1;
        return cmp_bytes(a, an, b, bn);
    default: return cmp_bytes(a, an, b, bn);
    }
}
bool pq_value_is_nan(pq_order o, const uint8_t *p) {
    if (o == PQ_ORD_F32) { float x; memcpy(&x, p, 4); return isnan(x); }
    if (o == PQ_ORD_F64) { double x; memcpy(&x, p, 8); return isnan(x); }
    return false;
}
void pq_range_add(pq_range *r, pq_order o, const uint8_t *p, uint32_t n) {
    if (pq_value_is_nan(o, p)) { r->nans++; return; }
    if (!r->min) {
        r->min = r->max = p;
        r->min_n = r->max_n = n;
        return;
    }
    if (pq_value_cmp(o, p, n, r->min, r->min_n) < 0) { r->min = p; r->min_n = n; }
    else if (pq_value_cmp(o, p, n, r->max, r->max_n) > 0) { r->max = p; r->max_n = n; }
}
void pq_edges_add(pq_edges *e, const uint8_t *base, uint32_t at, bool any) {
    uint32_t n, m;
    memcpy(&n, base + at, 4);
    const uint8_t *p = base + at + 4;
    uint64_t k = key8(p, n);
    if (!any) {
        *e = (pq_edges){k, k, at, at};
    } else if (k <= e->lo) {
        memcpy(&m, base + e->min, 4);
        if (k < e->lo || cmp_bytes(p, n, base + e->min + 4, m) < 0) { e->min = at; e->lo = k; }
        if (k == e->hi) { /* all prefixes are the same so far */
            memcpy(&m, base + e->max, 4);
            if (cmp_bytes(p, n, base + e->max + 4, m) > 0) e->max = at;
        }
    } else if (k >= e->hi) {
        memcpy(&m, base + e->max, 4);
        if (k > e->hi || cmp_bytes(p, n, base + e->max + 4, m) > 0) { e->max = at; e->hi = k; }
    }
}
void pq_edges_range(pq_range *r, const pq_edges *e, const uint8_t *base) {
    memcpy(&r->min_n, base + e->min, 4);
    memcpy(&r->max_n, base + e->max, 4);
    r->min = base + e->min + 4;
    r->max = base + e->max + 4;
}
#define RANGE_INTS(T)                                                      \
    do {                                                                   \
        T lo, hi, x;                                                       \
        uint32_t at_lo = 0, at_hi = 0;                                     \
        memcpy(&lo, p, sizeof lo);                                         \
        hi = lo;                                                           \
        for (uint32_t i = 1; i < n; i++) {                                 \
            memcpy(&x, p + (size_t)i * sizeof x, sizeof x);                \
            if (x < lo) { lo = x; at_lo = i; }                             \
            if (x > hi) { hi = x; at_hi = i; }                             \
        }                                                                  \
        r->min = p + (size_t)at_lo * sizeof x;                             \
        r->max = p + (size_t)at_hi * sizeof x;                             \
        r->min_n = r->max_n = sizeof x;                                    \
    } while (0)
void pq_range_plain(pq_range *r, const pq_leaf *l, const uint8_t *p, uint32_t n) {
    if (!n) return;
    switch ((pq_order)l->order) {
    case PQ_ORD_I32: RANGE_INTS(int32_t); return;
    case PQ_ORD_I64: RANGE_INTS(int64_t); return;
    default: break;
    }
    for (uint32_t i = 0; i < n; i++) pq_range_add(r, (pq_order)l->order, p + (size_t)i * l->width, l->width);
}
void pq_zero_bound(pq_order o, uint8_t *p, uint32_t n, bool upper) {
    uint8_t any = 0;
    if (o != PQ_ORD_F32 && o != PQ_ORD_F64) return;
    for (uint32_t i = 0; i < n; i++) any |= i + 1 < n ? p[i] : (uint8_t)(p[i] & 0x7F);
    if (!any) p[n - 1] = upper ? 0 : 0x80;
}
void pq_bounds_merge(pq_bounds *b, pq_order o, const uint8_t *min, uint32_t min_n, const uint8_t *max, uint32_t max_n) {
    if (!b->set || pq_value_cmp(o, min, min_n, b->min.p, b->min.n) < 0) pq_bytes_set(&b->min, min, min_n);
    if (!b->set || pq_value_cmp(o, max, max_n, b->max.p, b->max.n) > 0) pq_bytes_set(&b->max, max, max_n);
    b->set = true;
}
void pq_bounds_free(pq_bounds *b) {
    pq_bytes_free(&b->min);
    pq_bytes_free(&b->max);
    b->set = false;
}

uint32_t pq_cut(const uint8_t *p, uint32_t n, uint32_t limit, pq_cut_unit unit) {
    if (n <= limit) return n;
    if (unit == PQ_CUT_BYTES) return limit;
    if (unit == PQ_CUT_UTF8) {
        while (limit && (p[limit] & 0xC0) == 0x80) limit--;
        return limit;
    }
    uint32_t i = 0;
    for (uint32_t seen = 0; i < n; i++)
        if ((p[i] & 0xC0) != 0x80 && seen++ == limit) break;
    return i;
}
static bool increment_text(uint8_t *p, uint32_t *n) {
    while (*n) {
        uint32_t start = *n - 1;
        while (start && (p[start] & 0xC0) == 0x80) start--;
        size_t i = 0;
        uint32_t cp = fz_utf8_next((const char *)p + start, *n - start, &i) + 1;
        if (cp >= 0xD800 && cp <= 0xDFFF) cp = 0xE000; /* surrogates are no characters */
        if (cp <= 0x10FFFF) {
            *n = start + (uint32_t)fz_utf8_put((char *)p + start, cp);
            return true;
        }
        *n = start;
    }
    return false;
}
bool pq_increment(uint8_t *p, uint32_t *n, bool text) {
    if (text) return increment_text(p, n);
    while (*n) {
        if (p[*n - 1] != 0xFF) {
            p[*n - 1]++;
            return true;
        }
        --*n;
    }
    return false;
}
