#!/usr/bin/env python3
"""frazil appends to tables that PyIceberg made, and to its own; PyIceberg and DuckDB read row by row; PyIceberg appends, frazil reads.

    append.py [CASE...]     run with the readers' Python. Environment: FRAZIL_BIN (build/frazil), FRAZIL_INTEROP_VERIFY=1 (Java reads too, and verifies)
"""
import datetime as dt
import decimal
import json
import math
import os
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
import traceback
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import transforms as X
from pyiceberg import types as T
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", os.path.join(HERE, "../../build/frazil")))
READERS = "pyiceberg,duckdb" + (",java" if os.environ.get("FRAZIL_INTEROP_VERIFY") else "")
UTC = dt.timezone.utc


class Failure(Exception):
    pass


def require(ok, message):
    if not ok:
        raise Failure(message)


def local(location):
    return re.sub("^file:/*", "/", location)


class Lake:
    """A catalog of its own."""

    def __init__(self, java=False):
        self.java = java
        self.dir = tempfile.mkdtemp(prefix="frazil-interop-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.cat = SqlCatalog("lake", uri=f"sqlite:///{self.dir}/catalog.db", warehouse=f"file://{self.dir}/wh")
        self.cat.create_namespace("db")
        kind = "'hadoop'" if java else f"'sql','uri'='sqlite:///{self.dir}/catalog.db'"
        with open(f"{self.dir}/init.sql", "w") as f:
            f.write(f"CREATE CATALOG lake WITH ('type'='iceberg','catalog-type'={kind},'warehouse'='file://{self.dir}/wh');\nUSE CATALOG lake;\nUSE db;\n")
        if java:
            jars = os.environ.get("FRAZIL_CACHE", os.path.expanduser("~/.cache/frazil")) + "/iceberg-java-1.10.1/*"
            p = subprocess.run(["java", "-cp", jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"{HERE}/TablesJava.java", f"file://{self.dir}/wh"], capture_output=True, text=True)
            require(p.returncode == 0, p.stdout + p.stderr)

    def sql(self, *statements, code=0):
        args = [x for s in statements for x in ("-e", s)]
        p = subprocess.run([BIN, "sql", "-i", f"{self.dir}/init.sql", "--format", "json", *args], capture_output=True, text=True, cwd=self.dir)
        require(p.returncode == code, f"{statements}: exit {p.returncode}\n{p.stderr[-1500:]}")
        return [json.loads(l) for l in p.stdout.splitlines() if l] if code == 0 else p.stderr

    def table(self, name):
        if self.java:
            found = os.listdir(f"{self.dir}/wh/db/{name}/metadata")
            return StaticTable.from_metadata(f"{self.dir}/wh/db/{name}/metadata/" + max((f for f in found if f.endswith(".metadata.json")), key=lambda f: int(f[1:].split(".")[0])))
        return self.cat.load_table(f"db.{name}")

    def agree(self, count, *names):
        """The readers see the same rows, as many as count says (with Java: and every file is as its manifest entry says)."""
        verify = ["--verify"] if "java" in READERS else []
        p = subprocess.run([sys.executable, f"{HERE}/../peers/read_table.py", "--readers", READERS, *verify, *(local(self.table(n).metadata_location) for n in names)], capture_output=True, text=True)
        require(p.returncode == 0, f"readers of {names}:\n{p.stdout}{p.stderr[-1500:]}")
        require(all(int(n) == count for n in re.findall(r" rows=(\d+) ", p.stdout)), f"{names} do not have {count} rows each:\n{p.stdout}")


def files_of(table):
    return [f.file for f in table.scan().plan_files()]


def same_tuples(table):
    """Each file's partition tuple is what PyIceberg's transforms make of the rows in it."""
    schema, spec = table.schema(), table.spec()
    n = 0
    for f in files_of(table):
        rows = pq.ParquetFile(local(f.file_path)).read()
        for i, p in enumerate(spec.fields):
            column = schema.find_field(p.source_id)
            change = p.transform.transform(column.field_type)
            for v in rows[column.name].to_pylist():
                if isinstance(v, dt.datetime):
                    v = (v.replace(tzinfo=UTC) - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(microseconds=1)
                elif isinstance(v, dt.date):
                    v = (v - dt.date(1970, 1, 1)).days
                elif isinstance(v, dt.time):
                    v = ((v.hour * 60 + v.minute) * 60 + v.second) * 1000000 + v.microsecond
                want, got = change(v), f.partition[i]
                if isinstance(want, int) and not isinstance(want, bool):
                    want = (want + 2**63) % 2**64 - 2**63  # Java's arithmetic; Python's does not wrap
                require(want == got, f"{p.name} of {v!r} is {want!r}, the manifest says {got!r} ({f.file_path})")
                n += 1
    return n


# A row per list: id, s, ts, tz, d, amount, bin
ROWS = [
    (1, "web01", "2026-09-16 12:34:56.123456", "2026-09-16", "10.65"), (2, "", "1969-12-31 23:59:59.999999", "1969-12-31", "-0.01"), (-34, "\u65e5\u672c\u8a9e\u30ed\u30b0", "1970-01-01 00:00:00", "1970-01-01", "0.00"),
    (9223372036854775807, "\U0001f600\u00e9x\u0301y", "2024-02-29 00:00:00.000001", "2024-02-29", "99999.99"), (-9223372036854775808, "a/b c+d%", "0001-01-01 00:00:00", "0001-01-01", "-99999.99"),
    (0, None, "9999-12-31 23:59:59", "9999-12-31", "12.34"), (7, "null", None, None, None), (None, "web012345", "1900-03-01 05:00:00", "1900-03-01", "1.00"),
]
COLUMNS = [T.NestedField(1, "id", T.LongType()), T.NestedField(2, "s", T.StringType()), T.NestedField(3, "ts", T.TimestampType()), T.NestedField(4, "d", T.DateType()),
           T.NestedField(5, "amount", T.DecimalType(9, 2)), T.NestedField(6, "n", T.IntegerType()), T.NestedField(7, "tz", T.TimestamptzType()), T.NestedField(8, "b", T.BinaryType()),
           T.NestedField(9, "f", T.BooleanType()), T.NestedField(10, "tm", T.TimeType())]


def text(v):
    return "CAST(NULL AS STRING)" if v is None else "'" + v.replace("'", "''") + "'"


def values(i, r):
    id_, s, ts, d, amount = r
    whole = "NULL" if id_ is None else str(id_) if id_ > -2 ** 63 else "(-9223372036854775807 - 1)"
    return (f"(CAST({whole} AS BIGINT), {text(s)}, CAST({text(ts)} AS TIMESTAMP(6)), CAST({text(d)} AS DATE), CAST({text(amount)} AS DECIMAL(9, 2)), {i - 4}, "
            f"CAST(CAST({text(ts)} AS TIMESTAMP(6)) AS TIMESTAMP_LTZ(6)), CAST({text(s)} AS BYTES), CAST({text([None, 'true', 'false'][i % 3])} AS BOOLEAN), TIME '12:34:{i:02d}')")


SPECS = {
    "identity": [(k, X.IdentityTransform()) for k in (1, 2, 3, 4, 5, 6, 7, 8, 9)], "bucket": [(k, X.BucketTransform(16)) for k in (1, 2, 3, 4, 5, 6, 7, 8)],
    "bucket_time": [(10, X.BucketTransform(7))], "truncate": [(1, X.TruncateTransform(10)), (2, X.TruncateTransform(3)), (5, X.TruncateTransform(50)), (6, X.TruncateTransform(3)), (8, X.TruncateTransform(4))],
    "year": [(k, X.YearTransform()) for k in (3, 4, 7)], "month": [(k, X.MonthTransform()) for k in (3, 4, 7)], "day": [(k, X.DayTransform()) for k in (3, 4, 7)],
    "hour": [(k, X.HourTransform()) for k in (3, 7)], "void": [(2, X.VoidTransform()), (6, X.IdentityTransform())], "none": [],
}


def insert_and_read(lake, name):
    lake.sql("SET 'table.local-time-zone' = 'UTC';", f"INSERT INTO `{name}` VALUES {', '.join(values(i, r) for i, r in enumerate(ROWS))};")
    t = lake.table(name)
    same_tuples(t)
    got = {(r["id"], r["s"]): r for r in t.scan().to_arrow().to_pylist()}
    require(len(got) == len(ROWS), f"{name}: {len(got)} rows")
    for i, (id_, s, ts, d, amount) in enumerate(ROWS):
        r = got[id_, s]
        want = {"ts": ts and dt.datetime.fromisoformat(ts), "d": d and dt.date.fromisoformat(d), "amount": amount and decimal.Decimal(amount), "n": i - 4,
                "tz": ts and dt.datetime.fromisoformat(ts).replace(tzinfo=UTC), "b": s if s is None else s.encode(), "f": [None, True, False][i % 3], "tm": dt.time(12, 34, i)}
        require({k: r[k] for k in want} == want, f"{name}: {r} is not {want}")
        if s is not None and i < 3:
            require(t.scan(row_filter=EqualTo("s", s)).to_arrow().num_rows == 1, f"{name}: a filter by s = {s!r} does not find its row")
        if ts is not None and i < 2:
            require(t.scan(row_filter=EqualTo("ts", ts.replace(" ", "T"))).to_arrow().num_rows == 1, f"{name}: a filter by ts = {ts} does not find its row")
    require(lake.sql(f"SELECT COUNT(*) AS n, COUNT(s) AS s, MIN(n) AS a, MAX(n) AS z FROM `{name}`;") == [{"n": 8, "s": 7, "a": -4, "z": 3}], f"{name}: frazil's own answer")


def transforms():
    lake = Lake()
    for name, fields in SPECS.items():
        spec = PartitionSpec(*[PartitionField(k, 1000 + i, t, f"{COLUMNS[k - 1].name}_{i}") for i, (k, t) in enumerate(fields)])
        t = lake.cat.create_table(f"db.{name}", Schema(*COLUMNS), partition_spec=spec, properties={"format-version": "2"})
        insert_and_read(lake, name)
    lake.agree(len(ROWS), *SPECS)


def nested():
    """Nested and rare types, from a file of JSON documents; required columns."""
    lake = Lake()
    schema = Schema(
        T.NestedField(1, "id", T.IntegerType(), required=True), T.NestedField(2, "f4", T.FloatType()), T.NestedField(3, "f8", T.DoubleType()),
        T.NestedField(4, "big", T.DecimalType(38, 10)), T.NestedField(5, "arr", T.ListType(20, T.StringType(), False)), T.NestedField(6, "m", T.MapType(21, T.StringType(), 22, T.LongType(), False)),
        T.NestedField(7, "r", T.StructType(T.NestedField(23, "a", T.StringType()), T.NestedField(24, "b", T.ListType(25, T.StructType(T.NestedField(26, "x", T.IntegerType())), False)))))
    lake.cat.create_table("db.nested", schema, properties={"format-version": "2"})
    big = "1234567890123456789012345678.0123456789"
    docs = [{"id": 1, "f4": 1.5, "f8": 1e300, "big": big, "arr": ["a", None, "\u3042"], "m": {"k": 1, "z": None}, "r": {"a": "q", "b": [{"x": 1}, {"x": None}, None]}},
            {"id": 2, "arr": [], "m": {}, "r": {"b": []}}, {"id": 3}, {"id": 4, "f4": -0.0, "f8": -0.0, "big": "-" + big, "arr": [None], "r": {"a": None, "b": [{"x": 5}]}}, {"id": 2147483647, "f4": 3.4028235e38, "f8": 5e-324, "arr": ["x"] * 300},
            {"id": -2147483648, "big": "0.0000000001", "m": {str(i): i for i in range(50)}}]
    os.mkdir(f"{lake.dir}/in")
    with open(f"{lake.dir}/in/a.ndjson", "w") as f:
        f.writelines(json.dumps(d, ensure_ascii=False) + "\n" for d in docs)
    lake.sql(f"""CREATE TEMPORARY TABLE src (id INT, f4 FLOAT, f8 DOUBLE, big DECIMAL(38, 10), arr ARRAY<STRING>, m MAP<STRING, BIGINT>, r ROW<a STRING, b ARRAY<ROW<x INT>>>)
        WITH ('connector'='filesystem','path'='{lake.dir}/in','format'='json');""", "INSERT INTO nested SELECT * FROM src;")
    got = {r["id"]: r for r in lake.table("nested").scan().to_arrow().to_pylist()}
    for d in docs:
        r = got.pop(d["id"])
        if r["m"] is not None:
            r["m"] = dict(r["m"])
        if r["big"] is not None:
            r["big"] = format(r["big"], "f")
        want = {k: d.get(k) for k in ("f4", "f8", "big", "arr", "m")}
        want["f4"] = None if want["f4"] is None else struct.unpack("f", struct.pack("f", want["f4"]))[0]
        require({k: r[k] for k in want} == want, f"{r} is not {want}")
        require(r["r"] == (None if "r" not in d else {"a": d["r"].get("a"), "b": d["r"].get("b")}), f"{r['r']} is not {d.get('r')}")
    require(not got, f"more rows: {got}")
    lake.agree(len(docs), "nested")
    mine = lake.sql("SELECT id, arr, m, r FROM nested;")
    require({r["id"]: r["arr"] for r in mine} == {d["id"]: d.get("arr") for d in docs}, f"frazil's own answer: {mine}")


def java_made():
    """Tables that Java made: every transform, sort order, nested types."""
    lake = Lake(java=True)
    names = ["p_identity", "p_bucket", "p_truncate", "p_year", "p_month", "p_day", "p_hour", "p_void", "p_none"]
    for name in names:
        before = lake.table(name).metadata
        insert_and_read(lake, name)
        t = lake.table(name)
        require(t.metadata.sort_orders == before.sort_orders and t.metadata.default_sort_order_id == before.default_sort_order_id and t.properties["who"] == "java", f"{name}: sort order, properties")
        require(t.metadata.partition_specs == before.partition_specs, f"{name}: partition specs")
    lake.agree(len(ROWS), *names)
    docs = [{"id": 1, "arr": ["a", None], "m": {"k": {"x": 9007199254740993}, "l": None}, "r": {"a": "q", "b": [1, None]}}, {"id": 2, "m": {}}, {"id": 3, "arr": [], "m": {}, "r": {"b": []}}]
    # (PyIceberg 0.12.0 reads a NULL list or map of structs as an empty one, so there is none)
    os.mkdir(f"{lake.dir}/in")
    with open(f"{lake.dir}/in/a.ndjson", "w") as f:
        f.writelines(json.dumps(d) + "\n" for d in docs)
    lake.sql(f"""CREATE TEMPORARY TABLE src (id INT, arr ARRAY<STRING>, m MAP<STRING, ROW<x BIGINT>>, r ROW<a STRING, b ARRAY<INT>>)
        WITH ('connector'='filesystem','path'='{lake.dir}/in','format'='json');""", "INSERT INTO nested SELECT * FROM src;")
    got = sorted(lake.table("nested").scan().to_arrow().to_pylist(), key=lambda r: r["id"])
    require([r["arr"] for r in got] == [["a", None], None, []] and [r["m"] if r["m"] is None else dict(r["m"]) for r in got] == [docs[0]["m"], {}, {}]
            and [r["r"] for r in got] == [docs[0]["r"], None, {"a": None, "b": []}], f"{got}")
    lake.agree(3, "nested")


def fixed_and_uuid():
    lake = Lake()
    lake.cat.create_table("db.fu", Schema(T.NestedField(1, "id", T.IntegerType()), T.NestedField(2, "fx", T.FixedType(4)), T.NestedField(3, "u", T.UUIDType())), properties={"format-version": "2"})
    u = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    lake.sql(f"INSERT INTO fu VALUES (1, X'00ff7f80', X'{u.hex}'), (2, CAST(NULL AS BINARY(4)), CAST(NULL AS BINARY(16)));")
    got = sorted((r["id"], r["fx"], r["u"]) for r in lake.table("fu").scan().to_arrow().to_pylist())
    got = [(a, b, c.bytes if isinstance(c, uuid.UUID) else c) for a, b, c in got]
    require(got == [(1, b"\x00\xff\x7f\x80", u.bytes), (2, None, None)], f"{got}")
    lake.agree(2, "fu")


def kept():
    """Sort order, properties and unknown members of the metadata outlive our commit."""
    lake = Lake()
    t = lake.cat.create_table("db.kept", Schema(*COLUMNS[:2]), sort_order=SortOrder(SortField(2, X.IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST)),
                              properties={"format-version": "2", "who": "stranger", "write.unknown.option": "7", "\u00fc": "\u3042"})
    path = t.metadata_location[7:]
    with open(path) as f:
        j = json.load(f)
    j["x-unknown"] = {"a": [1, {"b": None}], "big": 12345678901234567, "f": 1.5}
    j["schemas"][0]["x-in-schema"] = "kept"
    with open(path, "w") as f:
        json.dump(j, f)
    lake.sql("INSERT INTO kept VALUES (1, 'b'), (2, 'a');", "INSERT INTO kept VALUES (3, NULL);")
    t = lake.table("kept")
    with open(t.metadata_location[7:]) as f:
        k = json.load(f)
    require(k["x-unknown"] == j["x-unknown"] and k["schemas"][0].get("x-in-schema") == "kept", f"{k}")
    for name in ("sort-orders", "default-sort-order-id", "partition-specs", "table-uuid", "location", "last-column-id"):
        require(k[name] == j[name], f"{name}: {k[name]} was {j[name]}")
    require({n: v for n, v in k["properties"].items() if not n.startswith("frazil.")} == j["properties"], f"{k['properties']} was {j['properties']}")
    lake.agree(3, "kept")


def in_turn():
    """PyIceberg and frazil append in turn; each reads all."""
    lake = Lake()
    spec = PartitionSpec(PartitionField(2, 1000, X.IdentityTransform(), "s"))  # the only transform that PyIceberg writes by itself
    lake.cat.create_table("db.turn", Schema(*COLUMNS[:4]), partition_spec=spec, properties={"format-version": "2"})
    arrow = pa.schema([("id", pa.int64()), ("s", pa.string()), ("ts", pa.timestamp("us")), ("d", pa.date32())])
    want = set()
    for round_ in range(4):
        ours = [(round_ * 10 + i, f"h{i}" if i else None) for i in range(3)]
        lake.sql("INSERT INTO turn VALUES " + ", ".join(f"({a}, {text(b)}, TIMESTAMP '2026-01-0{round_ + 1} 00:00:00', DATE '2026-01-01')" for a, b in ours) + ";")
        theirs = [(round_ * 10 + 5 + i, f"h{i}" if i else None) for i in range(3)]
        lake.table("turn").append(pa.table({"id": [a for a, _ in theirs], "s": [b for _, b in theirs], "ts": [dt.datetime(2026, 1, round_ + 1)] * 3, "d": [dt.date(2026, 1, 1)] * 3}, schema=arrow))
        want |= {(a, b, f"2026-01-0{round_ + 1} 00:00:00.000000", "2026-01-01") for a, b in ours + theirs}
        got = {(r["id"], r["s"], r["ts"], r["d"]) for r in lake.sql("SELECT id, s, ts, d FROM turn;")}
        require(got == want, f"round {round_}: more {got - want}, less {want - got}")
        lake.agree(len(want), "turn")
    require(lake.sql("SELECT COUNT(*) AS n FROM turn WHERE s IS NULL;") == [{"n": 8}], "s IS NULL")


ODD = {"11/12/13": "11%2F12%2F13", "web 1/../\u00e9*~": "web+1%2F..%2F%C3%A9*%7E", "a+b": "a%2Bb", "100%": "100%25", "..": "..", ".": ".", "": "", "\U0001f600": "%F0%9F%98%80", "a=b&c": "a%3Db%26c", "null": "null", "z": "z", "\u00e9": "%C3%A9",
       "a\\b": "a%5Cb", "__HIVE_DEFAULT_PARTITION__": "__HIVE_DEFAULT_PARTITION__", "%2F": "%252F", "A": "A", "a": "a", "\n": "%0A", "'\"": "%27%22"}


def odd_partitions():
    """Identity partitions on odd strings: directories as Java names them, raw values in tuples and rows, NULL and \"null\" and \"\" apart."""
    lake = Lake()
    lake.sql("CREATE TABLE odd (host STRING, n INT) PARTITIONED BY (host);", "INSERT INTO odd VALUES " + ", ".join(f"({text(h)}, {i})" for i, h in enumerate([None, *ODD])) + ";")
    t = lake.table("odd")
    files = files_of(t)
    require(sorted(f.partition[0] or "\0" for f in files) == sorted([h or "\0" for h in ODD] + ["\0"]) and sum(f.partition[0] is None for f in files) == 1, f"tuples: {[f.partition[0] for f in files]}")
    same_tuples(t)
    root = t.location()[7:] + "/data/"
    for f in files:
        path = f.file_path[7:]
        require(path.startswith(root) and os.path.realpath(path) == os.path.realpath(root + path[len(root):]), f"{path} is not below {root}")
        want = "host=" + ("null" if f.partition[0] is None else ODD[f.partition[0]])
        require(path[len(root):].rsplit("/", 1)[0] == want, f"{path}: wanted {want}")
    require(len({f.file_path for f in files}) == len(ODD) + 1, "two files of one name")
    for h in ODD:
        require(t.scan(row_filter=EqualTo("host", h)).to_arrow().num_rows == 1, f"PyIceberg: host = {h!r}")
        require(lake.sql(f"SELECT COUNT(*) AS n FROM odd WHERE host = {text(h)};") == [{"n": 1}], f"frazil: host = {h!r}")
    require(t.scan(row_filter=IsNull("host")).to_arrow().num_rows == 1, "PyIceberg: host IS NULL")
    require(lake.sql("SELECT COUNT(*) AS n FROM odd WHERE host IS NULL;") == [{"n": 1}], "frazil: host IS NULL")
    p = t.current_snapshot().manifests(t.io)[0].partitions[0]
    require(p.contains_null and p.lower_bound == b"" and p.upper_bound == "\U0001f600".encode(), f"summary {p}")
    lake.agree(len(ODD) + 1, "odd")


def bounds():
    """Strings compare as unsigned bytes; NaN is no bound; -0.0 is below 0.0."""
    lake = Lake()
    lake.sql("CREATE TABLE b (s STRING, d DOUBLE, f FLOAT);",
             "INSERT INTO b VALUES ('z', 3.0E0, CAST(SQRT(CAST(-1 AS DOUBLE)) AS FLOAT)), ('\u00e9', SQRT(CAST(-1 AS DOUBLE)), CAST(SQRT(CAST(-1 AS DOUBLE)) AS FLOAT)), ('m', CAST('-0.0' AS DOUBLE), CAST(NULL AS FLOAT)), (NULL, 0.0E0, CAST(SQRT(CAST(-1 AS DOUBLE)) AS FLOAT));")
    t = lake.table("b")
    (f,) = files_of(t)
    require(f.lower_bounds[1] == b"m" and f.upper_bounds[1] == "\u00e9".encode(), f"bounds of s {f.lower_bounds} {f.upper_bounds}")
    low, high = struct.unpack("<d", f.lower_bounds[2])[0], struct.unpack("<d", f.upper_bounds[2])[0]
    require(low == 0 and math.copysign(1, low) < 0 and high == 3, f"bounds of d: {low} {high}")
    require(f.nan_value_counts == {2: 1, 3: 3} and f.null_value_counts == {1: 1, 2: 0, 3: 1}, f"{f.nan_value_counts} {f.null_value_counts}")
    require(3 not in f.lower_bounds and 3 not in f.upper_bounds, "a column of NaN has bounds")
    for s in ("z", "\u00e9"):
        require(t.scan(row_filter=EqualTo("s", s)).to_arrow().num_rows == 1, f"s = {s}")
    require(t.scan(row_filter=EqualTo("d", 0.0)).to_arrow().num_rows == 2 and t.scan(row_filter=GreaterThanOrEqual("d", 3.0)).to_arrow().num_rows >= 1, "filters by d")
    lake.agree(4, "b")
    lake.sql("CREATE TABLE bp (d DOUBLE, n INT) PARTITIONED BY (d);", "INSERT INTO bp VALUES (SQRT(CAST(-1 AS DOUBLE)), 1), (3.0E0, 2), (CAST('-0.0' AS DOUBLE), 3), (0.0E0, 4), (LN(CAST(0 AS DOUBLE)), 5);")
    p = lake.table("bp").current_snapshot().manifests(lake.table("bp").io)[0].partitions[0]
    require(p.contains_nan and struct.unpack("<d", p.lower_bound)[0] == -math.inf and struct.unpack("<d", p.upper_bound)[0] == 3, f"summary {p}")
    lake.agree(5, "bp")


def long_host():
    """300 characters: longer than a directory name may be on local files."""
    lake = Lake()
    for name, partitioned in (("flat", ""), ("wide", " PARTITIONED BY (host)")):
        lake.sql(f"CREATE TABLE {name} (host STRING, n INT){partitioned};")
    faces = '\U0001f600' * 300
    lake.sql(f"INSERT INTO flat VALUES ('{'x' * 300}', 1), ('{faces}', 2);")
    t = lake.table("flat")
    require(t.scan(row_filter=EqualTo("host", "x" * 300)).to_arrow().num_rows == 1, "host of 300 characters")
    (f,) = files_of(t)
    require(f.lower_bounds[1] == b"x" * 16 and f.upper_bounds[1] == ("\U0001f600" * 15 + "\U0001f601").encode(), f"{f.lower_bounds[1]} {f.upper_bounds[1]}")
    lake.agree(2, "flat")
    lake.sql(f"INSERT INTO wide VALUES ('{'x' * 300}', 1), ('{'x' * 299}y', 2), ('short', 3);")
    t = lake.table("wide")
    require(sorted(f.partition[0] for f in files_of(t)) == ["short", "x" * 300, "x" * 299 + "y"] and len({os.path.dirname(f.file_path) for f in files_of(t)}) == 3, "tuples and directories")
    require(t.scan(row_filter=EqualTo("host", "x" * 300)).to_arrow().num_rows == 1, "partition of 300 characters")
    lake.agree(3, "wide")


def trailing_slash():
    lake = Lake()
    place = f"file://{lake.dir}/elsewhere/t"
    lake.sql(f"CREATE TABLE own (a INT) WITH ('location' = '{place}/');", "INSERT INTO own VALUES (1), (2);")
    lake.cat.create_table("db.theirs", Schema(T.NestedField(1, "a", T.IntegerType())), location=f"file://{lake.dir}/theirs/t", properties={"format-version": "2"})
    db = sqlite3.connect(f"{lake.dir}/catalog.db")
    t = lake.table("theirs")
    path = t.metadata_location[7:]
    with open(path) as f:
        j = json.load(f)
    j["location"] += "/"
    with open(path, "w") as f:
        json.dump(j, f)
    db.close()
    lake.sql("INSERT INTO theirs VALUES (1), (2);")
    for name, root in (("own", place), ("theirs", f"file://{lake.dir}/theirs/t")):
        t = lake.table(name)
        for where in [t.metadata_location, t.current_snapshot().manifest_list, *[m.manifest_path for m in t.current_snapshot().manifests(t.io)], *[f.file_path for f in files_of(t)]]:
            require(where.startswith(root + "/") and "//" not in where[7:] and os.path.exists(where[7:]), f"{name}: {where}")
        lake.agree(2, name)


def timestamps():
    """timestamp and timestamptz before 1970: whole milliseconds round down, isAdjustedToUTC as the type says."""
    lake = Lake()
    lake.sql("SET 'table.local-time-zone' = 'UTC';", "CREATE TABLE ts (a TIMESTAMP(3), b TIMESTAMP_LTZ(3), c TIMESTAMP(6), d TIMESTAMP_LTZ(6));",
             "INSERT INTO ts SELECT t, CAST(t AS TIMESTAMP_LTZ(3)), t, CAST(t AS TIMESTAMP_LTZ(6)) FROM (VALUES (TIMESTAMP '1969-12-31 23:59:59.999')) AS v(t);")
    t = lake.table("ts")
    require([str(f.field_type) for f in t.schema().fields] == ["timestamp", "timestamptz", "timestamp", "timestamptz"], f"{t.schema()}")
    (f,) = files_of(t)
    schema = pq.ParquetFile(f.file_path[7:]).schema
    kinds = [(schema.column(i).physical_type, json.loads(schema.column(i).logical_type.to_json())) for i in range(4)]
    require([(k, j["timeUnit"], j["isAdjustedToUTC"]) for k, j in kinds] == [("INT64", "microseconds", False), ("INT64", "microseconds", True)] * 2, f"{kinds}")
    require(all(f.lower_bounds[i] == struct.pack("<q", -1000) for i in (1, 2, 3, 4)), f"{f.lower_bounds}")
    lake.agree(1, "ts")


CASES = {f.__name__: f for f in (transforms, java_made, nested, fixed_and_uuid, kept, in_turn, odd_partitions, bounds, long_host, trailing_slash, timestamps)}
failed = []
for name in sys.argv[1:] or CASES:
    try:
        CASES[name]()
        print(f"ok     {name}", flush=True)
    except Failure as e:
        failed.append(name)
        print(f"FAILED {name}: {e}", flush=True)
    except Exception:
        failed.append(name)
        print(f"FAILED {name}: {traceback.format_exc()}", flush=True)
sys.exit(1 if failed else 0)
