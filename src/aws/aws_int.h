/* What the files of this room share.
 *
 * aws_session.c owns struct aws_session and embeds one aws_send_state in it; the request half (aws_send*.c) reaches it by
 * aws_session_send_state and owns what is in it.
 * Threads: any, unless said.
 */
#ifndef AWS_AWS_INT_H
#define AWS_AWS_INT_H
#include "aws/aws.h"
#include <pthread.h>

/* ---- what the request half keeps per session ---- */


typedef struct aws_send_state {
    pthread_mutex_t lock;
    int64_t skew_ms;    /* server's clock minus ours, learned from a refused request; under lock */
    struct { char *host, *region; } learned[FZ_MAX_LEARNED_REGIONS]; /* under lock */
    size_t n_learned;
} aws_send_state;
void aws_send_state_init(aws_send_state *st);
void aws_send_state_free(aws_send_state *st);

/* Implemented by aws_session.c. */
aws_send_state *aws_session_send_state(aws_session *s);
int aws_session_max_attempts(const aws_session *s); /* AWS_MAX_ATTEMPTS, the profile's max_attempts, else 5; at least 1 */
const char *aws_session_proxy(const aws_session *s);          /* see net_request */
int64_t aws_session_connect_timeout_ms(const aws_session *s); /* 0: net's default */
int64_t aws_session_stall_timeout_ms(const aws_session *s);   /* 0: net's default */

/* ---- time ---- */

/* How aws_send waits between attempts; fz_sleep_ms unless a test sets another. Set it before threads start. */
extern void (*aws_sleep)(int64_t ms);
/* "2015-08-30T12:36:00Z", with fractions or an offset, or "Sun, 06 Nov 1994 08:49:37 GMT" -> ms since the epoch; false: neither. */
bool aws_time_parse(const char *text, int64_t *ms);
/* ms -> "20150830T123600Z". */
void aws_time_basic(int64_t ms, char out[17]);

/* ---- errors of a service ---- */

/* Takes code and message out of an answer's headers and body into a (error_code, error_message, request_id). */
void aws_error_parse(aws_answer *a);
/* The access key with all but its last four characters masked, into out. */
const char *aws_mask_key(const char *access_key, char out[16]);

/* ---- parts of a canonical request: aws_sign.c, aws_verify.c ---- */

void aws_put_path(fz_buf *b, const char *path, bool encode_twice, fz_arena *a);
void aws_put_query(fz_buf *b, const char *query, fz_arena *a); /* sorted, encoded anew; NULL: none */
const char *aws_folded(const char *value, fz_arena *a);        /* a header's value: blanks off both ends, runs of blanks inside to one */
/* Hex signature over a canonical request, which is freed. when: "20150830T123600Z". */
void aws_sign_request(const char *secret, fz_buf *canonical, const char *when, const char *region, const char *service, char out[65]);

/* ---- hashes ---- */

void aws_sha256_raw(const void *p, size_t n, uint8_t out[32]);
void aws_hmac_sha256(const void *key, size_t n_key, const void *p, size_t n, uint8_t out[32]);
void aws_hex(const uint8_t *p, size_t n, char *out); /* lower case, ends with NUL */
#endif
