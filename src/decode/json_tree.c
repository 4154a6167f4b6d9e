/* What a whole object or array looks like as text.
 *
 * An object that goes into a text column is not copied but written anew, as JsonNode.toString does: no blanks, the last of equal keys
 * at the place of the first, numbers normalised, escapes in the shortest form.
 */
#include "decode/json_int.h"
#include "col/numtext.h"

void js_quote(fz_buf *b, fz_sv s) {
    static const char hex[] = "0123456789ABCDEF";
    fz_buf_putc(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        const char *e = c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\b' ? "\\b" : c == '\t' ? "\\t" : c == '\n' ? "\\n" : c == '\f' ? "\\f" : c == '\r' ? "\\r" : NULL;
        if (e) fz_buf_append(b, e, 2);
        else if (c < 0x20) {
            char u[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            fz_buf_append(b, u, 6);
        } else fz_buf_putc(b, (char)c);
    }
    fz_buf_putc(b, '"');
}

/* new BigDecimal(s).stripTrailingZeros().toString() */
static bool decimal_text(js_parser *p, fz_sv s, fz_buf *out) {
    bool neg = s.p[0] == '-';
    char digits[JS_MAX_NUMBER + 8];
    size_t n = 0, i = neg;
    int64_t scale = 0, e = 0;
    bool point = false;
    for (; i < s.n && (s.p[i] | 0x20) != 'e'; i++) {
        if (s.p[i] == '.') point = true;
        else {
            if (n || s.p[i] != '0') digits[n++] = s.p[i];
            if (point) scale++;
        }
    }
    if (i < s.n) {
        fz_sv x = {s.p + i + 1, s.n - i - 1};
        if (!fz_parse_i64(x, &e) || e > INT32_MAX || e < INT32_MIN) return js_error(p, "Too many nonzero exponent digits");
    }
    scale -= e;
    while (n && digits[n - 1] == '0') n--, scale--;
    if (!n) {
        fz_buf_putc(out, '0');
        return true;
    }
    if (neg) fz_buf_putc(out, '-');
    int64_t adjusted = -scale + (int64_t)n - 1;
    if (scale == 0) fz_buf_append(out, digits, n);
    else if (scale > 0 && adjusted >= -6) {
        if ((int64_t)n > scale) {
            fz_buf_append(out, digits, n - (size_t)scale);
            fz_buf_putc(out, '.');
            fz_buf_append(out, digits + n - scale, (size_t)scale);
        } else {
            fz_buf_puts(out, "0.");
            for (int64_t k = (int64_t)n; k < scale; k++) fz_buf_putc(out, '0');
            fz_buf_append(out, digits, n);
        }
    } else {
        fz_buf_putc(out, digits[0]);
        if (n > 1) {
            fz_buf_putc(out, '.');
            fz_buf_append(out, digits + 1, n - 1);
        }
        if (adjusted) fz_buf_printf(out, "E%+lld", (long long)adjusted);
    }
    return true;
}

static bool scalar(js_parser *p, bool decimals, fz_buf *out) {
    fz_sv s;
    if (!js_text(p, &s)) return false;
    if (p->cur == JT_STRING) js_quote(out, s);
    else if (p->cur == JT_FLOAT) {
        double v;
        char t[NT_TEXT_MAX];
        if (!nt_parse_double(s, &v)) return js_error(p, "not a number");
        size_t n = nt_double_text(v, t);
        if (v - v != 0) js_quote(out, (fz_sv){t, n});
        else if (decimals) return decimal_text(p, s, out);
        else fz_buf_append(out, t, n);
    } else if (s.n == 2 && s.p[0] == '-' && s.p[1] == '0') fz_buf_putc(out, '0');
    else fz_buf_append(out, s.p, s.n);
    return true;
}

/* ---- objects ---- */

static void rehash(js_members *m) {
    fz_free(m->table);
    m->mask = m->mask ? m->mask * 2 + 1 : 31;
    m->table = fz_calloc((size_t)m->mask + 1, sizeof *m->table);
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t k = (uint32_t)m->v[i].hash & m->mask;
        while (m->table[k]) k = (k + 1) & m->mask;
        m->table[k] = i + 1;
    }
}

js_member *js_member_of(js_members *m, const fz_buf *out, size_t key, size_t key_len) {
    if (m->n * 2 >= m->mask) rehash(m);
    uint64_t h = fz_hash(out->data + key, key_len);
    uint32_t k = (uint32_t)h & m->mask;
    for (; m->table[k]; k = (k + 1) & m->mask) {
        js_member *x = &m->v[m->table[k] - 1];
        if (x->hash == h && x->key_len == key_len && memcmp(out->data + x->key, out->data + key, key_len) == 0) {
            m->repeated = true;
            return x;
        }
    }
    FZ_GROW(m->v, m->n, m->cap);
    m->v[m->n] = (js_member){.hash = h, .key = key, .key_len = key_len};
    m->table[k] = m->n + 1;
    return &m->v[m->n++];
}

/* Writes the members anew from `from` on, without what repeated keys replaced. */
static void rewrite(fz_buf *out, size_t from, const js_members *m) {
    fz_buf t = {0};
    for (uint32_t i = 0; i < m->n; i++) {
        if (i) fz_buf_putc(&t, ',');
        fz_buf_append(&t, out->data + m->v[i].key, m->v[i].key_len);
        fz_buf_putc(&t, ':');
        fz_buf_append(&t, out->data + m->v[i].value, m->v[i].value_len);
    }
    out->len = from;
    fz_buf_append(out, t.data, t.len);
    fz_buf_free(&t);
}

void js_members_end(js_members *m, fz_buf *out, size_t from) {
    if (m->repeated) rewrite(out, from, m);
    fz_free(m->v);
    fz_free(m->table);
}

static bool value(js_parser *p, bool decimals, fz_buf *out);

static bool object(js_parser *p, bool decimals, fz_buf *out, js_members *m) {
    if (!js_next(p)) return false;
    for (bool first = true; p->cur != JT_END_OBJECT; first = false) {
        if (!first) fz_buf_putc(out, ',');
        fz_sv name;
        if (!js_text(p, &name)) return false;
        size_t key = out->len;
        js_quote(out, name);
        uint32_t i = (uint32_t)(js_member_of(m, out, key, out->len - key) - m->v);
        fz_buf_putc(out, ':');
        size_t at = out->len;
        if (!js_next(p) || !value(p, decimals, out)) return false;
        m->v[i].value = at;
        m->v[i].value_len = out->len - at;
        if (!js_next(p)) return false;
    }
    return true;
}

static bool value(js_parser *p, bool decimals, fz_buf *out) {
    if (p->cur == JT_START_OBJECT) {
        js_members m = {0};
        fz_buf_putc(out, '{');
        size_t from = out->len;
        bool ok = object(p, decimals, out, &m);
        js_members_end(&m, out, from);
        fz_buf_putc(out, '}');
        return ok;
    }
    if (p->cur != JT_START_ARRAY) return scalar(p, decimals, out);
    fz_buf_putc(out, '[');
    if (!js_next(p)) return false;
    for (bool first = true; p->cur != JT_END_ARRAY; first = false) {
        if (!first) fz_buf_putc(out, ',');
        if (!value(p, decimals, out) || !js_next(p)) return false;
    }
    fz_buf_putc(out, ']');
    return true;
}

bool js_tree_text(js_parser *p, bool decimals, fz_buf *out) { return value(p, decimals, out); }
