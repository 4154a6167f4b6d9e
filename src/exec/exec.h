/* Execution: plans over columns. Expressions are flat steps over whole columns; an expression whose inputs are one dictionary vector (and literals) is evaluated on
 * the dictionary's entries only and keeps the dictionary form: most log columns have few distinct values, so this is where the speed comes from.
 *
 * Invariants
 *  1. A program is read-only and shared; state (scratch, aggregates, caches) is a parallel object of one thread.
 *  2. A row whose evaluation fails is a reject with code, message and the text of the failing expression; others go on. Only rows that a failing expression really
 *     concerns fail: CASE, AND, OR, COALESCE, IF evaluate their branches on the rows that need them, as Flink does; projections are evaluated on rows that passed the filter.
 *  3. Evaluation on a dictionary fails only for rows that use the entry.
 *  4. Columns of a result may be the input's own vectors, or share their idx arrays: results live as long as the batch they came from.
 * Codes of rejects: "cast.failed", "not-null", "arithmetic.divide-by-zero", "arithmetic.range", "like.pattern", "array.index", "text.too-large",
 * "datetime.parse", "datetime.overflow", "datetime.precision", "datetime.unit", "datetime.pattern".
 */
#ifndef EX_EXEC_H
#define EX_EXEC_H
#include "col/col.h"
#include "sql/sql.h"

typedef struct ex_program ex_program; /* a chain SCAN -> (FILTER | PROJECT)* compiled for streaming */
typedef struct ex_state ex_state;

/* Plans with other nodes: USER "sql.unsupported-streaming" naming the node. */
fz_status ex_compile(const sql_plan *p, const sql_settings *s, ex_program **out, fz_error *err) FZ_MUST_USE;
void ex_program_free(ex_program *p);
const sql_plan *ex_program_scan(const ex_program *p); /* the SCAN node */
/* Do both give the same result over the same columns? False where nobody can say, as with RAND(). */
bool ex_program_same(const ex_program *p, const ex_program *q);
ex_state *ex_state_new(const ex_program *p);
void ex_state_free(ex_state *st);

typedef struct ex_result {
    uint32_t n_rows;
    col_vec **cols;        /* of the plan's schema */
    uint32_t *row;         /* output row -> input row, ascending */
    uint32_t n_filtered;   /* rows that a filter dropped */
    uint32_t n_rejected;   /* rows of this call that were appended to rejects */
} ex_result;
/* Runs the program over a batch's columns (in[i] for scan column i; NULL where not wanted). Everything is allocated in a. Rejects: `rec` is the INPUT ROW here; the caller maps it. */
fz_status ex_run(const ex_program *p, ex_state *st, col_vec *const *in, uint32_t n_rows, fz_arena *a, ex_result *out, fz_rejects *rejects, fz_error *err) FZ_MUST_USE;

/* Bounded queries (shell): pulls batches; a failing row is a DATA error (or is skipped and counted when on_error says so). */
typedef struct ex_query ex_query;
typedef struct ex_feed {
    void *cx;
    /* Next batch of a SCAN: columns by scan schema (NULL where not wanted); *n_rows 0: the end. cols live in arena a. */
    fz_status (*next)(void *cx, const sql_plan *scan, fz_arena *a, col_vec ***cols, uint32_t *n_rows, fz_error *err);
} ex_feed;
fz_status ex_query_open(const sql_plan *p, const sql_settings *s, const ex_feed *feed, bool skip_bad_rows, ex_query **out, fz_error *err) FZ_MUST_USE;
/* *out NULL: the end. The caller releases the batch. */
fz_status ex_query_next(ex_query *q, col_batch **out, fz_error *err) FZ_MUST_USE;
uint64_t ex_query_skipped(const ex_query *q);
void ex_query_close(ex_query *q);

/* Text of a value as Flink's CAST(x AS STRING) prints it (NULL is not printed: the caller decides). Appends. */
void ex_value_text(fz_buf *b, const col_vec *v, uint32_t row, const char *time_zone);
/* The same as JSON, for --format json: numbers, booleans as such; timestamps, dates, decimals as text; bytes base64; nested as JSON. */
void ex_value_json(fz_buf *b, const col_vec *v, uint32_t row, const char *time_zone);
#endif
