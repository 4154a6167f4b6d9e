/* The catalog room by hand, for scripts that let strangers work on the same catalog.
 *   catalog_tool [-o KEY=VALUE]... TYPE URI WAREHOUSE NAME COMMAND...        URI is '-' for a hadoop catalog; -o: further options of it
 *     create DB TABLE        makes the database if need be, and a table (id BIGINT NOT NULL, name STRING)
 *     set DB TABLE KEY VALUE one commit, tried again on conflicts; prints the new metadata location
 *     show DB TABLE          metadata location, uuid, location, then the table's properties
 *     list [DB]              databases or tables
 *     drop DB TABLE          without purge
 * Build: see the head of test/interop/catalog_pyiceberg.py. */
#include "catalog/catalog.h"
#include "fileio/fileio.h"
#include <stdio.h>
#include <stdlib.h>

static fz_error err;
static fz_arena *a;

static void must(fz_status s) {
    if (s == FZ_OK) return;
    char text[2048];
    fprintf(stderr, "%s [%s] %s\n", fz_status_name(s), err.code, fz_error_text(&err, text, sizeof text));
    exit(1);
}

static void create(cat_catalog *c, const cat_ident *id) {
    bool there;
    const char *location;
    cat_table *t;
    ice_schema *s;
    ice_metadata *m;
    char uuid[37];
    must(cat_namespace_exists(c, id->ns, &there, &err));
    if (!there) must(cat_create_namespace(c, id->ns, NULL, 0, &err));
    col_field f[2] = {{"id", col_simple(COL_BIGINT, false), NULL}, {"name", col_string(true), NULL}};
    col_schema cols = {2, f};
    must(ice_schema_from_cols(a, &cols, NULL, 0, &s, &err));
    must(cat_default_location(c, id, a, &location, &err));
    fz_uuid4(uuid);
    must(ice_metadata_new(location, s, NULL, NULL, NULL, 0, uuid, fz_now_ms(), &m, &err));
    must(cat_create_table(c, id, m, &t, &err));
    printf("%s\n", t->metadata_location);
    cat_table_free(t);
}

static void set(cat_catalog *c, const cat_ident *id, const char *key, const char *value) {
    for (;;) {
        cat_table *t, *t2;
        must(cat_load_table(c, id, &t, &err));
        ice_changes ch = ice_changes_new();
        fz_pair p = {.key = key, .value = value};
        ice_assert_uuid(&ch, t->metadata->uuid);
        ice_update_set_properties(&ch, &p, 1);
        fz_status rc = cat_commit(c, t, &ch, &t2, &err);
        ice_changes_free(&ch);
        cat_table_free(t);
        if (rc == FZ_CONFLICT) continue;
        must(rc);
        printf("%s\n", t2->metadata_location);
        cat_table_free(t2);
        return;
    }
}

static void show(cat_catalog *c, const cat_ident *id) {
    cat_table *t;
    must(cat_load_table(c, id, &t, &err));
    printf("%s\n%s\n%s\n", t->metadata_location, t->metadata->uuid, t->metadata->location);
    for (uint32_t i = 0; i < t->metadata->n_properties; i++) printf("%s=%s\n", t->metadata->properties[i].key, t->metadata->properties[i].value);
    cat_table_free(t);
}

static void list(cat_catalog *c, const char *db) {
    cat_names v;
    if (db) must(cat_list_tables(c, cat_ident_of(c, a, db, NULL).ns, a, &v, &err));
    else must(cat_list_namespaces(c, (cat_namespace){0}, a, &v, &err));
    for (uint32_t i = 0; i < v.n; i++) printf("%s\n", v.v[i]);
}

int main(int argc, char **argv) {
    fz_pair o[12] = {{.key = "type", .value = "iceberg"}};
    size_t n = 1;
    a = fz_arena_new();
    for (; argc > 2 && strcmp(argv[1], "-o") == 0 && strchr(argv[2], '=') && n < 9; argc -= 2, argv += 2) {
        const char *eq = strchr(argv[2], '=');
        o[n++] = (fz_pair){.key = fz_arena_strndup(a, argv[2], (size_t)(eq - argv[2])), .value = eq + 1};
    }
    if (argc < 6) return fprintf(stderr, "usage: catalog_tool [-o KEY=VALUE]... TYPE URI WAREHOUSE NAME COMMAND...\n"), 2;
    o[n++] = (fz_pair){.key = "catalog-type", .value = argv[1]};
    o[n++] = (fz_pair){.key = "warehouse", .value = argv[3]};
    if (strcmp(argv[2], "-") != 0) o[n++] = (fz_pair){.key = "uri", .value = argv[2]};
    cat_catalog *c;
    must(fz_fault_init(&err));
    must(cat_open(argv[4], o, n, NULL, &c, &err));
    const char *cmd = argv[5], *db = argc > 6 ? argv[6] : NULL;
    cat_ident id = db && argc > 7 ? cat_ident_of(c, a, db, argv[7]) : (cat_ident){0};
    if (strcmp(cmd, "list") == 0) list(c, db);
    else if (!id.name) return fprintf(stderr, "catalog_tool: %s wants DB TABLE\n", cmd), 2;
    else if (strcmp(cmd, "create") == 0) create(c, &id);
    else if (strcmp(cmd, "set") == 0 && argc == 10) set(c, &id, argv[8], argv[9]);
    else if (strcmp(cmd, "show") == 0) show(c, &id);
    else if (strcmp(cmd, "drop") == 0) must(cat_drop_table(c, &id, false, &err));
    else return fprintf(stderr, "catalog_tool: what is '%s'?\n", cmd), 2;
    cat_close(c);
    fz_arena_free(a);
    return 0;
}
