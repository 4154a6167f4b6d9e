/* PostgreSQL as a database of the SQL catalog, through libpq. See sql_int.h.
 *
 * A connection is lost when the socket broke, when the server ended the session (FATAL), or when no answer came in time; it is then
 * closed, and the next begin or read opens another one. libpq never waits by itself but for names of hosts (the resolver has its own time): sockets are waited for here, and when the process is about to end
 * (net_hurried) no longer than for anything over HTTP.
 *
 * Invariants
 *  1. Everything but COMMIT is definite: a transaction whose COMMIT was not sent cannot be applied, however the connection ends.
 *     Hence BEGIN, UPDATE and COMMIT are three messages, and none is sent before the one before it was answered.
 *  2. COMMIT that got no clear answer is UNKNOWN, never more. What makes it definite is a lock (and_wait): the UPDATE before it was
 *     answered, so its transaction holds the lock of the row until it has ended, whether by commit or by rollback; a SELECT ... FOR
 *     UPDATE from a new connection returns only after that, and reads (READ COMMITTED follows the row to its newest version) what
 *     it left behind. A COMMIT that is still on its way in the network cannot overtake it: the lock is free only when the
 *     transaction is over. For an INSERT the key in the primary key's index does the same to another INSERT of that key.
 *  3. The lock is not waited for in vain: the server itself rolls back a transaction of ours that stands idle for orphan_ms
 *     (idle_in_transaction_session_timeout), which ends one whose client or network has died.
 *  4. A COMMIT that the server has answered is durable: synchronous_commit = off is raised to on. Other values are the operator's.
 *  5. Settings hold for one transaction (SET LOCAL), so that a pooler that hands a connection from client to client does no harm.
 *     There is no statement_timeout: it could end the wait of a COMMIT for a synchronous standby, which then counts as
 *     committed. lock_timeout bounds waiting in the server, deadlines on this side bound everything.
 *  6. libpq puts no password into its messages, and neither do we.
 */
#include "catalog/pg_int.h"
#include "catalog/sql_int.h"
#include "net/net.h"
#include <ctype.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>

enum { TEXT_OID = 25, MAX_PARAMETERS = 8, ANSWER_MS = 5000, LONGEST_MS = 300000, ORPHAN_MIN_MS = 1000, ORPHAN_MAX_MS = 30000, LOOK_MS = 200 };
/* A peer that is gone without a word is found out by the system, also where an answer may take long: silent for 30 + 3 * 10 s, or what was sent is not acknowledged within 30 s. */
static const char *const alive[][2] = {{"keepalives_idle", "30"}, {"keepalives_interval", "10"}, {"keepalives_count", "3"}, {"tcp_user_timeout", "30000"}};
enum { N_ALIVE = (int)(sizeof alive / sizeof *alive) };

typedef struct pg_db {
    sql_db base;
    PGconn *conn;        /* NULL: none */
    bool in_transaction;
    fz_arena *arena;     /* of target */
    pg_target target;
} pg_db;

static int64_t now_ms(void) { return fz_mono_ns() / 1000000; }

static void drop(pg_db *p) {
    PQfinish(p->conn);
    p->conn = NULL;
    p->in_transaction = false;
}

/* Until the socket can be read (or written); false at the deadline, and earlier when the process is about to end and nothing comes. */
static bool await_socket(PGconn *conn, bool to_write, int64_t deadline) {
    int64_t began = now_ms();
    for (;;) {
        int64_t now = now_ms(), left = deadline - now;
        struct pollfd f = {.fd = PQsocket(conn), .events = to_write ? POLLOUT : POLLIN};
        if (f.fd < 0 || left < 0 || (now - began >= NET_HURRIED_STALL_MS && net_hurried())) return false;
        int n = poll(&f, 1, left > LOOK_MS ? LOOK_MS : (int)left);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
    }
}

/* ---- errors ---- */

/* libpq's texts have several lines. */
static const char *one_line(const char *s, char *out, size_t cap) {
    size_t n = 0;
    for (; *s && n + 3 < cap; s++) {
        if (*s != '\n') out[n++] = *s == '\t' ? ' ' : *s;
        else if (s[1] && n) out[n++] = ';', out[n++] = ' ';
    }
    out[n] = 0;
    return out;
}

static const struct sqlstate { const char *begin; fz_status cls; const char *code; } states[] = { /* the first that fits */
    {"40001", FZ_RETRY, "catalog.serialization"}, {"40P01", FZ_RETRY, "catalog.serialization"},
    {"55P03", FZ_RETRY, "catalog.locked"}, {"57014", FZ_RETRY, "catalog.locked"}, /* lock_timeout; a statement_timeout of the operator's */
    {"57P", FZ_RETRY, "catalog.unreachable"}, {"08", FZ_RETRY, "catalog.unreachable"}, {"25P03", FZ_RETRY, "catalog.unreachable"}, /* shut down, starting, idle for too long */
    {"25006", FZ_RETRY, "catalog.unreachable"}, /* a standby: another host takes over */
    {"53", FZ_RETRY, "catalog.io"}, {"58", FZ_RETRY, "catalog.io"}, /* disk full, too many connections */
    {"23505", FZ_CONFLICT, "catalog.conflict"}, {"42P07", FZ_CONFLICT, "catalog.conflict"}, {"42710", FZ_CONFLICT, "catalog.conflict"}, {"42701", FZ_CONFLICT, "catalog.conflict"},
    {"22001", FZ_USER, "catalog.name"}, {"22P05", FZ_USER, "catalog.name"}, {"22021", FZ_USER, "catalog.name"}, /* too long; not in the database's encoding */
    {"28", FZ_USER, "catalog.denied"}, {"42501", FZ_USER, "catalog.denied"}, /* a job that runs waits for the grant to come back */
    {"3D000", FZ_USER, "catalog.cannot-open"}, {"3F000", FZ_USER, "catalog.cannot-open"}, /* no such database, no schema */
    {"42P01", FZ_USER, "catalog.not-a-catalog"}, {"42703", FZ_USER, "catalog.not-a-catalog"},
    {"XX001", FZ_FATAL, "catalog.damaged"}, {"XX002", FZ_FATAL, "catalog.damaged"},
    {"", FZ_FATAL, "catalog.sql"},
};

static fz_status fail_state(const pg_db *p, const char *state, const char *what, const char *text, fz_error *err) {
    const struct sqlstate *s = states;
    while (!fz_starts(state, s->begin)) s++;
    fz_fail(err, s->cls, s->code, "cannot %s: catalog '%s': %s (SQLSTATE %s)", what, p->base.label, text, state);
    if (strcmp(s->code, "catalog.locked") == 0) return fz_hint(err, "the option 'frazil.sql.busy-timeout' says how long one call waits");
    if (strcmp(state, "3F000") == 0) return fz_hint(err, "no schema of the search path exists; the property 'currentSchema' names another one");
    return s->cls;
}

static fz_status lost(pg_db *p, const char *what, const char *text, fz_error *err) {
    char line[512];
    fz_fail(err, FZ_RETRY, "catalog.unreachable", "cannot %s: catalog '%s': %s", what, p->base.label, one_line(text, line, sizeof line));
    drop(p);
    return FZ_RETRY;
}

/* ---- connecting ---- */

/* "... failed: FATAL:  28P01: password authentication failed ...": the server's code, or NULL when it was not asked so far. */
static const char *state_in(const char *text, char state[6]) {
    for (const char *p = strstr(text, ":  "); p; p = strstr(p + 1, ":  ")) {
        size_t n = 0;
        while (n < 5 && (isdigit((unsigned char)p[3 + n]) || isupper((unsigned char)p[3 + n]))) n++;
        if (n < 5 || p[8] != ':') continue;
        memcpy(state, p + 3, 5);
        state[5] = 0;
        return state;
    }
    return NULL;
}

static fz_status cannot_connect(pg_db *p, fz_error *err) {
    char state[6], line[512];
    one_line(p->conn ? PQerrorMessage(p->conn) : "no memory", line, sizeof line);
    char *location = strstr(line, "; LOCATION:"); /* of the server's source */
    if (location) *location = 0;
    bool asked = p->conn && PQconnectionNeedsPassword(p->conn);
    if (state_in(line, state)) fail_state(p, state, "connect", line, err);
    else if (asked) fz_fail(err, FZ_USER, "catalog.denied", "cannot connect: catalog '%s' wants a password, and none is given", p->base.label);
    else fz_fail(err, FZ_RETRY, "catalog.unreachable", "cannot connect: catalog '%s': %s", p->base.label, line);
    if (err->cls == FZ_FATAL) err->cls = FZ_RETRY; /* whatever it was, nothing has happened */
    drop(p);
    return err->cls;
}

static void say_nothing(void *cx, const PGresult *r) {
    (void)cx;
    (void)r;
}

/* The i-th of a list with commas; a list of one holds for all. */
static const char *item(fz_arena *a, const char *list, unsigned i) {
    const char *p = list;
    if (!strchr(list, ',')) return list;
    for (; i > 0 && p; i--) p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
    return p ? fz_arena_strndup(a, p, strcspn(p, ",")) : "";
}

static fz_status connect_host(pg_db *p, unsigned i, bool one, fz_error *err) {
    int64_t deadline = now_ms() + (p->target.connect_ms > 0 && p->target.connect_ms < LONGEST_MS ? p->target.connect_ms : LONGEST_MS);
    uint32_t n = p->target.key.n;
    fz_arena *a = fz_arena_new();
    const char **k = FZ_ANEWN(a, const char *, n + N_ALIVE + 1), **v = FZ_ANEWN(a, const char *, n + N_ALIVE + 1);
    for (uint32_t j = 0; j < n; j++) {
        k[j] = p->target.key.v[j];
        v[j] = one && (strcmp(k[j], "host") == 0 || strcmp(k[j], "port") == 0) ? item(a, p->target.value.v[j], i) : p->target.value.v[j];
    }
    for (int j = 0; j < N_ALIVE && !pg_target_get(&p->target, "service"); j++) { /* a service may have its own */
        if (pg_target_get(&p->target, alive[j][0])) continue;
        k[n] = alive[j][0];
        v[n++] = alive[j][1];
    }
    p->conn = PQconnectStartParams(k, v, 0);
    fz_arena_free(a);
    if (!p->conn || PQstatus(p->conn) == CONNECTION_BAD) return cannot_connect(p, err);
    PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(p->conn, say_nothing, NULL);
    for (PostgresPollingStatusType s = PGRES_POLLING_WRITING; s != PGRES_POLLING_OK; s = PQconnectPoll(p->conn)) {
        if (s == PGRES_POLLING_FAILED) return cannot_connect(p, err);
        if (!await_socket(p->conn, s == PGRES_POLLING_WRITING, deadline)) return lost(p, "connect", "no answer in time ('connectTimeout')", err);
    }
    PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    if (PQsetnonblocking(p->conn, 1) != 0) return lost(p, "connect", PQerrorMessage(p->conn), err);
    return FZ_OK;
}

/* Hosts one after the other, each with its own time: libpq itself would wait for the first one only. A refused login ends it. */
static fz_status connect_db(pg_db *p, fz_error *err) {
    const char *hosts = pg_target_get(&p->target, "host");
    bool one = hosts && !pg_target_get(&p->target, "hostaddr");
    fz_status rc;
    unsigned i = 0;
    do {
        rc = connect_host(p, i++, one, err);
        hosts = one && hosts ? strchr(hosts, ',') : NULL;
        if (hosts) hosts++;
    } while (rc == FZ_RETRY && hosts && !net_hurried());
    return rc;
}

/* ---- statements ---- */

static bool fits(const PGresult *r) {
    ExecStatusType s = PQresultStatus(r);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK || s == PGRES_EMPTY_QUERY;
}

/* What the server answered to what was sent last: of several results the first failure, else the last; NULL: the connection is
 * lost, and err says so. */
static PGresult *answer(pg_db *p, const char *what, int64_t wait_ms, fz_error *err) {
    int64_t ms = p->target.answer_ms > 0 ? p->target.answer_ms : wait_ms + ANSWER_MS, deadline = now_ms() + (ms < LONGEST_MS ? ms : LONGEST_MS);
    PGresult *out = NULL;
    for (int left; (left = PQflush(p->conn)) != 0;) { /* a statement is short, but the peer need not take it */
        if (left > 0 && await_socket(p->conn, true, deadline)) continue;
        return lost(p, what, left < 0 ? PQerrorMessage(p->conn) : "nothing is taken in time; the connection is given up", err), NULL;
    }
    for (;;) {
        while (PQisBusy(p->conn)) {
            if (!await_socket(p->conn, false, deadline)) {
                PQclear(out);
                return lost(p, what, "no answer in time; the connection is given up", err), NULL;
            }
            if (!PQconsumeInput(p->conn)) break;
        }
        PGresult *r = PQgetResult(p->conn);
        if (!r) break;
        if (out && !fits(out)) PQclear(r);
        else {
            PQclear(out);
            out = r;
        }
        if (PQstatus(p->conn) == CONNECTION_BAD) break;
    }
    const char *severity = out && !fits(out) ? PQresultErrorField(out, PG_DIAG_SEVERITY_NONLOCALIZED) : NULL;
    bool ended = severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
    if (out && !ended && PQstatus(p->conn) == CONNECTION_OK) return out;
    char text[512];
    snprintf(text, sizeof text, "%s", out && !fits(out) ? PQresultErrorMessage(out) : PQerrorMessage(p->conn));
    PQclear(out);
    return lost(p, what, *text ? text : "the connection is closed", err), NULL;
}

/* A failure that the server has told; the connection lives. */
static fz_status told(const pg_db *p, const PGresult *r, const char *what, fz_error *err) {
    char line[512];
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE), *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    return fail_state(p, state ? state : "XX000", what, one_line(text ? text : PQresultErrorMessage(r), line, sizeof line), err);
}

static PGresult *ask(pg_db *p, const char *sql, const char *const *args, unsigned n, const char *what, int64_t wait_ms, fz_error *err) {
    static const Oid text[MAX_PARAMETERS] = {TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID, TEXT_OID};
    int sent = n ? PQsendQueryParams(p->conn, sql, (int)n, text, args, NULL, NULL, 0) : PQsendQuery(p->conn, sql);
    if (sent) return answer(p, what, wait_ms, err);
    lost(p, what, PQerrorMessage(p->conn), err);
    return NULL;
}

/* A statement with which nothing is at stake: on a connection that broke while it was idle it is sent once more, on a new one. */
static PGresult *ask_first(pg_db *p, const char *sql, const char *const *args, unsigned n, const char *what, int64_t wait_ms, fz_error *err) {
    bool fresh = !p->conn;
    if (fresh && connect_db(p, err) != FZ_OK) return NULL;
    PGresult *r = ask(p, sql, args, n, what, wait_ms, err);
    if (r || fresh || net_hurried() || connect_db(p, err) != FZ_OK) return r;
    return ask(p, sql, args, n, what, wait_ms, err);
}

static void hand_rows(const PGresult *r, sql_row row, void *cx) {
    const char *column[MAX_PARAMETERS] = {0};
    int width = PQnfields(r);
    for (int i = 0; i < PQntuples(r); i++) {
        for (int k = 0; k < width && k < MAX_PARAMETERS; k++) column[k] = PQgetisnull(r, i, k) ? NULL : PQgetvalue(r, i, k);
        if (!row(cx, column)) return;
    }
}

static fz_status run(sql_db *d, const char *sql, const char *const *args, unsigned n, sql_row row, void *cx, int *changes, fz_error *err) {
    pg_db *p = (pg_db *)d;
    static const char what[] = "read or write the catalog";
    PGresult *r = p->in_transaction ? ask(p, sql, args, n, what, d->busy_ms + d->orphan_ms, err) : ask_first(p, sql, args, n, what, d->busy_ms, err);
    if (!r) return err->cls;
    fz_status rc = fits(r) ? FZ_OK : told(p, r, what, err);
    int64_t changed = 0;
    if (rc == FZ_OK && row) hand_rows(r, row, cx);
    if (rc == FZ_OK && changes) *changes = fz_parse_i64(fz_sv_of(PQcmdTuples(r)), &changed) ? (int)changed : 0;
    PQclear(r);
    return rc;
}

static void rollback(sql_db *d) {
    pg_db *p = (pg_db *)d;
    fz_error err;
    if (!p->conn || !p->in_transaction) return;
    p->in_transaction = false;
    PQclear(ask(p, "ROLLBACK", NULL, 0, "roll back", 0, &err));
    if (p->conn && PQtransactionStatus(p->conn) != PQTRANS_IDLE) drop(p);
}

static fz_status begin(sql_db *d, int64_t wait_ms, fz_error *err) {
    pg_db *p = (pg_db *)d;
    char sql[512];
    if (wait_ms < 1) wait_ms = 1; /* 0 is without end */
    snprintf(sql, sizeof sql,
             "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = %lld; SET LOCAL idle_in_transaction_session_timeout = %lld;"
             " SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'",
             (long long)(wait_ms > INT32_MAX ? INT32_MAX : wait_ms), (long long)d->orphan_ms);
    PGresult *r = ask_first(p, sql, NULL, 0, "begin a transaction", 0, err);
    if (!r) return err->cls;
    fz_status rc = fits(r) ? FZ_OK : told(p, r, "begin a transaction", err);
    PQclear(r);
    p->in_transaction = true;
    if (rc != FZ_OK) rollback(d);
    if (rc != FZ_OK && strcmp(err->code, "catalog.unreachable") == 0 && p->conn) drop(p); /* a standby: look for another host */
    return rc;
}

static fz_status commit(sql_db *d, fz_error *err) {
    pg_db *p = (pg_db *)d;
    PGresult *r = ask(p, "COMMIT", NULL, 0, "commit", d->busy_ms, err);
    p->in_transaction = false;
    if (!r) return err->cls = FZ_UNKNOWN;
    fz_status rc = FZ_OK;
    if (!fits(r)) {
        rc = told(p, r, "commit", err);
        /* A deadlock, a serialisation failure, a constraint checked at the end: by their definition it is rolled back. */
        if (rc != FZ_CONFLICT && strcmp(err->code, "catalog.serialization") != 0) err->cls = rc = FZ_UNKNOWN;
    } else if (strcmp(PQcmdStatus(r), "COMMIT") != 0) /* of a transaction that had failed, COMMIT makes "ROLLBACK", without an error */
        rc = fz_fail(err, FZ_RETRY, "catalog.sql", "cannot commit: catalog '%s' answered %s", d->label, PQcmdStatus(r));
    PQclear(r);
    if (PQtransactionStatus(p->conn) != PQTRANS_IDLE) drop(p);
    return rc;
}

static void close_db(sql_db *d) {
    pg_db *p = (pg_db *)d;
    drop(p);
    fz_arena_free(p->arena);
    fz_free(p);
}

static const sql_driver driver = {
    .see_columns = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('iceberg_tables') AND attnum > 0 AND NOT attisdropped",
    .see_properties = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('iceberg_namespace_properties') AND attnum > 0 AND NOT attisdropped",
    .and_wait = " FOR UPDATE", .run = run, .begin = begin, .commit = commit, .rollback = rollback, .close = close_db,
};

fz_status sql_postgres_open(cat_catalog *c, sql_db **out, fz_error *err) {
    pg_db *p = FZ_NEW(pg_db);
    p->arena = fz_arena_new();
    p->base = (sql_db){.driver = &driver, .busy_ms = c->busy_timeout_ms};
    pthread_mutex_init(&p->base.lock, NULL);
    int64_t orphan = c->busy_timeout_ms / 2;
    p->base.orphan_ms = orphan < ORPHAN_MIN_MS ? ORPHAN_MIN_MS : orphan > ORPHAN_MAX_MS ? ORPHAN_MAX_MS : orphan;
    fz_status rc = pg_target_of(p->arena, c->uri, c->options, c->n_options, &p->target, err);
    p->base.label = p->target.label;
    if (rc == FZ_OK) rc = connect_db(p, err);
    if (rc != FZ_OK) {
        sql_close(&p->base);
        return rc;
    }
    for (uint32_t i = 0; i < p->target.ignored.n; i++) cat_names_add(c->arena, &c->ignored, p->target.ignored.v[i]);
    *out = &p->base;
    return FZ_OK;
}
