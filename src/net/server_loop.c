/* The loop: a thread with libevent's event base, and work that other threads hand to it.
 *
 * Invariants
 *  1. The event base is touched by the loop's thread only; others write to wake_fd.
 *  2. Calls run in the order in which they came, each once, also those that wait when the loop is freed.
 */
#include "net/server_int.h"
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void run_calls(net_loop *l) {
    pthread_mutex_lock(&l->lock);
    net_call *c = l->calls;
    l->calls = NULL;
    l->calls_end = &l->calls;
    pthread_mutex_unlock(&l->lock);
    while (c) {
        net_call *next = c->next;
        c->fn(c->cx);
        fz_free(c);
        c = next;
    }
}

static void on_wake(evutil_socket_t fd, short what, void *cx) {
    (void)what;
    uint64_t n;
    while (read(fd, &n, sizeof n) < 0 && errno == EINTR) {}
    run_calls(cx);
}

static void on_again(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    net_loop *l = cx;
    net_conn *c = l->again_first; /* those that come meanwhile have their turn after the sockets */
    l->again_first = l->again_last = NULL;
    while (c) {
        net_conn *next = c->again_next;
        c->queued = false;
        net_conn_pump(c, false);
        c = next;
    }
}

void net_loop_again(net_loop *l, net_conn *c) {
    if (c->queued) return;
    c->queued = true;
    c->again_next = NULL;
    if (!l->again_first) event_active(l->again, EV_TIMEOUT, 0);
    if (l->again_last) l->again_last->again_next = c;
    else l->again_first = c;
    l->again_last = c;
}

static void *loop_thread(void *cx) {
    net_loop *l = cx;
    pthread_setname_np(pthread_self(), l->name);
    event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

/* What was answered last is given a moment to go out: connections end as net_listener_stop ends them. */
static void farewell(void *cx) {
    net_loop *l = cx;
    bool conns = false;
    for (net_listener *n = l->listeners; n; n = n->next) conns |= n->conns != NULL;
    if (conns && net_now_ms() < l->stop_ms) net_loop_after(l, NET_FAREWELL_STEP_MS, farewell, l);
    else event_base_loopbreak(l->base);
}
static void on_stop(void *cx) {
    net_loop *l = cx;
    for (net_listener *n = l->listeners; n; n = n->next) net_listener_stop(n);
    l->stop_ms = net_now_ms() + NET_FAREWELL_MS;
    net_loop_after(l, 0, farewell, l);
}

fz_status net_loop_new(const char *name, net_loop **out, fz_error *err) {
    net_loop *l = FZ_NEW(net_loop);
    *out = NULL;
    snprintf(l->name, sizeof l->name, "%s", name);
    l->calls_end = &l->calls;
    pthread_mutex_init(&l->lock, NULL);
    l->scratch = fz_malloc(NET_SCRATCH);
    struct event_config *conf = event_config_new();
    event_config_set_flag(conf, EVENT_BASE_FLAG_NOLOCK);
    l->base = event_base_new_with_config(conf);
    event_config_free(conf);
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->wake = l->base && l->wake_fd >= 0 ? event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, on_wake, l) : NULL;
    l->again = l->base ? event_new(l->base, -1, EV_PERSIST, on_again, l) : NULL;
    int rc = l->wake && l->again ? event_add(l->wake, NULL) : -1;
    if (rc == 0) {
        sigset_t all, old; /* signals are the main thread's; SIGPIPE of a write by OpenSSL stays pending here */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        rc = pthread_create(&l->thread, NULL, loop_thread, l);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (rc == 0) {
        *out = l;
        return FZ_OK;
    }
    fz_fail(err, FZ_FATAL, "listen.loop", "the event loop '%s' cannot be started: %s", name, strerror(errno));
    if (l->wake) event_free(l->wake);
    if (l->again) event_free(l->again);
    if (l->base) event_base_free(l->base);
    if (l->wake_fd >= 0) close(l->wake_fd);
    fz_free(l->scratch);
    fz_free(l);
    return FZ_FATAL;
}

typedef struct net_later { struct net_later *next, **at; void (*fn)(void *cx); void *cx; } later;
static void free_laters(net_loop *l) {
    while (l->laters) {
        later *w = l->laters;
        l->laters = w->next;
        fz_free(w);
    }
}

void net_loop_free(net_loop *l) {
    if (!l) return;
    net_loop_call(l, on_stop, l);
    pthread_join(l->thread, NULL);
    run_calls(l);
    for (net_listener *n = l->listeners; n; n = n->next)
        while (n->conns) net_conn_drop(n->conns);
    run_calls(l); /* what closing handed on: answers to requests whose connection is gone */
    while (l->listeners) {
        net_listener *n = l->listeners;
        l->listeners = n->next;
        net_listener_free(n);
    }
    for (net_conn *c = l->again_first, *next; c; c = next) { /* dead ones, whom the queue still had */
        next = c->again_next;
        c->queued = false;
        net_conn_pump(c, false);
    }
    event_free(l->wake);
    event_free(l->again);
    event_base_free(l->base);
    free_laters(l);
    close(l->wake_fd);
    pthread_mutex_destroy(&l->lock);
    for (uint32_t i = 0; i < l->n_spare; i++) fz_buf_free(&l->spare[i]);
    fz_free(l->scratch);
    fz_free(l);
}

void net_loop_call(net_loop *l, void (*fn)(void *cx), void *cx) {
    net_call *c = FZ_NEW(net_call);
    c->fn = fn;
    c->cx = cx;
    pthread_mutex_lock(&l->lock);
    bool first = !l->calls;
    *l->calls_end = c;
    l->calls_end = &c->next;
    pthread_mutex_unlock(&l->lock);
    uint64_t one = 1;
    if (first)
        while (write(l->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {}
}

typedef struct waiting_call { void (*fn)(void *cx); void *cx; pthread_mutex_t lock; pthread_cond_t cond; bool done; } waiting_call;
static void run_waiting(void *cx) {
    waiting_call *w = cx;
    w->fn(w->cx);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

void net_loop_run(net_loop *l, void (*fn)(void *cx), void *cx) {
    if (pthread_equal(pthread_self(), l->thread)) {
        fn(cx);
        return;
    }
    waiting_call w = {.fn = fn, .cx = cx, .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    net_loop_call(l, run_waiting, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.done) pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
}

static void on_later(evutil_socket_t fd, short what, void *cx) {
    (void)fd;
    (void)what;
    later w = *(later *)cx;
    *w.at = w.next;
    if (w.next) w.next->at = w.at;
    fz_free(cx);
    w.fn(w.cx);
}

void net_loop_after(net_loop *l, int64_t ms, void (*fn)(void *cx), void *cx) {
    later *w = FZ_NEW(later);
    *w = (later){l->laters, &l->laters, fn, cx};
    if (w->next) w->next->at = &w->next;
    l->laters = w;
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    if (event_base_once(l->base, -1, EV_TIMEOUT, on_later, w, &tv) != 0) on_later(-1, 0, w);
}
