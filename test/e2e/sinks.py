#!/usr/bin/env python3
"""One listener, three sinks: an archive, a table, and a table whose catalog is locked for a while. The two take everything meanwhile; the spool keeps what the third has not, and is trimmed when it has caught up;
each record is in each of the three once, also when the process is killed while the third is behind.

usage: sinks.py [CASE...]; it needs no broker."""
import atexit, gzip, http.client, json, os, re, sqlite3, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, Tables, main, require

PATIENCE = 120
SEGMENT = (32 << 20) // 16


class Pipeline:
    def __init__(self, name):
        t = self.t = Tables(None, f"sinks-{name}")
        slow = f"CREATE CATALOG slow WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{t.dir}/slow.db','warehouse'='file://{t.dir}/slow-wh','frazil.sql.busy-timeout'='100 ms');\n"
        columns = "id BIGINT, pad STRING"
        script = [t.catalog(), slow] + [f"CREATE DATABASE IF NOT EXISTS {c}.db;\nCREATE TABLE IF NOT EXISTS {c}.db.t ({columns}) WITH ('commit.retry.min-wait-ms'='50','commit.retry.max-wait-ms'='500');\n" for c in ("c", "slow")]
        options = {"pipeline.name": t.name, "execution.checkpointing.interval": "300 ms", "frazil.state.dir": f"{t.dir}/state", "parallelism.default": "2"}
        script += [f"SET '{k}' = '{v}';\n" for k, v in options.items()]
        script.append(f"CREATE TEMPORARY TABLE src ({columns}) WITH ('connector'='http','listen'='127.0.0.1:0','spool.max-size'='32 mb');\n")
        script.append(f"CREATE TEMPORARY TABLE archive ({columns}) WITH ('connector'='firehose-s3','path'='file://{t.dir}/archive/','buffer.interval'='1 s','buffer.size'='1 MiB','compression'='GZIP');\n")
        script += ["STATEMENT SET BEGIN\n"] + [f"INSERT INTO {to} SELECT id, pad FROM src;\n" for to in ("slow.db.t", "archive", "c.db.t")] + ["END;\n"]
        self.script, self.sent, self.lock = f"{t.dir}/job.sql", 0, None
        with open(self.script, "w") as f:
            f.write("".join(script))
        with open(f"{t.dir}/slow.sql", "w") as f:
            f.write(slow)
        self.job = None
        atexit.register(lambda: self.job and self.job.alive() and self.job.kill())  # of a case that fails

    def start(self):
        self.job = self.t.start(self.script)
        self.job.wait_log("source.listening", PATIENCE)
        self.port = int(re.search(r"event=source.listening.*?address=127\.0\.0\.1:(\d+)", self.job.text()).group(1))

    def send(self, n, each=100):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        for first in range(self.sent, self.sent + n, each):
            body = "".join(json.dumps({"id": i, "pad": f"{i}" * 100}) + "\n" for i in range(first, first + each))
            deadline = time.monotonic() + PATIENCE
            while True:
                conn.request("POST", "/", body, {"Content-Type": "application/x-ndjson"})
                r = conn.getresponse()
                text = r.read()
                if r.status == 200:
                    break
                require(r.status == 503 and time.monotonic() < deadline, f"{r.status} {text[:200]}")
                time.sleep(0.1)
        self.sent += n
        conn.close()

    def archived(self):
        out = []
        for d, _, files in os.walk(f"{self.t.dir}/archive"):
            for f in files:
                if f.startswith(".") or "errors" in d:
                    continue
                with open(os.path.join(d, f), "rb") as g:
                    out += [json.loads(l)["id"] for l in gzip.decompress(g.read()).splitlines()]
        return out

    def slow_ids(self):
        p = subprocess.run([BIN, "sql", "-i", f"{self.t.dir}/slow.sql", "--format", "json", "-e", "SELECT id FROM slow.db.t"], capture_output=True, text=True)
        require(p.returncode == 0, p.stderr)
        return [json.loads(l)["id"] for l in p.stdout.splitlines() if l.startswith("{")]

    def spooled(self):
        """Bytes that lie in the spool's segments."""
        return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(f"{self.t.dir}/state/spool") for f in files if f.endswith(".seg"))

    def segments(self):
        return sorted(f for d, _, files in os.walk(f"{self.t.dir}/state/spool") for f in files if f.endswith(".seg"))

    def wait(self, what, done):
        deadline = time.monotonic() + PATIENCE
        while not done():
            require(self.job.alive(), f"the job ended\n{self.job.text()[-3000:]}")
            require(time.monotonic() < deadline, f"{what} did not come\n{self.job.text()[-3000:]}")
            time.sleep(0.3)

    def all_but_slow(self):
        self.wait("the archive and the table", lambda: self.t.count() >= self.sent and len(self.archived()) >= self.sent)
        require(sorted(self.archived()) == sorted(self.t.ids()) == list(range(self.sent)), "the archive or the table has other records than were sent")

    def hold_up(self):
        """Locks the slow table's catalog: nobody reads or writes it until let_go."""
        self.lock = sqlite3.connect(f"{self.t.dir}/slow.db", timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        self.lock.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.lock.execute("BEGIN EXCLUSIVE")

    def let_go(self):
        self.lock.execute("ROLLBACK")
        self.lock.close()

    def end(self, behind):
        self.wait("what the slow table was behind", lambda: len(self.slow_ids()) >= self.sent)
        self.send(100)
        self.wait("the trimming of the spool", lambda: not set(self.segments()) & set(behind[:-1]) and self.spooled() <= 2 * SEGMENT)
        self.all_but_slow()
        self.wait("the last records", lambda: len(self.slow_ids()) >= self.sent)
        self.job.stop()
        for got in (self.slow_ids(), self.archived(), self.t.ids()):
            require(sorted(got) == list(range(self.sent)), f"{len(got)} records, {len(set(got))} of them different; {self.sent} were sent")
        self.t.audit()
        p = subprocess.run([BIN, "audit", "slow.db.t", "-i", f"{self.t.dir}/slow.sql", "--files"], capture_output=True, text=True)
        require(p.returncode == 0, p.stdout + p.stderr)


def behind():
    p = Pipeline("behind")
    p.start()
    p.send(500)
    p.all_but_slow()
    p.wait("the slow table", lambda: len(p.slow_ids()) == p.sent)
    p.hold_up()
    for _ in range(4):  # the others get all of it while it is behind
        p.send(5000)
        p.all_but_slow()
    held = p.segments()
    require(re.search(r"event=(sink.waiting|commit.retry)\b.*locked", p.job.text()), f"nothing says that the table waits\n{p.job.text()[-3000:]}")
    require(len(held) >= 3 and p.spooled() > 3 * SEGMENT, f"the spool was trimmed although a table is behind: {held}")
    p.let_go()
    p.end(held)
    return f"{p.sent} records, {len(held)} segments were kept"


def killed():
    """kill -9 while the slow table is behind, and again while it catches up."""
    p = Pipeline("killed")
    p.start()
    p.send(500)
    for r in range(3):
        p.wait("the slow table", lambda: len(p.slow_ids()) >= 500)
        p.hold_up()
        p.send(5000)
        if r != 1:
            p.all_but_slow()
        held = p.segments()
        p.job.kill()
        p.let_go()
        p.start()
        time.sleep(0.2 * r)  # on its way
        p.job.kill()
        p.start()
    require(len(held) >= 2, f"the spool was trimmed although a table is behind: {held}")
    p.end(held)
    return f"{p.sent} records, {len(held)} segments were kept"


CASES = {"behind": behind, "killed": killed}
if __name__ == "__main__":
    main(CASES)
