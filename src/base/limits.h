/* All ceilings, in one place. What reaches one is an error or a dead letter that names it, never a crash. */
#ifndef FZ_LIMITS_H
#define FZ_LIMITS_H
#include <stddef.h>
#define FZ_MAX_RECORD_SIZE (4u << 20)      /* default of source.max-record-size: larger records become dead letters without bytes */
#define FZ_MAX_JSON_DEPTH 1000             /* as Jackson's StreamReadConstraints */
#define FZ_MAX_SQL_DEPTH 500               /* nesting of SQL expressions and subqueries */
#define FZ_MAX_SQL_TEXT (16u << 20)        /* bytes of one script */
#define FZ_MAX_COLUMNS 10000               /* of one table */
#define FZ_MAX_METADATA_JSON (512u << 20)  /* bytes of a metadata.json that is read */
#define FZ_MAX_TEXT (64u << 20)            /* bytes of one text that a function (REPEAT, LPAD, ...) makes */
#define FZ_MAX_DURATION_MS 3155760000000ll /* 100 years: nanoseconds of it, added to a clock, fit 64 bits */
#define FZ_MAX_HTTP_EXCHANGES 64           /* at the same time in the process; more wait */
#define FZ_MAX_HTTP_HEADERS (256u << 10)   /* bytes of an answer's headers */
#define FZ_MAX_HTTP_HEAD (32u << 10)       /* bytes of request line and headers that a server takes */
#define FZ_MAX_HTTP_FIELDS 100             /* headers of a request that a server takes */
#define FZ_MAX_HTTP_ANSWER ((size_t)64 << 20) /* bytes of an answer's body when the caller names no other ceiling */
#define FZ_MAX_LEARNED_REGIONS 64          /* hosts whose region S3 had to tell us, per session */
#define FZ_MAX_S3_KEY 1024u                /* bytes */
#define FZ_MAX_S3_PARTS 10000u             /* of one upload */
#define FZ_MAX_S3_PART (5ull << 30)        /* bytes of one part, and of what one PUT takes */
#define FZ_MAX_S3_LIST (16u << 20)         /* bytes of an answer with 1000 keys of 1024 bytes, encoded */
#define FZ_MAX_UPLOAD_THREADS 16u          /* of the process */
#define FZ_MAX_UPLOADS 64u                 /* waiting and running; more wait outside, and so do more bytes than: */
#define FZ_MAX_UPLOAD_MEMORY (8ull << 20)  /* in memory */
#define FZ_MAX_UPLOAD_DISK (512ull << 20)  /* in staging files */
#define FZ_MAX_DIVERTED_OPEN 1000          /* error objects that one table may lack and name: each of its snapshots carries their list */
#define FZ_FEW_DIVERTED_OPEN 100           /* with more of them an object gathers longer: a slow stream must not use the limit up in tiny ones */
#define FZ_DIVERTED_GATHER_MS 60000        /* ... for so long */
#define FZ_MAX_ERROR_OBJECT (64ull << 20)  /* bytes of an error object at which no more is put into it */
#define FZ_BATCH_ROWS 8192                 /* rows of a batch that sources aim at */
#define FZ_MAX_AWS_FILE (1u << 20)         /* bytes of a profile, token or SSO cache file of AWS */
#define FZ_MAX_AWS_SECTIONS 1000           /* sections of the profile files */
#define FZ_MAX_AWS_PROPERTIES 1000         /* properties of one section, lines of one value */
#define FZ_MAX_AWS_ANSWER (256u << 10)     /* bytes of an answer of a credential service or process */
#endif
