/* See time_text.h. */
#include "ops/time_text.h"
#include <stdio.h>
#include <time.h>

void ops_time_text(int64_t ms, char out[OPS_TIME_TEXT]) {
    time_t s = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm t;
    char date[32] = "?";
    if (gmtime_r(&s, &t)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out, OPS_TIME_TEXT, "%s.%03dZ", date, (int)(ms - (int64_t)s * 1000));
}
