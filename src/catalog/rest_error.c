/* Bodies of errors: Iceberg's, OAuth's and AWS's JSON, and the HTML of proxies. See rest_int.h. */
#include "catalog/rest_int.h"

void rest_text_shorten(const void *body, size_t n, char *out, size_t cap) {
    const char *p = body;
    size_t k = 0, first = 0;
    while (first < n && (unsigned char)p[first] <= ' ') first++;
    bool html = first < n && p[first] == '<', tag = false, blank = true;
    for (size_t i = 0; i < n && k + 5 < cap; i++) {
        unsigned char ch = (unsigned char)p[i];
        if (html && ch == '<') tag = true;
        if (!tag && ch > ' ' && ch != 0x7f) {
            out[k++] = (char)ch;
            blank = false;
        } else if (!blank) {
            out[k++] = ' ';
            blank = true;
        }
        if (ch == '>') tag = false;
    }
    while (k > 0 && out[k - 1] == ' ') k--;
    while (k > 0 && !fz_utf8_valid(out, k)) k--;
    out[k] = 0;
}

static void take(const json_t *o, const char *const *names, char *out, size_t cap) {
    for (; *names && !*out; names++) {
        const char *s = json_string_value(json_object_get(o, *names));
        if (s) rest_text_shorten(s, strlen(s), out, cap);
    }
}

void rest_error_parse(rest *r, rest_answer *a) {
    static const char *const messages[] = {"message", "Message", "error_description", NULL}, *const types[] = {"type", "__type", "Type", "code", "Code", NULL};
    fz_buf *b = &a->http.body;
    if (b->len) rest_auth_redact(r->auth, (char *)(uintptr_t)fz_buf_cstr(b));
    json_t *root = b->len ? json_loadb((const char *)b->data, b->len, 0, NULL) : NULL;
    const json_t *e = json_object_get(root, "error"), *o = json_is_object(e) ? e : root;
    a->type[0] = a->message[0] = 0;
    if (json_is_string(e)) rest_text_shorten(json_string_value(e), json_string_length(e), a->type, sizeof a->type); /* OAuth: RFC 6749 5.2 */
    take(o, types, a->type, sizeof a->type);
    take(o, messages, a->message, sizeof a->message);
    const char *amazon = net_answer_header(&a->http, "x-amzn-errortype");
    if (!a->type[0] && amazon) snprintf(a->type, sizeof a->type, "%.*s", (int)strcspn(amazon, ":"), amazon);
    if (!a->message[0] && !json_is_object(root)) rest_text_shorten(b->data, b->len, a->message, 200);
    rest_auth_redact(r->auth, a->message);
    rest_auth_redact(r->auth, a->type);
    json_decref(root);
}
