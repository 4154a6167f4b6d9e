/* Providers: renewal, expiry, failures, threads. */
#include "aws/aws_home.h"

typedef struct service {
    atomic_int calls;
    int64_t life_ms;       /* of what it gives; 0: for ever */
    fz_status fails;       /* what it says instead */
    atomic_int *entered;   /* not NULL: waits until `wanted` threads are about to ask, and a little longer */
    int wanted;
    atomic_bool *gate;     /* not NULL: waits until it is open */
} service;

static fz_status fetch(void *cx, fz_arena *a, aws_credentials *out, fz_error *err) {
    service *s = cx;
    int n = atomic_fetch_add(&s->calls, 1) + 1;
    while (s->entered && atomic_load(s->entered) < s->wanted) fz_sleep_ms(1);
    if (s->entered) fz_sleep_ms(200);
    while (s->gate && !atomic_load(s->gate)) fz_sleep_ms(1);
    if (s->fails) return fz_fail(err, s->fails, s->fails == FZ_RETRY ? "aws.credentials-unavailable" : "aws.credentials", "call %d fails", n);
    *out = (aws_credentials){.access_key = fz_arena_printf(a, "KEY%d", n), .secret_key = "constant", .expires_ms = s->life_ms ? fz_now_ms() + s->life_ms : 0, .source = "test"};
    return FZ_OK;
}

static const int64_t T0 = 1700000000000;
static void at(int64_t ms) { fz_clock_fix((T0 + ms) * 1000); }

static void gives(aws_provider *p, const char *key) {
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    if (aws_provider_get(p, a, &c, &err) != FZ_OK) fail_msg("%s instead of %s", err.message, key);
    assert_string_equal(c.access_key, key);
    assert_string_equal(c.secret_key, "constant");
    fz_arena_free(a);
}
static void fails(aws_provider *p, fz_status cls, const char *message) {
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    assert_int_equal(aws_provider_get(p, a, &c, &err), cls);
    assert_int_equal(err.cls, cls);
    assert_string_equal(err.message, message);
    fz_arena_free(a);
}

static void for_ever(void **state) {
    (void)state;
    service s = {0};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    at(100ll * 365 * 86400 * 1000);
    gives(p, "KEY1");
    assert_int_equal(s.calls, 1);
    aws_provider_unref(p);
}

static void renewed_five_minutes_before(void **state) {
    (void)state;
    service s = {.life_ms = 3600000};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    at(3600000 - 300001);
    gives(p, "KEY1");
    at(3600000 - 300000);
    gives(p, "KEY2");
    aws_provider_unref(p);
}

static void short_lives_are_renewed_in_their_last_tenth(void **state) {
    (void)state;
    service s = {.life_ms = 5000};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    at(4499);
    gives(p, "KEY1");
    at(4500);
    gives(p, "KEY2");
    at(9000);
    gives(p, "KEY3");
    aws_provider_unref(p);
}

static void a_failed_renewal_keeps_the_old_ones(void **state) {
    (void)state;
    service s = {.life_ms = 3600000};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    s.fails = FZ_RETRY;
    at(3300000);
    gives(p, "KEY1");
    gives(p, "KEY1"); /* waits before it asks again */
    assert_int_equal(s.calls, 2);
    at(3300999);
    gives(p, "KEY1");
    assert_int_equal(s.calls, 2);
    at(3301000);
    gives(p, "KEY1");
    assert_int_equal(s.calls, 3);
    at(3301000 + 1999);
    gives(p, "KEY1");
    assert_int_equal(s.calls, 3);
    at(3303000);
    gives(p, "KEY1");
    assert_int_equal(s.calls, 4);
    at(3600000); /* no longer valid: asked each time */
    fails(p, FZ_RETRY, "call 5 fails");
    fails(p, FZ_RETRY, "call 6 fails");
    s.fails = FZ_OK;
    gives(p, "KEY7");
    gives(p, "KEY7");
    aws_provider_unref(p);
}

/* Credentials of 5 s, and a service that is down for 30 s when they are due: RETRY until it is back, then all is well. */
static void outage_of_30_seconds(void **state) {
    (void)state;
    service s = {.life_ms = 5000};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    s.fails = FZ_RETRY;
    fz_arena *a = fz_arena_new();
    int refused = 0, used = 0;
    for (int64_t t = 4500; t < 34500; t += 100) {
        aws_credentials c;
        fz_error err = {0};
        at(t);
        fz_status rc = aws_provider_get(p, a, &c, &err);
        if (t < 5000) assert_int_equal(rc, FZ_OK), used++;
        else assert_int_equal(rc, FZ_RETRY), refused++;
    }
    assert_int_equal(used, 5);
    assert_int_equal(refused, 295);
    s.fails = FZ_OK;
    at(34500);
    fz_error err = {0};
    aws_credentials c;
    assert_int_equal(aws_provider_get(p, a, &c, &err), FZ_OK);
    assert_int_equal(c.expires_ms, T0 + 34500 + 5000);
    assert_int_equal(c.generation, 2);
    fz_arena_free(a);
    aws_provider_unref(p);
}

static void expired_says_the_service(void **state) {
    (void)state;
    service s = {0};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    gives(p, "KEY1");
    aws_provider_expired(p, 7); /* others than these */
    gives(p, "KEY1");
    aws_provider_expired(p, 1);
    gives(p, "KEY2");
    aws_provider_expired(p, 1); /* a late word about the old ones */
    gives(p, "KEY2");
    aws_provider_expired(p, 2);
    s.fails = FZ_USER;
    fails(p, FZ_USER, "call 3 fails");
    aws_provider_unref(p);
}

static void fixed(void **state) {
    (void)state;
    aws_provider *p = aws_provider_ref(aws_provider_static("AK", "SK", NULL, "vended"));
    aws_provider_unref(p);
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    for (uint64_t i = 1; i < 3; i++) {
        assert_int_equal(aws_provider_get(p, a, &c, &err), FZ_OK);
        assert_string_equal(c.access_key, "AK");
        assert_string_equal(c.secret_key, "SK");
        assert_null(c.token);
        assert_string_equal(c.source, "vended");
        assert_int_equal(c.generation, i);
        aws_provider_expired(p, i);
    }
    aws_provider_unref(p);
    aws_provider_unref(NULL);
    fz_arena_free(a);
}

/* --- threads --- */

typedef struct user { aws_provider *p; atomic_int *entered; fz_status rc; char key[32]; } user;
static void *use(void *cx) {
    user *u = cx;
    fz_arena *a = fz_arena_new();
    aws_credentials c;
    fz_error err = {0};
    atomic_fetch_add(u->entered, 1);
    u->rc = aws_provider_get(u->p, a, &c, &err);
    snprintf(u->key, sizeof u->key, "%s", u->rc == FZ_OK ? c.access_key : err.message);
    fz_arena_free(a);
    return NULL;
}

enum { N = 12 };
static void many(service *s, aws_provider *p, fz_status rc, const char *key) {
    pthread_t t[N];
    user u[N];
    atomic_int entered = 0;
    s->entered = &entered;
    s->wanted = N;
    for (int i = 0; i < N; i++) {
        u[i] = (user){.p = p, .entered = &entered};
        pthread_create(&t[i], NULL, use, &u[i]);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(u[i].rc, rc);
        assert_string_equal(u[i].key, key);
    }
}

static void one_fetch_for_all(void **state) {
    (void)state;
    service s = {.fails = FZ_RETRY};
    aws_provider *p = aws_provider_custom(fetch, &s, NULL);
    at(0);
    many(&s, p, FZ_RETRY, "call 1 fails"); /* who waited gets the same error */
    assert_int_equal(s.calls, 1);
    s.fails = FZ_OK;
    many(&s, p, FZ_OK, "KEY2");
    assert_int_equal(s.calls, 2);
    aws_provider_unref(p);
}

typedef struct freed { service s; bool done; } freed;
static void on_free(void *cx) { ((freed *)cx)->done = true; }

static void the_rest_go_on_while_one_renews(void **state) {
    (void)state;
    freed f = {.s = {.life_ms = 3600000}};
    aws_provider *p = aws_provider_custom(fetch, &f, on_free);
    at(0);
    gives(p, "KEY1");
    at(3400000);
    atomic_bool gate = false;
    atomic_int entered = 0;
    f.s.gate = &gate;
    user u = {.p = p, .entered = &entered};
    pthread_t t;
    pthread_create(&t, NULL, use, &u);
    while (atomic_load(&f.s.calls) < 2) fz_sleep_ms(1);
    gives(p, "KEY1"); /* old, but valid: nobody waits */
    atomic_store(&gate, true);
    pthread_join(t, NULL);
    assert_string_equal(u.key, "KEY2");
    gives(p, "KEY2");
    assert_false(f.done);
    aws_provider_unref(p);
    assert_true(f.done);
}

#define T(f) cmocka_unit_test_setup_teardown(f, home_up, home_down)
int main(void) {
    fz_log_set_level(FZ_LOG_OFF);
    const struct CMUnitTest tests[] = {T(for_ever), T(renewed_five_minutes_before), T(short_lives_are_renewed_in_their_last_tenth), T(a_failed_renewal_keeps_the_old_ones),
                                       T(outage_of_30_seconds), T(expired_says_the_service), T(fixed), T(one_fetch_for_all), T(the_rest_go_on_while_one_renews)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
