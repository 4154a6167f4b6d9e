/* Type arithmetic of the binder: families, common types, which casts exist.
 * Source: Calcite's leastRestrictive, Flink's LogicalTypeMerging and LogicalTypeCasts (by behaviour). */
#include "sql/bind_int.h"

bool bind_is_integer(col_kind k) { return k >= COL_TINYINT && k <= COL_BIGINT; }
bool bind_is_exact(col_kind k) { return bind_is_integer(k) || k == COL_DECIMAL; }
bool bind_is_numeric(col_kind k) { return k >= COL_TINYINT && k <= COL_DECIMAL; }
bool bind_is_interval(col_kind k) { return k == COL_INTERVAL_MONTH || k == COL_INTERVAL_DAY; }
bool bind_is_temporal(col_kind k) { return k >= COL_DATE && k <= COL_TIMESTAMP_LTZ; }
bool bind_is_atomic(col_kind k) { return k > COL_NULL && k < COL_ARRAY; }
static bool is_binary(col_kind k) { return k == COL_BINARY || k == COL_VARBINARY; }

void bind_as_decimal(const col_type *t, int *precision, int *scale) {
    *scale = 0;
    switch (t->kind) {
    case COL_TINYINT: *precision = 3; return;
    case COL_SMALLINT: *precision = 5; return;
    case COL_INT: *precision = 10; return;
    case COL_BIGINT: *precision = 19; return;
    default: *precision = t->precision; *scale = t->scale;
    }
}

const col_type *bind_decimal(fz_arena *a, int precision, int scale, bool nullable) {
    if (precision > 38) { /* keep the whole part, give up digits of the fraction, but not below six */
        int whole = precision - scale, least = scale < 6 ? scale : 6, rest = 38 - whole;
        scale = rest > least ? rest : least;
        precision = 38;
    }
    return col_sized(a, COL_DECIMAL, precision, scale, nullable);
}

static const col_type *common_numeric(fz_arena *a, const col_type *x, const col_type *y) {
    if (x->kind == COL_DOUBLE || y->kind == COL_DOUBLE) return col_simple(COL_DOUBLE, false);
    if (x->kind == COL_FLOAT || y->kind == COL_FLOAT)
        return col_simple(x->kind == COL_DECIMAL || y->kind == COL_DECIMAL ? COL_DOUBLE : COL_FLOAT, false);
    if (x->kind != COL_DECIMAL && y->kind != COL_DECIMAL) return x->kind > y->kind ? x : y;
    int px, sx, py, sy;
    bind_as_decimal(x, &px, &sx);
    bind_as_decimal(y, &py, &sy);
    int scale = sx > sy ? sx : sy, whole = px - sx > py - sy ? px - sx : py - sy;
    if (whole + scale > 38) scale = whole < 38 ? 38 - whole : 0;
    return col_sized(a, COL_DECIMAL, whole + scale < 38 ? whole + scale : 38, scale, false);
}

static const col_type *common_sized(fz_arena *a, const col_type *x, const col_type *y, col_kind fixed, col_kind varying) {
    if (x->kind == fixed && y->kind == fixed && x->precision == y->precision) return x;
    return col_sized(a, varying, x->precision > y->precision ? x->precision : y->precision, 0, false);
}

static const col_type *common_temporal(fz_arena *a, const col_type *x, const col_type *y) {
    if ((x->kind == COL_TIME) != (y->kind == COL_TIME)) return NULL;
    if (x->kind == COL_DATE && y->kind == COL_DATE) return x;
    col_kind k = x->kind > y->kind ? x->kind : y->kind;
    int px = x->kind == COL_DATE ? 0 : x->precision, py = y->kind == COL_DATE ? 0 : y->precision;
    return col_sized(a, k, px > py ? px : py, 0, false);
}

static const col_type *common_two(fz_arena *a, const col_type *x, const col_type *y);

static const col_type *common_nested(fz_arena *a, const col_type *x, const col_type *y) {
    if (x->kind != y->kind || x->n_fields != y->n_fields) return NULL;
    col_field *f = FZ_ANEWN(a, col_field, x->n_fields);
    for (uint32_t k = 0; k < x->n_fields; k++) {
        const col_type *t[2] = {x->fields[k].type, y->fields[k].type};
        f[k] = x->fields[k];
        f[k].type = bind_common_type(a, t, 2);
        if (!f[k].type) return NULL;
    }
    if (x->kind == COL_ARRAY) return col_array(a, f[0].type, false);
    if (x->kind == COL_MAP) return col_map(a, f[0].type, f[1].type, false);
    return col_row(a, f, x->n_fields, false);
}

static const col_type *common_two(fz_arena *a, const col_type *x, const col_type *y) {
    if (x->kind == COL_NULL) return y;
    if (y->kind == COL_NULL) return x;
    if (col_is_text(x->kind) && col_is_text(y->kind)) return common_sized(a, x, y, COL_CHAR, COL_VARCHAR);
    if (is_binary(x->kind) && is_binary(y->kind)) return common_sized(a, x, y, COL_BINARY, COL_VARBINARY);
    if (bind_is_numeric(x->kind) && bind_is_numeric(y->kind)) return common_numeric(a, x, y);
    if (bind_is_temporal(x->kind) && bind_is_temporal(y->kind)) return common_temporal(a, x, y);
    if (x->kind >= COL_ARRAY) return common_nested(a, x, y);
    return x->kind == y->kind ? x : NULL;
}

const col_type *bind_common_type(fz_arena *a, const col_type *const *t, uint32_t n) {
    const col_type *r = NULL;
    bool nullable = false;
    for (uint32_t i = 0; i < n; i++) {
        nullable |= t[i]->nullable || t[i]->kind == COL_NULL;
        r = r ? common_two(a, r, t[i]) : t[i];
        if (!r) return NULL;
    }
    return r && r->kind != COL_NULL ? col_with_null(a, r, nullable) : r;
}

static bool can_cast_nested(const col_type *from, const col_type *to) {
    if (from->kind != to->kind || from->n_fields != to->n_fields) return false;
    for (uint32_t k = 0; k < from->n_fields; k++)
        if (!bind_can_cast(from->fields[k].type, to->fields[k].type)) return false;
    return true;
}

bool bind_can_cast(const col_type *from, const col_type *to) {
    col_kind f = from->kind, t = to->kind;
    if (f == COL_NULL) return true;
    if (t == COL_NULL) return false;
    if (col_is_text(t)) return true; /* everything has a text */
    if (f >= COL_ARRAY || t >= COL_ARRAY) return can_cast_nested(from, to);
    if (f == t || col_is_text(f)) return !(bind_is_interval(t) && f != t);
    if (is_binary(t)) return is_binary(f);
    if (is_binary(f)) return false;
    if (t == COL_BOOLEAN) return bind_is_integer(f);
    if (f == COL_BOOLEAN) return bind_is_numeric(t);
    if (bind_is_numeric(f) && bind_is_numeric(t)) return true;
    if (bind_is_interval(f) && bind_is_exact(t)) return true;
    if (bind_is_exact(f) && bind_is_interval(t)) return true;
    if (f == COL_DATE) return t == COL_TIMESTAMP || t == COL_TIMESTAMP_LTZ;
    if (f == COL_TIME) return t == COL_TIMESTAMP || t == COL_TIMESTAMP_LTZ;
    if (f == COL_TIMESTAMP || f == COL_TIMESTAMP_LTZ) return bind_is_temporal(t);
    return false;
}

bool bind_can_store(const col_type *from, const col_type *to) {
    col_kind f = from->kind, t = to->kind;
    if (f == COL_NULL) return true;
    if (f >= COL_ARRAY || t >= COL_ARRAY) {
        if (f != t || from->n_fields != to->n_fields) return false;
        for (uint32_t k = 0; k < from->n_fields; k++)
            if (!bind_can_store(from->fields[k].type, to->fields[k].type)) return false;
        return true;
    }
    if (f == t) return true;
    if (t == COL_VARCHAR || t == COL_CHAR) return col_is_text(f);
    if (is_binary(t)) return is_binary(f);
    if (bind_is_integer(t)) return bind_is_integer(f) && f < t;
    if (t == COL_DECIMAL) return bind_is_numeric(f);
    if (t == COL_FLOAT) return bind_is_numeric(f) && f != COL_DOUBLE;
    if (t == COL_DOUBLE) return bind_is_numeric(f);
    if (t == COL_DATE || t == COL_TIME) return f == COL_TIMESTAMP;
    if (t == COL_TIMESTAMP || t == COL_TIMESTAMP_LTZ) return f == COL_TIMESTAMP || f == COL_TIMESTAMP_LTZ || (f == COL_DATE && t == COL_TIMESTAMP);
    return false;
}

const char *bind_type_name(fz_arena *a, const col_type *t) {
    fz_buf b = {0};
    col_type_text(&b, t);
    const char *s = fz_arena_strndup(a, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return s;
}
