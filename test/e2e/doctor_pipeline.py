#!/usr/bin/env python3
"""frazil doctor, the troubles of a whole pipeline: deliveries, sources that listen, metrics. As doctor.py: each is staged, and that layer is red and no other.

usage: doctor_pipeline.py [CASE...]   by test/e2e/run.sh, which gives it a broker. Environment: see doctor_world.py."""
import json, os, shutil, socket, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from aws_front import json_error, on, query_error, s3_error
from doctor_world import ACCOUNT, B, REGION, SYSLOG, World, certificate, expect, keys, moto, run, unused_port
from harness import BIN, ROOT, require

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


# ---- deliveries ----

def deliver(w, target, more="", settings=""):
    return (f"{settings}CREATE TEMPORARY TABLE src (id BIGINT, host STRING) WITH ('connector'='kafka','topic'='{SYSLOG}','properties.bootstrap.servers'='{B.address}','scan.startup.mode'='earliest-offset',"
            f"'format'='json','json.ignore-parse-errors'='true');\nCREATE TEMPORARY TABLE target (id BIGINT, host STRING) WITH ({target});\n{more}INSERT INTO target SELECT id, host FROM src;\n")


@case
def archive_to_s3():
    w = World(tables=False)
    path = f"'connector'='firehose-s3','path'='s3://{w.bucket}/archive/!{{timestamp:yyyy}}/','client.region'='{REGION}'"
    errors = path + ",'error.path'='failed/!{firehose:error-output-type}/'"
    r = w.doctor(deliver(w, errors))
    require(r.code == 0 and r.ok and not r.of("warn") and keys(w.bucket) == [], str(r))
    require(f"s3://{w.bucket}/archive/frazil-doctor-" in r.step("doctor.s3.put")["asked"] and "conditional writes" in r.step("doctor.checkpoint-dir")["answer"], str(r))
    require([s["subject"] for s in r.steps if s["code"] == "doctor.s3.put"] == ["default_catalog.default_database.target", "default_catalog.default_database.target, error.path"], str(r))
    denied = s3_error(403, "AccessDenied", "Access Denied")
    w.front.rules[:] = [on("s3", "PutObject", denied, "/archive/")]
    expect(w.doctor(deliver(w, errors)), "doctor.s3.put", "403 AccessDenied", f"s3:PutObject on arn:aws:s3:::{w.bucket}/archive/\\*")
    w.front.rules[:] = [on("s3", "PutObject", denied, "/failed/")]
    r = w.doctor(deliver(w, errors))
    expect(r, "doctor.s3.put", f"arn:aws:s3:::{w.bucket}/failed/\\*")
    require(r.of("fail")[0]["subject"].endswith("error.path"), str(r))
    # what the archive does not need is a warning at most, and no probe stays where it could not be removed
    w.front.rules[:] = [on("s3", "DeleteObject", denied, "/archive/"), on("s3", "GetObject", denied, "/failed/")]
    r = w.doctor(deliver(w, errors))
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.s3.get"] and "begun and given up" in r.step("doctor.s3.put")["answer"] and keys(w.bucket) == [], str(r))
    w.front.rules.append(on("s3", "PostObject", denied, "/archive/"))
    expect(w.doctor(deliver(w, errors)), "doctor.s3.put", "s3:PutObject")
    w.front.rules[:] = [on("s3", "PutObject", s3_error(403, "AccessDenied", "not authorized to perform: kms:GenerateDataKey on resource: arn:aws:kms:x:y:key/1111"), "/archive/")]
    expect(w.doctor(deliver(w, errors)), "doctor.kms", "kms:GenerateDataKey")
    w.front.rules.clear()
    expect(w.doctor(deliver(w, errors.replace(w.bucket, "no-such-bucket-anywhere"))), "doctor.s3.bucket", "NoSuchBucket", "create-bucket --bucket no-such-bucket-anywhere")
    expect(w.doctor(deliver(w, errors), env={"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{unused_port()}"}), "doctor.endpoint.s3", "nothing answers")
    # a store that does not know conditional writes cannot keep the intents
    w.front.rules[:] = [lambda s, o, p, b, h: s3_error(501, "NotImplemented", "A header you provided implies functionality that is not implemented")() if "if-none-match" in h else None]
    expect(w.doctor(deliver(w, errors)), "doctor.checkpoint-dir", "conditional")
    w.front.rules[:] = [lambda s, o, p, b, h: h.pop("if-none-match", None) and (200, [("ETag", '"x"')], b"")]
    expect(w.doctor(deliver(w, errors)), "doctor.checkpoint-dir", "conditional")
    require(keys(w.bucket) == [], f"left behind: {keys(w.bucket)}")
    w.close()


@case
def archive_to_files():
    w = World(tables=False)
    job = deliver(w, f"'connector'='firehose-s3','path'='{w.dir}/archive','error.path'='{w.dir}/failed/'", settings=f"SET 'frazil.state.dir' = '{w.dir}/state';\n")
    before = sorted(os.listdir(w.dir))
    r = w.doctor(job, config=False)
    require(r.code == 0 and not r.of("warn") and "deliveries" in r.step("doctor.state-dir")["answer"], str(r))
    require(sorted(set(os.listdir(w.dir)) - {"job.sql"}) == before, "something was left behind")
    w.write("archive", "a file where the archive should be")
    expect(w.doctor(job, config=False), "doctor.files", "archive")
    os.remove(f"{w.dir}/archive")
    w.write("state", "a file where the state should be")
    r = w.doctor(job, config=False)
    require("doctor.state-dir" in r.red() and set(r.red()) <= {"doctor.state-dir", "doctor.dead-letters"}, str(r)) # dead letters lie there too
    r = w.doctor(deliver(w, "'connector'='blackhole'"), config=False)
    require(r.code == 0 and "nothing outside" in r.step("doctor.delivery")["answer"], str(r))
    require(w.doctor(deliver(w, "'connector'='print'"), config=False).code == 0, "print needs nothing")
    w.close()


def logs_api(w, operation, body):
    moto("POST", "/", json.dumps(body).encode(), {"X-Amz-Target": f"Logs_20140328.{operation}", "Content-Type": "application/x-amz-json-1.1"}, "logs")


@case
def cloudwatch_logs():
    """Group, stream and the right to send are three things; a refusal is told apart from what is missing."""
    w = World(tables=False)
    target = f"'connector'='cloudwatch-logs','log-group'='/frazil/errors','log-stream'='all','client.region'='{REGION}'"
    job = deliver(w, target)
    expect(w.doctor(job), "doctor.logs.group", "there is no log group '/frazil/errors'", "aws logs create-log-group --log-group-name '/frazil/errors'", "auto-create")
    r = w.doctor(deliver(w, target + ",'auto-create'='true'"))
    require(r.code == 0 and "CreateLogGroup" in r.step("doctor.logs.group")["answer"] and "not there yet" in r.step("doctor.logs.put")["answer"], str(r))
    logs_api(w, "CreateLogGroup", {"logGroupName": "/frazil/errors-of-another"})
    expect(w.doctor(job), "doctor.logs.group", "there is no log group '/frazil/errors'")
    logs_api(w, "CreateLogGroup", {"logGroupName": "/frazil/errors"})
    expect(w.doctor(job), "doctor.logs.stream", "there is no log stream 'all'", "aws logs create-log-stream")
    logs_api(w, "CreateLogStream", {"logGroupName": "/frazil/errors", "logStreamName": "all"})
    r = w.doctor(job)
    require(r.code == 0 and r.step("doctor.logs.put")["answer"] == "allowed", str(r))
    made = [o for s, o, p in w.front.seen if s == "logs" and not o.startswith(("Describe", "PutLogEvents"))]
    require(not made, f"CloudWatch Logs was asked to {made}")
    refusal = json_error(400, "AccessDeniedException", f"User: arn:aws:iam::{ACCOUNT}:user/flink is not authorized to perform: logs:PutLogEvents")
    w.front.rules[:] = [on("logs", "PutLogEvents", refusal)]
    expect(w.doctor(job), "doctor.logs.put", "AccessDeniedException", "allow logs:PutLogEvents on arn:aws:logs", "says nothing of whether")
    # who may not describe: what is missing is learned from the put
    w.front.rules[:] = [on("logs", "DescribeLogGroups DescribeLogStreams", refusal)]
    r = w.doctor(job)
    require(r.code == 0 and "cannot be looked at" in r.step("doctor.logs.group")["answer"], str(r))
    expect(w.doctor(job.replace("/frazil/errors", "/frazil/elsewhere")), "doctor.logs.group", "there is no log group '/frazil/elsewhere'")
    expect(w.doctor(job.replace("'all'", "'none'")), "doctor.logs.stream", "there is no log stream 'none'")
    w.front.rules.clear()
    port = unused_port()
    r = w.doctor(deliver(w, target + f",'endpoint'='http://127.0.0.1:{port}'"))
    expect(r, "doctor.endpoint.logs", "nothing answers")
    require("security group" not in str(r), str(r))
    w.front.rules[:] = [on("s3", "PutObject", s3_error(403, "AccessDenied", "Access Denied"), "/refused/")]
    expect(w.doctor(deliver(w, target + f",'error.path'='s3://{w.bucket}/refused/'")), "doctor.s3.put", "s3:PutObject")
    w.close()


@case
def example_of_a_pipeline():
    """The example's one file: forward in, an archive, CloudWatch Logs and two Icebergs out. Nothing is there yet that it makes by itself."""
    w = World(tables=False)
    with open(f"{ROOT}/examples/otel-severity-routing/pipeline.sql") as f:
        sql = (f.read().replace("<YOUR_ICEBERG_BUCKET>", w.bucket).replace("<YOUR_ARCHIVE_BUCKET>", w.bucket).replace("<YOUR_TABLE_BUCKET>", "otel-dev").replace("127.0.0.1:24224", f"127.0.0.1:{unused_port()}")
               .replace("'9464'", f"'{unused_port()}'"))
    expect(w.doctor(sql), "doctor.catalog", "catalog.no-table-bucket", "create-table-bucket --name otel-dev")
    moto("PUT", "/buckets", b'{"name": "otel-dev"}', {"Host": f"s3tables.{REGION}.amazonaws.com", "Content-Type": "application/json"}, "s3tables")
    r = w.doctor(sql)
    require(r.code == 0 and r.ok and {s["code"] for s in r.of("warn")} <= {"doctor.catalog.federation"} and keys(w.bucket) == [], str(r))
    for code in "spool listen listen.auth s3.put logs.group logs.put metrics.port checkpoint-dir staging-dir".split():
        r.step("doctor." + code)
    w.front.rules[:] = [on("s3", "PutObject", s3_error(403, "AccessDenied", "Access Denied"), "/full-logs-errors/")]
    expect(w.doctor(sql), "doctor.s3.put", "full-logs-errors")
    w.close()


# ---- sources that listen ----

def listening(w, options, settings=""):
    body = "body" if "'otlp'" in options else "message"
    return (f"SET 'frazil.state.dir' = '{w.dir}/state';\n{settings}CREATE TEMPORARY TABLE src ({body} STRING) WITH ({options});\n"
            f"CREATE TEMPORARY TABLE target (line STRING) WITH ('connector'='blackhole');\nINSERT INTO target SELECT {body} FROM src;\n")


class Taken:
    """A port that this process has."""

    def __init__(self, kind=socket.SOCK_STREAM):
        self.s = socket.socket(socket.AF_INET, kind)
        self.s.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            self.s.listen()
        self.port = self.s.getsockname()[1]

    def __enter__(self):
        return self.port

    def __exit__(self, *a):
        self.s.close()


@case
def listen_address():
    w = World(tables=False)
    forms = {"forward": "'connector'='forward','listen'='127.0.0.1:%d'", "otlp": "'connector'='otlp','listen'='127.0.0.1:%d'", "syslog": "'connector'='syslog','listen'='127.0.0.1:%d','protocol'='tcp'",
             "firehose": "'connector'='firehose','listen'='127.0.0.1:%d','stream-name'='logs'", "http": "'connector'='http','listen'='127.0.0.1:%d'"}
    r = w.doctor(listening(w, forms["forward"] % unused_port()), config=False)
    require(r.code == 0 and not r.of("warn") and not os.path.exists(f"{w.dir}/state"), str(r))
    for code in ("doctor.spool", "doctor.listen", "doctor.listen.auth"):
        r.step(code)
    with Taken() as port:
        for name, form in forms.items():
            expect(w.doctor(listening(w, form % port), config=False), "doctor.listen", "listen.in-use", f"python.* \\(process {os.getpid()}\\)", "another port")
        expect(w.doctor(listening(w, f"'connector'='otlp','listen'='127.0.0.1:{unused_port()}','grpc.listen'='127.0.0.1:{port}'"), config=False), "doctor.listen", "listen.in-use")
        r = w.doctor(listening(w, f"'connector'='syslog','listen'='127.0.0.1:{port}','protocol'='udp'"), config=False)
        require(r.code == 0 and "UDP" in r.step("doctor.listen")["answer"], f"the TCP port is taken, the UDP one is not\n{r}")
        expect(w.doctor(listening(w, "'connector'='datagen','number-of-rows'='1'", f"SET 'metrics.port' = '{port}';\n"), config=False), "doctor.metrics.port", "listen.in-use", str(os.getpid()))
    with Taken(socket.SOCK_DGRAM) as port:
        expect(w.doctor(listening(w, f"'connector'='syslog','listen'='127.0.0.1:{port}','protocol'='udp'"), config=False), "doctor.listen", "listen.in-use", str(os.getpid()))
    expect(w.doctor(listening(w, "'connector'='http','listen'='192.0.2.1:8088','auth'='token','token'='t'"), config=False), "doctor.listen", "listen.address", "address of this machine")
    port = unused_port()
    expect(w.doctor(listening(w, forms["http"] % port, f"SET 'metrics.port' = '{port}';\n"), config=False), "doctor.metrics.port", "src is to listen on 127.0.0.1:\\d+ too")
    expect(w.doctor(listening(w, forms["http"] % port, f"SET 'metrics.port' = '{unused_port()}';\nSET 'metrics.bind-host' = '0.0.0.0';\n"), config=False), "doctor.metrics.port", "listen.open", "metrics.allow-unauthenticated")
    w.close()


@case
def listen_to_all():
    """Wider than loopback without authentication is refused with the script; who opts out is warned."""
    w = World(tables=False)
    wide = f"'connector'='http','listen'='0.0.0.0:{unused_port()}'"
    expect(w.doctor(listening(w, wide), config=False), "doctor.script", "listen.open", "auth|tls.ca|allow-unauthenticated", exit_code=1)
    r = w.doctor(listening(w, wide + ",'allow-unauthenticated'='true'"), config=False)
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.listen.auth"] and "anybody" in r.of("warn")[0]["answer"] and r.of("warn")[0]["do"], str(r))
    r = w.doctor(listening(w, wide + ",'auth'='token','token'='not/a/secret'"), config=False)
    require(r.code == 0 and not r.of("warn") and "not/a/secret" not in r.text, str(r))
    w.close()


@case
def listen_tls():
    w = World(tables=False)
    (cert, key), (other, other_key) = certificate(), certificate()
    base = f"'connector'='http','listen'='127.0.0.1:{unused_port()}'"
    r = w.doctor(listening(w, f"{base},'tls.cert'='{cert}','tls.key'='{key}'"), config=False)
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.listen.tls"] and "the certificate expires in" in r.of("warn")[0]["answer"], str(r)) # ours are good for two days
    expect(w.doctor(listening(w, f"{base},'tls.cert'='{cert}','tls.key'='{other_key}'"), config=False), "doctor.listen.tls", "listen.tls", "together", "openssl")
    expect(w.doctor(listening(w, f"{base},'tls.cert'='{w.dir}/nowhere.pem','tls.key'='{key}'"), config=False), "doctor.listen.tls", "nowhere.pem")
    expect(w.doctor(listening(w, f"{base},'tls.cert'='{cert}','tls.key'='{key}','tls.ca'='{key}'"), config=False), "doctor.listen.tls", "authorities")
    w.close()


@case
def spool_directory():
    w = World(tables=False)
    job = listening(w, f"'connector'='http','listen'='127.0.0.1:{unused_port()}'")
    r = w.doctor(job.replace("'connector'='http'", "'connector'='http','spool.max-size'='900 tb'"), config=False)
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.spool"] and "senders have to wait" in r.of("warn")[0]["answer"] and "spool.max-size" in r.of("warn")[0]["do"], str(r))
    # the job runs already: its spool is red, and its port is not red too
    p = subprocess.Popen([BIN, "run", w.write("running.sql", job)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=w.env, cwd=w.dir)
    try:
        for line in p.stderr:
            if "source.listening" in line:
                break
        expect(w.doctor(job, config=False), "doctor.spool", "spool.in-use", "runs already")
    finally:
        p.terminate()
        p.communicate(timeout=60)
    require(w.doctor(job, config=False).code == 0, "it has ended")
    shutil.rmtree(f"{w.dir}/state")
    os.mkdir(f"{w.dir}/state")
    w.write("state/spool", "a file where the spool should be")
    expect(w.doctor(job, config=False), "doctor.spool", "spool.directory", "frazil.state.dir")
    w.close()


# ---- metrics ----

@case
def metrics_to_cloudwatch():
    w = World(tables=False)
    on_ = "SET 'metrics.cloudwatch.enabled' = 'true';\n"
    r = w.doctor(deliver(w, "'connector'='blackhole'", settings=on_), config=False)
    require(r.code == 0 and r.step("doctor.metrics.cloudwatch")["answer"] == "allowed" and not r.of("warn"), str(r))
    w.front.rules[:] = [on("monitoring", "PutMetricData", query_error(403, "AccessDenied", "not authorized to perform: cloudwatch:PutMetricData"))]
    r = w.doctor(deliver(w, "'connector'='blackhole'", settings=on_), config=False)
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.metrics.cloudwatch"] and "cloudwatch:PutMetricData" in r.of("warn")[0]["do"], str(r))
    w.front.rules[:] = [on("monitoring", "PutMetricData", query_error(400, "InvalidParameterValue", "The parameter MetricData.member.1.Timestamp must specify a time within the past two weeks."))]
    r = w.doctor(deliver(w, "'connector'='blackhole'", settings=on_), config=False)
    require(r.code == 0 and r.step("doctor.metrics.cloudwatch")["answer"] == "allowed", str(r))
    expect(w.doctor(deliver(w, "'connector'='blackhole'", settings=on_ + f"SET 'metrics.cloudwatch.endpoint' = 'http://127.0.0.1:{unused_port()}';\n"), config=False), "doctor.endpoint.monitoring", "nothing answers")
    expect(w.doctor(deliver(w, "'connector'='blackhole'", settings=on_ + "SET 'metrics.cloudwatch.namespace' = 'AWS/Firehose';\n"), config=False), "doctor.metrics.cloudwatch", "AWS's own")
    w.close()


if __name__ == "__main__":
    run(CASES)
