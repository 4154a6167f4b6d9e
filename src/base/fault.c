/* See fault.h. */
#include "base/fault.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

_Atomic bool fz_fault_armed;

/* Order follows the way of a checkpoint. */
static const char *const names[] = {
    "source.poll",             /* before a chunk is handed to a worker */
    "checkpoint.begin",        /* the barrier has been decided */
    "checkpoint.closed",       /* the open files of all sinks are closed */
    "file.write",              /* each write of a data or metadata file */
    "file.direct",             /* before a write past the page cache is set up, and before each: the file system refuses */
    "file.fsync",              /* each fsync */
    "commit.load",             /* before the table is loaded */
    "commit.checked",          /* positions compared, nothing written yet */
    "commit.manifest",         /* manifest written */
    "commit.manifest-list",    /* manifest list written */
    "commit.metadata",         /* metadata.json written, pointer not moved */
    "commit.swap",             /* just before the pointer moves */
    "commit.accepted",         /* the pointer has moved, the answer has not been seen */
    "commit.answered",         /* the answer has been seen */
    "report.before",           /* before offsets are reported to the source */
    "checkpoint.done",         /* everything of a checkpoint is over */
    "dead-letter.write",       /* before dead letters are made durable */
    "spill.write",             /* before a row group leaves memory */
    "delivery.begin",          /* before the intent of a lot is written */
    "delivery.intent",         /* it is durable, the object is not there */
    "delivery.object",         /* the object is there, its done record is not */
    "delivery.diverted",       /* rows are in the error path and a record says so, the done record is not there */
    "delivery.done",           /* the done record is there, old records are not removed */
    "divert.object",           /* rows that a table could not take are in an error object, no record says so */
    "divert.recorded",         /* a record says so, the source may be trimmed, the table does not name the object yet */
    "divert.named",            /* the table names it */
    "replay.object",           /* an error object was read, its rows are not committed */
    "replay.done",             /* its rows and that it is replayed are committed */
    "delivery.clean",          /* before old records are removed */
    "delivery.positions",      /* rows are out, the positions of a delivery without intents are not written */
    "spool.write",             /* before frames or a new segment are written */
    "spool.segment",           /* a new segment has its name, nothing is in it */
    "spool.fsync",             /* before they are synced */
    "spool.durable",           /* they are durable, nobody has been told */
    "spool.room",              /* the disk is asked for its room: there is none */
    "spool.shortened",         /* a segment that nobody wants was cut to a torn frame, the next one is not there */
    "spool.trim",              /* before a segment is removed */
    "spool.leapt",             /* at a start: numbers have leapt, what was damaged or torn is still there */
    "spool.kept",              /* at a start: a segment that cannot be used has its second name, its place is not taken */
    "source.acknowledge",      /* before a sender is told that its records are durable */
    NULL,
};
const char *const *fz_fault_names(void) { return names; }

typedef struct rule { int name; unsigned long at; char action[16]; long ms; } rule;
static rule rules[16];
static unsigned n_rules;
static unsigned long hits[sizeof names / sizeof *names];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;

static int find(const char *s, size_t n) {
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == n && memcmp(names[i], s, n) == 0) return i;
    return -1;
}

fz_status fz_fault_arm(const char *spec, fz_error *err) {
    static const char *const actions[] = {"kill", "stop", "eio", "enospc", "sleep", "unknown", "retry", "conflict", NULL};
    pthread_mutex_lock(&lock);
    n_rules = 0;
    memset(hits, 0, sizeof hits);
    fz_status rc = FZ_OK;
    for (const char *p = spec; p && *p && rc == FZ_OK;) {
        const char *end = strchr(p, ','), *c1 = strchr(p, ':'), *c2 = c1 ? strchr(c1 + 1, ':') : NULL;
        size_t len = end ? (size_t)(end - p) : strlen(p);
        if (!c2 || c2 > p + len || n_rules == 16) {
            rc = fz_fail(err, FZ_USER, "fault.syntax", "FRAZIL_FAULT: want NAME:N:ACTION, got '%.*s'", (int)len, p);
            break;
        }
        rule *r = &rules[n_rules++];
        *r = (rule){.name = find(p, (size_t)(c1 - p)), .at = strtoul(c1 + 1, NULL, 10)};
        size_t an = (size_t)(p + len - c2 - 1);
        const char *eq = memchr(c2 + 1, '=', an);
        if (eq) {
            r->ms = strtol(eq + 1, NULL, 10);
            an = (size_t)(eq - c2 - 1);
        }
        bool known = false;
        for (int i = 0; actions[i]; i++)
            if (strlen(actions[i]) == an && memcmp(actions[i], c2 + 1, an) == 0) {
                memcpy(r->action, actions[i], an + 1);
                known = true;
            }
        if (r->name < 0 || !known)
            rc = fz_fail(err, FZ_USER, "fault.unknown", "FRAZIL_FAULT: unknown %s in '%.*s'", r->name < 0 ? "point" : "action", (int)len, p);
        p += len + (end != NULL);
    }
    const char *file = getenv("FRAZIL_FAULT_LOG");
    if (file && log_fd < 0) log_fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    atomic_store(&fz_fault_armed, rc == FZ_OK && (n_rules > 0 || log_fd >= 0));
    pthread_mutex_unlock(&lock);
    return rc;
}

fz_status fz_fault_init(fz_error *err) { return fz_fault_arm(getenv("FRAZIL_FAULT"), err); }

fz_fault_kind fz_fault_hit(const char *name) {
    int k = find(name, strlen(name));
    if (k < 0) abort(); /* a point that is not in the table would escape every harness */
    pthread_mutex_lock(&lock);
    unsigned long nth = ++hits[k];
    rule found = {.name = -1};
    for (unsigned i = 0; i < n_rules && found.name < 0; i++)
        if (rules[i].name == k && (rules[i].at == 0 || rules[i].at == nth)) found = rules[i];
    if (log_fd >= 0) {
        char line[64];
        size_t n = strlen(name);
        memcpy(line, name, n);
        line[n] = '\n';
        ssize_t w = write(log_fd, line, n + 1);
        (void)w;
    }
    pthread_mutex_unlock(&lock);
    if (found.name < 0) return FZ_FAULT_NONE;
    switch (found.action[0]) {
    case 'k': raise(SIGKILL); break;
    case 's':
        if (found.action[1] == 't') raise(SIGSTOP);
        else fz_sleep_ms(found.ms);
        break;
    case 'e': return found.action[1] == 'i' ? FZ_FAULT_EIO : FZ_FAULT_ENOSPC;
    case 'u': return FZ_FAULT_UNKNOWN;
    case 'r': return FZ_FAULT_RETRY;
    case 'c': return FZ_FAULT_CONFLICT;
    default: break;
    }
    return FZ_FAULT_NONE;
}

fz_status fz_fault_status(const char *name, fz_error *err) {
    switch (fz_fault(name)) {
    case FZ_FAULT_EIO: return fz_fail(err, FZ_RETRY, "fault.injected", "injected fault at %s: Input/output error", name);
    case FZ_FAULT_ENOSPC: return fz_fail(err, FZ_RETRY, "fault.injected", "injected fault at %s: No space left on device", name);
    case FZ_FAULT_UNKNOWN: return fz_fail(err, FZ_UNKNOWN, "fault.injected", "injected fault at %s: outcome unknown", name);
    case FZ_FAULT_RETRY: return fz_fail(err, FZ_RETRY, "fault.injected", "injected fault at %s: try again", name);
    case FZ_FAULT_CONFLICT: return fz_fail(err, FZ_CONFLICT, "fault.injected", "injected fault at %s: conflict", name);
    case FZ_FAULT_NONE: break;
    }
    return FZ_OK;
}
