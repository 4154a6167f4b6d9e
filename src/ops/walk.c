/* Walking the entries of manifests, one in memory at a time. */
#include "ops/ops_int.h"

fz_status ops_each_entry(const cat_table *t, const ice_manifest_file *f, ops_entry_fn fn, void *cx, fz_error *err) {
    const ice_metadata *m = t->metadata;
    fz_buf bytes = {0};
    ice_manifest_reader *r = NULL;
    fz_arena *types_arena = fz_arena_new(), *a = fz_arena_new();
    const ice_spec *spec = ice_metadata_spec(m, f->spec_id);
    ice_entry e;
    bool more = true;
    fz_status rc = cat_io.read(t->io, f->path, &bytes, err);
    if (rc == FZ_OK) rc = ice_manifest_reader_open(bytes.data, bytes.len, f, spec, spec ? ice_metadata_spec_types(types_arena, m, spec) : NULL, &r, err);
    while (rc == FZ_OK) {
        fz_arena_reset(a);
        rc = ice_manifest_reader_next(r, a, &e, &more, err);
        if (rc != FZ_OK || !more) break;
        rc = fn(cx, f, &e, err);
    }
    ice_manifest_reader_close(r);
    fz_arena_free(a);
    fz_arena_free(types_arena);
    fz_buf_free(&bytes);
    return rc;
}
