"""Senders for inputs.py: clients of every input that know which of their messages were acknowledged, and repeat those that were not, in this round or a later one.

A record's id is unique; where its bytes lie in a spool they hold '#<id>#', whatever the format, so that what a damaged place held can be told.
Of each id a sender knows how often it was sent (`sends`): once, and acknowledged, means that it was taken once. An answer that says that nothing was taken (HTTP 503) counts as not sent."""
import base64, collections, gzip, http.client, json, os, random, socket, struct, threading, time

PATIENCE = 60  # seconds that a live server may let an answer wait
BROKEN = (OSError, http.client.HTTPException, EOFError)


class Message:
    def __init__(self, ids, body, **kw):
        self.ids, self.body, self.more = ids, body, kw


class Refused(Exception):
    """Nothing of the message was taken."""


class Unclear(Exception):
    """It may have been taken."""


class Wrong(Exception):
    """An answer that must not come."""


class Sender:
    """One connection at a time, in a thread of its own. Subclasses make messages and have them acknowledged."""
    window = 1

    def __init__(self, source, first_id, rng):
        self.source, self.next_id, self.rng = source, first_id, random.Random(rng.random())
        self.sends, self.acked, self.bad, self.pending = collections.Counter(), set(), set(), collections.deque()
        self.refusals, self.error, self.thread = 0, None, None

    def records(self, n):
        """[(id, num)]: num of some is no number."""
        out = []
        for _ in range(n):
            i = self.next_id
            self.next_id += 1
            bad = self.rng.random() < 0.01
            if bad:
                self.bad.add(i)
            out.append((i, f"x{i}" if bad else str(i % 1000)))
        return out

    def pad(self, i):
        return f"#{i}#" + "p" * self.rng.randrange(200)

    def start(self, port):
        self.broken = None
        self.quiet, self.dead, self.thread = False, False, threading.Thread(target=self.run, args=(port,))
        self.thread.start()

    def gone(self):
        """The server was killed."""
        self.dead = True

    def finish(self):
        """No new messages; ends when all of the old ones are acknowledged."""
        self.quiet = True

    def join(self, seconds=300):
        if self.thread:
            self.thread.join(seconds)
            if self.thread.is_alive():
                self.error = f"{self.source}: a sender does not end"
        return self.error

    def run(self, port):
        """As clients do: a connection that breaks is made anew, while there is somebody to talk to."""
        try:
            while not self.dead:
                try:
                    return self.session(port)
                except BROKEN as e:
                    self.broken = f"{type(e).__name__} {e}"
                time.sleep(0.05)
        except Wrong as e:
            self.error = f"{self.source}: {e}"

    def take(self):
        """The next message, or None: there is none and no new one is wanted."""
        if self.pending:
            return self.pending.popleft()
        return None if self.quiet else self.make(self.records(self.rng.randrange(1, 40)))

    def session(self, port):
        self.connect(port)
        try:
            while m := self.take():
                self.sends.update(m.ids)
                try:
                    self.exchange(m)
                except Refused:
                    self.sends.subtract(m.ids)
                    self.refusals += 1
                    self.pending.appendleft(m)
                    time.sleep(0.05)
                except Unclear:
                    self.pending.appendleft(m)
                    if self.dead:
                        return
                    time.sleep(0.05)
                except BaseException:
                    self.pending.appendleft(m)
                    raise
                else:
                    self.acked.update(m.ids)
                time.sleep(self.rng.random() * 0.05)
        finally:
            self.close()


class Web(Sender):
    """HTTP: one connection, kept."""
    path, headers = "/", {}

    def connect(self, port):
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def close(self):
        self.conn.close()

    def post(self, body, headers):
        self.conn.request("POST", self.path, body, headers)
        r = self.conn.getresponse()
        text = r.read()
        if r.status in (503, 429):
            if not r.headers.get("Retry-After") and "x-amzn-RequestId" not in r.headers:
                raise Wrong(f"{r.status} without Retry-After")
            raise Refused
        if r.status != 200:
            raise Wrong(f"{r.status} {text[:300]}")
        return text


class Ndjson(Web):
    """The http connector: NDJSON, a JSON array, gzip."""

    def make(self, records):
        docs = [json.dumps({"id": i, "num": num, "pad": self.pad(i)}) for i, num in records]
        form = self.rng.randrange(3)
        body = ("[" + ",".join(docs) + "]" if form == 0 else "\n".join(docs)).encode()
        return Message([i for i, _ in records], gzip.compress(body, 1) if form == 2 else body, headers={"Content-Encoding": "gzip"} if form == 2 else {})

    def exchange(self, m):
        if json.loads(self.post(m.body, m.more["headers"]))["accepted"] != len(m.ids):
            raise Wrong("not all documents of a request were accepted")


class Firehose(Web):
    """PutRecordBatch; records that fail are sent again by themselves."""

    def make(self, records):
        return Message([i for i, _ in records], [json.dumps({"id": i, "num": num, "pad": self.pad(i)}).encode() + b"\n" for i, num in records])

    def exchange(self, m):
        body = json.dumps({"DeliveryStreamName": "logs", "Records": [{"Data": base64.b64encode(d).decode()} for d in m.body]})
        text = self.post(body, {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Firehose_20150804.PutRecordBatch"})
        a = json.loads(text)
        failed = [k for k, r in enumerate(a["RequestResponses"]) if "ErrorCode" in r]
        if len(failed) != a["FailedPutCount"] or len(a["RequestResponses"]) != len(m.ids) or not all(r.get("RecordId") or "ErrorCode" in r for r in a["RequestResponses"]):
            raise Wrong(f"an answer that does not fit: {text[:300]}")
        self.acked.update(i for k, i in enumerate(m.ids) if k not in failed)
        m.ids, m.body = [m.ids[k] for k in failed], [m.body[k] for k in failed]
        if failed:
            raise Refused


# ---- OTLP ----

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(key, value):
    v = varint(3 << 3) + varint(value) if isinstance(value, int) else field(1, value.encode())
    return field(1, key.encode()) + field(2, v)


def export_protobuf(logs):
    """logs: [(id, num, body)], in two scopes."""
    def record(i, num, body):
        return field(2, b"\x09" + struct.pack("<Q", time.time_ns()) + field(5, field(1, body.encode())) + field(6, attribute("id", i)) + field(6, attribute("num", num)))
    scopes = [logs[:len(logs) // 2], logs[len(logs) // 2:]]
    resource = field(1, field(1, attribute("service.name", "kill")))
    return field(1, resource + b"".join(field(2, field(1, field(1, b"scope%d" % k)) + b"".join(record(*l) for l in part)) for k, part in enumerate(scopes) if part))


def export_json(logs):
    return json.dumps({"resourceLogs": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "kill"}}]}, "scopeLogs": [{"scope": {"name": "s"}, "logRecords": [
        {"timeUnixNano": str(time.time_ns()), "body": {"stringValue": body}, "attributes": [{"key": "id", "value": {"intValue": str(i)}}, {"key": "num", "value": {"stringValue": num}}]} for i, num, body in logs]}]}]}).encode()


class Otlp(Web):
    """OTLP/HTTP, protobuf and JSON, some of it packed."""
    path = "/v1/logs"

    def make(self, records):
        logs = [(i, num, self.pad(i)) for i, num in records]
        protobuf, packed = self.rng.random() < 0.5, self.rng.random() < 0.3
        body = export_protobuf(logs) if protobuf else export_json(logs)
        headers = {"Content-Type": "application/x-protobuf" if protobuf else "application/json", **({"Content-Encoding": "gzip"} if packed else {})}
        return Message([i for i, _ in records], gzip.compress(body, 1) if packed else body, headers=headers)

    def exchange(self, m):
        text = self.post(m.body, m.more["headers"])
        if text not in (b"", b"{}", b'{"partialSuccess":{}}'):
            raise Wrong(f"a partial success: {text[:300]}")


try:
    import grpc
except ImportError:
    grpc = None


class OtlpGrpc(Sender):
    """OTLP/gRPC with the library that the SDKs use."""

    def make(self, records):
        return Message([i for i, _ in records], export_protobuf([(i, num, self.pad(i)) for i, num in records]))

    def connect(self, port):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])
        self.call = self.channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")

    def close(self):
        self.channel.close()

    def exchange(self, m):
        try:
            if self.call(m.body, timeout=PATIENCE):
                raise Wrong("a partial success")
        except grpc.RpcError as e:  # a refusal and a broken connection look the same
            if e.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
                raise Wrong(f"{e.code()} {e.details()}") from e
            raise Unclear from e


# ---- forward ----

def pack(v):
    """MessagePack of what is needed here."""
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        return bytes([v]) if v < 128 else b"\xcf" + struct.pack(">Q", v)
    if isinstance(v, str):
        b = v.encode()
        return (bytes([0xa0 | len(b)]) if len(b) < 32 else b"\xda" + struct.pack(">H", len(b))) + b
    if isinstance(v, (bytes, bytearray)):
        return b"\xc6" + struct.pack(">I", len(v)) + v
    if isinstance(v, list):
        return b"\xdc" + struct.pack(">H", len(v)) + b"".join(map(pack, v))
    if isinstance(v, Time):
        return b"\xd7\x00" + struct.pack(">II", v.ns // 10 ** 9, v.ns % 10 ** 9)
    return b"\xde" + struct.pack(">H", len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())


class Time:
    def __init__(self):
        self.ns = time.time_ns()


class Forward(Sender):
    """All four modes with `chunk`; up to `window` messages wait for their acknowledgement at a time, as senders may that keep a connection busy."""
    window = 4

    def make(self, records):
        ids, mode, chunk = [i for i, _ in records], self.rng.randrange(4), base64.b64encode(self.rng.randbytes(12)).decode()
        if mode == 0:  # Message mode has one event
            for i, num in records[1:]:
                self.pending.append(self.one((i, num)))
            return self.one(records[0])
        entries = [[self.rng.choice((Time(), int(time.time()))), {"id": i, "num": num, "pad": self.pad(i)}] for i, num in records]
        option = {"chunk": chunk, "size": len(entries)}
        if mode == 1:
            body = pack(["kill.forward", entries, option])
        else:
            packed = b"".join(map(pack, entries))
            if mode == 3:
                half = len(packed) // 2
                packed = gzip.compress(packed[:half], 1) + gzip.compress(packed[half:], 1)
                option["compressed"] = "gzip"
            body = pack(["kill.packed", packed, option])
        return Message(ids, body, chunk=chunk)

    def one(self, record):
        i, num = record
        chunk = base64.b64encode(self.rng.randbytes(12)).decode()
        return Message([i], pack(["kill.message", Time(), {"id": i, "num": num, "pad": self.pad(i)}, {"chunk": chunk}]), chunk=chunk)

    def session(self, port):
        flying = {}
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            s.settimeout(PATIENCE)
            buffered = b""
            try:
                while True:
                    m = self.take() if len(flying) < self.window else None
                    if m:
                        flying[m.more["chunk"]] = m
                        self.sends.update(m.ids)
                        s.sendall(m.body)
                        if self.rng.random() < 0.7:
                            continue
                    if not flying:
                        if m is None and self.quiet and not self.pending:
                            return
                        continue
                    while len(buffered) < 22:  # {"ack": <16 bytes>}
                        more = s.recv(65536)
                        if not more:
                            raise EOFError
                        buffered += more
                    if buffered[:6] != b"\x81\xa3ack\xb0" or buffered[6:22].decode() not in flying:
                        raise Wrong(f"no acknowledgement of ours: {buffered[:40]!r}")
                    self.acked.update(flying.pop(buffered[6:22].decode()).ids)
                    buffered = buffered[22:]
                    time.sleep(self.rng.random() * 0.05)
            finally:
                self.pending.extendleft(reversed(flying.values()))


# ---- no acknowledgement ----

class Syslog(Sender):
    """RFC 5424 over TCP, by octet counting and by line. TCP promises the order and nothing of what is on its way when the server dies; so a message is sent once, and of each connection's messages `streams`
    knows the order: those that arrive must be the first ones. Messages of a connection that ended in order must all arrive (`whole`)."""

    def __init__(self, *args):
        super().__init__(*args)
        self.streams, self.whole = [], set()

    def session(self, port):
        sent = []
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            s.settimeout(PATIENCE)
            self.streams.append(sent)
            counted = self.rng.random() < 0.5
            while not self.quiet:
                out = b""
                for i, num in self.records(self.rng.randrange(1, 20)):
                    text = f"<13>1 2026-01-02T03:04:05Z host app {num} - [pad x=\"{self.pad(i)}\"] {i}".encode()
                    out += b"%d %s" % (len(text), text) if counted else text + b"\n"
                    sent.append(i)
                    self.sends[i] += 1
                s.sendall(out)
                time.sleep(self.rng.random() * 0.03)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):  # the server reads to the end, and closes
                pass
        self.whole.update(sent)


class Tail:
    """Not a client: writes lines into a file, all the time, whether anybody follows it or not; renames it now and then, and some of the lines come in two pieces."""

    def __init__(self, directory, first_id, rng):
        self.source, self.dir, self.next_id, self.rng = "tail", directory, first_id, random.Random(rng.random())
        self.sends, self.bad, self.files, self.over, self.error = collections.Counter(), set(), 0, threading.Event(), None
        os.mkdir(directory)
        self.file = open(f"{directory}/app.log", "ab", buffering=0)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    @property
    def acked(self):
        return set(self.sends)

    def run(self):
        while not self.over.wait(self.rng.random() * 0.06):
            for i, num in Sender.records(self, self.rng.randrange(1, 30)):
                line = json.dumps({"id": i, "num": num, "pad": Sender.pad(self, i)}).encode() + b"\n"
                cut = self.rng.randrange(len(line)) if self.rng.random() < 0.05 else 0
                self.file.write(line[:cut])
                if cut:
                    time.sleep(0.002)
                self.file.write(line[cut:])
                self.sends[i] += 1
            if self.rng.random() < 0.03:
                self.files += 1
                os.rename(f"{self.dir}/app.log", f"{self.dir}/app.log.{self.files}")
                self.file.close()
                self.file = open(f"{self.dir}/app.log", "ab", buffering=0)

    def end(self):
        self.over.set()
        self.thread.join()
        self.file.close()


CLIENTS = {"forward": [Forward, Forward], "http": [Ndjson, Ndjson], "firehose": [Firehose], "otlp": [Otlp, Otlp], "grpc": [OtlpGrpc] if grpc else [], "syslog": [Syslog, Syslog]}
