/* The audit's report, for people and for programs. */
#include "ops/ops_int.h"
#include "ops/time_text.h"
#include <inttypes.h>

static void begin_of_proof(audit *x, fz_buf *b) {
    if (x->n_steps == 0) {
        fz_buf_puts(b, "no snapshot: there is nothing to prove");
        return;
    }
    char when[OPS_TIME_TEXT];
    const ice_snapshot *s = x->steps[0].s;
    ops_time_text(s->timestamp_ms, when);
    if (x->cut && s->parent_id == ICE_NONE) fz_buf_printf(b, "provable from snapshot %" PRId64 " (%s) on; what was before it has expired", s->id, when);
    else if (x->cut)
        fz_buf_printf(b, "provable from snapshot %" PRId64 " (%s) on; snapshot %" PRId64 " before it has expired", s->id, when, s->parent_id);
    else fz_buf_printf(b, "provable from the table's first snapshot %" PRId64 " (%s) on", s->id, when);
}

static void text_fates(const audit_split *s, fz_buf *b) {
    fz_buf_printf(b, "  read %" PRIu64 "  added %" PRIu64 "  filtered %" PRIu64 "  rejected %" PRIu64 "  unparseable %" PRIu64, s->read, s->added, s->filtered, s->rejected, s->unparseable);
    if (s->diverted) fz_buf_printf(b, "  diverted %" PRIu64, s->diverted);
    fz_buf_putc(b, '\n');
}

/* Two listeners of one kind are told apart by their spools' incarnations: the first characters of each. */
static const char *split_name(audit *x, const audit_chain *c, const audit_split *s) {
    const char *name = job_split_text(x->a, &s->key);
    for (uint32_t i = 0; i < c->n_splits; i++)
        if (&c->splits[i] != s && c->splits[i].key.partition == s->key.partition && strcmp(c->splits[i].key.topic, s->key.topic) == 0) {
            const char *colon = strchr(s->key.source, ':');
            return fz_arena_printf(x->a, "%s (%s%.8s)", name, colon ? fz_arena_strndup(x->a, s->key.source, (size_t)(colon + 1 - s->key.source)) : "", colon ? colon + 1 : s->key.source);
        }
    return name;
}

static void text_chain(audit *x, const audit_chain *c, fz_buf *b) {
    audit_split sum = {0};
    fz_buf_printf(b, "pipeline %s: %u commits\n", c->pipeline, c->commits);
    for (uint32_t i = 0; i < c->n_splits; i++) {
        const audit_split *s = &c->splits[i];
        fz_buf_printf(b, "  split %-24s [%" PRId64 ", %" PRId64 ")", split_name(x, c, s), s->begin, s->next);
        text_fates(s, b);
        sum.read += s->read;
        sum.added += s->added;
        sum.filtered += s->filtered;
        sum.rejected += s->rejected;
        sum.unparseable += s->unparseable;
        sum.diverted += s->diverted;
    }
    if (c->n_splits > 0) {
        fz_buf_puts(b, "  all splits:");
        text_fates(&sum, b);
    }
    if (c->replayed) fz_buf_printf(b, "  replayed: %u error objects, %" PRIu64 " rows added\n", c->replayed, c->replayed_rows);
    if (c->unpositioned) fz_buf_printf(b, "  %u commits of one-shot sources added %" PRIu64 " rows; they have no positions\n", c->unpositioned, c->unpositioned_rows);
}

static void text(audit *x, fz_buf *b) {
    fz_buf_printf(b, "table %s, uuid %s\n", cat_ident_text(x->a, &x->t->ident), x->m->uuid ? x->m->uuid : "none");
    begin_of_proof(x, b);
    fz_buf_printf(b, "\nlineage: %u snapshots, %u of them commits of frazil\n", x->v->snapshots, x->v->commits);
    fz_buf_printf(b, "live: %" PRIu64 " data files, %" PRIu64 " rows\n", x->v->live_files, x->v->live_rows);
    for (uint32_t i = 0; i < x->n_chains; i++) text_chain(x, &x->chains[i], b);
    for (uint32_t i = 0; i < x->n_findings; i++)
        fz_buf_printf(b, "%s %s: %s\n", x->findings[i].failure ? "FAIL" : "note", x->findings[i].code, x->findings[i].text);
    if (x->v->failures) fz_buf_printf(b, "audit FAILED: %u failures\n", x->v->failures);
    else fz_buf_puts(b, "audit passed\n");
}

static void json_text(fz_buf *b, const char *key, const char *s) {
    fz_buf_printf(b, "\"%s\":", key);
    if (s) fz_buf_json(b, s, strlen(s));
    else fz_buf_puts(b, "null");
}

static void json_split(const audit_split *s, fz_buf *b) {
    fz_buf_putc(b, '{');
    json_text(b, "source", s->key.source);
    fz_buf_putc(b, ',');
    json_text(b, "topic", s->key.topic);
    fz_buf_printf(b, ",\"partition\":%d,\"from\":%" PRId64 ",\"to\":%" PRId64 ",\"read\":%" PRIu64 ",\"added\":%" PRIu64 ",\"filtered\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"unparseable\":%" PRIu64
                  ",\"diverted\":%" PRIu64 ",\"commits\":%u}", s->key.partition, s->begin, s->next, s->read, s->added, s->filtered, s->rejected, s->unparseable, s->diverted, s->commits);
}

static void json(audit *x, fz_buf *b) {
    fz_buf_putc(b, '{');
    json_text(b, "table", cat_ident_text(x->a, &x->t->ident));
    fz_buf_putc(b, ',');
    json_text(b, "uuid", x->m->uuid);
    fz_buf_printf(b, ",\"passed\":%s,\"complete\":%s", x->v->failures ? "false" : "true", x->v->complete ? "true" : "false");
    if (x->n_steps) fz_buf_printf(b, ",\"first_snapshot\":%" PRId64 ",\"current_snapshot\":%" PRId64, x->steps[0].s->id, x->m->current_snapshot_id);
    fz_buf_printf(b, ",\"snapshots\":%u,\"commits\":%u,\"live_files\":%" PRIu64 ",\"live_rows\":%" PRIu64 ",\"unproved_files\":%" PRIu64 ",\"unproved_rows\":%" PRIu64 ",\"pipelines\":[",
                  x->v->snapshots, x->v->commits, x->v->live_files, x->v->live_rows, x->older_files, x->older_rows);
    for (uint32_t i = 0; i < x->n_chains; i++) {
        const audit_chain *c = &x->chains[i];
        fz_buf_puts(b, i ? ",{" : "{");
        json_text(b, "pipeline", c->pipeline);
        fz_buf_printf(b, ",\"commits\":%u,\"one_shot_commits\":%u,\"one_shot_rows\":%" PRIu64 ",\"replayed_objects\":%u,\"replayed_rows\":%" PRIu64 ",\"open_objects\":%u,\"splits\":[", c->commits, c->unpositioned,
                      c->unpositioned_rows, c->replayed, c->replayed_rows, c->n_open);
        for (uint32_t k = 0; k < c->n_splits; k++) {
            if (k) fz_buf_putc(b, ',');
            json_split(&c->splits[k], b);
        }
        fz_buf_puts(b, "]}");
    }
    fz_buf_puts(b, "],\"findings\":[");
    for (uint32_t i = 0; i < x->n_findings; i++) {
        fz_buf_printf(b, "%s{\"failure\":%s,", i ? "," : "", x->findings[i].failure ? "true" : "false");
        json_text(b, "code", x->findings[i].code);
        fz_buf_putc(b, ',');
        json_text(b, "text", x->findings[i].text);
        fz_buf_putc(b, '}');
    }
    fz_buf_puts(b, "]}\n");
}

void audit_render(audit *x, fz_buf *out) {
    if (x->o->format == OPS_JSON) json(x, out);
    else text(x, out);
}
