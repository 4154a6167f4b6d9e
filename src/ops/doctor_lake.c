/* What stands between a catalog of AWS and its databases: the analytics integration (the federated catalog s3tablescatalog), Lake Formation's admins and grants; and
 * what a refusal means, layer by layer.
 *
 * Lake Formation and the integration are looked at as far as the identity is allowed to: "cannot be looked at" is said, and is no failure. */
#include "ops/doctor_int.h"

#define FEDERATED "s3tablescatalog"

static const char *opt(const doc_catalog *c, const char *key) { return fz_pair_get(c->need->options, c->need->n_options, key); }

/* The id under which Glue knows the catalog ("123456789012:s3tablescatalog/bucket"); NULL: the account's own. */
static const char *glue_id(const doc_catalog *c) {
    if (strcmp(c->kind, "glue") == 0) return opt(c, "glue.id");
    const char *name = opt(c, "rest.signing-name"), *uri = opt(c, "uri");
    bool glue = strcmp(c->kind, "rest") == 0 && ((name && strcmp(name, "glue") == 0) || (uri && strstr(uri, "/glue.")) || (uri && strstr(uri, "://glue.")));
    return glue ? opt(c, "warehouse") : NULL;
}
static bool needs_federation(const doc_catalog *c) {
    const char *id = glue_id(c);
    return id && strstr(id, FEDERATED);
}

/* ---- calls ---- */

/* POST /Operation of Lake Formation. FZ_OK: *out is the answer. error: the service's code. */
static fz_status lake_call(doctor *d, doc_catalog *c, const char *op, json_t *in, json_t **out, char error[96], fz_error *err) {
    const char *url, *address;
    *out = NULL;
    error[0] = 0;
    char *body = json_dumps(in, JSON_COMPACT);
    json_decref(in);
    fz_status rc = aws_endpoint(c->aws, "lakeformation", NULL, d->a, &url, NULL, err);
    if (rc == FZ_OK) rc = net_reach(url, aws_session_tls(c->aws), DOC_STEP_MS / 3, d->a, &address, err);
    if (rc == FZ_OK) {
        aws_answer ans = {0};
        const net_header headers[] = {{"Content-Type", "application/json"}};
        aws_request rq = {.service = "lakeformation", .method = "POST", .endpoint = url, .path = fz_arena_printf(d->a, "/%s", op), .headers = headers, .n_headers = 1,
                          .body = {.p = body, .n = strlen(body), .fd = -1}, .idempotent = true, .max_attempts = 2, .timeout_ms = DOC_STEP_MS};
        rc = aws_send(c->aws, &rq, &ans, err);
        memcpy(error, ans.error_code, sizeof ans.error_code);
        if (rc == FZ_OK) *out = json_loadb((const char *)ans.http.body.data, ans.http.body.len, 0, NULL);
        if (rc == FZ_OK && !*out) rc = fz_fail(err, FZ_RETRY, "aws.answer", "lakeformation %s: the answer is not JSON", op);
        aws_answer_free(&ans);
    }
    free(body); /* jansson's own allocation */
    return rc;
}

/* The principal of grants: the role behind an assumed role's session. */
static const char *principal_of(doctor *d, const char *arn) {
    const char *p = arn ? strstr(arn, ":assumed-role/") : NULL;
    if (!p) return arn;
    const char *account = arn, *role = p + strlen(":assumed-role/");
    for (int colons = 0; *account && colons < 4; account++) colons += *account == ':';
    const char *partition = arn + strlen("arn:");
    return fz_arena_printf(d->a, "arn:%.*s:iam::%.*s:role/%.*s", (int)strcspn(partition, ":"), partition, (int)strcspn(account, ":"), account, (int)strcspn(role, "/"), role);
}

/* ---- the analytics integration ---- */

static void missing_integration(doctor *d, doc_step *s) {
    doc_advise(d, s, "turn on the integration with AWS analytics services: S3 console, Table buckets, Enable integration, once a region. It cannot be taken back");
    doc_advise(d, s, "then: aws glue get-catalog --catalog-id " FEDERATED);
}

void doc_federation(doctor *d, doc_catalog *c) {
    bool needed = needs_federation(c), native = strcmp(c->kind, "s3tables") == 0;
    if (!needed && !native) return;
    doc_step *s = doc_begin(d, "doctor.catalog.federation", c->need->name);
    doc_asked(d, s, "glue GetCatalog CatalogId=" FEDERATED);
    if (doc_blocked(d, s, c->ground)) {
        if (needed) c->ground = s;
        return;
    }
    const char *url;
    fz_error e = {0};
    aws_answer ans = {0};
    json_t *in = json_pack("{s:s}", "CatalogId", FEDERATED), *out = NULL;
    fz_status rc = aws_endpoint(c->aws, "glue", opt(c, "glue.endpoint"), d->a, &url, NULL, &e);
    const char *address;
    if (rc == FZ_OK && !needed) rc = net_reach(url, aws_session_tls(c->aws), DOC_STEP_MS / 3, d->a, &address, &e);
    bool asked = rc == FZ_OK;
    if (asked) rc = aws_json_call(c->aws, "glue", url, "AWSGlue.GetCatalog", in, true, &out, &ans, &e);
    json_decref(in);
    bool absent = asked && strcmp(ans.error_code, "EntityNotFoundException") == 0;
    if (rc == FZ_OK) doc_ok(d, s, "Glue has the catalog: table buckets are visible to Glue, Lake Formation and Athena");
    else if (absent && needed) {
        doc_fail_error(d, s, &e);
        doc_ok(d, s, "databases in the table bucket may well exist: Glue and Lake Formation do not see them, and say 'Database not found'");
        missing_integration(d, s);
    } else if (absent) {
        doc_warn(d, s, "%s", doc_error_text(d, &e));
        doc_ok(d, s, "the job reaches the table bucket by its own API and runs without it; Athena, Redshift and Lake Formation see none of its tables");
        missing_integration(d, s);
    } else if (needed) {
        doc_warn(d, s, "cannot be looked at: %s", doc_error_text(d, &e));
        doc_advise(d, s, "allow glue:GetCatalog on arn:aws:glue:%s:%s:catalog/" FEDERATED, c->region ? c->region : "REGION", c->account ? c->account : "ACCOUNT");
    } else doc_ok(d, s, "cannot be looked at, and the job does not need it: %s", doc_error_text(d, &e));
    json_decref(out);
    if (asked) aws_answer_free(&ans);
    if (needed) c->ground = s;
}

/* ---- Lake Formation ---- */

static void tell_admins(doctor *d, doc_catalog *c, doc_step *s, const json_t *answer) {
    const json_t *admins = json_object_get(json_object_get(answer, "DataLakeSettings"), "DataLakeAdmins");
    const char *me = principal_of(d, c->arn);
    bool mine = false;
    fz_buf b = {0};
    for (size_t i = 0; i < json_array_size(admins); i++) {
        const char *id = json_string_value(json_object_get(json_array_get(admins, i), "DataLakePrincipalIdentifier"));
        if (!id) continue;
        mine |= me && strcmp(id, me) == 0;
        fz_buf_printf(&b, "%s%s", b.len ? ", " : "", id);
    }
    if (!b.len) doc_ok(d, s, "there are no administrators: IAM alone decides, or nobody may grant");
    else doc_ok(d, s, "%s%s", fz_buf_cstr(&b), mine ? " (this identity is one of them)" : "; grants are theirs to give");
    fz_buf_free(&b);
}

static doc_step *admins_step(doctor *d, doc_catalog *c, bool matters) {
    doc_step *s = doc_find(d, "doctor.lakeformation.admins", c->need->name);
    if (s) return s;
    s = doc_begin(d, "doctor.lakeformation.admins", c->need->name);
    doc_asked(d, s, "lakeformation GetDataLakeSettings");
    if (doc_blocked(d, s, c->below)) return s;
    json_t *out;
    char code[96];
    fz_error e = {0};
    if (lake_call(d, c, "GetDataLakeSettings", json_object(), &out, code, &e) == FZ_OK) tell_admins(d, c, s, out);
    else if (matters) {
        doc_warn(d, s, "cannot be looked at: %s", doc_error_text(d, &e));
        doc_advise(d, s, "allow lakeformation:GetDataLakeSettings, or ask an administrator: aws lakeformation get-data-lake-settings --query DataLakeSettings.DataLakeAdmins");
    } else doc_ok(d, s, "cannot be looked at, and nothing so far needs it: %s [%s]", e.message, e.code);
    json_decref(out);
    return s;
}

static json_t *resource_of(const doc_catalog *c, const char *database, const char *table) {
    const char *id = glue_id(c);
    json_t *in = json_object();
    if (id) json_object_set_new(in, "CatalogId", json_string(id));
    json_object_set_new(in, table ? "DatabaseName" : "Name", json_string(database));
    if (table) json_object_set_new(in, "Name", json_string(table));
    return json_pack("{s:o}", table ? "Table" : "Database", in);
}

static void grant_command(doctor *d, doc_catalog *c, doc_step *s, const char *database, const char *table) {
    const char *me = principal_of(d, c->arn);
    json_t *resource = resource_of(c, database, table);
    char *text = json_dumps(resource, JSON_COMPACT);
    doc_advise(d, s, "aws lakeformation grant-permissions --region %s --principal DataLakePrincipalIdentifier=%s --permissions %s --resource '%s'", c->region ? c->region : "REGION",
             me ? me : "ROLE", table ? "DESCRIBE SELECT INSERT DELETE ALTER" : "DESCRIBE", text);
    free(text); /* jansson's own allocation */
    json_decref(resource);
}

/* What is granted to us by name, appended to a step; false: it could not be asked. */
static bool tell_grants(doctor *d, doc_catalog *c, doc_step *s, const char *database, const char *table, bool *any, char code[96], fz_error *e) {
    const char *me = principal_of(d, c->arn);
    json_t *out, *in = json_object();
    *any = false;
    if (me) json_object_set_new(in, "Principal", json_pack("{s:s}", "DataLakePrincipalIdentifier", me));
    json_object_set_new(in, "Resource", resource_of(c, database, table));
    doc_asked(d, s, "lakeformation ListPermissions of %s on %s%s%s", me ? me : "everybody", database, table ? "." : "", table ? table : "");
    if (lake_call(d, c, "ListPermissions", in, &out, code, e) != FZ_OK) return false;
    const json_t *list = json_object_get(out, "PrincipalResourcePermissions");
    fz_buf b = {0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *p = json_object_get(json_array_get(list, i), "Permissions");
        for (size_t k = 0; k < json_array_size(p); k++) fz_buf_printf(&b, "%s%s", b.len ? ", " : "", json_string_value(json_array_get(p, k)) ? json_string_value(json_array_get(p, k)) : "?");
    }
    *any = b.len > 0;
    doc_ok(d, s, b.len ? "granted by name: %s" : "nothing is granted by name%s", b.len ? fz_buf_cstr(&b) : "");
    fz_buf_free(&b);
    json_decref(out);
    return true;
}

/* Lake Formation's own complaint about whom it is asked for. */
static bool invalid_principal(doctor *d, doc_catalog *c, doc_step *s, const fz_error *e) {
    if (!strstr(e->message, "Invalid principal")) return false;
    const char *me = principal_of(d, c->arn);
    doc_step *p = doc_begin(d, "doctor.principal", me);
    doc_asked(d, p, "%s", s->asked);
    doc_fail_error(d, p, e);
    doc_advise(d, p, "the role was never created: terraform apply, or aws iam create-role ...; then the grants");
    s->status = OPS_STEP_SKIPPED;
    s->because = p;
    return true;
}

static void grants_step(doctor *d, doc_catalog *c, const char *database) {
    doc_step *s = doc_begin(d, "doctor.lakeformation.grants", fz_arena_printf(d->a, "%s.%s", c->need->name, database));
    fz_error e = {0};
    char code[96];
    bool any;
    if (doc_blocked(d, s, c->ground)) return;
    if (tell_grants(d, c, s, database, NULL, &any, code, &e)) {
        if (any) return;
        doc_warn(d, s, "a group (IAM_ALLOWED_PRINCIPALS) or an administrator's rights may still let it pass");
        grant_command(d, c, s, database, NULL);
    } else if (invalid_principal(d, c, s, &e)) c->ground = s;
    else if (strstr(e.message, "Database not found")) doc_ok(d, s, "%s; see doctor.database", e.message);
    else {
        doc_warn(d, s, "cannot be looked at: %s", doc_error_text(d, &e));
        doc_advise(d, s, "allow lakeformation:ListPermissions, or ask an administrator");
    }
}

void doc_lake(doctor *d, doc_catalog *c) {
    bool federated = needs_federation(c);
    if (!federated && strcmp(c->kind, "glue") != 0) return;
    (void)admins_step(d, c, federated);
    for (uint32_t i = 0; federated && i < d->plan->n_databases; i++)
        if (&d->catalogs[d->plan->databases[i].catalog] == c) grants_step(d, c, d->plan->databases[i].name);
}

/* ---- refusals ---- */

static void refused_by_lake(doctor *d, doc_catalog *c, doc_step *s, const char *database, const char *table, const fz_error *e) {
    doc_step *admins = admins_step(d, c, true);
    doc_step *g = doc_begin(d, "doctor.lakeformation.grants", s->subject);
    fz_error why = {0};
    char code[96];
    bool any;
    doc_asked(d, g, "%s", s->asked);
    doc_fail_error(d, g, e);
    if (database && !tell_grants(d, c, g, database, table, &any, code, &why)) doc_ok(d, g, "what is granted cannot be looked at: %s [%s]", why.message, why.code);
    if (doc_good(admins)) doc_ok(d, g, "who may grant: %s", admins->answer);
    if (database) grant_command(d, c, g, database, table);
    s->status = OPS_STEP_SKIPPED;
    s->because = g;
}

static bool about_credentials(const fz_error *e) {
    static const char *const words[] = {"ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature", "SignatureDoesNotMatch", "InvalidAccessKeyId", NULL};
    for (int i = 0; words[i]; i++)
        if (strstr(e->message, words[i])) return true;
    return false;
}

bool doc_blame_credentials(doctor *d, doc_step *s, const fz_error *e) {
    doc_step *identity = NULL, *credentials = NULL;
    if (!about_credentials(e)) return false;
    for (doc_step *i = d->first; i; i = i->next) {
        if (strcmp(i->code, "doctor.identity") == 0) identity = i;
        if (strcmp(i->code, "doctor.credentials") == 0) credentials = i;
    }
    doc_step *wrong = identity ? identity : credentials;
    if (!wrong) return false;
    if (doc_good(wrong)) doc_fail_error(d, wrong, e); /* STS could not be asked, or did not mind */
    s->status = OPS_STEP_SKIPPED;
    s->because = wrong;
    return true;
}

/* An object could not be read that the catalog points to: the store's trouble, not the catalog's. */
static void refused_by_store(doctor *d, doc_step *s, const fz_error *e) {
    bool bucket = strcmp(e->code, "file.no-bucket") == 0;
    doc_step *get = doc_begin(d, strcmp(e->code, "file.kms") == 0 ? "doctor.kms" : bucket ? "doctor.s3.bucket" : "doctor.s3.get", s->subject);
    doc_asked(d, get, "%s", s->asked);
    doc_fail_error(d, get, e);
    if (bucket) doc_advise(d, get, "the catalog points to a bucket that is gone: make it again (aws s3api create-bucket --bucket ...) with what was in it, or drop the table from the catalog");
    s->status = OPS_STEP_SKIPPED;
    s->because = get;
}

void doc_refused(doctor *d, doc_catalog *c, doc_step *s, const char *database, const char *table, const fz_error *e) {
    const char *region = c->region ? c->region : "REGION", *account = c->account ? c->account : "ACCOUNT";
    if (doc_blame_credentials(d, s, e)) return;
    if (strstr(e->message, "Lake Formation")) {
        refused_by_lake(d, c, s, database, table, e);
        return;
    }
    if (strcmp(e->code, "file.kms") == 0 || strcmp(e->code, "file.permission") == 0 || strcmp(e->code, "file.no-bucket") == 0) {
        refused_by_store(d, s, e);
        return;
    }
    doc_fail_error(d, s, e);
    if (strcmp(e->code, "catalog.denied") != 0 && strcmp(e->code, "aws.denied") != 0 && strcmp(e->code, "catalog.rest-forbidden") != 0) return;
    if (strcmp(c->kind, "glue") == 0 && database)
        doc_advise(d, s, "allow glue:%s on arn:aws:glue:%s:%s:catalog, .../database/%s%s%s%s%s: a refusal (403) says nothing of whether it exists", table ? "GetTable" : "GetDatabase", region, account,
                 database, table ? " and .../table/" : "", table ? database : "", table ? "/" : "", table ? table : "");
    else if (strcmp(c->kind, "s3tables") == 0)
        doc_advise(d, s, "allow s3tables:%s on %s: a refusal (403) says nothing of whether it exists", table ? "GetTable, GetTableMetadataLocation, GetTableData and PutTableData" : "GetNamespace",
                 opt(c, "warehouse") ? opt(c, "warehouse") : "the table bucket");
    else doc_advise(d, s, "let the catalog's administrator allow it: a refusal (403) says nothing of whether it exists");
}
