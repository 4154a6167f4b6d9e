/* The function table: one row a function, from which binding, the reference page, SHOW FUNCTIONS and the completeness test come.
 *
 * Invariants
 *  1. Names are upper case and unique; operators and special forms stand in the table by their names in the tree (ast.h).
 *  2. kernel says what runs; SQL_K_NONE: the function is known but not available (forms of the grammar aside).
 *  3. The kernel numbers are the only bond between this room and the one that executes.
 */
#ifndef SQL_FN_H
#define SQL_FN_H
#include "sql/sql.h"

/* X(id, strict): strict kernels give NULL when an argument is NULL and never see such a row. Special forms (evaluated on the rows that need them) are
 * not strict. "unit" arguments are text literals in upper case: 'YEAR', 'DAY', ... */
#define SQL_KERNELS(X)                                                                                                             \
    /* special forms */                                                                                                            \
    X(AND, 0) X(OR, 0) X(NOT_NULL, 0) /* (value, column name): fails rows that are NULL */ X(CASE, 0) /* when, then, ..., else */ X(COALESCE, 0) X(IS_NULL, 0) X(IS_NOT_NULL, 0)                       \
    /* logic and comparison */                                                                                                     \
    X(NOT, 1) X(IS_TRUE, 0) X(IS_FALSE, 0) X(IS_NOT_TRUE, 0) X(IS_NOT_FALSE, 0)                                                    \
    X(EQ, 1) X(NE, 1) X(LT, 1) X(LE, 1) X(GT, 1) X(GE, 1) X(DISTINCT, 0) X(NOT_DISTINCT, 0) X(IN, 0) X(NOT_IN, 0)                  \
    X(GREATEST, 1) X(LEAST, 1)                                                                                                     \
    /* numbers */                                                                                                                  \
    X(PLUS, 1) X(MINUS, 1) X(TIMES, 1) X(DIVIDE, 1) X(MOD, 1) X(NEG, 1) X(ABS, 1) X(FLOOR, 1) X(CEIL, 1) X(ROUND, 1)                \
    X(TRUNCATE, 1) X(SIGN, 1) X(POWER, 1) X(MATH1, 1) /* function name in the row's `variant` */ X(ATAN2, 1) X(LOG, 1)             \
    X(PI, 1) X(E, 1) X(RAND, 0) X(RAND_INTEGER, 0) X(UUID, 0) X(BIN, 1) X(HEX, 1) X(UNHEX, 1) X(WIDTH_BUCKET, 1)                   \
    /* text */                                                                                                                     \
    X(CONCAT, 1) X(CONCAT_WS, 0) X(SUBSTRING, 1) X(LEFT, 1) X(RIGHT, 1) X(UPPER, 1) X(LOWER, 1) X(INITCAP, 1) X(CHAR_LENGTH, 1)     \
    X(TRIM, 1) X(LTRIM, 1) X(RTRIM, 1) X(BTRIM, 1) X(LPAD, 1) X(RPAD, 1) X(REPEAT, 1) X(REPLACE, 1) X(REVERSE, 1) X(POSITION, 1)    \
    X(LOCATE, 1) X(INSTR, 1) X(OVERLAY, 1) X(SPLIT_INDEX, 1) X(LIKE, 1) X(NOT_LIKE, 1) X(ASCII, 1) X(CHR, 1) X(STARTSWITH, 1)       \
    X(ENDSWITH, 1) X(TRANSLATE, 1) X(ELT, 0) X(IS_ALPHA, 0) X(IS_DIGIT, 0) X(IS_DECIMAL, 0) X(PRINTF, 0) X(OCTET_LENGTH, 1)         \
    /* temporal: fn_temporal.c */                                                                                                  \
    X(TO_TIMESTAMP, 1)      /* (text [, pattern]) */                                                                               \
    X(TO_TIMESTAMP_LTZ, 1)  /* (number [, precision]) or (text [, pattern [, zone]]) */                                            \
    X(TO_DATE, 1)           /* (text [, pattern]) */                                                                               \
    X(UNIX_TIMESTAMP, 1)    /* () or (text [, pattern]) */                                                                         \
    X(FROM_UNIXTIME, 1)     /* (bigint [, pattern]) */                                                                             \
    X(DATE_FORMAT, 1)       /* (timestamp | timestamp_ltz | text, pattern) */                                                      \
    X(EXTRACT, 1)           /* (unit, date | time | timestamp* | interval); YEAR(x) and kin are bound to it too */                 \
    X(FLOOR_TO, 1) X(CEIL_TO, 1)     /* (temporal, unit) */                                                                        \
    X(TIMESTAMPADD, 1)      /* (unit, count, temporal) */                                                                          \
    X(TIMESTAMPDIFF, 1)     /* (unit, from, to) */                                                                                 \
    X(TEMPORAL_PLUS, 1) X(TEMPORAL_MINUS, 1) /* (temporal, interval) */                                                            \
    X(CONVERT_TZ, 1)        /* (text, zone, zone) */                                                                               \
    X(CURRENT_DATE, 1) X(CURRENT_TIME, 1) /* also LOCALTIME */ X(LOCALTIMESTAMP, 1) X(CURRENT_TIMESTAMP, 1) /* also NOW, CURRENT_ROW_TIMESTAMP */ \
    X(OVERLAPS, 1)          /* (start, end | interval, start, end | interval) */                                                   \
    /* nested */                                                                                                                   \
    X(ARRAY, 0) X(MAP, 0) X(ROW, 0) X(ITEM, 0) X(FIELD, 1) X(CARDINALITY, 1)                                                       \
    /* aggregates: no kernels of expressions */                                                                                    \
    X(AGG_COUNT, 0) X(AGG_SUM, 0) X(AGG_SUM0, 0) X(AGG_MIN, 0) X(AGG_MAX, 0) X(AGG_AVG, 0) X(AGG_COUNT_IF, 0) X(AGG_ANY, 0)

typedef enum {
    SQL_K_NONE,
#define X(id, strict) SQL_K_##id,
    SQL_KERNELS(X)
#undef X
    SQL_K_COUNT
} sql_kernel;

/* variant of MATH1 */
typedef enum {
    SQL_MATH_SQRT, SQL_MATH_LN, SQL_MATH_LOG10, SQL_MATH_LOG2, SQL_MATH_EXP, SQL_MATH_SIN, SQL_MATH_SINH, SQL_MATH_COS, SQL_MATH_COSH, SQL_MATH_TAN,
    SQL_MATH_TANH, SQL_MATH_COT, SQL_MATH_ASIN, SQL_MATH_ACOS, SQL_MATH_ATAN, SQL_MATH_DEGREES, SQL_MATH_RADIANS
} sql_math;

/* Type rules by name; bind_rules.c and bind_arith.c have them. A rule gets the bound arguments (it may wrap them in casts) and gives the result's type. */
typedef struct sql_bind sql_bind;
typedef fz_status (*sql_type_rule)(sql_bind *b, sql_bound *call, fz_error *err);

struct sql_fn {
    const char *name;
    const char *signature;  /* as shown to people: "SUBSTRING(string FROM start [FOR length])" */
    const char *doc;
    const char *group;
    sql_kernel kernel;
    int16_t min_args, max_args; /* after parsing; max -1: any number */
    sql_type_rule rule;     /* NULL where kernel is SQL_K_NONE */
    const char *types;      /* of rule_signature: "s l [l] > S", see bind_rules.c; NULL otherwise */
    int16_t variant;        /* meaning is the kernel's */
    bool aggregate;
    bool volatile_;         /* another value for each row: never shared, folded or taken from a dictionary */
    bool form;              /* a form of the grammar that is no call in the tree (CAST, literals): listed, never looked up */
    bool hidden;            /* an operator or an inner form: not listed among functions */
};
extern const sql_fn sql_fn_table[]; /* ends with a NULL name */
const sql_fn *sql_fn_find(const char *name);   /* upper case; NULL: no such function */
const sql_fn *sql_fn_of(sql_kernel k);         /* the first row with this kernel */
const char *sql_fn_nearest(const char *name);  /* for "did you mean", or NULL */
/* Edit distance of two names, case aside; at most `limit`. */
unsigned sql_name_distance(const char *a, const char *b, unsigned limit);
#endif
