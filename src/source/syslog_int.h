/* Inside the syslog connector: how messages stand in a stream. */
#ifndef SRC_SYSLOG_INT_H
#define SRC_SYSLOG_INT_H
#include "source/spooled.h"

/* ---- syslog_frame.c: bytes alone ---- */

typedef struct sys_stream {
    bool counted;  /* all messages of this stream had their length before them */
    bool begun;    /* there was a message */
    size_t seen;   /* bytes of the first unconsumed message in which no end was found */
} sys_stream;
typedef enum { SYS_MORE, SYS_MESSAGE, SYS_REFUSED } sys_result;
typedef struct sys_message {
    size_t at, n;  /* where it stands, without its trailer; n 0: there was nothing in it */
    size_t used;   /* bytes consumed; also with SYS_MORE: empty lines before the message */
    bool counted, cut_off;
} sys_message;
/* The next message at p. end: no more comes, so that what is there is a message. max: bytes of the largest one. */
sys_result sys_next(sys_stream *s, const uint8_t *p, size_t n, bool end, size_t max, sys_message *out);
/* Length without the trailer of a message whose end is known: LF, CR LF or NUL, one of them. */
size_t sys_trimmed(const uint8_t *p, size_t n);

/* ---- syslog.c, syslog_conn.c ---- */

enum { SYS_PIECE = 256 << 10 }; /* bytes after which what was gathered is appended */

typedef struct sys_stats { _Atomic uint64_t messages, counted, datagrams, cut_off, refused, lost; } sys_stats;
typedef struct sys_conn sys_conn;
typedef struct syslog_source {
    src_spooled s;
    size_t max_message;
    src_frame frame;        /* of one connection's turn */
    sys_conn *ending;       /* connections whose peer has closed, with a last message for which there was no room */
    src_frame *waiting;     /* datagrams on their way into the spool, by peer */
    uint32_t n_waiting, cap_waiting;
    bool flush_posted;
    fz_log_limit log_limit;
    sys_stats stats;
} syslog_source;

extern const net_proto sys_proto;
void sys_conn_room(syslog_source *f);
static inline void sys_count(_Atomic uint64_t *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }
#endif
