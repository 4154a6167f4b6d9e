/* Avro object container files: a writer for schemas given as text, a reader for any schema. Private to this room.
 *
 * What it does: Avro 1.11 binary encoding, containers with codecs null, deflate, snappy, zstandard; field ids of Iceberg in schemas.
 * What it does not do: schema resolution by Avro's own rules (readers ask the writer's schema and take what they know), aliases, JSON encoding.
 *
 * Invariants of the reader
 *  1. It never reads past the bytes it was given, never recurses deeper than AV_MAX_DEPTH, and never loops longer than the bytes justify.
 *  2. A block never grows beyond AV_MAX_BLOCK when it is unpacked.
 * Errors: FATAL "iceberg.avro".
 */
#ifndef ICE_AVRO_INT_H
#define ICE_AVRO_INT_H
#include "iceberg/iceberg_int.h"

#define AV_MAX_DEPTH 64
#define AV_MAX_BLOCK (256u << 20)
#define AV_BLOCK_TARGET 64000 /* bytes of a block before it is written, as Java's default */

/* ---- writing ---- */
typedef struct av_out {
    fz_buf file, block;
    int64_t rows;           /* in the open block */
    ice_avro_codec codec;
    uint8_t sync[16];
    uint64_t raw, packed;   /* bytes of the blocks written so far, before and after the codec */
    void *packer;           /* of the codec, made at the first block */
} av_out;
/* meta: header entries beside avro.codec; avro.schema is among them. seed makes the sync marker. */
void av_open(av_out *o, const fz_pair *meta, size_t n, ice_avro_codec codec, uint64_t seed);
fz_status av_row(av_out *o, fz_error *err) FZ_MUST_USE;    /* one record is complete in o->block */
fz_status av_finish(av_out *o, fz_error *err) FZ_MUST_USE; /* o->file is the whole file then */
void av_close(av_out *o);
void av_put_long(fz_buf *b, int64_t v);
void av_put_bytes(fz_buf *b, const void *p, size_t n);
static inline void av_put_str(fz_buf *b, const char *s) { av_put_bytes(b, s, strlen(s)); }

/* ---- schemas that are read ---- */
typedef enum { AV_NULL, AV_BOOLEAN, AV_INT, AV_LONG, AV_FLOAT, AV_DOUBLE, AV_BYTES, AV_STRING, AV_FIXED, AV_ENUM, AV_RECORD, AV_ARRAY, AV_MAP, AV_UNION } av_kind;
typedef struct av_type av_type;
typedef struct av_field { const char *name; int32_t id; /* -1: none */ const av_type *type; } av_field;
struct av_type {
    av_kind kind;
    int32_t size;           /* FIXED */
    int32_t precision, scale;
    bool adjust_to_utc;
    const char *logical;    /* or "" */
    uint32_t n;             /* RECORD: fields; UNION: branches (as fields without name); ARRAY, MAP: 1 */
    av_field *fields;
};
fz_status av_schema_parse(fz_arena *a, const char *json, size_t n, const av_type **out, fz_error *err) FZ_MUST_USE;

/* ---- values that are read ---- */
typedef struct av_in { const uint8_t *p, *end; int64_t budget; } av_in;
fz_status av_long(av_in *in, int64_t *out, fz_error *err) FZ_MUST_USE;
fz_status av_raw(av_in *in, size_t n, const uint8_t **out, fz_error *err) FZ_MUST_USE;
fz_status av_bytes(av_in *in, fz_sv *out, fz_error *err) FZ_MUST_USE;
/* Reads the branch of a union (any other type: itself). */
fz_status av_branch(av_in *in, const av_type *t, const av_type **out, fz_error *err) FZ_MUST_USE;
fz_status av_skip(av_in *in, const av_type *t, int depth, fz_error *err) FZ_MUST_USE;
/* Typed reads through a union; *null is set instead when the value is null. what: for messages. */
fz_status av_get_i64(av_in *in, const av_type *t, int64_t *out, bool *null, const char *what, fz_error *err) FZ_MUST_USE;  /* int, long */
fz_status av_get_sv(av_in *in, const av_type *t, fz_sv *out, bool *null, const char *what, fz_error *err) FZ_MUST_USE;    /* string, bytes, fixed */
fz_status av_get_bool(av_in *in, const av_type *t, bool *out, bool *null, const char *what, fz_error *err) FZ_MUST_USE;
/* Blocks of an array or map: *count items follow; 0: the end. */
fz_status av_items(av_in *in, int64_t *count, fz_error *err) FZ_MUST_USE;
fz_status av_mismatch(const av_type *t, const char *what, const char *want, fz_error *err);

/* ---- containers that are read ---- */
typedef struct av_file {
    const uint8_t *p, *end, *first; /* first: of the blocks */
    uint8_t sync[16];
    uint32_t n_meta;
    const fz_pair *meta;
    const av_type *schema;
    ice_avro_codec codec;
    fz_buf unpacked;
    av_in in;               /* the open block */
    int64_t rows;           /* left in it */
    void *unpacker;
} av_file;
/* f is zeroed first; close it in any case. bytes must outlive it; a holds schema and metadata. */
fz_status av_file_open(av_file *f, fz_arena *a, const void *bytes, size_t n, fz_error *err) FZ_MUST_USE;
fz_status av_file_next(av_file *f, bool *more, fz_error *err) FZ_MUST_USE; /* f->in stands before a record of f->schema */
void av_file_rewind(av_file *f); /* before the first record again */
void av_file_close(av_file *f);
#endif
