/* Firehose's names as Prometheus takes them: all ten that Firehose has for Iceberg, and those of objects. */
#include "job/metrics.h"
#include "unit.h"

static void names_become_legal(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"DeliveryToIceberg.ActivePartitionsCount", "firehose_delivery_to_iceberg_active_partitions_count"},
        {"DeliveryToIceberg.Bytes", "firehose_delivery_to_iceberg_bytes"},
        {"DeliveryToIceberg.DataFreshness", "firehose_delivery_to_iceberg_data_freshness"},
        {"DeliveryToIceberg.FailedRowCount", "firehose_delivery_to_iceberg_failed_row_count"},
        {"DeliveryToIceberg.IncomingRowCount", "firehose_delivery_to_iceberg_incoming_row_count"},
        {"DeliveryToIceberg.Success", "firehose_delivery_to_iceberg_success"},
        {"DeliveryToIceberg.SuccessfulRowCount", "firehose_delivery_to_iceberg_successful_row_count"},
        {"DeliveryToIceberg.TableCount", "firehose_delivery_to_iceberg_table_count"},
        {"DeliveryToIceberg.WriteAttemptSuccess", "firehose_delivery_to_iceberg_write_attempt_success"},
        {"JQProcessing.Duration", "firehose_jq_processing_duration"},
        {"DeliveryToS3.DataFreshness", "firehose_delivery_to_s3_data_freshness"},
        {"IncomingRecords", "firehose_incoming_records"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char name[128];
        job_metric_name(pairs[i][0], name, sizeof name);
        assert_string_equal(name, pairs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_become_legal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
