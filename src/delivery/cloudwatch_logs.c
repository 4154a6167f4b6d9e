/* cloudwatch-logs: rows as events of a log stream of Amazon CloudWatch Logs.
 *
 * Invariants
 *  1. At least once: the service keeps no key by which a repeat could be known. What a batch has answered is not sent again by this process; a killed process's last lot comes again.
 *  2. A lot that is given up is in an error object first, then in a record of the state directory (diverted/), then behind the positions: in between a kill brings it again.
 *  3. An event that the service does not keep (too old, too new, expired, too long, empty) is not tried again: it goes to error.path, or the log says how many went nowhere, and it counts as rejected.
 * Threads: see delivery.h.
 */
#include "delivery/logs_int.h"
#include <inttypes.h>

#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
static const fz_option options[] = {
    USED("log-group", STRING, NULL, "Name of the log group. Required."),
    USED("log-stream", STRING, NULL, "Name of the log stream. Required."),
    USED("auto-create", BOOL, "false", "Makes group and stream when they are not there."),
    USED("endpoint", STRING, NULL, "URL of another endpoint than AWS's."),
    USED("region", STRING, NULL, "Region, when it is not that of client.region or of the environment."),
    USED("message.column", STRING, NULL, "The column of text whose value is the event's message. Unless set, the row as JSON is."),
    USED("timestamp.column", STRING, NULL, "The column (TIMESTAMP_LTZ, or TIMESTAMP in UTC) whose value is the event's time. Unless set, or where it is NULL: the record's arrival."),
    USED("buffer.size", SIZE, "1MiB", "Events are sent when their messages have so many bytes. A call takes 1 MiB at most: more are several calls."),
    USED("buffer.interval", DURATION, "5s", "Events are sent at the first checkpoint after the first one has waited so long."),
    USED("retry.duration", DURATION, "300 s", "How long the delivery of a buffer is tried before its rows are given up."),
    USED("error.path", STRING, NULL, "Where rows go that are given up or that the service refuses: as for firehose-s3, with the error type cloudwatch-logs-failed; a location. Unless set, refused ones are counted and logged."),
    USED("json.include-nulls", BOOL, "false", "Writes columns that are NULL too; else they are left out."),
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

/* ---- opening ---- */

static fz_status column_of(const fz_pair *o, size_t n, const char *option, const col_schema *schema, bool time, int *out, fz_error *err) {
    const char *name = fz_pair_get(o, n, option);
    *out = -1;
    if (!name) return FZ_OK;
    *out = col_schema_find(schema, name);
    if (*out < 0) return fz_fail(err, FZ_USER, "option.invalid", "option '%s': there is no column '%s'", option, name);
    col_kind k = schema->fields[*out].type->kind;
    if (time ? k == COL_TIMESTAMP || k == COL_TIMESTAMP_LTZ : col_is_text(k)) return FZ_OK;
    return fz_fail(err, FZ_USER, "option.invalid", "option '%s': column '%s' is no %s", option, name, time ? "TIMESTAMP or TIMESTAMP_LTZ" : "text");
}

static fz_status check_name(const fz_pair *o, size_t n, const char *option, const char *illegal, fz_error *err) {
    const char *v = fz_pair_get(o, n, option);
    if (!v) return fz_fail(err, FZ_USER, "option.missing", "connector 'cloudwatch-logs' needs the option '%s'", option);
    size_t len = strlen(v);
    if (len >= 1 && len <= 512 && strcspn(v, illegal) == len) return FZ_OK;
    return fz_fail(err, FZ_USER, "option.invalid", "option '%s': '%s' is no name: 1 to 512 characters, none of '%s'", option, v, illegal);
}

/* What follows from the options alone. */
static fz_status read_options(const fz_pair *o, size_t n, const col_schema *schema, fz_arena *a, logs *x, fz_error *err) {
    static const char not_in_groups[] = " !\"$%&'()*+,:;<=>?@[\\]^`{|}~\t\n";
    const char *size = fz_pair_get(o, n, "buffer.size"), *interval = fz_pair_get(o, n, "buffer.interval"), *path = fz_pair_get(o, n, "error.path");
    int64_t bytes, ms;
    FZ_TRY(check_name(o, n, "log-group", not_in_groups, err));
    FZ_TRY(check_name(o, n, "log-stream", ":*", err));
    FZ_TRY(column_of(o, n, "message.column", schema, false, &x->message, err));
    FZ_TRY(column_of(o, n, "timestamp.column", schema, true, &x->time, err));
    FZ_TRY(fz_parse_size(size ? size : fz_option_find(options, "buffer.size")->dflt, &bytes, err));
    FZ_TRY(fz_parse_duration_ms(interval ? interval : fz_option_find(options, "buffer.interval")->dflt, &ms, err));
    if (bytes < 1 || bytes > (int64_t)64 << 20) return fz_fail(err, FZ_USER, "option.invalid", "option 'buffer.size': '%s' is not between 1 byte and 64 MiB", size);
    x->buffer_size = (uint64_t)bytes;
    x->interval_ns = ms * 1000000;
    if (!path) return FZ_OK;
    const char *rest = arc_split_location(a, path, &x->error_base);
    if (!rest) return fz_fail(err, FZ_USER, "option.invalid", "option 'error.path': '%s' is no location", path);
    return arc_prefix_new(a, rest, true, &x->error_prefix, err);
}

static fz_status logs_check(const fz_pair *o, size_t n, const col_schema *schema, fz_error *err) {
    fz_arena *a = fz_arena_new();
    logs x = {0};
    fz_status rc = read_options(o, n, schema, a, &x, err);
    fz_arena_free(a);
    return rc;
}

static fz_status logs_places(const fz_pair *o, size_t n, fz_arena *a, dlv_place *out, uint32_t *n_out, fz_error *err) {
    (void)err;
    const char *path = fz_pair_get(o, n, "error.path"), *base = "", *rest = path ? arc_split_location(a, path, &base) : NULL;
    if (rest) out[(*n_out)++] = (dlv_place){"error.path", arc_fixed_part(a, base, rest)};
    return FZ_OK;
}

static void logs_destination(const dlv_delivery *d, fz_buf *out) { fz_buf_printf(out, "%s:%s", dlv_option(d, "log-group"), dlv_option(d, "log-stream")); }

static void release(logs *x) {
    if (x->events) logs_free(x->events);
    fz_free(x->events);
    fio_unref(x->io);
    aws_session_unref(x->place.aws);
}

static fz_status logs_open(dlv_delivery *d, fz_error *err) {
    logs *x = FZ_ANEW(d->arena, logs);
    int nulls, create;
    d->impl = x;
    FZ_TRY(read_options(d->options, d->n_options, d->cx.schema, d->arena, x, err));
    FZ_TRY(fz_parse_bool(dlv_option(d, "json.include-nulls"), &nulls, err));
    FZ_TRY(fz_parse_bool(dlv_option(d, "auto-create"), &create, err));
    x->auto_create = create;
    x->encoder = arc_encoder_new(d->arena, d->cx.schema, nulls, false);
    x->space = fz_arena_printf(d->arena, "frazil:%s/%s", d->cx.pipeline, d->cx.table);
    x->log = (arc_log){.dir = d->cx.state_dir, .what = d->cx.table, .io = d->cx.state_io};
    x->place.group = dlv_option(d, "log-group");
    x->place.stream = dlv_option(d, "log-stream");
    x->place.region = dlv_option(d, "region");
    fz_pair *o = FZ_ANEWN(d->arena, fz_pair, d->n_options + 1);
    memcpy(o, d->options, d->n_options * sizeof *o);
    size_t n = d->n_options;
    if (x->place.region) o[n++] = (fz_pair){.key = "client.region", .value = x->place.region}; /* endpoints follow from it too */
    fz_status rc = aws_session_new(o, n, &x->place.aws, err);
    if (rc == FZ_OK) rc = aws_endpoint(x->place.aws, "logs", dlv_option(d, "endpoint"), d->arena, &x->place.endpoint, NULL, err);
    if (rc == FZ_OK && x->error_prefix) rc = fio_new(d->options, d->n_options, &x->io, err);
    if (rc != FZ_OK) release(x);
    return rc;
}
static void logs_close(dlv_delivery *d) { release(d->impl); }

/* ---- gathering ---- */

static void add_row(const logs *x, const dlv_rows *r, uint32_t i, arc_lines *l, int64_t now, fz_buf *line) {
    const col_vec *t = x->time >= 0 ? r->cols[x->time] : NULL, *m = x->message >= 0 ? r->cols[x->message] : NULL;
    int64_t ms = t && !col_is_null(t, i) ? col_i64(t, i) / 1000 : r->time_ms && r->time_ms[i] >= 0 ? r->time_ms[i] : now;
    if (m) {
        fz_sv s = col_is_null(m, i) ? FZ_SV("") : col_sv(m, i);
        logs_add(x->events, ms, s.p, s.n);
        return;
    }
    line->len = 0;
    arc_lines_add(l, i, line);
    logs_add(x->events, ms, line->data, line->len - 1);
}

static fz_status logs_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) {
    (void)err;
    logs *x = d->impl;
    if (!r->n) return FZ_OK;
    if (!x->events) {
        x->events = FZ_NEW(logs_events);
        atomic_store(&x->first_ns, fz_mono_ns());
    }
    fz_buf line = {0};
    int64_t now = fz_now_ms();
    arc_lines *l = x->message < 0 ? arc_lines_begin(x->encoder, r->cols, r->n, r->scratch) : NULL;
    for (uint32_t i = 0; i < r->n; i++) add_row(x, r, i, l, now, &line);
    if (l) arc_lines_end(l);
    fz_buf_free(&line);
    atomic_store(&x->bytes, x->events->text.len + x->events->n);
    return FZ_OK;
}

static bool logs_wants(const dlv_delivery *d) {
    logs *x = d->impl;
    int64_t since = atomic_load(&x->bytes) ? atomic_load(&x->first_ns) : atomic_load(&x->last_ns);
    return atomic_load(&x->bytes) >= x->buffer_size || !since || fz_mono_ns() - since >= x->interval_ns;
}
static bool logs_is_full(const dlv_delivery *d) {
    logs *x = d->impl;
    return atomic_load(&x->bytes) >= x->buffer_size || atomic_load(&x->bytes) > d->cx.memory / 2;
}

static dlv_lot *logs_cut(dlv_delivery *d) {
    logs *x = d->impl;
    if (!x->events) return NULL;
    logs_lot *l = FZ_NEW(logs_lot);
    *l = (logs_lot){.lot = {.ops = &dlv_cloudwatch_logs_ops, .rows = x->events->n, .bytes = x->events->text.len}, .events = x->events};
    logs_prepare(l->events);
    x->events = NULL;
    atomic_store(&x->bytes, 0);
    return &l->lot;
}
static void logs_drop(dlv_delivery *d) {
    logs *x = d->impl;
    if (x->events) logs_free(x->events);
    fz_free(x->events);
    x->events = NULL;
    atomic_store(&x->bytes, 0);
}
static void logs_lot_free(dlv_lot *lot) {
    logs_lot *l = (logs_lot *)lot;
    logs_free(l->events);
    fz_free(l->events);
    fz_free(l);
}

/* ---- what did not go ---- */

static uint32_t count_refused(const logs_lot *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->events->n; i++) n += l->events->v[i].refused != NULL;
    return n;
}

static uint32_t delivered(const logs_lot *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->sent; i++) n += l->events->v[i].refused == NULL;
    return n;
}

static bool is_left(const logs_lot *l, uint32_t i) { return i >= l->sent && !l->events->v[i].refused; }

static uint32_t count_left(const logs_lot *l) {
    uint32_t n = 0;
    for (uint32_t i = l->sent; i < l->events->n; i++) n += is_left(l, i);
    return n;
}

/* Error lines of the events that were not sent, when why says why, else of the refused ones. what: text that no other object has. Returns the location on the heap, NULL after a failure. */
static char *put_errors(dlv_delivery *d, const logs_lot *l, const char *what, const fz_error *why, fz_error *err) {
    logs *x = d->impl;
    fz_buf location = {0}, b = {0}, id = {0};
    char uuid[37];
    fio_writer *w;
    uint64_t size;
    int64_t us = (l->events->n ? l->events->v[0].ms : fz_now_ms()) * 1000;
    fz_buf_printf(&id, "cloudwatch-logs-failed:%s", what);
    arc_uuid5(x->space, fz_buf_cstr(&id), uuid);
    fz_buf_puts(&location, x->error_base);
    arc_prefix_eval(x->error_prefix, us, uuid, "cloudwatch-logs-failed", &location);
    arc_name(&location, "cloudwatch-logs", "1", us, uuid, "");
    fz_status rc = fio_writer_open(x->io, fz_buf_cstr(&location), &w, err);
    bool opened = rc == FZ_OK;
    for (uint32_t i = 0; rc == FZ_OK && i < l->events->n; i++) {
        const logs_event *v = &l->events->v[i];
        if (why ? !is_left(l, i) : !v->refused) continue;
        const arc_failure f = {why ? why->code : v->refused, why ? why->message : "CloudWatch Logs does not keep such an event", d->cx.table, l->attempts, l->last_attempt_ms};
        b.len = 0;
        arc_error_line(&f, (fz_sv){(const char *)l->events->text.data + v->at, v->n}, v->ms, &b);
        rc = fio_writer_append(w, b.data, b.len, err);
    }
    if (rc == FZ_OK) rc = fio_writer_finish(w, &size, err);
    else if (opened) fio_writer_abort(w);
    fz_buf_free(&b);
    fz_buf_free(&id);
    if (rc == FZ_OK) return fz_buf_steal(&location);
    fz_buf_free(&location);
    return NULL;
}

fz_status logs_settle_refused(dlv_delivery *d, logs_lot *l, const char *what, fz_error *err) {
    logs *x = d->impl;
    uint32_t n = count_refused(l);
    if (!n || l->told) return FZ_OK;
    char *location = x->error_prefix ? put_errors(d, l, what, NULL, err) : NULL;
    if (x->error_prefix && !location) return err->cls;
    fz_free(location);
    l->told = true;
    const char *code = NULL;
    for (uint32_t i = 0; !code; i++) code = l->events->v[i].refused;
    l->lot.rejected = n;
    fz_log(FZ_LOG_WARN, "delivery.refused", FZ_KV("delivery", "%s", d->cx.table), FZ_KV("events", "%u", n), FZ_KV("first_code", "%s", code),
           FZ_KV("reason", "%s", x->error_prefix ? "CloudWatch Logs does not keep them: they are in error.path" : "CloudWatch Logs does not keep them, and there is no error.path"), NULL);
    return FZ_OK;
}

/* ---- delivering ---- */

fz_status logs_send_all(logs *x, logs_lot *l, fz_error *err) {
    l->attempts++;
    while (l->sent < l->events->n) {
        uint32_t to = logs_batch_end(l->events, l->sent);
        fz_status rc = logs_put(&x->place, l->events, l->sent, to, err);
        if (rc == FZ_RETRY && x->auto_create && strcmp(err->code, "logs.no-stream") == 0) {
            rc = logs_create(&x->place, err);
            if (rc == FZ_OK) rc = logs_put(&x->place, l->events, l->sent, to, err);
        }
        l->last_attempt_ms = fz_now_ms();
        FZ_TRY(rc);
        l->sent = to;
    }
    return FZ_OK;
}

static fz_status save(dlv_delivery *d, const char *state, fz_error *err) {
    FZ_TRY(dlv_state_save(d, state, err));
    atomic_store(&((logs *)d->impl)->last_ns, fz_mono_ns());
    return FZ_OK;
}

static fz_status logs_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) {
    logs_lot *l = (logs_lot *)(uintptr_t)lot;
    if (l) {
        FZ_TRY(logs_send_all(d->impl, l, err));
        FZ_TRY(logs_settle_refused(d, l, ranges, err));
    }
    return save(d, state, err);
}

/* The record that makes a replay possible: under a number of its own, which the object's name follows from. Retried with the same lot: the same number, unless another process has taken it. */
static fz_status record(dlv_delivery *d, logs_lot *l, const char *ranges, const char *state, const fz_error *why, fz_arena *a, fz_error *err) {
    logs *x = d->impl;
    for (;;) {
        uint64_t *lots;
        uint32_t n;
        arc_record there;
        if (!l->number) {
            FZ_TRY(arc_log_list(&x->log, ARC_DIVERTED, a, &lots, &n, err));
            l->number = n ? lots[n - 1] + 1 : 1;
        }
        char *location = put_errors(d, l, fz_arena_printf(a, "%" PRIu64 ":%s", l->number, ranges), why, err);
        if (!location) return err->cls;
        const arc_record r = {.lot = l->number, .ranges = ranges, .state = state, .object = "", .rows = count_left(l), .diverted = fz_arena_strdup(a, location)};
        fz_free(location);
        FZ_TRY(fz_fault_status("delivery.object", err));
        FZ_TRY(arc_log_put(&x->log, ARC_DIVERTED, &r, a, &there, err));
        l->recorded = strcmp(there.diverted, r.diverted) == 0 && there.rows == r.rows;
        if (l->recorded) return fz_fault_status("delivery.diverted", err);
        l->number = 0;
    }
}

static fz_status logs_divert(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err) {
    logs *x = d->impl;
    logs_lot *l = (logs_lot *)(uintptr_t)lot;
    if (!l || l->sent == l->events->n) return logs_commit(d, lot, ranges, state, err); /* not the service has failed */
    if (!x->error_prefix) return fz_fail(err, FZ_USER, "delivery.no-error-path", "table %s has no 'error.path' for rows that are given up", d->cx.table);
    FZ_TRY(logs_settle_refused(d, l, ranges, err));
    if (!l->recorded) {
        fz_arena *a = fz_arena_new();
        char *location = state ? NULL : put_errors(d, l, fz_arena_printf(a, "left:%s", ranges), why, err);
        fz_status rc = state ? record(d, l, ranges, state, why, a, err) : location ? FZ_OK : err->cls;
        l->recorded = rc == FZ_OK;
        fz_free(location);
        fz_arena_free(a);
        FZ_TRY(rc);
        l->lot.rejected = l->events->n - delivered(l);
        fz_log(FZ_LOG_WARN, "delivery.diverted", FZ_KV("delivery", "%s", d->cx.table), FZ_KV("events", "%u", count_left(l)), FZ_KV("code", "%s", why->code), NULL);
    }
    return save(d, state, err);
}

const dlv_ops dlv_cloudwatch_logs_ops = {
    .name = "cloudwatch-logs",
    .doc = "Events of a log stream of Amazon CloudWatch Logs. At least once: events of the last moments before a kill can come twice. Events that the service does not keep (older than 14 days or the group's retention, more than "
           "2 hours in the future, empty, over 1,048,550 bytes) are rejected: they go to error.path. Credentials, region and endpoints by the options `client.*` of catalogs.",
    .options = options, .of_store = true, .check = logs_check, .places = logs_places, .destination = logs_destination, .open = logs_open, .close = logs_close, .write = logs_write, .wants = logs_wants, .is_full = logs_is_full,
    .cut = logs_cut, .drop = logs_drop, .commit = logs_commit, .divert = logs_divert, .lot_free = logs_lot_free, .replay = logs_replay,
};
