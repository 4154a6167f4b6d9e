#!/usr/bin/env python3
"""A table whose store refuses for a while, or for good: what it could not take in time is in error objects, the job and its other delivery go on, the spool stays small, and `frazil replay` brings each row once.

The table lies on an imitation of S3 (moto) behind a proxy that answers 403 Access Denied while it is told to; records come over HTTP.

usage: divert.py [CASE...]; FRAZIL_MOTO_PORT; FRAZIL_ROUNDS (default 3): rounds of each kill."""
import base64, collections, glob, gzip, http.client, json, os, re, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, ROOT, Failure, Job, main, require
from proxy import Proxy

ROUNDS = int(os.environ.get("FRAZIL_ROUNDS", "3"))
PORT = int(os.environ.get("FRAZIL_MOTO_PORT", "29522"))
MOTO = f"{os.environ.get('FRAZIL_TEST_DIR', '/tmp')}/moto-divert-{PORT}"
DENIED = {"do": "answer", "status": 403, "type": "application/xml", "method": "PUT|POST", "times": 0, "answer": '<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'}
WINDOW = 3
STARTED = []  # what a case that fails leaves behind


def moto(what, *args):
    p = subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", what, MOTO, *map(str, args)], capture_output=True, text=True)
    require(p.returncode == 0, f"moto.sh {what}: {p.stdout}{p.stderr}")


def s3(endpoint):
    return f"'s3.endpoint'='http://127.0.0.1:{endpoint}','s3.path-style-access'='true','s3.access-key-id'='test','s3.secret-access-key'='test','client.region'='us-east-1'"


class Lake:
    """A table behind a door, an archive beside it, and the job that fills both."""

    def __init__(self, name, window=WINDOW, errors=None, table_options=None, archive=None, columns="id BIGINT, host STRING, num INT", select="SELECT id, host, num FROM src WHERE num >= 0", spool="64 mb"):
        self.dir = tempfile.mkdtemp(prefix=f"frazil-divert-{name}-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.bucket, self.logfile = f"{name}-{os.getpid()}", f"{self.dir}/frazil.log"
        moto("bucket", self.bucket)
        self.proxy = Proxy(f"0=127.0.0.1:{PORT}", log=f"{self.dir}/proxy.log")
        self.port = self.proxy.ports[0]
        STARTED.append(self.proxy.p)
        self.errors = errors or f"file://{self.dir}/errors/"
        self.table_options = table_options or f"/*+ OPTIONS('error.path'='{self.errors}','retry.duration'='{window} s') */"
        self.archive = archive or f"'path'='file://{self.dir}/arch/'"
        self.columns, self.select, self.spool, self.runs, self.sent = columns, select, spool, 0, []

    def catalog(self, port=None):
        return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{self.dir}/catalog.db','warehouse'='s3://{self.bucket}/wh',{s3(port or self.port)});\n"

    def script(self, interval="300 ms", settings=None, table_options=None):
        sets = {"pipeline.name": "divert", "execution.checkpointing.interval": interval, "frazil.state.dir": f"{self.dir}/state", "parallelism.default": "2", **(settings or {})}
        text = "".join(f"SET '{k}' = '{v}';\n" for k, v in sets.items()) + self.catalog()
        text += f"CREATE DATABASE IF NOT EXISTS c.db;\nCREATE TABLE IF NOT EXISTS c.db.t ({self.columns}) WITH ('commit.retry.min-wait-ms'='50');\n"
        text += f"CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num INT) WITH ('connector'='http','listen'='127.0.0.1:0','spool.max-size'='{self.spool}');\n"
        text += f"CREATE TEMPORARY TABLE arch (id BIGINT, host STRING) WITH ('connector'='firehose-s3',{self.archive},'buffer.interval'='200 ms','compression'='GZIP');\n"
        text += f"STATEMENT SET BEGIN\nINSERT INTO c.db.t {self.table_options if table_options is None else table_options} {self.select};\nINSERT INTO arch SELECT id, host FROM src;\nEND;\n"
        self.runs += 1
        path = f"{self.dir}/job{self.runs}.sql"
        open(path, "w").write(text)
        return path

    def start(self, fault=None, **kw):
        j = Job(self, self.script(**kw), fault)
        STARTED.append(j.p)
        j.wait_log("source.listening", 60)
        self.listen = int(re.search(r"event=source.listening.*?address=127\.0\.0\.1:(\d+)", j.text()).group(1))
        return j

    def deny(self, *rules):
        self.proxy.rules(*(rules or (DENIED,)))

    def grant(self):
        self.proxy.rules()

    def send(self, n, bad=(), pad=0):
        first = len(self.sent)
        rows = [{"id": first + i, "host": f"h{i % 3}" + "x" * pad, "num": i} for i in range(n)]
        self.sent += [r["id"] for r in rows]
        c = http.client.HTTPConnection("127.0.0.1", self.listen, timeout=30)
        lines = [json.dumps(r) for r in rows] + list(bad)
        for i in range(0, len(lines), 20 if n < 1000 else 200):
            while True:
                c.request("POST", "/", "\n".join(lines[i:i + (20 if n < 1000 else 200)]), {"Content-Type": "application/x-ndjson"})
                r = c.getresponse()
                r.read()
                if r.status == 200:
                    break
                require(r.status == 503, f"status {r.status}")
                time.sleep(0.05)
        c.close()

    def archived(self):
        out = collections.Counter()
        for f in glob.glob(f"{self.dir}/arch/**/*.gz", recursive=True):
            for l in gzip.open(f, "rt"):
                out[json.loads(l)["id"]] += 1
        return out

    def error_lines(self, kind="iceberg-failed"):
        out = []
        for f in glob.glob(f"{self.dir}/errors/{kind}/**/*", recursive=True):
            if os.path.isfile(f) and not os.path.basename(f).startswith("."):
                out += [json.loads(l) for l in open(f)]
        return out

    def diverted(self):
        return collections.Counter(json.loads(base64.b64decode(l["rawData"]))["id"] for l in self.error_lines())

    def wait(self, what, ok, job, seconds=60):
        until = time.monotonic() + seconds
        while not ok():
            require(job.alive(), f"the job ended:\n{job.text()[-3000:]}")
            require(time.monotonic() < until, f"waited {seconds} s for: {what}\n{job.text()[-4000:]}")
            time.sleep(0.1)

    def init(self):
        path = f"{self.dir}/init.sql"
        open(path, "w").write(self.catalog(PORT))
        return path

    def sql(self, query):
        p = subprocess.run([BIN, "sql", "-i", self.init(), "--format", "json", "-e", query], capture_output=True, text=True)
        require(p.returncode == 0, f"{query}: {p.stderr}")
        return [json.loads(l) for l in p.stdout.splitlines() if l.strip()]

    def ids(self):
        return collections.Counter(r["id"] for r in self.sql("SELECT id FROM c.db.t"))

    def audit(self):
        p = subprocess.run([BIN, "audit", "c.db.t", "-i", self.init(), "--files"], capture_output=True, text=True)
        require(p.returncode == 0, f"audit gives {p.returncode}:\n{p.stdout}{p.stderr}")
        return p.stdout

    def replay(self, prefix=None, code=0, fault=None, script=None):
        env = dict(os.environ, **({"FRAZIL_FAULT": fault} if fault else {}))
        p = subprocess.run([BIN, "replay", prefix or self.errors, "-f", script or self.script(), "--format", "json"], capture_output=True, text=True, env=env, timeout=120)
        require(p.returncode == code, f"replay gives {p.returncode}, wanted {code}:\n{p.stdout}{p.stderr[-4000:]}")
        return [json.loads(l) for l in p.stdout.splitlines()]

    def strangers(self):
        """The ids as PyIceberg and DuckDB read them."""
        from pyiceberg.catalog.sql import SqlCatalog
        import duckdb
        props = {"s3.endpoint": f"http://127.0.0.1:{PORT}", "s3.access-key-id": "test", "s3.secret-access-key": "test", "s3.region": "us-east-1"}
        t = SqlCatalog("c", uri=f"sqlite:///{self.dir}/catalog.db", warehouse=f"s3://{self.bucket}/wh", **props).load_table("db.t")
        mine = collections.Counter(t.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
        db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        for e in ("avro", "httpfs", "iceberg"):
            package = os.path.dirname(__import__(f"duckdb_extension_{e}").__file__)
            db.load_extension(glob.glob(f"{package}/extensions/v{duckdb.__version__}/{e}.duckdb_extension")[0])
        db.execute(f"CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1', ENDPOINT '127.0.0.1:{PORT}', URL_STYLE 'path', USE_SSL false)")
        ducks = collections.Counter(r[0] for r in db.execute(f"SELECT id FROM iceberg_scan('{t.metadata_location}')").fetchall())
        return mine, ducks

    def judge(self, strangers=True):
        want = collections.Counter(self.sent)
        for who, got in (("frazil", self.ids()), *zip(("PyIceberg", "DuckDB"), self.strangers() if strangers else ())):
            lost, extra = list((want - got).elements()), list((got - want).elements())
            require(not lost and not extra, f"{who}: {len(lost)} lost {sorted(lost)[:8]}, {len(extra)} extra {sorted(extra)[:8]}")
        return self.audit()

    def close(self):
        self.proxy.stop()


def within():
    """Permission that comes within the window: nothing is given up, nothing lost."""
    l = Lake("within", window=20)
    j = l.start()
    l.send(100)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 100, j)
    l.deny()
    l.send(100)
    l.wait("the archive", lambda: sum(l.archived().values()) == 200, j)
    j.wait_log("sink.waiting")
    l.grant()
    l.wait("all rows", lambda: sum(l.ids().values()) == 200, j)
    j.stop()
    require(not os.path.exists(f"{l.dir}/errors") and not re.search("sink.diverted", j.text()), "rows were given up")
    l.judge()
    l.close()


def never():
    """Permission that never comes: all rows are in the error location, the job and its archive live, the spool is trimmed. Then it comes: the table names them, replay brings each row once."""
    l = Lake("never")
    metrics = {"frazil.metrics.path": f"{l.dir}/metrics"}

    def open_objects():
        return int(re.search(r'frazil_delivery_open_objects\{delivery="c.db.t"\} (\d+)', open(f"{l.dir}/metrics").read())[1])

    j = l.start(settings=metrics)
    l.send(50)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 50, j)
    l.deny()
    for _ in range(4):
        l.send(100)
        time.sleep(0.3)
    l.wait("all rows in error objects", lambda: sum(l.diverted().values()) == 400, j)
    require(set(l.diverted()) == set(l.sent[50:]), "other rows are in the error objects")
    l.wait("the archive", lambda: sum(l.archived().values()) == 450, j)
    given = j.text().count("event=sink.diverted")
    l.wait("the metric of open objects", lambda: open_objects() == given, j)
    line = l.error_lines()[0]
    require(line["attemptsMade"] >= 1 and line["errorCode"] == "S3.AccessDenied" and line["table"] == "c.db.t" and line["topic"] == "http" and line["rows"] == 1, f"{line}")
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    l.send(30)
    l.wait("rows after it", lambda: sum(l.ids().values()) == 80, j)
    time.sleep(1.5)  # the metrics are written once a second
    require(open_objects() == given, f"{open_objects()} objects are open, {given} were given up")
    p = subprocess.run([BIN, "inspect", "c.db.t", "-i", l.init(), "--format", "json", "--show", "diverted"], capture_output=True, text=True)
    require(sum(json.loads(x)["rows"] for x in p.stdout.splitlines()) == 400, f"inspect: {p.stdout}{p.stderr}")
    report = l.replay()
    require(sum(r.get("added", 0) for r in report) == 400, f"{report}")
    l.judge()
    require(not [r for r in l.replay() if r.get("state") == "replayed"], "a second replay found something")
    l.send(20)
    l.wait("rows after the replay", lambda: sum(l.ids().values()) == 500 and open_objects() == 0, j)
    j.stop()
    audit = l.judge()
    require("diverted 400" in audit, audit)
    l.close()
    return f"{len(report)} objects"


def all_given(l, j, n):
    """Waits until n rows are in error objects, and gives the permission; the table then names them."""
    l.wait("all rows in error objects", lambda: len(set(l.diverted())) == n, j)
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)


def replayed(l, more=0):
    """Brings everything in and looks at it; a second time there is nothing to do."""
    report = l.replay()
    require(not [r for r in report if r["state"] in ("failed", "waiting")], f"{report}")
    require(not [r for r in l.replay() if r["state"] not in ("unnamed",)], "a second replay found something")
    return l.judge()


def other_names():
    """Scripts that are not the job's: a replay with another pipeline.name, another target or a wrong prefix says what is open, with a code that is not 0. frazil.positions = adopt takes the open objects over: they are then the new
    pipeline's to replay, once, and no more the old one's."""
    l = Lake("names")

    def told(code, change=lambda text: text, prefix=None, settings=None):
        path = l.script(settings=settings)
        text = change(open(path).read())
        open(path, "w").write(text)
        p = subprocess.run([BIN, "replay", prefix or l.errors, "-f", path], capture_output=True, text=True, timeout=120)
        require(p.returncode == code, f"replay gives {p.returncode}, wanted {code}:\n{p.stdout}{p.stderr[-4000:]}")
        return p.stdout + p.stderr

    j = l.start()
    l.send(30)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 30, j)
    l.deny()
    l.send(60)
    all_given(l, j, 60)
    l.wait("the archive", lambda: sum(l.archived().values()) == 90, j)
    j.stop()
    new = {"pipeline.name": "renamed"}
    out = told(2, settings=new)
    require("replay.other-pipeline" in out and "'divert'" in out and "nothing to do" not in out, out)
    out = told(2, lambda text: text.replace("c.db.t ", "c.db.t2 "))
    require("replay.other-table" in out and "table c.db.t," in out and "nothing to do" not in out, out)
    out = told(1, prefix=f"file://{l.dir}/no-such/")
    require("no error objects below" in out and "nothing to do" not in out, out)
    require(sum(l.ids().values()) == 30, "a replay with a wrong script brought rows")

    j = l.start(settings={**new, "frazil.positions": "adopt"})
    j.wait_log("positions.adopted")
    l.send(10)
    l.wait("rows after adopt", lambda: sum(l.ids().values()) == 40, j)
    j.stop()
    out = told(2)
    require("replay.other-pipeline" in out and "'renamed'" in out, out)
    report = l.replay(script=l.script(settings=new))
    require(sum(r.get("added", 0) for r in report) == 60, f"{report}")
    require("nothing to do" in told(0, settings=new) and "nothing to do" in told(0), "it is not closed")
    require(l.archived() == collections.Counter(l.sent), f"the archive has {sum(l.archived().values())} rows of {len(l.sent)}")
    j = l.start(settings=new)
    l.send(5)
    l.wait("rows behind", lambda: sum(l.ids().values()) == 105, j)
    l.deny()
    l.send(20)
    l.wait("the rows in error objects", lambda: len(set(l.diverted())) == 80, j)
    j.stop(code=2)  # the table was not told
    l.grant()

    # back under the old name: refused; told to adopt, it takes over what the other had given up since, too
    p = subprocess.run([BIN, "run", l.script()], capture_output=True, text=True, timeout=120)
    require(p.returncode == 2 and "'renamed' has taken over the positions of 'divert'" in p.stderr and "that of 'divert' is 90" in p.stderr, p.stdout + p.stderr)
    j = l.start(settings=new)
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    j.stop()
    j = l.start(settings={"frazil.positions": "adopt"})
    j.wait_log("positions.adopted")
    l.send(5)
    l.wait("rows behind", lambda: sum(l.ids().values()) == 110, j)
    j.stop()
    report = l.replay()
    require(sum(r.get("added", 0) for r in report) == 20, f"{report}")
    l.judge()
    require("audit.open" not in l.audit(), l.audit())
    l.close()


def kill_divert():
    """kill -9 at each step of a diversion, and the next run in the same trouble: in the end each row is in the table once."""
    fates = collections.Counter()
    for point in ("divert.object", "divert.recorded", "divert.named"):
        l = Lake("killd")
        j = l.start()
        l.send(30)
        l.wait("the first rows", lambda: sum(l.ids().values()) == 30, j)
        j.kill()
        for k in range(ROUNDS):
            l.deny()
            j = l.start(f"{point}:1:kill")
            l.send(40)
            if point == "divert.named":
                l.wait("rows in error objects", lambda: "sink.diverted" in j.text(), j)
                l.grant()
            code = j.wait(60)
            require(code == -signal.SIGKILL, f"the job ended with {code}\n{j.text()[-3000:]}")
            fates[point] += 1
        l.grant()
        j = l.start()
        l.send(10)
        l.wait("the archive", lambda: sum(l.archived().values()) == len(l.sent), j)
        l.wait("the rows behind", lambda: max(l.ids(), default=-1) == len(l.sent) - 1, j)
        j.stop()
        replayed(l)
        require(l.archived() == collections.Counter(l.sent), "the archive differs")
        l.close()
    return f"killed {dict(fates)}"


def kill_replay():
    """kill -9 at each step of a replay, with the job at work beside it: the next replay knows what is done."""
    points = ("replay.object", "commit.manifest-list", "commit.accepted", "replay.done")
    l = Lake("killr")
    j = l.start()
    for point in points:
        l.deny()
        l.send(60)
        known = j.text().count("divert.named")
        before = sum(l.ids().values())
        l.wait("rows in error objects", lambda: "sink.diverted" in j.text() and set(l.sent[-60:]) <= set(l.diverted()), j)
        l.grant()
        l.wait("the commit that names them", lambda: j.text().count("divert.named") > known, j)
        l.send(5)
        l.replay(code=-signal.SIGKILL, fault=f"{point}:1:kill")
        l.send(5)
        l.wait("the rows behind", lambda: set(l.sent[-10:]) <= set(l.ids()), j)
        report = l.replay()
        require(sum(r["state"] == "replayed" for r in report) == (0 if point in ("commit.accepted", "replay.done") else 1), f"{point}: {report}")
        require(sum(l.ids().values()) == before + 70, f"{point}: {before} rows, then {sum(l.ids().values())}")
    j.stop()
    replayed(l)
    l.close()


def together():
    """Two replays at the same time, beside the job."""
    l = Lake("two")
    j = l.start()
    for _ in range(3):
        l.deny()
        known = j.text().count("divert.named")
        l.send(60)
        l.wait("rows in error objects", lambda: set(l.sent[-60:]) <= set(l.diverted()), j)
        l.grant()
        l.wait("the commit that names them", lambda: j.text().count("divert.named") > known, j)
        script = l.script()
        both = [subprocess.Popen([BIN, "replay", l.errors, "-f", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        for p in both:
            out = p.communicate(timeout=120)[0]
            require(p.returncode == 0, f"replay gives {p.returncode}: {out}")
    j.stop()
    replayed(l)
    l.close()


def down_and_up():
    """The job is told to stop in the trouble, the permission comes while it is down: the next start tells the table first, then reads on. The error location lies on S3."""
    bucket = f"errors-{os.getpid()}"
    moto("bucket", bucket)
    l = Lake("down", errors=f"s3://{bucket}/e/!{{firehose:error-output-type}}/", table_options=f"/*+ OPTIONS('error.path'='s3://{bucket}/e/!{{firehose:error-output-type}}/','retry.duration'='{WINDOW} s',{s3(PORT)}) */")
    j = l.start()
    l.deny()
    l.send(80)
    j.wait_log("sink.diverted", 60)
    j.stop(code=2)
    report = l.replay(f"s3://{bucket}/e/", code=2)  # they wait, and a code of 0 would say that nothing is open
    require([r["state"] for r in report if r["state"] != "unnamed"] == ["waiting"], f"{report}")
    l.grant()
    j = l.start()
    l.send(20)
    l.wait("the rows behind", lambda: set(l.sent[-20:]) == set(l.ids()), j)
    report = l.replay(f"s3a://{bucket}/e/iceberg-failed/")
    require(sum(r.get("added", 0) for r in report) == 80, f"{report}")
    j.stop()
    l.judge()
    l.close()


def never_fit():
    """Rows that can never fit go to the error location at once, with the column named; the job goes on."""
    l = Lake("fit", columns="id BIGINT NOT NULL, host STRING, num INT", select="SELECT id, host, CAST(num AS INT) FROM src WHERE num >= 0")
    j = l.start()
    l.send(20, bad=['{"host":"none","num":1}', '{"id":"no number","host":"x","num":1}'])
    l.wait("rows and rejects", lambda: sum(l.ids().values()) == 20 and len(l.error_lines("iceberg-rejected")) == 2, j)
    lines = l.error_lines("iceberg-rejected")
    require(any("'id'" in x["errorMessage"] and x["errorCode"] == "not-null" for x in lines), f"{lines}")
    require(any("id" in x["errorMessage"] and b"no number" in base64.b64decode(x["rawData"]) for x in lines), f"{lines}")
    require({r["state"] for r in l.replay()} == {"unnamed"}, "a replay took rejects")
    j.stop()
    l.judge()
    l.close()


def strange_objects():
    """A replay takes what is named and as it was written: a copy under another name is left alone, a spoiled one is refused and stays open, and is taken when it is right again."""
    l = Lake("strange")
    j = l.start()
    l.deny()
    l.send(50)
    all_given(l, j, 50)
    j.stop()
    path = [f for f in glob.glob(f"{l.dir}/errors/iceberg-failed/**/*", recursive=True) if os.path.isfile(f)]
    require(len(path) == 1, f"{path}")
    good = open(path[0], "rb").read()
    shutil.copy(path[0], path[0] + "-copy")
    open(path[0], "wb").write(good.replace(b'"rows":1}', b'"rows":2}', 1))
    report = l.replay(code=2)
    require({r["state"]: r.get("code") for r in report} == {"failed": "replay.damaged", "unnamed": None}, f"{report}")
    require(not l.ids(), "rows of a spoiled object are in the table")
    p = subprocess.run([BIN, "doctor", "-f", l.script()], capture_output=True, text=True)
    require("c.db.t, error.path" in p.stdout, p.stdout)
    open(path[0], "wb").write(good)
    require(not l.replay(prefix=f"file://{l.dir}/elsewhere/", code=1), "objects of another prefix were taken")
    replayed(l)
    l.close()


def archive():
    """The archive's own store refuses for good: its lots are in its error path, and replay puts them where they belong, once."""
    l = Lake("arch")
    l.archive = f"'path'='s3://{l.bucket}/arch/',{s3(l.port)},'error.path'='file://{l.dir}/lots/','retry.duration'='1 s'"
    l.deny({**DENIED, "path": "/arch/"})
    j = l.start()
    for _ in range(3):
        l.send(30)
        time.sleep(0.5)
    lots = lambda: [f for f in glob.glob(f"{l.dir}/lots/**/*", recursive=True) if os.path.isfile(f)]
    l.wait("all lots in the error path", lambda: sum(len(open(f).readlines()) for f in lots()) == 90, j)
    l.grant()
    l.send(10)
    l.wait("the table", lambda: sum(l.ids().values()) == 100, j)
    report = l.replay(prefix=f"{l.dir}/lots", code=2, script=l.script(settings={"pipeline.name": "renamed"}))
    require({(r["state"], r.get("code")) for r in report} == {("other", "replay.other-pipeline")} and sum(r["rows"] for r in report) == 90, f"{report}")
    l.replay(prefix=f"{l.dir}/lots", code=-signal.SIGKILL, fault="replay.object:1:kill")
    report = l.replay(prefix=f"{l.dir}/lots")
    require(sum(r.get("added", 0) for r in report) == 90, f"{report}")
    require(not l.replay(prefix=f"{l.dir}/lots"), "a second replay found something")
    j.stop()
    got = collections.Counter()
    from pyarrow.fs import FileSelector, S3FileSystem
    fs = S3FileSystem(access_key="test", secret_key="test", region="us-east-1", endpoint_override=f"http://127.0.0.1:{PORT}")
    for f in fs.get_file_info(FileSelector(f"{l.bucket}/arch", recursive=True)):
        if f.is_file:
            got.update(json.loads(x)["id"] for x in gzip.decompress(fs.open_input_stream(f.path, compression=None).read()).splitlines())
    require(got == collections.Counter(l.sent), f"archive: {sum(got.values())} rows of {len(l.sent)}")
    l.judge(strangers=False)
    l.close()


def small_spool():
    """A spool that is far smaller than what comes in while the table refuses: it is trimmed behind what was given up, so that senders do not wait for ever. Records and rows balance in the metrics."""
    l = Lake("spool", window=2, spool="1 mb")
    metrics = f"{l.dir}/metrics"
    j = l.start(settings={"frazil.metrics.path": metrics})
    l.send(10)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 10, j)
    l.deny()
    l.send(12000, pad=250)  # more than 3 mb of records
    l.wait("all rows in error objects", lambda: len(set(l.diverted())) == 12000, j, 120)

    def states():
        return {m[1]: int(m[2]) for m in re.finditer(r'frazil_delivery_records\{delivery="c.db.t",state="(\w+)"\} (\d+)', open(metrics).read())}

    l.wait("the metrics", lambda: states()["diverted"] == 12000, j)
    s = states()
    require(s["in"] == sum(v for k, v in s.items() if k != "in") and s["delivered"] == 10 and s["buffered"] == 0, f"{s}")
    text = open(metrics).read()
    require(re.search(r'failed_row_count\{delivery="c.db.t"\} 12000\n', text), "FailedRowCount")
    require(int(re.search(r'data_freshness\{delivery="c.db.t"\} (\d+)', text)[1]) >= 2, "DataFreshness does not rise while the table is stuck")
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    l.send(10)
    l.wait("the rows behind", lambda: sum(l.ids().values()) == 20, j)
    s = states()
    j.stop()
    replayed(l)
    l.close()
    return f"{j.text().count('event=sink.diverted')} objects"


def drain():
    """A drain in the trouble ends: everything is given up, nothing is left, and the code says that the table was not told."""
    l = Lake("drain")
    j = l.start()
    l.send(10)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 10, j)
    l.deny()
    l.send(70)
    p = subprocess.run([BIN, "drain", "divert", "--state", f"{l.dir}/state", "--format", "json"], capture_output=True, text=True, timeout=120)
    require(p.returncode == 2, f"drain gives {p.returncode}: {p.stdout}{p.stderr}\n{j.text()[-3000:]}")
    d = {x["delivery"].rsplit(".", 1)[1]: x for x in json.loads(p.stdout)["deliveries"]}
    require(d["t"]["diverted"] == 70 and d["t"]["left"] == 0 and d["arch"]["left"] == 0 and d["arch"]["delivered"] == 80, f"{d}")
    require(j.wait(30) == 2, "the job ends with another code")
    l.grant()
    j = l.start()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    j.stop()
    replayed(l)
    l.close()


CASES = [within, never, other_names, kill_divert, kill_replay, together, down_and_up, never_fit, strange_objects, archive, small_spool, drain]
if __name__ == "__main__":
    moto("up", PORT)
    try:
        main({f.__name__: f for f in CASES})
    finally:
        for p in STARTED:
            if p.poll() is None:
                p.kill()
        moto("down")
