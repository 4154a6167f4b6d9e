#!/usr/bin/env python3
"""A stranger on the same SQL catalog: PyIceberg makes, loads and commits, we make, load and commit, in turn and at once.

usage: catalog_pyiceberg.py TOOL      (needs pyiceberg[sql-sqlite]; TOOL is test/tools/catalog_tool.c, built with
  gcc -std=c17 -D_GNU_SOURCE -Isrc -o TOOL test/tools/catalog_tool.c build/lib/catalog.a build/lib/iceberg.a build/lib/fileio.a
      build/lib/col.a build/lib/base.a -lsqlite3 -ljansson -ldeflate -lzstd -lsnappy -lm -pthread)
"""
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

tool = os.path.abspath(sys.argv[1])
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))


def run(uri, root, *args, name="lake"):
    r = subprocess.run([tool, "sql", uri, "file://%s/wh" % root, name, *args], capture_output=True, text=True)
    assert r.returncode == 0, (args, r.stderr)
    return r.stdout.split("\n")


def pyiceberg(root, **more):
    return SqlCatalog("lake", uri="sqlite:///%s/cat.db" % root, warehouse="file://%s/wh" % root, **more)


def check(what, ok):
    print("ok  " if ok else "FAIL", what)
    if not ok:
        sys.exit(1)


def theirs_then_ours(root):
    uri = "sqlite:///%s/cat.db" % root
    cat = pyiceberg(root)
    cat.create_namespace("db")
    t = cat.create_table("db.theirs", SCHEMA, properties={"who": "pyiceberg"})
    out = run(uri, root, "show", "db", "theirs")
    check("their table loads here", out[0] == t.metadata_location and out[1] == str(t.metadata.table_uuid) and "who=pyiceberg" in out)
    check("their database and table are listed", run(uri, root, "list")[0] == "db" and run(uri, root, "list", "db")[0] == "theirs")
    ours = run(uri, root, "set", "db", "theirs", "who", "frazil")[0]
    t = cat.load_table("db.theirs")
    check("our commit loads there", t.metadata_location == ours and t.properties["who"] == "frazil")
    check("the metadata log tells of both", len(t.metadata.metadata_log) == 1)
    with t.transaction() as tx:
        tx.set_properties(third="pyiceberg")
    check("their commit on ours loads here", "third=pyiceberg" in run(uri, root, "show", "db", "theirs"))


def ours_then_theirs(root):
    uri = "jdbc:sqlite:%s/cat.db" % root
    made = run(uri, root, "create", "db", "ours")[0]
    cat = pyiceberg(root)
    t = cat.load_table("db.ours")
    check("our table loads there", t.metadata_location == made and t.location() == "file://%s/wh/db/ours" % root)
    check("with its columns", [(f.name, f.required) for f in t.schema().fields] == [("id", True), ("name", False)])
    check("and is listed", ("db", "ours") in cat.list_tables("db"))
    import pyarrow as pa
    t.append(pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", None]}, schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string())])))
    run(uri, root, "set", "db", "ours", "k", "v")
    t = cat.load_table("db.ours")
    check("their rows outlive our commit", t.scan().to_arrow().num_rows == 2 and t.properties["k"] == "v")
    cat.drop_table("db.ours")
    check("their drop is seen here", "ours" not in run(uri, root, "list", "db"))


def schemas(root):
    db = sqlite3.connect("%s/cat.db" % root)
    check("a catalog made here has schema V1", len(db.execute("PRAGMA table_info(iceberg_tables)").fetchall()) == 6)
    db.executescript("CREATE TABLE v0 AS SELECT * FROM iceberg_tables; DROP TABLE iceberg_tables; ALTER TABLE v0 DROP COLUMN iceberg_type; ALTER TABLE v0 RENAME TO iceberg_tables;")
    db.close()
    uri = "sqlite:///%s/cat.db" % root
    run(uri, root, "create", "db", "old")
    cat = pyiceberg(root)
    check("and in schema V0 both go on", cat.load_table("db.old").properties is not None and cat._schema_version == "v0")


def at_once(root):
    uri, n = "sqlite:///%s/cat.db" % root, 15
    run(uri, root, "create", "db", "busy")
    failed = []

    def we():
        for i in range(n):
            try:
                run(uri, root, "set", "db", "busy", "ours", str(i))
            except AssertionError as e:
                failed.append(e)

    th = threading.Thread(target=we)
    th.start()
    cat, conflicts = pyiceberg(root), 0
    for i in range(n):
        while True:
            try:
                with cat.load_table("db.busy").transaction() as tx:
                    tx.set_properties(theirs=str(i))
                break
            except CommitFailedException:
                conflicts += 1
    th.join()
    t = cat.load_table("db.busy")
    check("both at once, no commit lost (%d conflicts there)" % conflicts,
          not failed and t.properties["ours"] == t.properties["theirs"] == str(n - 1)
          and int(os.path.basename(t.metadata_location).split("-")[0]) == 2 * n)


with tempfile.TemporaryDirectory() as d:
    for test, start in ((theirs_then_ours, "a"), (ours_then_theirs, "b"), (at_once, "b"), (schemas, "b")):
        os.makedirs("%s/%s" % (d, start), exist_ok=True)
        test("%s/%s" % (d, start))
print("all ok")
