/* The connector 'datagen': rows made up, at a given rate. They are handed out as JSON documents, so that they take the way of all
 * other records; the job decodes them with the format 'json'.
 *
 * What it does not do: ARRAY, MAP, ROW and binary columns; several splits (one reader makes all rows).
 *
 * Invariants
 *  1. The table ends after number-of-rows, or when the first sequence has ended, whichever comes first; else never.
 * Threads: as in source.h; all state belongs to the reader of split 0.
 * Source: Flink's DataGen connector (options, defaults).
 */
#include "source/datagen_int.h"
#include "source/paced.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct gen_source {
    src_paced paced;
    fz_arena *own;
    gen_field *field;
    uint32_t n;
    uint64_t rnd;
} gen_source;

static const fz_option options[] = {
    {.name = "rows-per-second", .type = FZ_OPT_INT, .dflt = "10000", .doc = "Rows a second, at most."},
    {.name = "number-of-rows", .type = FZ_OPT_INT, .doc = "Rows after which the table ends; without it only sequences end it."},
    {.name = "fields.*", .type = FZ_OPT_STRING, .doc = "How a column is filled. fields.NAME.kind is 'random' (default) or 'sequence'; sequences have fields.NAME.start and .end; random numbers .min and .max; random text .length (default 100) and .var-len; times .max-past; all random columns .null-rate (0 to 1)."},
    {.name = "scan.parallelism", .type = FZ_OPT_INT, .state = FZ_OPT_NO_MEANING, .doc = "Number of readers.", .why = "one reader makes the rows"},
    {.name = "format", .type = FZ_OPT_STRING, .state = FZ_OPT_REFUSED, .doc = "No option of this connector.", .why = "datagen makes rows, not records; leave 'format' out"},
    {.name = NULL}};

static void gen_close(src_source *base) {
    gen_source *s = (gen_source *)base;
    fz_arena_free(s->own);
    src_base_free(base);
    fz_free(s);
}

/* Every fields.NAME.x must name a column and a known property. */
static fz_status check_fields(const fz_pair *o, size_t n, const src_context *cx, fz_error *err) {
    static const char *const known[] = {"kind", "start", "end", "min", "max", "length", "var-len", "max-past", "null-rate"};
    for (size_t i = 0; i < n; i++) {
        if (!fz_starts(o[i].key, "fields.")) continue;
        const char *name = o[i].key + 7, *dot = strrchr(name, '.');
        bool column = false, property = false;
        for (uint32_t k = 0; dot && k < cx->n_fields; k++) column |= fz_sv_eq((fz_sv){name, (size_t)(dot - name)}, fz_sv_of(cx->fields[k].name));
        for (size_t k = 0; dot && k < sizeof known / sizeof *known; k++) property |= strcmp(dot + 1, known[k]) == 0;
        if (column && property) continue;
        fz_fail(err, FZ_USER, "option.unknown", "connector 'datagen' has no option '%s'", o[i].key);
        if (!column) fz_hint(err, "table %s has no such column", cx->table);
        return fz_at(err, o[i].line, o[i].column);
    }
    return FZ_OK;
}

static void gen_row(src_paced *p, int64_t number, fz_buf *out) {
    gen_source *s = (gen_source *)p;
    for (uint32_t k = 0; k < s->n; k++) {
        fz_buf_putc(out, k ? ',' : '{');
        gen_field_write(&s->field[k], number, &s->rnd, out);
    }
    fz_buf_putc(out, '}');
}

static fz_status gen_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    int64_t rate, rows;
    if (!cx->n_fields) return fz_fail(err, FZ_USER, "datagen.columns", "table %s: connector 'datagen' needs at least one physical column", cx->table);
    FZ_TRY(check_fields(o, n, cx, err));
    FZ_TRY(src_positive_option(o, n, "rows-per-second", 10000, &rate, err));
    FZ_TRY(src_positive_option(o, n, "number-of-rows", INT64_MAX, &rows, err));
    gen_source *s = FZ_NEW(gen_source);
    s->own = fz_arena_new();
    s->n = cx->n_fields;
    s->field = FZ_ANEWN(s->own, gen_field, s->n);
    fz_random(&s->rnd, sizeof s->rnd);
    s->rnd |= 1;
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; i < s->n && rc == FZ_OK; i++) {
        rc = gen_field_open(s->own, &cx->fields[i], o, n, &s->field[i], err);
        if (rc == FZ_OK && s->field[i].sequence && s->field[i].count < rows) rows = s->field[i].count;
    }
    src_paced_init(&s->paced, &src_datagen_ops, cx, "datagen/0", rate, rows);
    s->paced.row = gen_row;
    if (rc == FZ_OK) return *out = &s->paced.base, FZ_OK;
    gen_close(&s->paced.base);
    return rc;
}

static bool gen_endless(const fz_pair *o, size_t n) {
    bool ends = fz_pair_get(o, n, "number-of-rows") != NULL;
    for (size_t i = 0; i < n && !ends; i++) ends = fz_starts(o[i].key, "fields.") && fz_ends(o[i].key, ".kind") && fz_ieq(o[i].value, "sequence");
    return !ends;
}

const src_ops src_datagen_ops = {
    .name = "datagen",
    .doc = "Rows made up at random or by counting. As a one-shot source it has no positions: a second run makes new rows.",
    .options = options,
    .open = gen_open,
    .close = gen_close,
    .endless = gen_endless,
    SRC_PACED_OPS,
};
