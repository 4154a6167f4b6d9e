#!/usr/bin/env python3
"""Syslog and authlog records with the dirt that topics carry, for comparing with the real Flink. Same arguments, same bytes.

    gen_dirty.py syslog|authlog SEED COUNT

One record a line (so no record holds a line feed; records may be no JSON at all, and bytes that are no UTF-8). Every third record or so is dirty: broken JSON,
fields that are missing, null or of another type, blank hosts, escapes and surrogates, keys given twice, numbers and arrays where texts are wanted,
times that are odd but let both CASTs of the main job succeed. A record whose CAST fails makes Flink restart for ever; there is none here, see `failing`.
"""
import json
import random
import sys

HOSTS = ["web01", "web02.tky.example.internal", "db-1", "gw.nrt", "raspi4-3", "UPPER.Case", "h\u00f4te-\u00e9", "\u65e5\u672c\u8a9e", "\U0001f600", "11/12/13", "web 1/../\u00e9*~",
         "a+b", "100%", "..", ".", "a=b&c", "null", "NULL", "None", "__HIVE_DEFAULT_PARTITION__", "%2F", "a\\b", 'q"q', "tab\tin", "z", "\u00e9", "-", "_", "0", "x" * 200]  # a directory name of more than 255 bytes ends Flink's job on local files
# TRIM takes spaces (U+0020) only: what else looks blank is a host
BLANK = ["", " ", "      "]
ODD_BLANK = ["\u3000", "\u00a0", "\t", "\r\n", "\u200b", "\u2028", "\u0000", " \t ", "\ufeff"]
PROGRAMS = ["sshd", "kernel", "systemd[1]", "CRON", "postfix/smtp", "", " ", "\u30d7\u30ed\u30b0\u30e9\u30e0", "nginx"]
WORDS = ["session opened", "Failed password for root from 203.0.113.7", "", "\u66f4\u65b0", "caf\u00e9", "\U0001f4a9\U0001f468\u200d\U0001f469", 'say "hi"', "back\\slash", "tab\there", "nul\u0000nul",
         "line\nfeed", "\r\n", "e\u0301", "\u202eright", "\ufeffbom", "\ud83d", "\udc00\ud800", "x" * 3000, "'; DROP TABLE t; --", "%s%n", "\x7f\x1b[0m", "\uffff\ufffe", "a" * 15 + "\U0001f600b"]
# Texts that SUBSTRING(ts, 1, 10) casts to a DATE from and SUBSTRING(ts, 12, 2) to an INT; TO_TIMESTAMP makes NULL of many of them
ODD_TIMES = ["2026-09-16 12:34:56", "2026-09-16T12:34", "2026-09-16T24:00:00+09:00", "2026-09-16T23:59:60Z", "2026-09-16T99:00:00", "2026-09-16T12:60:00Z", "2026-09-16T12", "2026-09-16T7",
             "2026-09-16T 7:00:00", "2026-09-16T7 :00:00", "2026-09-16T-1:00:00", "2026-09-16T+1:00:00", "2026-09-16x12y34z56", "2026-09-16T12:34:56.123456789+09:00", "0001-01-01T00:00:00",
             "9999-12-31T23:59:59", "1969-12-31T23:59:59", "1582-10-10T10:10:10", "1900-02-28T00:00:00", "2000-02-29T00:00:00", "2024-02-29T23:00:00-05:00", "2026-09-16T12:34:5",
             "2026-09-16T12:3a:56", "2026-09-16\u300012:34:56", "2026-09-16T12:34:56\u3042", "2026-09-16T12\u300034:56", "2026-09-16T12:34:56 JST", "1970-01-01T00:00:00Z", "2026-9-16 T12:00:00",
             "2026-09   T12:00:00", "2026      T12:00:00", " 2026-9-16T12:00:00", "2026-09-1 T05:00:00", "2026-9-1 1x03", "2026-09-16T1.:00:00", "2026-09-16T.5:00:00"]


def failing():
    """Times that fail a CAST: Flink would restart for ever, frazil writes a dead letter."""
    return ["", "x", "2026-09-16", "2026-09-16T", "2026-09-16T1:00:00", "2026-02-30T12:00:00", "2026-13-01T00:00:00", "2026/09/16T12:00:00", "10000-01-01T00:00:00", "-001-01-01T00:00:00",
            "2026-09-16Tab:00:00", "1789603200", " 2026-09-16T12:34:56", "\u3000", "2026-09-16T\u0661\u0662:00:00"]


def time_of(r):
    if r.random() < 0.08:
        return r.choice(ODD_TIMES)
    day, second = r.choice([14, 15, 16, 16, 16]), r.randrange(86400)
    return "2026-09-%02dT%02d:%02d:%02d%s" % (day, second // 3600, second // 60 % 60, second % 60, r.choice(["+09:00", "+09:00", "Z", "", ".5Z", ".123456+09:00", "-0330"]))


def pad(r, text):
    return " " * r.choice([0, 0, 0, 1, 3]) + text + " " * r.choice([0, 0, 0, 2])


def host_of(r):
    p = r.random()
    if p < 0.04:
        return r.choice(BLANK)
    if p < 0.07:
        return r.choice(ODD_BLANK)
    if p < 0.09:
        around = r.choice(ODD_BLANK)  # few distinct ones: each is a partition, and an open file of Flink's
        return pad(r, around + r.choice(HOSTS[:4]) + around)
    return pad(r, r.choice(HOSTS))


def message_of(r, kind, i):
    if r.random() < 0.3:
        return " ".join(r.choice(WORDS) for _ in range(r.randrange(1, 4)))
    if kind == "authlog":
        return "Failed password for invalid user u%d from 203.0.113.%d port %d ssh2" % (r.randrange(50), r.randrange(1, 255), r.randrange(1024, 65535))
    return "[%d.%06d] TCP: request_sock_TCP: record %d. Sending cookies." % (r.randrange(10 ** 6), r.randrange(10 ** 6), i)


# Values, as JSON text, where a STRING is wanted
OTHER = ["null", "0", "-0", "12", "1.50", "-1e3", "1E+2", "12345678901234567890", "123456789012345678901234567890.5", "1e400", "0.1000", "true", "false", "[]", "{}", '[1, 2 ,"x"]', '["a",null,[{}]]',
         '{"k" : 1, "l":[ true ]}', '{"b":1,"a":{"c":"\\u00e9"}}', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ud83dx"', '"\\udc00"', '"\\u0000"', '"\\/\\b\\f\\n\\r\\t"', '"\\u00E9\\u3042"', '"\\\\u0041"']


def value(r, x):
    """A text as JSON, escaped one way or the other."""
    lone = any("\ud800" <= c <= "\udfff" for c in x)
    return json.dumps(x, ensure_ascii=lone or r.random() < 0.3)


def fields(r, kind, i):
    return [["ts", value(r, time_of(r))], ["src_host", value(r, host_of(r))], ["program", value(r, r.choice(PROGRAMS))], ["message", value(r, message_of(r, kind, i))]]


def join(r, parts):
    space = r.choice(["", "", "", " ", " \t"])
    return "{" + ("," + space).join('"%s"%s:%s%s' % (k, space, space, v) for k, v in parts) + "}"


def broken(r, text):
    """No JSON, or half of it; sometimes what Flink's parser still takes."""
    data = text.encode()
    cut = r.randrange(1, len(data))
    return r.choice([
        lambda: data[:cut], lambda: data[:-1], lambda: data[1:], lambda: b"", lambda: b" ", lambda: b"not json", lambda: b"null", lambda: b"[]", lambda: b"[" + data + b"]", lambda: b'"text"', lambda: b"12",
        lambda: b"true", lambda: data.replace(b":", b"=", 1), lambda: data.replace(b'"', b"'"), lambda: data.replace(b",", b",,", 1), lambda: data[:-1] + b",}", lambda: data + b"}", lambda: data + b" trash",
        lambda: data + data, lambda: b"\xef\xbb\xbf" + data, lambda: b"  \t" + data + b"\r", lambda: b"{}", lambda: b"{,}", lambda: data.replace(b'"message"', b"message"),
        lambda: data[:-2] + b"\\x\"}", lambda: data[:-2] + b"\\u12\"}", lambda: data[:-2] + b"\x01\x02\"}", lambda: data[:-2] + b"\xff\xfe\"}", lambda: data[:-2] + b"\xc3\"}", lambda: data[:-2] + b"\xed\xa0\x80\"}",
        lambda: b"/* c */" + data, lambda: b"\x00" + data, lambda: data[:-1] + b',"n":NaN}', lambda: data[:-1] + b',"n":01}', lambda: data[:-1] + b',"n":-}', lambda: data[:-1] + b',"n":[1,}',
        lambda: data[:-1] + b',"n":tru}', lambda: data[:-1] + b',"deep":' + b"[" * 60 + b"]" * 60 + b"}",
    ])()


def record(r, kind, i):
    f = fields(r, kind, i)
    p = r.random()
    if p < 0.66:
        return join(r, f).encode()
    if p < 0.72:
        f.pop(r.randrange(4))
    elif p < 0.77:
        f[r.randrange(4)][1] = "null"
    elif p < 0.84:
        # a time of another type would fail its CAST
        f[r.choice([1, 2, 3, 3])][1] = r.choice(OTHER)
    elif p < 0.87:
        f.insert(r.randrange(5), [r.choice(["message", "program", "src_host", "ts"]), ""])
        for x in f:
            if x[1] == "":
                x[1] = value(r, time_of(r) if x[0] == "ts" else host_of(r) if x[0] == "src_host" else message_of(r, kind, i))
    elif p < 0.90:
        f.insert(r.randrange(5), [r.choice(["extra", "Ts", "TS", "", "ts ", "mess\\u0061ge2", "@timestamp", "a.b", "\u65e5"]), r.choice(OTHER)])
    elif p < 0.92:
        f = [["\\u0074s" if k == "ts" else k.replace("o", "\\u006f") if r.random() < 0.5 else k, v] for k, v in f]
    elif p < 0.94:
        r.shuffle(f)
    else:
        return broken(r, join(r, f))
    return join(r, f).encode()


def generate(kind, seed, count):
    r = random.Random("%s-%d" % (kind, seed))
    last = b"{}"
    for i in range(count):
        if r.random() >= 0.02:  # a record now and then comes twice
            last = record(r, kind, i).replace(b"\n", b" ")
        yield last


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("syslog", "authlog"):
        sys.exit(__doc__)
    out = sys.stdout.buffer
    for line in generate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        out.write(line + b"\n")
