/* Addresses to listen on: "127.0.0.1:24224", "[::1]:514", "localhost:0". */
#include "net/server_int.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <unistd.h>

/* Takes "host:port" apart; a host in brackets loses them. */
static fz_status split(const char *address, char host[256], char port[8], fz_error *err) {
    const char *colon = address ? strrchr(address, ':') : NULL;
    const char *h = address;
    size_t n = colon ? (size_t)(colon - address) : 0;
    int64_t number = -1;
    if (colon && n > 2 && h[0] == '[' && h[n - 1] == ']') h++, n -= 2;
    else if (colon && (memchr(h, ':', n) || memchr(h, '[', n) || memchr(h, ']', n))) n = 0; /* IPv6 without its brackets */
    if (!n || n > 255 || !fz_parse_i64(fz_sv_of(colon + 1), &number) || number < 0 || number > 65535) {
        fz_fail(err, FZ_USER, "listen.address", "'%s' is no address to listen on", address ? address : "");
        return fz_hint(err, "HOST:PORT is wanted, as in '127.0.0.1:24224' or '[::1]:514'");
    }
    memcpy(host, h, n);
    host[n] = 0;
    snprintf(port, 8, "%lld", (long long)number);
    return FZ_OK;
}

fz_status net_address_resolve(const char *address, int socktype, struct addrinfo **out, fz_error *err) {
    char host[256], port[8];
    FZ_TRY(split(address, host, port, err));
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = socktype, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    int rc = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, port, &hints, out);
    if (rc) return fz_fail(err, FZ_USER, "listen.address", "cannot listen on '%s': %s", address, gai_strerror(rc));
    return FZ_OK;
}

static bool is_loopback(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    if (fz_ieq(host, "localhost")) return true;
    if (inet_pton(AF_INET, host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

fz_status net_listen_check(const char *address, bool authenticated, bool opt_out, fz_error *err) {
    char host[256], port[8];
    FZ_TRY(split(address, host, port, err));
    if (authenticated || opt_out || is_loopback(host)) return FZ_OK;
    fz_fail(err, FZ_USER, "listen.open", "'%s' can be reached from other machines, and nothing authenticates who sends", address);
    return fz_hint(err, "listen on 127.0.0.1, set up authentication ('auth', or 'tls.ca' for client certificates), or say 'allow-unauthenticated' = 'true'");
}

void net_address_text(const struct sockaddr_storage *a, char out[NET_ADDRESS]) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)a;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(out, NET_ADDRESS, "%s:%u", host, ntohs(v4->sin_port));
        return;
    }
    const struct sockaddr_in6 *v6 = (const void *)a;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, host, sizeof host);
        snprintf(out, NET_ADDRESS, "%s:%u", host, ntohs(v6->sin6_port));
        return;
    }
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    snprintf(out, NET_ADDRESS, "[%s]:%u", host, ntohs(v6->sin6_port));
}

/* One address; -1 with errno. */
static int bind_one(const struct addrinfo *ai) {
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0;
    if (fd < 0) return -1;
    if (ai->ai_socktype == SOCK_STREAM) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && (ai->ai_socktype != SOCK_STREAM || listen(fd, SOMAXCONN) == 0)) return fd;
    int keep = errno;
    close(fd);
    errno = keep;
    return -1;
}

fz_status net_address_bind(const char *address, int socktype, int *fd, char text[NET_ADDRESS], fz_error *err) {
    struct addrinfo *list;
    FZ_TRY(net_address_resolve(address, socktype, &list, err));
    *fd = -1;
    for (const struct addrinfo *ai = list; ai && *fd < 0; ai = ai->ai_next) *fd = bind_one(ai);
    int e = errno;
    freeaddrinfo(list);
    if (*fd < 0) {
        if (e == EADDRINUSE) {
            (void)!fz_fail(err, FZ_USER, "listen.in-use", "cannot listen on %s: another program does", address);
            return fz_hint(err, "end the other program (another copy of this job?), or listen on another port");
        }
        bool theirs = e == EACCES || e == EADDRNOTAVAIL || e == EAFNOSUPPORT;
        fz_status st = fz_fail(err, theirs ? FZ_USER : FZ_FATAL, "listen.address", "cannot listen on %s: %s", address, strerror(e));
        if (e == EACCES) fz_hint(err, "ports below 1024 need a right of their own (CAP_NET_BIND_SERVICE)");
        return st;
    }
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(*fd, (struct sockaddr *)&a, &n) == 0) net_address_text(&a, text);
    return FZ_OK;
}

fz_status net_listen_try(const net_listen_options *o, bool datagrams, fz_error *err) {
    int fd;
    char text[NET_ADDRESS];
    FZ_TRY(net_address_bind(o->address, datagrams ? SOCK_DGRAM : SOCK_STREAM, &fd, text, err));
    close(fd);
    return FZ_OK;
}
