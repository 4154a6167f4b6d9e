#!/usr/bin/env python3
"""The metrics file: every metric of the reference page stands in it, at zero too, with help and type; counts are those of the job."""
import os, re, subprocess, sys, tempfile

BIN = os.environ.get("FRAZIL_BIN", "build/frazil")


def main():
    d = tempfile.mkdtemp(prefix="frazil-metrics.")
    with open(f"{d}/job.sql", "w") as f:
        f.write(f"""
SET 'frazil.metrics.path' = '{d}/metrics.prom';
SET 'frazil.state.dir' = '{d}/state';
CREATE TEMPORARY TABLE s (a INT, b STRING) WITH ('connector'='filesystem','path'='{d}/in','format'='json','json.ignore-parse-errors'='true');
CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/c.db','warehouse'='file://{d}/wh');
CREATE DATABASE c.d;
CREATE TABLE c.d.t (a INT, n INT);
INSERT INTO c.d.t SELECT a, CAST(b AS INT) FROM s WHERE a > 0;
""")
    os.mkdir(f"{d}/in")
    with open(f"{d}/in/x.json", "w") as f:
        f.write('{"a":1,"b":"7"}\n{"a":2,"b":"x"}\n{"a":-1,"b":"1"}\n{broken\n{"a":3,"b":"9"}\n')
    subprocess.run([BIN, "run", f"{d}/job.sql"], check=True, capture_output=True)
    text = open(f"{d}/metrics.prom").read()
    values = dict(re.findall(r"^(frazil_\w+) (\d+)$", text, re.M))
    table = subprocess.run([BIN, "options", "metrics"], check=True, capture_output=True, text=True).stdout
    names = [m[0] for m in re.findall(r"^\| `(\w+)` \| \w+ \| \w+ \| ([\w,]*) \|", table, re.M) if not m[1]]
    assert names and sorted(names) == sorted(values), set(names) ^ set(values)
    for n in names:
        assert f"# HELP {n} " in text and re.search(rf"^# TYPE {n} (counter|gauge)$", text, re.M), n
    states = {m[0]: int(m[1]) for m in re.findall(r'^frazil_delivery_records{delivery="c.d.t",state="(\w+)"} (\d+)$', text, re.M)}
    assert states == {"in": 5, "delivered": 2, "filtered": 1, "rejected": 1, "unparseable": 1, "diverted": 0, "by_other": 0, "buffered": 0}, states
    want = {"frazil_source_records_total": 5, "frazil_sink_rows_added_total": 2, "frazil_exec_rows_filtered_total": 1, "frazil_rows_rejected_total": 1,
            "frazil_decode_unparseable_total": 1, "frazil_dead_letters_total": 1, "frazil_commits_total": 1, "frazil_commit_unknown_total": 0}
    got = {k: int(values[k]) for k in want}
    assert got == want, got
    subprocess.run(["rm", "-rf", d])
    print(f"metrics: {len(names)} metrics, each there; the job's counts are right")


sys.exit(main())
