/* What the catalog's tests share: a directory, catalogs of both kinds in it, small tables, small changes. */
#ifndef CAT_TEST_H
#define CAT_TEST_H
#include "catalog/catalog_int.h"
#include "fileio/fileio.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char root[64];
static fz_error err;
static fz_arena *arena;

#define OK(x) do { if ((x) != FZ_OK) fail_msg("%s: %s [%s] %s", #x, err.message, err.code, err.detail); } while (0)
#define FAILS(x, cls_, code_) do { fz_status got_ = (x); if (got_ != (cls_) || strcmp(err.code, (code_)) != 0) \
    fail_msg("%s: status %s, code %s: %s", #x, fz_status_name(got_), got_ == FZ_OK ? "" : err.code, got_ == FZ_OK ? "" : err.message); } while (0)

static inline int setup(void **state) {
    (void)state;
    strcpy(root, "/tmp/frazil-catalog-XXXXXX");
    assert_non_null(mkdtemp(root));
    arena = fz_arena_new();
    return 0;
}
static inline int teardown(void **state) {
    (void)state;
    OK(fz_fault_arm(NULL, &err));
    fz_arena_free(arena);
    return fio_delete_tree(NULL, root, &err) != FZ_OK;
}
static inline const char *in_root(const char *name) { return fz_arena_printf(arena, "%s/%s", root, name); }

static inline fz_status try_open(const char *kind, const char *name, const fz_pair *more, size_t n, cat_catalog **c) {
    fz_pair o[16] = {{.key = "type", .value = "iceberg"}, {.key = "catalog-type", .value = kind}, {.key = "warehouse", .value = fz_arena_printf(arena, "file://%s/wh/", root)}};
    size_t k = 3;
    const char *server = getenv("FRAZIL_TEST_SQL_URI"); /* a database in place of a file: the tests that hold for both run on it */
    if (strcmp(kind, "sql") == 0) o[k++] = (fz_pair){.key = "uri", .value = server ? server : fz_arena_printf(arena, "sqlite:///%s/cat.db", root)};
    if (strcmp(kind, "sql") == 0 && server) o[k++] = (fz_pair){.key = "catalog-name", .value = root};
    for (size_t i = 0; i < n; i++) o[k++] = more[i];
    return cat_open(name, o, k, NULL, c, &err);
}
static inline cat_catalog *open_catalog(const char *kind) {
    cat_catalog *c;
    OK(try_open(kind, "lake", NULL, 0, &c));
    return c;
}

static inline cat_namespace ns1(const char *a) {
    const char **v = FZ_ANEWN(arena, const char *, 1);
    v[0] = a;
    return (cat_namespace){1, v};
}
static inline cat_namespace ns2(const char *a, const char *b) {
    const char **v = FZ_ANEWN(arena, const char *, 2);
    v[0] = a;
    v[1] = b;
    return (cat_namespace){2, v};
}
static inline cat_ident ident(const char *db, const char *table) { return (cat_ident){ns1(db), table}; }

/* Columns id BIGINT NOT NULL, name STRING; not partitioned. */
static inline ice_metadata *small_metadata(const char *location, const fz_pair *props, uint32_t n) {
    col_field f[2] = {{"id", col_simple(COL_BIGINT, false), NULL}, {"name", col_string(true), NULL}};
    col_schema s = {2, f};
    ice_schema *is;
    ice_metadata *m;
    char uuid[37];
    fz_uuid4(uuid);
    OK(ice_schema_from_cols(arena, &s, NULL, 0, &is, &err));
    OK(ice_metadata_new(location, is, NULL, NULL, props, n, uuid, fz_now_ms(), &m, &err));
    return m;
}
static inline cat_table *make_table(cat_catalog *c, const cat_ident *id, const fz_pair *props, uint32_t n) {
    const char *location;
    cat_table *t;
    OK(cat_default_location(c, id, arena, &location, &err));
    OK(cat_create_table(c, id, small_metadata(location, props, n), &t, &err));
    return t;
}
/* A commit that sets one property. */
static inline fz_status set_property(cat_catalog *c, const cat_table *base, const char *key, const char *value, cat_table **out) {
    ice_changes ch = ice_changes_new();
    fz_pair p = {.key = key, .value = value};
    ice_assert_uuid(&ch, base->metadata->uuid);
    ice_update_set_properties(&ch, &p, 1);
    fz_status rc = cat_commit(c, base, &ch, out, &err);
    ice_changes_free(&ch);
    return rc;
}
/* The same, loading before and freeing after; tries again on conflicts and locks. */
static inline void set_now(cat_catalog *c, const cat_ident *id, const char *key, const char *value) {
    for (int i = 0; i < 1000; i++) {
        cat_table *t, *t2;
        OK(cat_load_table(c, id, &t, &err));
        fz_status rc = set_property(c, t, key, value, &t2);
        cat_table_free(t);
        if (rc == FZ_CONFLICT || rc == FZ_RETRY) continue;
        if (rc != FZ_OK) fail_msg("%s", err.message);
        cat_table_free(t2);
        return;
    }
    fail_msg("no progress");
}

static inline bool count_one(void *cx, const char *location, uint64_t size, int64_t mtime_ms) {
    (void)size, (void)mtime_ms;
    *(int *)cx += fz_ends(location, ".metadata.json");
    return true;
}
static inline int metadata_files(const char *location) {
    int n = 0;
    OK(fio_list(NULL, location, count_one, &n, &err));
    return n;
}
static inline const char *joined(const cat_names *v) {
    const char *s = "";
    for (uint32_t i = 0; i < v->n; i++) s = fz_arena_printf(arena, "%s%s ", s, v->v[i]);
    return s;
}
#endif
