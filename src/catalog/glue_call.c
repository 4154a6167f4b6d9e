/* One call of Glue's API (JSON 1.1), and what its errors mean here.
 *
 * Sources: the API reference of AWS Glue (errors of each operation) and of Lake Formation (which grant an operation wants).
 */
#include "catalog/glue_int.h"

/* What has to be granted for an operation, in IAM's and in Lake Formation's words. */
static const struct need { const char *op, *grant; } needs[] = {
    {"GetDatabase", "DESCRIBE on the database"},
    {"GetDatabases", "DESCRIBE on the databases"},
    {"CreateDatabase", "CREATE_DATABASE on the catalog"},
    {"UpdateDatabase", "ALTER on the database"},
    {"DeleteDatabase", "DROP on the database"},
    {"GetTable", "DESCRIBE on the table (and DESCRIBE on its database)"},
    {"GetTables", "DESCRIBE on the database's tables"},
    {"CreateTable", "CREATE_TABLE on the database, and DATA_LOCATION_ACCESS on its S3 location when that is registered"},
    {"UpdateTable", "ALTER on the table (for writing also SELECT, INSERT and DELETE), and DATA_LOCATION_ACCESS on its S3 location when that is registered"},
    {"DeleteTable", "DROP on the table"},
};

static fz_status denied(const char *op, const char *message, fz_error *err) {
    pointer_reclass(err, FZ_USER, "catalog.denied");
    const char *grant = "what the message names";
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].op, op) == 0) grant = needs[i].grant;
    if (strstr(message, "Lake Formation")) return fz_hint(err, "in Lake Formation, grant %s to the principal that frazil runs as", grant);
    return fz_hint(err, "the role needs glue:%s on the catalog, the database and the table; where Lake Formation governs them, grant it %s", op, grant);
}

/* Removing old versions is another's work and may take a while; a job goes on then. */
static fz_status quota(const char *op, fz_error *err) {
    if (strcmp(op, "UpdateTable") != 0) {
        pointer_reclass(err, FZ_USER, "catalog.quota");
        return fz_hint(err, "raise the quota of the Data Catalog, or remove what is no longer needed");
    }
    pointer_reclass(err, FZ_RETRY, "catalog.quota");
    return fz_hint(err, "old versions of the table's entry fill the quota: leave 'glue.skip-archive' at true and delete them (BatchDeleteTableVersion)");
}

/* Credentials that are expired, unknown or wrongly signed are no matter of grants: what the transport says of them stands. */
static bool is_denial(const aws_answer *ans) {
    static const char *const credentials[] = {"ExpiredToken", "UnrecognizedClient", "InvalidSignature", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken",
                                              "InvalidClientTokenId"};
    for (size_t i = 0; i < sizeof credentials / sizeof *credentials; i++)
        if (fz_starts(ans->error_code, credentials[i])) return false;
    return ans->http.status == 403 || fz_starts(ans->error_code, "AccessDenied");
}

/* Gives err its class and code by the service's own code, where the transport's (aws_send) do not say enough. */
static fz_status classify(const char *op, const aws_answer *ans, fz_error *err) {
    bool writes = !fz_starts(op, "Get");
    const char *code = ans->error_code;
    if (strcmp(code, "ConcurrentModificationException") == 0) return pointer_reclass(err, FZ_CONFLICT, "catalog.conflict");
    if (strcmp(code, "OperationTimeoutException") == 0)
        return pointer_reclass(err, writes ? FZ_UNKNOWN : FZ_RETRY, writes ? "catalog.commit-unknown" : "catalog.timeout");
    if (strcmp(code, "ResourceNotReadyException") == 0 || strcmp(code, "FederationSourceRetryableException") == 0)
        return pointer_reclass(err, FZ_RETRY, "catalog.not-ready");
    if (strcmp(code, "ResourceNumberLimitExceededException") == 0) return quota(op, err);
    if (strcmp(code, "GlueEncryptionException") == 0) {
        pointer_reclass(err, FZ_USER, "catalog.denied");
        return fz_hint(err, "the Data Catalog is encrypted: the role needs kms:Decrypt, kms:Encrypt and kms:GenerateDataKey on its key, and the key must be enabled");
    }
    if (strcmp(code, "FederationSourceException") == 0) {
        pointer_reclass(err, FZ_RETRY, "catalog.federation");
        return fz_hint(err, "the database belongs to a federated catalog, and its source refused or could not be reached");
    }
    if (strcmp(code, "InvalidInputException") == 0 || strcmp(code, "ValidationException") == 0) return pointer_reclass(err, FZ_USER, "catalog.invalid-input");
    return is_denial(ans) ? denied(op, ans->error_message, err) : err->cls;
}

fz_status glue_call(cat_catalog *c, const char *op, json_t *in, bool idempotent, const char *about, json_t **out, glue_result *r, fz_error *err) {
    const glue *g = c->impl;
    char target[64];
    aws_answer ans = {0};
    snprintf(target, sizeof target, "AWSGlue.%s", op);
    if (g->catalog_id) pointer_put(in, "CatalogId", pointer_string(g->catalog_id));
    if (out) *out = NULL;
    *r = (glue_result){0};
    fz_status rc = aws_json_call(g->session, "glue", g->endpoint, target, in, idempotent, out, &ans, err);
    json_decref(in);
    if (rc != FZ_OK) {
        const char *code = ans.error_code;
        r->why = strcmp(code, "EntityNotFoundException") == 0           ? GLUE_NOT_FOUND
               : strcmp(code, "AlreadyExistsException") == 0            ? GLUE_EXISTS
               : strcmp(code, "ConcurrentModificationException") == 0   ? GLUE_CONCURRENT
                                                                        : GLUE_OTHER;
        snprintf(r->message, sizeof r->message, "%s", ans.error_message);
        fz_context(err, "%s", about);
        rc = classify(op, &ans, err);
        r->unsure = ans.maybe_applied || rc == FZ_UNKNOWN;
        if (rc == FZ_UNKNOWN && fz_starts(op, "Get")) rc = pointer_reclass(err, FZ_RETRY, err->code); /* reading changes nothing */
    }
    aws_answer_free(&ans);
    return rc;
}

fz_status glue_no_database(const cat_catalog *c, const char *name, fz_error *err) {
    glue *g = c->impl;
    fz_fail(err, FZ_USER, "catalog.namespace-not-found", "the database '%s' does not exist in catalog '%s'", name, c->name);
    const char *region;
    fz_error ignored;
    if (g->catalog_id) return fz_hint(err, "Glue was asked in the catalog '%s' (glue.id)", g->catalog_id);
    if (aws_session_region(g->session, &region, NULL, &ignored) != FZ_OK) return FZ_USER;
    return fz_hint(err, "Glue was asked in the region %s", region);
}
