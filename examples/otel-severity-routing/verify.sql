-- Only errors are in the tables: non_error_rows is 0 in both. The first query is Athena's, with its double quotes and count_if.
CREATE CATALOG glue WITH ('type' = 'iceberg', 'catalog-type' = 'glue', 'warehouse' = 's3://<YOUR_ICEBERG_BUCKET>/iceberg', 'client.region' = 'ap-northeast-1');
USE CATALOG glue;

SELECT count(*) AS total,
       count_if(severity_text IN ('ERROR','FATAL')) AS error_rows,
       count_if(severity_text NOT IN ('ERROR','FATAL')) AS non_error_rows
FROM "otel_log_pipeline_dev_logs"."errors";

SELECT count(*) AS total,
       count_if(severity_text IN ('ERROR','FATAL')) AS error_rows,
       count_if(severity_text NOT IN ('ERROR','FATAL')) AS non_error_rows
FROM "s3tablescatalog/<YOUR_TABLE_BUCKET>"."otel_log_pipeline_dev"."error_logs";
