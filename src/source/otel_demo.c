/* The connector 'otel-demo': OpenTelemetry log records of six severities, made up at a given rate. Its records are JSON documents with the fields timestamp, timeUnixNano, severityText,
 * severityNumber, body, resource, attributes, traceId, spanId. As a one-shot source it has no positions. */
#include "source/gen_logs.h"
#include "source/paced.h"

typedef struct demo_source { src_paced paced; src_gen gen; } demo_source;

static const fz_option options[] = {
    {.name = "rows-per-second", .type = FZ_OPT_INT, .dflt = "10", .doc = "Records a second, at most."},
    {.name = "number-of-rows", .type = FZ_OPT_INT, .doc = "Records after which it ends; without it: never."},
    {.name = "seed", .type = FZ_OPT_INT, .dflt = "1", .doc = "The same seed draws the same severities and texts."},
    {.name = "format", .type = FZ_OPT_STRING, .state = FZ_OPT_REFUSED, .doc = "No option of this connector.", .why = "the records are JSON; leave 'format' out"},
    {.name = NULL}};

static void demo_row(src_paced *p, int64_t number, fz_buf *out) {
    (void)number;
    src_gen_record(&((demo_source *)p)->gen, fz_now_ms(), out);
}

static void demo_close(src_source *base) {
    src_base_free(base);
    fz_free(base);
}

static fz_status demo_open(const fz_pair *o, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    int64_t rate, rows, seed = 1;
    const char *v = fz_pair_get(o, n, "seed");
    FZ_TRY(src_positive_option(o, n, "rows-per-second", 10, &rate, err));
    FZ_TRY(src_positive_option(o, n, "number-of-rows", INT64_MAX, &rows, err));
    if (v && !fz_parse_i64(fz_sv_of(v), &seed)) return fz_fail(err, FZ_USER, "option.invalid", "option 'seed': '%s' is no whole number", v);
    demo_source *s = FZ_NEW(demo_source);
    src_paced_init(&s->paced, &src_otel_demo_ops, cx, "otel-demo/0", rate, rows);
    s->paced.row = demo_row;
    s->paced.dated = true;
    s->gen = src_gen_new(SRC_GEN_OTEL, (uint64_t)seed);
    return *out = &s->paced.base, FZ_OK;
}

static bool demo_endless(const fz_pair *o, size_t n) { return !fz_pair_get(o, n, "number-of-rows"); }

const src_ops src_otel_demo_ops = {.name = "otel-demo", .doc = "OpenTelemetry log records of six severities, made up. One-shot: a second run makes new records.", .options = options, .format = "json",
                                   .open = demo_open, .close = demo_close, .endless = demo_endless, SRC_PACED_OPS};
