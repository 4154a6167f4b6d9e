"""AWS for tests: passes requests on to moto, and answers chosen ones as AWS would when something is wrong."""
import http.client, http.server, json, re, ssl, threading, time


class Front(http.server.ThreadingHTTPServer):
    """Passes requests on to moto. rules: functions of (service, operation, path, body, headers) that give None or (status, headers, body)."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, moto, port, tls=None):
        self.rules, self.seen, self.clock = [], [], 0
        self.tls, self.moto = tls, moto
        super().__init__(("127.0.0.1", port), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        pass

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.server_address[1]}"


def classify(method, path, headers, body):
    """(service, operation)"""
    signed = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", headers.get("authorization", ""))
    service = signed.group(1) if signed else "none"
    if "x-amz-target" in headers:
        return service, headers["x-amz-target"].split(".")[-1]
    if service in ("sts", "iam", "monitoring"):
        action = re.search(rb"Action=(\w+)", body)
        return service, action.group(1).decode() if action else ""
    if service == "s3":
        what = path.partition("?")[2]
        if method == "GET" and "list-type" in what:
            return service, "ListObjectsV2"
        return service, {"PUT": "PutObject", "GET": "GetObject", "DELETE": "DeleteObject", "HEAD": "HeadObject", "POST": "PostObject"}[method]
    return service, path.strip("/").split("?")[0].split("/")[-1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string((timestamp or time.time()) + self.server.clock)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {k.lower(): v for k, v in self.headers.items()}
        service, operation = classify(self.command, self.path, headers, body)
        self.server.seen.append((service, operation, self.path))
        for rule in self.server.rules:
            answer = rule(service, operation, self.path, body, headers)
            if answer:
                return self.reply(*answer)
        c = http.client.HTTPConnection("127.0.0.1", self.server.moto, timeout=30)
        sent = {k: v for k, v in self.headers.items() if k.lower() not in ("connection",)}
        c.request(self.command, self.path, body, sent)
        r = c.getresponse()
        data = r.read()
        kept = [(k, v) for k, v in r.getheaders() if k.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server")]
        if self.command == "HEAD" and r.getheader("content-length"):
            kept.append(("Content-Length", r.getheader("content-length")))
        self.reply(r.status, kept, data, length=self.command != "HEAD" or not r.getheader("content-length"))
        c.close()

    def reply(self, status, headers, body, length=True):
        self.send_response(status)
        for k, v in headers:
            self.send_header(k, v)
        if length and status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


def s3_error(status, code, message):
    def answer(*_):
        return status, [("Content-Type", "application/xml"), ("x-amz-request-id", "4442587FB7D0A2F9")], f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()
    return answer


def json_error(status, code, message):
    return lambda *_: (status, [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-requestid", "3f2a")], json.dumps({"__type": code, "Message": message, "message": message}).encode())


def json_answer(value):
    return lambda *_: (200, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(value).encode())


def query_error(status, code, message):
    return lambda *_: (status, [("Content-Type", "text/xml")], f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error><RequestId>9f</RequestId></ErrorResponse>".encode())


def on(service, operations, answer, path=""):
    names = operations.split()
    return lambda s, o, p, b, h: answer() if s == service and o in names and re.search(path, p) else None
