/* Type rules of operators and special forms; rule_signature serves the plain functions. See bind_int.h for the list.
 *
 * A rule gets a call whose arguments are bound. It checks them, wraps them in the casts that Flink makes, and sets the call's type. It may turn the
 * call into another one (BETWEEN into comparisons), in place, so that the caller's pointer stays good. */
#include "sql/bind_int.h"

static const col_type *boolean(bool nullable) { return col_simple(COL_BOOLEAN, nullable); }

static void become(sql_bind *b, sql_bound *call, sql_kernel k, sql_bound **args, uint32_t n) {
    call->fn = sql_fn_of(k);
    call->args = FZ_ANEWN(b->a, sql_bound *, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) call->args[i] = args[i];
    call->n_args = n;
}
static sql_bound *make(sql_bind *b, sql_kernel k, const col_type *t, sql_bound *x, sql_bound *y, const sql_bound *origin) {
    sql_bound *args[2] = {x, y};
    return bind_call(b, sql_fn_of(k), t, args, y ? 2 : 1, origin);
}

/* ---- plain functions: "s l [l] > S" -------------------------------------------------------------------------------------------- */

/* One argument against its letter; casts where Flink does. */
static bool accept(sql_bind *b, sql_bound **arg, char letter) {
    const col_type *t = (*arg)->type;
    bool null = t->kind == COL_NULL;
    switch (letter) {
    case 's': /* text; other atomic values by their text, as Flink's implicit casts do */
        if (!col_is_text(t->kind) && !null && !bind_is_atomic(t->kind)) return false;
        if (!col_is_text(t->kind)) *arg = bind_cast(b, *arg, col_string(true));
        return true;
    case 'l':
        if (!bind_is_integer(t->kind) && !null) return false;
        *arg = bind_cast(b, *arg, col_simple(COL_BIGINT, true));
        return true;
    case 'd':
        if (!bind_is_numeric(t->kind) && !null) return false;
        *arg = bind_cast(b, *arg, col_simple(COL_DOUBLE, true));
        return true;
    case 'n':
        if (null) *arg = bind_cast(b, *arg, col_simple(COL_INT, true));
        return bind_is_numeric(t->kind) || null;
    case 'b':
        if (null) *arg = bind_cast(b, *arg, boolean(true));
        return t->kind == COL_BOOLEAN || null;
    case 'y':
        if (null) *arg = bind_cast(b, *arg, col_simple(COL_VARBINARY, true));
        return t->kind == COL_BINARY || t->kind == COL_VARBINARY || null;
    case 'x': /* text or a whole number */
        if (null) *arg = bind_cast(b, *arg, col_string(true));
        return col_is_text(t->kind) || bind_is_integer(t->kind) || null;
    case 't': /* text, or a timestamp to be formatted */
        if (null) *arg = bind_cast(b, *arg, col_string(true));
        return col_is_text(t->kind) || t->kind == COL_TIMESTAMP || t->kind == COL_TIMESTAMP_LTZ || null;
    case 'a': return true;
    default: return false;
    }
}

static const col_type *result_type(sql_bind *b, const char *r, sql_bound *call) {
    bool nullable = r[1] == '?' || (r[1] != '!' && bind_any_nullable(call));
    switch (*r) {
    case 'S': return col_string(nullable);
    case 'V': { /* VARCHAR of the first argument's length */
        const col_type *t = call->args[0]->type;
        return col_is_text(t->kind) ? col_sized(b->a, COL_VARCHAR, t->precision, 0, nullable) : col_string(nullable);
    }
    case 'I': return col_simple(COL_INT, nullable);
    case 'L': return col_simple(COL_BIGINT, nullable);
    case 'D': return col_simple(COL_DOUBLE, nullable);
    case 'B': return boolean(nullable);
    case 'Y': return col_simple(COL_VARBINARY, nullable);
    case 'A': return col_simple(COL_DATE, nullable);
    case 'M': return col_sized(b->a, COL_TIME, 0, 0, nullable);
    case 'T': return col_sized(b->a, COL_TIMESTAMP, 3, 0, nullable);
    case 'Z': return col_sized(b->a, COL_TIMESTAMP_LTZ, 3, 0, nullable);
    case 'C': return col_sized(b->a, COL_CHAR, 36, 0, nullable);
    default: return col_with_null(b->a, call->args[*r - '0']->type, nullable);
    }
}

fz_status rule_signature(sql_bind *b, sql_bound *call, fz_error *err) {
    const char *p = call->fn->types;
    char letter = 0;
    bool repeat = false;
    for (uint32_t i = 0; i < call->n_args; i++) {
        if (!repeat) {
            while (*p == ' ' || *p == '[' || *p == ']') p++;
            if (*p != '>') letter = *p++;
            if (*p == '*') { repeat = true; p++; }
        }
        if (!accept(b, &call->args[i], letter)) return bind_mismatch(b, call, NULL, err);
    }
    call->type = result_type(b, strchr(call->fn->types, '>') + 2, call);
    return FZ_OK;
}

/* ---- logic and comparison ------------------------------------------------------------------------------------------------------ */

/* AND, OR, NOT, IS TRUE and kin. Nested ANDs become one. */
fz_status rule_logic(sql_bind *b, sql_bound *call, fz_error *err) {
    sql_kernel k = call->fn->kernel;
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->n_args; i++) {
        sql_bound *x = call->args[i];
        if (!accept(b, &call->args[i], 'b')) return bind_mismatch(b, call, "a BOOLEAN is needed", err);
        n += (k == SQL_K_AND || k == SQL_K_OR) && x->kind == SQL_B_CALL && x->fn->kernel == k ? x->n_args : 1;
    }
    bool truth = k == SQL_K_IS_TRUE || k == SQL_K_IS_FALSE || k == SQL_K_IS_NOT_TRUE || k == SQL_K_IS_NOT_FALSE;
    call->type = boolean(!truth && bind_any_nullable(call));
    if (n == call->n_args) return FZ_OK;
    sql_bound **flat = FZ_ANEWN(b->a, sql_bound *, n);
    n = 0;
    for (uint32_t i = 0; i < call->n_args; i++) {
        sql_bound *x = call->args[i];
        if (x->kind == SQL_B_CALL && x->fn->kernel == k)
            for (uint32_t j = 0; j < x->n_args; j++) flat[n++] = x->args[j];
        else flat[n++] = x;
    }
    call->args = flat;
    call->n_args = n;
    return FZ_OK;
}
fz_status rule_is_null(sql_bind *b, sql_bound *call, fz_error *err) {
    (void)b;
    (void)err;
    call->type = boolean(false);
    return FZ_OK;
}

/* Type in which two sides are compared: the common one; else text gives way to the other side. */
static const col_type *compare_type(sql_bind *b, const col_type *const *t, uint32_t n) {
    const col_type *c = bind_common_type(b->a, t, n);
    if (c) return c;
    const col_type *other = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (col_is_text(t[i]->kind) || t[i]->kind == COL_NULL) continue;
        if (!bind_is_atomic(t[i]->kind) || bind_is_interval(t[i]->kind)) return NULL;
        const col_type *two[2] = {other, t[i]};
        other = other ? bind_common_type(b->a, two, 2) : t[i];
        if (!other) return NULL;
    }
    return other;
}
/* CHAR against VARCHAR: no cast is needed, only bytes count. */
static void cast_to_compare(sql_bind *b, sql_bound **arg, const col_type *t) {
    if (col_is_text(t->kind) && col_is_text((*arg)->type->kind)) return;
    *arg = bind_cast(b, *arg, t);
}
static fz_status compare_args(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type **t = FZ_ANEWN(b->a, const col_type *, call->n_args);
    for (uint32_t i = 0; i < call->n_args; i++) t[i] = call->args[i]->type;
    const col_type *c = compare_type(b, t, call->n_args);
    if (!c) return bind_mismatch(b, call, "these types cannot be compared", err);
    if (c->kind == COL_MAP && call->fn->kernel != SQL_K_EQ && call->fn->kernel != SQL_K_NE) return bind_mismatch(b, call, "maps have no order", err);
    for (uint32_t i = 0; i < call->n_args; i++) cast_to_compare(b, &call->args[i], c);
    return FZ_OK;
}
fz_status rule_compare(sql_bind *b, sql_bound *call, fz_error *err) {
    FZ_TRY(compare_args(b, call, err));
    sql_kernel k = call->fn->kernel;
    call->type = boolean(k != SQL_K_DISTINCT && k != SQL_K_NOT_DISTINCT && bind_any_nullable(call));
    return FZ_OK;
}
fz_status rule_in(sql_bind *b, sql_bound *call, fz_error *err) {
    FZ_TRY(compare_args(b, call, err));
    call->type = boolean(bind_any_nullable(call));
    return FZ_OK;
}
static fz_status compare(sql_bind *b, sql_kernel k, sql_bound *x, sql_bound *y, const sql_bound *origin, sql_bound **out, fz_error *err) {
    *out = make(b, k, NULL, x, y, origin);
    return rule_compare(b, *out, err);
}
/* variant 1: NOT BETWEEN. */
fz_status rule_between(sql_bind *b, sql_bound *call, fz_error *err) {
    bool negated = call->fn->variant == 1, symmetric = call->n_args == 4 && !strcmp(call->args[3]->text, "'SYMMETRIC'");
    sql_bound *x = call->args[0], *lo = call->args[1], *hi = call->args[2], *p[4];
    FZ_TRY(compare(b, negated ? SQL_K_LT : SQL_K_GE, x, lo, call, &p[0], err));
    FZ_TRY(compare(b, negated ? SQL_K_GT : SQL_K_LE, x, hi, call, &p[1], err));
    become(b, call, negated ? SQL_K_OR : SQL_K_AND, p, 2);
    FZ_TRY(rule_logic(b, call, err));
    if (!symmetric) return FZ_OK;
    sql_bound *first = FZ_ANEW(b->a, sql_bound);
    *first = *call;
    FZ_TRY(compare(b, negated ? SQL_K_LT : SQL_K_GE, x, hi, call, &p[2], err));
    FZ_TRY(compare(b, negated ? SQL_K_GT : SQL_K_LE, x, lo, call, &p[3], err));
    sql_bound *second = make(b, negated ? SQL_K_OR : SQL_K_AND, NULL, p[2], p[3], call);
    FZ_TRY(rule_logic(b, second, err));
    sql_bound *both[2] = {first, second};
    become(b, call, negated ? SQL_K_AND : SQL_K_OR, both, 2);
    return rule_logic(b, call, err);
}

/* ---- conditionals -------------------------------------------------------------------------------------------------------------- */

/* Common type of branches; where Calcite has none, text takes everything. */
static const col_type *branch_type(sql_bind *b, const col_type *const *t, uint32_t n) {
    const col_type *c = bind_common_type(b->a, t, n);
    if (c) return c;
    bool text = false, nullable = false;
    for (uint32_t i = 0; i < n; i++) {
        text |= col_is_text(t[i]->kind);
        nullable |= t[i]->nullable;
        if (!bind_is_atomic(t[i]->kind) && t[i]->kind != COL_NULL) return NULL;
    }
    return text ? col_string(nullable) : NULL;
}
/* CHAR branches of other lengths become VARCHAR without padding, so text needs no cast of values, only of types. */
static void cast_branch(sql_bind *b, sql_bound **arg, const col_type *t) { *arg = bind_cast(b, *arg, t); }

/* (when, then)..., else */
fz_status rule_case(sql_bind *b, sql_bound *call, fz_error *err) {
    uint32_t n = call->n_args, m = 0;
    const col_type **t = FZ_ANEWN(b->a, const col_type *, n);
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        if (!accept(b, &call->args[i], 'b')) return bind_mismatch(b, call, "WHEN needs a BOOLEAN", err);
        t[m++] = call->args[i + 1]->type;
    }
    t[m++] = call->args[n - 1]->type;
    const col_type *c = branch_type(b, t, m);
    if (!c) return bind_mismatch(b, call, "the branches have no common type", err);
    for (uint32_t i = 1; i < n; i += 2) cast_branch(b, &call->args[i], c);
    cast_branch(b, &call->args[n - 1], c);
    call->type = c;
    return FZ_OK;
}
fz_status rule_if(sql_bind *b, sql_bound *call, fz_error *err) {
    bool nullable = bind_any_nullable(call);
    become(b, call, SQL_K_CASE, call->args, 3);
    FZ_TRY(rule_case(b, call, err));
    call->type = col_with_null(b->a, call->type, nullable);
    return FZ_OK;
}
fz_status rule_nullif(sql_bind *b, sql_bound *call, fz_error *err) {
    sql_bound *args[3] = {NULL, bind_null_literal(b, call->pos, "NULL"), call->args[0]};
    FZ_TRY(compare(b, SQL_K_EQ, call->args[0], call->args[1], call, &args[0], err));
    become(b, call, SQL_K_CASE, args, 3);
    return rule_case(b, call, err);
}
fz_status rule_coalesce(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type **t = FZ_ANEWN(b->a, const col_type *, call->n_args);
    bool nullable = true;
    for (uint32_t i = 0; i < call->n_args; i++) {
        t[i] = call->args[i]->type;
        nullable &= t[i]->nullable || t[i]->kind == COL_NULL;
    }
    const col_type *c = branch_type(b, t, call->n_args);
    if (!c) return bind_mismatch(b, call, "the arguments have no common type", err);
    for (uint32_t i = 0; i < call->n_args; i++) cast_branch(b, &call->args[i], c);
    call->type = c->kind == COL_NULL ? c : col_with_null(b->a, c, nullable);
    return FZ_OK;
}
fz_status rule_greatest(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type **t = FZ_ANEWN(b->a, const col_type *, call->n_args);
    for (uint32_t i = 0; i < call->n_args; i++) t[i] = call->args[i]->type;
    const col_type *c = bind_common_type(b->a, t, call->n_args);
    if (!c || c->kind >= COL_ARRAY) return bind_mismatch(b, call, "the arguments have no common type", err);
    for (uint32_t i = 0; i < call->n_args; i++) call->args[i] = bind_cast(b, call->args[i], c);
    call->type = c;
    return FZ_OK;
}

/* ---- text ---------------------------------------------------------------------------------------------------------------------- */

fz_status rule_like(sql_bind *b, sql_bound *call, fz_error *err) {
    for (uint32_t i = 0; i < call->n_args; i++)
        if (!accept(b, &call->args[i], 's')) return bind_mismatch(b, call, NULL, err);
    call->type = boolean(bind_any_nullable(call));
    return FZ_OK;
}
/* || : the lengths add up. */
fz_status rule_concat(sql_bind *b, sql_bound *call, fz_error *err) {
    int64_t length = 0;
    bool fixed = true;
    for (uint32_t i = 0; i < call->n_args; i++) {
        if (!accept(b, &call->args[i], 's')) return bind_mismatch(b, call, NULL, err);
        const col_type *t = call->args[i]->type;
        length += t->precision;
        fixed &= t->kind == COL_CHAR;
    }
    if (length > COL_MAX_LENGTH) length = COL_MAX_LENGTH;
    call->type = col_sized(b->a, fixed ? COL_CHAR : COL_VARCHAR, (int32_t)length, 0, bind_any_nullable(call));
    return FZ_OK;
}
/* (BOTH | LEADING | TRAILING, characters, value) */
fz_status rule_trim(sql_bind *b, sql_bound *call, fz_error *err) {
    for (uint32_t i = 0; i < call->n_args; i++)
        if (!accept(b, &call->args[i], 's')) return bind_mismatch(b, call, NULL, err);
    const col_type *t = call->args[2]->type;
    call->type = col_sized(b->a, COL_VARCHAR, t->precision, 0, bind_any_nullable(call));
    return FZ_OK;
}

/* ---- nested -------------------------------------------------------------------------------------------------------------------- */

fz_status rule_array(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type **t = FZ_ANEWN(b->a, const col_type *, call->n_args + 1);
    for (uint32_t i = 0; i < call->n_args; i++) t[i] = call->args[i]->type;
    const col_type *c = call->n_args ? branch_type(b, t, call->n_args) : col_simple(COL_NULL, true);
    if (!c) return bind_mismatch(b, call, "the elements have no common type", err);
    for (uint32_t i = 0; i < call->n_args; i++) cast_branch(b, &call->args[i], c);
    call->type = col_array(b->a, c, false);
    return FZ_OK;
}
fz_status rule_map(sql_bind *b, sql_bound *call, fz_error *err) {
    uint32_t n = call->n_args;
    if (n % 2) return bind_mismatch(b, call, "keys and values come in pairs", err);
    const col_type **t = FZ_ANEWN(b->a, const col_type *, n + 2);
    for (uint32_t i = 0; i < n; i++) t[i % 2 ? n / 2 + i / 2 : i / 2] = call->args[i]->type;
    const col_type *k = n ? branch_type(b, t, n / 2) : col_simple(COL_NULL, true), *v = n ? branch_type(b, t + n / 2, n / 2) : k;
    if (!k || !v) return bind_mismatch(b, call, "keys or values have no common type", err);
    for (uint32_t i = 0; i < n; i++) cast_branch(b, &call->args[i], i % 2 ? v : k);
    call->type = col_map(b->a, k, v, false);
    return FZ_OK;
}
fz_status rule_row(sql_bind *b, sql_bound *call, fz_error *err) {
    (void)err;
    col_field *f = FZ_ANEWN(b->a, col_field, call->n_args + 1);
    for (uint32_t i = 0; i < call->n_args; i++) {
        f[i].name = fz_arena_printf(b->a, "EXPR$%u", i);
        f[i].type = call->args[i]->type;
    }
    call->type = col_row(b->a, f, call->n_args, false);
    return FZ_OK;
}
fz_status rule_item(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type *t = call->args[0]->type;
    if (t->kind == COL_MAP) {
        if (!bind_can_store(call->args[1]->type, t->fields[0].type) && call->args[1]->type->kind != t->fields[0].type->kind) return bind_mismatch(b, call, "the key has another type", err);
        cast_to_compare(b, &call->args[1], t->fields[0].type);
        call->type = col_with_null(b->a, t->fields[1].type, true);
        return FZ_OK;
    }
    if (t->kind != COL_ARRAY || !accept(b, &call->args[1], 'l')) return bind_mismatch(b, call, NULL, err);
    call->type = col_with_null(b->a, t->fields[0].type, true);
    return FZ_OK;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------ */

/* A constant: the type's text. */
fz_status rule_typeof(sql_bind *b, sql_bound *call, fz_error *err) {
    (void)err;
    const char *text = bind_type_name(b->a, call->args[0]->type);
    col_builder *v = col_builder_new(b->a, col_string(true));
    col_add_bytes(v, text, strlen(text));
    call->kind = SQL_B_LITERAL;
    call->type = col_string(true);
    call->literal = col_builder_finish(v);
    call->fn = NULL;
    call->n_args = 0;
    return FZ_OK;
}
/* (value, column name); only INSERT makes it. */
fz_status rule_not_null(sql_bind *b, sql_bound *call, fz_error *err) {
    (void)err;
    call->type = col_with_null(b->a, call->args[0]->type, false);
    return FZ_OK;
}

fz_status rule_aggregate(sql_bind *b, sql_bound *call, fz_error *err) {
    sql_kernel k = call->fn->kernel;
    if (k == SQL_K_AGG_COUNT || k == SQL_K_AGG_COUNT_IF) {
        if (k == SQL_K_AGG_COUNT_IF && !accept(b, &call->args[0], 'b')) return bind_mismatch(b, call, "a BOOLEAN is needed", err);
        call->type = col_simple(COL_BIGINT, false);
        return FZ_OK;
    }
    const col_type *t = call->args[0]->type;
    if (t->kind == COL_NULL) t = col_simple(COL_INT, true);
    if (k == SQL_K_AGG_SUM || k == SQL_K_AGG_AVG) {
        if (!bind_is_numeric(t->kind)) return bind_mismatch(b, call, "a number is needed", err);
        int scale = k == SQL_K_AGG_AVG && t->scale < 6 ? 6 : t->scale;
        if (t->kind == COL_DECIMAL) t = col_sized(b->a, COL_DECIMAL, 38, scale, true);
    } else if (t->kind >= COL_ARRAY && k != SQL_K_AGG_ANY) {
        return bind_mismatch(b, call, "these values have no order", err);
    }
    call->type = col_with_null(b->a, t, true);
    return FZ_OK;
}
