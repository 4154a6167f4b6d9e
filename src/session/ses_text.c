/* Definitions as text: SHOW CREATE TABLE and SHOW CREATE VIEW, in the shape of Flink's. The text of a table parses to the same definition. */
#include "session/session_int.h"

static void put_ident_list(fz_buf *b, const char *const *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) fz_buf_puts(b, ", ");
        sql_quote_ident(b, v[i]);
    }
}

static void put_path(fz_buf *b, const ses_path *p) {
    if (!p) {
        fz_buf_puts(b, "`t`");
        return;
    }
    put_ident_list(b, (const char *const[]){p->catalog}, 1);
    fz_buf_putc(b, '.');
    put_ident_list(b, (const char *const[]){p->database}, 1);
    fz_buf_putc(b, '.');
    put_ident_list(b, (const char *const[]){p->name}, 1);
}

static void put_comment(fz_buf *b, const char *before, const char *comment) {
    if (!comment || !*comment) return;
    fz_buf_printf(b, "%sCOMMENT ", before);
    sql_quote_string(b, comment);
}

static void put_column(fz_buf *b, const sql_column *c) {
    sql_quote_ident(b, c->name);
    if (c->kind == SQL_COL_COMPUTED) {
        fz_buf_printf(b, " AS %s", c->expr_text);
    } else {
        fz_buf_putc(b, ' ');
        col_type_text(b, c->type);
    }
    if (c->kind == SQL_COL_METADATA) {
        fz_buf_puts(b, " METADATA");
        if (strcmp(c->metadata_key, c->name) != 0) {
            fz_buf_puts(b, " FROM ");
            sql_quote_string(b, c->metadata_key);
        }
        if (c->is_virtual) fz_buf_puts(b, " VIRTUAL");
    }
    put_comment(b, " ", c->comment);
}

static void put_primary_key(fz_buf *b, const sql_stmt *def) {
    fz_buf_puts(b, ",\n  CONSTRAINT `PK_");
    for (uint32_t i = 0; i < def->n_pk; i++)
        for (const char *c = def->pk[i]; *c; c++) {
            if (i && c == def->pk[i]) fz_buf_putc(b, '_');
            if (*c == '`') fz_buf_putc(b, '`');
            fz_buf_putc(b, *c);
        }
    fz_buf_puts(b, "` PRIMARY KEY (");
    put_ident_list(b, def->pk, def->n_pk);
    fz_buf_puts(b, ") NOT ENFORCED");
}

static void put_partition(fz_buf *b, const sql_stmt *def) {
    fz_buf_puts(b, "\nPARTITIONED BY (");
    for (uint32_t i = 0; i < def->n_partition; i++) {
        const sql_expr *e = def->partition[i];
        if (i) fz_buf_puts(b, ", ");
        if (e->kind == SQL_X_COLUMN) put_ident_list(b, &e->col.part[e->col.n - 1], 1);
        else sql_expr_text(b, e);
    }
    fz_buf_putc(b, ')');
}

void ses_options_text(fz_buf *b, const fz_pair *o, size_t n, bool hide_secrets) {
    if (n == 0) return;
    fz_buf_puts(b, "WITH (");
    for (size_t i = 0; i < n; i++) {
        fz_buf_puts(b, i ? ",\n  " : "\n  ");
        sql_quote_string(b, o[i].key);
        fz_buf_puts(b, " = ");
        fz_buf shown = {0};
        if (hide_secrets) fz_option_show(&shown, o[i].key, o[i].value);
        sql_quote_string(b, hide_secrets ? fz_buf_cstr(&shown) : o[i].value);
        fz_buf_free(&shown);
    }
    fz_buf_puts(b, "\n)");
}

void ses_definition_text(fz_buf *b, const char *head, const ses_path *path, const sql_stmt *def, bool hide_secrets) {
    fz_buf_printf(b, "%s ", head);
    put_path(b, path);
    if (def->kind == SQL_S_CREATE_VIEW) {
        if (def->n_view_cols) {
            fz_buf_puts(b, " (\n  ");
            put_ident_list(b, def->view_cols, def->n_view_cols);
            fz_buf_puts(b, "\n)");
        }
        put_comment(b, "\n", def->comment);
        fz_buf_printf(b, "\nAS %s", def->query_text);
        return;
    }
    fz_buf_puts(b, " (\n  ");
    for (uint32_t i = 0; i < def->n_columns; i++) {
        if (i) fz_buf_puts(b, ",\n  ");
        put_column(b, &def->columns[i]);
    }
    if (def->watermark_text) fz_buf_printf(b, ",\n  WATERMARK FOR %s AS %s", def->watermark_column, def->watermark_text);
    if (def->n_pk) put_primary_key(b, def);
    fz_buf_puts(b, "\n)");
    put_comment(b, "\n", def->comment);
    if (def->n_partition) put_partition(b, def);
    if (def->n_options) fz_buf_putc(b, '\n');
    ses_options_text(b, def->options, def->n_options, hide_secrets);
}
