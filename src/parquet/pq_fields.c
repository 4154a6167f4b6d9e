/* The schema of a file as fields that ask for it: what a reader of an unknown file wants, and what fuzzing needs. */
#include "parquet/pq_read_int.h"

static bool is(const pq_node *n, int logical, int converted) { return n->logical == logical || n->converted == converted; }
static const col_type *decimal_type(const pq_node *n, fz_arena *a) {
    if (n->precision < 1 || n->precision > 38 || n->scale < 0 || n->scale > n->precision) return NULL;
    return col_sized(a, COL_DECIMAL, n->precision, n->scale, true);
}
static const col_type *leaf_type(const pq_node *n, fz_arena *a, pq_field *f) {
    bool time = is(n, PQ_LOGICAL_TIME, PQ_CONV_TIME_MICROS) || n->converted == PQ_CONV_TIME_MILLIS;
    bool timestamp = is(n, PQ_LOGICAL_TIMESTAMP, PQ_CONV_TIMESTAMP_MICROS) || n->converted == PQ_CONV_TIMESTAMP_MILLIS;
    if (is(n, PQ_LOGICAL_DECIMAL, PQ_CONV_DECIMAL) && n->type != PQ_BOOLEAN && n->type != PQ_FLOAT && n->type != PQ_DOUBLE) return decimal_type(n, a);
    switch (n->type) {
    case PQ_BOOLEAN: return col_simple(COL_BOOLEAN, true);
    case PQ_INT32: return time ? col_sized(a, COL_TIME, 3, 0, true) : col_simple(is(n, PQ_LOGICAL_DATE, PQ_CONV_DATE) ? COL_DATE : COL_INT, true);
    case PQ_INT64:
        if (time) return col_sized(a, COL_TIME, 3, 0, true);
        if (timestamp) return col_sized(a, n->utc ? COL_TIMESTAMP_LTZ : COL_TIMESTAMP, 6, 0, true);
        return col_simple(COL_BIGINT, true);
    case PQ_FLOAT: return col_simple(COL_FLOAT, true);
    case PQ_DOUBLE: return col_simple(COL_DOUBLE, true);
    case PQ_BYTE_ARRAY: {
        bool text = is(n, PQ_LOGICAL_STRING, PQ_CONV_UTF8) || n->logical == 4 || n->logical == 12 || n->converted == 4 || n->converted == 19; /* ENUM, JSON */
        return text ? col_string(true) : col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true);
    }
    case PQ_FLBA:
        f->is_fixed = true;
        f->is_uuid = n->logical == PQ_LOGICAL_UUID && n->type_length == 16;
        return col_sized(a, COL_BINARY, n->type_length, 0, true);
    default: return NULL; /* INT96 */
    }
}
static fz_status field_of(const pq_reader *r, const pq_node *n, fz_arena *a, pq_field *f, fz_error *err);

static fz_status children_of(const pq_reader *r, const pq_node *n, fz_arena *a, pq_field *f, uint32_t count, fz_error *err) {
    pq_field *c = fz_arena_calloc(a, count ? count : 1, sizeof *c);
    uint32_t k = 0;
    for (uint32_t i = n->first; i && k < count; i = r->nodes[i].next) FZ_TRY(field_of(r, &r->nodes[i], a, &c[k++], err));
    f->children = c;
    f->n_children = k;
    return FZ_OK;
}
static fz_status group_of(const pq_reader *r, const pq_node *n, fz_arena *a, pq_field *f, fz_error *err) {
    const pq_node *rep = n->first ? &r->nodes[n->first] : NULL;
    bool repeated = rep && rep->repetition == PQ_REPEATED && n->n_children == 1;
    if (repeated && (is(n, PQ_LOGICAL_MAP, PQ_CONV_MAP) || n->converted == PQ_CONV_MAP_KEY_VALUE) && rep->type < 0 && rep->n_children == 2) {
        FZ_TRY(children_of(r, rep, a, f, 2, err));
        f->type = col_map(a, f->children[0].type, f->children[1].type, true);
        return FZ_OK;
    }
    if (repeated && is(n, PQ_LOGICAL_LIST, PQ_CONV_LIST)) {
        if (pq_two_level(n, rep)) FZ_TRY(children_of(r, n, a, f, 1, err));
        else FZ_TRY(children_of(r, rep, a, f, 1, err));
        f->type = col_array(a, f->children[0].type, true);
        return FZ_OK;
    }
    FZ_TRY(children_of(r, n, a, f, n->n_children, err));
    col_field *cf = fz_arena_calloc(a, f->n_children, sizeof *cf);
    for (uint32_t i = 0; i < f->n_children; i++) cf[i] = (col_field){.name = f->children[i].name, .type = f->children[i].type};
    f->type = col_row(a, cf, f->n_children, true);
    return FZ_OK;
}
static fz_status field_of(const pq_reader *r, const pq_node *n, fz_arena *a, pq_field *f, fz_error *err) {
    f->name = fz_arena_strndup(a, n->name.p, n->name.n);
    f->field_id = n->field_id;
    f->required = n->repetition == PQ_REQUIRED;
    f->metrics_truncate = 16;
    if (n->type < 0) return group_of(r, n, a, f, err);
    f->type = leaf_type(n, a, f);
    return f->type ? FZ_OK : fz_fail(err, FZ_USER, "parquet.unsupported-type", "column '%s' of the file has a type that is not supported", f->name);
}
fz_status pq_reader_fields(const pq_reader *r, fz_arena *a, pq_field **fields, uint32_t *n, fz_error *err) {
    pq_field root = {0};
    FZ_TRY(children_of(r, &r->nodes[0], a, &root, r->nodes[0].n_children, err));
    *n = root.n_children;
    *fields = fz_arena_alloc(a, root.n_children * sizeof **fields);
    if (*n) memcpy(*fields, root.children, *n * sizeof **fields);
    return FZ_OK;
}
