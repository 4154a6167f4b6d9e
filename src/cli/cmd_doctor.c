/* `frazil doctor -f job.sql`: could this job run, and if not, which layer is wrong? */
#include "cli/cli_int.h"
#include "job/job.h"
#include "ops/doctor.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Services that are away are not waited for as a job would. */
static void be_brief(void) {
    setenv("AWS_MAX_ATTEMPTS", "2", 0);
    setenv("AWS_METADATA_SERVICE_TIMEOUT", "2", 0);
    fz_log_set_level(FZ_LOG_OFF); /* what is wrong stands in the report */
}

static int refuse(const char *code, const fz_error *e, const ops_doctor_options *o) {
    fz_buf out = {0};
    ops_doctor_refuse(code, e, o, &out);
    fwrite(out.data, 1, out.len, stdout);
    fz_buf_free(&out);
    return JOB_USAGE;
}

static int examine(const conf *settings, const ops_doctor_options *o, const fz_buf *text) {
    ses_script script = {.name = o->script, .text = text->len ? (const char *)text->data : "", .len = text->len};
    ops_plan *plan = NULL;
    fz_error e = {0};
    if (ses_plan_script(settings, &script, &plan, &e) != FZ_OK) return refuse("doctor.script", &e, o);
    fz_log_set_level(FZ_LOG_OFF); /* SET 'frazil.log.level' is the job's */
    fz_buf out = {0};
    bool sound = false;
    ops_doctor(plan, o, &out, &sound);
    fwrite(out.data, 1, out.len, stdout);
    fz_buf_free(&out);
    ses_plan_free(plan);
    return sound ? JOB_DONE : JOB_FAILED;
}

int cli_doctor(const cli_args *a) {
    ops_doctor_options o = {.format = a->format == CLI_JSON ? OPS_JSON : OPS_TEXT, .script = a->files[0], .config = a->config};
    if (a->format == CLI_CSV) {
        fputs("frazil: --format is text or json here\n", stderr);
        return JOB_USAGE;
    }
    fz_buf text = {0};
    if (!cli_read_file(a->files[0], &text)) {
        fprintf(stderr, "%s: error: the script cannot be read: %s [cli.file]\n", a->files[0], strerror(errno));
        fz_buf_free(&text);
        return JOB_USAGE;
    }
    be_brief();
    conf *settings = NULL;
    fz_error e = {0};
    int code;
    if (cli_load_config(a, &settings, &e) != FZ_OK) code = refuse("doctor.settings", &e, &o);
    else {
        fz_log_set_level(FZ_LOG_OFF);
        code = examine(settings, &o, &text);
    }
    conf_free(settings);
    fz_buf_free(&text);
    return code;
}
