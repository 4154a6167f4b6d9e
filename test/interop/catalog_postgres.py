#!/usr/bin/env python3
"""One SQL catalog on PostgreSQL: ours, Java's JdbcCatalog and PyIceberg's SqlCatalog on the same tables; races; and every way in which a commit's answer
can get lost, each of which must leave an outcome that is known and right.

    catalog_postgres.py TOOL DIR [CASE...]    TOOL: test/tools/catalog_tool.c; DIR: of a server that test/peers/postgres.sh started (see postgres.sh here)
Environment: FRAZIL_BIN (build/frazil), CLASSPATH for Java.
"""
import atexit
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import psycopg2
import pyarrow as pa
from proxy import Proxy
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", os.path.join(HERE, "../../build/frazil")))
TOOL, DIR = os.path.abspath(sys.argv[1]), sys.argv[2]
PORT = int(open(f"{DIR}/port").read())
SOCKET = open(f"{DIR}/socket").read().strip()
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
ARROW = pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string())])


def check(what, ok, *more):
    print("ok  " if ok else "FAIL", what, *(more if not ok else ()), flush=True)
    if not ok:
        raise SystemExit(1)


class Failed(Exception):
    """The tool's error: cls, code, text."""

    def __init__(self, stderr):
        super().__init__(stderr)
        parts = stderr.split(" ", 2)
        self.cls, self.code = parts[0], parts[1].strip("[]") if len(parts) > 1 else ""


class Lake:
    """A database of its own with a warehouse of its own."""
    made = 0

    def __init__(self):
        Lake.made += 1
        self.name = f"lake{Lake.made}"
        self.wh = tempfile.mkdtemp(prefix="wh-", dir=DIR)
        boss = psycopg2.connect(host=SOCKET, port=PORT, user="postgres", dbname="postgres")
        boss.autocommit = True
        boss.cursor().execute(f"CREATE DATABASE {self.name} OWNER frazil")
        boss.close()
        self.uri = f"postgresql://frazil:frazil@127.0.0.1:{PORT}/{self.name}"
        self.jdbc = f"jdbc:postgresql://127.0.0.1:{PORT}/{self.name}?user=frazil&password=frazil"

    def connect(self, user="frazil"):
        c = psycopg2.connect(host=SOCKET, port=PORT, user=user, dbname=self.name)
        c.autocommit = True
        return c

    def ask(self, sql):
        with self.connect() as c, c.cursor() as k:
            k.execute(sql)
            return k.fetchall() if k.description else None

    def run(self, *args, uri=None, o=(), fault=None):
        options = [x for kv in o for x in ("-o", kv)]
        env = dict(os.environ, **({"FRAZIL_FAULT": fault} if fault else {}))
        r = subprocess.run([TOOL, *options, "sql", uri or self.uri, f"file://{self.wh}", "lake", *args], capture_output=True, text=True, env=env)
        if r.returncode:
            raise Failed(r.stderr)
        return r.stdout.split("\n")[:-1]

    def start(self, *args, uri=None, o=()):
        options = [x for kv in o for x in ("-o", kv)]
        return subprocess.Popen([TOOL, *options, "sql", uri or self.uri, f"file://{self.wh}", "lake", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def pyiceberg(self, **more):
        return SqlCatalog("lake", uri=self.uri.replace("postgresql:", "postgresql+psycopg2:"), warehouse=f"file://{self.wh}", **more)

    def sql(self, *statements, port=PORT):
        with open(f"{self.wh}/init.sql", "w") as f:
            f.write(f"CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'='jdbc','uri'='jdbc:postgresql://127.0.0.1:{port}/{self.name}',"
                    f"'jdbc.user'='frazil','jdbc.password'='frazil','warehouse'='file://{self.wh}');\nUSE CATALOG lake;\n")
        args = [x for s in statements for x in ("-e", s)]
        p = subprocess.run([BIN, "sql", "-i", f"{self.wh}/init.sql", "--format", "json", *args], capture_output=True, text=True)
        check(f"frazil sql: {statements[-1][:60]}", p.returncode == 0, p.stderr)
        return [json.loads(line) for line in p.stdout.splitlines() if line]

    def row(self, table="t"):
        got = self.ask(f"SELECT metadata_location FROM iceberg_tables WHERE catalog_name = 'lake' AND table_name = '{table}'")
        return got[0][0] if got else None

    def files(self, table="t"):
        try:
            return sorted(f for f in os.listdir(f"{self.wh}/db/{table}/metadata") if f.endswith(".metadata.json"))
        except FileNotFoundError:
            return []

    def properties(self, table="t"):
        return dict(line.split("=", 1) for line in self.run("show", "db", table)[3:])

    def terminate(self):
        """Ends every session of ours in this database."""
        with self.connect("postgres") as c, c.cursor() as k:
            k.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND application_name = 'frazil'", (self.name,))
            return len(k.fetchall())


class Java:
    def __init__(self, lake):
        self.p = subprocess.Popen(["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "CatalogShared", lake.jdbc, f"file://{lake.wh}"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check("Java opens the catalog", self.answer() == "up")

    def answer(self):
        for line in self.p.stdout:
            if line.startswith("= "):
                return line[2:].rstrip("\n")
        return "ended"

    def __call__(self, *words):
        self.say(*words)
        return self.answer()

    def say(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n")
        self.p.stdin.flush()

    def stop(self):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()


# ---- strangers on the same tables ----

def shared():
    lake = Lake()
    lake.sql("CREATE DATABASE ours", "CREATE TABLE ours.t (id BIGINT NOT NULL, name STRING)", "INSERT INTO ours.t VALUES (1, 'frazil')")
    py, java = lake.pyiceberg(), Java(lake)
    py.create_namespace("theirs")
    py.create_table("theirs.t", SCHEMA)
    check("Java makes one", java("create", "javas", "t") == "made")
    for ns in ("ours", "theirs", "javas"):
        py.load_table(f"{ns}.t").append(pa.table({"id": [2], "name": ["pyiceberg"]}, schema=ARROW))
        check(f"Java appends to {ns}.t", java("append", ns, "t", 3, "java") == "appended")
        lake.sql(f"INSERT INTO {ns}.t VALUES (4, 'again')")
        want = [(1, "frazil")] * (ns == "ours") + [(2, "pyiceberg"), (3, "java"), (4, "again")]
        check(f"PyIceberg reads {ns}.t", sorted((r["id"], r["name"]) for r in py.load_table(f"{ns}.t").scan().to_arrow().to_pylist()) == want)
        check(f"Java reads {ns}.t", java("rows", ns, "t") == " ".join(f"{i}:{n}" for i, n in want))
        check(f"frazil reads {ns}.t", sorted((r["id"], r["name"]) for r in lake.sql(f"SELECT id, name FROM {ns}.t")) == want)
    check("Java lists all", java("list") == "javas javas.t ours ours.t theirs theirs.t")
    check("PyIceberg lists all", sorted(py.list_namespaces()) == [("javas",), ("ours",), ("theirs",)] and py.list_tables("ours") == [("ours", "t")])
    check("the tool lists all", lake.run("list") == ["javas", "ours", "theirs"] and lake.run("list", "javas", uri=lake.jdbc) == ["t"])
    check("over the socket too", lake.run("list", uri=f"postgresql+psycopg2://frazil@/{lake.name}?host={SOCKET}&port={PORT}") == ["javas", "ours", "theirs"])
    check("Java drops ours", java("drop", "ours", "t") == "dropped true" and lake.run("list", "ours") == [])
    lake.run("drop", "theirs", "t")
    check("our drop is seen there", py.list_tables("theirs") == [])
    java.stop()


def schemas():
    lake = Lake()
    lake.run("create", "db", "t")
    check("a catalog made here has schema V1", len(lake.ask("SELECT 1 FROM information_schema.columns WHERE table_name = 'iceberg_tables'")) == 6)
    lake.ask("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'v', '/x/v.json', NULL, 'VIEW')")
    check("views are not tables", lake.run("list", "db") == ["t"])
    lake.ask("DELETE FROM iceberg_tables WHERE iceberg_type = 'VIEW'; ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    lake.run("set", "db", "t", "k", "v0")
    lake.run("create", "db", "old")
    py = lake.pyiceberg()
    check("in schema V0 both go on", py._schema_version == "v0" and py.load_table("db.t").properties["k"] == "v0" and len(py.list_tables("db")) == 2)
    several = [lake.start("set", "db", "t", f"k{i}", "v1", o=["jdbc.schema-version=V1"]) for i in range(6)]
    check("six upgrade it at once", all(p.wait() == 0 for p in several), *(p.stderr.read() for p in several))
    check("and it is V1 then", lake.properties()["k5"] == "v1" and len(lake.ask("SELECT 1 FROM information_schema.columns WHERE column_name = 'iceberg_type'")) == 1)
    lake.ask("CREATE SCHEMA other")
    lake.run("create", "db", "there", uri=lake.jdbc + "&currentSchema=other")
    check("currentSchema makes another catalog", lake.run("list", "db", uri=lake.jdbc + "&currentSchema=other") == ["there"] and "there" not in lake.run("list", "db"))
    lake.ask("CREATE SCHEMA strange CREATE TABLE iceberg_tables (x INT)")
    boss = lake.connect("postgres")
    boss.cursor().execute("CREATE ROLE guest LOGIN PASSWORD 'guest'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    for what, uri, o, code in (("a strange table", lake.jdbc + "&currentSchema=strange", (), "catalog.not-a-catalog"), ("no schema", lake.jdbc + "&currentSchema=nix", (), "catalog.cannot-open"),
                               ("nothing may be made", lake.jdbc + "&currentSchema=nix", ["init_catalog_tables=false"], "catalog.not-a-catalog"),
                               ("a wrong password", lake.uri.replace(":frazil@", ":geheim@"), (), "catalog.denied"), ("no database", lake.uri + "x", (), "catalog.cannot-open"),
                               ("a misspelt property", lake.jdbc + "&socketTimeOut=geheim", (), "catalog.option"), ("a password that is none", lake.uri.replace(":frazil@", ":geheim%@"), (), "catalog.option"),
                               ("a host that is none", "postgresql://frazil:geheim@host.invalid/x", (), "catalog.unreachable"), ("MySQL", "mysql+pymysql://u:geheim@h/d", (), "catalog.not-in-this-build"),
                               ("a user without rights", lake.uri.replace("frazil:frazil", "guest:guest"), (), "catalog.denied"), ("a name too long", lake.uri, (), "catalog.name")):
        try:
            lake.run("create", "db", "x" * 256 if code == "catalog.name" else "new", uri=uri, o=o)
            check(f"{what} is refused", False)
        except Failed as e:
            check(f"{what} is refused", e.code == code and "geheim" not in str(e), str(e))


# ---- races ----

def creation():
    for round in range(3):
        lake = Lake()
        many = [lake.start("list") for _ in range(8)]
        check(f"eight make the catalog at once ({round})", all(p.wait() == 0 for p in many), *(p.stderr.read() for p in many))
        many = [lake.start("create", "db", "t") for _ in range(8)]
        errors = [p.stderr.read().split(" ")[1] for p in many if p.wait()]
        check("eight make one table: one wins at most, the others learn why", set(errors) <= {"[catalog.namespace-exists]", "[catalog.table-exists]"} and 7 <= len(errors) <= 8, errors)
        if len(errors) == 7:
            check("and only its metadata is left", lake.files() == [os.path.basename(lake.row())])
        many = [lake.start("create", "db", f"t{i}") for i in range(8)]
        check("eight make eight", all(p.wait() == 0 for p in many) and len(lake.run("list", "db")) >= 8, *(p.stderr.read() for p in many))


def race():
    lake, n, processes = Lake(), 8, 5
    lake.run("create", "db", "t")
    java, py, failed = Java(lake), lake.pyiceberg(), []

    def ours(me):
        for i in range(n):
            try:
                lake.run("set", "db", "t", f"p{me}-{i}", "1")
            except Failed as e:
                failed.append(e)

    threads = [threading.Thread(target=ours, args=(k,)) for k in range(processes)]
    for t in threads:
        t.start()
    java.say("set", "db", "t", "java", n)
    conflicts = 0
    for i in range(n):
        while True:
            try:
                with py.load_table("db.t").transaction() as tx:
                    tx.set_properties(py=str(i + 1))
                break
            except CommitFailedException:
                conflicts += 1
    for t in threads:
        t.join()
    check("Java's are in", java.answer() == "set")
    java.stop()
    check("none of ours failed", not failed, failed)
    got, version = lake.properties(), int(os.path.basename(lake.row()).split("-")[0])
    check("every commit is in, none lost", all(f"p{k}-{i}" in got for k in range(processes) for i in range(n)) and got["py"] == got["java"] == str(n) and version == n * (processes + 2),
          got, version, conflicts)


# ---- answers that get lost ----

def outcome(lake, proxied, *args, o=()):
    """(class or OK, what it printed)"""
    try:
        return "OK", lake.run(*args, uri=proxied, o=o)[0]
    except Failed as e:
        return e.cls, str(e)


def lost():
    lake = Lake()
    lake.run("create", "db", "t")
    proxy = Proxy(f"0=pg:127.0.0.1:{PORT}", log=f"{DIR}/proxy.log")
    atexit.register(proxy.p.kill)
    uri = lake.uri.replace(str(PORT), str(proxy.ports[0]))
    number = 0

    def case(what, want, rule, o=(), create=False, during=None):
        nonlocal number
        number += 1
        table = f"c{number}" if create else "t"
        proxy.rules(*([rule] if isinstance(rule, dict) else rule))
        if during:
            thread = threading.Thread(target=during)
            thread.start()
        args = ("create", "db", table) if create else ("set", "db", table, f"k{number}", "v")
        before, old = lake.row(table), lake.files(table)
        cls, text = outcome(lake, uri, *args, o=o)
        if during:
            thread.join()
        now, files = lake.row(table), lake.files(table)
        check(f"{what}: {want}", cls == want and proxy.hits() >= 1, cls, text)
        if cls == "OK":
            check("  it is there", now == text or (during and f"k{number}" in lake.properties()), now, text)
        if cls == "RETRY":
            check("  nothing is there, and its file is gone", now == before and files == old, now, before, files)
        if cls == "UNKNOWN":
            check("  its file is kept", len(files) == len(old) + 1, files)
        return now

    commit, update, insert = {"path": "^COMMIT"}, {"path": "^UPDATE"}, {"path": "INSERT INTO iceberg_tables"}
    slow = ["frazil.sql.busy-timeout=8 s"]
    quick = ["frazil.sql.busy-timeout=1 s"]
    case("the answer to COMMIT is lost", "OK", {**commit, "do": "drop-answer"})
    case("COMMIT is lost", "RETRY", {**commit, "do": "reset"})
    case("COMMIT comes late, while we ask", "OK", {**commit, "do": "late", "seconds": 1.5}, o=slow)
    case("COMMIT comes too late", "RETRY", {**commit, "do": "late", "seconds": 4}, o=quick)
    time.sleep(2)
    check("and changes nothing then", "k4" not in lake.properties() and lake.run("set", "db", "t", "after", "it"))
    case("the database goes after COMMIT", "UNKNOWN", {**commit, "do": "down", "seconds": 4, "when": "after"}, o=quick)
    check("what was unknown was applied", "k5" in lake.properties())
    time.sleep(3)
    case("the database goes before COMMIT", "UNKNOWN", {**commit, "do": "down", "seconds": 4}, o=quick)
    check("what was unknown was not applied", "k6" not in lake.properties())
    time.sleep(3)
    case("the database comes back in time", "OK", {**commit, "do": "down", "seconds": 1.5, "when": "after"}, o=slow)
    case("COMMIT is cancelled after it was done", "OK", {**commit, "do": "answer", "sqlstate": "57014", "when": "after"})
    case("COMMIT fails to serialise, once", "OK", {**commit, "do": "answer", "sqlstate": "40001"})
    case("COMMIT is silent for long", "OK", {**commit, "do": "delay", "seconds": 9, "when": "after"}, o=quick)
    case("half of the answer to COMMIT", "OK", {**commit, "do": "short-answer"})
    case("others commit on top meanwhile", "OK", {**commit, "do": "late", "seconds": 1.5}, o=slow,
         during=lambda: [time.sleep(0.8), lake.run("set", "db", "t", "other", "1"), lake.run("set", "db", "t", "other", "2")])
    case("UPDATE is lost", "RETRY", {**update, "do": "reset"})
    case("the answer to UPDATE is lost", "RETRY", {**update, "do": "drop-answer"})
    case("UPDATE fails to serialise, twice", "OK", {**update, "do": "answer", "sqlstate": "40P01", "times": 2})
    case("UPDATE fails to serialise, always", "RETRY", {**update, "do": "answer", "sqlstate": "40001", "times": 0}, o=quick)
    case("an idle connection is broken at BEGIN", "OK", {"path": "^BEGIN", "do": "reset"})
    case("and at a read", "OK", {"path": "^SELECT metadata_location", "do": "reset"})
    case("the answer to COMMIT of a new table is lost", "OK", {**commit, "do": "drop-answer"}, create=True)
    case("COMMIT of a new table is lost", "RETRY", {**commit, "do": "reset"}, create=True)
    case("COMMIT of a new table comes late", "OK", {**commit, "do": "late", "seconds": 1.5}, o=slow, create=True)
    case("COMMIT of a new table comes too late", "RETRY", {**commit, "do": "late", "seconds": 4}, o=quick, create=True)
    case("the database goes after COMMIT of a new table", "UNKNOWN", {**commit, "do": "down", "seconds": 4, "when": "after"}, o=quick, create=True)
    time.sleep(3)
    case("INSERT is lost", "RETRY", {**insert, "do": "reset"}, create=True)
    proxy.stop()
    try:
        lake.run("list", uri=uri)
        check("no server: RETRY", False)
    except Failed as e:
        check("no server: RETRY", (e.cls, e.code) == ("RETRY", "catalog.unreachable"), str(e))
    check("of several hosts the one that answers", lake.run("list", uri=lake.uri.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{proxy.ports[0]},127.0.0.1:{PORT}")) == ["db"])


def job():
    """INSERTs whose statements are spoiled in turn: each adds its row once."""
    lake = Lake()
    lake.sql("CREATE DATABASE db", "CREATE TABLE db.t (id BIGINT NOT NULL, name STRING)")
    proxy = Proxy(f"0=pg:127.0.0.1:{PORT}", log=f"{DIR}/proxy.log")
    atexit.register(proxy.p.kill)
    spoilt = [{"do": "drop-answer"}, {"do": "reset"}, {"do": "late", "seconds": 0.5}, {"do": "answer", "sqlstate": "57014", "when": "after"}, {"do": "answer", "sqlstate": "40001"},
              {"do": "short-answer"}, {"do": "down", "seconds": 1, "when": "after"}, {"do": "down", "seconds": 1}]
    n = 0
    for where in ("^COMMIT", "^UPDATE", "^BEGIN", "^SELECT metadata_location"):
        for how in spoilt:
            n += 1
            if where != "^COMMIT" and how["do"] == "answer" and how["sqlstate"] == "57014":
                how = {"do": "answer", "sqlstate": "53300"}
            # the first look at the table belongs to the statement, the second to the job, which tries again
            proxy.rules({"path": where, "nth": 2 if where.startswith("^SELECT") else 1, **how})
            lake.sql(f"INSERT INTO db.t VALUES ({n}, '{where[1:]} {how['do']}')", port=proxy.ports[0])
            check("  and it was spoilt", proxy.hits() == 1)
            while proxy.state()["counts"].get("down") and subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{proxy.ports[0]}"], stderr=subprocess.DEVNULL).returncode:
                time.sleep(0.1)
    proxy.stop()
    got = sorted(r["id"] for r in lake.sql("SELECT id FROM db.t"))
    check(f"{n} rows, each once", got == list(range(1, n + 1)), got)
    live = {f"{lake.wh}/db/t/data/{f}" for f in os.listdir(f"{lake.wh}/db/t/data") if f.endswith(".parquet")}
    named = {f.file.file_path.removeprefix("file://") for f in lake.pyiceberg().load_table("db.t").scan().plan_files()}
    check("no file of a row is missing", named <= live, named - live)


def silent():
    """A server that falls silent under a running job, which is then told to end: it does not wait for the 300 s that an answer may take. What it left comes with the next start, once."""
    lake = Lake()
    lake.sql("CREATE DATABASE db", "CREATE TABLE db.t (id BIGINT NOT NULL, name STRING)")
    proxy = Proxy(f"0=pg:127.0.0.1:{PORT}", log=f"{DIR}/proxy.log")
    atexit.register(proxy.p.kill)
    script, log = f"{lake.wh}/job.sql", f"{lake.wh}/job.log"
    with open(script, "w") as f:
        f.write(f"SET 'pipeline.name'='silent'; SET 'execution.checkpointing.interval'='200 ms'; SET 'frazil.state.dir'='{lake.wh}/state'; SET 'frazil.stop.timeout'='1 s';\n"
                f"CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'='jdbc','uri'='jdbc:postgresql://127.0.0.1:{proxy.ports[0]}/{lake.name}','jdbc.socketTimeout'='300',"
                f"'jdbc.user'='frazil','jdbc.password'='frazil','warehouse'='file://{lake.wh}');\n"
                "CREATE TEMPORARY TABLE src (id BIGINT, name STRING) WITH ('connector'='http','listen'='127.0.0.1:0');\nINSERT INTO lake.db.t SELECT id, name FROM src WHERE id IS NOT NULL;\n")

    def until(what, ok):
        end = time.monotonic() + 60
        while not ok():
            if job.poll() is not None or time.monotonic() > end:
                check(f"  waited for: {what}", False, open(log).read()[-3000:])
            time.sleep(0.1)

    def start():
        with open(log, "w") as f:
            return subprocess.Popen([BIN, "run", script], stdout=f, stderr=f)

    def send(n):
        c = http.client.HTTPConnection("127.0.0.1", int(re.search(r"source.listening.*?address=127.0.0.1:(\d+)", open(log).read())[1]), timeout=30)
        c.request("POST", "/", json.dumps({"id": n, "name": "x"}))
        check("  a record is acknowledged", c.getresponse().status == 200)
        c.close()

    def ids():
        return sorted(r["id"] for r in lake.sql("SELECT id FROM db.t"))

    job = start()
    atexit.register(lambda: job.kill())
    until("the source", lambda: "source.listening" in open(log).read())
    send(1)
    until("the first row", lambda: ids() == [1])
    proxy.rules({"path": "", "do": "hold", "seconds": 600, "times": 0})
    send(2)
    until("a statement that is not answered", lambda: proxy.hits() >= 1)
    job.terminate()
    code = job.wait(120)
    check("it ends, and says what it leaves", code == 2 and "event=stop.left sink=lake.db.t records=1" in open(log).read(), code, open(log).read()[-3000:])
    proxy.rules()
    job = start()
    until("the second row", lambda: ids() == [1, 2])
    job.terminate()
    check("the next start brings it, once", job.wait(120) == 0 and ids() == [1, 2])
    proxy.stop()


def killed():
    """The server ends our sessions, at COMMIT and wherever it hits."""
    lake = Lake()
    lake.run("create", "db", "t")
    p = subprocess.Popen([TOOL, "sql", lake.uri, f"file://{lake.wh}", "lake", "set", "db", "t", "idle", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, FRAZIL_FAULT="commit.swap:1:sleep=1500"))
    time.sleep(0.7)
    ended = lake.terminate()
    check("a session ended while it was idle is opened anew", ended == 1 and p.wait() == 0, ended, p.stderr.read())
    # COMMIT takes a second: a check at the end of the transaction that sleeps
    lake.ask("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END'")
    lake.ask("CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON iceberg_tables DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()")
    for how in ("pg_terminate_backend", "pg_cancel_backend"):
        before, files = lake.row(), len(lake.files())
        p = lake.start("set", "db", "t", "k", how)
        until = time.monotonic() + 10
        pid = None
        while not pid and time.monotonic() < until:
            got = lake.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'frazil' AND query = 'COMMIT' AND state = 'active' AND datname = current_database()")
            pid = got and got[0][0]
        with lake.connect("postgres") as c, c.cursor() as k:
            k.execute(f"SELECT {how}(%s)", (pid,))
        out, text = p.communicate()
        check(f"{how} in the middle of COMMIT: definitely not applied", p.returncode and text.startswith("RETRY ") and lake.row() == before and len(lake.files()) == files, out, text)
    lake.ask("DROP TRIGGER slow ON iceberg_tables")
    stop, ends = threading.Event(), 0

    def killer():
        nonlocal ends
        c = lake.connect("postgres")  # no "with": it would be one transaction, with one view of pg_stat_activity
        k = c.cursor()
        while not stop.is_set():
            k.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND application_name = 'frazil' AND query ~ '^(BEGIN|UPDATE|COMMIT)'", (lake.name,))
            ends += k.rowcount
            time.sleep(random.uniform(0, 0.004))
        c.close()

    thread = threading.Thread(target=killer)
    thread.start()
    good, bad, unknown = [], [], []
    for i in range(120):
        try:
            lake.run("set", "db", "t", f"n{i}", "1")
            good.append(i)
        except Failed as e:
            (unknown if e.cls == "UNKNOWN" else bad).append((i, e.cls))
    stop.set()
    thread.join()
    got = lake.properties()
    check(f"sessions ended at random ({ends} times): {len(good)} applied, {len(bad)} not, none unknown",
          not unknown and all(c == "RETRY" for _, c in bad) and all(f"n{i}" in got for i in good) and not any(f"n{i}" in got for i, _ in bad) and good and bad, unknown, bad)
    check("files are those of the commits that are in", len(lake.files()) == int(lake.files()[-1].split("-")[0]) + 1)


def locks():
    lake = Lake()
    lake.run("create", "db", "t")
    holder = psycopg2.connect(host=SOCKET, port=PORT, user="frazil", dbname=lake.name)
    holder.cursor().execute("SELECT * FROM iceberg_tables FOR UPDATE")
    try:
        lake.run("set", "db", "t", "k", "v", o=["frazil.sql.busy-timeout=300 ms"])
        check("a row that is locked: RETRY", False)
    except Failed as e:
        check("a row that is locked: RETRY", (e.cls, e.code) == ("RETRY", "catalog.locked") and len(lake.files()) == 1, str(e))
    p = lake.start("set", "db", "t", "k", "v")
    time.sleep(0.5)
    holder.rollback()
    check("a lock that goes is waited for", p.wait() == 0, p.stderr.read())
    lake.ask("ALTER ROLE frazil IN DATABASE {0} SET default_transaction_isolation = 'serializable'; ALTER ROLE frazil IN DATABASE {0} SET default_transaction_read_only = on;"
             " ALTER ROLE frazil IN DATABASE {0} SET synchronous_commit = off; ALTER ROLE frazil IN DATABASE {0} SET lock_timeout = 1".format(lake.name))
    many = [lake.start("set", "db", "t", f"m{i}", "v") for i in range(6)]
    check("settings of the role do not matter", all(q.wait() == 0 for q in many) and all(f"m{i}" in lake.properties() for i in range(6)), *(q.stderr.read() for q in many))
    boss = lake.connect("postgres")
    k = boss.cursor()
    k.execute("ALTER ROLE frazil IN DATABASE {0} RESET ALL; CREATE TABLE seen (v TEXT); GRANT ALL ON seen TO frazil".format(lake.name))
    k.execute("ALTER ROLE frazil IN DATABASE {0} SET synchronous_commit = off".format(lake.name))
    k.execute("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen SELECT current_setting('synchronous_commit'); RETURN NULL; END$$")
    k.execute("CREATE TRIGGER note AFTER UPDATE ON iceberg_tables FOR EACH ROW EXECUTE FUNCTION note()")
    lake.run("set", "db", "t", "k", "w")
    check("a commit is durable whatever the role's setting", lake.ask("SELECT v FROM seen") == [("on",)])


def tls():
    """sslmode and certificates, as Java's driver and libpq spell them; the last case, since the server keeps its certificate."""
    lake, at = Lake(), f"{SOCKET}/data"
    for name, subject in (("right", "/CN=localhost"), ("wrong", "/CN=elsewhere")):
        subprocess.run(["openssl", "req", "-new", "-x509", "-nodes", "-days", "2", "-subj", subject, "-addext", f"subjectAltName=DNS:{subject[4:]}", "-keyout", f"{DIR}/{name}.key", "-out", f"{DIR}/{name}.crt"],
                       check=True, capture_output=True)
    owner = os.stat(at)
    for kind in ("key", "crt"):
        with open(f"{DIR}/right.{kind}", "rb") as f, open(f"{at}/server.{kind}", "wb") as out:
            out.write(f.read())
        os.chmod(f"{at}/server.{kind}", 0o600)
        os.chown(f"{at}/server.{kind}", owner.st_uid, owner.st_gid)
    c = lake.connect("postgres")
    c.cursor().execute("ALTER SYSTEM SET ssl = on")
    c.cursor().execute("SELECT pg_reload_conf()")
    while lake.ask("SHOW ssl") != [("on",)]:
        time.sleep(0.05)
    lake.run("create", "db", "t")
    local = lake.jdbc.replace("127.0.0.1", "localhost")
    for what, uri, o, good in (("require", local + "&sslmode=require", (), True), ("ssl = true with its certificate", f"{local}&ssl=true&sslrootcert={DIR}/right.crt", (), True),
                               ("as options", local, ["jdbc.sslmode=verify-full", f"jdbc.sslrootcert={DIR}/right.crt"], True),
                               ("as libpq's parameters", f"{lake.uri.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert={DIR}/right.crt", (), True),
                               ("another authority", f"{local}&sslmode=verify-ca&sslrootcert={DIR}/wrong.crt", (), False),
                               ("another host", f"{lake.jdbc}&sslmode=verify-full&sslrootcert={DIR}/right.crt", (), False),
                               ("another host, only the authority checked", f"{lake.jdbc}&sslmode=verify-ca&sslrootcert={DIR}/right.crt", (), True)):
        try:
            got = lake.run("list", uri=uri, o=o) == ["db"]
        except Failed as e:
            got = e.code != "catalog.unreachable" or "certificate" not in str(e)
        check(f"TLS: {what}", got == good)


CASES = {f.__name__: f for f in (shared, schemas, creation, race, lost, job, silent, killed, locks, tls)}
for name in sys.argv[3:] or CASES:
    print(f"-- {name}", flush=True)
    CASES[name]()
print("all ok")
