#!/usr/bin/env python3
"""frazil and PyIceberg write to the same tables of REST catalogs, in turn and at once; each reads all rows of both; logins end in the middle.

    rest.py [CASE...]     run by rest.sh. Environment: S3_ENDPOINT (moto), FRAZIL_BIN (build/frazil), FRAZIL_TEST_DIR with the peers' directories
"""
import datetime as dt
import json
import logging
import os
import subprocess
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import pyarrow as pa
from pyiceberg import types as T
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from rest_fake import Server, StrictAws, Vending

BIN = os.path.abspath(os.environ.get("FRAZIL_BIN", os.path.join(HERE, "../../build/frazil")))
URL = os.environ["S3_ENDPOINT"]
DIR = os.environ["FRAZIL_TEST_DIR"]


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def require(ok, message):
    if not ok:
        raise Failure(message)


class Peer:
    """A catalog that both reach: options for frazil, properties for PyIceberg, environment."""

    def __init__(self, options, properties, env=None):
        self.options, self.properties, self.env = options, properties, env or {}

    def run(self, *statements, more=""):
        head = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='rest',{self.options}{more})"
        args = [x for s in (head, "USE CATALOG c", *statements) for x in ("-e", s)]
        return subprocess.run([BIN, "sql", "--format", "json", *args], capture_output=True, text=True, cwd=DIR, env={**os.environ, **self.env})

    def sql(self, *statements, more=""):
        p = self.run(*statements, more=more)
        require(p.returncode == 0, f"{statements}: exit {p.returncode}\n{p.stdout[-500:]}{p.stderr[-1500:]}")
        require("delete-failed" not in p.stderr and "sink.orphan" not in p.stderr, f"something was to be deleted and was not: {p.stderr[-1500:]}")
        return [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]

    def stranger(self):
        return load_catalog("c", type="rest", **self.properties)


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("host", pa.string()), pa.field("ts", pa.timestamp("us")), pa.field("dt", pa.date32())])
CREATE = "CREATE TABLE {} (id BIGINT NOT NULL COMMENT 'key', host STRING, ts TIMESTAMP(6), dt DATE) PARTITIONED BY (dt)"


def row(i):
    return (i, f"web{i}", dt.datetime(2026, 1, 1 + i % 3, 12, 0, i % 60), dt.date(2026, 1, 1 + i % 3))


def arrow(*ids):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row(i))) for i in ids], schema=SCHEMA)


def values(*ids):
    return ", ".join(f"(CAST({i} AS BIGINT), '{h}', TIMESTAMP '{t}', DATE '{d}')" for i, h, t, d in map(row, ids))


def ids(peer, name):
    """What frazil sees, and what PyIceberg sees: the same, whole rows."""
    ours = [tuple(r.values()) for r in peer.sql(f"SELECT id, host, CAST(ts AS STRING) AS ts, CAST(dt AS STRING) AS dt FROM {name}")]
    theirs = [tuple(r.values()) for r in peer.stranger().load_table(tuple(name.split("."))).scan().to_arrow().select(SCHEMA.names).to_pylist()]
    theirs = [(i, h, t.strftime("%Y-%m-%d %H:%M:%S.%f"), d.isoformat()) for i, h, t, d in theirs]
    require(sorted(ours) == sorted(theirs), f"{name}: frazil sees {sorted(ours)}, PyIceberg {sorted(theirs)}")
    require(all(r[1] == f"web{r[0]}" for r in ours), f"{name}: {ours}")
    return sorted(r[0] for r in ours)


def shape(table):
    return table.schema().model_dump_json(), table.spec().model_dump_json()


def in_turn(peer, database="turn_db", listed=5):
    """frazil makes the table; both append, twice each. listed: how many of the five snapshots the server lists."""
    name = f"{database}.turns"
    peer.sql(f"CREATE DATABASE {database}", CREATE.format(name), f"INSERT INTO {name} VALUES {values(1, 2, 3)}")
    table = peer.stranger().load_table((database, "turns"))
    before = shape(table)
    require(table.schema().find_field("id").required and table.schema().find_field("id").doc == "key", before[0])
    require([f.field_id for f in table.schema().fields] == [1, 2, 3, 4] and table.format_version == 2, before[0])
    require(ids(peer, name) == [1, 2, 3], "first rows")
    table.append(arrow(4, 5))
    peer.sql(f"INSERT INTO {name} VALUES {values(6)}")
    peer.stranger().load_table((database, "turns")).append(arrow(7))
    peer.sql(f"INSERT INTO {name} VALUES {values(8, 9)}")
    require(ids(peer, name) == list(range(1, 10)), str(ids(peer, name)))
    table = peer.stranger().load_table((database, "turns"))
    require(shape(table) == before, "schema or spec has changed")
    require(len(table.metadata.snapshots) == listed, str(table.metadata.snapshots))
    return table


def theirs(peer, database="their_db"):
    """PyIceberg makes the table, with a spec that frazil's SQL does not write; frazil's rows fit it."""
    peer.stranger().create_namespace(database)
    schema = Schema(T.NestedField(1, "id", T.LongType(), required=True), T.NestedField(2, "host", T.StringType()), T.NestedField(3, "ts", T.TimestampType()), T.NestedField(4, "dt", T.DateType()))
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "day"), PartitionField(2, 1001, IdentityTransform(), "web"))
    table = peer.stranger().create_table((database, "made"), schema, partition_spec=spec, properties={"owner": "somebody"})
    table.append(arrow(1, 2))
    before = shape(table)
    peer.sql(f"INSERT INTO {database}.made VALUES {values(3, 4, 5)}")
    table = peer.stranger().load_table((database, "made"))
    require(shape(table) == before and table.properties["owner"] == "somebody", f"{shape(table)} {table.properties}")
    require(ids(peer, f"{database}.made") == [1, 2, 3, 4, 5], "rows")
    require({f.file.spec_id for f in table.scan().plan_files()} == {0}, "spec ids")


def at_once(peer, before=()):
    """Four writers, each of which has to commit over the others. before: rows that are there already."""
    database, name = "race_db", "race_db.race"
    peer.sql(f"CREATE DATABASE {database}", CREATE.format(name) + " WITH ('commit.retry.num-retries'='100')", *(f"INSERT INTO {name} VALUES {values(i)}" for i in before))
    failures = []

    def by_frazil(first):
        try:
            for k in range(3):
                peer.sql(f"INSERT INTO {name} VALUES {values(first + k)}")
        except Failure as e:
            failures.append(str(e))

    def by_pyiceberg(first):
        for k in range(3):
            for _ in range(50):
                try:
                    peer.stranger().load_table((database, "race")).append(arrow(first + k))
                    break
                except (CommitFailedException, ValidationException):  # the second where the server lists no older snapshots
                    continue
            else:
                failures.append("PyIceberg never came through")

    threads = [threading.Thread(target=f, args=(n,)) for f, n in ((by_frazil, 100), (by_frazil, 200), (by_pyiceberg, 300), (by_pyiceberg, 400))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(not failures, "\n".join(failures))
    want = [*before] + [base + k for base in (100, 200, 300, 400) for k in range(3)]
    require(ids(peer, name) == want, f"{ids(peer, name)} instead of {want}")


# ---- Apache's fixture, local files ----


S3 = f",'s3.endpoint'='{URL}','s3.access-key-id'='test','s3.secret-access-key'='test','client.region'='us-east-1'"
S3_OF_PYICEBERG = {"s3.endpoint": URL, "s3.access-key-id": "test", "s3.secret-access-key": "test", "s3.region": "us-east-1"}


def address(of):
    with open(f"{DIR}/{of}/{'port' if of == 'kafka' else 'uri'}") as f:
        return f.read().strip()


def fixture():
    return Peer(f"'uri'='{address('fixture')}'", {"uri": address("fixture")})


def fixture_on_s3():
    uri = address("fixture-s3")
    table = in_turn(Peer(f"'uri'='{uri}'{S3}", {"uri": uri, **S3_OF_PYICEBERG}))
    require(table.location() == "s3://lake/fixture/turn_db/turns", table.location())


def fixture_in_turn():
    in_turn(fixture())


def fixture_theirs():
    theirs(fixture())


def fixture_at_once():
    at_once(fixture())


def fixture_names():
    """Pages, databases under others, odd names, drops."""
    peer = fixture()
    peer.sql("CREATE DATABASE outer_db", "CREATE DATABASE `odd name+%`", more=",'rest-page-size'='2'")
    inner = ",'rest-page-size'='2','base-namespace'='outer_db'"
    peer.sql("CREATE DATABASE inner_db", *(f"CREATE TABLE inner_db.t{i} (a INT)" for i in range(5)), "INSERT INTO inner_db.t3 VALUES (7)", more=inner)
    require([r["table name"] for r in peer.sql("SHOW TABLES FROM inner_db", more=inner)] == [f"t{i}" for i in range(5)], "pages of tables")
    require([r["database name"] for r in peer.sql("SHOW DATABASES", more=inner)] == ["inner_db"], "databases under outer_db")
    require(peer.stranger().load_table(("outer_db", "inner_db", "t3")).scan().to_arrow().to_pylist() == [{"a": 7}], "row of t3")
    peer.sql("CREATE TABLE `odd name+%`.`t b` (a INT)", "INSERT INTO `odd name+%`.`t b` VALUES (1)")
    require(peer.stranger().list_tables("odd name+%") == [("odd name+%", "t b")], "odd names")
    p = peer.run("DROP DATABASE inner_db", more=inner)
    require(p.returncode == 1 and "not empty" in p.stderr, p.stderr)
    peer.sql("DROP TABLE `odd name+%`.`t b`", "DROP DATABASE `odd name+%`")
    require(("odd name+%",) not in peer.stranger().list_namespaces(), "dropped, but there")
    p = peer.run("CREATE TABLE inner_db.t3 (a INT)", more=inner)
    require(p.returncode == 1 and "exists already" in p.stderr, p.stderr)


def fixture_login():
    """The fixture's own token endpoint."""
    peer = fixture()
    peer.sql("CREATE DATABASE IF NOT EXISTS login_db", "SHOW DATABASES", more=",'credential'='user:pass-of-user'")
    with open(f"{DIR}/fixture/rest.log") as f:
        require("POST /v1/oauth/tokens 200" in f.read(), "no token was asked for")


# ---- Nessie: a prefix, real 401s, files on S3 ----


def token(seconds):
    return subprocess.run(["bash", f"{HERE}/../peers/iceberg_rest.sh", "token", f"{DIR}/nessie", str(seconds)], check=True, capture_output=True, text=True).stdout.strip()


class Tokens(Server):
    """A token endpoint: tokens of Nessie's key that are good for some seconds. expires_in says `told`, or nothing."""

    def __init__(self, life, told=None):
        self.life, self.told, self.bodies = life, told, []
        super().__init__()

    def answer(self, handler, body):
        self.bodies.append(body.decode())
        out = {"access_token": token(self.life), "token_type": "bearer", **({"expires_in": self.told} if self.told else {})}
        return 200, {"Content-Type": "application/json"}, json.dumps(out).encode()


def nessie(login=None):
    if not os.path.exists(f"{DIR}/nessie/uri"):
        raise Skipped("there is no Java 21 for Nessie")
    uri = address("nessie")
    return Peer(f"'uri'='{uri}'," + (login or "'token'='env:NESSIE_TOKEN'"), {"uri": uri, "token": token(3600), **S3_OF_PYICEBERG}, {"NESSIE_TOKEN": token(3600)})


def nessie_in_turn():
    table = in_turn(nessie(), listed=1)  # the others are in Nessie's own history
    require(table.location().startswith("s3://lake/nessie/"), table.location())


def nessie_theirs():
    theirs(nessie())


def nessie_at_once():
    """Not into an empty table: Nessie 0.99 takes two first commits that both require that there is no snapshot, and the second replaces the first (whoever makes them)."""
    at_once(nessie(), before=(99,))


def nessie_refusals():
    nessie()
    old = token(-60)
    for login, secret in ((f"'token'='{old}'", old), ("'rest.auth.type'='none'", None)):
        p = nessie(login).run("SHOW DATABASES")
        require(p.returncode == 1 and "status 401" in p.stderr, p.stderr)
        require(not secret or secret not in p.stderr + p.stdout, "the token was told")


def slow_insert(peer, name):
    """One commit, some seconds after the table was loaded."""
    peer.sql(f"CREATE DATABASE IF NOT EXISTS {name.split('.')[0]}", f"CREATE TABLE {name} (n BIGINT)",
             "CREATE TEMPORARY TABLE src (n BIGINT) WITH ('connector'='datagen','number-of-rows'='40','rows-per-second'='10','fields.n.kind'='sequence','fields.n.start'='1','fields.n.end'='40')",
             f"INSERT INTO {name} SELECT n FROM src")
    require(peer.stranger().load_table(tuple(name.split("."))).scan().to_arrow().num_rows == 40, "rows")


def nessie_renewal():
    """Tokens of 3 s, of which the JWT alone tells; then such as claim to live for an hour: Nessie's 401 comes in the middle."""
    for told, name in ((None, "renew_db.by_claim"), (3600, "renew_db.by_refusal")):
        tokens = Tokens(3, told)
        slow_insert(nessie(f"'credential'='me:my-secret','oauth2-server-uri'='{tokens.url}/token'"), name)
        tokens.stop()
        require(len(tokens.bodies) >= 2 and all("grant_type=client_credentials&client_id=me" in b for b in tokens.bodies), str(tokens.bodies))


def kafka(*arguments):
    return subprocess.run(["bash", f"{HERE}/../peers/kafka.sh", arguments[0], f"{DIR}/kafka", *arguments[1:]], check=True, capture_output=True, text=True).stdout


def nessie_positions():
    """Nessie lists the current snapshot only. A pipeline goes on where it was all the same, however many strangers have committed on top of it."""
    peer = nessie()
    kafka("topic", "logs", "2")
    peer.sql("CREATE DATABASE pos_db", "CREATE TABLE pos_db.t (n BIGINT)")
    source = ("CREATE TEMPORARY TABLE src (n BIGINT) WITH ('connector'='kafka','topic'='logs','format'='json','scan.startup.mode'='earliest-offset','scan.bounded.mode'='latest-offset',"
              f"'properties.bootstrap.servers'='127.0.0.1:{address('kafka')}','properties.group.id'='g')")
    for k in range(4):
        with open(f"{DIR}/rows", "w") as f:
            f.writelines(f'{{"n": {n}}}\n' for n in range(100 * k, 100 * k + 100))
        kafka("produce", "logs", f"{DIR}/rows")
        peer.sql("SET 'pipeline.name' = 'positions'", source, "INSERT INTO pos_db.t SELECT n FROM src")
        for _ in range(k):
            peer.stranger().load_table(("pos_db", "t")).append(pa.table({"n": pa.array([-1], pa.int64())}))
    peer.sql("SET 'pipeline.name' = 'positions'", source, "INSERT INTO pos_db.t SELECT n FROM src")
    rows = sorted(peer.stranger().load_table(("pos_db", "t")).scan().to_arrow()["n"].to_pylist())
    require(rows == [-1] * 6 + list(range(400)), f"{len(rows)} rows, {len(set(rows))} different ones")


# ---- S3 Tables' endpoint, strict ----


def s3tables_strict():
    fake = StrictAws(URL)
    env = {"AWS_ACCESS_KEY_ID": fake.KEY, "AWS_SECRET_ACCESS_KEY": fake.SECRET, "AWS_SESSION_TOKEN": fake.TOKEN}
    sign = "'rest.sigv4-enabled'='true','rest.signing-name'='s3tables','rest.signing-region'='eu-west-1'"
    signing = {"rest.sigv4-enabled": "true", "rest.signing-name": "s3tables", "rest.signing-region": "eu-west-1"}
    os.environ.update(env)  # for PyIceberg
    peer = Peer(f"'uri'='{fake.url}/iceberg','warehouse'='{fake.ARN}',{sign},'s3.endpoint'='{URL}','client.region'='us-east-1'",
                {"uri": f"{fake.url}/iceberg", "warehouse": fake.ARN, **signing, "s3.endpoint": URL, "s3.region": "us-east-1"}, env)
    table = in_turn(peer)
    files = [f.file.file_path for f in table.scan().plan_files()]
    require(table.location().endswith("--table-s3") and all("//" not in f[5:] and f.startswith(table.location() + "/data/") for f in files), str(files))
    theirs(peer)
    p = peer.run("CREATE TABLE turn_db.x (a INT) WITH ('location'='s3://lake/mine')")
    require(p.returncode == 1 and "the location cannot be chosen" in p.stderr, p.stderr)
    p = Peer(peer.options, {}, {**env, "AWS_SECRET_ACCESS_KEY": "wrong"}).run("SHOW DATABASES")
    require(p.returncode == 1 and "the signature does not match" in p.stderr and "s3tables:GetTableBucket" in p.stderr, p.stderr)
    peer.sql("DROP TABLE turn_db.turns")
    require(("turn_db", "turns") not in fake.tables, "dropped, but there")
    fake.stop()
    for name in env:
        os.environ.pop(name)
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")


# ---- vended credentials ----


def vended():
    """Keys for an hour; frazil has none of its own."""
    fake = Vending(URL, "lake", 3600)
    peer = Peer(f"'uri'='{fake.url}/iceberg'", {"uri": f"{fake.url}/iceberg"}, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
    peer.sql("CREATE DATABASE d", CREATE.format("d.t"), f"INSERT INTO d.t VALUES {values(1, 2)}")
    require(fake.guard.turned_away == 0 and fake.guard.users, f"{fake.guard.users} {fake.guard.seen}")
    require([r["id"] for r in peer.sql("SELECT id FROM d.t ORDER BY id")] == [1, 2], "rows")
    fake.stop()


def vended_renewal(by_endpoint, told_life):
    """Keys for 2 s, and a job of 4: they are renewed, where the server told the truth before they end, and else after S3's refusal."""
    fake = Vending(URL, "lake", 2, told_life, by_endpoint)
    peer = Peer(f"'uri'='{fake.url}/iceberg'", {"uri": f"{fake.url}/iceberg", "s3.endpoint": URL, "header.X-Iceberg-Access-Delegation": ""}, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
    fake.namespaces["d"] = {}
    peer.sql("CREATE TABLE d.slow (n BIGINT)",
             "CREATE TEMPORARY TABLE src (n BIGINT) WITH ('connector'='datagen','number-of-rows'='40','rows-per-second'='10','fields.n.kind'='sequence','fields.n.start'='1','fields.n.end'='40')",
             "INSERT INTO d.slow SELECT n FROM src")
    require([r["n"] for r in peer.sql("SELECT COUNT(*) AS n FROM d.slow")] == [40], "rows")
    asked = [s for s in fake.seen if "/credentials" in s]
    require(bool(asked) == by_endpoint or told_life, f"{fake.seen}")
    require((fake.guard.turned_away > 0) == bool(told_life), f"turned away {fake.guard.turned_away}: {fake.guard.seen}")
    fake.stop()


def vended_by_endpoint():
    vended_renewal(True, None)


def vended_by_load():
    vended_renewal(False, None)


def vended_refused():
    vended_renewal(True, 3600)


CASES = [fixture_in_turn, fixture_theirs, fixture_at_once, fixture_names, fixture_login, fixture_on_s3, nessie_in_turn, nessie_theirs, nessie_at_once, nessie_refusals, nessie_renewal,
         nessie_positions, s3tables_strict, vended, vended_by_endpoint, vended_by_load, vended_refused]


def main():
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    failed = 0
    for case in CASES:
        if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
            continue
        try:
            case()
            print(f"ok     {case.__name__}", flush=True)
        except Skipped as e:
            print(f"left out {case.__name__}: {e}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {case.__name__}: {e}", flush=True)
            if not isinstance(e, Failure):
                traceback.print_exc()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
