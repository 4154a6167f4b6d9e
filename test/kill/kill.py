#!/usr/bin/env python3
"""Kills the real program at seeded moments and at every named point of the commit path, starts it again, and compares the tables with what was produced.

Variants: local state kept; local state deleted at each kill; two sinks on one topic; a start at latest; a zombie (the process is stopped at a point, a second
copy commits, then the first one goes on). At the end the topic is made anew. Records come in all the time. Some runs have a second fault: an answer is lost, a
commit conflicts, a disk call fails. At the end every good record stands in its tables once, `frazil audit` passes, and no data file is live twice.
--catalog KIND: the tables lie in that catalog of the commit matrix, behind its proxy; then some kills come while a request is on its way, which arrives after the
next process has begun. Prints the hits per point."""
import argparse, collections, os, random, signal, subprocess, sys, threading, time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in ("../tools", "../matrix")]
from harness import BIN, Broker, Failure, Tables, require

# Points of a checkpoint's way, with the N-th hits at which to kill.
POINTS = {"source.poll": range(1, 60), "checkpoint.begin": range(1, 4), "checkpoint.closed": range(1, 4), "file.write": range(1, 25), "file.fsync": range(1, 25),
          "commit.load": range(1, 4), "commit.checked": range(1, 4), "commit.manifest": range(1, 4), "commit.manifest-list": range(1, 4), "commit.metadata": range(1, 4),
          "commit.swap": range(1, 4), "commit.accepted": range(1, 4), "commit.answered": range(1, 4), "report.before": range(1, 4), "checkpoint.done": range(1, 4),
          "dead-letter.write": range(1, 4)}
# Points at which a process that is stopped and goes on later can do harm.
STOPS = ["commit.accepted", "checkpoint.closed", "commit.load", "commit.checked", "commit.swap", "commit.metadata"]
TROUBLE = ["commit.accepted:1:unknown", "commit.swap:1:conflict", "file.fsync:2:eio", "file.write:3:enospc", "commit.load:2:retry", "commit.manifest:1:eio"]
# With a catalog and a store that are reached over a network: which request is on its way at the kill.
WIRE = {"wire.put": 8, "wire.commit": 3}
PARTITIONS = 3


class Feed:
    """Records into a topic, all the time, one kcat a partition; knows the ids of the good ones and how many must become dead letters."""

    def __init__(self, broker, topic, rng, first_id):
        self.rng, self.next_id = random.Random(rng.random()), first_id
        self.good, self.bad, self.on = [], 0, True
        self.pipes = [subprocess.Popen(["kcat", "-b", broker.address, "-P", "-t", topic, "-p", str(p), "-X", "linger.ms=2"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
                      for p in range(PARTITIONS)]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def line(self):
        i, kind, host = self.next_id, self.rng.random(), f"h{self.rng.randrange(3)}"
        self.next_id += 1
        if kind < 0.03:
            return '{"id":%d,"host":' % i
        if kind < 0.06:
            return '{"id":%d,"host":"  ","num":"1"}' % i
        if kind < 0.09:
            self.bad += 1
            return '{"id":%d,"host":"%s","num":"x%d"}' % (i, host, i)
        self.good.append(i)
        return '{"id":%d,"host":"%s","num":"%d"}' % (i, host, i)

    def run(self):
        while self.on:
            pipe = self.pipes[self.rng.randrange(PARTITIONS)].stdin
            pipe.write("".join(self.line() + "\n" for _ in range(self.rng.randrange(1, 12))).encode())
            pipe.flush()
            time.sleep(0.03)

    def end(self):
        self.on = False
        self.thread.join()
        for p in self.pipes:
            _, err = p.communicate()
            require(p.returncode == 0, f"kcat: {err.decode()}")


class Harness:
    def __init__(self, a):
        self.rng, self.broker = random.Random(a.seed), Broker(a.broker, os.path.join(a.dir, "kafka"))
        self.hits, self.at_end = collections.Counter(), []
        os.environ["FRAZIL_TEST_DIR"] = a.dir
        self.kind, self.points, self.trouble = None, list(POINTS), TROUBLE
        if a.catalog:
            from kinds import KINDS
            self.kind = KINDS[a.catalog]
            if self.kind.http:  # no files but those of dead letters
                self.points = [p for p in POINTS if not p.startswith("file.")] + list(WIRE)
                self.trouble = [t for t in TROUBLE if not t.startswith("file.")]

    def tables_of(self, kind):
        tables = ("t", "u") if kind == "two-sinks" else ("t",)
        properties = "'commit.manifest.min-count-to-merge'='5','commit.retry.min-wait-ms'='20'"
        if not self.kind:
            return Tables(self.broker, f"kill-{kind}", tables, properties=properties)
        from kinds import Lake
        t = Lake(self.kind, f"kill-{kind}", self.broker, tables=tables, properties=properties)
        self.at_end.append(t.close)
        return t

    def schedule(self, rounds):
        """Some points for each variant. A fifth goes to zombies; of the others more than a fifth lies between acceptance and answer, some at moments, the rest evenly at the
        other points."""
        n_zombies = rounds // 5
        zombies = ["commit.accepted" if i % 5 < 2 else STOPS[1 + i % (len(STOPS) - 1)] for i in range(n_zombies)]
        others = [p for p in self.points if p != "commit.accepted"]
        n = rounds - n_zombies
        plan = ["commit.accepted"] * -(-n * 11 // 50) + ["time"] * (n // 12)
        self.rng.shuffle(others)
        plan += [others[i % len(others)] for i in range(n - len(plan))]
        self.rng.shuffle(plan)
        kinds = ["kept", "wiped", "two-sinks", "latest"]
        return {**{k: plan[i::len(kinds)] for i, k in enumerate(kinds)}, "zombie": zombies}

    def fault(self, where, action):
        rules = [f"{where}:{self.rng.choice(POINTS[where])}:{action}"] if where != "time" else []
        trouble = self.rng.choice(self.trouble)
        if self.rng.random() < 0.4 and not trouble.startswith(where):
            rules.append(trouble)
        return ",".join(rules)

    def wire(self, t, script, where):
        """Killed while a request is held on its way; the service gets it some time later."""
        which = t.kind.commit if where == "wire.commit" else {"listen": t.proxy.ports[1], "method": "PUT"}
        nth = self.rng.randrange(1, WIRE[where])
        t.proxy.rules({**which, "do": "hold", "nth": nth, "seconds": self.rng.uniform(0.1, 2.0)})
        j, until = t.start(script), time.monotonic() + 15
        while not t.proxy.hits() and time.monotonic() < until:
            require(j.alive(), f"frazil ended by itself\n{j.text()[-3000:]}")
            time.sleep(0.005)
        hit = t.proxy.hits() > 0
        j.kill()
        t.proxy.rules()
        self.hits[where if hit else "time"] += 1
        return f"{where}:{nth}", hit

    def one(self, t, script, where):
        if where in WIRE:
            return self.wire(t, script, where)
        fault = self.fault(where, "kill")
        j = t.start(script, fault)
        try:
            j.p.wait(self.rng.uniform(0.05, 2.5) if where == "time" else 15)
        except subprocess.TimeoutExpired:
            self.hits["time"] += 1
            j.kill()
            return f"{fault} (by time)", where == "time"
        j._over()
        require(j.p.returncode == -signal.SIGKILL, f"frazil ended by itself with {j.p.returncode} (fault {fault})\n{j.text()[-3000:]}")
        self.hits[where] += 1
        return fault, True

    def zombie(self, t, script, where):
        """The first process stops at the point; a second one reads and commits the same; then the first goes on; then both are killed."""
        fault = f"{where}:{self.rng.randrange(1, 4)}:stop"
        first = t.start(script, fault)
        stopped = first.wait_stopped(15)
        second = t.start(script)
        time.sleep(self.rng.uniform(1.0, 2.0))
        if stopped:
            first.signal(signal.SIGCONT)
        time.sleep(self.rng.uniform(0.3, 1.5))
        require(second.alive(), f"the second copy ended\n{second.text()[-3000:]}")
        self.hits[where if stopped else "time"] += 1
        first.kill()
        second.kill()
        return fault, stopped

    def variant(self, kind, plan, first_id):
        t = self.tables_of(kind)
        topic = self.broker.topic(t.name, PARTITIONS)
        start = "latest-offset" if kind == "latest" else "earliest-offset"
        script = t.script(topic, start, interval="150 ms")
        if kind == "latest":
            self.broker.produce(topic, 0, [{"id": -1, "host": "before", "num": "1"}] * 50)
            self.claim(t, script)
        feed = Feed(self.broker, topic, self.rng, first_id)
        try:
            most = len(plan) + len(plan) // 4
            for r, where in enumerate(plan):  # what was not hit in time is tried again at the end
                what, hit = (self.zombie if kind == "zombie" else self.one)(t, script, where)
                if not hit and len(plan) < most:
                    plan.append(where)
                if kind == "wiped":
                    subprocess.run(["rm", "-rf", f"{t.dir}/state"], check=True)
                print(f"  {kind} {r + 1}/{len(plan)}: {what}", flush=True)
        finally:
            feed.end()
        t.run(t.script(topic, start, bounded=True))
        for table in t.tables:
            t.judge(feed.good, table)
            print(f"  {kind}.{table}: {len(feed.good)} rows, each once; audit passes; {len(t.strange(table).snapshots()) if t.strange(table) else '?'} snapshots", flush=True)
        if kind == "kept":
            seen = {(l["partition"], l["offset"]) for l in t.letters()}
            require(len(seen) == feed.bad, f"{feed.bad} rows must be dead letters, {len(seen)} are")
        return t, feed.next_id

    def claim(self, t, script):
        """Runs until the start at latest has been committed: from then on it is a number."""
        j = t.start(script)
        for _ in range(200):
            time.sleep(0.1)
            if t.positions():
                break
        else:
            raise Failure(f"no claim was committed\n{j.text()}")
        j.kill()

    def remade(self, t):
        """The topic is deleted and made again, and grows past the position: the start must refuse."""
        positions = t.positions()
        self.broker.delete(t.name)
        self.broker.topic(t.name, PARTITIONS)
        for p in range(PARTITIONS):
            self.broker.produce(t.name, p, [{"id": i, "host": "new", "num": "1"} for i in range(positions[p] + 100)])
        text = t.run(t.script(t.name, bounded=True), code=2)
        require("positions.topic-remade" in text, f"a topic made anew was refused for another reason\n{text[-2000:]}")
        print("  topic made anew: refused", flush=True)


def main():
    ap = argparse.ArgumentParser()
    for o in ("--dir", "--broker"):
        ap.add_argument(o, required=True)
    ap.add_argument("--rounds", type=int, default=30)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--catalog")
    a = ap.parse_args()
    print(f"kill.py: {a.rounds} rounds, seed {a.seed}{', catalog ' + a.catalog if a.catalog else ''}", flush=True)
    began, h = time.monotonic(), Harness(a)
    first, next_id = None, 0
    try:
        for kind, plan in h.schedule(a.rounds).items():
            t, next_id = h.variant(kind, plan, next_id)
            first = first or t
        h.remade(first)
    finally:
        for end in h.at_end:
            end()
    total = sum(h.hits.values())
    for name in [*h.points, "time"]:
        print(f"  {h.hits[name]:4d} {name}")
    print(f"kill.py: {total} kills in {time.monotonic() - began:.0f} s, {h.hits['commit.accepted']} between acceptance and answer")
    if total >= 200:
        few = [p for p in h.points if h.hits[p] < 5]
        require(not few and h.hits["commit.accepted"] * 5 >= total, f"too few kills at {few or 'commit.accepted'}")
    print("kill.py: ok")


try:
    main()
except Failure as e:
    raise SystemExit(f"kill.py: FAILED: {e}")
