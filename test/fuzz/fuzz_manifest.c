/* Fuzz target of the Avro readers: any bytes are a manifest, a manifest list, or an error, never a crash. What is read as a list is written
 * again and must read back the same.
 * With -DFUZZ_REPLAY it is a program that runs the files named on its command line through the target. */
#include "iceberg/iceberg.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void manifest(fz_arena *a, const uint8_t *data, size_t size, const ice_manifest_file *file, const ice_spec *spec, const ice_type *const *types) {
    const ice_entry *e;
    uint32_t n;
    fz_error err;
    if (ice_manifest_decode(a, data, size, file, spec, types, &e, &n, &err) != FZ_OK) return;
    uint64_t h = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!e[i].file.path || !e[i].file.format || (spec && e[i].file.partition.n != spec->n_fields)) abort();
        h ^= ice_tuple_hash(e[i].file.partition) + fz_hash(e[i].file.path, strlen(e[i].file.path));
    }
    __asm__ volatile("" : : "r"(h));
}

static void list(fz_arena *a, const uint8_t *data, size_t size) {
    ice_manifest_list l, again;
    fz_error err;
    fz_buf b = {0};
    if (ice_manifest_list_decode(a, data, size, &l, &err) == FZ_OK && ice_manifest_list_encode(&l, 1, ICE_NONE, 1, ICE_AVRO_DEFLATE, &b, &err) == FZ_OK)
        if (ice_manifest_list_decode(a, b.data, b.len, &again, &err) != FZ_OK || again.n != l.n) abort();
    fz_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const ice_spec_field fields[] = {{.source_id = 3, .field_id = 1000, .name = "dt", .transform = {.text = "identity"}},
                                            {.source_id = 2, .field_id = 1001, .name = "host", .transform = {.text = "identity"}}};
    static const ice_spec spec = {.n_fields = 2, .fields = fields};
    const ice_type *types[] = {ice_type_simple(ICE_DATE), ice_type_simple(ICE_STRING)};
    const ice_manifest_file file = {.sequence = 3, .added_snapshot_id = 4};
    fz_arena *a = fz_arena_new();
    manifest(a, data, size, NULL, NULL, NULL);
    manifest(a, data, size, &file, &spec, types);
    list(a, data, size);
    fz_arena_free(a);
    return 0;
}

#include "replay.h"
