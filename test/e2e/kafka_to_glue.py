#!/usr/bin/env python3
"""The scripts of examples/kafka-to-glue as they stand, with only the bucket's name, the brokers and the checkpoint interval filled in: against a real Kafka and an imitation of Glue and S3.

The job is killed, started again and stopped; PyIceberg and DuckDB then find every good record once. Checkpoint records and a savepoint record stand under their directories on S3."""
import collections, json, os, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
from harness import BIN, ROOT, Broker, Failure, require

PORT = int(os.environ.get("FRAZIL_MOTO_PORT", "29510"))
URL, BUCKET, REGION = f"http://127.0.0.1:{PORT}", "iceberg-logs", "ap-northeast-1"
ENV = dict(os.environ, AWS_ENDPOINT_URL=URL, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION=REGION, AWS_DEFAULT_REGION=REGION, S3_ENDPOINT=URL,
           AWS_EC2_METADATA_DISABLED="true")


def moto(what, *args):
    p = subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", what, f"{DIR}/moto", *map(str, args)], capture_output=True, text=True)
    require(p.returncode == 0, f"moto.sh {what}: {p.stdout}{p.stderr}")


def client(service):
    import boto3
    return boto3.client(service, endpoint_url=URL, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")


def filled(name, broker, topics):
    text = open(f"{ROOT}/examples/kafka-to-glue/{name}").read().replace("<YOUR_ICEBERG_BUCKET>", BUCKET).replace("kafka1:9092,kafka2:9092,kafka3:9092", broker.address)
    text = text.replace("interval: 5 min", "interval: 500 ms").replace("min-pause: 30 s", "min-pause: 0 s")
    for t in topics:
        text = text.replace(f"'topic' = '{t}'", f"'topic' = '{topics[t]}'")
    path = f"{DIR}/{name}"
    open(path, "w").write(text)
    return path


def frazil(*args, code=0):
    p = subprocess.run([BIN, *args], env=ENV, cwd=DIR, capture_output=True, text=True, timeout=90)
    require(p.returncode == code, f"frazil {' '.join(args)}: code {p.returncode}, wanted {code}\n{p.stdout[-2000:]}{p.stderr[-3000:]}")
    return p.stdout


def start(script, config):
    log = open(f"{DIR}/job.log", "ab")
    return subprocess.Popen([BIN, "run", script, "--config", config], env=ENV, cwd=DIR, stdout=log, stderr=log)


def records(broker, topic, first, n):
    """n lines for the topic; returns the messages of those that must arrive."""
    good = []
    for p in range(2):
        lines = []
        for i in range(first + p * n, first + p * n + n):
            if i % 50 == 7: lines.append("{not json")
            elif i % 50 == 9: lines.append(json.dumps({"ts": "2026-09-16T12:34:56+09:00", "src_host": " ", "program": "x", "message": f"m{i}"}))
            else:
                lines.append(json.dumps({"ts": f"2026-09-{16 + i % 2}T12:34:{i % 60:02}+09:00", "src_host": f" raspi{i % 4}={i % 3} ", "program": "sshd", "message": f"m{i}"}))
                good.append(f"m{i}")
        broker.produce(topic, p, lines)
    return good


def count(init, table):
    out = frazil("sql", "-i", init, "--format", "json", "-e", f"SELECT COUNT(*) AS n FROM glue_prod.logs.{table}")
    return json.loads(out.strip().split("\n")[-1])["n"]


def wait_rows(job, init, table, n):
    until = time.monotonic() + 60
    while count(init, table) < n:
        require(job.poll() is None, f"the job ended\n{open(f'{DIR}/job.log', errors='replace').read()[-4000:]}")
        require(time.monotonic() < until, f"{table}: {count(init, table)} rows, waiting for {n}\n{open(f'{DIR}/job.log', errors='replace').read()[-4000:]}")
        time.sleep(0.3)


def judge(table, want):
    from catalogs import open_catalog
    os.environ.update({k: ENV[k] for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "S3_ENDPOINT")})
    t = open_catalog(f"glue:{URL}").load_table(f"logs.{table}")
    rows = t.scan().to_arrow().to_pylist()
    got = collections.Counter(r["msg"] for r in rows)
    require(got == collections.Counter(want), f"{table}: PyIceberg finds {len(rows)} rows, wanted {len(want)}; {list((got - collections.Counter(want)))[:5]} too many, {list((collections.Counter(want) - got))[:5]} missing")
    require(all(r["host"].startswith("raspi") and r["hr"] == 12 and str(r["dt"])[:7] == "2026-09" and r["ts_raw"][:19] == r["ts"].isoformat()[:19] for r in rows), f"{table}: wrong values")
    live = [f.file.file_path for f in t.scan().plan_files()]
    require(len(live) == len(set(live)), f"{table}: a data file is live twice")
    p = subprocess.run(["bash", f"{ROOT}/test/peers/readers.sh", "table", "--readers", "pyiceberg,duckdb", t.metadata_location], env=ENV, capture_output=True, text=True)
    require(p.returncode == 0 and "DISAGREE" not in p.stdout and "AGREE" in p.stdout, f"{table}: readers\n{p.stdout}{p.stderr}")
    entry = client("glue").get_table(DatabaseName="logs", Name=table)["Table"]
    require(entry["Parameters"]["metadata_location"] == t.metadata_location and entry["StorageDescriptor"]["Location"] == f"s3://{BUCKET}/warehouse/logs/{table}", f"{table}: entry {entry}")


def main():
    broker = Broker()
    topics = {t: broker.topic(f"{t}-{os.getpid()}", 2) for t in ("syslog", "authlog")}
    moto("up", PORT)
    client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    check, create, job, config = (filled(f, broker, topics) for f in ("check_glue.sql", "create_tables.sql", "kafka_to_glue.sql", "config.yaml"))
    init = f"{DIR}/init.sql"
    open(init, "w").write(open(check).read().split("SHOW")[0])
    require("logs" not in frazil("run", check), "there is a database before it was made")
    frazil("run", create)
    frazil("run", create)  # IF NOT EXISTS
    require("logs" in frazil("run", check), "SHOW DATABASES does not show the database")
    want = {t: records(broker, topics[t], 0, 400) for t in topics}
    p = start(job, config)
    for t in topics:
        wait_rows(p, init, f"{t}_events", len(want[t]))
    for t in topics:
        want[t] += records(broker, topics[t], 10000, 300)
    time.sleep(0.4)
    p.kill()
    p.wait()
    p = start(job, config)
    for t in topics:
        wait_rows(p, init, f"{t}_events", len(want[t]))
    p.send_signal(signal.SIGTERM)
    require(p.wait(60) == 0, f"the stopped job ended with {p.returncode}\n{open(f'{DIR}/job.log', errors='replace').read()[-4000:]}")
    for t in topics:
        judge(f"{t}_events", want[t])
        require("audit passed" in frazil("audit", "-i", init, f"glue_prod.logs.{t}_events", "--files"), "audit")
    keys = [o["Key"] for o in client("s3").list_objects_v2(Bucket=BUCKET, Prefix="frazil/")["Contents"]]
    kept = [k for k in keys if k.startswith("frazil/checkpoints/")]
    saved = [k for k in keys if k.startswith("frazil/savepoints/")]
    require(1 <= len(kept) <= 6 and len(saved) == 1, f"checkpoint and savepoint records: {keys}")
    told = json.loads(client("s3").get_object(Bucket=BUCKET, Key=saved[0])["Body"].read())
    ends = {(s["table"], q["partition"]): q["position"] for s in told["sinks"] for q in s["positions"]}
    require(ends == {(f"glue_prod.logs.{t}_events", p): 700 for t in topics for p in range(2)}, f"the savepoint record says {ends}")
    require("Credential=" not in open(f"{DIR}/job.log").read(), "an Authorization header in the log")
    print(f"ok kafka_to_glue: {sum(map(len, want.values()))} records, each once, over a kill and a stop; records of checkpoints in {len(kept)} objects")


with tempfile.TemporaryDirectory(prefix="frazil-glue-", dir=os.environ.get("FRAZIL_TEST_DIR")) as DIR:
    try:
        main()
    except Failure as e:
        raise SystemExit(f"kafka_to_glue.py: FAILED: {e}")
    finally:
        subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", "down", f"{DIR}/moto"], capture_output=True)
