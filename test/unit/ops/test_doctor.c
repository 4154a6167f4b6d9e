/* Steps of the doctor: what blocks what, what makes a report sound, what the report says; probe objects of local files; the table of codes. */
#include "unit.h"
#include "ops/doctor_int.h"
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void step_blocks_what_rests_on_it(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    doc_step *region = doc_begin(&d, "doctor.region", "c");
    doc_step *credentials = doc_begin(&d, "doctor.credentials", "c");
    doc_step *identity = doc_begin(&d, "doctor.identity", "c");
    doc_step *kafka = doc_begin(&d, "doctor.kafka.brokers", "b:9092");
    assert_false(doc_blocked(&d, credentials, region));
    doc_fail(&d, credentials, "none");
    assert_true(doc_blocked(&d, identity, credentials));
    assert_int_equal(identity->status, OPS_STEP_SKIPPED);
    assert_ptr_equal(identity->because, credentials);
    doc_step *catalog = doc_begin(&d, "doctor.catalog", "c");
    assert_true(doc_blocked(&d, catalog, identity)); /* names the one that failed, not the one that was skipped for it */
    assert_ptr_equal(catalog->because, credentials);
    assert_false(doc_blocked(&d, kafka, NULL));
    assert_true(doc_good(kafka));
    assert_false(doc_sound(&d));
    uint32_t red = 0;
    for (doc_step *s = d.first; s; s = s->next) red += s->status == OPS_STEP_FAIL;
    assert_int_equal(red, 1);
    doc_free(&d);
}

static void warning_blocks_nothing(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    doc_step *clock = doc_begin(&d, "doctor.clock", NULL), *next = doc_begin(&d, "doctor.catalog", NULL);
    doc_warn(&d, clock, "%d s off", 400);
    assert_int_equal(clock->status, OPS_STEP_WARN);
    assert_false(doc_blocked(&d, next, clock));
    assert_true(doc_sound(&d));
    doc_fail(&d, clock, "worse");
    doc_warn(&d, clock, "and more"); /* a failure stays one */
    assert_int_equal(clock->status, OPS_STEP_FAIL);
    assert_string_equal(clock->answer, "400 s off\nworse\nand more");
    doc_free(&d);
}

static void time_is_up(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    doc_step *s = doc_begin(&d, "doctor.catalog", NULL);
    d.deadline_ns = fz_mono_ns() - 1;
    assert_true(doc_blocked(&d, s, NULL));
    assert_null(s->because);
    assert_false(doc_sound(&d)); /* what could not be asked is not sound */
    doc_free(&d);
}

static void found_by_code_and_subject(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    char subject[] = "https://glue";
    doc_step *s = doc_begin(&d, "doctor.endpoint.glue", subject);
    subject[0] = 'x'; /* a copy is kept */
    assert_ptr_equal(doc_find(&d, "doctor.endpoint.glue", "https://glue"), s);
    assert_null(doc_find(&d, "doctor.endpoint.s3", "https://glue"));
    assert_null(doc_find(&d, "doctor.endpoint.glue", NULL));
    doc_free(&d);
}

static json_t *report(doctor *d) {
    fz_buf b = {0};
    doc_render(d, &(ops_doctor_options){.format = OPS_JSON, .script = "a \"b\".sql"}, &b);
    json_t *j = json_loadb((const char *)b.data, b.len, 0, NULL);
    assert_non_null(j);
    fz_buf_free(&b);
    return j;
}
static const char *field(const json_t *j, size_t i, const char *key) { return json_string_value(json_object_get(json_array_get(json_object_get(j, "steps"), i), key)); }

static void report_in_json_and_text(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    doc_step *a = doc_begin(&d, "doctor.catalog.federation", "glue_prod"), *b = doc_begin(&d, "doctor.database", "glue_prod.logs");
    doc_asked(&d, a, "glue GetCatalog");
    doc_fail(&d, a, "400: \"Catalog not found.\"");
    doc_advise(&d, a, "turn it on");
    doc_advise(&d, a, "and look");
    (void)doc_blocked(&d, b, a);
    json_t *j = report(&d);
    assert_true(json_is_false(json_object_get(j, "ok")));
    assert_string_equal(field(j, 0, "status"), "fail");
    assert_string_equal(field(j, 0, "answer"), "400: \"Catalog not found.\"");
    assert_string_equal(field(j, 0, "do"), "turn it on\nand look");
    assert_true(strlen(field(j, 0, "what")) > 10);
    assert_string_equal(field(j, 1, "status"), "skipped");
    assert_string_equal(field(j, 1, "because"), "doctor.catalog.federation");
    json_decref(j);
    fz_buf t = {0};
    doc_render(&d, &(ops_doctor_options){.format = OPS_TEXT, .script = "job.sql"}, &t);
    const char *text = fz_buf_cstr(&t);
    assert_non_null(strstr(text, "FAIL     doctor.catalog.federation  glue_prod\n           asked:   glue GetCatalog\n           answer:  400: \"Catalog not found.\"\n           do:      turn it on\n"
                                 "                    and look\n"));
    assert_non_null(strstr(text, "skipped  doctor.database            glue_prod.logs: not asked: it rests on doctor.catalog.federation (glue_prod)\n"));
    assert_non_null(strstr(text, "job.sql: the job cannot run; begin with doctor.catalog.federation (0 ok, 0 warnings, 1 failed, 1 skipped)\n"));
    fz_buf_free(&t);
    doc_free(&d);
}

static void refused_script(void **state) {
    (void)state;
    fz_error e = {0};
    fz_buf b = {0};
    fz_fail(&e, FZ_USER, "sql.syntax", "unexpected 'FORM'");
    fz_at(&e, 7, 9);
    ops_doctor_refuse("doctor.script", &e, &(ops_doctor_options){.format = OPS_JSON, .script = "job.sql"}, &b);
    json_t *j = json_loadb((const char *)b.data, b.len, 0, NULL);
    assert_string_equal(field(j, 0, "code"), "doctor.script");
    assert_string_equal(field(j, 0, "answer"), "line 7, column 9: unexpected 'FORM' [sql.syntax]");
    assert_true(strlen(field(j, 0, "do")) > 0);
    json_decref(j);
    fz_buf_free(&b);
}

static char dir[64];
static unsigned entries(const char *path) {
    char cmd[256];
    unsigned n = 0;
    snprintf(cmd, sizeof cmd, "ls -A %s | wc -l", path);
    FILE *f = popen(cmd, "r");
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);
    return n;
}

static void local_probe_leaves_nothing(void **state) {
    (void)state;
    doctor d;
    doc_init(&d, NULL);
    snprintf(dir, sizeof dir, "/tmp/frazil-doctor-XXXXXX");
    assert_non_null(mkdtemp(dir));
    char deeper[128];
    snprintf(deeper, sizeof deeper, "file://%s/wh/db/t", dir);
    doc_store_probe(&d, NULL, dir, "c.db.t", NULL);
    assert_int_equal(d.first->status, OPS_STEP_OK);
    doc_store_probe(&d, NULL, deeper, "c.db.u", NULL); /* not there yet: no directory is made */
    assert_int_equal(d.first->next->status, OPS_STEP_OK);
    assert_int_equal(entries(dir), 0);
    FILE *f = fopen(strcat(strcpy(deeper, dir), "/wh"), "w"); /* in the way */
    fclose(f);
    strcat(deeper, "/db/t");
    doc_store_probe(&d, NULL, deeper, "c.db.v", NULL);
    assert_int_equal(d.first->next->next->status, OPS_STEP_FAIL);
    assert_int_equal(entries(dir), 1);
    doc_step *ground = doc_begin(&d, "doctor.catalog", "c");
    doc_fail(&d, ground, "no");
    doc_store_probe(&d, NULL, dir, "c.db.w", ground);
    assert_int_equal(ground->next->status, OPS_STEP_SKIPPED);
    snprintf(deeper, sizeof deeper, "rm -rf %s", dir);
    assert_int_equal(system(deeper), 0);
    doc_free(&d);
}

static void codes_are_told_apart(void **state) {
    (void)state;
    const ops_doctor_code *c = ops_doctor_codes();
    uint32_t n = 0;
    for (; c[n].code; n++) {
        assert_true(fz_starts(c[n].code, "doctor."));
        assert_true(*c[n].what && *c[n].advice);
        for (uint32_t i = 0; i < n; i++) assert_string_not_equal(c[i].code, c[n].code);
    }
    assert_true(n > 45);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(step_blocks_what_rests_on_it), cmocka_unit_test(warning_blocks_nothing), cmocka_unit_test(time_is_up),
                                       cmocka_unit_test(found_by_code_and_subject), cmocka_unit_test(report_in_json_and_text), cmocka_unit_test(refused_script),
                                       cmocka_unit_test(local_probe_leaves_nothing), cmocka_unit_test(codes_are_told_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
