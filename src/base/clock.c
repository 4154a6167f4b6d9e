/* See clock.h. */
#include "base/clock.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static _Atomic int64_t fixed_us;

static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static int64_t offset_us(void) {
    static _Atomic int64_t cached = INT64_MIN;
    int64_t v = atomic_load(&cached);
    if (v == INT64_MIN) {
        const char *s = getenv("FRAZIL_CLOCK_OFFSET_MS");
        v = s ? strtoll(s, NULL, 10) * 1000 : 0;
        atomic_store(&cached, v);
    }
    return v;
}
int64_t fz_now_us(void) {
    int64_t f = atomic_load(&fixed_us);
    return f ? f : read_clock(CLOCK_REALTIME) / 1000 + offset_us();
}
int64_t fz_now_ms(void) { return fz_now_us() / 1000; }
int64_t fz_mono_ns(void) { return read_clock(CLOCK_MONOTONIC); }
int64_t fz_cpu_ns(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
void fz_clock_fix(int64_t now_us) { atomic_store(&fixed_us, now_us); }
void fz_sleep_ms(int64_t ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR) {}
}
void fz_random(void *out, unsigned n) {
    unsigned char *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            abort(); /* no entropy source: nothing that must be unique can be made */
        }
        p += got;
        n -= (unsigned)got;
    }
}
void fz_uuid4(char out[37]) {
    unsigned char b[16];
    fz_random(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7],
             b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}
