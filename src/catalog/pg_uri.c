/* PostgreSQL URIs, of Java's driver and of SQLAlchemy and libpq, and the driver's properties -> libpq's keywords. See pg_int.h.
 *
 * Invariants
 *  1. A property or keyword that is not mapped is named: as without meaning, or in an error.
 *  2. The URI and values of properties stand in no message.
 *  3. '+' is a blank in the query of either kind of URI: Java and SQLAlchemy both read it so.
 */
#include "catalog/pg_int.h"

enum { CONNECT_MS = 10000, PORT_DIGITS = 5 };

bool pg_is_uri(const char *uri) {
    return fz_starts(uri, "jdbc:postgresql:") || fz_starts(uri, "postgresql:") || fz_starts(uri, "postgres:") || fz_starts(uri, "postgresql+");
}

static void put(pg_target *t, const char *key, const char *value) {
    for (uint32_t i = 0; i < t->key.n; i++)
        if (strcmp(t->key.v[i], key) == 0) {
            t->value.v[i] = fz_arena_strdup(t->a, value);
            return;
        }
    cat_names_add(t->a, &t->key, key);
    cat_names_add(t->a, &t->value, value);
}

const char *pg_target_get(const pg_target *t, const char *key) {
    for (uint32_t i = 0; i < t->key.n; i++)
        if (strcmp(t->key.v[i], key) == 0) return t->value.v[i];
    return NULL;
}

static fz_status bad(fz_error *err, const char *what) {
    fz_fail(err, FZ_USER, "catalog.option", "the option 'uri' is not the URI of a PostgreSQL database: %s", what);
    return fz_hint(err, "write postgresql://user:password@host:5432/database or jdbc:postgresql://host:5432/database?user=...&password=...; other characters in them as %%XX");
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* NULL: a '%' without two hexadecimal digits, or a zero byte. */
static const char *decode(fz_arena *a, fz_sv s, bool plus) {
    char *out = fz_arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            int h = i + 2 < s.n ? hex(s.p[i + 1]) : -1, l = i + 2 < s.n ? hex(s.p[i + 2]) : -1;
            if (h < 0 || l < 0 || h + l == 0) return NULL;
            c = (char)(h << 4 | l);
            i += 2;
        } else if (c == '+' && plus) c = ' ';
        out[n++] = c;
    }
    out[n] = 0;
    return out;
}

/* ---- properties of the JDBC driver ---- */

/* libpq's "options" are added to those that are there. */
static void add_options(pg_target *t, const char *value) {
    const char *before = pg_target_get(t, "options");
    put(t, "options", before ? fz_arena_printf(t->a, "%s %s", before, value) : value);
}

/* A session setting among them: blanks and backslashes of the value are escaped. */
static void put_setting(pg_target *t, const char *name, const char *value) {
    fz_buf b = {0};
    fz_buf_printf(&b, "-c %s=", name);
    for (; *value; value++) {
        if (*value == ' ' || *value == '\\') fz_buf_putc(&b, '\\');
        fz_buf_putc(&b, *value);
    }
    add_options(t, fz_buf_cstr(&b));
    fz_buf_free(&b);
}

static fz_status put_seconds(const char *name, const char *value, int64_t *ms, fz_error *err) {
    int64_t s;
    if (!fz_parse_i64(fz_sv_of(value), &s) || s < 0 || s > FZ_MAX_DURATION_MS / 1000)
        return fz_fail(err, FZ_USER, "catalog.option", "'%s' of the SQL catalog is not a number of seconds", name);
    *ms = s * 1000;
    return FZ_OK;
}

static fz_status map_property(pg_target *t, const char *name, const char *value, fz_error *err) {
    static const char *const same[][2] = {
        {"user", "user"}, {"password", "password"}, {"sslmode", "sslmode"}, {"sslrootcert", "sslrootcert"}, {"sslcert", "sslcert"}, {"sslkey", "sslkey"},
        {"sslpassword", "sslpassword"}, {"ApplicationName", "application_name"}, {"gssEncMode", "gssencmode"},
        {"kerberosServerName", "krbsrvname"}, {"channelBinding", "channel_binding"}, {"service", "service"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(name, same[i][0]) == 0) return put(t, same[i][1], value), FZ_OK;
    if (strcmp(name, "connectTimeout") == 0 || strcmp(name, "loginTimeout") == 0) return put_seconds(name, value, &t->connect_ms, err);
    if (strcmp(name, "socketTimeout") == 0) return put_seconds(name, value, &t->answer_ms, err);
    if (strcmp(name, "options") == 0) return add_options(t, value), FZ_OK;
    if (strcmp(name, "ssl") == 0) {
        if (!pg_target_get(t, "sslmode") && (fz_ieq(value, "true") || !*value)) put(t, "sslmode", "verify-full");
    } else if (strcmp(name, "tcpKeepAlive") == 0) put(t, "keepalives", fz_ieq(value, "true") ? "1" : "0");
    else if (strcmp(name, "targetServerType") == 0) put(t, "target_session_attrs", fz_ieq(value, "any") ? "any" : "read-write");
    else put_setting(t, "search_path", value); /* currentSchema */
    return FZ_OK;
}

/* "jdbc.schema-version" and its like are the catalog's own. */
static bool is_catalogs(const char *key) {
    return strcmp(key, "jdbc.schema-version") == 0 || strcmp(key, "jdbc.init-catalog-tables") == 0 || strcmp(key, "jdbc.strict-mode") == 0;
}

static fz_status take_property(pg_target *t, const char *name, const char *value, bool in_uri, fz_error *err) {
    const fz_option *table = cat_jdbc_options();
    char key[64];
    snprintf(key, sizeof key, "jdbc.%s", name);
    const fz_option *o = fz_option_find(table, key);
    if (!o) {
        fz_fail(err, FZ_USER, "catalog.option", in_uri ? "unknown property '%s' in the option 'uri'" : "unknown catalog option 'jdbc.%s'", name);
        const char *near = fz_option_nearest(table, key);
        return near ? fz_hint(err, "did you mean '%s'?", in_uri ? near + 5 : near) : FZ_USER;
    }
    if (o->state == FZ_OPT_REFUSED) {
        fz_fail(err, FZ_USER, "catalog.option", in_uri ? "the property '%s' in the option 'uri' cannot be honoured" : "the catalog option 'jdbc.%s' cannot be honoured", name);
        return fz_hint(err, "%s", o->why);
    }
    if (o->state == FZ_OPT_NO_MEANING) return cat_names_add(t->a, &t->ignored, in_uri ? name : key), FZ_OK;
    /* "ssl" alone means true; what the text of a failed check quotes is no secret: these types have none. */
    if (o->type != FZ_OPT_STRING && !(strcmp(name, "ssl") == 0 && !*value)) FZ_TRY(fz_option_check(o, value, err));
    return map_property(t, name, value, err);
}

/* ---- libpq's keywords, as a URI of SQLAlchemy or libpq has them in its query ---- */

static fz_status take_keyword(pg_target *t, const char *name, const char *value, fz_error *err) {
    static const char *const keywords[] = {
        "user", "password", "dbname", "port", "passfile", "channel_binding", "application_name", "fallback_application_name", "keepalives",
        "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "sslmode", "sslcompression", "sslcert", "sslkey",
        "sslpassword", "sslrootcert", "sslcrl", "sslcrldir", "sslsni", "requirepeer", "ssl_min_protocol_version", "ssl_max_protocol_version", "krbsrvname",
        "gsslib", "service", "target_session_attrs", "hostaddr",
    };
    if (strcmp(name, "connect_timeout") == 0) return put_seconds(name, value, &t->connect_ms, err);
    if (strcmp(name, "client_encoding") == 0 || strcmp(name, "requiressl") == 0) return cat_names_add(t->a, &t->ignored, name), FZ_OK;
    if (strcmp(name, "options") == 0) return add_options(t, value), FZ_OK;
    if (strcmp(name, "host") == 0) {
        /* SQLAlchemy's several hosts: host=a:1&host=b:2 */
        const char *colon = value[0] == '/' ? NULL : strrchr(value, ':'), *hosts = pg_target_get(t, "host"), *ports = pg_target_get(t, "port");
        if (colon && strchr(value, ':') != colon) colon = NULL; /* an IPv6 address */
        const char *host = colon ? fz_arena_strndup(t->a, value, (size_t)(colon - value)) : value;
        bool more = hosts && pg_target_get(t, "several");
        put(t, "host", more ? fz_arena_printf(t->a, "%s,%s", hosts, host) : host);
        if (colon) put(t, "port", more && ports ? fz_arena_printf(t->a, "%s,%s", ports, colon + 1) : colon + 1);
        put(t, "several", "1");
        return FZ_OK;
    }
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(name, keywords[i]) == 0) return put(t, name, value), FZ_OK;
    fz_fail(err, FZ_USER, "catalog.option", "unknown parameter '%s' in the option 'uri'", name);
    return fz_hint(err, "postgresql:// URIs take libpq's connection parameters; the properties of the Java driver belong to jdbc:postgresql:// URIs");
}

/* ---- the URI ---- */

static fz_status query(pg_target *t, const char *q, bool jdbc, fz_error *err) {
    while (*q) {
        size_t n = strcspn(q, "&"), k = 0;
        while (k < n && q[k] != '=') k++;
        const char *name = decode(t->a, (fz_sv){q, k}, true), *value = k < n ? decode(t->a, (fz_sv){q + k + 1, n - k - 1}, true) : "";
        if (!name || !value) return bad(err, "a '%' in its query is not followed by two hexadecimal digits");
        if (*name) FZ_TRY(jdbc ? take_property(t, name, value, true, err) : take_keyword(t, name, value, err));
        q += n + (q[n] == '&');
    }
    return FZ_OK;
}

/* host, host:port, [::1]:port */
static fz_status one_host(pg_target *t, fz_sv s, fz_buf *hosts, fz_buf *ports, fz_error *err) {
    size_t n = 0;
    if (s.n && s.p[0] == '[') {
        while (n < s.n && s.p[n] != ']') n++;
        if (n == s.n) return bad(err, "a '[' is not closed");
        n++;
    } else
        while (n < s.n && s.p[n] != ':') n++;
    fz_sv host = {s.p, n}, port = {s.p + n, s.n - n};
    if (host.n && host.p[0] == '[') host = (fz_sv){s.p + 1, n - 2};
    const char *name = decode(t->a, host, false);
    if (!name) return bad(err, "a '%' in its host is not followed by two hexadecimal digits");
    int64_t number;
    if (port.n && (port.p[0] != ':' || (port.n > 1 && (port.n > 1 + PORT_DIGITS || !fz_parse_i64((fz_sv){port.p + 1, port.n - 1}, &number) || number < 1 || number > 65535))))
        return bad(err, "what follows the host is not a port");
    fz_buf_puts(hosts, name);
    fz_buf_append(ports, port.p + (port.n > 0), port.n - (port.n > 0));
    return FZ_OK;
}

static fz_status hosts(pg_target *t, fz_sv s, bool jdbc, fz_error *err) {
    if (s.n == 0) {
        if (jdbc) put(t, "host", "localhost"); /* libpq would take a Unix socket */
        return FZ_OK;
    }
    fz_buf h = {0}, p = {0};
    fz_status rc = FZ_OK;
    for (size_t i = 0; rc == FZ_OK && i <= s.n;) {
        size_t n = 0;
        while (i + n < s.n && s.p[i + n] != ',') n++;
        if (i) {
            fz_buf_putc(&h, ',');
            fz_buf_putc(&p, ',');
        }
        rc = one_host(t, (fz_sv){s.p + i, n}, &h, &p, err);
        i += n + 1;
    }
    if (rc == FZ_OK) {
        put(t, "host", fz_buf_cstr(&h));
        if (strspn(fz_buf_cstr(&p), ",") < p.len) put(t, "port", fz_buf_cstr(&p));
    }
    fz_buf_free(&h);
    fz_buf_free(&p);
    return rc;
}

static fz_status user_info(pg_target *t, fz_sv s, fz_error *err) {
    size_t n = 0;
    while (n < s.n && s.p[n] != ':') n++;
    const char *user = decode(t->a, (fz_sv){s.p, n}, false), *password = n < s.n ? decode(t->a, (fz_sv){s.p + n + 1, s.n - n - 1}, false) : NULL;
    if (!user || (n < s.n && !password)) return bad(err, "a '%' before its '@' is not followed by two hexadecimal digits");
    if (*user) put(t, "user", user);
    if (password) put(t, "password", password);
    return FZ_OK;
}

static fz_status database(pg_target *t, fz_sv s, bool jdbc, fz_error *err) {
    const char *db = decode(t->a, s, jdbc);
    if (!db) return bad(err, "a '%' in its database is not followed by two hexadecimal digits");
    if (*db) put(t, "dbname", db);
    return FZ_OK;
}

static fz_status parse(pg_target *t, const char *uri, fz_error *err) {
    bool jdbc = fz_starts(uri, "jdbc:");
    const char *p = strchr(uri + (jdbc ? 5 : 0), ':') + 1;
    size_t n = strcspn(p, "?");
    if (strncmp(p, "//", 2) != 0) {
        if (!jdbc) return bad(err, "'//' must follow its first colon");
        /* jdbc:postgresql:database */
        put(t, "host", "localhost");
        FZ_TRY(database(t, (fz_sv){p + (p[0] == '/'), n - (p[0] == '/')}, true, err));
        return query(t, p + n + (p[n] == '?'), true, err);
    }
    fz_sv rest = {p + 2, n - 2};
    const char *at = memchr(rest.p, '@', rest.n), *colon = memchr(rest.p, ':', rest.n), *slash = memchr(rest.p, '/', rest.n);
    if (at && slash && slash < at && !(colon && colon < slash)) at = NULL; /* it belongs to the database's name */
    if (at && jdbc) return bad(err, "Java's driver takes user and password as properties behind '?' only");
    if (at) {
        FZ_TRY(user_info(t, (fz_sv){rest.p, (size_t)(at - rest.p)}, err));
        rest = (fz_sv){at + 1, (size_t)(rest.p + rest.n - at - 1)};
    }
    /* A second one, or one behind '?', is a character of the password that was not written as %40: nothing behind it may be quoted in an error. */
    const char *second = memchr(rest.p, '@', rest.n);
    bool cut_short = second && memchr(second, '/', (size_t)(rest.p + rest.n - second)); /* the name of a database may have one, but a host and a slash come after this one */
    if (!jdbc && (cut_short || (!at && strchr(p + n, '@') && strchr(strchr(p + n, '@'), '/')))) return bad(err, "an '@' of its user, password or a parameter must be written %40, a '/' %2F, a '?' %3F");
    slash = memchr(rest.p, '/', rest.n);
    size_t h = slash ? (size_t)(slash - rest.p) : rest.n;
    FZ_TRY(hosts(t, (fz_sv){rest.p, h}, jdbc, err));
    if (slash) FZ_TRY(database(t, (fz_sv){slash + 1, rest.n - h - 1}, jdbc, err));
    return query(t, p + n + (p[n] == '?'), jdbc, err);
}

/* Marks of our own go; what libpq shall do unless told. */
static void finish(pg_target *t) {
    cat_names k = t->key, v = t->value;
    t->key = t->value = (cat_names){0};
    for (uint32_t i = 0; i < k.n; i++)
        if (strcmp(k.v[i], "several") != 0) put(t, k.v[i], v.v[i]);
    put(t, "client_encoding", "UTF8");
    if (!pg_target_get(t, "application_name")) put(t, "fallback_application_name", "frazil");
    const char *host = pg_target_get(t, "host"), *port = pg_target_get(t, "port"), *db = pg_target_get(t, "dbname");
    /* A standby cannot be written to: of several hosts it is never the one. */
    if (host && strchr(host, ',') && !pg_target_get(t, "target_session_attrs")) put(t, "target_session_attrs", "read-write");
    t->label = fz_arena_printf(t->a, "postgresql://%s%s%s/%s", host ? host : "", port ? ":" : "", port ? port : "", db ? db : "");
}

fz_status pg_target_of(fz_arena *a, const char *uri, const fz_pair *o, size_t n, pg_target *t, fz_error *err) {
    *t = (pg_target){.a = a, .connect_ms = CONNECT_MS};
    for (size_t i = 0; i < n; i++) {
        if (!fz_starts(o[i].key, "jdbc.") || is_catalogs(o[i].key)) continue;
        if (take_property(t, o[i].key + 5, o[i].value, false, err) != FZ_OK) return fz_at(err, o[i].line, o[i].column);
    }
    FZ_TRY(parse(t, uri, err));
    finish(t);
    return FZ_OK;
}
