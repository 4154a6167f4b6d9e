/* The format 'syslog': one message of RFC 5424 or RFC 3164 a record becomes one row. Columns are known by their names:
 *
 *   priority facility severity version   INT, SMALLINT, BIGINT, STRING
 *   facility_text severity_text          STRING: "local0", "err"
 *   timestamp                            TIMESTAMP_LTZ; TIMESTAMP: the time in UTC; STRING: as it was sent
 *   hostname (host)  app_name (program)  procid (pid)  msgid     STRING
 *   structured_data                      MAP<STRING, MAP<STRING, STRING>>; STRING: as it was sent. Of a parameter or an element that comes twice the last one is in the MAP
 *   message (msg)                        STRING, without a byte order mark
 *   raw                                  STRING, the whole record
 *   format                               STRING: 'rfc5424', 'rfc3164' or 'none'
 * What a message does not have is NULL. Text that is not well-formed UTF-8 has U+FFFD in its place.
 *
 * What becomes of a record
 *   null                       no row, counted as unparseable
 *   larger than the ceiling    reject "record.too-large"
 *   anything else              a row; what cannot be read is its message
 */
#include "col/datetime.h"
#include "decode/json_fast_int.h"
#include "decode/syslog_parts.h"
#include <stdio.h>

const fz_option dec_syslog_options[] = {
    {.name = "syslog.time-zone", .type = FZ_OPT_STRING, .doc = "Zone of times that come without one (RFC 3164): an IANA name or an offset. Without it: the session's ('table.local-time-zone')."},
    {0}};

typedef enum { F_PRIORITY, F_FACILITY, F_SEVERITY, F_VERSION, F_FACILITY_TEXT, F_SEVERITY_TEXT, F_TIMESTAMP, F_HOSTNAME, F_APP_NAME, F_PROCID, F_MSGID, F_SD, F_MESSAGE, F_RAW, F_FORMAT } field;
static const struct { const char *name; field f; } names[] = {
    {"priority", F_PRIORITY}, {"facility", F_FACILITY}, {"severity", F_SEVERITY}, {"version", F_VERSION}, {"facility_text", F_FACILITY_TEXT}, {"severity_text", F_SEVERITY_TEXT},
    {"timestamp", F_TIMESTAMP}, {"hostname", F_HOSTNAME}, {"app_name", F_APP_NAME}, {"procid", F_PROCID}, {"msgid", F_MSGID}, {"structured_data", F_SD}, {"message", F_MESSAGE},
    {"raw", F_RAW}, {"format", F_FORMAT}, {"host", F_HOSTNAME}, {"program", F_APP_NAME}, {"pid", F_PROCID}, {"msg", F_MESSAGE}};
enum { N_NAMES = (int)(sizeof names / sizeof *names) };

typedef struct syslog_decoder {
    dec_decoder base;
    const tz_zone *zone;
    field *fields;      /* of the columns */
    js_col root;
    fz_arena *own, *scratch;
    fz_buf tmp, repaired;
} syslog_decoder;

/* ---- columns ---- */

static bool is_integer(col_kind k) { return k == COL_SMALLINT || k == COL_INT || k == COL_BIGINT; }
static bool is_time(col_kind k) { return k == COL_TIMESTAMP || k == COL_TIMESTAMP_LTZ; }
static bool is_sd_map(const col_type *t) {
    if (t->kind != COL_MAP || !col_is_text(t->fields[0].type->kind)) return false;
    t = t->fields[1].type;
    return t->kind == COL_MAP && col_is_text(t->fields[0].type->kind) && col_is_text(t->fields[1].type->kind);
}

static bool type_fits(field f, const col_type *t) {
    if (col_is_text(t->kind)) return true;
    switch (f) {
    case F_PRIORITY: case F_FACILITY: case F_SEVERITY: case F_VERSION: return is_integer(t->kind);
    case F_TIMESTAMP: return is_time(t->kind);
    case F_SD: return is_sd_map(t);
    default: return false;
    }
}

static const char *types_of(field f) {
    if (f <= F_VERSION) return "INT, SMALLINT, BIGINT or STRING";
    if (f == F_TIMESTAMP) return "TIMESTAMP_LTZ, TIMESTAMP or STRING";
    return f == F_SD ? "MAP<STRING, MAP<STRING, STRING>> or STRING" : "STRING";
}

static fz_status field_of(const col_field *c, field *out, fz_error *err) {
    for (int i = 0; i < N_NAMES; i++) {
        if (strcmp(names[i].name, c->name) != 0) continue;
        *out = names[i].f;
        if (type_fits(*out, c->type)) return FZ_OK;
        return fz_fail(err, FZ_USER, "syslog.type", "column '%s': in the 'syslog' format its type is %s", c->name, types_of(*out));
    }
    fz_buf b = {0};
    for (int i = 0; i < N_NAMES; i++) fz_buf_printf(&b, "%s%s", i ? ", " : "", names[i].name);
    fz_fail(err, FZ_USER, "syslog.column", "column '%s': the 'syslog' format has no such field", c->name);
    fz_hint(err, "it has: %s", fz_buf_cstr(&b));
    fz_buf_free(&b);
    return FZ_USER;
}

/* ---- values ---- */

static fz_sv utf8(syslog_decoder *d, fz_sv s) { return js_utf8_repaired(&d->repaired, s); }

static void put_text(syslog_decoder *d, js_col *c, fz_sv s) {
    if (!s.p) {
        js_put_null(c);
        return;
    }
    s = utf8(d, s);
    js_put_bytes(c, s.p, s.n);
}

static void put_number(js_col *c, int v) {
    char t[12];
    if (v < 0) js_put_null(c);
    else if (c->kind == COL_BIGINT) js_put_i64(c, v);
    else if (is_integer(c->kind)) js_put_i32(c, v);
    else js_put_bytes(c, t, (size_t)snprintf(t, sizeof t, "%d", v));
}

static void put_name(js_col *c, const char *name) {
    if (name) js_put_bytes(c, name, strlen(name));
    else js_put_null(c);
}

static void put_time(syslog_decoder *d, js_col *c, const sys_parts *m) {
    if (!is_time(c->kind)) put_text(d, c, m->time);
    else if (m->timed) js_put_i64(c, dt_cut(m->time_us, c->type->precision));
    else js_put_null(c);
}

static void put_sd(syslog_decoder *d, js_col *c, fz_sv sd) {
    if (!sd.p || c->kind != COL_MAP) {
        put_text(d, c, sd);
        return;
    }
    js_col *ids = &c->child[0], *maps = &c->child[1];
    for (const char *p = sd.p, *end = sd.p + sd.n; p < end;) {
        const char *next = sys_sd_element(p, end), *at = p + 1;
        fz_sv name, value;
        if (!next) break;
        for (bool first = true; sys_sd_next(&at, next, first, &name, &value); first = false) {
            if (first) {
                put_text(d, ids, name);
                continue;
            }
            put_text(d, &maps->child[0], name);
            d->tmp.len = 0;
            fz_buf_reserve(&d->tmp, 1); /* an empty value is not NULL */
            sys_sd_unescape(value, &d->tmp);
            put_text(d, &maps->child[1], (fz_sv){(const char *)d->tmp.data, d->tmp.len});
        }
        js_put_map(maps);
        p = next;
    }
    js_put_map(c);
}

static void put(syslog_decoder *d, js_col *c, field f, const sys_parts *m, fz_sv raw) {
    static const char *const formats[] = {"none", "rfc3164", "rfc5424"};
    switch (f) {
    case F_PRIORITY: put_number(c, m->priority); return;
    case F_FACILITY: put_number(c, m->priority < 0 ? -1 : m->priority >> 3); return;
    case F_SEVERITY: put_number(c, m->priority < 0 ? -1 : m->priority & 7); return;
    case F_VERSION: put_number(c, m->version); return;
    case F_FACILITY_TEXT: put_name(c, m->priority < 0 ? NULL : sys_facilities[m->priority >> 3]); return;
    case F_SEVERITY_TEXT: put_name(c, m->priority < 0 ? NULL : sys_severities[m->priority & 7]); return;
    case F_TIMESTAMP: put_time(d, c, m); return;
    case F_HOSTNAME: put_text(d, c, m->hostname); return;
    case F_APP_NAME: put_text(d, c, m->app_name); return;
    case F_PROCID: put_text(d, c, m->procid); return;
    case F_MSGID: put_text(d, c, m->msgid); return;
    case F_SD: put_sd(d, c, m->structured_data); return;
    case F_MESSAGE: put_text(d, c, m->message); return;
    case F_RAW: put_text(d, c, raw); return;
    case F_FORMAT: put_name(c, formats[m->format]); return;
    }
}

/* ---- the format ---- */

static void decode_record(syslog_decoder *d, const fz_chunk *c, uint32_t i, dec_output *out, fz_rejects *rejects) {
    const fz_record *r = &c->rec[i];
    int32_t n;
    const uint8_t *in = dec_bytes(&d->base, r, &n);
    if (r->oversized) {
        dec_reject(rejects, i, "record.too-large", "the record is larger than source.max-record-size");
        return;
    }
    if (n < 0) {
        out->n_unparseable++;
        out->n_tombstones++;
        return;
    }
    fz_sv text = {n ? (const char *)in : "", (size_t)n};
    sys_parts m;
    sys_parse(text, d->zone, r->timestamp_ms >= 0 ? r->timestamp_ms : fz_now_ms(), &m);
    for (uint32_t k = 0; k < d->root.n_child; k++)
        if (!d->root.child[k].discard) put(d, &d->root.child[k], d->fields[k], &m, text);
    out->row_rec[out->n_rows++] = i;
}

static fz_status syslog_decode(dec_decoder *base, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    syslog_decoder *d = (syslog_decoder *)base;
    (void)err;
    fz_arena_reset(d->scratch);
    js_columns_begin(&d->root, a, d->scratch, c->n);
    for (uint32_t i = 0; i < c->n; i++) decode_record(d, c, i, out, rejects);
    for (uint32_t k = 0; k < d->root.n_child; k++)
        if (!d->root.child[k].discard) out->cols[k] = js_col_finish(&d->root.child[k]);
    return FZ_OK;
}

static void syslog_close(dec_decoder *base) {
    syslog_decoder *d = (syslog_decoder *)base;
    js_col_free(&d->root);
    fz_buf_free(&d->tmp);
    fz_buf_free(&d->repaired);
    fz_arena_free(d->scratch);
    fz_arena_free(d->own);
    fz_free(d->fields);
    fz_free(d);
}

static fz_status syslog_open(const dec_open *o, dec_decoder **out, fz_error *err) {
    const char *zone = dec_option(o, dec_syslog_options, "syslog.time-zone");
    const tz_zone *z = zone ? tz_find(fz_sv_of(zone)) : tz_utc();
    field f;
    if (!z) {
        fz_fail(err, FZ_USER, "option.invalid", "option 'syslog.time-zone': there is no time zone '%s'", zone);
        return fz_hint(err, "write an IANA name such as Asia/Tokyo, or an offset such as +09:00");
    }
    for (uint32_t i = 0; i < o->schema->n; i++) FZ_TRY(field_of(&o->schema->fields[i], &f, err));
    syslog_decoder *d = FZ_NEW(syslog_decoder);
    d->zone = z;
    d->fields = fz_malloc((o->schema->n + 1) * sizeof *d->fields);
    for (uint32_t i = 0; i < o->schema->n; i++) (void)!field_of(&o->schema->fields[i], &d->fields[i], NULL);
    d->own = fz_arena_new();
    d->scratch = fz_arena_new();
    js_columns_init(d->own, &d->root, o->schema, o->wanted);
    *out = &d->base;
    return FZ_OK;
}

const dec_format dec_syslog = {.name = "syslog", .options = dec_syslog_options, .open = syslog_open, .close = syslog_close, .decode = syslog_decode};
