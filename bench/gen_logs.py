#!/usr/bin/env python3
"""Writes log records as NDJSON to standard output: ts, src_host, program, message. The same arguments give the same bytes.

    bench/gen_logs.py {syslog|authlog} COUNT [--seed N] [--hosts N] [--start TIME] [--rate EVENTS_PER_SECOND]

Hosts are drawn with weight 1/rank, so that a few of them write most of the records. Messages look like what sshd, sudo, cron, nginx, dockerd
and their like write; some have escapes, some Japanese text. The order of the random draws is part of the format: a changed order changes
every record behind it.
"""
import argparse
import datetime
import itertools
import random
import sys

USERS = "root admin deploy ubuntu oracle git postgres test guest backup".split()
SITES = [("web", "tky"), ("db", "tky"), ("app", "osk"), ("gw", "nrt")]


class Draw:
    """The random draws that messages are made of."""

    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.one_of = self.rnd.choice
        self.below = self.rnd.randrange
        self.bits = self.rnd.getrandbits

    def user(self):
        return self.one_of(USERS)

    def address(self):
        return "203.0.113.%d" % self.below(1, 255)

    def port(self):
        return self.below(1024, 65535)


def failed_password(d):
    user, address, port = d.user(), d.address(), d.port()
    return "sshd", f"Failed password for invalid user {user} from {address} port {port} ssh2"


def accepted_key(d):
    user, address, port = d.user(), d.address(), d.port()
    return "sshd", f"Accepted publickey for {user} from {address} port {port} ssh2: ED25519 SHA256:{d.bits(128):032x}"


def sudo(d):
    user, tty, home = d.user(), d.below(8), d.user()
    return "sudo", f"  {user} : TTY=pts/{tty} ; PWD=/home/{home} ; USER=root ; COMMAND=/usr/bin/systemctl restart nginx"


def session_opened(d):
    user = d.user()
    return "sshd", f"pam_unix(sshd:session): session opened for user {user}(uid={d.below(1000, 1100)}) by (uid=0)"


def session_closed(d):
    return "CRON", f"pam_unix(cron:session): session closed for user {d.user()}"


def syn_flood(d):
    whole, fraction, port = d.below(10**6), d.below(10**6), d.one_of([80, 443, 8080])
    return "kernel", f"[{whole}.{fraction:06d}] TCP: request_sock_TCP: Possible SYN flooding on port {port}. Sending cookies."


def scope_started(d):
    first, second = d.below(99999), d.below(99999)
    return "systemd", f"Started session-{first}.scope - Session {second} of User {d.user()}."


def web_request(d):
    address, item, page = d.address(), d.below(10**5), d.below(50)
    status, size = d.one_of([200, 200, 200, 304, 404, 500]), d.below(20000)
    return "nginx", (f'{address} - - \\"GET /api/v1/items/{item}?page={page} HTTP/1.1\\" {status} {size} '
                     '\\"-\\" \\"Mozilla/5.0 (X11; Linux x86_64)\\"')


def container_event(d):
    nanos = d.below(10**9)
    return "dockerd", (f'time=\\"2026-09-16T12:00:00.{nanos:09d}+09:00\\" level=info msg=\\"ignoring event\\" '
                       f'container={d.bits(256):064x} module=libcontainerd')


def mail_sent(d):
    queue, to, relay, delay = d.bits(40), d.below(999), d.address(), d.rnd.random() * 9
    return "postfix/smtp", (f"{queue:010X}: to=<user{to}@example.com>, relay=mx.example.com[{relay}]:25, delay={delay:.2f}, "
                            "status=sent (250 2.0.0 Ok: queued)")


def lease(d):
    mine, server = d.address(), d.address()
    return "systemd-networkd", f"eth0: DHCPv4 address {mine}/24 \u66f4\u65b0 via {server}"


KINDS = {
    "authlog": [failed_password, accepted_key, sudo, session_opened, session_closed],
    "syslog": [syn_flood, scope_started, web_request, container_event, mail_sent, lease],
}


def host_names(draw, count):
    return ["%s%02d.%s.example.internal" % (role, n, site)
            for n in range(1, count + 1) for role, site in [draw.one_of(SITES)]]


def records(kind, count, draw, hosts, start, rate):
    weights = list(itertools.accumulate(1.0 / rank for rank in range(1, len(hosts) + 1)))
    senders = draw.rnd.choices(range(len(hosts)), cum_weights=weights, k=count) if count else []
    step, makers = 1.0 / rate, KINDS[kind]
    second, stamp = None, ""
    for n, sender in enumerate(senders):
        if int(n * step) != second:
            second = int(n * step)
            stamp = (start + datetime.timedelta(seconds=second)).isoformat() + "+09:00"
        program, message = draw.one_of(makers)(draw)
        yield f'{{"ts":"{stamp}","src_host":"{hosts[sender]}","program":"{program}","message":"{message}"}}\n'


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("kind", choices=sorted(KINDS))
    args.add_argument("count", type=int)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--hosts", type=int, default=40)
    args.add_argument("--start", default="2026-09-16T22:00:00", help="local time of the first record")
    args.add_argument("--rate", type=float, default=500.0, help="records per second of event time")
    a = args.parse_args()
    draw = Draw(a.seed)
    hosts = host_names(draw, a.hosts)
    lines = records(a.kind, a.count, draw, hosts, datetime.datetime.fromisoformat(a.start), a.rate)
    while block := list(itertools.islice(lines, 8192)):
        sys.stdout.buffer.write("".join(block).encode())


main()
