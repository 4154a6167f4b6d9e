#!/usr/bin/env python3
"""The syslog connector in the real binary: senders that others wrote -> spool -> Iceberg. By run.sh.

usage: syslog.py [CASE...]"""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, time

BIN, CLIENTS = os.path.abspath(os.environ["FRAZIL_BIN"]), os.environ["FRAZIL_SYSLOG_SH"]
COLUMNS = ("priority INT, facility_text STRING, severity INT, `timestamp` TIMESTAMP_LTZ(6), hostname STRING, app_name STRING, procid STRING, msgid STRING, "
           "structured_data MAP<STRING, MAP<STRING, STRING>>, `message` STRING, `raw` STRING, `format` STRING")
NAMES = [c.split()[0] for c in COLUMNS.replace("MAP<STRING, MAP<STRING, STRING>>", "MAP").split(", ")]


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(type=kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    """One directory: catalog, state, script. A table of all fields, the peer and the record."""

    def __init__(self, protocol, options="", interval="300 ms", zone="UTC"):
        self.dir = tempfile.mkdtemp(prefix="frazil-syslog.", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.port = int(os.environ.get("FRAZIL_SYSLOG_PORT") or free_port(socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM))
        d = self.dir
        if protocol == "tls":
            self.certificates()
            options += f",'tls.cert'='{d}/server.pem','tls.key'='{d}/server.key'"
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/c.db','warehouse'='file://{d}/wh');\n"
        with open(f"{d}/job.sql", "w") as f:
            f.write(f"""SET 'pipeline.name' = 'syslog-test';
SET 'execution.checkpointing.interval' = '{interval}';
SET 'frazil.state.dir' = '{d}/state';
SET 'table.local-time-zone' = '{zone}';
{self.catalog}CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE IF NOT EXISTS c.db.t ({COLUMNS}, peer STRING, `record` STRING);
CREATE TEMPORARY TABLE src ({COLUMNS}, peer STRING METADATA, `record` STRING METADATA)
  WITH ('connector'='syslog','listen'='127.0.0.1:{self.port}','protocol'='{protocol}'{options});
INSERT INTO c.db.t SELECT {", ".join(NAMES)}, peer, `record` FROM src;
""")
        self.log = open(f"{d}/log", "a")
        self.process = subprocess.Popen([BIN, "run", f"{d}/job.sql"], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while "event=source.listening" not in self.tail():
            assert self.process.poll() is None and time.monotonic() < deadline, self.tail()
            time.sleep(0.05)

    def certificates(self):
        def openssl(*args):
            subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=self.dir)
        new = ("-newkey", "rsa:2048", "-nodes")
        openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
        openssl("req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.pem", "-days", "2", "-copy_extensions", "copy")

    def tail(self):
        with open(f"{self.dir}/log") as f:
            return f.read()[-4000:]

    def sql(self, query):
        out = subprocess.run([BIN, "sql", "--format", "json", "-e", self.catalog + query], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stderr
        return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]

    def wait_rows(self, n, where="TRUE", seconds=90):
        deadline = time.monotonic() + seconds
        while (got := self.sql(f"SELECT COUNT(*) AS k FROM c.db.t WHERE {where}")[0]["k"]) < n and time.monotonic() < deadline:
            time.sleep(0.3)
        assert got == n, f"{got} rows, not {n}\n{self.tail()}"

    def rows(self, where="TRUE"):
        return self.sql(f"SELECT * FROM c.db.t WHERE {where}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        got = self.process.wait(60)
        assert got == 0, f"exit code {got}\n{self.tail()}"
        with open(f"{self.dir}/catalog.sql", "w") as f:
            f.write(self.catalog)
        out = subprocess.run([BIN, "audit", "-i", f"{self.dir}/catalog.sql", "c.db.t"], capture_output=True, text=True, timeout=120)
        assert out.returncode == 0, out.stdout + out.stderr

    def done(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def client(*args):
    out = subprocess.run(["bash", CLIENTS, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, f"{args}: {out.returncode}\n{out.stdout}{out.stderr}"


def now_ish(text):
    """Within a few minutes of now, whatever the form of the text."""
    then = time.mktime(time.strptime(text[:19].replace("T", " "), "%Y-%m-%d %H:%M:%S")) - time.timezone
    return abs(then - time.time()) < 600


# ---- cases ----

def logger_sends(job, udp):
    to = ["-n", "127.0.0.1", "-P", job.port, "-d" if udp else "-T"]
    client("logger", *to, "--rfc5424", "--sd-id", "x@1", "--sd-param", 'a="b c"', "--sd-param", 'd="e"', "--msgid", "ID7", "-t", "app", "-p", "local0.err", *([] if udp else ["--octet-count"]), "five é [tail]")
    client("logger", *to, "--rfc3164", "-t", "old", "-i", "-p", "mail.debug", "three: 'q' \"d\"")
    if not udp:
        client("logger", *to, "--rfc5424", "-t", "app", "with a line end")
        client("logger", *to, "--rfc3164", "--octet-count", "-t", "old", "counted")


def logger_sent(job, udp):
    rows = {r["message"]: r for r in job.rows("app_name IN ('app', 'old')") if r["message"] in ("five é [tail]", "three: 'q' \"d\"", "with a line end", "counted")}
    assert len(rows) == (2 if udp else 4), rows
    r = rows["five é [tail]"]
    assert (r["format"], r["priority"], r["facility_text"], r["severity"], r["app_name"], r["msgid"]) == ("rfc5424", 16 * 8 + 3, "local0", 3, "app", "ID7"), r
    assert r["structured_data"]["x@1"] == {"a": "b c", "d": "e"}, r
    assert now_ish(r["timestamp"]) and r["peer"].startswith("127.0.0.1:") and r["record"] == r["raw"] and r["raw"].endswith("five é [tail]"), r
    r = rows["three: 'q' \"d\""]
    assert (r["format"], r["priority"], r["app_name"]) == ("rfc3164", 2 * 8 + 7, "old") and int(r["procid"]) > 0 and r["structured_data"] is None and now_ish(r["timestamp"]), r


def follow(job, name, protocol, form, n=100):
    """What a daemon reads from a file and sends on."""
    label = f"{name}.{protocol}.{form}"
    path = f"{job.dir}/{label}.txt"
    lines = [f'{label} {i} é "q" \\ [x] <3>{"y" * (i * 13 % 700)}' for i in range(n)]
    with open(path, "w") as f:
        f.write("".join(x + "\n" for x in lines))
    p = subprocess.Popen(["bash", CLIENTS, name, "127.0.0.1", str(job.port), protocol, form, path, f"{job.dir}/ca.pem" if protocol == "tls" else "-"], stdout=job.log, stderr=job.log)
    try:
        job.wait_rows(n, f"message LIKE '{label} %'")
        rows = job.rows(f"message LIKE '{label} %'")
        assert sorted(r["message"] for r in rows) == sorted(lines), [r["message"] for r in rows][:3]
        for r in rows:
            assert r["format"] == f"rfc{form}" and r["app_name"] == "app" and r["hostname"] and now_ish(r["timestamp"]), r
            assert name != "rsyslog" or r["facility_text"] == "local0" and r["severity"] == 6, r
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait(20)


def transport(protocol):
    job = Job(protocol)
    try:
        if protocol != "tls":
            logger_sends(job, protocol == "udp")
            job.wait_rows(2 if protocol == "udp" else 4)
            logger_sent(job, protocol == "udp")
        for name in ("rsyslog", "syslog-ng"):
            for form in ("3164", "5424"):
                follow(job, name, protocol, form)
        job.stop()
        for r in job.rows("`format` = 'none'"):
            raise AssertionError(r)
    finally:
        job.done()


def udp():
    transport("udp")


def tcp():
    transport("tcp")


def tls():
    transport("tls")


def load():
    """loggen over TCP, octet-counted and in lines, into a small spool: it has to wait, and each of its messages is there once."""
    job = Job("tcp", ",'spool.max-size'='1 mb'", "1 s")
    try:
        n = 20000
        for framing in ([], ["--no-framing"]):
            client("loggen", "--inet", "--stream", "--syslog-proto", *framing, "--rate", 1000000, "--number", n, "--interval", 100, "--size", 300, "127.0.0.1", job.port)
        job.wait_rows(2 * n, seconds=180)
        job.stop()
        rows = job.sql("SELECT COUNT(*) AS k, COUNT(DISTINCT message) AS d, MIN(`format`) AS f, MAX(CHAR_LENGTH(message)) AS l FROM c.db.t")[0]
        assert rows["k"] == 2 * n and rows["f"] == "rfc5424" and rows["d"] >= n, rows
        assert not [r for r in job.sql("SELECT message FROM c.db.t WHERE message LIKE '\ufeff%' LIMIT 1")], "a byte order mark is left"
    finally:
        job.done()


def zone():
    """A time without a zone is one of the session's, or of the option's; a time with one is what it says."""
    for option, want in (("", "2025-01-02T03:04:05"), (",'syslog.time-zone'='+01:00'", "2025-01-02T11:04:05")):
        job = Job("tcp", option, zone="Asia/Tokyo")
        try:
            with socket.create_connection(("127.0.0.1", job.port)) as s:
                s.sendall(b"<13>Jan  2 12:04:05 2025 old[1]: m\n<13>1 2025-01-02T04:04:05+01:00 h new - - - m")
            job.wait_rows(2)
            job.stop()
            got = {r["app_name"]: r["t"] for r in job.sql("SET 'table.local-time-zone' = 'UTC'; SELECT app_name, CAST(`timestamp` AS STRING) AS t FROM c.db.t")}
            assert {k: v[:19].replace(" ", "T") for k, v in got.items()} == {"old": want, "new": "2025-01-02T03:04:05"}, got
        finally:
            job.done()


CASES = {f.__name__: f for f in (udp, tcp, tls, load, zone)}
for name in sys.argv[1:] or CASES:
    began = time.monotonic()
    CASES[name]()
    print(f"syslog: {name}: ok ({time.monotonic() - began:.1f} s)", flush=True)
