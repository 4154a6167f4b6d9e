#!/usr/bin/env python3
"""kill -9 during load over all inputs: forward (four modes), OTLP (HTTP as protobuf and JSON, gRPC), syslog over TCP, Firehose, HTTP, followed files; into two Iceberg tables, an archive in Firehose's
manner, print and blackhole.

A round: start, senders load every input, kill at a fault point or at some moment. Senders then repeat what was not acknowledged, and nothing else. Some runs have a second fault (a disk that fails, an
answer that is lost). Rounds are gathered in episodes, each with its own directory; at the end of one everything is drained and judged:
 - every acknowledged record is in the first table, and exactly once if its sender sent it once; never more often than it was sent;
 - the second table (a part of the records) and the archive hold each record as often as the first one; print has printed each; rejected rows are in no table, in the archive, and have a dead letter each;
 - the records of a syslog connection that arrived are the first ones that were sent on it, and all of them when it ended in order: more TCP cannot promise;
 - lines of files are there exactly once; audits pass; PyIceberg counts the same; nothing is left in the spools that waits.
Kinds of episodes: `local` (SQLite catalog, local files), `glue` (Glue and S3, also for the archive and its intents, on an imitation of AWS), `damage` (local, and between kill and restart a spool is
damaged: a flipped bit, a segment without its head, removed, or cut short, rests of a write at the end; it must be named, and only records whose bytes were hit may be missing).

usage: inputs.py --dir DIR [--rounds N] [--seed N] [--kinds local,glue,damage] [--moto PORT]. Prints seed and kills by point."""
import argparse, collections, gzip, json, os, random, re, signal, subprocess, sys, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../tools"), os.path.join(HERE, "../matrix"), os.path.join(HERE, "../peers")]
import senders, spools
from harness import BIN, ROOT, Failure, Tables, require

EACH = 10  # rounds of an episode
# Points of a record's way, with the N-th hits at which to kill.
POINTS = {"spool.write": range(1, 60), "spool.segment": range(1, 30), "spool.fsync": range(1, 60), "spool.durable": range(1, 60), "spool.trim": range(1, 30), "source.acknowledge": range(1, 120),
          "source.poll": range(1, 200), "checkpoint.begin": range(1, 6), "checkpoint.closed": range(1, 6), "file.write": range(1, 60), "file.fsync": range(1, 60), "commit.load": range(1, 8),
          "commit.checked": range(1, 8), "commit.manifest": range(1, 8), "commit.manifest-list": range(1, 8), "commit.metadata": range(1, 8), "commit.swap": range(1, 8), "commit.accepted": range(1, 8),
          "commit.answered": range(1, 8), "delivery.begin": range(1, 6), "delivery.intent": range(1, 6), "delivery.object": range(1, 6), "delivery.done": range(1, 6), "delivery.clean": range(1, 6),
          "delivery.positions": range(1, 6), "report.before": range(1, 6), "checkpoint.done": range(1, 6), "dead-letter.write": range(1, 6)}
# Points of a start that finds a torn or damaged spool.
START = ["spool.leapt", "spool.leapt", "spool.kept", "spool.kept", "spool.segment", "spool.write"]
TROUBLE = ["spool.write:{n}:enospc", "spool.write:{n}:eio", "spool.fsync:{n}:eio", "spool.durable:{n}:eio", "spool.segment:{n}:eio", "spool.trim:{k}:eio", "commit.accepted:{k}:unknown", "commit.swap:{k}:conflict",
           "commit.load:{k}:retry", "commit.manifest:{k}:eio", "file.fsync:{n}:eio", "file.write:{n}:enospc", "delivery.begin:{k}:retry", "delivery.intent:{k}:unknown", "delivery.object:{k}:unknown",
           "delivery.done:{k}:retry", "delivery.positions:{k}:eio"]
SOURCES = {
    "forward": ("id BIGINT, num STRING", "'connector'='forward','listen'='127.0.0.1:0'", "id", "num"),
    "otlp": ("id BIGINT, num STRING, body STRING", "'connector'='otlp','listen'='127.0.0.1:0','grpc.listen'='127.0.0.1:0'", "id", "num"),
    "syslog": ("message STRING, procid STRING", "'connector'='syslog','listen'='127.0.0.1:0','protocol'='tcp'", "CAST(message AS BIGINT)", "procid"),
    "firehose": ("id BIGINT, num STRING", "'connector'='firehose','listen'='127.0.0.1:0','stream-name'='logs'", "id", "num"),
    "http": ("id BIGINT, num STRING", "'connector'='http','listen'='127.0.0.1:0'", "id", "num"),
    "tail": ("id BIGINT, num STRING", "'connector'='filesystem','format'='json','path'='{dir}/logs','source.monitor-interval'='50 ms'", "id", "num"),
}
LISTENING = [s for s in SOURCES if s != "tail"]


def second(i):
    return i % 3 != 0


class Place:
    """Where an episode's tables, objects and intents lie; this one: local."""

    def __init__(self, name):
        self.t = Tables(None, name, ("t", "u"))
        self.path, self.options, self.settings = f"file://{self.t.dir}/out/", "", {}

    def objects(self):
        for d, _, files in os.walk(f"{self.t.dir}/out"):
            for f in files:
                if not f.startswith(".frazil-"):
                    yield os.path.join(d, f), open(os.path.join(d, f), "rb").read()

    def intents(self):
        below = f"{self.t.dir}/state/deliveries"
        return [os.path.join(d, f) for d, _, files in os.walk(below) for f in files if d.endswith("/intents") and not f.startswith(".")]

    def close(self):
        pass


class Aws(Place):
    """Glue and S3 on moto."""

    def __init__(self, name):
        from kinds import KINDS, Lake
        url = os.environ["S3_ENDPOINT"]
        self.t = Lake(KINDS["glue"], name, None, tables=("t", "u"))
        self.prefix = f"{self.t.tag}-archive"
        self.path = f"s3://lake/{self.prefix}/out/"
        self.options = f"'s3.endpoint'='{url}','s3.path-style-access'='true','s3.access-key-id'='test','s3.secret-access-key'='test','client.region'='us-east-1',"
        self.settings = {"execution.checkpointing.dir": f"s3://lake/{self.prefix}/checkpoints", "s3.endpoint": url, "s3.path.style.access": "true", "s3.access-key": "test", "s3.secret-key": "test", "s3.region": "us-east-1"}
        import boto3
        self.s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")

    def keys(self, below):
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix=f"{self.prefix}/{below}"):
            yield from (o["Key"] for o in page.get("Contents", []))

    def objects(self):
        for k in self.keys("out/"):
            yield k, self.s3.get_object(Bucket="lake", Key=k)["Body"].read()

    def intents(self):
        return [k for k in self.keys("checkpoints/") if "/intents/" in k]

    def close(self):
        self.t.close()


class Episode:
    def __init__(self, kind, number, rng, hits):
        self.kind, self.rng, self.hits = kind, rng, hits
        self.place = Aws(f"inputs-{number}") if kind == "glue" else Place(f"inputs-{number}")
        self.t, self.out, self.restarts = self.place.t, f"{self.place.t.dir}/printed", 0
        self.tail = senders.Tail(f"{self.t.dir}/logs", 0, rng)
        self.senders = {}
        first = 0
        for listener, clients in senders.CLIENTS.items():
            for c in clients:
                first += 10 ** 7
                self.senders.setdefault(listener, []).append(c("otlp" if listener == "grpc" else listener, first, rng))
        self.excused = collections.Counter()  # ids that a damaged place held: so many of each may be missing
        self.damaged = collections.defaultdict(list)  # the segments that held them
        self.points = [p for p in POINTS if kind != "glue" or not p.startswith("file.")]
        self.trouble = [x for x in TROUBLE if kind != "glue" or not x.startswith("file.")]

    def all(self):
        return [s for v in self.senders.values() for s in v]

    def script(self):
        t = self.t
        sets = {"pipeline.name": t.name, "execution.checkpointing.interval": "150 ms", "frazil.state.dir": f"{t.dir}/state", "parallelism.default": "2", **self.place.settings}
        text = [f"SET '{k}' = '{v}';\n" for k, v in sets.items()] + [t.catalog(), f"CREATE DATABASE IF NOT EXISTS c.{t.db};\n"]
        text += [f"CREATE TABLE IF NOT EXISTS c.{t.db}.{x} (id BIGINT, src STRING, num INT) PARTITIONED BY (src) WITH ('commit.retry.min-wait-ms'='20','commit.manifest.min-count-to-merge'='8');\n" for x in t.tables]
        text += [f"CREATE TEMPORARY TABLE archive (id BIGINT, src STRING) WITH ('connector'='firehose-s3','path'='{self.place.path}',{self.place.options}'buffer.size'='64 kb','buffer.interval'='200 ms');\n",
                 "CREATE TEMPORARY TABLE printed (id BIGINT) WITH ('connector'='print');\nCREATE TEMPORARY TABLE hole (id BIGINT) WITH ('connector'='blackhole');\n"]
        inserts = []
        for name, (columns, options, i, num) in SOURCES.items():
            spool = ",'spool.max-size'='1 mb'" if name in LISTENING else ""
            text.append(f"CREATE TEMPORARY TABLE {name}_in ({columns}) WITH ({options.format(dir=t.dir)}{spool});\n")
            inserts += [f"INSERT INTO c.{t.db}.t SELECT {i}, '{name}', CAST({num} AS INT) FROM {name}_in;", f"INSERT INTO c.{t.db}.u SELECT {i}, '{name}', CAST({num} AS INT) FROM {name}_in WHERE MOD({i}, 3) <> 0;",
                        f"INSERT INTO archive SELECT {i}, '{name}' FROM {name}_in;"]
        inserts += ["INSERT INTO printed SELECT id FROM http_in;", "INSERT INTO hole SELECT id FROM forward_in;"]
        path = f"{t.dir}/job.sql"
        with open(path, "w") as f:
            f.write("".join(text) + "STATEMENT SET BEGIN\n" + "\n".join(inserts) + "\nEND;\n")
        return path

    # ---- a run ----

    def start(self, fault=None):
        """Starts; gives senders their ports. None: it was killed before it listened."""
        j = Run(self, fault)
        ports = j.ports(len(LISTENING) + 1)
        if ports:
            for listener, v in self.senders.items():
                for s in v:
                    s.start(ports[listener])
        return j

    def settle(self, j):
        """The server is gone: what senders say, and what its log must and must not say."""
        for s in self.all():
            s.gone()
        wrong = [e for s in self.all() if (e := s.join())]
        require(not wrong, f"{wrong}\n{j.text()[-3000:]}")
        require("AddressSanitizer" not in j.text() and "runtime error" not in j.text(), j.text()[-4000:])

    def fault(self, where):
        rules = [f"{where}:{self.rng.choice(POINTS[where])}:kill"] if where != "time" else []
        for _ in range(self.rng.randrange(3) if self.rng.random() < 0.5 else 0):
            trouble = self.rng.choice(self.trouble)
            if not trouble.startswith(where):
                rules.append(trouble.format(n=self.rng.randrange(1, 40), k=self.rng.randrange(1, 5)))
        return ",".join(rules)

    def round(self, where):
        """Returns what was done and whether the point was hit."""
        fault = self.fault(where)
        j = self.start(fault)
        try:
            j.p.wait(self.rng.uniform(0.1, 2.0) if where == "time" else 5)
        except subprocess.TimeoutExpired:
            j.p.kill()
            j.p.wait()
            hit = where == "time"
            self.hits["time"] += 1
        else:
            hit = True
            self.hits[where] += 1
        code = j.over()
        self.settle(j)
        require(code == -signal.SIGKILL, f"frazil ended by itself with {code} (fault {fault})\n{j.text()[-4000:]}")
        note = f"{fault or where}{'' if hit else ' (by time)'}"
        harm = self.damage if self.kind == "damage" and self.rng.random() < 0.6 else self.torn if self.rng.random() < 0.2 else None
        if harm:
            note += "; " + harm()
            if self.rng.random() < 0.4:
                note += self.start_and_die(self.rng.choice(START))
        return note, hit

    def start_and_die(self, where):
        """A start that is killed while it sees to a spool, or soon after when it does not come there."""
        j = Run(self, f"{where}:{self.rng.randrange(1, 3)}:kill")
        try:
            j.p.wait(1)
        except subprocess.TimeoutExpired:
            j.p.kill()
            j.p.wait()
            where = "time"
        code = j.over()
        require(code == -signal.SIGKILL, f"frazil ended by itself with {code} at its start\n{j.text()[-4000:]}")
        self.hits[where] += 1
        return f"; the next start killed at {where}"

    def torn(self):
        return spools.torn(self.spool(), self.rng)

    # ---- damage ----

    def spool(self):
        return f"{self.t.dir}/state/spool/default_catalog.default_database.{self.rng.choice(LISTENING)}_in"

    def damage(self):
        d = self.spool()
        what, segment, hit = spools.damage(d, self.rng)
        self.excused.update(hit)
        for i in hit:
            self.damaged[i].append(segment)
        return f"{d.rsplit('.', 1)[1]}: {what}, {len(hit)} records hit"

    # ---- the end ----

    def drain(self):
        j = self.start()
        self.tail.end()
        for s in self.all():
            s.finish()
        wrong = [e for s in self.all() if (e := s.join(180))]
        require(not wrong, f"{wrong}\n{j.text()[-4000:]}")
        broken = [f"{s.source}: {s.broken}" for s in self.all() if s.broken]
        if broken:
            print(f"  {self.kind}: connections broke although nobody was killed: {broken}", flush=True)
        left = [f"{s.source}: {len(s.pending)}" for s in self.all() if s.pending]
        require(not left, f"not acknowledged in the end: {left}; {[s.broken for s in self.all() if s.pending]}; exit code {j.p.poll()}\n{j.text()[-4000:]}")
        d = subprocess.run([BIN, "drain", "--state", f"{self.t.dir}/state", "--format", "json"], capture_output=True, text=True, timeout=240)
        require(d.returncode == 0, f"drain ended with {d.returncode}: {d.stdout}{d.stderr}\n{j.text()[-4000:]}")
        require(all(x["left"] == 0 for x in json.loads(d.stdout)["deliveries"]), d.stdout)
        j.p.wait(60)
        require(j.over() == 0, f"exit code {j.p.returncode} after drain\n{j.text()[-3000:]}")

    def archived(self):
        got = collections.Counter()
        for key, data in self.place.objects():
            lines = gzip.decompress(data).split(b"\n")
            require(lines.pop() == b"", f"{key} does not end in a line feed")
            got.update(json.loads(l)["id"] for l in lines)
        return got

    def printed(self):
        out = collections.Counter()
        for l in open(self.out, "rb").read().split(b"\n"):
            if l.startswith(b"+I[") and l.endswith(b"]"):
                out[int(l[3:-1])] += 1
        return out

    def differ(self, what, got, want):
        """Two counters that must be the same, but for what damage has hit."""
        off = {i: (got[i], want[i]) for i in (got.keys() | want.keys()) if abs(got[i] - want[i]) > self.excused[i]}
        require(not off, f"{self.t.name}: {what}: {len(off)} ids differ (id: there, wanted) {list(off.items())[:8]}\n{self.t.tail()}")

    def judge_syslog(self, t):
        for s in self.senders["syslog"]:
            for sent in s.streams:
                good = [i for i in sent if i not in s.bad]
                there = [i in t or self.excused[i] > 0 for i in good]
                require(there == sorted(there, reverse=True), f"of a syslog connection's messages one is missing before one that arrived: {[i for i, x in zip(good, there) if not x][:5]}")
            lost = [i for i in s.whole if not t[i] and i not in s.bad and not self.excused[i]]
            require(not lost, f"messages of a syslog connection that ended in order are missing: {lost[:8]}")

    def judge_named(self, t, archive, bad):
        """What is missing is named: the log tells of lost numbers of the segment that held it, or of damage to it."""
        log = open(self.t.logfile, errors="replace").read()
        lost = [(d, int(a), int(b)) for d, a, b in re.findall(r"event=spool\.lost dir=\S*/(\S+) from=(\d+) to=(\d+) ", log)]
        cut = set(re.findall(r"event=spool\.(?:tail-cut|damaged) file=\S*/([^/]+/\d{20})\.seg ", log))
        silent = [i for i, segs in self.damaged.items() if (archive[i] == 0 or (i not in bad and t[i] == 0))
                  and not any(s.name in cut or any(d == s.spool and a < s.end and s.first < b for d, a, b in lost) for s in segs)]
        require(not silent, f"{len(silent)} records are missing, and no line says why: {[(i, self.damaged[i]) for i in silent[:3]]}; the log tells of {lost} {cut}\n{self.t.tail()}")

    def judge(self):
        self.drain()
        t, u, archive = collections.Counter(self.t.ids("t")), collections.Counter(self.t.ids("u")), self.archived()
        sources = [*self.all(), self.tail]
        bad = set().union(*(s.bad for s in sources))
        n = 0
        for s in sources:
            n += len(s.acked)
            lost = [i for i in s.acked - s.bad if t[i] == 0 and not self.excused[i]]
            require(not lost, f"{self.t.name}: {len(lost)} acknowledged records of {s.source} are lost: {sorted(lost)[:8]}\n{self.t.tail()}")
            often = [i for i in s.sends if t[i] > s.sends[i]]
            require(not often, f"{self.t.name}: {len(often)} records of {s.source} are there more often than they were sent: {[(i, t[i], s.sends[i]) for i in sorted(often)[:8]]}\n{self.t.tail()}")
        known = set().union(*(s.sends.keys() for s in sources))
        require(not t.keys() - known, f"{len(t.keys() - known)} records that nobody sent")
        require(not [i for i in bad if t[i] or u[i]], "rejected rows are in a table")
        self.judge_syslog(t)
        self.differ("second table", u, collections.Counter({i: k for i, k in t.items() if second(i)}))
        self.differ("archive", collections.Counter({i: k for i, k in archive.items() if i not in bad}), t)
        lost = [i for s in sources for i in s.acked & s.bad if archive[i] == 0 and not self.excused[i]]
        require(not lost, f"rejected rows are not in the archive: {lost[:8]}")
        require(not self.place.intents(), f"intents are left: {self.place.intents()}")
        self.judge_named(t, archive, bad)
        printed = self.printed()
        lost = [i for s in self.senders["http"] for i in s.acked if printed[i] == 0 and not self.excused[i]]
        require(not lost, f"{len(lost)} records were not printed: {lost[:8]}")
        letters = {(l["topic"], l["partition"], l["offset"]) for l in self.t.letters()}
        wanted = sum(archive[i] for i in bad)
        excused = sum(self.excused[i] for i in bad)
        require(abs(len(letters) - wanted) <= excused, f"{len(letters)} dead letters, {wanted} rows were rejected\n{self.t.tail()}")
        for x in ("t", "u"):
            self.strangers(x, t if x == "t" else u)
        sends = sum(sum(s.sends.values()) for s in sources)
        once = sum(1 for s in sources for i in s.acked if s.sends[i] == 1)
        hit = f", {len(self.excused)} records hit by damage, {sum(1 for i in self.excused if not t[i] and i in known)} of them missing" if self.excused else ""
        return f"{n} records acknowledged or written, {once} of them sent once, {sends} sent, {sum(t.values())} rows, {sum(u.values())} in the second table, {sum(archive.values())} archived, {len(letters)} dead letters{hit}; refused {sum(s.refusals for s in self.all())} times"

    def strangers(self, table, want):
        self.t.audit(table)
        s = self.t.strange(table)
        if s:
            paths = [f.file.file_path for f in s.scan().plan_files()]
            require(len(paths) == len(set(paths)), f"{table}: a data file is live twice")
            require((n := s.scan().to_arrow().num_rows) == sum(want.values()), f"{table}: PyIceberg counts {n} rows, not {sum(want.values())}")

    def close(self):
        self.tail.end()
        for s in self.all():
            s.gone()
            s.join(5)
        self.place.close()


class Run:
    """One process; its log is its own, and is added to that of the tables at its end. Standard output (print) is kept over all runs."""

    def __init__(self, e, fault):
        self.e, e.restarts = e, e.restarts + 1
        self.path = f"{e.t.dir}/run-{e.restarts}.log"
        environment = dict(os.environ, **({"FRAZIL_FAULT": fault} if fault else {}))
        with open(self.path, "wb") as log, open(e.out, "ab") as out:
            out.write(b"\n")  # a line that a kill cut off ends here
            out.flush()
            self.p = subprocess.Popen([BIN, "run", e.script()], stdout=out, stderr=log, env=environment)
        with open(e.t.logfile, "a") as f:
            f.write(f"--- run {e.restarts} fault {fault} pid {self.p.pid}\n")

    def text(self):
        return open(self.path, errors="replace").read()

    def ports(self, n, seconds=60):
        until = time.monotonic() + seconds
        while True:
            over = self.p.poll() is not None
            found = re.findall(r"event=source.listening table=(\S+?)_in .*?address=127\.0\.0\.1:(\d+)", self.text())
            if len(found) >= n:
                ports = {}
                for name, port in found:
                    ports["grpc" if name.split(".")[-1] == "otlp" and "otlp" in ports else name.split(".")[-1]] = int(port)
                return ports
            if over:
                return None
            require(time.monotonic() < until, f"it does not listen\n{self.text()[-3000:]}")
            time.sleep(0.02)

    def over(self):
        with open(self.e.t.logfile, "a") as f:
            f.write(self.text() + f"--- exit {self.p.returncode}\n")
        return self.p.returncode


def moto(what, d, *args):
    p = subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", what, d, *map(str, args)], capture_output=True, text=True)
    require(p.returncode == 0, f"moto.sh {what}: {p.stdout}{p.stderr}")


def schedule(rng, rounds):
    """Every point in turn, in an order of the seed's, with kills at some moment in between."""
    plan, points = [], list(POINTS)
    while len(plan) < rounds:
        rng.shuffle(points)
        plan += [p for point in points for p in ([point, "time"] if rng.random() < 0.2 else [point])]
    return plan[:rounds]


def episodes(rng, a):
    kinds = a.kinds.split(",")
    plan = schedule(rng, a.rounds)
    parts = [plan[i:i + EACH] for i in range(0, len(plan), EACH)]
    return [(kinds[i % len(kinds)], part) for i, part in enumerate(parts)]


def play(kind, number, part, rng, hits):
    e = Episode(kind, number, rng, hits)
    try:
        for k, where in enumerate(part):
            if kind == "glue" and where.startswith("file."):
                where = "commit.accepted"
            note, hit = e.round(where)
            print(f"  {kind} {number}.{k + 1}: {note}", flush=True)
        print(f"  {kind} {number}: {e.judge()}", flush=True)
    finally:
        e.close()
    if not os.environ.get("KEEP"):
        subprocess.run(["rm", "-rf", e.t.dir])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dir", required=True)
    ap.add_argument("--rounds", type=int, default=40)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--kinds", default="local,damage,glue,local")
    ap.add_argument("--moto", type=int, default=29396)
    a = ap.parse_args()
    print(f"inputs.py: {a.rounds} rounds, seed {a.seed}, {a.kinds}{'' if senders.grpc else ', no gRPC (its library is missing)'}", flush=True)
    rng, hits, began = random.Random(a.seed), collections.Counter(), time.monotonic()
    os.environ["FRAZIL_TEST_DIR"] = a.dir
    plan = episodes(rng, a)
    aws = any(kind == "glue" for kind, _ in plan)
    if aws:
        os.environ.update(S3_ENDPOINT=f"http://127.0.0.1:{a.moto}", AWS_REGION="us-east-1", AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
        moto("up", f"{a.dir}/moto", a.moto)
    try:
        if aws:
            moto("bucket", f"{a.dir}/moto", "lake")
        for i, (kind, part) in enumerate(plan):
            play(kind, i + 1, part, rng, hits)
    finally:
        if aws:
            moto("down", f"{a.dir}/moto")
    for name in [*POINTS, "spool.leapt", "spool.kept", "time"]:
        print(f"  {hits[name]:4d} {name}")
    total = sum(hits.values())
    print(f"inputs.py: {total} kills in {time.monotonic() - began:.0f} s, {total - hits['time']} of them at points")
    if total >= 300:
        few = [p for p in POINTS if hits[p] < 3]
        require(not few, f"too few kills at {few}")
    print("inputs.py: ok")


if __name__ == "__main__":
    try:
        main()
    except Failure as e:
        raise SystemExit(f"inputs.py: FAILED: {e}")
