/* Sources and sinks at their start, and the positions of splits: rules 2, 5, 6 and 7 of the commit protocol in ARCHITECTURE.md. See job_int.h. */
#include "job/job_int.h"
#include "job/seen.h"
#include <inttypes.h>

/* ---- waiting for peers that are away: visibly, with back-off, until told to stop ---- */
static bool wait_visibly(const job *j, const char *event, const fz_error *err, int64_t *wait_ms) {
    if (j->look) return false;
    fz_error line = *err;
    if (!line.detail[0]) (void)!fz_detail(&line, "trying again in %lld ms", (long long)*wait_ms);
    fz_log_error(FZ_LOG_WARN, event, &line);
    for (int64_t done = 0; done < *wait_ms; done += 100) {
        if (job_stop_requested()) return false;
        fz_sleep_ms(100);
    }
    if (*wait_ms < 30000) *wait_ms *= 2;
    return !job_stop_requested();
}

/* ---- positions of one sink ---- */
typedef struct job_table { /* what the table says */
    job_lineage l;
    uint32_t n_others;
    job_marks *others;       /* other pipelines */
    const char *own;         /* our name among the others */
    int64_t as_of;           /* tables: sequence number of what was loaded */
    const char *intent;      /* deliveries: ranges that an earlier run may have delivered */
    bool ignore;             /* frazil.positions = ignore still counts: this run has not committed to the table */
} job_table;

static bool topic_known(const job_lineage *l, const job_split_key *key) {
    if (!l->found) return false;
    for (uint32_t i = 0; i < l->marks.n_positions; i++)
        if (strcmp(l->marks.positions[i].key.source, key->source) == 0 && strcmp(l->marks.positions[i].key.topic, key->topic) == 0) return true;
    return false;
}
/* Does s read the split of that very key from another of its sources (the same topic of two clusters, say)? */
static bool read_elsewhere(const job *j, const job_sink *s, const job_split_key *key) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++)
            if (job_split_key_cmp(&s->splits[k][i].key, key) == 0) return true;
    return false;
}
/* A spool's incarnation names one log for ever: a position under another one is of a log that has no record in common with this one, so that nothing could be read twice. What was only in a
 * spool that is lost is lost with it, and the table cannot tell; an operator who has moved the state directory wants to know. */
static bool other_spool(const job_sink *s, const job_position *p, const job_split_key *key) {
    if (!fz_starts(key->source, "spool:") || !fz_starts(p->key.source, "spool:") || strcmp(p->key.source, key->source) == 0) return false;
    fz_log(FZ_LOG_WARN, "positions.other-spool", FZ_KV("table", "%s", s->text), FZ_KV("before", "%s", p->key.source), FZ_KV("position", "%" PRId64, p->next), FZ_KV("now", "%s", key->source),
           FZ_KV("reason", "%s", "the table was written from another spool: records that are only there do not come from this one"), NULL);
    return true;
}
/* A position of the same topic and partition under another source. */
static const job_position *other_source(const job *j, const job_sink *s, const job_marks *m, const job_split_key *key) {
    for (uint32_t i = 0; i < m->n_positions; i++)
        if (strcmp(m->positions[i].key.topic, key->topic) == 0 && m->positions[i].key.partition == key->partition && !read_elsewhere(j, s, &m->positions[i].key) && !other_spool(s, &m->positions[i], key)) return &m->positions[i];
    return NULL;
}
/* A position of the same topic and partition under another pipeline. */
static const job_position *other_pipeline(const job_table *t, const job_split_key *key, const char **who) {
    for (uint32_t k = 0; k < t->n_others; k++)
        for (uint32_t i = 0; i < t->others[k].n_positions; i++) {
            const job_position *p = &t->others[k].positions[i];
            if (strcmp(p->key.topic, key->topic) != 0 || p->key.partition != key->partition) continue;
            if (fz_starts(key->source, "spool:") && strcmp(p->key.source, key->source) != 0) continue; /* another pipeline has its own spool */
            *who = t->others[k].pipeline;
            return p;
        }
    return NULL;
}

/* A delivery's positions are filed under names alone: one of the very same split that went to the same place under another name; the furthest. */
static const job_position *other_delivery(const job_table *t, const job_split_key *key, const char **who) {
    const job_position *best = NULL;
    for (uint32_t k = 0; k < t->n_others; k++) {
        const job_position *p = job_position_find(t->others[k].positions, t->others[k].n_positions, key);
        if (!p || (best && best->next >= p->next)) continue;
        best = p;
        *who = t->others[k].pipeline;
    }
    return best;
}
static fz_status refuse_other_delivery(const job *j, const job_sink *s, const src_split *sp, const job_split_state *st, const char *who, const job_position *p, fz_error *err) {
    fz_arena *a = fz_arena_new();
    fz_fail(err, FZ_FATAL, "positions.other-key", "delivery %s: %s/%d went to the same place (%s) under another name: '%s', not '%s/%s'", s->text, st->key.topic, st->key.partition, dlv_destination(s->delivery, a), who,
            j->spec->name, s->text);
    fz_arena_free(a);
    fz_detail(err, "that position is %" PRId64 ", the log has %" PRId64 " to %" PRId64 "; going on under the present name would deliver what lies before the position again", p->next, sp->low, sp->high);
    return fz_hint(err, "restore the name, or set frazil.positions = adopt (go on from that position) or ignore (read from where the script says)");
}
/* Our next commits say whose positions we have taken over and as of when, so that a start under that name finds out. */
static void adopt(job *j, job_sink *s, const job_table *t, const char *who) {
    job_adopted one = {.pipeline = who, .as_of = t->as_of};
    for (uint32_t i = 0; s->delivery && i < t->n_others; i++)
        if (strcmp(t->others[i].pipeline, who) == 0) one.as_of = t->others[i].as_of;
    const job_adopted *had = job_adopted_find(s->adopted, s->n_adopted, who);
    if (had && had->as_of == one.as_of) return;
    one.pipeline = fz_arena_strdup(j->arena, who);
    job_adopted *v = FZ_ANEWN(j->arena, job_adopted, s->n_adopted + 1);
    if (s->n_adopted) memcpy(v, s->adopted, s->n_adopted * sizeof *v);
    s->n_adopted = job_adopted_merge(v, s->n_adopted, &one, 1);
    s->adopted = v;
}

/* ---- pipelines that have taken ours over ---- */

/* It names us as we stand: what we commit after that is ours again. */
static bool is_heir(const job_table *t, const job_sink *s, const job_marks *o) {
    const job_adopted *x = job_adopted_find(o->adopted, o->n_adopted, t->own);
    return x && (s->delivery ? x->as_of == t->l.marks.as_of : x->as_of >= t->l.marks.as_of);
}
/* The furthest position of the split among pipelines that have taken ours over, if it lies behind p (ours; NULL: none). */
static const job_position *heir_position(const job_table *t, const job_sink *s, const job_split_key *key, const job_position *p, const char **who) {
    const job_position *best = NULL;
    for (uint32_t k = 0; (t->l.found || t->l.unproven) && k < t->n_others; k++) {
        const job_position *x = is_heir(t, s, &t->others[k]) ? job_position_find(t->others[k].positions, t->others[k].n_positions, key) : NULL;
        if (!x || (p && x->next <= p->next) || (best && x->next <= best->next)) continue;
        best = x;
        *who = t->others[k].pipeline;
    }
    return best;
}
static fz_status refuse_heir(const job *j, const job_sink *s, const src_split *sp, const job_split_state *st, const char *who, const job_position *heir, const job_position *p, fz_error *err) {
    fz_fail(err, FZ_FATAL, "positions.other-key", "%s %s: pipeline '%s' has taken over the positions of '%s' and has gone on since: %s/%d", s->delivery ? "delivery" : "table", s->text, who, j->spec->name, st->key.topic, st->key.partition);
    if (p) fz_detail(err, "its position is %" PRId64 ", that of '%s' is %" PRId64 ", the log has %" PRId64 " to %" PRId64 "; going on from there would deliver what lies between them again", heir->next, j->spec->name, p->next, sp->low, sp->high);
    else fz_detail(err, "its position is %" PRId64 ", '%s' has none, the log has %" PRId64 " to %" PRId64, heir->next, j->spec->name, sp->low, sp->high);
    return fz_hint(err, "start under the new name, or set frazil.positions = adopt (go on from the position of '%s') or ignore (read from where the script says)", who);
}
/* Two pipelines that both write one log into one table: on purpose, perhaps. */
static void tell_ahead(job_sink *s, const job_table *t, const job_split_key *key, const job_position *p) {
    for (uint32_t k = 0; !s->delivery && !s->ahead_told && k < t->n_others; k++) {
        const job_position *x = job_position_find(t->others[k].positions, t->others[k].n_positions, key);
        if (!x || x->next <= p->next || t->others[k].as_of < t->l.marks.as_of) continue;
        s->ahead_told = true;
        fz_log(FZ_LOG_INFO, "positions.other-ahead", FZ_KV("table", "%s", s->text), FZ_KV("split", "%s/%d", key->topic, key->partition), FZ_KV("pipeline", "%s", t->others[k].pipeline), FZ_KV("its_position", "%" PRId64, x->next),
               FZ_KV("ours", "%" PRId64, p->next), FZ_KV("reason", "%s", "another pipeline writes the same log into this table: rows that both make of a record are in it twice"), NULL);
    }
}
/* What our positions are once those of the heirs are taken over. */
static void overlay_heirs(job *j, const job_sink *s, fz_arena *a, const job_table *t, job_lineage *l) {
    uint32_t n = l->marks.n_positions, room = n;
    for (uint32_t k = 0; k < j->n_sources; k++) room += s->splits[k] ? s->n_splits[k] : 0;
    job_position *v = FZ_ANEWN(a, job_position, room + 1);
    if (n) memcpy(v, l->marks.positions, n * sizeof *v);
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && i < s->n_splits[k]; i++) {
            const char *who;
            const job_split_key *key = &s->splits[k][i].key;
            job_position *p = job_position_find(v, n, key);
            const job_position *heir = heir_position(t, s, key, p, &who);
            if (heir && p) *p = *heir;
            else if (heir) v[n++] = *heir;
        }
    l->marks.positions = v;
    l->marks.n_positions = n;
}
static void tell_adopted(const job_sink *s, const src_split *sp, const char *who, const job_position *p) {
    fz_log(FZ_LOG_WARN, "positions.adopted", FZ_KV("table", "%s", s->text), FZ_KV("split", "%s", sp->name), FZ_KV("of", "%s", who ? who : p->key.source), FZ_KV("position", "%" PRId64, p->next),
           FZ_KV("reason", "%s", "frazil.positions = adopt"), NULL);
}
/* A sink that joins a listening source gets what is still in its spool: an accident of how far whole segments were trimmed. */
static fz_status tell_joining(const job_source *src, uint32_t split, const job_sink *s, job_split_state *st, fz_error *err) {
    int64_t low, high;
    if (!fz_starts(st->key.source, "spool:") || st->tail_told) return FZ_OK;
    FZ_TRY(src_bounds(src->source, split, &low, &high, err));
    st->tail_told = true;
    if (st->next < high)
        fz_log(FZ_LOG_INFO, "positions.spool-tail", FZ_KV("table", "%s", s->text), FZ_KV("source", "%s", src->scan_plan->table->path), FZ_KV("from", "%" PRId64, st->next), FZ_KV("to", "%" PRId64, high),
               FZ_KV("reason", "%s", "it has no position of its own: it gets what the spool still holds, also what other sinks have long had"), NULL);
    return FZ_OK;
}

static fz_status refuse_other(const job_sink *s, const job_split_state *st, const char *what, const char *who, const char *present, const job_position *p, fz_error *err) {
    fz_fail(err, FZ_FATAL, "positions.other-key", "table %s has a position of %s/%d under another %s: '%s', not '%s'", s->text, st->key.topic, st->key.partition, what, who, present);
    fz_detail(err, "that position is %" PRId64 "; going on under the present name would read its records again", p->next);
    return fz_hint(err, "restore the name, or set frazil.positions = adopt (go on from that position) or ignore (read from where the script says)");
}

/* A split in the words of what it is. */
typedef struct split_words { char log[512]; const char *thing, *at, *unit; } split_words;
static split_words words_of(const job_source *src, uint32_t split) {
    const char *source = src_identity(src->source), *connector = source ? source : "";
    const src_split *sp = src_get_split(src->source, split);
    split_words w;
    if (fz_starts(connector, "spool:")) {
        w = (split_words){.thing = "spool", .at = "record", .unit = "records"};
        snprintf(w.log, sizeof w.log, "the spool of table %s", src->scan_plan->table->path);
    } else if (strcmp(connector, "files") == 0) {
        w = (split_words){.thing = "file", .at = "byte", .unit = "bytes"};
        snprintf(w.log, sizeof w.log, "file %s", sp->name);
    } else {
        w = (split_words){.thing = "topic", .at = "offset", .unit = "records"};
        snprintf(w.log, sizeof w.log, "topic %s partition %d", sp->topic ? sp->topic : sp->name, sp->partition);
    }
    return w;
}

/* Rule 7: is the record before the position still the one that was read? */
static fz_status check_last(const job_source *src, uint32_t split, const job_sink *s, const job_position *p, fz_error *err) {
    if (!p->has_last) return FZ_OK;
    src_probe probe;
    FZ_TRY(src_probe_before(src->source, split, p->next, &probe, err));
    if (probe.result == SRC_PROBE_SAME) return FZ_OK;
    /* A record between the last one and the position: when that log was read there was none. */
    if (probe.result == SRC_PROBE_OK && probe.offset >= p->last_offset) {
        if (probe.offset == p->last_offset && probe.timestamp_ms == p->last_timestamp && probe.hash == p->last_hash) return FZ_OK;
        const split_words w = words_of(src, split);
        fz_fail(err, FZ_FATAL, "positions.topic-remade", "%s was made anew: the record at %s %" PRId64 " is not the one that table %s was written from", w.log, w.at, probe.offset, s->text);
        fz_detail(err, "position %" PRId64 ", log %" PRId64 " to %" PRId64 ", timestamp was %" PRId64 " and is %" PRId64, p->next, src_get_split(src->source, split)->low,
                  src_get_split(src->source, split)->high, p->last_timestamp, probe.timestamp_ms);
        return fz_hint(err, "frazil.positions = ignore reads the new %s from where the script says", w.thing);
    }
    fz_log(FZ_LOG_INFO, "positions.last-record-gone", FZ_KV("table", "%s", s->text), FZ_KV("split", "%s", src_get_split(src->source, split)->name),
           FZ_KV("offset", "%" PRId64, p->last_offset), FZ_KV("reason", "%s", "retention or compaction took it: the check is skipped"), NULL);
    return FZ_OK;
}

static fz_status check_log(job *j, const job_source *src, uint32_t split, job_sink *s, job_split_state *st, fz_error *err) {
    int64_t low, high;
    FZ_TRY(src_bounds(src->source, split, &low, &high, err));
    const split_words w = words_of(src, split);
    if (st->next > high) {
        fz_fail(err, FZ_FATAL, "positions.beyond-end", "%s ends at %s %" PRId64 ", but table %s was written from it up to %" PRId64, w.log, w.at, high, s->text, st->next);
        fz_detail(err, "log start %" PRId64 ", log end %" PRId64 ", position %" PRId64, low, high, st->next);
        return fz_hint(err, "the %s was made anew or truncated; frazil.positions = ignore reads it from where the script says", w.thing);
    }
    if (st->next >= low) return FZ_OK;
    if (!j->lost_earliest) {
        fz_fail(err, FZ_FATAL, "positions.offsets-gone", "%s: wanted %s %" PRId64 ", earliest is %" PRId64 ", %" PRId64 " %s are gone unread", w.log, w.at, st->next, low, low - st->next, w.unit);
        fz_detail(err, "log start %" PRId64 ", log end %" PRId64 ", position in table %s", low, high, s->text);
        return fz_hint(err, "frazil.lost-offsets = earliest goes on at the earliest record and counts the loss");
    }
    fz_log(FZ_LOG_ERROR, "positions.offsets-lost", FZ_KV("split", "%s", src_get_split(src->source, split)->name), FZ_KV("wanted", "%" PRId64, st->next), FZ_KV("earliest", "%" PRId64, low),
           FZ_KV("lost", "%" PRId64, low - st->next), NULL);
    fz_metric_add(FZ_M_POSITIONS_LOST, (uint64_t)(low - st->next));
    st->from = st->next = low;
    s->new_chain = true;
    return FZ_OK;
}

/* Reading goes on behind `at`, if the log still has that place and the record before it. */
static fz_status go_on_from(job *j, const job_source *src, uint32_t i, job_sink *s, job_split_state *st, const job_position *at, fz_error *err) {
    st->claim = false;
    st->from = st->next = at->next;
    st->has_last = at->has_last;
    st->last_offset = at->last_offset;
    st->last_timestamp = at->last_timestamp;
    st->last_hash = at->last_hash;
    FZ_TRY(check_log(j, src, i, s, st, err));
    return st->next == at->next ? check_last(src, i, s, at, err) : FZ_OK;
}

/* What of the split was given up, and the table does not know yet: its index in s->pending, UINT32_MAX: nothing. */
static uint32_t pending_of(const job_sink *s, const job_split_key *key) {
    for (uint32_t i = 0; i < s->pending.n_ranges; i++)
        if (job_split_key_cmp(&s->pending.ranges[i].key, key) == 0) return i;
    return UINT32_MAX;
}

/* Where one split begins for one sink. */
static fz_status place_split(job *j, job_source *src, uint32_t i, job_sink *s, const job_table *t, fz_error *err) {
    job_split_state *st = &s->splits[src->index][i];
    const src_split *sp = src_get_split(src->source, i);
    const job_lineage *l = &t->l;
    const job_position *p = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, &st->key) : NULL, *other = NULL;
    const char *who = NULL;
    uint32_t given = t->ignore ? UINT32_MAX : pending_of(s, &st->key);
    const job_position *heir = t->ignore || j->positions == POSITIONS_IGNORE ? NULL : heir_position(t, s, &st->key, p, &who);
    if (heir && j->positions == POSITIONS_CHECK) return refuse_heir(j, s, sp, st, who, heir, p, err);
    if (heir) {
        s->new_chain = true;
        tell_adopted(s, sp, who, heir);
        adopt(j, s, t, who);
    } else if (p && !t->ignore) tell_ahead(s, t, &st->key, p);
    if (!p && !heir && given == UINT32_MAX && !t->ignore && !topic_known(l, &st->key)) { /* a partition that is new in a topic of ours is nobody else's */
        if (l->found && (other = other_source(j, s, &l->marks, &st->key)) && j->positions == POSITIONS_CHECK)
            return refuse_other(s, st, fz_starts(st->key.source, "kafka:") ? "cluster" : "source", other->key.source, st->key.source, other, err);
        if (s->delivery && !other && (other = other_delivery(t, &st->key, &who)) && j->positions == POSITIONS_CHECK) return refuse_other_delivery(j, s, sp, st, who, other, err);
        if (!s->delivery && !other && (other = other_pipeline(t, &st->key, &who)) && j->positions == POSITIONS_CHECK) return refuse_other(s, st, "pipeline", who, j->spec->name, other, err);
    }
    st->known = p != NULL;
    st->remembered = p ? p->next : 0;
    st->read = st->added = st->filtered = st->rejected = st->unparseable = 0;
    st->has_last = false;
    if (given != UINT32_MAX) return go_on_from(j, src, i, s, st, &s->pending.after[given], err);
    if (heir) {
        FZ_TRY(go_on_from(j, src, i, s, st, heir, err));
        st->claim = true;
        return FZ_OK;
    }
    if (!p && other) { /* adopt */
        s->new_chain = true;
        st->claim = true;
        st->from = st->next = other->next;
        tell_adopted(s, sp, who, other);
        if (who) adopt(j, s, t, who);
        return check_log(j, src, i, s, st, err);
    }
    if (p && !t->ignore) return go_on_from(j, src, i, s, st, p, err);
    bool later = sp->found_later || topic_known(l, &st->key);
    int64_t start = later && !t->ignore ? sp->low : sp->start;
    st->claim = !(later || sp->start_is_earliest) || t->ignore;
    st->from = st->next = start;
    if (!p) FZ_TRY(tell_joining(src, i, s, st, err));
    if (p) {
        s->new_chain = true;
        fz_log(FZ_LOG_WARN, "positions.ignored", FZ_KV("table", "%s", s->text), FZ_KV("split", "%s", sp->name), FZ_KV("table_says", "%" PRId64, p->next), FZ_KV("reading_from", "%" PRId64, start),
               FZ_KV("reason", "%s", "frazil.positions = ignore: records before the table's position are added again"), NULL);
    }
    return FZ_OK;
}

static fz_status position_split(job *j, job_source *src, uint32_t i, job_sink *s, const job_table *t, fz_error *err) {
    job_split_state *st = &s->splits[src->index][i];
    FZ_TRY(place_split(j, src, i, s, t, err));
    st->base = st->next;
    st->base_diverted = !t->ignore && pending_of(s, &st->key) != UINT32_MAX;
    return FZ_OK;
}

/* ---- what was given up ---- */

typedef struct given_cx { job *j; job_sink *s; } given_cx;

static bool still_readable(void *cx, const job_split_key *key, int64_t at) {
    given_cx *g = cx;
    fz_error ignored;
    for (uint32_t k = 0; k < g->j->n_sources; k++)
        for (uint32_t i = 0; g->s->splits[k] && g->j->sources[k]->replayable && i < g->s->n_splits[k]; i++) {
            int64_t low, high;
            if (job_split_key_cmp(&g->s->splits[k][i].key, key) == 0) return src_bounds(g->j->sources[k]->source, i, &low, &high, &ignored) != FZ_OK || low <= at;
        }
    return false;
}

static fz_status count_part(void *cx, const job_given *given, const job_split_key *key, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *err) {
    given_cx *g = cx;
    fio *io = fio_ref(job_divert_store(g->s));
    *records = *rows = 0;
    if (!*given->object) return FZ_OK;
    fz_status rc = io ? FZ_OK : job_settings_store(g->j->spec->settings, &io, err);
    if (rc == FZ_OK) rc = job_error_object_count(io, given->object, key, from, to, records, rows, err);
    fio_unref(io);
    return rc;
}

/* A commit whose answer was lost has brought the rows: they were given up for nothing, and nobody will replay them. */
static void was_delivered(void *cx, const job_given *given) {
    given_cx *g = cx;
    fz_log(FZ_LOG_WARN, "divert.landed", FZ_KV("table", "%s", g->s->text), FZ_KV("rows", "%" PRIu64, given->rows), FZ_KV("object", "%s", given->object),
           FZ_KV("reason", "%s", "a commit without an answer had brought these rows: the error object counts for nothing"), NULL);
}

static fz_status resolve_given(job *j, job_sink *s, const job_table *t, fz_error *err) {
    fz_arena_free(s->pending_arena);
    s->pending_arena = NULL;
    s->pending = (job_pending){0};
    s->n_open = t->l.marks.n_diverted;
    if (s->diverts) job_divert_count(s);
    if (!s->diverts || t->ignore) return FZ_OK;
    given_cx g = {j, s};
    const job_resolve with = {&g, still_readable, count_part, was_delivered};
    s->pending_arena = fz_arena_new();
    job_lineage l = t->l;
    if (j->positions == POSITIONS_ADOPT) overlay_heirs(j, s, s->pending_arena, t, &l);
    FZ_TRY(job_diverts_resolve(s->diverts, &l, &with, s->pending_arena, &s->pending, err));
    for (uint32_t i = 0; i < s->pending.n_ranges; i++) { /* a commit compares with our own */
        const job_position *p = t->l.found ? job_position_find(t->l.marks.positions, t->l.marks.n_positions, &s->pending.ranges[i].key) : NULL;
        s->pending.known[i] = p != NULL;
        s->pending.remembered[i] = p ? p->next : 0;
    }
    job_divert_count(s);
    return FZ_OK;
}

/* Is there a log whose positions another name may have? One that was found while the job runs is nobody else's. */
static bool has_unknown_log(const job *j, const job_sink *s, const job_lineage *l) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++)
            if (!src_get_split(j->sources[k]->source, i)->found_later && !topic_known(l, &s->splits[k][i].key)) return true;
    return false;
}

static fz_status read_table(job *j, job_sink *s, fz_arena *a, job_table *out, fz_error *err) {
    job_lineage *l = &out->l;
    cat_table *t = NULL;
    out->intent = "";
    if (s->delivery) {
        out->others = NULL;
        out->n_others = 0;
        out->ignore = j->positions == POSITIONS_IGNORE && !s->committed;
        FZ_TRY(job_delivery_read(j, s, a, l, &out->intent, err));
        out->own = job_delivery_name(j, s, a);
        return out->ignore ? FZ_OK : job_delivery_others(j, s, a, &l->marks, !has_unknown_log(j, s, l), &out->others, &out->n_others, err);
    }
    FZ_TRY(cat_load_table(s->catalog, &s->ident, &t, err));
    const ice_io io = job_io(j, t);
    fz_status rc = s->unseen ? job_away_end(j, s, t, err) : FZ_OK;
    bool kept = s->unseen && rc == FZ_OK; /* it is the sink's now */
    out->own = j->spec->name;
    out->as_of = t->metadata->last_sequence_number;
    if (rc == FZ_OK && s->table->metadata->uuid && t->metadata->uuid && strcmp(s->table->metadata->uuid, t->metadata->uuid) != 0)
        rc = fz_fail(err, FZ_FATAL, "commit.other-table", "table %s was replaced by another of the same name", s->text);
    if (rc == FZ_OK) rc = job_lineage_read(a, t->metadata, j->spec->name, NULL, &io, l, err);
    if (rc == FZ_OK) rc = job_lineage_others(a, t->metadata, j->spec->name, &out->others, &out->n_others, err);
    if (!kept) cat_table_free(t);
    FZ_TRY(rc);
    /* Once a commit of this run stands in the table its positions count, or a sink that begins again would read everything again. */
    out->ignore = j->positions == POSITIONS_IGNORE && !s->committed && !(l->found && fz_starts(l->marks.commit_id, j->run_id));
    if (l->unproven && j->positions == POSITIONS_CHECK) {
        fz_fail(err, FZ_FATAL, "positions.unproven", "table %s: the snapshot that carries this pipeline's positions (%" PRId64 ") is in no lineage that is known", s->text, l->snapshot_id);
        fz_detail(err, "it may have been expired or rolled back; the mirror in the table's properties has positions, but no proof that their rows are in the table");
        return fz_hint(err, "look at `frazil inspect`, then set frazil.positions = adopt to go on from the mirror, or ignore to read from where the script says");
    }
    if (l->unproven && j->positions == POSITIONS_ADOPT) {
        l->found = true;
        s->new_chain = true;
    }
    return FZ_OK;
}

fz_status job_sink_position(job *j, job_sink *s, fz_error *err) {
    if (!s->replayable) return FZ_OK;
    fz_arena *a = fz_arena_new();
    job_table t;
    fz_status rc = read_table(j, s, a, &t, err);
    if (rc == FZ_OK) rc = resolve_given(j, s, &t, err);
    for (uint32_t k = 0; rc == FZ_OK && k < j->n_sources; k++) {
        if (!s->splits[k] || !j->sources[k]->replayable) continue;
        for (uint32_t i = 0; rc == FZ_OK && i < s->n_splits[k]; i++) rc = position_split(j, j->sources[k], i, s, &t, err);
    }
    if (rc == FZ_OK && s->delivery) rc = job_delivery_limits(j, s, t.ignore ? "" : t.intent, err);
    if (rc == FZ_OK) job_note_stands(j, s);
    if (rc == FZ_OK && !s->delivery) {
        s->unseen = false;
        job_away_remember(j, s, &t.l);
    }
    fz_arena_free(a);
    return rc;
}

/* ---- a table that has not been seen ---- */

typedef fz_status (*place_fn)(job *j, job_source *src, uint32_t i, job_sink *s, const job_table *t, fz_error *err);
static fz_status place_each(job *j, job_sink *s, const job_table *t, place_fn fn, fz_error *err) {
    for (uint32_t k = 0; k < j->n_sources; k++)
        for (uint32_t i = 0; s->splits[k] && j->sources[k]->replayable && i < s->n_splits[k]; i++) FZ_TRY(fn(j, j->sources[k], i, s, t, err));
    return FZ_OK;
}
/* Does the log have the place where the split would begin? If not, what to say of that is said when the table is there. */
static fz_status in_log(job *j, job_source *src, uint32_t i, job_sink *s, const job_table *t, fz_error *err) {
    (void)j;
    const job_split_key *key = &s->splits[src->index][i].key;
    const uint32_t given = pending_of(s, key);
    const job_position *p = job_position_find(t->l.marks.positions, t->l.marks.n_positions, key);
    int64_t low, high, at;
    FZ_TRY(src_bounds(src->source, i, &low, &high, err));
    at = given != UINT32_MAX ? s->pending.after[given].next : p ? p->next : low;
    return at >= low && at <= high ? FZ_OK : fz_fail(err, FZ_RETRY, "positions.not-in-log", "the log of %s has %" PRId64 " to %" PRId64 ", not %" PRId64, src_get_split(src->source, i)->name, low, high, at);
}
static fz_status nowhere(job *j, job_source *src, uint32_t i, job_sink *s, const job_table *t, fz_error *err) {
    (void)j, (void)t, (void)err;
    job_split_state *st = &s->splits[src->index][i];
    st->from = st->next = st->base = src_get_split(src->source, i)->start;
    st->known = st->base_diverted = st->claim = st->has_last = false;
    return FZ_OK;
}

/* Its splits stand where the table was last seen, with what was given up behind that: never above the table's own position, so that it is sound to give up from there. Where that cannot be said for each of them
 * (nothing is kept; a log that the table did not know, which another name may have read; a log without that place), nothing is given up before the table is there. */
static void place_unseen(job *j, job_sink *s) {
    fz_arena *a = fz_arena_new();
    fz_error err = {0};
    job_mirror m = {0};
    job_table t = {.intent = "", .own = j->spec->name};
    fz_status rc = j->positions != POSITIONS_IGNORE && job_seen_read(a, conf_get(j->spec->settings, "frazil.state.dir"), j->spec->name, s->text, s->table->metadata->uuid, &m) ? FZ_OK : FZ_RETRY;
    t.l = (job_lineage){.found = m.n > 0, .snapshot_id = m.snapshot_id, .marks = {.n_positions = m.n, .positions = m.positions, .n_diverted = m.n_diverted, .diverted = m.diverted}};
    if (rc == FZ_OK && has_unknown_log(j, s, &t.l)) rc = FZ_RETRY;
    if (rc == FZ_OK) rc = resolve_given(j, s, &t, &err);
    if (rc == FZ_OK) rc = place_each(j, s, &t, in_log, &err);
    if (rc == FZ_OK) rc = place_each(j, s, &t, position_split, &err);
    s->bounded_below = rc == FZ_OK;
    if (rc != FZ_OK) {
        s->pending = (job_pending){0};
        (void)!place_each(j, s, &t, nowhere, &err);
    }
    if (err.cls != FZ_OK) fz_log_error(FZ_LOG_WARN, "positions.last-seen", &err);
    job_note_stands(j, s);
    fz_arena_free(a);
}

/* ---- states of splits ---- */
static void grow_states(job *j, job_source *src, job_sink *s) {
    uint32_t n = src_n_splits(src->source), had = s->n_splits[src->index];
    job_split_state *v = fz_realloc(s->splits[src->index], (n ? n : 1) * sizeof *v);
    memset(v + had, 0, (n - had) * sizeof *v);
    for (uint32_t i = had; i < n; i++) {
        const src_split *sp = src_get_split(src->source, i);
        v[i].key = (job_split_key){fz_arena_strdup(j->arena, src_identity(src->source) ? src_identity(src->source) : ""), fz_arena_strdup(j->arena, sp->topic ? sp->topic : sp->name), sp->partition};
        v[i].from = v[i].next = v[i].base = v[i].tried = sp->start;
        v[i].limit = s->status == SINK_DIVERTING ? sp->start : INT64_MAX;
    }
    s->splits[src->index] = v;
    s->n_splits[src->index] = n;
}

static bool reads_on(const job_sink *s, const job_split_state *st) { return s->status == SINK_RUNNING || (s->status == SINK_DIVERTING && st->next < st->limit); }

fz_status job_source_seek(job *j, job_source *src, fz_error *err) {
    FZ_TRY(src_unassign_all(src->source, err));
    for (uint32_t i = 0; i < src_n_splits(src->source); i++) {
        int64_t from = INT64_MAX;
        for (uint32_t k = 0; k < src->n_sinks; k++)
            if (reads_on(src->sinks[k], &src->sinks[k]->splits[src->index][i]) && src->sinks[k]->splits[src->index][i].next < from) from = src->sinks[k]->splits[src->index][i].next;
        if (from != INT64_MAX) FZ_TRY(src_assign(src->source, i, from, err));
    }
    job_reading_again(j, src);
    return FZ_OK;
}

static fz_status position_new(job *j, job_source *src, job_sink *s, fz_error *err) {
    fz_arena *a = fz_arena_new();
    job_table t;
    grow_states(j, src, s);
    fz_status rc = s->status == SINK_RUNNING ? read_table(j, s, a, &t, err) : FZ_OK; /* others get positions when they begin again */
    for (uint32_t i = src->positioned; rc == FZ_OK && s->status == SINK_RUNNING && i < s->n_splits[src->index]; i++) rc = position_split(j, src, i, s, &t, err);
    if (rc == FZ_OK) job_note_stands(j, s);
    fz_arena_free(a);
    return rc;
}

fz_status job_source_grow(job *j, job_source *src, fz_error *err) {
    for (uint32_t k = 0; k < src->n_sinks; k++) FZ_TRY(position_new(j, src, src->sinks[k], err));
    FZ_TRY(job_source_seek(j, src, err));
    src->positioned = src_n_splits(src->source);
    return FZ_OK;
}

/* ---- opening ---- */
static bool is_step(const sql_plan *p) { return p->kind == SQL_P_FILTER || p->kind == SQL_P_PROJECT; }
static const sql_plan *scan_of(const sql_plan *chain) {
    while (is_step(chain)) chain = chain->inputs[0];
    return chain;
}
bool job_streams(const sql_plan *p) {
    while (is_step(p)) p = p->inputs[0];
    if (p->kind != SQL_P_UNION) return p->kind == SQL_P_SCAN && p->table->kind == SQL_T_CONNECTOR;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!job_streams(p->inputs[i])) return false;
    return true;
}
static uint32_t count_chains(const sql_plan *p) {
    while (is_step(p)) p = p->inputs[0];
    uint32_t n = p->kind != SQL_P_UNION;
    for (uint32_t i = 0; p->kind == SQL_P_UNION && i < p->n_inputs; i++) n += count_chains(p->inputs[i]);
    return n;
}
/* The steps from `top` down to `stop`, over another input. */
static const sql_plan *steps_over(fz_arena *a, const sql_plan *top, const sql_plan *stop, const sql_plan *input) {
    if (top == stop) return input;
    sql_plan *p = FZ_ANEW(a, sql_plan);
    *p = *top;
    p->inputs = FZ_ANEWN(a, sql_plan *, 1);
    p->inputs[0] = (sql_plan *)(uintptr_t)steps_over(a, top->inputs[0], stop, input);
    return p;
}
/* A plan that streams as chains, one for each branch of its UNION ALLs: what stands above a UNION is done in each branch. */
static void put_chains(fz_arena *a, const sql_plan *p, const sql_plan **out, uint32_t *n) {
    const sql_plan *u = scan_of(p);
    if (u->kind != SQL_P_UNION) out[(*n)++] = p;
    for (uint32_t i = 0; u->kind == SQL_P_UNION && i < u->n_inputs; i++) put_chains(a, steps_over(a, p, u, u->inputs[i]), out, n);
}

static job_sink *sink_for(job *j, const job_insert *in) {
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->catalog == in->catalog && !j->sinks[i]->insert->connector == !in->connector && strcmp(j->sinks[i]->text, in->target_text) == 0) return j->sinks[i];
    job_sink *s = FZ_ANEW(j->arena, job_sink);
    s->index = j->n_sinks;
    s->text = in->target_text;
    s->catalog = in->catalog;
    s->ident = in->target;
    s->insert = in;
    s->arena = j->arena;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->stand_lock, NULL);
    job_tally_init(&s->tally);
    j->sinks[j->n_sinks++] = s;
    return s;
}
/* Scans of one table (same columns, same options) are one source: records are read and decoded once for all INSERTs. */
static bool same_scan(const sql_plan *a, const sql_plan *b) {
    if (a->table != b->table || a->schema->n != b->schema->n) return false;
    for (uint32_t i = 0; i < a->schema->n; i++)
        if (strcmp(a->schema->fields[i].name, b->schema->fields[i].name) != 0) return false;
    return true;
}
static job_source *source_for(job *j, const sql_plan *scan, uint32_t n_paths) {
    job_source *src = NULL;
    for (uint32_t i = 0; i < j->n_sources && !src; i++)
        if (same_scan(j->sources[i]->scan_plan, scan)) src = j->sources[i];
    if (!src) {
        src = FZ_ANEW(j->arena, job_source);
        src->index = j->n_sources;
        src->scan_plan = scan;
        src->merged = *scan;
        src->wanted = FZ_ANEWN(j->arena, bool, scan->schema->n + 1);
        src->merged.wanted = src->wanted;
        src->paths = FZ_ANEWN(j->arena, job_path *, n_paths);
        src->sinks = FZ_ANEWN(j->arena, job_sink *, j->spec->n_inserts);
        j->sources[j->n_sources++] = src;
    }
    for (uint32_t i = 0; i < scan->schema->n; i++) src->wanted[i] |= scan->wanted[i];
    return src;
}
static void link_path(job_path *p) {
    job_source *src = p->source;
    p->number = src->n_paths;
    src->paths[src->n_paths++] = p;
    while (!ex_program_same(src->paths[p->like]->program, p->program) && p->like < p->number) p->like++;
    for (uint32_t i = 0; i < src->n_sinks; i++)
        if (src->sinks[i] == p->sink) return;
    src->sinks[src->n_sinks++] = p->sink;
}

/* An INSERT that streams is a path for each chain of it; its sink takes the rows of all. */
static fz_status plan_paths(job *j, fz_error *err) {
    const job_spec *spec = j->spec;
    uint32_t most = 0;
    for (uint32_t i = 0; i < spec->n_inserts; i++) most += count_chains(spec->inserts[i].plan);
    const sql_plan **chains = FZ_ANEWN(j->arena, const sql_plan *, most + 1);
    j->paths = FZ_ANEWN(j->arena, job_path, most);
    j->sinks = FZ_ANEWN(j->arena, job_sink *, spec->n_inserts);
    j->sources = FZ_ANEWN(j->arena, job_source *, most);
    for (uint32_t i = 0; i < spec->n_inserts; i++) {
        const job_insert *in = &spec->inserts[i];
        job_sink *s = sink_for(j, in);
        uint32_t n = 0;
        if (job_streams(in->plan)) put_chains(j->arena, in->plan, chains, &n);
        else j->paths[j->n_paths++] = (job_path){.insert = in, .sink = s};
        for (uint32_t k = 0; k < n; k++) {
            job_path *p = &j->paths[j->n_paths++];
            *p = (job_path){.insert = in, .sink = s};
            FZ_TRY(ex_compile(chains[k], spec->sql, &p->program, err));
            p->source = source_for(j, scan_of(chains[k]), most);
            link_path(p);
        }
    }
    return FZ_OK;
}

static fz_status open_source(job *j, job_source *src, fz_error *err) {
    src_context cx = {.table = src->scan_plan->table->path, .job = j->spec->name, .readers = j->n_workers, .memory = j->memory_limit / 5 / (j->n_sources ? j->n_sources : 1),
                      .max_record_size = (uint32_t)conf_get_i64(j->spec->settings, "source.max-record-size"),
                      .state_dir = conf_get(j->spec->settings, "frazil.state.dir"), .look = j->look, .bounded_job = conf_is(j->spec->settings, "execution.runtime-mode", "batch"),
                      .time_zone = j->spec->sql ? j->spec->sql->time_zone : NULL};
    int64_t wait_ms = 500;
    fz_status rc;
    while ((rc = job_scan_open(&src->merged, &cx, &src->scan, err)) == FZ_RETRY)
        if (!wait_visibly(j, "source.waiting", err, &wait_ms)) return rc;
    FZ_TRY(rc);
    src->source = job_scan_source(src->scan);
    src->replayable = src_replayable(src->source);
    src->bounded = src_bounded(src->source);
    return FZ_OK;
}

/* What its INSERTs read, and so what it can do. */
static void link_sources(job *j, job_sink *s) {
    s->splits = FZ_ANEWN(j->arena, job_split_state *, j->n_sources + 1);
    s->n_splits = FZ_ANEWN(j->arena, uint32_t, j->n_sources + 1);
    s->paths_of = FZ_ANEWN(j->arena, uint32_t, j->n_sources + 1);
    s->only_bounded_oneshot = s->can_rewind = true;
    for (uint32_t i = 0; i < j->n_paths; i++) {
        job_path *p = &j->paths[i];
        if (p->sink == s) s->can_rewind &= p->source && p->source->replayable;
        if (p->sink != s || !p->source) continue;
        s->paths_of[p->source->index]++;
        s->replayable |= p->source->replayable;
        s->only_bounded_oneshot &= !p->source->replayable && p->source->bounded;
        if (!s->splits[p->source->index]) grow_states(j, p->source, s);
    }
}

static fz_status open_target(job *j, job_sink *s, fz_error *err) {
    if (s->insert->connector) return job_delivery_open(j, s, s->insert, err);
    fz_status rc;
    if (s->insert->away) {
        *err = *s->insert->away;
        rc = err->cls;
    } else rc = cat_load_table(s->catalog, &s->ident, &s->table, err);
    return rc == FZ_OK ? rc : job_away_open(j, s, rc, err);
}

static fz_status open_sink(job *j, job_sink *s, fz_error *err) {
    int64_t wait_ms = 500;
    fz_status rc;
    link_sources(j, s);
    while ((rc = open_target(j, s, err)) == FZ_RETRY || rc == FZ_UNKNOWN)
        if (s->insert->away || !wait_visibly(j, s->insert->connector ? "delivery.waiting" : "catalog.waiting", err, &wait_ms)) return rc;
    FZ_TRY(rc);
    if (!s->table) return FZ_OK;
    FZ_TRY(sink_table_new(s->table->io, s->table->metadata, j->run_id, s->index, &s->files, err));
    return job_divert_open(j, s, err);
}

/* Two source tables that read one split into one table would share its position. */
static fz_status check_double_reads(job *j, const job_sink *s, fz_error *err) {
    for (uint32_t a = 0; a < j->n_sources; a++)
        for (uint32_t b = a + 1; b < j->n_sources; b++)
            for (uint32_t i = 0; s->splits[a] && s->splits[b] && i < s->n_splits[a]; i++)
                for (uint32_t k = 0; j->sources[a]->replayable && k < s->n_splits[b]; k++)
                    if (job_split_key_cmp(&s->splits[a][i].key, &s->splits[b][k].key) == 0) {
                        fz_fail(err, FZ_USER, "job.double-read", "tables %s and %s read the same split %s/%d into %s", j->sources[a]->scan_plan->table->path,
                                j->sources[b]->scan_plan->table->path, s->splits[a][i].key.topic, s->splits[a][i].key.partition, s->text);
                        return fz_hint(err, "read the topic through one source table");
                    }
    return FZ_OK;
}

static fz_status open_letters(job *j, fz_error *err) {
    const conf *c = j->spec->settings;
    const char *dir = conf_get(c, "frazil.dead-letter.path");
    if (!dir) dir = fz_arena_printf(j->arena, "%s/dead-letter", conf_get(c, "frazil.state.dir"));
    if (!fio_local_path(dir) && strstr(dir, "://")) FZ_TRY(job_settings_store(c, &j->letters_io, err));
    j->letters = dead_letters_new(dir, j->spec->name, j->letters_io);
    return FZ_OK;
}

fz_status job_plan(job *j, fz_error *err) {
    FZ_TRY(open_letters(j, err));
    return plan_paths(j, err);
}

static fz_status position_sink(job *j, job_sink *s, fz_error *err) {
    int64_t wait_ms = 500;
    for (fz_status rc = FZ_OK; !s->unseen && (rc = job_sink_position(j, s, err)) != FZ_OK;) {
        if (!s->delivery && (rc = job_away_open(j, s, rc, err)) == FZ_OK) break;
        if ((rc != FZ_RETRY && rc != FZ_UNKNOWN) || !wait_visibly(j, "positions.waiting", err, &wait_ms)) return rc;
    }
    if (s->unseen) place_unseen(j, s);
    return FZ_OK;
}

fz_status job_place(job *j, fz_error *err) {
    FZ_TRY(job_plan(j, err));
    for (uint32_t i = 0; i < j->n_sources; i++) FZ_TRY(open_source(j, j->sources[i], err));
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        FZ_TRY(open_sink(j, s, err));
        FZ_TRY(check_double_reads(j, s, err));
        FZ_TRY(position_sink(j, s, err));
    }
    return FZ_OK;
}

fz_status job_open(job *j, fz_error *err) {
    FZ_TRY(job_place(j, err));
    for (uint32_t i = 0; i < j->n_sinks; i++)
        if (j->sinks[i]->pending.n_ranges) j->sinks[i]->status = SINK_WAITING; /* the table gets to know it before anything else */
    for (uint32_t i = 0; i < j->n_sources; i++) {
        FZ_TRY(job_source_seek(j, j->sources[i], err));
        j->sources[i]->positioned = src_n_splits(j->sources[i]->source);
    }
    return FZ_OK;
}

void job_close(job *j) {
    for (uint32_t i = 0; i < j->n_paths; i++) ex_program_free(j->paths[i].program);
    for (uint32_t i = 0; i < j->n_sources; i++) job_scan_close(j->sources[i]->scan);
    for (uint32_t i = 0; i < j->n_sinks; i++) {
        job_sink *s = j->sinks[i];
        for (uint32_t k = 0; s->splits && k < j->n_sources; k++) fz_free(s->splits[k]);
        job_delivery_close(s);
        job_divert_close(s);
        sink_table_free(s->files);
        cat_table_free(s->table);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->stand_lock);
        fz_free(s->stands);
        job_tally_free(&s->tally);
    }
}
