/* Clocks. Wall time can be set by tests (FRAZIL_CLOCK_OFFSET_MS shifts it; fz_clock_fix pins it). Threads: any. */
#ifndef FZ_CLOCK_H
#define FZ_CLOCK_H
#include <stdint.h>
int64_t fz_now_ms(void);      /* wall clock, ms since 1970-01-01T00:00:00Z */
int64_t fz_now_us(void);
int64_t fz_mono_ns(void);     /* monotonic, ns */
int64_t fz_cpu_ns(void);      /* CPU time of the process, ns */
void fz_sleep_ms(int64_t ms); /* whole time, whatever signals come */
void fz_clock_fix(int64_t now_us); /* 0: the real clock again */
/* 16 random bytes from the system; and a random UUID (version 4) as 36 characters and a NUL. */
void fz_random(void *out, unsigned n);
void fz_uuid4(char out[37]);
#endif
