/* Steps of an examination, and its order. See doctor.h and doctor_int.h. */
#include "ops/doctor_int.h"
#include <stdio.h>

void doc_init(doctor *d, const ops_plan *p) {
    *d = (doctor){.plan = p, .a = fz_arena_new()};
    d->last = &d->first;
    d->deadline_ns = fz_mono_ns() + (int64_t)DOC_WHOLE_MS * 1000000;
}

doc_step *doc_begin(doctor *d, const char *code, const char *subject) {
    doc_step *s = FZ_ANEW(d->a, doc_step);
    *s = (doc_step){.code = code, .subject = subject ? fz_arena_strdup(d->a, subject) : "", .asked = "", .answer = "", .advice = ""};
    *d->last = s;
    d->last = &s->next;
    return s;
}

doc_step *doc_find(const doctor *d, const char *code, const char *subject) {
    for (doc_step *s = d->first; s; s = s->next)
        if (strcmp(s->code, code) == 0 && strcmp(s->subject, subject ? subject : "") == 0) return s;
    return NULL;
}

bool doc_blocked(doctor *d, doc_step *s, const doc_step *on) {
    if (on && !doc_good(on)) {
        s->status = OPS_STEP_SKIPPED;
        s->because = on->status == OPS_STEP_SKIPPED ? on->because : on;
        return true;
    }
    if (fz_mono_ns() < d->deadline_ns) return false;
    s->status = OPS_STEP_SKIPPED;
    return true;
}

static const char *joined(doctor *d, const char *had, const char *fmt, va_list ap) {
    char text[4096];
    vsnprintf(text, sizeof text, fmt, ap);
    return *had ? fz_arena_printf(d->a, "%s\n%s", had, text) : fz_arena_strdup(d->a, text);
}
#define APPEND(field)                                                                                                  \
    do {                                                                                                               \
        va_list ap;                                                                                                    \
        va_start(ap, fmt);                                                                                             \
        s->field = joined(d, s->field, fmt, ap);                                                                       \
        va_end(ap);                                                                                                    \
    } while (0)

void doc_asked(doctor *d, doc_step *s, const char *fmt, ...) { APPEND(asked); }
void doc_ok(doctor *d, doc_step *s, const char *fmt, ...) { APPEND(answer); }
void doc_advise(doctor *d, doc_step *s, const char *fmt, ...) { APPEND(advice); }
void doc_warn(doctor *d, doc_step *s, const char *fmt, ...) {
    if (s->status == OPS_STEP_OK) s->status = OPS_STEP_WARN;
    APPEND(answer);
}
void doc_fail(doctor *d, doc_step *s, const char *fmt, ...) {
    s->status = OPS_STEP_FAIL;
    APPEND(answer);
}

const char *doc_error_text(doctor *d, const fz_error *e) {
    return e->detail[0] ? fz_arena_printf(d->a, "%s [%s]; %s", e->message, e->code, e->detail) : fz_arena_printf(d->a, "%s [%s]", e->message, e->code);
}

void doc_fail_error(doctor *d, doc_step *s, const fz_error *e) {
    doc_fail(d, s, "%s", doc_error_text(d, e));
    if (e->hint[0]) doc_advise(d, s, "%s", e->hint);
}

bool doc_sound(const doctor *d) {
    for (const doc_step *s = d->first; s; s = s->next)
        if (!doc_good(s)) return false;
    return true;
}

/* ---- script and settings ---- */

static void script_step(doctor *d) {
    const ops_plan *p = d->plan;
    doc_step *s = doc_begin(d, "doctor.script", NULL);
    doc_asked(d, s, "parse and bind %u statements", p->n_statements);
    uint32_t n = p->n_inserts + p->n_deliveries;
    doc_ok(d, s, "%u catalog%s, %u source table%s, %u INSERT%s", p->n_catalogs, p->n_catalogs == 1 ? "" : "s", p->n_sources, p->n_sources == 1 ? "" : "s", n, n == 1 ? "" : "s");
    for (uint32_t i = 0; i < p->n_notes; i++) doc_ok(d, s, "%s", p->notes[i]);
    if (n == 0) {
        doc_warn(d, s, "the script has no INSERT: there is no job that could run");
        doc_advise(d, s, "give the script that holds the INSERT statements");
    }
}

typedef struct idle { fz_buf b; uint32_t n; } idle;
static bool note_idle(void *cx, const char *key, const char *value) {
    (void)value;
    idle *i = cx;
    const fz_option *o = fz_option_find(conf_options(), key);
    if (o && o->state == FZ_OPT_NO_MEANING) fz_buf_printf(&i->b, "%s%s", i->n++ ? ", " : "", key);
    return true;
}

void doc_settings(doctor *d) {
    const conf *c = d->plan->settings;
    doc_step *s = doc_begin(d, "doctor.settings", NULL);
    idle i = {0};
    conf_each(c, note_idle, &i);
    doc_asked(d, s, "settings of the process and of SET");
    doc_ok(d, s, "a checkpoint every %lld s, %lld MiB of memory", (long long)(conf_get_i64(c, "execution.checkpointing.interval") / 1000), (long long)(conf_get_i64(c, "memory.limit") >> 20));
    if (i.n) doc_ok(d, s, "known and without meaning here: %s", fz_buf_cstr(&i.b));
    fz_buf_free(&i.b);
}

/* ---- the examination ---- */

void doc_free(doctor *d) {
    for (uint32_t i = 0; d->tables && i < d->plan->n_tables; i++) cat_table_free(d->tables[i].loaded);
    for (uint32_t i = 0; d->catalogs && i < d->plan->n_catalogs; i++) {
        cat_close(d->catalogs[i].cat);
        fio_unref(d->catalogs[i].io);
    }
    fz_arena_free(d->a);
}

/* A red step without advice of its own gets that of its code. */
static void advise_all(doctor *d) {
    for (doc_step *s = d->first; s; s = s->next)
        for (const ops_doctor_code *c = ops_doctor_codes(); !*s->advice && s->status == OPS_STEP_FAIL && c->code; c++)
            if (strcmp(c->code, s->code) == 0) doc_advise(d, s, "%s", c->advice);
}

void ops_doctor(const ops_plan *p, const ops_doctor_options *o, fz_buf *out, bool *sound) {
    doctor d;
    doc_init(&d, p);
    script_step(&d);
    doc_settings(&d);
    doc_catalogs(&d);
    doc_sources(&d);
    doc_unread_spools(&d);
    doc_tables(&d);
    doc_deliveries(&d);
    doc_positions(&d);
    doc_directories(&d);
    doc_metrics_port(&d);
    doc_metrics_cloudwatch(&d);
    advise_all(&d);
    *sound = doc_sound(&d);
    doc_render(&d, o, out);
    doc_free(&d);
}

void ops_doctor_refuse(const char *code, const fz_error *why, const ops_doctor_options *o, fz_buf *out) {
    doctor d;
    doc_init(&d, NULL);
    bool script = strcmp(code, "doctor.script") == 0;
    doc_step *s = doc_begin(&d, code, script ? o->script : o->config);
    doc_asked(&d, s, "%s", script ? "parse and bind the script" : "read the settings");
    if (why->line) doc_fail(&d, s, "line %d, column %d: %s", why->line, why->column, doc_error_text(&d, why));
    else doc_fail(&d, s, "%s", doc_error_text(&d, why));
    doc_advise(&d, s, "%s", why->hint[0] ? why->hint : "correct it; nothing behind it was asked");
    doc_render(&d, o, out);
    doc_free(&d);
}
