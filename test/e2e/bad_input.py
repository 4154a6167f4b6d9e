#!/usr/bin/env python3
"""Bad input, with a real broker: each case asks for the exit code, the code and place of the error, and that nothing is lost or half done.

usage: bad_input.py [CASE...]  by test/e2e/run.sh, which gives it a broker. The login of case wrong_password is that of test/peers/kafka.sh."""
import base64, glob, json, os, resource, socket, sqlite3, struct, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, Broker, Tables, main, require

B = Broker()
GOOD = {"id": 1, "host": "a", "num": "1"}


def setting(name, topic=True, **kw):
    t = Tables(B, f"bad-{name}-{os.getpid()}", **kw)
    if topic:
        B.topic(t.name, 1)
    return t


def frazil(*args, env=None, config=None):
    """Exit code and all that was printed; never the marks of a crash."""
    p = subprocess.run([BIN, *args], capture_output=True, text=True, timeout=90, env=dict(os.environ, **(env or {})))
    text = p.stdout + p.stderr
    require(p.returncode >= 0 and "Sanitizer" not in text and "backtrace" not in text and "core dumped" not in text, f"{args}: {p.returncode}\n{text}")
    return p.returncode, text


def state(t):
    """What the catalog says: nothing half done means that it stays the same."""
    db = sqlite3.connect(f"{t.dir}/catalog.db")
    rows = db.execute("SELECT * FROM iceberg_tables ORDER BY 1, 2, 3").fetchall()
    db.close()
    return rows, sorted(glob.glob(f"{t.warehouse}/**/*", recursive=True))


def refused(t, script, code, *parts, exit_code=1):
    """The script ends with the code; the text has all parts; catalog and warehouse are as before."""
    before = state(t)
    path = f"{t.dir}/refused.sql"
    with open(path, "w", encoding="utf-8") as f:
        f.write(script)
    got, text = frazil("run", path)
    require(got == exit_code, f"exit code {got}, wanted {exit_code}: {script}\n{text}")
    for part in (f"[{code}]" if exit_code == 1 else code, *parts):
        require(part in text, f"{part!r} is missing: {script}\n{text}")
    require(state(t) == before, f"the refused script has changed something: {script}")


def seeded(name, **kw):
    """A table with one row."""
    t = setting(name, **kw)
    B.produce(t.name, 0, [GOOD])
    t.run(t.script(t.name, bounded=True))
    t.judge([1])
    return t


def kafka(t, columns="id BIGINT, host STRING, num INT", **options):
    o = {"connector": "kafka", "topic": t.name, "properties.bootstrap.servers": B.address, "scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset", "format": "json"}
    o.update({k.replace("__", "-").replace("_", "."): v for k, v in options.items()})
    return f"CREATE TEMPORARY TABLE src ({columns}) WITH (" + ",".join(f"'{k}'='{v}'" for k, v in o.items() if v is not None) + ");\n"


def scripts():
    """What is wrong in a script is told with line and column, before anything is opened or written; the statements before it that only define things do no harm."""
    t = seeded("scripts")
    c = t.catalog()
    for script, code, *parts in (
            (c + "INSERT INTO c.db.t SELECT id,,host FROM src;", "sql.syntax", "refused.sql:2:30: error:", '","'),
            (c + "\n\nINSERT INTO c.db.t VALUES (1, 'a', 2", "sql.syntax", "refused.sql:4:"),
            (c + kafka(t) + "INSERT INTO c.db.t SELECT id, TRIMM(host), num FROM src;", "sql.unknown-function", "refused.sql:3:31: error:", "TRIMM", "did you mean TRIM?"),
            (c + kafka(t) + "INSERT INTO c.db.t SELECT id, host, host FROM src;", "sql.type-mismatch", "'num' is INT", "STRING", "refused.sql:3:"),
            (c + kafka(t) + "INSERT INTO c.db.t SELECT id, host FROM src;", "sql.column-count", "refused.sql:3:"),
            (c + kafka(t) + "INSERT INTO c.db.t SELECT id, hosst, num FROM src;", "sql.unknown-column", "hosst", "refused.sql:3:31:"),
            (c + kafka(t, scan_startup__mode="earliest-offset") + "INSERT INTO c.db.t SELECT * FROM src;", "option.unknown", "scan.startup-mode", "did you mean 'scan.startup.mode'?", "refused.sql:2:"),
            (c + kafka(t, **{"json_ignore-parse-errors": "yes"}) + "INSERT INTO c.db.t SELECT * FROM src;", "option.invalid", "json.ignore-parse-errors", "refused.sql:2:"),
            (c + kafka(t, **{"json_ignore-parse-errors": "true", "json_fail-on-missing-field": "true"}) + "INSERT INTO c.db.t SELECT * FROM src;", "option.conflict"),
            (c + kafka(t, topic=None) + "INSERT INTO c.db.t SELECT * FROM src;", "option.missing", "'topic'", "refused.sql:"),
            (c + kafka(t, properties_bootstrap_servers=None) + "INSERT INTO c.db.t SELECT * FROM src;", "option.missing", "'properties.bootstrap.servers'", "refused.sql:"),
            (c + kafka(t, format=None) + "INSERT INTO c.db.t SELECT * FROM src;", "option.missing", "'format'", "refused.sql:"),
            (c + kafka(t, topic="no-such-topic") + "INSERT INTO c.db.t SELECT * FROM src;", "kafka.unknown-topic", "'no-such-topic'"),
            (c + "CREATE TABLE c.db.u (a INT) WITH ('write.parquet.compression-codec'='brotly');", "option.invalid", "brotly", "refused.sql:2:"),
            (c + "CREATE TABLE c.db.u (a INT, b TIMESTAMP(9));", "sql.unsupported", "refused.sql:2:"),
            (c + "SET 'execution.checkpointing.intervall' = '1 s';", "config.unknown-key", "did you mean 'execution.checkpointing.interval'?"),
    ):
        refused(t, script, code, *parts)
    t.judge([1])


def config_keys():
    """Flink's keys without meaning: one warning each; any other unknown key ends it before the script runs."""
    t = setting("config", topic=False)
    path = f"{t.dir}/config.yaml"
    script = t.dir + "/one.sql"
    with open(script, "w") as f:
        f.write(t.catalog() + "CREATE DATABASE IF NOT EXISTS c.db; CREATE TABLE IF NOT EXISTS c.db.t (id INT); INSERT INTO c.db.t VALUES (1);")

    def run(text):
        with open(path, "w") as f:
            f.write(text)
        return frazil("run", script, "--config", path)
    code, text = run("jobmanager:\n  rpc:\n    address: localhost\n  memory.process.size: 1600m\ntaskmanager.numberOfTaskSlots: 4\nstate.backend.type: rocksdb\nmemory.limit: 64 mb\n")
    require(code == 0, text)
    for key in ("jobmanager.rpc.address", "jobmanager.memory.process.size", "taskmanager.numberOfTaskSlots", "state.backend.type"):
        require(text.count(f"key={key} ") == 1, f"{key} is not named once:\n{text}")
    before = state(t)
    for bad, at, near in (("memory.limt: 64 mb\n", "1:", "memory.limit"), ("frazil:\n  state:\n    dirr: x\n", "3:", "frazil.state.dir"), ("memory.limit: 64 mb\npipeline.nam: x\n", "2:", "pipeline.name")):
        code, text = run(bad)
        require(code == 1 and "[config.unknown-key]" in text and f"config.yaml:{at}" in text and f"'{near}'" in text, f"{bad}: {code}\n{text}")
    code, text = run("memory.limit: [1\n")
    require(code == 1 and "[config.syntax]" in text, text)
    require(state(t) == before, "a refused configuration has changed something")


def unreachable():
    """Nobody listens: the job waits, says so with growing pauses, and SIGTERM ends it with 0; nothing is written."""
    t = seeded("away")
    before = state(t)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
        path = f"{t.dir}/away.sql"
        with open(path, "w") as f:
            f.write(t.catalog() + kafka(t, properties_bootstrap_servers=address, scan_bounded_mode=None) + "INSERT INTO c.db.t SELECT * FROM src;")
        j = t.start(path)
        j.wait_log(r"event=source.waiting(.*\n)*.*event=source.waiting(.*\n)*.*event=source.waiting", 40)
        text = j.stop()
    require("kafka.unreachable" in text and address in text, text)
    waits = [int(l.split("trying again in ")[1].split()[0]) for l in text.splitlines() if "trying again in" in l]
    require(len(waits) >= 3 and waits == sorted(waits) and waits[0] < waits[-1], f"pauses {waits}\n{text}")
    require(state(t) == before, "something was written")


def wrong_password():
    t = seeded("login")
    host, port = B.address.rsplit(":", 1)
    address = f"{host}:{int(port) + 2}"
    try:
        socket.create_connection((host, int(port) + 2), 2).close()
    except OSError:
        return "left out: this broker has no listener with a login"

    def src(password):
        jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="reader" password="{password}";'.replace("'", "''")
        return kafka(t, properties_bootstrap_servers=address, properties_security_protocol="SASL_PLAINTEXT", properties_sasl_mechanism="PLAIN", properties_sasl_jaas_config=jaas)
    insert = "SET 'pipeline.name' = 'login'; INSERT INTO c.db.t SELECT id + 10, host, num FROM src;"
    refused(t, t.catalog() + src("hunter2-secret") + insert, "kafka.authentication", "refuses the login", "properties.sasl.jaas.config")
    code, text = frazil("run", f"{t.dir}/refused.sql")
    require("hunter2-secret" not in text, "the password is printed")
    with open(f"{t.dir}/right.sql", "w") as f:
        f.write("SET 'frazil.positions' = 'ignore';" + t.catalog() + src("reader's secret") + insert)
    t.run(f"{t.dir}/right.sql")
    t.judge([1, 11])


def documents():
    """Bytes that are no JSON, or too deep: with ignore-parse-errors counted and passed; without it dead letters with their bytes. What stands around them arrives."""
    def line(i, host="a", **more):
        return json.dumps({"id": i, "host": host, "num": "1", **more}).encode()
    deep = b'{"id":8,"host":"a","num":"1","x":' + b"[" * 1200 + b"]" * 1200 + b"}"
    deep2 = b'{"x":' + b'{"a":' * 1200 + b"1" + b"}" * 1200 + b',"id":9,"host":"a","num":"1"}'
    not_deep = b'{"id":10,"host":"a","num":"1","x":' + b"[" * 900 + b"]" * 900 + b"}"
    records = [line(1), b'{"id":2,"host":"\xff","num":"1"}', b'{"id":3,"host":"\xc3","num":"1"}', b'{"id":4,"host":"a\xed\xa0\x80","num":"1"}', b"\xff\xfe", deep, deep2, not_deep,
               b'\xef\xbb\xbf{"id":11,"host":"bom","num":"1"}', b'{"id":12,"host":"\\ud83d","num":"1"}', b'{"id":13,"host":"\\udc00x","num":"1"}', b'{"\\ud800":1,"id":14,"host":"s","num":"1"}',
               b'{"id":15,"host":"a\x01\tb","num":"1"}', b"{}", b"null", b"[]", b"1", b'"x"', b'{"id":16,"host":"a","num":"1"}\r', b'{"id":17,"host":"a","num":"1"} trailing', b"{\"id\":18", line(19)]
    for ignore in (True, False):
        t = setting(f"documents-{ignore}".lower())
        path = f"{t.dir}/records"
        os.mkdir(path)
        names = []
        for i, r in enumerate(records):
            names.append(f"{path}/{i:02}")
            with open(names[-1], "wb") as f:
                f.write(r)
        p = subprocess.run(["kcat", "-b", B.address, "-P", "-t", t.name, "-p", "0", "-D", "\x1e", *names], capture_output=True)
        require(p.returncode == 0, p.stderr.decode())
        script = t.script(t.name, bounded=True)
        if not ignore:
            text = open(script).read().replace(",'json.ignore-parse-errors'='true'", "")
            open(script, "w").write(text)
        t.run(script)
        rows = {r["id"]: r["host"] for r in t.sql("SELECT id, host FROM c.db.t")}
        require(t.positions() == {0: len(records)}, f"positions {t.positions()}")
        audit = t.audit()
        require(f"read {len(records)}" in audit, audit)
        for i, host in {1: "a", 4: "a?", 10: "a", 11: "bom", 17: "a", 12: "?", 13: "?x", 14: "s", 15: "a\x01\tb", 16: "a", 19: "a"}.items():
            require(rows.get(i) == host, f"ignore {ignore}: row {i} is {rows.get(i)!r}, wanted {host!r}: {rows}")
        for i in (2, 3, 8, 9, 18):
            require(i not in rows, f"ignore {ignore}: row {i} should not be there: {rows}")
        if not ignore:
            kept = {l["offset"] for l in t.letters()}
            require({1, 2, 4, 5, 6, 20} <= kept, f"letters of {sorted(kept)}")
            for l in t.letters():
                require(base64.b64decode(l["rawData"]) == records[l["offset"]], f"rawData of offset {l['offset']} is not the record")
        t.judge(list(rows))


def huge_message_memory():
    """100 MB: a letter without its bytes, the range moves on, and the memory that it took is not kept."""
    t = setting("huge", topic=False)
    B.topic(t.name, 1, "max.message.bytes=104000000")
    B.produce(t.name, 0, [GOOD])
    path = f"{t.dir}/huge"
    with open(path, "wb") as f:
        f.write(b'{"id":9,"host":"a","num":"1","pad":"' + b"x" * 100_000_000 + b'"}')
    p = subprocess.run(["kcat", "-b", B.address, "-P", "-t", t.name, "-p", "0", "-X", "message.max.bytes=104000000", "-X", "message.copy.max.bytes=100", "-D", "\x01", path], capture_output=True)
    require(p.returncode == 0, f"kcat: {p.stderr.decode()[-500:]}")
    os.remove(path)
    B.produce(t.name, 0, [{"id": i, "host": "a", "num": "3"} for i in range(3, 2003)])
    j = t.start(t.script(t.name))
    t.wait_rows(2001, job=j, seconds=120)
    time.sleep(1)
    status = dict(l.split(":", 1) for l in open(f"/proc/{j.p.pid}/status") if ":" in l)
    resident = int(status["VmRSS"].split()[0]) >> 10
    j.stop()
    t.judge([1, *range(3, 2003)])
    l = t.letters()
    require(len(l) == 1 and l[0]["rawData"] is None and l[0]["size"] > 100_000_000 and l[0]["offset"] == 1, f"{l}")
    require(t.positions() == {0: 2002}, f"positions {t.positions()}")
    require(resident < 160 or "asan" in BIN or "address" in BIN, f"{resident} MB resident after the message")
    return f"{resident} MB resident afterwards"


def odd_times():
    """Years that a DATE or TIMESTAMP cannot hold: dead letters by their own row, as CAST says; TO_TIMESTAMP gives NULL, as in Flink."""
    t = setting("times", columns="id BIGINT, host STRING, ts TIMESTAMP(6), dt DATE")
    texts = ["2025-01-02T03:04:05", "0000-01-01T00:00:00", "10000-01-01T00:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00", "2025-02-30T00:00:00", "2025-13-01T00:00:00", "-001-01-01T00:00:00", "", "garbage"]
    B.produce(t.name, 0, [{"id": i, "host": "a", "num": x} for i, x in enumerate(texts)])
    t.run(t.script(t.name, bounded=True, inserts=["INSERT INTO c.db.t SELECT id, host, TO_TIMESTAMP(SUBSTRING(num, 1, 19), 'yyyy-MM-dd''T''HH:mm:ss'), TRY_CAST(SUBSTRING(num, 1, 10) AS DATE) FROM src;"]))
    got = {r["id"]: (r["ts"], r["dt"]) for r in t.sql("SELECT id, ts, dt FROM c.db.t")}
    require(len(got) == len(texts), f"{len(got)} rows")
    require(got[0] == ("2025-01-02 03:04:05.000000", "2025-01-02"), f"{got[0]}")
    require(got[3][0] == "9999-12-31 23:59:59.000000" and got[4][0] == "0001-01-01 00:00:00.000000", f"{got}")
    for i in (2, 6, 7, 8, 9):
        require(got[i][0] is None, f"{texts[i]} gives {got[i]}")
    t.judge(range(len(texts)))
    u = setting("casts", columns="id BIGINT, host STRING, dt DATE")
    B.produce(u.name, 0, [{"id": i, "host": "a", "num": x} for i, x in enumerate(texts)])
    u.run(u.script(u.name, bounded=True, inserts=["INSERT INTO c.db.t SELECT id, host, CAST(SUBSTRING(num, 1, 10) AS DATE) FROM src;"]))
    rows = u.sql("SELECT id, dt FROM c.db.t")
    letters = {l["offset"] for l in u.letters()}
    require(letters | {r["id"] for r in rows} == set(range(len(texts))) and not letters & {r["id"] for r in rows}, f"{rows} {letters}")
    require({6, 8, 9} <= letters and {0, 3, 4} <= {r["id"] for r in rows}, f"{rows} {letters}")
    return f"rows {got}, letters {sorted(letters)}"


HOSTS = ["h" * 300, "é" * 300, "😀" * 120, "web 1/../é*~", "11/12/13", "..", ".", "../../../../tmp/x", "a+b", "100%", "%2F", "%00", "a=b&c", "", "null", " ", "\n", "\\", "a\x00b", "CON", "host=x", "é", "e\u0301", "__HIVE_DEFAULT_PARTITION__", "'", '"', "#?;:@", "z"]


def odd_hosts():
    """Partition values that make odd directories: each row is there under its raw value, nothing leaves the table's directory, every reader finds it; NULL, 'null' and '' are three partitions."""
    t = setting("hosts")
    values = [*HOSTS, None]
    B.produce(t.name, 0, [{"id": i, "host": h, "num": "1"} for i, h in enumerate(values)])
    t.run(t.script(t.name, bounded=True, inserts=["INSERT INTO c.db.t SELECT id, host, CAST(num AS INT) FROM src;"]))
    got = {r["id"]: r["host"] for r in t.sql("SELECT id, host FROM c.db.t")}
    require(got == dict(enumerate(values)), f"{[(i, got.get(i), v) for i, v in enumerate(values) if got.get(i) != v]}")
    t.judge(range(len(values)))
    data = f"{t.warehouse}/db/t/data/"
    files = [f for f in glob.glob(f"{t.warehouse}/**/*.parquet", recursive=True, include_hidden=True)] if sys.version_info >= (3, 11) else []
    for f in files:
        require(os.path.realpath(f).startswith(os.path.realpath(data)), f"{f} is outside")
    names = os.listdir(data)
    for h, want in {"web 1/../é*~": "host=web+1%2F..%2F%C3%A9*%7E", "11/12/13": "host=11%2F12%2F13", "..": "host=..", "a+b": "host=a%2Bb", "100%": "host=100%25", "a=b&c": "host=a%3Db%26c", "": "host="}.items():
        require(want in names, f"no directory {want} for {h!r}")
    for where, want in (("host IS NULL", [len(values) - 1]), ("host = 'null'", [HOSTS.index("null")]), ("host = ''", [HOSTS.index("")]), ("host = 'é'", [HOSTS.index("é")]), ("host = 'z'", [HOSTS.index("z")])):
        ids = [r["id"] for r in t.sql(f"SELECT id FROM c.db.t WHERE {where}")]
        require(ids == want, f"{where}: {ids}, wanted {want}")
    other = t.strange()
    if other:
        from pyiceberg.expressions import EqualTo, IsNull
        for i, h in enumerate(values):
            ids = other.scan(row_filter=IsNull("host") if h is None else EqualTo("host", h)).to_arrow().column("id").to_pylist()
            require(ids == [i], f"PyIceberg: {h!r} gives {ids}")
        null = [s for m in other.current_snapshot().manifests(other.io) for s in m.partitions]
        require(any(s.contains_null for s in null), "contains_null is not set")


def bounds():
    """Bounds are in the order of unsigned bytes, NaN is outside them: no reader loses rows by them."""
    t = setting("bounds", topic=False)
    code, text = frazil("sql", "-i", t.init(), "-e", "CREATE DATABASE c.db; CREATE TABLE c.db.t (id BIGINT, host STRING, x DOUBLE);"
                        "INSERT INTO c.db.t VALUES (1, 'z', 3.0E0), (2, 'é', CAST('NaN' AS DOUBLE)), (3, 'a', CAST('-0.0' AS DOUBLE)), (4, 'b', 0.0E0);")
    require(code == 0, text)
    t.judge([1, 2, 3, 4])
    other = t.strange()
    if other:
        f = next(iter(other.scan().plan_files())).file
        require(f.lower_bounds[2] == b"a" and f.upper_bounds[2] == "é".encode(), f"{f.lower_bounds} {f.upper_bounds}")
        require(struct.unpack("<d", f.upper_bounds[3])[0] == 3.0 and struct.pack("<d", -0.0) == f.lower_bounds[3], f"{f.lower_bounds[3]} {f.upper_bounds[3]}")
        require(f.nan_value_counts[3] == 1, f"{f.nan_value_counts}")
        from pyiceberg.expressions import EqualTo
        for h, i in (("z", 1), ("é", 2)):
            require(other.scan(row_filter=EqualTo("host", h)).to_arrow().column("id").to_pylist() == [i], h)
    for h, i in (("z", 1), ("é", 2)):
        require([r["id"] for r in t.sql(f"SELECT id FROM c.db.t WHERE host = '{h}'")] == [i], h)


def other_schema():
    """The table has a column less, one more, or one of another type than the script thinks."""
    t = seeded("schema")
    c, s = t.catalog(), kafka(t, columns="id BIGINT, host STRING, num INT")
    code, text = frazil("sql", "-i", t.init(), "-e", "CREATE TABLE c.db.less (id BIGINT, host STRING); CREATE TABLE c.db.other (id BIGINT, host STRING, num DATE); CREATE TABLE c.db.more (id BIGINT, host STRING, num INT, extra STRING NOT NULL);")
    require(code == 0, text)
    refused(t, c + s + "INSERT INTO c.db.less SELECT * FROM src;", "sql.column-count", "refused.sql:3:")
    refused(t, c + s + "INSERT INTO c.db.less (id, host, num) SELECT * FROM src;", "sql.unknown-column", "'num'", "refused.sql:3:")
    refused(t, c + s + "INSERT INTO c.db.other SELECT * FROM src;", "sql.type-mismatch", "'num' is DATE")
    refused(t, c + s + "INSERT INTO c.db.more (id, host, num) SELECT * FROM src;", "sql.not-null", "extra")
    refused(t, c + s + "INSERT INTO c.db.nowhere SELECT * FROM src;", "sql.table-not-found", "nowhere", "refused.sql:3:13:")
    t.judge([1])


def altered():
    """Another program adds a column while the job runs: the next commit refuses, nothing is lost, and a new start goes on."""
    t = setting("altered")
    if not _has_pyiceberg():
        return "left out: no PyIceberg"
    B.produce(t.name, 0, [GOOD])
    j = t.start(t.script(t.name))
    t.wait_rows(1, job=j)
    with t.strange().update_schema() as u:
        from pyiceberg.types import StringType
        u.add_column("added", StringType())
    B.produce(t.name, 0, [{"id": 2, "host": "a", "num": "2"}])
    code = j.wait(60)
    require(code == 2 and "commit.schema-changed" in j.text(), f"exit code {code}\n{j.text()[-3000:]}")
    t.judge([1])
    # the script's column list does not name the new column: the rest goes on
    t.run(t.script(t.name, bounded=True, inserts=["INSERT INTO c.db.t (id, host, num) SELECT id, host, CAST(num AS INT) FROM src;"]))
    t.judge([1, 2])


def locations():
    """A slash at the end of warehouse or location, also in metadata that another engine wrote, makes no double slash: what the manifest says is the file's name."""
    t = setting("slash", topic=False)
    init = f"{t.dir}/slash.sql"
    with open(init, "w") as f:
        f.write(t.catalog().replace(f"'file://{t.warehouse}'", f"'file://{t.warehouse}/'"))

    def sql(text):
        code, out = frazil("sql", "-i", init, "-e", text)
        require(code == 0, out)
    sql(f"CREATE DATABASE c.db; CREATE TABLE c.db.t (id INT NOT NULL); CREATE TABLE c.db.u (id INT) WITH ('location'='file://{t.dir}/own//');"
        "INSERT INTO c.db.t VALUES (1); INSERT INTO c.db.u VALUES (1);")
    path = t.strange().metadata_location[7:] if _has_pyiceberg() else sorted(glob.glob(f"{t.warehouse}/db/t/metadata/00001-*.json"))[0]
    text = open(path).read()
    require(f'"location":"file://{t.warehouse}/db/t"' in text.replace(": ", ":"), text[:600])
    with open(path, "w") as f:
        f.write(text.replace(f'{t.warehouse}/db/t"', f'{t.warehouse}/db/t/"', 1))
    sql("INSERT INTO c.db.t VALUES (2)")
    for table, want in (("t", [1, 2]), ("u", [1])):
        t.judge(want, table)
        code, out = frazil("inspect", f"c.db.{table}", "-i", init, "--show", "files")
        require(code == 0 and "//" not in out.replace("file:///", ""), out)
        for l in db_locations(t, table):
            require("//" not in l.replace("file:///", ""), l)
    if _has_pyiceberg():
        import pyarrow.parquet as pq
        f = next(iter(t.strange().scan().plan_files())).file.file_path
        require("required int32" in str(pq.ParquetFile(f[7:]).schema), "a NOT NULL column is not REQUIRED in the file")


def db_locations(t, table):
    db = sqlite3.connect(f"{t.dir}/catalog.db")
    out = [r[0] for r in db.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (table,))]
    db.close()
    return out


def keys():
    """Keys beside values: options of the key's format count; with ALL the value has the last word; a bad key takes its record's row, metadata included; of headers with one name the last stays."""
    t = setting("keys")

    def send(key, value, *args):
        p = subprocess.run(["kcat", "-b", B.address, "-P", "-t", t.name, "-p", "0", *(["-k", key] if key is not None else []), *args], input=value.encode(), capture_output=True)
        require(p.returncode == 0, p.stderr.decode())
    send('{"k":"one"}', '{"id":1,"k":"value"}', "-H", "a=1", "-H", "b=", "-H", "a=2")
    send("no json", '{"id":2}')
    send(None, '{"id":3}')
    send('{"k":"four"}', '{"id":4}')

    def read(columns, select="*", **options):
        code, text = frazil("sql", "--format", "json", "-e", "SET 'frazil.on-row-error' = 'drop'; SET 'frazil.log.level' = 'off';" +
                            kafka(t, columns=columns, format=None, value_format="json", key_format="json", key_fields="k", **options) + f"SELECT {select} FROM src")
        require(code == 0, text)
        return [json.loads(l) for l in text.splitlines() if l.startswith("{")]
    except_key = {"value_fields-include": "EXCEPT_KEY"}
    got = read("k STRING, id INT, off BIGINT METADATA FROM 'offset', h MAP<STRING, BYTES> METADATA FROM 'headers'", **except_key)
    require([(r["k"], r["id"], r["off"]) for r in got] == [("one", 1, 0), (None, 3, 2), ("four", 4, 3)], f"bad key: {got}")
    require(got[0]["h"] == {"a": "Mg==", "b": ""} or got[0]["h"] == {"b": "", "a": "Mg=="}, f"headers {got[0]}")
    code, text = frazil("sql", "--format", "json", "-e", kafka(t, columns="id INT, h MAP<STRING, BYTES> METADATA FROM 'headers'", ) + "SELECT h FROM src LIMIT 1")
    require(text.count('"a":') == 1, f"a header stands twice: {text}")
    got = read("k STRING, id INT, off STRING METADATA FROM 'offset', p DECIMAL(5, 1) METADATA FROM 'partition', ts TIMESTAMP(3) METADATA FROM 'timestamp', n AS off || '!'", "off, p, n, EXTRACT(YEAR FROM ts) > 2000 AS y", **except_key)
    require([(r["off"], r["p"], r["n"], r["y"]) for r in got] == [(f"{i}", "0.0", f"{i}!", True) for i in (0, 2, 3)], f"metadata of other types: {got}")
    code, text = frazil("sql", "-e", kafka(t, columns="id INT, off TIMESTAMP(3) METADATA FROM 'offset'") + "SELECT * FROM src")
    require(code == 1 and "[sql.metadata]" in text and "'off' is BIGINT NOT NULL, which cannot be cast to TIMESTAMP(3)" in text, text)
    for broken, part in ((dict(key_format="raw"), "'key.fields'"), (dict(key_format="raw", key_fields="nope"), "names 'nope'")):
        code, text = frazil("sql", "-e", kafka(t, **broken) + "SELECT id FROM src")
        require(code == 1 and "[option." in text and part in text, text)
    got = read("k STRING, id INT", **{"key_json_ignore-parse-errors": "true"}, **except_key)
    require([(r["k"], r["id"]) for r in got] == [("one", 1), (None, 2), (None, 3), ("four", 4)], f"ignored bad key: {got}")
    got = read("k STRING, id INT, off STRING METADATA FROM 'offset', p DECIMAL(5, 1) METADATA FROM 'partition', ts TIMESTAMP(3) METADATA FROM 'timestamp', n AS off || '!'", "off, p, n, EXTRACT(YEAR FROM ts) > 2000 AS y", **except_key)
    require([(r["off"], r["p"], r["n"], r["y"]) for r in got] == [(f"{i}", "0.0", f"{i}!", True) for i in (0, 2, 3)], f"metadata of other types: {got}")
    code, text = frazil("sql", "-e", kafka(t, columns="id INT, off TIMESTAMP(3) METADATA FROM 'offset'") + "SELECT * FROM src")
    require(code == 1 and "[sql.metadata]" in text and "'off' is BIGINT NOT NULL, which cannot be cast to TIMESTAMP(3)" in text, text)
    got = read("k STRING, id INT", **{"key_json_ignore-parse-errors": "true"})
    require([(r["k"], r["id"]) for r in got] == [("value", 1), (None, 2), (None, 3), (None, 4)], f"ALL: {got}")


def _has_pyiceberg():
    try:
        import pyiceberg  # noqa: F401
        return True
    except ImportError:
        return False


def strange_catalogs():
    """A catalog file that is not one: refused, and not a byte of it changes."""
    t = setting("catalogs", topic=False)
    def database(path, statement):
        db = sqlite3.connect(path)
        db.execute(statement)
        db.commit()
        db.close()
    files = {"other program": lambda p: database(p, "CREATE TABLE foo (a INT)"),
             "like-named table": lambda p: database(p, "CREATE TABLE iceberg_tables (x INT)"),
             "text": lambda p: open(p, "w").write("hello, this is no database at all"),
             "torn": lambda p: open(p, "wb").write(b"SQLite format 3\0" + b"\x10\x00\x01\x01" + b"\xff" * 300)}
    for name, make in files.items():
        path = f"{t.dir}/catalog.db"
        if os.path.exists(path):
            os.remove(path)
        make(path)
        before = open(path, "rb").read()
        code, text = frazil("sql", "-i", t.init(), "-e", "CREATE DATABASE c.db; CREATE TABLE c.db.t (a INT); INSERT INTO c.db.t VALUES (1);")
        require(code == 1 and "catalog." in text and "catalog.db" in text, f"{name}: {code}\n{text}")
        require(open(path, "rb").read() == before, f"{name}: the file has been changed")
        require(not os.path.exists(t.warehouse), f"{name}: the warehouse has been begun")


def many_partitions():
    """30,000 partitions in one checkpoint with 256 file descriptors and the default memory: each row once."""
    t = setting("many", columns="id BIGINT, host STRING, dt DATE")
    n = 30_000
    lines = (json.dumps({"id": i, "host": f"host-{i % 10_000}", "num": f"2025-01-0{1 + i // 10_000}"}) for i in range(n))
    B.produce(t.name, 0, lines)
    path = t.script(t.name, bounded=True, interval="10 min", inserts=["INSERT INTO c.db.t SELECT id, host, CAST(num AS DATE) FROM src;"])
    text = open(path).read().replace("PARTITIONED BY (host)", "PARTITIONED BY (dt, host)")
    open(path, "w").write(text)
    log = f"{t.dir}/many.log"
    with open(log, "wb") as f:
        p = subprocess.Popen([BIN, "run", path], stdout=f, stderr=f, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        _, status, usage = os.wait4(p.pid, 0)
    text = open(log).read()
    require(status == 0, f"status {status}\n{text[-3000:]}")
    require(text.count("event=commit ") == 1, text[-3000:])
    require(sorted(t.ids()) == list(range(n)), "rows are lost or doubled")
    t.audit()
    require(len(t.sql("SELECT dt, host FROM c.db.t GROUP BY dt, host")) == n, "partitions are missing")
    require(usage.ru_maxrss >> 10 <= 128 or "asan" in BIN or "address" in BIN, f"{usage.ru_maxrss >> 10} MB resident")
    return f"{usage.ru_maxrss >> 10} MB at most"


main({f.__name__: f for f in (scripts, config_keys, unreachable, wrong_password, documents, huge_message_memory, odd_times, odd_hosts, bounds, other_schema, altered, strange_catalogs, locations, keys, many_partitions)})
