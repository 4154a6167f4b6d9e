/* Small documents whose damage must be seen: a line of JSON, and a line with its SHA-256. Threads: any. */
#ifndef FIO_CHECKED_H
#define FIO_CHECKED_H
#include "base/base.h"
#include <jansson.h>

void fio_checked_put(fz_buf *out, json_t *root);        /* appends; takes root, whose texts are UTF-8 */
json_t *fio_checked_get(const void *p, size_t n);       /* NULL: these are not bytes that fio_checked_put made. The caller's to json_decref */
#endif
