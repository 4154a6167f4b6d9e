/* See log.h. */
#include "base/log.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static fz_log_level min_level = FZ_LOG_INFO;
static void (*before_line)(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

void fz_log_set_level(fz_log_level level) { min_level = level; }
bool fz_log_parse_level(const char *name, fz_log_level *out) {
    for (int i = 0; i <= FZ_LOG_OFF; i++)
        if (fz_ieq(name, level_names[i])) return *out = (fz_log_level)i, true;
    return false;
}
void fz_log_set_hook(void (*before)(void)) { before_line = before; }

static bool needs_quotes(const char *s) {
    if (!*s) return true;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '\\' || *s == '=') return true;
    return false;
}

static void put_value(fz_buf *b, const char *key, const char *value) {
    fz_buf_putc(b, ' ');
    fz_buf_puts(b, key);
    fz_buf_putc(b, '=');
    if (needs_quotes(value)) fz_buf_json(b, value, strlen(value));
    else fz_buf_puts(b, value);
}

/* Key, NUL, value: both in one heap string. */
char *fz_kv(const char *key, const char *fmt, ...) {
    fz_buf b = {0};
    fz_buf_append(&b, key, strlen(key) + 1);
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    size_t len = n > 0 ? (size_t)n : 0;
    fz_buf_reserve(&b, len + 1);
    vsnprintf((char *)b.data + b.len, len + 1, fmt, again);
    va_end(again);
    b.len += len;
    return fz_buf_steal(&b);
}

void fz_log(fz_log_level level, const char *event, ...) {
    va_list ap;
    va_start(ap, event);
    char *kv;
    if (level < min_level) {
        while ((kv = va_arg(ap, char *))) fz_free(kv);
        va_end(ap);
        return;
    }
    fz_buf b = {0};
    int64_t now = fz_now_ms();
    time_t sec = (time_t)(now / 1000);
    struct tm tm;
    gmtime_r(&sec, &tm);
    char ts[40];
    strftime(ts, sizeof ts, "%Y-%m-%dT%H:%M:%S", &tm);
    fz_buf_printf(&b, "ts=%s.%03dZ level=%s event=%s", ts, (int)(now % 1000), level_names[level], event);
    while ((kv = va_arg(ap, char *))) {
        put_value(&b, kv, kv + strlen(kv) + 1);
        fz_free(kv);
    }
    va_end(ap);
    fz_buf_putc(&b, '\n');
    pthread_mutex_lock(&lock);
    if (before_line) before_line();
    ssize_t w = write(STDERR_FILENO, b.data, b.len);
    (void)w; /* a log that cannot be written has nowhere to say so */
    pthread_mutex_unlock(&lock);
    fz_buf_free(&b);
}

void fz_log_error(fz_log_level level, const char *event, const fz_error *err) {
    fz_log(level, event, FZ_KV("code", "%s", err->code), FZ_KV("class", "%s", fz_status_name(err->cls)), FZ_KV("message", "%s", err->message),
           FZ_KV("detail", "%s", err->detail), FZ_KV("hint", "%s", err->hint), NULL);
}

bool fz_log_allowed(fz_log_limit *l, uint32_t burst, int64_t per_ms, uint64_t *suppressed) {
    int64_t now = fz_mono_ns() / 1000000;
    if (l->window_start == 0 || now - l->window_start >= per_ms) {
        l->window_start = now;
        l->in_window = 0;
    }
    if (l->in_window >= burst) {
        l->suppressed++;
        return false;
    }
    l->in_window++;
    *suppressed = l->suppressed;
    l->suppressed = 0;
    return true;
}
