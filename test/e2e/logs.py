#!/usr/bin/env python3
"""CloudWatch Logs (connector cloudwatch-logs) behind a real broker and an imitation of the service: the batch rules, events that the service does not keep, a group that is made late.

usage: logs.py [CASE...]  by test/e2e/run.sh, which gives it a broker. FRAZIL_MOTO_PORT."""
import base64, collections, json, os, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, ROOT, Broker, main, require
from proxy import Proxy

B = Broker()
PORT = int(os.environ.get("FRAZIL_MOTO_PORT", "29513"))
URL = f"http://127.0.0.1:{PORT}"
ENV = dict(os.environ, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_EC2_METADATA_DISABLED="true")
HOUR = 3600_000


def moto(what, *args):
    d = f"{os.environ.get('FRAZIL_TEST_DIR', '/tmp')}/moto-logs"
    p = subprocess.run(["bash", f"{ROOT}/test/peers/moto.sh", what, d, *map(str, args)], capture_output=True, text=True)
    require(p.returncode == 0, f"moto.sh {what}: {p.stdout}{p.stderr}")


def client():
    import boto3
    return boto3.client("logs", endpoint_url=URL, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")


class Job:
    def __init__(self, name, options="", columns="ts TIMESTAMP_LTZ(3), body STRING", url=URL):
        self.dir = tempfile.mkdtemp(prefix=f"frazil-logs-{name}-", dir=os.environ.get("FRAZIL_TEST_DIR"))
        self.topic = B.topic(os.path.basename(self.dir), 1)
        self.group, self.log = f"/frazil/{name}", f"{self.dir}/log"
        self.sql, self.sent = f"{self.dir}/job.sql", 0
        open(self.sql, "w").write(
            f"SET 'pipeline.name'='logs'; SET 'execution.checkpointing.interval'='100 ms'; SET 'frazil.state.dir'='{self.dir}/state';\n"
            f"CREATE TEMPORARY TABLE src ({columns}) WITH ('connector'='kafka','topic'='{self.topic}','properties.bootstrap.servers'='{B.address}','scan.startup.mode'='earliest-offset',"
            f"'scan.bounded.mode'='latest-offset','format'='json');\n"
            f"CREATE TEMPORARY TABLE logs ({columns}) WITH ('connector'='cloudwatch-logs','log-group'='{self.group}','log-stream'='s','endpoint'='{url}','region'='us-east-1',{options}'buffer.interval'='200 ms');\n"
            "INSERT INTO logs SELECT * FROM src;\n")

    def again(self, code=0, name="logs", table="logs", positions="check"):
        """A run under these names; what it logged."""
        before, text = len(self.text()), open(self.sql).read()
        open(self.sql, "w").write(text.replace("'pipeline.name'='logs'", f"'pipeline.name'='{name}'").replace("TABLE logs ", f"TABLE {table} ").replace("INTO logs ", f"INTO {table} ")
                                  .replace("SET 'exec", f"SET 'frazil.positions'='{positions}'; SET 'exec"))
        try:
            self.run(code)
        finally:
            open(self.sql, "w").write(text)
        return self.text()[before:]

    def send(self, n):
        B.produce(self.topic, 0, [{"id": self.sent + i} for i in range(n)])
        self.sent += n

    def ids(self):
        return sorted(json.loads(e["message"])["id"] for e in self.events())

    def replay(self, prefix, code=0, name="logs", fault=None):
        script = f"{self.dir}/replay.sql"
        open(script, "w").write(open(self.sql).read().replace("'pipeline.name'='logs'", f"'pipeline.name'='{name}'"))
        p = subprocess.run([BIN, "replay", prefix, "-f", script, "--format", "json"], capture_output=True, text=True, env=dict(ENV, **({"FRAZIL_FAULT": fault} if fault else {})), timeout=120)
        require(p.returncode == code, f"replay gives {p.returncode}, wanted {code}\n{p.stdout}{p.stderr[-3000:]}")
        return [json.loads(l) for l in p.stdout.splitlines()]

    def start(self):
        return subprocess.Popen([BIN, "run", self.sql], env=ENV, cwd=self.dir, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT)

    def text(self):
        return open(self.log, errors="replace").read() if os.path.exists(self.log) else ""

    def run(self, code=0):
        got = self.start().wait(90)
        require(got == code, f"ends with {got}\n{self.text()[-3000:]}")

    def events(self):
        out, token, c = [], None, client()
        while True:
            a = c.get_log_events(logGroupName=self.group, logStreamName="s", startFromHead=True, limit=10000, **({"nextToken": token} if token else {}))
            out += a["events"]
            if a["nextForwardToken"] == token:
                return out
            token = a["nextForwardToken"]


def when(ms):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ms / 1000)) + f".{ms % 1000:03d}Z"


def rules():
    now = int(time.time() * 1000)
    j = Job("rules", f"'auto-create'='true','message.column'='body','timestamp.column'='ts','error.path'='file:///ERRORS/',".replace("/ERRORS", tempfile.gettempdir() + f"/frazil-logs-errors-{os.getpid()}"))
    good = [(now - 26 * HOUR + 2000, "second"), (now - 26 * HOUR, "first"), (now - 1000, "a day later")] + [(now - 5000 + i % 3000, f"n{i}") for i in range(10001)]
    bad = [(now - 15 * 24 * HOUR, "too old"), (now + 3 * HOUR, "too new"), (now, "")]
    B.produce(j.topic, 0, [{"ts": when(ms), "body": body} for ms, body in good + bad])
    j.run()
    got = j.events()
    require(collections.Counter((e["timestamp"], e["message"]) for e in got) == collections.Counter(good), f"{len(got)} events, wanted {len(good)}: {[e for e in got if e['message'][0] != 'n']}\n{j.text()[-1500:]}")
    errors = {}
    place = tempfile.gettempdir() + f"/frazil-logs-errors-{os.getpid()}"
    for d, _, files in os.walk(place):
        for f in files:
            for l in open(f"{d}/{f}"):
                e = json.loads(l)
                errors[base64.b64decode(e["rawData"]).decode()] = e["errorCode"]
    require(errors == {"too old": "logs.too-old", "too new": "logs.too-new", "": "logs.empty-message"}, f"errors {errors}")


def rows_as_json():
    """The row is the message, the record's arrival the time; nothing comes twice when the job goes on."""
    j = Job("json", "'auto-create'='true',", columns="id BIGINT, body STRING")
    B.produce(j.topic, 0, [{"id": i, "body": "é\n"} for i in range(50)])
    j.run()
    B.produce(j.topic, 0, [{"id": 50}])
    j.run()
    got = j.events()
    require(sorted(json.loads(e["message"])["id"] for e in got) == list(range(51)), f"{len(got)} events")
    require(all(abs(e["timestamp"] / 1000 - time.time()) < 600 for e in got), "times")
    require(json.loads(got[-1]["message"]) == {"id": 50}, got[-1])


def a_group_that_comes_late():
    """Without auto-create the job waits for the group; what it holds is delivered when there is one."""
    j = Job("late", columns="id BIGINT, body STRING")
    B.produce(j.topic, 0, [{"id": i, "body": "x"} for i in range(20)])
    p = j.start()
    time.sleep(2)
    require(p.poll() is None and "logs.no-stream" in j.text(), f"{p.poll()}\n{j.text()[-2000:]}")
    c = client()
    c.create_log_group(logGroupName=j.group)
    c.create_log_stream(logGroupName=j.group, logStreamName="s")
    require(p.wait(60) == 0, j.text()[-2000:])
    require(sorted(json.loads(e["message"])["id"] for e in j.events()) == list(range(20)), "events")


def renamed():
    """Another pipeline.name or table for the same group and stream is refused with the numbers; adopt goes on, and the name that was left is refused from then on; another stream is another delivery."""
    j = Job("renamed", "'auto-create'='true',", columns="id BIGINT, body STRING")
    j.send(50)
    j.again()
    for name, table in (("other", "logs"), ("logs", "logs2")):
        log = j.again(2, name, table)
        for part in ("positions.other-key", "(cloudwatch-logs /frazil/renamed:s)", "'logs/default_catalog.default_database.logs'", f"'{name}/default_catalog.default_database.{table}'", "position is 50", "has 0 to 50"):
            require(part in log, f"'{part}' is not in\n{log}")
    j.send(10)
    log = j.again(0, "other", positions="adopt")
    require("positions.adopted" in log and "position=50" in log, log)
    j.again(0, "other")
    require(j.ids() == list(range(60)), f"adopt: {len(j.ids())} events of 60")
    log = j.again(2)
    require("positions.other-key" in log and "'other/default_catalog.default_database.logs' has taken over" in log and "its position is 60" in log and "that of 'logs' is 50" in log, log)
    j.send(10)
    j.again(0, positions="adopt")
    j.again(0)
    require(j.ids() == list(range(70)), f"back again: {len(j.ids())} events of 70")
    j.again(2, "other")
    j.again(0, "third", positions="ignore")
    require(j.ids() == sorted([*range(70)] * 2), f"ignore: {len(j.ids())} events of 140")
    sql = open(j.sql).read()
    open(j.sql, "w").write(sql.replace("'log-stream'='s'", "'log-stream'='s2'"))
    j.again(0, "elsewhere")


def given_up():
    """Rows that the service refuses past retry.duration: in error.path, recorded, the job goes on; what one call had taken is not among them. `frazil replay` sends the rest, with the times that the events had."""
    proxy = Proxy(f"0=127.0.0.1:{PORT}")
    place = f"file://{tempfile.mkdtemp(prefix='frazil-logs-given-', dir=os.environ.get('FRAZIL_TEST_DIR'))}/"
    try:
        j = Job("given", f"'auto-create'='true','message.column'='body','timestamp.column'='ts','retry.duration'='1 s','error.path'='{place}',", url=f"http://127.0.0.1:{proxy.ports[0]}")
        now = int(time.time() * 1000)
        events = [(now - 60000 + i, f"m{i}") for i in range(10500)]
        denied = {"do": "answer", "status": 400, "type": "application/x-amz-json-1.1", "target": "PutLogEvents", "nth": 3, "times": 0, "answer": '{"__type":"AccessDeniedException","message":"not allowed"}'}
        proxy.rules(denied)  # the first call finds no group, the second one is answered
        B.produce(j.topic, 0, [{"ts": when(ms), "body": body} for ms, body in events + [(now, "")]])
        j.again()
        require("delivery.diverted" in j.text() and "events=500 " in j.text(), j.text()[-3000:])
        found = collections.Counter()
        for d, _, files in os.walk(place[7:]):
            for f in files:
                found.update((e["errorCode"], e["arrivalTimestamp"] > 0, e["attemptsMade"] > 0) for e in map(json.loads, open(f"{d}/{f}")))
        require(found == {("aws.denied", True, True): 500, ("logs.empty-message", True, True): 1}, f"{found}")
        proxy.rules()
        B.produce(j.topic, 0, [{"ts": when(now + 1000), "body": "later"}])
        j.again()
        require(len(j.events()) == 10001, f"{len(j.events())} events")
        report = j.replay(place, 2, name="renamed")
        require([(r["state"], r.get("code"), r["rows"]) for r in report if r["state"] != "unnamed"] == [("other", "replay.other-pipeline", 500)], f"{report}")
        j.replay(place, -signal.SIGKILL, fault="replay.object:1:kill")
        proxy.rules(dict(denied, nth=1))
        j.replay(place, 2)
        proxy.rules()
        report = [r for r in j.replay(place) if r["state"] != "unnamed"]
        require([(r["state"], r["rows"], r["added"], r["rejected"]) for r in report] == [("replayed", 500, 500, 0)], f"{report}")
        require(not [r for r in j.replay(place) if r["state"] != "unnamed"], "a second replay found something")
        got = collections.Counter((e["timestamp"], e["message"]) for e in j.events())
        require(got == collections.Counter(events + [(now + 1000, "later")]), f"{sum(got.values())} events")
        # given up again: a number of its own, and killed between the record and the positions; what is read again then is given up again, or comes twice, never not at all
        proxy.rules(dict(denied, nth=1))
        B.produce(j.topic, 0, [{"ts": when(now + 2000), "body": "last"}])
        p = subprocess.run([BIN, "run", j.sql], env=dict(ENV, FRAZIL_FAULT="delivery.diverted:1:kill"), capture_output=True, timeout=90)
        require(p.returncode == -signal.SIGKILL, f"{p.returncode} {p.stderr[-2000:]}")
        j.again()
        proxy.rules()
        report = [r for r in j.replay(place) if r["state"] != "unnamed"]
        require([(r["state"], r["rows"], r["added"]) for r in report] == [("replayed", 1, 1)] * 2, f"{report}")
        require([e["message"] for e in j.events()].count("last") == 2, "at least once, twice here")
    finally:
        proxy.stop()


moto("up", PORT)
try:
    main({f.__name__: f for f in (rules, rows_as_json, a_group_that_comes_late, renamed, given_up)})
finally:
    moto("down")
