#!/usr/bin/env python3
"""Files with the real binary. Followed ones ('source.monitor-interval'): lines that are written in pieces, rotation by renaming and by copying and truncating, by logrotate with all that it
can do (packing at once or a rotation later, gzip and zstd, dates, another directory), files that are removed, kill -9 and restarts in between: every line is in the table exactly once. Those that are read once: packed ones, a damaged one, standard input.

usage: tail.py. TAIL_ROUNDS: number of kills (default 4); SEED."""
import gzip, json, os, random, resource, shutil, signal, subprocess, sys, tempfile, threading, time

BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", "build/frazil"))
ROUNDS = int(os.environ.get("TAIL_ROUNDS", "4"))
DIR = tempfile.mkdtemp(prefix="frazil-tail.")
seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
rnd = random.Random(seed)


def catalog(name):
    return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{DIR}/{name}.db','warehouse'='file://{DIR}/{name}-wh');\n"


def script(name, path, options=""):
    sql = f"{DIR}/{name}.sql"
    with open(sql, "w") as f:
        f.write(f"""SET 'pipeline.name' = '{name}';
SET 'frazil.state.dir' = '{DIR}/{name}-state';
SET 'execution.checkpointing.interval' = '200 ms';
{catalog(name)}CREATE DATABASE IF NOT EXISTS c.d;
CREATE TABLE IF NOT EXISTS c.d.t (id BIGINT, w STRING);
CREATE TEMPORARY TABLE s (id BIGINT, w STRING) WITH ('connector'='filesystem','format'='json','path'='{path}'{options});
INSERT INTO c.d.t SELECT id, w FROM s;
""")
    return sql


def ids(name):
    with open(f"{DIR}/q.sql", "w") as f:
        f.write(catalog(name) + "SELECT id FROM c.d.t;")
    p = subprocess.run([BIN, "sql", "-f", f"{DIR}/q.sql", "--format", "json"], capture_output=True, text=True)
    if "sql.table-not-found" in p.stderr or "no database" in p.stderr:
        return []  # the job has not got there yet
    assert p.returncode == 0, p.stdout + p.stderr
    return sorted(json.loads(l)["id"] for l in p.stdout.splitlines() if l.startswith("{"))


def until(name, want, job=None):
    """Waits until the table has these rows; rows that are there twice are never right."""
    end = time.time() + 60
    while (got := ids(name)) != want:
        assert len(set(got)) == len(got), f"seed {seed}: {len(got) - len(set(got))} lines are there twice"
        assert job is None or job.poll() is None, f"seed {seed}: the job ended"
        assert time.time() < end, f"seed {seed}: {len(want)} lines were written, {len(got)} are in the table; missing {sorted(set(want) - set(got))[:5]}, unknown {sorted(set(got) - set(want))[:5]}"
        time.sleep(0.2)


class Writer(threading.Thread):
    """Writes app.log until told to stop; rotates it. A copy and the truncation are one step to it, as a program that is stopped meanwhile would have it."""

    def __init__(self, logs, name="app.log", first=0):
        super().__init__()
        self.logs, self.name, self.lock, self.over, self.first, self.n, self.rotated = logs, name, threading.Lock(), threading.Event(), first, first, 0
        self.open()

    def open(self):
        self.f = open(f"{self.logs}/{self.name}", "ab", buffering=0)

    def finish(self):
        self.over.set()
        self.join()

    def run(self):
        while not self.over.is_set():
            with self.lock:
                for _ in range(rnd.randrange(1, 50)):
                    line = json.dumps({"id": self.n, "w": "w" * rnd.randrange(200)}).encode() + b"\n"
                    cut = rnd.randrange(len(line)) if rnd.random() < 0.2 else 0
                    self.f.write(line[:cut])
                    if cut:
                        time.sleep(0.002)
                    self.f.write(line[cut:])
                    self.n += 1
            time.sleep(0.005)

    def shift(self):
        for i in range(98, 0, -1):
            if os.path.exists(f"{self.logs}/app.log.{i}"):
                os.rename(f"{self.logs}/app.log.{i}", f"{self.logs}/app.log.{i + 1}")

    def rename(self):
        self.shift()
        os.rename(f"{self.logs}/app.log", f"{self.logs}/app.log.1")
        time.sleep(rnd.random() * 0.2)  # the old file is still written
        with self.lock:
            self.f.close()
            self.open()

    def copytruncate(self):
        with self.lock:
            self.shift()
            shutil.copyfile(f"{self.logs}/app.log", f"{self.logs}/app.log.1")
            time.sleep(rnd.random() * 0.05)
            os.truncate(f"{self.logs}/app.log", 0)


def test_followed():
    logs = f"{DIR}/logs"
    os.mkdir(logs)
    path = script("followed", logs, ",'source.monitor-interval'='50 ms'")
    w = Writer(logs)
    w.start()
    log = open(f"{DIR}/followed.log", "ab")
    try:
        for r in range(ROUNDS + 1):
            job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
            end = time.time() + 1 + rnd.random() * 1.5
            while time.time() < end:
                time.sleep(rnd.random() * 0.4)
                rnd.choice([w.rename, w.copytruncate])()
            if r < ROUNDS:
                job.kill()
                job.wait()
                w.rename() if rnd.random() < 0.5 else w.copytruncate()  # while nobody looks
        w.over.set()
        w.join()
        until("followed", list(range(w.n)), job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
        # a restart adds nothing, and goes on; a removed file is read to its end, the last line has no LF
        job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
        time.sleep(1)
        w.f.write(b'{"id":%d}\n{"id":%d}' % (w.n, w.n + 1))
        until("followed", list(range(w.n + 1)), job)
        os.unlink(f"{logs}/app.log")
        until("followed", list(range(w.n + 2)), job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
    except BaseException:
        log.flush()
        print(open(f"{DIR}/followed.log").read()[-3000:])
        raise
    finally:
        w.over.set()
        if job.poll() is None:
            job.kill()
            job.wait()
    print(f"  {w.n + 2} lines, {len(os.listdir(logs))} files, {ROUNDS} kills")


ROTATION = {  # log: directives of logrotate; and whether its writer goes on with the old file for a while
    "app.log": ("create\ncompress\n", False),
    "delayed.log": ("create\ncompress\ndelaycompress\n", True),
    "copied.log": ("copytruncate\ncompress\n", False),
    "dated.log": ("create\ndateext\ndateformat -%Y%m%d-%s\nolddir {old}\ncompress\n", False),
    "zst.log": ("create\ncompress\ncompresscmd /usr/bin/zstd\nuncompresscmd /usr/bin/unzstd\ncompressext .zst\ncompressoptions -q\n", False),
    "late.log": ("copytruncate\ncompress\ndelaycompress\n", False),
}


def rotate(w, work):
    """What a postrotate script would have the writer do: it has opened its file anew before the old one is packed. A copy and the truncation are one step to it."""
    directives, goes_on = ROTATION[w.name]
    while "dateext" in directives and int(time.time()) <= w.rotated:  # names have seconds
        time.sleep(0.05)
    w.rotated = int(time.time()) + 1
    conf = f"{work}/{w.name}.conf"
    with open(conf, "w") as f:
        f.write(f"{w.logs}/{w.name} {{\nrotate 99\nmissingok\n{directives.format(old=w.logs + '/old')}}}\n")
    if not goes_on:
        w.lock.acquire()
    try:
        p = subprocess.run(["logrotate", "-f", "-s", f"{work}/{w.name}.state", conf], capture_output=True, text=True)
        assert p.returncode == 0, p.stderr
        if "copytruncate" not in directives:
            with w.lock if goes_on else open(os.devnull):
                time.sleep(rnd.random() * 0.05)
                w.f.close()
                w.open()
    finally:
        if not goes_on:
            w.lock.release()


def test_logrotate():
    logs, work = f"{DIR}/rotated", f"{DIR}/logrotate"
    os.makedirs(f"{logs}/old")
    os.mkdir(work)
    for d in (logs, f"{logs}/old", work):
        os.chmod(d, 0o755)
    path = script("rotated", logs, ",'source.monitor-interval'='50 ms'")
    writers = [Writer(logs, name, i * 10**9) for i, name in enumerate(ROTATION)]
    log, job, kills = open(f"{DIR}/rotated.log", "ab"), None, ROUNDS
    try:
        for w in writers:
            w.start()
        for r in range(kills + 1):
            job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
            for _ in range(rnd.randrange(2, 8)):
                time.sleep(rnd.random() * 0.4)
                rotate(rnd.choice(writers), work)
            if r < kills:
                job.kill()
                job.wait()
                for w in rnd.sample(writers, 4):  # while nobody looks; more than once, so that all of it is packed
                    for _ in range(rnd.randrange(1, 3)):
                        time.sleep(0.01)
                        rotate(w, work)
        for w in writers:
            w.finish()
        want = sorted(x for w in writers for x in range(w.first, w.n))
        until("rotated", want, job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
        # once more from the positions, everything packed: nothing is read again, and what comes is
        for w in writers:
            rotate(w, work)
            w.f.write(b'{"id":%d}\n' % w.n)
            w.n += 1
        job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
        want = sorted(x for w in writers for x in range(w.first, w.n))
        until("rotated", want, job)
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
        audit("rotated")
    except BaseException:
        log.flush()
        print(f"seed {seed}\n" + open(f"{DIR}/rotated.log").read()[-6000:])
        raise
    finally:
        for w in writers:
            w.finish()
        if job and job.poll() is None:
            job.kill()
            job.wait()
    files = [f for _, _, fs in os.walk(logs) for f in fs]
    packed = [f for f in files if f.endswith((".gz", ".zst"))]
    assert len(packed) > 8 and any(f.endswith(".zst") for f in packed), files
    print(f"  {sum(w.n - w.first for w in writers)} lines, {len(files)} files, {len(packed)} of them packed, {kills} kills")


def test_packed_large():
    """A large packed file whose plain one was read in part, and many small ones; killed while they are unpacked, again and again."""
    logs, n = f"{DIR}/large", 400000
    os.mkdir(logs)
    path = script("large", logs, ",'source.monitor-interval'='50 ms'")
    text = b"".join(b'{"id":%d,"w":"%s"}\n' % (i, b"w" * (i % 150)) for i in range(n))
    with open(f"{logs}/app.log", "wb") as f:
        f.write(text[:len(text) // 10])
    log = open(f"{DIR}/large.log", "ab")
    job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
    try:
        end = time.time() + 60
        while not ids("large"):
            assert job.poll() is None and time.time() < end
            time.sleep(0.1)
        job.kill()
        job.wait()
        os.unlink(f"{logs}/app.log")
        with gzip.open(f"{logs}/app.log.1.gz", "wb", 1) as f:
            f.write(text)
        for i in range(1500):  # more than a process may have open
            with open(f"{logs}/many.log.{i}.gz", "wb") as f:
                f.write(gzip.compress(lines(n + 2 * i, 2), 1))
        got, kills = len(ids("large")), 0
        while got < n and kills < 3 * ROUNDS:
            job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
            time.sleep(0.3 + rnd.random() * 0.5)
            job.kill()
            job.wait()
            now = ids("large")
            assert len(set(now)) == len(now), f"seed {seed}"
            got, kills = len(now), kills + 1
        job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
        until("large", list(range(n + 3000)), job)
        peak = next(int(l.split()[1]) for l in open(f"/proc/{job.pid}/status") if l.startswith("VmHWM"))
        assert peak < 160 << 10, f"{peak >> 10} MiB"
        job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0
        audit("large")
    except BaseException:
        log.flush()
        print(f"seed {seed}\n" + open(f"{DIR}/large.log").read()[-4000:])
        raise
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    print(f"  {len(text) >> 20} MiB of text, {kills} kills, peak {peak >> 10} MiB")


def audit(name):
    with open(f"{DIR}/a.sql", "w") as f:
        f.write(catalog(name))
    p = subprocess.run([BIN, "audit", "-i", f"{DIR}/a.sql", "c.d.t"], capture_output=True, text=True)
    assert p.returncode == 0, p.stdout + p.stderr


def positions(name):
    """{topic: [partition, next, ...]} of the newest snapshot, as the catalog's own metadata has it."""
    import sqlite3
    with sqlite3.connect(f"{DIR}/{name}.db") as db:
        location = db.execute("SELECT metadata_location FROM iceberg_tables").fetchone()[0]
    m = json.load(open(location.removeprefix("file://")))
    now = next(s for s in m["snapshots"] if s["snapshot-id"] == m["current-snapshot-id"])
    return {t: p[0] for t, p in json.loads(now["summary"]["frazil.positions"])["s"]["files"].items()}


def test_retired():
    """Positions of logs that are gone do not grow without end; one that comes back is known, as long as no more than a hundred others went after it."""
    logs = f"{DIR}/retired"
    os.mkdir(logs)
    path = script("retired", logs, ",'source.monitor-interval'='50 ms'")

    def write(name, *numbers):
        with open(f"{logs}/{name}", "wb") as f:
            f.write(b"".join(b'{"id":%d}\n' % n for n in numbers))

    def job_until(n):
        job = subprocess.Popen([BIN, "run", path], stdout=log, stderr=log)
        try:
            until("retired", list(range(n)), job)
        finally:
            job.send_signal(signal.SIGTERM)
            code = job.wait(60)
        assert code == 0

    log = open(f"{DIR}/retired.log", "ab")
    write("app.log.2", 0, 1)
    write("app.log.1", 2, 3)
    write("app.log", 4)
    job_until(5)
    assert len(positions("retired")) == 3 and all(len(p) == 5 for p in positions("retired").values()), positions("retired")
    os.rename(f"{logs}/app.log.2", f"{DIR}/away")
    write("app.log", 4, 5)  # a commit
    job_until(6)
    gone = [p for p in positions("retired").values() if len(p) == 4]
    assert len(positions("retired")) == 3 and len(gone) == 1 and gone[0][2] is None and abs(gone[0][3] / 1000 - time.time()) < 600, positions("retired")
    with open(f"{DIR}/away", "rb") as f, gzip.open(f"{logs}/app.log.7.gz", "wb") as g:
        g.write(f.read())
    write("app.log", 4, 5, 6)
    job_until(7)
    assert sorted(len(p) for p in positions("retired").values()) == [2, 5, 5], positions("retired")
    audit("retired")


def run(name, stdin=None):
    return subprocess.run([BIN, "run", f"{DIR}/{name}.sql"], input=stdin, capture_output=True)


def lines(first, n):
    return b"".join(b'{"id":%d,"w":"x"}\n' % i for i in range(first, first + n))


def test_packed():
    d = f"{DIR}/packed"
    os.mkdir(d)
    with open(f"{d}/a.json.gz", "wb") as f:
        f.write(gzip.compress(lines(0, 1000)) + gzip.compress(lines(1000, 1000)))
    with open(f"{d}/b", "wb") as f:
        f.write(gzip.compress(lines(2000, 1000)))
    with open(f"{d}/c.json", "wb") as f:
        f.write(lines(3000, 1000))
    script("packed", d)
    p = run("packed")
    assert p.returncode == 0, p.stderr.decode()
    assert ids("packed") == list(range(4000))
    with open(f"{d}/d.json.gz", "wb") as f:
        f.write(gzip.compress(lines(4000, 100000))[:-100])
    script("damaged", d)
    p = run("damaged")
    assert p.returncode != 0 and b"file.damaged" in p.stderr + p.stdout and b"d.json.gz" in p.stderr + p.stdout, p.stderr.decode()
    assert ids("damaged") == []


def test_stdin():
    script("stdin", "-")
    p = run("stdin", lines(0, 5000)[:-1])
    assert p.returncode == 0, p.stderr.decode()
    p = run("stdin", gzip.compress(lines(5000, 10)))
    assert p.returncode == 0, p.stderr.decode()
    assert ids("stdin") == list(range(5010))


if __name__ == "__main__":
    for name in [n for n in list(globals()) if n.startswith("test_") and (not sys.argv[1:] or n in sys.argv[1:])]:
        globals()[name]()
        print(f"{name}: ok", flush=True)
    shutil.rmtree(DIR)
