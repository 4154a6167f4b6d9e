/* Answers of OTLP over gRPC as HTTP/2 has them: headers, message, trailers; or trailers only. */
#include "source/otlp_h2.h"

#define CODINGS "identity,gzip,deflate,zstd"
#define NV(n, v) {(uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), sizeof(n) - 1, strlen(v), NGHTTP2_NV_FLAG_NONE}

static ssize_t read_out(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t length, uint32_t *flags, nghttp2_data_source *source, void *cx) {
    h2_call *x = source->ptr;
    size_t n = x->out.len - x->out_at < length ? x->out.len - x->out_at : length;
    (void)cx;
    memcpy(buf, x->out.data + x->out_at, n);
    x->out_at += n;
    if (x->out_at < x->out.len) return (ssize_t)n;
    nghttp2_nv trailers[] = {NV("grpc-status", "0")};
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return nghttp2_submit_trailer(s, stream, trailers, 1) ? NGHTTP2_ERR_CALLBACK_FAILURE : (ssize_t)n;
}

void h2_answer_taken(h2_call *x) {
    fz_buf *b = &x->out;
    nghttp2_nv headers[] = {NV(":status", "200"), NV("content-type", "application/grpc"), NV("grpc-accept-encoding", CODINGS)};
    nghttp2_data_provider provider = {.source = {.ptr = x}, .read_callback = read_out};
    b->len = 0;
    fz_buf_append(b, "\0\0\0\0\0", 5);
    otlp_put_response(b, &x->q.partial);
    size_t n = b->len - 5;
    for (int i = 0; i < 4; i++) b->data[1 + i] = (uint8_t)(n >> (24 - 8 * i));
    nghttp2_submit_response(x->conn->session, x->stream, headers, 3, &provider);
}

/* Of a header's value: printable ASCII stays. */
static void percent(fz_buf *b, const char *s) {
    for (; *s; s++) {
        if (*s >= ' ' && *s <= '~' && *s != '%') fz_buf_putc(b, *s);
        else fz_buf_printf(b, "%%%02X", (unsigned)(unsigned char)*s);
    }
}

void h2_answer_error(h2_call *x, grpc_code code, uint32_t retry_s, const char *message) {
    char status[12];
    fz_buf text = {0}, details = {0}, base64 = {0};
    snprintf(status, sizeof status, "%d", code);
    percent(&text, message);
    otlp_put_status(&details, code, message, retry_s);
    fz_buf_base64(&base64, details.data, details.len);
    nghttp2_nv headers[] = {NV(":status", "200"), NV("content-type", "application/grpc"), NV("grpc-status", status), NV("grpc-message", fz_buf_cstr(&text)), NV("grpc-accept-encoding", CODINGS),
                            NV("grpc-status-details-bin", fz_buf_cstr(&base64))};
    nghttp2_submit_response(x->conn->session, x->stream, headers, retry_s ? 6 : 5, NULL);
    fz_buf_free(&text);
    fz_buf_free(&details);
    fz_buf_free(&base64);
}

void h2_answer_http(h2_call *x, const char *status) {
    nghttp2_nv headers[] = {NV(":status", status)};
    nghttp2_submit_response(x->conn->session, x->stream, headers, 1, NULL);
}
