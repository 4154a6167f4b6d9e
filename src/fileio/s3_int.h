/* What the files of the S3 store share.
 *
 *   s3_place.c    location -> bucket and key -> host and path          s3_options.c  options by Iceberg's names
 *   s3_send.c     one request, its retries, errors in our terms        s3_xml.c      answers
 *   s3_object.c   get, head, put, put-if-absent                        s3_list.c     listings     s3_delete.c  deletes
 *   s3_pool.c     threads that upload                                  s3_upload.c   staged and multipart uploads
 *   s3_writer.c   streaming writes and batches                         s3_sweep.c    unfinished uploads of killed processes
 *   s3_stage.c    the directory of staging files
 *
 * Invariants
 *  1. A key is its location without scheme, bucket and exactly one slash, byte for byte: "//", "..", "%" and "+" are characters like any other.
 *  2. Every payload's SHA-256 is signed, so S3 refuses bytes that changed on their way.
 */
#ifndef FIO_S3_INT_H
#define FIO_S3_INT_H
#include "aws/aws.h"
#include "base/base.h"
#include <pthread.h>

#define S3_PART_MIN (5ull << 20)

/* ---- options ---- */

typedef enum { S3_SSE_NONE, S3_SSE_S3, S3_SSE_KMS, S3_SSE_DSSE, S3_SSE_CUSTOM } s3_sse;
typedef struct s3_config {
    const char *endpoint, *region;                  /* NULL: AWS's, the session's */
    const char *access_key, *secret_key, *token;    /* NULL: the session's credentials */
    bool anonymous;
    bool path_style, virtual_style;
    s3_sse sse;
    const char *sse_key, *sse_md5;                  /* KMS key id or NULL; base64 of the customer's key and of its MD5 */
    const char *acl, *storage_class, *tagging;      /* tagging: "k=v&k2=v2", encoded; NULL: none */
    const fz_pair *delete_tags; size_t n_delete_tags;
    const fz_pair *access_points; size_t n_access_points; /* key: bucket, value: ARN or alias */
    bool delete_enabled;
    size_t delete_batch;
    uint64_t part_size, threshold;                  /* bytes; an object of threshold bytes or more is uploaded in parts */
    unsigned threads;
    const char *staging_dir;
    bool checksum, requester_pays, arn_region, dualstack, accelerate, conditional;
    int max_attempts;                               /* 0: the session's */
    int64_t timeout_ms;                             /* of one attempt; 0: none */
} s3_config;
extern const fz_option s3_options[];                /* ends with a NULL name */
/* Reads the s3.* of o (others are left alone); texts go to a. USER "option.invalid", "option.unknown", "option.refused". */
fz_status s3_config_read(const fz_pair *o, size_t n, fz_arena *a, s3_config *out, fz_error *err) FZ_MUST_USE;

/* ---- the store of one handle ---- */

typedef struct s3_store {
    s3_config c;
    fz_arena *arena;          /* of c and, under lock, of what follows */
    aws_session *aws;
    aws_provider *provider;   /* NULL: the session's */
    pthread_mutex_t lock;
    const char *base;         /* scheme://host[:port][/path] of the service; NULL: not asked yet */
    const char *region;
    bool custom;              /* base was configured, not derived from the region */
    char *stage_dir;          /* this store's own in c.staging_dir; NULL: not made yet */
    int stage_lock;
} s3_store;
/* Takes references to aws and provider (NULL: from the options, else the session's). */
fz_status s3_store_new(const fz_pair *o, size_t n, aws_session *aws, aws_provider *provider, s3_store **out, fz_error *err) FZ_MUST_USE;
void s3_store_free(s3_store *s); /* NULL is allowed; no call may be under way */

/* ---- places ---- */

/* bucket (or the ARN of an access point) and key, both pointing into location; false: no location of S3. */
bool s3_split(const char *location, fz_sv *bucket, const char **key);
/* The beginning of location up to where its key begins: "s3://bucket/". Length in bytes. */
size_t s3_root_len(const char *location);
typedef struct s3_target { const char *endpoint, *path, *region; } s3_target; /* endpoint: scheme://host[:port]; path: encoded */
/* key NULL: the bucket itself. USER "file.bucket", "file.access-point", "file.name", "file.name-too-long", "aws.no-region". */
fz_status s3_locate(s3_store *s, fz_sv bucket, const char *key, fz_arena *a, s3_target *out, fz_error *err) FZ_MUST_USE;
bool s3_is_table_bucket(fz_sv bucket); /* of S3 Tables: objects can be put and got, no more */

/* ---- requests ---- */

#define S3_HEADERS_MAX 24u
typedef struct s3_request {
    const char *op, *method;        /* op: S3's name of the operation */
    const char *location;           /* of the object, or of anything in the bucket */
    bool of_bucket;                 /* the request is about the bucket, not about the key */
    const char *query;              /* encoded; NULL: none */
    net_header header[S3_HEADERS_MAX];
    size_t n_headers;
    net_body body;
    const char *sha256;             /* of the body, hex; NULL: computed */
    bool customer_key;              /* SSE-C headers go with it */
    bool once;                      /* not to be sent again after an unknown outcome */
    int max_attempts;               /* 0: the store's */
    int64_t stall_timeout_ms;       /* 0: the session's */
    size_t max_answer;
    void *into;
} s3_request;
void s3_header(s3_request *rq, const char *name, const char *value);
/* Headers for an object that comes into being: encryption, ACL, storage class, tags. */
void s3_write_headers(const s3_store *s, s3_request *rq);
/* Body in memory, hashed here (hex must live as long as the request). */
void s3_body_bytes(s3_request *rq, const void *p, size_t n, char hex[65]);
/* x-amz-checksum-sha256 from the hex hash, in a. */
const char *s3_base64_of_hex(fz_arena *a, const char *hex);
/* Sends. Codes: USER "file.not-found", "file.no-bucket", "file.permission", "file.kms", "file.unsupported", "file.request", "aws.region", those of credentials;
 * CONFLICT "file.exists"; FATAL "file.too-large", "file.short"; RETRY "aws.unavailable", "aws.throttled", "file.conflicting" (another writer at the same
 * moment), "file.io" (a fault that a test asked for); UNKNOWN "aws.unknown" (only with once). Free out with aws_answer_free in any case. */
fz_status s3_send(s3_store *s, s3_request *rq, aws_answer *out, fz_error *err) FZ_MUST_USE;
/* Waits before try number `tries` (0: the second). */
void s3_back_off(unsigned tries);

/* ---- answers ---- */

#define S3_FIELDS_MAX 16u
typedef struct s3_record { const char *name; struct { const char *name, *text; } f[S3_FIELDS_MAX]; unsigned n; } s3_record;
const char *s3_field(const s3_record *r, const char *name); /* NULL: not there */
typedef bool (*s3_record_fn)(void *cx, const s3_record *r); /* false: stop */
/* Calls fn for each element directly below the root that has child elements (with the texts of those), and at the end for the root itself (with the texts
 * directly below it). Texts live in a. false: no well-formed XML. */
bool s3_xml_records(fz_arena *a, const char *xml, size_t n, s3_record_fn fn, void *cx);
/* Appends s as text of an element. false: a character that XML 1.0 cannot carry. */
bool s3_xml_escape(fz_buf *b, const char *s);
/* A key of a listing with encoding-type=url: %XX and '+' (a blank) undone. */
const char *s3_url_decode(fz_arena *a, const char *s);
/* "2009-10-12T17:50:30.000Z" in ms; 0 when it is something else. */
int64_t s3_time_ms(const char *s);

/* ---- objects ---- */

fz_status s3_get(s3_store *s, const char *location, size_t max, fz_buf *out, fz_error *err) FZ_MUST_USE;
fz_status s3_get_range(s3_store *s, const char *location, uint64_t from, size_t n, void *out, fz_error *err) FZ_MUST_USE;
/* mark (may be NULL): x-amz-meta-frazil-upload, in a; NULL if there is none. */
fz_status s3_head(s3_store *s, const char *location, uint64_t *size, fz_arena *a, const char **mark, fz_error *err) FZ_MUST_USE;
fz_status s3_put(s3_store *s, const char *location, const net_body *body, const char *sha256, fz_error *err) FZ_MUST_USE;
fz_status s3_put_if_absent(s3_store *s, const char *location, const void *p, size_t n, fz_error *err) FZ_MUST_USE;

typedef struct s3_item { const char *key; uint64_t size; int64_t mtime_ms; bool prefix; } s3_item; /* prefix: a common one, with delimiter */
typedef bool (*s3_item_fn)(void *cx, const s3_item *item);
/* All keys of location's bucket that begin with prefix, in order; delimiter NULL: all levels. fn may send requests. */
fz_status s3_list(s3_store *s, const char *location, const char *prefix, const char *delimiter, s3_item_fn fn, void *cx, fz_error *err) FZ_MUST_USE;
char *s3_dir_prefix(fz_arena *a, const char *key); /* "" -> "", "a" -> "a/", "a/" -> "a/" */

fz_status s3_delete(s3_store *s, const char *location, int max_attempts, fz_error *err) FZ_MUST_USE;
/* All are tried; err names the first that failed and how many did. */
fz_status s3_delete_many(s3_store *s, const char *const *locations, size_t n, fz_error *err) FZ_MUST_USE;

/* ---- the pool ---- */

typedef struct s3_job { void (*run)(void *cx); void *cx; uint64_t memory, disk; struct s3_job *next; } s3_job;
/* First in, first out; waits while the bounds are reached. threads: at most so many run at once from now on. Takes a copy of j. */
void s3_pool_push(const s3_job *j, unsigned threads);
/* Takes jobs of cx that have not begun out of the queue; how many. */
unsigned s3_pool_withdraw(const void *cx);

/* ---- staged uploads ---- */

/* The directory of staging files, made at the first call, when those of dead processes are removed. */
fz_status s3_stage_open(s3_store *s, const char **dir, fz_error *err) FZ_MUST_USE;
void s3_stage_close(s3_store *s); /* removes it */

typedef struct s3_upload s3_upload;
s3_upload *s3_upload_new(s3_store *s, const char *location, uint64_t tag);
/* Adds bytes at `at`, the count of bytes that it holds. On failure nothing was added, and the same call may be made again. */
fz_status s3_upload_add(s3_upload *u, uint64_t at, const void *p, size_t n, fz_error *err) FZ_MUST_USE;
/* After the last byte, by the owner: the parts that are left go to the pool. Then finish, in any thread. */
fz_status s3_upload_seal(s3_upload *u, uint64_t total, fz_error *err) FZ_MUST_USE;
uint64_t s3_upload_staged(const s3_upload *u); /* bytes on disk that finish has to send itself */
/* Makes the object of `total` bytes; u can only be freed then. RETRY when the outcome cannot be learned, too: then the object was asked to be deleted, since nobody knows its name. */
fz_status s3_upload_finish(s3_upload *u, uint64_t total, fz_error *err) FZ_MUST_USE;
void s3_upload_free(s3_upload *u); /* drops what is not finished; NULL is allowed */
size_t s3_upload_memory(const s3_upload *u);
fz_status s3_upload_try(s3_store *s, const char *location, fz_error *err) FZ_MUST_USE; /* begins one and gives it up */

/* ---- batches (s3_writer.c) ---- */

typedef struct s3_batch s3_batch;
/* Waits for all; on failure what was stored is deleted and the batch is empty. b NULL: FZ_OK. */
fz_status s3_batch_wait(s3_batch *b, fz_error *err) FZ_MUST_USE;
void s3_batch_done(s3_batch *b); /* they are kept: the batch is empty again */
void s3_batch_drop(s3_batch *b); /* deletes what was stored; the batch is empty again */
void s3_batch_free(s3_batch *b); /* drops what was not said to be done */

/* ---- unfinished uploads ---- */

/* Aborts multipart uploads of keys that begin with location's key and that were begun before older_than_ms (since the epoch). *n (may be NULL): how many. */
fz_status s3_sweep(s3_store *s, const char *location, int64_t older_than_ms, size_t *n, fz_error *err) FZ_MUST_USE;
#endif
