/* Printing by compiled java.time patterns (dt_pattern_format in dtpattern.h).
 *
 * Invariants
 *  1. A timestamp has no zone: letters that want one fail, as in Java.
 */
#include <stdio.h>

#include "col/dt_int.h"
#include "col/numtext.h"

typedef struct moment { dt_fields f; int64_t days; } moment;

static int64_t value_of(dt_field k, const moment *m) {
    const dt_fields *f = &m->f;
    int64_t y, of_day = f->hour * 3600LL + f->minute * 60LL + f->second;
    switch (k) {
    case DF_ERA: return f->year > 0;
    case DF_YEAR: return f->year;
    case DF_YEAR_OF_ERA: return f->year > 0 ? f->year : 1 - f->year;
    case DF_QUARTER: return (f->month + 2) / 3;
    case DF_MONTH: return f->month;
    case DF_DAY: return f->day;
    case DF_DAY_OF_YEAR: return m->days - dt_days_of(f->year, 1, 1) + 1;
    case DF_DAY_OF_WEEK: return dt_floor_mod(m->days + 3, 7) + 1;
    case DF_ALIGNED_DAY: return (f->day - 1) % 7 + 1;
    case DF_MJD: return m->days + 40587;
    case DF_LOCAL_DOW: return dt_local_dow(m->days);
    case DF_WEEK_OF_MONTH: return dt_week_of_month(m->days);
    case DF_WEEK: return dt_week_of_year(m->days, &y);
    case DF_WEEK_YEAR: dt_week_of_year(m->days, &y); return y;
    case DF_HOUR: return f->hour;
    case DF_MINUTE: return f->minute;
    case DF_SECOND: return f->second;
    case DF_NANO: return f->nano;
    case DF_MILLI_OF_DAY: return of_day * 1000 + f->nano / 1000000;
    case DF_NANO_OF_DAY: return of_day * 1000000000 + f->nano;
    case DF_AMPM: return f->hour / 12;
    case DF_HOUR_OF_AMPM: return f->hour % 12;
    case DF_CLOCK_HOUR_OF_AMPM: return f->hour % 12 ? f->hour % 12 : 12;
    case DF_CLOCK_HOUR: return f->hour ? f->hour : 24;
    case DF_PERIOD: return dt_period_of(f->hour * 60 + f->minute);
    case DF_OFFSET: case DF_COUNT: break;
    }
    return 0;
}

static fz_status print_number(const dt_node *d, int64_t v, fz_buf *out, fz_error *err) {
    char t[NT_TEXT_MAX];
    int64_t a = v < 0 ? -v : v;
    if (d->kind == DN_REDUCED) a %= 100;
    size_t n = nt_int_text(a, t);
    if (n > (size_t)d->max || (v < 0 && d->sign == DS_NOT_NEGATIVE && d->kind != DN_REDUCED))
        return fz_fail(err, FZ_DATA, "datetime.format", "the value %lld does not fit into the %d digits of its field", (long long)v, d->max);
    if (v < 0 && d->kind != DN_REDUCED) fz_buf_putc(out, '-');
    else if (d->sign == DS_EXCEEDS_PAD && n > (size_t)d->min) fz_buf_putc(out, '+');
    for (size_t k = n; k < (size_t)d->min; k++) fz_buf_putc(out, '0');
    fz_buf_append(out, t, n);
    return FZ_OK;
}

static void print_fraction(const dt_node *d, int32_t nano, fz_buf *out) {
    char t[9];
    for (int i = 8; i >= 0; i--, nano /= 10) t[i] = (char)('0' + nano % 10);
    fz_buf_append(out, t, (size_t)d->max);
}

static fz_status print_node(const dt_pattern *p, const dt_node *d, const moment *m, fz_buf *out, fz_error *err) {
    switch (d->kind) {
    case DN_LITERAL: fz_buf_append(out, p->text.data + d->at, d->n); return FZ_OK;
    case DN_NUMBER: case DN_REDUCED: return print_number(d, value_of(d->field, m), out, err);
    case DN_FRACTION: print_fraction(d, m->f.nano, out); return FZ_OK;
    case DN_TEXT: {
        uint32_t n;
        const char *const *names = dt_names(d->field, d->style, &n);
        fz_buf_puts(out, names[value_of(d->field, m) - dt_name_value(d->field, 0)]);
        return FZ_OK;
    }
    default: return fz_fail(err, FZ_DATA, "datetime.format", "a timestamp has no time zone to print");
    }
}

static fz_status print_nodes(const dt_pattern *p, uint32_t from, uint32_t to, const moment *m, fz_buf *out, fz_error *err) {
    for (uint32_t k = from; k < to; k++) {
        const dt_node *d = &p->v[k];
        size_t at = out->len;
        if (d->kind == DN_OPTION_END) continue;
        if (d->kind == DN_OPTION) {
            bool zoned = false; /* an option with a zone is left out as a whole */
            for (uint32_t j = k + 1; j < d->end; j++) zoned |= p->v[j].kind == DN_OFFSET || p->v[j].kind == DN_LOCAL_OFFSET || p->v[j].kind == DN_ZONE;
            if (!zoned) FZ_TRY(print_nodes(p, k + 1, d->end, m, out, err));
            k = d->end;
            continue;
        }
        FZ_TRY(print_node(p, d, m, out, err));
        size_t n = out->len - at, pad = (size_t)d->pad;
        if (!pad) continue;
        if (n > pad) return fz_fail(err, FZ_DATA, "datetime.format", "%zu characters do not fit into a pad width of %zu", n, pad);
        fz_buf_reserve(out, pad - n);
        memmove(out->data + at + pad - n, out->data + at, n);
        memset(out->data + at, ' ', pad - n);
        out->len = at + pad;
    }
    return FZ_OK;
}

fz_status dt_pattern_format(const dt_pattern *p, int64_t us, fz_buf *out, fz_error *err) {
    moment m;
    dt_fields_of(us, &m.f);
    m.days = dt_floor_div(us, DT_US_PER_DAY);
    size_t at = out->len;
    fz_status st = print_nodes(p, 0, p->n, &m, out, err);
    if (st != FZ_OK) out->len = at;
    return st;
}
