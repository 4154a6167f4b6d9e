/* Chunked bodies (RFC 9112, 7.1). Extensions and trailers are read over, within limits. */
#include "net/server_int.h"

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER_BEGIN, TRAILER, TRAILER_LF, LAST_LF };
enum { MAX_LINES = 8 << 10 }; /* bytes of one chunk's extensions, or of all trailers */

static int hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte outside of the payload. 0: go on, else the status. */
static int step(http_chunks *c, uint8_t b) {
    int h;
    switch (c->state) {
    case SIZE:
        if ((h = hex(b)) >= 0) {
            if (c->left >> 56) return 413;
            c->left = c->left << 4 | (uint64_t)h;
            c->digits = true;
            return 0;
        }
        if (!c->digits || (b != '\r' && b != ';' && b != ' ' && b != '\t')) return 400;
        c->state = b == '\r' ? SIZE_LF : EXTENSION;
        c->line = 0;
        return 0;
    case EXTENSION:
        if (b == '\n' || ++c->line > MAX_LINES) return 400;
        if (b == '\r') c->state = SIZE_LF;
        return 0;
    case SIZE_LF:
        if (b != '\n') return 400;
        c->state = c->left ? DATA : TRAILER_BEGIN;
        c->line = 0;
        return 0;
    case DATA_CR:
    case DATA_LF:
        if (b != (c->state == DATA_CR ? '\r' : '\n')) return 400;
        c->state = c->state == DATA_CR ? DATA_LF : SIZE;
        c->digits = false;
        return 0;
    case TRAILER_BEGIN:
        if (b == '\r') {
            c->state = LAST_LF;
            return 0;
        }
        c->state = TRAILER; /* fall through */
    case TRAILER:
        if (b == '\n' || ++c->line > MAX_LINES) return 400;
        if (b == '\r') c->state = TRAILER_LF;
        return 0;
    case TRAILER_LF:
        c->state = TRAILER_BEGIN;
        return b == '\n' ? 0 : 400;
    default: return b == '\n' ? 200 : 400;
    }
}

size_t http_chunks_take(http_chunks *c, const uint8_t *p, size_t n, size_t max, fz_buf *out, int *status) {
    size_t at = 0;
    *status = 0;
    while (at < n && *status == 0) {
        if (c->state != DATA) {
            *status = step(c, p[at++]);
            if (c->state == DATA && c->left > max - out->len) *status = 413;
            continue;
        }
        size_t take = c->left < n - at ? (size_t)c->left : n - at;
        fz_buf_append(out, p + at, take);
        at += take;
        c->left -= take;
        if (!c->left) c->state = DATA_CR;
    }
    return at;
}
