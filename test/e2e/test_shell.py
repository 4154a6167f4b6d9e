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
    sql("several statements", "SELECT 1 AS a; SELECT 2 AS a", 0, '{"a":1}\n{"a":2}\n', fmt="json")
    sql("group", "SELECT k, COUNT(*) AS c, SUM(v) AS s FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(k, v) GROUP BY k ORDER BY k DESC;", 0,
        '{"k":"b","c":1,"s":2}\n{"k":"a","c":2,"s":4}\n', fmt="json")
    sql("show catalogs", "SHOW CATALOGS; SHOW CURRENT DATABASE;", 0, '{"catalog name":"default_catalog"}\n{"current database name":"default_database"}\n', fmt="json")
    expect("piped", ["sql", "--format", "json"], 0, '{"a":1}\n', stdin="SELECT 1\n AS a;\n")
    expect("piped without semicolon", ["sql", "--format", "json"], 0, '{"a":1}\n', stdin="SELECT 1 AS a\n")


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


for part in (answers, ddl, bad_input, words):
    part()
print("%d failure(s)" % len(failures))
sys.exit(1 if failures else 0)
