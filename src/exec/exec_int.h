/* The inside of the exec room: what a kernel sees, and the tables that kernels stand in.
 *
 * A kernel is a plain loop over c->n rows of flat vectors:
 *
 *     void k_upper(ex_call *c) {
 *         for (uint32_t i = 0; i < c->n; i++)
 *             if (ex_live(c, i)) { fz_sv s = ex_sv(c, 0, i); ...; ex_put(c, i, p, len); }
 *     }
 *
 * Invariants
 *  1. arg[k] is flat. A constant argument has one row (step[k] == 0), so a kernel reads row ex_ix(c, k, i), by the readers below. Where
 *     every argument is constant n is 1.
 *  2. For a strict kernel (SQL_KERNELS) rows with a NULL argument are not live and come out as NULL; a kernel leaves rows alone that are not live.
 *     A kernel that is not strict sees every row (live == NULL) and asks ex_is_null.
 *  3. out has c->type. Fixed width: data is zeroed, the kernel stores out->i64[i] and so on. Text and bytes: ex_put, rows in ascending order; rows
 *     left out become NULL. Nested kinds: the kernel replaces c->out.
 *  4. A row that cannot be evaluated: ex_fail_row, and go on with the next one. Under TRY_CAST it becomes NULL instead.
 *  5. Dictionaries, selections, constant folding and lazy branches are the frame's business: a kernel never sees them.
 *  6. slot is this call site's memory in this state (one thread): NULL at first; what it points to is allocated in `keep`, which lives as long as the
 *     state. For compiled patterns, time zones and the like.
 */
#ifndef EX_EXEC_INT_H
#define EX_EXEC_INT_H
#include "exec/exec.h"
#include "sql/sql_fn.h"

#define EX_MAX_ARGS 64 /* of the fixed part below; longer calls are allocated */

typedef struct ex_error_row { uint32_t row; const char *code, *message, *expr; } ex_error_row;
typedef struct ex_errors { uint32_t n, cap; ex_error_row *v; } ex_errors;

typedef struct ex_call {
    uint32_t n;
    uint32_t n_args;
    const col_vec *const *arg;
    const uint32_t *step;      /* 0: constant, 1: one value a row */
    const col_type *type;      /* of the result */
    const sql_fn *fn;          /* NULL for casts */
    const uint8_t *live;       /* or NULL: all rows */
    col_vec *out;
    fz_arena *a;               /* the batch's */
    fz_arena *keep;            /* the state's */
    void **slot;
    const char *time_zone;     /* table.local-time-zone */
    int64_t now_us;            /* the same for all calls of one batch */
    bool try_cast;
    const char *expr;          /* source text of the call, for rejects */
    /* private to call.c */
    ex_errors *errors;
    size_t text_cap, text_len;
    uint32_t text_next;
} ex_call;

typedef void (*ex_kernel)(ex_call *c);

static inline bool ex_live(const ex_call *c, uint32_t i) { return !c->live || c->live[i]; }
static inline uint32_t ex_ix(const ex_call *c, uint32_t k, uint32_t i) { return c->step[k] ? i : 0; }
static inline bool ex_is_null(const ex_call *c, uint32_t k, uint32_t i) { return col_is_null(c->arg[k], ex_ix(c, k, i)); }
static inline fz_sv ex_sv(const ex_call *c, uint32_t k, uint32_t i) {
    const col_vec *v = c->arg[k];
    uint32_t j = ex_ix(c, k, i);
    return (fz_sv){v->bytes + v->off[j], v->off[j + 1] - v->off[j]};
}
static inline int32_t ex_i32(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->i32[ex_ix(c, k, i)]; }
static inline int64_t ex_i64(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->i64[ex_ix(c, k, i)]; }
static inline double ex_f64(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->f64[ex_ix(c, k, i)]; }
static inline float ex_f32(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->f32[ex_ix(c, k, i)]; }
static inline col_i128 ex_dec(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->i128[ex_ix(c, k, i)]; }
static inline uint8_t ex_bool(const ex_call *c, uint32_t k, uint32_t i) { return c->arg[k]->u8[ex_ix(c, k, i)]; }
/* Any of the integer kinds (TINYINT..BIGINT), DATE, TIME, TIMESTAMP*, INTERVAL_*. */
static inline int64_t ex_int(const ex_call *c, uint32_t k, uint32_t i) {
    const col_vec *v = c->arg[k];
    uint32_t j = ex_ix(c, k, i);
    return col_width(v->type->kind) == 8 ? v->i64[j] : v->i32[j];
}
static inline col_kind ex_kind(const ex_call *c, uint32_t k) { return c->arg[k]->type->kind; }

/* Result of row i: bytes of a text or binary value (copied); NULL; failed. */
void ex_put(ex_call *c, uint32_t i, const void *p, size_t n);
/* Room for at most n bytes of row i; ex_put_end says how many were used. */
char *ex_put_begin(ex_call *c, uint32_t i, size_t n);
void ex_put_end(ex_call *c, uint32_t i, size_t used);
void ex_put_null(ex_call *c, uint32_t i);
/* Stable code ("cast.failed", "arithmetic.divide-by-zero", ...) and a one-line message. */
void ex_fail_row(ex_call *c, uint32_t i, const char *code, const char *fmt, ...) FZ_PRINTF(4, 5);

/* Kernels by number. Each file of kernels exports one table that ends with SQL_K_NONE; kernel.c joins them. */
typedef struct ex_kernel_entry { sql_kernel id; ex_kernel run; } ex_kernel_entry;
extern const ex_kernel_entry ex_kernels_temporal[]; /* fn_temporal.c */
extern const ex_kernel_entry ex_kernels_logic[];    /* fn_logic.c */
extern const ex_kernel_entry ex_kernels_number[];   /* fn_number.c */
extern const ex_kernel_entry ex_kernels_math[];     /* fn_math.c */
extern const ex_kernel_entry ex_kernels_text[];     /* fn_text.c */
extern const ex_kernel_entry ex_kernels_search[];   /* fn_search.c */
extern const ex_kernel_entry ex_kernels_nested[];   /* fn_nested.c */
extern const ex_kernel_entry ex_kernels_printf[];   /* fn_printf.c */
ex_kernel ex_kernel_of(sql_kernel id);

/* Casts. A cast kernel has one argument and reads the source type from arg[0]->type, the target from c->type; the row is not NULL (strict). To CHAR and
 * VARCHAR it writes the whole text: padding and cutting to the length is a step of its own (cast.c). It may trust that the target's
 * precision and scale are those of c->type.
 *   fn_temporal.c has: every cast from or to DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ and intervals (text included), and text to each numeric kind;
 *   cast.c has the rest. Each gives NULL for pairs that it does not have. */
ex_kernel ex_cast_temporal(col_kind from, col_kind to);
ex_kernel ex_cast_basic(col_kind from, col_kind to);
ex_kernel ex_cast_of(const col_type *from, const col_type *to);
#endif
