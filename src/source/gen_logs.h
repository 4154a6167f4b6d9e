/* Made-up logs for demonstrations and load: OpenTelemetry log records of six severities, and syslog and authlog records as the examples read them.
 * The same seed, start and step give the same bytes. Threads: a src_gen belongs to one. */
#ifndef SRC_GEN_LOGS_H
#define SRC_GEN_LOGS_H
#include "base/base.h"

typedef enum { SRC_GEN_OTEL, SRC_GEN_SYSLOG, SRC_GEN_AUTHLOG } src_gen_kind;
bool src_gen_kind_parse(const char *name, src_gen_kind *out); /* "otel", "syslog", "authlog" */
typedef struct src_gen { src_gen_kind kind; uint64_t state; } src_gen;
src_gen src_gen_new(src_gen_kind kind, uint64_t seed);
/* Appends one JSON document without a line feed. at_ms: its time. */
void src_gen_record(src_gen *g, int64_t at_ms, fz_buf *out);
#endif
