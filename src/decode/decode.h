/* Decoders: records of a chunk -> columns of a table. One format each; bytes only, no sockets, no files.
 *
 * Invariants
 *  1. A record gives zero or one row (formats that give several say so); row_rec maps rows to records, ascending.
 *  2. Nothing vanishes: each record is a row, an unparseable (counted: ignore-parse-errors, tombstones) or a reject.
 *  3. Only the columns asked for are decoded and given; the rest is still checked for well-formedness as Flink does.
 * Threads: a decoder belongs to one worker.
 */
#ifndef DEC_DECODE_H
#define DEC_DECODE_H
#include "col/col.h"

typedef struct dec_decoder dec_decoder;
typedef struct dec_output {
    uint32_t n_rows;
    col_vec **cols;        /* one for each schema column; NULL where `wanted` was false */
    uint32_t *row_rec;     /* row -> index of its record in the chunk */
    uint32_t n_unparseable;/* records dropped and counted (ignore-parse-errors; null values) */
    uint32_t n_tombstones; /* of those */
    const char *sample;    /* message about one unparseable record, or NULL: for the rate-limited log */
    uint32_t sample_rec;
} dec_output;

/* schema: the table's physical columns, in order. wanted[i] false: not needed by the query. key: decode record keys, not values.
 * options: all of the table's options; the format takes those with its prefix ("json.") and refuses unknown ones. */
fz_status dec_new(const char *format, const fz_pair *options, size_t n, const col_schema *schema, const bool *wanted, bool key,
                  dec_decoder **out, fz_error *err) FZ_MUST_USE;
void dec_free(dec_decoder *d); /* NULL is allowed */
/* Decodes all records of c into columns allocated in a (the batch's arena). Rejects are appended (strings in a). */
fz_status dec_decode(dec_decoder *d, const fz_chunk *c, fz_arena *a, dec_output *out, fz_rejects *rejects, fz_error *err) FZ_MUST_USE;
/* Appends the whole record as text (JSON where the format is a binary one): the metadata column `record`. Ill-formed UTF-8 is replaced. false: it has none. */
bool dec_record_text(dec_decoder *d, const fz_record *r, fz_buf *out);

typedef struct dec_format_info { const char *name; const fz_option *options; const char *doc; } dec_format_info;
const dec_format_info *dec_formats(void); /* ends with a NULL name */
#endif
