/* Manifests and manifest lists: those of the Java implementation read, written anew and compared; odd writers; hostile bytes. */
#include "ice_test.h"

#define DIR "test/data/iceberg/"
#define PV "part_values/"
#define PV_MANIFEST DIR PV "dfb969f3-4add-4955-b88b-8ff16d1a1fc7-m0.avro"
#define PV_LIST DIR PV "snap-6916397926822834661-1-dfb969f3-4add-4955-b88b-8ff16d1a1fc7.avro"
#define PV_META DIR PV "00001-b0317b09-9243-4dcb-b2fa-ee8ba0fb69ba.metadata.json"
#define T_MANIFEST DIR "types/58e8491c-4b6e-45ed-817c-da6bcbd56c5b-m0.avro"
#define T_LIST DIR "types/snap-6190917546277966094-1-58e8491c-4b6e-45ed-817c-da6bcbd56c5b.avro"
#define T_META DIR "types/00001-efa72cd3-9963-4fb9-a151-3e5b58812286.metadata.json"

static ice_metadata *load(const char *path) {
    fz_buf b = {0};
    ice_metadata *m;
    fz_error err;
    read_file(path, &b);
    must(ice_metadata_parse(b.data, b.len, &m, &err), &err);
    fz_buf_free(&b);
    return m;
}

static bool sv_eq(fz_sv a, fz_sv b) { return (a.p == NULL) == (b.p == NULL) && fz_sv_eq(a, b); }

static void same_counts(ice_counts a, ice_counts b) {
    assert_true((a.v == NULL) == (b.v == NULL));
    assert_int_equal(a.n, b.n);
    for (uint32_t i = 0; i < a.n; i++) assert_true(a.v[i].id == b.v[i].id && a.v[i].n == b.v[i].n);
}

static void same_bounds(ice_bounds a, ice_bounds b) {
    assert_true((a.v == NULL) == (b.v == NULL));
    assert_int_equal(a.n, b.n);
    for (uint32_t i = 0; i < a.n; i++) assert_true(a.v[i].id == b.v[i].id && sv_eq(a.v[i].v, b.v[i].v));
}

static void same_entry(const ice_entry *a, const ice_entry *b) {
    const ice_data_file *f = &a->file, *g = &b->file;
    assert_true(a->status == b->status && a->snapshot_id == b->snapshot_id && a->sequence == b->sequence && a->file_sequence == b->file_sequence);
    assert_string_equal(f->path, g->path);
    assert_string_equal(f->format, g->format);
    assert_true(f->content == g->content && f->spec_id == g->spec_id && f->record_count == g->record_count && f->file_size == g->file_size);
    assert_true(ice_tuple_eq(f->partition, g->partition));
    same_counts(f->column_sizes, g->column_sizes);
    same_counts(f->value_counts, g->value_counts);
    same_counts(f->null_counts, g->null_counts);
    same_counts(f->nan_counts, g->nan_counts);
    same_bounds(f->lower, g->lower);
    same_bounds(f->upper, g->upper);
    assert_true(sv_eq(f->key_metadata, g->key_metadata));
    assert_true((f->split_offsets == NULL) == (g->split_offsets == NULL) && f->n_split_offsets == g->n_split_offsets);
    for (uint32_t i = 0; i < f->n_split_offsets; i++) assert_true(f->split_offsets[i] == g->split_offsets[i]);
    assert_true((f->equality_ids == NULL) == (g->equality_ids == NULL) && f->n_equality_ids == g->n_equality_ids);
    for (uint32_t i = 0; i < f->n_equality_ids; i++) assert_true(f->equality_ids[i] == g->equality_ids[i]);
    assert_int_equal(f->sort_order_id, g->sort_order_id);
    assert_true(sv_eq(fz_sv_of(f->referenced_data_file), fz_sv_of(g->referenced_data_file)));
}

static void same_manifest_file(const ice_manifest_file *a, const ice_manifest_file *b, bool with_length) {
    assert_string_equal(a->path, b->path);
    if (with_length) assert_true(a->length == b->length);
    assert_true(a->spec_id == b->spec_id && a->content == b->content && a->added_snapshot_id == b->added_snapshot_id);
    assert_true(a->added_files == b->added_files && a->existing_files == b->existing_files && a->deleted_files == b->deleted_files);
    assert_true(a->added_rows == b->added_rows && a->existing_rows == b->existing_rows && a->deleted_rows == b->deleted_rows);
    assert_int_equal(a->n_partitions, b->n_partitions);
    for (uint32_t i = 0; i < a->n_partitions; i++) {
        const ice_summary *s = &a->partitions[i], *t = &b->partitions[i];
        assert_true(s->contains_null == t->contains_null && s->contains_nan == t->contains_nan);
        assert_true(sv_eq(s->lower, t->lower) && sv_eq(s->upper, t->upper));
    }
}

/* Value of a header key, by a walk over the first bytes of a container. */
static char *header(const fz_buf *b, const char *key) {
    size_t at = 4;
    for (;;) {
        uint64_t n = 0;
        int shift = 0;
        do n |= (uint64_t)(b->data[at] & 0x7f) << shift, shift += 7;
        while (b->data[at++] & 0x80);
        n >>= 1;
        if (!n) return NULL;
        for (uint64_t i = 0; i < n; i++) {
            fz_sv kv[2];
            for (int k = 0; k < 2; k++) {
                uint64_t len = 0;
                shift = 0;
                do len |= (uint64_t)(b->data[at] & 0x7f) << shift, shift += 7;
                while (b->data[at++] & 0x80);
                len >>= 1;
                kv[k] = (fz_sv){(char *)b->data + at, len};
                at += len;
            }
            if (fz_sv_eq(kv[0], fz_sv_of(key))) return fz_strndup(kv[1].p, kv[1].n);
        }
    }
}

static void same_json_header(const fz_buf *a, const fz_buf *b, const char *key) {
    char *x = header(a, key), *y = header(b, key);
    if (!x || !y) fail_msg("header %s is missing", key);
    json_t *j = json_of(x), *k = json_of(y);
    if (!json_equal(j, k)) fail_msg("header %s differs:\n%s\n%s", key, x, y);
    json_decref(j);
    json_decref(k);
    fz_free(x);
    fz_free(y);
}

static void list_of(fz_arena *a, const char *path, ice_manifest_list *out) {
    fz_buf b = {0};
    fz_error err;
    read_file(path, &b);
    must(ice_manifest_list_decode(a, b.data, b.len, out, &err), &err);
    fz_buf_free(&b);
}

static void write_all(const ice_metadata *m, const ice_type *const *types, const ice_entry *e, uint32_t n, int64_t snapshot_id, ice_avro_codec codec, fz_arena *a,
                      fz_buf *out, ice_manifest_file *file) {
    fz_error err;
    ice_manifest_writer *w = ice_manifest_writer_new(m->schema, m->spec, types, 0, snapshot_id, codec);
    for (uint32_t i = 0; i < n; i++) must(ice_manifest_writer_add(w, &e[i], &err), &err);
    must(ice_manifest_writer_finish(w, a, out, file, &err), &err);
}

static void round_trip(const char *meta, const char *manifest, const char *list) {
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_metadata *m = load(meta);
    ice_manifest_list l;
    list_of(a, list, &l);
    assert_int_equal(l.n, 1);
    const ice_type **types = ice_metadata_spec_types(a, m, m->spec);
    fz_buf java = {0}, mine = {0};
    read_file(manifest, &java);
    assert_int_equal(java.len, l.v[0].length);
    const ice_entry *e, *again;
    uint32_t n, n2;
    /* as stored, without inheritance */
    must(ice_manifest_decode(a, java.data, java.len, NULL, m->spec, types, &e, &n, &err), &err);
    for (int codec = 0; codec < 4; codec++) {
        ice_manifest_file f;
        mine.len = 0;
        write_all(m, types, e, n, l.v[0].added_snapshot_id, (ice_avro_codec)codec, a, &mine, &f);
        f.path = l.v[0].path;
        same_manifest_file(&f, &l.v[0], false);
        must(ice_manifest_decode(a, mine.data, mine.len, NULL, NULL, NULL, &again, &n2, &err), &err);
        assert_int_equal(n, n2);
        for (uint32_t i = 0; i < n; i++) same_entry(&e[i], &again[i]);
        assert_int_equal(f.length, mine.len);
    }
    same_json_header(&java, &mine, "avro.schema");
    same_json_header(&java, &mine, "schema");
    same_json_header(&java, &mine, "partition-spec");
    same_json_header(&java, &mine, "partition-spec-id");
    same_json_header(&java, &mine, "format-version");
    char *content = header(&mine, "content"), *schema_id = header(&mine, "schema-id");
    assert_string_equal(content, "data");
    assert_string_equal(schema_id, "0");
    fz_free(content);
    fz_free(schema_id);
    /* with inheritance */
    must(ice_manifest_decode(a, java.data, java.len, &l.v[0], m->spec, types, &e, &n, &err), &err);
    for (uint32_t i = 0; i < n; i++) assert_true(e[i].sequence == 1 && e[i].file_sequence == 1 && e[i].snapshot_id == m->current_snapshot_id);
    ice_metadata_free(m);
    fz_buf_free(&java);
    fz_buf_free(&mine);
    fz_arena_free(a);
}

static void java_manifests(void **state) {
    (void)state;
    round_trip(PV_META, PV_MANIFEST, PV_LIST);
    round_trip(T_META, T_MANIFEST, T_LIST);
}

static void java_lists(void **state) {
    (void)state;
    const char *paths[] = {PV_LIST, T_LIST};
    const int64_t ids[] = {6916397926822834661, 6190917546277966094};
    for (int k = 0; k < 2; k++) {
        fz_arena *a = fz_arena_new();
        fz_error err;
        fz_buf java = {0}, mine = {0};
        ice_manifest_list l, again;
        read_file(paths[k], &java);
        must(ice_manifest_list_decode(a, java.data, java.len, &l, &err), &err);
        for (int codec = 0; codec < 4; codec++) {
            mine.len = 0;
            must(ice_manifest_list_encode(&l, ids[k], ICE_NONE, 1, (ice_avro_codec)codec, &mine, &err), &err);
            must(ice_manifest_list_decode(a, mine.data, mine.len, &again, &err), &err);
            assert_int_equal(l.n, again.n);
            for (uint32_t i = 0; i < l.n; i++) {
                same_manifest_file(&l.v[i], &again.v[i], true);
                assert_true(l.v[i].sequence == again.v[i].sequence && l.v[i].min_sequence == again.v[i].min_sequence);
            }
        }
        static const char *const keys[] = {"avro.schema", "snapshot-id", "parent-snapshot-id", "sequence-number", "format-version"};
        for (size_t i = 0; i < 5; i++) same_json_header(&java, &mine, keys[i]);
        fz_buf_free(&java);
        fz_buf_free(&mine);
        fz_arena_free(a);
    }
}

/* NULL, "null" and "" are three tuples; values are raw, paths are encoded. */
static void partition_values(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    fz_buf b = {0};
    ice_metadata *m = load(PV_META);
    const ice_type **types = ice_metadata_spec_types(a, m, m->spec);
    const ice_entry *e;
    uint32_t n;
    read_file(PV_MANIFEST, &b);
    must(ice_manifest_decode(a, b.data, b.len, NULL, m->spec, types, &e, &n, &err), &err);
    assert_int_equal(n, 12);
    for (uint32_t i = 0; i < n; i++) {
        const char *path = ice_tuple_path(a, m->spec, types, e[i].file.partition);
        const char *name = strrchr(e[i].file.path, '/') + 1;
        assert_string_equal(e[i].file.path, ice_data_file_location(a, m, path, name));
        for (uint32_t k = 0; k < i; k++) {
            assert_false(ice_tuple_eq(e[i].file.partition, e[k].file.partition));
            assert_true(ice_tuple_hash(e[i].file.partition) != ice_tuple_hash(e[k].file.partition));
        }
    }
    ice_metadata_free(m);
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* Every partition type there and back, and bounds in the order of unsigned bytes. */
static void all_partition_types(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    static const char *const names[] = {"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid", "fixed[4]",
                                        "fixed[3]", "binary", "decimal(9, 2)", "decimal(38, 10)", "decimal(38, 10)", "uuid"};
    enum { N = sizeof names / sizeof *names };
    json_t *fields = json_array(), *spec_fields = json_array();
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        json_array_append_new(fields, json_pack("{s:i, s:s, s:b, s:s}", "id", i + 1, "name", name, "required", 0, "type", names[i]));
        json_array_append_new(spec_fields, json_pack("{s:s, s:s, s:i, s:i}", "name", name, "transform", "identity", "source-id", i + 1, "field-id", 1000 + i));
    }
    json_t *sj = json_pack("{s:s, s:i, s:o}", "type", "struct", "schema-id", 7, "fields", fields);
    ice_schema *schema;
    ice_spec *spec;
    must(ice_schema_parse(a, sj, &schema, &err), &err);
    must(ice_spec_parse(a, spec_fields, &spec, &err), &err);
    const ice_type **types = ice_spec_types(a, spec, schema);
    ice_value rows[3][N];
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < N; i++) {
            ice_value *v = &rows[r][i];
            *v = (ice_value){.kind = (uint8_t)types[i]->kind, .is_null = r == 2};
            int k = types[i]->kind;
            if (k == ICE_FLOAT || k == ICE_DOUBLE) v->d = r ? -0.0 : (double)__builtin_nanf("");
            else if (k == ICE_DECIMAL) v->dec = r ? -129 : (col_i128)123456789 * (types[i]->precision > 20 ? (col_i128)1000000000000000000 : 1);
            else if (k == ICE_STRING) v->s = r ? FZ_SV("z") : FZ_SV("\xc3\xa9");
            else if (k == ICE_UUID) v->s = r ? FZ_SV("0123456789abcdef") : FZ_SV("\xff""123456789abcdef");
            else if (k == ICE_FIXED) v->s = (fz_sv){r ? "\x01\x02\x03\x04" : "\xff\x02\x03\x04", (size_t)types[i]->precision};
            else if (k == ICE_BINARY) v->s = r ? FZ_SV("") : FZ_SV("\x80");
            else v->i = k == ICE_BOOLEAN ? !r : r ? -5 : 70000;
        }
    ice_manifest_writer *w = ice_manifest_writer_new(schema, spec, types, 0, 42, ICE_AVRO_DEFLATE);
    ice_entry e = {.status = ICE_ADDED, .snapshot_id = 42, .sequence = ICE_NONE, .file_sequence = ICE_NONE};
    e.file = (ice_data_file){.path = "s3://x/y", .format = "PARQUET", .record_count = 3, .file_size = 9, .sort_order_id = ICE_NONE};
    for (int r = 0; r < 3; r++) {
        e.file.partition = (ice_tuple){N, rows[r]};
        must(ice_manifest_writer_add(w, &e, &err), &err);
    }
    fz_buf b = {0};
    ice_manifest_file f;
    must(ice_manifest_writer_finish(w, a, &b, &f, &err), &err);
    for (int with = 0; with < 2; with++) {
        const ice_entry *got;
        uint32_t n;
        must(ice_manifest_decode(a, b.data, b.len, NULL, with ? spec : NULL, with ? types : NULL, &got, &n, &err), &err);
        assert_int_equal(n, 3);
        for (int r = 0; r < 3; r++)
            for (int i = 0; i < N; i++)
                if (!(r == 2 && !with) && !ice_value_eq(&got[r].file.partition.v[i], &rows[r][i])) fail_msg("row %d, column %s", r, names[i]);
    }
    /* float and double: NaN is no bound, -0.0 is; text: z before e acute */
    assert_true(f.partitions[3].contains_nan == 1 && f.partitions[3].contains_null && f.partitions[3].lower.n == 4);
    assert_memory_equal(f.partitions[4].lower.p, "\0\0\0\0\0\0\0\x80", 8);
    assert_memory_equal(f.partitions[4].upper.p, "\0\0\0\0\0\0\0\x80", 8);
    assert_memory_equal(f.partitions[9].lower.p, "z", 1);
    assert_memory_equal(f.partitions[9].upper.p, "\xc3\xa9", 2);
    assert_true(f.added_files == 3 && f.added_rows == 9 && f.min_sequence == ICE_NONE);
    json_decref(sj);
    json_decref(spec_fields);
    fz_buf_free(&b);
    fz_arena_free(a);
}

static void avro_names(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    static const char *const names[] = {"host-name", "9dt", "a.b", "é", "😀", "plain_1", "a_x2Eb"};
    static const char *const want[] = {"host_x2Dname", "_9dt", "a_x2Eb", "_xE9", "_xD83D_xDE00", "plain_1", "a_x2Eb_1006"};
    col_field cols[7];
    ice_term terms[7];
    for (int i = 0; i < 7; i++) {
        cols[i] = (col_field){names[i], col_string(true), NULL};
        terms[i] = (ice_term){.column = names[i]};
    }
    col_schema cs = {7, cols};
    ice_schema *s;
    ice_spec *spec;
    must(ice_schema_from_cols(a, &cs, NULL, 0, &s, &err), &err);
    must(ice_spec_build(a, s, terms, 7, &spec, &err), &err);
    const ice_type **types = ice_spec_types(a, spec, s);
    fz_buf b = {0};
    ice_manifest_file f;
    must(ice_manifest_writer_finish(ice_manifest_writer_new(s, spec, types, 0, 1, ICE_AVRO_NULL), a, &b, &f, &err), &err);
    char *text = header(&b, "avro.schema");
    json_t *j = json_of(text), *data_file = json_object_get(json_array_get(json_object_get(j, "fields"), 4), "type");
    json_t *part = json_object_get(json_object_get(json_array_get(json_object_get(data_file, "fields"), 3), "type"), "fields");
    for (size_t i = 0; i < 7; i++) {
        const json_t *field = json_array_get(part, i), *original = json_object_get(field, "iceberg-field-name");
        assert_string_equal(json_string_value(json_object_get(field, "name")), want[i]);
        if (strcmp(names[i], want[i]) == 0) assert_null(original);
        else assert_string_equal(json_string_value(original), names[i]);
        assert_int_equal(json_integer_value(json_object_get(field, "field-id")), 1000 + (int)i);
    }
    json_decref(j);
    fz_free(text);
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* ---- other writers ---- */

static void put_long(fz_buf *b, int64_t v) {
    uint64_t u = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
    for (; u >= 0x80; u >>= 7) fz_buf_putc(b, (char)(u | 0x80));
    fz_buf_putc(b, (char)u);
}
static void put_str(fz_buf *b, const char *s) {
    put_long(b, (int64_t)strlen(s));
    fz_buf_puts(b, s);
}
static void container(fz_buf *out, const char *schema, int64_t rows, const fz_buf *block) {
    fz_buf_append(out, "Obj\1", 4);
    put_long(out, 1);
    put_str(out, "avro.schema");
    put_str(out, schema);
    put_long(out, 0);
    fz_buf_append(out, "0123456789abcdef", 16);
    put_long(out, rows);
    put_long(out, (int64_t)block->len);
    fz_buf_append(out, block->data, block->len);
    fz_buf_append(out, "0123456789abcdef", 16);
}

/* No ids, another order of fields, null last in unions, unknown fields of every shape, a v1 manifest without sequence numbers. */
static void strange_writer(void **state) {
    (void)state;
    const char *schema =
        "{\"type\":\"record\",\"name\":\"n.s.entry\",\"fields\":["
        "{\"name\":\"extra\",\"type\":[\"string\",\"null\"]},"
        "{\"name\":\"data_file\",\"type\":{\"type\":\"record\",\"name\":\"df\",\"fields\":["
        "{\"name\":\"file_size_in_bytes\",\"type\":\"int\"},"
        "{\"name\":\"block_size_in_bytes\",\"type\":\"long\"},"
        "{\"name\":\"more\",\"type\":{\"type\":\"map\",\"values\":{\"type\":\"enum\",\"name\":\"en\",\"symbols\":[\"A\"]}}},"
        "{\"name\":\"partition\",\"type\":{\"type\":\"record\",\"name\":\"p\",\"fields\":[{\"name\":\"d\",\"type\":[{\"type\":\"int\",\"logicalType\":\"date\"},\"null\"]}]}},"
        "{\"name\":\"fx\",\"type\":{\"type\":\"fixed\",\"name\":\"f3\",\"size\":3}},"
        "{\"name\":\"fx2\",\"type\":[\"null\",\"f3\"]},"
        "{\"name\":\"lower_bounds\",\"type\":[{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"kv\",\"fields\":["
        "{\"name\":\"value\",\"type\":\"bytes\"},{\"name\":\"key\",\"type\":\"int\"}]}},\"null\"]},"
        "{\"name\":\"record_count\",\"type\":\"long\"},"
        "{\"name\":\"file_format\",\"type\":\"string\"},"
        "{\"name\":\"file_path\",\"type\":\"string\"}]}},"
        "{\"name\":\"snapshot_id\",\"type\":[\"long\",\"null\"]},"
        "{\"name\":\"status\",\"type\":\"int\"}]}";
    fz_buf b = {0}, file = {0};
    put_long(&b, 0), put_str(&b, "skip me");
    put_long(&b, 77), put_long(&b, 64);
    put_long(&b, -1), put_long(&b, 3), put_str(&b, "k"), put_long(&b, 0), put_long(&b, 0); /* a map block with its size */
    put_long(&b, 0), put_long(&b, 20712);
    fz_buf_puts(&b, "abc");
    put_long(&b, 1), fz_buf_puts(&b, "def");
    put_long(&b, 0), put_long(&b, 1), put_str(&b, "low"), put_long(&b, 3), put_long(&b, 0);
    put_long(&b, 5), put_str(&b, "PARQUET"), put_str(&b, "s3://a/b");
    put_long(&b, 1);
    put_long(&b, 0);
    container(&file, schema, 1, &b);
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_manifest_file mf = {.spec_id = 3, .sequence = 0, .added_snapshot_id = 99};
    const ice_entry *e;
    uint32_t n;
    must(ice_manifest_decode(a, file.data, file.len, &mf, NULL, NULL, &e, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_true(e->status == ICE_EXISTING && e->snapshot_id == 99 && e->sequence == 0 && e->file_sequence == 0);
    assert_true(e->file.file_size == 77 && e->file.record_count == 5 && e->file.spec_id == 3 && e->file.content == ICE_DATA);
    assert_string_equal(e->file.path, "s3://a/b");
    assert_true(e->file.partition.n == 1 && e->file.partition.v[0].kind == ICE_DATE && e->file.partition.v[0].i == 20712);
    assert_true(e->file.lower.n == 1 && e->file.lower.v[0].id == 3 && e->file.lower.v[0].v.n == 3);
    assert_null(e->file.upper.v);
    /* an existing entry never inherits a sequence number that is not 0 */
    mf.sequence = 4;
    must(ice_manifest_decode(a, file.data, file.len, &mf, NULL, NULL, &e, &n, &err), &err);
    assert_true(e->sequence == ICE_NONE && e->file_sequence == ICE_NONE && e->snapshot_id == 99);
    file.data[file.len - 1] ^= 1;
    assert_int_equal(ice_manifest_decode(a, file.data, file.len, &mf, NULL, NULL, &e, &n, &err), FZ_FATAL);
    assert_non_null(strstr(err.message, "sync marker"));
    fz_buf_free(&b);
    fz_buf_free(&file);
    fz_arena_free(a);
}

/* Sequence numbers are inherited by added entries only. */
static void inheritance(void **state) {
    (void)state;
    fz_arena *a = fz_arena_new();
    fz_error err;
    ice_metadata *m = load(T_META);
    const ice_type **types = ice_metadata_spec_types(a, m, m->spec);
    ice_entry in[3] = {{.status = ICE_ADDED, .snapshot_id = ICE_NONE, .sequence = ICE_NONE, .file_sequence = ICE_NONE},
                       {.status = ICE_EXISTING, .snapshot_id = 5, .sequence = 2, .file_sequence = 3},
                       {.status = ICE_DELETED, .snapshot_id = 6, .sequence = 1, .file_sequence = 1}};
    for (int i = 0; i < 3; i++)
        in[i].file = (ice_data_file){.path = "f", .format = "PARQUET", .record_count = 1, .file_size = 1, .sort_order_id = ICE_NONE, .partition = {0, NULL}};
    fz_buf b = {0};
    ice_manifest_file f;
    write_all(m, types, in, 3, 6, ICE_AVRO_DEFLATE, a, &b, &f);
    assert_true(f.min_sequence == 2 && f.added_files == 1 && f.existing_files == 1 && f.deleted_files == 1);
    f.sequence = 9;
    const ice_entry *e;
    uint32_t n;
    must(ice_manifest_decode(a, b.data, b.len, &f, m->spec, types, &e, &n, &err), &err);
    assert_true(e[0].sequence == 9 && e[0].file_sequence == 9 && e[0].snapshot_id == 6);
    assert_true(e[1].sequence == 2 && e[1].file_sequence == 3 && e[1].snapshot_id == 5);
    ice_manifest_writer *w = ice_manifest_writer_new(m->schema, m->spec, types, 0, 6, ICE_AVRO_NULL);
    in[1].sequence = ICE_NONE;
    assert_int_equal(ice_manifest_writer_add(w, &in[1], &err), FZ_FATAL);
    ice_manifest_writer_free(w);
    ice_metadata_free(m);
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* Cut short or with a byte changed: an error or other values, never more. (Sanitizers see the rest.) */
static void damaged(void **state) {
    (void)state;
    const char *paths[] = {PV_MANIFEST, T_MANIFEST, PV_LIST};
    for (int k = 0; k < 3; k++) {
        fz_buf b = {0};
        read_file(paths[k], &b);
        uint32_t rnd = 12345;
        int refused = 0;
        for (int i = 0; i < 3000; i++) {
            rnd = rnd * 1664525 + 1013904223;
            size_t n = b.len, at = rnd % b.len;
            uint8_t old = b.data[at];
            if (i % 3 == 0) n = at;
            else b.data[at] = (uint8_t)(rnd >> 24);
            fz_arena *a = fz_arena_new();
            fz_error err;
            const ice_entry *e;
            uint32_t count;
            ice_manifest_list l;
            uint8_t *copy = fz_malloc(n + 1);
            memcpy(copy, b.data, n);
            fz_status s = k == 2 ? ice_manifest_list_decode(a, copy, n, &l, &err) : ice_manifest_decode(a, copy, n, NULL, NULL, NULL, &e, &count, &err);
            assert_true(s == FZ_OK || s == FZ_FATAL);
            refused += s != FZ_OK;
            fz_free(copy);
            fz_arena_free(a);
            b.data[at] = old;
        }
        assert_true(refused > 1000);
        fz_buf_free(&b);
    }
}

/* A fixed partition value as Java writes it: behind its length, although the schema says otherwise. */
static void java_fixed(void **state) {
    (void)state;
    fz_buf b = {0};
    fz_arena *a = fz_arena_new();
    fz_error err;
    const ice_entry *e;
    uint32_t n;
    read_file(DIR "java_fixed_partition.avro", &b);
    must(ice_manifest_decode(a, b.data, b.len, NULL, NULL, NULL, &e, &n, &err), &err);
    assert_true(n == 1 && e->file.record_count == 11 && e->file.partition.n == 15);
    assert_true(fz_sv_eq(e->file.partition.v[9].s, FZ_SV("fx01")) && e->file.partition.v[11].dec == -129 && e->file.partition.v[14].i == -20714);
    fz_buf_free(&b);
    fz_arena_free(a);
}

/* Manifests of format versions 1 and 3 by Java; a v1 list says sequence number 0. */
static void other_versions(void **state) {
    (void)state;
    static const char *const paths[] = {DIR "java_manifest_v1.avro", DIR "java_manifest_v3.avro"};
    for (int i = 0; i < 2; i++) {
        fz_buf b = {0};
        fz_arena *a = fz_arena_new();
        fz_error err;
        ice_manifest_file f = {.sequence = i ? 6 : 0, .added_snapshot_id = 7};
        const ice_entry *e;
        uint32_t n;
        read_file(paths[i], &b);
        must(ice_manifest_decode(a, b.data, b.len, &f, NULL, NULL, &e, &n, &err), &err);
        assert_true(n == 1 && e->status == ICE_ADDED && e->snapshot_id == 7 && e->sequence == f.sequence && e->file.record_count == 11);
        assert_true(e->file.partition.v[0].kind == ICE_DATE && e->file.partition.v[0].i == 20000 && fz_sv_eq(e->file.partition.v[1].s, FZ_SV("x")));
        fz_buf_free(&b);
        fz_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(java_manifests), cmocka_unit_test(java_lists), cmocka_unit_test(partition_values),
                                       cmocka_unit_test(all_partition_types), cmocka_unit_test(avro_names), cmocka_unit_test(strange_writer),
                                       cmocka_unit_test(inheritance), cmocka_unit_test(java_fixed), cmocka_unit_test(other_versions), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
