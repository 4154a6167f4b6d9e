/* One column of the connector 'datagen': its options, its values. See datagen.c. */
#include "source/datagen_int.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct type_row { const char *name; gen_kind kind; int64_t min, max; } type_row;
static const type_row types[] = {
    {"BOOLEAN", GEN_BOOLEAN, 0, 0},       {"TINYINT", GEN_INTEGER, INT8_MIN, INT8_MAX},   {"SMALLINT", GEN_INTEGER, INT16_MIN, INT16_MAX},
    {"INT", GEN_INTEGER, INT32_MIN, INT32_MAX}, {"INTEGER", GEN_INTEGER, INT32_MIN, INT32_MAX}, {"BIGINT", GEN_INTEGER, INT64_MIN, INT64_MAX},
    {"FLOAT", GEN_FLOAT, 0, 0},           {"DOUBLE", GEN_DOUBLE, 0, 0},                   {"DECIMAL", GEN_DECIMAL, 0, 0},
    {"CHAR", GEN_TEXT, 0, 0},             {"VARCHAR", GEN_TEXT, 0, 0},                    {"STRING", GEN_TEXT, 0, 0},
    {"DATE", GEN_DATE, 0, 0},             {"TIME", GEN_TIME, 0, 0},                       {"TIMESTAMP_LTZ", GEN_TIMESTAMP_LTZ, 0, 0},
    {"TIMESTAMP", GEN_TIMESTAMP, 0, 0}};

static const char *property(const src_field *f, const char *name, const fz_pair *o, size_t n) {
    char *key = fz_asprintf("fields.%s.%s", f->name, name);
    const char *v = fz_pair_get(o, n, key);
    fz_free(key);
    return v;
}

static fz_status invalid(const src_field *f, const char *name, const char *v, const char *why, fz_error *err) {
    return fz_fail(err, FZ_USER, "option.invalid", "option 'fields.%s.%s': '%s' %s", f->name, name, v, why);
}

static fz_status integer(const src_field *f, const char *name, const fz_pair *o, size_t n, int64_t min, int64_t max, int64_t *out, fz_error *err) {
    const char *v = property(f, name, o, n);
    if (v && (!fz_parse_i64(fz_sv_of(v), out) || *out < min || *out > max)) return invalid(f, name, v, "is no number that fits", err);
    return FZ_OK;
}

static fz_status floating(const src_field *f, const char *name, const fz_pair *o, size_t n, double *out, fz_error *err) {
    const char *v = property(f, name, o, n);
    if (v && (!fz_parse_f64(fz_sv_of(v), out) || *out - *out != 0)) return invalid(f, name, v, "is no number", err);
    return FZ_OK;
}

static fz_status find_type(const src_field *f, gen_field *out, const type_row **row, fz_error *err) {
    size_t len = strcspn(f->type, " (<");
    *row = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (fz_sv_eq((fz_sv){f->type, len}, fz_sv_of(types[i].name))) *row = &types[i];
    if (!*row) {
        fz_fail(err, FZ_USER, "datagen.type", "column '%s': connector 'datagen' does not make values of type %s", f->name, f->type);
        return fz_hint(err, "numbers, text, booleans, dates and times are available");
    }
    out->kind = (*row)->kind;
    out->precision = out->kind == GEN_DECIMAL ? 10 : out->kind == GEN_TIME ? 0 : 6;
    if (f->type[len] == '(') {
        char *end;
        out->precision = (int)strtol(f->type + len + 1, &end, 10);
        if (*end == ',') out->scale = (int)strtol(end + 1, NULL, 10);
    }
    return FZ_OK;
}

static fz_status open_sequence(const src_field *f, const fz_pair *o, size_t n, gen_field *g, fz_error *err) {
    int64_t end = 0;
    if (g->kind == GEN_BOOLEAN || g->kind >= GEN_DATE) return fz_fail(err, FZ_USER, "datagen.type", "column '%s': type %s has no sequence", f->name, f->type);
    if (!property(f, "start", o, n) || !property(f, "end", o, n))
        return fz_fail(err, FZ_USER, "option.missing", "column '%s': a sequence needs 'fields.%s.start' and 'fields.%s.end'", f->name, f->name, f->name);
    int64_t min = g->kind == GEN_INTEGER ? g->min : INT64_MIN, max = g->kind == GEN_INTEGER ? g->max : INT64_MAX;
    FZ_TRY(integer(f, "start", o, n, min, max, &g->start, err));
    FZ_TRY(integer(f, "end", o, n, min, max, &end, err));
    if (end < g->start) return invalid(f, "end", property(f, "end", o, n), "lies before the start", err);
    if (__builtin_sub_overflow(end, g->start, &g->count) || g->count == INT64_MAX) return invalid(f, "end", property(f, "end", o, n), "is too far from the start", err);
    g->count++;
    return FZ_OK;
}

static fz_status open_random(const src_field *f, const fz_pair *o, size_t n, gen_field *g, fz_error *err) {
    int64_t lowest = g->min, highest = g->max;
    FZ_TRY(floating(f, "null-rate", o, n, &g->null_rate, err));
    if (g->null_rate < 0 || g->null_rate > 1) return invalid(f, "null-rate", property(f, "null-rate", o, n), "is not between 0 and 1", err);
    if (g->kind == GEN_INTEGER) {
        FZ_TRY(integer(f, "min", o, n, lowest, highest, &g->min, err));
        FZ_TRY(integer(f, "max", o, n, lowest, highest, &g->max, err));
    } else {
        FZ_TRY(floating(f, "min", o, n, &g->fmin, err));
        FZ_TRY(floating(f, "max", o, n, &g->fmax, err));
    }
    if (g->min > g->max || g->fmin > g->fmax) return invalid(f, "max", property(f, "max", o, n) ? property(f, "max", o, n) : "", "is less than the minimum", err);
    bool fixed = fz_starts(f->type, "CHAR"), sized = fz_starts(f->type, "VARCHAR");
    if (fixed) g->length = g->precision;
    FZ_TRY(integer(f, "length", o, n, 1, fixed || sized ? g->precision : 1 << 20, &g->length, err));
    if (sized && g->length > g->precision) g->length = g->precision;
    const char *var = property(f, "var-len", o, n), *past = property(f, "max-past", o, n);
    int yes = 0;
    if (var) FZ_TRY(fz_parse_bool(var, &yes, err));
    g->var_len = yes;
    if (past) FZ_TRY(fz_parse_duration_ms(past, &g->max_past_ms, err));
    return FZ_OK;
}

fz_status gen_field_open(fz_arena *a, const src_field *f, const fz_pair *o, size_t n, gen_field *g, fz_error *err) {
    const type_row *t;
    *g = (gen_field){.length = 100};
    FZ_TRY(find_type(f, g, &t, err));
    g->min = t->min;
    g->max = t->max;
    g->fmin = g->kind == GEN_FLOAT ? (double)-FLT_MAX : -DBL_MAX;
    g->fmax = -g->fmin;
    if (g->kind == GEN_DECIMAL) {
        g->fmax = 1;
        for (int i = g->scale; i < g->precision; i++) g->fmax *= 10;
        g->fmin = -g->fmax;
    }
    fz_buf b = {0};
    fz_buf_json(&b, f->name, strlen(f->name));
    fz_buf_putc(&b, ':');
    g->name = (fz_sv){fz_arena_strndup(a, (const char *)b.data, b.len), b.len};
    fz_buf_free(&b);
    const char *kind = property(f, "kind", o, n);
    g->sequence = kind && strcmp(kind, "sequence") == 0;
    if (kind && !g->sequence && strcmp(kind, "random") != 0) return invalid(f, "kind", kind, "is neither 'random' nor 'sequence'", err);
    return g->sequence ? open_sequence(f, o, n, g, err) : open_random(f, o, n, g, err);
}

/* ---- values ---- */

static uint64_t next(uint64_t *s) { /* xorshift64* */
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545f4914f6cdd1dull;
}
static double unit(uint64_t *s) { return (double)(next(s) >> 11) * 0x1p-53; }
static uint64_t below(uint64_t *s, uint64_t n) { return n ? next(s) % n : next(s); } /* n 0: any */

static void write_decimal(const gen_field *f, double v, fz_buf *out) {
    char t[400];
    double limit = f->fmax < -f->fmin ? -f->fmin : f->fmax;
    int n = snprintf(t, sizeof t, "%.*f", f->scale, v);
    if (v >= limit || v <= -limit || n < 0) fz_buf_puts(out, "0");
    else fz_buf_append(out, t, (size_t)n);
}

static void write_time(const gen_field *f, uint64_t *rnd, fz_buf *out) {
    int64_t ms = fz_now_ms() - (int64_t)(f->max_past_ms ? below(rnd, (uint64_t)f->max_past_ms) : 0);
    time_t s = (time_t)(ms / 1000);
    struct tm t;
    if (f->kind == GEN_TIMESTAMP_LTZ) gmtime_r(&s, &t);
    else localtime_r(&s, &t);
    char date[32], clock[32];
    strftime(date, sizeof date, "%Y-%m-%d", &t);
    strftime(clock, sizeof clock, "%H:%M:%S", &t);
    if (f->kind == GEN_DATE) fz_buf_printf(out, "\"%s\"", date);
    else if (f->kind == GEN_TIME) fz_buf_printf(out, "\"%s\"", clock);
    else fz_buf_printf(out, "\"%s %s.%03d%s\"", date, clock, (int)(ms % 1000), f->kind == GEN_TIMESTAMP_LTZ ? "Z" : "");
}

static void write_text(const gen_field *f, uint64_t *rnd, fz_buf *out) {
    static const char hex[] = "0123456789abcdef";
    int64_t n = f->var_len ? 1 + (int64_t)below(rnd, (uint64_t)f->length) : f->length;
    uint64_t bits = 0;
    fz_buf_reserve(out, (size_t)n + 2);
    fz_buf_putc(out, '"');
    for (int64_t i = 0; i < n; i++, bits >>= 4) {
        if (i % 16 == 0) bits = next(rnd);
        fz_buf_putc(out, hex[bits & 15]);
    }
    fz_buf_putc(out, '"');
}

void gen_field_write(const gen_field *f, int64_t row, uint64_t *rnd, fz_buf *out) {
    fz_buf_append(out, f->name.p, f->name.n);
    if (f->sequence) {
        const char *quote = f->kind == GEN_TEXT ? "\"" : "";
        fz_buf_printf(out, "%s%lld%s", quote, (long long)(f->start + row), quote);
        return;
    }
    if (f->null_rate > 0 && unit(rnd) < f->null_rate) {
        fz_buf_puts(out, "null");
        return;
    }
    double v = f->fmin / 2 + unit(rnd) * (f->fmax / 2 - f->fmin / 2); /* halves: the whole range may be too wide for a double */
    switch (f->kind) {
    case GEN_BOOLEAN: fz_buf_puts(out, next(rnd) >> 63 ? "true" : "false"); break;
    case GEN_INTEGER: fz_buf_printf(out, "%lld", (long long)(int64_t)((uint64_t)f->min + below(rnd, (uint64_t)f->max - (uint64_t)f->min + 1))); break;
    case GEN_FLOAT: fz_buf_printf(out, "%.9g", v * 2); break;
    case GEN_DOUBLE: fz_buf_printf(out, "%.17g", v * 2); break;
    case GEN_DECIMAL: write_decimal(f, v * 2, out); break;
    case GEN_TEXT: write_text(f, rnd, out); break;
    case GEN_DATE: case GEN_TIME: case GEN_TIMESTAMP: case GEN_TIMESTAMP_LTZ: write_time(f, rnd, out); break;
    }
}
