#!/usr/bin/env python3
"""A table fed from Kafka whose store or catalog refuses past retry.duration: what it could not take is in error objects, the group's offsets go on and with them retention may, the other table of the job is up to date;
then the permission comes, also while the job is down and the records are gone from the topic, and `frazil replay` brings each row once.

usage: divert_kafka.py [CASE...]  by test/e2e/run.sh, which gives it a broker; FRAZIL_MOTO_PORT; FRAZIL_ROUNDS (default 3): rounds of each kill."""
import collections, json, os, signal, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import divert
from divert import DENIED, PORT, ROUNDS, STARTED, WINDOW, Lake, moto, replayed, s3
from harness import Broker, Job, main, require

B = Broker()
GLUE_DENIED = {"do": "answer", "status": 400, "type": "application/x-amz-json-1.1", "target": "AWSGlue\\.(UpdateTable|BatchUpdate|CreateTable)", "times": 0,
               "answer": '{"__type":"AccessDeniedException","Message":"not authorized to perform: glue:UpdateTable"}'}
PARTITIONS = 3


class KafkaLake(Lake):
    """The table behind a door is fed from a topic; a second one beside it, on local disk and with a catalog of its own, from the same."""

    def __init__(self, name, glue=False, **kw):
        super().__init__(f"k{name}", **kw)
        self.topic, self.glue, self.next = f"k{name}-{os.getpid()}-{len(STARTED)}", glue, collections.Counter()
        B.topic(self.topic, PARTITIONS)

    def catalog(self, port=None):
        if not self.glue:
            return super().catalog(port)
        return f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='glue','warehouse'='s3://{self.bucket}/wh','glue.endpoint'='http://127.0.0.1:{port or self.port}',{s3(PORT)},'client.access-key-id'='test','client.secret-access-key'='test');\n"

    def script(self, interval="300 ms", settings=None, table_options=None, start="earliest-offset", source=""):
        sets = {"pipeline.name": "divert", "execution.checkpointing.interval": interval, "frazil.state.dir": f"{self.dir}/state", "parallelism.default": "2", **(settings or {})}
        text = "".join(f"SET '{k}' = '{v}';\n" for k, v in sets.items()) + self.catalog()
        text += f"CREATE CATALOG near WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{self.dir}/near');\n"
        text += f"CREATE DATABASE IF NOT EXISTS c.db;\nCREATE TABLE IF NOT EXISTS c.db.t ({self.columns}) WITH ('commit.retry.min-wait-ms'='50');\n"
        text += "CREATE DATABASE IF NOT EXISTS near.db;\nCREATE TABLE IF NOT EXISTS near.db.u (id BIGINT, host STRING);\n"
        text += f"CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num INT) WITH ('connector'='kafka','topic'='{self.topic}','properties.bootstrap.servers'='{B.address}','properties.group.id'='{self.topic}',"
        text += f"'scan.startup.mode'='{start}',{source}'format'='json','json.ignore-parse-errors'='true');\n"
        text += f"STATEMENT SET BEGIN\nINSERT INTO c.db.t {self.table_options if table_options is None else table_options} {self.select};\nINSERT INTO near.db.u SELECT id, host FROM src;\nEND;\n"
        self.runs += 1
        path = f"{self.dir}/job{self.runs}.sql"
        open(path, "w").write(text)
        return path

    def start(self, fault=None, **kw):
        j = Job(self, self.script(**kw), fault)
        STARTED.append(j.p)
        return j

    def send(self, n, bad=(), partition=None):
        """n rows over the partitions, with a filtered record and one that is no JSON for each ten."""
        first = len(self.sent)
        for p in range(PARTITIONS):
            rows = [{"id": first + i, "host": f"h{i % 3}", "num": i} for i in range(n) if i % PARTITIONS == p]
            lines = [json.dumps(r) for r in rows] + [json.dumps({"id": -5, "host": "none", "num": -1}) for _ in range(n // 10)] + ["{no json"] * (n // 10)
            B.produce(self.topic, p, lines)
            self.next[p] += len(lines)
        self.sent += range(first, first + n)

    def init(self):
        path = f"{self.dir}/init.sql"
        open(path, "w").write(self.catalog(PORT) + f"CREATE CATALOG near WITH ('type'='iceberg','catalog-type'='hadoop','warehouse'='file://{self.dir}/near');\n")
        return path

    def group(self):
        out = {}
        for line in B.call("group-offsets", self.topic).splitlines():
            topic, partition, offset = line.split()
            out[int(partition)] = int(offset)
        return out

    def beside(self):
        return collections.Counter(r["id"] for r in self.sql("SELECT id FROM near.db.u WHERE id >= 0"))

    def forget(self):
        """Retention takes what the group has read."""
        for p in range(PARTITIONS):
            B.call("delete-records", self.topic, p, self.next[p])

    def given_up(self, j, n):
        self.wait("the rows in error objects", lambda: len(set(self.diverted())) == n, j, 120)
        require(sum(self.diverted().values()) == n, f"{sum(self.diverted().values())} lines for {n} rows")
        self.wait("the group's offsets", lambda: self.group() == dict(self.next), j, 120)


def judge(l, strangers=True):
    audit = l.judge(strangers=strangers and not l.glue)
    require(l.beside() == collections.Counter(l.sent), f"the table beside has {sum(l.beside().values())} rows of {len(l.sent)}")
    return audit


def finish(l, j, open_rows):
    report = l.replay()
    require(sum(r.get("added", 0) for r in report) == open_rows, f"{report}")
    require(not [r for r in l.replay() if r["state"] not in ("unnamed",)], "a second replay found something")
    before = sum(l.ids().values())
    l.send(10)
    l.wait("rows behind the replay", lambda: sum(l.ids().values()) == before + 10, j)
    j.stop()
    audit = judge(l)
    require(f"diverted {open_rows}" in audit and "audit.open" not in audit, audit)
    l.close()


def refused(l):
    """From the first refusal to the commit that names what was given up."""
    j = first_rows(l, 60)
    l.deny(DENIED if not l.glue else GLUE_DENIED)
    for _ in range(3):
        l.send(60)
    l.given_up(j, 180)
    l.wait("the table beside", lambda: sum(l.beside().values()) == 240, j)
    line = l.error_lines()[0]
    require(line["topic"] == l.topic and line["partition"] in range(PARTITIONS) and line["attemptsMade"] >= 1 and line["identity"].startswith("kafka:"), f"{line}")
    l.grant()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    l.send(30)
    l.wait("rows after it", lambda: sum(l.ids().values()) == 90, j)
    finish(l, j, 180)
    return f"{len(set(x['errorCode'] for x in l.error_lines()))} code: {line['errorCode']}"


def store_refuses():
    return refused(KafkaLake("store"))


def catalog_refuses():
    """The same, and it is Glue that refuses while the store takes all files."""
    return refused(KafkaLake("glue", glue=True))


def first_rows(l, n):
    l.send(n)
    j = l.start()
    l.wait("the first rows", lambda: "event=commit " in j.text() and sum(l.ids().values()) == n, j)
    l.wait("the table beside", lambda: sum(l.beside().values()) == n, j)
    return j


def gone_from_the_topic():
    """The job is stopped in the trouble, retention takes all that it has read, the permission comes: the next start misses nothing."""
    l = KafkaLake("gone")
    j = first_rows(l, 30)
    l.deny()
    l.send(90)
    l.given_up(j, 90)
    j.stop(code=2)
    l.forget()
    l.grant()
    l.send(30)
    j = l.start()
    l.wait("the rows behind", lambda: set(l.sent[:30] + l.sent[-30:]) == set(l.ids()), j)
    finish(l, j, 90)


def second_refusal():
    """Twice in the same trouble, with several objects each time: ranges that follow one another are one chain."""
    l = KafkaLake("again")
    j = first_rows(l, 30)
    for k in range(1, 3):
        l.deny()
        l.send(60)
        l.given_up(j, 90 * k - 30)
        l.send(30)
        l.given_up(j, 90 * k)
        known = j.text().count("divert.named")
        l.grant()
        l.wait("the commit that names them", lambda: j.text().count("divert.named") > known, j)
    finish(l, j, 180)
    return f"{j.text().count('event=sink.diverted')} objects"


def kill():
    """kill -9 at each step of a diversion; the next run is in the same trouble, or finds the permission and half of its topic gone."""
    fates = collections.Counter()
    for point in ("divert.object", "divert.recorded", "divert.named"):
        l = KafkaLake("kill")
        j = first_rows(l, 30)
        j.kill()
        for _ in range(ROUNDS):
            l.deny()
            j = l.start(f"{point}:1:kill")
            l.send(30)
            if point == "divert.named":
                l.wait("rows in error objects", lambda: "sink.diverted" in j.text(), j)
                l.grant()
            code = j.wait(90)
            require(code == -signal.SIGKILL, f"the job ended with {code}\n{j.text()[-3000:]}")
            fates[point] += 1
        l.grant()
        if point == "divert.recorded":
            low = l.group()
            for p in low:
                B.call("delete-records", l.topic, p, low[p])
        j = l.start()
        l.send(30)
        l.wait("the rows behind", lambda: set(l.sent[-30:]) <= set(l.ids()), j)
        l.wait("the table beside", lambda: sum(l.beside().values()) == len(l.sent), j)
        j.stop()
        replayed(l)
        judge(l)
        l.close()
    return f"killed {dict(fates)}"


def bounded():
    """A bounded job in the trouble ends: all is given up, and its code says that the table was not told."""
    l = KafkaLake("bounded")
    j = first_rows(l, 30)
    j.stop()
    l.deny()
    l.send(60)
    j = l.start(source="'scan.bounded.mode'='latest-offset',")
    require(j.wait(120) == 2, f"the job ends with another code\n{j.text()[-3000:]}")
    require(sum(l.diverted().values()) == 60, f"{sum(l.diverted().values())} rows in error objects")
    l.grant()
    j = l.start()
    l.wait("the commit that names them", lambda: "divert.named" in j.text(), j)
    finish(l, j, 60)


CASES = [store_refuses, catalog_refuses, gone_from_the_topic, second_refusal, kill, bounded]
if __name__ == "__main__":
    moto("up", PORT)
    try:
        main({f.__name__: f for f in CASES})
    finally:
        for p in STARTED:
            if p.poll() is None:
                p.kill()
        moto("down")
