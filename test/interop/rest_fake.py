"""Iceberg REST catalogs that are stricter than those one can start here, over PyIceberg's own model of metadata, with the files in an S3 server (moto).

What they imitate, and where it is written:
  StrictAws   the Iceberg REST endpoint of S3 Tables (AWS documentation, "Accessing tables using the Amazon S3 Tables Iceberg REST endpoint"): the warehouse is
              the ARN of the table bucket, the prefix its URL-encoded form, requests are signed with SigV4 as s3tables (checked with botocore: signature, payload
              hash, clock), namespaces have one level, tables lie in a bucket of their own without a path ("s3://<id>--table-s3"), a DROP must purge. A header that
              stands twice and Keep-Alive are answered with 400 (timeplus-io/proton#1221).
  Vending     storage-credentials of LoadTableResult and GET .../credentials (rest-catalog-open-api.yaml), that end after some seconds; and the S3 in front of moto
              that takes those alone: signatures checked with botocore, 400 ExpiredToken for old ones (S3 API, "Error responses").
"""
import hashlib
import http.client
import json
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import update_table_metadata


class Refused(Exception):
    def __init__(self, status, kind, message):
        super().__init__(message)
        self.status, self.kind = status, kind


def signature_error(handler, body, auth, secrets, service, region, base):
    """Why the request's SigV4 signature is not good, or None. secrets: access key -> (secret, token)."""
    given = handler.headers.get("Authorization", "")
    if not given.startswith("AWS4-HMAC-SHA256 "):
        return "no signature"
    parts = dict(p.strip().split("=", 1) for p in given.split(" ", 1)[1].split(","))
    key, date, where, what, _ = parts["Credential"].split("/")
    if key not in secrets or (where, what) != (region, service):
        return f"credential {parts['Credential']} is not for {region}/{service}"
    secret, token = secrets[key]
    if handler.headers.get("X-Amz-Security-Token") != token:
        return "another session token"
    stamp = handler.headers["X-Amz-Date"]
    if abs(datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc) - datetime.now(timezone.utc)) > timedelta(minutes=5) or date != stamp[:8]:
        return "Signature expired"
    told = handler.headers.get("X-Amz-Content-SHA256")
    if told not in (None, "UNSIGNED-PAYLOAD") and told != hashlib.sha256(body).hexdigest():
        return "the payload has another hash"
    signed = parts["SignedHeaders"].split(";")
    if "host" not in signed or [h for h in map(str.lower, handler.headers) if h.startswith("x-amz-") and h not in signed]:
        return f"not all is signed: {signed}"
    request = AWSRequest(method=handler.command, url=base + handler.path, data=body, headers={h: handler.headers[h] for h in signed})
    request.context["timestamp"] = stamp
    signer = auth(Credentials(key, secret, token), service, region)
    right = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    return None if right == parts["Signature"] else "the signature does not match"


class Server:
    """An HTTP server on a port of its own; `answer` gives (status, headers, body)."""

    def __init__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    status, headers, out = outer.answer(self, body)
                except Refused as e:
                    status, headers = e.status, {"Content-Type": "application/json"}
                    out = json.dumps({"error": {"message": str(e), "type": e.kind, "code": e.status}}).encode()
                outer.seen.append(f"{self.command} {self.path} {status}")
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k, v)
                if status != 204 and not any(k.lower() == "content-length" for k in headers):
                    self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(out)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

            def log_message(self, *_):
                pass

        self.seen = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


class Catalog(Server):
    """The API over a dictionary. Sub-classes say who may, where tables lie, and what is told with them."""

    prefix = ""
    endpoints = []

    def __init__(self, s3_url):
        self.lock = threading.Lock()
        self.namespaces, self.tables = {}, {}
        self.s3 = boto3.client("s3", endpoint_url=s3_url, aws_access_key_id="moto", aws_secret_access_key="moto", region_name="us-east-1")
        super().__init__()

    def check(self, handler, body):
        pass

    def config(self, query):
        return {"defaults": {}, "overrides": {"prefix": self.prefix} if self.prefix else {}, **({"endpoints": self.endpoints} if self.endpoints else {})}

    def told(self, ident):
        return {}

    def answer(self, handler, body):
        names = [h.lower() for h in handler.headers]
        if len(names) != len(set(names)) or "keep-alive" in names:
            raise Refused(400, "BadRequestException", f"a header twice, or Keep-Alive: {names}")
        self.check(handler, body)
        path, _, query = handler.path.partition("?")
        query = urllib.parse.parse_qs(query, keep_blank_values=True)
        with self.lock:
            if path == "/iceberg/v1/config":
                out = self.config(query)
            else:
                head = f"/iceberg/v1/{self.prefix}/" if self.prefix else "/iceberg/v1/"
                if not path.startswith(head):
                    raise Refused(404, "", f"no such path: {path}")
                out = self.route(handler.command, [urllib.parse.unquote(p) for p in path[len(head):].split("/")], query, json.loads(body) if body else {})
        return (204, {}, b"") if out is None else (200, {"Content-Type": "application/json"}, json.dumps(out).encode())

    def route(self, method, parts, query, body):
        if parts == ["namespaces"] and method == "GET":
            return {"namespaces": [[n] for n in self.namespaces]}
        if parts == ["namespaces"]:
            if body["namespace"][0] in self.namespaces:
                raise Refused(409, "AlreadyExistsException", "it exists")
            self.namespaces[body["namespace"][0]] = body.get("properties", {})
            return {"namespace": body["namespace"], "properties": body.get("properties", {})}
        ns = parts[1]
        if ns not in self.namespaces:
            raise Refused(404, "NoSuchNamespaceException", f"Namespace does not exist: {ns}")
        if len(parts) == 2:
            if method == "DELETE":
                del self.namespaces[ns]
            return {"namespace": [ns], "properties": self.namespaces[ns]} if method == "GET" else None
        if len(parts) == 3 and method == "GET":
            return {"identifiers": [{"namespace": [n], "name": t} for n, t in self.tables if n == ns]}
        if len(parts) == 3:
            return self.create(ns, body)
        return self.table(method, (ns, parts[3]), parts[4:], query, body)

    def table(self, method, ident, tail, query, body):
        if ident not in self.tables:
            raise Refused(404, "NoSuchTableException", f"Table does not exist: {ident}")
        if tail == ["credentials"]:
            return {"storage-credentials": self.told(ident)["storage-credentials"]}
        if method == "GET":
            return self.result(ident)
        if method == "POST":
            return self.commit(ident, body)
        if method == "DELETE":
            self.drop(ident, query)

    def drop(self, ident, query):
        del self.tables[ident]

    def result(self, ident):
        location, metadata = self.tables[ident]
        return {"metadata-location": location, "metadata": json.loads(metadata.model_dump_json()), **self.told(ident)}

    def write(self, ident, metadata, version):
        location = f"{metadata.location}/metadata/{version:05d}-{uuid.uuid4()}.metadata.json"
        bucket, key = location[5:].split("/", 1)
        self.s3.put_object(Bucket=bucket, Key=key, Body=metadata.model_dump_json().encode())
        self.tables[ident] = (location, metadata)

    def create(self, ns, body):
        ident = (ns, body["name"])
        if ident in self.tables:
            raise Refused(409, "AlreadyExistsException", "it exists")
        order = SortOrder.model_validate(body["write-order"]) if body.get("write-order") else UNSORTED_SORT_ORDER
        metadata = new_table_metadata(Schema.model_validate(body["schema"]), PartitionSpec.model_validate(body.get("partition-spec") or {"spec-id": 0, "fields": []}), order,
                                      self.place(ident, body.get("location")), body.get("properties", {}))
        self.write(ident, metadata, 0)
        return self.result(ident)

    def commit(self, ident, body):
        location, base = self.tables[ident]
        request = CommitTableRequest.model_validate(body)
        if tuple(request.identifier.namespace.root) + (request.identifier.name,) != ident:
            raise Refused(400, "BadRequestException", f"identifier {request.identifier} under the path of {ident}")
        try:
            for r in request.requirements:
                r.validate(base)
        except CommitFailedException as e:
            raise Refused(409, "CommitFailedException", str(e)) from e
        self.write(ident, update_table_metadata(base, request.updates, False, location), int(location.rsplit("/", 1)[1][:5]) + 1)
        return {k: v for k, v in self.result(ident).items() if k in ("metadata", "metadata-location")}


class StrictAws(Catalog):
    ARN = "arn:aws:s3tables:eu-west-1:123456789012:bucket/logs"
    KEY, SECRET, TOKEN = "AKIASTRICT", "secret+/=strict", "session/token+="
    prefix = urllib.parse.quote(ARN, safe="")
    # as the documentation lists the operations
    endpoints = ["GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}", "HEAD /v1/{prefix}/namespaces/{namespace}",
                 "DELETE /v1/{prefix}/namespaces/{namespace}", "GET /v1/{prefix}/namespaces/{namespace}/tables", "POST /v1/{prefix}/namespaces/{namespace}/tables",
                 "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}", "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                 "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}", "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}"]

    def check(self, handler, body):
        why = signature_error(handler, body, SigV4Auth, {self.KEY: (self.SECRET, self.TOKEN)}, "s3tables", "eu-west-1", self.url)
        if why:
            raise Refused(403, "AccessDeniedException", why)

    def config(self, query):
        if query.get("warehouse") != [self.ARN]:
            raise Refused(400, "BadRequestException", f"warehouse {query.get('warehouse')}")
        return super().config(query)

    def place(self, ident, asked):
        if asked:
            raise Refused(400, "BadRequestException", "the location cannot be chosen")
        bucket = f"{uuid.uuid4()}--table-s3"
        self.s3.create_bucket(Bucket=bucket)
        return f"s3://{bucket}"

    def create(self, ns, body):
        if body.get("stage-create"):
            raise Refused(400, "BadRequestException", "stage-create is not supported")
        return super().create(ns, body)

    def drop(self, ident, query):
        if query.get("purgeRequested") != ["true"]:
            raise Refused(400, "BadRequestException", "purge must be requested")
        super().drop(ident, query)


class GuardedS3(Server):
    """moto behind a door: only keys that `owner` has vended and that have not ended, with good signatures."""

    def __init__(self, s3_url, owner):
        self.back = urllib.parse.urlsplit(s3_url).netloc
        self.owner = owner
        self.turned_away = 0
        self.users = set()
        super().__init__()

    def answer(self, handler, body):
        key = handler.headers.get("Authorization", "Credential=/").split("Credential=")[1].split("/")[0]
        code = None
        if key not in self.owner.keys:
            code = (403, "InvalidAccessKeyId")
        elif self.owner.keys[key][2] < time.time():
            code = (400, "ExpiredToken")
        else:
            why = signature_error(handler, body, S3SigV4Auth, {key: self.owner.keys[key][:2]}, "s3", "us-east-1", self.url)
            code = (403, "SignatureDoesNotMatch: " + why) if why else None
        if code:
            self.turned_away += 1
            return code[0], {"Content-Type": "application/xml"}, f"<Error><Code>{code[1].split(':')[0]}</Code><Message>{code[1]}</Message></Error>".encode()
        self.users.add(key)
        c = http.client.HTTPConnection(self.back, timeout=30)
        c.request(handler.command, handler.path, body, {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "content-length", "x-amz-security-token")})
        r = c.getresponse()
        out = r.read()
        keep = {k: v for k, v in r.getheaders() if k.lower() in ("etag", "content-type", "content-range", "last-modified") or (k.lower() == "content-length" and handler.command == "HEAD")}
        c.close()
        return r.status, keep, out


class Vending(Catalog):
    """life: seconds that keys are good for. told_life: what the answers say of it."""

    def __init__(self, s3_url, bucket, life, told_life=None, by_endpoint=True):
        self.bucket, self.life, self.told_life = bucket, life, told_life or life
        self.keys = {}
        self.guard = GuardedS3(s3_url, self)
        if by_endpoint:
            self.endpoints = [*StrictAws.endpoints, "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"]
        super().__init__(s3_url)

    def place(self, ident, asked):
        return asked or f"s3://{self.bucket}/vended/{ident[0]}/{ident[1]}"

    def told(self, ident):
        key, now = f"VEND{len(self.keys):04d}", time.time()
        self.keys[key] = (f"secret-of-{key}", f"token-of-{key}", now + self.life)
        mine = {"s3.access-key-id": key, "s3.secret-access-key": self.keys[key][0], "s3.session-token": self.keys[key][1],
                "s3.session-token-expires-at-ms": str(int((now + self.told_life) * 1000))}
        wrong = {**mine, "s3.access-key-id": "VENDWRONG"}
        location = self.tables[ident][1].location
        return {"config": {"s3.endpoint": self.guard.url, "s3.path-style-access": "true", "client.region": "us-east-1"},
                "storage-credentials": [{"prefix": f"s3://{self.bucket}/", "config": wrong}, {"prefix": location, "config": mine}]}

    def stop(self):
        super().stop()
        self.guard.stop()
