/* The two profile files of AWS, ~/.aws/config and ~/.aws/credentials, as the SDKs read them.
 *
 * Lines: "[section]", "key = value", blank, or a comment (first character # or ;). A line that is indented deeper than the property above it continues
 * its value (with a line feed between); under an empty value such lines are a nested block "key = value". " #" and " ;" behind a value begin a comment,
 * but not in credential_process, whose value is a command. In the config file a profile is [profile name] or [default]; in the
 * credentials file [name]. [profile default] beats [default]. Repeated sections are merged, the last of equal properties counts.
 *
 * What it does not do: interpret values, or look at the environment.
 *
 * Invariants
 *  1. The text is hostile until read: sizes and counts are bounded by base/limits.h, no error quotes more than a section's name.
 *  2. Values are wiped before they are freed.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Shared config and credentials files"; where the SDKs differ, what more of them do.
 */
#include "aws/aws_cred_int.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct property { const char *key; char *value; } property;
typedef struct section {
    aws_section_kind kind;
    const char *name;
    property *v;
    size_t n, cap;
    bool prefixed; /* "default" written as [profile default] */
} section;
struct aws_profiles {
    fz_arena *arena;
    section *v;
    size_t n, cap;
    fz_buf note;
};

aws_profiles *aws_profiles_new(void) {
    aws_profiles *p = FZ_NEW(aws_profiles);
    p->arena = fz_arena_new();
    return p;
}

static void wipe_section(section *s) {
    for (size_t i = 0; i < s->n; i++) {
        explicit_bzero(s->v[i].value, strlen(s->v[i].value));
        fz_free(s->v[i].value);
    }
    s->n = 0;
}

void aws_profiles_free(aws_profiles *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) {
        wipe_section(&p->v[i]);
        fz_free(p->v[i].v);
    }
    fz_free(p->v);
    fz_buf_free(&p->note);
    fz_arena_free(p->arena);
    fz_free(p);
}

/* --- parsing --- */

typedef struct parser {
    aws_profiles *p;
    const char *path;
    bool credentials;
    size_t line;
    section *section;   /* NULL: none yet, or one that is ignored */
    bool ignored;
    property *property; /* the last one read; NULL: none, or ignored */
    size_t indent;
    size_t lines_of_value;
    fz_error *err;
} parser;

static fz_status bad(parser *x, const char *why) {
    return fz_fail(x->err, FZ_USER, "aws.profile-file", "%s, line %zu: %s", x->path, x->line, why);
}

static section *find(const aws_profiles *p, aws_section_kind kind, fz_sv name) {
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].kind == kind && fz_sv_eq(fz_sv_of(p->v[i].name), name)) return &p->v[i];
    return NULL;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }
static fz_sv trim(fz_sv s) {
    while (s.n && is_blank(s.p[0])) s.p++, s.n--;
    while (s.n && (is_blank(s.p[s.n - 1]) || s.p[s.n - 1] == '\r')) s.n--;
    return s;
}

/* The name behind a prefix word ("profile x", "profile 'x y'"); an empty view: the section does not have that prefix, or no proper name. */
static fz_sv name_after(fz_sv s, const char *prefix) {
    size_t n = strlen(prefix);
    if (s.n <= n || memcmp(s.p, prefix, n) != 0 || !is_blank(s.p[n])) return (fz_sv){0};
    s = trim((fz_sv){s.p + n, s.n - n});
    if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0]) return (fz_sv){s.p + 1, s.n - 2};
    for (size_t i = 0; i < s.n; i++)
        if (is_blank(s.p[i])) return (fz_sv){0};
    return s;
}

static fz_status read_header(parser *x, fz_sv line) {
    const char *end = memchr(line.p, ']', line.n);
    if (!end) return bad(x, "a section must end with ']'");
    fz_sv rest = trim((fz_sv){end + 1, line.n - (size_t)(end + 1 - line.p)});
    if (rest.n && rest.p[0] != '#' && rest.p[0] != ';') return bad(x, "only a comment may follow ']'");
    fz_sv name = trim((fz_sv){line.p + 1, (size_t)(end - line.p - 1)}), found = {0};
    aws_section_kind kind = AWS_SECTION_PROFILE;
    bool prefixed = false;
    x->property = NULL;
    x->section = NULL;
    x->ignored = false;
    if (x->credentials) found = name;
    else if ((found = name_after(name, "profile")).n) prefixed = true;
    else if (fz_sv_eq(name, FZ_SV("default"))) found = name;
    else if ((found = name_after(name, "sso-session")).n) kind = AWS_SECTION_SSO_SESSION;
    else if ((found = name_after(name, "services")).n) kind = AWS_SECTION_SERVICES;
    if (!found.n) { /* [plugins], [preview], ...: not ours */
        x->ignored = true;
        return FZ_OK;
    }
    section *s = find(x->p, kind, found);
    bool is_default = kind == AWS_SECTION_PROFILE && !x->credentials && fz_sv_eq(found, FZ_SV("default"));
    if (!s) {
        if (x->p->n >= FZ_MAX_AWS_SECTIONS) return bad(x, "too many sections");
        FZ_GROW(x->p->v, x->p->n, x->p->cap);
        s = &x->p->v[x->p->n++];
        *s = (section){.kind = kind, .name = fz_arena_strndup(x->p->arena, found.p, found.n)};
    } else if (is_default && s->prefixed != prefixed) {
        if (!prefixed) {
            x->ignored = true;
            return FZ_OK;
        }
        wipe_section(s);
    }
    if (is_default) s->prefixed = prefixed;
    x->section = s;
    return FZ_OK;
}

/* Where a comment begins behind a value, or s.n. */
static size_t comment_at(fz_sv s) {
    for (size_t i = 1; i < s.n; i++)
        if ((s.p[i] == '#' || s.p[i] == ';') && is_blank(s.p[i - 1])) return i;
    return s.n;
}

static void set_value(property *p, fz_sv v) {
    if (p->value) {
        explicit_bzero(p->value, strlen(p->value));
        fz_free(p->value);
    }
    p->value = fz_strndup(v.p, v.n);
}

static fz_status read_property(parser *x, fz_sv line) {
    x->property = NULL;
    if (x->ignored) return FZ_OK;
    const char *eq = memchr(line.p, '=', line.n);
    if (!eq) eq = memchr(line.p, ':', line.n);
    if (!eq) return bad(x, x->section ? "a property must have the form key = value" : "a section such as [default] must come first");
    if (!x->section) return bad(x, "a section such as [default] must come first");
    fz_sv key = trim((fz_sv){line.p, (size_t)(eq - line.p)}), value = {eq + 1, line.n - (size_t)(eq + 1 - line.p)};
    if (!key.n) return bad(x, "a property has no name");
    if (key.n > 256) return bad(x, "the name of a property is too long");
    if (!fz_sv_ieq(key, FZ_SV("credential_process"))) value.n = comment_at(value);
    value = trim(value);
    section *s = x->section;
    for (size_t i = 0; i < s->n && !x->property; i++)
        if (fz_sv_ieq(fz_sv_of(s->v[i].key), key)) x->property = &s->v[i];
    if (!x->property) {
        if (s->n >= FZ_MAX_AWS_PROPERTIES) return bad(x, "too many properties in one section");
        FZ_GROW(s->v, s->n, s->cap);
        s->v[s->n] = (property){.key = fz_arena_strndup(x->p->arena, key.p, key.n)};
        x->property = &s->v[s->n++];
    }
    set_value(x->property, value);
    return FZ_OK;
}

static void read_continuation(parser *x, fz_sv line) {
    property *p = x->property;
    size_t old = strlen(p->value);
    char *v = fz_malloc(old + 1 + line.n + 1);
    memcpy(v, p->value, old);
    v[old] = '\n';
    memcpy(v + old + 1, line.p, line.n);
    v[old + 1 + line.n] = 0;
    explicit_bzero(p->value, old);
    fz_free(p->value);
    p->value = v;
}

static fz_status read_line(parser *x, fz_sv raw) {
    fz_sv line = trim(raw);
    if (!line.n || line.p[0] == '#' || line.p[0] == ';') return FZ_OK;
    size_t indent = (size_t)(line.p - raw.p);
    if (indent > x->indent && (x->property || x->ignored)) {
        if (x->property && x->lines_of_value++ >= FZ_MAX_AWS_PROPERTIES) return bad(x, "a value has too many lines");
        if (x->property) read_continuation(x, line);
        return FZ_OK;
    }
    x->indent = indent;
    x->lines_of_value = 0;
    return line.p[0] == '[' ? read_header(x, line) : read_property(x, line);
}

fz_status aws_profiles_parse(aws_profiles *p, const char *text, size_t n, bool credentials, const char *path, fz_error *err) {
    parser x = {.p = p, .path = path, .credentials = credentials, .err = err};
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, n -= 3;
    if (n > FZ_MAX_AWS_FILE) return fz_fail(err, FZ_USER, "aws.profile-file", "%s is larger than %u bytes", path, FZ_MAX_AWS_FILE);
    if (n && memchr(text, 0, n)) return fz_fail(err, FZ_USER, "aws.profile-file", "%s is no text file", path);
    for (const char *at = text, *end = text + n; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *stop = nl ? nl : end;
        x.line++;
        FZ_TRY(read_line(&x, (fz_sv){at, (size_t)(stop - at)}));
        at = stop + 1;
    }
    return FZ_OK;
}

/* --- files --- */

void aws_buf_wipe(fz_buf *b) {
    if (b->data) explicit_bzero(b->data, b->cap);
    fz_buf_free(b);
}

int aws_file_read(const char *path, size_t max, fz_buf *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), e = 0;
    if (fd < 0) return errno;
    struct stat st;
    if (fstat(fd, &st) != 0) e = errno;
    else if (!S_ISREG(st.st_mode)) e = ENOENT;
    else if ((uint64_t)st.st_size > max) e = EFBIG;
    if (!e) fz_buf_reserve(out, (size_t)st.st_size + 1);
    while (!e) {
        fz_buf_reserve(out, 1);
        ssize_t got = read(fd, out->data + out->len, out->cap - out->len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) e = errno;
        if (got <= 0) break;
        out->len += (size_t)got;
        if (out->len > max) e = EFBIG;
    }
    close(fd);
    return e;
}

static fz_status load_one(aws_profiles *p, const char *path, bool credentials, fz_error *err) {
    if (!path) return FZ_OK;
    fz_buf text = {0};
    int e = aws_file_read(path, FZ_MAX_AWS_FILE, &text);
    fz_status rc = FZ_OK;
    if (e == EFBIG) rc = fz_fail(err, FZ_USER, "aws.profile-file", "%s is larger than %u bytes", path, FZ_MAX_AWS_FILE);
    else if (e == ENOENT || e == ENOTDIR) fz_buf_printf(&p->note, "%sno file %s", p->note.len ? ", " : "", path);
    else if (e) fz_buf_printf(&p->note, "%s%s: %s", p->note.len ? ", " : "", path, strerrordesc_np(e));
    else rc = aws_profiles_parse(p, (const char *)text.data, text.len, credentials, path, err);
    aws_buf_wipe(&text);
    return rc;
}

fz_status aws_profiles_load(const char *config, const char *credentials, aws_profiles **out, fz_error *err) {
    aws_profiles *p = aws_profiles_new();
    fz_status rc = load_one(p, config, false, err);
    if (rc == FZ_OK) rc = load_one(p, credentials, true, err);
    fz_buf_cstr(&p->note);
    if (rc != FZ_OK) {
        aws_profiles_free(p);
        p = NULL;
    }
    *out = p;
    return rc;
}

/* --- asking --- */

bool aws_profiles_has(const aws_profiles *p, aws_section_kind kind, const char *name) { return find(p, kind, fz_sv_of(name)) != NULL; }

const char *aws_profiles_get(const aws_profiles *p, aws_section_kind kind, const char *name, const char *key) {
    const section *s = find(p, kind, fz_sv_of(name));
    for (size_t i = 0; s && i < s->n; i++)
        if (fz_ieq(s->v[i].key, key)) return s->v[i].value;
    return NULL;
}

const char *aws_profiles_sub(const aws_profiles *p, aws_section_kind kind, const char *name, const char *key, const char *sub, fz_arena *a) {
    const char *block = aws_profiles_get(p, kind, name, key), *found = NULL;
    if (!block || block[0] != '\n') return NULL;
    for (const char *at = block + 1;;) {
        size_t n = strcspn(at, "\n");
        const char *eq = memchr(at, '=', n);
        if (eq && fz_sv_ieq(trim((fz_sv){at, (size_t)(eq - at)}), fz_sv_of(sub))) {
            fz_sv v = trim((fz_sv){eq + 1, n - (size_t)(eq + 1 - at)});
            found = fz_arena_strndup(a, v.p, v.n);
        }
        if (!at[n]) return found;
        at += n + 1;
    }
}

const char *aws_profiles_names(const aws_profiles *p, fz_arena *a) {
    fz_buf b = {0};
    for (size_t i = 0; i < p->n && b.len < 200; i++)
        if (p->v[i].kind == AWS_SECTION_PROFILE) fz_buf_printf(&b, "%s%.64s", b.len ? ", " : "", p->v[i].name);
    const char *s = fz_arena_strdup(a, fz_buf_cstr(&b));
    fz_buf_free(&b);
    return s;
}

const char *aws_profiles_note(const aws_profiles *p) { return p->note.len ? (const char *)p->note.data : ""; }
