/* sasl.jaas.config: one login module with its options, as the Java client takes it:
 *   org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";
 *
 * Words are bare or quoted with single or double quotes; within quotes \n, \t, \\, \" and the like are escapes, as in
 * java.io.StreamTokenizer, which the Java client reads it with. Comments are not taken.
 *
 * Invariants
 *  1. No error quotes any of the text: it holds a password.
 */
#include "source/kafka_int.h"
#include <stdio.h>

typedef struct lexer { const char *p; fz_buf word; bool failed; } lexer;

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static char unescape(const char **p) {
    char c = **p;
    if (c >= '0' && c <= '7') { /* up to three octal digits, the first of three at most 3 */
        unsigned v = 0;
        for (int i = 0; i < (c <= '3' ? 3 : 2) && **p >= '0' && **p <= '7'; i++) v = v * 8 + (unsigned)(*(*p)++ - '0');
        return (char)v;
    }
    (*p)++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    default: return c;
    }
}

/* Next word, "=" or ";" in word; false at the end of the text or at a quote that does not end. */
static bool next(lexer *l) {
    l->word.len = 0;
    while (blank(*l->p)) l->p++;
    if (!*l->p) return false;
    if (*l->p == '=' || *l->p == ';') {
        fz_buf_putc(&l->word, *l->p++);
        return true;
    }
    if (*l->p == '"' || *l->p == '\'') {
        char quote = *l->p++;
        while (*l->p && *l->p != quote && *l->p != '\n') {
            if (*l->p == '\\' && l->p[1]) {
                l->p++;
                fz_buf_putc(&l->word, unescape(&l->p));
            } else fz_buf_putc(&l->word, *l->p++);
        }
        l->failed = *l->p != quote;
        if (!l->failed) l->p++;
        return !l->failed;
    }
    while (*l->p && !blank(*l->p) && *l->p != '=' && *l->p != ';' && *l->p != '"' && *l->p != '\'') fz_buf_putc(&l->word, *l->p++);
    return true;
}
static bool is(lexer *l, const char *s) { return fz_sv_eq((fz_sv){(const char *)l->word.data, l->word.len}, fz_sv_of(s)); }

static fz_status bad(const char *why, fz_error *err) {
    fz_fail(err, FZ_USER, "kafka.jaas", "properties.sasl.jaas.config: %s", why);
    return fz_hint(err, "write: org.apache.kafka.common.security.scram.ScramLoginModule required username=\"...\" password=\"...\";");
}

static void take(char **to, lexer *l) {
    fz_free(*to);
    *to = fz_strdup(fz_buf_cstr(&l->word));
}

static fz_status add(kafka_jaas *j, const char *name, lexer *l, fz_error *err) {
    if (j->n_options == KAFKA_JAAS_OPTIONS) return bad("it has too many options", err);
    j->options[j->n_options].name = fz_strdup(name);
    take(&j->options[j->n_options++].value, l);
    return FZ_OK;
}

static fz_status parse(lexer *l, kafka_jaas *out, fz_error *err) {
    if (!next(l) || is(l, ";") || is(l, "=")) return bad("the name of a login module is missing", err);
    take(&out->module, l);
    if (!next(l)) return bad("a control flag (required) must follow the login module", err);
    fz_buf_putc(&l->word, 0);
    const char *flag = (const char *)l->word.data;
    if (!fz_ieq(flag, "required") && !fz_ieq(flag, "requisite") && !fz_ieq(flag, "sufficient") && !fz_ieq(flag, "optional"))
        return bad("a control flag (required) must follow the login module", err);
    while (next(l) && !is(l, ";")) {
        char **to = is(l, "username") ? &out->username : is(l, "password") ? &out->password : NULL;
        bool tokens = is(l, "tokenauth");
        char name[64];
        snprintf(name, sizeof name, "%s", fz_buf_cstr(&l->word));
        if (!next(l) || !is(l, "=")) return bad("an option must have the form name=\"value\"", err);
        if (!next(l)) return bad("a value is missing or its quotes do not end", err);
        if (tokens && is(l, "true")) return bad("delegation tokens (tokenauth) are not supported", err);
        if (to) take(to, l);
        else FZ_TRY(add(out, name, l, err));
    }
    if (l->failed) return bad("a value is missing or its quotes do not end", err);
    if (!is(l, ";")) return bad("the semicolon at its end is missing", err);
    if (next(l)) return bad("only one login module can be given", err);
    return FZ_OK;
}

fz_status kafka_jaas_parse(const char *text, kafka_jaas *out, fz_error *err) {
    *out = (kafka_jaas){0};
    lexer l = {.p = text};
    fz_status rc = parse(&l, out, err);
    if (l.word.data) explicit_bzero(l.word.data, l.word.cap);
    fz_buf_free(&l.word);
    if (rc != FZ_OK) kafka_jaas_free(out);
    return rc;
}

const char *kafka_jaas_get(const kafka_jaas *j, const char *name) {
    const char *found = NULL;
    for (size_t i = 0; i < j->n_options; i++)
        if (strcmp(j->options[i].name, name) == 0) found = j->options[i].value;
    return found;
}

void kafka_jaas_free(kafka_jaas *j) {
    if (j->password) explicit_bzero(j->password, strlen(j->password));
    for (size_t i = 0; i < j->n_options; i++) {
        explicit_bzero(j->options[i].value, strlen(j->options[i].value));
        fz_free(j->options[i].name);
        fz_free(j->options[i].value);
    }
    fz_free(j->module);
    fz_free(j->username);
    fz_free(j->password);
    *j = (kafka_jaas){0};
}
