/* Requests to credential services: plain HTTP with a few attempts, and the JSON that they answer with.
 *
 * Invariants
 *  1. No error quotes a body, a header or a query: they hold secrets. Only the fields code and message of an error answer are quoted.
 */
#include "aws/aws_cred_int.h"

static int64_t jitter(int64_t most) {
    uint32_t r;
    fz_random(&r, sizeof r);
    return (int64_t)(r % (uint32_t)(most + 1));
}

static fz_status unavailable(const aws_ask_http *q, int status, const fz_error *why, fz_error *err) {
    if (status) return fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "%s answers with status %d", q->who, status);
    if (strcmp(why->code, "net.timeout") == 0)
        return fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "%s: no answer within %lld ms", q->who, (long long)q->timeout_ms);
    return fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "%s: %s", q->who, why->message);
}

fz_status aws_ask_send(const aws_settings *s, const aws_ask_http *q, net_answer *out, fz_error *err) {
    net_request rq = {.method = q->method, .url = q->url, .headers = q->headers, .n_headers = q->n_headers, .body = {.fd = -1},
                      .tls = s->tls, .proxy = q->no_proxy ? "" : s->proxy, .connect_timeout_ms = q->timeout_ms, .timeout_ms = q->timeout_ms,
                      .max_answer = FZ_MAX_AWS_ANSWER, .repeatable = true};
    if (q->body) rq.body = (net_body){.p = q->body, .n = strlen(q->body), .fd = -1};
    fz_error why = {0};
    for (int i = 0;; i++) {
        fz_status rc = net_exchange(&rq, out, &why);
        if (rc == FZ_USER || rc == FZ_FATAL) {
            fz_fail(err, FZ_USER, "aws.credentials", "%s: %s", q->who, why.message);
            return fz_hint(err, "%s", why.hint);
        }
        if (rc == FZ_OK && out->status < 500 && out->status != 429) return FZ_OK;
        if (i + 1 >= q->attempts) return unavailable(q, rc == FZ_OK ? out->status : 0, &why, err);
        net_answer_free(out);
        aws_sleep(50 + jitter(200ll << (i < 4 ? i : 4)));
    }
}

/* --- JSON --- */

static const char *text(const json_t *o, const char *name) {
    const json_t *v = name ? json_object_get(o, name) : NULL;
    const char *s = v && json_is_string(v) ? json_string_value(v) : NULL;
    return s && *s ? s : NULL;
}

/* Keys and tokens become headers: printable ASCII only. */
static bool proper(const char *s) {
    for (; s && *s; s++)
        if (*s <= ' ' || *s > '~') return false;
    return true;
}

fz_status aws_credentials_check(const char *who, const aws_credentials *c, fz_error *err) {
    if (proper(c->access_key) && proper(c->secret_key) && proper(c->token)) return FZ_OK;
    return fz_fail(err, FZ_USER, "aws.credentials", "%s: a key or token has characters that none may have (blanks, line feeds)", who);
}

fz_status aws_credentials_of_json(const char *who, const char *p, size_t n, const aws_json_names *names, fz_arena *a, aws_credentials *out, fz_error *err) {
    json_error_t where;
    json_t *o = json_loadb(p, n, 0, &where);
    fz_status rc = FZ_OK;
    *out = (aws_credentials){0};
    if (!o || !json_is_object(o)) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s gave something that is not JSON", who);
    const char *need[] = {names->access_key, names->secret_key, names->token, names->account, names->expires}, *got[5] = {0};
    for (size_t i = 0; i < 5 && rc == FZ_OK; i++) {
        const char *s = text(o, need[i]);
        if (s) got[i] = fz_arena_strdup(a, s);
        else if (i < 2) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s gave no %s", who, need[i]);
    }
    *out = (aws_credentials){.access_key = got[0], .secret_key = got[1], .token = got[2], .account = got[3]};
    const json_t *expires = names->expires && o ? json_object_get(o, names->expires) : NULL;
    if (rc == FZ_OK && json_is_integer(expires)) out->expires_ms = json_integer_value(expires);
    else if (rc == FZ_OK && got[4] && !aws_time_parse(got[4], &out->expires_ms)) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s: %s is no time", who, names->expires);
    json_decref(o);
    return rc == FZ_OK ? aws_credentials_check(who, out, err) : rc;
}

bool aws_json_message(const net_answer *ans, fz_arena *a, const char **code, const char **message) {
    static const char *const codes[] = {"code", "Code", "error", "__type"}, *const messages[] = {"message", "Message", "error_description"};
    *code = *message = NULL;
    json_t *o = json_loadb((const char *)ans->body.data, ans->body.len, 0, NULL);
    for (size_t i = 0; o && i < 4 && !*code; i++)
        if (text(o, codes[i])) *code = fz_arena_printf(a, "%.80s", text(o, codes[i]));
    for (size_t i = 0; o && i < 3 && !*message; i++)
        if (text(o, messages[i])) *message = fz_arena_printf(a, "%.300s", text(o, messages[i]));
    json_decref(o);
    return *code || *message;
}
