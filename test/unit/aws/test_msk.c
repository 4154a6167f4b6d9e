/* Login tokens of MSK: the same as the vendor's signer makes (test/data/aws/msk.tsv, written by test/interop/msk_token.py). */
#include "aws/aws_home.h"

static void decode(const char *b64url, char *out, size_t cap) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = 0;
    unsigned bits = 0, have = 0;
    for (; *b64url; b64url++) {
        const char *at = strchr(alphabet, *b64url);
        if (!at) fail_msg("'%c' is not base64url", *b64url);
        bits = bits << 6 | (unsigned)(at - alphabet);
        have += 6;
        if (have >= 8) {
            have -= 8;
            assert_true(n + 1 < cap);
            out[n++] = (char)(bits >> have & 0xff);
        }
    }
    out[n] = 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
/* scheme://host/ and the parameters in order of their names. */
static void sorted(char *url, char *out, size_t cap) {
    char *v[32], *save = NULL;
    size_t n = 0;
    char *q = strchr(url, '?');
    assert_non_null(q);
    *q = 0;
    for (char *t = strtok_r(q + 1, "&", &save); t; t = strtok_r(NULL, "&", &save)) v[n++] = t;
    qsort(v, n, sizeof *v, by_text);
    size_t len = (size_t)snprintf(out, cap, "%s", url);
    for (size_t i = 0; i < n; i++) len += (size_t)snprintf(out + len, cap - len, " %s", v[i]);
}

static void as_the_signer(void **state) {
    (void)state;
    FILE *f = fopen("test/data/aws/msk.tsv", "r");
    assert_non_null(f);
    static char line[8192], got[8192], a_text[8192], b_text[8192];
    int n = 0;
    while (fgets(line, sizeof line, f)) {
        char *v[7], *save = NULL;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 7; i++) v[i] = strtok_r(i ? NULL : line, "\t", &save);
        setenv("AWS_ACCESS_KEY_ID", v[1], 1);
        setenv("AWS_SECRET_ACCESS_KEY", v[2], 1);
        if (strcmp(v[3], "-")) setenv("AWS_SESSION_TOKEN", v[3], 1);
        else unsetenv("AWS_SESSION_TOKEN");
        fz_clock_fix(strtoll(v[4], NULL, 10) * 1000000);
        aws_session *s = session();
        fz_arena *a = fz_arena_new();
        const char *token, *principal;
        int64_t expires;
        fz_error err = {0};
        if (aws_msk_token(s, v[0], a, &token, &expires, &principal, &err) != FZ_OK) fail_msg("%s", err.message);
        assert_int_equal(expires, strtoll(v[5], NULL, 10));
        assert_string_equal(principal, "environment");
        decode(token, got, sizeof got);
        char *agent = strstr(got, "&User-Agent=frazil");
        assert_non_null(agent);
        assert_string_equal(agent, "&User-Agent=frazil"); /* the last one, not signed */
        *agent = 0;
        sorted(got, a_text, sizeof a_text);
        sorted(v[6], b_text, sizeof b_text);
        assert_string_equal(a_text, b_text);
        aws_session_unref(s);
        fz_arena_free(a);
        n++;
    }
    assert_int_equal(n, 4);
    fclose(f);
}

static void no_longer_than_the_credentials(void **state) {
    (void)state;
    home_file("p.sh", "#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\",\"Expiration\":\"2030-01-01T00:01:00Z\"}'\n");
    char config[256];
    snprintf(config, sizeof config, "[default]\nregion = eu-west-1\ncredential_process = /bin/sh %s/p.sh\n", home_dir);
    home_file(".aws/config", config);
    fz_clock_fix(1893456000000000); /* 2030-01-01 */
    aws_session *s = session();
    fz_arena *a = fz_arena_new();
    const char *token;
    int64_t expires;
    fz_error err = {0};
    if (aws_msk_token(s, NULL, a, &token, &expires, NULL, &err) != FZ_OK) fail_msg("%s", err.message);
    assert_int_equal(expires, 1893456060000);
    char got[2048];
    decode(token, got, sizeof got);
    assert_non_null(strstr(got, "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&"));
    assert_non_null(strstr(got, "&X-Amz-Expires=900&"));
    aws_session_unref(s);
    fz_arena_free(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, home_up, home_down)
int main(void) {
    const struct CMUnitTest tests[] = {T(as_the_signer), T(no_longer_than_the_credentials)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
