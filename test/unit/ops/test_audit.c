/* The audit passes on what the protocol writes, and fails on each thing that could be wrong with it; inspect shows what is there.
 * Tables are real but for their data files, which are only named. */
#include "job/positions.h"
#include "ops/ops.h"
#include "fileio/fileio.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static char root[64];
static fz_error err;
static fz_arena *arena;
static cat_catalog *cat;
static cat_ident id;
static unsigned n_files;

#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s [%s]", #x, err.message, err.code); } while (0)

static int setup(void **state) {
    (void)state;
    static const char *const level[] = {"db"};
    strcpy(root, "/tmp/frazil-audit-XXXXXX");
    assert_non_null(mkdtemp(root));
    arena = fz_arena_new();
    fz_pair o[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "hadoop"}, {.key = "warehouse", .value = root}};
    OK(cat_open("lake", o, 3, NULL, &cat, &err));
    id = (cat_ident){{1, level}, "t"};
    OK(cat_create_namespace(cat, id.ns, NULL, 0, &err));
    col_field f[2] = {{"id", col_simple(COL_BIGINT, false), NULL}, {"dt", col_string(true), NULL}};
    col_schema s = {2, f};
    ice_schema *is;
    ice_spec *spec;
    ice_metadata *m;
    cat_table *t;
    const ice_term by_dt = {.column = "dt"};
    const char *location;
    char uuid[37];
    fz_uuid4(uuid);
    OK(ice_schema_from_cols(arena, &s, NULL, 0, &is, &err));
    OK(ice_spec_build(arena, is, &by_dt, 1, &spec, &err));
    OK(cat_default_location(cat, &id, arena, &location, &err));
    OK(ice_metadata_new(location, is, spec, NULL, NULL, 0, uuid, fz_now_ms(), &m, &err));
    OK(cat_create_table(cat, &id, m, &t, &err));
    cat_table_free(t);
    n_files = 0;
    return 0;
}
static int teardown(void **state) {
    (void)state;
    cat_close(cat);
    fz_arena_free(arena);
    return fio_delete_tree(NULL, root, &err) != FZ_OK;
}

static cat_table *load(void) {
    cat_table *t;
    OK(cat_load_table(cat, &id, &t, &err));
    return t;
}

static ice_data_file file_of(int64_t rows, const char *dt) {
    static uint8_t lo[8] = {1}, hi[8] = {9};
    ice_value *v = FZ_ANEW(arena, ice_value);
    ice_bound *lower = FZ_ANEW(arena, ice_bound), *upper = FZ_ANEW(arena, ice_bound);
    *v = (ice_value){.kind = ICE_STRING, .s = fz_sv_of(dt)};
    *lower = (ice_bound){1, {(const char *)lo, 8}};
    *upper = (ice_bound){1, {(const char *)hi, 8}};
    return (ice_data_file){.content = ICE_DATA, .path = fz_arena_printf(arena, "%s/db/t/data/dt=%s/f%u.parquet", root, dt, n_files++), .format = "PARQUET", .partition = {1, v},
                           .record_count = rows, .file_size = 100 + rows, .lower = {1, lower}, .upper = {1, upper}, .sort_order_id = ICE_NONE};
}

/* One commit: files, ranges and positions as they are given. Returns the snapshot id. */
static int64_t commit_marks(const ice_data_file *files, uint32_t n, job_marks marks, const char *property) {
    static int64_t next_id = 1000;
    cat_table *t = load(), *t2;
    char uuid[37];
    fz_uuid4(uuid);
    fz_pair summary[2 + JOB_MAX_KEYS];
    if (!marks.commit_id) marks.commit_id = fz_arena_strdup(arena, uuid);
    size_t n_summary = marks.pipeline ? job_marks_encode(arena, &marks, summary) : 0;
    job_mirror mirror = {.snapshot_id = ++next_id, .sequence_number = t->metadata->last_sequence_number + 1, .n = marks.n_positions, .positions = marks.positions, .n_diverted = marks.n_diverted, .diverted = marks.diverted};
    fz_pair prop = {.key = JOB_MIRROR_PREFIX "p", .value = property ? property : job_mirror_encode(arena, &mirror)};
    ice_append ap = {.files = files, .n_files = n, .summary = summary, .n_summary = (uint32_t)n_summary, .properties = &prop, .n_properties = marks.pipeline != NULL, .snapshot_id = next_id,
                     .uuid = uuid, .attempt = 1, .now_ms = fz_now_ms()};
    ice_append_result r = {0};
    OK(ice_append_build(arena, t->metadata, &ap, &cat_io, &r, &err));
    OK(cat_commit(cat, t, &r.changes, &t2, &err));
    ice_changes_free(&r.changes);
    cat_table_free(t2);
    cat_table_free(t);
    return next_id;
}

static job_split_key key_of(int32_t partition) { return (job_split_key){"cluster/abc", "syslog", partition}; }

/* A commit of splits 0 and 1 as the protocol makes it: both go from `from` to `to`, in files of two partitions. */
static int64_t good_commit(int64_t from, int64_t to) {
    uint64_t n = (uint64_t)(to - from);
    job_range r[2];
    job_position p[2];
    for (int32_t i = 0; i < 2; i++) {
        r[i] = (job_range){key_of(i), from, to, n, n - 3, 1, 1, 1, 1, 0};
        p[i] = (job_position){.key = key_of(i), .next = to, .has_last = true, .last_offset = to - 1, .last_timestamp = 1700000000000, .last_hash = 7};
    }
    ice_data_file f[2] = {file_of((int64_t)n - 3, "2026-09-16"), file_of((int64_t)n - 3, "2026-09-17")};
    return commit_marks(f, 2, (job_marks){.pipeline = "p", .checkpoint = 1, .n_positions = 2, .positions = p, .n_ranges = 2, .ranges = r}, NULL);
}

static ops_verdict verdict;
static const char *audit(ops_format format, bool files) {
    cat_table *t = load();
    fz_buf b = {0};
    ops_audit_options o = {.format = format, .files = files};
    OK(ops_audit(t, &o, &b, &verdict, &err));
    const char *s = fz_arena_strdup(arena, fz_buf_cstr(&b));
    fz_buf_free(&b);
    cat_table_free(t);
    return s;
}
#define PASSES() do { const char *s_ = audit(OPS_TEXT, false); if (verdict.failures) fail_msg("%s", s_); } while (0)
#define FAILS_WITH(code) do { const char *s_ = audit(OPS_TEXT, false); if (!verdict.failures || !strstr(s_, "FAIL " code)) fail_msg("wanted " code " in:\n%s", s_); } while (0)

static void test_good_table(void **state) {
    (void)state;
    PASSES(); /* empty */
    good_commit(0, 10);
    good_commit(10, 110);
    good_commit(110, 120);
    const char *s = audit(OPS_TEXT, false);
    if (verdict.failures || verdict.warnings) fail_msg("%s", s);
    assert_int_equal(verdict.snapshots, 3);
    assert_int_equal(verdict.commits, 3);
    assert_int_equal(verdict.live_files, 6);
    assert_int_equal(verdict.live_rows, 2 * (7 + 97 + 7));
    assert_true(verdict.complete);
    assert_non_null(strstr(s, "[0, 120)  read 120  added 111  filtered 3  rejected 3  unparseable 3"));
    assert_non_null(strstr(s, "audit passed"));
    assert_non_null(strstr(s, "first snapshot"));
    json_t *j = json_loads(audit(OPS_JSON, false), 0, NULL);
    assert_non_null(j);
    assert_true(json_is_true(json_object_get(j, "passed")));
    json_t *splits = json_object_get(json_array_get(json_object_get(j, "pipelines"), 0), "splits");
    assert_int_equal(json_array_size(splits), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(splits, 1), "added")), 111);
    json_decref(j);
}

static void test_ranges(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(15, 20);
    FAILS_WITH("audit.gap");
}
static void test_overlap(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(5, 20);
    FAILS_WITH("audit.overlap");
}

static void one_split(job_range r, int64_t next, int64_t rows, bool new_chain) {
    job_position p = {.key = key_of(0), .next = next};
    ice_data_file f = file_of(rows, "2026-09-16");
    r.key = key_of(0);
    commit_marks(&f, 1, (job_marks){.pipeline = "p", .new_chain = new_chain, .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, NULL);
}
static void test_counts(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 10, .read = 10, .added = 8, .filtered = 1, .paths = 1}, 10, 8, false);
    FAILS_WITH("audit.fates");
}
static void test_two_paths(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 10, .read = 10, .added = 12, .filtered = 8, .paths = 2}, 10, 12, false);
    PASSES();
}
static void test_added(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 10, .read = 10, .added = 10, .paths = 1}, 10, 9, false);
    FAILS_WITH("audit.added");
}
static void test_too_many_read(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 5, .read = 10, .added = 10, .paths = 1}, 5, 10, false);
    FAILS_WITH("audit.range");
}
static void test_position_differs(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 10, .read = 10, .added = 10, .paths = 1}, 11, 10, false);
    FAILS_WITH("audit.position");
}
static void test_new_chain(void **state) {
    (void)state;
    one_split((job_range){.from = 0, .to = 10, .read = 10, .added = 10, .paths = 1}, 10, 10, false);
    one_split((job_range){.from = 50, .to = 60, .read = 10, .added = 10, .paths = 1}, 60, 10, true);
    PASSES();
    assert_non_null(strstr(audit(OPS_TEXT, false), "audit.new-chain"));
    one_split((job_range){.from = 70, .to = 80, .read = 10, .added = 10, .paths = 1}, 80, 10, false);
    FAILS_WITH("audit.gap");
}
static void test_position_left_out(void **state) {
    (void)state;
    good_commit(0, 10);
    one_split((job_range){.from = 10, .to = 20, .read = 10, .added = 10, .paths = 1}, 20, 10, false);
    FAILS_WITH("audit.position");
}
/* A log that is gone may be left out from then on, and begins anew should it come back; others may not. */
static void test_gone(void **state) {
    (void)state;
    job_position p[2] = {{.key = key_of(0), .next = 10}, {.key = key_of(1), .next = 7}};
    job_range r = {key_of(0), 0, 10, 10, 0, 10, 0, 0, 1, 0}, back = {key_of(1), 0, 9, 9, 0, 9, 0, 0, 1, 0};
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 2, .positions = p, .n_ranges = 1, .ranges = &r}, NULL);
    p[1].gone_ms = 1700000000000;
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 2, .positions = p}, NULL);
    PASSES();
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 1, .positions = p}, NULL);
    PASSES();
    p[1].gone_ms = 0;
    p[1].next = 9;
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 2, .positions = p, .n_ranges = 1, .ranges = &back}, NULL);
    PASSES();
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 1, .positions = p}, NULL);
    FAILS_WITH("audit.position");
}
static void test_empty_commits(void **state) { /* positions move, rows do not come */
    (void)state;
    job_position p = {.key = key_of(0), .next = 40};
    job_range r = {key_of(0), 40, 40, 0, 0, 0, 0, 0, 1, 0}, r2 = {key_of(0), 40, 50, 10, 0, 10, 0, 0, 1, 0};
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, NULL);
    p.next = 50;
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r2}, NULL);
    PASSES();
    assert_non_null(strstr(audit(OPS_TEXT, false), "[40, 50)  read 10  added 0  filtered 10"));
}
static void test_file_twice(void **state) {
    (void)state;
    ice_data_file f = file_of(10, "2026-09-16");
    for (int64_t i = 0; i < 2; i++) {
        job_position p = {.key = key_of(0), .next = 10 + 10 * i};
        job_range r = {key_of(0), 10 * i, 10 + 10 * i, 10, 10, 0, 0, 0, 1, 0};
        commit_marks(&f, 1, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, NULL);
    }
    FAILS_WITH("audit.live-twice");
}
static void test_commit_twice(void **state) {
    (void)state;
    for (int64_t i = 0; i < 2; i++) {
        ice_data_file f = file_of(10, "2026-09-16");
        job_position p = {.key = key_of(0), .next = 10 + 10 * i};
        job_range r = {key_of(0), 10 * i, 10 + 10 * i, 10, 10, 0, 0, 0, 1, 0};
        commit_marks(&f, 1, (job_marks){.pipeline = "p", .commit_id = "the-same", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, NULL);
    }
    FAILS_WITH("audit.commit-twice");
}
static void test_bounds(void **state) {
    (void)state;
    ice_data_file f = file_of(10, "2026-09-16");
    ice_bounds swap = f.lower;
    f.lower = f.upper;
    f.upper = swap;
    job_position p = {.key = key_of(0), .next = 10};
    job_range r = {key_of(0), 0, 10, 10, 10, 0, 0, 0, 1, 0};
    commit_marks(&f, 1, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, NULL);
    FAILS_WITH("audit.bounds");
}
static void test_mirror(void **state) {
    (void)state;
    job_position p = {.key = key_of(0), .next = 10};
    job_range r = {key_of(0), 0, 10, 10, 10, 0, 0, 0, 1, 0};
    ice_data_file f = file_of(10, "2026-09-16");
    commit_marks(&f, 1, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r}, "{\"v\":2}");
    FAILS_WITH("audit.mirror");
}

/* ---- tampering ---- */

/* Rewrites the n-th manifest of the current snapshot without its last entry; with_list: the manifest list then says so too. */
static void take_entry_out(bool with_list) {
    cat_table *t = load();
    const ice_metadata *m = t->metadata;
    const ice_snapshot *s = ice_metadata_current(m);
    ice_manifest_list l;
    OK(ice_snapshot_manifests(arena, s, &cat_io, &l, &err));
    ice_manifest_file *v = FZ_ANEWN(arena, ice_manifest_file, l.n), made;
    for (uint32_t i = 0; i < l.n; i++) v[i] = l.v[i];
    const ice_spec *spec = ice_metadata_spec(m, v[0].spec_id);
    const ice_type **types = ice_metadata_spec_types(arena, m, spec);
    fz_buf b = {0}, out = {0};
    const ice_entry *e;
    uint32_t n;
    OK(fio_read(NULL, v[0].path, 1 << 20, &b, &err));
    OK(ice_manifest_decode(arena, b.data, b.len, &v[0], spec, types, &e, &n, &err));
    assert_true(n >= 2);
    ice_manifest_writer *w = ice_manifest_writer_new(m->schema, spec, types, 0, v[0].added_snapshot_id, ICE_AVRO_DEFLATE);
    for (uint32_t i = 0; i + 1 < n; i++) OK(ice_manifest_writer_add(w, &e[i], &err));
    OK(ice_manifest_writer_finish(w, arena, &out, &made, &err));
    OK(fio_put(NULL, v[0].path, out.data, out.len, &err));
    if (with_list) {
        v[0].added_files--;
        v[0].added_rows -= e[n - 1].file.record_count;
        v[0].length = (int64_t)out.len;
        out.len = 0;
        ice_manifest_list changed = {l.n, v};
        OK(ice_manifest_list_encode(&changed, s->id, s->parent_id, s->sequence, ICE_AVRO_DEFLATE, &out, &err));
        OK(fio_put(NULL, s->manifest_list, out.data, out.len, &err));
    }
    fz_buf_free(&b);
    fz_buf_free(&out);
    cat_table_free(t);
}
static void test_entry_taken_out(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(10, 20);
    PASSES();
    take_entry_out(false);
    FAILS_WITH("audit.manifest");
    FAILS_WITH("audit.added");
}
static void test_entry_taken_out_of_the_list_too(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(10, 20);
    take_entry_out(true);
    FAILS_WITH("audit.added");
    FAILS_WITH("audit.summary");
}

/* The whole manifest of an older commit is left out of the current list, as a careless rewrite would. */
static void test_manifest_left_out(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(10, 20);
    cat_table *t = load();
    const ice_snapshot *s = ice_metadata_current(t->metadata);
    ice_manifest_list l;
    OK(ice_snapshot_manifests(arena, s, &cat_io, &l, &err));
    assert_int_equal(l.n, 2);
    ice_manifest_file one = l.v[0].added_snapshot_id == s->id ? l.v[0] : l.v[1];
    ice_manifest_list less = {1, &one};
    fz_buf out = {0};
    OK(ice_manifest_list_encode(&less, s->id, s->parent_id, s->sequence, ICE_AVRO_DEFLATE, &out, &err));
    OK(fio_put(NULL, s->manifest_list, out.data, out.len, &err));
    fz_buf_free(&out);
    cat_table_free(t);
    FAILS_WITH("audit.lost");
}

/* The list's partition summary no longer covers what is in the manifest: readers with a filter would skip it. */
static void test_partition_summary(void **state) {
    (void)state;
    good_commit(0, 10);
    cat_table *t = load();
    const ice_snapshot *s = ice_metadata_current(t->metadata);
    ice_manifest_list l;
    OK(ice_snapshot_manifests(arena, s, &cat_io, &l, &err));
    ice_manifest_file f = l.v[0];
    ice_summary narrow = f.partitions[0];
    narrow.upper = narrow.lower;
    f.partitions = &narrow;
    ice_manifest_list less = {1, &f};
    fz_buf out = {0};
    OK(ice_manifest_list_encode(&less, s->id, s->parent_id, s->sequence, ICE_AVRO_DEFLATE, &out, &err));
    OK(fio_put(NULL, s->manifest_list, out.data, out.len, &err));
    fz_buf_free(&out);
    cat_table_free(t);
    FAILS_WITH("audit.partition");
}

static void test_manifest_gone(void **state) {
    (void)state;
    good_commit(0, 10);
    cat_table *t = load();
    ice_manifest_list l;
    OK(ice_snapshot_manifests(arena, ice_metadata_current(t->metadata), &cat_io, &l, &err));
    OK(fio_delete(NULL, l.v[0].path, &err));
    cat_table_free(t);
    FAILS_WITH("audit.unreadable");
}

/* Expiry cuts the provable chain; what is left is still proved, and the audit says where it begins. */
static void test_expired(void **state) {
    (void)state;
    int64_t first = good_commit(0, 10), second = good_commit(10, 20);
    good_commit(20, 30);
    cat_table *t = load(), *t2;
    ice_changes ch = ice_changes_new();
    ice_update_remove_snapshots(&ch, &first, 1);
    OK(cat_commit(cat, t, &ch, &t2, &err));
    ice_changes_free(&ch);
    cat_table_free(t);
    cat_table_free(t2);
    const char *s = audit(OPS_TEXT, false);
    if (verdict.failures) fail_msg("%s", s);
    assert_false(verdict.complete);
    assert_non_null(strstr(s, fz_arena_printf(arena, "provable from snapshot %lld", (long long)second)));
    assert_non_null(strstr(s, "[10, 30)"));
    assert_non_null(strstr(s, "note audit.cut"));
}

/* Another engine's compaction: all live files become one of so many rows, in a snapshot with the operation `replace`. */
static void compact(int64_t rows) {
    cat_table *t = load(), *t2;
    const ice_metadata *m = t->metadata;
    const ice_snapshot *s = ice_metadata_current(m);
    ice_manifest_list l;
    OK(ice_snapshot_manifests(arena, s, &cat_io, &l, &err));
    const ice_spec *spec = ice_metadata_spec(m, 0);
    const ice_type **types = ice_metadata_spec_types(arena, m, spec);
    int64_t new_id = s->id + 500000;
    ice_manifest_writer *w = ice_manifest_writer_new(m->schema, spec, types, 0, new_id, ICE_AVRO_DEFLATE);
    for (uint32_t i = 0; i < l.n; i++) {
        fz_buf b = {0};
        const ice_entry *e;
        uint32_t n;
        OK(fio_read(NULL, l.v[i].path, 1 << 20, &b, &err));
        OK(ice_manifest_decode(arena, b.data, b.len, &l.v[i], spec, types, &e, &n, &err));
        for (uint32_t k = 0; k < n; k++) {
            ice_entry gone = e[k];
            gone.status = ICE_DELETED;
            gone.snapshot_id = new_id;
            OK(ice_manifest_writer_add(w, &gone, &err));
        }
        fz_buf_free(&b);
    }
    ice_entry made = {.status = ICE_ADDED, .snapshot_id = new_id, .sequence = ICE_NONE, .file_sequence = ICE_NONE, .file = file_of(rows, "2026-09-16")};
    OK(ice_manifest_writer_add(w, &made, &err));
    fz_buf out = {0};
    ice_manifest_file mf;
    OK(ice_manifest_writer_finish(w, arena, &out, &mf, &err));
    mf.path = fz_arena_printf(arena, "%s/db/t/metadata/compacted.avro", root);
    OK(fio_put(NULL, mf.path, out.data, out.len, &err));
    out.len = 0;
    ice_manifest_list one = {1, &mf};
    fz_pair summary = {.key = "added-records", .value = fz_arena_printf(arena, "%lld", (long long)rows)};
    ice_snapshot next = {.id = new_id, .parent_id = s->id, .sequence = m->last_sequence_number + 1, .timestamp_ms = fz_now_ms(), .schema_id = 0, .operation = "replace", .n_summary = 1,
                         .summary = &summary, .manifest_list = fz_arena_printf(arena, "%s/db/t/metadata/snap-compacted.avro", root)};
    OK(ice_manifest_list_encode(&one, new_id, s->id, next.sequence, ICE_AVRO_DEFLATE, &out, &err));
    OK(fio_put(NULL, next.manifest_list, out.data, out.len, &err));
    fz_buf_free(&out);
    ice_changes ch = ice_changes_new();
    ice_update_add_snapshot(&ch, &next);
    ice_update_ref(&ch, "main", new_id);
    OK(cat_commit(cat, t, &ch, &t2, &err));
    ice_changes_free(&ch);
    cat_table_free(t);
    cat_table_free(t2);
}
static void test_compaction(void **state) {
    (void)state;
    good_commit(0, 10);
    good_commit(10, 20);
    compact(28);
    good_commit(20, 30);
    PASSES();
    assert_int_equal(verdict.live_files, 3);
    assert_int_equal(verdict.live_rows, 28 + 14);
    if (verdict.warnings) fail_msg("%s", audit(OPS_TEXT, false));
}
static void test_compaction_loses_rows(void **state) {
    (void)state;
    good_commit(0, 10);
    compact(13);
    PASSES(); /* deletes may explain it: said, not judged */
    assert_non_null(strstr(audit(OPS_TEXT, false), "note audit.replace"));
}

static void test_foreign_append(void **state) {
    (void)state;
    good_commit(0, 10);
    ice_data_file f = file_of(5, "2026-09-18");
    commit_marks(&f, 1, (job_marks){0}, NULL);
    good_commit(10, 20);
    PASSES();
    assert_non_null(strstr(audit(OPS_TEXT, false), "5 rows were appended by other writers"));
}

static void test_objects(void **state) {
    (void)state;
    good_commit(0, 10);
    PASSES();
    audit(OPS_TEXT, true);
    assert_int_equal(verdict.failures, 2); /* both files are only named */
    char bytes[107] = {0};
    for (unsigned i = 0; i < 2; i++)
        OK(fio_put(NULL, fz_arena_printf(arena, "%s/db/t/data/dt=2026-09-1%u/f%u.parquet", root, 6 + i, i), bytes, 107 - i, &err));
    const char *s = audit(OPS_TEXT, true);
    assert_int_equal(verdict.failures, 1);
    assert_non_null(strstr(s, "has 106 bytes"));
}

/* A commit of split 0 from `from` to `to` that gives up all of it, into one object unless `object` is NULL. */
static void give_up(int64_t from, int64_t to, const char *object, const job_diverted *open, uint32_t n_open) {
    uint64_t n = (uint64_t)(to - from);
    job_range r = {.key = key_of(0), .from = from, .to = to, .read = n, .diverted = n, .paths = 1};
    job_position p = {.key = key_of(0), .next = to};
    job_part part = {key_of(0), from, to};
    job_diverted *d = FZ_ANEWN(arena, job_diverted, n_open + 1);
    for (uint32_t i = 0; i < n_open; i++) d[i] = open[i];
    d[n_open] = (job_diverted){object, n, n, 1, 1, &part};
    commit_marks(NULL, 0, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_ranges = 1, .ranges = &r, .n_diverted = n_open + (object != NULL), .diverted = d}, NULL);
}
static void replay(int64_t next, const char *object, uint64_t added, int64_t rows, const job_diverted *open, uint32_t n_open) {
    job_position p = {.key = key_of(0), .next = next};
    job_replayed r = {object, added, 0, 0, 0};
    ice_data_file f = file_of(rows, "2026-09-16");
    commit_marks(&f, 1, (job_marks){.pipeline = "p", .n_positions = 1, .positions = &p, .n_replayed = 1, .replayed = &r, .n_diverted = n_open, .diverted = (job_diverted *)(uintptr_t)open}, NULL);
}
static void test_diverted(void **state) {
    (void)state;
    give_up(0, 10, "o1", NULL, 0);
    PASSES();
    assert_non_null(strstr(audit(OPS_TEXT, false), "note audit.open: pipeline 'p': 10 rows lie in 1 error objects"));
    replay(10, "o1", 10, 10, NULL, 0);
    const char *s = audit(OPS_TEXT, false);
    if (verdict.failures || verdict.warnings) fail_msg("%s", s);
    assert_non_null(strstr(s, "[0, 10)  read 10  added 0  filtered 0  rejected 0  unparseable 0  diverted 10"));
    assert_non_null(strstr(s, "replayed: 1 error objects, 10 rows added"));
    replay(10, "o1", 10, 10, NULL, 0); /* a second time */
    FAILS_WITH("audit.replayed");
}
static void test_diverted_without_object(void **state) {
    (void)state;
    give_up(0, 10, NULL, NULL, 0);
    FAILS_WITH("audit.diverted");
}
static void test_diverted_forgotten(void **state) {
    (void)state;
    give_up(0, 10, "o1", NULL, 0);
    one_split((job_range){.from = 10, .to = 20, .read = 10, .added = 10, .paths = 1}, 20, 10, false);
    FAILS_WITH("audit.diverted");
}
static void test_replayed_and_open(void **state) {
    (void)state;
    job_part part = {key_of(0), 0, 10};
    job_diverted o = {"o1", 10, 10, 1, 1, &part};
    give_up(0, 10, "o1", NULL, 0);
    replay(10, "o1", 10, 10, &o, 1);
    FAILS_WITH("audit.replayed");
}
static void test_replayed_rows(void **state) {
    (void)state;
    give_up(0, 10, "o1", NULL, 0);
    replay(10, "o1", 10, 9, NULL, 0);
    FAILS_WITH("audit.added");
}

static void test_inspect(void **state) {
    (void)state;
    good_commit(0, 10);
    int64_t last = good_commit(10, 20);
    cat_table *t = load();
    fz_buf b = {0};
    OK(ops_inspect(t, OPS_ALL, OPS_TEXT, &b, &err));
    const char *s = fz_buf_cstr(&b);
    assert_non_null(strstr(s, "snapshots (2)"));
    assert_non_null(strstr(s, "files (4)"));
    assert_non_null(strstr(s, "partitions (2)\npartition      files  rows  bytes\ndt=2026-09-16      2    14    214\n"));
    assert_non_null(strstr(s, "positions (2)"));
    b.len = 0;
    OK(ops_inspect(t, OPS_ALL, OPS_JSON, &b, &err));
    unsigned lines = 0;
    const char *p = fz_buf_cstr(&b);
    for (const char *end; (end = strchr(p, '\n')); p = end + 1, lines++) {
        json_t *j = json_loadb(p, (size_t)(end - p), 0, NULL);
        assert_non_null(j);
        const char *section = json_string_value(json_object_get(j, "section"));
        if (strcmp(section, "positions") == 0) {
            assert_int_equal(json_integer_value(json_object_get(j, "next")), 20);
            assert_int_equal(json_integer_value(json_object_get(j, "last_offset")), 19);
            assert_int_equal(json_integer_value(json_object_get(j, "snapshot_id")), last);
            assert_string_equal(json_string_value(json_object_get(j, "last_timestamp")), "2023-11-14T22:13:20.000Z");
        }
        json_decref(j);
    }
    assert_int_equal(lines, 2 + 4 + 2 + 2);
    b.len = 0;
    OK(ops_inspect(t, OPS_PARTITIONS, OPS_JSON, &b, &err));
    assert_string_equal(fz_buf_cstr(&b), "{\"section\":\"partitions\",\"partition\":\"dt=2026-09-16\",\"files\":2,\"rows\":14,\"bytes\":214}\n"
                                         "{\"section\":\"partitions\",\"partition\":\"dt=2026-09-17\",\"files\":2,\"rows\":14,\"bytes\":214}\n");
    fz_buf_free(&b);
    cat_table_free(t);
    unsigned mask = 0;
    assert_true(ops_section_parse("files", &mask) && ops_section_parse("Positions", &mask));
    assert_int_equal(mask, OPS_FILES | OPS_POSITIONS);
    assert_false(ops_section_parse("rows", &mask));
}

int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_good_table), T(test_ranges), T(test_overlap), T(test_counts), T(test_two_paths), T(test_added), T(test_too_many_read), T(test_position_differs), T(test_new_chain),
        T(test_position_left_out), T(test_gone), T(test_empty_commits), T(test_file_twice), T(test_commit_twice), T(test_bounds), T(test_mirror), T(test_entry_taken_out),
        T(test_entry_taken_out_of_the_list_too), T(test_manifest_left_out), T(test_partition_summary), T(test_manifest_gone), T(test_expired), T(test_compaction), T(test_compaction_loses_rows), T(test_foreign_append), T(test_objects), T(test_inspect),
        T(test_diverted), T(test_diverted_without_object), T(test_diverted_forgotten), T(test_replayed_and_open), T(test_replayed_rows),
    };
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
