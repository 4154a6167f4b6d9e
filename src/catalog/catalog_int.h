/* Inside of the catalog room: the table of functions that a kind of catalog is, and what they share. */
#ifndef CAT_CATALOG_INT_H
#define CAT_CATALOG_INT_H
#include "catalog/catalog.h"
#include "fileio/fileio.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* What a kind of catalog does. err is never NULL in here; names have been checked, and namespaces exist where that is asked. */
typedef struct cat_ops {
    const char *type;
    fz_status (*open)(cat_catalog *c, fz_error *err);
    void (*close)(cat_catalog *c);
    fz_status (*list_namespaces)(cat_catalog *c, cat_namespace parent, fz_arena *a, cat_names *out, fz_error *err);
    fz_status (*namespace_exists)(cat_catalog *c, cat_namespace ns, bool *out, fz_error *err);
    fz_status (*create_namespace)(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err);
    fz_status (*drop_namespace)(cat_catalog *c, cat_namespace ns, fz_error *err); /* it exists */
    fz_status (*get_properties)(cat_catalog *c, cat_namespace ns, fz_arena *a, fz_pair **out, size_t *n, fz_error *err);
    fz_status (*set_properties)(cat_catalog *c, cat_namespace ns, const fz_pair *props, size_t n, fz_error *err);
    fz_status (*list_tables)(cat_catalog *c, cat_namespace ns, fz_arena *a, cat_names *out, fz_error *err);
    /* Where the table's current metadata is: *location NULL when there is no such table. */
    fz_status (*find)(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err);
    /* Makes m current in place of base (NULL: the table is new). Writes the metadata.json too; *location is where (in a). On a
     * definite failure no file of this call is left. */
    fz_status (*swap)(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err);
    fz_status (*drop_table)(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err); /* after what a purge needs has been read */
    /* Catalogs that write the metadata themselves (or choose its place) have these, or some of them, in place of find and swap, which may then be NULL; exists may be
     * NULL where find is not. Statuses as in catalog.h; names are checked, the fault points commit.metadata and commit.swap are theirs. */
    fz_status (*load)(cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err);       /* USER catalog.table-not-found */
    fz_status (*exists)(cat_catalog *c, const cat_ident *id, bool *out, fz_error *err);
    fz_status (*create)(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err);
    fz_status (*commit)(cat_catalog *c, const cat_table *base, const ice_changes *changes, cat_table **out, fz_error *err);
    bool places_tables;  /* a table's location is the catalog's to choose (cat_default_location gives "") */
    bool purges;         /* drop_table deletes the files itself when asked to */
    bool warehouse_optional;     /* c->warehouse may be NULL */
    const char *database_suffix; /* of a database's directory in the warehouse; NULL: none */
    fz_status (*check_ident)(const cat_catalog *c, const cat_ident *id, fz_error *err);            /* names beyond cat_ident_check; may be NULL. id->name may be NULL */
} cat_ops;
extern const cat_ops cat_sql_ops, cat_hadoop_ops;
extern const cat_ops cat_glue_ops, cat_s3tables_ops, cat_rest_ops;

struct cat_catalog {
    fio *io;                     /* by the catalog's options */
    const cat_ops *ops;
    fz_arena *arena;             /* options, names */
    const char *name, *warehouse, *uri, *default_database;
    const char *catalog_name;    /* of the SQL rows */
    cat_namespace base;          /* option 'base-namespace' */
    const fz_pair *options;
    size_t n_options;
    const fz_pair *effective;    /* the options, with what a server has put under and over them; the last of a name counts */
    size_t n_effective;
    cat_names ignored;
    int64_t busy_timeout_ms;
    void *impl;
    pthread_mutex_t open_lock;
    atomic_bool opened;          /* ops->open has succeeded; impl, warehouse and effective stand from then on */
};

/* options.c */
fz_status cat_options_check(cat_catalog *c, const cat_defaults *d, fz_error *err) FZ_MUST_USE; /* fills c from c->options */
const char *cat_option(const cat_catalog *c, const char *key); /* NULL: not given and no default */
/* File of an SQLite URI in a (or ":memory:"), *is_uri when SQLite itself shall read it as a URI. */
fz_status cat_sqlite_file(fz_arena *a, const char *uri, const char **file, bool *is_uri, fz_error *err) FZ_MUST_USE;

/* names.c */
const char *cat_namespace_text(fz_arena *a, cat_namespace ns);            /* levels joined by dots */
cat_namespace cat_namespace_clone(fz_arena *a, cat_namespace ns);
fz_status cat_namespace_check(cat_namespace ns, fz_error *err) FZ_MUST_USE;
fz_status cat_ident_check(const cat_ident *id, fz_error *err) FZ_MUST_USE;
void cat_names_add(fz_arena *a, cat_names *v, const char *s);             /* copies s */
void cat_names_sort(cat_names *v);                                        /* and drops repeats */

/* table_io.c */
fz_status cat_metadata_read(fio *io, const char *location, ice_metadata **out, fz_error *err) FZ_MUST_USE;
fz_status cat_metadata_write(fio *io, const char *location, const ice_metadata *m, fz_error *err) FZ_MUST_USE; /* put-if-absent */
cat_table *cat_table_make(fio *io, const cat_ident *id, const char *location, ice_metadata *m); /* takes m, and a reference to io */
void cat_delete_quietly(fio *io, const char *location);                      /* logs a failure */
/* Deletes what the table's snapshots reach, then its metadata files. */
void cat_purge(const cat_table *t);
#endif
