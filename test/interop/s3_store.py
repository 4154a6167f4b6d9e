"""s3_store.py TOOL PEER BUCKET: frazil's S3 store (test/tools/store_tool) against a server, judged by boto3. PEER: verifier, verifier-tls or moto.

The server's address and credentials come from S3_ENDPOINT and the AWS_* variables. FRAZIL_S3_LARGE=BYTES (default 200 MB) is the size of the large upload.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import threading

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

TOOL, PEER, BUCKET = sys.argv[1:4]
ENDPOINT = os.environ["S3_ENDPOINT"]
LARGE = int(os.environ.get("FRAZIL_S3_LARGE") or 200 << 20)
STAGING = tempfile.mkdtemp(prefix="frazil-staging.")
verify = os.environ.get("AWS_CA_BUNDLE")
s3 = boto3.client("s3", endpoint_url=ENDPOINT, verify=verify, config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"))
failed = 0


def tool(*args, options=(), data=None, env=None, code=0):
    cmd = [TOOL, "-o", f"s3.endpoint={ENDPOINT}", "-o", f"s3.staging-dir={STAGING}"]
    for o in options:
        cmd += ["-o", o]
    r = subprocess.run(cmd + list(args), input=data if data is not None else b"", capture_output=True, env={**os.environ, **(env or {})}, timeout=600)
    if r.returncode != code:
        raise AssertionError(f"{args}: code {r.returncode}: {r.stderr.decode(errors='replace')}")
    return r.stderr.decode() if code else r.stdout


def check(name, f):
    global failed
    try:
        note = f()
        print("ok  ", name, note or "", flush=True)
    except Exception as e:
        failed += 1
        print("FAIL", name, type(e).__name__, str(e)[:800], flush=True)


def keys():
    found = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        found += [o["Key"] for o in page.get("Contents", [])]
    return sorted(found)


def clean():
    for k in keys():
        s3.delete_object(Bucket=BUCKET, Key=k)


KEYS = ["w/t/data/dt=2025-01-02/host=web+1%2F..%2F%C3%A9/0.parquet", "a=b", "a b", "100%", "a%20b", "日本語/é", "q?x&y=1#z", "it's(1)!*~@:,;", 'q"<>\\^`{|}', "..a/.b", "deep/" * 30 + "k"]
if PEER == "moto":  # the verifier keeps objects as files, and folds these
    KEYS += ["a//b", "//lead", "a/../b", "tail/", "x/./y"]


def round_trip(key):
    body = key.encode() * 50
    loc = f"s3://{BUCKET}/{key}"
    tool("put", loc, "-", data=body)
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body
    assert keys() == [key], keys()
    assert tool("get", loc) == body
    assert tool("get", loc, "1", "4") == body[1:5]
    assert tool("size", loc).strip() == str(len(body)).encode()
    if not key.endswith("/"):
        assert tool("list", f"s3a://{BUCKET}").decode() == f"{len(body)} s3a://{BUCKET}/{key}\n", tool("list", f"s3a://{BUCKET}")
    e = tool("put-if-absent", loc, "-", data=b"other", code=1)
    assert e.startswith("CONFLICT [file.exists]"), e
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body
    tool("delete", loc)
    tool("delete", loc)
    assert keys() == []
    assert tool("exists", loc) == b"false\n"
    tool("put-if-absent", loc, "-", data=body)
    s3.put_object(Bucket=BUCKET, Key="other", Body=b"x")
    tool("delete", loc, f"s3://{BUCKET}/other", f"s3://{BUCKET}/was-never")
    assert keys() == [], keys()


def listings():
    for i in range(1203):
        s3.put_object(Bucket=BUCKET, Key=f"l/d{i % 3}/e {i:04d}+", Body=b"x" * (i % 7))
    s3.put_object(Bucket=BUCKET, Key="l2/x", Body=b"")
    got = tool("list", f"s3://{BUCKET}/l").decode().splitlines()
    want = [f"{i % 7} s3://{BUCKET}/l/d{i % 3}/e {i:04d}+" for i in range(1203)]
    assert sorted(got) == sorted(want), (len(got), got[:3])
    assert tool("dirs", f"s3://{BUCKET}/l").decode().split() == ["d0", "d1", "d2"]
    assert tool("dirs", f"s3://{BUCKET}").decode().split() == ["l", "l2"]
    tool("delete-tree", f"s3://{BUCKET}/l")
    assert keys() == ["l2/x"], keys()[:5]
    clean()


def no_leftovers():
    assert os.listdir(STAGING) == [], os.listdir(STAGING)
    assert not s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads"), "an upload was left open"


def write(size, limit_kib=None, options=()):
    key = "w/large file=1+.parquet"
    got, digest, peak = tool("write", f"s3://{BUCKET}/{key}", str(size), "65536", options=options).decode().split()
    assert int(got) == size
    assert s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == size
    if size <= 1 << 30:
        h = hashlib.sha256()
        for piece in s3.get_object(Bucket=BUCKET, Key=key)["Body"].iter_chunks(1 << 20):
            h.update(piece)
        assert h.hexdigest() == digest
    assert limit_kib is None or int(peak) <= limit_kib, f"resident: {peak} KiB"
    no_leftovers()
    clean()
    return f"{size} bytes, {peak} KiB resident"


def sizes():
    part = ["s3.multipart.part-size-bytes=5242880"]
    for n in (0, 1, 262144, 262145, 5242880, 7864319, 7864320, 10485760, 10485761, 33554432):
        write(n, options=part)


def batch():
    out = tool("batch", f"s3://{BUCKET}/b/x", "3000", "2000").decode().split()
    assert int(out[0]) == 6000000
    assert len(keys()) == 3000
    assert int(out[1]) < 64 << 10, out
    clean()
    return f"{out[1]} KiB resident"


def abandoned():
    key = "u/left"
    tool("abandon", f"s3://{BUCKET}/{key}", "90000000")
    left = os.listdir(STAGING)
    assert len(left) == 1 and left[0].startswith(".frazil-s3-") and len(os.listdir(os.path.join(STAGING, left[0]))) == 2, left
    assert len(s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]) == 1
    assert int(tool("abort-uploads", f"s3://{BUCKET}/u/")) == 1
    write(1 << 20)  # the next process removes what the dead one left


def denied():
    wrong = {"AWS_SECRET_ACCESS_KEY": "not the one"}
    for args in (("put", f"s3://{BUCKET}/k", "-"), ("get", f"s3://{BUCKET}/k"), ("exists", f"s3://{BUCKET}/k"), ("list", f"s3://{BUCKET}"), ("delete", f"s3://{BUCKET}/k", f"s3://{BUCKET}/l")):
        e = tool(*args, env=wrong, code=1)
        assert e.startswith("USER [file.permission]"), e
        assert "not the one" not in e and os.environ["AWS_SECRET_ACCESS_KEY"] not in e, e
    assert keys() == []


def no_bucket():
    e = tool("put", f"s3://{BUCKET}-not/k", "-", code=1)
    assert e.startswith("USER [file.no-bucket]"), e


def untrusted():
    e = tool("exists", f"s3://{BUCKET}/k", env={"AWS_CA_BUNDLE": ""}, code=1)
    assert e.startswith("USER [net.tls-certificate]"), e


def other_region():  # the verifier names its region when it refuses another
    tool("put", f"s3://{BUCKET}/k", "-", data=b"x", options=["s3.region=eu-central-1"])
    assert keys() == ["k"]
    clean()


def options():
    tool("put", f"s3://{BUCKET}/k", "-", data=b"hello", options=["s3.write.tags.team=a b=c+/@", "s3.write.storage-class=STANDARD_IA", "s3.sse.type=s3", "s3.checksum-enabled=true"])
    assert s3.get_object_tagging(Bucket=BUCKET, Key="k")["TagSet"] == [{"Key": "team", "Value": "a b=c+/@"}]
    head = s3.head_object(Bucket=BUCKET, Key="k")
    assert head["StorageClass"] == "STANDARD_IA" and head["ServerSideEncryption"] == "AES256", head
    tool("delete", f"s3://{BUCKET}/k", options=["s3.delete-enabled=false", "s3.delete.tags.gone=yes"])
    assert sorted(t["Key"] for t in s3.get_object_tagging(Bucket=BUCKET, Key="k")["TagSet"]) == ["gone", "team"]
    clean()


def session_token():
    tool("put", f"s3://{BUCKET}/k", "-", data=b"x", env={"AWS_SESSION_TOKEN": "FwoGZXIvYXdzEBYaD+/=="})
    clean()


def race():  # twenty writers, one name: one wins, and its bytes are there
    out = []

    def one(i):
        cmd = [TOOL, "-o", f"s3.endpoint={ENDPOINT}", "put-if-absent", f"s3://{BUCKET}/race", "-"]
        r = subprocess.run(cmd, input=f"writer {i}".encode(), capture_output=True)
        out.append((r.returncode, i, r.stderr.decode()))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    won = [i for c, i, _ in out if c == 0]
    assert len(won) == 1 and all(e.startswith("CONFLICT [file.exists]") for c, _, e in out if c), out
    assert s3.get_object(Bucket=BUCKET, Key="race")["Body"].read() == f"writer {won[0]}".encode()
    clean()


clean()
for k in KEYS:
    check(f"key {k[:60]!r}", lambda: round_trip(k))
check("listings", listings)
check("sizes", sizes)
check("large", lambda: write(LARGE, limit_kib=128 << 10))
check("batch", batch)
check("abandoned upload", abandoned)
check("no bucket", no_bucket)
check("one winner", race)
if PEER == "moto":
    check("options", options)
    check("session token", session_token)
else:
    check("wrong secret", denied)
    check("other region", other_region)
if PEER == "verifier-tls":
    check("authority not trusted", untrusted)
os.rmdir(STAGING)
sys.exit(failed > 0)
