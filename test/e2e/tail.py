#!/usr/bin/env python3
"""Files with the real binary. Followed ones ('source.monitor-interval'): lines that are written in pieces, rotation by renaming and by copying and truncating, files that are removed,
kill -9 and restarts in between: every line is in the table exactly once. Those that are read once: packed ones, a damaged one, standard input.

usage: tail.py. TAIL_ROUNDS: number of kills (default 4); SEED."""
import gzip, json, os, random, shutil, signal, subprocess, sys, tempfile, threading, time

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

    def __init__(self, logs):
        super().__init__()
        self.logs, self.lock, self.over, self.n = logs, threading.Lock(), threading.Event(), 0
        self.open()

    def open(self):
        self.f = open(f"{self.logs}/app.log", "ab", buffering=0)

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
