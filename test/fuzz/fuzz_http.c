/* Fuzzes the HTTP server's protocol: heads, lengths, chunks, pipelined requests, answers at once and later, with a model of the connection in place of sockets.
 *
 * Whatever pieces a stream comes in, and whenever its requests are answered, the handler sees the same requests in the same order, and the answers have the same statuses.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: 8 bytes that steer pieces and answers, then the stream.
 */
#define net_conn_write model_write
#define net_conn_pause model_pause
#define net_conn_resume model_resume
#define net_conn_end model_end
#define net_conn_peer model_peer
#define net_conn_tls_name model_tls_name
#define net_conn_message model_message
#define net_conn_hold model_hold
#define net_http_proto model_proto
#define net_http_answer model_answer
#define net_http_header model_header
#define net_http_each_header model_each
#define net_listen_http model_listen
#define net_http_forget model_forget
#include "../../src/net/server_http.c"
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_http.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_BODY = 600 };

static struct {
    fz_buf log;         /* requests and statuses, in order */
    bool paused, ended;
    uint64_t later;     /* bit by bit: is the next request answered later? */
    net_http_request *kept;
} m;

void model_write(net_conn *c, const void *p, size_t n) {
    (void)c;
    CHECK(!m.ended && n > 12 && memcmp(p, "HTTP/1.1 ", 9) == 0);
    if (memcmp((const char *)p + 9, "100", 3) != 0) fz_buf_printf(&m.log, "<%.3s>", (const char *)p + 9);
}
void model_pause(net_conn *c) { (void)c, m.paused = true; }
void model_resume(net_conn *c) { (void)c, m.paused = false; }
void model_end(net_conn *c) { (void)c, m.ended = true; }
const char *model_peer(const net_conn *c) { return (void)c, "peer"; }
const char *model_tls_name(const net_conn *c) { return (void)c, NULL; }
void model_message(net_conn *c, bool begun) { (void)c, (void)begun; }
void model_hold(net_conn *c, size_t bytes) {
    (void)c;
    CHECK(bytes <= 2 * (MAX_BODY + 1024) + 2 * FZ_MAX_HTTP_HEAD);
}

static void note(void *cx, const char *name, const char *value) { fz_buf_printf(cx, "%s=%s;", name, value); }
static void on_request(void *cx, net_http_request *r) {
    (void)cx;
    CHECK(!m.kept && r->n_body <= MAX_BODY);
    fz_buf_printf(&m.log, "[%s %s?%s ", r->method, r->path, r->query ? r->query : "-");
    net_http_each_header(r, note, &m.log);
    CHECK(net_http_header(r, "no such header\n") == NULL);
    fz_buf_append(&m.log, r->body, r->n_body);
    fz_buf_putc(&m.log, ']');
    bool later = m.later & 1;
    m.later >>= 1;
    if (later) m.kept = r;
    else net_http_answer(r, 200, NULL, 0, "ok", 2);
}

/* Paths that begin with /n are turned away before their body. */
static void on_head(void *cx, net_http_request *r) {
    (void)cx;
    CHECK(r->n_body == 0);
    fz_buf_printf(&m.log, "{%s}", r->path);
    if (r->path[0] == '/' && r->path[1] == 'n') net_http_answer(r, 403, NULL, 0, "no", 2);
}

/* Feeds the stream in pieces of `step` bytes, as server_conn.c does: what is not consumed comes again with what follows. */
static void drive(const uint8_t *p, size_t n, size_t step, uint64_t later) {
    static net_listener l;
    l.o.max_message = MAX_BODY;
    l.http = on_request;
    l.o.http_head = on_head;
    m.log.len = 0;
    m.paused = m.ended = false;
    m.later = later;
    void *state = net_http_proto.open(&l, NULL);
    for (size_t from = 0, to = 0; to < n && !m.ended;) {
        to = step < n - to ? to + step : n;
        for (bool again = true; again && !m.ended && from < to;) {
            uint8_t *exact = fz_malloc(to - from);
            memcpy(exact, p + from, to - from);
            size_t used = net_http_proto.data(state, exact, to - from);
            fz_free(exact);
            CHECK(used <= to - from);
            from += used;
            again = m.kept != NULL;
            if (m.kept) {
                CHECK(m.paused);
                net_http_request *r = m.kept;
                m.kept = NULL;
                net_http_answer(r, 200, NULL, 0, "ok", 2);
            }
            CHECK(!m.paused);
        }
    }
    net_http_proto.close(state);
    CHECK(!l.exchanges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fz_buf whole;
    uint64_t steer;
    if (size < 9 || size > 100000) return 0;
    memcpy(&steer, data, 8);
    const uint8_t *p = data + 8;
    size_t n = size - 8;
    drive(p, n, n, 0);
    whole.len = 0;
    fz_buf_append(&whole, m.log.data, m.log.len);
    bool ended = m.ended;
    drive(p, n, n > 20000 ? 1000 : 1 + (steer & 63), steer >> 8);
    CHECK(m.ended == ended && m.log.len == whole.len && (!whole.len || memcmp(m.log.data, whole.data, whole.len) == 0));
    return 0;
}

#include "replay.h"
