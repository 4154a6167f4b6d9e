/* Roles: web identity, profiles with role_arn, client.assume-role.*; STS is a fake that records what came. */
#include "aws/aws_home.h"
#include "http_fake.h"

#define ANSWER(key, token, expires)                                                                                                          \
    "<AssumeRoleResponse><AssumeRoleResult><AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/R/s</Arn></AssumedRoleUser><Credentials>" \
    "<AccessKeyId>" key "</AccessKeyId><SecretAccessKey>rolesecret/+=</SecretAccessKey><SessionToken>" token "</SessionToken>"               \
    "<Expiration>" expires "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
#define LATER "2099-01-01T00:00:00Z"
#define REFUSAL(code, message) "<ErrorResponse><Error><Type>Sender</Type><Code>" code "</Code><Message>" message "</Message></Error></ErrorResponse>"

static void no_sleep(int64_t ms) { (void)ms; }
static http_fake *sts;
static fz_arena *a;

static int up(void **state) {
    home_up(state);
    aws_sleep = no_sleep;
    a = fz_arena_new();
    setenv("AWS_REGION", "eu-west-1", 1);
    return 0;
}
static int down(void **state) {
    if (sts) http_fake_stop(sts);
    sts = NULL;
    fz_arena_free(a);
    return home_down(state);
}
static void answers(const http_reply *r, size_t n) {
    sts = http_fake_start(r, n);
    setenv("AWS_ENDPOINT_URL_STS", http_fake_url(sts), 1);
}

static void has(size_t i, const char *text) {
    const http_seen *s = http_fake_seen(sts, i);
    if (!strstr(s->body, text) && !strstr(s->head, text)) fail_msg("request %zu has no '%s': %s%s", i, text, s->head, s->body);
}
static void has_not(size_t i, const char *text) {
    const http_seen *s = http_fake_seen(sts, i);
    if (strstr(s->body, text) || strstr(s->head, text)) fail_msg("request %zu has '%s'", i, text);
}

static void refused(aws_session *s, fz_status cls, const char *code, const char *message) {
    aws_credentials c;
    fz_error err = {0};
    char text[2048];
    assert_int_equal(aws_provider_get(aws_session_provider(s), a, &c, &err), cls);
    assert_string_equal(err.code, code);
    fz_error_text(&err, text, sizeof text);
    if (!strstr(text, message)) fail_msg("'%s' instead of '%s'", text, message);
    static const char *const secrets[] = {"srcsecret", "THEJWT", "rolesecret", "roletoken"};
    for (size_t i = 0; i < 4; i++) assert_null(strstr(text, secrets[i]));
}
static void refused_profile(const char *config, fz_status cls, const char *code, const char *message) {
    home_file(".aws/config", config);
    aws_session *s = session();
    refused(s, cls, code, message);
    aws_session_unref(s);
}

static void web_identity(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAWEB", "roletoken", LATER)}}, 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", home_file("token", "THEJWT.1\n"), 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/R", 1);
    setenv("AWS_ROLE_SESSION_NAME", "pod-7", 1);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAWEB");
    assert_string_equal(c.secret_key, "rolesecret/+=");
    assert_string_equal(c.token, "roletoken");
    assert_string_equal(c.account, "123456789012");
    assert_string_equal(c.source, "web identity, role arn:aws:iam::123456789012:role/R");
    assert_int_equal(c.expires_ms, 4070908800000);
    has(0, "POST / HTTP/1.1\r\n");
    assert_string_equal(http_fake_seen(sts, 0)->body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2FR&RoleSessionName=pod-7&WebIdentityToken=THEJWT.1");
    has_not(0, "uthorization");
    home_file("token", "THEJWT.2"); /* the kubelet renews the file */
    aws_provider_expired(aws_session_provider(s), c.generation);
    get(s, a, &c);
    has(1, "WebIdentityToken=THEJWT.2");
    aws_session_unref(s);
}

static void web_identity_that_is_wrong(void **state) {
    (void)state;
    answers((http_reply[]){{.status = 400, .body = REFUSAL("ExpiredTokenException", "Token expired: current &lt;date&gt;")}, {.status = 400, .body = REFUSAL("IDPCommunicationError", "x")},
                           {.status = 200, .body = "<html>THEJWT</html>"}}, 3);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token", 1);
    aws_session *s = session();
    refused(s, FZ_USER, "aws.credentials", "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/R", 1);
    refused(s, FZ_USER, "aws.credentials", "web identity token file /nonexistent/token: No such file or directory");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", home_file("token", " \n"), 1);
    refused(s, FZ_USER, "aws.credentials", "is empty");
    home_file("token", "THEJWT");
    refused(s, FZ_USER, "aws.credentials", "STS refuses AssumeRoleWithWebIdentity for arn:aws:iam::1:role/R: status 400 ExpiredTokenException: Token expired: current <date>");
    refused(s, FZ_RETRY, "aws.credentials-unavailable", "IDPCommunicationError");
    refused(s, FZ_USER, "aws.credentials", "STS answers for arn:aws:iam::1:role/R without credentials");
    aws_session_unref(s);
}

#define SOURCE "[profile src]\naws_access_key_id = AKIASRC\naws_secret_access_key = srcsecret\n"

static void role_of_a_profile(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 1);
    home_file(".aws/config", "[default]\nrole_arn = arn:aws:iam::123456789012:role/R\nsource_profile = src\nexternal_id = e x\nrole_session_name = me\nduration_seconds = 1800\n"
                             "region = sa-east-1\n" SOURCE);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAROLE");
    assert_string_equal(c.source, "role arn:aws:iam::123456789012:role/R of profile 'default'");
    has(0, "Action=AssumeRole&");
    has(0, "&RoleSessionName=me&DurationSeconds=1800&ExternalId=e%20x");
    has(0, "Credential=AKIASRC/");
    has(0, "/sa-east-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=");
    has_not(0, "srcsecret");
    aws_session_unref(s);
}

static void role_over_role(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAMIDDLE", "middletoken", LATER)}, {.body = ANSWER("ASIATOP", "roletoken", LATER)}}, 2);
    home_file(".aws/config", "[default]\nrole_arn = arn:top\nsource_profile = mid\n[profile mid]\nrole_arn = arn:mid\nsource_profile = src\n" SOURCE);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIATOP");
    has(0, "RoleArn=arn%3Amid");
    has(0, "Credential=AKIASRC/");
    has(1, "RoleArn=arn%3Atop");
    has(1, "Credential=ASIAMIDDLE/");
    has(1, "x-amz-security-token: middletoken");
    has(1, "RoleSessionName=frazil-");
    aws_session_unref(s);
}

static void its_own_source(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 1);
    home_file(".aws/config", "[default]\nrole_arn = arn:r\nsource_profile = default\naws_access_key_id = AKIASELF\naws_secret_access_key = srcsecret\n");
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    has(0, "Credential=AKIASELF/");
    aws_session_unref(s);
}

static void credential_source(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 1);
    home_file(".aws/config", "[profile e]\nrole_arn = arn:r\ncredential_source = Environment\n");
    setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "srcsecret", 1);
    fz_pair o[] = {{"client.profile-name", "e", 0, 0}};
    aws_session *s = session_with(o, 1);
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAROLE");
    has(0, "Credential=AKIAENV/");
    aws_session_unref(s);
}

static void profiles_that_are_wrong(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 1);
#define ROLE "[default]\nrole_arn = arn:r\n"
    refused_profile(ROLE, FZ_USER, "aws.credentials", "profile 'default': it has role_arn, but neither source_profile nor credential_source");
    refused_profile(ROLE "source_profile = a\ncredential_source = Environment\n[profile a]\n", FZ_USER, "aws.credentials", "both source_profile and credential_source");
    refused_profile(ROLE "source_profile = default\n", FZ_USER, "aws.credentials", "its source_profile is itself, but it has no keys");
    refused_profile(ROLE "source_profile = gone\n", FZ_USER, "aws.credentials", "its source_profile 'gone' is not in");
    refused_profile(ROLE "source_profile = a\n[profile a]\nregion = x-y\n", FZ_USER, "aws.credentials", "its source_profile 'a' has no credentials");
    refused_profile(ROLE "source_profile = a\n[profile a]\nrole_arn = arn:a\nsource_profile = b\n[profile b]\nrole_arn = arn:b\nsource_profile = default\n", FZ_USER, "aws.credentials",
                    "profile 'default': its chain of source_profile comes back to itself");
    refused_profile(ROLE "source_profile = src\nmfa_serial = arn:aws:iam::1:mfa/me\n" SOURCE, FZ_USER, "aws.credentials", "mfa_serial");
    refused_profile(ROLE "credential_source = Nowhere\n", FZ_USER, "aws.credentials", "credential_source 'Nowhere' is not known");
    refused_profile(ROLE "credential_source = Environment\n", FZ_USER, "aws.credentials", "profile 'default': credential_source Environment: AWS_ACCESS_KEY_ID is not set");
    refused_profile(ROLE "credential_source = EcsContainer\n", FZ_USER, "aws.credentials", "credential_source EcsContainer: no AWS_CONTAINER");
    refused_profile(ROLE "credential_source = Ec2InstanceMetadata\n", FZ_RETRY, "aws.credentials-unavailable", "AWS_EC2_METADATA_DISABLED is true");
    refused_profile(ROLE "source_profile = src\nduration_seconds = 5\n" SOURCE, FZ_USER, "aws.credentials", "duration_seconds is not a number from 900 to 43200");
    refused_profile("[default]\naws_access_key_id = AKIA\naws_secret_access_key = srcsecret with blank\n", FZ_USER, "aws.credentials", "characters that none may have");
    fz_buf b = {0};
    fz_buf_puts(&b, ROLE "source_profile = p0\n");
    for (int i = 0; i < 12; i++) fz_buf_printf(&b, "[profile p%d]\nrole_arn = arn:p\nsource_profile = p%d\n", i, i + 1);
    refused_profile(fz_buf_cstr(&b), FZ_USER, "aws.credentials", "the chain of source_profile is too long");
    fz_buf_free(&b);
    unsetenv("AWS_REGION");
    refused_profile(ROLE "source_profile = src\n" SOURCE, FZ_USER, "aws.no-region", "no region is configured whose STS could be asked for a role");
    assert_int_equal(http_fake_count(sts), 0);
}

static void web_identity_of_a_profile(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAWEB", "roletoken", LATER)}}, 1);
    char config[512];
    snprintf(config, sizeof config, "[default]\nrole_arn = arn:r\nweb_identity_token_file = %s\nrole_session_name = n\n", home_file("jwt", "THEJWT"));
    home_file(".aws/config", config);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAWEB");
    has(0, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Ar&RoleSessionName=n&WebIdentityToken=THEJWT");
    aws_session_unref(s);
}

static void sts_refuses(void **state) {
    (void)state;
    answers((http_reply[]){{.status = 403, .body = REFUSAL("AccessDenied", "User: arn:aws:iam::1:user/u is not authorized")}, {.status = 403, .body = REFUSAL("RegionDisabledException", "m")},
                           {.status = 400, .body = REFUSAL("Throttling", "Rate exceeded")}}, 3);
    home_file(".aws/config", "[default]\nrole_arn = arn:r\nsource_profile = src\n" SOURCE);
    aws_session *s = session();
    refused(s, FZ_USER, "aws.credentials", "STS refuses AssumeRole for arn:r: status 403 AccessDenied: User: arn:aws:iam::1:user/u is not authorized");
    refused(s, FZ_USER, "aws.credentials", "activate STS in region eu-west-1");
    refused(s, FZ_RETRY, "aws.credentials-unavailable", "Throttling");
    aws_session_unref(s);
}

static void sts_out_of_order(void **state) {
    (void)state;
    answers((http_reply[]){{.status = 500}, {.status = 503}, {.status = 429}, {.status = 500}, {.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 5);
    home_file(".aws/config", "[default]\nrole_arn = arn:r\nsource_profile = src\n" SOURCE);
    aws_session *s = session();
    refused(s, FZ_RETRY, "aws.credentials-unavailable", "answers with status 429");
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAROLE");
    aws_session_unref(s);
}

static void our_clock_is_wrong(void **state) {
    (void)state;
    answers((http_reply[]){{.status = 403, .headers = "Date: Sun, 06 Nov 2033 08:49:37 GMT\r\n", .body = REFUSAL("SignatureDoesNotMatch", "Signature expired")},
                           {.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 2);
    home_file(".aws/config", "[default]\nrole_arn = arn:r\nsource_profile = src\n" SOURCE);
    aws_session *s = session();
    aws_credentials c;
    get(s, a, &c);
    has_not(0, "x-amz-date: 20331106T084937Z");
    has(1, "x-amz-date: 20331106T084937Z");
    aws_session_unref(s);
}

/* --- client.assume-role.* --- */

static void role_of_the_options(void **state) {
    (void)state;
    answers((http_reply[]){{.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 1);
    fz_pair o[] = {{"client.factory", "org.apache.iceberg.aws.AssumeRoleAwsClientFactory", 0, 0}, {"client.assume-role.arn", "arn:aws:iam::1:role/R", 0, 0},
                   {"client.assume-role.region", "us-west-2", 0, 0}, {"client.assume-role.external-id", "ext", 0, 0}, {"client.assume-role.session-name", "job", 0, 0},
                   {"client.assume-role.timeout-sec", "900", 0, 0}, {"client.assume-role.tags.team", "a b", 0, 0}, {"client.access-key-id", "AKIAOPT", 0, 0},
                   {"client.secret-access-key", "srcsecret", 0, 0}};
    aws_session *s = session_with(o, 9);
    aws_credentials c;
    get(s, a, &c);
    assert_string_equal(c.access_key, "ASIAROLE");
    assert_string_equal(c.source, "role arn:aws:iam::1:role/R, assumed by options client.access-key-id");
    has(0, "Credential=AKIAOPT/");
    has(0, "/eu-west-1/sts/"); /* STS has the standard region, the other clients the role's */
    has(0, "&RoleSessionName=job&DurationSeconds=900&ExternalId=ext&Tags.member.1.Key=team&Tags.member.1.Value=a%20b");
    const char *region;
    assert_int_equal(aws_session_region(s, &region, NULL, NULL), FZ_OK);
    assert_string_equal(region, "us-west-2");
    aws_session_unref(s);
}

static void renew_the_file(void *cx, const http_seen *rq, size_t index, http_reply *out) {
    (void)cx, (void)rq, (void)out;
    if (index == 0) home_file(".aws/credentials", "[p]\naws_access_key_id = AKIANEW\naws_secret_access_key = srcsecret\naws_session_token = t\n");
}

static void the_base_has_expired(void **state) {
    (void)state;
    answers((http_reply[]){{.status = 403, .body = REFUSAL("ExpiredToken", "The security token included in the request is expired")}, {.body = ANSWER("ASIAROLE", "roletoken", LATER)}}, 2);
    http_fake_handle(sts, renew_the_file, NULL);
    setenv("AWS_PROFILE", "p", 1);
    home_file(".aws/credentials", "[p]\naws_access_key_id = AKIAOLD\naws_secret_access_key = srcsecret\naws_session_token = t\n");
    fz_pair o[] = {{"client.assume-role.arn", "arn:r", 0, 0}};
    aws_session *s = session_with(o, 1);
    aws_credentials c;
    get(s, a, &c);
    has(0, "Credential=AKIAOLD/");
    has(1, "Credential=AKIANEW/");
    assert_string_equal(c.access_key, "ASIAROLE");
    aws_session_unref(s);
}

static void not_made(const fz_pair *o, size_t n, const char *code, const char *message) {
    aws_session *s = NULL;
    fz_error err = {0};
    assert_int_equal(aws_session_new(o, n, &s, &err), FZ_USER);
    assert_null(s);
    assert_string_equal(err.code, code);
    if (!strstr(err.message, message)) fail_msg("%s", err.message);
}

static void options_that_are_wrong(void **state) {
    (void)state;
#define O(k, v) {k, v, 0, 0}
    not_made((fz_pair[]){O("client.factory", "org.apache.iceberg.aws.AssumeRoleAwsClientFactory")}, 1, "option.missing", "needs client.assume-role.arn and client.assume-role.region");
    not_made((fz_pair[]){O("client.factory", "org.apache.iceberg.aws.lakeformation.LakeFormationAwsClientFactory")}, 1, "option.refused", "client.factory");
    not_made((fz_pair[]){O("client.factory", "com.example.Mine")}, 1, "option.refused", "com.example.Mine");
    not_made((fz_pair[]){O("client.assume-role.arn", "arn:r"), O("client.assume-role.timeout-sec", "10")}, 2, "option.invalid", "timeout-sec");
    not_made((fz_pair[]){O("client.assume-role.timeout-sec", "1 h")}, 1, "option.invalid", "timeout-sec");
    not_made((fz_pair[]){O("client.credentials-provider", "com.example.Mine")}, 1, "aws.credentials-provider", "com.example.Mine");
    not_made((fz_pair[]){O("client.credentials-provider", "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider")}, 1, "aws.credentials-provider", "SystemProperty");
    aws_session_unref(session_with((fz_pair[]){O("client.factory", "org.apache.iceberg.aws.AwsClientFactories$DefaultAwsClientFactory")}, 1));
    aws_session *s = session_with((fz_pair[]){O("client.access-key-id", "A")}, 1);
    refused(s, FZ_USER, "aws.credentials", "client.access-key-id and client.secret-access-key must be given together");
    aws_session_unref(s);
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    s = session();
    refused(s, FZ_USER, "aws.credentials", "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
    aws_session_unref(s);
}

static void one_link_by_javas_name(void **state) {
    (void)state;
    setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "srcsecret", 1);
    home_file(".aws/credentials", "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = srcsecret\n");
    static const char *const names[][2] = {{"DefaultCredentialsProvider", "AKIAENV"}, {"EnvironmentVariableCredentialsProvider", "AKIAENV"}, {"ProfileCredentialsProvider", "AKIAFILE"}};
    for (size_t i = 0; i < 3; i++) {
        aws_session *s = session_with((fz_pair[]){O("client.credentials-provider", fz_arena_printf(a, "software.amazon.awssdk.auth.credentials.%s", names[i][0]))}, 1);
        aws_credentials c;
        get(s, a, &c);
        assert_string_equal(c.access_key, names[i][1]);
        aws_session_unref(s);
    }
    aws_session *s = session_with((fz_pair[]){O("client.credentials-provider", "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider")}, 1);
    refused(s, FZ_USER, "aws.no-credentials", "no AWS credentials were found (container: no AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI is set)");
    aws_session_unref(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, up, down)
int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {T(web_identity), T(web_identity_that_is_wrong), T(role_of_a_profile), T(role_over_role), T(its_own_source), T(credential_source),
                                       T(profiles_that_are_wrong), T(web_identity_of_a_profile), T(sts_refuses), T(sts_out_of_order), T(our_clock_is_wrong), T(role_of_the_options),
                                       T(the_base_has_expired), T(options_that_are_wrong), T(one_link_by_javas_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
