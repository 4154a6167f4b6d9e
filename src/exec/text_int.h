/* Characters as Java sees them: UTF-16 units, cases, classes. Pure functions. Threads: any. */
#ifndef EX_TEXT_INT_H
#define EX_TEXT_INT_H
#include "base/base.h"

size_t text_to_utf16(fz_sv s, uint16_t *out);                       /* room for s.n units; returns how many */
size_t text_from_utf16(const uint16_t *u, size_t n, char *out);     /* room for 3n bytes; lone surrogates become '?', as in Java */
/* Upper or lower case of a text with letters outside ASCII (String.toUpperCase, toLowerCase of the root locale); room for 3 * s.n + 8 bytes. */
size_t text_case(fz_sv s, bool upper, char *out);
bool text_is_letter(uint32_t cp);                                   /* Character.isLetter */
bool text_is_digit(uint32_t cp);                                    /* Character.isDigit */
bool text_is_space(uint32_t cp);                                    /* Character.isWhitespace */
bool text_is_decimal(fz_sv s);                                      /* Flink's IS_DECIMAL */
#endif
