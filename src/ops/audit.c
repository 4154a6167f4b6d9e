/* The audit: its order of work and its findings. What is proved stands in ops.h.
 *
 * Invariants
 *  1. Everything is counted from manifest entries; summaries and ranges are claims that are held against them.
 *  2. A thing that cannot be read is a failure of the audit (audit.unreadable), not the end of it, but for the current manifest list.
 */
#include "ops/ops_int.h"
#include <stdarg.h>
#include <stdio.h>

static void add(audit *x, bool failure, const char *code, const char *fmt, va_list ap) {
    char text[1024];
    vsnprintf(text, sizeof text, fmt, ap);
    FZ_GROW(x->findings, x->n_findings, x->cap_findings);
    x->findings[x->n_findings++] = (audit_finding){failure, code, fz_arena_strdup(x->a, text)};
    if (failure) x->v->failures++;
    else x->v->warnings++;
}
void audit_fail(audit *x, const char *code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    add(x, true, code, fmt, ap);
    va_end(ap);
}
void audit_warn(audit *x, const char *code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    add(x, false, code, fmt, ap);
    va_end(ap);
}

/* The lineage of the current snapshot, oldest first, with the marks of each. */
static void collect(audit *x) {
    uint32_t n = 0;
    for (const ice_snapshot *s = ice_metadata_current(x->m); s && n <= x->m->n_snapshots; s = ice_snapshot_parent(x->m, s, &x->cut)) n++;
    x->steps = FZ_ANEWN(x->a, audit_step, n);
    x->n_steps = n;
    for (const ice_snapshot *s = ice_metadata_current(x->m); s && n > 0; s = ice_snapshot_parent(x->m, s, &x->cut)) {
        audit_step *step = &x->steps[--n];
        fz_error err;
        step->s = s;
        if (job_marks_decode(x->a, s->summary, s->n_summary, &step->marks, &step->ours, &err) != FZ_OK) {
            step->ours = false;
            audit_fail(x, "audit.unreadable", "snapshot %lld: %s", (long long)s->id, err.message);
        }
        x->v->commits += step->ours;
    }
    x->v->snapshots = x->n_steps;
    x->v->complete = !x->cut;
}

fz_status ops_audit(const cat_table *t, const ops_audit_options *o, fz_buf *out, ops_verdict *v, fz_error *err) {
    *v = (ops_verdict){.complete = true};
    audit x = {.a = fz_arena_new(), .t = t, .m = t->metadata, .o = o, .v = v};
    collect(&x);
    fz_status rc = audit_live(&x, err);
    if (rc == FZ_OK) {
        audit_steps(&x);
        audit_chains(&x);
        audit_mirrors(&x);
        audit_render(&x, out);
    }
    for (uint32_t i = 0; i < x.n_chains; i++) fz_free(x.chains[i].splits);
    fz_free(x.chains);
    fz_free(x.findings);
    fz_hashset_free(&x.live);
    fz_hashset_free(&x.removed);
    fz_arena_free(x.a);
    return rc;
}
