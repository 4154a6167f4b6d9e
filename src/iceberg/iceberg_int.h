/* What the files of this room share and nobody outside sees. */
#ifndef ICE_INT_H
#define ICE_INT_H
#include "iceberg/iceberg.h"

#define ICE_MAX_TYPE_DEPTH 100     /* nesting of types in a schema that is read */
#define ICE_TARGET_MANIFEST (8LL << 20)

/* ---- JSON (ice_json.c): members of an object, with errors that name them. what: "snapshot", for messages; code: "iceberg.metadata" ---- */
typedef struct ice_src { const char *what; fz_error *err; } ice_src;
fz_status ice_json_i64(ice_src x, const json_t *o, const char *key, int64_t *out) FZ_MUST_USE;                      /* required */
fz_status ice_json_opt_i64(ice_src x, const json_t *o, const char *key, int64_t dflt, int64_t *out) FZ_MUST_USE;     /* absent or null: dflt */
fz_status ice_json_i32(ice_src x, const json_t *o, const char *key, int32_t *out) FZ_MUST_USE;
fz_status ice_json_opt_i32(ice_src x, const json_t *o, const char *key, int32_t dflt, int32_t *out) FZ_MUST_USE;
fz_status ice_json_str(ice_src x, fz_arena *a, const json_t *o, const char *key, const char **out) FZ_MUST_USE;
fz_status ice_json_opt_str(ice_src x, fz_arena *a, const json_t *o, const char *key, const char **out) FZ_MUST_USE; /* absent: NULL */
fz_status ice_json_bool(ice_src x, const json_t *o, const char *key, bool dflt, bool *out) FZ_MUST_USE;
fz_status ice_json_array(ice_src x, const json_t *o, const char *key, const json_t **out) FZ_MUST_USE;              /* required */
fz_status ice_json_opt_array(ice_src x, const json_t *o, const char *key, const json_t **out) FZ_MUST_USE;          /* absent: NULL */
/* String members of an object as pairs; other members that are scalars by their JSON text. */
void ice_json_pairs(fz_arena *a, const json_t *o, const fz_pair **out, uint32_t *n);
char *ice_json_text(fz_arena *a, const json_t *j);
/* A jansson string that keeps bytes which are no UTF-8 out (they become U+FFFD), so that it is never NULL. */
json_t *ice_json_string(const char *s);
/* json_object_set_new that cannot fail: object and value are never NULL here. */
void ice_json_set(json_t *o, const char *key, json_t *v);
void ice_json_add(json_t *array, json_t *v);
/* Bytes -> tree, "iceberg.metadata" when it is no JSON. */
fz_status ice_json_load(const void *p, size_t n, json_t **out, fz_error *err) FZ_MUST_USE;

/* ---- types (ice_type.c) ---- */
const ice_type *ice_type_sized(fz_arena *a, ice_kind k, int32_t precision, int32_t scale);
const ice_type *ice_type_list(fz_arena *a, int32_t id, bool required, const ice_type *element);
const ice_type *ice_type_map(fz_arena *a, int32_t key_id, const ice_type *key, int32_t value_id, bool required, const ice_type *value);
static inline bool ice_is_nested(ice_kind k) { return k == ICE_STRUCT || k == ICE_LIST || k == ICE_MAP; }
static inline bool ice_has_bytes(int k) { return k == ICE_STRING || k == ICE_UUID || k == ICE_FIXED || k == ICE_BINARY; }
int ice_decimal_bytes(int precision); /* length of the Avro fixed of a decimal */

/* ---- sort orders, properties of JSON (ice_spec.c) ---- */
fz_status ice_sort_order_parse(fz_arena *a, const json_t *j, ice_sort_order **out, fz_error *err) FZ_MUST_USE;
fz_status ice_check_fixed(const ice_spec_field *f, const ice_type *source, fz_error *err) FZ_MUST_USE; /* USER for identity of a fixed type */
json_t *ice_sort_order_json(const ice_sort_order *o);

/* ---- metadata (ice_metadata.c) ---- */
/* Takes root over (freed on failure too) and reads it. */
fz_status ice_metadata_from_json(json_t *root, ice_metadata **out, fz_error *err) FZ_MUST_USE;
json_t *ice_snapshot_json(const ice_snapshot *s);

/* ---- append (ice_merge.c) ---- */
/* Manifest writing of one commit: names, store, what was written so far. */
typedef struct ice_commit {
    fz_arena *a;
    const ice_metadata *base;
    const ice_append *ap;
    const ice_io *io;
    uint32_t next_manifest;
    const char **written;
    uint32_t n_written, cap_written;
    uint32_t n_merged;
} ice_commit;
typedef struct ice_manifests { ice_manifest_file *v; uint32_t n, cap; } ice_manifests; /* arena of the commit */
void ice_manifests_add(fz_arena *a, ice_manifests *l, const ice_manifest_file *m);
fz_status ice_commit_write(ice_commit *c, const char *location, const fz_buf *b, fz_error *err) FZ_MUST_USE;
/* Ends a manifest, writes it under the next name and appends its entry. */
fz_status ice_commit_manifest(ice_commit *c, ice_manifest_writer *w, ice_manifests *out, fz_error *err) FZ_MUST_USE;
ice_avro_codec ice_commit_codec(const ice_metadata *m);
/* Java's ManifestMergeManager over data manifests (the new ones first). */
fz_status ice_merge_manifests(ice_commit *c, const ice_manifests *in, ice_manifests *out, fz_error *err) FZ_MUST_USE;
#endif
