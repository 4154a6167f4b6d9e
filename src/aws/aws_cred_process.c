/* credential_process: a program of the user's that writes credentials as JSON to its standard output.
 *
 * The command is split into words as a shell would (quotes and backslashes) and run without one; if it uses what only a shell knows (pipes,
 * variables, redirections), /bin/sh gets the whole text as one argument.
 *
 * Invariants
 *  1. What it writes to standard output stands in no error or log; of standard error, the last line does.
 *  2. It ends within TIMEOUT_MS, or its process group is killed. No child is left behind.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Process credential provider".
 */
#include "aws/aws_cred_int.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 60000, MAX_WORDS = 256 };
extern char **environ;

/* Splits like a POSIX shell; *plain false: the shell itself is needed. false: a quote does not end, or too many words. */
static bool split(const char *s, fz_arena *a, char **words, size_t *n, bool *plain) {
    fz_buf w = {0};
    bool in = false, ok = true;
    *n = 0;
    *plain = true;
    for (; ok; s++) {
        if (!*s || *s == ' ' || *s == '\t' || *s == '\n' || *s == '\r') {
            if (in && *n + 1 < MAX_WORDS) words[(*n)++] = fz_arena_strndup(a, (const char *)w.data, w.len);
            else if (in) ok = false;
            in = false;
            w.len = 0;
            if (!*s) break;
            continue;
        }
        if (!in) fz_buf_reserve(&w, 1);
        if (strchr("|&;<>()$`*?[", *s) || (!in && (*s == '~' || *s == '#'))) *plain = false;
        in = true;
        if (*s == '\\' && s[1]) fz_buf_putc(&w, *++s);
        else if (*s == '\'' || *s == '"') {
            char quote = *s++;
            for (; *s && *s != quote; s++) {
                if (quote == '"' && (*s == '$' || *s == '`')) *plain = false;
                if (quote == '"' && *s == '\\' && s[1] && strchr("\\\"$`", s[1])) s++;
                fz_buf_putc(&w, *s);
            }
            if (!*s) ok = false;
        } else fz_buf_putc(&w, *s);
        if (!ok) break;
    }
    words[*n] = NULL;
    fz_buf_free(&w);
    return ok && *n;
}

typedef struct child { pid_t pid; int out, err; } child;

static int spawn(char **words, child *c) {
    int o[2] = {-1, -1}, e[2] = {-1, -1};
    if (pipe2(o, O_CLOEXEC) != 0) return errno;
    if (pipe2(e, O_CLOEXEC) != 0) {
        int saved = errno;
        close(o[0]);
        close(o[1]);
        return saved;
    }
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGINT);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, o[1], 1);
    posix_spawn_file_actions_adddup2(&fa, e[1], 2);
    posix_spawnattr_init(&at);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setsigdefault(&at, &all);
    int rc = posix_spawnp(&c->pid, words[0], &fa, &at, words, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    close(o[1]);
    close(e[1]);
    c->out = o[0];
    c->err = e[0];
    if (rc != 0) {
        close(o[0]);
        close(e[0]);
    }
    return rc;
}

/* Reads both pipes until they close. false: time is over, or too much came. Of standard error the end is kept. */
static bool drain(const child *c, int64_t timeout_ms, fz_buf *out, fz_buf *err) {
    struct pollfd p[2] = {{c->out, POLLIN, 0}, {c->err, POLLIN, 0}};
    int64_t end = fz_mono_ns() / 1000000 + timeout_ms;
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        int64_t left = end - fz_mono_ns() / 1000000;
        if (left <= 0) return false;
        int got = poll(p, 2, (int)left);
        if (got < 0 && errno != EINTR) return false;
        for (int i = 0; i < 2 && got > 0; i++) {
            char buf[4096];
            if (p[i].fd < 0 || !p[i].revents) continue;
            ssize_t n = read(p[i].fd, buf, sizeof buf);
            if (n < 0 && errno == EINTR) continue;
            fz_buf *to = i ? err : out;
            if (n <= 0) p[i].fd = -1;
            else fz_buf_append(to, buf, (size_t)n);
            explicit_bzero(buf, sizeof buf);
            if (out->len > FZ_MAX_AWS_ANSWER) return false;
            if (err->len > 8192) {
                memmove(err->data, err->data + err->len - 4096, 4096);
                err->len = 4096;
            }
        }
    }
    return true;
}

/* The last line that says something, printable. */
static void last_line(fz_buf *b, char *out, size_t cap) {
    fz_sv s = fz_sv_trim((fz_sv){(const char *)b->data, b->len});
    size_t from = s.n, n = 0;
    while (from && s.p[from - 1] != '\n') from--;
    for (size_t i = from; i < s.n && n + 1 < cap; i++)
        if ((unsigned char)s.p[i] >= ' ' && s.p[i] != 127) out[n++] = s.p[i];
    out[n] = 0;
}

static fz_status run(const char *source, char **words, int64_t timeout_ms, fz_buf *out, fz_error *err) {
    child c;
    fz_buf said = {0};
    int e = spawn(words, &c), status = 0;
    if (e) return fz_fail(err, FZ_USER, "aws.credentials", "%s: %.120s: %s", source, words[0], strerrordesc_np(e));
    bool ended = drain(&c, timeout_ms, out, &said);
    if (!ended) kill(-c.pid, SIGKILL);
    close(c.out);
    close(c.err);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {}
    char line[300];
    last_line(&said, line, sizeof line);
    fz_buf_free(&said);
    fz_status rc = FZ_OK;
    if (!ended && out->len > FZ_MAX_AWS_ANSWER) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s wrote more than %u bytes", source, FZ_MAX_AWS_ANSWER);
    else if (!ended) rc = fz_fail(err, FZ_RETRY, "aws.credentials-unavailable", "%s did not end within %lld s", source, (long long)timeout_ms / 1000);
    else if (WIFSIGNALED(status)) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s was killed by signal %d", source, WTERMSIG(status));
    else if (WEXITSTATUS(status)) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s failed with exit code %d", source, WEXITSTATUS(status));
    if (rc != FZ_OK && *line) return fz_detail(err, "it says: %s", line);
    return rc;
}

int64_t aws_process_timeout_ms = TIMEOUT_MS;

fz_status aws_process_credentials(const aws_settings *s, const char *command, const char *source, fz_arena *a, aws_credentials *out, fz_error *err) {
    static const aws_json_names names = {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration", "AccountId"};
    char *words[MAX_WORDS + 1], *shell[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
    size_t n;
    bool plain;
    (void)s;
    if (!split(command, a, words, &n, &plain)) return fz_fail(err, FZ_USER, "aws.credentials", "%s: the command's quotes do not end, or it has too many words", source);
    fz_buf answer = {0};
    fz_status rc = run(source, plain ? words : shell, aws_process_timeout_ms, &answer, err);
    if (rc == FZ_OK) {
        json_t *o = json_loadb((const char *)answer.data, answer.len, 0, NULL);
        const json_t *version = json_object_get(o, "Version");
        if (o && (!json_is_integer(version) || json_integer_value(version) != 1)) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s gave no \"Version\": 1", source);
        json_decref(o);
    }
    if (rc == FZ_OK) rc = aws_credentials_of_json(source, (const char *)answer.data, answer.len, &names, a, out, err);
    if (rc == FZ_OK && out->expires_ms && out->expires_ms <= fz_now_ms()) rc = fz_fail(err, FZ_USER, "aws.credentials", "%s gave credentials that have expired", source);
    out->source = source;
    aws_buf_wipe(&answer);
    return rc;
}
