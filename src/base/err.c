/* See err.h. */
#include "base/err.h"
#include <stdio.h>
#include <string.h>

/* Where callers that do not want to know pass NULL: the class must survive the hints that follow. */
static _Thread_local fz_error unwanted;

fz_status fz_fail(fz_error *err, fz_status cls, const char *code, const char *fmt, ...) {
    if (!err) err = &unwanted;
    memset(err, 0, sizeof *err);
    err->cls = cls;
    snprintf(err->code, sizeof err->code, "%s", code);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    return cls;
}

#define FILL(field)                                          \
    do {                                                     \
        if (!err) err = &unwanted;                           \
        va_list ap;                                          \
        va_start(ap, fmt);                                   \
        vsnprintf(err->field, sizeof err->field, fmt, ap);   \
        va_end(ap);                                          \
        return err->cls;                                     \
    } while (0)

fz_status fz_detail(fz_error *err, const char *fmt, ...) { FILL(detail); }
fz_status fz_hint(fz_error *err, const char *fmt, ...) { FILL(hint); }

fz_status fz_at(fz_error *err, int line, int column) {
    if (!err) err = &unwanted;
    err->line = line;
    err->column = column;
    return err->cls;
}

fz_status fz_context(fz_error *err, const char *fmt, ...) {
    if (!err) err = &unwanted;
    char prefix[sizeof err->message], joined[sizeof err->message * 2 + 3];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    snprintf(joined, sizeof joined, "%s: %s", prefix, err->message);
    memcpy(err->message, joined, sizeof err->message - 1);
    err->message[sizeof err->message - 1] = 0;
    return err->cls;
}

const char *fz_status_name(fz_status s) {
    static const char *const names[] = {"OK", "USER", "DATA", "RETRY", "CONFLICT", "UNKNOWN", "FATAL"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "?";
}

const char *fz_error_text(const fz_error *err, char *out, size_t cap) {
    char pos[48] = "";
    if (err->line) snprintf(pos, sizeof pos, " at line %d, column %d", err->line, err->column);
    snprintf(out, cap, "[%s] %s%s%s%s%s%s%s", err->code, err->message, pos, err->detail[0] ? " (" : "", err->detail,
             err->detail[0] ? ")" : "", err->hint[0] ? ". Hint: " : "", err->hint);
    return out;
}
