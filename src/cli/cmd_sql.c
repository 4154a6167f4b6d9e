/* `frazil sql`: statements from -e and -f, or a shell that reads them line by line. A statement ends with a semicolon at the end of a line. */
#include "cli/cli_int.h"
#include "job/job.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char banner[] = "frazil " FRAZIL_VERSION ": Flink SQL. Statements end with a semicolon; HELP; for help, QUIT; to leave.\n";

static bool blank(const fz_buf *b) {
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] != ' ' && b->data[i] != '\n' && b->data[i] != '\t' && b->data[i] != '\r') return false;
    return true;
}

/* Errors are printed and the shell goes on; the code is that of the last statement when input is no terminal. */
static int execute(ses_session *s, const fz_buf *b) {
    fz_error err = {0};
    int code = cli_run_text(s, NULL, (const char *)b->data, b->len, &err);
    if (!cli_terminated()) job_reset_stop(); /* an interrupt ends the statement, not the shell */
    if (ses_wants_clear(s)) fputs("\033[H\033[2J", stdout);
    fflush(stdout);
    return code;
}

/* Reads one more line; false: the end of input. An interrupt drops what was typed. */
static bool read_line(fz_buf *typed, bool terminal) {
    char *line = NULL;
    size_t cap = 0;
    errno = 0;
    ssize_t n = getline(&line, &cap, stdin);
    bool interrupted = n < 0 && errno == EINTR;
    if (n > 0) fz_buf_append(typed, line, (size_t)n);
    free(line); /* getline's own allocation */
    if (!interrupted) return n > 0;
    if (!terminal || cli_terminated()) {
        typed->len = 0;
        return false;
    }
    clearerr(stdin);
    job_reset_stop();
    typed->len = 0;
    fputs("\n", stdout);
    return true;
}

static int shell(ses_session *s, bool terminal) {
    fz_buf typed = {0};
    int code = JOB_DONE;
    if (terminal) fputs(banner, stdout);
    while (!ses_wants_quit(s) && !cli_terminated()) {
        if (terminal) {
            fputs(blank(&typed) ? "frazil> " : "      > ", stdout);
            fflush(stdout);
        }
        if (!read_line(&typed, terminal)) break;
        if (blank(&typed)) typed.len = 0;
        if (!typed.len || !sql_complete((const char *)typed.data, typed.len)) continue;
        code = execute(s, &typed);
        typed.len = 0;
        if (code != JOB_DONE && !terminal) break; /* a piped script ends at its first error, as a file does */
    }
    if (!blank(&typed) && !ses_wants_quit(s) && (terminal || code == JOB_DONE)) code = execute(s, &typed);
    if (terminal) fputs("\n", stdout);
    fz_buf_free(&typed);
    return terminal ? JOB_DONE : code;
}

int cli_sql(const cli_args *a) {
    int code;
    bool batch = a->n_files || a->n_statements, terminal = !batch && isatty(STDIN_FILENO);
    cli_printer *p = cli_printer_new(a->format, stdout);
    ses_output out = cli_printer_output(p);
    ses_session *s = cli_open_session(a, &out, &code);
    cli_printer_set_chatty(p, terminal);
    if (s && !batch) code = shell(s, terminal);
    for (uint32_t i = 0; s && code == JOB_DONE && i < a->n_files && !ses_wants_quit(s); i++) code = cli_run_file(s, a->files[i], false);
    for (uint32_t i = 0; s && code == JOB_DONE && i < a->n_statements && !ses_wants_quit(s); i++) {
        fz_error err = {0};
        code = cli_run_text(s, NULL, a->statements[i], strlen(a->statements[i]), &err);
    }
    ses_free(s);
    cli_printer_free(p);
    return code;
}
