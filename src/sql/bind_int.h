/* The inside of the binder: scopes, casts, type arithmetic. Private to the files bind_*.c, fn_*.c and plan_*.c of this room.
 *
 * Invariants
 *  1. A bound tree is made once and then only read; passes that change one build new nodes.
 *  2. Casts are made only by bind_cast, so that EXPLAIN shows every one of them.
 */
#ifndef SQL_BIND_INT_H
#define SQL_BIND_INT_H
#include "sql/sql_fn.h"

/* A view's or table's columns under a name. */
typedef struct bind_scope {
    const col_schema *schema;
    const char *alias;          /* or NULL */
    const sql_name *table;      /* parts of the table's name, or NULL */
} bind_scope;

typedef struct bind_cte { const char *name; const sql_query *query; const struct bind_cte *outer; } bind_cte;

struct sql_bind {
    fz_arena *a;
    const sql_resolver *resolver;
    const sql_settings *settings;
    const bind_scope *scope;    /* NULL: no columns can be seen */
    const bind_cte *ctes;
    bool aggregates;            /* aggregate calls are allowed here */
    bool inside_aggregate;
    uint32_t depth;
};

/* A call of an aggregate function in a bound tree, until the query's aggregate node is built. */
typedef struct bind_agg_call { sql_bound bound; bool distinct; sql_bound *filter; } bind_agg_call;

/* bind_types.c */
bool bind_is_integer(col_kind k);
bool bind_is_exact(col_kind k);                                   /* integers and DECIMAL */
bool bind_is_numeric(col_kind k);
bool bind_is_interval(col_kind k);
bool bind_is_temporal(col_kind k);                                /* DATE, TIME, TIMESTAMP* */
bool bind_is_atomic(col_kind k);
void bind_as_decimal(const col_type *t, int *precision, int *scale);
const col_type *bind_decimal(fz_arena *a, int precision, int scale, bool nullable); /* cut to 38 as Flink does */
/* Calcite's least restrictive type, or NULL where there is none. Nullable if one is. */
const col_type *bind_common_type(fz_arena *a, const col_type *const *t, uint32_t n);
bool bind_can_cast(const col_type *from, const col_type *to);     /* an explicit CAST exists */
bool bind_can_store(const col_type *from, const col_type *to);    /* INSERT's implicit cast exists */
const char *bind_type_name(fz_arena *a, const col_type *t);

/* bind_lit.c */
sql_bound *bind_node(sql_bind *b, sql_bound_kind kind, const col_type *t, sql_pos pos, const char *text);
sql_bound *bind_literal_of(sql_bind *b, const sql_expr *e, fz_error *err); /* NULL: failed */
sql_bound *bind_text_literal(sql_bind *b, const char *p, size_t n, sql_pos pos);
sql_bound *bind_int_literal(sql_bind *b, int64_t v, sql_pos pos);
sql_bound *bind_bool_literal(sql_bind *b, bool v, sql_pos pos);
sql_bound *bind_null_literal(sql_bind *b, sql_pos pos, const char *text);
bool bind_is_null_literal(const sql_bound *e);
/* The value of a whole-number literal (a cast one too); false if e is none. */
bool bind_int_value(const sql_bound *e, int64_t *out);
/* Wraps e unless it has the type already (nullability aside). The result is nullable as e is. */
sql_bound *bind_cast(sql_bind *b, sql_bound *e, const col_type *t);
sql_bound *bind_call(sql_bind *b, const sql_fn *fn, const col_type *t, sql_bound **args, uint32_t n, const sql_bound *origin);
/* "sql.type-mismatch" at the call: "cannot apply NAME to (T1, T2): ..." */
fz_status bind_mismatch(sql_bind *b, const sql_bound *call, const char *why, fz_error *err);
bool bind_any_nullable(const sql_bound *call);
bool bind_same(const sql_bound *x, const sql_bound *y);           /* structurally equal (positions aside) */

/* bind_expr.c */
fz_status bind_expr(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) FZ_MUST_USE;
fz_status bind_bool(sql_bind *b, const sql_expr *e, const char *what, sql_bound **out, fz_error *err) FZ_MUST_USE;
/* bind_query.c */
fz_status bind_query(sql_bind *b, const sql_query *q, sql_plan **out, fz_error *err) FZ_MUST_USE;
sql_plan *bind_plan_node(fz_arena *a, sql_plan_kind kind, const col_schema *schema, sql_plan *input);
sql_bound *bind_column_ref(sql_bind *b, const col_schema *s, uint32_t i, sql_pos pos);
/* bind_from.c */
fz_status bind_from(sql_bind *b, const sql_from *f, sql_plan **out, bind_scope *scope, fz_error *err) FZ_MUST_USE;
/* bind_select.c: items, ORDER BY, LIMIT. A select list is bound over `in`; keys of ORDER BY are items or hidden expressions. */
typedef struct bind_group bind_group;
typedef struct bind_select {
    sql_plan *in;               /* what the projection reads */
    uint32_t n, cap;            /* items */
    sql_bound **expr;
    const char **name;
    uint32_t n_keys;
    int32_t *key_item;          /* index of an item, or -1 */
    sql_bound **key_expr;       /* where key_item is -1 */
    bool *desc, *nulls_first;
    bind_group *group;          /* NULL: no groups */
} bind_select;
fz_status bind_items(sql_bind *b, const sql_query *q, bind_select *sel, fz_error *err) FZ_MUST_USE;
fz_status bind_order_keys(sql_bind *b, const sql_query *q, bind_select *sel, fz_error *err) FZ_MUST_USE;
/* Projection, DISTINCT, SORT and what drops hidden keys again. */
sql_plan *bind_select_build(sql_bind *b, const sql_query *q, bind_select *sel);
fz_status bind_limit(sql_bind *b, const sql_query *q, sql_plan *in, sql_plan **out, fz_error *err) FZ_MUST_USE;
/* bind_group.c: groups and aggregates. */
bool bind_has_aggregate(const sql_expr *e);
bool bind_is_grouped(const sql_query *q);
fz_status bind_grouped(sql_bind *b, const sql_query *q, sql_plan *in, sql_plan **out, fz_error *err) FZ_MUST_USE;
/* Turns an expression over the groups' input into one over the aggregate node. */
fz_status bind_over_groups(sql_bind *b, bind_group *g, sql_bound *e, sql_bound **out, fz_error *err) FZ_MUST_USE;
sql_plan *bind_project(sql_bind *b, sql_plan *in, uint32_t n, sql_bound **exprs, const char *const *names);
/* plan_wanted.c: marks the scans' columns that anything above uses. */
void plan_mark_wanted(fz_arena *a, sql_plan *root);

/* bind_rules.c: type rules of the function table. */
#define BIND_RULES(X)                                                                                                          \
    X(signature) X(logic) X(is_null) X(compare) X(in) X(between) X(case) X(coalesce) X(if) X(nullif) X(greatest) X(arith)       \
    X(modulo) X(negate) X(plus_sign) X(abs) X(floor) X(round) X(like) X(concat) X(trim) X(floor_to) X(timestampadd) X(extract) X(extract_unit)  \
    X(array) X(map) X(row) X(item) X(typeof) X(aggregate) X(overlaps) X(not_null) X(to_timestamp_ltz)
#define X(name) fz_status rule_##name(sql_bind *b, sql_bound *call, fz_error *err);
BIND_RULES(X)
#undef X
#endif
