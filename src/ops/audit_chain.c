/* The audit's part about ranges: for each pipeline a walk from its oldest listed commit to the newest.
 *
 *     positions before -> [from, to) of this commit -> positions of this commit -> ...
 *
 * Invariants
 *  1. A split's state is what the commits so far have proved: nothing, or [begin, next). A range must start at next; the commit's own
 *     list of positions must then say next for every split that is known, and may not leave one out, but one that was marked as gone
 *     before: should that come back, it is a new split.
 *  2. Only a commit that says so (frazil.chain = new) may start elsewhere; the audit tells where.
 */
#include "ops/ops_int.h"
#include <stdlib.h>

static audit_chain *chain_of(audit *x, const char *pipeline) {
    for (uint32_t i = 0; i < x->n_chains; i++)
        if (strcmp(x->chains[i].pipeline, pipeline) == 0) return &x->chains[i];
    FZ_GROW(x->chains, x->n_chains, x->cap_chains);
    x->chains[x->n_chains] = (audit_chain){.pipeline = pipeline};
    return &x->chains[x->n_chains++];
}

/* splits is sorted by key: a topic may have thousands, and each commit names them all. */
static uint32_t place_of(const audit_chain *c, const job_split_key *key) {
    uint32_t lo = 0, hi = c->n_splits;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (job_split_key_cmp(&c->splits[mid].key, key) < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
static audit_split *split_of(audit_chain *c, const job_split_key *key) {
    uint32_t i = place_of(c, key);
    return i < c->n_splits && job_split_key_cmp(&c->splits[i].key, key) == 0 ? &c->splits[i] : NULL;
}
static audit_split *new_split(audit_chain *c, const job_split_key *key, int64_t at) {
    FZ_GROW(c->splits, c->n_splits, c->cap_splits);
    uint32_t i = place_of(c, key);
    memmove(&c->splits[i + 1], &c->splits[i], (c->n_splits - i) * sizeof *c->splits);
    c->n_splits++;
    c->splits[i] = (audit_split){.key = *key, .begin = at, .next = at};
    return &c->splits[i];
}

/* A split that was retired begins anew. */
static void come_back(audit_split *s, int64_t at) {
    if (s->retired) s->begin = s->next = at;
    s->retired = s->gone = false;
}

static int by_key_and_start(const void *p, const void *q) {
    const job_range *a = p, *b = q;
    int c = job_split_key_cmp(&a->key, &b->key);
    return c ? c : (a->from > b->from) - (a->from < b->from);
}

static void check_range(audit *x, audit_chain *c, const audit_step *p, const job_range *r) {
    long long id = (long long)p->s->id;
    const char *name = job_split_text(x->a, &r->key);
    audit_split *s = split_of(c, &r->key);
    if (r->to < r->from) audit_fail(x, "audit.range", "snapshot %lld, split %s: the range [%lld, %lld) runs backwards", id, name, (long long)r->from, (long long)r->to);
    if (s) come_back(s, r->from);
    if (!s) s = new_split(c, &r->key, r->from);
    else if (s->next != r->from && p->marks.new_chain)
        audit_warn(x, "audit.new-chain", "snapshot %lld, split %s: the chain was begun anew at %lld on purpose; it had reached %lld", id, name, (long long)r->from, (long long)s->next);
    else if (s->next < r->from)
        audit_fail(x, "audit.gap", "snapshot %lld, split %s: the range [%lld, %lld) does not follow on %lld: %lld positions are missing", id, name, (long long)r->from, (long long)r->to,
                   (long long)s->next, (long long)(r->from - s->next));
    else if (s->next > r->from)
        audit_fail(x, "audit.overlap", "snapshot %lld, split %s: the range [%lld, %lld) begins before %lld: %lld positions are in the table twice", id, name, (long long)r->from,
                   (long long)r->to, (long long)s->next, (long long)(s->next - r->from));
    uint64_t fates = r->added + r->filtered + r->rejected + r->unparseable + r->diverted;
    if (r->read * r->paths != fates)
        audit_fail(x, "audit.fates", "snapshot %lld, split %s: %llu records read by %u paths, but %llu added, %llu filtered, %llu rejected, %llu unparseable and %llu diverted", id, name,
                   (unsigned long long)r->read, r->paths, (unsigned long long)r->added, (unsigned long long)r->filtered, (unsigned long long)r->rejected, (unsigned long long)r->unparseable, (unsigned long long)r->diverted);
    if (r->read > (uint64_t)(r->to > r->from ? r->to - r->from : 0))
        audit_fail(x, "audit.range", "snapshot %lld, split %s: %llu records read from the range [%lld, %lld)", id, name, (unsigned long long)r->read, (long long)r->from, (long long)r->to);
    s->next = r->to;
    s->read += r->read;
    s->added += r->added;
    s->filtered += r->filtered;
    s->rejected += r->rejected;
    s->unparseable += r->unparseable;
    s->diverted += r->diverted;
    s->commits++;
}

static void check_positions(audit *x, audit_chain *c, const audit_step *p) {
    long long id = (long long)p->s->id;
    for (uint32_t i = 0; i < p->marks.n_positions; i++) {
        const job_position *pos = &p->marks.positions[i];
        audit_split *s = split_of(c, &pos->key);
        if (s) {
            come_back(s, pos->next);
            s->gone = pos->gone_ms != 0;
        }
        if (!s) new_split(c, &pos->key, pos->next)->gone = pos->gone_ms != 0;
        else if (s->next != pos->next && p->marks.new_chain) {
            audit_warn(x, "audit.new-chain", "snapshot %lld, split %s: the position was moved on purpose from %lld to %lld", id, job_split_text(x->a, &pos->key), (long long)s->next,
                       (long long)pos->next);
            s->next = pos->next;
        } else if (s->next != pos->next)
            audit_fail(x, "audit.position", "snapshot %lld, split %s: the ranges reach %lld, the position says %lld", id, job_split_text(x->a, &pos->key), (long long)s->next,
                       (long long)pos->next);
    }
    if (p->marks.n_positions == c->n_splits) return; /* keys are distinct, so none is missing */
    for (uint32_t i = 0; i < c->n_splits && !p->marks.new_chain; i++) {
        audit_split *s = &c->splits[i];
        if (s->retired || job_position_find(p->marks.positions, p->marks.n_positions, &s->key)) continue;
        s->retired = s->gone;
        if (!s->gone) audit_fail(x, "audit.position", "snapshot %lld has no position for split %s, which is known to its ancestors", id, job_split_text(x->a, &s->key));
    }
}

/* Does a range of the commit hold the part, and say that it gave rows up? */
static bool in_a_range(const job_marks *m, const job_part *part) {
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const job_range *r = &m->ranges[i];
        if (job_split_key_cmp(&r->key, &part->key) == 0 && r->from <= part->from && part->to <= r->to && r->diverted) return true;
    }
    return false;
}

/* An error object that the commit names and no commit before it. Returns its rows. */
static uint64_t check_new_object(audit *x, const audit_step *p, const job_diverted *o) {
    for (uint32_t i = 0; i < o->n_parts; i++)
        if (!in_a_range(&p->marks, &o->parts[i]))
            audit_fail(x, "audit.diverted", "snapshot %lld: the error object '%s' holds [%lld, %lld) of %s, which no range of the commit gave up", (long long)p->s->id, o->object, (long long)o->parts[i].from,
                       (long long)o->parts[i].to, job_split_text(x->a, &o->parts[i].key));
    return o->rows;
}

/* Does a commit of another pipeline between the two steps (not they themselves) name the object as open? */
static bool named_by_other(const audit *x, const audit_step *after, const audit_step *before, const char *pipeline, const char *object) {
    for (const audit_step *p = after ? after + 1 : x->steps; p < before; p++)
        if (p->ours && strcmp(p->marks.pipeline, pipeline) != 0 && job_diverted_find(p->marks.diverted, p->marks.n_diverted, object)) return true;
    return false;
}
/* frazil.positions = adopt takes over what another pipeline had open. */
static bool is_taken_over(const audit *x, const audit_step *p, const char *object) { return p->marks.new_chain && (x->cut || named_by_other(x, NULL, p, p->marks.pipeline, object)); }

/* Error objects: each is named by the commit that gave its rows up, carried until it is replayed, and replayed once. before: NULL: of the table's first commit; unknown: expiry has cut it off. */
static void check_objects(audit *x, const audit_step *p, const audit_step *before, bool unknown) {
    const job_marks *m = &p->marks, *b = before ? &before->marks : NULL;
    uint64_t given = 0, named = 0;
    for (uint32_t i = 0; i < m->n_ranges; i++) given += m->ranges[i].diverted;
    for (uint32_t i = 0; i < m->n_diverted; i++)
        if (is_taken_over(x, p, m->diverted[i].object)) continue;
        else if (!b || !job_diverted_find(b->diverted, b->n_diverted, m->diverted[i].object)) named += unknown ? 0 : check_new_object(x, p, &m->diverted[i]);
    if (!unknown && named != given)
        audit_fail(x, "audit.diverted", "snapshot %lld: its ranges gave up %llu rows, the error objects that it names hold %llu", (long long)p->s->id, (unsigned long long)given, (unsigned long long)named);
    for (uint32_t i = 0; i < m->n_replayed; i++) {
        bool was_open = unknown || (b && job_diverted_find(b->diverted, b->n_diverted, m->replayed[i].object));
        if (!was_open || job_diverted_find(m->diverted, m->n_diverted, m->replayed[i].object))
            audit_fail(x, "audit.replayed", "snapshot %lld: the error object '%s' was replayed, but %s", (long long)p->s->id, m->replayed[i].object, was_open ? "is still open" : "was not open");
    }
    for (uint32_t i = 0; b && i < b->n_diverted; i++) {
        bool there = job_diverted_find(m->diverted, m->n_diverted, b->diverted[i].object);
        for (uint32_t k = 0; k < m->n_replayed && !there; k++) there = strcmp(m->replayed[k].object, b->diverted[i].object) == 0;
        if (!there && !named_by_other(x, before, p, m->pipeline, b->diverted[i].object)) audit_fail(x, "audit.diverted", "snapshot %lld: the error object '%s' was open and is forgotten: its %llu rows are not in the table", (long long)p->s->id, b->diverted[i].object, (unsigned long long)b->diverted[i].rows);
    }
}

static void count_replayed(audit *x, audit_chain *c, const audit_step *p) {
    uint64_t added = 0;
    for (uint32_t i = 0; i < p->marks.n_replayed; i++) added += p->marks.replayed[i].added;
    if (p->manifests_read && p->marks.n_ranges == 0 && added != (uint64_t)p->added_rows)
        audit_fail(x, "audit.added", "snapshot %lld: the replay of its error objects added %llu rows; its manifests have %lld", (long long)p->s->id, (unsigned long long)added, (long long)p->added_rows);
    c->replayed += p->marks.n_replayed;
    c->replayed_rows += added;
}

static void check_commit(audit *x, const audit_step *p) {
    audit_chain *c = chain_of(x, p->marks.pipeline);
    check_objects(x, p, c->last, !c->last && x->cut);
    if (c->commits++ == 0) c->first_snapshot = p->s->id;
    c->last = p;
    if (p->marks.n_replayed) count_replayed(x, c, p);
    else if (p->marks.n_ranges == 0 && p->added_rows > 0) {
        c->unpositioned++;
        c->unpositioned_rows += (uint64_t)p->added_rows;
    }
    job_range *r = FZ_ANEWN(x->a, job_range, p->marks.n_ranges + 1);
    for (uint32_t i = 0; i < p->marks.n_ranges; i++) r[i] = p->marks.ranges[i];
    qsort(r, p->marks.n_ranges, sizeof *r, by_key_and_start);
    for (uint32_t i = 0; i < p->marks.n_ranges; i++) check_range(x, c, p, &r[i]);
    check_positions(x, c, p);
}

void audit_chains(audit *x) {
    fz_hashset ids = {0};
    for (uint32_t i = 0; i < x->n_steps; i++) {
        const audit_step *p = &x->steps[i];
        if (!p->ours || (x->o->pipeline && strcmp(x->o->pipeline, p->marks.pipeline) != 0)) continue;
        if (!fz_hashset_add(&ids, ops_path_hash(p->marks.commit_id)))
            audit_fail(x, "audit.commit-twice", "the commit %s is in the lineage twice, the second time as snapshot %lld", p->marks.commit_id, (long long)p->s->id);
        check_commit(x, p);
    }
    fz_hashset_free(&ids);
    for (uint32_t i = 0; i < x->n_chains; i++) {
        const job_marks *m = &x->chains[i].last->marks;
        uint32_t *n_open = &x->chains[i].n_open;
        uint64_t rows = 0;
        for (uint32_t k = 0; k < m->n_diverted; k++) {
            if (named_by_other(x, x->chains[i].last, x->steps + x->n_steps, m->pipeline, m->diverted[k].object)) continue;
            rows += m->diverted[k].rows;
            ++*n_open;
        }
        if (*n_open) audit_warn(x, "audit.open", "pipeline '%s': %llu rows lie in %u error objects, for `frazil replay`", m->pipeline, (unsigned long long)rows, *n_open);
    }
    if (x->o->pipeline && x->n_chains == 0) audit_warn(x, "audit.no-commits", "no commit of pipeline '%s' is in the lineage", x->o->pipeline);
}

static bool same_objects(const job_diverted *a, uint32_t n, const job_diverted *b, uint32_t m) {
    for (uint32_t i = 0; i < n; i++)
        if (!job_diverted_find(b, m, a[i].object)) return false;
    return n == m;
}
static bool same_positions(const job_position *a, uint32_t n, const job_position *b, uint32_t m) {
    for (uint32_t i = 0; i < n; i++) {
        const job_position *q = job_position_find(b, m, &a[i].key);
        if (!q || q->next != a[i].next) return false;
    }
    return n == m;
}

void audit_mirrors(audit *x) {
    for (uint32_t i = 0; i < x->n_chains; i++) {
        audit_chain *c = &x->chains[i];
        const char *text = ice_property(x->m, fz_arena_printf(x->a, JOB_MIRROR_PREFIX "%s", c->pipeline), NULL);
        job_mirror m;
        fz_error err;
        if (!text) audit_warn(x, "audit.mirror", "pipeline '%s' has no mirror of its positions in the table's properties", c->pipeline);
        else if (job_mirror_decode(x->a, text, &m, &err) != FZ_OK) audit_fail(x, "audit.mirror", "pipeline '%s': %s", c->pipeline, err.message);
        else if (m.snapshot_id != c->last->s->id)
            audit_warn(x, "audit.mirror", "the mirror of pipeline '%s' was written with snapshot %lld, its newest commit in the lineage is %lld: the table was rolled back", c->pipeline,
                       (long long)m.snapshot_id, (long long)c->last->s->id);
        else if (!same_positions(m.positions, m.n, c->last->marks.positions, c->last->marks.n_positions) || !same_objects(m.diverted, m.n_diverted, c->last->marks.diverted, c->last->marks.n_diverted))
            audit_fail(x, "audit.mirror", "the mirror of pipeline '%s' differs from the positions of snapshot %lld", c->pipeline, (long long)m.snapshot_id);
    }
}
