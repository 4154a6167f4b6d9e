SET 'pipeline.name' = 'aws-syslog-authlog';
SET 'execution.runtime-mode' = 'streaming';
SET 'table.local-time-zone' = 'Asia/Tokyo';

CREATE CATALOG glue_prod WITH (
  'type' = 'iceberg',
  'catalog-type' = 'glue',
  'warehouse' = 's3://<YOUR_ICEBERG_BUCKET>/warehouse',
  'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO',
  'client.region' = 'ap-northeast-1'
);

CREATE TEMPORARY TABLE syslog_json (
  ts STRING,
  src_host STRING,
  program STRING,
  message STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'syslog',
  'properties.bootstrap.servers' = 'kafka1:9092,kafka2:9092,kafka3:9092',
  'properties.group.id' = 'aws-syslog-events-v1',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json',
  'json.ignore-parse-errors' = 'true'
);

CREATE TEMPORARY TABLE authlog_json (
  ts STRING,
  src_host STRING,
  program STRING,
  message STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'authlog',
  'properties.bootstrap.servers' = 'kafka1:9092,kafka2:9092,kafka3:9092',
  'properties.group.id' = 'aws-authlog-events-v1',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json',
  'json.ignore-parse-errors' = 'true'
);

STATEMENT SET BEGIN

INSERT INTO glue_prod.logs.syslog_events
SELECT
  ts AS ts_raw,
  CAST(TO_TIMESTAMP(SUBSTRING(ts, 1, 19), 'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)),
  TRIM(src_host),
  program,
  message,
  CAST(SUBSTRING(ts, 1, 10) AS DATE),
  CAST(SUBSTRING(ts, 12, 2) AS INT)
FROM syslog_json
WHERE src_host IS NOT NULL
  AND TRIM(src_host) <> ''
  AND ts IS NOT NULL;

INSERT INTO glue_prod.logs.authlog_events
SELECT
  ts AS ts_raw,
  CAST(TO_TIMESTAMP(SUBSTRING(ts, 1, 19), 'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)),
  TRIM(src_host),
  program,
  message,
  CAST(SUBSTRING(ts, 1, 10) AS DATE),
  CAST(SUBSTRING(ts, 12, 2) AS INT)
FROM authlog_json
WHERE src_host IS NOT NULL
  AND TRIM(src_host) <> ''
  AND ts IS NOT NULL;

END;
