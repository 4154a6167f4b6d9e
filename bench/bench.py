#!/usr/bin/env python3
"""The benchmark of the main job: 3 M syslog and 0.9 M authlog records from a local broker into two Iceberg tables, checkpoints each 10 s.

Prints, for frazil and for the floor program (floor.c: consume the same messages, compress their bytes) of the same run: rows per CPU-second, rows per second,
peak resident size, bytes and files written; and their ratios. Absolute figures are noise between machines, ratios are not. --flink also runs the real Flink on the
same topics (2.4 GB of memory, and a download at the first time)."""
import argparse, json, os, resource, subprocess, sys, threading, time

SOURCES = {"syslog": (7, 1_000_000), "authlog": (8, 300_000)}
COLUMNS = "ts_raw STRING, ts TIMESTAMP(6), host STRING, program STRING, msg STRING, dt DATE, hr INT"


def say(*a):
    print(*a, flush=True)


def watch(pid, out):
    while True:
        try:
            for line in open(f"/proc/{pid}/status"):
                if line.startswith("VmHWM"):
                    out[0] = max(out[0], int(line.split()[1]))
        except OSError:
            return
        time.sleep(0.02)


def run(cmd, **kw):
    """(CPU seconds, wall seconds, VmHWM in KiB, stdout) of one command."""
    began, hwm = time.monotonic(), [0]
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, **kw)
    t = threading.Thread(target=watch, args=(p.pid, hwm))
    t.start()
    out = p.stdout.read()
    _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    t.join()
    if p.returncode:
        sys.exit(f"bench: {cmd[0]} ended with {p.returncode}")
    return use.ru_utime + use.ru_stime, wall, hwm[0], out


def prepare(a):
    kafka = os.path.join(a.dir, "kafka")
    done = os.path.join(a.dir, f"produced-{a.scale}")
    if os.path.exists(done):
        return
    for topic, (seed, count) in SOURCES.items():
        n = int(count * a.scale)
        path = os.path.join(a.dir, f"{topic}.ndjson")
        with open(path, "w") as f:
            subprocess.run([sys.executable, "bench/gen_logs.py", topic, str(n), "--seed", str(seed)], stdout=f, check=True)
        subprocess.run(["bash", a.kafka_sh, "topic", kafka, topic, str(a.partitions)], check=True, stdout=subprocess.DEVNULL)
        for _ in range(3):
            subprocess.run(["bash", a.kafka_sh, "produce", kafka, topic, path], check=True, stdout=subprocess.DEVNULL)
    open(done, "w").close()


def script(a, work, store=None):
    """store: warehouse and options of the store, default local files."""
    warehouse, options = store or (f"file://{work}/wh", "")
    catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{work}/catalog.db','warehouse'='{warehouse}'{options});"
    text = [catalog, "CREATE DATABASE IF NOT EXISTS c.logs;", "SET 'execution.checkpointing.interval' = '10 s';", "SET 'table.local-time-zone' = 'Asia/Tokyo';", "SET 'pipeline.name' = 'bench';"]
    inserts = []
    for t in SOURCES:
        text.append(f"CREATE TABLE IF NOT EXISTS c.logs.{t}_events ({COLUMNS}) PARTITIONED BY (dt, host) WITH ('format-version'='2','write.distribution-mode'='hash','write.parquet.compression-codec'='zstd');")
        text.append(f"CREATE TEMPORARY TABLE {t}_json (ts STRING, src_host STRING, program STRING, message STRING) WITH ('connector'='kafka','topic'='{t}','properties.bootstrap.servers'='{a.broker}',"
                    "'properties.group.id'='bench','scan.startup.mode'='earliest-offset','scan.bounded.mode'='latest-offset','format'='json','json.ignore-parse-errors'='true');")
        inserts.append(f"INSERT INTO c.logs.{t}_events SELECT ts AS ts_raw, CAST(TO_TIMESTAMP(SUBSTRING(ts, 1, 19), 'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)), TRIM(src_host), program, message, "
                       f"CAST(SUBSTRING(ts, 1, 10) AS DATE), CAST(SUBSTRING(ts, 12, 2) AS INT) FROM {t}_json WHERE src_host IS NOT NULL AND TRIM(src_host) <> '' AND ts IS NOT NULL;")
    path = os.path.join(work, "job.sql")
    open(path, "w").write("\n".join([*text, "STATEMENT SET BEGIN", *inserts, "END;"]))
    open(os.path.join(work, "init.sql"), "w").write(catalog)
    return path


def frazil(a, rows, store=None, kept=None):
    """kept: where the data files can be counted; default: the warehouse."""
    work = os.path.join(a.dir, "frazil-s3" if store else "frazil")
    subprocess.run(["rm", "-rf", work])
    os.makedirs(work)
    cpu, wall, hwm, _ = run([os.path.abspath("build/frazil"), "run", script(a, work, store)], cwd=work, stderr=open(os.path.join(work, "log"), "w"))
    out = subprocess.run(["build/frazil", "sql", "-i", f"{work}/init.sql", "--format", "json", "-e",
                          "SELECT COUNT(*) AS n FROM c.logs.syslog_events; SELECT COUNT(*) AS n FROM c.logs.authlog_events"], check=True, capture_output=True, text=True).stdout
    got = sum(json.loads(l)["n"] for l in out.split("\n") if l.startswith("{"))
    if got != rows:
        sys.exit(f"bench: {got} rows in the tables instead of {rows}")
    files = [os.path.join(d, f) for d, _, fs in os.walk(kept or os.path.join(work, "wh")) for f in fs if f.endswith(".parquet")]
    return dict(cpu_s=cpu, wall_s=wall, vmhwm_mb=hwm / 1024, per_cpu_s=rows / cpu, per_s=rows / wall, files=len(files), mb=sum(map(os.path.getsize, files)) / 1e6)


def floor(a):
    _, _, _, out = run(["build/bench/floor", a.broker, *SOURCES])
    r = {k: float(v) for k, v in (l.split() for l in out.splitlines())}
    return dict(cpu_s=r["cpu_s"], wall_s=r["wall_s"], vmhwm_mb=r["vmhwm_kb"] / 1024, per_cpu_s=r["per_cpu_s"], per_s=r["per_s"], files=0, mb=r["compressed"] / 1e6), int(r["messages"])


def flink(a, rows):
    """The real Flink 2.0.1 with the same script, into a Hadoop catalog of local files; CPU time is that of its TaskManager alone."""
    peer, work = ["bash", "test/peers/flink.sh"], os.path.join(a.dir, "flink")
    subprocess.run(["rm", "-rf", work])
    os.makedirs(work)
    text = open(script(a, work)).read().split("\n")
    text[0] = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{work}/wh');"
    text = [l.replace("STATEMENT SET BEGIN", "EXECUTE STATEMENT SET BEGIN") for l in text if "pipeline.name" not in l and "checkpointing.interval" not in l]
    open(f"{work}/flink.sql", "w").write("\n".join(text))
    task_manager = lambda: next(l.split() for l in subprocess.run([*peer, "cpu", f"{work}/cluster"], check=True, capture_output=True, text=True).stdout.splitlines() if l.startswith("taskmanager"))
    subprocess.run([*peer, "up", f"{work}/cluster"], check=True, stdout=subprocess.DEVNULL)
    try:
        before, began = float(task_manager()[1]), time.monotonic()
        subprocess.run([*peer, "sql", f"{work}/cluster", f"{work}/flink.sql"], check=True, stdout=subprocess.DEVNULL)
        wall, (_, cpu, kb) = time.monotonic() - began, task_manager()
    finally:
        subprocess.run([*peer, "down", f"{work}/cluster"], stdout=subprocess.DEVNULL)
    files = [os.path.join(d, f) for d, _, fs in os.walk(f"{work}/wh") for f in fs if f.endswith(".parquet")]
    cpu = float(cpu) - before
    return dict(cpu_s=cpu, wall_s=wall, vmhwm_mb=int(kb) / 1024, per_cpu_s=rows / cpu, per_s=rows / wall, files=len(files), mb=sum(map(os.path.getsize, files)) / 1e6)


def on_s3(a, rows):
    """The same job with its warehouse on a local S3 server that verifies signatures; the server's own CPU time does not count."""
    peer, home = ["bash", "test/peers/s3verify.sh"], os.path.join(a.dir, "s3")
    bucket = f"bench{time.time_ns()}"
    subprocess.run([*peer, "up", home, str(a.s3_port)], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "S3_KEEPALIVE": "1"})
    try:
        subprocess.run([*peer, "bucket", home, bucket], check=True, stdout=subprocess.DEVNULL)
        e = dict(l.removeprefix("export ").split("=", 1) for l in subprocess.run([*peer, "env", home], check=True, capture_output=True, text=True).stdout.split("\n") if "=" in l)
        e = {k: v.strip("'\"") for k, v in e.items()}
        options = "".join(f",'{k}'='{v}'" for k, v in {"s3.endpoint": e["S3_ENDPOINT"], "s3.access-key-id": e["AWS_ACCESS_KEY_ID"], "s3.secret-access-key": e["AWS_SECRET_ACCESS_KEY"],
                                                       "client.region": e["AWS_REGION"], "s3.path-style-access": "true"}.items())
        return frazil(a, rows, (f"s3://{bucket}/wh", options), os.path.join(home, "data", bucket))
    finally:
        subprocess.run([*peer, "down", home], stdout=subprocess.DEVNULL)


def main():
    ap = argparse.ArgumentParser()
    for o in ("--dir", "--kafka-sh", "--broker"):
        ap.add_argument(o, required=True)
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--partitions", type=int, default=4)
    ap.add_argument("--runs", type=int, default=1)
    ap.add_argument("--out", help="append one JSON line a run")
    ap.add_argument("--flink", action="store_true")
    ap.add_argument("--s3", action="store_true", help="also into a local S3 server")
    ap.add_argument("--s3-port", type=int, default=29296)
    a = ap.parse_args()
    prepare(a)
    for i in range(a.runs):
        f, rows = floor(a)
        z = frazil(a, rows)
        say(f"{'':10}{'rows/CPU-s':>12}{'rows/s':>12}{'CPU s':>9}{'wall s':>9}{'VmHWM MB':>10}{'files':>7}{'MB':>8}")
        x = flink(a, rows) if a.flink else None
        s = on_s3(a, rows) if a.s3 else None
        for name, r in (("floor", f), ("frazil", z), *([("flink", x)] if x else []), *([("on S3", s)] if s else [])):
            say(f"{name:10}{r['per_cpu_s']:12,.0f}{r['per_s']:12,.0f}{r['cpu_s']:9.2f}{r['wall_s']:9.2f}{r['vmhwm_mb']:10.1f}{r['files']:7}{r['mb']:8.1f}")
        say(f"rows {rows:,}; frazil / floor: {z['per_cpu_s'] / f['per_cpu_s']:.2f} of its rows per CPU-second"
            + (f"; frazil / flink: {z['per_cpu_s'] / x['per_cpu_s']:.1f} times its rows per CPU-second, {z['vmhwm_mb'] / x['vmhwm_mb']:.3f} of its memory" if x else "")
            + (f"; S3 / local files: {s['cpu_s'] / z['cpu_s']:.2f} of the CPU per row" if s else ""))
        if a.out:
            with open(a.out, "a") as o:
                o.write(json.dumps({"rows": rows, "floor": f, "frazil": z, "flink": x, "s3": s, "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()}) + "\n")


main()
