/* OTLP logs: numbers of the fields that the door and the decoder read, and the context of a spooled log record.
 *
 * A record's context is a message of our own: the Resource (its bytes; repeated: to be merged), the URL of its schema, the InstrumentationScope, the URL of its schema.
 * Source: opentelemetry-proto 1.9 (collector/logs/v1, logs/v1, resource/v1, common/v1).
 */
#ifndef FZ_OTLP_H
#define FZ_OTLP_H

enum otlp_request_field { OTLP_REQUEST_RESOURCE_LOGS = 1 };
enum otlp_resource_logs_field { OTLP_RESOURCE_LOGS_RESOURCE = 1, OTLP_RESOURCE_LOGS_SCOPE_LOGS = 2, OTLP_RESOURCE_LOGS_SCHEMA_URL = 3 };
enum otlp_scope_logs_field { OTLP_SCOPE_LOGS_SCOPE = 1, OTLP_SCOPE_LOGS_RECORDS = 2, OTLP_SCOPE_LOGS_SCHEMA_URL = 3 };
enum otlp_resource_field { OTLP_RESOURCE_ATTRIBUTES = 1, OTLP_RESOURCE_DROPPED = 2 };
enum otlp_scope_field { OTLP_SCOPE_NAME = 1, OTLP_SCOPE_VERSION = 2, OTLP_SCOPE_ATTRIBUTES = 3, OTLP_SCOPE_DROPPED = 4 };
enum otlp_record_field {
    OTLP_RECORD_TIME = 1, OTLP_RECORD_SEVERITY_NUMBER = 2, OTLP_RECORD_SEVERITY_TEXT = 3, OTLP_RECORD_BODY = 5, OTLP_RECORD_ATTRIBUTES = 6, OTLP_RECORD_DROPPED = 7,
    OTLP_RECORD_FLAGS = 8, OTLP_RECORD_TRACE_ID = 9, OTLP_RECORD_SPAN_ID = 10, OTLP_RECORD_OBSERVED_TIME = 11, OTLP_RECORD_EVENT_NAME = 12
};
enum otlp_key_value_field { OTLP_KEY = 1, OTLP_VALUE = 2 };
enum otlp_any_field { OTLP_ANY_STRING = 1, OTLP_ANY_BOOL = 2, OTLP_ANY_INT = 3, OTLP_ANY_DOUBLE = 4, OTLP_ANY_ARRAY = 5, OTLP_ANY_KVLIST = 6, OTLP_ANY_BYTES = 7 };
enum otlp_list_field { OTLP_LIST_VALUES = 1 }; /* of ArrayValue and KeyValueList */
enum otlp_context_field { OTLP_CONTEXT_RESOURCE = 1, OTLP_CONTEXT_RESOURCE_SCHEMA_URL = 2, OTLP_CONTEXT_SCOPE = 3, OTLP_CONTEXT_SCOPE_SCHEMA_URL = 4 };

#define OTLP_MAX_DEPTH 64u     /* of values within values */
#define OTLP_TRACE_ID 16u      /* bytes */
#define OTLP_SPAN_ID 8u
#endif
