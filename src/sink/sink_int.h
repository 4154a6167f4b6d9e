/* Inside the sink room: the read-only description of a target. */
#ifndef SINK_INT_H
#define SINK_INT_H
#include "parquet/parquet.h"
#include "sink/sink.h"

struct sink_table {
    fz_arena *arena;
    fio *io;
    const ice_metadata *meta;
    const ice_schema *schema;
    const ice_spec *spec;
    const ice_type *const *spec_types;
    const col_schema *cols;
    pq_field *fields;         /* by cols */
    pq_options options;
    int64_t target_file_size;
    fz_pair key_values[1];    /* iceberg.schema */
    char *run_id;
    uint32_t index;
};
#endif
