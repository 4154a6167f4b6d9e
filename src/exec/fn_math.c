/* Kernels of the mathematical functions, of random numbers and of digits in other bases. */
#include "exec/exec_int.h"
#include <math.h>

static double math1(int16_t what, double x) {
    switch ((sql_math)what) {
    case SQL_MATH_SQRT: return sqrt(x);
    case SQL_MATH_LN: return log(x);
    case SQL_MATH_LOG10: return log10(x);
    case SQL_MATH_LOG2: return log(x) / log(2.0);
    case SQL_MATH_EXP: return exp(x);
    case SQL_MATH_SIN: return sin(x);
    case SQL_MATH_SINH: return sinh(x);
    case SQL_MATH_COS: return cos(x);
    case SQL_MATH_COSH: return cosh(x);
    case SQL_MATH_TAN: return tan(x);
    case SQL_MATH_TANH: return tanh(x);
    case SQL_MATH_COT: return 1.0 / tan(x);
    case SQL_MATH_ASIN: return asin(x);
    case SQL_MATH_ACOS: return acos(x);
    case SQL_MATH_ATAN: return atan(x);
    case SQL_MATH_DEGREES: return x * 57.29577951308232;
    case SQL_MATH_RADIANS: return x * 0.017453292519943295;
    }
    return x;
}
static void k_math1(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->f64[i] = math1(c->fn->variant, ex_f64(c, 0, i));
}
static void k_power(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->f64[i] = pow(ex_f64(c, 0, i), ex_f64(c, 1, i));
}
static void k_atan2(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->f64[i] = atan2(ex_f64(c, 0, i), ex_f64(c, 1, i));
}
static void k_log(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->f64[i] = c->n_args == 1 ? log(ex_f64(c, 0, i)) : log(ex_f64(c, 1, i)) / log(ex_f64(c, 0, i));
}
static void k_pi(ex_call *c) { c->out->f64[0] = 3.141592653589793; }
static void k_e(ex_call *c) { c->out->f64[0] = 2.718281828459045; }

/* java.util.Random, so that a seed gives Flink's numbers. */
typedef struct random_state { uint64_t seed; } random_state;
static random_state *random_of(ex_call *c, bool seeded) {
    if (!*c->slot) {
        random_state *r = FZ_ANEW(c->keep, random_state);
        if (seeded) r->seed = (uint64_t)ex_i64(c, 0, 0);
        else fz_random(&r->seed, sizeof r->seed);
        r->seed = (r->seed ^ 0x5DEECE66DULL) & ((1ULL << 48) - 1);
        *c->slot = r;
    }
    return *c->slot;
}
static int32_t next_bits(random_state *r, int bits) {
    r->seed = (r->seed * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
    return (int32_t)(r->seed >> (48 - bits));
}
static int32_t next_bound(random_state *r, int32_t bound) {
    int32_t v = next_bits(r, 31), m = bound - 1;
    if ((bound & m) == 0) return (int32_t)(((int64_t)bound * v) >> 31);
    for (int32_t u = v; (int32_t)((uint32_t)u - (uint32_t)(v = u % bound) + (uint32_t)m) < 0;) u = next_bits(r, 31);
    return v;
}
static void k_rand(ex_call *c) {
    if (c->n_args && ex_is_null(c, 0, 0)) {
        for (uint32_t i = 0; i < c->n; i++) ex_put_null(c, i);
        return;
    }
    random_state *r = random_of(c, c->n_args == 1);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t high = next_bits(r, 26);
        c->out->f64[i] = (double)((high << 27) + next_bits(r, 27)) * 0x1.0p-53;
    }
}
static void k_rand_integer(ex_call *c) {
    uint32_t which = c->n_args - 1;
    random_state *r = random_of(c, c->n_args == 2 && !ex_is_null(c, 0, 0));
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t bound = ex_is_null(c, which, i) ? 0 : ex_i64(c, which, i);
        if (bound < 1 || bound > INT32_MAX) ex_fail_row(c, i, "arithmetic.range", "RAND_INTEGER: the bound must be positive");
        else c->out->i32[i] = next_bound(r, (int32_t)bound);
    }
}
static void k_uuid(ex_call *c) {
    char text[37];
    for (uint32_t i = 0; i < c->n; i++) {
        fz_uuid4(text);
        ex_put(c, i, text, 36);
    }
}

/* ---- digits -------------------------------------------------------------------------------------------------------------------- */

static void digits(ex_call *c, unsigned bits) {
    static const char hex[] = "0123456789ABCDEF";
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        uint64_t v = (uint64_t)ex_int(c, 0, i), mask = (1u << bits) - 1;
        char text[64];
        size_t at = sizeof text;
        do {
            text[--at] = hex[v & mask];
            v >>= bits;
        } while (v);
        ex_put(c, i, text + at, sizeof text - at);
    }
}
static void k_bin(ex_call *c) { digits(c, 1); }
static void k_hex(ex_call *c) {
    if (!col_is_text(ex_kind(c, 0))) {
        digits(c, 4);
        return;
    }
    static const char hex[] = "0123456789ABCDEF";
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        char *o = ex_put_begin(c, i, s.n * 2);
        for (size_t k = 0; k < s.n; k++) {
            o[2 * k] = hex[(unsigned char)s.p[k] >> 4];
            o[2 * k + 1] = hex[s.p[k] & 15];
        }
        ex_put_end(c, i, s.n * 2);
    }
}
static int hex_value(char ch) { return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1; }
static void k_unhex(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        char *o = ex_put_begin(c, i, s.n / 2 + 1);
        size_t odd = s.n % 2, at = 0;
        bool ok = true;
        for (size_t k = 0; k < s.n && ok; k += k == 0 && odd ? 1 : 2) { /* an odd first digit is a byte of its own */
            bool single = k == 0 && odd;
            int hi = single ? 0 : hex_value(s.p[k]), lo = hex_value(single ? s.p[0] : s.p[k + 1]);
            ok = hi >= 0 && lo >= 0;
            if (ok) o[at++] = (char)(hi << 4 | lo);
        }
        if (ok) ex_put_end(c, i, at);
        else ex_put_null(c, i);
    }
}

const ex_kernel_entry ex_kernels_math[] = {
    {SQL_K_MATH1, k_math1}, {SQL_K_POWER, k_power}, {SQL_K_ATAN2, k_atan2}, {SQL_K_LOG, k_log}, {SQL_K_PI, k_pi}, {SQL_K_E, k_e}, {SQL_K_RAND, k_rand},
    {SQL_K_RAND_INTEGER, k_rand_integer}, {SQL_K_UUID, k_uuid}, {SQL_K_BIN, k_bin}, {SQL_K_HEX, k_hex}, {SQL_K_UNHEX, k_unhex}, {SQL_K_NONE, NULL},
};
