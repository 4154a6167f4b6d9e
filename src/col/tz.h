/* Time zones: IANA zones from the system's TZif files, fixed offsets, and the two ways in which Java resolves local times.
 *
 * Invariants
 *  1. A zone is immutable once found and lives as long as the process; the cache grows with the distinct ids asked for that exist.
 *  2. Offsets are seconds east of UTC.
 * Threads: any (the cache has a lock; hold on to the pointer in hot paths).
 * Source: RFC 8536 (TZif); Java's ZoneId.of, ZoneRules and java.util.TimeZone for ids and for gaps and overlaps.
 */
#ifndef COL_TZ_H
#define COL_TZ_H
#include "base/base.h"

typedef struct tz_zone tz_zone;

/* ZoneId.of: "Z", "+9", "+09:00", "UTC+9", "GMT+09:00", "UT-3", "Asia/Tokyo". NULL: no such zone. */
const tz_zone *tz_find(fz_sv id);
/* TimeZone.getTimeZone: IANA ids, the short ids ("JST", "PST"), "GMT+9", "GMT-0330"; everything else is GMT. Never NULL. */
const tz_zone *tz_find_lenient(fz_sv id);
const tz_zone *tz_utc(void);
const char *tz_id(const tz_zone *z);
bool tz_is_fixed(const tz_zone *z, int32_t *offset); /* true: *offset holds for all times */

/* Offset in force at an instant (seconds since 1970-01-01T00:00:00Z). */
int32_t tz_offset_at(const tz_zone *z, int64_t utc_s);
/* The same as java.util.TimeZone knows it: before 1900 the zone's latest standard offset. */
int32_t tz_offset_at_legacy(const tz_zone *z, int64_t utc_s);
/* Offset of a local time as ZonedDateTime.of resolves it: in a gap the offset before it (the time moves forward by the gap's
 * length), in an overlap the earlier instant. */
int32_t tz_offset_of_local(const tz_zone *z, int64_t local_s);
/* The same as java.util.GregorianCalendar does it: in an overlap standard time, the later instant. */
int32_t tz_offset_of_local_legacy(const tz_zone *z, int64_t local_s);

/* Microseconds: instant to local time and back (java.time rules). */
int64_t tz_to_local(const tz_zone *z, int64_t utc_us);
int64_t tz_to_utc(const tz_zone *z, int64_t local_us);
/* Abbreviation at an instant ("JST", "CEST"; "UTC", "GMT", "GMT+09:00" for fixed offsets) into out[16]; returns its length. */
size_t tz_abbreviation(const tz_zone *z, int64_t utc_s, char out[16]);
/* Whether a zone in common use is abbreviated so ("CEST", "PST"); upper case. */
bool tz_is_abbreviation(fz_sv s);
#endif
