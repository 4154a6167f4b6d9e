/* Dates and times: calendar arithmetic, Flink's default text forms, the units of EXTRACT, FLOOR and CEIL. Pure functions on single values.
 * Patterns stand in dtpattern.h (java.time) and sdpattern.h (SimpleDateFormat), zones in tz.h.
 *
 * Invariants
 *  1. Timestamps are microseconds since 1970-01-01T00:00:00, dates days since 1970-01-01, times milliseconds of the day.
 *  2. The calendar is the proleptic Gregorian one, year 0 included, unless a function says otherwise.
 *  3. Functions named after a Flink operation give Flink's answer also where it is peculiar (times before 1970, years before 1582).
 * Threads: any. Source: Flink 2.0.1 (behaviour), java.time.
 */
#ifndef COL_DATETIME_H
#define COL_DATETIME_H
#include "base/base.h"

#define DT_US_PER_SECOND 1000000LL
#define DT_US_PER_DAY 86400000000LL
#define DT_MS_PER_DAY 86400000LL
#define DT_TEXT_MAX 48

typedef struct dt_fields {
    int32_t year;
    int32_t month, day;               /* from 1 */
    int32_t hour, minute, second, nano;
} dt_fields;

int64_t dt_days_of(int64_t year, int month, int day);            /* any year; the day may exceed the month */
void dt_date_of(int64_t days, int32_t *year, int32_t *month, int32_t *day);
int dt_month_length(int64_t year, int month);
bool dt_is_leap(int64_t year);
void dt_fields_of(int64_t us, dt_fields *out);
int64_t dt_us_of(const dt_fields *f);                            /* nanoseconds are cut to microseconds */
int64_t dt_floor_div(int64_t a, int64_t b);
int64_t dt_floor_mod(int64_t a, int64_t b);
/* Cuts to the precision (0..6), downwards. */
int64_t dt_cut(int64_t us, int precision);

/* Flink's default timestamp text: yyyy-[MM|M]-[dd|d][ HH:mm:ss[.fraction]]; 02-30 becomes 02-28, 24:00:00 the next day. Cut to the precision
 * (0..6; 9: nothing is cut but the nanoseconds). */
bool dt_parse_timestamp(fz_sv s, int precision, int64_t *us);
/* Flink's CAST(string AS DATE) and TO_DATE: what follows the first blank is ignored; month and day may be absent. */
typedef enum { DT_OK, DT_NONE, DT_OVERFLOW /* Java throws NumberFormatException, TRY_CAST and TO_DATE included or not: the caller decides */ } dt_status;
dt_status dt_parse_date(fz_sv s, int32_t *days);
/* Flink's CAST(string AS TIME): h[:m[:s[.fff]]] with an offset; no range checks, 32-bit wrap-around as in Java. */
dt_status dt_parse_time(fz_sv s, int32_t *ms);

/* Flink's JSON format (json.timestamp-format.standard). */
bool dt_parse_json_timestamp(fz_sv s, bool iso, int64_t *us);           /* SQL "2026-09-16 12:34:56.123", ISO "2026-09-16T12:34:56.123" */
bool dt_parse_json_timestamp_ltz(fz_sv s, bool iso, int64_t *us);       /* the same with a "Z" at the end; UTC */
bool dt_parse_json_date(fz_sv s, int32_t *days);                        /* ISO_LOCAL_DATE, strict */
bool dt_parse_json_time(fz_sv s, int32_t *ms);                          /* HH:mm:ss[.fraction], cut to seconds as Flink does */

/* Text as Flink's CAST(x AS STRING) has it; no NUL, the length is returned. Years are the last four digits of the year, as in Flink.
 * Timestamps: `precision` digits of fraction. Times: fraction only where precision > 0, no trailing zeros but one. */
size_t dt_timestamp_text(int64_t us, int precision, char out[DT_TEXT_MAX]);
size_t dt_date_text(int32_t days, char out[DT_TEXT_MAX]);
size_t dt_time_text(int32_t ms, int precision, char out[DT_TEXT_MAX]);
size_t dt_interval_month_text(int32_t months, char out[DT_TEXT_MAX]);   /* "+1-02" */
size_t dt_interval_day_text(int64_t ms, char out[DT_TEXT_MAX]);         /* "+1 02:03:04.005" */

typedef enum {
    DT_U_MILLENNIUM, DT_U_CENTURY, DT_U_DECADE, DT_U_YEAR, DT_U_ISOYEAR, DT_U_QUARTER, DT_U_MONTH, DT_U_WEEK, DT_U_DOY, DT_U_DOW, DT_U_ISODOW,
    DT_U_DAY, DT_U_HOUR, DT_U_MINUTE, DT_U_SECOND, DT_U_MILLISECOND, DT_U_MICROSECOND, DT_U_NANOSECOND, DT_U_EPOCH, DT_U_NONE
} dt_unit;
/* "YEAR", "SQL_TSI_YEAR", "DOW"...; any case. DT_U_NONE: no unit. */
dt_unit dt_unit_of(fz_sv name);
/* EXTRACT. Of timestamps, dates, times (ms) and intervals (months; ms). false: Flink has no such combination. */
bool dt_extract_timestamp(dt_unit u, int64_t us, int64_t *out);
bool dt_extract_date(dt_unit u, int32_t days, int64_t *out);
bool dt_extract_time(dt_unit u, int32_t ms, int64_t *out);
bool dt_extract_interval_month(dt_unit u, int32_t months, int64_t *out);
bool dt_extract_interval_day(dt_unit u, int64_t ms, int64_t *out);
/* FLOOR and CEIL of a timestamp, a date, a time. false: not a unit for it. */
bool dt_round_timestamp(dt_unit u, bool up, int64_t us, int64_t *out);
bool dt_round_date(dt_unit u, bool up, int32_t days, int32_t *out);
bool dt_round_time(dt_unit u, bool up, int32_t ms, int32_t *out);
/* Adds months; the day is held within the month. */
int64_t dt_add_months(int64_t us, int32_t months);
int32_t dt_add_months_date(int32_t days, int32_t months);
/* Whole months from b to a (a - b), as TIMESTAMPDIFF(MONTH, b, a). */
int32_t dt_months_between(int64_t a_us, int64_t b_us);
int32_t dt_months_between_dates(int32_t a, int32_t b);
/* CAST(timestamp AS DATE) and AS TIME. */
int32_t dt_timestamp_to_date(int64_t us);
int32_t dt_timestamp_to_time(int64_t us);
#endif
