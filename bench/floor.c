/* The floor of the benchmark: the least that any program of this kind must do. Reads every message of the topics with librdkafka and compresses
 * the message bytes with zstd -3 in blocks of 1 MiB. No JSON, no SQL, no columns, no files.
 *
 * usage: floor BROKER TOPIC...   prints: messages, bytes, compressed bytes, CPU seconds, wall seconds, VmHWM, messages per CPU-second */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zstd.h>

#define BLOCK ((size_t)1 << 20)
#define MOST_PARTITIONS 256

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "floor: %s\n", what);
    exit(1);
}

static rd_kafka_t *consumer(const char *broker) {
    static const char *const settings[][2] = {{"group.id", "floor"}, {"enable.auto.commit", "false"}, {"auto.offset.reset", "earliest"},
                                              {"enable.partition.eof", "true"}, {"queued.min.messages", "1000000"}, {"fetch.wait.max.ms", "10"}};
    char err[256];
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    must(rd_kafka_conf_set(c, "bootstrap.servers", broker, err, sizeof err) == RD_KAFKA_CONF_OK, err);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        must(rd_kafka_conf_set(c, settings[i][0], settings[i][1], err, sizeof err) == RD_KAFKA_CONF_OK, err);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, c, err, sizeof err);
    must(rk != NULL, err);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static int assign_all(rd_kafka_t *rk, char **topics, int n) {
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(8);
    const struct rd_kafka_metadata *md;
    must(rd_kafka_metadata(rk, 1, NULL, &md, 10000) == RD_KAFKA_RESP_ERR_NO_ERROR, "no metadata");
    for (int t = 0; t < md->topic_cnt; t++)
        for (int k = 0; k < n; k++)
            if (strcmp(md->topics[t].topic, topics[k]) == 0)
                for (int p = 0; p < md->topics[t].partition_cnt; p++) rd_kafka_topic_partition_list_add(l, topics[k], p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    int count = l->cnt;
    must(rd_kafka_assign(rk, l) == RD_KAFKA_RESP_ERR_NO_ERROR, "cannot assign");
    rd_kafka_topic_partition_list_destroy(l);
    rd_kafka_metadata_destroy(md);
    return count;
}

static long high_water_kb(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = 0;
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kb);
    if (f) fclose(f);
    return kb;
}

int main(int argc, char **argv) {
    must(argc > 2, "usage: floor BROKER TOPIC...");
    rd_kafka_t *rk = consumer(argv[1]);
    int left = assign_all(rk, argv + 2, argc - 2);
    rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    char *block = malloc(BLOCK + (16u << 20));
    size_t at = 0, cap = ZSTD_compressBound(BLOCK + (16u << 20));
    char *out = malloc(cap);
    must(z && block && out, "no memory");
    unsigned long long messages = 0, bytes = 0, compressed = 0;
    static rd_kafka_message_t *batch[10000];
    double began = now();
    while (left > 0) {
        ssize_t n = rd_kafka_consume_batch_queue(q, 1000, batch, sizeof batch / sizeof *batch);
        for (ssize_t i = 0; i < n; i++) {
            rd_kafka_message_t *m = batch[i];
            if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) left--;
            else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                messages++;
                bytes += m->len;
                memcpy(block + at, m->payload, m->len);
                at += m->len;
                if (at >= BLOCK) {
                    compressed += ZSTD_compressCCtx(z, out, cap, block, at, 3);
                    at = 0;
                }
            }
            rd_kafka_message_destroy(m);
        }
    }
    compressed += ZSTD_compressCCtx(z, out, cap, block, at, 3);
    double wall = now() - began;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
    printf("messages %llu\nbytes %llu\ncompressed %llu\ncpu_s %.3f\nwall_s %.3f\nvmhwm_kb %ld\nper_cpu_s %.0f\nper_s %.0f\n", messages, bytes, compressed, cpu, wall,
           high_water_kb(), (double)messages / cpu, (double)messages / wall);
    fflush(stdout);
    _Exit(0); /* the consumer's orderly leave takes seconds and measures nothing */
}
