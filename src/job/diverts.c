/* See diverts.h. */
#include "job/diverts.h"
#include "job/state_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT 256u /* ranges that the table has taken over */

struct job_diverts {
    char *path, *table, *uuid;
    job_given **v;
    uint32_t n, cap;
};

void job_given_free(job_given *g) {
    if (!g) return;
    fz_arena_free(g->arena);
    fz_free(g);
}
void job_diverts_free(job_diverts *d) {
    if (!d) return;
    for (uint32_t i = 0; i < d->n; i++) job_given_free(d->v[i]);
    fz_free(d->v);
    fz_free(d->path);
    fz_free(d->table);
    fz_free(d->uuid);
    fz_free(d);
}

/* ---- the file ---- */

static json_t *split_json(const job_given_split *s) {
    const job_range *r = &s->range;
    const job_position *p = &s->after;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, p->last_hash);
    return json_pack("[s, s, i, I, I, I, I, I, I, i, I, b, b, I, I, s]", r->key.source, r->key.topic, (int)r->key.partition, (json_int_t)r->from, (json_int_t)r->to, (json_int_t)r->read, (json_int_t)r->filtered,
                     (json_int_t)r->rejected, (json_int_t)r->unparseable, (int)r->paths, (json_int_t)r->diverted, (int)s->known, (int)p->has_last, (json_int_t)p->last_offset, (json_int_t)p->last_timestamp, hash);
}

static fz_status save(const job_diverts *d, fz_error *err) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < d->n; i++) {
        const job_given *g = d->v[i];
        json_t *splits = json_array();
        char hash[17];
        snprintf(hash, sizeof hash, "%016" PRIx64, g->hash);
        for (uint32_t k = 0; k < g->n; k++) json_array_append_new(splits, split_json(&g->v[k]));
        json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:s, s:b, s:o}", "object", g->object, "records", (json_int_t)g->records, "rows", (json_int_t)g->rows, "hash", hash, "named", (int)g->named, "splits", splits));
    }
    fz_status rc = job_state_put(d->path, json_pack("{s:i, s:s, s:s, s:o}", "version", 1, "table", d->table, "uuid", d->uuid, "given", all), err);
    return rc == FZ_OK ? rc : fz_context(err, "record of diverted ranges");
}

static bool decode_split(fz_arena *a, const json_t *j, job_given_split *s) {
    const char *source = json_string_value(json_array_get(j, 0)), *topic = json_string_value(json_array_get(j, 1)), *hash = json_string_value(json_array_get(j, 15));
    int64_t v[15] = {0};
    if (!source || !topic || !hash) return false;
    for (size_t i = 2; i < 15; i++) {
        const json_t *x = json_array_get(j, i);
        if (!json_is_integer(x) && !json_is_boolean(x)) return false;
        v[i] = json_is_integer(x) ? json_integer_value(x) : json_is_true(x);
    }
    const job_split_key key = {fz_arena_strdup(a, source), fz_arena_strdup(a, topic), (int32_t)v[2]};
    s->range = (job_range){.key = key, .from = v[3], .to = v[4], .read = (uint64_t)v[5], .filtered = (uint64_t)v[6], .rejected = (uint64_t)v[7], .unparseable = (uint64_t)v[8], .paths = (uint32_t)v[9], .diverted = (uint64_t)v[10]};
    s->known = v[11];
    s->after = (job_position){key, v[4], v[12], v[13], v[14], strtoull(hash, NULL, 16), 0};
    return true;
}

static job_given *decode_given(const json_t *j) {
    const char *object = json_string_value(json_object_get(j, "object")), *hash = json_string_value(json_object_get(j, "hash"));
    json_t *splits = json_object_get(j, "splits"), *s;
    size_t i;
    if (!object || !hash || !json_is_array(splits)) return NULL;
    job_given *g = FZ_NEW(job_given);
    g->arena = fz_arena_new();
    g->object = fz_arena_strdup(g->arena, object);
    g->hash = strtoull(hash, NULL, 16);
    g->records = (uint64_t)json_integer_value(json_object_get(j, "records"));
    g->rows = (uint64_t)json_integer_value(json_object_get(j, "rows"));
    g->named = json_is_true(json_object_get(j, "named"));
    g->v = FZ_ANEWN(g->arena, job_given_split, json_array_size(splits) + 1);
    json_array_foreach(splits, i, s)
        if (!decode_split(g->arena, s, &g->v[g->n++])) return job_given_free(g), NULL;
    return g;
}

static bool decode(job_diverts *d, const json_t *root, bool *other) {
    json_t *all = json_object_get(root, "given"), *j;
    const char *uuid = json_string_value(json_object_get(root, "uuid"));
    bool ok = json_integer_value(json_object_get(root, "version")) == 1 && uuid && json_is_array(all);
    size_t i;
    *other = ok && strcmp(uuid, d->uuid) != 0;
    if (ok && !*other) json_array_foreach(all, i, j) {
        job_given *g = ok ? decode_given(j) : NULL;
        ok &= g != NULL;
        if (!g) continue;
        FZ_GROW(d->v, d->n, d->cap);
        d->v[d->n++] = g;
    }
    return ok;
}

fz_status job_diverts_open(const char *state_dir, const char *pipeline, const char *table, const char *uuid, job_diverts **out, fz_error *err) {
    job_diverts *d = FZ_NEW(job_diverts);
    json_t *root;
    bool other = false, damaged;
    d->path = job_state_path(state_dir, "diverted", pipeline, table);
    d->table = fz_strdup(table);
    d->uuid = fz_strdup(uuid ? uuid : "");
    fz_status rc = job_state_get(d->path, &root, &damaged, err);
    if (rc != FZ_OK) (void)!fz_context(err, "record of diverted ranges");
    else if (damaged || (root && !decode(d, root, &other))) {
        rc = fz_fail(err, FZ_FATAL, "divert.state", "table %s: the record of diverted ranges '%s' is damaged", table, d->path);
        (void)!fz_hint(err, "restore it; it alone says which records lie in error objects that the table does not name yet");
    }
    json_decref(root);
    if (other)
        fz_log(FZ_LOG_ERROR, "divert.other-table", FZ_KV("table", "%s", table), FZ_KV("path", "%s", d->path),
               FZ_KV("reason", "%s", "the table was replaced by another of the same name: what was given up for the other one stays in its error objects"), NULL);
    if (rc == FZ_OK) return *out = d, FZ_OK;
    job_diverts_free(d);
    return rc;
}

static void drop_old(job_diverts *d) {
    uint32_t named = 0, n = 0;
    for (uint32_t i = 0; i < d->n; i++) named += d->v[i]->named;
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->v[i]->named && named > KEPT) {
            named--;
            job_given_free(d->v[i]);
        } else d->v[n++] = d->v[i];
    }
    d->n = n;
}

fz_status job_diverts_add(job_diverts *d, job_given *g, fz_error *err) {
    drop_old(d);
    FZ_GROW(d->v, d->n, d->cap);
    d->v[d->n++] = g;
    fz_status rc = save(d, err);
    if (rc == FZ_OK) return rc;
    d->n--;
    job_given_free(g);
    return rc;
}

uint32_t job_diverts_unnamed(const job_diverts *d) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) n += !d->v[i]->named && d->v[i]->rows;
    return n;
}

static bool beyond(const job_given *g, const job_lineage *l) {
    for (uint32_t i = 0; i < g->n; i++) {
        const job_position *t = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, &g->v[i].range.key) : NULL;
        if (!t || t->next < g->v[i].range.to) return false;
    }
    return true;
}
int64_t job_diverts_gather_ms(int64_t retry_ms, uint32_t open) { return open < FZ_FEW_DIVERTED_OPEN || retry_ms / 4 > FZ_DIVERTED_GATHER_MS ? retry_ms / 4 : FZ_DIVERTED_GATHER_MS; }
const char *job_diverts_next_unnamed(const job_diverts *d, const job_lineage *l, uint32_t *at) {
    while (d && *at < d->n) {
        const job_given *g = d->v[(*at)++];
        if (!g->named && g->rows && !beyond(g, l)) return g->object;
    }
    return NULL;
}

/* ---- what the table says to it ---- */

static int64_t *at_of(job_pending *p, int64_t *at, const job_split_key *key) {
    for (uint32_t i = 0; i < p->n_ranges; i++)
        if (job_split_key_cmp(&p->ranges[i].key, key) == 0) return &at[i];
    return NULL;
}

/* Where the split stands, counting what was taken so far; false: nobody has heard of it. */
static bool standing(job_pending *p, int64_t *at, const job_lineage *l, const job_split_key *key, int64_t *out) {
    const int64_t *taken = at_of(p, at, key);
    const job_position *t = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, key) : NULL;
    if (taken) *out = *taken;
    else if (t) *out = t->next;
    return taken || t;
}

static void add_range(job_pending *p, int64_t *at, const job_lineage *l, const job_given_split *s, const job_range *r) {
    int64_t *taken = at_of(p, at, &r->key);
    if (!taken) {
        const job_position *t = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, &r->key) : NULL;
        p->ranges[p->n_ranges] = *r;
        p->after[p->n_ranges] = s->after;
        p->known[p->n_ranges] = t != NULL;
        p->remembered[p->n_ranges] = t ? t->next : 0;
        at[p->n_ranges++] = r->to;
        return;
    }
    job_range *sum = &p->ranges[taken - at];
    sum->to = r->to;
    sum->read += r->read;
    sum->filtered += r->filtered;
    sum->rejected += r->rejected;
    sum->unparseable += r->unparseable;
    sum->diverted += r->diverted;
    sum->paths = r->paths > sum->paths ? r->paths : sum->paths;
    p->after[taken - at] = s->after;
    *taken = r->to;
}

/* What counts of one range: *part, empty: nothing. */
static fz_status part_of(const job_given *g, const job_given_split *s, bool known, int64_t at, const job_resolve *with, job_range *part, fz_error *err) {
    *part = s->range;
    bool begins = known ? at >= s->range.from && at < s->range.to : !s->known;
    if (begins && g->named && with->readable(with->cx, &s->range.key, known ? at : s->range.from)) begins = false;
    if (!begins) part->to = part->from;
    if (!begins || !known || at == s->range.from) return FZ_OK;
    uint64_t records, rows;
    FZ_TRY(with->count(with->cx, g, &s->range.key, at, s->range.to, &records, &rows, err));
    part->from = at;
    part->read = records;
    part->diverted = rows;
    part->filtered = records * part->paths > rows ? records * part->paths - rows : 0; /* those that other INSERTs have filtered; records without a row are not in the object */
    part->rejected = part->unparseable = 0;
    return FZ_OK;
}

static fz_status resolve_one(job_given *g, const job_lineage *l, const job_resolve *with, fz_arena *a, job_pending *p, int64_t *at, fz_error *err) {
    job_diverted o = {.object = fz_arena_strdup(a, g->object), .records = g->records, .hash = g->hash, .parts = FZ_ANEWN(a, job_part, g->n + 1)};
    bool all_covered = true;
    for (uint32_t i = 0; i < g->n; i++) {
        job_range part;
        int64_t from = 0;
        bool known = standing(p, at, l, &g->v[i].range.key, &from);
        const job_position *t = l->found ? job_position_find(l->marks.positions, l->marks.n_positions, &g->v[i].range.key) : NULL;
        FZ_TRY(part_of(g, &g->v[i], known, from, with, &part, err));
        all_covered &= t && t->next >= g->v[i].range.to;
        if (part.to <= part.from) continue;
        part.key = (job_split_key){fz_arena_strdup(a, part.key.source), fz_arena_strdup(a, part.key.topic), part.key.partition};
        job_given_split s = g->v[i];
        s.after.key = part.key;
        add_range(p, at, l, &s, &part);
        o.rows += part.diverted;
        o.parts[o.n_parts++] = (job_part){part.key, part.from, part.to};
    }
    if (o.rows) p->objects[p->n_objects++] = o;
    if (all_covered && !g->named) {
        g->named = true;
        if (g->counted && g->rows && !(l->found && job_diverted_find(l->marks.diverted, l->marks.n_diverted, g->object))) with->landed(with->cx, g);
    }
    return FZ_OK;
}

static bool told_by(const job_pending *p, const job_given *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t k = 0;
        while (k < p->n_ranges && job_split_key_cmp(&p->ranges[k].key, &g->v[i].range.key) != 0) k++;
        if (k == p->n_ranges || p->ranges[k].to < g->v[i].range.to) return false;
    }
    return true;
}
void job_diverts_told(job_diverts *d, const job_pending *p) {
    for (uint32_t i = 0; i < d->n; i++) d->v[i]->named |= told_by(p, d->v[i]);
}

fz_status job_diverts_resolve(job_diverts *d, const job_lineage *l, const job_resolve *with, fz_arena *a, job_pending *out, fz_error *err) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) n += d->v[i]->n;
    *out = (job_pending){.ranges = FZ_ANEWN(a, job_range, n + 1), .after = FZ_ANEWN(a, job_position, n + 1), .known = FZ_ANEWN(a, bool, n + 1), .remembered = FZ_ANEWN(a, int64_t, n + 1),
                         .objects = FZ_ANEWN(a, job_diverted, d->n + 1)};
    int64_t *at = FZ_ANEWN(a, int64_t, n + 1);
    for (uint32_t i = 0; i < d->n; i++) FZ_TRY(resolve_one(d->v[i], l, with, a, out, at, err));
    return FZ_OK;
}
