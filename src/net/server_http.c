/* HTTP/1.1 from the server's side: a protocol over net_conn. One request at a time; the next one of a connection is looked at when this one is answered.
 *
 *     HEAD ──> BODY or CHUNKS ──> WORK (the handler has it) ──answered──> HEAD, or DONE
 *       └──────────┴── wrong, too large, too slow: answered here ──> DONE
 *
 * Invariants
 *  1. Before the handler sees it a request is whole and its framing beyond doubt.
 *  2. An exchange in WORK stands in listener.exchanges and belongs to the handler until net_http_answer; one whose connection has gone has no `h`.
 *  3. While an exchange is in WORK its connection is paused, so that unread bytes stay with the kernel.
 *  4. http_head is asked before any byte of a body is kept.
 */
#include "net/server_int.h"
#include <time.h>

enum { KEEP_ROOM = 8 << 10 }; /* larger buffers are not kept for the next request */
typedef enum { HTTP_HEAD, HTTP_BODY, HTTP_CHUNKS, HTTP_WORK, HTTP_DONE } http_phase;
typedef struct http_exchange http_exchange;

typedef struct http_conn {
    net_conn *c;
    net_listener *l;
    http_phase phase;
    http_exchange *x; /* made for the first request, then used again */
    size_t line;      /* of the head, as http_head_end has it */
    http_chunks chunks;
} http_conn;

struct http_exchange {
    net_http_request r;
    net_listener *l;
    http_conn *h;
    http_exchange *prev, *next;
    http_head head;
    fz_buf text, body;
    bool early; /* http_head has it */
    char peer[NET_ADDRESS];
    char *tls_name;
};

static void exchange_free(http_exchange *x) {
    if (!x) return;
    fz_free(x->head.field);
    fz_free(x->tls_name);
    fz_buf_free(&x->text);
    fz_buf_free(&x->body);
    fz_free(x);
}

static void exchange_link(http_exchange *x) {
    x->prev = NULL;
    x->next = x->l->exchanges;
    if (x->next) x->next->prev = x;
    x->l->exchanges = x;
}
static void exchange_unlink(http_exchange *x) {
    if (x->prev) x->prev->next = x->next;
    else x->l->exchanges = x->next;
    if (x->next) x->next->prev = x->prev;
}

void net_http_forget(net_listener *l) {
    while (l->exchanges) {
        http_exchange *x = l->exchanges;
        l->exchanges = x->next;
        exchange_free(x);
    }
}

/* ---- answers ---- */

static const char *reason(int status) {
    static const struct { int status; const char *text; } known[] = {
        {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {406, "Not Acceptable"}, {408, "Request Timeout"}, {409, "Conflict"}, {411, "Length Required"}, {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"},
        {417, "Expectation Failed"}, {422, "Unprocessable Content"}, {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"}, {501, "Not " "Implemented"},
        {502, "Bad Gateway"}, {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status) return known[i].text;
    return "Status";
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", made once a second; loops have a thread each. */
static const char *date_now(void) {
    static _Thread_local time_t second;
    static _Thread_local char text[40];
    time_t now = (time_t)(fz_now_ms() / 1000);
    if (now != second || !*text) {
        struct tm tm;
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        gmtime_r(&now, &tm);
        snprintf(text, sizeof text, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        second = now;
    }
    return text;
}

/* The answer's bytes onto the connection. */
static void put_answer(http_conn *h, int status, const net_http_field *f, size_t n, const void *body, size_t n_body, bool close) {
    const http_head *head = h->x ? &h->x->head : NULL;
    fz_buf b = {0};
    fz_buf_printf(&b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason(status), date_now());
    for (size_t i = 0; i < n; i++) {
        fz_buf_puts(&b, f[i].name);
        fz_buf_append(&b, ": ", 2);
        fz_buf_puts(&b, f[i].value);
        fz_buf_append(&b, "\r\n", 2);
    }
    if (status >= 200 && status != 204 && status != 304) fz_buf_printf(&b, "Content-Length: %zu\r\n", n_body);
    if (close) fz_buf_puts(&b, "Connection: close\r\n");
    else if (head && head->minor == 0) fz_buf_puts(&b, "Connection: keep-alive\r\n");
    fz_buf_append(&b, "\r\n", 2);
    bool no_body = status == 204 || status == 304 || (head && head->method && strcmp(head->method, "HEAD") == 0);
    if (n_body && !no_body) fz_buf_append(&b, body, n_body);
    net_conn_write(h->c, b.data, b.len);
    fz_buf_free(&b);
}

static const char *header_of(const http_exchange *x, const char *name) {
    for (size_t i = 0; i < x->head.n; i++)
        if (fz_ieq(x->head.field[i].name, name)) return x->head.field[i].value;
    return NULL;
}

/* The room's own answers: one line of text. The connection ends: where the next request begins is not known, or time and memory are short. */
static void refuse(http_conn *h, int status, const char *why) {
    net_http_field f[2] = {{"Content-Type", "text/plain"}, {"Retry-After", "1"}};
    fz_buf b = {0};
    if (status == 413 && h->l->o.http_too_large) h->l->o.http_too_large(header_of(h->x, "content-type"), why, &f[0].value, &b); /* its head is whole */
    else fz_buf_printf(&b, "%s\n", why);
    put_answer(h, status, f, status == 503 ? 2 : 1, b.data, b.len, true);
    fz_buf_free(&b);
    if (status == 413 || status == 414 || status == 431) net_count(&h->l->too_large, 1);
    h->phase = HTTP_DONE;
    net_conn_end(h->c);
}

static void hold(http_conn *h) { net_conn_hold(h->c, h->x->body.cap + h->x->text.cap); }

/* Ready for the next request of the connection. */
static void reset(http_conn *h) {
    if (h->x->body.cap > KEEP_ROOM) fz_buf_free(&h->x->body);
    if (h->x->text.cap > KEEP_ROOM) fz_buf_free(&h->x->text);
    h->x->body.len = 0;
    h->x->head = (http_head){.field = h->x->head.field, .cap = h->x->head.cap}; /* it pointed into the text */
    h->phase = HTTP_HEAD;
    h->line = 0;
    net_conn_hold(h->c, 0);
}

void net_http_answer(net_http_request *r, int status, const net_http_field *f, size_t n, const void *body, size_t n_body) {
    http_exchange *x = r->inner;
    http_conn *h = x->h;
    exchange_unlink(x);
    if (!h) {
        exchange_free(x);
        return;
    }
    bool close = !x->head.keep || h->l->stopped || x->early; /* early: the body is not read, so that the next request cannot be found */
    put_answer(h, status, f, n, body, n_body, close);
    if (close) {
        h->phase = HTTP_DONE;
        net_conn_hold(h->c, 0);
        net_conn_resume(h->c);
        net_conn_end(h->c);
        return;
    }
    reset(h);
    net_conn_resume(h->c);
}

/* ---- requests ---- */

const char *net_http_header(const net_http_request *r, const char *name) {
    return header_of(r->inner, name);
}
void net_http_each_header(const net_http_request *r, void (*fn)(void *cx, const char *name, const char *value), void *cx) {
    const http_exchange *x = r->inner;
    for (size_t i = 0; i < x->head.n; i++) fn(cx, x->head.field[i].name, x->head.field[i].value);
}

static void make_request(http_conn *h) {
    http_exchange *x = h->x;
    h->phase = HTTP_WORK;
    x->h = h;
    x->r = (net_http_request){.method = x->head.method, .path = x->head.path, .query = x->head.query, .peer = net_conn_peer(h->c), .tls_name = net_conn_tls_name(h->c),
                              .body = x->body.data ? x->body.data : (const uint8_t *)"", .n_body = x->body.len, .inner = x};
    exchange_link(x);
}

/* Is the request turned away before its body comes? */
static bool turned_away(http_conn *h) {
    if (!h->l->o.http_head) return false;
    make_request(h);
    h->x->early = true;
    h->l->o.http_head(h->l->http_cx, &h->x->r);
    h->x->early = false;
    if (h->phase == HTTP_DONE) return true;
    exchange_unlink(h->x);
    return false;
}

/* The request is whole: the handler's turn. */
static void work(http_conn *h) {
    http_exchange *x = h->x;
    make_request(h);
    hold(h);
    net_conn_message(h->c, false);
    net_conn_pause(h->c);
    h->l->http(h->l->http_cx, &x->r);
}

/* A head of n bytes at p is whole; `more`: bytes follow it. */
static void take_head(http_conn *h, const uint8_t *p, size_t n, bool more) {
    const char *why = "";
    if (!h->x) {
        h->x = FZ_NEW(http_exchange);
        h->x->l = h->l;
    }
    http_exchange *x = h->x;
    x->text.len = 0;
    fz_buf_append(&x->text, p, n);
    int status = http_head_parse((char *)x->text.data, n, &x->head, &why);
    if (status) {
        refuse(h, status, why);
        return;
    }
    if (x->head.has_length && x->head.length > h->l->o.max_message) {
        refuse(h, 413, "the body is too large");
        return;
    }
    if (!x->head.chunked && !x->head.length) {
        work(h);
        return;
    }
    if (turned_away(h)) return;
    h->phase = x->head.chunked ? HTTP_CHUNKS : HTTP_BODY;
    h->chunks = (http_chunks){0};
    net_conn_message(h->c, true);
    if (x->head.expect && !more) net_conn_write(h->c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static size_t look_for_head(http_conn *h, const uint8_t *p, size_t n) {
    size_t blank = 0;
    while (h->line == 0 && blank + 1 < n && p[blank] == '\r' && p[blank + 1] == '\n') blank += 2; /* RFC 9112, 2.2 */
    if (blank) return blank;
    size_t within = n < FZ_MAX_HTTP_HEAD ? n : FZ_MAX_HTTP_HEAD, end = http_head_end(p, within, &h->line);
    if (end == SIZE_MAX) refuse(h, 400, "a line does not end with CR LF");
    else if (!end && n >= FZ_MAX_HTTP_HEAD) {
        bool line = memchr(p, '\n', within) == NULL;
        refuse(h, line ? 414 : 431, line ? "the request line is too long" : "the headers are too large");
    } else if (end) {
        h->line = 0;
        take_head(h, p, end, end < n);
    }
    return end == SIZE_MAX ? n : end;
}

static size_t take_body(http_conn *h, const uint8_t *p, size_t n) {
    http_exchange *x = h->x;
    size_t left = (size_t)x->head.length - x->body.len, take = left < n ? left : n;
    if (x->body.len + take > x->body.cap) { /* it grows with what has come, not with what was announced */
        size_t want = x->body.cap * 2 > (size_t)x->head.length ? left : x->body.cap > take ? x->body.cap : take;
        fz_buf_reserve(&x->body, want);
    }
    fz_buf_append(&x->body, p, take);
    hold(h);
    if (take == left) work(h);
    return take;
}

static size_t take_chunks(http_conn *h, const uint8_t *p, size_t n) {
    int status;
    size_t took = http_chunks_take(&h->chunks, p, n, h->l->o.max_message, &h->x->body, &status);
    hold(h);
    if (status == 200) work(h);
    else if (status) refuse(h, status, status == 413 ? "the body is too large" : "the chunks of the body are broken");
    return took;
}

static void *http_open(void *cx, net_conn *c) {
    http_conn *h = FZ_NEW(http_conn);
    h->l = cx;
    h->c = c;
    return h;
}

static size_t http_data(void *state, const uint8_t *p, size_t n) {
    http_conn *h = state;
    size_t at = 0;
    while (at < n) {
        size_t used = 0;
        if (h->phase == HTTP_HEAD) used = look_for_head(h, p + at, n - at);
        else if (h->phase == HTTP_BODY) used = take_body(h, p + at, n - at);
        else if (h->phase == HTTP_CHUNKS) used = take_chunks(h, p + at, n - at);
        if (h->phase == HTTP_DONE) return n;
        if (!used) break;
        at += used;
    }
    return at;
}

static void http_close(void *state) {
    http_conn *h = state;
    if (h->phase == HTTP_WORK) {
        http_exchange *x = h->x; /* what it was told about the peer goes with the connection */
        x->h = NULL;
        snprintf(x->peer, sizeof x->peer, "%s", x->r.peer);
        x->tls_name = x->r.tls_name ? fz_strdup(x->r.tls_name) : NULL;
        x->r.peer = x->peer;
        x->r.tls_name = x->tls_name;
    } else exchange_free(h->x);
    fz_free(h);
}

static void http_expired(void *state, net_expiry why) {
    http_conn *h = state;
    if (why == NET_EXPIRED_MESSAGE) refuse(h, 408, "the request took too long");
    else if (why == NET_EXPIRED_OVERLOAD) refuse(h, 503, "the server's memory is full");
}

const net_proto net_http_proto = {.open = http_open, .data = http_data, .close = http_close, .expired = http_expired};
