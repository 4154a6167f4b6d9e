#!/usr/bin/env python3
"""The benchmark of the listening inputs: 600,000 log records of some 240 bytes into a spool, and from there, as in examples/otel-severity-routing, all of them to a gzip archive and ERROR and FATAL (one of three) to
two Iceberg tables. Archive, tables and catalog (SQLite) are local files.

For forward (packed chunks of 1,000, acknowledged), the same with gzip, and OTLP/HTTP with protobuf it prints records per CPU-second (user and system time of the whole process, from its start to the end of a drain),
beside the same of a floor (floor_inputs.c) that gets the same messages, the time to the acknowledgement (with as much as it takes, and at a rate of 50,000 records a second), and VmHWM. Two more cases: 1,000
connections that each have an unfinished message at the same time, and one delivery whose store never answers. What is delivered is counted each time. The load generator's CPU time counts for nobody."""
import argparse, atexit, glob, gzip, json, os, re, shutil, signal, socket, subprocess, sys, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
B = os.path.join(ROOT, os.environ.get("FRAZIL_BUILD", "build"))
KINDS = ("forward", "forward-gzip", "otlp")
LIMIT_MB = 128
COLUMNS = "`timestamp` STRING, severityText STRING, severityNumber INT, body STRING, resource MAP<STRING, STRING>, attributes MAP<STRING, STRING>, traceId STRING, spanId STRING"
OTLP_COLUMNS = "time_unix_nano TIMESTAMP_LTZ(6), severity_text STRING, severity_number INT, body STRING, resource_attributes MAP<STRING, STRING>, attributes MAP<STRING, STRING>, trace_id STRING, span_id STRING"
ERRORS = "ts TIMESTAMP(3), severity_text STRING, severity_number INT, body STRING, service STRING, trace_id STRING, span_id STRING"
ROUTE = {
    "forward": "SELECT TO_TIMESTAMP(SUBSTRING(`timestamp`, 1, 23), 'yyyy-MM-dd''T''HH:mm:ss.SSS'), severityText, severityNumber, body, resource['service.name'], traceId, spanId FROM logs_in WHERE severityText IN ('ERROR', 'FATAL')",
    "otlp": "SELECT CAST(time_unix_nano AS TIMESTAMP(3)), severity_text, severity_number, body, resource_attributes['service.name'], trace_id, span_id FROM logs_in WHERE severity_text IN ('ERROR', 'FATAL')"}


def say(*a):
    print(*a, flush=True)


def fail(what):
    sys.exit(f"bench: {what}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def archive(name, columns, path, options=""):
    return f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector'='firehose-s3','path'='{path}','buffer.interval'='300 s','buffer.size'='5 MiB','compression'='GZIP'{options});"


class Job:
    """frazil with the pipeline, its spool and its targets in a directory of its own."""

    def __init__(self, a, kind, stuck=None):
        self.dir = os.path.join(a.dir, "job")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.port, self.base = free_port(), "otlp" if kind == "otlp" else "forward"
        columns = OTLP_COLUMNS if self.base == "otlp" else COLUMNS
        self.catalog = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{self.dir}/catalog.db','warehouse'='file://{self.dir}/wh');"
        text = ["SET 'pipeline.name' = 'bench';", f"SET 'frazil.state.dir' = '{self.dir}/state';", f"SET 'execution.checkpointing.interval' = '{'1 s' if stuck else '60 s'}';", self.catalog,
                "CREATE DATABASE IF NOT EXISTS c.logs;", *(f"CREATE TABLE IF NOT EXISTS c.logs.{t} ({ERRORS}) WITH ('format-version'='2');" for t in ("errors", "error_logs")),
                f"CREATE TEMPORARY TABLE logs_in ({columns}) WITH ('connector'='{self.base}','listen'='127.0.0.1:{self.port}');", archive("archive", columns, f"file://{self.dir}/archive/")]
        if stuck:
            text.append(archive("stuck", columns, "s3://nobody/answers/", f",'s3.endpoint'='http://127.0.0.1:{stuck}','s3.access-key-id'='x','s3.secret-access-key'='x','client.region'='us-east-1','s3.path-style-access'='true'"))
        text += ["STATEMENT SET BEGIN", "INSERT INTO archive SELECT * FROM logs_in;", *(["INSERT INTO stuck SELECT * FROM logs_in;"] if stuck else []),
                 *(f"INSERT INTO c.logs.{t} {ROUTE[self.base]};" for t in ("errors", "error_logs")), "END;"]
        path = os.path.join(self.dir, "job.sql")
        open(path, "w").write("\n".join(text))
        self.log = os.path.join(self.dir, "log")
        self.hwm = self.cpu = 0
        self.p = subprocess.Popen([*a.under, f"{B}/frazil", "run", path], cwd=self.dir, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": self.dir})
        atexit.register(lambda p: p.poll() is None and p.kill(), self.p)
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        until = time.monotonic() + 60
        while b"source.listening" not in open(self.log, "rb").read():
            if self.p.poll() is not None or time.monotonic() > until:
                fail("frazil does not listen\n" + self.tail())
            time.sleep(0.02)

    def tail(self):
        return open(self.log, errors="replace").read()[-3000:]

    def _watch(self):
        try:
            while True:
                status = open(f"/proc/{self.p.pid}/status").read()
                self.hwm = max(self.hwm, int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024)
                time.sleep(0.02)
        except (OSError, TypeError):
            return

    def end(self, how=signal.SIGUSR1):
        """Drains it, or kills it; its CPU time."""
        self.p.send_signal(how)
        _, status, use = os.wait4(self.p.pid, 0)
        self.p.returncode = os.waitstatus_to_exitcode(status)
        self.watcher.join()
        if how == signal.SIGUSR1 and self.p.returncode:
            fail(f"frazil ended with {self.p.returncode}\n" + self.tail())
        self.cpu = use.ru_utime + use.ru_stime
        return self.cpu

    def counts(self):
        """Lines and bytes of lines in the archive, its bytes, rows of both tables."""
        lines = raw = size = 0
        for f in glob.glob(f"{self.dir}/archive/**/*.gz", recursive=True):
            data = gzip.decompress(open(f, "rb").read())
            lines, raw, size = lines + data.count(b"\n"), raw + len(data), size + os.path.getsize(f)
        out = subprocess.run([f"{B}/frazil", "sql", "--format", "json", "-e", self.catalog + "SELECT COUNT(*) AS n FROM c.logs.errors; SELECT COUNT(*) AS n FROM c.logs.error_logs"], check=True, capture_output=True, text=True).stdout
        return lines, raw, size, [json.loads(l)["n"] for l in out.splitlines() if l.startswith("{")]

    def judge(self, records):
        lines, raw, size, rows = self.counts()
        if lines != records or len(set(rows)) != 1 or not records * 0.3 < rows[0] < records * 0.37:
            fail(f"{lines} lines in the archive, {rows} rows in the tables, of {records} records\n" + self.tail())
        parquet = sum(os.path.getsize(f) for f in glob.glob(f"{self.dir}/wh/**/*.parquet", recursive=True))
        return dict(raw_mb=raw / 1e6, gz_mb=size / 1e6, parquet_mb=parquet / 1e6, error_rows=rows[0])


def load(kind, port, records, **more):
    args = [x for k, v in more.items() for x in ([f"--{k}"] if v is True else [f"--{k}", str(v)])]
    p = subprocess.run([f"{B}/bench/load", kind, str(port), "--records", str(records), *args], capture_output=True, text=True)
    if p.returncode:
        fail(f"load: {p.stderr}")
    return json.loads(p.stdout)


def conns(kind):
    return 16 if kind == "otlp" else 4


def floor(a, kind):
    p = subprocess.Popen([f"{B}/bench/floor_inputs", os.path.join(a.dir, "floor.out")], stdout=subprocess.PIPE, text=True)
    load(kind, int(p.stdout.readline()), a.records, connections=conns(kind))
    r = json.loads(p.stdout.read())
    if p.wait() or r["records"] != a.records:
        fail(f"the floor has {r['records']} records")
    return dict(cpu_s=r["cpu_s"], per_cpu_s=a.records / r["cpu_s"], vmhwm_mb=r["vmhwm_kb"] / 1024)


def throughput(a, kind):
    job = Job(a, kind)
    l = load(kind, job.port, a.records, connections=conns(kind))
    began = time.monotonic()
    cpu = job.end()
    return dict(kind=kind, cpu_s=cpu, per_cpu_s=a.records / cpu, per_s=a.records / l["wall_s"], drain_s=time.monotonic() - began, vmhwm_mb=job.hwm, record_bytes=l["json_bytes"] / a.records, load_cpu_s=l["cpu_s"],
                p50_ms=l["p50_ms"], p99_ms=l["p99_ms"], max_ms=l["max_ms"], **job.judge(a.records))


def paced(a, kind):
    """At a steady 50,000 records a second, in chunks of 100."""
    job, n = Job(a, kind), min(a.records, 250_000)
    l = load(kind, job.port, n, connections=conns(kind), chunk=100, rate=50_000)
    job.end()
    job.judge(n)
    return {f"paced_{k}": l[k] for k in ("p50_ms", "p99_ms", "max_ms")}


def case_kind(a, kind):
    f, r = floor(a, kind), throughput(a, kind)
    r.update(paced(a, kind), floor=f, of_floor=r["per_cpu_s"] / f["per_cpu_s"])
    say(f"{kind:13}{r['per_cpu_s']:10,.0f} records/CPU-s ({r['of_floor']:.2f} of the floor's {f['per_cpu_s']:,.0f}); {r['per_s']:,.0f} records/s taken in; VmHWM {r['vmhwm_mb']:.0f} MB; acknowledged after "
        f"{r['p50_ms']:.1f} ms (p50), {r['p99_ms']:.1f} ms (p99), at 50,000/s {r['paced_p50_ms']:.1f} and {r['paced_p99_ms']:.1f} ms")
    say(f"{'':13}records of {r['record_bytes']:.0f} bytes; archive {r['raw_mb']:.0f} MB in {r['gz_mb']:.1f} MB; tables {r['error_rows']:,} rows each in {r['parquet_mb']:.1f} MB; load generator {r['load_cpu_s']:.2f} CPU-s")
    return r


def case_connections(a, kind="forward", n=1000):
    job = Job(a, kind)
    l = load(kind, job.port, max(a.records, n * 400), connections=n, chunk=200, together=True)
    cpu = job.end()
    job.judge(max(a.records, n * 400))
    r = dict(kind=f"{n} connections", cpu_s=cpu, per_cpu_s=l["records"] / cpu, vmhwm_mb=job.hwm, p50_ms=l["p50_ms"], p99_ms=l["p99_ms"], max_ms=l["max_ms"], bounded=job.hwm < LIMIT_MB)
    say(f"{n} connections at once, each with an unfinished message of 200 records: {r['per_cpu_s']:,.0f} records/CPU-s; VmHWM {r['vmhwm_mb']:.0f} MB of {LIMIT_MB}; acknowledged after {r['p50_ms']:.0f} ms (p50), {r['p99_ms']:.0f} ms (p99)")
    return r


def case_stuck(a, kind="forward"):
    """A server that takes connections and never answers, as the store of one of two archives."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(64)
    job = Job(a, kind, s.getsockname()[1])
    l = load(kind, job.port, a.records, connections=conns(kind))
    began, until = time.monotonic(), time.monotonic() + 120
    while (c := job.counts())[3] != [c[3][0]] * 2 or c[3][0] < a.records * 0.3 or c[0] < a.records - 30_000:  # 5 MiB, some 21,000 lines, may wait for more
        if job.p.poll() is not None or time.monotonic() > until:
            fail(f"beside a stuck delivery the others have {c}\n" + job.tail())
        time.sleep(0.2)
    waited = time.monotonic() - began
    time.sleep(2)
    cpu = job.end(signal.SIGKILL)
    s.close()
    r = dict(kind="stuck delivery", cpu_s=cpu, vmhwm_mb=job.hwm, p50_ms=l["p50_ms"], p99_ms=l["p99_ms"], max_ms=l["max_ms"], others_s=waited, archive_lines=c[0], error_rows=c[3][0], bounded=job.hwm < LIMIT_MB)
    say(f"one of four deliveries stuck: the others have all {waited:.1f} s after the last acknowledgement (archive {c[0]:,} lines and the rest in its buffer, tables {c[3][0]:,} rows each); VmHWM {job.hwm:.0f} MB of {LIMIT_MB}; acknowledged after "
        f"{r['p50_ms']:.1f} ms (p50), {r['p99_ms']:.1f} ms (p99); {cpu:.2f} CPU-s")
    return r


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dir", required=True, help="a directory to work in, on a real disk")
    ap.add_argument("--records", type=int, default=600_000)
    ap.add_argument("--runs", type=int, default=1)
    ap.add_argument("--only", help="some of: forward,forward-gzip,otlp,connections,stuck")
    ap.add_argument("--out", help="append one JSON line a run")
    ap.add_argument("--under", default="", help="command that frazil is run under, such as 'perf record -g'")
    a = ap.parse_args()
    a.under = a.under.split()
    wanted = a.only.split(",") if a.only else [*KINDS, "connections", "stuck"]
    os.makedirs(a.dir, exist_ok=True)
    for _ in range(a.runs):
        results = [case_kind(a, k) for k in KINDS if k in wanted]
        if "connections" in wanted:
            results.append(case_connections(a))
        if "stuck" in wanted:
            results.append(case_stuck(a))
        if a.out:
            commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
            with open(a.out, "a") as o:
                o.write(json.dumps({"records": a.records, "commit": commit, "cases": results}) + "\n")
    if any(not r.get("bounded", True) for r in results):
        fail(f"more than {LIMIT_MB} MB")


if __name__ == "__main__":
    main()
