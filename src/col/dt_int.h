/* What the files of dates and times share: compiled java.time patterns, names, Java's 32-bit day number. */
#ifndef COL_DT_INT_H
#define COL_DT_INT_H
#include "col/datetime.h"
#include "col/dtpattern.h"

typedef enum {
    DF_ERA, DF_YEAR, DF_YEAR_OF_ERA, DF_QUARTER, DF_MONTH, DF_DAY, DF_DAY_OF_YEAR, DF_DAY_OF_WEEK, DF_ALIGNED_DAY, DF_MJD,
    DF_LOCAL_DOW, DF_WEEK_OF_MONTH, DF_WEEK, DF_WEEK_YEAR,
    DF_HOUR, DF_MINUTE, DF_SECOND, DF_NANO, DF_MILLI_OF_DAY, DF_NANO_OF_DAY, DF_AMPM, DF_HOUR_OF_AMPM, DF_CLOCK_HOUR_OF_AMPM, DF_CLOCK_HOUR,
    DF_PERIOD, DF_OFFSET, DF_COUNT
} dt_field;

typedef enum { DN_LITERAL, DN_NUMBER, DN_REDUCED, DN_FRACTION, DN_TEXT, DN_OFFSET, DN_LOCAL_OFFSET, DN_ZONE, DN_OPTION, DN_OPTION_END } dt_node_kind;
typedef enum { DS_NORMAL, DS_EXCEEDS_PAD, DS_NOT_NEGATIVE } dt_sign;
typedef enum { DT_SHORT, DT_FULL, DT_NARROW } dt_style;

typedef struct dt_node {
    dt_node_kind kind;
    dt_field field;
    int min, max, following; /* NUMBER, REDUCED, FRACTION: widths; digits of the fixed fields that follow without a break */
    dt_sign sign;
    bool point;              /* FRACTION: with a decimal point */
    dt_style style;          /* TEXT */
    int offset_type;         /* OFFSET: index into Java's table of forms */
    const char *no_offset;   /* OFFSET: text of zero */
    uint32_t at, n;          /* LITERAL: bytes in the pattern's text */
    uint32_t end;            /* OPTION: index of its OPTION_END */
    int pad;                 /* width, blanks to the left; 0: none */
} dt_node;

struct dt_pattern {
    uint32_t n, cap;
    dt_node *v;
    fz_buf text;             /* of literals */
    int fast;                /* bytes of the fixed form, 0 when there is none: digits and literals only, see dtparse.c */
};

/* Names in English; NULL where the field has none in this style. n: how many, from index 0. */
const char *const *dt_names(dt_field f, dt_style s, uint32_t *n);
/* Value of name i: months, quarters and days of the week count from 1. */
int64_t dt_name_value(dt_field f, uint32_t i);
/* Index into the names of DF_PERIOD for a minute of the day. */
uint32_t dt_period_of(int minute);

/* Weeks that begin on Sunday, the first holding January 1st. */
int64_t dt_local_dow(int64_t days);
int64_t dt_week_of_month(int64_t days);
int64_t dt_week_of_year(int64_t days, int64_t *week_year);

/* Flink's default timestamp form, compiled once. Thread: any. */
const dt_pattern *dt_pattern_default(void);
/* Whether the year leaves room for microseconds in 64 bits. */
bool dt_us_fits(const dt_fields *f);
/* Flink's day number of a date, in 32 bits with Java's wrap-around: for years far out of range. */
int32_t dt_java_days(int32_t year, int32_t month, int32_t day);
#endif
