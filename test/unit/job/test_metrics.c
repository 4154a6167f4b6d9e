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

/* The table: legal names that are there once, the rule for Firehose's names, units that go with the kind. */
static void table_is_right(void **state) {
    (void)state;
    for (int i = 0; i < FZ_M_COUNT; i++) {
        const fz_metric_info *m = fz_metric_describe((fz_metric)i);
        assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(m->name));
        assert_true(*m->unit && *m->help && !strchr(m->help, '\\') && !strchr(m->help, '\n'));
        for (int k = 0; k < i; k++) assert_string_not_equal(m->name, fz_metric_describe((fz_metric)k)->name);
        if (m->origin) {
            char name[128];
            job_metric_name(m->origin, name, sizeof name);
            assert_string_equal(name, m->name);
            assert_true(fz_starts(m->help, m->origin) && m->help[strlen(m->origin)] == ':');
        } else {
            assert_true(fz_starts(m->name, "frazil_"));
            assert_int_equal(m->kind == FZ_METRIC_COUNTER, fz_ends(m->name, "_total"));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_become_legal), cmocka_unit_test(table_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
