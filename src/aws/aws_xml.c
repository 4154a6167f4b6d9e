/* The little XML that AWS answers with: the text of one element. See aws.h.
 *
 * What it does not do: it checks no well-formedness and knows no nesting; answers of a fixed shape are read with it.
 */
#include "aws/aws_int.h"

/* Appends one character reference's text ("amp", "#38", "#x26"); false: unknown, and nothing is appended. */
static bool put_reference(fz_buf *b, const char *p, size_t n) {
    static const struct { const char *name; char c; } named[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strlen(named[i].name) == n && memcmp(p, named[i].name, n) == 0) {
            fz_buf_putc(b, named[i].c);
            return true;
        }
    if (n < 2 || p[0] != '#') return false;
    bool hex = p[1] == 'x';
    uint32_t v = 0;
    for (size_t i = hex ? 2 : 1; i < n; i++) {
        char c = p[i];
        uint32_t d = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : hex && c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10) : hex && c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10) : 99;
        if (d == 99 || v > 0x10FFFF) return false;
        v = v * (hex ? 16 : 10) + d;
    }
    if (v == 0 || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) return false;
    char utf8[4];
    fz_buf_append(b, utf8, fz_utf8_put(utf8, v));
    return true;
}

/* Text with references and CDATA sections. */
static void put_text(fz_buf *b, const char *p, const char *end) {
    while (p < end) {
        const char *semi;
        if (end - p > 9 && strncmp(p, "<![CDATA[", 9) == 0) {
            const char *close = strstr(p, "]]>");
            const char *stop = close && close < end ? close : end;
            fz_buf_append(b, p + 9, (size_t)(stop - p - 9));
            p = close && close < end ? close + 3 : end;
        } else if (*p == '&' && (semi = memchr(p, ';', (size_t)(end - p))) && put_reference(b, p + 1, (size_t)(semi - p - 1))) p = semi + 1;
        else fz_buf_putc(b, *p++);
    }
}

/* End of the start tag <name ...> or <prefix:name ...> that begins at p ('<'), NULL if it is another one; *empty: <name/>. */
static const char *start_tag(const char *p, const char *name, bool *empty) {
    size_t n = strcspn(p + 1, " \t\r\n/>"), m = strlen(name);
    const char *tag = p + 1, *colon = memchr(tag, ':', n);
    if (colon) {
        n -= (size_t)(colon + 1 - tag);
        tag = colon + 1;
    }
    if (n != m || memcmp(tag, name, m) != 0) return NULL;
    const char *end = strchr(tag, '>');
    *empty = end && end[-1] == '/';
    return end ? end + 1 : NULL;
}

/* The end tag "</...>" of name, after p. */
static const char *end_tag(const char *p, const char *name) {
    size_t m = strlen(name);
    for (; (p = strstr(p, "</")); p += 2) {
        size_t n = strcspn(p + 2, " \t\r\n>");
        if (n >= m && memcmp(p + 2 + n - m, name, m) == 0 && (n == m || p[2 + n - m - 1] == ':')) return p;
    }
    return NULL;
}

const char *aws_xml_text(fz_arena *a, const char *xml, const char *name) {
    for (const char *p = xml; p && (p = strchr(p, '<')); p++) {
        if (strncmp(p, "<!--", 4) == 0) {
            if (!(p = strstr(p, "-->"))) return NULL;
            continue;
        }
        if (strncmp(p, "<![CDATA[", 9) == 0) {
            if (!(p = strstr(p, "]]>"))) return NULL;
            continue;
        }
        bool empty;
        const char *text = start_tag(p, name, &empty);
        if (!text) continue;
        const char *end = empty ? text : end_tag(text, name);
        if (!end) return NULL;
        fz_buf b = {0};
        if (!empty) put_text(&b, text, end);
        const char *r = fz_arena_strdup(a, fz_buf_cstr(&b));
        fz_buf_free(&b);
        return r;
    }
    return NULL;
}
