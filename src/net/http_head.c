/* Heads of HTTP/1.x requests: request line and headers.
 *
 * What can be read in two ways is refused, since a proxy before us may have read it in the other: lines without CR, folded headers, blanks before a colon, several lengths, a length beside
 * Transfer-Encoding. Source: RFC 9110, RFC 9112.
 */
#include "net/server_int.h"

size_t http_head_end(const uint8_t *p, size_t n, size_t *line) {
    for (const uint8_t *lf; *line < n && (lf = memchr(p + *line, '\n', n - *line));) {
        size_t at = (size_t)(lf - p);
        if (at == 0 || p[at - 1] != '\r') return SIZE_MAX;
        bool empty = at - 1 == *line;
        *line = at + 1;
        if (empty) return *line;
    }
    return 0;
}

static bool is_token(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c))) return false;
    }
    return n > 0;
}
static bool has_control(const char *s, size_t n, bool tab) {
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 32 && !(tab && s[i] == '\t')) || s[i] == 127) return true;
    return false;
}

static int bad(const char **why, int status, const char *text) {
    *why = text;
    return status;
}

static int read_target(char *target, http_head *h, const char **why) {
    bool absolute = strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0;
    if (absolute) {
        char *path = strchr(strstr(target, "://") + 3, '/');
        if (!path) return bad(why, 400, "the target has no path");
        target = path;
    } else if (*target != '/' && !(strcmp(target, "*") == 0 && strcmp(h->method, "OPTIONS") == 0)) return bad(why, 400, "the target is no path");
    target[strcspn(target, "#")] = 0;
    char *query = strchr(target, '?');
    if (query) *query++ = 0;
    h->path = target;
    h->query = query;
    return 0;
}

static int read_request_line(char *line, size_t n, http_head *h, const char **why) {
    char *sp = memchr(line, ' ', n), *sp2 = sp ? memchr(sp + 1, ' ', n - (size_t)(sp + 1 - line)) : NULL;
    if (!sp2 || !is_token(line, (size_t)(sp - line)) || has_control(sp + 1, (size_t)(line + n - sp - 1), false) || memchr(sp2 + 1, ' ', (size_t)(line + n - sp2 - 1)))
        return bad(why, 400, "the request line is not METHOD TARGET HTTP/1.1");
    *sp = *sp2 = 0;
    const char *version = sp2 + 1;
    if (strncmp(version, "HTTP/", 5) != 0) return bad(why, 400, "the request line is not METHOD TARGET HTTP/1.1");
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) return bad(why, 505, "HTTP/1.1 is spoken here");
    h->method = line;
    h->minor = version[7] - '0';
    h->keep = h->minor == 1;
    return read_target(sp + 1, h, why);
}

static int read_length(const char *v, http_head *h, const char **why) {
    uint64_t n = 0;
    size_t i = 0;
    for (; v[i] >= '0' && v[i] <= '9' && i < 19; i++) n = n * 10 + (uint64_t)(v[i] - '0');
    if (!i || v[i] || (h->has_length && h->length != n)) return bad(why, 400, "Content-Length is not one number");
    h->has_length = true;
    h->length = n;
    return 0;
}

/* Is `word` one of the comma-separated words of v? */
static bool has_word(const char *v, const char *word) {
    for (size_t n; *v; v += n + (v[n] == ',')) {
        n = strcspn(v, ",");
        if (fz_sv_ieq(fz_sv_trim((fz_sv){v, n}), fz_sv_of(word))) return true;
    }
    return false;
}

/* What the message itself depends on. */
static int read_special(const char *name, const char *v, http_head *h, int *n_hosts, const char **why) {
    if (fz_ieq(name, "host")) ++*n_hosts;
    else if (fz_ieq(name, "content-length")) return read_length(v, h, why);
    else if (fz_ieq(name, "transfer-encoding")) {
        if (h->chunked || h->minor == 0) return bad(why, 400, "Transfer-Encoding is not one 'chunked'");
        if (!fz_ieq(v, "chunked")) return bad(why, 501, "the only Transfer-Encoding that is taken is 'chunked'");
        h->chunked = true;
    } else if (fz_ieq(name, "connection")) {
        if (has_word(v, "close")) h->keep = false;
        else if (h->minor == 0 && has_word(v, "keep-alive")) h->keep = true;
    } else if (fz_ieq(name, "expect") && h->minor == 1) {
        if (!fz_ieq(v, "100-continue")) return bad(why, 417, "the only expectation that is met is '100-continue'");
        h->expect = true;
    }
    return 0;
}

static int read_field(char *line, size_t n, http_head *h, int *n_hosts, const char **why) {
    char *colon = memchr(line, ':', n);
    if (!colon || !is_token(line, (size_t)(colon - line))) return bad(why, 400, "a header is not NAME: VALUE");
    if (h->n == FZ_MAX_HTTP_FIELDS) return bad(why, 431, "too many headers");
    fz_sv v = fz_sv_trim((fz_sv){colon + 1, (size_t)(line + n - colon - 1)});
    if (has_control(v.p, v.n, true)) return bad(why, 400, "a header has control characters");
    *colon = 0;
    line[(size_t)(v.p - line) + v.n] = 0;
    FZ_GROW(h->field, h->n, h->cap);
    h->field[h->n++] = (net_http_field){line, v.p};
    return read_special(line, v.p, h, n_hosts, why);
}

int http_head_parse(char *text, size_t n, http_head *h, const char **why) {
    int n_hosts = 0, rc = 0;
    *h = (http_head){.field = h->field, .cap = h->cap};
    for (size_t at = 0, end; rc == 0 && at + 2 < n; at = end + 2) {
        end = (size_t)((char *)memchr(text + at, '\n', n - at) - text) - 1;
        text[end] = 0;
        rc = at == 0 ? read_request_line(text, end, h, why) : read_field(text + at, end - at, h, &n_hosts, why);
    }
    if (rc) return rc;
    if (n_hosts > 1 || (h->minor == 1 && n_hosts == 0)) return bad(why, 400, "one header Host is wanted");
    if (h->chunked && h->has_length) return bad(why, 400, "Content-Length and Transfer-Encoding exclude each other");
    return 0;
}
