/* What a REST catalog is told: the client's options, and those that GET /v1/config puts under and over them; endpoints and paths. See rest_int.h.
 *
 * Invariants
 *  1. Options that are the session's to say (which kind of catalog, which databases, who signs) are not taken from a server.
 *  2. A prefix goes into paths as the server wrote it ("catalogs/123", "arn%3Aaws%3A..."); only bytes that no path may hold are encoded.
 */
#include "catalog/rest_int.h"
#include <stdlib.h>

static const struct { const char *text, *s3tables, *glue; } endpoints[REST_N_ENDPOINTS] = {
    [REST_CONFIG] = {"GET /v1/config", "s3tables:GetTableBucket", "glue:GetCatalog"},
    [REST_LIST_NAMESPACES] = {"GET /v1/{prefix}/namespaces", "s3tables:ListNamespaces", "glue:GetDatabases"},
    [REST_CREATE_NAMESPACE] = {"POST /v1/{prefix}/namespaces", "s3tables:CreateNamespace", "glue:CreateDatabase"},
    [REST_LOAD_NAMESPACE] = {"GET /v1/{prefix}/namespaces/{namespace}", "s3tables:GetNamespace", "glue:GetDatabase"},
    [REST_NAMESPACE_EXISTS] = {"HEAD /v1/{prefix}/namespaces/{namespace}", "s3tables:GetNamespace", "glue:GetDatabase"},
    [REST_DROP_NAMESPACE] = {"DELETE /v1/{prefix}/namespaces/{namespace}", "s3tables:DeleteNamespace", "glue:DeleteDatabase"},
    [REST_UPDATE_NAMESPACE] = {"POST /v1/{prefix}/namespaces/{namespace}/properties", NULL, "glue:UpdateDatabase"},
    [REST_LIST_TABLES] = {"GET /v1/{prefix}/namespaces/{namespace}/tables", "s3tables:ListTables", "glue:GetTables"},
    [REST_CREATE_TABLE] = {"POST /v1/{prefix}/namespaces/{namespace}/tables", "s3tables:CreateTable, s3tables:PutTableData", "glue:CreateTable"},
    [REST_LOAD_TABLE] = {"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}", "s3tables:GetTableMetadataLocation, s3tables:GetTableData", "glue:GetTable"},
    [REST_TABLE_EXISTS] = {"HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}", "s3tables:GetTable", "glue:GetTable"},
    [REST_UPDATE_TABLE] = {"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}", "s3tables:UpdateTableMetadataLocation, s3tables:PutTableData, s3tables:GetTableData",
                           "glue:UpdateTable"},
    [REST_DROP_TABLE] = {"DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}", "s3tables:DeleteTable", "glue:DeleteTable"},
    [REST_LOAD_CREDENTIALS] = {"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials", NULL, "lakeformation:GetDataAccess"},
};

const char *rest_endpoint_text(rest_endpoint e) { return endpoints[e].text; }
const char *rest_endpoint_method(rest_endpoint e) {
    const char *t = endpoints[e].text;
    return t[0] == 'G' ? "GET" : t[0] == 'H' ? "HEAD" : t[0] == 'D' ? "DELETE" : "POST";
}
const char *rest_endpoint_action(rest_endpoint e, const char *signing_name) {
    if (!signing_name) return NULL;
    return strcmp(signing_name, "s3tables") == 0 ? endpoints[e].s3tables : strcmp(signing_name, "glue") == 0 ? endpoints[e].glue : NULL;
}

/* A server that lists no endpoints is one from before they were listed: HEAD and credentials came later. */
bool rest_offers(const rest *r, rest_endpoint e) {
    if (r->offered.n == 0) return e != REST_TABLE_EXISTS && e != REST_NAMESPACE_EXISTS && e != REST_LOAD_CREDENTIALS;
    for (uint32_t i = 0; i < r->offered.n; i++)
        if (strcmp(r->offered.v[i], endpoints[e].text) == 0) return true;
    return false;
}

fz_status rest_must_offer(const rest *r, rest_endpoint e, fz_error *err) {
    if (rest_offers(r, e)) return FZ_OK;
    fz_fail(err, FZ_USER, "catalog.rest-endpoint", "catalog '%s': the server does not offer '%s'", r->name, endpoints[e].text);
    return fz_hint(err, "it lists what it offers in the answer to GET %s/v1/config", r->base);
}

/* ---- options ---- */

const char *rest_option(const rest *r, const char *key) { return fz_pair_get(r->options, r->n_options, key); }
bool rest_option_bool(const rest *r, const char *key, bool dflt) {
    const char *v = rest_option(r, key);
    return v && *v ? fz_ieq(v, "true") : dflt;
}
int64_t rest_option_i64(const rest *r, const char *key, int64_t dflt) {
    const char *v = rest_option(r, key);
    int64_t n;
    return v && fz_parse_i64(fz_sv_trim(fz_sv_of(v)), &n) ? n : dflt;
}

static bool honoured(const char *key, bool by_server) {
    if (by_server && strcmp(key, "s3.remote-signing-enabled") == 0) return false; /* an offer */
    const fz_option *o = fz_option_find(fio_options(), key);
    if (!o) o = fz_option_find(aws_options(), key);
    return o && o->state == FZ_OPT_USED;
}

size_t rest_store_options(const fz_pair *v, size_t n, bool by_server, fz_pair *out) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (honoured(v[i].key, by_server)) out[k++] = v[i];
    return k;
}

const char *rest_text(fz_arena *a, const json_t *value) {
    if (json_is_string(value)) return fz_arena_strdup(a, json_string_value(value));
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    return json_is_integer(value) ? fz_arena_printf(a, "%lld", (long long)json_integer_value(value)) : NULL;
}

fz_pair *rest_pairs(fz_arena *a, const json_t *object, size_t *n) {
    fz_pair *v = FZ_ANEWN(a, fz_pair, json_object_size(object) + 1);
    const char *key;
    json_t *value;
    *n = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const char *text = rest_text(a, value);
        if (text) v[(*n)++] = (fz_pair){.key = fz_arena_strdup(a, key), .value = text};
    }
    return v;
}

/* "env:NAME" stands for a variable of the environment, as in Java's EnvironmentUtil: secrets need not stand in a script. One that is not set is an error:
 * going on without a login could reach what is open to anybody. */
static fz_status client_options(rest *r, const cat_catalog *c, fz_error *err) {
    fz_pair *v = FZ_ANEWN(r->arena, fz_pair, c->n_options);
    for (size_t i = 0; i < c->n_options; i++) {
        const char *value = c->options[i].value;
        if (fz_starts(value, "env:") && !(value = getenv(c->options[i].value + 4))) {
            fz_fail(err, FZ_USER, "catalog.option", "the option '%s' names the environment variable %s, which is not set", c->options[i].key, c->options[i].value + 4);
            return fz_at(err, c->options[i].line, c->options[i].column);
        }
        v[r->n_options++] = (fz_pair){.key = fz_arena_strdup(r->arena, c->options[i].key), .value = fz_arena_strdup(r->arena, value)};
    }
    r->options = v;
    return FZ_OK;
}

static bool session_says(const char *key) {
    static const char *const names[] = {"type", "catalog-type", "catalog-impl", "base-namespace", "default-database", "property-version", "s3.remote-signing-enabled", NULL};
    for (size_t i = 0; names[i]; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}

/* defaults, then what is there, then overrides: the last one counts. */
static void widen(rest *r, const json_t *answer) {
    size_t nd, no, n = 0;
    const fz_pair *d = rest_pairs(r->arena, json_object_get(answer, "defaults"), &nd), *o = rest_pairs(r->arena, json_object_get(answer, "overrides"), &no);
    fz_pair *v = FZ_ANEWN(r->arena, fz_pair, nd + no + r->n_options);
    for (size_t i = 0; i < nd; i++)
        if (!session_says(d[i].key)) v[n++] = d[i];
    for (size_t i = 0; i < r->n_options; i++) v[n++] = r->options[i];
    for (size_t i = 0; i < no; i++)
        if (!session_says(o[i].key)) v[n++] = o[i];
    r->options = v;
    r->n_options = n;
}

/* ---- what requests need of them ---- */

static const char *decoded(fz_arena *a, const char *s) {
    fz_buf b = {0};
    const char *out = net_decode(&b, s, strlen(s)) && b.len ? fz_arena_strndup(a, (const char *)b.data, b.len) : NULL;
    fz_buf_free(&b);
    return out;
}

static const char *clean_prefix(fz_arena *a, const char *s) {
    fz_buf b = {0};
    while (*s == '/') s++;
    size_t n = strlen(s);
    while (n > 0 && s[n - 1] == '/') n--;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] > ' ' && (unsigned char)s[i] < 0x7f && !strchr("\"<>\\^`{|}?#[]", s[i])) fz_buf_putc(&b, s[i]);
        else fz_buf_printf(&b, "%%%02X", (unsigned char)s[i]);
    }
    const char *out = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return out;
}

static const char *proxy_of(const rest *r) {
    const char *host = rest_option(r, "rest.client.proxy.hostname"), *port = rest_option(r, "rest.client.proxy.port");
    const char *user = rest_option(r, "rest.client.proxy.username"), *password = rest_option(r, "rest.client.proxy.password");
    if (!host || !*host) return NULL;
    if (!user || !password) return fz_arena_printf(r->arena, "http://%s%s%s", host, port ? ":" : "", port ? port : "");
    fz_buf b = {0};
    net_encode(&b, user, strlen(user), false);
    fz_buf_putc(&b, ':');
    net_encode(&b, password, strlen(password), false);
    const char *out = fz_arena_printf(r->arena, "http://%s@%s%s%s", fz_buf_cstr(&b), host, port ? ":" : "", port ? port : "");
    fz_buf_free(&b);
    return out;
}

static void take_headers(rest *r) {
    net_header *h = FZ_ANEWN(r->arena, net_header, r->n_options + 1);
    const char *agent = rest_option(r, "rest.client.user-agent");
    r->n_headers = 0;
    if (agent && *agent) h[r->n_headers++] = (net_header){"User-Agent", agent};
    for (size_t i = 0; i < r->n_options; i++)
        if (fz_starts(r->options[i].key, "header.")) h[r->n_headers++] = (net_header){r->options[i].key + 7, r->options[i].value};
    r->headers = h;
}

static fz_status number(const rest *r, const char *key, int64_t dflt, int64_t least, int64_t *out, fz_error *err) {
    const char *v = rest_option(r, key);
    *out = dflt;
    if (!v || (fz_parse_i64(fz_sv_trim(fz_sv_of(v)), out) && *out >= least && *out <= INT32_MAX)) return FZ_OK;
    return fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': '%s' is not a number from %lld up", r->name, key, (long long)least);
}

/* (Again) after each change of the options. */
static fz_status settle(rest *r, fz_error *err) {
    const char *uri = rest_option(r, "uri"), *prefix = rest_option(r, "prefix"), *sep = rest_option(r, "namespace-separator"), *ca = rest_option(r, "ssl.cabundle");
    int64_t page;
    if (!uri || !*uri) {
        fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s' has no option 'uri'", r->name);
        return fz_hint(err, "write the address of the REST catalog without /v1, such as 'https://catalog.example.com/api'");
    }
    net_url u;
    FZ_TRY(net_url_parse(uri, r->arena, &u, err));
    if (u.query) return fz_fail(err, FZ_USER, "catalog.option", "the catalog '%s': 'uri' has a query", r->name);
    char *base = fz_arena_strdup(r->arena, uri);
    for (size_t n = strlen(base); n > 0 && base[n - 1] == '/'; n--) base[n - 1] = 0;
    r->base = base;
    r->prefix = prefix ? clean_prefix(r->arena, prefix) : "";
    r->separator = sep && *sep ? sep : "%1F";
    r->separator_raw = decoded(r->arena, r->separator);
    if (!r->separator_raw) return fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': 'namespace-separator' '%s' cannot be decoded", r->name, r->separator);
    r->tls = (net_tls){.ca_file = ca && *ca ? ca : getenv("SSL_CERT_FILE"), .cert_file = rest_option(r, "ssl.client.cert"), .key_file = rest_option(r, "ssl.client.key")};
    r->proxy = proxy_of(r);
    FZ_TRY(number(r, "rest.client.connection-timeout-ms", 10000, 1, &r->connect_timeout_ms, err));
    FZ_TRY(number(r, "rest.client.socket-timeout-ms", 60000, 1, &r->stall_timeout_ms, err));
    FZ_TRY(number(r, "rest.client.max-retries", 5, 0, &r->max_retries, err));
    FZ_TRY(number(r, "rest-page-size", 0, 1, &page, err));
    r->page_size = page > 0 ? fz_arena_printf(r->arena, "%lld", (long long)page) : NULL;
    take_headers(r);
    return FZ_OK;
}

/* ---- GET /v1/config ---- */

static fz_status ask_config(rest *r, json_t **out, fz_error *err) {
    const char *warehouse = rest_option(r, "warehouse");
    fz_buf q = {0};
    if (warehouse && *warehouse) {
        fz_buf_puts(&q, "warehouse=");
        net_encode(&q, warehouse, strlen(warehouse), false);
    }
    rest_request rq = {.endpoint = REST_CONFIG, .path = "/v1/config", .query = q.len ? fz_buf_cstr(&q) : NULL};
    rest_answer a;
    fz_status rc = rest_send(r, &rq, &a, err);
    if (rc == FZ_OK && (rc = rest_answer_json(r, &a, out, err)) != FZ_OK) {
        err->cls = rc = FZ_USER;
        fz_hint(err, "is 'uri' the address of an Iceberg REST catalog, without /v1?");
    } else if (rc == FZ_USER && a.http.status == 404)
        fz_hint(err, a.type[0] ? "see the option 'warehouse'" : "is 'uri' the address of an Iceberg REST catalog, without /v1?");
    rest_answer_free(&a);
    fz_buf_free(&q);
    return rc;
}

/* Both are the server's, and no login with new options may differ from that with the old ones unless an option of it has come. */
static fz_status take_config(rest *r, const json_t *answer, fz_error *err) {
    const json_t *list = json_object_get(answer, "endpoints");
    size_t i;
    json_t *e;
    json_array_foreach((json_t *)(uintptr_t)list, i, e)
        if (json_is_string(e)) cat_names_add(r->arena, &r->offered, json_string_value(e));
    r->idempotency = json_is_string(json_object_get(answer, "idempotency-key-lifetime"));
    widen(r, answer);
    FZ_TRY(settle(r, err));
    rest_auth *au;
    FZ_TRY(rest_auth_new(r, &au, err));
    rest_auth_inherit(au, r->auth);
    rest_auth_free(r->auth);
    r->auth = au;
    const char *signing = rest_auth_signing_name(au), *warehouse = rest_option(r, "warehouse");
    if (!r->prefix[0] && signing && strcmp(signing, "s3tables") == 0 && warehouse) { /* S3 Tables: the prefix is the encoded ARN of the table bucket */
        fz_buf b = {0};
        net_encode(&b, warehouse, strlen(warehouse), false);
        r->prefix = fz_arena_strdup(r->arena, fz_buf_cstr(&b));
        fz_buf_free(&b);
    }
    return FZ_OK;
}

fz_status rest_new(const cat_catalog *c, rest **out, fz_error *err) {
    rest *r = FZ_NEW(rest);
    json_t *answer = NULL;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    r->arena = fz_arena_new();
    r->name = fz_arena_strdup(r->arena, c->name);
    fz_status rc = client_options(r, c, err);
    if (rc == FZ_OK) rc = settle(r, err);
    if (rc == FZ_OK) rc = rest_auth_new(r, &r->auth, err);
    if (rc == FZ_OK) rc = ask_config(r, &answer, err);
    if (rc == FZ_OK) rc = take_config(r, answer, err);
    json_decref(answer);
    if (rc == FZ_OK) *out = r;
    else rest_unref(r);
    return rc;
}

rest *rest_ref(rest *r) {
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void rest_unref(rest *r) {
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1) return;
    rest_tables_free(r);
    rest_auth_free(r->auth);
    pthread_mutex_destroy(&r->lock);
    fz_arena_free(r->arena);
    fz_free(r);
}

/* ---- paths ---- */

const char *rest_path(const rest *r, fz_arena *a, const cat_namespace *ns, const char *table, const char *tail) {
    fz_buf b = {0};
    fz_buf_printf(&b, "/v1%s%s/namespaces", r->prefix[0] ? "/" : "", r->prefix);
    for (uint32_t i = 0; ns && i < ns->n; i++) {
        fz_buf_puts(&b, i ? r->separator : "/");
        net_encode(&b, ns->level[i], strlen(ns->level[i]), false);
    }
    if (table) fz_buf_puts(&b, "/tables/");
    if (table) net_encode(&b, table, strlen(table), false);
    if (tail) fz_buf_puts(&b, tail);
    const char *out = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return out;
}
