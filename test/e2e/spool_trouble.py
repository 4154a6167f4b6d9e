#!/usr/bin/env python3
"""Spools that are damaged, and disks without room, under the real binary: what is wrong is named and set aside, everything else is delivered once; senders wait while there is no room, and all goes on when there is.

usage: spool_trouble.py [CASE...]; it needs no broker."""
import http.client, json, os, random, re, subprocess, sys, tempfile, threading, time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in ("../tools", "../kill", ".")]
import spools
from harness import Failure, Tables, main, require
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
    job = t.start(script(t), fault=",".join(f"spool.write:{n}:enospc" for n in range(8, 14)))
    x.until(job, False)
    x.until(job, True)
    x.join()
    t.wait_rows(len(x.acked), job=job)
    log = job.stop()
    require("event=spool.cannot-write code=spool.no-space" in log and "event=spool.writing-again" in log, log[-3000:])
    require(not x.unknown, f"{len(x.unknown)} records without an answer")
    t.judge(x.acked)


def full_disk():
    """A disk of 16 MB that somebody else fills, with spool, dead letters and table on it. Only where a file system can be mounted (in a mount namespace of one's own)."""
    for how in (["unshare", "-m"], ["unshare", "-Urm"]):
        if subprocess.run([*how, "sh", "-c", "mount -t tmpfs -o size=16m tmpfs /mnt"], capture_output=True).returncode == 0:
            p = subprocess.run([*how, sys.executable, os.path.abspath(__file__), "in_full_disk"], capture_output=True, text=True)
            require(p.returncode == 0, p.stdout + p.stderr)
            return p.stdout.split("\n")[0]
    return "left out: nothing can be mounted here"


class Small(Poster):
    """The disk, and one who posts records to the job on it."""

    def __init__(self):
        super().__init__()
        self.dir = tempfile.mkdtemp(prefix="frazil-small-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self.dir], check=True)

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


if __name__ == "__main__":
    cases = (segments, first_removed, all_removed, no_space, full_disk)
    main({f.__name__: f for f in (cases if sys.argv[1:] != ["in_full_disk"] else [in_full_disk])})
