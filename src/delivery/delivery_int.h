/* Inside the delivery room: what a connector is. Each is a const dlv_ops called dlv_x_ops in x.c; it stands in the table of delivery.c and nowhere else. */
#ifndef DLV_DELIVERY_INT_H
#define DLV_DELIVERY_INT_H
#include "delivery/delivery.h"

typedef struct dlv_ops {
    const char *name, *doc;
    const fz_option *options;    /* ends with a NULL name; 'connector' is not in it */
    bool of_store;               /* the options of stores (fio_options, aws_options) are its options too */
    fz_status (*check)(const fz_pair *o, size_t n, const col_schema *schema, fz_error *err); /* what the table of options cannot say; NULL: nothing */
    fz_status (*places)(const fz_pair *o, size_t n, fz_arena *a, dlv_place *out, uint32_t *n_out, fz_error *err); /* NULL: none */
    void (*destination)(const dlv_delivery *d, fz_buf *out); /* appends one text for each place, however its options spell it; NULL: none that outlives a run */
    fz_status (*open)(dlv_delivery *d, fz_error *err);       /* options and context stand in d */
    void (*close)(dlv_delivery *d);
    fz_status (*load)(dlv_delivery *d, fz_arena *a, const char **state, const char **intent_ranges, const char **intent_state, fz_error *err); /* NULL: the state file of dlv_state_* */
    fz_status (*write)(dlv_delivery *d, const dlv_rows *r, fz_error *err);
    bool (*wants)(const dlv_delivery *d);                    /* NULL: at each checkpoint */
    bool (*is_full)(const dlv_delivery *d);                  /* NULL: never */
    dlv_lot *(*cut)(dlv_delivery *d);
    void (*drop)(dlv_delivery *d);
    fz_status (*commit)(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, fz_error *err);
    fz_status (*divert)(dlv_delivery *d, const dlv_lot *lot, const char *ranges, const char *state, const fz_error *why, fz_error *err); /* NULL: cannot */
    void (*lot_free)(dlv_lot *lot);
    fz_status (*replay)(dlv_delivery *d, const char *prefix, dlv_replay_fn fn, void *cx, fz_error *err); /* NULL: keeps no records of what it gave up */
} dlv_ops;
extern const dlv_ops dlv_blackhole_ops, dlv_cloudwatch_logs_ops, dlv_firehose_s3_ops, dlv_print_ops;

struct dlv_delivery {
    const dlv_ops *ops;
    fz_arena *arena;
    dlv_context cx;
    const fz_pair *options;
    size_t n_options;
    int64_t retry_ms;
    bool named;                  /* others.c */
    void *impl;
};
struct dlv_lot { const dlv_ops *ops; uint64_t rows, rejected, bytes; };  /* a connector's lot begins with it; the last two as the calls in delivery.h say */

const char *dlv_option(const dlv_delivery *d, const char *key); /* as given, else the default, else NULL */

/* state.c: the positions of a delivery as one small object, <state_dir>/positions.json, replaced as a whole. For deliveries that are at least once. */
fz_status dlv_state_load(dlv_delivery *d, fz_arena *a, const char **state, fz_error *err) FZ_MUST_USE;
fz_status dlv_state_save(dlv_delivery *d, const char *state, fz_error *err) FZ_MUST_USE;
/* others.c: says in the state directory whose it is, once a process. */
fz_status dlv_name_itself(dlv_delivery *d, fz_error *err) FZ_MUST_USE;
#endif
