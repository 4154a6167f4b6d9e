/* Private to the session room. */
#ifndef SES_SESSION_INT_H
#define SES_SESSION_INT_H
#include "session/session.h"
#include "exec/exec.h"

/* A table that the session holds itself (connector table or view); its arena owns it. */
typedef struct ses_table {
    fz_arena *arena;
    const char *catalog, *database, *name;
    bool temporary;
    sql_table table;                 /* kind CONNECTOR or VIEW */
    const sql_stmt *def;             /* CREATE TABLE or CREATE VIEW, LIKE already merged in */
} ses_table;

typedef struct ses_catalog {
    char *name;
    cat_catalog *iceberg;            /* NULL: a catalog in memory */
    char *default_database;
    char **databases;                /* in memory */
    uint32_t n_databases, cap_databases;
    bool away, away_told;            /* it could not be reached, and that took its time: it is not asked again by statements for which what is remembered is enough; the log has it */
    fz_error why;                    /* the last time */
} ses_catalog;

/* An Iceberg table loaded for one statement: sql_table.handle of kind ICEBERG. */
typedef struct ses_iceberg {
    cat_catalog *catalog;
    cat_ident ident;
    cat_table *loaded;
    const fz_error *away;            /* set: recalled, since its catalog could not be reached; good for the target of an INSERT only */
    sql_table table;
    struct ses_iceberg *next;
} ses_iceberg;

struct ses_session {
    conf *settings;
    ses_output out;
    ses_catalog **catalogs;
    uint32_t n_catalogs, cap_catalogs;
    ses_table **tables;
    uint32_t n_tables, cap_tables;
    char *catalog, *database;        /* current */
    char time_zone[64];
    bool quit, clear;
    struct ses_written { char *pipeline, *target, *text; } *written; /* INSERTs from replayable sources that this session has run */
    uint32_t n_written, cap_written;
    /* of the statement under way */
    fz_arena *arena;                 /* NULL once something keeps it */
    ses_iceberg *loaded;
    const char *script_name;
    int64_t asked_ns;                /* ses_ask */
    int exit_code;
    struct job_replay *replay;       /* NULL: INSERTs run */
    struct ses_dry *dry;             /* a doctor's session (ses_doctor.c): nothing is made, and catalogs of tables are stood for by catalogs in memory; else NULL */
};

/* A name made whole. */
typedef struct ses_path { const char *catalog, *database, *name; } ses_path;
fz_status ses_path_of(ses_session *s, const sql_name *n, ses_path *out, fz_error *err) FZ_MUST_USE;
/* [catalog.]database. n with no parts: the current one. */
fz_status ses_database_of(ses_session *s, const sql_name *n, ses_path *out, fz_error *err) FZ_MUST_USE;
const char *ses_path_text(fz_arena *a, const ses_path *p); /* catalog.database.name */
fz_status ses_fail_at(fz_error *err, sql_pos pos);           /* sets the position unless there is one; returns the class */

ses_catalog *ses_find_catalog(ses_session *s, const char *name);
fz_status ses_need_catalog(ses_session *s, const char *name, sql_pos pos, ses_catalog **out, fz_error *err) FZ_MUST_USE;
fz_status ses_need_database(ses_session *s, const ses_path *p, sql_pos pos, fz_error *err) FZ_MUST_USE;
ses_catalog *ses_add_catalog(ses_session *s, const char *name, cat_catalog *iceberg, const char *default_database);
void ses_catalog_free(ses_catalog *c);
bool ses_is_federated(const char *name); /* `s3tablescatalog/bucket` */
fz_status ses_open_federated(ses_session *s, const char *name, ses_catalog **out, fz_error *err) FZ_MUST_USE; /* adds it */
fz_status ses_catalog_statement(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE; /* catalogs and databases */

ses_table *ses_find_table(ses_session *s, const ses_path *p, bool temporary);
void ses_remove_table(ses_session *s, ses_table *t);
fz_status ses_create_table(ses_session *s, sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_create_view(ses_session *s, sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_drop(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;

/* What is remembered of tables (ses_away.c); id as in cat_remembers. */
bool ses_remembers(const ses_session *s, const cat_catalog *c, const cat_ident *id);
void ses_ask(ses_session *s, const cat_catalog *c, const cat_ident *id); /* before c is asked about id: not for long, if something can stand in. Then always: */
/* After it was asked: it is away, and what is remembered of id is enough to go on. */
bool ses_stand_in(ses_session *s, ses_catalog *c, const cat_ident *id, fz_status rc, const fz_error *err);
fz_status ses_recall(ses_session *s, const ses_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) FZ_MUST_USE; /* *out NULL: not remembered */

/* Iceberg tables. */
/* target: of an INSERT, for which what is remembered may stand. */
fz_status ses_iceberg_load(ses_session *s, ses_catalog *c, const ses_path *p, bool target, ses_iceberg **out, fz_error *err) FZ_MUST_USE;
void ses_iceberg_release(ses_session *s);
fz_status ses_iceberg_create(ses_session *s, ses_catalog *c, const ses_path *p, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
/* What CREATE TABLE says, checked as far as the statement alone allows; in s->arena. */
typedef struct ses_iceberg_parts { ice_schema *schema; ice_spec *spec; fz_pair *given; size_t n_given; const char *location; } ses_iceberg_parts;
fz_status ses_iceberg_prepare(ses_session *s, const sql_stmt *st, ses_iceberg_parts *out, fz_error *err) FZ_MUST_USE;
/* A loaded table as a CREATE TABLE statement: for SHOW CREATE TABLE and LIKE. */
fz_status ses_iceberg_definition(ses_session *s, const ses_iceberg *t, sql_stmt **out, fz_error *err) FZ_MUST_USE;

/* CREATE TABLE text of a definition, as Flink's SHOW CREATE TABLE prints it. path NULL: without its name (for parsing anew). */
void ses_definition_text(fz_buf *b, const char *head, const ses_path *path, const sql_stmt *def, bool hide_secrets);
/* WITH (...); nothing when there are no options. */
void ses_options_text(fz_buf *b, const fz_pair *o, size_t n, bool hide_secrets);
fz_status ses_show_create_catalog(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
/* The definition of any table by name; *view: it is a view (then *out is its CREATE VIEW). */
fz_status ses_definition(ses_session *s, const sql_name *n, sql_stmt **out, ses_path *path, bool *temporary, fz_error *err) FZ_MUST_USE;

/* Resolution for the binder. */
sql_resolver ses_resolver(ses_session *s);
fz_status ses_resolve(ses_session *s, const sql_name *n, const sql_table **out, fz_error *err) FZ_MUST_USE;
fz_status ses_resolve_target(ses_session *s, const sql_name *n, const sql_table **out, fz_error *err) FZ_MUST_USE; /* of an INSERT: what is remembered may stand for it */

fz_status ses_show(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_show_create(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_describe(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_explain(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_list_settings(ses_session *s, fz_error *err) FZ_MUST_USE;

sql_settings ses_sql_settings(ses_session *s);
fz_status ses_select(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE;
fz_status ses_insert(ses_session *s, sql_stmt *const *inserts, uint32_t n, fz_error *err) FZ_MUST_USE;
/* Binds one INSERT; *target (an Iceberg table, or a connector that can be written to) stays valid until the statement ends. */
fz_status ses_bind_insert(ses_session *s, const sql_stmt *insert, sql_plan **plan, const sql_table **target, fz_error *err) FZ_MUST_USE;

/* The connectors of a plan's tables exist (and with_formats: their formats' options are right). Opens nothing. */
fz_status ses_check_sources(const sql_plan *p, bool with_formats, fz_error *err) FZ_MUST_USE;
/* Of an INSERT: USER "sql.unsupported-streaming" when it does not stream (job_streams) and reads a source that may never end. */
fz_status ses_check_ends(const sql_plan *p, fz_error *err) FZ_MUST_USE;

/* Batches for the SCAN nodes of a plan. */
typedef struct ses_feed ses_feed;
ses_feed *ses_feed_new(ses_session *s);
void ses_feed_free(ses_feed *f);
ex_feed ses_feed_calls(ses_feed *f);
uint64_t ses_feed_skipped(const ses_feed *f);
/* True if a source of the plan may never end. Opens the plan's sources. */
fz_status ses_feed_open(ses_feed *f, const sql_plan *plan, bool *live, fz_error *err) FZ_MUST_USE;

fz_status ses_set(ses_session *s, const sql_stmt *st, fz_error *err) FZ_MUST_USE; /* SET and RESET */
const char *ses_pipeline_name(const ses_session *s);

/* ---- a doctor's session (ses_doctor.c); false for all others ---- */
bool ses_dry_catalog(const ses_session *s, const ses_catalog *c);
/* USER "doctor.table-unknown": a table of a catalog, whose columns are not known before it has been looked at. It is noted. */
fz_status ses_dry_find(ses_session *s, const sql_name *n, const ses_path *p, fz_error *err) FZ_MUST_USE;
bool ses_dry_unknown(const ses_session *s, const fz_error *err);
fz_status ses_dry_federated(ses_session *s, const char *name, ses_catalog **out) FZ_MUST_USE; /* in place of ses_open_federated */

/* A result of text columns, sent as one listing. Cells may be NULL. */
typedef struct ses_listing {
    fz_arena *arena;
    uint32_t n_cols, n_rows, cap;
    const char *const *names;
    const char **cells;
} ses_listing;
void ses_listing_add(ses_listing *l, const char *const *cells);
fz_status ses_listing_send(ses_session *s, ses_listing *l, fz_error *err) FZ_MUST_USE;
#endif
