/* Inside the connector 'filesystem'.
 *
 *   file.c         options; files that are read once
 *   file_stream.c  the bytes of what can only be read from front to back: packed files, and standard input
 *   file_text.c    lines of those
 *   tail.c         files that are followed; tail_packed.c: packed ones among them
 *
 * Thread: a stream has one reader at a time.
 */
#ifndef SRC_FILE_INT_H
#define SRC_FILE_INT_H
#include "source/source_int.h"

typedef enum { FILE_PLAIN, FILE_GZIP, FILE_ZSTD, FILE_BY_MAGIC /* its first bytes tell */ } file_packing;

/* What the first n bytes of a file say (RFC 1952, 2.3.1; RFC 8878, 3.1.1 and 3.1.2). Four bytes are enough. */
file_packing file_packing_of(const uint8_t *p, size_t n);

typedef struct file_stream file_stream;
/* fd is the stream's from here on, unless it is standard input; a file is read from its beginning, wherever fd stands. name: for messages, and outlives the stream. No more than `limit` bytes are read of the fd. */
file_stream *file_stream_new(const char *name, int fd, file_packing packing, int64_t limit);
void file_stream_free(file_stream *f); /* NULL is allowed */
/* The next bytes, unpacked, at most n (n > 0); waits up to timeout_ms for some. *got 0: none now, or none any more (*end).
 * FATAL "file.damaged": names the file, and says how much of its text came out before. RETRY or FATAL "file.io". */
fz_status file_stream_read(file_stream *f, uint8_t *out, size_t n, int64_t timeout_ms, size_t *got, bool *end, fz_error *err) FZ_MUST_USE;

/* ---- shared by file.c and tail.c ---- */
typedef struct file_chunk { fz_chunk chunk; uint8_t *bytes; } file_chunk; /* bytes: what the records point into */
void file_chunk_release(fz_chunk *c);

/* Lines out of a stream; all zero: nothing is open. What is not handed out yet is a record and a block at most. */
typedef struct file_text {
    file_stream *stream;
    uint8_t *held;      /* text that is not handed out yet, behind `skipped` bytes of a line that is too large (0: none) */
    size_t n_held, cap_held;
    int64_t skipped;
} file_text;
typedef enum { FILE_TEXT_READ, FILE_TEXT_WHOLE /* only whole lines of what is held */, FILE_TEXT_REST /* what is held is all */ } file_text_how;
/* The next lines become f's, from f->chunk.from on. None: nothing has come in time, or there is no more (*ended). Errors: of file_stream_read; what is held can still be had by FILE_TEXT_WHOLE. */
fz_status file_text_lines(file_text *t, file_chunk *f, file_text_how how, int64_t timeout_ms, uint32_t max, bool *ended, fz_error *err) FZ_MUST_USE;
void file_text_close(file_text *t);
/* Lines of p[0..n), which lies at c->to, become records; the rest of an unfinished line stays unread unless the file ends there. Lines above max are oversized. */
void file_split_lines(fz_chunk *c, const uint8_t *p, size_t n, bool at_end, uint32_t max);
fz_record *file_add_record(fz_chunk *c, uint32_t *cap, int64_t offset);
fz_status file_io_error(fz_error *err, const char *what, const char *path); /* by errno */
bool file_hidden(const char *name); /* passed over in directories */

/* 'source.monitor-interval'. path: a directory, a file, or a pattern. */
fz_status src_tail_open(const char *path, const char *interval, const src_context *cx, src_source **out, fz_error *err) FZ_MUST_USE;
extern const fz_option file_options[];
#endif
