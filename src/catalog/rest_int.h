/* Private to the REST catalog (rest*.c): what is shared between its requests, logins, configuration and tables.
 *
 * Source: the Iceberg REST catalog's OpenAPI document ("Iceberg REST Catalog API"), and for what it leaves open Java's RESTSessionCatalog (1.10).
 */
#ifndef CAT_REST_INT_H
#define CAT_REST_INT_H
#include "catalog/catalog_int.h"
#include <pthread.h>
#include <stdatomic.h>

/* ---- endpoints ---- */

typedef enum {
    REST_CONFIG, REST_LIST_NAMESPACES, REST_CREATE_NAMESPACE, REST_LOAD_NAMESPACE, REST_NAMESPACE_EXISTS, REST_DROP_NAMESPACE, REST_UPDATE_NAMESPACE,
    REST_LIST_TABLES, REST_CREATE_TABLE, REST_LOAD_TABLE, REST_TABLE_EXISTS, REST_UPDATE_TABLE, REST_DROP_TABLE, REST_LOAD_CREDENTIALS, REST_N_ENDPOINTS
} rest_endpoint;
const char *rest_endpoint_text(rest_endpoint e);   /* "GET /v1/{prefix}/namespaces", as in the list of /v1/config */
const char *rest_endpoint_method(rest_endpoint e);
/* What AWS must allow for it, by the signing name of the service; NULL: not known. */
const char *rest_endpoint_action(rest_endpoint e, const char *signing_name);

/* ---- an open catalog; outlives cat_close as long as tables' credentials come from it ---- */

typedef struct rest_auth rest_auth;
typedef struct rest_answer rest_answer;
typedef struct rest_table_state rest_table_state;

typedef struct rest {
    atomic_uint refs;
    fz_arena *arena;
    const char *name;                  /* of CREATE CATALOG, for messages */
    const fz_pair *options;            /* the server's defaults, under the client's, under the server's overrides */
    size_t n_options;
    const char *base;                  /* option uri without trailing slashes */
    const char *prefix;                /* encoded; "" or "x" or "x/y" */
    const char *separator;             /* of a namespace's levels in a path, encoded: "%1F" */
    const char *separator_raw;
    cat_names offered;                 /* the server's endpoints; none: it did not say */
    bool idempotency;                  /* it understands Idempotency-Key */
    net_tls tls;
    const char *proxy;                 /* NULL: the environment's */
    int64_t connect_timeout_ms, stall_timeout_ms, max_retries;
    const char *page_size;             /* or NULL */
    const net_header *headers;         /* of options header.* */
    size_t n_headers;
    rest_auth *auth;
    fio *io;                           /* the catalog's own store; borrowed until cat_close */
    pthread_mutex_t lock;
    rest_table_state *tables;          /* under lock */
} rest;
rest *rest_ref(rest *r);
void rest_unref(rest *r);
const char *rest_option(const rest *r, const char *key); /* NULL: nobody gave it */
bool rest_option_bool(const rest *r, const char *key, bool dflt);
int64_t rest_option_i64(const rest *r, const char *key, int64_t dflt);

/* rest_config.c */
/* Reads the options, logs in, asks /v1/config. */
fz_status rest_new(const cat_catalog *c, rest **out, fz_error *err) FZ_MUST_USE;
bool rest_offers(const rest *r, rest_endpoint e);
fz_status rest_must_offer(const rest *r, rest_endpoint e, fz_error *err) FZ_MUST_USE; /* USER "catalog.rest-endpoint" */
/* Those of v that a store or an AWS client honours, into out, which has room. Returns how many. by_server: they came with a table. */
size_t rest_store_options(const fz_pair *v, size_t n, bool by_server, fz_pair *out);
/* A string, and what some servers write without quotes (a boolean, a whole number); in a. NULL: anything else. */
const char *rest_text(fz_arena *a, const json_t *value);
/* Such members of a JSON object as pairs in a (others are left out). */
fz_pair *rest_pairs(fz_arena *a, const json_t *object, size_t *n);
/* Paths, in a: "/v1/<prefix>/namespaces", with the namespace, with the table (both may be missing) and a tail ("/properties"). */
const char *rest_path(const rest *r, fz_arena *a, const cat_namespace *ns, const char *table, const char *tail);

/* ---- logins (rest_auth.c) ---- */

fz_status rest_auth_new(const rest *r, rest_auth **out, fz_error *err) FZ_MUST_USE;
void rest_auth_free(rest_auth *au);
/* Tokens that one login has got are good for another one of the same catalog. */
void rest_auth_inherit(rest_auth *au, rest_auth *from);
const char *rest_auth_signing_name(const rest_auth *au); /* NULL: requests are not signed */

/* A list of headers in which each name stands once. */
typedef struct rest_headers { net_header v[48]; size_t n; } rest_headers;
fz_status rest_header_put(rest_headers *h, const char *name, const char *value, fz_error *err) FZ_MUST_USE; /* replaces; value NULL takes it away */
const char *rest_header_get(const rest_headers *h, const char *name);

/* What is to be authorised. */
typedef struct rest_outgoing { const char *method, *url; const void *body; size_t n_body; const char *table_token; } rest_outgoing;
/* Adds what proves who we are. *mark tells rest_auth_renew which token or credentials these were. */
fz_status rest_auth_add(rest *r, const rest_outgoing *o, fz_arena *a, rest_headers *h, uint64_t *mark, fz_error *err) FZ_MUST_USE;
/* The server has refused them (401, 419, or an AWS error). true: another try with new ones is worth it. */
bool rest_auth_renew(rest *r, const rest_answer *answer, uint64_t mark);
/* Changes a token that came with a table (RFC 8693, the catalog's own as actor) for one to use with its requests; in a. USER and RETRY as rest_post_form. */
fz_status rest_auth_exchange(rest *r, const char *subject, const char *subject_type, fz_arena *a, const char **token, fz_error *err) FZ_MUST_USE;
/* Every secret that this login knows becomes asterisks. */
void rest_auth_redact(rest_auth *au, char *text);
void rest_hide(char *text, const char *secret); /* the same for one; those of less than four bytes stay */

/* ---- requests (rest_http.c) ---- */

typedef enum {
    REST_READ,   /* no effect; tried again */
    REST_AGAIN,  /* an effect, but twice is as good as once; tried again */
    REST_ONCE    /* sent once: no answer, or one of 5xx, is UNKNOWN */
} rest_effect;

typedef struct rest_request {
    rest_endpoint endpoint;
    rest_effect effect;
    const char *path, *query;     /* path of rest_path; query encoded, or NULL */
    const char *url;              /* instead of path and query: on the same server */
    const json_t *body;           /* or NULL */
    const char *table_token;      /* of a LoadTableResult, in place of the catalog's; or NULL */
    bool delegation;              /* asks for credentials of the table's store */
    size_t max_answer;            /* 0: 64 MiB */
} rest_request;

struct rest_answer {
    net_answer http;
    char type[96];                /* of the error: "NoSuchTableException" */
    char message[400];            /* of the error, or what else was in the body, shortened */
    bool maybe_applied;           /* an attempt before the last one had no answer */
};

/* FZ_OK: a 2xx. Else the class and code (status and body in out):
 *   400 and others of 4xx, 3xx: USER "catalog.rest-request"; 401, 419: USER "catalog.rest-unauthorized"; 403: USER "catalog.rest-forbidden"; 404: USER "catalog.rest-not-found";
 *   409: CONFLICT "catalog.conflict"; 429: RETRY "catalog.rest-throttled"; 501 with an Iceberg error: USER "catalog.rest-request";
 *   408, 5xx, no answer, an answer too large: RETRY "catalog.rest-unavailable" for READ and AGAIN, UNKNOWN "catalog.commit-unknown" for ONCE; nothing sent: as net_exchange says.
 * out is filled in any case; free it with rest_answer_free. */
fz_status rest_send(rest *r, const rest_request *rq, rest_answer *out, fz_error *err) FZ_MUST_USE;
void rest_answer_free(rest_answer *a);
/* A POST of a form to a token endpoint; FZ_OK: a 2xx, with its JSON in *out. Without an answer, 429, 5xx: RETRY "catalog.rest-login-unavailable"; else USER "catalog.rest-login". */
fz_status rest_post_form(rest *r, const char *url, const fz_buf *form, const char *authorization, json_t **out, fz_error *err) FZ_MUST_USE;
/* The answer's body as a JSON object: RETRY "catalog.rest-answer" if it is none. */
fz_status rest_answer_json(const rest *r, const rest_answer *a, json_t **out, fz_error *err) FZ_MUST_USE;
extern void (*rest_sleep)(int64_t ms); /* fz_sleep_ms; tests set another */

/* rest_error.c */
void rest_error_parse(rest *r, rest_answer *a);
/* The first words of a body that is not JSON: tags and control characters out, blanks joined. */
void rest_text_shorten(const void *body, size_t n, char *out, size_t cap);

/* ---- tables ---- */

/* rest_table.c */
/* Load-, create- and commit answers are cut into the metadata, which only the iceberg room parses, and the rest. */
typedef struct rest_result { const char *metadata; size_t n_metadata; json_t *rest; } rest_result;
fz_status rest_result_parse(const rest *r, const rest_answer *a, rest_result *out, fz_error *err) FZ_MUST_USE; /* RETRY "catalog.rest-answer"; out->rest is the caller's */
fz_status rest_table_load(cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) FZ_MUST_USE;
fz_status rest_table_exists(cat_catalog *c, const cat_ident *id, bool *out, fz_error *err) FZ_MUST_USE;
fz_status rest_table_create(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err) FZ_MUST_USE;
fz_status rest_table_commit(cat_catalog *c, const cat_table *base, const ice_changes *changes, cat_table **out, fz_error *err) FZ_MUST_USE;
fz_status rest_table_drop(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) FZ_MUST_USE;
/* {"namespace": [...]}'s value; new reference. */
json_t *rest_namespace_json(cat_namespace ns);
/* Turns a 404 into what is missing. */
fz_status rest_not_found(const rest *r, const rest_answer *a, const cat_ident *id, fz_error *err) FZ_MUST_USE;

/* rest_vended.c */
/* The store of a table by what the server said with it: *io is a new reference. */
fz_status rest_table_store(rest *r, const cat_ident *id, const json_t *result, const char *location, fio **io, fz_error *err) FZ_MUST_USE;
/* The token that the server gave for requests about this table, in a, or NULL. */
const char *rest_table_token(rest *r, const cat_ident *id, fz_arena *a);
/* The server no longer takes it. */
void rest_table_token_drop(rest *r, const char *token);
void rest_tables_free(rest *r);
#endif
