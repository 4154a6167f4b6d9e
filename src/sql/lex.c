/* Text -> tokens, by the rules of Flink's SQL (Calcite): '...' with '' inside, `...` and "..." as identifiers, X'..', U&'..', N'..', line and block comments,
 * hints in a comment that begins with a plus sign.
 *
 * Invariants
 *  1. Each byte of a token is in [from, to); comments and blanks are in none.
 *  2. A character that no token begins with is an OP of its own: the parser names it. Only what is left open, and bytes that are not UTF-8, fail here.
 */
#include "sql/parse_int.h"
#include <ctype.h>
#include <stdlib.h>

/* Reserved words of Flink SQL (Calcite's, and Flink's own): they are no identifiers unless quoted. Sorted. */
static const char *const reserved[] = {
    "ABS", "ALL", "ALLOCATE", "ALLOW", "ALTER", "AND", "ANY", "ARE", "ARRAY", "ARRAY_CONCAT_AGG", "ARRAY_MAX_CARDINALITY", "AS", "ASENSITIVE", "ASYMMETRIC", "AT",
    "ATOMIC", "AUTHORIZATION", "AVG", "BEGIN", "BEGIN_FRAME", "BEGIN_PARTITION", "BETWEEN", "BIGINT", "BINARY", "BIT", "BLOB", "BOOLEAN", "BOTH", "BUCKETS", "BY",
    "BYTES", "CALL", "CALLED", "CARDINALITY", "CASCADED", "CASE", "CAST", "CATALOGS", "CEIL", "CEILING", "CHAR", "CHARACTER", "CHARACTER_LENGTH", "CHAR_LENGTH",
    "CHECK", "CLASSIFIER", "CLOB", "CLOSE", "COALESCE", "COLLATE", "COLLECT", "COLUMN", "COMMENT", "COMMIT", "CONDITION", "CONNECT", "CONSTRAINT", "CONTAINS",
    "CONTINUOUS", "CONVERT", "CORR", "CORRESPONDING", "COUNT", "COVAR_POP", "COVAR_SAMP", "CREATE", "CROSS", "CUBE", "CUME_DIST", "CURRENT", "CURRENT_CATALOG",
    "CURRENT_DATE", "CURRENT_DEFAULT_TRANSFORM_GROUP", "CURRENT_PATH", "CURRENT_ROLE", "CURRENT_ROW", "CURRENT_SCHEMA", "CURRENT_TIME", "CURRENT_TIMESTAMP",
    "CURRENT_TRANSFORM_GROUP_FOR_TYPE", "CURRENT_USER", "CURSOR", "CYCLE", "DATABASES", "DATE", "DATETIME", "DATE_TRUNC", "DAY", "DEALLOCATE", "DEC", "DECIMAL",
    "DECLARE", "DEFAULT", "DEFINE", "DELETE", "DENSE_RANK", "DEREF", "DESCRIBE", "DETERMINISTIC", "DISALLOW", "DISCONNECT", "DISTINCT", "DISTRIBUTED",
    "DISTRIBUTION", "DOT", "DOUBLE", "DROP", "DYNAMIC", "EACH", "ELEMENT", "ELSE", "EMPTY", "END", "END_FRAME", "END_PARTITION", "EQUALS", "ESCAPE", "EVERY",
    "EXCEPT", "EXEC", "EXECUTE", "EXISTS", "EXP", "EXPLAIN", "EXTEND", "EXTENDED", "EXTERNAL", "EXTRACT", "FALSE", "FETCH", "FILTER", "FIRST_VALUE", "FLOAT",
    "FLOOR", "FOR", "FOREIGN", "FRAME_ROW", "FREE", "FRESHNESS", "FRIDAY", "FROM", "FULL", "FUNCTION", "FUNCTIONS", "FUSION", "GET", "GLOBAL", "GRANT", "GROUP",
    "GROUPING", "GROUPS", "GROUP_CONCAT", "HASH", "HAVING", "HOLD", "HOUR", "IDENTITY", "ILIKE", "IMPORT", "IN", "INCLUDE", "INDICATOR", "INITIAL", "INNER",
    "INOUT", "INSENSITIVE", "INSERT", "INT", "INTEGER", "INTERSECT", "INTERSECTION", "INTERVAL", "INTO", "IS", "JOIN", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_EXISTS",
    "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_QUERY", "JSON_VALUE", "LAG", "LANGUAGE", "LARGE", "LAST_VALUE", "LATERAL", "LEAD", "LEADING", "LEFT", "LIKE",
    "LIKE_REGEX", "LIMIT", "LN", "LOCAL", "LOCALTIME", "LOCALTIMESTAMP", "LOWER", "MATCH", "MATCHES", "MATCH_NUMBER", "MATCH_RECOGNIZE", "MATERIALIZED", "MAX",
    "MEASURES", "MEMBER", "MERGE", "METHOD", "MIN", "MINUS", "MINUTE", "MOD", "MODEL", "MODELS", "MODIFIES", "MODIFY", "MODULE", "MODULES", "MONDAY", "MONTH",
    "MULTISET", "NATIONAL", "NATURAL", "NCHAR", "NCLOB", "NEW", "NEXT", "NO", "NONE", "NORMALIZE", "NOT", "NTH_VALUE", "NTILE", "NULL", "NULLIF", "NUMERIC",
    "OCCURRENCES_REGEX", "OCTET_LENGTH", "OF", "OFFSET", "OLD", "OMIT", "ON", "ONE", "ONLY", "OPEN", "OR", "ORDER", "OUT", "OUTER", "OVER", "OVERLAPS", "OVERLAY",
    "PARAMETER", "PARTITION", "PATTERN", "PER", "PERCENT", "PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENT_RANK", "PERIOD", "PERMUTE", "PIVOT", "PORTION",
    "POSITION", "POSITION_REGEX", "POWER", "PRECEDES", "PRECISION", "PREPARE", "PREV", "PRIMARY", "PROCEDURE", "PROCEDURES", "QUALIFY", "QUARTERS", "RANGE", "RANK",
    "RAW", "READS", "REAL", "RECURSIVE", "REF", "REFERENCES", "REFERENCING", "REFRESH", "REFRESH_MODE", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT",
    "REGR_R2", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "RELEASE", "RENAME", "RESET", "RESULT", "RESUME", "RETURN", "RETURNS", "REVOKE", "RIGHT", "RLIKE",
    "ROLLBACK", "ROLLUP", "ROW", "ROWS", "ROW_NUMBER", "RUNNING", "SATURDAY", "SAVEPOINT", "SCALA", "SCOPE", "SCROLL", "SEARCH", "SECOND", "SEEK", "SELECT",
    "SENSITIVE", "SEPARATOR", "SESSION_USER", "SET", "SHOW", "SIMILAR", "SKIP", "SMALLINT", "SOME", "SPECIFIC", "SPECIFICTYPE", "SQL", "SQLEXCEPTION", "SQLSTATE",
    "SQLWARNING", "SQRT", "START", "STATEMENT", "STATIC", "STDDEV_POP", "STDDEV_SAMP", "STREAM", "STRING", "STRING_AGG", "SUBMULTISET", "SUBSET", "SUBSTRING",
    "SUBSTRING_REGEX", "SUCCEEDS", "SUM", "SUNDAY", "SUSPEND", "SYMMETRIC", "SYSTEM", "SYSTEM_TIME", "SYSTEM_USER", "TABLE", "TABLES", "TABLESAMPLE", "THEN",
    "THURSDAY", "TIME", "TIMESTAMP", "TIMESTAMP_DIFF", "TIMESTAMP_LTZ", "TIMESTAMP_TRUNC", "TIMEZONE_HOUR", "TIMEZONE_MINUTE", "TIME_DIFF", "TIME_TRUNC", "TINYINT",
    "TO", "TRAILING", "TRANSLATE", "TRANSLATE_REGEX", "TRANSLATION", "TREAT", "TRIGGER", "TRIM", "TRIM_ARRAY", "TRUE", "TRUNCATE", "TUESDAY", "UESCAPE", "UNION",
    "UNIQUE", "UNKNOWN", "UNNEST", "UNPIVOT", "UPDATE", "UPPER", "UPSERT", "USE", "USER", "USING", "VALUE", "VALUES", "VALUE_OF", "VARBINARY", "VARCHAR", "VARYING",
    "VAR_POP", "VAR_SAMP", "VERSIONING", "VIEWS", "WATERMARK", "WATERMARKS", "WEDNESDAY", "WEEKS", "WHEN", "WHENEVER", "WHERE", "WIDTH_BUCKET", "WINDOW", "WITH",
    "WITHIN", "WITHOUT", "YEAR"};

static int compare_words(const void *a, const void *b) { return strcmp((const char *)a, *(const char *const *)b); }
bool sql_is_reserved(const char *upper) { return bsearch(upper, reserved, sizeof reserved / sizeof *reserved, sizeof *reserved, compare_words) != NULL; }

typedef struct lexer {
    fz_arena *a;
    const char *s;
    size_t n, i;
    sql_pos pos;          /* of s[i] */
    sql_token *tok;
    uint32_t n_tok, cap;
    bool open;            /* a literal, name or comment is not closed */
    fz_error *err;
} lexer;

static fz_status lex_fail(lexer *l, sql_pos pos, const char *what, const char *hint) {
    fz_fail(l->err, FZ_USER, "sql.syntax", "%s", what);
    if (hint) fz_hint(l->err, "%s", hint);
    fz_at(l->err, pos.line, pos.column);
    return FZ_USER;
}

static char at(const lexer *l, size_t k) { return l->i + k < l->n ? l->s[l->i + k] : 0; }

/* Moves over n bytes, keeping line and column (which count code points). */
static void step(lexer *l, size_t n) {
    for (; n && l->i < l->n; n--, l->i++) {
        char c = l->s[l->i];
        if (c == '\n') {
            l->pos.line++;
            l->pos.column = 1;
        } else if (((unsigned char)c & 0xC0) != 0x80) {
            l->pos.column++;
        }
    }
}

static sql_token *push(lexer *l, tk_kind kind) {
    if (l->n_tok == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 64;
        l->tok = fz_arena_realloc(l->a, l->tok, l->cap * sizeof *l->tok, cap * sizeof *l->tok);
        l->cap = cap;
    }
    sql_token *t = &l->tok[l->n_tok++];
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->from = (uint32_t)l->i;
    t->pos = l->pos;
    t->text = "";
    return t;
}

static void set_text(lexer *l, sql_token *t, const char *s, size_t n) {
    t->text = fz_arena_strndup(l->a, s, n);
    t->len = (uint32_t)n;
}

/* Blanks and comments; stops before a hint. */
static fz_status skip_blanks(lexer *l) {
    for (;;) {
        char c = at(l, 0);
        if (l->i >= l->n) return FZ_OK;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
            step(l, 1);
        } else if (c == '\xC2' && at(l, 1) == '\xA0') { /* no-break space: pasted from web pages */
            step(l, 2);
        } else if (c == '-' && at(l, 1) == '-') {
            while (l->i < l->n && l->s[l->i] != '\n') step(l, 1);
        } else if (c == '/' && at(l, 1) == '*' && at(l, 2) != '+') {
            sql_pos open = l->pos;
            step(l, 2);
            while (l->i < l->n && !(at(l, 0) == '*' && at(l, 1) == '/')) step(l, 1);
            l->open = l->i >= l->n;
            if (l->open) return lex_fail(l, open, "comment is not closed", "end it with */");
            step(l, 2);
        } else {
            return FZ_OK;
        }
    }
}

/* From the opening quote on: the value with doubled quotes folded, appended to b. */
static fz_status quoted(lexer *l, char quote, const char *what, fz_buf *b) {
    sql_pos open = l->pos;
    step(l, 1);
    for (;;) {
        if (l->i >= l->n) {
            l->open = true;
            fz_fail(l->err, FZ_USER, "sql.syntax", "%s is not closed", what);
            fz_hint(l->err, "it begins here and runs to the end of the text; end it with %c, and write %c%c for one inside", quote, quote, quote);
            return fz_at(l->err, open.line, open.column);
        }
        char c = at(l, 0);
        if (c == quote && at(l, 1) == quote) {
            fz_buf_putc(b, c);
            step(l, 2);
        } else if (c == quote) {
            step(l, 1);
            return FZ_OK;
        } else {
            size_t run = 1;
            while (l->i + run < l->n && l->s[l->i + run] != quote) run++;
            fz_buf_append(b, l->s + l->i, run);
            step(l, run);
        }
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind U&'..' may stand UESCAPE 'c': the character that escapes instead of the backslash. */
static fz_status escape_clause(lexer *l, char *escape) {
    lexer before = *l;
    *escape = '\\';
    FZ_TRY(skip_blanks(l));
    if (l->n - l->i < 7 || !fz_sv_ieq((fz_sv){l->s + l->i, 7}, FZ_SV("UESCAPE"))) {
        l->i = before.i;
        l->pos = before.pos;
        return FZ_OK;
    }
    step(l, 7);
    FZ_TRY(skip_blanks(l));
    char c = at(l, 1);
    if (at(l, 0) != '\'' || at(l, 2) != '\'' || hex_digit(c) >= 0 || c == '+' || c == '\'' || c == '"' || c <= ' ' || c >= 0x7F)
        return lex_fail(l, l->pos, "UESCAPE takes one character in single quotes that is no hexadecimal digit, plus sign, quote or blank", NULL);
    *escape = c;
    step(l, 3);
    return FZ_OK;
}

/* U&'..': \XXXX and \+XXXXXX are code points, \\ is a backslash. */
static fz_status unfold_unicode(lexer *l, const sql_token *t, char escape, fz_buf *b, fz_buf *out) {
    const char *s = fz_buf_cstr(b);
    for (size_t i = 0; i < b->len;) {
        if (s[i] != escape) {
            fz_buf_putc(out, s[i++]);
            continue;
        }
        if (i + 1 < b->len && s[i + 1] == escape) {
            fz_buf_putc(out, escape);
            i += 2;
            continue;
        }
        size_t digits = i + 1 < b->len && s[i + 1] == '+' ? 6 : 4, from = i + (digits == 6 ? 2 : 1);
        uint32_t cp = 0;
        for (size_t k = 0; k < digits; k++) {
            int d = from + k < b->len ? hex_digit(s[from + k]) : -1;
            if (d < 0) return lex_fail(l, t->pos, "malformed escape in a U&'...' literal", "write \\ and four hexadecimal digits, or \\+ and six");
            cp = cp * 16 + (uint32_t)d;
        }
        if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) return lex_fail(l, t->pos, "escape in a U&'...' literal names no character", NULL);
        char u[4];
        fz_buf_append(out, u, fz_utf8_put(u, cp));
        i = from + digits;
    }
    return FZ_OK;
}

static fz_status unfold_binary(lexer *l, const sql_token *t, fz_buf *b, fz_buf *out) {
    if (b->len % 2) return lex_fail(l, t->pos, "binary literal must have an even number of hexadecimal digits", NULL);
    for (size_t i = 0; i < b->len; i += 2) {
        int h = hex_digit((char)b->data[i]), o = hex_digit((char)b->data[i + 1]);
        if (h < 0 || o < 0) return lex_fail(l, t->pos, "binary literal holds something that is not a hexadecimal digit", "write X'48656C6C6F'");
        fz_buf_putc(out, (char)(h * 16 + o));
    }
    return FZ_OK;
}

/* A string literal. prefix: 0, 'U' (U&), 'X' or 'N'. */
static fz_status lex_string(lexer *l, char prefix) {
    sql_token *t = push(l, prefix == 'X' ? TK_BINARY : TK_STRING);
    step(l, prefix == 'U' ? 2 : prefix ? 1 : 0);
    fz_buf raw = {0}, folded = {0};
    fz_status rc = quoted(l, '\'', prefix == 'X' ? "binary literal" : "string literal", &raw);
    char escape = '\\';
    if (rc == FZ_OK && prefix == 'U') rc = escape_clause(l, &escape);
    if (rc == FZ_OK && prefix == 'U') rc = unfold_unicode(l, t, escape, &raw, &folded);
    if (rc == FZ_OK && prefix == 'X') rc = unfold_binary(l, t, &raw, &folded);
    if (rc == FZ_OK) {
        const fz_buf *b = prefix == 'U' || prefix == 'X' ? &folded : &raw;
        set_text(l, t, b->len ? (const char *)b->data : "", b->len);
        t->to = (uint32_t)l->i;
    }
    fz_buf_free(&raw);
    fz_buf_free(&folded);
    return rc;
}

static fz_status lex_quoted_ident(lexer *l, char quote) {
    sql_token *t = push(l, TK_QUOTED);
    fz_buf b = {0};
    fz_status rc = quoted(l, quote, "quoted identifier", &b);
    if (rc == FZ_OK && b.len == 0) rc = lex_fail(l, t->pos, "quoted identifier is empty", NULL);
    if (rc == FZ_OK && memchr(b.data, 0, b.len)) rc = lex_fail(l, t->pos, "quoted identifier holds a NUL character", NULL);
    if (rc == FZ_OK) {
        set_text(l, t, (const char *)b.data, b.len);
        t->to = (uint32_t)l->i;
    }
    fz_buf_free(&b);
    return rc;
}

static void lex_number(lexer *l) {
    sql_token *t = push(l, TK_NUMBER);
    size_t k = 0;
    while (isdigit((unsigned char)at(l, k))) k++;
    if (at(l, k) == '.') {
        k++;
        while (isdigit((unsigned char)at(l, k))) k++;
    }
    if (at(l, k) == 'e' || at(l, k) == 'E') {
        size_t e = k + 1;
        if (at(l, e) == '+' || at(l, e) == '-') e++;
        if (isdigit((unsigned char)at(l, e))) {
            while (isdigit((unsigned char)at(l, e))) e++;
            k = e;
        }
    }
    set_text(l, t, l->s + l->i, k);
    step(l, k);
    t->to = (uint32_t)l->i;
}

static bool word_start(char c) { return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80; }
static bool word_part(char c) { return word_start(c) || isdigit((unsigned char)c) || c == '$' || c == '@'; }

static void lex_word(lexer *l) {
    sql_token *t = push(l, TK_WORD);
    size_t k = 1;
    while (word_part(at(l, k))) k++;
    char *w = fz_arena_strndup(l->a, l->s + l->i, k);
    for (size_t j = 0; j < k; j++) w[j] = (char)toupper((unsigned char)w[j]);
    t->text = w;
    t->len = (uint32_t)k;
    t->reserved = sql_is_reserved(w);
    step(l, k);
    t->to = (uint32_t)l->i;
}

static fz_status lex_op(lexer *l) {
    static const char *const two[] = {"<>", "<=", ">=", "!=", "||", "=>", "::", "->", NULL};
    sql_token *t = push(l, TK_OP);
    size_t k = 0;
    for (int j = 0; two[j] && !k; j++)
        if (at(l, 0) == two[j][0] && at(l, 1) == two[j][1]) k = 2;
    if (!k) k = 1;
    if (at(l, 0) == '/' && at(l, 1) == '*' && at(l, 2) == '+') {
        t->kind = TK_HINT;
        k = 3;
    } else if (at(l, 0) == '*' && at(l, 1) == '/') {
        k = 2; /* the end of a hint; elsewhere it is an error of the parser */
    }
    set_text(l, t, l->s + l->i, k);
    step(l, k);
    t->to = (uint32_t)l->i;
    return FZ_OK;
}

static fz_status lex_one(lexer *l) {
    char c = at(l, 0), d = at(l, 1);
    if (c == '\'') return lex_string(l, 0);
    if ((c == 'x' || c == 'X') && d == '\'') return lex_string(l, 'X');
    if ((c == 'n' || c == 'N') && d == '\'') return lex_string(l, 'N');
    if ((c == 'u' || c == 'U') && d == '&' && at(l, 2) == '\'') return lex_string(l, 'U');
    if (c == '`' || c == '"') return lex_quoted_ident(l, c);
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)d))) {
        lex_number(l);
        return FZ_OK;
    }
    if (word_start(c)) {
        lex_word(l);
        return FZ_OK;
    }
    return lex_op(l);
}

static fz_status check_utf8(lexer *l) {
    if (fz_utf8_valid(l->s, l->n)) return FZ_OK;
    while (l->i < l->n) { /* find the place for the message */
        size_t from = l->i, to = from;
        uint32_t cp = fz_utf8_next(l->s, l->n, &to);
        if (cp == 0xFFFD && !(to - from == 3 && memcmp(l->s + from, "\xEF\xBF\xBD", 3) == 0)) break;
        step(l, to - from);
    }
    return lex_fail(l, l->pos, "the text is not UTF-8 here", "save the script as UTF-8");
}

static fz_status lex_all(lexer *l) {
    FZ_TRY(check_utf8(l));
    for (;;) {
        FZ_TRY(skip_blanks(l));
        if (l->i >= l->n) break;
        FZ_TRY(lex_one(l));
    }
    sql_token *end = push(l, TK_END);
    end->to = end->from;
    return FZ_OK;
}

fz_status sql_lex(fz_arena *a, const char *text, size_t n, sql_pos start, sql_lexed *out, fz_error *err) {
    lexer l = {.a = a, .s = text, .n = n, .pos = start, .err = err};
    *out = (sql_lexed){0};
    if (n > FZ_MAX_SQL_TEXT) return fz_fail(err, FZ_USER, "sql.too-large", "the script has %zu bytes, at most %u are read", n, FZ_MAX_SQL_TEXT);
    fz_status rc = lex_all(&l);
    out->open = l.open;
    if (rc != FZ_OK) return rc;
    out->tok = l.tok;
    out->n = l.n_tok - 1;
    return FZ_OK;
}
