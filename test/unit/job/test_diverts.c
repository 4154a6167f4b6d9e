/* What was given up: in summaries and mirrors, in the state directory, in lines of error objects; and what of it counts for a table that stands somewhere. */
#include "unit.h"
#include "job/diverts.h"
#include "job/error_object.h"
#include <stdlib.h>
#include <unistd.h>

static fz_error err;
#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s %s", #x, err.code, err.message); } while (0)

static job_split_key key(int32_t partition) { return (job_split_key){"spool:u1", "http", partition}; }

/* ---- how many objects ---- */

/* A thousand objects last for hours, however short the window is, and a stream that has only begun to be given up is given up as before. */
static void objects_grow_when_many_are_open(void **state) {
    (void)state;
    for (int64_t retry = 1000; retry <= 3600000; retry *= 6) {
        int64_t all = 0;
        for (uint32_t open = 0; open < FZ_MAX_DIVERTED_OPEN; open++) all += job_diverts_gather_ms(retry, open);
        assert_true(all >= 15 * 3600000ll);
        assert_int_equal(job_diverts_gather_ms(retry, 0), retry / 4);
        assert_true(job_diverts_gather_ms(retry, 500) >= retry / 4);
    }
}

/* ---- summaries ---- */

static void summaries(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    job_part parts[] = {{key(1), 5, 9}, {key(0), 0, 1ll << 40}};
    job_diverted d[] = {{"s3://b/e/\"x\"", 7, 6, 0xfedcba9876543210ull, 2, parts}, {"file:///e/y", 1, 1, 1, 1, parts}};
    job_replayed r[] = {{"s3://b/e/z", 10, 2, 3, 4}};
    job_range range = {.key = key(0), .from = 0, .to = 9, .read = 9, .diverted = 9, .paths = 1};
    job_position p = {.key = key(0), .next = 9};
    job_marks m = {.pipeline = "p", .commit_id = "c", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &range, .n_diverted = 2, .diverted = d, .n_replayed = 1, .replayed = r}, back;
    fz_pair pairs[JOB_MAX_KEYS];
    bool found;
    size_t n = job_marks_encode(a, &m, pairs);
    assert_int_equal(n, 7);
    OK(job_marks_decode(a, pairs, n, &back, &found, &err));
    assert_int_equal(back.ranges[0].diverted, 9);
    assert_int_equal(back.n_diverted, 2);
    const job_diverted *x = job_diverted_find(back.diverted, 2, "s3://b/e/\"x\"");
    assert_non_null(x);
    assert_true(x->records == 7 && x->rows == 6 && x->hash == 0xfedcba9876543210ull && x->n_parts == 2);
    assert_true(x->parts[0].key.partition == 0 && x->parts[0].to == 1ll << 40 && x->parts[1].from == 5);
    assert_null(job_diverted_find(back.diverted, 2, "s3://b/e/z"));
    assert_true(back.n_replayed == 1 && back.replayed[0].added == 10 && back.replayed[0].filtered == 2 && back.replayed[0].rejected == 3 && back.replayed[0].unparseable == 4);
    job_mirror mi = {.snapshot_id = 1, .sequence_number = 2, .n = 1, .positions = &p, .n_diverted = 2, .diverted = d}, mb;
    OK(job_mirror_decode(a, job_mirror_encode(a, &mi), &mb, &err));
    assert_true(mb.n_diverted == 2 && strcmp(mb.diverted[1].object, "file:///e/y") == 0);
    mi.n_diverted = 0;
    OK(job_mirror_decode(a, job_mirror_encode(a, &mi), &mb, &err));
    assert_int_equal(mb.n_diverted, 0);
    for (size_t i = 0; i < n; i++)
        if (strcmp(pairs[i].key, JOB_KEY_DIVERTED) == 0) pairs[i].value = "{\"v\":1,\"o\":[[\"x\",1]]}";
    assert_int_equal(job_marks_decode(a, pairs, n, &back, &found, &err), FZ_FATAL);
    assert_string_equal(err.code, "positions.unreadable");
    fz_arena_free(a);
}

/* ---- lines ---- */

static void lines(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_header h[] = {{"k", (const uint8_t *)"v\0w", 3}, {"n", NULL, -1}};
    fz_record records[] = {{.value = (const uint8_t *)"\0\xff{}", .value_len = 4, .key = (const uint8_t *)"", .key_len = 0, .offset = 1ll << 50, .timestamp_ms = 12, .time_ns = -5, .timestamp_type = 2, .n_headers = 2, .headers = h},
                           {.value = NULL, .value_len = -1, .key = NULL, .key_len = -1, .offset = 0, .timestamp_ms = -1}};
    for (int i = 0; i < 2; i++) {
        fz_buf b = {0};
        job_error_record back;
        job_error_line_put(&b, &(job_error_line){.attempts = 3, .ended_ms = 99, .code = "S3.AccessDenied", .message = "no \"way\"\n", .table = "c.d.t", .source = "x.y.src", .identity = "spool:u1", .topic = "http", .partition = 2,
                                                 .rows = 2, .record = &records[i]});
        assert_true(b.data[b.len - 1] == '\n' && !memchr(b.data, '\n', b.len - 1));
        assert_true(job_error_line_take((const char *)b.data, b.len - 1, a, &back));
        const fz_record *r = &back.record, *w = &records[i];
        assert_true(r->offset == w->offset && r->value_len == w->value_len && r->key_len == w->key_len && r->timestamp_ms == w->timestamp_ms && r->time_ns == w->time_ns && r->timestamp_type == w->timestamp_type);
        assert_true(w->value_len < 0 || memcmp(r->value, w->value, (size_t)w->value_len) == 0);
        assert_int_equal(r->n_headers, w->n_headers);
        assert_true(!w->n_headers || (r->headers[0].value_len == 3 && memcmp(r->headers[0].value, "v\0w", 3) == 0 && r->headers[1].value_len == -1));
        assert_true(back.rows == 2 && back.partition == 2 && strcmp(back.source, "x.y.src") == 0 && strcmp(back.identity, "spool:u1") == 0);
        b.data[b.len - 3] = 'x';
        assert_false(job_error_line_take((const char *)b.data, b.len - 1, a, &back));
        fz_buf_free(&b);
    }
    assert_true(job_lines_hash(job_lines_hash(0, "a", 1), "b", 1) != job_lines_hash(job_lines_hash(0, "b", 1), "a", 1));
    fz_buf b = {0};
    assert_false(fz_base64_decode("QQ=", 3, &b));
    assert_false(fz_base64_decode("Q=Q=", 4, &b));
    assert_false(fz_base64_decode("QQ==QQ==", 8, &b));
    b.len = 0;
    assert_true(fz_base64_decode("QUJDRA==", 8, &b) && b.len == 4 && memcmp(b.data, "ABCD", 4) == 0);
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* ---- the state directory ---- */

static char dir[64];
static job_diverts *list;
static int64_t low, n_landed;

static bool readable(void *cx, const job_split_key *k, int64_t at) { return (void)cx, (void)k, low <= at; }
static fz_status count(void *cx, const job_given *g, const job_split_key *k, int64_t from, int64_t to, uint64_t *records, uint64_t *rows, fz_error *e) {
    (void)cx, (void)g, (void)k, (void)e;
    *records = (uint64_t)(to - from) - 1; /* one of them gave no row */
    *rows = *records;
    return FZ_OK;
}
static void landed(void *cx, const job_given *g) { (void)cx, (void)g, n_landed++; }

static void reopen(const char *uuid) {
    job_diverts_free(list);
    OK(job_diverts_open(dir, "pipe/line", "c.d.t", uuid, &list, &err));
}
static void give(const char *object, int64_t from, int64_t to, bool known) {
    job_given *g = FZ_NEW(job_given);
    uint64_t n = (uint64_t)(to - from);
    g->arena = fz_arena_new();
    g->object = fz_arena_strdup(g->arena, object);
    g->v = FZ_ANEWN(g->arena, job_given_split, 1);
    g->v[g->n++] = (job_given_split){.range = {.key = key(0), .from = from, .to = to, .read = n, .diverted = n - 2, .filtered = 1, .unparseable = 1, .paths = 1},
                                     .after = {key(0), to, true, to - 1, 77, 0xabcdefull, 0}, .known = known};
    g->records = g->rows = n - 2;
    g->counted = true;
    OK(job_diverts_add(list, g, &err));
}
/* at < 0: the table has never heard of the split. */
static job_pending pending_at(int64_t at, fz_arena *a) {
    job_position p = {.key = key(0), .next = at};
    job_lineage l = {.found = true, .marks = {.n_positions = at >= 0, .positions = &p}};
    const job_resolve with = {NULL, readable, count, landed};
    job_pending out;
    OK(job_diverts_resolve(list, &l, &with, a, &out, &err));
    return out;
}

static int setup(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/frazil-diverts-XXXXXX");
    low = n_landed = 0;
    return mkdtemp(dir) ? 0 : 1;
}
static int teardown(void **state) {
    (void)state;
    job_diverts_free(list);
    list = NULL;
    return fio_delete_tree(NULL, dir, &err) != FZ_OK;
}

static void position_decides(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    reopen("u");
    give("o1", 10, 20, true);
    give("o2", 20, 30, true);
    reopen("u"); /* durable */
    job_pending p = pending_at(10, a);
    assert_true(p.n_ranges == 1 && p.n_objects == 2 && p.known[0] && p.remembered[0] == 10);
    const job_range *r = &p.ranges[0];
    assert_true(r->from == 10 && r->to == 30 && r->read == 20 && r->diverted == 16 && r->filtered == 2 && r->unparseable == 2);
    assert_true(p.after[0].next == 30 && p.after[0].last_offset == 29 && p.after[0].last_hash == 0xabcdefull && p.after[0].last_timestamp == 77);
    assert_true(p.objects[0].rows == 8 && p.objects[0].n_parts == 1 && p.objects[0].parts[0].to == 20);
    p = pending_at(5, a); /* rolled back: records before it come first */
    assert_int_equal(p.n_ranges, 0);
    p = pending_at(14, a); /* a commit without an answer has brought four */
    assert_true(p.n_ranges == 1 && p.ranges[0].from == 14 && p.ranges[0].to == 30 && p.ranges[0].read == 5 + 10 && p.objects[0].parts[0].from == 14 && p.objects[0].rows == 5);
    assert_true(p.ranges[0].read * p.ranges[0].paths == p.ranges[0].diverted + p.ranges[0].filtered + p.ranges[0].rejected + p.ranges[0].unparseable);
    p = pending_at(20, a); /* all of the first: it was not given up by this process, so it is not counted either */
    assert_true(p.n_ranges == 1 && p.n_objects == 1 && strcmp(p.objects[0].object, "o2") == 0 && n_landed == 0);
    give("o3", 30, 40, true);
    p = pending_at(40, a);
    assert_true(p.n_ranges == 0 && n_landed == 1);
    assert_int_equal(job_diverts_unnamed(list), 0);
    p = pending_at(10, a); /* rolled back to before it: the source has the records yet */
    assert_int_equal(p.n_ranges, 0);
    low = 35;
    p = pending_at(10, a); /* it has lost them */
    assert_true(p.n_ranges == 1 && p.ranges[0].to == 40 && p.n_objects == 3);
    fz_arena_free(a);
}

static void never_heard_of(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    reopen("u");
    give("o1", 3, 20, false);
    give("o2", 20, 30, true);
    job_pending p = pending_at(-1, a);
    assert_true(p.n_ranges == 1 && !p.known[0] && p.ranges[0].from == 3 && p.ranges[0].to == 30);
    p = pending_at(3, a); /* it was claimed since */
    assert_true(p.n_ranges == 1 && p.known[0] && p.remembered[0] == 3);
    give("o3", 30, 40, true);
    assert_int_equal(job_diverts_unnamed(list), 3);
    job_diverts_told(list, &p); /* the commit has carried the first two */
    assert_int_equal(job_diverts_unnamed(list), 1);
    p = pending_at(30, a);
    assert_true(p.n_objects == 1 && strcmp(p.objects[0].object, "o3") == 0);
    fz_arena_free(a);
}

static void other_table_and_damage(void **state) {
    (void)state;
    reopen("u");
    give("o1", 3, 20, false);
    reopen("v");
    assert_int_equal(job_diverts_unnamed(list), 0);
    reopen("u");
    assert_int_equal(job_diverts_unnamed(list), 1);
    char *path = fz_asprintf("%s/diverted/pipe%%2Fline/c.d.t.json", dir);
    fz_buf b = {0};
    OK(fio_read(NULL, path, 1 << 20, &b, &err));
    b.data[b.len / 3] ^= 1;
    OK(fio_put(NULL, path, b.data, b.len, &err));
    fz_buf_free(&b);
    fz_free(path);
    job_diverts_free(list);
    list = NULL;
    assert_int_equal(job_diverts_open(dir, "pipe/line", "c.d.t", "u", &list, &err), FZ_FATAL);
    assert_string_equal(err.code, "divert.state");
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {cmocka_unit_test(objects_grow_when_many_are_open), cmocka_unit_test(summaries), cmocka_unit_test(lines), cmocka_unit_test_setup_teardown(position_decides, setup, teardown), cmocka_unit_test_setup_teardown(never_heard_of, setup, teardown),
                                       cmocka_unit_test_setup_teardown(other_table_and_damage, setup, teardown)};
    return cmocka_run_group_tests_name("diverts", tests, NULL, NULL);
}
