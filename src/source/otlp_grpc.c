/* OTLP over gRPC: opentelemetry.proto.collector.logs.v1.LogsService/Export over HTTP/2, by nghttp2. One connection here; what answers look like stands in otlp_h2.c.
 *
 * A call:  HEADERS ──> READING ──END_STREAM──> WAITING (appended) ──durable──> ANSWERED ──stream closed──> gone
 *             └───────────┴──── wrong, too large, no room: answered at once ─────^
 *
 * Windows are opened by what has been read into a call's body, so that a peer may send all the time; what a connection may hold is bounded here: the oldest call that is being read may grow to a
 * message, the others share as much again and are refused (UNAVAILABLE) above it.
 *
 * Invariants
 *  1. nghttp2 is fed and asked for bytes from the loop only, and never asked from within its own callbacks (receiving).
 *  2. A call whose append is under way outlives its connection (conn NULL), until the spool has spoken.
 * Source: RFC 9113; grpc doc/PROTOCOL-HTTP2.md; opentelemetry-proto docs/specification.md (OTLP/gRPC).
 */
#include "source/otlp_h2.h"

enum { MAX_STREAMS = 128, WINDOW = 1 << 20, MAX_HEADER_LIST = 16 << 10, MAX_AUTHORIZATION = 4096 };

static const char service_path[] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/* ---- the books of a connection ---- */

static void account(h2_conn *c) {
    size_t held = 0;
    h2_call *reading = NULL;
    for (h2_call *x = c->calls; x; x = x->next) {
        held += x->body.cap + sizeof *x;
        if (x->state == CALL_READING) reading = x; /* the list is newest first: the last one is the oldest */
    }
    c->held = held;
    net_conn_hold(c->net, held);
    if (reading != c->oldest || c->prefaced != c->was_prefaced) net_conn_message(c->net, reading || !c->prefaced); /* a message, or the preface, has its time */
    c->oldest = reading;
    c->was_prefaced = c->prefaced;
}

static void call_free(h2_call *x) {
    fz_buf_free(&x->body);
    fz_buf_free(&x->out);
    fz_free(x->authorization);
    fz_free(x);
}
static void unlink_call(h2_call *x) {
    if (x->prev) x->prev->next = x->next;
    else x->conn->calls = x->next;
    if (x->next) x->next->prev = x->prev;
    x->conn = NULL;
}
static void leave(h2_call *x) {
    otlp_source *o = x->conn->o;
    unlink_call(x);
    if (x->state != CALL_WAITING || otlp_forget(o, &x->q)) call_free(x);
}

/* What nghttp2 has to say goes onto the connection. */
static void flush(h2_conn *c) {
    const uint8_t *p;
    ssize_t n;
    if (c->receiving) return;
    while ((n = nghttp2_session_mem_send(c->session, &p)) > 0) net_conn_write(c->net, p, (size_t)n);
    account(c);
    if (n < 0 || (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))) net_conn_end(c->net);
}

static void refuse(h2_call *x, grpc_code code, uint32_t retry_s, const char *message) {
    fz_buf_free(&x->body);
    x->state = CALL_ANSWERED;
    h2_answer_error(x, code, retry_s, message);
}

/* ---- a request that is whole ---- */

static void on_durable(otlp_request *q, bool durable) {
    h2_call *x = (h2_call *)q;
    h2_conn *c = x->conn;
    if (!c) {
        call_free(x);
        return;
    }
    x->state = CALL_ANSWERED;
    fz_buf_free(&x->body);
    if (durable) h2_answer_taken(x);
    else h2_answer_error(x, GRPC_UNAVAILABLE, 0, "the server ends; whether the records are kept is not known");
    flush(c);
}

static void on_failed(otlp_request *q, const fz_error *e) {
    h2_call *x = (h2_call *)q;
    refuse(x, otlp_code_of(e), e->cls == FZ_RETRY ? x->conn->o->retry_after_s : 0, e->message);
    flush(x->conn);
}

static void take(h2_call *x, const uint8_t *p, size_t n, bool packed) {
    x->state = CALL_WAITING;
    x->q.body = (otlp_body){packed ? x->coding : NULL, p, n, false};
    x->q.durable = on_durable;
    x->q.failed = on_failed;
    otlp_count(&x->conn->o->stats.requests_grpc, 1);
    if (otlp_take(x->conn->o, &x->q)) fz_buf_free(&x->body);
}

static size_t announced(const h2_call *x) { return (size_t)x->body.data[1] << 24 | (size_t)x->body.data[2] << 16 | (size_t)x->body.data[3] << 8 | x->body.data[4]; }

static void whole(h2_call *x) {
    if (x->state != CALL_READING) return;
    bool packed = x->body.len >= 5 && x->body.data[0] == 1;
    if (x->body.len < 5 || x->body.len < 5 + announced(x)) refuse(x, GRPC_INTERNAL, 0, "the request ends before its message does");
    else if (x->body.len > 5 + announced(x)) refuse(x, GRPC_INTERNAL, 0, "the request has more than one message");
    else if (x->body.data[0] > 1) refuse(x, GRPC_INTERNAL, 0, "the message has flags that are not known");
    else if (packed && !x->coding[0]) refuse(x, GRPC_INTERNAL, 0, "the message is compressed, and no grpc-encoding says how");
    else take(x, x->body.data + 5, announced(x), packed);
}

/* ---- nghttp2's callbacks ---- */

static h2_call *call_of(nghttp2_session *s, int32_t stream) { return nghttp2_session_get_stream_user_data(s, stream); }

static int on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *cx) {
    h2_conn *c = cx;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    h2_call *x = FZ_NEW(h2_call);
    x->conn = c;
    x->stream = f->hd.stream_id;
    x->next = c->calls;
    if (c->calls) c->calls->prev = x;
    c->calls = x;
    nghttp2_session_set_stream_user_data(s, x->stream, x);
    return 0;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *cx) {
    h2_call *x = call_of(s, f->hd.stream_id);
    fz_sv k = {(const char *)name, n_name}, v = {(const char *)value, n_value};
    (void)flags;
    (void)cx;
    if (!x || x->state != CALL_HEADERS) return 0;
    if (fz_sv_eq(k, FZ_SV(":method"))) x->is_post = fz_sv_eq(v, FZ_SV("POST"));
    else if (fz_sv_eq(k, FZ_SV(":path"))) x->is_export = fz_sv_eq(v, (fz_sv){service_path, sizeof service_path - 1});
    else if (fz_sv_eq(k, FZ_SV("content-type"))) x->is_grpc = v.n >= 16 && memcmp(v.p, "application/grpc", 16) == 0 && (v.n == 16 || v.p[16] == ';' || (v.n >= 22 && memcmp(v.p + 16, "+proto", 6) == 0));
    else if (fz_sv_eq(k, FZ_SV("grpc-encoding")) && !fz_sv_eq(v, FZ_SV("identity"))) snprintf(x->coding, sizeof x->coding, "%.*s", (int)(v.n < sizeof x->coding ? v.n : sizeof x->coding - 1), v.p);
    else if (fz_sv_eq(k, FZ_SV("authorization")) && v.n <= MAX_AUTHORIZATION && !x->authorization) x->authorization = fz_strndup(v.p, v.n);
    return 0;
}

static void headers_whole(h2_call *x) {
    otlp_source *o = x->conn->o;
    x->state = CALL_READING;
    if (!x->is_post || !x->is_grpc) {
        x->state = CALL_ANSWERED;
        h2_answer_http(x, x->is_post ? "415" : "405");
    } else if (!otlp_authorized(o, x->authorization)) refuse(x, GRPC_UNAUTHENTICATED, 0, "metadata 'authorization: Bearer TOKEN' with the right token is wanted");
    else if (!x->is_export) refuse(x, GRPC_UNIMPLEMENTED, 0, "only LogsService/Export is served here");
    else if (x->conn->o->s.closing) refuse(x, GRPC_UNAVAILABLE, o->retry_after_s, "the server ends");
    fz_free(x->authorization);
    x->authorization = NULL;
}

static int on_frame_recv(nghttp2_session *s, const nghttp2_frame *f, void *cx) {
    h2_conn *c = cx;
    if (f->hd.type == NGHTTP2_SETTINGS) c->prefaced = true;
    h2_call *x = f->hd.stream_id ? call_of(s, f->hd.stream_id) : NULL;
    if (!x) return 0;
    if (f->hd.type == NGHTTP2_HEADERS && x->state == CALL_HEADERS) headers_whole(x);
    bool last = (f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) && f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (!last) return 0;
    x->ended = true;
    whole(x);
    return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n, void *cx) {
    h2_conn *c = cx;
    h2_call *x = call_of(s, stream);
    (void)flags;
    if (x && x->state == CALL_READING) {
        size_t most = c->o->max_message;
        size_t cap = x->body.cap;
        if (x->body.len + n > cap && x->body.len >= 5) { /* it grows towards what was announced, never past it */
            size_t want = 5 + announced(x), twice = x->body.len * 2 > x->body.len + n ? x->body.len * 2 : x->body.len + n;
            if (want > x->body.len && want < twice) fz_buf_reserve(&x->body, want - x->body.len);
        }
        fz_buf_append(&x->body, p, n);
        c->held += x->body.cap - cap;
        if (x->body.len >= 5 && announced(x) > most) refuse(x, GRPC_RESOURCE_EXHAUSTED, 0, "the message is larger than 'max-message-size'");
        else if (x->body.len > most + 5) refuse(x, GRPC_INTERNAL, 0, "the request has more than one message");
        else if (c->held > 2 * most && c->oldest && c->oldest != x) refuse(x, GRPC_UNAVAILABLE, c->o->retry_after_s, "the connection has too many unfinished messages");
    }
    return nghttp2_session_consume(s, stream, n) == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* An answer that stands before the request's end: the peer need not go on. */
static int on_frame_send(nghttp2_session *s, const nghttp2_frame *f, void *cx) {
    (void)cx;
    if (f->hd.type != NGHTTP2_HEADERS || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    h2_call *x = call_of(s, f->hd.stream_id);
    if (x && !x->ended) nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *s, int32_t stream, uint32_t code, void *cx) {
    h2_call *x = call_of(s, stream);
    (void)code;
    (void)cx;
    if (x) leave(x);
    return 0;
}

/* ---- the connection ---- */

static int make_session(h2_conn *c) {
    nghttp2_session_callbacks *cb;
    nghttp2_option *opt;
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW}, {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST}};
    if (nghttp2_session_callbacks_new(&cb)) return -1;
    if (nghttp2_option_new(&opt)) {
        nghttp2_session_callbacks_del(cb);
        return -1;
    }
    nghttp2_option_set_no_auto_window_update(opt, 1);
    nghttp2_option_set_no_closed_streams(opt, 1);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    int rc = nghttp2_session_server_new2(&c->session, cb, c, opt);
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(opt);
    if (!rc) rc = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
    if (!rc) rc = nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, WINDOW);
    return rc;
}

static void *grpc_open(void *cx, net_conn *net) {
    h2_conn *c = FZ_NEW(h2_conn);
    c->o = cx;
    c->net = net;
    c->was_prefaced = true;
    if (make_session(c)) {
        nghttp2_session_del(c->session);
        fz_free(c);
        return NULL;
    }
    flush(c);
    return c;
}

static size_t grpc_data(void *state, const uint8_t *p, size_t n) {
    h2_conn *c = state;
    c->receiving = true;
    ssize_t rc = nghttp2_session_mem_recv(c->session, p, n);
    c->receiving = false;
    flush(c);
    if (rc < 0) net_conn_end(c->net); /* no HTTP/2, or out of its rules: what nghttp2 says about it is on its way */
    return n;
}

static void goaway(h2_conn *c, uint32_t code) {
    if (c->gone) return;
    c->gone = true;
    nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->session), code, NULL, 0);
    flush(c);
}
static void grpc_stopping(void *state) { goaway(state, NGHTTP2_NO_ERROR); }
static void grpc_expired(void *state, net_expiry why) { goaway(state, why == NET_EXPIRED_IDLE ? NGHTTP2_NO_ERROR : NGHTTP2_ENHANCE_YOUR_CALM); }

static void grpc_eof(void *state, const uint8_t *p, size_t n) {
    (void)state;
    (void)p;
    (void)n;
}

static void grpc_close(void *state) {
    h2_conn *c = state;
    while (c->calls) leave(c->calls);
    nghttp2_session_del(c->session);
    fz_free(c);
}

const net_proto otlp_grpc_proto = {.open = grpc_open, .data = grpc_data, .eof = grpc_eof, .close = grpc_close, .expired = grpc_expired, .stopping = grpc_stopping};
