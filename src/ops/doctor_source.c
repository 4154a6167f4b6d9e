/* Sources: Kafka's brokers, login, topics, start offsets and group, each a step of its own; other connectors as a whole. Reads no record.
 * One opening of the source answers all questions up to the first that fails; its code says which one that was. */
#include "ops/doctor_int.h"
#include "job/scan.h"
#include "source/source.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct kafka_steps { doc_step *brokers, *login, *topic, *offsets, *group; } kafka_steps;

static const char *opt(const sql_table *t, const char *key) { return fz_pair_get(t->options, t->n_options, key); }

/* ---- TCP ---- */

/* "SSL://host:port" and "[::1]:port" are addresses too. */
static bool split_server(doctor *d, fz_sv s, const char **host, int *port) {
    s = fz_sv_trim(s);
    for (size_t i = 0; i + 3 <= s.n; i++)
        if (memcmp(s.p + i, "://", 3) == 0) {
            s = (fz_sv){s.p + i + 3, s.n - i - 3};
            break;
        }
    size_t colon = s.n;
    while (colon > 0 && s.p[colon - 1] != ':') colon--;
    int64_t n = 9092;
    fz_sv name = s;
    if (colon > 0 && !(colon > 1 && memchr(s.p, ':', colon - 1) && s.p[0] != '[')) {
        if (!fz_parse_i64((fz_sv){s.p + colon, s.n - colon}, &n) || n <= 0 || n > 65535) return false;
        name.n = colon - 1;
    }
    if (name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']') name = (fz_sv){name.p + 1, name.n - 2};
    if (!name.n) return false;
    *host = fz_arena_strndup(d->a, name.p, name.n);
    *port = (int)n;
    return true;
}

static void check_brokers(doctor *d, doc_step *s, const char *servers) {
    uint32_t good = 0, all = 0;
    bool name = false, tcp = false;
    doc_asked(d, s, "connect to each of %s", servers);
    for (const char *p = servers; *p && !doc_blocked(d, s, NULL);) {
        size_t n = strcspn(p, ",");
        const char *host, *address = "";
        int port;
        fz_error e = {0};
        all++;
        if (!split_server(d, (fz_sv){p, n}, &host, &port)) doc_warn(d, s, "'%.*s' is no host:port", (int)n, p);
        else if (net_reach_tcp(host, port, DOC_STEP_MS / 2, d->a, &address, &e) == FZ_OK) {
            good++;
            doc_ok(d, s, "%s:%d reached%s%s%s", host, port, *address ? " at " : "", address, "");
        } else {
            name |= strcmp(e.code, "net.resolve") == 0;
            tcp |= strcmp(e.code, "net.resolve") != 0;
            const char *why = fz_starts(e.message, "http://") ? strstr(e.message, ": ") : NULL; /* the way it was asked is no matter here */
            doc_warn(d, s, "%s:%d: %s [%s]", host, port, why ? why + 2 : e.message, e.code);
        }
        p += n + (p[n] == ',');
    }
    if (good == all) return;
    if (!good) s->status = OPS_STEP_FAIL;
    if (name) doc_advise(d, s, "a name that does not resolve: correct 'properties.bootstrap.servers', or DNS and /etc/hosts on this machine");
    if (tcp) doc_advise(d, s, "a refused or silent port: is the broker up, does its listener have this address, does a firewall stand between?");
}

/* ---- the source ---- */

/* Which question an error of opening answers: the one that stands in its words, else by its code. */
static doc_step *blame(const kafka_steps *k, const fz_error *e) {
    static const char *const login[] = {"kafka.authentication", "kafka.tls", "kafka.unreachable", "kafka.configuration", "kafka.jaas", "kafka.token", NULL};
    if (strcmp(e->code, "kafka.unknown-topic") == 0 || strstr(e->message, "describe topic") || strstr(e->message, "the topic's metadata") || strstr(e->message, "the list of topics")) return k->topic;
    if (strstr(e->message, "offsets of the group")) return k->group;
    for (int i = 0; login[i]; i++)
        if (strcmp(e->code, login[i]) == 0) return k->login;
    return fz_starts(e->code, "aws.") ? k->login : k->offsets;
}

static void advise(doctor *d, doc_step *s, const sql_table *t, const fz_error *e) {
    const char *topic = opt(t, "topic"), *servers = opt(t, "properties.bootstrap.servers"), *group = opt(t, "properties.group.id");
    if (strcmp(e->code, "kafka.unknown-topic") == 0 && topic)
        doc_advise(d, s, "kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 3", servers, topic);
    if (strcmp(e->code, "kafka.authorization") == 0)
        doc_advise(d, s, "kafka-acls.sh --bootstrap-server %s --add --allow-principal User:... --operation Read --operation Describe --topic %s --group %s", servers, topic ? topic : "...",
                 group ? group : "...");
    if (strcmp(e->code, "kafka.unreachable") == 0)
        doc_advise(d, s, "the ports answer, Kafka does not: check 'properties.security.protocol', and that this machine reaches the brokers' advertised listeners (their own names for themselves)");
}

static void tell_splits(doctor *d, const kafka_steps *k, const src_source *src) {
    uint32_t n = src_n_splits(src), none = 0;
    uint64_t records = 0;
    for (uint32_t i = 0; i < n; i++) {
        const src_split *s = src_get_split(src, i);
        none += s->start < 0;
        records += (uint64_t)(s->high - s->low);
    }
    doc_ok(d, k->topic, "%u partition%s, %" PRIu64 " records in the log", n, n == 1 ? "" : "s", records);
    if (n == 0) {
        doc_warn(d, k->topic, "no topic matches yet");
        doc_advise(d, k->topic, "create one; it is found at the next discovery");
    }
    if (none) doc_ok(d, k->offsets, "%u of %u partitions have no offset committed by the group and no 'properties.auto.offset.reset': they can only go on from the table", none, n);
    else doc_ok(d, k->offsets, "start offsets of all partitions are there");
}

static void check_group(doctor *d, doc_step *s, const sql_table *t, src_source *src) {
    const char *group = NULL;
    fz_error e = {0};
    doc_asked(d, s, "OffsetFetch of group '%s'", opt(t, "properties.group.id") ? opt(t, "properties.group.id") : "");
    if (src_report_check(src, &group, &e) != FZ_OK) { /* positions live in the table: the group is only told */
        doc_warn(d, s, "%s", doc_error_text(d, &e));
        doc_ok(d, s, "the job runs without it; only tools that look at the group's offsets will see no progress");
        advise(d, s, t, &e);
        doc_advise(d, s, "or 'properties.commit.offsets.on.checkpoint' = 'false' in the source table");
    } else if (group) doc_ok(d, s, "group '%s' may be told what is committed", group);
    else doc_ok(d, s, "no group is told anything");
}

static void open_kafka(doctor *d, const sql_plan *scan, kafka_steps *k) {
    const sql_table *t = scan->table;
    src_context cx = {.table = t->path, .job = "doctor", .readers = 1, .memory = 8u << 20, .max_record_size = FZ_MAX_RECORD_SIZE,
                      .bounded_job = conf_is(d->plan->settings, "execution.runtime-mode", "batch")};
    fz_error e = {0};
    job_scan *scanned = NULL;
    const char *mode = opt(t, "scan.startup.mode");
    doc_asked(d, k->login, "ask the brokers for the cluster's id (protocol %s%s%s)", opt(t, "properties.security.protocol") ? opt(t, "properties.security.protocol") : "PLAINTEXT",
              opt(t, "properties.sasl.mechanism") ? ", mechanism " : "", opt(t, "properties.sasl.mechanism") ? opt(t, "properties.sasl.mechanism") : "");
    doc_asked(d, k->topic, "Metadata of %s", opt(t, "topic") ? opt(t, "topic") : opt(t, "topic-pattern") ? opt(t, "topic-pattern") : "");
    doc_asked(d, k->offsets, "ListOffsets for 'scan.startup.mode' = '%s'", mode ? mode : "group-offsets");
    fz_status rc = job_scan_open(scan, &cx, &scanned, &e);
    doc_step *wrong = rc == FZ_OK ? NULL : blame(k, &e);
    if (wrong) {
        doc_fail_error(d, wrong, &e);
        advise(d, wrong, t, &e);
    }
    if (wrong == k->group) doc_ok(d, k->offsets, "they are to be the group's"); /* reading begins at the group's offsets, and it may not be asked for them */
    doc_step *const chain[] = {k->login, k->topic, k->offsets, k->group};
    for (int i = 1; i < 4; i++)
        if (chain[i] != wrong) (void)doc_blocked(d, chain[i], chain[i - 1]);
    if (rc == FZ_OK) {
        doc_ok(d, k->login, "the cluster is %s", src_identity(job_scan_source(scanned)));
        tell_splits(d, k, job_scan_source(scanned));
        check_group(d, k->group, t, job_scan_source(scanned));
    }
    job_scan_close(scanned);
}

/* Amazon MSK with IAM: who we are there. A wrong option is the login's to tell. */
static const doc_step *aws_login(doctor *d, const sql_table *t) {
    fz_pair *o;
    size_t n;
    bool wanted;
    fz_error ignored;
    if (src_aws_login(t->options, t->n_options, d->a, &o, &n, &wanted, &ignored) != FZ_OK || !wanted) return NULL;
    return doc_login_ground(d, t->path, o, n);
}

static void kafka_source_steps(doctor *d, const sql_plan *scan) {
    const char *servers = opt(scan->table, "properties.bootstrap.servers"), *topic = opt(scan->table, "topic");
    kafka_steps k = {.brokers = doc_find(d, "doctor.kafka.brokers", servers)};
    if (!k.brokers) {
        k.brokers = doc_begin(d, "doctor.kafka.brokers", servers);
        check_brokers(d, k.brokers, servers ? servers : "");
    }
    const doc_step *aws = aws_login(d, scan->table);
    k.login = doc_begin(d, "doctor.kafka.login", scan->table->path);
    (void)doc_blocked(d, k.login, aws);
    k.topic = doc_begin(d, "doctor.kafka.topic", topic ? topic : opt(scan->table, "topic-pattern"));
    k.offsets = doc_begin(d, "doctor.kafka.offsets", scan->table->path);
    k.group = doc_begin(d, "doctor.kafka.group", opt(scan->table, "properties.group.id") ? opt(scan->table, "properties.group.id") : scan->table->path);
    doc_step *const chain[] = {k.brokers, k.login, k.topic, k.offsets, k.group};
    for (int i = 1; i < 5; i++)
        if (doc_good(chain[i])) (void)doc_blocked(d, chain[i], chain[i - 1]);
    if (doc_good(k.login)) open_kafka(d, scan, &k);
}

static void not_opened(doctor *d, doc_step *s, const fz_error *e) {
    if (!fz_starts(e->code, "spool.")) {
        doc_fail_error(d, s, e);
        return;
    }
    doc_step *spool = doc_begin(d, "doctor.spool", s->subject);
    doc_asked(d, spool, "look at the spool, without taking it into use");
    doc_fail_error(d, spool, e);
    (void)doc_blocked(d, s, spool);
}

static void other_source(doctor *d, const sql_plan *scan) {
    const char *connector = opt(scan->table, "connector"), *path = opt(scan->table, "path");
    doc_step *s = doc_begin(d, "doctor.source", scan->table->path);
    src_context cx = {.table = scan->table->path, .job = "doctor", .readers = 1, .memory = 8u << 20, .max_record_size = FZ_MAX_RECORD_SIZE,
                      .state_dir = conf_get(d->plan->settings, "frazil.state.dir"), .look = true, .bounded_job = conf_is(d->plan->settings, "execution.runtime-mode", "batch")};
    fz_error e = {0};
    job_scan *scanned = NULL;
    doc_asked(d, s, "open connector '%s'%s%s", connector ? connector : "", path ? " at " : "", path ? path : "");
    if (doc_blocked(d, s, NULL)) {
        d->spools_unknown = true;
        return;
    }
    if (job_scan_open(scan, &cx, &scanned, &e) != FZ_OK) not_opened(d, s, &e);
    else doc_ok(d, s, "connector '%s', %u split%s", connector, src_n_splits(job_scan_source(scanned)), src_n_splits(job_scan_source(scanned)) == 1 ? "" : "s");
    d->spools_unknown |= !doc_good(s);
    const src_doors *doors = doc_good(s) ? src_listens(job_scan_source(scanned)) : NULL;
    if (doors) doc_doors(d, doors, scan->table->path);
    job_scan_close(scanned);
}

void doc_sources(doctor *d) {
    for (uint32_t i = 0; i < d->plan->n_sources; i++) {
        const sql_plan *scan = d->plan->sources[i].scan;
        const char *connector = opt(scan->table, "connector");
        if (connector && strcmp(connector, "kafka") == 0) kafka_source_steps(d, scan);
        else other_source(d, scan);
    }
}
