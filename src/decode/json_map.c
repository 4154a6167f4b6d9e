/* MAPs under construction: closing one, and their dictionary form.
 *
 * Closing: of entries with the same key the last value counts, and the entries come in the order in which Flink gives them,
 * which is that of a java.util.HashMap over the keys' Murmur hash. Source: java.util.HashMap, Flink's BinaryStringData.hashCode.
 *
 * Dictionary: agents send the same resource and labels with record after record. A value whose bytes came before in the batch is not read again: its row gets the entry, so that expressions and
 * writers too meet few values.
 */
#include "decode/json_int.h"
#include <stdlib.h>

static uint32_t rotl(uint32_t x, int r) { return (x << r) | (x >> (32 - r)); }
static uint32_t mix_k(uint32_t k) { return rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
static uint32_t mix_h(uint32_t h, uint32_t k) { return rotl(h ^ k, 13) * 5 + 0xe6546b64u; }

/* Murmur3 with seed 42, as Flink has it: the bytes after the last whole word are mixed one by one, sign-extended. */
static uint32_t key_hash(const char *p, size_t n) {
    uint32_t h = 42, k;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        memcpy(&k, p + i, 4);
        h = mix_h(h, mix_k(k));
    }
    for (; i < n; i++) h = mix_h(h, mix_k((uint32_t)(int32_t)(int8_t)p[i]));
    h ^= (uint32_t)n;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ (h >> 16);
}

typedef struct entry { uint64_t order; uint32_t hash, key, value; } entry; /* key, value: rows of the children */

static int by_order(const void *a, const void *b) {
    const entry *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool null_at(const js_col *k, uint32_t i) { return k->valid && !k->valid[i]; }
static fz_sv key_at(const js_col *k, uint32_t i) { return (fz_sv){k->bytes + k->off[i], k->off[i + 1] - k->off[i]}; }

/* Entries without repeated keys; open addressing over the entries found so far. */
static uint32_t unique(const js_col *keys, uint32_t base, uint32_t n, entry *e, uint32_t *table, uint32_t mask) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        fz_sv k = key_at(keys, base + i);
        bool null = null_at(keys, base + i); /* after an error in the middle of an entry; its hash is 0 in Java */
        uint32_t h = null ? 0 : key_hash(k.p, k.n), s = h & mask;
        for (; table[s]; s = (s + 1) & mask) {
            const entry *x = &e[table[s] - 1];
            if (x->hash == h && null_at(keys, x->key) == null && fz_sv_eq(key_at(keys, x->key), k)) break;
        }
        if (table[s]) {
            e[table[s] - 1].value = base + i;
            continue;
        }
        e[m] = (entry){.hash = h, .key = base + i, .value = base + i};
        table[s] = ++m;
    }
    return m;
}

static void sort_entries(js_col *c, uint32_t base, uint32_t n) {
    uint32_t mask = 15;
    while (mask < n * 2) mask = mask * 2 + 1;
    entry *e = fz_malloc(n * sizeof *e);
    uint32_t *table = fz_calloc((size_t)mask + 1, sizeof *table);
    uint32_t m = unique(&c->child[0], base, n, e, table, mask);
    uint32_t cap = 16;
    while (m > cap / 4 * 3) cap *= 2;
    bool moved = m != n;
    for (uint32_t i = 0; i < m; i++) {
        uint32_t h = e[i].hash ^ (e[i].hash >> 16);
        e[i].order = ((uint64_t)(h & (cap - 1)) << 32) | i;
        if (i && e[i].order < e[i - 1].order) moved = true;
    }
    if (moved) {
        qsort(e, m, sizeof *e, by_order);
        for (uint32_t k = 0; k < 2; k++) {
            js_col_cut(&c->spare[k], 0);
            for (uint32_t i = 0; i < n; i++) js_put_from(&c->spare[k], &c->child[k], base + i);
            js_col_cut(&c->child[k], base);
            for (uint32_t i = 0; i < m; i++) js_put_from(&c->child[k], &c->spare[k], (k ? e[i].value : e[i].key) - base);
        }
    }
    fz_free(e);
    fz_free(table);
}

void js_map_order(js_col *c) {
    uint32_t base = js_map_from(c), n = c->child[0].len - base;
    if (n > 1) sort_entries(c, base, n);
}

void js_put_map(js_col *c) {
    js_map_order(c);
    js_put_array(c);
}

/* ---- the dictionary form ---- */

void js_map_in_dictionary(js_col *c) {
    if (c->kind == COL_MAP && !c->dict) c->dict = FZ_NEW(js_dict);
}

/* Gives every row its own entries. */
static void make_flat(js_col *c) {
    uint32_t *off = fz_arena_alloc(c->a, ((size_t)c->cap + 1) * sizeof *off);
    off[0] = 0;
    for (uint32_t k = 0; k < 2; k++) js_col_cut(&c->spare[k], 0);
    for (uint32_t i = 0; i < c->len; i++) {
        uint32_t e = c->idx[i];
        bool null = !c->n_dict || (c->valid && !c->valid[i]);
        for (uint32_t k = 0; k < 2 && !null; k++)
            for (uint32_t j = c->off[e]; j < c->off[e + 1]; j++) js_put_from(&c->spare[k], &c->child[k], j);
        off[i + 1] = c->spare[0].len;
    }
    for (uint32_t k = 0; k < 2; k++) {
        js_col own = c->child[k];
        c->child[k] = c->spare[k];
        c->spare[k] = own;
    }
    c->off = off;
    c->use_dict = false;
    c->dict->flat_batches = 1;
}

static uint32_t *slot_of(const js_col *c, const uint8_t *raw, size_t n, uint64_t h) {
    const js_dict *d = c->dict;
    uint32_t k = (uint32_t)h & (JS_DICT_SLOTS - 1);
    for (; d->slot[k]; k = (k + 1) & (JS_DICT_SLOTS - 1)) {
        uint32_t e = d->slot[k] - 1;
        if (d->hash[e] == h && d->raw[e].n == n && memcmp(d->raw[e].p, raw, n) == 0) break;
    }
    return &d->slot[k];
}

bool js_put_map_again(js_col *c, const uint8_t *raw, size_t n) {
    uint32_t s = *slot_of(c, raw, n, fz_hash(raw, n));
    if (s) {
        js_count_streak(c, s - 1 == c->last);
        c->last = s - 1;
        js_put_same(c);
        return true;
    }
    if (c->n_dict >= JS_DICT_SLOTS / 2 || (c->len >= JS_DICT_SAMPLE && c->n_dict > c->len / 4)) make_flat(c);
    return false;
}

void js_put_map_of(js_col *c, const uint8_t *raw, size_t n) {
    if (!c->use_dict) {
        js_put_array(c);
        return;
    }
    uint32_t e = c->n_dict;
    if (e == c->cap_off) {
        c->off = fz_arena_realloc(c->a, c->off, ((size_t)c->cap_off + 1) * sizeof *c->off, ((size_t)c->cap_off * 2 + 1) * sizeof *c->off);
        c->cap_off *= 2;
    }
    uint64_t h = fz_hash(raw, n);
    c->dict->hash[e] = h;
    c->dict->raw[e] = (fz_sv){(const char *)raw, n};
    c->off[++c->n_dict] = c->child[0].len;
    *slot_of(c, raw, n, h) = e + 1;
    c->last = e;
    js_put_same(c);
}
