/* Small files of the state directory that are about one table of one pipeline: a line of JSON, and a line with its SHA-256. Replaced as a whole, durably. Threads: any. */
#ifndef JOB_STATE_FILE_H
#define JOB_STATE_FILE_H
#include "base/base.h"
#include <jansson.h>

char *job_state_dir(const char *state_dir, const char *kind);                                                  /* <state dir>/<kind>, absolute; heap */
char *job_state_path(const char *state_dir, const char *kind, const char *pipeline, const char *table);        /* .../<pipeline>/<table>.json */
fz_status job_state_put(const char *path, json_t *root, fz_error *err) FZ_MUST_USE;                            /* takes root */
/* *out NULL with FZ_OK: there is none, or (*damaged) it is not what was written. */
fz_status job_state_get(const char *path, json_t **out, bool *damaged, fz_error *err) FZ_MUST_USE;
#endif
