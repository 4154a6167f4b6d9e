/* Where syslog messages end in a stream: octet counting and trailers (RFC 6587 3.4.1 and 3.4.2, RFC 5425 4.3), told apart message by message.
 *
 * A length stands before a message that begins with digits, a blank and what can be the start of a PRI ("<3"), or, in a stream in which every message had one, with digits and a blank. Everything
 * else ends with LF or NUL: a line that begins with a year or a number is a line.
 *
 * Invariants
 *  1. The length counts the octets after the blank, whatever they are.
 *  2. Nothing is allocated here, and a length that is too large is refused as soon as it is read.
 *  3. Bytes that were searched for an end are not searched again (seen).
 * Threads: any; a sys_stream belongs to its connection.
 */
#include "source/syslog_int.h"

enum { MOST_DIGITS = 32 };

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool is_trailer(uint8_t c) { return c == '\n' || c == '\r' || c == 0; }

size_t sys_trimmed(const uint8_t *p, size_t n) {
    if (n && p[n - 1] == 0) return n - 1;
    if (n && p[n - 1] == '\n') n -= n > 1 && p[n - 2] == '\r' ? 2 : 1;
    return n;
}

typedef enum { COUNT_NONE, COUNT_MORE, COUNT_IS } count_result;

/* Does a length stand at p? *head: bytes with the blank. */
static count_result count_at(const sys_stream *s, const uint8_t *p, size_t n, size_t *head, size_t *len) {
    size_t d = 0, v = 0;
    if (p[0] < '1' || p[0] > '9') return COUNT_NONE;
    while (d < n && d < MOST_DIGITS && is_digit(p[d])) {
        v = v > (SIZE_MAX - 9) / 10 ? SIZE_MAX : v * 10 + (size_t)(p[d] - '0');
        d++;
    }
    if (d == n) return COUNT_MORE;
    if (p[d] != ' ') return COUNT_NONE;
    *head = d + 1;
    *len = v;
    if (s->begun && s->counted) return COUNT_IS;
    if (n - *head < 1) return COUNT_MORE;
    if (p[*head] != '<') return COUNT_NONE;
    if (n - *head < 2) return COUNT_MORE;
    return is_digit(p[*head + 1]) ? COUNT_IS : COUNT_NONE;
}

static sys_result counted(sys_stream *s, const uint8_t *p, size_t n, size_t head, size_t len, bool end, size_t max, sys_message *out) {
    if (len > max - head) return SYS_REFUSED;
    if (n < head + len) {
        if (!end) return SYS_MORE;
        out->cut_off = true;
        len = n - head;
    }
    out->at += head;
    out->n = out->cut_off ? len : sys_trimmed(p + head, len);
    out->used += head + len;
    out->counted = true;
    if (!s->begun) s->counted = true;
    s->begun = true;
    s->seen = 0;
    return SYS_MESSAGE;
}

static const uint8_t *trailer(const uint8_t *p, size_t n) {
    const uint8_t *lf = memchr(p, '\n', n), *nul = memchr(p, 0, lf ? (size_t)(lf - p) : n);
    return nul ? nul : lf;
}

static sys_result lined(sys_stream *s, const uint8_t *p, size_t n, bool end, size_t max, sys_message *out) {
    const uint8_t *t = s->seen < n ? trailer(p + s->seen, n - s->seen) : NULL;
    size_t len = t ? (size_t)(t - p) : n;
    if (len >= max) return SYS_REFUSED;
    if (!t && !end) {
        s->seen = n;
        return SYS_MORE;
    }
    out->used += t ? len + 1 : len;
    if (t && *t == '\n' && len && p[len - 1] == '\r') len--;
    out->n = len;
    s->begun = true;
    s->counted = false;
    s->seen = 0;
    return SYS_MESSAGE;
}

sys_result sys_next(sys_stream *s, const uint8_t *p, size_t n, bool end, size_t max, sys_message *out) {
    size_t skip = 0, head = 0, len = 0;
    while (skip < n && is_trailer(p[skip])) skip++;
    *out = (sys_message){.at = skip, .used = skip};
    if (skip) s->seen = 0;
    if (skip == n) return SYS_MORE;
    count_result c = count_at(s, p + skip, n - skip, &head, &len);
    if (c == COUNT_MORE && !end) return SYS_MORE;
    if (c == COUNT_IS) return counted(s, p + skip, n - skip, head, len, end, max, out);
    return lined(s, p + skip, n - skip, end, max, out);
}
