/* TLS: which certificates are taken, and what is said of the others. Certificates are made here, with libcrypto; a Python process serves them. */
#include "unit.h"
#include "net/net.h"
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];
static const char *in_dir(const char *name) {
    static char path[256][160];
    static int at;
    at = (at + 1) % 256;
    snprintf(path[at], sizeof path[at], "%s/%s", dir, name);
    return path[at];
}

typedef struct made { X509 *cert; EVP_PKEY *key; } made;

static void extend(X509 *c, X509 *issuer, int nid, const char *value) {
    X509V3_CTX cx;
    X509V3_set_ctx(&cx, issuer, c, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &cx, nid, value);
    assert_non_null(e);
    X509_add_ext(c, e, -1);
    X509_EXTENSION_free(e);
}

/* Writes NAME.pem and NAME.key; valid from and to in seconds from now; issuer NULL: signs itself. */
static made make(const char *name, const char *alt, long from, long to, const made *issuer, bool ca) {
    made m = {X509_new(), EVP_EC_gen("P-256")};
    static long serial = 1;
    X509_set_version(m.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(m.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(m.cert), from);
    X509_gmtime_adj(X509_getm_notAfter(m.cert), to);
    X509_set_pubkey(m.cert, m.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(m.cert), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509 *by = issuer ? issuer->cert : m.cert;
    X509_set_issuer_name(m.cert, X509_get_subject_name(by));
    extend(m.cert, by, NID_basic_constraints, ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (alt) extend(m.cert, by, NID_subject_alt_name, alt);
    assert_true(X509_sign(m.cert, issuer ? issuer->key : m.key, EVP_sha256()) > 0);
    char file[80];
    snprintf(file, sizeof file, "%s.pem", name);
    FILE *f = fopen(in_dir(file), "w");
    PEM_write_X509(f, m.cert);
    fclose(f);
    snprintf(file, sizeof file, "%s.key", name);
    f = fopen(in_dir(file), "w");
    PEM_write_PrivateKey(f, m.key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    return m;
}
static void drop(made m) {
    X509_free(m.cert);
    EVP_PKEY_free(m.key);
}

/* argv: certificate, key, CA of clients or "". Answers every request with its number of this connection; /rude ends without a TLS goodbye. */
static const char server[] =
    "import ssl, socket, sys, threading\n"
    "cx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
    "cx.load_cert_chain(sys.argv[1], sys.argv[2])\n"
    "if sys.argv[3]:\n"
    "    cx.verify_mode = ssl.CERT_REQUIRED\n"
    "    cx.load_verify_locations(sys.argv[3])\n"
    "s = socket.create_server(('127.0.0.1', 0))\n"
    "print(s.getsockname()[1], flush=True)\n"
    "def serve(c):\n"
    "    try:\n"
    "        t = cx.wrap_socket(c, server_side=True)\n"
    "        n = 0\n"
    "        while True:\n"
    "            rq = b''\n"
    "            while b'\\r\\n\\r\\n' not in rq:\n"
    "                got = t.recv(65536)\n"
    "                if not got: return\n"
    "                rq += got\n"
    "            if b'/rude' in rq:\n"
    "                t.sendall(b'HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n4\\r\\nhalf\\r\\n')\n"
    "                t.unwrap = None; socket.socket(fileno=t.detach()).shutdown(socket.SHUT_RDWR); return\n"
    "            n += 1\n"
    "            t.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\n\\r\\n%d' % n)\n"
    "    except OSError: pass\n"
    "while True:\n"
    "    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n";

typedef struct peer { pid_t pid; int port; } peer;
static peer start(const char *name, const char *client_ca) {
    char cert[80], key[80], certs[160], keys[160], cas[160] = "", line[32] = "";
    snprintf(cert, sizeof cert, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    snprintf(certs, sizeof certs, "%s", in_dir(cert));
    snprintf(keys, sizeof keys, "%s", in_dir(key));
    if (client_ca) snprintf(cas, sizeof cas, "%s", in_dir(client_ca));
    int out[2];
    assert_int_equal(pipe(out), 0);
    peer p = {.pid = fork()};
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody behind */
        dup2(out[1], 1);
        close(out[0]);
        execlp("python3", "python3", "-c", server, certs, keys, cas, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    for (size_t n = 0; n < sizeof line - 1 && read(out[0], line + n, 1) == 1 && line[n] != '\n';) n++;
    close(out[0]);
    p.port = (int)strtol(line, NULL, 10);
    assert_int_not_equal(p.port, 0);
    return p;
}
static void stop(peer p) {
    kill(p.pid, SIGKILL);
    waitpid(p.pid, NULL, 0);
}

static fz_error err;
static char body[16];
static int status;
static fz_status ask(peer p, const char *host, const char *path, net_tls tls, bool repeatable) {
    char url[128];
    snprintf(url, sizeof url, "https://%s:%d%s", host, p.port, path);
    net_request rq = {.method = "GET", .url = url, .tls = tls, .proxy = "", .timeout_ms = 10000, .repeatable = repeatable};
    net_answer an;
    memset(&err, 0, sizeof err);
    fz_status st = net_exchange(&rq, &an, &err);
    status = an.status;
    snprintf(body, sizeof body, "%.*s", (int)an.body.len, an.body.len ? (const char *)an.body.data : "");
    net_answer_free(&an);
    return st;
}
static void refused(fz_status st, const char *words, const char *hint) {
    assert_int_equal(st, FZ_USER);
    assert_string_equal(err.code, "net.tls-certificate");
    if (!strstr(err.message, words) || !strstr(err.hint, hint)) fail_msg("'%s' / '%s' lacks '%s' / '%s'", err.message, err.hint, words, hint);
}

static void test_good(void **state) {
    (void)state;
    peer p = start("good", NULL);
    net_tls ca = {.ca_file = in_dir("ca.pem")};
    for (int i = 0; i < 3; i++) { /* one connection */
        assert_int_equal(ask(p, "127.0.0.1", "/", ca, true), FZ_OK);
        assert_int_equal(body[0], '1' + i);
    }
    assert_int_equal(ask(p, "127.0.0.1", "/", ca, false), FZ_OK);
    assert_string_equal(body, "1");
    assert_int_equal(ask(p, "localhost", "/", ca, true), FZ_OK);
    /* A connection that was made for one set of authorities does not serve another. */
    refused(ask(p, "127.0.0.1", "/", (net_tls){0}, true), "not signed by an authority", "AWS_CA_BUNDLE");
    refused(ask(p, "127.0.0.1", "/", (net_tls){.ca_file = in_dir("other.pem")}, true), "not signed by an authority", "other.pem");
    assert_int_equal(ask(p, "127.0.0.1", "/", (net_tls){.no_verify = true}, true), FZ_OK);
    refused(ask(p, "127.0.0.1", "/", (net_tls){.ca_file = in_dir("absent.pem")}, true), "absent.pem", "");
    /* Cut off by whoever sits on the line. */
    assert_int_equal(ask(p, "127.0.0.1", "/rude", ca, true), FZ_UNKNOWN);
    assert_string_equal(err.code, "net.short-answer");
    assert_int_equal(status, 200);
    fz_arena *a = fz_arena_new();
    const char *address = "";
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d", p.port);
    assert_int_equal(net_reach(url, &ca, 3000, a, &address, &err), FZ_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(net_reach(url, NULL, 3000, a, &address, &err), FZ_USER);
    assert_string_equal(err.code, "net.tls-certificate");
    fz_arena_free(a);
    stop(p);
}

static void test_bad_certificates(void **state) {
    (void)state;
    net_tls ca = {.ca_file = in_dir("ca.pem")};
    peer p = start("expired", NULL);
    refused(ask(p, "127.0.0.1", "/", ca, true), "has expired", "clock");
    stop(p);
    p = start("future", NULL);
    refused(ask(p, "127.0.0.1", "/", ca, true), "not valid yet", "clock");
    stop(p);
    p = start("elsewhere", NULL);
    refused(ask(p, "127.0.0.1", "/", ca, true), "another name", "host");
    refused(ask(p, "localhost", "/", ca, true), "another name", "host");
    stop(p);
    p = start("other", NULL); /* signed by itself */
    refused(ask(p, "127.0.0.1", "/", ca, true), "not signed by an authority", "");
    assert_int_equal(ask(p, "127.0.0.1", "/", (net_tls){.ca_file = in_dir("other.pem")}, true), FZ_OK);
    stop(p);
}

static void copy(const char *from, const char *to) {
    char b[4096];
    FILE *f = fopen(in_dir(from), "r");
    size_t n = fread(b, 1, sizeof b, f);
    fclose(f);
    f = fopen(in_dir(to), "w");
    fwrite(b, 1, n, f);
    fclose(f);
}
/* A bundle that changes under a running process. */
static void test_bundle_changes(void **state) {
    (void)state;
    peer p = start("good", NULL);
    net_tls tls = {.ca_file = in_dir("trusted.pem")};
    copy("other.pem", "trusted.pem");
    refused(ask(p, "127.0.0.1", "/", tls, true), "not signed by an authority", "trusted.pem");
    copy("ca.pem", "trusted.pem");
    assert_int_equal(ask(p, "127.0.0.1", "/", tls, true), FZ_OK);
    copy("good.key", "trusted.pem"); /* no certificate in it; what stands goes on */
    refused(ask(p, "127.0.0.1", "/", tls, false), "trusted.pem", "");
    unlink(in_dir("trusted.pem"));
    stop(p);
}

static void test_client_certificate(void **state) {
    (void)state;
    peer p = start("good", "ca.pem");
    net_tls tls = {.ca_file = in_dir("ca.pem"), .cert_file = in_dir("client.pem"), .key_file = in_dir("client.key")};
    assert_int_equal(ask(p, "127.0.0.1", "/", tls, true), FZ_OK);
    /* In TLS 1.3 the refusal of a client comes after its request went out. */
    fz_status st = ask(p, "127.0.0.1", "/", (net_tls){.ca_file = in_dir("ca.pem")}, true);
    assert_true(st == FZ_UNKNOWN || st == FZ_RETRY);
    refused(ask(p, "127.0.0.1", "/", (net_tls){.ca_file = in_dir("ca.pem"), .cert_file = in_dir("absent.pem"), .key_file = in_dir("client.key")}, true), "client certificate", "");
    stop(p);
}

static int set_up(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/net-tls-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    long day = 86400;
    made ca = make("ca", NULL, -day, day, NULL, true);
    drop(make("good", "IP:127.0.0.1,DNS:localhost", -day, day, &ca, false));
    drop(make("expired", "IP:127.0.0.1", -2 * day, -day, &ca, false));
    drop(make("future", "IP:127.0.0.1", day, 2 * day, &ca, false));
    drop(make("elsewhere", "DNS:example.com", -day, day, &ca, false));
    drop(make("client", NULL, -day, day, &ca, false));
    drop(make("other", "IP:127.0.0.1", -day, day, NULL, true));
    drop(ca);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    static const char *const names[] = {"ca", "good", "expired", "future", "elsewhere", "client", "other"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[80];
        snprintf(file, sizeof file, "%s.pem", names[i]);
        unlink(in_dir(file));
        snprintf(file, sizeof file, "%s.key", names[i]);
        unlink(in_dir(file));
    }
    return rmdir(dir);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad_certificates), cmocka_unit_test(test_bundle_changes), cmocka_unit_test(test_client_certificate)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
