/* What the identity half of this room shares: profile files, links of the chain, providers, the session's inside.
 *
 * Threads: aws_profiles belongs to one thread until it is complete, then any may read it; the rest is said below.
 */
#ifndef AWS_AWS_CRED_INT_H
#define AWS_AWS_CRED_INT_H
#include "aws/aws_int.h"
#include <stdatomic.h>

/* ---- profile files ---- */

typedef enum { AWS_SECTION_PROFILE, AWS_SECTION_SSO_SESSION, AWS_SECTION_SERVICES } aws_section_kind;
typedef struct aws_profiles aws_profiles;

aws_profiles *aws_profiles_new(void);
void aws_profiles_free(aws_profiles *p); /* wipes the values; NULL is allowed */
/* Adds what a file says. Properties given before are replaced, so the credentials file goes last. USER "aws.profile-file" names path and line. */
fz_status aws_profiles_parse(aws_profiles *p, const char *text, size_t n, bool credentials, const char *path, fz_error *err) FZ_MUST_USE;
/* Reads both files; one that is not there, or may not be read, counts as empty (aws_profiles_note tells). The caller frees *out. */
fz_status aws_profiles_load(const char *config, const char *credentials, aws_profiles **out, fz_error *err) FZ_MUST_USE;
bool aws_profiles_has(const aws_profiles *p, aws_section_kind kind, const char *name);
/* The value, or NULL. Keys are compared without case; values of nested blocks are texts that begin with a line feed. Lives as long as p. */
const char *aws_profiles_get(const aws_profiles *p, aws_section_kind kind, const char *name, const char *key);
/* The value of `sub` in the nested block `key`, in a; NULL: not there. */
const char *aws_profiles_sub(const aws_profiles *p, aws_section_kind kind, const char *name, const char *key, const char *sub, fz_arena *a);
/* Names of all profiles for hints: "a, b, c", in a. */
const char *aws_profiles_names(const aws_profiles *p, fz_arena *a);
const char *aws_profiles_note(const aws_profiles *p);

/* A whole small file, in *out (the caller frees and wipes it). 0 or an errno; EFBIG over max; not a plain file: ENOENT. */
int aws_file_read(const char *path, size_t max, fz_buf *out);
/* Frees a buffer that held a secret. */
void aws_buf_wipe(fz_buf *b);

/* ---- settings: options, environment and profile; immutable once made ---- */

typedef struct aws_settings {
    atomic_uint refs;
    fz_arena *arena;
    fz_pair *options;
    size_t n_options;
    const char *home;                      /* NULL: none known */
    const char *config_path, *credentials_path;
    const char *profile;                   /* name */
    const char *profile_from;              /* "client.profile-name", "AWS_PROFILE", NULL: nobody named it */
    aws_profiles *profiles;                /* as read when the session was made: regions, endpoints */
    const char *region, *region_from;      /* NULL: only IMDS may know */
    const char *sts_region;                /* region of STS when no profile names one; NULL: `region` */
    net_tls tls;
    const char *proxy;                     /* see net_request */
    int64_t connect_timeout_ms, stall_timeout_ms; /* 0: the defaults of net */
    bool dualstack, fips;
    int max_attempts;
    bool metadata_disabled;
} aws_settings;

fz_status aws_settings_new(const fz_pair *o, size_t n, aws_settings **out, fz_error *err) FZ_MUST_USE;
aws_settings *aws_settings_ref(aws_settings *s);
void aws_settings_unref(aws_settings *s);
const char *aws_settings_option(const aws_settings *s, const char *name); /* NULL: not given */
/* Of the session's profile; NULL: not there. */
const char *aws_settings_profile(const aws_settings *s, const char *key);
/* As getenv, but an empty value is none. */
const char *aws_env(const char *name);
/* aws_endpoint for a region; region NULL is allowed when the endpoint is configured. */
fz_status aws_endpoint_of(const aws_settings *s, const char *service, const char *region, const char *given, fz_arena *a, const char **url, bool *custom,
                          fz_error *err) FZ_MUST_USE;
fz_status aws_region_check(const char *region, const char *from, fz_error *err) FZ_MUST_USE;

/* ---- links of the chain ---- */

/* One asking of a link. said: what it said, a few words, when it has nothing. */
typedef struct aws_ask {
    aws_settings *settings;
    fz_arena *a;           /* of the answer */
    fz_buf *said;
} aws_ask;
/* *there false: nothing is configured here, the next link is asked. Else the credentials, or an error: the link is there but wrong. */
typedef fz_status (*aws_link_fn)(aws_ask *q, aws_credentials *out, bool *there, fz_error *err);
fz_status aws_link_options(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
fz_status aws_link_environment(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
/* The same, but also asked when a profile is named (credential_source = Environment). */
fz_status aws_environment(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
fz_status aws_link_web_identity(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
fz_status aws_link_profile(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
fz_status aws_link_container(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;
fz_status aws_link_imds(aws_ask *q, aws_credentials *out, bool *there, fz_error *err) FZ_MUST_USE;

/* The chain, or the links that option client.credentials-provider names. Takes a reference to s. */
fz_status aws_chain_provider(aws_settings *s, aws_provider **out, fz_error *err) FZ_MUST_USE;
/* The role of client.assume-role.* over base (which it takes a reference to). */
fz_status aws_role_provider(aws_settings *s, aws_provider *base, aws_provider **out, fz_error *err) FZ_MUST_USE;

/* Region that the instance metadata service tells, in a; *region NULL: it does not answer. */
fz_status aws_imds_region(const aws_settings *s, fz_arena *a, const char **region, fz_error *err) FZ_MUST_USE;

/* ---- requests to credential services ---- */

typedef struct aws_ask_http {
    const char *who;         /* for errors: "container credentials endpoint" */
    const char *method, *url;
    const net_header *headers;
    size_t n_headers;
    const char *body;        /* NULL: none */
    int64_t timeout_ms;
    int attempts;
    bool no_proxy;           /* link-local and loopback services */
} aws_ask_http;
/* Any status below 500 and other than 429 is FZ_OK; out is the caller's to net_answer_free in any case. RETRY "aws.credentials-unavailable" else. */
fz_status aws_ask_send(const aws_settings *s, const aws_ask_http *rq, net_answer *out, fz_error *err) FZ_MUST_USE;

typedef struct aws_role {
    const char *arn, *session_name, *external_id, *web_token; /* web_token: AssumeRoleWithWebIdentity, unsigned */
    int64_t duration_s;      /* 0: the service's default */
    const fz_pair *tags;
    size_t n_tags;
    const char *region;
    const char *source;      /* for aws_credentials.source */
} aws_role;
/* base NULL with web_token. */
fz_status aws_sts_assume(const aws_settings *s, const aws_role *r, const aws_credentials *base, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
/* The role by the token in token_file, which is read now. */
fz_status aws_web_identity(const aws_settings *s, aws_role *role, const char *token_file, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
/* Where the container's agent is; *url NULL: none is named. */
fz_status aws_container_url(fz_arena *a, const char **url, fz_error *err) FZ_MUST_USE;
fz_status aws_sso_credentials(const aws_settings *s, const aws_profiles *p, const char *profile, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
extern int64_t aws_process_timeout_ms; /* 60 s unless a test sets another */
fz_status aws_process_credentials(const aws_settings *s, const char *command, const char *source, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
/* Credentials of a JSON object with these names; a missing one is "aws.credentials". Texts go into a. */
typedef struct aws_json_names { const char *access_key, *secret_key, *token, *expires, *account; } aws_json_names;
fz_status aws_credentials_of_json(const char *who, const char *text, size_t n, const aws_json_names *names, fz_arena *a, aws_credentials *out, fz_error *err) FZ_MUST_USE;
/* Keys and tokens go into headers: USER "aws.credentials" if one has blanks, control or other characters. */
fz_status aws_credentials_check(const char *who, const aws_credentials *c, fz_error *err) FZ_MUST_USE;
/* Code and message of an error answer in JSON, in a, bounded; NULL: none. false: neither. */
bool aws_json_message(const net_answer *ans, fz_arena *a, const char **code, const char **message);
/* Region for STS: a profile's (may be NULL), the session's, else an error. */
fz_status aws_sts_region(const aws_settings *s, const char *of_profile, const char **region, fz_error *err) FZ_MUST_USE;
#endif
