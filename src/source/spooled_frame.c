/* Records of one context, gathered before they are appended. See spooled.h. */
#include "source/spooled.h"

void src_frame_add(src_frame *f, const void *p, uint32_t n, int64_t time_ns) {
    if (f->n == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 64;
        f->len = fz_realloc(f->len, f->cap * sizeof *f->len);
        f->time_ns = fz_realloc(f->time_ns, f->cap * sizeof *f->time_ns);
    }
    f->len[f->n] = n;
    f->time_ns[f->n++] = time_ns;
    f->timed |= time_ns != INT64_MIN;
    fz_buf_append(&f->bytes, p, n);
}
void src_frame_reset(src_frame *f) {
    f->context.len = f->bytes.len = f->n = 0;
    f->timed = false;
}
void src_frame_free(src_frame *f) {
    fz_buf_free(&f->context);
    fz_buf_free(&f->bytes);
    fz_free(f->len);
    fz_free(f->time_ns);
    *f = (src_frame){0};
}
spool_frame src_frame_of(const src_frame *f, int64_t arrival_ms) {
    return (spool_frame){.context = f->context.data, .context_len = (uint32_t)f->context.len, .n = f->n, .arrival_ms = arrival_ms, .len = f->len, .time_ns = f->timed ? f->time_ns : NULL, .bytes = f->bytes.data};
}
