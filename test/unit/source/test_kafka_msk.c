/* Logins to MSK with IAM: what scripts write, whose credentials, which region, and the bytes that reach a broker. */
#include "unit.h"
#include "source/kafka_int.h"
#include "aws/aws.h"
#include "http_fake.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define P(k, v) {"properties." k, v, 0, 0}
#define IAM_LOGIN "software.amazon.msk.auth.iam.IAMLoginModule required"
#define BEARER_LOGIN "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
#define IAM_HANDLER "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
#define BEARER_HANDLER "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"

static int up(void **state) {
    (void)state;
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    return 0;
}
static int down(void **state) {
    (void)state;
    fz_clock_fix(0);
    return 0;
}

typedef struct seen { char text[4096]; } seen;
static fz_status note(void *opaque, const char *key, const char *value, fz_error *err) {
    seen *s = opaque;
    (void)err;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s=%s|", key, value);
    return FZ_OK;
}
static fz_status map(const fz_pair *o, size_t n, seen *s, fz_error *err) {
    *s = (seen){0};
    return kafka_conf_map(o, n, note, s, err);
}
#define N(o) (sizeof(o) / sizeof *(o))

static void as_java_scripts_write_it(void **state) {
    (void)state;
    seen s;
    fz_error err = {0};
    fz_pair iam[] = {P("bootstrap.servers", "a:1"), P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", IAM_LOGIN ";"),
                     P("sasl.client.callback.handler.class", IAM_HANDLER)};
    assert_int_equal(map(iam, N(iam), &s, &err), FZ_OK);
    assert_string_equal(s.text, "bootstrap.servers=a:1|security.protocol=sasl_ssl|sasl.mechanism=OAUTHBEARER|");
    fz_pair shaded[] = {P("bootstrap.servers", "a:1"), P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "AWS_MSK_IAM"),
                        P("sasl.jaas.config", "shaded." IAM_LOGIN " awsProfileName=\"x\" awsDebugCreds=true awsMaxRetries=\"3\";"), P("sasl.client.callback.handler.class", "shaded." IAM_HANDLER)};
    assert_int_equal(map(shaded, N(shaded), &s, &err), FZ_OK);
    fz_pair bearer[] = {P("bootstrap.servers", "a:1"), P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "OAUTHBEARER"),
                        P("sasl.jaas.config", BEARER_LOGIN " awsRoleArn='arn:r' awsRoleSessionName=n awsStsRegion=eu-west-1;"), P("sasl.login.callback.handler.class", BEARER_HANDLER)};
    assert_int_equal(map(bearer, N(bearer), &s, &err), FZ_OK);
    assert_non_null(strstr(s.text, "sasl.mechanism=OAUTHBEARER|"));
    assert_null(strstr(s.text, "arn:r"));
}

static void refused(const char *mechanism, const char *jaas, const char *key, const char *handler, const char *code, const char *words) {
    seen s;
    fz_error err = {0};
    char text[2048];
    fz_pair o[] = {P("bootstrap.servers", "a:1"), P("security.protocol", "SASL_SSL"), P("sasl.mechanism", mechanism), {key, handler, 0, 0}, P("sasl.jaas.config", jaas)};
    assert_int_equal(map(o, jaas ? 5 : 4, &s, &err), FZ_USER);
    assert_string_equal(err.code, code);
    fz_error_text(&err, text, sizeof text);
    if (!strstr(text, words)) fail_msg("'%s' instead of '%s'", text, words);
    assert_null(strstr(text, "tell-nobody"));
}

static void what_is_wrong_is_told(void **state) {
    (void)state;
#define CLIENT "properties.sasl.client.callback.handler.class"
#define LOGIN "properties.sasl.login.callback.handler.class"
    refused("AWS_MSK_IAM", NULL, CLIENT, IAM_HANDLER, "option.missing", "software.amazon.msk.auth.iam.IAMLoginModule required;");
    refused("AWS_MSK_IAM", BEARER_LOGIN ";", CLIENT, IAM_HANDLER, "kafka.jaas", "IAMLoginModule required;");
    refused("OAUTHBEARER", IAM_LOGIN ";", LOGIN, BEARER_HANDLER, "kafka.jaas", "OAuthBearerLoginModule required;");
    refused("AWS_MSK_IAM", IAM_LOGIN, CLIENT, IAM_HANDLER, "kafka.jaas", "the semicolon at its end is missing");
    refused("AWS_MSK_IAM", IAM_LOGIN " awsProfile=\"tell-nobody\";", CLIENT, IAM_HANDLER, "kafka.jaas", "does not know");
    refused("AWS_MSK_IAM", IAM_LOGIN " username=u password=\"tell-nobody\";", CLIENT, IAM_HANDLER, "kafka.jaas", "has no username and password");
    refused("AWS_MSK_IAM", IAM_LOGIN ";", CLIENT, "com.example.Mine", "option.refused", "com.example.Mine");
    refused("OAUTHBEARER", BEARER_LOGIN ";", LOGIN, "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler", "option.refused", "cannot run here");
    refused("OAUTHBEARER", BEARER_LOGIN ";", CLIENT, IAM_HANDLER, "kafka.sasl-mechanism", "OAUTHBEARER");
}

static void region_of_the_brokers(void **state) {
    (void)state;
    static const char *const t[][2] = {
        {"b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com:9098,b-2.demo.abc123.c2.kafka.eu-central-1.amazonaws.com:9098", "eu-central-1"},
        {"boot-xyz.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"},
        {"b-1.demo.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"},
        {" localhost:9092 , B-1.X.KAFKA.US-GOV-WEST-1.AMAZONAWS.COM:9198 ", "us-gov-west-1"},
        {"kafka.eu-west-1.amazonaws.com", "eu-west-1"},
        {"localhost:9092", ""}, {"", ""}, {"b-1.kafka.example.com:1", ""}, {"ec2-1-2-3-4.eu-west-1.compute.amazonaws.com:9098", ""}, {"amazonaws.com:1", ""},
        {".amazonaws.com:1", ""}, {"kafka..amazonaws.com:1", ""}, {"b.notkafka.eu-west-1.amazonaws.com:1", ""}, {",,,", ""}};
    for (size_t i = 0; i < N(t); i++) {
        char region[64];
        assert_int_equal(kafka_msk_region(t[i][0], region), t[i][1][0] != 0);
        assert_string_equal(region, t[i][1]);
    }
}

static void credentials_are_asked_for_before_anything_connects(void **state) {
    (void)state;
    fz_pair o[] = {P("bootstrap.servers", "127.0.0.1:1"), P("security.protocol", "SASL_PLAINTEXT"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", IAM_LOGIN ";")};
    kafka_client client = {.table = "t"};
    kafka_limits limits = {0, 1};
    rd_kafka_t *rk = NULL;
    fz_error err = {0};
    assert_int_equal(kafka_client_new(o, N(o), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err), FZ_USER);
    assert_string_equal(err.code, "aws.no-region"); /* these brokers have none in their names */
    setenv("AWS_REGION", "eu-west-1", 1);
    assert_int_equal(kafka_client_new(o, N(o), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err), FZ_USER);
    assert_string_equal(err.code, "aws.no-credentials");
    assert_null(rk);
    fz_pair named[] = {P("bootstrap.servers", "127.0.0.1:1"), P("security.protocol", "SASL_PLAINTEXT"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", IAM_LOGIN " awsProfileName=nobody;")};
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
    assert_int_equal(kafka_client_new(named, N(named), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err), FZ_USER);
    assert_string_equal(err.code, "aws.credentials");
    assert_non_null(strstr(err.message, "profile 'nobody'"));
}

#define ROLE_ANSWER                                                                                                                                              \
    "<AssumeRoleResponse><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>rolesecret</SecretAccessKey><SessionToken>t</SessionToken>"            \
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResponse>"

/* Makes a client with this login, and gives what STS was asked; the client never reaches a broker. */
static void assumes(const char *jaas, const char *servers, const char *const *wanted) {
    http_fake *sts = http_fake_start((http_reply[]){{.body = ROLE_ANSWER}}, 1);
    setenv("AWS_ENDPOINT_URL_STS", http_fake_url(sts), 1);
    fz_pair o[] = {P("bootstrap.servers", servers), P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", jaas)};
    kafka_client client = {.table = "t"};
    kafka_limits limits = {0, 1};
    rd_kafka_t *rk = NULL;
    fz_error err = {0};
    if (kafka_client_new(o, N(o), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err) != FZ_OK) fail_msg("%s (%s)", err.message, err.detail);
    kafka_client_free(&client, rk);
    if (!wanted[0]) assert_int_equal(http_fake_count(sts), 0);
    for (size_t i = 0; wanted[i]; i++) {
        const http_seen *s = http_fake_seen(sts, 0);
        if (!strstr(s->body, wanted[i]) && !strstr(s->head, wanted[i])) fail_msg("no '%s' in %s%s", wanted[i], s->head, s->body);
        assert_null(strstr(s->head, "rolesecret"));
    }
    http_fake_stop(sts);
    unsetenv("AWS_ENDPOINT_URL_STS");
}

static void roles_of_the_login_module(void **state) {
    (void)state;
    static const char here[] = "b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com:9098";
    setenv("AWS_ACCESS_KEY_ID", "AKIAENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "rolesecret", 1);
    assumes(IAM_LOGIN " awsRoleArn=\"arn:aws:iam::1:role/R\";", here,
            (const char *[]){"RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2FR", "RoleSessionName=aws-msk-iam-auth", "Credential=AKIAENV/", "/eu-central-1/sts/", NULL});
    assumes(IAM_LOGIN " awsRoleArn=\"arn:r\" awsRoleSessionName=\"me\" awsRoleExternalId=\"x\" awsStsRegion=\"us-west-2\" awsRoleAccessKeyId=AKIAROLE awsRoleSecretAccessKey=rolesecret;", here,
            (const char *[]){"RoleSessionName=me", "ExternalId=x", "Credential=AKIAROLE/", "/us-west-2/sts/", NULL});
    assumes(IAM_LOGIN " awsStsRegion=\"us-west-2\";", here, (const char *[]){NULL}); /* without a role there is nothing to ask STS */
}

/* --- a broker that only takes logins --- */

typedef struct broker { int fd, port; pthread_t thread; char auth[8192]; size_t n_auth; int version; bool refuses; } broker;

static bool take(int fd, void *p, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, (char *)p + at, n - at, 0);
        if (got <= 0) return false;
        at += (size_t)got;
    }
    return true;
}
static void i16(fz_buf *b, int v) { fz_buf_putc(b, (char)(v >> 8)), fz_buf_putc(b, (char)v); }
static void i32(fz_buf *b, uint32_t v) { i16(b, (int)(v >> 16)), i16(b, (int)(v & 0xffff)); }
static int get16(const uint8_t *p) { return p[0] << 8 | p[1]; }

/* ApiVersions v3, SaslHandshake v1, SaslAuthenticate v0: bodies as in the Kafka protocol guide. */
static void answer(int fd, int api, uint32_t id, const broker *k) {
    static const int apis[][2] = {{0, 7}, {1, 11}, {2, 5}, {3, 4}, {17, 1}, {18, 3}, {36, 0}};
    fz_buf b = {0}, out = {0};
    i32(&b, id);
    if (api == 18) {
        i16(&b, 0);
        fz_buf_putc(&b, (char)(N(apis) + 1));
        for (size_t i = 0; i < N(apis); i++) i16(&b, apis[i][0]), i16(&b, 0), i16(&b, apis[i][1]), fz_buf_putc(&b, 0);
        i32(&b, 0);
        fz_buf_putc(&b, 0);
    } else if (api == 17) {
        i16(&b, 0);
        i32(&b, 1);
        i16(&b, 11);
        fz_buf_puts(&b, "OAUTHBEARER");
    } else {
        static const char why[] = "Access denied";
        i16(&b, k->refuses ? 58 : 0);
        i16(&b, k->refuses ? (int)sizeof why - 1 : -1);
        if (k->refuses) fz_buf_puts(&b, why);
        i32(&b, 0);
    }
    i32(&out, (uint32_t)b.len);
    fz_buf_append(&out, b.data, b.len);
    (void)!send(fd, out.data, out.len, MSG_NOSIGNAL);
    fz_buf_free(&b);
    fz_buf_free(&out);
}

static void *serve(void *cx) {
    broker *k = cx;
    for (int fd; !k->n_auth && (fd = accept(k->fd, NULL, NULL)) >= 0; close(fd)) {
        uint8_t head[4];
        while (take(fd, head, 4)) {
            size_t n = (size_t)get16(head) << 16 | (size_t)get16(head + 2);
            static uint8_t body[16384];
            if (n < 10 || n > sizeof body || !take(fd, body, n)) break;
            int api = get16(body), version = get16(body + 2);
            size_t client = (size_t)get16(body + 8), at = 10 + (client == 0xffff ? 0 : client);
            if (api == 36) {
                k->n_auth = n - at - 4;
                k->version = version;
                memcpy(k->auth, body + at + 4, k->n_auth);
            }
            if (api != 18 && api != 17 && api != 36) break;
            answer(fd, api, (uint32_t)get16(body + 4) << 16 | (uint32_t)get16(body + 6), k);
            if (api == 36 && !k->refuses) break;
        }
    }
    return NULL;
}

static void start(broker *k) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    k->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(k->fd, (struct sockaddr *)&a, len) | listen(k->fd, 8) | getsockname(k->fd, (struct sockaddr *)&a, &len), 0);
    k->port = ntohs(a.sin_port);
    pthread_create(&k->thread, NULL, serve, k);
}

static void the_bytes_of_a_login(void **state) {
    (void)state;
    setenv("AWS_REGION", "eu-west-1", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIAMSK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "mskssecret", 1);
    setenv("AWS_SESSION_TOKEN", "a/b+c==", 1);
    fz_clock_fix(fz_now_us()); /* so that the token can be made again; the client wants one that has not expired */
    broker k = {0};
    start(&k);
    char servers[64];
    snprintf(servers, sizeof servers, "127.0.0.1:%d", k.port);
    fz_pair o[] = {P("bootstrap.servers", servers), P("security.protocol", "SASL_PLAINTEXT"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", IAM_LOGIN ";"),
                   P("sasl.client.callback.handler.class", IAM_HANDLER)};
    kafka_client client = {.table = "t"};
    kafka_limits limits = {0, 1};
    rd_kafka_t *rk = NULL;
    fz_error err = {0};
    if (kafka_client_new(o, N(o), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err) != FZ_OK) fail_msg("%s", err.message);
    pthread_join(k.thread, NULL);
    fz_arena *a = fz_arena_new();
    aws_session *s;
    const char *token;
    int64_t expires;
    assert_int_equal(aws_session_new(NULL, 0, &s, &err), FZ_OK);
    assert_int_equal(aws_msk_token(s, "eu-west-1", a, &token, &expires, NULL, &err), FZ_OK);
    char want[8192];
    size_t n = (size_t)snprintf(want, sizeof want, "n,,%cauth=Bearer %s%c%c", 1, token, 1, 1);
    assert_int_equal(k.version, 0);
    assert_int_equal(k.n_auth, n);
    assert_memory_equal(k.auth, want, n);
    aws_session_unref(s);
    fz_arena_free(a);
    kafka_client_free(&client, rk);
    close(k.fd);
}

static void a_refusal_says_what_to_look_at(void **state) {
    (void)state;
    setenv("AWS_REGION", "eu-west-1", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIAMSK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "mskssecret", 1);
    broker k = {.refuses = true};
    start(&k);
    char servers[64];
    snprintf(servers, sizeof servers, "127.0.0.1:%d", k.port);
    fz_pair o[] = {P("bootstrap.servers", servers), P("security.protocol", "SASL_PLAINTEXT"), P("sasl.mechanism", "AWS_MSK_IAM"), P("sasl.jaas.config", IAM_LOGIN ";")};
    kafka_client client = {.table = "t"};
    kafka_limits limits = {0, 1};
    rd_kafka_t *rk = NULL;
    fz_error err = {0};
    if (kafka_client_new(o, N(o), KAFKA_CLIENT_CONTROL, &limits, &client, &rk, &err) != FZ_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 1000 && !atomic_load(&client.auth_failed); i++) rd_kafka_poll(rk, 10);
    assert_int_equal(kafka_request_error(&client, RD_KAFKA_RESP_ERR__TRANSPORT, "metadata", &err), FZ_USER);
    assert_string_equal(err.code, "kafka.authentication");
    assert_non_null(strstr(err.detail, "Access denied"));
    assert_non_null(strstr(err.hint, "kafka-cluster:Connect"));
    kafka_client_free(&client, rk);
    pthread_join(k.thread, NULL);
    close(k.fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, up, down)
int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {T(as_java_scripts_write_it), T(what_is_wrong_is_told), T(region_of_the_brokers), T(credentials_are_asked_for_before_anything_connects), T(roles_of_the_login_module), T(the_bytes_of_a_login),
                                       T(a_refusal_says_what_to_look_at)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
