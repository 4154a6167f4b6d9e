/* The login token of MSK's IAM access control: a presigned GET of kafka-cluster:Connect, base64url.
 *
 * The host is kafka.<region>.amazonaws.com in every partition, as the vendor's signers have it.
 *
 * Source: the vendor's aws-msk-iam-sasl-signer (compared: test/data/aws/msk.tsv), and the MSK Developer Guide, "IAM access control".
 */
#include "aws/aws_cred_int.h"

enum { VALID_S = 900 };

fz_status aws_msk_token(aws_session *s, const char *region, fz_arena *a, const char **token, int64_t *expires_ms, const char **principal, fz_error *err) {
    aws_credentials c;
    if (!region) FZ_TRY(aws_session_region(s, &region, NULL, err));
    FZ_TRY(aws_provider_get(aws_session_provider(s), a, &c, err));
    int64_t now = fz_now_ms();
    const char *host = fz_arena_printf(a, "kafka.%s.amazonaws.com", region);
    const char *url = aws_presign(&c, "kafka-cluster", region, host, "Action=kafka-cluster%3AConnect", now, VALID_S, a);
    fz_buf full = {0}, b64 = {0};
    fz_buf_printf(&full, "%s&User-Agent=frazil", url);
    fz_buf_base64(&b64, full.data, full.len);
    while (b64.len && b64.data[b64.len - 1] == '=') b64.len--;
    for (size_t i = 0; i < b64.len; i++)
        if (b64.data[i] == '+' || b64.data[i] == '/') b64.data[i] = b64.data[i] == '+' ? '-' : '_';
    *token = fz_arena_strndup(a, (const char *)b64.data, b64.len);
    aws_buf_wipe(&full);
    aws_buf_wipe(&b64);
    *expires_ms = now / 1000 * 1000 + VALID_S * 1000;
    if (c.expires_ms && c.expires_ms < *expires_ms) *expires_ms = c.expires_ms;
    if (principal) *principal = fz_arena_strdup(a, c.source);
    return FZ_OK;
}
