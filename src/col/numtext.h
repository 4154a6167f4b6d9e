/* Numbers and booleans as text, by Java's and Flink's rules. Pure functions on single values.
 * Threads: any. Errors: false or a status; nothing is allocated.
 */
#ifndef COL_NUMTEXT_H
#define COL_NUMTEXT_H
#include "base/base.h"

typedef enum { NT_OK, NT_EMPTY, NT_INVALID, NT_OVERFLOW } nt_status;

/* Flink's CAST(string AS TINYINT..BIGINT): blanks (U+0020) off both ends, sign, digits, and a fraction that is cut off; the
 * value must lie in min..max. */
nt_status nt_parse_int(fz_sv s, int64_t min, int64_t max, int64_t *out);
/* Integer.parseInt and Long.parseLong: sign and digits, nothing else. */
bool nt_parse_java_int(fz_sv s, int32_t *out);
bool nt_parse_java_long(fz_sv s, int64_t *out);
/* Flink's CAST(string AS BOOLEAN), any case: t true y yes 1 / f false n no 0. No trimming. */
bool nt_parse_bool(fz_sv s, bool *out);
/* Double.parseDouble and Float.parseFloat: bytes <= 0x20 off both ends; decimal or hexadecimal, exponent, suffix d/D/f/F;
 * "NaN", "Infinity" with sign. Overflow gives infinities, as in Java. */
bool nt_parse_double(fz_sv s, double *out);
bool nt_parse_float(fz_sv s, float *out);

#define NT_TEXT_MAX 32
/* Each writes the text (no NUL) and returns its length. Doubles and floats as Double.toString and Float.toString of JDK 17. */
size_t nt_int_text(int64_t v, char out[NT_TEXT_MAX]);
size_t nt_double_text(double v, char out[NT_TEXT_MAX]);
size_t nt_float_text(float v, char out[NT_TEXT_MAX]);

/* Java's narrowing: NaN is 0, too large is the nearest end. */
int64_t nt_double_to_long(double v);
int32_t nt_double_to_int(double v);
#endif
