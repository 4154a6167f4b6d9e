/* What a kernel writes: texts, NULLs, failed rows. See exec_int.h. */
#include "exec/exec_int.h"
#include <stdio.h>

static void grow(ex_call *c, size_t n) {
    if (c->text_len + n <= c->text_cap) return;
    size_t cap = c->text_cap ? c->text_cap * 2 : (size_t)c->n * 16 + 64;
    while (cap < c->text_len + n) cap *= 2;
    c->out->bytes = fz_arena_realloc(c->a, c->out->bytes, c->text_cap, cap);
    c->text_cap = cap;
}
/* Rows that were left out are empty. */
static void skip_to(ex_call *c, uint32_t i) {
    while (c->text_next < i) {
        if (ex_live(c, c->text_next)) col_vec_mask(c->a, c->out)[c->text_next] = 0;
        c->out->off[++c->text_next] = (uint32_t)c->text_len;
    }
}

char *ex_put_begin(ex_call *c, uint32_t i, size_t n) {
    skip_to(c, i);
    grow(c, n);
    return c->out->bytes + c->text_len;
}
void ex_put_end(ex_call *c, uint32_t i, size_t used) {
    c->text_len += used;
    if (c->text_len > UINT32_MAX) { /* offsets of a column have 32 bits */
        c->text_len -= used;
        ex_fail_row(c, i, "text.too-large", "the texts of one batch exceed 4 GiB");
        return;
    }
    c->text_next = i + 1;
    c->out->off[i + 1] = (uint32_t)c->text_len;
}
void ex_put(ex_call *c, uint32_t i, const void *p, size_t n) {
    char *at = ex_put_begin(c, i, n);
    if (n) memcpy(at, p, n);
    ex_put_end(c, i, n);
}
void ex_put_null(ex_call *c, uint32_t i) {
    col_vec_mask(c->a, c->out)[i] = 0;
    if (col_is_varlen(c->type->kind) && c->out->off) {
        skip_to(c, i);
        c->text_next = i + 1;
        c->out->off[i + 1] = (uint32_t)c->text_len;
    }
}

void ex_fail_row(ex_call *c, uint32_t i, const char *code, const char *fmt, ...) {
    ex_put_null(c, i);
    if (c->try_cast) return;
    ex_errors *e = c->errors;
    if (e->n == e->cap) {
        uint32_t cap = e->cap ? e->cap * 2 : 8;
        e->v = fz_arena_realloc(c->a, e->v, e->cap * sizeof *e->v, cap * sizeof *e->v);
        e->cap = cap;
    }
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    while (len && !fz_utf8_valid(text, len)) len--; /* a cut text must not end inside a character */
    for (size_t k = 0; k < len; k++)
        if ((unsigned char)text[k] < 0x20) text[k] = ' ';
    e->v[e->n++] = (ex_error_row){i, code, fz_arena_strndup(c->a, text, len), c->expr};
}
