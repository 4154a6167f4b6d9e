/* The format 'json': one document a record becomes one row, as Flink's 'json' format reads it. Options, counting and rejects stand
 * here; reading in json_fast*.c and json_exact.c.
 *
 * What becomes of a record
 *   null, or no bytes at all    no row, counted as unparseable (Flink: silently nothing); null is a tombstone
 *   broken document             ignore-parse-errors: no row, counted as unparseable; otherwise a reject "json.parse"
 *   wrong value in a field      ignore-parse-errors: NULL; otherwise a reject that names the field
 *   larger than the ceiling     reject "record.too-large"
 * What follows the document in the record is not looked at.
 */
#include "decode/json_int.h"
#include <stdio.h>

const fz_option dec_json_options[] = {
    {.name = "json.fail-on-missing-field", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "Whether a document without one of the table's fields is an error. Cannot be combined with json.ignore-parse-errors."},
    {.name = "json.ignore-parse-errors", .type = FZ_OPT_BOOL, .dflt = "false", .doc = "A field that cannot be read becomes NULL and a document that cannot be read gives no row (counted in frazil_decode_unparseable_total); otherwise such a record is a rejected row."},
    {.name = "json.timestamp-format.standard", .type = FZ_OPT_ENUM, .dflt = "SQL", .allowed = "SQL|ISO-8601", .doc = "Form of timestamps: SQL is '2026-09-16 12:34:56.123', ISO-8601 is '2026-09-16T12:34:56.123'; both end in 'Z' for TIMESTAMP_LTZ."},
    {.name = "json.map-null-key.mode", .type = FZ_OPT_ENUM, .dflt = "FAIL", .allowed = "FAIL|DROP|LITERAL", .state = FZ_OPT_NO_MEANING, .doc = "What to do with NULL keys of a MAP when documents are written.", .why = "documents are read, not written"},
    {.name = "json.map-null-key.literal", .type = FZ_OPT_STRING, .dflt = "null", .state = FZ_OPT_NO_MEANING, .doc = "The key to write for NULL.", .why = "documents are read, not written"},
    {.name = "json.encode.decimal-as-plain-number", .type = FZ_OPT_BOOL, .dflt = "false", .state = FZ_OPT_NO_MEANING, .doc = "How to write decimals.", .why = "documents are read, not written"},
    {.name = "json.encode.ignore-null-fields", .type = FZ_OPT_BOOL, .dflt = "false", .state = FZ_OPT_NO_MEANING, .doc = "Whether to write NULL fields.", .why = "documents are read, not written"},
    {.name = "json.decode.json-parser.enabled", .type = FZ_OPT_BOOL, .dflt = "true", .doc = "Flink's choice between two readers; only the default one, 'true', is available."},
    {0}};

static bool has_decimal(const col_type *t) {
    if (t->kind == COL_DECIMAL) return true;
    for (uint32_t i = 0; i < t->n_fields; i++)
        if (has_decimal(t->fields[i].type)) return true;
    return false;
}

static bool has_other_key(const col_type *t) {
    if (t->kind == COL_MAP && !col_is_text(t->fields[0].type->kind)) return true;
    for (uint32_t i = 0; i < t->n_fields; i++)
        if (has_other_key(t->fields[i].type)) return true;
    return false;
}

fz_status js_check_types(const col_schema *s, const char *format, const char *code, fz_error *err) {
    for (uint32_t i = 0; i < s->n; i++)
        if (has_other_key(s->fields[i].type))
            return fz_fail(err, FZ_USER, code, "column '%s': the %s format does not support maps whose keys are not strings", s->fields[i].name, format);
    return FZ_OK;
}

static bool is_true(const dec_open *o, const char *name) {
    int v = 0;
    fz_error ignored;
    return fz_parse_bool(dec_option(o, dec_json_options, name), &v, &ignored) == FZ_OK && v;
}

void js_columns_init(fz_arena *a, js_col *root, const col_schema *schema, const bool *wanted) {
    js_col_init(a, root, "", col_row(a, schema->fields, schema->n, false));
    for (uint32_t i = 0; i < schema->n; i++) {
        js_col *c = &root->child[i];
        c->discard = wanted && !wanted[i];
        if (!c->discard && col_is_varlen(c->kind)) c->dict = FZ_NEW(js_dict);
    }
}

void js_columns_begin(js_col *root, fz_arena *a, fz_arena *scratch, uint32_t rows) {
    js_col_begin_row(root, scratch, rows);
    for (uint32_t k = 0; k < root->n_child; k++) js_col_begin(&root->child[k], root->child[k].discard ? scratch : a, rows);
}

void js_decoder_init(json_decoder *d, const col_schema *schema, const bool *wanted) {
    d->own = fz_arena_new();
    d->scratch = fz_arena_new();
    js_columns_init(d->own, &d->root, schema, wanted);
    d->plain_decimals = has_decimal(d->root.type);
    d->fast = js_fast_new();
    d->row = js_fast_pick();
}

void js_decoder_release(json_decoder *d) {
    js_col_free(&d->root);
    js_parser_free(&d->parser);
    js_fast_free(d->fast);
    fz_buf_free(&d->tree);
    fz_buf_free(&d->wide);
    fz_arena_free(d->scratch);
    fz_arena_free(d->own);
}

static void json_close(dec_decoder *base) {
    js_decoder_release((json_decoder *)base);
    fz_free(base);
}

static fz_status json_open(const dec_open *o, dec_decoder **out, fz_error *err) {
    bool ignore = is_true(o, "json.ignore-parse-errors"), missing = is_true(o, "json.fail-on-missing-field");
    if (ignore && missing) return fz_fail(err, FZ_USER, "option.conflict", "json.fail-on-missing-field and json.ignore-parse-errors shouldn't both be true");
    if (!is_true(o, "json.decode.json-parser.enabled")) {
        fz_fail(err, FZ_USER, "option.refused", "'json.decode.json-parser.enabled' = 'false' is not supported");
        return fz_hint(err, "leave it out; the default, 'true', reads the same documents");
    }
    FZ_TRY(js_check_types(o->schema, "JSON", "json.map-key", err));
    json_decoder *d = FZ_NEW(json_decoder);
    d->ignore_errors = ignore;
    d->fail_on_missing = missing;
    d->iso = fz_ieq(dec_option(o, dec_json_options, "json.timestamp-format.standard"), "ISO-8601");
    js_decoder_init(d, o->schema, o->wanted);
    *out = &d->base;
    return FZ_OK;
}

/* "Fail to deserialize at field: n. (why, byte 5)" */
const char *js_message(const json_decoder *d, fz_arena *a) {
    const js_parser *p = &d->parser;
    if (d->field[0]) return fz_arena_printf(a, "Fail to deserialize at field: %s. (%s, at byte %zu)", d->field, p->msg, p->ptr);
    return fz_arena_printf(a, "%s (at byte %zu)", p->msg, p->ptr);
}

static void unparseable(dec_output *out, uint32_t rec, const char *message) {
    out->n_unparseable++;
    if (out->sample || !message) return;
    out->sample = message;
    out->sample_rec = rec;
}

static void decode_record(json_decoder *d, const fz_chunk *c, uint32_t i, fz_arena *a, dec_output *out, fz_rejects *rejects) {
    const fz_record *r = &c->rec[i];
    int32_t n;
    const uint8_t *in = dec_bytes(&d->base, r, &n);
    if (r->oversized) {
        dec_reject(rejects, i, "record.too-large", "the record is larger than source.max-record-size");
        return;
    }
    if (n <= 0) {
        unparseable(out, i, NULL);
        out->n_tombstones += n < 0;
        return;
    }
    if (d->row(d, in, (size_t)n) || js_exact(d, in, (size_t)n)) {
        out->row_rec[out->n_rows++] = i;
        return;
    }
    const char *message = d->ignore_errors && out->sample ? NULL : js_message(d, a);
    if (d->ignore_errors) unparseable(out, i, message);
    else dec_reject(rejects, i, "json.parse", message);
}

static fz_status json_decode(dec_decoder *base, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    json_decoder *d = (json_decoder *)base;
    (void)err;
    fz_arena_reset(d->scratch);
    js_columns_begin(&d->root, a, d->scratch, c->n);
    for (uint32_t i = 0; i < c->n; i++) decode_record(d, c, i, a, out, rejects);
    for (uint32_t k = 0; k < d->root.n_child; k++)
        if (!d->root.child[k].discard) out->cols[k] = js_col_finish(&d->root.child[k]);
    return FZ_OK;
}

const dec_format dec_json = {.name = "json", .options = dec_json_options, .open = json_open, .close = json_close, .decode = json_decode};
