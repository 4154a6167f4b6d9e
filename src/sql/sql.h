/* The SQL room: text -> tree (ast.h) -> typed read-only plan. Knows nothing of execution; the function table gives names, type rules and the
 * kernel's number, the kernels stand in exec.
 *
 * Invariants
 *  1. A plan is immutable and may be shared by threads.
 *  2. Every function that Flink 2.0.1 documents stands in the table (sql_functions): known but not available ones give "sql.function-unavailable" naming them.
 *  3. Every error has line and column.
 */
#ifndef SQL_SQL_H
#define SQL_SQL_H
#include "sql/ast.h"

/* A table as the binder sees it. */
typedef enum { SQL_T_CONNECTOR, SQL_T_ICEBERG, SQL_T_VIEW } sql_table_kind;
typedef struct sql_table {
    sql_table_kind kind;
    const char *path;                 /* catalog.database.name, for messages */
    uint32_t n_columns; const sql_column *columns; /* all kinds of columns, in order */
    uint32_t n_options; const fz_pair *options;
    uint32_t n_pk; const char *const *pk;
    const sql_query *view;            /* VIEW */
    uint32_t n_view_cols; const char *const *view_cols;
    void *handle;                     /* the owner's (session's) */
} sql_table;
typedef struct sql_resolver {
    void *cx;
    /* USER "sql.table-not-found" with suggestions. */
    fz_status (*table)(void *cx, const sql_name *name, const sql_hint *hint, const sql_table **out, fz_error *err);
} sql_resolver;

typedef struct sql_settings {
    const char *time_zone;            /* table.local-time-zone, IANA name or offset */
    int64_t now_us;                   /* CURRENT_TIMESTAMP and kin in bounded queries; 0: per batch */
    bool streaming;                   /* execution.runtime-mode */
    bool legacy_cast;                 /* table.exec.legacy-cast-behaviour: refused when enabled */
} sql_settings;

typedef struct sql_fn sql_fn;         /* a row of the function table: sql_fn.h */
typedef enum { SQL_B_COLUMN, SQL_B_LITERAL, SQL_B_CALL, SQL_B_CAST, SQL_B_TRY_CAST } sql_bound_kind;
typedef struct sql_bound sql_bound;
struct sql_bound {
    sql_bound_kind kind;
    const col_type *type;
    sql_pos pos;
    const char *text;                 /* source text, for dead letters and messages */
    uint32_t column;                  /* COLUMN: index in the input's schema */
    const col_vec *literal;           /* LITERAL: one row */
    const sql_fn *fn;
    uint32_t n_args;
    sql_bound **args;
};

typedef enum { SQL_P_SCAN, SQL_P_VALUES, SQL_P_FILTER, SQL_P_PROJECT, SQL_P_AGGREGATE, SQL_P_SORT, SQL_P_LIMIT, SQL_P_UNION } sql_plan_kind;
typedef struct sql_agg { const sql_fn *fn; bool distinct; sql_bound *arg /* NULL: COUNT(*) */, *filter; const col_type *type; } sql_agg;
typedef struct sql_plan sql_plan;
struct sql_plan {
    sql_plan_kind kind;
    const col_schema *schema;         /* of what comes out; names are EXPR$0... where there is none, as in Flink */
    uint32_t n_inputs; sql_plan **inputs;
    const sql_table *table;           /* SCAN: schema = physical columns of the table, then metadata columns that it declares */
    bool *wanted;                     /* SCAN: by column of schema: used by anything above (projection push-down) */
    uint32_t n_scan_physical;         /* SCAN: how many of schema are physical (the rest metadata; key in scan_metadata[i - n]) */
    const char **scan_metadata;
    sql_bound *predicate;             /* FILTER */
    uint32_t n_exprs; sql_bound **exprs; /* PROJECT; AGGREGATE: group keys; SORT: keys */
    bool *desc, *nulls_first;         /* SORT */
    uint32_t n_aggs; sql_agg *aggs;   /* AGGREGATE: schema = keys, then aggregates */
    int64_t limit, offset;            /* LIMIT (also top-N over SORT); limit -1: none */
    uint32_t n_rows; sql_bound **values; /* VALUES: n_rows x schema->n constant expressions */
};

/* Binds a query. target: NULL, or the columns of an INSERT's target (implicit casts as Flink makes them; USER "sql.type-mismatch" with both types,
 * "sql.column-count"). The plan lives in a. */
fz_status sql_bind_query(fz_arena *a, const sql_query *q, const sql_resolver *r, const sql_settings *s, const col_schema *target, sql_plan **out, fz_error *err) FZ_MUST_USE;
/* Binds INSERT: query + column list against the target; missing nullable columns become NULL ("sql.not-null" if one is required).
 * Values for NOT NULL columns are checked when the plan runs: rows where one is NULL fail with "not-null". */
fz_status sql_bind_insert(fz_arena *a, const sql_stmt *insert, const sql_table *target, const sql_resolver *r, const sql_settings *s, sql_plan **out, fz_error *err) FZ_MUST_USE;
/* INSERT casts a value of `from` into a column of `to` by itself. */
bool sql_can_store(const col_type *from, const col_type *to);
/* Derives the type of a computed column (for DESCRIBE and views of schemas). */
fz_status sql_bind_expr(fz_arena *a, const sql_expr *e, const col_schema *in, const sql_settings *s, sql_bound **out, fz_error *err) FZ_MUST_USE;
void sql_bound_text(fz_buf *b, const sql_bound *e, const col_schema *in);
void sql_plan_text(fz_buf *b, const sql_plan *p); /* EXPLAIN: one line a node, indented */

/* The function table, for docs, SHOW FUNCTIONS and completeness tests. */
typedef struct sql_fn_info { const char *name, *signature, *doc, *group; bool available; } sql_fn_info;
uint32_t sql_functions(const sql_fn_info **out);
#endif
