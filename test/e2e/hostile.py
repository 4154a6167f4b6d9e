#!/usr/bin/env python3
"""Peers that mean no good, or are broken, before the real binary's listeners: slow ones, deaf ones, half handshakes, messages that are too large, nested too deep, or that unpack to much more than they are, and more
connections than are allowed. Each is answered as its protocol wants, or closed; the process stays within its memory, and well-behaved senders on the same listeners lose nothing and wait for nothing.

usage: hostile.py [CASE...]; it needs no broker. Bounded load, loopback only."""
import atexit, gzip, http.client, itertools, json, os, re, resource, socket, ssl, struct, subprocess, sys, threading, time, zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import Failure, Tables, main, require

MESSAGE_S, IDLE_S, MOST = 3, 6, 100     # message-timeout, idle-timeout, max-connections
LIMIT = 1 << 20                         # max-message-size
PATIENCE = 60                           # of a peer for what must come, on a machine that is busy
MEMORY = 160 << 20                      # VmHWM; memory.limit is 128 MiB, and counts what it knows
KINDS = ("http", "forward", "syslog", "otlp", "firehose")


def certificate(d):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", f"{d}/key.pem", "-out", f"{d}/cert.pem"], check=True, capture_output=True)


class Server:
    """One job with a listener of each kind, all into one table, and a well-behaved sender on each of them."""

    def __init__(self, name):
        t = self.t = Tables(None, f"hostile-{name}")
        certificate(t.dir)
        common = f"'max-connections'='{MOST}','max-message-size'='{LIMIT}b','message-timeout'='{MESSAGE_S} s','spool.max-size'='64 mb'"
        idle = f",'idle-timeout'='{IDLE_S} s'"
        tls = f",'tls.cert'='{t.dir}/cert.pem','tls.key'='{t.dir}/key.pem'"
        sources = {
            "http": ("id BIGINT", f"'connector'='http','listen'='127.0.0.1:0',{common}{idle}", "id"),
            "forward": ("id BIGINT", f"'connector'='forward','listen'='127.0.0.1:0',{common}{idle}", "id"),
            "syslog": ("message STRING", f"'connector'='syslog','listen'='127.0.0.1:0',{common}{idle}", "TRY_CAST(message AS BIGINT)"),
            "otlp": ("body STRING", f"'connector'='otlp','listen'='127.0.0.1:0','grpc.listen'='127.0.0.1:0',{common}{idle}", "TRY_CAST(body AS BIGINT)"),
            "firehose": ("id BIGINT", f"'connector'='firehose','listen'='127.0.0.1:0','stream-name'='logs',{common}{idle}", "id"),
            "tls_http": ("id BIGINT", f"'connector'='http','listen'='127.0.0.1:0',{common}{idle}{tls}", "id"),
            "tls_syslog": ("message STRING", f"'connector'='syslog','listen'='127.0.0.1:0','protocol'='tls',{common}{idle}{tls}", "TRY_CAST(message AS BIGINT)"),
        }
        script = [t.catalog(), "CREATE DATABASE IF NOT EXISTS c.db;\nCREATE TABLE IF NOT EXISTS c.db.t (id BIGINT, kind STRING);\n"]
        options = {"pipeline.name": t.name, "execution.checkpointing.interval": "500 ms", "frazil.state.dir": f"{t.dir}/state", "parallelism.default": "2"}
        script += [f"SET '{k}' = '{v}';\n" for k, v in options.items()]
        script += [f"CREATE TEMPORARY TABLE {n} ({c}) WITH ({o});\n" for n, (c, o, _) in sources.items()]
        script += ["STATEMENT SET BEGIN\n"] + [f"INSERT INTO c.db.t SELECT {e}, '{n}' FROM {n} WHERE {e} >= 0;\n" for n, (_, _, e) in sources.items()] + ["END;\n"]
        path = f"{t.dir}/job.sql"
        with open(path, "w") as f:
            f.write("".join(script))
        self.job = t.start(path)
        atexit.register(lambda: self.job.alive() and self.job.kill())  # of a case that fails
        self.ports = {}
        deadline = time.monotonic() + PATIENCE
        while len(self.ports) < len(sources) + 1:
            require(self.job.alive() and time.monotonic() < deadline, self.job.text()[-3000:])
            self.ports = {}
            for line in self.job.text().splitlines():
                if "event=source.listening" in line:
                    name = re.search(r"table=\S*\.(\S+)", line).group(1)
                    self.ports["grpc" if name in self.ports else name] = int(re.search(r"address=127\.0\.0\.1:(\d+)", line).group(1))  # otlp has two; HTTP is the first
            time.sleep(0.05)
        self.clients = [Good(self, k) for k in KINDS]
        for c in self.clients:
            c.start()
        for c in self.clients:
            c.progress(3)

    def connect(self, kind, tls=False):
        s = socket.create_connection(("127.0.0.1", self.ports[kind]), PATIENCE)
        if tls:
            context = ssl.create_default_context(cafile=f"{self.t.dir}/cert.pem")
            s = context.wrap_socket(s, server_hostname="127.0.0.1")
        return s

    def peak(self):
        return int(re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{self.job.p.pid}/status").read()).group(1)) << 10

    def end(self, note=""):
        """The good clients were served all along, to this moment; every record of theirs is there once."""
        for c in self.clients:
            c.progress(3)
        for c in self.clients:
            c.finish()
        peak = self.peak()
        want = sum(c.sent for c in self.clients)
        self.t.wait_rows(want, seconds=120, job=self.job)
        self.job.stop()
        rows = self.t.sql("SELECT kind, COUNT(*) AS n, COUNT(DISTINCT id) AS d FROM c.db.t GROUP BY kind")
        require({r["kind"]: (r["n"], r["d"]) for r in rows} == {c.kind: (c.sent, c.sent) for c in self.clients}, f"{rows}\n{[(c.kind, c.sent) for c in self.clients]}")
        self.t.audit()
        require(peak < MEMORY, f"the process had {peak >> 20} MiB")
        slowest = max(c.slowest for c in self.clients)
        return f"{want} records beside, slowest answer {slowest:.2f} s, peak {peak >> 20} MiB{note}"


class Good(threading.Thread):
    """Sends a record, waits for its answer (syslog has none), and so on, over one connection that must not be lost."""

    def __init__(self, server, kind):
        super().__init__(daemon=True)
        self.server, self.kind, self.sent, self.slowest, self.why, self.over = server, kind, 0, 0.0, None, threading.Event()
        self.post = http.client.HTTPConnection("127.0.0.1", server.ports[kind], timeout=PATIENCE) if kind in ("http", "otlp", "firehose") else None
        self.socket = None if self.post else server.connect(kind)

    def http(self, path, body, headers):
        if self.sent and self.post.sock is None:
            raise Failure("the connection was closed")
        self.post.request("POST", path, body, headers)
        r = self.post.getresponse()
        text = r.read()
        require(r.status == 200, f"{r.status} {text[:200]}")

    def one(self, n):
        if self.kind == "http":
            self.http("/", json.dumps({"id": n}), {"Content-Type": "application/json"})
        elif self.kind == "otlp":
            self.http("/v1/logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": str(n)}}]}]}]}), {"Content-Type": "application/json"})
        elif self.kind == "firehose":
            import base64
            self.http("/", json.dumps({"DeliveryStreamName": "logs", "Record": {"Data": base64.b64encode(json.dumps({"id": n}).encode()).decode()}}),
                      {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Firehose_20150804.PutRecord"})
        elif self.kind == "forward":
            chunk = b"%08d" % n
            self.socket.sendall(b"\x94\xa1t" + struct.pack(">BI", 0xce, int(time.time())) + b"\x81\xa2id" + struct.pack(">BI", 0xce, n) + b"\x81\xa5chunk\xa8" + chunk)
            want, got = b"\x81\xa3ack\xa8" + chunk, b""
            while len(got) < len(want):
                more = self.socket.recv(64)
                require(more, "the connection was closed")
                got += more
            require(got == want, got)
        else:
            self.socket.sendall(b"<13>1 - h a - - - %d\n" % n)

    def run(self):
        try:
            while not self.over.wait(0.05):
                began = time.monotonic()
                self.one(self.sent)
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.sent += 1
        except Exception as e:
            self.why = f"{self.kind}: after {self.sent} records: {e!r}"

    def progress(self, n):
        """n more records were answered."""
        want, deadline = self.sent + n, time.monotonic() + PATIENCE
        while self.sent < want:
            require(self.server.job.alive(), f"the job ended\n{self.server.job.text()[-3000:]}")
            require(not self.why, f"a well-behaved sender was harmed: {self.why}\n{self.server.job.text()[-3000:]}")
            require(time.monotonic() < deadline, f"a well-behaved sender of {self.kind} waits in vain\n{self.server.job.text()[-3000:]}")
            time.sleep(0.01)

    def finish(self):
        self.over.set()
        self.join(PATIENCE)
        require(not self.why, f"a well-behaved sender was harmed: {self.why}")


def until_closed(s, seconds=PATIENCE):
    """What comes until the other side closes."""
    got, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        s.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            more = s.recv(65536)
        except socket.timeout:
            break
        except OSError:  # reset
            return got
        if not more:
            return got
        got += more
    raise Failure(f"it was not closed in {seconds} s; {got[:100]!r} came")


def push(s, data):
    """Sends what the other side takes; it may have closed already."""
    try:
        s.sendall(data)
        return True
    except OSError:
        return False


def drip(peers, seconds):
    """Each peer is (socket, iterator of bytes): a byte each in turn, until all are closed by the other side. {socket: what it said}."""
    said = {s: b"" for s, _ in peers}
    left, deadline = dict(peers), time.monotonic() + seconds
    for s in left:
        s.setblocking(False)
    while left:
        require(time.monotonic() < deadline, f"{len(left)} slow peers of {len(peers)} are still there")
        for s in list(left):
            closed = False
            try:
                got = s.recv(4096)
                said[s] += got
                closed = not got
            except BlockingIOError:
                pass
            except OSError:
                closed = True
            if not closed:
                try:
                    s.send(next(left[s]))
                except BlockingIOError:
                    pass
                except OSError:
                    continue  # what it said comes first
            if closed:
                del left[s]
        time.sleep(0.1)
    return said


def one_by_one(head, rest):
    yield head
    while True:
        for b in rest:
            yield bytes([b])


# ---- cases ----

def slow_loris():
    """Heads, bodies and messages that come a byte at a time: 408 over HTTP, closed elsewhere, in a time that does not depend on how often a byte comes."""
    server, peers, kinds = Server("slow"), [], {}
    post = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Amz-Target: Firehose_20150804.PutRecord\r\nContent-Length: 100000\r\n\r\n"
    attacks = [("http", b"GET / HTTP/1.1\r\n", b"X: y\r\n", True), ("http", post % b"/", b'{"id":-1}\n', True), ("otlp", post % b"/v1/logs", b" ", True), ("firehose", post % b"/", b" ", True),
               ("http", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", True),
               ("forward", b"\x92\xa1t", b"\xdd\x00\x00\xff\xff" + b"\xc0" * 1000, False), ("forward", b"\x94", b"\xdb\x00\x00\xff\xff" + b"a" * 1000, False), ("syslog", b"<13>1 - h a - - - ", b"a", False),
               ("syslog", b"900 <13>1 ", b"a", False), ("grpc", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x40\x00", False)]
    for kind, head, rest, is_http in attacks:
        for _ in range(6):
            s = server.connect(kind)
            peers.append((s, one_by_one(head, rest)))
            kinds[s] = is_http
    began = time.monotonic()
    said = drip(peers, PATIENCE)
    took = time.monotonic() - began
    for s, text in said.items():
        require(not kinds[s] or text.startswith(b"HTTP/1.1 408 "), f"it was answered {text[:100]!r}")
        s.close()
    return server.end(f"; {len(peers)} slow peers gone after {took:.1f} s")


def half_handshakes():
    """TLS that is begun and not finished, and what is no TLS at all; whole handshakes go on beside them."""
    server = Server("tls")
    hello = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="x")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    begin = hello.read()
    half, noise = [], []
    for kind in ("tls_http", "tls_syslog"):
        for i in range(40):
            s = server.connect(kind)
            s.sendall([b"", begin[:1], begin[:-1], begin][i % 4])
            half.append(s)
        for text in (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x00" * 60000, os.urandom(5000)):
            s = server.connect(kind)
            push(s, text)
            noise.append(s)
    for s in noise:
        until_closed(s)
    for _ in range(3):
        with server.connect("tls_http", tls=True) as s:
            s.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n" + b'{"id":-1}')
            got = b""
            while b"\r\n\r\n" not in got:
                more = s.recv(4096)
                require(more, f"closed after {got!r}")
                got += more
            require(got.startswith(b"HTTP/1.1 200 "), got)
        with server.connect("tls_syslog", tls=True) as s:
            s.sendall(b"21 <13>1 - h a - - - -1\n")
    for s in half:
        until_closed(s)
        s.close()
    return server.end(f"; {len(half)} half handshakes")


def request(server, kind, path, headers, body=b"", head_only=False):
    """One raw request; the status, and what was said."""
    with server.connect(kind) as s:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        if "Transfer-Encoding" not in headers and "Content-Length" not in headers:
            head += f"Content-Length: {len(body)}\r\n"
        push(s, head.encode() + b"Connection: close\r\n\r\n")
        if not head_only:
            push(s, body)
        got = until_closed(s)
        m = re.match(rb"HTTP/1\.1 (\d+) ", got)
        return int(m.group(1)) if m else None, got


PATHS = {"http": ("/", {"Content-Type": "application/json"}), "otlp": ("/v1/logs", {"Content-Type": "application/x-protobuf"}),
         "firehose": ("/", {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Firehose_20150804.PutRecord"})}


def oversize():
    """Larger than is allowed: said in advance, or found out on the way; heads, bodies, chunks, messages."""
    server = Server("large")
    for kind, (path, headers) in PATHS.items():
        for size in (LIMIT * 5 + 1, 1 << 40, "9" * 30):
            status, got = request(server, kind, path, {**headers, "Content-Length": size}, head_only=True)
            require(status == 413 or (isinstance(size, str) and status in (400, 413)), f"{kind}: a body of {size} bytes was answered {got[:200]!r}")
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        status, got = request(server, kind, path, {**headers, "Transfer-Encoding": "chunked"}, chunk * 120)
        require(status in (413, None), f"{kind}: chunks without end were answered {got[:200]!r}")
        status, got = request(server, kind, path, {**headers, "X-Large": "y" * (1 << 20)}, b"")
        require(status in (431, None), f"{kind}: a head of 1 MiB was answered {got[:200]!r}")
        status, got = request(server, kind, path, {**headers, **{f"X-{i}": "y" for i in range(20000)}}, b"")
        require(status in (431, None), f"{kind}: a head of 20,000 fields was answered {got[:200]!r}")
    more = b"a" * (1 << 16)
    for text in (b"\x93\xa1t\xc6\xff\xff\xff\xff", b"\x93\xa1t\xdd\xff\xff\xff\xff", b"\x94\xa1t\x00\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff"):
        with server.connect("forward") as s:
            alive = push(s, text)
            for _ in range(64):
                alive = alive and push(s, b"\xa1a" * (1 << 15))
            until_closed(s)
    for text in (b"999999999999 ", b"104857600 <13>1 "):
        with server.connect("syslog") as s:
            alive = push(s, text)
            for _ in range(64):
                alive = alive and push(s, more)
            until_closed(s)
    with server.connect("syslog") as s:  # a line without end
        for _ in range(64):
            if not push(s, more):
                break
        until_closed(s)
    with server.connect("grpc") as s:  # a message of 4 GiB, in frames
        s.sendall(GRPC_HEAD)
        s.sendall(frame(0, 0, 1, b"\x00\xff\xff\xff\xff"))
        require(grpc_ended(s), "the stream goes on")
    with server.connect("grpc") as s:  # a frame larger than was agreed
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01")
        for _ in range(64):
            if not push(s, more):
                break
        until_closed(s)
    return server.end()


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


GRPC_PATH = b"/opentelemetry.proto.collector.logs.v1.LogsService/Export"


def grpc_head(*more):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", GRPC_PATH), (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers"), *more]
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, b"".join(literal(*f) for f in fields))


GRPC_HEAD = grpc_head()


def grpc_ended(s):
    """Has the stream been ended (trailers, RST_STREAM, GOAWAY), or the connection closed?"""
    got, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        while len(got) >= 9:
            n = int.from_bytes(got[:3], "big")
            if len(got) < 9 + n:
                break
            kind, flags, stream = got[3], got[4], int.from_bytes(got[5:9], "big")
            if (stream == 1 and (kind == 3 or (kind in (0, 1) and flags & 1))) or kind == 7:
                return True
            got = got[9 + n:]
        try:
            more = s.recv(65536)
        except socket.timeout:
            return False
        except OSError:
            return True
        if not more:
            return True
        got += more
    return False


def protobuf(field, data):
    n, size = len(data), b""
    while n > 127:
        size += bytes([n & 127 | 128])
        n >>= 7
    return bytes([field << 3 | 2]) + size + bytes([n]) + data


def deep_any(depth):
    """An AnyValue: an array in an array in an array ..."""
    parts, n = [], 0
    value = b""
    for _ in range(depth):
        value = protobuf(5, protobuf(1, value))  # array_value { values }
    return value


def deep_nesting():
    """Nested deeper than any stack: JSON, protobuf, MessagePack, in all places that take values. Refused, or taken as a record that cannot be read; nobody falls over."""
    server = Server("deep")
    deep = b"[" * 300000
    for body in (deep, b'{"a":' * 100000, b'{"id":-1,"x":' + b"[" * 100000 + b"]" * 100000 + b"}", b"[" * 500 + b"{}" + b"]" * 500):
        status, got = request(server, "http", *PATHS["http"], body)
        require(status in (200, 400), f"{got[:200]!r}")
        status, got = request(server, "otlp", "/v1/logs", {"Content-Type": "application/json"}, body)
        require(status in (200, 400), f"{got[:200]!r}")
        status, got = request(server, "firehose", *PATHS["firehose"], body)
        require(status == 400, f"{got[:200]!r}")
        import base64
        status, got = request(server, "firehose", *PATHS["firehose"], json.dumps({"DeliveryStreamName": "logs", "Record": {"Data": base64.b64encode(body).decode()}}).encode())
        require(status == 200, f"{got[:200]!r}")  # a blob is not looked into at the door
    value = b'{"stringValue":"x"}'
    for _ in range(10000):
        value = b'{"arrayValue":{"values":[' + value + b"]}}"
    status, got = request(server, "otlp", "/v1/logs", {"Content-Type": "application/json"}, b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":' + value + b"}]}]}]}")
    require(status == 400, f"{got[:200]!r}")
    for depth in (100, 5000, 20000):
        record = protobuf(2, protobuf(5, deep_any(depth)))           # log_records { body }
        logs = protobuf(1, protobuf(2, record))                      # resource_logs { scope_logs }
        status, got = request(server, "otlp", *PATHS["otlp"], logs)
        require(status in (200, 400), f"depth {depth}: {got[:200]!r}")
        require(depth < 200 or status == 400 or b"deep" in got, f"depth {depth}: {got[:300]!r}")
        with server.connect("grpc") as s:
            s.sendall(GRPC_HEAD)
            data = b"\x00" + struct.pack(">I", len(logs)) + logs
            parts = [data[i:i + 16000] for i in range(0, len(data), 16000)]
            for i, p in enumerate(parts[:4]):  # within the first window
                s.sendall(frame(0, 1 if i == len(parts) - 1 else 0, 1, p))
            require(len(parts) > 4 or grpc_ended(s), "gRPC gives no answer")
    nested = b"\x91" * 300000
    for text in (nested, b"\x93\xa1t\x00" + nested, b"\x93\xa1t\x00\x81\xa1x" + nested + b"\xc0", b"\x92\xa1t\x91\x92\x00\x81\xa1x" + nested + b"\xc0", b"\x81\xa1a" * 100000,
                 b"\x93\xa1t\xc6" + struct.pack(">I", 300005) + b"\x92\x00\x81\xa1x" + b"\x91" * 300000):
        with server.connect("forward") as s:
            push(s, text)
            try:
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            until_closed(s)
    return server.end()


def bombs():
    """gzip and zstd of 256 MiB of zeros: refused when they pass the limit, before they are unpacked. Several at a time."""
    server = Server("bombs")
    z = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b"\0" * (1 << 20)
    gz = b"".join(z.compress(zeros) for _ in range(256)) + z.flush()
    zst = subprocess.run(["zstd", "-q", "-19", "-c"], input=zeros * 256, capture_output=True, check=True).stdout
    twice = gzip.compress(gz)  # a bomb in a bomb is just bytes
    require(len(gz) < LIMIT and len(zst) < LIMIT, "the bombs are too large to be any")
    answers = []

    def throw(kind, coding, body):
        path, headers = PATHS[kind]
        answers.append((kind, coding, *request(server, kind, path, {**headers, "Content-Encoding": coding}, body)))

    threads = [threading.Thread(target=throw, args=(k, c, b)) for k in PATHS for c, b in (("gzip", gz), ("gzip", twice), ("zstd", zst), ("gzip", gz)) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(len(answers) == len(threads), "some got no answer")
    for kind, coding, status, got in answers:
        require(status in (400, 413, 415), f"{kind}, {coding}: {got[:200]!r}")
    for body, name in ((gz, b"gzip"), (zst, b"zstd")):
        with server.connect("forward") as s:
            push(s, b"\x93\xa1t\xc6" + struct.pack(">I", len(body)) + body + b"\x82\xaacompressed\xa4" + name + b"\xa5chunk\xa1c")
            require(b"ack" not in until_closed(s), "a bomb was acknowledged")
        with server.connect("grpc") as s:
            s.sendall(grpc_head((b"grpc-encoding", name)))
            data = b"\x01" + struct.pack(">I", len(body)) + body
            for i in range(0, min(len(data), 60000), 15000):
                s.sendall(frame(0, 1 if i + 15000 >= len(data) else 0, 1, data[i:i + 15000]))
    return server.end(f"; {len(threads)} bombs")


def hoarders():
    """Messages that are almost whole, on all connections that are allowed, on every listener at once; then a byte at a time: memory has a limit over all of them, looking at a byte costs no more late than at first,
    and who sends small messages does not wait for them."""
    server, peers = Server("hoard"), []
    size = LIMIT - 4096
    for kind, head, body in (("forward", b"\x92\xa1t\xdd\x00\xff\xff\xff", b"\x92\x00\x81\xa1a\xa1b"), ("syslog", b"%d <13>1 " % size, b"a"),
                             ("http", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % LIMIT, b'{"id":-1}\n'),
                             ("otlp", b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n" % LIMIT, b"\0"),
                             ("grpc", GRPC_HEAD + frame(0, 0, 1, b"\x00" + struct.pack(">I", LIMIT - 100)), None)):
        for _ in range(MOST - 5):
            s = server.connect(kind)
            s.setblocking(False)
            data = memoryview(head + (body * (size // len(body)) if body else frame(0, 0, 1, b"\0" * 16000) * 3))
            peers.append([s, data, itertools.cycle(body or b"\x00")])
    before = {c.kind: c.sent for c in server.clients}
    left, until = list(peers), time.monotonic() + 20
    while left and time.monotonic() < until:  # all of them at once, each as fast as it is read, then a byte each
        for p in list(left):
            s, data, rest = p
            try:
                if len(data):
                    p[1] = data[s.send(data[:1 << 16]):]
                else:
                    s.send(bytes([next(rest)]))
                if not s.recv(4096):
                    left.remove(p)
            except BlockingIOError:
                pass
            except OSError:
                left.remove(p)
        time.sleep(0.01)
    during = {c.kind: c.sent - before[c.kind] for c in server.clients}  # a sender that has to wait for a hoarder's time to run out gets one answer, not many
    require(min(during.values()) > 5, f"well-behaved senders waited for hoarders, answers meanwhile: {during}")
    for p in left:
        p[0].close()
    return server.end(f"; {len(peers)} hoarders of {size >> 10} KiB")


def deaf():
    """Peers that ask and do not read what they are told, and HTTP/2 without pause: pings, settings, streams that are reset at once."""
    server = Server("deaf")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    head = GRPC_HEAD[len(preface):]
    resets = b"".join(head[:5] + struct.pack(">I", n) + head[9:] + frame(3, 0, n, struct.pack(">I", 8)) for n in range(1, 4001, 2))
    floods = [("http", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000), ("http", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" * 1000), ("grpc", preface + frame(6, 0, 0, b"12345678") * 4000),
              ("grpc", preface + frame(4, 0, 0, b"") * 4000), ("grpc", preface + resets), ("grpc", preface + frame(1, 0, 1, b"") + frame(9, 0, 1, literal(b"a", b"b" * 100) * 100) * 200),
              ("forward", b"\x94\xa1t\x00\x81\xa2id\xff\x81\xa5chunk\xa1c" * 4000)]
    peers = []
    for kind, flood in floods:
        for _ in range(8):
            s = server.connect(kind)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setblocking(False)
            peers.append((s, flood))
    at, until = {s: 0 for s, _ in peers}, time.monotonic() + 2 * MESSAGE_S
    while time.monotonic() < until:
        for s, flood in peers:
            try:
                at[s] = (at[s] + s.send(memoryview(flood)[at[s]:])) % len(flood)
            except OSError:
                pass
        time.sleep(0.001)
    for c in server.clients:
        c.progress(5)
    for s, _ in peers:
        s.close()
    return server.end(f"; {len(peers)} deaf peers")


def crowd():
    """A thousand connections that say nothing, on each of two listeners that allow a hundred: those beyond are turned away at once, those within after the idle time; senders that are there stay, and new ones
    find room again afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    server = Server("crowd")
    crowd = {kind: [] for kind in ("http", "forward")}
    for kind, there in crowd.items():
        for _ in range(1000):
            there.append(server.connect(kind))
    for c in server.clients:
        c.progress(5)
    for kind, there in crowd.items():
        turned = 0
        for s in there:
            got = until_closed(s)
            turned += got.startswith(b"HTTP/1.1 503 ")
            require(kind != "http" or not got or got.startswith((b"HTTP/1.1 503 ", b"HTTP/1.1 408 ")), f"{got[:100]!r}")
            s.close()
        require(kind != "http" or turned > 0, "none was told that there is no room")  # so many as are told so at a time; the others are just closed
    status, got = request(server, "http", *PATHS["http"], b'{"id":-1}')
    require(status == 200, f"{got[:200]!r}")
    return server.end()


CASES = {f.__name__: f for f in (slow_loris, half_handshakes, oversize, deep_nesting, bombs, hoarders, deaf, crowd)}
if __name__ == "__main__":
    main(CASES)
