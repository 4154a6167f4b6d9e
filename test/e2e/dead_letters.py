#!/usr/bin/env python3
"""Rows that fail, with a real broker: what a dead letter says, the policies, NULL in NOT NULL columns, a message of 100 MB, a disk that does not take letters.

usage: dead_letters.py [CASE...]  by test/e2e/run.sh, which gives it a broker."""
import base64, json, os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from harness import Broker, Tables, main, require

B = Broker()
FIELDS = {"code", "message", "expression", "table", "source", "topic", "partition", "offset", "timestamp", "size", "rawData", "arrivalTimestamp"}


def setting(name, *config, **kw):
    t = Tables(B, f"dead-{name}-{os.getpid()}", **kw)
    B.topic(t.name, 2, *config)
    return t


GOOD = {"id": 1, "host": "a", "num": "1"}
BAD = {"id": 2, "host": "a", "num": "ä1"}


def content():
    """Each reject is one line with everything that is needed to find and repeat it; the good rows are in the table."""
    t = setting("content")
    lines = [json.dumps(GOOD), json.dumps(BAD, ensure_ascii=False), '{"id":3,', json.dumps({"id": 4, "host": "a", "num": "4"})]
    B.produce(t.name, 1, lines)
    t.run(t.script(t.name, bounded=True))
    t.judge([1, 4])
    letters = t.letters()
    require(len(letters) == 1, f"{len(letters)} letters")
    l = letters[0]
    require(set(l) == FIELDS, f"fields {sorted(l)}")
    require(base64.b64decode(l["rawData"]).decode() == lines[1] and l["size"] == len(lines[1].encode()), "rawData is not the record")
    require((l["topic"], l["partition"], l["offset"]) == (t.name, 1, 1), f"origin {l}")
    require(l["code"] and "CAST" in l["expression"] and "ä1" in l["message"] and l["table"] == "c.db.t" and l["source"].endswith("src"), f"{l}")
    require(abs(l["timestamp"] / 1000 - time.time()) < 3600 and abs(l["arrivalTimestamp"] / 1000 - time.time()) < 3600, f"times {l}")
    audit = t.audit()
    require("read 4  added 2  filtered 0  rejected 1  unparseable 1" in audit, audit)
    return f"code {l['code']}, expression {l['expression']}"


def policy_fail():
    """The job ends with the row's place; what came before it in earlier checkpoints stays; nothing passes it."""
    t = setting("fail")
    B.produce(t.name, 0, [GOOD])
    t.run(t.script(t.name, bounded=True))
    B.produce(t.name, 0, [BAD])
    for _ in range(2):
        text = t.run(t.script(t.name, bounded=True, settings={"frazil.on-row-error": "fail"}), code=2)
        require(f"{t.name}/0 offset 1" in text, text[-2000:])
    require(t.positions() == {0: 1}, f"positions {t.positions()}")
    require(not t.letters(), "there are letters")
    t.run(t.script(t.name, bounded=True))
    t.judge([1])
    require(len(t.letters()) == 1, f"letters {t.letters()}")


def policy_drop():
    t = setting("drop")
    B.produce(t.name, 0, [GOOD, BAD])
    t.run(t.script(t.name, bounded=True, settings={"frazil.on-row-error": "drop"}))
    t.judge([1])
    require(not t.letters(), "there are letters")
    require("rejected 1" in t.audit(), "the row is not counted")


def not_null():
    """NULL in a NOT NULL column: a dead letter unless the enforcer says otherwise."""
    nulls = [GOOD, {"host": "a", "num": "1"}]
    for enforcer, code, letters, count in ((None, 0, 1, [1]), ("DROP", 0, 0, [1]), ("ERROR", 2, 0, [])):
        t = setting(f"null-{enforcer}".lower(), columns="id BIGINT NOT NULL, host STRING, num INT")
        B.produce(t.name, 0, nulls)
        text = t.run(t.script(t.name, bounded=True, settings={"table.exec.sink.not-null-enforcer": enforcer} if enforcer else {}), code=code)
        t.judge(count)
        require(len(t.letters()) == letters, f"{enforcer}: {t.letters()}")
        if letters:
            l = t.letters()[0]
            require(l["code"] == "not-null" and "id" in l["message"] and base64.b64decode(l["rawData"]), f"{l}")
        if code:
            require("not-null" in text and "offset 1" in text, text[-1500:])


def two_inserts():
    """One record can fail in one INSERT and not in the other: a letter for the table that it failed for."""
    t = setting("two", tables=("t", "u"))
    B.produce(t.name, 0, [GOOD, BAD])
    t.run(t.script(t.name, bounded=True, inserts=["INSERT INTO c.db.t SELECT id, host, CAST(num AS INT) FROM src;", "INSERT INTO c.db.u SELECT id, host, TRY_CAST(num AS INT) FROM src;"]))
    t.judge([1])
    t.judge([1, 2], "u")
    require([l["table"] for l in t.letters()] == ["c.db.t"], f"{t.letters()}")


def huge_message():
    """100 MB: a letter without the bytes; the range moves on."""
    t = setting("huge", "max.message.bytes=104000000")
    B.produce(t.name, 0, [GOOD])
    path = f"{t.dir}/huge"
    with open(path, "wb") as f:
        f.write(b'{"id":9,"host":"a","num":"1","pad":"' + b"x" * 100_000_000 + b'"}')
    p = subprocess.run(["kcat", "-b", B.address, "-P", "-t", t.name, "-p", "0", "-X", "message.max.bytes=104000000", "-X", "message.copy.max.bytes=100", "-D", "\x01", path], capture_output=True)
    require(p.returncode == 0, f"kcat: {p.stderr.decode()[-500:]}")
    os.remove(path)
    B.produce(t.name, 0, [{"id": 3, "host": "a", "num": "3"}])
    t.run(t.script(t.name, bounded=True), timeout=180)
    t.judge([1, 3])
    l = [x for x in t.letters()]
    require(len(l) == 1 and l[0]["code"] == "record.too-large" and l[0]["rawData"] is None and l[0]["size"] > 100_000_000 and l[0]["offset"] == 1, f"{l}")
    require(t.positions() == {0: 3}, f"positions {t.positions()}")
    return f"code {l[0]['code']}"


def letters_without_room():
    """The disk of the letters refuses: no position passes the row; when there is room again the job goes on."""
    t = setting("room")
    B.produce(t.name, 0, [GOOD])
    j = t.start(t.script(t.name), "dead-letter.write:1:enospc,dead-letter.write:2:eio,dead-letter.write:3:enospc")
    t.wait_rows(1, job=j)
    B.produce(t.name, 0, [BAD, {"id": 3, "host": "a", "num": "3"}])
    t.wait_rows(2, job=j)
    text = j.stop()
    require(text.count("checkpoint.dead-letters") == 3, text[-2000:])
    t.judge([1, 3])
    require(len(t.letters()) == 1, f"{t.letters()}")


main({f.__name__: f for f in (content, policy_fail, policy_drop, not_null, two_inserts, letters_without_room, huge_message)})
