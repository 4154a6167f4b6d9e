/* A bounded queue of pointers between threads; a full queue is the back-pressure.
 * Threads: any number of producers and consumers. */
#ifndef FZ_QUEUE_H
#define FZ_QUEUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef struct fz_queue fz_queue;
fz_queue *fz_queue_new(size_t capacity);
void fz_queue_free(fz_queue *q);             /* items left in it are the caller's to release before */
bool fz_queue_push(fz_queue *q, void *item); /* waits while full; false once closed */
/* Waits up to timeout_ms (< 0: for ever). NULL: timed out, or closed and empty. */
void *fz_queue_pop(fz_queue *q, int64_t timeout_ms);
void fz_queue_close(fz_queue *q);            /* wakes everybody; what is in it can still be popped */
#endif
