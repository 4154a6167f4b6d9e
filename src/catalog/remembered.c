/* What tables were when they were last seen, so that a process can begin while their catalog is away. See catalog.h.
 *
 *     <dir>/<16 hex digits of the catalog's name and options>/<namespace>.<table>.json      a line of JSON, and a line with its SHA-256
 *
 * Invariants
 *  1. What is recalled is never taken for the table: it has no snapshot, and whoever recalls it compares uuid, schema and spec when the table is seen.
 *  2. A file that is damaged, or of another version, is as good as none: everything in it is in the table.
 *  3. No secret is kept: metadata has none, and of the catalog's options there is only a hash, in which secrets have no part.
 */
#include "catalog/catalog_int.h"
#include "aws/aws.h"
#include "fileio/checked.h"
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define VERSION 1
#define LONGEST_NAME 200
#define MIRRORS "frazil.mirror." /* positions: they are history */

/* ---- places ---- */

static int by_key(const void *a, const void *b) { return strcmp(((const fz_pair *)a)->key, ((const fz_pair *)b)->key); }

static char *dir_of(const char *dir, const cat_catalog *c) {
    fz_pair *v = fz_calloc(c->n_options + 1, sizeof *v);
    memcpy(v, c->options, c->n_options * sizeof *v);
    qsort(v, c->n_options, sizeof *v, by_key);
    fz_buf b = {0};
    char sum[65];
    fz_buf_append(&b, c->name, strlen(c->name) + 1);
    for (size_t i = 0; i < c->n_options; i++) {
        fz_buf_append(&b, v[i].key, strlen(v[i].key) + 1);
        fz_option_show(&b, v[i].key, v[i].value); /* a secret that was renewed makes no other catalog */
        fz_buf_putc(&b, 0);
    }
    aws_sha256_hex(b.data, b.len, sum);
    fz_buf_free(&b);
    fz_free(v);
    return fz_asprintf("%s/%.16s", dir, sum);
}

/* One level: letters, digits, '_' and '-' as they are. */
static void put_level(fz_buf *b, const char *s) {
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_' || *p == '-';
        if (plain) fz_buf_putc(b, (char)*p);
        else fz_buf_printf(b, "%%%02X", *p);
    }
}
/* "level.level." and the table's name, if there is one. */
static void put_ident(fz_buf *b, const cat_ident *id) {
    for (uint32_t i = 0; i < id->ns.n; i++) {
        put_level(b, id->ns.level[i]);
        fz_buf_putc(b, '.');
    }
    if (!id->name) return;
    put_level(b, id->name);
    if (b->len > LONGEST_NAME) { /* what a file's name cannot hold */
        char sum[65];
        aws_sha256_hex(b->data, b->len, sum);
        b->len = LONGEST_NAME - 64;
        fz_buf_printf(b, "~%.32s", sum);
    }
    fz_buf_puts(b, ".json");
}

static char *path_of(const char *dir, const cat_catalog *c, const cat_ident *id) {
    char *of_catalog = dir_of(dir, c);
    fz_buf name = {0};
    put_ident(&name, id);
    char *path = fz_asprintf("%s/%s", of_catalog, fz_buf_cstr(&name));
    fz_buf_free(&name);
    fz_free(of_catalog);
    return path;
}

bool cat_remembers(const char *dir, const cat_catalog *c, const cat_ident *id) {
    char *path = id && id->name ? path_of(dir, c, id) : dir_of(dir, c);
    bool found = id && id->name && access(path, R_OK) == 0;
    DIR *d = id && id->name ? NULL : opendir(path);
    fz_buf prefix = {0};
    if (d && id) put_ident(&prefix, id);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        found = n > 5 && strcmp(e->d_name + n - 5, ".json") == 0 && fz_starts(e->d_name, fz_buf_cstr(&prefix));
    }
    if (d) closedir(d);
    fz_buf_free(&prefix);
    fz_free(path);
    return found;
}

/* ---- the file ---- */

/* The metadata's document without what grows with the table's history. */
static json_t *without_history(const ice_metadata *m) {
    static const char *const history[] = {"snapshots", "snapshot-log", "metadata-log", "refs", "statistics", "partition-statistics", "current-snapshot-id"};
    json_t *out = json_object(), *value, *props;
    const char *key;
    void *next;
    json_object_foreach((json_t *)(uintptr_t)m->root, key, value) {
        bool skip = false;
        for (size_t i = 0; i < sizeof history / sizeof *history; i++) skip |= strcmp(key, history[i]) == 0;
        if (!skip) json_object_set_new(out, key, json_deep_copy(value));
    }
    props = json_object_get(out, "properties");
    json_object_foreach_safe(props, next, key, value) if (fz_starts(key, MIRRORS)) json_object_del(props, key);
    return out;
}

fz_status cat_remember(const char *dir, const cat_catalog *c, const cat_table *t, fz_error *err) {
    char *path = path_of(dir, c, &t->ident);
    fz_buf b = {0};
    fio_checked_put(&b, json_pack("{s:i, s:s, s:o}", "version", VERSION, "location", t->metadata_location, "metadata", without_history(t->metadata)));
    fz_status rc = fio_put(NULL, path, b.data, b.len, err);
    fz_buf_free(&b);
    fz_free(path);
    return rc;
}

static cat_table *decode(const cat_catalog *c, const cat_ident *id, const fz_buf *b) {
    json_t *root = fio_checked_get(b->data, b->len);
    const char *location = json_string_value(json_object_get(root, "location"));
    ice_metadata *m = NULL;
    fz_error ignored;
    char *text = location && json_integer_value(json_object_get(root, "version")) == VERSION ? json_dumps(json_object_get(root, "metadata"), JSON_COMPACT) : NULL;
    if (text && ice_metadata_parse(text, strlen(text), &m, &ignored) != FZ_OK) m = NULL;
    free(text); /* jansson's own allocation */
    cat_table *t = m ? cat_table_make(c->io, id, location, m) : NULL;
    json_decref(root);
    return t;
}

fz_status cat_recall(const char *dir, const cat_catalog *c, const cat_ident *id, cat_table **out, fz_error *err) {
    char *path = path_of(dir, c, id);
    fz_buf b = {0};
    fz_error own;
    *out = NULL;
    fz_status rc = fio_read(NULL, path, FZ_MAX_METADATA_JSON, &b, &own);
    if (rc == FZ_OK && !(*out = decode(c, id, &b)))
        fz_log(FZ_LOG_WARN, "catalog.memory-damaged", FZ_KV("path", "%s", path), FZ_KV("reason", "%s", "what is kept of the table cannot be read: its catalog has to be asked"), NULL);
    if (rc != FZ_OK && strcmp(own.code, "file.not-found") == 0) rc = FZ_OK;
    else if (rc != FZ_OK) *err = own;
    fz_buf_free(&b);
    fz_free(path);
    return rc;
}
