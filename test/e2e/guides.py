#!/usr/bin/env python3
"""What the guides print is what happens: their scripts and commands are taken from the pages and run, with nothing replaced but directories and ports.

usage: guides.py [CASE...]   Only the first job needs a broker, which test/e2e/run.sh gives."""
import json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, ROOT, Broker, main, require

DIR = tempfile.mkdtemp(prefix="frazil-guides-", dir=os.environ.get("FRAZIL_TEST_DIR"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def guide(name):
    with open(f"{ROOT}/docs/guide/{name}.md") as f:
        return f.read()


class Guide:
    """A page, with directories and ports of its own."""

    def __init__(self, name):
        self.dir = tempfile.mkdtemp(dir=DIR)
        for d in ("lib", "log", "bin"):
            os.mkdir(f"{self.dir}/{d}")
        os.symlink(BIN, f"{self.dir}/bin/frazil")
        text = guide(name) if name != "listeners" else ""
        for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d{4,5})", text))):
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
        self.text = text.replace("/var/lib/frazil", f"{self.dir}/lib").replace("/var/log/app", f"{self.dir}/log")
        self.env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}"}
        self.job = None

    def write(self, name, text):
        with open(f"{self.dir}/{name}", "w") as f:
            f.write(text)

    def script(self):
        """The first SQL block, under the name that the page gives it."""
        name = re.search(r"^As `(\S+\.sql)`", self.text, re.M)[1]
        self.write(name, re.search(r"^```sql\n(.*?)^```", self.text, re.M | re.S)[1])
        return name

    def block(self, beginning):
        """The indented block that begins so, without its indentation."""
        m = re.search(r"(?:^    .*\n)+", self.text[self.text.index("    " + beginning):], re.M)
        return re.sub(r"^    ", "", m[0], flags=re.M)

    def commands(self):
        """[(command, [lines that it prints])] in the order of the page."""
        found, inside = [], False
        for line in self.text.splitlines():
            if line.startswith("    $ "):
                found.append((line[6:], []))
                inside = True
            elif inside and line.startswith("    "):
                found[-1][1].append(line[4:])
            else:
                inside = False
        return found

    def shell(self, command):
        p = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=self.dir, env=self.env, timeout=120)
        require(p.returncode == 0, f"{command}: exit code {p.returncode}\n{p.stdout}{p.stderr}")
        return p.stdout

    def play(self, commands):
        for command, wanted in commands:
            if command.startswith("frazil run "):
                self.start(command)
                continue
            got = self.shell(command)
            require(not wanted or got.splitlines() == wanted, f"{command}\nprints\n{got}the page says\n" + "\n".join(wanted))

    def start(self, command):
        self.out = open(f"{self.dir}/out", "w+")
        self.err = open(f"{self.dir}/err", "w+")
        self.job = subprocess.Popen(["bash", "-c", "exec " + command], stdout=self.out, stderr=self.err, cwd=self.dir, env=self.env)
        end = time.time() + 60
        while "event=job.start" not in self.log():
            require(self.job.poll() is None and time.time() < end, f"{command}: {self.log()}")
            time.sleep(0.05)

    def log(self):
        with open(f"{self.dir}/err") as f:
            return f.read()

    def stop(self):
        self.job.send_signal(signal.SIGTERM)
        require(self.job.wait(60) == 0, self.log())
        self.job = None

    def number(self, script, query):
        out = self.shell(f"frazil sql -i {script} --format csv -e '{query}'").split()
        return int(out[-1]) if out and out[-1].isdigit() else -1

    def close(self):
        if self.job and self.job.poll() is None:
            self.job.kill()
            self.job.wait()


def catalog(g):
    m = re.search(r"^CREATE CATALOG .*?;\n", g.text, re.M | re.S)
    g.write("catalog.sql", m[0])
    return m[0]


def page(name):
    def decorate(f):
        def case():
            g = Guide(name)
            try:
                f(g)
            finally:
                g.close()
        case.__doc__ = f.__doc__
        CASES[name] = case
        return case
    return decorate


CASES = {}


@page("http")
def http(g):
    name = g.script()
    g.shell(f"frazil doctor -f {name}")
    require(f"frazil run {name}" in g.text, "the page says how it is started")
    g.start(f"frazil run {name}")
    commands = g.commands()
    require(len(commands) > 4, f"commands are missing: {commands}")
    g.play(commands)
    g.stop()
    catalog(g)
    for _ in range(20):  # what was acknowledged just before the end is in the spool, and the next start's
        if g.number("catalog.sql", "SELECT COUNT(*) AS n FROM lake.logs.events") == 5:
            break
        g.start(f"frazil run {name}")
        time.sleep(0.5)
        g.stop()
    require(g.number("catalog.sql", "SELECT COUNT(*) AS n FROM lake.logs.events") == 5, g.log())


@page("deliveries")
def deliveries(g):
    g.script()
    g.play(g.commands())
    require(g.job.wait(60) == 0, g.log())
    with open(f"{g.dir}/out") as f:
        printed = f.read()
    said = re.search(r"The job printed `(.*?)`", g.text)[1]
    require(printed == said + "\n", f"printed {printed!r}, the page says {said!r}")


@page("files")
def files(g):
    g.script()
    catalog_text = catalog(g)
    commands = g.commands()
    at = [i for i, (c, _) in enumerate(commands) if c.startswith("frazil sql")][0]
    g.play(commands[:at])
    end = time.time() + 90
    while g.number("catalog.sql", "SELECT COUNT(*) AS n FROM lake.logs.app") != 150:
        require(time.time() < end, g.log())
        time.sleep(0.5)
    g.stop()
    require("150" in g.shell(commands[at][0]) and "audit passed" in g.shell(commands[at + 1][0]), "counts")
    g.write("look.sql", g.block("CREATE TEMPORARY TABLE lines"))
    require("150" in g.shell("frazil sql -f look.sql"), "look.sql")
    g.write("stdin.sql", catalog_text + g.block("CREATE TEMPORARY TABLE input"))
    g.shell(g.block("frazil gen syslog --count 1000"))
    require(g.number("catalog.sql", "SELECT COUNT(*) AS n FROM lake.logs.app") == 1150, "standard input")


@page("first-job")
def first_job(g):
    """The steps of the first page, with a broker when the environment names one."""
    if "FRAZIL_BROKER" not in os.environ:
        return
    broker, topic = Broker(), f"guides-syslog-{os.getpid()}"
    broker.topic(topic, 2)
    broker.produce(topic, 0, [{"ts": "2026-09-16T12:34:56+09:00", "src_host": " raspi4-3 ", "program": "sshd", "message": "m"}, {"ts": "2026-09-16T13:00:00+09:00", "src_host": ""}])
    blocks = [re.sub(r"^       ", "", b, flags=re.M) for b in re.findall(r"(?:^       .*\n|^\n(?=       ))+", g.text, re.M)]
    tables = [b for b in blocks if "'catalog-type'" in b][0].lstrip()
    pipeline = [b for b in blocks if "INSERT INTO" in b][0].lstrip()
    g.write("create_tables.sql", tables)
    g.write("kafka_to_iceberg.sql", pipeline.replace("CREATE CATALOG lake WITH (...as above...);", tables[:tables.index(";") + 1]).replace("kafka1:9092", broker.address).replace("'topic' = 'syslog'", f"'topic' = '{topic}'")
            .replace("INSERT INTO", "SET 'execution.checkpointing.interval' = '1 s';\nINSERT INTO"))
    require("`frazil run create_tables.sql kafka_to_iceberg.sql`" in g.text, "the page says how it is started")
    g.start("frazil run create_tables.sql kafka_to_iceberg.sql")
    end = time.time() + 60
    while g.number("create_tables.sql", "SELECT COUNT(*) AS n FROM lake.logs.syslog_events") != 1:
        require(time.time() < end, g.log())
        time.sleep(0.5)
    g.stop()
    for command in re.findall(r"^       (frazil (?:sql|inspect|audit) .*)$", g.text, re.M):
        said = g.shell(command)
        require("sql" not in command[:11] or "2026-09-16" in said, said)
        require("audit" not in command or "audit passed" in said, said)


@page("catalogs")
def catalogs(g):
    """The options of each CREATE CATALOG are understood; nobody answers at their addresses here, which is another step's matter."""
    nobody = f"127.0.0.1:{free_port()}"
    found = re.findall(r"^    (CREATE CATALOG .*?\);)", g.text, re.M | re.S)
    require(len(found) >= 5, g.text)
    env = {"AWS_ENDPOINT_URL": f"http://{nobody}", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "ap-northeast-1", "LAKE_CREDENTIAL": "id:secret"}
    for i, text in enumerate(found):
        text = re.sub(r"https://[a-z0-9.-]+", f"http://{nobody}", text).replace("db.example:5432", nobody)
        g.write(f"{i}.sql", text + "\nSELECT 1;\n")
        p = subprocess.run([BIN, "doctor", "-f", f"{g.dir}/{i}.sql", "--format", "json"], capture_output=True, text=True, cwd=g.dir, env={"PATH": os.environ["PATH"], "HOME": g.dir, **env}, timeout=120)
        script = [s for s in json.loads(p.stdout)["steps"] if s["code"] == "doctor.script"]
        require(script and script[0]["status"] != "fail", f"{text}\n{p.stdout}")


@page("configuration")
def configuration(g):
    """The settings of the pages are known."""
    g.write("config.yaml", g.block("execution.checkpointing.interval"))
    g.shell("frazil sql --config config.yaml -e 'SHOW CATALOGS'")
    g.write("sets.sql", re.sub(r"^    ", "", "".join(re.findall(r"^    SET .*\n", guide("metrics"), re.M)), flags=re.M) + "SHOW CATALOGS;\n")
    g.shell("frazil sql -f sets.sql")


@page("listeners")
def listeners(g):
    """The tables of the pages on agents: their columns and options are understood."""
    for name in ("forward", "syslog", "firehose", "otlp"):
        text = guide(name)
        table = re.search(r"CREATE TEMPORARY TABLE (\w+) .*?;", text, re.S)
        g.write(f"{name}.sql", f"SET 'frazil.state.dir' = '{g.dir}/lib';\n{table[0]}\nEXPLAIN SELECT * FROM {table[1]};\n")
        g.shell(f"frazil sql -f {name}.sql")


if __name__ == "__main__":
    try:
        main(CASES)
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(DIR, ignore_errors=True)
