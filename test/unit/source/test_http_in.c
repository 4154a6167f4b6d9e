/* The connector http from socket to chunk: what is posted, how it is answered, and when. */
#include "unit.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "source/spooled.h"

static char dir[64];
static int setup(void **state) {
    (void)state;
    fz_log_set_level(FZ_LOG_OFF);
    snprintf(dir, sizeof dir, "/tmp/frazil-http-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}
static int teardown(void **state) {
    (void)state;
    char *cmd = fz_asprintf("rm -rf '%s'", dir);
    int rc = system(cmd);
    fz_free(cmd);
    return rc;
}

static fz_status try_open(const fz_pair *more, size_t n_more, src_source **out, fz_error *err) {
    fz_pair o[8] = {{.key = "connector", .value = "http"}, {.key = "listen", .value = "127.0.0.1:0"}};
    size_t n = 2;
    for (size_t i = 0; i < n_more; i++) {
        if (strcmp(more[i].key, "listen") == 0) o[1] = more[i];
        else o[n++] = more[i];
    }
    src_context cx = {.table = "db.t", .job = "j", .readers = 1, .memory = 8 << 20, .state_dir = dir, .max_record_size = 2000};
    return src_open(o, n, &cx, out, err);
}
static src_source *open_with(const fz_pair *more, size_t n) {
    fz_error err = {0};
    src_source *s = NULL;
    if (try_open(more, n, &s, &err) != FZ_OK) fail_msg("%s: %s", err.code, err.message);
    return s;
}

/* One request over a connection of its own; the whole answer, which the caller frees (NULL: none, the listener is gone). Threads ask, so nothing is asserted here. */
static char *ask_at(int port, const char *head, const void *body, size_t n) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fz_buf b = {0}, got = {0};
    fz_buf_printf(&b, "%sHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", head, n);
    fz_buf_append(&b, body, n);
    bool sent = connect(fd, (struct sockaddr *)&a, sizeof a) == 0 && send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
    for (ssize_t k = sent; k > 0;) {
        fz_buf_reserve(&got, 4096);
        k = recv(fd, got.data + got.len, 4096, 0);
        if (k > 0) got.len += (size_t)k;
    }
    close(fd);
    fz_buf_free(&b);
    return fz_buf_steal(&got);
}
static int port_of(src_source *s) { return atoi(strrchr(net_listener_address(((src_spooled *)s)->listeners[0]), ':') + 1); }
static void check(src_source *s, const char *head, const char *body, int status, const char *has) {
    char *got = ask_at(port_of(s), head, body, strlen(body)), want[24];
    snprintf(want, sizeof want, "HTTP/1.1 %d ", status);
    if (!got || !fz_starts(got, want) || !strstr(got, has)) fail_msg("%s%s: wanted %d with %s, got %s", head, body, status, has, got ? got : "nothing");
    fz_free(got);
}
#define POST "POST / HTTP/1.1\r\n"

/* Takes chunks until n records have come; their texts joined by '|'. */
static char *read_all(src_source *s, uint32_t n) {
    fz_buf b = {0};
    for (uint32_t have = 0; have < n;) {
        fz_chunk *c = NULL;
        bool done;
        fz_error err;
        assert_int_equal(src_poll(s, 0, 5000, &c, &done, &err), FZ_OK);
        assert_non_null(c);
        for (uint32_t i = 0; i < c->n; i++) {
            fz_buf_append(&b, c->rec[i].value, (size_t)c->rec[i].value_len);
            fz_buf_putc(&b, '|');
            assert_in_range(c->rec[i].timestamp_ms, fz_now_ms() - 60000, fz_now_ms());
            assert_true(c->rec[i].offset == (int64_t)(c->from + i));
        }
        have += c->n;
        fz_chunk_release(c);
    }
    return fz_buf_steal(&b);
}

static void test_way(void **state) {
    (void)state;
    src_source *s = open_with(NULL, 0);
    fz_error err;
    assert_int_equal(src_assign(s, 0, 0, &err), FZ_OK);
    check(s, POST, "{\"a\":1}", 200, "{\"accepted\":1}");
    check(s, POST, "{\"a\":2}\n{\"a\":\n 3}\n", 200, "{\"accepted\":2}");
    check(s, POST, "[{\"a\":4},{\"a\":5}]", 200, "{\"accepted\":2}");
    check(s, POST, "{\"a\":91}\n{\"a\":92\n", 400, "\"line\":2");
    check(s, POST, "17", 400, "a JSON object was expected");
    check(s, POST, "", 200, "{\"accepted\":0}");
    check(s, POST "Content-Encoding: br\r\n", "{}", 415, "Accept-Encoding: gzip, zstd, deflate\r\n");
    check(s, POST "Content-Encoding: gzip\r\n", "{}", 400, "\"error\"");
    check(s, POST "Content-Type: image/png\r\n", "{}", 415, "\"error\"");
    check(s, POST "Content-Type: application/json; charset=\"UTF-8\"\r\n", "{\"a\":6}", 200, "{\"accepted\":1}");
    check(s, POST "Origin: null\r\n", "{}", 403, "\"error\"");
    check(s, "GET / HTTP/1.1\r\n", "", 405, "Allow: POST\r\n");
    check(s, "POST /x HTTP/1.1\r\n", "{}", 404, "\"error\"");
    check(s, "GET /healthz HTTP/1.1\r\n", "", 200, "\"ok\"");
    check(s, "POST /healthz HTTP/1.1\r\n", "", 405, "Allow: GET, HEAD\r\n");
    char *large = fz_malloc(3000);
    memset(large, 'x', 3000);
    memcpy(large, "{}\n{\"a\":\"", 9);
    memcpy(large + 2990, "\"}", 3);
    check(s, POST, large, 413, "\"line\":2");
    fz_free(large);
    char *got = read_all(s, 6);
    assert_string_equal(got, "{\"a\":1}|{\"a\":2}|{\"a\":\n 3}|{\"a\":4}|{\"a\":5}|{\"a\":6}|");
    fz_free(got);
    src_close(s);
}

static void test_token(void **state) {
    (void)state;
    fz_pair o[] = {{.key = "auth", .value = "token"}, {.key = "token", .value = "abc"}, {.key = "path", .value = "/in"}, {.key = "value.format", .value = "raw"}};
    src_source *s = open_with(o, 4);
    check(s, "POST /in HTTP/1.1\r\n", "{}", 401, "WWW-Authenticate: Bearer\r\n");
    check(s, "POST /in HTTP/1.1\r\nAuthorization: Bearer ab\r\n", "{}", 401, "another one");
    check(s, "POST /in HTTP/1.1\r\nAuthorization: Bearer abcd\r\n", "{}", 401, "another one");
    check(s, "GET /in HTTP/1.1\r\n", "", 401, "Bearer");
    check(s, "POST / HTTP/1.1\r\n", "", 404, "");
    check(s, "POST /in HTTP/1.1\r\nAuthorization: BEARER abc\r\nOrigin: http://x\r\n", "17 {}", 200, "{\"accepted\":2}");
    check(s, "GET /healthz HTTP/1.1\r\n", "", 200, "ok");
    src_close(s);
}

static void test_options(void **state) {
    (void)state;
    static const struct { fz_pair o[3]; size_t n; const char *code; } cases[] = {
        {{{.key = "token", .value = "x"}}, 1, "option.conflict"}, {{{.key = "auth", .value = "token"}}, 1, "option.missing"}, {{{.key = "auth", .value = "token"}, {.key = "token", .value = ""}}, 2, "option.missing"},
        {{{.key = "auth", .value = "token"}, {.key = "token", .value = "a b"}}, 2, "option.invalid"}, {{{.key = "path", .value = "x"}}, 1, "option.invalid"}, {{{.key = "path", .value = "/x?y"}}, 1, "option.invalid"},
        {{{.key = "path", .value = "/healthz"}}, 1, "option.conflict"}, {{{.key = "listen", .value = "0.0.0.0:0"}}, 1, "listen.open"}, {{{.key = "listen", .value = "[::]:0"}}, 1, "listen.open"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fz_error err = {0};
        src_source *s = NULL;
        assert_int_equal(try_open(cases[i].o, cases[i].n, &s, &err), FZ_USER);
        assert_string_equal(err.code, cases[i].code);
    }
    fz_pair open_on_purpose[] = {{.key = "listen", .value = "0.0.0.0:0"}, {.key = "allow-unauthenticated", .value = "true"}};
    src_close(open_with(open_on_purpose, 2));
    fz_pair with_token[] = {{.key = "listen", .value = "0.0.0.0:0"}, {.key = "auth", .value = "token"}, {.key = "token", .value = "x"}};
    src_close(open_with(with_token, 3));
}

/* Senders that are busy when the source ends: each gets a whole answer or none, and what was answered 200 is there when it is opened again. */
typedef struct sender { int port, first; _Atomic int acked; } sender;
static void *send_many(void *cx) {
    sender *x = cx;
    for (int i = 0; i < 100000; i++) {
        char body[64];
        int n = snprintf(body, sizeof body, "{\"n\":%d}", x->first + i);
        char *got = ask_at(x->port, POST, body, (size_t)n);
        bool ok = got && fz_starts(got, "HTTP/1.1 200 ") && strstr(got, "\"accepted\":1}\n");
        fz_free(got);
        if (!ok) break;
        x->acked = i + 1;
    }
    return NULL;
}
static void test_end_under_load(void **state) {
    (void)state;
    src_source *s = open_with(NULL, 0);
    int64_t low, high;
    fz_error err;
    assert_int_equal(src_bounds(s, 0, &low, &high, &err), FZ_OK);
    sender x[3];
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (sender){port_of(s), i * 1000000 + 1000000, 0};
        pthread_create(&t[i], NULL, send_many, &x[i]);
    }
    while (x[0].acked < 30 || x[1].acked < 30 || x[2].acked < 30) usleep(1000);
    src_close(s);
    int acked = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        acked += x[i].acked;
    }
    s = open_with(NULL, 0);
    int64_t from = high;
    assert_int_equal(src_bounds(s, 0, &low, &high, &err), FZ_OK);
    assert_in_range(high - from, acked, acked + 3); /* one each may have been kept and not been answered */
    assert_int_equal(src_assign(s, 0, from, &err), FZ_OK);
    char *got = read_all(s, (uint32_t)(high - from));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < x[i].acked; k++) {
            char want[32];
            snprintf(want, sizeof want, "{\"n\":%d}|", x[i].first + k);
            const char *at = strstr(got, want);
            assert_non_null(at);
            assert_null(strstr(at + 1, want));
        }
    fz_free(got);
    src_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_way), cmocka_unit_test(test_token), cmocka_unit_test(test_options), cmocka_unit_test(test_end_under_load)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
