/* Inside the MessagePack decoder. Columns under construction, conversions of texts and the text of nested values are those of the JSON decoder (json_int.h).
 *
 * Invariants
 *  1. A value adds exactly one to its column, or fails and leaves the column's length as it was.
 *  2. What a record means does not hang on hints, on dictionaries or on the columns that the query wants.
 */
#ifndef DEC_MSGPACK_INT_H
#define DEC_MSGPACK_INT_H
#include "base/mp.h"
#include "decode/json_int.h"

#define MPD_HINTS 32u
#define MPD_HINT_BYTES 32u

/* What the k-th key of the record before looked like, with its header, and the column that it names; -1: none. len 0: nothing is known. */
typedef struct mpd_hint { uint8_t text[MPD_HINT_BYTES]; uint32_t len; int col; bool is_json; } mpd_hint;

typedef struct mp_decoder {
    dec_decoder base;
    json_decoder json;       /* conversions; with json_field also the columns of the documents in it */
    js_col root;             /* columns of the records' own keys */
    fz_arena *scratch;       /* of columns that are only checked; reset at each batch */
    const char *json_field;  /* option msgpack.json-field, in json.own; NULL: none */
    size_t json_field_len;
    fz_sv document;          /* of the current record; p NULL: none */
    fz_buf text;             /* of a value that goes into a column as text */
    fz_buf repaired;
    mpd_hint hint[MPD_HINTS];
} mp_decoder;

/* ---- msgpack_text.c ---- */

/* Seconds and nanoseconds of an ext item: EventTime (type 0, 8 bytes) or MessagePack's timestamp (type -1). false: it is neither. */
bool mpd_time_of(const mp_item *v, int64_t *sec, uint32_t *nsec);
/* The text of a scalar as a column of text has it; str and bin are given as they are. *tok: the kind of JSON token that it would be. In d->text unless it is str or bin. false: it has none. */
bool mpd_scalar_text(mp_decoder *d, const mp_item *v, js_token *tok, fz_sv *out);
/* Appends the value at *p as JSON text; *p moves past it. false: the error stands in d->json.parser.msg. */
bool mpd_json_text(mp_decoder *d, const uint8_t **p, const uint8_t *end, uint32_t depth, fz_buf *out);
/* s as well-formed UTF-8: itself, or with U+FFFD for ill-formed bytes, in d->repaired. */
fz_sv mpd_utf8(mp_decoder *d, fz_sv s);
#endif
