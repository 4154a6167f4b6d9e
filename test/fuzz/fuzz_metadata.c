/* Fuzz target of table metadata: any bytes are metadata or an error, never a crash. What is read is written again and must read back the same;
 * lineages end, and a change on top of it gives metadata that reads back, too.
 * With -DFUZZ_REPLAY it is a program that runs the files named on its command line through the target. */
#include "iceberg/iceberg.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const ice_metadata *m) {
    fz_buf b = {0};
    fz_error err;
    ice_metadata *again;
    if (ice_metadata_encode(m, &b, &err) == FZ_OK) {
        if (ice_metadata_parse(b.data, b.len, &again, &err) != FZ_OK || !json_equal((json_t *)(uintptr_t)m->root, (json_t *)(uintptr_t)again->root)) abort();
        ice_metadata_free(again);
    }
    fz_buf_free(&b);
}

static void walk(const ice_metadata *m) {
    for (uint32_t i = 0; i < m->n_snapshots; i++) {
        bool cut;
        uint32_t steps = 0;
        for (const ice_snapshot *s = &m->snapshots[i]; s; s = ice_snapshot_parent(m, s, &cut))
            if (steps++ > m->n_snapshots) abort();
    }
}

static void change(const ice_metadata *m) {
    fz_error err;
    ice_metadata *n;
    ice_changes c = ice_changes_new();
    const fz_pair p = {.key = "k", .value = "v"};
    const ice_snapshot s = {.id = 77, .parent_id = m->current_snapshot_id, .sequence = m->last_sequence_number + 1, .timestamp_ms = m->last_updated_ms,
                            .schema_id = ICE_NONE, .manifest_list = "x", .operation = "append"};
    ice_update_set_properties(&c, &p, 1);
    ice_update_add_snapshot(&c, &s);
    ice_update_ref(&c, "main", 77);
    if (ice_metadata_apply(m, &c, 5, "prev", &n, NULL, &err) == FZ_OK) {
        read_back(n);
        ice_metadata_free(n);
    }
    ice_changes_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ice_metadata *m;
    fz_error err;
    if (ice_metadata_parse(data, size, &m, &err) != FZ_OK) return 0;
    fz_arena *a = fz_arena_new();
    col_schema *cols;
    read_back(m);
    walk(m);
    change(m);
    (void)!ice_metadata_writable(m, &err);
    (void)!ice_schema_to_cols(a, m->schema, &cols, &err);
    (void)ice_metrics_config(a, m);
    for (uint32_t i = 0; i < m->n_specs; i++) (void)ice_metadata_spec_types(a, m, m->specs[i]);
    (void)ice_data_file_location(a, m, "p=1", "f.parquet");
    fz_arena_free(a);
    ice_metadata_free(m);
    return 0;
}

#include "replay.h"
