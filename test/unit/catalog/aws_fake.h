/* What the fakes of AWS services in these tests share: the server, what came, and tricks that a test asks for. */
#ifndef AWS_FAKE_H
#define AWS_FAKE_H
#include "cat_test.h"
#include "http_fake.h"
#include <jansson.h>

typedef enum { TRICK_NONE /* only before and after */, TRICK_ERROR, TRICK_LOST, TRICK_APPLY_LOST, TRICK_APPLY_ERROR } trick_kind;
typedef struct trick {
    const char *op;           /* the next call of this operation */
    trick_kind kind;
    int status;               /* of ERROR and APPLY_ERROR; 0: 400 */
    const char *code, *message;
    void (*before)(void);     /* what happens just before the call is looked at */
    void (*after)(void);      /* ... after it was applied (or not), before the answer */
    int times;                /* 0: once; -1: always */
} trick;

static struct fake {
    http_fake *http;
    json_t *spaces, *tables;  /* databases or namespaces by "db", tables by "db.t" */
    json_t *requests;         /* [{"op", "in"}] in order */
    trick tricks[8];
    int n_tricks;
    char *texts[2048];
    int n_texts;
    void (*error)(http_reply *out, int status, const char *code, const char *message);
    void (*apply)(const char *op, const json_t *in, http_reply *out);
} fg;

static inline const char *keep_text(char *s) {
    if (fg.n_texts < 2048) fg.texts[fg.n_texts++] = s;
    return s;
}
static inline void reply_json(http_reply *out, json_t *j) {
    char *s = json_dumps(j, 0);
    out->body = keep_text(fz_strdup(s));
    free(s);
    json_decref(j);
}
static inline const char *str(const json_t *o, const char *k) { return json_string_value(json_object_get(o, k)); }
static inline trick *find_trick(const char *op) {
    for (int i = 0; i < fg.n_tricks; i++)
        if (fg.tricks[i].times != -2 && !strcmp(fg.tricks[i].op, op)) return &fg.tricks[i];
    return NULL;
}

/* One call, with the trick that waits for it. */
static inline void fake_call(const char *op, const json_t *in, http_reply *out) {
    json_array_append_new(fg.requests, json_pack("{s:s, s:O}", "op", op, "in", in));
    trick t = {0}, *found = find_trick(op);
    if (found) {
        t = *found;
        if (found->times > 1) found->times--;
        else if (found->times != -1) found->times = -2;
    }
    if (t.before) t.before();
    if (t.kind == TRICK_NONE || t.kind == TRICK_APPLY_LOST || t.kind == TRICK_APPLY_ERROR) fg.apply(op, in, out);
    if (t.after) t.after();
    if (t.kind == TRICK_ERROR || t.kind == TRICK_APPLY_ERROR) fg.error(out, t.status, t.code, t.message);
    if (t.kind == TRICK_LOST || t.kind == TRICK_APPLY_LOST) out->close_before = true;
}

static inline void play(trick t) { fg.tricks[fg.n_tricks++] = t; }
static inline void forget_tricks(void) { fg.n_tricks = 0; }
static inline int count_ops(const char *op) {
    int n = 0;
    for (size_t i = 0; i < json_array_size(fg.requests); i++) n += !strcmp(str(json_array_get(fg.requests, i), "op"), op);
    return n;
}
/* The k-th request of op. */
static inline const json_t *request(const char *op, int k) {
    for (size_t i = 0; i < json_array_size(fg.requests); i++)
        if (!strcmp(str(json_array_get(fg.requests, i), "op"), op) && k-- == 0) return json_object_get(json_array_get(fg.requests, i), "in");
    fail_msg("no such request: %s", op);
    return NULL;
}
extern void (*aws_sleep)(int64_t ms);
static inline void no_sleep(int64_t ms) { (void)ms; }

static inline int fake_begin(void **state, void (*handle)(void *, const http_seen *, size_t, http_reply *)) {
    aws_sleep = no_sleep;
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    fg.spaces = json_object();
    fg.tables = json_object();
    fg.requests = json_array();
    fg.n_tricks = fg.n_texts = 0;
    fg.http = http_fake_start(NULL, 0);
    http_fake_handle(fg.http, handle, NULL);
    return setup(state);
}
static inline int fake_end(void **state) {
    http_fake_stop(fg.http);
    json_decref(fg.spaces);
    json_decref(fg.tables);
    json_decref(fg.requests);
    for (int i = 0; i < fg.n_texts; i++) fz_free(fg.texts[i]);
    return teardown(state);
}
#endif
