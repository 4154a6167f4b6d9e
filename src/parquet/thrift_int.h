/* Thrift's compact protocol, as far as Parquet's metadata uses it. The encoder appends to a buffer; the decoder walks bytes that
 * nobody has checked yet.
 *
 * Invariants
 *  1. Decoder: every read is bounded by the slice; after the first fault `bad` stays set, all later reads give 0 or empty, and
 *     every loop over fields or elements ends.
 *  2. A list never announces more elements than there are bytes left (each element takes at least one).
 * Source: thrift-compact-protocol.md of the Thrift project.
 */
#ifndef PQ_THRIFT_INT_H
#define PQ_THRIFT_INT_H
#include "base/base.h"

enum { TC_TRUE = 1, TC_FALSE = 2, TC_BYTE = 3, TC_I16 = 4, TC_I32 = 5, TC_I64 = 6, TC_DOUBLE = 7, TC_BINARY = 8, TC_LIST = 9, TC_SET = 10, TC_MAP = 11, TC_STRUCT = 12 };
enum { TC_MAX_DEPTH = 24 };

typedef struct tc_out { fz_buf *b; int depth; int16_t last[TC_MAX_DEPTH]; } tc_out;
static inline tc_out tc_out_on(fz_buf *b) { tc_out o; memset(&o, 0, sizeof o); o.b = b; return o; } /* ready to write the fields of one struct */
void tc_varint(fz_buf *b, uint64_t v);
void tc_put_bool(tc_out *o, int id, bool v);
void tc_put_i16(tc_out *o, int id, int16_t v);
void tc_put_i32(tc_out *o, int id, int32_t v);
void tc_put_i64(tc_out *o, int id, int64_t v);
void tc_put_bytes(tc_out *o, int id, const void *p, size_t n);
void tc_begin(tc_out *o, int id);                       /* a struct as field; id 0: as list element */
void tc_end(tc_out *o);                                 /* the stop byte of the innermost struct */
void tc_list(tc_out *o, int id, int element, size_t n); /* then n elements: tc_begin(o, 0)/tc_end, or the tc_e_ calls */
void tc_e_i32(tc_out *o, int32_t v);
void tc_e_i64(tc_out *o, int64_t v);
void tc_e_bool(tc_out *o, bool v);
void tc_e_bytes(tc_out *o, const void *p, size_t n);

typedef struct tc_in { const uint8_t *p, *end; bool bad; int depth; int16_t last[TC_MAX_DEPTH]; } tc_in;
static inline tc_in tc_in_on(const void *p, size_t n) { tc_in in; memset(&in, 0, sizeof in); in.p = p; in.end = in.p + n; return in; }
/* Next field of the current struct: false at its end (or on a fault). */
bool tc_field(tc_in *in, int *id, int *type);
/* Reads a value of the announced type; another type than the asked one is a fault. */
int64_t tc_int(tc_in *in, int type);                    /* i16, i32, i64, byte */
bool tc_bool(int type);                                 /* the value of a field stands in its type */
fz_sv tc_bytes(tc_in *in, int type);
uint32_t tc_list_begin(tc_in *in, int type, int *element);
bool tc_struct(tc_in *in, int type);                    /* enters; false on a fault. Ends when tc_field gives false */
void tc_skip(tc_in *in, int type);
uint64_t tc_read_varint(tc_in *in);
#endif
