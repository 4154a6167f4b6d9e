/* Options: one descriptor for settings, connector options, format options and table properties, from which checks, help and
 * reference pages come. A room that has options exports a table of fz_option that ends with a NULL name.
 *
 * Invariants
 *  1. A name that no table holds is an error that names it (fz_option_find gives NULL; fz_option_nearest the hint).
 *  2. Text forms are Flink's: durations '5 min', '30 s', '500 ms', '1 h', '7 d'; sizes '128 mb', '1 gb', '64 kb', '10 bytes'.
 */
#ifndef FZ_OPTION_H
#define FZ_OPTION_H
#include "base/err.h"
#include "base/str.h"
#include <stdint.h>

typedef enum { FZ_OPT_STRING, FZ_OPT_BOOL, FZ_OPT_INT, FZ_OPT_DOUBLE, FZ_OPT_DURATION, FZ_OPT_SIZE, FZ_OPT_ENUM, FZ_OPT_LIST } fz_option_type;
typedef enum {
    FZ_OPT_USED,     /* honoured */
    FZ_OPT_NO_MEANING, /* known, has no meaning here: named once in a warning; `why` says the reason */
    FZ_OPT_REFUSED   /* known, cannot be honoured: an error; `why` says the way out */
} fz_option_state;

typedef struct fz_option {
    const char *name;      /* ends with '*' for a family of names: "jobmanager.*" */
    fz_option_type type;
    fz_option_state state;
    const char *dflt;      /* text form; NULL: none */
    const char *allowed;   /* for ENUM: "a|b|c" */
    const char *doc;       /* one sentence or two, in English, for the reference page */
    const char *why;       /* for NO_MEANING and REFUSED */
} fz_option;

typedef struct fz_pair { const char *key, *value; int line, column; } fz_pair; /* as written in WITH (...), SET or config.yaml */

const fz_option *fz_option_find(const fz_option *table, const char *name); /* exact name first, then a family */
const char *fz_option_nearest(const fz_option *table, const char *name);   /* for "did you mean", or NULL */
/* Checks that value has the option's type; code "option.invalid". */
fz_status fz_option_check(const fz_option *o, const char *value, fz_error *err) FZ_MUST_USE;
fz_status fz_parse_duration_ms(const char *s, int64_t *out, fz_error *err) FZ_MUST_USE;
fz_status fz_parse_size(const char *s, int64_t *out, fz_error *err) FZ_MUST_USE;
fz_status fz_parse_bool(const char *s, int *out, fz_error *err) FZ_MUST_USE; /* true|false, any case */
/* Does an option of this name hold a secret (by the words that Flink goes by, and Iceberg's names)? Its value is shown as FZ_HIDDEN. */
bool fz_option_secret(const char *name);
#define FZ_HIDDEN "******"
/* Appends the value as it may be shown: FZ_HIDDEN for a secret; in a URI the password before '@' and those of its query are hidden. */
void fz_option_show(fz_buf *b, const char *name, const char *value);
const char *fz_pair_get(const fz_pair *p, size_t n, const char *key);      /* NULL: not there */
#endif
