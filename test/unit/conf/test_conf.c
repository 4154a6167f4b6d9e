/* Settings and config.yaml. */
#include "unit.h"
#include "conf/conf.h"
#include <stdlib.h>
#include <unistd.h>

static fz_status load(conf *c, const char *text, fz_error *err) {
    char path[] = "/tmp/frazil-conf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    fz_status rc = conf_load_yaml(c, path, err);
    unlink(path);
    return rc;
}

static void reads_flinks_config(void **state) {
    (void)state;
    fz_error err;
    conf *c = conf_new();
    assert_int_equal(load(c,
                          "execution.checkpointing.interval: 5 min\n"
                          "execution:\n  checkpointing:\n    min-pause: 30 s\n    num-retained: 3\n"
                          "jobmanager.memory.process.size: 1600m\nmemory.limit: 64 mb\n", &err), FZ_OK);
    assert_int_equal(conf_get_i64(c, "execution.checkpointing.interval"), 300000);
    assert_int_equal(conf_get_i64(c, "execution.checkpointing.min-pause"), 30000);
    assert_int_equal(conf_get_i64(c, "memory.limit"), 64 << 20);
    assert_int_equal(conf_get_i64(c, "execution.checkpointing.timeout"), 600000);
    conf_mark_base(c);
    assert_int_equal(conf_set(c, "memory.limit", "1 gb", &err), FZ_OK);
    assert_int_equal(conf_reset(c, NULL, &err), FZ_OK);
    assert_int_equal(conf_get_i64(c, "memory.limit"), 64 << 20);
    conf_free(c);
}

static void names_what_is_wrong(void **state) {
    (void)state;
    fz_error err;
    conf *c = conf_new();
    assert_int_equal(load(c, "a: 1\n", &err), FZ_USER);
    assert_string_equal(err.code, "config.unknown-key");
    assert_int_equal(err.line, 1);
    assert_int_equal(load(c, "memory.limit: 12 parsecs\n", &err), FZ_USER);
    assert_string_equal(err.code, "option.invalid");
    assert_int_equal(load(c, "memory.limit: [1, {a: 2}]\n", &err), FZ_USER);
    assert_string_equal(err.code, "config.syntax");
    assert_int_equal(load(c, "- x\n", &err), FZ_USER);
    assert_int_equal(load(c, "x: 'unterminated\n", &err), FZ_USER);
    assert_string_equal(err.code, "config.syntax");
    assert_int_equal(conf_set(c, "frazil.on-row-eror", "fail", &err), FZ_USER);
    assert_non_null(strstr(err.hint, "frazil.on-row-error"));
    /* a slip of the pen in a key that counts does not pass as a key of Flink's without meaning */
    static const char *const slips[] = {"execution.checkpointing.intervall", "pipeline.nam", "parallelism.defaults", "table.local-timezone", "table.exec.sink.not-null-enforce", "execution.runtime.mode"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        assert_int_equal(conf_set(c, slips[i], "1", &err), FZ_USER);
        assert_string_equal(err.code, "config.unknown-key");
    }
    assert_int_equal(conf_set(c, "execution.checkpointing.unaligned.enabled", "true", &err), FZ_OK);
    assert_int_equal(conf_set(c, "table.exec.resource.default-parallelism", "2", &err), FZ_OK);
    assert_int_equal(conf_set(c, "frazil.on-row-error", "explode", &err), FZ_USER);
    conf_free(c);
}

/* Every row says what it is for, and every default is a legal value. */
static void table_is_complete(void **state) {
    (void)state;
    fz_error err;
    for (const fz_option *o = conf_options(); o->name; o++) {
        if (o->state == FZ_OPT_USED) assert_non_null(o->doc);
        else assert_non_null(o->why);
        if (o->state == FZ_OPT_USED && o->dflt) assert_int_equal(fz_option_check(o, o->dflt, &err), FZ_OK);
        assert_ptr_equal(fz_option_find(conf_options(), o->name), o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_flinks_config), cmocka_unit_test(names_what_is_wrong), cmocka_unit_test(table_is_complete)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
