/* Private to the request half: one call of aws_send, and the verdict on an attempt. */
#ifndef AWS_AWS_SEND_INT_H
#define AWS_AWS_SEND_INT_H
#include "aws/aws_int.h"

#define AWS_SKEW_TOLERATED_MS (4 * 60 * 1000) /* the services refuse 5 minutes (S3 15) */
#define AWS_BACKOFF_BASE_MS 100
#define AWS_BACKOFF_THROTTLED_MS 500
#define AWS_BACKOFF_CAP_MS 20000

typedef struct aws_send_run {
    aws_session *session;
    const aws_request *rq;
    aws_provider *provider;
    fz_arena *arena;        /* of one attempt */
    aws_credentials creds;  /* of the last attempt, in arena */
    char host[280];         /* as in the Host header */
    char scheme[8];
    char region[64];        /* signed with */
    char operation[160];    /* "glue GetTable", "s3 PUT /key", for messages */
    int64_t offset_ms;      /* server's clock minus ours */
    int max_attempts, failures; /* attempts that count against max_attempts */
    int refreshed, moved;   /* new credentials and regions that were taken */
    bool clock_taken;
    bool ask_first;         /* a body was cut off: the next attempt asks before it sends one */
    bool in_200;            /* the last error stood in a 200 */
} aws_send_run;

typedef enum { AWS_END, AWS_AGAIN_LATER, AWS_NEW_CREDENTIALS, AWS_SERVERS_CLOCK, AWS_OTHER_REGION } aws_next;
typedef struct aws_verdict {
    aws_next next;
    fz_status cls;          /* if this attempt was the last */
    const char *code;
    bool maybe_applied, throttled;
    const char *region;     /* AWS_OTHER_REGION; in the answer's arena */
    int64_t skew_ms;        /* AWS_SERVERS_CLOCK: to add to the offset */
} aws_verdict;
/* Of an attempt that did not succeed. sent: what net_exchange said. */
aws_verdict aws_judge(const aws_send_run *run, const aws_answer *a, fz_status sent);
/* Fills err from the verdict on the last attempt; returns its class. */
fz_status aws_send_fail(const aws_send_run *run, const aws_answer *a, const aws_verdict *v, fz_status sent, fz_error *err) FZ_MUST_USE;
/* Full jitter: a random part of base * 2^(failures - 1), at most the cap; at least what Retry-After says, within the cap. */
int64_t aws_backoff_ms(int failures, bool throttled, const char *retry_after, int64_t now_ms);
#endif
