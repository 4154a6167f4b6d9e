/* Type rules of arithmetic and of the temporal functions. */
#include "col/decimal.h"
#include "sql/bind_int.h"

static void become(sql_bound *call, sql_kernel k) { call->fn = sql_fn_of(k); }
static void swap(sql_bound *call) {
    sql_bound *x = call->args[0];
    call->args[0] = call->args[1];
    call->args[1] = x;
}

/* datetime +- interval, interval +- interval, interval * number. */
static bool temporal_arith(sql_bind *b, sql_bound *call) {
    sql_kernel k = call->fn->kernel;
    bool i0 = bind_is_interval(call->args[0]->type->kind), i1 = bind_is_interval(call->args[1]->type->kind);
    if (k == SQL_K_PLUS && i0 && bind_is_temporal(call->args[1]->type->kind)) {
        swap(call);
        i0 = false;
        i1 = true;
    }
    const col_type *x = call->args[0]->type, *y = call->args[1]->type;
    if ((k == SQL_K_PLUS || k == SQL_K_MINUS) && bind_is_temporal(x->kind) && i1) {
        if (x->kind == COL_TIME && y->kind == COL_INTERVAL_MONTH) return false;
        become(call, k == SQL_K_PLUS ? SQL_K_TEMPORAL_PLUS : SQL_K_TEMPORAL_MINUS);
        call->type = col_with_null(b->a, x, bind_any_nullable(call));
        return true;
    }
    if ((k == SQL_K_PLUS || k == SQL_K_MINUS) && i0 && i1 && x->kind == y->kind) {
        call->type = col_with_null(b->a, x, bind_any_nullable(call));
        return true;
    }
    if (k == SQL_K_TIMES && (i0 || i1) && !(i0 && i1)) {
        if (i1) swap(call);
        if (!bind_is_integer(call->args[1]->type->kind)) return false;
        call->args[1] = bind_cast(b, call->args[1], col_simple(call->args[0]->type->kind == COL_INTERVAL_DAY ? COL_BIGINT : COL_INT, true));
        call->type = col_with_null(b->a, call->args[0]->type, bind_any_nullable(call));
        return true;
    }
    return false;
}

/* Result of decimal arithmetic. Source: Flink's LogicalTypeMerging. */
static const col_type *decimal_result(sql_bind *b, sql_kernel k, const col_type *x, const col_type *y, bool nullable) {
    int px, sx, py, sy, s, p;
    bind_as_decimal(x, &px, &sx);
    bind_as_decimal(y, &py, &sy);
    int whole_x = px - sx, whole_y = py - sy, max_s = sx > sy ? sx : sy;
    switch (k) {
    case SQL_K_TIMES: p = px + py + 1; s = sx + sy; break;
    case SQL_K_DIVIDE:
        s = sx + py + 1 > 6 ? sx + py + 1 : 6;
        p = whole_x + sy + s;
        break;
    case SQL_K_MOD: s = max_s; p = (whole_x < whole_y ? whole_x : whole_y) + s; break;
    default: s = max_s; p = (whole_x > whole_y ? whole_x : whole_y) + s + 1;
    }
    return bind_decimal(b->a, p, s, nullable);
}

/* A side that is NULL takes the other's type; text beside a number is no arithmetic. */
static bool numeric_sides(sql_bind *b, sql_bound *call) {
    for (int i = 0; i < 2; i++) {
        const col_type *t = call->args[i]->type, *other = call->args[1 - i]->type;
        if (t->kind == COL_NULL) call->args[i] = bind_cast(b, call->args[i], bind_is_numeric(other->kind) ? other : col_simple(COL_INT, true));
        else if (!bind_is_numeric(t->kind)) return false;
    }
    return true;
}
static const col_type *common(sql_bind *b, const sql_bound *call) {
    const col_type *t[2] = {call->args[0]->type, call->args[1]->type};
    return bind_common_type(b->a, t, 2);
}
static void cast_both(sql_bind *b, sql_bound *call, const col_type *t) {
    for (int i = 0; i < 2; i++) call->args[i] = bind_cast(b, call->args[i], t);
}
/* Whole numbers beside a decimal become decimals; decimals stay as they are: the kernel minds the scales. */
static void decimal_sides(sql_bind *b, sql_bound *call) {
    for (int i = 0; i < 2; i++) {
        int p, s;
        bind_as_decimal(call->args[i]->type, &p, &s);
        call->args[i] = bind_cast(b, call->args[i], col_sized(b->a, COL_DECIMAL, p, s, true));
    }
}

fz_status rule_arith(sql_bind *b, sql_bound *call, fz_error *err) {
    if (temporal_arith(b, call)) return FZ_OK;
    if (!numeric_sides(b, call)) return bind_mismatch(b, call, NULL, err);
    const col_type *c = common(b, call);
    bool nullable = bind_any_nullable(call);
    if (c->kind == COL_DECIMAL) {
        call->type = decimal_result(b, call->fn->kernel, call->args[0]->type, call->args[1]->type, nullable);
        decimal_sides(b, call);
        return FZ_OK;
    }
    cast_both(b, call, c);
    call->type = col_with_null(b->a, c, nullable);
    return FZ_OK;
}
/* Whole numbers: the type of the divisor. */
fz_status rule_modulo(sql_bind *b, sql_bound *call, fz_error *err) {
    if (!numeric_sides(b, call)) return bind_mismatch(b, call, NULL, err);
    const col_type *c = common(b, call), *divisor = call->args[1]->type;
    bool nullable = bind_any_nullable(call);
    if (c->kind == COL_DECIMAL) {
        call->type = decimal_result(b, SQL_K_MOD, call->args[0]->type, divisor, nullable);
        decimal_sides(b, call);
        return FZ_OK;
    }
    cast_both(b, call, bind_is_integer(c->kind) ? col_simple(COL_BIGINT, true) : c);
    call->type = col_with_null(b->a, bind_is_integer(c->kind) ? divisor : c, nullable);
    return FZ_OK;
}
static fz_status same(sql_bind *b, sql_bound *call, bool intervals, fz_error *err) {
    const col_type *t = call->args[0]->type;
    if (t->kind == COL_NULL) t = (call->args[0] = bind_cast(b, call->args[0], col_simple(COL_INT, true)))->type;
    if (!bind_is_numeric(t->kind) && !(intervals && bind_is_interval(t->kind))) return bind_mismatch(b, call, NULL, err);
    call->type = t;
    return FZ_OK;
}
fz_status rule_negate(sql_bind *b, sql_bound *call, fz_error *err) { return same(b, call, true, err); }
fz_status rule_abs(sql_bind *b, sql_bound *call, fz_error *err) { return same(b, call, false, err); }
/* +x is x. */
fz_status rule_plus_sign(sql_bind *b, sql_bound *call, fz_error *err) {
    FZ_TRY(same(b, call, true, err));
    *call = *call->args[0];
    return FZ_OK;
}

fz_status rule_floor(sql_bind *b, sql_bound *call, fz_error *err) {
    if (call->n_args == 2) {
        become(call, call->fn->kernel == SQL_K_FLOOR ? SQL_K_FLOOR_TO : SQL_K_CEIL_TO);
        return rule_floor_to(b, call, err);
    }
    FZ_TRY(same(b, call, false, err));
    if (call->type->kind == COL_DECIMAL) call->type = col_sized(b->a, COL_DECIMAL, call->type->precision, 0, call->type->nullable);
    return FZ_OK;
}
fz_status rule_round(sql_bind *b, sql_bound *call, fz_error *err) {
    FZ_TRY(same(b, call, false, err));
    int64_t digits = 0;
    bool known = call->n_args < 2 || bind_int_value(call->args[1], &digits);
    if (call->n_args == 2) {
        const col_type *t = call->args[1]->type;
        if (!bind_is_integer(t->kind) && t->kind != COL_NULL) return bind_mismatch(b, call, "the number of digits is a whole number", err);
        call->args[1] = bind_cast(b, call->args[1], col_simple(COL_INT, true));
    }
    const col_type *t = call->type;
    if (t->kind == COL_DECIMAL && call->fn->kernel == SQL_K_ROUND && known) {
        int p, s;
        dcm_round_type(t->precision, t->scale, (int)digits, &p, &s);
        t = col_sized(b->a, COL_DECIMAL, p, s, t->nullable);
    }
    call->type = col_with_null(b->a, t, bind_any_nullable(call));
    return FZ_OK;
}

/* ---- temporal ------------------------------------------------------------------------------------------------------------------ */

static const char *const unit_names[] = {"YEAR", "QUARTER", "MONTH", "WEEK", "DOY", "DAY", "DOW", "HOUR", "MINUTE", "SECOND",
                                         "MILLENNIUM", "CENTURY", "DECADE", "ISOYEAR", "ISODOW", "EPOCH", "MILLISECOND", "MICROSECOND", "NANOSECOND"};
static const char *unit_of(const sql_bound *e) {
    if (e->kind != SQL_B_LITERAL || !col_is_text(e->type->kind)) return NULL;
    fz_sv s = col_sv(e->literal, 0);
    if (fz_starts(s.p ? s.p : "", "SQL_TSI_") && s.n > 8) s = (fz_sv){s.p + 8, s.n - 8};
    for (size_t i = 0; i < sizeof unit_names / sizeof *unit_names; i++)
        if (fz_sv_ieq(s, fz_sv_of(unit_names[i]))) return unit_names[i];
    return NULL;
}
static fz_status need_unit(sql_bind *b, sql_bound *call, uint32_t k, const char **unit, fz_error *err) {
    *unit = unit_of(call->args[k]);
    if (!*unit) return bind_mismatch(b, call, "a time unit is needed (YEAR, MONTH, DAY, HOUR, ...)", err);
    call->args[k] = bind_text_literal(b, *unit, strlen(*unit), call->args[k]->pos);
    return FZ_OK;
}
static bool is_time_unit(const char *u) { return !strcmp(u, "HOUR") || !strcmp(u, "MINUTE") || !strcmp(u, "SECOND") || !strcmp(u, "MILLISECOND") || !strcmp(u, "MICROSECOND") || !strcmp(u, "NANOSECOND"); }

/* (temporal, unit): the type stays. */
fz_status rule_floor_to(sql_bind *b, sql_bound *call, fz_error *err) {
    const char *unit;
    FZ_TRY(need_unit(b, call, 1, &unit, err));
    if (!bind_is_temporal(call->args[0]->type->kind)) return bind_mismatch(b, call, "a date or time is needed", err);
    call->type = call->args[0]->type;
    return FZ_OK;
}
fz_status rule_extract(sql_bind *b, sql_bound *call, fz_error *err) {
    const char *unit;
    FZ_TRY(need_unit(b, call, 0, &unit, err));
    col_kind k = call->args[1]->type->kind;
    if (!bind_is_temporal(k) && !bind_is_interval(k)) return bind_mismatch(b, call, "a date, time or interval is needed", err);
    call->type = col_simple(COL_BIGINT, call->args[1]->type->nullable);
    return FZ_OK;
}
/* YEAR(x) is EXTRACT(YEAR FROM x); `variant` is the unit's place in unit_names. */
fz_status rule_extract_unit(sql_bind *b, sql_bound *call, fz_error *err) {
    const char *unit = unit_names[call->fn->variant];
    sql_bound *x = call->args[0];
    if (!bind_is_temporal(x->type->kind)) return bind_mismatch(b, call, "a date or time is needed", err);
    call->args = FZ_ANEWN(b->a, sql_bound *, 2);
    call->args[0] = bind_text_literal(b, unit, strlen(unit), call->pos);
    call->args[1] = x;
    call->n_args = 2;
    become(call, SQL_K_EXTRACT);
    return rule_extract(b, call, err);
}
/* TIMESTAMPADD and TIMESTAMPDIFF (variant 1). */
fz_status rule_timestampadd(sql_bind *b, sql_bound *call, fz_error *err) {
    const char *unit;
    FZ_TRY(need_unit(b, call, 0, &unit, err));
    const col_type *t = call->args[2]->type;
    if (!bind_is_temporal(t->kind)) return bind_mismatch(b, call, "a date or time is needed", err);
    if (call->fn->variant == 1) {
        if (!bind_is_temporal(call->args[1]->type->kind)) return bind_mismatch(b, call, "a date or time is needed", err);
        call->type = col_simple(COL_INT, bind_any_nullable(call));
        return FZ_OK;
    }
    if (!bind_is_integer(call->args[1]->type->kind) && call->args[1]->type->kind != COL_NULL) return bind_mismatch(b, call, "the count is a whole number", err);
    call->args[1] = bind_cast(b, call->args[1], col_simple(COL_BIGINT, true));
    if (t->kind == COL_DATE && is_time_unit(unit)) {
        t = col_sized(b->a, COL_TIMESTAMP, 6, 0, t->nullable); /* as in Flink, whatever the unit */
        call->args[2] = bind_cast(b, call->args[2], t);
    }
    call->type = col_with_null(b->a, t, bind_any_nullable(call));
    return FZ_OK;
}
fz_status rule_overlaps(sql_bind *b, sql_bound *call, fz_error *err) {
    for (uint32_t i = 0; i < 4; i++) {
        col_kind k = call->args[i]->type->kind;
        if (!bind_is_temporal(k) && !(i % 2 && bind_is_interval(k))) return bind_mismatch(b, call, NULL, err);
    }
    const col_type *t[2] = {call->args[0]->type, call->args[2]->type};
    const col_type *c = bind_common_type(b->a, t, 2);
    if (!c) return bind_mismatch(b, call, "the periods have different types", err);
    for (uint32_t i = 0; i < 4; i++)
        if (bind_is_temporal(call->args[i]->type->kind)) call->args[i] = bind_cast(b, call->args[i], c);
    call->type = col_simple(COL_BOOLEAN, bind_any_nullable(call));
    return FZ_OK;
}
/* (number [, precision]) or (text [, pattern [, zone]]) */
fz_status rule_to_timestamp_ltz(sql_bind *b, sql_bound *call, fz_error *err) {
    const col_type *t = call->args[0]->type;
    if (t->kind == COL_NULL) t = (call->args[0] = bind_cast(b, call->args[0], col_simple(COL_BIGINT, true)))->type;
    bool text = col_is_text(t->kind);
    if (!text && (!bind_is_numeric(t->kind) || call->n_args > 2)) return bind_mismatch(b, call, NULL, err);
    for (uint32_t i = 1; i < call->n_args; i++) {
        const col_type *x = call->args[i]->type;
        if (x->kind == COL_NULL) call->args[i] = bind_cast(b, call->args[i], text ? col_string(true) : col_simple(COL_INT, true));
        else if (text ? !col_is_text(x->kind) : !bind_is_integer(x->kind)) return bind_mismatch(b, call, NULL, err);
    }
    call->type = col_sized(b->a, COL_TIMESTAMP_LTZ, 3, 0, true);
    return FZ_OK;
}
