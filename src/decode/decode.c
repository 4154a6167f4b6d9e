/* The table of formats, and what is common to them: checking options, counting. See decode.h. */
#include "decode/decode_int.h"
#include <stdatomic.h>

#define ONLY "available formats: 'json', 'msgpack', 'otlp', 'raw' and 'syslog'"
static const fz_option no_options[] = {{.name = NULL}};
#define REFUSED(n, why_) {.name = (n), .options = no_options, .refused = (why_)}

static const dec_format csv = REFUSED("csv", "lines of delimited fields are not read");
static const dec_format avro = REFUSED("avro", "Avro records are not read");
static const dec_format avro_confluent = REFUSED("avro-confluent", "Avro with a schema registry is not read");
static const dec_format parquet = REFUSED("parquet", "Parquet files are written, not read as a source");
static const dec_format orc = REFUSED("orc", "ORC files are not read");
static const dec_format protobuf = REFUSED("protobuf", "Protobuf messages are not read");
#define CDC "a changelog would need updates and deletes, and sinks here only append"
static const dec_format debezium = REFUSED("debezium-json", CDC);
static const dec_format debezium_avro = REFUSED("debezium-avro-confluent", CDC);
static const dec_format canal = REFUSED("canal-json", CDC);
static const dec_format maxwell = REFUSED("maxwell-json", CDC);
static const dec_format ogg = REFUSED("ogg-json", CDC);

static const dec_format *const formats[] = {&dec_json, &dec_msgpack, &dec_otlp, &dec_raw, &dec_syslog, &csv,      &avro,          &avro_confluent, &parquet, &orc,
                                            &protobuf, &debezium, &debezium_avro, &canal,          &maxwell, &ogg};
#define N_FORMATS (sizeof formats / sizeof *formats)

const dec_format_info *dec_formats(void) {
    static const dec_format_info infos[] = {
        {"json", dec_json_options, "JSON documents, one a record, read as Flink's 'json' format reads them."},
        {"msgpack", dec_msgpack_options, "MessagePack maps, one a record: what the forward connector takes in. Keys become the columns of the same name."},
        {"otlp", dec_otlp_options, "LogRecords of OpenTelemetry (protobuf), one a record: what the otlp connector takes in. Columns have the names of the log data model in snake_case; other names are attributes."},
        {"raw", dec_raw_options, "The whole record as the value of the table's only physical column."},
        {"syslog", dec_syslog_options, "Messages of syslog (RFC 5424, RFC 3164), one a record. Columns: priority, facility, severity, version, facility_text, severity_text, timestamp, hostname (host), app_name (program), procid (pid), msgid, structured_data, message (msg), raw, format. What cannot be read is the row's message."},
        {NULL, NULL, NULL},
    };
    return infos;
}

/* The name of a format's option without "key." or "value." before it. */
static const char *bare(const char *key) {
    if (fz_starts(key, "key.")) return key + 4;
    return fz_starts(key, "value.") ? key + 6 : key;
}

const char *dec_option(const dec_open *o, const fz_option *table, const char *name) {
    const char *v = NULL;
    for (size_t i = 0; i < o->n && !v; i++) {
        const char *k = o->options[i].key;
        if (fz_starts(k, o->key ? "key." : "value.") && strcmp(bare(k), name) == 0) v = o->options[i].value;
    }
    if (!v) v = o->key ? NULL : fz_pair_get(o->options, o->n, name);
    const fz_option *d = fz_option_find(table, name);
    return v ? v : d ? d->dflt : NULL;
}

/* Each worker opens a decoder of its own; the warning is given once a process. */
static void warn_once(const dec_format *f, const fz_option *d) {
    static _Atomic uint64_t given;
    uint64_t bit = 1ull << ((d - f->options) & 63);
    if (atomic_fetch_or(&given, bit) & bit) return;
    fz_log(FZ_LOG_WARN, "option.ignored", FZ_KV("format", "%s", f->name), FZ_KV("option", "%s", d->name), FZ_KV("reason", "%s", d->why), NULL);
}

static fz_status check(const dec_format *f, const dec_open *o, fz_error *err) {
    size_t n = strlen(f->name);
    for (size_t i = 0; i < o->n; i++) {
        const fz_pair *p = &o->options[i];
        if (fz_starts(p->key, o->key ? "value." : "key.")) continue; /* the other side's */
        const char *k = bare(p->key);
        if (strncmp(k, f->name, n) != 0 || k[n] != '.') continue;
        const fz_option *d = fz_option_find(f->options, k);
        if (!d) {
            const char *near = fz_option_nearest(f->options, k);
            fz_fail(err, FZ_USER, "option.unknown", "format '%s' has no option '%s'", f->name, p->key);
            if (near) fz_hint(err, "did you mean '%s'?", near);
            return fz_at(err, p->line, p->column);
        }
        if (d->state == FZ_OPT_REFUSED) {
            fz_fail(err, FZ_USER, "option.refused", "option '%s' is not supported", p->key);
            fz_hint(err, "%s", d->why);
            return fz_at(err, p->line, p->column);
        }
        fz_status s = fz_option_check(d, p->value, err);
        if (s != FZ_OK) return fz_at(err, p->line, p->column);
        if (d->state == FZ_OPT_NO_MEANING) warn_once(f, d);
    }
    return FZ_OK;
}

fz_status dec_new(const char *format, const fz_pair *options, size_t n, const col_schema *schema, const bool *wanted, bool key,
                  dec_decoder **out, fz_error *err) {
    const dec_format *f = NULL;
    for (size_t i = 0; i < N_FORMATS && !f; i++)
        if (strcmp(formats[i]->name, format) == 0) f = formats[i];
    if (!f) {
        fz_fail(err, FZ_USER, "format.unknown", "unknown format '%s'", format);
        return fz_hint(err, ONLY);
    }
    if (f->refused) {
        fz_fail(err, FZ_USER, "format.refused", "format '%s' is not supported: %s", format, f->refused);
        return fz_hint(err, ONLY);
    }
    dec_open o = {options, n, schema, wanted, key};
    FZ_TRY(check(f, &o, err));
    FZ_TRY(f->open(&o, out, err));
    dec_decoder *d = *out;
    d->format = f;
    d->schema = schema;
    d->key = key;
    d->wanted = fz_malloc(schema->n * sizeof *d->wanted);
    for (uint32_t i = 0; i < schema->n; i++) d->wanted[i] = !wanted || wanted[i];
    return FZ_OK;
}

void dec_free(dec_decoder *d) {
    if (!d) return;
    fz_free(d->wanted);
    d->format->close(d);
}

fz_status dec_decode(dec_decoder *d, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    memset(out, 0, sizeof *out);
    out->cols = FZ_ANEWN(a, col_vec *, d->schema->n);
    out->row_rec = fz_arena_alloc(a, c->n * sizeof *out->row_rec);
    FZ_TRY(d->format->decode(d, c, a, out, rejects, err));
    return FZ_OK;
}

bool dec_record_text(dec_decoder *d, const fz_record *r, fz_buf *out) {
    int32_t n;
    const uint8_t *in = dec_bytes(d, r, &n);
    if (n < 0 || r->oversized) return false;
    if (d->format->text) return d->format->text(d, in, (size_t)n, out);
    if (fz_utf8_valid((const char *)in, (size_t)n)) fz_buf_append(out, in, (size_t)n);
    else
        for (size_t i = 0; i < (size_t)n;) {
            char t[4];
            uint32_t cp = fz_utf8_next((const char *)in, (size_t)n, &i);
            fz_buf_append(out, t, fz_utf8_put(t, cp));
        }
    return true;
}

void dec_reject(fz_rejects *r, uint32_t rec, const char *code, const char *message) {
    FZ_GROW(r->v, r->n, r->cap);
    r->v[r->n++] = (fz_reject){.rec = rec, .code = code, .message = message};
}
