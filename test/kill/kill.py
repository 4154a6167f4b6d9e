#!/usr/bin/env python3
"""Kills the real program at seeded moments and at every named point of the commit path, starts it again, and compares the table with what was produced.

Variants: local state kept; local state deleted at each kill; two sinks on one topic; a start at latest; at the end the topic is made anew.
At the end every good record stands in the table once, `frazil audit` passes, and no data file is live twice. Prints the hits per point."""
import argparse, collections, json, os, random, signal, subprocess, sys, time

# Points of a checkpoint's way, with weights: at least a fifth of the kills lies between the catalog's acceptance and its answer.
POINTS = {"commit.accepted": 14, "commit.answered": 3, "checkpoint.begin": 3, "checkpoint.closed": 3, "file.write": 3, "file.fsync": 3, "commit.load": 3, "commit.checked": 3,
          "commit.manifest": 3, "commit.manifest-list": 3, "commit.metadata": 3, "commit.swap": 3, "report.before": 3, "checkpoint.done": 3, "dead-letter.write": 3, "source.poll": 3}


class Harness:
    def __init__(self, a):
        self.a, self.rng = a, random.Random(a.seed)
        self.bin = os.path.abspath("build/frazil")
        self.hits, self.next_id = collections.Counter(), 0
        self.log = open(os.path.join(a.dir, "frazil.log"), "ab")

    def kafka(self, *args):
        subprocess.run(["bash", self.a.kafka_sh, *args], check=True, stdout=self.log, stderr=self.log)

    def produce(self, topic, n, good, bad):
        """n records, some of them dirty; ids of good ones go to `good`, the number of rows that must become dead letters to bad[0]."""
        parts = collections.defaultdict(list)
        for _ in range(n):
            i = self.next_id
            self.next_id += 1
            kind = self.rng.random()
            host = f"h{self.rng.randrange(5)}"
            if kind < 0.03:
                line = '{"id":%d,"host":' % i
            elif kind < 0.06:
                line = json.dumps({"id": i, "host": "  ", "num": "1"})
            elif kind < 0.09:
                line = json.dumps({"id": i, "host": host, "num": "x%d" % i})
                bad[0] += 1
            else:
                line = json.dumps({"id": i, "host": host, "num": str(i)})
                good.append(i)
            parts[self.rng.randrange(3)].append(line)
        for p, lines in parts.items():
            subprocess.run(["kcat", "-b", self.a.broker, "-P", "-t", topic, "-p", str(p)], input="\n".join(lines).encode() + b"\n", check=True, stdout=self.log, stderr=self.log)

    def script(self, v, bounded):
        d = v["dir"]
        mode = "latest-offset" if v["kind"] == "latest" else "earliest-offset"
        end = "'scan.bounded.mode'='latest-offset'," if bounded else ""
        inserts = "\n".join(f"INSERT INTO c.db.{t} SELECT id, TRIM(host), CAST(num AS INT) FROM src WHERE TRIM(host) <> '';" for t in v["tables"])
        text = f"""
CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{d}/catalog.db','warehouse'='file://{d}/wh');
CREATE DATABASE IF NOT EXISTS c.db;
""" + "\n".join(f"CREATE TABLE IF NOT EXISTS c.db.{t} (id BIGINT, host STRING, num INT) PARTITIONED BY (host) WITH ('commit.manifest.min-count-to-merge'='5');" for t in v["tables"]) + f"""
CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num STRING) WITH ('connector'='kafka','topic'='{v["topic"]}','properties.bootstrap.servers'='{self.a.broker}',
 'properties.group.id'='kill','scan.startup.mode'='{mode}',{end}'format'='json','json.ignore-parse-errors'='true');
SET 'pipeline.name' = 'kill-{v["kind"]}';
SET 'execution.checkpointing.interval' = '300 ms';
SET 'frazil.state.dir' = '{d}/state';
STATEMENT SET BEGIN
{inserts}
END;
"""
        path = f"{d}/{'bounded' if bounded else 'job'}.sql"
        open(path, "w").write(text)
        return path

    def run(self, v, fault, seconds):
        env = dict(os.environ)
        if fault:
            env["FRAZIL_FAULT"] = fault
        p = subprocess.Popen([self.bin, "run", self.script(v, False)], stdout=self.log, stderr=self.log, env=env)
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGKILL)
            p.wait()
            return "time"
        if p.returncode == -signal.SIGKILL:
            return "point"
        raise SystemExit(f"kill.py: frazil ended by itself with {p.returncode} ({v['kind']}, fault {fault}); see the log's end:\n" + tail(self.log.name))

    def rows(self, v, table):
        out = subprocess.run([self.bin, "sql", "-i", self.init(v), "--format", "json", "-e", f"SELECT id, num FROM c.db.{table}"], check=True, capture_output=True, text=True).stdout
        return [json.loads(l)["id"] for l in out.splitlines() if l.strip()]

    def init(self, v):
        path = f"{v['dir']}/init.sql"
        open(path, "w").write(f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{v['dir']}/catalog.db','warehouse'='file://{v['dir']}/wh');\n")
        return path

    def variant(self, kind, rounds):
        d = os.path.join(self.a.dir, kind)
        os.makedirs(d)
        v = {"kind": kind, "dir": d, "topic": f"kill-{kind}", "tables": ["t1", "t2"] if kind == "two-sinks" else ["t1"]}
        self.kafka("topic", os.path.join(self.a.dir, "kafka"), v["topic"], "3")
        good, bad, before = [], [0], []
        if kind == "latest":
            self.produce(v["topic"], 50, before, [0])
            self.claim(v)
        for r in range(rounds):
            self.produce(v["topic"], self.rng.randrange(20, 200), good, bad)
            if self.rng.random() < 0.25:
                fault, where, seconds = None, "time", self.rng.uniform(0.05, 2.5)
            else:
                where = self.rng.choices(list(POINTS), list(POINTS.values()))[0]
                fault, seconds = f"{where}:{self.rng.choice([1, 1, 1, 2, 3])}:kill", 12
            how = self.run(v, fault, seconds)
            self.hits[where if how == "point" else "time"] += 1
            if kind == "wiped":
                subprocess.run(["rm", "-rf", f"{d}/state"], check=True)
            print(f"  {kind} {r + 1}/{rounds}: {where}{'' if how == 'point' else ' (by time)'}", flush=True)
        self.produce(v["topic"], 30, good, bad)
        subprocess.run([self.bin, "run", self.script(v, True)], check=True, stdout=self.log, stderr=self.log)
        for t in v["tables"]:
            self.compare(v, t, good)
        if kind == "kept":
            self.letters(v, bad[0])
        return v

    def claim(self, v):
        """Runs until the start at latest has been committed: from then on it is a number."""
        p = subprocess.Popen([self.bin, "run", self.script(v, False)], stdout=self.log, stderr=self.log)
        for _ in range(200):
            time.sleep(0.1)
            out = subprocess.run([self.bin, "inspect", "c.db.t1", "-i", self.init(v), "--format", "json"], capture_output=True, text=True).stdout
            if '"positions"' in out and '"kill-latest"' in out:
                break
        else:
            raise SystemExit("kill.py: no claim was committed")
        p.kill()
        p.wait()

    def compare(self, v, table, good):
        got, want = collections.Counter(self.rows(v, table)), collections.Counter(good)
        lost, extra = list((want - got).elements()), list((got - want).elements())
        if lost or extra:
            raise SystemExit(f"kill.py: {v['kind']}.{table}: {len(lost)} lost {lost[:5]}, {len(extra)} extra {extra[:5]}")
        p = subprocess.run([self.bin, "audit", f"c.db.{table}", "-i", self.init(v)], capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f"kill.py: audit of {v['kind']}.{table} fails:\n{p.stdout}{p.stderr}")
        strangers(f"{v['dir']}/catalog.db", f"{v['dir']}/wh", f"db.{table}", len(good))
        print(f"  {v['kind']}.{table}: {len(good)} rows, each once; audit passes", flush=True)

    def letters(self, v, n):
        seen, d = set(), f"{v['dir']}/state/dead-letter"
        for f in os.listdir(d):
            for l in open(os.path.join(d, f)):
                try:
                    j = json.loads(l)
                except ValueError:
                    continue  # torn by a kill; the record comes again
                seen.add((j["partition"], j["offset"]))
        if len(seen) != n:
            raise SystemExit(f"kill.py: {n} rows must be dead letters, {len(seen)} are")

    def remade(self, v):
        """The topic is deleted and made again, and grows past the position: the start must refuse."""
        self.kafka("tool", os.path.join(self.a.dir, "kafka"), "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.a.broker, "--delete", "--topic", v["topic"])
        time.sleep(3)
        self.kafka("topic", os.path.join(self.a.dir, "kafka"), v["topic"], "3")
        for _ in range(8):
            self.produce(v["topic"], 3000, [], [0])
        p = subprocess.run([self.bin, "run", self.script(v, True)], capture_output=True, text=True, timeout=60)
        if p.returncode != 2 or "positions.topic-remade" not in p.stderr:
            raise SystemExit(f"kill.py: a topic made anew was not refused: {p.returncode}\n{p.stderr[-2000:]}")
        print("  topic made anew: refused", flush=True)


def strangers(db, wh, name, rows):
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError:
        return
    t = SqlCatalog("c", uri=f"sqlite:///{db}", warehouse=f"file://{wh}").load_table(name)
    paths = [f.file.file_path for f in t.scan().plan_files()]
    if len(paths) != len(set(paths)):
        raise SystemExit("kill.py: a data file is live twice")
    if t.scan().to_arrow().num_rows != rows:
        raise SystemExit("kill.py: PyIceberg counts other rows")


def tail(path):
    return "".join(open(path, errors="replace").readlines()[-30:])


def main():
    ap = argparse.ArgumentParser()
    for o in ("--dir", "--kafka-sh", "--broker"):
        ap.add_argument(o, required=True)
    ap.add_argument("--rounds", type=int, default=30)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    print(f"kill.py: {a.rounds} rounds, seed {a.seed}")
    h = Harness(a)
    kinds = ["kept", "wiped", "two-sinks", "latest"]
    share = [a.rounds // 4 + (1 if i < a.rounds % 4 else 0) for i in range(4)]
    first = None
    for kind, n in zip(kinds, share):
        v = h.variant(kind, n)
        first = first or v
    h.remade(first)
    total = sum(h.hits.values())
    for name in [*POINTS, "time"]:
        print(f"  {h.hits[name]:4d} {name}")
    print(f"kill.py: {total} kills, {h.hits['commit.accepted']} between acceptance and answer")
    if total >= 200:
        few = [p for p in POINTS if h.hits[p] < 5]
        if few or h.hits["commit.accepted"] * 5 < total:
            raise SystemExit(f"kill.py: too few kills at {few or 'commit.accepted'}")
    print("kill.py: ok")


main()
