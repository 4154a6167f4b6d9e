/* A compiled SimpleDateFormat pattern, and the calendar fields that parsing collects: shared by sdpattern.c and sdcalendar.c. */
#ifndef COL_SD_INT_H
#define COL_SD_INT_H
#include "col/sdpattern.h"

typedef enum {
    SF_ERA, SF_YEAR, SF_WEEK_YEAR, SF_MONTH, SF_DAY, SF_DAY_OF_YEAR, SF_DAY_OF_WEEK, SF_DOW_IN_MONTH, SF_WEEK, SF_WEEK_OF_MONTH,
    SF_AMPM, SF_HOUR, SF_HOUR_OF_DAY, SF_MINUTE, SF_SECOND, SF_MS, SF_ZONE, SF_COUNT
} sd_field;

/* Fields with the order in which they were set (0: not set): Calendar decides by it which ones count. Months from 0, Sunday is 1. */
typedef struct sd_calendar { int stamp[SF_COUNT], next; int32_t v[SF_COUNT]; } sd_calendar;
void sd_set(sd_calendar *c, sd_field f, int32_t v);
/* GregorianCalendar.getTimeInMillis, lenient. false: an era that there is not. */
bool sd_calendar_ms(const sd_calendar *c, const tz_zone *z, int64_t *ms);

/* All fields of a moment in a zone. */
typedef struct sd_moment { int64_t year, days; int32_t month, day, ms_of_day, offset; } sd_moment;
void sd_moment_of(int64_t ms, const tz_zone *z, sd_moment *out);
int64_t sd_day_of_year(const sd_moment *m);
int64_t sd_week(const sd_moment *m, int64_t *week_year);
#endif
