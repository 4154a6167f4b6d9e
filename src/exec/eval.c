/* Evaluation of nodes in frames. See prog_int.h. */
#include "exec/prog_int.h"

/* ---- errors -------------------------------------------------------------------------------------------------------------------- */

ex_errors *ex_errors_add(ex_eval *e, ex_errors *x, ex_error_row row) {
    if (!x) x = FZ_ANEW(e->a, ex_errors);
    if (x->n == x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 8;
        x->v = fz_arena_realloc(e->a, x->v, x->cap * sizeof *x->v, cap * sizeof *x->v);
        x->cap = cap;
    }
    x->v[x->n++] = row;
    return x;
}
/* One error a row: x's where both have one. */
ex_errors *ex_errors_union(ex_eval *e, ex_errors *x, ex_errors *y) {
    if (!x || !x->n) return y && y->n ? y : NULL;
    if (!y || !y->n || x == y) return x;
    ex_errors *r = NULL;
    for (uint32_t i = 0, j = 0; i < x->n || j < y->n;) {
        if (j == y->n || (i < x->n && x->v[i].row <= y->v[j].row)) {
            if (j < y->n && x->v[i].row == y->v[j].row) j++;
            r = ex_errors_add(e, r, x->v[i++]);
        } else r = ex_errors_add(e, r, y->v[j++]);
    }
    return r;
}
ex_errors *ex_errors_up(ex_eval *e, ex_errors *x, const uint32_t *sel) {
    if (!x || !x->n || !sel) return x;
    ex_errors *r = NULL;
    for (uint32_t i = 0; i < x->n; i++) {
        ex_error_row row = x->v[i];
        row.row = sel[row.row];
        r = ex_errors_add(e, r, row);
    }
    return r;
}
static ex_errors *errors_down(ex_eval *e, ex_errors *x, const uint32_t *sel, uint32_t n) {
    if (!x || !x->n) return NULL;
    ex_errors *r = NULL;
    for (uint32_t i = 0, j = 0; i < n && j < x->n;) {
        if (sel[i] < x->v[j].row) i++;
        else if (sel[i] > x->v[j].row) j++;
        else {
            ex_error_row row = x->v[j];
            row.row = i++;
            r = ex_errors_add(e, r, row);
        }
    }
    return r;
}
ex_errors *ex_errors_spread(ex_eval *e, ex_errors *x, const uint32_t *idx, uint32_t n) {
    if (!x || !x->n) return NULL;
    uint32_t entries = x->v[x->n - 1].row + 1, *at = FZ_ANEWN(e->a, uint32_t, entries);
    for (uint32_t k = 0; k < x->n; k++) at[x->v[k].row] = k + 1;
    ex_errors *r = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (idx[i] >= entries || !at[idx[i]]) continue;
        ex_error_row row = x->v[at[idx[i]] - 1];
        row.row = i;
        r = ex_errors_add(e, r, row);
    }
    return r;
}

/* ---- opening a batch ----------------------------------------------------------------------------------------------------------- */

static ex_frame new_frame(ex_eval *e, int32_t dom, uint32_t n) {
    return (ex_frame){.dom = dom, .n = n, .memo = FZ_ANEWN(e->a, ex_val, e->p->n_nodes + 1), .idx = dom == EX_FLAT ? FZ_ANEWN(e->a, const uint32_t *, e->n_dom + 1) : NULL};
}
ex_frame *ex_child(ex_eval *e, ex_frame *parent, const uint32_t *sel, uint32_t n) {
    ex_frame *f = FZ_ANEW(e->a, ex_frame);
    *f = new_frame(e, parent->dom, n);
    f->parent = parent;
    f->sel = sel;
    return f;
}

/* A dictionary's mask moves into the dictionary, as one more entry; a mask of ones goes. */
static col_vec *without_mask(fz_arena *a, const col_vec *v) {
    if (!v->valid || !v->idx) return (col_vec *)v;
    col_vec *r = FZ_ANEW(a, col_vec);
    *r = *v;
    r->valid = NULL;
    if (!memchr(v->valid, 0, v->len)) return r;
    uint32_t n = v->dict->len, *sel = fz_arena_alloc(a, (n + 1) * sizeof *sel), *idx = fz_arena_alloc(a, v->len * sizeof *idx);
    for (uint32_t i = 0; i < n; i++) sel[i] = i;
    sel[n] = 0;
    r->dict = n ? col_gather(a, v->dict, sel, n + 1) : col_vec_nulls(a, v->type, 1);
    col_vec_mask(a, r->dict)[n] = 0;
    for (uint32_t i = 0; i < v->len; i++) idx[i] = v->valid[i] ? v->idx[i] : n;
    r->idx = idx;
    return r;
}

static int32_t domain_of(ex_eval *e, const col_vec *v, uint32_t n_rows) {
    if (!v->idx || v->dict->len > n_rows) return EX_FLAT;
    for (uint32_t d = 0; d < e->n_dom; d++)
        if (e->dom[d].idx == v->idx && e->dom[d].n == v->dict->len) return (int32_t)d;
    e->dom[e->n_dom] = (ex_domain){.idx = v->idx, .n = v->dict->len};
    return (int32_t)e->n_dom++;
}

static void node_domains(ex_eval *e) {
    for (uint32_t i = 0; i < e->p->n_nodes; i++) {
        const ex_node *n = &e->p->nodes[i];
        int32_t d = EX_CONST;
        if (n->kind == EX_N_COLUMN) d = e->col_dom[n->column];
        if (n->is_volatile) d = EX_FLAT;
        for (uint32_t k = 0; k < n->n_args && d != EX_FLAT; k++) {
            int32_t x = e->node_dom[n->args[k]];
            if (d == EX_CONST) d = x;
            else if (x != EX_CONST && x != d) d = EX_FLAT;
        }
        e->node_dom[i] = d;
    }
}

void ex_eval_open(ex_eval *e, const ex_program *p, ex_state *st, col_vec *const *in, uint32_t n_rows, fz_arena *a) {
    *e = (ex_eval){.p = p, .st = st, .a = a, .now_us = p->now_us ? p->now_us : fz_now_us()};
    uint32_t n_cols = p->scan ? p->scan->schema->n : 0;
    e->in = FZ_ANEWN(a, col_vec *, n_cols + 1);
    e->col_dom = FZ_ANEWN(a, int32_t, n_cols + 1);
    e->node_dom = FZ_ANEWN(a, int32_t, p->n_nodes + 1);
    e->dom = FZ_ANEWN(a, ex_domain, n_cols + 1);
    for (uint32_t c = 0; c < n_cols; c++) {
        if (!p->reads[c]) continue;
        e->in[c] = in[c] ? without_mask(a, in[c]) : col_vec_nulls(a, p->scan->schema->fields[c].type, n_rows);
        e->col_dom[c] = domain_of(e, e->in[c], n_rows);
    }
    node_domains(e);
    e->root = new_frame(e, EX_FLAT, n_rows);
    e->constant = new_frame(e, EX_CONST, 1);
    for (uint32_t d = 0; d < e->n_dom; d++) {
        e->dom[d].frame = new_frame(e, (int32_t)d, e->dom[d].n);
        e->root.idx[d] = e->dom[d].idx;
    }
}

/* ---- values -------------------------------------------------------------------------------------------------------------------- */

const uint32_t *ex_frame_idx(ex_eval *e, ex_frame *f, uint32_t dom) {
    if (f->idx[dom]) return f->idx[dom];
    const uint32_t *up = ex_frame_idx(e, f->parent, dom);
    uint32_t *idx = fz_arena_alloc(e->a, f->n * sizeof *idx);
    for (uint32_t i = 0; i < f->n; i++) idx[i] = up[f->sel[i]];
    return f->idx[dom] = idx;
}

ex_frame *ex_home(ex_eval *e, ex_frame *f, uint32_t node) {
    int32_t d = e->node_dom[node];
    if (d == EX_CONST) return &e->constant;
    if (d >= 0 && f->dom == EX_FLAT) return &e->dom[d].frame;
    return f;
}

static col_vec *column_value(ex_eval *e, ex_frame *f, const ex_node *n, uint32_t node) {
    if (f->parent) { /* eval asks the parent first, so that it is there for the next child */
        ex_val *up = ex_get(e, f->parent, node);
        return col_select(e->a, up->v, f->sel, f->n);
    }
    col_vec *v = e->in[n->column];
    if (f->dom >= 0) return v->dict;
    return v->idx ? col_flat(e->a, v) : v;
}

col_vec *ex_get_flat(ex_eval *e, ex_frame *f, uint32_t node) {
    ex_val *x = ex_get(e, f, node);
    if (!x->v->idx) return x->v;
    if (!x->flat) x->flat = col_flat(e->a, x->v);
    return x->flat;
}

/* Rows where every argument of a strict kernel is there; *none when there is no such row at all. */
static uint8_t *live_rows(ex_eval *e, ex_call *c, bool *none) {
    uint8_t *live = NULL;
    bool own = false;
    *none = false;
    for (uint32_t k = 0; k < c->n_args && !*none; k++) {
        const col_vec *v = c->arg[k];
        if (v->type->kind == COL_NULL) *none = true;
        if (!v->valid || *none) continue;
        if (!c->step[k]) {
            *none = !v->valid[0];
            continue;
        }
        if (!live) live = v->valid;
        else if (live != v->valid) {
            if (!own) {
                uint8_t *copy = fz_arena_alloc(e->a, c->n);
                memcpy(copy, live, c->n);
                live = copy;
                own = true;
            }
            for (uint32_t i = 0; i < c->n; i++) live[i] &= v->valid[i];
        }
    }
    return live;
}

static col_vec *new_result(fz_arena *a, const col_type *t, uint32_t n) {
    if (t->kind >= COL_ARRAY) return col_vec_nulls(a, t, n); /* the kernel puts its own in place */
    col_vec *v = col_vec_new(a, t, n);
    if (v->data) memset(v->data, 0, (size_t)col_width(t->kind) * n);
    return v;
}

/* Rows behind the last one that the kernel wrote. */
static void finish_text(ex_call *c) {
    for (uint32_t i = c->text_next; i < c->n; i++) {
        if (ex_live(c, i)) col_vec_mask(c->a, c->out)[i] = 0;
        c->out->off[i + 1] = (uint32_t)c->text_len;
    }
}

static void run_kernel(ex_eval *e, ex_frame *f, uint32_t node, ex_val *out) {
    const ex_node *n = &e->p->nodes[node];
    const col_vec *few[EX_MAX_ARGS], **arg = n->n_args <= EX_MAX_ARGS ? few : FZ_ANEWN(e->a, const col_vec *, n->n_args);
    uint32_t few_steps[EX_MAX_ARGS], *step = n->n_args <= EX_MAX_ARGS ? few_steps : FZ_ANEWN(e->a, uint32_t, n->n_args);
    ex_errors *errors = NULL, own = {0};
    for (uint32_t k = 0; k < n->n_args; k++) {
        bool constant = e->node_dom[n->args[k]] == EX_CONST;
        ex_frame *af = constant ? &e->constant : f;
        arg[k] = ex_get_flat(e, af, n->args[k]);
        step[k] = !constant;
        ex_errors *x = ex_get(e, af, n->args[k])->errors;
        if (x && constant && f != &e->constant) { /* a constant that failed fails every row */
            uint32_t *zero = FZ_ANEWN(e->a, uint32_t, f->n + 1);
            x = ex_errors_spread(e, x, zero, f->n);
        }
        errors = ex_errors_union(e, errors, x);
    }
    ex_call c = {.n = f->n, .n_args = n->n_args, .arg = arg, .step = step, .type = n->type, .fn = n->fn, .a = e->a, .keep = e->st->keep,
                 .slot = &e->st->slots[node], .time_zone = e->p->time_zone, .now_us = e->now_us, .try_cast = n->try_cast, .expr = n->expr, .errors = &own};
    bool none = false;
    if (n->strict) c.live = live_rows(e, &c, &none);
    if (none || f->n == 0) {
        out->v = col_vec_nulls(e->a, n->type, f->n);
        out->errors = errors;
        return;
    }
    c.out = new_result(e->a, n->type, f->n);
    if (c.live && n->type->kind < COL_ARRAY) {
        c.out->valid = fz_arena_alloc(e->a, f->n);
        memcpy(c.out->valid, c.live, f->n);
    }
    col_vec *made = c.out;
    n->run(&c);
    if (c.out == made && col_is_varlen(n->type->kind)) finish_text(&c);
    out->v = c.out;
    if (own.n) {
        ex_errors *kept = FZ_ANEW(e->a, ex_errors);
        *kept = own;
        errors = ex_errors_union(e, errors, kept);
    }
    out->errors = errors;
}

/* Entries behind the frame's idx. */
static void wrap(ex_eval *e, ex_frame *f, uint32_t node, ex_val *out) {
    const ex_node *n = &e->p->nodes[node];
    if (n->kind == EX_N_COLUMN && f == &e->root) {
        out->v = e->in[n->column];
        return;
    }
    uint32_t d = (uint32_t)e->node_dom[node];
    ex_val *x = ex_get(e, &e->dom[d].frame, node);
    col_vec *v = FZ_ANEW(e->a, col_vec);
    *v = (col_vec){.type = n->type, .len = f->n, .idx = (uint32_t *)ex_frame_idx(e, f, d), .dict = x->v};
    out->v = v;
    out->errors = ex_errors_spread(e, x->errors, v->idx, f->n);
}

ex_val *ex_get(ex_eval *e, ex_frame *f, uint32_t node) {
    const ex_node *n = &e->p->nodes[node];
    if (e->node_dom[node] == EX_CONST && f->dom != EX_CONST) f = &e->constant;
    ex_val *out = &f->memo[node];
    if (out->v) return out;
    if (f->dom == EX_FLAT && e->node_dom[node] >= 0) wrap(e, f, node, out);
    else if (f->parent && f->parent->memo[node].v && n->kind != EX_N_COLUMN) {
        ex_val *up = &f->parent->memo[node];
        out->v = col_select(e->a, up->v, f->sel, f->n);
        out->errors = errors_down(e, up->errors, f->sel, f->n);
    } else if (n->kind == EX_N_COLUMN) out->v = column_value(e, f, n, node);
    else if (n->kind == EX_N_LITERAL) out->v = (col_vec *)n->literal;
    else if (n->run) run_kernel(e, f, node, out);
    else ex_form(e, f, node, out);
    return out;
}
