/* Operators of bounded queries: each pulls batches from those below it. Private to query.c, aggregate.c, sort.c.
 *
 * Invariants
 *  1. A batch that an operator gives belongs to the caller. Its columns live in its own arena.
 *  2. An operator that has said "end" says it again.
 */
#ifndef EX_QUERY_INT_H
#define EX_QUERY_INT_H
#include "exec/prog_int.h"

typedef struct ex_op ex_op;
struct ex_op {
    ex_query *q;
    const sql_plan *plan;
    uint32_t n_inputs;
    ex_op **inputs;
    fz_status (*next)(ex_op *op, col_batch **out, fz_error *err); /* *out NULL: the end */
    void (*close)(ex_op *op);                                     /* frees cx; NULL: nothing to free */
    void *cx;
    int64_t top;                                                  /* SORT: no more rows than these are asked for; -1: all */
};
struct ex_query {
    fz_arena *a;
    const sql_settings *settings;
    ex_feed feed;
    bool skip_bad_rows;
    uint64_t skipped;
    ex_op *root;
};

/* Several expressions over the batches of an input: the program, its state, and how to run it. */
typedef struct ex_exprs { ex_program *p; ex_state *st; } ex_exprs;
ex_exprs ex_exprs_new(ex_query *q, const sql_plan *input, sql_bound *const *e, uint32_t n); /* NULL entries are left out */
void ex_exprs_free(ex_exprs *x);
/* Runs over a batch; in its arena. Failed rows are an error, or skipped and counted. */
fz_status ex_exprs_run(ex_query *q, ex_exprs *x, col_batch *b, ex_result *out, fz_error *err);

void ex_aggregate_open(ex_op *op);
void ex_sort_open(ex_op *op);
#endif
