/* Scripts in sessions: `frazil run`, and what `frazil sql` shares with it. */
#include "cli/cli_int.h"
#include "job/job.h"
#include <errno.h>
#include <stdio.h>

void cli_print_error(const char *file, const fz_error *err) {
    if (strcmp(err->code, CLI_OUTPUT_CLOSED) == 0) return;
    if (file && err->line) fprintf(stderr, "%s:%d:%d: ", file, err->line, err->column);
    else if (file) fprintf(stderr, "%s: ", file);
    else if (err->line) fprintf(stderr, "%d:%d: ", err->line, err->column);
    fprintf(stderr, "error: %s [%s]\n", err->message, err->code);
    if (err->detail[0]) fprintf(stderr, "  detail: %s\n", err->detail);
    if (err->hint[0]) fprintf(stderr, "  hint: %s\n", err->hint);
}

fz_status cli_load_config(const cli_args *a, conf **out, fz_error *err) {
    conf *c = conf_new();
    fz_status rc = a->config ? conf_load_yaml(c, a->config, err) : FZ_OK;
    if (rc == FZ_OK) rc = ses_check_settings(c, err);
    if (rc != FZ_OK) {
        conf_free(c);
        return rc;
    }
    fz_log_level level;
    const char *name = conf_get(c, "frazil.log.level");
    if (name && fz_log_parse_level(name, &level)) fz_log_set_level(level);
    *out = c;
    return FZ_OK;
}

bool cli_read_file(const char *path, fz_buf *b) {
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char part[65536];
    size_t n;
    if (!f) return false;
    while ((n = fread(part, 1, sizeof part, f)) > 0 && b->len <= FZ_MAX_SQL_TEXT) fz_buf_append(b, part, n);
    bool good = !ferror(f);
    if (f != stdin) fclose(f);
    return good;
}

int cli_run_text(ses_session *s, const char *shown_name, const char *text, size_t n, fz_error *err) {
    int code = JOB_DONE;
    ses_script script = {.name = shown_name, .text = text, .len = n};
    fz_status rc = ses_run(s, &script, &code, err);
    if (rc != FZ_OK) cli_print_error(shown_name, err);
    return rc != FZ_OK && code == JOB_DONE ? JOB_FAILED : code;
}

int cli_run_file(ses_session *s, const char *path, bool init_only) {
    fz_buf b = {0};
    fz_error err = {0};
    int code = JOB_DONE;
    if (!cli_read_file(path, &b)) {
        fprintf(stderr, "%s: error: the script cannot be read: %s [cli.file]\n", path, strerror(errno));
        fz_buf_free(&b);
        return JOB_USAGE;
    }
    ses_script script = {.name = strcmp(path, "-") == 0 ? NULL : path, .text = b.len ? (const char *)b.data : "", .len = b.len, .init_only = init_only};
    fz_status rc = ses_run(s, &script, &code, &err);
    if (rc != FZ_OK) cli_print_error(path, &err);
    fz_buf_free(&b);
    return rc != FZ_OK && code == JOB_DONE ? JOB_FAILED : code;
}

ses_session *cli_open_session(const cli_args *a, const ses_output *out, int *code) {
    conf *settings;
    fz_error err = {0};
    if (cli_load_config(a, &settings, &err) != FZ_OK) {
        cli_print_error(a->config, &err);
        *code = JOB_USAGE;
        return NULL;
    }
    ses_session *s = ses_new(settings, out);
    conf_free(settings);
    *code = a->init ? cli_run_file(s, a->init, true) : JOB_DONE;
    if (*code == JOB_DONE) return s;
    ses_free(s);
    return NULL;
}

int cli_run(const cli_args *a) {
    int code = JOB_DONE;
    for (uint32_t i = 0; i < a->n_files && code == JOB_DONE && !job_stop_requested(); i++) {
        cli_printer *p = cli_printer_new(a->format, stdout);
        ses_output out = cli_printer_output(p);
        ses_session *s = cli_open_session(a, &out, &code);
        if (s) code = cli_run_file(s, a->files[i], false);
        ses_free(s);
        cli_printer_free(p);
    }
    return code;
}
