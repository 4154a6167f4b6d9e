/* Which metrics are kept for which column. See iceberg.h; source: MetricsConfig of the Java implementation. */
#include "iceberg/iceberg_int.h"

enum { MODE_FULL = -1, MODE_NONE = 0, MODE_COUNTS = -2, MODE_DEFAULT = 16 };
#define UNSET INT32_MIN

typedef struct leaves { int32_t *ids; int *modes; const char **names; bool *repeated; uint32_t n; } leaves;

static int parse_mode(const char *s, int dflt) {
    int64_t n;
    if (!s) return dflt;
    if (fz_ieq(s, "none")) return MODE_NONE;
    if (fz_ieq(s, "counts")) return MODE_COUNTS;
    if (fz_ieq(s, "full")) return MODE_FULL;
    size_t len = strlen(s);
    bool form = len > 10 && strncasecmp(s, "truncate(", 9) == 0 && s[len - 1] == ')';
    return form && fz_parse_i64((fz_sv){s + 9, len - 10}, &n) && n > 0 && n <= INT32_MAX ? (int)n : dflt;
}

static uint32_t count_leaves(const ice_field *f, uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += ice_is_nested(f[i].type->kind) ? count_leaves(f[i].type->fields, f[i].type->n_fields) : 1;
    return sum;
}

/* Java's order when the number of columns is limited: leaves of a struct before those of its nested fields. */
static void collect(fz_arena *a, const ice_field *f, uint32_t n, const char *prefix, bool repeated, leaves *out) {
    for (uint32_t i = 0; i < n; i++) {
        if (ice_is_nested(f[i].type->kind)) continue;
        out->ids[out->n] = f[i].id;
        out->names[out->n] = *prefix ? fz_arena_printf(a, "%s.%s", prefix, f[i].name) : f[i].name;
        out->modes[out->n] = UNSET;
        out->repeated[out->n++] = repeated;
    }
    for (uint32_t i = 0; i < n; i++) {
        const ice_type *t = f[i].type;
        if (!ice_is_nested(t->kind)) continue;
        collect(a, t->fields, t->n_fields, *prefix ? fz_arena_printf(a, "%s.%s", prefix, f[i].name) : f[i].name, repeated || t->kind != ICE_STRUCT, out);
    }
}

static uint32_t count_fields(const ice_field *f, uint32_t n) {
    uint32_t sum = n;
    for (uint32_t i = 0; i < n; i++) sum += count_fields(f[i].type->fields, f[i].type->n_fields);
    return sum;
}

static void set_mode(leaves *l, int32_t id, int mode) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->ids[i] == id) l->modes[i] = mode;
}

/* Columns that the table is sorted by keep bounds at least truncated. */
static void sorted_columns(const ice_metadata *m, leaves *l, int dflt) {
    for (uint32_t i = 0; i < m->sort_order->n_fields; i++) {
        const ice_sort_field *f = &m->sort_order->fields[i];
        if (f->transform.kind == ICE_BUCKET || f->transform.kind == ICE_VOID || f->transform.kind == ICE_UNKNOWN_TRANSFORM) return;
        set_mode(l, f->source_id, dflt == MODE_NONE || dflt == MODE_COUNTS ? MODE_DEFAULT : dflt);
    }
}

static void sort_by_id(leaves *l) {
    for (uint32_t i = 1; i < l->n; i++)
        for (uint32_t k = i; k > 0 && l->ids[k - 1] > l->ids[k]; k--) {
            int32_t id = l->ids[k];
            int mode = l->modes[k];
            l->ids[k] = l->ids[k - 1];
            l->modes[k] = l->modes[k - 1];
            l->ids[k - 1] = id;
            l->modes[k - 1] = mode;
        }
}

ice_metrics ice_metrics_config(fz_arena *a, const ice_metadata *m) {
    const ice_schema *s = m->schema;
    uint32_t n = count_leaves(s->fields, s->n_fields);
    leaves l = {FZ_ANEWN(a, int32_t, n), FZ_ANEWN(a, int, n), FZ_ANEWN(a, const char *, n), FZ_ANEWN(a, bool, n), 0};
    collect(a, s->fields, s->n_fields, "", false, &l);
    int64_t most = ice_property_i64(m, "write.metadata.metrics.max-inferred-column-defaults", 100);
    const char *said = ice_property(m, "write.metadata.metrics.default", NULL);
    int dflt = parse_mode(said, MODE_DEFAULT);
    if (!said && most >= 0 && count_fields(s->fields, s->n_fields) > most) {
        for (uint32_t i = 0; i < l.n && i < most; i++) l.modes[i] = MODE_DEFAULT;
        dflt = MODE_NONE;
    }
    sorted_columns(m, &l, dflt);
    for (uint32_t i = 0; i < l.n; i++) {
        const char *v = ice_property(m, fz_arena_printf(a, "write.metadata.metrics.column.%s", l.names[i]), NULL);
        if (v) l.modes[i] = parse_mode(v, dflt);
        if (l.modes[i] == UNSET) l.modes[i] = dflt;
        if (l.repeated[i] && l.modes[i] != MODE_NONE) l.modes[i] = MODE_COUNTS;
    }
    sort_by_id(&l);
    return (ice_metrics){l.n, l.ids, l.modes};
}

int ice_metrics_mode(const ice_metrics *c, int32_t field_id) {
    uint32_t lo = 0, hi = c->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (c->ids[mid] == field_id) return c->modes[mid];
        if (c->ids[mid] < field_id) lo = mid + 1;
        else hi = mid;
    }
    return MODE_NONE;
}
