#!/usr/bin/env python3
"""The fault proxy itself, before it judges others: over a small HTTP service and a small server that speaks PostgreSQL's protocol."""
import http.client
import http.server
import os
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from proxy import Proxy


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    acted = []  # (method, path, Host, body) in the order in which it acted

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.acted.append((self.command, self.path, self.headers["Host"], body))
        said = b"did " + str(len(self.acted)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else said)

    do_GET = do_PUT = do_POST = do_HEAD = do

    def log_message(self, *args):
        pass


def pg_message(kind, body=b""):
    return kind + struct.pack("!I", 4 + len(body)) + body


def take(sock, n):
    out = b""
    while len(out) < n:
        got = sock.recv(n - len(out))
        if not got:
            raise ConnectionResetError
        out += got
    return out


def pg_take(sock):
    head = take(sock, 5)
    return head[:1], take(sock, struct.unpack("!I", head[1:])[0] - 4)


class Database(threading.Thread):
    """Says yes to everything: a session after a password; `acted` holds the statements."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener, self.acted = socket.create_server(("127.0.0.1", 0)), []
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            threading.Thread(target=self.session, args=(self.listener.accept()[0],), daemon=True).start()

    def session(self, s):
        try:
            take(s, struct.unpack("!I", take(s, 4))[0] - 4)
            s.sendall(pg_message(b"R", struct.pack("!I", 3)))
            pg_take(s)
            s.sendall(pg_message(b"R", struct.pack("!I", 0)) + pg_message(b"Z", b"I"))
            while True:
                kind, data = pg_take(s)
                if kind in (b"Q", b"P"):
                    self.acted.append(data.rstrip(b"\0").lstrip(b"\0"))
                if kind in (b"Q", b"S"):
                    s.sendall(pg_message(b"C", b"UPDATE 1\0") + pg_message(b"Z", b"T"))
        except ConnectionError:
            s.close()


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.proxy = Proxy(f"0=127.0.0.1:{cls.server.server_port}")

    @classmethod
    def tearDownClass(cls):
        said = cls.proxy.stop()
        assert "drop-answer: " in said and " requests; " in said, said
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        self.proxy.rules()
        Service.acted.clear()

    def ask(self, method="GET", path="/", body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.proxy.ports[0], timeout=10)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def lost(self, *args, **kw):
        with self.assertRaises((ConnectionError, http.client.HTTPException)):
            self.ask(*args, **kw)

    def paths(self):
        return [a[1] for a in Service.acted]

    def test_passes_as_it_came(self):
        self.assertEqual(self.ask("PUT", "/a//b/../c%2F?x=%20", b"text", {"Host": "bucket.example:77"}), (200, b"did 1"))
        self.assertEqual(Service.acted, [("PUT", "/a//b/../c%2F?x=%20", "bucket.example:77", b"text")])
        self.assertEqual(self.ask("HEAD", "/h"), (200, b""))

    def test_one_connection_many_requests(self):
        c = http.client.HTTPConnection("127.0.0.1", self.proxy.ports[0], timeout=10)
        for k in range(3):
            c.request("POST", f"/{k}", b"x" * 100000)
            self.assertEqual(c.getresponse().read(), b"did %d" % (k + 1))
        c.close()

    def test_drop_answer(self):
        self.proxy.rules({"method": "POST", "path": "/t", "do": "drop-answer"})
        self.lost("POST", "/t")
        self.assertEqual(self.ask("POST", "/t")[0], 200)
        self.assertEqual(self.paths(), ["/t", "/t"])

    def test_reset_the_second_and_third(self):
        self.proxy.rules({"path": "^/t$", "do": "reset", "nth": 2, "times": 2})
        self.ask(path="/t")
        self.lost(path="/t")
        self.ask(path="/u")
        self.lost(path="/t")
        self.ask(path="/t")
        self.assertEqual(self.paths(), ["/t", "/u", "/t"])
        self.assertEqual(self.proxy.state()["rules"][0]["seen"], 4)
        self.assertEqual(self.proxy.hits(), 2)

    def test_answers(self):
        self.proxy.rules({"target": "UpdateTable$", "do": "answer", "status": 503, "answer": "<Error/>"},
                         {"body": "swap", "do": "answer", "status": 504, "answer": "{}", "when": "after"})
        self.assertEqual(self.ask("POST", "/", b"x", {"X-Amz-Target": "AWSGlue.UpdateTable"}), (503, b"<Error/>"))
        self.assertEqual(self.ask("POST", "/", b"a swap"), (504, b"{}"))
        self.assertEqual(len(Service.acted), 1)

    def test_short_answer(self):
        self.proxy.rules({"do": "short-answer"})
        with self.assertRaises(http.client.IncompleteRead):
            self.ask()
        self.assertEqual(len(Service.acted), 1)

    def test_duplicate(self):
        self.proxy.rules({"do": "duplicate"}, {"do": "duplicate", "pick": 1, "nth": 2})
        self.assertEqual(self.ask("POST", "/", b"x"), (200, b"did 2"))
        self.assertEqual(len(Service.acted), 2)

    def test_hold(self):
        self.proxy.rules({"path": "/first", "do": "hold", "until": {"path": "/second"}})
        t = threading.Thread(target=self.ask, kwargs={"path": "/first"})
        t.start()
        while self.proxy.hits() < 1:
            time.sleep(0.01)
        self.ask(path="/other")
        self.ask(path="/second")
        t.join()
        self.assertEqual(self.paths(), ["/other", "/second", "/first"])

    def test_hold_until_released(self):
        self.proxy.rules({"path": "/first", "do": "drop-answer"}, {"path": "/second", "do": "hold", "after": 0})
        self.ask(path="/second")
        self.lost(path="/first")
        t = threading.Thread(target=self.ask, kwargs={"path": "/second"})
        t.start()
        while self.proxy.hits() < 2:
            time.sleep(0.01)
        self.assertEqual(self.paths(), ["/second", "/first"])
        self.proxy.release()
        t.join()
        self.assertEqual(self.paths(), ["/second", "/first", "/second"])

    def test_late(self):
        self.proxy.rules({"path": "/first", "do": "late", "until": {"path": "/second"}})
        self.lost(path="/first")
        self.ask(path="/second")
        while len(Service.acted) < 2:
            time.sleep(0.01)
        self.assertEqual(self.paths(), ["/second", "/first"])

    def test_delay(self):
        self.proxy.rules({"do": "delay", "seconds": 0.2})
        began = time.monotonic()
        self.ask()
        self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_down(self):
        self.proxy.rules({"path": "/t", "do": "down", "seconds": 0.5, "when": "after"})
        self.lost(path="/t")
        with self.assertRaises(ConnectionRefusedError):
            self.ask(path="/u")
        until = time.monotonic() + 10
        while True:
            try:
                self.ask(path="/v")
                break
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
        self.assertEqual(self.paths(), ["/t", "/v"])

    def test_expire(self):
        self.proxy.rules({"path": "/t", "do": "expire", "style": "s3"})
        old, new = ({"Authorization": f"AWS4-HMAC-SHA256 Credential={k}/20260101/r/s3/aws4_request, Signature=0"} for k in ("OLD", "NEW"))
        for _ in range(3):
            status, body = self.ask(path="/t", headers=old)
            self.assertEqual(status, 400)
            self.assertIn(b"<Code>ExpiredToken</Code>", body)
        self.assertEqual(self.ask(path="/t", headers=new)[0], 200)
        self.assertEqual(len(Service.acted), 1)

    def test_unknown_rules_are_refused(self):
        for rule in ({"do": "drop"}, {"do": "reset", "paht": "/"}):
            with self.assertRaises(Exception):
                self.proxy.rules(rule)


class Pg(unittest.TestCase):
    def setUp(self):
        self.db = Database()
        self.proxy = Proxy(f"0=pg:127.0.0.1:{self.db.port}")

    def tearDown(self):
        self.proxy.stop()
        self.db.listener.close()

    def session(self):
        s = socket.create_connection(("127.0.0.1", self.proxy.ports[0]), timeout=10)
        s.sendall(struct.pack("!II", 8, 80877103))  # asks for TLS
        self.assertEqual(take(s, 1), b"N")
        s.sendall(struct.pack("!II", 8, 196608))
        self.assertEqual(pg_take(s)[0], b"R")
        s.sendall(pg_message(b"p", b"secret\0"))
        self.assertEqual([pg_take(s)[0], pg_take(s)[0]], [b"R", b"Z"])
        return s

    def query(self, s, text):
        s.sendall(pg_message(b"Q", text + b"\0"))
        return [pg_take(s)[0], pg_take(s)[0]]

    def extended(self, s, text):
        s.sendall(pg_message(b"P", b"\0" + text + b"\0\0\0") + pg_message(b"B", b"\0\0\0\0\0\0\0\0") + pg_message(b"E", b"\0\0\0\0\0") + pg_message(b"S"))
        return [pg_take(s)[0], pg_take(s)[0]]

    def test_drop_answer_of_commit(self):
        self.proxy.rules({"path": "^COMMIT", "do": "drop-answer"})
        s = self.session()
        self.assertEqual(self.query(s, b"BEGIN"), [b"C", b"Z"])
        with self.assertRaises(ConnectionError):
            self.query(s, b"COMMIT")
        self.assertEqual(self.db.acted, [b"BEGIN", b"COMMIT"])
        s.close()

    def test_reset_before_an_update(self):
        self.proxy.rules({"path": "^UPDATE", "do": "reset"})
        s = self.session()
        with self.assertRaises(ConnectionError):
            self.extended(s, b"UPDATE t SET a = $1")
        s.close()
        s = self.session()
        self.assertEqual(self.extended(s, b"UPDATE t SET a = $1"), [b"C", b"Z"])
        self.assertEqual(len(self.db.acted), 1)
        s.close()

    def test_sqlstate(self):
        self.proxy.rules({"path": "UPDATE", "do": "answer", "sqlstate": "40001"})
        s = self.session()
        self.assertEqual(self.query(s, b"UPDATE t"), [b"E", b"Z"])
        self.assertEqual(self.db.acted, [])
        s.close()

    def test_late_commit(self):
        self.proxy.rules({"path": "^COMMIT", "do": "late", "until": {"path": "^SELECT"}})
        s = self.session()
        with self.assertRaises(ConnectionError):
            self.query(s, b"COMMIT")
        s.close()
        s = self.session()
        self.query(s, b"SELECT 1")
        while len(self.db.acted) < 2:
            time.sleep(0.01)
        self.assertEqual(self.db.acted, [b"SELECT 1", b"COMMIT"])
        s.close()


if __name__ == "__main__":
    unittest.main()
