/* Table buckets by the name under which AWS's analytics integration shows them: `s3tablescatalog/<bucket>`.`namespace`.`table`, as Athena writes it, needs no CREATE CATALOG.
 * The bucket's ARN follows from the account (asked of STS) and the region of the environment. */
#include "session/session_int.h"
#include "aws/aws.h"

#define PREFIX "s3tablescatalog/"

bool ses_is_federated(const char *name) { return fz_starts(name, PREFIX) && name[strlen(PREFIX)]; }

static fz_status bucket_arn(fz_arena *a, const char *bucket, const char **out, fz_error *err) {
    aws_session *s;
    aws_identity me;
    const char *region;
    FZ_TRY(aws_session_new(NULL, 0, &s, err));
    fz_status rc = aws_session_region(s, &region, NULL, err);
    if (rc == FZ_OK) rc = aws_caller_identity(s, a, &me, err);
    if (rc == FZ_OK) *out = fz_arena_printf(a, "arn:%s:s3tables:%s:%s:bucket/%s", aws_partition(region), region, me.account, bucket);
    aws_session_unref(s);
    return rc;
}

fz_status ses_open_federated(ses_session *s, const char *name, ses_catalog **out, fz_error *err) {
    const char *arn;
    cat_catalog *c;
    if (s->dry) return ses_dry_federated(s, name, out);
    fz_arena *a = fz_arena_new();
    fz_status rc = bucket_arn(a, name + strlen(PREFIX), &arn, err);
    if (rc == FZ_OK) {
        const fz_pair o[] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = "s3tables"}, {.key = "warehouse", .value = arn}};
        rc = cat_open(name, o, sizeof o / sizeof *o, NULL, &c, err);
    }
    fz_arena_free(a);
    if (rc != FZ_OK) return fz_context(err, "catalog '%s'", name);
    *out = ses_add_catalog(s, name, c, cat_default_database(c));
    return FZ_OK;
}
