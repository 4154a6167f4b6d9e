/* The report of an examination: one aligned line a step, more lines where something is wrong; or one JSON object. */
#include "ops/doctor_int.h"
#include <stdio.h>

static const char *const names[] = {"ok", "warn", "FAIL", "skipped"};
static const char *const json_names[] = {"ok", "warn", "fail", "skipped"};

static const char *what_of(const char *code) {
    for (const ops_doctor_code *c = ops_doctor_codes(); c->code; c++)
        if (strcmp(c->code, code) == 0) return c->what;
    return "";
}

static const char *answer_of(const doctor *d, const doc_step *s) {
    if (s->status != OPS_STEP_SKIPPED) return s->answer;
    if (!s->because) return "not asked: the time for the whole examination is up";
    return *s->because->subject ? fz_arena_printf(d->a, "not asked: it rests on %s (%s)", s->because->code, s->because->subject) : fz_arena_printf(d->a, "not asked: it rests on %s", s->because->code);
}

/* ---- JSON ---- */

static void put_json(fz_buf *b, const char *key, const char *value) {
    fz_buf_printf(b, ",\"%s\":", key);
    fz_buf_json(b, value, strlen(value));
}

static void render_json(const doctor *d, const ops_doctor_options *o, fz_buf *b) {
    fz_buf_printf(b, "{\"ok\":%s", doc_sound(d) ? "true" : "false");
    put_json(b, "script", o->script ? o->script : "");
    fz_buf_puts(b, ",\"steps\":[");
    for (const doc_step *s = d->first; s; s = s->next) {
        fz_buf_printf(b, "%s\n{\"code\":\"%s\",\"status\":\"%s\"", s == d->first ? "" : ",", s->code, json_names[s->status]);
        put_json(b, "subject", s->subject);
        put_json(b, "what", what_of(s->code));
        put_json(b, "asked", s->asked);
        put_json(b, "answer", answer_of(d, s));
        put_json(b, "do", s->advice);
        if (s->status == OPS_STEP_SKIPPED && s->because) put_json(b, "because", s->because->code);
        fz_buf_putc(b, '}');
    }
    fz_buf_puts(b, "]}\n");
}

/* ---- text ---- */

static void put_lines(fz_buf *b, const char *label, const char *text) {
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        fz_buf_printf(b, "           %-8s %.*s\n", p == text ? label : "", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void put_step(const doctor *d, const doc_step *s, unsigned width, fz_buf *b) {
    const char *answer = answer_of(d, s);
    size_t n = strcspn(answer, "\n");
    bool long_form = s->status == OPS_STEP_WARN || s->status == OPS_STEP_FAIL;
    bool more = *s->subject || (!long_form && n);
    fz_buf_printf(b, "%-9s%-*s", names[s->status], more ? (int)width : 0, s->code);
    if (*s->subject) fz_buf_printf(b, "  %s", s->subject);
    if (!long_form && n) fz_buf_printf(b, "%s%.*s", *s->subject ? ": " : "  ", (int)n, answer);
    fz_buf_putc(b, '\n');
    if (!long_form) {
        if (answer[n]) put_lines(b, "", answer + n + 1);
        return;
    }
    put_lines(b, "asked:", s->asked);
    put_lines(b, "answer:", answer);
    put_lines(b, "do:", s->advice);
}

static void put_summary(const doctor *d, const ops_doctor_options *o, fz_buf *b) {
    uint32_t count[4] = {0};
    const doc_step *wrong = NULL;
    for (const doc_step *s = d->first; s; s = s->next) {
        count[s->status]++;
        if (s->status == OPS_STEP_FAIL && !wrong) wrong = s;
    }
    fz_buf_printf(b, "\n%s: ", o->script ? o->script : "the script");
    if (wrong) fz_buf_printf(b, "the job cannot run; begin with %s", wrong->code);
    else fz_buf_puts(b, count[OPS_STEP_SKIPPED] ? "not everything could be asked in time" : "the job could run");
    fz_buf_printf(b, " (%u ok, %u warnings, %u failed, %u skipped)\n", count[OPS_STEP_OK], count[OPS_STEP_WARN], count[OPS_STEP_FAIL], count[OPS_STEP_SKIPPED]);
}

void doc_render(const doctor *d, const ops_doctor_options *o, fz_buf *out) {
    unsigned width = 0;
    if (o->format == OPS_JSON) {
        render_json(d, o, out);
        return;
    }
    for (const doc_step *s = d->first; s; s = s->next)
        if (strlen(s->code) > width) width = (unsigned)strlen(s->code);
    for (const doc_step *s = d->first; s; s = s->next) put_step(d, s, width, out);
    put_summary(d, o, out);
}
