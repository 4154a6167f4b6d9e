#!/usr/bin/env python3
"""examples/otel-severity-routing as it stands, with only names, ports and intervals filled in, against an imitation of S3, Glue, S3 Tables and CloudWatch Logs.

frazil gen makes the records, fluent-logger (which others wrote) sends them. A kill and a drain later: the archive holds every record of all six severities once, CloudWatch Logs and both
Iceberg tables hold the ERROR and FATAL ones only; the article's own queries say so in frazil sql, and DuckDB and PyIceberg count the same."""
import collections, gzip, json, os, re, socket, subprocess, sys, tempfile, time, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
from harness import BIN, ROOT, Failure, require

EXAMPLE = f"{ROOT}/examples/otel-severity-routing"
PORT = int(os.environ.get("FRAZIL_MOTO_PORT", "29512"))
URL, REGION = f"http://127.0.0.1:{PORT}", "ap-northeast-1"
ENV = dict(os.environ, AWS_ENDPOINT_URL=URL, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION=REGION, AWS_DEFAULT_REGION=REGION, S3_ENDPOINT=URL, AWS_EC2_METADATA_DISABLED="true")
NAMES = {"<YOUR_ICEBERG_BUCKET>": "otel-iceberg", "<YOUR_ARCHIVE_BUCKET>": "otel-archive", "<YOUR_TABLE_BUCKET>": "otel-log-pipeline-dev-s3tables"}
SEND = """
import json, sys
from fluent import sender
s = sender.FluentSender("otel", host="127.0.0.1", port=int(sys.argv[1]), nanosecond_precision=True)
for line in sys.stdin:
    if not s.emit(None, json.loads(line)): raise SystemExit(s.last_error)
s.close()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def client(service):
    import boto3
    return boto3.client(service, endpoint_url=URL, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")


def filled(name, forward, metrics):
    text = open(f"{EXAMPLE}/{name}").read()
    for k, v in NAMES.items():
        text = text.replace(k, v)
    text = text.replace("127.0.0.1:24224", f"127.0.0.1:{forward}").replace("'9464'", f"'{metrics}'").replace("'60 s'", "'500 ms'").replace("'300 s'", "'1 s'")
    path = f"{DIR}/{name}"
    open(path, "w").write(text)
    return path


def start(script, forward):
    log = open(f"{DIR}/job.log", "ab")
    p = subprocess.Popen([BIN, "run", script], env=ENV, cwd=DIR, stdout=log, stderr=log)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        require(p.poll() is None, f"the job ended\n{tail()}")
        try:
            socket.create_connection(("127.0.0.1", forward), 1).close()
            return p
        except OSError:
            time.sleep(0.05)
    raise Failure(f"it does not listen\n{tail()}")


def tail():
    return open(f"{DIR}/job.log", errors="replace").read()[-4000:]


def send(lines, forward):
    py = os.path.expanduser(os.environ.get("FRAZIL_CACHE", "~/.cache/frazil")) + "/forward-python-1/venv/bin/python3"
    p = subprocess.run([py, "-c", SEND, str(forward)], input="".join(lines), text=True, capture_output=True)
    require(p.returncode == 0, f"fluent-logger: {p.stderr}\n{tail()}")


def generate(n, seed):
    return subprocess.run([BIN, "gen", "otel", "--count", str(n), "--seed", str(seed)], check=True, capture_output=True, text=True).stdout.splitlines(keepends=True)


def scrape(metrics):
    for _ in range(200):  # 503 until the job is up
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10).read().decode()
            break
        except OSError:
            time.sleep(0.1)
    else:
        raise Failure(f"no metrics\n{tail()}")
    values = {}
    for line in text.splitlines():
        m = re.fullmatch(r'([a-z0-9_]+)(?:\{(.*)\})? ([0-9]+)', line)
        if m:
            values[m[1], m[2] or ""] = int(m[3])
    return values


def balanced(v):
    fates = collections.defaultdict(dict)
    for (name, labels), n in v.items():
        if name == "frazil_delivery_records":
            m = re.fullmatch(r'delivery="(.*)",state="(.*)"', labels)
            fates[m[1]][m[2]] = n
    for d, f in fates.items():
        require(f["in"] == f["delivered"] + f["filtered"] + f["rejected"] + f["unparseable"] + f["diverted"] + f["by_other"] + f["buffered"], f"{d}: {f}")
    return fates


def archive():
    rows, s3 = [], client("s3")
    for o in s3.list_objects_v2(Bucket=NAMES["<YOUR_ARCHIVE_BUCKET>"], Prefix="full-logs/").get("Contents", []):
        require(re.fullmatch(r"full-logs/\d{4}/\d\d/\d\d/\d\d/[A-Za-z0-9._-]+-1-\d{4}(-\d\d){5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.gz", o["Key"]), f"a key of the archive: {o['Key']}")
        body = gzip.decompress(s3.get_object(Bucket=NAMES["<YOUR_ARCHIVE_BUCKET>"], Key=o["Key"])["Body"].read())
        require(body.endswith(b"\n") and b"\n\n" not in body, "lines of the archive end in one line feed each")
        rows += [json.loads(l) for l in body.splitlines()]
    return rows


def cloudwatch():
    logs, events, token = client("logs"), [], None
    while True:
        a = logs.get_log_events(logGroupName="/otel-log-pipeline-dev/errors", logStreamName="frazil", startFromHead=True, **({"nextToken": token} if token else {}))
        events += [json.loads(e["message"]) for e in a["events"]]
        if not a["events"] or a["nextForwardToken"] == token:
            return events
        token = a["nextForwardToken"]


def judge_tables(wanted):
    out = subprocess.run([BIN, "sql", "-f", f"{DIR}/verify.sql", "--format", "json"], env=ENV, cwd=DIR, capture_output=True, text=True)
    require(out.returncode == 0, f"verify.sql: {out.stderr}")
    counts = [json.loads(l) for l in out.stdout.splitlines() if l.startswith("{")]
    n = len(wanted)
    require(counts == [{"total": n, "error_rows": n, "non_error_rows": 0}] * 2, f"the queries give {counts}, wanted {n}")
    from catalogs import open_catalog
    os.environ.update({k: ENV[k] for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "S3_ENDPOINT")})
    arn = client("s3tables").list_table_buckets()["tableBuckets"][0]["arn"]
    for address, name in ((f"glue:{URL}", "otel_log_pipeline_dev_logs.errors"), (f"s3tables:{URL}#{arn}", "otel_log_pipeline_dev.error_logs")):
        t = open_catalog(address).load_table(name)
        got = collections.Counter(r["span_id"] for r in t.scan().to_arrow().to_pylist())
        require(got == collections.Counter(r["spanId"] for r in wanted), f"{name}: PyIceberg finds {sum(got.values())} rows, wanted {n}")
        p = subprocess.run(["bash", f"{ROOT}/test/peers/readers.sh", "table", "--readers", "pyiceberg,duckdb", t.metadata_location], env=ENV, capture_output=True, text=True)
        require(p.returncode == 0 and "DISAGREE" not in p.stdout and "AGREE" in p.stdout, f"{name}: readers\n{p.stdout}{p.stderr}")


def main():
    subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", "up", f"{DIR}/moto", str(PORT)], check=True, capture_output=True)
    subprocess.run(["bash", f"{ROOT}/test/peers/forward_clients.sh", "up"], check=True, capture_output=True)
    for b in ("<YOUR_ICEBERG_BUCKET>", "<YOUR_ARCHIVE_BUCKET>"):
        client("s3").create_bucket(Bucket=NAMES[b], CreateBucketConfiguration={"LocationConstraint": REGION})
    client("s3tables").create_table_bucket(name=NAMES["<YOUR_TABLE_BUCKET>"])
    forward, metrics = free_port(), free_port()
    script = filled("pipeline.sql", forward, metrics)
    filled("verify.sql", forward, metrics)
    first, second = generate(1500, 1), generate(1500, 2)
    p = start(script, forward)
    names = sorted(scrape(metrics))
    send(first, forward)
    until = time.monotonic() + 30
    while sum(n for (name, _), n in scrape(metrics).items() if name == "firehose_incoming_records") < 1500:  # fluent-logger is not told when its records are safe
        require(time.monotonic() < until, f"the records do not come in\n{tail()}")
        time.sleep(0.1)
    balanced(scrape(metrics))
    time.sleep(0.7)
    p.kill()
    p.wait()
    p = start(script, forward)
    send(second, forward)
    while sum(n for (name, _), n in scrape(metrics).items() if name == "firehose_incoming_records") < 1500:
        require(time.monotonic() < until + 30, f"the records do not come in\n{tail()}")
        time.sleep(0.1)
    after = scrape(metrics)
    balanced(after)
    require(sorted(after) == names, f"series came or went: {set(after) ^ set(names)}")
    d = subprocess.run([BIN, "drain", "--state", f"{DIR}/frazil-state", "--format", "json"], env=ENV, cwd=DIR, capture_output=True, text=True)
    require(d.returncode == 0, f"drain ended with {d.returncode}: {d.stdout}{d.stderr}\n{tail()}")
    require(all(x["left"] == 0 for x in json.loads(d.stdout)["deliveries"]) and p.wait(30) == 0, f"drain: {d.stdout}")
    sent = [json.loads(l) for l in first + second]
    errors = [r for r in sent if r["severityText"] in ("ERROR", "FATAL")]
    kept = archive()
    require(collections.Counter(r["spanId"] for r in kept) == collections.Counter(r["spanId"] for r in sent), f"the archive holds {len(kept)} records, {len(sent)} were sent")
    require(len({r["severityText"] for r in kept}) == 6, "the archive lacks a severity")
    one = {r["spanId"]: r for r in sent}
    require(all(r == one[r["spanId"]] or {k: v for k, v in r.items() if k in ("body", "severityText", "severityNumber", "traceId")} == {k: one[r["spanId"]][k] for k in ("body", "severityText", "severityNumber", "traceId")} for r in kept), "a record of the archive is not what was sent")
    events = cloudwatch()
    require({e["traceId"] for e in events} == {r["traceId"] for r in errors} and {e["severityText"] for e in events} == {"ERROR", "FATAL"}, f"CloudWatch Logs holds {len(events)} events, {len(errors)} were sent")
    judge_tables(errors)
    print(f"ok otel_severity_routing: {len(sent)} records archived once, {len(errors)} errors in both tables and in CloudWatch Logs ({len(events)} events), over a kill and a drain")


with tempfile.TemporaryDirectory(prefix="frazil-otel-", dir=os.environ.get("FRAZIL_TEST_DIR")) as DIR:
    try:
        main()
    except Failure as e:
        raise SystemExit(f"otel_severity_routing.py: FAILED: {e}")
    finally:
        subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", "down", f"{DIR}/moto"], capture_output=True)
