/* "2026-09-16T12:00:00.000Z" of milliseconds since the epoch. */
#ifndef OPS_TIME_TEXT_H
#define OPS_TIME_TEXT_H
#include <stdint.h>
#define OPS_TIME_TEXT 48
void ops_time_text(int64_t ms, char out[OPS_TIME_TEXT]);
#endif
