/* The format 'otlp': one LogRecord of OpenTelemetry (protobuf) a record becomes one row. The record's key is its context (base/otlp.h): resource and scope.
 *
 * Columns have these names, in any order, all optional:
 *   time_unix_nano, observed_time_unix_nano                BIGINT (nanoseconds), TIMESTAMP, TIMESTAMP_LTZ; 0 is NULL
 *   severity_number, flags, dropped_attributes_count       numbers; 0 where the record has none
 *   severity_text, event_name                              STRING; empty is NULL
 *   body                                                   any type, as an attribute's value
 *   trace_id, span_id                                      STRING (hexadecimal, small letters) or BYTES; none, or all zero: NULL
 *   attributes, resource_attributes, scope_attributes      MAP<STRING, t>, ROW by key, or STRING (a JSON object); never NULL
 *   scope_name, scope_version, resource_schema_url, scope_schema_url     STRING; empty is NULL
 *   resource_dropped_attributes_count, scope_dropped_attributes_count    numbers
 * A column of another name is the attribute of that name: the record's, else the resource's, else NULL.
 *
 * What becomes of a value (body, attributes), by the column's type
 *   a text                     as the same string in a JSON document would: as it is into STRING, '12' into INT ...; into BYTES its bytes
 *   bool, integer, double      as the same value in a JSON document would; into STRING its text
 *   bytes                      BYTES; in STRING Base64
 *   an array                   ARRAY; in STRING JSON text                a list of pairs    MAP, ROW; in STRING JSON text
 *   none                       NULL
 * Of equal keys the last value counts. Ill-formed UTF-8 is replaced by U+FFFD.
 *
 * What becomes of a record
 *   null                                     no row, counted as unparseable (no bytes at all are a record whose fields are all unset)
 *   broken                                   ignore-parse-errors: no row, counted as unparseable; otherwise a reject "otlp.parse"
 *   a value that its column cannot take      ignore-parse-errors: NULL; otherwise a reject that names the field
 *   larger than the ceiling                  reject "record.too-large"
 * Columns that any value can fill are not looked at when nobody wants them.
 */
#include "decode/otlp_dec_int.h"
#include "col/datetime.h"
#include <stdio.h>

const fz_option dec_otlp_options[] = {
    {.name = "otlp.ignore-parse-errors", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "A value that its column cannot take becomes NULL and a record that cannot be read gives no row (counted in frazil_decode_unparseable_total); otherwise such a record is a rejected row."},
    {0}};

typedef enum { CLASS_TIME, CLASS_NUMBER, CLASS_TEXT, CLASS_ID, CLASS_PAIRS, CLASS_ANY } odc_class;
static const struct { const char *name; odc_class class; } known[ODC_COUNT] = {
    [ODC_TIME] = {"time_unix_nano", CLASS_TIME}, [ODC_OBSERVED] = {"observed_time_unix_nano", CLASS_TIME}, [ODC_SEVERITY_NUMBER] = {"severity_number", CLASS_NUMBER},
    [ODC_SEVERITY_TEXT] = {"severity_text", CLASS_TEXT}, [ODC_BODY] = {"body", CLASS_ANY}, [ODC_TRACE_ID] = {"trace_id", CLASS_ID}, [ODC_SPAN_ID] = {"span_id", CLASS_ID},
    [ODC_FLAGS] = {"flags", CLASS_NUMBER}, [ODC_EVENT_NAME] = {"event_name", CLASS_TEXT}, [ODC_DROPPED] = {"dropped_attributes_count", CLASS_NUMBER},
    [ODC_ATTRIBUTES] = {"attributes", CLASS_PAIRS}, [ODC_NAMED] = {NULL, CLASS_ANY}, [ODC_RESOURCE_ATTRIBUTES] = {"resource_attributes", CLASS_PAIRS},
    [ODC_RESOURCE_DROPPED] = {"resource_dropped_attributes_count", CLASS_NUMBER}, [ODC_RESOURCE_SCHEMA_URL] = {"resource_schema_url", CLASS_TEXT}, [ODC_SCOPE_NAME] = {"scope_name", CLASS_TEXT},
    [ODC_SCOPE_VERSION] = {"scope_version", CLASS_TEXT}, [ODC_SCOPE_ATTRIBUTES] = {"scope_attributes", CLASS_PAIRS}, [ODC_SCOPE_DROPPED] = {"scope_dropped_attributes_count", CLASS_NUMBER},
    [ODC_SCOPE_SCHEMA_URL] = {"scope_schema_url", CLASS_TEXT}};

/* ---- what columns are ---- */

static odc_kind kind_of(const char *name) {
    for (int k = 0; k < ODC_COUNT; k++)
        if (known[k].name && strcmp(known[k].name, name) == 0) return (odc_kind)k;
    return ODC_NAMED;
}

static bool only_text(const col_type *t) {
    if (col_is_text(t->kind)) return true;
    if (t->kind != COL_MAP && t->kind != COL_ROW) return false;
    for (uint32_t i = 0; i < t->n_fields; i++)
        if (!col_is_text(t->fields[i].type->kind)) return false;
    return true;
}

static bool is_number(col_kind k) { return (k >= COL_TINYINT && k <= COL_DECIMAL) || col_is_text(k); }

static fz_status check_column(const col_field *f, odc_class class, fz_error *err) {
    col_kind k = f->type->kind;
    const char *want = NULL;
    switch (class) {
    case CLASS_TIME:
        if (k != COL_BIGINT && k != COL_DECIMAL && k != COL_TIMESTAMP && k != COL_TIMESTAMP_LTZ && !col_is_text(k)) want = "BIGINT, TIMESTAMP or TIMESTAMP_LTZ";
        break;
    case CLASS_NUMBER: if (!is_number(k)) want = "INT or BIGINT"; break;
    case CLASS_TEXT: if (!col_is_text(k)) want = "STRING"; break;
    case CLASS_ID: if (!col_is_varlen(k)) want = "STRING or BYTES"; break;
    case CLASS_PAIRS: if (k != COL_MAP && k != COL_ROW && !col_is_text(k)) want = "MAP, ROW or STRING"; break;
    case CLASS_ANY: break;
    }
    if (!want) return FZ_OK;
    fz_buf b = {0};
    col_type_text(&b, f->type);
    fz_fail(err, FZ_USER, "otlp.column-type", "column '%s' of the format 'otlp' cannot have the type %s", f->name, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return fz_hint(err, "give it the type %s", want);
}

/* ---- reading ---- */

static void add_pair(odc_list *l, const pb_field *f) {
    FZ_GROW(l->v, l->n, l->cap);
    l->v[l->n++] = (odc_bytes){f->p, f->n};
}

bool odc_read_record(otlp_decoder *d, const uint8_t *p, size_t n) {
    odc_record *r = &d->rec;
    if (!p) p = (const uint8_t *)"";
    const uint8_t *end = p + n;
    odc_list attributes = {.v = r->attributes.v, .cap = r->attributes.cap};
    pb_field f;
    pb_result got;
    *r = (odc_record){.attributes = attributes};
    while ((got = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire == PB_BYTES) {
            odc_bytes b = {f.p, f.n};
            switch (f.number) {
            case OTLP_RECORD_ATTRIBUTES: add_pair(&r->attributes, &f); break;
            case OTLP_RECORD_SEVERITY_TEXT: r->severity_text = b; break;
            case OTLP_RECORD_BODY: r->body = b; break;
            case OTLP_RECORD_TRACE_ID: r->trace_id = b; break;
            case OTLP_RECORD_SPAN_ID: r->span_id = b; break;
            case OTLP_RECORD_EVENT_NAME: r->event_name = b; break;
            default: break;
            }
        } else if (f.wire == PB_FIXED64) {
            if (f.number == OTLP_RECORD_TIME) r->time = f.v;
            else if (f.number == OTLP_RECORD_OBSERVED_TIME) r->observed = f.v;
        } else if (f.wire == PB_VARINT) {
            if (f.number == OTLP_RECORD_SEVERITY_NUMBER) r->severity_number = f.v;
            else if (f.number == OTLP_RECORD_DROPPED) r->dropped = f.v;
        } else if (f.wire == PB_FIXED32 && f.number == OTLP_RECORD_FLAGS) r->flags = f.v;
    }
    return got == PB_END || odc_broken(d);
}

/* A Resource (scope false) or an InstrumentationScope. */
static bool read_holder(otlp_decoder *d, const pb_field *holder, bool scope) {
    const uint8_t *p = holder->p, *end = p + holder->n;
    odc_context *cx = &d->cx;
    pb_field f;
    pb_result r;
    while ((r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire == PB_BYTES) {
            odc_bytes b = {f.p, f.n};
            if (!scope && f.number == OTLP_RESOURCE_ATTRIBUTES) add_pair(&cx->resource_attributes, &f);
            else if (scope && f.number == OTLP_SCOPE_ATTRIBUTES) add_pair(&cx->scope_attributes, &f);
            else if (scope && f.number == OTLP_SCOPE_NAME) cx->scope_name = b;
            else if (scope && f.number == OTLP_SCOPE_VERSION) cx->scope_version = b;
        } else if (f.wire == PB_VARINT) {
            if (!scope && f.number == OTLP_RESOURCE_DROPPED) cx->resource_dropped = f.v;
            else if (scope && f.number == OTLP_SCOPE_DROPPED) cx->scope_dropped = f.v;
        }
    }
    return r == PB_END || odc_broken(d);
}

/* Which of the columns are attributes of these names. */
static bool find_named(otlp_decoder *d, const odc_list *l, odc_bytes *named) {
    for (uint32_t i = 0; i < l->n; i++) {
        fz_sv key;
        odc_bytes value;
        if (!odc_read_pair(d, l->v[i], &key, &value)) return false;
        int k = js_col_find(&d->json.root, key.p, key.n);
        if (k >= 0 && d->kind[k] == ODC_NAMED) named[k] = value;
    }
    return true;
}

static bool read_context(otlp_decoder *d) {
    odc_context *cx = &d->cx;
    const uint8_t *p = cx->bytes.data ? cx->bytes.data : (const uint8_t *)"", *end = p + cx->bytes.len;
    pb_field f;
    pb_result r = PB_END;
    cx->resource_schema_url = cx->scope_name = cx->scope_version = cx->scope_schema_url = (odc_bytes){0};
    cx->resource_dropped = cx->scope_dropped = cx->resource_attributes.n = cx->scope_attributes.n = 0;
    memset(cx->named, 0, d->json.root.n_child * sizeof *cx->named);
    while (cx->bytes.len && (r = pb_next(&p, end, &f)) == PB_FIELD) {
        if (f.wire != PB_BYTES) continue;
        odc_bytes b = {f.p, f.n};
        if (f.number == OTLP_CONTEXT_RESOURCE_SCHEMA_URL) cx->resource_schema_url = b;
        else if (f.number == OTLP_CONTEXT_SCOPE_SCHEMA_URL) cx->scope_schema_url = b;
        else if ((f.number == OTLP_CONTEXT_RESOURCE || f.number == OTLP_CONTEXT_SCOPE) && !read_holder(d, &f, f.number == OTLP_CONTEXT_SCOPE)) return false;
    }
    if (r != PB_END) return odc_broken(d);
    return !d->any_named || find_named(d, &cx->resource_attributes, cx->named);
}

/* Is the context the one at hand? Else it becomes so. */
static bool enter_context(otlp_decoder *d, const uint8_t *p, size_t n) {
    odc_context *cx = &d->cx;
    cx->raw = n ? (odc_bytes){p, n} : (odc_bytes){(const uint8_t *)"", 0};
    if (cx->known && cx->bytes.len == n && (!n || memcmp(cx->bytes.data, p, n) == 0)) return true;
    cx->bytes.len = 0;
    fz_buf_append(&cx->bytes, p, n);
    d->repeated = 0;
    cx->known = read_context(d);
    return cx->known;
}

bool odc_id(odc_bytes id, uint32_t want, uint8_t out[OTLP_TRACE_ID], uint32_t *n) {
    *n = 0;
    if (!id.n) return true;
    if (id.n == want) memcpy(out, id.p, want);
    else if (id.n == 2 * want) { /* the text where the bytes belong */
        for (uint32_t i = 0; i < 2 * want; i++) {
            uint8_t c = id.p[i], lower = c | 0x20, v;
            if (c >= '0' && c <= '9') v = c - '0';
            else if (lower >= 'a' && lower <= 'f') v = (uint8_t)(lower - 'a' + 10);
            else return false;
            out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | v : v << 4);
        }
    } else return false;
    for (uint32_t i = 0; i < want; i++)
        if (out[i]) *n = want;
    return true;
}

/* ---- columns ---- */

static bool put_time(otlp_decoder *d, js_col *c, uint64_t ns) {
    if (!ns) js_put_null(c);
    else if (c->kind == COL_TIMESTAMP || c->kind == COL_TIMESTAMP_LTZ) js_put_i64(c, dt_cut((int64_t)(ns / 1000), c->type->precision));
    else if (ns > INT64_MAX) return js_error(&d->json.parser, "%llu nanoseconds are more than 64 bits with a sign can hold", (unsigned long long)ns);
    else return odc_put_integer(d, c, (int64_t)ns);
    return true;
}

static bool put_name(otlp_decoder *d, js_col *c, odc_bytes s) {
    if (s.n) return odc_put_text(d, c, s);
    js_put_null(c);
    return true;
}

static bool put_id(otlp_decoder *d, js_col *c, odc_bytes id, uint32_t want) {
    uint8_t bytes[OTLP_TRACE_ID];
    char hex[2 * OTLP_TRACE_ID];
    uint32_t n;
    if (!odc_id(id, want, bytes, &n)) return js_error(&d->json.parser, "an id has %zu bytes, not %u", id.n, want);
    if (!n) js_put_null(c);
    else if (!col_is_text(c->kind)) js_put_bytes(c, (const char *)bytes, n);
    else {
        odc_hex(bytes, n, hex);
        js_put_bytes(c, hex, 2 * n);
    }
    return true;
}

/* The value of the row before once more, without going over its pairs again. */
static bool put_shared_pairs(otlp_decoder *d, js_col *c, const odc_list *l) {
    odc_bytes raw = d->cx.raw;
    if (c->use_dict && c->kind == COL_MAP) {
        if (raw.n && js_map_before(c, raw.p, raw.n) == raw.n) js_put_same(c);
        else if (!js_put_map_again(c, raw.p, raw.n)) return odc_put_pairs(d, c, l);
        return true;
    }
    if (!d->repeated || c->kind != COL_MAP || c->len == 0) return odc_put_pairs(d, c, l);
    uint32_t from = c->off[c->len - 1], to = c->off[c->len];
    for (uint32_t i = from; i < to; i++) {
        js_put_from(&c->child[0], &c->child[0], i);
        js_put_from(&c->child[1], &c->child[1], i);
    }
    js_put_array(c);
    return true;
}

static bool put_column(otlp_decoder *d, uint32_t k) {
    js_col *c = &d->json.root.child[k];
    const odc_record *r = &d->rec;
    const odc_context *cx = &d->cx;
    switch (d->kind[k]) {
    case ODC_TIME: return put_time(d, c, r->time);
    case ODC_OBSERVED: return put_time(d, c, r->observed);
    case ODC_SEVERITY_NUMBER: return odc_put_integer(d, c, (int32_t)r->severity_number);
    case ODC_SEVERITY_TEXT: return put_name(d, c, r->severity_text);
    case ODC_BODY: return odc_put_any(d, c, r->body, 1);
    case ODC_TRACE_ID: return put_id(d, c, r->trace_id, OTLP_TRACE_ID);
    case ODC_SPAN_ID: return put_id(d, c, r->span_id, OTLP_SPAN_ID);
    case ODC_FLAGS: return odc_put_integer(d, c, (int64_t)r->flags);
    case ODC_EVENT_NAME: return put_name(d, c, r->event_name);
    case ODC_DROPPED: return odc_put_integer(d, c, (uint32_t)r->dropped);
    case ODC_ATTRIBUTES: return odc_put_pairs(d, c, &r->attributes);
    case ODC_NAMED: return odc_put_any(d, c, d->named[k].p ? d->named[k] : cx->named[k], 1);
    case ODC_RESOURCE_ATTRIBUTES: return put_shared_pairs(d, c, &cx->resource_attributes);
    case ODC_RESOURCE_DROPPED: return odc_put_integer(d, c, (uint32_t)cx->resource_dropped);
    case ODC_RESOURCE_SCHEMA_URL: return put_name(d, c, cx->resource_schema_url);
    case ODC_SCOPE_NAME: return put_name(d, c, cx->scope_name);
    case ODC_SCOPE_VERSION: return put_name(d, c, cx->scope_version);
    case ODC_SCOPE_ATTRIBUTES: return put_shared_pairs(d, c, &cx->scope_attributes);
    case ODC_SCOPE_DROPPED: return odc_put_integer(d, c, (uint32_t)cx->scope_dropped);
    case ODC_SCOPE_SCHEMA_URL: return put_name(d, c, cx->scope_schema_url);
    case ODC_COUNT: break;
    }
    return false;
}

static bool put_record(otlp_decoder *d, const fz_record *rec, const uint8_t *p, size_t n) {
    js_col *root = &d->json.root;
    bool has_key = !d->base.key && rec->key_len > 0;
    d->json.field[0] = 0;
    if (!enter_context(d, has_key ? rec->key : NULL, has_key ? (size_t)rec->key_len : 0) || !odc_read_record(d, p, n)) return false;
    if (d->any_named) {
        memset(d->named, 0, root->n_child * sizeof *d->named);
        if (!find_named(d, &d->rec.attributes, d->named)) return false;
    }
    for (uint32_t k = 0; k < root->n_child; k++) {
        if (d->skip[k]) continue;
        js_col *c = &root->child[k];
        uint32_t before = c->len;
        if (put_column(d, k)) continue;
        js_col_cut(c, before);
        if (!d->json.ignore_errors) {
            snprintf(d->json.field, sizeof d->json.field, "%s", c->name);
            return false;
        }
        js_put_null(c);
    }
    js_put_row(root);
    d->repeated++;
    return true;
}

/* ---- the format ---- */

static void unparseable(dec_output *out, uint32_t rec, const char *message) {
    out->n_unparseable++;
    if (out->sample || !message) return;
    out->sample = message;
    out->sample_rec = rec;
}

static const char *message_of(otlp_decoder *d, fz_arena *a) {
    if (!d->json.field[0]) return fz_arena_strdup(a, d->json.parser.msg);
    return fz_arena_printf(a, "Fail to deserialize at field: %s. (%s)", d->json.field, d->json.parser.msg);
}

static void decode_record(otlp_decoder *d, const fz_chunk *c, uint32_t i, fz_arena *a, dec_output *out, fz_rejects *rejects) {
    int32_t n;
    const uint8_t *in = dec_bytes(&d->base, &c->rec[i], &n);
    if (c->rec[i].oversized) {
        dec_reject(rejects, i, "record.too-large", "the record is larger than source.max-record-size");
        return;
    }
    if (n < 0) {
        unparseable(out, i, NULL);
        out->n_tombstones++;
        return;
    }
    uint32_t rows = d->json.root.len;
    if (put_record(d, &c->rec[i], in, (size_t)n)) {
        out->row_rec[out->n_rows++] = i;
        return;
    }
    for (uint32_t k = 0; k < d->json.root.n_child; k++)
        if (!d->skip[k]) js_col_cut(&d->json.root.child[k], rows);
    const char *message = d->json.ignore_errors && out->sample ? NULL : message_of(d, a);
    if (d->json.ignore_errors) unparseable(out, i, message);
    else dec_reject(rejects, i, "otlp.parse", message);
}

static fz_status otlp_decode(dec_decoder *base, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    otlp_decoder *d = (otlp_decoder *)base;
    (void)err;
    fz_arena_reset(d->json.scratch);
    js_columns_begin(&d->json.root, a, d->json.scratch, c->n);
    d->repeated = 0;
    for (uint32_t i = 0; i < c->n; i++) decode_record(d, c, i, a, out, rejects);
    for (uint32_t k = 0; k < d->json.root.n_child; k++)
        if (!d->json.root.child[k].discard) out->cols[k] = js_col_finish(&d->json.root.child[k]);
    return FZ_OK;
}

static void otlp_close(dec_decoder *base) {
    otlp_decoder *d = (otlp_decoder *)base;
    fz_free(d->rec.attributes.v);
    fz_free(d->cx.resource_attributes.v);
    fz_free(d->cx.scope_attributes.v);
    fz_buf_free(&d->cx.bytes);
    fz_buf_free(&d->text);
    fz_buf_free(&d->repaired);
    js_decoder_release(&d->json);
    fz_free(d);
}

static fz_status otlp_open(const dec_open *o, dec_decoder **out, fz_error *err) {
    int ignore = 0;
    FZ_TRY(js_check_types(o->schema, "OTLP", "otlp.map-key", err));
    for (uint32_t i = 0; i < o->schema->n; i++) FZ_TRY(check_column(&o->schema->fields[i], known[kind_of(o->schema->fields[i].name)].class, err));
    FZ_TRY(fz_parse_bool(dec_option(o, dec_otlp_options, "otlp.ignore-parse-errors"), &ignore, err));
    otlp_decoder *d = FZ_NEW(otlp_decoder);
    d->json.ignore_errors = ignore != 0;
    js_decoder_init(&d->json, o->schema, o->wanted);
    uint32_t n = o->schema->n;
    fz_arena *a = d->json.own;
    d->kind = FZ_ANEWN(a, odc_kind, n + 1);
    d->skip = FZ_ANEWN(a, bool, n + 1);
    d->named = FZ_ANEWN(a, odc_bytes, n + 1);
    d->cx.named = FZ_ANEWN(a, odc_bytes, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        d->kind[i] = kind_of(o->schema->fields[i].name);
        d->skip[i] = o->wanted && !o->wanted[i] && only_text(o->schema->fields[i].type) && known[d->kind[i]].class != CLASS_ID;
        if (d->kind[i] == ODC_RESOURCE_ATTRIBUTES || d->kind[i] == ODC_SCOPE_ATTRIBUTES) js_map_in_dictionary(&d->json.root.child[i]);
        d->any_named |= d->kind[i] == ODC_NAMED && !d->skip[i];
    }
    *out = &d->base;
    return FZ_OK;
}

const dec_format dec_otlp = {.name = "otlp", .options = dec_otlp_options, .open = otlp_open, .close = otlp_close, .decode = otlp_decode, .text = odc_record_text};
