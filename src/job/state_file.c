/* See state_file.h. */
#include "job/state_file.h"
#include "fileio/checked.h"
#include "fileio/fileio.h"
#include "job/job.h"
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
    fz_buf b = {0};
    fio_checked_put(&b, root);
    fz_status rc = fio_put(NULL, path, b.data, b.len, err);
    fz_buf_free(&b);
    return rc;
}

fz_status job_state_get(const char *path, json_t **out, bool *damaged, fz_error *err) {
    fz_buf b = {0};
    fz_error own;
    *out = NULL;
    *damaged = false;
    fz_status rc = fio_read(NULL, path, MAX_FILE, &b, &own);
    if (rc == FZ_OK) *damaged = !(*out = fio_checked_get(b.data, b.len));
    else if (strcmp(own.code, "file.not-found") == 0) rc = FZ_OK;
    else *err = own;
    fz_buf_free(&b);
    return rc;
}
