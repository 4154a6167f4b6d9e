/* Firehose's prefix language and the names of objects.
 *
 *     !{timestamp:<pattern of java.time.format.DateTimeFormatter>}    of the oldest record of the object
 *     !{firehose:random-string}                                       11 characters, another one at each use
 *     !{firehose:error-output-type}                                   error prefixes only
 *
 * Invariants
 *  1. The same moment and the same uuid give the same location: a random string follows from the uuid and its place.
 *  2. Every pattern has been tried when arc_prefix_new answers, so that arc_prefix_eval cannot fail.
 * Source: Amazon Data Firehose, custom prefixes for S3 objects.
 */
#include "aws/aws.h"
#include "col/dtpattern.h"
#include "delivery/archive_int.h"
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#define TEXT_MAX 1024           /* of a prefix as it is written */
#define PARTS_MAX 64

typedef enum { PART_TEXT, PART_TIME, PART_RANDOM, PART_ERROR_TYPE } part_kind;
typedef struct part { part_kind kind; const char *text; const dt_pattern *pattern; } part;
struct arc_prefix { uint32_t n; part v[PARTS_MAX]; };

typedef struct reader { fz_arena *a; arc_prefix *p; bool is_error; bool times, types, any; } reader;

static fz_status bad(fz_error *err, fz_sv expression, const char *why) {
    return fz_fail(err, FZ_USER, "delivery.prefix", "the expression '%.*s' of a prefix %s", (int)expression.n, expression.p, why);
}

static part *add(reader *r, part_kind kind) {
    part *p = &r->p->v[r->p->n++];
    *p = (part){.kind = kind};
    return p;
}

static fz_status read_time(reader *r, fz_sv whole, fz_sv pattern, fz_error *err) {
    dt_pattern *p;
    fz_error own;
    if (pattern.n == 0) return bad(err, whole, "has no pattern after 'timestamp:'");
    if (dt_pattern_new(pattern, &p, &own) != FZ_OK) {
        bad(err, whole, "has a pattern that java.time.format.DateTimeFormatter does not take");
        return fz_detail(err, "%s", own.message);
    }
    static const int64_t widest = 253402300799999999; /* 9999-12-31T23:59:59.999999 */
    fz_buf probe = {0};
    fz_status rc = dt_pattern_format(p, 0, &probe, &own);
    if (rc == FZ_OK) rc = dt_pattern_format(p, widest, &probe, &own);
    fz_buf_free(&probe);
    if (rc == FZ_OK) {
        add(r, PART_TIME)->pattern = dt_pattern_copy(r->a, p);
        r->times = true;
    }
    dt_pattern_free(p);
    if (rc == FZ_OK) return FZ_OK;
    bad(err, whole, "cannot be printed");
    return fz_detail(err, "%s", own.message);
}

static fz_status read_firehose(reader *r, fz_sv whole, fz_sv value, fz_error *err) {
    if (fz_sv_eq(value, FZ_SV("random-string"))) return add(r, PART_RANDOM), FZ_OK;
    if (!fz_sv_eq(value, FZ_SV("error-output-type"))) return bad(err, whole, "is unknown: the namespace 'firehose' has random-string and error-output-type");
    if (!r->is_error) return bad(err, whole, "may only stand in 'error.path'");
    add(r, PART_ERROR_TYPE);
    r->types = true;
    return FZ_OK;
}

/* whole: "!{ns:value}". */
static fz_status read_expression(reader *r, fz_sv whole, fz_error *err) {
    fz_sv in = {whole.p + 2, whole.n - 3};
    const char *colon = memchr(in.p, ':', in.n);
    if (!colon) return bad(err, whole, "is not of the form !{namespace:value}");
    fz_sv ns = {in.p, (size_t)(colon - in.p)}, value = {colon + 1, in.n - ns.n - 1};
    r->any = true;
    if (fz_sv_eq(ns, FZ_SV("timestamp"))) return read_time(r, whole, value, err);
    if (fz_sv_eq(ns, FZ_SV("firehose"))) return read_firehose(r, whole, value, err);
    if (fz_sv_eq(ns, FZ_SV("partitionKeyFromQuery")) || fz_sv_eq(ns, FZ_SV("partitionKeyFromLambda"))) {
        bad(err, whole, "needs dynamic partitioning, which this archive does not do");
        return fz_hint(err, "write one INSERT with a WHERE for each prefix, or a partitioned Iceberg table");
    }
    return bad(err, whole, "has an unknown namespace: 'timestamp' and 'firehose' are known");
}

static fz_status read_text(reader *r, const char *s, fz_error *err) {
    while (*s) {
        if (r->p->n > PARTS_MAX - 4) return fz_fail(err, FZ_USER, "delivery.prefix", "a prefix has more than %d parts", PARTS_MAX - 4);
        const char *mark = strstr(s, "!{");
        size_t n = mark ? (size_t)(mark - s) : strlen(s);
        if (n) add(r, PART_TEXT)->text = fz_arena_strndup(r->a, s, n);
        if (!mark) return FZ_OK;
        const char *end = strchr(mark, '}');
        if (!end) return bad(err, fz_sv_of(mark), "is not closed by '}'");
        FZ_TRY(read_expression(r, (fz_sv){mark, (size_t)(end + 1 - mark)}, err));
        s = end + 1;
    }
    return FZ_OK;
}

fz_status arc_prefix_new(fz_arena *a, const char *text, bool is_error, const arc_prefix **out, fz_error *err) {
    reader r = {.a = a, .p = FZ_ANEW(a, arc_prefix), .is_error = is_error};
    size_t n = strlen(text);
    if (n > TEXT_MAX) return fz_fail(err, FZ_USER, "delivery.prefix", "a prefix has %zu characters, more than %d", n, TEXT_MAX);
    FZ_TRY(read_text(&r, text, err));
    *out = r.p;
    if (is_error && r.any) {
        if (r.types) return FZ_OK;
        return fz_fail(err, FZ_USER, "delivery.prefix", "'error.path' has expressions, so it must have !{firehose:error-output-type} too");
    }
    if (is_error) {
        add(&r, PART_ERROR_TYPE);
        add(&r, PART_TEXT)->text = "/";
    }
    return r.times ? FZ_OK : read_time(&r, FZ_SV("!{timestamp:yyyy/MM/dd/HH/}"), FZ_SV("yyyy/MM/dd/HH/"), err);
}

static void put_random(fz_buf *out, const char *uuid, uint32_t nth) {
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    char seed[64], hex[65];
    int n = snprintf(seed, sizeof seed, "%s/%u", uuid, nth);
    aws_sha256_hex(seed, (size_t)n, hex);
    for (int i = 0; i < 11; i++) { /* four hex digits a character: 65536 is large beside 62 */
        unsigned v = 0;
        sscanf(hex + 4 * i, "%4x", &v);
        fz_buf_putc(out, abc[v % 62]);
    }
}

void arc_prefix_eval(const arc_prefix *p, int64_t local_us, const char *uuid, const char *error_type, fz_buf *out) {
    fz_error ignored;
    for (uint32_t i = 0; i < p->n; i++) switch (p->v[i].kind) {
        case PART_TEXT: fz_buf_puts(out, p->v[i].text); break;
        case PART_TIME: (void)!dt_pattern_format(p->v[i].pattern, local_us, out, &ignored); break;
        case PART_RANDOM: put_random(out, uuid, i); break;
        case PART_ERROR_TYPE: fz_buf_puts(out, error_type ? error_type : ""); break;
        }
}

void arc_name(fz_buf *out, const char *stream, const char *version, int64_t local_us, const char *uuid, const char *extension) {
    dt_fields f;
    dt_fields_of(local_us, &f);
    fz_buf_printf(out, "%s-%s-%04d-%02d-%02d-%02d-%02d-%02d-%s%s", stream, version, f.year, f.month, f.day, f.hour, f.minute, f.second, uuid, extension);
}

static bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'; }

bool arc_stream_name_ok(const char *s) {
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!is_name_char(s[i])) return false;
    return n >= 1 && n <= 64;
}

const char *arc_stream_name(fz_arena *a, const char *text) {
    char *s = fz_arena_strdup(a, text);
    size_t n = strlen(s);
    if (n > 64) s[64] = 0;
    for (char *p = s; *p; p++)
        if (!is_name_char(*p)) *p = '-';
    return n ? s : "archive";
}

static void sha1_uuid(const uint8_t space[16], const char *text, uint8_t out[16]) {
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (!c || !EVP_DigestInit_ex(c, EVP_sha1(), NULL) || !EVP_DigestUpdate(c, space, 16) || !EVP_DigestUpdate(c, text, strlen(text)) || !EVP_DigestFinal_ex(c, sum, &n)) abort(); /* as without memory */
    EVP_MD_CTX_free(c);
    memcpy(out, sum, 16);
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x50);
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

void arc_uuid5(const char *space, const char *text, char out[37]) {
    /* the namespace for URLs of RFC 4122 */
    static const uint8_t urls[16] = {0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
    uint8_t ours[16], id[16];
    sha1_uuid(urls, space, ours);
    sha1_uuid(ours, text, id);
    for (int i = 0, at = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out[at++] = '-';
        snprintf(out + at, 3, "%02x", id[i]);
        at += 2;
    }
}

static bool has_store(const char *s) {
    static const char *const schemes[] = {"s3://", "s3a://", "s3n://", "s3p://", "mem://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (fz_starts(s, schemes[i])) return true;
    return fio_local_path(s) != NULL;
}

const char *arc_split_location(fz_arena *a, const char *s, const char **base) {
    const char *scheme = strstr(s, "://"), *p = s;
    if (scheme) {
        if (!has_store(s)) return NULL;
        p = strchr(scheme + 3, '/');
        if (!p && scheme[3]) return *base = fz_arena_printf(a, "%s/", s), "";
    } else if (fz_starts(s, "file:/")) p = s + 5;
    else if (*s != '/') return NULL;
    if (!p) return NULL;
    *base = fz_arena_strndup(a, s, (size_t)(p + 1 - s));
    return p + 1;
}

const char *arc_fixed_part(fz_arena *a, const char *base, const char *prefix) {
    const char *expression = strstr(prefix, "!{");
    size_t n = expression ? (size_t)(expression - prefix) : strlen(prefix);
    bool local = *base == '/' || fz_starts(base, "file:");
    return fz_arena_printf(a, "%s%.*s%s", base, (int)n, prefix, local && !expression && n && prefix[n - 1] != '/' ? "/" : "");
}

void arc_error_line(const arc_failure *f, fz_sv row, int64_t arrival_ms, fz_buf *out) {
    fz_buf_printf(out, "{\"attemptsMade\":%u,\"arrivalTimestamp\":%" PRId64 ",\"errorCode\":\"%s\",\"errorMessage\":", f->attempts, arrival_ms, f->code);
    fz_buf_json(out, f->message, strlen(f->message));
    fz_buf_printf(out, ",\"attemptEndingTimestamp\":%" PRId64 ",\"rawData\":\"", f->last_attempt_ms);
    fz_buf_base64(out, row.p, row.n);
    fz_buf_puts(out, "\",\"table\":");
    fz_buf_json(out, f->table, strlen(f->table));
    fz_buf_puts(out, "}\n");
}
