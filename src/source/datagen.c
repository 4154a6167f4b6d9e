/* The connector 'datagen': rows made up, at a given rate. They are handed out as JSON documents, so that they take the way of all
 * other records; the job decodes them with the format 'json'.
 *
 * What it does not do: ARRAY, MAP, ROW and binary columns; several splits (one reader makes all rows).
 *
 * Invariants
 *  1. The table ends after number-of-rows, or when the first sequence has ended, whichever comes first; else never.
 *  2. No more rows are given than rows-per-second times the time since the split was assigned.
 * Threads: as in source.h; all state belongs to the reader of split 0.
 * Source: Flink's DataGen connector (options, defaults).
 */
#include "source/datagen_int.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct gen_source {
    src_source base;
    fz_arena *own;
    gen_field *field;
    uint32_t n;
    int64_t rate, started_ns, first;
    int64_t pos; /* next row */
    bool assigned;
    uint64_t rnd;
} gen_source;
typedef struct gen_chunk { fz_chunk chunk; fz_buf text; } gen_chunk;

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

static fz_status positive(const fz_pair *o, size_t n, const char *name, int64_t dflt, int64_t *out, fz_error *err) {
    const char *v = fz_pair_get(o, n, name);
    *out = dflt;
    if (v && (!fz_parse_i64(fz_sv_of(v), out) || *out <= 0)) return fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' is no positive number", name, v);
    return FZ_OK;
}

static fz_status gen_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    int64_t rate, rows;
    if (!cx->n_fields) return fz_fail(err, FZ_USER, "datagen.columns", "table %s: connector 'datagen' needs at least one physical column", cx->table);
    FZ_TRY(check_fields(o, n, cx, err));
    FZ_TRY(positive(o, n, "rows-per-second", 10000, &rate, err));
    FZ_TRY(positive(o, n, "number-of-rows", INT64_MAX, &rows, err));
    gen_source *s = FZ_NEW(gen_source);
    src_base_init(&s->base, &src_datagen_ops, cx);
    s->own = fz_arena_new();
    s->n = cx->n_fields;
    s->field = FZ_ANEWN(s->own, gen_field, s->n);
    s->rate = rate;
    fz_random(&s->rnd, sizeof s->rnd);
    s->rnd |= 1;
    fz_status rc = FZ_OK;
    for (uint32_t i = 0; i < s->n && rc == FZ_OK; i++) {
        rc = gen_field_open(s->own, &cx->fields[i], o, n, &s->field[i], err);
        if (rc == FZ_OK && s->field[i].sequence && s->field[i].count < rows) rows = s->field[i].count;
    }
    if (rc != FZ_OK) {
        gen_close(&s->base);
        return rc;
    }
    src_split *x = src_add_split(&s->base, "datagen/0", NULL, 0);
    x->start_is_earliest = true;
    x->stop = rows;
    x->high = rows == INT64_MAX ? 0 : rows;
    *out = &s->base;
    return FZ_OK;
}

static fz_status gen_assign(src_source *base, uint32_t split, int64_t from, fz_error *err) {
    gen_source *s = (gen_source *)base;
    if (from < 0 || from > base->splits[split]->stop) return fz_fail(err, FZ_FATAL, "datagen.position", "there is no row %lld", (long long)from);
    s->pos = s->first = from;
    s->assigned = true;
    s->started_ns = fz_mono_ns();
    return FZ_OK;
}

static fz_status gen_unassign_all(src_source *base, fz_error *err) {
    (void)err;
    ((gen_source *)base)->assigned = false;
    return FZ_OK;
}

static void chunk_release(fz_chunk *c) {
    gen_chunk *g = (gen_chunk *)c;
    fz_buf_free(&g->text);
    fz_free(c->rec);
    fz_free(g);
}

static fz_chunk *make_rows(gen_source *s, uint32_t n) {
    gen_chunk *g = FZ_NEW(gen_chunk);
    g->chunk = (fz_chunk){.n = n, .from = s->pos, .to = s->pos + n, .rec = fz_calloc(n, sizeof *g->chunk.rec), .release = chunk_release};
    for (uint32_t i = 0; i < n; i++) {
        size_t from = g->text.len;
        for (uint32_t k = 0; k < s->n; k++) {
            fz_buf_putc(&g->text, k ? ',' : '{');
            gen_field_write(&s->field[k], s->pos + i, &s->rnd, &g->text);
        }
        fz_buf_putc(&g->text, '}');
        g->chunk.rec[i] = (fz_record){.value_len = (int32_t)(g->text.len - from), .key_len = -1, .offset = s->pos + i, .timestamp_ms = -1};
    }
    const uint8_t *p = g->text.data; /* it has stopped moving */
    for (uint32_t i = 0; i < n; i++) {
        g->chunk.rec[i].value = p;
        p += g->chunk.rec[i].value_len;
    }
    g->chunk.bytes = g->text.len;
    s->pos += n;
    return &g->chunk;
}

/* Rows that the rate allows by now. */
static int64_t allowed(const gen_source *s) {
    double seconds = (double)(fz_mono_ns() - s->started_ns) / 1e9;
    double rows = seconds * (double)s->rate;
    return rows > 9e18 ? INT64_MAX : (int64_t)rows - (s->pos - s->first);
}

static fz_status gen_poll(src_source *base, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    gen_source *s = (gen_source *)base;
    (void)err;
    if (reader != src_reader_of(base, 0) || s->pos >= base->splits[0]->stop || !s->assigned) {
        *done = true;
        return FZ_OK;
    }
    int64_t left = base->splits[0]->stop - s->pos, n = allowed(s), want = s->rate / 20 + 1; /* about 20 chunks a second */
    if (want > FZ_BATCH_ROWS) want = FZ_BATCH_ROWS;
    if (want > left) want = left;
    if (n < want) {
        int64_t wait = (want - n) * 1000 / s->rate + 1;
        fz_sleep_ms(wait < timeout_ms ? wait : timeout_ms);
        n = allowed(s);
    }
    if (n > left) n = left;
    if (n > FZ_BATCH_ROWS) n = FZ_BATCH_ROWS;
    if (n > 0) *out = make_rows(s, (uint32_t)n);
    return FZ_OK;
}

const src_ops src_datagen_ops = {
    .name = "datagen",
    .doc = "Rows made up at random or by counting. As a one-shot source it has no positions: a second run makes new rows.",
    .options = options,
    .open = gen_open,
    .close = gen_close,
    .assign = gen_assign,
    .unassign_all = gen_unassign_all,
    .poll = gen_poll,
};
