/* Values as text and as JSON. See exec.h. */
#include "col/datetime.h"
#include "col/decimal.h"
#include "col/numtext.h"
#include "col/tz.h"
#include "exec/exec.h"
#include <math.h>

static int64_t local_us(int64_t us, const char *time_zone) {
    const tz_zone *z = tz_find(fz_sv_of(time_zone ? time_zone : "UTC"));
    return z ? tz_to_local(z, us) : us;
}

/* Kinds with a short text; false for the others. */
static bool scalar_text(fz_buf *b, const col_vec *v, uint32_t r, const char *time_zone) {
    char text[64];
    size_t n;
    const col_type *t = v->type;
    switch (t->kind) {
    case COL_BOOLEAN: fz_buf_puts(b, v->u8[r] ? "TRUE" : "FALSE"); return true;
    case COL_TINYINT: case COL_SMALLINT: case COL_INT: n = nt_int_text(v->i32[r], text); break;
    case COL_BIGINT: n = nt_int_text(v->i64[r], text); break;
    case COL_FLOAT: n = nt_float_text(v->f32[r], text); break;
    case COL_DOUBLE: n = nt_double_text(v->f64[r], text); break;
    case COL_DECIMAL: n = dcm_text(v->i128[r], t->scale, text); break;
    case COL_DATE: n = dt_date_text(v->i32[r], text); break;
    case COL_TIME: n = dt_time_text(v->i32[r], t->precision, text); break;
    case COL_TIMESTAMP: n = dt_timestamp_text(v->i64[r], t->precision, text); break;
    case COL_TIMESTAMP_LTZ: n = dt_timestamp_text(local_us(v->i64[r], time_zone), t->precision, text); break;
    case COL_INTERVAL_MONTH: n = dt_interval_month_text(v->i32[r], text); break;
    case COL_INTERVAL_DAY: n = dt_interval_day_text(v->i64[r], text); break;
    default: return false;
    }
    fz_buf_append(b, text, n);
    return true;
}

/* Bytes that are no UTF-8 become U+FFFD. */
static void text_of_bytes(fz_buf *b, fz_sv s) {
    if (fz_utf8_valid(s.p, s.n)) {
        fz_buf_append(b, s.p, s.n);
        return;
    }
    for (size_t i = 0; i < s.n;) {
        char cp[4];
        fz_buf_append(b, cp, fz_utf8_put(cp, fz_utf8_next(s.p, s.n, &i)));
    }
}

static void element_text(fz_buf *b, const col_vec *v, uint32_t r, const char *time_zone) {
    if (col_is_null(v, r)) fz_buf_puts(b, "NULL");
    else ex_value_text(b, v, r, time_zone);
}

void ex_value_text(fz_buf *b, const col_vec *vec, uint32_t row, const char *time_zone) {
    const col_vec *v = col_at(vec, &row);
    if (scalar_text(b, v, row, time_zone)) return;
    switch (v->type->kind) {
    case COL_CHAR: case COL_VARCHAR: case COL_BINARY: case COL_VARBINARY: text_of_bytes(b, col_sv(v, row)); return;
    case COL_ARRAY:
        fz_buf_putc(b, '[');
        for (uint32_t k = v->off[row]; k < v->off[row + 1]; k++) {
            if (k > v->off[row]) fz_buf_puts(b, ", ");
            element_text(b, v->child[0], k, time_zone);
        }
        fz_buf_putc(b, ']');
        return;
    case COL_MAP:
        fz_buf_putc(b, '{');
        for (uint32_t k = v->off[row]; k < v->off[row + 1]; k++) {
            if (k > v->off[row]) fz_buf_puts(b, ", ");
            element_text(b, v->child[0], k, time_zone);
            fz_buf_putc(b, '=');
            element_text(b, v->child[1], k, time_zone);
        }
        fz_buf_putc(b, '}');
        return;
    case COL_ROW:
        fz_buf_putc(b, '(');
        for (uint32_t k = 0; k < v->n_child; k++) {
            if (k) fz_buf_puts(b, ", ");
            element_text(b, v->child[k], row, time_zone);
        }
        fz_buf_putc(b, ')');
        return;
    default: return;
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------------- */

static void json_quoted(fz_buf *b, const col_vec *v, uint32_t row, const char *time_zone) {
    fz_buf t = {0};
    ex_value_text(&t, v, row, time_zone);
    fz_buf_json(b, (const char *)t.data, t.len);
    fz_buf_free(&t);
}
static bool is_number(const col_vec *v, uint32_t r) {
    col_kind k = v->type->kind;
    if (k == COL_DOUBLE) return isfinite(v->f64[r]);
    if (k == COL_FLOAT) return isfinite(v->f32[r]);
    return k >= COL_TINYINT && k <= COL_BIGINT;
}
static void json_list(fz_buf *b, const col_vec *v, uint32_t row, const char *time_zone) {
    bool map = v->type->kind == COL_MAP;
    fz_buf_putc(b, map ? '{' : '[');
    for (uint32_t k = v->off[row]; k < v->off[row + 1]; k++) {
        if (k > v->off[row]) fz_buf_putc(b, ',');
        if (map) {
            json_quoted(b, v->child[0], k, time_zone);
            fz_buf_putc(b, ':');
        }
        ex_value_json(b, v->child[map], k, time_zone);
    }
    fz_buf_putc(b, map ? '}' : ']');
}
void ex_value_json(fz_buf *b, const col_vec *vec, uint32_t row, const char *time_zone) {
    if (col_is_null(vec, row)) {
        fz_buf_puts(b, "null");
        return;
    }
    const col_vec *v = col_at(vec, &row);
    switch (v->type->kind) {
    case COL_BOOLEAN: fz_buf_puts(b, v->u8[row] ? "true" : "false"); return;
    case COL_BINARY: case COL_VARBINARY: {
        fz_sv s = col_sv(v, row);
        fz_buf_putc(b, '"');
        fz_buf_base64(b, s.p, s.n);
        fz_buf_putc(b, '"');
        return;
    }
    case COL_CHAR: case COL_VARCHAR: {
        fz_sv s = col_sv(v, row);
        fz_buf_json(b, s.p, s.n);
        return;
    }
    case COL_ARRAY: case COL_MAP: json_list(b, v, row, time_zone); return;
    case COL_ROW:
        fz_buf_putc(b, '{');
        for (uint32_t k = 0; k < v->n_child; k++) {
            if (k) fz_buf_putc(b, ',');
            fz_buf_json(b, v->type->fields[k].name, strlen(v->type->fields[k].name));
            fz_buf_putc(b, ':');
            ex_value_json(b, v->child[k], row, time_zone);
        }
        fz_buf_putc(b, '}');
        return;
    default:
        if (is_number(v, row)) scalar_text(b, v, row, time_zone);
        else json_quoted(b, v, row, time_zone);
    }
}
