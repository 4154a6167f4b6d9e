/* Text of decimals (decimal.h): BigDecimal's grammar and forms, and Flink's own short parser.
 *
 * Invariants
 *  1. Rounding needs the digits down to the first one dropped only, so that no number is too long to be parsed.
 */
#include "col/decimal.h"
#include "col/numtext.h"

__extension__ typedef unsigned __int128 u128;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Exponent of s from i on: sign and at least one digit; outside of 32 bits is no number for BigDecimal. */
static bool parse_exponent(fz_sv s, size_t i, int64_t *out) {
    bool neg = i < s.n && s.p[i] == '-';
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) i++;
    if (i == s.n) return false;
    int64_t v = 0;
    for (; i < s.n; i++) {
        if (!is_digit(s.p[i])) return false;
        if (v < 100000000000) v = v * 10 + (s.p[i] - '0');
    }
    if (v > INT32_MAX) return false;
    *out = neg ? -v : v;
    return true;
}

/* The digits of a number: n_int of them before the point, n in all, the point skipped when reading. */
typedef struct number { bool neg; fz_sv digits; size_t point; int64_t n, n_int, exp; } number;

static bool scan_number(fz_sv s, number *o) {
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    *o = (number){.neg = i && s.p[0] == '-'};
    size_t from = i;
    bool point = false;
    for (; i < s.n && (is_digit(s.p[i]) || (s.p[i] == '.' && !point)); i++) {
        if (s.p[i] == '.') point = true, o->point = i;
        else o->n++, o->n_int += !point;
    }
    if (!point) o->point = s.n;
    if (!o->n) return false;
    o->digits = (fz_sv){s.p + from, i - from};
    o->point -= from;
    if (i == s.n) return true;
    return (s.p[i] == 'e' || s.p[i] == 'E') && parse_exponent(s, i + 1, &o->exp);
}

bool dcm_parse(fz_sv s, int precision, int scale, col_i128 *out) {
    number o;
    if (!scan_number(s, &o)) return false;
    u128 v = 0, limit = (u128)dcm_pow10(precision);
    /* keep: digits that stand left of the last place of the scale */
    int64_t keep = o.n_int + o.exp + scale, seen = 0;
    for (size_t i = 0; i < o.digits.n && seen <= keep; i++) {
        if (i == o.point) continue;
        unsigned d = (unsigned)(o.digits.p[i] - '0');
        if (seen++ == keep) {
            v += d >= 5;
            break;
        }
        if (v >= limit / 10) return false;
        v = v * 10 + d;
    }
    if (v)
        for (; seen < keep; seen++, v *= 10)
            if (v >= limit / 10) return false;
    if (v >= limit) return false;
    *out = o.neg ? -(col_i128)v : (col_i128)v;
    return true;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t'; }

/* Flink's parser for short decimals. It stops at the first byte that is none of its own and then wants blanks only, but the byte it stops at
 * is swallowed: "f" is zero, "12x" is 12. The exponent's sign is read as part of the exponent only at its first place. */
static bool parse_short(fz_sv s, int precision, int scale, col_i128 *out) {
    size_t i = 0;
    while (i < s.n && is_space(s.p[i])) i++;
    if (i == s.n) return false;
    char b = s.p[i];
    bool neg = b == '-';
    if ((neg || b == '+') && ++i == s.n) return false;
    int64_t v = 0;
    int n = 0, point = -1, exp = 0;
    while (i < s.n) {
        b = s.p[i++];
        if (is_digit(b)) {
            v = v * 10 + (b - '0');
            n++;
        } else if (b == '.') {
            if (point >= 0) return false;
            point = n;
        } else {
            break;
        }
    }
    if (point < 0) point = n;
    if ((b == 'e' || b == 'E') && i < s.n) {
        b = s.p[i];
        bool exp_neg = b == '-';
        if ((exp_neg || b == '+') && ++i == s.n) return false;
        int e = 0;
        while (i < s.n) {
            b = s.p[i++];
            if (!is_digit(b)) break;
            if (e < 40) e = e * 10 + (b - '0');
        }
        exp = exp_neg ? -e : e;
    }
    exp -= n - point;
    for (; i < s.n; i++)
        if (!is_space(s.p[i])) return false;
    int change = exp + scale;
    if (n + change > precision) return false;
    if (change < -18) return false; /* beyond Flink's table of powers */
    return dcm_rescale(neg ? -v : v, change < 0 ? -change : 0, DCM_MAX_PRECISION, change < 0 ? 0 : change, out);
}

bool dcm_parse_cast(fz_sv s, int precision, int scale, col_i128 *out) {
    if (precision <= 18 && s.n <= 18) return parse_short(s, precision, scale, out);
    size_t from = 0, to = s.n;
    while (from < to && is_space(s.p[from])) from++;
    if (from == to) return false;
    while (is_space(s.p[to - 1])) to--;
    return dcm_parse((fz_sv){s.p + from, to - from}, precision, scale, out);
}

static int digits_text(u128 v, char out[40]) { /* most significant first, at least one */
    char tmp[40];
    int n = 0, k = 0;
    do tmp[n++] = (char)('0' + (int)(v % 10));
    while (v /= 10);
    while (n) out[k++] = tmp[--n];
    return k;
}

size_t dcm_text(col_i128 v, int scale, char out[DCM_TEXT_MAX]) {
    char d[40];
    int n = digits_text(v < 0 ? 0 - (u128)v : (u128)v, d);
    size_t k = 0;
    if (v < 0) out[k++] = '-';
    int whole = n - scale;
    if (whole <= 0) out[k++] = '0';
    for (int i = 0; i < whole; i++) out[k++] = d[i];
    if (scale <= 0) return k;
    out[k++] = '.';
    for (int i = whole; i < 0; i++) out[k++] = '0';
    for (int i = whole > 0 ? whole : 0; i < n; i++) out[k++] = d[i];
    return k;
}

size_t dcm_java_text(col_i128 v, int scale, char out[DCM_TEXT_MAX]) {
    char d[40];
    int n = digits_text(v < 0 ? 0 - (u128)v : (u128)v, d), exp = n - 1 - scale;
    if (scale >= 0 && exp >= -6) return dcm_text(v, scale, out);
    size_t k = 0;
    if (v < 0) out[k++] = '-';
    out[k++] = d[0];
    if (n > 1) out[k++] = '.';
    for (int i = 1; i < n; i++) out[k++] = d[i];
    out[k++] = 'E';
    if (exp > 0) out[k++] = '+';
    return k + nt_int_text(exp, out + k);
}
