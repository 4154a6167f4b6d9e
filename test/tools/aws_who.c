/* aws_who [OPTION=VALUE...]: the credentials and region that the chain gives in this environment, as one line of JSON, for test/interop/aws_chain.py:
 *   {"access_key", "token", "expires_ms", "account", "source", "region"} or {"error": CODE, "class", "text"}. Secret keys are not shown. */
#include "aws/aws.h"
#include <stdio.h>
#include <stdlib.h>

static int put(json_t *o) {
    char *s = json_dumps(o, JSON_COMPACT);
    puts(s);
    free(s);
    json_decref(o);
    return 0;
}
static int failed(const fz_error *err) {
    char text[4096];
    return put(json_pack("{ss ss ss}", "error", err->code, "class", fz_status_name(err->cls), "text", fz_error_text(err, text, sizeof text)));
}

int main(int argc, char **argv) {
    fz_pair o[32];
    size_t n = 0;
    fz_error err = {0};
    aws_session *s;
    aws_credentials c;
    const char *region = NULL;
    fz_log_set_level(FZ_LOG_OFF);
    for (int i = 1; i < argc && n < 32; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq) return 2;
        *eq = 0;
        o[n++] = (fz_pair){argv[i], eq + 1, 0, 0};
    }
    if (aws_session_new(o, n, &s, &err) != FZ_OK) return failed(&err);
    fz_arena *a = fz_arena_new();
    int rc = 0;
    if (aws_provider_get(aws_session_provider(s), a, &c, &err) != FZ_OK) rc = failed(&err);
    else {
        if (aws_session_region(s, &region, NULL, &err) != FZ_OK) region = NULL;
        rc = put(json_pack("{ss ss* sI ss* ss ss*}", "access_key", c.access_key, "token", c.token, "expires_ms", (json_int_t)c.expires_ms, "account", c.account, "source", c.source, "region",
                           region));
    }
    fz_arena_free(a);
    aws_session_unref(s);
    return rc;
}
