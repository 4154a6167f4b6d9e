/* The tables of kernels, joined. */
#include "exec/exec_int.h"
#include <pthread.h>

static ex_kernel by_id[SQL_K_COUNT];

static void join(const ex_kernel_entry *t) {
    for (; t->id != SQL_K_NONE; t++) by_id[t->id] = t->run;
}
static void join_all(void) {
    join(ex_kernels_temporal);
    join(ex_kernels_logic);
    join(ex_kernels_number);
    join(ex_kernels_math);
    join(ex_kernels_text);
    join(ex_kernels_search);
    join(ex_kernels_nested);
    join(ex_kernels_printf);
}
ex_kernel ex_kernel_of(sql_kernel id) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_all);
    return by_id[id];
}
