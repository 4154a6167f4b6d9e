/* OTLP over HTTP: POST /v1/logs. One handler, in the source's loop.
 *
 *     200  ExportLogsServiceResponse: everything is durable, or all but what it names (partial success)
 *     400  broken: protobuf, JSON, compression    401  no token, or another one    403  sent by a web page to a server that authenticates nobody
 *     404 405                                      413  too large, also when unpacked 415  another Content-Type or Content-Encoding
 *     503  with Retry-After: no room now; nothing was taken, or it is not known what
 *
 * Answers that are no success carry a google.rpc.Status. Every answer has the request's encoding, JSON where that is unknown.
 * Source: opentelemetry-proto docs/specification.md (OTLP/HTTP).
 */
#include "source/otlp_int.h"
#include <stdio.h>

typedef struct waiting { otlp_request q; otlp_source *o; net_http_request *r; bool json; } waiting;

typedef enum { TYPE_PROTOBUF, TYPE_JSON, TYPE_OTHER } media;

static media media_of(const char *v) { /* a Content-Type; NULL: none */
    if (!v) return TYPE_OTHER;
    fz_sv t = fz_sv_trim((fz_sv){v, strcspn(v, ";")});
    if (fz_sv_ieq(t, FZ_SV("application/x-protobuf")) || fz_sv_ieq(t, FZ_SV("application/protobuf"))) return TYPE_PROTOBUF;
    return fz_sv_ieq(t, FZ_SV("application/json")) ? TYPE_JSON : TYPE_OTHER;
}

static void answer(net_http_request *r, int status, bool json, const net_http_field *more, const fz_buf *body) {
    net_http_field f[2] = {{"Content-Type", json ? "application/json" : "application/x-protobuf"}};
    if (more) f[1] = *more;
    net_http_answer(r, status, f, more ? 2 : 1, body->data ? body->data : (const uint8_t *)"", body->len);
}

static void put_status(fz_buf *b, bool json, grpc_code code, const char *message) {
    if (json) {
        fz_buf_printf(b, "{\"code\":%d,\"message\":", code);
        fz_buf_json(b, message, strlen(message));
        fz_buf_putc(b, '}');
    } else otlp_put_status(b, code, message, 0);
}

void otlp_http_too_large(const char *content_type, const char *why, const char **type, fz_buf *body) {
    bool json = media_of(content_type) != TYPE_PROTOBUF;
    *type = json ? "application/json" : "application/x-protobuf";
    put_status(body, json, GRPC_RESOURCE_EXHAUSTED, why);
}

static void answer_error(net_http_request *r, int status, bool json, const net_http_field *more, grpc_code code, const char *message) {
    fz_buf b = {0};
    put_status(&b, json, code, message);
    answer(r, status, json, more, &b);
    fz_buf_free(&b);
}

static void answer_no_room(otlp_source *o, net_http_request *r, bool json, const char *message) {
    char s[16];
    snprintf(s, sizeof s, "%u", o->retry_after_s);
    answer_error(r, 503, json, &(net_http_field){"Retry-After", s}, GRPC_UNAVAILABLE, message);
}

static void answer_taken(net_http_request *r, bool json, const otlp_partial *p) {
    fz_buf b = {0};
    if (!json) otlp_put_response(&b, p);
    else if (!p->refused) fz_buf_puts(&b, "{\"partialSuccess\":{}}");
    else {
        fz_buf_printf(&b, "{\"partialSuccess\":{\"rejectedLogRecords\":\"%llu\",\"errorMessage\":", (unsigned long long)p->refused);
        fz_buf_json(&b, p->why, strlen(p->why));
        fz_buf_puts(&b, "}}");
    }
    answer(r, 200, json, NULL, &b);
    fz_buf_free(&b);
}

static void on_durable(otlp_request *q, bool durable) {
    waiting *w = (waiting *)q;
    if (durable) answer_taken(w->r, w->json, &q->partial);
    else answer_no_room(w->o, w->r, w->json, "the server ends; whether the records are kept is not known");
    fz_free(w);
}

static void on_failed(otlp_request *q, const fz_error *e) {
    waiting *w = (waiting *)q;
    grpc_code code = otlp_code_of(e);
    if (e->cls == FZ_USER) answer_error(w->r, 415, w->json, &(net_http_field){"Accept-Encoding", "gzip, zstd, deflate"}, GRPC_INVALID_ARGUMENT, e->message);
    else if (e->cls != FZ_DATA) answer_no_room(w->o, w->r, w->json, e->message);
    else answer_error(w->r, code == GRPC_RESOURCE_EXHAUSTED ? 413 : 400, w->json, NULL, code, e->message);
    fz_free(w);
}

static void take(otlp_source *o, net_http_request *r, bool json) {
    waiting *w = FZ_NEW(waiting);
    *w = (waiting){.q = {.body = {net_http_header(r, "content-encoding"), r->body, r->n_body, json}, .durable = on_durable, .failed = on_failed}, .o = o, .r = r, .json = json};
    otlp_count(&o->stats.requests_http, 1);
    (void)otlp_take(o, &w->q);
}

void otlp_http_request(void *cx, net_http_request *r) {
    otlp_source *o = cx;
    media type = media_of(net_http_header(r, "content-type"));
    bool json = type != TYPE_PROTOBUF;
    if (strcmp(r->path, "/v1/logs") != 0) answer_error(r, 404, json, NULL, GRPC_NOT_FOUND, "there is nothing at this path; logs are posted to /v1/logs");
    else if (!otlp_authorized(o, net_http_header(r, "authorization"))) answer_error(r, 401, json, &(net_http_field){"WWW-Authenticate", "Bearer"}, GRPC_UNAUTHENTICATED, "a header 'Authorization: Bearer TOKEN' with the right token is wanted");
    else if (o->open_to_all && net_http_header(r, "origin")) { /* any page in a browser on this machine could write else */
        otlp_count(&o->stats.refused_auth, 1);
        answer_error(r, 403, json, NULL, GRPC_PERMISSION_DENIED, "web pages may send only where 'auth' = 'token'");
    } else if (strcmp(r->method, "POST") != 0) answer_error(r, 405, json, &(net_http_field){"Allow", "POST"}, GRPC_UNIMPLEMENTED, "the method is another one than POST");
    else if (type == TYPE_OTHER) answer_error(r, 415, json, NULL, GRPC_INVALID_ARGUMENT, "the Content-Type is neither application/x-protobuf nor application/json");
    else take(o, r, json);
}
