/* Kernels of comparison and of logic without short cuts (AND, OR, CASE, COALESCE stand in forms.c). */
#include "exec/exec_int.h"

static void k_not(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = !ex_bool(c, 0, i);
}
static void k_is_null(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = ex_is_null(c, 0, i);
}
static void k_is_not_null(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = !ex_is_null(c, 0, i);
}
static bool is(const ex_call *c, uint32_t i, uint8_t v) { return c->arg[0]->type->kind != COL_NULL && !ex_is_null(c, 0, i) && ex_bool(c, 0, i) == v; }
static void k_is_true(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = is(c, i, 1);
}
static void k_is_false(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = is(c, i, 0);
}
static void k_is_not_true(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = !is(c, i, 1);
}
static void k_is_not_false(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = !is(c, i, 0);
}

/* ---- comparison ---------------------------------------------------------------------------------------------------------------- */

static int compare_sv(fz_sv a, fz_sv b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int r = n ? memcmp(a.p, b.p, n) : 0;
    return r ? r : a.n < b.n ? -1 : a.n > b.n;
}

/* OP over one physical form; booleans, whole numbers and dates by value, floating point as Java's operators (NaN is unequal to all). */
#define NUMERIC(OP)                                                                                              \
    switch (ex_kind(c, 0)) {                                                                                     \
    case COL_BOOLEAN: for (uint32_t i = 0; i < c->n; i++) o[i] = ex_bool(c, 0, i) OP ex_bool(c, 1, i); return;    \
    case COL_FLOAT: for (uint32_t i = 0; i < c->n; i++) o[i] = ex_f32(c, 0, i) OP ex_f32(c, 1, i); return;        \
    case COL_DOUBLE: for (uint32_t i = 0; i < c->n; i++) o[i] = ex_f64(c, 0, i) OP ex_f64(c, 1, i); return;       \
    case COL_DECIMAL: for (uint32_t i = 0; i < c->n; i++) o[i] = ex_dec(c, 0, i) OP ex_dec(c, 1, i); return;      \
    case COL_BIGINT: case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: case COL_INTERVAL_DAY:                           \
        for (uint32_t i = 0; i < c->n; i++) o[i] = ex_i64(c, 0, i) OP ex_i64(c, 1, i);                            \
        return;                                                                                                  \
    case COL_CHAR: case COL_VARCHAR: case COL_BINARY: case COL_VARBINARY:                                        \
        for (uint32_t i = 0; i < c->n; i++) o[i] = compare_sv(ex_sv(c, 0, i), ex_sv(c, 1, i)) OP 0;               \
        return;                                                                                                  \
    case COL_ARRAY: case COL_MAP: case COL_ROW: case COL_NULL:                                                   \
        for (uint32_t i = 0; i < c->n; i++)                                                                      \
            if (ex_live(c, i)) o[i] = col_compare(c->arg[0], ex_ix(c, 0, i), c->arg[1], ex_ix(c, 1, i)) OP 0;     \
        return;                                                                                                  \
    default: for (uint32_t i = 0; i < c->n; i++) o[i] = ex_i32(c, 0, i) OP ex_i32(c, 1, i); return;               \
    }
#define COMPARE(name, OP)              \
    static void name(ex_call *c) {     \
        uint8_t *o = c->out->u8;       \
        NUMERIC(OP)                    \
    }
COMPARE(compare_eq, ==)
COMPARE(compare_ne, !=)
COMPARE(k_lt, <)
COMPARE(k_le, <=)
COMPARE(k_gt, >)
COMPARE(k_ge, >=)

/* Texts against one constant: lengths decide most. */
static bool text_with_constant(const ex_call *c) { return col_is_varlen(ex_kind(c, 0)) && c->step[0] && !c->step[1]; }
static void equal_text(ex_call *c, uint8_t same) {
    fz_sv k = ex_sv(c, 1, 0);
    const col_vec *v = c->arg[0];
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = fz_sv_eq((fz_sv){v->bytes + v->off[i], v->off[i + 1] - v->off[i]}, k) ? same : !same;
}
static void k_eq(ex_call *c) {
    if (text_with_constant(c)) equal_text(c, 1);
    else compare_eq(c);
}
static void k_ne(ex_call *c) {
    if (text_with_constant(c)) equal_text(c, 0);
    else compare_ne(c);
}

static bool equal_rows(const ex_call *c, uint32_t i, uint32_t a, uint32_t b) { return col_equal(c->arg[a], ex_ix(c, a, i), c->arg[b], ex_ix(c, b, i)); }

static void distinct(ex_call *c, bool negate) {
    for (uint32_t i = 0; i < c->n; i++) {
        bool x = ex_is_null(c, 0, i), y = ex_is_null(c, 1, i);
        bool differ = x || y ? x != y : !equal_rows(c, i, 0, 1);
        c->out->u8[i] = differ != negate;
    }
}
static void k_distinct(ex_call *c) { distinct(c, false); }
static void k_not_distinct(ex_call *c) { distinct(c, true); }

/* ---- IN ------------------------------------------------------------------------------------------------------------------------ */

/* A long list of constants becomes a hash set of argument numbers. */
typedef struct in_set { uint32_t mask; uint32_t *slot; } in_set;
enum { LONG_LIST = 12 };

static in_set *make_set(ex_call *c) {
    in_set *s = FZ_ANEW(c->keep, in_set);
    uint32_t size = 16;
    while (size < c->n_args * 2) size *= 2;
    s->mask = size - 1;
    s->slot = FZ_ANEWN(c->keep, uint32_t, size);
    for (uint32_t k = 1; k < c->n_args; k++) {
        if (ex_is_null(c, k, 0)) continue;
        uint32_t h = (uint32_t)col_hash(c->arg[k], 0) & s->mask;
        while (s->slot[h]) h = (h + 1) & s->mask;
        s->slot[h] = k;
    }
    return s;
}
static bool in_constants(const ex_call *c, const in_set *s, uint32_t i) {
    uint32_t h = (uint32_t)col_hash(c->arg[0], ex_ix(c, 0, i)) & s->mask;
    for (; s->slot[h]; h = (h + 1) & s->mask)
        if (equal_rows(c, i, 0, s->slot[h])) return true;
    return false;
}
static bool all_constant(const ex_call *c) {
    for (uint32_t k = 1; k < c->n_args; k++)
        if (c->step[k]) return false;
    return true;
}

static void in(ex_call *c, bool negate) {
    in_set *set = NULL;
    if (c->n_args > LONG_LIST && all_constant(c)) {
        if (!*c->slot) *c->slot = make_set(c);
        set = *c->slot;
    }
    bool null_in_list = false;
    for (uint32_t k = 1; set && k < c->n_args; k++) null_in_list |= ex_is_null(c, k, 0);
    for (uint32_t i = 0; i < c->n; i++) {
        if (ex_is_null(c, 0, i)) {
            ex_put_null(c, i);
            continue;
        }
        bool found = set && in_constants(c, set, i), unknown = set && null_in_list;
        for (uint32_t k = 1; !set && !found && k < c->n_args; k++) {
            if (ex_is_null(c, k, i)) unknown = true;
            else found = equal_rows(c, i, 0, k);
        }
        if (!found && unknown) ex_put_null(c, i);
        else c->out->u8[i] = found != negate;
    }
}
static void k_in(ex_call *c) { in(c, false); }
static void k_not_in(ex_call *c) { in(c, true); }

/* ---- GREATEST, LEAST ----------------------------------------------------------------------------------------------------------- */

static void extreme(ex_call *c, int sign) {
    unsigned w = col_width(c->type->kind);
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        uint32_t best = 0;
        for (uint32_t k = 1; k < c->n_args; k++)
            if (sign * col_compare(c->arg[k], ex_ix(c, k, i), c->arg[best], ex_ix(c, best, i)) > 0) best = k;
        if (w) memcpy((char *)c->out->data + (size_t)w * i, (const char *)c->arg[best]->data + (size_t)w * ex_ix(c, best, i), w);
        else {
            fz_sv s = ex_sv(c, best, i);
            ex_put(c, i, s.p, s.n);
        }
    }
}
static void k_greatest(ex_call *c) { extreme(c, 1); }
static void k_least(ex_call *c) { extreme(c, -1); }

const ex_kernel_entry ex_kernels_logic[] = {
    {SQL_K_NOT, k_not}, {SQL_K_IS_NULL, k_is_null}, {SQL_K_IS_NOT_NULL, k_is_not_null}, {SQL_K_IS_TRUE, k_is_true}, {SQL_K_IS_FALSE, k_is_false},
    {SQL_K_IS_NOT_TRUE, k_is_not_true}, {SQL_K_IS_NOT_FALSE, k_is_not_false}, {SQL_K_EQ, k_eq}, {SQL_K_NE, k_ne}, {SQL_K_LT, k_lt}, {SQL_K_LE, k_le},
    {SQL_K_GT, k_gt}, {SQL_K_GE, k_ge}, {SQL_K_DISTINCT, k_distinct}, {SQL_K_NOT_DISTINCT, k_not_distinct}, {SQL_K_IN, k_in}, {SQL_K_NOT_IN, k_not_in},
    {SQL_K_GREATEST, k_greatest}, {SQL_K_LEAST, k_least}, {SQL_K_NONE, NULL},
};
