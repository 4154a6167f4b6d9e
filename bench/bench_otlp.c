/* What a record costs from OTLP to columns: log records with a body, a trace id and three attributes, 1,000 a request, one resource.
 *
 *   make build/bench/bench_otlp && build/bench/bench_otlp [REQUESTS [protobuf|gzip|json|grpc]...]
 *
 * Prints CPU time a record of: JSON into protobuf, the split, the decoder (ten columns, a map of attributes among them; the same without maps), and the whole connector: a child process sends, this one
 * takes from the socket, writes the spool (with fsync), answers, reads the spool, decodes, and trims. The child's time does not count.
 */
#include "decode/decode.h"
#include "source/otlp_int.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <libdeflate.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PER_REQUEST = 1000 };

static void string_value(fz_buf *b, uint32_t field, const char *s) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_ANY_STRING, s, strlen(s));
    pb_end(b, at);
}
static void pair(fz_buf *b, uint32_t field, const char *k, const char *v) {
    size_t at = pb_begin(b, field);
    pb_put_bytes(b, OTLP_KEY, k, strlen(k));
    string_value(b, OTLP_VALUE, v);
    pb_end(b, at);
}

static const char *const levels[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};

static void record(fz_buf *b, uint32_t i) {
    char body[160];
    uint8_t trace[16];
    uint64_t id[2] = {i * 0x9e3779b97f4a7c15ull, i * 0xc2b2ae3d27d4eb4full};
    size_t r = pb_begin(b, OTLP_SCOPE_LOGS_RECORDS);
    snprintf(body, sizeof body, "request %u of user %u took %u ms and ended with status %u", i, i * 7919 % 10007, i * 31 % 997, 200 + i % 5);
    memcpy(trace, id, 16);
    pb_put_fixed64(b, OTLP_RECORD_TIME, 1735787045123456789ull + i);
    pb_put_uint(b, OTLP_RECORD_SEVERITY_NUMBER, 1 + i % 6 * 4);
    pb_put_bytes(b, OTLP_RECORD_SEVERITY_TEXT, levels[i % 6], strlen(levels[i % 6]));
    string_value(b, OTLP_RECORD_BODY, body);
    pair(b, OTLP_RECORD_ATTRIBUTES, "http.method", i % 3 ? "GET" : "POST");
    pair(b, OTLP_RECORD_ATTRIBUTES, "source", "stdout");
    pair(b, OTLP_RECORD_ATTRIBUTES, "container.name", "otel-generator");
    pb_put_bytes(b, OTLP_RECORD_TRACE_ID, trace, 16);
    pb_put_bytes(b, OTLP_RECORD_SPAN_ID, trace, 8);
    pb_put_fixed64(b, OTLP_RECORD_OBSERVED_TIME, 1735787045123456789ull + i);
    pb_end(b, r);
}
static void request(fz_buf *b) {
    size_t rl = pb_begin(b, 1), r = pb_begin(b, 1);
    pair(b, OTLP_RESOURCE_ATTRIBUTES, "service.name", "checkout");
    pair(b, OTLP_RESOURCE_ATTRIBUTES, "host.name", "web01");
    pair(b, OTLP_RESOURCE_ATTRIBUTES, "telemetry.sdk.language", "c");
    pb_end(b, r);
    size_t sl = pb_begin(b, 2), s = pb_begin(b, 1);
    pb_put_bytes(b, 1, "generator", 9);
    pb_end(b, s);
    for (uint32_t i = 0; i < PER_REQUEST; i++) record(b, i);
    pb_end(b, sl);
    pb_end(b, rl);
}
static void json_request(fz_buf *b) {
    fz_buf_puts(b, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"checkout\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":\"generator\"},\"logRecords\":[");
    for (uint32_t i = 0; i < PER_REQUEST; i++)
        fz_buf_printf(b, "%s{\"timeUnixNano\":\"%llu\",\"observedTimeUnixNano\":\"%llu\",\"severityNumber\":%u,\"severityText\":\"%s\",\"body\":{\"stringValue\":\"request %u of user %u took %u ms and ended with status %u\"},"
                         "\"attributes\":[{\"key\":\"http.method\",\"value\":{\"stringValue\":\"GET\"}},{\"key\":\"source\",\"value\":{\"stringValue\":\"stdout\"}},{\"key\":\"container.name\",\"value\":{\"stringValue\":\"otel-generator\"}}],"
                         "\"traceId\":\"%032x\",\"spanId\":\"%016x\"}", i ? "," : "", 1735787045123456789ull + i, 1735787045123456789ull + i, 1 + i % 6 * 4, levels[i % 6], i, i * 7919 % 10007, i * 31 % 997, 200 + i % 5, i + 1, i + 1);
    fz_buf_puts(b, "]}]}]}");
}

static dec_decoder *decoder(col_schema *s, fz_arena *types, bool maps) {
    static col_field f[10];
    const col_type *text = col_string(true), *map = col_map(types, text, text, true);
    fz_error err;
    dec_decoder *d;
    f[0] = (col_field){"time_unix_nano", col_sized(types, COL_TIMESTAMP_LTZ, 6, 0, true), NULL};
    f[1] = (col_field){"severity_text", text, NULL};
    f[2] = (col_field){"severity_number", col_simple(COL_INT, true), NULL};
    f[3] = (col_field){"body", text, NULL};
    f[4] = (col_field){"trace_id", text, NULL};
    f[5] = (col_field){"span_id", text, NULL};
    f[6] = (col_field){"service.name", text, NULL};
    f[7] = (col_field){"scope_name", text, NULL};
    f[8] = (col_field){maps ? "attributes" : "http.method", maps ? map : text, NULL};
    f[9] = (col_field){maps ? "resource_attributes" : "container.name", maps ? map : text, NULL};
    *s = (col_schema){10, f};
    if (dec_new("otlp", NULL, 0, s, NULL, false, &d, &err) != FZ_OK) exit(1);
    return d;
}

static void decode_cost(const otlp_batch *b, const spool_frame *f, bool maps) {
    col_schema s;
    fz_arena *types = fz_arena_new(), *a = fz_arena_new();
    dec_decoder *d = decoder(&s, types, maps);
    static fz_record rec[8 * PER_REQUEST];
    for (uint32_t i = 0; i < b->n; i++) rec[i] = (fz_record){.value = b->at[i], .value_len = (int32_t)b->len[i], .key = f->context, .key_len = (int32_t)f->context_len};
    for (uint32_t i = b->n; i < 8 * b->n; i++) rec[i] = rec[i - b->n];
    int64_t best = INT64_MAX;
    for (int round = 0; round < 100; round++) {
        fz_chunk c = {.n = 8 * b->n, .rec = rec};
        dec_output out;
        fz_rejects rejects = {0};
        fz_error err;
        fz_arena_reset(a);
        int64_t t = fz_cpu_ns();
        if (dec_decode(d, &c, a, &out, &rejects, &err) != FZ_OK || out.n_rows != c.n) exit(1);
        t = fz_cpu_ns() - t;
        if (t < best) best = t;
    }
    printf("decode %s: %.1f ns a record\n", maps ? "with maps" : "attributes by name", (double)best / (8 * b->n));
    dec_free(d);
    fz_arena_free(a);
    fz_arena_free(types);
}

static void rooms(const fz_buf *pb, const fz_buf *json) {
    otlp_batch b = {0};
    fz_buf converted = {0};
    fz_error err;
    int64_t split = INT64_MAX, convert = INT64_MAX;
    for (int round = 0; round < 200; round++) {
        int64_t t = fz_cpu_ns();
        if (otlp_split(pb->data, pb->len, 4 << 20, 16 << 20, &b, &err) != FZ_OK || b.n != PER_REQUEST) exit(1);
        t = fz_cpu_ns() - t;
        if (t < split) split = t;
        converted.len = 0;
        t = fz_cpu_ns();
        if (otlp_json_request(json->data, json->len, &converted, &err) != FZ_OK) exit(1);
        t = fz_cpu_ns() - t;
        if (t < convert) convert = t;
    }
    printf("%zu bytes a record, %zu as JSON; JSON to protobuf %.1f ns, split %.1f ns a record\n", pb->len / PER_REQUEST, json->len / PER_REQUEST, (double)convert / PER_REQUEST, (double)split / PER_REQUEST);
    const spool_frame *f = otlp_frames(&b, 1);
    decode_cost(&b, f, true);
    decode_cost(&b, f, false);
    otlp_batch_free(&b);
    fz_buf_free(&converted);
}

/* ---- the whole ---- */

static int dial(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) _exit(1);
    return fd;
}
static void send_all(int fd, const void *p, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t w = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);
        if (w <= 0) _exit(1);
        at += (size_t)w;
    }
}

enum { CONNECTIONS = 8 };
static void send_http(int port, const char *headers, const fz_buf *body, int requests) {
    fz_buf m = {0};
    int fd[CONNECTIONS], pending[CONNECTIONS] = {0};
    fz_buf_printf(&m, "POST /v1/logs HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", headers, body->len);
    fz_buf_append(&m, body->data, body->len);
    for (int i = 0; i < CONNECTIONS; i++) fd[i] = dial(port);
    for (int i = 0; i < requests + CONNECTIONS; i++) {
        int k = i % CONNECTIONS;
        char in[4096];
        while (pending[k]) { /* its last answer, whatever it says after the status */
            ssize_t n = recv(fd[k], in, sizeof in - 1, 0);
            if (n <= 0 || strncmp(in, "HTTP/1.1 200", 12) != 0) _exit(1);
            pending[k] = 0;
        }
        if (i >= requests) continue;
        send_all(fd[k], m.data, m.len);
        pending[k] = 1;
    }
    _exit(0);
}

typedef struct caller { const fz_buf *body; int fd, open, done; } caller;
typedef struct call { size_t at; } call;
static ssize_t read_body(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t length, uint32_t *flags, nghttp2_data_source *src, void *cx) {
    (void)s; (void)stream;
    caller *c = cx;
    call *x = src->ptr;
    size_t n = c->body->len - x->at < length ? c->body->len - x->at : length;
    memcpy(buf, c->body->data + x->at, n);
    x->at += n;
    if (x->at == c->body->len) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}
static int closed(nghttp2_session *s, int32_t stream, uint32_t code, void *cx) {
    (void)s; (void)stream;
    caller *c = cx;
    if (code) _exit(1);
    c->open--;
    c->done++;
    return 0;
}
static void send_grpc(int port, const fz_buf *message, int requests) {
    static const char *const h[][2] = {{":method", "POST"}, {":scheme", "http"}, {":path", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"}, {":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}};
    nghttp2_nv nv[6];
    for (int i = 0; i < 6; i++) nv[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)h[i][0], (uint8_t *)(uintptr_t)h[i][1], strlen(h[i][0]), strlen(h[i][1]), 0};
    fz_buf body = {0};
    fz_buf_append(&body, "\0\0\0\0\0", 5);
    for (int i = 0; i < 4; i++) body.data[1 + i] = (uint8_t)(message->len >> (24 - 8 * i));
    fz_buf_append(&body, message->data, message->len);
    caller c = {.body = &body, .fd = dial(port)};
    nghttp2_session_callbacks *cb;
    nghttp2_session *s;
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, closed);
    nghttp2_session_client_new(&s, cb, &c);
    nghttp2_submit_settings(s, 0, NULL, 0);
    for (int i = 0; c.done < requests;) {
        while (i < requests && c.open < CONNECTIONS) {
            nghttp2_data_provider d = {.source = {.ptr = FZ_NEW(call)}, .read_callback = read_body};
            if (nghttp2_submit_request(s, NULL, nv, 6, &d, NULL) < 0) _exit(1);
            i++;
            c.open++;
        }
        const uint8_t *out;
        ssize_t n;
        while ((n = nghttp2_session_mem_send(s, &out)) > 0) send_all(c.fd, out, (size_t)n);
        uint8_t in[16384];
        n = recv(c.fd, in, sizeof in, 0);
        if (n <= 0 || nghttp2_session_mem_recv(s, in, (size_t)n) != n) _exit(1);
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
        if (f && fgets(name, sizeof name, f) && strncmp(name, "otlp", 4) == 0) {
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

static void whole(const char *form, const fz_buf *pb, const fz_buf *json, int requests) {
    char dir[] = "bench-otlp.XXXXXX";
    if (!mkdtemp(dir)) exit(1);
    fz_pair o[] = {{.key = "connector", .value = "otlp"}, {.key = "listen", .value = "127.0.0.1:0"}, {.key = "grpc.listen", .value = "127.0.0.1:0"}};
    src_context cx = {.table = "t", .job = "j", .readers = 1, .memory = 24 << 20, .state_dir = dir};
    fz_error err;
    src_source *s;
    if (src_open(o, 3, &cx, &s, &err) != FZ_OK || src_assign(s, 0, 0, &err) != FZ_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    int port[2];
    for (int i = 0; i < 2; i++) port[i] = atoi(strrchr(net_listener_address(((src_spooled *)s)->listeners[i]), ':') + 1);
    fz_buf gz = {0};
    if (strcmp(form, "gzip") == 0) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
        fz_buf_reserve(&gz, libdeflate_gzip_compress_bound(c, pb->len));
        gz.len = libdeflate_gzip_compress(c, pb->data, pb->len, gz.data, gz.cap);
        libdeflate_free_compressor(c);
    }
    pid_t child = fork();
    if (child == 0) {
        if (strcmp(form, "json") == 0) send_http(port[0], "Content-Type: application/json\r\n", json, requests);
        if (strcmp(form, "gzip") == 0) send_http(port[0], "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n", &gz, requests);
        if (strcmp(form, "grpc") == 0) send_grpc(port[1], pb, requests);
        send_http(port[0], "Content-Type: application/x-protobuf\r\n", pb, requests);
    }
    col_schema schema;
    fz_arena *types = fz_arena_new(), *a = fz_arena_new();
    dec_decoder *d = decoder(&schema, types, true);
    fz_rejects rejects = {0};
    uint64_t rows = 0, want = (uint64_t)requests * PER_REQUEST;
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
    int status;
    waitpid(child, &status, 0);
    printf("whole, %s: %llu records, CPU %.0f ns a record (%.0f records a CPU-second), loop %.0f ns, wall %.2f s%s\n", form, (unsigned long long)rows, (double)cpu / (double)rows, 1e9 * (double)rows / (double)cpu,
           (double)loop_ns() / (double)rows, (double)wall / 1e9, status ? ", the sender failed" : "");
    src_close(s);
    dec_free(d);
    fz_arena_free(a);
    fz_arena_free(types);
    fz_buf_free(&gz);
    char *cmd = fz_asprintf("rm -rf %s", dir);
    if (system(cmd)) exit(1);
    fz_free(cmd);
}

int main(int argc, char **argv) {
    static const char *const forms[] = {"protobuf", "gzip", "json", "grpc"};
    int requests = argc > 1 ? atoi(argv[1]) : 1000;
    fz_buf pb = {0}, json = {0};
    fz_log_set_level(FZ_LOG_WARN);
    request(&pb);
    json_request(&json);
    rooms(&pb, &json);
    for (int i = 2; i < argc; i++) whole(argv[i], &pb, &json, requests);
    for (int i = 0; argc < 3 && i < 4; i++) whole(forms[i], &pb, &json, requests);
    fz_buf_free(&pb);
    fz_buf_free(&json);
    return 0;
}
