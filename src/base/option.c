/* See option.h. */
#include "base/option.h"
#include "base/limits.h"
#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>

const fz_option *fz_option_find(const fz_option *table, const char *name) {
    for (const fz_option *o = table; o->name; o++)
        if (strcmp(o->name, name) == 0) return o;
    for (const fz_option *o = table; o->name; o++) {
        size_t n = strlen(o->name);
        if (o->name[n - 1] == '*' && strncmp(o->name, name, n - 1) == 0) return o;
    }
    return NULL;
}

static unsigned distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > 79 || m > 79) return 99;
    unsigned row[80];
    for (size_t j = 0; j <= m; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diag = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned up = row[j], best = diag + (a[i - 1] != b[j - 1]);
            if (up + 1 < best) best = up + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diag = up;
        }
    }
    return row[m];
}

const char *fz_option_nearest(const fz_option *table, const char *name) {
    const char *best = NULL;
    unsigned least = (unsigned)strlen(name) / 3 + 1;
    for (const fz_option *o = table; o->name; o++) {
        unsigned d = distance(o->name, name);
        if (d <= least) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

typedef struct unit { const char *name; int64_t factor; } unit;

static fz_status parse_with_unit(const char *s, const unit *units, const char *what, int64_t *out, fz_error *err) {
    fz_sv t = fz_sv_trim(fz_sv_of(s));
    size_t digits = 0;
    while (digits < t.n && t.p[digits] >= '0' && t.p[digits] <= '9') digits++;
    fz_sv u = fz_sv_trim((fz_sv){t.p + digits, t.n - digits});
    int64_t v;
    if (!fz_parse_i64((fz_sv){t.p, digits}, &v)) return fz_fail(err, FZ_USER, "option.invalid", "'%s' is not a %s", s, what);
    for (; units->name; units++)
        if (fz_sv_ieq(u, fz_sv_of(units->name))) {
            if (units->factor < 0) *out = v / -units->factor; /* smaller than the base unit */
            else if (__builtin_mul_overflow(v, units->factor, out)) break;
            return FZ_OK;
        }
    return fz_fail(err, FZ_USER, "option.invalid", "'%s' is not a %s: unknown unit or too large", s, what);
}

fz_status fz_parse_duration_ms(const char *s, int64_t *out, fz_error *err) {
    static const unit units[] = {{"", 1},          {"ms", 1},         {"milli", 1},       {"millis", 1},       {"millisecond", 1}, {"milliseconds", 1},
                                 {"s", 1000},      {"sec", 1000},     {"secs", 1000},     {"second", 1000},    {"seconds", 1000},  {"min", 60000},
                                 {"m", 60000},     {"minute", 60000}, {"minutes", 60000}, {"h", 3600000},      {"hour", 3600000},  {"hours", 3600000},
                                 {"d", 86400000},  {"day", 86400000}, {"days", 86400000}, {"us", -1000},       {"micro", -1000},   {"micros", -1000},
                                 {"microsecond", -1000}, {"microseconds", -1000}, {"\xC2\xB5s", -1000}, {"ns", -1000000}, {"nano", -1000000},
                                 {"nanos", -1000000}, {"nanosecond", -1000000}, {"nanoseconds", -1000000}, {NULL, 0}};
    FZ_TRY(parse_with_unit(s, units, "duration (like '30 s' or '5 min')", out, err));
    if (*out > FZ_MAX_DURATION_MS) return fz_fail(err, FZ_USER, "option.invalid", "'%s' is longer than 100 years", s);
    return FZ_OK;
}

fz_status fz_parse_size(const char *s, int64_t *out, fz_error *err) {
    static const unit units[] = {{"", 1},  {"b", 1},         {"bytes", 1},     {"k", 1 << 10},        {"kb", 1 << 10},        {"kibibytes", 1 << 10},
                                 {"kib", 1 << 10}, {"m", 1 << 20}, {"mb", 1 << 20}, {"mib", 1 << 20}, {"mebibytes", 1 << 20}, {"g", 1 << 30},
                                 {"gb", 1 << 30},  {"gib", 1 << 30}, {"gibibytes", 1 << 30}, {"t", 1ll << 40}, {"tb", 1ll << 40}, {"tib", 1ll << 40},
                                 {"tebibytes", 1ll << 40}, {NULL, 0}};
    return parse_with_unit(s, units, "size (like '128 mb')", out, err);
}

fz_status fz_parse_bool(const char *s, int *out, fz_error *err) {
    if (fz_ieq(s, "true")) return *out = 1, FZ_OK;
    if (fz_ieq(s, "false")) return *out = 0, FZ_OK;
    return fz_fail(err, FZ_USER, "option.invalid", "'%s' is neither true nor false", s);
}

fz_status fz_option_check(const fz_option *o, const char *value, fz_error *err) {
    int64_t i;
    double d;
    int b;
    fz_status rc = FZ_OK;
    switch (o->type) {
    case FZ_OPT_BOOL: rc = fz_parse_bool(value, &b, err); break;
    case FZ_OPT_DURATION: rc = fz_parse_duration_ms(value, &i, err); break;
    case FZ_OPT_SIZE: rc = fz_parse_size(value, &i, err); break;
    case FZ_OPT_INT:
        if (!fz_parse_i64(fz_sv_of(value), &i)) rc = fz_fail(err, FZ_USER, "option.invalid", "'%s' is not a whole number", value);
        break;
    case FZ_OPT_DOUBLE:
        if (!fz_parse_f64(fz_sv_of(value), &d)) rc = fz_fail(err, FZ_USER, "option.invalid", "'%s' is not a number", value);
        break;
    case FZ_OPT_ENUM: {
        size_t n = strlen(value);
        bool found = false;
        for (const char *p = o->allowed; p && *p && !found;) {
            const char *bar = strchr(p, '|');
            size_t len = bar ? (size_t)(bar - p) : strlen(p);
            found = fz_sv_ieq((fz_sv){p, len}, (fz_sv){value, n});
            p += len + (bar != NULL);
        }
        if (!found) rc = fz_fail(err, FZ_USER, "option.invalid", "'%s' is none of %s", value, o->allowed);
        break;
    }
    case FZ_OPT_STRING:
    case FZ_OPT_LIST: break;
    }
    if (rc != FZ_OK && fz_option_secret(o->name)) return fz_fail(err, rc, "option.invalid", "option '%s': the value (not shown) has the wrong form", o->name);
    return rc == FZ_OK ? rc : fz_context(err, "option '%s'", o->name);
}

static bool has_word(const char *name, const char *word) {
    size_t n = strlen(word);
    for (; *name; name++)
        if (fz_sv_ieq((fz_sv){name, strnlen(name, n)}, (fz_sv){word, n})) return true;
    return false;
}

bool fz_option_secret(const char *name) {
    static const char *const words[] = {"password", "secret", "apikey", "api-key", "auth-params", "service-key", "token", "basic-auth", "jaas.config", "http-headers",
                                        "credential", "access-key", "sse.key", "authorization", "account.key", "shared-key"};
    static const char *const harmless[] = {"-enabled", "-ms", "-uri", "-url", "-endpoint", ".type", "-type", "provider", "-file", ".location"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (fz_ends(name, harmless[i])) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(name, words[i])) return true;
    return false;
}

/* Length of "scheme:" or "jdbc:scheme:" at the start; 0: it is no URI. */
static size_t scheme_length(const char *s) {
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    if (n == 0 || s[n] != ':') return 0;
    return fz_starts(s, "jdbc:") && n == 4 ? 5 + scheme_length(s + 5) : n + 1;
}

void fz_option_show(fz_buf *b, const char *name, const char *value) {
    size_t n = scheme_length(value), query = strcspn(value, "?");
    if (fz_option_secret(name)) {
        fz_buf_puts(b, FZ_HIDDEN);
        return;
    }
    if (n == 0 || n > query) {
        fz_buf_puts(b, value);
        return;
    }
    const char *at = memrchr(value + n, '@', query - n), *colon = at ? memchr(value + n, ':', (size_t)(at - value) - n) : NULL;
    fz_buf_append(b, value, colon ? (size_t)(colon - value) + 1 : query);
    if (colon) {
        fz_buf_puts(b, FZ_HIDDEN);
        fz_buf_append(b, at, query - (size_t)(at - value));
    }
    for (const char *p = value + query; *p;) { /* p: at '?' or '&' */
        size_t len = 1 + strcspn(p + 1, "&"), eq = strcspn(p, "=");
        char key[64];
        snprintf(key, sizeof key, "%.*s", eq < len ? (int)eq - 1 : 0, p + 1);
        bool hide = eq < len && fz_option_secret(key);
        fz_buf_append(b, p, hide ? eq + 1 : len);
        if (hide) fz_buf_puts(b, FZ_HIDDEN);
        p += len;
    }
}

const char *fz_pair_get(const fz_pair *p, size_t n, const char *key) {
    for (size_t i = n; i-- > 0;)
        if (strcmp(p[i].key, key) == 0) return p[i].value;
    return NULL;
}
