/* Looking into the function table. */
#include "sql/sql_fn.h"
#include <pthread.h>

const sql_fn *sql_fn_find(const char *name) {
    for (const sql_fn *f = sql_fn_table; f->name; f++)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}
const sql_fn *sql_fn_of(sql_kernel k) {
    for (const sql_fn *f = sql_fn_table; f->name; f++)
        if (f->kernel == k) return f;
    return NULL;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
unsigned sql_name_distance(const char *a, const char *b, unsigned limit) {
    unsigned row[64];
    size_t n = strlen(a), m = strlen(b);
    if (n > 62 || m > 62) return limit;
    for (unsigned j = 0; j <= m; j++) row[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned best = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m] < limit ? row[m] : limit;
}

const char *sql_fn_nearest(const char *name) {
    unsigned best = strlen(name) < 5 ? 2 : 4;
    const char *found = NULL;
    for (const sql_fn *f = sql_fn_table; f->name; f++) {
        if (f->hidden) continue;
        unsigned d = sql_name_distance(name, f->name, best);
        if (d < best) {
            best = d;
            found = f->name;
        }
    }
    return found;
}

static sql_fn_info infos[512];
static uint32_t n_infos;

static void fill(void) {
    for (const sql_fn *f = sql_fn_table; f->name && n_infos < sizeof infos / sizeof *infos; f++)
        if (!f->hidden) infos[n_infos++] = (sql_fn_info){f->name, f->signature, f->doc, f->group, f->kernel != SQL_K_NONE || f->form};
}
uint32_t sql_functions(const sql_fn_info **out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    *out = infos;
    return n_infos;
}
