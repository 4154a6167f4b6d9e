/* Columns under construction for the JSON decoder. Values are added one by one and may be taken away again from the end, since a
 * record can turn out to be broken after half of its fields. See json_int.h.
 *
 * A top-level text column starts as a dictionary: logs repeat hosts, programs and seconds. It turns flat when the values of a batch
 * are too many (JS_DICT_SAMPLE), and stays flat for the batches after it. A MAP does the same where the format asks for it (json_map.c).
 *
 * What it does not do: no parsing.
 */
#include "decode/json_int.h"

static void index_names(fz_arena *a, js_col *c) {
    uint32_t mask = 15;
    while (mask < c->n_child * 2) mask = mask * 2 + 1;
    c->names = FZ_ANEWN(a, uint32_t, (size_t)mask + 1);
    c->names_mask = mask;
    for (uint32_t i = 0; i < c->n_child; i++) {
        uint32_t k = (uint32_t)fz_hash(c->child[i].name, c->child[i].name_len) & mask;
        while (c->names[k]) k = (k + 1) & mask;
        c->names[k] = i + 1;
    }
}

int js_col_find(const js_col *row, const char *name, size_t n) {
    for (uint32_t k = (uint32_t)fz_hash(name, n) & row->names_mask; row->names[k]; k = (k + 1) & row->names_mask) {
        const js_col *c = &row->child[row->names[k] - 1];
        if (c->name_len == n && memcmp(c->name, name, n) == 0) return (int)row->names[k] - 1;
    }
    return -1;
}

void js_col_init(fz_arena *a, js_col *c, const char *name, const col_type *type) {
    c->name = name;
    c->name_len = (uint32_t)strlen(name);
    c->kind = type->kind;
    c->type = type;
    c->bytes_a_row = 16;
    c->n_child = type->n_fields;
    if (!c->n_child) return;
    c->child = FZ_ANEWN(a, js_col, c->n_child);
    for (uint32_t i = 0; i < c->n_child; i++) js_col_init(a, &c->child[i], type->fields[i].name, type->fields[i].type);
    if (c->kind == COL_ROW) index_names(a, c);
    if (c->kind != COL_MAP) return;
    c->spare = FZ_ANEWN(a, js_col, 2);
    for (uint32_t i = 0; i < 2; i++) js_col_init(a, &c->spare[i], type->fields[i].name, type->fields[i].type);
}

void js_col_free(js_col *c) {
    for (uint32_t i = 0; i < c->n_child; i++) js_col_free(&c->child[i]);
    if (!c->dict) return;
    fz_free(c->dict->slot);
    fz_free(c->dict->hash);
    fz_free(c->dict->raw);
    fz_free(c->dict);
    c->dict = NULL;
}

static void begin_dict(js_col *c) {
    js_dict *d = c->dict;
    c->use_dict = d && (d->flat_batches == 0 || d->flat_batches % JS_RETRY_BATCHES == 0);
    if (d && d->flat_batches) d->flat_batches++;
    if (!c->use_dict) return;
    if (!d->slot) {
        d->slot = fz_malloc(JS_DICT_SLOTS * sizeof *d->slot);
        d->hash_cap = JS_DICT_SLOTS / 2 + 1;
        d->hash = fz_malloc(d->hash_cap * sizeof *d->hash);
        if (c->kind == COL_MAP) d->raw = fz_malloc(d->hash_cap * sizeof *d->raw);
    }
    memset(d->slot, 0, JS_DICT_SLOTS * sizeof *d->slot);
    c->n_dict = 0;
    c->last = 0;
    c->streak = 8;
    c->cap_off = 64;
    c->off = fz_arena_alloc(c->a, (c->cap_off + 1) * sizeof *c->off);
    c->off[0] = 0;
    c->idx = fz_arena_alloc(c->a, c->cap * sizeof *c->idx);
}

void js_col_begin_row(js_col *c, fz_arena *a, uint32_t rows) {
    c->a = a;
    c->len = 0;
    c->cap = rows ? rows : 1;
    c->valid = NULL;
}

void js_col_begin(js_col *c, fz_arena *a, uint32_t rows) {
    c->a = a;
    c->len = 0;
    c->cap = rows ? rows : 1;
    c->valid = NULL;
    c->data = NULL;
    c->off = NULL;
    c->bytes = NULL;
    c->n_bytes = c->cap_bytes = 0;
    begin_dict(c);
    unsigned w = col_width(c->kind);
    if (w) c->data = fz_arena_alloc(a, (size_t)w * c->cap);
    bool text = col_is_varlen(c->kind);
    if (!c->use_dict && (text || c->kind == COL_ARRAY || c->kind == COL_MAP)) {
        c->off = fz_arena_alloc(a, ((size_t)c->cap + 1) * sizeof *c->off);
        c->off[0] = 0;
    }
    if (text) {
        c->cap_bytes = c->use_dict ? 4096 : (size_t)(c->bytes_a_row * 1.06 * (double)c->cap) + 256;
        c->bytes = fz_arena_alloc(a, c->cap_bytes);
    }
    for (uint32_t i = 0; i < c->n_child; i++) {
        js_col_begin(&c->child[i], a, c->kind == COL_ROW ? rows : 16);
        if (c->kind == COL_MAP) js_col_begin(&c->spare[i], a, 16);
    }
}

void js_col_grow(js_col *c) {
    uint32_t n = c->cap, m = n * 2;
    unsigned w = col_width(c->kind);
    if (w) c->data = fz_arena_realloc(c->a, c->data, (size_t)w * n, (size_t)w * m);
    if (c->valid) c->valid = fz_arena_realloc(c->a, c->valid, n, m);
    if (c->use_dict) c->idx = fz_arena_realloc(c->a, c->idx, n * sizeof *c->idx, m * sizeof *c->idx);
    else if (c->off) c->off = fz_arena_realloc(c->a, c->off, ((size_t)n + 1) * sizeof *c->off, ((size_t)m + 1) * sizeof *c->off);
    c->cap = m;
}

void js_col_grow_bytes(js_col *c, size_t more) {
    size_t m = c->cap_bytes + c->cap_bytes / 2 + more;
    c->bytes = fz_arena_realloc(c->a, c->bytes, c->cap_bytes, m);
    c->cap_bytes = m;
}

void js_col_cut(js_col *c, uint32_t n) {
    if (n < c->len) c->len = n; /* children may be longer even if c is not: a row that was not closed */
    if (c->use_dict && !c->n_child) return; /* entries that no row uses are harmless */
    if (c->use_dict) n = c->n_dict;          /* of a MAP that was not closed */
    else if (col_is_varlen(c->kind)) c->n_bytes = c->off[n];
    for (uint32_t i = 0; i < c->n_child; i++) js_col_cut(&c->child[i], c->kind == COL_ROW ? n : c->off[n]);
}

void js_put_null(js_col *c) {
    js_room(c);
    if (!c->valid) {
        c->valid = fz_arena_alloc(c->a, c->cap);
        memset(c->valid, 1, c->len);
    }
    c->valid[c->len] = 0;
    unsigned w = col_width(c->kind);
    if (w) memset(c->u8 + (size_t)w * c->len, 0, w);
    if (c->use_dict) c->idx[c->len] = 0;
    else if (c->off) c->off[c->len + 1] = c->off[c->len];
    if (c->kind == COL_ROW)
        for (uint32_t i = 0; i < c->n_child; i++) js_put_null(&c->child[i]);
    c->len++;
}

/* Gives every row its own bytes. */
static void make_flat(js_col *c) {
    const uint32_t *idx = c->idx, *old = c->off;
    const char *from = c->bytes;
    size_t total = 0;
    for (uint32_t i = 0; i < c->len; i++)
        if (c->n_dict) total += old[idx[i] + 1] - old[idx[i]];
    c->use_dict = false;
    double per = c->len ? (double)total / c->len : 16;
    if (per < c->bytes_a_row) per = c->bytes_a_row;
    c->cap_bytes = (size_t)(per * 1.06 * (double)c->cap) + total + 256;
    c->bytes = fz_arena_alloc(c->a, c->cap_bytes);
    c->off = fz_arena_alloc(c->a, ((size_t)c->cap + 1) * sizeof *c->off);
    c->off[0] = 0;
    c->n_bytes = 0;
    for (uint32_t i = 0; i < c->len; i++) {
        size_t n = 0;
        if (c->n_dict && (!c->valid || c->valid[i])) {
            n = old[idx[i] + 1] - old[idx[i]];
            if (n) memcpy(c->bytes + c->n_bytes, from + old[idx[i]], n);
        }
        c->n_bytes += n;
        c->off[i + 1] = (uint32_t)c->n_bytes;
    }
    c->dict->flat_batches = 1;
}

static uint32_t add_entry(js_col *c, const char *p, size_t n, uint64_t h) {
    if (c->n_dict == c->cap_off) {
        c->off = fz_arena_realloc(c->a, c->off, (c->cap_off + 1) * sizeof *c->off, (c->cap_off * 2 + 1) * sizeof *c->off);
        c->cap_off *= 2;
    }
    if (c->cap_bytes - c->n_bytes < n + 64) js_col_grow_bytes(c, n + 64); /* 64 bytes to spare: the fast path reads past an entry */
    if (n) memcpy(c->bytes + c->n_bytes, p, n);
    c->n_bytes += n;
    c->dict->hash[c->n_dict] = h;
    c->off[++c->n_dict] = (uint32_t)c->n_bytes;
    return c->n_dict - 1;
}

/* The entry + 1, or 0. *h: its hash, *k: its slot or that of a new one. */
static inline uint32_t find_entry(const js_col *c, const char *p, size_t n, size_t left, uint64_t *h, uint32_t *k) {
    const js_dict *d = c->dict;
    const uint32_t *off = c->off;
    uint32_t s;
    *h = fz_hash(p, n);
    for (*k = (uint32_t)*h & (JS_DICT_SLOTS - 1); (s = d->slot[*k]); *k = (*k + 1) & (JS_DICT_SLOTS - 1))
        if (d->hash[s - 1] == *h && off[s] - off[s - 1] == n && js_same_bytes(c->bytes + off[s - 1], p, n, left)) break; /* entries have 64 bytes behind them */
    return s;
}

static void put_entry(js_col *c, uint32_t e) {
    c->last = e;
    js_put_same(c);
}

bool js_put_known(js_col *c, const char *p, size_t n, size_t left) {
    uint64_t h;
    uint32_t k, s = find_entry(c, p, n, left, &h, &k);
    if (!s) return false;
    js_count_streak(c, s - 1 == c->last);
    put_entry(c, s - 1);
    return true;
}

void js_put_dict(js_col *c, const char *p, size_t n) {
    uint64_t h;
    uint32_t e = c->last, k;
    if (!n) p = ""; /* it may have been NULL */
    if (c->n_dict && c->off[e + 1] - c->off[e] == n && memcmp(c->bytes + c->off[e], p, n) == 0) {
        js_put_same(c);
        return;
    }
    uint32_t s = find_entry(c, p, n, n, &h, &k);
    if (s) {
        put_entry(c, s - 1);
        return;
    }
    if (c->n_dict >= JS_DICT_SLOTS / 2 || (c->len >= JS_DICT_SAMPLE && c->n_dict > c->len / 4)) {
        make_flat(c);
        js_put_bytes(c, p, n);
        return;
    }
    c->dict->slot[k] = c->n_dict + 1;
    put_entry(c, add_entry(c, p, n, h));
}

void js_put_from(js_col *c, const js_col *s, uint32_t i) {
    if (s->valid && !s->valid[i]) {
        js_put_null(c);
        return;
    }
    if (col_is_varlen(c->kind)) {
        js_put_bytes(c, s->bytes + s->off[i], s->off[i + 1] - s->off[i]);
        return;
    }
    for (uint32_t k = 0; k < c->n_child; k++) {
        if (c->kind == COL_ROW) js_put_from(&c->child[k], &s->child[k], i);
        else
            for (uint32_t j = s->off[i]; j < s->off[i + 1]; j++) js_put_from(&c->child[k], &s->child[k], j);
    }
    unsigned w = col_width(c->kind);
    js_room(c);
    js_valid(c);
    if (w) memcpy(c->u8 + (size_t)w * c->len, s->u8 + (size_t)w * i, w);
    if (c->kind == COL_ARRAY || c->kind == COL_MAP) c->off[c->len + 1] = c->child[0].len;
    c->len++;
}

/* The rows over the entries. */
static col_vec *finish_dict(js_col *c, col_vec *entries) {
    c->dict->flat_batches = c->len >= 64 && c->n_dict > c->len / 2;
    entries->len = c->n_dict;
    entries->valid = NULL;
    col_vec *o = FZ_ANEW(c->a, col_vec);
    o->type = c->type;
    o->len = c->len;
    o->valid = c->valid;
    o->idx = c->idx;
    o->dict = entries;
    return o;
}

col_vec *js_col_finish(js_col *c) {
    bool text = col_is_varlen(c->kind);
    if (text && c->len && !c->use_dict) c->bytes_a_row = (double)c->n_bytes / c->len;
    if (c->use_dict && c->n_dict == 0) { /* nothing but NULLs */
        col_vec *v = col_vec_nulls(c->a, c->type, c->len);
        if (text) v->bytes = c->bytes;
        return v;
    }
    col_vec *v = FZ_ANEW(c->a, col_vec);
    v->type = c->type;
    v->len = c->len;
    v->valid = c->valid;
    if (text) v->bytes = c->bytes;
    else v->data = c->data;
    v->off = c->off;
    v->n_child = c->n_child;
    if (c->n_child) v->child = FZ_ANEWN(c->a, col_vec *, c->n_child);
    for (uint32_t i = 0; i < c->n_child; i++) v->child[i] = js_col_finish(&c->child[i]);
    return c->use_dict ? finish_dict(c, v) : v;
}
