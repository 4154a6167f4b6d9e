/* The Iceberg table spec (v2), pure: schema, partition spec, manifest, manifest list, metadata, snapshot, changes.
 *
 * What it does: types and field ids, transforms, partition tuples and paths, metrics modes, Avro manifests and manifest lists, metadata.json,
 *   requirements and updates in the REST shape, and what an append has to write.
 * What it does not do: no I/O (ice_io is the caller's), no clock, no randomness (both come in as arguments), no catalogs, no Parquet.
 *
 * Invariants
 *  1. Metadata is immutable once parsed or made: a change gives a new ice_metadata. Unknown JSON fields and properties live on in it.
 *  2. What is read from a file is hostile until checked: every length is checked against the bytes at hand; errors are "iceberg.avro",
 *     "iceberg.manifest", "iceberg.metadata" (class FATAL: damaged file).
 *  3. All memory that functions return lies in the arena that was passed (or in the metadata's own), strings are NUL-terminated.
 *  4. Bounds and text are ordered as unsigned bytes; floating point as Java compares (-0.0 < 0.0), NaN never is a bound.
 *  5. A location is used as it stands, apart from trailing slashes, which are cut off before a name is joined.
 * Threads: none of its own. An ice_metadata may be read by many threads (nothing in it changes; do not touch `root`'s reference counts);
 *   everything else belongs to one thread at a time.
 * Spec sections ("Appendix D") are those of https://iceberg.apache.org/spec/.
 */
#ifndef ICE_ICEBERG_H
#define ICE_ICEBERG_H
#include "col/col.h"
#include <jansson.h>

#define ICE_NONE (-1) /* "no snapshot", "unknown count", "sequence number not assigned yet" */

/* ================================================ types and schemas (Schemas and Data Types) ================================================ */

typedef enum {
    ICE_BOOLEAN, ICE_INT, ICE_LONG, ICE_FLOAT, ICE_DOUBLE, ICE_DECIMAL, ICE_DATE, ICE_TIME, ICE_TIMESTAMP, ICE_TIMESTAMPTZ,
    ICE_STRING, ICE_UUID, ICE_FIXED, ICE_BINARY, ICE_STRUCT, ICE_LIST, ICE_MAP,
    ICE_OTHER /* a type of a later version (timestamp_ns, variant, ...), kept by its text, never written or read */
} ice_kind;

typedef struct ice_type ice_type;
typedef struct ice_field {
    int32_t id;
    bool required;
    const char *name;
    const ice_type *type;
    const char *doc;                              /* or NULL */
    const char *initial_default, *write_default;  /* JSON text, or NULL */
} ice_field;
struct ice_type {
    ice_kind kind;
    int32_t precision;        /* DECIMAL: precision; FIXED: length */
    int32_t scale;            /* DECIMAL */
    uint32_t n_fields;        /* STRUCT; LIST: 1 ("element"); MAP: 2 ("key", "value") */
    const ice_field *fields;
    const char *text;         /* OTHER: the JSON of the type */
};
typedef struct ice_schema {
    int32_t schema_id;
    uint32_t n_fields;
    const ice_field *fields;
    uint32_t n_identifier;    /* identifier field ids (PRIMARY KEY) */
    const int32_t *identifier;
} ice_schema;

/* Static types without parameters (not DECIMAL, FIXED, STRUCT, LIST, MAP, OTHER). */
const ice_type *ice_type_simple(ice_kind k);
/* "decimal(10, 2)", "fixed[4]", "list<string>": the spec's text for primitives, Java's for nested ones. Appends. */
void ice_type_text(fz_buf *b, const ice_type *t);
bool ice_type_eq(const ice_type *a, const ice_type *b); /* with ids, names and nullability of nested fields */

/* Flink's type -> Iceberg's (FlinkTypeToType), nested ids are *next_id and up, in Java's order; next_id is moved.
 * USER "iceberg.type" naming the type when Iceberg v2 cannot hold it (INTERVAL, NULL, TIMESTAMP(7..9)). */
fz_status ice_type_from_col(fz_arena *a, const col_type *t, int32_t *next_id, const ice_type **out, fz_error *err) FZ_MUST_USE;
/* Iceberg's -> Flink's (TypeToFlinkType): uuid BINARY(16), fixed BINARY(n), time TIME(0), timestamp TIMESTAMP(6). */
fz_status ice_type_to_col(fz_arena *a, const ice_type *t, bool nullable, const col_type **out, fz_error *err) FZ_MUST_USE;

/* A schema for CREATE TABLE: schema id 0, fresh ids as Java's createTable gives them (top level first, then nested, level by level).
 * pk: names of PRIMARY KEY columns (become required and identifier fields). USER for a column that is not there, a type that does not fit, a doubled name. */
fz_status ice_schema_from_cols(fz_arena *a, const col_schema *s, const char *const *pk, uint32_t n_pk, ice_schema **out, fz_error *err) FZ_MUST_USE;
fz_status ice_schema_to_cols(fz_arena *a, const ice_schema *s, col_schema **out, fz_error *err) FZ_MUST_USE;
fz_status ice_schema_parse(fz_arena *a, const json_t *j, ice_schema **out, fz_error *err) FZ_MUST_USE;
json_t *ice_schema_json(const ice_schema *s);                              /* new reference */
int32_t ice_schema_highest_id(const ice_schema *s);
const ice_field *ice_schema_field(const ice_schema *s, int32_t id);        /* nested ones too; NULL: not there */
const ice_field *ice_schema_field_named(const ice_schema *s, const char *name); /* full dotted name ("a.b", "arr.element") */
/* Full dotted name of a field ("st.a", "arr.element", "mp.value"); NULL: not there. */
const char *ice_schema_field_name(fz_arena *a, const ice_schema *s, int32_t id);
/* Same fields (ids, names, types, nullability, docs) and identifiers; the schema id is not compared. */
bool ice_schema_eq(const ice_schema *a, const ice_schema *b);

/* ================================================ values (Appendix D: single-value serialization) ================================================ */

/* One primitive value. i: BOOLEAN INT LONG DATE (days) TIME TIMESTAMP TIMESTAMPTZ (microseconds); d: FLOAT DOUBLE;
 * dec: DECIMAL (unscaled); s: STRING UUID FIXED BINARY. */
typedef struct ice_value {
    uint8_t kind;     /* ice_kind */
    bool is_null;
    union { int64_t i; double d; col_i128 dec; fz_sv s; };
} ice_value;

/* Row `row` of a column (either form) as a value; s is a view into the column. TIME: milliseconds become microseconds. */
ice_value ice_value_of(const ice_type *t, const col_vec *v, uint32_t row);
ice_value ice_value_clone(fz_arena *a, ice_value v);
bool ice_value_eq(const ice_value *a, const ice_value *b);      /* NULL equals NULL; floats by bits (NaN equals NaN) */
int ice_value_cmp(const ice_value *a, const ice_value *b);      /* same kind, both not NULL; NaN greatest */
/* Binary single-value form; a NULL value gives p == NULL. */
fz_sv ice_value_encode(fz_arena *a, const ice_type *t, const ice_value *v);
/* The other way; accepts the widths of promoted types (int bytes for long, float bytes for double). s is a view into bytes. */
fz_status ice_value_decode(const ice_type *t, fz_sv bytes, ice_value *out, fz_error *err) FZ_MUST_USE;
/* Orders two serialised bounds of one type. */
fz_status ice_bound_cmp(const ice_type *t, fz_sv a, fz_sv b, int *out, fz_error *err) FZ_MUST_USE;

/* ================================================ partition specs and transforms (Partitioning) ================================================ */

typedef enum {
    ICE_IDENTITY, ICE_BUCKET, ICE_TRUNCATE, ICE_YEAR, ICE_MONTH, ICE_DAY, ICE_HOUR, ICE_VOID,
    ICE_UNKNOWN_TRANSFORM /* kept by its text; a table that has one in its current spec is not written */
} ice_transform_kind;
typedef struct ice_transform {
    ice_transform_kind kind;
    int32_t n;               /* BUCKET: number of buckets; TRUNCATE: width */
    const char *text;        /* "bucket[16]" */
} ice_transform;
typedef struct ice_spec_field {
    int32_t source_id, field_id;
    const char *name;
    ice_transform transform;
} ice_spec_field;
typedef struct ice_spec {
    int32_t spec_id;
    uint32_t n_fields;       /* 0: unpartitioned */
    const ice_spec_field *fields;
} ice_spec;
typedef struct ice_sort_field { int32_t source_id; ice_transform transform; bool descending, nulls_last; } ice_sort_field;
typedef struct ice_sort_order { int32_t order_id; uint32_t n_fields; const ice_sort_field *fields; } ice_sort_order;

/* A term of PARTITIONED BY. transform NULL or "identity": the column itself; else bucket, truncate (with n), year(s), month(s), day(s), date,
 * hour(s), date_hour, void. name NULL: the default name of Java's PartitionSpec.Builder (id_bucket, c_trunc, ts_day, ts_year, ...). */
typedef struct ice_term { const char *column; const char *transform; int32_t n; const char *name; } ice_term;

ice_transform ice_transform_parse(fz_arena *a, const char *text);
/* Type of what a transform gives; NULL when it cannot be applied to the source type. UNKNOWN gives string. */
const ice_type *ice_transform_result(const ice_transform *t, const ice_type *source);
/* Spec id 0, field ids from 1000. USER "iceberg.partition" for a missing column, a transform that does not fit its type, a doubled or clashing name,
 * and the identity of a fixed type (BINARY(n)), whose manifests no single encoding makes readable for all engines. */
fz_status ice_spec_build(fz_arena *a, const ice_schema *s, const ice_term *terms, uint32_t n, ice_spec **out, fz_error *err) FZ_MUST_USE;
/* j: the spec's object, or (v1) the bare array of fields with spec_id 0. */
fz_status ice_spec_parse(fz_arena *a, const json_t *j, ice_spec **out, fz_error *err) FZ_MUST_USE;
json_t *ice_spec_json(const ice_spec *s);                                   /* new reference */
int32_t ice_spec_highest_field_id(const ice_spec *s);                       /* 999 when there is none */
/* Types of the tuple, n_fields entries; NULL where the source column is no longer in the schema. */
const ice_type **ice_spec_types(fz_arena *a, const ice_spec *spec, const ice_schema *s);

/* Murmur3 x86 32 with seed 0 and the bucket hash of a value (Appendix B). */
uint32_t ice_murmur3(const void *p, size_t n);
uint32_t ice_bucket_hash(const ice_value *v);
/* A transform over one value (s may be a view into v's bytes). */
ice_value ice_transform_value(const ice_transform *t, const ice_type *source, const ice_value *v);
/* Over a column. The result has the col_type that ice_type_to_col gives for the result type (nullable); a dictionary stays a dictionary
 * (only its entries are computed); identity gives v itself. USER "iceberg.transform" for unknown transforms. */
fz_status ice_transform_apply(fz_arena *a, const ice_transform *t, const ice_type *source, col_vec *v, col_vec **out, fz_error *err) FZ_MUST_USE;
/* All fields of a spec over a batch's columns (cols[i] for s->fields[i]; sources nested in structs are found): out[0..spec->n_fields). */
fz_status ice_spec_apply(fz_arena *a, const ice_schema *s, const ice_spec *spec, col_vec *const *cols, col_vec **out, fz_error *err) FZ_MUST_USE;

/* One value per field of a spec. */
typedef struct ice_tuple { uint32_t n; const ice_value *v; } ice_tuple;
/* Row `row` of what ice_spec_apply gave, copied into a. types: of ice_spec_types. */
ice_tuple ice_tuple_of(fz_arena *a, const ice_type *const *types, col_vec *const *vecs, uint32_t n, uint32_t row);
ice_tuple ice_tuple_clone(fz_arena *a, ice_tuple t);
bool ice_tuple_eq(ice_tuple a, ice_tuple b);
uint64_t ice_tuple_hash(ice_tuple t);
/* "dt=2026-09-16/host=web+1%2F..%2F%C3%A9*%7E" (PartitionSpec.partitionToPath); "" for an unpartitioned spec. */
char *ice_tuple_path(fz_arena *a, const ice_spec *spec, const ice_type *const *types, ice_tuple t);
/* Transform.toHumanString: "null", "2026-09-16", "2026-09-16-12", base64 for bytes, ... Appends. type: the tuple's type of the field. */
void ice_value_human(fz_buf *b, const ice_transform *t, const ice_type *type, const ice_value *v);
/* java.net.URLEncoder (UTF-8): blank becomes +, letters digits . - * _ stay. Appends. */
void ice_url_encode(fz_buf *b, fz_sv s);

/* ================================================ data files, manifests, manifest lists (Manifests) ================================================ */

/* Maps by column id. v == NULL: the map is absent (null); n may be 0 with v set: an empty map. */
typedef struct ice_count { int32_t id; int64_t n; } ice_count;
typedef struct ice_counts { uint32_t n; const ice_count *v; } ice_counts;
typedef struct ice_bound { int32_t id; fz_sv v; } ice_bound;
typedef struct ice_bounds { uint32_t n; const ice_bound *v; } ice_bounds;

typedef enum { ICE_DATA, ICE_POSITION_DELETES, ICE_EQUALITY_DELETES } ice_content;
typedef struct ice_data_file {
    ice_content content;
    const char *path;            /* full location */
    const char *format;          /* "PARQUET" */
    int32_t spec_id;
    ice_tuple partition;
    int64_t record_count, file_size;
    ice_counts column_sizes, value_counts, null_counts, nan_counts;
    ice_bounds lower, upper;
    fz_sv key_metadata;          /* p == NULL: none (so for all views below) */
    uint32_t n_split_offsets;
    const int64_t *split_offsets; /* NULL: absent */
    uint32_t n_equality_ids;
    const int32_t *equality_ids;
    int32_t sort_order_id;       /* ICE_NONE: absent */
    const char *referenced_data_file; /* or NULL */
} ice_data_file;

typedef enum { ICE_EXISTING, ICE_ADDED, ICE_DELETED } ice_entry_status;
typedef struct ice_entry {
    ice_entry_status status;
    int64_t snapshot_id;         /* ICE_NONE: null (to be inherited) */
    int64_t sequence;            /* data sequence number; ICE_NONE: null */
    int64_t file_sequence;
    ice_data_file file;
} ice_entry;

/* Partition field summary of a manifest. */
typedef struct ice_summary { bool contains_null; int8_t contains_nan; /* ICE_NONE: absent */ fz_sv lower, upper; } ice_summary;
/* An entry of a manifest list. Counts are ICE_NONE where a v1 list has none. */
typedef struct ice_manifest_file {
    const char *path;
    int64_t length;
    int32_t spec_id;
    int32_t content;             /* 0 data, 1 deletes */
    int64_t sequence, min_sequence; /* ICE_NONE: to be assigned by the commit */
    int64_t added_snapshot_id;
    int32_t added_files, existing_files, deleted_files;
    int64_t added_rows, existing_rows, deleted_rows;
    uint32_t n_partitions;
    const ice_summary *partitions; /* NULL: absent */
    fz_sv key_metadata;
} ice_manifest_file;
typedef struct ice_manifest_list { uint32_t n; const ice_manifest_file *v; } ice_manifest_list;

typedef enum { ICE_AVRO_NULL, ICE_AVRO_DEFLATE, ICE_AVRO_SNAPPY, ICE_AVRO_ZSTD } ice_avro_codec;

/* Manifest writer: one spec, format version 2. Bytes are held in memory. schema, spec and types must outlive it. */
typedef struct ice_manifest_writer ice_manifest_writer;
ice_manifest_writer *ice_manifest_writer_new(const ice_schema *schema, const ice_spec *spec, const ice_type *const *types,
                                             int32_t content, int64_t snapshot_id, ice_avro_codec codec);
fz_status ice_manifest_writer_add(ice_manifest_writer *w, const ice_entry *e, fz_error *err) FZ_MUST_USE;
size_t ice_manifest_writer_bytes(const ice_manifest_writer *w); /* size so far (the open block estimated): for target sizes */
uint32_t ice_manifest_writer_entries(const ice_manifest_writer *w);
/* The whole file into out; file (in a): everything but path, added_snapshot_id = the writer's snapshot, sequence ICE_NONE. Frees w in any case. */
fz_status ice_manifest_writer_finish(ice_manifest_writer *w, fz_arena *a, fz_buf *out, ice_manifest_file *file, fz_error *err) FZ_MUST_USE;
void ice_manifest_writer_free(ice_manifest_writer *w);           /* NULL is allowed */

/* Manifest reader: v1 and v2 (and the known fields of v3), any writer: fields by id, by name where ids are missing, unions in either order,
 * unknown fields skipped, codecs null, deflate, snappy, zstandard. bytes must outlive the reader. file: the entry of the manifest list, whose
 * spec id, snapshot id and sequence number are inherited (Sequence Number Inheritance); NULL: nothing is inherited, spec id from the header.
 * spec and types: the manifest's spec and its ice_metadata_spec_types (the tuple then has the spec's order and types); both NULL: order and
 * types of the file's own Avro schema. */
typedef struct ice_manifest_reader ice_manifest_reader;
fz_status ice_manifest_reader_open(const void *bytes, size_t n, const ice_manifest_file *file, const ice_spec *spec, const ice_type *const *types,
                                   ice_manifest_reader **out, fz_error *err) FZ_MUST_USE;
/* The next entry, its memory in a. *more false: the end, *e untouched. */
fz_status ice_manifest_reader_next(ice_manifest_reader *r, fz_arena *a, ice_entry *e, bool *more, fz_error *err) FZ_MUST_USE;
const char *ice_manifest_reader_header(const ice_manifest_reader *r, const char *key); /* Avro file metadata ("partition-spec-id"); NULL: none */
void ice_manifest_reader_close(ice_manifest_reader *r);          /* NULL is allowed */
/* All entries at once. */
fz_status ice_manifest_decode(fz_arena *a, const void *bytes, size_t n, const ice_manifest_file *file, const ice_spec *spec, const ice_type *const *types,
                              const ice_entry **out, uint32_t *n_out, fz_error *err) FZ_MUST_USE;

/* Manifest list of a snapshot, version 2: ICE_NONE sequence numbers become `sequence`. parent ICE_NONE: none. */
fz_status ice_manifest_list_encode(const ice_manifest_list *l, int64_t snapshot_id, int64_t parent_id, int64_t sequence, ice_avro_codec codec,
                                   fz_buf *out, fz_error *err) FZ_MUST_USE;
fz_status ice_manifest_list_decode(fz_arena *a, const void *bytes, size_t n, ice_manifest_list *out, fz_error *err) FZ_MUST_USE;

/* ================================================ table metadata (Table Metadata Fields) ================================================ */

typedef struct ice_snapshot {
    int64_t id, parent_id;       /* parent ICE_NONE: none */
    int64_t sequence, timestamp_ms;
    int32_t schema_id;           /* ICE_NONE: absent */
    const char *manifest_list;   /* NULL: a v1 snapshot with the manifests below */
    uint32_t n_manifests;
    const char *const *manifests;
    const char *operation;       /* "append", or NULL */
    uint32_t n_summary;
    const fz_pair *summary;      /* with operation; use fz_pair_get */
} ice_snapshot;
typedef struct ice_ref { const char *name; int64_t snapshot_id; bool is_tag; } ice_ref;
typedef struct ice_log { int64_t timestamp_ms; int64_t snapshot_id; /* snapshot log */ const char *location; /* metadata log */ } ice_log;

typedef struct ice_metadata {
    fz_arena *arena;             /* owns all below */
    const json_t *root;          /* the whole document, unknown fields too */
    int32_t format_version;
    const char *uuid;            /* NULL: a v1 table without one */
    const char *location;        /* without trailing slash */
    int64_t last_sequence_number, last_updated_ms;
    int32_t last_column_id, last_partition_id;
    int32_t current_schema_id, default_spec_id, default_sort_order_id;
    uint32_t n_schemas;
    const ice_schema *const *schemas;
    uint32_t n_specs;
    const ice_spec *const *specs;
    uint32_t n_sort_orders;
    const ice_sort_order *const *sort_orders;
    const ice_schema *schema;    /* current */
    const ice_spec *spec;        /* default */
    const ice_sort_order *sort_order; /* default */
    uint32_t n_properties;
    const fz_pair *properties;
    int64_t current_snapshot_id; /* ICE_NONE: none */
    uint32_t n_snapshots;
    const ice_snapshot *snapshots; /* in the order of the file */
    uint32_t n_refs;
    const ice_ref *refs;         /* "main" is among them whenever there is a current snapshot */
    uint32_t n_snapshot_log, n_metadata_log;
    const ice_log *snapshot_log, *metadata_log;
    const uint32_t *by_id;       /* private: snapshots sorted by id */
} ice_metadata;

/* Parses metadata.json (gzip is recognised by its magic). FATAL "iceberg.metadata" when damaged, USER "iceberg.format-version" above 3. */
fz_status ice_metadata_parse(const void *bytes, size_t n, ice_metadata **out, fz_error *err) FZ_MUST_USE;
void ice_metadata_free(ice_metadata *m);                          /* NULL is allowed */
/* The bytes of the file: JSON, gzip when write.metadata.compression-codec says so. Appends. */
fz_status ice_metadata_encode(const ice_metadata *m, fz_buf *out, fz_error *err) FZ_MUST_USE;
/* First metadata of CREATE TABLE, as Java's newTableMetadata: format-version out of the properties (2; others refused), spec and order may be NULL,
 * write.parquet.compression-codec = zstd is persisted unless given. Field ids are used as they stand (ice_schema_from_cols). */
fz_status ice_metadata_new(const char *location, const ice_schema *s, const ice_spec *spec, const ice_sort_order *order, const fz_pair *props, uint32_t n_props,
                           const char *uuid, int64_t now_ms, ice_metadata **out, fz_error *err) FZ_MUST_USE;
/* May this program append to the table? USER: "iceberg.format-version" (1: upgrade first; 3), "iceberg.partition" (unknown transform, lost source
 * column), "iceberg.type" (type of a later version), "iceberg.property" (write.location-provider.impl and other refused properties). */
fz_status ice_metadata_writable(const ice_metadata *m, fz_error *err) FZ_MUST_USE;

const ice_schema *ice_metadata_schema(const ice_metadata *m, int32_t schema_id);       /* NULL: not there (so for those below) */
const ice_spec *ice_metadata_spec(const ice_metadata *m, int32_t spec_id);
const ice_snapshot *ice_metadata_snapshot(const ice_metadata *m, int64_t id);
const ice_snapshot *ice_metadata_current(const ice_metadata *m);
const ice_ref *ice_metadata_ref(const ice_metadata *m, const char *name);
/* Tuple types of any spec of the table: the source column is looked up in the current schema, then in older ones. */
const ice_type **ice_metadata_spec_types(fz_arena *a, const ice_metadata *m, const ice_spec *spec);
const char *ice_property(const ice_metadata *m, const char *key, const char *dflt);
int64_t ice_property_i64(const ice_metadata *m, const char *key, int64_t dflt);        /* dflt when it is no number, as with Java's PropertyUtil a malformed value never is written */
bool ice_property_bool(const ice_metadata *m, const char *key, bool dflt);

/* Lineage. The parent of s: NULL with *cut false at the first snapshot of the table, NULL with *cut true when the parent is no longer listed
 * (expired), or none is named although s is not the table's first (PyIceberg's expiry takes the parent's id away with the parent). Walk: for (s = ice_metadata_current(m); s; s = ice_snapshot_parent(m, s, &cut)). */
const ice_snapshot *ice_snapshot_parent(const ice_metadata *m, const ice_snapshot *s, bool *cut);
bool ice_snapshot_is_ancestor(const ice_metadata *m, int64_t ancestor_id, int64_t of_id); /* of itself too; false when the lineage is cut before */

/* ================================================ changes (REST spec: TableRequirement, TableUpdate) ================================================ */

/* Both are JSON arrays in the REST spec's shape, so that a REST catalog sends them as they are. The makers below append. */
typedef struct ice_changes { json_t *requirements, *updates; } ice_changes;
ice_changes ice_changes_new(void);
void ice_changes_free(ice_changes *c);

void ice_assert_create(ice_changes *c);
void ice_assert_uuid(ice_changes *c, const char *uuid);
void ice_assert_ref(ice_changes *c, const char *ref, int64_t snapshot_id);             /* ICE_NONE: the ref must not exist */
/* which: "current-schema-id", "default-spec-id", "default-sort-order-id", "last-assigned-field-id", "last-assigned-partition-id". */
void ice_assert_id(ice_changes *c, const char *which, int32_t id);

void ice_update_uuid(ice_changes *c, const char *uuid);
void ice_update_format_version(ice_changes *c, int32_t version);
void ice_update_add_schema(ice_changes *c, const ice_schema *s);
void ice_update_current_schema(ice_changes *c, int32_t schema_id);                     /* -1: the one just added (so below) */
void ice_update_add_spec(ice_changes *c, const ice_spec *s);
void ice_update_default_spec(ice_changes *c, int32_t spec_id);
void ice_update_add_sort_order(ice_changes *c, const ice_sort_order *o);               /* NULL: unsorted */
void ice_update_default_sort_order(ice_changes *c, int32_t order_id);
void ice_update_add_snapshot(ice_changes *c, const ice_snapshot *s);
void ice_update_ref(ice_changes *c, const char *ref, int64_t snapshot_id);             /* a branch */
void ice_update_remove_ref(ice_changes *c, const char *ref);
void ice_update_remove_snapshots(ice_changes *c, const int64_t *ids, uint32_t n);
void ice_update_set_properties(ice_changes *c, const fz_pair *props, uint32_t n);
void ice_update_remove_properties(ice_changes *c, const char *const *keys, uint32_t n);
void ice_update_location(ice_changes *c, const char *location);

/* CONFLICT "iceberg.requirement" naming the requirement, what was wanted and what is there. base NULL: the table does not exist.
 * An unknown requirement is FATAL. */
fz_status ice_requirements_check(const ice_metadata *base, const ice_changes *c, fz_error *err) FZ_MUST_USE;

typedef struct ice_applied {
    uint32_t n_dropped;          /* metadata files that left the metadata log; delete them after the commit when delete_dropped */
    const char *const *dropped;  /* in the new metadata's arena */
    bool delete_dropped;         /* write.metadata.delete-after-commit.enabled */
    int64_t clock_behind_ms;     /* how far now_ms lies before the base's last-updated-ms; warn when > ICE_CLOCK_TOLERANCE_MS */
} ice_applied;
#define ICE_CLOCK_TOLERANCE_MS 60000

/* base + updates -> new metadata (requirements are not looked at). previous: location of base's file for the metadata log, or NULL. last-updated-ms
 * never goes back: with a clock behind the table it is the last one + 1 ms. base NULL: a new table (assign-uuid, set-location, add-schema ... give all).
 * info may be NULL. CONFLICT for updates that base no longer allows (a sequence number that is taken), USER for those that never fit, FATAL for unknown ones. */
fz_status ice_metadata_apply(const ice_metadata *base, const ice_changes *c, int64_t now_ms, const char *previous,
                             ice_metadata **out, ice_applied *info, fz_error *err) FZ_MUST_USE;

/* ================================================ append (Java's MergeAppend) ================================================ */

/* The caller's store. read appends the whole object to out; write must fail when the object cannot be made durable. */
typedef struct ice_io {
    void *cx;
    fz_status (*read)(void *cx, const char *location, fz_buf *out, fz_error *err);
    fz_status (*write)(void *cx, const char *location, const void *p, size_t n, fz_error *err);
} ice_io;

typedef struct ice_append {
    const ice_data_file *files;        /* of specs that the table has; may be none: an empty snapshot */
    uint32_t n_files;
    const fz_pair *summary;            /* extra pairs of the snapshot summary; never override what is computed */
    uint32_t n_summary;
    const fz_pair *properties;         /* table properties to set in the same commit (the mirror of positions) */
    uint32_t n_properties;
    const char *branch;                /* NULL: main */
    int64_t snapshot_id;               /* random, positive, not in the table; stays the same over attempts */
    const char *uuid;                  /* of this commit, in file names; stays the same over attempts */
    uint32_t attempt;                  /* 1, 2, ...: in the manifest list's name */
    uint32_t next_manifest;            /* number in the next manifest's name; after a failed attempt: its result's next_manifest */
    const ice_manifest_list *reuse;    /* manifests of `files` that an earlier attempt has written (result's new_manifests), or NULL */
    const ice_manifest_list *current;  /* the branch's manifest list if the caller has it decoded, or NULL: read through io */
    int64_t now_ms;
} ice_append;

typedef struct ice_append_result {
    ice_changes changes;               /* asserts uuid, ref, current schema, default spec; adds the snapshot, moves the ref, sets properties. Caller frees. */
    ice_snapshot snapshot;
    ice_manifest_list new_manifests;   /* of the files appended, sequence still ICE_NONE: `reuse` of the next attempt */
    uint32_t next_manifest;
    uint32_t n_written;                /* locations written by this call, in order (also those that a merge made superfluous) */
    const char *const *written;
    uint32_t n_unused;                 /* manifests of this commit that its list does not name (merged away): delete after success */
    const char *const *unused;
    uint32_t n_merged;                 /* manifests that were merged into others */
    int64_t clock_behind_ms;
} ice_append_result;

/* Writes manifests and manifest list through io and says what to commit. Memory in a. On failure result->written still names what was written
 * (for the caller to delete, since nothing can refer to it). */
fz_status ice_append_build(fz_arena *a, const ice_metadata *base, const ice_append *ap, const ice_io *io, ice_append_result *result, fz_error *err) FZ_MUST_USE;

/* The manifests of a snapshot (manifest list, or v1's list of manifests: then with path only, counts ICE_NONE, spec id 0). */
fz_status ice_snapshot_manifests(fz_arena *a, const ice_snapshot *s, const ice_io *io, ice_manifest_list *out, fz_error *err) FZ_MUST_USE;

/* ================================================ names and locations ================================================ */

/* Copy without trailing slashes ("s3://b/t/" -> "s3://b/t"), but those of "scheme://". */
char *ice_location_trim(fz_arena *a, const char *location);
/* write.data.path (then the older keys), else <location>/data; write.metadata.path, else <location>/metadata. */
char *ice_data_location(fz_arena *a, const ice_metadata *m);
char *ice_metadata_dir(fz_arena *a, const ice_metadata *m);
char *ice_manifest_location(fz_arena *a, const ice_metadata *m, const char *uuid, uint32_t n);                              /* <uuid>-m0.avro */
char *ice_manifest_list_location(fz_arena *a, const ice_metadata *m, int64_t snapshot_id, uint32_t attempt, const char *uuid); /* snap-<id>-1-<uuid>.avro */
char *ice_metadata_location(fz_arena *a, const ice_metadata *m, int32_t version, const char *uuid);                         /* 00001-<uuid>.metadata.json */
/* "00012-<uuid>.metadata.json" and "v12.metadata.json" (also .gz forms) -> 12; other names -> -1. */
int32_t ice_metadata_version_of(const char *location);
/* "00000-3-<operation>-00017.parquet": partition id (writer), task id, uuid of the job's run, number of the file. */
char *ice_data_file_name(fz_arena *a, uint32_t partition_id, uint32_t task_id, const char *operation, uint32_t n, const char *extension);
/* Full location of a data file: data location, partition path, name; with write.object-storage.enabled Java's hash directories. path: of
 * ice_tuple_path, "" when unpartitioned. */
char *ice_data_file_location(fz_arena *a, const ice_metadata *m, const char *path, const char *name);

/* ================================================ metrics config and table properties ================================================ */

/* Metrics mode of a leaf: -1 full, 0 none, -2 counts, N > 0 truncate(N) (the coding of pq_field.metrics_truncate).
 * Leaves under a list or map keep counts only (bounds of repeated values mean nothing). */
typedef struct ice_metrics { uint32_t n; const int32_t *ids; const int *modes; } ice_metrics; /* sorted by id */
/* Reads write.metadata.metrics.{default,column.*,max-inferred-column-defaults} for the current schema. A mode that cannot be parsed counts as the default. */
ice_metrics ice_metrics_config(fz_arena *a, const ice_metadata *m);
int ice_metrics_mode(const ice_metrics *c, int32_t field_id);     /* 0 for ids that it does not know */

/* The table properties that are honoured, have no meaning here, or are refused. Ends with a NULL name. */
extern const fz_option ice_table_properties[];
#endif
