/* Parquet: columns -> bytes and back. Knows no stores: a writer hands bytes to a callback, a reader asks a callback for ranges.
 *
 * Writer: v1 data pages, dictionary with fallback to plain, RLE/bit-packed levels and indices, page statistics in column and
 * offset index, nested types, field ids. One writer = one file; its memory can be asked for and cut (pq_writer_flush_row_group).
 *
 * Invariants
 *  1. Bytes go out in order through the callback; offsets in the footer are offsets in that stream.
 *  2. A required column never holds a NULL: pq_writer_append fails instead.
 *  3. Memory held by an empty writer is small (tens of thousands may be open); buffers grow with the rows they hold.
 * Threads: a writer or reader belongs to one thread at a time. Compression contexts are passed in (pq_codec), one a thread.
 */
#ifndef PQ_PARQUET_H
#define PQ_PARQUET_H
#include "col/col.h"

typedef enum { PQ_UNCOMPRESSED, PQ_SNAPPY, PQ_GZIP, PQ_LZ4_RAW, PQ_ZSTD } pq_compression;

/* One column of the file's schema: a tree that follows the col_type, with Iceberg field ids. */
typedef struct pq_field {
    const char *name;
    int32_t field_id;
    bool required;
    const col_type *type;
    const struct pq_field *children; /* ROW: its fields; ARRAY: element; MAP: key, value */
    uint32_t n_children;
    bool is_uuid, is_fixed;          /* BINARY(n) written as FIXED_LEN_BYTE_ARRAY (with logical type UUID) */
    int metrics_truncate;            /* bounds mode: -1 full, 0 none (no counts either), -2 counts only, N > 0 truncate(N) */
} pq_field;

typedef struct pq_options {
    pq_compression compression;
    int compression_level;       /* zstd, gzip; 0: the codec's default (zstd: 3, or for each column a faster way that packs it about as well; gzip: 6) */
    size_t page_size;            /* target bytes of a data page before compression (1 MiB) */
    uint32_t page_rows;          /* most rows of a page (20,000) */
    size_t dict_size;            /* most bytes of a dictionary page (2 MiB) */
    size_t row_group_size;       /* target bytes of a row group (128 MiB) */
    bool bloom;                  /* reserved by the table property; refused when true */
} pq_options;

/* What Iceberg wants to know about one leaf column of the finished file. Bounds are Iceberg's single-value serialisation
 * (already truncated as the mode says); lower/upper NULL: none. */
typedef struct pq_column_metrics {
    int32_t field_id;
    int64_t column_size, value_count, null_count, nan_count; /* -1: not kept: counts inside lists and maps and in mode none (as Iceberg's Java), nan for other than floating point */
    const uint8_t *lower, *upper;
    uint32_t lower_len, upper_len;
} pq_column_metrics;

typedef struct pq_file_info {
    uint64_t size;
    uint64_t rows;
    uint32_t n_split_offsets;
    int64_t *split_offsets;      /* starts of the row groups */
    uint32_t n_columns;
    pq_column_metrics *columns;
} pq_file_info;

typedef struct pq_codec pq_codec;
pq_codec *pq_codec_new(void);    /* compression contexts and scratch of one thread */
void pq_codec_free(pq_codec *c);
size_t pq_codec_bytes(const pq_codec *c);

typedef fz_status (*pq_write_fn)(void *cx, const void *p, size_t n, fz_error *err);
typedef struct pq_writer pq_writer;

/* fields, options and key_values (file metadata) must outlive the writer: they are the table's, shared by its writers.
 * USER for a type that Iceberg cannot hold, a compression level or sizes out of range. */
fz_status pq_writer_new(const pq_field *fields, uint32_t n, const pq_options *opt, const fz_pair *key_values, size_t n_kv,
                        pq_writer **out, fz_error *err) FZ_MUST_USE;
/* Appends rows sel[0..n_sel) of the columns (cols[i] for fields[i]; flat or dictionary form). Pages that fill up are compressed with c and kept;
 * a row group that reaches its target goes out through write. DATA "not-null" naming the column for a NULL in a required one,
 * "parquet.fixed-length" and "parquet.decimal-range" for values that the column's type cannot hold (nothing appended). After any other
 * error, one of write included, the file cannot be continued: free the writer. */
fz_status pq_writer_append(pq_writer *w, col_vec *const *cols, const uint32_t *sel, uint32_t n_sel, pq_codec *c,
                           pq_write_fn write, void *cx, fz_error *err) FZ_MUST_USE;
size_t pq_writer_bytes(const pq_writer *w);      /* memory held now, exact enough for a budget */
uint64_t pq_writer_rows(const pq_writer *w);
uint64_t pq_writer_file_bytes(const pq_writer *w); /* bytes out so far plus what is buffered, compressed estimate: for file size targets */
/* Ends the current row group early and writes it out (memory pressure). */
fz_status pq_writer_flush_row_group(pq_writer *w, pq_codec *c, pq_write_fn write, void *cx, fz_error *err) FZ_MUST_USE;
/* Compresses pages in progress that hold at least min_bytes before their time, and gives their buffers back. Costs a little of the
 * compression; the row group goes on. For memory pressure that is not yet bad enough for the call above. */
fz_status pq_writer_flush_pages(pq_writer *w, size_t min_bytes, pq_codec *c, fz_error *err) FZ_MUST_USE;
/* Writes what is left, indexes and footer. info is allocated in a. */
fz_status pq_writer_finish(pq_writer *w, pq_codec *c, pq_write_fn write, void *cx, fz_arena *a, pq_file_info *info, fz_error *err) FZ_MUST_USE;
void pq_writer_free(pq_writer *w);               /* NULL is allowed */

/* ---- reader: our own files and those of parquet-java, arrow and DuckDB within the listed encodings; anything else is an error that names it ---- */
typedef fz_status (*pq_read_fn)(void *cx, uint64_t from, size_t n, void *out, fz_error *err);
typedef struct pq_reader pq_reader;
/* The file need not be trusted: damage is an error, never a crash. read and cx must stay valid until pq_reader_free. */
fz_status pq_reader_open(uint64_t file_size, pq_read_fn read, void *cx, pq_reader **out, fz_error *err) FZ_MUST_USE;
uint32_t pq_reader_row_groups(const pq_reader *r);
uint64_t pq_reader_rows(const pq_reader *r);
/* Reads row group g into a batch: for each wanted field (matched by field id; missing column: all NULL) one vector of the wanted type.
 * Dictionary pages become dictionary vectors where all pages of the chunk are dictionary encoded. All is allocated in a.
 * USER "parquet.type-mismatch" (int to long, float to double, wider decimals are read; other changes are not), "parquet.int96";
 * FATAL "parquet.corrupt", "parquet.encoding", "parquet.codec", "parquet.invalid-utf8", "parquet.too-large"; what read fails with. */
fz_status pq_reader_read(pq_reader *r, uint32_t g, const pq_field *wanted, uint32_t n, fz_arena *a, col_vec **cols, uint32_t *n_rows, fz_error *err) FZ_MUST_USE;
/* The file's own schema as fields to ask for (field_id -1 where the file has none: files without any ids are matched by name). In a.
 * USER "parquet.unsupported-type" for INT96 and decimals of more than 38 digits. */
fz_status pq_reader_fields(const pq_reader *r, fz_arena *a, pq_field **fields, uint32_t *n, fz_error *err) FZ_MUST_USE;
void pq_reader_free(pq_reader *r);               /* NULL is allowed */
#endif
