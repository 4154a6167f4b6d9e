#!/usr/bin/env python3
"""The commit matrix: each catalog with each thing that can happen to a commit, done to the real binary.

    matrix.py [--short] [--blind] [--jobs N] [--outage SECONDS] [--readers LIST] [CELL...]     a cell is KIND/NAME; KIND or NAME alone means all of them. By run.sh, which starts the peers.

A cell makes a table by a run that nothing disturbs, and then runs the job again and again over new records, each time with something in the way of its
commit. After it PyIceberg sees every row as often as it was produced, every live data file once, and every object that a snapshot refers to; `frazil audit` passes.
--blind: FRAZIL_BIN is the build that compares no positions. It must give wrong tables in at least half of the cells, else the matrix proves nothing.
--short: the cells that CI runs."""
import argparse
import collections
import concurrent.futures
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tools")]
from harness import BIN, Broker, Failure, require
from kinds import KINDS, Lake

warnings.filterwarnings("ignore")
OUTAGE, READERS = 60, ""
ROWS = 40


class Wrong(Failure):
    """The table is not what it must be; other failures are the test's own."""


class Cell(Lake):
    def __init__(self, kind, name, spec):
        properties = {"commit.retry.min-wait-ms": "50", "commit.retry.max-wait-ms": "500", **spec.properties}
        super().__init__(kind, f"m_{kind.name}_{name}_{os.getpid()}", Broker(), properties=", ".join(f"'{k}'='{v}'" for k, v in properties.items()))
        self.expected, self.next_id, self.disturbed = [], 0, 0
        if spec.prepare:
            spec.prepare(self)

    # ---- what is done ----

    def feed(self, n=ROWS):
        rows = [{"id": self.next_id + i, "host": f"h{i % 2}", "num": str(i)} for i in range(n)]
        self.next_id += n
        self.expected += [r["id"] for r in rows]
        for p in range(2):
            self.broker.produce(self.name, p, rows[p::2])

    def begin(self):
        """The first run: nothing in the way."""
        self.feed()
        self.run(self.job())
        return self

    def job(self):
        return self.script(self.name, bounded=True)

    def go(self, *rules, during=None, fault=None, code=0, env=None, timeout=120):
        """A run over new records. rules: the proxy's; fault: the program's. during: called when a request is held (or the program has stopped at the fault)."""
        self.feed()
        if self.proxy:
            self.proxy.rules(*rules)
        j = self.start(self.job(), fault, env)
        try:
            if during:
                self.wait_held(j, rules)
                during()
                self.proxy.release() if rules else j.signal(signal.SIGCONT)
            got = j.wait(timeout)
        finally:
            if j.alive():
                j.kill()
        require(got == code, f"exit code {got}, wanted {code}\n{j.text()[-3000:]}")
        for r in self.proxy.state()["rules"] if self.proxy else ():
            require(r["hits"], f"nothing was done by {r}\n{j.text()[-2000:]}")
        self.disturbed += 1
        return j.text()

    def attempts(self, fault, code):
        """A run that gives up with that exit code, and one that brings its rows in. How often the first came to the fault's point, and how long it took."""
        log, point, began = f"{self.dir}/points-{self.runs}", fault.split(":")[0], time.monotonic()
        self.go(fault=fault, code=code, env={"FRAZIL_FAULT_LOG": log})
        seconds = time.monotonic() - began
        with open(log) as f:
            n = sum(line.strip() == point for line in f)
        self.run(self.job())
        return n, seconds

    def wait_held(self, j, rules):
        if not rules:
            require(j.wait_stopped(60), f"the program did not come to its fault point\n{j.text()[-2000:]}")
            return
        until = time.monotonic() + 60
        while not all(r["hits"] for r in self.proxy.state()["rules"]):
            require(j.alive() and time.monotonic() < until, f"no request was held: {self.proxy.state()['rules']}\n{j.text()[-2000:]}")
            time.sleep(0.02)

    def append(self):
        """A stranger's append."""
        import pyarrow as pa
        t, ids = self.strange(), list(range(10**6 + self.next_id, 10**6 + self.next_id + 3))
        t.append(pa.table({"id": ids, "host": ["h0", "h1", "x"], "num": [1, 2, 3]}, schema=t.schema().as_arrow()))
        self.next_id += 3
        self.expected += ids

    def compact(self):
        """A stranger's rewrite: one snapshot takes all data files away and adds others with the same rows."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files
        t = self.strange()
        rows, old = t.scan().to_arrow(), [f.file for f in t.scan().plan_files()]
        with t.transaction() as tx:
            with tx.update_snapshot().overwrite() as o:
                for f in old:
                    o.delete_data_file(f)
                for f in _dataframe_to_data_files(tx.table_metadata, rows, t.io):
                    o.append_data_file(f)

    def rollback(self):
        """A stranger takes the newest snapshot back: its rows have to come again."""
        t = self.strange()
        t.manage_snapshots().rollback_to_snapshot(t.current_snapshot().parent_snapshot_id).commit()

    def expire(self):
        """A stranger's expiry leaves the newest snapshot only."""
        t = self.strange()
        t.maintenance.expire_snapshots().by_ids([s.snapshot_id for s in t.metadata.snapshots if s.snapshot_id != t.current_snapshot().snapshot_id]).commit()

    # ---- what must be ----

    def judge(self):
        t = self.strange()
        have, want = collections.Counter(t.scan().to_arrow()["id"].to_pylist()), collections.Counter(self.expected)
        lost, extra = sorted((want - have).elements()), sorted((have - want).elements())
        paths = [f.file.file_path for f in t.scan().plan_files()]
        if lost or extra:
            raise Wrong(f"{len(lost)} rows lost {lost[:6]}, {len(extra)} extra {extra[:6]}\n{self.tail()}")
        if len(paths) != len(set(paths)):
            raise Wrong(f"a data file is live twice\n{self.tail()}")
        gone = self.missing(t)
        if gone:
            raise Wrong(f"referenced, but not there: {sorted(gone)[:4]}\n{self.tail()}")
        p = subprocess.run([BIN, "audit", f"c.{self.db}.t", "-i", self.init(), "--files"], capture_output=True, text=True)
        if p.returncode:
            raise Wrong(f"audit gives {p.returncode}:\n{(p.stdout + p.stderr)[-3000:]}")
        if READERS:
            p = subprocess.run(["bash", os.path.join(HERE, "../peers/readers.sh"), "table", "--readers", READERS, "--verify", t.metadata_location], capture_output=True, text=True)
            if p.returncode or f"rows={len(self.expected)} " not in p.stdout:
                raise Wrong(f"the readers say of {len(self.expected)} rows:\n{(p.stdout + p.stderr)[-3000:]}")

    def missing(self, t):
        """Objects that snapshots of the table refer to and that do not exist."""
        named, read = set(), set()
        for s in t.metadata.snapshots:
            named.add(s.manifest_list)
            if not self.there(t, s.manifest_list):
                continue
            for m in s.manifests(t.io):
                named.add(m.manifest_path)
                if m.manifest_path not in read and self.there(t, m.manifest_path):
                    named.update(e.data_file.file_path for e in m.fetch_manifest_entry(t.io))
                read.add(m.manifest_path)
        named.update(e.metadata_file for e in t.metadata.metadata_log)
        return {n for n in named if not self.there(t, n)}

    @staticmethod
    def there(t, location):
        try:
            return t.io.new_input(location).exists()
        except OSError:  # S3 Tables: what is not there is looked for by a listing, which is refused
            return False


class Keys(http.server.ThreadingHTTPServer):
    """Hands out AWS credentials as a container's endpoint does; each time others."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.handed = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.handed += 1
            said = {"AccessKeyId": f"KEY{self.server.handed}", "SecretAccessKey": "secret", "Token": f"token{self.server.handed}",
                    "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    def environment(self):
        empty = {k: "" for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")}
        return {**empty, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{self.server_port}/keys", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_CONFIG_FILE": "/nonexistent"}


# ---- the cells ----

def lost(c):
    """The commit lands and its answer does not come; the same, and a stranger commits before the table is loaded again; neither request nor answer arrive. On the way,
    which the catalog may settle by itself; then within the program, where it cannot."""
    k = c.kind
    if k.proxied:
        c.go({**k.commit, "do": "drop-answer"})
        c.go({**k.commit, "do": "drop-answer"}, {**k.load, "do": "hold", "after": 0}, during=c.append)
        c.go({**k.swap, "do": "reset"})
    if k.http:
        c.go({**k.commit, "do": "short-answer"})
    c.go(fault="commit.accepted:1:unknown")
    c.go(fault="commit.accepted:1:unknown,commit.load:2:stop", during=c.append)
    c.go(fault="commit.swap:1:unknown")


def own_conflict(c):
    """The commit collides with itself: something on the way sends it twice and hands on the second answer, or says 409 after it has landed. Or a second copy of the job commits the
    same records first."""
    k = c.kind
    if k.http:
        c.go({**k.commit, "do": "duplicate"})
        c.go({**k.commit, "do": "duplicate", "together": True})
        c.go({**k.commit, "do": "answer", "when": "after", "status": 409, **k.refusal(409)})
        c.go({**k.commit, "do": "answer", "times": 2, "status": 409, **k.refusal(409)})
    for point in ("commit.checked",) if k.name == "hadoop" else ("commit.swap", "commit.checked"):  # at commit.swap it has locked the table
        c.go(fault=f"{point}:1:stop", during=lambda: c.run(c.job()))


def status(code):
    """That status after the commit has landed, before it, and to the loads that follow one that has landed."""
    def cell(c):
        k = c.kind
        said = {"do": "answer", "status": code, **k.refusal(code)}
        c.go({**k.commit, **said, "when": "after"})
        c.go({**k.commit, **said, "times": 3})
        c.go({**k.commit, **said, "when": "after"}, {**k.load, **said, "after": 0, "times": 10})
    return cell


def refused(c):
    """Where there are no HTTP statuses: the catalog says that it may be tried again, and after a commit without an answer it says so too."""
    k = c.kind
    if k.proxied:
        for state in ("40001", "57P01"):
            c.go({**k.swap, "do": "answer", "sqlstate": state})
        c.go({**k.commit, "do": "drop-answer"}, {**k.load, "do": "answer", "sqlstate": "57P03", "after": 0, "times": 3})
        c.go({**k.commit, "do": "delay", "seconds": 0}, {**k.load, "do": "answer", "sqlstate": "57P03", "after": 0, "times": 3}, fault="commit.accepted:1:unknown")
    else:
        c.go(fault="commit.swap:1:retry,commit.swap:2:retry,commit.manifest:3:eio")
        c.go(fault="commit.accepted:1:unknown,commit.load:2:retry")
        c.go(fault="commit.accepted:1:unknown,commit.load:2:unknown")


def throttled(c):
    """Too many requests: the commit is refused some times, and the loads after one without an answer."""
    k = c.kind
    said = {"do": "answer", "status": k.throttled, **k.refusal(k.throttled)}
    c.go({**k.commit, **said, "times": 6})
    c.go({**k.commit, "do": "drop-answer"}, {**k.load, **said, "after": 0, "times": 4})


def slow(c):
    """The answer comes later than it is waited for; the request arrives that late; the looks at the table after a commit without an answer take that long."""
    k = c.kind
    c.more = k.impatient
    for when in ("after", "before"):
        c.go({**k.commit, "do": "delay", "seconds": 4, "when": when})
    c.go({**k.commit, "do": "drop-answer"}, *({**k.load, "do": "delay", "seconds": 4, "nth": n, "after": 0} for n in (1, 2)))


def store(c):
    """What happens to the objects that a commit is made of: data, manifests, manifest list, metadata; on their way to S3 and back."""
    objects = {"data": r"\.parquet$", "manifest": r"-m\d+\.avro$", "manifest list": r"/snap-[^/]*\.avro$", "metadata": r"\.metadata\.json$"}
    if c.kind.name in ("rest", "nessie"):
        del objects["metadata"]  # the server writes it
    busy = {"do": "answer", "status": 503, "answer": "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"}
    listen, keys = {"listen": c.proxy.ports[1]}, Keys()
    for path in objects.values():
        put = {**listen, "method": "PUT", "path": path}
        c.go({**put, "do": "drop-answer"}, {**put, **busy, "nth": 2, "times": 2})
    c.go({**listen, "method": "PUT", "path": objects["manifest"], "do": "duplicate"}, {**listen, "method": "PUT", "path": objects["manifest list"], "do": "late", "seconds": 1})
    c.go({**listen, "method": "GET", "path": r"\.avro$", "do": "short-answer"}, {**listen, "method": "GET", "path": r"\.avro$", "do": "reset", "nth": 2})
    try:
        c.go({**listen, "method": "PUT", "path": objects["data"], "do": "expire", "style": "s3"}, env=keys.environment())
        c.go({**listen, "method": "PUT", "path": objects["manifest"], "do": "expire", "style": "s3"}, env=keys.environment())
    finally:
        keys.shutdown()
        keys.server_close()
    c.go({**listen, "method": "PUT", "path": objects["manifest"], "do": "down", "seconds": 5})


def foreign(c, act):
    """A stranger commits between our load and our commit; and between our commit that got no answer and our look at the table."""
    k = c.kind
    if k.proxied:
        c.go({**k.swap, "do": "hold", "seconds": 60}, during=act)
        c.go({**k.commit, "do": "drop-answer"}, {**k.load, "do": "hold", "seconds": 60, "after": 0}, during=act)
    else:
        c.go(fault="commit.swap:1:stop", during=act)
    c.go(fault="commit.accepted:1:unknown,commit.load:2:stop", during=act)


def expired(c):
    """Credentials expire at the commit, and at the load after a commit without an answer."""
    k, keys = c.kind, Keys()
    try:
        spoil = {"do": "expire", "style": k.expired}
        c.go({**k.commit, **spoil}, env=keys.environment())
        c.go({**k.commit, "do": "drop-answer"}, {**k.load, **spoil, "after": 0}, env=keys.environment())
        require(keys.handed >= 4, f"credentials were asked for {keys.handed} times in two runs")
    finally:
        keys.shutdown()
        keys.server_close()


def refused_token(c):
    """401 at the commit, and at the load after a commit without an answer."""
    k, spoil = c.kind, {"do": "expire", "style": "iceberg", "times": 1}
    c.go({**k.commit, **spoil})
    c.go({**k.commit, "do": "drop-answer"}, {**k.load, **spoil, "after": 0})


def down(c):
    """The commit lands, then nothing can be reached for a minute; or nothing from before the commit on."""
    k = c.kind
    if k.proxied:
        c.go({**k.commit, "do": "down", "when": "after", "seconds": OUTAGE}, timeout=OUTAGE + 120)
        c.go({**k.swap, "do": "down", "seconds": 3})
        return
    for fault, seconds in (("commit.accepted:1:unknown,commit.load:2:stop", OUTAGE), ("commit.checked:1:stop", 3)):
        began, over = threading.Event(), threading.Thread(target=lambda: unreachable(c, began, seconds))
        try:
            c.go(fault=fault, during=lambda: (over.start(), began.wait(20)), timeout=OUTAGE + 120)
        finally:
            over.join()


def unreachable(c, began, seconds):
    """SQLite: locked by another program. Local files: read-only."""
    if c.kind.name == "sqlite":
        db = sqlite3.connect(f"{c.dir}/catalog.db", isolation_level=None, timeout=10)
        db.execute("BEGIN EXCLUSIVE")
        began.set()
        time.sleep(seconds)
        db.execute("ROLLBACK")
        db.close()
    else:
        mount("-o", "remount,ro", f"{c.dir}/disk")
        began.set()
        time.sleep(seconds)
        mount("-o", "remount,rw", f"{c.dir}/disk")


def mount(*args):
    subprocess.run(["mount", *args], check=True)


def on_tmpfs(c):
    os.makedirs(f"{c.dir}/disk")
    mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", f"{c.dir}/disk")
    c.at_end = lambda: subprocess.run(["umount", "-l", f"{c.dir}/disk"], check=True)
    c.warehouse = f"{c.dir}/disk/wh"


def late(c):
    """The connection breaks, and the request still arrives: after the next load, after the next commit, or some time later."""
    k = c.kind
    if k.http:
        c.go({**k.commit, "do": "late", "until": k.load})
        c.go({**k.commit, "do": "late", "until": k.commit, "seconds": 20})
    c.go({**k.commit, "do": "late", "seconds": 1.5, "until": {"path": "^never$"}})


def seeded(c):
    """A share of all writes, of reads and of syncs fails."""
    for seed in range(1, 9):
        c.go(env={"FRAZIL_STORE_SEED": f"{seed}:40"})


LIMITS = {"commit.retry.num-retries": "2", "commit.retry.total-timeout-ms": "4000"}


def limits(c):
    """commit.retry.num-retries counts conflicts only; what is no conflict is tried until commit.retry.total-timeout-ms."""
    c.go(fault=",".join(f"commit.swap:{n}:{'unknown' if n % 2 else 'retry'}" for n in range(1, 9)))
    for action, code in (("retry", 2), ("unknown", 3)):
        n, seconds = c.attempts(f"commit.swap:0:{action}", code)
        require(n > 3 and seconds >= 4, f"{action}: given up after {n} attempts in {seconds:.1f} s")
    c.go(fault="commit.swap:1:conflict,commit.swap:2:conflict")
    text = c.go(fault="commit.swap:1:conflict,commit.swap:2:conflict,commit.swap:3:conflict")
    require(text.count("event=sink.waiting") == 1, f"three conflicts where two may be tried again: the sink begins anew once\n{text[-3000:]}")


class Spec:
    def __init__(self, act, kinds, short=False, prepare=None, properties=None, root=False):
        self.act, self.kinds, self.short, self.prepare, self.properties, self.root = act, kinds.split(), short, prepare, properties or {}, root


MUST = "glue s3tables rest"
HTTP, ALL = f"{MUST} nessie", f"sqlite hadoop postgres {MUST} nessie"
CELLS = [
    ("lost", Spec(lost, ALL, short=True)),
    ("own-conflict", Spec(own_conflict, ALL, short=True)),
    *((f"status-{code}", Spec(status(code), HTTP, short=code == 503)) for code in (500, 502, 503, 504)),
    ("throttled", Spec(throttled, HTTP)),
    ("slow", Spec(slow, "postgres " + HTTP)),
    ("store", Spec(store, MUST)),  # Nessie tells its own way to S3
    ("refused", Spec(refused, "sqlite hadoop postgres")),
    ("append", Spec(lambda c: foreign(c, c.append), ALL)),
    # Nessie lists the newest snapshot only: after a rewrite by a stranger nothing proves the positions, and the job refuses
    ("compaction", Spec(lambda c: foreign(c, c.compact), ALL.removesuffix(" nessie"), short=True)),
    ("rollback", Spec(lambda c: (c.go(), foreign(c, c.rollback)), ALL.removesuffix(" nessie"))),
    ("expiry", Spec(lambda c: (c.go(), foreign(c, c.expire)), ALL.removesuffix(" nessie"))),
    ("expired", Spec(expired, "glue s3tables")),
    ("expired", Spec(refused_token, "rest")),
    ("down", Spec(down, "sqlite postgres " + HTTP)),
    ("down", Spec(down, "hadoop", prepare=on_tmpfs, root=True)),
    ("late", Spec(late, "postgres " + HTTP, short=True)),
    ("seeded", Spec(seeded, "sqlite hadoop")),
    ("limits", Spec(limits, ALL, properties=LIMITS)),
]


def one(kind, name, spec):
    """(outcome, text): outcome is ok, wrong (the table), failed (anything else)."""
    began, c = time.monotonic(), None
    try:
        c = Cell(kind, name, spec)
        c.begin()
        spec.act(c)
        c.judge()
        return "ok", f"{c.disturbed} runs, {time.monotonic() - began:.0f} s"
    except Wrong as e:
        return "wrong", str(e)
    except Failure as e:
        return "failed", str(e)
    except Exception:
        return "failed", traceback.format_exc()
    finally:
        if c:
            c.close()


def chosen(a):
    for kind in KINDS.values():
        for name, spec in CELLS:
            if kind.name in spec.kinds and (spec.short or not a.short) and (kind.name != "nessie" or os.environ.get("FRAZIL_NESSIE")) and (not a.cells or {kind.name, name, f"{kind.name}/{name}"} & set(a.cells)):
                if spec.root and os.geteuid() != 0:
                    print(f"left out (needs root): {kind.name}/{name}")
                else:
                    yield kind, name, spec


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--short", action="store_true")
    a.add_argument("--blind", action="store_true")
    a.add_argument("--jobs", type=int, default=3)
    a.add_argument("--outage", type=int, default=60)
    a.add_argument("--readers", default="", help="who reads the tables at the end too: duckdb, java")
    a.add_argument("cells", nargs="*")
    a = a.parse_args()
    global OUTAGE, READERS
    OUTAGE, READERS = a.outage, a.readers
    found = collections.Counter()
    plan = list(chosen(a))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        jobs = {pool.submit(one, *p): f"{p[0].name}/{p[1]}" for p in plan}
        for f in concurrent.futures.as_completed(jobs):
            outcome, text = f.result()
            found[outcome] += 1
            if a.blind and outcome == "wrong":
                text = text.splitlines()[0]
            print(f"{outcome:6} {jobs[f]}: {text}", flush=True)
    said = f"matrix.py: {len(plan)} cells: {found['ok']} ok, {found['wrong']} with a wrong table, {found['failed']} failed"
    print(said + (", without the comparison of positions" if a.blind else ""))
    if a.blind:
        sys.exit(0 if plan and 2 * found["wrong"] >= len(plan) else "matrix.py: the cells do not find out that positions are not compared")
    sys.exit(0 if plan and found["ok"] == len(plan) else 1)


main()
