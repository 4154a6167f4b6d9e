/* Errors: a status is the class of an error; the rest stands in a caller-owned fz_error.
 *
 * Invariants
 *  1. FZ_OK is 0; any other status means that err (if not NULL) was filled by the function that failed first.
 *  2. Policy reads the class (and, for people and tests, the code), never the text of a message.
 *  3. A message is one line; detail and hint may be empty.
 * Threads: an fz_error belongs to one thread.
 */
#ifndef FZ_ERR_H
#define FZ_ERR_H
#include <stdarg.h>
#include <stddef.h>

#define FZ_MUST_USE __attribute__((warn_unused_result))
#define FZ_PRINTF(a, b) __attribute__((format(printf, a, b)))

typedef enum {
    FZ_OK = 0,
    FZ_USER,     /* the script, the configuration or the command line is wrong */
    FZ_DATA,     /* this row is wrong; the next one may be right */
    FZ_RETRY,    /* the same call may succeed later; nothing has happened */
    FZ_CONFLICT, /* somebody else moved what we built on; nothing has happened */
    FZ_UNKNOWN,  /* the other side may or may not have acted: delete nothing, look again */
    FZ_FATAL     /* cannot go on (disk gone, damaged file, broken invariant) */
} fz_status;

typedef struct fz_error {
    fz_status cls;
    char code[48];     /* stable, dotted: "sql.syntax", "kafka.unknown-topic" */
    int line, column;  /* 1-based position in the script, 0 if there is none */
    char message[768];
    char detail[768];
    char hint[384];
} fz_error;

/* Fills err (may be NULL) and returns cls, so that a function can `return fz_fail(...)`. Clears detail, hint and position. */
fz_status fz_fail(fz_error *err, fz_status cls, const char *code, const char *fmt, ...) FZ_PRINTF(4, 5);
/* Adds detail, hint or position to an error that fz_fail filled. Each returns err->cls; with NULL the class of this thread's last fz_fail(NULL, ...). */
fz_status fz_detail(fz_error *err, const char *fmt, ...) FZ_PRINTF(2, 3);
fz_status fz_hint(fz_error *err, const char *fmt, ...) FZ_PRINTF(2, 3);
fz_status fz_at(fz_error *err, int line, int column);
/* Puts "prefix: " before the message (context as an error travels up). Returns err->cls. */
fz_status fz_context(fz_error *err, const char *fmt, ...) FZ_PRINTF(2, 3);
/* Name of a class, for logs: "USER", "DATA", ... */
const char *fz_status_name(fz_status s);
/* "message (detail). Hint: ..., at line L, column C" into out; returns out. */
const char *fz_error_text(const fz_error *err, char *out, size_t cap);

#define FZ_TRY(expr) do { fz_status fz_s_ = (expr); if (fz_s_ != FZ_OK) return fz_s_; } while (0)
#define FZ_GOTO(label, rc, expr) do { (rc) = (expr); if ((rc) != FZ_OK) goto label; } while (0)
#endif
