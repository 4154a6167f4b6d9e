/* S3's answers: XML of a fixed, shallow shape. See s3_int.h.
 *
 * What it does: gives each record (an element with children below the root) as names and texts. What it does not do: attributes, DTDs, other encodings than UTF-8.
 */
#include "fileio/s3_int.h"
#include <stdio.h>

typedef enum { OPEN, CLOSE, EMPTY, TEXT, END, BAD } event;
typedef struct scanner { const char *p, *end; fz_sv name; fz_sv text; bool literal; /* CDATA: nothing to unescape */ } scanner;

static const char *find(const scanner *s, const char *what) { return memmem(s->p, (size_t)(s->end - s->p), what, strlen(what)); }

static fz_sv local_name(const char *p, size_t n) {
    size_t len = 0;
    while (len < n && !strchr(" \t\r\n/", p[len])) len++;
    const char *colon = memchr(p, ':', len);
    return colon ? (fz_sv){colon + 1, len - (size_t)(colon + 1 - p)} : (fz_sv){p, len};
}

static event next(scanner *s) {
    for (;;) {
        if (s->p == s->end) return END;
        s->literal = false;
        if (*s->p != '<') {
            const char *lt = memchr(s->p, '<', (size_t)(s->end - s->p));
            if (!lt) lt = s->end;
            s->text = (fz_sv){s->p, (size_t)(lt - s->p)};
            s->p = lt;
            return TEXT;
        }
        size_t left = (size_t)(s->end - s->p);
        const char *stop = "?>";
        bool cdata = left >= 9 && memcmp(s->p, "<![CDATA[", 9) == 0;
        if (cdata) stop = "]]>";
        else if (left >= 4 && memcmp(s->p, "<!--", 4) == 0) stop = "-->";
        else if (left < 2 || s->p[1] != '?') stop = ">";
        const char *end = find(s, stop);
        if (!end) return BAD;
        const char *inside = s->p + 1;
        s->p = end + strlen(stop);
        if (cdata) {
            s->text = (fz_sv){inside + 8, (size_t)(end - inside) - 8};
            s->literal = true;
            return TEXT;
        }
        if (*inside == '!' || *inside == '?') continue;
        bool close = *inside == '/';
        size_t n = (size_t)(end - inside);
        s->name = local_name(inside + close, n - close);
        if (s->name.n == 0) return BAD;
        return close ? CLOSE : end[-1] == '/' ? EMPTY : OPEN;
    }
}

static bool character(fz_buf *b, const char *p, size_t n) { /* "#13", "#xD" */
    uint32_t cp = 0;
    bool hex = n > 1 && (p[1] == 'x' || p[1] == 'X');
    for (size_t i = hex ? 2 : 1; i < n; i++) {
        int c = p[i], d = c >= '0' && c <= '9' ? c - '0' : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10 : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0 || cp > 0x10FFFF) return false;
        cp = cp * (hex ? 16 : 10) + (uint32_t)d;
    }
    if (n < 2 || cp == 0 || cp > 0x10FFFF) return false;
    char out[4];
    fz_buf_append(b, out, fz_utf8_put(out, cp));
    return true;
}

static bool unescape(fz_buf *b, fz_sv t) {
    static const struct { const char *name; char c; } named[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] != '&') {
            fz_buf_putc(b, t.p[i]);
            continue;
        }
        const char *semi = memchr(t.p + i, ';', t.n - i), *p = t.p + i + 1;
        if (!semi) return false;
        size_t n = (size_t)(semi - p), k = 0;
        if (n > 0 && *p == '#') {
            if (!character(b, p, n)) return false;
        } else {
            while (k < 5 && !(strlen(named[k].name) == n && memcmp(named[k].name, p, n) == 0)) k++;
            if (k == 5) return false;
            fz_buf_putc(b, named[k].c);
        }
        i += n + 1;
    }
    return true;
}

static void add(fz_arena *a, s3_record *r, fz_sv name, const fz_buf *text) {
    if (r->n == S3_FIELDS_MAX) return; /* no answer that is read here has more that matter */
    r->f[r->n].name = fz_arena_strndup(a, name.p, name.n);
    r->f[r->n++].text = fz_arena_strndup(a, text->len ? (const char *)text->data : "", text->len);
}

bool s3_xml_records(fz_arena *a, const char *xml, size_t n, s3_record_fn fn, void *cx) {
    scanner s = {.p = xml, .end = xml + n};
    s3_record root = {0}, rec = {0};
    fz_buf text = {0};
    unsigned depth = 0;
    bool leaf = false, ok = false; /* leaf: nothing but text since the last OPEN */
    for (event e; (e = next(&s)) != BAD;) {
        if (e == END) {
            ok = depth == 0 && root.name;
            break;
        }
        if (e == TEXT) {
            if (s.literal) fz_buf_append(&text, s.text.p, s.text.n);
            else if (!unescape(&text, s.text)) break;
        }
        if (e == OPEN || e == EMPTY) {
            depth++;
            leaf = true;
            text.len = 0;
            if (depth == 1) root.name = fz_arena_strndup(a, s.name.p, s.name.n);
            if (depth == 2) rec = (s3_record){.name = fz_arena_strndup(a, s.name.p, s.name.n)};
        }
        if (e == CLOSE || e == EMPTY) {
            if (depth == 0) break;
            if (depth == 3 && leaf) add(a, &rec, s.name, &text);
            if (depth == 2 && leaf) add(a, &root, s.name, &text);
            bool whole = depth == 2 && !leaf;
            leaf = false;
            depth--;
            if (whole && !fn(cx, &rec)) {
                fz_buf_free(&text);
                return true;
            }
        }
    }
    fz_buf_free(&text);
    if (ok) (void)fn(cx, &root);
    return ok;
}

const char *s3_field(const s3_record *r, const char *name) {
    for (unsigned i = 0; i < r->n; i++)
        if (strcmp(r->f[i].name, name) == 0) return r->f[i].text;
    return NULL;
}

bool s3_xml_escape(fz_buf *b, const char *s) {
    for (; *s; s++) switch (*s) {
        case '&': fz_buf_puts(b, "&amp;"); break;
        case '<': fz_buf_puts(b, "&lt;"); break;
        case '>': fz_buf_puts(b, "&gt;"); break;
        case '"': fz_buf_puts(b, "&quot;"); break;
        case '\r': fz_buf_puts(b, "&#13;"); break;
        case '\n': fz_buf_puts(b, "&#10;"); break;
        case '\t': fz_buf_puts(b, "&#9;"); break;
        default:
            if ((unsigned char)*s < 0x20) return false;
            fz_buf_putc(b, *s);
        }
    return true;
}

const char *s3_url_decode(fz_arena *a, const char *s) {
    char *plus = fz_arena_strdup(a, s);
    for (char *p = plus; *p; p++)
        if (*p == '+') *p = ' ';
    fz_buf b = {0};
    if (!net_decode(&b, plus, strlen(plus))) {
        fz_buf_free(&b);
        return s; /* a server that does not encode: the key as it came */
    }
    const char *out = fz_arena_strndup(a, b.len ? (const char *)b.data : "", b.len);
    fz_buf_free(&b);
    return out;
}

int64_t s3_time_ms(const char *s) {
    int v[6] = {0}, used = 0;
    if (!s || sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &used) != 6) return 0;
    int64_t y = v[1] <= 2 ? v[0] - 1 : v[0], era = y / 400, yoe = y - era * 400;
    int64_t doy = (153 * (v[1] + (v[1] > 2 ? -3 : 9)) + 2) / 5 + v[2] - 1, days = era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
    int64_t ms = 0;
    if (s[used] == '.')
        for (int i = 1, unit = 100; unit > 0 && s[used + i] >= '0' && s[used + i] <= '9'; i++, unit /= 10) ms += (s[used + i] - '0') * unit;
    return (((days * 24 + v[3]) * 60 + v[4]) * 60 + v[5]) * 1000 + ms;
}
