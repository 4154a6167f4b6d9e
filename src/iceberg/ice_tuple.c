/* Partition tuples as text: the directory form and transforms as people read them. See iceberg.h.
 * Source: PartitionSpec.partitionToPath, Transform.toHumanString and TransformUtil of the Java implementation. */
#include "col/datetime.h"
#include "col/decimal.h"
#include "col/numtext.h"
#include "iceberg/iceberg_int.h"

void ice_url_encode(fz_buf *b, fz_sv s) {
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '*' || c == '_') fz_buf_putc(b, (char)c);
        else if (c == ' ') fz_buf_putc(b, '+');
        else {
            fz_buf_putc(b, '%');
            fz_buf_putc(b, hex[c >> 4]);
            fz_buf_putc(b, hex[c & 15]);
        }
    }
}

static void put_day(fz_buf *b, int64_t days) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    fz_buf_printf(b, "%04d-%02d-%02d", y, m, d);
}

/* java.time's LocalTime.toString: seconds only when they or the fraction are not zero, the fraction in groups of three digits. */
static void put_time(fz_buf *b, int64_t us) {
    int64_t s = us / DT_US_PER_SECOND, f = us % DT_US_PER_SECOND;
    fz_buf_printf(b, "%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60));
    if (s % 60 || f) fz_buf_printf(b, ":%02d", (int)(s % 60));
    if (f % 1000) fz_buf_printf(b, ".%06d", (int)f);
    else if (f) fz_buf_printf(b, ".%03d", (int)(f / 1000));
}

/* DateTimeFormatter.ISO_LOCAL_DATE_TIME: seconds always, the fraction without trailing zeros; a zone is that of UTC as +00:00. */
static void put_timestamp(fz_buf *b, int64_t us, bool zone) {
    int64_t days = dt_floor_div(us, DT_US_PER_DAY), rest = us - days * DT_US_PER_DAY;
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    fz_buf_printf(b, "%s%04d-%02d-%02dT", y < 0 ? "-" : y > 9999 ? "+" : "", y < 0 ? -y : y, m, d);
    int64_t s = rest / DT_US_PER_SECOND;
    int f = (int)(rest % DT_US_PER_SECOND), digits = 6;
    fz_buf_printf(b, "%02d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    for (; f && f % 10 == 0; f /= 10) digits--;
    if (f) fz_buf_printf(b, ".%0*d", digits, f);
    if (zone) fz_buf_puts(b, "+00:00");
}

static void put_uuid(fz_buf *b, fz_sv s) {
    for (size_t i = 0; i < s.n; i++) fz_buf_printf(b, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned)(uint8_t)s.p[i]);
}

static void put_identity(fz_buf *b, const ice_type *type, const ice_value *v) {
    char text[DCM_TEXT_MAX];
    switch (v->kind) {
    case ICE_BOOLEAN: fz_buf_puts(b, v->i ? "true" : "false"); return;
    case ICE_FLOAT: fz_buf_append(b, text, nt_float_text((float)v->d, text)); return;
    case ICE_DOUBLE: fz_buf_append(b, text, nt_double_text(v->d, text)); return;
    case ICE_DECIMAL: fz_buf_append(b, text, dcm_java_text(v->dec, type ? type->scale : 0, text)); return;
    case ICE_DATE: put_day(b, v->i); return;
    case ICE_TIME: put_time(b, v->i); return;
    case ICE_TIMESTAMP:
    case ICE_TIMESTAMPTZ: put_timestamp(b, v->i, v->kind == ICE_TIMESTAMPTZ); return;
    case ICE_STRING: fz_buf_append(b, v->s.p, v->s.n); return;
    case ICE_UUID: put_uuid(b, v->s); return;
    case ICE_FIXED:
    case ICE_BINARY: fz_buf_base64(b, v->s.p, v->s.n); return;
    default: fz_buf_printf(b, "%lld", (long long)v->i);
    }
}

void ice_value_human(fz_buf *b, const ice_transform *t, const ice_type *type, const ice_value *v) {
    if (v->is_null || t->kind == ICE_VOID) {
        fz_buf_puts(b, "null");
        return;
    }
    int64_t i = ice_has_bytes(v->kind) || v->kind == ICE_DECIMAL ? 0 : v->i;
    switch (t->kind) {
    case ICE_YEAR: fz_buf_printf(b, "%04lld", (long long)(1970 + i)); return;
    case ICE_MONTH: fz_buf_printf(b, "%04lld-%02d", (long long)(1970 + dt_floor_div(i, 12)), (int)(1 + dt_floor_mod(i, 12))); return;
    case ICE_DAY: put_day(b, i); return;
    case ICE_HOUR:
        put_day(b, dt_floor_div(i, 24));
        fz_buf_printf(b, "-%02d", (int)dt_floor_mod(i, 24));
        return;
    default: put_identity(b, type, v);
    }
}

char *ice_tuple_path(fz_arena *a, const ice_spec *spec, const ice_type *const *types, ice_tuple t) {
    fz_buf b = {0}, text = {0};
    for (uint32_t i = 0; i < spec->n_fields && i < t.n; i++) {
        if (i) fz_buf_putc(&b, '/');
        ice_url_encode(&b, fz_sv_of(spec->fields[i].name));
        fz_buf_putc(&b, '=');
        text.len = 0;
        ice_value_human(&text, &spec->fields[i].transform, types ? types[i] : NULL, &t.v[i]);
        ice_url_encode(&b, (fz_sv){(const char *)text.data, text.len});
    }
    char *r = fz_arena_strndup(a, b.data ? (const char *)b.data : "", b.len);
    fz_buf_free(&b);
    fz_buf_free(&text);
    return r;
}
