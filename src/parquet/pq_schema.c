/* The schema: Iceberg's fields to Parquet's leaves and SchemaElements (Iceberg spec, appendix A, "Parquet"; LogicalTypes.md).
 * Element order and content are those of parquet-java, checked byte for byte against one of its files. */
#include "parquet/parquet_int.h"

unsigned pq_decimal_width(int32_t precision) {
    col_i128 max = 1;
    for (int32_t i = 0; i < precision; i++) max *= 10;
    unsigned n = 1;
    while (n < 16 && max - 1 > (((col_i128)1 << (8 * n - 1)) - 1)) n++;
    return n;
}

static fz_status decimal_leaf(pq_leaf *l, const col_type *t) {
    if (t->precision <= 9) { l->phys = PQ_INT32; l->src = PQ_SRC_DEC4; l->width = 4; l->order = PQ_ORD_I32; }
    else if (t->precision <= 18) { l->phys = PQ_INT64; l->src = PQ_SRC_DEC8; l->width = 8; l->order = PQ_ORD_I64; }
    else { l->phys = PQ_FLBA; l->src = PQ_SRC_DECN; l->width = pq_decimal_width(t->precision); l->order = PQ_ORD_SIGNED_BYTES; }
    return FZ_OK;
}
static fz_status leaf_of(const pq_field *f, pq_leaf *l, fz_error *err) {
    const col_type *t = f->type;
    #define LEAF(ph, s, w, ord) do { l->phys = (ph); l->src = (s); l->width = (w); l->order = (ord); return FZ_OK; } while (0)
    switch (t->kind) {
    case COL_BOOLEAN: LEAF(PQ_BOOLEAN, PQ_SRC_BOOL, 1, PQ_ORD_BOOL);
    case COL_TINYINT: case COL_SMALLINT: case COL_INT: case COL_DATE: LEAF(PQ_INT32, PQ_SRC_4, 4, PQ_ORD_I32);
    case COL_BIGINT: case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: LEAF(PQ_INT64, PQ_SRC_8, 8, PQ_ORD_I64);
    case COL_TIME: LEAF(PQ_INT64, PQ_SRC_TIME, 8, PQ_ORD_I64);
    case COL_FLOAT: LEAF(PQ_FLOAT, PQ_SRC_4, 4, PQ_ORD_F32);
    case COL_DOUBLE: LEAF(PQ_DOUBLE, PQ_SRC_8, 8, PQ_ORD_F64);
    case COL_DECIMAL: return decimal_leaf(l, t);
    case COL_CHAR: case COL_VARCHAR: LEAF(PQ_BYTE_ARRAY, PQ_SRC_BYTES, 0, PQ_ORD_BYTES);
    case COL_BINARY: case COL_VARBINARY:
        if (f->is_uuid) LEAF(PQ_FLBA, PQ_SRC_FIXED, 16, PQ_ORD_BYTES);
        if (f->is_fixed && t->precision > 0) LEAF(PQ_FLBA, PQ_SRC_FIXED, (uint32_t)t->precision, PQ_ORD_BYTES);
        LEAF(PQ_BYTE_ARRAY, PQ_SRC_BYTES, 0, PQ_ORD_BYTES);
    default: break;
    }
    #undef LEAF
    fz_buf b = {0};
    col_type_text(&b, t);
    fz_status s = fz_fail(err, FZ_USER, "parquet.unsupported-type", "column '%s' has type %s, which Iceberg cannot hold", f->name, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return s;
}

typedef struct leaf_walk { pq_leaf *leaves; uint32_t n; fz_error *err; } leaf_walk;
static fz_status walk_leaves(leaf_walk *w, const pq_field *f, unsigned def, unsigned rep, unsigned depth) {
    if (depth > PQ_MAX_NESTING) return fz_fail(w->err, FZ_USER, "parquet.nesting", "column '%s' is nested deeper than %d levels", f->name, PQ_MAX_NESTING);
    if (!f->required) def++;
    col_kind kind = f->type->kind;
    uint32_t want = kind == COL_ARRAY ? 1 : kind == COL_MAP ? 2 : kind == COL_ROW ? f->type->n_fields : 0;
    if (f->n_children != want || (kind == COL_ROW && !want))
        return fz_fail(w->err, FZ_USER, "parquet.schema", "column '%s' has %u child fields, its type has %u", f->name, (unsigned)f->n_children, (unsigned)want);
    if (kind == COL_ARRAY || kind == COL_MAP) { def++; rep++; }
    for (uint32_t i = 0; i < want; i++) FZ_TRY(walk_leaves(w, &f->children[i], def, rep, depth + 1));
    if (want) return FZ_OK;
    pq_leaf l = {.field = f, .max_def = (uint8_t)def, .max_rep = (uint8_t)rep, .nested = depth > 0};
    FZ_TRY(leaf_of(f, &l, w->err));
    if (w->leaves) w->leaves[w->n] = l;
    w->n++;
    return FZ_OK;
}
fz_status pq_leaves(const pq_field *f, uint32_t n, pq_leaf *leaves, uint32_t *n_leaves, fz_error *err) {
    leaf_walk w = {leaves, 0, err};
    for (uint32_t i = 0; i < n; i++) FZ_TRY(walk_leaves(&w, &f[i], 0, 0, 0));
    *n_leaves = w.n;
    return FZ_OK;
}

static void time_unit(tc_out *o, int logical, bool utc) {
    tc_begin(o, 10);
    tc_begin(o, logical);
    tc_put_bool(o, 1, utc);
    tc_begin(o, 2); /* TimeUnit */
    tc_begin(o, 2); /* MICROS */
    tc_end(o);
    tc_end(o);
    tc_end(o);
    tc_end(o);
}
static void bare_logical(tc_out *o, int logical) {
    tc_begin(o, 10);
    tc_begin(o, logical);
    tc_end(o);
    tc_end(o);
}
/* Fields 6 to 10 of a leaf's element: converted type, scale, precision, field id, logical type. */
static void annotate(tc_out *o, const pq_field *f) {
    const col_type *t = f->type;
    int converted = -1;
    switch (t->kind) {
    case COL_CHAR: case COL_VARCHAR: converted = PQ_CONV_UTF8; break;
    case COL_DATE: converted = PQ_CONV_DATE; break;
    case COL_TIME: converted = PQ_CONV_TIME_MICROS; break;
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: converted = PQ_CONV_TIMESTAMP_MICROS; break;
    case COL_DECIMAL: converted = PQ_CONV_DECIMAL; break;
    default: break;
    }
    if (converted >= 0) tc_put_i32(o, 6, converted);
    if (t->kind == COL_DECIMAL) {
        tc_put_i32(o, 7, t->scale);
        tc_put_i32(o, 8, t->precision);
    }
    tc_put_i32(o, 9, f->field_id);
    switch (t->kind) {
    case COL_CHAR: case COL_VARCHAR: bare_logical(o, PQ_LOGICAL_STRING); break;
    case COL_DATE: bare_logical(o, PQ_LOGICAL_DATE); break;
    case COL_TIME: time_unit(o, PQ_LOGICAL_TIME, false); break;
    case COL_TIMESTAMP: time_unit(o, PQ_LOGICAL_TIMESTAMP, false); break;
    case COL_TIMESTAMP_LTZ: time_unit(o, PQ_LOGICAL_TIMESTAMP, true); break;
    case COL_DECIMAL:
        tc_begin(o, 10);
        tc_begin(o, PQ_LOGICAL_DECIMAL);
        tc_put_i32(o, 1, t->scale);
        tc_put_i32(o, 2, t->precision);
        tc_end(o);
        tc_end(o);
        break;
    default:
        if (f->is_uuid && (t->kind == COL_BINARY || t->kind == COL_VARBINARY)) bare_logical(o, PQ_LOGICAL_UUID);
    }
}
static void group(tc_out *o, int repetition, const char *name, uint32_t children, int converted, int32_t id, int logical) {
    tc_begin(o, 0);
    tc_put_i32(o, 3, repetition);
    tc_put_bytes(o, 4, name, strlen(name));
    tc_put_i32(o, 5, (int32_t)children);
    if (converted >= 0) tc_put_i32(o, 6, converted);
    if (id >= 0) tc_put_i32(o, 9, id);
    if (logical) bare_logical(o, logical);
    tc_end(o);
}
static void element(tc_out *o, const pq_field *f, const char *name) {
    int repetition = f->required ? PQ_REQUIRED : PQ_OPTIONAL;
    fz_error ignore;
    pq_leaf l = {0};
    switch (f->type->kind) {
    case COL_ROW:
        group(o, repetition, name, f->n_children, -1, f->field_id, 0);
        for (uint32_t i = 0; i < f->n_children; i++) element(o, &f->children[i], f->children[i].name);
        return;
    case COL_ARRAY:
        group(o, repetition, name, 1, PQ_CONV_LIST, f->field_id, PQ_LOGICAL_LIST);
        group(o, PQ_REPEATED, "list", 1, -1, -1, 0);
        element(o, &f->children[0], "element");
        return;
    case COL_MAP:
        group(o, repetition, name, 1, PQ_CONV_MAP, f->field_id, PQ_LOGICAL_MAP);
        group(o, PQ_REPEATED, "key_value", 2, -1, -1, 0);
        element(o, &f->children[0], "key");
        element(o, &f->children[1], "value");
        return;
    default: break;
    }
    if (leaf_of(f, &l, &ignore) != FZ_OK) return; /* pq_leaves has let it pass before */
    tc_begin(o, 0);
    tc_put_i32(o, 1, l.phys);
    if (l.phys == PQ_FLBA) tc_put_i32(o, 2, (int32_t)l.width);
    tc_put_i32(o, 3, repetition);
    tc_put_bytes(o, 4, name, strlen(name));
    annotate(o, f);
    tc_end(o);
}
static uint32_t count(const pq_field *f, uint32_t n) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool repeated = f[i].type->kind == COL_ARRAY || f[i].type->kind == COL_MAP;
        all += 1 + (repeated ? 1 : 0) + count(f[i].children, f[i].n_children);
    }
    return all;
}
void pq_schema_encode(tc_out *o, int id, const pq_field *f, uint32_t n) {
    tc_list(o, id, TC_STRUCT, 1 + count(f, n));
    tc_begin(o, 0);
    tc_put_bytes(o, 4, "table", 5);
    tc_put_i32(o, 5, (int32_t)n);
    tc_end(o);
    for (uint32_t i = 0; i < n; i++) element(o, &f[i], f[i].name);
}

typedef struct path_walk { void (*fn)(void *, const pq_field *, const pq_path *); void *cx; pq_path path; } path_walk;
static void walk_path(path_walk *w, const pq_field *f, const char *name) {
    uint32_t n = w->path.n;
    w->path.part[w->path.n++] = fz_sv_of(name);
    switch (f->type->kind) {
    case COL_ROW:
        for (uint32_t i = 0; i < f->n_children; i++) walk_path(w, &f->children[i], f->children[i].name);
        break;
    case COL_ARRAY:
        w->path.part[w->path.n++] = FZ_SV("list");
        walk_path(w, &f->children[0], "element");
        break;
    case COL_MAP:
        w->path.part[w->path.n++] = FZ_SV("key_value");
        walk_path(w, &f->children[0], "key");
        walk_path(w, &f->children[1], "value");
        break;
    default: w->fn(w->cx, f, &w->path);
    }
    w->path.n = n;
}
void pq_walk_paths(const pq_field *f, uint32_t n, void (*fn)(void *cx, const pq_field *leaf, const pq_path *path), void *cx) {
    path_walk w = {.fn = fn, .cx = cx};
    for (uint32_t i = 0; i < n; i++) walk_path(&w, &f[i], f[i].name);
}
