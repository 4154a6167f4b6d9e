/* What the catalogs share whose pointer lies with a service that swaps it on a version of its own (Glue, S3 Tables).
 *
 * Invariants
 *  1. A commit is called failed only on proof: the answer is definite, or the current metadata's log reaches back to the base and
 *     our file is not in it. What is not proven is FZ_UNKNOWN, and then nothing is deleted.
 *  2. A refusal for want of permission is USER "catalog.denied", whenever it comes: a job that starts stops at once, one that runs waits for the grant to
 *     come back (job_passing).
 * Threads: any.
 */
#ifndef CAT_POINTER_INT_H
#define CAT_POINTER_INT_H
#include "catalog/catalog_int.h"
#include <jansson.h>

/* ---- where a pointer stands ---- */

typedef enum {
    POINTER_OURS,      /* our file is current, or in the log of the current one */
    POINTER_AT_BASE,   /* nothing has moved */
    POINTER_OTHERS,    /* moved on from the base, and not by way of our file */
    POINTER_UNDECIDED  /* the log does not reach back to the base, or cannot be read */
} pointer_place;
/* now: what the service says; from: the base, ours: the file that we wrote. now and from may be NULL: no pointer. */
pointer_place pointer_look(fio *io, const char *now, const char *from, const char *ours);
/* What a commit without a sure answer has become, as a status: OURS FZ_OK, OTHERS CONFLICT, UNDECIDED UNKNOWN; AT_BASE is CONFLICT when
 * `refused` (the service has said no, so that nothing is on its way), else UNKNOWN. err holds what the service answered before. */
fz_status pointer_settle(const cat_ident *id, pointer_place place, bool refused, const char *now, const char *from, fz_error *err);
/* A status for "was sent, and what became of it cannot be learned"; keeps what err says as the detail. */
fz_status pointer_unknown(const cat_ident *id, fz_error *err);
fz_status pointer_moved(const cat_ident *id, const char *now, const char *from, fz_error *err); /* CONFLICT */

/* Where the metadata file of m lies that follows base (NULL: the first), and writing it. unique: put-if-absent (some stores have no such
 * thing; the name is random anyhow). On failure nothing is left; the status is never UNKNOWN or CONFLICT. */
const char *pointer_location(fz_arena *a, const cat_table *base, const ice_metadata *m);
fz_status pointer_write(fio *io, const char *location, const ice_metadata *m, bool unique, fz_error *err);

/* ---- small things ---- */
fz_status pointer_reclass(fz_error *err, fz_status cls, const char *code); /* another class and code for the same message and detail */
const char *pointer_text(const json_t *object, const char *key);           /* NULL: not there, or no text */
void pointer_put(json_t *object, const char *key, json_t *value);          /* takes value */
json_t *pointer_string(const char *s);                                     /* new reference; text that is not UTF-8 gives "" */
bool pointer_name_ok(const char *s, size_t max);                            /* ^[a-z0-9_]{1,max}$ */
#endif
