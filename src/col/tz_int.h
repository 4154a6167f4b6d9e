/* What a time zone is made of: shared by tz.c (ids, offsets) and tzfile.c (reading). */
#ifndef COL_TZ_INT_H
#define COL_TZ_INT_H
#include "col/tz.h"

typedef struct tz_type { int32_t offset; bool dst; char name[8]; } tz_type;
/* When a yearly rule takes effect, in POSIX terms: kind M (month, week, day of the week), J (day of the year without February 29th), N (from 0). */
typedef struct tz_when { char kind; int month, week, day; int32_t time; } tz_when;

struct tz_zone {
    struct tz_zone *next;
    char *id;
    bool lenient;          /* found by the rules of java.util.TimeZone */
    uint32_t n;            /* transitions, ascending */
    int64_t *at;           /* instants from which type[i] holds */
    tz_type *type;
    tz_type first;         /* before at[0] */
    bool has_rule, has_dst;/* after at[n - 1]: std, and dst between start and end */
    tz_type std, dst;
    tz_when start, end;
};

/* Reads a TZif file (RFC 8536, version 2 and up). false: not there, or not well formed. */
bool tz_file_read(const char *path, tz_zone *z);
void tz_zone_clear(tz_zone *z);
/* The type that the yearly rule gives for an instant. */
const tz_type *tz_rule_type(const tz_zone *z, int64_t utc_s);
#endif
