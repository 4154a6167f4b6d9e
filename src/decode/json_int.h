/* Inside the JSON decoder. Three parts work on one record after another:
 *
 *   json_fast*.c   the common case: the record has the shape that the schema expects. Straight into columns, SIMD, no tokens.
 *                  On anything else it gives up without a trace, and
 *   json_exact.c   does the record anew over the tokens of json_token.c, exactly as Flink does over Jackson's tokens: that
 *                  defines what a document means, also where the answer is odd (a parse error in the middle of a field).
 *   json_col.c     columns under construction, used by both.
 *
 * Invariants
 *  1. Where the fast path does not give up, its result equals that of the exact path (test/fuzz/fuzz_json.c compares them).
 *  2. Between records all columns of the root have the same length: the number of rows so far.
 *  3. Columns under construction live in the batch's arena; only dictionaries' tables and scratch belong to the decoder.
 */
#ifndef DEC_JSON_INT_H
#define DEC_JSON_INT_H
#include "decode/decode_int.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- json_col.c: columns under construction ---- */

#define JS_DICT_SLOTS 4096u      /* of a dictionary's hash table; at most half of them are used */
#define JS_DICT_SAMPLE 512u      /* rows after which a batch's dictionary is judged */
#define JS_RETRY_BATCHES 64u     /* a column found to be flat tries a dictionary again in every 64th batch */

typedef struct js_dict {         /* of a top-level text or MAP column; lives as long as the decoder */
    uint32_t *slot;              /* entry + 1; 0: free */
    uint64_t *hash;              /* of entry */
    fz_sv *raw;                  /* MAP: the bytes that an entry was read from */
    uint32_t hash_cap;
    uint32_t flat_batches;       /* batches since the column was found to have too many values; 0: dictionary */
} js_dict;

typedef struct js_col js_col;
struct js_col {
    const char *name;
    uint32_t name_len;
    col_kind kind;
    const col_type *type;
    fz_arena *a;
    uint32_t len, cap;           /* values */
    uint8_t *valid;              /* NULL until the first NULL */
    union { uint8_t *u8; int32_t *i32; int64_t *i64; float *f32; double *f64; col_i128 *i128; void *data; };
    uint32_t *off;               /* text, bytes: ends of values; ARRAY, MAP: of ranges of the child */
    char *bytes;                 /* text, bytes */
    size_t n_bytes, cap_bytes;
    double bytes_a_row;          /* from the batch before: how much to reserve */
    uint32_t n_child;
    js_col *child;
    uint32_t *names, names_mask; /* ROW: hash table of the children's names, entry + 1 */
    js_col *spare;               /* MAP: two columns for putting entries in order */
    /* Dictionary form (top-level text; MAP where the format knows values by their bytes): off with bytes or children hold the n_dict values, idx the rows. */
    js_dict *dict;               /* NULL: this column never takes the form */
    bool use_dict;
    uint32_t n_dict, cap_off;
    uint32_t *idx;
    uint32_t last;               /* entry of the row before */
    uint8_t streak;              /* how well that foretells the row's: js_likely_same */
    bool discard;                /* checked only: the query does not want it */
};

/* Sets up c (zeroed) and its children for a type; names and type must outlive it. */
void js_col_init(fz_arena *a, js_col *c, const char *name, const col_type *type);
int js_col_find(const js_col *row, const char *name, size_t n); /* child with that name; -1: none */
void js_col_free(js_col *c);                                  /* what belongs to the decoder */
/* Begins a batch of about `rows` rows in arena a. */
void js_col_begin(js_col *c, fz_arena *a, uint32_t rows);
void js_col_begin_row(js_col *c, fz_arena *a, uint32_t rows); /* a ROW without its children */
col_vec *js_col_finish(js_col *c);
/* Takes values away from the end, so that n are left. */
void js_col_cut(js_col *c, uint32_t n);
void js_col_grow(js_col *c);                                  /* room for a value */
void js_col_grow_bytes(js_col *c, size_t more);
void js_put_null(js_col *c);
void js_put_from(js_col *c, const js_col *src, uint32_t i);   /* value i of a column of the same type */
void js_put_dict(js_col *c, const char *p, size_t n);         /* top-level text while use_dict */
bool js_put_known(js_col *c, const char *p, size_t n, size_t left); /* the same if it is an entry already, at p can be read `left` bytes; false: nothing has happened */
/* n bytes of both, where 32 bytes of x can be read, and `left` of y. */
static inline bool js_same_bytes(const void *x, const void *y, size_t n, size_t left) {
#ifdef __SSE2__
    if (n <= 32 && left >= 32) {
        const __m128i *a = x, *b = y;
        uint32_t low = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b)));
        uint32_t high = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1)));
        return (~(uint64_t)(high << 16 | low) & ((1ull << n) - 1)) == 0;
    }
#endif
    return left >= n && memcmp(x, y, n) == 0;
}
static inline void js_put_same(js_col *c);                    /* the entry of the row before once more */
void js_put_map(js_col *c);                                   /* closes a MAP: entries since the last close, put in order */
void js_map_order(js_col *c);                                 /* puts the entries since the last close in order */
static inline uint32_t js_map_from(const js_col *c) { return c->off[c->use_dict ? c->n_dict : c->len]; } /* the first of them */

/* Lets a top-level MAP take the dictionary form. The format then brings the bytes of each value, which stay where they are until the batch ends; the same bytes must mean the same value. */
void js_map_in_dictionary(js_col *c);
/* While use_dict. true: a value of the same bytes came before in this batch, and the row has it. false: the entries are to be added, and js_put_map_of with the same bytes closes them. */
bool js_put_map_again(js_col *c, const uint8_t *raw, size_t n);
void js_put_map_of(js_col *c, const uint8_t *raw, size_t n);  /* in the order in which they are */
/* While use_dict: length of the value of the newest row that is not NULL, if `raw` begins with its bytes; 0: it does not, or that is not likely. */
static inline size_t js_map_before(const js_col *c, const uint8_t *raw, size_t left);

static inline void js_room(js_col *c) {
    if (__builtin_expect(c->len == c->cap, 0)) js_col_grow(c);
}
static inline void js_valid(js_col *c) {
    if (c->valid) c->valid[c->len] = 1;
}
static inline void js_put_bool(js_col *c, uint8_t v) { js_room(c); js_valid(c); c->u8[c->len++] = v; }
static inline void js_put_i32(js_col *c, int32_t v) { js_room(c); js_valid(c); c->i32[c->len++] = v; }
static inline void js_put_i64(js_col *c, int64_t v) { js_room(c); js_valid(c); c->i64[c->len++] = v; }
static inline void js_put_f32(js_col *c, float v) { js_room(c); js_valid(c); c->f32[c->len++] = v; }
static inline void js_put_f64(js_col *c, double v) { js_room(c); js_valid(c); c->f64[c->len++] = v; }
static inline void js_put_dec(js_col *c, col_i128 v) { js_room(c); js_valid(c); c->i128[c->len++] = v; }
/* Is it worth looking at the entry of the row before first? Only while most rows have it: a guess that mostly fails costs more than a look-up. */
static inline bool js_likely_same(const js_col *c) { return c->n_dict && c->streak >= 8; }
static inline void js_count_streak(js_col *c, bool same) {
    int s = c->streak + (same ? 1 : -1);
    c->streak = (uint8_t)(s < 0 ? 0 : s > 15 ? 15 : s);
}
static inline void js_put_same(js_col *c) { js_room(c); js_valid(c); c->idx[c->len++] = c->last; }
static inline size_t js_map_before(const js_col *c, const uint8_t *raw, size_t left) {
    if (!js_likely_same(c)) return 0;
    fz_sv s = c->dict->raw[c->last];
    return s.n <= left && memcmp(s.p, raw, s.n) == 0 ? s.n : 0;
}
/* Room for n more bytes and 64 to spare, so that vectors may be stored past the end. */
static inline char *js_bytes_room(js_col *c, size_t n) {
    if (__builtin_expect(c->cap_bytes - c->n_bytes < n + 64, 0)) js_col_grow_bytes(c, n + 64);
    return c->bytes + c->n_bytes;
}
/* The n bytes after n_bytes become a value. */
static inline void js_put_placed(js_col *c, size_t n) {
    js_room(c);
    js_valid(c);
    c->n_bytes += n;
    c->off[++c->len] = (uint32_t)c->n_bytes;
}
static inline void js_put_bytes(js_col *c, const char *p, size_t n) {
    if (c->use_dict) {
        js_put_dict(c, p, n);
        return;
    }
    char *d = js_bytes_room(c, n);
    if (n) memcpy(d, p, n);
    js_put_placed(c, n);
}
/* ARRAY and ROW: the children have got their values; this closes the row. */
static inline void js_put_array(js_col *c) { js_room(c); js_valid(c); c->off[++c->len] = c->child[0].len; }
static inline void js_put_row(js_col *c) { js_room(c); js_valid(c); c->len++; }

/* ---- json_token.c: Jackson's tokens ---- */

typedef enum {
    JT_NONE, JT_START_OBJECT, JT_END_OBJECT, JT_START_ARRAY, JT_END_ARRAY, JT_NAME, JT_STRING, JT_INT, JT_FLOAT, JT_TRUE, JT_FALSE, JT_NULL
} js_token;

#define JS_MAX_NUMBER 1000                   /* digits; Jackson's StreamReadConstraints */
#define JS_MAX_NAME 50000
#define JS_MAX_STRING 20000000               /* UTF-16 units */

typedef struct js_parser {
    const uint8_t *in;
    size_t ptr, end;
    js_token cur, pending;                   /* pending: the value that was read together with its name */
    bool incomplete;                         /* cur is a string whose end has not been read */
    bool ended;                              /* the last js_next met the end of the input */
    uint32_t depth;
    uint8_t type[FZ_MAX_JSON_DEPTH + 2];     /* 'r', 'o', 'a' */
    int32_t index[FZ_MAX_JSON_DEPTH + 2];
    fz_buf name;
    bool name_odd;                           /* the name has a lone surrogate: it equals no column's */
    fz_buf text;                             /* of the current string once it is complete */
    size_t num, num_len;                     /* span of the current number */
    char msg[320];                           /* Jackson's message of the last error */
} js_parser;

void js_parser_start(js_parser *p, const uint8_t *in, size_t n);
void js_parser_free(js_parser *p);
/* The next token into p->cur (JT_NONE: end of input, or a value that could not be read before). false: an error; p->msg says which, p->ptr where. The parser may be asked
 * again after an error: it goes on where it stands, as Jackson's does. */
bool js_next(js_parser *p);
/* Text of the current token (Jackson's getText); for strings it reads to the end. *out has p NULL for JT_NONE. */
bool js_text(js_parser *p, fz_sv *out);
/* Base64 of the current token, which must be a string (Jackson's getBinaryValue). Appends to out. */
bool js_base64(js_parser *p, fz_buf *out);
/* One escape, after its backslash: a UTF-16 unit. */
bool js_escape(js_parser *p, uint32_t *out);
bool js_error(js_parser *p, const char *fmt, ...) FZ_PRINTF(2, 3); /* false */

/* ---- json_exact.c, json_tree.c ---- */

typedef struct json_decoder {
    dec_decoder base;
    bool ignore_errors, fail_on_missing, iso, plain_decimals;
    js_col root;                             /* a ROW whose children are the schema's columns */
    fz_arena *own;                           /* names, columns */
    fz_arena *scratch;                       /* of columns that are only checked; reset at each batch */
    js_parser parser;
    fz_buf tree;                             /* text of an object that goes into a text column */
    fz_buf wide;                             /* a UTF-16 or UTF-32 document as UTF-8 */
    char field[192];                         /* column that the last error lies in, or "" */
    struct js_fast *fast;
    bool (*row)(struct json_decoder *d, const uint8_t *in, size_t n); /* the fast path */
} json_decoder;

/* Appends a row for the document, or says why not (parser.msg, field). The root's length is unchanged then. */
bool js_exact(json_decoder *d, const uint8_t *in, size_t n);
/* The object or array at the current token as Jackson's JsonNode.toString writes it, appended to out. */
bool js_tree_text(js_parser *p, bool decimals, fz_buf *out);
/* A scalar text (from a string, or a number's text) into column c by Flink's rules. false: not such a value; p->msg may say why. */
bool js_put_scalar(json_decoder *d, js_col *c, js_token tok, fz_sv text, js_parser *p);

/* Text as a JSON string with its quotes, as Jackson writes it. */
void js_quote(fz_buf *b, fz_sv s);
/* Members of an object that is being written: of equal keys the last value stays, at the place of the first. Offsets are those of the output. */
typedef struct js_member { uint64_t hash; size_t key, key_len, value, value_len; } js_member;
typedef struct js_members { js_member *v; uint32_t n, cap; uint32_t *table; uint32_t mask; bool repeated; } js_members;
/* The member with the (quoted) key at out[key..]; a new one is appended. */
js_member *js_member_of(js_members *m, const fz_buf *out, size_t key, size_t key_len);
/* Frees m; the members from out[from] on are written anew where a key was repeated. */
void js_members_end(js_members *m, fz_buf *out, size_t from);

/* ---- json.c: what formats with the same columns and conversions share ---- */
/* Sets up d (zeroed but for its options). schema must outlive it. */
void js_decoder_init(json_decoder *d, const col_schema *schema, const bool *wanted);
void js_decoder_release(json_decoder *d);
/* A row of the schema's columns; those that are not wanted are filled and thrown away, so that a record's fate does not hang on the query. */
void js_columns_init(fz_arena *a, js_col *root, const col_schema *schema, const bool *wanted);
void js_columns_begin(js_col *root, fz_arena *a, fz_arena *scratch, uint32_t rows);
fz_status js_check_types(const col_schema *s, const char *format, const char *code, fz_error *err) FZ_MUST_USE; /* MAP keys are text */
const char *js_message(const json_decoder *d, fz_arena *a); /* of the last error */

/* ---- json_fast*.c ---- */
typedef bool (*js_fast_fn)(json_decoder *d, const uint8_t *in, size_t n);
struct js_fast *js_fast_new(void);
void js_fast_free(struct js_fast *f);
/* true: the record has become a row. false: nothing has happened, ask js_exact. */
bool js_fast_row_base(json_decoder *d, const uint8_t *in, size_t n);
#if defined(__x86_64__) && (!defined(__clang__) || defined(__AVX2__))
#define JS_HAVE_AVX2 1
#endif
bool js_fast_row_avx2(json_decoder *d, const uint8_t *in, size_t n);
js_fast_fn js_fast_pick(void); /* the best that this processor can run */

#endif
