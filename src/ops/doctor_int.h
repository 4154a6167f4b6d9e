/* Inside of the doctor: steps, and what the checks share.
 *
 *   doctor.c          steps: how one blocks another; the order of the examination
 *   doctor_report.c   text and JSON
 *   doctor_codes.c    the table of codes
 *   doctor_source.c   Kafka and other sources
 *   doctor_listen.c   sources that listen: spool, address, certificates, who may send; the port of /metrics
 *   doctor_aws.c      region, credentials, identity, clock, endpoints
 *   doctor_lake.c     analytics integration, Lake Formation, roles
 *   doctor_catalog.c  catalogs, databases, tables
 *   doctor_table.c    format version, schema, writing, positions
 *   doctor_store.c    buckets, probe objects; directories of the settings
 *   doctor_delivery.c deliveries: archives, CloudWatch Logs; metrics to CloudWatch
 */
#ifndef OPS_DOCTOR_INT_H
#define OPS_DOCTOR_INT_H
#include "fileio/fileio.h"
#include "ops/doctor.h"
#include "source/source.h"

enum { DOC_STEP_MS = 10000, DOC_WHOLE_MS = 180000 };

typedef struct doc_step doc_step;
struct doc_step {
    const char *code, *subject;
    ops_step_status status;
    const char *asked, *answer, *advice; /* "" when there is nothing to say; advice may have several lines */
    const doc_step *because;     /* SKIPPED: the step that failed; NULL: time was up */
    doc_step *next;
};

typedef struct doctor {
    const ops_plan *plan;
    fz_arena *a;
    doc_step *first, **last;
    int64_t deadline_ns;
    struct doctor *outer;        /* a part of another examination, whose steps are not told; else NULL */
    struct doc_scope *scopes;    /* doctor_aws.c */
    struct doc_door *doors;      /* doctor_listen.c */
    struct doc_spool *spools;    /* the same: of the script's tables */
    bool spools_unknown;         /* a source was not opened: which spool is its own is not known */
    struct doc_bucket *buckets;  /* doctor_store.c */
    struct doc_catalog *catalogs; /* by index of the plan */
    struct doc_table *tables;
    doc_step *error_path;        /* of an error location that cannot be one: no job can be looked at; else NULL */
} doctor;

void doc_init(doctor *d, const ops_plan *p);
void doc_free(doctor *d);

/* A step begins; it is OK until something else is said of it. subject: what it is about, copied; may be NULL. */
doc_step *doc_begin(doctor *d, const char *code, const char *subject);
/* The step that was begun with the same code and subject before; NULL: none. */
doc_step *doc_find(const doctor *d, const char *code, const char *subject);
/* True, and s is skipped: `on` has failed or was skipped itself, or time is up. on NULL blocks only for time. */
bool doc_blocked(doctor *d, doc_step *s, const doc_step *on);
static inline bool doc_good(const doc_step *s) { return s && (s->status == OPS_STEP_OK || s->status == OPS_STEP_WARN); }

void doc_asked(doctor *d, doc_step *s, const char *fmt, ...) FZ_PRINTF(3, 4);
void doc_ok(doctor *d, doc_step *s, const char *fmt, ...) FZ_PRINTF(3, 4);
/* Sets the status and the answer; a step that has failed already keeps its status and gets one more line. */
void doc_warn(doctor *d, doc_step *s, const char *fmt, ...) FZ_PRINTF(3, 4);
void doc_fail(doctor *d, doc_step *s, const char *fmt, ...) FZ_PRINTF(3, 4);
void doc_fail_error(doctor *d, doc_step *s, const fz_error *e); /* its message, code and detail; its hint becomes advice */
void doc_advise(doctor *d, doc_step *s, const char *fmt, ...) FZ_PRINTF(3, 4); /* one more line of advice */
/* Message, code and detail on one line, in d->a. */
const char *doc_error_text(doctor *d, const fz_error *e);

bool doc_sound(const doctor *d);
void doc_render(const doctor *d, const ops_doctor_options *o, fz_buf *out);

/* ---- checks ---- */
void doc_settings(doctor *d);
void doc_sources(doctor *d);

/* An opened catalog, and the steps that what lies in it rests on. */
typedef struct doc_catalog {
    const ops_need_catalog *need;
    const char *kind;            /* "sql", "hadoop", "glue", "s3tables", "rest" */
    cat_catalog *cat;            /* NULL: not opened */
    bool absent;                 /* it would be made */
    fio *io;                     /* of its options, for tables that are not there yet; NULL: not made */
    const doc_step *ground;      /* what must be good before the catalog can be asked; then the catalog's own last step */
    const doc_step *below;       /* ground as it was before the catalog itself was asked: identity and endpoint */
    const doc_step *store;       /* the same for the store */
    aws_session *aws;            /* borrowed from io; NULL: none is needed */
    const char *region, *account, *arn; /* of the identity; NULL: not known */
} doc_catalog;
typedef struct doc_table {
    const ops_need_table *need;
    cat_table *loaded;           /* NULL: not there, or not to be had */
    bool absent;                 /* it would be made */
    const doc_step *step, *format, *schema;
} doc_table;
void doc_catalogs(doctor *d);
/* Region, credentials, identity, endpoints: all that a catalog of AWS (or one whose tables lie in S3) rests on; sets c->ground and c->store. */
void doc_aws_ground(doctor *d, doc_catalog *c);
/* The same for the store of directories that settings name: c->io is its store. */
void doc_settings_ground(doctor *d, doc_catalog *c);
/* The same for a store of its own: name, for people; c->io is the store of these options. Sets c->store. */
void doc_store_ground(doctor *d, doc_catalog *c, const char *name, const fz_pair *options, size_t n);
/* The same for a service: credentials by the options "client.*" (which may be none), then its endpoint (given: as an option names it, or NULL), which is the step `code`; sets c->ground, and c->aws,
 * which lives as long as c->io: the caller's to unref. *url: the endpoint, NULL: not known. */
void doc_service_ground(doctor *d, doc_catalog *c, const char *name, const fz_pair *options, size_t n, const char *service, const char *code, const char *given, const char **url);
const doc_step *doc_login_ground(doctor *d, const char *subject, const fz_pair *options, size_t n);
/* The role exists; a step that was taken before is found again. region: where we are. */
doc_step *doc_principal(doctor *d, aws_session *aws, const char *arn, const char *region);
/* The analytics integration, by which Glue sees table buckets: before the catalog is opened, where the catalog needs it; sets c->ground. */
void doc_federation(doctor *d, doc_catalog *c);
/* Who may grant, and what is granted, where Lake Formation stands between the catalog and its databases. */
void doc_lake(doctor *d, doc_catalog *c);
/* A service does not take the credentials (expired, unknown, wrongly signed) although the identity seemed good: that step is red, and s is skipped for it. */
bool doc_blame_credentials(doctor *d, doc_step *s, const fz_error *e);
/* A refusal at a database (table NULL) or a table: by Lake Formation it becomes a step of its own, and s is skipped for it. */
void doc_refused(doctor *d, doc_catalog *c, doc_step *s, const char *database, const char *table, const fz_error *e);
void doc_tables(doctor *d);
void doc_table_format(doctor *d, doc_table *t);
void doc_table_schema(doctor *d, doc_table *t);
/* What has been committed; files that lie there and were not. */
void doc_table_snapshot(doctor *d, doc_table *t);
void doc_positions(doctor *d);

/* The bucket of a location exists; asked once of the same store. Gives the step, or `on` where there is no bucket to ask for (local files, S3 Tables). */
const doc_step *doc_bucket(doctor *d, fio *io, const char *location, const doc_step *on);
/* Put, get, list and delete of a probe object at a location. */
void doc_store_probe(doctor *d, fio *io, const char *location, const char *subject, const doc_step *on);
/* The same for objects whose locations begin with `fixed`, of which only put is needed; replayed: they are read again one day (frazil replay). */
void doc_archive_probe(doctor *d, fio *io, const char *fixed, const char *subject, bool replayed, const doc_step *on);
/* Where files wait on their way to S3: option s3.staging-dir, TMPDIR, /tmp. */
void doc_staging(doctor *d, const fz_pair *options, size_t n);
void doc_directories(doctor *d);
/* A directory of this machine: can files be made in it (or can it be made)? */
void doc_local_directory(doctor *d, doc_step *s, const char *path);
/* The directory, or the nearest one above it that is there; in d->a. */
const char *doc_nearest(doctor *d, const char *path);

/* What a source would listen on. */
void doc_doors(doctor *d, const src_doors *doors, const char *table);
void doc_metrics_port(doctor *d);
void doc_unread_spools(doctor *d); /* after all sources */
void doc_deliveries(doctor *d);
void doc_metrics_cloudwatch(doctor *d);
#endif
