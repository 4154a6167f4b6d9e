#!/usr/bin/env python3
"""Reads Iceberg tables with pyiceberg, DuckDB and Java Iceberg, and tells whether they see the same rows.

    read_table.py [--readers LIST] [--snapshot ID] [--verify] [--dump DIR] [--catalog ADDRESS [--property KEY=VALUE]...] TABLE...

TABLE is a *.metadata.json or a table's directory (its newest metadata file is taken), local or on S3; with --catalog NAMESPACE.TABLE of that
catalog (addresses: catalogs.py). For each reader a line with the number of rows and a hash that does not depend on their order; then AGREE or DISAGREE.
--verify: Java also compares each data file with its manifest entry, each manifest with the manifest list, the totals with the summary.
--dump: leaves each reader's rows, sorted, in DIR/READER.txt. Exit status 0 only if all agree and nothing is wrong.

The hash is the sum, modulo 2^128, of the first 16 bytes of SHA-256 over each row's text: the values in the table's order with commas between.
Values: N null; T, F; whole numbers, dates (days), times and timestamps (microseconds) in decimal; h and the bits of a float or double; d and a
decimal's unscaled number; s, the number of UTF-8 bytes, ":" and the text; b and bytes in hexadecimal; (..) structs; [..] lists; <k=v,..> maps
in the order of the entries' texts.
"""
import argparse
import glob
import hashlib
import os
import re
import struct
import subprocess
import sys
import uuid
from decimal import Context

import pyarrow as pa
from pyiceberg import types as T
from pyiceberg.table import StaticTable

from catalogs import aws, open_catalog, s3_properties

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE = Context(prec=60)


def text_of(value):
    return f"s{len(value.encode())}:{value}"


def bytes_of(value):
    return "b" + (value.bytes if hasattr(value, "bytes") else bytes(value)).hex()


def number_of(fmt):
    nan = float("nan")
    return lambda v: "h" + struct.pack(fmt, nan if v != v else v).hex()


SCALARS = {
    T.BooleanType: lambda v: "T" if v else "F",
    T.FloatType: number_of(">f"),
    T.DoubleType: number_of(">d"),
    T.DecimalType: lambda v: "d" + str(int(v.scaleb(-v.as_tuple().exponent, WIDE))),
    T.StringType: text_of,
    T.UUIDType: lambda v: bytes_of(uuid.UUID(v) if isinstance(v, str) else v),  # DuckDB gives a text
    T.BinaryType: bytes_of,
    T.FixedType: bytes_of,
}
AS_NUMBERS = {T.DateType: (pa.date32(), pa.int32()), T.TimeType: (pa.time64("us"), pa.int64())}


def plain(array):
    """One array without chunks, extension types and dictionaries."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def column(array, kind):
    array = plain(array)
    valid = array.is_valid().to_pylist()
    if isinstance(kind, T.StructType):
        parts = {f.name: a for f, a in zip(array.type, array.flatten())}
        rows = zip(*(column(parts[f.name], f.field_type) for f in kind.fields))
        return [f"({','.join(r)})" if ok else "N" for r, ok in zip(rows, valid)]
    if isinstance(kind, (T.ListType, T.MapType)):
        ends = array.offsets.to_pylist()
        if isinstance(kind, T.ListType):
            inner, shape = column(array.values, kind.element_type), "[%s]"
        else:
            inner = ["=".join(e) for e in zip(column(array.keys, kind.key_type), column(array.items, kind.value_type))]
            shape = "<%s>"
        order = sorted if isinstance(kind, T.MapType) else list
        return [shape % ",".join(order(inner[a:b])) if ok else "N" for a, b, ok in zip(ends, ends[1:], valid)]
    if isinstance(kind, (T.TimestampType, T.TimestamptzType)):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    for step in AS_NUMBERS.get(type(kind), ()):
        array = array.cast(step)
    one = SCALARS.get(type(kind), str)
    return ["N" if v is None else one(v) for v in array.to_pylist()]


class Rows:
    """Counts and hashes rows."""

    def __init__(self, keep):
        self.count, self.sum, self.kept = 0, 0, [] if keep else None

    def add(self, batches, schema):
        for batch in batches:
            for row in zip(*(column(batch.column(f.name), f.field_type) for f in schema.fields)):
                text = ",".join(row)
                self.count += 1
                self.sum += int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
                if self.kept is not None:
                    self.kept.append(text)
        return self

    def result(self):
        return self.count, f"{self.sum % 2**128:032x}"


def set_s3(db):
    """DuckDB reaches S3 as the other readers do."""
    endpoint, (key, secret, region, token) = s3_properties()["s3.endpoint"], aws()
    settings = {"KEY_ID": key, "SECRET": secret, "REGION": region, "ENDPOINT": endpoint.split("://", 1)[1].rstrip("/"), "URL_STYLE": "path", "SESSION_TOKEN": token}
    texts = ", ".join("%s '%s'" % (k, v.replace("'", "''")) for k, v in settings.items() if v)
    db.execute(f"CREATE SECRET (TYPE s3, {texts}, USE_SSL {endpoint.startswith('https')})")


def local(location):
    return re.sub("^file:/*", "/", location)


def pyiceberg_rows(table, schema, args):
    return Rows(args.dump).add(table.scan(snapshot_id=args.snapshot).to_arrow_batch_reader(), schema)


def duckdb_rows(table, schema, args):
    import duckdb
    db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "httpfs", "iceberg"):
        package = os.path.dirname(__import__(f"duckdb_extension_{name}").__file__)
        db.load_extension(glob.glob(f"{package}/extensions/v{duckdb.__version__}/{name}.duckdb_extension")[0])
    db.execute("SET TimeZone = 'UTC'")
    set_s3(db)
    names = ", ".join('"%s"' % f.name.replace('"', '""') for f in schema.fields)
    at = f", snapshot_from_id := {args.snapshot}" if args.snapshot else ""
    where = local(table.metadata_location).replace("'", "''")
    return Rows(args.dump).add(db.execute(f"SELECT {names} FROM iceberg_scan('{where}'{at})").to_arrow_reader(50000), schema)


def java_rows(table, schema, args):
    options = ["rows"] * bool(args.dump) + ["verify"] * args.verify
    run = subprocess.run(["bash", f"{HERE}/readers.sh", "java", table.metadata_location, str(args.snapshot or "-"), *options],
                         capture_output=True, text=True, encoding="utf-8")
    rows, found = Rows(args.dump), re.search(r"^total (\d+) ([0-9a-f]{32})$", run.stdout, re.M)
    if not found:
        raise RuntimeError((run.stdout + run.stderr).strip()[-1500:])
    for line in run.stdout.splitlines():
        if line.startswith("row "):
            rows.kept.append(bytes.fromhex(line[4:]).decode())
        elif not line.startswith("total "):
            print("    " + line)
    rows.count, rows.sum = int(found[1]), int(found[2], 16)
    if run.returncode:
        args.wrong = True
    return rows


READERS = {"pyiceberg": pyiceberg_rows, "duckdb": duckdb_rows, "java": java_rows}


def newest(directory):
    if not directory.startswith("s3"):
        found = glob.glob(f"{glob.escape(local(directory))}/metadata/*.metadata.json")
    else:
        from pyarrow.fs import FileSelector, S3FileSystem
        endpoint, (key, secret, region, token) = s3_properties()["s3.endpoint"], aws()
        fs = S3FileSystem(access_key=key, secret_key=secret, session_token=token, region=region, endpoint_override=endpoint)
        files = fs.get_file_info(FileSelector(directory.split("://", 1)[1].rstrip("/") + "/metadata"))
        found = [f"s3://{f.path}" for f in files if f.path.endswith(".metadata.json")]
    if not found:
        raise FileNotFoundError(f"no metadata file in {directory}")
    return max(found, key=lambda f: int(re.match(r"v?(\d*)", os.path.basename(f))[1] or 0))


def load(target, args):
    if args.catalog:
        return open_catalog(args.catalog, **dict(p.split("=", 1) for p in args.property)).load_table(target)
    return StaticTable.from_metadata(target if target.endswith(".metadata.json") else newest(target), s3_properties())


def compare(target, args):
    table = load(target, args)
    schema = table.scan(snapshot_id=args.snapshot).projection() if args.snapshot else table.schema()
    print(f"{target}: {table.metadata_location}")
    args.wrong, results = False, set()
    for name in args.readers.split(","):
        try:
            rows = READERS[name](table, schema, args)
        except Exception as e:
            print(f"  {name:9} failed: {type(e).__name__}: {e}", flush=True)
            results.add(name)
            continue
        results.add(rows.result())
        print("  %-9s rows=%d hash=%s" % (name, *rows.result()), flush=True)
        if args.dump:
            os.makedirs(args.dump, exist_ok=True)
            with open(os.path.join(args.dump, name + ".txt"), "w", encoding="utf-8") as out:
                out.writelines(line.replace("\\", "\\\\").replace("\n", "\\n") + "\n" for line in sorted(rows.kept))
    agree = len(results) == 1 and isinstance(next(iter(results)), tuple)
    print("  AGREE" if agree else "  DISAGREE", "but the metadata is wrong" if args.wrong else "")
    return agree and not args.wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tables", nargs="+", metavar="TABLE")
    p.add_argument("--readers", default=",".join(READERS))
    p.add_argument("--snapshot", type=int)
    p.add_argument("--catalog", metavar="ADDRESS")
    p.add_argument("--property", metavar="KEY=VALUE", action="append", default=[])
    p.add_argument("--dump", metavar="DIR")
    p.add_argument("--verify", action="store_true")
    args = p.parse_args()
    good = True
    for target in args.tables:
        try:
            good &= compare(target, args)
        except Exception as e:
            print(f"{target}: {type(e).__name__}: {e}")
            good = False
    sys.exit(0 if good else 1)


main()
