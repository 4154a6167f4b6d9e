/* Names of months, days, eras and parts of the day in English (CLDR, as Java's default locale here has them), and weeks. */
#include "col/dt_int.h"

static const char *const month_short[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const month_full[] = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};
static const char *const month_narrow[] = {"J", "F", "M", "A", "M", "J", "J", "A", "S", "O", "N", "D"};
static const char *const day_short[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const char *const day_full[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
static const char *const day_narrow[] = {"M", "T", "W", "T", "F", "S", "S"};
static const char *const quarter_short[] = {"Q1", "Q2", "Q3", "Q4"};
static const char *const quarter_full[] = {"1st quarter", "2nd quarter", "3rd quarter", "4th quarter"};
static const char *const quarter_narrow[] = {"1", "2", "3", "4"};
static const char *const era_short[] = {"BC", "AD"};
static const char *const era_full[] = {"Before Christ", "Anno Domini"};
static const char *const era_narrow[] = {"B", "A"};
static const char *const ampm[] = {"AM", "PM"};
static const char *const period[] = {"midnight", "noon", "in the morning", "in the afternoon", "in the evening", "at night"};
static const char *const period_narrow[] = {"mi", "n", "in the morning", "in the afternoon", "in the evening", "at night"};

const char *const *dt_names(dt_field f, dt_style s, uint32_t *n) {
    switch (f) {
    case DF_MONTH: *n = 12; return s == DT_SHORT ? month_short : s == DT_FULL ? month_full : month_narrow;
    case DF_DAY_OF_WEEK: *n = 7; return s == DT_SHORT ? day_short : s == DT_FULL ? day_full : day_narrow;
    case DF_QUARTER: *n = 4; return s == DT_SHORT ? quarter_short : s == DT_FULL ? quarter_full : quarter_narrow;
    case DF_ERA: *n = 2; return s == DT_SHORT ? era_short : s == DT_FULL ? era_full : era_narrow;
    case DF_AMPM: *n = 2; return ampm;
    case DF_PERIOD: *n = 6; return s == DT_NARROW ? period_narrow : period;
    default: *n = 0; return NULL;
    }
}

int64_t dt_name_value(dt_field f, uint32_t i) { return f == DF_MONTH || f == DF_DAY_OF_WEEK || f == DF_QUARTER ? i + 1 : i; }

uint32_t dt_period_of(int minute) {
    if (minute == 0) return 0;
    if (minute == 720) return 1;
    if (minute < 360 || minute >= 1260) return 5;
    return minute < 720 ? 2 : minute < 1080 ? 3 : 4;
}

int64_t dt_local_dow(int64_t days) { return dt_floor_mod(days + 4, 7) + 1; }

/* Week of a day's ordinal in its month or year, where the first day is in week 1. */
static int64_t week_of(int64_t ordinal, int64_t dow) { return (ordinal + 6 + dt_floor_mod(dow - ordinal, 7)) / 7; }

int64_t dt_week_of_month(int64_t days) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    return week_of(d, dt_local_dow(days));
}

int64_t dt_week_of_year(int64_t days, int64_t *week_year) {
    int32_t y, m, d;
    dt_date_of(days, &y, &m, &d);
    *week_year = y;
    int64_t next = dt_days_of((int64_t)y + 1, 1, 1);
    if (days - dt_local_dow(days) + 7 >= next) { /* Saturday of this week is in the next year */
        *week_year = (int64_t)y + 1;
        return 1;
    }
    return week_of(days - dt_days_of(y, 1, 1) + 1, dt_local_dow(days));
}
