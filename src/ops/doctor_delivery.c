/* Deliveries: an archive's places, a log group and its stream; and metrics to CloudWatch. Each by its own options, on the ground that catalogs stand on too.
 *
 * Invariants
 *  1. Nothing is made and nothing is kept: an event and a data point of the year 1970 are sent, which their services refuse to keep, after they have looked at the right to send them.
 *  2. A right that cannot be tried without an effect (CreateLogGroup, CreateLogStream) is named, and is no failure.
 * Source: CloudWatch Logs and CloudWatch API references, PutLogEvents (events older than 14 days), PutMetricData (data points older than two weeks).
 */
#include "delivery/delivery.h"
#include "job/job.h"
#include "job/records.h"
#include "ops/doctor_int.h"
#include <inttypes.h>
#include <stdlib.h>

static const char *opt(const sql_table *t, const char *key) { return fz_pair_get(t->options, t->n_options, key); }
static bool is_true(const char *v) { return v && fz_ieq(v, "true"); }

/* ---- objects ---- */

static void place_steps(doctor *d, const sql_table *t, doc_catalog *store, const dlv_place *p) {
    bool errors = strcmp(p->option, "error.path") == 0;
    const char *subject = errors ? fz_arena_printf(d->a, "%s, error.path", t->path) : t->path;
    if (!fio_local_path(p->location) && !store->need) doc_store_ground(d, store, t->path, t->options, t->n_options);
    doc_archive_probe(d, store->io, p->location, subject, errors, store->need ? store->store : NULL);
}

static void object_steps(doctor *d, const sql_table *t) {
    dlv_place v[DLV_MAX_PLACES];
    uint32_t n;
    fz_error e = {0};
    doc_catalog store = {0};
    if (dlv_places(t->options, t->n_options, d->a, v, &n, &e) != FZ_OK || fio_new(t->options, t->n_options, &store.io, &e) != FZ_OK) {
        doc_fail_error(d, doc_begin(d, "doctor.delivery", t->path), &e);
        return;
    }
    for (uint32_t i = 0; i < n; i++) place_steps(d, t, &store, &v[i]);
    if (store.need) doc_staging(d, t->options, t->n_options);
    fio_unref(store.io);
}

/* ---- CloudWatch Logs ---- */

typedef struct logs_look {
    doctor *d;
    aws_session *aws;
    const char *url, *group, *stream;
    bool makes;                  /* auto-create */
    doc_step *of_group, *of_stream, *put;
} logs_look;

static fz_status logs_call(const logs_look *l, const char *operation, json_t *in, json_t **out, aws_answer *ans, fz_error *err) {
    const char *target = fz_arena_printf(l->d->a, "Logs_20140328.%s", operation);
    *ans = (aws_answer){0};
    *out = NULL;
    fz_status rc = aws_json_call(l->aws, "logs", l->url, target, in, true, out, ans, err);
    json_decref(in);
    return rc;
}

/* Is there one of exactly this name among those with this prefix? FZ_OK and *there; else it may not be asked. */
static fz_status described(const logs_look *l, bool stream, bool *there, fz_error *err) {
    json_t *in = stream ? json_pack("{s:s, s:s}", "logGroupName", l->group, "logStreamNamePrefix", l->stream) : json_pack("{s:s}", "logGroupNamePrefix", l->group), *out, *v;
    aws_answer ans;
    size_t i;
    fz_status rc = logs_call(l, stream ? "DescribeLogStreams" : "DescribeLogGroups", in, &out, &ans, err);
    *there = false;
    json_array_foreach(json_object_get(out, stream ? "logStreams" : "logGroups"), i, v) { /* sorted: the very name comes before longer ones */
        const char *name = json_string_value(json_object_get(v, stream ? "logStreamName" : "logGroupName"));
        *there |= name && strcmp(name, stream ? l->stream : l->group) == 0;
    }
    if (rc != FZ_OK && strcmp(ans.error_code, "ResourceNotFoundException") == 0) rc = FZ_OK;
    json_decref(out);
    aws_answer_free(&ans);
    return rc;
}

static void missing(const logs_look *l, bool stream) {
    doctor *d = l->d;
    doc_step *s = stream ? l->of_stream : l->of_group;
    if (l->makes) {
        doc_ok(d, s, "it is not there: the job makes it (with logs:%s, a right that is not tried)", stream ? "CreateLogStream" : "CreateLogGroup");
        return;
    }
    if (stream) doc_fail(d, s, "there is no log stream '%s' in log group '%s'", l->stream, l->group);
    else doc_fail(d, s, "there is no log group '%s'", l->group);
    doc_advise(d, s, stream ? "aws logs create-log-stream --log-group-name '%s' --log-stream-name '%s', or 'auto-create' = 'true' in the table" : "aws logs create-log-group --log-group-name '%s', or 'auto-create' = 'true' in the table",
               l->group, l->stream);
}

static void describe_step(const logs_look *l, bool stream, const doc_step *on) {
    doctor *d = l->d;
    doc_step *s = stream ? l->of_stream : l->of_group;
    bool there;
    fz_error e = {0};
    if (stream) doc_asked(d, s, "logs DescribeLogStreams %s, %s", l->group, l->stream);
    else doc_asked(d, s, "logs DescribeLogGroups %s", l->group);
    if (doc_blocked(d, s, on)) return;
    if (described(l, stream, &there, &e) != FZ_OK) {
        if (!doc_blame_credentials(d, s, &e)) doc_ok(d, s, "cannot be looked at, which the job does not need: %s", doc_error_text(d, &e));
    } else if (there) doc_ok(d, s, "it is there");
    else missing(l, stream);
}

/* What was not to be looked at is said by the answer to a put. */
static void not_there(const logs_look *l, const aws_answer *ans, const fz_error *e) {
    doctor *d = l->d;
    bool stream = strstr(ans->error_message, "stream") != NULL;
    doc_step *s = stream ? l->of_stream : l->of_group;
    if (l->makes) {
        doc_ok(d, l->put, "allowed (of a %s that is not there yet)", stream ? "stream" : "group");
        return;
    }
    if (doc_good(s)) {
        doc_ok(d, s, "%s", doc_error_text(d, e));
        missing(l, stream);
    }
    if (!stream) (void)doc_blocked(d, l->of_stream, l->of_group);
    (void)doc_blocked(d, l->put, s);
}

static void put_step(const logs_look *l, const doc_step *on) {
    doctor *d = l->d;
    doc_step *s = l->put;
    json_t *out;
    aws_answer ans;
    fz_error e = {0};
    doc_asked(d, s, "logs PutLogEvents of an event of 1970 to %s, %s: what is so old is looked at and not kept", l->group, l->stream);
    if (doc_blocked(d, s, on)) return;
    fz_status rc = logs_call(l, "PutLogEvents", json_pack("{s:s, s:s, s:[{s:i, s:s}]}", "logGroupName", l->group, "logStreamName", l->stream, "logEvents", "timestamp", 1, "message", "frazil doctor"), &out, &ans, &e);
    json_decref(out);
    if (rc == FZ_OK) doc_ok(d, s, "allowed");
    else if (strcmp(ans.error_code, "ResourceNotFoundException") == 0) not_there(l, &ans, &e);
    else if (!doc_blame_credentials(d, s, &e)) {
        doc_fail_error(d, s, &e);
        if (strcmp(e.code, "aws.denied") == 0)
            doc_advise(d, s, "allow logs:PutLogEvents%s on arn:aws:logs:REGION:ACCOUNT:log-group:%s:log-stream:%s to the identity of doctor.identity: the refusal (403) says nothing of whether they exist", l->makes ? ", logs:CreateLogStream and logs:CreateLogGroup" : "",
                       l->group, l->stream);
        else doc_advise(d, s, "as the answer says; the job would try for 'retry.duration' and then give rows up");
    }
    aws_answer_free(&ans);
}

static void logs_steps(doctor *d, const sql_table *t) {
    const char *region = opt(t, "region");
    fz_pair *o = FZ_ANEWN(d->a, fz_pair, t->n_options + 1);
    size_t n = t->n_options;
    doc_catalog c = {0};
    logs_look l = {.d = d, .group = opt(t, "log-group"), .stream = opt(t, "log-stream"), .makes = is_true(opt(t, "auto-create"))};
    memcpy(o, t->options, n * sizeof *o);
    if (region) o[n++] = (fz_pair){.key = "client.region", .value = region};
    doc_service_ground(d, &c, t->path, o, n, "logs", "doctor.endpoint.logs", opt(t, "endpoint"), &l.url);
    l.aws = c.aws;
    l.of_group = doc_begin(d, "doctor.logs.group", t->path);
    describe_step(&l, false, c.ground);
    l.of_stream = doc_begin(d, "doctor.logs.stream", t->path);
    describe_step(&l, true, l.of_group);
    l.put = doc_begin(d, "doctor.logs.put", t->path);
    put_step(&l, l.of_stream);
    fio_unref(c.io);
}

/* ---- all ---- */

static void delivery_steps(doctor *d, const sql_table *t) {
    const char *connector = opt(t, "connector");
    if (strcmp(connector, "cloudwatch-logs") == 0) logs_steps(d, t);
    object_steps(d, t);
    if (strcmp(connector, "print") != 0 && strcmp(connector, "blackhole") != 0) return;
    doc_step *s = doc_begin(d, "doctor.delivery", t->path);
    doc_asked(d, s, "what does connector '%s' need?", connector);
    doc_ok(d, s, "nothing outside the process");
}

/* ---- error locations of tables ---- */

static const char *error_path(const ops_need_insert *in) {
    const char *own = fz_pair_get(in->stmt->hint.options, in->stmt->hint.n, "error.path"), *all = conf_get(in->settings, "frazil.error.path");
    return own ? own : all && *all ? all : NULL;
}
static void error_location(doctor *d, const ops_need_insert *in) {
    const sql_hint *h = &in->stmt->hint;
    const char *table = d->plan->tables[in->table].text, *subject = fz_arena_printf(d->a, "%s, error.path", table), *fixed = dlv_errors_fixed(error_path(in), d->a);
    bool own = false, far = !fio_local_path(fixed);
    doc_catalog store = {0};
    fz_error e = {0};
    dlv_errors *place = NULL;
    doc_step *form = doc_begin(d, "doctor.error-path", subject);
    doc_asked(d, form, "is %s a location that error objects can have?", error_path(in));
    if (dlv_errors_new(error_path(in), in->pipeline, table, &place, &e) != FZ_OK) {
        doc_fail_error(d, form, &e);
        d->error_path = form;
        return;
    }
    dlv_errors_free(place);
    doc_ok(d, form, "yes");
    for (size_t i = 0; i < h->n; i++) own |= !fz_option_find(job_sink_options(), h->options[i].key);
    fz_status rc = own ? fio_new(h->options, h->n, &store.io, &e) : job_settings_store(in->settings, &store.io, &e);
    if (rc != FZ_OK) doc_fail_error(d, doc_begin(d, "doctor.delivery", subject), &e);
    else {
        if (far && own) doc_store_ground(d, &store, subject, h->options, h->n);
        else if (far) doc_settings_ground(d, &store);
        doc_archive_probe(d, store.io, fixed, subject, true, store.need ? store.store : NULL);
    }
    fio_unref(store.io);
}

static void error_locations(doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_inserts; i++) {
        const ops_need_insert *in = &d->plan->inserts[i];
        bool before = false;
        for (uint32_t k = 0; k < i; k++) before |= d->plan->inserts[k].table == in->table && error_path(&d->plan->inserts[k]);
        if (error_path(in) && !before) error_location(d, in);
    }
}

void doc_deliveries(doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_deliveries; i++) {
        bool before = false;
        for (uint32_t k = 0; k < i; k++) before |= strcmp(d->plan->deliveries[k].target->path, d->plan->deliveries[i].target->path) == 0;
        if (!before) delivery_steps(d, d->plan->deliveries[i].target);
    }
    error_locations(d);
}

/* ---- metrics ---- */

static void metrics_put(doctor *d, doc_step *s, aws_session *aws, const char *url, const char *name_space) {
    fz_buf b = {0};
    fz_error e = {0};
    aws_answer ans = {0};
    const char *xml;
    fz_buf_puts(&b, "Action=PutMetricData&Version=2010-08-01&Namespace=");
    net_encode(&b, name_space, strlen(name_space), false);
    fz_buf_puts(&b, "&MetricData.member.1.MetricName=frazil-doctor&MetricData.member.1.Value=0&MetricData.member.1.Unit=Count&MetricData.member.1.Timestamp=1970-01-01T00%3A00%3A01Z");
    fz_status rc = aws_query_call(aws, "monitoring", url, fz_buf_cstr(&b), d->a, &xml, &ans, &e);
    fz_buf_free(&b);
    if (rc == FZ_OK || strstr(ans.error_code, "InvalidParameter") || fz_starts(ans.error_code, "ValidationError")) doc_ok(d, s, "allowed");
    else if (!doc_blame_credentials(d, s, &e)) {
        doc_warn(d, s, "%s", doc_error_text(d, &e));
        doc_ok(d, s, "the job runs, and its metrics do not reach CloudWatch");
        doc_advise(d, s, "allow cloudwatch:PutMetricData (with the condition cloudwatch:namespace = %s if it is to be narrow) to the identity of doctor.identity, or metrics.cloudwatch.enabled = false", name_space);
    }
    aws_answer_free(&ans);
}

void doc_metrics_cloudwatch(doctor *d) {
    const conf *c = d->plan->settings;
    const char *name_space = conf_get(c, "metrics.cloudwatch.namespace"), *url;
    doc_catalog own = {0};
    if (!conf_get_bool(c, "metrics.cloudwatch.enabled") || (!d->plan->n_inserts && !d->plan->n_deliveries)) return;
    doc_service_ground(d, &own, "metrics.cloudwatch", NULL, 0, "monitoring", "doctor.endpoint.monitoring", conf_get(c, "metrics.cloudwatch.endpoint"), &url);
    doc_step *s = doc_begin(d, "doctor.metrics.cloudwatch", name_space);
    doc_asked(d, s, "cloudwatch PutMetricData of a data point of 1970 into namespace '%s': what is so old is looked at and not kept", name_space);
    if (fz_starts(name_space, "AWS/")) {
        doc_fail(d, s, "CloudWatch takes no metrics of others into '%s'", name_space);
        doc_advise(d, s, "namespaces that begin with AWS/ are AWS's own; metrics.cloudwatch.namespace = Firehose keeps the names and dimensions");
    } else if (!doc_blocked(d, s, own.ground)) metrics_put(d, s, own.aws, url, name_space);
    fio_unref(own.io);
}
