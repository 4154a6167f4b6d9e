/* Sources that listen: is the spool free and is there room for it, can the address be taken, do the certificates fit, who may send; and the port of /metrics.
 *
 * What it does not do: it accepts no connection and makes no spool.
 *
 * Invariant: an address is taken for a moment only, and two things of one job that want the same are found here.
 */
#include "ops/doctor_int.h"
#include "net/server.h"
#include "spool/spool.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { DAY_S = 86400, CERTIFICATE_DAYS = 14 };

typedef struct doc_spool { const char *dir; struct doc_spool *next; } doc_spool;
typedef struct doc_door { const char *address, *whose; bool datagrams; struct doc_door *next; } door;

/* ---- who has a port ---- */

/* The socket of the kernel's table that has the port: of TCP one that listens. False: none. */
static bool socket_of(const char *table, int64_t port, bool tcp, uint64_t *inode, unsigned *uid) {
    char path[32], line[512];
    snprintf(path, sizeof path, "/proc/net/%s", table);
    FILE *f = fopen(path, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned local, state, owner;
        unsigned long long ino;
        if (sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u %*u %llu", &local, &state, &owner, &ino) != 4) continue;
        if (local != (unsigned)port || (tcp && state != 0x0A)) continue;
        *inode = ino;
        *uid = owner;
        found = true;
    }
    if (f) fclose(f);
    return found;
}

static bool holds(const char *pid, uint64_t inode) {
    char path[300], link[64], want[64];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    snprintf(want, sizeof want, "socket:[%" PRIu64 "]", inode);
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%s/fd/%.20s", pid, e->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n > 0) found = (size_t)n == strlen(want) && memcmp(link, want, (size_t)n) == 0;
    }
    if (d) closedir(d);
    return found;
}

static const char *name_of(doctor *d, const char *pid) {
    char path[300], name[64] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(name, sizeof name, f)) name[strcspn(name, "\n")] = 0;
    if (f) fclose(f);
    return fz_arena_printf(d->a, "%s (process %s)", *name ? name : "a program", pid);
}

/* As far as /proc may be looked at. NULL: nobody is found. */
static const char *holder_of(doctor *d, const char *address, bool datagrams) {
    static const char *const tables[2][2] = {{"tcp", "tcp6"}, {"udp", "udp6"}};
    const char *colon = strrchr(address, ':'), *who = NULL;
    int64_t port;
    uint64_t inode = 0;
    unsigned uid = 0;
    if (!colon || !fz_parse_i64(fz_sv_of(colon + 1), &port)) return NULL;
    if (!socket_of(tables[datagrams][0], port, !datagrams, &inode, &uid) && !socket_of(tables[datagrams][1], port, !datagrams, &inode, &uid)) return NULL;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && !who && (e = readdir(proc));)
        if (*e->d_name >= '1' && *e->d_name <= '9' && holds(e->d_name, inode)) who = name_of(d, e->d_name);
    if (proc) closedir(proc);
    return who ? who : fz_arena_printf(d->a, "a program of user %u", uid);
}

/* ---- addresses ---- */

static void take(doctor *d, doc_step *s, const char *address, bool datagrams, const char *whose) {
    fz_error e = {0};
    const char *port = strrchr(address, ':');
    for (const door *x = d->doors; x; x = x->next)
        if (x->datagrams == datagrams && strcmp(x->address, address) == 0 && !(port && strcmp(port, ":0") == 0)) {
            doc_fail(d, s, "%s is to listen on %s too", x->whose, address);
            doc_advise(d, s, "give one of them another port: a port has one listener");
            return;
        }
    door *mine = FZ_ANEW(d->a, door);
    *mine = (door){fz_arena_strdup(d->a, address), fz_arena_strdup(d->a, whose), datagrams, d->doors};
    d->doors = mine;
    const net_listen_options o = {.address = address};
    if (net_listen_try(&o, datagrams, &e) == FZ_OK) {
        doc_ok(d, s, "the address can be taken (%s)", datagrams ? "UDP" : "TCP");
        return;
    }
    doc_fail_error(d, s, &e);
    if (strcmp(e.code, "listen.in-use") == 0) {
        const char *who = holder_of(d, address, datagrams);
        if (who) doc_ok(d, s, "the port is held by %s", who);
        doc_advise(d, s, "end %s, or listen on another port; if it is this very job, it runs already", who ? who : "what listens there (ss -lnp)");
    } else doc_advise(d, s, "name an address of this machine (ip address): 127.0.0.1 for senders on this machine, 0.0.0.0 for all");
}

static void certificates(doctor *d, const src_listening *l, const char *subject) {
    doc_step *s = doc_begin(d, "doctor.listen.tls", subject);
    int64_t expires_s, now_s = fz_now_ms() / 1000;
    fz_error e = {0};
    const net_listen_options o = {.address = l->address, .tls_cert = l->tls_cert, .tls_key = l->tls_key, .tls_ca = l->tls_ca};
    doc_asked(d, s, "read %s and %s%s%s, and do they belong together?", l->tls_cert, l->tls_key, l->tls_ca ? " and " : "", l->tls_ca ? l->tls_ca : "");
    if (doc_blocked(d, s, NULL)) return;
    if (net_listen_try_tls(&o, &expires_s, &e) != FZ_OK) {
        doc_fail_error(d, s, &e);
        doc_advise(d, s, "'tls.cert' is the server's chain and 'tls.key' its key, both PEM, readable for uid %d; openssl x509 -in %s -noout -pubkey and openssl pkey -in %s -pubout print the same if they belong together",
                   (int)geteuid(), l->tls_cert, l->tls_key);
    } else if (expires_s < now_s + CERTIFICATE_DAYS * DAY_S) {
        doc_warn(d, s, expires_s < now_s ? "the certificate has been expired for %lld days: senders that look at it will not connect" : "the certificate expires in %lld days",
                 (long long)((expires_s < now_s ? now_s - expires_s : expires_s - now_s) / DAY_S));
        doc_advise(d, s, "renew it; a running job takes new files into use with the next connection");
    } else doc_ok(d, s, "they belong together; valid for %lld days", (long long)((expires_s - now_s) / DAY_S));
}

static void who_may_send(doctor *d, const src_listening *l, const char *subject) {
    fz_error ignored;
    doc_step *s = doc_begin(d, "doctor.listen.auth", subject);
    doc_asked(d, s, "who may send to %s?", l->address);
    if (l->authenticated) doc_ok(d, s, "who is authenticated (%s)", l->tls_ca ? "client certificates" : "the connector's own login");
    else if (net_listen_check(l->address, false, false, &ignored) == FZ_OK) doc_ok(d, s, "programs on this machine: it is a loopback address");
    else {
        doc_warn(d, s, "anybody who reaches %s from the network may send: 'allow-unauthenticated' is true and nothing authenticates senders", l->address);
        doc_advise(d, s, "a firewall or security group that lets in only your senders; or authentication (the connector's 'auth' or 'shared-key'), or client certificates ('tls.ca')");
    }
}

/* ---- the spool ---- */

static bool add_size(const char *dir, const char *name, uint64_t *sum) {
    struct stat st;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode)) *sum += (uint64_t)st.st_size;
    return true;
}

static uint64_t bytes_in(const char *dir) {
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) (void)add_size(dir, e->d_name, &sum);
    if (d) closedir(d);
    return sum;
}

/* The step, when another process has the spool: it will have the port too; else NULL. */
static const doc_step *spool_step(doctor *d, const src_doors *o, const char *table) {
    struct statvfs v;
    doc_step *s = doc_begin(d, "doctor.spool", table);
    doc_asked(d, s, "is %s free, can it be written, and is there room for %lld MiB (spool.max-size)?", o->spool_dir, (long long)(o->spool_max >> 20));
    if (doc_blocked(d, s, NULL)) return NULL;
    if (spool_in_use(o->spool_dir)) {
        doc_fail(d, s, "the spool %s is in use by a process [spool.in-use]", o->spool_dir);
        doc_advise(d, s, "the job runs already (or a SELECT over this table in a shell): end it, or give this one another 'frazil.state.dir'");
        return s;
    }
    doc_local_directory(d, s, o->spool_dir);
    if (s->status != OPS_STEP_OK) {
        doc_advise(d, s, "or set 'frazil.state.dir' to a directory on a disk that outlives the process: what is acknowledged and not yet committed is only there");
        return NULL;
    }
    if (statvfs(doc_nearest(d, o->spool_dir), &v) != 0) return NULL;
    uint64_t room = (uint64_t)v.f_bavail * v.f_frsize + bytes_in(o->spool_dir);
    if (room >= (uint64_t)o->spool_max) doc_ok(d, s, "%llu MiB of room for at most %lld MiB", (unsigned long long)(room >> 20), (long long)(o->spool_max >> 20));
    else {
        doc_warn(d, s, "the disk has room for %llu MiB, the spool may grow to %lld MiB: when the disk is full senders have to wait", (unsigned long long)(room >> 20), (long long)(o->spool_max >> 20));
        doc_advise(d, s, "make room, set 'frazil.state.dir' to a larger disk, or 'spool.max-size' to what is there");
    }
    return NULL;
}

void doc_doors(doctor *d, const src_doors *o, const char *table) {
    doc_spool *mine = FZ_ANEW(d->a, doc_spool);
    *mine = (doc_spool){fz_arena_strdup(d->a, o->spool_dir), d->spools};
    d->spools = mine;
    const doc_step *used = spool_step(d, o, table);
    for (uint32_t i = 0; i < o->n; i++) {
        const src_listening *l = &o->v[i];
        const char *subject = fz_arena_printf(d->a, "%s, %s", table, l->address);
        doc_step *s = doc_begin(d, "doctor.listen", subject);
        doc_asked(d, s, "take %s (%s) for a moment", l->address, l->datagrams ? "UDP" : "TCP");
        if (!doc_blocked(d, s, used)) take(d, s, l->address, l->datagrams, table);
        if (l->tls_cert) certificates(d, l, subject);
        if (!doc_find(d, "doctor.listen.auth", subject)) who_may_send(d, l, subject);
    }
}

static void unread(void *cx, const char *dir, uint64_t records) {
    doctor *d = cx;
    for (const doc_spool *x = d->spools; x; x = x->next)
        if (strcmp(x->dir, dir) == 0) return;
    doc_step *s = doc_begin(d, "doctor.spool.unread", fz_arena_strdup(d->a, dir));
    doc_asked(d, s, "does a spool of frazil.state.dir hold records that no table of the script reads?");
    if (doc_blocked(d, s, NULL)) return;
    doc_warn(d, s, "it holds %llu acknowledged records, no table of the script has its name, and no process has it open", (unsigned long long)records);
    doc_advise(d, s, "name the table as before, or drain with the old script");
}
void doc_unread_spools(doctor *d) {
    if (!d->spools_unknown && (d->plan->n_inserts || d->plan->n_deliveries)) spool_unread(conf_get(d->plan->settings, "frazil.state.dir"), unread, d);
}

/* ---- /metrics ---- */

void doc_metrics_port(doctor *d) {
    const conf *c = d->plan->settings;
    if (!conf_is_set(c, "metrics.port") || (!d->plan->n_inserts && !d->plan->n_deliveries)) return;
    const char *host = conf_get(c, "metrics.bind-host");
    const char *address = fz_arena_printf(d->a, strchr(host, ':') ? "[%s]:%lld" : "%s:%lld", host, (long long)conf_get_i64(c, "metrics.port"));
    doc_step *s = doc_begin(d, "doctor.metrics.port", address);
    fz_error e = {0};
    doc_asked(d, s, "take %s for a moment (metrics.bind-host, metrics.port)", address);
    if (doc_blocked(d, s, NULL)) return;
    if (net_listen_check(address, false, conf_get_bool(c, "metrics.allow-unauthenticated"), &e) != FZ_OK) {
        doc_fail(d, s, "%s", doc_error_text(d, &e));
        doc_advise(d, s, "metrics.bind-host = 127.0.0.1, or metrics.allow-unauthenticated = true when everybody who reaches the port may read the metrics");
    } else take(d, s, address, false, "metrics.port");
}
