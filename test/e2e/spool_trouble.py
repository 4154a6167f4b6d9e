#!/usr/bin/env python3
"""Spools that are damaged, and disks without room, under the real binary: what is wrong is named and set aside, everything else is delivered once; senders wait while there is no room, and all goes on when there is.

usage: spool_trouble.py [CASE...]; it needs no broker."""
import http.client, json, os, random, re, socket, sqlite3, subprocess, sys, tempfile, threading, time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in ("../tools", "../kill", ".")]
import spools
from harness import BIN, Failure, Tables, main, require
from spool import check, port, post, script, settle


def fill(p, ids):
    """Each record is a message, and so a frame, of its own; its bytes hold #<id>#."""
    conn = http.client.HTTPConnection("127.0.0.1", p, timeout=30)
    for i in ids:
        conn.request("POST", "/", json.dumps({"id": i, "host": f"h{i % 3}", "num": i, "pad": f"#{i}#" + "p" * 800}))
        r = conn.getresponse()
        r.read()
        require(r.status == 200, f"status {r.status}")


def loaded(name, n, committed=0):
    """A killed job with n records in the segments of its spool, of which the table has the first `committed`."""
    t = Tables(None, name)
    d = f"{t.dir}/state/spool/default_catalog.default_database.src"
    if committed:
        job = t.start(script(t, max="1 mb"))
        fill(port(job), range(committed))
        t.wait_rows(committed, job=job)
        job.stop()
    if n > committed:
        job = t.start(script(t, max="1 mb", interval="1 h"))
        fill(port(job), range(committed, n))
        job.kill()
    return t, d, [s for s in spools.segments(d) if spools.frames(s)]


def lost_numbers(log):
    return sum(int(n) for n in re.findall(r"event=spool.lost .*? records=(\d+) ", log))


def segments():
    """A flipped bit, a head that is overwritten, a frame that is cut off, a segment that is removed, rests of a write behind the last one: each is named, and all else is delivered."""
    t, d, segs = loaded("spool-segments", 600)
    require(len(segs) > 6, f"{len(segs)} segments")
    rng, hit = random.Random(1), []
    for way, path in ((spools.flip, segs[1]), (spools.behead, segs[2]), (spools.remove, segs[3]), (spools.shorten, segs[4])):
        what, ids = way(path, rng)
        require(ids, what)
        hit += ids
    spools.torn(d, rng)
    job = t.start(script(t, max="1 mb"))
    fill(port(job), range(1000, 1050))
    t.wait_rows(650 - len(hit), job=job)
    log = job.stop()
    t.judge((set(range(600)) - set(hit)) | set(range(1000, 1050)))
    require(lost_numbers(log) == len(hit), f"{len(hit)} records were hit, the log counts {lost_numbers(log)}\n{log[-4000:]}")
    for path in (segs[1], segs[2], segs[4]):
        require(re.search(rf"event=spool.damaged file=\S*/{os.path.basename(path)} ", log), f"{path} is not named\n{log[-4000:]}")
        require(os.path.exists(path + ".damaged"), f"the bytes of {path} are not kept")
    require("event=spool.tail-cut" in log, log[-4000:])
    return f"{len(hit)} of 600 records hit"


def first_removed():
    """Records that the table does not have were in segments that somebody has removed, and the log begins behind its position: the start refuses with numbers, and goes on when it is told to."""
    t, d, segs = loaded("spool-first", 300, committed=100)
    gone = {i for s in segs[:2] for i in spools.ids(spools.frames(s)) if i >= 100}
    for s in segs[:2]:
        os.unlink(s)
    require(0 < len(gone) < 200, f"{len(gone)} records hit")
    log = t.run(script(t, max="1 mb"), code=2)
    require("positions.offsets-gone" in log and re.search(rf"wanted [a-z ]*100, earliest is \d+, {len(gone)} records are gone unread", log), log[-3000:])
    job = t.start(script(t, max="1 mb", settings={"frazil.lost-offsets": "earliest"}))
    settle(t, job, 300 - len(gone))
    t.judge(set(range(300)) - gone)


def all_removed():
    """Twice all segments are removed: what was committed stays, what comes is of another spool, and no number that was given before hides it."""
    t, d, segs = loaded("spool-all", 200, committed=200)
    want = set(range(200))
    for k in (1, 2):
        for s in spools.segments(d):
            os.unlink(s)
        job = t.start(script(t, max="1 mb"))
        new = set(range(k * 1000, k * 1000 + 20))
        fill(port(job), sorted(new))
        want |= new
        t.wait_rows(len(want), job=job)
        log = job.stop()
        require("spool.segments-lost" in log and "positions.other-spool" in log, log[-3000:])
    t.judge(want)


class Poster:
    """Posts records. A request that was taken in while there was room in memory waits for the disk, for as long as it takes; others are refused meanwhile."""

    def __init__(self):
        self.acked, self.unknown, self.first, self.waiting, self.lock = [], [], 0, [], threading.Lock()

    def one(self, p):
        with self.lock:
            ids = range(self.first, self.first + 20)
            self.first += 20
        try:
            taken = post(http.client.HTTPConnection("127.0.0.1", p, timeout=120), ids)
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.unknown += ids
            return None
        if taken:
            with self.lock:
                self.acked += ids
        return taken

    def until(self, job, want, seconds=60):
        """Until a request is taken (want True) or refused (False)."""
        p, until = port(job), time.monotonic() + seconds
        while time.monotonic() < until:
            got = []
            x = threading.Thread(target=lambda: got.append(self.one(p)))
            x.start()
            x.join(1.5)
            if x.is_alive():
                self.waiting.append(x)
            elif want in got:
                return
            time.sleep(0.01)
        raise Failure(f"nothing was {'taken' if want else 'refused'} in {seconds} s\n{job.text()[-3000:]}")

    def join(self):
        for x in self.waiting:
            x.join(120)


def no_space():
    """Writes to the spool find no room for some seconds: senders wait or are refused, nothing of theirs is lost, and it goes on by itself."""
    t, x = Tables(None, "spool-no-space"), Poster()
    job = t.start(script(t), fault=",".join(f"spool.write:{n}:enospc" for n in range(8, 22)))
    x.until(job, False)
    x.until(job, True)
    x.join()
    t.wait_rows(len(x.acked), job=job)
    log = job.stop()
    require("event=spool.cannot-write code=spool.no-space" in log and "event=spool.writing-again" in log, log[-3000:])
    require(not x.unknown, f"{len(x.unknown)} records without an answer")
    t.judge(x.acked)


def mounted(case):
    """Only where a file system can be mounted (in a mount namespace of one's own)."""
    for how in (["unshare", "-m"], ["unshare", "-Urm"]):
        if subprocess.run([*how, "sh", "-c", "mount -t tmpfs -o size=16m tmpfs /mnt"], capture_output=True).returncode == 0:
            p = subprocess.run([*how, sys.executable, os.path.abspath(__file__), case], capture_output=True, text=True)
            require(p.returncode == 0, p.stdout + p.stderr)
            return p.stdout.split("\n")[0]
    return "left out: nothing can be mounted here"


def full_disk():
    """A disk of 16 MB that somebody else fills, with spool, dead letters and table on it."""
    return mounted("in_full_disk")


def own_disk():
    """A disk of 4 MB that the spool itself fills while a catalog is locked: it leaves room for what an archive must write beside it, and gives back what is delivered."""
    return mounted("in_own_disk")


class Small(Poster):
    """The disk, and one who posts records to the job on it."""

    def __init__(self, size="16m"):
        super().__init__()
        self.dir = tempfile.mkdtemp(prefix="frazil-small-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.dir], check=True)

    def room(self):
        v = os.statvfs(self.dir)
        return v.f_bavail * v.f_frsize

    def fill(self):
        with open(f"{self.dir}/filler", "ab", buffering=0) as f:
            for n in (1 << 20, 1 << 12):
                try:
                    while f.write(b"x" * n):
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(f"{self.dir}/filler")


def in_full_disk():
    small = Small()
    t = Tables(None, "spool-disk", warehouse=f"{small.dir}/wh")
    s = script(t, settings={"frazil.state.dir": f"{small.dir}/state"})
    job = t.start(s)
    for _ in range(2):
        small.until(job, True)
        small.fill()
        small.until(job, False)
        small.free()
        small.until(job, True)
    small.fill()
    small.until(job, False)
    job.kill()
    job = t.start(s)  # there is no room for anything
    time.sleep(1)
    require(job.alive(), f"it ended on a full disk\n{job.text()[-3000:]}")
    small.free()
    small.until(job, True)
    small.join()
    settle(t, job, len(small.acked))
    require("spool.no-space" in open(t.logfile).read(), "a disk without room is not named")
    check(t, small.acked, small.unknown)
    return f"{len(small.acked)} records acknowledged, {len(small.unknown)} without an answer"


def wait_for(what, fits, job, seconds=60):
    until = time.monotonic() + seconds
    while not fits():
        require(time.monotonic() < until, f"{what}\n{job.text()[-3000:]}")
        time.sleep(0.05)


def large(conn, i):
    """One record of 20 KB. True: acknowledged."""
    conn.request("POST", "/", json.dumps({"id": i, "host": f"h{i % 3}", "num": i, "pad": "p" * 20000}))
    r = conn.getresponse()
    r.read()
    require(r.status in (200, 503), f"status {r.status}")
    return r.status == 200


def scrape(p):
    conn = http.client.HTTPConnection("127.0.0.1", p, timeout=30)
    conn.request("GET", "/metrics")
    return conn.getresponse().read().decode()


def in_own_disk():
    small = Small("4m")
    t = Tables(None, "spool-own-disk")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        metrics = free.getsockname()[1]
    s = script(t, max="64 mb", settings={"frazil.state.dir": f"{small.dir}/state", "metrics.port": metrics})
    with open(s) as f:
        text = f.read()
    with open(s, "w") as f:
        f.write(text.replace("INSERT INTO", "CREATE TEMPORARY TABLE ar (id BIGINT, host STRING, num INT) WITH ('connector'='firehose-s3','path'='file://" + t.dir + "/archive/','buffer.interval'='1 s');\nSTATEMENT SET BEGIN\nINSERT INTO ar SELECT id, host, num FROM src;\nINSERT INTO") + "END;\n")
    job = t.start(s)
    p, acked = port(job), []
    conn = http.client.HTTPConnection("127.0.0.1", p, timeout=60)
    require(large(conn, 0), "the first one")
    t.wait_rows(1, job=job)
    lock = sqlite3.connect(f"{t.dir}/catalog.db", timeout=30, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    acked, i = [0], 1
    while large(conn, i):
        acked.append(i)
        i += 1
        require(i < 1000, "a disk of 4 MB has taken 20 MB")
    require(len(acked) > 50, f"{len(acked)} records")
    require(small.room() > 256 << 10, f"{small.room()} bytes are left")
    refused = 1 + sum(not large(conn, i) for _ in range(5))
    require(refused == 6, f"{refused} of 6 are refused while nothing has been given back")
    wait_for("refusals are counted", lambda: sum(float(n) for n in re.findall(r"(?m)^frazil_spool_refused_total\S* (\S+)$", scrape(metrics))) >= refused, job)
    lock.execute("ROLLBACK")
    lock.close()
    wait_for("taken again", lambda: large(conn, i), job)
    acked.append(i)
    t.wait_rows(len(acked), job=job)
    wait_for("room again", lambda: small.room() > 3 << 20 or (large(conn, acked[-1] + 1) and acked.append(acked[-1] + 1)), job) # what is trimmed may go with the next record
    d = subprocess.run([BIN, "drain", t.name, "--state", f"{small.dir}/state"], capture_output=True, text=True, timeout=120)
    require(d.returncode == 0, f"drain {d.returncode}: {d.stdout}{d.stderr}\n{job.text()[-3000:]}")
    job.p.wait(60)
    t.judge(acked)
    return f"{len(acked)} records acknowledged"


def drain(t, state):
    return subprocess.run([BIN, "drain", t.name, "--state", state], capture_output=True, text=True, timeout=120)


def renamed():
    """A table is renamed while its spool holds records that were acknowledged: start, doctor and drain name the spool, and under its old name it is delivered. One that was drained is not named."""
    t, d, _ = loaded("spool-renamed", 30)
    old = script(t)
    new = script(t)
    with open(new) as f:
        text = f.read()
    with open(new, "w") as f:
        f.write(text.replace("TEMPORARY TABLE src", "TEMPORARY TABLE fresh").replace("FROM src", "FROM fresh"))
    doc = subprocess.run([BIN, "doctor", "-f", new], capture_output=True, text=True, timeout=120)
    require(doc.returncode == 0 and "doctor.spool.unread" in doc.stdout and d in doc.stdout and "30 acknowledged records" in doc.stdout, doc.stdout + doc.stderr)
    doc = subprocess.run([BIN, "doctor", "-f", old], capture_output=True, text=True, timeout=120)
    require("doctor.spool.unread" not in doc.stdout, doc.stdout)
    job = t.start(new)
    fill(port(job), range(100, 110))
    x = drain(t, f"{t.dir}/state")
    require(x.returncode == 2 and f"{d}: not read by this job, 30 records left" in x.stdout, f"drain {x.returncode}: {x.stdout}{x.stderr}")
    require(job.p.wait(60) == 2, "the job's code")
    require(re.search(rf"event=spool.unread dir=\S*{re.escape(os.path.basename(d))} records=30 ", job.text()) and "drain.unread" in job.text(), job.text()[-3000:])
    for s in (old, new):
        job = t.start(s)
        port(job)
        x = drain(t, f"{t.dir}/state")
        require(x.returncode == 0 and job.p.wait(60) == 0 and "spool.unread" not in job.text(), f"drain {x.returncode}: {x.stdout}{x.stderr}\n{job.text()[-3000:]}")
    t.judge(set(range(30)) | set(range(100, 110)))


def late_run_file():
    """The file by which a job is found could not be written at its start: it is as soon as it can be."""
    t = Tables(None, "spool-run-file")
    run = f"{t.dir}/state/{t.name}.run"
    os.makedirs(run + ".tmp")
    job = t.start(script(t))
    fill(port(job), range(10))
    job.wait_log("event=job.run-file")
    require(drain(t, f"{t.dir}/state").returncode == 1 and job.alive(), "there is nothing to be found")
    os.rmdir(run + ".tmp")
    wait_for(f"no {run}", lambda: os.path.exists(run), job)
    x = drain(t, f"{t.dir}/state")
    require(x.returncode == 0 and job.p.wait(60) == 0, f"drain {x.returncode}: {x.stdout}{x.stderr}")
    require(job.text().count("event=job.run-file") == 1, "it is told once")
    t.judge(range(10))


if __name__ == "__main__":
    cases = (segments, first_removed, all_removed, no_space, full_disk, own_disk, renamed, late_run_file)
    inner = (in_full_disk, in_own_disk)
    main({f.__name__: f for f in (inner if sys.argv[1:] and sys.argv[1].startswith("in_") else cases)})
