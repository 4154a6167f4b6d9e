/* What a script needs, told without doing any of it: the plan of the doctor.
 *
 * The statements run in a session of their own kind (ses_session.dry): SET, temporary tables and views as always; catalogs are checked and not opened, a catalog
 * in memory stands for each; databases and tables that the script would make are noted; INSERTs are bound and not run.
 *
 * Invariants
 *  1. Nothing outside the process is touched.
 *  2. What an INSERT was bound with stays until the plan is freed: DROP of what the script itself holds is left out until its name is needed anew.
 */
#include "session/session_int.h"
#include "exec/exec.h"
#include "job/job.h"
#include "ops/doctor.h"
#include <stdio.h>

typedef struct dry_catalog { const ses_catalog *stands; uint32_t index; } dry_catalog;
typedef struct dry_insert { const char *catalog, *database; } dry_insert;

typedef struct ses_dry ses_dry;
struct ses_dry {
    ses_session *s;
    fz_arena *a;                  /* of the plan */
    ops_plan plan;
    dry_catalog *catalogs;
    dry_insert *inserts;
    uint32_t cap_catalogs, cap_catalogs2, cap_databases, cap_tables, cap_inserts, cap_inserts2, cap_sources, cap_deliveries, cap_notes, cap_arenas, cap_confs, cap_dropped;
    fz_arena **arenas;            /* of statements */
    conf **confs;
    ses_table **dropped;
    uint32_t n_arenas, n_confs, n_dropped, statement;
    bool complete;
};

/* ---- what is noted ---- */

static void note(ses_dry *d, const char *fmt, ...) FZ_PRINTF(2, 3);
static void note(ses_dry *d, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    FZ_GROW(d->plan.notes, d->plan.n_notes, d->cap_notes);
    d->plan.notes[d->plan.n_notes++] = fz_arena_strdup(d->a, text);
}

static const dry_catalog *find_dry(const ses_dry *d, const ses_catalog *c) {
    for (uint32_t i = 0; i < d->plan.n_catalogs; i++)
        if (d->catalogs[i].stands == c) return &d->catalogs[i];
    return NULL;
}
bool ses_dry_catalog(const ses_session *s, const ses_catalog *c) { return s->dry && find_dry(s->dry, c); }

static uint32_t need_database(ses_dry *d, uint32_t catalog, const char *name, sql_pos pos) {
    for (uint32_t i = 0; i < d->plan.n_databases; i++)
        if (d->plan.databases[i].catalog == catalog && strcmp(d->plan.databases[i].name, name) == 0) return i;
    FZ_GROW(d->plan.databases, d->plan.n_databases, d->cap_databases);
    d->plan.databases[d->plan.n_databases] = (ops_need_database){.catalog = catalog, .name = fz_arena_strdup(d->a, name), .pos = pos};
    return d->plan.n_databases++;
}

static uint32_t need_table(ses_dry *d, const ses_path *p, sql_pos pos) {
    const char *text = ses_path_text(d->a, p);
    for (uint32_t i = 0; i < d->plan.n_tables; i++)
        if (strcmp(d->plan.tables[i].text, text) == 0) return i;
    uint32_t catalog = find_dry(d, ses_find_catalog(d->s, p->catalog))->index, database = need_database(d, catalog, p->database, pos);
    FZ_GROW(d->plan.tables, d->plan.n_tables, d->cap_tables);
    d->plan.tables[d->plan.n_tables] = (ops_need_table){.catalog = catalog, .database = database, .name = fz_arena_strdup(d->a, p->name), .text = text, .pos = pos};
    return d->plan.n_tables++;
}

#define UNKNOWN_TABLE "doctor.table-unknown"
fz_status ses_dry_find(ses_session *s, const sql_name *n, const ses_path *p, fz_error *err) {
    if (!s->dry->complete) { /* the doctor holds on to the tables of a plan that is complete */
        uint32_t index = need_table(s->dry, p, n->pos);
        s->dry->plan.tables[index].read = true;
    }
    return fz_fail(err, FZ_USER, UNKNOWN_TABLE, "the columns of '%s' are not known before it has been looked at", ses_path_text(s->arena, p));
}
bool ses_dry_unknown(const ses_session *s, const fz_error *err) { return s->dry && err && strcmp(err->code, UNKNOWN_TABLE) == 0; }

/* ---- tables of catalogs that stand for others: held by the session, so that queries and LIKE find them ---- */

static void hold(ses_session *s, fz_arena *arena, const ses_path *p, const sql_stmt *def) {
    ses_table *t = FZ_ANEW(arena, ses_table);
    *t = (ses_table){.arena = arena, .catalog = fz_arena_strdup(arena, p->catalog), .database = fz_arena_strdup(arena, p->database), .name = fz_arena_strdup(arena, p->name), .def = def};
    t->table = (sql_table){.kind = SQL_T_ICEBERG, .path = ses_path_text(arena, p), .n_columns = def->n_columns, .columns = def->columns, .n_options = def->n_options,
                           .options = def->options, .n_pk = def->n_pk, .pk = def->pk};
    FZ_GROW(s->tables, s->n_tables, s->cap_tables);
    s->tables[s->n_tables++] = t;
}

/* An Iceberg schema as columns of a definition. */
static fz_status definition_of(fz_arena *a, const ice_schema *schema, sql_stmt **out, col_schema **cols, fz_error *err) {
    FZ_TRY(ice_schema_to_cols(a, schema, cols, err));
    sql_stmt *d = *out = FZ_ANEW(a, sql_stmt);
    d->kind = SQL_S_CREATE_TABLE;
    d->n_columns = (*cols)->n;
    d->columns = FZ_ANEWN(a, sql_column, d->n_columns + 1);
    for (uint32_t i = 0; i < d->n_columns; i++)
        d->columns[i] = (sql_column){.name = (*cols)->fields[i].name, .kind = SQL_COL_PHYSICAL, .type = (*cols)->fields[i].type, .comment = (*cols)->fields[i].comment};
    return FZ_OK;
}

/* Takes a table out of the session; plans that are bound to it keep pointing into its memory. */
static void retire(ses_dry *d, ses_table *t) {
    uint32_t i = 0;
    while (d->s->tables[i] != t) i++;
    d->s->tables[i] = d->s->tables[--d->s->n_tables];
    FZ_GROW(d->arenas, d->n_arenas, d->cap_arenas);
    d->arenas[d->n_arenas++] = t->arena;
}

static fz_status know(void *cx, const ops_need_table *t, const cat_table *loaded, fz_error *err) {
    ses_dry *d = cx;
    ses_path p = {d->plan.catalogs[t->catalog].name, d->plan.databases[t->database].name, t->name};
    ses_table *held = ses_find_table(d->s, &p, false);
    fz_arena *a = fz_arena_new();
    sql_stmt *def;
    col_schema *cols;
    fz_status rc = definition_of(a, loaded->metadata->schema, &def, &cols, err);
    if (rc != FZ_OK) return fz_arena_free(a), rc;
    if (held) retire(d, held); /* the table as it is counts, not as the script would make it */
    hold(d->s, a, &p, def);
    return FZ_OK;
}

/* ---- statements ---- */

static fz_status run_create_catalog(ses_dry *d, const sql_stmt *st, fz_error *err) {
    ses_session *s = d->s;
    const char *type = fz_pair_get(st->options, st->n_options, "type"), *database = fz_pair_get(st->options, st->n_options, "default-database");
    if (st->name.n != 1 || ses_find_catalog(s, st->name.part[0]) || (type && strcmp(type, "generic_in_memory") == 0)) return ses_catalog_statement(s, st, err);
    FZ_TRY(cat_check(st->name.part[0], st->options, st->n_options, NULL, err));
    ses_catalog *c = ses_add_catalog(s, st->name.part[0], NULL, database ? database : "default");
    FZ_GROW(d->plan.catalogs, d->plan.n_catalogs, d->cap_catalogs);
    FZ_GROW(d->catalogs, d->plan.n_catalogs, d->cap_catalogs2);
    d->catalogs[d->plan.n_catalogs] = (dry_catalog){c, d->plan.n_catalogs};
    d->plan.catalogs[d->plan.n_catalogs++] = (ops_need_catalog){.name = st->name.part[0], .options = st->options, .n_options = st->n_options, .pos = st->name.pos};
    return FZ_OK;
}

/* `s3tablescatalog/<bucket>`: what an account calls a table bucket. */
fz_status ses_dry_federated(ses_session *s, const char *name, ses_catalog **out) {
    ses_dry *d = s->dry;
    *out = ses_add_catalog(s, name, NULL, "default");
    FZ_GROW(d->plan.catalogs, d->plan.n_catalogs, d->cap_catalogs);
    FZ_GROW(d->catalogs, d->plan.n_catalogs, d->cap_catalogs2);
    d->catalogs[d->plan.n_catalogs] = (dry_catalog){*out, d->plan.n_catalogs};
    d->plan.catalogs[d->plan.n_catalogs++] = (ops_need_catalog){.name = fz_arena_strdup(d->a, name), .bucket = fz_arena_strdup(d->a, strrchr(name, '/') + 1)};
    return FZ_OK;
}

/* The catalog that stands for the one of a database's name, and that database in it. NULL: another kind of catalog. */
static fz_status stand_in(ses_dry *d, const sql_name *n, ses_path *p, ses_catalog **c, fz_error *err) {
    FZ_TRY(ses_database_of(d->s, n, p, err));
    FZ_TRY(ses_need_catalog(d->s, p->catalog, n->pos, c, err));
    if (!find_dry(d, *c)) return *c = NULL, FZ_OK;
    for (uint32_t i = 0; i < (*c)->n_databases; i++)
        if (strcmp((*c)->databases[i], p->database) == 0) return FZ_OK;
    FZ_GROW((*c)->databases, (*c)->n_databases, (*c)->cap_databases);
    (*c)->databases[(*c)->n_databases++] = fz_strdup(p->database);
    return FZ_OK;
}

static fz_status run_database(ses_dry *d, const sql_stmt *st, fz_error *err) {
    ses_path p = {0};
    ses_catalog *c;
    FZ_TRY(stand_in(d, &st->name, &p, &c, err));
    if (!c) return ses_catalog_statement(d->s, st, err);
    uint32_t index = find_dry(d, c)->index;
    if (st->kind == SQL_S_DROP_DATABASE) {
        note(d, "DROP DATABASE %s.%s is not executed here", p.catalog, p.database);
        return FZ_OK;
    }
    uint32_t i = need_database(d, index, p.database, st->name.pos);
    if (st->kind == SQL_S_CREATE_DATABASE) {
        d->plan.databases[i].made = true;
        return FZ_OK;
    }
    return ses_catalog_statement(d->s, st, err); /* USE */
}

static void forget_dropped(ses_dry *d, const ses_path *p, bool temporary) {
    for (uint32_t i = 0; i < d->n_dropped; i++) {
        ses_table *t = d->dropped[i];
        if (t->temporary != temporary || strcmp(t->name, p->name) != 0 || strcmp(t->database, p->database) != 0 || strcmp(t->catalog, p->catalog) != 0) continue;
        retire(d, t);
        d->dropped[i--] = d->dropped[--d->n_dropped];
    }
}

static fz_status run_create_table(ses_dry *d, sql_stmt *st, fz_error *err) {
    ses_session *s = d->s;
    ses_path p = {0};
    ses_catalog *c;
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    forget_dropped(d, &p, st->temporary);
    if (st->temporary || !find_dry(d, c)) return st->kind == SQL_S_CREATE_VIEW ? ses_create_view(s, st, err) : ses_create_table(s, st, err);
    if (st->kind == SQL_S_CREATE_VIEW) return ses_create_view(s, st, err); /* which refuses it */
    ses_iceberg_parts parts;
    sql_stmt *def;
    col_schema *cols;
    if (st->like) {
        uint32_t i = need_table(d, &p, st->name.pos);
        d->plan.tables[i].location = fz_pair_get(st->options, st->n_options, "location");
        d->plan.tables[i].made = true;
        note(d, "CREATE TABLE %s ... LIKE: its columns are taken as they are", d->plan.tables[i].text);
        return FZ_OK;
    }
    FZ_TRY(ses_iceberg_prepare(s, st, &parts, err));
    FZ_TRY(definition_of(s->arena, parts.schema, &def, &cols, err));
    uint32_t index = need_table(d, &p, st->name.pos);
    ops_need_table *t = &d->plan.tables[index];
    t->made = true;
    if (!t->declared) {
        t->declared = cols;
        t->location = parts.location;
    }
    if (ses_find_table(s, &p, false)) return FZ_OK;
    fz_arena *mine = s->arena;
    s->arena = fz_arena_new();
    fz_status rc = definition_of(s->arena, parts.schema, &def, &cols, err);
    hold(s, s->arena, &p, def);
    s->arena = mine;
    return rc;
}

static fz_status run_drop(ses_dry *d, const sql_stmt *st, fz_error *err) {
    ses_session *s = d->s;
    ses_path p = {0};
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    ses_catalog *c = ses_find_catalog(s, p.catalog);
    ses_table *t = ses_find_table(s, &p, st->temporary);
    if (!st->temporary && c && find_dry(d, c)) {
        note(d, "DROP TABLE %s is not executed here", ses_path_text(d->a, &p));
        return FZ_OK;
    }
    if (!t || (t->table.kind == SQL_T_VIEW) != (st->kind == SQL_S_DROP_VIEW)) return ses_drop(s, st, err);
    FZ_GROW(d->dropped, d->n_dropped, d->cap_dropped);
    d->dropped[d->n_dropped++] = t;
    return FZ_OK;
}

/* ---- queries ---- */

static void collect(ses_dry *d, const sql_plan *p) {
    for (uint32_t i = 0; i < p->n_inputs; i++) collect(d, p->inputs[i]);
    if (p->kind != SQL_P_SCAN) return;
    if (p->table->kind == SQL_T_ICEBERG) {
        for (uint32_t i = 0; i < d->plan.n_tables; i++)
            if (strcmp(d->plan.tables[i].text, p->table->path) == 0) d->plan.tables[i].read = true;
        return;
    }
    if (p->table->kind != SQL_T_CONNECTOR) return;
    for (uint32_t i = 0; i < d->plan.n_sources; i++)
        if (strcmp(d->plan.sources[i].scan->table->path, p->table->path) == 0) return;
    FZ_GROW(d->plan.sources, d->plan.n_sources, d->cap_sources);
    d->plan.sources[d->plan.n_sources++].scan = p;
}

/* *schema NULL: it reads tables that are not known yet. */
static fz_status bind_query(ses_dry *d, const sql_stmt *st, const col_schema **schema, fz_error *err) {
    ses_session *s = d->s;
    sql_resolver r = ses_resolver(s);
    sql_settings settings = ses_sql_settings(s);
    sql_plan *plan;
    *schema = NULL;
    fz_status rc = sql_bind_query(s->arena, st->query, &r, &settings, NULL, &plan, err);
    if (rc != FZ_OK) return ses_dry_unknown(s, err) ? FZ_OK : rc;
    FZ_TRY(ses_check_sources(plan, true, err));
    if (st->kind == SQL_S_INSERT) FZ_TRY(ses_check_ends(plan, err));
    collect(d, plan);
    *schema = plan->schema;
    return FZ_OK;
}

static fz_status run_insert(ses_dry *d, const sql_stmt *st, const conf *settings, fz_error *err) {
    ses_session *s = d->s;
    ses_path p = {0};
    ses_catalog *c;
    FZ_TRY(ses_path_of(s, &st->name, &p, err));
    FZ_TRY(ses_need_catalog(s, p.catalog, st->name.pos, &c, err));
    if (ses_find_table(s, &p, true) || !find_dry(d, c) || st->overwrite) { /* refused, and it says why */
        sql_plan *plan;
        const sql_table *target;
        FZ_TRY(ses_bind_insert(s, st, &plan, &target, err));
        FZ_TRY(ses_check_sources(plan, true, err));
        collect(d, plan);
        FZ_GROW(d->plan.deliveries, d->plan.n_deliveries, d->cap_deliveries);
        d->plan.deliveries[d->plan.n_deliveries++] = (ops_need_delivery){.target = target, .settings = settings, .pos = st->pos};
        return FZ_OK;
    }
    FZ_TRY(job_sink_options_check(st->hint.options, st->hint.n, ses_path_text(d->a, &p), err));
    const col_schema *query;
    fz_status rc = bind_query(d, st, &query, err);
    if (rc != FZ_OK) return ses_fail_at(err, st->pos);
    uint32_t table = need_table(d, &p, st->name.pos), i = d->plan.n_inserts;
    d->plan.tables[table].written = true;
    FZ_GROW(d->plan.inserts, i, d->cap_inserts);
    FZ_GROW(d->inserts, i, d->cap_inserts2);
    d->plan.inserts[i] = (ops_need_insert){.table = table, .statement = d->statement, .pipeline = fz_arena_strdup(d->a, ses_pipeline_name(s)), .settings = settings, .query = query,
                                           .n_columns = st->n_insert_cols, .columns = st->insert_cols, .stmt = st, .pos = st->pos};
    d->inserts[i] = (dry_insert){fz_arena_strdup(d->a, s->catalog), fz_arena_strdup(d->a, s->database)};
    d->plan.n_inserts++;
    return FZ_OK;
}

static fz_status run_inserts(ses_dry *d, sql_stmt *const *v, uint32_t n, fz_error *err) {
    FZ_GROW(d->confs, d->n_confs, d->cap_confs);
    const conf *settings = d->confs[d->n_confs++] = conf_clone(d->s->settings);
    for (uint32_t i = 0; i < n; i++) FZ_TRY(run_insert(d, v[i], settings, err));
    d->statement++;
    return FZ_OK;
}

static fz_status run_statement(ses_dry *d, sql_stmt *st, fz_error *err) {
    const col_schema *ignored;
    switch (st->kind) {
    case SQL_S_SET:
    case SQL_S_RESET: return st->kind == SQL_S_SET && !st->key ? FZ_OK : ses_set(d->s, st, err);
    case SQL_S_CREATE_CATALOG: return run_create_catalog(d, st, err);
    case SQL_S_USE_CATALOG: return ses_catalog_statement(d->s, st, err);
    case SQL_S_DROP_CATALOG: note(d, "DROP CATALOG is not executed here"); return FZ_OK;
    case SQL_S_CREATE_DATABASE: case SQL_S_USE: case SQL_S_DROP_DATABASE: return run_database(d, st, err);
    case SQL_S_CREATE_TABLE: case SQL_S_CREATE_VIEW: return run_create_table(d, st, err);
    case SQL_S_DROP_TABLE: case SQL_S_DROP_VIEW: return run_drop(d, st, err);
    case SQL_S_INSERT: return run_inserts(d, &st, 1, err);
    case SQL_S_STATEMENT_SET: return run_inserts(d, st->stmts, st->n_stmts, err);
    case SQL_S_SELECT: return bind_query(d, st, &ignored, err);
    default: return FZ_OK; /* SHOW and kin only tell */
    }
}

static fz_status run_piece(ses_dry *d, const sql_piece *piece, fz_error *err) {
    ses_session *s = d->s;
    fz_arena *mine = s->arena = fz_arena_new();
    sql_stmt *st = NULL;
    fz_status rc = sql_parse(mine, piece, &st, err);
    if (rc == FZ_OK) rc = run_statement(d, st, err);
    if (rc != FZ_OK && !err->line) fz_at(err, st ? st->pos.line : piece->pos.line, st ? st->pos.column : piece->pos.column);
    if (s->arena == mine) { /* else a table has kept it */
        FZ_GROW(d->arenas, d->n_arenas, d->cap_arenas);
        d->arenas[d->n_arenas++] = mine;
    }
    s->arena = NULL;
    d->plan.n_statements++;
    return rc;
}

/* ---- binding against the table as it is ---- */

static void go_to(ses_session *s, const char *catalog, const char *database) {
    fz_free(s->catalog);
    fz_free(s->database);
    s->catalog = fz_strdup(catalog);
    s->database = fz_strdup(database);
}

static fz_status bind_to(void *cx, const ops_need_insert *in, const cat_table *target, fz_arena *a, sql_plan **out, sql_settings *sql, fz_error *err) {
    ses_dry *d = cx;
    const dry_insert *at = &d->inserts[in - d->plan.inserts];
    const ops_need_table *t = &d->plan.tables[in->table];
    sql_stmt *def;
    col_schema *cols;
    FZ_TRY(definition_of(a, target->metadata->schema, &def, &cols, err));
    sql_table table = {.kind = SQL_T_ICEBERG, .path = t->text, .n_columns = def->n_columns, .columns = def->columns};
    go_to(d->s, at->catalog, at->database);
    d->s->arena = a;
    sql_resolver r = ses_resolver(d->s);
    *sql = ses_sql_settings(d->s);
    sql->time_zone = fz_arena_strdup(a, sql->time_zone);
    fz_status rc = sql_bind_insert(a, in->stmt, &table, &r, sql, out, err);
    if (rc == FZ_OK) rc = ses_check_ends(*out, err);
    d->s->arena = NULL;
    return rc;
}

/* ---- the plan ---- */

void ses_plan_free(ops_plan *p) {
    if (!p) return;
    ses_dry *d = p->cx;
    d->s->dry = NULL;
    ses_free(d->s);
    for (uint32_t i = 0; i < d->n_arenas; i++) fz_arena_free(d->arenas[i]);
    for (uint32_t i = 0; i < d->n_confs; i++) conf_free(d->confs[i]);
    fz_free(d->arenas);
    fz_free(d->confs);
    fz_free(d->dropped);
    fz_free(d->catalogs);
    fz_free(d->inserts);
    fz_free(p->catalogs);
    fz_free(p->databases);
    fz_free(p->tables);
    fz_free(p->inserts);
    fz_free(p->deliveries);
    fz_free(p->sources);
    fz_free(p->notes);
    fz_arena_free(d->a);
    fz_free(d);
}

fz_status ses_plan_script(const conf *base, const ses_script *script, ops_plan **out, fz_error *err) {
    static const ses_output none;
    ses_dry *d = FZ_NEW(ses_dry);
    d->a = fz_arena_new();
    d->s = ses_new(base, &none);
    d->s->dry = d;
    d->s->script_name = script->name;
    d->plan = (ops_plan){.arena = d->a, .bind = bind_to, .know = know, .cx = d};
    sql_piece *pieces;
    uint32_t n;
    fz_status rc = sql_split(d->a, script->text, script->len, &pieces, &n, err);
    for (uint32_t i = 0; rc == FZ_OK && i < n; i++) {
        rc = run_piece(d, &pieces[i], err);
    }
    d->plan.settings = d->s->settings;
    d->complete = true;
    if (rc == FZ_OK) *out = &d->plan;
    else ses_plan_free(&d->plan);
    return rc;
}
