/* The dictionary of a column chunk: values in PLAIN form (so that they are the dictionary page) and a hash table over them.
 * Up to eight entries are compared one by one; that is cheaper than hashing, and a column with one value needs no table. */
#include "parquet/parquet_int.h"

enum { FEW = 8 };

static inline uint32_t hash_of(uint32_t width, const void *p, uint32_t n) {
    if (width == 4 || width == 8) {
        uint64_t x = 0;
        memcpy(&x, p, width);
        x *= 0x9E3779B97F4A7C15ull;
        return (uint32_t)(x >> 32);
    }
    return (uint32_t)fz_hash(p, n);
}
static inline bool same(const pq_dict *d, uint32_t width, uint32_t code, const void *p, uint32_t n) {
    uint32_t m;
    if (width == 8) return memcmp(d->vals.p + (size_t)code * 8, p, 8) == 0; /* constant sizes need no call */
    if (width == 4) return memcmp(d->vals.p + (size_t)code * 4, p, 4) == 0;
    const uint8_t *q = pq_dict_value(d, width, code, &m);
    return m == n && memcmp(q, p, n) == 0;
}
static void insert_slot(pq_dict *d, uint32_t hash, uint32_t code) {
    uint32_t i = hash & d->mask;
    while (d->slot[i]) i = (i + 1) & d->mask;
    d->slot[i] = code + 1;
}
static void build_table(pq_dict *d, uint32_t width, uint32_t size) {
    bool first = !d->slot;
    fz_free(d->slot);
    d->slot = fz_calloc(size, sizeof *d->slot);
    d->mask = size - 1;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t n;
        const uint8_t *p = pq_dict_value(d, width, i, &n);
        uint32_t h = width || first ? hash_of(width, p, n) : d->ent[i].hash;
        if (!width) d->ent[i].hash = h;
        insert_slot(d, h, i);
    }
}
static uint32_t add(pq_dict *d, uint32_t width, const void *p, uint32_t n, uint32_t hash) {
    if (!width) {
        if (d->n == d->ent_cap) {
            d->ent_cap = d->ent_cap ? d->ent_cap + d->ent_cap / 2 : 2;
            d->ent = fz_realloc(d->ent, (size_t)d->ent_cap * sizeof *d->ent);
        }
        d->ent[d->n] = (pq_entry){d->vals.n, hash};
        pq_bytes_put(&d->vals, &n, 4);
    }
    pq_bytes_put(&d->vals, p, n);
    return d->n++;
}
static uint32_t look_up(pq_dict *d, uint32_t width, const void *p, uint32_t n, uint32_t h);
uint32_t pq_dict_code(pq_dict *d, uint32_t width, const void *p, uint32_t n) {
    if (!d->slot) {
        for (uint32_t i = 0; i < d->n; i++)
            if (same(d, width, i, p, n)) return i;
        uint32_t code = add(d, width, p, n, 0);
        if (d->n > FEW) build_table(d, width, 2 * FEW);
        return code;
    }
    return look_up(d, width, p, n, hash_of(width, p, n));
}
static uint32_t look_up(pq_dict *d, uint32_t width, const void *p, uint32_t n, uint32_t h) {
    uint32_t i = h & d->mask;
    for (uint32_t e; (e = d->slot[i]) != 0; i = (i + 1) & d->mask) {
        if (!width && d->ent[e - 1].hash != h) continue;
        if (same(d, width, e - 1, p, n)) return e - 1;
    }
    uint32_t code = add(d, width, p, n, h);
    d->slot[i] = code + 1;
    if (d->n > d->mask - d->mask / 4) build_table(d, width, (d->mask + 1) * 2); /* kept full: many files' tables share the cache */
    return code;
}
/* A look-up of a text is a chain of three cache misses (slot, entry, value) once dictionaries of many files share the cache; so the chains of the rows
 * ahead are begun while a row is worked off. codes[] of rows ahead holds their hashes. */
void pq_dict_codes(pq_dict *d, const char *bytes, const uint32_t *off, const uint32_t *rows, uint32_t n, uint32_t *codes) {
    enum { HASH = 12, ENTRY = 8, VALUE = 4 };
    for (uint32_t k = 0; k < n + HASH; k++) {
        if (k < n) {
            codes[k] = hash_of(0, bytes + off[rows[k]], off[rows[k] + 1] - off[rows[k]]);
            if (d->slot) __builtin_prefetch(&d->slot[codes[k] & d->mask]);
        }
        uint32_t e;
        if (d->slot && k >= HASH - ENTRY && k - (HASH - ENTRY) < n && (e = d->slot[codes[k - (HASH - ENTRY)] & d->mask]) != 0) __builtin_prefetch(&d->ent[e - 1]);
        if (d->slot && k >= HASH - VALUE && k - (HASH - VALUE) < n && (e = d->slot[codes[k - (HASH - VALUE)] & d->mask]) != 0)
            __builtin_prefetch(d->vals.p + d->ent[e - 1].off);
        if (k < HASH) continue;
        uint32_t i = k - HASH, len = off[rows[i] + 1] - off[rows[i]];
        const char *p = bytes + off[rows[i]];
        codes[i] = d->slot ? look_up(d, 0, p, len, codes[i]) : pq_dict_code(d, 0, p, len);
    }
}
void pq_dict_free(pq_dict *d) {
    pq_bytes_free(&d->vals);
    fz_free(d->ent);
    fz_free(d->slot);
    *d = (pq_dict){0};
}
