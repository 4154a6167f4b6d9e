/* The doctor: could this job run, and if not, which layer is wrong?
 *
 * What it does: walks the layers that a job stands on in the order in which one rests on the other (script, settings, region, credentials, identity, endpoints,
 * Kafka, catalog, Lake Formation, database, table, objects, positions), asks each one question, and says what was asked, what came back and what to do.
 * What it does not do: it makes no catalog, database or table, moves no position and reads no record but the one before a position; the only thing that it writes are
 * small probe objects, which it removes.
 *
 * Invariants
 *  1. A step whose ground has failed is skipped, and names the step that did: one trouble makes one code red.
 *  2. A refusal (403) and an absence (404) are different answers with different advice.
 *  3. No secret stands in a report.
 * Threads: one at a time.
 */
#ifndef OPS_DOCTOR_H
#define OPS_DOCTOR_H
#include "catalog/catalog.h"
#include "conf/conf.h"
#include "ops/ops.h"
#include "sql/sql.h"

/* ---- what a job needs: made from a script, without side effects ---- */

typedef struct ops_need_catalog {
    const char *name;
    const fz_pair *options;      /* of CREATE CATALOG */
    size_t n_options;
    const char *bucket;          /* a table bucket by the name that the account gives it ("s3tablescatalog/bucket"): its ARN is known with the identity; else NULL */
    sql_pos pos;
} ops_need_catalog;

typedef struct ops_need_database {
    uint32_t catalog;            /* index; so below */
    const char *name;
    bool made;                   /* the script makes it when it is missing */
    sql_pos pos;
} ops_need_database;

typedef struct ops_need_table {
    uint32_t catalog, database;
    const char *name, *text;     /* text: catalog.database.name */
    bool written, read;
    bool made;                   /* the script makes it when it is missing */
    const col_schema *declared;  /* what CREATE TABLE says, as Iceberg keeps it; NULL: nothing, or LIKE */
    const char *location;        /* of CREATE TABLE; NULL: the catalog's choice */
    sql_pos pos;
} ops_need_table;

typedef struct ops_need_insert {
    uint32_t table;
    uint32_t statement;          /* INSERTs of one statement set have the same number */
    const char *pipeline;
    const conf *settings;        /* as they stand at the statement */
    const col_schema *query;     /* what the query gives; NULL: it reads tables that have yet to be looked at */
    uint32_t n_columns;
    const char *const *columns;  /* INSERT INTO t (a, b); 0: all of the table's */
    const sql_stmt *stmt;
    sql_pos pos;
} ops_need_insert;

typedef struct ops_need_delivery {
    const sql_table *target;     /* a table of a connector that can be written to */
    const conf *settings;
    sql_pos pos;
} ops_need_delivery;

typedef struct ops_need_source { const sql_plan *scan; } ops_need_source; /* a SCAN of a connector's table */

typedef struct ops_plan {
    fz_arena *arena;
    const conf *settings;        /* at the script's end */
    uint32_t n_catalogs, n_databases, n_tables, n_inserts, n_deliveries, n_sources, n_notes;
    ops_need_catalog *catalogs;
    ops_need_database *databases;
    ops_need_table *tables;
    ops_need_insert *inserts;
    ops_need_delivery *deliveries; /* INSERTs into targets that are no tables of a catalog */
    ops_need_source *sources;
    const char **notes;          /* "would be created", "is not executed" */
    uint32_t n_statements;       /* that the script holds */
    /* Binds an INSERT against the table as it is. The plan lives in a; sql is filled with what goes with it. */
    fz_status (*bind)(void *cx, const ops_need_insert *in, const cat_table *target, fz_arena *a, sql_plan **out, sql_settings *sql, fz_error *err);
    /* Says what a table that an INSERT reads looks like, before bind. */
    fz_status (*know)(void *cx, const ops_need_table *t, const cat_table *loaded, fz_error *err);
    void *cx;
} ops_plan;

/* ---- the examination ---- */

typedef enum { OPS_STEP_OK, OPS_STEP_WARN, OPS_STEP_FAIL, OPS_STEP_SKIPPED } ops_step_status;

typedef struct ops_doctor_options {
    ops_format format;
    const char *script;          /* name, for the report */
    const char *config;          /* file of settings, or NULL */
} ops_doctor_options;

/* Examines, and appends the report to out. *sound: the job could run. */
void ops_doctor(const ops_plan *p, const ops_doctor_options *o, fz_buf *out, bool *sound);
/* The report of a script (code "doctor.script") or of settings ("doctor.settings") that are wrong by themselves: nothing else can be asked. */
void ops_doctor_refuse(const char *code, const fz_error *why, const ops_doctor_options *o, fz_buf *out);

/* All codes, in the order in which they are asked, for the reference page; ends with a NULL code. */
typedef struct ops_doctor_code { const char *code, *what, *advice; } ops_doctor_code;
const ops_doctor_code *ops_doctor_codes(void);
#endif
