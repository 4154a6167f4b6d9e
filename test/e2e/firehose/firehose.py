#!/usr/bin/env python3
"""The firehose connector in the real binary: SDK -> spool -> Iceberg. By run.sh, with a Python that has boto3.

usage: firehose.py [CASE...]"""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, SSLError

BIN, CLIENTS = os.path.abspath(os.environ["FRAZIL_BIN"]), os.environ["FRAZIL_FIREHOSE_SH"]
ROUNDS = int(os.environ.get("FRAZIL_FIREHOSE_ROUNDS", "10"))
KEY, SECRET = "AKIATEST", "secret/with+signs=="


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """One directory: catalog, state, script. A table of (k, n, record, at) fed from the firehose source."""

    def __init__(self, options="", settings="", interval="300 ms"):
        self.dir = tempfile.mkdtemp(prefix="frazil-firehose.", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.port = int(os.environ.get("FRAZIL_FIREHOSE_PORT") or free_port())
        d = self.dir
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/c.db','warehouse'='file://{d}/wh');\n"
        with open(f"{d}/job.sql", "w") as f:
            f.write(f"""SET 'pipeline.name' = 'firehose-test';
SET 'execution.checkpointing.interval' = '{interval}';
SET 'frazil.state.dir' = '{d}/state';
{settings}
{self.catalog}CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE IF NOT EXISTS c.db.t (k STRING, n BIGINT, `record` STRING, `at` TIMESTAMP_LTZ(6));
CREATE TEMPORARY TABLE src (k STRING, n BIGINT, `record` STRING METADATA, arrival_time TIMESTAMP_LTZ(3) METADATA)
  WITH ('connector'='firehose','listen'='127.0.0.1:{self.port}','stream-name'='logs'{options});
INSERT INTO c.db.t SELECT k, n, `record`, CAST(arrival_time AS TIMESTAMP_LTZ(6)) FROM src;
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

    def client(self, secret=SECRET, key=KEY, ca=None):
        return boto3.client("firehose", endpoint_url=f"{'https' if ca else 'http'}://127.0.0.1:{self.port}", verify=ca, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
                            config=Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=60))

    def tail(self):
        with open(f"{self.dir}/log") as f:
            return f.read()[-3000:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        got = self.process.wait(60)
        assert got == 0, f"exit code {got}\n{self.tail()}"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def rows(self):
        out = subprocess.run([BIN, "sql", "--format", "json", "-e", self.catalog + "SELECT k, n, `record`, CAST(`at` AS STRING) AS `at` FROM c.db.t"], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]

    def wait_rows(self, n, seconds=90):
        deadline = time.monotonic() + seconds
        while len(rows := self.rows()) < n and time.monotonic() < deadline:
            time.sleep(0.3)
        assert len(rows) == n, f"{len(rows)} rows, not {n}\n{self.tail()}"
        return rows

    def audit(self):
        with open(f"{self.dir}/catalog.sql", "w") as f:
            f.write(self.catalog)
        out = subprocess.run([BIN, "audit", "-i", f"{self.dir}/catalog.sql", "c.db.t"], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stdout + out.stderr

    def done(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def doc(k, n):
    return json.dumps({"k": k, "n": n}, ensure_ascii=False).encode()


def refused(code, fn, **kw):
    try:
        fn(**kw)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, e.response
        assert e.response["ResponseMetadata"]["RequestId"], e.response
        return e.response
    raise AssertionError(f"{code} was expected")


# ---- cases ----

def sdks():
    """boto3 and the SDK for JavaScript, signed and checked: every record once, as it was sent."""
    job = Job(f",'auth'='sigv4','access-key-id'='{KEY}','secret-access-key'='{SECRET}'").start()
    try:
        c = job.client()
        want = {}
        assert c.list_delivery_streams()["DeliveryStreamNames"] == ["logs"]
        d = c.describe_delivery_stream(DeliveryStreamName="logs")["DeliveryStreamDescription"]
        assert d["DeliveryStreamStatus"] == "ACTIVE" and d["DeliveryStreamARN"].endswith(":deliverystream/logs") and d["CreateTimestamp"].year > 2000, d
        r = c.put_record(DeliveryStreamName="logs", Record={"Data": doc("one é", 1) + b"\n"})
        assert r["RecordId"] and r["Encrypted"] is False, r
        want["one é"] = 1
        for size in (1, 3, 500):
            batch = [(f"py{size}-{i}", i) for i in range(size)]
            r = c.put_record_batch(DeliveryStreamName="logs", Records=[{"Data": doc(k, n) + (b"\n" if n % 2 else b"")} for k, n in batch])
            assert r["FailedPutCount"] == 0 and len(r["RequestResponses"]) == size and len({x["RecordId"] for x in r["RequestResponses"]}) == size, r
            want.update(batch)
        out = subprocess.run(["bash", CLIENTS, "js", f"http://127.0.0.1:{job.port}", "logs", "250", "js"], capture_output=True, text=True, timeout=120, env={**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
        assert out.returncode == 0 and "failed 0" in out.stdout, out.stdout + out.stderr
        want.update({f"js-{i}": i for i in range(250)})
        refused("InvalidSignatureException", job.client(secret="another").put_record, DeliveryStreamName="logs", Record={"Data": doc("x", 0)})
        refused("UnrecognizedClientException", job.client(key="AKOTHER").put_record, DeliveryStreamName="logs", Record={"Data": doc("x", 0)})
        refused("ResourceNotFoundException", c.put_record, DeliveryStreamName="other", Record={"Data": doc("x", 0)})
        refused("InvalidArgumentException", c.put_record_batch, DeliveryStreamName="logs", Records=[{"Data": b"x"}] * 501)
        refused("InvalidArgumentException", c.put_record, DeliveryStreamName="logs", Record={"Data": b"x" * 1024001})
        refused("InvalidArgumentException", c.put_record_batch, DeliveryStreamName="logs", Records=[{"Data": b"x" * 1000000}] * 5)
        rows = job.wait_rows(len(want))
        job.stop()
        assert {x["k"]: x["n"] for x in rows} == want
        assert all(json.loads(x["record"]) == {"k": x["k"], "n": x["n"]} and not x["record"].endswith("\n") for x in rows)
        assert all(x["at"][:3] == "202" or x["at"][:2] == "20" for x in rows)
        assert SECRET not in open(f"{job.dir}/log").read()
        job.audit()
    finally:
        job.done()


def tls():
    """The SDKs over HTTPS, signed and checked; who does not trust the server's authority sends nothing."""
    d = tempfile.mkdtemp(prefix="frazil-firehose-tls.", dir=os.environ.get("FRAZIL_TEST_DIR"))

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=d)
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *new, "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    openssl("req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem", "-days", "2", "-copy_extensions", "copy")
    job = Job(f",'auth'='sigv4','access-key-id'='{KEY}','secret-access-key'='{SECRET}','tls.cert'='{d}/server.pem','tls.key'='{d}/server.key'").start()
    try:
        c, want = job.client(ca=f"{d}/ca.pem"), {}
        for r in range(20):
            batch = [(f"py{r}-{i}", i) for i in range(100)]
            got = c.put_record_batch(DeliveryStreamName="logs", Records=[{"Data": doc(k, n)} for k, n in batch])
            assert got["FailedPutCount"] == 0 and len(got["RequestResponses"]) == 100, got
            want.update(batch)
        refused("InvalidSignatureException", job.client(secret="another", ca=f"{d}/ca.pem").put_record_batch, DeliveryStreamName="logs", Records=[{"Data": doc("x", 0)}])
        try:
            job.client(ca=f"{d}/other.pem").put_record(DeliveryStreamName="logs", Record={"Data": doc("x", 0)})
            raise AssertionError("a server that nobody vouches for was trusted")
        except SSLError:
            pass
        env = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "NODE_EXTRA_CA_CERTS": f"{d}/ca.pem"}
        out = subprocess.run(["bash", CLIENTS, "js", f"https://localhost:{job.port}", "logs", "250", "js"], capture_output=True, text=True, timeout=120, env=env)
        assert out.returncode == 0 and "failed 0" in out.stdout, out.stdout + out.stderr
        want.update({f"js-{i}": i for i in range(250)})
        rows = job.wait_rows(len(want))
        job.stop()
        assert {x["k"]: x["n"] for x in rows} == want and len(rows) == len(want)
        assert SECRET not in open(f"{job.dir}/log").read()
        job.audit()
    finally:
        job.done()
        shutil.rmtree(d)


def killed_after_each_answer():
    """kill -9 the moment an answer is there: what was accepted is in the table, each record once; what had no answer at most once."""
    job, accepted, sent = Job(), set(), set()
    try:
        for r in range(ROUNDS):
            job.start()
            c = job.client()
            for k in range(1 + r % 3):
                keys = [f"r{r}.{k}.{i}" for i in range(1 + 60 * (r % 4))]
                sent.update(keys)
                got = c.put_record_batch(DeliveryStreamName="logs", Records=[{"Data": doc(x, r)} for x in keys])
                accepted.update(x for x, e in zip(keys, got["RequestResponses"]) if "RecordId" in e)
            job.kill()
        job.start()
        deadline = time.monotonic() + 60
        while not accepted <= {x["k"] for x in job.rows()} and time.monotonic() < deadline:
            time.sleep(0.3)
        job.stop()
        there = [x["k"] for x in job.rows()]
        assert not accepted - set(there), f"{len(accepted - set(there))} accepted records are lost\n{job.tail()}"
        assert len(there) == len(set(there)) and set(there) <= sent, "twice"
        job.audit()
    finally:
        job.done()


def full():
    """A small spool, and commits that are seldom: some records of a batch find no room, and say so; those sent again until they are accepted are in the table once."""
    job = Job(",'spool.max-size'='1 mb'", interval="2 s").start()
    try:
        c, partial, calls = job.client(), 0, 0
        left = [f"k{i}" for i in range(24)]
        all_keys, pad = list(left), "x" * 150000
        deadline = time.monotonic() + 120
        while left and time.monotonic() < deadline:
            batch = left[:5]
            try:
                r = c.put_record_batch(DeliveryStreamName="logs", Records=[{"Data": json.dumps({"k": k, "n": 1, "pad": pad})} for k in batch])
            except ClientError as e:
                assert e.response["Error"]["Code"] == "ServiceUnavailableException" and e.response["ResponseMetadata"]["HTTPStatusCode"] == 503, e.response
                time.sleep(0.2)
                continue
            calls += 1
            failed = [k for k, e in zip(batch, r["RequestResponses"]) if "ErrorCode" in e]
            assert r["FailedPutCount"] == len(failed) and len(r["RequestResponses"]) == len(batch), r
            assert all(e["ErrorCode"] == "ServiceUnavailableException" for e in r["RequestResponses"] if "ErrorCode" in e), r
            partial += 0 < len(failed) < len(batch)
            left = failed + left[5:]
        assert not left and partial, (left, partial, calls)
        rows = job.wait_rows(len(all_keys))
        job.stop()
        assert sorted(x["k"] for x in rows) == sorted(all_keys)
        job.audit()
    finally:
        job.done()


CASES = {f.__name__: f for f in (sdks, tls, killed_after_each_answer, full)}
for name in sys.argv[1:] or CASES:
    began = time.monotonic()
    CASES[name]()
    print(f"firehose: {name}: ok ({time.monotonic() - began:.1f} s)", flush=True)
