/* Inside the OTLP decoder. Columns under construction and conversions are those of the JSON decoder (json_int.h).
 *
 *   otlp_format.c the format: what each column is filled with, records -> rows
 *   otlp_value.c  AnyValue -> a column of any type; AnyValue as JSON text
 *   otlp_text.c   a whole record as OTLP's JSON
 *
 * Invariants
 *  1. A value adds exactly one to its column, or fails and leaves the column's length as it was.
 *  2. What a record means does not hang on dictionaries, on what was kept from the record before, or on the columns that the query wants.
 *  3. Nothing is read outside a record's bytes and its context's, whatever they hold: records come from the spool, not from a parser.
 */
#ifndef DEC_OTLP_INT_H
#define DEC_OTLP_INT_H
#include "base/otlp.h"
#include "base/protobuf.h"
#include "decode/json_int.h"

typedef enum {
    ODC_TIME, ODC_OBSERVED, ODC_SEVERITY_NUMBER, ODC_SEVERITY_TEXT, ODC_BODY, ODC_TRACE_ID, ODC_SPAN_ID, ODC_FLAGS, ODC_EVENT_NAME, ODC_DROPPED, ODC_ATTRIBUTES, ODC_NAMED /* an attribute of the column's name */,
    ODC_RESOURCE_ATTRIBUTES, ODC_RESOURCE_DROPPED, ODC_RESOURCE_SCHEMA_URL, ODC_SCOPE_NAME, ODC_SCOPE_VERSION, ODC_SCOPE_ATTRIBUTES, ODC_SCOPE_DROPPED, ODC_SCOPE_SCHEMA_URL, ODC_COUNT
} odc_kind;

typedef struct odc_bytes { const uint8_t *p; size_t n; } odc_bytes; /* p NULL: none */
typedef struct odc_list { odc_bytes *v; uint32_t n, cap; } odc_list; /* of KeyValues: their bytes */

typedef struct odc_record {   /* views into the bytes at hand */
    uint64_t time, observed, severity_number, flags, dropped;
    odc_bytes severity_text, body, trace_id, span_id, event_name;
    odc_list attributes;      /* memory of the decoder */
} odc_record;

typedef struct odc_context {
    fz_buf bytes;             /* a copy: what it was made from may be gone by the next record */
    odc_bytes raw;            /* the same where it stands in the chunk */
    bool known;
    odc_bytes resource_schema_url, scope_name, scope_version, scope_schema_url;
    uint64_t resource_dropped, scope_dropped;
    odc_list resource_attributes, scope_attributes;
    odc_bytes *named;         /* one for each column: the resource's attribute of its name */
} odc_context;

typedef struct otlp_decoder {
    dec_decoder base;
    json_decoder json;        /* root: the columns */
    odc_kind *kind;           /* of each column */
    bool *skip;               /* columns that nobody wants and that any record can fill */
    bool any_named;
    odc_record rec;
    odc_context cx;
    uint32_t repeated;        /* rows of this batch that have the context at hand, at the end of the columns; 0: the next row is its first */
    odc_bytes *named;         /* one for each column: the record's attribute of its name */
    fz_buf text, repaired;
} otlp_decoder;

/* ---- otlp_value.c ---- */
typedef struct odc_value { uint32_t kind; /* otlp_any_field; 0: empty */ union { uint64_t v; odc_bytes b; }; } odc_value;
bool odc_read_any(otlp_decoder *d, odc_bytes any, odc_value *out);          /* false: broken; the error stands in d->json.parser.msg */
bool odc_read_pair(otlp_decoder *d, odc_bytes pair, fz_sv *key, odc_bytes *value); /* value p NULL: none */
bool odc_put_any(otlp_decoder *d, js_col *c, odc_bytes any, uint32_t depth); /* p NULL: NULL */
bool odc_put_pairs(otlp_decoder *d, js_col *c, const odc_list *pairs);       /* into a MAP, a ROW or a text */
bool odc_put_text(otlp_decoder *d, js_col *c, odc_bytes s);                  /* a text column */
bool odc_put_integer(otlp_decoder *d, js_col *c, int64_t v);
bool odc_json_any(otlp_decoder *d, odc_bytes any, uint32_t depth, fz_buf *out);
bool odc_broken(otlp_decoder *d);
fz_sv odc_utf8(otlp_decoder *d, fz_sv s);                                    /* itself, or repaired in d->repaired */

/* ---- otlp_text.c ---- */
bool odc_record_text(dec_decoder *base, const uint8_t *p, size_t n, fz_buf *out);
void odc_hex(const uint8_t *p, size_t n, char *out); /* 2 n digits */
/* ---- otlp_format.c ---- */
bool odc_read_record(otlp_decoder *d, const uint8_t *p, size_t n);           /* into d->rec */
/* An id as its bytes: 16 or 8 of them, or twice as many hexadecimal digits. n 0: none, or all of it is zero. false: neither. */
bool odc_id(odc_bytes id, uint32_t want, uint8_t out[OTLP_TRACE_ID], uint32_t *n);
#endif
