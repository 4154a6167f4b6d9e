/* See seen.h. */
#include "job/seen.h"
#include "job/state_file.h"
#include <stdlib.h>

#define VERSION 1

void job_seen_write(const char *state_dir, const char *pipeline, const char *table, const char *uuid, const char *mirror) {
    static fz_log_limit limit;
    fz_error err;
    uint64_t suppressed;
    char *path = job_state_path(state_dir, "seen", pipeline, table);
    json_t *root = json_pack("{s:i, s:s, s:s, s:o}", "version", VERSION, "table", table, "uuid", uuid ? uuid : "", "mirror", json_loads(mirror, 0, NULL));
    if (job_state_put(path, root, &err) != FZ_OK && fz_log_allowed(&limit, 1, 600000, &suppressed)) {
        (void)!fz_context(&err, "what was seen of table %s is not kept: should its catalog be away at the next start, nothing of it is given up before it is back", table);
        fz_log_error(FZ_LOG_WARN, "seen.write", &err);
    }
    fz_free(path);
}

bool job_seen_read(fz_arena *a, const char *state_dir, const char *pipeline, const char *table, const char *uuid, job_mirror *out) {
    char *path = job_state_path(state_dir, "seen", pipeline, table);
    json_t *root;
    bool damaged, ok = false;
    fz_error err;
    if (job_state_get(path, &root, &damaged, &err) != FZ_OK) fz_log_error(FZ_LOG_WARN, "seen.read", &err);
    else if (root) {
        const char *of = json_string_value(json_object_get(root, "uuid"));
        char *mirror = json_dumps(json_object_get(root, "mirror"), JSON_COMPACT);
        ok = json_integer_value(json_object_get(root, "version")) == VERSION && of && strcmp(of, uuid ? uuid : "") == 0 && mirror && job_mirror_decode(a, mirror, out, &err) == FZ_OK;
        free(mirror); /* jansson's own allocation */
    }
    if (damaged) fz_log(FZ_LOG_WARN, "seen.damaged", FZ_KV("path", "%s", path), FZ_KV("reason", "%s", "it is passed over"), NULL);
    json_decref(root);
    fz_free(path);
    return ok;
}
