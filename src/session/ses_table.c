/* CREATE TABLE (with LIKE), CREATE VIEW, DROP: what the session itself holds. Iceberg tables are made in ses_iceberg.c. */
#include "session/session_int.h"
#include "source/source.h"

ses_table *ses_find_table(ses_session *s, const ses_path *p, bool temporary) {
    for (uint32_t i = 0; i < s->n_tables; i++) {
        ses_table *t = s->tables[i];
        if (t->temporary == temporary && strcmp(t->name, p->name) == 0 && strcmp(t->database, p->database) == 0 && strcmp(t->catalog, p->catalog) == 0) return t;
    }
    return NULL;
}

void ses_remove_table(ses_session *s, ses_table *t) {
    for (uint32_t i = 0; i < s->n_tables; i++)
        if (s->tables[i] == t) {
            s->tables[i] = s->tables[--s->n_tables];
            break;
        }
    fz_arena_free(t->arena); /* t lies in it */
}

/* Takes over the arena, in which st lies. */
static void keep_table(ses_session *s, fz_arena *arena, const ses_path *p, const sql_stmt *st) {
    ses_table *t = FZ_ANEW(arena, ses_table);
    t->arena = arena;
    t->catalog = fz_arena_strdup(arena, p->catalog);
    t->database = fz_arena_strdup(arena, p->database);
    t->name = fz_arena_strdup(arena, p->name);
    t->temporary = st->temporary;
    t->def = st;
    t->table = (sql_table){.kind = st->kind == SQL_S_CREATE_VIEW ? SQL_T_VIEW : SQL_T_CONNECTOR, .path = ses_path_text(arena, p), .n_columns = st->n_columns,
                           .columns = st->columns, .n_options = st->n_options, .options = st->options, .n_pk = st->n_pk, .pk = st->pk, .view = st->query,
                           .n_view_cols = st->n_view_cols, .view_cols = st->view_cols};
    FZ_GROW(s->tables, s->n_tables, s->cap_tables);
    s->tables[s->n_tables++] = t;
}

/* ---- LIKE ---- */

typedef enum { INCLUDING, EXCLUDING, OVERWRITING } strategy;
enum { F_CONSTRAINTS, F_GENERATED, F_METADATA, F_OPTIONS, F_PARTITIONS, F_WATERMARKS, F_DISTRIBUTION, F_COUNT };
static const char *const features[F_COUNT] = {"CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS", "DISTRIBUTION"};

static void read_strategies(const sql_like *like, strategy out[F_COUNT]) {
    for (int f = 0; f < F_COUNT; f++) out[f] = f == F_OPTIONS ? OVERWRITING : INCLUDING; /* Flink's default */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < like->n_options; i++) {
            const char *o = like->options[i], *what = strchr(o, ' ') + 1;
            strategy how = o[0] == 'I' ? INCLUDING : o[0] == 'E' ? EXCLUDING : OVERWRITING;
            bool all = strcmp(what, "ALL") == 0;
            for (int f = 0; f < F_COUNT; f++)
                if (all ? pass == 0 : pass == 1 && strcmp(what, features[f]) == 0) out[f] = how;
        }
}

static fz_status like_fail(const sql_stmt *st, fz_error *err, const char *fmt, const char *what) {
    fz_fail(err, FZ_USER, "sql.like", fmt, what);
    return ses_fail_at(err, st->like->table.pos);
}

static const sql_column *own_column(const sql_stmt *st, const char *name) {
    for (uint32_t i = 0; i < st->n_columns; i++)
        if (strcmp(st->columns[i].name, name) == 0) return &st->columns[i];
    return NULL;
}

static fz_status merge_columns(ses_session *s, sql_stmt *st, const sql_stmt *base, const strategy *how, fz_error *err) {
    sql_column *v = FZ_ANEWN(s->arena, sql_column, base->n_columns + st->n_columns);
    uint32_t n = 0;
    for (uint32_t i = 0; i < base->n_columns; i++) {
        const sql_column *c = &base->columns[i], *own = own_column(st, c->name);
        strategy h = c->kind == SQL_COL_PHYSICAL ? INCLUDING : how[c->kind == SQL_COL_METADATA ? F_METADATA : F_GENERATED];
        if (h == EXCLUDING || (h == OVERWRITING && own)) continue;
        if (own) return like_fail(st, err, "column '%s' exists in the base table already", c->name);
        v[n++] = *c;
    }
    for (uint32_t i = 0; i < st->n_columns; i++) v[n++] = st->columns[i];
    st->columns = v;
    st->n_columns = n;
    return FZ_OK;
}

static fz_status merge_options(ses_session *s, sql_stmt *st, const sql_stmt *base, strategy how, fz_error *err) {
    if (how == EXCLUDING) return FZ_OK;
    fz_pair *v = FZ_ANEWN(s->arena, fz_pair, base->n_options + st->n_options);
    uint32_t n = 0;
    for (uint32_t i = 0; i < base->n_options; i++) {
        bool own = fz_pair_get(st->options, st->n_options, base->options[i].key) != NULL;
        if (own && how == INCLUDING) return like_fail(st, err, "option '%s' exists in the base table already (OVERWRITING OPTIONS replaces it)", base->options[i].key);
        if (!own) v[n++] = (fz_pair){.key = base->options[i].key, .value = base->options[i].value}; /* its position is that of another statement */
    }
    for (uint32_t i = 0; i < st->n_options; i++) v[n++] = st->options[i];
    st->options = v;
    st->n_options = n;
    return FZ_OK;
}

/* Fills st with what the base table gives. */
static fz_status merge_like(ses_session *s, sql_stmt *st, fz_error *err) {
    sql_stmt *base;
    ses_path path;
    bool temporary;
    strategy how[F_COUNT];
    FZ_TRY(ses_definition(s, &st->like->table, &base, &path, &temporary, err));
    if (base->kind == SQL_S_CREATE_VIEW) return like_fail(st, err, "'%s' is a view; LIKE takes a table", path.name);
    read_strategies(st->like, how);
    FZ_TRY(merge_columns(s, st, base, how, err));
    FZ_TRY(merge_options(s, st, base, how[F_OPTIONS], err));
    if (base->n_pk && how[F_CONSTRAINTS] != EXCLUDING) {
        if (st->n_pk && how[F_CONSTRAINTS] == INCLUDING) return like_fail(st, err, "%s: the base table has a PRIMARY KEY already", path.name);
        if (!st->n_pk) st->n_pk = base->n_pk, st->pk = base->pk;
    }
    if (base->n_partition && how[F_PARTITIONS] != EXCLUDING) {
        if (st->n_partition && how[F_PARTITIONS] == INCLUDING) return like_fail(st, err, "%s: the base table is partitioned already", path.name);
        if (!st->n_partition) st->n_partition = base->n_partition, st->partition = base->partition;
    }
    if (base->watermark_text && how[F_WATERMARKS] != EXCLUDING && !st->watermark_text)
        st->watermark_column = base->watermark_column, st->watermark_text = base->watermark_text, st->watermark_pos = st->pos;
    if (!st->comment) st->comment = base->comment;
    return FZ_OK;
}

/* The merged definition points into arenas of other tables: it is printed and parsed anew, into one of its own. */
static fz_status own_copy(const sql_stmt *st, fz_arena *arena, sql_stmt **out, fz_error *err) {
    fz_buf b = {0};
    ses_definition_text(&b, "CREATE TABLE", NULL, st, false);
    char *text = fz_arena_strndup(arena, (const char *)b.data, b.len);
    sql_piece piece = {text, b.len, st->pos};
    fz_buf_free(&b);
    FZ_TRY(sql_parse(arena, &piece, out, err));
    (*out)->temporary = st->temporary;
    return FZ_OK;
}

/* ---- CREATE TABLE ---- */

/* What the connector gives for its metadata columns; a name that it does not know is told when the table is read. */
static fz_status metadata_types(ses_session *s, sql_stmt *st, fz_error *err) {
    const char *connector = fz_pair_get(st->options, st->n_options, "connector");
    for (uint32_t i = 0; connector && i < st->n_columns; i++) {
        sql_column *c = &st->columns[i];
        if (c->kind != SQL_COL_METADATA) continue;
        for (const src_metadata_column *m = src_metadata_columns(connector); m->key; m++)
            if (strcmp(m->key, c->metadata_key ? c->metadata_key : c->name) == 0) {
                FZ_TRY(sql_parse_type(s->arena, m->type, &c->metadata_type, err));
                break;
            }
    }
    return FZ_OK;
}

/* Columns of a PRIMARY KEY are NOT NULL; computed ones must have a type. */
static fz_status finish_columns(ses_session *s, sql_stmt *st, fz_error *err) {
    uint32_t n_in = 0;
    FZ_TRY(metadata_types(s, st, err));
    for (uint32_t i = 0; i < st->n_columns; i++) {
        sql_column *c = &st->columns[i];
        for (uint32_t k = 0; k < st->n_pk; k++)
            if (strcmp(st->pk[k], c->name) == 0) c->type = col_with_null(s->arena, c->type, false);
        n_in += c->kind != SQL_COL_COMPUTED;
    }
    col_field *f = FZ_ANEWN(s->arena, col_field, n_in);
    n_in = 0;
    for (uint32_t i = 0; i < st->n_columns; i++)
        if (st->columns[i].kind != SQL_COL_COMPUTED) f[n_in++] = (col_field){st->columns[i].name, st->columns[i].type, NULL};
    col_schema in = {n_in, f};
    sql_settings settings = ses_sql_settings(s);
    for (uint32_t i = 0; i < st->n_columns; i++) {
        sql_bound *bound;
        sql_column *c = &st->columns[i];
        if (c->kind != SQL_COL_COMPUTED) continue;
        FZ_TRY(sql_bind_expr(s->arena, c->expr, &in, &settings, &bound, err));
        c->type = bound->type;
    }
    return FZ_OK;
}

static fz_status already_there(const sql_stmt *st, const ses_path *p, const char *what, fz_error *err) {
    if (st->if_not_exists) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.table-exists", "a %s '%s' exists already in %s.%s", what, p->name, p->catalog, p->database);
    return ses_fail_at(err, st->name.pos);
}

static void warn_watermark(const sql_stmt *st, const ses_path *p) {
    if (!st->watermark_text) return;
    fz_log(FZ_LOG_WARN, "sql.watermark-ignored", FZ_KV("table", "%s.%s.%s", p->catalog, p->database, p->name), FZ_KV("line", "%d", st->watermark_pos.line),
           FZ_KV("reason", "there are no operators of event time; an append is the same without a watermark"), NULL);
}

static fz_status create_held(ses_session *s, sql_stmt *st, const ses_path *p, fz_error *err) {
    if (st->n_columns == 0) {
        fz_fail(err, FZ_USER, "sql.no-columns", "table '%s' has no columns", p->name);
        return ses_fail_at(err, st->name.pos);
    }
    fz_arena *keep = s->arena, *own = NULL;
    sql_pos pos = st->pos;
    if (st->like) {
        own = fz_arena_new();
        sql_stmt *copy;
        fz_status rc = own_copy(st, own, &copy, err);
        if (rc != FZ_OK) {
            fz_arena_free(own);
            return rc;
        }
        st = copy;
        s->arena = own;
    }
    fz_status rc = finish_columns(s, st, err);
    if (rc == FZ_OK) {
        warn_watermark(st, p);
        keep_table(s, s->arena, p, st);
    } else if (own) {
        if (err) fz_at(err, pos.line, pos.column); /* positions in the printed definition mean nothing to the reader */
        fz_arena_free(own);
    }
    if (own) s->arena = keep;
    else if (rc == FZ_OK) s->arena = NULL; /* the table keeps it */
    return rc;
}

static fz_status table_exists(ses_session *s, ses_catalog *c, const ses_path *p, bool *there, fz_error *err) {
    const cat_ident id = cat_ident_of(c->iceberg, s->arena, p->database, p->name);
    if (c->away && ses_remembers(s, c->iceberg, &id)) return *there = true, FZ_OK;
    ses_ask(s, c->iceberg, &id);
    fz_status rc = cat_table_exists(c->iceberg, &id, there, err);
    return ses_stand_in(s, c, &id, rc, err) ? *there = true, FZ_OK : rc;
}

fz_status ses_create_table(ses_session *s, sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    ses_catalog *c;
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    if (ses_find_table(s, &p, st->temporary)) return already_there(st, &p, st->temporary ? "temporary table" : "table", err);
    if (st->temporary) {
        if (st->like) FZ_TRY(merge_like(s, st, err));
        return create_held(s, st, &p, err);
    }
    FZ_TRY(ses_need_database(s, &p, st->name.pos, err));
    if (c->iceberg) {
        bool there = false;
        FZ_TRY(table_exists(s, c, &p, &there, err));
        if (there) return already_there(st, &p, "table", err);
    }
    if (st->like) FZ_TRY(merge_like(s, st, err));
    return c->iceberg ? ses_iceberg_create(s, c, &p, st, err) : create_held(s, st, &p, err);
}

/* ---- views ---- */

typedef struct scope { const sql_query *q; const struct scope *up; } scope;

static bool is_with_name(const scope *sc, const char *name) {
    for (; sc; sc = sc->up)
        for (uint32_t i = 0; i < sc->q->n_with; i++)
            if (strcmp(sc->q->with[i].name, name) == 0) return true;
    return false;
}

/* Makes the names of tables whole, so that a view means the same after USE. */
static void qualify(ses_session *s, sql_query *q, const scope *up) {
    for (; q; q = q->union_all) {
        scope here = {q, up};
        for (uint32_t i = 0; i < q->n_with; i++) qualify(s, q->with[i].query, &here);
        if (q->from.kind == SQL_FROM_QUERY) qualify(s, q->from.query, &here);
        sql_name *n = &q->from.table;
        if (q->from.kind != SQL_FROM_TABLE || n->n > 2 || (n->n == 1 && is_with_name(&here, n->part[0]))) continue;
        sql_name whole = {.n = 3, .pos = n->pos};
        whole.part[2] = n->part[n->n - 1];
        whole.part[1] = n->n > 1 ? n->part[0] : fz_arena_strdup(s->arena, s->database);
        whole.part[0] = fz_arena_strdup(s->arena, s->catalog);
        if (!q->from.alias) q->from.alias = whole.part[2];
        *n = whole;
    }
}

fz_status ses_create_view(ses_session *s, sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    ses_catalog *c;
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    if (ses_find_table(s, &p, st->temporary)) return already_there(st, &p, "table or view", err);
    if (!st->temporary) {
        FZ_TRY(ses_need_database(s, &p, st->name.pos, err));
        if (c->iceberg) {
            fz_fail(err, FZ_USER, "sql.unsupported", "a permanent view in an Iceberg catalog is not supported");
            fz_hint(err, "write CREATE TEMPORARY VIEW");
            return ses_fail_at(err, st->pos);
        }
    }
    qualify(s, st->query, NULL);
    sql_plan *plan = NULL;
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    fz_status rc = sql_bind_query(s->arena, st->query, &r, &settings, NULL, &plan, err);
    bool later = rc != FZ_OK && ses_dry_unknown(s, err); /* it is bound where it is used */
    if (rc != FZ_OK && !later) return rc;
    if (!later && st->n_view_cols && st->n_view_cols != plan->schema->n) {
        fz_fail(err, FZ_USER, "sql.column-count", "the view names %u columns, its query gives %u", st->n_view_cols, plan->schema->n);
        return ses_fail_at(err, st->name.pos);
    }
    keep_table(s, s->arena, &p, st);
    s->arena = NULL;
    return FZ_OK;
}

/* ---- DROP ---- */

static fz_status not_found(ses_session *s, const sql_stmt *st, const ses_path *p, fz_error *err) {
    if (st->if_exists) return FZ_OK;
    fz_fail(err, FZ_USER, "sql.table-not-found", "there is no %s%s '%s'", st->temporary ? "temporary " : "", st->kind == SQL_S_DROP_VIEW ? "view" : "table", ses_path_text(s->arena, p));
    return ses_fail_at(err, st->name.pos);
}

fz_status ses_drop(ses_session *s, const sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    bool view = st->kind == SQL_S_DROP_VIEW;
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    ses_table *t = ses_find_table(s, &p, st->temporary);
    if (t && (t->table.kind == SQL_T_VIEW) == view) {
        ses_remove_table(s, t);
        return FZ_OK;
    }
    if (t) {
        fz_fail(err, FZ_USER, "sql.table-kind", "'%s' is a %s", p.name, view ? "table" : "view");
        fz_hint(err, "write DROP %s", view ? "TABLE" : "VIEW");
        return ses_fail_at(err, st->name.pos);
    }
    if (st->temporary) return not_found(s, st, &p, err);
    if (ses_find_table(s, &p, true)) {
        fz_fail(err, FZ_USER, "sql.table-kind", "a temporary table or view '%s' exists and must be dropped first", p.name);
        fz_hint(err, "write DROP TEMPORARY %s", view ? "VIEW" : "TABLE");
        return ses_fail_at(err, st->name.pos);
    }
    ses_catalog *c = ses_find_catalog(s, p.catalog);
    if (!c || !c->iceberg || view) return not_found(s, st, &p, err);
    cat_ident id = cat_ident_of(c->iceberg, s->arena, p.database, p.name);
    fz_error e = {0};
    fz_status rc = cat_drop_table(c->iceberg, &id, true, &e); /* Flink's DROP TABLE purges, as Iceberg's dropTable does */
    if (rc == FZ_OK) return FZ_OK;
    if (strcmp(e.code, "catalog.table-not-found") == 0 || strcmp(e.code, "catalog.namespace-not-found") == 0) return not_found(s, st, &p, err);
    if (err) *err = e;
    return rc;
}
