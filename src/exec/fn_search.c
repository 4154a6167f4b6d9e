/* Kernels that look for texts in texts: POSITION, LIKE, REPLACE, SPLIT_INDEX and kin. */
#include "exec/exec_int.h"
#include "exec/text_int.h"

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }
static size_t next_char(fz_sv s, size_t at) {
    at++;
    while (at < s.n && is_continuation(s.p[at])) at++;
    return at;
}
/* memmem does not take the NULL that an empty text may be. */
static const char *find(fz_sv s, size_t from, fz_sv needle) {
    return s.n - from < needle.n || !needle.n ? NULL : memmem(s.p + from, s.n - from, needle.p, needle.n);
}
/* Place (from 0, in characters) of needle at or after character `from`; -1: none. An empty needle is at 0. */
static int64_t index_of(fz_sv s, fz_sv needle, int64_t from) {
    if (!needle.n) return 0;
    size_t start = 0;
    int64_t chars = 0;
    while (chars < from && start < s.n) {
        start = next_char(s, start);
        chars++;
    }
    const char *hit = find(s, start, needle);
    return hit ? chars + (int64_t)fz_utf8_len(s.p + start, (size_t)(hit - s.p) - start) : -1;
}

/* (needle, text [, start]) */
static void k_position(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) c->out->i32[i] = (int32_t)index_of(ex_sv(c, 1, i), ex_sv(c, 0, i), c->n_args > 2 ? ex_i64(c, 2, i) - 1 : 0) + 1;
}
static void k_instr(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) c->out->i32[i] = (int32_t)index_of(ex_sv(c, 0, i), ex_sv(c, 1, i), 0) + 1;
}
static void k_startswith(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        fz_sv s = ex_sv(c, 0, i), p = ex_sv(c, 1, i);
        c->out->u8[i] = s.n >= p.n && (!p.n || !memcmp(s.p, p.p, p.n));
    }
}
static void k_endswith(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        fz_sv s = ex_sv(c, 0, i), p = ex_sv(c, 1, i);
        c->out->u8[i] = s.n >= p.n && (!p.n || !memcmp(s.p + s.n - p.n, p.p, p.n));
    }
}

/* ---- LIKE ---------------------------------------------------------------------------------------------------------------------- */

/* A compiled pattern: runs of literal bytes and wildcards. */
typedef struct like_step { enum { LIKE_TEXT, LIKE_ONE, LIKE_MANY } kind; fz_sv text; } like_step;
typedef struct like_pattern { uint32_t n; like_step *step; const char *wrong; } like_pattern;

static void add_text(like_pattern *p, fz_arena *a, const char *bytes, size_t n) {
    like_step *last = p->n ? &p->step[p->n - 1] : NULL;
    if (last && last->kind == LIKE_TEXT) {
        char *t = fz_arena_alloc(a, last->text.n + n);
        memcpy(t, last->text.p, last->text.n);
        memcpy(t + last->text.n, bytes, n);
        last->text = (fz_sv){t, last->text.n + n};
    } else p->step[p->n++] = (like_step){LIKE_TEXT, {fz_arena_strndup(a, bytes, n), n}};
}
/* Without ESCAPE the backslash escapes. What is escaped must be a wildcard or the escape character. */
static like_pattern *like_compile(fz_arena *a, fz_sv pat, fz_sv escape) {
    like_pattern *p = FZ_ANEW(a, like_pattern);
    p->step = FZ_ANEWN(a, like_step, pat.n + 1);
    size_t one = 0;
    if (escape.n) one = next_char(escape, 0);
    if (escape.n != one) p->wrong = "the escape character must be one character";
    for (size_t i = 0; i < pat.n && !p->wrong;) {
        size_t end = next_char(pat, i);
        if (escape.n && end - i == escape.n && !memcmp(pat.p + i, escape.p, escape.n)) {
            size_t to = end < pat.n ? next_char(pat, end) : end;
            bool good = to > end && (pat.p[end] == '%' || pat.p[end] == '_' || (to - end == escape.n && !memcmp(pat.p + end, escape.p, escape.n)));
            if (!good) p->wrong = "the pattern has a wrong escape sequence";
            else add_text(p, a, pat.p + end, to - end);
            i = to;
            continue;
        }
        if (pat.p[i] == '%') {
            if (!p->n || p->step[p->n - 1].kind != LIKE_MANY) p->step[p->n++].kind = LIKE_MANY;
        } else if (pat.p[i] == '_') p->step[p->n++].kind = LIKE_ONE;
        else add_text(p, a, pat.p + i, end - i);
        i = end;
    }
    return p;
}

/* Steps of one text from `at` on, up to the next MANY or the end; *to is where they stop. */
static bool match_here(const like_pattern *p, uint32_t *k, fz_sv s, size_t *at) {
    for (; *k < p->n && p->step[*k].kind != LIKE_MANY; ++*k) {
        const like_step *st = &p->step[*k];
        if (st->kind == LIKE_ONE) {
            if (*at >= s.n) return false;
            *at = next_char(s, *at);
        } else {
            if (s.n - *at < st->text.n || memcmp(s.p + *at, st->text.p, st->text.n)) return false;
            *at += st->text.n;
        }
    }
    return true;
}
static bool like_match(const like_pattern *p, fz_sv s) {
    uint32_t k = 0, star = UINT32_MAX; /* star: the step behind the last MANY passed; retry: where it was tried */
    size_t at = 0, retry = 0;
    for (;;) {
        if (match_here(p, &k, s, &at) && (k < p->n || at == s.n)) {
            if (k == p->n || ++k == p->n) return true;
            star = k;
            retry = at;
        } else {
            if (star == UINT32_MAX || retry >= s.n) return false;
            at = retry = next_char(s, retry);
            k = star;
        }
        if (p->step[k].kind != LIKE_TEXT) continue;
        const char *hit = find(s, at, p->step[k].text);
        if (!hit) return false;
        at = retry = (size_t)(hit - s.p);
    }
}

static void like(ex_call *c, bool negate) {
    bool constant = !c->step[1] && (c->n_args < 3 || !c->step[2]);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        like_pattern *p = constant ? *c->slot : NULL;
        if (!p) {
            p = like_compile(constant ? c->keep : c->a, ex_sv(c, 1, i), c->n_args > 2 ? ex_sv(c, 2, i) : FZ_SV("\\"));
            if (constant) *c->slot = p;
        }
        if (p->wrong) ex_fail_row(c, i, "like.pattern", "LIKE: %s", p->wrong);
        else c->out->u8[i] = like_match(p, ex_sv(c, 0, i)) != negate;
    }
}
static void k_like(ex_call *c) { like(c, false); }
static void k_not_like(ex_call *c) { like(c, true); }

/* ---- REPLACE, TRANSLATE, SPLIT_INDEX ------------------------------------------------------------------------------------------- */

/* An empty `old` stands between all characters, as in Java. */
static void replace_between(fz_buf *b, fz_sv s, fz_sv new) {
    fz_buf_append(b, new.p, new.n);
    for (size_t i = 0; i < s.n;) {
        size_t end = next_char(s, i);
        fz_buf_append(b, s.p + i, end - i);
        fz_buf_append(b, new.p, new.n);
        i = end;
    }
}
static void k_replace(ex_call *c) {
    fz_buf b = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i), old = ex_sv(c, 1, i), new = ex_sv(c, 2, i);
        const char *hit = find(s, 0, old);
        if (!hit && old.n) {
            ex_put(c, i, s.p, s.n);
            continue;
        }
        b.len = 0;
        if (!old.n) replace_between(&b, s, new);
        const char *at = s.p, *end = s.p + s.n;
        for (; hit; hit = memmem(at, (size_t)(end - at), old.p, old.n)) {
            fz_buf_append(&b, at, (size_t)(hit - at));
            fz_buf_append(&b, new.p, new.n);
            at = hit + old.n;
        }
        if (old.n) fz_buf_append(&b, at, (size_t)(end - at));
        ex_put(c, i, b.data, b.len);
    }
    fz_buf_free(&b);
}

/* Characters of `from` become those of `to` at the same place; the first occurrence counts. */
static void k_translate(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i), from = ex_sv(c, 1, i), to = ex_sv(c, 2, i);
        char *o = ex_put_begin(c, i, s.n * 4);
        size_t at = 0;
        for (size_t k = 0; k < s.n;) {
            uint32_t cp = fz_utf8_next(s.p, s.n, &k), with = cp;
            bool keep = true;
            for (size_t f = 0, t = 0; f < from.n;) {
                bool more = t < to.n;
                uint32_t fc = fz_utf8_next(from.p, from.n, &f), tc = more ? fz_utf8_next(to.p, to.n, &t) : 0;
                if (fc != cp) continue;
                with = tc;
                keep = more;
                break;
            }
            if (keep) at += fz_utf8_put(o + at, with);
        }
        ex_put_end(c, i, at);
    }
}

/* The index-th part between separators; false: there is none. An empty separator means blanks of any kind. */
static bool part_of(fz_sv s, fz_sv sep, int64_t index, fz_sv *out) {
    if (!s.n || index < 0) return false;
    size_t from = 0;
    for (size_t i = 0; i <= s.n;) {
        size_t sep_len = sep.n, next = i;
        bool at_sep = false;
        if (i < s.n) {
            uint32_t cp = fz_utf8_next(s.p, s.n, &next);
            if (sep.n) at_sep = s.n - i >= sep.n && !memcmp(s.p + i, sep.p, sep.n);
            else {
                at_sep = text_is_space(cp);
                sep_len = next - i;
            }
        }
        if (at_sep || i == s.n) {
            if (index-- == 0) {
                *out = (fz_sv){s.p + from, i - from};
                return true;
            }
            if (i == s.n) return false;
            from = i = i + sep_len;
        } else i = next;
    }
    return false;
}
static void k_split_index(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv part;
        if (part_of(ex_sv(c, 0, i), ex_sv(c, 1, i), ex_i64(c, 2, i), &part)) ex_put(c, i, part.p, part.n);
        else ex_put_null(c, i);
    }
}

const ex_kernel_entry ex_kernels_search[] = {
    {SQL_K_POSITION, k_position}, {SQL_K_LOCATE, k_position}, {SQL_K_INSTR, k_instr}, {SQL_K_STARTSWITH, k_startswith}, {SQL_K_ENDSWITH, k_endswith}, {SQL_K_LIKE, k_like},
    {SQL_K_NOT_LIKE, k_not_like}, {SQL_K_REPLACE, k_replace}, {SQL_K_TRANSLATE, k_translate}, {SQL_K_SPLIT_INDEX, k_split_index}, {SQL_K_NONE, NULL},
};
