/* A PostgreSQL server that takes connections and never answers, or falls silent after the login: a process that is about to end does not wait for it, and does not try again. */
#include "cat_test.h"
#include "net/net.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GUARD_S = 60 }; /* unhurried it would wait for 300 s: the alarm ends the test then */

typedef struct server { int fd, port; bool greets; atomic_bool over; atomic_int taken; pthread_t thread; } server;

static bool take(int fd, void *p, size_t n) { return recv(fd, p, n, MSG_WAITALL) == (ssize_t)n; }

/* The login of protocol 3.0 without a password; then nothing is answered any more. */
static void greet(int fd) {
    static const char hello[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    uint8_t head[4], rest[4096];
    if (!take(fd, head, 4)) return;
    size_t n = ((size_t)head[2] << 8 | head[3]) - 4;
    if (n <= sizeof rest && take(fd, rest, n)) (void)!send(fd, hello, sizeof hello - 1, MSG_NOSIGNAL);
}

static void *serve(void *cx) {
    server *s = cx;
    int open[64], n = 0;
    while (!atomic_load(&s->over)) {
        struct pollfd f = {.fd = s->fd, .events = POLLIN};
        if (poll(&f, 1, 50) != 1 || n == 64) continue;
        int fd = accept(s->fd, NULL, NULL);
        if (fd < 0) continue;
        open[n++] = fd;
        atomic_fetch_add(&s->taken, 1);
        if (s->greets) greet(fd);
    }
    while (n) close(open[--n]);
    return NULL;
}

static bool hurry(void) { return true; }

static void silent(bool greets, const char *host, int taken) {
    server s = {.greets = greets};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    s.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s.fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(s.fd, 16), 0);
    assert_int_equal(getsockname(s.fd, (struct sockaddr *)&a, &n), 0);
    s.port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s.thread, NULL, serve, &s), 0);
    char uri[300], second[64] = "";
    if (host) snprintf(second, sizeof second, ",%s:%d", host, s.port);
    snprintf(uri, sizeof uri, "jdbc:postgresql://127.0.0.1:%d%s/lake?user=u&sslmode=disable&gssEncMode=disable&targetServerType=any&connectTimeout=300&socketTimeout=300", s.port, second);
    const fz_pair o[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "sql"}, {.key = "uri", .value = uri}, {.key = "warehouse", .value = "file:///tmp/no-such"}};
    cat_catalog *c = NULL;
    alarm(GUARD_S);
    net_set_hurry(hurry);
    fz_status rc = cat_open("c", o, 4, NULL, &c, &err);
    net_set_hurry(NULL);
    alarm(0);
    if (rc != FZ_RETRY) fail_msg("%d %s %s", rc, err.code, err.message);
    assert_string_equal(err.code, "catalog.unreachable");
    assert_non_null(strstr(err.message, "in time"));
    assert_null(c);
    assert_int_equal(atomic_load(&s.taken), taken); /* the second host is not tried, nor is the first one again */
    atomic_store(&s.over, true);
    pthread_join(s.thread, NULL);
    close(s.fd);
}

static void no_greeting(void **state) { (void)state; silent(false, NULL, 1); }
static void no_second_host(void **state) { (void)state; silent(false, "127.0.0.1", 1); }
static void no_answer(void **state) { (void)state; silent(true, NULL, 1); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_greeting), cmocka_unit_test(no_second_host), cmocka_unit_test(no_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
