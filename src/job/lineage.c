/* See lineage.h. */
#include "job/lineage.h"

/* Are files that snapshot `id` added still live in the current snapshot? The manifest list tells for manifests that it wrote itself; merged manifests
 * keep the snapshot id in their entries. */
static fz_status still_live(fz_arena *a, const ice_metadata *m, int64_t id, const ice_io *io, bool *live, fz_error *err) {
    *live = false;
    const ice_snapshot *cur = ice_metadata_current(m);
    if (!cur) return FZ_OK;
    ice_manifest_list list;
    FZ_TRY(ice_snapshot_manifests(a, cur, io, &list, err));
    for (uint32_t i = 0; i < list.n && !*live; i++) *live = list.v[i].content == 0 && list.v[i].added_snapshot_id == id && list.v[i].added_files > 0;
    for (uint32_t i = 0; i < list.n && !*live; i++) {
        const ice_manifest_file *f = &list.v[i];
        if (f->content != 0 || f->existing_files == 0) continue;
        const ice_spec *spec = ice_metadata_spec(m, f->spec_id);
        fz_buf bytes = {0};
        const ice_entry *entries = NULL;
        uint32_t n = 0;
        fz_status rc = io->read(io->cx, f->path, &bytes, err);
        if (rc == FZ_OK) rc = ice_manifest_decode(a, bytes.data, bytes.len, f, spec, spec ? ice_metadata_spec_types(a, m, spec) : NULL, &entries, &n, err);
        for (uint32_t k = 0; rc == FZ_OK && k < n && !*live; k++) *live = entries[k].status != ICE_DELETED && entries[k].snapshot_id == id;
        fz_buf_free(&bytes);
        FZ_TRY(rc);
    }
    return FZ_OK;
}

/* Only what decides is decoded: a lineage may have ten thousand snapshots, each with the positions of all splits. */
static const char *pipeline_of(const ice_snapshot *s) { return fz_pair_get(s->summary, s->n_summary, JOB_KEY_PIPELINE); }
static bool is_of(const ice_snapshot *s, const char *pipeline) { return pipeline_of(s) && strcmp(pipeline_of(s), pipeline) == 0; }

static bool names_object(const job_marks *m, const char *object) {
    for (uint32_t i = 0; i < m->n_replayed; i++)
        if (strcmp(m->replayed[i].object, object) == 0) return true;
    return job_diverted_find(m->diverted, m->n_diverted, object) != NULL;
}
/* Error objects that another pipeline has taken over (frazil.positions = adopt): a commit of it that is newer than the newest one of `pipeline` names them. Theirs is the replay from then on. */
static fz_status drop_taken_over(fz_arena *a, const ice_metadata *m, const char *pipeline, job_marks *marks, fz_error *err) {
    bool cut, found;
    for (const ice_snapshot *s = ice_metadata_current(m); marks->n_diverted && s && !is_of(s, pipeline); s = ice_snapshot_parent(m, s, &cut)) {
        if (!pipeline_of(s) || !(fz_pair_get(s->summary, s->n_summary, JOB_KEY_DIVERTED) || fz_pair_get(s->summary, s->n_summary, JOB_KEY_REPLAYED))) continue;
        job_marks other;
        uint32_t n = 0;
        FZ_TRY(job_marks_decode(a, s->summary, s->n_summary, &other, &found, err));
        for (uint32_t i = 0; i < marks->n_diverted; i++)
            if (!names_object(&other, marks->diverted[i].object)) marks->diverted[n++] = marks->diverted[i];
        marks->n_diverted = n;
    }
    return FZ_OK;
}

/* The lineage was cut before one of ours was met: does the mirror count? */
static fz_status use_mirror(fz_arena *a, const ice_metadata *m, const char *pipeline, const ice_snapshot *last, int64_t lowest_sequence, const ice_io *io,
                            job_lineage *out, fz_error *err) {
    const char *text = ice_property(m, fz_arena_printf(a, JOB_MIRROR_PREFIX "%s", pipeline), NULL);
    if (!text) return FZ_OK; /* it is written with every commit of ours: none was ever made */
    job_mirror mirror;
    FZ_TRY(job_mirror_decode(a, text, &mirror, err));
    bool proven = last->parent_id == mirror.snapshot_id && lowest_sequence > mirror.sequence_number;
    if (!proven && lowest_sequence > mirror.sequence_number) FZ_TRY(still_live(a, m, mirror.snapshot_id, io, &proven, err));
    out->marks = (job_marks){.pipeline = pipeline, .commit_id = "", .n_positions = mirror.n, .positions = mirror.positions, .n_diverted = mirror.n_diverted, .diverted = mirror.diverted,
                             .n_adopted = mirror.n_adopted, .adopted = mirror.adopted, .as_of = mirror.sequence_number};
    out->snapshot_id = mirror.snapshot_id;
    out->from_mirror = true;
    out->found = proven;
    out->unproven = !proven;
    return drop_taken_over(a, m, pipeline, &out->marks, err);
}

fz_status job_lineage_read(fz_arena *a, const ice_metadata *m, const char *pipeline, const char *commit_id, const ice_io *io, job_lineage *out, fz_error *err) {
    *out = (job_lineage){0};
    bool cut = false;
    int64_t lowest = INT64_MAX;
    const ice_snapshot *last = NULL;
    for (const ice_snapshot *s = ice_metadata_current(m); s; s = ice_snapshot_parent(m, s, &cut)) {
        last = s;
        if (s->sequence < lowest) lowest = s->sequence;
        if (!is_of(s, pipeline)) continue;
        if (!out->found) {
            FZ_TRY(job_marks_decode(a, s->summary, s->n_summary, &out->marks, &out->found, err));
            FZ_TRY(drop_taken_over(a, m, pipeline, &out->marks, err));
            out->marks.as_of = s->sequence;
            out->snapshot_id = s->id;
        }
        const char *id = fz_pair_get(s->summary, s->n_summary, JOB_KEY_COMMIT_ID);
        out->commit_seen = commit_id && id && strcmp(id, commit_id) == 0;
        if (!commit_id || out->commit_seen) return FZ_OK; /* else go on: another run of this pipeline may have committed since */
    }
    out->whole = !cut;
    return last && cut && !out->found ? use_mirror(a, m, pipeline, last, lowest, io, out, err) : FZ_OK;
}

static bool met(const job_marks *v, uint32_t n, const char *pipeline) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i].pipeline, pipeline) == 0) return true;
    return false;
}

fz_status job_lineage_others(fz_arena *a, const ice_metadata *m, const char *pipeline, job_marks **out, uint32_t *n, fz_error *err) {
    *out = FZ_ANEWN(a, job_marks, (size_t)m->n_snapshots + m->n_properties + 1);
    *n = 0;
    bool cut = false;
    for (const ice_snapshot *s = ice_metadata_current(m); s; s = ice_snapshot_parent(m, s, &cut)) {
        bool found;
        if (!pipeline_of(s) || is_of(s, pipeline) || met(*out, *n, pipeline_of(s))) continue;
        FZ_TRY(job_marks_decode(a, s->summary, s->n_summary, &(*out)[*n], &found, err));
        FZ_TRY(drop_taken_over(a, m, pipeline_of(s), &(*out)[*n], err));
        (*out)[*n].as_of = s->sequence;
        *n += found;
    }
    for (uint32_t i = 0; cut && i < m->n_properties; i++) {
        const char *key = m->properties[i].key;
        if (!fz_starts(key, JOB_MIRROR_PREFIX)) continue;
        const char *name = key + sizeof JOB_MIRROR_PREFIX - 1;
        if (strcmp(name, pipeline) == 0 || met(*out, *n, name)) continue;
        job_mirror mirror;
        FZ_TRY(job_mirror_decode(a, m->properties[i].value, &mirror, err));
        (*out)[*n] = (job_marks){.pipeline = name, .commit_id = "", .n_positions = mirror.n, .positions = mirror.positions, .n_diverted = mirror.n_diverted, .diverted = mirror.diverted,
                                  .n_adopted = mirror.n_adopted, .adopted = mirror.adopted, .as_of = mirror.sequence_number};
        FZ_TRY(drop_taken_over(a, m, name, &(*out)[(*n)++], err));
    }
    return FZ_OK;
}
