#!/usr/bin/env python3
"""The otlp connector in the real binary: HTTP and gRPC -> spool -> Iceberg. By run.sh.

usage: otlp.py [CASE...]"""
import atexit, http.client, json, os, re, shutil, signal, subprocess, sys, tempfile, threading, time

BIN, CLIENTS = os.environ["FRAZIL_BIN"], os.environ["FRAZIL_OTLP_SH"]
ROUNDS = int(os.environ.get("FRAZIL_OTLP_ROUNDS", "20"))
COLUMNS = {"time_unix_nano": "BIGINT", "observed_time_unix_nano": "TIMESTAMP_LTZ(6)", "severity_number": "INT", "severity_text": "STRING", "body": "STRING", "attributes": "MAP<STRING, STRING>",
           "resource_attributes": "MAP<STRING, STRING>", "scope_name": "STRING", "scope_version": "STRING", "trace_id": "STRING", "span_id": "STRING", "flags": "INT", "n": "BIGINT", "who": "STRING",
           "service.name": "STRING"}


class Job:
    """One directory: catalog, state, script. A table of COLUMNS (service.name: service) and the record as text, fed from the otlp source."""

    def __init__(self, options=""):
        self.dir = tempfile.mkdtemp(prefix="frazil-otlp.", dir=os.environ.get("FRAZIL_TEST_DIR"))
        d = self.dir
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/c.db','warehouse'='file://{d}/wh');\n"
        names = ", ".join(f"`{c}`" for c in COLUMNS)
        with open(f"{d}/job.sql", "w") as f:
            f.write(f"""SET 'pipeline.name' = 'otlp-test';
SET 'execution.checkpointing.interval' = '300 ms';
SET 'frazil.state.dir' = '{d}/state';
{self.catalog}CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE IF NOT EXISTS c.db.t ({", ".join(f"`{c.replace('service.name', 'service')}` {t}" for c, t in COLUMNS.items())}, `record` STRING);
CREATE TEMPORARY TABLE src ({", ".join(f"`{c}` {t}" for c, t in COLUMNS.items())}, `record` STRING METADATA)
  WITH ('connector'='otlp','listen'='127.0.0.1:0','grpc.listen'='127.0.0.1:0'{options});
INSERT INTO c.db.t SELECT {names}, `record` FROM src;
""")
        self.process = None
        atexit.register(self.end) # also of a case that fails

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def start(self):
        self.log = open(f"{self.dir}/log", "a")
        begin = self.log.tell()
        self.process = subprocess.Popen([BIN, "run", f"{self.dir}/job.sql"], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.tail()
            with open(f"{self.dir}/log") as f:
                f.seek(begin)
                ports = re.findall(r"event=source.listening .*address=127.0.0.1:(\d+)", f.read())
            if len(ports) == 2:
                self.http, self.grpc = map(int, ports)
                return self
            time.sleep(0.02)
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

    def wait_rows(self, n, where="TRUE", seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.tail()
            got = self.sql(f"SELECT COUNT(*) AS n FROM c.db.t WHERE {where};")[0]["n"]
            if got >= n:
                assert got == n, f"{got} rows, not {n}"
                return
            time.sleep(0.3)
        raise AssertionError(f"{got} rows, not {n}\n{self.tail()}")

    def post(self, body, headers={}, path="/v1/logs", port=None):
        c = http.client.HTTPConnection("127.0.0.1", port or self.http, timeout=30)
        c.request("POST", path, body, {"Content-Type": "application/json", **headers})
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, text

    def done(self):
        self.stop()
        shutil.rmtree(self.dir)


def client(*args, ok=True, env={}):
    trusted = {k: v for k, v in os.environ.items() if k not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")} # they would win over what a client is told
    out = subprocess.run(["bash", CLIENTS, *map(str, args)], capture_output=True, text=True, timeout=300, env={**trusted, **env})
    sent = out.returncode == 0 and not re.search(r"Failed to export|ERROR|Traceback|FATAL|[Cc]ertificate", out.stderr)
    assert sent == ok, out.stdout[-1500:] + out.stderr[-3000:]


def check_rows(job, who, count, more):
    """Every record of a sender is there once, with what it said."""
    rows = job.sql(f"SELECT * FROM c.db.t WHERE who = '{who}' ORDER BY n;")
    assert [r["n"] for r in rows] == list(range(count)), (who, len(rows))
    for r in rows:
        assert r["body"] == f"message {r['n']} é", r
        assert abs(r["time_unix_nano"] / 1e9 - time.time()) < 3600 and r["observed_time_unix_nano"], r
        assert json.loads(r["record"])["body"] == {"stringValue": r["body"]}, r
        for key, value in more.items():
            assert r[key] == value, (key, r)
        a = r["attributes"] if isinstance(r["attributes"], dict) else json.loads(r["attributes"])
        assert a["n"] == str(r["n"]) and a["who"] == who, a


def case_clients():
    """SDKs of three languages over HTTP and gRPC, plain and gzip, protobuf and JSON."""
    job = Job().start()
    web, grpc = f"http://127.0.0.1:{job.http}/v1/logs", f"http://127.0.0.1:{job.grpc}"
    py = {"severity_number": 13, "severity_text": "WARN", "service": "py", "scope_name": "sender"}
    client("python", "http", web, 3000, "py-http")
    client("python", "http", web, 3000, "py-http-gzip", "gzip")
    client("python", "grpc", grpc, 3000, "py-grpc")
    client("python", "grpc", grpc, 3000, "py-grpc-gzip", "gzip")
    client("js", web, 3000, "js")
    job.wait_rows(15000)
    for who in ("py-http", "py-http-gzip", "py-grpc", "py-grpc-gzip"):
        check_rows(job, who, 3000, py)
    check_rows(job, "js", 3000, {"severity_number": 13, "severity_text": "WARN", "scope_name": "sender", "scope_version": "1.2"})
    row = job.sql("SELECT attributes['list'] AS l, attributes['nested'] AS x FROM c.db.t WHERE who = 'js' AND n = 7;")[0]
    assert row == {"l": '["a",7]', "x": '{"x":1.5}'}, row
    trace = "5b8efff798038103d269b633813fc60c"
    for kind, extra in (("http", ["--otlp-http"]), ("grpc", [])):
        client("go", "logs", "--otlp-insecure", "--otlp-endpoint", f"127.0.0.1:{job.http if kind == 'http' else job.grpc}", "--logs", 2000, "--rate", 0, "--body", f"gen {kind}", "--severity-text", "Error",
               "--severity-number", 17, "--trace-id", trace, "--span-id", "eee19b7ec3c1b174", "--telemetry-attributes", 'who="gen"', "--otlp-attributes", 'service.name="gen"', *extra)
    job.wait_rows(19000)
    rows = job.sql("SELECT body, service, severity_text, severity_number, trace_id, span_id, who, COUNT(*) AS c FROM c.db.t WHERE who = 'gen' GROUP BY body, service, severity_text, severity_number, trace_id, span_id, who ORDER BY body;")
    want = [{"body": f"gen {k}", "service": "gen", "severity_text": "Error", "severity_number": 17, "trace_id": trace, "span_id": "eee19b7ec3c1b174", "who": "gen", "c": 2000} for k in ("grpc", "http")]
    assert rows == want, rows
    job.done()


def certificates(d):
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, capture_output=True)
    run("req", "-x509", *new, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-x509", *new, "-days", "2", "-subj", "/CN=another", "-keyout", "other.key", "-out", "other.pem")
    run("req", *new, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    with open(f"{d}/ext", "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "server.pem")


def case_tls():
    """TLS over HTTP and over gRPC (ALPN), SDKs of three languages; with a token; who does not trust the server's authority sends nothing."""
    d = tempfile.mkdtemp(prefix="frazil-otlp-tls.")
    certificates(d)
    job = Job(f",'tls.cert'='{d}/server.pem','tls.key'='{d}/server.key','auth'='token','token'='s3cret'").start()
    client("python", "http", f"https://localhost:{job.http}/v1/logs", 500, "tls-http", "token=s3cret", f"ca={d}/ca.pem")
    client("python", "grpc", f"https://localhost:{job.grpc}", 500, "tls-grpc", "gzip", "token=s3cret", f"ca={d}/ca.pem")
    job.wait_rows(1000)
    check_rows(job, "tls-http", 500, {"service": "py"})
    check_rows(job, "tls-grpc", 500, {"service": "py"})
    assert "s3cret" not in job.tail()
    job.done()
    job = Job(f",'tls.cert'='{d}/server.pem','tls.key'='{d}/server.key'").start()
    client("js", f"https://localhost:{job.http}/v1/logs", 500, "tls-js", env={"NODE_EXTRA_CA_CERTS": f"{d}/ca.pem"})
    for kind, port, extra in (("http", job.http, ["--otlp-http"]), ("grpc", job.grpc, [])):
        client("go", "logs", "--ca-cert", f"{d}/ca.pem", "--otlp-endpoint", f"localhost:{port}", "--logs", 500, "--rate", 0, "--body", f"gen {kind}", "--telemetry-attributes", 'who="gen"', *extra)
    for kind, port, path in (("http", job.http, "/v1/logs"), ("grpc", job.grpc, "")):
        client("python", kind, f"https://localhost:{port}{path}", 50, "mistrust", f"ca={d}/other.pem", ok=False, env={"OTEL_EXPORTER_OTLP_TIMEOUT": "5"})
    job.wait_rows(1500)
    check_rows(job, "tls-js", 500, {"severity_number": 13})
    assert job.sql("SELECT body, COUNT(*) AS c FROM c.db.t WHERE who = 'gen' GROUP BY body ORDER BY body;") == [{"body": f"gen {k}", "c": 500} for k in ("grpc", "http")]
    job.done()
    shutil.rmtree(d)


def records(who, numbers):
    return json.dumps({"resourceLogs": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "raw"}}]}, "scopeLogs": [{"logRecords": [
        {"timeUnixNano": str(1735787045123456789 + n), "severityNumber": 9, "body": {"stringValue": f"message {n} é"},
         "attributes": [{"key": "n", "value": {"intValue": str(n)}}, {"key": "who", "value": {"stringValue": who}}]} for n in numbers]}]}]})


def case_kill():
    """Killed after answers, again and again: what was acknowledged is in the table once; what was not, at most once."""
    job = Job().start()
    acked, sent = set(), 0
    for _ in range(ROUNDS):
        lock, stop = threading.Lock(), threading.Event()

        def send():
            nonlocal sent
            while not stop.is_set():
                with lock:
                    numbers = range(sent, sent + 7)
                    sent += 7
                try:
                    status, text = job.post(records("k", numbers))
                except (OSError, http.client.HTTPException):
                    return
                if status == 200:
                    with lock:
                        acked.update(numbers)

        threads = [threading.Thread(target=send) for _ in range(4)]
        before = len(acked)
        for t in threads:
            t.start()
        deadline = time.monotonic() + 30
        while len(acked) < before + 100 and time.monotonic() < deadline:
            time.sleep(0.005)
        job.kill()
        stop.set()
        for t in threads:
            t.join()
        assert len(acked) > before
        job.start()
    status, text = job.post(records("last", [0]))
    assert status == 200 and json.loads(text) == {"partialSuccess": {}}, (status, text)
    job.wait_rows(1, "who = 'last'")
    rows = job.sql("SELECT n, COUNT(*) AS c FROM c.db.t WHERE who = 'k' GROUP BY n;")
    got = {r["n"]: r["c"] for r in rows}
    assert all(c == 1 for c in got.values()), [r for r in got.items() if r[1] != 1][:5]
    assert acked <= set(got), sorted(acked - set(got))[:5]
    print(f"otlp.py: {ROUNDS} kills, {sent} records sent, {len(acked)} acknowledged, {len(got)} in the table")
    job.done()


def case_refused():
    """What the records of a request are refused for is told, and the rest of them is taken."""
    job = Job().start()
    status, text = job.post(records("r", [1]).replace('"severityNumber": 9', '"severityNumber": 9, "traceId": "5B8EFFF798038103D269B633813FC60"'))
    assert status == 400 and "traceId" in json.loads(text)["message"], (status, text)
    status, text = job.post("\x0a\x10\x12\x0e\x12\x05\x1a\x03ONE\x12\x05\x4a\x03abc", {"Content-Type": "application/x-protobuf"})
    assert status == 200 and b"trace_id has 3 bytes" in text, (status, text)
    job.wait_rows(1)
    row = job.sql("SELECT severity_text, time_unix_nano, body, attributes AS a FROM c.db.t;")[0]
    assert row == {"severity_text": "ONE", "time_unix_nano": None, "body": None, "a": {}}, row
    job.done()


cases = {k[5:]: v for k, v in list(globals().items()) if k.startswith("case_")}
for name in sys.argv[1:] or cases:
    start = time.monotonic()
    cases[name]()
    print(f"otlp.py: {name} ok ({time.monotonic() - start:.1f} s)", flush=True)
