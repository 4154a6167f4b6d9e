/* The format 'raw': a record's bytes are the value of the table's only physical column, as Flink's 'raw' format has it. A null
 * record is a row with NULL there.
 *
 * Deviation: bytes that are no UTF-8 become U+FFFD, since text columns hold well-formed UTF-8 only (Flink hands them on as they are).
 */
#include "decode/decode_int.h"
#include <stdio.h>

const fz_option dec_raw_options[] = {
    {.name = "raw.charset", .type = FZ_OPT_STRING, .dflt = "UTF-8", .doc = "Charset of a text column: UTF-8, US-ASCII or ISO-8859-1."},
    {.name = "raw.endianness", .type = FZ_OPT_ENUM, .dflt = "big-endian", .allowed = "big-endian|little-endian", .doc = "Byte order of a numeric column."},
    {0}};

typedef enum { CHARSET_UTF8, CHARSET_ASCII, CHARSET_LATIN1 } charset;
typedef struct raw_decoder {
    dec_decoder base;
    const col_type *type;
    charset charset;
    bool little;
} raw_decoder;

static unsigned width_of(col_kind k) { /* bytes of the value in the record; 0: any number */
    switch (k) {
    case COL_BOOLEAN: case COL_TINYINT: return 1;
    case COL_SMALLINT: return 2;
    case COL_INT: case COL_FLOAT: return 4;
    case COL_BIGINT: case COL_DOUBLE: return 8;
    default: return 0;
    }
}

static fz_status find_charset(const char *name, charset *out, fz_error *err) {
    static const struct { const char *name; charset c; } known[] = {
        {"UTF-8", CHARSET_UTF8}, {"UTF8", CHARSET_UTF8}, {"US-ASCII", CHARSET_ASCII}, {"ASCII", CHARSET_ASCII}, {"ISO-8859-1", CHARSET_LATIN1}, {"ISO8859_1", CHARSET_LATIN1}, {"latin1", CHARSET_LATIN1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fz_ieq(known[i].name, name)) {
            *out = known[i].c;
            return FZ_OK;
        }
    fz_fail(err, FZ_USER, "option.invalid", "option 'raw.charset': charset '%s' is not supported", name);
    return fz_hint(err, "UTF-8, US-ASCII and ISO-8859-1 are");
}

static fz_status raw_open(const dec_open *o, dec_decoder **out, fz_error *err) {
    if (o->schema->n != 1)
        return fz_fail(err, FZ_USER, "raw.columns", "the 'raw' format only supports single physical column, but the table has %u", o->schema->n);
    const col_type *t = o->schema->fields[0].type;
    if (!width_of(t->kind) && !col_is_varlen(t->kind)) {
        fz_buf b = {0};
        col_type_text(&b, t);
        fz_fail(err, FZ_USER, "raw.type", "the 'raw' format does not support type %s", fz_buf_cstr(&b));
        fz_buf_free(&b);
        return FZ_USER;
    }
    charset c = CHARSET_UTF8;
    FZ_TRY(find_charset(dec_option(o, dec_raw_options, "raw.charset"), &c, err));
    raw_decoder *d = FZ_NEW(raw_decoder);
    d->type = t;
    d->charset = c;
    d->little = fz_ieq(dec_option(o, dec_raw_options, "raw.endianness"), "little-endian");
    *out = &d->base;
    return FZ_OK;
}

static void raw_close(dec_decoder *d) { fz_free(d); }

static void add_number(const raw_decoder *d, col_builder *b, const uint8_t *in, unsigned n) {
    uint64_t v = 0;
    for (unsigned k = 0; k < n; k++) v |= (uint64_t)in[k] << 8 * (d->little ? k : n - 1 - k);
    switch (d->type->kind) {
    case COL_BOOLEAN: col_add_bool(b, v != 0); break;
    case COL_TINYINT: col_add_i64(b, (int8_t)v); break;
    case COL_SMALLINT: col_add_i64(b, (int16_t)v); break;
    case COL_INT: col_add_i64(b, (int32_t)v); break;
    case COL_FLOAT: {
        uint32_t u = (uint32_t)v;
        float f;
        memcpy(&f, &u, 4);
        col_add_f64(b, (double)f);
        break;
    }
    case COL_DOUBLE: {
        double f;
        memcpy(&f, &v, 8);
        col_add_f64(b, f);
        break;
    }
    default: col_add_i64(b, (int64_t)v);
    }
}

static void add_text(const raw_decoder *d, col_builder *b, const char *s, size_t n, fz_buf *tmp) {
    if (d->charset == CHARSET_UTF8 && fz_utf8_valid(s, n)) {
        col_add_bytes(b, s, n);
        return;
    }
    tmp->len = 0;
    for (size_t i = 0; i < n;) {
        char t[4];
        uint32_t c = d->charset == CHARSET_UTF8 ? fz_utf8_next(s, n, &i) : (uint8_t)s[i++];
        if (d->charset == CHARSET_ASCII && c > 0x7f) c = 0xfffd;
        fz_buf_append(tmp, t, fz_utf8_put(t, c));
    }
    col_add_bytes(b, tmp->data, tmp->len);
}

static fz_status raw_decode(dec_decoder *base, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) {
    raw_decoder *d = (raw_decoder *)base;
    (void)err;
    col_builder *b = col_builder_new(a, d->type);
    fz_buf tmp = {0};
    unsigned width = width_of(d->type->kind);
    for (uint32_t i = 0; i < c->n; i++) {
        int32_t n;
        const uint8_t *in = dec_bytes(base, &c->rec[i], &n);
        if (c->rec[i].oversized) {
            dec_reject(rejects, i, "record.too-large", "the record is larger than source.max-record-size");
            continue;
        }
        if (n >= 0 && width && (unsigned)n != width) {
            dec_reject(rejects, i, "raw.length", fz_arena_printf(a, "size of data received for deserializing is not as expected: the actual size is %d, while expected is %u", n, width));
            continue;
        }
        if (n < 0) col_add_null(b);
        else if (width) add_number(d, b, in, width);
        else if (col_is_text(d->type->kind)) add_text(d, b, (const char *)in, (size_t)n, &tmp);
        else col_add_bytes(b, in, (size_t)n);
        out->row_rec[out->n_rows++] = i;
    }
    fz_buf_free(&tmp);
    if (base->wanted[0]) out->cols[0] = col_builder_finish(b);
    return FZ_OK;
}

const dec_format dec_raw = {.name = "raw", .options = dec_raw_options, .open = raw_open, .close = raw_close, .decode = raw_decode};
