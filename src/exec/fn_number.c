/* Kernels of arithmetic. Whole numbers wrap, as in Java; decimals that do not fit are NULL, as in Flink. */
#include "col/decimal.h"
#include "col/numtext.h"
#include "exec/exec_int.h"
#include <math.h>

/* Narrow kinds are kept in 32 bits, but wrap in their own width. */
static int32_t wrap(col_kind k, int64_t v) { return k == COL_TINYINT ? (int8_t)v : k == COL_SMALLINT ? (int16_t)v : (int32_t)v; }
static void put_int(ex_call *c, uint32_t i, int64_t v) {
    if (col_width(c->type->kind) == 8) c->out->i64[i] = v;
    else c->out->i32[i] = wrap(c->type->kind, v);
}
/* By pointer: the value is written while the arguments of the call are evaluated. */
static void put_dec(ex_call *c, uint32_t i, bool ok, const col_i128 *v) {
    if (ok) c->out->i128[i] = *v;
    else ex_put_null(c, i);
}
static int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

typedef bool (*dec_op)(col_i128, int, col_i128, int, int, int, col_i128 *);
static void decimal_op(ex_call *c, dec_op op) {
    int as = c->arg[0]->type->scale, bs = c->arg[1]->type->scale;
    for (uint32_t i = 0; i < c->n; i++) {
        col_i128 r = 0;
        if (ex_live(c, i)) put_dec(c, i, op(ex_dec(c, 0, i), as, ex_dec(c, 1, i), bs, c->type->precision, c->type->scale, &r), &r);
    }
}
#define ARITH(name, fn, OP, dcm)                                                                                       \
    static void name(ex_call *c) {                                                                                     \
        switch (c->type->kind) {                                                                                       \
        case COL_DOUBLE: for (uint32_t i = 0; i < c->n; i++) c->out->f64[i] = ex_f64(c, 0, i) OP ex_f64(c, 1, i); break; \
        case COL_FLOAT: for (uint32_t i = 0; i < c->n; i++) c->out->f32[i] = ex_f32(c, 0, i) OP ex_f32(c, 1, i); break;  \
        case COL_DECIMAL: decimal_op(c, dcm); break;                                                                   \
        default: for (uint32_t i = 0; i < c->n; i++) put_int(c, i, fn(ex_int(c, 0, i), ex_int(c, 1, i)));               \
        }                                                                                                              \
    }
ARITH(k_plus, add, +, dcm_add)
ARITH(k_minus, sub, -, dcm_sub)
ARITH(k_times, mul, *, dcm_mul)

static void by_zero(ex_call *c, uint32_t i) { ex_fail_row(c, i, "arithmetic.divide-by-zero", "/ by zero"); }

static void k_divide(ex_call *c) {
    int as = c->arg[0]->type->scale, bs = c->arg[1]->type->scale;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        col_i128 r = 0;
        switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = ex_f64(c, 0, i) / ex_f64(c, 1, i); break;
        case COL_FLOAT: c->out->f32[i] = ex_f32(c, 0, i) / ex_f32(c, 1, i); break;
        case COL_DECIMAL:
            if (!ex_dec(c, 1, i)) by_zero(c, i);
            else put_dec(c, i, dcm_div(ex_dec(c, 0, i), as, ex_dec(c, 1, i), bs, c->type->precision, c->type->scale, &r), &r);
            break;
        default: {
            int64_t a = ex_int(c, 0, i), b = ex_int(c, 1, i);
            if (!b) by_zero(c, i);
            else put_int(c, i, b == -1 ? sub(0, a) : a / b);
        }
        }
    }
}
static void k_mod(ex_call *c) {
    int as = c->arg[0]->type->scale, bs = c->arg[1]->type->scale;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        col_i128 r = 0;
        switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = fmod(ex_f64(c, 0, i), ex_f64(c, 1, i)); break;
        case COL_FLOAT: c->out->f32[i] = fmodf(ex_f32(c, 0, i), ex_f32(c, 1, i)); break;
        case COL_DECIMAL:
            if (!ex_dec(c, 1, i)) by_zero(c, i);
            else put_dec(c, i, dcm_mod(ex_dec(c, 0, i), as, ex_dec(c, 1, i), bs, c->type->precision, c->type->scale, &r), &r);
            break;
        default: {
            int64_t a = ex_int(c, 0, i), b = ex_int(c, 1, i);
            if (!b) by_zero(c, i);
            else put_int(c, i, b == -1 ? 0 : a % b);
        }
        }
    }
}

/* ---- one argument -------------------------------------------------------------------------------------------------------------- */

static void k_neg(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = -ex_f64(c, 0, i); break;
        case COL_FLOAT: c->out->f32[i] = -ex_f32(c, 0, i); break;
        case COL_DECIMAL: c->out->i128[i] = -ex_dec(c, 0, i); break;
        default: put_int(c, i, sub(0, ex_int(c, 0, i)));
        }
}
static void k_abs(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = fabs(ex_f64(c, 0, i)); break;
        case COL_FLOAT: c->out->f32[i] = fabsf(ex_f32(c, 0, i)); break;
        case COL_DECIMAL: { col_i128 v = ex_dec(c, 0, i); c->out->i128[i] = v < 0 ? -v : v; break; }
        default: { int64_t v = ex_int(c, 0, i); put_int(c, i, v < 0 ? sub(0, v) : v); }
        }
}
static void k_sign(ex_call *c) {
    col_i128 one = c->type->kind == COL_DECIMAL ? dcm_pow10(c->type->scale) : 0;
    for (uint32_t i = 0; i < c->n; i++) switch (c->type->kind) {
        case COL_DOUBLE: { double v = ex_f64(c, 0, i); c->out->f64[i] = v > 0 ? 1 : v < 0 ? -1 : v; break; }
        case COL_FLOAT: { float v = ex_f32(c, 0, i); c->out->f32[i] = v > 0 ? 1 : v < 0 ? -1 : v; break; }
        case COL_DECIMAL: { col_i128 v = ex_dec(c, 0, i); c->out->i128[i] = v > 0 ? one : v < 0 ? -one : 0; break; }
        default: { int64_t v = ex_int(c, 0, i); put_int(c, i, v > 0 ? 1 : v < 0 ? -1 : 0); }
        }
}
static void floor_ceil(ex_call *c, bool up) {
    int scale = c->arg[0]->type->scale;
    for (uint32_t i = 0; i < c->n; i++) switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = up ? ceil(ex_f64(c, 0, i)) : floor(ex_f64(c, 0, i)); break;
        case COL_FLOAT: c->out->f32[i] = up ? ceilf(ex_f32(c, 0, i)) : floorf(ex_f32(c, 0, i)); break;
        case COL_DECIMAL: {
            if (!ex_live(c, i)) break;
            col_i128 v = up ? dcm_ceil(ex_dec(c, 0, i), scale) : dcm_floor(ex_dec(c, 0, i), scale);
            put_dec(c, i, dcm_fits(v, c->type->precision), &v);
            break;
        }
        default: put_int(c, i, ex_int(c, 0, i));
        }
}
static void k_floor(ex_call *c) { floor_ceil(c, false); }
static void k_ceil(ex_call *c) { floor_ceil(c, true); }

/* ---- ROUND, TRUNCATE ----------------------------------------------------------------------------------------------------------- */

/* BigDecimal.valueOf(v) rounded HALF_UP to `digits` of the fraction: on the digits of the shortest text. */
static double round_double(double v, int64_t digits) {
    if (!isfinite(v) || v == 0) return v == 0 ? 0 : v;
    char text[NT_TEXT_MAX], d[NT_TEXT_MAX + 1];
    size_t n = nt_double_text(v, text), m = 0, i = text[0] == '-';
    int64_t exp10 = 0, point = -1;
    for (; i < n && text[i] != 'E'; i++) {
        if (text[i] == '.') point = (int64_t)m;
        else d[m++] = text[i];
    }
    if (i < n) {
        bool neg = text[i + 1] == '-';
        for (i += 1 + (size_t)neg; i < n; i++) exp10 = exp10 * 10 + (text[i] - '0');
        if (neg) exp10 = -exp10;
    }
    int64_t keep = (point < 0 ? (int64_t)m : point) + exp10 + digits; /* how many of the digits stay */
    if (keep >= (int64_t)m) return v;
    if (keep < 0) return 0;
    bool up = d[keep] >= '5';
    col_i128 whole = 0;
    for (int64_t k = 0; k < keep; k++) whole = whole * 10 + (d[k] - '0');
    whole += up;
    char out[64], w[DCM_TEXT_MAX];
    size_t wn = dcm_text(whole, 0, w);
    size_t at = 0;
    if (v < 0) out[at++] = '-';
    memcpy(out + at, w, wn);
    at += wn;
    out[at++] = 'e';
    char e[NT_TEXT_MAX];
    size_t en = nt_int_text(-digits, e);
    memcpy(out + at, e, en);
    double r = 0;
    (void)fz_parse_f64((fz_sv){out, at + en}, &r);
    return r;
}

/* Whole numbers, digits < 0. The result wraps to 64 bits as BigDecimal.longValue does. */
static int64_t round_int(int64_t v, int64_t digits, bool half_up) {
    if (digits >= 0) return v;
    if (digits < -19) return 0;
    col_i128 unit = dcm_pow10((int)-digits), x = v < 0 ? -(col_i128)v : v, q = x / unit;
    if (half_up && x % unit * 2 >= unit) q++;
    x = q * unit;
    return (int64_t)(uint64_t)(unsigned __int128)(v < 0 ? -x : x);
}
static int64_t digits_of(const ex_call *c, uint32_t i) { return c->n_args > 1 ? ex_int(c, 1, i) : 0; }

static void k_round(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t digits = digits_of(c, i);
        switch (c->type->kind) {
        case COL_DOUBLE: c->out->f64[i] = round_double(ex_f64(c, 0, i), digits); break;
        case COL_FLOAT: c->out->f32[i] = (float)round_double((double)ex_f32(c, 0, i), digits); break;
        case COL_DECIMAL: {
            const col_type *t = c->arg[0]->type;
            int scale;
            col_i128 v, r = 0;
            bool ok = dcm_round(ex_dec(c, 0, i), t->precision, t->scale, (int)digits, &v, &scale);
            if (ok) ok = dcm_rescale(v, scale, c->type->precision, c->type->scale, &r);
            put_dec(c, i, ok, &r);
            break;
        }
        default: put_int(c, i, round_int(ex_int(c, 0, i), digits, true));
        }
    }
}
/* Floating point goes through DECIMAL(38, 18) in Flink; what does not fit there fails. */
static void truncate_double(ex_call *c, uint32_t i, double v, int64_t digits) {
    col_i128 d;
    int scale;
    if (!dcm_from_double(v, 38, 18, &d)) {
        ex_fail_row(c, i, "arithmetic.range", "TRUNCATE: the number is too large");
        return;
    }
    if (digits > 18) digits = 18;
    if (digits < -38) digits = -38;
    d = dcm_truncate(d, 18, (int)digits, &scale);
    double r = dcm_to_double(d, 38, scale);
    if (c->type->kind == COL_FLOAT) c->out->f32[i] = (float)r;
    else c->out->f64[i] = r;
}
static void k_truncate(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t digits = digits_of(c, i);
        switch (c->type->kind) {
        case COL_DOUBLE: truncate_double(c, i, ex_f64(c, 0, i), digits); break;
        case COL_FLOAT: truncate_double(c, i, (double)ex_f32(c, 0, i), digits); break;
        case COL_DECIMAL: {
            int scale;
            col_i128 r = 0, v = dcm_truncate(ex_dec(c, 0, i), c->arg[0]->type->scale, (int)digits, &scale);
            put_dec(c, i, dcm_rescale(v, scale, c->type->precision, c->type->scale, &r), &r);
            break;
        }
        default: put_int(c, i, round_int(ex_int(c, 0, i), digits, false));
        }
    }
}

const ex_kernel_entry ex_kernels_number[] = {
    {SQL_K_PLUS, k_plus}, {SQL_K_MINUS, k_minus}, {SQL_K_TIMES, k_times}, {SQL_K_DIVIDE, k_divide}, {SQL_K_MOD, k_mod}, {SQL_K_NEG, k_neg}, {SQL_K_ABS, k_abs},
    {SQL_K_SIGN, k_sign}, {SQL_K_FLOOR, k_floor}, {SQL_K_CEIL, k_ceil}, {SQL_K_ROUND, k_round}, {SQL_K_TRUNCATE, k_truncate}, {SQL_K_NONE, NULL},
};
