/* Random walks over the commit protocol, with the real code: job_commit, job_lineage_read, Iceberg metadata and manifests, a real catalog (SQLite; files in
 * memory). One table, two splits, two writers that may be zombies of each other; crashes, lost answers, conflicts, foreign appends and compactions, expiry of
 * any snapshots, rollbacks. At every step no offset is visible twice; after quiescence each offset is visible once, or the writer refused with a reason.
 * Writers also give ranges up (the real record of job/diverts.c in files; error objects are imagined), name them in the table, and somebody replays them. In half of the walks the
 * source is a spool: one writer, and what it has committed or given up is gone from the source. Writers also begin without seeing the table, from what was last seen of it (the real record of job/seen.c, which lags
 * behind after a crash): they give ranges up from there and commit nothing before they have seen it.
 *
 * usage: protocol_walk [WALKS [SEED]]; prints its seed; a failing walk prints its own, which repeats it: protocol_walk 1 SEED
 * FRAZIL_WALK_BLIND=1 makes writers trust whatever the table says last instead of what they remember: the walk must then fail (run.sh checks that it does). */
#include "fileio/fileio.h"
#include "job/job_int.h"
#include "job/seen.h"
#include "job/state_file.h"
#include <inttypes.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPLITS 2
typedef struct writer { bool alive, has_pend; bool known[SPLITS]; int64_t exp[SPLITS], pos[SPLITS], from[SPLITS], to[SPLITS]; bool in[SPLITS]; char commit_id[96]; sink_files files;
                        int64_t base[SPLITS]; bool given[SPLITS], naming, unseen, crashed; job_diverts *diverts; job_pending pending; fz_arena *arena; } writer;
typedef struct walk { bool spool, refused; int64_t low[SPLITS]; const char *dir; uint64_t seed; uint64_t rng; int64_t end[SPLITS]; writer w[2]; job j; job_sink s; job_spec spec; conf *settings; cat_catalog *cat; char *db; uint64_t names; bool interfere, blind; } walk;

static const char *const topics[] = {"t"};
static job_split_key key_of(int k) { return (job_split_key){"kafka:walk", topics[0], k}; }

static uint32_t rnd(walk *w, uint32_t n) {
    w->rng = w->rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(w->rng >> 33) % n;
}
static bool chance(walk *w, uint32_t percent) { return rnd(w, 100) < percent; }
static void must(fz_status rc, fz_error *err, const char *what) {
    if (rc == FZ_OK) return;
    fprintf(stderr, "walk: %s: %s %s\n", what, err->code, err->message);
    exit(2);
}
static cat_table *load(walk *w) {
    fz_error err;
    cat_table *t;
    must(cat_load_table(w->cat, &w->s.ident, &t, &err), &err, "load");
    return t;
}

/* ---- live files: "<partition>-<from>-<to>-<n>" ---- */
typedef struct live { int k; int64_t from, to; ice_data_file file; } live;
static uint32_t live_files(walk *w, fz_arena *a, const ice_metadata *m, live **out) {
    fz_error err;
    const ice_snapshot *cur = ice_metadata_current(m);
    uint32_t n = 0, cap = 0;
    *out = NULL;
    if (!cur) return 0;
    ice_manifest_list l;
    must(ice_snapshot_manifests(a, cur, &cat_io, &l, &err), &err, "manifests");
    for (uint32_t i = 0; i < l.n; i++) {
        fz_buf b = {0};
        const ice_entry *e;
        uint32_t ne;
        must(cat_io.read(cat_io.cx, l.v[i].path, &b, &err), &err, "read");
        void *copy = fz_arena_strndup(a, (const char *)b.data, b.len);
        must(ice_manifest_decode(a, copy, b.len, &l.v[i], m->spec, ice_metadata_spec_types(a, m, m->spec), &e, &ne, &err), &err, "decode");
        fz_buf_free(&b);
        for (uint32_t k = 0; k < ne; k++) {
            if (e[k].status == ICE_DELETED) continue;
            live x = {.file = e[k].file};
            const char *name = strrchr(e[k].file.path, '/') + 1;
            if (sscanf(name, "%d-%" SCNd64 "-%" SCNd64, &x.k, &x.from, &x.to) != 3) exit(2);
            if (n == cap) *out = fz_realloc(*out, (cap = cap ? cap * 2 : 16) * sizeof **out);
            (*out)[n++] = x;
        }
    }
    (void)w;
    return n;
}
static bool check(walk *w, bool whole) {
    cat_table *t = load(w);
    fz_arena *a = fz_arena_new();
    live *v;
    uint32_t n = live_files(w, a, t->metadata, &v);
    bool ok = true;
    for (int k = 0; k < SPLITS; k++) {
        char *seen = fz_calloc((size_t)w->end[k] + 1, 1);
        for (uint32_t i = 0; i < n; i++)
            for (int64_t o = v[i].from; v[i].k == k && o < v[i].to; o++)
                if (seen[o]++) ok = false;
        for (int64_t o = 0; whole && o < w->end[k]; o++) ok &= seen[o] == 1;
        fz_free(seen);
    }
    fz_free(v);
    fz_arena_free(a);
    cat_table_free(t);
    return ok;
}

/* ---- foreign writers ---- */
static ice_data_file a_file(walk *w, fz_arena *a, int k, int64_t from, int64_t to) {
    return (ice_data_file){.content = ICE_DATA, .path = fz_arena_printf(a, "mem://walk/data/%d-%" PRId64 "-%" PRId64 "-%" PRIu64, k, from, to, ++w->names), .format = "PARQUET",
                           .record_count = to - from, .file_size = 100, .sort_order_id = ICE_NONE};
}
static void apply(walk *w, cat_table *t, ice_changes *c) {
    fz_error err;
    cat_table *next = NULL;
    fz_status rc = cat_commit(w->cat, t, c, &next, &err);
    if (rc != FZ_CONFLICT && rc != FZ_UNKNOWN) must(rc, &err, "foreign commit"); /* the injected fault may hit it */
    cat_table_free(next);
    ice_changes_free(c);
}
static void foreign_append(walk *w) {
    fz_error err;
    cat_table *t = load(w);
    fz_arena *a = fz_arena_new();
    char uuid[37];
    fz_uuid4(uuid);
    ice_append ap = {.snapshot_id = (int64_t)rnd(w, 1u << 30) << 30 | ++w->names, .uuid = uuid, .attempt = 1, .now_ms = fz_now_ms()};
    ice_append_result r;
    must(ice_append_build(a, t->metadata, &ap, &cat_io, &r, &err), &err, "foreign append");
    apply(w, t, &r.changes);
    fz_arena_free(a);
    cat_table_free(t);
}
/* Compaction: the same rows in new files, in a snapshot that carries nothing of ours. */
static void foreign_compact(walk *w) {
    fz_error err;
    cat_table *t = load(w);
    fz_arena *a = fz_arena_new();
    const ice_metadata *m = t->metadata;
    live *v;
    uint32_t n = live_files(w, a, m, &v);
    int64_t id = (int64_t)rnd(w, 1u << 30) << 30 | ++w->names;
    if (n) {
        ice_manifest_writer *mw = ice_manifest_writer_new(m->schema, m->spec, ice_metadata_spec_types(a, m, m->spec), 0, id, ICE_AVRO_DEFLATE);
        for (uint32_t i = 0; i < n; i++) {
            ice_entry e = {.status = ICE_ADDED, .snapshot_id = id, .sequence = ICE_NONE, .file_sequence = ICE_NONE, .file = a_file(w, a, v[i].k, v[i].from, v[i].to)};
            must(ice_manifest_writer_add(mw, &e, &err), &err, "compact");
        }
        fz_buf b = {0}, lb = {0};
        ice_manifest_file mf;
        must(ice_manifest_writer_finish(mw, a, &b, &mf, &err), &err, "compact");
        mf.path = fz_arena_printf(a, "mem://walk/metadata/c-%" PRIu64 "-m0.avro", ++w->names);
        mf.length = (int64_t)b.len;
        must(cat_io.write(cat_io.cx, mf.path, b.data, b.len, &err), &err, "compact");
        ice_manifest_list l = {1, &mf};
        int64_t seq = m->last_sequence_number + 1;
        must(ice_manifest_list_encode(&l, id, m->current_snapshot_id, seq, ICE_AVRO_DEFLATE, &lb, &err), &err, "compact");
        char *path = fz_arena_printf(a, "mem://walk/metadata/snap-%" PRIu64 ".avro", ++w->names);
        must(cat_io.write(cat_io.cx, path, lb.data, lb.len, &err), &err, "compact");
        ice_snapshot s = {.id = id, .parent_id = m->current_snapshot_id, .sequence = seq, .timestamp_ms = fz_now_ms(), .schema_id = m->current_schema_id, .manifest_list = path, .operation = "replace"};
        ice_changes c = ice_changes_new();
        ice_assert_ref(&c, "main", m->current_snapshot_id);
        ice_update_add_snapshot(&c, &s);
        ice_update_ref(&c, "main", id);
        apply(w, t, &c);
        fz_buf_free(&b);
        fz_buf_free(&lb);
    }
    fz_free(v);
    fz_arena_free(a);
    cat_table_free(t);
}
/* PyIceberg's expiry also takes the parent's id out of snapshots whose parent has gone. */
static void forget_parents(walk *w) {
    fz_error err;
    cat_table *t = load(w);
    fz_buf b = {0};
    must(ice_metadata_encode(t->metadata, &b, &err), &err, "forget parents");
    json_t *j = json_loadb((const char *)b.data, b.len, 0, NULL), *s;
    size_t i;
    json_array_foreach(json_object_get(j, "snapshots"), i, s) {
        const json_t *parent = json_object_get(s, "parent-snapshot-id");
        if (parent && !ice_metadata_snapshot(t->metadata, json_integer_value(parent))) json_object_del(s, "parent-snapshot-id");
    }
    char *text = json_dumps(j, JSON_COMPACT), *path = fz_asprintf("mem://walk/metadata/p-%" PRIu64 ".metadata.json", ++w->names);
    must(cat_io.write(cat_io.cx, path, text, strlen(text), &err), &err, "forget parents");
    char *sql = fz_asprintf("UPDATE iceberg_tables SET metadata_location = '%s' WHERE metadata_location = '%s'", path, t->metadata_location);
    sqlite3 *db;
    if (sqlite3_open(w->db, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK || sqlite3_changes(db) != 1) {
        fprintf(stderr, "walk: forget parents: %s\n", sqlite3_errmsg(db));
        exit(2);
    }
    sqlite3_close(db);
    fz_free(sql);
    fz_free(path);
    free(text);
    json_decref(j);
    fz_buf_free(&b);
    cat_table_free(t);
}
static void expire(walk *w) {
    cat_table *t = load(w);
    const ice_metadata *m = t->metadata;
    int64_t *gone = fz_calloc(m->n_snapshots + 1, sizeof *gone);
    uint32_t n = 0;
    bool all = chance(w, 50);
    for (uint32_t i = 0; i < m->n_snapshots; i++)
        if (m->snapshots[i].id != m->current_snapshot_id && (all || chance(w, 40))) gone[n++] = m->snapshots[i].id;
    if (n) {
        ice_changes c = ice_changes_new();
        ice_update_remove_snapshots(&c, gone, n);
        apply(w, t, &c);
        if (chance(w, 50)) forget_parents(w);
    }
    fz_free(gone);
    cat_table_free(t);
}
static void rollback(walk *w) {
    cat_table *t = load(w);
    const ice_snapshot *cur = ice_metadata_current(t->metadata);
    bool cut;
    const ice_snapshot *parent = cur ? ice_snapshot_parent(t->metadata, cur, &cut) : NULL;
    if (parent) {
        ice_changes c = ice_changes_new();
        ice_update_ref(&c, "main", parent->id);
        apply(w, t, &c);
    }
    cat_table_free(t);
}

/* ---- our writers ---- */
static walk *current;
static fz_status hooked_write(void *cx, const char *location, const void *p, size_t n, fz_error *err) {
    (void)cx;
    if (current->interfere) {
        current->interfere = false;
        foreign_append(current);
    }
    return cat_io.write(cat_io.cx, location, p, n, err);
}
static void forget(writer *x) {
    if (x->has_pend) sink_files_free(&x->files);
    x->has_pend = false;
}
/* ---- what is given up ---- */
static bool readable(void *cx, const job_split_key *key, int64_t at) { return ((walk *)cx)->low[key->partition] <= at; }
static fz_status count_part(void *cx, const job_given *g, const job_split_key *key, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *err) {
    (void)cx, (void)g, (void)key, (void)err;
    *records = *rows = (uint64_t)(to - from);
    return FZ_OK;
}
static void landed(void *cx, const job_given *g) { (void)cx, (void)g; }

static void resolve(walk *w, writer *x, const job_lineage *l) {
    fz_error err;
    const job_resolve with = {w, readable, count_part, landed};
    fz_arena_free(x->arena);
    x->arena = fz_arena_new();
    must(job_diverts_resolve(x->diverts, l, &with, x->arena, &x->pending, &err), &err, "resolve");
    x->naming = x->pending.n_ranges > 0;
    for (int k = 0; k < SPLITS; k++) {
        job_split_key key = key_of(k);
        x->given[k] = false;
        for (uint32_t i = 0; i < x->pending.n_ranges; i++)
            if (job_split_key_cmp(&x->pending.ranges[i].key, &key) == 0) x->pos[k] = x->pending.ranges[i].to, x->given[k] = true;
        x->base[k] = x->pos[k];
        if (x->pos[k] < w->low[k]) w->refused = true, x->alive = false;
    }
}

static char *state_dir(const walk *w, const writer *x) { return fz_asprintf("%s/%" PRIu64 "-%d", w->dir, w->seed, x == &w->w[1]); }
static void open_state(walk *w, writer *x, const ice_metadata *m) {
    fz_error err;
    char *dir = state_dir(w, x);
    job_diverts_free(x->diverts);
    x->diverts = NULL;
    must(job_diverts_open(dir, w->spec.name, w->s.text, m->uuid, &x->diverts, &err), &err, "state");
    fz_free(dir);
}

/* A pass: everything or something from where the writer stands. */
static void give_up(walk *w, writer *x) {
    fz_error err;
    forget(x);
    for (int k = 0; k < SPLITS; k++) x->pos[k] = x->base[k];
    job_given *g = FZ_NEW(job_given);
    g->arena = fz_arena_new();
    g->v = FZ_ANEWN(g->arena, job_given_split, SPLITS);
    g->object = fz_arena_printf(g->arena, "mem://errors/%" PRIu64, ++w->names);
    int64_t to[SPLITS];
    for (int k = 0; k < SPLITS; k++) {
        to[k] = x->base[k] + rnd(w, 6);
        if (to[k] > w->end[k]) to[k] = w->end[k];
        if (to[k] <= x->base[k]) continue;
        uint64_t n = (uint64_t)(to[k] - x->base[k]);
        g->v[g->n++] = (job_given_split){.range = {.key = key_of(k), .from = x->base[k], .to = to[k], .read = n, .paths = 1, .diverted = n}, .after = {.key = key_of(k), .next = to[k]}, .known = x->known[k] || x->given[k]};
        g->rows = g->records += n;
    }
    if (!g->n) {
        job_given_free(g);
        return;
    }
    must(job_diverts_add(x->diverts, g, &err), &err, "give up");
    for (uint32_t i = 0; i < g->n; i++) x->base[g->v[i].range.key.partition] = g->v[i].range.to, x->given[g->v[i].range.key.partition] = true;
    for (int k = 0; k < SPLITS; k++) x->pos[k] = x->base[k];
    x->naming = true;
}

static void trim(walk *w, const writer *x) {
    for (int k = 0; k < SPLITS && w->spool && x->alive; k++)
        if ((x->known[k] && x->exp[k] > w->low[k]) || (x->given[k] && x->base[k] > w->low[k])) w->low[k] = x->given[k] ? x->base[k] : x->exp[k];
}

static job_commit_outcome commit_with_faults(walk *w, const job_prepared *p, fz_error *err);
/* Commits of x keep what they have seen in its state directory; a crash may come before that, and then nothing is trimmed either. */
static job_commit_outcome commit_of(walk *w, writer *x, const job_prepared *p, fz_error *err) {
    fz_error own;
    char *dir = state_dir(w, x), *path = job_state_path(dir, "seen", w->spec.name, w->s.text);
    fz_buf before = {0};
    bool had = fio_read(NULL, path, 1 << 20, &before, &own) == FZ_OK;
    must(conf_set(w->settings, "frazil.state.dir", dir, &own), &own, "state");
    job_commit_outcome out = commit_with_faults(w, p, err);
    if (had && chance(w, 15)) {
        must(fio_put(NULL, path, before.data, before.len, &own), &own, "seen");
        x->crashed = true;
    }
    fz_buf_free(&before);
    fz_free(path);
    fz_free(dir);
    return out;
}

static job_commit_outcome commit_with_faults(walk *w, const job_prepared *p, fz_error *err) {
    fz_error own;
    w->interfere = chance(w, 20);
    if (chance(w, 30)) must(fz_fault_arm("commit.accepted:1:unknown", &own), &own, "arm");
    job_commit_outcome out = job_commit(&w->j, p, err);
    must(fz_fault_arm(NULL, &own), &own, "disarm");
    w->interfere = false;
    return out;
}

static void start(walk *w, writer *x);
static void name_given(walk *w, writer *x) {
    fz_error err;
    start(w, x);
    if (!x->alive || !x->naming) return;
    const job_pending *g = &x->pending;
    job_prepared p = {.sink = &w->s, .n_ranges = g->n_ranges, .ranges = g->ranges, .after = g->after, .known = g->known, .remembered = g->remembered, .n_objects = g->n_objects, .objects = g->objects};
    snprintf(p.commit_id, sizeof p.commit_id, "walk/given/%" PRIu64, ++w->names);
    job_commit_outcome out = commit_of(w, x, &p, &err);
    if (out != COMMIT_DONE && out != COMMIT_BY_OTHER) return; /* the next step begins with what the table says */
    for (uint32_t i = 0; i < g->n_ranges; i++) {
        int k = g->ranges[i].key.partition;
        x->known[k] = true;
        x->exp[k] = x->base[k] = x->pos[k] = g->ranges[i].to;
        x->given[k] = false;
    }
    job_diverts_told(x->diverts, g);
    x->naming = false;
}

/* Somebody replays some of the objects that the table names, or all. */
static bool replay(walk *w, bool all) {
    fz_error err;
    cat_table *t = load(w);
    fz_arena *a = fz_arena_new();
    job_lineage l;
    must(job_lineage_read(a, t->metadata, w->spec.name, NULL, &cat_io, &l, &err), &err, "lineage");
    uint32_t n = l.found ? l.marks.n_diverted : 0, cap = 0;
    job_replayed *done = FZ_ANEWN(a, job_replayed, n + 1);
    sink_files files = {.arena = fz_arena_new()};
    job_prepared p = {.sink = &w->s, .files = &files, .n_shards = 1, .replayed = done};
    for (uint32_t i = 0; i < n; i++) {
        const job_diverted *o = &l.marks.diverted[i];
        if (!all && chance(w, 50)) continue;
        done[p.n_replayed++] = (job_replayed){.object = o->object, .added = o->rows};
        for (uint32_t k = 0; k < o->n_parts; k++) {
            FZ_GROW(files.v, files.n, cap);
            files.v[files.n++] = a_file(w, files.arena, o->parts[k].key.partition, o->parts[k].from, o->parts[k].to);
        }
    }
    p.n_files = files.n;
    snprintf(p.commit_id, sizeof p.commit_id, "walk/replay/%" PRIu64, ++w->names);
    bool any = p.n_replayed > 0;
    if (any) (void)commit_with_faults(w, &p, &err); /* whatever comes of it: the next one asks the table */
    sink_files_free(&files);
    fz_arena_free(a);
    cat_table_free(t);
    return any;
}

static void start(walk *w, writer *x) {
    fz_error err;
    cat_table *t = load(w);
    fz_arena *a = fz_arena_new();
    job_lineage l;
    forget(x);
    must(job_lineage_read(a, t->metadata, w->spec.name, NULL, &cat_io, &l, &err), &err, "lineage");
    x->alive = !l.unproven;
    for (int k = 0; k < SPLITS; k++) {
        job_split_key key = key_of(k);
        job_position *p = l.found ? job_position_find(l.marks.positions, l.marks.n_positions, &key) : NULL;
        x->known[k] = p != NULL;
        x->exp[k] = p ? p->next : 0;
        x->pos[k] = x->exp[k];
    }
    if (!x->diverts || chance(w, 30)) open_state(w, x, t->metadata);
    if (x->alive) resolve(w, x, &l);
    x->unseen = x->crashed = false;
    if (x->alive && x >= w->w && x < w->w + 2) {
        char *dir = state_dir(w, x);
        job_seen_write(dir, w->spec.name, w->s.text, t->metadata->uuid, job_mirror_encode(a, &(job_mirror){.snapshot_id = l.snapshot_id, .n = l.found ? l.marks.n_positions : 0, .positions = l.marks.positions}));
        fz_free(dir);
    }
    fz_arena_free(a);
    cat_table_free(t);
}
/* The table is away: x stands where it was last seen, if that is known and its source has that place. */
static void start_away(walk *w, writer *x) {
    fz_arena *a = fz_arena_new();
    job_mirror m = {0};
    char *dir = state_dir(w, x);
    bool known = job_seen_read(a, dir, w->spec.name, w->s.text, w->s.table->metadata->uuid, &m) && m.n;
    fz_free(dir);
    job_lineage l = {.found = known, .marks = {.n_positions = m.n, .positions = m.positions}};
    forget(x);
    x->alive = known && !w->refused;
    for (int k = 0; k < SPLITS && x->alive; k++) {
        job_split_key key = key_of(k);
        job_position *p = job_position_find(m.positions, m.n, &key);
        x->known[k] = p != NULL;
        x->exp[k] = p ? p->next : 0;
        x->pos[k] = p ? p->next : w->low[k];
    }
    if (x->alive) {
        open_state(w, x, w->s.table->metadata);
        resolve(w, x, &l);
        w->refused = false; /* it waits instead */
    }
    x->unseen = x->alive;
    x->crashed = x->naming = false; /* nothing is named before the table is seen */
    fz_arena_free(a);
}
static void read_some(walk *w, writer *x, bool all) {
    bool any = false;
    for (int k = 0; k < SPLITS; k++) {
        int64_t to = x->pos[k] + (all ? w->end[k] : rnd(w, 5));
        if (to > w->end[k]) to = w->end[k];
        x->from[k] = x->pos[k];
        x->to[k] = to < x->pos[k] ? x->pos[k] : to;
        x->in[k] = x->to[k] > x->from[k];
        x->pos[k] = x->to[k];
        any |= x->in[k];
    }
    if (!any) return;
    x->has_pend = true;
    x->files = (sink_files){.arena = fz_arena_new(), .v = fz_calloc(SPLITS, sizeof(ice_data_file))};
    for (int k = 0; k < SPLITS; k++)
        if (x->in[k]) x->files.v[x->files.n++] = a_file(w, x->files.arena, k, x->from[k], x->to[k]);
    snprintf(x->commit_id, sizeof x->commit_id, "walk/%" PRIu64, ++w->names);
}
static void attempt(walk *w, writer *x) {
    fz_error err;
    job_range ranges[SPLITS];
    job_position after[SPLITS];
    bool known[SPLITS];
    int64_t remembered[SPLITS];
    if (w->blind) { /* the broken variant: no memory of what the table said */
        writer probe = {0};
        start(w, &probe);
        for (int k = 0; k < SPLITS; k++) x->known[k] = probe.known[k], x->exp[k] = probe.exp[k];
    }
    job_prepared p = {.sink = &w->s, .files = &x->files, .n_shards = 1, .n_files = x->files.n, .ranges = ranges, .after = after, .known = known, .remembered = remembered};
    snprintf(p.commit_id, sizeof p.commit_id, "%s", x->commit_id);
    for (int k = 0; k < SPLITS; k++) {
        if (!x->in[k]) continue;
        uint32_t n = p.n_ranges++;
        ranges[n] = (job_range){key_of(k), x->from[k], x->to[k], (uint64_t)(x->to[k] - x->from[k]), (uint64_t)(x->to[k] - x->from[k]), 0, 0, 0, 1, 0};
        after[n] = (job_position){.key = key_of(k), .next = x->to[k]};
        known[n] = x->known[k];
        remembered[n] = x->exp[k];
    }
    job_commit_outcome out = commit_of(w, x, &p, &err);
    if (out == COMMIT_FAILED && err.cls == FZ_UNKNOWN) return; /* the answer was lost: the same files are tried again later, or the writer dies */
    if (out == COMMIT_FAILED && strcmp(err.code, "positions.unproven") == 0) {
        forget(x);
        x->alive = false;
    } else if (out == COMMIT_DONE || out == COMMIT_BY_OTHER) {
        for (int k = 0; k < SPLITS; k++)
            if (x->in[k]) x->known[k] = true, x->exp[k] = x->base[k] = x->to[k], x->given[k] = false;
        forget(x);
    } else start(w, x);
}

static void make_table(walk *w, const char *dir, uint64_t seed) {
    fz_error err;
    w->db = fz_asprintf("%s/walk-%" PRIu64 ".db", dir, seed);
    char *uri = fz_asprintf("sqlite:///%s", w->db);
    fz_pair o[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "sql"}, {.key = "uri", .value = uri}, {.key = "warehouse", .value = "mem://walk"}};
    must(cat_open("walk", o, 4, NULL, &w->cat, &err), &err, "catalog");
    static const char *const level[] = {"db"};
    w->s.ident = (cat_ident){{1, level}, "t"};
    must(cat_create_namespace(w->cat, w->s.ident.ns, NULL, 0, &err), &err, "namespace");
    fz_arena *a = fz_arena_new();
    col_field f = {"x", col_simple(COL_INT, true), NULL};
    col_schema cols = {1, &f};
    ice_schema *schema;
    must(ice_schema_from_cols(a, &cols, NULL, 0, &schema, &err), &err, "schema");
    char uuid[37];
    fz_uuid4(uuid);
    fz_pair props[] = {{.key = "commit.retry.total-timeout-ms", .value = "0"}, {.key = "commit.manifest.min-count-to-merge", .value = "3"}};
    ice_metadata *m;
    must(ice_metadata_new(fz_arena_printf(a, "mem://walk/%" PRIu64, seed), schema, NULL, NULL, props, 2, uuid, fz_now_ms(), &m, &err), &err, "metadata");
    cat_table *t;
    must(cat_create_table(w->cat, &w->s.ident, m, &t, &err), &err, "create");
    w->s.table = t;
    w->s.catalog = w->cat;
    w->s.text = "walk.db.t";
    fz_arena_free(a);
    fz_free(uri);
}

static uint64_t starts_away;
static const char *run(uint64_t seed, const char *dir) {
    walk w = {.rng = seed * 2 + 1, .blind = getenv("FRAZIL_WALK_BLIND") != NULL, .dir = dir, .seed = seed, .spool = seed % 2};
    current = &w;
    w.settings = conf_new();
    w.spec = (job_spec){.name = "walk", .settings = w.settings};
    w.j.spec = &w.spec;
    w.j.io = (ice_io){NULL, cat_io.read, hooked_write};
    make_table(&w, dir, seed);
    const char *verdict = NULL;
    for (int step = 0; step < 80 && !verdict; step++) {
        writer *x = &w.w[w.spool ? 0 : rnd(&w, 2)];
        if (w.refused) break;
        switch (rnd(&w, 16)) {
        case 0: case 1: w.end[rnd(&w, SPLITS)] += rnd(&w, 4); break;
        case 2: case 3: case 4: if (x->alive && !x->has_pend && !x->naming && !x->unseen) read_some(&w, x, false); break;
        case 5: case 6: case 7:
            if (x->alive && x->unseen) start(&w, x);
            else if (x->alive && x->naming) name_given(&w, x);
            else if (x->alive && x->has_pend) attempt(&w, x);
            if (x->crashed) x->alive = false, forget(x);
            trim(&w, x);
            break;
        case 8:
            x->alive = false;
            forget(x);
            if (chance(&w, 50)) start_away(&w, x), starts_away += x->alive;
            break;
        case 9: if (!x->alive && chance(&w, 60)) start(&w, x); else if (!x->alive) start_away(&w, x), starts_away += x->alive; break;
        case 10: if (chance(&w, 25)) foreign_compact(&w); else foreign_append(&w); break;
        case 11: expire(&w); break;
        case 12: if (x->alive && !chance(&w, 40)) give_up(&w, x), trim(&w, x); break;
        case 13: (void)replay(&w, false); break;
        default: if (chance(&w, 15)) rollback(&w);
        }
        if (!check(&w, false)) verdict = "doubled";
    }
    writer *x = &w.w[0];
    forget(&w.w[1]);
    if (!verdict) start(&w, x);
    for (int i = 0; i < 200 && !verdict; i++) {
        if ((!x->alive || x->unseen || x->crashed) && !w.refused) start(&w, x);
        if (!x->alive || w.refused) verdict = "refused";
        else if (x->naming) name_given(&w, x);
        else if (!x->has_pend) {
            read_some(&w, x, true);
            if (!x->has_pend && !replay(&w, true)) break;
        } else attempt(&w, x);
    }
    if (!verdict) verdict = !check(&w, false) ? "doubled" : check(&w, true) ? "ok" : "lost";
    forget(x);
    for (int i = 0; i < 2; i++) {
        job_diverts_free(w.w[i].diverts);
        fz_arena_free(w.w[i].arena);
    }
    cat_table_free(w.s.table);
    cat_close(w.cat);
    fz_free(w.db);
    conf_free(w.settings);
    return verdict;
}

int main(int argc, char **argv) {
    uint64_t walks = argc > 1 ? strtoull(argv[1], NULL, 10) : 300, seed;
    fz_random(&seed, sizeof seed);
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed % 1000000000;
    printf("protocol_walk: %" PRIu64 " walks from seed %" PRIu64 "\n", walks, seed);
    fz_log_set_level(FZ_LOG_OFF);
    char dir[] = "/dev/shm/frazil-walk-XXXXXX";
    if (!mkdtemp(dir)) return 2;
    uint64_t ok = 0, refused = 0, bad = 0;
    for (uint64_t i = 0; i < walks; i++) {
        const char *v = run(seed + i, dir);
        if (strcmp(v, "ok") == 0) ok++;
        else if (strcmp(v, "refused") == 0) refused++;
        else if (bad++ < 5) printf("protocol_walk: seed %" PRIu64 ": %s\n", seed + i, v);
    }
    char *cmd = fz_asprintf("rm -rf '%s'", dir);
    if (system(cmd) != 0) perror("rm");
    fz_free(cmd);
    printf("protocol_walk: ok %" PRIu64 ", refused %" PRIu64 ", wrong %" PRIu64 ", starts without the table %" PRIu64 "\n", ok, refused, bad, starts_away);
    return bad != 0 || ok == 0;
}
