/* Results as a table (the tableau of Flink's SQL client), as JSON (one object a line) or as CSV.
 *
 * A table's columns are as wide as the widest of the first rows; a live result is printed as it comes. */
#include "cli/cli_int.h"
#include "exec/exec.h"
#include <errno.h>
#include <stdio.h>

enum { WIDTH_ROWS = 10000 }; /* rows that are held back to find widths */

struct cli_printer {
    cli_format format;
    bool chatty;
    FILE *out;
    const col_schema *schema;
    bool live, listing, head_printed;
    uint64_t rows;
    unsigned *width;
    char **cells;       /* held back, row by row */
    size_t n_cells, cap_cells;
};

cli_printer *cli_printer_new(cli_format format, void *stream) {
    cli_printer *p = FZ_NEW(cli_printer);
    p->format = format;
    p->out = stream;
    return p;
}

void cli_printer_set_chatty(cli_printer *p, bool chatty) { p->chatty = chatty; }

static void drop_cells(cli_printer *p) {
    for (size_t i = 0; i < p->n_cells; i++) fz_free(p->cells[i]);
    p->n_cells = 0;
}

void cli_printer_free(cli_printer *p) {
    if (!p) return;
    drop_cells(p);
    fz_free(p->cells);
    fz_free(p->width);
    fz_free(p);
}

static bool wide(uint32_t c) {
    static const uint32_t ranges[][2] = {{0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0x33FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

static bool joins(uint32_t c) { return (c >= 0x300 && c <= 0x36F) || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F) || c == 0x3099 || c == 0x309A; }

unsigned cli_display_width(const char *s, size_t n) {
    unsigned w = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c = fz_utf8_next(s, n, &i);
        w += joins(c) ? 0 : wide(c) ? 2 : 1;
    }
    return w;
}

static fz_status written(cli_printer *p, fz_error *err) {
    if (!ferror(p->out)) return FZ_OK;
    if (errno == EPIPE) return fz_fail(err, FZ_FATAL, CLI_OUTPUT_CLOSED, "the reader of the result has gone");
    return fz_fail(err, FZ_FATAL, "output.write", "the result cannot be written");
}

/* ---- table ---- */

static void put_line(cli_printer *p) {
    for (uint32_t c = 0; c < p->schema->n; c++) {
        fputs(c ? "-+-" : "+-", p->out);
        for (unsigned k = 0; k < p->width[c]; k++) fputc('-', p->out);
    }
    fputs("-+\n", p->out);
}

static void put_cells(cli_printer *p, char *const *cells) {
    for (uint32_t c = 0; c < p->schema->n; c++) {
        unsigned w = cli_display_width(cells[c], strlen(cells[c]));
        fputs("| ", p->out);
        for (; w < p->width[c]; w++) fputc(' ', p->out);
        fputs(cells[c], p->out);
        fputc(' ', p->out);
    }
    fputs("|\n", p->out);
}

static void print_held(cli_printer *p) {
    uint32_t n = p->schema->n;
    if (!p->head_printed) {
        for (size_t i = 0; i < p->n_cells; i++) {
            unsigned w = cli_display_width(p->cells[i], strlen(p->cells[i]));
            if (w > p->width[i % n]) p->width[i % n] = w;
        }
        char **names = fz_calloc(n ? n : 1, sizeof *names);
        for (uint32_t c = 0; c < n; c++) names[c] = (char *)(uintptr_t)p->schema->fields[c].name;
        put_line(p);
        put_cells(p, names);
        put_line(p);
        fz_free(names);
        p->head_printed = true;
    }
    for (size_t i = 0; i < p->n_cells; i += n) put_cells(p, &p->cells[i]);
    drop_cells(p);
}

/* Line ends and other control characters would tear the frame: they are shown as escapes. */
static char *shown(const char *s, size_t n) {
    fz_buf b = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\n') fz_buf_puts(&b, "\\n");
        else if (c == '\r') fz_buf_puts(&b, "\\r");
        else if (c == '\t') fz_buf_puts(&b, "\\t");
        else if (c < 0x20 || c == 0x7F) fz_buf_printf(&b, "\\u%04X", c);
        else fz_buf_putc(&b, (char)c);
    }
    return fz_buf_steal(&b);
}

/* A value as text; bytes as Flink's client shows them: x'00ff'. */
static void value_text(fz_buf *b, const col_vec *v, uint32_t r, const char *tz) {
    if (v->type->kind != COL_BINARY && v->type->kind != COL_VARBINARY) {
        ex_value_text(b, v, r, tz);
        return;
    }
    fz_sv bytes = col_sv(v, r);
    fz_buf_puts(b, "x'");
    for (size_t i = 0; i < bytes.n; i++) fz_buf_printf(b, "%02x", (unsigned char)bytes.p[i]);
    fz_buf_putc(b, '\'');
}

static void hold_row(cli_printer *p, const col_batch *b, uint32_t r, const char *tz) {
    fz_buf text = {0};
    for (uint32_t c = 0; c < b->n_cols; c++) {
        FZ_GROW(p->cells, p->n_cells, p->cap_cells);
        text.len = 0;
        if (!col_is_null(b->cols[c], r)) value_text(&text, b->cols[c], r, tz);
        else if (!p->listing) fz_buf_puts(&text, "<NULL>");
        p->cells[p->n_cells++] = shown(text.len ? (const char *)text.data : "", text.len);
    }
    fz_buf_free(&text);
}

/* ---- JSON, CSV ---- */

static void json_row(fz_buf *line, const col_batch *b, uint32_t r, const char *tz) {
    for (uint32_t c = 0; c < b->n_cols; c++) {
        const char *name = b->schema->fields[c].name;
        fz_buf_putc(line, c ? ',' : '{');
        fz_buf_json(line, name, strlen(name));
        fz_buf_putc(line, ':');
        if (col_is_null(b->cols[c], r)) fz_buf_puts(line, "null");
        else ex_value_json(line, b->cols[c], r, tz);
    }
    fz_buf_puts(line, b->n_cols ? "}\n" : "{}\n");
}

static void csv_cell(fz_buf *line, const char *s, size_t n) {
    bool quote = n == 0; /* an empty text, where NULL is nothing at all */
    for (size_t i = 0; i < n && !quote; i++) quote = s[i] == ',' || s[i] == '"' || s[i] == '\n' || s[i] == '\r';
    if (!quote) {
        fz_buf_append(line, s, n);
        return;
    }
    fz_buf_putc(line, '"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"') fz_buf_putc(line, '"');
        fz_buf_putc(line, s[i]);
    }
    fz_buf_putc(line, '"');
}

static void csv_row(fz_buf *line, fz_buf *cell, const col_batch *b, uint32_t r, const char *tz) {
    for (uint32_t c = 0; c < b->n_cols; c++) {
        if (c) fz_buf_putc(line, ',');
        if (col_is_null(b->cols[c], r)) continue;
        cell->len = 0;
        value_text(cell, b->cols[c], r, tz);
        csv_cell(line, cell->len ? (const char *)cell->data : "", cell->len);
    }
    fz_buf_putc(line, '\n');
}

/* ---- the output of a session ---- */

static fz_status begin(void *cx, const col_schema *s, bool live, bool listing, fz_error *err) {
    cli_printer *p = cx;
    drop_cells(p);
    p->schema = s;
    p->live = live;
    p->listing = listing;
    p->head_printed = false;
    p->rows = 0;
    p->width = fz_realloc(p->width, (s->n + 1) * sizeof *p->width);
    for (uint32_t c = 0; c < s->n; c++) p->width[c] = cli_display_width(s->fields[c].name, strlen(s->fields[c].name));
    if (p->format == CLI_CSV) {
        fz_buf line = {0};
        for (uint32_t c = 0; c < s->n; c++) {
            if (c) fz_buf_putc(&line, ',');
            csv_cell(&line, s->fields[c].name, strlen(s->fields[c].name));
        }
        fprintf(p->out, "%s\n", fz_buf_cstr(&line));
        fz_buf_free(&line);
    }
    return written(p, err);
}

static fz_status rows(void *cx, const col_batch *b, const char *tz, fz_error *err) {
    cli_printer *p = cx;
    fz_buf line = {0}, cell = {0};
    for (uint32_t r = 0; r < b->n_rows; r++) {
        line.len = 0;
        if (p->format == CLI_TABLE) hold_row(p, b, r, tz);
        else if (p->format == CLI_JSON) json_row(&line, b, r, tz);
        else csv_row(&line, &cell, b, r, tz);
        if (line.len) fwrite(line.data, 1, line.len, p->out);
        if (p->format == CLI_TABLE && p->schema->n && p->n_cells / p->schema->n >= WIDTH_ROWS) print_held(p);
    }
    fz_buf_free(&line);
    fz_buf_free(&cell);
    p->rows += b->n_rows;
    if (p->live) {
        if (p->format == CLI_TABLE) print_held(p);
        fflush(p->out);
    }
    return written(p, err);
}

static fz_status end(void *cx, fz_error *err) {
    cli_printer *p = cx;
    if (p->format == CLI_TABLE) {
        if (p->rows) {
            print_held(p);
            put_line(p);
        }
        if (p->rows) fprintf(p->out, "%llu row%s in set\n", (unsigned long long)p->rows, p->rows == 1 ? "" : "s");
        else fputs("Empty set\n", p->out);
    }
    fflush(p->out);
    return written(p, err);
}

static fz_status text(void *cx, const char *s, fz_error *err) {
    cli_printer *p = cx;
    fz_buf b = {0};
    if (p->format == CLI_JSON) {
        fz_buf_puts(&b, "{\"result\":");
        fz_buf_json(&b, s, strlen(s));
        fz_buf_putc(&b, '}');
    } else if (p->format == CLI_CSV) {
        fz_buf_puts(&b, "result\n");
        csv_cell(&b, s, strlen(s));
    } else {
        fz_buf_puts(&b, s);
    }
    fprintf(p->out, "%s\n", fz_buf_cstr(&b));
    fz_buf_free(&b);
    fflush(p->out);
    return written(p, err);
}

static void done(void *cx, const char *message) {
    cli_printer *p = cx;
    if (p->chatty) fprintf(p->out, "[INFO] %s\n", message ? message : "Execute statement succeeded.");
}

ses_output cli_printer_output(cli_printer *p) { return (ses_output){p, begin, rows, end, text, done}; }
