/* Levels and dense values to vectors (Dremel, backwards).
 *
 * Each schema node has slots: one a row of its vector. A slot begins at a level entry whose repetition level is at most the
 * node's, and it exists when the definition level reaches that of the node's nearest repeated ancestor. The levels of the first
 * leaf below a node decide for the node; every leaf must come to the same number of slots, or the file is damaged. */
#include "parquet/pq_read_int.h"

typedef struct assembly { pq_reader *r; uint32_t group; fz_arena *a; pq_levels *levels; fz_error *err; } assembly;
typedef struct slots { uint8_t rep, base; } slots; /* base: definition level of the nearest repeated ancestor */

static fz_status load(assembly *s, uint32_t leaf, pq_levels **out) {
    *out = &s->levels[leaf];
    return (*out)->loaded ? FZ_OK : pq_chunk_read(s->r, s->group, leaf, s->a, *out, s->err);
}
static inline bool is_slot(const pq_levels *l, uint32_t i, slots at, uint8_t max) {
    return (!l->rep || l->rep[i] <= at.rep) && (l->def ? l->def[i] : max) >= at.base;
}
static uint32_t count_slots(const pq_levels *l, slots at, uint8_t max) {
    uint32_t n = 0;
    if (!l->def && !l->rep) return l->n;
    for (uint32_t i = 0; i < l->n; i++) n += is_slot(l, i, at, max);
    return n;
}
static fz_status wrong_count(assembly *s) { return pq_corrupt(s->err, "columns of a row group have different numbers of rows"); }

/* Which slots are present (definition level of at least `present`); NULL: all. */
static uint8_t *mask_of(assembly *s, const pq_levels *l, slots at, uint8_t present, uint8_t max, uint32_t n) {
    if (!l->def) return NULL;
    uint8_t *valid = fz_arena_alloc(s->a, n), all = 1;
    uint32_t k = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (is_slot(l, i, at, max)) all &= valid[k++] = l->def[i] >= present;
    return all ? NULL : valid;
}

/* ---- leaves ---- */
static fz_status spread_fixed(assembly *s, col_vec *v, const uint8_t *valid, uint32_t n, size_t width) {
    uint8_t *to = fz_arena_calloc(s->a, n, width);
    const uint8_t *from = v->data;
    for (uint32_t i = 0; i < n; i++)
        if (valid[i]) { memcpy(to + i * width, from, width); from += width; }
    v->data = to;
    return FZ_OK;
}
static fz_status spread(assembly *s, col_vec *v, uint8_t *valid, uint32_t n) {
    uint32_t dense = v->len, k = 0;
    for (uint32_t i = 0; i < n; i++) k += valid[i];
    if (k != dense) return wrong_count(s);
    v->valid = valid;
    v->len = n;
    if (v->idx) {
        uint32_t *to = fz_arena_calloc(s->a, n, sizeof *to), j = 0;
        for (uint32_t i = 0; i < n; i++)
            if (valid[i]) to[i] = v->idx[j++];
        v->idx = to;
        return FZ_OK;
    }
    if (!v->off) return spread_fixed(s, v, valid, n, v->type->kind == COL_BOOLEAN ? 1 : col_width(v->type->kind));
    uint32_t *off = fz_arena_alloc(s->a, ((size_t)n + 1) * sizeof *off), j = 0;
    for (uint32_t i = 0; i < n; i++) {
        off[i] = v->off[j];
        j += valid[i];
    }
    off[n] = v->off[j];
    v->off = off;
    return FZ_OK;
}
static fz_status all_null(assembly *s, const pq_field *f, uint32_t n, col_vec **out) {
    *out = col_vec_nulls(s->a, f->type, n);
    return FZ_OK;
}
static fz_status required(assembly *s, const pq_field *f) {
    return fz_fail(s->err, FZ_DATA, "not-null", "column '%s' is NOT NULL but the file has NULL in it", f->name);
}
static fz_status leaf_vector(assembly *s, const pq_node *node, const pq_field *f, slots at, uint32_t n, col_vec **out) {
    pq_levels *l;
    FZ_TRY(load(s, node->leaf, &l));
    if (count_slots(l, at, node->def) != n) return wrong_count(s);
    pq_values values = l->values; /* the vector may be made twice with two types: leave what was read alone */
    if (values.idx && !values.dict->n) return pq_corrupt(s->err, "a dictionary is empty");
    FZ_TRY(pq_values_convert(node, &values, f, s->a, out, s->err));
    uint8_t *valid = mask_of(s, l, at, node->def, node->def, n);
    if (!valid) return (*out)->len == n ? FZ_OK : wrong_count(s);
    if (f->required) return required(s, f);
    return spread(s, *out, valid, n);
}

/* ---- groups ---- */
static fz_status vector_of(assembly *s, const pq_node *node, const pq_field *f, slots at, uint32_t n, col_vec **out);

static const pq_node *child_of(const pq_reader *r, const pq_node *n, const pq_field *f) {
    for (uint32_t i = n->first; i; i = r->nodes[i].next) {
        const pq_node *c = &r->nodes[i];
        if (r->has_ids ? c->field_id >= 0 && c->field_id == f->field_id : fz_sv_eq(c->name, fz_sv_of(f->name))) return c;
    }
    return NULL;
}
static col_vec *group_vector(assembly *s, const pq_field *f, uint32_t n, uint32_t children) {
    col_vec *v = FZ_ANEW(s->a, col_vec);
    v->type = f->type;
    v->len = n;
    v->n_child = children;
    v->child = fz_arena_calloc(s->a, children, sizeof *v->child);
    return v;
}
static fz_status row_vector(assembly *s, const pq_node *node, const pq_field *f, slots at, uint32_t n, col_vec **out) {
    pq_levels *l;
    FZ_TRY(load(s, node->leaf, &l));
    uint8_t max = s->r->nodes[s->r->leaf_node[node->leaf]].def;
    if (count_slots(l, at, max) != n) return wrong_count(s);
    col_vec *v = group_vector(s, f, n, f->n_children);
    v->valid = mask_of(s, l, at, node->def, max, n);
    if (v->valid && f->required) return required(s, f);
    for (uint32_t i = 0; i < f->n_children; i++) {
        const pq_node *c = child_of(s->r, node, &f->children[i]);
        pq_field child = f->children[i];
        if (v->valid) child.required = false; /* below a NULL struct there is nothing to require */
        if (c) FZ_TRY(vector_of(s, c, &child, at, n, &v->child[i]));
        else FZ_TRY(all_null(s, &child, n, &v->child[i]));
    }
    *out = v;
    return FZ_OK;
}
bool pq_two_level(const pq_node *list, const pq_node *rep) { /* the repeated node is the element itself (LogicalTypes.md, backward compatibility) */
    static const fz_sv array = {"array", 5};
    if (rep->type >= 0 || rep->n_children != 1 || fz_sv_eq(rep->name, array)) return true;
    return rep->name.n == list->name.n + 6 && memcmp(rep->name.p, list->name.p, list->name.n) == 0 && memcmp(rep->name.p + list->name.n, "_tuple", 6) == 0;
}
static uint32_t *offsets(assembly *s, const pq_levels *l, slots at, const pq_node *rep, uint8_t max, uint32_t n, uint32_t *n_elements) {
    uint32_t *off = fz_arena_alloc(s->a, ((size_t)n + 1) * sizeof *off), k = 0, e = 0;
    slots inner = {rep->rep, rep->def};
    for (uint32_t i = 0; i < l->n; i++) {
        if (is_slot(l, i, at, max)) off[k++] = e;
        e += is_slot(l, i, inner, max);
    }
    off[n] = e;
    *n_elements = e;
    return off;
}
static fz_status list_vector(assembly *s, const pq_node *node, const pq_field *f, slots at, uint32_t n, col_vec **out) {
    const pq_reader *r = s->r;
    const pq_node *rep = node->first ? &r->nodes[node->first] : NULL;
    bool map = f->type->kind == COL_MAP;
    if (!rep || rep->next || rep->repetition != PQ_REPEATED || node->type >= 0 || (map && (rep->type >= 0 || rep->n_children != 2)))
        return fz_fail(s->err, FZ_USER, "parquet.type-mismatch", "column '%s' is not a %s in the file", f->name, map ? "map" : "list");
    pq_levels *l;
    FZ_TRY(load(s, node->leaf, &l));
    uint8_t max = r->nodes[r->leaf_node[node->leaf]].def;
    if (count_slots(l, at, max) != n) return wrong_count(s);
    col_vec *v = group_vector(s, f, n, map ? 2 : 1);
    v->valid = mask_of(s, l, at, node->def, max, n);
    if (v->valid && f->required) return required(s, f);
    uint32_t n_elements;
    v->off = offsets(s, l, at, rep, max, n, &n_elements);
    slots inner = {rep->rep, rep->def};
    if (map || !pq_two_level(node, rep)) {
        const pq_node *c = &r->nodes[rep->first];
        FZ_TRY(vector_of(s, c, &f->children[0], inner, n_elements, &v->child[0]));
        if (map) FZ_TRY(vector_of(s, &r->nodes[c->next], &f->children[1], inner, n_elements, &v->child[1]));
    } else FZ_TRY(vector_of(s, rep, &f->children[0], inner, n_elements, &v->child[0]));
    *out = v;
    return FZ_OK;
}
static fz_status vector_of(assembly *s, const pq_node *node, const pq_field *f, slots at, uint32_t n, col_vec **out) {
    col_kind k = f->type->kind;
    bool nested = k == COL_ROW || k == COL_ARRAY || k == COL_MAP;
    if (nested != (node->type < 0) || node->rep != at.rep) return fz_fail(s->err, FZ_USER, "parquet.type-mismatch", "column '%s' has another shape in the file", f->name);
    if (k == COL_ROW) return row_vector(s, node, f, at, n, out);
    if (nested) return list_vector(s, node, f, at, n, out);
    return leaf_vector(s, node, f, at, n, out);
}

fz_status pq_reader_read(pq_reader *r, uint32_t g, const pq_field *wanted, uint32_t n, fz_arena *a, col_vec **cols, uint32_t *n_rows, fz_error *err) {
    if (g >= r->n_groups) return fz_fail(err, FZ_FATAL, "parquet.row-group", "the file has %u row groups, asked for number %u", (unsigned)r->n_groups, (unsigned)g);
    uint32_t rows = (uint32_t)r->groups[g].rows;
    if (rows > PQ_MAX_GROUP_VALUES) return fz_fail(err, FZ_FATAL, "parquet.too-large", "a row group has more than %u rows", PQ_MAX_GROUP_VALUES);
    pq_levels *levels = fz_arena_calloc(a, r->n_leaves, sizeof *levels);
    assembly s = {r, g, a, levels, err};
    for (uint32_t i = 0; i < n; i++) {
        const pq_node *c = child_of(r, &r->nodes[0], &wanted[i]);
        slots top = {0, 0};
        if (c) FZ_TRY(vector_of(&s, c, &wanted[i], top, rows, &cols[i]));
        else FZ_TRY(all_null(&s, &wanted[i], rows, &cols[i]));
    }
    *n_rows = rows;
    return FZ_OK;
}
