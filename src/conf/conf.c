/* See conf.h. */
#include "conf/conf.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

typedef struct entry { char *key, *value; bool warned; } entry;
typedef struct entries { entry *v; size_t n, cap; } entries;
struct conf { entries now, base; };

conf *conf_new(void) { return FZ_NEW(conf); }

static void entries_free(entries *e) {
    for (size_t i = 0; i < e->n; i++) {
        fz_free(e->v[i].key);
        fz_free(e->v[i].value);
    }
    fz_free(e->v);
    *e = (entries){0};
}
static size_t lower_bound(const entries *e, const char *key) {
    size_t lo = 0, hi = e->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (strcmp(e->v[mid].key, key) < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
static entry *lookup(const entries *e, const char *key) {
    size_t i = lower_bound(e, key);
    return i < e->n && strcmp(e->v[i].key, key) == 0 ? &e->v[i] : NULL;
}
static void put(entries *e, const char *key, const char *value) {
    entry *old = lookup(e, key);
    if (old) {
        fz_free(old->value);
        old->value = fz_strdup(value);
        return;
    }
    size_t i = lower_bound(e, key);
    FZ_GROW(e->v, e->n, e->cap);
    memmove(&e->v[i + 1], &e->v[i], (e->n - i) * sizeof *e->v);
    e->v[i] = (entry){.key = fz_strdup(key), .value = fz_strdup(value)};
    e->n++;
}
static void copy(entries *to, const entries *from) {
    entries_free(to);
    for (size_t i = 0; i < from->n; i++) put(to, from->v[i].key, from->v[i].value);
}

conf *conf_clone(const conf *c) {
    conf *r = conf_new();
    copy(&r->now, &c->now);
    copy(&r->base, &c->base);
    return r;
}
void conf_free(conf *c) {
    if (!c) return;
    entries_free(&c->now);
    entries_free(&c->base);
    fz_free(c);
}
void conf_mark_base(conf *c) { copy(&c->base, &c->now); }

fz_status conf_set(conf *c, const char *key, const char *value, fz_error *err) {
    const fz_option *o = fz_option_find(conf_options(), key);
    if (!o) {
        fz_fail(err, FZ_USER, "config.unknown-key", "unknown setting '%s'", key);
        const char *near = fz_option_nearest(conf_options(), key);
        return near ? fz_hint(err, "did you mean '%s'?", near) : FZ_USER;
    }
    if (o->state == FZ_OPT_REFUSED) {
        fz_fail(err, FZ_USER, "config.refused", "setting '%s' cannot be honoured", key);
        return fz_hint(err, "%s", o->why);
    }
    if (o->state == FZ_OPT_USED) FZ_TRY(fz_option_check(o, value, err));
    put(&c->now, key, value);
    return FZ_OK;
}

fz_status conf_reset(conf *c, const char *key, fz_error *err) {
    if (!key) {
        copy(&c->now, &c->base);
        return FZ_OK;
    }
    if (!fz_option_find(conf_options(), key)) return fz_fail(err, FZ_USER, "config.unknown-key", "unknown setting '%s'", key);
    const entry *was = lookup(&c->base, key);
    if (was) {
        put(&c->now, key, was->value);
        return FZ_OK;
    }
    size_t i = lower_bound(&c->now, key);
    if (i < c->now.n && strcmp(c->now.v[i].key, key) == 0) {
        fz_free(c->now.v[i].key);
        fz_free(c->now.v[i].value);
        memmove(&c->now.v[i], &c->now.v[i + 1], (c->now.n - i - 1) * sizeof *c->now.v);
        c->now.n--;
    }
    return FZ_OK;
}

const char *conf_get(const conf *c, const char *key) {
    const entry *e = lookup(&c->now, key);
    if (e) return e->value;
    const fz_option *o = fz_option_find(conf_options(), key);
    return o ? o->dflt : NULL;
}
bool conf_is_set(const conf *c, const char *key) { return lookup(&c->now, key) != NULL; }
bool conf_is(const conf *c, const char *key, const char *value) {
    const char *v = conf_get(c, key);
    return v && fz_ieq(v, value);
}
bool conf_get_bool(const conf *c, const char *key) { return conf_is(c, key, "true"); }
int64_t conf_get_i64(const conf *c, const char *key) {
    const fz_option *o = fz_option_find(conf_options(), key);
    const char *v = conf_get(c, key);
    int64_t r = 0;
    if (!o || !v) return 0;
    fz_status s = o->type == FZ_OPT_DURATION ? fz_parse_duration_ms(v, &r, NULL)
                : o->type == FZ_OPT_SIZE     ? fz_parse_size(v, &r, NULL)
                                             : (fz_parse_i64(fz_sv_of(v), &r) ? FZ_OK : FZ_USER);
    return s == FZ_OK ? r : 0; /* cannot fail: checked when it was set */
}
void conf_each(const conf *c, conf_each_fn fn, void *cx) {
    for (size_t i = 0; i < c->now.n; i++)
        if (!fn(cx, c->now.v[i].key, c->now.v[i].value)) return;
}

void conf_warn_no_meaning(conf *c) {
    for (size_t i = 0; i < c->now.n; i++) {
        entry *e = &c->now.v[i];
        const fz_option *o = fz_option_find(conf_options(), e->key);
        if (!o || o->state != FZ_OPT_NO_MEANING || e->warned) continue;
        e->warned = true;
        fz_log(FZ_LOG_WARN, "config.no-meaning", FZ_KV("key", "%s", e->key), FZ_KV("reason", "%s", o->why), NULL);
    }
}

/* ---- config.yaml ---- */
#define MAX_DEPTH 16
typedef struct yaml_walk { conf *c; const char *path; yaml_parser_t parser; } yaml_walk;

static fz_status yaml_bad(yaml_walk *w, const yaml_event_t *e, fz_error *err, const char *what) {
    fz_fail(err, FZ_USER, "config.syntax", "%s: %s", w->path, what);
    return fz_at(err, (int)e->start_mark.line + 1, (int)e->start_mark.column + 1);
}
static fz_status yaml_next(yaml_walk *w, yaml_event_t *e, fz_error *err) {
    if (yaml_parser_parse(&w->parser, e)) return FZ_OK;
    fz_fail(err, FZ_USER, "config.syntax", "%s: %s", w->path, w->parser.problem ? w->parser.problem : "not YAML");
    return fz_at(err, (int)w->parser.problem_mark.line + 1, (int)w->parser.problem_mark.column + 1);
}

/* A list of scalars becomes 'a;b', Flink's text form of lists. */
static fz_status yaml_list(yaml_walk *w, fz_buf *out, fz_error *err) {
    for (;;) {
        yaml_event_t e;
        FZ_TRY(yaml_next(w, &e, err));
        fz_status rc = FZ_OK;
        bool end = e.type == YAML_SEQUENCE_END_EVENT;
        if (e.type == YAML_SCALAR_EVENT) {
            if (out->len) fz_buf_putc(out, ';');
            fz_buf_append(out, e.data.scalar.value, e.data.scalar.length);
        } else if (!end) rc = yaml_bad(w, &e, err, "a list may hold plain values only");
        yaml_event_delete(&e);
        if (rc != FZ_OK || end) return rc;
    }
}

static fz_status yaml_map(yaml_walk *w, const char *prefix, int depth, fz_error *err);

static fz_status yaml_value(yaml_walk *w, const char *key, int depth, fz_error *err) {
    yaml_event_t e;
    FZ_TRY(yaml_next(w, &e, err));
    fz_buf text = {0};
    fz_status rc = FZ_OK;
    int line = (int)e.start_mark.line + 1, column = (int)e.start_mark.column + 1;
    bool scalar = true;
    if (e.type == YAML_MAPPING_START_EVENT) {
        scalar = false;
        rc = depth < MAX_DEPTH ? yaml_map(w, key, depth + 1, err) : yaml_bad(w, &e, err, "nested too deeply");
    } else if (e.type == YAML_SEQUENCE_START_EVENT) rc = yaml_list(w, &text, err);
    else if (e.type == YAML_SCALAR_EVENT) fz_buf_append(&text, e.data.scalar.value, e.data.scalar.length);
    else rc = yaml_bad(w, &e, err, "anchors and aliases are not supported");
    if (rc == FZ_OK && scalar) {
        rc = conf_set(w->c, key, fz_buf_cstr(&text), err);
        if (rc != FZ_OK) {
            fz_context(err, "%s", w->path);
            fz_at(err, line, column);
        }
    }
    yaml_event_delete(&e);
    fz_buf_free(&text);
    return rc;
}

static fz_status yaml_map(yaml_walk *w, const char *prefix, int depth, fz_error *err) {
    for (;;) {
        yaml_event_t e;
        FZ_TRY(yaml_next(w, &e, err));
        if (e.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&e);
            return FZ_OK;
        }
        if (e.type != YAML_SCALAR_EVENT) {
            fz_status rc = yaml_bad(w, &e, err, "a key must be a plain value");
            yaml_event_delete(&e);
            return rc;
        }
        char *key = fz_asprintf("%s%s%s", prefix, *prefix ? "." : "", (const char *)e.data.scalar.value);
        yaml_event_delete(&e);
        fz_status rc = yaml_value(w, key, depth, err);
        fz_free(key);
        FZ_TRY(rc);
    }
}

static fz_status yaml_document(yaml_walk *w, fz_error *err) {
    for (;;) {
        yaml_event_t e;
        FZ_TRY(yaml_next(w, &e, err));
        yaml_event_type_t t = e.type;
        fz_status rc = FZ_OK;
        if (t == YAML_MAPPING_START_EVENT) rc = yaml_map(w, "", 0, err);
        else if (t == YAML_SEQUENCE_START_EVENT || (t == YAML_SCALAR_EVENT && e.data.scalar.length))
            rc = yaml_bad(w, &e, err, "the document must be a map of settings");
        yaml_event_delete(&e);
        if (rc != FZ_OK || t == YAML_STREAM_END_EVENT) return rc;
    }
}

fz_status conf_load_yaml(conf *c, const char *path, fz_error *err) {
    FILE *f = fopen(path, "rbe");
    if (!f) return fz_fail(err, FZ_USER, "config.unreadable", "%s: %s", path, strerror(errno));
    yaml_walk w = {.c = c, .path = path};
    fz_status rc;
    if (!yaml_parser_initialize(&w.parser)) rc = fz_fail(err, FZ_FATAL, "config.memory", "no memory for the YAML parser");
    else {
        yaml_parser_set_input_file(&w.parser, f);
        rc = yaml_document(&w, err);
        yaml_parser_delete(&w.parser);
    }
    fclose(f);
    return rc;
}
