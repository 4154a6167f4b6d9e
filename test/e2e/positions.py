#!/usr/bin/env python3
"""Positions in the table decide where reading begins, with a real broker: topics made anew, records gone, starts at latest, new partitions, renamed pipelines, foreign
commits, rollbacks and expiry by PyIceberg, transactions.

usage: positions.py [CASE...]  by test/e2e/run.sh, which gives it a broker. Cases that need PyIceberg are left out without it."""
import os, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import BIN, Broker, Tables, main, require

B = Broker()
try:
    import pyiceberg.table, pyarrow
except ImportError:
    pyiceberg = None


def rows(first, n):
    return [{"id": i, "host": f"h{i % 3}", "num": str(i)} for i in range(first, first + n)]


def put(t, partition, first, n):
    B.produce(t.name, partition, rows(first, n))
    return list(range(first, first + n))


def setting(name, partitions=1, **kw):
    kw.setdefault("properties", "'commit.retry.min-wait-ms'='50'")
    t = Tables(B, f"pos-{name}-{os.getpid()}", **kw)
    B.topic(t.name, partitions)
    return t


def bounded(t, code=0, settings=None, **kw):
    return t.run(t.script(t.name, bounded=True, settings=settings, **kw), code=code)


def refuses(t, event, *numbers, **kw):
    text = bounded(t, code=2, **kw)
    for what in (event, *numbers):
        require(str(what) in text, f"no {what!r} in\n{text[-2500:]}")


# ---- the log is another one ----

def remade_shorter():
    """Position 100, the new topic has 5: not silence, not a skip."""
    t = setting("shorter")
    put(t, 0, 0, 100)
    bounded(t)
    B.delete(t.name)
    B.topic(t.name, 1)
    put(t, 0, 1000, 5)
    refuses(t, "positions.beyond-end", t.name, "offset 5", 100)
    bounded(t, settings={"frazil.positions": "ignore"})
    t.judge(list(range(100)) + list(range(1000, 1005)))
    put(t, 0, 1005, 5)
    bounded(t)
    t.judge(list(range(100)) + list(range(1000, 1010)))


def remade_longer():
    t = setting("longer")
    put(t, 0, 0, 20)
    bounded(t)
    B.delete(t.name)
    B.topic(t.name, 1)
    put(t, 0, 1000, 50)
    refuses(t, "positions.topic-remade", "offset 19")
    t.judge(range(20))
    bounded(t, settings={"frazil.positions": "ignore"})
    t.judge(list(range(20)) + list(range(1000, 1050)))


def remade_while_running():
    t = setting("running")
    put(t, 0, 0, 20)
    j = t.start(t.script(t.name))
    t.wait_rows(20, job=j)
    B.delete(t.name)
    B.topic(t.name, 1)
    put(t, 0, 1000, 5)
    code = j.wait(90)
    require(code == 2, f"exit code {code}\n{j.text()[-2000:]}")
    t.judge(range(20))


def records_gone():
    """Position 10, records up to 500 deleted, end 1000: stops with the numbers; when told so goes on at 500, never at 1000."""
    t = setting("gone")
    put(t, 0, 0, 10)
    bounded(t)
    put(t, 0, 10, 990)
    B.call("delete-records", t.name, 0, 500)
    refuses(t, "positions.offsets-gone", "wanted offset 10", "earliest is 500", "490 records", source="'properties.auto.offset.reset'='latest',")
    text = bounded(t, settings={"frazil.lost-offsets": "earliest"}, source="'properties.auto.offset.reset'='latest',")
    require("lost=490" in text, text[-2000:])
    t.judge(list(range(10)) + list(range(500, 1000)))


def overtaken(policy, attempt):
    """False: the broker was so slow that the waiting fetch took all records along, and nobody was overtaken."""
    t = setting(f"overtaken-{policy}-{attempt}")
    put(t, 0, 0, 10)
    j = t.start(t.script(t.name, settings={"frazil.lost-offsets": policy}))
    t.wait_rows(10, job=j)
    j.signal(signal.SIGSTOP)
    put(t, 0, 10, 5)  # the answer to a fetch that waits
    put(t, 0, 15, 485)
    B.call("delete-records", t.name, 0, 400)
    j.signal(signal.SIGCONT)
    until = time.monotonic() + 60
    while j.alive() and "positions.offsets-lost" not in j.text():
        if t.count() >= 500:
            j.stop()
            return False
        require(time.monotonic() < until, f"nothing was said of the records that are gone\n{j.text()[-2000:]}")
        time.sleep(0.2)
    if policy == "fail":
        code = j.wait(60)
        require(code == 2 and "kafka.offset-gone" in j.text(), f"exit code {code}\n{j.text()[-2000:]}")
    else:
        put(t, 0, 500, 10)
        t.wait_rows(120, job=j)
        j.stop()
    ids = t.ids()
    require(len(ids) == len(set(ids)) and set(range(10)) <= set(ids), f"{sorted(ids)}")
    require(policy == "fail" or set(range(400, 510)) <= set(ids), f"{sorted(ids)}")
    t.audit()
    return True


def records_gone_while_running():
    """Retention overtakes a reader that was held up: it ends with the numbers, or goes on at the earliest; what it had read stays, nothing comes twice."""
    for policy in ("fail", "earliest"):
        require(any(overtaken(policy, attempt) for attempt in range(4)), f"{policy}: the reader was never overtaken")


# ---- latest, new partitions ----

def latest_is_a_number():
    t = setting("latest", 3)
    for p in range(3):
        put(t, p, p * 1000, 5)
    j = t.start(t.script(t.name, "latest-offset"))
    j.wait_log("event=commit ")
    require(t.positions() == {0: 5, 1: 5, 2: 5}, f"claimed: {t.positions()}")
    ids = put(t, 0, 100, 5) + put(t, 1, 1100, 5)
    t.wait_rows(10, job=j)
    j.stop()
    for p in range(3):
        ids += put(t, p, p * 1000 + 200, 1)
    t.run(t.script(t.name, "latest-offset", bounded=True))
    t.judge(ids)


def latest_killed_before_the_first_record():
    t = setting("latest-kill", 2)
    put(t, 0, 0, 5)
    j = t.start(t.script(t.name, "latest-offset", interval="10 min"))
    j.wait_log("event=commit ")  # at once, not after ten minutes
    j.kill()
    ids = put(t, 0, 100, 5) + put(t, 1, 1100, 5)
    t.run(t.script(t.name, "latest-offset", bounded=True))
    t.judge(ids)


def partition_added():
    """While running, and while stopped, with a start at latest: all its records count."""
    t = setting("added")
    put(t, 0, 0, 5)
    source = "'scan.topic-partition-discovery.interval'='1 s',"
    script = t.script(t.name, "latest-offset", source=source)
    j = t.start(script)
    j.wait_log("event=commit ")
    ids = put(t, 0, 100, 5)
    t.wait_rows(5, job=j)
    B.alter("--alter", "--topic", t.name, "--partitions", "2")
    ids += put(t, 1, 1000, 10)
    t.wait_rows(15, job=j, seconds=60)
    j.stop()
    B.alter("--alter", "--topic", t.name, "--partitions", "3")
    ids += put(t, 2, 2000, 10)
    t.run(t.script(t.name, "latest-offset", bounded=True, source=source))
    t.judge(ids)


# ---- names ----

def renamed_pipeline():
    t = setting("renamed")
    ids = put(t, 0, 0, 20)
    bounded(t, name="old")
    bounded(t, name="unrelated", inserts=["INSERT INTO c.db.t VALUES (-1, 'x', 1);"])  # the newest other pipeline is not the one that matters
    ids += put(t, 0, 20, 20)
    refuses(t, "positions.other-key", "'old'", "position is 20", name="new")
    bounded(t, name="new", settings={"frazil.positions": "adopt"})
    t.judge(ids + [-1])
    ids += put(t, 0, 40, 20)
    bounded(t, name="new")
    t.judge(ids + [-1])
    put(t, 0, 60, 5)
    # Back under the old name, whose own position is still 20: what the new one has brought would come again. Its first commit after that ends the matter, and then it is the other's turn.
    refuses(t, "positions.other-key", "'new' has taken over", "position is 60", "that of 'old' is 20", name="old")
    t.judge(ids + [-1])
    text = bounded(t, name="old", settings={"frazil.positions": "adopt"})
    require("positions.adopted" in text and "of=new" in text, text[-2500:])
    ids += range(60, 65)
    t.judge(ids + [-1])
    ids += put(t, 0, 65, 5)
    bounded(t, name="old")
    t.judge(ids + [-1])
    refuses(t, "positions.other-key", "'old' has taken over", "position is 70", "that of 'new' is 60", name="new")
    ids += list(ids[:20]) + ids[20:]  # ignore: all of it again, as asked
    bounded(t, name="new", settings={"frazil.positions": "ignore"})
    t.judge(ids + [-1])
    ids += put(t, 0, 70, 5)
    bounded(t, name="new")
    text = bounded(t, name="old")  # nobody has taken it over since its last commit
    require("positions.other-ahead" in text and "its_position=75" in text and "ours=70" in text, text[-2500:])
    t.judge(ids + list(range(70, 75)) + [-1])


def taken_over_in_part():
    """A pipeline that has taken another one's positions over finds a partition that the other never saw; going back, that is known too. Expiry takes the commit that did it: what is carried on says it."""
    t = setting("part")
    ids = put(t, 0, 0, 20)
    bounded(t, name="old")
    B.alter("--alter", "--topic", t.name, "--partitions", "2")
    ids += put(t, 1, 1000, 10)
    bounded(t, name="new", settings={"frazil.positions": "adopt"})
    for k in range(3):
        ids += put(t, 0, 100 + 20 * k, 20)
        bounded(t, name="new")
    if pyiceberg:
        expire(t, 1)
    refuses(t, "positions.other-key", "'new' has taken over", "position is 80", name="old")
    bounded(t, name="old", settings={"frazil.positions": "adopt"})
    t.judge(ids)
    ids += put(t, 1, 2000, 10)
    bounded(t, name="old")
    t.judge(ids)


def positions_ignored():
    """Rows come twice, as asked; but a failure in the middle does not make them come again."""
    t = setting("ignored")
    ids = put(t, 0, 0, 20)
    bounded(t)
    bounded(t, settings={"frazil.positions": "ignore"})
    t.judge(ids * 2)
    j = t.start(t.script(t.name, settings={"frazil.positions": "ignore"}), "file.fsync:20:eio,file.fsync:32:eio,commit.accepted:2:unknown,commit.accepted:4:unknown")
    more = []
    t.wait_rows(60, job=j)
    for k in range(6):
        more += put(t, 0, 100 + k * 20, 20)
        t.wait_rows(60 + len(more), job=j, seconds=60)
    text = j.stop()
    require("sink.waiting" in text or "commit.retry" in text, "nothing failed")
    t.judge(ids * 3 + more)


# ---- others change the table ----

def foreign_append():
    t = setting("foreign")
    ids = put(t, 0, 0, 20)
    j = t.start(t.script(t.name))
    t.wait_rows(20, job=j)
    schema = t.strange().schema().as_arrow()
    for k in range(3):
        t.strange().append(pyarrow.table({"id": [-1 - k], "host": ["f"], "num": [0]}, schema=schema))
        ids += [-1 - k] + put(t, 0, 100 * (k + 1), 20)
        t.wait_rows(len(ids), job=j)
    j.stop()
    t.strange().append(pyarrow.table({"id": [-9], "host": ["f"], "num": [0]}, schema=schema))
    ids += [-9] + put(t, 0, 1000, 20)
    bounded(t)
    t.judge(ids)


def rolled_back_stopped():
    t = setting("rollback")
    ids = put(t, 0, 0, 20)
    bounded(t)
    first = t.strange().current_snapshot().snapshot_id
    ids += put(t, 0, 20, 20)
    bounded(t)
    rollback(t, first)
    require(t.count() == 20, "not rolled back")
    bounded(t)
    t.judge(ids)


def rolled_back_running():
    """Rows that the rollback took come again; the running job notices at its next commit."""
    t = setting("rollback-run")
    ids = put(t, 0, 0, 20)
    j = t.start(t.script(t.name))
    t.wait_rows(20, job=j)
    first = t.strange().current_snapshot().snapshot_id
    ids += put(t, 0, 20, 20)
    t.wait_rows(40, job=j)
    rollback(t, first)
    ids += put(t, 0, 40, 20)
    t.wait_rows(60, job=j)
    require("sink.rewind" in j.stop(), "no rewind was logged")
    t.judge(ids)


def rollback(t, snapshot):
    from pyiceberg.table.update import AssertRefSnapshotId, SetSnapshotRefUpdate
    for _ in range(10):
        table = t.strange()
        try:
            with table.transaction() as tx:
                tx._apply((SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot),),
                          (AssertRefSnapshotId(ref="main", snapshot_id=table.current_snapshot().snapshot_id),))
            return
        except Exception as e:
            last = e
            time.sleep(0.1)
    raise last


def expire(t, keep_last):
    ids = [s.snapshot_id for s in sorted(t.strange().snapshots(), key=lambda s: s.sequence_number)]
    for i in ids[:-keep_last]:
        t.strange().maintenance.expire_snapshots().by_id(i).commit()


def expired_under_foreign():
    """Our snapshots are expired, a foreign one is current: the mirror counts, since our files are live."""
    t = setting("expired")
    ids = put(t, 0, 0, 20)
    bounded(t)
    ids += put(t, 0, 20, 20)
    bounded(t)
    schema = t.strange().schema().as_arrow()
    for k in range(2):
        t.strange().append(pyarrow.table({"id": [-1 - k], "host": ["f"], "num": [0]}, schema=schema))
        ids.append(-1 - k)
    expire(t, 1)
    require(len(t.strange().snapshots()) == 1, "not expired")
    ids += put(t, 0, 40, 20)
    bounded(t)
    t.judge(ids)


def expired_while_running():
    t = setting("expired-run")
    ids, j = [], t.start(t.script(t.name))
    for k in range(5):
        ids += put(t, 0, k * 20, 20)
        t.wait_rows(len(ids), job=j)
        expire(t, 1)
    j.stop()
    t.judge(ids)


def mirror_without_proof():
    """Ours is expired and its rows are deleted: the mirror proves nothing. Refused; adopt goes on from it; ignore reads anew."""
    for policy in ("adopt", "ignore"):
        t = setting(f"unproven-{policy}")
        put(t, 0, 0, 20)
        bounded(t)
        schema = t.strange().schema().as_arrow()
        t.strange().overwrite(pyarrow.table({"id": [-1], "host": ["f"], "num": [0]}, schema=schema))
        t.strange().append(pyarrow.table({"id": [-2], "host": ["f"], "num": [0]}, schema=schema))
        expire(t, 1)
        put(t, 0, 20, 20)
        refuses(t, "positions.unproven", "frazil.positions")
        bounded(t, settings={"frazil.positions": policy})
        t.judge([-1, -2] + list(range(20 if policy == "adopt" else 0, 40)))
        put(t, 0, 40, 20)
        bounded(t)
        t.judge([-1, -2] + list(range(20 if policy == "adopt" else 0, 60)))


def two_sinks_apart():
    """One sink is behind: each row once in both."""
    t = setting("apart", tables=("t", "u"))
    put(t, 0, 0, 20)
    only = ["INSERT INTO c.db.t SELECT id, TRIM(host), CAST(num AS INT) FROM src;"]
    bounded(t, inserts=only)
    put(t, 0, 20, 20)
    bounded(t)
    t.judge(range(40))
    t.judge(range(40), "u")


# ---- transactions ----

def markers_at_the_end():
    """A record, one in a transaction, its marker: the position is 3, and the bounded run ends."""
    t = setting("markers")
    B.call("txn", t.name, 0, "plain", "commit")
    bounded(t)
    require(t.positions() == {0: 3}, f"positions {t.positions()}")
    require("read 2" in t.audit(), t.audit())


def aborted_between():
    t = setting("aborted")
    B.call("txn", t.name, 0, "commit", "abort", "commit")
    bounded(t)
    audit = t.audit()
    require("read 2" in audit, audit)


# ---- a table that is away when the job starts ----

def away(t, table="t"):
    """A file where the table's directory was; gives back what brings it back."""
    place = f"{t.warehouse}/{t.db}/{table}"
    os.rename(place, f"{t.dir}/away")
    open(place, "w").close()

    def back():
        os.remove(place)
        os.rename(f"{t.dir}/away", place)
    return back


def started_without_a_table():
    """Its group's offsets stay where the table was, the other table goes on, a kill changes nothing, and with the table back each record is in both once."""
    t = setting("away", 2, tables=("t", "u"))
    want = put(t, 0, 0, 40) + put(t, 1, 40, 10)
    bounded(t)
    back = away(t)
    j = t.start(t.script(t.name))
    want += put(t, 0, 50, 30)
    t.wait_rows(80, "u", job=j)
    j.wait_log("event=sink.unseen table=c.db.t ", 60)
    j.kill()
    j = t.start(t.script(t.name))
    want += put(t, 1, 80, 20)
    t.wait_rows(100, "u", job=j)
    group = {l.split()[1]: int(l.split()[2]) for l in B.call("group-offsets", t.name).splitlines() if l.split()[:1] == [t.name]}
    require(group == {"0": 40, "1": 10}, f"the group stands at {group}")
    back()
    t.wait_rows(100, "t", job=j)
    j.stop()
    for table in t.tables:
        t.judge(want, table)


def diverted_without_a_table():
    """The same with an error location, for longer than the window: only what the table lacks is given up, and a replay brings it; a partition that is new is given up from its start."""
    t = setting("awaydiv", 1, tables=("t", "u"))
    errors = f"{t.dir}/errors/"
    settings = {"frazil.error.path": errors, "frazil.retry.duration": "2 s"}
    want = put(t, 0, 0, 40)
    bounded(t, settings=settings)
    back = away(t)
    want += put(t, 0, 40, 30)
    j = t.start(t.script(t.name, "latest-offset", settings=settings, source="'scan.topic-partition-discovery.interval'='1 s',"))
    t.wait_rows(70, "u", job=j)
    j.wait_log("event=sink.diverted table=c.db.t rows=30 ", 60)
    B.alter("--alter", "--topic", t.name, "--partitions", "2")
    want += put(t, 1, 70, 5)
    t.wait_rows(75, "u", job=j, seconds=60)
    j.wait_log("event=sink.diverted table=c.db.t rows=5 ", 60)
    back()
    j.wait_log("event=divert.named", 60)
    j.stop()
    p = subprocess.run([BIN, "replay", errors, "-f", t.script(t.name, settings=settings)], capture_output=True, text=True, timeout=120)
    require(p.returncode == 0, p.stdout + p.stderr)
    bounded(t, settings=settings)
    for table in t.tables:
        t.judge(want, table)


def remade_without_a_table():
    """The topic was made anew while the table was away: nothing of the new one is given up, and with the table back the sink stops with the numbers."""
    t = setting("awaymade", 1, tables=("t", "u"))
    settings = {"frazil.error.path": f"{t.dir}/errors/", "frazil.retry.duration": "1 s"}
    put(t, 0, 0, 40)
    bounded(t)
    back = away(t)
    B.delete(t.name)
    B.topic(t.name, 1)
    put(t, 0, 1000, 60)
    script = t.script(t.name, settings=settings, inserts=["INSERT INTO c.db.t SELECT id, TRIM(host), CAST(num AS INT) FROM src WHERE TRIM(host) <> '';"])
    j = t.start(script)
    j.wait_log("event=sink.unseen table=c.db.t .*gives_up=\"nothing before", 60)
    for _ in range(100):
        if j.text().count("event=sink.waiting") > 4:
            break
        time.sleep(0.2)
    require("sink.diverted" not in j.text() and not os.path.exists(f"{t.dir}/errors"), j.text()[-3000:])
    back()
    require(j.wait(60) == 2 and "event=sink.failed code=positions.topic-remade" in j.text(), j.text()[-3000:])


CASES = {f.__name__: f for f in (remade_shorter, remade_longer, remade_while_running, records_gone, records_gone_while_running, latest_is_a_number,
                                 latest_killed_before_the_first_record, partition_added, renamed_pipeline, taken_over_in_part, positions_ignored, two_sinks_apart, markers_at_the_end, aborted_between,
                                 started_without_a_table, diverted_without_a_table, remade_without_a_table)}
if pyiceberg:
    CASES.update({f.__name__: f for f in (foreign_append, rolled_back_stopped, rolled_back_running, expired_under_foreign, expired_while_running, mirror_without_proof)})
else:
    print("left out (no PyIceberg): foreign commits, rollbacks, expiry")
main(CASES)
