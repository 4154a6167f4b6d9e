/* Text of URLs: taking them apart, percent-encoding. See net.h. */
#include "net/net.h"

static bool unreserved(unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

void net_encode(fz_buf *out, const char *s, size_t n, bool keep_slash) {
    static const char hex[] = "0123456789ABCDEF";
    fz_buf_reserve(out, n * 3);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (unreserved(c) || (keep_slash && c == '/')) out->data[out->len++] = c;
        else {
            out->data[out->len++] = '%';
            out->data[out->len++] = (uint8_t)hex[c >> 4];
            out->data[out->len++] = (uint8_t)hex[c & 15];
        }
    }
}

static int nibble(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool net_decode(fz_buf *out, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            fz_buf_putc(out, s[i]);
            continue;
        }
        int hi = i + 2 < n ? nibble(s[i + 1]) : -1, lo = i + 2 < n ? nibble(s[i + 2]) : -1;
        if (hi < 0 || lo < 0) return false;
        fz_buf_putc(out, (char)(hi << 4 | lo));
        i += 2;
    }
    return true;
}

/* The URL without user, password and query, for messages. */
static const char *shown(const char *url, fz_arena *a) {
    size_t n = strcspn(url, "?#");
    const char *at = NULL, *sep = strstr(url, "://");
    const char *host = sep && sep < url + n ? sep + 3 : url;
    for (const char *p = host; p < url + n && *p != '/'; p++)
        if (*p == '@') at = p;
    if (!at) return fz_arena_strndup(a, url, n);
    return fz_arena_printf(a, "%.*s***%.*s", (int)(host - url), url, (int)(url + n - at), at);
}

static fz_status bad(const char *url, fz_arena *a, const char *why, fz_error *err) {
    return fz_fail(err, FZ_USER, "net.url", "'%s' is not a URL that can be asked: %s", shown(url, a), why);
}

static const char *parse_port(const char *p, const char *end, int *port) {
    uint64_t v;
    if (p == end) return NULL; /* "host:" means the scheme's port */
    if (!fz_parse_u64((fz_sv){p, (size_t)(end - p)}, &v) || v < 1 || v > 65535 || *p == '+') return "the port is not a number from 1 to 65535";
    *port = (int)v;
    return NULL;
}

/* host[:port] or [v6][:port], from p to end. */
static const char *parse_authority(const char *p, const char *end, fz_arena *a, net_url *out) {
    if (memchr(p, '@', (size_t)(end - p))) return "a user name in a URL is not supported";
    const char *host_end;
    if (p < end && *p == '[') {
        host_end = memchr(p, ']', (size_t)(end - p));
        if (!host_end) return "the bracket of the IPv6 address is not closed";
        out->host = fz_arena_strndup(a, p + 1, (size_t)(host_end - p - 1));
        size_t digits = strspn(out->host, "0123456789abcdefABCDEF:."); /* a zone may follow: %25eth0 */
        if (!memchr(out->host, ':', digits) || (out->host[digits] && out->host[digits] != '%')) return "the address in brackets is not IPv6";
        host_end++;
    } else {
        host_end = memchr(p, ':', (size_t)(end - p));
        if (!host_end) host_end = end;
        out->host = fz_arena_strndup(a, p, (size_t)(host_end - p));
        for (const char *c = out->host; *c; c++)
            if (!unreserved((unsigned char)*c)) return "the host has a character that names do not have";
    }
    if (!out->host[0]) return "the host is missing";
    if (host_end == end) return NULL;
    if (*host_end != ':') return "something follows the host";
    return parse_port(host_end + 1, end, &out->port);
}

fz_status net_url_parse(const char *url, fz_arena *a, net_url *out, fz_error *err) {
    *out = (net_url){0};
    for (const unsigned char *p = (const unsigned char *)url; *p; p++)
        if (*p <= 0x20 || *p >= 0x7F) return bad(url, a, "it has a blank, a control character or a byte that is not ASCII, which must be percent-encoded", err);
    if (strchr(url, '#')) return bad(url, a, "it has a fragment ('#'), which must be percent-encoded when it belongs to the path", err);
    const char *sep = strstr(url, "://");
    if (!sep) return bad(url, a, "it does not start with http:// or https://", err);
    char *scheme = fz_arena_strndup(a, url, (size_t)(sep - url));
    for (char *p = scheme; *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p | 0x20);
    if (strcmp(scheme, "http") && strcmp(scheme, "https")) return bad(url, a, "it does not start with http:// or https://", err);
    out->scheme = scheme;
    const char *host = sep + 3, *end = host + strcspn(host, "/?");
    const char *why = parse_authority(host, end, a, out);
    if (why) return bad(url, a, why, err);
    const char *q = strchr(end, '?');
    out->path = q ? fz_arena_strndup(a, end, (size_t)(q - end)) : fz_arena_strdup(a, end);
    out->query = q ? fz_arena_strdup(a, q + 1) : NULL;
    return FZ_OK;
}
