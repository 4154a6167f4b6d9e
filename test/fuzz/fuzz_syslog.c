/* Fuzzes syslog: the connection, which is driven with a model of the listener and the spool in place of sockets, and the format.
 *
 * Whatever pieces a stream comes in, and whenever the spool has no room, the messages are those of the same stream in one piece and with room: each once, in order. Every message is a row: with well-formed text, the
 * same alone as in a batch, its raw text the message itself; what structured data has in a MAP stands in it.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: 8 bytes that steer pieces, failures and the format, then the stream.
 */
#define net_conn_pause model_pause
#define net_conn_end model_end
#define net_conn_hold model_hold_bytes
#define net_conn_peer model_peer
#define src_spooled_append model_append
#define src_spooled_hold model_hold
#define src_spooled_let_go model_let_go
#include "../../src/source/spooled_frame.c"
#include "../../src/source/syslog_frame.c"
#include "../../src/source/syslog_conn.c"
#include "decode/syslog_parts.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_syslog.c:%d: %s\n", __LINE__, #x), abort()))
enum { MAX_MESSAGE = 1024, MAX_ROWS = 256 };

/* ---- the stream ---- */

static struct {
    fz_buf taken;       /* messages with their length */
    bool paused, ended;
    uint64_t fail;      /* bit by bit: does the next append find no room? 0: never again */
} m;

void model_pause(net_conn *c) { (void)c, m.paused = true; }
void model_end(net_conn *c) { (void)c, m.ended = true; }
void model_hold_bytes(net_conn *c, size_t n) { (void)c, CHECK(n < 1 << 20); }
const char *model_peer(const net_conn *c) { return (void)c, "peer"; }
void model_hold(src_spooled *s, net_conn *c) { (void)s, (void)c, m.paused = true; }
void model_let_go(src_spooled *s, const net_conn *c) { (void)s, (void)c; }
fz_status model_append(src_spooled *s, const spool_frame *f, uint32_t n, src_durable_fn fn, void *cx, fz_error *err) {
    (void)s, (void)fn, (void)cx;
    bool no_room = m.fail & 1;
    m.fail >>= 1;
    if (no_room) return fz_fail(err, FZ_RETRY, "spool.full", "no room");
    CHECK(n == 1 && f->n > 0 && f->context_len == 4);
    const uint8_t *p = f->bytes;
    for (uint32_t k = 0; k < f->n; p += f->len[k++]) {
        CHECK(f->len[k] > 0 && f->len[k] < MAX_MESSAGE);
        fz_buf_append(&m.taken, &f->len[k], 4);
        fz_buf_append(&m.taken, p, f->len[k]);
    }
    return FZ_OK;
}

static syslog_source source;

/* The stream in steps, as the listener hands it out; returns whether the connection was closed for what came. */
static bool drive(const uint8_t *p, size_t n, size_t step, uint64_t fail) {
    bool refused = false;
    size_t at = 0, have = 0;
    m.taken.len = 0;
    m.paused = m.ended = false;
    m.fail = fail;
    sys_conn *c = sys_proto.open(&source, NULL);
    while (!refused && (have < n || m.paused)) {
        if (!m.paused) have = have + step < n ? have + step : n;
        m.paused = false;
        uint8_t *exact = malloc(have - at + 1);
        memcpy(exact, p + at, have - at);
        size_t used = sys_proto.data(c, exact, have - at);
        refused = used == SIZE_MAX;
        CHECK(refused || used <= have - at);
        if (!refused) at += used;
        CHECK(refused || (c->tail.len == have - at && (!c->tail.len || memcmp(c->tail.data, p + at, c->tail.len) == 0)));
        free(exact);
    }
    if (!refused) {
        uint8_t *exact = malloc(n - at + 1);
        memcpy(exact, p + at, n - at);
        sys_proto.eof(c, exact, n - at);
        free(exact);
        for (int i = 0; i < 100 && source.ending; i++) sys_conn_room(&source);
        CHECK(!source.ending);
    }
    sys_proto.close(c);
    return refused;
}

/* ---- the format ---- */

static fz_arena *types;
static col_schema schemas[2];
static bool is_map[2] = {true, false};

static void make_schemas(void) {
    static const char *const texts[] = {"facility_text", "severity_text", "hostname", "app_name", "procid", "msgid", "message", "raw", "format"};
    types = fz_arena_new();
    for (int s = 0; s < 2; s++) {
        col_field *f = FZ_ANEWN(types, col_field, 16);
        uint32_t n = 0;
        const col_type *text = col_string(true);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) f[n++] = (col_field){texts[i], text, NULL};
        f[n++] = (col_field){"priority", col_simple(COL_INT, true), NULL};
        f[n++] = (col_field){"timestamp", is_map[s] ? col_sized(types, COL_TIMESTAMP_LTZ, 6, 0, true) : text, NULL};
        f[n++] = (col_field){"structured_data", is_map[s] ? col_map(types, text, col_map(types, text, text, true), true) : text, NULL};
        schemas[s] = (col_schema){n, f};
    }
}

static void check_vec(const col_vec *v) {
    if (v->idx) {
        for (uint32_t i = 0; i < v->len; i++) CHECK(!v->valid || v->valid[i] ? v->idx[i] < v->dict->len : v->idx[i] == 0);
        check_vec(v->dict);
        return;
    }
    for (uint32_t i = 0; v->off && i < v->len; i++) CHECK(v->off[i] <= v->off[i + 1]);
    if (col_is_text(v->type->kind))
        for (uint32_t i = 0; i < v->len; i++) CHECK(fz_utf8_valid(v->bytes + v->off[i], v->off[i + 1] - v->off[i]));
    for (uint32_t k = 0; k < v->n_child; k++) {
        CHECK(v->child[k]->len == v->off[v->len]);
        check_vec(v->child[k]);
    }
}

typedef struct result { dec_output out; fz_rejects rejects; fz_arena *a; dec_decoder *d; } result;
static void run(result *r, const fz_chunk *c, const col_schema *s) {
    static const fz_pair zone = {.key = "syslog.time-zone", .value = "Europe/Berlin"};
    fz_error err;
    memset(r, 0, sizeof *r);
    CHECK(dec_new("syslog", &zone, 1, s, NULL, false, &r->d, &err) == FZ_OK);
    r->a = fz_arena_new();
    CHECK(dec_decode(r->d, c, r->a, &r->out, &r->rejects, &err) == FZ_OK);
    CHECK(r->out.n_rows == c->n && r->rejects.n == 0 && r->out.n_unparseable == 0);
    for (uint32_t k = 0; k < s->n; k++) {
        CHECK(r->out.cols[k]->len == c->n);
        check_vec(r->out.cols[k]);
    }
}
static void release(result *r) {
    dec_free(r->d);
    fz_arena_free(r->a);
    fz_free(r->rejects.v);
}

static void format(const col_schema *s) {
    fz_record rec[MAX_ROWS];
    fz_chunk c = {.rec = rec};
    for (size_t at = 0; at < m.taken.len && c.n < MAX_ROWS;) {
        uint32_t n;
        memcpy(&n, m.taken.data + at, 4);
        uint8_t *exact = malloc(n);
        memcpy(exact, m.taken.data + at + 4, n);
        rec[c.n++] = (fz_record){.value = exact, .value_len = (int32_t)n, .key_len = -1, .timestamp_ms = 1735787045000};
        at += 4 + n;
    }
    result batch, one;
    run(&batch, &c, s);
    for (uint32_t i = 0; i < c.n; i++) {
        fz_chunk single = {.rec = &rec[i], .n = 1};
        fz_buf text = {0};
        run(&one, &single, s);
        for (uint32_t k = 0; k < s->n; k++) {
            const col_vec *x = batch.out.cols[k], *y = one.out.cols[k];
            CHECK(col_is_null(x, i) == col_is_null(y, 0));
            if (!col_is_null(x, i)) CHECK(col_equal(x, i, y, 0));
        }
        CHECK(dec_record_text(one.d, &rec[i], &text) && fz_utf8_valid((const char *)text.data, text.len));
        fz_buf_free(&text);
        release(&one);
        free((void *)(uintptr_t)rec[i].value);
    }
    release(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fz_buf taken;
    uint64_t steer;
    if (size < 9 || size > 65536) return 0;
    if (!types) make_schemas();
    fz_log_set_level(FZ_LOG_ERROR);
    source.s.base.cx.table = "t";
    memcpy(&steer, data, 8);
    source.max_message = MAX_MESSAGE;
    bool refused = drive(data + 8, size - 8, size - 8, 0);
    taken.len = 0;
    fz_buf_append(&taken, m.taken.data, m.taken.len);
    CHECK(drive(data + 8, size - 8, 1 + (size_t)(steer & 63), steer >> 8) == refused);
    CHECK(m.taken.len == taken.len && (!taken.len || memcmp(m.taken.data, taken.data, taken.len) == 0));
    format(&schemas[(steer >> 6) & 1]);
    return 0;
}

#include "replay.h"
