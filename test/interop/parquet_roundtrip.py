#!/usr/bin/env python3
"""Strangers read what the parquet room writes: pyarrow and DuckDB, value by value.

usage: parquet_roundtrip.py TOOL [DIR]     (needs pyarrow and duckdb; TOOL is test/tools/parquet_write.c, built with
  gcc -std=c17 -D_GNU_SOURCE -Isrc -o TOOL test/tools/parquet_write.c build/lib/parquet.a build/lib/col.a build/lib/base.a
      -lzstd -llz4 -lsnappy -ldeflate -lm -pthread)
"""
import datetime as dt
import decimal
import os
import subprocess
import sys
import tempfile

import duckdb
import pyarrow.parquet as pq

EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc
decimal.getcontext().prec = 60


def expected(i):
    def dec(unscaled, scale):
        return decimal.Decimal(unscaled).scaleb(-scale)

    values = [
        i % 3 == 0,
        i * 7 - 1000,
        (i - 500) * 1000000007,
        (i - 400) * 0.5,
        (i - 300) * 0.25,
        "café-%d" % (i % 37),
        b"\xff\x00\xfe\xff\x00"[: i % 5],
        dt.date(1970, 1, 1) + dt.timedelta(days=i - 500),
        (EPOCH + dt.timedelta(milliseconds=i * 1001 % 86400000)).time(),
        EPOCH + dt.timedelta(microseconds=(i - 10) * 1000001),
        (EPOCH + dt.timedelta(seconds=i // 10)).replace(tzinfo=UTC),
        dec(i * 1001 - 500000, 2),
        dec((i - 500) * 1000000000007, 4),
        dec((i - 500) * 1000000000000000007 * 1000000000000, 10),
        b"%04d" % (i % 10000),
    ]
    out = [None if (i + k) % 7 == 3 else v for k, v in enumerate(values)]
    out.append("message %d: session opened for user root by (uid=0) %032d" % (i, i * 2654435761 % 2**32))
    arr = None
    if i % 5:
        arr = [None if (i + j) % 6 == 0 else "e%d" % ((i + j) % 50) for j in range(i % 4)]
    mp = None
    if i % 6:
        mp = [("k%d" % j, None if (i + j) % 4 == 0 else i + j) for j in range(i % 3)]
    st = None
    if i % 9:
        st = {"x": "x%d" % i if i % 2 else None, "y": i}
    x = (i + 1) * 0x9E3779B97F4A7C15 % 2**64
    for _ in range(2):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    return out + [arr, mp, st, "%016x%016x" % (x ^ x >> 31, x * 0x94D049BB133111EB % 2**64)]


def check_metadata(path, n):
    f = pq.ParquetFile(path)
    md = f.metadata
    assert md.num_rows == n and md.created_by == "frazil version 0.1.0", md
    assert md.metadata[b"iceberg.schema"] == b'{"type":"struct"}'
    at = 0
    for g in range(md.num_row_groups):
        rg = md.row_group(g)
        for c in range(rg.num_columns):
            col = rg.column(c)
            assert col.is_stats_set and col.has_offset_index, col
            s = col.statistics
            name = col.path_in_schema
            if name == "i":
                got = [v for v in (expected(i)[1] for i in range(at, at + rg.num_rows)) if v is not None]
                assert (s.min, s.max) == (min(got, default=None), max(got, default=None)), (s, g)
                assert s.null_count == rg.num_rows - len(got)
            if name == "d38":
                got = [v for v in (expected(i)[13] for i in range(at, at + rg.num_rows)) if v is not None]
                if got:
                    assert (s.min, s.max) == (min(got), max(got)), s
            assert col.has_column_index, name
        at += rg.num_rows
    ids = [int(x.metadata[b"PARQUET:field_id"]) for x in f.schema_arrow]
    assert ids == [*range(1, 20), 25], ids


def check(path, n):
    check_metadata(path, n)
    for how in ("arrow", "arrow-dict"):
        t = pq.read_table(path, read_dictionary=["s", "msg"] if how == "arrow-dict" else None, page_checksum_verification=True)
        rows = list(zip(*[t.column(i).to_pylist() for i in range(t.num_columns)])) if n else []
        assert len(rows) == n, (path, len(rows))
        for i, row in enumerate(rows):
            want = expected(i)
            assert list(row) == want, (path, how, i, [(a, b) for a, b in zip(row, want) if a != b])
    con = duckdb.connect()
    con.execute("set timezone='UTC'")
    got = con.execute(f"select * replace (tz at time zone 'UTC' as tz) from read_parquet('{path}')").fetchall()
    assert len(got) == n
    for i, row in enumerate(got):
        want = expected(i)
        row = list(row)
        row[10] = row[10] and row[10].replace(tzinfo=UTC)  # asked for without zone: DuckDB would want pytz
        row[17] = None if row[17] is None else list(row[17].items())
        assert row == want, (path, "duckdb", i, [(a, b) for a, b in zip(row, want) if a != b])
    # a filter uses statistics and page bounds: filtered and unfiltered answers must agree
    for col, op, value in (("i", ">", 3000), ("i", "<", -900), ("s", "=", "café-11"), ("d", ">=", 100.0), ("ts", "<", EPOCH), ("d18", "<", decimal.Decimal(-1))):
        k = ["b", "i", "l", "f", "d", "s", "bin", "dt", "tm", "ts", "tz", "d9", "d18"].index(col)
        test = {">": lambda a: a > value, "<": lambda a: a < value, "=": lambda a: a == value, ">=": lambda a: a >= value}[op]
        want = sum(1 for i in range(n) if (v := expected(i)[k]) is not None and test(v))
        assert con.execute(f"select count(*) from read_parquet('{path}') where {col} {op} ?", [value]).fetchone()[0] == want, (path, col)
        if n:
            assert pq.read_table(path, filters=[(col, "==" if op == "=" else op, value)]).num_rows == want, (path, col)
    con.execute(f"select * from parquet_metadata('{path}')").fetchall()


def main():
    tool = sys.argv[1]
    tmp = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="parquet-")
    os.makedirs(tmp, exist_ok=True)
    lines = subprocess.run([tool, tmp], check=True, capture_output=True, text=True).stdout.split("\n")
    for line in filter(None, lines):
        name, rows, _, size, _ = line.split()
        path = os.path.join(tmp, name + ".parquet")
        assert os.path.getsize(path) == int(size)
        check(path, int(rows))
        print("ok", line)


main()
