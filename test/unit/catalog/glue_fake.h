/* A Glue of one process: databases and tables in memory, with the API's compare and swap (VersionId), pages of two, and tricks that a test asks for.
 * Imitates AWS Glue's JSON 1.1 protocol (API reference: GetTable, UpdateTable, ...; errors as {"__type", "Message"} with status 400). */
#ifndef GLUE_FAKE_H
#define GLUE_FAKE_H
#include "aws_fake.h"

static inline void reply_error(http_reply *out, int status, const char *code, const char *message) {
    out->status = status ? status : 400;
    out->headers = "Content-Type: application/x-amz-json-1.1\r\n";
    out->body = keep_text(fz_asprintf("{\"__type\":\"%s\",\"Message\":\"%s\"}", code, message ? message : code));
}
static inline const char *table_key(const json_t *in) {
    static char key[600];
    const char *name = str(in, "Name");
    snprintf(key, sizeof key, "%s.%s", str(in, "DatabaseName"), name ? name : str(json_object_get(in, "TableInput"), "Name"));
    return key;
}

static inline json_t *entry_of(const json_t *in, int version) {
    json_t *t = json_deep_copy(json_object_get(in, "TableInput"));
    json_object_set(t, "DatabaseName", json_object_get(in, "DatabaseName"));
    json_object_set_new(t, "CatalogId", json_string("123456789012"));
    json_object_set_new(t, "CreateTime", json_real(1.7e9));
    json_object_set_new(t, "UpdateTime", json_real(1.7e9 + version));
    json_object_set_new(t, "CreatedBy", json_string("arn:aws:sts::123456789012:assumed-role/r/s"));
    json_object_set_new(t, "IsRegisteredWithLakeFormation", json_false());
    json_object_set_new(t, "VersionId", json_sprintf("%d", version));
    return t;
}

/* A page of two values of an object, in the order of their keys' insertion. */
static inline json_t *page_of(const json_t *all, const json_t *in, const char *member, const char *prefix) {
    json_t *list = json_array(), *v, *out;
    const char *key, *token = str(in, "NextToken");
    size_t from = token ? strtoul(token, NULL, 10) : 0, i = 0;
    bool more = false;
    json_object_foreach((json_t *)(uintptr_t)all, key, v) {
        if (!fz_starts(key, prefix)) continue;
        if (i >= from && i < from + 2) json_array_append(list, v);
        more |= i >= from + 2;
        i++;
    }
    out = json_pack("{s:o}", member, list);
    if (more) json_object_set_new(out, "NextToken", json_sprintf("%zu", from + 2));
    return out;
}

static inline void apply_database(const char *op, const json_t *in, http_reply *out) {
    json_t *d = json_object_get(in, "DatabaseInput");
    const char *name = str(in, "Name") ? str(in, "Name") : str(d, "Name");
    json_t *have = name ? json_object_get(fg.spaces, name) : NULL;
    if (!strcmp(op, "GetDatabases")) return reply_json(out, page_of(fg.spaces, in, "DatabaseList", ""));
    if (!strcmp(op, "CreateDatabase")) {
        if (have) return reply_error(out, 400, "AlreadyExistsException", "Database already exists.");
        d = json_deep_copy(d);
        json_object_set_new(d, "CatalogId", json_string("123456789012"));
        json_object_set_new(d, "CreateTime", json_real(1.7e9));
        json_object_set_new(fg.spaces, name, d);
        return reply_json(out, json_object());
    }
    if (!have) return reply_error(out, 400, "EntityNotFoundException", "Database not found.");
    if (!strcmp(op, "GetDatabase")) return reply_json(out, json_pack("{s:O}", "Database", have));
    if (!strcmp(op, "DeleteDatabase")) json_object_del(fg.spaces, name);
    if (!strcmp(op, "UpdateDatabase")) json_object_set(fg.spaces, name, d);
    reply_json(out, json_object());
}

static inline void apply_table(const char *op, const json_t *in, http_reply *out) {
    const char *db = str(in, "DatabaseName");
    if (!json_object_get(fg.spaces, db)) return reply_error(out, 400, "EntityNotFoundException", "Database not found.");
    if (!strcmp(op, "GetTables")) {
        char prefix[300];
        snprintf(prefix, sizeof prefix, "%s.", db);
        return reply_json(out, page_of(fg.tables, in, "TableList", prefix));
    }
    const char *key = table_key(in);
    json_t *have = json_object_get(fg.tables, key);
    if (!strcmp(op, "CreateTable")) {
        if (have) return reply_error(out, 400, "AlreadyExistsException", "Table already exists.");
        json_object_set_new(fg.tables, key, entry_of(in, 0));
        return reply_json(out, json_object());
    }
    if (!have) return reply_error(out, 400, "EntityNotFoundException", "Entity Not Found");
    if (!strcmp(op, "GetTable")) return reply_json(out, json_pack("{s:O}", "Table", have));
    if (!strcmp(op, "DeleteTable")) json_object_del(fg.tables, key);
    if (!strcmp(op, "UpdateTable")) {
        const char *version = str(have, "VersionId");
        if (str(in, "VersionId") && strcmp(str(in, "VersionId"), version)) return reply_error(out, 400, "ConcurrentModificationException", "Update table failed due to concurrent modifications.");
        int next = (int)strtol(version, NULL, 10) + 1;
        json_object_set_new(fg.tables, key, entry_of(in, next));
    }
    reply_json(out, json_object());
}

static inline void fake_apply(const char *op, const json_t *in, http_reply *out) {
    if (strstr(op, "Database")) apply_database(op, in, out);
    else apply_table(op, in, out);
}

static inline void fake_handle(void *cx, const http_seen *rq, size_t index, http_reply *out) {
    (void)cx, (void)index;
    char target[128];
    json_t *in = json_loadb(rq->body, rq->n_body, 0, NULL);
    if (!in || !http_fake_header(rq, "x-amz-target", target, sizeof target) || strncmp(target, "AWSGlue.", 8)) reply_error(out, 400, "UnknownOperationException", "what?");
    else fake_call(target + 8, in, out);
    json_decref(in);
}

static inline const char *current_location(const char *key) { return str(json_object_get(json_object_get(fg.tables, key), "Parameters"), "metadata_location"); }

static inline int fake_setup(void **state) {
    fg.apply = fake_apply;
    fg.error = reply_error;
    return fake_begin(state, fake_handle);
}
static inline int fake_teardown(void **state) { return fake_end(state); }

static inline fz_status open_glue(const fz_pair *more, size_t n, cat_catalog **c) {
    static int number;
    fz_pair o[20] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "glue"}, {.key = "warehouse", .value = fz_arena_printf(arena, "mem://glue%d/wh", number++)},
                     {.key = "glue.endpoint", .value = fg.http->url}, {.key = "client.region", .value = "eu-central-1"}, {.key = "client.access-key-id", .value = "AKIATEST"},
                     {.key = "client.secret-access-key", .value = "secret"}};
    if (n) memcpy(o + 7, more, n * sizeof *more);
    return cat_open("lake", o, 7 + n, NULL, c, &err);
}
#endif
