/* Inside of the reader: parsed footer, decoded chunks. All of it comes from bytes that nobody has checked: every length is
 * compared with what is there before it is used, and every size that only the file claims has a ceiling. */
#ifndef PQ_READ_INT_H
#define PQ_READ_INT_H
#include "parquet/parquet_int.h"

#define PQ_MAX_FOOTER (256u << 20)
#define PQ_MAX_PAGE (1u << 30)         /* uncompressed bytes of one page */
#define PQ_MAX_GROUP_VALUES (1u << 28) /* level entries of one column chunk */
#define PQ_EXPECT (4u << 20)           /* most values, and PQ_EXPECT_BYTES most bytes, that a claim is believed for in advance */
#define PQ_EXPECT_BYTES (64u << 20)
#define PQ_MAX_VECTOR (2u << 30)       /* bytes of one column's values in a row group */

typedef struct pq_node {               /* a schema element in its tree */
    fz_sv name;
    int32_t type, type_length, repetition, converted, scale, precision, field_id; /* type -1: group; others -1: not given */
    int32_t logical;                   /* number in the LogicalType union; 0: none */
    bool utc;                          /* TIMESTAMP: isAdjustedToUTC */
    int8_t unit;                       /* TIME, TIMESTAMP: 1 ms, 2 us, 3 ns */
    uint32_t n_children, first, leaf;  /* first: index of the first child (children are linked by next); leaf: index of the first leaf below */
    uint32_t next;                     /* next sibling; 0: none */
    uint8_t def, rep;                  /* levels at which it is present */
} pq_node;
typedef struct pq_chunk_meta {
    int32_t type, codec;
    int64_t n_values, data_page, dict_page, size, raw; /* dict_page -1: none; raw: uncompressed size */
} pq_chunk_meta;
typedef struct pq_group_meta { int64_t rows; pq_chunk_meta *chunks; } pq_group_meta;
struct pq_reader {
    pq_read_fn read;
    void *cx;
    uint64_t file_size, rows;
    fz_arena *arena; /* of the metadata */
    pq_codec *codec;
    uint8_t *footer;
    pq_node *nodes;
    uint32_t n_nodes, n_leaves, n_groups;
    uint32_t *leaf_node; /* leaf -> node */
    pq_group_meta *groups;
    bool has_ids;
};
fz_status pq_meta_parse(pq_reader *r, const uint8_t *p, size_t n, fz_error *err) FZ_MUST_USE;

/* Non-null values in a row, in physical form. Fixed width (booleans: one byte each): fix; byte arrays: off and data;
 * dictionary: idx into dict (of one of the other forms). */
typedef struct pq_values {
    uint32_t width; /* 0: byte arrays */
    uint32_t n;
    uint8_t *fix;
    uint32_t *off;
    uint8_t *data;
    size_t data_n;
    size_t cap, off_cap, data_cap;
    uint32_t expect;   /* values and bytes that the chunk claims to have (within reason): room for them is taken at once */
    size_t expect_bytes;
    struct pq_values *dict;
    uint32_t *idx;
} pq_values;
typedef struct pq_levels { /* one leaf of one row group */
    bool loaded;
    uint32_t n;          /* entries */
    uint8_t *def, *rep;  /* NULL: all are the leaf's maximum (def), all 0 (rep) */
    uint32_t cap_def, cap_rep;
    pq_values values;
} pq_levels;

/* Decodes nv values of encoding from p[0..n) onto v. */
fz_status pq_decode_values(pq_values *v, int phys, int encoding, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) FZ_MUST_USE;
/* Turns dictionary form into values. */
fz_status pq_values_expand(pq_values *v, fz_arena *a, fz_error *err) FZ_MUST_USE;
fz_status pq_values_append_indices(pq_values *v, const uint8_t *p, size_t n, uint32_t nv, fz_arena *a, fz_error *err) FZ_MUST_USE;
/* Reads the whole chunk of a leaf. */
fz_status pq_chunk_read(pq_reader *r, uint32_t group, uint32_t leaf, fz_arena *a, pq_levels *out, fz_error *err) FZ_MUST_USE;
/* Dense values as a vector of the wanted type (flat, or dictionary form). */
fz_status pq_values_convert(const pq_node *node, pq_values *v, const pq_field *wanted, fz_arena *a, col_vec **out, fz_error *err) FZ_MUST_USE;
bool pq_two_level(const pq_node *list, const pq_node *rep); /* the repeated node below a list is its element */
static inline fz_status pq_corrupt(fz_error *err, const char *what) { return fz_fail(err, FZ_FATAL, "parquet.corrupt", "damaged Parquet file: %s", what); }
#endif
