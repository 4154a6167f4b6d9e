/* What a record costs from the forward protocol to columns: records of some 240 bytes in packed chunks of 1,000, as Fluent Bit sends them.
 *
 *   make build/bench/bench_forward && build/bench/bench_forward [CHUNKS [none|gzip]]
 *
 * Prints CPU time a record of: the walk (messages into a batch, nothing around it), the decoder (seven columns; the same with a JSON document in `log`), and the whole connector: a child process sends, this one takes from
 * the socket, writes the spool (with fsync), acknowledges, reads the spool, decodes, and trims. The child's time does not count.
 */
#include "decode/decode.h"
#include "source/forward_int.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PER_CHUNK = 1000 };

static void text(fz_buf *b, const char *k, const char *v) {
    mp_put_str(b, k, strlen(k));
    mp_put_str(b, v, strlen(v));
}

static void event(fz_buf *b, uint32_t i, bool json) {
    static const char *const levels[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    static const uint8_t time[] = {0xd7, 0, 0x67, 0x76, 2, 0x25, 7, 0x5b, 0xcd, 0x15};
    char body[160], trace[40], log[320];
    snprintf(body, sizeof body, "request %u of user %u took %u ms and ended with status %u", i, i * 7919 % 10007, i * 31 % 997, 200 + i % 5);
    snprintf(trace, sizeof trace, "%016llx%016llx", (unsigned long long)i * 0x9e3779b97f4a7c15ull, (unsigned long long)i * 0xc2b2ae3d27d4eb4full);
    mp_put_array(b, 2);
    fz_buf_append(b, time, sizeof time);
    if (json) {
        snprintf(log, sizeof log, "{\"severity_text\":\"%s\",\"severity_number\":%u,\"body\":\"%s\",\"trace_id\":\"%s\"}", levels[i % 6], 1 + i % 6 * 4, body, trace);
        mp_put_map(b, 4);
        text(b, "log", log);
    } else {
        mp_put_map(b, 7);
        text(b, "severity_text", levels[i % 6]);
        mp_put_str(b, "severity_number", 15);
        mp_put_int(b, 1 + i % 6 * 4);
        text(b, "body", body);
        text(b, "trace_id", trace);
    }
    text(b, "container_name", "otel-generator");
    text(b, "source", "stdout");
    text(b, "service", "checkout");
}

static void message(fz_buf *out, const fz_buf *payload, bool gzip) {
    mp_put_array(out, 3);
    mp_put_str(out, "app.otel", 8);
    if (gzip) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
        size_t cap = libdeflate_gzip_compress_bound(c, payload->len);
        uint8_t *z = fz_malloc(cap);
        mp_put_bin(out, z, libdeflate_gzip_compress(c, payload->data, payload->len, z, cap));
        libdeflate_free_compressor(c);
        fz_free(z);
    } else mp_put_bin(out, payload->data, payload->len);
    mp_put_map(out, gzip ? 2 : 1);
    text(out, "chunk", "Y2h1bmtjaHVua2NodW5rIQ==");
    if (gzip) text(out, "compressed", "gzip");
}

static dec_decoder *decoder(col_schema *s, bool json) {
    static col_field f[7];
    fz_pair o = {.key = "msgpack.json-field", .value = "log"};
    fz_error err;
    dec_decoder *d;
    f[0] = (col_field){"severity_text", col_string(true), NULL};
    f[1] = (col_field){"severity_number", col_simple(COL_INT, true), NULL};
    f[2] = (col_field){"body", col_string(true), NULL};
    f[3] = (col_field){"trace_id", col_string(true), NULL};
    f[4] = (col_field){"container_name", col_string(true), NULL};
    f[5] = (col_field){"source", col_string(true), NULL};
    f[6] = (col_field){"service", col_string(true), NULL};
    *s = (col_schema){7, f};
    if (dec_new("msgpack", &o, json, s, NULL, false, &d, &err) != FZ_OK) exit(1);
    return d;
}

static void walk(const fz_buf *m, fwd_batch *b) {
    fwd_message msg;
    fz_error err;
    mp_scan s = {0};
    uint32_t skip = 0;
    fwd_batch_reset(b);
    if (mp_scan_more(&s, m->data, m->len, SIZE_MAX) != MP_OK || fwd_parse(m->data, s.at, &msg, &err) != FZ_OK) exit(1);
    fwd_walk w = fwd_walk_of(&msg, msg.events, (size_t)(msg.end - msg.events));
    while (fwd_gather(&w, b, msg.tag, &skip)) continue;
}

static void rooms(const fz_buf *m, bool json) {
    fwd_batch b = {0};
    int64_t best = INT64_MAX, best_decode = INT64_MAX;
    col_schema s;
    dec_decoder *d = decoder(&s, json);
    fz_arena *a = fz_arena_new();
    fz_rejects rejects = {0};
    fz_error err;
    fz_record rec[8 * PER_CHUNK];
    for (int round = 0; round < 200; round++) {
        int64_t t = fz_cpu_ns();
        walk(m, &b);
        t = fz_cpu_ns() - t;
        if (t < best) best = t;
        for (uint32_t i = 0; i < b.n; i++) rec[i] = (fz_record){.value = b.at[i], .value_len = (int32_t)b.len[i], .key_len = -1};
        for (uint32_t i = b.n; i < 8 * b.n; i++) rec[i] = rec[i - b.n];
        fz_chunk c = {.n = 8 * b.n, .rec = rec};
        dec_output out;
        fz_arena_reset(a);
        t = fz_cpu_ns();
        if (dec_decode(d, &c, a, &out, &rejects, &err) != FZ_OK || out.n_rows != c.n) exit(1);
        t = fz_cpu_ns() - t;
        if (t < best_decode) best_decode = t;
    }
    printf("%s: %zu bytes a record; walk %.1f ns, decode %.1f ns a record\n", json ? "JSON in log" : "own keys", b.bytes / b.n, (double)best / b.n, (double)best_decode / (8 * b.n));
    dec_free(d);
    fz_arena_free(a);
    fwd_batch_free(&b);
}

static void send_chunks(int port, const fz_buf *m, int chunks) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) _exit(1);
    size_t unanswered = 0;
    for (int i = 0; i < chunks; i++) {
        for (size_t at = 0; at < m->len;) {
            ssize_t n = send(fd, m->data + at, m->len - at, 0);
            if (n <= 0) _exit(1);
            at += (size_t)n;
        }
        uint8_t in[4096];
        unanswered += 30; /* 81 a3 ack b8 and 24 bytes */
        while (unanswered > (i + 1 < chunks ? 64 * 30 : 0)) {
            ssize_t n = recv(fd, in, sizeof in, 0);
            if (n <= 0) _exit(1);
            unanswered -= (size_t)n;
        }
    }
    _exit(0);
}

/* CPU time of the connector's loop so far. */
static int64_t loop_ns(void) {
    DIR *dir = opendir("/proc/self/task");
    long long ns = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && strncmp(name, "forward", 7) == 0) {
            snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
            FILE *g = fopen(path, "r");
            if (g && fscanf(g, "%lld", &ns) != 1) ns = 0;
            if (g) fclose(g);
        }
        if (f) fclose(f);
    }
    if (dir) closedir(dir);
    return ns;
}

static void whole(const fz_buf *m, int chunks) {
    char dir[] = "bench-forward.XXXXXX";
    if (!mkdtemp(dir)) exit(1);
    fz_pair o[] = {{.key = "connector", .value = "forward"}, {.key = "listen", .value = "127.0.0.1:0"}};
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 24 << 20, .state_dir = dir};
    fz_error err;
    src_source *s;
    if (src_open(o, 2, &cx, &s, &err) != FZ_OK || src_assign(s, 0, 0, &err) != FZ_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    int port = atoi(strrchr(net_listener_address(((src_spooled *)s)->listeners[0]), ':') + 1);
    pid_t child = fork();
    if (child == 0) send_chunks(port, m, chunks);
    col_schema schema;
    dec_decoder *d = decoder(&schema, false);
    fz_arena *a = fz_arena_new();
    fz_rejects rejects = {0};
    uint64_t rows = 0, want = (uint64_t)chunks * PER_CHUNK;
    int64_t cpu = fz_cpu_ns(), wall = fz_mono_ns();
    while (rows < want) {
        fz_chunk *c;
        bool done;
        uint32_t split = 0;
        if (src_poll(s, 0, 1000, &c, &done, &err) != FZ_OK) exit(1);
        if (!c) continue;
        dec_output out;
        fz_arena_reset(a);
        if (dec_decode(d, c, a, &out, &rejects, &err) != FZ_OK) exit(1);
        rows += out.n_rows;
        int64_t to = c->to;
        fz_chunk_release(c);
        if (to % 100000 < 8192 && src_report(s, &split, &to, 1, &err) != FZ_OK) exit(1);
    }
    cpu = fz_cpu_ns() - cpu;
    wall = fz_mono_ns() - wall;
    int64_t loop = loop_ns();
    int status;
    waitpid(child, &status, 0);
    printf("whole: %llu records, %.1f ns CPU a record (%.1f in the loop) = %.0f records a CPU-second; %.0f records a second; resident %zu MB; child %d\n", (unsigned long long)rows, (double)cpu / (double)rows, (double)loop / (double)rows,
           (double)rows * 1e9 / (double)cpu, (double)rows * 1e9 / (double)wall, fz_rss() >> 20, status);
    dec_free(d);
    fz_arena_free(a);
    src_close(s);
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    if (system(cmd) != 0) exit(1);
}

int main(int argc, char **argv) {
    bool gzip = argc > 2 && strcmp(argv[2], "gzip") == 0;
    fz_buf m = {0}, payload = {0};
    fz_log_set_level(FZ_LOG_WARN);
    for (int json = 1; json >= 0; json--) {
        payload.len = m.len = 0;
        for (uint32_t i = 0; i < PER_CHUNK; i++) event(&payload, i, json);
        message(&m, &payload, false);
        rooms(&m, json);
    }
    m.len = 0;
    message(&m, &payload, gzip);
    printf("%s: %zu bytes a message\n", gzip ? "gzip" : "packed", m.len);
    whole(&m, argc > 1 ? atoi(argv[1]) : 600);
    fz_buf_free(&m);
    fz_buf_free(&payload);
    return 0;
}
