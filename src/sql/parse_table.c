/* CREATE TABLE: columns of the three kinds, constraints, watermark, partitioning, options, LIKE. */
#include "sql/parse_int.h"

typedef struct table_parts {
    parser *p;
    sql_stmt *s;
    uint32_t cap;
} table_parts;

static fz_status set_primary_key(table_parts *t, sql_pos pos, uint32_t n, const char **cols) {
    if (t->s->n_pk) return fail_at(t->p, pos, "a table has one PRIMARY KEY");
    t->s->n_pk = n;
    t->s->pk = cols;
    t->s->pk_not_enforced = take_words(t->p, "NOT", "ENFORCED");
    if (t->s->pk_not_enforced) return FZ_OK;
    fail_unsupported(t->p, pos, "an enforced PRIMARY KEY");
    return fz_hint(t->p->err, "write PRIMARY KEY ... NOT ENFORCED"), FZ_USER;
}

/* [CONSTRAINT name] PRIMARY KEY (a, b) [NOT ENFORCED] */
static fz_status parse_constraint(table_parts *t) {
    parser *p = t->p;
    const char *name, **cols;
    uint32_t n;
    sql_pos pos = p->t->pos;
    if (take_word(p, "CONSTRAINT")) FZ_TRY(need_ident(p, "the constraint's name", &name));
    if (take_word(p, "UNIQUE")) return fail_unsupported(p, pos, "UNIQUE");
    FZ_TRY(need_word(p, "PRIMARY"));
    FZ_TRY(need_word(p, "KEY"));
    FZ_TRY(parse_ident_list(p, "a column's name", &n, &cols));
    return set_primary_key(t, pos, n, cols);
}

/* WATERMARK FOR column AS expr */
static fz_status parse_watermark(table_parts *t) {
    parser *p = t->p;
    sql_name name;
    sql_expr *e;
    if (t->s->watermark_text) return fail_at(p, p->t->pos, "a table has one WATERMARK");
    t->s->watermark_pos = p->t->pos;
    p->t++;
    FZ_TRY(need_word(p, "FOR"));
    FZ_TRY(need_name(p, "a column's name", &name));
    FZ_TRY(need_word(p, "AS"));
    const sql_token *first = p->t;
    FZ_TRY(parse_expr(p, &e));
    fz_buf b = {0};
    sql_name_text(&b, &name);
    t->s->watermark_column = fz_arena_strdup(p->a, fz_buf_cstr(&b));
    t->s->watermark_text = source_since(p, first);
    fz_buf_free(&b);
    return FZ_OK;
}

static fz_status parse_metadata(parser *p, sql_column *c) {
    c->kind = SQL_COL_METADATA;
    c->metadata_key = c->name;
    if (take_word(p, "FROM")) FZ_TRY(need_string(p, "the metadata key in single quotes", &c->metadata_key));
    c->is_virtual = take_word(p, "VIRTUAL");
    return FZ_OK;
}

/* Constraints of one column: PRIMARY KEY, UNIQUE. */
static fz_status parse_column_constraint(table_parts *t, sql_column *c) {
    parser *p = t->p;
    sql_pos pos = p->t->pos;
    const char *name;
    if (take_word(p, "CONSTRAINT")) FZ_TRY(need_ident(p, "the constraint's name", &name));
    if (tk_word(p->t, "UNIQUE")) return fail_unsupported(p, p->t->pos, "UNIQUE");
    if (tk_word(p->t, "DEFAULT")) return fail_unsupported(p, p->t->pos, "DEFAULT of a column");
    if (!tk_word(p->t, "PRIMARY")) return FZ_OK;
    p->t++;
    FZ_TRY(need_word(p, "KEY"));
    const char **cols = FZ_ANEWN(p->a, const char *, 1);
    cols[0] = c->name;
    return set_primary_key(t, pos, 1, cols);
}

static fz_status parse_column_def(table_parts *t) {
    parser *p = t->p;
    sql_stmt *s = t->s;
    if (s->n_columns == FZ_MAX_COLUMNS) return fail_at(p, p->t->pos, "a table has at most %d columns", FZ_MAX_COLUMNS);
    if (s->n_columns == t->cap) {
        uint32_t more = t->cap ? t->cap * 2 : 16;
        s->columns = fz_arena_realloc(p->a, s->columns, t->cap * sizeof *s->columns, more * sizeof *s->columns);
        t->cap = more;
    }
    sql_column *c = &s->columns[s->n_columns++];
    *c = (sql_column){.pos = p->t->pos};
    FZ_TRY(need_ident(p, "a column's name", &c->name));
    if (take_word(p, "AS")) {
        const sql_token *first = p->t;
        c->kind = SQL_COL_COMPUTED;
        FZ_TRY(parse_expr(p, &c->expr));
        c->expr_text = source_since(p, first);
    } else {
        FZ_TRY(parse_type(p, &c->type));
        if (take_word(p, "METADATA")) FZ_TRY(parse_metadata(p, c));
        else FZ_TRY(parse_column_constraint(t, c));
    }
    return take_word(p, "COMMENT") ? need_string(p, "a comment in single quotes", &c->comment) : FZ_OK;
}

static fz_status check_columns(parser *p, const sql_stmt *s) {
    bool marked = !s->watermark_text || s->like;
    for (uint32_t i = 0; i < s->n_columns && !marked; i++) {
        fz_buf b = {0};
        sql_name_text(&b, &(sql_name){.n = 1, .part = {s->columns[i].name}});
        marked = strcmp(fz_buf_cstr(&b), s->watermark_column) == 0;
        fz_buf_free(&b);
    }
    if (!marked) return fail_at(p, s->watermark_pos, "WATERMARK names column %.200s, which the table has not", s->watermark_column);
    for (uint32_t i = 0; i < s->n_columns; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(s->columns[i].name, s->columns[j].name) == 0) return fail_at(p, s->columns[i].pos, "column \"%.200s\" is declared twice", s->columns[i].name);
    for (uint32_t k = 0; k < s->n_pk; k++) {
        uint32_t i = 0;
        while (i < s->n_columns && strcmp(s->columns[i].name, s->pk[k]) != 0) i++;
        if (i == s->n_columns && !s->like) return fail_at(p, s->pos, "PRIMARY KEY names column \"%.200s\", which the table has not", s->pk[k]);
        if (i < s->n_columns && s->columns[i].kind != SQL_COL_PHYSICAL) return fail_at(p, s->columns[i].pos, "PRIMARY KEY needs a physical column, \"%.200s\" is none", s->pk[k]);
    }
    return FZ_OK;
}

static fz_status parse_columns(table_parts *t) {
    parser *p = t->p;
    FZ_TRY(need_op(p, "("));
    do {
        if (tk_word(p->t, "WATERMARK")) FZ_TRY(parse_watermark(t));
        else if (tk_word(p->t, "PRIMARY") || tk_word(p->t, "CONSTRAINT") || tk_word(p->t, "UNIQUE")) FZ_TRY(parse_constraint(t));
        else if (tk_word(p->t, "PERIOD")) return fail_unsupported(p, p->t->pos, "PERIOD FOR SYSTEM_TIME");
        else FZ_TRY(parse_column_def(t));
    } while (take_op(p, ","));
    return need_op(p, ")");
}

/* PARTITIONED BY (a, bucket(16, b), days(ts)) */
static fz_status parse_partition(parser *p, sql_stmt *s) {
    ptr_list v = {0};
    FZ_TRY(need_op(p, "("));
    do {
        const sql_token *t = p->t;
        sql_expr *e;
        if (t->kind == TK_WORD && t->reserved && tk_op(peek(p, 1), "(")) { /* year(ts), truncate(10, s): transforms are no functions */
            ptr_list args = {0};
            p->t += 2;
            do {
                FZ_TRY(parse_expr(p, &e));
                ptr_push(p->a, &args, e);
            } while (take_op(p, ","));
            FZ_TRY(need_op(p, ")"));
            FZ_TRY(make_call(p, t, t->text, &args, &e));
        } else {
            FZ_TRY(parse_primary(p, &e));
        }
        if (e->kind != SQL_X_COLUMN && e->kind != SQL_X_CALL) return fail_at(p, t->pos, "PARTITIONED BY takes columns and transforms of columns");
        ptr_push(p->a, &v, e);
    } while (take_op(p, ","));
    s->n_partition = v.n;
    s->partition = (sql_expr **)v.v;
    return need_op(p, ")");
}

/* LIKE table [( INCLUDING ALL EXCLUDING OPTIONS ... )] */
static fz_status parse_like_clause(parser *p, sql_stmt *s) {
    static const char *const how[] = {"INCLUDING", "EXCLUDING", "OVERWRITING", NULL};
    static const char *const what[] = {"ALL", "CONSTRAINTS", "DISTRIBUTION", "PARTITIONS", "METADATA", "OPTIONS", "WATERMARKS", "GENERATED", NULL};
    sql_like *like = FZ_ANEW(p->a, sql_like);
    ptr_list options = {0};
    FZ_TRY(need_name(p, "a table's name", &like->table));
    if (take_op(p, "(")) {
        while (!tk_op(p->t, ")")) {
            int h = 0, w = 0;
            while (how[h] && !tk_word(p->t, how[h])) h++;
            if (!how[h]) return fail_expected(p, "INCLUDING, EXCLUDING or OVERWRITING");
            p->t++;
            while (what[w] && !tk_word(p->t, what[w])) w++;
            if (!what[w]) return fail_expected(p, "ALL, CONSTRAINTS, GENERATED, METADATA, OPTIONS, PARTITIONS or WATERMARKS");
            p->t++;
            ptr_push(p->a, &options, fz_arena_printf(p->a, "%s %s", how[h], what[w]));
        }
        p->t++;
    }
    like->n_options = options.n;
    like->options = (const char **)options.v;
    s->like = like;
    return FZ_OK;
}

fz_status parse_create_table(parser *p, sql_stmt *s) {
    table_parts t = {.p = p, .s = s};
    s->kind = SQL_S_CREATE_TABLE;
    if (tk_word(p->t, "IF")) {
        p->t++;
        FZ_TRY(need_word(p, "NOT"));
        FZ_TRY(need_word(p, "EXISTS"));
        s->if_not_exists = true;
    }
    FZ_TRY(need_name(p, "a table's name", &s->name));
    if (tk_op(p->t, "(")) FZ_TRY(parse_columns(&t));
    else if (!tk_word(p->t, "LIKE") && !tk_word(p->t, "WITH") && !tk_word(p->t, "AS")) return fail_expected(p, "\"(\" and the columns of the table");
    if (take_word(p, "COMMENT")) FZ_TRY(need_string(p, "a comment in single quotes", &s->comment));
    if (tk_word(p->t, "DISTRIBUTED")) return fail_unsupported(p, p->t->pos, "DISTRIBUTED BY");
    if (take_words(p, "PARTITIONED", "BY")) FZ_TRY(parse_partition(p, s));
    if (take_word(p, "WITH")) FZ_TRY(parse_options(p, &s->n_options, &s->options));
    if (tk_word(p->t, "AS")) {
        fail_unsupported(p, p->t->pos, "CREATE TABLE ... AS SELECT");
        return fz_hint(p->err, "create the table, then INSERT INTO it"), FZ_USER;
    }
    if (take_word(p, "LIKE")) FZ_TRY(parse_like_clause(p, s));
    return check_columns(p, s);
}
