/* Structured logs: one line an event, logfmt (`ts=... level=info event=checkpoint.done id=7 files=40`).
 *
 * Invariants
 *  1. A line is written whole, by one write(2), to standard error or to what fz_log_open named.
 *  2. Values with blanks, quotes or control characters are quoted and escaped, so a log line is one line.
 *  3. Secrets never reach this room: callers mask before.
 * Threads: any.
 */
#ifndef FZ_LOG_H
#define FZ_LOG_H
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum { FZ_LOG_DEBUG, FZ_LOG_INFO, FZ_LOG_WARN, FZ_LOG_ERROR, FZ_LOG_OFF } fz_log_level;

void fz_log_set_level(fz_log_level level);
bool fz_log_parse_level(const char *name, fz_log_level *out);
/* Called before each line while a terminal shows a live status line (it erases that line). NULL: none. */
void fz_log_set_hook(void (*before)(void));
/* Pairs of key (const char *) and printf-formatted value are built with FZ_KV; the list ends with NULL:
 *   fz_log(FZ_LOG_INFO, "checkpoint.done", FZ_KV("id", "%" PRIu64, id), FZ_KV("table", "%s", name), NULL);
 * FZ_KV yields a heap string that fz_log frees. */
void fz_log(fz_log_level level, const char *event, ...) __attribute__((sentinel));
char *fz_kv(const char *key, const char *fmt, ...) FZ_PRINTF(2, 3);
#define FZ_KV(...) fz_kv(__VA_ARGS__)
/* Logs an error with its code, class, detail and hint. */
void fz_log_error(fz_log_level level, const char *event, const fz_error *err);

/* A limit of `burst` lines a `per_ms`: true if this one may be written; *suppressed gets how many were not since. */
typedef struct fz_log_limit { int64_t window_start; uint32_t in_window; uint64_t suppressed; } fz_log_limit;
bool fz_log_allowed(fz_log_limit *l, uint32_t burst, int64_t per_ms, uint64_t *suppressed);
#endif
