/* Datagrams: read in groups; what the kernel dropped for lack of room is counted where it tells. */
#include "net/server_int.h"
#include <errno.h>
#include <unistd.h>

enum { GROUP = 16, LARGEST = 65536, KERNEL_BUFFER = 4 << 20 };

typedef struct group {
    struct mmsghdr msg[GROUP];
    struct iovec iov[GROUP];
    struct sockaddr_storage peer[GROUP];
    union { struct cmsghdr align; char text[CMSG_SPACE(sizeof(uint32_t))]; } control[GROUP];
    uint8_t *bytes;
} group;

static void note_drops(net_listener *l, struct msghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        uint32_t total;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL) continue;
        memcpy(&total, CMSG_DATA(c), sizeof total);
        if (total != l->kernel_drops) net_count(&l->refused, total - l->kernel_drops);
        l->kernel_drops = total;
    }
}

static void hand_out(net_listener *l, group *g, int n) {
    char peer[NET_ADDRESS] = "?";
    for (int i = 0; i < n; i++) {
        struct msghdr *m = &g->msg[i].msg_hdr;
        note_drops(l, m);
        net_count(&l->bytes_in, g->msg[i].msg_len);
        if (g->msg[i].msg_len > l->o.max_message || (m->msg_flags & MSG_TRUNC)) {
            net_count(&l->too_large, 1);
            continue;
        }
        if (i == 0 || memcmp(&g->peer[i], &g->peer[i - 1], m->msg_namelen) != 0) net_address_text(&g->peer[i], peer);
        net_count(&l->accepted, 1);
        l->from = &g->peer[i];
        l->from_len = m->msg_namelen;
        l->datagram(l->cx, g->iov[i].iov_base, g->msg[i].msg_len, peer);
    }
    l->from = NULL;
}

void net_datagram_answer(net_listener *l, const void *p, size_t n) {
    if (l->from) (void)!sendto(l->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)l->from, l->from_len);
}

static void on_datagrams(evutil_socket_t fd, short what, void *cx) {
    (void)what;
    net_listener *l = cx;
    group *g = FZ_NEW(group);
    g->bytes = fz_malloc((size_t)GROUP * LARGEST);
    /* A pause takes effect between two groups; one group more may come after it. */
    for (int round = 0, n = GROUP; round < 8 && n == GROUP && event_pending(l->ev, EV_READ, NULL); round++) {
        for (int i = 0; i < GROUP; i++) {
            g->iov[i] = (struct iovec){g->bytes + (size_t)i * LARGEST, LARGEST};
            g->msg[i].msg_hdr = (struct msghdr){.msg_name = &g->peer[i], .msg_namelen = sizeof g->peer[i], .msg_iov = &g->iov[i], .msg_iovlen = 1,
                                                .msg_control = &g->control[i], .msg_controllen = sizeof g->control[i]};
        }
        n = recvmmsg(fd, g->msg, GROUP, 0, NULL);
        if (n > 0) hand_out(l, g, n);
    }
    fz_free(g->bytes);
    fz_free(g);
}

bool net_udp_arm(net_listener *l) {
    int on = 1, room = KERNEL_BUFFER;
    setsockopt(l->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    l->ev = event_new(l->loop->base, l->fd, EV_READ | EV_PERSIST, on_datagrams, l);
    return l->ev && event_add(l->ev, NULL) == 0;
}

fz_status net_listen_datagrams(net_loop *loop, const net_listen_options *o, net_datagram_fn fn, void *cx, net_listener **out, fz_error *err) {
    net_listener *l;
    if (o->tls_cert) return fz_fail(err, FZ_USER, "listen.tls", "datagrams cannot have TLS");
    FZ_TRY(net_listener_make(loop, NET_DATAGRAMS, o, NULL, &l, err));
    l->datagram = fn;
    l->cx = cx;
    *out = l;
    net_listener_start(l);
    return FZ_OK;
}

void net_datagrams_pause(net_listener *l, bool pause) {
    if (pause) event_del(l->ev);
    else if (!l->stopped) event_add(l->ev, NULL);
}
