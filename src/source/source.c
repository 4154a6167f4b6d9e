/* Sources: finds the connector that a table names, checks its options, and passes each call on to it.
 *
 * Does not know what any option means; that is the connectors' business.
 *
 * Invariants
 *  1. CONNECTORS is the only list of connectors; docs, completeness tests and src_open read the same rows.
 *  2. No option is dropped silently: it is honoured, named in a warning, left to a format, or an error.
 */
#include "source/source_int.h"
#include <stdatomic.h>

static const src_ops *const CONNECTORS[] = {&src_kafka_ops, &src_filesystem_ops, &src_datagen_ops, &src_otel_demo_ops, &src_forward_ops, &src_otlp_ops, &src_http_ops,
                                             &src_syslog_ops, &src_firehose_ops};
enum { N_CONNECTORS = (int)(sizeof CONNECTORS / sizeof *CONNECTORS), MAX_TEST_CONNECTORS = 4 };

typedef struct test_connector { const char *name; const src_ops *ops; } test_connector;
static test_connector test_connectors[MAX_TEST_CONNECTORS];

void src_register_for_test(const char *name, const src_ops *ops) {
    for (int i = 0; i < MAX_TEST_CONNECTORS; i++)
        if (!test_connectors[i].name || strcmp(test_connectors[i].name, name) == 0) {
            test_connectors[i] = (test_connector){name, ops};
            return;
        }
}

static const src_ops *find_connector(const char *name) {
    for (int i = 0; i < N_CONNECTORS; i++)
        if (strcmp(CONNECTORS[i]->name, name) == 0) return CONNECTORS[i];
    for (int i = 0; i < MAX_TEST_CONNECTORS && test_connectors[i].name; i++)
        if (strcmp(test_connectors[i].name, name) == 0) return test_connectors[i].ops;
    return NULL;
}

const src_connector_info *src_connectors(void) {
    static src_connector_info info[N_CONNECTORS + 1];
    for (int i = 0; i < N_CONNECTORS; i++) info[i] = (src_connector_info){CONNECTORS[i]->name, CONNECTORS[i]->options, CONNECTORS[i]->doc};
    return info;
}

const src_metadata_column *src_metadata_columns(const char *connector) {
    static const src_metadata_column none[] = {{NULL, NULL}};
    const src_ops *ops = find_connector(connector);
    return ops && ops->metadata ? ops->metadata : none;
}

const char *src_default_format(const char *connector) {
    const src_ops *ops = find_connector(connector);
    return ops ? ops->format : NULL;
}

/* --- options --- */

/* "json.x" belongs to the decoder when some format option says 'json'; so do "key.json.x" and "value.json.x". */
static bool belongs_to_format(const char *connector, const char *key, const fz_pair *options, size_t n) {
    static const char *const names[] = {"value.format", "format", "key.format"};
    if (fz_starts(key, "key.")) key += 4;
    else if (fz_starts(key, "value.")) key += 6;
    bool named = fz_pair_get(options, n, names[0]) || fz_pair_get(options, n, names[1]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *format = i == 0 && !named ? src_default_format(connector) : fz_pair_get(options, n, names[i]);
        if (!format) continue;
        size_t len = strlen(format);
        if (len && strncmp(key, format, len) == 0 && key[len] == '.') return true;
    }
    return false;
}

static fz_status check_option(const fz_option *table, const char *connector, const fz_pair *p, fz_error *err) {
    const fz_option *o = fz_option_find(table, p->key);
    if (!o) {
        fz_fail(err, FZ_USER, "option.unknown", "connector '%s' has no option '%s'", connector, p->key);
        const char *nearest = fz_option_nearest(table, p->key);
        if (nearest) fz_hint(err, "did you mean '%s'?", nearest);
        return fz_at(err, p->line, p->column);
    }
    switch (o->state) {
    case FZ_OPT_REFUSED:
        fz_fail(err, FZ_USER, "option.refused", "connector '%s' does not support option '%s'", connector, p->key);
        if (o->why) fz_hint(err, "%s", o->why);
        return fz_at(err, p->line, p->column);
    case FZ_OPT_NO_MEANING:
        fz_log(FZ_LOG_WARN, "option.ignored", FZ_KV("connector", "%s", connector), FZ_KV("option", "%s", p->key),
               FZ_KV("reason", "%s", o->why ? o->why : "it has no meaning here"), NULL);
        return FZ_OK;
    case FZ_OPT_USED: break;
    }
    if (fz_option_check(o, p->value, err) != FZ_OK) return fz_at(err, p->line, p->column);
    return FZ_OK;
}

fz_status src_check_options(const fz_option *table, const char *connector, const fz_pair *options, size_t n, fz_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(options[i].key, "connector") == 0) continue;
        if (!fz_option_find(table, options[i].key) && belongs_to_format(connector, options[i].key, options, n)) continue;
        FZ_TRY(check_option(table, connector, &options[i], err));
    }
    return FZ_OK;
}

/* --- the shared part --- */

void src_base_init(src_source *s, const src_ops *ops, const src_context *cx) {
    s->ops = ops;
    s->cx = *cx;
    s->cx.table = fz_strdup(cx->table ? cx->table : "");
    s->cx.job = fz_strdup(cx->job ? cx->job : "");
    s->cx.state_dir = cx->state_dir ? fz_strdup(cx->state_dir) : NULL;
    s->splits = fz_calloc(SRC_MAX_SPLITS, sizeof *s->splits); /* address space: only pages that are used become memory */
    if (s->cx.readers == 0) s->cx.readers = 1;
    if (s->cx.max_record_size == 0) s->cx.max_record_size = FZ_MAX_RECORD_SIZE;
}

void src_base_free(src_source *s) {
    for (uint32_t i = 0; i < s->n_splits; i++) {
        src_split *p = s->splits[i];
        fz_free((void *)(uintptr_t)p->name);
        fz_free((void *)(uintptr_t)p->topic);
        fz_free(p);
    }
    fz_free(s->splits);
    fz_free(s->identity);
    fz_free((void *)(uintptr_t)s->cx.table);
    fz_free((void *)(uintptr_t)s->cx.job);
    fz_free((void *)(uintptr_t)s->cx.state_dir);
}

src_split *src_add_split(src_source *s, const char *name, const char *topic, int32_t partition) {
    if (s->n_splits == SRC_MAX_SPLITS) return NULL;
    src_split *p = FZ_NEW(src_split);
    p->name = fz_strdup(name);
    p->topic = topic ? fz_strdup(topic) : NULL;
    p->partition = partition;
    p->stop = INT64_MAX;
    s->splits[s->n_splits] = p;
    s->n_splits++; /* after the split can be seen */
    return p;
}

/* --- the outward functions --- */

static fz_status unknown_connector(const char *name, fz_error *err) {
    fz_buf b = {0};
    for (int i = 0; i < N_CONNECTORS; i++) fz_buf_printf(&b, "%s%s", i ? ", " : "", CONNECTORS[i]->name);
    fz_fail(err, FZ_USER, "source.unknown-connector", "there is no source connector '%s'", name);
    fz_hint(err, "connectors that can be read: %s", fz_buf_cstr(&b));
    fz_buf_free(&b);
    return FZ_USER;
}

static fz_status find_checked(const fz_pair *options, size_t n, const char *table, const src_ops **ops, fz_error *err) {
    const char *name = fz_pair_get(options, n, "connector");
    if (!name) return fz_fail(err, FZ_USER, "option.missing", "table %s has no option 'connector'", table);
    *ops = find_connector(name);
    if (!*ops) return unknown_connector(name, err);
    return (*ops)->options ? src_check_options((*ops)->options, name, options, n, err) : FZ_OK;
}

fz_status src_check(const fz_pair *options, size_t n, const char *table, fz_error *err) {
    const src_ops *ops;
    FZ_TRY(find_checked(options, n, table, &ops, err));
    return ops->check ? ops->check(options, n, err) : FZ_OK;
}

bool src_endless(const fz_pair *options, size_t n) {
    const char *name = fz_pair_get(options, n, "connector");
    const src_ops *ops = name ? find_connector(name) : NULL;
    if (!ops) return false;
    return ops->endless ? ops->endless(options, n) : ops->listens != NULL;
}

fz_status src_aws_login(const fz_pair *options, size_t n, fz_arena *a, fz_pair **out, size_t *n_out, bool *wanted, fz_error *err) {
    const char *name = fz_pair_get(options, n, "connector");
    const src_ops *ops = name ? find_connector(name) : NULL;
    *wanted = false;
    *n_out = 0;
    return ops && ops->aws_login ? ops->aws_login(options, n, a, out, n_out, wanted, err) : FZ_OK;
}

fz_status src_open(const fz_pair *options, size_t n, const src_context *cx, src_source **out, fz_error *err) {
    *out = NULL;
    const src_ops *ops;
    FZ_TRY(find_checked(options, n, cx->table, &ops, err));
    FZ_TRY(ops->open(options, n, cx, out, err));
    if (cx->bounded_job && !src_bounded(*out)) {
        src_close(*out);
        *out = NULL;
        fz_fail(err, FZ_USER, "source.unbounded", "table %s never ends, so that a job in batch mode cannot read it", cx->table);
        return fz_hint(err, "give it an end (for Kafka: 'scan.bounded.mode'), or set 'execution.runtime-mode' to 'streaming'");
    }
    return FZ_OK;
}

void src_close(src_source *s) {
    if (s) s->ops->close(s);
}
bool src_replayable(const src_source *s) { return s->ops->replayable; }
bool src_bounded(const src_source *s) {
    if (s->ops->bounded) return s->ops->bounded(s);
    for (uint32_t i = 0; i < s->n_splits; i++)
        if (s->splits[i]->stop == INT64_MAX) return false;
    return true;
}
const char *src_identity(const src_source *s) { return s->identity ? s->identity : s->ops->name; }
uint32_t src_n_splits(const src_source *s) { return s->n_splits; }
const src_split *src_get_split(const src_source *s, uint32_t i) { return i < s->n_splits ? s->splits[i] : NULL; }

fz_status src_discover(src_source *s, uint32_t *added, fz_error *err) {
    *added = 0;
    return s->ops->discover ? s->ops->discover(s, added, err) : FZ_OK;
}

static fz_status no_such_split(uint32_t split, fz_error *err) {
    return fz_fail(err, FZ_FATAL, "source.no-such-split", "split %u does not exist", split);
}

fz_status src_bounds(src_source *s, uint32_t split, int64_t *low, int64_t *high, fz_error *err) {
    if (split >= s->n_splits) return no_such_split(split, err);
    if (s->ops->bounds) FZ_TRY(s->ops->bounds(s, split, err));
    *low = s->splits[split]->low;
    *high = s->splits[split]->high;
    return FZ_OK;
}

fz_status src_probe_before(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err) {
    *out = (src_probe){0};
    if (split >= s->n_splits) return no_such_split(split, err);
    if (!s->ops->probe_before)
        return fz_fail(err, FZ_FATAL, "source.no-positions", "connector '%s' has no positions that could be checked", s->ops->name);
    return s->ops->probe_before(s, split, before, out, err);
}

fz_status src_assign(src_source *s, uint32_t split, int64_t from, fz_error *err) {
    if (split >= s->n_splits) return no_such_split(split, err);
    return s->ops->assign(s, split, from, err);
}
fz_status src_unassign_all(src_source *s, fz_error *err) { return s->ops->unassign_all(s, err); }

fz_status src_poll(src_source *s, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) {
    *out = NULL;
    *done = false;
    if (fz_fault_armed) FZ_TRY(fz_fault_status("source.poll", err));
    return s->ops->poll(s, reader, timeout_ms, out, done, err);
}

fz_status src_report(src_source *s, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err) {
    return s->ops->report ? s->ops->report(s, splits, offsets, n, err) : FZ_OK;
}
fz_status src_report_check(src_source *s, const char **group, fz_error *err) {
    *group = NULL;
    return s->ops->report_check ? s->ops->report_check(s, group, err) : FZ_OK;
}
fz_status src_drain(src_source *s, fz_error *err) {
    if (s->ops->drain) s->ops->drain(s);
    for (uint32_t i = 0; i < src_n_splits(s); i++) {
        int64_t low, high;
        if (s->splits[i]->stop != INT64_MAX) continue;
        FZ_TRY(src_bounds(s, i, &low, &high, err));
        src_set_stop(s->splits[i], high);
    }
    return FZ_OK;
}

void src_metrics(src_source *s, src_metric_fn fn, void *cx) {
    fn(cx, FZ_M_SOURCE_SPLITS, NULL, atomic_load(&s->n_splits));
    if (s->ops->metrics) s->ops->metrics(s, fn, cx);
}
int64_t src_arrival(src_source *s, uint32_t split, int64_t at) { return s->ops->arrival ? s->ops->arrival(s, split, at) : 0; }
const src_doors *src_listens(const src_source *s) { return s->ops->listens && s->cx.look ? s->ops->listens(s) : NULL; }
uint64_t src_behind(src_source *s, uint32_t split, int64_t at) { return s->ops->behind ? s->ops->behind(s, split, at) : 0; }
uint64_t src_lag(src_source *s) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < src_n_splits(s); i++) n += src_behind(s, i, -1);
    return n;
}
bool src_gone(const src_source *s, const char *topic) { return s->ops->gone && s->ops->gone(s, topic); }

/* Lengths go in first, so that ("ab", "c") and ("a", "bc") differ, and a null differs from an empty value. */
uint64_t src_record_hash(const fz_record *r) {
    int32_t head[2] = {r->key_len, r->oversized ? -2 : r->value_len};
    uint64_t part[3] = {fz_hash(head, sizeof head), r->key_len > 0 ? fz_hash(r->key, (size_t)r->key_len) : 0,
                        !r->oversized && r->value_len > 0 ? fz_hash(r->value, (size_t)r->value_len) : 0};
    return fz_hash(part, sizeof part);
}
