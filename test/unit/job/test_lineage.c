/* What metadata says of positions: the lineage, the mirror with and without proof, other pipelines. */
#include "unit.h"
#include "job/lineage.h"

#define POS(n) "{\\\"v\\\":1,\\\"s\\\":{\\\"k\\\":{\\\"t\\\":[[0," n "]]}}}"
#define SUMMARY(pipeline, id, n) "\"operation\":\"append\",\"frazil.pipeline\":\"" pipeline "\",\"frazil.commit-id\":\"" id "\",\"frazil.checkpoint\":\"1\",\"frazil.positions\":\"" POS(n) \
    "\",\"frazil.ranges\":\"{\\\"v\\\":1,\\\"s\\\":{}}\""
#define FOREIGN "\"operation\":\"append\""
#define SNAPSHOT(id, seq, parent, summary) "{\"snapshot-id\":" id ",\"sequence-number\":" seq parent ",\"timestamp-ms\":" seq ",\"manifest-list\":\"mem://l\",\"schema-id\":0,\"summary\":{" summary "}}"
#define PARENT(id) ",\"parent-snapshot-id\":" id
#define MIRROR(pipeline, id, seq, n) "\"frazil.mirror." pipeline "\":\"{\\\"v\\\":1,\\\"snapshot\\\":" id ",\\\"sequence\\\":" seq ",\\\"positions\\\":" POS(n) "}\""

static ice_metadata *metadata(const char *current, const char *properties, const char *snapshots) {
    char *text = fz_asprintf("{\"format-version\":2,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\",\"location\":\"mem://x\",\"last-sequence-number\":9,\"last-updated-ms\":9,"
                             "\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":false,\"type\":\"int\"}]}],"
                             "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],\"last-partition-id\":999,\"default-sort-order-id\":0,"
                             "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{%s},\"current-snapshot-id\":%s,\"refs\":{\"main\":{\"snapshot-id\":%s,\"type\":\"branch\"}},"
                             "\"snapshots\":[%s]}",
                             properties, current, current, snapshots);
    ice_metadata *m = NULL;
    fz_error err;
    if (ice_metadata_parse(text, strlen(text), &m, &err) != FZ_OK) fail_msg("%s\n%s", err.message, text);
    fz_free(text);
    return m;
}

/* A manifest list whose one manifest was added by snapshot *cx. */
static fz_status read_list(void *cx, const char *location, fz_buf *out, fz_error *err) {
    (void)location;
    ice_manifest_file f = {.path = "mem://m", .length = 10, .sequence = 1, .min_sequence = 1, .added_snapshot_id = *(int64_t *)cx, .added_files = 1};
    ice_manifest_list l = {1, &f};
    return ice_manifest_list_encode(&l, 3, ICE_NONE, 3, ICE_AVRO_DEFLATE, out, err);
}

static job_lineage look(const ice_metadata *m, int64_t adder, fz_arena *a) {
    ice_io io = {&adder, read_list, NULL};
    job_lineage l;
    fz_error err;
    if (job_lineage_read(a, m, "p", NULL, &io, &l, &err) != FZ_OK) fail_msg("%s", err.message);
    return l;
}

static void newest_of_ours_decides(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    ice_metadata *m = metadata("3", MIRROR("p", "2", "2", "20"), SNAPSHOT("1", "1", "", SUMMARY("p", "a", "10")) "," SNAPSHOT("2", "2", PARENT("1"), SUMMARY("p", "b", "20")) ","
                                                                     SNAPSHOT("3", "3", PARENT("2"), SUMMARY("q", "c", "7")));
    job_lineage l = look(m, 0, a);
    assert_true(l.found && !l.from_mirror && l.snapshot_id == 2 && l.marks.positions[0].next == 20);
    ice_metadata_free(m);
    fz_arena_free(a);
}

/* A whole lineage without ours: rolled back before our first commit, whatever the mirror says. */
static void whole_lineage_beats_the_mirror(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    ice_metadata *m = metadata("1", MIRROR("p", "2", "2", "20"), SNAPSHOT("1", "1", "", FOREIGN));
    job_lineage l = look(m, 2, a);
    assert_true(!l.found && !l.unproven);
    ice_metadata_free(m);
    fz_arena_free(a);
}

/* Expiry cut the lineage, with the parent's id left (Java) or taken away (PyIceberg). */
static void cut_lineage_needs_proof(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    static const char *const snapshots[] = {SNAPSHOT("3", "3", PARENT("99"), FOREIGN), SNAPSHOT("3", "3", "", FOREIGN)};
    for (int i = 0; i < 2; i++) {
        ice_metadata *m = metadata("3", MIRROR("p", "2", "2", "20"), snapshots[i]);
        job_lineage l = look(m, 2, a); /* our files are live */
        assert_true(l.found && l.from_mirror && !l.unproven && l.marks.positions[0].next == 20);
        l = look(m, 5, a);
        assert_true(!l.found && l.unproven && l.marks.positions[0].next == 20);
        ice_metadata_free(m);
        m = metadata("3", MIRROR("p", "4", "4", "20"), snapshots[i]); /* a snapshot older than ours was passed: rolled back */
        l = look(m, 4, a);
        assert_true(!l.found && l.unproven);
        ice_metadata_free(m);
        m = metadata("3", "\"x\":\"y\"", snapshots[i]); /* no mirror: never ours */
        l = look(m, 2, a);
        assert_true(!l.found && !l.unproven);
        ice_metadata_free(m);
    }
    ice_metadata *m = metadata("3", MIRROR("p", "2", "2", "20"), SNAPSHOT("3", "3", PARENT("2"), FOREIGN));
    job_lineage l = look(m, 5, a); /* the parent that was cut off is the mirror's snapshot */
    assert_true(l.found && l.from_mirror);
    ice_metadata_free(m);
    fz_arena_free(a);
}

static void every_other_pipeline_is_told(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    job_marks *v;
    uint32_t n;
    ice_metadata *m = metadata("4", MIRROR("gone", "1", "1", "5") "," MIRROR("q", "3", "3", "8") "," MIRROR("p", "1", "1", "1"),
                               SNAPSHOT("2", "2", "", SUMMARY("q", "a", "6")) "," SNAPSHOT("3", "3", PARENT("2"), SUMMARY("q", "b", "8")) "," SNAPSHOT("4", "4", PARENT("3"), SUMMARY("r", "c", "9")));
    assert_int_equal(job_lineage_others(a, m, "p", &v, &n, &err), FZ_OK);
    assert_int_equal(n, 3);
    assert_string_equal(v[0].pipeline, "r");
    assert_true(strcmp(v[1].pipeline, "q") == 0 && v[1].positions[0].next == 8);
    assert_true(strcmp(v[2].pipeline, "gone") == 0 && v[2].positions[0].next == 5);
    ice_metadata_free(m);
    fz_arena_free(a);
}

/* Who has taken whom over, and as of when: of the newest commit, or of the mirror. */
static void adopted_is_carried(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    job_marks *v;
    uint32_t n;
#define ADOPTED "{\\\"v\\\":1,\\\"p\\\":[[\\\"p\\\",5]]}"
    ice_metadata *m = metadata("6", MIRROR("p", "5", "5", "5"), SNAPSHOT("5", "5", "", SUMMARY("p", "a", "6")) "," SNAPSHOT("6", "6", PARENT("5"), SUMMARY("q", "b", "8") ",\"frazil.adopted\":\"" ADOPTED "\""));
    assert_int_equal(look(m, 0, a).marks.as_of, 5);
    assert_int_equal(job_lineage_others(a, m, "p", &v, &n, &err), FZ_OK);
    assert_true(n == 1 && v[0].as_of == 6 && v[0].n_adopted == 1 && strcmp(v[0].adopted[0].pipeline, "p") == 0 && v[0].adopted[0].as_of == 5);
    ice_metadata_free(m);
    m = metadata("7", "\"frazil.mirror.q\":\"{\\\"v\\\":1,\\\"snapshot\\\":6,\\\"sequence\\\":6,\\\"positions\\\":" POS("8") ",\\\"adopted\\\":" ADOPTED "}\"", SNAPSHOT("7", "7", PARENT("6"), FOREIGN));
    assert_int_equal(job_lineage_others(a, m, "p", &v, &n, &err), FZ_OK);
    assert_true(n == 1 && v[0].as_of == 6 && v[0].n_adopted == 1 && v[0].adopted[0].as_of == 5);
    ice_metadata_free(m);
    fz_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(newest_of_ours_decides), cmocka_unit_test(whole_lineage_beats_the_mirror), cmocka_unit_test(cut_lineage_needs_proof),
                                       cmocka_unit_test(every_other_pipeline_is_told), cmocka_unit_test(adopted_is_carried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
