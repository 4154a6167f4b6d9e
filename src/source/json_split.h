/* JSON documents in a text, one after the other: NDJSON, a JSON array, or a single document. Bytes only.
 *
 * Invariants
 *  1. What it hands out is well-formed JSON by RFC 8259 (numbers, escapes, UTF-8, nesting up to FZ_MAX_JSON_DEPTH), without blanks around it, and points into the text.
 *  2. It reads a text from begin to end once; nothing is allocated.
 */
#ifndef SRC_JSON_SPLIT_H
#define SRC_JSON_SPLIT_H
#include "base/base.h"

typedef struct json_split {
    const uint8_t *p, *end, *at;
    bool array;            /* the text is one array, whose elements are the documents */
    bool begun, ended;
    bool objects;          /* every document has to be an object */
    const char *why;       /* what is wrong */
    const uint8_t *where;  /* and where */
} json_split;

void json_split_init(json_split *s, const void *p, size_t n, bool objects);
/* 1: the next document stands in *out; 0: there are no more; -1: the text is wrong from where on. */
int json_split_next(json_split *s, fz_sv *out);
size_t json_split_line(const json_split *s, const uint8_t *at); /* number of the line in which `at` stands, from 1 */
#endif
