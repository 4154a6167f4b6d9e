/* The tree that the parser gives: statements, queries, expressions, with positions. Pure data, in the parser's arena.
 *
 * Expressions are few node kinds: operators, special forms and functions are all SQL_X_CALL with an upper-case name, so that one table
 * (the function table) says what exists. Names of special forms:
 *   + - * / % (binary), "-1" "+1" (unary minus, plus), || , = <> < <= > >= , AND OR NOT, IS NULL, IS NOT NULL, IS TRUE, IS NOT TRUE, IS FALSE,
 *   IS NOT FALSE, IS UNKNOWN, IS NOT UNKNOWN, IS DISTINCT FROM, IS NOT DISTINCT FROM, LIKE / NOT LIKE (value, pattern [, escape]),
 *   SIMILAR TO / NOT SIMILAR TO, IN / NOT IN (value, list...), BETWEEN / NOT BETWEEN (value, low, high; [A]SYMMETRIC adds a 4th SYMBOL),
 *   CASE (operand or an SQL_X_NONE, when, then, when, then, ..., else or SQL_X_NONE), ROW, ARRAY, MAP, ITEM (value, index), DOT (value; name in text),
 *   OVERLAPS (4 args), EXTRACT (SYMBOL unit, value), FLOOR/CEIL (value, SYMBOL unit), TIMESTAMPADD/TIMESTAMPDIFF (SYMBOL unit, ...),
 *   TRIM (SYMBOL BOTH|LEADING|TRAILING, characters, value), SUBSTRING (value, from [, for]), POSITION (needle, value), OVERLAY (value, new, from [, for]),
 *   IS JSON / IS NOT JSON (value, SYMBOL VALUE|OBJECT|ARRAY|SCALAR), JSON_VALUE and the other JSON forms (plain args; their clauses as SYMBOLs in order:
 *   "RETURNING" with its type in `type`, "NULL ON EMPTY", "DEFAULT ON ERROR" followed by the default, "WITH WRAPPER", "ABSENT ON NULL", "KEY VALUE" pairs as plain args),
 *   COUNT(*) is COUNT with one SQL_X_STAR argument; `distinct` is set for COUNT(DISTINCT x); `filter` for FILTER (WHERE ...).
 *   Functions without parentheses (CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIME ...) are calls without arguments.
 */
#ifndef SQL_AST_H
#define SQL_AST_H
#include "col/col.h"

typedef struct sql_pos { int line, column; } sql_pos; /* 1-based; columns count code points */
typedef struct sql_name { uint32_t n; const char *part[4]; bool quoted[4]; sql_pos pos; } sql_name; /* catalog.database.object */

typedef enum {
    SQL_X_NONE, SQL_X_STRING, SQL_X_NUMBER /* exact text as written: 1, 1.5, 1e3 */, SQL_X_BINARY /* X'..' decoded */, SQL_X_TRUE, SQL_X_FALSE, SQL_X_NULL,
    SQL_X_DATE, SQL_X_TIME, SQL_X_TIMESTAMP /* literal text in `text` */, SQL_X_INTERVAL /* text, unit in name: "DAY", "DAY TO SECOND", ... */,
    SQL_X_COLUMN /* parts in `name_parts` */, SQL_X_STAR /* * or t.* */, SQL_X_SYMBOL, SQL_X_CALL, SQL_X_CAST, SQL_X_TRY_CAST
} sql_expr_kind;

typedef struct sql_expr sql_expr;
struct sql_expr {
    sql_expr_kind kind;
    sql_pos pos;
    const char *text;      /* literal text (unescaped), symbol */
    uint32_t text_len;     /* strings may hold NUL */
    const char *fn;        /* CALL: upper-case name; INTERVAL: its unit */
    sql_name col;          /* COLUMN; STAR: the qualifier */
    uint32_t n_args;
    sql_expr **args;
    const col_type *type;  /* CAST; INTERVAL precision is not kept */
    bool distinct;
    sql_expr *filter;
    sql_pos end;           /* position just past the expression; source text = script[begin..end) */
    uint32_t src_from, src_to; /* byte range in the statement's text, for messages and default names */
    uint32_t height;       /* of the tree below: at most FZ_MAX_SQL_DEPTH */
};

typedef struct sql_query sql_query;
typedef enum { SQL_FROM_NONE, SQL_FROM_TABLE, SQL_FROM_QUERY, SQL_FROM_VALUES } sql_from_kind;
typedef struct sql_hint { const fz_pair *options; size_t n; } sql_hint; /* table hints: OPTIONS('k'='v') in a comment with + */
typedef struct sql_from {
    sql_from_kind kind;
    sql_name table;
    sql_hint hint;
    sql_query *query;
    uint32_t n_rows, n_cols;  /* VALUES */
    sql_expr **values;        /* row by row */
    const char *alias;        /* or NULL */
    uint32_t n_alias_cols;
    const char **alias_cols;
    sql_pos pos;
} sql_from;
typedef struct sql_item { sql_expr *expr; const char *alias; } sql_item;
typedef struct sql_order { sql_expr *expr; bool desc; int nulls_first; /* -1: default of Flink */ } sql_order;
struct sql_query {
    bool distinct;
    uint32_t n_items; sql_item *items;
    sql_from from;
    sql_expr *where, *having;
    uint32_t n_group; sql_expr **group;
    uint32_t n_order; sql_order *order;
    sql_expr *limit, *offset;
    uint32_t n_with; struct { const char *name; sql_query *query; } *with;
    sql_query *union_all;     /* next branch of UNION ALL, or NULL; ORDER BY and LIMIT of the whole stand in the first */
    sql_pos pos;
};

typedef enum { SQL_COL_PHYSICAL, SQL_COL_METADATA, SQL_COL_COMPUTED } sql_column_kind;
typedef struct sql_column {
    const char *name;
    sql_column_kind kind;
    const col_type *type;      /* NULL for computed */
    const char *metadata_key;  /* METADATA FROM 'x'; the column's name when left out */
    const col_type *metadata_type; /* what the connector gives, filled in by the session; NULL: as declared. A query casts it to the declared type */
    bool is_virtual;
    sql_expr *expr;            /* computed */
    const char *expr_text;     /* its source text */
    const char *comment;
    sql_pos pos;
} sql_column;
typedef struct sql_like { sql_name table; uint32_t n_options; const char **options; /* "INCLUDING ALL", "EXCLUDING OPTIONS", ... */ } sql_like;

typedef enum {
    SQL_S_SET, SQL_S_RESET, SQL_S_CREATE_CATALOG, SQL_S_USE_CATALOG, SQL_S_DROP_CATALOG, SQL_S_CREATE_DATABASE, SQL_S_USE, SQL_S_DROP_DATABASE,
    SQL_S_CREATE_TABLE, SQL_S_DROP_TABLE, SQL_S_CREATE_VIEW, SQL_S_DROP_VIEW, SQL_S_SHOW_CATALOGS, SQL_S_SHOW_DATABASES, SQL_S_SHOW_TABLES,
    SQL_S_SHOW_VIEWS, SQL_S_SHOW_CREATE_TABLE, SQL_S_SHOW_CREATE_VIEW, SQL_S_SHOW_CREATE_CATALOG, SQL_S_SHOW_CURRENT_CATALOG, SQL_S_SHOW_CURRENT_DATABASE, SQL_S_SHOW_FUNCTIONS, SQL_S_DESCRIBE,
    SQL_S_EXPLAIN, SQL_S_INSERT, SQL_S_SELECT, SQL_S_STATEMENT_SET, SQL_S_QUIT, SQL_S_HELP, SQL_S_CLEAR
} sql_stmt_kind;

typedef struct sql_stmt sql_stmt;
struct sql_stmt {
    sql_stmt_kind kind;
    sql_pos pos;
    sql_name name;              /* of the object; target of INSERT; database of SHOW TABLES IN, catalog of SHOW DATABASES IN */
    bool if_exists, if_not_exists, temporary, cascade, is_system;
    const char *key, *value;    /* SET: both NULL lists all */
    uint32_t n_options; fz_pair *options; /* WITH (...) */
    const char *comment;
    uint32_t n_columns; sql_column *columns;
    uint32_t n_pk; const char **pk; bool pk_not_enforced;
    uint32_t n_partition; sql_expr **partition; /* columns, or transforms (bucket(16, id), days(ts)): identifiers and calls */
    const sql_like *like;
    const char *like_pattern;   /* SHOW ... LIKE */
    bool like_negated, like_any_case; /* NOT LIKE, ILIKE */
    sql_hint hint;              /* INSERT INTO t with OPTIONS(...) */
    const char *watermark_column, *watermark_text; /* WATERMARK FOR c AS text: kept for SHOW CREATE TABLE; frazil has no event time */
    sql_pos watermark_pos;
    bool extended;              /* DESCRIBE EXTENDED */
    sql_query *query;           /* SELECT, INSERT, CREATE VIEW, EXPLAIN */
    const char *query_text;     /* CREATE VIEW */
    uint32_t n_view_cols; const char **view_cols;
    uint32_t n_insert_cols; const char **insert_cols; bool overwrite;
    uint32_t n_partition_values; fz_pair *partition_values; /* INSERT ... PARTITION (k = v): refused by the binder unless static */
    uint32_t n_stmts; sql_stmt **stmts; /* STATEMENT SET: INSERTs; EXPLAIN: one */
    const char *text;           /* source text of the statement */
};

/* One statement cut from a script, with the position of its first character. */
typedef struct sql_piece { const char *text; size_t len; sql_pos pos; } sql_piece;
/* Splits a script at semicolons by the rules of Flink's SQL client: quotes, back-quotes, comments (line and block) and statement sets are respected; BOM and CRLF are
 * taken; empty pieces are left out. All in a. USER "sql.syntax" for an unterminated literal or comment, "sql.too-large". */
fz_status sql_split(fz_arena *a, const char *script, size_t n, sql_piece **out, uint32_t *n_out, fz_error *err) FZ_MUST_USE;
/* True if a text typed so far is whole: nothing open (literal, comment, statement set) and its last statement ends with a semicolon. For shells. */
bool sql_complete(const char *text, size_t n);
/* Parses one piece. Positions are those of the whole script. USER "sql.syntax" (line, column, what was expected), "sql.unsupported" naming the feature. */
fz_status sql_parse(fz_arena *a, const sql_piece *piece, sql_stmt **out, fz_error *err) FZ_MUST_USE;
/* Parses a lone expression (computed columns kept as text, tests). */
fz_status sql_parse_expr(fz_arena *a, const char *text, size_t n, sql_expr **out, fz_error *err) FZ_MUST_USE;
/* Parses a lone query (views). */
fz_status sql_parse_query(fz_arena *a, const char *text, size_t n, sql_query **out, fz_error *err) FZ_MUST_USE;
/* Parses Flink's text of a type: "ROW<`a` STRING NOT NULL>", "TIMESTAMP(3)". */
fz_status sql_parse_type(fz_arena *a, const char *text, const col_type **out, fz_error *err) FZ_MUST_USE;
/* Text of an expression, for EXPLAIN and messages. */
void sql_expr_text(fz_buf *b, const sql_expr *e);
/* Name with back-quotes where they are needed: a.`b c`.d */
void sql_name_text(fz_buf *b, const sql_name *n);
/* Appends an identifier, back-quoted always (as Flink's SHOW CREATE does). */
void sql_quote_ident(fz_buf *b, const char *name);
/* Appends a string literal with its quotes. */
void sql_quote_string(fz_buf *b, const char *text);
#endif
