/* Thrift's compact protocol: see thrift_int.h. */
#include "parquet/thrift_int.h"

void tc_varint(fz_buf *b, uint64_t v) {
    uint8_t t[10];
    size_t n = 0;
    while (v >= 0x80) { t[n++] = (uint8_t)(v | 0x80); v >>= 7; }
    t[n++] = (uint8_t)v;
    fz_buf_append(b, t, n);
}
static uint64_t zigzag(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }

static void field(tc_out *o, int id, int type) {
    int delta = id - o->last[o->depth];
    if (delta > 0 && delta <= 15) fz_buf_putc(o->b, (char)(delta << 4 | type));
    else {
        fz_buf_putc(o->b, (char)type);
        tc_varint(o->b, zigzag(id));
    }
    o->last[o->depth] = (int16_t)id;
}
void tc_put_bool(tc_out *o, int id, bool v) { field(o, id, v ? TC_TRUE : TC_FALSE); }
void tc_put_i16(tc_out *o, int id, int16_t v) { field(o, id, TC_I16); tc_varint(o->b, zigzag(v)); }
void tc_put_i32(tc_out *o, int id, int32_t v) { field(o, id, TC_I32); tc_varint(o->b, zigzag(v)); }
void tc_put_i64(tc_out *o, int id, int64_t v) { field(o, id, TC_I64); tc_varint(o->b, zigzag(v)); }
void tc_put_bytes(tc_out *o, int id, const void *p, size_t n) { field(o, id, TC_BINARY); tc_e_bytes(o, p, n); }
void tc_begin(tc_out *o, int id) {
    if (id) field(o, id, TC_STRUCT);
    o->last[++o->depth] = 0;
}
void tc_end(tc_out *o) {
    fz_buf_putc(o->b, 0);
    if (o->depth) o->depth--;
}
void tc_list(tc_out *o, int id, int element, size_t n) {
    field(o, id, TC_LIST);
    if (n < 15) fz_buf_putc(o->b, (char)(n << 4 | (unsigned)element));
    else {
        fz_buf_putc(o->b, (char)(0xf0 | element));
        tc_varint(o->b, n);
    }
}
void tc_e_i32(tc_out *o, int32_t v) { tc_varint(o->b, zigzag(v)); }
void tc_e_i64(tc_out *o, int64_t v) { tc_varint(o->b, zigzag(v)); }
void tc_e_bool(tc_out *o, bool v) { fz_buf_putc(o->b, v ? TC_TRUE : TC_FALSE); }
void tc_e_bytes(tc_out *o, const void *p, size_t n) { tc_varint(o->b, n); fz_buf_append(o->b, p, n); }

static size_t left(const tc_in *in) { return (size_t)(in->end - in->p); }
static uint64_t fault(tc_in *in) {
    in->bad = true;
    in->p = in->end;
    return 0;
}
static uint8_t byte(tc_in *in) {
    if (!left(in)) return (uint8_t)fault(in);
    return *in->p++;
}
uint64_t tc_read_varint(tc_in *in) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!left(in)) return fault(in);
        uint8_t b = *in->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
    return fault(in);
}
static int64_t unzigzag(uint64_t v) { return (int64_t)(v >> 1) ^ -(int64_t)(v & 1); }

bool tc_field(tc_in *in, int *id, int *type) {
    if (in->bad) return false;
    uint8_t b = byte(in);
    *type = b & 0x0f;
    if (in->bad || !*type) {
        if (in->depth) in->depth--;
        return false;
    }
    int delta = b >> 4;
    int64_t v = delta ? in->last[in->depth] + delta : unzigzag(tc_read_varint(in));
    if (v < INT16_MIN || v > INT16_MAX || *type > TC_STRUCT) { fault(in); return false; }
    *id = (int)v;
    in->last[in->depth] = (int16_t)v;
    return true;
}
int64_t tc_int(tc_in *in, int type) {
    if (type == TC_BYTE) return (int8_t)byte(in);
    if (type != TC_I16 && type != TC_I32 && type != TC_I64) return (int64_t)fault(in);
    int64_t v = unzigzag(tc_read_varint(in));
    if ((type == TC_I32 && (v < INT32_MIN || v > INT32_MAX)) || (type == TC_I16 && (v < INT16_MIN || v > INT16_MAX))) return (int64_t)fault(in);
    return v;
}
bool tc_bool(int type) { return type == TC_TRUE; }
fz_sv tc_bytes(tc_in *in, int type) {
    if (type != TC_BINARY) { fault(in); return (fz_sv){"", 0}; }
    uint64_t n = tc_read_varint(in);
    if (n > left(in)) { fault(in); return (fz_sv){"", 0}; }
    fz_sv s = {(const char *)in->p, (size_t)n};
    in->p += n;
    return s;
}
uint32_t tc_list_begin(tc_in *in, int type, int *element) {
    *element = 0;
    if (type != TC_LIST && type != TC_SET) return (uint32_t)fault(in);
    uint8_t b = byte(in);
    *element = b & 0x0f;
    uint64_t n = b >> 4;
    if (n == 15) n = tc_read_varint(in);
    if (n > left(in)) return (uint32_t)fault(in);
    return (uint32_t)n;
}
bool tc_struct(tc_in *in, int type) {
    if (type != TC_STRUCT || in->bad || in->depth + 1 >= TC_MAX_DEPTH) { fault(in); return false; }
    in->last[++in->depth] = 0;
    return true;
}
static void skip_n(tc_in *in, int type, int nest, bool element);
static void skip_map(tc_in *in, int nest) {
    uint64_t n = tc_read_varint(in);
    if (!n || in->bad) return;
    uint8_t kv = byte(in);
    if (n > left(in)) { fault(in); return; }
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        skip_n(in, kv >> 4, nest + 1, true);
        skip_n(in, kv & 15, nest + 1, true);
    }
}
static void skip_n(tc_in *in, int type, int nest, bool element) {
    int id, t, e;
    if (nest > TC_MAX_DEPTH) { fault(in); return; }
    switch (type) {
    case TC_TRUE: case TC_FALSE: if (element) byte(in); break;
    case TC_BYTE: byte(in); break;
    case TC_I16: case TC_I32: case TC_I64: tc_read_varint(in); break;
    case TC_DOUBLE:
        if (left(in) < 8) fault(in);
        else in->p += 8;
        break;
    case TC_BINARY: tc_bytes(in, type); break;
    case TC_LIST: case TC_SET: {
        uint32_t n = tc_list_begin(in, type, &e);
        for (uint32_t i = 0; i < n && !in->bad; i++) skip_n(in, e, nest + 1, true);
        break;
    }
    case TC_MAP: skip_map(in, nest); break;
    case TC_STRUCT:
        if (tc_struct(in, type))
            while (tc_field(in, &id, &t)) skip_n(in, t, nest + 1, false);
        break;
    default: fault(in);
    }
}
void tc_skip(tc_in *in, int type) { skip_n(in, type, 0, false); }
