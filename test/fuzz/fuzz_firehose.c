/* Fuzzes what callers of the Firehose API send: the body of a call, and the signature's header.
 *
 * A body that is taken has records within AWS's limits, and each is the Base64 of its Data again, but for the newline. Nobody without the secret gets past aws_verify: the fuzzer does not know it.
 *
 * Compiled and run by test/fuzz/replay.sh. Input: a byte (0: PutRecord, 1: PutRecordBatch, 2: an Authorization header and after a newline the path and query, 3: Base64), then the text.
 */
#include "../../src/source/spooled_frame.c"
#include "../../src/source/firehose_body.c"
#include "aws/aws.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_firehose.c:%d: %s\n", __LINE__, #x), abort()))

static void same_record(const json_t *record, const uint8_t *p, uint32_t n) {
    const char *data = json_string_value(json_object_get(record, "Data"));
    static const char *const ends[] = {"", "\n", "\r\n"};
    bool found = false;
    for (int i = 0; i < 3 && !found; i++) {
        fz_buf raw = {0}, text = {0};
        fz_buf_append(&raw, p, n);
        fz_buf_puts(&raw, ends[i]);
        fz_buf_base64(&text, raw.data, raw.len);
        size_t whole = text.len >= 4 ? text.len - 4 : 0; /* the last group may have bits that count for nothing */
        found = text.len == strlen(data) && memcmp(text.data ? text.data : (const uint8_t *)"", data, whole) == 0;
        fz_buf_free(&raw);
        fz_buf_free(&text);
    }
    CHECK(found);
}

static void body(const uint8_t *p, size_t n, bool batch) {
    json_t *call;
    fz_error err;
    src_frame f = {0};
    if (fh_parse(p, n, &call, &err) != FZ_OK) {
        CHECK(strcmp(err.code, "SerializationException") == 0 && !call);
        return;
    }
    if ((batch ? fh_records : fh_record)(call, &f, &err) == FZ_OK) {
        const uint8_t *at = f.bytes.data;
        CHECK(f.n >= 1 && f.n <= FH_MOST_RECORDS);
        for (uint32_t i = 0; i < f.n; at += f.len[i++]) {
            CHECK(f.len[i] <= FH_MOST_RECORD);
            same_record(batch ? json_array_get(json_object_get(call, "Records"), i) : json_object_get(call, "Record"), at, f.len[i]);
        }
        CHECK(at == f.bytes.data + f.bytes.len);
    } else CHECK(strcmp(err.code, "SerializationException") == 0 || strcmp(err.code, "InvalidArgumentException") == 0);
    src_frame_free(&f);
    json_decref(call);
}

static const char *secret_of(void *cx, const char *id) {
    static char secret[41];
    (void)cx;
    if (!secret[0])
        for (int i = 0; i < 40; i++) secret[i] = (char)('a' + rand() % 26);
    return *id == 'A' ? secret : NULL;
}

static void authorization(const uint8_t *p, size_t n) {
    fz_error err;
    char *text = malloc(n + 1);
    memcpy(text, p, n);
    text[n] = 0;
    char *path = strchr(text, '\n'), *query;
    if (path) *path++ = 0;
    query = path ? strchr(path, '?') : NULL;
    if (query) *query++ = 0;
    net_header h[] = {{"Host", "h"}, {"X-Amz-Date", "20250102T030405Z"}, {"Authorization", text}, {"X-Odd", path ? path : ""}, {"X-Amz-Target", "t"}};
    aws_verify_input in = {.service = "firehose", .method = "POST", .path = path ? path : "/", .query = query, .headers = h, .n_headers = 5, .body = p, .n_body = n, .now_ms = 1735787045000, .encode_path_twice = true};
    CHECK(aws_verify(&in, secret_of, NULL, &err) == FZ_USER);
    CHECK(strcmp(err.code, "MissingAuthenticationTokenException") == 0 || strcmp(err.code, "IncompleteSignatureException") == 0 || strcmp(err.code, "InvalidSignatureException") == 0 ||
          strcmp(err.code, "UnrecognizedClientException") == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    const uint8_t *p = data + 1;
    size_t n = size - 1;
    fz_buf out = {0};
    switch (data[0] & 3) {
    case 0: case 1: body(p, n, data[0] & 1); break;
    case 2: authorization(p, n); break;
    default:
        if (fz_base64_decode((const char *)p, n, &out)) CHECK(n % 4 == 0 && out.len <= n / 4 * 3 && out.len + 2 >= n / 4 * 3);
    }
    fz_buf_free(&out);
    return 0;
}

#include "replay.h"
