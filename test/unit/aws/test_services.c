/* Credential services beside STS: container, instance metadata, credential_process, SSO. Each is a fake that records what came. */
#include "aws/aws_home.h"
#include "http_fake.h"
#include <openssl/evp.h>

#define JSON(key, expires) "{\"AccessKeyId\":\"" key "\",\"SecretAccessKey\":\"topsecret\",\"Token\":\"toptoken\",\"Expiration\":\"" expires "\"}"
#define LATER "2099-01-01T00:00:00Z"
static const int64_t T0 = 1893456000000; /* 2030-01-01T00:00:00Z */
static void at(int64_t ms) { fz_clock_fix((T0 + ms) * 1000); }

static void no_sleep(int64_t ms) { (void)ms; }
static http_fake *fake;
static fz_arena *a;

static int up(void **state) {
    home_up(state);
    aws_sleep = no_sleep;
    a = fz_arena_new();
    return 0;
}
static int down(void **state) {
    if (fake) http_fake_stop(fake);
    fake = NULL;
    fz_arena_free(a);
    aws_process_timeout_ms = 60000;
    return home_down(state);
}
static const char *answers(const http_reply *r, size_t n) {
    if (fake) http_fake_stop(fake);
    fake = http_fake_start(r, n);
    return http_fake_url(fake);
}
static void header_is(size_t i, const char *name, const char *want) {
    char v[256];
    bool there = http_fake_header(http_fake_seen(fake, i), name, v, sizeof v);
    if (!want) assert_false(there);
    else {
        assert_true(there);
        assert_string_equal(v, want);
    }
}

static void refused(aws_session *s, fz_status cls, const char *code, const char *message) {
    aws_credentials c;
    fz_error err = {0};
    char text[2048];
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), cls);
    assert_string_equal(err.code, code);
    fz_error_text(&err, text, sizeof text);
    if (!strstr(text, message)) fail_msg("'%s' instead of '%s'", text, message);
    static const char *const secrets[] = {"topsecret", "toptoken", "agenttoken", "ssotoken", "refreshsecret"};
    for (size_t i = 0; i < 5; i++) assert_null(strstr(text, secrets[i]));
}
static void refused_now(fz_status cls, const char *code, const char *message) {
    aws_session *s = session();
    refused(s, cls, code, message);
    aws_session_unref(s);
}

/* --- container --- */

static void container(void **state) {
    (void)state;
    answers((http_reply[]){{.body = JSON("ASIA1", "2030-01-01T00:00:05Z")}, {.body = JSON("ASIA2", "2030-01-01T00:00:10Z")}}, 2);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fz_arena_printf(a, "%s/v2/creds?id=1", http_fake_url(fake)), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "unused", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home_file("token", "agenttoken1\n"), 1);
    setenv("http_proxy", "http://127.0.0.1:9", 1); /* never through a proxy */
    aws_session *s = session();
    aws_credentials c;
    at(0);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA1");
    assert_string_equal(c.token, "toptoken");
    assert_string_equal(c.source, "container credentials");
    assert_int_equal(c.expires_ms, T0 + 5000);
    assert_string_equal(http_fake_seen(fake, 0)->target, "/v2/creds?id=1");
    header_is(0, "Authorization", "agenttoken1");
    home_file("token", "agenttoken2");
    at(4400);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA1");
    at(4600);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA2");
    header_is(1, "Authorization", "agenttoken2");
    aws_session_unref(s);
    unsetenv("http_proxy");
}

static void container_is_down_for_a_while(void **state) {
    (void)state;
    answers((http_reply[]){{.body = JSON("ASIA1", "2030-01-01T00:00:05Z")}, {.status = 500}, {.status = 500}, {.status = 503}, {.status = 429}, {.status = 500}, {.status = 500},
                           {.body = JSON("ASIA2", LATER)}}, 8);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", http_fake_url(fake), 1);
    aws_session *s = session();
    aws_credentials c;
    at(0);
    get(s, a, &c);
    at(4600);
    get(s, a, &c); /* three attempts fail; the old ones are still good */
    assert_string_equal(c.access_key, "ASIA1");
    assert_int_equal(http_fake_count(fake), 4);
    at(35000);
    refused(s, FZ_RETRY, "aws.credentials-unavailable", "container credentials endpoint answers with status 500");
    at(36000);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA2");
    aws_session_unref(s);
}

static void container_hosts(void **state) {
    (void)state;
    static const struct { const char *uri; bool allowed; } hosts[] = {
        {"http://127.0.0.1:1/x", true},   {"http://127.9.9.9/x", true},        {"http://[::1]:1/x", true},         {"http://localhost:1/x", true}, {"http://169.254.170.2/x", true},
        {"http://169.254.170.23/v1", true}, {"http://[fd00:ec2::23]/v1", true}, {"https://10.0.0.1/x", true},       {"http://10.0.0.1/x", false},   {"http://169.254.169.254/x", false},
        {"http://[fd00:ec2::254]/x", false}, {"http://128.0.0.1/", false},      {"http://no-such-host.invalid/", false}, {"ftp://127.0.0.1/", false}, {"127.0.0.1/x", false}};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        const char *url;
        fz_error err = {0};
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", hosts[i].uri, 1);
        fz_status rc = aws_container_url(a, &url, &err);
        if ((rc == FZ_OK) != hosts[i].allowed) fail_msg("%s: %s", hosts[i].uri, rc == FZ_OK ? "allowed" : err.message);
    }
    const char *url;
    fz_error err = {0};
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/uuid", 1);
    assert_int_equal(aws_container_url(a, &url, &err), FZ_OK);
    assert_string_equal(url, "http://169.254.170.2/v2/credentials/uuid");
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil/x", 1);
    assert_int_equal(aws_container_url(a, &url, &err), FZ_USER);
}

static void container_that_is_wrong(void **state) {
    (void)state;
    static const struct { http_reply r; const char *message; } bad[] = {
        {{.status = 403, .body = "{\"code\":\"AccessDenied\",\"message\":\"no such task\"}"}, "container credentials endpoint: status 403 AccessDenied: no such task"},
        {{.status = 404, .body = "topsecret"}, "status 404 : no message"},
        {{.body = "<html>topsecret"}, "gave something that is not JSON"},
        {{.body = "[1]"}, "gave something that is not JSON"},
        {{.body = "{\"AccessKeyId\":\"A\",\"Token\":\"toptoken\"}"}, "gave no SecretAccessKey"},
        {{.body = "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"topsecret\",\"Expiration\":\"tomorrow\"}"}, "container credentials endpoint: Expiration is no time"},
        {{.body = "{\"AccessKeyId\":\"A\\nB: c\",\"SecretAccessKey\":\"topsecret\"}"}, "characters that none may have"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", answers(&bad[i].r, 1), 1);
        refused_now(FZ_USER, "aws.credentials", bad[i].message);
    }
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "agenttoken\r\nX: y", 1);
    refused_now(FZ_USER, "aws.credentials", "the container's authorization token has line feeds");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nonexistent", 1);
    refused_now(FZ_USER, "aws.credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE /nonexistent: No such file or directory");
}

/* --- instance metadata --- */

static void imds_at(const char *url) {
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
}
#define IMDS_OK(key, expires) {.body = "IMDSTOKEN=="}, {.body = "my role\n"}, {.body = "{\"Code\":\"Success\",\"LastUpdated\":\"x\"," /* one object */ "\"AccessKeyId\":\"" key "\",\"SecretAccessKey\":\"topsecret\",\"Token\":\"toptoken\",\"Expiration\":\"" expires "\"}"}

static void imds(void **state) {
    (void)state;
    imds_at(answers((http_reply[]){IMDS_OK("ASIA1", LATER)}, 3));
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA1");
    assert_string_equal(c.source, "IMDSv2, role my role");
    assert_string_equal(http_fake_seen(fake, 0)->method, "PUT");
    assert_string_equal(http_fake_seen(fake, 0)->target, "/latest/api/token");
    header_is(0, "x-aws-ec2-metadata-token-ttl-seconds", "21600");
    assert_string_equal(http_fake_seen(fake, 1)->target, "/latest/meta-data/iam/security-credentials/");
    header_is(1, "x-aws-ec2-metadata-token", "IMDSTOKEN==");
    header_is(1, "x-aws-ec2-metadata-token-ttl-seconds", NULL);
    assert_string_equal(http_fake_seen(fake, 2)->target, "/latest/meta-data/iam/security-credentials/my%20role");
    aws_session_unref(s);
}

static void imds_that_has_nothing(void **state) {
    (void)state;
    imds_at(answers((http_reply[]){{.status = 403}}, 1));
    refused_now(FZ_USER, "aws.no-credentials", "; IMDS: no token (status 403 to PUT /latest/api/token)");
    assert_int_equal(http_fake_count(fake), 1); /* and version 1 is not asked */
    imds_at(answers((http_reply[]){{.body = "T"}, {.status = 404}}, 2));
    refused_now(FZ_USER, "aws.no-credentials", "; IMDS: the instance has no role");
    imds_at(answers((http_reply[]){{.body = "T"}, {.body = "r"}, {.body = "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}"}}, 3));
    refused_now(FZ_USER, "aws.credentials", "role r: AssumeRoleUnauthorizedAccess");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv5", 1);
    refused_now(FZ_USER, "aws.setting", "neither IPv4 nor IPv6");
}

static void imds_that_is_silent(void **state) {
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* takes connections and says nothing */
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof addr;
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, n) | listen(fd, 8) | getsockname(fd, (struct sockaddr *)&addr, &n), 0);
    imds_at(fz_arena_printf(a, "http://127.0.0.1:%d", ntohs(addr.sin_port)));
    refused_now(FZ_USER, "aws.no-credentials", "; IMDS: no answer within 1 s");
    refused_now(FZ_USER, "aws.no-credentials", "the hop limit of its metadata service must be 2");
    const char *region;
    fz_error err = {0};
    aws_session *s = session();
    assert_int_equal(aws_session_region(s, &region, NULL, &err), FZ_USER);
    assert_string_equal(err.code, "aws.no-region");
    aws_session_unref(s);
    close(fd);
}

static void imds_out_of_order(void **state) {
    (void)state;
    imds_at(answers((http_reply[]){IMDS_OK("ASIA1", "2030-01-01T01:00:00Z"), {.status = 500}, {.status = 500}, IMDS_OK("ASIA2", "2029-01-01T00:00:00Z"), IMDS_OK("ASIA3", "2030-01-01T09:00:00Z")}, 11));
    aws_session *s = session();
    aws_credentials c;
    at(0);
    get(s, a, &c);
    assert_int_equal(c.expires_ms, T0 + 3600000);
    at(3600001); /* expired, and the service fails: the old ones live on for ten minutes */
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA1");
    assert_int_equal(c.expires_ms, T0 + 3600001 + 600000);
    at(3600001 + 600000);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA1");
    at(3600001 + 1200000); /* it gives some that have expired long ago: taken, as the SDKs do */
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA2");
    assert_int_equal(c.expires_ms, T0 + 3600001 + 1800000);
    at(3600001 + 1800000);
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIA3");
    aws_session_unref(s);
}

static void imds_region(void **state) {
    (void)state;
    imds_at(answers((http_reply[]){{.body = "T"}, {.body = "eu-north-1"}, {.body = "T"}, {.body = "Not A Region"}}, 4));
    const char *region, *from, *url;
    fz_error err = {0};
    aws_session *s = session();
    assert_int_equal(aws_session_region(s, &region, &from, &err), FZ_OK);
    assert_string_equal(region, "eu-north-1");
    assert_string_equal(from, "instance metadata");
    assert_int_equal(aws_endpoint(s, "s3", NULL, a, &url, NULL, &err), FZ_OK);
    assert_string_equal(url, "https://s3.eu-north-1.amazonaws.com");
    assert_int_equal(http_fake_count(fake), 2); /* asked once */
    aws_session_unref(s);
    s = session();
    assert_int_equal(aws_session_region(s, &region, NULL, &err), FZ_USER);
    assert_string_equal(err.code, "aws.region");
    aws_session_unref(s);
}

/* --- credential_process --- */

static void process_is(const char *command) {
    home_file(".aws/config", fz_arena_printf(a, "[default]\ncredential_process = %s\n", command));
}
#define PROCESS_JSON "{\"Version\":1,\"AccessKeyId\":\"AKIAPROC\",\"SecretAccessKey\":\"topsecret\",\"SessionToken\":\"toptoken\",\"AccountId\":\"12\"}"

static void process(void **state) {
    (void)state;
    const char *script = fz_arena_strdup(a, home_file("my tool.sh", "#!/bin/sh\nfor x in \"$@\"; do printf '<%s>' \"$x\"; done > \"$HOME/args\"\necho noise >&2\nread line && exit 9\necho '" PROCESS_JSON "'\n"));
    chmod(script, 0700);
    process_is(fz_arena_printf(a, "\"%s\" a 'b c' \"d \\\" $x\" e\\ f '' ';' # not a comment", script));
    setenv("x", "expanded", 1);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "AKIAPROC");
    assert_string_equal(c.token, "toptoken");
    assert_string_equal(c.account, "12");
    assert_string_equal(c.source, "credential_process of profile 'default'");
    aws_session_unref(s);
    fz_buf args = {0};
    assert_int_equal(aws_file_read(fz_arena_printf(a, "%s/args", home_dir), 1000, &args), 0);
    assert_string_equal(fz_buf_cstr(&args), "<a><b c><d \" expanded><e f><><;>"); /* "$x" needs the shell, which takes # for a comment */
    args.len = 0;
    process_is(fz_arena_printf(a, "'%s' '$x' \"a'b\" c\\\\d", script));
    s = session();
    get(s, a, &c);
    aws_session_unref(s);
    assert_int_equal(aws_file_read(fz_arena_printf(a, "%s/args", home_dir), 1000, &args), 0);
    assert_string_equal(fz_buf_cstr(&args), "<$x><a'b><c\\d>");
    fz_buf_free(&args);
    process_is("cat $HOME/none 2>/dev/null; printf '%s' '" PROCESS_JSON "' | cat");
    s = session();
    get(s, a, &c);
    aws_session_unref(s);
}

static void process_that_is_wrong(void **state) {
    (void)state;
    static const struct { const char *command, *message; } bad[] = {
        {"/nonexistent/tool x", "credential_process of profile 'default': /nonexistent/tool: No such file or directory"},
        {"sh -c 'echo topsecret; echo one >&2; echo last words >&2; exit 3'", "failed with exit code 3 (it says: last words)"},
        {"sh -c 'kill -9 $$'", "was killed by signal 9"},
        {"echo topsecret", "gave something that is not JSON"},
        {"echo '{\"Version\":2}'", "gave no \"Version\": 1"},
        {"echo '{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"topsecret\"}'", "gave no \"Version\": 1"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"A\"}'", "gave no SecretAccessKey"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"topsecret\",\"Expiration\":\"2001-01-01T00:00:00Z\"}'", "gave credentials that have expired"},
        {"sh -c 'echo \"unfinished", "the command's quotes do not end"},
        {"head -c 400000 /dev/zero", "wrote more than 262144 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        process_is(bad[i].command);
        refused_now(FZ_USER, "aws.credentials", bad[i].message);
    }
    aws_process_timeout_ms = 200;
    process_is("sh -c 'echo topsecret; sleep 600 & echo $! > \"$HOME/child\"; sleep 600'");
    refused_now(FZ_RETRY, "aws.credentials-unavailable", "did not end within 0 s");
    fz_buf b = {0}; /* its child has gone, too (or is a zombie of whoever takes over orphans) */
    assert_int_equal(aws_file_read(fz_arena_printf(a, "%s/child", home_dir), 100, &b), 0);
    const char *stat_path = fz_arena_printf(a, "/proc/%d/stat", atoi(fz_buf_cstr(&b)));
    bool gone = false;
    for (int i = 0; i < 500 && !gone; i++) {
        fz_buf_free(&b);
        FILE *f = fopen(stat_path, "r");
        char text[256] = "";
        gone = !f || !fgets(text, sizeof text, f) || strstr(text, ") Z ");
        if (f) fclose(f);
        if (!gone) fz_sleep_ms(10);
    }
    assert_true(gone);
}

/* --- SSO --- */

static const char *cache_of(const char *name) {
    uint8_t sha[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_Digest(name, strlen(name), sha, &n, EVP_sha1(), NULL);
    char hex[41];
    aws_hex(sha, 20, hex);
    return fz_arena_printf(a, ".aws/sso/cache/%s.json", hex);
}
#define SESSION "[default]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = My Role\n[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp/start\n"
#define LEGACY "[default]\nsso_start_url = https://corp/start\nsso_region = eu-west-1\nsso_account_id = 123456789012\nsso_role_name = R\n"
#define ROLE "{\"roleCredentials\":{\"accessKeyId\":\"ASIASSO\",\"secretAccessKey\":\"topsecret\",\"sessionToken\":\"toptoken\",\"expiration\":1893459600000}}"

static void sso_login(void **state) {
    (void)state;
    at(0);
    setenv("AWS_ENDPOINT_URL_SSO", answers((http_reply[]){{.body = ROLE}}, 1), 1);
    home_file(".aws/config", SESSION);
    home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\",\"expiresAt\":\"2030-01-01T08:00:00Z\",\"region\":\"eu-west-1\"}");
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIASSO");
    assert_string_equal(c.account, "123456789012");
    assert_string_equal(c.source, "SSO role My Role of profile 'default'");
    assert_int_equal(c.expires_ms, T0 + 3600000);
    assert_string_equal(http_fake_seen(fake, 0)->target, "/federation/credentials?role_name=My%20Role&account_id=123456789012");
    header_is(0, "x-amz-sso_bearer_token", "ssotoken");
    aws_session_unref(s);
    home_file(".aws/config", LEGACY);
    home_file(cache_of("https://corp/start"), "{\"accessToken\":\"ssotoken2\",\"expiresAt\":\"2030-01-01T08:00:00UTC\"}");
    s = session();
    get(s, a, &c);
    header_is(1, "x-amz-sso_bearer_token", "ssotoken2");
    aws_session_unref(s);
}

static void sso_renewal(void **state) {
    (void)state;
    at(0);
    const char *url = answers((http_reply[]){{.body = "{\"accessToken\":\"ssotoken-new\",\"expiresIn\":28800,\"refreshToken\":\"refreshsecret-new\",\"tokenType\":\"Bearer\"}"}, {.body = ROLE}}, 2);
    setenv("AWS_ENDPOINT_URL_SSO", url, 1);
    setenv("AWS_ENDPOINT_URL_SSO_OIDC", url, 1);
    home_file(".aws/config", SESSION);
    const char *cache = fz_arena_strdup(a, home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\",\"expiresAt\":\"2029-12-31T23:59:59Z\",\"clientId\":\"id\",\"clientSecret\":\"refreshsecret-client\","
                                                                      "\"registrationExpiresAt\":\"2030-02-01T00:00:00Z\",\"refreshToken\":\"refreshsecret-old\",\"startUrl\":\"https://corp/start\"}"));
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIASSO");
    assert_string_equal(http_fake_seen(fake, 0)->target, "/token");
    assert_string_equal(http_fake_seen(fake, 0)->body, "{\"clientId\":\"id\",\"clientSecret\":\"refreshsecret-client\",\"grantType\":\"refresh_token\",\"refreshToken\":\"refreshsecret-old\"}");
    header_is(1, "x-amz-sso_bearer_token", "ssotoken-new");
    json_t *o = json_load_file(cache, 0, NULL); /* written back for the other tools */
    assert_string_equal(json_string_value(json_object_get(o, "accessToken")), "ssotoken-new");
    assert_string_equal(json_string_value(json_object_get(o, "refreshToken")), "refreshsecret-new");
    assert_string_equal(json_string_value(json_object_get(o, "expiresAt")), "2030-01-01T08:00:00Z");
    assert_string_equal(json_string_value(json_object_get(o, "startUrl")), "https://corp/start");
    json_decref(o);
    struct stat st;
    assert_int_equal(stat(cache, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    aws_session_unref(s);
}

static void sso_that_is_wrong(void **state) {
    (void)state;
    at(0);
    const char *url = answers((http_reply[]){{.status = 401, .body = "{\"message\":\"Session token not found or invalid\"}"}, {.status = 403, .body = "{\"message\":\"No access\"}"},
                                             {.status = 400, .body = "{\"error\":\"invalid_grant\",\"error_description\":\"x\"}"}}, 3);
    setenv("AWS_ENDPOINT_URL_SSO", url, 1);
    setenv("AWS_ENDPOINT_URL_SSO_OIDC", url, 1);
    home_file(".aws/config", SESSION);
    refused_now(FZ_USER, "aws.credentials", "SSO: there is no login (no ");
    refused_now(FZ_USER, "aws.credentials", "Hint: run: aws sso login --sso-session corp");
    home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\",\"expiresAt\":\"2029-12-31T00:00:00Z\"}");
    refused_now(FZ_USER, "aws.credentials", "SSO: the login has expired");
    home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\"");
    refused_now(FZ_USER, "aws.credentials", "is damaged");
    assert_int_equal(http_fake_count(fake), 0);
    home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\",\"expiresAt\":\"2030-01-02T00:00:00Z\"}");
    refused_now(FZ_USER, "aws.credentials", "SSO: the login is no longer accepted");
    refused_now(FZ_USER, "aws.credentials", "role My Role in account 123456789012: status 403: No access");
    home_file(cache_of("corp"), "{\"accessToken\":\"ssotoken\",\"expiresAt\":\"2029-01-02T00:00:00Z\",\"clientId\":\"i\",\"clientSecret\":\"refreshsecret\",\"refreshToken\":\"refreshsecret\"}");
    refused_now(FZ_USER, "aws.credentials", "the login has expired, and cannot be renewed: status 400 invalid_grant");
    home_file(".aws/config", "[default]\nsso_session = gone\nsso_account_id = 1\nsso_role_name = R\n");
    refused_now(FZ_USER, "aws.credentials", "its sso_session has no section");
    home_file(".aws/config", "[default]\nsso_start_url = x\nsso_account_id = 1\nsso_role_name = R\n");
    refused_now(FZ_USER, "aws.credentials", "sso_region is missing");
    home_file(".aws/config", "[default]\nsso_region = us-east-1\nsso_session = c\nsso_account_id = 1\nsso_role_name = R\n[sso-session c]\nsso_region = eu-west-1\nsso_start_url = x\n");
    refused_now(FZ_USER, "aws.credentials", "sso_region is another than its sso_session's");
    home_file(".aws/config", LEGACY);
    refused_now(FZ_USER, "aws.credentials", "Hint: run: aws sso login --profile default");
}

#define T(f) cmocka_unit_test_setup_teardown(f, up, down)
int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {T(container), T(container_is_down_for_a_while), T(container_hosts), T(container_that_is_wrong), T(imds), T(imds_that_has_nothing),
                                       T(imds_that_is_silent), T(imds_out_of_order), T(imds_region), T(process), T(process_that_is_wrong), T(sso_login), T(sso_renewal), T(sso_that_is_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
