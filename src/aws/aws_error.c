/* What a service says went wrong: code and message out of JSON, XML or headers. See aws_int.h. */
#include "aws/aws_int.h"

/* "com.amazonaws.glue#EntityNotFoundException:http://..." -> "EntityNotFoundException". */
static void put_code(aws_answer *a, const char *code) {
    const char *hash = strrchr(code, '#');
    if (hash) code = hash + 1;
    snprintf(a->error_code, sizeof a->error_code, "%.*s", (int)strcspn(code, ":"), code);
}

/* One line, without control characters. */
static void put_message(aws_answer *a, const char *text) {
    snprintf(a->error_message, sizeof a->error_message, "%s", text);
    for (char *p = a->error_message; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' ';
}

static const char *text_of(const json_t *o, const char *const *names) {
    for (; *names; names++) {
        const char *s = json_string_value(json_object_get(o, *names));
        if (s) return s;
    }
    return NULL;
}

static bool parse_json(aws_answer *a) {
    static const char *const codes[] = {"__type", "code", "Code", "type", NULL}, *const messages[] = {"message", "Message", "errorMessage", NULL};
    json_t *o = json_loadb((const char *)a->http.body.data, a->http.body.len, 0, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return false;
    }
    const json_t *in = json_is_object(json_object_get(o, "error")) ? json_object_get(o, "error") : o;
    const char *code = text_of(in, codes), *message = text_of(in, messages);
    if (code) put_code(a, code);
    if (message) put_message(a, message);
    json_decref(o);
    return true;
}

static void parse_xml(aws_answer *a) {
    const char *xml = fz_buf_cstr(&a->http.body);
    const char *code = aws_xml_text(a->http.arena, xml, "Code"), *message = aws_xml_text(a->http.arena, xml, "Message");
    const char *id = aws_xml_text(a->http.arena, xml, "RequestId");
    if (code) put_code(a, code);
    if (message) put_message(a, message);
    if (id && !a->request_id[0]) snprintf(a->request_id, sizeof a->request_id, "%s", id);
}

/* A HEAD's answer has no body: its status is all that there is. */
static const char *code_of_status(int status) {
    switch (status) {
    case 301: return "MovedPermanently";
    case 307: return "TemporaryRedirect";
    case 400: return "BadRequest";
    case 403: return "Forbidden";
    case 404: return "NotFound";
    case 405: return "MethodNotAllowed";
    case 409: return "Conflict";
    case 412: return "PreconditionFailed";
    case 429: return "TooManyRequests";
    default: return "";
    }
}

void aws_error_parse(aws_answer *a) {
    static const char *const ids[] = {"x-amzn-requestid", "x-amz-request-id", "x-amzn-request-id", NULL};
    a->error_code[0] = a->error_message[0] = a->request_id[0] = 0;
    for (const char *const *n = ids; *n && !a->request_id[0]; n++) {
        const char *id = net_answer_header(&a->http, *n);
        if (id) snprintf(a->request_id, sizeof a->request_id, "%s", id);
    }
    size_t i = 0;
    while (i < a->http.body.len && strchr(" \t\r\n", (char)a->http.body.data[i])) i++;
    if (i < a->http.body.len && a->http.body.data[i] == '{') (void)parse_json(a);
    else if (i < a->http.body.len && a->http.body.data[i] == '<') parse_xml(a);
    else if (a->http.body.len && a->http.body.len < 300 && fz_utf8_valid((char *)a->http.body.data, a->http.body.len))
        put_message(a, fz_buf_cstr(&a->http.body)); /* a proxy's plain text */
    const char *type = net_answer_header(&a->http, "x-amzn-errortype");
    if (type && !a->error_code[0]) put_code(a, type);
    if (!a->error_code[0] && a->http.body.len == 0) put_code(a, code_of_status(a->http.status));
}

const char *aws_mask_key(const char *access_key, char out[16]) {
    size_t n = access_key ? strlen(access_key) : 0;
    snprintf(out, 16, "****%s", n >= 8 ? access_key + n - 4 : "");
    return out;
}
