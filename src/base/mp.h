/* MessagePack: a reader that walks bytes where they lie, and a small writer. Both ends of the forward protocol use it: the door splits messages, the decoder fills columns.
 *
 * What it does not do: no objects, no allocation, no text checks (str may hold any bytes).
 *
 * Invariants
 *  1. No byte at or after `end` is read. MP_MORE: the value is cut off there; MP_BAD: no value begins so (0xc1).
 *  2. Skipping takes no stack, however deep a value is nested; lengths and counts are only trusted as far as bytes are there.
 *  3. Every value takes at least one byte: a count of items above the bytes that may still come is refused by mp_scan before any of them is looked at.
 * Source: MessagePack specification (github.com/msgpack/msgpack/blob/master/spec.md). Threads: any.
 */
#ifndef FZ_MP_H
#define FZ_MP_H
#include "base/str.h"

typedef enum { MP_OK, MP_MORE, MP_BAD } mp_result;
typedef enum { MP_NIL, MP_BOOL, MP_INT, MP_UINT /* above INT64_MAX only */, MP_FLOAT, MP_DOUBLE, MP_STR, MP_BIN, MP_ARRAY, MP_MAP, MP_EXT } mp_type;

typedef struct mp_item {
    mp_type type;
    uint32_t n;            /* STR, BIN, EXT: bytes at p; ARRAY: items; MAP: pairs */
    int8_t ext;            /* EXT: its type */
    const uint8_t *p;      /* STR, BIN, EXT: payload */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;          /* DOUBLE, and FLOAT widened */
    };
} mp_item;

/* One item; *p moves past it: for ARRAY and MAP past the header, the items follow. Unchanged unless MP_OK. */
mp_result mp_read(const uint8_t **p, const uint8_t *end, mp_item *out);
/* Past one value with all that it holds. Unchanged unless MP_OK. */
mp_result mp_skip(const uint8_t **p, const uint8_t *end);

/* The same for one of many values that are alike. Records mostly have the keys of the one before, and texts of the same lengths: where an item begins as it did in the value before, its length need not be
 * made out from its bytes, and the processor goes on before it has them. Begin with a zeroed one; any shape gives the same result. */
enum { MP_SHAPE = 48 };
typedef struct mp_shape { struct { uint32_t head /* + 1; 0: not known */, mask, size, inner; } item[MP_SHAPE]; uint8_t misses[MP_SHAPE]; } mp_shape;
mp_result mp_skip_like(const uint8_t **p, const uint8_t *end, mp_shape *s);

/* Looks for the end of a value whose bytes come piece by piece, without going over them again. Begin with a zeroed one. */
typedef struct mp_scan { size_t at; uint64_t open; bool begun; } mp_scan;
/* p: the value's first byte, n: what is there now. MP_OK: s->at is its length. MP_MORE: come again with more. MP_BAD: no MessagePack, or certain to be longer than max bytes (then s->at + s->open > max). */
mp_result mp_scan_more(mp_scan *s, const uint8_t *p, size_t n, size_t max);

void mp_put_nil(fz_buf *b);
void mp_put_bool(fz_buf *b, bool v);
void mp_put_array(fz_buf *b, uint32_t n);
void mp_put_map(fz_buf *b, uint32_t n);
void mp_put_str(fz_buf *b, const void *p, size_t n);
void mp_put_bin(fz_buf *b, const void *p, size_t n);
void mp_put_int(fz_buf *b, int64_t v);
#endif
