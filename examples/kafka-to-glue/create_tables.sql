CREATE CATALOG glue_prod WITH (
  'type' = 'iceberg',
  'catalog-type' = 'glue',
  'warehouse' = 's3://<YOUR_ICEBERG_BUCKET>/warehouse',
  'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO',
  'client.region' = 'ap-northeast-1'
);

CREATE DATABASE IF NOT EXISTS glue_prod.logs;

CREATE TABLE IF NOT EXISTS glue_prod.logs.syslog_events (
  ts_raw STRING,
  ts TIMESTAMP(6),
  host STRING,
  program STRING,
  msg STRING,
  dt DATE,
  hr INT
)
PARTITIONED BY (dt, host)
WITH (
  'format-version' = '2',
  'write.distribution-mode' = 'hash',
  'write.parquet.compression-codec' = 'zstd',
  'location' = 's3://<YOUR_ICEBERG_BUCKET>/warehouse/logs/syslog_events'
);

CREATE TABLE IF NOT EXISTS glue_prod.logs.authlog_events (
  ts_raw STRING,
  ts TIMESTAMP(6),
  host STRING,
  program STRING,
  msg STRING,
  dt DATE,
  hr INT
)
PARTITIONED BY (dt, host)
WITH (
  'format-version' = '2',
  'write.distribution-mode' = 'hash',
  'write.parquet.compression-codec' = 'zstd',
  'location' = 's3://<YOUR_ICEBERG_BUCKET>/warehouse/logs/authlog_events'
);
