/* What all AWS services share: who we are (credentials), where they are (region, endpoints), signatures, retries, errors.
 *
 * What it does not do: it knows no service's operations but STS's (AssumeRole, AssumeRoleWithWebIdentity, GetCallerIdentity) and SSO's.
 *
 * Invariants
 *  1. Secrets leave this room only in Authorization headers, signed URLs and requests to credential services; never in errors or logs.
 *  2. Each attempt of a request is signed anew, with credentials that are valid then.
 *  3. aws_send never sends a request a second time after an outcome that may have been an effect, unless it is `idempotent`.
 * Threads: an aws_session and an aws_provider may be used by any number of threads.
 */
#ifndef AWS_AWS_H
#define AWS_AWS_H
#include "base/base.h"
#include "net/net.h"
#include <jansson.h>

/* ---- credentials ---- */

typedef struct aws_credentials {
    const char *access_key, *secret_key, *token; /* token NULL: none */
    int64_t expires_ms;    /* since the epoch; 0: never */
    const char *source;    /* which link of the chain, for people: "environment", "profile 'home-aws'", "IMDSv2, role r" */
    const char *account;   /* account id if the source told, else NULL */
    uint64_t generation;   /* grows with each refresh of its provider */
} aws_credentials;

/* Gives credentials, refreshes them before they expire (5 minutes, or a tenth of their life if that is less; when a refresh fails while the old ones are
 * still valid, the old ones go on). Reference counted. */
typedef struct aws_provider aws_provider;
aws_provider *aws_provider_ref(aws_provider *p);
void aws_provider_unref(aws_provider *p); /* NULL is allowed */
/* Copies into a. USER "aws.no-credentials" (detail: each link that was asked and what it said), "aws.credentials" (a link is there but wrong);
 * RETRY "aws.credentials-unavailable" (a credential service did not answer). */
fz_status aws_provider_get(aws_provider *p, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
/* A service said that these (by generation) have expired or are unknown: the next get fetches new ones. */
void aws_provider_expired(aws_provider *p, uint64_t generation);
/* Fixed ones. */
aws_provider *aws_provider_static(const char *access_key, const char *secret_key, const char *token, const char *source);
/* Those that fetch makes (vended by a catalog); fetch runs under the provider's lock, in any thread. free_cx may be NULL. */
typedef fz_status (*aws_fetch)(void *cx, fz_arena *a, aws_credentials *out, fz_error *err);
aws_provider *aws_provider_custom(aws_fetch fetch, void *cx, void (*free_cx)(void *cx));

/* ---- session: options, environment and profile, read once ---- */

typedef struct aws_session aws_session;
/* o: options by Iceberg's names; those of aws_options() count, others are left to their owners. */
fz_status aws_session_new(const fz_pair *o, size_t n, aws_session **out, fz_error *err) FZ_MUST_USE;
aws_session *aws_session_ref(aws_session *s);
void aws_session_unref(aws_session *s); /* NULL is allowed */
const fz_option *aws_options(void);     /* client.*, ends with a NULL name */
/* Option client.region, AWS_REGION, AWS_DEFAULT_REGION, the profile's region, IMDS. USER "aws.no-region". source (may be NULL): which of them. */
fz_status aws_session_region(aws_session *s, const char **region, const char **source, fz_error *err) FZ_MUST_USE;
aws_provider *aws_session_provider(aws_session *s); /* the chain (or the assumed role over it); borrowed */
const char *aws_session_profile(const aws_session *s);
const net_tls *aws_session_tls(const aws_session *s); /* AWS_CA_BUNDLE, profile's ca_bundle, SSL_CERT_FILE */
/* For net_request: option http-client.proxy-endpoint (NULL: the environment's), http-client.*.connection-timeout-ms and socket-timeout-ms (0: the defaults). */
const char *aws_session_proxy(const aws_session *s);
int64_t aws_session_connect_timeout_ms(const aws_session *s);
int64_t aws_session_stall_timeout_ms(const aws_session *s);
/* Base URL without a trailing slash of a service ("glue", "s3tables", "sts", "logs", "s3", ...): `given` (an option such as glue.endpoint) if not NULL, else
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's services section and endpoint_url, else https://<service>[-fips].<region>.<suffix of the
 * partition>, dual stack and FIPS as the options and AWS_USE_DUALSTACK_ENDPOINT / AWS_USE_FIPS_ENDPOINT say. custom (may be NULL): it was configured, not derived. */
fz_status aws_endpoint(aws_session *s, const char *service, const char *given, fz_arena *a, const char **url, bool *custom, fz_error *err) FZ_MUST_USE;
bool aws_session_dualstack(const aws_session *s);
bool aws_session_fips(const aws_session *s);
const char *aws_dns_suffix(const char *region); /* "amazonaws.com", "amazonaws.com.cn", ... */
const char *aws_partition(const char *region);  /* "aws", "aws-cn", "aws-us-gov", ... */

/* ---- signatures (SigV4) ---- */

typedef struct aws_sign_input {
    const char *service, *region, *method, *host; /* host as in the Host header, with the port when it is not the scheme's */
    const char *path, *query;      /* as on the wire; query NULL: none */
    const net_header *headers;     /* all are signed; names in any case */
    size_t n_headers;
    const char *payload_sha256;    /* hex, or "UNSIGNED-PAYLOAD" */
    int64_t now_ms;
    bool encode_path_twice;        /* every service but s3 */
    bool content_sha256_header;    /* sends x-amz-content-sha256 (s3, s3tables, glue REST) */
} aws_sign_input;
/* Headers to add, in a: x-amz-date, x-amz-security-token, x-amz-content-sha256, authorization. *n <= 4. */
void aws_sign(const aws_credentials *c, const aws_sign_input *in, fz_arena *a, net_header *out, size_t *n);
/* Signature in the query, for GET: MSK's login tokens. Gives "https://host/path?...&X-Amz-Signature=..." */
const char *aws_presign(const aws_credentials *c, const char *service, const char *region, const char *host, const char *query, int64_t now_ms, int64_t valid_s, fz_arena *a);
/* The other side: is a request that came in signed by somebody we know? Signatures in the Authorization header, not in the query. */
typedef struct aws_verify_input {
    const char *service, *region;  /* what the signature must be for; region NULL: any */
    const char *method, *path, *query; /* as on the wire; query NULL: none */
    const net_header *headers;     /* as they came, in order; names in any case */
    size_t n_headers;
    const void *body;              /* as it came */
    size_t n_body;
    int64_t now_ms;
    bool encode_path_twice;
} aws_verify_input;
/* The secret of an access key, NULL: unknown. Wanted only for the time of the call. */
typedef const char *(*aws_secret_of)(void *cx, const char *access_key);
/* host, the date and those of x-amz-date, x-amz-target, x-amz-security-token and x-amz-content-sha256 that are there must be signed; the date is 5 minutes off at most; the signatures are compared in constant time.
 * USER with AWS's name of the error as the code and AWS's words: MissingAuthenticationTokenException, IncompleteSignatureException, InvalidSignatureException, UnrecognizedClientException. Any thread. */
fz_status aws_verify(const aws_verify_input *in, aws_secret_of secret_of, void *cx, fz_error *err) FZ_MUST_USE;
void aws_sha256_hex(const void *p, size_t n, char out[65]);
/* Incremental, for bodies that come in pieces. */
typedef struct aws_sha256 aws_sha256;
aws_sha256 *aws_sha256_new(void);
void aws_sha256_add(aws_sha256 *h, const void *p, size_t n);
void aws_sha256_hex_end(aws_sha256 *h, char out[65]); /* and starts anew */
void aws_sha256_free(aws_sha256 *h);

/* The token of AWS_MSK_IAM for SASL/OAUTHBEARER (base64url of a presigned kafka-cluster:Connect, 15 minutes); in a. region NULL: the session's.
 * *expires_ms: when the token or its credentials do. *principal (may be NULL): whose credentials, for people. */
fz_status aws_msk_token(aws_session *s, const char *region, fz_arena *a, const char **token, int64_t *expires_ms, const char **principal, fz_error *err) FZ_MUST_USE;

/* ---- requests ---- */

typedef struct aws_request {
    const char *service;           /* signing name: "s3", "glue", "s3tables", "sts", ... */
    const char *region;            /* NULL: the session's */
    aws_provider *provider;        /* NULL: the session's */
    const char *method, *endpoint; /* endpoint: scheme://host[:port], no path */
    const char *path, *query;      /* encoded; path begins with '/', query NULL or "a=b&c" */
    const net_header *headers;     /* besides those of the signature */
    size_t n_headers;
    net_body body;
    const char *payload_sha256;    /* NULL: computed from the body (also of a file) */
    bool idempotent;               /* may be sent again after an unknown outcome */
    bool anonymous;                /* no signature */
    bool error_in_200;             /* a 200 whose body is <Error> is an error (CompleteMultipartUpload, CopyObject); its status is taken as 500 then */
    int max_attempts;              /* 0: the session's (AWS_MAX_ATTEMPTS, profile's max_attempts, default 5) */
    int64_t timeout_ms;            /* of one attempt; 0: none but the stall limit */
    int64_t stall_timeout_ms;      /* for operations that take their time before they answer; the session's when that is longer */
    size_t max_answer;
    void *into;                    /* see net_request */
} aws_request;

typedef struct aws_answer {
    net_answer http;
    char error_code[96];           /* "EntityNotFoundException", "SlowDown", ""; from JSON, XML or x-amzn-errortype */
    char error_message[512];
    char request_id[96];
    int attempts;
    bool maybe_applied;            /* some attempt (or a sending of it that the transport repeated) had an unknown outcome: a conflict or "not found" now, or at
                                    * the next call, may be our own doing */
} aws_answer;

/* Signs, sends, and tries again (full jitter back-off from 100 ms to 20 s; connect failures, throttling (429, 503 SlowDown, ThrottlingException...), and for
 * idempotent requests 500, 502, 503, 504 and lost answers; ExpiredToken, ExpiredTokenException, InvalidToken and the like after a refresh of the credentials; RequestTimeTooSkewed and
 * SignatureDoesNotMatch with a skewed clock after taking the server's time; a wrong region after taking the one in x-amz-bucket-region).
 * FZ_OK: a status below 400. Else the error's class and code:
 *   400, 403 -> USER "aws.denied" (403, AccessDenied...) or "aws.request"; 404 -> USER "aws.not-found"; 409, 412 -> CONFLICT "aws.conflict"; throttled to the end -> RETRY "aws.throttled";
 *   5xx or no answer: RETRY "aws.unavailable" when nothing can have happened or the request is idempotent, else UNKNOWN "aws.unknown"; 301/307 for another region that did not help -> USER "aws.region".
 * The message names service, operation, status, error code and message of the service, never a secret; the detail has the request id, and for 403 which credentials
 * were used (source and access key's last four). out is filled in any case; free it with aws_answer_free. */
fz_status aws_send(aws_session *s, const aws_request *rq, aws_answer *out, fz_error *err) FZ_MUST_USE;
void aws_answer_free(aws_answer *a);

/* One call of a JSON 1.1 service: target "AWSGlue.GetTable". *out (may be NULL) is the answer, the caller's to json_decref. ans (may be NULL) gets the rest; then the caller
 * frees it. endpoint as aws_endpoint gives it. */
fz_status aws_json_call(aws_session *s, const char *service, const char *endpoint, const char *target, const json_t *in, bool idempotent, json_t **out, aws_answer *ans, fz_error *err) FZ_MUST_USE;
/* One call of a query service (STS, IAM): params "Action=GetCallerIdentity&Version=2011-06-15"; *xml is the body. */
fz_status aws_query_call(aws_session *s, const char *service, const char *endpoint, const char *params, fz_arena *a, const char **xml, aws_answer *ans, fz_error *err) FZ_MUST_USE;
/* Text of the first element <name> in xml, unescaped, NULL if there is none. */
const char *aws_xml_text(fz_arena *a, const char *xml, const char *name);

typedef struct aws_identity { const char *account, *arn, *user_id; } aws_identity;
fz_status aws_caller_identity(aws_session *s, fz_arena *a, aws_identity *out, fz_error *err) FZ_MUST_USE;
#endif
