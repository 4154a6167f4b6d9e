/* Helpers of the Iceberg tests. */
#ifndef ICE_TEST_H
#define ICE_TEST_H
#include "unit.h"
#include "iceberg/iceberg.h"


static inline void read_file(const char *path, fz_buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    char b[65536];
    size_t n;
    while ((n = fread(b, 1, sizeof b, f)) > 0) fz_buf_append(out, b, n);
    fclose(f);
}

static inline void must(fz_status s, const fz_error *err) {
    char text[2048];
    if (s != FZ_OK) fail_msg("%s", fz_error_text(err, text, sizeof text));
}

/* A store in memory: names and bytes, in the order of writing. */
typedef struct mem_store { char *name[4096]; fz_buf data[4096]; uint32_t n; uint32_t fail_at; /* write number that fails, from 1 */ uint32_t writes; } mem_store;

static inline fz_status mem_read(void *cx, const char *location, fz_buf *out, fz_error *err) {
    mem_store *s = cx;
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->name[i], location) == 0) {
            fz_buf_append(out, s->data[i].data, s->data[i].len);
            return FZ_OK;
        }
    return fz_fail(err, FZ_USER, "file.not-found", "%s is not there", location);
}

static inline fz_status mem_write(void *cx, const char *location, const void *p, size_t n, fz_error *err) {
    mem_store *s = cx;
    if (++s->writes == s->fail_at) return fz_fail(err, FZ_RETRY, "test.fail", "write %u fails", s->writes);
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->name[i], location) == 0) fail_msg("%s is written twice", location);
    s->name[s->n] = fz_strdup(location);
    fz_buf_append(&s->data[s->n++], p, n);
    return FZ_OK;
}

static inline void mem_free(mem_store *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        fz_free(s->name[i]);
        fz_buf_free(&s->data[i]);
    }
    fz_free(s);
}

static inline json_t *json_of(const char *text) {
    json_error_t e;
    json_t *j = json_loads(text, JSON_DECODE_ANY, &e);
    if (!j) fail_msg("bad JSON in test: %s: %s", e.text, text);
    return j;
}
#endif
