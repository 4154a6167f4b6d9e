/* What a PostgreSQL URI and the jdbc.* options say, as libpq wants it. */
#ifndef CAT_PG_INT_H
#define CAT_PG_INT_H
#include "catalog/catalog_int.h"

typedef struct pg_target {
    fz_arena *a;
    cat_names key, value;   /* libpq's keywords, in step */
    const char *label;      /* postgresql://host:port/database: for messages; no secrets */
    int64_t connect_ms;     /* for a connection to come up */
    int64_t answer_ms;      /* for an answer to come; 0: the driver's own measure */
    cat_names ignored;      /* names of properties that have no meaning here */
} pg_target;

/* "jdbc:postgresql:...", "postgresql://...", "postgres://..." and "postgresql+driver://..." */
bool pg_is_uri(const char *uri);
/* Everything in *t lives in a. Options of the catalog whose names begin with "jdbc." are the driver's properties, over which those of
 * the URI go (as in Java). Errors: "catalog.option" (USER), which never quotes a value that may be a secret. */
fz_status pg_target_of(fz_arena *a, const char *uri, const fz_pair *o, size_t n, pg_target *t, fz_error *err) FZ_MUST_USE;
/* The value of a libpq keyword, or NULL. */
const char *pg_target_get(const pg_target *t, const char *key);
#endif
