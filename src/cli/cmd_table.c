/* Commands that ask one table: audit and inspect. The table's catalog comes from the script of -i. */
#include "cli/cli_int.h"
#include "job/job.h"
#include "ops/ops.h"
#include <stdio.h>

static fz_status audit(const cat_table *t, const cli_args *a, fz_buf *out, int *code, fz_error *err) {
    ops_audit_options o = {.format = a->format == CLI_JSON ? OPS_JSON : OPS_TEXT, .pipeline = a->pipeline, .files = a->check_files};
    ops_verdict v = {0};
    FZ_TRY(ops_audit(t, &o, out, &v, err));
    *code = v.failures ? OPS_UNSOUND : OPS_SOUND;
    return FZ_OK;
}

static fz_status inspect(const cat_table *t, const cli_args *a, fz_buf *out, int *code, fz_error *err) {
    unsigned sections = 0;
    for (const char *p = a->show ? a->show : "all"; *p;) {
        char name[32];
        size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), p);
        if (!ops_section_parse(name, &sections)) {
            fz_fail(err, FZ_USER, "cli.section", "there is no section '%s'", name);
            return fz_hint(err, "sections are snapshots, files, partitions, positions, diverted and all");
        }
        p += n + (p[n] == ',');
    }
    *code = JOB_DONE;
    return ops_inspect(t, sections, a->format == CLI_JSON ? OPS_JSON : OPS_TEXT, out, err);
}

static int on_table(const cli_args *a, fz_status (*ask)(const cat_table *t, const cli_args *a, fz_buf *out, int *code, fz_error *err)) {
    int code;
    if (a->format == CLI_CSV) {
        fputs("frazil: --format is table or json here\n", stderr);
        return JOB_USAGE;
    }
    cli_printer *p = cli_printer_new(a->format, stdout);
    ses_output out = cli_printer_output(p);
    ses_session *s = cli_open_session(a, &out, &code);
    cat_catalog *catalog;
    cat_table *t = NULL;
    fz_error err = {0};
    fz_buf report = {0};
    fz_status rc = s ? ses_open_table(s, a->table, &catalog, &t, &err) : FZ_OK;
    if (s && rc == FZ_OK) rc = ask(t, a, &report, &code, &err);
    if (report.len) fwrite(report.data, 1, report.len, stdout);
    if (rc != FZ_OK) {
        cli_print_error(NULL, &err);
        code = JOB_USAGE; /* it could not be made at all */
    }
    fz_buf_free(&report);
    cat_table_free(t);
    ses_free(s);
    cli_printer_free(p);
    return code;
}

int cli_audit(const cli_args *a) { return on_table(a, audit); }
int cli_inspect(const cli_args *a) { return on_table(a, inspect); }
