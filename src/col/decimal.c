/* Decimal arithmetic on 128-bit unscaled values (decimal.h). Parsing and text stand in decimaltext.c.
 *
 * Invariants
 *  1. Magnitudes are worked on unsigned; the sign is put back at the end. Half goes up in magnitude (RoundingMode.HALF_UP).
 *  2. Products and scaled dividends need up to 77 digits: they are 256 bits wide (u256). Nothing here overflows silently.
 */
#include "col/decimal.h"

#include "col/numtext.h"

__extension__ typedef unsigned __int128 u128;
typedef struct u256 { u128 hi, lo; } u256;

static u128 upow10(int n) {
    u128 r = 1;
    while (n-- > 0) r *= 10;
    return r;
}

col_i128 dcm_pow10(int n) {
    static const int64_t small[19] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
                                      1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
                                      1000000000000000000};
    if (n <= 18) return small[n];
    if (n <= 36) return (col_i128)small[n - 18] * small[18];
    return (col_i128)small[n - 36] * small[18] * small[18];
}

static u128 magnitude(col_i128 v) { return v < 0 ? 0 - (u128)v : (u128)v; }

bool dcm_fits(col_i128 v, int precision) { return magnitude(v) < (u128)dcm_pow10(precision); }

static int digits_of(u128 v) {
    int n = 0;
    for (; v >= 1000000000; v /= 1000000000) n += 9;
    for (; v; v /= 10) n++;
    return n;
}

static u256 mul_wide(u128 a, u128 b) {
    uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
    u128 p00 = (u128)a0 * b0, p01 = (u128)a0 * b1, p10 = (u128)a1 * b0, p11 = (u128)a1 * b1;
    u128 mid = (p00 >> 64) + (uint64_t)p01 + (uint64_t)p10;
    return (u256){p11 + (p01 >> 64) + (p10 >> 64) + (mid >> 64), mid << 64 | (uint64_t)p00};
}

static int cmp256(u256 a, u256 b) {
    if (a.hi != b.hi) return a.hi < b.hi ? -1 : 1;
    return a.lo < b.lo ? -1 : a.lo > b.lo;
}

static u256 sub256(u256 a, u256 b) { return (u256){a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo}; }

static u256 shl256(u256 a, unsigned n) {
    if (n == 0) return a;
    if (n >= 128) return (u256){a.lo << (n - 128), 0};
    return (u256){a.hi << n | a.lo >> (128 - n), a.lo << n};
}

static u256 shr1(u256 a) { return (u256){a.hi >> 1, a.lo >> 1 | a.hi << 127}; }

static unsigned bits128(u128 v) {
    uint64_t h = (uint64_t)(v >> 64);
    if (h) return 128 - (unsigned)__builtin_clzll(h);
    return (uint64_t)v ? 64 - (unsigned)__builtin_clzll((uint64_t)v) : 0;
}

static unsigned bits256(u256 v) { return v.hi ? 128 + bits128(v.hi) : bits128(v.lo); }

/* a / b by shifting and subtracting; the short case takes the machine's division. */
static u256 div256(u256 a, u256 b, u256 *rest) {
    u256 q = {0, 0};
    if (!a.hi && !b.hi) {
        *rest = (u256){0, a.lo % b.lo};
        return (u256){0, a.lo / b.lo};
    }
    unsigned na = bits256(a), nb = bits256(b);
    if (na >= nb) {
        u256 d = shl256(b, na - nb);
        for (unsigned i = na - nb + 1; i-- > 0; d = shr1(d)) {
            q = shl256(q, 1);
            if (cmp256(a, d) >= 0) {
                a = sub256(a, d);
                q.lo |= 1;
            }
        }
    }
    *rest = a;
    return q;
}

/* v / 10^n, half up. n may be large. */
static u256 drop_digits(u256 v, int n) {
    if (n > 76) return (u256){0, 0};
    u256 p = n <= 38 ? (u256){0, upow10(n)} : mul_wide(upow10(38), upow10(n - 38)), rest;
    u256 q = div256(v, p, &rest);
    if (cmp256(shl256(rest, 1), p) >= 0 && (++q.lo == 0)) q.hi++;
    return q;
}

/* The value v * 10^-from with sign, brought to (precision, scale). */
static bool settle(bool neg, u256 v, int from, int precision, int scale, col_i128 *out) {
    u128 limit = upow10(precision);
    if (from > scale) {
        v = drop_digits(v, from - scale);
    } else if (from < scale && (v.hi || v.lo)) {
        if (v.hi || scale - from > 38 || v.lo >= limit) return false;
        v = mul_wide(v.lo, upow10(scale - from));
    }
    if (v.hi || v.lo >= limit) return false;
    *out = neg ? -(col_i128)v.lo : (col_i128)v.lo;
    return true;
}

bool dcm_rescale(col_i128 v, int from_scale, int precision, int scale, col_i128 *out) {
    if (from_scale == scale) return dcm_fits(v, precision) ? (*out = v, true) : false;
    return settle(v < 0, (u256){0, magnitude(v)}, from_scale, precision, scale, out);
}

bool dcm_from_long(int64_t v, int precision, int scale, col_i128 *out) { return dcm_rescale(v, 0, precision, scale, out); }

bool dcm_from_double(double v, int precision, int scale, col_i128 *out) {
    if (v != v || v - v != 0) return false;
    char text[NT_TEXT_MAX];
    size_t n = nt_double_text(v, text);
    return dcm_parse((fz_sv){text, n}, precision, scale, out);
}

double dcm_to_double(col_i128 v, int precision, int scale) {
    if (precision <= 18) return (double)(int64_t)v / (double)(int64_t)dcm_pow10(scale < 19 ? scale : 18); /* Flink's short form divides */
    char text[DCM_TEXT_MAX + 1];
    double out = 0;
    size_t n = dcm_text(v, scale, text);
    return nt_parse_double((fz_sv){text, n}, &out) ? out : 0;
}

int64_t dcm_to_long(col_i128 v, int scale) { return (int64_t)(uint64_t)(u128)(v / dcm_pow10(scale)); }

/* a and b at the larger of their scales, as 256-bit magnitudes: sums of 38 digits shifted by 38 fit. */
static u256 raise(col_i128 v, int by) { return mul_wide(magnitude(v), upow10(by)); }

static bool add_signed(col_i128 a, int as, col_i128 b, int bs, bool b_neg, int precision, int scale, col_i128 *out) {
    int s = as > bs ? as : bs;
    u256 x = raise(a, s - as), y = raise(b, s - bs);
    bool a_neg = a < 0;
    if (a_neg == b_neg) {
        u256 sum = {x.hi + y.hi, x.lo + y.lo};
        sum.hi += sum.lo < x.lo;
        return settle(a_neg, sum, s, precision, scale, out);
    }
    int c = cmp256(x, y);
    return settle(c >= 0 ? a_neg : b_neg, c >= 0 ? sub256(x, y) : sub256(y, x), s, precision, scale, out);
}

bool dcm_add(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out) {
    return add_signed(a, as, b, bs, b < 0, precision, scale, out);
}

bool dcm_sub(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out) {
    return add_signed(a, as, b, bs, !(b < 0), precision, scale, out);
}

bool dcm_mul(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out) {
    return settle((a < 0) != (b < 0), mul_wide(magnitude(a), magnitude(b)), as + bs, precision, scale, out);
}

bool dcm_div(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out) {
    if (a == 0) return *out = 0, true;
    u128 x = magnitude(a), y = magnitude(b);
    /* the quotient of x * 10^k has 37 or 38 digits; one digit more in the first case */
    int k = 37 + digits_of(y) - digits_of(x);
    u256 rest, d = {0, y};
    u256 scaled = k <= 38 ? mul_wide(x, upow10(k)) : (u256){0, 0};
    if (k > 38) { /* x is short then: x * 10^(k - 38) fits 128 bits */
        scaled = mul_wide(x * upow10(k - 38), upow10(38));
    }
    u256 q = div256(scaled, d, &rest);
    if (q.lo < upow10(37)) {
        k++;
        u256 ten = shl256(rest, 1), eight = shl256(rest, 3);
        u256 more = {ten.hi + eight.hi, ten.lo + eight.lo};
        more.hi += more.lo < ten.lo;
        u256 digit = div256(more, d, &rest);
        q.lo = q.lo * 10 + digit.lo;
    }
    if (cmp256(shl256(rest, 1), d) >= 0) q.lo++;
    return settle((a < 0) != (b < 0), q, k + as - bs, precision, scale, out);
}

bool dcm_mod(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out) {
    int s = as > bs ? as : bs;
    u256 rest, q = div256(raise(a, s - as), raise(b, s - bs), &rest);
    while (q.hi || q.lo >= upow10(38)) { /* the quotient has to be exact in 38 digits, or Java gives up */
        u256 digit;
        q = div256(q, (u256){0, 10}, &digit);
        if (digit.lo) return false;
    }
    return settle(a < 0, rest, s, precision, scale, out);
}

int dcm_compare(col_i128 a, int as, col_i128 b, int bs) {
    if (as == bs) return a < b ? -1 : a > b;
    if ((a < 0) != (b < 0)) return a < 0 ? -1 : 1;
    int s = as > bs ? as : bs;
    int c = cmp256(raise(a, s - as), raise(b, s - bs));
    return a < 0 ? -c : c;
}

void dcm_round_type(int precision, int scale, int r, int *out_precision, int *out_scale) {
    if (r >= scale) {
        *out_precision = precision, *out_scale = scale;
    } else if (r < 0) {
        int p = 1 + precision - scale;
        *out_precision = p < DCM_MAX_PRECISION ? p : DCM_MAX_PRECISION, *out_scale = 0;
    } else {
        *out_precision = 1 + precision - scale + r, *out_scale = r;
    }
}

bool dcm_round(col_i128 v, int precision, int scale, int r, col_i128 *out, int *out_scale) {
    int p;
    dcm_round_type(precision, scale, r, &p, out_scale);
    if (r >= scale) return *out = v, true;
    u256 q = drop_digits((u256){0, magnitude(v)}, scale - r);
    return settle(v < 0, q, r, p, *out_scale, out);
}

col_i128 dcm_truncate(col_i128 v, int scale, int r, int *out_scale) {
    *out_scale = r >= scale ? scale : r > 0 ? r : 0;
    if (r >= scale) return v;
    if (scale - r > 38) return 0;
    v /= dcm_pow10(scale - r);
    return r < 0 ? v * dcm_pow10(-r) : v;
}

col_i128 dcm_floor(col_i128 v, int scale) {
    col_i128 p = dcm_pow10(scale), q = v / p;
    return v % p < 0 ? q - 1 : q;
}

col_i128 dcm_ceil(col_i128 v, int scale) {
    col_i128 p = dcm_pow10(scale), q = v / p;
    return v % p > 0 ? q + 1 : q;
}
