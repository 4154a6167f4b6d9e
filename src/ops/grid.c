/* See grid.h. */
#include "ops/grid.h"
#include <inttypes.h>

void ops_grid_text(ops_grid *g, const char *s) {
    FZ_GROW(g->cells, g->n_cells, g->cap_cells);
    g->cells[g->n_cells++] = s;
}
void ops_grid_i64(ops_grid *g, int64_t v) { ops_grid_text(g, fz_arena_printf(g->a, "%" PRId64, v)); }

static size_t width_of(const char *s) { return s ? fz_utf8_len(s, strlen(s)) : 4; }

static void put_cell(const ops_grid *g, uint32_t column, const char *s, size_t width, fz_buf *out) {
    size_t pad = width - width_of(s);
    bool last = column + 1 == g->n_columns;
    if (g->numeric[column]) for (; pad > 0; pad--) fz_buf_putc(out, ' ');
    fz_buf_puts(out, s ? s : "NULL");
    if (!last) for (pad += 2; pad > 0; pad--) fz_buf_putc(out, ' ');
}

static void as_table(const ops_grid *g, fz_buf *out) {
    size_t *width = fz_arena_calloc(g->a, g->n_columns, sizeof *width);
    for (uint32_t c = 0; c < g->n_columns; c++) width[c] = width_of(g->columns[c]);
    for (uint32_t i = 0; i < g->n_cells; i++) {
        size_t w = width_of(g->cells[i]);
        if (w > width[i % g->n_columns]) width[i % g->n_columns] = w;
    }
    fz_buf_printf(out, "%s (%u)\n", g->section, g->n_cells / g->n_columns);
    for (uint32_t c = 0; c < g->n_columns; c++) put_cell(g, c, g->columns[c], width[c], out);
    fz_buf_putc(out, '\n');
    for (uint32_t i = 0; i < g->n_cells; i++) {
        put_cell(g, i % g->n_columns, g->cells[i], width[i % g->n_columns], out);
        if (i % g->n_columns + 1 == g->n_columns) fz_buf_putc(out, '\n');
    }
}

static void as_json(const ops_grid *g, fz_buf *out) {
    for (uint32_t i = 0; i < g->n_cells; i++) {
        uint32_t c = i % g->n_columns;
        const char *s = g->cells[i];
        if (c == 0) {
            fz_buf_puts(out, "{\"section\":");
            fz_buf_json(out, g->section, strlen(g->section));
        }
        fz_buf_putc(out, ',');
        fz_buf_json(out, g->columns[c], strlen(g->columns[c]));
        fz_buf_putc(out, ':');
        if (!s) fz_buf_puts(out, "null");
        else if (g->numeric[c]) fz_buf_puts(out, s);
        else fz_buf_json(out, s, strlen(s));
        if (c + 1 == g->n_columns) fz_buf_puts(out, "}\n");
    }
}

void ops_grid_render(ops_grid *g, ops_format format, fz_buf *out) {
    if (format == OPS_JSON) as_json(g, out);
    else as_table(g, out);
    fz_free(g->cells);
    g->cells = NULL;
    g->n_cells = g->cap_cells = 0;
}
