/* The chain of credentials: each link, its errors, its order. */
#include "aws/aws_home.h"

static void environment(void **state) {
    (void)state;
    setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "envsecret\n", 1);
    setenv("AWS_SESSION_TOKEN", "envtoken", 1);
    home_file(".aws/credentials", "[default]\naws_access_key_id=AKIAFILE\naws_secret_access_key=x\n");
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "AKIAENV");
    assert_string_equal(c.secret_key, "envsecret");
    assert_string_equal(c.token, "envtoken");
    assert_string_equal(c.source, "environment");
    assert_int_equal(c.expires_ms, 0);
    aws_session_unref(s);
    fz_arena_free(a);
}

static void profile_static(void **state) {
    (void)state;
    home_file(".aws/config", "[profile w]\nregion = eu-west-1\n");
    home_file(".aws/credentials", "[w]\naws_access_key_id = AKIAFILE\naws_secret_access_key = filesecret\n");
    setenv("AWS_PROFILE", "w", 1);
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "AKIAFILE");
    assert_string_equal(c.secret_key, "filesecret");
    assert_null(c.token);
    assert_string_equal(c.source, "profile 'w'");
    const char *region, *from, *url;
    bool custom;
    fz_error err = {0};
    assert_int_equal(aws_session_region(s, &region, &from, &err), FZ_OK);
    assert_string_equal(region, "eu-west-1");
    assert_string_equal(from, "profile 'w'");
    assert_int_equal(aws_endpoint(s, "glue", NULL, a, &url, &custom, &err), FZ_OK);
    assert_string_equal(url, "https://glue.eu-west-1.amazonaws.com");
    assert_false(custom);
    aws_session_unref(s);
    fz_arena_free(a);
}

static void none_lists_each_link(void **state) {
    (void)state;
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), FZ_USER);
    assert_string_equal(err.code, "aws.no-credentials");
    char want[512];
    snprintf(want, sizeof want,
             "environment: AWS_ACCESS_KEY_ID is not set; web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set; profile: 'default' is not there (no file "
             "%s/.aws/config, no file %s/.aws/credentials); container: no AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI is set; IMDS: "
             "AWS_EC2_METADATA_DISABLED is true", home_dir, home_dir);
    assert_string_equal(err.detail, want);
    aws_session_unref(s);
    fz_arena_free(a);
}

/* Tools write new temporary keys into the file; a service that refuses the old ones makes us look again. */
static void the_file_is_read_again(void **state) {
    (void)state;
    home_file(".aws/credentials", "[default]\naws_access_key_id = ASIAOLD\naws_secret_access_key = x\naws_session_token = t\n");
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAOLD");
    home_file(".aws/credentials", "[default]\naws_access_key_id = ASIANEW\naws_secret_access_key = x\naws_session_token = t\n");
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAOLD");
    aws_provider_expired(aws_session_provider(s), c.generation);
    home_file(".aws/credentials", "[default]\naws_access_key_id"); /* half written */
    fz_error err = {0};
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), FZ_RETRY);
    assert_string_equal(err.code, "aws.profile-file");
    home_file(".aws/credentials", "");
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), FZ_RETRY); /* it had some: it may have again */
    assert_string_equal(err.code, "aws.credentials-unavailable");
    home_file(".aws/credentials", "[default]\naws_access_key_id = ASIANEW\naws_secret_access_key = x\naws_session_token = t\n");
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIANEW");
    aws_session_unref(s);
    fz_arena_free(a);
}

static void a_login_session_is_refused(void **state) {
    (void)state;
    home_file(".aws/config", "[default]\nlogin_session = arn:aws:iam::1:user/u\nregion = us-east-1\n");
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), FZ_USER);
    assert_string_equal(err.message, "profile 'default': login_session (of 'aws login') is not supported");
    aws_session_unref(s);
    fz_arena_free(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, home_up, home_down)
int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {T(environment), T(profile_static), T(none_lists_each_link), T(the_file_is_read_again), T(a_login_session_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
