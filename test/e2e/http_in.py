#!/usr/bin/env python3
"""The http connector with the real binary: what is taken and what is refused, tokens, TLS with client certificates, a full spool, and kill -9 during load: every record that was answered 200 is in
the table exactly once. HTTP_IN_ROUNDS: number of kills (default 5)."""
import gzip, http.client, json, os, random, re, shutil, signal, socket, ssl, subprocess, sys, tempfile, threading, time

BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", "build/frazil"))
ROUNDS = int(os.environ.get("HTTP_IN_ROUNDS", "5"))
DIR = tempfile.mkdtemp(prefix="frazil-http-in.")
seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
rnd = random.Random(seed)


def script(name, options="", select="id, w", extra="", columns="id BIGINT, w STRING", more=""):
    path = f"{DIR}/{name}.sql"
    with open(path, "w") as f:
        f.write(f"""
SET 'pipeline.name' = '{name}';
SET 'frazil.state.dir' = '{DIR}/{name}-state';
SET 'execution.checkpointing.interval' = '200 ms';
{extra}
CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{DIR}/{name}.db','warehouse'='file://{DIR}/{name}-wh');
CREATE DATABASE IF NOT EXISTS c.d;
CREATE TABLE IF NOT EXISTS c.d.t (id BIGINT, w STRING);
CREATE TEMPORARY TABLE s ({columns}{more}) WITH ('connector'='http','listen'='127.0.0.1:0'{options});
INSERT INTO c.d.t SELECT {select} FROM s;
""")
    return path


class Job:
    """frazil run; the port is read from its log."""

    def __init__(self, path):
        self.log = open(path + ".log", "ab")
        start = self.log.tell()
        self.p = subprocess.Popen([BIN, "run", path], stdout=self.log, stderr=self.log)
        end = time.time() + 60
        while True:
            with open(path + ".log", "rb") as f:
                f.seek(start)
                text = f.read().decode()
            m = re.search(r"event=source.listening .*address=127.0.0.1:(\d+)", text)
            if m:
                self.port = int(m[1])
                break
            assert self.p.poll() is None and time.time() < end, text
            time.sleep(0.02)
        self.path = path

    def text(self):
        with open(self.path + ".log", "rb") as f:
            return f.read().decode()

    def end(self, sig=signal.SIGTERM):
        self.p.send_signal(sig)
        rc = self.p.wait(60)
        self.log.close()
        assert sig == signal.SIGKILL or rc == 0, (rc, self.text()[-3000:])


def ask(port, method="POST", path="/", body=b"", headers=None, conn=None):
    c = conn or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    data = r.read()
    if not conn:
        c.close()
    return r.status, data.decode(), r.headers


def settle(name, want):
    """The rows, when records that were taken just before the end have been committed too: the next start does that."""
    n, got = -1, rows(name)
    for _ in range(10):
        if len(got) == n and n >= want:
            break
        n = len(got)
        j = Job(f"{DIR}/{name}.sql")
        time.sleep(1)
        j.end()
        got = rows(name)
    return got


def rows(name):
    q = f"""CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{DIR}/{name}.db','warehouse'='file://{DIR}/{name}-wh');
SELECT id, w FROM c.d.t;"""
    with open(f"{DIR}/q.sql", "w") as f:
        f.write(q)
    out = subprocess.run([BIN, "sql", "-f", f"{DIR}/q.sql", "--format", "json"], check=True, capture_output=True, text=True).stdout
    return [json.loads(l) for l in out.splitlines() if l.startswith("{")]


def test_taken_and_refused():
    j = Job(script("plain", ",'max-message-size'='64 kb'", extra="SET 'source.max-record-size' = '1 kb';"))
    ok = [
        (b'{"id":1,"w":"a"}', {}),
        (b'{"id":2}\n{"id":3}\n', {"Content-Type": "application/x-ndjson"}),
        (b'[{"id":4},\n {"id":5}]', {"Content-Type": "application/json; charset=utf-8"}),
        (gzip.compress(b'{"id":6}\n') + gzip.compress(b'{"id":7}'), {"Content-Encoding": "GZIP", "Content-Type": "text/plain"}),
        (b"", {}),
        (b"[]", {}),
    ]
    for body, h in ok:
        status, text, _ = ask(j.port, body=body, headers=h)
        assert status == 200 and json.loads(text)["accepted"] == (body.count(b'"id"') if b"id" in body else 2 if h else 0), (body, status, text)
    bad = [
        (400, 2, b'{"id":91}\n{"id":\n', {}),
        (400, 1, b'{"id":91}x', {}),
        (400, 3, b'[{"id":91},\n{"id":92},\n17]', {}),
        (400, 2, b'{"id":91}\n\xff\n', {}),
        (400, None, b"not gzip", {"Content-Encoding": "gzip"}),
        (400, None, gzip.compress(b'{"id":91}')[:-3], {"Content-Encoding": "gzip"}),
        (413, None, gzip.compress(b" " * 70000), {"Content-Encoding": "gzip"}),
        (413, 2, b'{"id":91}\n{"id":92,"w":"' + b"x" * 1100 + b'"}', {}),
        (415, None, b'{"id":91}', {"Content-Encoding": "br"}),
        (415, None, b'{"id":91}', {"Content-Encoding": "gzip, gzip"}),
        (415, None, b'{"id":91}', {"Content-Type": "application/xml"}),
        (415, None, b'{"id":91}', {"Content-Type": "application/json; charset=latin1"}),
        (403, None, b'{"id":91}', {"Origin": "http://evil.example"}),
    ]
    for want, line, body, h in bad:
        status, text, _ = ask(j.port, body=body, headers=h)
        got = json.loads(text)
        assert status == want and got.get("line") == line and got["error"], (want, line, body[:40], status, text)
    assert ask(j.port, body=b"x" * 65537)[0] == 413
    assert ask(j.port, path="/other", body=b'{"id":91}')[0] == 404
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        status, _, h = ask(j.port, method)
        assert status == 405 and h["Allow"] == "POST", (method, status)
    assert ask(j.port, "GET", "/healthz")[0] == 200
    assert ask(j.port, headers={"X-Long": "x" * 40000})[0] == 431
    j.end()
    got = sorted(r["id"] for r in settle("plain", 7))
    assert got == [1, 2, 3, 4, 5, 6, 7], got


def test_token():
    token = "s3cret-token-%d" % seed
    j = Job(script("token", f",'auth'='token','token'='{token}','path'='/in'"))
    for h in ({}, {"Authorization": "Bearer " + token + "x"}, {"Authorization": "Bearer"}, {"Authorization": token}, {"Authorization": "Basic " + token}):
        status, _, answered = ask(j.port, path="/in", body=b'{"id":9}', headers=h)
        assert status == 401 and answered["WWW-Authenticate"] == "Bearer", h
    assert ask(j.port, path="/in", body=b'{"id":1}', headers={"Authorization": "bearer " + token, "Origin": "http://page.example"})[0] == 200
    j.end()
    assert [r["id"] for r in settle("token", 1)] == [1]
    assert token not in j.text()


def test_tls():
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=DIR)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "1")
    for name in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem", "-days", "1", "-copy_extensions", "copy")
    j = Job(script("tls", f",'tls.cert'='{DIR}/server.pem','tls.key'='{DIR}/server.key','tls.ca'='{DIR}/ca.pem'"))
    cx = ssl.create_default_context(cafile=f"{DIR}/ca.pem")
    try:
        ask(j.port, body=b'{"id":9}', conn=http.client.HTTPSConnection("127.0.0.1", j.port, context=cx, timeout=30))
        raise AssertionError("taken without a certificate")
    except (ssl.SSLError, ConnectionError, http.client.HTTPException):
        pass
    cx.load_cert_chain(f"{DIR}/client.pem", f"{DIR}/client.key")
    c = http.client.HTTPSConnection("127.0.0.1", j.port, context=cx, timeout=30)
    for i in range(20):
        assert ask(j.port, body=b'{"id":%d,"w":"%s"}' % (i, b"y" * 3000 * i), conn=c)[0] == 200
    j.end()
    assert sorted(r["id"] for r in settle("tls", 20)) == list(range(20))


def test_bad_options():
    for options, code in ((",'token'='x'", "option.conflict"), (",'auth'='token'", "option.missing"), (",'path'='in'", "option.invalid"), (",'path'='/healthz'", "option.conflict"), (",'pth'='/'", "option.unknown"),
                          (",'auth'='basic'", "option.invalid"), (",'tls.cert'='/x'", "option.conflict"), (",'tls.cert'='/nowhere','tls.key'='/nowhere'", "listen.tls"), (",'max-connections'='0'", "option.invalid")):
        r = subprocess.run([BIN, "run", script("bad", options)], capture_output=True, text=True, timeout=60)
        assert r.returncode in (1, 2) and code in r.stderr, (options, r.returncode, r.stderr)
    path = script("bad")
    text = open(path).read()
    for address, more, code in (("0.0.0.0:0", "", "listen.open"), ("nonsense", "", "listen.address"), ("0.0.0.0:0", ",'auth'='none'", "listen.open")):
        with open(path, "w") as f:
            f.write(text.replace("127.0.0.1:0'", f"{address}'{more}"))
        r = subprocess.run([BIN, "run", path], capture_output=True, text=True, timeout=60)
        assert r.returncode in (1, 2) and code in r.stderr, (address, r.stderr)


def test_full_spool():
    """No checkpoint comes: the spool fills, senders are told to wait, nothing that was taken is lost, also not by a kill; and there is room again when it has been committed."""
    path = script("full", ",'spool.max-size'='1 mb'")
    quick = open(path).read()
    with open(path, "w") as f:
        f.write(quick.replace("'200 ms'", "'1 h'"))
    j = Job(path)
    accepted, refused = [], 0
    c = http.client.HTTPConnection("127.0.0.1", j.port, timeout=30)
    for n in range(600):
        status, text, h = ask(j.port, body=b'{"id":%d,"w":"%s"}' % (n, os.urandom(5000).hex().encode()), conn=c)
        if status == 200:
            accepted.append(n)
        else:
            assert status == 503 and int(h["Retry-After"]) >= 1, (status, text)
            refused += 1
            if refused == 20:
                break
    assert refused == 20 and 20 < len(accepted) < 200, (refused, len(accepted))
    assert ask(j.port, "GET", "/healthz")[0] == 503
    j.end(signal.SIGKILL)
    with open(path, "w") as f:
        f.write(quick)
    j = Job(path)
    end = time.time() + 60
    while ask(j.port, body=b'{"id":100000}')[0] != 200:
        assert time.time() < end
        time.sleep(0.1)
    j.end()
    got = sorted(r["id"] for r in settle("full", len(accepted) + 1))
    assert got == accepted + [100000], (len(got), len(accepted))


class Sender(threading.Thread):
    """Posts ids, each once; notes which were answered 200."""

    def __init__(self, port, first, acked, sent):
        super().__init__()
        self.port, self.next, self.acked, self.sent, self.stop = port, first, acked, sent, False

    def run(self):
        r = random.Random(self.next)
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while not self.stop:
            ids = list(range(self.next, self.next + r.randrange(1, 200)))
            self.next += len(ids)
            docs = [json.dumps({"id": i, "w": "x" * r.randrange(200)}) for i in ids]
            form = r.randrange(3)
            body = ("[" + ",".join(docs) + "]" if form == 0 else "\n".join(docs)).encode()
            headers = {}
            if form == 2:
                body, headers = gzip.compress(body, 1), {"Content-Encoding": "gzip"}
            self.sent.update(ids)
            try:
                status, text, _ = ask(self.port, body=body, headers=headers, conn=c)
            except (OSError, http.client.HTTPException):
                return
            if status == 200:
                assert json.loads(text)["accepted"] == len(ids)
                self.acked.update(ids)
            elif status != 503:
                raise AssertionError(f"{status} {text}")


def test_kill():
    path = script("kill")
    acked, sent, first = set(), set(), 0
    for round_ in range(ROUNDS + 1):
        last = round_ == ROUNDS
        j = Job(path)
        senders = [Sender(j.port, first + i * 10000000, acked, sent) for i in range(4)]
        first += 40000000
        for s in senders:
            s.start()
        time.sleep(rnd.uniform(0.1, 1.2))
        if last:
            for s in senders:
                s.stop = True
            for s in senders:
                s.join()
        j.end(signal.SIGTERM if last else signal.SIGKILL)
        for s in senders:
            s.stop = True
            s.join()
    got = [r["id"] for r in settle("kill", len(acked))]
    assert len(got) == len(set(got)), f"{len(got) - len(set(got))} records twice"
    assert not acked - set(got), f"{len(acked - set(got))} acknowledged records are lost"
    assert set(got) <= sent
    assert len(acked) > 100 * ROUNDS
    print(f"http_in: {ROUNDS} kills, {len(sent)} records sent, {len(acked)} acknowledged, {len(got)} in the table, each once")


def test_term_under_load():
    """SIGTERM while senders are busy: what was answered 200 is in the table, once."""
    path = script("term")
    acked, sent = set(), set()
    j = Job(path)
    senders = [Sender(j.port, i * 10000000, acked, sent) for i in range(4)]
    for s in senders:
        s.start()
    time.sleep(0.7)
    j.end()
    for s in senders:
        s.stop = True
        s.join()
    got = [r["id"] for r in settle("term", len(acked))]
    assert len(got) == len(set(got)) and not acked - set(got), (len(got), len(set(got)), len(acked - set(got)))


try:
    for test in [v for k, v in list(globals().items()) if k.startswith("test_") and (len(sys.argv) < 2 or k in sys.argv)]:
        test()
        print(f"http_in: {test.__name__}")
except BaseException:
    print(f"http_in: SEED={seed}, kept: {DIR}")
    raise
shutil.rmtree(DIR)
