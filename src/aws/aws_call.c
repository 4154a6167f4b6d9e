/* Calls of whole operations: JSON services, query services, GetCallerIdentity. See aws.h. */
#include "aws/aws_int.h"
#include <stdlib.h>

fz_status aws_json_call(aws_session *s, const char *service, const char *endpoint, const char *target, const json_t *in, bool idempotent, json_t **out, aws_answer *ans, fz_error *err) {
    if (out) *out = NULL;
    aws_answer own;
    if (!ans) ans = &own;
    char *body = json_dumps(in, JSON_COMPACT);
    const net_header headers[] = {{"Content-Type", "application/x-amz-json-1.1"}, {"X-Amz-Target", target}};
    aws_request rq = {.service = service, .method = "POST", .endpoint = endpoint, .path = "/", .headers = headers, .n_headers = 2,
                      .body = {.p = body ? body : "{}", .n = body ? strlen(body) : 2, .fd = -1}, .idempotent = idempotent};
    fz_status rc = aws_send(s, &rq, ans, err);
    free(body);
    if (rc == FZ_OK && out) {
        json_error_t at;
        *out = ans->http.body.len ? json_loadb((const char *)ans->http.body.data, ans->http.body.len, JSON_ALLOW_NUL, &at) : json_object();
        if (!*out) /* it was done, but what came of it is not known */
            rc = fz_fail(err, idempotent ? FZ_RETRY : FZ_UNKNOWN, "aws.answer", "%s %s: the answer (HTTP %d) is not JSON: %s", service, target, ans->http.status, at.text);
    }
    if (ans == &own) aws_answer_free(&own);
    return rc;
}

fz_status aws_query_call(aws_session *s, const char *service, const char *endpoint, const char *params, fz_arena *a, const char **xml, aws_answer *ans, fz_error *err) {
    aws_answer own;
    if (!ans) ans = &own;
    const net_header headers[] = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    aws_request rq = {.service = service, .method = "POST", .endpoint = endpoint, .path = "/", .headers = headers, .n_headers = 1,
                      .body = {.p = params, .n = strlen(params), .fd = -1}, .idempotent = true};
    fz_status rc = aws_send(s, &rq, ans, err);
    if (rc == FZ_OK) *xml = fz_arena_strndup(a, ans->http.body.len ? (const char *)ans->http.body.data : "", ans->http.body.len);
    if (ans == &own) aws_answer_free(&own);
    return rc;
}

fz_status aws_caller_identity(aws_session *s, fz_arena *a, aws_identity *out, fz_error *err) {
    *out = (aws_identity){0};
    const char *endpoint, *xml;
    FZ_TRY(aws_endpoint(s, "sts", NULL, a, &endpoint, NULL, err));
    FZ_TRY(aws_query_call(s, "sts", endpoint, "Action=GetCallerIdentity&Version=2011-06-15", a, &xml, NULL, err));
    out->account = aws_xml_text(a, xml, "Account");
    out->arn = aws_xml_text(a, xml, "Arn");
    out->user_id = aws_xml_text(a, xml, "UserId");
    if (!out->account || !out->arn) return fz_fail(err, FZ_RETRY, "aws.answer", "sts GetCallerIdentity: the answer has no Account or no Arn");
    return FZ_OK;
}
