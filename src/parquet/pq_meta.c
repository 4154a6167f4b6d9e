/* The footer of a file: FileMetaData to a schema tree and the places of the chunks. */
#include "parquet/pq_read_int.h"

static void time_type(tc_in *in, int type, pq_node *n) {
    int id, t;
    if (!tc_struct(in, type)) return;
    while (tc_field(in, &id, &t)) {
        if (id == 1) n->utc = tc_bool(t);
        if (id != 2) { tc_skip(in, t); continue; }
        if (!tc_struct(in, t)) return;
        while (tc_field(in, &id, &t)) {
            n->unit = (int8_t)id;
            tc_skip(in, t);
        }
    }
}
static void logical_type(tc_in *in, int type, pq_node *n) {
    int id, t;
    if (!tc_struct(in, type)) return;
    while (tc_field(in, &id, &t)) {
        n->logical = id;
        if (id == PQ_LOGICAL_TIME || id == PQ_LOGICAL_TIMESTAMP) time_type(in, t, n);
        else if (id == PQ_LOGICAL_DECIMAL && tc_struct(in, t)) {
            int f, ft;
            while (tc_field(in, &f, &ft)) {
                if (f == 1) n->scale = (int32_t)tc_int(in, ft);
                else if (f == 2) n->precision = (int32_t)tc_int(in, ft);
                else tc_skip(in, ft);
            }
        } else tc_skip(in, t);
    }
}
static void schema_element(tc_in *in, pq_node *n) {
    int id, t;
    *n = (pq_node){.type = -1, .repetition = PQ_REQUIRED, .converted = -1, .field_id = -1, .name = {"", 0}};
    int64_t children = 0;
    while (tc_field(in, &id, &t)) switch (id) {
        case 1: n->type = (int32_t)tc_int(in, t); break;
        case 2: n->type_length = (int32_t)tc_int(in, t); break;
        case 3: n->repetition = (int32_t)tc_int(in, t); break;
        case 4: n->name = tc_bytes(in, t); break;
        case 5: children = tc_int(in, t); break;
        case 6: n->converted = (int32_t)tc_int(in, t); break;
        case 7: n->scale = (int32_t)tc_int(in, t); break;
        case 8: n->precision = (int32_t)tc_int(in, t); break;
        case 9: n->field_id = (int32_t)tc_int(in, t); break;
        case 10: logical_type(in, t, n); break;
        default: tc_skip(in, t);
    }
    if (n->converted == PQ_CONV_TIMESTAMP_MILLIS || n->converted == PQ_CONV_TIMESTAMP_MICROS) n->utc |= !n->logical; /* without a logical type these are UTC */
    if (children < 0 || children > INT32_MAX) in->bad = true;
    n->n_children = (uint32_t)children;
}
static void column_metadata(tc_in *in, int type, pq_chunk_meta *c) {
    int id, t;
    if (!tc_struct(in, type)) return;
    while (tc_field(in, &id, &t)) switch (id) {
        case 1: c->type = (int32_t)tc_int(in, t); break;
        case 4: c->codec = (int32_t)tc_int(in, t); break;
        case 5: c->n_values = tc_int(in, t); break;
        case 6: c->raw = tc_int(in, t); break;
        case 7: c->size = tc_int(in, t); break;
        case 9: c->data_page = tc_int(in, t); break;
        case 11: c->dict_page = tc_int(in, t); break;
        default: tc_skip(in, t);
    }
}
static void row_group(tc_in *in, pq_reader *r, pq_group_meta *g) {
    int id, t, e;
    *g = (pq_group_meta){.rows = -1};
    while (tc_field(in, &id, &t)) {
        if (id == 3) { g->rows = tc_int(in, t); continue; }
        if (id != 1) { tc_skip(in, t); continue; }
        uint32_t n = tc_list_begin(in, t, &e);
        if (n != r->n_leaves || g->chunks) { in->bad = true; return; }
        g->chunks = fz_arena_calloc(r->arena, n, sizeof *g->chunks);
        for (uint32_t i = 0; i < n && tc_struct(in, e); i++) {
            pq_chunk_meta *c = &g->chunks[i];
            *c = (pq_chunk_meta){.type = -1, .codec = -1, .n_values = -1, .data_page = -1, .dict_page = -1, .size = -1};
            while (tc_field(in, &id, &t)) {
                if (id == 3) column_metadata(in, t, c);
                else tc_skip(in, t);
            }
        }
    }
}

/* ---- schema tree ---- */
static bool build(pq_reader *r, uint32_t *at, unsigned def, unsigned rep, unsigned depth) {
    if (*at >= r->n_nodes || depth > 2 * PQ_MAX_NESTING) return false;
    pq_node *n = &r->nodes[(*at)++];
    if (depth) {
        if (n->repetition < PQ_REQUIRED || n->repetition > PQ_REPEATED) return false;
        if (n->repetition != PQ_REQUIRED) def++;
        if (n->repetition == PQ_REPEATED) rep++;
    }
    n->def = (uint8_t)def;
    n->rep = (uint8_t)rep;
    n->leaf = r->n_leaves;
    if (n->field_id >= 0) r->has_ids = true;
    if (n->type >= 0) {
        if (n->type > PQ_FLBA || n->n_children || !depth || (n->type == PQ_FLBA && n->type_length <= 0)) return false;
        r->leaf_node[r->n_leaves++] = (uint32_t)(n - r->nodes);
        return true;
    }
    uint32_t last = 0;
    for (uint32_t i = 0; i < n->n_children; i++) {
        uint32_t child = *at;
        if (!build(r, at, def, rep, depth + 1)) return false;
        if (last) r->nodes[last].next = child;
        else n->first = child;
        last = child;
    }
    return n->leaf < r->n_leaves || !depth; /* a group without leaves cannot be read */
}
static fz_status schema(pq_reader *r, tc_in *in, int type, fz_error *err) {
    int e;
    uint32_t n = tc_list_begin(in, type, &e), at = 0;
    if (!n || r->nodes) return pq_corrupt(err, "its schema is empty or there twice");
    r->nodes = fz_arena_calloc(r->arena, n, sizeof *r->nodes);
    r->leaf_node = fz_arena_calloc(r->arena, n, sizeof *r->leaf_node);
    r->n_nodes = n;
    for (uint32_t i = 0; i < n && tc_struct(in, e); i++) schema_element(in, &r->nodes[i]);
    if (in->bad || !build(r, &at, 0, 0, 0) || at != n) return pq_corrupt(err, "its schema is no tree");
    return FZ_OK;
}
static fz_status check_groups(pq_reader *r, fz_error *err) {
    for (uint32_t g = 0; g < r->n_groups; g++) {
        pq_group_meta *m = &r->groups[g];
        if (m->rows < 0 || m->rows > UINT32_MAX) return pq_corrupt(err, "a row group has no row count or too great a one");
        if (r->n_leaves && !m->chunks) return pq_corrupt(err, "a row group has no columns");
        r->rows += (uint64_t)m->rows;
        for (uint32_t i = 0; i < r->n_leaves; i++) {
            pq_chunk_meta *c = &m->chunks[i];
            if (c->dict_page == 0) c->dict_page = -1; /* some writers set the field without a dictionary */
            if (c->type != r->nodes[r->leaf_node[i]].type) return pq_corrupt(err, "a column chunk has another type than the schema");
            if (c->n_values < 0 || c->size < 0 || c->data_page < 4 || (c->dict_page >= 0 && (c->dict_page < 4 || c->dict_page > c->data_page)))
                return pq_corrupt(err, "a column chunk has no place or size");
            uint64_t start = (uint64_t)(c->dict_page >= 0 ? c->dict_page : c->data_page);
            if (start > r->file_size || (uint64_t)c->size > r->file_size - start) return pq_corrupt(err, "a column chunk lies outside of the file");
        }
    }
    return FZ_OK;
}
fz_status pq_meta_parse(pq_reader *r, const uint8_t *p, size_t n, fz_error *err) {
    tc_in in = tc_in_on(p, n);
    int id, t, e;
    while (tc_field(&in, &id, &t)) {
        if (id == 2) FZ_TRY(schema(r, &in, t, err));
        else if (id == 4) {
            if (!r->nodes || r->groups) return pq_corrupt(err, "its row groups stand before the schema, or twice");
            r->n_groups = tc_list_begin(&in, t, &e);
            r->groups = fz_arena_calloc(r->arena, r->n_groups, sizeof *r->groups);
            for (uint32_t i = 0; i < r->n_groups && tc_struct(&in, e); i++) row_group(&in, r, &r->groups[i]);
        } else if (id == 8) return fz_fail(err, FZ_USER, "parquet.encrypted", "the Parquet file is encrypted, which is not supported");
        else tc_skip(&in, t);
    }
    if (in.bad || !r->nodes) return pq_corrupt(err, "its footer cannot be parsed");
    return check_groups(r, err);
}
