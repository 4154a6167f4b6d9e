/* Rows as JSON lines: one object a row, columns in the order of the schema, one LF at its end and nowhere else.
 *
 * Values are written as Flink's JSON format writes them, so that the lines can be read again by a table of the same columns: numbers and DECIMAL as numbers, DATE, TIME and TIMESTAMP as text,
 * TIMESTAMP_LTZ in UTC with a "Z", bytes as base64, NaN and infinities as text. A column that is NULL is left out unless asked for (Firehose hands on what a producer wrote, and producers
 * leave such fields out); inside ROWs NULLs stand.
 *
 * Invariants
 *  1. A dictionary's entries are written once a call, however many rows use them.
 */
#include "col/datetime.h"
#include "col/numtext.h"
#include "delivery/archive_int.h"
#include "exec/exec.h"

typedef struct column { const char *head; uint32_t head_len; } column; /* "name": and behind it a quote, with AHEAD bytes more that may be read */
struct arc_encoder { const col_schema *schema; column *columns; bool with_nulls, iso; };

/* A column of one call: what col_at finds, or the entries of its dictionary as JSON. */
enum { AHEAD = 32 }; /* bytes are copied so many at once, also those behind the last one: faster than by a call */
typedef enum {
    SRC_ANY, SRC_ENTRIES, SRC_TEXT /* flat, or rows chosen from a flat vector */, SRC_PLAIN /* SRC_TEXT without a byte to escape */, SRC_TEXT_MAP /* flat, MAP of flat texts */, SRC_TIME /* flat */,
    SRC_INT /* flat, 32 bits */
} source_kind;
typedef struct source {
    const col_vec *v;
    const char *head;            /* as in column */
    const uint8_t *null_of;      /* 0 for rows that are NULL; NULL: none is, or look_up */
    const uint32_t *idx, *off;
    const char *bytes;           /* SRC_ENTRIES: "name":value, of each; SRC_TEXT, SRC_PLAIN: of the vector, to `end` */
    uint32_t end, head_len;
    source_kind kind;
    bool look_up;                /* col_is_null has to be asked */
    int64_t second;
    char time[DT_TEXT_MAX + 1];  /* SRC_TIME: the text of `second`, with its quote */
    size_t n_time;
} source;
struct arc_lines { const arc_encoder *e; source *src; uint32_t n_src; fz_buf entries; }; /* without columns that have nothing to write */

static void value(fz_buf *b, const col_vec *v, uint32_t row, bool iso);

static size_t second_text(int64_t second, bool iso, char *out) {
    out[0] = '"';
    size_t n = 1 + dt_timestamp_text(second * DT_US_PER_SECOND, 0, out + 1);
    char *blank = iso ? memchr(out, ' ', n) : NULL;
    if (blank) *blank = 'T';
    return n;
}

/* v is flat; an instant is in UTC as it stands. start: the text of its second. */
static void end_time(fz_buf *b, const col_vec *v, uint32_t row, const char *start, size_t n) {
    char text[DT_TEXT_MAX + 16];
    uint32_t us = (uint32_t)(v->i64[row] - dt_floor_div(v->i64[row], DT_US_PER_SECOND) * DT_US_PER_SECOND), unit = 100000;
    memcpy(text, start, n);
    if (v->type->precision > 0) text[n++] = '.';
    for (int i = 0; i < v->type->precision; i++, unit /= 10) text[n++] = (char)('0' + (unit ? us / unit % 10 : 0));
    if (v->type->kind == COL_TIMESTAMP_LTZ) text[n++] = 'Z';
    text[n++] = '"';
    fz_buf_append(b, text, n);
}
static void time_text(fz_buf *b, const col_vec *v, uint32_t row, bool iso) {
    char start[DT_TEXT_MAX + 1];
    size_t n = second_text(dt_floor_div(v->i64[row], DT_US_PER_SECOND), iso, start);
    end_time(b, v, row, start, n);
}

static void list(fz_buf *b, const col_vec *v, uint32_t row, bool iso) {
    bool map = v->type->kind == COL_MAP;
    fz_buf_putc(b, map ? '{' : '[');
    for (uint32_t k = v->off[row]; k < v->off[row + 1]; k++) {
        if (k > v->off[row]) fz_buf_putc(b, ',');
        if (map) {
            fz_buf key = {0};
            if (col_is_null(v->child[0], k)) fz_buf_puts(&key, "null");
            else ex_value_text(&key, v->child[0], k, "UTC");
            fz_buf_json(b, (const char *)key.data, key.len);
            fz_buf_free(&key);
            fz_buf_putc(b, ':');
        }
        value(b, v->child[map], k, iso);
    }
    fz_buf_putc(b, map ? '}' : ']');
}

static inline void quoted(fz_buf *b, const char *s, size_t n) {
    if (b->cap - b->len < n + 2) fz_buf_reserve(b, n + 2);
    uint8_t *d = b->data + b->len;
    if (fz_json_plain(d + 1, s, n) == n) {
        d[0] = d[n + 1] = '"';
        b->len += n + 2;
    } else fz_buf_json(b, s, n);
}
static inline void text(fz_buf *b, const col_vec *v, uint32_t row) { quoted(b, v->bytes + v->off[row], v->off[row + 1] - v->off[row]); }

static void text_map(fz_buf *b, const col_vec *v, uint32_t row) {
    const col_vec *keys = v->child[0], *values = v->child[1];
    fz_buf_putc(b, '{');
    for (uint32_t k = v->off[row]; k < v->off[row + 1]; k++) {
        if (k > v->off[row]) fz_buf_putc(b, ',');
        text(b, keys, k);
        fz_buf_putc(b, ':');
        if (col_is_null(values, k)) fz_buf_puts(b, "null");
        else text(b, values, k);
    }
    fz_buf_putc(b, '}');
}

static void value(fz_buf *b, const col_vec *vec, uint32_t row, bool iso) {
    if (col_is_null(vec, row)) {
        fz_buf_puts(b, "null");
        return;
    }
    const col_vec *v = col_at(vec, &row);
    switch (v->type->kind) {
    case COL_CHAR: case COL_VARCHAR: {
        fz_sv s = col_sv(v, row);
        fz_buf_json(b, s.p, s.n);
        return;
    }
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: time_text(b, v, row, iso); return;
    case COL_DECIMAL: ex_value_text(b, v, row, "UTC"); return;
    case COL_ARRAY: case COL_MAP: list(b, v, row, iso); return;
    case COL_ROW:
        fz_buf_putc(b, '{');
        for (uint32_t k = 0; k < v->n_child; k++) {
            if (k) fz_buf_putc(b, ',');
            fz_buf_json(b, v->type->fields[k].name, strlen(v->type->fields[k].name));
            fz_buf_putc(b, ':');
            value(b, v->child[k], row, iso);
        }
        fz_buf_putc(b, '}');
        return;
    default: ex_value_json(b, v, row, "UTC");
    }
}

arc_encoder *arc_encoder_new(fz_arena *a, const col_schema *schema, bool with_nulls, bool iso) {
    arc_encoder *e = FZ_ANEW(a, arc_encoder);
    *e = (arc_encoder){schema, FZ_ANEWN(a, column, schema->n + 1), with_nulls, iso};
    fz_buf b = {0};
    for (uint32_t c = 0; c < schema->n; c++) {
        b.len = 0;
        fz_buf_json(&b, schema->fields[c].name, strlen(schema->fields[c].name));
        fz_buf_putc(&b, ':');
        e->columns[c].head_len = (uint32_t)b.len;
        fz_buf_putc(&b, '"');
        fz_buf_append(&b, (const char[AHEAD]){0}, AHEAD);
        e->columns[c].head = fz_arena_strndup(a, (const char *)b.data, b.len);
    }
    fz_buf_free(&b);
    return e;
}

static bool flat_text(const col_vec *v) { return !v->idx && col_is_text(v->type->kind); }

static source_kind kind_of(const col_vec *v, uint32_t n) {
    if (v->idx && v->dict->len <= n) return SRC_ENTRIES;
    switch (v->type->kind) {
    case COL_CHAR: case COL_VARCHAR: return SRC_TEXT;
    case COL_TIMESTAMP: case COL_TIMESTAMP_LTZ: return v->idx ? SRC_ANY : SRC_TIME;
    case COL_TINYINT: case COL_SMALLINT: case COL_INT: return v->idx ? SRC_ANY : SRC_INT;
    case COL_MAP: return !v->idx && flat_text(v->child[0]) && flat_text(v->child[1]) && !v->child[0]->valid ? SRC_TEXT_MAP : SRC_ANY;
    default: return SRC_ANY;
    }
}
static bool all_null(const col_vec *v, uint32_t n) { return v->type->kind == COL_NULL || (v->valid && !memchr(v->valid, 1, n)); }

/* The vector's bytes as a whole are looked at, as long as that is not much more than what its rows use. */
static void look_at_text(source *s, uint32_t n) {
    const col_vec *flat = s->v->idx ? s->v->dict : s->v;
    s->idx = s->v->idx;
    s->off = flat->off;
    s->bytes = flat->bytes;
    s->end = flat->off[flat->len];
    if (flat->len / 4 <= n && fz_json_is_plain(s->bytes + s->off[0], s->end - s->off[0])) s->kind = SRC_PLAIN;
}

static void write_entries(arc_lines *l, source *s, fz_arena *scratch) {
    const col_vec *dict = s->v->dict;
    uint32_t *off = fz_arena_alloc(scratch, ((size_t)dict->len + 1) * sizeof *off);
    for (uint32_t i = 0; i < dict->len; i++) {
        off[i] = (uint32_t)l->entries.len;
        fz_buf_append(&l->entries, s->head, s->head_len);
        value(&l->entries, dict, i, l->e->iso);
        fz_buf_putc(&l->entries, ',');
    }
    off[dict->len] = (uint32_t)l->entries.len;
    s->idx = s->v->idx;
    s->off = off;
}

arc_lines *arc_lines_begin(const arc_encoder *e, col_vec *const *cols, uint32_t n, fz_arena *scratch) {
    arc_lines *l = FZ_ANEW(scratch, arc_lines);
    l->e = e;
    l->src = FZ_ANEWN(scratch, source, e->schema->n + 1);
    for (uint32_t c = 0; c < e->schema->n; c++) {
        const col_vec *v = cols[c];
        if (!e->with_nulls && all_null(v, n)) continue;
        source *s = &l->src[l->n_src++];
        *s = (source){.v = v, .head = e->columns[c].head, .head_len = e->columns[c].head_len, .kind = kind_of(v, n), .second = INT64_MIN, .null_of = v->valid};
        s->look_up = v->type->kind == COL_NULL || (v->idx && v->dict->valid);
        if (s->kind == SRC_ENTRIES) write_entries(l, s, scratch);
        else if (s->kind == SRC_TEXT) look_at_text(s, n);
    }
    fz_buf_reserve(&l->entries, AHEAD);
    for (uint32_t c = 0; c < l->n_src; c++)
        if (l->src[c].kind == SRC_ENTRIES) l->src[c].bytes = (const char *)l->entries.data;
    return l;
}

/* Rows mostly have the second of the row before. */
static void same_second(fz_buf *b, source *s, uint32_t row, bool iso) {
    int64_t second = dt_floor_div(s->v->i64[row], DT_US_PER_SECOND);
    if (second != s->second) s->n_time = second_text(second, iso, s->time);
    s->second = second;
    end_time(b, s->v, row, s->time, s->n_time);
}

static void other(fz_buf *b, source *s, uint32_t row, bool iso) {
    switch (s->kind) {
    case SRC_TEXT_MAP: text_map(b, s->v, row); return;
    case SRC_TIME: same_second(b, s, row, iso); return;
    case SRC_TEXT:
        if (s->idx) row = s->idx[row];
        quoted(b, s->bytes + s->off[row], s->off[row + 1] - s->off[row]);
        return;
    default: value(b, s->v, row, iso);
    }
}

/* n bytes of p, behind which AHEAD more can be read, to d, which has room for as many. */
static inline uint8_t *copy(uint8_t *d, const char *p, uint32_t n) {
    memcpy(d, p, AHEAD);
    if (__builtin_expect(n > 8 * AHEAD, 0)) memcpy(d, p, n);
    else
        for (uint32_t i = AHEAD; i < n; i += AHEAD) memcpy(d + i, p + i, AHEAD);
    return d + n;
}

static inline uint8_t *plain(uint8_t *d, const source *s, uint32_t from, uint32_t n) {
    d = copy(d, s->head, s->head_len + 1);
    if (__builtin_expect((uint64_t)from + n + AHEAD <= s->end, 1)) d = copy(d, s->bytes + from, n);
    else if (n) {
        memcpy(d, s->bytes + from, n);
        d += n;
    }
    *d++ = '"';
    *d++ = ',';
    return d;
}

static inline bool is_null(const source *s, uint32_t row) { return s->look_up ? col_is_null(s->v, row) : s->null_of && !s->null_of[row]; }

/* The common kinds are written here with a cursor of their own: stores through it would make the compiler read the buffer's fields again after each. */
void arc_lines_add(arc_lines *l, uint32_t row, fz_buf *out) {
    bool with_nulls = l->e->with_nulls;
    fz_buf_reserve(out, 2 * AHEAD);
    uint8_t *d = out->data + out->len, *limit = out->data + out->cap;
    *d++ = '{';
    for (source *s = l->src, *end = s + l->n_src; s < end; s++) {
        bool null = is_null(s, row), bytes = s->kind == SRC_ENTRIES || s->kind == SRC_PLAIN;
        if (null && !with_nulls) continue;
        uint32_t at = bytes && s->idx ? s->idx[row] : row, from = bytes ? s->off[at] : 0, n = bytes ? s->off[at + 1] - from : 0;
        size_t need = (size_t)s->head_len + n + 4 * AHEAD;
        if (__builtin_expect((size_t)(limit - d) < need, 0)) {
            out->len = (size_t)(d - out->data);
            fz_buf_reserve(out, need);
            d = out->data + out->len;
            limit = out->data + out->cap;
        }
        if (s->kind == SRC_ENTRIES && !null) d = copy(d, s->bytes + from, n);
        else if (s->kind == SRC_PLAIN && !null) d = plain(d, s, from, n);
        else if (s->kind == SRC_INT && !null) {
            d = copy(d, s->head, s->head_len);
            d += nt_int_text(s->v->i32[row], (char *)d);
            *d++ = ',';
        } else {
            d = copy(d, s->head, s->head_len);
            out->len = (size_t)(d - out->data);
            if (null) fz_buf_puts(out, "null");
            else other(out, s, row, l->e->iso);
            fz_buf_reserve(out, 4 * AHEAD);
            d = out->data + out->len;
            limit = out->data + out->cap;
            *d++ = ',';
        }
    }
    if (d[-1] == ',') d--;
    *d++ = '}';
    *d++ = '\n';
    out->len = (size_t)(d - out->data);
}

void arc_lines_end(arc_lines *l) { fz_buf_free(&l->entries); }
