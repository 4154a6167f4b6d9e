#!/usr/bin/env python3
"""generate.py > vectors.ndjson: requests signed by botocore (1.40 or so), one JSON object a line. Run in an environment that has botocore.

What is varied: keys with characters that clients get wrong, empty and repeated query values, header blanks, tokens, services that encode the path once or twice."""
import datetime, hashlib, itertools, json, sys
from unittest import mock
from urllib.parse import quote
import botocore
from botocore import auth, awsrequest, credentials

NOW = datetime.datetime(2026, 3, 1, 23, 59, 58, tzinfo=datetime.timezone.utc)
AK, SK, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjE//abc+def=="
keys = ["a", "dt=2025-01-02/host=web+1%2F..%2F\u00e9/0.parquet", "a b", " lead and trail ", "a//b", "/x", "a/../b", "./a", "a/.", "..", "*", "~", "!", "'", "(x)", "a&b=c&d",
        "\U0001f600", "\u65e5\u672c\u8a9e/\u00e9", "100%", "%41", "%2f", "a+b", "a=b", "a:b", "a@b", "a$b", "a,b", "a;b", "a?b", "a#b", "[x]", "{x}", "a|b", "a\\b", "a^b", "a`b", "<a>", '"q"',
        "tab\there", "nul-free\x01", "trailing/", "a" * 300, "._-~", "e\u0301", "\u00ff", "x/y=z/%20+%2B", "metadata/00001-c7f6.metadata.json"]
queries = ["", "list-type=2&prefix=" + quote("dt=1/a+b c\u00e9", safe="") + "&delimiter=%2F", "uploads=", "uploads", "partNumber=1&uploadId=" + quote("a.b_c~d/e+f==", safe=""), "b=2&a=1", "a=2&a=1", "a=1&A=2&a-=3&a0=4",
           "a=b&a%3D=c", "x=&y=&x=1", "versionId=null&max-keys=1", "prefix=%F0%9F%98%80", "warehouse=" + quote("arn:aws:s3tables:us-east-1:123456789012:bucket/b", safe="")]
header_sets = [[], [["Content-Type", "application/json"]], [["x-amz-meta-A", "  a   b  "], ["X-Amz-Storage-Class", "STANDARD_IA"]], [["x-amz-copy-source", "/b/k%20k"], ["Range", "bytes=0-9"]],
               [["X-Amz-Target", "AWSGlue.GetTable"], ["Content-Type", "application/x-amz-json-1.1"]], [["if-none-match", "*"], ["x-amz-tagging", "a=b&c=d"]]]


def cases():
    for i, k in enumerate(keys):
        yield "s3", "GET", "/" + quote(k, safe="/~"), "", header_sets[i % 4], b"", i % 2
        yield "s3", "PUT", "/bucket/" + quote(k, safe="/~"), "partNumber=2&uploadId=x" if i % 3 == 0 else "", header_sets[(i + 1) % 4], ("body %d" % i).encode(), i % 3 == 0
    for i, (q, h) in enumerate(itertools.product(queries, header_sets)):
        yield ("s3", "s3tables", "glue")[i % 3], ("GET", "POST", "DELETE")[i % 3], "/", q, h, b"" if i % 2 else b'{"a":1}', i % 2
    for i, k in enumerate(keys):
        if k in ("a//b", "/x"):
            continue  # botocore keeps what it calls an authority there
        yield "s3tables", "POST", "/iceberg/v1/" + quote(k, safe="~") + "/namespaces", queries[i % len(queries)], header_sets[i % 3], b"{}", i % 2
    for p in ["/a/./b", "/a/../b", "/../a", "/a/b/../", "/.", "/a//b", "/a/b/", "/%2e%2e/a"]:
        yield "execute-api", "GET", p, "", [], b"", 0


def sign(service, method, path, query, headers, body, with_token):
    host = {"s3": "bucket.s3.eu-central-1.amazonaws.com", "s3tables": "s3tables.eu-central-1.amazonaws.com", "glue": "localhost:4566"}.get(service, "example.amazonaws.com")
    c = credentials.Credentials(AK, SK, TOKEN if with_token else None)
    class Signer(auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth):
        pass
    r = awsrequest.AWSRequest(method, f"https://{host}{path}" + (f"?{query}" if query else ""), data=body, headers={"Host": host})
    for k, v in headers:
        r.headers[k] = v
    r.context["client_config"] = None
    r.context["payload_signing_enabled"] = True
    r.context["timestamp"] = None
    with mock.patch.object(auth, "get_current_datetime", lambda remove_tzinfo=True: NOW.replace(tzinfo=None) if remove_tzinfo else NOW):
        Signer(c, service, "eu-central-1").add_auth(r)
    return {"service": service, "region": "eu-central-1", "method": method, "host": host, "path": path, "query": query, "headers": headers, "payload": hashlib.sha256(body).hexdigest(),
            "token": TOKEN if with_token else None, "content_sha256": "X-Amz-Content-SHA256" in r.headers, "authorization": r.headers["Authorization"]}


print(json.dumps({"by": "botocore " + botocore.__version__, "access_key": AK, "secret_key": SK, "now_ms": int(NOW.timestamp() * 1000)}))
n = 0
for case in cases():
    print(json.dumps(sign(*case)))
    n += 1
print(n, "vectors", file=sys.stderr)
