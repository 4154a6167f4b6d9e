/* print: rows on standard output, as Flink's print connector writes them: [prefix> ]+I[a, b, c]. At least once. */
#include "delivery/delivery_int.h"
#include "exec/exec.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const fz_option options[] = {
    {"print-identifier", FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, "Text before each row.", NULL},
    {"standard-error", FZ_OPT_BOOL, FZ_OPT_USED, "false", NULL, "Writes to standard error.", NULL},
    {NULL, FZ_OPT_STRING, FZ_OPT_USED, NULL, NULL, NULL, NULL},
};

#define FULL (4u << 20)
typedef struct print { fz_buf text; _Atomic size_t size; uint64_t rows; int fd; const char *id; } print; /* size: of text, for those who ask while it is written */
typedef struct print_lot { dlv_lot lot; fz_buf text; } print_lot;

static fz_status print_open(dlv_delivery *d, fz_error *err) {
    int to_stderr;
    print *p = FZ_ANEW(d->arena, print);
    FZ_TRY(fz_parse_bool(dlv_option(d, "standard-error"), &to_stderr, err));
    p->fd = to_stderr ? STDERR_FILENO : STDOUT_FILENO;
    p->id = dlv_option(d, "print-identifier");
    d->impl = p;
    return FZ_OK;
}
static void print_close(dlv_delivery *d) { fz_buf_free(&((print *)d->impl)->text); }

static fz_status print_write(dlv_delivery *d, const dlv_rows *r, fz_error *err) {
    (void)err;
    print *p = d->impl;
    for (uint32_t i = 0; i < r->n; i++) {
        if (p->id) fz_buf_printf(&p->text, "%s> ", p->id);
        fz_buf_puts(&p->text, "+I[");
        for (uint32_t c = 0; c < d->cx.schema->n; c++) {
            if (c) fz_buf_puts(&p->text, ", ");
            if (col_is_null(r->cols[c], i)) fz_buf_puts(&p->text, "null");
            else ex_value_text(&p->text, r->cols[c], i, d->cx.time_zone);
        }
        fz_buf_puts(&p->text, "]\n");
    }
    p->rows += r->n;
    atomic_store(&p->size, p->text.len);
    return FZ_OK;
}

static bool print_is_full(const dlv_delivery *d) { return atomic_load(&((print *)d->impl)->size) > FULL; }

static dlv_lot *print_cut(dlv_delivery *d) {
    print *p = d->impl;
    if (!p->rows) return NULL;
    print_lot *l = FZ_NEW(print_lot);
    *l = (print_lot){{.ops = &dlv_print_ops, .rows = p->rows, .bytes = p->text.len}, p->text};
    p->text = (fz_buf){0};
    atomic_store(&p->size, 0);
    p->rows = 0;
    return &l->lot;
}
static void print_drop(dlv_delivery *d) {
    print *p = d->impl;
    p->text.len = 0;
    atomic_store(&p->size, 0);
    p->rows = 0;
}

static fz_status print_commit(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err) {
    (void)ranges;
    const fz_buf *b = lot ? &((const print_lot *)lot)->text : NULL;
    for (size_t at = 0; b && at < b->len;) {
        ssize_t k = write(((print *)d->impl)->fd, b->data + at, b->len - at);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return fz_fail(err, FZ_FATAL, "delivery.print", "table %s: cannot print: %s", d->cx.table, strerror(errno));
        at += (size_t)k;
    }
    return dlv_state_save(d, state, err);
}
static void print_lot_free(dlv_lot *lot) {
    fz_buf_free(&((print_lot *)lot)->text);
    fz_free(lot);
}

const dlv_ops dlv_print_ops = {
    .name = "print", .doc = "Prints each row on standard output when its checkpoint commits. At least once.", .options = options, .open = print_open, .close = print_close,
    .write = print_write, .is_full = print_is_full, .cut = print_cut, .drop = print_drop, .commit = print_commit, .lot_free = print_lot_free,
};
