#!/usr/bin/env python3
"""A job that begins again while the catalog of one of its tables is away: denied, unavailable, unreachable or silent. The archive and the other table go on, senders are acknowledged, and the table has each record once
when the catalog is back; when that takes longer than retry.duration, what waited is in error objects, and `frazil replay` brings it.

The table lies in an imitation of Glue and S3 (moto), Glue behind a proxy; the other table and the archive are local; records come over HTTP.

usage: restart.py [CASE...]; FRAZIL_MOTO_PORT, and the next port for PostgreSQL."""
import collections, json, os, re, signal, shutil, subprocess, sys, time, urllib.request

os.environ.setdefault("FRAZIL_MOTO_PORT", "29523")
os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from divert import PORT, STARTED, Lake, moto, s3
from harness import BIN, ROOT, main, require
from proxy import Proxy

ALL = {"times": 0}
TROUBLES = {
    "denied": ({"do": "answer", "status": 400, "type": "application/x-amz-json-1.1", "answer": '{"__type":"AccessDeniedException","Message":"Insufficient Lake Formation permission(s)"}', **ALL}, "catalog.denied|aws.denied"),
    "unavailable": ({"do": "answer", "status": 503, "type": "text/html", "answer": "<html>away</html>", **ALL}, "."),
    "reset": ({"do": "reset", **ALL}, "."),
    "silent": ({"do": "hold", "seconds": 600, **ALL}, "."),
}


class Glue(Lake):
    """The table in Glue behind a door; beside it a table in a catalog of local files."""

    def __init__(self, name, window=None, **kw):
        self.db = f"{name}{os.getpid()}"
        super().__init__(name, window=window or 3, **({} if window else {"table_options": " "}), **kw)
        self.metrics_port = 0

    def catalog(self, port=None):
        text = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='glue','warehouse'='s3://{self.bucket}/wh','glue.endpoint'='http://127.0.0.1:{port or self.port}',{s3(PORT)});\n"
        return text + f"CREATE CATALOG h WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{self.dir}/catalog.db','warehouse'='file://{self.dir}/wh');\n"

    def script(self, **kw):
        path = super().script(**kw)
        text = open(path).read().replace("c.db", f"c.{self.db}").replace("STATEMENT SET", "CREATE DATABASE IF NOT EXISTS h.db;\nCREATE TABLE IF NOT EXISTS h.db.u (id BIGINT);\nSTATEMENT SET")
        text = text.replace("\nEND;", "\nINSERT INTO h.db.u SELECT id FROM src;\nEND;")
        open(path, "w").write(text)
        return path

    def ids(self):
        return collections.Counter(r["id"] for r in self.sql(f"SELECT id FROM c.{self.db}.t"))

    def beside(self):
        return collections.Counter(r["id"] for r in self.sql("SELECT id FROM h.db.u"))

    def audit(self):
        p = subprocess.run([BIN, "audit", f"c.{self.db}.t", "-i", self.init(), "--files"], capture_output=True, text=True)
        require(p.returncode == 0, f"audit gives {p.returncode}:\n{p.stdout}{p.stderr}")
        return p.stdout

    def judge(self):
        super().judge(strangers=False)
        want = collections.Counter(self.sent)
        require(self.archived() == want, f"the archive has {sum(self.archived().values())} rows of {len(self.sent)}")
        require(self.beside() == want, f"the other table has {sum(self.beside().values())} rows of {len(self.sent)}")

    def others_go_on(self, j):
        l = self
        l.wait("the archive", lambda: set(l.archived()) == set(l.sent), j, 120)
        l.wait("the other table", lambda: set(l.beside()) == set(l.sent), j, 120)

    def well(self, n=20):
        """A first run in which all is well."""
        j = self.start()
        self.send(n)
        self.wait("the first rows", lambda: sum(self.ids().values()) == len(self.sent), j)
        self.others_go_on(j)
        return j


def away(name):
    """Once started well, stopped, and started again in the trouble; then the catalog is back."""
    rule, codes = TROUBLES[name]
    l = Glue(name)
    l.well().stop()
    l.deny(rule)
    j = l.start()
    l.send(30)
    l.others_go_on(j)
    text = j.text()
    require(re.search(rf"event=catalog.away code=(\S+) .*hint=", text) and re.search(f"event=sink.unseen table=c.{l.db}.t code=({codes})", text), text[-3000:])
    require(f"event=sink.unseen table=h" not in text, "the other table was waited for")
    l.grant()
    l.proxy.release()
    l.wait("all rows", lambda: sum(l.ids().values()) == 50, j, 120)
    j.stop()
    l.judge()
    l.well(5).stop()
    l.judge()
    l.close()


def refused():
    """Nobody listens at the catalog's address; the job is killed there, and again; then somebody does."""
    l = Glue("refused")
    j = l.well()
    j.kill()
    l.proxy.stop()
    for _ in range(2):
        j = l.start()
        l.send(15)
        l.others_go_on(j)
        j.kill()
    l.proxy = Proxy(f"{l.port}=127.0.0.1:{PORT}", log=f"{l.dir}/proxy.log")
    STARTED.append(l.proxy.p)
    j = l.start()
    l.wait("all rows", lambda: sum(l.ids().values()) == 50, j)
    j.stop()
    l.judge()
    l.close()


def unopened():
    """A catalog in PostgreSQL that cannot even be opened (CREATE CATALOG connects), the job's only sink: senders are acknowledged, and the first call that gets through opens it."""
    port, place = PORT + 1, f"{os.environ.get('FRAZIL_TEST_DIR', '/tmp')}/pg-restart-{PORT}"

    def postgres(what, *args):
        p = subprocess.run(["bash", f"{ROOT}/test/peers/postgres.sh", what, place, *map(str, args)], capture_output=True, text=True)
        require(p.returncode == 0, f"postgres.sh {what}: {p.stdout}{p.stderr}")

    class InPostgres(Lake):
        def catalog(self, at=None):
            at = port if at == PORT else at or self.door.ports[0]
            return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='postgresql://frazil:frazil@127.0.0.1:{at}/catalog','warehouse'='file://{self.dir}/wh');\n"

        def script(self, **kw):
            path = super().script(**kw)
            text = "".join(l for l in open(path).read().splitlines(True) if not l.startswith("INSERT INTO arch"))
            open(path, "w").write(text)
            return path

    postgres("up", port)
    try:
        l = InPostgres("unopened", table_options=" ")
        l.door = Proxy(f"0=pg:127.0.0.1:{port}", log=f"{l.dir}/door.log")
        STARTED.append(l.door.p)
        at = l.door.ports[0]
        j = l.start()
        l.send(20)
        l.wait("the first rows", lambda: sum(l.ids().values()) == 20, j)
        j.kill()
        l.door.stop()
        j = l.start()
        l.send(15)
        j.wait_log("event=sink.waiting code=catalog.unreachable", 60)
        j.kill()
        j = l.start()
        l.send(15)
        l.door = Proxy(f"{at}=pg:127.0.0.1:{port}", log=f"{l.dir}/door.log")
        STARTED.append(l.door.p)
        l.wait("all rows", lambda: sum(l.ids().values()) == 50, j)
        j.stop()
        l.judge(strangers=False)
        l.close()
    finally:
        postgres("down")


def killed_commit():
    """A commit landed and the process was killed before it knew: what was last seen of the table lags behind it. The catalog is away for longer than retry.duration: the diversion begins below the table's position, and
    only what lies behind counts. Another kill, and another start in the trouble, change nothing."""
    l = Glue("landed", window=3)
    l.well().stop()
    j = l.start("commit.answered:1:kill")
    l.send(15)
    require(j.wait(60) == -signal.SIGKILL, j.text()[-3000:])
    landed = sum(l.ids().values())
    require(landed > 20, "no commit had landed")  # all 15, unless a checkpoint came between their requests
    l.deny(TROUBLES["denied"][0])
    j = l.start()
    l.send(10)
    l.others_go_on(j)
    l.wait("rows in error objects", lambda: set(l.diverted()) == set(l.sent[20:]), j)
    j.wait_log("event=sink.diverted", 60)
    j.kill()
    j = l.start()
    l.send(5)
    l.wait("more rows in error objects", lambda: set(l.diverted()) == set(l.sent[20:]), j)
    require(max(l.diverted().values()) == 1, "what was given up was given up again")
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j, 120)
    l.send(5)
    l.wait("rows behind", lambda: set(l.sent[-5:]) <= set(l.ids()), j)
    l.others_go_on(j)
    require(sum(l.ids().values()) == landed + 5, f"{l.ids()}")
    report = l.replay()
    require(sum(r.get("added", 0) for r in report) == 50 - landed, f"{landed}: {report}")
    j.stop()
    l.judge()
    l.close()
    return f"{landed} rows had landed"


def outlasted():
    """The same without a kill: nothing was given up that the table has."""
    l = Glue("outlasted", window=3)
    l.well().stop()
    l.deny(TROUBLES["unavailable"][0])
    j = l.start()
    l.send(30)
    l.others_go_on(j)
    l.wait("rows in error objects", lambda: set(l.diverted()) == set(l.sent[20:]), j, 120)
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j, 120)
    l.send(5)
    l.wait("rows behind", lambda: sum(l.ids().values()) == 25, j)
    report = l.replay()
    require(sum(r.get("added", 0) for r in report) == 30, f"{report}")
    j.stop()
    l.judge()
    l.close()


def position_unknown():
    """What was last seen of the positions is lost: nothing is given up, however long it takes, and the table has everything once."""
    l = Glue("unknown", window=1)
    l.well().stop()
    shutil.rmtree(f"{l.dir}/state/seen")
    l.deny(TROUBLES["denied"][0])
    j = l.start()
    l.send(30)
    l.others_go_on(j)
    require('gives_up="nothing before the table is there' in j.text(), j.text()[-3000:])
    waits = j.text().count("event=sink.waiting")
    l.wait("attempts beyond the window", lambda: j.text().count("event=sink.waiting") > waits + 2, j)
    require(not l.error_lines() and "sink.diverted" not in j.text(), "rows were given up from an unknown position")
    l.grant()
    l.wait("all rows", lambda: sum(l.ids().values()) == 50, j, 120)
    j.stop()
    l.judge()
    l.close()


def first_start():
    """A first start in the trouble is refused, with the catalog's own error; so is one whose memory is lost or damaged."""
    l = Glue("first")
    l.deny(TROUBLES["denied"][0])
    for _ in range(2):
        r = subprocess.run([BIN, "run", l.script()], capture_output=True, text=True, timeout=60)
        require(r.returncode == 2 or r.returncode == 1, f"{r.returncode}: {r.stderr}")
        require(re.search("denied", r.stderr) and "sink.unseen" not in r.stderr and "source.listening" not in r.stderr, r.stderr)
    l.grant()
    l.well().stop()
    l.deny(TROUBLES["denied"][0])
    (path,) = [f"{d}/{f}" for d, _, names in os.walk(f"{l.dir}/state/tables") for f in names if f.endswith(".t.json")]
    text = open(path).read()
    open(path, "w").write(text[: len(text) // 2])
    r = subprocess.run([BIN, "run", l.script()], capture_output=True, text=True, timeout=60)
    require(r.returncode in (1, 2) and "catalog.memory-damaged" in r.stderr and "source.listening" not in r.stderr, f"{r.returncode}: {r.stderr}")
    l.grant()
    l.well(5).stop()
    l.judge()
    l.close()


def dropped():
    """The catalog is back and the table is not: the sink fails, as it does when a table is dropped under a job."""
    l = Glue("dropped")
    l.well().stop()
    l.deny(TROUBLES["denied"][0])
    j = l.start(settings={"frazil.on-sink-failure": "continue"})
    l.send(10)
    l.others_go_on(j)
    l.sql(f"DROP TABLE c.{l.db}.t")
    l.grant()
    j.wait_log("event=sink.failed .*not-found", 60)
    l.send(5)
    l.others_go_on(j)
    j.stop(code=2)
    l.close()


def other_schema():
    """The schema is another one when the catalog is back: the sink stops as a running one does, and the next start has the new schema and every row once."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.types import StringType
    l = Lake("schema")
    j = l.start()
    l.send(20)
    l.wait("the first rows", lambda: sum(l.ids().values()) == 20, j)
    j.stop()
    l.deny({"do": "answer", "status": 403, "type": "application/xml", "times": 0, "answer": "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"})
    j = l.start()
    l.send(10)
    l.wait("the archive", lambda: sum(l.archived().values()) == 30, j)
    props = {"s3.endpoint": f"http://127.0.0.1:{PORT}", "s3.access-key-id": "test", "s3.secret-access-key": "test", "s3.region": "us-east-1"}
    t = SqlCatalog("c", uri=f"sqlite:///{l.dir}/catalog.db", warehouse=f"s3://{l.bucket}/wh", **props).load_table("db.t")
    with t.update_schema() as u:
        u.add_column("more", StringType())
    l.grant()
    require(j.wait(60) == 2 and re.search("event=sink.failed code=commit.schema-changed", j.text()), j.text()[-3000:])
    path = l.script()
    text = open(path).read().replace("SELECT id, host, num FROM src", "SELECT id, host, num, 'x' FROM src")
    open(path, "w").write(text)
    l.script = lambda **kw: path
    j = l.start()
    l.send(5)
    l.wait("rows behind", lambda: set(l.sent[-5:]) <= set(l.ids()), j)
    j.stop()
    if l.diverted():
        l.replay(script=path)
    l.judge()
    l.close()


def tools():
    """Meanwhile: metrics say how old what waits is, and that attempts fail; the doctor names the layer; a drain ends with a code that is not 0 and names the sink."""
    l = Glue("tools")
    l.well().stop()
    l.deny(TROUBLES["denied"][0])
    j = l.start(settings={"metrics.port": "0"})
    l.send(10)
    l.others_go_on(j)
    port = int(re.search(r"event=metrics.listening.*?address=\S*?:(\d+)", j.text()).group(1))

    def metric(name):
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        return {m[1]: float(m[2]) for m in re.finditer(rf'^{name}\{{[^}}]*delivery="([^"]*)"[^}}]*\}} (\S+)$', text, re.M)}

    l.wait("the age of what waits", lambda: metric("firehose_delivery_to_iceberg_data_freshness").get(f"c.{l.db}.t", 0) >= 2, j)
    require(metric("frazil_delivery_attempts_total")[f"c.{l.db}.t"] >= 2, "failed attempts are not counted")
    r = subprocess.run([BIN, "doctor", "-f", l.script(), "--format", "json"], capture_output=True, text=True, timeout=120)
    require(r.returncode == 2 and [s for s in json.loads(r.stdout)["steps"] if s["status"] == "fail"], f"{r.returncode}: {r.stdout}{r.stderr}")
    p = subprocess.Popen([BIN, "drain", "divert", "--state", f"{l.dir}/state", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    STARTED.append(p)
    j.wait_log("event=drain.begin", 60)  # without an error location it goes on for as long as the table is tried; the operator ends it
    j.stop(code=2)
    out = p.communicate(timeout=60)[0]
    left = {x["delivery"]: x["left"] for x in json.loads(out)["deliveries"]}
    require(p.returncode == 2 and left[f"c.{l.db}.t"] == 10 and left["h.db.u"] == 0, f"{p.returncode}: {out}")
    require(re.search(rf"event=stop.left sink=c.{l.db}.t ", j.text()) and re.search(rf"event=drain.delivery delivery=c.{l.db}.t .*left=10", j.text()), j.text()[-3000:])
    l.grant()
    j = l.start()
    l.wait("all rows", lambda: sum(l.ids().values()) == 30, j)
    j.stop()
    l.judge()
    l.close()


CASES = {**{name: (lambda name=name: away(name)) for name in TROUBLES}, **{f.__name__: f for f in (refused, unopened, killed_commit, outlasted, position_unknown, first_start, dropped, other_schema, tools)}}
if __name__ == "__main__":
    moto("up", PORT)
    try:
        main(CASES)
    finally:
        for p in STARTED:
            if p.poll() is None:
                p.kill()
        moto("down")
