/* Who we are to a REST catalog: nothing, a name and password, OAuth2 tokens, or AWS signatures. See rest_int.h.
 *
 * Tokens. With a credential they come from the client-credentials grant (RFC 6749 4.4), and are renewed by the same grant: a fresh one is what every identity
 * provider offers, while Java's token exchange (RFC 8693) of the old token is not. A token that was given without a credential is exchanged before it expires, as
 * Java does, if token-exchange-enabled and token-refresh-enabled are not false and its end is known (token-expires-in-ms, or the claim exp of a JWT).
 *
 * Invariants
 *  1. A token is renewed a tenth of its life, at most 5 minutes, before its end. While the old one is good a failed renewal is a warning.
 *  2. A refusal (401, 419) makes at most one new login a request; who finds that another thread has made it already takes that one.
 *  3. Secrets leave this file in request headers and bodies only.
 * Memory: options' texts lie in the catalog's arena. Threads: any; `lock` guards the token and the learned clock.
 */
#define _XOPEN_SOURCE 700
#include "catalog/rest_int.h"
#include <time.h>

#define MAX_REFRESH_WINDOW_MS 300000
#define RETRY_REFRESH_MS 10000
#define ACCESS_TOKEN_TYPE "urn:ietf:params:oauth:token-type:access_token"

struct rest_auth {
    bool sign, bearer;
    pthread_mutex_t lock;
    /* OAuth2 */
    const char *client_id, *secret, *given_token, *scope, *audience, *resource, *server;
    bool refresh, exchange;
    char *token, *token_type;        /* under lock; token NULL: none yet */
    int64_t since_ms, expires_ms;    /* expires 0: not known */
    int64_t next_refresh_ms;
    uint64_t mark;                   /* grows with each token */
    /* Basic */
    const char *basic, *password;
    /* SigV4 */
    aws_session *session;
    aws_provider *provider;          /* NULL: the session's */
    const char *signing_name, *region;
    int64_t skew_ms;
};

/* ---- making one ---- */

typedef enum { KIND_NONE, KIND_BASIC, KIND_OAUTH2, KIND_SIGV4, KIND_BAD } kind;

static kind kind_named(const char *s) {
    static const struct { const char *name, *impl; kind k; } kinds[] = {
        {"none", "org.apache.iceberg.rest.auth.NoopAuthManager", KIND_NONE}, {"basic", "org.apache.iceberg.rest.auth.BasicAuthManager", KIND_BASIC},
        {"oauth2", "org.apache.iceberg.rest.auth.OAuth2Manager", KIND_OAUTH2}, {"sigv4", "org.apache.iceberg.aws.RESTSigV4AuthManager", KIND_SIGV4}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (fz_ieq(s, kinds[i].name) || strcmp(s, kinds[i].impl) == 0) return kinds[i].k;
    return KIND_BAD;
}

static const char *filled(const rest *r, const char *key) {
    const char *v = rest_option(r, key);
    return v && *v ? v : NULL;
}

static fz_status choose(const rest *r, kind *k, kind *delegate, fz_error *err) {
    const char *type = filled(r, "rest.auth.type"), *under = filled(r, "rest.auth.sigv4.delegate-auth-type");
    *k = type ? kind_named(type) : filled(r, "credential") || filled(r, "token") ? KIND_OAUTH2 : KIND_NONE;
    if (rest_option_bool(r, "rest.sigv4-enabled", false)) *k = KIND_SIGV4;
    *delegate = under ? kind_named(under) : KIND_OAUTH2;
    if (*k == KIND_BAD) {
        fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': unknown 'rest.auth.type' '%s'", r->name, type);
        return fz_hint(err, "there are none, basic, oauth2 and sigv4");
    }
    if (*k == KIND_SIGV4 && (*delegate == KIND_BAD || *delegate == KIND_SIGV4))
        return fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': 'rest.auth.sigv4.delegate-auth-type' cannot be '%s'", r->name, under);
    if (*k != KIND_SIGV4) *delegate = *k;
    return FZ_OK;
}

static bool base64url(const char *s, size_t n, fz_buf *out) {
    uint32_t acc = 0, bits = 0;
    for (size_t i = 0; i < n && s[i] != '='; i++) {
        char ch = s[i];
        uint32_t v;
        if (ch >= 'A' && ch <= 'Z') v = (uint32_t)(ch - 'A');
        else if (ch >= 'a' && ch <= 'z') v = (uint32_t)(ch - 'a') + 26;
        else if (ch >= '0' && ch <= '9') v = (uint32_t)(ch - '0') + 52;
        else if (ch == '-' || ch == '+') v = 62;
        else if (ch == '_' || ch == '/') v = 63;
        else return false;
        acc = acc << 6 | v;
        if ((bits += 6) >= 8) fz_buf_putc(out, (char)(acc >> (bits -= 8)));
    }
    return true;
}

/* The claim exp of a JWT, in ms; 0: it is none, or has none. */
static int64_t jwt_end_ms(const char *token) {
    const char *a = strchr(token, '.'), *b = a ? strchr(a + 1, '.') : NULL;
    if (!b || strchr(b + 1, '.')) return 0;
    fz_buf text = {0};
    json_t *o = base64url(a + 1, (size_t)(b - a - 1), &text) && text.len ? json_loadb((const char *)text.data, text.len, 0, NULL) : NULL;
    double exp = json_number_value(json_object_get(o, "exp"));
    json_decref(o);
    fz_buf_free(&text);
    return exp > 0 && exp < 1e11 ? (int64_t)(exp * 1000) : 0;
}

static void set_token(rest_auth *au, const char *token, const char *type, int64_t now, int64_t expires_ms) {
    fz_free(au->token);
    fz_free(au->token_type);
    au->token = fz_strdup(token);
    au->token_type = fz_strdup(type ? type : ACCESS_TOKEN_TYPE);
    au->since_ms = now;
    au->expires_ms = expires_ms;
    au->next_refresh_ms = 0;
    au->mark++;
}

static void init_oauth2(const rest *r, rest_auth *au) {
    au->bearer = true;
    const char *credential = filled(r, "credential"), *server = filled(r, "oauth2-server-uri"), *colon = credential ? strchr(credential, ':') : NULL;
    if (credential) {
        fz_sv id = colon ? fz_sv_trim((fz_sv){credential, (size_t)(colon - credential)}) : (fz_sv){0}, secret = fz_sv_trim(fz_sv_of(colon ? colon + 1 : credential));
        if (colon) au->client_id = fz_arena_strndup(r->arena, id.p, id.n);
        au->secret = fz_arena_strndup(r->arena, secret.p, secret.n);
    }
    if (!server) server = "v1/oauth/tokens";
    bool whole = fz_starts(server, "http://") || fz_starts(server, "https://");
    au->server = whole ? server : fz_arena_printf(r->arena, "%s/%s", r->base, server + (server[0] == '/'));
    au->given_token = filled(r, "token");
    au->scope = rest_option(r, "scope") ? rest_option(r, "scope") : "catalog";
    au->audience = filled(r, "audience");
    au->resource = filled(r, "resource");
    au->refresh = rest_option_bool(r, "token-refresh-enabled", true);
    au->exchange = rest_option_bool(r, "token-exchange-enabled", true);
    if (!au->secret && au->given_token) {
        int64_t now = fz_now_ms(), end = jwt_end_ms(au->given_token), life = rest_option_i64(r, "token-expires-in-ms", 0);
        set_token(au, au->given_token, NULL, now, end ? end : life > 0 ? now + life : 0);
    }
}

static fz_status init_basic(const rest *r, rest_auth *au, fz_error *err) {
    const char *user = rest_option(r, "rest.auth.basic.username");
    au->password = rest_option(r, "rest.auth.basic.password");
    if (!user || !au->password) return fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': 'rest.auth.type' = 'basic' needs rest.auth.basic.username and rest.auth.basic.password", r->name);
    const char *both = fz_arena_printf(r->arena, "%s:%s", user, au->password);
    fz_buf b = {0};
    fz_buf_puts(&b, "Basic ");
    fz_buf_base64(&b, both, strlen(both));
    au->basic = fz_arena_strdup(r->arena, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return FZ_OK;
}

/* "https://s3tables.eu-west-1.amazonaws.com/iceberg", also s3tables-fips, and .api.aws with two stacks: service and region; false: another host. */
static bool aws_host(const rest *r, const char **service, const char **region) {
    net_url u;
    fz_error own;
    if (net_url_parse(r->base, r->arena, &u, &own) != FZ_OK || (!strstr(u.host, ".amazonaws.com") && !fz_ends(u.host, ".api.aws"))) return false;
    size_t n = strcspn(u.host, ".-"), label = strcspn(u.host, ".");
    *service = n == 8 && strncmp(u.host, "s3tables", 8) == 0 ? "s3tables" : n == 4 && strncmp(u.host, "glue", 4) == 0 ? "glue" : NULL;
    *region = fz_arena_strndup(r->arena, u.host + label + 1, strcspn(u.host + label + 1, "."));
    return *service != NULL;
}

static fz_status init_sigv4(const rest *r, rest_auth *au, fz_error *err) {
    const char *key = filled(r, "rest.access-key-id"), *secret = filled(r, "rest.secret-access-key"), *service = NULL, *host_region = NULL;
    bool known = aws_host(r, &service, &host_region);
    au->sign = true;
    FZ_TRY(aws_session_new(r->options, r->n_options, &au->session, err));
    if ((key == NULL) != (secret == NULL)) return fz_fail(err, FZ_USER, "catalog.option", "catalog '%s': rest.access-key-id and rest.secret-access-key go together", r->name);
    if (key) au->provider = aws_provider_static(key, secret, filled(r, "rest.session-token"), "options rest.access-key-id and rest.secret-access-key");
    au->signing_name = filled(r, "rest.signing-name");
    if (!au->signing_name) au->signing_name = known ? service : "execute-api"; /* Java: execute-api whatever the host */
    au->region = filled(r, "rest.signing-region");
    if (!au->region && known) au->region = host_region;
    if (au->region) return FZ_OK;
    const char *region;
    FZ_TRY(aws_session_region(au->session, &region, NULL, err));
    au->region = fz_arena_strdup(r->arena, region);
    return FZ_OK;
}

fz_status rest_auth_new(const rest *r, rest_auth **out, fz_error *err) {
    kind k, delegate;
    FZ_TRY(choose(r, &k, &delegate, err));
    rest_auth *au = FZ_NEW(rest_auth);
    pthread_mutexattr_t recursive; /* an error met while logging in is redacted under the lock */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&au->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    fz_status rc = FZ_OK;
    if (delegate == KIND_BASIC) rc = init_basic(r, au, err);
    else if (delegate == KIND_OAUTH2) init_oauth2(r, au);
    if (rc == FZ_OK && k == KIND_SIGV4) rc = init_sigv4(r, au, err);
    if (rc == FZ_OK) return *out = au, FZ_OK;
    rest_auth_free(au);
    return rc;
}

void rest_auth_free(rest_auth *au) {
    if (!au) return;
    aws_provider_unref(au->provider);
    aws_session_unref(au->session);
    fz_free(au->token);
    fz_free(au->token_type);
    pthread_mutex_destroy(&au->lock);
    fz_free(au);
}

void rest_auth_inherit(rest_auth *au, rest_auth *from) {
    if (!au->bearer || !from->token || (au->given_token && !au->secret)) return;
    set_token(au, from->token, from->token_type, from->since_ms, from->expires_ms);
}

const char *rest_auth_signing_name(const rest_auth *au) { return au && au->sign ? au->signing_name : NULL; }

/* ---- tokens ---- */

static void form_put(fz_buf *b, const char *key, const char *value) {
    if (!value) return;
    if (b->len) fz_buf_putc(b, '&');
    fz_buf_puts(b, key);
    fz_buf_putc(b, '=');
    net_encode(b, value, strlen(value), false);
}

/* Takes a token answer (RFC 6749 5.1). expires_in counts from before the request; a JWT's own claim is the second choice, since it needs equal clocks. */
static fz_status take_token(rest *r, rest_auth *au, const json_t *o, int64_t asked_ms, fz_error *err) {
    const char *token = json_string_value(json_object_get(o, "access_token"));
    const json_t *life = json_object_get(o, "expires_in");
    int64_t s = 0;
    if (!token || !*token || strpbrk(token, "\r\n")) return fz_fail(err, FZ_USER, "catalog.rest-login", "catalog '%s': the token endpoint's answer has no access_token", r->name);
    if (json_is_number(life)) s = (int64_t)json_number_value(life);
    else if (json_is_string(life) && !fz_parse_i64(fz_sv_of(json_string_value(life)), &s)) s = 0;
    set_token(au, token, json_string_value(json_object_get(o, "issued_token_type")), asked_ms, s > 0 && s < 1000000000 ? asked_ms + s * 1000 : jwt_end_ms(token));
    return FZ_OK;
}

static fz_status ask(rest *r, rest_auth *au, const fz_buf *form, const char *bearer, fz_error *err) {
    int64_t now = fz_now_ms();
    json_t *o;
    fz_arena *a = fz_arena_new();
    fz_status rc = rest_post_form(r, au->server, form, bearer ? fz_arena_printf(a, "Bearer %s", bearer) : NULL, &o, err);
    if (rc == FZ_OK) rc = take_token(r, au, o, now, err);
    json_decref(o);
    fz_arena_free(a);
    return rc;
}

/* lock held */
static fz_status login(rest *r, rest_auth *au, fz_error *err) {
    fz_buf form = {0};
    form_put(&form, "grant_type", "client_credentials");
    form_put(&form, "client_id", au->client_id);
    form_put(&form, "client_secret", au->secret);
    form_put(&form, "scope", au->scope);
    form_put(&form, "audience", au->audience);
    form_put(&form, "resource", au->resource);
    fz_status rc = ask(r, au, &form, au->given_token, err);
    explicit_bzero(form.data, form.len);
    fz_buf_free(&form);
    return rc;
}

/* lock held */
static fz_status exchange(rest *r, rest_auth *au, fz_error *err) {
    fz_buf form = {0};
    form_put(&form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    form_put(&form, "scope", au->scope);
    form_put(&form, "subject_token", au->token);
    form_put(&form, "subject_token_type", au->token_type);
    form_put(&form, "audience", au->audience);
    form_put(&form, "resource", au->resource);
    char *old = fz_strdup(au->token);
    fz_status rc = ask(r, au, &form, old, err);
    explicit_bzero(form.data, form.len);
    fz_buf_free(&form);
    fz_free(old);
    return rc;
}

static bool is_due(const rest_auth *au, int64_t now) {
    if (!au->refresh || !au->expires_ms || now < au->next_refresh_ms) return false;
    int64_t window = (au->expires_ms - au->since_ms) / 10;
    return now >= au->expires_ms - (window < MAX_REFRESH_WINDOW_MS ? window : MAX_REFRESH_WINDOW_MS);
}

/* lock held */
static fz_status refresh(rest *r, rest_auth *au, int64_t now, fz_error *err) {
    if (!au->secret && !au->exchange) return FZ_OK;
    fz_status rc = au->secret ? login(r, au, err) : exchange(r, au, err);
    if (rc == FZ_OK) return FZ_OK;
    au->next_refresh_ms = now + RETRY_REFRESH_MS;
    if (au->secret && now >= au->expires_ms) return rc;
    fz_log_error(FZ_LOG_WARN, "catalog.token-refresh", err); /* without a credential the server decides whether the old one is still good */
    return FZ_OK;
}

static fz_status bearer(rest *r, rest_auth *au, fz_arena *a, const char **token, uint64_t *mark, fz_error *err) {
    fz_status rc = FZ_OK;
    int64_t now = fz_now_ms();
    pthread_mutex_lock(&au->lock);
    if (!au->token && au->secret) rc = login(r, au, err);
    else if (au->token && is_due(au, now)) rc = refresh(r, au, now, err);
    *token = rc == FZ_OK && au->token ? fz_arena_strdup(a, au->token) : NULL;
    *mark = au->mark;
    pthread_mutex_unlock(&au->lock);
    return rc;
}

fz_status rest_auth_exchange(rest *r, const char *subject, const char *subject_type, fz_arena *a, const char **token, fz_error *err) {
    rest_auth *au = r->auth;
    const char *actor = NULL;
    uint64_t mark;
    json_t *o = NULL;
    *token = NULL;
    if (!au->bearer) return FZ_OK;
    FZ_TRY(bearer(r, au, a, &actor, &mark, err));
    fz_buf form = {0};
    form_put(&form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    form_put(&form, "scope", au->scope);
    form_put(&form, "subject_token", subject);
    form_put(&form, "subject_token_type", subject_type);
    form_put(&form, "actor_token", actor);
    form_put(&form, "actor_token_type", actor ? ACCESS_TOKEN_TYPE : NULL);
    fz_status rc = rest_post_form(r, au->server, &form, actor ? fz_arena_printf(a, "Bearer %s", actor) : NULL, &o, err);
    const char *got = json_string_value(json_object_get(o, "access_token"));
    if (rc == FZ_OK && (!got || strpbrk(got, "\r\n"))) rc = fz_fail(err, FZ_USER, "catalog.rest-login", "catalog '%s': the token endpoint's answer has no access_token", r->name);
    if (rc == FZ_OK) *token = fz_arena_strdup(a, got);
    json_decref(o);
    explicit_bzero(form.data, form.len);
    fz_buf_free(&form);
    return rc;
}

/* ---- signatures ---- */

static fz_status sign(rest *r, const rest_outgoing *o, fz_arena *a, rest_headers *h, uint64_t *mark, fz_error *err) {
    rest_auth *au = r->auth;
    net_url u;
    aws_credentials c;
    FZ_TRY(net_url_parse(o->url, a, &u, err));
    FZ_TRY(aws_provider_get(au->provider ? au->provider : aws_session_provider(au->session), a, &c, err));
    *mark = c.generation;
    const char *other = rest_header_get(h, "Authorization");
    if (other) { /* as Java's RESTSigV4AuthSession moves it */
        FZ_TRY(rest_header_put(h, "Original-Authorization", other, err));
        FZ_TRY(rest_header_put(h, "Authorization", NULL, err));
    }
    char hash[65];
    aws_sha256_hex(o->n_body ? o->body : "", o->n_body, hash);
    pthread_mutex_lock(&au->lock);
    int64_t now = fz_now_ms() + au->skew_ms;
    pthread_mutex_unlock(&au->lock);
    const char *host = strchr(u.host, ':') ? fz_arena_printf(a, "[%s]", u.host) : u.host, *given = rest_header_get(h, "Host");
    aws_sign_input in = {.service = au->signing_name, .region = au->region, .method = o->method, .host = given ? given : u.port ? fz_arena_printf(a, "%s:%d", host, u.port) : host,
                         .path = u.path[0] ? u.path : "/", .query = u.query, .headers = h->v, .n_headers = h->n, .payload_sha256 = hash, .now_ms = now, .encode_path_twice = true,
                         .content_sha256_header = true};
    net_header more[4];
    size_t n = 0;
    aws_sign(&c, &in, a, more, &n);
    for (size_t i = 0; i < n; i++) FZ_TRY(rest_header_put(h, more[i].name, more[i].value, err));
    return FZ_OK;
}

fz_status rest_auth_add(rest *r, const rest_outgoing *o, fz_arena *a, rest_headers *h, uint64_t *mark, fz_error *err) {
    rest_auth *au = r->auth;
    *mark = 0;
    const char *token = NULL;
    if (au->bearer && !rest_header_get(h, "Authorization")) {
        if (o->table_token) token = o->table_token;
        else FZ_TRY(bearer(r, au, a, &token, mark, err));
        if (token) FZ_TRY(rest_header_put(h, "Authorization", fz_arena_printf(a, "Bearer %s", token), err));
    } else if (au->basic && !rest_header_get(h, "Authorization")) FZ_TRY(rest_header_put(h, "Authorization", au->basic, err));
    return au->sign ? sign(r, o, a, h, mark, err) : FZ_OK;
}

/* ---- refusals ---- */

static bool names_expiry(const rest_answer *a) {
    static const char *const types[] = {"ExpiredToken", "ExpiredTokenException", "InvalidToken", "InvalidClientTokenId", "UnrecognizedClientException", NULL};
    for (size_t i = 0; types[i]; i++)
        if (strcmp(a->type, types[i]) == 0) return true;
    return strstr(a->message, "security token") && (strstr(a->message, "expired") || strstr(a->message, "invalid"));
}

/* The server's clock by its Date header, when it says that ours is the trouble. */
static bool learn_clock(rest_auth *au, const rest_answer *a) {
    static const char *const signs[] = {"RequestTimeTooSkewed", "Signature expired", "Signature not yet current", "RequestExpired", NULL};
    const char *date = net_answer_header(&a->http, "date");
    struct tm tm = {0};
    bool skewed = false;
    for (size_t i = 0; signs[i]; i++) skewed |= strstr(a->message, signs[i]) || strcmp(a->type, signs[i]) == 0;
    if (!skewed || !date || !strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm)) return false;
    int64_t skew = (int64_t)timegm(&tm) * 1000 - a->http.received_ms;
    pthread_mutex_lock(&au->lock);
    bool news = skew - au->skew_ms > 30000 || au->skew_ms - skew > 30000;
    if (news) au->skew_ms = skew;
    pthread_mutex_unlock(&au->lock);
    return news;
}

bool rest_auth_renew(rest *r, const rest_answer *answer, uint64_t mark) {
    rest_auth *au = r->auth;
    int status = answer->http.status;
    if (au->sign && (status == 400 || status == 401 || status == 403)) {
        if (learn_clock(au, answer)) return true;
        if (names_expiry(answer)) return aws_provider_expired(au->provider ? au->provider : aws_session_provider(au->session), mark), au->provider == NULL;
    }
    if (!au->bearer || (status != 401 && status != 419)) return false;
    fz_error err;
    bool again = false;
    pthread_mutex_lock(&au->lock);
    if (au->mark != mark) again = true; /* another thread has logged in since */
    else if (au->secret) {
        fz_free(au->token);
        au->token = NULL;
        again = true;
    } else if (au->token && au->refresh && au->exchange && fz_now_ms() >= au->next_refresh_ms) {
        again = exchange(r, au, &err) == FZ_OK;
        if (!again) {
            au->next_refresh_ms = fz_now_ms() + RETRY_REFRESH_MS;
            fz_log_error(FZ_LOG_WARN, "catalog.token-refresh", &err);
        }
    }
    pthread_mutex_unlock(&au->lock);
    return again;
}

void rest_hide(char *text, const char *secret) {
    size_t n = secret ? strlen(secret) : 0;
    if (n < 4) return;
    for (char *p = text; (p = strstr(p, secret));) {
        memset(p, '*', n);
        p += n;
    }
}

void rest_auth_redact(rest_auth *au, char *text) {
    if (!au) return;
    rest_hide(text, au->secret);
    rest_hide(text, au->given_token);
    rest_hide(text, au->password);
    if (au->basic) rest_hide(text, au->basic + 6);
    pthread_mutex_lock(&au->lock);
    rest_hide(text, au->token);
    pthread_mutex_unlock(&au->lock);
}
