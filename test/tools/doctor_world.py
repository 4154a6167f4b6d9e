"""What the doctor's tests share: the job of a published how-to as the example has it, an AWS of their own to stage troubles in, and the doctor's report.

Environment: FRAZIL_MOTO_PORT (26200), FRAZIL_DOCTOR_PORTS (26210: the first of some thirty), and those of harness.py."""
import http.client, json, os, re, shutil, socket, subprocess, tempfile

from aws_front import Front
from harness import BIN, ROOT, Broker, Failure, main, require

B = Broker()
MOTO = int(os.environ.get("FRAZIL_MOTO_PORT", "26200"))
PORTS = iter(range(int(os.environ.get("FRAZIL_DOCTOR_PORTS", "26210")), 65000))
DIR = tempfile.mkdtemp(prefix="frazil-doctor-", dir=os.environ.get("FRAZIL_TEST_DIR"))
ACCOUNT = "123456789012"
REGION = "ap-northeast-1"
SYSLOG, AUTHLOG = f"doctor-syslog-{os.getpid()}", f"doctor-authlog-{os.getpid()}"


# ---- the job ----

EXAMPLE = os.path.join(ROOT, "examples/kafka-to-glue")


def example(name):
    with open(os.path.join(EXAMPLE, name)) as f:
        return f.read()


def article(bucket, catalog="", prelude=""):
    """The job of the how-to as the example has it, but for the bucket, the brokers and the topics' names (one broker serves all cases)."""
    text = example("kafka_to_glue.sql").replace("SET 'pipeline.name' = 'aws-syslog-authlog';\n", "")
    require(text.count("\n  'client.region'") == 1 and text.count("\nCREATE TEMPORARY") == 2, "the example has changed")
    text = text.replace("\n  'client.region'", f"{catalog}\n  'client.region'").replace("\nCREATE TEMPORARY", f"{prelude}\nCREATE TEMPORARY", 1)
    return (text.replace("<YOUR_ICEBERG_BUCKET>", bucket).replace("kafka1:9092,kafka2:9092,kafka3:9092", B.address).replace("'syslog'", f"'{SYSLOG}'").replace("'authlog'", f"'{AUTHLOG}'"))


TABLES = example("create_tables.sql").partition(");")[2]  # without CREATE CATALOG


class Report:
    def __init__(self, p):
        self.code, self.text, self.err = p.returncode, p.stdout, p.stderr
        try:
            j = json.loads(p.stdout)
        except ValueError:
            raise Failure(f"no JSON (exit code {p.returncode}): {p.stdout[:2000]}{p.stderr[:2000]}")
        self.ok, self.steps = j["ok"], j["steps"]

    def of(self, status):
        return [s for s in self.steps if s["status"] == status]

    def red(self):
        return sorted({s["code"] for s in self.of("fail")})

    def step(self, code):
        found = [s for s in self.steps if s["code"] == code]
        require(found, f"no step {code} in {[s['code'] for s in self.steps]}")
        return found[0]

    def __str__(self):
        return "\n".join(f"{s['status']:8}{s['code']} {s['subject']}: {s['answer']}" + (f"\n          do: {s['do']}" if s["do"] else "") for s in self.steps)


class World:
    """AWS, a profile, a directory."""

    def __init__(self, tls=None, tables=True):
        moto("POST", "/moto-api/reset")
        self.front = Front(MOTO, next(PORTS), tls)
        self.dir = tempfile.mkdtemp(dir=DIR)
        self.bucket = "logs-" + os.path.basename(self.dir).replace("_", "-").lower()
        self.env = {"PATH": os.environ["PATH"], "HOME": self.dir, "AWS_PROFILE": "home-aws", "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
                    "AWS_SHARED_CREDENTIALS_FILE": f"{self.dir}/credentials", "AWS_CONFIG_FILE": f"{self.dir}/config", "AWS_ENDPOINT_URL": self.front.url,
                    "AWS_EC2_METADATA_DISABLED": "true"}
        if tls:
            self.env["AWS_CA_BUNDLE"] = tls[0]
        self.write("credentials", "[home-aws]\naws_access_key_id = AKIAEXAMPLE0000LAST\naws_secret_access_key = not/a/secret+for/anybody\n")
        self.write("config", f"[profile home-aws]\nregion = {REGION}\n")
        self.config = self.write("config.yaml", example("config.yaml").replace("<YOUR_ICEBERG_BUCKET>", self.bucket) + f"frazil.state.dir: {self.dir}/state\n")
        moto("PUT", f"/{self.bucket}", b"<CreateBucketConfiguration><LocationConstraint>ap-northeast-1</LocationConstraint></CreateBucketConfiguration>")
        if tables:
            self.run(self.catalog() + TABLES.replace("<YOUR_ICEBERG_BUCKET>", self.bucket))

    def write(self, name, text):
        path = f"{self.dir}/{name}"
        with open(path, "w") as f:
            f.write(text)
        return path

    def catalog(self):
        return article(self.bucket).split("CREATE TEMPORARY")[0]

    def run(self, sql, env=None):
        p = subprocess.run([BIN, "run", self.write("make.sql", sql)], capture_output=True, text=True, env={**self.env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{MOTO}", **(env or {})}, cwd=self.dir)
        require(p.returncode == 0, f"{p.stdout}{p.stderr}")

    def doctor(self, sql=None, config=True, env=None, drop=()):
        e = {k: v for k, v in {**self.env, **(env or {})}.items() if k not in drop}
        args = [BIN, "doctor", "-f", self.write("job.sql", sql or article(self.bucket)), "--format", "json"] + (["-c", self.config] if config else [])
        return Report(subprocess.run(args, capture_output=True, text=True, env=e, cwd=self.dir, timeout=170))

    def close(self):
        self.front.shutdown()
        self.front.server_close()


def moto(method, path, body=b"", headers=None, service="s3"):
    c = http.client.HTTPConnection("127.0.0.1", MOTO, timeout=30)
    c.request(method, path, body, {"Authorization": f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0", **(headers or {})})
    r = c.getresponse()
    data = r.read()
    c.close()
    require(r.status < 300, f"moto: {method} {path}: {r.status} {data[:400]}")
    return data


def keys(bucket):
    return sorted(re.findall(r"<Key>([^<]*)</Key>", moto("GET", f"/{bucket}?list-type=2").decode()))


def expect(report, code, *words, exit_code=2):
    """That code is red, no other is, what rests on it is skipped, and its answer and advice say what is wanted."""
    require(report.red() == [code], f"red are {report.red()}, wanted {code}\n{report}")
    require(report.code == exit_code and report.ok is False, f"exit code {report.code}, ok {report.ok}")
    s = [s for s in report.of("fail") if s["code"] == code][0]
    said = f"{s['asked']}\n{s['answer']}\n{s['do']}"
    for w in words:
        require(re.search(w, said), f"no {w!r} in\n{said}")
    require(s["do"], f"no advice\n{report}")
    for k in report.of("skipped"):
        require(k["because"] == code, f"{k['code']} is skipped because of {k['because']}\n{report}")
    require("not/a/secret" not in report.text and "not/a/secret" not in report.err, "a secret stands in the report")
    require(not report.err, f"the doctor writes to standard error: {report.err[:500]}")


def unused_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def certificate(name="127.0.0.1"):
    base = tempfile.mkdtemp(dir=DIR)
    cert, key = f"{base}/cert.pem", f"{base}/key.pem"
    p = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{name}"],
                       capture_output=True, text=True)
    require(p.returncode == 0, p.stderr)
    return cert, key


def prepare():
    peer = None if "FRAZIL_MOTO_PORT" in os.environ else f"{DIR}/moto" # a port that is given is one where it runs already
    p = peer and subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", "up", peer, str(MOTO)], capture_output=True, text=True)
    require(not p or p.returncode == 0, p and p.stdout + p.stderr)
    for t in (SYSLOG, AUTHLOG):
        B.topic(t, 3)
    return peer


def run(cases):
    """Runs them against moto, which is started unless its port is given."""
    peer = None
    try:
        peer = prepare()
        main(cases)
    finally:
        if peer:
            subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", "down", peer], capture_output=True)
        if not os.environ.get("KEEP"):
            shutil.rmtree(DIR, ignore_errors=True)
