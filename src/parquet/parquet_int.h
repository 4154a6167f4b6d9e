/* Inside of the parquet room: what its files share.
 *
 * A writer is an array of columns (pq_column), one a leaf of the schema. A column collects the page in progress (levels and
 * values, or levels and dictionary indices); a full page is encoded, compressed and kept in the column's chunk; a row group
 * writes all chunks out and leaves only footer records behind.
 *
 *   append -> pq_shred.c (levels, value rows) -> pq_column.c (values into the page, pq_dict.c) -> pq_page.c (encode, compress, pq_stats.c)
 *          -> pq_group.c (chunks out, index and metadata records) -> pq_footer.c
 *   file   -> pq_meta.c (footer in) -> pq_chunk.c (pages to levels and values, pq_decode.c) -> pq_assemble.c (vectors, pq_convert.c)
 */
#ifndef PQ_PARQUET_INT_H
#define PQ_PARQUET_INT_H
#include "parquet/parquet.h"
#include "parquet/thrift_int.h"

enum { PQ_BOOLEAN, PQ_INT32, PQ_INT64, PQ_INT96, PQ_FLOAT, PQ_DOUBLE, PQ_BYTE_ARRAY, PQ_FLBA }; /* parquet.thrift Type */
enum { PQ_REQUIRED, PQ_OPTIONAL, PQ_REPEATED };
enum {
    PQ_ENC_PLAIN = 0, PQ_ENC_PLAIN_DICTIONARY = 2, PQ_ENC_RLE = 3, PQ_ENC_BIT_PACKED = 4, PQ_ENC_DELTA_BINARY_PACKED = 5,
    PQ_ENC_DELTA_LENGTH_BYTE_ARRAY = 6, PQ_ENC_DELTA_BYTE_ARRAY = 7, PQ_ENC_RLE_DICTIONARY = 8, PQ_ENC_BYTE_STREAM_SPLIT = 9
};
enum { PQ_CODEC_UNCOMPRESSED = 0, PQ_CODEC_SNAPPY = 1, PQ_CODEC_GZIP = 2, PQ_CODEC_ZSTD = 6, PQ_CODEC_LZ4_RAW = 7 };
enum { PQ_PAGE_DATA = 0, PQ_PAGE_INDEX = 1, PQ_PAGE_DICTIONARY = 2, PQ_PAGE_DATA_V2 = 3 };
enum { PQ_CONV_UTF8 = 0, PQ_CONV_MAP = 1, PQ_CONV_MAP_KEY_VALUE = 2, PQ_CONV_LIST = 3, PQ_CONV_DECIMAL = 5, PQ_CONV_DATE = 6, PQ_CONV_TIME_MILLIS = 7, PQ_CONV_TIME_MICROS = 8,
       PQ_CONV_TIMESTAMP_MILLIS = 9, PQ_CONV_TIMESTAMP_MICROS = 10 };
enum { PQ_LOGICAL_STRING = 1, PQ_LOGICAL_MAP = 2, PQ_LOGICAL_LIST = 3, PQ_LOGICAL_DECIMAL = 5, PQ_LOGICAL_DATE = 6, PQ_LOGICAL_TIME = 7, PQ_LOGICAL_TIMESTAMP = 8, PQ_LOGICAL_UUID = 14 };

#define PQ_ZSTD_LEVEL 3      /* when the options say 0 */
#define PQ_TRIED 64          /* columns whose trials are remembered (a power of two) */
#define PQ_GZIP_LEVEL 6
#define PQ_BOUND_BYTES 64    /* bounds in column index and statistics are cut to it, as parquet-java's column index is */
#define PQ_HEAD 16           /* room kept before a page's values, so that short levels need no copy of the values */
#define PQ_ROWS_AT_ONCE 4096 /* rows handled per step, so that scratch stays in the first-level cache */
#define PQ_MAX_VALUE (1u << 30)
#define PQ_MAX_GROUP_ROWS (1u << 26) /* a row group of few bytes ends too, so that readers can hold it */

/* ---- small buffer: 16 bytes, grows by half, twofold while small ---- */
typedef struct pq_bytes { uint8_t *p; uint32_t n, cap; } pq_bytes;
void pq_bytes_grow(pq_bytes *b, size_t more);
static inline void pq_bytes_room(pq_bytes *b, size_t more) { if ((size_t)(b->cap - b->n) < more) pq_bytes_grow(b, more); }
static inline void pq_bytes_put(pq_bytes *b, const void *p, uint32_t n) {
    pq_bytes_room(b, n);
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
void pq_bytes_set(pq_bytes *b, const void *p, uint32_t n);
void pq_bytes_free(pq_bytes *b);

/* ---- scratch of a thread ---- */
typedef struct pq_xlat { uint32_t gen, code; } pq_xlat; /* batch dictionary entry -> file dictionary code, valid when gen is the current one */
typedef struct pq_memo { uint64_t a, b; uint32_t gen, n, code; } pq_memo; /* a short value of a flat vector -> file dictionary code, likewise */
#define PQ_MEMOS 64 /* a power of two */
typedef struct pq_shred { /* levels and value rows of one nested leaf */
    const col_vec *vec;
    uint8_t *def, *rep;
    uint32_t *row; /* rows of vec that hold the values, in order */
    uint32_t n, n_rows, cap;
} pq_shred;
/* Ways to pack a page with zstd, roughly from the slowest on: as pq_compress does; level 1; the same with a small table, for lines of text, of matches of five bytes and of long ones, each also with longer leaps;
 * literals entropy-coded and next to nothing looked for; identifiers (pq_hex.c). */
typedef enum { PQ_WAY_LEVEL, PQ_WAY_FAST, PQ_WAY_LINES, PQ_WAY_LONG, PQ_WAY_LINES_FAST, PQ_WAY_LONG_FAST, PQ_WAY_ENTROPY, PQ_WAY_HEX } pq_way;
typedef struct pq_tried { uint64_t key; uint16_t left, pause; uint8_t way; } pq_tried; /* left: pages until the next trial; pause: from the last one to it */
struct pq_codec {
    void *zc, *zd; /* ZSTD_CCtx, ZSTD_DCtx */
    pq_way way;    /* that the parameters of zc are set to; calls with a level do not look at them */
    void *gz, *gd; /* libdeflate (de)compressor */
    int gz_level;
    fz_buf body, comp, head;
    pq_tried tried[PQ_TRIED];
    pq_xlat *xlat;
    uint32_t xlat_cap, gen;
    pq_memo memo[PQ_MEMOS];
    uint32_t *codes, codes_cap;
    uint32_t *rows, rows_cap;
    pq_shred *shred;
    uint32_t n_shred;
};
/* out points to p itself (uncompressed) or into c->comp. level 0: the codec's default. */
fz_status pq_compress(pq_codec *c, pq_compression how, int level, const void *p, size_t n, fz_sv *out, fz_error *err) FZ_MUST_USE;
fz_status pq_compress_way(pq_codec *c, pq_way way, const void *p, size_t n, fz_error *err) FZ_MUST_USE; /* into c->comp; not PQ_WAY_HEX */
/* The same for pages, level 0 of zstd: the way that suits the column (pq_trial.c). key: of the column, in whatever file; head: bytes before the first of byte arrays, SIZE_MAX: the page has others. */
fz_status pq_compress_page(pq_codec *c, const pq_options *o, uint64_t key, const void *p, size_t n, size_t head, fz_sv *out, fz_error *err) FZ_MUST_USE;
fz_status pq_decompress(pq_codec *c, int codec, const void *p, size_t n, void *out, size_t out_n, fz_error *err) FZ_MUST_USE;

/* A page of byte arrays, the first one at head, as a zstd frame: pq_hex.c. 0: they are no identifiers; out has room for n bytes. */
size_t pq_hex_frame(uint8_t *out, const uint8_t *p, size_t n, size_t head);

/* ---- RLE / bit-packing hybrid ---- */
void pq_rle_run(fz_buf *out, uint32_t value, size_t n, unsigned width);
/* v: n values of size bytes each (0: all values are zero); width: bits. */
void pq_rle_encode(fz_buf *out, const void *v, unsigned size, size_t n, unsigned width);
typedef struct pq_rle_in { const uint8_t *p, *end, *base; uint64_t bit, run, packed; unsigned width; uint32_t value; } pq_rle_in;
void pq_rle_open(pq_rle_in *r, const uint8_t *p, size_t n, unsigned width); /* width <= 32 */
bool pq_rle_read(pq_rle_in *r, uint32_t *out, size_t n);                    /* false: fewer values are there */
static inline unsigned pq_bits(uint32_t max) { return max ? 32u - (unsigned)__builtin_clz(max) : 0; }

/* ---- schema ---- */
typedef enum { PQ_SRC_BOOL, PQ_SRC_4, PQ_SRC_8, PQ_SRC_TIME, PQ_SRC_DEC4, PQ_SRC_DEC8, PQ_SRC_DECN, PQ_SRC_FIXED, PQ_SRC_BYTES } pq_src;
typedef enum { PQ_ORD_BOOL, PQ_ORD_I32, PQ_ORD_I64, PQ_ORD_F32, PQ_ORD_F64, PQ_ORD_BYTES, PQ_ORD_SIGNED_BYTES } pq_order;
typedef struct pq_leaf {
    const pq_field *field;
    uint32_t width;        /* bytes of a value in PLAIN form; 0: variable */
    uint8_t phys, src, order, max_def, max_rep;
    bool nested;           /* not itself a top-level field */
} pq_leaf;
#define PQ_MAX_NESTING 60
/* Walks the fields and fills leaves (NULL: only counts). USER error for a type that Iceberg's Parquet does not have. */
fz_status pq_leaves(const pq_field *f, uint32_t n, pq_leaf *leaves, uint32_t *n_leaves, fz_error *err) FZ_MUST_USE;
unsigned pq_decimal_width(int32_t precision); /* least bytes of a two's complement number of that many digits */
void pq_schema_encode(tc_out *o, int id, const pq_field *f, uint32_t n); /* the list of SchemaElements */
typedef struct pq_path { fz_sv part[3 * PQ_MAX_NESTING]; uint32_t n; } pq_path;
/* Calls fn for each leaf in order with its path in the schema. */
void pq_walk_paths(const pq_field *f, uint32_t n, void (*fn)(void *cx, const pq_field *leaf, const pq_path *path), void *cx);

/* ---- statistics ---- */
typedef struct pq_range { const uint8_t *min, *max; uint32_t min_n, max_n; uint64_t nans; } pq_range; /* min NULL: no value */
typedef struct pq_bounds { pq_bytes min, max; bool set; } pq_bounds;
int pq_value_cmp(pq_order o, const uint8_t *a, uint32_t an, const uint8_t *b, uint32_t bn);
bool pq_value_is_nan(pq_order o, const uint8_t *p);
void pq_range_add(pq_range *r, pq_order o, const uint8_t *p, uint32_t n);
/* Over n PLAIN values of fixed width at p (booleans: one byte each). */
void pq_range_plain(pq_range *r, const pq_leaf *l, const uint8_t *p, uint32_t n);
/* Least and greatest of a page's byte arrays, kept while they are appended (they are in the cache then): places of their lengths
 * in the page's buffer, and their first eight bytes as numbers, which decide nearly always. */
typedef struct pq_edges { uint64_t lo, hi; uint32_t min, max; } pq_edges;
static inline bool pq_edges_may(const pq_edges *e, const uint8_t *eight) { /* a value that begins with these bytes may be one of them */
    uint64_t x;
    memcpy(&x, eight, 8);
    x = __builtin_bswap64(x);
    return x <= e->lo || x >= e->hi;
}
void pq_edges_add(pq_edges *e, const uint8_t *base, uint32_t at, bool any);
void pq_edges_range(pq_range *r, const pq_edges *e, const uint8_t *base);
void pq_zero_bound(pq_order o, uint8_t *p, uint32_t n, bool upper); /* a zero bound covers both zeros */
void pq_bounds_merge(pq_bounds *b, pq_order o, const uint8_t *min, uint32_t min_n, const uint8_t *max, uint32_t max_n);
void pq_bounds_free(pq_bounds *b);
typedef enum { PQ_CUT_BYTES, PQ_CUT_UTF8, PQ_CUT_POINTS } pq_cut_unit; /* bytes; bytes, whole code points; code points */
uint32_t pq_cut(const uint8_t *p, uint32_t n, uint32_t limit, pq_cut_unit unit);
/* The least successor of the same or smaller length in units; false: there is none. p has 4 bytes of room after *n. */
bool pq_increment(uint8_t *p, uint32_t *n, bool text);
static inline bool pq_is_text(const pq_leaf *l) { return col_is_text(l->field->type->kind); }

/* ---- dictionary of a chunk ---- */
typedef struct pq_entry { uint32_t off, hash; } pq_entry;
typedef struct pq_dict {
    pq_bytes vals;   /* the dictionary page: PLAIN */
    pq_entry *ent;   /* variable length only */
    uint32_t *slot;  /* entry + 1, open addressing; NULL while there are few entries */
    uint32_t n, ent_cap, mask;
} pq_dict;
uint32_t pq_dict_code(pq_dict *d, uint32_t width, const void *p, uint32_t n); /* finds or adds */
/* The same for the texts of rows[0..n): codes[i] for rows[i]. Keeps the caches busy. */
void pq_dict_codes(pq_dict *d, const char *bytes, const uint32_t *off, const uint32_t *rows, uint32_t n, uint32_t *codes);
void pq_dict_free(pq_dict *d);
static inline const uint8_t *pq_dict_value(const pq_dict *d, uint32_t width, uint32_t code, uint32_t *n) {
    if (width) { *n = width; return d->vals.p + (size_t)code * width; }
    const uint8_t *q = d->vals.p + d->ent[code].off;
    memcpy(n, q, 4);
    return q + 4;
}

/* ---- columns, pages, chunks ---- */
typedef struct pq_page {
    uint8_t *bytes;                            /* header and body as they will stand in the file; each page for itself: chunks are the bulk of a writer's memory, and growing them means to copy them */
    uint32_t size;
    uint64_t first_row;
    uint32_t nulls;
    uint32_t key, min_n, max_n;                /* bounds for the index: chunk.keys[key .. key + min_n + max_n) */
    bool null_page;
} pq_page;
typedef struct pq_chunk {
    pq_page *pages;
    uint32_t n_pages, cap_pages;
    fz_buf keys;
    uint64_t size, raw, rows, entries, nulls, nans; /* size: of all pages; raw: uncompressed bytes, headers included */
    uint32_t n_dict, n_plain;                  /* data pages by encoding */
    bool no_index;                             /* a page has values but no bounds */
    pq_bounds bounds;
} pq_chunk;
typedef struct pq_totals { uint64_t size, entries, nulls, nans; pq_bounds bounds; } pq_totals; /* of the row groups written */
enum { PQ_MODE_DICT, PQ_MODE_PLAIN };
typedef struct pq_column {
    pq_leaf leaf;
    uint32_t page_entries, page_rows, page_values; /* page in progress: level pairs, rows, non-null values */
    uint32_t dict_values, next_check;              /* values since the dictionary began; when to ask whether it pays */
    uint8_t mode, idx_size;                        /* idx_size: bytes of an index in vals; 0: all are entry 0 */
    pq_bytes def, rep;                             /* flat columns: def is empty while the page is all values or all NULL */
    pq_bytes vals;                                 /* values begin at PQ_HEAD */
    pq_edges edges;                                /* of a PLAIN page of byte arrays that has values */
    pq_dict dict;
    pq_chunk *chunk;
    pq_totals *totals;
} pq_column;
static inline const uint8_t *pq_vals(const pq_column *c) { return c->vals.p ? c->vals.p + PQ_HEAD : NULL; }
static inline uint32_t pq_vals_n(const pq_column *c) { return c->vals.n > PQ_HEAD ? c->vals.n - PQ_HEAD : 0; }

static inline uint32_t pq_index_at(const pq_column *c, uint32_t i) { /* dictionary code of the page's i-th value */
    const void *p = pq_vals(c);
    return c->idx_size == 0 ? 0 : c->idx_size == 1 ? ((const uint8_t *)p)[i] : c->idx_size == 2 ? ((const uint16_t *)p)[i] : ((const uint32_t *)p)[i];
}

typedef struct pq_chunk_rec { uint32_t meta, meta_n; uint64_t ci, oi; uint32_t ci_n, oi_n; } pq_chunk_rec; /* places in the footer's buffers */
typedef struct pq_group_rec { uint64_t offset, rows, raw, size; } pq_group_rec;
typedef struct pq_footer {
    fz_buf meta, ci, oi; /* encoded ColumnMetaData, ColumnIndex, OffsetIndex of all chunks written */
    pq_chunk_rec *chunks;
    pq_group_rec *groups;
    uint32_t n_groups, cap_groups, cap_chunks;
} pq_footer;
struct pq_writer {
    const pq_field *fields;
    const pq_options *opt;
    const fz_pair *kv;
    uint32_t n_fields, n_cols;
    size_t n_kv;
    uint64_t out, rows, group_rows;
    uint64_t pages_raw, pages_size; /* of all pages so far: the compression ratio that estimates rely on */
    bool broken, nested;
    pq_footer *footer;
    pq_column cols[];
};

/* Of a table's column, for trials; + 1: its pages of indices, + 2: its dictionaries. */
static inline uint64_t pq_column_key(const pq_writer *w, const pq_column *c) { return fz_hash(c->leaf.field->name, strlen(c->leaf.field->name)) ^ (uintptr_t)w->fields * 0x9E3779B97F4A7C15u; }

/* pq_shred.c: levels and rows of all nested leaves of one top-level field, into c->shred[leaf ..]; DATA "not-null". */
fz_status pq_shred_field(pq_codec *c, const pq_field *f, const col_vec *v, const uint32_t *sel, uint32_t n, uint32_t leaf, fz_error *err) FZ_MUST_USE;
void pq_shred_room(pq_codec *c, uint32_t n_leaves);
/* pq_column.c: appends to one leaf column, flushing pages that fill up. */
fz_status pq_column_append_flat(pq_writer *w, pq_column *c, const col_vec *v, const uint32_t *sel, uint32_t n, pq_codec *k, fz_error *err) FZ_MUST_USE;
fz_status pq_column_append_shred(pq_writer *w, pq_column *c, const pq_shred *s, pq_codec *k, fz_error *err) FZ_MUST_USE;
void pq_column_to_plain(pq_column *c);        /* the page in progress changes from indices to values, and the dictionary goes */
bool pq_column_dict_pays(const pq_column *c); /* for the values of the page in progress, which hold the whole dictionary */
void pq_column_reset(pq_column *c);           /* after a row group */
size_t pq_column_bytes(const pq_column *c);
uint64_t pq_column_raw(const pq_column *c);   /* encoded bytes of the page in progress and the dictionary, before compression */
/* pq_page.c */
fz_status pq_page_flush(pq_writer *w, pq_column *c, pq_codec *k, fz_error *err) FZ_MUST_USE;
void pq_page_header(fz_buf *out, int type, uint32_t raw, fz_sv body, uint32_t n_values, int encoding);
void pq_chunk_free(pq_chunk *c);
/* pq_group.c */
fz_status pq_group_write(pq_writer *w, pq_codec *k, pq_write_fn write, void *cx, fz_error *err) FZ_MUST_USE;
/* pq_footer.c */
fz_status pq_footer_write(pq_writer *w, pq_write_fn write, void *cx, fz_error *err) FZ_MUST_USE;
void pq_metrics(const pq_writer *w, fz_arena *a, pq_file_info *info);
fz_status pq_emit(pq_writer *w, pq_write_fn write, void *cx, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
#endif
