/* Kernels of text: cutting, padding, joining, cases. Characters are code points, except where Flink counts UTF-16 units (LPAD, RPAD, OVERLAY). */
#include "exec/exec_int.h"
#include "exec/text_int.h"

/* Byte offset behind the first n characters. */
static size_t advance(fz_sv s, size_t from, int64_t n) {
    while (n > 0 && from < s.n) {
        from++;
        while (from < s.n && ((unsigned char)s.p[from] & 0xc0) == 0x80) from++;
        n--;
    }
    return from;
}
static bool is_ascii(fz_sv s) {
    unsigned char any = 0;
    for (size_t i = 0; i < s.n; i++) any |= (unsigned char)s.p[i];
    return any < 0x80;
}

/* (text, start [, length]): start from 1, negative from the end; a negative length is NULL. */
static void k_substring(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        int64_t pos = (int32_t)ex_i64(c, 1, i), len = c->n_args > 2 ? (int32_t)ex_i64(c, 2, i) : INT32_MAX;
        if (len < 0) {
            ex_put_null(c, i);
            continue;
        }
        bool ascii = is_ascii(s);
        int64_t chars = ascii ? (int64_t)s.n : pos < 0 ? (int64_t)fz_utf8_len(s.p, s.n) : 0, start = pos > 0 ? pos - 1 : pos < 0 ? chars + pos : 0;
        if (start < 0 || (ascii && start >= (int64_t)s.n)) {
            ex_put(c, i, NULL, 0);
            continue;
        }
        size_t from = ascii ? (size_t)start : advance(s, 0, start), to = ascii ? ((int64_t)s.n - start < len ? s.n : (size_t)(start + len)) : advance(s, from, len);
        ex_put(c, i, s.p + from, to - from);
    }
}
static void k_left(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        ex_put(c, i, s.p, advance(s, 0, ex_i64(c, 1, i)));
    }
}
static void k_right(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        int64_t n = ex_i64(c, 1, i), chars = (int64_t)fz_utf8_len(s.p, s.n);
        size_t from = n <= 0 ? s.n : advance(s, 0, chars - n);
        ex_put(c, i, s.p + from, s.n - from);
    }
}
static void k_char_length(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        fz_sv s = ex_sv(c, 0, i);
        c->out->i32[i] = (int32_t)fz_utf8_len(s.p, s.n);
    }
}

/* ---- cases --------------------------------------------------------------------------------------------------------------------- */

static void change_case(ex_call *c, bool upper) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        if (is_ascii(s)) {
            char *o = ex_put_begin(c, i, s.n);
            for (size_t k = 0; k < s.n; k++) {
                char ch = s.p[k];
                o[k] = upper ? (ch >= 'a' && ch <= 'z' ? (char)(ch - 32) : ch) : (ch >= 'A' && ch <= 'Z' ? (char)(ch + 32) : ch);
            }
            ex_put_end(c, i, s.n);
        } else {
            char *o = ex_put_begin(c, i, s.n * 3 + 8);
            ex_put_end(c, i, text_case(s, upper, o));
        }
    }
}
static void k_upper(ex_call *c) { change_case(c, true); }
static void k_lower(ex_call *c) { change_case(c, false); }

/* Words are runs of ASCII letters and digits, as in Calcite. */
static void k_initcap(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        char *o = ex_put_begin(c, i, s.n);
        bool start = true;
        for (size_t k = 0; k < s.n; k++) {
            char ch = s.p[k];
            bool lower = ch >= 'a' && ch <= 'z', up = ch >= 'A' && ch <= 'Z', digit = ch >= '0' && ch <= '9';
            o[k] = start && lower ? (char)(ch - 32) : !start && up ? (char)(ch + 32) : ch;
            if (lower || up || digit) start = false;
            else start = true;
        }
        ex_put_end(c, i, s.n);
    }
}

/* ---- trimming ------------------------------------------------------------------------------------------------------------------ */

static bool has_char(fz_sv set, const char *ch, size_t n) {
    if (n == 1) return set.n && memchr(set.p, *ch, set.n);
    return set.n >= n && memmem(set.p, set.n, ch, n);
}
static fz_sv trim_left(fz_sv s, fz_sv set) {
    while (s.n) {
        size_t n = advance(s, 0, 1);
        if (!has_char(set, s.p, n)) break;
        s.p += n;
        s.n -= n;
    }
    return s;
}
static fz_sv trim_right(fz_sv s, fz_sv set) {
    while (s.n) {
        size_t at = s.n - 1;
        while (at && ((unsigned char)s.p[at] & 0xc0) == 0x80) at--;
        if (!has_char(set, s.p + at, s.n - at)) break;
        s.n = at;
    }
    return s;
}
static void trim_rows(ex_call *c, uint32_t value, int set_arg, bool left, bool right) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, value, i), set = set_arg >= 0 && (uint32_t)set_arg < c->n_args ? ex_sv(c, (uint32_t)set_arg, i) : FZ_SV(" ");
        if (left) s = trim_left(s, set);
        if (right) s = trim_right(s, set);
        ex_put(c, i, s.p, s.n);
    }
}
/* (BOTH | LEADING | TRAILING, characters, value) */
static void k_trim(ex_call *c) {
    fz_sv side = ex_sv(c, 0, 0);
    trim_rows(c, 2, 1, !fz_sv_eq(side, FZ_SV("TRAILING")), !fz_sv_eq(side, FZ_SV("LEADING")));
}
static void k_ltrim(ex_call *c) { trim_rows(c, 0, 1, true, false); }
static void k_rtrim(ex_call *c) { trim_rows(c, 0, 1, false, true); }
static void k_btrim(ex_call *c) { trim_rows(c, 0, 1, true, true); }

/* ---- padding, overlay: on UTF-16 units ----------------------------------------------------------------------------------------- */

static bool too_large(ex_call *c, uint32_t i, int64_t bytes) {
    if (bytes <= (int64_t)FZ_MAX_TEXT) return false;
    ex_fail_row(c, i, "text.too-large", "the text would have more than %u MiB", FZ_MAX_TEXT >> 20);
    return true;
}
static void put_units(ex_call *c, uint32_t i, const uint16_t *u, size_t n) {
    char *o = ex_put_begin(c, i, n * 3);
    ex_put_end(c, i, text_from_utf16(u, n, o));
}
static void pad(ex_call *c, bool left) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t len = ex_i64(c, 1, i);
        fz_sv s = ex_sv(c, 0, i), fill = ex_sv(c, 2, i);
        if (len < 0 || !fill.n) {
            ex_put_null(c, i);
            continue;
        }
        if (too_large(c, i, len * 3)) continue;
        uint16_t *base = fz_malloc((s.n + fill.n + (size_t)len + 1) * sizeof *base), *pads = base + s.n, *out = pads + fill.n;
        size_t bn = text_to_utf16(s, base), pn = text_to_utf16(fill, pads), n = (size_t)len, gap = n > bn ? n - bn : 0, at = left ? gap : 0;
        for (size_t k = 0; k < gap; k++) out[left ? k : bn + k] = pads[k % pn];
        for (size_t k = 0; k < bn && at + k < n; k++) out[at + k] = base[k];
        put_units(c, i, out, n);
        fz_free(base);
    }
}
static void k_lpad(ex_call *c) { pad(c, true); }
static void k_rpad(ex_call *c) { pad(c, false); }

/* (text, new, start [, length]): what stands behind the replaced part is lost when the part reaches the end or has no length, as in Flink. */
static void k_overlay(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i), r = ex_sv(c, 1, i);
        uint16_t *u = fz_malloc((2 * (s.n + r.n) + 1) * sizeof *u), *ru = u + s.n, *out = ru + r.n;
        int64_t n = (int64_t)text_to_utf16(s, u), rn = (int64_t)text_to_utf16(r, ru), start = ex_i64(c, 2, i), len = c->n_args > 3 ? (int32_t)ex_i64(c, 3, i) : rn;
        if (start <= 0 || start > n) {
            ex_put(c, i, s.p, s.n);
        } else {
            size_t m = 0;
            for (int64_t k = 0; k < start - 1; k++) out[m++] = u[k];
            for (int64_t k = 0; k < rn; k++) out[m++] = ru[k];
            if (start + len <= n && len > 0)
                for (int64_t k = start - 1 + len; k < n; k++) out[m++] = u[k];
            put_units(c, i, out, m);
        }
        fz_free(u);
    }
}

/* ---- joining ------------------------------------------------------------------------------------------------------------------- */

static void k_concat(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        size_t n = 0, at = 0;
        for (uint32_t k = 0; k < c->n_args; k++) n += ex_sv(c, k, i).n;
        char *o = ex_put_begin(c, i, n);
        for (uint32_t k = 0; k < c->n_args; k++) {
            fz_sv s = ex_sv(c, k, i);
            if (s.n) memcpy(o + at, s.p, s.n);
            at += s.n;
        }
        ex_put_end(c, i, n);
    }
}
static void k_concat_ws(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (ex_is_null(c, 0, i)) {
            ex_put_null(c, i);
            continue;
        }
        fz_sv sep = ex_sv(c, 0, i);
        size_t n = 0, at = 0;
        for (uint32_t k = 1; k < c->n_args; k++)
            if (!ex_is_null(c, k, i)) n += ex_sv(c, k, i).n + sep.n;
        char *o = ex_put_begin(c, i, n);
        bool first = true;
        for (uint32_t k = 1; k < c->n_args; k++) {
            if (ex_is_null(c, k, i)) continue;
            fz_sv s = ex_sv(c, k, i);
            if (!first && sep.n) memcpy(o + at, sep.p, sep.n);
            if (!first) at += sep.n;
            if (s.n) memcpy(o + at, s.p, s.n);
            at += s.n;
            first = false;
        }
        ex_put_end(c, i, at);
    }
}
static void k_repeat(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        int64_t times = ex_i64(c, 1, i);
        if (times < 0 || !s.n) times = 0;
        if (times > INT32_MAX || too_large(c, i, times * (int64_t)s.n)) {
            if (times > INT32_MAX) too_large(c, i, INT64_MAX);
            continue;
        }
        char *o = ex_put_begin(c, i, s.n * (size_t)times);
        for (int64_t k = 0; k < times; k++) memcpy(o + (size_t)k * s.n, s.p, s.n);
        ex_put_end(c, i, s.n * (size_t)times);
    }
}
static void k_reverse(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        char *o = ex_put_begin(c, i, s.n);
        for (size_t k = 0; k < s.n;) {
            size_t end = advance(s, k, 1);
            memcpy(o + (s.n - end), s.p + k, end - k);
            k = end;
        }
        ex_put_end(c, i, s.n);
    }
}
/* (index from 1, text, ...) */
static void k_elt(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t k = ex_is_null(c, 0, i) ? 0 : ex_i64(c, 0, i);
        if (k < 1 || k >= c->n_args || ex_is_null(c, (uint32_t)k, i)) ex_put_null(c, i);
        else {
            fz_sv s = ex_sv(c, (uint32_t)k, i);
            ex_put(c, i, s.p, s.n);
        }
    }
}

/* ---- single characters --------------------------------------------------------------------------------------------------------- */

static void k_ascii(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        fz_sv s = ex_sv(c, 0, i);
        c->out->i32[i] = s.n ? (signed char)s.p[0] : 0;
    }
}
static void k_chr(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        int64_t v = ex_i64(c, 0, i);
        char o[4];
        ex_put(c, i, o, v < 0 ? 0 : fz_utf8_put(o, (uint32_t)v & 0xff));
    }
}
static void all_chars(ex_call *c, bool (*is)(uint32_t)) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (ex_is_null(c, 0, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        bool ok = s.n > 0;
        for (size_t k = 0; k < s.n && ok;) ok = is(fz_utf8_next(s.p, s.n, &k));
        c->out->u8[i] = ok;
    }
}
static void k_is_alpha(ex_call *c) { all_chars(c, text_is_letter); }
static void k_is_digit(ex_call *c) { all_chars(c, text_is_digit); }
static void k_is_decimal(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (!ex_is_null(c, 0, i)) c->out->u8[i] = text_is_decimal(ex_sv(c, 0, i));
}

const ex_kernel_entry ex_kernels_text[] = {
    {SQL_K_SUBSTRING, k_substring}, {SQL_K_LEFT, k_left}, {SQL_K_RIGHT, k_right}, {SQL_K_CHAR_LENGTH, k_char_length}, {SQL_K_UPPER, k_upper}, {SQL_K_LOWER, k_lower},
    {SQL_K_INITCAP, k_initcap}, {SQL_K_TRIM, k_trim}, {SQL_K_LTRIM, k_ltrim}, {SQL_K_RTRIM, k_rtrim}, {SQL_K_BTRIM, k_btrim}, {SQL_K_LPAD, k_lpad}, {SQL_K_RPAD, k_rpad},
    {SQL_K_OVERLAY, k_overlay}, {SQL_K_CONCAT, k_concat}, {SQL_K_CONCAT_WS, k_concat_ws}, {SQL_K_REPEAT, k_repeat}, {SQL_K_REVERSE, k_reverse}, {SQL_K_ELT, k_elt},
    {SQL_K_ASCII, k_ascii}, {SQL_K_CHR, k_chr}, {SQL_K_IS_ALPHA, k_is_alpha}, {SQL_K_IS_DIGIT, k_is_digit}, {SQL_K_IS_DECIMAL, k_is_decimal}, {SQL_K_NONE, NULL},
};
