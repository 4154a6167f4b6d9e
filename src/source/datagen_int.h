/* Inside the connector 'datagen': how one column is filled. */
#ifndef SRC_DATAGEN_INT_H
#define SRC_DATAGEN_INT_H
#include "source/source_int.h"

typedef enum { GEN_BOOLEAN, GEN_INTEGER, GEN_FLOAT, GEN_DOUBLE, GEN_DECIMAL, GEN_TEXT, GEN_DATE, GEN_TIME, GEN_TIMESTAMP, GEN_TIMESTAMP_LTZ } gen_kind;

typedef struct gen_field {
    fz_sv name;           /* as a JSON string with its colon: "\"a\":" */
    gen_kind kind;
    bool sequence, var_len;
    int64_t start, count; /* of a sequence */
    int64_t min, max;     /* GEN_INTEGER */
    double fmin, fmax;    /* GEN_FLOAT, GEN_DOUBLE, GEN_DECIMAL */
    int precision, scale;
    int64_t length;       /* GEN_TEXT */
    int64_t max_past_ms;
    double null_rate;
} gen_field;

/* Reads a column's type and its fields.NAME.* options. USER names the option or type. */
fz_status gen_field_open(fz_arena *a, const src_field *f, const fz_pair *options, size_t n, gen_field *out, fz_error *err) FZ_MUST_USE;
/* Appends `"name":value` for the row; rnd is the state of the generator. */
void gen_field_write(const gen_field *f, int64_t row, uint64_t *rnd, fz_buf *out);
#endif
