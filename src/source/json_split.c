/* See json_split.h. A document is read by one loop with a stack of bits: 1 stands for an object, 0 for an array. */
#include "source/json_split.h"

typedef struct cursor { const uint8_t *at, *end; const char *why; } cursor;

static bool fail(cursor *c, const char *why) {
    c->why = why;
    return false;
}
static const uint8_t *skip_blanks(const uint8_t *p, const uint8_t *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}
static bool is_digit(const uint8_t *p, const uint8_t *end) { return p < end && *p >= '0' && *p <= '9'; }
static bool is_hex(uint8_t b) { return (b >= '0' && b <= '9') || ((b | 32) >= 'a' && (b | 32) <= 'f'); }

/* Has one of eight bytes an end of plain text in it: '"', '\\' or a control character? */
static bool plain8(const uint8_t *p) {
    uint64_t w, ones = 0x0101010101010101ull, high = 0x8080808080808080ull;
    memcpy(&w, p, 8);
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    uint64_t hit = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((w - ones * 32) & ~w);
    return (hit & high) == 0;
}

static bool read_escape(cursor *c) {
    if (c->end - c->at < 2) return fail(c, "a string has no end");
    uint8_t b = c->at[1];
    if (b == 'u') {
        for (int i = 2; i < 6; i++)
            if (c->end - c->at <= i || !is_hex(c->at[i])) return fail(c, "\\u is not followed by four hexadecimal digits");
        c->at += 6;
        return true;
    }
    if (b == 0 || !strchr("\"\\/bfnrt", b)) return fail(c, "a string has an unknown escape");
    c->at += 2;
    return true;
}

static bool read_string(cursor *c) {
    const uint8_t *open = c->at++;
    for (;;) {
        while (c->end - c->at >= 8 && plain8(c->at)) c->at += 8;
        if (c->at == c->end) {
            c->at = open;
            return fail(c, "a string has no end");
        }
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\') {
            if (!read_escape(c)) return false;
        } else if (*c->at < 32) return fail(c, "a string has a control character that is not escaped");
        else c->at++;
    }
}

static bool read_number(cursor *c) {
    const uint8_t *p = c->at;
    if (p < c->end && *p == '-') p++;
    if (!is_digit(p, c->end)) return fail(c, "a value was expected");
    if (*p == '0') p++;
    else
        while (is_digit(p, c->end)) p++;
    if (is_digit(p, c->end)) return fail(c, "a number begins with 0");
    if (p < c->end && *p == '.') {
        if (!is_digit(++p, c->end)) return fail(c, "a number has no digit behind its point");
        while (is_digit(p, c->end)) p++;
    }
    if (p < c->end && (*p | 32) == 'e') {
        p++;
        if (p < c->end && (*p == '+' || *p == '-')) p++;
        if (!is_digit(p, c->end)) return fail(c, "a number has no digit in its exponent");
        while (is_digit(p, c->end)) p++;
    }
    c->at = p;
    return true;
}

static bool read_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return fail(c, "a value was expected");
    c->at += n;
    return true;
}

static bool read_scalar(cursor *c) {
    switch (*c->at) {
    case '"': return read_string(c);
    case 't': return read_word(c, "true");
    case 'f': return read_word(c, "false");
    case 'n': return read_word(c, "null");
    default: return read_number(c);
    }
}

/* "key" : of an object; c->at stands at what should be the quote. */
static bool read_key(cursor *c) {
    if (c->at == c->end || *c->at != '"') return fail(c, "a key in quotes was expected");
    if (!read_string(c)) return false;
    c->at = skip_blanks(c->at, c->end);
    if (c->at == c->end || *c->at != ':') return fail(c, "':' was expected");
    c->at = skip_blanks(c->at + 1, c->end);
    return true;
}

typedef struct nesting { uint64_t bits[(FZ_MAX_JSON_DEPTH + 63) / 64]; int depth; } nesting;
static bool in_object(const nesting *n) { return n->bits[(n->depth - 1) / 64] >> ((n->depth - 1) % 64) & 1; }

/* Enters a container. *empty: it was closed again at once. */
static bool enter(cursor *c, nesting *n, bool *empty) {
    bool object = *c->at == '{';
    if (n->depth == FZ_MAX_JSON_DEPTH) return fail(c, "it is nested too deeply");
    uint64_t bit = 1ull << (n->depth % 64);
    if (object) n->bits[n->depth / 64] |= bit;
    else n->bits[n->depth / 64] &= ~bit;
    n->depth++;
    c->at = skip_blanks(c->at + 1, c->end);
    *empty = c->at < c->end && *c->at == (object ? '}' : ']');
    if (!*empty && object) return read_key(c);
    return true;
}

/* Behind a value: closes what ends here, until a comma leads to the next value. depth 0: the document is over. */
static bool leave(cursor *c, nesting *n) {
    while (n->depth) {
        c->at = skip_blanks(c->at, c->end);
        if (c->at == c->end) return fail(c, in_object(n) ? "an object has no end" : "an array has no end");
        if (*c->at == ',') {
            c->at = skip_blanks(c->at + 1, c->end);
            return in_object(n) ? read_key(c) : true;
        }
        if (*c->at != (in_object(n) ? '}' : ']')) return fail(c, in_object(n) ? "',' or '}' was expected" : "',' or ']' was expected");
        c->at++;
        n->depth--;
    }
    return true;
}

static bool read_document(cursor *c) {
    nesting n;
    n.depth = 0;
    do {
        if (c->at == c->end) return fail(c, "a value was expected");
        if (*c->at == '{' || *c->at == '[') {
            bool empty;
            if (!enter(c, &n, &empty)) return false;
            if (!empty) continue;
            c->at++;
            n.depth--;
        } else if (!read_scalar(c)) return false;
        if (!leave(c, &n)) return false;
    } while (n.depth);
    return true;
}

/* ---- the text ---- */

static int wrong(json_split *s, const uint8_t *where, const char *why) {
    if (where == s->end) /* cut off: the last line that has something */
        while (where > s->p && strchr(" \r\n\t", where[-1])) where--;
    s->where = where;
    s->why = why;
    return -1;
}

static const uint8_t *first_bad_utf8(const uint8_t *p, const uint8_t *end) {
    size_t i = 0, n = (size_t)(end - p);
    while (i < n) {
        size_t at = i;
        if (p[i] < 0x80) i++;
        else if (fz_utf8_next((const char *)p, n, &i) == 0xFFFD && i - at == 1) return p + at;
    }
    return end;
}

void json_split_init(json_split *s, const void *p, size_t n, bool objects) {
    *s = (json_split){.p = p, .at = p, .end = (const uint8_t *)p + n, .objects = objects};
    if (n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) s->at += 3;
}

/* The end of an array: nothing but blanks may follow. */
static int end_array(json_split *s) {
    s->ended = true;
    s->at = skip_blanks(s->at + 1, s->end);
    return s->at == s->end ? 0 : wrong(s, s->at, "something follows the array");
}

/* To the begin of the next document: 1, or 0, or -1. */
static int find_next(json_split *s) {
    bool first = !s->begun;
    s->at = skip_blanks(s->at, s->end);
    if (first) {
        s->begun = true;
        if (!fz_utf8_valid((const char *)s->p, (size_t)(s->end - s->p))) return wrong(s, first_bad_utf8(s->p, s->end), "it is not UTF-8");
        s->array = s->at < s->end && *s->at == '[';
        if (s->array) {
            s->at = skip_blanks(s->at + 1, s->end);
            if (s->at < s->end && *s->at == ']') return end_array(s);
            return 1;
        }
    }
    if (!s->array) return s->at < s->end;
    if (first) return 1;
    if (s->at == s->end) return wrong(s, s->at, "the array has no end");
    if (*s->at == ']') return end_array(s);
    if (*s->at != ',') return wrong(s, s->at, "',' or ']' was expected");
    s->at = skip_blanks(s->at + 1, s->end);
    return 1;
}

int json_split_next(json_split *s, fz_sv *out) {
    if (s->why) return -1;
    int rc = s->ended ? 0 : find_next(s);
    if (rc <= 0) return rc;
    cursor c = {s->at, s->end, NULL};
    if (s->objects && s->at < s->end && *s->at != '{') return wrong(s, s->at, "a JSON object was expected");
    if (!read_document(&c)) return wrong(s, c.at, c.why);
    *out = (fz_sv){(const char *)s->at, (size_t)(c.at - s->at)};
    /* 1 2 are two documents, 12 is one: what follows a number or a word at once is none. */
    if (!s->array && c.at < s->end && *s->at != '{' && *s->at != '[' && *s->at != '"' && skip_blanks(c.at, s->end) == c.at) return wrong(s, c.at, "a line end was expected");
    s->at = c.at;
    return 1;
}

size_t json_split_line(const json_split *s, const uint8_t *at) {
    size_t line = 1;
    for (const uint8_t *p = s->p; (p = memchr(p, '\n', (size_t)(at - p))) != NULL; p++) line++;
    return line;
}
