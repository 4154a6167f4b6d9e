/* PostgreSQL URIs and the properties of its JDBC driver, as libpq gets them; and what is refused, without its secrets. */
#include "catalog/pg_int.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static fz_arena *arena;
static fz_error err;
static int setup(void **state) {
    (void)state;
    arena = fz_arena_new();
    return 0;
}
static int teardown(void **state) {
    (void)state;
    fz_arena_free(arena);
    return 0;
}

/* "key=value ..." sorted by key; what every target has is left out. */
static const char *shown(const pg_target *t) {
    cat_names v = {0};
    for (uint32_t i = 0; i < t->key.n; i++)
        if (strcmp(t->key.v[i], "client_encoding") != 0 && strcmp(t->key.v[i], "fallback_application_name") != 0)
            cat_names_add(arena, &v, fz_arena_printf(arena, "%s=%s", t->key.v[i], t->value.v[i]));
    cat_names_sort(&v);
    const char *out = "";
    for (uint32_t i = 0; i < v.n; i++) out = fz_arena_printf(arena, "%s%s%s", out, i ? " " : "", v.v[i]);
    return out;
}

static void test_uris(void **state) {
    (void)state;
    static const struct { const char *uri, *want, *label; } good[] = {
        {"jdbc:postgresql://db.example:5433/lake?user=u&password=p", "dbname=lake host=db.example password=p port=5433 user=u", "postgresql://db.example:5433/lake"},
        {"jdbc:postgresql:lake", "dbname=lake host=localhost", "postgresql://localhost/lake"},
        {"jdbc:postgresql:/", "host=localhost", "postgresql://localhost/"},
        {"jdbc:postgresql:", "host=localhost", "postgresql://localhost/"},
        {"jdbc:postgresql:lake?user=u", "dbname=lake host=localhost user=u", "postgresql://localhost/lake"},
        {"jdbc:postgresql://h/", "host=h", "postgresql://h/"},
        {"jdbc:postgresql:///lake", "dbname=lake host=localhost", "postgresql://localhost/lake"},
        {"jdbc:postgresql://[::1]:5432/lake", "dbname=lake host=::1 port=5432", "postgresql://::1:5432/lake"},
        {"jdbc:postgresql://a:1,b,c:3/lake", "dbname=lake host=a,b,c port=1,,3 target_session_attrs=read-write", "postgresql://a,b,c:1,,3/lake"},
        {"jdbc:postgresql://a,b/lake?targetServerType=any", "dbname=lake host=a,b target_session_attrs=any", "postgresql://a,b/lake"},
        {"jdbc:postgresql://h/a%20b?password=a%2Bb+c%26", "dbname=a b host=h password=a+b c&", "postgresql://h/a b"},
        {"jdbc:postgresql://h/d?ssl", "dbname=d host=h sslmode=verify-full", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?ssl=true&sslmode=require", "dbname=d host=h sslmode=require", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?sslmode=require&ssl=true", "dbname=d host=h sslmode=require", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?ssl=false", "dbname=d host=h", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?sslrootcert=/r.crt&sslcert=/c&sslkey=/k&sslpassword=x", "dbname=d host=h sslcert=/c sslkey=/k sslpassword=x sslrootcert=/r.crt", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?ApplicationName=my+job&tcpKeepAlive=true", "application_name=my job dbname=d host=h keepalives=1", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?currentSchema=my%20lake,public", "dbname=d host=h options=-c search_path=my\\ lake,public", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?options=-c%20work_mem=1MB&currentSchema=s", "dbname=d host=h options=-c work_mem=1MB -c search_path=s", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?currentSchema=s&options=-c%20work_mem=1MB", "dbname=d host=h options=-c search_path=s -c work_mem=1MB", "postgresql://h/d"},
        {"jdbc:postgresql://h/d?&user=a&&user=b", "dbname=d host=h user=b", "postgresql://h/d"},
        {"postgresql://u:p%40w@h:5432/lake", "dbname=lake host=h password=p@w port=5432 user=u", "postgresql://h:5432/lake"},
        {"postgresql+psycopg2://u:p/w@h/lake", "dbname=lake host=h password=p/w user=u", "postgresql://h/lake"},
        {"postgresql+psycopg://u@h/a@b", "dbname=a@b host=h user=u", "postgresql://h/a@b"},
        {"postgresql://h/a@b", "dbname=a@b host=h", "postgresql://h/a@b"},
        {"postgres://u:p+w@h/lake", "dbname=lake host=h password=p+w user=u", "postgresql://h/lake"},
        {"postgresql:///lake?host=/var/run/pg&port=5433&user=u", "dbname=lake host=/var/run/pg port=5433 user=u", "postgresql:///var/run/pg:5433/lake"},
        {"postgresql://%2Fvar%2Frun/lake", "dbname=lake host=/var/run", "postgresql:///var/run/lake"},
        {"postgresql://u:p@/lake?host=a:1&host=b:2", "dbname=lake host=a,b password=p port=1,2 target_session_attrs=read-write user=u", "postgresql://a,b:1,2/lake"},
        {"postgresql://", "", "postgresql:///"},
        {"postgresql://h?sslmode=verify-ca&target_session_attrs=any&options=-c+a%3Db", "host=h options=-c a=b sslmode=verify-ca target_session_attrs=any", "postgresql://h/"},
    };
    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        pg_target t;
        assert_true(pg_is_uri(good[i].uri));
        if (pg_target_of(arena, good[i].uri, NULL, 0, &t, &err) != FZ_OK) fail_msg("%s: %s", good[i].uri, err.message);
        assert_string_equal(shown(&t), good[i].want);
        assert_string_equal(t.label, good[i].label);
        assert_string_equal(pg_target_get(&t, "client_encoding"), "UTF8");
    }
    assert_false(pg_is_uri("sqlite:///x.db"));
    assert_false(pg_is_uri("jdbc:sqlite:/x.db"));
    assert_false(pg_is_uri("jdbc:mysql://h/db"));
}

static void test_refused(void **state) {
    (void)state;
    static const struct { const char *uri, *named; } bad[] = {
        {"jdbc:postgresql://u:geheim@h/d", "properties behind '?'"}, {"jdbc:postgresql://h:geheim/d", "port"}, {"postgresql://h:0/d", "port"}, {"postgresql://h:65536/d", "port"},
        {"postgresql://u:geheim%2@h/d", "'%'"}, {"postgresql://u:geheim%zz@h/d", "'%'"}, {"postgresql://u:geheim%00@h/d", "'%'"}, {"postgresql://h/%", "'%'"},
        {"postgresql://[::1/d", "'['"}, {"postgresql:lake", "'//'"}, {"postgresql://h/d?sslmode=disable&pasword=geheim", "'pasword'"},
        {"postgresql://h/d?ApplicationName=x", "'ApplicationName'"}, {"postgresql://h/d?replication=1", "'replication'"}, {"postgresql://h/d?password=geheim&a=%x", "'%'"},
        {"jdbc:postgresql://h/d?passwrd=geheim", "'passwrd'"}, {"jdbc:postgresql://h/d?sslfactory=org.postgresql.ssl.NonValidatingFactory&password=geheim", "'sslfactory'"},
        {"jdbc:postgresql://h/d?sslmode=on", "sslmode"}, {"jdbc:postgresql://h/d?ssl=maybe", "ssl"}, {"jdbc:postgresql://h/d?connectTimeout=soon", "connectTimeout"},
        {"jdbc:postgresql://h/d?socketTimeout=-1", "socketTimeout"}, {"jdbc:postgresql://h/d?readOnly=true", "'readOnly'"}, {"jdbc:postgresql://h/d?targetServerType=secondary", "targetServerType"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        pg_target t;
        if (pg_target_of(arena, bad[i].uri, NULL, 0, &t, &err) != FZ_USER) fail_msg("%s is taken", bad[i].uri);
        char text[2048];
        fz_error_text(&err, text, sizeof text);
        if (!strstr(text, bad[i].named)) fail_msg("%s: no %s in: %s", bad[i].uri, bad[i].named, text);
        if (strstr(text, "geheim")) fail_msg("%s: %s", bad[i].uri, text);
    }
}

static void test_options(void **state) {
    (void)state;
    const fz_pair o[] = {
        {.key = "uri", .value = "ignored here"}, {.key = "jdbc.user", .value = "a"}, {.key = "jdbc.password", .value = "p"}, {.key = "jdbc.schema-version", .value = "V1"},
        {.key = "jdbc.prepareThreshold", .value = "3"}, {.key = "jdbc.connectTimeout", .value = "7"}, {.key = "jdbc.socketTimeout", .value = "9"}, {.key = "jdbc.sslmode", .value = "disable"},
    };
    pg_target t;
    assert_int_equal(pg_target_of(arena, "jdbc:postgresql://h/d?user=b&sslmode=require&loggerLevel=OFF", o, 8, &t, &err), FZ_OK);
    assert_string_equal(shown(&t), "dbname=d host=h password=p sslmode=require user=b"); /* the URI wins, as in Java */
    assert_int_equal(t.connect_ms, 7000);
    assert_int_equal(t.answer_ms, 9000);
    assert_int_equal(t.ignored.n, 2);
    assert_string_equal(t.ignored.v[0], "jdbc.prepareThreshold");
    assert_string_equal(t.ignored.v[1], "loggerLevel");
    assert_int_equal(pg_target_of(arena, "postgresql://h/d?connect_timeout=3", o, 8, &t, &err), FZ_OK); /* they hold for either kind of URI */
    assert_string_equal(pg_target_get(&t, "user"), "a");
    assert_int_equal(t.connect_ms, 3000);
    const fz_pair unknown = {.key = "jdbc.usr", .value = "geheim", .line = 3, .column = 5}, refused = {.key = "jdbc.socketFactory", .value = "x", .line = 4, .column = 5};
    assert_int_equal(pg_target_of(arena, "jdbc:postgresql://h/d", &unknown, 1, &t, &err), FZ_USER);
    assert_string_equal(err.message, "unknown catalog option 'jdbc.usr'");
    assert_string_equal(err.hint, "did you mean 'jdbc.user'?");
    assert_int_equal(err.line, 3);
    assert_int_equal(pg_target_of(arena, "jdbc:postgresql://h/d", &refused, 1, &t, &err), FZ_USER);
    assert_int_equal(err.line, 4);
    for (const fz_option *p = cat_jdbc_options(); p->name; p++) { /* the reference page has a text for each */
        assert_true(fz_starts(p->name, "jdbc."));
        assert_non_null(p->state == FZ_OPT_USED ? p->doc : p->why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_uris), T(test_refused), T(test_options),
    };
    return cmocka_run_group_tests_name("postgres uris", tests, NULL, NULL);
}
