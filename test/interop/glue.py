#!/usr/bin/env python3
"""frazil and PyIceberg write to the same tables in Glue and in S3 Tables, in turn and at once; each reads all rows of both, and what is in the entries stays.

    glue.py [CASE...]     run by glue.sh. Environment: S3_ENDPOINT (moto), FRAZIL_BIN (build/frazil), FRAZIL_TEST_DIR, FRAZIL_JARS (class path of Java's Iceberg; none: without it)
"""
import datetime as dt
import json
import logging
import os
import re
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../peers", f"{HERE}/../tools"]

import boto3
import pyarrow as pa
from catalogs import open_catalog
from proxy import Proxy
from signed import Signed
from pyiceberg import types as T
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", os.path.join(HERE, "../../build/frazil")))
URL = os.environ["S3_ENDPOINT"]
DIR = os.environ["FRAZIL_TEST_DIR"]
ARN = "arn:aws:s3tables:us-east-1:123456789012:bucket/tables"
STORE = f"'s3.endpoint'='{URL}','s3.path-style-access'='true','client.region'='us-east-1'"
CATALOGS = {
    "glue": f"'catalog-impl'='org.apache.iceberg.aws.glue.GlueCatalog','warehouse'='s3://lake/warehouse','glue.endpoint'='{URL}',{STORE}",
    "s3tables": f"'catalog-impl'='software.amazon.s3tables.iceberg.S3TablesCatalog','warehouse'='{ARN}','s3tables.endpoint'='{URL}',{STORE}",
}


def client(service):
    return boto3.client(service, endpoint_url=URL, region_name="us-east-1")


class Failure(Exception):
    pass


def require(ok, message):
    if not ok:
        raise Failure(message)


def sql(kind, *statements, code=0, env=None):
    head = f"CREATE CATALOG c WITH ('type'='iceberg',{CATALOGS[kind]})"
    args = [x for s in (head, "USE CATALOG c", *statements) for x in ("-e", s)]
    p = subprocess.run([BIN, "sql", "--format", "json", *args], capture_output=True, text=True, cwd=DIR, env={**os.environ, **(env or {})})
    require(p.returncode == code, f"{statements}: exit {p.returncode}\n{p.stdout[-500:]}{p.stderr[-1500:]}")
    global said
    said = p.stderr
    require("delete-failed" not in p.stderr and "sink.orphan" not in p.stderr, f"something was to be deleted and was not: {p.stderr[-1500:]}")
    return [json.loads(l) for l in p.stdout.splitlines() if l.startswith("{")] if code == 0 else p.stderr


def stranger(kind):
    return open_catalog(f"glue:{URL}" if kind == "glue" else f"s3tables:{URL}#{ARN}")


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("host", pa.string()), pa.field("ts", pa.timestamp("us")), pa.field("dt", pa.date32())])


def arrow(*rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r)) for r in rows], schema=SCHEMA)


def row(i):
    return (i, f"web{i}", dt.datetime(2026, 1, 1 + i % 3, 12, 0, i % 60), dt.date(2026, 1, 1 + i % 3))


def values(*ids):
    return ", ".join(f"(CAST({i} AS BIGINT), '{h}', TIMESTAMP '{t}', DATE '{d}')" for i, h, t, d in map(row, ids))


def ids(kind, name):
    """What frazil sees, and what PyIceberg sees: the same, whole rows."""
    ours = [tuple(r.values()) for r in sql(kind, f"SELECT id, host, CAST(ts AS STRING) AS ts, CAST(dt AS STRING) AS dt FROM {name}")]
    theirs = [tuple(r.values()) for r in stranger(kind).load_table(tuple(name.split("."))).scan().to_arrow().select(SCHEMA.names).to_pylist()]
    theirs = [(i, h, t.strftime("%Y-%m-%d %H:%M:%S.%f"), d.isoformat()) for i, h, t, d in theirs]
    require(sorted(ours) == sorted(theirs), f"{name}: frazil sees {sorted(ours)}, PyIceberg {sorted(theirs)}")
    require(all(r[1] == f"web{r[0]}" for r in ours), f"{name}: {ours}")
    return sorted(r[0] for r in ours)


def shape(table):
    return table.schema().model_dump_json(), table.spec().model_dump_json()


CREATE = "CREATE TABLE {} (id BIGINT NOT NULL COMMENT 'key', host STRING, ts TIMESTAMP(6), dt DATE) PARTITIONED BY (dt)"


def in_turn(kind, database):
    """frazil makes the table; both append, twice each."""
    name = f"{database}.turns"
    sql(kind, CREATE.format(name), f"INSERT INTO {name} VALUES {values(1, 2, 3)}")
    table = stranger(kind).load_table((database, "turns"))
    before = shape(table)
    require(table.schema().find_field("id").required and table.schema().find_field("id").doc == "key", before[0])
    require(ids(kind, name) == [1, 2, 3], "first rows")
    table.append(arrow(row(4), row(5)))
    sql(kind, f"INSERT INTO {name} VALUES {values(6)}")
    stranger(kind).load_table((database, "turns")).append(arrow(row(7)))
    sql(kind, f"INSERT INTO {name} VALUES {values(8, 9)}")
    require(ids(kind, name) == [1, 2, 3, 4, 5, 6, 7, 8, 9], str(ids(kind, name)))
    table = stranger(kind).load_table((database, "turns"))
    require(shape(table) == before, "schema or spec has changed")
    require(len(table.metadata.snapshots) == 5 and len(table.metadata.metadata_log) >= 5, str(table.metadata.snapshots))
    return table


def at_once(kind, database):
    """Four writers, each of which has to commit over the others."""
    name = f"{database}.race"
    sql(kind, CREATE.format(name) + " WITH ('commit.retry.num-retries'='100')")
    failures = []

    def by_frazil(first):
        try:
            for k in range(3):
                sql(kind, f"INSERT INTO {name} VALUES {values(first + k)}")
        except Failure as e:
            failures.append(str(e))

    def by_pyiceberg(first):
        for k in range(3):
            for _ in range(50):
                try:
                    stranger(kind).load_table((database, "race")).append(arrow(row(first + k)))
                    break
                except CommitFailedException:
                    continue
            else:
                failures.append("PyIceberg never came through")

    threads = [threading.Thread(target=f, args=(n,)) for f, n in ((by_frazil, 100), (by_frazil, 200), (by_pyiceberg, 300), (by_pyiceberg, 400))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(not failures, "\n".join(failures))
    want = [base + k for base in (100, 200, 300, 400) for k in range(3)]
    require(ids(kind, name) == want, f"{ids(kind, name)} instead of {want}")


def glue_in_turn():
    sql("glue", "CREATE DATABASE turn_db COMMENT 'raw logs'")
    require(client("glue").get_database(Name="turn_db")["Database"]["Description"] == "raw logs", "comment")
    table = in_turn("glue", "turn_db")
    require(table.location() == "s3://lake/warehouse/turn_db.db/turns", table.location())
    entry = client("glue").get_table(DatabaseName="turn_db", Name="turns")["Table"]
    require(entry["Parameters"]["metadata_location"] == table.metadata_location and "previous_metadata_location" in entry["Parameters"], str(entry))
    columns = entry["StorageDescriptor"]["Columns"]
    require([(c["Name"], c["Type"], c.get("Comment")) for c in columns] == [("id", "bigint", "key"), ("host", "string", None), ("ts", "timestamp", None), ("dt", "date", None)], str(columns))
    return "5 commits of two programs, entry as Java has it"


def glue_theirs():
    """PyIceberg makes the table, others write into its entry; frazil's commits leave both alone."""
    glue, catalog = client("glue"), stranger("glue")
    catalog.create_namespace("theirs", {"location": "s3://lake/elsewhere/"})
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "day"), PartitionField(2, 1001, IdentityTransform(), "host"))
    schema = Schema(T.NestedField(1, "id", T.LongType(), required=True), T.NestedField(2, "host", T.StringType()), T.NestedField(3, "ts", T.TimestampType()), T.NestedField(4, "dt", T.DateType()))
    table = catalog.create_table(("theirs", "t"), schema, partition_spec=spec, properties={"owner-team": "home"})
    table.append(arrow(row(1)))
    entry = glue.get_table(DatabaseName="theirs", Name="t")["Table"]
    known = {k: v for k, v in entry.items() if k in ("Name", "StorageDescriptor", "TableType", "Parameters", "PartitionKeys", "Retention")}
    known["Parameters"]["classification"] = "by hand"
    glue.update_table(DatabaseName="theirs", TableInput={**known, "Description": "written by hand", "Owner": "etl", "Retention": 3}, VersionId=entry["VersionId"])
    versions = len(glue.get_table_versions(DatabaseName="theirs", TableName="t")["TableVersions"])
    for i in range(3):
        sql("glue", f"INSERT INTO theirs.t VALUES {values(2 + i)}")
    after = glue.get_table(DatabaseName="theirs", Name="t")["Table"]
    for key, want in {"Description": "written by hand", "Owner": "etl", "Retention": 3}.items():
        require(after.get(key) == want, f"{key}: {after.get(key)}")
    require(after["Parameters"]["classification"] == "by hand" and after["Parameters"]["table_type"] == "ICEBERG", str(after["Parameters"]))
    require(set(entry["Parameters"]) <= set(after["Parameters"]), f"{entry['Parameters']} and then {after['Parameters']}")
    require(len(glue.get_table_versions(DatabaseName="theirs", TableName="t")["TableVersions"]) <= versions, "old versions pile up")
    require(ids("glue", "theirs.t") == [1, 2, 3, 4], "rows")
    table = catalog.load_table(("theirs", "t"))
    require(table.location() == "s3://lake/elsewhere/t" and table.properties["owner-team"] == "home", table.location())
    table.append(arrow(row(5)))
    require(ids("glue", "theirs.t") == [1, 2, 3, 4, 5], "rows after PyIceberg's append")
    return "entry, spec and properties stay"


def glue_at_once():
    sql("glue", "CREATE DATABASE race_db")
    at_once("glue", "race_db")
    return "12 commits of 4 writers"


def glue_java():
    """What Java's GlueCatalog writes into an entry is what frazil's next commit leaves there."""
    jars = os.environ.get("FRAZIL_JARS")
    if not jars:
        return "left out (FRAZIL_INTEROP_VERIFY)"
    glue = client("glue")
    sql("glue", "CREATE DATABASE java_db", CREATE.format("java_db.t"), f"INSERT INTO java_db.t VALUES {values(1)}")
    p = subprocess.run(["java", "-cp", jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"{HERE}/GlueJava.java", URL, "java_db", "t"], capture_output=True, text=True)
    require(p.returncode == 0 and p.stdout.strip() == "s3://lake/warehouse/java_db.db/t", p.stdout + p.stderr[-2000:])
    theirs = glue.get_table(DatabaseName="java_db", Name="t")["Table"]
    require(theirs["Description"] == "changed by Java" and len(theirs["StorageDescriptor"]["Columns"]) == 7, str(theirs))
    sql("glue", "INSERT INTO java_db.t VALUES (CAST(2 AS BIGINT), 'web2', DATE '2026-01-03', ARRAY['x'], CAST(NULL AS ROW<lat DOUBLE, what BINARY(16)>))")
    ours = glue.get_table(DatabaseName="java_db", Name="t")["Table"]
    for entry in (theirs, ours):
        for key in ("UpdateTime", "VersionId"):
            entry.pop(key, None)
        entry["Parameters"] = {k: v for k, v in entry["Parameters"].items() if not k.endswith("metadata_location")}
    require(theirs == ours, f"Java wrote {theirs}\nfrazil {ours}")
    rows = sql("glue", "SELECT id, machine FROM java_db.t ORDER BY id")
    require([tuple(r.values()) for r in rows] == [(1, "web1"), (2, "web2")], str(rows))
    return "7 columns, 2 of them of the past"


def glue_drop():
    s3, glue = client("s3"), client("glue")
    sql("glue", "CREATE DATABASE drop_db", CREATE.format("drop_db.a"), f"INSERT INTO drop_db.a VALUES {values(1, 2)}")
    glue.create_table(DatabaseName="drop_db", TableInput={"Name": "hive", "TableType": "EXTERNAL_TABLE", "Parameters": {"EXTERNAL": "TRUE"}})
    require([list(r.values()) for r in sql("glue", "SHOW TABLES FROM drop_db")] == [["a"]], "a table that is no Iceberg table is listed")
    require("catalog.not-iceberg" in sql("glue", "SELECT * FROM drop_db.hive", code=1), "a Hive table was read")
    require("not-empty" in sql("glue", "DROP DATABASE drop_db", code=1), "a database was dropped with its tables")
    sql("glue", "DROP TABLE drop_db.a")
    left = s3.list_objects_v2(Bucket="lake", Prefix="warehouse/drop_db.db/a/").get("Contents", [])
    require(not left, f"left behind: {[o['Key'] for o in left]}")
    require("not-empty" in sql("glue", "DROP DATABASE drop_db", code=1), "a database was dropped with a table of others")
    glue.delete_table(DatabaseName="drop_db", Name="hive")
    sql("glue", "DROP DATABASE drop_db")
    require("drop_db" not in [d["Name"] for d in glue.get_databases()["DatabaseList"]], "database is still there")
    return "tables of others are safe"


def s3tables_bucket():
    api = client("s3tables")
    if not any(b["name"] == "tables" for b in api.list_table_buckets()["tableBuckets"]):
        require(api.create_table_bucket(name="tables")["arn"] == ARN, "ARN of the table bucket")
    return api


def s3tables_in_turn():
    api = s3tables_bucket()
    sql("s3tables", "CREATE DATABASE turn_db")
    table = in_turn("s3tables", "turn_db")
    require(re.fullmatch(r"s3://[^/]+--table-s3", table.location()), table.location())
    require(table.metadata_location.startswith(table.location() + "/metadata/"), table.metadata_location)
    for f in table.scan().plan_files():
        require(f.file.file_path.startswith(table.location() + "/data/dt="), f.file.file_path)
    require([list(r.values()) for r in sql("s3tables", "SHOW TABLES FROM turn_db")] == [["turns"]], "listing")
    require("not-empty" in sql("s3tables", "DROP DATABASE turn_db", code=1), "a namespace was dropped with its tables")
    sql("s3tables", "DROP TABLE turn_db.turns", "DROP DATABASE turn_db")
    require("turn_db" not in [n["namespace"][0] for n in api.list_namespaces(tableBucketARN=ARN)["namespaces"]], "namespace is still there")
    return "bare-bucket location, 5 commits of two programs"


def s3tables_at_once():
    s3tables_bucket()
    sql("s3tables", "CREATE DATABASE race_db")
    at_once("s3tables", "race_db")
    return "12 commits of 4 writers"


def s3tables_refused():
    s3tables_bucket()
    sql("s3tables", "CREATE DATABASE refuse_db")
    require("catalog.codec" in sql("s3tables", "CREATE TABLE refuse_db.t (id INT) WITH ('write.parquet.compression-codec'='lz4')", code=1), "lz4 was taken")
    require("catalog.location" in sql("s3tables", "CREATE TABLE refuse_db.t (id INT) WITH ('location'='s3://lake/x')", code=1), "a location was taken")
    require(not sql("s3tables", "SHOW TABLES FROM refuse_db"), "a refused table was made")
    return "codec and location"


def denied(kind, database, commit, load, refusal, hints):
    """A permission that is missing at the start refuses the statement; one that is taken away meanwhile and given back costs nothing."""
    proxy = Proxy(f"0={URL.split('://')[1]}", log=f"{DIR}/{kind}-denied.log")
    try:
        CATALOGS["denied"] = CATALOGS[kind].replace(f"'{kind}.endpoint'='{URL}'", f"'{kind}.endpoint'='http://127.0.0.1:{proxy.ports[0]}'")
        sql(kind, f"CREATE DATABASE {database}", CREATE.format(f"{database}.t") + " WITH ('commit.retry.min-wait-ms'='50')")
        proxy.rules({**commit, **refusal, "do": "answer", "times": 3})
        sql("denied", f"INSERT INTO {database}.t VALUES {values(1, 2)}")
        require(said.count("catalog.denied") >= 3 and hints[0] in said, said)
        proxy.rules({**load, **refusal, "do": "answer", "times": 0})
        text = sql("denied", f"INSERT INTO {database}.t VALUES {values(3)}", code=1)
        require("catalog.denied" in text and hints[1] in text and "not exist" not in text, text)
        require(ids(kind, f"{database}.t") == [1, 2], "rows")
        # what is refused is not made, either
        require("catalog.denied" in sql("denied", CREATE.replace("TABLE", "TABLE IF NOT EXISTS").format(f"{database}.t"), code=1), "a table was made because of a refusal")
    finally:
        proxy.stop()
    return "at the start at once, while running after three refusals"


def glue_denied():
    refusal = {"status": 400, "type": "application/x-amz-json-1.1", "answer": '{"__type":"AccessDeniedException","Message":"Insufficient Lake Formation permission(s): Required Alter on t"}'}
    return denied("glue", "denied_db", {"target": r"\.UpdateTable$"}, {"target": r"\.GetTable$"}, refusal, ("ALTER on the table", "DESCRIBE on the table"))


def s3tables_denied():
    s3tables_bucket()
    refusal = {"status": 403, "answer": '{"message":"no"}', "headers": {"x-amzn-errortype": "ForbiddenException"}}
    return denied("s3tables", "denied_db", {"method": "PUT", "path": "/metadata-location$"}, {"method": "GET", "path": "/metadata-location$"}, refusal,
                  ("s3tables:UpdateTableMetadataLocation", "s3tables:GetTableMetadataLocation"))


def signed(kind):
    """botocore comes to the same signature for every request, with keys, values and names that have to be encoded."""
    env = {"AWS_ACCESS_KEY_ID": "AKIASIGNED", "AWS_SECRET_ACCESS_KEY": "s/ecret+with=signs", "AWS_SESSION_TOKEN": "token//with+signs=="}
    host = "a b/c=d+e%é~*'' 日本"
    with Signed(URL, *env.values()) as s:
        CATALOGS["signed"] = CATALOGS[kind].replace(URL, s.url)
        rows = sql("signed", "CREATE DATABASE signed_db", "CREATE TABLE signed_db.t (id INT, host STRING) PARTITIONED BY (host)", f"INSERT INTO signed_db.t VALUES (1, '{host}'), (2, 'plain')",
                   "INSERT INTO signed_db.t VALUES (3, 'plain')", "SELECT id, host FROM signed_db.t ORDER BY id", env=env)
        require([r["host"] for r in rows if "host" in r] == [host.replace("''", "'"), "plain", "plain"], str(rows))
        sql("signed", "SHOW DATABASES", "SHOW TABLES FROM signed_db", "DROP TABLE signed_db.t", "DROP DATABASE signed_db", env=env)
        require(not s.bad, "\n".join(s.bad[:3]))
        require(set(s.seen) == {kind, "s3"} and min(s.seen.values()) > 10, str(s.seen))
        return ", ".join(f"{n} requests to {service}" for service, n in sorted(s.seen.items()))


def glue_signed():
    return signed("glue")


def s3tables_signed():
    s3tables_bucket()
    return signed("s3tables")


CASES = [glue_in_turn, glue_theirs, glue_java, glue_at_once, glue_drop, glue_denied, glue_signed, s3tables_in_turn, s3tables_at_once, s3tables_refused, s3tables_denied, s3tables_signed]


def main():
    logging.getLogger("pyiceberg").setLevel(logging.CRITICAL)  # it tries to delete where S3 Tables lets nobody
    wanted = sys.argv[1:]
    failed = []
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        try:
            print(f"ok     {case.__name__}: {case()}", flush=True)
        except Exception as e:
            failed.append(case.__name__)
            print(f"FAILED {case.__name__}: {e}" if isinstance(e, Failure) else f"FAILED {case.__name__}:\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
