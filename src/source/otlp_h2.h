/* Inside OTLP over gRPC: a connection, a call, and the answers' form. */
#ifndef SRC_OTLP_H2_H
#define SRC_OTLP_H2_H
#include "source/otlp_int.h"
#include <nghttp2/nghttp2.h>
#include <stdio.h>

typedef struct h2_conn h2_conn;
typedef enum { CALL_HEADERS, CALL_READING, CALL_WAITING, CALL_ANSWERED } call_state;
typedef struct h2_call {
    otlp_request q;
    h2_conn *conn;      /* NULL: its stream is gone */
    struct h2_call *prev, *next;
    int32_t stream;
    call_state state;
    bool is_post, is_grpc, is_export, ended;
    char coding[16];    /* of grpc-encoding; "": identity */
    char *authorization;
    fz_buf body;        /* with the five bytes before the message */
    fz_buf out;         /* the answer's message, the same way */
    size_t out_at;
} h2_call;

struct h2_conn {
    otlp_source *o;
    net_conn *net;
    nghttp2_session *session;
    h2_call *calls;     /* newest first */
    h2_call *oldest;    /* of those that are being read; only compared */
    size_t held;
    bool receiving, prefaced, was_prefaced, gone;
};

void h2_answer_taken(h2_call *x);
void h2_answer_error(h2_call *x, grpc_code code, uint32_t retry_s, const char *message); /* trailers only; retry_s > 0: may be sent again, after so long */
void h2_answer_http(h2_call *x, const char *status);
#endif
