/* Text of doubles and floats as JDK 17 prints them (nt_double_text, nt_float_text in numtext.h).
 *
 * Java before 19 does not always print the shortest text: it generates digits of B / S until the rest is within half a unit in the last place (M) of a
 * number with those digits, with a symmetric test, at least two digits where an exponent is printed, and whole numbers on a path of their own that drops
 * the digits which the format cannot hold. That is done here with exact integers: 128-bit ones where they suffice, long ones elsewhere.
 *
 * Invariants
 *  1. v = B / S * 10^dec with 1 <= B / S < 10 (or < 1 when the estimate of dec was one too high, which the first digit shows).
 *  2. big.n is the number of limbs in use; big.v[n - 1] != 0 unless n == 0.
 */
#include "col/numtext.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;
#define BIG_LIMBS 76 /* 5^326 * 2^1076 has 1833 bits; the digits' factor and the carry come on top */
typedef struct big { uint32_t n, v[BIG_LIMBS]; } big;

typedef struct digits { char d[24]; int n, exp; } digits; /* 0.d1d2d3... * 10^exp */

static void big_set(big *b, uint64_t x) {
    b->n = 0;
    for (; x; x >>= 32) b->v[b->n++] = (uint32_t)x;
}

static void big_mul(big *b, uint32_t m) {
    uint64_t carry = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        carry += (uint64_t)b->v[i] * m;
        b->v[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) b->v[b->n++] = (uint32_t)carry;
}

static void big_mul_pow5(big *b, int e) {
    for (; e >= 13; e -= 13) big_mul(b, 1220703125u);
    uint32_t m = 1;
    while (e-- > 0) m *= 5;
    big_mul(b, m);
}

static void big_shift(big *b, int by) {
    uint32_t words = (uint32_t)by / 32, bits = (uint32_t)by % 32;
    if (!b->n) return;
    if (bits) big_mul(b, 1u << bits);
    memmove(b->v + words, b->v, b->n * sizeof *b->v);
    memset(b->v, 0, words * sizeof *b->v);
    b->n += words;
}

static int big_cmp(const big *a, const big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
    return 0;
}

static void big_sub(big *a, const big *b) { /* a >= b */
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        borrow += (int64_t)a->v[i] - (i < b->n ? b->v[i] : 0);
        a->v[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->n && !a->v[a->n - 1]) a->n--;
}

static int big_cmp_sum(const big *a, const big *b, const big *c) { /* a + b against c */
    big s = *a;
    uint64_t carry = 0;
    for (uint32_t i = 0; i < b->n || (carry && i < s.n) || i < s.n; i++) {
        carry += (uint64_t)(i < s.n ? s.v[i] : 0) + (i < b->n ? b->v[i] : 0);
        s.v[i] = (uint32_t)carry;
        if (i >= s.n) s.n = i + 1;
        carry >>= 32;
    }
    if (carry) s.v[s.n++] = (uint32_t)carry;
    return big_cmp(&s, c);
}

/* The state of digit generation in either width. */
typedef struct gen {
    bool wide;
    int narrow; /* 32 or 64: Java computes in that width, and M may wrap around; 0: exact */
    u128 b, s, m;
    big B, S, M, T; /* T = 10 S */
} gen;

/* One step: the next digit; afterwards b = 10 (b mod s), m = 10 m. */
static int gen_digit(gen *g) {
    int q = 0;
    if (!g->wide) {
        q = (int)(g->b / g->s);
        g->b = g->b % g->s * 10;
        g->m *= 10;
        if (g->narrow == 64) g->m = (u128)(int64_t)g->m; /* sign kept: see gen_low */
        if (g->narrow == 32) g->m = (u128)(int32_t)g->m;
        return q;
    }
    while (big_cmp(&g->B, &g->S) >= 0) big_sub(&g->B, &g->S), q++;
    big_mul(&g->B, 10);
    big_mul(&g->M, 10);
    return q;
}

/* M that wrapped to a negative number is larger than anything, as a huge unsigned one is here too. */
static bool gen_low(const gen *g) {
    if (g->wide) return big_cmp(&g->B, &g->M) < 0;
    return g->b < g->m || (g->narrow && g->m == 0);
}

/* Java's paths differ in one point more: with long integers the upper end counts as inside. */
static bool gen_high(const gen *g) {
    bool closed = !g->narrow;
    if (g->narrow && (g->m >> 127 || g->m == 0)) return true;
    if (g->narrow == 64) return (int64_t)(g->b + g->m) > (int64_t)(g->s * 10);
    if (g->narrow == 32) return (int32_t)(g->b + g->m) > (int32_t)(g->s * 10);
    int c = g->wide ? big_cmp_sum(&g->B, &g->M, &g->T) : g->b + g->m > g->s * 10 ? 1 : g->b + g->m == g->s * 10 ? 0 : -1;
    return closed ? c >= 0 : c > 0;
}

static int gen_half(gen *g) { /* the rest against half of a digit */
    if (!g->wide) return g->b * 2 > g->s * 10 ? 1 : g->b * 2 == g->s * 10 ? 0 : -1;
    big_mul(&g->B, 2);
    return big_cmp(&g->B, &g->T);
}

static void round_up(digits *d) {
    int i = d->n - 1;
    while (i >= 0 && d->d[i] == '9') d->d[i--] = '0';
    if (i < 0) {
        d->d[0] = '1';
        d->exp++;
    } else {
        d->d[i]++;
    }
}

static int bits_of_pow5(int e) { /* as Java estimates: exact up to 5^26, three a power beyond */
    if (e > 26) return e * 3;
    return e == 0 ? 0 : (int)((double)e * 2.321928094887362) + 1;
}

static u128 pow5(int e) {
    u128 r = 1;
    while (e-- > 0) r *= 5;
    return r;
}

static void gen_start(gen *g, uint64_t frac, int bits, int b5, int b2, int s5, int s2, int m2) {
    int need_b = bits + b2 + (int)(b5 * 2.33) + 1, need_s = s2 + (int)(s5 * 2.33) + 1, need_m = m2 + (int)(b5 * 2.33) + 1;
    g->wide = need_b > 120 || need_s > 120 || need_m > 120;
    if (!g->wide) {
        g->b = (u128)frac * pow5(b5) << b2;
        g->s = pow5(s5) << s2;
        g->m = pow5(b5) << m2;
        return;
    }
    big_set(&g->B, frac);
    big_mul_pow5(&g->B, b5);
    big_shift(&g->B, b2);
    big_set(&g->S, 1);
    big_mul_pow5(&g->S, s5);
    big_shift(&g->S, s2);
    big_set(&g->M, 1);
    big_mul_pow5(&g->M, b5);
    big_shift(&g->M, m2);
    g->T = g->S;
    big_mul(&g->T, 10);
}

/* Digits of frac * 2^(bin_exp - 52), where bit 52 of frac is set; sig: bits of precision that the format gives this number. */
static void general_digits(uint64_t frac, int bin_exp, int sig, digits *out) {
    int tail = __builtin_ctzll(frac), n_frac = 53 - tail;
    int tiny = n_frac - bin_exp - 1 > 0 ? n_frac - bin_exp - 1 : 0;
    uint64_t mantissa = (frac & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
    double d2;
    memcpy(&d2, &mantissa, sizeof d2);
    int dec = (int)floor((d2 - 1.5) * 0.289529654 + 0.176091259 + (double)bin_exp * 0.301029995663981);

    int b5 = dec < 0 ? -dec : 0, b2 = b5 + tiny + bin_exp;
    int s5 = dec > 0 ? dec : 0, s2 = s5 + tiny;
    int m2 = b2 - sig;
    b2 -= n_frac - 1;
    int common = b2 < s2 ? b2 : s2;
    b2 -= common, s2 -= common, m2 -= common;
    if (n_frac == 1) m2--; /* below a power of two the neighbours are half as far */
    if (m2 < 0) b2 -= m2, s2 -= m2, m2 = 0;
    int bits_b = n_frac + b2 + bits_of_pow5(b5), bits_s = s2 + 1 + bits_of_pow5(s5 + 1);

    gen g;
    g.narrow = bits_b < 32 && bits_s < 32 ? 32 : bits_b < 64 && bits_s < 64 ? 64 : 0;
    gen_start(&g, frac >> tail, n_frac, b5, b2, s5, s2, m2);
    int q = gen_digit(&g);
    bool low = gen_low(&g), high = gen_high(&g);
    out->n = 0;
    if (q == 0 && !high) dec--;
    else out->d[out->n++] = (char)('0' + q);
    if (dec < -3 || dec >= 8) low = high = false; /* an exponent will be printed: two digits at least */
    while (!low && !high) {
        q = gen_digit(&g);
        low = gen_low(&g), high = gen_high(&g);
        out->d[out->n++] = (char)('0' + q);
    }
    out->exp = dec + 1;
    if (!high) return;
    int half = low ? gen_half(&g) : 1;
    if (half > 0 || (half == 0 && (out->d[out->n - 1] & 1))) round_up(out);
}

/* Whole numbers below 2^63: their decimal digits, less those that the format cannot tell apart. */
static void whole_digits(uint64_t v, int insignificant, digits *out) {
    out->exp = 0;
    if (insignificant) {
        uint64_t p = 1;
        for (int i = 0; i < insignificant; i++) p *= 10;
        uint64_t rest = v % p;
        v = v / p + (rest >= p / 2);
        out->exp = insignificant;
    }
    char tmp[24];
    int n = 0;
    for (; v; v /= 10) tmp[n++] = (char)('0' + v % 10);
    out->exp += n;
    out->n = 0;
    while (n) out->d[out->n++] = tmp[--n];
    while (out->n > 1 && out->d[out->n - 1] == '0') out->n--;
}

static void make_digits(uint64_t frac, int bin_exp, int sig, digits *out) {
    int n_frac = 53 - __builtin_ctzll(frac);
    if (n_frac > bin_exp + 1 || bin_exp > 62 || bin_exp < -21) {
        general_digits(frac, bin_exp, sig, out);
        return;
    }
    int p = bin_exp > sig ? bin_exp - sig - 1 : 0;
    uint64_t whole = bin_exp >= 52 ? frac << (bin_exp - 52) : frac >> (52 - bin_exp);
    whole_digits(whole, p > 1 ? (int)(p * 0.30102999566398120) : 0, out);
}

static size_t layout(bool neg, const digits *d, char *out) {
    size_t k = 0;
    if (neg) out[k++] = '-';
    if (d->exp > 0 && d->exp < 8) {
        for (int i = 0; i < d->exp; i++) out[k++] = i < d->n ? d->d[i] : '0';
        out[k++] = '.';
        if (d->n <= d->exp) out[k++] = '0';
        for (int i = d->exp; i < d->n; i++) out[k++] = d->d[i];
        return k;
    }
    if (d->exp <= 0 && d->exp > -3) {
        out[k++] = '0';
        out[k++] = '.';
        for (int i = d->exp; i < 0; i++) out[k++] = '0';
        for (int i = 0; i < d->n; i++) out[k++] = d->d[i];
        return k;
    }
    out[k++] = d->d[0];
    out[k++] = '.';
    if (d->n == 1) out[k++] = '0';
    for (int i = 1; i < d->n; i++) out[k++] = d->d[i];
    out[k++] = 'E';
    return k + nt_int_text(d->exp - 1, out + k);
}

static size_t special(bool neg, bool nan, bool inf, char *out) {
    const char *s = nan ? "NaN" : inf ? (neg ? "-Infinity" : "Infinity") : neg ? "-0.0" : "0.0";
    size_t n = strlen(s);
    memcpy(out, s, n);
    return n;
}

size_t nt_double_text(double v, char out[NT_TEXT_MAX]) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bool neg = bits >> 63;
    int e = (int)(bits >> 52 & 0x7FF), sig = 53;
    uint64_t frac = bits & 0xFFFFFFFFFFFFFULL;
    if (e == 0x7FF || (e == 0 && frac == 0)) return special(neg, e && frac, e != 0, out);
    if (e == 0) {
        int lead = __builtin_clzll(frac), shift = lead - 11;
        frac <<= shift;
        e = 1 - shift;
        sig = 64 - lead;
    } else {
        frac |= 1ULL << 52;
    }
    digits d;
    make_digits(frac, e - 1023, sig, &d);
    return layout(neg, &d, out);
}

size_t nt_float_text(float v, char out[NT_TEXT_MAX]) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bool neg = bits >> 31;
    int e = (int)(bits >> 23 & 0xFF), sig = 24;
    uint32_t frac = bits & 0x7FFFFF;
    if (e == 0xFF || (e == 0 && frac == 0)) return special(neg, e && frac, e != 0, out);
    if (e == 0) {
        int lead = __builtin_clz(frac), shift = lead - 8;
        frac <<= shift;
        e = 1 - shift;
        sig = 32 - lead;
    } else {
        frac |= 1u << 23;
    }
    digits d;
    make_digits((uint64_t)frac << 29, e - 127, sig, &d);
    return layout(neg, &d, out);
}
