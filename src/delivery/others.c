/* Which deliveries of other names have gone to the place of this one: what their directories beside it say. Each delivery names itself in <state_dir>/delivery.json before its first commit.
 *
 * Invariant: nothing of another delivery is changed here, not even what its own load would tidy up.
 */
#include "delivery/archive_int.h"
#include <jansson.h>
#include <stdlib.h>

#define NAME_FILE "delivery.json"
#define MAX_NAME_FILE (1u << 20)
#define MAX_POSITIONS (16u << 20)

typedef struct place { const char *dir; uint64_t done, intent; bool named, positions; } place;
typedef struct places { fz_arena *a; place *v; uint32_t n, cap; } places;

const char *dlv_destination(const dlv_delivery *d, fz_arena *a) {
    fz_buf b = {0};
    if (!d->ops->destination) return NULL;
    fz_buf_printf(&b, "%s ", d->ops->name);
    d->ops->destination(d, &b);
    const char *text = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return text;
}

fz_status dlv_name_itself(dlv_delivery *d, fz_error *err) {
    if (d->named) return FZ_OK;
    fz_arena *a = fz_arena_new();
    const char *destination = dlv_destination(d, a);
    json_t *j = json_pack("{s:i, s:s, s:s, s:s}", "version", 1, "pipeline", d->cx.pipeline, "table", d->cx.table, "destination", destination ? destination : "");
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    if (!text) abort(); /* as without memory: all texts are UTF-8 */
    fz_status rc = fio_put(d->cx.state_io, fio_join(a, d->cx.state_dir, NAME_FILE), text, strlen(text), err);
    d->named = rc == FZ_OK;
    free(text); /* jansson's own allocation */
    json_decref(j);
    fz_arena_free(a);
    return rc == FZ_OK ? rc : fz_context(err, "state of %s", d->cx.table);
}

/* ---- what lies below the root ---- */

static place *place_of(places *p, const char *location, size_t n) {
    for (uint32_t i = 0; i < p->n; i++)
        if (strlen(p->v[i].dir) == n && memcmp(p->v[i].dir, location, n) == 0) return &p->v[i];
    FZ_GROW(p->v, p->n, p->cap);
    p->v[p->n] = (place){.dir = fz_arena_strndup(p->a, location, n)};
    return &p->v[p->n++];
}

static bool note(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    static const char *const ends[] = {"/" NAME_FILE, "/positions.json"}, *const kinds[] = {"/done", "/intents"};
    size_t n = strlen(location);
    uint64_t lot;
    for (size_t i = 0; i < 2; i++) {
        if (!fz_ends(location, ends[i])) continue;
        place *p = place_of(cx, location, n - strlen(ends[i]));
        *(i ? &p->positions : &p->named) = true;
        return true;
    }
    if (n < 18 || !fz_ends(location, ".json") || !fz_parse_u64((fz_sv){location + n - 17, 12}, &lot)) return true;
    for (size_t i = 0; i < 2; i++) {
        size_t k = strlen(kinds[i]);
        if (n < 18 + k || memcmp(location + n - 18 - k, kinds[i], k) != 0) continue;
        place *p = place_of(cx, location, n - 18 - k);
        uint64_t *newest = i ? &p->intent : &p->done;
        if (lot > *newest) *newest = lot;
    }
    return true;
}

static bool same_place(const char *a, const char *b) {
    fz_buf x = {0}, y = {0};
    dlv_location_key(a, &x);
    dlv_location_key(b, &y);
    bool same = strcmp(fz_buf_cstr(&x), fz_buf_cstr(&y)) == 0;
    fz_buf_free(&x);
    fz_buf_free(&y);
    return same;
}

/* ---- one of them ---- */

static fz_status read_text(fio *io, const char *path, size_t max, fz_arena *a, const char **out, fz_error *err) {
    fz_buf b = {0};
    fz_status rc = fio_read(io, path, max, &b, err);
    *out = rc == FZ_OK ? fz_arena_strndup(a, (const char *)b.data, b.len) : "";
    fz_buf_free(&b);
    return rc;
}

/* Who it is and whether it goes where d goes. One that has not named itself may, if it keeps the same kind of state: better asked once too often than delivered twice. */
static fz_status read_name(const dlv_delivery *d, const char *root, const place *p, fz_arena *a, dlv_other *out, bool *same, fz_error *err) {
    const char *text;
    *same = d->ops->load ? p->done || p->intent : p->positions;
    size_t n = strlen(root);
    *out = (dlv_other){.pipeline = "", .table = strncmp(p->dir, root, n) == 0 ? p->dir + n + (p->dir[n] == '/') : p->dir, .state = "", .intent_ranges = ""};
    if (!p->named) return FZ_OK;
    FZ_TRY(read_text(d->cx.state_io, fio_join(a, p->dir, NAME_FILE), MAX_NAME_FILE, a, &text, err));
    json_t *j = json_loads(text, 0, NULL);
    const char *pipeline = json_string_value(json_object_get(j, "pipeline")), *table = json_string_value(json_object_get(j, "table")), *to = json_string_value(json_object_get(j, "destination"));
    if (pipeline && table && to) {
        out->pipeline = fz_arena_strdup(a, pipeline);
        out->table = fz_arena_strdup(a, table);
        *same = strcmp(to, dlv_destination(d, a)) == 0;
    }
    json_decref(j);
    return FZ_OK;
}

static fz_status read_state(const dlv_delivery *d, const place *p, fz_arena *a, dlv_other *out, fz_error *err) {
    const arc_log log = {.dir = p->dir, .what = out->table, .io = d->cx.state_io};
    arc_record r;
    if (p->positions) return read_text(d->cx.state_io, fio_join(a, p->dir, "positions.json"), MAX_POSITIONS, a, &out->state, err);
    if (p->done) {
        FZ_TRY(arc_log_read(&log, ARC_DONE, p->done, a, &r, err));
        out->state = r.state;
    }
    if (p->intent <= p->done) return FZ_OK;
    FZ_TRY(arc_log_read(&log, ARC_INTENT, p->intent, a, &r, err));
    out->intent_ranges = r.ranges;
    return FZ_OK;
}

static fz_status read_one(const dlv_delivery *d, const char *root, const place *p, fz_arena *a, dlv_other *out, bool *same, fz_error *err) {
    *same = false;
    if (!(p->done || p->intent || p->positions) || same_place(p->dir, d->cx.state_dir)) return FZ_OK;
    fz_status rc = read_name(d, root, p, a, out, same, err);
    if (rc == FZ_OK && *same) rc = read_state(d, p, a, out, err);
    if (rc == FZ_USER && strcmp(err->code, "file.not-found") == 0) err->cls = rc = FZ_RETRY; /* it is at work, and has replaced what was listed */
    return rc;
}

fz_status dlv_others(const dlv_delivery *d, const char *root, fz_arena *a, dlv_other **out, uint32_t *n, fz_error *err) {
    places p = {.a = a};
    *n = 0;
    *out = NULL;
    if (!d->ops->destination) return FZ_OK;
    fz_status rc = fio_list(d->cx.state_io, root, note, &p, err);
    if (rc != FZ_OK) (void)!fz_context(err, "states of other deliveries");
    *out = FZ_ANEWN(a, dlv_other, p.n + 1);
    for (uint32_t i = 0; rc == FZ_OK && i < p.n; i++) {
        bool same;
        rc = read_one(d, root, &p.v[i], a, &(*out)[*n], &same, err);
        *n += rc == FZ_OK && same;
    }
    fz_free(p.v);
    return rc;
}

/* ---- what they have given up ---- */

static bool is_in(const uint64_t *v, uint32_t n, uint64_t lot) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i] == lot) return true;
    return false;
}

static fz_status open_of_one(const dlv_delivery *d, const char *root, const place *p, fz_arena *a, dlv_other_open_fn fn, void *cx, fz_error *err) {
    dlv_other o;
    bool same;
    uint64_t *lots, *done;
    uint32_t n, n_done;
    if (!(p->done || p->positions) || same_place(p->dir, d->cx.state_dir)) return FZ_OK;
    FZ_TRY(read_name(d, root, p, a, &o, &same, err));
    const arc_log log = {.dir = p->dir, .what = o.table, .io = d->cx.state_io};
    if (!same) return FZ_OK;
    FZ_TRY(arc_log_list(&log, ARC_DIVERTED, a, &lots, &n, err));
    FZ_TRY(arc_log_list(&log, ARC_REPLAYED, a, &done, &n_done, err));
    for (uint32_t i = 0; i < n; i++) {
        arc_record r;
        if (is_in(done, n_done, lots[i])) continue;
        FZ_TRY(arc_log_read(&log, ARC_DIVERTED, lots[i], a, &r, err));
        fn(cx, &o, r.diverted, r.rows);
    }
    return FZ_OK;
}

fz_status dlv_others_open(const dlv_delivery *d, const char *root, dlv_other_open_fn fn, void *cx, fz_error *err) {
    places p = {.a = fz_arena_new()};
    fz_status rc = d->ops->replay ? fio_list(d->cx.state_io, root, note, &p, err) : FZ_OK;
    for (uint32_t i = 0; rc == FZ_OK && i < p.n; i++) rc = open_of_one(d, root, &p.v[i], p.a, fn, cx, err);
    if (rc != FZ_OK) (void)!fz_context(err, "states of other deliveries");
    fz_free(p.v);
    fz_arena_free(p.a);
    return rc;
}
