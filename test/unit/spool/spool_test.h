/* Helpers of the spool's tests: a directory of its own, records whose bytes tell their number, whole files in and out. */
#ifndef SPOOL_TEST_H
#define SPOOL_TEST_H
#include "unit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "spool/spool_int.h"

static char dir[64];
static inline int spool_setup(void **state) {
    (void)state;
    fz_log_set_level(FZ_LOG_OFF);
    snprintf(dir, sizeof dir, "/tmp/frazil-spool-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}
static inline int spool_teardown(void **state) {
    (void)state;
    (void)!fz_fault_arm(NULL, NULL);
    char *cmd = fz_asprintf("chmod -R u+rwx '%s' && rm -rf '%s'", dir, dir);
    int rc = system(cmd);
    fz_free(cmd);
    return rc;
}
#define OK(call) do { fz_error e_ = {0}; fz_error *err_ = &e_; if ((call) != FZ_OK) fail_msg("%s: %s %s", #call, e_.code, e_.message); } while (0)

static inline spool *open_spool(const spool_options *o) {
    spool *s = NULL;
    OK(spool_open(dir, o, &s, err_));
    return s;
}

/* n records "<k>:xxx" with k from `from` on, of varying length, under the context "c<from>". */
typedef struct made { fz_buf bytes; uint32_t *len; int64_t *time; char context[24]; spool_frame f; } made;
static inline void make_frame(made *m, uint64_t from, uint32_t n, uint32_t pad) {
    *m = (made){.len = fz_malloc(n * sizeof *m->len), .time = fz_malloc(n * sizeof *m->time)};
    for (uint32_t i = 0; i < n; i++) {
        size_t at = m->bytes.len;
        fz_buf_printf(&m->bytes, "%" PRIu64 ":", from + i);
        for (uint32_t k = 0; k < pad + (from + i) % 7; k++) fz_buf_putc(&m->bytes, 'x');
        m->len[i] = (uint32_t)(m->bytes.len - at);
        m->time[i] = (int64_t)(from + i) * 1000;
    }
    snprintf(m->context, sizeof m->context, "c%" PRIu64, from);
    m->f = (spool_frame){.context = m->context, .context_len = (uint32_t)strlen(m->context), .n = n, .arrival_ms = (int64_t)from, .len = m->len, .time_ns = from % 2 ? m->time : NULL, .bytes = m->bytes.data};
}
static inline void drop_frame(made *m) {
    fz_buf_free(&m->bytes);
    fz_free(m->len);
    fz_free(m->time);
}
static inline fz_status try_append(spool *s, uint64_t from, uint32_t n, uint32_t pad, int64_t wait_ms, uint64_t *ticket, fz_error *err) {
    made m;
    make_frame(&m, from, n, pad);
    fz_status rc = spool_append(s, &m.f, 1, wait_ms, ticket, err);
    drop_frame(&m);
    return rc;
}
/* Appends and waits until it is durable. Returns the ticket. */
static inline uint64_t append(spool *s, uint64_t from, uint32_t n, uint32_t pad) {
    uint64_t ticket;
    OK(try_append(s, from, n, pad, 1000, &ticket, err_));
    OK(spool_wait(s, ticket, 10000, err_));
    return ticket;
}
/* The bytes of a record say `value`? Returns that they are right to the end. */
static inline uint64_t value_of(const uint8_t *p, uint32_t n) {
    uint64_t v = 0;
    uint32_t i = 0;
    for (; i < n && p[i] != ':'; i++) v = v * 10 + (uint64_t)(p[i] - '0');
    assert_true(i < n);
    for (i++; i < n; i++) assert_int_equal(p[i], 'x');
    return v;
}
/* Reads all that is durable from `from` on, checks that values grow and that numbers have no hole but those that views name; returns how many records came. sum: of their values. */
static inline uint64_t read_all(spool *s, uint64_t from, uint64_t *sum, uint64_t *holes) {
    spool_reader *r = spool_reader_new(s, from);
    uint64_t n = 0, next = from < spool_low(s) ? spool_low(s) : from, last = 0;
    *sum = 0;
    if (holes) *holes = 0;
    for (;;) {
        spool_view v;
        bool got;
        OK(spool_next(r, 0, &v, &got, err_));
        if (!got) break;
        assert_int_equal(v.from, next);
        assert_true(v.first >= v.from);
        if (holes) *holes += v.first - v.from;
        else assert_int_equal(v.first, v.from);
        const uint8_t *p = v.bytes;
        for (uint32_t i = 0; i < v.n; i++) {
            uint64_t value = value_of(p, v.len[i]);
            if (v.time_ns) assert_int_equal(v.time_ns[i], (int64_t)value * 1000);
            if (n) assert_true(value > last);
            last = value;
            *sum += value;
            n++;
            p += v.len[i];
        }
        next = v.first + v.n;
        spool_view_release(&v);
    }
    spool_reader_free(r);
    return n;
}
static inline uint64_t sum_to(uint64_t n) { return n * (n - 1) / 2; }

static inline char *file_of(const char *name) { return fz_asprintf("%s/%s", dir, name); }
static inline void get_file(const char *name, fz_buf *out) {
    char *path = file_of(name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s", path);
    uint8_t chunk[65536];
    out->len = 0;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) fz_buf_append(out, chunk, n);
    fclose(f);
    fz_free(path);
}
static inline void put_file(const char *name, const void *p, size_t n) {
    char *path = file_of(name);
    FILE *f = fopen(path, "wb");
    if (!f) fail_msg("%s", path);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
    fz_free(path);
}
static inline bool file_there(const char *name) {
    char *path = file_of(name);
    struct stat st;
    bool there = lstat(path, &st) == 0;
    fz_free(path);
    return there;
}
static inline void seg_name(char out[40], uint64_t first) { snprintf(out, 40, "%020" PRIu64 ".seg", first); }
#endif
