/* The outward calls of deliveries: options, then the connector's own functions. See delivery.h. */
#include "delivery/delivery_int.h"
#include <stdio.h>

static const dlv_ops *const connectors[] = {&dlv_firehose_s3_ops, &dlv_cloudwatch_logs_ops, &dlv_print_ops, &dlv_blackhole_ops};
#define N_CONNECTORS (sizeof connectors / sizeof *connectors)

static const dlv_ops *find(const char *name) {
    for (size_t i = 0; name && i < N_CONNECTORS; i++)
        if (strcmp(connectors[i]->name, name) == 0) return connectors[i];
    return NULL;
}
bool dlv_is_connector(const char *name) { return find(name) != NULL; }

const dlv_connector_info *dlv_connectors(void) {
    static dlv_connector_info v[N_CONNECTORS + 1];
    for (size_t i = 0; i < N_CONNECTORS; i++) v[i] = (dlv_connector_info){connectors[i]->name, connectors[i]->options, connectors[i]->doc};
    return v;
}

static const fz_option *option_of(const dlv_ops *ops, const char *key) {
    const fz_option *o = fz_option_find(ops->options, key);
    if (!o && ops->of_store) o = fz_option_find(fio_options(), key);
    return o || !ops->of_store ? o : fz_option_find(aws_options(), key);
}
static const char *nearest(const dlv_ops *ops, const char *key) {
    const char *name = fz_option_nearest(ops->options, key);
    if (!name && ops->of_store) name = fz_option_nearest(fio_options(), key);
    return name || !ops->of_store ? name : fz_option_nearest(aws_options(), key);
}

static fz_status check_one(const dlv_ops *ops, const fz_pair *p, const char *table, fz_error *err) {
    if (strcmp(p->key, "connector") == 0) return FZ_OK;
    const fz_option *o = option_of(ops, p->key);
    if (!o) {
        fz_fail(err, FZ_USER, "option.unknown", "table %s: connector '%s' has no option '%s'", table, ops->name, p->key);
        const char *near = nearest(ops, p->key);
        if (near) (void)!fz_hint(err, "did you mean '%s'?", near);
        return fz_at(err, p->line, p->column);
    }
    if (o->state == FZ_OPT_REFUSED) {
        fz_fail(err, FZ_USER, "option.refused", "table %s: option '%s' cannot be honoured: %s", table, p->key, o->why);
        return fz_at(err, p->line, p->column);
    }
    if (fz_option_check(o, p->value, err) == FZ_OK) return FZ_OK;
    (void)!fz_context(err, "table %s", table);
    return fz_at(err, p->line, p->column);
}

fz_status dlv_check(const fz_pair *o, size_t n, const char *table, const col_schema *schema, fz_error *err) {
    const dlv_ops *ops = find(fz_pair_get(o, n, "connector"));
    if (!ops) return fz_fail(err, FZ_USER, "delivery.unknown-connector", "table %s: there is no connector that can be written to by this name", table);
    for (size_t i = 0; i < n; i++) FZ_TRY(check_one(ops, &o[i], table, err));
    return ops->check ? ops->check(o, n, schema, err) : FZ_OK;
}

fz_status dlv_places(const fz_pair *o, size_t n, fz_arena *a, dlv_place out[DLV_MAX_PLACES], uint32_t *n_out, fz_error *err) {
    const dlv_ops *ops = find(fz_pair_get(o, n, "connector"));
    *n_out = 0;
    return ops && ops->places ? ops->places(o, n, a, out, n_out, err) : FZ_OK;
}

const char *dlv_option(const dlv_delivery *d, const char *key) {
    const char *v = fz_pair_get(d->options, d->n_options, key);
    const fz_option *o = v ? NULL : fz_option_find(d->ops->options, key);
    return v ? v : o ? o->dflt : NULL;
}

fz_status dlv_open(const fz_pair *o, size_t n, const dlv_context *cx, dlv_delivery **out, fz_error *err) {
    FZ_TRY(dlv_check(o, n, cx->table, cx->schema, err));
    fz_arena *a = fz_arena_new();
    dlv_delivery *d = FZ_ANEW(a, dlv_delivery);
    fz_pair *copy = FZ_ANEWN(a, fz_pair, n);
    for (size_t i = 0; i < n; i++) copy[i] = (fz_pair){fz_arena_strdup(a, o[i].key), fz_arena_strdup(a, o[i].value), o[i].line, o[i].column};
    *d = (dlv_delivery){.ops = find(fz_pair_get(o, n, "connector")), .arena = a, .cx = *cx, .options = copy, .n_options = n};
    d->cx.table = fz_arena_strdup(a, cx->table);
    d->cx.pipeline = fz_arena_strdup(a, cx->pipeline);
    d->cx.state_dir = fz_arena_strdup(a, cx->state_dir);
    d->cx.time_zone = fz_arena_strdup(a, cx->time_zone ? cx->time_zone : "UTC");
    const char *retry = dlv_option(d, "retry.duration");
    fz_status rc = retry ? fz_parse_duration_ms(retry, &d->retry_ms, err) : FZ_OK;
    if (rc == FZ_OK) rc = d->ops->open(d, err);
    if (rc == FZ_OK) return *out = d, FZ_OK;
    fz_arena_free(a);
    return rc;
}

void dlv_close(dlv_delivery *d) {
    if (!d) return;
    d->ops->close(d);
    fz_arena_free(d->arena);
}
const char *dlv_connector(const dlv_delivery *d) { return d->ops->name; }

fz_status dlv_load(dlv_delivery *d, fz_arena *a, const char **state, const char **ranges, const char **intent_state, fz_error *err) {
    *state = *ranges = *intent_state = "";
    return d->ops->load ? d->ops->load(d, a, state, ranges, intent_state, err) : dlv_state_load(d, a, state, err);
}
fz_status dlv_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) { return d->ops->write(d, r, err); }
bool dlv_wants(const dlv_delivery *d) { return !d->ops->wants || d->ops->wants(d); }
bool dlv_is_full(const dlv_delivery *d) { return d->ops->is_full && d->ops->is_full(d); }
dlv_lot *dlv_cut(dlv_delivery *d) { return d->ops->cut(d); }
void dlv_drop(dlv_delivery *d) { d->ops->drop(d); }
fz_status dlv_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) {
    if (state) FZ_TRY(dlv_name_itself(d, err));
    return d->ops->commit(d, lot, ranges, state, err);
}
fz_status dlv_divert(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err) {
    if (d->ops->divert && state) FZ_TRY(dlv_name_itself(d, err));
    if (d->ops->divert) return d->ops->divert(d, lot, ranges, state, why, err);
    return fz_fail(err, FZ_USER, "delivery.no-error-path", "table %s: connector '%s' has no place for rows that are given up", d->cx.table, d->ops->name);
}
fz_status dlv_replay(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err) { return d->ops->replay ? d->ops->replay(d, prefix, fn, cx, err) : FZ_OK; }
void dlv_lot_free(dlv_lot *lot) {
    if (lot) lot->ops->lot_free(lot);
}
uint64_t dlv_lot_rows(const dlv_lot *lot) { return lot ? lot->rows : 0; }
uint64_t dlv_lot_rejected(const dlv_lot *lot) { return lot ? lot->rejected : 0; }
uint64_t dlv_lot_bytes(const dlv_lot *lot) { return lot ? lot->bytes : 0; }
int64_t dlv_retry_ms(const dlv_delivery *d) { return d->retry_ms ? d->retry_ms : 300000; }
