/* What the tests of the REST catalog share: a server that follows a script, request by request, and says what else it was asked. */
#ifndef REST_TEST_H
#define REST_TEST_H
#include "cat_test.h"
#include "catalog/rest_int.h"
#include "http_fake.h"

/* want: "POST /v1/x" begins the request line (method, blank, target). */
typedef struct step { const char *want; http_reply r; } step;
typedef struct script { http_fake *f; const step *steps; size_t n; char wrong[400]; } script;
static script sc;

static inline void follow(void *cx, const http_seen *rq, size_t i, http_reply *out) {
    script *s = cx;
    char line[600];
    snprintf(line, sizeof line, "%s %s", rq->method, rq->target);
    *out = (http_reply){.status = 599, .body = "not in the script"};
    if (i < s->n && strncmp(line, s->steps[i].want, strlen(s->steps[i].want)) == 0) *out = s->steps[i].r;
    else if (!s->wrong[0]) snprintf(s->wrong, sizeof s->wrong, "request %zu: %.200s; the script has %.150s", i, line, i < s->n ? s->steps[i].want : "no more");
}

static inline void start(const step *steps, size_t n) {
    sc = (script){.f = http_fake_start(NULL, 0), .steps = steps, .n = n};
    http_fake_handle(sc.f, follow, &sc);
}
#define START(...) do { static step s_[64]; step t_[] = {__VA_ARGS__}; memcpy(s_, t_, sizeof t_); start(s_, sizeof t_ / sizeof *t_); } while (0)
/* Ends the server; every step was asked for, and nothing else. */
static inline void finish(void) {
    size_t n = http_fake_count(sc.f);
    http_fake_stop(sc.f);
    if (sc.wrong[0]) fail_msg("%s", sc.wrong);
    assert_int_equal(n, sc.n);
}
static inline const http_seen *seen(size_t i) { return http_fake_seen(sc.f, i); }
static inline const char *header(size_t i, const char *name) {
    char v[4000];
    return http_fake_header(seen(i), name, v, sizeof v) ? fz_arena_strdup(arena, v) : NULL;
}
/* No name twice, and no Keep-Alive. */
static inline void strict(size_t i) {
    const char *names[64], *p = strstr(seen(i)->head, "\r\n");
    size_t n = 0;
    for (; p && p[2] && strncmp(p, "\r\n\r\n", 4); p = strstr(p + 2, "\r\n")) {
        names[n] = fz_arena_strndup(arena, p + 2, strcspn(p + 2, ":"));
        assert_false(fz_ieq(names[n], "keep-alive"));
        for (size_t k = 0; k < n; k++)
            if (fz_ieq(names[k], names[n])) fail_msg("header %s stands twice", names[n]);
        n++;
    }
}

static inline fz_status rest_try(const fz_pair *more, size_t n, cat_catalog **c) {
    fz_pair o[32] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "rest"}, {.key = "uri", .value = fz_arena_printf(arena, "%s/", http_fake_url(sc.f))}};
    size_t k = 3;
    for (size_t i = 0; i < n; i++) o[k++] = more[i];
    return cat_open("lake", o, k, NULL, c, &err);
}
#define WITH(...) ((const fz_pair[]){__VA_ARGS__}), sizeof((const fz_pair[]){__VA_ARGS__}) / sizeof(fz_pair)
#define P(k, v) {.key = (k), .value = (v)}
static inline cat_catalog *rest_opened(const fz_pair *more, size_t n) {
    cat_catalog *c;
    OK(rest_try(more, n, &c));
    return c;
}

#define NS "/v1/namespaces"
#define PLAIN {"GET /v1/config", {.body = "{\"defaults\": {}, \"overrides\": {}}"}}
/* A server that says that it has HEAD. */
#define ALL_ENDPOINTS "\"GET /v1/{prefix}/namespaces\", \"POST /v1/{prefix}/namespaces\", \"GET /v1/{prefix}/namespaces/{namespace}\", \"HEAD /v1/{prefix}/namespaces/{namespace}\", " \
    "\"DELETE /v1/{prefix}/namespaces/{namespace}\", \"GET /v1/{prefix}/namespaces/{namespace}/tables\", \"POST /v1/{prefix}/namespaces/{namespace}/tables\", " \
    "\"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}\", \"HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}\", " \
    "\"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}\", \"DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}\""
#define MODERN {"GET /v1/config", {.body = "{\"defaults\": {}, \"overrides\": {}, \"endpoints\": [" ALL_ENDPOINTS "]}"}}
#define ERROR_BODY(type, text) "{\"error\": {\"message\": \"" text "\", \"type\": \"" type "\", \"code\": 0}}"
#define NO_TABLE {.status = 404, .body = ERROR_BODY("NoSuchTableException", "Table does not exist: db.t")}

static inline const char *metadata_text(const ice_metadata *m) {
    fz_buf b = {0};
    OK(ice_metadata_encode(m, &b, &err));
    const char *s = fz_arena_strndup(arena, (const char *)b.data, b.len);
    fz_buf_free(&b);
    return s;
}
/* An answer with a table; more: further members, ", \"config\": {...}". */
static inline http_reply table_answer(const ice_metadata *m, const char *location, const char *more) {
    return (http_reply){.body = fz_arena_printf(arena, "{\"metadata-location\": \"%s\", \"metadata\": %s%s}", location, metadata_text(m), more)};
}
static int64_t slept;
static inline void no_sleep(int64_t ms) { slept += ms; }
static inline int rest_setup(void **state) {
    rest_sleep = no_sleep;
    slept = 0;
    unsetenv("SSL_CERT_FILE");
    return setup(state);
}
/* metadata after an append of no file: the snapshot's id is 7000 + n. */
static inline ice_changes add_snapshot(const ice_metadata *m, int64_t id) {
    ice_changes ch = ice_changes_new();
    fz_pair summary = {.key = "operation-note", .value = "x"};
    ice_snapshot s = {.id = id, .parent_id = m->current_snapshot_id, .sequence = m->last_sequence_number + 1, .timestamp_ms = fz_now_ms(), .schema_id = 0,
                      .manifest_list = "s3://b/x/snap.avro", .operation = "append", .n_summary = 1, .summary = &summary};
    ice_assert_uuid(&ch, m->uuid);
    ice_assert_ref(&ch, "main", m->current_snapshot_id);
    ice_update_add_snapshot(&ch, &s);
    ice_update_ref(&ch, "main", id);
    return ch;
}
static inline ice_metadata *applied(const ice_metadata *m, const ice_changes *ch) {
    ice_metadata *out;
    OK(ice_metadata_apply(m, ch, fz_now_ms(), "s3://b/x/metadata/00000-a.metadata.json", &out, NULL, &err));
    return out;
}
#endif
