/* Parsing and printing of numbers and booleans by Java's and Flink's rules (numtext.h). Printing of doubles and floats stands in numshort.c.
 *
 * Invariants
 *  1. Parsing never reads past s.n and never depends on the locale of the process beyond "C" (nothing in the program sets another).
 *  2. strtod and strtof round correctly, as Java does; the grammar is checked here first, since theirs is another.
 */
#include "col/numtext.h"

#include <stdlib.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

nt_status nt_parse_int(fz_sv s, int64_t min, int64_t max, int64_t *out) {
    while (s.n && s.p[0] == ' ') s.p++, s.n--;
    while (s.n && s.p[s.n - 1] == ' ') s.n--;
    if (!s.n) return NT_EMPTY;
    bool neg = s.p[0] == '-';
    size_t i = neg || s.p[0] == '+';
    if (i == s.n) return NT_INVALID;
    int64_t v = 0; /* kept negative: there is one more negative value than positive ones */
    bool over = false;
    for (; i < s.n && s.p[i] != '.'; i++) {
        if (!is_digit(s.p[i])) return NT_INVALID;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v)) over = true, v = 0;
    }
    for (i++; i < s.n; i++)
        if (!is_digit(s.p[i])) return NT_INVALID;
    if (over || (!neg && v == INT64_MIN)) return NT_OVERFLOW;
    if (!neg) v = -v;
    if (v < min || v > max) return NT_OVERFLOW;
    *out = v;
    return NT_OK;
}

bool nt_parse_java_long(fz_sv s, int64_t *out) {
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    if (i == s.n) return false;
    int64_t v = 0;
    for (; i < s.n; i++) {
        if (!is_digit(s.p[i])) return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v)) return false;
    }
    if (s.p[0] != '-') {
        if (v == INT64_MIN) return false;
        v = -v;
    }
    *out = v;
    return true;
}

bool nt_parse_java_int(fz_sv s, int32_t *out) {
    int64_t v;
    if (!nt_parse_java_long(s, &v) || v < INT32_MIN || v > INT32_MAX) return false;
    *out = (int32_t)v;
    return true;
}

bool nt_parse_bool(fz_sv s, bool *out) {
    static const char *const yes[] = {"t", "true", "y", "yes", "1"}, *const no[] = {"f", "false", "n", "no", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (fz_sv_ieq(s, fz_sv_of(yes[i]))) return *out = true, true;
        if (fz_sv_ieq(s, fz_sv_of(no[i]))) return *out = false, true;
    }
    return false;
}

/* [digits][.digits] with at least one digit: returns the index after it, or 0. */
static size_t scan_mantissa(fz_sv s, size_t i, bool hex) {
    size_t n = 0;
    for (; i < s.n && (hex ? is_hex(s.p[i]) : is_digit(s.p[i])); i++) n++;
    if (i < s.n && s.p[i] == '.')
        for (i++; i < s.n && (hex ? is_hex(s.p[i]) : is_digit(s.p[i])); i++) n++;
    return n ? i : 0;
}

/* Exponent after its letter: returns the index after it, or 0 when there is no digit. */
static size_t scan_exponent(fz_sv s, size_t i) {
    if (i < s.n && (s.p[i] == '+' || s.p[i] == '-')) i++;
    size_t from = i;
    while (i < s.n && is_digit(s.p[i])) i++;
    return i > from ? i : 0;
}

/* Trims s and checks it against Java's grammar. Returns 0: no number; 1: *body is for strtod; 2: infinity; 3: NaN. */
static int scan_float(fz_sv *s, bool *neg) {
    while (s->n && (unsigned char)s->p[0] <= ' ') s->p++, s->n--;
    while (s->n && (unsigned char)s->p[s->n - 1] <= ' ') s->n--;
    size_t i = s->n && (s->p[0] == '-' || s->p[0] == '+');
    *neg = i && s->p[0] == '-';
    fz_sv rest = {s->p + i, s->n - i};
    if (fz_sv_eq(rest, FZ_SV("NaN"))) return 3;
    if (fz_sv_eq(rest, FZ_SV("Infinity"))) return 2;
    bool hex = rest.n > 2 && rest.p[0] == '0' && (rest.p[1] == 'x' || rest.p[1] == 'X');
    size_t j = scan_mantissa(rest, hex ? 2 : 0, hex);
    if (!j) return 0;
    if (hex && (j == rest.n || (rest.p[j] != 'p' && rest.p[j] != 'P'))) return 0; /* Java wants the exponent here */
    if (j < rest.n && (hex || rest.p[j] == 'e' || rest.p[j] == 'E')) {
        j = scan_exponent(rest, j + 1);
        if (!j) return 0;
    }
    s->n = i + j;
    if (j < rest.n && strchr("fFdD", rest.p[j])) j++;
    return j == rest.n;
}

/* strtod wants a NUL: copies s, into buf where it fits. */
static char *terminated(fz_sv s, char *buf, size_t cap) {
    char *p = s.n < cap ? buf : fz_malloc(s.n + 1);
    memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

bool nt_parse_double(fz_sv s, double *out) {
    bool neg;
    int what = scan_float(&s, &neg);
    if (what == 0) return false;
    if (what == 2) return *out = neg ? -__builtin_inf() : __builtin_inf(), true;
    if (what == 3) return *out = __builtin_nan(""), true;
    char buf[128], *p = terminated(s, buf, sizeof buf);
    *out = strtod(p, NULL);
    if (p != buf) fz_free(p);
    return true;
}

bool nt_parse_float(fz_sv s, float *out) {
    bool neg;
    int what = scan_float(&s, &neg);
    if (what == 0) return false;
    if (what == 2) return *out = neg ? -__builtin_inff() : __builtin_inff(), true;
    if (what == 3) return *out = __builtin_nanf(""), true;
    char buf[128], *p = terminated(s, buf, sizeof buf);
    *out = strtof(p, NULL);
    if (p != buf) fz_free(p);
    return true;
}

size_t nt_int_text(int64_t v, char out[NT_TEXT_MAX]) {
    char tmp[24];
    size_t n = 0, k = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do tmp[n++] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0) out[k++] = '-';
    while (n) out[k++] = tmp[--n];
    return k;
}

int64_t nt_double_to_long(double v) {
    if (v != v) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    if (v <= -0x1p63) return INT64_MIN;
    return (int64_t)v;
}

int32_t nt_double_to_int(double v) {
    if (v != v) return 0;
    if (v >= 2147483647.0) return INT32_MAX;
    if (v <= -2147483648.0) return INT32_MIN;
    return (int32_t)v;
}
