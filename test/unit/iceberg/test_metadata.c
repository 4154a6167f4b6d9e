/* metadata.json: reading, unknown members, requirements, updates, logs, the clock behind the table, names of files, metrics modes. */
#include "ice_test.h"

#define META1 "test/data/iceberg/part_values/00001-b0317b09-9243-4dcb-b2fa-ee8ba0fb69ba.metadata.json"
#define META0 "test/data/iceberg/part_values/00000-c953f953-1dfe-4291-8dae-578b3b121e59.metadata.json"

static ice_metadata *parse(const char *text) {
    ice_metadata *m;
    fz_error err;
    must(ice_metadata_parse(text, strlen(text), &m, &err), &err);
    return m;
}

static ice_metadata *load(const char *path) {
    fz_buf b = {0};
    read_file(path, &b);
    ice_metadata *m = parse(fz_buf_cstr(&b));
    fz_buf_free(&b);
    return m;
}

/* The golden table with members put over its own. */
static ice_metadata *load_with(const char *path, const char *members) {
    ice_metadata *m = load(path), *r;
    json_t *root = json_deep_copy(m->root), *more = json_of(members);
    json_object_update(root, more);
    char *text = json_dumps(root, 0);
    r = parse(text);
    free(text);
    json_decref(root);
    json_decref(more);
    ice_metadata_free(m);
    return r;
}

static ice_metadata *apply(const ice_metadata *base, ice_changes *c, int64_t now, const char *previous, ice_applied *info) {
    ice_metadata *m;
    fz_error err;
    must(ice_metadata_apply(base, c, now, previous, &m, info, &err), &err);
    ice_changes_free(c);
    return m;
}

static void accessors(void **state) {
    (void)state;
    ice_metadata *m = load(META1);
    assert_string_equal(m->uuid, "46bc691b-9005-471d-9aeb-a23969278cdc");
    assert_string_equal(m->location, "s3://golden/wh/gold.db/part_values");
    assert_true(m->format_version == 2 && m->last_sequence_number == 1 && m->last_updated_ms == 1795960648745 && m->last_column_id == 3);
    assert_true(m->last_partition_id == 1001 && m->spec->n_fields == 2 && m->schema->n_fields == 3 && m->sort_order->n_fields == 0);
    const ice_snapshot *s = ice_metadata_current(m);
    assert_true(s->id == 6916397926822834661 && s->parent_id == ICE_NONE && s->sequence == 1 && s->schema_id == 0);
    assert_string_equal(s->operation, "append");
    assert_string_equal(fz_pair_get(s->summary, s->n_summary, "total-records"), "12");
    assert_true(m->n_refs == 1 && ice_metadata_ref(m, "main")->snapshot_id == s->id && !ice_metadata_ref(m, "x"));
    assert_true(m->n_snapshot_log == 1 && m->snapshot_log[0].snapshot_id == s->id && m->n_metadata_log == 1);
    assert_string_equal(ice_property(m, "write.parquet.compression-codec", "x"), "zstd");
    bool cut;
    assert_null(ice_snapshot_parent(m, s, &cut));
    assert_false(cut);
    fz_error err;
    must(ice_metadata_writable(m, &err), &err);
    ice_metadata_free(m);
}

/* Whatever nobody here knows is still there after a change. */
static void unknown_members_survive(void **state) {
    (void)state;
    ice_metadata *m = load_with(META1, "{\"x-new\":{\"a\":[1,2.5,null]},\"statistics\":[{\"snapshot-id\":6916397926822834661,\"statistics-path\":\"p\"}],"
                                       "\"properties\":{\"other.engine\":\"yes\"}}");
    ice_changes c = ice_changes_new();
    const fz_pair p[] = {{.key = "a", .value = "1"}, {.key = "b", .value = "2"}};
    const char *gone[] = {"b"};
    ice_update_set_properties(&c, p, 2);
    ice_update_remove_properties(&c, gone, 1);
    ice_metadata *n = apply(m, &c, 1795960648745 + 5, "s3://m/00001-x.metadata.json", NULL);
    fz_buf b = {0};
    fz_error err;
    must(ice_metadata_encode(n, &b, &err), &err);
    json_t *j = json_of(fz_buf_cstr(&b));
    assert_true(json_equal(json_object_get(j, "x-new"), json_object_get(m->root, "x-new")));
    assert_true(json_equal(json_object_get(j, "statistics"), json_object_get(m->root, "statistics")));
    assert_string_equal(ice_property(n, "other.engine", ""), "yes");
    assert_string_equal(ice_property(n, "a", ""), "1");
    assert_null(ice_property(n, "b", NULL));
    assert_null(ice_property(m, "a", NULL)); /* the base has not changed */
    assert_true(n->last_updated_ms == 1795960648750 && n->n_metadata_log == 2);
    assert_string_equal(n->metadata_log[1].location, "s3://m/00001-x.metadata.json");
    assert_true(n->metadata_log[1].timestamp_ms == m->last_updated_ms);
    json_decref(j);
    fz_buf_free(&b);
    ice_metadata_free(m);
    ice_metadata_free(n);
}

static void requirements(void **state) {
    (void)state;
    ice_metadata *m = load(META1);
    fz_error err;
    ice_changes c = ice_changes_new();
    ice_assert_uuid(&c, m->uuid);
    ice_assert_ref(&c, "main", m->current_snapshot_id);
    ice_assert_ref(&c, "other", ICE_NONE);
    ice_assert_id(&c, "current-schema-id", 0);
    ice_assert_id(&c, "default-spec-id", 0);
    ice_assert_id(&c, "default-sort-order-id", 0);
    ice_assert_id(&c, "last-assigned-field-id", 3);
    ice_assert_id(&c, "last-assigned-partition-id", 1001);
    must(ice_requirements_check(m, &c, &err), &err);
    assert_int_equal(ice_requirements_check(NULL, &c, &err), FZ_CONFLICT);
    ice_changes_free(&c);
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"assert-create", "assert-table-uuid", "assert-ref-snapshot-id", "assert-ref-snapshot-id", "assert-current-schema-id",
                                            "assert-default-spec-id"};
        c = ice_changes_new();
        if (i == 0) ice_assert_create(&c);
        if (i == 1) ice_assert_uuid(&c, "00000000-0000-0000-0000-000000000000");
        if (i == 2) ice_assert_ref(&c, "main", 5);
        if (i == 3) ice_assert_ref(&c, "main", ICE_NONE);
        if (i == 4) ice_assert_id(&c, "current-schema-id", 1);
        if (i == 5) ice_assert_id(&c, "default-spec-id", 4);
        assert_int_equal(ice_requirements_check(m, &c, &err), FZ_CONFLICT);
        assert_string_equal(err.code, "iceberg.requirement");
        assert_non_null(strstr(err.message, names[i]));
        ice_changes_free(&c);
    }
    /* the REST spec's spelling */
    c = ice_changes_new();
    ice_assert_ref(&c, "main", ICE_NONE);
    ice_update_ref(&c, "main", 7);
    json_t *r = json_of("[{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\",\"snapshot-id\":null}]");
    json_t *u = json_of("[{\"action\":\"set-snapshot-ref\",\"ref-name\":\"main\",\"type\":\"branch\",\"snapshot-id\":7}]");
    assert_true(json_equal(c.requirements, r) && json_equal(c.updates, u));
    json_decref(r);
    json_decref(u);
    ice_changes_free(&c);
    ice_metadata_free(m);
}

static ice_snapshot snapshot(int64_t id, int64_t parent, int64_t seq, int64_t ts) {
    return (ice_snapshot){.id = id, .parent_id = parent, .sequence = seq, .timestamp_ms = ts, .schema_id = 0, .manifest_list = "s3://l", .operation = "append"};
}

static void add_snapshot(ice_changes *c, int64_t id, int64_t parent, int64_t seq, int64_t ts) {
    ice_snapshot s = snapshot(id, parent, seq, ts);
    ice_update_add_snapshot(c, &s);
    ice_update_ref(c, "main", id);
}

static void snapshots_and_lineage(void **state) {
    (void)state;
    ice_metadata *m = load(META1);
    int64_t first = m->current_snapshot_id, t = m->last_updated_ms;
    ice_changes c = ice_changes_new();
    add_snapshot(&c, 20, first, 2, t + 10);
    ice_metadata *m2 = apply(m, &c, t + 10, "f1", NULL);
    c = ice_changes_new();
    add_snapshot(&c, 30, 20, 3, t + 20);
    ice_metadata *m3 = apply(m2, &c, t + 20, "f2", NULL);
    assert_true(m3->last_sequence_number == 3 && m3->current_snapshot_id == 30 && m3->n_snapshots == 3 && m3->n_snapshot_log == 3 && m3->last_updated_ms == t + 20);
    assert_true(ice_snapshot_is_ancestor(m3, first, 30) && ice_snapshot_is_ancestor(m3, 30, 30) && !ice_snapshot_is_ancestor(m3, 30, 20));
    /* a number that is taken */
    fz_error err;
    ice_metadata *bad;
    c = ice_changes_new();
    add_snapshot(&c, 40, 20, 3, t + 30);
    assert_int_equal(ice_metadata_apply(m3, &c, t + 30, NULL, &bad, NULL, &err), FZ_CONFLICT);
    ice_changes_free(&c);
    c = ice_changes_new();
    add_snapshot(&c, 30, 20, 4, t + 30);
    assert_int_equal(ice_metadata_apply(m3, &c, t + 30, NULL, &bad, NULL, &err), FZ_CONFLICT);
    ice_changes_free(&c);
    /* rollback: main moves to an older snapshot, and the log says so */
    c = ice_changes_new();
    ice_update_ref(&c, "main", 20);
    ice_metadata *back = apply(m3, &c, t + 40, NULL, NULL);
    assert_true(back->current_snapshot_id == 20 && back->n_snapshot_log == 4 && back->snapshot_log[3].timestamp_ms == t + 40 && back->n_metadata_log == 3);
    /* expiry of the first two: the lineage is cut, history before the hole goes */
    c = ice_changes_new();
    const int64_t ids[] = {first, 20};
    ice_update_remove_snapshots(&c, ids, 2);
    ice_metadata *cut = apply(m3, &c, t + 50, NULL, NULL);
    assert_true(cut->n_snapshots == 1 && cut->n_snapshot_log == 1 && cut->snapshot_log[0].snapshot_id == 30);
    bool is_cut = false;
    assert_null(ice_snapshot_parent(cut, ice_metadata_current(cut), &is_cut));
    assert_true(is_cut);
    assert_false(ice_snapshot_is_ancestor(cut, first, 30));
    ice_metadata_free(m);
    ice_metadata_free(m2);
    ice_metadata_free(m3);
    ice_metadata_free(back);
    ice_metadata_free(cut);
}

static void clock_behind(void **state) {
    (void)state;
    ice_metadata *m = load(META1);
    int64_t t = m->last_updated_ms;
    const int64_t behind[] = {0, 30000, 300000};
    for (int i = 0; i < 3; i++) {
        ice_changes c = ice_changes_new();
        const fz_pair p = {.key = "a", .value = "b"};
        ice_applied info;
        ice_update_set_properties(&c, &p, 1);
        ice_metadata *n = apply(m, &c, t - behind[i], "x", &info);
        assert_true(n->last_updated_ms == t + 1 && info.clock_behind_ms == behind[i]);
        assert_true((info.clock_behind_ms > ICE_CLOCK_TOLERANCE_MS) == (i == 2));
        ice_metadata_free(n);
    }
    ice_metadata_free(m);
}

static void metadata_log_is_cut(void **state) {
    (void)state;
    ice_metadata *m = load_with(META0, "{\"properties\":{\"write.metadata.previous-versions-max\":\"3\",\"write.metadata.delete-after-commit.enabled\":\"true\"}}");
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        ice_changes c = ice_changes_new();
        ice_applied info;
        ice_metadata *n = apply(m, &c, m->last_updated_ms + 10, name, &info);
        assert_int_equal(n->n_metadata_log, i < 2 ? i + 1 : 3);
        assert_string_equal(n->metadata_log[n->n_metadata_log - 1].location, name);
        assert_true(info.delete_dropped);
        assert_int_equal(info.n_dropped, i < 3 ? 0 : 1);
        if (i == 4) assert_string_equal(info.dropped[0], "f1");
        ice_metadata_free(m);
        m = n;
    }
    ice_metadata_free(m);
}

static void schema_and_spec_updates(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_metadata *m = load(META0);
    ice_field f[4];
    memcpy(f, m->schema->fields, sizeof *f * 3);
    f[3] = (ice_field){.id = 4, .name = "added", .type = ice_type_simple(ICE_LONG)};
    ice_schema s = {.n_fields = 4, .fields = f};
    ice_spec *spec;
    const ice_term term = {.column = "added", .transform = "bucket", .n = 8};
    must(ice_spec_build(a, &s, &term, 1, &spec, &err), &err);
    ice_changes c = ice_changes_new();
    ice_update_add_schema(&c, &s);
    ice_update_current_schema(&c, -1);
    ice_update_add_spec(&c, spec);
    ice_update_default_spec(&c, -1);
    ice_update_location(&c, "s3://elsewhere/t//");
    ice_metadata *n = apply(m, &c, m->last_updated_ms + 1, NULL, NULL);
    assert_true(n->current_schema_id == 1 && n->n_schemas == 2 && n->last_column_id == 4 && n->default_spec_id == 1 && n->n_specs == 2);
    assert_string_equal(n->location, "s3://elsewhere/t");
    /* the same again adds nothing */
    c = ice_changes_new();
    ice_update_add_schema(&c, &s);
    ice_update_current_schema(&c, -1);
    ice_update_add_spec(&c, m->spec);
    ice_update_default_spec(&c, -1);
    ice_metadata *k = apply(n, &c, n->last_updated_ms + 1, NULL, NULL);
    assert_true(k->n_schemas == 2 && k->current_schema_id == 1 && k->n_specs == 2 && k->default_spec_id == 0);
    c = ice_changes_new();
    ice_update_current_schema(&c, 17);
    ice_metadata *bad;
    assert_int_equal(ice_metadata_apply(n, &c, 1, NULL, &bad, NULL, &err), FZ_CONFLICT);
    ice_changes_free(&c);
    c = ice_changes_new();
    json_array_append_new(c.updates, json_pack("{s:s}", "action", "set-the-moon"));
    assert_int_equal(ice_metadata_apply(n, &c, 1, NULL, &bad, NULL, &err), FZ_FATAL);
    assert_non_null(strstr(err.message, "set-the-moon"));
    ice_changes_free(&c);
    ice_metadata_free(m);
    ice_metadata_free(n);
    ice_metadata_free(k);
    fz_arena_free(a);
}

/* A table out of updates alone, as a REST server makes it. */
static void created_by_updates(void **state) {
    (void)state;
    ice_metadata *like = load(META0);
    ice_changes c = ice_changes_new();
    ice_assert_create(&c);
    ice_update_uuid(&c, like->uuid);
    ice_update_format_version(&c, 2);
    ice_update_location(&c, like->location);
    ice_update_add_schema(&c, like->schema);
    ice_update_current_schema(&c, -1);
    ice_update_add_spec(&c, like->spec);
    ice_update_default_spec(&c, -1);
    ice_update_add_sort_order(&c, NULL);
    ice_update_default_sort_order(&c, -1);
    ice_update_set_properties(&c, like->properties, like->n_properties);
    fz_error err;
    must(ice_requirements_check(NULL, &c, &err), &err);
    ice_metadata *m = apply(NULL, &c, like->last_updated_ms, NULL, NULL);
    assert_true(json_equal((json_t *)(uintptr_t)m->root, (json_t *)(uintptr_t)like->root));
    ice_metadata_free(m);
    ice_metadata_free(like);
}

static void versions(void **state) {
    (void)state;
    fz_error err;
    ice_metadata *m = parse("{\"format-version\":1,\"location\":\"/t/\",\"last-updated-ms\":5,\"last-column-id\":1,"
                            "\"schema\":{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\"}]},"
                            "\"partition-spec\":[{\"name\":\"a\",\"transform\":\"identity\",\"source-id\":1}],\"current-snapshot-id\":3,"
                            "\"snapshots\":[{\"snapshot-id\":3,\"timestamp-ms\":4,\"manifests\":[\"/t/m1\",\"/t/m2\"]}]}");
    assert_true(m->format_version == 1 && m->spec->fields[0].field_id == 1000 && !m->uuid && m->last_partition_id == 1000);
    assert_string_equal(m->location, "/t");
    assert_int_equal(ice_metadata_current(m)->n_manifests, 2);
    assert_int_equal(ice_metadata_writable(m, &err), FZ_USER);
    assert_string_equal(err.code, "iceberg.format-version");
    ice_changes c = ice_changes_new();
    ice_update_uuid(&c, "u");
    ice_update_format_version(&c, 2);
    ice_metadata *n = apply(m, &c, 6, NULL, NULL);
    assert_true(n->format_version == 2 && n->n_schemas == 1 && n->n_specs == 1);
    must(ice_metadata_writable(n, &err), &err);
    ice_metadata_free(m);
    ice_metadata_free(n);
    m = load_with(META1, "{\"format-version\":3,\"next-row-id\":7}");
    assert_int_equal(ice_metadata_writable(m, &err), FZ_USER);
    assert_non_null(strstr(err.message, "version 3"));
    ice_metadata_free(m);
    const char *v4 = "{\"format-version\":4}";
    assert_int_equal(ice_metadata_parse(v4, strlen(v4), &m, &err), FZ_USER);
    m = load_with(META1, "{\"partition-specs\":[{\"spec-id\":0,\"fields\":[{\"name\":\"z\",\"transform\":\"zorder\",\"source-id\":1,\"field-id\":1000}]}]}");
    assert_int_equal(ice_metadata_writable(m, &err), FZ_USER);
    assert_non_null(strstr(err.message, "zorder"));
    ice_metadata_free(m);
    m = load_with(META1, "{\"properties\":{\"write.location-provider.impl\":\"x.Y\"}}");
    assert_int_equal(ice_metadata_writable(m, &err), FZ_USER);
    assert_non_null(strstr(err.message, "write.location-provider.impl"));
    ice_metadata_free(m);
    m = load_with(META1, "{\"properties\":{\"write.upsert.enabled\":\"false\"}}");
    must(ice_metadata_writable(m, &err), &err);
    ice_metadata_free(m);
}

static void broken_documents(void **state) {
    (void)state;
    static const char *const over[] = {"{\"current-snapshot-id\":5}", "{\"current-schema-id\":5}", "{\"default-spec-id\":5}", "{\"default-sort-order-id\":5}",
                                       "{\"schemas\":7}", "{\"snapshots\":[3]}", "{\"refs\":{\"main\":{\"snapshot-id\":1}}}", "{\"table-uuid\":null}",
                                       "{\"last-updated-ms\":\"now\"}", "{\"snapshot-log\":[{}]}", "{\"metadata-log\":[{\"timestamp-ms\":1}]}",
                                       "{\"current-snapshot-id\":null,\"refs\":{},\"snapshots\":[{\"snapshot-id\":1,\"parent-snapshot-id\":2,\"timestamp-ms\":1},"
                                       "{\"snapshot-id\":2,\"parent-snapshot-id\":1,\"timestamp-ms\":1}]}"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        ice_metadata *m = load(META1), *bad;
        json_t *root = json_deep_copy(m->root), *more = json_of(over[i]);
        json_object_update(root, more);
        char *text = json_dumps(root, 0);
        fz_error err;
        if (ice_metadata_parse(text, strlen(text), &bad, &err) != FZ_FATAL) fail_msg("%s is taken", over[i]);
        assert_null(bad);
        free(text);
        json_decref(root);
        json_decref(more);
        ice_metadata_free(m);
    }
    ice_metadata *bad;
    fz_error err;
    assert_int_equal(ice_metadata_parse("{", 1, &bad, &err), FZ_FATAL);
    assert_int_equal(ice_metadata_parse("\x1f\x8b\x08\0\0\0\0\0\0\0garbage\xff\xff\xff\x7f", 21, &bad, &err), FZ_FATAL);
}

static void gzip_round_trip(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    ice_metadata *m = load_with(META1, "{\"properties\":{\"write.metadata.compression-codec\":\"gzip\"}}"), *n;
    fz_buf b = {0};
    fz_error err;
    must(ice_metadata_encode(m, &b, &err), &err);
    assert_true(b.data[0] == 0x1f && b.data[1] == 0x8b);
    must(ice_metadata_parse(b.data, b.len, &n, &err), &err);
    assert_true(json_equal((json_t *)(uintptr_t)m->root, (json_t *)(uintptr_t)n->root));
    assert_string_equal(ice_metadata_location(a, m, 7, "u"), "s3://golden/wh/gold.db/part_values/metadata/00007-u.gz.metadata.json");
    ice_metadata_free(m);
    ice_metadata_free(n);
    fz_buf_free(&b);
    fz_arena_free(a);
}

static void names(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    ice_schema s = {0};
    fz_error err;
    static const char *const locations[] = {"s3://w/db/t/", "file:///tmp/w/db/t/", "/tmp/w/db/t///", "s3://w/db/t"};
    static const char *const trimmed[] = {"s3://w/db/t", "file:///tmp/w/db/t", "/tmp/w/db/t", "s3://w/db/t"};
    for (int i = 0; i < 4; i++) {
        ice_metadata *m;
        must(ice_metadata_new(locations[i], &s, NULL, NULL, NULL, 0, "u", 1, &m, &err), &err);
        assert_string_equal(m->location, trimmed[i]);
        assert_string_equal(json_string_value(json_object_get(m->root, "location")), trimmed[i]);
        assert_string_equal(ice_data_file_location(a, m, "dt=1/h=2", "f.parquet"), fz_arena_printf(a, "%s/data/dt=1/h=2/f.parquet", trimmed[i]));
        assert_string_equal(ice_data_file_location(a, m, "", "f.parquet"), fz_arena_printf(a, "%s/data/f.parquet", trimmed[i]));
        assert_string_equal(ice_manifest_location(a, m, "c", 3), fz_arena_printf(a, "%s/metadata/c-m3.avro", trimmed[i]));
        assert_string_equal(ice_manifest_list_location(a, m, 99, 2, "c"), fz_arena_printf(a, "%s/metadata/snap-99-2-c.avro", trimmed[i]));
        assert_string_equal(ice_metadata_location(a, m, 12, "c"), fz_arena_printf(a, "%s/metadata/00012-c.metadata.json", trimmed[i]));
        ice_metadata_free(m);
    }
    ice_metadata *m;
    const fz_pair p[] = {{.key = "write.data.path", .value = "s3://d/x/"}, {.key = "write.metadata.path", .value = "s3://e/y//"}};
    must(ice_metadata_new("s3://w/t", &s, NULL, NULL, p, 2, "u", 1, &m, &err), &err);
    assert_string_equal(ice_data_file_location(a, m, "", "f"), "s3://d/x/f");
    assert_string_equal(ice_manifest_location(a, m, "c", 0), "s3://e/y/c-m0.avro");
    ice_metadata_free(m);
    assert_string_equal(ice_data_file_name(a, 0, 3, "op", 17, "parquet"), "00000-3-op-00017.parquet");
    assert_string_equal(ice_location_trim(a, "s3://"), "s3://");
    assert_int_equal(ice_metadata_version_of("s3://a/metadata/00012-uuid.metadata.json"), 12);
    assert_int_equal(ice_metadata_version_of("00003-uuid.gz.metadata.json"), 3);
    assert_int_equal(ice_metadata_version_of("/t/metadata/v7.metadata.json"), 7);
    assert_int_equal(ice_metadata_version_of("/t/metadata/v7.gz.metadata.json"), 7);
    assert_int_equal(ice_metadata_version_of("/t/metadata/snap-1.avro"), -1);
    assert_int_equal(ice_metadata_version_of("/t/metadata/99999999999-u.metadata.json"), -1);
    fz_arena_free(a);
}

static void metrics_modes(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    const col_field in[] = {{"x", col_simple(COL_INT, true), NULL}};
    const col_field f[] = {{"a", col_string(true), NULL}, {"r", col_row(a, in, 1, true), NULL}, {"l", col_array(a, col_string(true), true), NULL},
                           {"b", col_string(true), NULL}, {"c", col_string(true), NULL}};
    const col_schema cols = {5, f}; /* ids: a 1, r 2, l 3, b 4, c 5, r.x 6, l.element 7 */
    ice_schema *s;
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err), &err);
    const struct { fz_pair p[3]; int n; int want[8]; } cases[] = {
        {{{0}}, 0, {0, 16, 0, 0, 16, 16, 16, -2}},
        {{{.key = "write.metadata.metrics.default", .value = "full"}, {.key = "write.metadata.metrics.column.b", .value = "counts"},
          {.key = "write.metadata.metrics.column.r.x", .value = "none"}}, 3, {0, -1, 0, 0, -2, -1, 0, -2}},
        {{{.key = "write.metadata.metrics.default", .value = "none"}, {.key = "write.metadata.metrics.column.l.element", .value = "full"},
          {.key = "write.metadata.metrics.column.c", .value = "truncate(7)"}}, 3, {0, 0, 0, 0, 0, 7, 0, -2}},
        {{{.key = "write.metadata.metrics.max-inferred-column-defaults", .value = "2"}}, 1, {0, 16, 0, 0, 16, 0, 0, 0}},
        {{{.key = "write.metadata.metrics.default", .value = "truncate(x)"}}, 1, {0, 16, 0, 0, 16, 16, 16, -2}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ice_metadata *m;
        must(ice_metadata_new("/t", s, NULL, NULL, cases[i].p, (uint32_t)cases[i].n, "u", 1, &m, &err), &err);
        ice_metrics c = ice_metrics_config(a, m);
        for (int id = 1; id < 8; id++)
            if (ice_metrics_mode(&c, id) != cases[i].want[id]) fail_msg("case %zu, id %d: %d", i, id, ice_metrics_mode(&c, id));
        ice_metadata_free(m);
    }
    fz_arena_free(a);
}

static void property_table(void **state) {
    (void)state;
    for (const fz_option *o = ice_table_properties; o->name; o++) {
        fz_error err;
        assert_true(o->doc && *o->doc && (o->state == FZ_OPT_USED || o->why));
        if (o->dflt && !o->allowed) must(fz_option_check(o, o->dflt, &err), &err);
        for (const fz_option *p = ice_table_properties; p != o; p++) assert_string_not_equal(o->name, p->name);
    }
    assert_int_equal(fz_option_find(ice_table_properties, "write.metadata.metrics.column.a.b")->state, FZ_OPT_USED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accessors), cmocka_unit_test(unknown_members_survive), cmocka_unit_test(requirements), cmocka_unit_test(snapshots_and_lineage),
        cmocka_unit_test(clock_behind), cmocka_unit_test(metadata_log_is_cut), cmocka_unit_test(schema_and_spec_updates), cmocka_unit_test(created_by_updates),
        cmocka_unit_test(versions), cmocka_unit_test(broken_documents), cmocka_unit_test(gzip_round_trip), cmocka_unit_test(names),
        cmocka_unit_test(metrics_modes), cmocka_unit_test(property_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
