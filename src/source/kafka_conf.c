/* properties.* of the Java client -> configuration of librdkafka, with what each of our clients needs on top.
 *
 * Security: security.protocol, sasl.* and ssl.* of Java name the same things in other pieces than librdkafka does, so they are
 * joined here. Java's own key store format, JKS, cannot be read by OpenSSL and is refused with the command that converts it.
 *
 * Invariants
 *  1. kafka_conf_map is the only place where a property gets to librdkafka; it never calls librdkafka itself (tests give it
 *     another `put`).
 *  2. A secret's value stands in no message.
 */
#include "source/kafka_int.h"
#include <stdio.h>

typedef struct mapper { const fz_pair *options; size_t n; kafka_put put; void *opaque; fz_error *err; } mapper;

static const char *property(const mapper *m, const char *java) {
    char key[96];
    snprintf(key, sizeof key, "properties.%s", java);
    return fz_pair_get(m->options, m->n, key);
}
static fz_status put(mapper *m, const char *rd, const char *value) { return m->put(m->opaque, rd, value, m->err); }

static fz_status put_lower(mapper *m, const char *rd, const char *value) {
    char low[64];
    size_t n = strlen(value);
    if (n >= sizeof low) return fz_fail(m->err, FZ_USER, "option.invalid", "the value of properties.%s is too long", rd);
    for (size_t i = 0; i <= n; i++) low[i] = value[i] >= 'A' && value[i] <= 'Z' ? (char)(value[i] + 32) : value[i];
    return put(m, rd, low);
}

/* Java takes any int or long, and -1 for "no limit" or "the system's choice", for which librdkafka has 0. */
static fz_status put_int(mapper *m, const kafka_property *p, const char *value) {
    int64_t v;
    if (!fz_parse_i64(fz_sv_trim(fz_sv_of(value)), &v))
        return fz_fail(m->err, FZ_USER, "option.invalid", "option 'properties.%s': '%s' is not a whole number", p->java, value);
    int64_t used = v < p->least ? p->least : v > p->most ? p->most : v;
    if (used != v && v != -1)
        fz_log(FZ_LOG_WARN, "option.clamped", FZ_KV("option", "properties.%s", p->java), FZ_KV("value", "%lld", (long long)v),
               FZ_KV("used", "%lld", (long long)used), NULL);
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)used);
    return put(m, p->rd, text);
}

static fz_status put_plain(mapper *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (!fz_starts(m->options[i].key, "properties.")) continue;
        const kafka_property *p = kafka_property_find(m->options[i].key + strlen("properties."));
        const char *value = m->options[i].value;
        fz_status rc = FZ_OK;
        if (!p) continue; /* src_check_options has refused it */
        switch (p->how) {
        case KAFKA_HOW_COPY: rc = put(m, p->rd, value); break;
        case KAFKA_HOW_LOWER:
        case KAFKA_HOW_BOOL: rc = put_lower(m, p->rd, value); break;
        case KAFKA_HOW_INT: rc = put_int(m, p, value); break;
        case KAFKA_HOW_NONE_IF_EMPTY: rc = put(m, p->rd, *value ? value : "none"); break;
        case KAFKA_HOW_OURS:
        case KAFKA_HOW_SECURITY:
        case KAFKA_HOW_IGNORED:
        case KAFKA_HOW_REFUSED: break;
        }
        if (rc != FZ_OK) return m->options[i].line ? fz_at(m->err, m->options[i].line, m->options[i].column) : rc;
    }
    const char *prefix = property(m, "client.id.prefix"), *lookup = property(m, "client.dns.lookup");
    if (prefix && !property(m, "client.id")) FZ_TRY(put(m, "client.id", prefix));
    if (lookup && !fz_ieq(lookup, "use_all_dns_ips")) {
        fz_fail(m->err, FZ_USER, "option.refused", "option 'properties.client.dns.lookup': '%s' is not supported", lookup);
        return fz_hint(m->err, "only use_all_dns_ips is; for Kerberos' canonical names there is no substitute");
    }
    return FZ_OK;
}

static fz_status put_servers(mapper *m) {
    const char *list = property(m, "bootstrap.servers");
    if (!list || !*fz_sv_trim(fz_sv_of(list)).p)
        return fz_fail(m->err, FZ_USER, "option.missing", "option 'properties.bootstrap.servers' is missing");
    fz_buf b = {0};
    for (const char *p = list; p;) {
        const char *comma = strchr(p, ',');
        fz_sv one = fz_sv_trim((fz_sv){p, comma ? (size_t)(comma - p) : strlen(p)});
        p = comma ? comma + 1 : NULL;
        if (!one.n) continue;
        size_t colon = one.n;
        while (colon && one.p[colon - 1] != ':') colon--;
        uint64_t port = 0;
        if (colon < 2 || !fz_parse_u64((fz_sv){one.p + colon, one.n - colon}, &port) || port == 0 || port > 65535) {
            fz_buf_free(&b);
            return fz_fail(m->err, FZ_USER, "option.invalid", "option 'properties.bootstrap.servers': '%.*s' is not host:port", (int)one.n, one.p);
        }
        if (b.len) fz_buf_putc(&b, ',');
        fz_buf_append(&b, one.p, one.n);
    }
    fz_status rc = put(m, "bootstrap.servers", fz_buf_cstr(&b));
    fz_buf_free(&b);
    return rc;
}

/* --- SASL --- */

static fz_status put_sasl(mapper *m) {
    const char *mechanism = property(m, "sasl.mechanism"), *jaas = property(m, "sasl.jaas.config");
    if (!mechanism) mechanism = "GSSAPI";
    if (kafka_msk_wanted(m->options, m->n)) {
        FZ_TRY(kafka_msk_check(m->options, m->n, m->err));
        return put(m, "sasl.mechanism", "OAUTHBEARER");
    }
    bool plain = fz_ieq(mechanism, "PLAIN"), scram = fz_ieq(mechanism, "SCRAM-SHA-256") || fz_ieq(mechanism, "SCRAM-SHA-512");
    if (!plain && !scram) {
        fz_fail(m->err, FZ_USER, "kafka.sasl-mechanism", "SASL mechanism '%s' is not supported", mechanism);
        return fz_hint(m->err, "set 'properties.sasl.mechanism' to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or AWS_MSK_IAM%s",
                       property(m, "sasl.mechanism") ? "" : "; it is GSSAPI when nothing sets it");
    }
    if (!jaas)
        return fz_fail(m->err, FZ_USER, "option.missing", "option 'properties.sasl.jaas.config' is missing: mechanism %s needs username and password", mechanism);
    kafka_jaas j;
    FZ_TRY(kafka_jaas_parse(jaas, &j, m->err));
    /* Flink's SQL jar holds the client under another package name, so scripts written for it name the class with a prefix. */
    const char *class_wanted = plain ? ".plain.PlainLoginModule" : ".scram.ScramLoginModule";
    fz_status rc = FZ_OK;
    if (!fz_ends(j.module, class_wanted)) {
        fz_fail(m->err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config names the login module '%s', which does not go with mechanism %s", j.module, mechanism);
        rc = fz_hint(m->err, "it must be org.apache.kafka.common.security%s", class_wanted);
    } else if (!j.username || !j.password) {
        rc = fz_fail(m->err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config has no %s", j.username ? "password" : "username");
    }
    if (rc == FZ_OK) rc = put(m, "sasl.mechanism", plain ? "PLAIN" : fz_ieq(mechanism, "SCRAM-SHA-256") ? "SCRAM-SHA-256" : "SCRAM-SHA-512");
    if (rc == FZ_OK) rc = put(m, "sasl.username", j.username);
    if (rc == FZ_OK) rc = put(m, "sasl.password", j.password);
    kafka_jaas_free(&j);
    return rc;
}

/* --- TLS --- */

static fz_status refuse_store(mapper *m, const char *which, const char *type, const char *file) {
    bool trust = which[0] == 't';
    fz_fail(m->err, FZ_USER, "kafka.store-type", "properties.ssl.%s.type %s is not supported", which, type);
    fz_detail(m->err, "%s", fz_ieq(type, "JKS") ? "JKS is a format of Java's own, and Java's default when no type is given" : "only the types in the hint can be read");
    if (trust && fz_ieq(type, "PKCS12"))
        return fz_hint(m->err, "convert it: openssl pkcs12 -in %s -nokeys -out trust.pem; then 'properties.ssl.truststore.type' = 'PEM'", file);
    if (trust)
        return fz_hint(m->err, "convert it: keytool -list -rfc -keystore %s > trust.pem; then 'properties.ssl.truststore.type' = 'PEM'", file);
    return fz_hint(m->err, "convert it: keytool -importkeystore -srckeystore %s -destkeystore key.p12 -deststoretype PKCS12; then 'properties.ssl.keystore.type' = 'PKCS12'", file);
}

static fz_status put_truststore(mapper *m) {
    const char *type = property(m, "ssl.truststore.type"), *file = property(m, "ssl.truststore.location");
    const char *text = property(m, "ssl.truststore.certificates");
    if (!file && !text) return FZ_OK; /* the system's certificates */
    if (!type) type = "JKS";
    if (!fz_ieq(type, "PEM")) return refuse_store(m, "truststore", type, file ? file : "FILE");
    if (file && text)
        return fz_fail(m->err, FZ_USER, "option.conflict", "properties.ssl.truststore.location and properties.ssl.truststore.certificates exclude each other");
    if (property(m, "ssl.truststore.password"))
        return fz_fail(m->err, FZ_USER, "option.conflict", "properties.ssl.truststore.password cannot be given with type PEM");
    return file ? put(m, "ssl.ca.location", file) : put(m, "ssl.ca.pem", text);
}

static fz_status put_keystore(mapper *m) {
    const char *type = property(m, "ssl.keystore.type"), *file = property(m, "ssl.keystore.location");
    const char *chain = property(m, "ssl.keystore.certificate.chain"), *key = property(m, "ssl.keystore.key");
    const char *password = property(m, "ssl.keystore.password"), *key_password = property(m, "ssl.key.password");
    if (!file && !chain && !key) return FZ_OK;
    if (!type) type = "JKS";
    if (fz_ieq(type, "PKCS12")) {
        if (!file) return fz_fail(m->err, FZ_USER, "option.missing", "properties.ssl.keystore.type PKCS12 needs properties.ssl.keystore.location");
        FZ_TRY(put(m, "ssl.keystore.location", file));
        return password ? put(m, "ssl.keystore.password", password) : FZ_OK;
    }
    if (!fz_ieq(type, "PEM")) return refuse_store(m, "keystore", type, file ? file : "FILE");
    if (file && (chain || key))
        return fz_fail(m->err, FZ_USER, "option.conflict", "properties.ssl.keystore.location and properties.ssl.keystore.key exclude each other");
    if (file) { /* Java has key and certificates in one file; OpenSSL picks each from it */
        FZ_TRY(put(m, "ssl.certificate.location", file));
        FZ_TRY(put(m, "ssl.key.location", file));
    } else {
        if (!chain || !key)
            return fz_fail(m->err, FZ_USER, "option.missing", "properties.ssl.keystore.key and properties.ssl.keystore.certificate.chain must be given together");
        FZ_TRY(put(m, "ssl.certificate.pem", chain));
        FZ_TRY(put(m, "ssl.key.pem", key));
    }
    return key_password ? put(m, "ssl.key.password", key_password) : FZ_OK;
}

/* Java classes cannot run here; those of MSK are known by what they do. */
static fz_status check_handlers(const mapper *m) {
    static const char *const keys[] = {"sasl.client.callback.handler.class", "sasl.login.callback.handler.class"};
    static const char *const known[] = {"software.amazon.msk.auth.iam.IAMClientCallbackHandler", "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"};
    for (size_t i = 0; i < 2; i++) {
        const char *v = property(m, keys[i]);
        if (!v || fz_ends(v, known[i])) continue;
        fz_fail(m->err, FZ_USER, "option.refused", "option 'properties.%s': the Java class '%.120s' cannot run here", keys[i], v);
        return fz_hint(m->err, "only %s is known", known[i]);
    }
    return FZ_OK;
}

static fz_status put_security(mapper *m) {
    static const char *const known[] = {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"};
    const char *protocol = property(m, "security.protocol");
    if (!protocol) protocol = "PLAINTEXT";
    size_t i = 0;
    while (i < 4 && !fz_ieq(protocol, known[i])) i++;
    if (i == 4)
        return fz_fail(m->err, FZ_USER, "option.invalid", "option 'properties.security.protocol': '%s' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", protocol);
    FZ_TRY(put(m, "security.protocol", known[i]));
    FZ_TRY(check_handlers(m));
    if (i >= 2) FZ_TRY(put_sasl(m));
    if (i % 2 == 1) {
        FZ_TRY(put_truststore(m));
        FZ_TRY(put_keystore(m));
    }
    return FZ_OK;
}

fz_status kafka_conf_map(const fz_pair *options, size_t n, kafka_put to, void *opaque, fz_error *err) {
    mapper m = {options, n, to, opaque, err};
    FZ_TRY(put_servers(&m));
    FZ_TRY(put_plain(&m));
    return put_security(&m);
}

/* --- what our clients need --- */

static fz_status set(void *conf, const char *key, const char *value, fz_error *err) {
    char text[256];
    if (rd_kafka_conf_set(conf, key, value, text, sizeof text) == RD_KAFKA_CONF_OK) return FZ_OK;
    /* librdkafka's text quotes the value. */
    if (strstr(key, "password") || strstr(key, "pem")) snprintf(text, sizeof text, "its value is not accepted");
    return fz_fail(err, FZ_USER, "option.invalid", "Kafka client setting '%s': %s", key, text);
}
static fz_status set_number(rd_kafka_conf_t *conf, const char *key, uint64_t v, fz_error *err) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    return set(conf, key, text, err);
}
static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most) { return v < least ? least : v > most ? most : v; }

/* Sizes of queues and fetches.
 *
 * A queued message of 212 bytes takes about 500: librdkafka keeps an op of some 300 bytes for each. A partition asks for more
 * when its queue is below both limits, and may then hold the limit and one answer on top. librdkafka 2.0.2 looks at the
 * limits only when something wakes its broker thread; with nothing to fetch it sleeps a whole second (kafka_read.c wakes
 * it). With that, queues of a few thousand messages read as fast as one of a million: 3.9 M messages of 212 bytes from six
 * partitions, 2 cores: 3.2 M msg/s and 310 ns of CPU a message with either, but 32 MB resident instead of 346 MB as soon as
 * the reader is slower than the broker.
 *
 * fetch.wait.max.ms: while an answer is pending that only waits for new records of idle partitions, a drained partition cannot
 * ask. With Java's 500 ms the same topic read 0.24 M msg/s, with 20 ms 2.2 M; 50 ms costs an idle job 20 small requests a
 * second and broker.
 *
 * fetch.min.bytes: at the end of the log Java's 1 byte makes an answer, and a chunk, of every few records. 47,000 msg/s into
 * four partitions cost 870 ns of CPU a message so, and 640 with 64 KiB; the wait above bounds what that may delay. */
static uint64_t memory_of(const kafka_limits *l) { return l->memory ? l->memory : 24u << 20; }
static uint64_t active_of(const kafka_limits *l) { return clamp(l->n_splits, 1, KAFKA_ACTIVE); }

int kafka_queue_low(const kafka_limits *l) { return (int)clamp(memory_of(l) / (active_of(l) * 1500), 500, 10000); }

static fz_status set_sizes(rd_kafka_conf_t *conf, const kafka_limits *limits, fz_error *err) {
    uint64_t memory = memory_of(limits), n = active_of(limits);
    FZ_TRY(set_number(conf, "fetch.message.max.bytes", clamp(memory / (n * 4), 64u << 10, 1u << 20), err));
    FZ_TRY(set_number(conf, "fetch.max.bytes", clamp(memory / 4, 1u << 20, 50u << 20), err));
    FZ_TRY(set_number(conf, "queued.min.messages", (uint64_t)kafka_queue_low(limits), err));
    FZ_TRY(set_number(conf, "queued.max.messages.kbytes", clamp(memory / (n * 8) / 1024, 64, 2048), err));
    FZ_TRY(set(conf, "fetch.wait.max.ms", "50", err));
    FZ_TRY(set(conf, "fetch.min.bytes", "65536", err));
    /* A broker gives at least one whole batch, however large: a record far over the limit must get through to become a dead
     * letter. The memory is held until the record has been looked at. */
    return set(conf, "receive.message.max.bytes", "2000000000", err);
}

static fz_status set_common(rd_kafka_conf_t *conf, fz_error *err) {
    static const char *const pairs[][2] = {
        {"client.id", "frazil"},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "error"}, /* an offset out of range must surface */
        {"allow.auto.create.topics", "false"},
        {"log.connection.close", "false"},
        {"socket.keepalive.enable", "true"},
        {"socket.nagle.disable", "true"},
        {"check.crcs", "false"},
        {"isolation.level", "read_committed"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) FZ_TRY(set(conf, pairs[i][0], pairs[i][1], err));
    /* Newer releases replaced the one-second sleep by this; 2.0.2 does not know it. */
    (void)rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "5", NULL, 0);
    return FZ_OK;
}

static fz_status set_kind(rd_kafka_conf_t *conf, const fz_pair *options, size_t n, kafka_client_kind kind, fz_error *err) {
    const char *group = fz_pair_get(options, n, "properties.group.id");
    switch (kind) {
    case KAFKA_CLIENT_CONTROL:
        if (group) FZ_TRY(set(conf, "group.id", group, err));
        return set(conf, "isolation.level", "read_uncommitted", err);
    case KAFKA_CLIENT_PROBE:
        FZ_TRY(set(conf, "fetch.message.max.bytes", "65536", err));
        FZ_TRY(set(conf, "queued.min.messages", "1000", err));
        FZ_TRY(set(conf, "fetch.min.bytes", "1", err));
        FZ_TRY(set(conf, "fetch.wait.max.ms", "10", err));
        return set(conf, "enable.partition.eof", "true", err);
    case KAFKA_CLIENT_DATA: return set(conf, "enable.partition.eof", "true", err);
    }
    return FZ_OK;
}

fz_status kafka_conf_make(const fz_pair *options, size_t n, kafka_client_kind kind, const kafka_limits *limits, rd_kafka_conf_t **out,
                          fz_error *err) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    fz_status rc = set_common(conf, err);
    if (rc == FZ_OK) rc = set_sizes(conf, limits, err);
    if (rc == FZ_OK) rc = kafka_conf_map(options, n, set, conf, err); /* what the script says wins over our choices */
    if (rc == FZ_OK) rc = set_kind(conf, options, n, kind, err);
    if (rc != FZ_OK) {
        rd_kafka_conf_destroy(conf);
        conf = NULL;
    }
    *out = conf;
    return rc;
}
