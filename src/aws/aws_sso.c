/* IAM Identity Center (SSO): the login that 'aws sso login' left in the cache is turned into a role's credentials.
 *
 * A login of an [sso-session] that has nearly expired is renewed with its refresh token, and written back for the other tools, as they do.
 *
 * What it does not do: log in. That needs a browser and a person.
 *
 * Source: AWS SDKs and Tools Reference Guide, "IAM Identity Center credential provider"; operations GetRoleCredentials and CreateToken.
 */
#include "aws/aws_cred_int.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, ATTEMPTS = 3, BEFORE_EXPIRY_MS = 5 * 60 * 1000 };

typedef struct sso {
    const aws_settings *settings;
    fz_arena *a;
    const char *profile, *session; /* session NULL: legacy */
    const char *start_url, *region, *account, *role;
    const char *cache;             /* path */
    json_t *token;
    fz_error *err;
} sso;

static fz_status wrong(const sso *x, const char *why) { return fz_fail(x->err, FZ_USER, "aws.credentials", "profile '%s': SSO: %s", x->profile, why); }
static fz_status login(const sso *x, const char *why) {
    wrong(x, why);
    return x->session ? fz_hint(x->err, "run: aws sso login --sso-session %s", x->session) : fz_hint(x->err, "run: aws sso login --profile %s", x->profile);
}
static const char *text(const json_t *o, const char *name) {
    const char *s = json_string_value(json_object_get(o, name));
    return s && *s ? s : NULL;
}

static const char *cache_path(const sso *x) {
    const char *name = x->session ? x->session : x->start_url;
    uint8_t sha[EVP_MAX_MD_SIZE];
    char hex[41];
    unsigned n = 0;
    if (!EVP_Digest(name, strlen(name), sha, &n, EVP_sha1(), NULL) || n != 20) return NULL;
    aws_hex(sha, 20, hex);
    return fz_arena_printf(x->a, "%s/.aws/sso/cache/%s.json", x->settings->home ? x->settings->home : "", hex);
}

static fz_status read_profile(sso *x, const aws_profiles *p) {
    static const char *const keys[] = {"sso_start_url", "sso_region", "sso_account_id", "sso_role_name"};
    const char **to[] = {&x->start_url, &x->region, &x->account, &x->role};
    x->session = aws_profiles_get(p, AWS_SECTION_PROFILE, x->profile, "sso_session");
    if (x->session && !*x->session) x->session = NULL;
    if (x->session && !aws_profiles_has(p, AWS_SECTION_SSO_SESSION, x->session)) return wrong(x, "its sso_session has no section [sso-session ...] in the config file");
    for (size_t i = 0; i < 4; i++) {
        const char *own = aws_profiles_get(p, AWS_SECTION_PROFILE, x->profile, keys[i]), *v = own;
        if (x->session && i < 2) {
            v = aws_profiles_get(p, AWS_SECTION_SSO_SESSION, x->session, keys[i]);
            if (v && own && strcmp(v, own) != 0) return wrong(x, fz_arena_printf(x->a, "the profile's %s is another than its sso_session's", keys[i]));
        }
        if (!v || !*v) return wrong(x, fz_arena_printf(x->a, "%s is missing", keys[i]));
        *to[i] = v;
    }
    FZ_TRY(aws_region_check(x->region, "sso_region", x->err));
    x->cache = cache_path(x);
    return x->cache ? FZ_OK : wrong(x, "SHA-1, which names the cached login, is not available");
}

static fz_status read_cache(sso *x) {
    fz_buf b = {0};
    int e = aws_file_read(x->cache, FZ_MAX_AWS_FILE, &b);
    if (e == ENOENT) return login(x, fz_arena_printf(x->a, "there is no login (no %s)", x->cache));
    if (e) return wrong(x, fz_arena_printf(x->a, "%s: %s", x->cache, strerrordesc_np(e)));
    x->token = json_loadb((const char *)b.data, b.len, 0, NULL);
    aws_buf_wipe(&b);
    if (!x->token || !text(x->token, "accessToken") || !text(x->token, "expiresAt")) return login(x, fz_arena_printf(x->a, "%s is damaged", x->cache));
    return FZ_OK;
}

static fz_status expires(const sso *x, const char *name, int64_t *ms) {
    const char *s = text(x->token, name);
    *ms = 0;
    if (s && fz_ends(s, "UTC")) s = fz_arena_printf(x->a, "%.*sZ", (int)strlen(s) - 3, s); /* older versions of the CLI */
    if (s && !aws_time_parse(s, ms)) return login(x, fz_arena_printf(x->a, "%s is damaged: %s is no time", x->cache, name));
    return FZ_OK;
}

/* Whole or not at all, readable by the owner only. A failure is told, no more: the credentials are good all the same. */
static void write_cache(const sso *x) {
    char *s = json_dumps(x->token, JSON_COMPACT);
    const char *temp = fz_arena_printf(x->a, "%s.frazil-%ld", x->cache, (long)getpid());
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t n = s ? strlen(s) : 0;
    bool ok = fd >= 0 && s && write(fd, s, n) == (ssize_t)n && fsync(fd) == 0;
    if (fd >= 0) ok = close(fd) == 0 && ok;
    if (ok) ok = rename(temp, x->cache) == 0;
    if (!ok) {
        fz_log(FZ_LOG_WARN, "aws.sso-cache", FZ_KV("path", "%s", x->cache), FZ_KV("message", "%s", "the renewed login could not be written"), NULL);
        if (fd >= 0) unlink(temp);
    }
    if (s) explicit_bzero(s, n);
    free(s);
}

static fz_status take_renewed(sso *x, const net_answer *ans) {
    json_t *o = json_loadb((const char *)ans->body.data, ans->body.len, 0, NULL);
    json_t *seconds = json_object_get(o, "expiresIn");
    if (ans->status != 200 || !text(o, "accessToken") || !json_is_integer(seconds)) {
        const char *code, *message;
        aws_json_message(ans, x->a, &code, &message);
        json_decref(o);
        return login(x, fz_arena_printf(x->a, "the login has expired, and cannot be renewed: status %d %s", ans->status, code ? code : ""));
    }
    char when[32];
    int64_t at = fz_now_ms() + json_integer_value(seconds) * 1000;
    time_t t = (time_t)(at / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(x->token, "accessToken", json_string(text(o, "accessToken")));
    json_object_set_new(x->token, "expiresAt", json_string(when));
    if (text(o, "refreshToken")) json_object_set_new(x->token, "refreshToken", json_string(text(o, "refreshToken")));
    json_decref(o);
    write_cache(x);
    return FZ_OK;
}

static fz_status renew(sso *x) {
    const char *url;
    bool custom;
    FZ_TRY(aws_endpoint_of(x->settings, "sso-oidc", x->region, NULL, x->a, &url, &custom, x->err));
    json_t *in = json_pack("{ss ss ss ss}", "clientId", text(x->token, "clientId"), "clientSecret", text(x->token, "clientSecret"), "grantType", "refresh_token", "refreshToken",
                           text(x->token, "refreshToken"));
    char *body = in ? json_dumps(in, JSON_COMPACT) : NULL;
    json_decref(in);
    if (!body) return login(x, "the cached login cannot be renewed");
    net_header h[] = {{"content-type", "application/json"}};
    aws_ask_http rq = {.who = "SSO OIDC", .method = "POST", .url = fz_arena_printf(x->a, "%s/token", url), .headers = h, .n_headers = 1, .body = body,
                       .timeout_ms = TIMEOUT_MS, .attempts = ATTEMPTS};
    net_answer ans = {0};
    fz_status rc = aws_ask_send(x->settings, &rq, &ans, x->err);
    if (rc == FZ_OK) rc = take_renewed(x, &ans);
    aws_buf_wipe(&ans.body);
    net_answer_free(&ans);
    explicit_bzero(body, strlen(body));
    free(body);
    return rc;
}

static fz_status fresh_token(sso *x) {
    int64_t at, registered, now = fz_now_ms();
    FZ_TRY(read_cache(x));
    FZ_TRY(expires(x, "expiresAt", &at));
    FZ_TRY(expires(x, "registrationExpiresAt", &registered));
    if (at > now + BEFORE_EXPIRY_MS) return FZ_OK;
    bool renewable = x->session && text(x->token, "refreshToken") && text(x->token, "clientId") && text(x->token, "clientSecret") && (!registered || registered > now);
    fz_status rc = renewable ? renew(x) : FZ_USER;
    if (rc == FZ_OK || at > now) return FZ_OK; /* good for some minutes yet */
    return renewable ? rc : login(x, "the login has expired");
}

static fz_status role_credentials(sso *x, aws_credentials *out) {
    static const aws_json_names names = {"accessKeyId", "secretAccessKey", "sessionToken", "expiration", NULL};
    const char *url, *code, *message;
    bool custom;
    FZ_TRY(aws_endpoint_of(x->settings, "sso", x->region, NULL, x->a, &url, &custom, x->err));
    fz_buf full = {0};
    fz_buf_printf(&full, "%s/federation/credentials?role_name=", url);
    net_encode(&full, x->role, strlen(x->role), false);
    fz_buf_puts(&full, "&account_id=");
    net_encode(&full, x->account, strlen(x->account), false);
    net_header h[] = {{"x-amz-sso_bearer_token", text(x->token, "accessToken")}, {"accept", "application/json"}};
    aws_ask_http rq = {.who = "SSO", .method = "GET", .url = fz_buf_cstr(&full), .headers = h, .n_headers = 2, .timeout_ms = TIMEOUT_MS, .attempts = ATTEMPTS};
    net_answer ans = {0};
    fz_status rc = aws_ask_send(x->settings, &rq, &ans, x->err);
    if (rc == FZ_OK && ans.status == 401) rc = login(x, "the login is no longer accepted");
    else if (rc == FZ_OK && ans.status != 200) {
        aws_json_message(&ans, x->a, &code, &message);
        wrong(x, fz_arena_printf(x->a, "role %s in account %s: status %d: %s", x->role, x->account, ans.status, message ? message : code ? code : "no message"));
        rc = fz_hint(x->err, "are sso_account_id and sso_role_name assigned to whoever logged in?");
    } else if (rc == FZ_OK) {
        json_t *o = json_loadb((const char *)ans.body.data, ans.body.len, 0, NULL);
        char *inner = json_dumps(json_object_get(o, "roleCredentials"), JSON_COMPACT);
        rc = aws_credentials_of_json("SSO", inner ? inner : "", inner ? strlen(inner) : 0, &names, x->a, out, x->err);
        if (inner) explicit_bzero(inner, strlen(inner));
        free(inner);
        json_decref(o);
        out->account = x->account = fz_arena_strdup(x->a, x->account);
        out->source = fz_arena_printf(x->a, "SSO role %s of profile '%s'", x->role, x->profile);
    }
    aws_buf_wipe(&ans.body);
    net_answer_free(&ans);
    fz_buf_free(&full);
    return rc;
}

fz_status aws_sso_credentials(const aws_settings *s, const aws_profiles *p, const char *profile, fz_arena *a, aws_credentials *out, fz_error *err) {
    sso x = {.settings = s, .a = a, .profile = profile, .err = err};
    fz_status rc = read_profile(&x, p);
    if (rc == FZ_OK) rc = fresh_token(&x);
    if (rc == FZ_OK) rc = role_credentials(&x, out);
    json_decref(x.token);
    return rc;
}
