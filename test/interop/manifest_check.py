#!/usr/bin/env python3
"""Strangers read the metadata, manifest lists and manifests that we write, and we read theirs: PyIceberg, DuckDB's iceberg and avro extensions.

usage: manifest_check.py TOOL      (needs pyiceberg, and duckdb with its extensions if they are there; TOOL is build/test/tools/manifest_tool)
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal
from urllib.parse import quote_plus

from pyiceberg.expressions import EqualTo
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, read_manifest_list, write_manifest,
                                write_manifest_list)
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

tool = os.path.abspath(sys.argv[1])


def check(what, ok, more=""):
    print("ok  " if ok else "FAIL", what, "" if ok else more)
    if not ok:
        sys.exit(1)


def run(*args):
    r = subprocess.run([tool, *args], capture_output=True, text=True)
    if r.returncode:
        sys.exit("manifest_tool %s: %s" % (" ".join(args), r.stderr))
    return r.stdout


TS = 1789603200123456


def want_tuple(row):
    """What manifest_tool puts into row 0..4, as PyIceberg gives it."""
    if row == 0:
        return [None] * 15
    k = row - 2
    import mmh3
    bucket = (mmh3.hash(struct.pack("<q", 1000 * k)) & 0x7FFFFFFF) % 16
    return [bool(row & 1), 1000 * k, 1000 * k, k * 0.5, k * 0.5, 20000 * k, TS * k, TS * k, "h\u00e9-%d" % row, (mmh3.hash(b"fx%02d" % row) & 0x7FFFFFFF) % 4, bytes([row]) + b"bin",
            Decimal(129 * k) / 100, bucket, "h\u00e9", TS * k // 86400000000]


def entries_ok(table, snapshot):
    """Every file once, with tuple, counts and the commit that it came with."""
    seen = {}
    for m in snapshot.manifests(table.io):
        counts = {1: 0, 0: 0}
        for e in m.fetch_manifest_entry(table.io, discard_deleted=False):
            f = e.data_file
            commit, row = (int(x.split(".")[0]) for x in (f.file_path.rsplit("/", 1)[1].split("-")[1], f.file_path.rsplit("/", 1)[1].split("-")[3]))
            assert (commit, row) not in seen, "twice"
            seen[commit, row] = True
            assert e.snapshot_id == 100 + commit and e.sequence_number == commit and e.file_sequence_number == commit, (e.snapshot_id, e.sequence_number)
            assert e.status == (ManifestEntryStatus.ADDED if e.snapshot_id == m.added_snapshot_id else ManifestEntryStatus.EXISTING)
            counts[int(e.status)] += 1
            got = [f.partition[i] for i in range(15)]
            assert got == want_tuple(row), (got, want_tuple(row))
            assert f.record_count == 10 + row and f.file_size_in_bytes == 1000 + row and f.content == DataFileContent.DATA
            assert f.column_sizes == {1: 11, 9: 5000000000 + row} and f.nan_value_counts == {} and f.lower_bounds == {9: "h\u00e9".encode()}
            assert f.split_offsets == [4] and f.sort_order_id == 0 and f.key_metadata is None and f.equality_ids is None
            assert "host-name=" + ("null" if row == 0 else quote_plus("h\u00e9-%d" % row)) in f.file_path
        assert (counts[1], counts[0]) == (m.added_files_count, m.existing_files_count)
        assert m.manifest_length == os.path.getsize(m.manifest_path[7:])
        p = m.partitions
        assert len(p) == 15 and all(x.contains_null for x in p) and not any(x.contains_nan for x in p)
        assert p[8].lower_bound == "h\u00e9-1".encode() and p[8].upper_bound == "h\u00e9-4".encode() and p[5].lower_bound == struct.pack("<i", -20000)
    assert len(seen) == 5 * (snapshot.snapshot_id - 100), len(seen)
    return True


def ours_by_pyiceberg(root, codec):
    t = StaticTable.from_metadata(run("write", root, codec).strip())
    snapshots = t.metadata.snapshots
    check("PyIceberg reads the metadata (%s)" % codec, len(snapshots) == 3 and t.current_snapshot().snapshot_id == 103 and len(t.metadata.metadata_log) == 3)
    check("summary", t.current_snapshot().summary["total-records"] == str(3 * 60) and t.current_snapshot().summary["note"] == "stranger")
    check("names of partition fields", [f.name for f in t.spec().fields][12:] == ["i_bucket", "host-name_trunc", "9day"])
    for s in snapshots:
        check("entries of snapshot %d" % s.snapshot_id, entries_ok(t, s))
    check("manifests were merged", len(snapshots[2].manifests(t.io)) == 1 and len(snapshots[1].manifests(t.io)) == 2)
    check("scan plans all files", len(list(t.scan().plan_files())) == 15)
    check("pruning by partition", len(list(t.scan(row_filter=EqualTo("host-name", "h\u00e9-3")).plan_files())) == 3)
    return t


def ours_by_duckdb(t, location):
    try:
        import duckdb
        c = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for name in ("avro", "iceberg"):
            module = __import__("duckdb_extension_" + name)
            c.load_extension(glob.glob(os.path.join(os.path.dirname(module.__file__), "extensions", "v" + duckdb.__version__, name + ".duckdb_extension"))[0])
    except Exception as e:  # not installed here: nothing to compare with
        print("skip DuckDB:", str(e).split("\n")[0])
        return
    rows = c.execute("SELECT manifest_sequence_number, status, file_path, record_count FROM iceberg_metadata(?)", [location]).fetchall()
    check("DuckDB reads the manifests", len(rows) == 15 and sum(r[3] for r in rows) == 180, rows)
    manifest = t.current_snapshot().manifests(t.io)[0].manifest_path[7:]
    got = c.execute("SELECT data_file.partition::VARCHAR FROM read_avro(?)", [manifest]).fetchall()
    check("DuckDB's Avro reader takes the names", len(got) == 15 and "_9day" in got[0][0] and "host_x2Dname" in got[0][0], got[:1])


def theirs(root, t):
    """A manifest and a list by PyIceberg, read by us."""
    io = PyArrowFileIO()
    at = "file://%s/theirs.avro" % root
    spec, schema = t.spec(), t.schema()
    with write_manifest(2, spec, schema, io.new_output(at), 777, "deflate") as w:
        for row in range(5):
            f = DataFile.from_args(content=DataFileContent.DATA, file_path="x/%d" % row, file_format=FileFormat.PARQUET, partition=Record(*want_tuple(row)),
                                   record_count=row + 1, file_size_in_bytes=50 + row, column_sizes={1: 2}, value_counts={1: row}, null_value_counts={},
                                   nan_value_counts=None, lower_bounds={9: b"a"}, upper_bounds={9: b"\xff"}, key_metadata=None, split_offsets=[4, 8],
                                   equality_ids=None, sort_order_id=None)
            f.spec_id = spec.spec_id
            w.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=777, sequence_number=None, file_sequence_number=None, data_file=f))
    got = [json.loads(x) for x in run("dump", root + "/theirs.avro").splitlines()]
    check("five entries of PyIceberg", len(got) == 5)
    for row, g in enumerate(got):
        w_ = want_tuple(row)
        raw = [None if v is None else int(v) if isinstance(v, bool) else "%.17g" % v if isinstance(v, float) else v.hex() if isinstance(v, bytes)
               else str(int(v * 100)) if isinstance(v, Decimal) else v for v in w_]
        check("tuple of row %d" % row, g["partition"] == raw, (g["partition"], raw))
        check("members of row %d" % row, g["records"] == row + 1 and g["splits"] == [4, 8] and g["upper"] == {"9": "ff"} and g["value_counts"] == {"1": row}
              and not g["nan_counts"] and g["sort_order"] == -1 and g["snapshot_id"] == 777, g)
    m = w.to_manifest_file()
    with write_manifest_list(2, io.new_output("file://%s/list.avro" % root), 777, 5, 9, "deflate") as lw:
        lw.add_manifests([m])
    got = [json.loads(x) for x in run("list", root + "/list.avro").splitlines()]
    check("list of PyIceberg", len(got) == 1 and got[0]["files"] == [5, 0, 0] and got[0]["rows"] == [15, 0, 0] and got[0]["sequence"] == 9
          and got[0]["partitions"][8][0] and bytes.fromhex(got[0]["partitions"][8][3]) == "h\u00e9-4".encode(), got)


def lists_equal(t):
    for s in t.metadata.snapshots:
        a = list(read_manifest_list(t.io.new_input(s.manifest_list)))
        b = [json.loads(x) for x in run("list", s.manifest_list[7:]).splitlines()]
        check("list of snapshot %d" % s.snapshot_id, [m.manifest_path for m in a] == [m["path"] for m in b] and [m.sequence_number for m in a] == [m["sequence"] for m in b])


for codec in ("gzip", "zstd", "uncompressed"):
    with tempfile.TemporaryDirectory() as root:
        table = ours_by_pyiceberg(root, codec)
        lists_equal(table)
        if codec != "zstd":  # which its Avro reader does not know
            ours_by_duckdb(table, table.metadata_location)
        theirs(root, table)
print("all well")
