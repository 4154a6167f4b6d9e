/* Appends: what is written, what is committed, merging of manifests, retries, failures of the store. */
#include "ice_test.h"

typedef struct table { fz_arena *a; ice_metadata *m; mem_store *s; ice_io io; int64_t next_id; int64_t now; } table;

static void open_table(table *t, const fz_pair *props, uint32_t n) {
    const col_field f[] = {{"id", col_simple(COL_INT, true), NULL}, {"host", col_string(true), NULL}};
    const col_schema cols = {2, f};
    const ice_term term = {.column = "host"};
    ice_schema *s;
    ice_spec *spec;
    fz_error err;
    *t = (table){.a = fz_arena_new(), .s = FZ_NEW(mem_store), .next_id = 1000, .now = 1000000};
    t->io = (ice_io){t->s, mem_read, mem_write};
    must(ice_schema_from_cols(t->a, &cols, NULL, 0, &s, &err), &err);
    must(ice_spec_build(t->a, s, &term, 1, &spec, &err), &err);
    must(ice_metadata_new("mem://w/t", s, spec, NULL, props, n, "table-uuid", t->now, &t->m, &err), &err);
}

static void close_table(table *t) {
    ice_metadata_free(t->m);
    mem_free(t->s);
    fz_arena_free(t->a);
}

static ice_data_file file_of(table *t, const char *host, int number, int64_t rows) {
    ice_value *v = FZ_ANEW(t->a, ice_value);
    *v = (ice_value){.kind = ICE_STRING, .is_null = !host};
    if (host) v->s = fz_sv_of(host);
    return (ice_data_file){.path = fz_arena_printf(t->a, "mem://w/t/data/%s/%d.parquet", host ? host : "null", number), .format = "PARQUET", .partition = {1, v},
                           .record_count = rows, .file_size = rows * 10, .sort_order_id = 0};
}

static ice_append append_of(table *t, const ice_data_file *f, uint32_t n) {
    int64_t id = t->next_id++;
    t->now += 1000;
    return (ice_append){.files = f, .n_files = n, .snapshot_id = id, .uuid = fz_arena_printf(t->a, "u%lld", (long long)id), .attempt = 1, .now_ms = t->now};
}

static void commit(table *t, const ice_append *ap, ice_append_result *r) {
    fz_error err;
    ice_metadata *m;
    must(ice_append_build(t->a, t->m, ap, &t->io, r, &err), &err);
    must(ice_requirements_check(t->m, &r->changes, &err), &err);
    must(ice_metadata_apply(t->m, &r->changes, t->now, "prev", &m, NULL, &err), &err);
    ice_changes_free(&r->changes);
    ice_metadata_free(t->m);
    t->m = m;
}

static void manifests(table *t, ice_manifest_list *l) {
    fz_error err;
    must(ice_snapshot_manifests(t->a, ice_metadata_current(t->m), &t->io, l, &err), &err);
}

/* Entries of all manifests of the current snapshot; checks counts of the list on the way. */
static uint32_t entries(table *t, const ice_entry **out) {
    ice_manifest_list l;
    manifests(t, &l);
    ice_entry *v = FZ_ANEWN(t->a, ice_entry, 100000);
    uint32_t n = 0;
    const ice_type **types = ice_metadata_spec_types(t->a, t->m, t->m->spec);
    for (uint32_t i = 0; i < l.n; i++) {
        fz_buf b = {0};
        fz_error err;
        const ice_entry *e;
        uint32_t k, added = 0, existing = 0;
        must(mem_read(t->s, l.v[i].path, &b, &err), &err);
        assert_int_equal(b.len, l.v[i].length);
        must(ice_manifest_decode(t->a, b.data, b.len, &l.v[i], t->m->spec, types, &e, &k, &err), &err);
        for (uint32_t j = 0; j < k; j++) {
            added += e[j].status == ICE_ADDED;
            existing += e[j].status == ICE_EXISTING;
            v[n++] = e[j];
        }
        assert_true((int)added == l.v[i].added_files && (int)existing == l.v[i].existing_files);
        fz_buf_free(&b);
    }
    *out = v;
    return n;
}

static const char *total(const table *t, const char *key) {
    const ice_snapshot *s = ice_metadata_current(t->m);
    return fz_pair_get(s->summary, s->n_summary, key);
}

static void first_and_second(void **state) {
    (void)state;
    table t;
    open_table(&t, NULL, 0);
    ice_data_file f[] = {file_of(&t, "a", 1, 5), file_of(&t, NULL, 2, 7), file_of(&t, "null", 3, 1)};
    ice_append ap = append_of(&t, f, 3);
    const fz_pair sum[] = {{.key = "frazil.x", .value = "1"}, {.key = "total-records", .value = "999"}};
    const fz_pair props[] = {{.key = "mirror", .value = "p"}};
    ap.summary = sum;
    ap.n_summary = 2;
    ap.properties = props;
    ap.n_properties = 1;
    ice_append_result r;
    commit(&t, &ap, &r);
    assert_true(r.n_written == 2 && r.new_manifests.n == 1 && r.n_merged == 0 && r.n_unused == 0);
    assert_string_equal(r.written[0], "mem://w/t/metadata/u1000-m0.avro");
    assert_string_equal(r.written[1], "mem://w/t/metadata/snap-1000-1-u1000.avro");
    assert_string_equal(ice_property(t.m, "mirror", ""), "p");
    const struct { const char *key, *value; } want[] = {
        {"operation", "append"}, {"frazil.x", "1"}, {"added-data-files", "3"}, {"added-records", "13"}, {"added-files-size", "130"}, {"changed-partition-count", "2"},
        {"total-records", "13"}, {"total-files-size", "130"}, {"total-data-files", "3"}, {"total-delete-files", "0"}, {"total-position-deletes", "0"},
        {"total-equality-deletes", "0"}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) assert_string_equal(total(&t, want[i].key), want[i].value);
    const ice_entry *e;
    assert_int_equal(entries(&t, &e), 3);
    assert_true(e[0].sequence == 1 && e[0].snapshot_id == 1000 && e[1].file.partition.v[0].is_null && !e[2].file.partition.v[0].is_null);
    ice_manifest_list l;
    manifests(&t, &l);
    assert_true(l.v[0].partitions[0].contains_null && fz_sv_eq(l.v[0].partitions[0].lower, FZ_SV("a")) && fz_sv_eq(l.v[0].partitions[0].upper, FZ_SV("null")));
    /* a second one goes before it */
    ice_data_file g = file_of(&t, "b", 4, 2);
    ap = append_of(&t, &g, 1);
    commit(&t, &ap, &r);
    manifests(&t, &l);
    assert_true(l.n == 2 && l.v[0].sequence == 2 && l.v[1].sequence == 1 && l.v[1].added_snapshot_id == 1000);
    assert_string_equal(total(&t, "total-records"), "15");
    assert_true(ice_metadata_current(t.m)->parent_id == 1000 && t.m->last_sequence_number == 2);
    /* an empty one carries positions only */
    ap = append_of(&t, NULL, 0);
    ap.summary = sum;
    ap.n_summary = 1;
    commit(&t, &ap, &r);
    assert_true(r.n_written == 1 && r.new_manifests.n == 0);
    assert_null(total(&t, "added-data-files"));
    assert_string_equal(total(&t, "changed-partition-count"), "0");
    assert_string_equal(total(&t, "total-data-files"), "4");
    assert_int_equal(entries(&t, &e), 4);
    close_table(&t);
}

static void merging(void **state) {
    (void)state;
    table t;
    const fz_pair props[] = {{.key = "commit.manifest.min-count-to-merge", .value = "4"}};
    open_table(&t, props, 1);
    ice_append_result r;
    const ice_entry *e;
    for (int i = 0; i < 10; i++) {
        ice_data_file f = file_of(&t, i % 2 ? "a" : NULL, i, i + 1);
        ice_append ap = append_of(&t, &f, 1);
        commit(&t, &ap, &r);
        ice_manifest_list l;
        manifests(&t, &l);
        /* 1 2 3 then the four become one: 1 2 3 1 2 3 1 ... */
        static const uint32_t count[] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1};
        assert_int_equal(l.n, count[i]);
        assert_int_equal(r.n_merged, count[i] == 1 && i ? 4 : 0);
        assert_int_equal(r.n_unused, r.n_merged ? 1 : 0);
        if (r.n_unused) assert_string_equal(r.unused[0], r.new_manifests.v[0].path);
        assert_int_equal(entries(&t, &e), i + 1);
    }
    /* each file once, with the snapshot and sequence number that it came with */
    for (int i = 0; i < 10; i++) {
        int seen = 0;
        for (int k = 0; k < 10; k++)
            if (e[k].file.record_count == i + 1) {
                seen++;
                assert_true(e[k].snapshot_id == 1000 + i && e[k].sequence == i + 1 && e[k].file_sequence == i + 1);
                assert_true(e[k].status == (i == 9 ? ICE_ADDED : ICE_EXISTING) && e[k].file.partition.v[0].is_null == (i % 2 == 0));
            }
        assert_int_equal(seen, 1);
    }
    ice_manifest_list l;
    manifests(&t, &l);
    assert_true(l.v[0].sequence == 10 && l.v[0].min_sequence == 1 && l.v[0].partitions[0].contains_null);
    assert_string_equal(total(&t, "total-records"), "55");
    close_table(&t);
}

static void merging_by_size(void **state) {
    (void)state;
    /* with a target of two manifests a bin fills up, and full bins without the newest are merged at once */
    table t;
    open_table(&t, NULL, 0);
    ice_append_result r;
    for (int i = 0; i < 2; i++) {
        ice_data_file f = file_of(&t, "a", i, 1);
        ice_append ap = append_of(&t, &f, 1);
        commit(&t, &ap, &r);
    }
    ice_manifest_list l;
    manifests(&t, &l);
    char size[24];
    snprintf(size, sizeof size, "%lld", (long long)(l.v[0].length * 2 + l.v[0].length / 2));
    ice_changes c = ice_changes_new();
    const fz_pair p = {.key = "commit.manifest.target-size-bytes", .value = size};
    ice_update_set_properties(&c, &p, 1);
    ice_metadata *m;
    fz_error err;
    must(ice_metadata_apply(t.m, &c, t.now, NULL, &m, NULL, &err), &err);
    ice_changes_free(&c);
    ice_metadata_free(t.m);
    t.m = m;
    ice_data_file f = file_of(&t, "a", 2, 1);
    ice_append ap = append_of(&t, &f, 1);
    commit(&t, &ap, &r); /* [new] [old old]: the second bin is full */
    manifests(&t, &l);
    assert_true(l.n == 2 && r.n_merged == 2 && r.n_unused == 0 && l.v[0].added_files == 1 && l.v[1].existing_files == 2);
    const ice_entry *e;
    assert_int_equal(entries(&t, &e), 3);
    close_table(&t);
}

static void not_merging(void **state) {
    (void)state;
    table t;
    const fz_pair props[] = {{.key = "commit.manifest.min-count-to-merge", .value = "2"}, {.key = "commit.manifest-merge.enabled", .value = "false"}};
    open_table(&t, props, 2);
    ice_append_result r;
    for (int i = 0; i < 5; i++) {
        ice_data_file f = file_of(&t, "a", i, 1);
        ice_append ap = append_of(&t, &f, 1);
        commit(&t, &ap, &r);
    }
    ice_manifest_list l;
    manifests(&t, &l);
    assert_int_equal(l.n, 5);
    close_table(&t);
}

static void rolling(void **state) {
    (void)state;
    table t;
    const fz_pair props[] = {{.key = "commit.manifest.target-size-bytes", .value = "100000"}};
    open_table(&t, props, 1);
    enum { N = 20000 };
    ice_data_file *f = FZ_ANEWN(t.a, ice_data_file, N);
    for (int i = 0; i < N; i++) f[i] = file_of(&t, fz_arena_printf(t.a, "host-%d", i), i, 1);
    ice_append ap = append_of(&t, f, N);
    ice_append_result r;
    commit(&t, &ap, &r);
    if (r.new_manifests.n < 2 || r.n_merged) fail_msg("%u manifests, %u merged", r.new_manifests.n, r.n_merged);
    const ice_entry *e;
    assert_int_equal(entries(&t, &e), N);
    assert_string_equal(total(&t, "changed-partition-count"), "20000");
    close_table(&t);
}

/* The base moves between building and committing: the requirement says so, and the second attempt writes no manifest again. */
static void retry_after_conflict(void **state) {
    (void)state;
    table t;
    open_table(&t, NULL, 0);
    fz_error err;
    ice_append_result mine, theirs, second;
    ice_data_file f = file_of(&t, "mine", 1, 1), g = file_of(&t, "theirs", 2, 1);
    ice_append ap = append_of(&t, &f, 1), other = append_of(&t, &g, 1);
    must(ice_append_build(t.a, t.m, &ap, &t.io, &mine, &err), &err);
    commit(&t, &other, &theirs);
    assert_int_equal(ice_requirements_check(t.m, &mine.changes, &err), FZ_CONFLICT);
    assert_non_null(strstr(err.message, "main"));
    ice_changes_free(&mine.changes);
    ap.attempt = 2;
    ap.reuse = &mine.new_manifests;
    ap.next_manifest = mine.next_manifest;
    commit(&t, &ap, &second);
    assert_int_equal(second.n_written, 1);
    assert_string_equal(second.written[0], "mem://w/t/metadata/snap-1000-2-u1000.avro");
    const ice_entry *e;
    assert_int_equal(entries(&t, &e), 2);
    assert_true(e[0].sequence == 2 && e[1].sequence == 1);
    assert_string_equal(total(&t, "total-data-files"), "2");
    close_table(&t);
}

static void failing_store(void **state) {
    (void)state;
    for (uint32_t at = 1; at <= 2; at++) {
        table t;
        open_table(&t, NULL, 0);
        fz_error err;
        ice_append_result r;
        ice_data_file f = file_of(&t, "a", 1, 1);
        ice_append ap = append_of(&t, &f, 1);
        t.s->fail_at = at;
        assert_int_equal(ice_append_build(t.a, t.m, &ap, &t.io, &r, &err), FZ_RETRY);
        assert_int_equal(r.n_written, at); /* the one that failed may be there */
        ice_changes_free(&r.changes);
        close_table(&t);
    }
}

static void branches_and_retention(void **state) {
    (void)state;
    table t;
    open_table(&t, NULL, 0);
    ice_append_result r;
    ice_data_file f = file_of(&t, "a", 1, 1), g = file_of(&t, "b", 2, 1);
    ice_append ap = append_of(&t, &f, 1);
    commit(&t, &ap, &r);
    ice_changes c = ice_changes_new();
    json_array_append_new(c.updates, json_pack("{s:s, s:s, s:s, s:I, s:i}", "action", "set-snapshot-ref", "ref-name", "audit", "type", "branch", "snapshot-id",
                                               (json_int_t)1000, "min-snapshots-to-keep", 5));
    json_array_append_new(c.updates, json_pack("{s:s, s:s, s:s, s:I}", "action", "set-snapshot-ref", "ref-name", "v1", "type", "tag", "snapshot-id", (json_int_t)1000));
    ice_metadata *m;
    fz_error err;
    must(ice_metadata_apply(t.m, &c, t.now, NULL, &m, NULL, &err), &err);
    ice_changes_free(&c);
    ice_metadata_free(t.m);
    t.m = m;
    ap = append_of(&t, &g, 1);
    ap.branch = "audit";
    commit(&t, &ap, &r);
    assert_true(t.m->current_snapshot_id == 1000 && ice_metadata_ref(t.m, "audit")->snapshot_id == 1001 && t.m->n_snapshot_log == 1);
    const json_t *ref = json_object_get(json_object_get(t.m->root, "refs"), "audit");
    assert_int_equal(json_integer_value(json_object_get(ref, "min-snapshots-to-keep")), 5);
    ap = append_of(&t, &g, 1);
    ap.branch = "v1";
    assert_int_equal(ice_append_build(t.a, t.m, &ap, &t.io, &r, &err), FZ_USER);
    ice_changes_free(&r.changes);
    close_table(&t);
}

static void clock_behind(void **state) {
    (void)state;
    table t;
    open_table(&t, NULL, 0);
    ice_append_result r;
    ice_data_file f = file_of(&t, "a", 1, 1);
    ice_append ap = append_of(&t, &f, 1);
    int64_t last = t.m->last_updated_ms;
    t.now = ap.now_ms = last - 300000;
    commit(&t, &ap, &r);
    assert_true(r.clock_behind_ms == 300000 && t.m->last_updated_ms == last + 1 && ice_metadata_current(t.m)->timestamp_ms == last + 1);
    assert_true(t.m->snapshot_log[0].timestamp_ms == last + 1);
    close_table(&t);
}

/* On top of a table that the Java implementation wrote; its delete manifests would be carried along. */
static void on_top_of_java(void **state) {
    (void)state;
#define DIR "test/data/iceberg/part_values/"
    fz_arena *a = fz_arena_new();
    fz_buf b = {0};
    fz_error err;
    ice_metadata *m, *n;
    mem_store *s = FZ_NEW(mem_store);
    const ice_io io = {s, mem_read, mem_write};
    read_file(DIR "00001-b0317b09-9243-4dcb-b2fa-ee8ba0fb69ba.metadata.json", &b);
    must(ice_metadata_parse(b.data, b.len, &m, &err), &err);
    static const char *const names[] = {"snap-6916397926822834661-1-dfb969f3-4add-4955-b88b-8ff16d1a1fc7.avro", "dfb969f3-4add-4955-b88b-8ff16d1a1fc7-m0.avro"};
    for (int i = 0; i < 2; i++) {
        b.len = 0;
        read_file(fz_arena_printf(a, DIR "%s", names[i]), &b);
        must(mem_write(s, fz_arena_printf(a, "%s/metadata/%s", m->location, names[i]), b.data, b.len, &err), &err);
    }
    const ice_value v[] = {{.kind = ICE_DATE, .i = 20000}, {.kind = ICE_STRING, .s = {"h", 1}}};
    const ice_data_file f = {.path = "x", .format = "PARQUET", .partition = {2, v}, .record_count = 4, .file_size = 5, .sort_order_id = ICE_NONE};
    ice_append ap = {.files = &f, .n_files = 1, .snapshot_id = 7, .uuid = "u", .attempt = 1, .now_ms = m->last_updated_ms + 9};
    ice_append_result r;
    must(ice_append_build(a, m, &ap, &io, &r, &err), &err);
    must(ice_metadata_apply(m, &r.changes, ap.now_ms, "p", &n, NULL, &err), &err);
    ice_changes_free(&r.changes);
    const ice_snapshot *cur = ice_metadata_current(n);
    assert_string_equal(fz_pair_get(cur->summary, cur->n_summary, "total-records"), "16");
    assert_string_equal(fz_pair_get(cur->summary, cur->n_summary, "total-files-size"), "10530");
    ice_manifest_list l;
    must(ice_snapshot_manifests(a, cur, &io, &l, &err), &err);
    assert_true(l.n == 2 && l.v[1].sequence == 1 && l.v[1].added_files == 12 && n->last_sequence_number == 2);
    ice_metadata_free(m);
    ice_metadata_free(n);
    mem_free(s);
    fz_buf_free(&b);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_and_second), cmocka_unit_test(merging), cmocka_unit_test(merging_by_size),
                                       cmocka_unit_test(not_merging), cmocka_unit_test(rolling), cmocka_unit_test(retry_after_conflict),
                                       cmocka_unit_test(failing_store), cmocka_unit_test(branches_and_retention), cmocka_unit_test(clock_behind),
                                       cmocka_unit_test(on_top_of_java)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
