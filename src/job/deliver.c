/* Deliveries as sinks of a job: opening them, their positions, what one cut carries. The threads are in courier.c. See job_int.h and delivery/delivery.h.
 *
 * Invariants
 *  1. A cut takes everything up to each split's `next`, so the state that goes with it is the `next` of every split.
 *  2. While an intent of an earlier run is made good, each split stops at the intent's end (job_split_state.limit): the lot has the very same ranges, and so the same names and bytes.
 */
#include "job/job_int.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

/* Where a delivery keeps its intents and positions: the checkpoint directory when there is one (on S3 it survives a lost disk), else the local state. */
const char *job_delivery_root(job *j) {
    const conf *c = j->spec->settings;
    const char *dir = conf_get(c, "execution.checkpointing.dir");
    if (!dir || !*dir) dir = fz_arena_printf(j->arena, "%s/deliveries", conf_get(c, "frazil.state.dir"));
    else dir = fio_join(j->arena, dir, "deliveries");
    if (!strstr(dir, "://") && dir[0] != '/' && !fz_starts(dir, "file:")) { /* stores want absolute paths */
        char cwd[4096];
        if (getcwd(cwd, sizeof cwd)) dir = fio_join(j->arena, cwd, dir);
    }
    return dir;
}

static const char *state_dir(job *j, const char *target) { return fio_join(j->arena, job_delivery_root(j), fz_arena_printf(j->arena, "%s/%s", j->spec->name, target)); }

fz_status job_delivery_open(job *j, job_sink *s, const job_insert *in, fz_error *err) {
    FZ_TRY(job_settings_store(j->spec->settings, &s->state_io, err));
    dlv_context cx = {.table = s->text, .pipeline = j->spec->name, .schema = in->schema, .state_dir = state_dir(j, s->text), .state_io = s->state_io,
                      .time_zone = j->spec->sql->time_zone, .memory = j->memory_limit / 16};
    FZ_TRY(dlv_open(in->connector->options, in->connector->n_options, &cx, &s->delivery, err));
    s->courier = job_courier_start(j, s);
    return FZ_OK;
}

void job_delivery_close(job_sink *s) {
    job_courier_end(s->courier);
    dlv_close(s->delivery);
    fio_unref(s->state_io);
    fz_arena_free(s->carried_arena);
}

/* ---- positions ---- */

static int by_key(const void *a, const void *b) { return job_split_key_cmp(&((const job_range *)a)->key, &((const job_range *)b)->key); }

/* [[source, topic, partition, from, to], ...], sorted: the same ranges are the same text. */
static char *ranges_text(fz_arena *a, const job_prepared *p) {
    json_t *all = json_array();
    job_range *v = FZ_ANEWN(a, job_range, p->n_ranges + 1);
    if (p->n_ranges) memcpy(v, p->ranges, p->n_ranges * sizeof *v);
    if (p->n_ranges > 1) qsort(v, p->n_ranges, sizeof *v, by_key);
    for (uint32_t i = 0; i < p->n_ranges; i++)
        json_array_append_new(all, json_pack("[s, s, i, I, I]", v[i].key.source, v[i].key.topic, (int)v[i].key.partition, (json_int_t)v[i].from, (json_int_t)v[i].to));
    char *text = json_dumps(all, JSON_COMPACT), *copy = fz_arena_strdup(a, text);
    free(text); /* jansson's own allocation */
    json_decref(all);
    return copy;
}

static bool is_among(const job_position *v, uint32_t n, const job_split_key *key) { return job_position_find(v, n, key) != NULL; }

/* Where every split stands, and what the delivery has of splits that this run did not find. */
static const char *state_text(const job *j, job_sink *s, fz_arena *a) {
    uint32_t n = 0, own;
    int64_t now = fz_now_ms();
    for (uint32_t k = 0; k < j->n_sources; k++) n += s->splits[k] ? s->n_splits[k] : 0;
    job_position *v = FZ_ANEWN(a, job_position, n + s->n_carried + 1);
    n = 0;
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) {
            job_split_state *st = &s->splits[k][i];
            v[n] = (job_position){st->key, st->next, st->has_last, st->last_offset, st->last_timestamp, st->last_hash, st->gone_ms};
            job_mark_gone(j, s, &v[n], now);
            st->gone_ms = v[n++].gone_ms;
        }
    own = n;
    for (uint32_t i = 0; i < s->n_carried; i++) {
        if (is_among(v, own, &s->carried[i].key)) continue;
        job_mark_gone(j, s, &s->carried[i], now);
        v[n++] = s->carried[i];
    }
    job_adopted *adopted = FZ_ANEWN(a, job_adopted, s->n_adopted_before + s->n_adopted + 1);
    if (s->n_adopted_before) memcpy(adopted, s->adopted_before, s->n_adopted_before * sizeof *adopted);
    return job_mirror_encode(a, &(job_mirror){.n = job_positions_retire(v, n, now), .positions = v, .n_adopted = job_adopted_merge(adopted, s->n_adopted_before, s->adopted, s->n_adopted), .adopted = adopted});
}

void job_delivery_describe(job *j, job_prepared *p) {
    job_sink *s = p->sink;
    p->ranges_text = s->replayable ? ranges_text(p->arena, p) : fz_arena_printf(p->arena, "\"%s/%" PRIu64 "\"", p->commit_id, s->lots);
    s->lots++;
    p->state_text = s->replayable ? state_text(j, s, p->arena) : NULL;
}

static fz_status unreadable_intent(const job_sink *s, fz_error *err) { return fz_fail(err, FZ_FATAL, "delivery.state", "delivery %s: the intent of an earlier run cannot be read", s->text); }

/* One entry of an intent's ranges; false: it is none. */
static bool range_at(const json_t *all, size_t at, job_range *r) {
    const json_t *v = json_array_get(all, at);
    const char *source = json_string_value(json_array_get(v, 0)), *topic = json_string_value(json_array_get(v, 1));
    if (!source || !topic || !json_is_integer(json_array_get(v, 2)) || !json_is_integer(json_array_get(v, 3)) || !json_is_integer(json_array_get(v, 4))) return false;
    *r = (job_range){.key = {source, topic, (int32_t)json_integer_value(json_array_get(v, 2))}, .from = json_integer_value(json_array_get(v, 3)), .to = json_integer_value(json_array_get(v, 4))};
    return true;
}

static job_split_state *split_of(job *j, job_sink *s, const job_split_key *key) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (job_split_key_cmp(&s->splits[k][i].key, key) == 0) return &s->splits[k][i];
    return NULL;
}

static void set_limits(job *j, job_sink *s, bool stand_still) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++) s->splits[k][i].limit = stand_still ? s->splits[k][i].next : INT64_MAX;
}

/* Splits that the intent does not name stand still until it is made good. Can one of its ranges not be read again, it is given up: the delivery sees that by the ranges of its next lot. */
static fz_status take_intent(job *j, job_sink *s, const char *ranges, fz_error *err) {
    json_t *all = json_loads(ranges, 0, NULL);
    bool readable = json_is_array(all), there = true;
    set_limits(j, s, true);
    for (size_t i = 0; readable && i < json_array_size(all); i++) {
        job_range r;
        if (!(readable = range_at(all, i, &r))) break;
        job_split_state *st = split_of(j, s, &r.key);
        there &= st && st->next == r.from;
        if (st && st->next == r.from) st->limit = r.to;
    }
    json_decref(all);
    if (!readable) return unreadable_intent(s, err);
    if (!there) set_limits(j, s, false);
    s->replaying = there;
    fz_log(there ? FZ_LOG_INFO : FZ_LOG_ERROR, "delivery.intent", FZ_KV("delivery", "%s", s->text), FZ_KV("ranges", "%s", ranges),
           FZ_KV("reason", "%s", there ? "an earlier run may have delivered them: they are delivered again under the same names" : "an earlier run may have delivered them, and they cannot be read again: what is left of them may come twice"), NULL);
    return FZ_OK;
}

/* Where an intent begins is where a split stands that no commit has named yet. */
static fz_status add_intent(job_sink *s, fz_arena *a, const char *ranges, job_marks *m, fz_error *err) {
    json_t *all = json_loads(ranges, 0, NULL);
    size_t n = json_array_size(all);
    bool readable = json_is_array(all);
    job_position *v = FZ_ANEWN(a, job_position, m->n_positions + n + 1);
    if (m->n_positions) memcpy(v, m->positions, m->n_positions * sizeof *v);
    m->positions = v;
    for (size_t i = 0; readable && i < n; i++) {
        job_range r;
        if (!(readable = range_at(all, i, &r)) || job_position_find(v, m->n_positions, &r.key)) continue;
        v[m->n_positions++] = (job_position){.key = {fz_arena_strdup(a, r.key.source), fz_arena_strdup(a, r.key.topic), r.key.partition}, .next = r.from};
    }
    json_decref(all);
    return readable ? FZ_OK : unreadable_intent(s, err);
}

static void carry(job_sink *s, const job_marks *m) {
    fz_arena_free(s->carried_arena);
    s->carried_arena = fz_arena_new();
    s->n_carried = m->n_positions;
    s->carried = FZ_ANEWN(s->carried_arena, job_position, m->n_positions + 1);
    for (uint32_t i = 0; i < m->n_positions; i++) {
        s->carried[i] = m->positions[i];
        s->carried[i].key.source = fz_arena_strdup(s->carried_arena, m->positions[i].key.source);
        s->carried[i].key.topic = fz_arena_strdup(s->carried_arena, m->positions[i].key.topic);
    }
    s->n_adopted_before = m->n_adopted;
    s->adopted_before = FZ_ANEWN(s->carried_arena, job_adopted, m->n_adopted + 1);
    for (uint32_t i = 0; i < m->n_adopted; i++) s->adopted_before[i] = (job_adopted){fz_arena_strdup(s->carried_arena, m->adopted[i].pipeline), m->adopted[i].as_of};
}

fz_status job_delivery_read(job *j, job_sink *s, fz_arena *a, job_lineage *l, const char **intent, fz_error *err) {
    const char *state, *ignored;
    (void)j;
    *l = (job_lineage){.whole = true};
    FZ_TRY(dlv_load(s->delivery, a, &state, intent, &ignored, err));
    if (!*state && !**intent) return FZ_OK;
    job_mirror m = {0};
    if (*state) FZ_TRY(job_mirror_decode(a, state, &m, err));
    l->found = true;
    l->marks = (job_marks){.pipeline = j->spec->name, .commit_id = "", .n_positions = m.n, .positions = m.positions, .n_adopted = m.n_adopted, .adopted = m.adopted, .as_of = job_state_hash(state)};
    carry(s, &l->marks);
    return **intent ? add_intent(s, a, *intent, &l->marks, err) : FZ_OK;
}

/* ---- the same place under another name ---- */

bool job_delivery_is_ours(const job *j, const dlv_other *o) {
    for (uint32_t i = 0; strcmp(o->pipeline, j->spec->name) == 0 && i < j->n_sinks; i++)
        if (strcmp(j->sinks[i]->text, o->table) == 0) return true;
    return false;
}

/* Its last lot may be there, and no position says so: taken over, its records could come twice. */
static fz_status check_open_lot(job *j, job_sink *s, const dlv_other *o, fz_error *err) {
    json_t *all = json_loads(o->intent_ranges, 0, NULL);
    bool ours = false;
    job_range r;
    for (size_t i = 0; i < json_array_size(all); i++) ours |= range_at(all, i, &r) && split_of(j, s, &r.key);
    json_decref(all);
    if (!ours || j->positions != POSITIONS_ADOPT) return FZ_OK;
    fz_fail(err, FZ_FATAL, "positions.other-key", "delivery %s: pipeline '%s' has begun a lot for its table '%s' and not ended it: %s", s->text, o->pipeline, o->table, o->intent_ranges);
    return fz_hint(err, "start the pipeline once under its old name, which ends the lot, and stop it; its positions can be taken over then");
}

const char *job_delivery_name(const job *j, const job_sink *s, fz_arena *a) { return fz_arena_printf(a, "%s/%s", j->spec->name, s->text); }

fz_status job_delivery_others(job *j, job_sink *s, fz_arena *a, const job_marks *ours, bool only_heirs, job_marks **out, uint32_t *n, fz_error *err) {
    dlv_other *v;
    uint32_t n_v;
    *n = 0;
    FZ_TRY(dlv_others(s->delivery, job_delivery_root(j), a, &v, &n_v, err));
    *out = FZ_ANEWN(a, job_marks, n_v + 1);
    for (uint32_t i = 0; i < n_v; i++) {
        job_mirror m = {0};
        if (job_delivery_is_ours(j, &v[i])) continue;
        if (*v[i].state) FZ_TRY(job_mirror_decode(a, v[i].state, &m, err));
        const job_adopted *us = job_adopted_find(m.adopted, m.n_adopted, job_delivery_name(j, s, a));
        if (only_heirs && !(us && us->as_of == ours->as_of)) continue;
        job_marks *k = &(*out)[(*n)++];
        *k = (job_marks){.pipeline = *v[i].pipeline ? fz_arena_printf(a, "%s/%s", v[i].pipeline, v[i].table) : v[i].table, .commit_id = "", .n_positions = m.n, .positions = m.positions,
                         .n_adopted = m.n_adopted, .adopted = m.adopted, .as_of = job_state_hash(v[i].state)};
        if (*v[i].intent_ranges) {
            FZ_TRY(check_open_lot(j, s, &v[i], err));
            FZ_TRY(add_intent(s, a, v[i].intent_ranges, k, err));
        }
    }
    return FZ_OK;
}

fz_status job_delivery_limits(job *j, job_sink *s, const char *intent, fz_error *err) {
    s->replaying = false;
    set_limits(j, s, false);
    return *intent ? take_intent(j, s, intent, err) : FZ_OK;
}

bool job_delivery_replayed(const job *j, const job_sink *s) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (__atomic_load_n(&s->splits[k][i].next, __ATOMIC_ACQUIRE) < s->splits[k][i].limit) return false;
    return true;
}
