/* Opening a file for reading: magic, footer, metadata. */
#include "parquet/pq_read_int.h"

static fz_status read_footer(pq_reader *r, fz_error *err) {
    uint8_t tail[8];
    uint32_t len;
    if (r->file_size < 12) return pq_corrupt(err, "it is shorter than its frame");
    FZ_TRY(r->read(r->cx, r->file_size - 8, 8, tail, err));
    if (memcmp(tail + 4, "PARE", 4) == 0) return fz_fail(err, FZ_USER, "parquet.encrypted", "the Parquet file is encrypted, which is not supported");
    if (memcmp(tail + 4, "PAR1", 4) != 0) return pq_corrupt(err, "it does not end with PAR1");
    memcpy(&len, tail, 4);
    if (len > r->file_size - 12 || len > PQ_MAX_FOOTER) return pq_corrupt(err, "its footer has an impossible length");
    r->footer = fz_malloc((size_t)len + 1);
    FZ_TRY(r->read(r->cx, r->file_size - 8 - len, len, r->footer, err));
    return pq_meta_parse(r, r->footer, len, err);
}
fz_status pq_reader_open(uint64_t file_size, pq_read_fn read, void *cx, pq_reader **out, fz_error *err) {
    pq_reader *r = FZ_NEW(pq_reader);
    r->read = read;
    r->cx = cx;
    r->file_size = file_size;
    r->arena = fz_arena_new();
    r->codec = pq_codec_new();
    fz_status s = read_footer(r, err);
    if (s != FZ_OK) {
        pq_reader_free(r);
        r = NULL;
    }
    *out = r;
    return s;
}
uint32_t pq_reader_row_groups(const pq_reader *r) { return r->n_groups; }
uint64_t pq_reader_rows(const pq_reader *r) { return r->rows; }
void pq_reader_free(pq_reader *r) {
    if (!r) return;
    fz_arena_free(r->arena);
    pq_codec_free(r->codec);
    fz_free(r->footer);
    fz_free(r);
}
