/* Files of answers: one a line, operation, arguments and answer, tab-separated; %xx stands for a byte. Answers come from JDK 17 and Flink 2.0.1. */
#ifndef TEST_COL_VECTORS_H
#define TEST_COL_VECTORS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/base.h"

#define VECTOR_ARGS 10

/* Writes the answer of op over arg (NUL-terminated) to out; false: the operation is not known. */
typedef bool (*vector_fn)(const char *op, char **arg, char *out, size_t cap);

static void vector_decode(char *s) {
    char *o = s;
    for (; *s; o++) {
        if (*s == '%' && s[1] && s[2]) {
            char hex[3] = {s[1], s[2], 0};
            *o = (char)strtol(hex, NULL, 16);
            s += 3;
        } else {
            *o = *s++;
        }
    }
    *o = 0;
}

static void vector_run(const char *path, vector_fn fn, unsigned at_least) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned rows = 0, bad = 0;
    while ((n = getline(&line, &cap, f)) > 0) {
        char *arg[VECTOR_ARGS], *want = NULL, got[512] = "";
        if (line[n - 1] == '\n') line[n - 1] = 0;
        char *shown = fz_strdup(line);
        unsigned k = 0;
        for (char *p = line; p && k < VECTOR_ARGS; k++) {
            arg[k] = p;
            p = strchr(p, '\t');
            if (p) *p++ = 0;
        }
        want = arg[--k];
        for (unsigned i = 0; i < k; i++) vector_decode(arg[i]);
        for (unsigned i = k; i < VECTOR_ARGS; i++) arg[i] = NULL;
        rows++;
        if (!fn(arg[0], arg + 1, got, sizeof got) || strcmp(got, want) != 0) {
            if (bad++ < 20) print_error("%s: got %s\n", shown, got);
        }
        fz_free(shown);
    }
    free(line);
    fclose(f);
    if (bad) fail_msg("%u of %u answers differ", bad, rows);
    assert_true(rows >= at_least);
}
#endif
