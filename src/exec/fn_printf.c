/* PRINTF: the conversions of java.util.Formatter that log texts use: %s %S %d %x %X %o %c %b %B %f %e %E, %n, %%, with flags - # + 0 , ( and blank, width, precision and
 * argument numbers (2$). A format that Java would refuse gives NULL, as in Flink. */
#include "col/decimal.h"
#include "col/numtext.h"
#include "exec/exec_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct spec { int index; bool left, plus, blank, zero, comma, paren, alt; int width, precision; char conv; } spec;

static bool parse_spec(const char **at, const char *end, spec *s) {
    *s = (spec){.width = -1, .precision = -1};
    const char *p = *at;
    int n = 0;
    const char *q = p;
    while (q < end && *q >= '0' && *q <= '9' && n < 100000) n = n * 10 + (*q++ - '0');
    if (q > p && q < end && *q == '$') {
        s->index = n;
        p = q + 1;
    }
    for (; p < end; p++) {
        if (*p == '-') s->left = true;
        else if (*p == '+') s->plus = true;
        else if (*p == ' ') s->blank = true;
        else if (*p == '0') s->zero = true;
        else if (*p == ',') s->comma = true;
        else if (*p == '(') s->paren = true;
        else if (*p == '#') s->alt = true;
        else break;
    }
    if (p < end && *p >= '1' && *p <= '9')
        for (s->width = 0; p < end && *p >= '0' && *p <= '9' && s->width < 100000; p++) s->width = s->width * 10 + (*p - '0');
    if (p < end && *p == '.')
        for (p++, s->precision = 0; p < end && *p >= '0' && *p <= '9' && s->precision < 1000; p++) s->precision = s->precision * 10 + (*p - '0');
    if (p >= end) return false;
    s->conv = *p++;
    *at = p;
    return true;
}

static void pad(fz_buf *b, const spec *s, const char *t, size_t n) {
    size_t chars = fz_utf8_len(t, n), gap = s->width > 0 && (size_t)s->width > chars ? (size_t)s->width - chars : 0;
    for (size_t i = 0; !s->left && i < gap; i++) fz_buf_putc(b, ' ');
    fz_buf_append(b, t, n);
    for (size_t i = 0; s->left && i < gap; i++) fz_buf_putc(b, ' ');
}
static void upper(char *t, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (t[i] >= 'a' && t[i] <= 'z') t[i] = (char)(t[i] - 32);
}
/* Digits with their sign, grouping and zeros. `frac` is what follows the whole part. */
static void put_number(fz_buf *b, const spec *s, bool neg, const char *digits, size_t n, const char *frac) {
    char t[512], *o = t;
    if (n > 128 || strlen(frac) > 200) {
        pad(b, s, digits, n);
        return;
    }
    if (neg) *o++ = s->paren ? '(' : '-';
    else if (s->plus) *o++ = '+';
    else if (s->blank) *o++ = ' ';
    size_t body = n + (s->comma ? (n - 1) / 3 : 0) + strlen(frac) + (size_t)(o - t) + (neg && s->paren);
    for (size_t i = body; s->zero && s->width > 0 && i < (size_t)s->width && o < t + 300; i++) *o++ = '0';
    for (size_t i = 0; i < n; i++) {
        *o++ = digits[i];
        if (s->comma && i + 1 < n && (n - 1 - i) % 3 == 0) *o++ = ',';
    }
    for (const char *f = frac; *f; f++) *o++ = *f;
    if (neg && s->paren) *o++ = ')';
    pad(b, s, t, (size_t)(o - t));
}

static bool put_integer(fz_buf *b, const spec *s, int64_t v, col_kind k) {
    char t[32];
    if (s->precision >= 0) return false;
    if (s->conv == 'd') {
        size_t n = nt_int_text(v, t);
        bool neg = v < 0;
        put_number(b, s, neg, t + neg, n - neg, "");
        return true;
    }
    uint64_t u = k == COL_BIGINT ? (uint64_t)v : k == COL_TINYINT ? (uint8_t)v : k == COL_SMALLINT ? (uint16_t)v : (uint32_t)v;
    int n = snprintf(t, sizeof t, s->conv == 'o' ? (s->alt ? "0%lo" : "%lo") : s->alt ? "0x%lx" : "%lx", (unsigned long)u);
    if (s->conv == 'X') upper(t, (size_t)n);
    spec plain = *s;
    plain.comma = plain.plus = plain.blank = plain.paren = false;
    put_number(b, &plain, false, t, (size_t)n, "");
    return true;
}
static bool put_double(fz_buf *b, const spec *s, double v) {
    if (!isfinite(v)) {
        const char *t = isnan(v) ? "NaN" : v > 0 ? (s->plus ? "+Infinity" : "Infinity") : s->paren ? "(Infinity)" : "-Infinity";
        pad(b, s, t, strlen(t));
        return true;
    }
    char t[400];
    bool e = s->conv == 'e' || s->conv == 'E';
    int n = snprintf(t, sizeof t, e ? "%.*e" : "%.*f", s->precision < 0 ? 6 : s->precision > 60 ? 60 : s->precision, fabs(v));
    if (n < 0 || n >= (int)sizeof t) return false;
    if (s->conv == 'E') upper(t, (size_t)n);
    char *dot = strpbrk(t, ".eE");
    char frac[256];
    (void)snprintf(frac, sizeof frac, "%s", dot ? dot : "");
    put_number(b, s, signbit(v) != 0, t, dot ? (size_t)(dot - t) : (size_t)n, frac);
    return true;
}

/* One argument; false: Java would throw. */
static bool put_arg(fz_buf *b, const spec *s, const ex_call *c, uint32_t k, uint32_t i) {
    bool null = ex_is_null(c, k, i);
    col_kind kind = ex_kind(c, k);
    bool integer = kind >= COL_TINYINT && kind <= COL_BIGINT, real = kind == COL_FLOAT || kind == COL_DOUBLE || kind == COL_DECIMAL;
    fz_buf t = {0};
    bool ok = true, done = false;
    switch (s->conv) {
    case 's': case 'S':
        if (null) fz_buf_puts(&t, "null");
        else if (kind == COL_BOOLEAN) fz_buf_puts(&t, ex_bool(c, k, i) ? "true" : "false");
        else ex_value_text(&t, c->arg[k], ex_ix(c, k, i), c->time_zone);
        if (s->conv == 'S') upper((char *)t.data, t.len);
        break;
    case 'b': case 'B':
        fz_buf_puts(&t, null ? "false" : kind == COL_BOOLEAN ? (ex_bool(c, k, i) ? "true" : "false") : "true");
        if (s->conv == 'B') upper((char *)t.data, t.len);
        break;
    case 'c':
        if (null) fz_buf_puts(&t, "null");
        else if (!integer || kind == COL_BIGINT) ok = false;
        else {
            char cp[4];
            fz_buf_append(&t, cp, fz_utf8_put(cp, (uint32_t)ex_int(c, k, i) & 0x1fffff));
        }
        break;
    case 'd': case 'x': case 'X': case 'o':
        if (null) fz_buf_puts(&t, "null");
        else if ((ok = integer)) {
            ok = put_integer(b, s, ex_int(c, k, i), kind);
            done = true;
        }
        break;
    case 'f': case 'e': case 'E':
        if (null) fz_buf_puts(&t, "null");
        else if ((ok = real)) {
            const col_type *ty = c->arg[k]->type;
            double v = kind == COL_DOUBLE ? ex_f64(c, k, i) : kind == COL_FLOAT ? (double)ex_f32(c, k, i) : dcm_to_double(ex_dec(c, k, i), ty->precision, ty->scale);
            ok = put_double(b, s, v);
            done = true;
        }
        break;
    default: ok = false;
    }
    size_t n = t.len;
    if (s->precision >= 0 && (size_t)s->precision < n) n = (size_t)s->precision;
    if (ok && !done) pad(b, s, (const char *)t.data, n);
    fz_buf_free(&t);
    return ok;
}

static bool format_row(fz_buf *b, const ex_call *c, uint32_t i) {
    fz_sv f = ex_sv(c, 0, i);
    uint32_t next = 1;
    for (const char *p = f.p, *end = f.p + f.n; p < end;) {
        if (*p != '%') {
            fz_buf_putc(b, *p++);
            continue;
        }
        spec s;
        p++;
        if (!parse_spec(&p, end, &s)) return false;
        if (s.conv == 'n') fz_buf_putc(b, '\n');
        else if (s.conv == '%') pad(b, &s, "%", 1);
        else {
            uint32_t k = s.index ? (uint32_t)s.index : next++;
            if (k >= c->n_args || !put_arg(b, &s, c, k, i)) return false;
        }
        if (b->len > FZ_MAX_TEXT) return false;
    }
    return true;
}
static void k_printf(ex_call *c) {
    fz_buf b = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        b.len = 0;
        if (!ex_is_null(c, 0, i) && format_row(&b, c, i)) ex_put(c, i, b.data, b.len);
        else ex_put_null(c, i);
    }
    fz_buf_free(&b);
}

const ex_kernel_entry ex_kernels_printf[] = {{SQL_K_PRINTF, k_printf}, {SQL_K_NONE, NULL}};
