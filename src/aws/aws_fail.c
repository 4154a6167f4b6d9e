/* The text of a failed request. See aws.h: never a secret. */
#include "aws/aws_send_int.h"

static fz_status fail_region(const aws_send_run *run, const aws_answer *a, const aws_verdict *v, fz_error *err) {
    if (v->region)
        fz_fail(err, FZ_USER, "aws.region", "%s: the bucket is in region %s; asked at %s and signed for %s it answers HTTP %d", run->operation, v->region, run->host, run->region, a->http.status);
    else
        fz_fail(err, FZ_USER, "aws.region", "%s: the bucket is in another region than %s (HTTP %d %s), and the answer does not say which", run->operation, run->region, a->http.status, a->error_code);
    return fz_hint(err, "set the region of the bucket (option s3.region or client.region, or AWS_REGION), and no endpoint of another region");
}

static void add_hint(const aws_send_run *run, const aws_answer *a, fz_error *err) {
    const char *code = a->error_code;
    if (strcmp(code, "SignatureDoesNotMatch") == 0 || strcmp(code, "InvalidSignatureException") == 0)
        fz_hint(err, "the secret key does not belong to this access key, or a proxy changes the request");
    else if (strcmp(code, "InvalidAccessKeyId") == 0 || strcmp(code, "UnrecognizedClientException") == 0 || strcmp(code, "InvalidClientTokenId") == 0)
        fz_hint(err, "the service does not know this access key: is it deleted, of another partition, or of another endpoint?");
    else if (fz_starts(code, "ExpiredToken") || strcmp(code, "TokenRefreshRequired") == 0)
        fz_hint(err, "the credentials have expired and their source has no newer ones");
    else if (a->http.status == 403 && !a->error_message[0] && strcmp(run->rq->method, "HEAD") == 0)
        fz_hint(err, "an answer to HEAD gives no reason; S3 says 403 for a missing object, too, when s3:ListBucket is not granted");
}

fz_status aws_send_fail(const aws_send_run *run, const aws_answer *a, const aws_verdict *v, fz_status sent, fz_error *err) {
    char key[16], times[32] = "";
    if (a->attempts > 1) snprintf(times, sizeof times, " (%d attempts)", a->attempts);
    if (sent != FZ_OK) { /* no answer: net's message, class and code of ours where they say more */
        fz_context(err, "%s%s", run->operation, times);
        if (sent != FZ_RETRY && sent != FZ_UNKNOWN) return sent;
        err->cls = v->cls;
        snprintf(err->detail, sizeof err->detail, "%s", err->code);
        snprintf(err->code, sizeof err->code, "%s", v->code);
        return v->cls;
    }
    if (strcmp(v->code, "aws.region") == 0) return fail_region(run, a, v, err);
    const char *why = v->cls == FZ_UNKNOWN ? "; whether it was done is not known" : "";
    fz_fail(err, v->cls, v->code, "%s: HTTP %d%s%s%s%s%s%s", run->operation, a->http.status, a->error_code[0] ? " " : "", a->error_code, a->error_message[0] ? ": " : "",
            a->error_message, times, why);
    add_hint(run, a, err);
    const char *id = a->request_id[0] ? a->request_id : "none";
    if ((a->http.status == 403 || strcmp(v->code, "aws.denied") == 0) && !run->rq->anonymous)
        return fz_detail(err, "request id %s; credentials from %s, access key %s; host %s, region %s", id, run->creds.source ? run->creds.source : "?", aws_mask_key(run->creds.access_key, key),
                         run->host, run->region);
    return fz_detail(err, "request id %s, host %s", id, run->host);
}
