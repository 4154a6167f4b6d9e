/* Between the two sides of a listening source. */
#ifndef SRC_SPOOLED_INT_H
#define SRC_SPOOLED_INT_H
#include "source/spooled.h"

char *spooled_dir(const src_context *cx); /* <state dir>/spool/<table>; the caller frees */
void spooled_reading_free(src_spooled *s);
#endif
