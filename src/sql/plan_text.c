/* EXPLAIN: plans and bound expressions as text, every cast shown. */
#include "sql/bind_int.h"

static void literal_text(fz_buf *b, const sql_bound *e) {
    if (bind_is_null_literal(e)) {
        fz_buf_puts(b, "NULL");
        return;
    }
    if (col_is_text(e->type->kind)) {
        fz_sv s = col_sv(e->literal, 0);
        fz_buf_putc(b, '\'');
        for (size_t i = 0; i < s.n; i++) {
            if (s.p[i] == '\'') fz_buf_putc(b, '\'');
            fz_buf_putc(b, s.p[i]);
        }
        fz_buf_putc(b, '\'');
        return;
    }
    fz_buf_puts(b, e->text);
}

static void list_text(fz_buf *b, sql_bound *const *v, uint32_t n, const col_schema *in) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) fz_buf_puts(b, ", ");
        sql_bound_text(b, v[i], in);
    }
}

static bool is_infix(const char *name) { return !(*name >= 'A' && *name <= 'Z') || !strcmp(name, "AND") || !strcmp(name, "OR") || !strcmp(name, "LIKE") || !strcmp(name, "NOT LIKE") || !strncmp(name, "IS DISTINCT", 11) || !strncmp(name, "IS NOT DISTINCT", 15); }

static void case_text(fz_buf *b, const sql_bound *e, const col_schema *in) {
    fz_buf_puts(b, "CASE");
    for (uint32_t i = 0; i + 1 < e->n_args; i += 2) {
        fz_buf_puts(b, " WHEN ");
        sql_bound_text(b, e->args[i], in);
        fz_buf_puts(b, " THEN ");
        sql_bound_text(b, e->args[i + 1], in);
    }
    fz_buf_puts(b, " ELSE ");
    sql_bound_text(b, e->args[e->n_args - 1], in);
    fz_buf_puts(b, " END");
}

static void call_text(fz_buf *b, const sql_bound *e, const col_schema *in) {
    const char *name = e->fn->name;
    if (e->fn->kernel == SQL_K_CASE) {
        case_text(b, e, in);
    } else if (!strncmp(name, "IS ", 3) && e->n_args == 1) {
        sql_bound_text(b, e->args[0], in);
        fz_buf_printf(b, " %s", name);
    } else if ((!strcmp(name, "IN") || !strcmp(name, "NOT IN")) && e->n_args > 1) {
        sql_bound_text(b, e->args[0], in);
        fz_buf_printf(b, " %s (", name);
        list_text(b, e->args + 1, e->n_args - 1, in);
        fz_buf_putc(b, ')');
    } else if (is_infix(name) && e->n_args >= 2) {
        fz_buf_putc(b, '(');
        for (uint32_t i = 0; i < e->n_args; i++) {
            if (i) fz_buf_printf(b, " %s ", name);
            sql_bound_text(b, e->args[i], in);
        }
        fz_buf_putc(b, ')');
    } else {
        fz_buf_printf(b, "%s(", !strcmp(name, "-1") ? "-" : name);
        list_text(b, e->args, e->n_args, in);
        fz_buf_putc(b, ')');
    }
}

void sql_bound_text(fz_buf *b, const sql_bound *e, const col_schema *in) {
    switch (e->kind) {
    case SQL_B_COLUMN: fz_buf_puts(b, in && e->column < in->n ? in->fields[e->column].name : e->text); return;
    case SQL_B_LITERAL: literal_text(b, e); return;
    case SQL_B_CALL: call_text(b, e, in); return;
    default:
        fz_buf_puts(b, e->kind == SQL_B_CAST ? "CAST(" : "TRY_CAST(");
        sql_bound_text(b, e->args[0], in);
        fz_buf_puts(b, " AS ");
        col_type t = *e->type;
        t.nullable = true;
        col_type_text(b, &t);
        fz_buf_putc(b, ')');
    }
}

static void aggregates_text(fz_buf *b, const sql_plan *p, const col_schema *in) {
    for (uint32_t k = 0; k < p->n_aggs; k++) {
        const sql_agg *g = &p->aggs[k];
        fz_buf_printf(b, "%s%s(%s", k ? ", " : "", g->fn->name, g->distinct ? "DISTINCT " : "");
        if (g->arg) sql_bound_text(b, g->arg, in);
        else fz_buf_putc(b, '*');
        fz_buf_putc(b, ')');
        if (g->filter) {
            fz_buf_puts(b, " FILTER (WHERE ");
            sql_bound_text(b, g->filter, in);
            fz_buf_putc(b, ')');
        }
    }
}

static void scan_text(fz_buf *b, const sql_plan *p) {
    fz_buf_printf(b, "Scan %s [", p->table->path);
    bool first = true;
    for (uint32_t k = 0; k < p->schema->n; k++) {
        if (!p->wanted[k]) continue;
        fz_buf_printf(b, "%s%s", first ? "" : ", ", p->schema->fields[k].name);
        first = false;
    }
    fz_buf_putc(b, ']');
}

static void project_text(fz_buf *b, const sql_plan *p, const col_schema *in) {
    fz_buf_puts(b, "Project [");
    for (uint32_t k = 0; k < p->n_exprs; k++) {
        if (k) fz_buf_puts(b, ", ");
        sql_bound_text(b, p->exprs[k], in);
        const char *name = p->schema->fields[k].name;
        if (p->exprs[k]->kind != SQL_B_COLUMN || strcmp(in->fields[p->exprs[k]->column].name, name)) fz_buf_printf(b, " AS %s", name);
    }
    fz_buf_putc(b, ']');
}

static void sort_text(fz_buf *b, const sql_plan *p, const col_schema *in) {
    fz_buf_puts(b, "Sort [");
    for (uint32_t k = 0; k < p->n_exprs; k++) {
        if (k) fz_buf_puts(b, ", ");
        sql_bound_text(b, p->exprs[k], in);
        fz_buf_printf(b, " %s NULLS %s", p->desc[k] ? "DESC" : "ASC", p->nulls_first[k] ? "FIRST" : "LAST");
    }
    fz_buf_putc(b, ']');
}

static void node_text(fz_buf *b, const sql_plan *p, int depth) {
    fz_buf_printf(b, "%*s", depth * 2, "");
    const col_schema *in = p->n_inputs ? p->inputs[0]->schema : NULL;
    switch (p->kind) {
    case SQL_P_SCAN: scan_text(b, p); break;
    case SQL_P_VALUES: fz_buf_printf(b, "Values [%u row%s]", p->n_rows, p->n_rows == 1 ? "" : "s"); break;
    case SQL_P_FILTER:
        fz_buf_puts(b, "Filter [");
        sql_bound_text(b, p->predicate, in);
        fz_buf_putc(b, ']');
        break;
    case SQL_P_PROJECT: project_text(b, p, in); break;
    case SQL_P_AGGREGATE:
        fz_buf_puts(b, "Aggregate [");
        list_text(b, p->exprs, p->n_exprs, in);
        if (p->n_exprs && p->n_aggs) fz_buf_puts(b, "; ");
        aggregates_text(b, p, in);
        fz_buf_putc(b, ']');
        break;
    case SQL_P_SORT: sort_text(b, p, in); break;
    case SQL_P_LIMIT:
        fz_buf_puts(b, "Limit [");
        if (p->limit >= 0) fz_buf_printf(b, "%lld", (long long)p->limit);
        if (p->offset) fz_buf_printf(b, "%soffset %lld", p->limit >= 0 ? ", " : "", (long long)p->offset);
        fz_buf_putc(b, ']');
        break;
    case SQL_P_UNION: fz_buf_puts(b, "Union All"); break;
    }
    fz_buf_putc(b, '\n');
    for (uint32_t i = 0; i < p->n_inputs; i++) node_text(b, p->inputs[i], depth + 1);
}
void sql_plan_text(fz_buf *b, const sql_plan *p) { node_text(b, p, 0); }
