/* Inside the source room: what a connector is, and the part of a source that all connectors share.
 *
 * A connector `x` is a const src_ops called src_x_ops, in x.c; it stands in the table of source.c and nowhere else.
 * Its source is a struct that begins with src_source; open makes it with src_base_init, close gives it back with
 * src_base_free.
 *
 * Invariants
 *  1. open is called after src_check_options has accepted every option: each name is in ops->options (or belongs to a
 *     format), each value has its type, nothing REFUSED is left. open checks what depends on several options.
 *  2. splits[] only grows and never moves, and each split is a heap object of its own: pointers to it live as long as the source.
 *  3. Functions of ops may be called only in the order and from the threads that source.h says.
 */
#ifndef SRC_SOURCE_INT_H
#define SRC_SOURCE_INT_H
#include "source/source.h"

struct src_source {
    const src_ops *ops;
    src_context cx;        /* its strings are copies that live as long as the source */
    char *identity;        /* "kafka:<cluster id>"; NULL until known */
    src_split **splits;         /* SRC_MAX_SPLITS places that never move: workers look while discovery appends */
    _Atomic uint32_t n_splits;
};
#define SRC_MAX_SPLITS (1u << 20)

struct src_ops {
    const char *name;                     /* value of 'connector' */
    const char *doc;                      /* one or two sentences for the reference page */
    const fz_option *options;             /* ends with a NULL name; 'connector' itself is not in it */
    const src_metadata_column *metadata;  /* ends with a NULL key; NULL: none */
    const char *format;                   /* of values, when the table names none; NULL: it has to */
    bool replayable;                      /* any position can be read again */
    fz_status (*open)(const fz_pair *options, size_t n, const src_context *cx, src_source **out, fz_error *err);
    void (*close)(src_source *s);
    fz_status (*check)(const fz_pair *options, size_t n, fz_error *err);                           /* what the table of options cannot say; NULL: nothing */
    /* The rest mirrors source.h. NULL is allowed where a default is named. */
    bool (*bounded)(const src_source *s);                                                          /* NULL: each split has a stop */
    bool (*endless)(const fz_pair *options, size_t n);                                             /* the same, before it is open; NULL: those that listen never end */
    fz_status (*discover)(src_source *s, uint32_t *added, fz_error *err);                          /* NULL: none are ever found */
    fz_status (*bounds)(src_source *s, uint32_t split, fz_error *err);                             /* sets low, high of the split; NULL: they stand */
    fz_status (*probe_before)(src_source *s, uint32_t split, int64_t before, src_probe *out, fz_error *err); /* NULL: FATAL */
    fz_status (*assign)(src_source *s, uint32_t split, int64_t from, fz_error *err);
    fz_status (*unassign_all)(src_source *s, fz_error *err);
    fz_status (*poll)(src_source *s, uint32_t reader, int64_t timeout_ms, fz_chunk **out, bool *done, fz_error *err);
    fz_status (*report)(src_source *s, const uint32_t *splits, const int64_t *offsets, uint32_t n, fz_error *err); /* NULL: nobody to tell */
    fz_status (*report_check)(src_source *s, const char **group, fz_error *err);                   /* NULL: nobody to tell */
    fz_status (*aws_login)(const fz_pair *options, size_t n, fz_arena *a, fz_pair **out, size_t *n_out, bool *wanted, fz_error *err); /* NULL: never */
    void (*drain)(src_source *s);                                                                  /* takes in no more, sets stops where it knows them; NULL: their bounds are the stops */
    const src_doors *(*listens)(const src_source *s);                                              /* NULL: it does not */
    uint64_t (*behind)(src_source *s, uint32_t split, int64_t at);                                 /* NULL: 0 */
    void (*metrics)(src_source *s, src_metric_fn fn, void *cx);                                    /* NULL: none of its own */
    int64_t (*arrival)(src_source *s, uint32_t split, int64_t at);                                 /* NULL: 0 */
    bool (*gone)(const src_source *s, const char *topic);                                          /* NULL: never */
};

/* Fills the shared part: copies cx and its strings. */
void src_base_init(src_source *s, const src_ops *ops, const src_context *cx);
/* Frees what the shared part holds (splits and their strings too), not s itself. */
void src_base_free(src_source *s);
/* Appends a split; name and topic are copied; stop is INT64_MAX, all else is 0. NULL when there are SRC_MAX_SPLITS. */
src_split *src_add_split(src_source *s, const char *name, const char *topic, int32_t partition);

/* Checks every pair against a connector's table: unknown names ("option.unknown", with the nearest), wrong types and refused
 * names ("option.refused") are USER errors with the pair's position; names without meaning are logged once each.
 * Options that begin with a format's name ("json.x", "key.json.x", "value.json.x") are left to the decoder. */
fz_status src_check_options(const fz_option *table, const char *connector, const fz_pair *options, size_t n, fz_error *err) FZ_MUST_USE;
/* A stop may be set while another thread asks how far it is. */
static inline int64_t src_stop(const src_split *x) { return __atomic_load_n(&x->stop, __ATOMIC_RELAXED); }
static inline void src_set_stop(src_split *x, int64_t stop) { __atomic_store_n(&x->stop, stop, __ATOMIC_RELAXED); }
/* Readers take the splits whose index is r modulo their number. */
static inline uint32_t src_reader_of(const src_source *s, uint32_t split) { return split % (s->cx.readers ? s->cx.readers : 1); }

extern const src_ops src_kafka_ops;
extern const src_ops src_filesystem_ops; /* file.c */
extern const src_ops src_datagen_ops;    /* datagen.c */
extern const src_ops src_otel_demo_ops;
extern const src_ops src_forward_ops;    /* forward.c */
extern const src_ops src_otlp_ops;       /* otlp.c */
extern const src_ops src_http_ops;       /* http_in.c */
extern const src_ops src_syslog_ops;     /* syslog.c */
extern const src_ops src_firehose_ops;   /* firehose.c */
#endif
