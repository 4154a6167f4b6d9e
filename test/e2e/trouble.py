#!/usr/bin/env python3
"""One table and one archive behind a listener, all of it in local files, in troubles of their places: a job that is told to stop while its archive is stuck, a table whose directory is away, one that is
dropped, error locations that cannot be.

usage: trouble.py [CASE...]; it needs no peers."""
import glob, gzip, http.client, json, os, re, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, Job, main, require

STARTED = []


class Place:
    def __init__(self, name, settings=None, hint=""):
        self.dir = tempfile.mkdtemp(prefix=f"frazil-trouble-{name}-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.logfile, self.script, self.hint = f"{self.dir}/frazil.log", f"{self.dir}/job.sql", hint
        self.settings = {"pipeline.name": "trouble", "frazil.state.dir": f"{self.dir}/state", "execution.checkpointing.interval": "300 ms", **(settings or {})}
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{self.dir}/catalog.db','warehouse'='file://{self.dir}/wh');\n"
        self.write()

    def write(self):
        text = "".join(f"SET '{k}' = '{v}';\n" for k, v in self.settings.items()) + self.catalog
        text += "CREATE DATABASE IF NOT EXISTS c.db;\nCREATE TABLE IF NOT EXISTS c.db.t (id BIGINT);\nCREATE TABLE IF NOT EXISTS c.db.u (id BIGINT);\n"
        text += "CREATE TEMPORARY TABLE src (id BIGINT) WITH ('connector'='http','listen'='127.0.0.1:0');\n"
        text += f"CREATE TEMPORARY TABLE arch (id BIGINT) WITH ('connector'='firehose-s3','path'='file://{self.dir}/arch/','buffer.interval'='200 ms','compression'='GZIP');\n"
        text += f"STATEMENT SET BEGIN\nINSERT INTO c.db.t {self.hint} SELECT id FROM src;\nINSERT INTO c.db.u SELECT id FROM src;\nINSERT INTO arch SELECT id FROM src;\nEND;\n"
        open(self.script, "w").write(text)

    def start(self):
        j = Job(self, self.script)
        STARTED.append(j.p)
        j.wait_log("source.listening", 60)
        self.port = int(re.search(r"event=source.listening.*?address=127\.0\.0\.1:(\d+)", j.text()).group(1))
        return j

    def send(self, *ids):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request("POST", "/", "\n".join(json.dumps({"id": i}) for i in ids), {"Content-Type": "application/x-ndjson"})
        require(c.getresponse().status == 200, "not taken")
        c.close()

    def sql(self, text):
        p = subprocess.run([BIN, "sql", "-e", self.catalog + text, "--format", "json"], capture_output=True, text=True)
        require(p.returncode == 0, p.stderr)
        return [json.loads(l) for l in p.stdout.splitlines() if l.startswith("{")]

    def rows(self, table):
        return sorted(r["id"] for r in self.sql(f"SELECT id FROM c.db.{table}"))

    def wait_rows(self, table, want, j, seconds=60):
        until = time.monotonic() + seconds
        while self.rows(table) != want:
            require(j.alive() and time.monotonic() < until, f"{table} has {self.rows(table)}, wanted {want}\n{j.text()[-3000:]}")
            time.sleep(0.2)

    def archived(self):
        return sorted(json.loads(l)["id"] for f in glob.glob(f"{self.dir}/arch/**/*.gz", recursive=True) for l in gzip.open(f, "rt"))

    def run(self, *args):
        return subprocess.run([BIN, *args], capture_output=True, text=True, timeout=60)


def stop_with_stuck_archive():
    """SIGTERM while the archive takes nothing: the tables have their last checkpoint, the job ends long before retry.duration (300 s) and says what is left and where; the next start delivers it, once."""
    p = Place("stuck", {"frazil.stop.timeout": "1 s"})
    open(f"{p.dir}/arch", "w").close()
    j = p.start()
    p.send(1, 2)
    j.wait_log("delivery.retry", 60)
    p.send(3)
    p.wait_rows("t", [1, 2, 3], j)
    text = j.stop(code=2, seconds=120)
    left = re.findall(r"event=stop.left sink=(\S+) records=(\d+) kept_by=\"(.*?)\" reason=(\S+)", text)
    require(len(left) == 1 and left[0][0].endswith(".arch") and left[0][1] == "3" and left[0][2].startswith("the spool of ") and left[0][3] == "file.not-found", f"{left}\n{text[-2000:]}")
    require(p.rows("u") == [1, 2, 3], "the other table has no last checkpoint")
    os.remove(f"{p.dir}/arch")
    j = p.start()
    until = time.monotonic() + 60
    while p.archived() != [1, 2, 3]:
        require(j.alive() and time.monotonic() < until, f"{p.archived()}\n{j.text()[-2000:]}")
        time.sleep(0.1)
    text = j.stop()
    require("stop.left" not in text, text[-2000:])
    require(p.archived() == [1, 2, 3] and p.rows("t") == [1, 2, 3], f"{p.archived()} {p.rows('t')}")


def stop_with_waiting_table():
    """The same for a table that is waited for, the only sink of its job."""
    p = Place("waiting", {"frazil.stop.timeout": "1 s"})
    text = re.sub(r"INSERT INTO c\.db\.u .*\n|INSERT INTO arch .*\n", "", open(p.script).read())
    open(p.script, "w").write(text)
    j = p.start()
    p.send(1)
    p.wait_rows("t", [1], j)
    os.rename(f"{p.dir}/wh/db/t", f"{p.dir}/away")
    open(f"{p.dir}/wh/db/t", "w").close()
    p.send(2)
    j.wait_log("commit.retry|sink.waiting", 60)
    text = j.stop(code=2, seconds=120)
    require(re.search(r"event=stop.left sink=c.db.t ", text), text[-2000:])
    os.remove(f"{p.dir}/wh/db/t")
    os.rename(f"{p.dir}/away", f"{p.dir}/wh/db/t")
    j = p.start()
    p.wait_rows("t", [1, 2], j)
    j.stop()


def stop_with_silent_store():
    """The same for an archive whose store takes connections and never answers."""
    p = Place("silent", {"frazil.stop.timeout": "1 s"})
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(64)
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        options = f"'path'='s3://b/x/','s3.endpoint'='{url}','s3.path-style-access'='true','s3.access-key-id'='test','s3.secret-access-key'='test','client.region'='us-east-1'"
        text = open(p.script).read().replace(f"'path'='file://{p.dir}/arch/'", options)
        open(p.script, "w").write(text)
        j = p.start()
        p.send(1)
        p.wait_rows("t", [1], j)
        door.settimeout(60)
        door.accept()[0].recv(1)  # the object is on its way
        text = j.stop(code=2, seconds=100)  # unhurried, five tries of 30 s
        require(re.search(r"event=stop.left sink=\S+\.arch records=1 ", text), text[-2000:])


def table_directory_away():
    """A file where a table's directory was: the table waits, the others go on, and with the directory back it has everything once."""
    p = Place("away")
    j = p.start()
    p.send(1)
    p.wait_rows("t", [1], j)
    os.rename(f"{p.dir}/wh/db/t", f"{p.dir}/away")
    open(f"{p.dir}/wh/db/t", "w").close()
    p.send(2)
    j.wait_log("event=sink.waiting code=file.not-found", 60)
    j.wait_log("event=sink.waiting code=catalog.metadata-missing", 60)
    p.send(3)
    p.wait_rows("u", [1, 2, 3], j)
    os.remove(f"{p.dir}/wh/db/t")
    os.rename(f"{p.dir}/away", f"{p.dir}/wh/db/t")
    p.wait_rows("t", [1, 2, 3], j)
    text = j.stop()
    require("sink.failed" not in text and p.archived() == [1, 2, 3], text[-2000:])


def table_diverted():
    """The same with an error location: what the table could not take in time is there."""
    p = Place("divert")
    p.hint = f"/*+ OPTIONS('error.path'='file://{p.dir}/errors/','retry.duration'='1 s') */"
    p.write()
    j = p.start()
    p.send(1)
    p.wait_rows("t", [1], j)
    os.rename(f"{p.dir}/wh/db/t", f"{p.dir}/away")
    open(f"{p.dir}/wh/db/t", "w").close()
    p.send(2)
    j.wait_log("event=sink.diverted", 60)
    os.remove(f"{p.dir}/wh/db/t")
    os.rename(f"{p.dir}/away", f"{p.dir}/wh/db/t")
    j.wait_log("event=divert.named", 60)
    p.send(3)
    p.wait_rows("t", [1, 3], j)
    j.stop()
    r = p.run("replay", f"file://{p.dir}/errors/", "-f", p.script)
    require(r.returncode == 0 and p.rows("t") == [1, 2, 3], r.stdout + r.stderr)


def table_dropped(policy):
    """A table that is dropped under the job is not waited for: frazil.on-sink-failure says what becomes of the others."""
    p = Place("dropped", {"frazil.on-sink-failure": policy})
    j = p.start()
    p.send(1)
    p.wait_rows("t", [1], j)
    p.sql("DROP TABLE c.db.t;")
    p.send(2)
    j.wait_log("event=sink.failed", 60)
    if policy == "stop":
        require(j.wait(60) == 2, j.text()[-2000:])
    else:
        p.send(3)
        p.wait_rows("u", [1, 2, 3], j)
        j.stop(code=2)
    require(p.rows("u") == p.archived() == [1, 2] + [3] * (policy == "continue"), f"{p.rows('u')} {p.archived()}")


def error_location_refused():
    """An error location that no store has, or with an expression that is not known, refuses at the start, and `frazil doctor` blames it and nothing else."""
    for where in ("gs://x/", "file://elsewhere/x/", "file:///tmp/e/!{foo:bar}/"):
        for own in (False, True):
            p = Place("refused", {} if own else {"frazil.error.path": where}, f"/*+ OPTIONS('error.path'='{where}') */" if own else "")
            r = p.run("run", p.script)
            require(r.returncode == 1 and "error.path" in r.stderr, f"{where}: {r.returncode}\n{r.stderr}")
            r = p.run("doctor", "-f", p.script, "--format", "json")
            failed = [s["code"] for s in json.loads(r.stdout)["steps"] if s["status"] == "fail"]
            require(failed == ["doctor.script" if own else "doctor.error-path"] * len(failed) and failed, f"{where}: {failed}\n{r.stdout}")
    p = Place("none", {"frazil.error.path": "file:///proc/none/"})
    r = p.run("doctor", "-f", p.script)
    require(r.returncode == 2 and "doctor.files" in r.stdout, r.stdout)


def taken():
    """A port or a spool that another process has is no fault of the script: exit code 2, with advice."""
    p = Place("taken")
    j = p.start()
    r = p.run("run", p.script)
    require(r.returncode == 2 and "spool.in-use" in r.stderr, f"{r.returncode}\n{r.stderr}")
    q = Place("port", {"metrics.port": str(p.port)})
    r = q.run("run", q.script)
    require(r.returncode == 2 and "listen.in-use" in r.stderr and "listen on another port" in r.stderr, f"{r.returncode}\n{r.stderr}")
    j.stop()


def state_is_a_file():
    p = Place("state")
    open(f"{p.dir}/state", "w").close()
    r = p.run("run", p.script)
    require(r.returncode == 1 and "a file stands where" in r.stderr, f"{r.returncode}\n{r.stderr}")
    r = p.run("doctor", "-f", p.script)
    require(f"{p.dir}/state is a file" in r.stdout, r.stdout)


def tables_counted_once():
    """Several INSERTs into one table that is not there yet: one table to be made."""
    p = Place("count")
    text = open(p.script).read().replace("INSERT INTO c.db.u SELECT id FROM src;\n", "INSERT INTO c.db.u SELECT id FROM src;\nINSERT INTO c.db.u SELECT id + 1 FROM src;\nINSERT INTO c.db.t SELECT id + 1 FROM src;\n")
    open(p.script, "w").write(text)
    r = p.run("doctor", "-f", p.script)
    require("2 tables to be made" in r.stdout, r.stdout)


def listeners_told_apart():
    """Two listeners of one kind feed one table: audit tells their splits apart."""
    p = Place("two")
    text = open(p.script).read().replace("STATEMENT SET", "CREATE TEMPORARY TABLE src2 (id BIGINT) WITH ('connector'='http','listen'='127.0.0.1:0');\nSTATEMENT SET", 1)
    open(p.script, "w").write(text.replace("INSERT INTO c.db.u SELECT id FROM src;", "INSERT INTO c.db.t SELECT id FROM src2;"))
    j = p.start()
    j.wait_log("event=job.start", 60)
    for n, port in enumerate(re.findall(r"event=source.listening.*?address=127\.0\.0\.1:(\d+)", j.text())):
        p.port = int(port)
        p.send(n + 1)
    p.wait_rows("t", [1, 2], j)
    j.stop()
    init = f"{p.dir}/catalog.sql"
    open(init, "w").write(p.catalog)
    r = p.run("audit", "c.db.t", "-i", init)
    splits = re.findall(r"split http/0 \((spool:[0-9a-f]{8})\)", r.stdout)
    require(len(set(splits)) == 2, r.stdout + r.stderr)


def empty_firehose_record():
    """A record without bytes is acknowledged, as the service does, gives no row, and the log says so."""
    p = Place("empty")
    text = open(p.script).read().replace("'connector'='http'", "'connector'='firehose','stream-name'='src'")
    open(p.script, "w").write(text)
    j = p.start()
    c = http.client.HTTPConnection("127.0.0.1", p.port, timeout=30)
    c.request("POST", "/", json.dumps({"DeliveryStreamName": "src", "Record": {"Data": ""}}), {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Firehose_20150804.PutRecord"})
    r = c.getresponse()
    require(r.status == 200, r.read())
    j.wait_log("event=firehose.empty .*records=1 ", 60)
    require(re.search("event=job.end .*unparseable=1 ", j.stop()), "not counted")


try:
    main({"stop_with_stuck_archive": stop_with_stuck_archive, "stop_with_waiting_table": stop_with_waiting_table, "stop_with_silent_store": stop_with_silent_store, "table_directory_away": table_directory_away, "table_diverted": table_diverted,
          "table_dropped_stop": lambda: table_dropped("stop"), "table_dropped_continue": lambda: table_dropped("continue"), "error_location_refused": error_location_refused, "taken": taken,
          "state_is_a_file": state_is_a_file, "tables_counted_once": tables_counted_once, "listeners_told_apart": listeners_told_apart, "empty_firehose_record": empty_firehose_record})
finally:
    for started in STARTED:
        if started.poll() is None:
            started.kill()
