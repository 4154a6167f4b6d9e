/* Casts between numbers, booleans, bytes and texts, and of nested values; lengths of CHAR and VARCHAR. Casts that touch dates and times, and text
 * to numbers, stand in fn_temporal.c. */
#include "col/decimal.h"
#include "col/numtext.h"
#include "exec/exec_int.h"
#include <math.h>
#include <stdio.h>

static bool is_int(col_kind k) { return k >= COL_TINYINT && k <= COL_BIGINT; }
static bool is_binary(col_kind k) { return k == COL_BINARY || k == COL_VARBINARY; }

/* ---- numbers ------------------------------------------------------------------------------------------------------------------- */

static int32_t narrow(col_kind k, int64_t v) { return k == COL_TINYINT ? (int8_t)v : k == COL_SMALLINT ? (int16_t)v : (int32_t)v; }
static void put_int(ex_call *c, uint32_t i, int64_t v) {
    if (c->type->kind == COL_BIGINT) c->out->i64[i] = v;
    else c->out->i32[i] = narrow(c->type->kind, v);
}
/* By pointer: the value is written while the arguments of the call are evaluated. */
static void put_dec(ex_call *c, uint32_t i, bool ok, const col_i128 *v) {
    if (ok) c->out->i128[i] = *v;
    else ex_put_null(c, i);
}
static void k_int_to_number(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t v = ex_int(c, 0, i);
        col_i128 d = 0;
        switch (c->type->kind) {
        case COL_FLOAT: c->out->f32[i] = (float)v; break;
        case COL_DOUBLE: c->out->f64[i] = (double)v; break;
        case COL_DECIMAL:
            if (ex_live(c, i)) put_dec(c, i, dcm_from_long(v, c->type->precision, c->type->scale, &d), &d);
            break;
        default: put_int(c, i, v);
        }
    }
}
/* Java's narrowing: to INT first, then to the narrower kinds. */
static void float_to_number(ex_call *c, uint32_t i, double v) {
    col_i128 d = 0;
    switch (c->type->kind) {
    case COL_FLOAT: c->out->f32[i] = (float)v; break;
    case COL_DOUBLE: c->out->f64[i] = v; break;
    case COL_BIGINT: c->out->i64[i] = nt_double_to_long(v); break;
    case COL_DECIMAL:
        if (v != v || v - v != 0) ex_fail_row(c, i, "cast.failed", "%s is no DECIMAL", v != v ? "NaN" : "Infinity");
        else put_dec(c, i, dcm_from_double(v, c->type->precision, c->type->scale, &d), &d);
        break;
    default: put_int(c, i, nt_double_to_int(v));
    }
}
static void k_float_to_number(ex_call *c) {
    bool single = ex_kind(c, 0) == COL_FLOAT;
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) float_to_number(c, i, single ? (double)ex_f32(c, 0, i) : ex_f64(c, 0, i));
}
static void k_decimal_to_number(ex_call *c) {
    const col_type *from = c->arg[0]->type;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        col_i128 v = ex_dec(c, 0, i), d = 0;
        switch (c->type->kind) {
        case COL_FLOAT: c->out->f32[i] = (float)dcm_to_double(v, from->precision, from->scale); break;
        case COL_DOUBLE: c->out->f64[i] = dcm_to_double(v, from->precision, from->scale); break;
        case COL_DECIMAL: put_dec(c, i, dcm_rescale(v, from->scale, c->type->precision, c->type->scale, &d), &d); break;
        default: put_int(c, i, dcm_to_long(v, from->scale));
        }
    }
}
static void k_bool_to_number(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        uint8_t v = ex_bool(c, 0, i);
        switch (c->type->kind) {
        case COL_FLOAT: c->out->f32[i] = v; break;
        case COL_DOUBLE: c->out->f64[i] = v; break;
        case COL_DECIMAL: {
            col_i128 d = 0;
            if (ex_live(c, i)) put_dec(c, i, dcm_from_long(v, c->type->precision, c->type->scale, &d), &d);
            break;
        }
        default: put_int(c, i, v);
        }
    }
}
static void k_int_to_bool(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) c->out->u8[i] = ex_int(c, 0, i) != 0;
}
static void k_text_to_bool(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        bool v;
        if (nt_parse_bool(s, &v)) c->out->u8[i] = v;
        else ex_fail_row(c, i, "cast.failed", "'%.*s' is no BOOLEAN", (int)(s.n > 200 ? 200 : s.n), s.p);
    }
}

/* Flink folds a constant into a literal of seven digits, which cannot be NaN or infinite; columns and TRY_CAST keep the whole FLOAT. */
static void k_text_to_float(ex_call *c) {
    ex_cast_temporal(ex_kind(c, 0), COL_FLOAT)(c);
    if (c->step[0] || c->try_cast || (c->out->valid && !c->out->valid[0])) return;
    float v = c->out->f32[0];
    if (!isfinite(v)) {
        ex_fail_row(c, 0, "cast.failed", "a constant FLOAT cannot be NaN or infinite");
        return;
    }
    char text[32];
    double seven = 0;
    int n = snprintf(text, sizeof text, "%.6e", (double)v);
    if (fz_parse_f64((fz_sv){text, (size_t)n}, &seven)) c->out->f32[0] = (float)seven;
}

/* ---- to text: the whole text --------------------------------------------------------------------------------------------------- */

static void k_number_to_text(ex_call *c) {
    const col_type *from = c->arg[0]->type;
    char text[DCM_TEXT_MAX > NT_TEXT_MAX ? DCM_TEXT_MAX : NT_TEXT_MAX];
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        size_t n;
        switch (from->kind) {
        case COL_FLOAT: n = nt_float_text(ex_f32(c, 0, i), text); break;
        case COL_DOUBLE: n = nt_double_text(ex_f64(c, 0, i), text); break;
        case COL_DECIMAL: n = dcm_text(ex_dec(c, 0, i), from->scale, text); break;
        default: n = nt_int_text(ex_int(c, 0, i), text);
        }
        ex_put(c, i, text, n);
    }
}
static void k_bool_to_text(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) ex_put(c, i, ex_bool(c, 0, i) ? "TRUE" : "FALSE", ex_bool(c, 0, i) ? 4 : 5);
}
/* Bytes that are no UTF-8 become U+FFFD. */
static void k_bytes_to_text(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        if (fz_utf8_valid(s.p, s.n)) {
            ex_put(c, i, s.p, s.n);
            continue;
        }
        char *o = ex_put_begin(c, i, s.n * 3);
        size_t at = 0;
        for (size_t k = 0; k < s.n;) at += fz_utf8_put(o + at, fz_utf8_next(s.p, s.n, &k));
        ex_put_end(c, i, at);
    }
}
static void k_nested_to_text(ex_call *c) {
    fz_buf b = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        b.len = 0;
        ex_value_text(&b, c->arg[0], ex_ix(c, 0, i), c->time_zone);
        ex_put(c, i, b.data, b.len);
    }
    fz_buf_free(&b);
}

/* ---- the same bytes under another type; lengths -------------------------------------------------------------------------------- */

/* For constants as for rows: the argument has c->n rows either way, since a constant call has one. */
static void k_retype(ex_call *c) {
    col_vec *v = FZ_ANEW(c->a, col_vec);
    *v = *c->arg[0];
    v->type = c->type;
    c->out = v;
}
static size_t chars_to_bytes(fz_sv s, int32_t chars, int32_t *had) {
    size_t i = 0;
    int32_t n = 0;
    while (i < s.n && n < chars) {
        (void)fz_utf8_next(s.p, s.n, &i);
        n++;
    }
    *had = n;
    return i;
}
static void fit_text(ex_call *c, uint32_t i, fz_sv s) {
    int32_t had, want = c->type->precision;
    size_t n = chars_to_bytes(s, want, &had), fill = c->type->kind == COL_CHAR && had < want ? (size_t)(want - had) : 0;
    char *o = ex_put_begin(c, i, n + fill);
    if (n) memcpy(o, s.p, n);
    if (fill) memset(o + n, ' ', fill);
    ex_put_end(c, i, n + fill);
}
static void k_fit_text(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (ex_live(c, i)) fit_text(c, i, ex_sv(c, 0, i));
}
static void k_fit_bytes(ex_call *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        if (!ex_live(c, i)) continue;
        fz_sv s = ex_sv(c, 0, i);
        size_t want = (size_t)c->type->precision, n = s.n < want ? s.n : want, fill = c->type->kind == COL_BINARY ? want - n : 0;
        char *o = ex_put_begin(c, i, n + fill);
        if (n) memcpy(o, s.p, n);
        if (fill) memset(o + n, 0, fill);
        ex_put_end(c, i, n + fill);
    }
}
static ex_kernel text_kernel(const col_type *from) {
    if (is_int(from->kind) || from->kind == COL_FLOAT || from->kind == COL_DOUBLE || from->kind == COL_DECIMAL) return k_number_to_text;
    if (from->kind == COL_BOOLEAN) return k_bool_to_text;
    if (is_binary(from->kind)) return k_bytes_to_text;
    if (from->kind >= COL_ARRAY) return k_nested_to_text;
    return ex_cast_temporal(from->kind, COL_VARCHAR);
}
/* The whole text first, then its length. */
static void k_text_fitted(ex_call *c) {
    ex_call whole = *c;
    whole.type = col_string(true);
    whole.out = col_vec_new(c->a, whole.type, c->n);
    if (c->live) {
        whole.out->valid = fz_arena_alloc(c->a, c->n);
        memcpy(whole.out->valid, c->live, c->n);
    }
    text_kernel(c->arg[0]->type)(&whole);
    for (uint32_t i = 0; i < c->n; i++) {
        bool there = ex_live(c, i) && i < whole.text_next && (!whole.out->valid || whole.out->valid[i]);
        if (there) fit_text(c, i, (fz_sv){whole.out->bytes + whole.out->off[i], whole.out->off[i + 1] - whole.out->off[i]});
        else if (ex_live(c, i)) ex_put_null(c, i);
    }
}

/* ---- nested -------------------------------------------------------------------------------------------------------------------- */

static col_vec *cast_child(ex_call *c, const col_vec *v, const col_type *to, ex_errors *errors) {
    if (col_type_eq(v->type, to, false)) return (col_vec *)v;
    const col_vec *flat = v->idx ? col_flat(c->a, v) : v, *arg[1] = {flat};
    static const uint32_t step[1] = {1};
    void *slot = NULL;
    ex_call sub = *c;
    sub.n = flat->len;
    sub.arg = arg;
    sub.step = step;
    sub.type = to;
    sub.live = flat->valid;
    sub.slot = &slot;
    sub.errors = errors;
    sub.text_cap = sub.text_len = 0;
    sub.text_next = 0;
    if (flat->type->kind == COL_NULL || !flat->len) return col_vec_nulls(c->a, to, flat->len);
    sub.out = col_vec_nulls(c->a, to, flat->len);
    memset(sub.out->valid, 1, flat->len);
    if (flat->valid) memcpy(sub.out->valid, flat->valid, flat->len);
    col_vec *made = sub.out;
    ex_cast_of(flat->type, to)(&sub);
    for (uint32_t i = sub.text_next; sub.out == made && col_is_varlen(to->kind) && i < sub.n; i++) made->off[i + 1] = (uint32_t)sub.text_len;
    return sub.out;
}
/* Lists fail as a whole when an element fails. */
static void fail_owner(ex_call *c, const col_vec *v, const ex_errors *errors) {
    for (uint32_t k = 0; k < errors->n; k++) {
        uint32_t row = errors->v[k].row;
        for (uint32_t i = 0; v->off && i < c->n; i++)
            if (v->off[i] <= errors->v[k].row && errors->v[k].row < v->off[i + 1]) row = i;
        ex_fail_row(c, row, errors->v[k].code, "%s", errors->v[k].message);
    }
}
static void k_nested(ex_call *c) {
    const col_vec *v = c->arg[0];
    col_vec *o = FZ_ANEW(c->a, col_vec);
    *o = *v;
    o->type = c->type;
    o->child = FZ_ANEWN(c->a, col_vec *, v->n_child + 1);
    if (v->valid) {
        o->valid = fz_arena_alloc(c->a, v->len);
        memcpy(o->valid, v->valid, v->len);
    }
    c->out = o;
    for (uint32_t k = 0; k < v->n_child; k++) {
        ex_errors errors = {0};
        o->child[k] = cast_child(c, v->child[k], c->type->fields[k].type, &errors);
        fail_owner(c, v, &errors);
    }
}

/* ---- choosing ------------------------------------------------------------------------------------------------------------------ */

static void k_null(ex_call *c) { c->out = col_vec_nulls(c->a, c->type, c->n); }

ex_kernel ex_cast_basic(col_kind f, col_kind t) {
    bool number = t >= COL_TINYINT && t <= COL_DECIMAL;
    if (is_int(f) && number) return k_int_to_number;
    if ((f == COL_FLOAT || f == COL_DOUBLE) && number) return k_float_to_number;
    if (f == COL_DECIMAL && number) return k_decimal_to_number;
    if (f == COL_BOOLEAN && number) return k_bool_to_number;
    if (is_int(f) && t == COL_BOOLEAN) return k_int_to_bool;
    if (col_is_text(f) && t == COL_BOOLEAN) return k_text_to_bool;
    if (col_is_text(f) && t == COL_FLOAT) return k_text_to_float;
    return NULL;
}
static ex_kernel cast_to_text(const col_type *from, const col_type *to) {
    if (col_is_text(from->kind)) return to->kind == COL_VARCHAR && to->precision >= from->precision ? k_retype : k_fit_text;
    bool whole = to->kind == COL_VARCHAR && (to->precision == COL_MAX_LENGTH || from->kind == COL_FLOAT || from->kind == COL_DOUBLE); /* Flink does not cut these */
    return whole ? text_kernel(from) : k_text_fitted;
}
static bool same_form(const col_type *x, const col_type *y) { return x->kind == y->kind && x->precision == y->precision && x->scale == y->scale && x->kind < COL_ARRAY; }

ex_kernel ex_cast_of(const col_type *from, const col_type *to) {
    if (from->kind == COL_NULL) return k_null;
    if (same_form(from, to)) return k_retype;
    if (col_is_text(to->kind)) return cast_to_text(from, to);
    if (from->kind >= COL_ARRAY) return k_nested;
    if (is_binary(to->kind)) return to->kind == COL_VARBINARY && to->precision == COL_MAX_LENGTH ? k_retype : k_fit_bytes;
    ex_kernel k = ex_cast_basic(from->kind, to->kind);
    return k ? k : ex_cast_temporal(from->kind, to->kind);
}
