/* `frazil options`: the reference of settings, options, properties, functions and metrics, in Markdown, printed from the tables that the program itself reads. */
#include "delivery/delivery.h"
#include "cli/cli_int.h"
#include "decode/decode.h"
#include "job/job.h"
#include "ops/doctor.h"
#include "source/source.h"
#include <stdio.h>

static const char *type_name(fz_option_type t) {
    static const char *const names[] = {"string", "boolean", "integer", "number", "duration", "size", "one of", "list"};
    return names[t];
}

/* A cell of a Markdown table: a bar would end it. */
static void cell(const char *s) {
    for (; *s; s++) {
        if (*s == '|') putchar('\\');
        putchar(*s == '\n' ? ' ' : *s);
    }
}

static void put_option(const fz_option *o) {
    printf("| `%s` | ", o->name);
    if (o->type == FZ_OPT_ENUM && o->allowed) cell(o->allowed);
    else fputs(type_name(o->type), stdout);
    printf(" | ");
    if (o->dflt) printf("`%s`", o->dflt);
    printf(" | ");
    if (o->state == FZ_OPT_REFUSED) fputs("Refused: ", stdout);
    if (o->state == FZ_OPT_NO_MEANING) fputs("Without meaning here: ", stdout);
    if (o->doc) cell(o->doc);
    if (o->why) {
        if (o->doc) putchar(' ');
        cell(o->why);
    }
    puts(" |");
}

/* A page of its own begins with a heading of the first rank; within the whole reference all are one rank lower. */
static int rank;
static void heading(int below, const char *title) {
    fputs(rank + below == 1 ? "# " : rank + below == 2 ? "\n## " : "\n### ", stdout);
    puts(title);
}

static void put_table(const char *title, const char *doc, const fz_option *t) {
    if (title) heading(1, title);
    puts("");
    if (doc) printf("%s\n\n", doc);
    puts("| Name | Type | Default | Meaning |\n|---|---|---|---|");
    for (; t && t->name; t++) put_option(t);
}

static void settings(void) {
    heading(0, "Settings");
    puts("\nIn `config.yaml` or by `SET 'key' = 'value'`.");
    put_table(NULL, NULL, conf_options());
}

static void connectors(void) {
    heading(0, "Connectors");
    for (const src_connector_info *c = src_connectors(); c->name; c++) {
        put_table(c->name, c->doc, c->options);
        const src_metadata_column *m = src_metadata_columns(c->name);
        if (!m->key) continue;
        puts("\n| Metadata column | Type |\n|---|---|");
        for (; m->key; m++) printf("| `%s` | `%s` |\n", m->key, m->type);
    }
    for (const dlv_connector_info *d = dlv_connectors(); d->name; d++) put_table(d->name, d->doc, d->options);
}

static void formats(void) {
    heading(0, "Formats");
    for (const dec_format_info *f = dec_formats(); f->name; f++) put_table(f->name, f->doc, f->options);
}

static void catalogs(void) {
    heading(0, "Catalogs");
    puts("\nOptions of `CREATE CATALOG ... WITH (...)`.");
    put_table(NULL, NULL, cat_options());
    put_table("SQL catalog on PostgreSQL",
              "Properties of PostgreSQL's JDBC driver, as options `jdbc.NAME` or, as NAME, in the query of a `jdbc:postgresql:` URI. The query of a\n"
              "`postgresql://` URI takes libpq's connection parameters instead.",
              cat_jdbc_options());
    put_table("REST catalogs", NULL, cat_rest_options());
    put_table("S3", "How files on S3 are reached.", fio_options());
    put_table("AWS clients", "Region, credentials and connections of all AWS services.", aws_options());
}

static void tables(void) {
    heading(0, "Iceberg tables");
    puts("\nProperties of a table, in `CREATE TABLE ... WITH (...)`. Others are kept as they are.");
    put_table(NULL, NULL, ice_table_properties);
    put_table("Options of an INSERT", "In the hint of the target: `INSERT INTO c.db.t /*+ OPTIONS('error.path' = 's3://bucket/errors/') */ SELECT ...`. The options `s3.*` and `client.*` of catalogs may stand beside them and say how the error\n"
              "location is reached; without them the settings `s3.*` do.", job_sink_options());
}

static void functions(void) {
    const sql_fn_info *f;
    uint32_t n = sql_functions(&f);
    heading(0, "Functions");
    puts("\n| Function | Group | Signature | Meaning |\n|---|---|---|---|");
    for (uint32_t i = 0; i < n; i++) {
        printf("| `");
        cell(f[i].name);
        printf("` | %s | ", f[i].group ? f[i].group : "");
        if (f[i].signature) printf("`"), cell(f[i].signature), printf("`");
        printf(" | %s", f[i].available ? "" : "Not available in this version. ");
        if (f[i].doc) cell(f[i].doc);
        puts(" |");
    }
}

static void metrics(void) {
    heading(0, "Metrics");
    puts("\nWhat a running job exports, at `metrics.port` and in the file of `frazil.metrics.path`. Labels have values that follow from the script alone: tables that are read (`source`), targets of\n"
         "INSERTs (`delivery`). Names that begin with `firehose_` are those of Amazon Data Firehose, whose own spelling begins their meaning. The [guide](../guide/metrics.md) says what to look at.");
    puts("\n| Name | Kind | Unit | Labels | Meaning |\n|---|---|---|---|---|");
    static const char *const kinds[] = {"counter", "gauge", "summary"};
    for (int i = 0; i < FZ_M_COUNT; i++) {
        const fz_metric_info *m = fz_metric_describe((fz_metric)i);
        printf("| `%s` | %s | %s | %s | ", m->name, kinds[m->kind], m->unit, m->labels);
        cell(m->help);
        puts(" |");
    }
}

static void doctor(void) {
    heading(0, "Doctor");
    puts("\nSteps of `frazil doctor`, in the order in which they are asked. A step whose ground has failed is skipped.\n\n| Code | What is looked at | What to do when it is red |\n|---|---|---|");
    for (const ops_doctor_code *c = ops_doctor_codes(); c->code; c++) {
        printf("| `%s` | ", c->code);
        cell(c->what);
        fputs(" | ", stdout);
        cell(c->advice);
        puts(" |");
    }
}

int cli_options(const cli_args *a) {
    static const struct { const char *name; void (*print)(void); } topics[] = {{"settings", settings}, {"connectors", connectors}, {"formats", formats}, {"catalogs", catalogs},
                                                                              {"tables", tables}, {"functions", functions}, {"metrics", metrics}, {"doctor", doctor}};
    bool found = false;
    rank = a->topic ? 1 : 2;
    if (!a->topic) puts("# Reference\n\nPrinted by `frazil options`.");
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (!a->topic || strcmp(a->topic, topics[i].name) == 0) {
            topics[i].print();
            found = true;
        }
    if (found) return JOB_DONE;
    fprintf(stderr, "frazil: options has no topic '%s'\nTry 'frazil options --help'.\n", a->topic);
    return JOB_USAGE;
}
