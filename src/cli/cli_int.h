/* Private to the command line: commands, their arguments, and the printing of results. */
#ifndef CLI_INT_H
#define CLI_INT_H
#include "session/session.h"

typedef enum { CLI_TABLE, CLI_JSON, CLI_CSV } cli_format;

typedef struct cli_args {
    const char *config, *init;
    const char **files;      /* positional arguments of run; -f of sql */
    uint32_t n_files;
    const char **statements; /* -e */
    uint32_t n_statements;
    const char *table;       /* audit, inspect */
    const char *topic;       /* options; gen: the kind of records; replay: the prefix */
    const char *state;       /* drain */
    const char *count, *rate, *seed; /* gen */
    const char *pipeline;    /* audit */
    bool check_files;        /* audit */
    const char *show;        /* inspect */
    cli_format format;
    bool help;
} cli_args;

/* Results on a stream. Threads: one. */
typedef struct cli_printer cli_printer;
cli_printer *cli_printer_new(cli_format format, void *stream /* FILE */);
void cli_printer_free(cli_printer *p);
void cli_printer_set_chatty(cli_printer *p, bool chatty); /* whether statements without a result are acknowledged */
ses_output cli_printer_output(cli_printer *p);
/* Columns that a text takes on a terminal. */
unsigned cli_display_width(const char *s, size_t n);

int cli_run(const cli_args *a);
int cli_sql(const cli_args *a);
int cli_audit(const cli_args *a);
int cli_inspect(const cli_args *a);
int cli_options(const cli_args *a);
int cli_drain(const cli_args *a);
int cli_gen(const cli_args *a);
int cli_doctor(const cli_args *a);
int cli_replay(const cli_args *a);

bool cli_terminated(void); /* SIGTERM has come: a shell ends instead of asking for more */

/* Settings of the process: the file of --config. */
fz_status cli_load_config(const cli_args *a, conf **out, fz_error *err) FZ_MUST_USE;
/* Runs a script file in a session. Errors are printed. Returns the exit code. */
int cli_run_file(ses_session *s, const char *path, bool init_only);
/* A whole script ("-": standard input), up to one byte over the limit; false: errno says why. */
bool cli_read_file(const char *path, fz_buf *b);
int cli_run_text(ses_session *s, const char *shown_name, const char *text, size_t n, fz_error *err);
#define CLI_OUTPUT_CLOSED "output.closed" /* `frazil sql ... | head`: no error worth a line */
/* "file:line:column: message" and what belongs to it, on standard error. */
void cli_print_error(const char *file, const fz_error *err);
/* A session with the init file (-i) executed; NULL: it failed, *code says how. */
ses_session *cli_open_session(const cli_args *a, const ses_output *out, int *code);
#endif
