CREATE CATALOG glue_prod WITH (
  'type' = 'iceberg',
  'catalog-type' = 'glue',
  'warehouse' = 's3://<YOUR_ICEBERG_BUCKET>/warehouse',
  'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO',
  'client.region' = 'ap-northeast-1'
);

SHOW DATABASES IN glue_prod;
