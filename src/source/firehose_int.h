/* Inside the firehose connector: the body of a call. */
#ifndef SRC_FIREHOSE_INT_H
#define SRC_FIREHOSE_INT_H
#include "source/spooled.h"
#include <jansson.h>

/* AWS's limits of a call (API reference of PutRecordBatch). */
enum { FH_MOST_RECORDS = 500, FH_MOST_RECORD = 1000 << 10, FH_MOST_CALL = 4 << 20 };

/* ---- firehose_body.c: bytes alone ---- */

/* A call's body, which must be a JSON object. USER with AWS's name of the error as the code: SerializationException. The caller's to json_decref. */
fz_status fh_parse(const void *body, size_t n, json_t **out, fz_error *err) FZ_MUST_USE;
/* A text member. *out NULL: it is not there, or null. SerializationException: it is something else. */
fz_status fh_text(const json_t *o, const char *name, const char **out, fz_error *err) FZ_MUST_USE;
/* The records of PutRecord (one) and PutRecordBatch, decoded, each without one newline at its end. SerializationException, InvalidArgumentException. */
fz_status fh_record(const json_t *call, src_frame *out, fz_error *err) FZ_MUST_USE;
fz_status fh_records(const json_t *call, src_frame *out, fz_error *err) FZ_MUST_USE;
#endif
