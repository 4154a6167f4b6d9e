/* Decimals: 128-bit unscaled values with a scale of 0..38, by the rules of Flink's DecimalData (BigDecimal, HALF_UP; what does not fit into
 * the result's precision is no value). Pure functions on single values.
 * Threads: any. Errors: false where Flink gives NULL.
 */
#ifndef COL_DECIMAL_H
#define COL_DECIMAL_H
#include "base/base.h"
#include "col/col.h"

#define DCM_MAX_PRECISION 38
#define DCM_TEXT_MAX 48

col_i128 dcm_pow10(int n);                                   /* n in 0..38 */
bool dcm_fits(col_i128 v, int precision);                    /* |v| < 10^precision */
/* new BigDecimal(text) brought to the scale: sign, digits, point, exponent; no blanks. false: no number, or it does not fit. */
bool dcm_parse(fz_sv s, int precision, int scale, col_i128 *out);
/* Flink's CAST(string AS DECIMAL(p, s)): as dcm_parse, with blanks, tabs and line feeds around it, and the looser rules that Flink's
 * short path has (precision <= 18 and at most 18 bytes: a text without digits is zero). */
bool dcm_parse_cast(fz_sv s, int precision, int scale, col_i128 *out);
/* BigDecimal.toPlainString: "-0.05", "12.70". Writes no NUL; returns the length. */
size_t dcm_text(col_i128 v, int scale, char out[DCM_TEXT_MAX]);
/* BigDecimal.toString: as above, with an exponent where Java writes one ("0E-8", "1E-7"). */
size_t dcm_java_text(col_i128 v, int scale, char out[DCM_TEXT_MAX]);

/* Brings v from one scale to another (HALF_UP) and checks the precision. */
bool dcm_rescale(col_i128 v, int from_scale, int precision, int scale, col_i128 *out);
bool dcm_from_long(int64_t v, int precision, int scale, col_i128 *out);
/* BigDecimal.valueOf(double): by the shortest text of v. false for NaN and infinities too (Java throws). */
bool dcm_from_double(double v, int precision, int scale, col_i128 *out);
double dcm_to_double(col_i128 v, int precision, int scale);
/* Towards zero, then the low 64 bits, as BigDecimal.longValue. */
int64_t dcm_to_long(col_i128 v, int scale);

/* Arithmetic: operands with their scales, result in (precision, scale). */
bool dcm_add(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out);
bool dcm_sub(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out);
bool dcm_mul(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out);
/* b must not be zero (Java throws: the caller reports it). The quotient is rounded to 38 digits first, as Flink does. */
bool dcm_div(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out);
bool dcm_mod(col_i128 a, int as, col_i128 b, int bs, int precision, int scale, col_i128 *out);
int dcm_compare(col_i128 a, int as, col_i128 b, int bs);
/* SQL ROUND: digits r (may be negative); the result has dcm_round_type's precision and scale. */
void dcm_round_type(int precision, int scale, int r, int *out_precision, int *out_scale);
bool dcm_round(col_i128 v, int precision, int scale, int r, col_i128 *out, int *out_scale);
/* SQL TRUNCATE to r digits: towards zero; the scale of the result is min(scale, max(r, 0)). */
col_i128 dcm_truncate(col_i128 v, int scale, int r, int *out_scale);
col_i128 dcm_floor(col_i128 v, int scale);                   /* integral value, scale 0 */
col_i128 dcm_ceil(col_i128 v, int scale);
#endif
