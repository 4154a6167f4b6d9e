#!/usr/bin/env python3
"""frazil doctor: each trouble that people write about is staged, and the doctor must name that layer and no other.

The job is the one of a published how-to (Kafka -> Glue and S3), with nothing replaced but names and endpoints. AWS is moto behind a front of our own that answers chosen
requests as AWS would; the troubles of TLS, DNS and ports are real ones.

usage: doctor.py [CASE...]   by test/e2e/run.sh, which gives it a broker. Environment: see doctor_world.py."""
import json, os, re, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from aws_front import Front, json_answer, json_error, on, query_error, s3_error
from doctor_world import ACCOUNT, AUTHLOG, B, MOTO, PORTS, REGION, SYSLOG, TABLES, World, article, certificate, expect, keys, moto, run, unused_port
from harness import BIN, Broker, require

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


# ---- all is well ----

@case
def all_green():
    w = World()
    before, seen = keys(w.bucket), len(w.front.seen)
    r = w.doctor()
    require(r.code == 0 and r.ok and not r.of("fail") and not r.of("skipped") and not r.of("warn"), f"not all green ({r.code})\n{r}")
    for code in ("region credentials identity clock endpoint.glue endpoint.s3 kafka.brokers kafka.login kafka.topic kafka.offsets kafka.group catalog database table table.format-version table.writing "
                 "table.schema table.snapshot s3.put s3.get s3.list s3.delete positions checkpoint-dir savepoint-dir dead-letters").split():
        r.step("doctor." + code)
    require("profile 'home-aws'" in r.step("doctor.credentials")["answer"], str(r))
    require(keys(w.bucket) == before, f"left behind: {set(keys(w.bucket)) - set(before)}")
    writes = {o for s, o, p in w.front.seen[seen:] if s == "glue" and not o.startswith("Get")}
    require(not writes, f"Glue was asked to {writes}")
    text = subprocess.run([BIN, "doctor", "-f", f"{w.dir}/job.sql", "-c", w.config], capture_output=True, text=True, env=w.env, cwd=w.dir)
    require(text.returncode == 0 and "the job could run" in text.stdout and text.stdout.count("\nok ") > 20, text.stdout)
    w.close()


@case
def nothing_there_yet():
    """The script makes database and tables: that it would is said, and nothing is made."""
    w = World(tables=False)
    r = w.doctor(article(w.bucket, prelude=TABLES.replace("<YOUR_ICEBERG_BUCKET>", w.bucket)))
    require(r.code == 0 and r.ok, str(r))
    require("the script makes it" in r.step("doctor.database")["answer"] and "the script makes it" in r.step("doctor.table")["answer"], str(r))
    require(keys(w.bucket) == [], f"left behind: {keys(w.bucket)}")
    require(not [o for s, o, p in w.front.seen if s == "glue" and not o.startswith("Get")], "Glue was asked to make something")
    w.close()


# ---- script and settings ----

@case
def wrong_script():
    w = World(tables=False)
    expect(w.doctor(article(w.bucket).replace("TRIM(src_host),", "TRIM(src_hots),", 1)), "doctor.script", "line 48, column 8", "src_hots", "src_host", exit_code=1)
    w.config = w.write("config.yaml", "execution.checkpointing.intervall: 5 min\n")
    expect(w.doctor(), "doctor.settings", "intervall", "did you mean", exit_code=1)
    w.close()


# ---- region, credentials, identity ----

@case
def no_region():
    w = World(tables=False)
    w.write("config", "[profile home-aws]\noutput = json\n")
    expect(w.doctor(article(w.bucket).replace(",\n  'client.region' = 'ap-northeast-1'", ""), config=False, drop=("AWS_REGION", "AWS_DEFAULT_REGION")), "doctor.region", "AWS_REGION", "EnvironmentFile")
    w.close()


@case
def profile_missing():
    w = World(tables=False)
    r = w.doctor(env={"AWS_PROFILE": "home-awss"})
    expect(r, "doctor.credentials", "home-awss", "home-aws")
    require(r.step("doctor.endpoint.glue")["status"] != "fail", str(r))
    r = w.doctor(env={"AWS_SHARED_CREDENTIALS_FILE": f"{w.dir}/nowhere"})
    expect(r, "doctor.credentials", "environment")
    w.close()


@case
def expired():
    w = World()
    w.front.rules.append(on("sts", "GetCallerIdentity", query_error(403, "ExpiredToken", "The security token included in the request is expired")))
    expect(w.doctor(), "doctor.identity", "ExpiredToken", "renew|sso login")
    w.close()


@case
def wrong_secret():
    w = World()
    w.front.rules.append(on("sts", "GetCallerIdentity", query_error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")))
    expect(w.doctor(), "doctor.identity", "SignatureDoesNotMatch", "secret key")
    w.close()


@case
def clock_off():
    """Said, and no failure: requests are signed with the service's time."""
    w = World()
    w.front.clock = -3600
    r = w.doctor()
    require(r.code == 0 and not r.of("fail") and [s["code"] for s in r.of("warn")] == ["doctor.clock"], str(r))
    require("ahead" in r.step("doctor.clock")["answer"], str(r))
    w.close()


# ---- Glue and S3 cannot be reached ----

@case
def glue_unreachable():
    w = World()
    port = unused_port()
    expect(w.doctor(config=False, env={"AWS_ENDPOINT_URL_GLUE": f"http://127.0.0.1:{port}"}), "doctor.endpoint.glue", "net.connect", "nothing answers at http://127.0.0.1:\\d+ on this machine")
    require("security group" not in str(w.doctor(config=False, env={"AWS_ENDPOINT_URL_GLUE": f"http://127.0.0.1:{port}"})), "a port of this machine has no security group")
    r = w.doctor(config=False, env={"AWS_ENDPOINT_URL_GLUE": "https://glue.ap-northeast-9.frazil.invalid"})
    expect(r, "doctor.endpoint.glue", "net.resolve", "region|DNS")
    require(r.step("doctor.s3.put")["status"] in ("ok", "skipped"), str(r))
    w.close()


@case
def s3_unreachable():
    w = World()
    expect(w.doctor(env={"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{unused_port()}"}), "doctor.endpoint.s3", "net.connect")
    w.close()


@case
def bad_certificate():
    """With the CA it is trusted; without it the endpoint is red, and it is the certificate."""
    w = World()
    tls = Front(MOTO, next(PORTS), certificate())
    env = {"AWS_ENDPOINT_URL_GLUE": tls.url}
    expect(w.doctor(config=False, env=env), "doctor.endpoint.glue", "net.tls-certificate", "AWS_CA_BUNDLE")
    r = w.doctor(config=False, env={**env, "AWS_CA_BUNDLE": tls.tls[0]})
    require(r.code == 0, str(r))
    tls.shutdown()
    tls.server_close()
    w.close()


@case
def wrong_region():
    """The bucket is elsewhere."""
    w = World()
    moved = lambda: (301, [("Content-Type", "application/xml"), ("x-amz-bucket-region", "eu-central-1")],
                     b"<Error><Code>PermanentRedirect</Code><Message>The bucket you are attempting to access must be addressed using the specified endpoint.</Message></Error>")
    w.front.rules.append(on("s3", "PutObject DeleteObject ListObjectsV2", moved))
    expect(w.doctor(config=False), "doctor.s3.bucket", "eu-central-1", "region")
    w.close()


# ---- Glue refuses ----

@case
def glue_denied():
    """403 and 404 are two things: a refusal does not say that the database is missing."""
    w = World()
    user = f"User: arn:aws:iam::{ACCOUNT}:user/flink is not authorized to perform: glue:GetDatabase on resource: arn:aws:glue:{REGION}:{ACCOUNT}:database/logs because no identity-based policy allows it"
    w.front.rules.append(on("glue", "GetDatabase", json_error(400, "AccessDeniedException", user)))
    expect(w.doctor(config=False), "doctor.database", "AccessDeniedException", "glue:GetDatabase", "says nothing of whether it exists")
    w.front.rules[:] = [on("glue", "GetTable", json_error(400, "AccessDeniedException", user.replace("GetDatabase", "GetTable")))]
    expect(w.doctor(config=False), "doctor.table", "glue:GetTable", "says nothing of whether it exists")
    w.close()


@case
def database_missing():
    w = World(tables=False)
    expect(w.doctor(config=False), "doctor.database", "there is no database 'logs'", "CREATE DATABASE IF NOT EXISTS")
    w.close()


@case
def table_missing():
    w = World(tables=False)
    w.run(w.catalog() + "CREATE DATABASE glue_prod.logs;")
    expect(w.doctor(config=False), "doctor.table", "there is no table 'syslog_events'", "CREATE TABLE IF NOT EXISTS")
    w.close()


@case
def lake_formation_grants():
    w = World()
    w.front.rules.append(on("glue", "GetTable", json_error(400, "AccessDeniedException", "Insufficient Lake Formation permission(s) on syslog_events")))
    r = w.doctor(config=False)
    expect(r, "doctor.lakeformation.grants", "Insufficient Lake Formation", "aws lakeformation grant-permissions", "DESCRIBE SELECT INSERT", "syslog_events", REGION)
    require(r.step("doctor.lakeformation.admins")["status"] == "ok", str(r))
    w.front.rules.append(on("lakeformation", "GetDataLakeSettings ListPermissions", json_error(400, "AccessDeniedException", "not authorized to perform: lakeformation:GetDataLakeSettings")))
    expect(w.doctor(config=False), "doctor.lakeformation.grants", "cannot be looked at")
    w.close()


# ---- the analytics integration and roles ----

FEDERATED = f"\n  'glue.id' = '{ACCOUNT}:s3tablescatalog/otel-log-pipeline-dev-s3tables',"
INTEGRATED = {"Catalog": {"CatalogId": f"{ACCOUNT}:s3tablescatalog", "Name": "s3tablescatalog",
                          "FederatedCatalog": {"Identifier": f"arn:aws:s3tables:{REGION}:{ACCOUNT}:bucket/*", "ConnectionName": "aws:s3tables", "ConnectionType": "aws:s3tables"}}}


@case
def integration_off():
    """'Database not found' has its reason one layer above."""
    w = World()
    w.front.rules += [on("glue", "GetCatalog", json_error(400, "EntityNotFoundException", "Catalog not found.")),
                      on("glue", "GetDatabase GetTable", json_error(400, "EntityNotFoundException", "Database not found.")),
                      on("lakeformation", "ListPermissions", json_error(400, "InvalidInputException", "Database not found."))]
    r = w.doctor(article(w.bucket, FEDERATED), config=False)
    expect(r, "doctor.catalog.federation", "Catalog not found", "GetCatalog CatalogId=s3tablescatalog", "Enable integration")
    require(r.step("doctor.lakeformation.admins")["status"] == "ok", str(r)) # rests on the identity only
    w.close()


@case
def namespace_missing():
    """The integration is on, and the namespace really is not there."""
    w = World()
    w.front.rules += [on("glue", "GetCatalog", json_answer(INTEGRATED)), on("glue", "GetDatabase GetTable", json_error(400, "EntityNotFoundException", "Database not found.")),
                      on("lakeformation", "ListPermissions", json_error(400, "InvalidInputException", "Database not found."))]
    r = w.doctor(article(w.bucket, FEDERATED), config=False)
    expect(r, "doctor.database", "there is no database 'logs'")
    require(r.step("doctor.catalog.federation")["status"] == "ok", str(r))
    w.close()


@case
def invalid_principal():
    """A role that was never created, as IAM and as Lake Formation say it."""
    role = f"arn:aws:iam::{ACCOUNT}:role/otel-log-pipeline-dev-firehose-s3tables-iceberg"
    w = World()
    w.front.rules.append(on("iam", "GetRole", query_error(404, "NoSuchEntity", "The role with name otel-log-pipeline-dev-firehose-s3tables-iceberg cannot be found.")))
    expect(w.doctor(article(w.bucket, f"\n  'client.assume-role.arn' = '{role}',\n  'client.assume-role.region' = '{REGION}',"), config=False), "doctor.principal", "NoSuchEntity", "terraform apply|create-role")
    w.front.rules[:] = [on("glue", "GetCatalog", json_answer(INTEGRATED)), on("lakeformation", "ListPermissions", json_error(400, "InvalidInputException", f"Invalid principal, {role}"))]
    expect(w.doctor(article(w.bucket, FEDERATED), config=False), "doctor.principal", "Invalid principal", "create-role|terraform")
    w.close()


@case
def role_not_assumable():
    w = World()
    w.front.rules += [on("iam", "GetRole", query_error(403, "AccessDenied", "not authorized to perform: iam:GetRole")),
                      on("sts", "AssumeRole", query_error(403, "AccessDenied", "User is not authorized to perform: sts:AssumeRole"))]
    expect(w.doctor(article(w.bucket, f"\n  'client.assume-role.arn' = 'arn:aws:iam::{ACCOUNT}:role/writer',\n  'client.assume-role.region' = '{REGION}',"), config=False), "doctor.assume-role", "AccessDenied", "trust policy")
    w.close()


# ---- S3 cannot be written ----

@case
def put_denied():
    w = World()
    w.front.rules.append(on("s3", "PutObject", s3_error(403, "AccessDenied", "Access Denied"), f"/{w.bucket}/warehouse/"))
    before = keys(w.bucket)
    expect(w.doctor(), "doctor.s3.put", "403 AccessDenied", f"s3:PutObject on arn:aws:s3:::{w.bucket}/warehouse/logs/syslog_events/\\*", "bucket's policy")
    require(keys(w.bucket) == before, "something was left behind")
    w.close()


@case
def get_list_delete_denied():
    w = World()
    before = keys(w.bucket)
    probe = "/frazil-doctor-"
    for operation, code, action in (("GetObject", "doctor.s3.get", "s3:GetObject"), ("ListObjectsV2", "doctor.s3.list", "s3:ListBucket"), ("DeleteObject", "doctor.s3.delete", "s3:DeleteObject")):
        w.front.rules[:] = [on("s3", operation, s3_error(403, "AccessDenied", "Access Denied"), "" if operation == "ListObjectsV2" else probe)]
        expect(w.doctor(config=False), code, "403 AccessDenied", action)
        require(keys(w.bucket) == before, f"{operation} refused: left behind {set(keys(w.bucket)) - set(before)}")
    w.close()


@case
def store_of_other_keys():
    """Nobody but S3 itself can say that keys are wrong: then it is the credentials that are red, not a right."""
    w = World(tables=False)
    w.front.rules.append(on("s3", "PutObject GetObject DeleteObject ListObjectsV2 HeadObject", s3_error(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")))
    sql = local(w).replace(f"file://{w.dir}/wh'", f"s3://{w.bucket}/wh','client.region'='{REGION}','s3.endpoint'='{w.front.url}','s3.access-key-id'='minio','s3.secret-access-key'='not/a/secret'")
    expect(w.doctor(sql, config=False), "doctor.credentials", "InvalidAccessKeyId", "s3.access-key-id")
    expect(w.doctor(sql.replace(",'s3.access-key-id'='minio','s3.secret-access-key'='not/a/secret'", "")), "doctor.identity", "InvalidAccessKeyId")
    w.front.rules.clear()
    r = w.doctor(sql, config=False)
    require(r.code == 0 and keys(w.bucket) == [], str(r))
    w.close()


@case
def metadata_unreadable():
    w = World()
    w.front.rules.append(on("s3", "GetObject", s3_error(403, "AccessDenied", "Access Denied"), "metadata.json"))
    expect(w.doctor(config=False), "doctor.s3.get", "403 AccessDenied")
    w.close()


@case
def no_bucket():
    w = World(tables=False)
    w.front.rules.append(on("s3", "PutObject GetObject DeleteObject ListObjectsV2", s3_error(404, "NoSuchBucket", "The specified bucket does not exist")))
    expect(w.doctor(article(w.bucket, prelude=TABLES.replace("<YOUR_ICEBERG_BUCKET>", w.bucket)), config=False), "doctor.s3.bucket", "404 NoSuchBucket", "create-bucket")
    w.front.rules.clear()
    moto("DELETE", f"/{w.bucket}")
    r = w.doctor(article(w.bucket, prelude=TABLES.replace("<YOUR_ICEBERG_BUCKET>", w.bucket))) # the settings' directories lie in the same bucket
    expect(r, "doctor.s3.bucket", f"create-bucket --bucket {w.bucket}")
    require("doctor.checkpoint-dir" in [s["code"] for s in r.of("skipped")], str(r))
    r = w.doctor(config=False) # no table, and none that the script makes: whoever makes it meets the bucket next
    require(r.red() == ["doctor.database", "doctor.s3.bucket"], str(r))
    w.close()


@case
def bucket_gone():
    """The catalog still knows the tables; their bucket is gone."""
    w = World()
    w.front.rules.append(on("s3", "PutObject GetObject HeadObject DeleteObject ListObjectsV2", s3_error(404, "NoSuchBucket", "The specified bucket does not exist")))
    expect(w.doctor(config=False), "doctor.s3.bucket", "404 NoSuchBucket", "bucket that is gone")
    w.close()


@case
def staging_directory():
    """Where files wait on their way to S3."""
    w = World()
    w.write("not-a-directory", "x")
    with_dir = article(w.bucket, f"\n  's3.staging-dir' = '{w.dir}/not-a-directory',")
    expect(w.doctor(with_dir, config=False), "doctor.staging-dir", "not-a-directory", "s3.staging-dir")
    r = w.doctor(with_dir.replace("not-a-directory", "staging"), config=False)
    require(r.code == 0 and r.step("doctor.staging-dir")["subject"] == f"{w.dir}/staging" and not os.path.exists(f"{w.dir}/staging"), str(r))
    w.close()


@case
def kms():
    w = World()
    denied = s3_error(403, "AccessDenied", f"User: arn:aws:iam::{ACCOUNT}:user/flink is not authorized to perform: kms:GenerateDataKey on resource: arn:aws:kms:{REGION}:{ACCOUNT}:key/1111 because no identity-based policy allows the kms:GenerateDataKey action")
    w.front.rules.append(on("s3", "PutObject", denied, "/frazil-doctor-"))
    expect(w.doctor(config=False), "doctor.kms", "kms:GenerateDataKey", "key's own|key in the message")
    w.front.rules[:] = [on("s3", "PutObject", s3_error(400, "KMS.DisabledException", "arn:aws:kms:x:y:key/1111 is disabled."), "/frazil-doctor-")]
    expect(w.doctor(config=False), "doctor.kms", "KMS.DisabledException")
    w.close()


@case
def checkpoint_directory():
    w = World()
    w.front.rules.append(on("s3", "PutObject", s3_error(403, "AccessDenied", "Access Denied"), "/frazil/checkpoints/"))
    expect(w.doctor(), "doctor.checkpoint-dir", "403 AccessDenied", "s3:PutObject")
    w.front.rules[:] = [on("s3", "DeleteObject", s3_error(403, "AccessDenied", "Access Denied"), "/frazil/savepoints/")]
    expect(w.doctor(), "doctor.savepoint-dir", "s3:DeleteObject")
    w.close()


# ---- files in S3 that Athena does not show ----

@case
def files_without_a_commit():
    w = World()
    moto("PUT", f"/{w.bucket}/warehouse/logs/syslog_events/data/dt=2026-09-16/host=raspi4-3/00000-0-left-over.parquet", b"PAR1")
    r = w.doctor(config=False)
    require(r.code == 0 and not r.of("fail") and [(s["code"], s["subject"]) for s in r.of("warn")] == [("doctor.table.snapshot", "glue_prod.logs.syslog_events")], str(r))
    require("no query engine sees them" in r.of("warn")[0]["answer"] and "inspect" in r.of("warn")[0]["do"], str(r))
    w.close()


# ---- tables that do not fit ----

def reshape(w, change, name="syslog_events"):
    """Changes a table's metadata.json in place."""
    key = [k for k in keys(w.bucket) if k.endswith(".metadata.json") and f"/{name}/" in k][-1]
    m = json.loads(moto("GET", f"/{w.bucket}/{key}"))
    change(m)
    moto("PUT", f"/{w.bucket}/{key}", json.dumps(m).encode())


@case
def schema_mismatch():
    w = World()

    def change(m):
        fields = m["schemas"][0]["fields"]
        fields[2]["type"] = "int"
        fields[6]["type"] = "string"
        fields[3]["name"] = "prog"
        fields[4]["required"] = True
        m["partition-specs"][0]["fields"].pop()
    reshape(w, change)
    r = w.doctor(config=False)
    expect(r, "doctor.table.schema", "column 3 'host': the table has INT, the query gives STRING", "CAST")
    answer = r.step("doctor.table.schema")["answer"]
    require("column 5 'msg': the table has STRING NOT NULL, the query gives STRING" in answer, answer)
    require("'hr'" in answer and "'ts'" not in answer and "'dt'" not in answer, answer)
    w.close()


@case
def schema_extra_and_missing():
    w = World()
    reshape(w, lambda m: m["schemas"][0]["fields"].append({"id": 8, "name": "facility", "required": False, "type": "string"}))
    expect(w.doctor(config=False), "doctor.table.schema", "7 columns, the table has 8", "nothing for 'facility' STRING")
    w.run(w.catalog() + "DROP TABLE glue_prod.logs.syslog_events; CREATE TABLE glue_prod.logs.syslog_events (ts_raw STRING, ts TIMESTAMP(6), host STRING, program STRING, msg STRING, dt DATE);")
    expect(w.doctor(config=False), "doctor.table.schema", "no place for .* INT")
    w.close()


@case
def format_version_1():
    w = World()

    def change(m):
        m["format-version"] = 1
        m.pop("last-sequence-number", None)
    reshape(w, change)
    expect(w.doctor(config=False), "doctor.table.format-version", "1", "ALTER TABLE .*'format-version' = '2'")
    w.close()


@case
def other_file_format():
    w = World()
    reshape(w, lambda m: m["properties"].update({"write.format.default": "orc"}))
    expect(w.doctor(config=False), "doctor.table.writing", "orc", "parquet|another engine")
    w.close()


# ---- Kafka ----

@case
def kafka_topic_missing():
    w = World()
    expect(w.doctor(article(w.bucket).replace(AUTHLOG, "doctor-autlog"), config=False), "doctor.kafka.topic", "doctor-autlog", "kafka-topics.sh .*--create --topic doctor-autlog")
    w.close()


@case
def kafka_brokers_away():
    w = World()
    expect(w.doctor(article(w.bucket).replace(B.address, f"127.0.0.1:{unused_port()}"), config=False), "doctor.kafka.brokers", "net.connect", "is the broker up")
    expect(w.doctor(article(w.bucket).replace(B.address, "kafka1.frazil.invalid:9092"), config=False), "doctor.kafka.brokers", "net.resolve")
    r = w.doctor(article(w.bucket).replace(B.address, f"{B.address},kafka2.frazil.invalid:9092"), config=False)
    require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.kafka.brokers"], str(r))
    w.close()


@case
def kafka_login():
    """A port that speaks no Kafka, and a login that is refused."""
    w = World()
    host, port = B.address.rsplit(":", 1)
    bad = "'properties.security.protocol' = 'SASL_PLAINTEXT',\n  'properties.sasl.mechanism' = 'PLAIN',\n  'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.plain.PlainLoginModule required username=\"reader\" password=\"not/a/secret\";',"
    sql = article(w.bucket).replace(B.address, f"{host}:{int(port) + 2}").replace("'scan.startup.mode'", bad + "\n  'scan.startup.mode'")
    expect(w.doctor(sql, config=False), "doctor.kafka.login", "refuses the login", "user and password")
    w.close()


@case
def kafka_rights():
    """A broker with ACLs: login, topic and group are three rights."""
    w = World(tables=False)
    port = next(PORTS)
    for _ in range(2):
        next(PORTS)
    broker = Broker(f"127.0.0.1:{port}", f"{w.dir}/kafka")
    os.environ["KAFKA_CONFIG"] = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS"
    os.environ["KAFKA_HEAP"] = "256m"
    try:
        broker.up()
        broker.topic("doctor-acl", 2)
        login = ("'properties.security.protocol'='SASL_PLAINTEXT','properties.sasl.mechanism'='PLAIN','properties.group.id'='g1',"
                 "'properties.sasl.jaas.config'='org.apache.kafka.common.security.plain.PlainLoginModule required username=\"reader\" password=\"reader''s secret\";',")
        sql = local(w).replace(B.address, f"127.0.0.1:{port + 2}").replace(SYSLOG, "doctor-acl").replace("'scan.startup.mode'", login + "'scan.startup.mode'")

        def allow(*args):
            broker.call("tool", "org.apache.kafka.tools.AclCommand", "--bootstrap-server", broker.address, "--add", "--allow-principal", "User:reader", *args)
        expect(w.doctor(sql, config=False), "doctor.kafka.topic", "kafka.authorization", "kafka-acls.sh .*--topic doctor-acl")
        allow("--operation", "Describe", "--topic", "doctor-acl")
        r = w.doctor(sql, config=False) # the group is only told: a warning, unless reading begins at its offsets
        require(r.code == 0 and [s["code"] for s in r.of("warn")] == ["doctor.kafka.group"] and "kafka.authorization" in r.step("doctor.kafka.group")["answer"], str(r))
        expect(w.doctor(sql.replace("earliest-offset", "group-offsets"), config=False), "doctor.kafka.group", "kafka.authorization", "--group g1")
        allow("--operation", "Read", "--topic", "doctor-acl")
        allow("--operation", "Read", "--group", "g1")
        require(w.doctor(sql, config=False).code == 0, "all rights are there")
    finally:
        broker.down()
        del os.environ["KAFKA_CONFIG"], os.environ["KAFKA_HEAP"]
    w.close()


@case
def kafka_msk():
    """A login with IAM rests on the same chain of credentials: when that is empty, the chain is red and not the broker."""
    w = World(tables=False)
    iam = ("'properties.security.protocol' = 'SASL_PLAINTEXT',\n  'properties.sasl.mechanism' = 'AWS_MSK_IAM',\n  'properties.sasl.jaas.config' = 'software.amazon.msk.auth.iam.IAMLoginModule required;',\n"
           "  'properties.sasl.client.callback.handler.class' = 'software.amazon.msk.auth.iam.IAMClientCallbackHandler',")
    sql = local(w).replace("'scan.startup.mode'", iam + "'scan.startup.mode'")
    w.write("credentials", "")
    expect(w.doctor(sql, config=False), "doctor.credentials", "home-aws")
    w.write("credentials", "[home-aws]\naws_access_key_id = AKIAEXAMPLE0000LAST\naws_secret_access_key = not/a/secret+for/anybody\n")
    r = w.doctor(sql, config=False)
    expect(r, "doctor.kafka.login") # this broker knows no such login
    require(r.step("doctor.identity")["status"] == "ok", str(r))
    w.close()


@case
def positions_of_another():
    """The table was written by a pipeline of another name: the doctor says what the job would say."""
    w = World()
    B.produce(SYSLOG, 0, [{"ts": "2026-09-16T12:34:56+09:00", "src_host": "raspi4-3", "program": "sshd", "message": "m"}])
    bounded = article(w.bucket).replace("'scan.startup.mode'", "'scan.bounded.mode' = 'latest-offset',\n  'scan.startup.mode'")
    w.run("SET 'pipeline.name' = 'before';\n" + bounded)
    expect(w.doctor(config=False), "doctor.positions", "another pipeline", "before", "frazil.positions")
    r = w.doctor("SET 'pipeline.name' = 'before';\n" + article(w.bucket), config=False)
    require(r.code == 0 and "1 split goes on from the table" in r.step("doctor.positions")["answer"], str(r))
    w.close()


# ---- S3 Tables ----

def tables_job(w, catalog=True, name="s", more=""):
    arn = f"arn:aws:s3tables:{REGION}:{ACCOUNT}:bucket/otel-dev"
    head = f"CREATE CATALOG {name} WITH ('type'='iceberg','catalog-type'='s3tables','warehouse'='{arn}','client.region'='{REGION}');\n" if catalog else ""
    return (f"{head}{more}CREATE TEMPORARY TABLE src (id BIGINT, host STRING) WITH ('connector'='kafka','topic'='{SYSLOG}','properties.bootstrap.servers'='{B.address}','scan.startup.mode'='earliest-offset',"
            f"'format'='json','json.ignore-parse-errors'='true');\nINSERT INTO {name}.otel.error_logs SELECT id, host FROM src;\n")


def table_bucket(w):
    moto("PUT", "/buckets", b'{"name": "otel-dev"}', {"Host": f"s3tables.{REGION}.amazonaws.com", "Content-Type": "application/json"}, "s3tables")
    w.run(tables_job(w).split("CREATE TEMPORARY")[0] + "CREATE DATABASE s.otel; CREATE TABLE s.otel.error_logs (id BIGINT, host STRING);")


@case
def s3_tables():
    """Its own API: the integration is not needed, and only said to be off; put is asked for without leaving anything, list and delete are not asked."""
    w = World(tables=False)
    table_bucket(w)
    off = on("glue", "GetCatalog", json_error(400, "EntityNotFoundException", "Catalog not found."))
    w.front.rules.append(off)
    r = w.doctor(tables_job(w), config=False)
    require(r.code == 0 and not r.of("fail") and [s["code"] for s in r.of("warn")] == ["doctor.catalog.federation"], str(r))
    require("runs without it" in r.step("doctor.catalog.federation")["answer"], str(r))
    require(not [s for s in r.steps if s["code"] in ("doctor.s3.list", "doctor.s3.delete")], str(r))
    r = w.doctor(tables_job(w, catalog=False, name="`s3tablescatalog/otel-dev`"), config=False)
    require(r.code == 0 and r.step("doctor.table")["status"] == "ok", str(r))
    w.front.rules.append(on("s3", "PostObject PutObject", s3_error(403, "AccessDenied", "Access Denied")))
    expect(w.doctor(tables_job(w), config=False), "doctor.s3.put", "AccessDenied", "s3tables:PutTableData")
    w.front.rules[:] = [off, on("s3tables", "otel", json_error(403, "AccessDeniedException", "not authorized to perform: s3tables:GetNamespace"))]
    expect(w.doctor(tables_job(w), config=False), "doctor.database", "s3tables:GetNamespace", "says nothing of whether")
    w.close()


@case
def no_table_bucket():
    """GetNamespace says the same of a missing bucket and of a missing namespace."""
    w = World(tables=False)
    nothing = json_error(404, "NotFoundException", "The request was rejected because the specified resource could not be found.")
    expect(w.doctor(tables_job(w), config=False), "doctor.catalog", "catalog.no-table-bucket", "create-table-bucket --name otel-dev")
    table_bucket(w)
    w.front.rules.append(lambda s, o, p, b, h: nothing() if s == "s3tables" and "/namespaces/" in p and not p.endswith("otel-dev") else None)
    expect(w.doctor(tables_job(w), config=False), "doctor.database", "there is no database 'otel'")
    # who may not list: the bucket is asked for when the namespace is not found, and the catalog is red, not the database
    w.front.rules[:] = [lambda s, o, p, b, h: json_error(403, "AccessDeniedException", "not authorized")() if s == "s3tables" and p.endswith("otel-dev") and "/namespaces/" in p else None,
                        lambda s, o, p, b, h: nothing() if s == "s3tables" else None]
    expect(w.doctor(tables_job(w), config=False), "doctor.catalog", "catalog.no-table-bucket")
    w.close()


# ---- a REST catalog ----

@case
def rest_refusals():
    """403 and 404 are two answers, with a body and without; nothing is made because of a 403."""
    w = World(tables=False)
    job = (f"CREATE CATALOG r WITH ('type'='iceberg','catalog-type'='rest','uri'='{w.front.url}/rest','token'='not/a/secret');\n"
           f"CREATE DATABASE IF NOT EXISTS r.db;\nCREATE TABLE IF NOT EXISTS r.db.t (id BIGINT, host STRING);\n"
           f"CREATE TEMPORARY TABLE src (id BIGINT, host STRING) WITH ('connector'='kafka','topic'='{SYSLOG}','properties.bootstrap.servers'='{B.address}','scan.startup.mode'='earliest-offset',"
           "'format'='json','json.ignore-parse-errors'='true');\nINSERT INTO r.db.t SELECT id, host FROM src;\n")
    forbidden = (403, [("Content-Type", "application/json")], b'{"error":{"message":"no","type":"ForbiddenException","code":403}}')
    there = (200, [("Content-Type", "application/json")], b'{"namespace":["db"],"properties":{}}')

    def server(namespace, table):
        def rule(service, operation, path, body, headers):
            if path.startswith("/rest/v1/config"):
                return 200, [("Content-Type", "application/json")], b'{"defaults":{},"overrides":{}}'
            if path.split("?")[0].endswith("/tables/t"):
                return table
            return namespace if path.startswith("/rest/") else None
        return rule
    w.front.rules[:] = [server(forbidden, forbidden)]
    expect(w.doctor(job, config=False), "doctor.database", "403", "ForbiddenException", "says nothing of whether it exists|administrator")
    w.front.rules[:] = [server(there, forbidden)]
    expect(w.doctor(job, config=False), "doctor.table", "403", "ForbiddenException")
    w.front.rules[:] = [server(there, (403, [], b""))]
    expect(w.doctor(job, config=False), "doctor.table", "403")
    w.front.rules[:] = [server(there, (404, [("Content-Type", "application/json")], b'{"error":{"message":"Table does not exist: db.t","type":"NoSuchTableException","code":404}}'))]
    r = w.doctor(job, config=False)
    require(r.code == 0 and "the script makes it" in r.step("doctor.table")["answer"], str(r))
    require(not [p for s, o, p in w.front.seen if "/tables?" in p or p.endswith("/namespaces/db/tables")], f"something was made: {w.front.seen}")
    w.front.rules[:] = [lambda s, o, p, b, h: (401, [("Content-Type", "application/json")], b'{"error":{"message":"who?","type":"NotAuthorizedException","code":401}}') if p.startswith("/rest") else None]
    expect(w.doctor(job, config=False), "doctor.catalog", "401")
    expect(w.doctor(job.replace(w.front.url, f"http://127.0.0.1:{unused_port()}"), config=False), "doctor.endpoint.rest", "net.connect")
    w.close()


# ---- without AWS ----

def local(w, extra="", columns="id BIGINT, host STRING"):
    return (f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{w.dir}/catalog.db','warehouse'='file://{w.dir}/wh');\n"
            f"CREATE DATABASE IF NOT EXISTS c.db;\nCREATE TABLE IF NOT EXISTS c.db.t ({columns});\n{extra}"
            f"CREATE TEMPORARY TABLE src (id BIGINT, host STRING) WITH ('connector'='kafka','topic'='{SYSLOG}','properties.bootstrap.servers'='{B.address}','scan.startup.mode'='earliest-offset',"
            "'format'='json','json.ignore-parse-errors'='true');\nINSERT INTO c.db.t SELECT id, host FROM src;\n")


@case
def local_files():
    w = World(tables=False)
    before = sorted(os.listdir(w.dir))
    r = w.doctor(local(w), config=False)
    require(r.code == 0 and r.ok and not r.of("warn"), str(r))
    require(sorted(set(os.listdir(w.dir)) - {"job.sql"}) == [n for n in before if n != "job.sql"], f"left behind: {os.listdir(w.dir)}")
    w.run(f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{w.dir}/catalog.db','warehouse'='file://{w.dir}/wh'); CREATE DATABASE c.db; CREATE TABLE c.db.t (id BIGINT, host STRING);")
    files = sorted(os.path.join(d, f) for d, _, fs in os.walk(f"{w.dir}/wh") for f in fs)
    require(w.doctor(local(w), config=False).code == 0, "a table that is there")
    require(files == sorted(os.path.join(d, f) for d, _, fs in os.walk(f"{w.dir}/wh") for f in fs), "something was left behind")
    w.close()


@case
def local_not_a_catalog():
    w = World(tables=False)
    w.write("catalog.db", "this is no database at all, and long enough to be one" * 30)
    expect(w.doctor(local(w), config=False), "doctor.catalog", "not an SQLite database", "uri")
    w.close()


@case
def local_not_writable():
    w = World(tables=False)
    w.write("wh", "a file where the warehouse should be")
    expect(w.doctor(local(w), config=False), "doctor.files", "wh")
    w.close()


@case
def reads_a_table():
    """INSERT ... SELECT from a table of a catalog: its columns are looked at, not guessed."""
    w = World(tables=False)
    head = f"CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///{w.dir}/catalog.db','warehouse'='file://{w.dir}/wh');\n"
    w.run(head + "CREATE DATABASE c.db; CREATE TABLE c.db.a (id BIGINT, host STRING); CREATE TABLE c.db.b (id BIGINT, host STRING);")
    view = head + "CREATE TEMPORARY VIEW v AS SELECT id, host FROM c.db.a;\n"
    r = w.doctor(view + "INSERT INTO c.db.b SELECT id, host FROM v;", config=False)
    require(r.code == 0, str(r))
    expect(w.doctor(view + "INSERT INTO c.db.b SELECT host, id FROM v;", config=False), "doctor.table.schema", "sql.type-mismatch|the table has BIGINT")
    expect(w.doctor(head + "INSERT INTO c.db.b SELECT id, host FROM c.db.aa;", config=False), "doctor.table", "there is no table 'aa'")
    r = w.doctor(head + "INSERT INTO c.db.a SELECT id, host FROM c.db.b; INSERT INTO c.db.b SELECT id, host FROM c.db.a;", config=False) # both ways
    require(r.code == 0, str(r))
    r = w.doctor(head + "CREATE TABLE IF NOT EXISTS c.db.d LIKE c.db.a; INSERT INTO c.db.d SELECT id, host FROM c.db.a;", config=False)
    require(r.code == 0 and not r.of("fail"), str(r))
    w.close()


if __name__ == "__main__":
    run(CASES)
