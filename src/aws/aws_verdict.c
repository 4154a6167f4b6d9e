/* What an attempt's outcome means: may it be tried again, has it perhaps had its effect, which class of error is it.
 *
 * Sources: the SDKs' "standard" retry mode (codes that mean throttling and expired credentials), S3 "Error responses", Glue and STS error lists.
 * A few codes say less than their status does: Glue's OperationTimeoutException comes with 400 though the operation may be done.
 */
#include "aws/aws_send_int.h"

static bool among(const char *code, const char *const *list) {
    for (; *list; list++)
        if (strcmp(code, *list) == 0) return true;
    return false;
}

static const char *const throttled[] = {"Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestThrottled", "TooManyRequestsException",
                                        "TooManyRequests", "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
                                        "BandwidthLimitExceeded", "LimitExceededException", "SlowDown", "PriorRequestNotComplete", "EC2ThrottledException", NULL};
/* The request was not taken whole. */
static const char *const not_taken[] = {"RequestTimeout", "RequestTimeoutException", NULL};
/* The service failed while it worked, whatever the status. */
static const char *const failed_inside[] = {"InternalError", "InternalFailure", "InternalServerError", "InternalServerException", "InternalServiceException",
                                            "InternalServiceError", "InternalServerErrorException", "OperationTimeoutException", "ServiceUnavailable",
                                            "ServiceUnavailableException", "FederationSourceRetryableException", "IDPCommunicationError", NULL};
static const char *const expired[] = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", NULL};
/* With temporary credentials: a token that the service does not know any more. */
static const char *const unrecognised[] = {"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "InvalidAccessKeyIdException", NULL};
static const char *const skewed[] = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "SignatureDoesNotMatch", "InvalidSignatureException", "AuthFailure", NULL};
static const char *const denied[] = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "UnauthorizedException", "UnauthorizedAccess", "ForbiddenException",
                                     "NotAuthorizedException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "AllAccessDisabled",
                                     "AccountProblem", "InvalidSignatureException", "IncompleteSignatureException", "IncompleteSignature", "OptInRequired",
                                     "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "ExpiredToken", "ExpiredTokenException", "InvalidToken",
                                     "TokenRefreshRequired", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired", NULL};
static const char *const not_found[] = {"NoSuchKey", "NoSuchBucket", "NoSuchUpload", "NoSuchVersion", "NoSuchAccessPoint", "EntityNotFoundException", "NotFoundException",
                                        "ResourceNotFoundException", NULL};
static const char *const conflict[] = {"ConcurrentModificationException", "ConflictException", "AlreadyExistsException", "ConditionalRequestConflict", "PreconditionFailed",
                                       "VersionMismatchException", "OperationAborted", "ConditionCheckFailureException", "ResourceExistsException", NULL};

static bool is_s3(const char *service) {
    return strcmp(service, "s3") == 0 || strcmp(service, "s3-outposts") == 0;
}

/* How far the server's clock is from what we sign with, or 0 when it did not say. */
static int64_t skew_beyond(const aws_answer *a, int64_t offset) {
    int64_t server;
    if (!aws_time_parse(net_answer_header(&a->http, "date"), &server)) return 0;
    return server - (a->http.received_ms + offset);
}

/* The region that S3 says a bucket is in, in the answer's arena, or NULL. */
static const char *region_told(const aws_answer *a) {
    const char *r = net_answer_header(&a->http, "x-amz-bucket-region");
    if (!r && a->http.body.data) r = aws_xml_text(a->http.arena, (const char *)a->http.body.data, "Region");
    if (!r || !r[0] || strlen(r) > 40 || strspn(r, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(r)) return NULL;
    return r;
}

/* An answer that asks for another signature: other credentials, another clock, another region. Nothing happened. */
static bool judge_signature(const aws_send_run *run, const aws_answer *a, aws_verdict *v) {
    const char *code = a->error_code;
    int status = a->http.status;
    if (run->rq->anonymous) return false;
    if (among(code, expired) || (run->creds.token && among(code, unrecognised))) {
        v->next = AWS_NEW_CREDENTIALS;
        return true;
    }
    if (is_s3(run->rq->service) && (status == 301 || status == 307 || status == 400 || strcmp(code, "AuthorizationHeaderMalformed") == 0)) {
        v->region = region_told(a);
        if (v->region && strcmp(v->region, run->region) != 0) {
            v->next = AWS_OTHER_REGION;
            return true;
        }
    }
    bool unexplained = status == 403 && a->http.body.len == 0; /* HEAD */
    if (!among(code, skewed) && !unexplained) return false;
    v->skew_ms = skew_beyond(a, run->offset_ms);
    if (v->skew_ms > -AWS_SKEW_TOLERATED_MS && v->skew_ms < AWS_SKEW_TOLERATED_MS) return false;
    v->next = AWS_SERVERS_CLOCK;
    return true;
}

static aws_verdict end(fz_status cls, const char *code) {
    return (aws_verdict){.next = AWS_END, .cls = cls, .code = code};
}
static aws_verdict later(fz_status cls, const char *code) {
    return (aws_verdict){.next = AWS_AGAIN_LATER, .cls = cls, .code = code, .maybe_applied = cls == FZ_UNKNOWN};
}

static aws_verdict judge_status(const aws_send_run *run, const aws_answer *a) {
    const char *code = a->error_code;
    int status = a->http.status;
    if (status == 429 || among(code, throttled)) {
        aws_verdict v = later(FZ_RETRY, "aws.throttled");
        v.throttled = true;
        return v;
    }
    if (among(code, not_taken) || status == 408) return later(FZ_RETRY, "aws.unavailable");
    if (status == 501 || status == 505) return end(FZ_USER, "aws.request");
    bool named = run->in_200 && (among(code, not_found) || among(code, conflict) || among(code, denied));
    if ((status >= 500 && !named) || among(code, failed_inside)) return later(FZ_UNKNOWN, "aws.unknown");
    aws_verdict v = end(FZ_USER, "aws.denied");
    if (judge_signature(run, a, &v)) {
        if (v.next == AWS_OTHER_REGION) v.code = "aws.region";
        return v;
    }
    if (among(code, conflict)) return end(FZ_CONFLICT, "aws.conflict");
    if (among(code, not_found) || status == 404) return end(FZ_USER, "aws.not-found");
    if (status == 409 || status == 412) return end(FZ_CONFLICT, "aws.conflict");
    if (status == 401 || status == 403 || among(code, denied)) return v;
    if (is_s3(run->rq->service) && (status == 301 || status == 307 || strcmp(code, "AuthorizationHeaderMalformed") == 0)) return end(FZ_USER, "aws.region");
    return end(FZ_USER, "aws.request");
}

aws_verdict aws_judge(const aws_send_run *run, const aws_answer *a, fz_status sent) {
    aws_verdict v = sent == FZ_OK ? judge_status(run, a) : sent == FZ_RETRY ? later(FZ_RETRY, "aws.unavailable") : sent == FZ_UNKNOWN ? later(FZ_UNKNOWN, "aws.unknown") : end(sent, "");
    if (v.maybe_applied && !run->rq->idempotent) v.next = AWS_END;
    if (v.maybe_applied && run->rq->idempotent) {
        v.cls = FZ_RETRY;
        v.code = "aws.unavailable";
    }
    return v;
}
