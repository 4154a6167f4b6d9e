/* A connection to SQLite as the SQL catalog needs it: text in, text out, transactions, errors with a class. */
#ifndef CAT_SQLITE_INT_H
#define CAT_SQLITE_INT_H
#include "catalog/catalog_int.h"
#include <pthread.h>
#include <sqlite3.h>

typedef struct sql_db {
    sqlite3 *db;
    const char *file;
    pthread_mutex_t lock;  /* held over a statement or a transaction */
    bool has_type;         /* iceberg_tables has the column iceberg_type (schema V1) */
} sql_db;

/* Opens, checks that it is a catalog, makes or upgrades its tables. */
fz_status sql_open(const cat_catalog *c, sql_db **out, fz_error *err) FZ_MUST_USE;
void sql_close(sql_db *d);
/* Fills err from the connection's last error: RETRY for locks and I/O, USER for what is no database, FATAL for the rest. */
fz_status sql_fail(sql_db *d, int rc, const char *what, fz_error *err);

/* One statement whose parameters are args[0..n) (NULL: SQL NULL). row is called for each row and may be NULL; false from it stops.
 * *changes (may be NULL) gets the number of rows that were changed. The lock is the caller's. */
typedef bool (*sql_row)(void *cx, sqlite3_stmt *row);
fz_status sql_run(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err) FZ_MUST_USE;
#define SQL_ARGS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

fz_status sql_begin(sql_db *d, fz_error *err) FZ_MUST_USE;    /* takes the write lock of the file at once */
/* OK, RETRY (nothing has happened), or UNKNOWN (SQLite could not end it: read what is there). Ends the transaction in any case. */
fz_status sql_commit(sql_db *d, fz_error *err) FZ_MUST_USE;
void sql_rollback(sql_db *d);
#endif
