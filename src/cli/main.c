/* frazil: the command line. Arguments, signals, and which command it is; the commands stand beside it. */
#include "cli/cli_int.h"
#include "job/job.h"
#include <signal.h>
#include <sys/resource.h>
#include <stdio.h>

static const char usage_text[] =
    "frazil carries logs into Apache Iceberg tables, exactly once. Its language is Flink SQL.\n"
    "\n"
    "  frazil run FILE...       execute scripts, each in a session of its own; runs until its INSERTs end or SIGTERM/SIGINT comes\n"
    "  frazil sql               the same language as a shell, or with -e SQL, -f FILE\n"
    "  frazil audit TABLE       prove from the table alone that each record was taken once\n"
    "  frazil inspect TABLE     snapshots, files, partitions, positions and open error objects of a table\n"
    "  frazil doctor -f FILE    could this script's job run, and if not, which layer is wrong?\n"
    "  frazil drain [PIPELINE]  tell a running job to take in nothing more and deliver all it has; waits, and reports\n"
    "  frazil replay PREFIX -f FILE   bring in what this script's job gave up to error objects under PREFIX, once\n"
    "  frazil gen KIND          made-up otel, syslog or authlog records on standard output\n"
    "  frazil options [TOPIC]   every setting, option, property and function\n"
    "  frazil --version, frazil COMMAND --help\n"
    "\n"
    "Exit codes: 0 done, 1 usage or script, 2 a source or sink failed, 3 a commit's outcome is unknown (the next start resolves it).\n";

static const char run_text[] =
    "frazil run FILE... [--config FILE] [-i FILE] [--format table|json|csv]\n"
    "  FILE             a script of SQL statements; each file is a session of its own\n"
    "  --config FILE    settings by Flink's names (config.yaml)\n"
    "  -i, --init FILE  SET and DDL statements to execute before each file\n"
    "  --format F       how results of queries are printed (table)\n"
    "SIGTERM and SIGINT take a last checkpoint, commit, and end with code 0; what is stuck is tried for frazil.stop.timeout (10 s), then left where it is kept: code 2.\n";

static const char sql_text[] =
    "frazil sql [-e SQL] [-f FILE] [-i FILE] [--format table|json|csv] [--config FILE]\n"
    "  -e SQL           execute statements (may be given again); without -e and -f: a shell\n"
    "  -f, --file FILE  execute a script\n"
    "  -i, --init FILE  SET and DDL statements to execute first\n"
    "  --format F       table, json (one object a line) or csv\n"
    "  --config FILE    settings by Flink's names (config.yaml)\n";

static const char audit_text[] =
    "frazil audit TABLE [-i FILE] [--config FILE] [--format table|json] [--pipeline NAME] [--files]\n"
    "  TABLE            catalog.database.table\n"
    "  -i, --init FILE  the script that makes the catalog (SET and DDL statements)\n"
    "  --pipeline NAME  only the chain of this pipeline\n"
    "  --files          also ask the store for each live data file and its size\n"
    "Ends with 0 when the chain of ranges and counts holds, with 2 when it does not, with 1 when it could not be read.\n";

static const char inspect_text[] =
    "frazil inspect TABLE [-i FILE] [--config FILE] [--format table|json] [--show SECTIONS]\n"
    "  TABLE            catalog.database.table\n"
    "  -i, --init FILE  the script that makes the catalog (SET and DDL statements)\n"
    "  --show SECTIONS  some of snapshots,files,partitions,positions,diverted (all)\n";

static const char doctor_text[] =
    "frazil doctor -f FILE [-c FILE] [--format text|json]\n"
    "  -f, --file FILE  the script of the job; it is not executed\n"
    "  -c, --config FILE  settings by Flink's names (config.yaml)\n"
    "Asks layer by layer what the job needs: settings, region, credentials, endpoints, Kafka, catalog, Lake Formation, tables, objects, positions. Makes nothing but probe\n"
    "objects, which it removes. Ends with 0 when the job could run, with 2 when it could not, with 1 when the script or the settings are wrong.\n";

static const char drain_text[] =
    "frazil drain [PIPELINE] [--state DIR] [--config FILE] [--format text|json]\n"
    "  PIPELINE         pipeline.name of the job; needed when several run with one state directory\n"
    "  --state DIR      its frazil.state.dir (that of --config, else frazil-state)\n"
    "Ends when the job has: with 0 when nothing is left, with 2 when something is.\n";

static const char replay_text[] =
    "frazil replay PREFIX -f FILE [-c FILE] [--format text|json]\n"
    "  PREFIX           of error objects: s3://bucket/errors/, file:///dir/ or a path\n"
    "  -f, --file FILE  the script of the job; its INSERTs are not run\n"
    "  -c, --config FILE  settings by Flink's names (config.yaml)\n"
    "Takes only objects that a table, or the records of an archive or of CloudWatch Logs, name as given up and still open; the others are listed. The job may run at the same time. Ends with 0 when nothing\n"
    "under the prefix is left open, with 2 when an object could not be brought in, with 3 when a commit's outcome is unknown (the next replay finds out), with 1 when the script is wrong.\n";

static const char gen_text[] =
    "frazil gen otel|syslog|authlog [--count N] [--rate N] [--seed N]\n"
    "  --count N        records (no end)\n"
    "  --rate N         records a second (as fast as they are taken)\n"
    "  --seed N         the same seed draws the same records (1)\n";

static const char options_text[] = "frazil options [settings|connectors|formats|catalogs|tables|functions|metrics|doctor]\n"
                                   "  prints reference tables (Markdown); without a topic all of them\n";

typedef struct command { const char *name; int (*run)(const cli_args *a); const char *help; int (*check)(const cli_args *a); } command;

static int complain(const char *what, const char *value) {
    fprintf(stderr, "frazil: %s%s%s\nTry 'frazil --help'.\n", what, value ? " " : "", value ? value : "");
    return JOB_USAGE;
}

static int need_files(const cli_args *a) { return a->n_files ? 0 : complain("run needs at least one script", NULL); }
static int need_one_file(const cli_args *a) { return a->n_files == 1 ? 0 : complain(a->n_files ? "doctor looks at one script at a time" : "doctor needs a script: -f FILE", NULL); }
static int need_table(const cli_args *a) { return a->table ? 0 : complain("a table's name is missing", NULL); }
static int need_kind(const cli_args *a) { return a->topic ? 0 : complain("gen needs a kind: otel, syslog or authlog", NULL); }
static int need_prefix(const cli_args *a) {
    if (!a->topic) return complain("replay needs a prefix of error objects", NULL);
    return a->n_files == 1 ? 0 : complain("replay needs the job's script: -f FILE", NULL);
}
static int nothing_more(const cli_args *a) {
    (void)a;
    return 0;
}

static const command commands[] = {{"run", cli_run, run_text, need_files},       {"sql", cli_sql, sql_text, nothing_more},
                                   {"audit", cli_audit, audit_text, need_table}, {"inspect", cli_inspect, inspect_text, need_table},
                                   {"doctor", cli_doctor, doctor_text, need_one_file}, {"options", cli_options, options_text, nothing_more}, {"gen", cli_gen, gen_text, need_kind}, {"drain", cli_drain, drain_text, nothing_more}, {"replay", cli_replay, replay_text, need_prefix}, {NULL, NULL, NULL, NULL}};

static bool parse_format(const char *v, cli_format *out) {
    static const char *const names[] = {"table", "json", "csv"};
    if (strcmp(v, "text") == 0) return *out = CLI_TABLE, true;
    for (int i = 0; i < 3; i++)
        if (strcmp(v, names[i]) == 0) return *out = (cli_format)i, true;
    return false;
}

/* An argument that is no option. */
static int positional(const command *c, cli_args *a, const char *v) {
    if (strcmp(c->name, "run") == 0 || strcmp(c->name, "doctor") == 0) a->files[a->n_files++] = v;
    else if (c->check == need_table && !a->table) a->table = v;
    else if ((strcmp(c->name, "options") == 0 || strcmp(c->name, "gen") == 0 || strcmp(c->name, "drain") == 0 || strcmp(c->name, "replay") == 0) && !a->topic) a->topic = v;
    else return complain("unexpected argument", v);
    return 0;
}

/* "--name value", "--name=value", "-n value". *taken: how many of argv were used; 0: not this option. */
static const char *option_value(char **argv, int argc, const char *name, const char *brief, int *taken) {
    size_t n = strlen(name);
    *taken = 0;
    if (strcmp(argv[0], name) == 0 || (brief && strcmp(argv[0], brief) == 0)) {
        *taken = argc > 1 ? 2 : 1;
        return argc > 1 ? argv[1] : NULL;
    }
    if (strncmp(argv[0], name, n) == 0 && argv[0][n] == '=') {
        *taken = 1;
        return argv[0] + n + 1;
    }
    return NULL;
}

/* Options with a value: where it goes, and for which commands it is. */
typedef enum { O_CONFIG, O_INIT, O_FORMAT, O_FILE, O_EXECUTE, O_PIPELINE, O_SHOW, O_HOW_MANY, O_RATE, O_SEED, O_STATE, O_COUNT } option_id;
static const struct { const char *name, *brief, *commands; } options[O_COUNT] = {
    {"--config", "-c", "run sql audit inspect doctor drain replay"}, {"--init", "-i", "run sql audit inspect"}, {"--format", NULL, "run sql audit inspect doctor drain replay"}, {"--file", "-f", "sql doctor replay"},
    {"--execute", "-e", "sql"}, {"--pipeline", NULL, "audit"}, {"--show", NULL, "inspect"}, {"--count", NULL, "gen"}, {"--rate", NULL, "gen"}, {"--seed", NULL, "gen"}, {"--state", NULL, "drain"}};

static int set_option(cli_args *a, option_id id, const char *v) {
    switch (id) {
    case O_CONFIG:
        if (a->config) return complain("--config is given twice", NULL);
        a->config = v;
        break;
    case O_INIT:
        if (a->init) return complain("--init is given twice", NULL);
        a->init = v;
        break;
    case O_FORMAT: return parse_format(v, &a->format) ? 0 : complain("--format is table, json or csv, not", v);
    case O_FILE: a->files[a->n_files++] = v; break;
    case O_EXECUTE: a->statements[a->n_statements++] = v; break;
    case O_PIPELINE: a->pipeline = v; break;
    case O_HOW_MANY: a->count = v; break;
    case O_RATE: a->rate = v; break;
    case O_STATE: a->state = v; break;
    case O_SEED: a->seed = v; break;
    default: a->show = v;
    }
    return 0;
}

static int parse_option(const command *c, cli_args *a, char **argv, int argc, int *taken) {
    for (int id = 0; id < O_COUNT; id++) {
        const char *v = option_value(argv, argc, options[id].name, options[id].brief, taken);
        if (!*taken) continue;
        if (!strstr(options[id].commands, c->name)) return complain("unknown option", argv[0]);
        return v ? set_option(a, (option_id)id, v) : complain("a value is missing after", argv[0]);
    }
    *taken = 1;
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) return a->help = true, 0;
    if (strcmp(argv[0], "--files") == 0 && strcmp(c->name, "audit") == 0) return a->check_files = true, 0;
    return argv[0][0] == '-' && argv[0][1] ? complain("unknown option", argv[0]) : positional(c, a, argv[0]);
}

static volatile sig_atomic_t terminated;
bool cli_terminated(void) { return terminated; }

static void on_signal(int sig) {
    if (sig == SIGTERM) terminated = 1;
    job_request_stop();
}

static void on_drain(int sig) {
    (void)sig;
    job_request_drain();
}

static void install_signals(void) {
    struct sigaction sa = {0};
    sa.sa_handler = on_signal;
    sigaction(SIGTERM, &sa, NULL); /* without SA_RESTART: a read at the prompt ends too */
    sigaction(SIGINT, &sa, NULL);
    sa.sa_handler = on_drain;
    sigaction(SIGUSR1, &sa, NULL);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
}

static int run_command(const command *c, int argc, char **argv) {
    cli_args a = {0};
    a.files = fz_calloc((size_t)argc + 1, sizeof *a.files);
    a.statements = fz_calloc((size_t)argc + 1, sizeof *a.statements);
    int code = 0;
    for (int i = 0, taken; i < argc && !code; i += taken) code = parse_option(c, &a, argv + i, argc - i, &taken);
    if (!code && a.help) fputs(c->help, stdout);
    else if (!code) code = c->check(&a);
    if (!code && !a.help) code = c->run(&a);
    fz_free(a.files);
    fz_free(a.statements);
    return code;
}

/* Connections, spools, logs that are followed: the soft limit of old times (1024, for select) is not for them. */
enum { MOST_FILES = 65536 };
static void raise_files(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == r.rlim_max) return;
    rlim_t was = r.rlim_cur;
    r.rlim_cur = r.rlim_max > MOST_FILES ? MOST_FILES : r.rlim_max;
    if (r.rlim_cur > was) setrlimit(RLIMIT_NOFILE, &r);
}

int main(int argc, char **argv) {
    fz_error err;
    install_signals();
    raise_files();
    if (fz_fault_init(&err) != FZ_OK) {
        cli_print_error(NULL, &err);
        return JOB_USAGE;
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(usage_text, argc < 2 ? stderr : stdout);
        return argc < 2 ? JOB_USAGE : JOB_DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        puts("frazil " FRAZIL_VERSION);
        return JOB_DONE;
    }
    for (const command *c = commands; c->name; c++)
        if (strcmp(argv[1], c->name) == 0) return run_command(c, argc - 2, argv + 2);
    return complain("unknown command", argv[1]);
}
