/* Order, equality and hashes of values. See col.h. */
#include "col/col.h"

static int cmp_i64(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

/* Java's Double.compare: by value, then -0.0 below 0.0 and every NaN equal and above all. */
static int cmp_f64(double a, double b) {
    if (a < b) return -1;
    if (a > b) return 1;
    bool na = a != a, nb = b != b;
    if (na || nb) return na - nb;
    return (__builtin_signbit(b) != 0) - (__builtin_signbit(a) != 0);
}

static int cmp_range(const col_vec *a, uint32_t i, const col_vec *b, uint32_t j) {
    uint32_t n = a->off[i + 1] - a->off[i], m = b->off[j + 1] - b->off[j];
    for (uint32_t k = 0; k < n && k < m; k++)
        for (uint32_t c = 0; c < a->n_child; c++) {
            int r = col_compare(a->child[c], a->off[i] + k, b->child[c], b->off[j] + k);
            if (r) return r;
        }
    return cmp_i64(n, m);
}

int col_compare(const col_vec *va, uint32_t i, const col_vec *vb, uint32_t j) {
    bool na = col_is_null(va, i), nb = col_is_null(vb, j);
    if (na || nb) return na - nb;
    const col_vec *a = col_at(va, &i), *b = col_at(vb, &j);
    switch (a->type->kind) {
    case COL_NULL: return 0;
    case COL_BOOLEAN: return cmp_i64(a->u8[i], b->u8[j]);
    case COL_FLOAT: return cmp_f64((double)a->f32[i], (double)b->f32[j]);
    case COL_DOUBLE: return cmp_f64(a->f64[i], b->f64[j]);
    case COL_DECIMAL: return a->i128[i] < b->i128[j] ? -1 : a->i128[i] > b->i128[j];
    case COL_CHAR:
    case COL_VARCHAR:
    case COL_BINARY:
    case COL_VARBINARY: return fz_sv_cmp(col_sv(a, i), col_sv(b, j));
    case COL_ARRAY:
    case COL_MAP: return cmp_range(a, i, b, j);
    case COL_ROW:
        for (uint32_t k = 0; k < a->n_child; k++) {
            int r = col_compare(a->child[k], i, b->child[k], j);
            if (r) return r;
        }
        return 0;
    default: break;
    }
    return col_width(a->type->kind) == 4 ? cmp_i64(a->i32[i], b->i32[j]) : cmp_i64(a->i64[i], b->i64[j]);
}

bool col_equal(const col_vec *a, uint32_t i, const col_vec *b, uint32_t j) { return col_compare(a, i, b, j) == 0; }

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

uint64_t col_hash(const col_vec *v, uint32_t i) {
    if (col_is_null(v, i)) return 0x5bd1e995;
    const col_vec *f = col_at(v, &i);
    switch (f->type->kind) {
    case COL_BOOLEAN: return mix(1, f->u8[i]);
    case COL_FLOAT: {
        double d = (double)f->f32[i];
        return d != d ? 7 : fz_hash(&d, sizeof d);
    }
    case COL_DOUBLE: return f->f64[i] != f->f64[i] ? 7 : fz_hash(&f->f64[i], sizeof f->f64[i]);
    case COL_DECIMAL: return fz_hash(&f->i128[i], sizeof f->i128[i]);
    case COL_CHAR:
    case COL_VARCHAR:
    case COL_BINARY:
    case COL_VARBINARY: return fz_hash(f->bytes + f->off[i], f->off[i + 1] - f->off[i]);
    case COL_ARRAY:
    case COL_MAP: {
        uint64_t h = 3;
        for (uint32_t k = f->off[i]; k < f->off[i + 1]; k++)
            for (uint32_t c = 0; c < f->n_child; c++) h = mix(h, col_hash(f->child[c], k));
        return h;
    }
    case COL_ROW: {
        uint64_t h = 5;
        for (uint32_t k = 0; k < f->n_child; k++) h = mix(h, col_hash(f->child[k], i));
        return h;
    }
    default: break;
    }
    return col_width(f->type->kind) == 4 ? mix(2, (uint32_t)f->i32[i]) : mix(2, (uint64_t)f->i64[i]);
}
