/* Endpoints and regions: derived ones as botocore's rule sets say (test/data/aws/endpoints.tsv), configured ones in their order. */
#include "aws/aws_home.h"

static void derived(void **state) {
    (void)state;
    FILE *f = fopen("test/data/aws/endpoints.tsv", "r");
    assert_non_null(f);
    char line[512];
    int n = 0;
    fz_arena *a = fz_arena_new();
    while (fgets(line, sizeof line, f)) {
        char *field[6], *save = NULL;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 6; i++) field[i] = strtok_r(i ? NULL : line, "\t", &save);
        assert_non_null(field[5]);
        assert_string_equal(aws_partition(field[1]), field[4]);
        if (strcmp(field[5], "-") == 0) continue; /* botocore knows none there */
        setenv("AWS_REGION", field[1], 1);
        setenv("AWS_USE_FIPS_ENDPOINT", field[2], 1);
        setenv("AWS_USE_DUALSTACK_ENDPOINT", field[3], 1);
        aws_session *s = session();
        const char *url;
        bool custom = true;
        fz_error err = {0};
        assert_int_equal(aws_endpoint(s, field[0], NULL, a, &url, &custom, &err), FZ_OK);
        if (strcmp(url, field[5]) != 0) fail_msg("%s in %s, fips %s, dual stack %s: %s instead of %s", field[0], field[1], field[2], field[3], url, field[5]);
        assert_false(custom);
        aws_session_unref(s);
        n++;
    }
    assert_true(n > 450);
    fclose(f);
    fz_arena_free(a);
}

static void is(const char *service, const char *given, const char *want) {
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    const char *url;
    bool custom;
    fz_error err = {0};
    if (aws_endpoint(s, service, given, a, &url, &custom, &err) != FZ_OK) fail_msg("%s", err.message);
    assert_string_equal(url, want);
    assert_int_equal(custom, !fz_ends(want, ".amazonaws.com"));
    aws_session_unref(s);
    fz_arena_free(a);
}

static void configured_in_order(void **state) {
    (void)state;
    home_file(".aws/config", "[default]\nregion = eu-west-1\n");
    is("glue", NULL, "https://glue.eu-west-1.amazonaws.com");
    home_file(".aws/config", "[default]\nregion = eu-west-1\nendpoint_url = http://profile:1/\n");
    is("glue", NULL, "http://profile:1");
    home_file(".aws/config", "[default]\nregion = eu-west-1\nendpoint_url = http://profile:1\nservices = l\n[services l]\nglue =\n  endpoint_url = http://section:2\n"
                             "cloudwatch_logs =\n  endpoint_url = http://logs:3\n");
    is("glue", NULL, "http://section:2");
    is("s3", NULL, "http://profile:1");
    is("logs", NULL, "http://logs:3");
    setenv("AWS_ENDPOINT_URL", "http://global:4/base/", 1);
    is("glue", NULL, "http://global:4/base");
    setenv("AWS_ENDPOINT_URL_GLUE", "http://glue:5", 1);
    setenv("AWS_ENDPOINT_URL_S3TABLES", "http://s3tables:6", 1);
    setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "http://cw:7", 1);
    is("glue", NULL, "http://glue:5");
    is("s3tables", NULL, "http://s3tables:6");
    is("logs", NULL, "http://cw:7");
    is("s3", NULL, "http://global:4/base");
    is("glue", "https://given/", "https://given");
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
    is("glue", NULL, "https://glue.eu-west-1.amazonaws.com");
    is("glue", "https://given/", "https://given");
    unsetenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    home_file(".aws/config", "[default]\nregion = eu-west-1\nignore_configured_endpoint_urls = true\nendpoint_url = http://x\n");
    is("glue", NULL, "https://glue.eu-west-1.amazonaws.com");
}

static void a_configured_endpoint_needs_no_region(void **state) {
    (void)state;
    is("glue", "http://127.0.0.1:5000", "http://127.0.0.1:5000");
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    const char *url;
    fz_error err = {0};
    assert_int_equal(aws_endpoint(s, "glue", NULL, a, &url, NULL, &err), FZ_USER);
    assert_string_equal(err.code, "aws.no-region");
    assert_non_null(strstr(err.detail, "AWS_EC2_METADATA_DISABLED is true"));
    aws_session_unref(s);
    fz_arena_free(a);
}

static void bad_endpoints(void **state) {
    (void)state;
    static const char *const bad[] = {"glue.local:5000", "ftp://x", "http://", "http://user:pw@x", "http://x/?a=b", "http://x/#f", "http:/x"};
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *url;
        fz_error err = {0};
        if (aws_endpoint(s, "glue", bad[i], a, &url, NULL, &err) != FZ_USER) fail_msg("%s was taken", bad[i]);
        assert_string_equal(err.code, "aws.endpoint");
        assert_null(strstr(err.message, "pw"));
    }
    aws_session_unref(s);
    fz_arena_free(a);
}

static void region_order(void **state) {
    (void)state;
    const char *region, *from;
    fz_error err = {0};
    home_file(".aws/config", "[profile p]\nregion = eu-west-1\n");
    setenv("AWS_DEFAULT_PROFILE", "p", 1);
    const struct { const char *name, *value, *from; } steps[] = {
        {NULL, "eu-west-1", "profile 'p'"}, {"AWS_DEFAULT_REGION", "eu-west-2", "AWS_DEFAULT_REGION"}, {"AWS_REGION", "eu-west-3", "AWS_REGION"}};
    for (size_t i = 0; i < 3; i++) {
        if (steps[i].name) setenv(steps[i].name, steps[i].value, 1);
        aws_session *s = session();
        assert_int_equal(aws_session_region(s, &region, &from, &err), FZ_OK);
        assert_string_equal(region, steps[i].value);
        assert_string_equal(from, steps[i].from);
        assert_string_equal(aws_session_profile(s), "p");
        aws_session_unref(s);
    }
    fz_pair o[] = {{"client.region", "ca-central-1", 0, 0}, {"client.assume-role.region", "us-west-2", 0, 0}, {"s3.region", "xx", 0, 0}};
    aws_session *s = session_with(o, 1);
    assert_int_equal(aws_session_region(s, &region, &from, &err), FZ_OK);
    assert_string_equal(region, "ca-central-1");
    assert_string_equal(from, "option client.region");
    aws_session_unref(s);
    s = session_with(o, 3);
    assert_int_equal(aws_session_region(s, &region, &from, &err), FZ_OK);
    assert_string_equal(region, "us-west-2");
    aws_session_unref(s);
    setenv("AWS_REGION", "evil.example/x", 1);
    assert_int_equal(aws_session_new(NULL, 0, &s, &err), FZ_USER);
    assert_string_equal(err.code, "aws.region");
}

static void settings_are_checked(void **state) {
    (void)state;
    aws_session *s;
    fz_error err = {0};
    setenv("AWS_USE_FIPS_ENDPOINT", "yes", 1);
    assert_int_equal(aws_session_new(NULL, 0, &s, &err), FZ_USER);
    assert_string_equal(err.message, "AWS_USE_FIPS_ENDPOINT: 'yes' is neither true nor false");
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    setenv("AWS_MAX_ATTEMPTS", "0", 1);
    assert_int_equal(aws_session_new(NULL, 0, &s, &err), FZ_USER);
    unsetenv("AWS_MAX_ATTEMPTS");
    home_file(".aws/config", "[default]\nmax_attempts = 7\nca_bundle = /x/ca.pem\nuse_dualstack_endpoint = TRUE\n");
    fz_pair o[] = {{"http-client.proxy-endpoint", "http://proxy:3128", 0, 0}, {"http-client.apache.connection-timeout-ms", "1500", 0, 0},
                   {"http-client.urlconnection.socket-timeout-ms", "9", 0, 0}};
    s = session_with(o, 3);
    assert_int_equal(aws_session_max_attempts(s), 7);
    assert_string_equal(aws_session_tls(s)->ca_file, "/x/ca.pem");
    assert_true(aws_session_dualstack(s));
    assert_false(aws_session_fips(s));
    assert_string_equal(aws_session_proxy(s), "http://proxy:3128");
    assert_int_equal(aws_session_connect_timeout_ms(s), 1500);
    assert_int_equal(aws_session_stall_timeout_ms(s), 0);
    aws_session_unref(s);
    fz_pair refused[] = {{"client.role-arn", "x", 3, 5}};
    assert_int_equal(aws_session_new(refused, 1, &s, &err), FZ_USER);
    assert_string_equal(err.message, "option 'client.role-arn' is not supported");
    assert_int_equal(err.line, 3);
}

static void each_option_has_its_place(void **state) {
    (void)state;
    for (const fz_option *o = aws_options(); o->name; o++) {
        if (o->state == FZ_OPT_USED) assert_true(strlen(o->doc) > 10);
        else assert_true(strlen(o->why) > 10);
        assert_ptr_equal(fz_option_find(aws_options(), o->name), o);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, home_up, home_down)
int main(void) {
    const struct CMUnitTest tests[] = {T(derived), T(configured_in_order), T(a_configured_endpoint_needs_no_region), T(bad_endpoints), T(region_order),
                                       T(settings_are_checked), T(each_option_has_its_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
