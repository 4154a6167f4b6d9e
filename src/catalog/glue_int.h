/* What the files of the Glue catalog share. See glue.c.
 *
 *   glue.c         the catalog's operations: databases, listings, options
 *   glue_call.c    one call of the API, and its errors in our terms
 *   glue_commit.c  the pointer: find, swap, drop
 *   glue_input.c   Iceberg metadata -> TableInput
 */
#ifndef CAT_GLUE_INT_H
#define CAT_GLUE_INT_H
#include "catalog/pointer_int.h"

typedef struct glue {
    aws_session *session;      /* the store's; borrowed */
    const char *endpoint;
    const char *catalog_id;    /* glue.id; NULL: the account's own */
    bool skip_archive, skip_names;
} glue;

/* Why a call has failed, as far as callers tell cases apart. */
typedef enum {
    GLUE_OK,
    GLUE_NOT_FOUND,        /* EntityNotFoundException */
    GLUE_EXISTS,           /* AlreadyExistsException */
    GLUE_CONCURRENT,       /* ConcurrentModificationException */
    GLUE_OTHER
} glue_why;
typedef struct glue_result {
    glue_why why;
    bool unsure;           /* the call may have been carried out although err says otherwise */
    char message[512];     /* of the service */
} glue_result;

/* One call: op "GetTable"; in: the request without CatalogId (taken); about: what it is done to, for messages ("db.t").
 * idempotent: may be sent again. *out (may be NULL): the answer, to be given back. */
fz_status glue_call(cat_catalog *c, const char *op, json_t *in, bool idempotent, const char *about, json_t **out, glue_result *r, fz_error *err) FZ_MUST_USE;
fz_status glue_no_database(const cat_catalog *c, const char *name, fz_error *err);

/* Of the Table object: is it an Iceberg table? */
bool glue_is_iceberg(const json_t *table);

/* The TableInput that makes `location` current: what Iceberg's own catalog writes, over all that table (as GetTable gave it; NULL: a new one)
 * has besides. previous: NULL for a new table. New reference. */
json_t *glue_table_input(const json_t *table, const char *name, const ice_metadata *m, const char *location, const char *previous);

fz_status glue_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
fz_status glue_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
fz_status glue_drop_table(cat_catalog *c, const cat_ident *id, bool purge, fz_error *err) FZ_MUST_USE;
#endif
