/* Catalogs: who owns the pointer from a table's name to its current metadata.json.
 *
 * What it does: opens catalogs by the options of CREATE CATALOG (sql on SQLite or PostgreSQL, hadoop on a file system), lists, makes and
 * drops namespaces and tables, loads tables, and moves a table's pointer in one atomic step.
 * What it does not do: it writes no manifests and no data, retries nothing, and knows nothing of positions; the caller reads the
 * status of cat_commit and decides.
 *
 * Invariants
 *  1. A pointer moves only from the metadata that the change was built on (compare and swap). What is in a cat_table is one
 *     version, whole: metadata and its location belong together.
 *  2. cat_commit says what it knows:
 *       FZ_OK        applied, and *out is the new version
 *       FZ_CONFLICT  definitely not applied: the pointer has moved, or a requirement does not hold. Load again, decide again.
 *       FZ_RETRY     definitely not applied; the same call may succeed later (disk full, database locked)
 *       FZ_UNKNOWN   may have been applied, now or later. Nothing was deleted and nothing may be. Load again.
 *       FZ_USER, FZ_DATA, FZ_FATAL  definitely not applied, and trying again does not help
 *  3. Nothing is deleted while an outcome is unknown. After a definite failure only the metadata.json that this very call has
 *     written is removed. Old metadata files go (write.metadata.delete-after-commit.enabled) only after a known success.
 *  4. Locations are kept byte for byte, but for trailing slashes, which a new table's location loses.
 * Memory: names and properties live in the arena that is passed; a cat_table is freed by cat_table_free.
 * Threads: a catalog may be used by any number of threads at a time; a cat_table is read-only and may be shared.
 * Errors (code): "catalog.option" (USER; an unknown, missing or wrong option), "catalog.not-in-this-build" (USER),
 *   "catalog.namespace-not-found", "catalog.namespace-exists", "catalog.namespace-not-empty", "catalog.table-not-found",
 *   "catalog.table-exists", "catalog.name" (all USER), "catalog.not-a-catalog" (USER; a file of another program),
 *   "catalog.cannot-open" (USER; no such file, database or schema), "catalog.denied" (USER; login or rights), "catalog.unreachable" (RETRY),
 *   "catalog.locked" (RETRY), "catalog.conflict" (CONFLICT), "catalog.commit-unknown" (UNKNOWN).
 *   Glue and S3 Tables also: "catalog.not-iceberg", "catalog.invalid-input", "catalog.no-version", "catalog.no-table-bucket", "catalog.codec", "catalog.location" (USER),
 *   "catalog.quota" (RETRY at a commit, else USER), "catalog.not-ready", "catalog.federation", "catalog.timeout", "catalog.answer" (RETRY), "catalog.damaged" (FATAL).
 *   REST also: "catalog.rest-request", "catalog.rest-unauthorized", "catalog.rest-forbidden", "catalog.rest-not-found", "catalog.rest-endpoint", "catalog.rest-login",
 *   "catalog.rest-credentials" (USER), "catalog.rest-throttled", "catalog.rest-unavailable", "catalog.rest-login-unavailable", "catalog.rest-answer" (RETRY).
 */
#ifndef CAT_CATALOG_H
#define CAT_CATALOG_H
#include "base/base.h"
#include "fileio/fileio.h"
#include "iceberg/iceberg.h"

typedef struct cat_catalog cat_catalog;

/* A namespace of n levels (Flink: the base-namespace option's levels, then the database). n = 0 is the root. */
typedef struct cat_namespace { uint32_t n; const char *const *level; } cat_namespace;
typedef struct cat_ident { cat_namespace ns; const char *name; } cat_ident;
typedef struct cat_names { uint32_t n; const char **v; } cat_names;

/* What the session's settings say where the catalog's own options are silent; 0 and NULL: the documented defaults. */
typedef struct cat_defaults {
    int64_t busy_timeout_ms;      /* how long a locked catalog is waited for before RETRY (30 s) */
    const char *default_database; /* "default", as in Flink */
} cat_defaults;

/* Opens a catalog. name is that of CREATE CATALOG; o are the options of its WITH, 'type' included. d may be NULL. The SQL catalog's
 * file and tables are made when missing; no namespace is. Options are copied. *out is freed with cat_close. */
fz_status cat_open(const char *name, const fz_pair *o, size_t n, const cat_defaults *d, cat_catalog **out, fz_error *err) FZ_MUST_USE;
/* The same without reaching for the catalog: that is done by the first call that needs it (cat_reach, by all of them), and again by the next one when it has failed. */
fz_status cat_open_later(const char *name, const fz_pair *o, size_t n, const cat_defaults *d, cat_catalog **out, fz_error *err) FZ_MUST_USE;
fz_status cat_reach(cat_catalog *c, fz_error *err) FZ_MUST_USE;
/* Checks the options as cat_open does, and reaches for nothing outside the process. *type (may be NULL): as cat_type, a constant. */
fz_status cat_check(const char *name, const fz_pair *o, size_t n, const char **type, fz_error *err) FZ_MUST_USE;
void cat_close(cat_catalog *c); /* NULL is allowed */
const char *cat_name(const cat_catalog *c);
const char *cat_type(const cat_catalog *c);             /* "sql", "hadoop", "glue", "s3tables", "rest" */
const char *cat_warehouse(const cat_catalog *c);        /* without trailing slashes; NULL: not given (services that know their own) */
const char *cat_default_database(const cat_catalog *c); /* option 'default-database' */
/* Names of options that are known and have no meaning here, as given at cat_open, for the caller's one warning. */
const cat_names *cat_ignored_options(const cat_catalog *c);
/* The options as given, borrowed. */
const fz_pair *cat_given_options(const cat_catalog *c, size_t *n);
/* The table of options (ends with a NULL name), for the reference page. */
const fz_option *cat_options(void);
/* Properties of PostgreSQL's JDBC driver, as options "jdbc.*"; likewise. */
const fz_option *cat_jdbc_options(void);
/* Those of REST catalogs; likewise. */
const fz_option *cat_rest_options(void);

/* Namespace of a Flink database, and the identifier of a table in it: base-namespace levels, then database. table may be NULL. */
cat_ident cat_ident_of(const cat_catalog *c, fz_arena *a, const char *database, const char *table);
/* "a.b.t", for messages. */
const char *cat_ident_text(fz_arena *a, const cat_ident *id);

/* Databases of Flink: the last levels of the children of ns, sorted bytewise. */
fz_status cat_list_namespaces(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err) FZ_MUST_USE;
fz_status cat_namespace_exists(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err) FZ_MUST_USE;
/* props: 'comment', 'location' and free ones; the hadoop catalog takes none (as Iceberg's). "catalog.namespace-exists". */
fz_status cat_create_namespace(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) FZ_MUST_USE;
fz_status cat_drop_namespace(cat_catalog *c, cat_namespace ns, fz_error *err) FZ_MUST_USE; /* it must be empty */
fz_status cat_namespace_properties(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err) FZ_MUST_USE;
fz_status cat_set_namespace_properties(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err) FZ_MUST_USE;

/* Names of the tables of ns, sorted bytewise; views are left out. */
fz_status cat_list_tables(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err) FZ_MUST_USE;
fz_status cat_table_exists(cat_catalog *c, const cat_ident *id, bool *out, fz_error *err) FZ_MUST_USE;
/* Takes the name away. purge: also deletes what the table's snapshots reach (data, manifests, metadata). Without it the SQL and Glue catalogs
 * leave all files; the hadoop catalog's table is its directory, which goes either way (as in Iceberg), and so does what S3 Tables holds. */
fz_status cat_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) FZ_MUST_USE;

/* Properties of a new table: those given, over the catalog's 'table-default.*', under its 'table-override.*'. */
fz_status cat_table_properties(const cat_catalog *c, fz_arena *a, const fz_pair *given, size_t n, fz_pair **out, size_t *n_out, fz_error *err) FZ_MUST_USE;

/* One version of a table. */
typedef struct cat_table {
    fio *io;                     /* the store that its files lie in, with the credentials that count there */
    cat_ident ident;
    const char *metadata_location;
    ice_metadata *metadata;      /* read-only; owns the memory of all of this */
    int64_t version;             /* hadoop: N of vN; sql: N of the file's name, -1 if it has none */
} cat_table;
void cat_table_free(cat_table *t); /* NULL is allowed */

/* The location that a new table of this name gets when none is given: the namespace's property 'location', else the warehouse
 * and the namespace's levels, and the name. "": the catalog decides when the table is made. */
fz_status cat_default_location(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **out, fz_error *err) FZ_MUST_USE;
/* Makes the table with its first metadata (ice_metadata_new), whose location the caller took from cat_default_location or from the
 * user (the hadoop catalog refuses another one than its default). With FZ_OK *out owns `first`; else the caller keeps it.
 * Status as in cat_commit; USER codes namespace-not-found and table-exists. */
fz_status cat_create_table(cat_catalog *c, const cat_ident *id, ice_metadata *first, cat_table **out, fz_error *err) FZ_MUST_USE;
fz_status cat_load_table(cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) FZ_MUST_USE;
/* Checks the requirements on base->metadata, applies the updates (ice_metadata_apply), writes the new metadata.json and swaps the
 * pointer. base is what cat_load_table, cat_create_table or an earlier cat_commit gave; it stays the caller's. Status: invariant 2.
 * *out is set only with FZ_OK. Fault points, in order: commit.metadata, commit.swap, commit.accepted, commit.answered. */
fz_status cat_commit(cat_catalog *c, const cat_table *base, const ice_changes *changes, cat_table **out, fz_error *err) FZ_MUST_USE;

/* ---- what a table was when it was last seen (remembered.c): in dir, a local directory, one small file a table ---- */
/* Kept under the catalog's name and options (but secrets): the table's metadata without its history and without our mirrors. Durable, and replaced as a whole. */
fz_status cat_remember(const char *dir, const cat_catalog *c, const cat_table *t, fz_error *err) FZ_MUST_USE;
/* *out NULL: it is not known, or what is kept is damaged (said in the log). Nothing outside the process but the file is asked. Its store is the catalog's own; its snapshots are missing: it is good for binding and
 * for the shape of rows, never for a commit. */
fz_status cat_recall(const char *dir, const cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) FZ_MUST_USE;
/* Is there something about the table id, about a table of its namespace (name NULL), about any table of the catalog (id NULL)? */
bool cat_remembers(const char *dir, const cat_catalog *c, const cat_ident *id);

/* fileio as the iceberg room wants it (ice_append_build, ice_snapshot_manifests). write replaces. cat_io: for local files and memory. */
ice_io cat_io_of(fio *io);
extern const ice_io cat_io;
#endif
