#!/usr/bin/env python3
"""The forward connector in the real binary: forward -> spool -> Iceberg. By run.sh.

usage: forward.py [CASE...]"""
import calendar, json, os, shutil, signal, socket, subprocess, sys, tempfile, time

BIN, CLIENTS = os.environ["FRAZIL_BIN"], os.environ["FRAZIL_FORWARD_SH"]
ROUNDS = int(os.environ.get("FRAZIL_FORWARD_ROUNDS", "20"))
EVENT = bytes.fromhex("92d70067760225075bcd15")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """One directory: catalog, state, script. A table of (tag, time, message, n, record) fed from the forward source."""

    def __init__(self, options="", columns="message STRING, n BIGINT", select="tag, `time`, message, n, `record`"):
        self.dir = tempfile.mkdtemp(prefix="frazil-forward.", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.port = int(os.environ.get("FRAZIL_FORWARD_PORT") or free_port())
        d = self.dir
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/c.db','warehouse'='file://{d}/wh');\n"
        with open(f"{d}/job.sql", "w") as f:
            f.write(f"""SET 'pipeline.name' = 'forward-test';
SET 'execution.checkpointing.interval' = '300 ms';
SET 'frazil.state.dir' = '{d}/state';
{self.catalog}CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE IF NOT EXISTS c.db.t (tag STRING, `time` TIMESTAMP_LTZ(6), message STRING, n BIGINT, `record` STRING);
CREATE TEMPORARY TABLE src ({columns}, tag STRING METADATA, `time` TIMESTAMP_LTZ(6) METADATA, `record` STRING METADATA)
  WITH ('connector'='forward','listen'='127.0.0.1:{self.port}'{options});
INSERT INTO c.db.t SELECT {select} FROM src;
""")
        self.process = None

    def start(self):
        self.log = open(f"{self.dir}/log", "a")
        self.process = subprocess.Popen([BIN, "run", f"{self.dir}/job.sql"], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.tail()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError("it does not listen\n" + self.tail())

    def tail(self):
        return open(f"{self.dir}/log").read()[-3000:]

    def stop(self, code=0):
        self.process.send_signal(signal.SIGTERM)
        got = self.process.wait(60)
        assert got == code, f"exit code {got}\n{self.tail()}"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def sql(self, query):
        out = subprocess.run([BIN, "sql", "--format", "json", "-e", self.catalog + query], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]

    def wait_rows(self, n, seconds=90):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            got = self.sql("SELECT COUNT(*) AS k FROM c.db.t")[0]["k"]
            if got >= n:
                break
            time.sleep(0.5)
        assert got == n, f"{got} rows, not {n}\n{self.tail()}"

    def audit(self):
        with open(f"{self.dir}/catalog.sql", "w") as f:
            f.write(self.catalog)
        out = subprocess.run([BIN, "audit", "-i", f"{self.dir}/catalog.sql", "c.db.t"], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stdout + out.stderr

    def done(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def client(*args, ok=True, env={}):
    """A client that is turned away tries again for ever: it is given six seconds."""
    out = subprocess.run(["bash", CLIENTS, *map(str, args)], capture_output=True, text=True, timeout=120, env={**os.environ, "FORWARD_PATIENCE_MS": "60000" if ok else "6000", **env})
    assert (out.returncode == 0) == ok, f"{args}: {out.returncode}\n{out.stdout}{out.stderr}"


# ---- a client of our own, for what libraries do not do ----

def packed(events, chunk=None, tag=b"k"):
    """events: message texts shorter than 32 bytes."""
    body = b"".join(EVENT + b"\x81\xa7message" + bytes([0xa0 | len(e)]) + e for e in events)
    head = b"\x93" + bytes([0xa0 | len(tag)]) + tag + b"\xc6" + len(body).to_bytes(4, "big") + body
    return head + (b"\x81\xa5chunk" + bytes([0xa0 | len(chunk)]) + chunk if chunk else b"\x80")


def ack(chunk):
    return b"\x81\xa3ack" + bytes([0xa0 | len(chunk)]) + chunk


def receive(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        if not more:
            break
        got += more
    return got


# ---- cases ----

def libraries():
    """Clients in three languages, all four modes, with and without answers: every event once, with its text, number, tag and time."""
    job, n = Job().start(), 200
    modes = ["Message", "Forward", "PackedForward", "CompressedPackedForward"]
    began = time.time()
    try:
        client("python", "127.0.0.1", job.port, n, "py.msg")
        client("go", "127.0.0.1", job.port, n, "go.msg")
        for mode in modes:
            client("js", "127.0.0.1", job.port, n, f"js.{mode}", mode)
        tags = ["py.msg", "go.msg"] + [f"js.{m}" for m in modes]
        job.wait_rows(n * len(tags))
        job.stop()
        rows = job.sql("SELECT tag, message, n, `record`, CAST(`time` AS STRING) AS moment FROM c.db.t")
        for tag in tags:
            mine = sorted((r for r in rows if r["tag"] == tag), key=lambda r: r["n"])
            assert [r["n"] for r in mine] == list(range(n)), tag
            assert all(r["message"] == f"m {r['n']} é" for r in mine), tag
            assert all(json.loads(r["record"]) == {"message": r["message"], "n": r["n"]} for r in mine), tag
            assert all(r["moment"][:10] in (time.strftime("%Y-%m-%d", time.gmtime(began)), time.strftime("%Y-%m-%d", time.gmtime())) for r in mine), (tag, mine[0])
        job.audit()
    finally:
        job.done()


def handshake():
    """A client that has the key and the password is taken; one without either is not."""
    job = Job(",'shared-key'='sesame','self-hostname'='frazil','username'='u','password'='p'").start()
    try:
        client("js", "127.0.0.1", job.port, 10, "right", "PackedForward", "sesame", "u", "p")
        client("js", "127.0.0.1", job.port, 10, "key", "PackedForward", "sesam", "u", "p", ok=False)
        client("js", "127.0.0.1", job.port, 10, "password", "PackedForward", "sesame", "u", "q", ok=False)
        with socket.create_connection(("127.0.0.1", job.port)) as s:
            assert receive(s, 6) == b"\x92\xa4HELO"
            s.sendall(packed([b"x"], b"c"))
            assert b"ack" not in receive(s, 1000)
        job.wait_rows(10)
        time.sleep(0.5)
        job.wait_rows(10)
        job.stop()
        assert "sesame" not in job.tail()
    finally:
        job.done()


def certificates(d):
    """An authority, a server and a client that it vouches for; another authority."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=d)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in ("ca", "other"):
        openssl("req", "-x509", *new, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    for name in ("server", "client"):
        openssl("req", *new[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-copy_extensions", "copy")


def tls():
    """Clients in two languages over TLS (that of Python has none): with the shared key and a password inside it, with certificates of their own. Who does not trust the server sends nothing, who has no
    certificate is turned away; every event of the others is there once."""
    d = tempfile.mkdtemp(prefix="frazil-forward-tls.", dir=os.environ.get("FRAZIL_TEST_DIR"))
    certificates(d)
    server = f",'tls.cert'='{d}/server.pem','tls.key'='{d}/server.key'"
    trust, mistrust = {"FORWARD_CA": f"{d}/ca.pem"}, {"FORWARD_CA": f"{d}/other.pem"}
    modes, n = ["Message", "Forward", "PackedForward", "CompressedPackedForward"], 200

    def check(job, tags):
        job.wait_rows(n * len(tags))
        job.stop()
        rows = job.sql("SELECT tag, message, n FROM c.db.t")
        want = sorted((t, f"m {i} é", i) for t in tags for i in range(n))
        assert sorted((r["tag"], r["message"], r["n"]) for r in rows) == want, len(rows)
        job.audit()

    job = Job(server + ",'shared-key'='sesame','self-hostname'='frazil','username'='u','password'='p'").start()
    try:
        for mode in modes:
            client("js", "127.0.0.1", job.port, n, f"js.{mode}", mode, "sesame", "u", "p", env=trust)
        client("js", "127.0.0.1", job.port, n, "mistrust", "Message", "sesame", "u", "p", env=mistrust, ok=False)
        client("js", "127.0.0.1", job.port, n, "key", "Message", "sesam", "u", "p", env=trust, ok=False)
        client("js", "127.0.0.1", job.port, n, "plain", "Message", "sesame", "u", "p", ok=False)
        check(job, [f"js.{m}" for m in modes])
    finally:
        job.done()
    job = Job(server).start()
    try:
        client("go", "127.0.0.1", job.port, n, "go.msg", "tls", env={"SSL_CERT_FILE": f"{d}/ca.pem"})
        client("go", "127.0.0.1", job.port, n, "go.mistrust", "tls", env={"SSL_CERT_FILE": f"{d}/other.pem"}, ok=False)
        check(job, ["go.msg"])
    finally:
        job.done()
    job = Job(server + f",'tls.ca'='{d}/ca.pem'").start()
    try:
        client("js", "127.0.0.1", job.port, n, "js.cert", "PackedForward", env={**trust, "FORWARD_CERT": f"{d}/client.pem", "FORWARD_CERT_KEY": f"{d}/client.key"})
        client("js", "127.0.0.1", job.port, n, "js.none", "PackedForward", env=trust, ok=False)
        check(job, ["js.cert"])
    finally:
        job.done()
        shutil.rmtree(d)


def killed_after_each_answer():
    """kill -9 the moment an answer is there: every event that was answered is in the table, those of unanswered chunks at most once a time that they were sent."""
    job, answered, sent = Job(), set(), {}
    try:
        for r in range(ROUNDS):
            job.start()
            with socket.create_connection(("127.0.0.1", job.port)) as s:
                s.settimeout(20)
                for k in range(1 + r % 3):
                    events = [b"r%d.%d.%d" % (r, k, i) for i in range(1 + 40 * (r % 5))]
                    chunk = b"Y2h1bm%d.%d" % (r, k)
                    for e in events:
                        sent[e.decode()] = sent.get(e.decode(), 0) + 1
                    s.sendall(packed(events, chunk))
                    if k == r % 3:  # one more that nobody waits for
                        s.sendall(packed([b"r%d.late" % r]))
                        sent[f"r{r}.late"] = 1
                    want = ack(chunk)
                    got = receive(s, len(want))
                    assert got == want, (r, k, got)
                    answered.update(e.decode() for e in events)
                job.kill()
        job.start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            there = [x["message"] for x in job.sql("SELECT message FROM c.db.t")]
            if answered <= set(there):
                break
            time.sleep(0.5)
        job.stop()
        there = [x["message"] for x in job.sql("SELECT message FROM c.db.t")]
        missing = answered - set(there)
        assert not missing, f"{len(missing)} answered events are lost: {sorted(missing)[:5]}\n{job.tail()}"
        for m in set(there):
            assert there.count(m) <= sent.get(m, 0), f"{m} is there {there.count(m)} times"
        job.audit()
    finally:
        job.done()


def chunk_sent_again():
    """A chunk whose answer was lost and that is sent again is taken again: ids are not remembered."""
    job = Job().start()
    try:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", job.port)) as s:
                s.sendall(packed([b"a", b"b"], b"same"))
                assert receive(s, len(ack(b"same"))) == ack(b"same")
        job.wait_rows(4)
        job.stop()
        assert sorted(r["message"] for r in job.sql("SELECT message FROM c.db.t")) == ["a", "a", "b", "b"]
    finally:
        job.done()


def firelens():
    """JSON inside `log` is taken by the schema; broken events become dead letters and are answered; the rest goes on."""
    job = Job(",'msgpack.json-field'='log'", "severity STRING, n BIGINT, container_name STRING, message STRING", "tag, `time`, severity || '/' || container_name, n, `record`").start()
    try:
        def text(b):
            return bytes([0xd9, len(b)]) + b
        with socket.create_connection(("127.0.0.1", job.port)) as s:
            log = json.dumps({"severity": "ERROR", "n": 7, "container_name": "forged"}).encode()
            s.sendall(b"\x93\xa1f" + b"\x01" + b"\x82" + text(b"log") + text(log) + text(b"container_name") + text(b"app"))
            s.sendall(b"\x93\xa1f" + b"\x00" + b"\x82" + text(b"log") + text(b"plain") + text(b"container_name") + text(b"app"))
            s.sendall(b"\x94\xa1f\x01\xa6no map\x81\xa5chunk\xa1c")
            assert receive(s, len(ack(b"c"))) == ack(b"c")
        job.wait_rows(2)
        job.stop()
        rows = job.sql("SELECT message, n, CAST(`time` AS STRING) AS moment FROM c.db.t")
        row = next(r for r in rows if r["n"])
        assert row["message"] == "ERROR/app" and row["n"] == 7 and row["moment"].startswith("1970-01-01 00:00:01"), row
        row = next(r for r in rows if not r["n"])  # an event without a time has that of its arrival
        assert row["message"] is None and abs(time.time() - calendar.timegm(time.strptime(row["moment"][:19], "%Y-%m-%d %H:%M:%S"))) < 3600, row
        letters = "".join(open(os.path.join(d, f)).read() for d, _, fs in os.walk(f"{job.dir}/state/dead-letter") for f in fs)
        assert "msgpack.parse" in letters and letters.count("\n") == 1, letters
        job.audit()
    finally:
        job.done()


def select_in_the_shell():
    """SELECT over the connector, with metadata; what it reads is taken from nobody."""
    job = Job()
    try:
        script = open(f"{job.dir}/job.sql").read()
        script = script[:script.index("INSERT INTO")].replace("CREATE DATABASE", "-- ").replace("CREATE TABLE IF NOT EXISTS c.db.t", "-- ")
        with open(f"{job.dir}/select.sql", "w") as f:
            f.write(script + "SELECT tag, message, `record` FROM src LIMIT 2;\n")
        p = subprocess.Popen([BIN, "sql", "--format", "json", "-f", f"{job.dir}/select.sql"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            try:
                s = socket.create_connection(("127.0.0.1", job.port), 1)
                break
            except OSError:
                assert p.poll() is None, p.communicate()
                time.sleep(0.05)
        s.sendall(packed([b"a", b"b"]))
        out, err = p.communicate(timeout=60)
        s.close()
        rows = [json.loads(x) for x in out.splitlines() if x.startswith("{")]
        assert p.returncode == 0 and rows == [{"tag": "k", "message": m, "record": '{"message":"%s"}' % m} for m in "ab"], (p.returncode, out, err)
    finally:
        job.done()


CASES = [libraries, handshake, tls, killed_after_each_answer, chunk_sent_again, firelens, select_in_the_shell]
failed = []
for case in CASES:
    if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
        continue
    began = time.monotonic()
    try:
        case()
        print(f"ok   {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
    except Exception as e:
        failed.append(case.__name__)
        print(f"FAIL {case.__name__}: {e!r}", flush=True)
print(f"forward: failed: {' '.join(failed) or 'none'}")
sys.exit(bool(failed))
