/* Partition transforms over values and columns. See iceberg.h; spec: Partition Transforms, Appendix B (32-bit hash requirements).
 * Over columns the work is done once per dictionary entry where there is a dictionary. */
#include "col/datetime.h"
#include "iceberg/iceberg_int.h"

/* ---- hashes ---- */

static inline uint32_t rotl(uint32_t x, int r) { return x << r | x >> (32 - r); }

uint32_t ice_murmur3(const void *data, size_t n) {
    const uint8_t *p = data;
    uint32_t h = 0;
    size_t blocks = n / 4;
    for (size_t i = 0; i < blocks; i++) {
        uint32_t k;
        memcpy(&k, p + i * 4, 4); /* little-endian machines only, as everywhere in this program */
        k = rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u;
        h = rotl(h ^ k, 13) * 5 + 0xe6546b64u;
    }
    uint32_t k = 0;
    for (size_t i = n & 3; i > 0; i--) k = k << 8 | p[blocks * 4 + i - 1];
    if (n & 3) h ^= rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u;
    h ^= (uint32_t)n;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static inline uint32_t hash_long(int64_t v) { return ice_murmur3(&v, sizeof v); }

static uint32_t hash_decimal(col_i128 v) {
    ice_value x = {.kind = ICE_DECIMAL, .dec = v};
    uint8_t b[16];
    for (int i = 0; i < 16; i++) b[15 - i] = (uint8_t)((unsigned __int128)x.dec >> (8 * i));
    size_t skip = 0;
    while (skip < 15 && ((b[skip] == 0 && !(b[skip + 1] & 0x80)) || (b[skip] == 0xff && (b[skip + 1] & 0x80)))) skip++;
    return ice_murmur3(b + skip, 16 - skip);
}

uint32_t ice_bucket_hash(const ice_value *v) {
    if (ice_has_bytes(v->kind)) return ice_murmur3(v->s.p, v->s.n);
    return v->kind == ICE_DECIMAL ? hash_decimal(v->dec) : hash_long(v->i);
}

static inline int32_t bucket_of(uint32_t hash, int32_t n) { return (int32_t)(hash & 0x7fffffffu) % n; }

/* ---- single values ---- */

/* Width W, downwards; wraps around at the lowest values as Java does. */
static inline int64_t truncate_long(int64_t v, int64_t w) { return (int64_t)((uint64_t)v - (uint64_t)(((v % w) + w) % w)); }
static inline int32_t truncate_int(int32_t v, int32_t w) { return (int32_t)((uint32_t)v - (uint32_t)((((int64_t)v % w) + w) % w)); }
static inline col_i128 truncate_decimal(col_i128 v, int32_t w) { return v - ((v % w) + w) % w; }

/* Bytes of the first w code points. */
static size_t truncate_text(const char *s, size_t n, int32_t w) {
    if (n <= (size_t)w) return n;
    size_t i = 0;
    for (int32_t k = 0; k < w && i < n; k++) (void)fz_utf8_next(s, n, &i);
    return i;
}

static size_t truncated_length(ice_kind k, const char *s, size_t n, int32_t w) {
    if (k == ICE_STRING) return truncate_text(s, n, w);
    return n < (size_t)w ? n : (size_t)w;
}

static int32_t years(int64_t days) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    return y - 1970;
}

static int32_t months(int64_t days) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    return (y - 1970) * 12 + m - 1;
}

/* v: days for a date, microseconds for the timestamps. */
static int32_t time_part(ice_transform_kind t, bool is_date, int64_t v) {
    if (t == ICE_HOUR) return (int32_t)dt_floor_div(v, DT_US_PER_DAY / 24);
    int64_t days = is_date ? v : dt_floor_div(v, DT_US_PER_DAY);
    return t == ICE_DAY ? (int32_t)days : t == ICE_YEAR ? years(days) : months(days);
}

ice_value ice_transform_value(const ice_transform *t, const ice_type *source, const ice_value *v) {
    const ice_type *rt = ice_transform_result(t, source);
    ice_value r = *v;
    r.kind = (uint8_t)(rt ? rt->kind : source->kind);
    if (v->is_null || t->kind == ICE_IDENTITY) return r;
    switch (t->kind) {
    case ICE_BUCKET: r.i = bucket_of(ice_bucket_hash(v), t->n); break;
    case ICE_TRUNCATE:
        if (ice_has_bytes(v->kind)) r.s.n = truncated_length(source->kind, v->s.p, v->s.n, t->n);
        else if (source->kind == ICE_DECIMAL) r.dec = truncate_decimal(v->dec, t->n);
        else r.i = source->kind == ICE_INT ? truncate_int((int32_t)v->i, t->n) : truncate_long(v->i, t->n);
        break;
    case ICE_YEAR:
    case ICE_MONTH:
    case ICE_DAY:
    case ICE_HOUR: r.i = time_part(t->kind, source->kind == ICE_DATE, v->i); break;
    default: r.is_null = true;
    }
    return r;
}

/* ---- columns (flat) ---- */

static void bucket_column(const ice_transform *t, const ice_type *source, const col_vec *v, int32_t *out) {
    for (uint32_t i = 0; i < v->len; i++) {
        uint32_t h;
        if (v->off) h = ice_murmur3(v->bytes + v->off[i], v->off[i + 1] - v->off[i]);
        else if (source->kind == ICE_DECIMAL) h = hash_decimal(v->i128[i]);
        else if (source->kind == ICE_TIME) h = hash_long((int64_t)v->i32[i] * 1000);
        else h = hash_long(col_width(v->type->kind) == 4 ? v->i32[i] : v->i64[i]);
        out[i] = bucket_of(h, t->n);
    }
}

static void time_column(const ice_transform *t, const ice_type *source, const col_vec *v, int32_t *out) {
    bool is_date = source->kind == ICE_DATE;
    int64_t last = 0;
    int32_t part = time_part(t->kind, is_date, 0);
    for (uint32_t i = 0; i < v->len; i++) {
        int64_t x = is_date ? v->i32[i] : v->i64[i];
        if (x != last) { /* neighbours are often equal */
            part = time_part(t->kind, is_date, x);
            last = x;
        }
        out[i] = part;
    }
}

static void truncate_bytes(fz_arena *a, const ice_transform *t, const ice_type *source, const col_vec *v, col_vec *r) {
    r->bytes = fz_arena_alloc(a, v->len ? v->off[v->len] - v->off[0] : 0);
    uint32_t at = 0;
    for (uint32_t i = 0; i < v->len; i++) {
        const char *s = v->bytes + v->off[i];
        size_t n = truncated_length(source->kind, s, v->off[i + 1] - v->off[i], t->n);
        memcpy(r->bytes + at, s, n);
        at += (uint32_t)n;
        r->off[i + 1] = at;
    }
}

static void truncate_column(fz_arena *a, const ice_transform *t, const ice_type *source, const col_vec *v, col_vec *r) {
    if (v->off) {
        truncate_bytes(a, t, source, v, r);
        return;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        if (source->kind == ICE_DECIMAL) r->i128[i] = truncate_decimal(v->i128[i], t->n);
        else if (source->kind == ICE_INT) r->i32[i] = truncate_int(v->i32[i], t->n);
        else r->i64[i] = truncate_long(v->i64[i], t->n);
    }
}

fz_status ice_transform_apply(fz_arena *a, const ice_transform *t, const ice_type *source, col_vec *v, col_vec **out, fz_error *err) {
    const ice_type *rt = ice_transform_result(t, source);
    const col_type *ct;
    if (t->kind == ICE_UNKNOWN_TRANSFORM || !rt) {
        fz_buf b = {0};
        ice_type_text(&b, source);
        fz_status s = fz_fail(err, FZ_USER, "iceberg.transform", "partition transform %s of type %s is not supported", t->text, fz_buf_cstr(&b));
        fz_buf_free(&b);
        return s;
    }
    if (t->kind == ICE_IDENTITY) {
        *out = v;
        return FZ_OK;
    }
    FZ_TRY(ice_type_to_col(a, rt, true, &ct, err));
    if (t->kind == ICE_VOID || v->type->kind == COL_NULL) {
        *out = col_vec_nulls(a, ct, v->len);
        return FZ_OK;
    }
    if (v->idx) {
        col_vec *dict;
        FZ_TRY(ice_transform_apply(a, t, source, v->dict, &dict, err));
        col_vec *r = FZ_ANEW(a, col_vec);
        *r = (col_vec){.type = ct, .len = v->len, .valid = v->valid, .idx = v->idx, .dict = dict};
        *out = r;
        return FZ_OK;
    }
    col_vec *r = col_vec_new(a, ct, v->len);
    r->valid = v->valid;
    if (t->kind == ICE_BUCKET) bucket_column(t, source, v, r->i32);
    else if (t->kind == ICE_TRUNCATE) truncate_column(a, t, source, v, r);
    else time_column(t, source, v, r->i32);
    *out = r;
    return FZ_OK;
}

/* ---- all fields of a spec ---- */

/* A field of a struct as a column of its own: NULL where the struct is NULL. */
static col_vec *struct_member(fz_arena *a, const col_vec *row, uint32_t k) {
    if (row->idx) {
        col_vec *r = FZ_ANEW(a, col_vec);
        col_vec *dict = struct_member(a, row->dict, k);
        if (dict->idx) dict = col_flat(a, dict);
        *r = (col_vec){.type = dict->type, .len = row->len, .valid = row->valid, .idx = row->idx, .dict = dict};
        return r;
    }
    col_vec *child = row->child[k];
    if (!row->valid) return child;
    col_vec *r = FZ_ANEW(a, col_vec);
    *r = *child;
    r->valid = fz_arena_alloc(a, row->len);
    for (uint32_t i = 0; i < row->len; i++) r->valid[i] = row->valid[i] && (!child->valid || child->valid[i]);
    return r;
}

static col_vec *source_column(fz_arena *a, const ice_field *f, uint32_t n, col_vec *const *cols, int32_t id, const ice_type **type) {
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].id == id) {
            *type = f[i].type;
            return cols[i];
        }
        if (f[i].type->kind != ICE_STRUCT) continue;
        const ice_type *st = f[i].type;
        col_vec **members = FZ_ANEWN(a, col_vec *, st->n_fields);
        for (uint32_t k = 0; k < st->n_fields; k++) members[k] = struct_member(a, cols[i], k);
        col_vec *r = source_column(a, st->fields, st->n_fields, members, id, type);
        if (r) return r;
    }
    return NULL;
}

fz_status ice_spec_apply(fz_arena *a, const ice_schema *s, const ice_spec *spec, col_vec *const *cols, col_vec **out, fz_error *err) {
    for (uint32_t i = 0; i < spec->n_fields; i++) {
        const ice_spec_field *f = &spec->fields[i];
        const ice_type *type = NULL;
        col_vec *v = source_column(a, s->fields, s->n_fields, cols, f->source_id, &type);
        if (!v) return fz_fail(err, FZ_USER, "iceberg.partition", "the source column of partition field %s is not in the schema", f->name);
        fz_status st = ice_transform_apply(a, &f->transform, type, v, &out[i], err);
        if (st != FZ_OK) return fz_context(err, "partition field %s", f->name);
    }
    return FZ_OK;
}
