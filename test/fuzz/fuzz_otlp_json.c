/* Fuzzes OTLP's JSON form: what is taken must be a request that the door can split. Built by replay.sh. */
#include "source/otlp_int.h"
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_otlp_json.c:%d: %s\n", __LINE__, #x), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size + !size);
    fz_buf out = {0};
    otlp_batch b = {0};
    fz_error err = {0};
    if (size) memcpy(copy, data, size);
    if (otlp_json_request(copy, size, &out, &err) == FZ_OK) {
        fz_status rc = otlp_split(out.data, out.len, 1 << 20, 1 << 20, &b, &err);
        CHECK(rc == FZ_OK || strcmp(err.code, "otlp.protobuf") != 0);
        CHECK(out.len <= 16 * size + 64);
    } else CHECK(err.cls == FZ_DATA && err.message[0] && fz_utf8_valid(err.message, strlen(err.message)));
    otlp_batch_free(&b);
    fz_buf_free(&out);
    free(copy);
    return 0;
}

#include "replay.h"
