#!/usr/bin/env python3
"""Drives build/frazil as a user does: answers of the shell in each format, DDL, and bad input with its code, place and exit code.

Usage: test_shell.py [PATH-OF-FRAZIL]. Needs nothing but the binary. Exits with 1 if a case fails."""
import json
import os
import subprocess
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/frazil")
failures = []


def run(args, stdin="", cwd=None):
    env = dict(os.environ, TZ="UTC")
    p = subprocess.run([BIN] + args, input=stdin.encode(), capture_output=True, timeout=60, cwd=cwd, env=env)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def check(name, ok, detail=""):
    if not ok:
        failures.append(name)
        print("FAILED %s\n%s" % (name, detail))


def expect(name, args, code, out=None, err=(), stdin="", cwd=None):
    got, stdout, stderr = run(args, stdin, cwd)
    detail = "exit %d, stdout:\n%s\nstderr:\n%s" % (got, stdout, stderr)
    check(name + ": exit code %d" % code, got == code, detail)
    if isinstance(out, str):
        check(name + ": output", stdout == out, detail + "\nwanted:\n" + out)
    for part in out if isinstance(out, tuple) else ():
        check(name + ": output has %r" % part, part in stdout, detail)
    for part in err:
        check(name + ": error has %r" % part, part in stderr, detail)


def sql(name, text, code, out=None, err=(), fmt="table", cwd=None):
    expect(name, ["sql", "--format", fmt, "-e", text], code, out, err, cwd=cwd)


def answers():
    sql("table", "SELECT * FROM (VALUES (1, 'a'), (22, CAST(NULL AS STRING))) AS t(n, s);", 0,
        "+----+--------+\n|  n |      s |\n+----+--------+\n|  1 |      a |\n| 22 | <NULL> |\n+----+--------+\n2 rows in set\n")
    sql("wide characters", "SELECT '日本' AS a;", 0, "+------+\n|    a |\n+------+\n| 日本 |\n+------+\n1 row in set\n")
    sql("empty", "SELECT 1 AS a FROM (VALUES (1)) AS t(x) WHERE x > 1;", 0, "Empty set\n")
    sql("json", "SELECT 1, 'a\"b' AS s, TRUE AS b, CAST(1.50 AS DECIMAL(5,2)) AS d, TIMESTAMP '2026-01-02 03:04:05' AS t, X'6869' AS x, CAST(NULL AS INT) AS n;", 0,
        '{"EXPR$0":1,"s":"a\\"b","b":true,"d":"1.50","t":"2026-01-02 03:04:05","x":"aGk=","n":null}\n', fmt="json")
    sql("csv", "SELECT 1 AS a, 'x,\"y' AS b, '' AS c, CAST(NULL AS STRING) AS d;", 0, 'a,b,c,d\n1,"x,""y","",\n', fmt="csv")
    sql("bytes", "SELECT X'00fF' AS b;", 0, "b\nx'00ff'\n", fmt="csv")
    sql("control characters", "SELECT 'a\nb\tc' AS x;", 0, "+---------+\n|       x |\n+---------+\n| a\\nb\\tc |\n+---------+\n1 row in set\n")
    sql("nested", "SELECT ARRAY[1, NULL] AS a, MAP['k', 1] AS m, ROW(1, 'x') AS r;", 0, '{"a":[1,null],"m":{"k":1},"r":{"EXPR$0":1,"EXPR$1":"x"}}\n', fmt="json")
    sql("order and limit", "SELECT i FROM (VALUES (1), (2), (3)) AS t(i) UNION ALL SELECT 10 ORDER BY i DESC LIMIT 2 OFFSET 1;", 0, '{"i":3}\n{"i":2}\n', fmt="json")
    sql("time zone", "SET 'table.local-time-zone' = 'Asia/Tokyo'; SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING) AS t;", 0, '{"t":"1970-01-01 09:00:00.000"}\n', fmt="json")
    sql("several statements", "SELECT 1 AS a; SELECT 2 AS a", 0, '{"a":1}\n{"a":2}\n', fmt="json")
    sql("group", "SELECT k, COUNT(*) AS c, SUM(v) AS s FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(k, v) GROUP BY k ORDER BY k DESC;", 0,
        '{"k":"b","c":1,"s":2}\n{"k":"a","c":2,"s":4}\n', fmt="json")
    sql("show catalogs", "SHOW CATALOGS; SHOW CURRENT DATABASE;", 0, '{"catalog name":"default_catalog"}\n{"current database name":"default_database"}\n', fmt="json")
    expect("piped", ["sql", "--format", "json"], 0, '{"a":1}\n', stdin="SELECT 1\n AS a;\n")
    expect("piped without semicolon", ["sql", "--format", "json"], 0, '{"a":1}\n', stdin="SELECT 1 AS a\n")


def splitting():
    for text, out in (("SELECT ';\n' AS a;", '{"a":";\\n"}\n'), ("SELECT /*;\n*/1 AS a;", '{"a":1}\n'), ("SELECT --;\n1 AS a;", '{"a":1}\n'), ("SELECT 'x -- y' AS a;", '{"a":"x -- y"}\n'),
                      ("SELECT 'it''s;' AS a;", '{"a":"it\'s;"}\n'), ("SELECT 1 AS `a;b`", '{"a;b":1}\n'), ("\ufeffSELECT 1 AS a;\r\nSELECT 2 AS a;\r\n", '{"a":1}\n{"a":2}\n')):
        sql("split " + repr(text), text, 0, out, fmt="json")
    for text, value in (("2025-1-2 3:4:5", "2025-01-02 03:04:05.000"), ("2025-01-02", "2025-01-02 00:00:00.000"), ("2025-02-30 10:00:00", "2025-02-28 10:00:00.000"), ("2025-04-31 10:00:00", "2025-04-30 10:00:00.000"),
                        ("2025-01-01 24:00:00", "2025-01-02 00:00:00.000"), ("2025-01-02 03:04:05.", "2025-01-02 03:04:05.000"), ("2025-01-02 03:04:05.123456789", "2025-01-02 03:04:05.123"),
                        ("2025-01-02 03:04:05.1234567890", None), ("2025-01-02 03:04:60", None), ("2025-01-02T03:04:05", None), (" 2025-01-02 03:04:05", None), ("", None), ("0000-01-01 00:00:00", None),
                        ("10000-01-01 00:00:00", None), ("2025-00-01 00:00:00", None)):
        sql("TO_TIMESTAMP of " + text, "SELECT TO_TIMESTAMP('%s') AS t" % text, 0, json.dumps({"t": value}, separators=(",", ":")) + "\n", fmt="json")
    for text, value in (("12 ", 12), ("", None), ("1.5", 1), ("0x10", None), ("99999999999", None), ("abc", None)):
        values = " FROM (VALUES ('%s')) AS v(s)" % text
        sql("TRY_CAST of " + text, "SELECT TRY_CAST(s AS INT) AS t" + values, 0, json.dumps({"t": value}, separators=(",", ":")) + "\n", fmt="json")
        if value is None:
            sql("CAST of " + text, "SELECT CAST(s AS INT) AS t" + values, 2, err=("[cast.failed]", "'%s'" % text, "CAST(s AS INT)"))


def ddl():
    with tempfile.TemporaryDirectory() as d:
        table = "CREATE TEMPORARY TABLE t (id BIGINT NOT NULL COMMENT 'the id', ts TIMESTAMP(3), twice AS id * 2, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='datagen');"
        sql("describe", table + "DESCRIBE t;", 0,
            '{"name":"id","type":"BIGINT","null":"FALSE","key":"PRI(id)","extras":null,"watermark":null,"comment":"the id"}\n'
            '{"name":"ts","type":"TIMESTAMP(3)","null":"TRUE","key":null,"extras":null,"watermark":null,"comment":null}\n'
            '{"name":"twice","type":"BIGINT","null":"FALSE","key":null,"extras":"AS id * 2","watermark":null,"comment":null}\n', fmt="json")
        sql("show create", table + "SHOW CREATE TABLE t;", 0,
            "CREATE TEMPORARY TABLE `default_catalog`.`default_database`.`t` (\n  `id` BIGINT NOT NULL COMMENT 'the id',\n  `ts` TIMESTAMP(3),\n  `twice` AS id * 2,\n"
            "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\nWITH (\n  'connector' = 'datagen'\n)\n")
        sql("like", table + "CREATE TEMPORARY TABLE u (extra STRING) WITH ('number-of-rows'='1') LIKE t (EXCLUDING GENERATED); SHOW CREATE TABLE u;", 0,
            ("`extra` STRING", "'number-of-rows' = '1'", "'connector' = 'datagen'", "PRIMARY KEY (`id`)"))
        sql("view", "CREATE TEMPORARY VIEW v AS SELECT 1 AS a, 'x' AS b; SELECT b, a FROM v; SHOW VIEWS;", 0, '{"b":"x","a":1}\n{"view name":"v"}\n', fmt="json")
        sql("drop", table + "DROP TEMPORARY TABLE t; SHOW TABLES;", 0, "", fmt="json")
        cat = "CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///%s/cat.db','warehouse'='%s/wh'); CREATE DATABASE IF NOT EXISTS c.logs;" % (d, d)
        sql("iceberg table", cat + "CREATE TABLE c.logs.t (a INT, b STRING, dt DATE) PARTITIONED BY (dt, bucket(4, a)) WITH ('format-version'='2');"
            "SHOW TABLES IN c.logs; USE CATALOG c; USE logs; SHOW CREATE TABLE t;", 0,
            ("CREATE TABLE `c`.`logs`.`t`", "PARTITIONED BY (`dt`, bucket(4, a))", "`b` STRING"))
        sql("iceberg insert and select", cat + "INSERT INTO c.logs.t SELECT x, y, DATE '2026-01-02' FROM (VALUES (1, 'p'), (2, CAST(NULL AS STRING))) AS v(x, y);"
            "SELECT a, b, dt FROM c.logs.t ORDER BY a;", 0, '{"a":1,"b":"p","dt":"2026-01-02"}\n{"a":2,"b":null,"dt":"2026-01-02"}\n', fmt="json")
        sql("exists already", cat + "CREATE TABLE c.logs.t (a INT);", 1, err=("1:", "[sql.table-exists]"))
        sql("exists already, allowed", cat + "CREATE TABLE IF NOT EXISTS c.logs.t (a INT);", 0)
        sql("connector in Iceberg", cat + "CREATE TABLE c.logs.k (a INT) WITH ('connector'='kafka');", 1, err=("[sql.unsupported]", "connector"))
        sql("computed column in Iceberg", cat + "CREATE TABLE c.logs.k (a INT, b AS a + 1);", 1, err=("[sql.unsupported]", "computed"))
        sql("drop iceberg", cat + "DROP TABLE c.logs.t; SHOW TABLES IN c.logs;", 0, "", fmt="json")


def tables_of_connectors():
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/in.ndjson", "w") as f:
            f.write('{"a":1,"s":"x"}\nbroken\n{"a":2,"s":"y"}\n')
        t = "CREATE TEMPORARY TABLE f (a INT, s STRING, twice AS a * 2) WITH ('connector'='filesystem','path'='%s/in.ndjson','format'='json'%s);"
        sql("filesystem", t % (d, ",'json.ignore-parse-errors'='true'") + "SELECT a, s, twice FROM f;", 0, '{"a":1,"s":"x","twice":2}\n{"a":2,"s":"y","twice":4}\n', fmt="json")
        sql("filesystem, broken line", t % (d, "") + "SELECT a FROM f;", 2, err=("[json.parse]", "in.ndjson"))
        sql("filesystem, broken line skipped", "SET 'frazil.on-row-error'='drop';" + t % (d, "") + "SELECT SUM(a) AS n FROM f;", 0, '{"n":3}\n', fmt="json")
        sql("datagen", "CREATE TEMPORARY TABLE g (id BIGINT) WITH ('connector'='datagen','number-of-rows'='5','fields.id.kind'='sequence','fields.id.start'='1','fields.id.end'='5');"
            "SELECT COUNT(*) AS c, SUM(id) AS s FROM g;", 0, '{"c":5,"s":15}\n', fmt="json")
        sql("aggregate without end", "CREATE TEMPORARY TABLE g (id BIGINT) WITH ('connector'='datagen'); SELECT COUNT(*) FROM g;", 1, err=("[sql.unsupported-streaming]",))
        sql("union behind a source without end", "CREATE TEMPORARY TABLE g (id BIGINT) WITH ('connector'='datagen'); SELECT id FROM g UNION ALL SELECT id FROM g;", 1, err=("[sql.unsupported-streaming]", "UNION ALL"))
        sql("limit of a source without end", "CREATE TEMPORARY TABLE g (id BIGINT) WITH ('connector'='datagen'); SELECT 1 AS a FROM g LIMIT 3;", 0, '{"a":1}\n' * 3, fmt="json")
        sql("hint", "CREATE TEMPORARY TABLE g (id BIGINT) WITH ('connector'='datagen'); SELECT 1 AS a FROM g /*+ OPTIONS('number-of-rows'='2') */;", 0, '{"a":1}\n' * 2, fmt="json")
        cat = "CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///%s/cat.db','warehouse'='%s/wh'); CREATE DATABASE c.l; CREATE TABLE c.l.t (a INT, s STRING);" % (d, d)
        sql("file into a table", cat + t % (d, ",'json.ignore-parse-errors'='true'") + "INSERT INTO c.l.t SELECT a, s FROM f WHERE a > 1; SELECT * FROM c.l.t;", 0, '{"a":2,"s":"y"}\n', fmt="json")
        with open(d + "/i.sql", "w") as f:
            f.write(cat.replace("CREATE DATABASE", "CREATE DATABASE IF NOT EXISTS").replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        again = open(d + "/i.sql").read()
        for what, query in (("GROUP BY or DISTINCT", "SELECT DISTINCT id, 's' FROM g"), ("an aggregate", "SELECT CAST(COUNT(*) AS INT), 's' FROM g"), ("ORDER BY", "SELECT id, 's' FROM g ORDER BY id"), ("LIMIT", "SELECT id, 's' FROM g LIMIT 3"),
                            ("UNION ALL with VALUES", "SELECT id, 's' FROM g UNION ALL SELECT * FROM (VALUES (1, 's'))"), ("UNION ALL with a table of a catalog", "SELECT id, 's' FROM g UNION ALL SELECT * FROM c.l.t")):
            for end in ("", "EXPLAIN "):
                sql(f"{end}INSERT without end, {what}", again + "CREATE TEMPORARY TABLE g (id INT) WITH ('connector'='datagen');"
                    f"{end}INSERT INTO c.l.t {query};", 1, err=("[sql.unsupported-streaming]", what, "hint"))
        expect("audit", ["audit", "c.l.t", "-i", d + "/i.sql"], 0, ("audit passed",))
        expect("inspect", ["inspect", "c.l.t", "-i", d + "/i.sql", "--show", "files"], 0, (".parquet",))
        expect("audit of nothing", ["audit", "c.l.nope", "-i", d + "/i.sql"], 1, err=("[sql.table-not-found]",))


def bad_input():
    sql("syntax", "SELECT 1,\n  FROM t;", 1, err=("2:3: error: unexpected \"FROM\"", "[sql.syntax]"))
    sql("left open", "SELECT 'abc", 1, err=("1:8:", "not closed"))
    sql("reserved word", "SELECT value FROM t", 1, err=("1:8:", "hint: VALUE is a reserved word", "`value`"))
    sql("unsupported", "SELECT * FROM a JOIN b ON TRUE", 1, err=("[sql.unsupported]", "JOIN is not supported"))
    sql("no table", "SELECT * FROM nowhere", 1, err=("1:15:", "[sql.table-not-found]"))
    sql("near table", "CREATE TEMPORARY VIEW syslog AS SELECT 1; SELECT * FROM sislog", 1, err=("did you mean 'syslog'",))
    sql("no catalog", "USE CATALOG nope", 1, err=("[sql.catalog-not-found]", "default_catalog"))
    sql("no database", "USE nope", 1, err=("[sql.database-not-found]",))
    sql("no function", "SELECT frobnicate(1)", 1, err=("1:8:", "FROBNICATE"))
    sql("no column", "SELECT b FROM (VALUES (1)) AS t(a)", 1, err=("1:8:", "'b'"))
    sql("type mismatch", "SELECT 1 + TRUE", 1, err=("1:",))
    sql("bad setting", "SET 'execution.checkpointing.interval' = 'soon'", 1, err=("execution.checkpointing.interval",))
    sql("unknown setting", "SET 'frazil.nothing' = '1'", 1, err=("frazil.nothing",))
    sql("near setting", "SET 'frazil.on-row-eror' = 'drop'", 1, err=("frazil.on-row-eror", "did you mean"))
    kafka = "CREATE TEMPORARY TABLE t (a INT) WITH ('connector'='kafka','properties.bootstrap.servers'='127.0.0.1:1','format'='json'%s); EXPLAIN SELECT a FROM t"
    sql("explain checks options", kafka % ",'topic'='x','scan.startup.mod'='earliest-offset'", 1, err=("scan.startup.mod", "[option.unknown]", "did you mean"))
    sql("explain misses options", kafka % "", 1, err=("'topic'", "[option.missing]"))
    sql("explain opens nothing", kafka % ",'topic'='x','scan.startup.mode'='earliest-offset'", 0, ("Scan",))
    sql("slip in a setting", "SET 'execution.checkpointing.intervall' = '5 s'", 1, err=("[config.unknown-key]", "did you mean"))
    sql("unknown connector", "CREATE TEMPORARY TABLE t (a INT) WITH ('connector'='pulsar'); SELECT * FROM t", 1, err=("pulsar",))
    sql("unknown option", "CREATE TEMPORARY TABLE t (a INT) WITH ('connector'='datagen','number-of-row'='1'); SELECT * FROM t", 1, err=("number-of-row",))
    sql("catalog option", "CREATE CATALOG c WITH ('type'='iceberg')", 1, err=("[catalog.option]",))
    sql("insert target", "CREATE TEMPORARY TABLE t (a INT) WITH ('connector'='datagen'); INSERT INTO t SELECT 1", 1, err=("[sql.unsupported]", "datagen"))
    sql("cast fails", "SELECT CAST(s AS INT) FROM (VALUES ('x')) AS t(s)", 2, err=("error:",))
    sql("too deep", "SELECT " + "(" * 2000 + "1" + ")" * 2000, 1, err=("[sql.too-deep]",))
    expect("no command", ["frob"], 1, err=("unknown command frob",))
    expect("no option", ["sql", "--nope"], 1, err=("unknown option --nope",))
    expect("no script", ["run"], 1, err=("at least one script",))
    expect("no file", ["run", "/nonexistent.sql"], 1, err=("/nonexistent.sql: error:", "[cli.file]"))
    expect("bad format", ["sql", "--format", "xml"], 1, err=("table, json or csv",))
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/a.sql", "w") as f:
            f.write("SET 'pipeline.name' = 'x';\n\nSELEC 1;\n")
        expect("place in a file", ["run", d + "/a.sql"], 1, err=("%s/a.sql:3:1: error:" % d,))
        with open(d + "/i.sql", "w") as f:
            f.write("SELECT 1;\n")
        expect("init file", ["sql", "-i", d + "/i.sql", "-e", "SELECT 1"], 1, err=("[sql.init-statement]",))
        with open(d + "/b.sql", "wb") as f:
            f.write(b"SELECT '\xff';\n")
        expect("not UTF-8", ["run", d + "/b.sql"], 1, err=("b.sql:1:9:", "not UTF-8"))
        with open(d + "/c.yaml", "w") as f:
            f.write("frazil:\n  nope: 1\n")
        expect("bad config", ["sql", "--config", d + "/c.yaml", "-e", "SELECT 1"], 1, err=("frazil.nope",))


def words():
    expect("version", ["--version"], 0, ("frazil ",))
    expect("help", ["--help"], 0, ("frazil run", "Exit codes"))
    for c in ("run", "sql", "audit", "inspect", "options"):
        expect("help of " + c, [c, "--help"], 0, ("frazil " + c,))
    expect("options", ["options"], 0, ("`execution.checkpointing.interval`", "## Connectors", "## Functions"))
    expect("options topic", ["options", "nope"], 1, err=("nope",))


for part in (answers, splitting, ddl, tables_of_connectors, bad_input, words):
    part()
print("%d failure(s)" % len(failures))
sys.exit(1 if failures else 0)
