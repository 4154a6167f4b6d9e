/* See positions.h. */
#include "job/positions.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

int job_split_key_cmp(const job_split_key *a, const job_split_key *b) {
    int c = strcmp(a->source, b->source);
    if (!c) c = strcmp(a->topic, b->topic);
    return c ? c : (a->partition > b->partition) - (a->partition < b->partition);
}
job_position *job_position_find(const job_position *v, uint32_t n, const job_split_key *key) {
    for (uint32_t i = 0; i < n; i++)
        if (job_split_key_cmp(&v[i].key, key) == 0) return (job_position *)(uintptr_t)&v[i];
    return NULL;
}
const job_diverted *job_diverted_find(const job_diverted *v, uint32_t n, const char *object) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i].object, object) == 0) return &v[i];
    return NULL;
}
const char *job_split_text(fz_arena *a, const job_split_key *key) { return fz_arena_printf(a, "%s/%d", key->topic, key->partition); }

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
uint32_t job_positions_retire(job_position *v, uint32_t n, int64_t now_ms) {
    uint32_t n_gone = 0, kept = 0;
    int64_t *gone = fz_calloc(n + 1, sizeof *gone), before = 0; /* what went before that is retired */
    for (uint32_t i = 0; i < n; i++)
        if (v[i].gone_ms) gone[n_gone++] = v[i].gone_ms;
    qsort(gone, n_gone, sizeof *gone, by_time);
    if (n_gone > JOB_GONE_KEPT) before = gone[n_gone - JOB_GONE_KEPT];
    if (before > now_ms - JOB_GONE_MS) before = now_ms - JOB_GONE_MS;
    fz_free(gone);
    for (uint32_t i = 0; i < n; i++)
        if (!v[i].gone_ms || n_gone <= JOB_GONE_KEPT || v[i].gone_ms >= before) v[kept++] = v[i];
    return kept;
}

/* ---- who was taken over ---- */
const job_adopted *job_adopted_find(const job_adopted *v, uint32_t n, const char *pipeline) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(v[i].pipeline, pipeline) == 0) return &v[i];
    return NULL;
}
uint32_t job_adopted_merge(job_adopted *v, uint32_t n, const job_adopted *more, uint32_t n_more) {
    for (uint32_t i = 0; i < n_more; i++) {
        uint32_t at = 0;
        while (at < n && strcmp(v[at].pipeline, more[i].pipeline) != 0) at++;
        if (at < n) memmove(&v[at], &v[at + 1], (--n - at) * sizeof *v); /* the newest stands last */
        v[n++] = more[i];
    }
    if (n <= JOB_ADOPTED_KEPT) return n;
    memmove(v, v + (n - JOB_ADOPTED_KEPT), JOB_ADOPTED_KEPT * sizeof *v);
    return JOB_ADOPTED_KEPT;
}
int64_t job_state_hash(const char *state) { return (int64_t)(fz_hash(state, strlen(state)) >> 1); }

/* ---- encoding: both maps are "source -> topic -> rows" ---- */
typedef void (*put_row)(fz_buf *b, const void *row);

static int by_key(const void *a, const void *b) { /* rows begin with their key */
    return job_split_key_cmp(*(const job_split_key *const *)a, *(const job_split_key *const *)b);
}

static void encode_rows(fz_buf *b, const void *rows, size_t size, uint32_t n, put_row put) {
    const job_split_key **order = fz_calloc(n ? n : 1, sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i] = (const job_split_key *)(const void *)((const char *)rows + size * i);
    qsort(order, n, sizeof *order, by_key);
    fz_buf_puts(b, "{\"v\":1,\"s\":{");
    for (uint32_t i = 0; i < n; i++) {
        const job_split_key *k = order[i], *prev = i ? order[i - 1] : NULL;
        bool new_source = !prev || strcmp(prev->source, k->source) != 0;
        bool new_topic = new_source || strcmp(prev->topic, k->topic) != 0;
        if (new_source) {
            if (prev) fz_buf_puts(b, "]},");
            fz_buf_json(b, k->source, strlen(k->source));
            fz_buf_puts(b, ":{");
        } else if (new_topic) fz_buf_puts(b, "],");
        if (new_topic) {
            fz_buf_json(b, k->topic, strlen(k->topic));
            fz_buf_puts(b, ":[");
        } else fz_buf_putc(b, ',');
        put(b, k);
    }
    fz_buf_puts(b, n ? "]}}}" : "}}");
    fz_free(order);
}
static void put_position(fz_buf *b, const void *row) {
    const job_position *p = row;
    fz_buf_printf(b, "[%d,%" PRId64, p->key.partition, p->next);
    if (p->gone_ms) fz_buf_printf(b, ",null,%" PRId64, p->gone_ms);
    else if (p->has_last) fz_buf_printf(b, ",%" PRId64 ",%" PRId64 ",\"%016" PRIx64 "\"", p->last_offset, p->last_timestamp, p->last_hash);
    fz_buf_putc(b, ']');
}
static void put_range(fz_buf *b, const void *row) {
    const job_range *r = row;
    fz_buf_printf(b, "[%d,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u", r->key.partition, r->from, r->to, r->read,
                  r->added, r->filtered, r->rejected, r->unparseable, r->paths);
    if (r->diverted) fz_buf_printf(b, ",%" PRIu64, r->diverted);
    fz_buf_putc(b, ']');
}
static void put_part(fz_buf *b, const void *row) {
    const job_part *p = row;
    fz_buf_printf(b, "[%d,%" PRId64 ",%" PRId64 "]", p->key.partition, p->from, p->to);
}
static void encode_diverted(fz_buf *b, const job_diverted *v, uint32_t n) {
    fz_buf_puts(b, "{\"v\":1,\"o\":[");
    for (uint32_t i = 0; i < n; i++) {
        fz_buf_puts(b, i ? ",[" : "[");
        fz_buf_json(b, v[i].object, strlen(v[i].object));
        fz_buf_printf(b, ",%" PRIu64 ",%" PRIu64 ",\"%016" PRIx64 "\",", v[i].records, v[i].rows, v[i].hash);
        encode_rows(b, v[i].parts, sizeof *v[i].parts, v[i].n_parts, put_part);
        fz_buf_putc(b, ']');
    }
    fz_buf_puts(b, "]}");
}
static void encode_replayed(fz_buf *b, const job_replayed *v, uint32_t n) {
    fz_buf_puts(b, "{\"v\":1,\"o\":[");
    for (uint32_t i = 0; i < n; i++) {
        fz_buf_puts(b, i ? ",[" : "[");
        fz_buf_json(b, v[i].object, strlen(v[i].object));
        fz_buf_printf(b, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", v[i].added, v[i].filtered, v[i].rejected, v[i].unparseable);
    }
    fz_buf_puts(b, "]}");
}
static void encode_adopted(fz_buf *b, const job_adopted *v, uint32_t n) {
    fz_buf_puts(b, "{\"v\":1,\"p\":[");
    for (uint32_t i = 0; i < n; i++) {
        fz_buf_puts(b, i ? ",[" : "[");
        fz_buf_json(b, v[i].pipeline, strlen(v[i].pipeline));
        fz_buf_printf(b, ",%" PRId64 "]", v[i].as_of);
    }
    fz_buf_puts(b, "]}");
}
static const char *into(fz_arena *a, fz_buf *b) {
    const char *s = fz_arena_strndup(a, (const char *)b->data, b->len);
    fz_buf_free(b);
    return s;
}

size_t job_marks_encode(fz_arena *a, const job_marks *m, fz_pair *out) {
    size_t n = 0;
    fz_buf b = {0};
    out[n++] = (fz_pair){.key = JOB_KEY_PIPELINE, .value = m->pipeline};
    out[n++] = (fz_pair){.key = JOB_KEY_COMMIT_ID, .value = m->commit_id};
    out[n++] = (fz_pair){.key = JOB_KEY_CHECKPOINT, .value = fz_arena_printf(a, "%" PRIu64, m->checkpoint)};
    encode_rows(&b, m->positions, sizeof *m->positions, m->n_positions, put_position);
    out[n++] = (fz_pair){.key = JOB_KEY_POSITIONS, .value = into(a, &b)};
    encode_rows(&b, m->ranges, sizeof *m->ranges, m->n_ranges, put_range);
    out[n++] = (fz_pair){.key = JOB_KEY_RANGES, .value = into(a, &b)};
    if (m->n_diverted) {
        encode_diverted(&b, m->diverted, m->n_diverted);
        out[n++] = (fz_pair){.key = JOB_KEY_DIVERTED, .value = into(a, &b)};
    }
    if (m->n_replayed) {
        encode_replayed(&b, m->replayed, m->n_replayed);
        out[n++] = (fz_pair){.key = JOB_KEY_REPLAYED, .value = into(a, &b)};
    }
    if (m->n_adopted) {
        encode_adopted(&b, m->adopted, m->n_adopted);
        out[n++] = (fz_pair){.key = JOB_KEY_ADOPTED, .value = into(a, &b)};
    }
    if (m->new_chain) out[n++] = (fz_pair){.key = JOB_KEY_CHAIN, .value = "new"};
    return n;
}
const char *job_mirror_encode(fz_arena *a, const job_mirror *m) {
    fz_buf b = {0};
    fz_buf_printf(&b, "{\"v\":1,\"snapshot\":%" PRId64 ",\"sequence\":%" PRId64 ",\"positions\":", m->snapshot_id, m->sequence_number);
    encode_rows(&b, m->positions, sizeof *m->positions, m->n, put_position);
    if (m->n_diverted) {
        fz_buf_puts(&b, ",\"diverted\":");
        encode_diverted(&b, m->diverted, m->n_diverted);
    }
    if (m->n_adopted) {
        fz_buf_puts(&b, ",\"adopted\":");
        encode_adopted(&b, m->adopted, m->n_adopted);
    }
    fz_buf_putc(&b, '}');
    return into(a, &b);
}

/* ---- decoding ---- */
static fz_status unreadable(fz_error *err, const char *what) {
    return fz_fail(err, FZ_FATAL, "positions.unreadable", "positions in the table cannot be read: %s", what);
}
typedef fz_status (*take_row)(void *cx, fz_arena *a, const job_split_key *key, const json_t *row, fz_error *err);

static fz_status decode_rows(fz_arena *a, json_t *root, take_row take, void *cx, fz_error *err) {
    json_t *sources = json_object_get(root, "s"), *topics, *rows, *row;
    if (json_integer_value(json_object_get(root, "v")) != 1) return unreadable(err, "their version is not 1");
    if (!json_is_object(sources)) return unreadable(err, "no map of sources");
    const char *source, *topic;
    size_t i;
    json_object_foreach(sources, source, topics) {
        if (!json_is_object(topics)) return unreadable(err, "no map of topics");
        json_object_foreach(topics, topic, rows) json_array_foreach(rows, i, row) {
            json_t *p = json_array_get(row, 0);
            if (!json_is_integer(p)) return unreadable(err, "a partition is not a number");
            job_split_key key = {fz_arena_strdup(a, source), fz_arena_strdup(a, topic), (int32_t)json_integer_value(p)};
            FZ_TRY(take(cx, a, &key, row, err));
        }
    }
    return FZ_OK;
}
static size_t count_rows(json_t *root) {
    size_t n = 0;
    const char *source, *topic; /* one each: the inner loop's ends as NULL, and would end the outer one after its first source */
    json_t *topics, *rows;
    json_object_foreach(json_object_get(root, "s"), source, topics) json_object_foreach(topics, topic, rows) n += json_array_size(rows);
    return n;
}
typedef struct taker { job_position *p; job_range *r; job_part *parts; uint32_t n; } taker;

static fz_status take_position(void *cx, fz_arena *a, const job_split_key *key, const json_t *row, fz_error *err) {
    (void)a;
    taker *t = cx;
    job_position p = {.key = *key};
    json_t *next = json_array_get(row, 1), *off = json_array_get(row, 2), *ts = json_array_get(row, 3), *hash = json_array_get(row, 4);
    if (!json_is_integer(next)) return unreadable(err, "a position is not a number");
    p.next = json_integer_value(next);
    if (json_is_integer(off)) {
        if (!json_is_integer(ts) || !json_is_string(hash)) return unreadable(err, "the last record of a position is incomplete");
        p.has_last = true;
        p.last_offset = json_integer_value(off);
        p.last_timestamp = json_integer_value(ts);
        p.last_hash = strtoull(json_string_value(hash), NULL, 16);
    } else if (json_is_integer(ts)) p.gone_ms = json_integer_value(ts);
    t->p[t->n++] = p;
    return FZ_OK;
}
static fz_status take_range(void *cx, fz_arena *a, const job_split_key *key, const json_t *row, fz_error *err) {
    (void)a;
    taker *t = cx;
    if (json_array_size(row) < 9) return unreadable(err, "a range is incomplete");
    int64_t v[10] = {0};
    for (size_t i = 1; i < 10 && i < json_array_size(row); i++) {
        if (!json_is_integer(json_array_get(row, i))) return unreadable(err, "a range holds something that is not a number");
        v[i] = json_integer_value(json_array_get(row, i));
    }
    t->r[t->n++] = (job_range){*key, v[1], v[2], (uint64_t)v[3], (uint64_t)v[4], (uint64_t)v[5], (uint64_t)v[6], (uint64_t)v[7], (uint32_t)v[8], (uint64_t)v[9]};
    return FZ_OK;
}
static fz_status take_part(void *cx, fz_arena *a, const job_split_key *key, const json_t *row, fz_error *err) {
    (void)a;
    taker *t = cx;
    if (!json_is_integer(json_array_get(row, 1)) || !json_is_integer(json_array_get(row, 2))) return unreadable(err, "a part of an error object is incomplete");
    t->parts[t->n++] = (job_part){*key, json_integer_value(json_array_get(row, 1)), json_integer_value(json_array_get(row, 2))};
    return FZ_OK;
}

static fz_status decode_positions(fz_arena *a, json_t *root, uint32_t *n, job_position **out, fz_error *err) {
    taker t = {.p = FZ_ANEWN(a, job_position, count_rows(root) + 1)};
    FZ_TRY(decode_rows(a, root, take_position, &t, err));
    *n = t.n;
    *out = t.p;
    return FZ_OK;
}
/* root NULL: none. */
static fz_status decode_diverted(fz_arena *a, json_t *root, uint32_t *n, job_diverted **out, fz_error *err) {
    json_t *all = json_object_get(root, "o"), *v;
    size_t i;
    *n = 0;
    *out = NULL;
    if (!root) return FZ_OK;
    if (json_integer_value(json_object_get(root, "v")) != 1 || !json_is_array(all)) return unreadable(err, "no list of error objects of version 1");
    *out = FZ_ANEWN(a, job_diverted, json_array_size(all) + 1);
    json_array_foreach(all, i, v) {
        json_t *object = json_array_get(v, 0), *hash = json_array_get(v, 3), *parts = json_array_get(v, 4);
        if (!json_is_string(object) || !json_is_integer(json_array_get(v, 1)) || !json_is_integer(json_array_get(v, 2)) || !json_is_string(hash) || !json_is_object(parts))
            return unreadable(err, "an error object is incomplete");
        taker t = {.parts = FZ_ANEWN(a, job_part, count_rows(parts) + 1)};
        FZ_TRY(decode_rows(a, parts, take_part, &t, err));
        (*out)[(*n)++] = (job_diverted){fz_arena_strdup(a, json_string_value(object)), (uint64_t)json_integer_value(json_array_get(v, 1)), (uint64_t)json_integer_value(json_array_get(v, 2)),
                                        strtoull(json_string_value(hash), NULL, 16), t.n, t.parts};
    }
    return FZ_OK;
}
static fz_status decode_replayed(fz_arena *a, json_t *root, uint32_t *n, job_replayed **out, fz_error *err) {
    json_t *all = json_object_get(root, "o"), *v;
    size_t i;
    if (json_integer_value(json_object_get(root, "v")) != 1 || !json_is_array(all)) return unreadable(err, "no list of replayed objects of version 1");
    *out = FZ_ANEWN(a, job_replayed, json_array_size(all) + 1);
    json_array_foreach(all, i, v) {
        if (!json_is_string(json_array_get(v, 0))) return unreadable(err, "a replayed object has no name");
        uint64_t x[4];
        for (size_t k = 0; k < 4; k++) {
            if (!json_is_integer(json_array_get(v, k + 1))) return unreadable(err, "a replayed object is incomplete");
            x[k] = (uint64_t)json_integer_value(json_array_get(v, k + 1));
        }
        (*out)[(*n)++] = (job_replayed){fz_arena_strdup(a, json_string_value(json_array_get(v, 0))), x[0], x[1], x[2], x[3]};
    }
    return FZ_OK;
}
/* root NULL: none. */
static fz_status decode_adopted(fz_arena *a, json_t *root, uint32_t *n, job_adopted **out, fz_error *err) {
    json_t *all = json_object_get(root, "p"), *v;
    size_t i;
    *n = 0;
    *out = NULL;
    if (!root) return FZ_OK;
    if (json_integer_value(json_object_get(root, "v")) != 1 || !json_is_array(all)) return unreadable(err, "no list of adopted pipelines of version 1");
    *out = FZ_ANEWN(a, job_adopted, json_array_size(all) + 1);
    json_array_foreach(all, i, v) {
        if (!json_is_string(json_array_get(v, 0)) || !json_is_integer(json_array_get(v, 1))) return unreadable(err, "an adopted pipeline is incomplete");
        (*out)[(*n)++] = (job_adopted){fz_arena_strdup(a, json_string_value(json_array_get(v, 0))), (int64_t)json_integer_value(json_array_get(v, 1))};
    }
    return FZ_OK;
}
static fz_status parse(const char *text, json_t **out, fz_error *err) {
    json_error_t je;
    *out = json_loads(text, 0, &je);
    return *out ? FZ_OK : unreadable(err, je.text);
}

fz_status job_marks_decode(fz_arena *a, const fz_pair *summary, size_t n, job_marks *out, bool *found, fz_error *err) {
    *out = (job_marks){0};
    const char *pipeline = fz_pair_get(summary, n, JOB_KEY_PIPELINE), *positions = fz_pair_get(summary, n, JOB_KEY_POSITIONS);
    *found = pipeline != NULL;
    if (!*found) return FZ_OK;
    const char *id = fz_pair_get(summary, n, JOB_KEY_COMMIT_ID), *cp = fz_pair_get(summary, n, JOB_KEY_CHECKPOINT);
    const char *ranges = fz_pair_get(summary, n, JOB_KEY_RANGES);
    if (!positions || !ranges || !id) return unreadable(err, "a summary key is missing");
    out->pipeline = fz_arena_strdup(a, pipeline);
    out->commit_id = fz_arena_strdup(a, id);
    out->checkpoint = cp ? strtoull(cp, NULL, 10) : 0;
    out->new_chain = fz_pair_get(summary, n, JOB_KEY_CHAIN) != NULL;
    json_t *root;
    FZ_TRY(parse(positions, &root, err));
    fz_status rc = decode_positions(a, root, &out->n_positions, &out->positions, err);
    json_decref(root);
    FZ_TRY(rc);
    FZ_TRY(parse(ranges, &root, err));
    taker t = {.r = FZ_ANEWN(a, job_range, count_rows(root) + 1)};
    rc = decode_rows(a, root, take_range, &t, err);
    json_decref(root);
    out->ranges = t.r;
    out->n_ranges = t.n;
    FZ_TRY(rc);
    const char *diverted = fz_pair_get(summary, n, JOB_KEY_DIVERTED), *replayed = fz_pair_get(summary, n, JOB_KEY_REPLAYED), *adopted = fz_pair_get(summary, n, JOB_KEY_ADOPTED);
    if (adopted) {
        FZ_TRY(parse(adopted, &root, err));
        rc = decode_adopted(a, root, &out->n_adopted, &out->adopted, err);
        json_decref(root);
        FZ_TRY(rc);
    }
    if (diverted) {
        FZ_TRY(parse(diverted, &root, err));
        rc = decode_diverted(a, root, &out->n_diverted, &out->diverted, err);
        json_decref(root);
        FZ_TRY(rc);
    }
    if (!replayed) return FZ_OK;
    FZ_TRY(parse(replayed, &root, err));
    rc = decode_replayed(a, root, &out->n_replayed, &out->replayed, err);
    json_decref(root);
    return rc;
}

fz_status job_mirror_decode(fz_arena *a, const char *text, job_mirror *out, fz_error *err) {
    *out = (job_mirror){0};
    json_t *root;
    FZ_TRY(parse(text, &root, err));
    json_t *id = json_object_get(root, "snapshot"), *seq = json_object_get(root, "sequence");
    fz_status rc = FZ_OK;
    if (!json_is_integer(id) || !json_is_integer(seq)) rc = unreadable(err, "the mirror names no snapshot");
    else {
        out->snapshot_id = json_integer_value(id);
        out->sequence_number = json_integer_value(seq);
        rc = decode_positions(a, json_object_get(root, "positions"), &out->n, &out->positions, err);
        if (rc == FZ_OK) rc = decode_diverted(a, json_object_get(root, "diverted"), &out->n_diverted, &out->diverted, err);
        if (rc == FZ_OK) rc = decode_adopted(a, json_object_get(root, "adopted"), &out->n_adopted, &out->adopted, err);
    }
    json_decref(root);
    return rc;
}
