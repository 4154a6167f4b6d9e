/* One call of the S3 Tables API (REST-JSON, signed as s3tables), and what its errors mean here. Source: its API reference. */
#include "catalog/s3tables_int.h"

const char *s3tables_path(const cat_catalog *c, fz_arena *ar, const char *collection, const char *a, const char *b, const char *tail) {
    const s3tables *s = c->impl;
    fz_buf p = {0};
    fz_buf_printf(&p, "/%s/%s", collection, s->arn_segment);
    const char *more[] = {a, b};
    for (unsigned i = 0; i < 2 && more[i]; i++) {
        fz_buf_putc(&p, '/');
        net_encode(&p, more[i], strlen(more[i]), false);
    }
    fz_buf_puts(&p, tail);
    const char *out = fz_arena_strndup(ar, (const char *)p.data, p.len);
    fz_buf_free(&p);
    return out;
}

fz_status s3tables_no_namespace(const cat_catalog *c, const char *name, fz_error *err) {
    return fz_fail(err, FZ_USER, "catalog.namespace-not-found", "the database '%s' does not exist in catalog '%s'", name, c->name);
}

fz_status s3tables_no_bucket(const cat_catalog *c, fz_error *err) {
    fz_fail(err, FZ_USER, "catalog.no-table-bucket", "the table bucket '%s' of catalog '%s' does not exist", ((const s3tables *)c->impl)->arn, c->name);
    return fz_hint(err, "'warehouse' is the ARN of the table bucket; region and account in it must be right");
}

/* Who may not ask for the bucket may ask for what is in it. */
fz_status s3tables_check_bucket(cat_catalog *c, fz_error *err) {
    const char *const ops[][2] = {{"GetTableBucket", "buckets"}, {"ListNamespaces", "namespaces"}};
    fz_status rc = FZ_OK;
    fz_arena *a = fz_arena_new();
    for (int i = 0; i < 2; i++) {
        s3tables_result r;
        fz_error why;
        s3tables_request rq = {.op = ops[i][0], .method = "GET", .path = s3tables_path(c, a, ops[i][1], NULL, NULL, ""), .query = i ? "maxNamespaces=1" : NULL, .about = c->name};
        fz_status st = s3tables_call(c, &rq, NULL, &r, &why);
        if (st != FZ_OK && r.not_found) rc = s3tables_no_bucket(c, err);
        if (st == FZ_OK || rc != FZ_OK) break;
    }
    fz_arena_free(a);
    return rc;
}

/* Credentials that are expired, unknown or wrongly signed are no matter of grants: what the transport says of them stands. */
static bool is_denial(const aws_answer *ans) {
    return ans->http.status == 403 && (fz_starts(ans->error_code, "Forbidden") || fz_starts(ans->error_code, "AccessDenied") || !ans->error_code[0]);
}

static fz_status classify(const cat_catalog *c, const s3tables_request *rq, const aws_answer *ans, fz_error *err) {
    if (is_denial(ans)) {
        pointer_reclass(err, FZ_USER, "catalog.denied");
        return fz_hint(err, "the role needs s3tables:%s on the table bucket and its tables (and s3tables:GetTableData, s3tables:PutTableData for what is in them)", rq->op);
    }
    if (ans->http.status == 404 && strstr(ans->error_message, "ucket")) return s3tables_no_bucket(c, err);
    if (ans->http.status == 409) return pointer_reclass(err, FZ_CONFLICT, "catalog.conflict");
    if (ans->http.status == 400 && fz_starts(ans->error_code, "BadRequest")) return pointer_reclass(err, FZ_USER, "catalog.invalid-input");
    return err->cls;
}

static fz_status parse(const aws_answer *ans, const s3tables_request *rq, json_t **out, fz_error *err) {
    *out = json_loadb((const char *)ans->http.body.data, ans->http.body.len, 0, NULL);
    if (json_is_object(*out)) return FZ_OK;
    json_decref(*out);
    *out = NULL;
    return fz_fail(err, FZ_RETRY, "catalog.answer", "%s: the answer of S3 Tables to %s is no JSON object", rq->about, rq->op);
}

fz_status s3tables_call(cat_catalog *c, const s3tables_request *rq, json_t **out, s3tables_result *r, fz_error *err) {
    const s3tables *s = c->impl;
    const net_header type = {"Content-Type", "application/json"};
    char *text = rq->body ? json_dumps(rq->body, JSON_COMPACT) : NULL;
    aws_answer ans = {0};
    aws_request q = {.service = "s3tables", .region = s->region, .method = rq->method, .endpoint = s->endpoint, .path = rq->path, .query = rq->query, .headers = &type,
                     .n_headers = text ? 1 : 0, .body = {.p = text, .n = text ? strlen(text) : 0, .fd = -1}, .idempotent = !rq->writes};
    json_decref(rq->body);
    *r = (s3tables_result){0};
    if (out) *out = NULL;
    fz_status rc = aws_send(s->session, &q, &ans, err);
    free(text);
    if (rc != FZ_OK) {
        r->not_found = ans.http.status == 404;
        r->conflict = ans.http.status == 409;
        snprintf(r->message, sizeof r->message, "%s", ans.error_message);
        fz_context(err, "%s", rq->about);
        rc = classify(c, rq, &ans, err);
        r->unsure = ans.maybe_applied || rc == FZ_UNKNOWN;
        if (rc == FZ_UNKNOWN && !rq->writes) rc = pointer_reclass(err, FZ_RETRY, err->code);
    } else if (out) rc = parse(&ans, rq, out, err);
    aws_answer_free(&ans);
    return rc;
}
