/* The calls of CloudWatch Logs (JSON 1.1). Sequence tokens are a thing of the past: none is sent. See logs_int.h. Source: API reference of PutLogEvents, CreateLogGroup, CreateLogStream. */
#include "delivery/logs_int.h"
#include <inttypes.h>

static fz_status call(const logs_place *p, const char *target, const fz_buf *body, aws_answer *ans, fz_error *err) {
    const net_header headers[] = {{"Content-Type", "application/x-amz-json-1.1"}, {"X-Amz-Target", target}};
    /* sent again after a lost answer: events can come twice, which is the guarantee of this delivery */
    aws_request rq = {.service = "logs", .region = p->region, .method = "POST", .endpoint = p->endpoint, .path = "/", .headers = headers, .n_headers = 2,
                      .body = {.p = body->data, .n = body->len, .fd = -1}, .idempotent = true};
    return aws_send(p->aws, &rq, ans, err);
}

static void names(const logs_place *p, bool with_stream, fz_buf *b) {
    fz_buf_puts(b, "{\"logGroupName\":");
    fz_buf_json(b, p->group, strlen(p->group));
    if (!with_stream) return;
    fz_buf_puts(b, ",\"logStreamName\":");
    fz_buf_json(b, p->stream, strlen(p->stream));
}

/* Marks the events of the batch by their numbers in it. */
static void refuse(logs_events *e, uint32_t from, uint32_t to, int64_t first, int64_t end, const char *why) {
    int64_t nth = 0;
    for (uint32_t i = from; i < to; i++) {
        logs_event *v = &e->v[i];
        if (!v->sendable) continue;
        if (nth >= first && nth < end && !v->refused) v->refused = why;
        nth++;
    }
}

/* An end is exclusive by the API's reference; who sends it has refused an event, so that 0 can only be meant the other way. */
static int64_t end_of(const json_t *v) {
    int64_t n = json_integer_value(v);
    return n > 0 ? n : 1;
}

static fz_status read_answer(const aws_answer *ans, logs_events *e, uint32_t from, uint32_t to, fz_error *err) {
    json_t *j = json_loadb(ans->http.body.len ? (const char *)ans->http.body.data : "{}", ans->http.body.len ? ans->http.body.len : 2, 0, NULL);
    if (!json_is_object(j)) {
        json_decref(j);
        return fz_fail(err, FZ_RETRY, "aws.answer", "logs PutLogEvents: the answer is not JSON");
    }
    const json_t *info = json_object_get(j, "rejectedLogEventsInfo"), *v;
    if ((v = json_object_get(info, "expiredLogEventEndIndex"))) refuse(e, from, to, 0, end_of(v), "logs.expired");
    if ((v = json_object_get(info, "tooOldLogEventEndIndex"))) refuse(e, from, to, 0, end_of(v), "logs.too-old");
    if ((v = json_object_get(info, "tooNewLogEventStartIndex"))) refuse(e, from, to, json_integer_value(v), INT64_MAX, "logs.too-new");
    json_decref(j);
    return FZ_OK;
}

fz_status logs_put(const logs_place *p, logs_events *e, uint32_t from, uint32_t to, fz_error *err) {
    fz_buf b = {0};
    uint32_t n = 0;
    names(p, true, &b);
    fz_buf_puts(&b, ",\"logEvents\":[");
    for (uint32_t i = from; i < to; i++) {
        const logs_event *v = &e->v[i];
        if (!v->sendable) continue;
        fz_buf_printf(&b, "%s{\"timestamp\":%" PRId64 ",\"message\":", n++ ? "," : "", v->ms);
        fz_buf_json(&b, (const char *)e->text.data + v->at, v->n);
        fz_buf_putc(&b, '}');
    }
    fz_buf_puts(&b, "]}");
    aws_answer ans = {0};
    fz_status rc = FZ_OK;
    if (n) {
        rc = call(p, "Logs_20140328.PutLogEvents", &b, &ans, err);
        if (rc == FZ_OK) rc = read_answer(&ans, e, from, to, err);
        else if (strcmp(ans.error_code, "ResourceNotFoundException") == 0)
            rc = fz_fail(err, FZ_RETRY, "logs.no-stream", "log group '%s' or its stream '%s' is not there (%s)", p->group, p->stream, ans.error_message);
        aws_answer_free(&ans);
    }
    fz_buf_free(&b);
    return rc;
}

static fz_status create(const logs_place *p, const char *target, bool with_stream, fz_error *err) {
    fz_buf b = {0};
    aws_answer ans = {0};
    names(p, with_stream, &b);
    fz_buf_putc(&b, '}');
    fz_status rc = call(p, target, &b, &ans, err);
    if (rc != FZ_OK && strcmp(ans.error_code, "ResourceAlreadyExistsException") == 0) rc = FZ_OK;
    aws_answer_free(&ans);
    fz_buf_free(&b);
    return rc;
}

/* The group may be there while nobody may make one: then only the stream is missing. */
fz_status logs_create(const logs_place *p, fz_error *err) {
    fz_error of_group;
    fz_status group = create(p, "Logs_20140328.CreateLogGroup", false, &of_group);
    fz_status rc = create(p, "Logs_20140328.CreateLogStream", true, err);
    if (rc == FZ_OK || group == FZ_OK) return rc;
    *err = of_group;
    return group;
}
