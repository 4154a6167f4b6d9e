#!/usr/bin/env python3
"""The real binary while what it stands on fails: disks, catalog, broker, a second copy of itself. After each: every row once, audit passes, no file live twice.

usage: faults.py [CASE...]  by test/e2e/run.sh, which gives it a broker. Cases that mount a tmpfs need root and are left out without it. FRAZIL_LONG=1: longer waits."""
import os, signal, sqlite3, subprocess, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import Broker, Failure, Tables, main, require

B = Broker()
LONG = bool(os.environ.get("FRAZIL_LONG"))
FAST = "'commit.retry.min-wait-ms'='50'"


def rows(first, n, width=0):
    return [{"id": i, "host": f"h{i % 3}", "num": str(i), **({"text": os.urandom(width // 2).hex()} if width else {})} for i in range(first, first + n)]


def feed(t, first, n, **kw):
    r = rows(first, n, **kw)
    for p in range(2):
        B.produce(t.name, p, r[p::2])
    return [x["id"] for x in r]


def setting(name, partitions=2, **kw):
    kw.setdefault("properties", FAST)
    t = Tables(B, f"faults-{name}-{os.getpid()}", **kw)
    B.topic(t.name, partitions)
    return t


class Tmpfs:
    def __init__(self, path, size):
        self.path = path
        os.makedirs(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.path], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)


def full_disk():
    t = setting("full", columns="id BIGINT, host STRING, num INT, txt STRING")
    with Tmpfs(f"{t.dir}/small", "3m") as disk:
        t.warehouse = f"{disk.path}/wh"
        insert = ["INSERT INTO c.db.t SELECT id, TRIM(host), CAST(num AS INT), `text` FROM src;"]
        script = t.script(t.name, inserts=insert, source_columns="id BIGINT, host STRING, num STRING, `text` STRING")
        ids = feed(t, 0, 50, width=400)
        j = t.start(script)
        t.wait_rows(50, job=j)
        ids += feed(t, 50, 12000, width=1000)  # some 6 MB that zstd cannot make smaller
        j.wait_log("No space left", 30)
        time.sleep(2)
        disk.remount("size=64m")
        t.wait_rows(len(ids), job=j, seconds=60)
        ids += feed(t, 20000, 50, width=400)
        t.wait_rows(len(ids), job=j)
        j.stop()
        t.judge(ids)


def read_only_disk():
    t = setting("read-only")
    with Tmpfs(f"{t.dir}/disk", "64m") as disk:
        t.warehouse = f"{disk.path}/wh"
        ids = feed(t, 0, 50)
        j = t.start(t.script(t.name))
        t.wait_rows(50, job=j)
        for _ in range(50):  # busy while a file is open for writing
            if subprocess.run(["mount", "-o", "remount,ro", disk.path], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.05)
        ids += feed(t, 100, 50)
        j.wait_log("Read-only file system", 30)
        time.sleep(2)
        disk.remount("rw")
        t.wait_rows(100, job=j)
        j.stop()
        t.judge(ids)


def disk_errors():
    """The n-th write, the n-th fsync fails, for each n of a run: the job goes on by itself."""
    t = setting("eio")
    ids = feed(t, 0, 100)
    n = 0
    for point, kind in (("file.write", "eio"), ("file.fsync", "eio"), ("file.write", "enospc")):
        for nth in range(1, 20 if LONG else 11):
            t2 = Tables(B, f"faults-eio-{point[5:]}-{kind}-{nth}", properties=FAST)
            script = t2.script(t.name, bounded=True)
            j = t2.start(script, f"{point}:{nth}:{kind}")
            code = j.wait(60)
            if code == 2 and "job.start" not in j.text():  # the table itself could not be made: said so, and the next start makes it
                require("[file." in j.text(), j.text())
                t2.run(script)
            else:
                require(code == 0, f"{point}:{nth}:{kind}: exit code {code}\n{j.text()[-3000:]}")
            t2.judge(ids)
            n += 1
    return f"{n} runs"


def catalog_locked():
    seconds = 60 if LONG else 8
    t = setting("locked")
    ids = feed(t, 0, 50)
    j = t.start(t.script(t.name))
    t.wait_rows(50, job=j)
    db = sqlite3.connect(f"{t.dir}/catalog.db", isolation_level=None, timeout=10)
    db.execute("BEGIN EXCLUSIVE")
    ids += feed(t, 100, 50)
    time.sleep(seconds)
    require(j.alive(), f"the job ended while the catalog was locked\n{j.text()[-2000:]}")
    db.execute("ROLLBACK")
    db.close()
    t.wait_rows(100, job=j, seconds=90)
    j.stop()
    t.judge(ids)
    return f"locked for {seconds} s"


def other_sink_goes_on():
    """Two catalogs; one is locked for a long time: the other table's commits do not wait for it."""
    t = setting("other")
    path = t.script(t.name)
    text = open(path).read()
    second = t.catalog().replace("CATALOG c", "CATALOG d").replace("catalog.db", "second.db").replace("/wh", "/wh2")
    table = "CREATE TABLE IF NOT EXISTS d.db.t (id BIGINT, host STRING, num INT) PARTITIONED BY (host) WITH ('commit.retry.min-wait-ms'='50');\n"
    text = text.replace("CREATE TEMPORARY", second + "CREATE DATABASE IF NOT EXISTS d.db;\n" + table + "CREATE TEMPORARY", 1)
    text = text.replace("\nEND;", "\nINSERT INTO d.db.t SELECT id, TRIM(host), CAST(num AS INT) FROM src;\nEND;")
    with open(path, "w") as f:
        f.write(text)
    ids = feed(t, 0, 50)
    j = t.start(path)
    t.wait_rows(50, job=j)
    db = sqlite3.connect(f"{t.dir}/second.db", isolation_level=None, timeout=10)
    db.execute("BEGIN EXCLUSIVE")
    for k in range(1, 4):
        ids += feed(t, k * 100, 50)
        t.wait_rows(len(ids), job=j, seconds=40)
    db.execute("ROLLBACK")
    db.close()
    j.wait_log("sink.waiting")
    other = Tables(B, t.name)
    other.dir = t.dir
    with open(f"{t.dir}/init2.sql", "w") as f:
        f.write(second)
    other.init = lambda: f"{t.dir}/init2.sql"
    until = time.monotonic() + 60
    while other.sql("SELECT COUNT(*) AS n FROM d.db.t")[0]["n"] < len(ids):
        require(time.monotonic() < until, f"the locked table stays behind\n{j.text()[-2000:]}")
        time.sleep(0.3)
    j.stop()
    t.judge(ids)
    require(sorted(r["id"] for r in other.sql("SELECT id FROM d.db.t")) == sorted(ids), "the second table holds other rows")


def broker_away():
    t = setting("broker")
    ids = feed(t, 0, 50)
    j = t.start(t.script(t.name))
    t.wait_rows(50, job=j)
    B.down()
    time.sleep(4)
    require(j.alive(), f"the job ended without its broker\n{j.text()[-2000:]}")
    B.up()
    ids += feed(t, 100, 50)
    t.wait_rows(100, job=j, seconds=60)
    text = j.stop()
    require("source.waiting" in text or "kafka" in text, "nothing was said of the broker")
    t.judge(ids)


def broker_away_at_start():
    t = setting("broker-start")
    ids = feed(t, 0, 50)
    B.down()
    j = t.start(t.script(t.name))
    j.wait_log("source.waiting", 60)
    B.up()
    t.wait_rows(50, job=j, seconds=60)
    j.stop()
    t.judge(ids)


def two_copies():
    t = setting("copies")
    script = t.script(t.name, interval="100 ms")
    ids = feed(t, 0, 50)
    t.run(t.script(t.name, bounded=True))
    jobs = [t.start(script), t.start(script)]
    for k in range(1, 25):
        ids += feed(t, k * 100, 50)
        time.sleep(0.1)
    t.wait_rows(len(ids), seconds=60)
    codes = []
    for j in jobs:
        if j.alive():
            j.signal(signal.SIGTERM)
        codes.append(j.wait(60))
    require(set(codes) <= {0, 2} and 0 in codes, f"exit codes {codes}\n{jobs[0].text()[-1500:]}\n{jobs[1].text()[-1500:]}")
    t.judge(ids)
    rewinds = sum(j.text().count("event=sink.rewind") for j in jobs)
    require(rewinds > 0, "the copies never met")
    return f"{rewinds} rewinds, exit codes {codes}"


def two_pipelines():
    """Different pipelines into one table: conflicts, but each commits."""
    t = setting("pipelines")
    other = Tables(B, f"faults-pipelines-b-{os.getpid()}", properties=FAST)
    other.dir, other.warehouse = t.dir, t.warehouse
    B.topic(other.name, 2)
    t.run(t.script(t.name, bounded=True, name="a"))
    a, b = t.start(t.script(t.name, name="a", interval="50 ms")), t.start(t.script(other.name, name="b", interval="50 ms"))
    ids = []
    for k in range(20):
        ids += feed(t, k * 1000, 50) + feed(other, k * 1000 + 500, 50)
    t.wait_rows(len(ids), seconds=60)
    conflicts = 0
    for j in (a, b):
        conflicts += j.stop().count("catalog.conflict")
    t.judge(ids)
    return f"{conflicts} conflicts"


def sigterm():
    t = setting("sigterm")
    ids = feed(t, 0, 50)
    j = t.start(t.script(t.name, interval="10 min"))
    j.wait_log("job.start")
    time.sleep(2)
    require(t.count() == 0, "a checkpoint came too early")
    j.stop()
    t.judge(ids)


def sink_fails(policy):
    t = setting(f"sink-{policy}", tables=("t", "gone"), properties=FAST + ",'commit.retry.total-timeout-ms'='3000'")
    ids = feed(t, 0, 50)
    j = t.start(t.script(t.name, settings={"frazil.on-sink-failure": policy}))
    t.wait_rows(50, job=j)
    t.wait_rows(50, "gone", job=j)
    subprocess.run(["mv", f"{t.warehouse}/db/gone", f"{t.dir}/away"], check=True)
    with open(f"{t.warehouse}/db/gone", "w"):  # a file where the directory was: nothing can be made there
        pass
    ids += feed(t, 100, 50)
    if policy == "stop":
        # whatever had been read by then is in the other table: how much that is, is the broker's to say
        require(j.wait(60) == 2, f"exit code {j.p.returncode}\n{j.text()[-2000:]}")
    else:
        j.wait_log("sink.failed", 60)
        t.wait_rows(100, job=j)
        ids += feed(t, 200, 50)
        t.wait_rows(150, job=j)
        j.stop(code=2)
        t.judge(ids)
    os.remove(f"{t.warehouse}/db/gone")
    subprocess.run(["mv", f"{t.dir}/away", f"{t.warehouse}/db/gone"], check=True)
    t.run(t.script(t.name, bounded=True))  # the sinks stand at different positions
    t.judge(ids)
    t.judge(ids, "gone")


def unknown_outcome():
    t = setting("unknown", properties=FAST + ",'commit.retry.total-timeout-ms'='1'")
    ids = feed(t, 0, 50)
    text = t.run(t.script(t.name, bounded=True), code=3, fault="commit.accepted:0:unknown")
    require("commit.unknown" in text, text[-1500:])
    t.judge(ids)  # it had landed
    t.run(t.script(t.name, bounded=True))
    t.judge(ids)


def lost_answer():
    """The answer is lost, the job finds its commit in the table and goes on."""
    t = setting("lost")
    ids = feed(t, 0, 50)
    text = t.run(t.script(t.name, bounded=True), fault="commit.accepted:1:unknown")
    require("commit.found-landed" in text, text[-1500:])
    t.judge(ids)


def lost_before():
    """No answer, and the commit has not landed: it is made again, once."""
    t = setting("lost-before")
    ids = feed(t, 0, 50)
    t.run(t.script(t.name, bounded=True), fault="commit.swap:1:unknown")
    t.judge(ids)


def conflicts():
    t = setting("conflicts")
    ids = feed(t, 0, 50)
    t.run(t.script(t.name, bounded=True), fault="commit.swap:1:conflict,commit.swap:2:conflict,commit.swap:3:conflict")
    t.judge(ids)


CASES = {"full_disk": full_disk, "read_only_disk": read_only_disk, "disk_errors": disk_errors, "catalog_locked": catalog_locked, "other_sink_goes_on": other_sink_goes_on, "broker_away": broker_away,
         "broker_away_at_start": broker_away_at_start, "two_copies": two_copies, "two_pipelines": two_pipelines, "sigterm": sigterm, "sink_fails_stop": lambda: sink_fails("stop"),
         "sink_fails_continue": lambda: sink_fails("continue"), "unknown_outcome": unknown_outcome, "lost_answer": lost_answer, "lost_before": lost_before, "conflicts": conflicts}
if os.geteuid() != 0:
    for name in ("full_disk", "read_only_disk"):
        print(f"left out (needs root): {CASES.pop(name).__name__}")
main(CASES)
