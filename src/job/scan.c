/* See scan.h. */
#include "job/scan.h"
#include "col/datetime.h"
#include <stdlib.h>

typedef struct part { /* one decoder's share of the table: value or key */
    const char *format;
    col_schema schema;        /* the physical columns that it decodes, names as the format sees them */
    uint32_t *column;         /* -> index in the scan's schema */
    bool *wanted;
    fz_pair *options;         /* "<format>.x" only */
    size_t n_options;
} part;

struct job_scan {
    fz_arena *arena;
    const sql_plan *plan;
    src_source *source;
    part value, key;
    fz_log_limit sample_limit;
};
struct job_scan_reader { job_scan *scan; dec_decoder *value, *key; };

static const char *opt(const sql_table *t, const char *key) { return fz_pair_get(t->options, t->n_options, key); }

static fz_status option_error(const sql_table *t, const char *code, const char *name, const char *what, fz_error *err) {
    fz_fail(err, FZ_USER, code, "table %s: option '%s' %s", t->path, name, what);
    for (uint32_t i = 0; i < t->n_options; i++)
        if (strcmp(t->options[i].key, name) == 0) return fz_at(err, t->options[i].line, t->options[i].column);
    return FZ_USER;
}

/* Is col one of the ';'-separated names? */
static bool in_list(const char *list, const char *col) {
    for (const char *p = list; p && *p;) {
        const char *semi = strchr(p, ';');
        size_t n = semi ? (size_t)(semi - p) : strlen(p);
        fz_sv name = fz_sv_trim((fz_sv){p, n});
        if (fz_sv_eq(name, fz_sv_of(col))) return true;
        p += n + (semi != NULL);
    }
    return false;
}

/* Options of one format as the script spells them; the decoder tells "key.json.x", "value.json.x" and "json.x" apart. */
static void take_options(fz_arena *a, const sql_table *t, part *p, const char *prefix, bool bare) {
    p->options = FZ_ANEWN(a, fz_pair, t->n_options + 1);
    size_t pre = strlen(prefix), fmt = strlen(p->format);
    for (uint32_t i = 0; i < t->n_options; i++) {
        const char *k = t->options[i].key;
        const char *name = fz_starts(k, prefix) ? k + pre : bare ? k : NULL;
        if (name && fz_starts(name, p->format) && name[fmt] == '.') p->options[p->n_options++] = t->options[i];
    }
}

/* Options of formats that the table does not use would be silently ignored: refuse them. */
static fz_status check_strays(const sql_table *t, const part *value, const part *key, fz_error *err) {
    for (uint32_t i = 0; i < t->n_options; i++) {
        const char *k = t->options[i].key, *name = k;
        bool for_key = fz_starts(k, "key."), for_value = fz_starts(k, "value.");
        if (for_key || for_value) name = strchr(k, '.') + 1;
        for (const dec_format_info *f = dec_formats(); f->name; f++) {
            size_t n = strlen(f->name);
            if (strncmp(name, f->name, n) != 0 || name[n] != '.') continue;
            bool used = (!for_key && value->format && strcmp(value->format, f->name) == 0) || (for_key && key->format && strcmp(key->format, f->name) == 0);
            if (!used) return option_error(t, "option.unknown", k, "belongs to a format that the table does not use", err);
        }
    }
    return FZ_OK;
}

static void add_column(part *p, const sql_column *c, const char *name, uint32_t at, bool wanted) {
    ((col_field *)(uintptr_t)p->schema.fields)[p->schema.n] = (col_field){name, c->type, c->comment};
    p->column[p->schema.n] = at;
    p->wanted[p->schema.n++] = wanted;
}

static fz_status check_key_fields(const sql_table *t, const char *fields, fz_error *err) {
    for (const char *p = fields; *p;) {
        size_t n = strcspn(p, ";");
        fz_sv name = fz_sv_trim((fz_sv){p, n});
        bool found = name.n == 0;
        for (uint32_t i = 0; i < t->n_columns && !found; i++)
            found = t->columns[i].kind == SQL_COL_PHYSICAL && fz_sv_eq(name, fz_sv_of(t->columns[i].name));
        if (!found) {
            char *what = fz_asprintf("names '%.*s', which is no physical column of the table", (int)name.n, name.p);
            fz_status rc = option_error(t, "option.invalid", "key.fields", what, err);
            fz_free(what);
            return rc;
        }
        p += n + (p[n] == ';');
    }
    return FZ_OK;
}

/* Deals the physical columns to the value's and the key's decoder. */
static fz_status deal(fz_arena *a, const sql_table *t, const bool *wanted, part *value, part *key, fz_error *err) {
    const char *connector = opt(t, "connector"), *fields = opt(t, "key.fields"), *prefix = opt(t, "key.fields-prefix"), *include = opt(t, "value.fields-include");
    value->format = opt(t, "value.format") ? opt(t, "value.format") : opt(t, "format");
    key->format = opt(t, "key.format");
    if (connector && fz_ieq(connector, "datagen")) value->format = "json"; /* its records are made as JSON */
    if (!value->format && connector) value->format = src_default_format(connector);
    if (opt(t, "format") && opt(t, "value.format")) return option_error(t, "option.conflict", "value.format", "and 'format' are both set", err);
    if (!value->format) {
        fz_fail(err, FZ_USER, "option.missing", "table %s: required option 'format' is missing", t->path);
        return fz_hint(err, "add 'format' = 'json'");
    }
    if (fields && !key->format) return option_error(t, "option.conflict", "key.fields", "needs 'key.format'", err);
    if (key->format && (!fields || !*fields)) return option_error(t, "option.conflict", "key.format", "needs one or more columns in 'key.fields'", err);
    if (fields) FZ_TRY(check_key_fields(t, fields, err));
    bool except = include && fz_ieq(include, "EXCEPT_KEY");
    if (include && !except && !fz_ieq(include, "ALL")) return option_error(t, "option.invalid", "value.fields-include", "must be ALL or EXCEPT_KEY", err);
    part *both[] = {value, key};
    for (int k = 0; k < 2; k++) {
        both[k]->schema.fields = FZ_ANEWN(a, col_field, t->n_columns + 1);
        both[k]->column = FZ_ANEWN(a, uint32_t, t->n_columns + 1);
        both[k]->wanted = FZ_ANEWN(a, bool, t->n_columns + 1);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const sql_column *c = &t->columns[i];
        if (c->kind != SQL_COL_PHYSICAL) continue;
        bool is_key = key->format && fields && in_list(fields, c->name), want = !wanted || wanted[at];
        if (is_key) {
            const char *name = c->name;
            if (prefix && *prefix) {
                if (!fz_starts(name, prefix)) return option_error(t, "option.conflict", "key.fields-prefix", "is not how every key field begins", err);
                name += strlen(prefix);
            }
            add_column(key, c, name, at, want && except);
        }
        if (!is_key || !except) add_column(value, c, c->name, at, want); /* with ALL the value has the last word, as in Flink */
        at++;
    }
    take_options(a, t, value, "value.", true);
    if (key->format) take_options(a, t, key, "key.", false);
    return check_strays(t, value, key, err);
}

/* A format's zone, where the table names none, is the session's. */
static void default_zone(fz_arena *a, part *p, const char *zone) {
    const char *name = fz_arena_printf(a, "%s.time-zone", p->format), *with_prefix = fz_arena_printf(a, "value.%s", name);
    for (const dec_format_info *f = dec_formats(); f->name; f++)
        if (strcmp(f->name, p->format) == 0 && fz_option_find(f->options, name) && !fz_pair_get(p->options, p->n_options, name) && !fz_pair_get(p->options, p->n_options, with_prefix))
            p->options[p->n_options++] = (fz_pair){.key = name, .value = zone}; /* take_options has left room */
}

static fz_status decoder_of(const part *p, bool key, dec_decoder **out, fz_error *err) {
    return dec_new(p->format, p->options, p->n_options, &p->schema, p->wanted, key, out, err);
}

fz_status job_scan_check(const sql_table *t, fz_error *err) {
    fz_arena *a = fz_arena_new();
    part value = {0}, key = {0};
    dec_decoder *d = NULL;
    fz_status rc = src_check(t->options, t->n_options, t->path, err);
    if (rc == FZ_OK) rc = deal(a, t, NULL, &value, &key, err);
    if (rc == FZ_OK) {
        rc = decoder_of(&value, false, &d, err);
        dec_free(d);
        d = NULL;
    }
    if (rc == FZ_OK && key.format) {
        rc = decoder_of(&key, true, &d, err);
        dec_free(d);
    }
    fz_arena_free(a);
    return rc;
}

static fz_status check_metadata(const sql_plan *p, fz_error *err) {
    const char *connector = opt(p->table, "connector");
    const src_metadata_column *known = src_metadata_columns(connector);
    for (uint32_t i = p->n_scan_physical; i < p->schema->n; i++) {
        const char *key = p->scan_metadata[i - p->n_scan_physical];
        const src_metadata_column *m = known;
        while (m && m->key && strcmp(m->key, key) != 0) m++;
        if (m && m->key) continue;
        fz_fail(err, FZ_USER, "sql.metadata", "table %s: connector '%s' has no metadata column '%s'", p->table->path, connector, key);
        fz_buf b = {0};
        for (m = known; m && m->key; m++) fz_buf_printf(&b, "%s%s", m == known ? "" : ", ", m->key);
        fz_status rc = fz_hint(err, "it has: %s", fz_buf_cstr(&b));
        fz_buf_free(&b);
        return rc;
    }
    return FZ_OK;
}

/* Names and types of the physical columns, for connectors that make rows. */
static void fill_fields(fz_arena *a, const sql_plan *p, src_context *cx) {
    src_field *v = FZ_ANEWN(a, src_field, p->n_scan_physical + 1);
    for (uint32_t i = 0; i < p->n_scan_physical; i++) {
        fz_buf b = {0};
        col_type_text(&b, p->schema->fields[i].type);
        v[i] = (src_field){p->schema->fields[i].name, fz_arena_strdup(a, fz_buf_cstr(&b))};
        fz_buf_free(&b);
    }
    cx->fields = v;
    cx->n_fields = p->n_scan_physical;
}

fz_status job_scan_open(const sql_plan *plan, const src_context *cx, job_scan **out, fz_error *err) { return job_scan_open_over(plan, cx, NULL, out, err); }

fz_status job_scan_open_over(const sql_plan *plan, const src_context *cx, src_source *source, job_scan **out, fz_error *err) {
    job_scan *s = FZ_NEW(job_scan);
    s->arena = fz_arena_new();
    s->source = source;
    s->plan = plan;
    src_context full = *cx;
    full.table = plan->table->path;
    fill_fields(s->arena, plan, &full);
    full.need_key = true; /* a pointer a record: cheap, and the last record's hash covers the key */
    for (uint32_t i = plan->n_scan_physical; i < plan->schema->n; i++)
        if (plan->wanted[i] && strcmp(plan->scan_metadata[i - plan->n_scan_physical], "headers") == 0) full.need_headers = true;
    dec_decoder *d = NULL;
    fz_status rc = check_metadata(plan, err);
    if (rc == FZ_OK) rc = deal(s->arena, plan->table, plan->wanted, &s->value, &s->key, err);
    if (rc == FZ_OK && cx->time_zone) default_zone(s->arena, &s->value, fz_arena_strdup(s->arena, cx->time_zone));
    if (rc == FZ_OK) rc = decoder_of(&s->value, false, &d, err);
    dec_free(d);
    if (rc == FZ_OK && !source) rc = src_open(plan->table->options, plan->table->n_options, &full, &s->source, err);
    if (rc != FZ_OK) {
        job_scan_close(s);
        return rc;
    }
    *out = s;
    return FZ_OK;
}
void job_scan_close(job_scan *s) {
    if (!s) return;
    src_close(s->source);
    fz_arena_free(s->arena);
    fz_free(s);
}
src_source *job_scan_source(job_scan *s) { return s->source; }
const sql_plan *job_scan_plan(const job_scan *s) { return s->plan; }

fz_status job_scan_reader_new(job_scan *s, job_scan_reader **out, fz_error *err) {
    job_scan_reader *r = FZ_NEW(job_scan_reader);
    r->scan = s;
    fz_status rc = decoder_of(&s->value, false, &r->value, err);
    if (rc == FZ_OK && s->key.format) rc = decoder_of(&s->key, true, &r->key, err);
    if (rc != FZ_OK) {
        job_scan_reader_free(r);
        return rc;
    }
    *out = r;
    return FZ_OK;
}
void job_scan_reader_free(job_scan_reader *r) {
    if (!r) return;
    dec_free(r->value);
    dec_free(r->key);
    fz_free(r);
}

/* ---- metadata columns ---- */
static col_vec *constant_text(fz_arena *a, const col_type *t, const char *text, uint32_t n) {
    col_builder *b = col_builder_new(a, t);
    if (text) col_add_bytes(b, text, strlen(text));
    else col_add_null(b);
    return col_vec_const(a, col_builder_finish(b), 0, n);
}
/* Kafka allows a name twice, a MAP does not: the last value stays, as in Flink. */
static bool comes_again(const fz_record *r, uint16_t h) {
    for (uint16_t i = (uint16_t)(h + 1); i < r->n_headers; i++)
        if (strcmp(r->headers[i].key, r->headers[h].key) == 0) return true;
    return false;
}

static void add_headers(col_builder *b, const fz_record *r) {
    for (uint16_t h = 0; h < r->n_headers; h++) {
        if (comes_again(r, h)) continue;
        col_add_bytes(col_builder_child(b, 0), r->headers[h].key, strlen(r->headers[h].key));
        if (r->headers[h].value_len < 0) col_add_null(col_builder_child(b, 1));
        else col_add_bytes(col_builder_child(b, 1), r->headers[h].value, (size_t)r->headers[h].value_len);
    }
    col_add_nested(b);
}
static const char *const timestamp_types[] = {"NoTimestampType", "CreateTime", "LogAppendTime"};

/* The records' keys as text, in the dictionary form: runs of records have the same. Ill-formed UTF-8 is replaced. */
static col_vec *tags(const col_type *t, const fz_chunk *c, const uint32_t *row_rec, uint32_t n, fz_arena *a) {
    col_builder *b = col_builder_new(a, t);
    uint32_t *idx = fz_arena_alloc(a, ((size_t)n + 1) * sizeof *idx), entries = 0;
    const fz_record *last = NULL;
    fz_buf tmp = {0};
    for (uint32_t i = 0; i < n; i++) {
        const fz_record *r = &c->rec[row_rec[i]];
        if (!last || last->key_len != r->key_len || (last->key != r->key && r->key_len > 0 && memcmp(last->key, r->key, (size_t)r->key_len) != 0)) {
            tmp.len = 0;
            for (size_t k = 0; r->key_len > 0 && k < (size_t)r->key_len;) {
                char u[4];
                uint32_t cp = fz_utf8_next((const char *)r->key, (size_t)r->key_len, &k);
                fz_buf_append(&tmp, u, fz_utf8_put(u, cp));
            }
            if (r->key_len < 0) col_add_null(b);
            else col_add_bytes(b, tmp.data, tmp.len);
            entries++;
        }
        idx[i] = entries - 1;
        last = r;
    }
    fz_buf_free(&tmp);
    if (!n) return col_builder_finish(b);
    col_vec *v = col_vec_dict(a, col_builder_finish(b), n);
    memcpy(v->idx, idx, n * sizeof *idx);
    return v;
}

/* Event time, from nanoseconds; of an event that has none the time of its arrival. */
static int64_t event_us(const fz_record *r, const col_type *t) { return dt_cut(r->time_ns ? dt_floor_div(r->time_ns, 1000) : r->timestamp_ms * 1000, t->precision); }

static void add_record(job_scan_reader *s, col_builder *b, const fz_record *r, fz_buf *tmp) {
    tmp->len = 0;
    if (dec_record_text(s->value, r, tmp)) col_add_bytes(b, tmp->data, tmp->len);
    else col_add_null(b);
}

static col_vec *metadata_column(job_scan_reader *s, const char *key, const col_type *t, const fz_chunk *c, const uint32_t *row_rec, uint32_t n, fz_arena *a) {
    const src_split *split = src_get_split(s->scan->source, c->split);
    fz_buf tmp = {0};
    if (strcmp(key, "topic") == 0) return constant_text(a, t, split->topic, n);
    if (strcmp(key, "tag") == 0 || strcmp(key, "peer") == 0) return tags(t, c, row_rec, n, a);
    if (strcmp(key, "file.path") == 0) return constant_text(a, t, split->name, n);
    if (strcmp(key, "file.name") == 0) return constant_text(a, t, strrchr(split->name, '/') ? strrchr(split->name, '/') + 1 : split->name, n);
    col_builder *b = col_builder_new(a, t);
    for (uint32_t i = 0; i < n; i++) {
        const fz_record *r = &c->rec[row_rec[i]];
        if (strcmp(key, "partition") == 0) col_add_i64(b, split->partition);
        else if (strcmp(key, "offset") == 0) col_add_i64(b, r->offset);
        else if (strcmp(key, "timestamp") == 0) col_add_i64(b, r->timestamp_ms * 1000);
        else if (strcmp(key, "timestamp-type") == 0) {
            const char *name = timestamp_types[r->timestamp_type % 3];
            col_add_bytes(b, name, strlen(name));
        } else if (strcmp(key, "headers") == 0) add_headers(b, r);
        else if (strcmp(key, "key") == 0 && r->key_len >= 0) col_add_bytes(b, r->key, (size_t)r->key_len);
        else if (strcmp(key, "time") == 0) col_add_i64(b, event_us(r, t));
        else if (strcmp(key, "arrival_time") == 0) col_add_i64(b, r->timestamp_ms * 1000);
        else if (strcmp(key, "record") == 0) add_record(s, b, r, &tmp);
        else col_add_null(b);
    }
    fz_buf_free(&tmp);
    return col_builder_finish(b);
}

/* ---- decoding ---- */
static void note_unparseable(job_scan *s, const fz_chunk *c, const dec_output *o) {
    if (!o->n_unparseable) return;
    fz_metric_add(FZ_M_ROWS_UNPARSEABLE, o->n_unparseable);
    uint64_t suppressed;
    if (!o->sample || !fz_log_allowed(&s->sample_limit, 5, 60000, &suppressed)) return;
    fz_log(FZ_LOG_WARN, "decode.unparseable", FZ_KV("split", "%s", src_get_split(s->source, c->split)->name),
           FZ_KV("offset", "%lld", (long long)c->rec[o->sample_rec].offset), FZ_KV("message", "%s", o->sample),
           FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
}

/* A record whose key is a reject gives no row: one record has one fate. */
static void drop_rejected(job_rows *out, const fz_rejects *rejects, uint32_t from, const fz_chunk *c, uint32_t n_cols, fz_arena *a) {
    uint8_t *bad = fz_arena_calloc(a, c->n, 1);
    for (uint32_t i = from; i < rejects->n; i++) bad[rejects->v[i].rec] = 1;
    uint32_t *sel = fz_arena_alloc(a, (size_t)out->n_rows * sizeof *sel), n = 0;
    for (uint32_t i = 0; i < out->n_rows; i++)
        if (!bad[out->row_rec[i]]) sel[n++] = i;
    for (uint32_t k = 0; k < n_cols; k++)
        if (out->cols[k]) out->cols[k] = col_select(a, out->cols[k], sel, n);
    for (uint32_t i = 0; i < n; i++) out->row_rec[i] = out->row_rec[sel[i]];
    out->n_rejected += out->n_rows - n;
    out->n_rows = n;
}

/* Keys are decoded beside the values, wanted or not, so that a record's fate does not hang on the columns that a query takes: a row exists when its value gives one; a key without a row of its own (null) gives NULLs. */
static fz_status decode_key(job_scan_reader *r, const fz_chunk *c, fz_arena *a, job_rows *out, fz_rejects *rejects, fz_error *err) {
    dec_output k = {0};
    uint32_t before = rejects->n;
    FZ_TRY(dec_decode(r->key, c, a, &k, rejects, err));
    if (rejects->n > before) drop_rejected(out, rejects, before, c, r->scan->plan->schema->n, a);
    uint32_t *key_row = fz_arena_alloc(a, ((size_t)c->n + 1) * sizeof *key_row);
    memset(key_row, 0xff, ((size_t)c->n + 1) * sizeof *key_row);
    for (uint32_t i = 0; i < k.n_rows; i++) key_row[k.row_rec[i]] = i;
    const part *p = &r->scan->key;
    for (uint32_t f = 0; f < p->schema.n; f++) {
        if (!p->wanted[f]) continue;
        col_builder *b = col_builder_new(a, p->schema.fields[f].type);
        for (uint32_t i = 0; i < out->n_rows; i++) {
            uint32_t at = key_row[out->row_rec[i]];
            if (at == UINT32_MAX) col_add_null(b);
            else col_add_from(b, k.cols[f], at);
        }
        out->cols[p->column[f]] = col_builder_finish(b);
    }
    return FZ_OK;
}

fz_status job_scan_decode(job_scan_reader *r, const fz_chunk *c, fz_arena *a, job_rows *out, fz_rejects *rejects, fz_error *err) {
    job_scan *s = r->scan;
    const sql_plan *p = s->plan;
    uint32_t before = rejects->n;
    dec_output o = {0};
    FZ_TRY(dec_decode(r->value, c, a, &o, rejects, err));
    *out = (job_rows){.n_rows = o.n_rows, .row_rec = o.row_rec, .n_unparseable = o.n_unparseable, .n_rejected = rejects->n - before,
                      .cols = FZ_ANEWN(a, col_vec *, p->schema->n + 1)};
    note_unparseable(s, c, &o);
    for (uint32_t f = 0; f < s->value.schema.n; f++)
        if (s->value.wanted[f]) out->cols[s->value.column[f]] = o.cols[f];
    if (r->key) FZ_TRY(decode_key(r, c, a, out, rejects, err));
    for (uint32_t i = p->n_scan_physical; i < p->schema->n; i++)
        if (p->wanted[i])
            out->cols[i] = metadata_column(r, p->scan_metadata[i - p->n_scan_physical], p->schema->fields[i].type, c, out->row_rec, out->n_rows, a); /* a bad key has taken rows away */
    return FZ_OK;
}
