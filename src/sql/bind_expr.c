/* Expressions: tree to bound tree. Names are resolved here, calls are looked up in the function table and typed by its rules. */
#include "sql/bind_int.h"

static fz_status fail_at(fz_error *err, sql_pos pos, const char *code, const char *message) {
    fz_fail(err, FZ_USER, code, "%s", message);
    return fz_at(err, pos.line, pos.column);
}

static const char *text_of(sql_bind *b, const sql_expr *e) {
    fz_buf t = {0};
    sql_expr_text(&t, e);
    const char *s = fz_arena_strndup(b->a, (const char *)t.data, t.len);
    fz_buf_free(&t);
    return s;
}

/* ---- columns ------------------------------------------------------------------------------------------------------------------- */

sql_bound *bind_column_ref(sql_bind *b, const col_schema *s, uint32_t i, sql_pos pos) {
    sql_bound *c = bind_node(b, SQL_B_COLUMN, s->fields[i].type, pos, s->fields[i].name);
    c->column = i;
    return c;
}

static const char *name_text(sql_bind *b, const sql_name *n) {
    const char *t = n->part[0];
    for (uint32_t k = 1; k < n->n; k++) t = fz_arena_printf(b->a, "%s.%s", t, n->part[k]);
    return t;
}

static fz_status no_column(sql_bind *b, const sql_name *n, const char *part, fz_error *err) {
    fz_fail(err, FZ_USER, "sql.unknown-column", "column '%s' is not there", name_text(b, n));
    const col_schema *s = b->scope ? b->scope->schema : NULL;
    fz_buf list = {0};
    unsigned best = strlen(part) < 3 ? 2 : strlen(part) < 6 ? 3 : 4;
    for (uint32_t k = 0; s && k < s->n; k++) {
        unsigned d = sql_name_distance(part, s->fields[k].name, best);
        if (d < best) {
            best = d;
            fz_hint(err, "did you mean '%s'?%s", s->fields[k].name, d ? "" : " Names are case-sensitive");
        }
        if (k < 12) fz_buf_printf(&list, "%s%s", k ? ", " : "", s->fields[k].name);
    }
    if (s && s->n) fz_detail(err, "columns here: %s%s", fz_buf_cstr(&list), s->n > 12 ? ", ..." : "");
    else fz_detail(err, "no columns can be used here");
    fz_buf_free(&list);
    return fz_at(err, n->pos.line, n->pos.column);
}

/* How many leading parts of the name mean the scope itself. */
static uint32_t qualifier(const bind_scope *s, const sql_name *n) {
    if (n->n < 2) return 0;
    if (s->alias) return !strcmp(s->alias, n->part[0]) ? 1 : 0;
    if (!s->table) return 0;
    for (uint32_t used = s->table->n < n->n ? s->table->n : n->n - 1; used; used--) { /* database.table.column */
        bool same = true;
        for (uint32_t k = 0; k < used; k++) same &= !strcmp(s->table->part[s->table->n - used + k], n->part[k]);
        if (same) return used;
    }
    return 0;
}

static fz_status field_of(sql_bind *b, sql_bound *row, const char *name, sql_pos pos, sql_bound **out, fz_error *err) {
    if (row->type->kind != COL_ROW) {
        fz_fail(err, FZ_USER, "sql.type-mismatch", "'%s' is of type %s and has no fields", row->text, bind_type_name(b->a, row->type));
        return fz_at(err, pos.line, pos.column);
    }
    for (uint32_t k = 0; k < row->type->n_fields; k++) {
        const col_field *f = &row->type->fields[k];
        if (strcmp(f->name, name)) continue;
        sql_bound *args[2] = {row, bind_int_literal(b, k, pos)};
        *out = bind_call(b, sql_fn_of(SQL_K_FIELD), col_with_null(b->a, f->type, f->type->nullable || row->type->nullable), args, 2, row);
        (*out)->pos = pos;
        (*out)->text = fz_arena_printf(b->a, "%s.%s", row->text, name);
        return FZ_OK;
    }
    fz_fail(err, FZ_USER, "sql.unknown-column", "'%s' has no field '%s'", row->text, name);
    return fz_at(err, pos.line, pos.column);
}

static fz_status bind_column(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    const sql_name *n = &e->col;
    if (!b->scope) return no_column(b, n, n->part[0], err);
    uint32_t at = qualifier(b->scope, n);
    const col_schema *s = b->scope->schema;
    int found = -1;
    for (uint32_t k = 0; k < s->n; k++) {
        if (strcmp(s->fields[k].name, n->part[at])) continue;
        if (found >= 0) return fail_at(err, n->pos, "sql.ambiguous-column", fz_arena_printf(b->a, "column '%s' is there twice", n->part[at]));
        found = (int)k;
    }
    if (found < 0) return no_column(b, n, n->part[at], err);
    *out = bind_column_ref(b, s, (uint32_t)found, e->pos);
    for (uint32_t k = at + 1; k < n->n; k++) FZ_TRY(field_of(b, *out, n->part[k], e->pos, out, err));
    return FZ_OK;
}

/* ---- calls --------------------------------------------------------------------------------------------------------------------- */

/* Flink's group window functions and what reads their bounds. */
static bool is_window(const char *fn) {
    static const char *const names[] = {"TUMBLE", "HOP", "SESSION", "CUMULATE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(fn, names[i], n) == 0 && (!fn[n] || strcmp(fn + n, "_START") == 0 || strcmp(fn + n, "_END") == 0 || strcmp(fn + n, "_ROWTIME") == 0)) return true;
    }
    return false;
}

static fz_status find_function(const sql_expr *e, const sql_fn **out, fz_error *err) {
    *out = sql_fn_find(e->fn);
    if (!*out && is_window(e->fn)) {
        fz_fail(err, FZ_USER, "sql.unsupported", "windows (%s) are not supported", e->fn);
        fz_hint(err, "GROUP BY FLOOR(ts TO HOUR) gives hourly groups over a table");
        return fz_at(err, e->pos.line, e->pos.column);
    }
    if (!*out) {
        fz_fail(err, FZ_USER, "sql.unknown-function", "no function is called %s", e->fn);
        const char *near = sql_fn_nearest(e->fn);
        if (near) fz_hint(err, "did you mean %s?", near);
        return fz_at(err, e->pos.line, e->pos.column);
    }
    if ((*out)->kernel == SQL_K_NONE) {
        fz_fail(err, FZ_USER, "sql.function-unavailable", "%s is a function of Flink that frazil does not have", e->fn);
        fz_detail(err, "%s", (*out)->signature);
        return fz_at(err, e->pos.line, e->pos.column);
    }
    return FZ_OK;
}

static fz_status check_count(const sql_expr *e, const sql_fn *fn, uint32_t n, fz_error *err) {
    if ((int)n >= fn->min_args && (fn->max_args < 0 || (int)n <= fn->max_args)) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.argument-count", "%s does not take %u argument%s", fn->name, n, n == 1 ? "" : "s");
    fz_hint(err, "%s", fn->signature);
    return fz_at(err, e->pos.line, e->pos.column);
}

static fz_status bind_argument(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    if (e->kind == SQL_X_SYMBOL) {
        *out = bind_text_literal(b, e->text, strlen(e->text), e->pos);
        return FZ_OK;
    }
    if (e->kind == SQL_X_NONE) { /* TRIM's characters when they are left out */
        *out = bind_text_literal(b, " ", 1, e->pos);
        return FZ_OK;
    }
    return bind_expr(b, e, out, err);
}

static sql_bound *new_call(sql_bind *b, const sql_expr *e, const sql_fn *fn, uint32_t n) {
    sql_bound *c = bind_node(b, SQL_B_CALL, NULL, e->pos, text_of(b, e));
    c->fn = fn;
    c->n_args = n;
    c->args = FZ_ANEWN(b->a, sql_bound *, n ? n : 1);
    return c;
}

/* (operand or none, when, then, ..., else or none): with an operand each WHEN is a comparison. */
static fz_status bind_case(sql_bind *b, const sql_expr *e, const sql_fn *fn, sql_bound **out, fz_error *err) {
    sql_bound *c = new_call(b, e, fn, e->n_args - 1), *operand = NULL;
    if (e->args[0]->kind != SQL_X_NONE) FZ_TRY(bind_expr(b, e->args[0], &operand, err));
    for (uint32_t i = 1; i < e->n_args; i++) {
        sql_bound **slot = &c->args[i - 1];
        if (e->args[i]->kind == SQL_X_NONE) {
            *slot = bind_null_literal(b, e->pos, "NULL");
            continue;
        }
        FZ_TRY(bind_expr(b, e->args[i], slot, err));
        if (operand && i % 2 == 1 && i + 1 < e->n_args) {
            sql_bound *pair[2] = {operand, *slot};
            *slot = bind_call(b, sql_fn_of(SQL_K_EQ), NULL, pair, 2, *slot);
            FZ_TRY(rule_compare(b, *slot, err));
        }
    }
    *out = c;
    return rule_case(b, c, err);
}

static fz_status bind_aggregate(sql_bind *b, const sql_expr *e, const sql_fn *fn, sql_bound **out, fz_error *err) {
    if (b->inside_aggregate) return fail_at(err, e->pos, "sql.nested-aggregate", fz_arena_printf(b->a, "%s stands inside another aggregate", e->fn));
    if (!b->aggregates) return fail_at(err, e->pos, "sql.aggregate-not-allowed", fz_arena_printf(b->a, "aggregate %s cannot be used here", e->fn));
    bind_agg_call *g = FZ_ANEW(b->a, bind_agg_call);
    bool star = e->n_args == 1 && e->args[0]->kind == SQL_X_STAR;
    if (star && fn->kernel != SQL_K_AGG_COUNT) return fail_at(err, e->pos, "sql.argument-count", fz_arena_printf(b->a, "only COUNT takes *, not %s", e->fn));
    if (!star) FZ_TRY(check_count(e, fn, e->n_args, err));
    g->bound = *new_call(b, e, fn, star ? 0 : e->n_args);
    g->distinct = e->distinct && fn->kernel != SQL_K_AGG_MIN && fn->kernel != SQL_K_AGG_MAX;
    b->inside_aggregate = true;
    fz_status s = FZ_OK;
    for (uint32_t i = 0; s == FZ_OK && i < g->bound.n_args; i++) s = bind_expr(b, e->args[i], &g->bound.args[i], err);
    if (s == FZ_OK && e->filter) s = bind_bool(b, e->filter, "FILTER", &g->filter, err);
    b->inside_aggregate = false;
    if (s != FZ_OK) return s;
    *out = &g->bound;
    return rule_aggregate(b, &g->bound, err);
}

static fz_status bind_call_expr(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    if (!strcmp(e->fn, "DOT") && e->n_args == 1) {
        sql_bound *row;
        FZ_TRY(bind_expr(b, e->args[0], &row, err));
        return field_of(b, row, e->text, e->pos, out, err);
    }
    const sql_fn *fn;
    FZ_TRY(find_function(e, &fn, err));
    if (fn->kernel == SQL_K_NEG && e->n_args == 1 && e->args[0]->kind == SQL_X_NUMBER && e->fn[0] == '-') {
        *out = bind_literal_of(b, e, err);
        return *out ? FZ_OK : FZ_USER;
    }
    if (fn->aggregate) return bind_aggregate(b, e, fn, out, err);
    if (e->distinct || e->filter) return fail_at(err, e->pos, "sql.syntax", fz_arena_printf(b->a, "DISTINCT and FILTER belong to aggregates, not to %s", e->fn));
    if (!strcmp(fn->name, "CASE")) return bind_case(b, e, fn, out, err);
    FZ_TRY(check_count(e, fn, e->n_args, err));
    sql_bound *c = new_call(b, e, fn, e->n_args);
    for (uint32_t i = 0; i < e->n_args; i++) FZ_TRY(bind_argument(b, e->args[i], &c->args[i], err));
    *out = c;
    return fn->rule(b, c, err);
}

static fz_status bind_cast_expr(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    sql_bound *x;
    FZ_TRY(bind_expr(b, e->args[0], &x, err));
    if (!bind_can_cast(x->type, e->type)) {
        fz_fail(err, FZ_USER, "sql.cast", "%s cannot be cast to %s", bind_type_name(b->a, x->type), bind_type_name(b->a, e->type));
        return fz_at(err, e->pos.line, e->pos.column);
    }
    bool try = e->kind == SQL_X_TRY_CAST, nullable = try || x->type->nullable || x->type->kind == COL_NULL;
    const col_type *to = e->type->kind == COL_TIME ? col_simple(COL_TIME, true) : e->type; /* a cast to TIME(3) gives TIME(0) in Flink */
    *out = bind_node(b, try ? SQL_B_TRY_CAST : SQL_B_CAST, col_with_null(b->a, to, nullable), e->pos, text_of(b, e));
    (*out)->args = FZ_ANEWN(b->a, sql_bound *, 1);
    (*out)->args[0] = x;
    (*out)->n_args = 1;
    return FZ_OK;
}

static fz_status bind_any(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    switch (e->kind) {
    case SQL_X_COLUMN: return bind_column(b, e, out, err);
    case SQL_X_CALL: return bind_call_expr(b, e, out, err);
    case SQL_X_CAST:
    case SQL_X_TRY_CAST: return bind_cast_expr(b, e, out, err);
    case SQL_X_STAR: return fail_at(err, e->pos, "sql.syntax", "* cannot stand here");
    case SQL_X_SYMBOL: return fail_at(err, e->pos, "sql.syntax", fz_arena_printf(b->a, "%s cannot stand here", e->text));
    case SQL_X_NONE: return fail_at(err, e->pos, "sql.syntax", "an expression is missing here");
    default: *out = bind_literal_of(b, e, err); return *out ? FZ_OK : FZ_USER;
    }
}

fz_status bind_expr(sql_bind *b, const sql_expr *e, sql_bound **out, fz_error *err) {
    if (b->depth >= FZ_MAX_SQL_DEPTH) return fail_at(err, e->pos, "sql.too-deep", "the expression is nested too deep");
    b->depth++;
    fz_status s = bind_any(b, e, out, err);
    b->depth--;
    return s;
}

fz_status bind_bool(sql_bind *b, const sql_expr *e, const char *what, sql_bound **out, fz_error *err) {
    FZ_TRY(bind_expr(b, e, out, err));
    if ((*out)->type->kind == COL_NULL) *out = bind_cast(b, *out, col_simple(COL_BOOLEAN, true));
    if ((*out)->type->kind == COL_BOOLEAN) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.type-mismatch", "%s needs a BOOLEAN, not %s", what, bind_type_name(b->a, (*out)->type));
    return fz_at(err, e->pos.line, e->pos.column);
}

fz_status sql_bind_expr(fz_arena *a, const sql_expr *e, const col_schema *in, const sql_settings *s, sql_bound **out, fz_error *err) {
    bind_scope scope = {.schema = in};
    sql_bind b = {.a = a, .settings = s, .scope = in ? &scope : NULL};
    return bind_expr(&b, e, out, err);
}
