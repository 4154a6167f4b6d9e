/* Patterns of java.time.format.DateTimeFormatter (ofPattern, root locale, strict parsing, SMART resolving), compiled once and used many times:
 * TO_TIMESTAMP(s, pattern), DATE_FORMAT(timestamp, pattern).
 *
 * Letters: G u y Y M L Q q d D g E e c w W F a B h H k K m s S A n N V v z O X x Z, literals, quotes, [optional], p padding.
 * Threads: a compiled pattern is read-only and may be shared.
 */
#ifndef COL_DTPATTERN_H
#define COL_DTPATTERN_H
#include "base/base.h"
#include "col/datetime.h"

typedef struct dt_pattern dt_pattern;
/* USER "datetime.pattern" with Java's reason when the pattern is wrong. The caller frees it. */
fz_status dt_pattern_new(fz_sv text, dt_pattern **out, fz_error *err) FZ_MUST_USE;
void dt_pattern_free(dt_pattern *p);
/* A copy that lives in an arena and must not be freed. */
const dt_pattern *dt_pattern_copy(fz_arena *a, const dt_pattern *p);
/* Parses the whole of s. Absent fields are 1970-01-01 00:00:00. false: no match, or impossible values. A zone or offset in the text is checked and ignored. */
bool dt_pattern_parse(const dt_pattern *p, fz_sv s, dt_fields *out);
/* TO_TIMESTAMP(s, pattern): the pattern, cut to milliseconds; failing that the JDBC forms yyyy-[m]m-[d]d and yyyy-[m]m-[d]d hh:mm:ss[.f...]. */
bool dt_to_timestamp(const dt_pattern *p, fz_sv s, int64_t *us);
/* Appends; DATA "datetime.format" where Java throws (a zone in the pattern; a value wider than its field). */
fz_status dt_pattern_format(const dt_pattern *p, int64_t us, fz_buf *out, fz_error *err) FZ_MUST_USE;
#endif
