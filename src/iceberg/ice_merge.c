/* Manifests of a commit: writing them, and merging small ones. See iceberg.h.
 * Source: ManifestMergeManager, BinPacking.ListPacker and SnapshotProducer of the Java implementation. */
#include "iceberg/iceberg_int.h"

void ice_manifests_add(fz_arena *a, ice_manifests *l, const ice_manifest_file *m) {
    if (l->n == l->cap) {
        uint32_t want = l->cap ? l->cap * 2 : 16;
        l->v = fz_arena_realloc(a, l->v, l->cap * sizeof *l->v, want * sizeof *l->v);
        l->cap = want;
    }
    l->v[l->n++] = *m;
}

ice_avro_codec ice_commit_codec(const ice_metadata *m) {
    const char *v = ice_property(m, "write.avro.compression-codec", "gzip");
    return fz_ieq(v, "zstd") ? ICE_AVRO_ZSTD : fz_ieq(v, "snappy") ? ICE_AVRO_SNAPPY : fz_ieq(v, "uncompressed") ? ICE_AVRO_NULL : ICE_AVRO_DEFLATE;
}

fz_status ice_commit_write(ice_commit *c, const char *location, const fz_buf *b, fz_error *err) {
    /* named before it is written: a write that fails may have left something */
    if (c->n_written == c->cap_written) {
        uint32_t want = c->cap_written ? c->cap_written * 2 : 8;
        c->written = fz_arena_realloc(c->a, c->written, c->cap_written * sizeof *c->written, want * sizeof *c->written);
        c->cap_written = want;
    }
    c->written[c->n_written++] = location;
    return c->io->write(c->io->cx, location, b->data, b->len, err);
}

fz_status ice_commit_manifest(ice_commit *c, ice_manifest_writer *w, ice_manifests *out, fz_error *err) {
    fz_buf b = {0};
    ice_manifest_file f;
    fz_status s = ice_manifest_writer_finish(w, c->a, &b, &f, err);
    if (s == FZ_OK) {
        f.path = ice_manifest_location(c->a, c->base, c->ap->uuid, c->next_manifest++);
        s = ice_commit_write(c, f.path, &b, err);
    }
    if (s == FZ_OK) ice_manifests_add(c->a, out, &f);
    fz_buf_free(&b);
    return s;
}

/* ---- one merge ---- */

/* Entries of other commits become existing ones; what others deleted is left out. */
static fz_status merge_entry(ice_commit *c, ice_manifest_writer *w, ice_entry *e, fz_error *err) {
    bool ours = e->snapshot_id == c->ap->snapshot_id;
    if (e->status == ICE_DELETED && !ours) return FZ_OK;
    if (e->status == ICE_ADDED && !ours) e->status = ICE_EXISTING;
    return ice_manifest_writer_add(w, e, err);
}

static fz_status merge_entries(ice_commit *c, ice_manifest_reader *r, fz_arena *scratch, ice_manifest_writer *w, fz_error *err) {
    for (;;) {
        ice_entry e;
        bool more = false;
        fz_arena_reset(scratch);
        FZ_TRY(ice_manifest_reader_next(r, scratch, &e, &more, err));
        if (!more) return FZ_OK;
        FZ_TRY(merge_entry(c, w, &e, err));
    }
}

static fz_status merge_one(ice_commit *c, const ice_manifest_file *m, const ice_spec *spec, const ice_type *const *types, ice_manifest_writer *w, fz_error *err) {
    fz_buf b = {0};
    ice_manifest_reader *r = NULL;
    fz_arena *scratch = fz_arena_new();
    fz_status s = c->io->read(c->io->cx, m->path, &b, err);
    if (s == FZ_OK) s = ice_manifest_reader_open(b.data, b.len, m, spec, types, &r, err);
    if (s == FZ_OK) s = merge_entries(c, r, scratch, w, err);
    if (s != FZ_OK) (void)fz_context(err, "%s", m->path);
    ice_manifest_reader_close(r);
    fz_arena_free(scratch);
    fz_buf_free(&b);
    return s;
}

/* A spec whose tuples are fully understood: others are carried along as they are. */
static bool rewritable(const ice_spec *spec, const ice_type *const *types) {
    for (uint32_t i = 0; i < spec->n_fields; i++) {
        if (!types[i] || types[i]->kind == ICE_OTHER || ice_is_nested(types[i]->kind)) return false;
        if (spec->fields[i].transform.kind == ICE_UNKNOWN_TRANSFORM || ice_check_fixed(&spec->fields[i], types[i], NULL) != FZ_OK) return false;
    }
    return true;
}

static fz_status merge_bin(ice_commit *c, int32_t spec_id, const ice_manifest_file *bin, uint32_t n, ice_manifests *out, fz_error *err) {
    const ice_spec *spec = ice_metadata_spec(c->base, spec_id);
    const ice_type **types = spec ? ice_metadata_spec_types(c->a, c->base, spec) : NULL;
    if (!spec || !rewritable(spec, types)) {
        for (uint32_t i = 0; i < n; i++) ice_manifests_add(c->a, out, &bin[i]);
        return FZ_OK;
    }
    ice_manifest_writer *w = ice_manifest_writer_new(c->base->schema, spec, types, 0, c->ap->snapshot_id, ice_commit_codec(c->base));
    for (uint32_t i = 0; i < n; i++) {
        fz_status s = merge_one(c, &bin[i], spec, types, w, err);
        if (s != FZ_OK) {
            ice_manifest_writer_free(w);
            return s;
        }
    }
    c->n_merged += n;
    return ice_commit_manifest(c, w, out, err);
}

/* ---- which ---- */

/* Packs from the end, one open bin: sets start[b] to the first manifest of each bin, in order; returns the number of bins. */
static uint32_t pack_end(const ice_manifest_file *m, uint32_t n, int64_t target, uint32_t *start) {
    uint32_t bins = 0, at = n;
    while (at > 0) {
        int64_t weight = m[--at].length;
        while (at > 0 && weight + m[at - 1].length <= target) weight += m[--at].length;
        start[bins++] = at;
    }
    for (uint32_t i = 0; i < bins / 2; i++) {
        uint32_t t = start[i];
        start[i] = start[bins - 1 - i];
        start[bins - 1 - i] = t;
    }
    return bins;
}

/* first: the newest manifest of the whole list; a bin with it waits until it is full enough, others are merged at once. */
static fz_status merge_group(ice_commit *c, const char *first, int32_t spec_id, const ice_manifests *group, ice_manifests *out, fz_error *err) {
    int64_t target = ice_property_i64(c->base, "commit.manifest.target-size-bytes", ICE_TARGET_MANIFEST);
    int64_t least = ice_property_i64(c->base, "commit.manifest.min-count-to-merge", 100);
    uint32_t *start = FZ_ANEWN(c->a, uint32_t, group->n + 1);
    uint32_t bins = pack_end(group->v, group->n, target, start);
    start[bins] = group->n;
    for (uint32_t i = 0; i < bins; i++) {
        const ice_manifest_file *bin = group->v + start[i];
        uint32_t n = start[i + 1] - start[i];
        bool has_first = false;
        for (uint32_t k = 0; k < n; k++) has_first |= bin[k].path == first;
        if (n > 1 && !(has_first && n < least)) FZ_TRY(merge_bin(c, spec_id, bin, n, out, err));
        else
            for (uint32_t k = 0; k < n; k++) ice_manifests_add(c->a, out, &bin[k]);
    }
    return FZ_OK;
}

fz_status ice_merge_manifests(ice_commit *c, const ice_manifests *in, ice_manifests *out, fz_error *err) {
    if (!in->n || !ice_property_bool(c->base, "commit.manifest-merge.enabled", true)) {
        *out = *in;
        return FZ_OK;
    }
    bool *done = FZ_ANEWN(c->a, bool, in->n);
    for (uint32_t left = in->n; left > 0;) {
        int32_t spec_id = INT32_MIN; /* highest first */
        for (uint32_t i = 0; i < in->n; i++)
            if (!done[i] && in->v[i].spec_id > spec_id) spec_id = in->v[i].spec_id;
        ice_manifests group = {0};
        for (uint32_t i = 0; i < in->n; i++) {
            if (done[i] || in->v[i].spec_id != spec_id) continue;
            done[i] = true;
            ice_manifests_add(c->a, &group, &in->v[i]);
        }
        left -= group.n;
        FZ_TRY(merge_group(c, in->v[0].path, spec_id, &group, out, err));
    }
    return FZ_OK;
}
