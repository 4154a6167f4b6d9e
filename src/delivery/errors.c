/* Where error objects go: an 'error.path' with Firehose's expressions, for sinks that are no deliveries; Firehose's names of errors. See delivery.h. */
#include "delivery/archive_int.h"

struct dlv_errors {
    fz_arena *arena;
    const char *base, *stream, *space;
    const arc_prefix *prefix;
};

fz_status dlv_errors_new(const char *path, const char *pipeline, const char *table, dlv_errors **out, fz_error *err) {
    fz_arena *a = fz_arena_new();
    dlv_errors *e = FZ_ANEW(a, dlv_errors);
    const char *last = strrchr(table, '.'), *rest = arc_split_location(a, path, &e->base);
    *out = NULL;
    e->arena = a;
    e->stream = arc_stream_name(a, fz_arena_printf(a, "%s-%s", pipeline, last ? last + 1 : table));
    e->space = fz_arena_printf(a, "frazil:%s/%s", pipeline, table);
    fz_status rc = FZ_OK;
    if (!rest || strstr(e->base, "!{")) rc = fz_fail(err, FZ_USER, "option.invalid", "'error.path': '%s' is no location: write s3://bucket/prefix/, file:///dir/ or an absolute path", path);
    size_t n = rc == FZ_OK ? strlen(rest) : 0;
    if (n && (*e->base == '/' || fz_starts(e->base, "file:")) && rest[n - 1] != '/' && !strstr(rest, "!{")) rest = fz_arena_printf(a, "%s/", rest); /* a directory, whoever forgot the slash */
    if (rc == FZ_OK && (rc = arc_prefix_new(a, rest, true, &e->prefix, err)) != FZ_OK) (void)!fz_context(err, "'error.path': '%s'", path);
    if (rc == FZ_OK) return *out = e, FZ_OK;
    fz_arena_free(a);
    return rc;
}
const char *dlv_errors_fixed(const char *path, fz_arena *a) {
    const char *base, *rest = arc_split_location(a, path, &base);
    return rest ? arc_fixed_part(a, base, rest) : path;
}
void dlv_errors_free(dlv_errors *e) {
    if (e) fz_arena_free(e->arena);
}

char *dlv_errors_location(const dlv_errors *e, int64_t ms, const char *error_type, const char *what) {
    char uuid[37];
    fz_buf b = {0}, id = {0};
    fz_buf_printf(&id, "%s:%s", error_type, what);
    arc_uuid5(e->space, fz_buf_cstr(&id), uuid);
    fz_buf_puts(&b, e->base);
    arc_prefix_eval(e->prefix, ms * 1000, uuid, error_type, &b);
    arc_name(&b, e->stream, "1", ms * 1000, uuid, "");
    fz_buf_free(&id);
    return fz_buf_steal(&b);
}

void dlv_location_key(const char *location, fz_buf *out) {
    const char *local = fio_local_path(location), *rest = NULL;
    static const char *const same[] = {"s3://", "s3a://", "s3n://", "s3p://"};
    for (size_t i = 0; !local && !rest && i < sizeof same / sizeof *same; i++)
        if (fz_starts(location, same[i])) rest = location + strlen(same[i]);
    fz_buf_puts(out, rest ? "s3://" : "");
    fz_buf_puts(out, local ? local : rest ? rest : location);
}
bool dlv_location_under(const char *location, const char *prefix) {
    fz_buf a = {0}, b = {0};
    dlv_location_key(location, &a);
    dlv_location_key(prefix, &b);
    bool under = a.len >= b.len && (!b.len || memcmp(a.data, b.data, b.len) == 0);
    fz_buf_free(&a);
    fz_buf_free(&b);
    return under;
}

const char *dlv_error_code(const fz_error *why) {
    static const struct { const char *ours, *theirs; } names[] = {
        {"file.permission", "S3.AccessDenied"}, {"aws.denied", "S3.AccessDenied"}, {"file.no-bucket", "S3.NoSuchBucket"}, {"file.kms", "S3.KMS"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(why->code, names[i].ours) == 0) return names[i].theirs;
    return why->code;
}
