/* Fuzzes bodies: net_inflate, and json_split. The first byte chooses.
 *
 * What inflates is what libdeflate makes of the same bytes, within the ceiling; what is a document for json_split is one for jansson, and the other way round.
 * Compiled and run by test/fuzz/replay.sh.
 */
#include "net/server.h"
#include "source/json_split.h"
#include <jansson.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "fuzz_body.c:%d: %s\n", __LINE__, #x), abort()))
enum { CEILING = 100000 };

static void inflate(const char *coding, const uint8_t *p, size_t n) {
    fz_buf out = {0};
    fz_error err;
    fz_status st = net_inflate(coding, p, n, CEILING, &out, &err);
    CHECK(st == FZ_OK ? out.len <= CEILING : st == FZ_DATA);
    CHECK(out.cap <= 2 * CEILING + 64);
    if (st == FZ_OK && strcmp(coding, "gzip") == 0) {
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        uint8_t *again = fz_malloc(CEILING + 1);
        for (size_t at = 0, done = 0; at < n;) {
            size_t in = 0, made = 0;
            CHECK(libdeflate_gzip_decompress_ex(d, p + at, n - at, again + done, CEILING + 1 - done, &in, &made) == LIBDEFLATE_SUCCESS);
            CHECK(done + made <= out.len && (!made || memcmp(out.data + done, again + done, made) == 0));
            at += in;
            done += made;
            CHECK(at < n || done == out.len);
        }
        fz_free(again);
        libdeflate_free_decompressor(d);
    }
    fz_buf_free(&out);
}

/* 1: a document; 0: none; -1: jansson cannot say (numbers out of its range, \u0000, halves of surrogates). */
static int jansson_says(const char *p, size_t n) {
    json_error_t e;
    json_t *j = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (j) {
        json_decref(j);
        return 1;
    }
    enum json_error_code c = json_error_code(&e);
    if (c == json_error_numeric_overflow || c == json_error_stack_overflow || memmem(p, n, "\\u", 2)) return -1;
    return 0;
}

static void split(const uint8_t *p, size_t n, bool objects) {
    json_split s;
    fz_sv d;
    int rc, docs = 0;
    const char *end = (const char *)p;
    json_split_init(&s, p, n, objects);
    while ((rc = json_split_next(&s, &d)) == 1) {
        CHECK(d.p >= end && d.n > 0 && d.p + d.n <= (const char *)p + n);
        CHECK(jansson_says(d.p, d.n) != 0);
        CHECK(!objects || (d.p[0] == '{' && d.p[d.n - 1] == '}'));
        end = d.p + d.n;
        docs++;
    }
    if (rc < 0) {
        CHECK(s.why && s.where >= p && s.where <= p + n);
        size_t line = json_split_line(&s, s.where);
        CHECK(line >= 1 && line <= n + 1);
        CHECK(json_split_next(&s, &d) == -1);
    } else CHECK(json_split_next(&s, &d) == 0);
    /* A text that is one document or an array is taken; jansson goes deeper than we do. */
    if (!objects && rc < 0 && n < 1000 && !memchr(p, 0, n)) CHECK(jansson_says((const char *)p, n) != 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const codings[] = {"gzip", "zstd", "deflate"};
    if (!size || size > 100000) return 0;
    uint8_t *exact = fz_malloc(size); /* the rest alone, for the sanitizer */
    memcpy(exact, data + 1, size - 1);
    if (data[0] & 1) inflate(codings[data[0] / 2 % 3], exact, size - 1);
    else split(exact, size - 1, data[0] & 2);
    fz_free(exact);
    return 0;
}

#include "replay.h"
