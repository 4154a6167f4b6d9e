/* Logical types: makers, comparison, Flink's text. See col.h. */
#include "col/col.h"

static const struct { const char *name; unsigned width; } kinds[] = {
    [COL_NULL] = {"NULL", 0},           [COL_BOOLEAN] = {"BOOLEAN", 1},     [COL_TINYINT] = {"TINYINT", 4},
    [COL_SMALLINT] = {"SMALLINT", 4},   [COL_INT] = {"INT", 4},             [COL_BIGINT] = {"BIGINT", 8},
    [COL_FLOAT] = {"FLOAT", 4},         [COL_DOUBLE] = {"DOUBLE", 8},       [COL_DECIMAL] = {"DECIMAL", 16},
    [COL_CHAR] = {"CHAR", 0},           [COL_VARCHAR] = {"VARCHAR", 0},     [COL_BINARY] = {"BINARY", 0},
    [COL_VARBINARY] = {"VARBINARY", 0}, [COL_DATE] = {"DATE", 4},           [COL_TIME] = {"TIME", 4},
    [COL_TIMESTAMP] = {"TIMESTAMP", 8}, [COL_TIMESTAMP_LTZ] = {"TIMESTAMP_LTZ", 8},
    [COL_INTERVAL_MONTH] = {"INTERVAL YEAR TO MONTH", 4}, [COL_INTERVAL_DAY] = {"INTERVAL DAY TO SECOND(3)", 8},
    [COL_ARRAY] = {"ARRAY", 0},         [COL_MAP] = {"MAP", 0},             [COL_ROW] = {"ROW", 0},
};

unsigned col_width(col_kind k) { return kinds[k].width; }

/* Two static rows, nullable and not, for the kinds whose only parameters are fixed ones. */
const col_type *col_simple(col_kind kind, bool nullable) {
#define ROW(n)                                                                                                                  \
    {[COL_NULL] = {.kind = COL_NULL, .nullable = true},      [COL_BOOLEAN] = {.kind = COL_BOOLEAN, .nullable = n},              \
     [COL_TINYINT] = {.kind = COL_TINYINT, .nullable = n},   [COL_SMALLINT] = {.kind = COL_SMALLINT, .nullable = n},            \
     [COL_INT] = {.kind = COL_INT, .nullable = n},           [COL_BIGINT] = {.kind = COL_BIGINT, .nullable = n},                \
     [COL_FLOAT] = {.kind = COL_FLOAT, .nullable = n},       [COL_DOUBLE] = {.kind = COL_DOUBLE, .nullable = n},                \
     [COL_DECIMAL] = {.kind = COL_DECIMAL, .nullable = n, .precision = 10},                                                     \
     [COL_CHAR] = {.kind = COL_CHAR, .nullable = n, .precision = 1},                                                            \
     [COL_VARCHAR] = {.kind = COL_VARCHAR, .nullable = n, .precision = COL_MAX_LENGTH},                                         \
     [COL_BINARY] = {.kind = COL_BINARY, .nullable = n, .precision = 1},                                                        \
     [COL_VARBINARY] = {.kind = COL_VARBINARY, .nullable = n, .precision = COL_MAX_LENGTH},                                     \
     [COL_DATE] = {.kind = COL_DATE, .nullable = n},         [COL_TIME] = {.kind = COL_TIME, .nullable = n},                    \
     [COL_TIMESTAMP] = {.kind = COL_TIMESTAMP, .nullable = n, .precision = 6},                                                  \
     [COL_TIMESTAMP_LTZ] = {.kind = COL_TIMESTAMP_LTZ, .nullable = n, .precision = 6},                                          \
     [COL_INTERVAL_MONTH] = {.kind = COL_INTERVAL_MONTH, .nullable = n}, [COL_INTERVAL_DAY] = {.kind = COL_INTERVAL_DAY, .nullable = n}}
    static const col_type types[2][COL_ROW] = {ROW(false), ROW(true)};
#undef ROW
    return &types[nullable][kind < COL_ARRAY ? kind : COL_NULL];
}
const col_type *col_string(bool nullable) { return col_simple(COL_VARCHAR, nullable); }

const col_type *col_sized(fz_arena *a, col_kind kind, int32_t precision, int32_t scale, bool nullable) {
    col_type *t = FZ_ANEW(a, col_type);
    *t = (col_type){.kind = kind, .nullable = nullable, .precision = precision, .scale = scale};
    return t;
}
static const col_type *nested(fz_arena *a, col_kind kind, const col_field *fields, uint32_t n, bool nullable) {
    col_type *t = FZ_ANEW(a, col_type);
    col_field *f = FZ_ANEWN(a, col_field, n);
    if (n) memcpy(f, fields, n * sizeof *f);
    *t = (col_type){.kind = kind, .nullable = nullable, .n_fields = n, .fields = f};
    return t;
}
const col_type *col_array(fz_arena *a, const col_type *element, bool nullable) {
    return nested(a, COL_ARRAY, &(col_field){"element", element, NULL}, 1, nullable);
}
const col_type *col_map(fz_arena *a, const col_type *key, const col_type *value, bool nullable) {
    col_field f[2] = {{"key", key, NULL}, {"value", value, NULL}};
    return nested(a, COL_MAP, f, 2, nullable);
}
const col_type *col_row(fz_arena *a, const col_field *fields, uint32_t n, bool nullable) { return nested(a, COL_ROW, fields, n, nullable); }
const col_type *col_with_null(fz_arena *a, const col_type *t, bool nullable) {
    if (t->nullable == nullable) return t;
    col_type *c = FZ_ANEW(a, col_type);
    *c = *t;
    c->nullable = nullable;
    return c;
}
const col_type *col_type_clone(fz_arena *a, const col_type *t) {
    col_type *c = FZ_ANEW(a, col_type);
    *c = *t;
    if (t->n_fields) {
        col_field *f = FZ_ANEWN(a, col_field, t->n_fields);
        for (uint32_t i = 0; i < t->n_fields; i++)
            f[i] = (col_field){fz_arena_strdup(a, t->fields[i].name), col_type_clone(a, t->fields[i].type),
                               t->fields[i].comment ? fz_arena_strdup(a, t->fields[i].comment) : NULL};
        c->fields = f;
    }
    return c;
}

bool col_type_eq(const col_type *a, const col_type *b, bool with_nullability) {
    if (a == b) return true;
    if (a->kind != b->kind || a->precision != b->precision || a->scale != b->scale || a->n_fields != b->n_fields) return false;
    if (with_nullability && a->nullable != b->nullable) return false;
    for (uint32_t i = 0; i < a->n_fields; i++) {
        if (a->kind == COL_ROW && strcmp(a->fields[i].name, b->fields[i].name) != 0) return false;
        if (!col_type_eq(a->fields[i].type, b->fields[i].type, with_nullability)) return false;
    }
    return true;
}

static void put_quoted(fz_buf *b, char quote, const char *s) {
    fz_buf_putc(b, quote);
    for (; *s; s++) {
        if (*s == quote) fz_buf_putc(b, quote);
        fz_buf_putc(b, *s);
    }
    fz_buf_putc(b, quote);
}

static void put_fields(fz_buf *b, const col_type *t) {
    for (uint32_t i = 0; i < t->n_fields; i++) {
        if (i) fz_buf_puts(b, ", ");
        if (t->kind == COL_ROW) {
            put_quoted(b, '`', t->fields[i].name);
            fz_buf_putc(b, ' ');
        }
        col_type_text(b, t->fields[i].type);
        if (t->kind == COL_ROW && t->fields[i].comment) {
            fz_buf_putc(b, ' ');
            put_quoted(b, '\'', t->fields[i].comment);
        }
    }
}

void col_type_text(fz_buf *b, const col_type *t) {
    switch (t->kind) {
    case COL_NULL: fz_buf_puts(b, "NULL"); return; /* Flink never says NOT NULL of it */
    case COL_VARCHAR:
    case COL_VARBINARY:
        if (t->precision == COL_MAX_LENGTH) {
            fz_buf_puts(b, t->kind == COL_VARCHAR ? "STRING" : "BYTES");
            break;
        }
        fz_buf_printf(b, "%s(%d)", kinds[t->kind].name, t->precision);
        break;
    case COL_CHAR:
    case COL_BINARY:
    case COL_TIME:
    case COL_TIMESTAMP:
    case COL_TIMESTAMP_LTZ: fz_buf_printf(b, "%s(%d)", kinds[t->kind].name, t->precision); break;
    case COL_DECIMAL: fz_buf_printf(b, "DECIMAL(%d, %d)", t->precision, t->scale); break;
    case COL_ARRAY:
    case COL_MAP:
    case COL_ROW:
        fz_buf_printf(b, "%s<", kinds[t->kind].name);
        put_fields(b, t);
        fz_buf_putc(b, '>');
        break;
    default: fz_buf_puts(b, kinds[t->kind].name);
    }
    if (!t->nullable) fz_buf_puts(b, " NOT NULL");
}

int col_schema_find(const col_schema *s, const char *name) {
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->fields[i].name, name) == 0) return (int)i;
    return -1;
}
