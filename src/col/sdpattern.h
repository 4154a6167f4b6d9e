/* Patterns of java.text.SimpleDateFormat (US names, lenient, Julian calendar before 1582-10-15), compiled once and used many times:
 * UNIX_TIMESTAMP, FROM_UNIXTIME, TO_DATE(s, pattern), CONVERT_TZ and DATE_FORMAT(string, pattern) are made of it in Flink.
 *
 * Letters: G y Y M L w W D d F E u a H k K h m s S z Z X, literals, quotes.
 * Threads: a compiled pattern is read-only and may be shared.
 */
#ifndef COL_SDPATTERN_H
#define COL_SDPATTERN_H
#include "base/base.h"
#include "col/tz.h"

typedef struct sd_pattern sd_pattern;
/* USER "datetime.pattern" when the pattern is wrong. The caller frees it. */
fz_status sd_pattern_new(fz_sv text, sd_pattern **out, fz_error *err) FZ_MUST_USE;
void sd_pattern_free(sd_pattern *p);
/* A copy that lives in an arena and must not be freed. */
const sd_pattern *sd_pattern_copy(fz_arena *a, const sd_pattern *p);
/* Parses the beginning of s (what follows is ignored, as in Java) in a zone; milliseconds since the epoch. */
bool sd_pattern_parse(const sd_pattern *p, fz_sv s, const tz_zone *z, int64_t *ms);
/* TO_DATE(s, pattern): days; a text that cannot be parsed gives the strange day that Flink gives. */
int32_t sd_to_date(const sd_pattern *p, fz_sv s);
void sd_pattern_format(const sd_pattern *p, int64_t ms, const tz_zone *z, fz_buf *out);

/* Days since the epoch of a date in the Julian calendar before 1582-10-15, the Gregorian one after it; months and days may be out of range. */
int64_t sd_days_of(int64_t year, int64_t month, int64_t day);
void sd_date_of(int64_t days, int64_t *year, int32_t *month, int32_t *day);
#endif
