#!/usr/bin/env python3
"""A proxy that spoils chosen requests on their way to a service, to see what the client makes of it.

    proxy.py [--control PORT] ROUTE...       ROUTE: LISTEN=HOST:PORT for HTTP, LISTEN=pg:HOST:PORT for PostgreSQL; LISTEN 0: any free port

It listens on 127.0.0.1 and prints a line of JSON with its ports, then a line for each request that it spoils, and the counts at the end. Requests pass
byte for byte, Host and signature as the client sent them. Rules are set over HTTP at the control port: PUT /rules (a list, replaces all), GET /state,
POST /down?listen=PORT&seconds=N, POST /release. From Python: class Proxy.

A rule is an object; of several that apply the first one acts. Which requests: "listen" (a route's port), and regular expressions "method", "path" (path and query; for PostgreSQL the texts of
the statements sent together, as method PG), "target" (header X-Amz-Target), "body"; of those that match the "nth" (1) and the following, "times" in all (1; 0: without end);
with "after": K only once rule number K (from 0) of the list has struck.
What happens, "do":
    drop-answer    the service acts, the client's connection is reset
    reset          the connection is reset, the service sees nothing
    short-answer   the service acts, half of its answer comes through
    delay          "seconds", "when" before (default) or after the service acts
    answer         "status", "answer" (the body), "type", "headers" (PostgreSQL: "sqlstate") instead of the service's answer, "when" before (default; it sees
                   nothing) or after it acted
    duplicate      the service gets it twice, one after the other ("together": true: at the same time); the client sees answer number "pick" (2)
    hold           waits until a later request that matches "until" (an object like a rule's first part) was answered, or for POST /release; "seconds" at most
    late           the client's connection is reset at once, and the service gets the request when `hold` would end
    down           as reset, and for "seconds" no connection is taken on this route; "when": "after": the service acts first
    expire         refuses the credentials that the first such request came with as expired, "style" s3, json, rest-json or iceberg, until the client comes
                   with others; "times" in all
"""
import argparse
import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

LARGEST = 1 << 28


class Request:
    """One request: an HTTP request, or what a PostgreSQL client sends before it waits."""

    def __init__(self, listen, method, path, headers, body, raw):
        self.listen, self.method, self.path, self.headers, self.body, self.raw = listen, method, path, headers, body, raw

    def matches(self, want):
        found = {"method": self.method, "path": self.path, "target": self.headers.get("x-amz-target", ""), "body": self.body.decode("latin-1")}
        if want.get("listen", self.listen) != self.listen:
            return False
        return all(re.search(want[k], v, re.S) for k, v in found.items() if k in want)

    def credentials(self):
        key = re.search(r"Credential=([^/,]*)", self.headers.get("authorization", ""))
        return key[1] if key else self.headers.get("authorization", ""), self.headers.get("x-amz-security-token", "")


class Rule:
    KEYS = {"listen", "method", "path", "target", "body", "nth", "times", "after", "do", "seconds", "when", "status", "type", "headers", "answer", "sqlstate", "together", "pick", "until", "style"}

    def __init__(self, spec):
        unknown = set(spec) - self.KEYS
        if unknown or not callable(getattr(Act, spec.get("do", "").replace("-", "_"), None)):
            raise ValueError(f"rule {spec}: unknown {sorted(unknown) or spec.get('do')}")
        self.spec, self.seen, self.hits, self.held = spec, 0, 0, None

    def sees(self, request, rules):
        """Counts the request if it is one of those that the rule chooses."""
        if not request.matches(self.spec) or ("after" in self.spec and not rules[self.spec["after"]].hits):
            return False
        self.seen += 1
        return True

    def strikes(self, request):
        first, times = self.spec.get("nth", 1), self.spec.get("times", 1)
        if self.spec["do"] == "expire":  # those credentials only, however often they come
            self.held = self.held or request.credentials()
            if request.credentials() != self.held:
                return False
            times = self.spec.get("times", 0)
        if self.seen < first or (times and self.hits >= times):
            return False
        self.hits += 1
        return True


class Gone(Exception):
    """The other side closed the connection."""


# ---- HTTP on the wire ----

async def read_head(reader):
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as e:
        raise Gone from e


def parse_head(head):
    lines = head.decode("latin-1").split("\r\n")
    return lines[0].split(" ", 2), {k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in lines[1:] if l)}


async def read_chunks(reader):
    """The raw bytes of a chunked body, and the same without the framing."""
    raw, plain = bytearray(), bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        raw += line
        n = int(line.split(b";")[0], 16)
        if n == 0:
            break
        data = await reader.readexactly(n + 2)
        raw += data
        plain += data[:-2]
    while line != b"\r\n":  # trailers
        line = await reader.readuntil(b"\r\n")
        raw += line
    return bytes(raw), bytes(plain)


async def read_body(reader, headers):
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return await read_chunks(reader)
    data = await reader.readexactly(int(headers.get("content-length", 0)))
    return data, data


class HttpBackend:
    """A connection for each request."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    async def exchange(self, request):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=LARGEST)
        try:
            writer.write(request.raw)
            await writer.drain()
            head = await read_head(reader)
            while head.startswith(b"HTTP/1.1 1"):
                head = await read_head(reader)
            (version, status, _), headers = parse_head(head)
            if request.method == "HEAD" or status in ("204", "304"):
                body = b""
            elif "transfer-encoding" in headers or "content-length" in headers:
                body = (await read_body(reader, headers))[0]
            else:
                body = await reader.read()
            ends = version == "HTTP/1.0" or headers.get("connection", "").lower() == "close" or not ("transfer-encoding" in headers or "content-length" in headers)
            return head + body, ends
        finally:
            writer.close()


def http_answer(status, body=b"", kind="application/json", headers=()):
    lines = [f"HTTP/1.1 {status} Spoiled", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class HttpClient:
    """The client's side of a connection."""

    def __init__(self, listen, reader, writer, address):
        self.listen, self.reader, self.writer, self.backend = listen, reader, writer, HttpBackend(*address)

    async def begin(self):
        pass

    def end(self):
        pass

    async def read(self):
        head = await read_head(self.reader)
        (method, path, _), headers = parse_head(head)
        if headers.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            head = re.sub(rb"(?i)\r\nexpect:[^\r]*", b"", head)
        raw, body = await read_body(self.reader, headers)
        return Request(self.listen, method, path, headers, body, head + raw)

    def refuse(self, rule):
        s = rule.spec
        kind = s.get("type") or ("application/xml" if s.get("answer", "").startswith("<") else "application/json")
        return http_answer(s["status"], s.get("answer", "").encode(), kind, s.get("headers", {}).items())

    def expired(self, style):
        said = "The provided token has expired."
        return {"s3": lambda: http_answer(400, f"<Error><Code>ExpiredToken</Code><Message>{said}</Message></Error>".encode(), "application/xml"),
                "json": lambda: http_answer(400, json.dumps({"__type": "ExpiredTokenException", "message": said}).encode(), "application/x-amz-json-1.1"),
                "rest-json": lambda: http_answer(403, json.dumps({"message": said}).encode(), headers=[("x-amzn-errortype", "ExpiredTokenException")]),
                "iceberg": lambda: http_answer(401, json.dumps({"error": {"message": said, "type": "NotAuthorizedException", "code": 401}}).encode())}[style]()


# ---- PostgreSQL on the wire ----

class PgClient:
    """A session: the log-in passes through; then the client's messages up to a query or Sync are a request, the server's up to ReadyForQuery its answer."""

    def __init__(self, listen, reader, writer, address):
        self.listen, self.reader, self.writer, self.address = listen, reader, writer, address
        self.backend, self.statements, self.status, self.to_server = self, {}, b"I", None

    @staticmethod
    async def message(reader):
        try:
            head = await reader.readexactly(5)
            return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
        except asyncio.IncompleteReadError as e:
            raise Gone from e

    async def startup(self):
        try:
            size = await self.reader.readexactly(4)
            return size + await self.reader.readexactly(struct.unpack("!I", size)[0] - 4)
        except asyncio.IncompleteReadError as e:
            raise Gone from e

    async def begin(self):
        self.server, self.to_server = await asyncio.open_connection(*self.address, limit=LARGEST)
        first = await self.startup()
        while struct.unpack("!I", first[4:8])[0] in (80877103, 80877104):  # asks for TLS or GSS: no
            self.writer.write(b"N")
            first = await self.startup()
        self.to_server.write(first)
        while True:
            kind, data = await self.message(self.server)
            self.writer.write(data)
            if kind == b"Z":
                break
            if kind == b"R" and struct.unpack("!I", data[5:9])[0] not in (0, 12):  # wants an answer; 12 ends SASL by itself
                self.to_server.write((await self.message(self.reader))[1])

    def text(self, kind, data):
        parts = data[5:].split(b"\0")
        if kind == b"Q":
            return parts[0].decode()
        if kind == b"P":
            self.statements[parts[0]] = parts[1].decode()
        return self.statements.get(parts[1], "") if kind == b"B" else ""

    async def read(self):
        raw, texts = b"", []
        while True:
            kind, data = await self.message(self.reader)
            raw += data
            texts.append(self.text(kind, data))
            if kind == b"X":
                self.to_server.write(raw)
                raise Gone
            if kind in (b"Q", b"S"):
                return Request(self.listen, "PG", "; ".join(t for t in texts if t), {}, raw, raw)

    async def exchange(self, request):
        self.to_server.write(request.raw)
        out, kind = b"", b""
        while kind != b"Z":
            kind, data = await self.message(self.server)
            self.status, out = data[-1:], out + data
        return out, False

    def refuse(self, rule):
        state = rule.spec["sqlstate"]
        fields = f"SERROR\0VERROR\0C{state}\0Mspoiled\0\0".encode()
        return b"E" + struct.pack("!I", 4 + len(fields)) + fields + b"Z" + struct.pack("!I", 5) + self.status

    def end(self):
        if self.to_server:
            self.to_server.close()


# ---- what can happen to a request ----

class Act:
    """Each gets the route, the client, the request and the rule, and returns (answer, connection ends) or None: reset."""

    async def drop_answer(route, client, request, rule):
        await client.backend.exchange(request)

    async def reset(route, client, request, rule):
        pass

    async def short_answer(route, client, request, rule):
        answer, _ = await client.backend.exchange(request)
        return answer[:-max(1, len(answer.partition(b"\r\n\r\n")[2] or answer) // 2)], True

    async def delay(route, client, request, rule):
        if rule.spec.get("when") != "after":
            await asyncio.sleep(rule.spec["seconds"])
        out = await client.backend.exchange(request)
        if rule.spec.get("when") == "after":
            await asyncio.sleep(rule.spec["seconds"])
        return out

    async def answer(route, client, request, rule):
        if rule.spec.get("when") == "after":
            await client.backend.exchange(request)
        return client.refuse(rule), False

    async def duplicate(route, client, request, rule):
        if rule.spec.get("together"):
            got = await asyncio.gather(client.backend.exchange(request), client.backend.exchange(request))
        else:
            got = [await client.backend.exchange(request), await client.backend.exchange(request)]
        return got[rule.spec.get("pick", 2) - 1]

    async def hold(route, client, request, rule):
        await route.proxy.passed(rule)
        return await client.backend.exchange(request)

    async def late(route, client, request, rule):
        async def later(end):
            await route.proxy.passed(rule)
            await client.backend.exchange(request)
            end()
            route.proxy.say("delivered", request, rule)
        end, client.end = client.end, lambda: None  # the service's side of a session stays open
        route.proxy.keep(later(end))

    async def down(route, client, request, rule):
        if rule.spec.get("when") == "after":
            await client.backend.exchange(request)
        route.down(rule.spec["seconds"])

    async def expire(route, client, request, rule):
        return client.expired(rule.spec["style"]), False


class Route:
    def __init__(self, proxy, text):
        listen, _, backend = text.partition("=")
        self.kind = PgClient if backend.startswith("pg:") else HttpClient
        host, _, port = backend.removeprefix("pg:").rpartition(":")
        self.proxy, self.listen, self.address, self.open = proxy, int(listen), (host, int(port)), set()

    async def up(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.listen, limit=LARGEST)
        self.listen = self.server.sockets[0].getsockname()[1]

    def down(self, seconds):
        """Takes no connection for so long, and resets those that are open."""
        self.server.close()
        for w in list(self.open):
            self.cut(w)

        async def again():
            await asyncio.sleep(seconds)
            await self.up()
        self.proxy.keep(again())

    @staticmethod
    def cut(writer):
        if not writer.transport.is_closing():
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def serve(self, reader, writer):
        client = self.kind(self.listen, reader, writer, self.address)
        self.open.add(writer)
        try:
            await client.begin()
            ends = False
            while not ends:
                request = await client.read()
                out = await self.proxy.treat(self, client, request)
                if out is None:
                    self.cut(writer)
                    break
                answer, ends = out
                writer.write(answer)
                await writer.drain()
        except (Gone, ConnectionError, asyncio.IncompleteReadError):
            self.cut(writer)
        except asyncio.CancelledError:  # the proxy ends
            pass
        finally:
            self.open.discard(writer)
            client.end()
            writer.close()


class Spoiler:
    """The proxy itself: routes, rules, counts."""

    def __init__(self, routes, control):
        self.routes, self.control = [Route(self, r) for r in routes], control
        self.rules, self.requests, self.waits, self.tasks = [], 0, [], set()
        self.counts = {}

    def keep(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def say(self, what, request, rule):
        self.counts[what] = self.counts.get(what, 0) + 1
        print(f"{time.strftime('%H:%M:%S')} {what}: {request.listen} {request.method} {request.path[:120]} {request.headers.get('x-amz-target', '')} (match {rule.seen})", flush=True)

    async def passed(self, rule):
        """Until a request that matches the rule's "until" was answered, or its seconds are over."""
        event = asyncio.Event()
        self.waits.append((rule.spec.get("until", {"path": r"\A\Z.^"}), event))
        try:
            await asyncio.wait_for(event.wait(), rule.spec.get("seconds", 30))
        except asyncio.TimeoutError:
            pass

    async def treat(self, route, client, request):
        self.requests += 1
        rule = next((r for r in [r for r in self.rules if r.sees(request, self.rules)] if r.strikes(request)), None)
        if rule:
            self.say(rule.spec["do"], request, rule)
            out = await getattr(Act, rule.spec["do"].replace("-", "_"))(route, client, request, rule)
        else:
            out = await client.backend.exchange(request)
        for want, event in self.waits:
            if not event.is_set() and request.matches(want) and not (rule and rule.spec["do"] in ("hold", "late", "reset")):
                event.set()
        return out

    async def command(self, reader, writer):
        try:
            (method, target, _), headers = parse_head(await read_head(reader))
            _, body = await read_body(reader, headers)
            path, query = urllib.parse.urlsplit(target)[2:4]
            status, out = self.obey(method, path, dict(urllib.parse.parse_qsl(query)), body)
            writer.write(http_answer(status, json.dumps(out).encode(), headers=[("Connection", "close")]))
            await writer.drain()
        except Gone:
            pass
        finally:
            writer.close()

    def obey(self, method, path, query, body):
        if (method, path) == ("PUT", "/rules"):
            try:
                self.rules = [Rule(r) for r in json.loads(body)]
            except ValueError as e:
                return 400, {"error": str(e)}
            return 200, {}
        if (method, path) == ("GET", "/state"):
            return 200, {"requests": self.requests, "counts": self.counts, "rules": [{**r.spec, "seen": r.seen, "hits": r.hits} for r in self.rules]}
        if (method, path) == ("POST", "/down"):
            for r in self.routes:
                if r.listen == int(query["listen"]):
                    r.down(float(query["seconds"]))
            return 200, {}
        if (method, path) == ("POST", "/release"):
            for _, event in self.waits:
                event.set()
            return 200, {}
        return 404, {"error": f"{method} {path}"}

    @staticmethod
    async def orphaned(over):
        """Ends the proxy when whoever started it is gone."""
        parent = os.getppid()
        while os.getppid() == parent:
            await asyncio.sleep(1)
        over.set()

    async def run(self):
        over = asyncio.Event()
        self.keep(self.orphaned(over))
        for s in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(s, over.set)
        for r in self.routes:
            await r.up()
        control = await asyncio.start_server(self.command, "127.0.0.1", self.control)
        print(json.dumps({"control": control.sockets[0].getsockname()[1], "routes": [r.listen for r in self.routes]}), flush=True)
        await over.wait()
        print(f"{self.requests} requests; {', '.join(f'{v} {k}' for k, v in self.counts.items()) or 'none spoiled'}", flush=True)


class Proxy:
    """A proxy in a process of its own; `ports` are those of the routes in the order given."""

    def __init__(self, *routes, log=None):
        self.p = subprocess.Popen([sys.executable, os.path.abspath(__file__), *routes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        first = json.loads(self.p.stdout.readline())
        self.control, self.ports, self.printed = first["control"], first["routes"], []
        self.reader = threading.Thread(target=self.collect, args=(log,), daemon=True)
        self.reader.start()

    def collect(self, log):
        with open(log or os.devnull, "a") as out:
            for line in self.p.stdout:
                self.printed.append(line)
                out.write(line)
                out.flush()

    def ask(self, method, path, data=None):
        body = None if data is None else json.dumps(data).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.control}{path}", body, method=method), timeout=20) as answer:
            return json.load(answer)

    def rules(self, *rules):
        self.ask("PUT", "/rules", list(rules))

    def state(self):
        return self.ask("GET", "/state")

    def hits(self):
        return sum(r["hits"] for r in self.state()["rules"])

    def down(self, port, seconds):
        self.ask("POST", f"/down?listen={port}&seconds={seconds}")

    def release(self):
        self.ask("POST", "/release")

    def stop(self):
        """Returns what it printed."""
        self.p.terminate()
        self.p.wait()
        self.reader.join()
        self.p.stdout.close()
        return "".join(self.printed)


if __name__ == "__main__":
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--control", type=int, default=0)
    a.add_argument("routes", nargs="+", metavar="ROUTE")
    a = a.parse_args()
    asyncio.run(Spoiler(a.routes, a.control).run())
