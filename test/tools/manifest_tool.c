/* Metadata, manifests and manifest lists for strangers to read, and theirs read by us.
 *   manifest_tool write DIR CODEC   a table of three commits below DIR (no data files); prints the location of its newest metadata file
 *   manifest_tool dump FILE         the entries of a manifest, one JSON object a line
 *   manifest_tool list FILE         the manifests of a manifest list, one JSON object a line
 */
#include "iceberg/iceberg.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void must(fz_status s, const fz_error *err) {
    char text[2048];
    if (s == FZ_OK) return;
    fprintf(stderr, "%s\n", fz_error_text(err, text, sizeof text));
    exit(1);
}

static fz_status file_read(void *cx, const char *location, fz_buf *out, fz_error *err) {
    (void)cx;
    FILE *f = fopen(fz_starts(location, "file://") ? location + 7 : location, "rb");
    if (!f) return fz_fail(err, FZ_USER, "file.not-found", "%s", location);
    char b[65536];
    size_t n;
    while ((n = fread(b, 1, sizeof b, f)) > 0) fz_buf_append(out, b, n);
    fclose(f);
    return FZ_OK;
}

static fz_status file_write(void *cx, const char *location, const void *p, size_t n, fz_error *err) {
    (void)cx;
    FILE *f = fopen(location + 7, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f)) return fz_fail(err, FZ_RETRY, "file.write", "%s", location);
    return FZ_OK;
}

static void hex(fz_buf *b, fz_sv s) {
    for (size_t i = 0; i < s.n; i++) fz_buf_printf(b, "%02x", (unsigned)(uint8_t)s.p[i]);
}

static void value_json(fz_buf *b, const ice_value *v) {
    if (v->is_null) fz_buf_puts(b, "null");
    else if (v->kind == ICE_STRING) fz_buf_json(b, v->s.p, v->s.n);
    else if (v->kind >= ICE_UUID && v->kind <= ICE_BINARY) fz_buf_putc(b, '"'), hex(b, v->s), fz_buf_putc(b, '"');
    else if (v->kind == ICE_FLOAT || v->kind == ICE_DOUBLE) fz_buf_printf(b, "\"%.17g\"", v->d);
    else if (v->kind == ICE_DECIMAL) fz_buf_printf(b, "\"%lld\"", (long long)v->dec);
    else fz_buf_printf(b, "%lld", (long long)v->i);
}

static void counts_json(fz_buf *b, const char *name, ice_counts c) {
    fz_buf_printf(b, ",\"%s\":", name);
    if (!c.v) {
        fz_buf_puts(b, "null");
        return;
    }
    fz_buf_putc(b, '{');
    for (uint32_t i = 0; i < c.n; i++) fz_buf_printf(b, "%s\"%d\":%lld", i ? "," : "", c.v[i].id, (long long)c.v[i].n);
    fz_buf_putc(b, '}');
}

static void bounds_json(fz_buf *b, const char *name, ice_bounds c) {
    fz_buf_printf(b, ",\"%s\":", name);
    if (!c.v) {
        fz_buf_puts(b, "null");
        return;
    }
    fz_buf_putc(b, '{');
    for (uint32_t i = 0; i < c.n; i++) {
        fz_buf_printf(b, "%s\"%d\":\"", i ? "," : "", c.v[i].id);
        hex(b, c.v[i].v);
        fz_buf_putc(b, '"');
    }
    fz_buf_putc(b, '}');
}

static void entry_json(fz_buf *b, const ice_entry *e) {
    const ice_data_file *f = &e->file;
    fz_buf_printf(b, "{\"status\":%d,\"snapshot_id\":%lld,\"sequence\":%lld,\"file_sequence\":%lld,\"content\":%d,\"records\":%lld,\"size\":%lld,\"sort_order\":%d,\"path\":",
                  (int)e->status, (long long)e->snapshot_id, (long long)e->sequence, (long long)e->file_sequence, (int)f->content, (long long)f->record_count,
                  (long long)f->file_size, f->sort_order_id);
    fz_buf_json(b, f->path, strlen(f->path));
    fz_buf_puts(b, ",\"partition\":[");
    for (uint32_t i = 0; i < f->partition.n; i++) {
        if (i) fz_buf_putc(b, ',');
        value_json(b, &f->partition.v[i]);
    }
    fz_buf_puts(b, "]");
    counts_json(b, "column_sizes", f->column_sizes);
    counts_json(b, "value_counts", f->value_counts);
    counts_json(b, "null_counts", f->null_counts);
    counts_json(b, "nan_counts", f->nan_counts);
    bounds_json(b, "lower", f->lower);
    bounds_json(b, "upper", f->upper);
    fz_buf_puts(b, ",\"splits\":");
    if (!f->split_offsets) fz_buf_puts(b, "null");
    else {
        fz_buf_putc(b, '[');
        for (uint32_t i = 0; i < f->n_split_offsets; i++) fz_buf_printf(b, "%s%lld", i ? "," : "", (long long)f->split_offsets[i]);
        fz_buf_putc(b, ']');
    }
    fz_buf_puts(b, "}\n");
}

static void dump(fz_arena *a, const char *path) {
    fz_buf in = {0}, b = {0};
    fz_error err;
    const ice_entry *e;
    uint32_t n;
    must(file_read(NULL, path, &in, &err), &err);
    must(ice_manifest_decode(a, in.data, in.len, NULL, NULL, NULL, &e, &n, &err), &err);
    for (uint32_t i = 0; i < n; i++) entry_json(&b, &e[i]);
    fwrite(b.data, 1, b.len, stdout);
    fz_buf_free(&in);
    fz_buf_free(&b);
}

static void list(fz_arena *a, const char *path) {
    fz_buf in = {0}, b = {0};
    fz_error err;
    ice_manifest_list l;
    must(file_read(NULL, path, &in, &err), &err);
    must(ice_manifest_list_decode(a, in.data, in.len, &l, &err), &err);
    for (uint32_t i = 0; i < l.n; i++) {
        const ice_manifest_file *m = &l.v[i];
        fz_buf_puts(&b, "{\"path\":");
        fz_buf_json(&b, m->path, strlen(m->path));
        fz_buf_printf(&b, ",\"length\":%lld,\"spec\":%d,\"content\":%d,\"sequence\":%lld,\"min_sequence\":%lld,\"snapshot\":%lld,\"files\":[%d,%d,%d],\"rows\":[%lld,%lld,%lld],\"partitions\":[",
                      (long long)m->length, m->spec_id, m->content, (long long)m->sequence, (long long)m->min_sequence, (long long)m->added_snapshot_id, m->added_files,
                      m->existing_files, m->deleted_files, (long long)m->added_rows, (long long)m->existing_rows, (long long)m->deleted_rows);
        for (uint32_t k = 0; k < m->n_partitions; k++) {
            fz_buf_printf(&b, "%s[%s,%d,\"", k ? "," : "", m->partitions[k].contains_null ? "true" : "false", m->partitions[k].contains_nan);
            hex(&b, m->partitions[k].lower);
            fz_buf_puts(&b, "\",\"");
            hex(&b, m->partitions[k].upper);
            fz_buf_puts(&b, "\"]");
        }
        fz_buf_puts(&b, "]}\n");
    }
    fwrite(b.data, 1, b.len, stdout);
    fz_buf_free(&in);
    fz_buf_free(&b);
}

/* ---- a table with a partition field of each kind ---- */

enum { N_FIELDS = 15, ROWS = 5 };
static const ice_term terms[N_FIELDS] = {
    {.column = "b"}, {.column = "i"}, {.column = "l"}, {.column = "f"}, {.column = "d"}, {.column = "dt"}, {.column = "ts"}, {.column = "tz"}, {.column = "host-name"},
    {.column = "fx", .transform = "bucket", .n = 4}, {.column = "bin"}, {.column = "de"}, {.column = "i", .transform = "bucket", .n = 16}, {.column = "host-name", .transform = "truncate", .n = 2},
    {.column = "tz", .transform = "days", .name = "9day"}};

static void make_schema(fz_arena *a, ice_schema **s, ice_spec **spec) {
    fz_error err;
    const col_field f[] = {
        {"b", col_simple(COL_BOOLEAN, true), NULL}, {"i", col_simple(COL_INT, true), NULL}, {"l", col_simple(COL_BIGINT, true), NULL}, {"f", col_simple(COL_FLOAT, true), NULL},
        {"d", col_simple(COL_DOUBLE, true), NULL}, {"dt", col_simple(COL_DATE, true), NULL}, {"ts", col_sized(a, COL_TIMESTAMP, 6, 0, true), NULL},
        {"tz", col_sized(a, COL_TIMESTAMP_LTZ, 6, 0, true), NULL}, {"host-name", col_string(true), "with a dash"}, {"fx", col_sized(a, COL_BINARY, 4, 0, true), NULL},
        {"bin", col_sized(a, COL_VARBINARY, COL_MAX_LENGTH, 0, true), NULL}, {"de", col_sized(a, COL_DECIMAL, 10, 2, true), NULL}};
    const col_schema cols = {sizeof f / sizeof *f, f};
    must(ice_schema_from_cols(a, &cols, NULL, 0, s, &err), &err);
    must(ice_spec_build(a, *s, terms, N_FIELDS, spec, &err), &err);
}

/* Row 0 is all NULL; the rest are simple functions of the row's number, which the checking script repeats. */
static ice_value cell(fz_arena *a, const ice_type *t, int row) {
    ice_value v = {.kind = (uint8_t)t->kind, .is_null = row == 0};
    int k = row - 2;
    switch (t->kind) {
    case ICE_BOOLEAN: v.i = row & 1; break;
    case ICE_FLOAT:
    case ICE_DOUBLE: v.d = k * 0.5; break;
    case ICE_DECIMAL: v.dec = k * 129; break;
    case ICE_STRING: v.s = fz_sv_of(fz_arena_printf(a, "h\xc3\xa9-%d", row)); break;
    case ICE_FIXED: v.s = (fz_sv){fz_arena_printf(a, "fx%02d", row), 4}; break;
    case ICE_BINARY: v.s = (fz_sv){fz_arena_printf(a, "%cbin", row), 4}; break;
    case ICE_DATE: v.i = 20000 * k; break;
    case ICE_TIMESTAMP:
    case ICE_TIMESTAMPTZ: v.i = 1789603200123456LL * k; break;
    default: v.i = 1000 * k;
    }
    return v;
}

static ice_data_file make_file(fz_arena *a, const ice_metadata *m, int commit, int row) {
    const ice_type **types = ice_metadata_spec_types(a, m, m->spec);
    ice_value *v = FZ_ANEWN(a, ice_value, N_FIELDS);
    for (int i = 0; i < N_FIELDS; i++) {
        const ice_type *source = ice_schema_field(m->schema, m->spec->fields[i].source_id)->type;
        ice_value x = cell(a, source, row);
        v[i] = ice_transform_value(&m->spec->fields[i].transform, source, &x);
    }
    ice_tuple t = {N_FIELDS, v};
    const char *name = ice_data_file_name(a, 0, (uint32_t)commit, "op", (uint32_t)row, "parquet");
    ice_count *sizes = FZ_ANEWN(a, ice_count, 2);
    ice_bound *low = FZ_ANEWN(a, ice_bound, 1), *high = FZ_ANEWN(a, ice_bound, 1);
    int64_t *splits = FZ_ANEWN(a, int64_t, 1);
    sizes[0] = (ice_count){1, 11};
    sizes[1] = (ice_count){9, 5000000000LL + row};
    low[0] = (ice_bound){9, {"h\xc3\xa9", 3}};
    high[0] = (ice_bound){9, {"i", 1}};
    splits[0] = 4;
    return (ice_data_file){.path = ice_data_file_location(a, m, ice_tuple_path(a, m->spec, types, t), name), .format = "PARQUET", .partition = t, .spec_id = m->spec->spec_id,
                           .record_count = 10 + row, .file_size = 1000 + row, .column_sizes = {2, sizes}, .value_counts = {2, sizes}, .null_counts = {1, sizes},
                           .nan_counts = {0, sizes}, .lower = {1, low}, .upper = {1, high}, .n_split_offsets = 1, .split_offsets = splits, .sort_order_id = 0};
}

static void store(fz_arena *a, const ice_metadata *m, int version) {
    fz_buf b = {0};
    fz_error err;
    const char *at = ice_metadata_location(a, m, version, fz_arena_printf(a, "00000000-0000-0000-0000-%012d", version));
    must(ice_metadata_encode(m, &b, &err), &err);
    must(file_write(NULL, at, b.data, b.len, &err), &err);
    if (version == 3) printf("%s\n", at);
    fz_buf_free(&b);
}

static void write_table(fz_arena *a, const char *dir, const char *codec) {
    const ice_io io = {NULL, file_read, file_write};
    const fz_pair props[] = {{.key = "write.avro.compression-codec", .value = codec}, {.key = "commit.manifest.min-count-to-merge", .value = "3"}};
    ice_schema *s;
    ice_spec *spec;
    ice_metadata *m, *next;
    fz_error err;
    make_schema(a, &s, &spec);
    (void)mkdir(fz_arena_printf(a, "%s/metadata", dir), 0755);
    must(ice_metadata_new(fz_arena_printf(a, "file://%s", dir), s, spec, NULL, props, 2, "01234567-89ab-4def-8123-456789abcdef", 1700000000000, &m, &err), &err);
    store(a, m, 0);
    for (int commit = 1; commit <= 3; commit++) {
        ice_data_file files[ROWS];
        for (int row = 0; row < ROWS; row++) files[row] = make_file(a, m, commit, row);
        const fz_pair extra = {.key = "note", .value = "stranger"};
        ice_append ap = {.files = files, .n_files = ROWS, .summary = &extra, .n_summary = 1, .snapshot_id = 100 + commit, .attempt = 1,
                         .uuid = fz_arena_printf(a, "aaaaaaaa-0000-0000-0000-%012d", commit), .now_ms = 1700000000000 + commit * 1000};
        ice_append_result r;
        must(ice_append_build(a, m, &ap, &io, &r, &err), &err);
        must(ice_metadata_apply(m, &r.changes, ap.now_ms, ice_metadata_location(a, m, commit - 1, fz_arena_printf(a, "00000000-0000-0000-0000-%012d", commit - 1)), &next, NULL, &err), &err);
        ice_changes_free(&r.changes);
        ice_metadata_free(m);
        m = next;
        store(a, m, commit);
    }
    ice_metadata_free(m);
}

int main(int argc, char **argv) {
    fz_arena *a = fz_arena_new();
    if (argc == 4 && strcmp(argv[1], "write") == 0) write_table(a, argv[2], argv[3]);
    else if (argc == 3 && strcmp(argv[1], "dump") == 0) dump(a, argv[2]);
    else if (argc == 3 && strcmp(argv[1], "list") == 0) list(a, argv[2]);
    else {
        fprintf(stderr, "usage: manifest_tool write DIR CODEC | dump FILE | list FILE\n");
        return 1;
    }
    fz_arena_free(a);
    return 0;
}
