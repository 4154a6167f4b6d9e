/* Inside the decode room: what a format is. A format `x` is a const dec_format in x.c and a line in the table of decode.c. */
#ifndef DEC_DECODE_INT_H
#define DEC_DECODE_INT_H
#include "decode/decode.h"

typedef struct dec_open {
    const fz_pair *options; /* of the table, all of them */
    size_t n;
    const col_schema *schema;
    const bool *wanted;
    bool key;
} dec_open;

typedef struct dec_format {
    const char *name;
    const char *doc;
    const fz_option *options;  /* with their prefix; ends with a NULL name */
    const char *refused;       /* not NULL: the format is known and this is why it is refused */
    fz_status (*open)(const dec_open *o, dec_decoder **out, fz_error *err);
    void (*close)(dec_decoder *d);
    fz_status (*decode)(dec_decoder *d, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err);
    bool (*text)(dec_decoder *d, const uint8_t *p, size_t n, fz_buf *out); /* appends a record's bytes as JSON; false: they cannot be read. NULL: they are text already */
} dec_format;

struct dec_decoder {
    const dec_format *format;
    const col_schema *schema;
    bool *wanted;              /* heap, one for each column */
    bool key;
};

extern const dec_format dec_json, dec_raw, dec_msgpack, dec_otlp, dec_syslog;
extern const fz_option dec_json_options[], dec_raw_options[], dec_msgpack_options[], dec_otlp_options[], dec_syslog_options[];

/* Value of the option "name" (with its prefix) or its default; looks for "key." or "value." before it too. */
const char *dec_option(const dec_open *o, const fz_option *table, const char *name);
void dec_reject(fz_rejects *r, uint32_t rec, const char *code, const char *message);
/* The bytes to decode of a record: its value, or its key. len -1: null. */
static inline const uint8_t *dec_bytes(const dec_decoder *d, const fz_record *r, int32_t *len) {
    *len = d->key ? r->key_len : r->value_len;
    return d->key ? r->key : r->value;
}
#endif
