/* Partition fan-out on the worker: rows -> tuples. See sink.h.
 *
 * Each partition column becomes small codes, one a distinct value (a dictionary vector needs only its entries hashed), the codes of several columns are
 * combined pairwise, and a counting sort gives each tuple its rows. A row costs a table look-up a column.
 */
#include "sink/sink_int.h"

typedef struct codes { uint32_t *code; uint32_t n; uint32_t *first; /* a row that has the code */ } codes;

/* Open addressing over rows of a vector; grows never: made for n entries at most. */
typedef struct value_set { uint32_t *slot; uint32_t mask; } value_set;

static value_set set_new(fz_arena *a, uint32_t n) {
    uint32_t size = 16;
    while (size < n * 2) size *= 2;
    return (value_set){fz_arena_calloc(a, size, sizeof(uint32_t)), size - 1};
}

/* Code of row i of v: that of an equal row seen before, or a new one. reps[code] is a row. */
static uint32_t code_of(value_set *s, const col_vec *v, uint32_t i, uint32_t *reps, uint32_t *n) {
    uint32_t at = (uint32_t)(col_hash(v, i) * 0x9E3779B97F4A7C15ull >> 32) & s->mask;
    for (; s->slot[at]; at = (at + 1) & s->mask)
        if (col_equal(v, reps[s->slot[at] - 1], v, i)) return s->slot[at] - 1;
    reps[*n] = i;
    s->slot[at] = ++*n;
    return *n - 1;
}

static codes encode_flat(fz_arena *a, const col_vec *v, uint32_t n_rows) {
    codes c = {fz_arena_alloc(a, (size_t)n_rows * 4), 0, fz_arena_alloc(a, ((size_t)n_rows + 1) * 4)};
    value_set s = set_new(a, n_rows);
    for (uint32_t i = 0; i < n_rows; i++)
        c.code[i] = i && col_equal(v, i - 1, v, i) ? c.code[i - 1] : code_of(&s, v, i, c.first, &c.n);
    return c;
}

static codes encode_dict(fz_arena *a, const col_vec *v, uint32_t n_rows) {
    const col_vec *d = v->dict;
    codes c = {fz_arena_alloc(a, (size_t)n_rows * 4), 0, NULL};
    uint32_t *canon = fz_arena_alloc(a, ((size_t)d->len + 1) * 4), *reps = fz_arena_alloc(a, ((size_t)d->len + 2) * 4);
    value_set s = set_new(a, d->len);
    uint32_t n = 0, null_code = UINT32_MAX;
    for (uint32_t k = 0; k < d->len; k++) {
        canon[k] = code_of(&s, d, k, reps, &n);
        if (col_is_null(d, k)) null_code = canon[k];
    }
    if (v->valid && null_code == UINT32_MAX) null_code = n++;
    c.n = n;
    c.first = fz_arena_alloc(a, ((size_t)n + 1) * 4);
    memset(c.first, 0xff, ((size_t)n + 1) * 4);
    for (uint32_t i = 0; i < n_rows; i++) {
        uint32_t code = v->valid && !v->valid[i] ? null_code : canon[v->idx[i]];
        c.code[i] = code;
        if (c.first[code] == UINT32_MAX) c.first[code] = i;
    }
    return c;
}

/* Pairs of codes become codes again. */
static codes combine(fz_arena *a, codes x, codes y, uint32_t n_rows) {
    codes c = {x.code, 0, fz_arena_alloc(a, ((size_t)n_rows + 1) * 4)};
    uint64_t cells = (uint64_t)x.n * y.n;
    uint32_t *direct = NULL;
    uint64_t *keys = NULL, mask = 0;
    if (cells <= 1u << 16) direct = fz_arena_calloc(a, cells, 4);
    else {
        uint64_t size = 64;
        while (size < (uint64_t)n_rows * 2) size *= 2;
        mask = size - 1;
        keys = fz_arena_calloc(a, size, 8);
        direct = fz_arena_calloc(a, size, 4);
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        uint64_t pair = (uint64_t)x.code[i] * y.n + y.code[i], at = pair;
        if (keys) {
            at = (pair * 0x9E3779B97F4A7C15ull >> 20) & mask;
            while (direct[at] && keys[at] != pair) at = (at + 1) & mask;
            keys[at] = pair;
        }
        if (!direct[at]) {
            c.first[c.n] = i;
            direct[at] = ++c.n;
        }
        c.code[i] = direct[at] - 1; /* x.code is done with at row i */
    }
    return c;
}

static void sort_rows(fz_arena *a, codes c, uint32_t n_rows, sink_part *parts, uint32_t *part_of) {
    uint32_t *start = fz_arena_calloc(a, (size_t)c.n + 1, 4), *sel = fz_arena_alloc(a, (size_t)n_rows * 4);
    for (uint32_t i = 0; i < n_rows; i++) start[c.code[i] + 1]++;
    for (uint32_t k = 0; k < c.n; k++) {
        if (part_of[k] != UINT32_MAX) {
            parts[part_of[k]].sel = sel + start[k];
            parts[part_of[k]].n_sel = start[k + 1];
        }
        start[k + 1] += start[k];
    }
    for (uint32_t i = 0; i < n_rows; i++) sel[start[c.code[i]]++] = i;
}

fz_status sink_route(const sink_table *t, col_vec *const *cols, uint32_t n_rows, fz_arena *a, sink_route_result *out, fz_error *err) {
    *out = (sink_route_result){0};
    if (!n_rows) return FZ_OK;
    uint32_t nf = t->spec->n_fields;
    codes c = {fz_arena_calloc(a, n_rows, 4), 1, fz_arena_calloc(a, 1, 4)};
    col_vec **vecs = FZ_ANEWN(a, col_vec *, nf ? nf : 1);
    if (nf) FZ_TRY(ice_spec_apply(a, t->schema, t->spec, cols, vecs, err));
    for (uint32_t f = 0; f < nf; f++) {
        codes next = vecs[f]->idx ? encode_dict(a, vecs[f], n_rows) : encode_flat(a, vecs[f], n_rows);
        c = f ? combine(a, c, next, n_rows) : next;
    }
    out->parts = FZ_ANEWN(a, sink_part, c.n);
    uint32_t *part_of = fz_arena_alloc(a, (size_t)c.n * 4);
    for (uint32_t k = 0; k < c.n; k++) {
        part_of[k] = UINT32_MAX;
        if (c.first[k] == UINT32_MAX) continue; /* an entry of the dictionary that no row uses */
        part_of[k] = out->n++;
        sink_part *p = &out->parts[part_of[k]];
        p->tuple = ice_tuple_of(a, t->spec_types, vecs, nf, c.first[k]);
        p->hash = ice_tuple_hash(p->tuple);
    }
    sort_rows(a, c, n_rows, out->parts, part_of);
    return FZ_OK;
}
