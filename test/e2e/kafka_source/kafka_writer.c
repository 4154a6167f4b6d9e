/* Writes records for run.sh, in ways that kcat cannot: transactions, nulls, headers, records of any size.
 *
 *   kafka_writer BOOTSTRAP TOPIC PARTITION [KEY=VALUE...] STEP...      KEY=VALUE: librdkafka's settings
 * STEPs, in this order; the n-th record (from 1) has the key "kN" and the value "rN":
 *   plain:N       N records outside of a transaction          null:N       the same with null values and keys
 *   empty:N       with empty values                           headers:N    with headers h1=x, h2=<null>
 *   size:BYTES    one record of that size                     commit:N abort:N   N records in one transaction
 *   two:N         two producers, each with a transaction of N records, interleaved; the first commits, the second aborts
 *   open:N        a transaction that nobody ends */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *bootstrap, *topic, *settings[32];
static int partition, n_settings, serial;

static void die(const char *what, const char *why) {
    fprintf(stderr, "kafka_writer: %s: %s\n", what, why);
    exit(1);
}

static rd_kafka_t *producer(int transactional) {
    char text[512], id[64];
    static int count;
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    rd_kafka_conf_set(c, "bootstrap.servers", bootstrap, text, sizeof text);
    rd_kafka_conf_set(c, "linger.ms", "50", text, sizeof text);
    rd_kafka_conf_set(c, "message.max.bytes", "200000000", text, sizeof text);
    rd_kafka_conf_set(c, "queue.buffering.max.kbytes", "400000", text, sizeof text);
    snprintf(id, sizeof id, "writer-%d-%d", (int)getpid(), count++);
    if (transactional) rd_kafka_conf_set(c, "transactional.id", id, text, sizeof text);
    for (int i = 0; i < n_settings; i++) {
        char *pair = strdup(settings[i]), *eq = strchr(pair, '=');
        *eq = 0;
        if (rd_kafka_conf_set(c, pair, eq + 1, text, sizeof text)) die(pair, text);
        free(pair);
    }
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, c, text, sizeof text);
    if (!rk) die("producer", text);
    if (transactional) {
        rd_kafka_error_t *e = rd_kafka_init_transactions(rk, 30000);
        if (e) die("init", rd_kafka_error_string(e));
    }
    return rk;
}

static void put(rd_kafka_t *rk, const char *kind, size_t size) {
    char key[32], value[32], *big = NULL;
    int n = ++serial;
    snprintf(key, sizeof key, "k%d", n);
    snprintf(value, sizeof value, "r%d", n);
    if (size) memset(big = malloc(size), 'x', size);
    int null = !strcmp(kind, "null");
    void *v = null ? NULL : big ? big : value;
    size_t len = null || !strcmp(kind, "empty") ? 0 : big ? size : strlen(value);
    rd_kafka_resp_err_t e;
    if (!strcmp(kind, "headers"))
        e = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_VALUE(v, len),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADER("h1", "x", 1), RD_KAFKA_V_HEADER("h2", NULL, 0), RD_KAFKA_V_END);
    else
        e = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(null ? NULL : key, null ? 0 : strlen(key)),
                              RD_KAFKA_V_VALUE(v, len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (e) die("produce", rd_kafka_err2str(e));
    free(big);
    rd_kafka_poll(rk, 0);
}

static void check(rd_kafka_error_t *e, const char *what) {
    if (e) die(what, rd_kafka_error_string(e));
}
static void flush(rd_kafka_t *rk) {
    rd_kafka_resp_err_t e = rd_kafka_flush(rk, 120000);
    if (e) die("flush", rd_kafka_err2str(e));
}

static void two(long n) {
    rd_kafka_t *a = producer(1), *b = producer(1);
    check(rd_kafka_begin_transaction(a), "begin");
    check(rd_kafka_begin_transaction(b), "begin");
    for (long i = 0; i < n; i++) {
        put(a, "plain", 0);
        flush(a);
        put(b, "plain", 0);
        flush(b);
    }
    check(rd_kafka_abort_transaction(b, 30000), "abort");
    check(rd_kafka_commit_transaction(a, 30000), "commit");
    rd_kafka_destroy(a);
    rd_kafka_destroy(b);
}

int main(int argc, char **argv) {
    if (argc < 5) die("usage", "see the head of its source");
    bootstrap = argv[1];
    topic = argv[2];
    partition = atoi(argv[3]);
    int first = 4;
    while (first < argc && strchr(argv[first], '=') && n_settings < 32) settings[n_settings++] = argv[first++];
    rd_kafka_t *plain = NULL, *txn = NULL;
    for (int i = first; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        if (!colon) die("step", argv[i]);
        *colon = 0;
        long n = strtol(colon + 1, NULL, 10);
        int transaction = !strcmp(argv[i], "commit") || !strcmp(argv[i], "abort") || !strcmp(argv[i], "open");
        if (!strcmp(argv[i], "two")) {
            two(n);
            continue;
        }
        if (transaction && !txn) txn = producer(1);
        if (!transaction && !plain) plain = producer(0);
        rd_kafka_t *rk = transaction ? txn : plain;
        if (transaction) check(rd_kafka_begin_transaction(rk), "begin");
        if (!strcmp(argv[i], "size")) put(rk, "plain", (size_t)n);
        else
            for (long j = 0; j < n; j++) put(rk, argv[i], 0);
        flush(rk);
        if (!strcmp(argv[i], "commit")) check(rd_kafka_commit_transaction(rk, 30000), "commit");
        if (!strcmp(argv[i], "abort")) check(rd_kafka_abort_transaction(rk, 30000), "abort");
        if (!strcmp(argv[i], "open")) _exit(0);
    }
    if (plain) rd_kafka_destroy(plain);
    if (txn) rd_kafka_destroy(txn);
    return 0;
}
