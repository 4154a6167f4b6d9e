#!/usr/bin/env python3
"""Metrics of the real binary, in the file, on /metrics and in PutMetricData.

bounded    a job that ends: its counts, and the balance of its delivery, in the file
complete   connectors of all kinds: what the table names is exported and nothing else, with help, type and labels as in the table; the series are the same from the first scrape to the last
balance    load through forward and http into an Iceberg table and an archive, with rejected and filtered rows, scraped all the time, over a commit that cannot land and kill -9
diverted   a table that is given up on after retry.duration: the balance holds, error objects count once
cloudwatch names, units, dimension and zeros of what goes to CloudWatch
endpoint   who may listen where, and what is answered

usage: metrics.py [PART...]"""
import collections, http.client, http.server, json, os, re, signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, time, urllib.parse

BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", "build/frazil"))
DIR = tempfile.mkdtemp(prefix="frazil-metrics.")
STATES = ("in", "delivered", "filtered", "rejected", "unparseable", "diverted", "by_other", "buffered")
PREFIX = "default_catalog.default_database."


def require(ok, what):
    if not ok:
        raise AssertionError(what)


def table():
    """name -> (kind, unit, labels) as the program prints its table."""
    text = subprocess.run([BIN, "options", "metrics"], check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| ([\w,]*) \| ", text, re.M)
    return {n: (kind, unit, labels.split(",") if labels else []) for n, kind, unit, labels in rows}


def parse(text):
    """Strictly as exposition format 0.0.4: {(name, labels): value}; every sample belongs to the HELP and TYPE that stand before it."""
    values, help_, kind, now = {}, {}, {}, None
    for line in text.splitlines():
        if m := re.fullmatch(r"# HELP (\w+) (.+)", line):
            require(m[1] not in help_, f"{m[1]} has HELP twice")
            help_[m[1]], now = m[2], m[1]
        elif m := re.fullmatch(r"# TYPE (\w+) (counter|gauge|summary)", line):
            require(m[1] == now and m[1] not in kind, line)
            kind[m[1]] = m[2]
        else:
            m = re.fullmatch(r'(\w+)(?:\{(\w+="(?:[^"\\\n]|\\["\\n])*"(?:,\w+="(?:[^"\\\n]|\\["\\n])*")*)\})? (\d+(?:\.\d+)?)', line)
            require(m, f"no sample: {line!r}")
            name = re.sub("_(sum|count)$", "", m[1]) if kind.get(now) == "summary" else m[1]
            require(name == now and now in kind, f"{line!r} stands among {now}")
            labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
            require((m[1], labels) not in values, f"{line!r} is there twice")
            values[m[1], labels] = float(m[3]) if "." in m[3] else int(m[3])
    return values, kind


def conforms(values, kind):
    """What is exported is in the table, with its kind and its labels."""
    t = table()
    for name, k in kind.items():
        require(name in t and t[name][0] == k, f"{name}, a {k}, is not in the table so")
    for (name, labels), _ in values.items():
        base = name if name in t else re.sub("_(sum|count)$", "", name)
        require([k for k, _ in labels] == t[base][2], f"{name}: labels {labels}, in the table {t[base][2]}")
    return t


def states(values, name="frazil_delivery_records"):
    got = collections.defaultdict(dict)
    for (n, labels), v in values.items():
        if n == name:
            got[dict(labels).get("delivery", "")][dict(labels)["state"]] = v
    return got


def balanced(values):
    per = states(values)
    for d, s in per.items():
        require(set(s) == set(STATES), f"{d}: {s}")
        require(s["in"] == sum(s.values()) - s["in"], f"{d} is out of balance: {s}")
    (job,) = states(values, "frazil_job_records").values()
    for st in STATES:
        require(job[st] == sum(s[st] for s in per.values()), f"the job's {st} is not the sum of its deliveries': {job} {dict(per)}")
    return per


class Job:
    running = []

    def __init__(self, name, sql, settings=None):
        self.path, self.log = f"{DIR}/{name}.sql", f"{DIR}/{name}.log"
        options = {"pipeline.name": name, "frazil.state.dir": f"{DIR}/{name}-state", "execution.checkpointing.interval": "300 ms", "metrics.port": "0", **(settings or {})}
        with open(self.path, "w") as f:
            f.write("".join(f"SET '{k}' = '{v}';\n" for k, v in options.items()) + sql)

    def start(self, env=None):
        self.out = open(self.log, "ab")
        self.begin = self.out.tell()
        self.p = subprocess.Popen([BIN, "run", self.path], stdout=self.out, stderr=self.out, env={**os.environ, **(env or {})})
        Job.running.append(self.p)
        self.port = self.listens(r"event=metrics\.listening address=127\.0\.0\.1:(\d+)")
        until(self, lambda: self.get("/metrics")[0] == 200, "the metrics are there")
        return self

    def text(self):
        with open(self.log, "rb") as f:
            f.seek(self.begin)
            return f.read().decode(errors="replace")

    def listens(self, pattern):
        return int(until(self, lambda: (m := re.search(pattern, self.text())) and m[1], pattern))

    def source(self, t):
        return self.listens(rf"event=source\.listening table={re.escape(PREFIX + t)} connector=\w+ address=127\.0\.0\.1:(\d+)")

    def get(self, path, method="GET", body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            c.request(method, path, body)
            r = c.getresponse()
            return r.status, r.read().decode(), dict(r.getheaders())
        finally:
            c.close()

    def scrape(self):
        status, text, _ = self.get("/metrics")
        require(status == 200, f"/metrics answers {status}")
        return parse(text)

    def stop(self, sig=signal.SIGTERM):
        self.p.send_signal(sig)
        code = self.p.wait(120)
        self.out.close()
        return code


def until(job, condition, what, seconds=90):
    end = time.monotonic() + seconds
    while True:
        try:
            if v := condition():
                return v
        except OSError:  # the job has ended, or the machine is slow
            pass
        require(job.p.poll() is None, f"the job has ended while waiting until {what}:\n{job.text()[-1500:]}")
        require(time.monotonic() < end, f"it is not so that {what}:\n{job.text()[-1500:]}")
        time.sleep(0.05)


# ---- senders ----
def pack(x):  # msgpack, as much as events need
    if isinstance(x, int):
        return struct.pack(">Bq", 0xD3, x)
    if isinstance(x, str):
        return struct.pack(">BH", 0xDA, len(x.encode())) + x.encode()
    if isinstance(x, list):
        return struct.pack(">BH", 0xDC, len(x)) + b"".join(map(pack, x))
    return struct.pack(">BH", 0xDE, len(x)) + b"".join(pack(k) + pack(v) for k, v in x.items())


def unpack_ack(data):
    m = re.search(rb"\xa3ack[\xa0-\xbf](.{8})", data)
    return m and m[1].decode()


class Forward:
    def __init__(self, port):
        self.s, self.n = socket.create_connection(("127.0.0.1", port), 60), 0

    def send(self, events):
        self.n += 1
        chunk = f"{self.n:08d}"
        self.s.sendall(pack(["app", [[int(time.time()), e] for e in events], {"chunk": chunk}]))
        got = b""
        while unpack_ack(got) != chunk:
            more = self.s.recv(4096)
            if not more:
                raise ConnectionError("closed")
            got += more


def post(port, events, path="/"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.request("POST", path, "\n".join(map(json.dumps, events)), {"Content-Type": "application/x-ndjson"})
        r = c.getresponse()
        r.read()
        return r.status
    finally:
        c.close()


def catalog(name):
    return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{DIR}/{name}.db','warehouse'='file://{DIR}/{name}-wh');\n"


# ---- parts ----
def bounded():
    job = Job("bounded", f"""
CREATE TEMPORARY TABLE s (a INT, b STRING) WITH ('connector'='filesystem','path'='{DIR}/in','format'='json','json.ignore-parse-errors'='true');
{catalog("bounded")}CREATE DATABASE c.d;
CREATE TABLE c.d.t (a INT, n INT);
INSERT INTO c.d.t SELECT a, CAST(b AS INT) FROM s WHERE a > 0;
""", {"frazil.metrics.path": f"{DIR}/metrics.prom"})
    os.mkdir(f"{DIR}/in")
    with open(f"{DIR}/in/x.json", "w") as f:
        f.write('{"a":1,"b":"7"}\n{"a":2,"b":"x"}\n{"a":-1,"b":"1"}\n{broken\n{"a":3,"b":"9"}\n')
    subprocess.run([BIN, "run", job.path], check=True, capture_output=True)
    with open(f"{DIR}/metrics.prom") as f:
        values, kind = parse(f.read())
    conforms(values, kind)
    want = {"frazil_source_records_total": 5, "frazil_sink_rows_added_total": 2, "frazil_exec_rows_filtered_total": 1, "frazil_rows_rejected_total": 1,
            "frazil_decode_unparseable_total": 1, "frazil_dead_letters_total": 1, "frazil_commits_total": 1, "frazil_commit_unknown_total": 0}
    got = {k: values[k, ()] for k in want}
    require(got == want, got)
    per = balanced(values)
    require(per["c.d.t"] == dict(zip(STATES, (5, 2, 1, 1, 1, 0, 0, 0))), per)
    firehose = {k: values[f"firehose_delivery_to_iceberg_{k}", (("delivery", "c.d.t"),)] for k in ("incoming_row_count", "successful_row_count", "failed_row_count", "success", "write_attempt_success", "table_count", "data_freshness")}
    require(firehose == {"incoming_row_count": 3, "successful_row_count": 2, "failed_row_count": 1, "success": 1, "write_attempt_success": 1, "table_count": 1, "data_freshness": 0}, firehose)


EVERYTHING = """
CREATE TEMPORARY TABLE fwd (a INT) WITH ('connector'='forward','listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE otl (body STRING) WITH ('connector'='otlp','listen'='127.0.0.1:0','grpc.listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE sys (message STRING) WITH ('connector'='syslog','listen'='127.0.0.1:0','protocol'='tcp');
CREATE TEMPORARY TABLE fho (a INT) WITH ('connector'='firehose','listen'='127.0.0.1:0','stream-name'='x','auth'='none');
CREATE TEMPORARY TABLE web (a INT) WITH ('connector'='http','listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE tail (a INT) WITH ('connector'='filesystem','format'='json','path'='{dir}/tailed','source.monitor-interval'='50 ms');
CREATE TEMPORARY TABLE demo (severityText STRING) WITH ('connector'='otel-demo','rows-per-second'='20');
CREATE TEMPORARY TABLE arch (a INT) WITH ('connector'='firehose-s3','path'='file://{dir}/everything/','buffer.interval'='500 ms');
CREATE TEMPORARY TABLE cwl (a INT) WITH ('connector'='cloudwatch-logs','log-group'='g','log-stream'='s','endpoint'='{aws}','region'='us-east-1','buffer.interval'='500 ms');
CREATE TEMPORARY TABLE hole (a STRING) WITH ('connector'='blackhole');
{catalog}CREATE DATABASE c.d;
CREATE TABLE c.d.`odd "name"\\n` (a INT);
EXECUTE STATEMENT SET BEGIN
INSERT INTO c.d.`odd "name"\\n` SELECT a FROM web;
INSERT INTO c.d.`odd "name"\\n` SELECT a FROM tail;
INSERT INTO arch SELECT a FROM fwd;
INSERT INTO cwl SELECT a FROM fho;
INSERT INTO hole SELECT body FROM otl;
INSERT INTO hole SELECT message FROM sys;
INSERT INTO hole SELECT severityText FROM demo;
END;
"""
AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}


def complete():
    aws = Aws()
    job = Job("complete", EVERYTHING.format(dir=DIR, aws=aws.url, catalog=catalog("complete"))).start(AWS)
    first, kind = job.scrape()
    t = conforms(first, kind)
    require(set(kind) == set(t), f"not exported: {sorted(set(t) - set(kind))}; not in the table: {sorted(set(kind) - set(t))}")
    clocks = {"frazil_start_timestamp_ms", "frazil_memory_resident_bytes", "frazil_delivery_up", "frazil_spool_limit_bytes", "frazil_spool_disk_bytes", "frazil_source_splits",
              "firehose_delivery_to_iceberg_table_count"}
    busy = {(n, l) for (n, l), v in first.items() if v and n not in clocks and not any("demo" in x or "hole" in x for _, x in l) and n.startswith(("frazil_forward", "frazil_otlp", "frazil_syslog", "frazil_http", "frazil_firehose"))}
    require(not busy, f"not 0 at the start: {busy}")
    # Traffic and errors of all kinds.
    fwd = Forward(job.source("fwd"))
    fwd.send([{"a": 1}] * 3)
    bad = socket.create_connection(("127.0.0.1", job.source("fwd")))
    bad.sendall(b"\xff" * 100)
    web = job.source("web")
    require(post(web, [{"a": i} for i in range(5)]) == 200, "http takes documents")
    for i in range(20):
        post(web, [{"a": i}], f"/no/{i}")
    with socket.create_connection(("127.0.0.1", job.source("sys"))) as s:
        s.sendall(b"<13>1 - h%d app - - - hello\n" % os.getpid())
    c = http.client.HTTPConnection("127.0.0.1", job.source("otl"), timeout=30)
    c.request("POST", "/v1/logs", json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}] * 4}]}]}), {"Content-Type": "application/json"})
    require(c.getresponse().status == 200, "otlp takes records")
    c.close()
    c = http.client.HTTPConnection("127.0.0.1", job.source("fho"), timeout=30)
    c.request("POST", "/", json.dumps({"DeliveryStreamName": "x", "Record": {"Data": "eyJhIjoxfQ=="}}), {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Firehose_20150804.PutRecord"})
    require(c.getresponse().status == 200, "firehose takes a record")
    c.close()
    os.makedirs(f"{DIR}/tailed", exist_ok=True)
    with open(f"{DIR}/tailed/a.json", "w") as f:
        f.write('{"a":1}\n{"a":2}\n{"a":')
    one = lambda v, name, source: v[name, (("source", PREFIX + source),)]
    want = {("frazil_forward_events_total", "fwd"): 3, ("frazil_forward_messages_total", "fwd"): 1, ("frazil_forward_acknowledgements_total", "fwd"): 1, ("frazil_http_requests_total", "web"): 21,
            ("frazil_http_records_total", "web"): 5, ("frazil_http_refused_bad_total", "web"): 20, ("frazil_syslog_messages_total", "sys"): 1, ("frazil_otlp_records_total", "otl"): 4,
            ("frazil_firehose_calls_total", "fho"): 1, ("frazil_firehose_records_total", "fho"): 1, ("frazil_source_lag_positions", "tail"): 5, ("frazil_source_splits", "tail"): 1,
            ("frazil_spool_records_total", "web"): 5, ("frazil_spool_waiting_records", "web"): 0, ("frazil_spool_unsynced_records", "web"): 0, ("frazil_spool_full", "web"): 0,
            ("frazil_listener_connections", "fwd"): 1, ("firehose_incoming_records", "web"): 5, ("firehose_incoming_records", "tail"): 2}
    got = {}

    def there():
        v, _ = job.scrape()
        got.clear()
        got.update({k: one(v, *k) for k in want})
        per = balanced(v)
        return got == want and per[PREFIX + "arch"]["delivered"] == 3 and per[PREFIX + "cwl"]["delivered"] == 1 and per['c.d.odd \\"name\\"\\\\n']["delivered"] == 7
    try:
        until(job, there, "counts are right", 60)
    except AssertionError as e:
        raise AssertionError(f"{ {k: (v, want[k]) for k, v in got.items() if v != want[k]} } (is, should be)\n{e}")
    last, kind = job.scrape()
    require(set(last) == set(first), f"series have come or gone: {set(last) ^ set(first)}")
    require(last["frazil_otlp_requests_total", (("source", PREFIX + "otl"), ("transport", "http"))] == 1 and last["frazil_otlp_requests_total", (("source", PREFIX + "otl"), ("transport", "grpc"))] == 0, "requests by transport")
    require(last["frazil_source_lag", ()] >= 5, "the lag of all sources")
    counters = {n for n, k in kind.items() if k == "counter"}
    fell = [k for k in last if k[0] in counters and last[k] < first[k]]
    require(not fell, f"counters that fell: {fell}")
    require(job.stop() == 0, job.text()[-1500:])
    aws.close()


class Load(threading.Thread):
    """Sends until told to stop or the server is gone: of ten events one is filtered, one rejected by the table."""

    def __init__(self, send):
        super().__init__()
        self.send, self.over, self.sent = send, threading.Event(), 0
        self.start()

    def run(self):
        n = 0
        while not self.over.is_set():
            events = [{"a": n * 10 + i, "b": "x" if i == 3 else str(i)} for i in range(10)] * 20
            n += 1
            try:
                self.send(events)
                self.sent += len(events)
            except (OSError, http.client.HTTPException):
                return
            time.sleep(0.01)


BALANCE = """
CREATE TEMPORARY TABLE f (a INT, b STRING) WITH ('connector'='forward','listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE h (a INT, b STRING) WITH ('connector'='http','listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE arch (a INT, b STRING) WITH ('connector'='firehose-s3','path'='file://{dir}/balance/','buffer.interval'='300 ms');
{catalog}CREATE DATABASE IF NOT EXISTS c.d;
CREATE TABLE IF NOT EXISTS c.d.t (a INT, n INT) WITH ('commit.retry.min-wait-ms'='50','commit.retry.max-wait-ms'='200');
EXECUTE STATEMENT SET BEGIN
INSERT INTO arch SELECT a, b FROM f;
INSERT INTO arch SELECT a, b FROM h;
INSERT INTO c.d.t SELECT a, CAST(b AS INT) FROM f WHERE b <> '7';
INSERT INTO c.d.t SELECT a, CAST(b AS INT) FROM h WHERE b <> '7';
END;
"""


def rows(name):
    p = subprocess.run([BIN, "sql", "--format", "json", "-e", catalog(name) + "SELECT COUNT(*) AS n FROM c.d.t;"], capture_output=True, text=True)
    require(p.returncode == 0, p.stdout + p.stderr)
    return json.loads(p.stdout.splitlines()[-1])["n"]


class Watch:
    """Scrapes without a pause; each scrape is in balance, and nothing but what may fall falls."""

    def __init__(self, job):
        self.job, self.last, self.n, self.most, self.series = job, None, 0, 0, None

    def look(self):
        v, _ = self.job.scrape()
        per = balanced(v)
        require(self.series in (None, set(v)), "series have come or gone")
        self.series = set(v)
        for d, s in per.items():
            for st in STATES[:-1]:
                require(self.last is None or s[st] >= self.last[d][st], f"{d}: {st} fell from {self.last and self.last[d][st]} to {s[st]}")
            self.most = max(self.most, s["buffered"])
        self.last, self.n = per, self.n + 1
        return v, per

    def settled(self, sent):
        def done():
            _, per = self.look()
            return per["c.d.t"]["in"] >= sent and all(s["buffered"] == 0 for s in per.values())
        until(self.job, done, f"all {sent} are delivered")
        return self.last


AGE = ("frazil_delivery_oldest_age_seconds", (("delivery", "c.d.t"),))


def balance():
    job = Job("balance", BALANCE.format(dir=DIR, catalog=catalog("balance"))).start()
    w = Watch(job)
    fwd, web = Forward(job.source("f")), job.source("h")
    loads = [Load(fwd.send), Load(lambda e: post(web, e))]
    until(job, lambda: w.look()[1]["c.d.t"]["delivered"] > 2000, "rows are delivered")
    # A commit that cannot land: somebody holds the catalog's lock. What waits grows old, and nothing is called delivered.
    db = sqlite3.connect(f"{DIR}/balance.db", isolation_level=None, timeout=30)
    db.execute("BEGIN EXCLUSIVE")
    age = lambda: w.look()[0][AGE]
    until(job, lambda: age() >= 3 and w.last["c.d.t"]["buffered"] > 0, "the age rises while the table is stuck")
    held = w.last["c.d.t"]["delivered"]  # what had landed before is told by now
    until(job, lambda: age() >= 6, "the age rises on")
    require(w.last["c.d.t"]["delivered"] == held, f"rows are called delivered that cannot be: {held} before, {w.last}")
    db.execute("ROLLBACK")
    db.close()
    until(job, lambda: w.look()[1]["c.d.t"]["delivered"] > held, "the table goes on")
    for x in loads:
        x.over.set()
    for x in loads:
        x.join()
    sent = sum(x.sent for x in loads)
    per = w.settled(sent)
    table_, archive = per["c.d.t"], per[PREFIX + "arch"]
    require(table_["in"] == archive["in"] == archive["delivered"] == sent, f"{sent} were sent: {dict(per)}")
    require(table_["filtered"] == table_["rejected"] == sent // 10 and table_["delivered"] == sent * 8 // 10, f"{sent} were sent: {table_}")
    require(rows("balance") == table_["delivered"], f"the table has {rows('balance')} rows: {table_}")
    require(until(job, lambda: w.look()[0][AGE] == 0, "nothing is old") and w.most > 0 and w.n > 20, f"{w.n} scrapes, at most {w.most} buffered")
    # kill -9 under load: counters begin anew, what was buffered is read again.
    loads = [Load(fwd.send), Load(lambda e: post(web, e))]
    until(job, lambda: w.look()[1]["c.d.t"]["delivered"] > table_["delivered"] + 1000, "more rows are delivered")
    job.stop(signal.SIGKILL)
    for x in loads:
        x.over.set()
        x.join()
    before, last = rows("balance"), w.last
    require(before >= last["c.d.t"]["delivered"], f"{last['c.d.t']['delivered']} rows were called delivered, the table has {before}")
    job.start()
    v, _ = job.scrape()
    require(v["frazil_start_timestamp_ms", ()] >= (time.time() - 120) * 1000, "when counting began")
    w2 = Watch(job)
    w2.look()
    fwd, web = Forward(job.source("f")), job.source("h")
    load = Load(fwd.send)
    until(job, lambda: w2.look()[1]["c.d.t"]["delivered"] > 1000, "rows are delivered again")
    load.over.set()
    load.join()
    per = w2.settled(load.sent)
    require(rows("balance") == before + per["c.d.t"]["delivered"], f"{before} rows before the start, {rows('balance')} now: {per['c.d.t']}")
    require(job.stop() == 0, job.text()[-1500:])


def diverted():
    """A table that takes nothing within retry.duration: what it is not given in time counts as diverted, in balance all the while, and no row counts twice."""
    sql = BALANCE.format(dir=DIR, catalog=catalog("diverted")).replace("INSERT INTO c.d.t SELECT", f"INSERT INTO c.d.t /*+ OPTIONS('error.path'='file://{DIR}/errors/','retry.duration'='1 s') */ SELECT")
    job = Job("diverted", sql).start()
    w = Watch(job)
    web, fwd = job.source("h"), Forward(job.source("f"))
    loads = [Load(fwd.send), Load(lambda e: post(web, e))]
    until(job, lambda: w.look()[1]["c.d.t"]["delivered"] > 500, "rows are delivered")
    db = sqlite3.connect(f"{DIR}/diverted.db", isolation_level=None, timeout=30)
    db.execute("BEGIN EXCLUSIVE")
    until(job, lambda: w.look()[1]["c.d.t"]["diverted"] > 500, "rows are diverted")
    archive = w.last[PREFIX + "arch"]["delivered"]
    until(job, lambda: w.look()[1][PREFIX + "arch"]["delivered"] > archive, "the archive goes on")
    for x in loads:
        x.over.set()
    for x in loads:
        x.join()
    db.execute("ROLLBACK")
    db.close()
    sent = sum(x.sent for x in loads)
    per = w.settled(sent)["c.d.t"]
    require(per["in"] == sent and per["filtered"] + per["rejected"] + per["delivered"] + per["diverted"] == sent and per["filtered"] == sent // 10, f"{sent} were sent: {per}")
    require(rows("diverted") == per["delivered"], f"the table has {rows('diverted')} rows: {per}")
    v = until(job, lambda: (v := w.look()[0])[AGE] == 0 and v, "nothing is old")
    one = lambda n: v[f"firehose_delivery_to_iceberg_{n}", (("delivery", "c.d.t"),)]
    require(one("failed_row_count") == per["rejected"] + per["diverted"] and one("successful_row_count") == per["delivered"] and one("data_freshness") == 0, per)
    require(one("incoming_row_count") == one("failed_row_count") + one("successful_row_count"), f"{one('incoming_row_count')} rows came in: {per}")
    require(job.stop() == 0, job.text()[-1500:])


def lag():
    """How far each delivery is behind: a table that cannot commit falls behind by what comes in, the archive beside it does not; with one request that hangs for ever the figure rises all the same."""
    sql = BALANCE.format(dir=DIR, catalog=catalog("lag"))
    behind = lambda v, d: v["frazil_delivery_lag_positions", (("delivery", d),)]
    arch, events = PREFIX + "arch", [{"a": i, "b": str(i)} for i in range(25)]
    job = Job("lag", sql).start()
    web = job.source("h")
    post(web, events)
    until(job, lambda: (v := job.scrape()[0])["frazil_delivery_records", (("delivery", "c.d.t"), ("state", "delivered"))] == 24 and behind(v, "c.d.t") == 0 == behind(v, arch), "all is delivered")
    db = sqlite3.connect(f"{DIR}/lag.db", isolation_level=None, timeout=30)
    db.execute("BEGIN EXCLUSIVE")
    for n in (25, 50):
        post(web, events)
        until(job, lambda: (v := job.scrape()[0]) and behind(v, "c.d.t") == n and behind(v, arch) == 0, f"the table is {n} behind, the archive is not")
    db.execute("ROLLBACK")
    db.close()
    until(job, lambda: behind(job.scrape()[0], "c.d.t") == 0, "the table has caught up")
    require(job.stop() == 0, job.text()[-1500:])
    job = Job("lag", sql).start({"FRAZIL_FAULT": "commit.load:1:sleep=600000"})
    web = job.source("h")
    for n in (25, 50, 75):
        post(web, events)
        until(job, lambda: (v := job.scrape()[0]) and behind(v, "c.d.t") == n and v["frazil_source_lag_positions", (("source", PREFIX + "h"),)] == 0, f"the table is {n} behind, reading is not")
    until(job, lambda: job.scrape()[0][AGE] >= 2, "the oldest record grows old")
    job.stop(signal.SIGKILL)


class Aws:
    """An imitation of CloudWatch: keeps what PutMetricData brings; PutLogEvents is answered."""

    def __init__(self):
        self.periods, self.fail = [], False
        aws = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(urllib.parse.parse_qsl(body, keep_blank_values=True)) if "json" not in self.headers.get("Content-Type", "") else {}
                answer, status = b"{}", 200
                if form.get("Action") == "PutMetricData":
                    status = 500 if aws.fail else 200
                    answer = b'<PutMetricDataResponse xmlns="http://monitoring.amazonaws.com/doc/2010-08-01/"><ResponseMetadata><RequestId>x</RequestId></ResponseMetadata></PutMetricDataResponse>'
                    if not aws.fail:
                        aws.periods.append(form)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *a):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def points(form):
        data = collections.defaultdict(dict)
        for k, v in form.items():
            if m := re.fullmatch(r"MetricData\.member\.(\d+)\.(.+)", k):
                data[int(m[1])][m[2]] = v
        out = {}
        for d in data.values():
            require(d["Dimensions.member.1.Name"] == "DeliveryStreamName", d)
            key = d["MetricName"], d["Dimensions.member.1.Value"]
            require(key not in out, f"{key} twice in a period")
            out[key] = d
        return out


ICEBERG = {"ActivePartitionsCount": "Count", "Bytes": "Bytes", "DataFreshness": "Seconds", "FailedRowCount": "Count", "IncomingRowCount": "Count", "Success": "Count", "SuccessfulRowCount": "Count",
           "TableCount": "Count", "WriteAttemptSuccess": "Count"}
S3 = {"Bytes": "Bytes", "DataFreshness": "Seconds", "ObjectCount": "Count", "Records": "Count", "Success": "Count"}
LOGS = {"Bytes": "Bytes", "DataFreshness": "Seconds", "Records": "Count", "Success": "Count"}


def cloudwatch():
    aws = Aws()
    job = Job("cloudwatch", f"""
CREATE TEMPORARY TABLE web (a INT) WITH ('connector'='http','listen'='127.0.0.1:0');
CREATE TEMPORARY TABLE arch (a INT) WITH ('connector'='firehose-s3','path'='file://{DIR}/cloudwatch/','buffer.interval'='200 ms');
CREATE TEMPORARY TABLE cwl (a INT) WITH ('connector'='cloudwatch-logs','log-group'='g','log-stream'='s','endpoint'='{aws.url}','region'='us-east-1','buffer.interval'='200 ms');
CREATE TEMPORARY TABLE hole (a INT) WITH ('connector'='blackhole');
{catalog("cloudwatch")}CREATE DATABASE c.d;
CREATE TABLE c.d.t (a INT);
EXECUTE STATEMENT SET BEGIN
INSERT INTO c.d.t SELECT a FROM web WHERE a > 0;
INSERT INTO arch SELECT a FROM web;
INSERT INTO cwl SELECT a FROM web;
INSERT INTO hole SELECT a FROM web;
END;
""", {"metrics.cloudwatch.enabled": "true", "metrics.cloudwatch.interval": "1 s", "metrics.cloudwatch.endpoint": aws.url}).start(AWS)
    web, want = job.source("web"), {}
    for kind, names, delivery in (("Iceberg", ICEBERG, "c.d.t"), ("S3", S3, PREFIX + "arch"), ("CloudWatchLogs", LOGS, PREFIX + "cwl")):
        want |= {(f"DeliveryTo{kind}.{n}", delivery): u for n, u in names.items()}
        want |= {("IncomingRecords", delivery): "Count", ("IncomingBytes", delivery): "Bytes", ("JQProcessing.Duration", delivery): "Milliseconds"}
    until(job, lambda: aws.periods, "a first period is sent")
    zeros = Aws.points(aws.periods[0])
    require({k: d["Unit"] for k, d in zeros.items()} == want, f"{set(zeros) ^ set(want)} {[d for d in zeros.values()][:3]}")
    for (name, _), d in zeros.items():
        require(float(d["Value"]) == (1 if name.endswith("TableCount") else 0), f"before any record {d}")
    require(aws.periods[0]["Namespace"] == "Firehose" and aws.periods[0]["Version"] == "2010-08-01", aws.periods[0])

    def total(name, delivery):
        return sum(float(p.get("StatisticValues.Sum", p.get("Value"))) for f in list(aws.periods) for k, p in Aws.points(f).items() if k == (name, delivery))
    require(post(web, [{"a": i} for i in range(-2, 8)]) == 200, "documents are taken")
    until(job, lambda: total("DeliveryToIceberg.SuccessfulRowCount", "c.d.t") == 7 and total("DeliveryToS3.Records", PREFIX + "arch") == 10 and total("DeliveryToCloudWatchLogs.Records", PREFIX + "cwl") == 10,
          "what was delivered is told")
    aws.fail = True  # a period that cannot be sent is added to the next one
    require(post(web, [{"a": 100}]) == 200, "a document is taken")
    until(job, lambda: job.scrape()[0]["frazil_cloudwatch_requests_failed_total", ()] > 0 and balanced(job.scrape()[0])["c.d.t"]["delivered"] == 8, "a period fails")
    aws.fail = False
    until(job, lambda: total("DeliveryToIceberg.SuccessfulRowCount", "c.d.t") == 8, "the next period has it")
    n = len(aws.periods)
    until(job, lambda: len(aws.periods) > n + 1, "quiet periods are sent")
    quiet = Aws.points(aws.periods[-1])
    require(set(quiet) == set(want) and all(float(d["Value"]) == 0 for (name, _), d in quiet.items() if not name.endswith(("TableCount", "PartitionsCount"))), quiet)
    require(job.stop() == 0, job.text()[-1500:])
    sums = {(n, d): total(n, d) for n, d in want}
    require(sums["IncomingRecords", "c.d.t"] == 11 and sums["DeliveryToIceberg.IncomingRowCount", "c.d.t"] == 8 and sums["DeliveryToS3.Records", PREFIX + "arch"] == 11, sums)
    rate = [p for f in aws.periods for k, p in Aws.points(f).items() if k == ("DeliveryToIceberg.WriteAttemptSuccess", "c.d.t") and "StatisticValues.Sum" in p]
    require(rate and all(float(p["StatisticValues.Sum"]) == float(p["StatisticValues.SampleCount"]) and float(p["StatisticValues.Minimum"]) == 1 for p in rate), rate)
    require(any(float(p["Value"]) > 0 for f in aws.periods for k, p in Aws.points(f).items() if k == ("JQProcessing.Duration", "c.d.t")), "no time for WHERE and SELECT")
    aws.close()


def endpoint():
    sql = "CREATE TEMPORARY TABLE h (a INT) WITH ('connector'='http','listen'='127.0.0.1:0');\nCREATE TEMPORARY TABLE o (a INT) WITH ('connector'='blackhole');\nINSERT INTO o SELECT a FROM h;\n"
    for host in ("0.0.0.0", "::"):
        p = subprocess.run([BIN, "run", Job("open", sql, {"metrics.bind-host": host}).path], capture_output=True, text=True, timeout=60)
        require(p.returncode == 1 and "listen.open" in p.stdout + p.stderr, f"served on {host}: {p.returncode} {p.stdout}{p.stderr}")
    job = Job("wide", sql, {"metrics.bind-host": "0.0.0.0", "metrics.allow-unauthenticated": "true"})
    with open(job.log, "ab") as out:
        job.begin, job.p = 0, subprocess.Popen([BIN, "run", job.path], stdout=out, stderr=out)
    job.port = job.listens(r"event=metrics\.listening address=0\.0\.0\.0:(\d+)")
    until(job, lambda: job.get("/metrics")[0] == 200, "everybody may read it")
    job.p.terminate()
    job.p.wait(60)
    job = Job("endpoint", sql).start()
    status, text, headers = job.get("/metrics?x=1")
    require(status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), (status, headers))
    status, text, headers = job.get("/metrics", "HEAD")
    require(status == 200 and not text and int(headers["Content-Length"]) > 1000, (status, headers))
    require(job.get("/metrics", "POST", "x")[0] == 405 and job.get("/", "GET")[0] == 404 and job.get("/metrics/", "GET")[0] == 404, "other methods and paths")
    with socket.create_connection(("127.0.0.1", job.port), 30) as s:
        s.sendall(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
        require(s.recv(200).split()[1] in (b"413", b"405"), "a body of 10 MB")
    idle = []
    try:
        for _ in range(64):
            idle.append(socket.create_connection(("127.0.0.1", job.port), 30))
        for _ in range(100):  # the last of them may still be on its way in
            with socket.create_connection(("127.0.0.1", job.port), 30) as s:
                s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                got = s.recv(200)
            if got.startswith(b"HTTP/1.1 503") or not got:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"more than 64 connections: {got!r}")
    finally:
        for s in idle:
            s.close()
    until(job, lambda: job.get("/metrics")[0] == 200, "it serves again")
    require(job.stop() == 0, job.text()[-1500:])


PARTS = (bounded, complete, balance, diverted, lag, cloudwatch, endpoint)
try:
    for part in [p for p in PARTS if not sys.argv[1:] or p.__name__ in sys.argv[1:]]:
        began = time.monotonic()
        part()
        print(f"metrics: {part.__name__} ok ({time.monotonic() - began:.1f} s)", flush=True)
finally:
    for p in Job.running:
        if p.poll() is None:
            p.kill()
            p.wait()
    if not os.environ.get("KEEP"):
        subprocess.run(["rm", "-rf", DIR])
