"""A server in front of another one that lets only requests through whose signature (AWS SigV4) botocore's own code comes to as well.

    with Signed("http://127.0.0.1:5000", key, secret, token) as s: ... s.url ...; s.bad is the list of what was wrong, s.seen how many requests of each service there were
"""
import collections
import hashlib
import http.client
import http.server
import re
import threading
import urllib.parse

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


class Signed:
    def __init__(self, target, key, secret, token=None):
        self.target, self.credentials = urllib.parse.urlsplit(target).netloc, Credentials(key, secret, token)
        self.bad, self.seen = [], collections.Counter()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                wrong = owner.check(self.command, self.path, self.headers, body)
                if wrong:
                    owner.bad.append(f"{self.command} {self.path}: {wrong}")
                    status, headers, data = 403, [("x-amzn-errortype", "InvalidSignatureException")], b'{"__type":"InvalidSignatureException","message":"no"}'
                else:
                    status, headers, data = owner.forward(self.command, self.path, self.headers, body)
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                if status != 204:
                    length = next((v for n, v in headers if n.lower() == "content-length"), "0") if self.command == "HEAD" else str(len(data))
                    self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def check(self, method, path, headers, body):
        """What is wrong with the request, or None."""
        m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", headers.get("authorization", ""))
        if not m:
            return f"authorization {headers.get('authorization')}"
        key, day, region, service, signed, signature = m.groups()
        self.seen[service] += 1
        names = signed.split(";")
        if names != sorted(names) or "host" not in names or any(n.lower() not in names for n in headers if n.lower().startswith("x-amz-") or n.lower() == "content-type"):
            return f"signed headers {signed} of {list(headers)}"
        if len({n.lower() for n in headers}) != len(list(headers)):
            return f"a header twice: {list(headers)}"
        if key != self.credentials.access_key or (self.credentials.token or "") != headers.get("x-amz-security-token", ""):
            return "other credentials"
        digest = headers.get("x-amz-content-sha256")
        if digest not in (None, "UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            return "digest of the body"
        rq = AWSRequest(method=method, url=f"http://{headers['host']}{path}", headers={n: headers[n] for n in names}, data=body)
        rq.context["timestamp"] = headers["x-amz-date"]
        auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(self.credentials, service, region)
        want = auth.signature(auth.string_to_sign(rq, auth.canonical_request(rq)), rq)
        return None if want == signature and headers["x-amz-date"].startswith(day) else f"signature\n{auth.canonical_request(rq)}"

    def forward(self, method, path, headers, body):
        c = http.client.HTTPConnection(self.target, timeout=60)
        try:
            c.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                c.putheader(name, value)
            c.endheaders(body or None)
            answer = c.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            c.close()
