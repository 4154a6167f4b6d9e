-- OpenTelemetry logs from Fluent Bit (or any client of the forward protocol), routed by severity, in one process:
--   every record          -> gzip archive on S3
--   ERROR and FATAL only  -> CloudWatch Logs, an Iceberg table on Glue, an Iceberg table in a table bucket (S3 Tables)
-- Records are safe on disk before their sender is told so; each delivery has its own buffer, position and retries.
SET 'pipeline.name' = 'otel-log-pipeline';
SET 'execution.checkpointing.interval' = '60 s';
SET 'metrics.port' = '9464';

CREATE CATALOG glue WITH (
  'type' = 'iceberg',
  'catalog-type' = 'glue',
  'warehouse' = 's3://<YOUR_ICEBERG_BUCKET>/iceberg',
  'client.region' = 'ap-northeast-1'
);
CREATE DATABASE IF NOT EXISTS glue.otel_log_pipeline_dev_logs;
CREATE TABLE IF NOT EXISTS glue.otel_log_pipeline_dev_logs.errors (
  ts TIMESTAMP(3), severity_text STRING, severity_number INT, body STRING, service STRING, trace_id STRING, span_id STRING
) WITH ('format-version' = '2');

CREATE DATABASE IF NOT EXISTS `s3tablescatalog/<YOUR_TABLE_BUCKET>`.otel_log_pipeline_dev;
CREATE TABLE IF NOT EXISTS `s3tablescatalog/<YOUR_TABLE_BUCKET>`.otel_log_pipeline_dev.error_logs (
  ts TIMESTAMP(3), severity_text STRING, severity_number INT, body STRING, service STRING, trace_id STRING, span_id STRING
);

CREATE TEMPORARY TABLE otel_logs (
  `timestamp` STRING,
  severityText STRING,
  severityNumber INT,
  body STRING,
  resource MAP<STRING, STRING>,
  attributes MAP<STRING, STRING>,
  traceId STRING,
  spanId STRING
) WITH (
  'connector' = 'forward',
  'listen' = '127.0.0.1:24224'
);

CREATE TEMPORARY TABLE archive (
  `timestamp` STRING, severityText STRING, severityNumber INT, body STRING, resource MAP<STRING, STRING>, attributes MAP<STRING, STRING>, traceId STRING, spanId STRING
) WITH (
  'connector' = 'firehose-s3',
  'path' = 's3://<YOUR_ARCHIVE_BUCKET>/full-logs/',
  'error.path' = 'full-logs-errors/',
  'buffer.interval' = '300 s',
  'buffer.size' = '5 MiB',
  'compression' = 'GZIP'
);

CREATE TEMPORARY TABLE alarms (
  severityText STRING, body STRING, resource MAP<STRING, STRING>, traceId STRING
) WITH (
  'connector' = 'cloudwatch-logs',
  'log-group' = '/otel-log-pipeline-dev/errors',
  'log-stream' = 'frazil',
  'auto-create' = 'true'
);

STATEMENT SET BEGIN

INSERT INTO archive SELECT * FROM otel_logs;

INSERT INTO alarms
SELECT severityText, body, resource, traceId FROM otel_logs WHERE severityText IN ('ERROR', 'FATAL');

INSERT INTO glue.otel_log_pipeline_dev_logs.errors
SELECT TO_TIMESTAMP(SUBSTRING(`timestamp`, 1, 23), 'yyyy-MM-dd''T''HH:mm:ss.SSS'), severityText, severityNumber, body, resource['service.name'], traceId, spanId
FROM otel_logs WHERE severityText IN ('ERROR', 'FATAL');

INSERT INTO `s3tablescatalog/<YOUR_TABLE_BUCKET>`.otel_log_pipeline_dev.error_logs
SELECT TO_TIMESTAMP(SUBSTRING(`timestamp`, 1, 23), 'yyyy-MM-dd''T''HH:mm:ss.SSS'), severityText, severityNumber, body, resource['service.name'], traceId, spanId
FROM otel_logs WHERE severityText IN ('ERROR', 'FATAL');

END;
