"""What the tests with a real broker share: the broker, jobs of the real binary, and judges of a table.

Environment: FRAZIL_BIN (build/frazil), FRAZIL_KAFKA_SH (test/peers/kafka.sh), FRAZIL_BROKER (host:port), FRAZIL_BROKER_DIR."""
import collections, json, os, re, signal, subprocess, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", os.path.join(ROOT, "build/frazil")))


class Failure(Exception):
    pass


def require(ok, message):
    if not ok:
        raise Failure(message)


class Broker:
    """kafka.sh of the peers: one broker of Apache Kafka."""

    def __init__(self, address=None, directory=None, log=None):
        self.address = address or os.environ["FRAZIL_BROKER"]
        self.dir = directory or os.environ["FRAZIL_BROKER_DIR"]
        self.sh = os.environ.get("FRAZIL_KAFKA_SH", os.path.join(ROOT, "test/peers/kafka.sh"))
        self.log = log or subprocess.DEVNULL

    def call(self, *args):
        p = subprocess.run(["bash", self.sh, args[0], self.dir, *map(str, args[1:])], capture_output=True, text=True)
        require(p.returncode == 0, f"kafka.sh {' '.join(map(str, args))}: {p.stdout[-2000:]}{p.stderr[-2000:]}")
        return p.stdout

    def topic(self, name, partitions, *config):
        self.call("topic", name, partitions, *config)
        return name

    def alter(self, *args):
        self.call("tool", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.address, *args)

    def delete(self, name):
        self.alter("--delete", "--topic", name)
        for _ in range(100):
            if f'"{name}"' not in subprocess.run(["kcat", "-b", self.address, "-L", "-m", "5"], capture_output=True, text=True).stdout:
                return
            time.sleep(0.1)
        raise Failure(f"topic {name} is still there")

    def produce(self, topic, partition, lines, *args):
        """lines: texts, or records (written as JSON)."""
        data = "".join((l if isinstance(l, str) else json.dumps(l)) + "\n" for l in lines).encode()
        p = subprocess.run(["kcat", "-b", self.address, "-P", "-t", topic, "-p", str(partition), "-X", "linger.ms=5", *args], input=data, capture_output=True)
        require(p.returncode == 0, f"kcat: {p.stderr.decode()}")

    def down(self):
        self.call("down")

    def up(self):
        self.call("up", self.address.rsplit(":", 1)[1])


class Tables:
    """A catalog of one's own in a directory, a topic as source, and jobs between them."""
    db = "db"

    def __init__(self, broker, name, tables=("t",), warehouse=None, columns="id BIGINT, host STRING, num INT", properties=""):
        self.broker, self.name, self.tables = broker, name, tables
        self.dir = tempfile.mkdtemp(prefix=f"frazil-{name}-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.warehouse = warehouse or f"{self.dir}/wh"
        self.columns, self.properties = columns, properties
        self.logfile = f"{self.dir}/frazil.log"
        self.runs = 0

    def catalog(self):
        return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{self.dir}/catalog.db','warehouse'='file://{self.warehouse}');\n"

    def init(self):
        path = f"{self.dir}/init.sql"
        with open(path, "w") as f:
            f.write(self.catalog())
        return path

    def script(self, topic, start="earliest-offset", bounded=False, settings=None, source="", inserts=None, name=None, interval="300 ms", source_columns="id BIGINT, host STRING, num STRING"):
        """Text of a job: from topic into every table, unless inserts say otherwise."""
        end = "'scan.bounded.mode'='latest-offset'," if bounded else ""
        inserts = inserts or [f"INSERT INTO c.{self.db}.{t} SELECT id, TRIM(host), CAST(num AS INT) FROM src WHERE TRIM(host) <> '';" for t in self.tables]
        parts = [self.catalog(), f"CREATE DATABASE IF NOT EXISTS c.{self.db};\n"]
        with_ = f" WITH ({self.properties})" if self.properties else ""
        parts += [f"CREATE TABLE IF NOT EXISTS c.{self.db}.{t} ({self.columns}) PARTITIONED BY (host){with_};\n" for t in self.tables]
        parts.append(f"CREATE TEMPORARY TABLE src ({source_columns}) WITH ('connector'='kafka','topic'='{topic}','properties.bootstrap.servers'='{self.broker.address}',"
                     f"'properties.group.id'='{self.name}','scan.startup.mode'='{start}',{end}{source}'format'='json','json.ignore-parse-errors'='true');\n")
        options = {"pipeline.name": name or self.name, "execution.checkpointing.interval": interval, "frazil.state.dir": f"{self.dir}/state", "parallelism.default": "2"}
        options.update(settings or {})
        parts += [f"SET '{k}' = '{v}';\n" for k, v in options.items()]
        parts += ["STATEMENT SET BEGIN\n", "\n".join(inserts), "\nEND;\n"]
        self.runs += 1
        path = f"{self.dir}/job{self.runs}.sql"
        with open(path, "w") as f:
            f.write("".join(parts))
        return path

    def start(self, script, fault=None, env=None):
        return Job(self, script, fault, env)

    def run(self, script, code=0, fault=None, timeout=90, env=None):
        """Runs to the end; returns what it logged."""
        j = self.start(script, fault, env)
        got = j.wait(timeout)
        require(got == code, f"exit code {got}, wanted {code}\n{j.text()[-4000:]}")
        return j.text()

    def sql(self, query):
        p = subprocess.run([BIN, "sql", "-i", self.init(), "--format", "json", "-e", query], capture_output=True, text=True)
        require(p.returncode == 0, f"{query}: {p.stderr}")
        return [json.loads(l) for l in p.stdout.splitlines() if l.strip()]

    def ids(self, table="t"):
        return [r["id"] for r in self.sql(f"SELECT id FROM c.{self.db}.{table}")]

    def count(self, table="t"):
        return self.sql(f"SELECT COUNT(*) AS n FROM c.{self.db}.{table}")[0]["n"]

    def positions(self, table="t", pipeline=None):
        """{partition: next} of the pipeline, as the table's own metadata tells; {} when there is none."""
        p = subprocess.run([BIN, "inspect", f"c.{self.db}.{table}", "-i", self.init(), "--format", "json"], capture_output=True, text=True)
        out = {}
        for l in p.stdout.splitlines():
            j = json.loads(l)
            for pos in j.get("positions", [j] if "next" in j else []):
                if pos.get("pipeline") == (pipeline or self.name):
                    out[pos["partition"]] = pos["next"]
        return out

    def audit(self, table="t", code=0):
        p = subprocess.run([BIN, "audit", f"c.{self.db}.{table}", "-i", self.init(), "--files"], capture_output=True, text=True)
        require(p.returncode == code, f"audit of {self.name}.{table} gives {p.returncode}:\n{p.stdout}{p.stderr}")
        return p.stdout

    def strange(self, table="t"):
        """The table as PyIceberg sees it; None without PyIceberg."""
        try:
            from pyiceberg.catalog.sql import SqlCatalog
        except ImportError:
            return None
        return SqlCatalog("c", uri=f"sqlite:///{self.dir}/catalog.db", warehouse=f"file://{self.warehouse}").load_table(f"{self.db}.{table}")

    def judge(self, want, table="t", audit=True):
        """The table holds the ids of want, each as often as it stands there; audit passes; no data file is live twice; PyIceberg counts the same."""
        got, wanted = collections.Counter(self.ids(table)), collections.Counter(want)
        lost, extra = list((wanted - got).elements()), list((got - wanted).elements())
        require(not lost and not extra, f"{self.name}.{table}: {len(lost)} lost {sorted(lost)[:8]}, {len(extra)} extra {sorted(extra)[:8]}\n{self.tail()}")
        if audit:
            self.audit(table)
        t = self.strange(table)
        if t:
            paths = [f.file.file_path for f in t.scan().plan_files()]
            require(len(paths) == len(set(paths)), f"{self.name}.{table}: a data file is live twice")
            n = t.scan().to_arrow().num_rows
            require(n == sum(wanted.values()), f"{self.name}.{table}: PyIceberg counts {n} rows, not {sum(wanted.values())}")

    def wait_rows(self, n, table="t", seconds=30, job=None):
        until = time.monotonic() + seconds
        while True:
            try:
                have = self.count(table)
            except Failure:
                have = -1
            if have >= n:
                return
            if job:
                require(job.alive(), f"the job ended:\n{job.text()[-3000:]}")
            require(time.monotonic() < until, f"{self.name}.{table}: {have} rows, waiting for {n}\n{self.tail()}")
            time.sleep(0.2)

    def letters(self):
        """Dead letters, parsed; torn lines (a kill) are left out."""
        out, d = [], f"{self.dir}/state/dead-letter"
        for f in sorted(os.listdir(d)) if os.path.isdir(d) else []:
            for l in open(os.path.join(d, f), errors="replace"):
                try:
                    out.append(json.loads(l))
                except ValueError:
                    continue
        return out

    def tail(self, n=25):
        return "".join(open(self.logfile, errors="replace").readlines()[-n:]) if os.path.exists(self.logfile) else ""


class Job:
    """A running `frazil run`. Its log goes to a file of its own, which the log of its Tables gets at the end."""

    def __init__(self, tables, script, fault=None, env=None):
        self.tables, self.path = tables, f"{tables.dir}/run-{os.path.basename(script)}-{time.monotonic_ns()}.log"
        environment = dict(os.environ, **(env or {}))
        if fault:
            environment["FRAZIL_FAULT"] = fault
        with open(self.path, "wb") as log:
            self.p = subprocess.Popen([BIN, "run", script], stdout=log, stderr=log, env=environment)
        with open(tables.logfile, "a") as f:
            f.write(f"--- {script} fault {fault} pid {self.p.pid}\n")

    def text(self):
        return open(self.path, errors="replace").read()

    def alive(self):
        return self.p.poll() is None

    def _over(self):
        with open(self.tables.logfile, "a") as f:
            f.write(self.text() + f"--- exit {self.p.returncode}\n")
        return self.p.returncode

    def wait(self, seconds):
        try:
            self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            self._over()
            raise Failure(f"the job did not end in {seconds} s\n{self.text()[-3000:]}")
        return self._over()

    def wait_stopped(self, seconds):
        """True when it stopped itself (fault action stop) in that time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.alive():
            if open(f"/proc/{self.p.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T":
                return True
            time.sleep(0.01)
        return False

    def wait_log(self, pattern, seconds=30):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.text()):
            require(self.alive(), f"the job ended before it logged {pattern!r}\n{self.text()[-3000:]}")
            require(time.monotonic() < until, f"no line like {pattern!r} in {seconds} s\n{self.text()[-3000:]}")
            time.sleep(0.05)

    def signal(self, s):
        self.p.send_signal(s)

    def kill(self):
        self.p.kill()
        self.p.wait()
        return self._over()

    def stop(self, code=0, seconds=60):
        """SIGTERM: a last checkpoint, then the end."""
        self.p.send_signal(signal.SIGTERM)
        got = self.wait(seconds)
        require(got == code, f"exit code {got} after SIGTERM, wanted {code}\n{self.text()[-3000:]}")
        return self.text()


def main(cases, setup=None):
    """Runs the functions of `cases` (all, or those named in the arguments), prints a line each; exits with 1 when one fails."""
    import sys, traceback
    names = sys.argv[1:] or list(cases)
    failed = []
    for n in names:
        began = time.monotonic()
        try:
            note = cases[n]()
            print(f"ok     {n} ({time.monotonic() - began:.1f} s){': ' + note if note else ''}", flush=True)
        except Failure as e:
            failed.append(n)
            print(f"FAILED {n} ({time.monotonic() - began:.1f} s): {e}", flush=True)
        except Exception:
            failed.append(n)
            print(f"FAILED {n}: {traceback.format_exc()}", flush=True)
    print(f"{os.path.basename(sys.argv[0])}: {len(names) - len(failed)} of {len(names)} ok")
    sys.exit(1 if failed else 0)
