/* Plans to programs: a chain of filters and projections becomes one graph, in which equal expressions are one node. */
#include "exec/prog_int.h"

static const bool strict_kernels[SQL_K_COUNT] = {
#define X(id, strict) [SQL_K_##id] = strict,
    SQL_KERNELS(X)
#undef X
};

ex_program *ex_program_new(const sql_settings *s) {
    fz_arena *a = fz_arena_new();
    ex_program *p = FZ_ANEW(a, ex_program);
    p->a = a;
    p->time_zone = fz_arena_strdup(a, s && s->time_zone ? s->time_zone : "UTC");
    p->now_us = s ? s->now_us : 0;
    return p;
}
void ex_program_free(ex_program *p) {
    if (!p) return;
    fz_free(p->nodes);
    fz_free(p->table);
    fz_free(p->outputs);
    fz_arena_free(p->a);
}
const sql_plan *ex_program_scan(const ex_program *p) { return p->scan; }

/* ---- nodes --------------------------------------------------------------------------------------------------------------------- */

static bool same_literal(const ex_node *x, const ex_node *y) {
    bool nx = col_is_null(x->literal, 0), ny = col_is_null(y->literal, 0);
    if (nx || ny) return nx && ny;
    return col_equal(x->literal, 0, y->literal, 0);
}
static bool same_node(const ex_node *x, const ex_node *y) {
    if (x->hash != y->hash || x->kind != y->kind || x->fn != y->fn || x->column != y->column || x->n_args != y->n_args || x->try_cast != y->try_cast) return false;
    if (x->is_volatile || !col_type_eq(x->type, y->type, true)) return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (x->args[i] != y->args[i]) return false;
    return x->kind != EX_N_LITERAL || same_literal(x, y);
}
static bool same_list(const uint32_t *x, const uint32_t *y, uint32_t n) { return n == 0 || memcmp(x, y, n * sizeof *x) == 0; }
bool ex_program_same(const ex_program *p, const ex_program *q) {
    if (p->n_nodes != q->n_nodes || p->n_filters != q->n_filters || p->n_outputs != q->n_outputs || p->now_us != q->now_us || strcmp(p->time_zone, q->time_zone) != 0) return false;
    if (!same_list(p->filters, q->filters, p->n_filters) || !same_list(p->outputs, q->outputs, p->n_outputs)) return false;
    for (uint32_t i = 0; i < p->n_nodes; i++) /* the text of an expression stands in rejects */
        if (!same_node(&p->nodes[i], &q->nodes[i]) || strcmp(p->nodes[i].expr ? p->nodes[i].expr : "", q->nodes[i].expr ? q->nodes[i].expr : "") != 0) return false;
    return true;
}
static uint64_t hash_node(const ex_node *n) {
    uint64_t h[6] = {n->kind, (uint64_t)(uintptr_t)n->fn, n->column, n->try_cast, n->n_args ? fz_hash(n->args, n->n_args * sizeof *n->args) : 0, n->type->kind};
    if (n->kind == EX_N_LITERAL && !col_is_null(n->literal, 0)) h[4] = col_hash(n->literal, 0);
    return fz_hash(h, sizeof h);
}
static void grow_table(ex_program *p) {
    uint32_t size = p->table_size ? p->table_size * 2 : 64;
    fz_free(p->table);
    p->table = fz_calloc(size, sizeof *p->table);
    p->table_size = size;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t h = (uint32_t)p->nodes[i].hash & (size - 1);
        while (p->table[h]) h = (h + 1) & (size - 1);
        p->table[h] = i + 1;
    }
}
static uint32_t intern(ex_program *p, ex_node *n) {
    n->hash = hash_node(n);
    if (p->n_nodes * 2 >= p->table_size) grow_table(p);
    uint32_t h = (uint32_t)n->hash & (p->table_size - 1);
    for (; p->table[h]; h = (h + 1) & (p->table_size - 1))
        if (same_node(&p->nodes[p->table[h] - 1], n)) return p->table[h] - 1;
    FZ_GROW(p->nodes, p->n_nodes, p->cap_nodes);
    p->nodes[p->n_nodes] = *n;
    p->table[h] = ++p->n_nodes;
    return p->n_nodes - 1;
}

/* Kernels that answer every row. All others may fail one. */
static bool never_fails(sql_kernel k) {
    switch (k) {
    case SQL_K_DIVIDE: case SQL_K_MOD: case SQL_K_NOT_NULL: case SQL_K_PRINTF: case SQL_K_TRUNCATE: case SQL_K_ROUND: case SQL_K_ITEM: case SQL_K_REPEAT:
    case SQL_K_LPAD: case SQL_K_RPAD: case SQL_K_LIKE: case SQL_K_NOT_LIKE: case SQL_K_RAND_INTEGER: case SQL_K_CHR: return false;
    default: return k < SQL_K_TO_TIMESTAMP || k > SQL_K_OVERLAPS;
    }
}
static bool cast_never_fails(const col_type *from, const col_type *to) {
    return from->kind == COL_NULL || (!col_is_text(from->kind) && from->kind < COL_DATE && to->kind < COL_DATE) || (col_is_text(from->kind) && (col_is_varlen(to->kind)));
}

static uint32_t add_column(ex_program *p, uint32_t column, const col_type *t, const char *text) {
    ex_node n = {.kind = EX_N_COLUMN, .column = column, .type = t, .expr = text};
    return intern(p, &n);
}

uint32_t ex_add_expr(ex_program *p, const sql_bound *e, const uint32_t *cols) {
    if (e->kind == SQL_B_COLUMN) return cols ? cols[e->column] : add_column(p, e->column, e->type, e->text);
    ex_node n = {.type = e->type, .expr = e->text, .fn = e->fn, .n_args = e->n_args};
    if (e->kind == SQL_B_LITERAL) {
        n.kind = EX_N_LITERAL;
        n.literal = e->literal;
        return intern(p, &n);
    }
    n.args = FZ_ANEWN(p->a, uint32_t, e->n_args + 1);
    for (uint32_t i = 0; i < e->n_args; i++) {
        n.args[i] = ex_add_expr(p, e->args[i], cols);
        n.can_fail |= p->nodes[n.args[i]].can_fail;
    }
    if (e->kind == SQL_B_CALL) {
        n.kind = EX_N_CALL;
        n.k = e->fn->kernel;
        n.run = ex_kernel_of(n.k);
        n.strict = strict_kernels[n.k];
        n.is_volatile = e->fn->volatile_;
        n.can_fail |= !never_fails(n.k);
    } else {
        const col_type *from = e->args[0]->type;
        n.kind = EX_N_CAST;
        n.try_cast = e->kind == SQL_B_TRY_CAST;
        n.run = ex_cast_of(from, e->type);
        n.strict = true;
        n.can_fail |= !n.try_cast && !cast_never_fails(from, e->type);
    }
    return intern(p, &n);
}

void ex_add_output(ex_program *p, uint32_t node) {
    FZ_GROW(p->outputs, p->n_outputs, p->cap_outputs);
    p->outputs[p->n_outputs++] = node;
}
/* The parts of an AND are filters of their own. */
void ex_add_filter(ex_program *p, uint32_t node) {
    const ex_node *n = &p->nodes[node];
    bool split = n->kind == EX_N_CALL && n->k == SQL_K_AND;
    uint32_t more = split ? n->n_args : 1, *v = FZ_ANEWN(p->a, uint32_t, p->n_filters + more);
    if (p->n_filters) memcpy(v, p->filters, p->n_filters * sizeof *v);
    for (uint32_t i = 0; i < more; i++) v[p->n_filters++] = split ? n->args[i] : node;
    p->filters = v;
}
void ex_program_seal(ex_program *p) {
    p->reads = FZ_ANEWN(p->a, bool, (p->scan ? p->scan->schema->n : 0) + 1);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == EX_N_COLUMN) p->reads[p->nodes[i].column] = true;
}

/* ---- chains -------------------------------------------------------------------------------------------------------------------- */

/* The cells of a single row of VALUES are constants to all that stands above, as they are to Flink's planner. */
static uint32_t *constant_row(ex_program *p, const sql_plan *pl) {
    if (pl->kind != SQL_P_VALUES || pl->n_rows != 1) return NULL;
    uint32_t *cols = FZ_ANEWN(p->a, uint32_t, pl->schema->n + 1);
    for (uint32_t k = 0; k < pl->schema->n; k++) cols[k] = ex_add_expr(p, pl->values[k], NULL);
    return cols;
}

/* Nodes of pl's columns; the first plan node that is neither filter nor projection is what the program reads. */
static uint32_t *add_chain(ex_program *p, const sql_plan *pl) {
    if (pl->kind != SQL_P_FILTER && pl->kind != SQL_P_PROJECT) {
        p->scan = pl;
        return constant_row(p, pl);
    }
    uint32_t *cols = add_chain(p, pl->inputs[0]);
    if (pl->kind == SQL_P_FILTER) {
        ex_add_filter(p, ex_add_expr(p, pl->predicate, cols));
        return cols;
    }
    uint32_t *out = FZ_ANEWN(p->a, uint32_t, pl->n_exprs + 1);
    for (uint32_t k = 0; k < pl->n_exprs; k++) out[k] = ex_add_expr(p, pl->exprs[k], cols);
    return out;
}

uint32_t *ex_compile_chain(ex_program *p, const sql_plan *pl) {
    uint32_t *cols = add_chain(p, pl);
    if (cols) return cols;
    cols = FZ_ANEWN(p->a, uint32_t, pl->schema->n + 1);
    for (uint32_t k = 0; k < pl->schema->n; k++) cols[k] = add_column(p, k, pl->schema->fields[k].type, pl->schema->fields[k].name);
    return cols;
}

fz_status ex_compile(const sql_plan *pl, const sql_settings *s, ex_program **out, fz_error *err) {
    static const char *const names[] = {"SCAN", "VALUES", "WHERE", "SELECT", "GROUP BY or DISTINCT", "ORDER BY", "LIMIT", "UNION ALL"};
    ex_program *p = ex_program_new(s);
    uint32_t *cols = ex_compile_chain(p, pl);
    if (p->scan->kind != SQL_P_SCAN) {
        fz_status st = fz_fail(err, FZ_USER, "sql.unsupported-streaming", "%s cannot run in a streaming INSERT", names[p->scan->kind]);
        ex_program_free(p);
        return st;
    }
    p->schema = pl->schema;
    for (uint32_t k = 0; k < pl->schema->n; k++) ex_add_output(p, cols[k]);
    ex_program_seal(p);
    *out = p;
    return FZ_OK;
}

ex_state *ex_state_new(const ex_program *p) {
    ex_state *st = FZ_NEW(ex_state);
    st->p = p;
    st->keep = fz_arena_new();
    st->slots = FZ_ANEWN(st->keep, void *, p->n_nodes + 1);
    return st;
}
void ex_state_free(ex_state *st) {
    if (!st) return;
    fz_arena_free(st->keep);
    fz_free(st);
}
