/* Providers: who has credentials, for how long, and who fetches new ones.
 *
 * Credentials are due for renewal 5 minutes, or a tenth of their life, before they expire. One thread fetches; the others go on with the
 * old ones, and wait only when these are no longer valid. A renewal that fails is tried again after a while (1 s doubling to 30 s) as long as the
 * old ones are valid.
 *
 * Invariants
 *  1. At most one fetch runs at a time, without the lock held.
 *  2. Whoever waited for a fetch that failed gets that fetch's error, and does not fetch again at once.
 *  3. Texts of credentials are wiped when they are replaced.
 * Threads: any.
 */
#include "aws/aws_cred_int.h"

enum { BEFORE_EXPIRY_MS = 5 * 60 * 1000, BACKOFF_MS = 1000, BACKOFF_MOST_MS = 30000 };

typedef struct kept { fz_arena *arena; aws_credentials c; } kept;

struct aws_provider {
    atomic_uint refs;
    aws_fetch fetch;
    void *cx;
    void (*free_cx)(void *cx);
    pthread_mutex_t lock;     /* the rest */
    pthread_cond_t done;
    kept now;                 /* arena NULL: none yet */
    bool rejected;            /* a service refused them */
    int64_t refresh_ms;       /* when they are due; 0: never */
    int64_t next_try_ms;      /* not before, while they are valid */
    unsigned failures;
    bool fetching;
    uint64_t generation, fetches; /* of successes; of all ends of a fetch */
    fz_error failed;          /* of the last fetch */
};

aws_provider *aws_provider_custom(aws_fetch fetch, void *cx, void (*free_cx)(void *cx)) {
    aws_provider *p = FZ_NEW(aws_provider);
    atomic_init(&p->refs, 1);
    p->fetch = fetch;
    p->cx = cx;
    p->free_cx = free_cx;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

aws_provider *aws_provider_ref(aws_provider *p) {
    if (p) atomic_fetch_add(&p->refs, 1);
    return p;
}

static void wipe_text(const char *s) {
    if (s) explicit_bzero((char *)s, strlen(s));
}
static void drop(kept *k) {
    if (!k->arena) return;
    wipe_text(k->c.secret_key);
    wipe_text(k->c.token);
    fz_arena_free(k->arena);
    k->arena = NULL;
}

void aws_provider_unref(aws_provider *p) {
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    drop(&p->now);
    if (p->free_cx) p->free_cx(p->cx);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->done);
    fz_free(p);
}

static const char *copy(fz_arena *a, const char *s) { return s ? fz_arena_strdup(a, s) : NULL; }
static void copy_credentials(fz_arena *a, const aws_credentials *from, aws_credentials *to) {
    *to = (aws_credentials){.access_key = copy(a, from->access_key), .secret_key = copy(a, from->secret_key), .token = copy(a, from->token),
                            .expires_ms = from->expires_ms, .source = copy(a, from->source), .account = copy(a, from->account), .generation = from->generation};
}

static bool valid(const aws_provider *p, int64_t now) {
    return p->now.arena && !p->rejected && (p->now.c.expires_ms == 0 || now < p->now.c.expires_ms);
}
static bool due(const aws_provider *p, int64_t now) { return !valid(p, now) || (p->refresh_ms && now >= p->refresh_ms); }

static void took(aws_provider *p, kept *fresh, int64_t now) {
    drop(&p->now);
    p->now = *fresh;
    p->now.c.generation = ++p->generation;
    p->rejected = false;
    p->failures = 0;
    p->next_try_ms = 0;
    int64_t expires = p->now.c.expires_ms, margin = (expires - now) / 10;
    if (margin > BEFORE_EXPIRY_MS) margin = BEFORE_EXPIRY_MS;
    p->refresh_ms = expires ? expires - (margin > 0 ? margin : 0) : 0;
}

static void failed(aws_provider *p, int64_t now) {
    int64_t wait = BACKOFF_MS << (p->failures < 5 ? p->failures : 5);
    if (wait > BACKOFF_MOST_MS) wait = BACKOFF_MOST_MS;
    p->failures++;
    p->next_try_ms = now + wait;
    fz_log(FZ_LOG_WARN, "aws.credentials-not-renewed", FZ_KV("code", "%s", p->failed.code), FZ_KV("message", "%s", p->failed.message),
           FZ_KV("valid_s", "%lld", valid(p, now) && p->now.c.expires_ms ? (long long)(p->now.c.expires_ms - now) / 1000 : 0ll), NULL);
}

/* With the lock held; gives it up while the fetch runs. What was fetched is copied: the fetcher may have given constants, which cannot be wiped. */
static void fetch(aws_provider *p) {
    kept fresh = {.arena = fz_arena_new()};
    fz_arena *a = fz_arena_new();
    aws_credentials got = {0};
    fz_error err = {0};
    p->fetching = true;
    pthread_mutex_unlock(&p->lock);
    fz_status rc = p->fetch(p->cx, a, &got, &err);
    if (rc == FZ_OK) copy_credentials(fresh.arena, &got, &fresh.c);
    fz_arena_free(a);
    int64_t now = fz_now_ms();
    pthread_mutex_lock(&p->lock);
    p->fetching = false;
    p->fetches++;
    p->failed = err;
    p->failed.cls = rc;
    if (rc == FZ_OK) took(p, &fresh, now);
    else {
        drop(&fresh);
        if (p->now.arena) failed(p, now);
    }
    pthread_cond_broadcast(&p->done);
}

fz_status aws_provider_get(aws_provider *p, fz_arena *a, aws_credentials *out, fz_error *err) {
    *out = (aws_credentials){0};
    pthread_mutex_lock(&p->lock);
    for (bool ended = false;; ended = true) { /* ended: a fetch ended since we came */
        int64_t now = fz_now_ms();
        if (!due(p, now) || (valid(p, now) && (p->fetching || now < p->next_try_ms || ended))) break;
        if (ended && p->failed.cls == FZ_OK) break; /* fresh ones that are over already: the service may see that otherwise */
        if (ended) {
            fz_status rc = p->failed.cls;
            if (err) *err = p->failed;
            pthread_mutex_unlock(&p->lock);
            return rc;
        }
        uint64_t fetches = p->fetches;
        if (!p->fetching) fetch(p);
        while (p->fetches == fetches) pthread_cond_wait(&p->done, &p->lock);
    }
    copy_credentials(a, &p->now.c, out);
    pthread_mutex_unlock(&p->lock);
    return FZ_OK;
}

void aws_provider_expired(aws_provider *p, uint64_t generation) {
    pthread_mutex_lock(&p->lock);
    if (p->now.arena && p->now.c.generation == generation) p->rejected = true;
    pthread_mutex_unlock(&p->lock);
}

/* --- fixed ones --- */

typedef struct fixed { char *access_key, *secret_key, *token, *source; } fixed;

static void fixed_free(void *cx) {
    fixed *f = cx;
    wipe_text(f->secret_key);
    wipe_text(f->token);
    fz_free(f->access_key);
    fz_free(f->secret_key);
    fz_free(f->token);
    fz_free(f->source);
    fz_free(f);
}
static fz_status fixed_fetch(void *cx, fz_arena *a, aws_credentials *out, fz_error *err) {
    const fixed *f = cx;
    (void)err;
    *out = (aws_credentials){.access_key = fz_arena_strdup(a, f->access_key), .secret_key = fz_arena_strdup(a, f->secret_key), .token = copy(a, f->token),
                             .source = fz_arena_strdup(a, f->source)};
    return FZ_OK;
}

aws_provider *aws_provider_static(const char *access_key, const char *secret_key, const char *token, const char *source) {
    fixed *f = FZ_NEW(fixed);
    *f = (fixed){fz_strdup(access_key), fz_strdup(secret_key), token ? fz_strdup(token) : NULL, fz_strdup(source)};
    return aws_provider_custom(fixed_fetch, f, fixed_free);
}
