/* Options of the Kafka connector: Flink's own, and one row for each key of the Java consumer (ConsumerConfig of Kafka 4.1),
 * since that is what Flink scripts carry as properties.*.
 *
 * Invariants
 *  1. PROPERTIES is the only list of properties: the option table (checks, reference page) and the mapping to librdkafka
 *     are both made from it.
 *  2. A property is mapped, honoured by the connector, ignored with a reason, or refused with the way out.
 *
 * Source: ConsumerConfig of kafka-clients 4.1; CONFIGURATION.md of librdkafka 2.0.2; KafkaConnectorOptions of Flink's
 * connector 4.0.1-2.0.
 */
#include "source/kafka_int.h"

#define GROUP_WHY "partitions are assigned by the job, not by a consumer group"
#define METRICS_WHY "the Java client's metrics do not exist here; see the job's own metrics"
#define JAVA_CLASS_WHY "it names a Java class, which cannot run here"
#define OIDC_WHY "the mechanism OAUTHBEARER is supported with MSK's IAM only: use SCRAM, PLAIN or TLS client certificates"
#define KERBEROS_WHY "the mechanism GSSAPI is not supported: use SCRAM, PLAIN or TLS client certificates"
#define JCA_WHY "it chooses a Java security provider; TLS is OpenSSL's here"
#define SINK_WHY "it concerns writing to Kafka; this table is only read"
#define WATERMARK_WHY "watermarks are not used: nothing here waits for event time"

/* M: mapped as it is; N: a number, clamped; O: honoured by the connector; S: security, several keys joined;
 * I: ignored; R: refused. */
#define PROPERTIES(M, N, O, S, I, R)                                                                                   \
    I("allow.auto.create.topics", "a source never creates a topic")                                                   \
    I("auto.commit.interval.ms", "offsets are reported after each commit to the table")                               \
    O("auto.offset.reset", STRING, "none", "Where partitions without a committed offset begin when scan.startup.mode is group-offsets: earliest, latest or none (an error). It never moves a position that the table knows.") \
    S("bootstrap.servers", STRING, false, "host:port of some brokers, separated by commas.")                           \
    M("check.crcs", BOOL, BOOL, "check.crcs", "false", "Verify the checksum of each batch. Off unless set, other than in the Java client: TCP, the disk's own checks and the codec's already guard the bytes, and it costs CPU.") \
    O("client.dns.lookup", STRING, "use_all_dns_ips", "Only use_all_dns_ips, which is how addresses are looked up here.") \
    M("client.id", STRING, COPY, "client.id", NULL, "Name that the brokers log for this client.")                      \
    M("client.rack", STRING, COPY, "client.rack", NULL, "Rack of this client, for fetching from the closest replica.") \
    N("connections.max.idle.ms", "connections.max.idle.ms", 0, 2147483647, "540000", "Close idle connections after this time.") \
    I("default.api.timeout.ms", "requests have time-outs of their own here; see request.timeout.ms")                  \
    I("enable.auto.commit", "positions live in the table; group offsets are only reported after each commit")          \
    I("enable.metrics.push", METRICS_WHY)                                                                              \
    I("exclude.internal.topics", "internal topics are never matched by topic-pattern")                                 \
    N("fetch.max.bytes", "fetch.max.bytes", 1024, 1000000000, NULL, "Most bytes of one answer; unless set, chosen by the memory that the source may use.") \
    N("fetch.max.wait.ms", "fetch.wait.max.ms", 0, 300000, "50", "How long the broker may wait for fetch.min.bytes.")   \
    N("fetch.min.bytes", "fetch.min.bytes", 1, 100000000, "65536", "Bytes that the broker waits for before it answers.") \
    O("group.id", STRING, NULL, "Consumer group whose offsets are reported after each commit, and read by group-offsets.") \
    I("group.instance.id", GROUP_WHY)                                                                                  \
    I("group.protocol", GROUP_WHY)                                                                                     \
    I("group.remote.assignor", GROUP_WHY)                                                                              \
    I("heartbeat.interval.ms", GROUP_WHY)                                                                              \
    R("interceptor.classes", JAVA_CLASS_WHY ": do its work in the query")                                              \
    I("internal.leave.group.on.close", GROUP_WHY)                                                                      \
    I("internal.throw.on.fetch.stable.offset.unsupported", "internal switch of the Java client")                       \
    M("isolation.level", ENUM, LOWER, "isolation.level", "read_committed", "read_committed (default here) or read_uncommitted (default of Java and so of Flink).") \
    I("key.deserializer", "the table's key.format decodes keys")                                                       \
    N("max.partition.fetch.bytes", "fetch.message.max.bytes", 1, 1000000000, NULL, "Most bytes of one partition in an answer; unless set, chosen by the memory that the source may use.") \
    I("max.poll.interval.ms", GROUP_WHY)                                                                               \
    I("max.poll.records", "records are handed over in batches sized for the columns")                                 \
    N("metadata.max.age.ms", "topic.metadata.refresh.interval.ms", 10, 3600000, "300000", "How often metadata is asked for anew.") \
    I("metadata.recovery.rebootstrap.trigger.ms", "lost brokers are looked for among the known and the bootstrap addresses all the time") \
    I("metadata.recovery.strategy", "lost brokers are looked for among the known and the bootstrap addresses all the time") \
    I("metric.reporters", METRICS_WHY)                                                                                 \
    I("metrics.num.samples", METRICS_WHY)                                                                              \
    I("metrics.recording.level", METRICS_WHY)                                                                          \
    I("metrics.sample.window.ms", METRICS_WHY)                                                                         \
    I("partition.assignment.strategy", GROUP_WHY)                                                                      \
    N("receive.buffer.bytes", "socket.receive.buffer.bytes", 0, 100000000, NULL, "SO_RCVBUF; -1 or unset: the system's choice.") \
    N("reconnect.backoff.max.ms", "reconnect.backoff.max.ms", 0, 3600000, "10000", "Longest wait between attempts to connect.") \
    N("reconnect.backoff.ms", "reconnect.backoff.ms", 0, 3600000, "100", "First wait between attempts to connect.")   \
    N("request.timeout.ms", "socket.timeout.ms", 10, 300000, "60000", "Time-out of a request.")                        \
    I("retry.backoff.max.ms", "retries wait for retry.backoff.ms each time")                                           \
    N("retry.backoff.ms", "retry.backoff.ms", 1, 300000, "100", "Wait before a request is sent again.")                \
    S("sasl.client.callback.handler.class", STRING, false, "Only MSK's IAMClientCallbackHandler, with mechanism AWS_MSK_IAM.") \
    S("sasl.jaas.config", STRING, true, "Login of PlainLoginModule or ScramLoginModule: module, required, username=\"...\" and password=\"...\", and a semicolon; or MSK's IAMLoginModule with its options (awsProfileName, awsRoleArn, ...).") \
    R("sasl.kerberos.kinit.cmd", KERBEROS_WHY)                                                                         \
    R("sasl.kerberos.min.time.before.relogin", KERBEROS_WHY)                                                           \
    R("sasl.kerberos.service.name", KERBEROS_WHY)                                                                      \
    R("sasl.kerberos.ticket.renew.jitter", KERBEROS_WHY)                                                               \
    R("sasl.kerberos.ticket.renew.window.factor", KERBEROS_WHY)                                                        \
    S("sasl.login.callback.handler.class", STRING, false, "Only MSK's IAMOAuthBearerLoginCallbackHandler, with mechanism OAUTHBEARER.") \
    R("sasl.login.class", JAVA_CLASS_WHY)                                                                              \
    I("sasl.login.connect.timeout.ms", "tokens are renewed when four fifths of their life are over")                                                 \
    I("sasl.login.read.timeout.ms", "tokens are renewed when four fifths of their life are over")                                                    \
    I("sasl.login.refresh.buffer.seconds", "tokens are renewed when four fifths of their life are over")                                             \
    I("sasl.login.refresh.min.period.seconds", "tokens are renewed when four fifths of their life are over")                                         \
    I("sasl.login.refresh.window.factor", "tokens are renewed when four fifths of their life are over")                                              \
    I("sasl.login.refresh.window.jitter", "tokens are renewed when four fifths of their life are over")                                              \
    I("sasl.login.retry.backoff.max.ms", "tokens are renewed when four fifths of their life are over")                                               \
    I("sasl.login.retry.backoff.ms", "tokens are renewed when four fifths of their life are over")                                                   \
    S("sasl.mechanism", STRING, false, "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")                                       \
    R("sasl.oauthbearer.assertion.algorithm", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.assertion.claim.aud", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.assertion.claim.exp.seconds", OIDC_WHY)                                                        \
    R("sasl.oauthbearer.assertion.claim.iss", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.assertion.claim.jti.include", OIDC_WHY)                                                        \
    R("sasl.oauthbearer.assertion.claim.nbf.seconds", OIDC_WHY)                                                        \
    R("sasl.oauthbearer.assertion.claim.sub", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.assertion.file", OIDC_WHY)                                                                     \
    R("sasl.oauthbearer.assertion.private.key.file", OIDC_WHY)                                                         \
    R("sasl.oauthbearer.assertion.private.key.passphrase", OIDC_WHY)                                                   \
    R("sasl.oauthbearer.assertion.template.file", OIDC_WHY)                                                            \
    R("sasl.oauthbearer.client.credentials.client.id", OIDC_WHY)                                                       \
    R("sasl.oauthbearer.client.credentials.client.secret", OIDC_WHY)                                                   \
    R("sasl.oauthbearer.clock.skew.seconds", OIDC_WHY)                                                                 \
    R("sasl.oauthbearer.expected.audience", OIDC_WHY)                                                                  \
    R("sasl.oauthbearer.expected.issuer", OIDC_WHY)                                                                    \
    R("sasl.oauthbearer.header.urlencode", OIDC_WHY)                                                                   \
    R("sasl.oauthbearer.jwks.endpoint.refresh.ms", OIDC_WHY)                                                           \
    R("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", OIDC_WHY)                                                 \
    R("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", OIDC_WHY)                                                     \
    R("sasl.oauthbearer.jwks.endpoint.url", OIDC_WHY)                                                                  \
    R("sasl.oauthbearer.jwt.retriever.class", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.jwt.validator.class", OIDC_WHY)                                                                \
    R("sasl.oauthbearer.scope", OIDC_WHY)                                                                              \
    R("sasl.oauthbearer.scope.claim.name", OIDC_WHY)                                                                   \
    R("sasl.oauthbearer.sub.claim.name", OIDC_WHY)                                                                     \
    R("sasl.oauthbearer.token.endpoint.url", OIDC_WHY)                                                                 \
    S("security.protocol", STRING, false, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")                               \
    R("security.providers", JCA_WHY)                                                                                   \
    N("send.buffer.bytes", "socket.send.buffer.bytes", 0, 100000000, NULL, "SO_SNDBUF; -1 or unset: the system's choice.") \
    I("session.timeout.ms", GROUP_WHY)                                                                                 \
    I("share.acknowledgement.mode", "it concerns share groups only")                                                   \
    I("socket.connection.setup.timeout.max.ms", "each attempt to connect has socket.connection.setup.timeout.ms")      \
    N("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.ms", 1000, 2147483647, "30000", "Time-out of one attempt to connect.") \
    R("ssl.cipher.suites", "Java's names of cipher suites are not OpenSSL's: set CipherString and Ciphersuites in openssl.cnf") \
    I("ssl.enabled.protocols", "OpenSSL negotiates the best version; openssl.cnf (MinProtocol) sets the least")        \
    M("ssl.endpoint.identification.algorithm", STRING, NONE_IF_EMPTY, "ssl.endpoint.identification.algorithm", "https", "https: the broker's certificate must match its name; empty: it need not.") \
    R("ssl.engine.factory.class", JAVA_CLASS_WHY)                                                                      \
    S("ssl.key.password", STRING, true, "Password of the private key.")                                                \
    R("ssl.keymanager.algorithm", JCA_WHY)                                                                             \
    S("ssl.keystore.certificate.chain", STRING, true, "Client certificate chain, PEM text.")                           \
    S("ssl.keystore.key", STRING, true, "Private key, PEM text.")                                                      \
    S("ssl.keystore.location", STRING, false, "File with the client's key and certificates: PEM, or PKCS12.")           \
    S("ssl.keystore.password", STRING, true, "Password of a PKCS12 key store.")                                        \
    S("ssl.keystore.type", STRING, false, "PEM or PKCS12. Java's default, JKS, is refused.")                           \
    I("ssl.protocol", "OpenSSL negotiates the best version; openssl.cnf (MinProtocol) sets the least")                 \
    R("ssl.provider", JCA_WHY)                                                                                         \
    R("ssl.secure.random.implementation", JCA_WHY)                                                                     \
    R("ssl.trustmanager.algorithm", JCA_WHY)                                                                           \
    S("ssl.truststore.certificates", STRING, true, "Trusted certificates, PEM text.")                                  \
    S("ssl.truststore.location", STRING, false, "File with trusted certificates, PEM.")                                \
    S("ssl.truststore.password", STRING, true, "Not needed for PEM.")                                                  \
    S("ssl.truststore.type", STRING, false, "PEM. Java's default, JKS, is refused, and so is PKCS12.")                 \
    I("value.deserializer", "the table's format decodes values")                                                       \
    /* Not of ConsumerConfig, but Flink's connector and older clients know them. */                                    \
    I("auto.include.jmx.reporter", METRICS_WHY)                                                                        \
    O("client.id.prefix", STRING, NULL, "Flink's name for client.id, which wins when both are given.")                 \
    O("commit.offsets.on.checkpoint", BOOL, "true", "Report group offsets after each commit, when group.id is given.") \
    I("partition.discovery.interval.ms", "use scan.topic-partition-discovery.interval")                                \
    I("register.consumer.metrics", METRICS_WHY)                                                                        \
    /* librdkafka's own names: scripts are written with the Java client's. */                                          \
    R("metadata.broker.list", "the Java client's name is bootstrap.servers")                                           \
    R("sasl.mechanisms", "the Java client's name is sasl.mechanism")                                                   \
    R("sasl.username", "the Java client has username and password in sasl.jaas.config")                                \
    R("sasl.password", "the Java client has username and password in sasl.jaas.config")                                \
    R("ssl.ca.location", "the Java client's names are ssl.truststore.location and ssl.truststore.type = PEM")          \
    R("ssl.ca.pem", "the Java client's names are ssl.truststore.certificates and ssl.truststore.type = PEM")           \
    R("ssl.certificate.location", "the Java client's names are ssl.keystore.location and ssl.keystore.type = PEM")     \
    R("ssl.certificate.pem", "the Java client's names are ssl.keystore.certificate.chain and ssl.keystore.type = PEM") \
    R("ssl.key.location", "the Java client's names are ssl.keystore.location and ssl.keystore.type = PEM (key and certificates in one file)") \
    R("ssl.key.pem", "the Java client's names are ssl.keystore.key and ssl.keystore.type = PEM")                       \
    R("enable.ssl.certificate.verification", "the Java client cannot switch it off either: give ssl.truststore.location") \
    R("fetch.wait.max.ms", "the Java client's name is fetch.max.wait.ms")                                              \
    R("fetch.message.max.bytes", "the Java client's name is max.partition.fetch.bytes")                                \
    R("socket.timeout.ms", "the Java client's name is request.timeout.ms")                                             \
    R("socket.receive.buffer.bytes", "the Java client's name is receive.buffer.bytes")                                 \
    R("socket.send.buffer.bytes", "the Java client's name is send.buffer.bytes")                                       \
    R("topic.metadata.refresh.interval.ms", "the Java client's name is metadata.max.age.ms")                           \
    R("queued.min.messages", "the source sizes its queues by memory.limit")                                            \
    R("queued.max.messages.kbytes", "the source sizes its queues by memory.limit")                                     \
    R("receive.message.max.bytes", "the source takes any record; see source.max-record-size")                          \
    R("enable.partition.eof", "the source needs it and sets it")                                                       \
    R("statistics.interval.ms", METRICS_WHY)                                                                           \
    R("debug", "use the job's log level")

#define OPT_M(k, t, h, rd, d, doc) {"properties." k, FZ_OPT_##t, FZ_OPT_USED, d, FZ_OPT_##t == FZ_OPT_ENUM ? "read_committed|read_uncommitted" : NULL, doc, NULL},
#define OPT_N(k, rd, lo, hi, d, doc) {"properties." k, FZ_OPT_INT, FZ_OPT_USED, d, NULL, doc, NULL},
#define OPT_O(k, t, d, doc) {"properties." k, FZ_OPT_##t, FZ_OPT_USED, d, NULL, doc, NULL},
#define OPT_S(k, t, secret, doc) {"properties." k, FZ_OPT_##t, FZ_OPT_USED, NULL, NULL, doc, NULL},
#define OPT_I(k, w) {"properties." k, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, w},
#define OPT_R(k, w) {"properties." k, FZ_OPT_STRING, FZ_OPT_REFUSED, NULL, NULL, NULL, w},

#define STARTUP_MODES "earliest-offset|latest-offset|group-offsets|timestamp|specific-offsets"
#define USED(name, type, dflt, doc) {name, FZ_OPT_##type, FZ_OPT_USED, dflt, NULL, doc, NULL}
#define CHOICE(name, allowed, dflt, doc) {name, FZ_OPT_ENUM, FZ_OPT_USED, dflt, allowed, doc, NULL}
#define IDLE(name, why) {name, FZ_OPT_STRING, FZ_OPT_NO_MEANING, NULL, NULL, NULL, why}

const fz_option kafka_options[] = {
    USED("topic", STRING, NULL, "Topic, or topics separated by semicolons. Either this or topic-pattern."),
    USED("topic-pattern", STRING, NULL, "Regular expression that the whole name of a topic must match."),
    USED("format", STRING, NULL, "Format of the value; the same as value.format."),
    USED("key.format", STRING, NULL, "Format of the key."),
    USED("key.fields", STRING, NULL, "Columns that come from the key, separated by semicolons."),
    USED("key.fields-prefix", STRING, NULL, "Prefix of the key's columns in the table, which the key's format does not see."),
    USED("value.format", STRING, NULL, "Format of the value."),
    CHOICE("value.fields-include", "ALL|EXCEPT_KEY", "ALL", "Whether the value holds the key's columns too."),
    CHOICE("scan.startup.mode", STARTUP_MODES, "group-offsets", "Where a partition begins that the table has no position for."),
    USED("scan.startup.specific-offsets", STRING, NULL, "partition:0,offset:42;partition:1,offset:300"),
    USED("scan.startup.timestamp-millis", INT, NULL, "Milliseconds since 1970-01-01T00:00:00Z."),
    CHOICE("scan.bounded.mode", "unbounded|latest-offset|group-offsets|timestamp|specific-offsets", "unbounded", "Where reading ends."),
    USED("scan.bounded.specific-offsets", STRING, NULL, "Ends, not read themselves: partition:0,offset:42;partition:1,offset:300"),
    USED("scan.bounded.timestamp-millis", INT, NULL, "Milliseconds since 1970-01-01T00:00:00Z."),
    USED("scan.topic-partition-discovery.interval", DURATION, "5 min", "How often new partitions and topics are looked for; 0: never."),
    IDLE("scan.parallelism", "parallelism.default sets the number of workers"),
    IDLE("scan.watermark.emit.strategy", WATERMARK_WHY),
    IDLE("scan.watermark.emit-strategy", WATERMARK_WHY),
    IDLE("scan.watermark.alignment.group", WATERMARK_WHY),
    IDLE("scan.watermark.alignment.max-drift", WATERMARK_WHY),
    IDLE("scan.watermark.alignment.update-interval", WATERMARK_WHY),
    IDLE("scan.watermark.idle-timeout", WATERMARK_WHY),
    IDLE("sink.partitioner", SINK_WHY),
    IDLE("sink.semantic", SINK_WHY),
    IDLE("sink.delivery-guarantee", SINK_WHY),
    IDLE("sink.transactional-id-prefix", SINK_WHY),
    IDLE("sink.transaction-naming-strategy", SINK_WHY),
    IDLE("sink.parallelism", SINK_WHY),
    IDLE("sink.buffer-flush.max-rows", SINK_WHY),
    IDLE("sink.buffer-flush.interval", SINK_WHY),
    PROPERTIES(OPT_M, OPT_N, OPT_O, OPT_S, OPT_I, OPT_R)
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

#define MAP_M(k, t, h, rd, d, doc) {k, KAFKA_HOW_##h, rd, 0, 0, false},
#define MAP_N(k, rd, lo, hi, d, doc) {k, KAFKA_HOW_INT, rd, lo, hi, false},
#define MAP_O(k, t, d, doc) {k, KAFKA_HOW_OURS, NULL, 0, 0, false},
#define MAP_S(k, t, secret, doc) {k, KAFKA_HOW_SECURITY, NULL, 0, 0, secret},
#define MAP_I(k, w) {k, KAFKA_HOW_IGNORED, NULL, 0, 0, false},
#define MAP_R(k, w) {k, KAFKA_HOW_REFUSED, NULL, 0, 0, false},

static const kafka_property properties[] = {PROPERTIES(MAP_M, MAP_N, MAP_O, MAP_S, MAP_I, MAP_R)};

const kafka_property *kafka_property_at(size_t i) { return i < sizeof properties / sizeof *properties ? &properties[i] : NULL; }
const kafka_property *kafka_property_find(const char *java) {
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(properties[i].java, java) == 0) return &properties[i];
    return NULL;
}
