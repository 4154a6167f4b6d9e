/* Columns: logical types, vectors of values, batches. The only form in which data crosses rooms.
 *
 * What it does: describes Flink SQL's types, holds values in Arrow-like layout, offers builders and row views.
 * What it does not do: no casts, no parsing, no I/O.
 *
 * Invariants
 *  1. A col_type is immutable once made and lives in an arena (or is static); it is compared with col_type_eq, not by address.
 *  2. A vector has exactly one of two forms:
 *       flat:        data (and off, child) hold len values; idx == NULL
 *       dictionary:  row i holds dict's value idx[i]; dict is flat; data, off, child unused. Each idx[i] < dict->len for rows
 *                    that are valid (0 elsewhere). dict's entries may themselves be NULL, and need not be distinct or used.
 *     A row is NULL when valid[i] is 0 or, in the dictionary form, when its entry is NULL: always ask col_is_null.
 *  3. valid == NULL means that no row is NULL by the mask. It is one byte a row (0 or 1), since every consumer of the mask
 *     (filters, definition levels) reads it row by row. BOOLEAN is one byte a value for the same reason.
 *  4. Values of NULL rows are defined bytes (0 / empty), so that kernels may run over them.
 *  5. Text is well-formed UTF-8.
 *  6. Memory of vectors belongs to the arena they were made with, normally the batch's. A vector may be shared by several
 *     batches of one arena; it is read-only once it is part of a batch.
 * Threads: one at a time; a batch is moved between threads (queues), read-only sharing counts with refs.
 */
#ifndef COL_H
#define COL_H
#include "base/base.h"

__extension__ typedef __int128 col_i128;

/* Physical form by kind (values[] of the flat form):
 *   BOOLEAN                       uint8_t 0/1
 *   TINYINT SMALLINT INT          int32_t
 *   DATE                          int32_t days since 1970-01-01
 *   TIME                          int32_t milliseconds of the day (as in Flink)
 *   INTERVAL_MONTH                int32_t months
 *   BIGINT                        int64_t
 *   INTERVAL_DAY                  int64_t milliseconds
 *   TIMESTAMP TIMESTAMP_LTZ       int64_t microseconds since 1970-01-01T00:00:00 (LTZ: UTC). Precisions 0..6; the value is
 *                                 always in microseconds, already cut to the precision. 7..9 are refused (Iceberg v3).
 *   FLOAT DOUBLE                  float, double
 *   DECIMAL                       col_i128, the unscaled value
 *   CHAR VARCHAR BINARY VARBINARY bytes data[off[i]] .. data[off[i+1]], uint32_t off[len+1]
 *   ARRAY                         uint32_t off[len+1] into child[0]
 *   MAP                           uint32_t off[len+1] into child[0] (keys) and child[1] (values)
 *   ROW                           child[k] has len rows; valid[] is the row's own
 *   NULL                          no data; every row is NULL
 */
typedef enum {
    COL_NULL, COL_BOOLEAN, COL_TINYINT, COL_SMALLINT, COL_INT, COL_BIGINT, COL_FLOAT, COL_DOUBLE, COL_DECIMAL,
    COL_CHAR, COL_VARCHAR, COL_BINARY, COL_VARBINARY, COL_DATE, COL_TIME, COL_TIMESTAMP, COL_TIMESTAMP_LTZ,
    COL_INTERVAL_MONTH, COL_INTERVAL_DAY, COL_ARRAY, COL_MAP, COL_ROW
} col_kind;

#define COL_MAX_LENGTH 2147483647 /* VARCHAR of it is STRING, VARBINARY of it is BYTES */

typedef struct col_type col_type;
typedef struct col_field { const char *name; const col_type *type; const char *comment; /* or NULL */ } col_field;
struct col_type {
    col_kind kind;
    bool nullable;
    int32_t precision; /* DECIMAL, TIME, TIMESTAMP*: precision; CHAR..VARBINARY: length */
    int32_t scale;     /* DECIMAL */
    uint32_t n_fields; /* ROW: fields; ARRAY: 1 ("element"); MAP: 2 ("key", "value") */
    const col_field *fields;
};
typedef struct col_schema { uint32_t n; const col_field *fields; } col_schema;

/* Makers; a NULL arena is not allowed. col_simple is for kinds without parameters, and gives static memory. */
const col_type *col_simple(col_kind kind, bool nullable);
const col_type *col_string(bool nullable);                                         /* VARCHAR(2147483647) */
const col_type *col_sized(fz_arena *a, col_kind kind, int32_t precision, int32_t scale, bool nullable);
const col_type *col_array(fz_arena *a, const col_type *element, bool nullable);
const col_type *col_map(fz_arena *a, const col_type *key, const col_type *value, bool nullable);
const col_type *col_row(fz_arena *a, const col_field *fields, uint32_t n, bool nullable); /* copies fields */
const col_type *col_with_null(fz_arena *a, const col_type *t, bool nullable);
const col_type *col_type_clone(fz_arena *a, const col_type *t);                    /* deep, into another arena */
bool col_type_eq(const col_type *a, const col_type *b, bool with_nullability);
/* Flink's text of a type: "VARCHAR(3) NOT NULL", "STRING", "ROW<`a` STRING, `b` INT>". Appends to b. */
void col_type_text(fz_buf *b, const col_type *t);
int col_schema_find(const col_schema *s, const char *name); /* exact; -1: not there */
static inline bool col_is_varlen(col_kind k) { return k >= COL_CHAR && k <= COL_VARBINARY; }
static inline bool col_is_text(col_kind k) { return k == COL_CHAR || k == COL_VARCHAR; }
/* Bytes of one value in data[]; 0 for variable length, nested and NULL. */
unsigned col_width(col_kind k);

typedef struct col_vec col_vec;
struct col_vec {
    const col_type *type;
    uint32_t len;
    uint8_t *valid;       /* or NULL */
    union {
        void *data;
        uint8_t *u8;
        int32_t *i32;
        int64_t *i64;
        float *f32;
        double *f64;
        col_i128 *i128;
        char *bytes;
    };
    uint32_t *off;
    uint32_t n_child;
    col_vec **child;
    uint32_t *idx;        /* dictionary form */
    col_vec *dict;
};

/* Uninitialised values for len rows (off for variable length and nested; data of variable length stays NULL). */
col_vec *col_vec_new(fz_arena *a, const col_type *t, uint32_t len);
/* Dictionary vector over dict; idx has len entries to fill. */
col_vec *col_vec_dict(fz_arena *a, col_vec *dict, uint32_t len);
/* All rows NULL, values zeroed. */
col_vec *col_vec_nulls(fz_arena *a, const col_type *t, uint32_t len);
/* One value (row `row` of v) as a dictionary vector of len rows: how literals are held. */
col_vec *col_vec_const(fz_arena *a, const col_vec *v, uint32_t row, uint32_t len);
/* Gives v a mask of ones if it has none. */
uint8_t *col_vec_mask(fz_arena *a, col_vec *v);
/* A flat vector of the rows sel[0..n): gathers, decoding dictionaries. n_sel rows. */
col_vec *col_gather(fz_arena *a, const col_vec *v, const uint32_t *sel, uint32_t n_sel);
/* The same rows, keeping the dictionary form where v has it (only idx is gathered). */
col_vec *col_select(fz_arena *a, const col_vec *v, const uint32_t *sel, uint32_t n_sel);
col_vec *col_flat(fz_arena *a, const col_vec *v);   /* v itself if it is flat */
/* Deep copy into another arena. */
col_vec *col_vec_clone(fz_arena *a, const col_vec *v);

static inline bool col_is_null(const col_vec *v, uint32_t i) {
    if (v->type->kind == COL_NULL) return true;
    if (v->valid && !v->valid[i]) return true;
    return v->idx && v->dict->valid && !v->dict->valid[v->idx[i]];
}
/* The flat vector and the row in it that hold row i. */
static inline const col_vec *col_at(const col_vec *v, uint32_t *i) {
    if (!v->idx) return v;
    *i = v->idx[*i];
    return v->dict;
}
static inline fz_sv col_sv(const col_vec *v, uint32_t i) { /* text or bytes of row i */
    const col_vec *f = col_at(v, &i);
    return (fz_sv){f->bytes + f->off[i], f->off[i + 1] - f->off[i]};
}
static inline int32_t col_i32(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->i32[i]; }
static inline int64_t col_i64(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->i64[i]; }
static inline double col_f64(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->f64[i]; }
static inline float col_f32(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->f32[i]; }
static inline uint8_t col_bool(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->u8[i]; }
static inline col_i128 col_dec(const col_vec *v, uint32_t i) { const col_vec *f = col_at(v, &i); return f->i128[i]; }

/* Row-at-a-time builder of a flat vector (all kinds, nested ones through children). For decoders with simple needs,
 * literals and tests; hot paths fill vectors themselves. */
typedef struct col_builder col_builder;
col_builder *col_builder_new(fz_arena *a, const col_type *t);
void col_add_null(col_builder *b);                       /* nested: an absent array/map/row */
void col_add_bool(col_builder *b, bool v);
void col_add_i64(col_builder *b, int64_t v);             /* every integer, date, time, timestamp and interval kind */
void col_add_f64(col_builder *b, double v);              /* FLOAT and DOUBLE */
void col_add_dec(col_builder *b, col_i128 unscaled);
void col_add_bytes(col_builder *b, const void *p, size_t n);
/* ARRAY and MAP: add the elements to the children first, then close the row. ROW: add one value to each child, then close. */
col_builder *col_builder_child(col_builder *b, uint32_t k);
void col_add_nested(col_builder *b);
/* Appends row i of v (same kind). */
void col_add_from(col_builder *b, const col_vec *v, uint32_t i);
uint32_t col_builder_len(const col_builder *b);
col_vec *col_builder_finish(col_builder *b);             /* the builder must not be used after it */

/* A batch: columns of equal length plus where they came from. */
typedef struct col_batch {
    const col_schema *schema;
    uint32_t n_rows;
    uint32_t n_cols;
    col_vec **cols;
    fz_arena *arena;          /* owns cols and all that they point to */
    _Atomic uint32_t refs;
} col_batch;

col_batch *col_batch_new(const col_schema *schema, uint32_t n_rows); /* own arena; cols NULL; refs 1 */
col_batch *col_batch_retain(col_batch *b);
void col_batch_release(col_batch *b); /* NULL is allowed */

/* Total order of values of one type: -1, 0, 1. NULLs last. Text and bytes by unsigned bytes; FLOAT and DOUBLE as
 * Java's compare (-0.0 < 0.0, NaN greatest). ROW, ARRAY by elements; MAP is not ordered (0 when equal as sequences). */
int col_compare(const col_vec *a, uint32_t i, const col_vec *b, uint32_t j);
bool col_equal(const col_vec *a, uint32_t i, const col_vec *b, uint32_t j);
uint64_t col_hash(const col_vec *v, uint32_t i); /* equal values have equal hashes */
#endif
