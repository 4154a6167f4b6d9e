#!/usr/bin/env python3
"""What the comparison with the real Flink asks of tables. Run with the readers' Python.

    check.py keep FLINK_DIR FILE SEEDS...     writes FILE from the tables that Flink made (SEEDS: syslog:SEED:COUNT authlog:SEED:COUNT)
    check.py wait DIR FILE SECONDS            until the tables of DIR hold as many rows as FILE says
    check.py compare DIR FILE [READER,...]    each reader sees the rows of FILE: number, hash (defined in test/peers/read_table.py), rows per day
    check.py athena DIR                       the checks of test/data/sql/athena_checks.sql, as `frazil sql` answers them, against PyIceberg's rows
    check.py letters DIR                      one dead letter for each record of gen_dirty.failing(), with its bytes, and nothing else changed
    check.py beside DIR FLINK_DIR DUMPS        row by row: what both tables hold, all three readers, Java with --verify on ours
    check.py generated FILE NAME              how to generate a topic's records again: "SEED COUNT"
"""
import base64
import collections
import datetime as dt
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gen_dirty

BIN = os.environ.get("FRAZIL_BIN", os.path.join(HERE, "../../build/frazil"))
TABLES = ("syslog_events", "authlog_events")


def sql(where, *args):
    p = subprocess.run([BIN, "sql", "-i", f"{where}/init.sql", "--format", "json", *args], capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"frazil sql {args}: {p.stderr}")
    return [json.loads(l) for l in p.stdout.splitlines() if l]


def metadata(where, table):
    """The newest metadata file: Hadoop's catalog tells by number, SQLite's by name."""
    found = glob.glob(f"{where}/warehouse/logs/{table}/metadata/*.metadata.json")
    return max(found, key=lambda f: int(re.match(r"v?(\d+)", os.path.basename(f))[1]))


def rows(where, table):
    """The table's rows as PyIceberg gives them."""
    from pyiceberg.table import StaticTable
    return StaticTable.from_metadata(metadata(where, table)).scan().to_arrow()


def per_day(arrow):
    return dict(sorted(collections.Counter(str(d) for d in arrow["dt"].to_pylist()).items()))


def read(where, table, readers):
    """{reader: (rows, hash)} of read_table.py."""
    options = ["--verify"] if "java" in readers else []
    p = subprocess.run([sys.executable, f"{HERE}/../peers/read_table.py", "--readers", readers, *options, metadata(where, table)], capture_output=True, text=True)
    print(p.stdout.rstrip())
    if p.returncode:
        sys.exit(f"the readers do not agree on {table}\n{p.stderr[-2000:]}")
    return {r: (int(n), h) for r, n, h in re.findall(r"^  (\w+) +rows=(\d+) hash=([0-9a-f]+)$", p.stdout, re.M)}


def keep(where, file, *seeds):
    out = {"flink": "2.0.1", "iceberg": "1.10.1", "topics": {}, "tables": {}}
    for s in seeds:
        kind, seed, count = s.split(":")
        out["topics"][kind] = {"seed": int(seed), "count": int(count)}
    for t in TABLES:
        n, h = read(where, t, "pyiceberg")["pyiceberg"]
        out["tables"][t] = {"rows": n, "hash": h, "per_day": per_day(rows(where, t))}
    with open(file, "w") as f:
        f.write(json.dumps(out, indent=1) + "\n")


def wait(where, file, seconds):
    want = {t: v["rows"] for t, v in json.load(open(file))["tables"].items()}
    until = time.monotonic() + float(seconds)
    while True:
        p = subprocess.run([BIN, "sql", "-i", f"{where}/init.sql", "--format", "json", *(x for t in TABLES for x in ("-e", f"SELECT COUNT(*) AS n FROM logs.{t};"))], capture_output=True, text=True)
        have = [json.loads(l)["n"] for l in p.stdout.splitlines() if l]
        if p.returncode == 0 and have == [want[t] for t in TABLES]:
            return
        if time.monotonic() > until:
            sys.exit(f"after {seconds} s the tables hold {have} rows, wanted {want}: {p.stderr}")
        time.sleep(0.5)


def compare(where, file, readers="pyiceberg,duckdb"):
    wrong = 0
    for t, want in json.load(open(file))["tables"].items():
        for reader, got in read(where, t, readers).items():
            same = got == (want["rows"], want["hash"])
            wrong += not same
            print(f"{'ok    ' if same else 'FAILED'} {t} by {reader}: {got[0]} rows, {got[1]}; Flink: {want['rows']} rows, {want['hash']}")
        days = per_day(rows(where, t))
        if days != want["per_day"]:
            wrong += 1
            print(f"FAILED {t} by day: {days}; Flink: {want['per_day']}")
    sys.exit(1 if wrong else 0)


def dump(where, table, readers, place, *options):
    os.makedirs(place, exist_ok=True)
    p = subprocess.run([sys.executable, f"{HERE}/../peers/read_table.py", "--readers", readers, "--dump", place, *options, metadata(where, table)], capture_output=True, text=True)
    print(p.stdout.rstrip())
    if p.returncode:
        sys.exit(f"the readers do not agree on {table}\n{p.stderr[-2000:]}")
    with open(f"{place}/pyiceberg.txt", encoding="utf-8", newline="\n") as f:
        return collections.Counter(f.read().split("\n"))


def beside(where, flink, dumps):
    wrong = 0
    for t in TABLES:
        print(f"-- {t}: frazil")
        ours = dump(where, t, "pyiceberg,duckdb,java", f"{dumps}/frazil-{t}", "--verify")
        print(f"-- {t}: Flink")
        theirs = dump(flink, t, "pyiceberg", f"{dumps}/flink-{t}")
        less, more = theirs - ours, ours - theirs
        for name, rows_ in (("only in Flink's table", less), ("only in frazil's table", more)):
            for row in sorted(rows_)[:10]:
                print(f"   {name}: {row[:300]}")
        wrong += bool(less or more)
        print(f"{'FAILED' if less or more else 'ok    '} {t}: {ours.total() - 1} rows, Flink {theirs.total() - 1}; {less.total()} missing, {more.total()} more")
    sys.exit(1 if wrong else 0)


def stamp(t):
    return None if t is None else t.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


def athena(where):
    # the second check asks for today's rows
    today = dt.datetime.now(dt.timezone.utc).date()
    texts = ", ".join(f"('t', CAST(NULL AS TIMESTAMP(6)), '{h}', '{p}', 'm', DATE '{today}', 1)" for h, p in [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("b", "x")])
    sql(where, "-e", f"INSERT INTO logs.authlog_events VALUES {texts};")
    got = sql(where, "-f", f"{HERE}/../data/sql/athena_checks.sql")
    groups = collections.defaultdict(list)
    for r in rows(where, "syslog_events").select(["dt", "hr", "ts"]).to_pylist():
        groups[r["dt"], r["hr"]].append(r["ts"])
    want = []
    for (d, h), times in sorted(groups.items(), reverse=True)[:24]:
        some = [t for t in times if t is not None]
        want.append({"dt": str(d), "hr": h, "cnt": len(times), "min_ts": stamp(min(some, default=None)), "max_ts": stamp(max(some, default=None))})
    want += [{"host": h, "program": p, "cnt": n} for h, p, n in [("a", "x", 3), ("b", "x", 2), ("a", "y", 1)]]
    if got != want:
        sys.exit("FAILED the checks of athena_checks.sql:\n" + "\n".join(f"{a}  {b}" for a, b in zip(got, want) if a != b) + f"\n{len(got)} rows, wanted {len(want)}")
    print(f"ok     the checks of athena_checks.sql: {len(got)} rows")


def letters(where):
    want = sorted(json.dumps({"ts": t, "src_host": "h", "program": "bad", "message": "m"}) for t in gen_dirty.failing())
    got, codes = [], collections.Counter()
    for f in glob.glob(f"{where}/**/dead-letter/*", recursive=True):
        for line in open(f):
            if line.strip():
                letter = json.loads(line)
                codes[letter["code"]] += 1
                got.append(base64.b64decode(letter["rawData"]).decode())
                if letter["topic"] != "syslog" or not letter["expression"].startswith("CAST(") or not letter["message"]:
                    sys.exit(f"FAILED strange dead letter: {line}")
    if sorted(got) != want:
        sys.exit(f"FAILED dead letters: {len(got)} of {len(want)}; missing {sorted(set(want) - set(got))}, more {sorted(set(got) - set(want))}")
    if any(p == "bad" for p in rows(where, "syslog_events")["program"].to_pylist()):
        sys.exit("FAILED a row whose CAST fails is in the table")
    print(f"ok     {len(got)} dead letters: {dict(codes)}")


def generated(file, name):
    t = json.load(open(file))["topics"][name]
    print(t["seed"], t["count"])


{"keep": keep, "wait": wait, "compare": compare, "athena": athena, "letters": letters, "beside": beside, "generated": generated}[sys.argv[1]](*sys.argv[2:])
