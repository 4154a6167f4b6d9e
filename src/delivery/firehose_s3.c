/* firehose-s3: an archive of objects, in the manner of Amazon Data Firehose: JSON lines, gathered until buffer.size or buffer.interval, compressed, under a prefix with expressions.
 *
 * What it does not do: dynamic partitioning, Firehose's record transformation, HADOOP_SNAPPY, ZIP.
 *
 * Invariants
 *  1. Exactly once for sources with positions: each record is in one object (arc_commit.c); the same rows of a lot are the same bytes.
 *  2. Rows are packed as they come: a lot holds packed bytes, a quarter of the delivery's memory at most, the rest in an unnamed file.
 * Threads: see delivery.h.
 */
#include "col/tz.h"
#include "delivery/archive_int.h"
#include <stdlib.h>

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
static const fz_option options[] = {
    USED("path", STRING, NULL,
         "Where objects go: s3://bucket/prefix/, file:///dir/ or /dir/. The prefix may have expressions as Firehose's: !{timestamp:PATTERN} (a pattern of Java's DateTimeFormatter; the arrival of the object's oldest record) and "
         "!{firehose:random-string}. Without a timestamp expression !{timestamp:yyyy/MM/dd/HH/} is appended. Required."),
    USED("error.path", STRING, NULL,
         "Where rows go that are given up: a location, or a prefix in the bucket of 'path'. With expressions it must have !{firehose:error-output-type} (here: s3-failed); without any, "
         "!{firehose:error-output-type}/!{timestamp:yyyy/MM/dd/HH/} is appended. Objects there hold JSON lines with attemptsMade, arrivalTimestamp, errorCode, errorMessage, attemptEndingTimestamp, rawData (the row's JSON in base64) "
         "and table. Unless set, no row is given up: the job tries on and on, and stops where that has no hope."),
    USED("buffer.size", SIZE, "5MiB", "An object is written when its rows have so many bytes before compression. While a backlog is read, or the store is slow, objects can be larger."),
    USED("buffer.interval", DURATION, "300s", "An object is written at the first checkpoint after its first row has waited so long."),
    USED("compression", STRING, "GZIP", "GZIP, UNCOMPRESSED, or ZSTD (not one of Firehose's)."),
    USED("retry.duration", DURATION, "300 s", "How long the delivery of an object is tried before its rows are given up."),
    USED("stream-name", STRING, NULL, "First part of the objects' names. Unless set: pipeline and table."),
    USED("stream-version", INT, "1", "Second part of the objects' names: Firehose counts the changes of a stream's configuration with it."),
    USED("file-extension", STRING, NULL, "End of the objects' names, in place of .gz or .zst."),
    USED("custom-time-zone", STRING, "UTC", "Time zone of prefixes and names."),
    {"format", FZ_OPT_ENUM, FZ_OPT_USED, "json", "json", "Each row is a JSON object on a line of its own, as Flink's JSON format writes it; TIMESTAMP_LTZ is in UTC.", NULL},
    USED("json.include-nulls", BOOL, "false", "Writes columns that are NULL too; else they are left out."),
    {"json.timestamp-format.standard", FZ_OPT_ENUM, FZ_OPT_USED, "SQL", "SQL|ISO-8601", "Text of timestamps: SQL (2026-09-16 12:34:56.123) or ISO-8601 (2026-09-16T12:34:56.123).", NULL},
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

/* Options as given, with those of the table as defaults. */
typedef struct given { const fz_pair *o; size_t n; } given;
static const char *get(const given *g, const char *key) {
    const char *v = fz_pair_get(g->o, g->n, key);
    return v ? v : fz_option_find(options, key)->dflt;
}
static fz_status at(const given *g, const char *key, fz_error *err) {
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->o[i].key, key) == 0) return fz_at(err, g->o[i].line, g->o[i].column);
    return err->cls;
}
static fz_status refuse(const given *g, const char *key, const char *why, fz_error *err) {
    fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' %s", key, get(g, key) ? get(g, key) : "", why);
    return at(g, key, err);
}

static bool is_local(const char *base) { return *base == '/' || fz_starts(base, "file:"); }

static fz_status read_prefix(const given *g, const char *key, archive *x, fz_arena *a, fz_error *err) {
    bool is_error = strcmp(key, "error.path") == 0;
    const char *text = get(g, key), **base = is_error ? &x->error_base : &x->base, *rest = arc_split_location(a, text, base);
    if (!rest && is_error && !strstr(text, "://") && !is_local(x->base)) { /* a prefix, as Firehose's ErrorOutputPrefix */
        *base = x->base;
        rest = text;
    }
    if (!rest) return refuse(g, key, "is no location: write s3://bucket/prefix/, file:///dir/ or an absolute path", err);
    if (strstr(*base, "!{")) return refuse(g, key, "has an expression in the name of its bucket", err);
    size_t n = strlen(rest);
    if (is_local(*base) && n && rest[n - 1] != '/' && !strstr(rest, "!{")) rest = fz_arena_printf(a, "%s/", rest); /* a directory, whoever forgot the slash */
    fz_status rc = arc_prefix_new(a, rest, is_error, is_error ? &x->error_prefix : &x->prefix, err);
    if (rc != FZ_OK) return at(g, key, err);
    char *probe = arc_location(x, 253402300799999, "", is_error ? "s3-failed" : NULL); /* 9999-12-31 */
    size_t len = strlen(probe) - strlen(*base);
    fz_free(probe);
    if (len <= FZ_MAX_S3_KEY || is_local(*base)) return FZ_OK;
    return refuse(g, key, "gives keys of more than 1024 bytes", err);
}

static fz_status read_compression(const given *g, archive *x, fz_error *err) {
    const char *c = get(g, "compression");
    x->codec = fz_ieq(c, "UNCOMPRESSED") ? ARC_PLAIN : fz_ieq(c, "ZSTD") ? ARC_ZSTD : ARC_GZIP;
    if (x->codec != ARC_GZIP || fz_ieq(c, "GZIP")) return FZ_OK;
    bool known = fz_ieq(c, "ZIP") || fz_ieq(c, "Snappy") || fz_ieq(c, "HADOOP_SNAPPY");
    refuse(g, "compression", known ? "is one of Firehose's that this archive does not write" : "is unknown", err);
    return fz_hint(err, "GZIP, UNCOMPRESSED and ZSTD are written");
}

static fz_status read_names(const given *g, archive *x, fz_arena *a, fz_error *err) {
    static const char legal[] = "0123456789abcdefghijklmnopqrstuvwxyz!-_.*'()";
    const char *zone = get(g, "custom-time-zone"), *stream = get(g, "stream-name"), *ext = get(g, "file-extension");
    x->zone = tz_find(fz_sv_of(zone));
    if (!x->zone) return refuse(g, "custom-time-zone", "is no time zone", err);
    if (stream && !arc_stream_name_ok(stream)) return refuse(g, "stream-name", "is no name of a stream: 1 to 64 letters, digits, '_', '.' and '-'", err);
    if (stream) x->stream = fz_arena_strdup(a, stream);
    x->version = fz_arena_strdup(a, get(g, "stream-version"));
    if (strtoll(x->version, NULL, 10) < 1) return refuse(g, "stream-version", "is no number from 1 on", err);
    if (ext && (*ext != '.' || strlen(ext) > 128 || strspn(ext, legal) != strlen(ext))) return refuse(g, "file-extension", "is no extension: '.' and then a-z, 0-9 and !-_.*'()", err);
    x->extension = ext ? fz_arena_strdup(a, ext) : x->codec == ARC_GZIP ? ".gz" : x->codec == ARC_ZSTD ? ".zst" : "";
    return FZ_OK;
}

/* Everything that follows from the options alone. */
static fz_status read_options(const given *g, archive *x, fz_arena *a, fz_error *err) {
    int64_t size, ms;
    if (!get(g, "path")) return fz_fail(err, FZ_USER, "option.missing", "connector 'firehose-s3' needs the option 'path'");
    FZ_TRY(fz_parse_size(get(g, "buffer.size"), &size, err));
    if (size < 1 || size > (int64_t)1 << 30) return refuse(g, "buffer.size", "is not between 1 byte and 1 GiB", err);
    FZ_TRY(fz_parse_duration_ms(get(g, "buffer.interval"), &ms, err));
    x->buffer_size = (uint64_t)size;
    x->interval_ns = ms * 1000000;
    FZ_TRY(read_compression(g, x, err));
    FZ_TRY(read_names(g, x, a, err));
    FZ_TRY(read_prefix(g, "path", x, a, err));
    return get(g, "error.path") ? read_prefix(g, "error.path", x, a, err) : FZ_OK;
}

static fz_status archive_check(const fz_pair *o, size_t n, const col_schema *schema, fz_error *err) {
    (void)schema;
    fz_arena *a = fz_arena_new();
    archive x = {.stream = "archive-of-a-pipeline-with-a-name-that-is-as-long-as-names-can-be", .space = ""};
    given g = {o, n};
    fz_status rc = read_options(&g, &x, a, err);
    fio *io = NULL;
    if (rc == FZ_OK) rc = fio_new(o, n, &io, err);
    fio_unref(io);
    fz_arena_free(a);
    return rc;
}

static fz_status archive_places(const fz_pair *o, size_t n, fz_arena *a, dlv_place *out, uint32_t *n_out, fz_error *err) {
    (void)err;
    const char *base = "", *error_base = "", *rest = arc_split_location(a, fz_pair_get(o, n, "path"), &base), *errors = fz_pair_get(o, n, "error.path");
    out[(*n_out)++] = (dlv_place){"path", arc_fixed_part(a, base, rest ? rest : "")};
    if (!errors) return FZ_OK;
    const char *inside = arc_split_location(a, errors, &error_base);
    out[(*n_out)++] = (dlv_place){"error.path", inside ? arc_fixed_part(a, error_base, inside) : arc_fixed_part(a, base, errors)};
    return FZ_OK;
}

static void archive_destination(const dlv_delivery *d, fz_buf *out) { dlv_location_key(dlv_option(d, "path"), out); }

static const char *choose_spill_dir(const dlv_delivery *d) {
    const char *dir = fz_pair_get(d->options, d->n_options, "s3.staging-dir");
    if (!dir) dir = getenv("TMPDIR");
    return fz_arena_strdup(d->arena, dir && *dir == '/' ? dir : "/tmp");
}

static fz_status archive_open(dlv_delivery *d, fz_error *err) {
    archive *x = FZ_ANEW(d->arena, archive);
    int nulls;
    const char *last = strrchr(d->cx.table, '.');
    given g = {d->options, d->n_options};
    x->stream = arc_stream_name(d->arena, fz_arena_printf(d->arena, "%s-%s", d->cx.pipeline, last ? last + 1 : d->cx.table));
    x->space = fz_arena_printf(d->arena, "frazil:%s/%s", d->cx.pipeline, d->cx.table);
    x->spill_dir = choose_spill_dir(d);
    FZ_TRY(read_options(&g, x, d->arena, err));
    FZ_TRY(fz_parse_bool(dlv_option(d, "json.include-nulls"), &nulls, err));
    FZ_TRY(fio_new(d->options, d->n_options, &x->io, err));
    x->encoder = arc_encoder_new(d->arena, d->cx.schema, nulls, fz_ieq(dlv_option(d, "json.timestamp-format.standard"), "ISO-8601"));
    x->log = (arc_log){.dir = d->cx.state_dir, .what = d->cx.table, .io = d->cx.state_io};
    x->packer = arc_packer_new(x->codec);
    x->known = fz_arena_new();
    x->state = "";
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_init(&x->turn, NULL);
    d->impl = x;
    return FZ_OK;
}

static void archive_close(dlv_delivery *d) {
    archive *x = d->impl;
    arc_body_free(x->body);
    arc_packer_free(x->packer);
    fz_arena_free(x->known);
    pthread_mutex_destroy(&x->lock);
    pthread_mutex_destroy(&x->turn);
    fio_unref(x->io);
}

static fz_status archive_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) {
    archive *x = d->impl;
    if (!r->n) return FZ_OK;
    if (!x->body) {
        x->body = arc_body_new(x->codec, d->cx.memory / 4, x->error_prefix != NULL, x->spill_dir);
        atomic_store(&x->first_ns, fz_mono_ns());
    }
    arc_lines *l = arc_lines_begin(x->encoder, r->cols, r->n, r->scratch);
    fz_status rc = arc_body_add(x->body, x->packer, r->source, r->split, l, r->n, r->time_ms, err);
    arc_lines_end(l);
    atomic_store(&x->open, arc_body_open(x->body));
    atomic_store(&x->raw, arc_body_raw(x->body));
    return rc;
}

static bool archive_wants(const dlv_delivery *d) {
    archive *x = d->impl;
    int64_t since = atomic_load(&x->raw) ? atomic_load(&x->first_ns) : atomic_load(&x->last_ns); /* without rows positions move once an interval */
    return atomic_load(&x->raw) >= x->buffer_size || !since || fz_mono_ns() - since >= x->interval_ns;
}

static bool archive_is_full(const dlv_delivery *d) {
    archive *x = d->impl;
    return atomic_load(&x->raw) >= x->buffer_size || atomic_load(&x->open) > d->cx.memory / 2;
}

static void forget(archive *x) {
    x->body = NULL;
    atomic_store(&x->raw, 0);
    atomic_store(&x->open, 0);
}

static dlv_lot *archive_cut(dlv_delivery *d) {
    archive *x = d->impl;
    if (!x->body) return NULL;
    archive_lot *l = FZ_NEW(archive_lot);
    arc_body_seal(x->body, x->packer);
    *l = (archive_lot){.lot = {.ops = &dlv_firehose_s3_ops, .rows = arc_body_rows(x->body), .bytes = arc_body_size(x->body)}, .of = x, .body = x->body, .oldest_ms = arc_body_oldest_ms(x->body)};
    if (l->oldest_ms < 0) l->oldest_ms = fz_now_ms() - (fz_mono_ns() - atomic_load(&x->first_ns)) / 1000000; /* no row has a time: when the first one came */
    forget(x);
    atomic_fetch_add(&x->lots, 1);
    return &l->lot;
}

static void archive_drop(dlv_delivery *d) {
    archive *x = d->impl;
    arc_body_free(x->body);
    forget(x);
}

static void archive_lot_free(dlv_lot *lot) {
    archive_lot *l = (archive_lot *)lot;
    atomic_fetch_sub(&l->of->lots, 1);
    arc_body_free(l->body);
    fz_free(l->object);
    fz_free(l);
}

const dlv_ops dlv_firehose_s3_ops = {
    .name = "firehose-s3",
    .doc = "An archive of JSON lines in objects on S3 or in local files, in the manner of Amazon Data Firehose. Exactly once for sources that can be read again: the state directory (execution.checkpointing.dir, else "
           "frazil.state.dir) holds an intent for each object before it is written; on S3 it outlives a lost disk, in local files it does not. It must know conditional writes. The options `s3.*` and `client.*` of catalogs say how S3 is reached.",
    .options = options, .of_store = true, .check = archive_check, .places = archive_places, .destination = archive_destination, .open = archive_open, .close = archive_close, .load = arc_load, .write = archive_write, .wants = archive_wants, .is_full = archive_is_full,
    .cut = archive_cut, .drop = archive_drop, .commit = arc_commit, .divert = arc_divert, .lot_free = archive_lot_free, .replay = arc_replay,
};
