/* Clients of librdkafka: made with our callbacks, and their errors told in our words.
 *
 * Threads: on_log and on_error run in librdkafka's threads or in whoever polls; they touch kafka_client only.
 */
#include "source/kafka_int.h"
#include <stdio.h>
#include <strings.h>

enum { LOG_BURST = 5, LOG_WINDOW_MS = 10000 };
#define TOKEN_TROUBLE_NS 30000000000ll /* a renewal that failed is tried again after 10 s */

/* librdkafka before 2.6.1 repeats the client's nonce in its last SCRAM message. Kafka checks it since CVE-2024-56128; 3.8.1 still let the
 * repetition pass, 4.0 and later do not. It cannot be mended from outside: the message is made and sent within the library. */
enum { SCRAM_MENDED = 0x020601ff };

static void log_limited(kafka_client *c, fz_log_level level, const char *event, const char *what, const char *text) {
    uint64_t suppressed = 0;
    pthread_mutex_lock(&c->lock);
    bool allowed = level < FZ_LOG_WARN || fz_log_allowed(&c->log_limit, LOG_BURST, LOG_WINDOW_MS, &suppressed);
    pthread_mutex_unlock(&c->lock);
    if (allowed)
        fz_log(level, event, FZ_KV("table", "%s", c->table), FZ_KV("what", "%s", what), FZ_KV("message", "%s", text),
               FZ_KV("suppressed", "%llu", (unsigned long long)suppressed), NULL);
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    kafka_client *c = rk ? rd_kafka_opaque(rk) : NULL;
    bool told_by_on_error = strcmp(facility, "FAIL") == 0;
    if (c) log_limited(c, level <= 4 && !told_by_on_error ? FZ_LOG_WARN : FZ_LOG_DEBUG, "kafka.client", facility, text);
}

/* Errors of a partition that are no fetch error (its topic is gone) do not come as messages: librdkafka calls on_error from
 * within the call that takes from the partition's queue. */
static _Thread_local rd_kafka_resp_err_t partition_error;

rd_kafka_resp_err_t kafka_take_partition_error(void) {
    rd_kafka_resp_err_t e = partition_error;
    partition_error = RD_KAFKA_RESP_ERR_NO_ERROR;
    return e;
}

static void on_error(rd_kafka_t *rk, int e, const char *reason, void *opaque) {
    kafka_client *c = opaque;
    rd_kafka_resp_err_t code = (rd_kafka_resp_err_t)e;
    (void)rk;
    /* That a token cannot be renewed now, and the old one is over, is no verdict on who we are: the service of credentials may come back. This may be
     * called some time after it happened. */
    bool login = code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
    int64_t trouble = atomic_load(&c->token_trouble_ns);
    if (login && c->msk && (fz_starts(reason, "Failed to acquire") || (trouble && fz_mono_ns() - trouble < TOKEN_TROUBLE_NS))) {
        log_limited(c, FZ_LOG_WARN, "kafka.no-token", rd_kafka_err2name(code), reason);
        return;
    }
    if (login || code == RD_KAFKA_RESP_ERR__SSL) {
        pthread_mutex_lock(&c->lock);
        snprintf(c->auth_text, sizeof c->auth_text, "%s", reason);
        pthread_mutex_unlock(&c->lock);
        atomic_store(&c->auth_failed, e);
    }
    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        partition_error = code;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) atomic_fetch_add(&c->all_down, 1);
    log_limited(c, FZ_LOG_WARN, "kafka.connection", rd_kafka_err2name(code), reason);
}

static void client_free(kafka_client *c) {
    kafka_msk_free(c->msk);
    c->msk = NULL;
    pthread_mutex_destroy(&c->lock);
}

void kafka_client_free(kafka_client *client, rd_kafka_t *rk) {
    if (!rk) return;
    /* Not the polite leave of a group: none of our clients is a member of one. */
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    client_free(client);
}

/* In a background thread of librdkafka, when four fifths of a token's life are over, and 10 s after a failure. */
static void on_token_wanted(rd_kafka_t *rk, const char *config, void *opaque) {
    kafka_client *c = opaque;
    fz_error err = {0};
    char text[sizeof err.message + sizeof err.detail + 8];
    (void)config;
    fz_status rc = kafka_msk_give_token(c->msk, rk, &err);
    if (rc == FZ_OK) return;
    if (rc == FZ_RETRY) atomic_store(&c->token_trouble_ns, fz_mono_ns());
    fz_log_error(FZ_LOG_WARN, "kafka.token", &err);
    snprintf(text, sizeof text, err.detail[0] ? "%s (%s)" : "%s", err.message, err.detail);
    rd_kafka_oauthbearer_set_token_failure(rk, text);
}

/* The first token is there before anything connects, so that its errors are told as they are. */
static fz_status start_tokens(kafka_client *c, rd_kafka_t *rk, fz_error *err) {
    if (!c->msk) return FZ_OK;
    FZ_TRY(kafka_msk_give_token(c->msk, rk, err));
    rd_kafka_error_t *e = rd_kafka_sasl_background_callbacks_enable(rk);
    if (!e) return FZ_OK;
    fz_fail(err, FZ_FATAL, "kafka.client", "table %s: %s", c->table, rd_kafka_error_string(e));
    rd_kafka_error_destroy(e);
    return FZ_FATAL;
}

fz_status kafka_client_new(const fz_pair *options, size_t n, kafka_client_kind kind, const kafka_limits *limits, kafka_client *client,
                           rd_kafka_t **out, fz_error *err) {
    rd_kafka_conf_t *conf;
    *out = NULL;
    FZ_TRY(kafka_conf_make(options, n, kind, limits, &conf, err));
    fz_status rc = kafka_msk_new(options, n, &client->msk, err);
    if (rc != FZ_OK) {
        rd_kafka_conf_destroy(conf);
        return rc;
    }
    pthread_mutex_init(&client->lock, NULL);
    const char *mechanism = fz_pair_get(options, n, "properties.sasl.mechanism");
    client->scram = mechanism && strncasecmp(mechanism, "SCRAM", 5) == 0;
    rd_kafka_conf_set_opaque(conf, client);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (client->msk) {
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token_wanted);
        rd_kafka_conf_enable_sasl_queue(conf, 1); /* served in the background: nobody polls while a statement is prepared */
    }
    char text[512];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        rc = fz_fail(err, FZ_USER, "kafka.configuration", "table %s: the Kafka client does not take its configuration: %s", client->table, text);
    } else rc = start_tokens(client, rk, err);
    if (rc == FZ_OK) *out = rk;
    else if (rk) kafka_client_free(client, rk);
    else client_free(client);
    return rc;
}

static fz_status refused(kafka_client *c, rd_kafka_resp_err_t e, fz_error *err) {
    pthread_mutex_lock(&c->lock);
    bool tls = e == RD_KAFKA_RESP_ERR__SSL, scram = !tls && c->scram && rd_kafka_version() < SCRAM_MENDED;
    fz_fail(err, FZ_USER, tls ? "kafka.tls" : "kafka.authentication", tls ? "table %s: no TLS connection to the Kafka brokers" : "table %s: the Kafka broker refuses the login",
            c->table);
    fz_detail(err, "%s", c->auth_text);
    pthread_mutex_unlock(&c->lock);
    if (c->msk && !tls)
        return fz_hint(err, "the identity needs kafka-cluster:Connect on the cluster in its IAM policy, the token must be for the cluster's region, and the clock must be right");
    if (scram)
        return fz_hint(err, "check user and password. Brokers since Kafka 4.0, and patched older ones, refuse any SCRAM login of librdkafka before 2.6.1, and this is %s: "
                            "use a newer librdkafka, PLAIN over TLS, or TLS client certificates", rd_kafka_version_str());
    return fz_hint(err, "%s", tls ? "check properties.security.protocol, properties.ssl.truststore.* and the name in the broker's certificate"
                                  : "check properties.security.protocol, properties.sasl.mechanism and the user and password in properties.sasl.jaas.config");
}

fz_status kafka_request_error(kafka_client *client, rd_kafka_resp_err_t e, const char *what, fz_error *err) {
    int auth = atomic_load(&client->auth_failed);
    if (auth) return refused(client, (rd_kafka_resp_err_t)auth, err);
    switch (e) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        return fz_fail(err, FZ_USER, "kafka.authorization", "table %s: %s: %s", client->table, what, rd_kafka_err2str(e));
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
        return fz_fail(err, FZ_RETRY, "kafka.unreachable", "table %s: %s: %s", client->table, what, rd_kafka_err2str(e));
    default: return fz_fail(err, FZ_RETRY, "kafka.request", "table %s: %s: %s", client->table, what, rd_kafka_err2str(e));
    }
}
