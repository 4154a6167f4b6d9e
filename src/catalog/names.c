/* Namespaces and identifiers: text, copies, checks. */
#include "catalog/catalog_int.h"
#include <stdlib.h>

#define MAX_NAME 255 /* bytes of one level or table name: the width of the SQL catalog's columns, and of a name in a directory */

cat_namespace cat_namespace_clone(fz_arena *a, cat_namespace ns) {
    const char **v = FZ_ANEWN(a, const char *, ns.n);
    for (uint32_t i = 0; i < ns.n; i++) v[i] = fz_arena_strdup(a, ns.level[i]);
    return (cat_namespace){ns.n, v};
}

const char *cat_namespace_text(fz_arena *a, cat_namespace ns) {
    const char *s = "";
    for (uint32_t i = 0; i < ns.n; i++) s = i ? fz_arena_printf(a, "%s.%s", s, ns.level[i]) : ns.level[i];
    return s;
}

const char *cat_ident_text(fz_arena *a, const cat_ident *id) {
    if (!id->name) return cat_namespace_text(a, id->ns);
    return id->ns.n ? fz_arena_printf(a, "%s.%s", cat_namespace_text(a, id->ns), id->name) : id->name;
}

cat_ident cat_ident_of(const cat_catalog *c, fz_arena *a, const char *database, const char *table) {
    const char **v = FZ_ANEWN(a, const char *, c->base.n + 1);
    for (uint32_t i = 0; i < c->base.n; i++) v[i] = c->base.level[i];
    v[c->base.n] = fz_arena_strdup(a, database);
    return (cat_ident){{c->base.n + 1, v}, table ? fz_arena_strdup(a, table) : NULL};
}

/* Names become parts of paths: no slash, and nothing that a file system reads as another directory. */
static fz_status check(const char *what, const char *s, fz_error *err) {
    size_t n = strlen(s);
    const char *why = n == 0 ? "is empty" : n > MAX_NAME ? "is longer than 255 bytes" : strchr(s, '/') ? "has a slash in it"
                    : strcmp(s, ".") == 0 || strcmp(s, "..") == 0 ? "would name another directory" : !fz_utf8_valid(s, n) ? "is not UTF-8" : NULL;
    if (!why) return FZ_OK;
    return fz_fail(err, FZ_USER, "catalog.name", "the %s name '%.64s' %s", what, s, why);
}

fz_status cat_namespace_check(cat_namespace ns, fz_error *err) {
    size_t total = 0;
    for (uint32_t i = 0; i < ns.n; i++) {
        FZ_TRY(check("database", ns.level[i], err));
        total += strlen(ns.level[i]) + 1;
    }
    if (total > MAX_NAME + 1) return fz_fail(err, FZ_USER, "catalog.name", "the namespace's levels have more than %d bytes together", MAX_NAME);
    return FZ_OK;
}

fz_status cat_ident_check(const cat_ident *id, fz_error *err) {
    FZ_TRY(cat_namespace_check(id->ns, err));
    return check("table", id->name, err);
}

void cat_names_add(fz_arena *a, cat_names *v, const char *s) {
    /* The capacity is the power of two above n, so that it need not be kept. */
    if ((v->n & (v->n - 1)) == 0) v->v = fz_arena_realloc(a, v->v, v->n * sizeof *v->v, (v->n ? v->n * 2 : 1) * sizeof *v->v);
    v->v[v->n++] = fz_arena_strdup(a, s);
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

void cat_names_sort(cat_names *v) {
    uint32_t k = 0;
    if (v->n > 0) qsort(v->v, v->n, sizeof *v->v, by_bytes);
    for (uint32_t i = 0; i < v->n; i++)
        if (k == 0 || strcmp(v->v[k - 1], v->v[i]) != 0) v->v[k++] = v->v[i];
    v->n = k;
}
