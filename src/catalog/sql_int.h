/* A database as the SQL catalog needs it: text in, text out, transactions, errors with a class. Two drivers: SQLite and PostgreSQL.
 *
 * What a driver promises
 *  1. Parameters are $1, $2 ... in any order, each as often as one likes; all are texts, NULL is SQL's.
 *  2. Writes happen between begin and commit only. A statement that fails there with any status has changed nothing once
 *     sql_rollback has been called, and a statement outside is a read.
 *  3. A connection that broke while nothing was in progress is opened anew inside of begin and of a read.
 *  4. Nothing waits for ever: d->busy_ms for locks, and some seconds for a server that does not answer.
 *  5. RETRY with the code "catalog.serialization" means: the database asks for the same transaction again, now.
 *  6. No text of an error holds a password.
 * Threads: d->lock is held by the caller over a statement or a whole transaction.
 */
#ifndef CAT_SQL_INT_H
#define CAT_SQL_INT_H
#include "catalog/catalog_int.h"
#include <pthread.h>

typedef struct sql_db sql_db;
/* Called with the columns of one row; false: no more rows are wanted. */
typedef bool (*sql_row)(void *cx, const char *const *column);

typedef struct sql_driver {
    const char *see_columns; /* a statement: the names of the columns of iceberg_tables, none when there is no such table; likewise: */
    const char *see_properties;
    /* Goes behind a SELECT that asks what became of a transaction whose COMMIT was not answered: waits until that transaction has
     * ended. NULL: it has ended already, and a plain SELECT tells. */
    const char *and_wait;
    fz_status (*run)(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err);
    fz_status (*begin)(sql_db *d, int64_t wait_ms, fz_error *err);
    fz_status (*commit)(sql_db *d, fz_error *err);
    void (*rollback)(sql_db *d);
    void (*close)(sql_db *d); /* frees d */
} sql_driver;

struct sql_db {
    const sql_driver *driver;
    const char *label;     /* names the database in messages; no secrets */
    int64_t busy_ms;       /* how long a lock is waited for */
    int64_t orphan_ms;     /* the database itself ends a transaction of ours that is not continued after so long */
    bool may_init;         /* missing tables may be made */
    bool has_type;         /* iceberg_tables has the column iceberg_type (schema V1) */
    pthread_mutex_t lock;
};

/* Each opens a connection; sql_open (sql_schema.c) chooses by the URI, checks that it is a catalog, makes or upgrades its tables. */
fz_status sql_sqlite_open(cat_catalog *c, bool may_init, sql_db **out, fz_error *err) FZ_MUST_USE;
fz_status sql_postgres_open(cat_catalog *c, sql_db **out, fz_error *err) FZ_MUST_USE;
fz_status sql_open(cat_catalog *c, sql_db **out, fz_error *err) FZ_MUST_USE;
void sql_close(sql_db *d);

/* One statement. row may be NULL; *changes (may be NULL) gets the number of rows that were changed. */
FZ_MUST_USE static inline fz_status sql_run(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err) {
    return d->driver->run(d, sql, args, n, row, cx, changes, err);
}
#define SQL_ARGS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

/* wait_ms: how long its statements wait for locks. */
FZ_MUST_USE static inline fz_status sql_begin(sql_db *d, int64_t wait_ms, fz_error *err) { return d->driver->begin(d, wait_ms, err); }
/* OK, RETRY or CONFLICT (nothing has happened), or UNKNOWN (ask what is there). Ends the transaction in any case on our side. */
FZ_MUST_USE static inline fz_status sql_commit(sql_db *d, fz_error *err) { return d->driver->commit(d, err); }
static inline void sql_rollback(sql_db *d) { d->driver->rollback(d); }

/* body runs in a transaction of its own, which is made again while the database asks for that and the busy time has not passed. The
 * lock is the caller's. Status of body, of begin or of commit. */
typedef fz_status (*sql_body)(cat_catalog *c, void *cx, fz_error *err);
fz_status sql_transact(cat_catalog *c, sql_body body, void *cx, fz_error *err) FZ_MUST_USE;

#define SQL_WHERE_TABLE " WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3"
#define SQL_IS_TABLE " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
/* The lock is the caller's. wait: inside of a transaction, with the driver's and_wait. */
fz_status sql_has_namespace(cat_catalog *c, const char *ns, bool *out, fz_error *err) FZ_MUST_USE;
fz_status sql_find_row(cat_catalog *c, const cat_ident *id, bool wait, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
/* cat_ops.swap; takes the lock. */
fz_status sql_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
#endif
