/* The archive as a delivery, over memory: each record in one object whatever ends the process; two processes; damaged state; rows that are given up; options. */
#include "archive_fixture.h"
#include <inttypes.h>
#include <jansson.h>

static char root[64]; /* mem://... of one test */
static int test_number;

typedef struct bench { fz_arena *a; dlv_delivery *d; int64_t at; } bench; /* one "process"; at: where it reads */

static fz_status open_with(bench *b, const fz_pair *more, size_t n_more, fz_error *err) {
    fz_pair o[12] = {{.key = "connector", .value = "firehose-s3"}, {.key = "buffer.size", .value = "1 mb"}};
    size_t n = 2;
    memset(b, 0, sizeof *b);
    b->a = fz_arena_new();
    if (!fz_pair_get(more, n_more, "path")) o[n++] = (fz_pair){.key = "path", .value = fz_arena_printf(b->a, "%s/out/!{timestamp:yyyy}/", root)};
    for (size_t i = 0; i < n_more; i++) o[n++] = more[i];
    dlv_context cx = {.table = "c.d.arch", .pipeline = "p", .schema = schema_of(b->a), .state_dir = fz_arena_printf(b->a, "%s/state", root), .time_zone = "UTC", .memory = 8 << 20};
    return dlv_open(o, n, &cx, &b->d, err);
}
static void start(bench *b, const char *error_path) {
    fz_error err;
    fz_pair more = {.key = "error.path", .value = error_path};
    if (open_with(b, &more, error_path ? 1 : 0, &err) != FZ_OK) fail_msg("%s", err.message);
}
static void end(bench *b) {
    dlv_close(b->d);
    fz_arena_free(b->a);
}

/* What the job does at a start: the position, and what of it is an intent ("": none). */
static const char *load(bench *b) {
    fz_error err;
    const char *state, *ranges, *after;
    if (dlv_load(b->d, b->a, &state, &ranges, &after, &err) != FZ_OK) fail_msg("%s", err.message);
    b->at = *state ? strtoll(state, NULL, 10) : 0;
    return ranges;
}

static const char *ranges_text(fz_arena *a, int64_t from, int64_t to) { return fz_arena_printf(a, "[[\"k\",\"t\",0,%" PRId64 ",%" PRId64 "]]", from, to); }

/* Rows [at, to) as a lot. */
static dlv_lot *read_to(bench *b, int64_t to) {
    fz_error err;
    uint32_t n = (uint32_t)(to - b->at);
    int64_t *at = FZ_ANEWN(b->a, int64_t, n + 1);
    for (uint32_t i = 0; i < n; i++) at[i] = 1789000000000 + b->at + i;
    dlv_rows r = {.cols = rows_of(b->a, schema_of(b->a), b->at, n, false), .n = n, .time_ms = at, .scratch = b->a};
    assert_int_equal(dlv_write(b->d, &r, &err), FZ_OK);
    return dlv_cut(b->d);
}
static fz_status commit_to(bench *b, dlv_lot *lot, int64_t to, fz_error *err) {
    fz_status rc = dlv_commit(b->d, lot, ranges_text(b->a, b->at, to), fz_arena_printf(b->a, "%" PRId64, to), err);
    if (rc == FZ_OK) b->at = to;
    return rc;
}
static fz_status deliver(bench *b, int64_t to, fz_error *err) {
    dlv_lot *lot = read_to(b, to);
    fz_status rc = commit_to(b, lot, to, err);
    dlv_lot_free(lot);
    return rc;
}
/* Makes an intent good as the job does. */
static void make_good(bench *b, const char *intent) {
    fz_error err;
    json_t *all = json_loads(intent, 0, NULL);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(all, 0), 3)), b->at);
    int64_t to = json_integer_value(json_array_get(json_array_get(all, 0), 4));
    json_decref(all);
    if (deliver(b, to, &err) != FZ_OK) fail_msg("%s", err.message);
}

/* ---- the judge ---- */

typedef struct found { int seen[4096]; int objects, rows; fz_buf names; } found;
static bool count_object(void *cx, const char *location, uint64_t size, int64_t mtime) {
    (void)mtime;
    found *f = cx;
    fz_error err;
    fz_buf raw = {0}, text = {0};
    assert_int_equal(fio_read(NULL, location, 64 << 20, &raw, &err), FZ_OK);
    assert_int_equal(raw.len, size);
    unzip(&raw, &text);
    f->objects++;
    fz_buf_printf(&f->names, "%s\n", location);
    for (const char *p = (const char *)text.data, *e = p + text.len; p < e;) {
        const char *lf = memchr(p, '\n', (size_t)(e - p));
        assert_non_null(lf);
        f->seen[strtol(p + strlen("{\"id\":"), NULL, 10)]++;
        f->rows++;
        p = lf + 1;
    }
    fz_buf_free(&raw);
    fz_buf_free(&text);
    return true;
}
static void judge(int64_t n, int objects) {
    fz_error err;
    found *f = FZ_NEW(found);
    char out[96];
    snprintf(out, sizeof out, "%s/out/", root);
    assert_int_equal(fio_list(NULL, out, count_object, f, &err), FZ_OK);
    for (int i = 0; i < n; i++)
        if (f->seen[i] != 1) fail_msg("row %d is there %d times\n%s", i, f->seen[i], fz_buf_cstr(&f->names));
    assert_int_equal(f->rows, n);
    if (objects >= 0) assert_int_equal(f->objects, objects);
    fz_buf_free(&f->names);
    fz_free(f);
}
static bool count_any(void *cx, const char *location, uint64_t size, int64_t mtime) {
    (void)location, (void)size, (void)mtime;
    ++*(int *)cx;
    return true;
}
static int objects_below(const char *name) {
    fz_error err;
    int n = 0;
    char where[96];
    snprintf(where, sizeof where, "%s/%s/", root, name);
    assert_int_equal(fio_list(NULL, where, count_any, &n, &err), FZ_OK);
    return n;
}

static int fresh(void **state) {
    (void)state;
    snprintf(root, sizeof root, "mem://t%d", ++test_number);
    (void)!fz_fault_arm(NULL, NULL);
    return 0;
}

/* ---- tests ---- */

static void lots_follow_each_other(void **state) {
    (void)state;
    bench b;
    fz_error err;
    start(&b, NULL);
    assert_string_equal(load(&b), "");
    for (int64_t to = 100; to <= 400; to += 100) assert_int_equal(deliver(&b, to, &err), FZ_OK);
    assert_int_equal(commit_to(&b, NULL, 450, &err), FZ_OK); /* nothing but filtered records */
    assert_int_equal(objects_below("state/done"), 1);
    assert_int_equal(objects_below("state/intents"), 0);
    end(&b);
    start(&b, NULL);
    assert_string_equal(load(&b), "");
    assert_int_equal(b.at, 450);
    end(&b);
    judge(400, 4);
}

/* Ends at each point, in each of the ways that a step can end, in the first lot and in a later one; then another process goes on. */
static void an_end_at_each_step(void **state) {
    (void)state;
    static const char *const points[] = {"delivery.begin", "delivery.intent", "delivery.object", "delivery.done"};
    for (int first = 0; first < 2; first++)
        for (int k = 0; k < 4; k++)
            for (int replaying = 0; replaying < 2; replaying++) {
                fresh(NULL);
                bench b;
                fz_error err;
                char spec[64];
                start(&b, NULL);
                assert_string_equal(load(&b), "");
                if (!first) assert_int_equal(deliver(&b, 70, &err), FZ_OK);
                snprintf(spec, sizeof spec, "%s:1:unknown", points[k]);
                assert_int_equal(fz_fault_arm(spec, &err), FZ_OK);
                assert_int_equal(deliver(&b, 170, &err), FZ_UNKNOWN);
                end(&b);
                start(&b, NULL);
                const char *intent = load(&b);
                assert_int_equal(*intent != 0, k == 1); /* after the object and after the done record the lot is found */
                if (replaying && *intent) { /* it ends in the same place again, with rows that are not on their way at all */
                    assert_int_equal(fz_fault_arm(spec, &err), FZ_OK);
                    assert_int_equal(deliver(&b, 170, &err), FZ_UNKNOWN);
                    end(&b);
                    start(&b, NULL);
                    intent = load(&b);
                }
                assert_int_equal(fz_fault_arm(NULL, &err), FZ_OK);
                if (*intent) make_good(&b, intent);
                assert_int_equal(b.at, k == 0 ? (first ? 0 : 70) : 170);
                assert_int_equal(deliver(&b, 260, &err), FZ_OK);
                end(&b);
                judge(260, -1);
                assert_int_equal(objects_below("state/intents"), 0);
                assert_int_equal(objects_below("state/done"), 1);
            }
}

/* The same lot again and again in one process, as the courier does it. */
static void a_lot_is_tried_again(void **state) {
    (void)state;
    bench b;
    fz_error err;
    start(&b, NULL);
    load(&b);
    assert_int_equal(fz_fault_arm("delivery.begin:1:retry,delivery.intent:1:unknown,delivery.object:1:eio,delivery.done:1:unknown", &err), FZ_OK);
    dlv_lot *lot = read_to(&b, 90);
    for (int i = 0; i < 4; i++) assert_int_not_equal(commit_to(&b, lot, 90, &err), FZ_OK);
    assert_int_equal(commit_to(&b, lot, 90, &err), FZ_OK);
    dlv_lot_free(lot);
    assert_int_equal(deliver(&b, 120, &err), FZ_OK);
    end(&b);
    judge(120, 2);
}

/* Two processes that know nothing of each other. */
static void a_copy_is_found_out(void **state) {
    (void)state;
    bench a, b;
    fz_error err;
    start(&a, NULL);
    start(&b, NULL);
    load(&a);
    load(&b);
    assert_int_equal(deliver(&a, 100, &err), FZ_OK);
    assert_int_equal(deliver(&b, 60, &err), FZ_CONFLICT);
    assert_string_equal(err.code, "delivery.moved");
    assert_string_equal(load(&b), "");
    assert_int_equal(b.at, 100);
    /* the same ranges at the same time: both may do it */
    assert_int_equal(deliver(&b, 150, &err), FZ_OK);
    assert_int_equal(deliver(&a, 150, &err), FZ_OK);
    end(&a);
    end(&b);
    judge(150, 2);
}

/* One has begun a lot and is on its way; another, which knows nothing of that, must not take its number with other records. */
static void a_begun_lot_is_respected(void **state) {
    (void)state;
    bench a, b;
    fz_error err;
    start(&a, NULL);
    start(&b, NULL);
    load(&a);
    load(&b);
    assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
    dlv_lot *lot = read_to(&a, 100);
    assert_int_equal(commit_to(&a, lot, 100, &err), FZ_UNKNOWN);
    assert_int_equal(deliver(&b, 60, &err), FZ_CONFLICT);
    assert_string_equal(err.code, "delivery.moved");
    assert_int_equal(commit_to(&b, NULL, 60, &err), FZ_CONFLICT);
    assert_int_equal(commit_to(&a, lot, 100, &err), FZ_OK);
    dlv_lot_free(lot);
    end(&a);
    end(&b);
    judge(100, 1);
}

/* One sleeps after its intent, the other makes it good and goes on; then the first wakes up, delivers its lot a second time under the same name, and goes no further. */
static void a_sleeper_wakes(void **state) {
    (void)state;
    for (int steps = 1; steps < 4; steps++) {
        fresh(NULL);
        bench sleeper, other;
        fz_error err;
        start(&sleeper, NULL);
        load(&sleeper);
        assert_int_equal(deliver(&sleeper, 50, &err), FZ_OK);
        assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
        dlv_lot *lot = read_to(&sleeper, 150);
        assert_int_equal(commit_to(&sleeper, lot, 150, &err), FZ_UNKNOWN);
        assert_int_equal(fz_fault_arm(NULL, &err), FZ_OK);
        start(&other, NULL);
        make_good(&other, load(&other));
        for (int i = 1; i < steps; i++) assert_int_equal(deliver(&other, other.at + 33, &err), FZ_OK);
        fz_status rc = commit_to(&sleeper, lot, 150, &err);
        assert_int_equal(rc, steps == 1 ? FZ_OK : FZ_CONFLICT);
        dlv_lot_free(lot);
        if (steps > 1) { /* it goes on as if nothing had happened */
            sleeper.at = 150;
            assert_int_equal(deliver(&sleeper, 300, &err), FZ_CONFLICT);
        }
        assert_string_equal(load(&other), "");
        load(&sleeper);
        assert_int_equal(sleeper.at, other.at);
        judge(other.at, -1);
        end(&sleeper);
        end(&other);
    }
}

/* A number whose intent was settled and removed is not free: only positions move, and lots after it. */
static void old_numbers_are_not_free(void **state) {
    (void)state;
    bench sleeper, other;
    fz_error err;
    start(&sleeper, NULL);
    load(&sleeper);
    start(&other, NULL);
    load(&other);
    for (int64_t to = 10; to < 60; to += 10) assert_int_equal(deliver(&other, to, &err), FZ_OK);
    assert_int_equal(commit_to(&sleeper, NULL, 5, &err), FZ_CONFLICT);
    assert_int_equal(deliver(&sleeper, 7, &err), FZ_CONFLICT);
    assert_string_equal(load(&other), "");
    assert_int_equal(other.at, 50);
    assert_int_equal(objects_below("state/intents"), 0);
    end(&sleeper);
    end(&other);
    judge(50, 5);
}

/* Its records are gone: the intent is written off, and the source goes on where it can. */
static void an_intent_that_cannot_be_made_good(void **state) {
    (void)state;
    bench b;
    fz_error err;
    start(&b, NULL);
    load(&b);
    assert_int_equal(deliver(&b, 10, &err), FZ_OK);
    assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
    assert_int_equal(deliver(&b, 40, &err), FZ_UNKNOWN);
    end(&b);
    start(&b, NULL);
    assert_true(*load(&b));
    assert_int_equal(commit_to(&b, NULL, 20, &err), FZ_OK); /* as if 10 to 20 were lost */
    assert_int_equal(deliver(&b, 30, &err), FZ_OK);
    end(&b);
    start(&b, NULL);
    assert_string_equal(load(&b), "");
    assert_int_equal(b.at, 30);
    end(&b);
}

static void spoil(const char *below, size_t byte) {
    fz_error err;
    char path[128];
    fz_buf b = {0};
    snprintf(path, sizeof path, "%s/state/%s", root, below);
    assert_int_equal(fio_read(NULL, path, 1 << 20, &b, &err), FZ_OK);
    b.data[byte % b.len] ^= 4;
    assert_int_equal(fio_put(NULL, path, b.data, b.len, &err), FZ_OK);
    fz_buf_free(&b);
}

static void damaged_records_are_named(void **state) {
    (void)state;
    const char *s, *r, *i;
    for (size_t byte = 3; byte < 700; byte += 41)
        for (int done = 0; done < 2; done++) {
            fresh(NULL);
            bench b;
            fz_error err;
            start(&b, NULL);
            load(&b);
            assert_int_equal(deliver(&b, 10, &err), FZ_OK);
            assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
            assert_int_equal(deliver(&b, 20, &err), FZ_UNKNOWN);
            const char *file = done ? "done/000000000001.json" : "intents/000000000002.json";
            spoil(file, byte);
            assert_int_equal(dlv_load(b.d, b.a, &s, &r, &i, &err), FZ_FATAL);
            assert_string_equal(err.code, "delivery.state");
            assert_non_null(strstr(err.message, file));
            end(&b);
        }
    /* the newest done record is missing */
    fresh(NULL);
    bench b;
    fz_error err;
    char path[128];
    start(&b, NULL);
    load(&b);
    assert_int_equal(deliver(&b, 10, &err), FZ_OK);
    assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
    assert_int_equal(deliver(&b, 20, &err), FZ_UNKNOWN);
    snprintf(path, sizeof path, "%s/state/done/000000000001.json", root);
    assert_int_equal(fio_delete(NULL, path, &err), FZ_OK);
    assert_int_equal(dlv_load(b.d, b.a, &s, &r, &i, &err), FZ_FATAL);
    assert_string_equal(err.code, "delivery.state");
    end(&b);
}

/* ---- giving up ---- */

typedef struct errors { int rows; int64_t arrival; fz_buf text; char location[256]; } errors;
static bool read_errors(void *cx, const char *location, uint64_t size, int64_t mtime) {
    (void)size, (void)mtime;
    errors *e = cx;
    fz_error err;
    fz_buf raw = {0};
    snprintf(e->location, sizeof e->location, "%s", location);
    assert_int_equal(fio_read(NULL, location, 1 << 20, &raw, &err), FZ_OK);
    for (size_t at = 0; at < raw.len;) {
        const char *p = (const char *)raw.data + at, *lf = memchr(p, '\n', raw.len - at);
        json_t *j = json_loadb(p, (size_t)(lf - p), 0, NULL);
        assert_string_equal(json_string_value(json_object_get(j, "errorCode")), "S3.AccessDenied");
        assert_string_equal(json_string_value(json_object_get(j, "errorMessage")), "no \"right\"");
        assert_string_equal(json_string_value(json_object_get(j, "table")), "c.d.arch");
        assert_int_equal(json_integer_value(json_object_get(j, "attemptsMade")), 1);
        assert_true(json_integer_value(json_object_get(j, "attemptEndingTimestamp")) > 1600000000000);
        assert_int_equal(json_integer_value(json_object_get(j, "arrivalTimestamp")), e->arrival + e->rows);
        fz_buf_printf(&e->text, "%s\n", json_string_value(json_object_get(j, "rawData")));
        json_decref(j);
        e->rows++;
        at = (size_t)(lf + 1 - (const char *)raw.data);
    }
    fz_buf_free(&raw);
    return true;
}

static void rows_that_are_given_up(void **state) {
    (void)state;
    bench b;
    fz_error err, why;
    char path[96];
    snprintf(path, sizeof path, "%s/err/!{firehose:error-output-type}/!{timestamp:yyyy-MM}/", root);
    start(&b, path);
    load(&b);
    assert_int_equal(deliver(&b, 5, &err), FZ_OK);
    (void)!fz_fail(&why, FZ_USER, "file.permission", "no \"right\"");
    const char *ranges = ranges_text(b.a, 5, 12);
    dlv_lot *lot = read_to(&b, 12);
    ((archive_lot *)lot)->tried = true; /* it was refused */
    ((archive_lot *)lot)->attempts = 1;
    ((archive_lot *)lot)->last_attempt_ms = fz_now_ms();
    assert_int_equal(fz_fault_arm("delivery.done:1:retry", &err), FZ_OK);
    assert_int_equal(dlv_divert(b.d, lot, ranges, "12", &why, &err), FZ_RETRY);
    assert_int_equal(dlv_divert(b.d, lot, ranges, "12", &why, &err), FZ_OK);
    assert_int_equal(dlv_lot_rejected(lot), 7);
    dlv_lot_free(lot);
    errors e = {.arrival = 1789000000005};
    snprintf(path, sizeof path, "%s/err/", root);
    assert_int_equal(fio_list(NULL, path, read_errors, &e, &err), FZ_OK);
    assert_int_equal(e.rows, 7);
    assert_int_equal(objects_below("state/diverted"), 1);
    snprintf(path, sizeof path, "%s/err/s3-failed/2026-09/p-arch-1-2026-09-10-00-26-40-", root);
    assert_memory_equal(e.location, path, strlen(path));
    fz_buf line = {0}, want = {0};
    want_line(&line, 5);
    fz_buf_base64(&want, line.data, line.len - 1);
    fz_buf_putc(&want, '\n');
    assert_memory_equal(e.text.data, want.data, want.len);
    fz_buf_free(&line);
    fz_buf_free(&want);
    fz_buf_free(&e.text);
    assert_string_equal(load(&b), "");
    assert_int_equal(b.at, 12);
    end(&b);
    judge(5, 1);
}

static void given_up_for_good(void **state) {
    (void)state;
    bench b;
    fz_error err, why;
    char path[96];
    snprintf(path, sizeof path, "%s/err/", root);
    start(&b, path);
    load(&b);
    (void)!fz_fail(&why, FZ_USER, "file.permission", "no");
    dlv_lot *lot = read_to(&b, 8);
    ((archive_lot *)lot)->tried = true;
    assert_int_equal(fz_fault_arm("delivery.diverted:1:unknown", &err), FZ_OK);
    assert_int_equal(dlv_divert(b.d, lot, ranges_text(b.a, 0, 8), "8", &why, &err), FZ_UNKNOWN);
    dlv_lot_free(lot);
    end(&b);
    start(&b, path);
    assert_string_equal(load(&b), "");
    assert_int_equal(b.at, 8);
    end(&b);
    assert_int_equal(objects_below("err"), 1);
    judge(0, 0);
}

/* An attempt whose answer was lost had delivered them; and nothing is given up because the state cannot be written. */
static void what_arrived_is_not_given_up(void **state) {
    (void)state;
    bench b;
    fz_error err, why;
    char path[96];
    snprintf(path, sizeof path, "%s/err/", root);
    start(&b, path);
    load(&b);
    (void)!fz_fail(&why, FZ_RETRY, "aws.unavailable", "away");
    dlv_lot *lot = read_to(&b, 8);
    assert_int_equal(fz_fault_arm("delivery.object:1:retry", &err), FZ_OK);
    assert_int_equal(commit_to(&b, lot, 8, &err), FZ_RETRY);
    assert_int_equal(dlv_divert(b.d, lot, ranges_text(b.a, 0, 8), "8", &why, &err), FZ_OK);
    dlv_lot_free(lot);
    b.at = 8;
    lot = read_to(&b, 11);
    assert_int_equal(fz_fault_arm("delivery.begin:0:retry", &err), FZ_OK);
    assert_int_equal(commit_to(&b, lot, 11, &err), FZ_RETRY);
    assert_int_equal(dlv_divert(b.d, lot, ranges_text(b.a, 8, 11), "11", &why, &err), FZ_RETRY);
    assert_int_equal(fz_fault_arm(NULL, &err), FZ_OK);
    assert_int_equal(dlv_divert(b.d, lot, ranges_text(b.a, 8, 11), "11", &why, &err), FZ_OK);
    dlv_lot_free(lot);
    end(&b);
    judge(11, 2);
    assert_int_equal(objects_below("err"), 0);
}

static void without_an_error_path(void **state) {
    (void)state;
    bench b;
    fz_error err, why;
    start(&b, NULL);
    load(&b);
    (void)!fz_fail(&why, FZ_USER, "file.permission", "no");
    dlv_lot *lot = read_to(&b, 8);
    ((archive_lot *)lot)->tried = true;
    assert_int_equal(dlv_divert(b.d, lot, ranges_text(b.a, 0, 8), "8", &why, &err), FZ_USER);
    assert_string_equal(err.code, "delivery.no-error-path");
    dlv_lot_free(lot);
    end(&b);
}

/* ---- buffers, options ---- */

static void buffers(void **state) {
    (void)state;
    bench b;
    fz_error err;
    fz_pair more[] = {{.key = "buffer.size", .value = "10 kb"}};
    assert_int_equal(open_with(&b, more, 1, &err), FZ_OK);
    load(&b);
    assert_true(dlv_wants(b.d)); /* nothing of this process is committed: positions should be */
    assert_int_equal(commit_to(&b, NULL, 0, &err), FZ_OK);
    assert_false(dlv_wants(b.d));
    dlv_rows r = {.cols = rows_of(b.a, schema_of(b.a), 0, 50, false), .n = 50, .scratch = b.a};
    assert_int_equal(dlv_write(b.d, &r, &err), FZ_OK);
    assert_false(dlv_wants(b.d));
    assert_false(dlv_is_full(b.d));
    for (int i = 0; i < 5; i++) assert_int_equal(dlv_write(b.d, &r, &err), FZ_OK);
    assert_true(dlv_wants(b.d));
    assert_true(dlv_is_full(b.d));
    dlv_drop(b.d);
    assert_false(dlv_is_full(b.d));
    assert_null(dlv_cut(b.d));
    end(&b);
}

static void no_times_and_no_state(void **state) {
    (void)state;
    bench b;
    fz_error err;
    start(&b, NULL);
    fz_clock_fix(1789000000000000);
    dlv_rows r = {.cols = rows_of(b.a, schema_of(b.a), 0, 50, false), .n = 50, .scratch = b.a};
    assert_int_equal(dlv_write(b.d, &r, &err), FZ_OK);
    dlv_lot *lot = dlv_cut(b.d);
    assert_int_equal(dlv_commit(b.d, lot, "\"run/1/0\"", NULL, &err), FZ_OK);
    assert_int_equal(dlv_commit(b.d, lot, "\"run/1/0\"", NULL, &err), FZ_OK); /* the same object */
    dlv_lot_free(lot);
    fz_clock_fix(0);
    end(&b);
    judge(50, 1);
    assert_int_equal(objects_below("state"), 0);
}

static void wrong(const char *key, const char *value, const char *word) {
    bench b;
    fz_error err = {0};
    fz_pair more[] = {{.key = key, .value = value, .line = 7, .column = 3}};
    char all[4096];
    if (open_with(&b, more, 1, &err) == FZ_OK) fail_msg("'%s' = '%s' is taken", key, value);
    fz_error_text(&err, all, sizeof all);
    assert_int_equal(err.cls, FZ_USER);
    if (!strstr(all, word)) fail_msg("%s: \"%s\" does not name %s", key, all, word);
    fz_arena_free(b.a);
}
static void right(const char *key, const char *value) {
    bench b;
    fz_error err = {0};
    fz_pair more[] = {{.key = key, .value = value}};
    if (open_with(&b, more, 1, &err) != FZ_OK) fail_msg("'%s' = '%s': %s", key, value, err.message);
    end(&b);
}

static void options(void **state) {
    (void)state;
    wrong("path", "bucket/prefix", "location");
    wrong("path", "s3://a-!{timestamp:yyyy}/x", "bucket");
    wrong("path", "s3://bucket/!{timestamp:yyyy", "closed");
    wrong("compression", "ZIP", "does not write");
    wrong("compression", "Snappy", "does not write");
    wrong("compression", "HADOOP_SNAPPY", "does not write");
    wrong("compression", "BROTLI", "unknown");
    wrong("buffer.size", "0", "buffer.size");
    wrong("buffer.size", "2 gb", "1 GiB");
    wrong("buffer.interval", "soon", "soon");
    wrong("stream-name", "a b", "stream");
    wrong("stream-version", "0", "from 1");
    wrong("custom-time-zone", "Mars/Base", "time zone");
    wrong("file-extension", "gz", "extension");
    wrong("format", "csv", "csv");
    wrong("path", "gs://x/y/", "is no location");
    wrong("path", "file://elsewhere/y/", "is no location");
    wrong("error.path", "gs://x/", "is no location");
    wrong("error.path", "mem://x/!{timestamp:yyyy}/", "error-output-type");
    wrong("buffer.siz", "1", "buffer.size");
    wrong("s3.endpont", "x", "s3.endpoint");
    right("s3.endpoint", "http://127.0.0.1:1");
    right("client.region", "eu-west-1");
    right("error.path", "errors/");
    right("compression", "zstd");
    right("custom-time-zone", "Asia/Tokyo");
    right("file-extension", ".ndjson.gz");
}

/* ---- other names for one place ---- */

static void open_as(bench *b, const char *pipeline, const char *path) {
    fz_error err;
    memset(b, 0, sizeof *b);
    b->a = fz_arena_new();
    const fz_pair o[] = {{.key = "connector", .value = "firehose-s3"}, {.key = "path", .value = path}};
    dlv_context cx = {.table = "c.d.arch", .pipeline = pipeline, .schema = schema_of(b->a), .state_dir = fz_arena_printf(b->a, "%s/all/%s/c.d.arch", root, pipeline), .time_zone = "UTC", .memory = 8 << 20};
    if (dlv_open(o, 2, &cx, &b->d, &err) != FZ_OK) fail_msg("%s", err.message);
    (void)load(b);
}
static uint32_t others(bench *b, dlv_other **v) {
    fz_error err;
    uint32_t n;
    if (dlv_others(b->d, fz_arena_printf(b->a, "%s/all", root), b->a, v, &n, &err) != FZ_OK) fail_msg("%s", err.message);
    return n;
}
static void other_names_of_one_place(void **state) {
    (void)state;
    bench old, renamed, elsewhere;
    dlv_other *v;
    fz_error err;
    char path[128], path2[128];
    snprintf(path, sizeof path, "%s/out/", root);
    snprintf(path2, sizeof path2, "%s/out2/", root);
    open_as(&old, "old", path);
    assert_int_equal(others(&old, &v), 0);
    assert_int_equal(deliver(&old, 7, &err), FZ_OK);
    assert_int_equal(others(&old, &v), 0); /* it is none of the others */
    open_as(&renamed, "new", path);
    open_as(&elsewhere, "new", path2);
    assert_int_equal(others(&elsewhere, &v), 0);
    assert_int_equal(others(&renamed, &v), 1);
    assert_string_equal(v[0].pipeline, "old");
    assert_string_equal(v[0].table, "c.d.arch");
    assert_string_equal(v[0].state, "7");
    assert_string_equal(v[0].intent_ranges, "");
    for (int named = 0; named < 2; named++) { /* beside them one that prints: it goes nowhere that lasts, and keeps its positions in another way */
        char *printer = fz_asprintf("%s/all/old/c.d.p/%s", root, named ? "delivery.json" : "positions.json");
        const char *text = named ? "{\"version\":1,\"pipeline\":\"old\",\"table\":\"c.d.p\",\"destination\":\"\"}" : "9";
        assert_int_equal(fio_put(NULL, printer, text, strlen(text), &err), FZ_OK);
        assert_int_equal(others(&renamed, &v), 1);
        fz_free(printer);
    }
    dlv_lot *lot = read_to(&old, 9); /* begun, not ended */
    assert_int_equal(fz_fault_arm("delivery.intent:1:unknown", &err), FZ_OK);
    assert_int_not_equal(commit_to(&old, lot, 9, &err), FZ_OK);
    assert_int_equal(others(&renamed, &v), 1);
    assert_string_equal(v[0].state, "7");
    assert_string_equal(v[0].intent_ranges, ranges_text(renamed.a, 7, 9));
    dlv_lot_free(lot);
    end(&old);
    end(&renamed);
    end(&elsewhere);
}

int main(void) {
#define T(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        T(lots_follow_each_other), T(an_end_at_each_step), T(a_lot_is_tried_again), T(a_copy_is_found_out), T(a_begun_lot_is_respected), T(a_sleeper_wakes), T(old_numbers_are_not_free), T(an_intent_that_cannot_be_made_good),
        T(damaged_records_are_named), T(rows_that_are_given_up), T(given_up_for_good), T(what_arrived_is_not_given_up), T(without_an_error_path), T(buffers), T(no_times_and_no_state), T(options), T(other_names_of_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
