/* Fault points: named places where a test can make the process fail or die. Always compiled in; a point that nobody
 * armed costs one load of a flag.
 *
 * FRAZIL_FAULT arms them: a comma-separated list of NAME:N:ACTION; ACTION happens at the N-th hit (N = 0: at each hit).
 *   kill       raise(SIGKILL)                     stop       raise(SIGSTOP)
 *   eio        the point reports EIO              enospc     it reports ENOSPC
 *   sleep=MS   wait, then go on                   unknown    the point reports an unknown outcome
 *   retry      it reports a failure that may pass conflict   it reports a conflict
 * FRAZIL_FAULT_LOG=FILE: each hit of a point appends its name and a newline (before the action), for harnesses.
 * Every name must stand in the table of fault.c; a test walks the sources and compares.
 * Threads: any.
 */
#ifndef FZ_FAULT_H
#define FZ_FAULT_H
#include "base/err.h"
#include <stdatomic.h>
#include <stdbool.h>

typedef enum { FZ_FAULT_NONE, FZ_FAULT_EIO, FZ_FAULT_ENOSPC, FZ_FAULT_UNKNOWN, FZ_FAULT_RETRY, FZ_FAULT_CONFLICT } fz_fault_kind;

extern _Atomic bool fz_fault_armed; /* threads may run when a test arms */
/* Counts a hit and acts. Returns what the caller shall pretend (NONE: go on). */
fz_fault_kind fz_fault_hit(const char *name);
static inline fz_fault_kind fz_fault(const char *name) { return __builtin_expect(atomic_load_explicit(&fz_fault_armed, memory_order_relaxed), 0) ? fz_fault_hit(name) : FZ_FAULT_NONE; }
/* The same as a status: fills err with code "fault.injected". EIO and ENOSPC are FZ_RETRY. */
fz_status fz_fault_status(const char *name, fz_error *err) FZ_MUST_USE;
/* Reads FRAZIL_FAULT; an unknown name or action is an error that names it. Call once, before threads start. */
fz_status fz_fault_init(fz_error *err) FZ_MUST_USE;
/* Tests arm without the environment: the same syntax; NULL disarms. */
fz_status fz_fault_arm(const char *spec, fz_error *err) FZ_MUST_USE;
/* The table of names, NULL-terminated. */
const char *const *fz_fault_names(void);
#endif
