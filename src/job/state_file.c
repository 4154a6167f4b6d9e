/* See state_file.h. */
#include "job/state_file.h"
#include "aws/aws.h"
#include "fileio/fileio.h"
#include "job/job.h"
#include <stdlib.h>
#include <unistd.h>

#define MAX_FILE ((size_t)256 << 20)

char *job_state_dir(const char *state_dir, const char *kind) {
    char cwd[4096] = "";
    if (state_dir[0] != '/' && !getcwd(cwd, sizeof cwd)) cwd[0] = 0; /* stores want absolute paths */
    return fz_asprintf("%s%s%s/%s", state_dir[0] == '/' ? "" : cwd, state_dir[0] == '/' ? "" : "/", state_dir, kind);
}

char *job_state_path(const char *state_dir, const char *kind, const char *pipeline, const char *table) {
    char *dir = job_state_dir(state_dir, kind), *of_job = job_run_file(dir, pipeline, ""), *path = job_run_file(of_job, table, ".json");
    fz_free(dir);
    fz_free(of_job);
    return path;
}

fz_status job_state_put(const char *path, json_t *root, fz_error *err) {
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL, sum[65];
    if (!text) abort(); /* as without memory: all texts are UTF-8 */
    fz_buf b = {0};
    json_decref(root);
    aws_sha256_hex(text, strlen(text), sum);
    fz_buf_printf(&b, "%s\n%s\n", text, sum);
    free(text); /* jansson's own allocation */
    fz_status rc = fio_put(NULL, path, b.data, b.len, err);
    fz_buf_free(&b);
    return rc;
}

static json_t *whole(const fz_buf *b) {
    const char *text = (const char *)b->data, *lf = b->len ? memchr(text, '\n', b->len) : NULL;
    char sum[65];
    if (!lf || b->len != (size_t)(lf - text) + 66 || lf[65] != '\n') return NULL;
    aws_sha256_hex(text, (size_t)(lf - text), sum);
    return memcmp(sum, lf + 1, 64) == 0 ? json_loadb(text, (size_t)(lf - text), 0, NULL) : NULL;
}

fz_status job_state_get(const char *path, json_t **out, bool *damaged, fz_error *err) {
    fz_buf b = {0};
    fz_error own;
    *out = NULL;
    *damaged = false;
    fz_status rc = fio_read(NULL, path, MAX_FILE, &b, &own);
    if (rc == FZ_OK) *damaged = !(*out = whole(&b));
    else if (strcmp(own.code, "file.not-found") == 0) rc = FZ_OK;
    else *err = own;
    fz_buf_free(&b);
    return rc;
}
