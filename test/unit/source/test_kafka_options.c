/* Options of the Kafka connector: every key of the Java consumer has its place; mapping, security, starts, patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "source/kafka_int.h"
#include <stdio.h>

/* --- every key of the Java consumer --- */

static void every_java_key_has_its_place(void **state) {
    (void)state;
    FILE *f = fopen("test/data/source/consumer_config_keys.txt", "r");
    assert_non_null(f);
    char line[128], name[160];
    int n = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!*line) continue;
        n++;
        const kafka_property *p = kafka_property_find(line);
        if (!p) fail_msg("no row for '%s'", line);
        snprintf(name, sizeof name, "properties.%s", line);
        const fz_option *o = fz_option_find(kafka_options, name);
        assert_non_null(o);
        assert_string_equal(o->name, name);
    }
    fclose(f);
    assert_int_equal(n, 115);
}

static void rows_agree_with_librdkafka(void **state) {
    (void)state;
    for (size_t i = 0; kafka_property_at(i); i++) {
        const kafka_property *p = kafka_property_at(i);
        char name[160], value[256];
        snprintf(name, sizeof name, "properties.%s", p->java);
        const fz_option *o = fz_option_find(kafka_options, name);
        assert_non_null(o);
        if (p->how == KAFKA_HOW_IGNORED || p->how == KAFKA_HOW_REFUSED) {
            assert_int_equal(o->state, p->how == KAFKA_HOW_IGNORED ? FZ_OPT_NO_MEANING : FZ_OPT_REFUSED);
            assert_true(o->why && strlen(o->why) > 10);
            continue;
        }
        assert_int_equal(o->state, FZ_OPT_USED);
        assert_true(strlen(o->doc) > 10);
        if (!p->rd) continue;
        rd_kafka_conf_t *c = rd_kafka_conf_new();
        size_t size = sizeof value;
        if (rd_kafka_conf_get(c, p->rd, value, &size) == RD_KAFKA_CONF_UNKNOWN) fail_msg("librdkafka does not know '%s'", p->rd);
        for (int side = 0; p->how == KAFKA_HOW_INT && side < 2; side++) { /* what is clamped to must be accepted */
            snprintf(value, sizeof value, "%lld", (long long)(side ? p->most : p->least));
            if (rd_kafka_conf_set(c, p->rd, value, NULL, 0) != RD_KAFKA_CONF_OK) fail_msg("%s: %s is out of librdkafka's range", p->java, value);
        }
        rd_kafka_conf_destroy(c);
    }
}

/* --- mapping --- */

typedef struct seen { char text[4096]; } seen;
static fz_status note(void *opaque, const char *key, const char *value, fz_error *err) {
    seen *s = opaque;
    (void)err;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s=%s|", key, value);
    return FZ_OK;
}
#define P(k, v) {"properties." k, v, 0, 0}
#define MAP(out, err, ...)                                                    \
    kafka_conf_map((const fz_pair[]){P("bootstrap.servers", "a:1"), __VA_ARGS__}, \
                   sizeof((const fz_pair[]){P("bootstrap.servers", "a:1"), __VA_ARGS__}) / sizeof(fz_pair), note, memset(&(out), 0, sizeof(out)), &(err))

static void assert_mapped(const seen *s, const char *pair) {
    if (!strstr(s->text, pair)) fail_msg("no %s in %s", pair, s->text);
}

static void java_names_become_librdkafkas(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("fetch.max.wait.ms", "500"), P("max.partition.fetch.bytes", "1048576"), P("isolation.level", "READ_UNCOMMITTED"),
                         P("request.timeout.ms", "999999999"), P("receive.buffer.bytes", "-1"), P("connections.max.idle.ms", "-1"),
                         P("ssl.endpoint.identification.algorithm", ""), P("client.id.prefix", "me"), P("group.id", "g"), P("max.poll.records", "5"),
                         P("check.crcs", "TRUE")), FZ_OK);
    static const char *const wanted[] = {"bootstrap.servers=a:1|", "fetch.wait.max.ms=500|", "fetch.message.max.bytes=1048576|", "isolation.level=read_uncommitted|",
                                         "socket.timeout.ms=300000|", "socket.receive.buffer.bytes=0|", "connections.max.idle.ms=0|",
                                         "ssl.endpoint.identification.algorithm=none|", "client.id=me|", "check.crcs=true|", "security.protocol=plaintext|"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) assert_mapped(&s, wanted[i]);
    assert_null(strstr(s.text, "group"));
    assert_null(strstr(s.text, "poll"));
}

static void servers_are_checked(void **state) {
    (void)state;
    seen s = {{0}};
    fz_error err;
    fz_pair none[] = {P("group.id", "g")}, bad[] = {P("bootstrap.servers", "a:1,b")}, good[] = {P("bootstrap.servers", " a:1 , [::1]:9092 ,")};
    assert_int_equal(kafka_conf_map(none, 1, note, &s, &err), FZ_USER);
    assert_string_equal(err.code, "option.missing");
    assert_int_equal(kafka_conf_map(bad, 1, note, &s, &err), FZ_USER);
    assert_non_null(strstr(err.message, "'b' is not host:port"));
    assert_int_equal(kafka_conf_map(good, 1, note, &s, &err), FZ_OK);
    assert_mapped(&s, "bootstrap.servers=a:1,[::1]:9092|");
}

static void client_dns_lookup_has_one_form(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("client.dns.lookup", "use_all_dns_ips")), FZ_OK);
    assert_int_equal(MAP(s, err, P("client.dns.lookup", "resolve_canonical_bootstrap_servers_only")), FZ_USER);
    assert_string_equal(err.code, "option.refused");
}

/* --- security --- */

#define SCRAM_LOGIN "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"u\" password=\"p\";"

static void logins_are_mapped(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "SCRAM-SHA-512"), P("sasl.jaas.config", SCRAM_LOGIN)), FZ_OK);
    assert_mapped(&s, "security.protocol=sasl_ssl|sasl.mechanism=SCRAM-SHA-512|sasl.username=u|sasl.password=p|");
    /* the class as it is named for Flink's SQL jar */
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_PLAINTEXT"), P("sasl.mechanism", "PLAIN"),
                         P("sasl.jaas.config", "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='p';")), FZ_OK);
    assert_mapped(&s, "sasl.mechanism=PLAIN|sasl.username=u|sasl.password=p|");
}

static void wrong_logins_are_refused(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_SSL"), P("sasl.jaas.config", SCRAM_LOGIN)), FZ_USER);
    assert_non_null(strstr(err.message, "GSSAPI"));
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "OAUTHBEARER")), FZ_USER);
    assert_string_equal(err.code, "kafka.sasl-mechanism");
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "PLAIN"), P("sasl.jaas.config", SCRAM_LOGIN)), FZ_USER);
    assert_non_null(strstr(err.hint, "PlainLoginModule"));
    assert_int_equal(MAP(s, err, P("security.protocol", "SASL_SSL"), P("sasl.mechanism", "PLAIN")), FZ_USER);
    assert_string_equal(err.code, "option.missing");
    assert_int_equal(MAP(s, err, P("security.protocol", "TLS")), FZ_USER);
}

static void stores_are_mapped(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.truststore.type", "PEM"), P("ssl.truststore.location", "/t.pem"), P("ssl.keystore.type", "PEM"),
                         P("ssl.keystore.location", "/k.pem"), P("ssl.key.password", "kp")), FZ_OK);
    assert_mapped(&s, "ssl.ca.location=/t.pem|ssl.certificate.location=/k.pem|ssl.key.location=/k.pem|ssl.key.password=kp|");
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.truststore.type", "PEM"), P("ssl.truststore.certificates", "CA"), P("ssl.keystore.type", "PEM"),
                         P("ssl.keystore.certificate.chain", "CERT"), P("ssl.keystore.key", "KEY")), FZ_OK);
    assert_mapped(&s, "ssl.ca.pem=CA|ssl.certificate.pem=CERT|ssl.key.pem=KEY|");
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.keystore.type", "PKCS12"), P("ssl.keystore.location", "/k.p12"), P("ssl.keystore.password", "sp")), FZ_OK);
    assert_mapped(&s, "ssl.keystore.location=/k.p12|ssl.keystore.password=sp|");
}

static void java_key_stores_are_refused(void **state) {
    (void)state;
    seen s;
    fz_error err;
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.truststore.location", "/t.jks"), P("ssl.truststore.password", "tell-nobody")), FZ_USER);
    assert_string_equal(err.code, "kafka.store-type");
    assert_non_null(strstr(err.message, "JKS"));
    assert_non_null(strstr(err.hint, "keytool -list -rfc -keystore /t.jks"));
    char text[2048];
    assert_null(strstr(fz_error_text(&err, text, sizeof text), "tell-nobody"));
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.keystore.location", "/k.jks")), FZ_USER);
    assert_non_null(strstr(err.hint, "-deststoretype PKCS12"));
    assert_int_equal(MAP(s, err, P("security.protocol", "SSL"), P("ssl.truststore.type", "PKCS12"), P("ssl.truststore.location", "/t.p12")), FZ_USER);
    assert_non_null(strstr(err.hint, "openssl pkcs12"));
}

static void secrets_stay_out_of_errors(void **state) {
    (void)state;
    fz_pair o[] = {P("bootstrap.servers", "a:1"), P("security.protocol", "SSL"), P("ssl.truststore.type", "PEM"), P("ssl.truststore.certificates", "tell-nobody")};
    rd_kafka_t *rk = NULL;
    kafka_limits limits = {0, 1};
    kafka_client client = {.table = "t"};
    fz_error err = {0};
    assert_int_equal(kafka_client_new(o, 4, KAFKA_CLIENT_DATA, &limits, &client, &rk, &err), FZ_USER);
    char text[2048];
    assert_null(strstr(fz_error_text(&err, text, sizeof text), "tell-nobody"));
}

static void our_settings_stand(void **state) {
    (void)state;
    fz_pair o[] = {P("bootstrap.servers", "a:1"), P("auto.offset.reset", "earliest"), P("enable.auto.commit", "true"), P("group.id", "g")};
    rd_kafka_conf_t *c;
    fz_error err;
    kafka_limits limits = {24u << 20, 6};
    char value[64];
    size_t size;
    assert_int_equal(kafka_conf_make(o, 4, KAFKA_CLIENT_DATA, &limits, &c, &err), FZ_OK);
#define IS(key, v) (size = sizeof value, assert_int_equal(rd_kafka_conf_get(c, key, value, &size), RD_KAFKA_CONF_OK), assert_string_equal(value, v))
    IS("auto.offset.reset", "error");
    IS("enable.auto.commit", "false");
    IS("isolation.level", "read_committed");
    IS("enable.partition.eof", "true");
    size = sizeof value;
    assert_true(rd_kafka_conf_get(c, "group.id", value, &size) != RD_KAFKA_CONF_OK || !*value);
    rd_kafka_conf_destroy(c);
    assert_int_equal(kafka_conf_make(o, 4, KAFKA_CLIENT_CONTROL, &limits, &c, &err), FZ_OK);
    IS("group.id", "g");
    IS("isolation.level", "read_uncommitted");
    rd_kafka_conf_destroy(c);
}

/* --- JAAS --- */

static void jaas_is_read_as_java_does(void **state) {
    (void)state;
    kafka_jaas j;
    fz_error err;
    assert_int_equal(kafka_jaas_parse("a.b.C  required\n username=\"al \\\"x\\\" ice\"\tpassword='p\\\\;\\101=' serviceName = \"k\" ;", &j, &err), FZ_OK);
    assert_string_equal(j.module, "a.b.C");
    assert_string_equal(j.username, "al \"x\" ice");
    assert_string_equal(j.password, "p\\;A=");
    kafka_jaas_free(&j);
}

static void broken_jaas_tells_no_secret(void **state) {
    (void)state;
    static const char *const bad[] = {"", ";", "a.C", "a.C username=\"u\" password=\"hush\";", "a.C required username=\"u\" password=\"hush\"", "a.C required password=\"hush;",
                                      "a.C required password \"hush\";", "a.C required password=\"hush\"; b.D required;", "a.C required tokenauth=true password=\"hush\";"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kafka_jaas j;
        fz_error err = {0};
        char text[2048];
        assert_int_equal(kafka_jaas_parse(bad[i], &j, &err), FZ_USER);
        assert_string_equal(err.code, "kafka.jaas");
        assert_null(strstr(fz_error_text(&err, text, sizeof text), "hush"));
        assert_null(j.module);
    }
}

/* --- starts and stops --- */

static fz_status config(kafka_config *c, fz_error *err, const fz_pair *o, size_t n) {
    memset(err, 0, sizeof *err);
    return kafka_config_init(c, o, n, err);
}
#define CONFIG(c, err, ...) config(&(c), &(err), (const fz_pair[]){__VA_ARGS__}, sizeof((const fz_pair[]){__VA_ARGS__}) / sizeof(fz_pair))
#define O(k, v) {k, v, 0, 0}

static void starts_are_parsed(void **state) {
    (void)state;
    kafka_config c;
    fz_error err;
    assert_int_equal(CONFIG(c, err, O("topic", "b; a;b"), P("group.id", "g")), FZ_OK); /* group-offsets is the default, as in Flink */
    assert_int_equal(c.n_topics, 2);
    assert_string_equal(c.topics[0], "a");
    assert_int_equal(c.start.at, KAFKA_AT_GROUP);
    assert_int_equal(c.stop.at, KAFKA_UNBOUNDED);
    assert_int_equal(c.discovery_ms, 300000);
    assert_true(c.report);
    kafka_config_free(&c);
    assert_int_equal(CONFIG(c, err, O("topic", "a"), O("scan.startup.mode", "specific-offsets"), O("scan.startup.specific-offsets", "partition:0,offset:42; partition:7,offset:300;"),
                            O("scan.bounded.mode", "timestamp"), O("scan.bounded.timestamp-millis", "1700000000000"), O("scan.topic-partition-discovery.interval", "10 s")), FZ_OK);
    assert_int_equal(c.start.n_specific, 2);
    assert_int_equal(c.start.specific[1].partition, 7);
    assert_int_equal(c.start.specific[1].offset, 300);
    assert_int_equal(c.stop.timestamp_ms, 1700000000000);
    assert_int_equal(c.discovery_ms, 10000);
    assert_false(c.report);
    kafka_config_free(&c);
    assert_int_equal(CONFIG(c, err, O("topic", "a"), P("group.id", "g"), P("commit.offsets.on.checkpoint", "false")), FZ_OK);
    assert_false(c.report);
    kafka_config_free(&c);
}

static void wrong_starts_are_refused(void **state) {
    (void)state;
    kafka_config c;
    fz_error err;
    assert_int_equal(CONFIG(c, err, O("scan.startup.mode", "earliest-offset")), FZ_USER);
    assert_string_equal(err.code, "option.missing");
    assert_int_equal(CONFIG(c, err, O("topic", "a"), O("topic-pattern", "b")), FZ_USER);
    assert_string_equal(err.code, "option.conflict");
    assert_int_equal(CONFIG(c, err, O("topic", "a")), FZ_USER);
    assert_non_null(strstr(err.message, "properties.group.id"));
    assert_int_equal(CONFIG(c, err, O("topic", "a"), O("scan.startup.mode", "timestamp")), FZ_USER);
    assert_non_null(strstr(err.message, "scan.startup.timestamp-millis"));
    assert_int_equal(CONFIG(c, err, O("topic", "a;b"), O("scan.startup.mode", "specific-offsets"), O("scan.startup.specific-offsets", "partition:0,offset:1")), FZ_USER);
    assert_string_equal(err.code, "option.conflict");
    assert_int_equal(CONFIG(c, err, O("topic", "a"), P("group.id", "g"), P("auto.offset.reset", "by_duration:PT1H")), FZ_USER);
    static const char *const bad[] = {"", "partition:0", "partition:0,offset:", "partition:0,offset:-1", "partition:x,offset:1", "offset:1,partition:0", "partition:0,offset:1;;partition:1,offset:2",
                                      "partition:99999999999,offset:1", "partition:0,offset:1x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kafka_specific *v;
        size_t n;
        assert_int_equal(kafka_parse_specific("o", bad[i], &v, &n, &err), FZ_USER);
        assert_null(v);
    }
}

static void patterns_match_whole_names(void **state) {
    (void)state;
    static const struct { const char *java, *name; bool match; } cases[] = {
        {"log", "log", true}, {"log", "logs", false}, {"log", "syslog", false}, {"log-\\d+", "log-12", true}, {"log-\\d+", "log-x", false},
        {"(?:a|b)\\.c", "b.c", true}, {"(?:a|b)\\.c", "bxc", false}, {"a|bc", "bc", true}, {"a|bc", "ac", false}, {"[\\w.]+?", "a_b.c", true}, {"[\\w.]+", "a-b", false},
        {"x[a\\-z]", "x-", true}, {"x[a\\-z]", "xb", false}, {"\\Sa", "ba", true}, {".*", "anything", true}, {"t\\^", "t^", true}};
    fz_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        regex_t re;
        assert_int_equal(kafka_pattern_compile(cases[i].java, &re, &err), FZ_OK);
        if ((regexec(&re, cases[i].name, 0, NULL, 0) == 0) != cases[i].match) fail_msg("%s against %s", cases[i].java, cases[i].name);
        regfree(&re);
    }
    static const char *const bad[] = {"(?!a)b", "(?<n>a)", "a*+", "\\bfoo", "a(", "x\\", "[a&&b]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        regex_t re;
        if (kafka_pattern_compile(bad[i], &re, &err) != FZ_USER) fail_msg("accepted: %s", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_java_key_has_its_place), cmocka_unit_test(rows_agree_with_librdkafka), cmocka_unit_test(java_names_become_librdkafkas),
        cmocka_unit_test(servers_are_checked), cmocka_unit_test(client_dns_lookup_has_one_form), cmocka_unit_test(logins_are_mapped),
        cmocka_unit_test(wrong_logins_are_refused), cmocka_unit_test(stores_are_mapped), cmocka_unit_test(java_key_stores_are_refused),
        cmocka_unit_test(secrets_stay_out_of_errors), cmocka_unit_test(our_settings_stand), cmocka_unit_test(jaas_is_read_as_java_does),
        cmocka_unit_test(broken_jaas_tells_no_secret), cmocka_unit_test(starts_are_parsed), cmocka_unit_test(wrong_starts_are_refused),
        cmocka_unit_test(patterns_match_whole_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
