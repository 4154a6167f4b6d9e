/* Programs and their evaluation; private to compile.c, eval.c, forms.c, run.c.
 *
 * A program is a graph of nodes in which equal expressions are one node. It is evaluated lazily in frames:
 *   rows      all rows of the batch, or a selection of a parent frame (what a filter left, the rows of a CASE branch)
 *   domain    the entries of a dictionary: columns that share one idx array form a domain, and a node that reads columns of one domain only
 *             is evaluated on its entries, once a batch; in a frame of rows its value is those entries behind the frame's idx
 *   constant  one row, for nodes that read no column
 * A frame remembers what it has evaluated.
 *
 * Invariants
 *  1. Errors are part of a value: rows (of its frame) that could not be evaluated, in ascending order. They count only for rows that asked.
 *  2. In frames of domains and in the constant one, values are flat; in frames of rows they may be in dictionary form, always without a mask.
 */
#ifndef EX_PROG_INT_H
#define EX_PROG_INT_H
#include "exec/exec_int.h"

enum { EX_FLAT = -1, EX_CONST = -2 }; /* domain of a node or frame; >= 0: of a dictionary */
typedef enum { EX_N_COLUMN, EX_N_LITERAL, EX_N_CALL, EX_N_CAST } ex_node_kind;

typedef struct ex_node {
    ex_node_kind kind;
    sql_kernel k;            /* CALL */
    const sql_fn *fn;
    ex_kernel run;           /* NULL: a special form */
    const col_type *type;
    const char *expr;
    const col_vec *literal;
    uint32_t column;
    uint32_t n_args;
    uint32_t *args;          /* nodes before this one */
    uint64_t hash;
    bool strict, try_cast, can_fail, is_volatile;
} ex_node;

struct ex_program {
    fz_arena *a;
    const sql_plan *scan;    /* SCAN, or another node that feeds rows */
    const col_schema *schema;
    char *time_zone;
    int64_t now_us;          /* 0: the clock */
    ex_node *nodes;
    uint32_t n_nodes, cap_nodes;
    uint32_t *table, table_size; /* node + 1 by hash */
    uint32_t *filters, n_filters;
    uint32_t *outputs, n_outputs, cap_outputs;
    bool *reads;             /* by input column: some node reads it */
};

struct ex_state {
    const ex_program *p;
    fz_arena *keep;
    void **slots;            /* one a node */
};

typedef struct ex_val { col_vec *v; col_vec *flat; ex_errors *errors; } ex_val; /* flat: v decoded, when somebody needed it */

typedef struct ex_frame {
    int32_t dom;             /* EX_FLAT: rows */
    uint32_t n;
    struct ex_frame *parent;
    const uint32_t *sel;     /* rows of parent, ascending */
    ex_val *memo;            /* by node */
    const uint32_t **idx;    /* by domain; rows only */
} ex_frame;

typedef struct ex_domain { const uint32_t *idx; uint32_t n; ex_frame frame; } ex_domain;

typedef struct ex_eval {
    const ex_program *p;
    ex_state *st;
    fz_arena *a;
    col_vec **in;            /* columns, without masks where they are dictionaries */
    int32_t *col_dom, *node_dom;
    ex_domain *dom;
    uint32_t n_dom;
    ex_frame root, constant;
    int64_t now_us;
} ex_eval;

/* compile.c: adds an expression over input columns whose nodes are cols[] (NULL: input columns themselves). */
uint32_t ex_add_expr(ex_program *p, const sql_bound *e, const uint32_t *cols);
ex_program *ex_program_new(const sql_settings *s);
void ex_add_output(ex_program *p, uint32_t node);
void ex_add_filter(ex_program *p, uint32_t node);
void ex_program_seal(ex_program *p);
/* Adds pl's filters and projections down to the node that feeds them (p->scan); gives the nodes of pl's columns. */
uint32_t *ex_compile_chain(ex_program *p, const sql_plan *pl);

/* eval.c */
void ex_eval_open(ex_eval *e, const ex_program *p, ex_state *st, col_vec *const *in, uint32_t n_rows, fz_arena *a);
ex_frame *ex_child(ex_eval *e, ex_frame *parent, const uint32_t *sel, uint32_t n);
ex_val *ex_get(ex_eval *e, ex_frame *f, uint32_t node);
col_vec *ex_get_flat(ex_eval *e, ex_frame *f, uint32_t node);
const uint32_t *ex_frame_idx(ex_eval *e, ex_frame *f, uint32_t dom);
ex_frame *ex_home(ex_eval *e, ex_frame *f, uint32_t node); /* the frame where a node is really evaluated */
/* Errors: sets are ascending by row. */
ex_errors *ex_errors_union(ex_eval *e, ex_errors *x, ex_errors *y);
ex_errors *ex_errors_up(ex_eval *e, ex_errors *x, const uint32_t *sel);              /* rows of a child to rows of its parent */
ex_errors *ex_errors_spread(ex_eval *e, ex_errors *x, const uint32_t *idx, uint32_t n); /* entries to rows */
ex_errors *ex_errors_add(ex_eval *e, ex_errors *x, ex_error_row row);

/* forms.c: AND, OR, CASE, COALESCE, NOT NULL. */
void ex_form(ex_eval *e, ex_frame *f, uint32_t node, ex_val *out);
/* Truth of a node's rows: 0, 1, 2 (unknown). The conjunction of nodes is evaluated only where it is not yet FALSE. */
enum { EX_FALSE, EX_TRUE, EX_UNKNOWN };
typedef struct ex_truth { uint8_t *t; /* NULL: all are TRUE */ ex_errors *errors; } ex_truth;
ex_truth ex_conjunction(ex_eval *e, ex_frame *f, const uint32_t *nodes, uint32_t n);
#endif
