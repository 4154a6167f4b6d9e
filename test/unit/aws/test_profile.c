/* Profile files: what botocore makes of a set of them (test/data/aws/profiles.json, written by test/interop/aws_golden.py), hostile ones, missing ones. */
#include "aws/aws_home.h"

static void same_property(const aws_profiles *p, aws_section_kind kind, const char *section, const char *key, json_t *want, const char *name) {
    const char *got = aws_profiles_get(p, kind, section, key);
    if (!got) fail_msg("%s: [%s] has no %s", name, section, key);
    if (json_is_string(want)) {
        if (strcmp(got, json_string_value(want)) != 0) fail_msg("%s: [%s] %s: '%s' instead of '%s'", name, section, key, got, json_string_value(want));
        return;
    }
    fz_arena *a = fz_arena_new();
    const char *sub;
    json_t *v;
    json_object_foreach(want, sub, v) {
        const char *inner = aws_profiles_sub(p, kind, section, key, sub, a);
        if (!inner || strcmp(inner, json_string_value(v)) != 0) fail_msg("%s: [%s] %s.%s: '%s'", name, section, key, sub, inner ? inner : "(none)");
    }
    assert_null(aws_profiles_sub(p, kind, section, key, "nosuch", a));
    fz_arena_free(a);
}

static void same_sections(const aws_profiles *p, aws_section_kind kind, json_t *want, const char *name) {
    const char *section, *key;
    json_t *properties, *v;
    json_object_foreach(want, section, properties) {
        if (fz_starts(section, "profile ")) continue; /* the credentials file's [profile x], which nobody can name */
        if (!aws_profiles_has(p, kind, section)) fail_msg("%s: no [%s]", name, section);
        json_object_foreach(properties, key, v) same_property(p, kind, section, key, v, name);
    }
}

static void same_credentials(const char *profile, json_t *want, const char *name) {
    if (!want) return;
    setenv("AWS_PROFILE", profile, 1);
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    fz_status rc = aws_provider_get(aws_session_provider(s), a, &c, &err);
    if (json_is_string(want)) {
        assert_int_equal(rc, FZ_USER);
        assert_string_equal(err.code, "aws.credentials");
    } else {
        if (rc != FZ_OK) fail_msg("%s: %s", name, err.message);
        assert_string_equal(c.access_key, json_string_value(json_array_get(want, 0)));
        assert_string_equal(c.secret_key, json_string_value(json_array_get(want, 1)));
        const char *token = json_string_value(json_array_get(want, 2));
        assert_true(token ? c.token && strcmp(token, c.token) == 0 : !c.token);
    }
    aws_session_unref(s);
    fz_arena_free(a);
}

static void one_case(json_t *t) {
    const char *name = json_string_value(json_object_get(t, "name")), *profile = json_string_value(json_object_get(t, "profile"));
    const char *config = json_string_value(json_object_get(t, "config")), *credentials = json_string_value(json_object_get(t, "credentials"));
    json_t *want = json_object_get(t, "botocore"), *ours = json_object_get(t, "ours");
    aws_profiles *p = NULL;
    fz_error err = {0};
    char path[2][128];
    snprintf(path[0], sizeof path[0], "%s", home_file(".aws/config", config));
    snprintf(path[1], sizeof path[1], "%s", home_file(".aws/credentials", credentials));
    fz_status rc = aws_profiles_load(path[0], path[1], &p, &err);
    if (json_is_null(want) && !ours) {
        if (rc != FZ_USER) fail_msg("%s: taken, botocore refuses it", name);
        assert_string_equal(err.code, "aws.profile-file");
        return;
    }
    if (rc != FZ_OK) fail_msg("%s: %s", name, err.message);
    if (ours) {
        const char *key;
        json_t *v;
        json_object_foreach(ours, key, v) same_property(p, AWS_SECTION_PROFILE, profile, key, v, name);
    } else {
        same_sections(p, AWS_SECTION_PROFILE, json_object_get(want, "profiles"), name);
        same_sections(p, AWS_SECTION_SSO_SESSION, json_object_get(want, "sso_sessions"), name);
        same_sections(p, AWS_SECTION_SERVICES, json_object_get(want, "services"), name);
        assert_int_equal(aws_profiles_has(p, AWS_SECTION_PROFILE, profile), json_is_true(json_object_get(want, "known")));
        same_credentials(profile, json_object_get(want, "credentials"), name);
    }
    if (strcmp(name, "profile default beats default") == 0) assert_null(aws_profiles_get(p, AWS_SECTION_PROFILE, "default", "output"));
    if (strcmp(name, "profile default beats default, later") == 0) assert_null(aws_profiles_get(p, AWS_SECTION_PROFILE, "default", "output"));
    aws_profiles_free(p);
}

static void as_botocore(void **state) {
    (void)state;
    json_error_t where;
    json_t *all = json_load_file("test/data/aws/profiles.json", 0, &where), *t;
    if (!all) fail_msg("%s", where.text);
    size_t i;
    json_array_foreach(all, i, t) one_case(t);
    assert_true(json_array_size(all) > 40);
    json_decref(all);
}

static fz_status parse(const char *text, size_t n, fz_error *err) {
    aws_profiles *p = aws_profiles_new();
    fz_status rc = aws_profiles_parse(p, text, n, false, "f", err);
    aws_profiles_free(p);
    return rc;
}

static void hostile(void **state) {
    (void)state;
    fz_error err = {0};
    fz_buf b = {0};
    assert_int_equal(parse("[default]\nx\0y = 1\n", 18, &err), FZ_USER);
    for (int i = 0; i < 1001; i++) fz_buf_printf(&b, "[profile p%d]\n", i);
    assert_int_equal(parse((char *)b.data, b.len, &err), FZ_USER);
    assert_string_equal(err.message, "f, line 1001: too many sections");
    b.len = 0;
    fz_buf_puts(&b, "[default]\n");
    for (int i = 0; i < 1001; i++) fz_buf_printf(&b, "k%d = v\n", i);
    assert_int_equal(parse((char *)b.data, b.len, &err), FZ_USER);
    assert_string_equal(err.message, "f, line 1002: too many properties in one section");
    b.len = 0;
    fz_buf_puts(&b, "[default]\nk =\n");
    for (int i = 0; i < 1001; i++) fz_buf_puts(&b, " a\n");
    assert_int_equal(parse((char *)b.data, b.len, &err), FZ_USER);
    assert_string_equal(err.message, "f, line 1003: a value has too many lines");
    b.len = 0;
    fz_buf_reserve(&b, (2u << 20));
    memset(b.data, '\n', 2u << 20);
    assert_int_equal(parse((char *)b.data, 2u << 20, &err), FZ_USER);
    fz_buf_free(&b);
    assert_int_equal(parse("", 0, &err), FZ_OK);
}

/* Each prefix of a file that has everything, and each with one byte changed: never a crash. */
static void any_bytes(void **state) {
    (void)state;
    static const char text[] = "\xef\xbb\xbf# c\n[default]\nregion = a # b\ns3 =\n  x = y\n  z\n[profile 'q r'] ; c\n k:v\r\n[sso-session s]\n[services t]\nglue =\n u = v";
    char copy[sizeof text];
    for (size_t n = 0; n < sizeof text; n++) (void)parse(text, n, NULL);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        for (int c = 0; c < 256; c += 1) {
            memcpy(copy, text, sizeof text);
            copy[i] = (char)c;
            (void)parse(copy, sizeof text - 1, NULL);
        }
}

static void errors_name_path_and_line_only(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s", home_file(".aws/credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = TOPSECRET\nTOPSECRET2\n"));
    aws_session *s;
    fz_error err = {0};
    char text[2048], want[256];
    assert_int_equal(aws_session_new(NULL, 0, &s, &err), FZ_USER);
    fz_error_text(&err, text, sizeof text);
    assert_null(strstr(text, "TOPSECRET"));
    snprintf(want, sizeof want, "%s, line 4: a property must have the form key = value", path);
    assert_string_equal(err.message, want);
}

static void files_that_are_not_there(void **state) {
    (void)state;
    aws_profiles *p;
    fz_error err = {0};
    assert_int_equal(aws_profiles_load("/dev/null", "/nonexistent/x", &p, &err), FZ_OK);
    assert_string_equal(aws_profiles_note(p), "no file /dev/null, no file /nonexistent/x");
    aws_profiles_free(p);
    assert_int_equal(aws_profiles_load(home_dir, NULL, &p, &err), FZ_OK); /* a directory */
    aws_profiles_free(p);
    setenv("AWS_CONFIG_FILE", "~/elsewhere", 1);
    home_file("elsewhere", "[default]\nregion = sa-east-1\n");
    aws_session *s = session();
    const char *region;
    assert_int_equal(aws_session_region(s, &region, NULL, &err), FZ_OK);
    assert_string_equal(region, "sa-east-1");
    aws_session_unref(s);
}

static void a_named_profile_must_exist(void **state) {
    (void)state;
    home_file(".aws/config", "[default]\nregion = us-east-1\n[profile home-aws]\n[homeaws]\n");
    setenv("AWS_PROFILE", "homeaws", 1);
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), FZ_USER);
    assert_string_equal(err.code, "aws.credentials");
    assert_non_null(strstr(err.message, "profile 'homeaws' (AWS_PROFILE) is in neither "));
    assert_string_equal(err.hint, "profiles that are there: default, home-aws; in the config file a profile begins with [profile homeaws]");
    aws_session_unref(s);
    setenv("AWS_ACCESS_KEY_ID", "A", 1); /* but the environment goes first, and then nobody asks for it */
    setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
    s = session();
    get(s, a, &c);
    assert_string_equal(c.source, "environment");
    aws_session_unref(s);
    fz_arena_free(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, home_up, home_down)
int main(void) {
    const struct CMUnitTest tests[] = {T(as_botocore), T(hostile), T(any_bytes), T(errors_name_path_and_line_only), T(files_that_are_not_there), T(a_named_profile_must_exist)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
