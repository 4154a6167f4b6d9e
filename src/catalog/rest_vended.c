/* The store of a table in a REST catalog: with the options and credentials that the server gives out with the table, renewed from the server. See rest_int.h.
 *
 * One store handle a table is kept as long as the server's settings stay the same, so that connections and credentials outlive the many loads of a job.
 *
 *     table state (of the catalog) --> fio --> aws_provider --> vended --> rest
 *
 * Invariants
 *  1. Of several storage credentials that one counts whose prefix is the longest one of the table's location (LoadTableResult).
 *  2. Credentials that came with a load are handed out once; the next time (they end soon, or S3 refused them) the server is asked: the table's credentials endpoint
 *     where it is offered, client.refresh-credentials-endpoint where it names a place on the same server, else the table again.
 *  3. Catalogs live on in here until the last store is gone; cat_close takes the handles out of the states.
 * Threads: any. Lock order: the provider's, then the vended one's; rest->lock alone.
 */
#include "catalog/rest_int.h"
#include <stdlib.h>

#define MIN_LIFE_MS 30000 /* those that end sooner are not worth handing out */

typedef struct vended {
    atomic_uint refs;
    rest *r;
    fz_arena *arena;
    cat_ident ident;
    const char *location;
    const char *endpoint;    /* URL, or NULL */
    bool renews;
    pthread_mutex_t lock;    /* for all below */
    char *access_key, *secret_key, *token;
    int64_t expires_ms;
    bool handed_out;
} vended;

struct rest_table_state {
    rest_table_state *next;
    char *key;               /* levels and name, joined by 0x1f */
    char *token;             /* or NULL */
    char *subject;           /* what token was exchanged for, or NULL */
    fio *io;                 /* NULL: the catalog's own */
    vended *v;               /* or NULL */
    char *settings;          /* what io was made of */
};

/* ---- credentials ---- */

static void vended_unref(void *cx) {
    vended *v = cx;
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1) return;
    fz_free(v->access_key);
    fz_free(v->secret_key);
    fz_free(v->token);
    pthread_mutex_destroy(&v->lock);
    fz_arena_free(v->arena);
    rest_unref(v->r);
    fz_free(v);
}

static bool is_credential(const char *key) {
    return strcmp(key, "s3.access-key-id") == 0 || strcmp(key, "s3.secret-access-key") == 0 || strcmp(key, "s3.session-token") == 0 || strcmp(key, "s3.session-token-expires-at-ms") == 0;
}

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* The config with the S3 keys: of the best storage credential, else the table's own; NULL: there are none. */
static const json_t *keys_of(const json_t *result, const char *location) {
    const json_t *best = NULL, *config = json_object_get(result, "config");
    size_t i, most = 0;
    json_t *c;
    json_array_foreach(json_object_get(result, "storage-credentials"), i, c) {
        const char *prefix = text(c, "prefix");
        const json_t *o = json_object_get(c, "config");
        if (!prefix || !text(o, "s3.access-key-id") || !text(o, "s3.secret-access-key")) continue;
        if (fz_starts(location, prefix) && (!best || strlen(prefix) > most)) {
            best = o;
            most = strlen(prefix);
        }
    }
    if (best) return best;
    return text(config, "s3.access-key-id") && text(config, "s3.secret-access-key") ? config : NULL;
}

static void take_keys(vended *v, const json_t *keys) {
    const char *token = text(keys, "s3.session-token"), *ends = text(keys, "s3.session-token-expires-at-ms");
    int64_t ms = json_integer_value(json_object_get(keys, "s3.session-token-expires-at-ms"));
    if (ends && !fz_parse_i64(fz_sv_of(ends), &ms)) ms = 0;
    pthread_mutex_lock(&v->lock);
    bool same = v->access_key && strcmp(v->access_key, text(keys, "s3.access-key-id")) == 0 && v->expires_ms == ms && (!token || (v->token && strcmp(v->token, token) == 0));
    if (!same) {
        fz_free(v->access_key);
        fz_free(v->secret_key);
        fz_free(v->token);
        v->access_key = fz_strdup(text(keys, "s3.access-key-id"));
        v->secret_key = fz_strdup(text(keys, "s3.secret-access-key"));
        v->token = token && *token ? fz_strdup(token) : NULL;
        v->expires_ms = ms;
        v->handed_out = false;
    }
    pthread_mutex_unlock(&v->lock);
}

static fz_status ask_keys(vended *v, fz_error *err) {
    rest *r = v->r;
    fz_arena *a = fz_arena_new();
    bool offered = rest_offers(r, REST_LOAD_CREDENTIALS);
    rest_request rq = {.endpoint = REST_LOAD_CREDENTIALS, .delegation = true, .table_token = rest_table_token(r, &v->ident, a)};
    if (v->endpoint) rq.url = v->endpoint;
    else if (offered) rq.path = rest_path(r, a, &v->ident.ns, v->ident.name, "/credentials");
    else {
        rq.endpoint = REST_LOAD_TABLE;
        rq.path = rest_path(r, a, &v->ident.ns, v->ident.name, NULL);
        rq.query = "snapshots=refs";
        rq.max_answer = FZ_MAX_METADATA_JSON;
    }
    rest_answer answer;
    rest_result result = {0};
    json_t *o = NULL;
    fz_status rc = rest_send(r, &rq, &answer, err);
    if (rc == FZ_OK && rq.endpoint == REST_LOAD_TABLE) {
        rc = rest_result_parse(r, &answer, &result, err);
        o = result.rest;
    } else if (rc == FZ_OK) rc = rest_answer_json(r, &answer, &o, err);
    const json_t *keys = rc == FZ_OK ? keys_of(o, v->location) : NULL;
    if (rc == FZ_OK && !keys) rc = fz_fail(err, FZ_USER, "catalog.rest-credentials", "catalog '%s' gave credentials for '%s' once, but now has none for %s", r->name, cat_ident_text(a, &v->ident), v->location);
    if (keys) take_keys(v, keys);
    json_decref(o);
    rest_answer_free(&answer);
    fz_arena_free(a);
    return rc;
}

static fz_status fetch(void *cx, fz_arena *a, aws_credentials *out, fz_error *err) {
    vended *v = cx;
    pthread_mutex_lock(&v->lock);
    bool good = v->access_key && !v->handed_out && (!v->expires_ms || v->expires_ms > fz_now_ms() + MIN_LIFE_MS);
    pthread_mutex_unlock(&v->lock);
    if (!good && !v->renews) {
        fz_fail(err, FZ_USER, "catalog.rest-credentials", "the credentials that catalog '%s' gave for table '%s' are used up", v->r->name, cat_ident_text(a, &v->ident));
        return fz_hint(err, "client.refresh-credentials-enabled = false forbids to ask for new ones");
    }
    if (!good) FZ_TRY(ask_keys(v, err));
    pthread_mutex_lock(&v->lock);
    v->handed_out = true;
    *out = (aws_credentials){.access_key = fz_arena_strdup(a, v->access_key), .secret_key = fz_arena_strdup(a, v->secret_key), .token = v->token ? fz_arena_strdup(a, v->token) : NULL,
                             .expires_ms = v->expires_ms, .source = fz_arena_printf(a, "catalog '%s' for table '%s'", v->r->name, cat_ident_text(a, &v->ident))};
    pthread_mutex_unlock(&v->lock);
    return FZ_OK;
}

/* Only a place on the catalog's own server gets our login. */
static const char *renewal_url(const rest *r, const char *given, fz_arena *a) {
    net_url base, u;
    fz_error own;
    if (!given || !*given) return NULL;
    const char *url = strstr(given, "://") ? given : fz_arena_printf(a, "%s/%s", r->base, given + (given[0] == '/'));
    if (net_url_parse(r->base, a, &base, &own) != FZ_OK || net_url_parse(url, a, &u, &own) != FZ_OK) return NULL;
    return strcmp(base.scheme, u.scheme) == 0 && fz_ieq(base.host, u.host) && base.port == u.port ? url : NULL;
}

static vended *vended_new(rest *r, const cat_ident *id, const json_t *config, const char *location) {
    vended *v = FZ_NEW(vended);
    atomic_init(&v->refs, 1);
    pthread_mutex_init(&v->lock, NULL);
    v->r = rest_ref(r);
    v->arena = fz_arena_new();
    v->ident = (cat_ident){cat_namespace_clone(v->arena, id->ns), fz_arena_strdup(v->arena, id->name)};
    v->location = fz_arena_strdup(v->arena, location);
    const char *endpoint = text(config, "client.refresh-credentials-endpoint"), *renews = text(config, "client.refresh-credentials-enabled");
    v->endpoint = renewal_url(r, endpoint ? endpoint : rest_option(r, "client.refresh-credentials-endpoint"), v->arena);
    v->renews = renews ? fz_ieq(renews, "true") : rest_option_bool(r, "client.refresh-credentials-enabled", true);
    return v;
}

/* ---- states of tables ---- */

static char *key_of(const cat_ident *id) {
    fz_buf b = {0};
    for (uint32_t i = 0; i < id->ns.n; i++) fz_buf_printf(&b, "%s\x1f", id->ns.level[i]);
    fz_buf_puts(&b, id->name);
    return fz_buf_steal(&b);
}

/* lock held; made when it is missing and `make` */
static rest_table_state *state_of(rest *r, const cat_ident *id, bool make) {
    char *key = key_of(id);
    rest_table_state *s = r->tables;
    while (s && strcmp(s->key, key) != 0) s = s->next;
    if (!s && make) {
        s = FZ_NEW(rest_table_state);
        *s = (rest_table_state){.next = r->tables, .key = key};
        r->tables = s;
    } else fz_free(key);
    return s;
}

static void state_clear(rest_table_state *s) {
    fio_unref(s->io);
    vended_unref(s->v);
    fz_free(s->settings);
    s->io = NULL;
    s->v = NULL;
    s->settings = NULL;
}

/* Those that hold a store hold the catalog too; so they are let go outside of the lock. */
void rest_tables_free(rest *r) {
    pthread_mutex_lock(&r->lock);
    rest_table_state *s = r->tables, *next;
    r->tables = NULL;
    pthread_mutex_unlock(&r->lock);
    for (; s; s = next) {
        next = s->next;
        state_clear(s);
        fz_free(s->token);
        fz_free(s->subject);
        fz_free(s->key);
        fz_free(s);
    }
}

const char *rest_table_token(rest *r, const cat_ident *id, fz_arena *a) {
    pthread_mutex_lock(&r->lock);
    const rest_table_state *s = state_of(r, id, false);
    const char *out = s && s->token ? fz_arena_strdup(a, s->token) : NULL;
    pthread_mutex_unlock(&r->lock);
    return out;
}

void rest_table_token_drop(rest *r, const char *token) {
    pthread_mutex_lock(&r->lock);
    for (rest_table_state *s = r->tables; s; s = s->next) {
        if (!s->token || strcmp(s->token, token) != 0) continue;
        fz_free(s->token);
        fz_free(s->subject);
        s->token = s->subject = NULL;
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- the store ---- */

/* The catalog's settings, then the table's, then those beside the keys; of each name the last one counts. */
static fz_pair *settings_of(const rest *r, const json_t *config, const json_t *keys, fz_arena *a, size_t *n, bool *own) {
    size_t nc, nk, k = 0, m = 0;
    const fz_pair *c = rest_pairs(a, config, &nc), *v = rest_pairs(a, keys != config ? keys : NULL, &nk);
    fz_pair *all = FZ_ANEWN(a, fz_pair, r->n_options + nc + nk + 1);
    k += rest_store_options(r->options, r->n_options, false, all);
    size_t given = k;
    k += rest_store_options(c, nc, true, all + k);
    k += rest_store_options(v, nk, true, all + k);
    *own = false;
    for (size_t i = 0; i < k; i++) {
        if (keys && is_credential(all[i].key)) continue;
        *own |= i >= given;
        all[m++] = all[i];
    }
    *n = m;
    return all;
}

static void note_remote_signing(const rest *r, const cat_ident *id, const json_t *config, fz_arena *a) {
    const char *on = text(config, "s3.remote-signing-enabled");
    if (on && fz_ieq(on, "true") && !rest_option(r, "s3.access-key-id"))
        fz_log(FZ_LOG_WARN, "catalog.remote-signing", FZ_KV("catalog", "%s", r->name), FZ_KV("table", "%s", cat_ident_text(a, id)),
               FZ_KV("note", "the server offers to sign requests to S3; frazil signs them itself, with the credentials that it finds"), NULL);
}

/* lock held */
static fz_status renew_store(rest *r, rest_table_state *s, const cat_ident *id, const json_t *config, const json_t *keys, const char *location, fz_arena *a, fz_error *err) {
    size_t n;
    bool own;
    fz_pair *v = settings_of(r, config, keys, a, &n, &own);
    fz_buf b = {0};
    fz_buf_printf(&b, "%s\n%s\n", keys ? "vended" : "", location);
    for (size_t i = 0; i < n; i++) fz_buf_printf(&b, "%s=%s\n", v[i].key, v[i].value);
    bool same = s->settings && strcmp(s->settings, fz_buf_cstr(&b)) == 0;
    if (!same) {
        state_clear(s);
        if (own || keys) {
            fz_status rc = fio_new(v, n, &s->io, err);
            if (rc != FZ_OK) {
                fz_buf_free(&b);
                return fz_context(err, "store settings that catalog '%s' gave", r->name);
            }
        }
        if (keys) {
            s->v = vended_new(r, id, config, location);
            atomic_fetch_add(&s->v->refs, 1);
            aws_provider *p = aws_provider_custom(fetch, s->v, vended_unref);
            fio_set_provider(s->io, p);
            aws_provider_unref(p);
        } else note_remote_signing(r, id, config, a);
        s->settings = fz_strdup(fz_buf_cstr(&b));
    }
    if (keys) take_keys(s->v, keys);
    fz_buf_free(&b);
    return FZ_OK;
}

/* The token for requests about the table: the one in its config, or what the other token in there is good for (Java's order of preference). */
static fz_status token_of(rest *r, const cat_ident *id, const json_t *config, fz_arena *a, const char **token, const char **subject, fz_error *err) {
    static const char *const types[] = {"urn:ietf:params:oauth:token-type:id_token", "urn:ietf:params:oauth:token-type:access_token", "urn:ietf:params:oauth:token-type:jwt",
                                        "urn:ietf:params:oauth:token-type:saml2", "urn:ietf:params:oauth:token-type:saml1"};
    const char *type = NULL;
    *token = text(config, "token");
    *subject = NULL;
    for (size_t i = 0; !*token && !type && i < sizeof types / sizeof *types; i++)
        if ((*subject = text(config, types[i]))) type = types[i];
    if (*token && (!**token || strpbrk(*token, "\r\n"))) *token = NULL;
    if (!type) return FZ_OK;
    pthread_mutex_lock(&r->lock);
    const rest_table_state *s = state_of(r, id, false);
    if (s && s->token && s->subject && strcmp(s->subject, *subject) == 0) *token = fz_arena_strdup(a, s->token);
    pthread_mutex_unlock(&r->lock);
    return *token ? FZ_OK : rest_auth_exchange(r, *subject, type, a, token, err);
}

fz_status rest_table_store(rest *r, const cat_ident *id, const json_t *result, const char *location, fio **io, fz_error *err) {
    const json_t *config = json_object_get(result, "config"), *keys = keys_of(result, location);
    const char *token, *subject;
    fz_arena *a = fz_arena_new();
    *io = NULL;
    fz_status rc = token_of(r, id, config, a, &token, &subject, err);
    if (rc == FZ_OK) {
        pthread_mutex_lock(&r->lock);
        rest_table_state *s = state_of(r, id, true);
        fz_free(s->token);
        fz_free(s->subject);
        s->token = token ? fz_strdup(token) : NULL;
        s->subject = token && subject ? fz_strdup(subject) : NULL;
        rc = renew_store(r, s, id, config, keys, location, a, err);
        if (rc == FZ_OK) *io = fio_ref(s->io ? s->io : r->io);
        pthread_mutex_unlock(&r->lock);
    }
    fz_arena_free(a);
    return rc;
}
