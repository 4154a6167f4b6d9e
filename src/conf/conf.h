/* Settings: config.yaml and SET, by Flink's names. One table says what exists (conf_options).
 *
 * Invariants
 *  1. A key is in the table and used, or known without meaning here (named once in a warning), or refused with a way out; any other
 *     key is an error that names it.
 *  2. A value is checked when it is set, so that reading it cannot fail.
 * Threads: one at a time; a job takes what it needs at its start.
 */
#ifndef CONF_H
#define CONF_H
#include "base/base.h"

typedef struct conf conf;
conf *conf_new(void);
conf *conf_clone(const conf *c);
void conf_free(conf *c);
const fz_option *conf_options(void); /* ends with a NULL name */

/* config.yaml: nested maps become dotted keys. USER "config.syntax" (line, column), "config.unknown-key". */
fz_status conf_load_yaml(conf *c, const char *path, fz_error *err) FZ_MUST_USE;
/* SET 'key' = 'value'. */
fz_status conf_set(conf *c, const char *key, const char *value, fz_error *err) FZ_MUST_USE;
/* RESET 'key'; NULL: everything that SET changed, back to what config.yaml said. */
fz_status conf_reset(conf *c, const char *key, fz_error *err) FZ_MUST_USE;
/* Marks the present values as those that RESET goes back to. */
void conf_mark_base(conf *c);
/* Value as text: set or default; NULL when there is neither. */
const char *conf_get(const conf *c, const char *key);
bool conf_is_set(const conf *c, const char *key);
bool conf_get_bool(const conf *c, const char *key);
int64_t conf_get_i64(const conf *c, const char *key);      /* INT, DURATION (ms), SIZE (bytes) */
bool conf_is(const conf *c, const char *key, const char *value); /* case-insensitive */
/* Explicitly set pairs, in order of key: for SET without arguments. */
typedef bool (*conf_each_fn)(void *cx, const char *key, const char *value);
void conf_each(const conf *c, conf_each_fn fn, void *cx);
/* Warns once about keys without meaning that were set so far. */
void conf_warn_no_meaning(conf *c);
#endif
