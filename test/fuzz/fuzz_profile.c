/* Fuzzes AWS profile files: whatever is taken can be asked for, twice parsed is the same as once, and no error quotes a value.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: the config file, and after a byte 0x1e the credentials file.
 */
#include "aws/aws_cred_int.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_profile.c:%d: %s\n", __LINE__, #x), abort()))

static const char *const names[] = {"default", "a", "b", "src", "corp", "local"}, *const keys[] = {"region", "s3", "aws_secret_access_key", "credential_process", "glue", "x"};
enum { N = 6 };

static fz_status both(aws_profiles *p, const char *text, size_t n, size_t half, fz_error *err) {
    FZ_TRY(aws_profiles_parse(p, text, half, false, "config", err));
    return half < n ? aws_profiles_parse(p, text + half + 1, n - half - 1, true, "credentials", err) : FZ_OK;
}

static void ask(const aws_profiles *p, const aws_profiles *again, fz_arena *a) {
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < N; i++) {
            bool has = aws_profiles_has(p, (aws_section_kind)kind, names[i]);
            for (int k = 0; k < N; k++) {
                const char *v = aws_profiles_get(p, (aws_section_kind)kind, names[i], keys[k]), *w = aws_profiles_get(again, (aws_section_kind)kind, names[i], keys[k]);
                CHECK(!v || has);
                CHECK(!v == !w && (!v || strcmp(v, w) == 0));
                for (int j = 0; j < N; j++) {
                    const char *sub = aws_profiles_sub(p, (aws_section_kind)kind, names[i], keys[k], keys[j], a);
                    CHECK(!sub || (v && v[0] == '\n' && !strchr(sub, '\n')));
                }
            }
        }
    CHECK(strlen(aws_profiles_names(p, a)) < 300);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const char *text = (const char *)data, *cut = n ? memchr(text, 0x1e, n) : NULL;
    size_t half = cut ? (size_t)(cut - text) : n;
    aws_profiles *p = aws_profiles_new(), *again = aws_profiles_new();
    fz_error err = {0}, same = {0};
    fz_arena *a = fz_arena_new();
    fz_status rc = both(p, text, n, half, &err);
    CHECK(rc == FZ_OK || (rc == FZ_USER && strcmp(err.code, "aws.profile-file") == 0 && (strstr(err.message, ", line ") || n > 100 || strstr(err.message, "no text"))));
    CHECK(both(again, text, n, half, &same) == rc && strcmp(err.message, same.message) == 0);
    if (rc == FZ_OK) {
        CHECK(both(again, text, n, half, NULL) == FZ_OK); /* the same once more: sections merge, the last property counts */
        ask(p, again, a);
    }
    aws_profiles_free(p);
    aws_profiles_free(again);
    fz_arena_free(a);
    return 0;
}
#include "replay.h"
