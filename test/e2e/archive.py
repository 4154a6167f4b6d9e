#!/usr/bin/env python3
"""The archive (connector firehose-s3) behind a real broker: into local files and into an imitation of S3. Killed at random moments and at each step of a delivery, stopped while another copy runs,
refused by the store; in the end each record stands in one object, once.

usage: archive.py [CASE...]  by test/e2e/run.sh, which gives it a broker. FRAZIL_MOTO_PORT, FRAZIL_ROUNDS (default 30: kills over local files; a third of it over S3), FRAZIL_SEED."""
import base64, collections, gzip, json, os, random, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, ROOT, Broker, Failure, main, require

B = Broker()
ROUNDS, SEED = int(os.environ.get("FRAZIL_ROUNDS", "30")), int(os.environ.get("FRAZIL_SEED", random.randrange(1 << 32)))
PORT = int(os.environ.get("FRAZIL_MOTO_PORT", "29512"))
URL = f"http://127.0.0.1:{PORT}"
POINTS = ("delivery.begin", "delivery.intent", "delivery.object", "delivery.done")
NAME = re.compile(r"(.*/|^)\d{4}/\d\d/\d\d/\d\d/[A-Za-z0-9_.-]+-1-(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.gz$")
S3_OPTIONS = f"'s3.endpoint'='{URL}','s3.path-style-access'='true','s3.access-key-id'='test','s3.secret-access-key'='test','client.region'='us-east-1',"


class Local:
    """Objects and state in local files."""

    def __init__(self, name):
        self.dir = tempfile.mkdtemp(prefix=f"frazil-archive-{name}-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.path, self.options, self.settings = f"file://{self.dir}/out/", "", {"frazil.state.dir": f"{self.dir}/state"}

    def objects(self, below="out"):
        for d, _, files in os.walk(f"{self.dir}/{below}"):
            for f in files:
                if not f.startswith(".frazil-"):
                    yield os.path.relpath(os.path.join(d, f), self.dir), open(os.path.join(d, f), "rb").read()

    def state(self, kind):
        below = f"{self.dir}/state/deliveries"
        return [os.path.join(d, f) for d, _, files in os.walk(below) for f in files if d.endswith("/" + kind) and not f.startswith(".")]


class S3(Local):
    """Objects and state in a bucket."""

    def __init__(self, name):
        super().__init__(name)
        self.bucket = f"{name}-{os.getpid()}"
        moto("bucket", self.bucket)
        self.path, self.options = f"s3://{self.bucket}/out/", S3_OPTIONS
        self.settings = {"frazil.state.dir": f"{self.dir}/state", "execution.checkpointing.dir": f"s3://{self.bucket}/checkpoints", "s3.endpoint": URL, "s3.path.style.access": "true", "s3.access-key": "test",
                         "s3.secret-key": "test", "s3.region": "us-east-1"}

    def client(self):
        import boto3
        return boto3.client("s3", endpoint_url=URL, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")

    def keys(self, prefix):
        for page in self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
            yield from (o["Key"] for o in page.get("Contents", []))

    def objects(self, below="out"):
        c = self.client()
        for k in self.keys(below + "/"):
            yield k, c.get_object(Bucket=self.bucket, Key=k)["Body"].read()

    def state(self, kind):
        return [k for k in self.keys("checkpoints/deliveries/") if f"/{kind}/" in k]


def moto(what, *args):
    d = f"{os.environ.get('FRAZIL_TEST_DIR', '/tmp')}/moto-archive"
    p = subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", what, d, *map(str, args)], capture_output=True, text=True)
    require(p.returncode == 0, f"moto.sh {what}: {p.stdout}{p.stderr}")


class Pipeline:
    def __init__(self, place, partitions=3):
        self.place, self.topic, self.partitions = place, os.path.basename(place.dir), partitions
        B.topic(self.topic, partitions)
        self.sent, self.runs, self.log = collections.Counter(), 0, f"{place.dir}/frazil.log"

    def produce(self, n, pad=40):
        for p in range(self.partitions):
            first = sum(self.sent.values())
            ids = range(first, first + n)
            B.produce(self.topic, p, [{"id": i, "part": p, "pad": "x" * (i % pad), "nothing": None} for i in ids])
            self.sent.update(ids)

    def script(self, bounded=False, settings=None, options="", path=None, more="", where=""):
        sets = {"pipeline.name": "arch", "execution.checkpointing.interval": "100 ms", "parallelism.default": "2", **self.place.settings, **(settings or {})}
        text = "".join(f"SET '{k}' = '{v}';\n" for k, v in sets.items())
        text += (f"CREATE TEMPORARY TABLE src (id BIGINT, part INT, pad STRING, nothing STRING) WITH ('connector'='kafka','topic'='{self.topic}','properties.bootstrap.servers'='{B.address}',"
                 f"'properties.group.id'='{self.topic}','scan.startup.mode'='earliest-offset',{self.bound(bounded)}'format'='json');\n"
                 f"CREATE TEMPORARY TABLE arch (id BIGINT, part INT, pad STRING, nothing STRING) WITH ('connector'='firehose-s3','path'='{path or self.place.path}',{self.place.options}{options}"
                 f"'buffer.size'='4 kb','buffer.interval'='200 ms');\n{more}\nINSERT INTO arch SELECT * FROM src{where};\n")
        self.runs += 1
        name = f"{self.place.dir}/job{self.runs}.sql"
        open(name, "w").write(text)
        return name

    @staticmethod
    def bound(bounded):
        return "'scan.bounded.mode'='latest-offset'," if bounded else ""

    def start(self, script, fault=None, env=None):
        e = dict(os.environ, **(env or {}))
        if fault:
            e["FRAZIL_FAULT"] = fault
        return subprocess.Popen([BIN, "run", script], env=e, cwd=self.place.dir, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT)

    def tail(self):
        return open(self.log, errors="replace").read()[-4000:]

    def finish(self, **kw):
        """Delivers what is left, and ends."""
        p = self.start(self.script(bounded=True, **kw))
        try:
            code = p.wait(120)
        except subprocess.TimeoutExpired:
            p.kill()
            raise Failure(f"the last run does not end\n{self.tail()}")
        require(code == 0, f"the last run ends with {code}\n{self.tail()}")

    def judge(self, want=None):
        got, objects = collections.Counter(), 0
        for key, data in self.place.objects():
            m = NAME.match(key)
            require(m, f"the key {key} is none of Firehose's")
            text = gzip.decompress(data)
            lines = text.split(b"\n")
            require(lines.pop() == b"" and all(l and l[:1] == b"{" and l[-1:] == b"}" for l in lines), f"{key}: lines")
            rows = [json.loads(l) for l in lines]
            require(all(list(r) == ["id", "part", "pad"] for r in rows), f"{key}: columns {rows[0]}")
            got.update(r["id"] for r in rows)
            objects += 1
        want = self.sent if want is None else want
        lost, extra = list((want - got).elements()), list((got - want).elements())
        require(not lost and not extra, f"{len(lost)} lost {lost[:8]}, {len(extra)} extra {extra[:8]}\n{self.tail()}")
        require(len(self.place.state("done")) == 1 and not self.place.state("intents"), f"state {self.place.state('done')} {self.place.state('intents')}")
        return objects


def kills(place, rounds):
    rng, p = random.Random(SEED), Pipeline(place)
    fates = collections.Counter()
    for _ in range(rounds):
        p.produce(rng.randrange(40, 160))
        point = rng.choice((*POINTS, None))
        j = p.start(p.script(), f"{point}:{rng.randrange(1, 3)}:kill" if point else None)
        try:
            j.wait(rng.uniform(0.3, 2) if not point else 4)
            require(point and j.returncode == -signal.SIGKILL, f"frazil ended with {j.returncode}\n{p.tail()}")
            fates[point] += 1
        except subprocess.TimeoutExpired:
            j.kill()
            j.wait()
            fates["time"] += 1
    p.finish()
    objects = p.judge()
    return f"seed {SEED}, {sum(p.sent.values())} records in {objects} objects; killed {dict(fates)}"


def kill_local():
    return kills(Local("kill"), ROUNDS)


def kill_s3():
    return kills(S3("kill"), (ROUNDS + 2) // 3)


def sleepers(place, rounds):
    """One copy is stopped in the middle of a delivery; a second one goes on for a while; the first wakes up beside it; then both are killed."""
    rng, p = random.Random(SEED + 1), Pipeline(place)
    for _ in range(rounds):
        p.produce(rng.randrange(20, 100))
        first = p.start(p.script(), f"{rng.choice(POINTS)}:{rng.randrange(1, 3)}:stop")
        time.sleep(rng.uniform(0.3, 1.0))
        second = p.start(p.script())
        time.sleep(rng.uniform(0.2, 0.8))
        p.produce(rng.randrange(1, 60))
        time.sleep(0.2)
        first.send_signal(signal.SIGCONT)
        p.produce(rng.randrange(1, 60))
        time.sleep(rng.uniform(0.3, 1.0))
        for j in (first, second):
            require(j.poll() is None, f"a copy ended with {j.returncode}\n{p.tail()}")
            j.kill()
            j.wait()
    p.finish()
    return f"seed {SEED + 1}, {sum(p.sent.values())} records in {p.judge()} objects, 'delivery.moved' {open(p.log, errors='replace').read().count('delivery.moved')} times"


def sleepers_local():
    return sleepers(Local("sleep"), 8)


def sleepers_s3():
    return sleepers(S3("sleep"), 4)


def stop():
    """SIGTERM delivers what is buffered, whatever the buffer still waits for."""
    p = Pipeline(Local("stop"))
    p.produce(200)
    p.finish()
    before = p.judge()
    p.produce(3)
    j = p.start(p.script(settings={"execution.checkpointing.interval": "1 h"}))
    time.sleep(1)
    j.send_signal(signal.SIGTERM)
    require(j.wait(30) == 0, f"ends with {j.returncode}\n{p.tail()}")
    require(p.judge() == before + 1, "not one object for the rest")


def error_path():
    """A place that takes nothing: after retry.duration the rows are in the error path, each once, and nothing is in the archive; then it takes, and only what is new goes there."""
    p = Pipeline(Local("error"))
    os.mkdir(f"{p.place.dir}/out")
    os.chmod(f"{p.place.dir}/out", 0o500)
    blocked = os.geteuid() == 0  # root may write anywhere: a file stands where the directory would be
    if blocked:
        os.rmdir(f"{p.place.dir}/out")
        open(f"{p.place.dir}/out", "w").close()
    p.produce(50)
    options = f"'error.path'='file://{p.place.dir}/errors/','retry.duration'='1 s',"
    p.finish(options=options)
    got = collections.Counter()
    for key, data in p.place.objects("errors"):
        require(re.match(r"errors/s3-failed/\d{4}/\d\d/\d\d/\d\d/arch-arch-1-", key), key)
        for line in data.decode().splitlines():
            e = json.loads(line)
            require(set(e) == {"attemptsMade", "arrivalTimestamp", "errorCode", "errorMessage", "attemptEndingTimestamp", "rawData", "table"}, line)
            require(e["attemptsMade"] >= 1 and abs(e["arrivalTimestamp"] / 1000 - time.time()) < 600, line)
            got[json.loads(base64.b64decode(e["rawData"]))["id"]] += 1
    require(got == p.sent, f"{sum(got.values())} rows in the error path, wanted {sum(p.sent.values())}")
    require(p.place.state("diverted"), "no record says what was diverted")
    os.remove(f"{p.place.dir}/out") if blocked else os.chmod(f"{p.place.dir}/out", 0o700)
    old = set(p.sent)
    p.produce(20)
    p.finish(options=options)
    p.judge(collections.Counter({k: n for k, n in p.sent.items() if k not in old}))


def granted_in_time():
    """It takes again before retry.duration is over: nothing is given up, nothing lost."""
    p = Pipeline(Local("granted"))
    open(f"{p.place.dir}/out", "w").close()
    p.produce(50)
    j = p.start(p.script(bounded=True, options=f"'error.path'='file://{p.place.dir}/errors/','retry.duration'='30 s',"))
    time.sleep(1.5)
    require(j.poll() is None, f"it ended with {j.returncode}\n{p.tail()}")
    os.remove(f"{p.place.dir}/out")
    require(j.wait(60) == 0, f"it ends with {j.returncode}\n{p.tail()}")
    p.judge()
    require(not list(p.place.objects("errors")), "there are error objects")



def renamed():
    """Another pipeline.name, or another name of the archive's table: nothing comes twice. The start is refused with both names and the numbers; adopt goes on, ignore begins anew, another place is another delivery."""
    p = Pipeline(Local("renamed"), partitions=1)
    p.produce(50)
    p.finish()

    def run(code, name="arch", table="arch", positions="check", **kw):
        script = p.script(bounded=True, settings={"pipeline.name": name, "frazil.positions": positions}, **kw)
        text = open(script).read().replace("TEMPORARY TABLE arch ", f"TEMPORARY TABLE {table} ").replace("INSERT INTO arch ", f"INSERT INTO {table} ")
        open(script, "w").write(text)
        before = len(open(p.log, errors="replace").read())
        got = p.start(script).wait(120)
        log = open(p.log, errors="replace").read()[before:]
        require(got == code, f"{name}, {table}, {positions}: it ends with {got}, wanted {code}\n{log[-3000:]}")
        return log

    def seen():
        return collections.Counter(json.loads(l)["id"] for _, data in p.place.objects() for l in gzip.decompress(data).splitlines())

    for name, table in (("other", "arch"), ("arch", "arch2")):
        log = run(2, name, table)
        for part in ("positions.other-key", "'arch/default_catalog.default_database.arch'", f"'{name}/default_catalog.default_database.{table}'", "position is 50", "has 0 to 50"):
            require(part in log, f"'{part}' is not in\n{log}")
    require(seen() == p.sent, "a start that was refused has delivered")
    p.produce(10)
    log = run(0, "other", positions="adopt")
    require("positions.adopted" in log and "position=50" in log and seen() == p.sent, f"adopt: {sum(seen().values())} rows of {sum(p.sent.values())}\n{log[-3000:]}")
    run(0, "other")  # its own now
    require(seen() == p.sent, "the start after adopt delivered again")
    p.produce(10)
    run(0, "other")
    log = run(2)  # the old name again: its own position is 50, and what lies behind it is delivered
    for part in ("positions.other-key", "'other/default_catalog.default_database.arch' has taken over", "its position is 70", "that of 'arch' is 50"):
        require(part in log, f"'{part}' is not in\n{log}")
    require(seen() == p.sent, "a start that was refused has delivered")
    p.produce(10)
    run(0, positions="adopt")
    p.produce(10)
    run(0)
    require(seen() == p.sent, "the old name has delivered again what the new one had")
    log = run(2, "other")
    require("'arch/default_catalog.default_database.arch' has taken over" in log and "its position is 90" in log, log)
    p.produce(10)
    run(0, "other", positions="adopt")
    require(seen() == p.sent, "back and forth")
    run(0, "elsewhere", path=f"file://{p.place.dir}/out2/")
    require(len(list(p.place.objects("out2"))), "another place is no other delivery")
    run(0, "third", positions="ignore")
    require(seen() == p.sent + p.sent, "ignore did not begin anew")


CASES = (kill_local, sleepers_local, stop, error_path, granted_in_time, renamed, kill_s3, sleepers_s3)
wanted = sys.argv[1:] or [f.__name__ for f in CASES]
if any(w.endswith("_s3") for w in wanted):
    moto("up", PORT)
try:
    main({f.__name__: f for f in CASES})
finally:
    if any(w.endswith("_s3") for w in wanted):
        moto("down")
