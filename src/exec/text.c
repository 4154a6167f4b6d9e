/* See text_int.h. Letters and their cases come from the C library's C.UTF-8 tables; what Java does otherwise is listed here. */
#include "exec/text_int.h"
#include "col/numtext.h"
#include <locale.h>
#include <pthread.h>
#include <wctype.h>

size_t text_to_utf16(fz_sv s, uint16_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = fz_utf8_next(s.p, s.n, &i);
        if (cp > 0xffff) {
            out[n++] = (uint16_t)(0xd800 + ((cp - 0x10000) >> 10));
            out[n++] = (uint16_t)(0xdc00 + ((cp - 0x10000) & 0x3ff));
        } else out[n++] = (uint16_t)cp;
    }
    return n;
}
size_t text_from_utf16(const uint16_t *u, size_t n, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t cp = u[i];
        if (cp >= 0xd800 && cp < 0xdc00 && i + 1 < n && u[i + 1] >= 0xdc00 && u[i + 1] < 0xe000) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (u[i + 1] - 0xdc00u);
            i++;
        } else if (cp >= 0xd800 && cp < 0xe000) cp = '?';
        at += fz_utf8_put(out + at, cp);
    }
    return at;
}

static locale_t tables;
static void open_tables(void) { tables = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); }
static locale_t unicode(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_tables);
    return tables;
}

/* Letters whose upper case has several. */
static const struct { uint16_t cp; const char *upper; } several[] = {
    {0xdf, "SS"}, {0x149, "\xca\xbcN"}, {0x1f0, "J\xcc\x8c"}, {0x587, "\xd4\xb5\xd5\x92"}, {0xfb00, "FF"}, {0xfb01, "FI"}, {0xfb02, "FL"}, {0xfb03, "FFI"}, {0xfb04, "FFL"},
    {0xfb05, "ST"}, {0xfb06, "ST"},
};
static const char *several_upper(uint32_t cp) {
    for (size_t k = 0; k < sizeof several / sizeof *several; k++)
        if (several[k].cp == cp) return several[k].upper;
    return NULL;
}
static uint32_t to_case(uint32_t cp, bool upper) {
    locale_t l = unicode();
    if (!l) return cp;
    return (uint32_t)(upper ? towupper_l((wint_t)cp, l) : towlower_l((wint_t)cp, l));
}
/* A sigma at the end of a word is written otherwise. */
static bool ends_word(fz_sv s, size_t at, bool letter_before) {
    if (!letter_before) return false;
    size_t i = at;
    return at >= s.n || !text_is_letter(fz_utf8_next(s.p, s.n, &i));
}
size_t text_case(fz_sv s, bool upper, char *out) {
    size_t at = 0;
    bool letter = false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = fz_utf8_next(s.p, s.n, &i);
        const char *more = upper ? several_upper(cp) : cp == 0x130 ? "i\xcc\x87" : NULL;
        if (more) {
            size_t n = strlen(more);
            memcpy(out + at, more, n);
            at += n;
        } else if (!upper && cp == 0x3a3) at += fz_utf8_put(out + at, ends_word(s, i, letter) ? 0x3c2 : 0x3c3);
        else at += fz_utf8_put(out + at, to_case(cp, upper));
        letter = text_is_letter(cp);
    }
    return at;
}

bool text_is_digit(uint32_t cp) {
    static const uint32_t zero[] = {0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0xff10};
    for (size_t k = 0; k < sizeof zero / sizeof *zero; k++)
        if (cp >= zero[k] && cp < zero[k] + 10) return true;
    return false;
}
bool text_is_letter(uint32_t cp) {
    if (cp < 0x80) return (cp | 32) >= 'a' && (cp | 32) <= 'z';
    locale_t l = unicode();
    return l && iswalpha_l((wint_t)cp, l) && !text_is_digit(cp) && !(cp >= 0x2160 && cp <= 0x2188) && !(cp >= 0x24b6 && cp <= 0x24e9);
}
bool text_is_space(uint32_t cp) {
    return (cp >= 9 && cp <= 13) || (cp >= 28 && cp <= 32) || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a && cp != 0x2007) || cp == 0x2028 || cp == 0x2029 || cp == 0x205f || cp == 0x3000;
}
bool text_is_decimal(fz_sv s) {
    double d;
    return nt_parse_double(s, &d);
}
