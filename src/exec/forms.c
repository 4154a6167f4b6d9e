/* Special forms: their parts are evaluated only on the rows that need them, as Flink does. */
#include "exec/prog_int.h"

/* ---- AND, OR ------------------------------------------------------------------------------------------------------------------- */

static uint8_t truth_at(const col_vec *v, uint32_t i) { return col_is_null(v, i) ? EX_UNKNOWN : col_bool(v, i) ? EX_TRUE : EX_FALSE; }

static uint8_t *truth_table(ex_eval *e, const col_vec *v) {
    uint8_t *t = fz_arena_alloc(e->a, v->len + 1);
    if (v->idx || v->valid)
        for (uint32_t i = 0; i < v->len; i++) t[i] = truth_at(v, i);
    else memcpy(t, v->u8, v->len);
    return t;
}

/* Three-valued AND of x into acc; for OR both are turned round first. */
static inline uint8_t both(uint8_t acc, uint8_t x) {
    static const uint8_t table[3][3] = {{0, 0, 0}, {0, 1, 2}, {0, 2, 2}};
    return table[acc][x];
}
static inline uint8_t invert(uint8_t x) { return x == EX_UNKNOWN ? x : !x; }

/* What is known so far. `flip`: the parts are those of an OR, and what is kept is the AND of their opposites. */
typedef struct fold { uint8_t *acc; ex_errors *errors; bool flip; } fold;

static void start(ex_eval *e, fold *s, uint32_t n) {
    if (s->acc) return;
    s->acc = fz_arena_alloc(e->a, n + 1);
    memset(s->acc, EX_TRUE, n);
}
/* Errors of rows that are decided already do not count: nobody asked there. */
static void add_errors(ex_eval *e, fold *s, ex_errors *x) {
    if (!x || !x->n) return;
    ex_errors *counted = NULL;
    for (uint32_t i = 0; i < x->n; i++)
        if (!s->acc || s->acc[x->v[i].row] != EX_FALSE) counted = ex_errors_add(e, counted, x->v[i]);
    s->errors = ex_errors_union(e, s->errors, counted);
}

static void fold_constant(ex_eval *e, ex_frame *f, uint32_t node, fold *s) {
    ex_val *x = ex_get(e, &e->constant, node);
    if (x->errors && f != &e->constant) add_errors(e, s, ex_errors_spread(e, x->errors, FZ_ANEWN(e->a, uint32_t, f->n + 1), f->n));
    else add_errors(e, s, x->errors);
    uint8_t t = truth_at(x->v, 0);
    if (s->flip) t = invert(t);
    if (t == EX_TRUE) return;
    start(e, s, f->n);
    for (uint32_t i = 0; i < f->n; i++) s->acc[i] = both(s->acc[i], t);
}
/* A part that reads one dictionary: a table of its entries. Nothing is done by row when all entries are TRUE. */
static void fold_domain(ex_eval *e, ex_frame *f, uint32_t node, fold *s) {
    uint32_t d = (uint32_t)e->node_dom[node];
    ex_val *x = ex_get(e, &e->dom[d].frame, node);
    if (!x->errors && !s->flip && !x->v->valid && !memchr(x->v->u8, 0, x->v->len)) return;
    uint8_t *t = truth_table(e, x->v);
    if (s->flip)
        for (uint32_t i = 0; i < x->v->len; i++) t[i] = invert(t[i]);
    const uint32_t *idx = ex_frame_idx(e, f, d);
    if (x->errors) add_errors(e, s, ex_errors_spread(e, x->errors, idx, f->n));
    if (!memchr(t, EX_FALSE, x->v->len) && !memchr(t, EX_UNKNOWN, x->v->len)) return;
    start(e, s, f->n);
    uint8_t *acc = s->acc;
    for (uint32_t i = 0; i < f->n; i++) acc[i] = both(acc[i], t[idx[i]]);
}
static void fold_rows(ex_eval *e, ex_frame *f, uint32_t node, fold *s) {
    uint32_t *sel = NULL, n = f->n;
    if (s->acc && e->p->nodes[node].can_fail) { /* only rows that are not decided */
        sel = fz_arena_alloc(e->a, (f->n + 1) * sizeof *sel);
        n = 0;
        for (uint32_t i = 0; i < f->n; i++) {
            sel[n] = i;
            n += s->acc[i] != EX_FALSE;
        }
        if (n == f->n) sel = NULL;
    }
    ex_val *x = ex_get(e, sel ? ex_child(e, f, sel, n) : f, node);
    add_errors(e, s, ex_errors_up(e, x->errors, sel));
    uint8_t *t = truth_table(e, x->v);
    if (s->flip)
        for (uint32_t i = 0; i < n; i++) t[i] = invert(t[i]);
    start(e, s, f->n);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *a = &s->acc[sel ? sel[i] : i];
        *a = both(*a, t[i]);
    }
}
static void fold_part(ex_eval *e, ex_frame *f, uint32_t node, fold *s) {
    int32_t d = e->node_dom[node];
    if (d == EX_CONST) fold_constant(e, f, node, s);
    else if (d >= 0 && f->dom == EX_FLAT) fold_domain(e, f, node, s);
    else fold_rows(e, f, node, s);
}

ex_truth ex_conjunction(ex_eval *e, ex_frame *f, const uint32_t *nodes, uint32_t n) {
    fold s = {0};
    for (uint32_t k = 0; k < n; k++) fold_part(e, f, nodes[k], &s);
    return (ex_truth){s.acc, s.errors};
}

static void and_or(ex_eval *e, ex_frame *f, const ex_node *n, ex_val *out) {
    fold s = {.flip = n->k == SQL_K_OR};
    for (uint32_t k = 0; k < n->n_args; k++) fold_part(e, f, n->args[k], &s);
    col_vec *v = col_vec_new(e->a, n->type, f->n);
    start(e, &s, f->n);
    if (memchr(s.acc, EX_UNKNOWN, f->n)) v->valid = fz_arena_alloc(e->a, f->n);
    for (uint32_t i = 0; i < f->n; i++) {
        uint8_t t = s.flip ? invert(s.acc[i]) : s.acc[i];
        v->u8[i] = t == EX_TRUE;
        if (v->valid) v->valid[i] = t != EX_UNKNOWN;
    }
    out->v = v;
    out->errors = s.errors;
}

/* ---- merging branches ---------------------------------------------------------------------------------------------------------- */

/* Row i of the result is row at[i] of vec[part[i]]; part NONE is NULL. */
#define NONE UINT32_MAX
typedef struct merge {
    uint32_t *part;
    uint32_t *at;
    col_vec **vec;
    uint32_t n_parts, cap;
    bool constants; /* every part is one value */
    ex_errors *errors;
} merge;

static merge merge_new(ex_eval *e, uint32_t n, uint32_t parts) {
    merge m = {.part = fz_arena_alloc(e->a, (n + 1) * sizeof *m.part), .at = FZ_ANEWN(e->a, uint32_t, n + 1), .vec = FZ_ANEWN(e->a, col_vec *, parts + 1), .cap = parts, .constants = true};
    memset(m.part, 0xff, n * sizeof *m.part);
    return m;
}

/* Evaluates node on the rows sel of f (NULL: all) and lets them take its values. Returns the value, rows as in sel. */
static ex_val *take(ex_eval *e, ex_frame *f, merge *m, uint32_t node, const uint32_t *sel, uint32_t n) {
    if (!n) return NULL;
    bool constant = e->node_dom[node] == EX_CONST && f->dom != EX_CONST;
    ex_val *x = constant ? ex_get(e, &e->constant, node) : ex_get(e, sel ? ex_child(e, f, sel, n) : f, node);
    uint32_t k = m->n_parts++;
    m->vec[k] = x->v;
    m->constants &= constant;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = sel ? sel[i] : i;
        m->part[row] = k;
        m->at[row] = constant ? 0 : i;
    }
    ex_errors *err = x->errors;
    if (err && constant) err = ex_errors_spread(e, err, FZ_ANEWN(e->a, uint32_t, n + 1), n);
    m->errors = ex_errors_union(e, m->errors, ex_errors_up(e, err, sel));
    return x;
}

static col_vec *merge_dictionary(ex_eval *e, ex_frame *f, const col_type *t, const merge *m) {
    col_builder *b = col_builder_new(e->a, t);
    for (uint32_t k = 0; k < m->n_parts; k++) {
        if (col_is_null(m->vec[k], 0)) col_add_null(b);
        else col_add_from(b, m->vec[k], 0);
    }
    col_add_null(b);
    col_vec *r = col_vec_dict(e->a, col_builder_finish(b), f->n);
    r->type = t;
    for (uint32_t i = 0; i < f->n; i++) r->idx[i] = m->part[i] == NONE ? m->n_parts : m->part[i];
    return r;
}

static void merge_fixed(col_vec *r, const merge *m, uint32_t n) {
    unsigned w = col_width(r->type->kind);
    for (uint32_t i = 0; i < n; i++) {
        if (m->part[i] == NONE) continue;
        uint32_t at = m->at[i];
        const col_vec *v = col_at(m->vec[m->part[i]], &at);
        if (v->type->kind == COL_NULL) continue;
        memcpy((char *)r->data + (size_t)w * i, (const char *)v->data + (size_t)w * at, w);
    }
}
static void merge_bytes(ex_eval *e, col_vec *r, const merge *m, uint32_t n) {
    size_t total = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t end = 0;
        for (uint32_t i = 0; i < n; i++) {
            fz_sv s = {NULL, 0};
            if (m->part[i] != NONE && r->valid[i]) s = col_sv(m->vec[m->part[i]], m->at[i]);
            if (pass == 0) { total += s.n; continue; }
            if (s.n) memcpy(r->bytes + end, s.p, s.n);
            end += (uint32_t)s.n;
            r->off[i + 1] = end;
        }
        if (pass == 0) r->bytes = fz_arena_alloc(e->a, total);
    }
}

static col_vec *merge_finish(ex_eval *e, ex_frame *f, const col_type *t, const merge *m) {
    uint32_t n = f->n;
    if (m->constants && f->dom == EX_FLAT && m->n_parts && t->kind != COL_NULL) return merge_dictionary(e, f, t, m);
    if (t->kind >= COL_ARRAY) {
        col_builder *b = col_builder_new(e->a, t);
        for (uint32_t i = 0; i < n; i++) {
            if (m->part[i] == NONE || col_is_null(m->vec[m->part[i]], m->at[i])) col_add_null(b);
            else col_add_from(b, m->vec[m->part[i]], m->at[i]);
        }
        return col_builder_finish(b);
    }
    col_vec *r = col_vec_nulls(e->a, t, n);
    for (uint32_t i = 0; i < n; i++) r->valid[i] = m->part[i] != NONE && !col_is_null(m->vec[m->part[i]], m->at[i]);
    if (col_width(t->kind)) merge_fixed(r, m, n);
    else if (col_is_varlen(t->kind)) merge_bytes(e, r, m, n);
    if (!memchr(r->valid, 0, n)) r->valid = NULL;
    return r;
}

/* ---- CASE, COALESCE ------------------------------------------------------------------------------------------------------------ */

/* Rows of sel (NULL: all n) where the condition is TRUE, and the others. Rows where it failed are in neither. */
static void split(ex_eval *e, ex_frame *f, uint32_t node, merge *m, const uint32_t *sel, uint32_t n, uint32_t **yes, uint32_t *n_yes, uint32_t **no, uint32_t *n_no) {
    *yes = fz_arena_alloc(e->a, (n + 1) * sizeof **yes);
    *no = fz_arena_alloc(e->a, (n + 1) * sizeof **no);
    *n_yes = *n_no = 0;
    bool constant = e->node_dom[node] == EX_CONST && f->dom != EX_CONST;
    ex_val *x = constant ? ex_get(e, &e->constant, node) : ex_get(e, sel ? ex_child(e, f, sel, n) : f, node);
    ex_errors *err = x->errors;
    if (err && constant) err = ex_errors_spread(e, err, FZ_ANEWN(e->a, uint32_t, n + 1), n);
    for (uint32_t i = 0, j = 0; i < n; i++) {
        uint32_t row = sel ? sel[i] : i;
        while (err && j < err->n && err->v[j].row < i) j++;
        if (err && j < err->n && err->v[j].row == i) continue;
        if (truth_at(x->v, constant ? 0 : i) == EX_TRUE) (*yes)[(*n_yes)++] = row;
        else (*no)[(*n_no)++] = row;
    }
    m->errors = ex_errors_union(e, m->errors, ex_errors_up(e, err, sel));
}

static void case_form(ex_eval *e, ex_frame *f, const ex_node *n, ex_val *out) {
    merge m = merge_new(e, f->n, n->n_args);
    uint32_t *rest = NULL, n_rest = f->n;
    for (uint32_t k = 0; k + 1 < n->n_args && n_rest; k += 2) {
        uint32_t *yes, *no, n_yes, n_no;
        split(e, f, n->args[k], &m, rest, n_rest, &yes, &n_yes, &no, &n_no);
        take(e, f, &m, n->args[k + 1], n_yes == f->n ? NULL : yes, n_yes);
        rest = n_no == f->n ? NULL : no;
        n_rest = n_no;
    }
    take(e, f, &m, n->args[n->n_args - 1], rest, n_rest);
    out->v = merge_finish(e, f, n->type, &m);
    out->errors = m.errors;
}

static void coalesce_form(ex_eval *e, ex_frame *f, const ex_node *n, ex_val *out) {
    merge m = merge_new(e, f->n, n->n_args);
    uint32_t *rest = NULL, n_rest = f->n;
    for (uint32_t k = 0; k < n->n_args && n_rest; k++) {
        ex_val *x = take(e, f, &m, n->args[k], rest, n_rest);
        bool constant = e->node_dom[n->args[k]] == EX_CONST && f->dom != EX_CONST;
        if (k == 0 && !constant && !x->v->valid && !(x->v->idx && x->v->dict->valid) && x->v->type->kind != COL_NULL) { /* nothing is NULL */
            out->v = x->v;
            out->errors = x->errors;
            return;
        }
        uint32_t *null = fz_arena_alloc(e->a, (n_rest + 1) * sizeof *null), n_null = 0;
        for (uint32_t i = 0; i < n_rest; i++)
            if (col_is_null(x->v, constant ? 0 : i)) null[n_null++] = rest ? rest[i] : i;
        rest = n_null == f->n ? NULL : null;
        n_rest = n_null;
    }
    out->v = merge_finish(e, f, n->type, &m);
    out->errors = m.errors;
}

/* (value, column name): the value; rows that are NULL fail. */
static void not_null_form(ex_eval *e, ex_frame *f, const ex_node *n, ex_val *out) {
    ex_val *x = ex_get(e, f, n->args[0]);
    const col_vec *name = ex_get(e, &e->constant, n->args[1])->v;
    fz_sv s = col_sv(name, 0);
    out->v = x->v;
    out->errors = x->errors;
    if (!x->v->valid && !(x->v->idx && x->v->dict->valid) && x->v->type->kind != COL_NULL) return;
    ex_errors *mine = NULL;
    for (uint32_t i = 0; i < f->n; i++)
        if (col_is_null(x->v, i)) mine = ex_errors_add(e, mine, (ex_error_row){i, "not-null", fz_arena_printf(e->a, "column '%.*s' is NOT NULL but the value is NULL", (int)s.n, s.p), n->expr});
    out->errors = ex_errors_union(e, x->errors, mine);
}

void ex_form(ex_eval *e, ex_frame *f, uint32_t node, ex_val *out) {
    const ex_node *n = &e->p->nodes[node];
    switch (n->k) {
    case SQL_K_AND:
    case SQL_K_OR: and_or(e, f, n, out); return;
    case SQL_K_CASE: case_form(e, f, n, out); return;
    case SQL_K_COALESCE: coalesce_form(e, f, n, out); return;
    default: not_null_form(e, f, n, out);
    }
}
