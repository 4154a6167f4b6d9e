/* `frazil drain`: tells a running job to take in nothing more and to deliver what it has; waits for its end; prints its report. */
#include "cli/cli_int.h"
#include "conf/conf.h"
#include "job/job.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>

/* The one job that runs under the directory, or the one of that name; NULL: said why. */
static char *find_run(const char *dir, const char *pipeline) {
    if (pipeline) return job_run_file(dir, pipeline, ".run");
    DIR *d = opendir(dir);
    char *found = NULL;
    unsigned n = 0;
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (fz_ends(e->d_name, ".run")) {
            n++;
            fz_free(found);
            found = fz_asprintf("%s/%s", dir, e->d_name);
        }
    if (d) closedir(d);
    if (n == 1) return found;
    fz_free(found);
    if (n) fprintf(stderr, "frazil: several jobs run with the state directory %s; name the pipeline\n", dir);
    else fprintf(stderr, "frazil: no job runs with the state directory %s\n", dir);
    return NULL;
}

static bool alive(int64_t pid, uint64_t started) { return kill((pid_t)pid, 0) == 0 && job_process_start(pid) == started; }

static int report(const char *run_path, bool as_json) {
    char *path = fz_asprintf("%.*s.drained", (int)(strlen(run_path) - 4), run_path);
    json_t *r = json_load_file(path, 0, NULL), *d;
    if (!r) fprintf(stderr, "frazil: the job has ended without a report of its drain (%s)\n", path);
    fz_free(path);
    if (!r) return JOB_FAILED;
    size_t i;
    if (as_json) {
        json_dumpf(r, stdout, JSON_COMPACT);
        putchar('\n');
    } else
        json_array_foreach(json_object_get(r, "deliveries"), i, d)
            printf("%s: %s, %" JSON_INTEGER_FORMAT " delivered, %" JSON_INTEGER_FORMAT " filtered, %" JSON_INTEGER_FORMAT " rejected, %" JSON_INTEGER_FORMAT " unparseable, %" JSON_INTEGER_FORMAT " diverted, %" JSON_INTEGER_FORMAT " left\n",
                   json_string_value(json_object_get(d, "delivery")), json_string_value(json_object_get(d, "state")), json_integer_value(json_object_get(d, "delivered")),
                   json_integer_value(json_object_get(d, "filtered")), json_integer_value(json_object_get(d, "rejected")), json_integer_value(json_object_get(d, "unparseable")),
                   json_integer_value(json_object_get(d, "diverted")), json_integer_value(json_object_get(d, "left")));
    json_array_foreach(json_object_get(r, "unread"), i, d) if (!as_json)
        printf("%s: not read by this job, %" JSON_INTEGER_FORMAT " records left; name the table as before, or drain with the old script\n", json_string_value(json_object_get(d, "directory")),
               json_integer_value(json_object_get(d, "records")));
    int code = json_is_true(json_object_get(r, "drained")) ? JOB_DONE : JOB_FAILED;
    json_decref(r);
    return code;
}

int cli_drain(const cli_args *a) {
    conf *c;
    fz_error err;
    if (cli_load_config(a, &c, &err) != FZ_OK) {
        cli_print_error(a->config, &err);
        return JOB_USAGE;
    }
    char *run = find_run(a->state ? a->state : conf_get(c, "frazil.state.dir"), a->topic);
    conf_free(c);
    if (!run) return JOB_USAGE;
    json_t *j = json_load_file(run, 0, NULL);
    int64_t pid = json_integer_value(json_object_get(j, "pid"));
    uint64_t started = (uint64_t)json_integer_value(json_object_get(j, "started"));
    int code = JOB_USAGE;
    json_decref(j);
    if (pid <= 0 || !alive(pid, started)) fprintf(stderr, "frazil: no job runs that %s speaks of\n", run);
    else if (kill((pid_t)pid, SIGUSR1) != 0) fprintf(stderr, "frazil: cannot tell process %" PRId64 " to drain: %s\n", pid, strerror(errno));
    else {
        while (alive(pid, started) && !job_stop_requested()) fz_sleep_ms(50);
        if (job_stop_requested()) fprintf(stderr, "frazil: no longer waiting; the job drains on\n");
        code = job_stop_requested() ? JOB_FAILED : report(run, a->format == CLI_JSON);
    }
    fz_free(run);
    return code;
}
