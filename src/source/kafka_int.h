/* Inside the Kafka connector: its state, and what its files offer one another.
 *
 *   kafka.c          open, close, bounds, lag, report: the table of functions
 *   kafka_options.c  the table of options, with every key of the Java consumer
 *   kafka_conf.c     properties.* -> configuration of librdkafka; security
 *   kafka_jaas.c     sasl.jaas.config
 *   kafka_msk.c      logins to Amazon MSK with IAM
 *   kafka_start.c    scan.startup.* and scan.bounded.*: parsing, and resolving to numbers
 *   kafka_topics.c   metadata: topics, patterns, partitions, discovery
 *   kafka_read.c     assign and poll
 *   kafka_chunk.c    messages -> chunks
 *   kafka_probe.c    the record before a position
 *
 * Two clients: `control` asks (metadata, offsets, commits) and never reads; `data` reads and knows no group. `control` reads
 * uncommitted, so that "the end" is the high watermark, as Flink's enumerator has it; `data` is read_committed unless the
 * script says otherwise.
 *
 * Invariants
 *  1. kafka_split.position is the next offset to hand out; only src_assign and the reader's worker write it.
 *  2. librdkafka never resets an offset (auto.offset.reset=error) and never commits by itself.
 *  3. Values of secret properties stand in rd_kafka_conf_t and in no log, error or struct of ours after open.
 * Threads: see source.h; librdkafka's callbacks run in threads of its own and touch only what is marked so.
 */
#ifndef SRC_KAFKA_INT_H
#define SRC_KAFKA_INT_H
#include "source/source_int.h"
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>

/* --- starts and stops --- */

typedef enum { KAFKA_AT_EARLIEST, KAFKA_AT_LATEST, KAFKA_AT_GROUP, KAFKA_AT_TIMESTAMP, KAFKA_AT_SPECIFIC, KAFKA_UNBOUNDED } kafka_at;
typedef struct kafka_specific { int32_t partition; int64_t offset; } kafka_specific;
typedef struct kafka_place {
    kafka_at at;
    int64_t timestamp_ms;       /* AT_TIMESTAMP */
    kafka_specific *specific;   /* AT_SPECIFIC */
    size_t n_specific;
} kafka_place;
typedef enum { KAFKA_RESET_NONE, KAFKA_RESET_EARLIEST, KAFKA_RESET_LATEST } kafka_reset;

/* What the options say, without what only librdkafka needs. */
typedef struct kafka_config {
    char **topics;              /* sorted, without repeats; NULL with a pattern */
    size_t n_topics;
    char *pattern;              /* NULL with a list */
    regex_t pattern_re;
    char *group;                /* NULL: none given */
    bool report;                /* a group is given and commit.offsets.on.checkpoint is not false */
    kafka_place start, stop;
    kafka_reset reset;          /* auto.offset.reset, for partitions whose group has no offset */
    int64_t discovery_ms;       /* <= 0: never */
} kafka_config;

fz_status kafka_config_init(kafka_config *c, const fz_pair *options, size_t n, fz_error *err) FZ_MUST_USE;
void kafka_config_free(kafka_config *c);
/* "partition:0,offset:42;partition:1,offset:300" -> heap array. Code "option.invalid". */
fz_status kafka_parse_specific(const char *option, const char *text, kafka_specific **out, size_t *n, fz_error *err) FZ_MUST_USE;
/* A Java regular expression, matched against whole topic names, as a POSIX one. USER for what POSIX cannot say. */
fz_status kafka_pattern_compile(const char *java, regex_t *out, fz_error *err) FZ_MUST_USE;

/* --- properties --- */

typedef enum {
    KAFKA_HOW_COPY,      /* value as it is */
    KAFKA_HOW_LOWER,     /* value in lower case */
    KAFKA_HOW_INT,       /* a whole number, clamped to what librdkafka takes */
    KAFKA_HOW_BOOL,
    KAFKA_HOW_NONE_IF_EMPTY,
    KAFKA_HOW_OURS,      /* honoured by this connector, nothing is given to librdkafka */
    KAFKA_HOW_SECURITY,  /* kafka_conf.c joins several keys */
    KAFKA_HOW_IGNORED,
    KAFKA_HOW_REFUSED
} kafka_how;
typedef struct kafka_property {
    const char *java;    /* without "properties." */
    kafka_how how;
    const char *rd;      /* librdkafka's key, or NULL */
    int64_t least, most; /* of HOW_INT */
    bool secret;
} kafka_property;
extern const fz_option kafka_options[];
const kafka_property *kafka_property_find(const char *java); /* NULL: unknown */
const kafka_property *kafka_property_at(size_t i);           /* NULL past the end */

/* So many partitions may be behind, that is have full queues, at once; more take turns. */
enum { KAFKA_ACTIVE = 8 };
typedef struct kafka_limits { uint64_t memory; uint32_t n_splits; } kafka_limits;
int kafka_queue_low(const kafka_limits *limits); /* queued.min.messages */
/* Makes the configuration that a client of the given kind needs. The caller owns *out until a client takes it. */
typedef enum { KAFKA_CLIENT_CONTROL, KAFKA_CLIENT_DATA, KAFKA_CLIENT_PROBE } kafka_client_kind;
fz_status kafka_conf_make(const fz_pair *options, size_t n, kafka_client_kind kind, const kafka_limits *limits, rd_kafka_conf_t **out,
                          fz_error *err) FZ_MUST_USE;
/* librdkafka's key and value pairs that the options lead to, for tests: calls put for each in order. Secrets are given too. */
typedef fz_status (*kafka_put)(void *opaque, const char *key, const char *value, fz_error *err);
fz_status kafka_conf_map(const fz_pair *options, size_t n, kafka_put put, void *opaque, fz_error *err) FZ_MUST_USE;

enum { KAFKA_JAAS_OPTIONS = 32 };
typedef struct kafka_jaas {
    char *module; /* class name */
    char *username, *password;
    struct { char *name, *value; } options[KAFKA_JAAS_OPTIONS]; /* the others */
    size_t n_options;
} kafka_jaas;
/* Errors never quote the text. Codes "kafka.jaas". */
fz_status kafka_jaas_parse(const char *text, kafka_jaas *out, fz_error *err) FZ_MUST_USE;
void kafka_jaas_free(kafka_jaas *j);
const char *kafka_jaas_get(const kafka_jaas *j, const char *name); /* NULL: not given */

/* --- logins to Amazon MSK with IAM: SASL/OAUTHBEARER with a token signed by AWS credentials --- */

typedef struct kafka_msk kafka_msk;
/* Whether the options ask for it: mechanism AWS_MSK_IAM, or OAUTHBEARER with IAMOAuthBearerLoginCallbackHandler. */
bool kafka_msk_wanted(const fz_pair *options, size_t n);
/* Checks class names and the login module's options. USER "kafka.jaas", "option.refused". Asks nobody. */
fz_status kafka_msk_check(const fz_pair *options, size_t n, fz_error *err) FZ_MUST_USE;
/* *out NULL when it is not wanted. Reads environment and profile files; the caller frees it. */
fz_status kafka_msk_new(const fz_pair *options, size_t n, kafka_msk **out, fz_error *err) FZ_MUST_USE;
void kafka_msk_free(kafka_msk *m); /* NULL is allowed */
/* Gives rk a new token. Any thread. The errors of aws_msk_token. */
fz_status kafka_msk_give_token(kafka_msk *m, rd_kafka_t *rk, fz_error *err) FZ_MUST_USE;
/* src_aws_login. */
fz_status kafka_aws_login(const fz_pair *options, size_t n, fz_arena *a, fz_pair **out, size_t *n_out, bool *wanted, fz_error *err) FZ_MUST_USE;
/* The region in a broker's name ("b-1.x.kafka.eu-west-1.amazonaws.com:9098"), into out; false: there is none. */
bool kafka_msk_region(const char *servers, char out[64]);

/* --- the source --- */

typedef struct kafka_source kafka_source;
typedef struct kafka_split {
    src_split *base;
    uint32_t index;
    rd_kafka_topic_t *topic;       /* of the data client; made when the split is first started */
    rd_kafka_queue_t *queue;       /* NULL while the split is not started */
    _Atomic int64_t position;      /* next offset to hand out; -1: not assigned */
    _Atomic int64_t end;           /* of the log, when it was asked for last; for who may be any thread */
    bool at_end, done;             /* reader's worker only, while assigned: nothing more now; stop reached */
    rd_kafka_resp_err_t failed;    /* met behind records that were handed out first; told at the next poll */
    uint64_t taken;                /* bytes since it was started, for taking turns */
} kafka_split;

typedef struct kafka_reader {
    kafka_source *source;
    kafka_split **mine;            /* assigned to this reader */
    uint32_t n_mine, cap_mine;
    uint32_t next;                 /* where the round begins */
    uint32_t next_start;           /* the same for splits that wait for their turn */
    rd_kafka_message_t **messages; /* FZ_BATCH_ROWS of them */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool ready;                    /* under lock; set by librdkafka's threads: some queue is no longer empty */
} kafka_reader;

typedef struct kafka_chunk kafka_chunk;
typedef struct kafka_pool {
    pthread_mutex_t lock;
    kafka_chunk *spare;
    uint32_t n_spare, most_spare;
    bool closed;
    uint32_t out;                  /* chunks that somebody holds */
} kafka_pool;

typedef struct kafka_client {      /* what librdkafka's callbacks are given */
    const char *table;
    bool scram;                    /* the login is by SCRAM */
    kafka_msk *msk;                /* the login is by a token of AWS; NULL: it is not */
    _Atomic int64_t token_trouble_ns; /* when a token could last not be had, for reasons that may pass (monotonic); 0: never */
    _Atomic int auth_failed;       /* an rd_kafka_resp_err_t */
    _Atomic int all_down;
    pthread_mutex_t lock;          /* the rest */
    char auth_text[256];
    fz_log_limit log_limit;
} kafka_client;

struct kafka_source {
    src_source base;
    kafka_config config;
    fz_pair *options;              /* copies; wiped when closed: the data client is made after open */
    size_t n_options;
    kafka_client control_client, data_client, probe_client;
    rd_kafka_t *control, *data, *probe; /* data and probe: NULL until needed */
    rd_kafka_queue_t *commits;     /* answers to offset commits */
    kafka_split **splits;          /* parallel to base.splits; SRC_MAX_SPLITS places */
    kafka_reader *readers;
    kafka_pool pool;
    char *user, *password;         /* see wake_fetcher; wiped when closed */
    int queue_low;                 /* messages in a queue below which its partition may fetch */
    uint32_t active_per_reader;    /* splits that may be started and behind at once */
    int64_t next_discovery_ns;
};
static inline kafka_source *kafka_of(src_source *s) { return (kafka_source *)s; }

/* A client with our callbacks. USER for a configuration that librdkafka does not take. */
fz_status kafka_client_new(const fz_pair *options, size_t n, kafka_client_kind kind, const kafka_limits *limits, kafka_client *client,
                           rd_kafka_t **out, fz_error *err) FZ_MUST_USE;
void kafka_client_free(kafka_client *client, rd_kafka_t *rk);
/* The error for a failed request: RETRY, or USER when the broker refuses who we are. */
fz_status kafka_request_error(kafka_client *client, rd_kafka_resp_err_t e, const char *what, fz_error *err);

/* An error of the partition whose queue this thread has just taken from, and forgets it. */
rd_kafka_resp_err_t kafka_take_partition_error(void);

/* Waits until the cluster answers, or fails: RETRY "kafka.unreachable", USER "kafka.authentication". Sets identity. */
fz_status kafka_connect(kafka_source *k, fz_error *err) FZ_MUST_USE;
/* Finds partitions that are not among the splits yet, in order of topic and partition, appends them and resolves their start
 * and stop. later: they are found after open. */
fz_status kafka_find_splits(kafka_source *k, bool later, uint32_t *added, fz_error *err) FZ_MUST_USE;
/* Resolves start, stop, low and high of splits [from, n). */
fz_status kafka_resolve(kafka_source *k, uint32_t from, bool later, fz_error *err) FZ_MUST_USE;
/* Offsets by timestamp (or RD_KAFKA_OFFSET_BEGINNING, _END) for splits [from, n) into out[]; -1 where there is none. */
fz_status kafka_list_offsets(kafka_source *k, uint32_t from, int64_t timestamp, int64_t *out, fz_error *err) FZ_MUST_USE;
fz_status kafka_bounds(src_source *s, uint32_t split, fz_error *err) FZ_MUST_USE;

fz_status kafka_report_check(src_source *s, const char **group, fz_error *err) FZ_MUST_USE;

/* --- reading --- */
void kafka_readers_init(kafka_source *k);
void kafka_readers_free(kafka_source *k);
fz_status kafka_assign(src_source *s, uint32_t split, int64_t from, fz_error *err) FZ_MUST_USE;
fz_status kafka_unassign_all(src_source *s, fz_error *err) FZ_MUST_USE;
fz_status kafka_poll(src_source *s, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err) FZ_MUST_USE;
fz_status kafka_probe_before(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err) FZ_MUST_USE;

/* Makes a record of a message. The record points into the message unless it is oversized. */
void kafka_record_of(const rd_kafka_message_t *m, uint32_t max_record_size, fz_record *out);

struct kafka_chunk {
    fz_chunk chunk;                /* first */
    kafka_pool *pool;
    kafka_chunk *next;             /* in the pool */
    fz_record *records;
    rd_kafka_message_t **messages;
    uint32_t cap, n_messages;
    fz_arena *arena;               /* headers; NULL until needed */
};
void kafka_pool_init(kafka_pool *p, uint32_t most_spare);
void kafka_pool_free(kafka_pool *p);
/* A chunk with room for n records. */
kafka_chunk *kafka_chunk_new(kafka_pool *p, uint32_t n);
/* Takes the message over: adds its record, or destroys it at once when it is oversized. */
void kafka_chunk_add(kafka_chunk *c, rd_kafka_message_t *m, uint32_t max_record_size, bool headers);
#endif
