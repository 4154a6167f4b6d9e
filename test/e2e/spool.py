#!/usr/bin/env python3
"""The spool under the real binary, through the connector 'http': what was acknowledged is in the table once, whatever happens to the process and its directory.

usage: spool.py [CASE...]; it needs no broker. FRAZIL_LONG=1: more rounds."""
import glob, http.client, json, os, random, re, shutil, signal, subprocess, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, Failure, Job, Tables, main, require

LONG = bool(os.environ.get("FRAZIL_LONG"))
SOURCE = "CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num INT) WITH ('connector'='http','listen'='127.0.0.1:0','spool.max-size'='{max}');\n"


def script(t, max="64 mb", interval="300 ms", name=None, settings=None):
    options = {"pipeline.name": name or t.name, "execution.checkpointing.interval": interval, "frazil.state.dir": f"{t.dir}/state", "parallelism.default": "2"}
    options.update(settings or {})
    parts = [t.catalog(), "CREATE DATABASE IF NOT EXISTS c.db;\n", "CREATE TABLE IF NOT EXISTS c.db.t (id BIGINT, host STRING, num INT) PARTITIONED BY (host) WITH ('commit.retry.min-wait-ms'='50');\n",
             SOURCE.format(max=max)]
    parts += [f"SET '{k}' = '{v}';\n" for k, v in options.items()] + ["INSERT INTO c.db.t SELECT id, host, num FROM src;\n"]
    t.runs += 1
    path = f"{t.dir}/job{t.runs}.sql"
    with open(path, "w") as f:
        f.write("".join(parts))
    return path


def port(job):
    job.wait_log("source.listening")
    return int(re.search(r"event=source.listening.*?address=127\.0\.0\.1:(\d+)", job.text()).group(1))


def post(conn, ids):
    """True: acknowledged; False: refused, nothing was taken. Raises when the outcome is not known."""
    body = "\n".join(json.dumps({"id": i, "host": f"h{i % 3}", "num": i}) for i in ids)
    conn.request("POST", "/", body, {"Content-Type": "application/x-ndjson"})
    r = conn.getresponse()
    text = r.read()
    require(r.status in (200, 503), f"status {r.status}: {text[:300]}")
    return r.status == 200


def send(p, ids, each=10):
    conn = http.client.HTTPConnection("127.0.0.1", p, timeout=30)
    for i in range(0, len(ids), each):
        while not post(conn, ids[i:i + each]):
            time.sleep(0.05)
    conn.close()


class Senders:
    """Threads that post fresh ids, each once, until the server is gone. acked: those that were answered 200."""

    def __init__(self, p, first, n=3):
        self.acked, self.unknown, self.lock, self.next = [], [], threading.Lock(), first
        self.threads = [threading.Thread(target=self.run, args=(p,)) for _ in range(n)]
        for x in self.threads:
            x.start()

    def run(self, p):
        try:
            conn = http.client.HTTPConnection("127.0.0.1", p, timeout=10)
            while True:
                with self.lock:
                    ids = list(range(self.next, self.next + random.randint(1, 40)))
                    self.next += len(ids)
                try:
                    ok = post(conn, ids)
                except (OSError, http.client.HTTPException):
                    with self.lock:
                        self.unknown += ids
                    return
                if ok:
                    with self.lock:
                        self.acked += ids
        except OSError:
            return

    def join(self):
        for x in self.threads:
            x.join()
        return self.acked, self.unknown


def check(t, acked, unknown):
    got = t.ids()
    require(len(got) == len(set(got)), f"{len(got) - len(set(got))} rows are there twice\n{t.tail()}")
    lost = set(acked) - set(got)
    require(not lost, f"{len(lost)} acknowledged records are lost: {sorted(lost)[:10]}\n{t.tail()}")
    extra = set(got) - set(acked) - set(unknown)
    require(not extra, f"{len(extra)} rows that nobody sent")
    t.audit()


def settle(t, job, n):
    t.wait_rows(n, job=job)
    job.stop()


def joins_late():
    """A table that joins a source whose spool other sinks have had: it gets what the spool still holds, and the log says from where to where; the ones that were there before are told nothing, nor is it at its next start."""
    t = Tables(None, "spool-joins", tables=("t", "u"))
    one = script(t)

    def both():
        path = script(t)
        text = open(path).read()
        insert = "INSERT INTO c.db.t SELECT id, host, num FROM src;"
        open(path, "w").write(text.replace(insert, f"CREATE TABLE IF NOT EXISTS c.db.u (id BIGINT);\nSTATEMENT SET BEGIN\n{insert}\nINSERT INTO c.db.u SELECT id FROM src;\nEND;"))
        return path

    job = t.start(one)
    send(port(job), range(30))
    t.wait_rows(30, job=job)
    job.stop()
    require("positions.spool-tail" not in job.text(), f"an empty spool has no tail\n{job.text()}")
    job = t.start(both())
    p = port(job)
    told = re.findall(r"event=positions.spool-tail table=(\S+) source=(\S+) from=(\d+) to=(\d+)", job.text())
    require([x[0] for x in told] == ["c.db.u"] and told[0][1].endswith("src") and int(told[0][3]) - int(told[0][2]) == 30, f"{told}\n{job.text()}")
    send(p, range(30, 40))
    t.wait_rows(40, job=job)
    t.wait_rows(40, "u", job=job)
    job.stop()
    job = t.start(both())
    port(job)
    job.stop()
    require("positions.spool-tail" not in job.text(), job.text())
    t.judge(range(40))
    t.judge(range(40), "u")


def union():
    """UNION ALL of two sources (and of one twice) in a view, into a table and an archive: all branches are read side by side, are committed while they run, and go on from their positions after kill -9."""
    t = Tables(None, "spool-union")

    def both():
        path = script(t)
        text = open(path).read()
        insert = "INSERT INTO c.db.t SELECT id, host, num FROM src;"
        open(path, "w").write(text.replace(insert, f"""{SOURCE.format(max="64 mb").replace("TABLE src", "TABLE two")}
CREATE TEMPORARY TABLE arch (id BIGINT, host STRING) WITH ('connector'='firehose-s3','path'='file://{t.dir}/arch/','buffer.interval'='1 s','compression'='UNCOMPRESSED');
CREATE TEMPORARY VIEW v AS SELECT id, host, num FROM src UNION ALL SELECT id + 1000, host, num FROM two UNION ALL SELECT id + 2000, UPPER(host), num FROM src WHERE num >= 0;
STATEMENT SET BEGIN
INSERT INTO c.db.t SELECT id, host, num FROM v WHERE MOD(id, 1000) < 900;
INSERT INTO arch SELECT id, host FROM v;
END;"""))
        return path

    for n in range(3):
        job = t.start(both())
        job.wait_log("table=default_catalog.default_database.two connector=http")
        ports = {name: int(p) for name, p in re.findall(r"event=source.listening table=default_catalog.default_database.(src|two) .*?address=127\.0\.0\.1:(\d+)", job.text())}
        send(ports["src"], range(10 * n, 10 * n + 10))
        send(ports["two"], [*range(10 * n, 10 * n + 10), 900 + n])
        t.wait_rows(30 * (n + 1), job=job)
        job.kill() if n == 1 else job.stop()
    want = sorted([*range(30), *range(1000, 1030), *range(2000, 2030)])
    t.judge(want)
    lines = [json.loads(l)["id"] for f in glob.glob(f"{t.dir}/arch/**/*", recursive=True) if os.path.isfile(f) for l in open(f)]
    require(sorted(lines) == sorted(want + [1900, 1901, 1902]), f"the archive has {sorted(lines)}")


def kill():
    t = Tables(None, "spool-kill")
    seed = int(os.environ.get("FRAZIL_SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print(f"   seed {seed}")
    s, acked, unknown, first = script(t, interval="150 ms"), [], [], 0
    for i in range(40 if LONG else 8):
        fault = random.choice([None, None, "spool.durable:{n}:kill", "spool.fsync:{n}:kill", "spool.write:{n}:kill", "commit.accepted:{k}:kill", "report.before:{k}:kill"])
        job = t.start(s, fault=fault and fault.format(n=random.randint(2, 80), k=random.randint(1, 3)))
        try:
            senders = Senders(port(job), first)
        except Failure:
            if job.alive():
                raise
            continue  # killed before it listened
        if not fault:
            time.sleep(random.uniform(0.05, 0.8))
        else:
            until = time.monotonic() + 3
            while job.alive() and time.monotonic() < until:
                time.sleep(0.02)
        job.kill()
        a, u = senders.join()
        acked, unknown, first = acked + a, unknown + u, senders.next
    require(len(acked) > 100, f"only {len(acked)} records were acknowledged")
    job = t.start(s)
    settle(t, job, len(acked))
    check(t, acked, unknown)


def lost_directory():
    t = Tables(None, "spool-lost")
    s = script(t)
    for round_ in range(3):
        job = t.start(s)
        send(port(job), list(range(round_ * 100, round_ * 100 + 100)))
        t.wait_rows(round_ * 100 + 100, job=job)
        log = job.stop()
        require(("positions.other-spool" in log) == (round_ > 0), f"round {round_}: the log does not tell of the other spool as it should\n{log[-2000:]}")
        shutil.rmtree(f"{t.dir}/state/spool")
    t.judge(range(300))


def restored():
    """A spool from before its records were committed (a backup): it is the same one, and ends before the table's position. The words are those of a spool."""
    t = Tables(None, "spool-restored")
    s = script(t)
    job = t.start(s)
    p = port(job)
    job.stop()
    shutil.copytree(f"{t.dir}/state/spool", f"{t.dir}/backup")
    job = t.start(s)
    send(port(job), list(range(30)))
    settle(t, job, 30)
    shutil.rmtree(f"{t.dir}/state/spool")
    shutil.copytree(f"{t.dir}/backup", f"{t.dir}/state/spool")
    log = t.run(s, code=2, timeout=30)
    require("positions.beyond-end" in log and "the spool of table" in log and "ends at record 0" in log and "topic" not in log.split("positions.beyond-end")[1], log[-2000:])


def in_use():
    t = Tables(None, "spool-in-use")
    s = script(t)
    job = t.start(s)
    port(job)
    log = t.run(s, code=2, timeout=30)
    require("spool.in-use" in log, log[-2000:])
    send(port(job), list(range(50)))
    settle(t, job, 50)
    t.judge(range(50))


def other_pipeline():
    """Two pipelines with spools of their own feed one table."""
    t = Tables(None, "spool-two")
    jobs = [t.start(script(t, name=f"p{i}", settings={"frazil.state.dir": f"{t.dir}/state{i}"})) for i in range(2)]
    for i, j in enumerate(jobs):
        send(port(j), list(range(i * 100, i * 100 + 100)))
    t.wait_rows(200)
    for j in jobs:
        j.stop()
    for i in range(2):  # and both begin again
        j = t.start(script(t, name=f"p{i}", settings={"frazil.state.dir": f"{t.dir}/state{i}"}))
        send(port(j), list(range(200 + i * 100, 300 + i * 100)))
        settle(t, j, 300 + i * 100)
    t.judge(range(400))


def select():
    """SELECT in the shell shows what comes, and takes nothing away from the job."""
    t = Tables(None, "spool-select")
    log = f"{t.dir}/select.log"
    with open(log, "wb") as err:
        p = subprocess.Popen([BIN, "sql", "--format", "json", "-e", f"SET 'frazil.state.dir' = '{t.dir}/state'; " + SOURCE.format(max="8 mb") + "SELECT id, host FROM src;"], stdout=subprocess.PIPE, stderr=err, text=True)
    try:
        class Shell:
            text = staticmethod(lambda: open(log).read())
            wait_log = Job.wait_log
            alive = staticmethod(lambda: p.poll() is None)
        send(port(Shell()), list(range(20)), each=5)
        got = [json.loads(p.stdout.readline())["id"] for _ in range(20)]
        require(got == list(range(20)), f"the shell shows {got}")
    finally:
        p.send_signal(signal.SIGINT)
        p.wait(20)
    job = t.start(script(t))
    send(port(job), list(range(20, 40)))
    settle(t, job, 40)
    t.judge(range(40))


def full():
    """Nothing is committed for long: senders are refused when the spool is full, none of their records is lost, and all goes on after the commit."""
    t = Tables(None, "spool-full")
    job = t.start(script(t, max="1 mb", interval="5 s"))
    p, acked, refused = port(job), [], 0
    conn, until, first = http.client.HTTPConnection("127.0.0.1", p, timeout=30), time.monotonic() + 25, 0
    while time.monotonic() < until and not (refused and first > refused):
        if post(conn, range(first, first + 1000)):
            acked += range(first, first + 1000)
            first += 1000
        elif not refused:
            refused = first
        else:
            time.sleep(0.05)
    require(refused > 5000, f"never refused, {first} records sent")
    require(first > refused, "never taken again")
    settle(t, job, len(acked))
    t.judge(acked)


def damage():
    """Nothing has been committed when the process is killed; then a byte of the spool is flipped and its end is cut off."""
    t = Tables(None, "spool-damage")
    s = script(t, interval="1 h")
    job = t.start(s)
    p = port(job)
    for i in range(10):
        send(p, list(range(i * 100, i * 100 + 100)), each=100)
    job.kill()
    (seg,) = [f for f in glob.glob(f"{t.dir}/state/spool/*/*.seg") if os.path.getsize(f) > 1000]
    data = bytearray(open(seg, "rb").read())
    data[len(data) // 2] ^= 1
    open(seg, "wb").write(data[:-10])
    job = t.start(script(t))
    job.wait_log("spool.damaged")
    job.wait_log("spool.tail-cut")
    send(port(job), list(range(1000, 1100)), each=100)
    settle(t, job, 900)
    got = sorted(set(t.ids()))
    require(len(got) == 900 and got[-1] == 1099, f"{len(got)} rows, to {got[-1]}")
    require(os.path.getsize(seg + ".damaged") > 1000, "the damaged bytes are not kept")
    t.audit()


if __name__ == "__main__":
    main({f.__name__: f for f in (kill, joins_late, union, lost_directory, restored, in_use, other_pipeline, select, full, damage)})
