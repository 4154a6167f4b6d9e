/* Protocol Buffers on the wire: a reader that walks the fields of a message where they lie, and a small writer. Both ends of OTLP use it: the door splits requests, the decoder fills columns.
 *
 * What it does not do: no objects, no schemas, no allocation, no text checks (a string may hold any bytes).
 *
 * Invariants
 *  1. No byte at or after `end` is read; a length is trusted only when its bytes are there.
 *  2. Groups, which proto3 has no more, are passed over as one field without stack, nested PB_MAX_GROUPS deep at most.
 *  3. After PB_BAD the walk is over: where the next field begins is not known.
 * Source: protobuf.dev/programming-guides/encoding. Threads: any.
 */
#ifndef FZ_PROTOBUF_H
#define FZ_PROTOBUF_H
#include "base/str.h"

#define PB_MAX_GROUPS 32

typedef enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_GROUP = 3, PB_FIXED32 = 5 } pb_wire;
typedef enum { PB_FIELD, PB_END, PB_BAD } pb_result;

typedef struct pb_field {
    uint32_t number;
    pb_wire wire;
    size_t n;          /* BYTES: of them */
    union {
        uint64_t v;    /* VARINT, FIXED64, FIXED32 */
        const uint8_t *p; /* BYTES */
    };
} pb_field;

/* The field at *p, which moves past it. END: *p == end. */
pb_result pb_next_slow(const uint8_t **p, const uint8_t *end, pb_field *out);

/* The same; the common case (one-byte tag, bytes with a one-byte length) without a call. */
static inline pb_result pb_next(const uint8_t **p, const uint8_t *end, pb_field *out) {
    const uint8_t *q = *p;
    if (end - q >= 2 && (q[0] & 0x87) == PB_BYTES && q[1] < 0x80 && q[1] <= end - q - 2 && q[0] >= 8) {
        out->number = q[0] >> 3;
        out->wire = PB_BYTES;
        out->n = q[1];
        out->p = q + 2;
        *p = q + 2 + q[1];
        return PB_FIELD;
    }
    return pb_next_slow(p, end, out);
}

static inline uint64_t pb_u64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}
static inline double pb_double(uint64_t v) {
    double d;
    memcpy(&d, &v, 8);
    return d;
}

void pb_put_varint(fz_buf *b, uint64_t v);
void pb_put_uint(fz_buf *b, uint32_t number, uint64_t v);      /* VARINT */
void pb_put_fixed64(fz_buf *b, uint32_t number, uint64_t v);
void pb_put_fixed32(fz_buf *b, uint32_t number, uint32_t v);
void pb_put_bytes(fz_buf *b, uint32_t number, const void *p, size_t n);
/* A nested message of unknown size: begin, put its fields, end with what begin returned. */
size_t pb_begin(fz_buf *b, uint32_t number);
void pb_end(fz_buf *b, size_t begun);
#endif
