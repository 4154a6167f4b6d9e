/* What the files of the S3 Tables catalog share. See s3tables.c.
 *
 *   s3tables.c         options, namespaces, listings, dropping
 *   s3tables_call.c    one call of the API, and its errors in our terms
 *   s3tables_commit.c  the pointer: find, create, swap
 */
#ifndef CAT_S3TABLES_INT_H
#define CAT_S3TABLES_INT_H
#include "catalog/pointer_int.h"

typedef struct s3tables {
    aws_session *session;      /* the store's; borrowed */
    const char *endpoint;
    const char *arn;           /* of the table bucket */
    const char *arn_segment;   /* the same as one segment of a path */
    const char *region;        /* of the ARN */
} s3tables;

typedef struct s3tables_result {
    bool not_found, conflict;  /* NotFoundException, ConflictException */
    bool unsure;               /* the call may have been carried out although err says otherwise */
    char message[512];         /* of the service */
} s3tables_result;

typedef struct s3tables_request {
    const char *op;            /* "GetTable": IAM's name of the action without its prefix */
    const char *method, *path, *query;
    json_t *body;              /* taken; NULL: none */
    bool writes;               /* sent once: an unknown outcome stays unknown */
    const char *about;         /* for messages */
} s3tables_request;
/* *out (may be NULL): the answer, to be given back. */
fz_status s3tables_call(cat_catalog *c, const s3tables_request *rq, json_t **out, s3tables_result *r, fz_error *err) FZ_MUST_USE;

/* "/<collection>/<arn>[/<a>[/<b>]]<tail>" with all segments encoded. a, b may be NULL. */
const char *s3tables_path(const cat_catalog *c, fz_arena *ar, const char *collection, const char *a, const char *b, const char *tail);
fz_status s3tables_no_namespace(const cat_catalog *c, const char *name, fz_error *err);
fz_status s3tables_no_bucket(const cat_catalog *c, fz_error *err);
/* What S3 Tables says of a namespace that is not there, it says of one in a table bucket that is not there too: asks for the bucket itself. USER "catalog.no-table-bucket" when it is
 * surely not there; FZ_OK also when that cannot be learned. */
fz_status s3tables_check_bucket(cat_catalog *c, fz_error *err) FZ_MUST_USE;

/* GetTableMetadataLocation. */
typedef struct s3tables_pointer {
    bool there;                /* the table exists; it may be without metadata */
    const char *metadata;      /* NULL: none yet */
    const char *version, *warehouse; /* version token; the table's bucket */
} s3tables_pointer;
fz_status s3tables_get_pointer(cat_catalog *c, const cat_ident *id, fz_arena *a, s3tables_pointer *out, fz_error *err) FZ_MUST_USE;

fz_status s3tables_find(cat_catalog *c, const cat_ident *id, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
fz_status s3tables_create(cat_catalog *c, const cat_ident *id, const ice_metadata *first, cat_table **out, fz_error *err) FZ_MUST_USE;
fz_status s3tables_swap(cat_catalog *c, const cat_ident *id, const cat_table *base, const ice_metadata *m, fz_arena *a, const char **location, fz_error *err) FZ_MUST_USE;
/* DeleteTable. version NULL: whatever the table's version is. */
fz_status s3tables_delete_table(cat_catalog *c, const cat_ident *id, const char *version, fz_arena *a, s3tables_result *r, fz_error *err) FZ_MUST_USE;
#endif
