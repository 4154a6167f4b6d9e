#!/usr/bin/env python3
"""botocore and frazil in the same environments, beside the same fake services: who finds which credentials?

  aws_chain.py AWS_WHO       the program of test/tools/aws_who.c; needs botocore

One local HTTP server stands for STS, the instance metadata, a container's agent and SSO. What it gives tells what it was asked: the access key of a role is
ROLE-<name>-BY-<who asked>.
"""
import datetime, hashlib, http.server, json, os, re, subprocess, sys, tempfile, threading, urllib.parse

LATER = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Services(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200, kind="application/json"):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def keys(self, name):
        return json.dumps({"Code": "Success", "AccessKeyId": name, "SecretAccessKey": "s", "Token": "t-" + name, "Expiration": LATER})

    def do_PUT(self):
        self.answer("IMDSTOKEN", 200 if self.headers.get("x-aws-ec2-metadata-token-ttl-seconds") else 400, "text/plain")

    def do_GET(self):
        path = self.path
        if path.startswith("/latest/"):
            if self.headers.get("x-aws-ec2-metadata-token") != "IMDSTOKEN":
                return self.answer("", 401)
            if path.endswith("/security-credentials/"):
                return self.answer("instance-role", kind="text/plain")
            if path.endswith("/security-credentials/instance-role"):
                return self.answer(self.keys("IMDS"))
            return self.answer("", 404)
        if path.startswith("/federation/credentials"):
            q = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
            ok = self.headers.get("x-amz-sso_bearer_token") == "ssotoken"
            c = {"accessKeyId": f"SSO-{q['role_name'][0]}-{q['account_id'][0]}", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4102444800000}
            return self.answer(json.dumps({"roleCredentials": c}), 200 if ok else 401)
        if path == "/agent":
            return self.answer(self.keys("AGENT-" + (self.headers.get("Authorization") or "nobody")))
        self.answer("", 404)

    def do_POST(self):
        q = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        by = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization") or "")
        by = by.group(1) if by else "JWT." + q.get("WebIdentityToken", ["?"])[0]
        role = q["RoleArn"][0].split("/")[-1] + "".join("+" + q[k][0] for k in ("ExternalId", "DurationSeconds") if k in q)
        name = q["Action"][0]
        key = f"ROLE-{role}-BY-{by}"
        self.answer(f"""<{name}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{name}Result><AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn>
          <AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t-{key}</SessionToken>
          <Expiration>{LATER}</Expiration></Credentials></{name}Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{name}Response>""", kind="text/xml")

    def log_message(self, *a):
        pass


ASK = """
import json, botocore.session, botocore.exceptions
try:
    s = botocore.session.Session()
    c = s.get_credentials()
    f = c.get_frozen_credentials() if c else None
    print(json.dumps({"access_key": f.access_key, "token": f.token, "region": s.get_config_variable("region")} if f else {"error": "none"}))
except (botocore.exceptions.BotoCoreError, ValueError) as e:
    print(json.dumps({"error": type(e).__name__}))
"""
KEYS = "aws_access_key_id = {0}\naws_secret_access_key = s\n"
ENV = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s"}
ARN = "arn:aws:iam::123456789012:role/"
# name, environment, config, credentials
CASES = [
    ("nothing", {}, "", ""),
    ("environment", ENV, "", "[default]\n" + KEYS.format("FILE")),
    ("environment with token", {**ENV, "AWS_SESSION_TOKEN": "tok"}, "", ""),
    ("environment with half", {"AWS_ACCESS_KEY_ID": "ENV"}, "", ""),
    ("environment beats a profile of the environment", {**ENV, "AWS_PROFILE": "p"}, "[profile p]\nregion = eu-west-3\n", "[p]\n" + KEYS.format("FILE")),
    ("default profile", {}, "", "[default]\n" + KEYS.format("FILE")),
    ("named profile", {"AWS_PROFILE": "p"}, "[profile p]\nregion = eu-west-3\n", "[p]\n" + KEYS.format("FILE") + "aws_session_token = tok\n"),
    ("missing profile", {"AWS_PROFILE": "p"}, "", "[default]\n" + KEYS.format("FILE")),
    ("profile of the config file", {"AWS_DEFAULT_PROFILE": "p"}, "[profile p]\n" + KEYS.format("FILE"), ""),
    ("role", {}, f"[default]\nrole_arn = {ARN}R\nsource_profile = src\nexternal_id = ext\nduration_seconds = 1800\n[profile src]\n" + KEYS.format("SRC"), ""),
    ("role over role", {}, f"[default]\nrole_arn = {ARN}A\nsource_profile = b\n[profile b]\nrole_arn = {ARN}B\nsource_profile = src\n[profile src]\n" + KEYS.format("SRC"), ""),
    ("role of its own keys", {}, f"[default]\nrole_arn = {ARN}R\nsource_profile = default\n" + KEYS.format("SELF"), ""),
    ("role in a circle", {}, f"[default]\nrole_arn = {ARN}A\nsource_profile = b\n[profile b]\nrole_arn = {ARN}B\nsource_profile = default\n", ""),
    ("role without a source", {}, f"[default]\nrole_arn = {ARN}A\n", ""),
    ("role from the environment", {**ENV, "AWS_PROFILE": "p"}, f"[profile p]\nrole_arn = {ARN}R\ncredential_source = Environment\n", ""),
    ("role from the agent", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent"}, f"[default]\nrole_arn = {ARN}R\ncredential_source = EcsContainer\n", ""),
    ("role from the instance", {"IMDS": "1"}, f"[default]\nrole_arn = {ARN}R\ncredential_source = Ec2InstanceMetadata\n", ""),
    ("role over a process", {}, f"[default]\nrole_arn = {ARN}R\nsource_profile = src\n[profile src]\ncredential_process = cat HOME/process.json\n", ""),
    ("web identity", {"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/jwt", "AWS_ROLE_ARN": ARN + "W", "AWS_ROLE_SESSION_NAME": "pod"}, "", ""),
    ("web identity beats the agent", {"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/jwt", "AWS_ROLE_ARN": ARN + "W", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent"}, "", ""),
    ("web identity of a profile", {}, f"[default]\nrole_arn = {ARN}W\nweb_identity_token_file = HOME/jwt\n", ""),
    ("web identity without a role", {"AWS_WEB_IDENTITY_TOKEN_FILE": "HOME/jwt"}, "", ""),
    ("process", {}, "[default]\ncredential_process = cat 'HOME/process.json'\n", ""),
    ("process that fails", {}, "[default]\ncredential_process = false\n", ""),
    ("sso", {}, "[default]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Dev\n[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp/start\n", ""),
    ("sso, legacy", {}, "[default]\nsso_start_url = https://corp/start\nsso_region = eu-west-1\nsso_account_id = 123456789012\nsso_role_name = Old\n", ""),
    ("role over sso", {}, f"[default]\nrole_arn = {ARN}R\nsource_profile = s\n[profile s]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Dev\n"
     "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp/start\n", ""),
    ("sso without a login", {}, "[default]\nsso_start_url = https://other\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Old\n", ""),
    ("agent", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent"}, "", ""),
    ("agent with a token", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "tok"}, "", ""),
    ("agent with a token file", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "tok", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "HOME/jwt"}, "", ""),
    ("agent elsewhere", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/agent"}, "", ""),
    ("agent beats the instance", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/agent", "IMDS": "1"}, "", ""),
    ("instance", {"IMDS": "1"}, "[default]\nregion = eu-west-3\n", ""),
    ("profile without credentials, then the instance", {"IMDS": "1", "AWS_PROFILE": "p"}, "[profile p]\noutput = json\n", ""),
]


def main():
    who = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Services)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    bad = 0
    for name, env, config, credentials in CASES:
        with tempfile.TemporaryDirectory() as home:
            put = lambda s: s.replace("URL", url).replace("HOME", home)
            files = {".aws/config": put(config), ".aws/credentials": credentials, "jwt": "jwt1",
                     "process.json": json.dumps({"Version": 1, "AccessKeyId": "PROCESS", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": LATER})}
            for key in ("corp", "https://corp/start"):
                files[f".aws/sso/cache/{hashlib.sha1(key.encode()).hexdigest()}.json"] = json.dumps({"accessToken": "ssotoken", "expiresAt": LATER, "region": "eu-west-1", "startUrl": "https://corp/start"})
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(home, path)), exist_ok=True)
                with open(os.path.join(home, path), "w") as f:
                    f.write(text)
            e = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and k.lower() not in ("http_proxy", "https_proxy")}
            e.update({"HOME": home, "AWS_ENDPOINT_URL": url})
            if "\nregion" not in config:
                e["AWS_DEFAULT_REGION"] = "eu-west-1"  # botocore does not know AWS_REGION
            e.update({k: put(v) for k, v in env.items() if k != "IMDS"})
            e.update({"AWS_EC2_METADATA_SERVICE_ENDPOINT": url} if "IMDS" in env else {"AWS_EC2_METADATA_DISABLED": "true"})
            run = lambda *a: json.loads(subprocess.run(a, env=e, capture_output=True, text=True, timeout=60, check=True).stdout)
            theirs, mine = run(sys.executable, "-c", ASK), run(who)
        if "error" in theirs:
            same = "error" in mine and (mine["error"] == "aws.no-credentials") == (theirs["error"] == "none")
        else:
            same = all(mine.get(k) == theirs[k] for k in ("access_key", "token", "region"))
        print("ok" if same else "FAILED", name, "" if same else f"botocore {theirs} frazil {mine}")
        bad |= not same
    return bad


if __name__ == "__main__":
    sys.exit(main())
