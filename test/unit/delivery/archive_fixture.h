/* What the tests of the archive share: columns id BIGINT, msg STRING, at TIMESTAMP_LTZ(3), tags ROW<a, b>; deliveries over mem://; objects read back. */
#ifndef ARCHIVE_FIXTURE_H
#define ARCHIVE_FIXTURE_H
#include "unit.h"
#include "delivery/archive_int.h"
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

static const col_schema *schema_of(fz_arena *a) {
    static const char *const names[] = {"id", "msg", "at"};
    col_field *f = FZ_ANEWN(a, col_field, 3);
    const col_type *types[] = {col_simple(COL_BIGINT, true), col_string(true), col_sized(a, COL_TIMESTAMP_LTZ, 3, 0, true)};
    for (int i = 0; i < 3; i++) f[i] = (col_field){names[i], types[i], NULL};
    col_schema *s = FZ_ANEW(a, col_schema);
    *s = (col_schema){3, f};
    return s;
}

/* n rows from id `first`; every fifth has no msg; as_dict: msg is a dictionary. */
static col_vec **rows_of(fz_arena *a, const col_schema *s, int64_t first, uint32_t n, bool as_dict) {
    col_vec **cols = FZ_ANEWN(a, col_vec *, 3);
    col_builder *id = col_builder_new(a, s->fields[0].type), *msg = col_builder_new(a, s->fields[1].type), *at = col_builder_new(a, s->fields[2].type);
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "line\n\"%lld\"", (long long)((first + i) % 7));
        col_add_i64(id, first + i);
        if ((first + i) % 5 == 4) col_add_null(msg);
        else col_add_bytes(msg, text, (size_t)len);
        col_add_i64(at, 1789000000000000 + (first + i) * 1000);
    }
    cols[0] = col_builder_finish(id);
    cols[1] = col_builder_finish(msg);
    cols[2] = col_builder_finish(at);
    if (!as_dict) return cols;
    col_builder *dict = col_builder_new(a, s->fields[1].type);
    col_vec *flat = cols[1];
    for (int k = 0; k < 7; k++) {
        char text[64];
        col_add_bytes(dict, text, (size_t)snprintf(text, sizeof text, "line\n\"%d\"", k));
    }
    col_vec *d = col_vec_dict(a, col_builder_finish(dict), n);
    for (uint32_t i = 0; i < n; i++) d->idx[i] = col_is_null(flat, i) ? 0 : (uint32_t)((first + i) % 7);
    uint8_t *valid = col_vec_mask(a, d);
    for (uint32_t i = 0; i < n; i++) valid[i] = !col_is_null(flat, i);
    cols[1] = d;
    return cols;
}

static void want_line(fz_buf *b, int64_t id) {
    int64_t ms = 1789000000000 + id;
    if (id % 5 == 4) fz_buf_printf(b, "{\"id\":%lld,\"at\":\"2026-09-10 00:26:%02lld.%03lldZ\"}\n", (long long)id, (long long)(ms / 1000 % 60), (long long)(ms % 1000));
    else fz_buf_printf(b, "{\"id\":%lld,\"msg\":\"line\\n\\\"%lld\\\"\",\"at\":\"2026-09-10 00:26:%02lld.%03lldZ\"}\n", (long long)id, (long long)(id % 7), (long long)(ms / 1000 % 60), (long long)(ms % 1000));
}

static void unzip(const fz_buf *in, fz_buf *out) {
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t got, used;
    fz_buf_reserve(out, 64u << 20);
    assert_int_equal(libdeflate_gzip_decompress_ex(d, in->data, in->len, out->data, out->cap, &used, &got), LIBDEFLATE_SUCCESS);
    assert_int_equal(used, in->len); /* one member */
    out->len = got;
    libdeflate_free_decompressor(d);
}
#endif
