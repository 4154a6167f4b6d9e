/* Compiles java.time patterns (dtpattern.h) to a list of nodes; dtparse.c and dtformat.c walk it.
 *
 * Invariants
 *  1. Fields of fixed width that follow a number without a break add to its `following`, so that "yyyyMMdd" can be read (Java's adjacent value
 *     parsing). Anything else, the edge of an option included, ends the run.
 *  2. A pattern that Java refuses is refused, with Java's reason.
 */
#include "col/dtpattern.h"

#include <pthread.h>
#include <stdio.h>

#include "col/dt_int.h"

#define FRACTION_MARK '\x01' /* in the default form only: up to nine digits with a point */

typedef struct compiler {
    dt_pattern *p;
    fz_error *err;
    int active; /* node that adjacent fields lengthen, or -1 */
    int pad;
    uint32_t open[64];
    int depth;
} compiler;

static fz_status refuse(compiler *c, const char *fmt, int arg) {
    char why[96];
    snprintf(why, sizeof why, fmt, arg);
    return fz_fail(c->err, FZ_USER, "datetime.pattern", "%s", why);
}

static dt_node *append(compiler *c, dt_node n) {
    dt_pattern *p = c->p;
    FZ_GROW(p->v, p->n, p->cap);
    n.pad = c->pad;
    c->pad = 0;
    c->active = -1;
    p->v[p->n] = n;
    return &p->v[p->n++];
}

static void append_number(compiler *c, dt_node n) {
    int active = c->pad ? -1 : c->active;
    bool padded = c->pad > 0;
    append(c, n);
    if (active >= 0 && n.min == n.max && n.sign == DS_NOT_NEGATIVE) {
        c->p->v[active].following += n.max;
        c->active = active;
    } else {
        c->active = padded ? -1 : (int)c->p->n - 1;
    }
}

static void number(compiler *c, dt_field f, int min, int max, dt_sign sign) {
    append_number(c, (dt_node){.kind = DN_NUMBER, .field = f, .min = min, .max = max, .sign = sign});
}

static void fixed_or_free(compiler *c, dt_field f, int count) {
    if (count == 1) number(c, f, 1, 19, DS_NORMAL);
    else number(c, f, count, count, DS_NOT_NEGATIVE);
}

static void text(compiler *c, dt_field f, int count) {
    append(c, (dt_node){.kind = DN_TEXT, .field = f, .style = count == 4 ? DT_FULL : count == 5 ? DT_NARROW : DT_SHORT});
}

static void literal(compiler *c, const char *s, size_t n) {
    if (!n) return;
    dt_node *last = c->p->n ? &c->p->v[c->p->n - 1] : NULL;
    bool join = last && last->kind == DN_LITERAL && !last->pad && !c->pad;
    uint32_t at = (uint32_t)c->p->text.len;
    fz_buf_append(&c->p->text, s, n);
    c->active = -1;
    if (join) last->n += (uint32_t)n;
    else append(c, (dt_node){.kind = DN_LITERAL, .at = at, .n = (uint32_t)n});
}

static void offset(compiler *c, int type, const char *zero) { append(c, (dt_node){.kind = DN_OFFSET, .field = DF_OFFSET, .offset_type = type, .no_offset = zero}); }

static void year(compiler *c, dt_field f, int n) {
    if (n == 2) append_number(c, (dt_node){.kind = DN_REDUCED, .field = f, .min = 2, .max = 2, .sign = DS_NOT_NEGATIVE});
    else number(c, f, n, 19, n < 4 ? DS_NORMAL : DS_EXCEEDS_PAD);
}

static fz_status too_many(compiler *c, char letter) { return refuse(c, "Too many pattern letters: %c", letter); }

/* Month, quarter and day of the week: a number for one or two letters, a name for more. */
static fz_status named(compiler *c, char l, dt_field f, int n) {
    if (n > 5) return too_many(c, l);
    bool week = l == 'e' || l == 'c';
    if (l == 'c' && n == 2) return refuse(c, "Invalid pattern \"%cc\"", l);
    if (n > 2 || l == 'E') text(c, f, n);
    else if (week) number(c, DF_LOCAL_DOW, n, n, DS_NOT_NEGATIVE);
    else fixed_or_free(c, f, n);
    return FZ_OK;
}

static fz_status zone(compiler *c, char l, int n) {
    static const int x_type[6] = {0, 1, 3, 4, 5, 6};
    switch (l) {
    case 'X': case 'x':
        if (n > 5) return too_many(c, l);
        offset(c, x_type[n], l == 'X' ? "Z" : n == 1 ? "+00" : n % 2 == 0 ? "+0000" : "+00:00");
        return FZ_OK;
    case 'Z':
        if (n > 5) return too_many(c, l);
        if (n < 4) offset(c, 3, "+0000");
        else if (n == 4) append(c, (dt_node){.kind = DN_LOCAL_OFFSET, .field = DF_OFFSET, .style = DT_FULL});
        else offset(c, 6, "Z");
        return FZ_OK;
    case 'O':
        if (n != 1 && n != 4) return refuse(c, "Pattern letter count must be 1 or 4: %c", l);
        append(c, (dt_node){.kind = DN_LOCAL_OFFSET, .field = DF_OFFSET, .style = n == 4 ? DT_FULL : DT_SHORT});
        return FZ_OK;
    case 'V':
        if (n != 2) return refuse(c, "Pattern letter count must be 2: %c", l);
        break;
    case 'v':
        if (n != 1 && n != 4) return refuse(c, "Wrong number of pattern letters: %c", l);
        break;
    default:
        if (n > 4) return too_many(c, l);
    }
    append(c, (dt_node){.kind = DN_ZONE, .style = n == 4 ? DT_FULL : DT_SHORT});
    return FZ_OK;
}

static fz_status letter(compiler *c, char l, int n) {
    switch (l) {
    case 'G':
        if (n > 5) return too_many(c, l);
        return text(c, DF_ERA, n), FZ_OK;
    case 'u': return year(c, DF_YEAR, n), FZ_OK;
    case 'y': return year(c, DF_YEAR_OF_ERA, n), FZ_OK;
    case 'Y': return year(c, DF_WEEK_YEAR, n), FZ_OK;
    case 'M': case 'L': return named(c, l, DF_MONTH, n);
    case 'Q': case 'q': return named(c, l, DF_QUARTER, n);
    case 'E': case 'e': case 'c': return named(c, l, DF_DAY_OF_WEEK, n);
    case 'a':
        if (n > 1) return too_many(c, l);
        return text(c, DF_AMPM, n), FZ_OK;
    case 'B':
        if (n != 1 && n != 4 && n != 5) return refuse(c, "Wrong number of pattern letters: %c", l);
        return text(c, DF_PERIOD, n), FZ_OK;
    case 'D':
        if (n > 3) return too_many(c, l);
        if (n == 1) number(c, DF_DAY_OF_YEAR, 1, 19, DS_NORMAL);
        else number(c, DF_DAY_OF_YEAR, n, 3, DS_NOT_NEGATIVE);
        return FZ_OK;
    case 'F': case 'W':
        if (n > 1) return too_many(c, l);
        if (l == 'F') fixed_or_free(c, DF_ALIGNED_DAY, 1);
        else number(c, DF_WEEK_OF_MONTH, 1, 1, DS_NOT_NEGATIVE);
        return FZ_OK;
    case 'w':
        if (n > 2) return too_many(c, l);
        return number(c, DF_WEEK, n, 2, DS_NOT_NEGATIVE), FZ_OK;
    case 'g': return number(c, DF_MJD, n, 19, DS_NORMAL), FZ_OK;
    case 'S':
        if (n > 9) return refuse(c, "Maximum width must be from 1 to 9 inclusive but was %d", n);
        append_number(c, (dt_node){.kind = DN_FRACTION, .field = DF_NANO, .min = n, .max = n, .sign = DS_NOT_NEGATIVE});
        return FZ_OK;
    case 'A': return number(c, DF_MILLI_OF_DAY, n, 19, DS_NOT_NEGATIVE), FZ_OK;
    case 'n': return number(c, DF_NANO, n, 19, DS_NOT_NEGATIVE), FZ_OK;
    case 'N': return number(c, DF_NANO_OF_DAY, n, 19, DS_NOT_NEGATIVE), FZ_OK;
    case 'd': case 'h': case 'H': case 'k': case 'K': case 'm': case 's': {
        static const char ls[] = "dhHkKms";
        static const dt_field fs[] = {DF_DAY, DF_CLOCK_HOUR_OF_AMPM, DF_HOUR, DF_CLOCK_HOUR, DF_HOUR_OF_AMPM, DF_MINUTE, DF_SECOND};
        if (n > 2) return too_many(c, l);
        return fixed_or_free(c, fs[strchr(ls, l) - ls], n), FZ_OK;
    }
    case 'z': case 'v': case 'V': case 'O': case 'X': case 'x': case 'Z': return zone(c, l, n);
    default: return refuse(c, "Unknown pattern letter: %c", l);
    }
}

static bool is_letter(char ch) { return (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z'); }

static int run_of(fz_sv s, size_t i) {
    size_t j = i;
    while (j < s.n && s.p[j] == s.p[i]) j++;
    return (int)(j - i);
}

static fz_status quoted(compiler *c, fz_sv s, size_t *i) {
    size_t from = ++*i;
    bool empty = *i < s.n && s.p[*i] == '\'';
    if (empty) {
        ++*i;
        return literal(c, "'", 1), FZ_OK;
    }
    for (; *i < s.n; ++*i) {
        if (s.p[*i] != '\'') continue;
        literal(c, s.p + from, *i - from);
        from = *i + 1;
        if (from >= s.n || s.p[from] != '\'') return ++*i, FZ_OK;
        ++*i; /* two quotes are one: it opens the next piece */
    }
    return refuse(c, "Pattern ends with an incomplete string literal", 0);
}

static fz_status option(compiler *c, char ch) {
    if (ch == '[') {
        if (c->depth == (int)(sizeof c->open / sizeof *c->open)) return refuse(c, "More than %d nested options", c->depth);
        c->open[c->depth++] = c->p->n;
        append(c, (dt_node){.kind = DN_OPTION});
        return FZ_OK;
    }
    if (c->depth == 0) return refuse(c, "Pattern invalid as it contains ] without previous [", 0);
    c->p->v[c->open[--c->depth]].end = c->p->n;
    append(c, (dt_node){.kind = DN_OPTION_END});
    return FZ_OK;
}

static fz_status compile(compiler *c, fz_sv s, bool internal) {
    for (size_t i = 0; i < s.n;) {
        char ch = s.p[i];
        if (is_letter(ch)) {
            int n = run_of(s, i);
            i += (size_t)n;
            if (ch == 'p') {
                if (i == s.n || !is_letter(s.p[i])) return refuse(c, "Pad letter '%c' must be followed by valid pad pattern", ch);
                c->pad = n, c->active = -1;
                n = run_of(s, i);
                ch = s.p[i];
                i += (size_t)n;
            }
            FZ_TRY(letter(c, ch, n));
        } else if (ch == '\'') {
            FZ_TRY(quoted(c, s, &i));
        } else if (ch == '[' || ch == ']') {
            FZ_TRY(option(c, ch));
            i++;
        } else if (ch == '{' || ch == '}' || ch == '#') {
            return refuse(c, "Pattern includes reserved character: '%c'", ch);
        } else if (internal && ch == FRACTION_MARK) {
            append(c, (dt_node){.kind = DN_FRACTION, .field = DF_NANO, .min = 0, .max = 9, .point = true});
            i++;
        } else {
            literal(c, s.p + i, 1);
            i++;
        }
    }
    while (c->depth > 0) FZ_TRY(option(c, ']')); /* Java closes them too */
    return FZ_OK;
}

/* Length of the text when the pattern is of the kind that logs have: four digits of year, two of the rest, literals, a fraction. */
static int fast_length(const dt_pattern *p) {
    int n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const dt_node *d = &p->v[i];
        bool two = d->kind == DN_NUMBER && d->min == 2 && d->max == 2 && d->sign == DS_NOT_NEGATIVE &&
                   (d->field == DF_MONTH || d->field == DF_DAY || d->field == DF_HOUR || d->field == DF_MINUTE || d->field == DF_SECOND);
        bool four = d->kind == DN_NUMBER && d->min == 4 && d->sign == DS_EXCEEDS_PAD && (d->field == DF_YEAR || d->field == DF_YEAR_OF_ERA);
        if (d->pad || !(d->kind == DN_LITERAL || two || four || (d->kind == DN_FRACTION && !d->point))) return 0;
        for (uint32_t k = 0; k < i && d->kind != DN_LITERAL; k++)
            if (p->v[k].kind != DN_LITERAL && p->v[k].field == d->field) return 0;
        n += d->kind == DN_LITERAL ? (int)d->n : two ? 2 : four ? 4 : d->max;
    }
    return n;
}

static fz_status make(fz_sv s, bool internal, dt_pattern **out, fz_error *err) {
    compiler c = {.p = FZ_NEW(dt_pattern), .err = err, .active = -1};
    fz_status st = compile(&c, s, internal);
    if (st != FZ_OK) {
        dt_pattern_free(c.p);
        return st;
    }
    c.p->fast = fast_length(c.p);
    *out = c.p;
    return FZ_OK;
}

fz_status dt_pattern_new(fz_sv s, dt_pattern **out, fz_error *err) {
    fz_status st = make(s, false, out, err);
    if (st != FZ_OK && err) fz_detail(err, "pattern '%.*s'", (int)(s.n < 200 ? s.n : 200), s.p);
    return st;
}

void dt_pattern_free(dt_pattern *p) {
    if (!p) return;
    fz_free(p->v);
    fz_buf_free(&p->text);
    fz_free(p);
}

const dt_pattern *dt_pattern_copy(fz_arena *a, const dt_pattern *p) {
    dt_pattern *c = FZ_ANEW(a, dt_pattern);
    *c = *p;
    c->v = fz_arena_alloc(a, p->n * sizeof *p->v);
    if (p->n) memcpy(c->v, p->v, p->n * sizeof *p->v);
    c->text.data = (uint8_t *)fz_arena_strndup(a, p->text.len ? (const char *)p->text.data : "", p->text.len);
    return c;
}

static dt_pattern *default_pattern;

static void make_default(void) {
    static const char form[] = "yyyy-[MM][M]-[dd][d][ [HH][H]:[mm][m]:[ss][s]\x01]";
    if (make((fz_sv){form, sizeof form - 1}, true, &default_pattern, NULL) != FZ_OK) default_pattern = NULL;
}

const dt_pattern *dt_pattern_default(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_default);
    return default_pattern;
}
