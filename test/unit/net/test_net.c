/* One exchange: what goes onto the wire, what comes back, and what is known when it fails. */
#include "unit.h"
#include "http_fake.h"
#include "net/net.h"

static fz_status ask(http_fake *f, const char *method, const char *path, net_request *rq, net_answer *out, fz_error *err) {
    static char url[2048];
    snprintf(url, sizeof url, "%s%s", http_fake_url(f), path);
    rq->method = method;
    rq->url = url;
    if (!rq->body.p && !rq->body.n) rq->body.fd = -1;
    return net_exchange(rq, out, err);
}

static void test_get(void **state) {
    (void)state;
    http_fake *f = http_fake_start((http_reply[]){{.body = "hello", .headers = "ETag: \"x\"\r\nX-Two:  a b \r\n"}}, 1);
    net_request rq = {.headers = (net_header[]){{"X-A", "1"}, {"X-Empty", ""}}, .n_headers = 2};
    net_answer an;
    fz_error err;
    assert_int_equal(ask(f, "GET", "/a//b/../c%20d/%2F=+*~!'()&?q=%26&b=&c=1+2", &rq, &an, &err), FZ_OK);
    assert_int_equal(an.status, 200);
    assert_int_equal(an.body.len, 5);
    assert_memory_equal(an.body.data, "hello", 5);
    assert_string_equal(net_answer_header(&an, "etag"), "\"x\"");
    assert_string_equal(net_answer_header(&an, "X-TWO"), "a b");
    assert_null(net_answer_header(&an, "nothing"));
    const http_seen *s = http_fake_seen(f, 0);
    assert_string_equal(s->target, "/a//b/../c%20d/%2F=+*~!'()&?q=%26&b=&c=1+2");
    char want[256];
    snprintf(want, sizeof want, "\r\nHost: 127.0.0.1:%d\r\nX-A: 1\r\nX-Empty:\r\nUser-Agent: frazil/" FRAZIL_VERSION "\r\n\r\n", f->port);
    assert_string_equal(strstr(s->head, "\r\n"), want);
    net_answer_free(&an);
    http_fake_stop(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_get)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
