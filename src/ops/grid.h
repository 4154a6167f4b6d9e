/* Rows of cells, written as an aligned table or as one JSON object a row. */
#ifndef OPS_GRID_H
#define OPS_GRID_H
#include "ops/ops.h"

typedef struct ops_grid {
    const char *section;          /* headline, and the key "section" */
    uint32_t n_columns;
    const char *const *columns;
    const bool *numeric;          /* (and booleans) right-aligned; bare in JSON */
    fz_arena *a;
    uint32_t n_cells, cap_cells;
    const char **cells;           /* heap; NULL is SQL's NULL */
} ops_grid;

void ops_grid_text(ops_grid *g, const char *s);       /* s is kept as it stands: it must live as long as g */
void ops_grid_i64(ops_grid *g, int64_t v);
void ops_grid_render(ops_grid *g, ops_format format, fz_buf *out); /* and frees the cells */
#endif
