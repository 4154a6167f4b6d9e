#!/usr/bin/env bash
# Logins to Amazon MSK with IAM, as Java scripts write them, against a real broker whose OAUTHBEARER listener checks the tokens (test/peers/MskLogin.java).
# Environment: FRAZIL_KAFKA_SH (default: test/peers/kafka.sh), B build directory (default: build), KEEP=1 leaves the directory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${B:-$root/build}
kafka_sh=${FRAZIL_KAFKA_SH:-$root/test/peers/kafka.sh}
work=$(mktemp -d)
port=${FRAZIL_MSK_PORT:-$((20000 + RANDOM % 8000))}
failed=0
finish() {
    [ -z "${agent:-}" ] || kill "$agent" 2>/dev/null || true
    bash "$kafka_sh" down "$work/broker" >/dev/null 2>&1 || true
    if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap finish EXIT
for v in $(compgen -v AWS_ || true); do unset "$v"; done
export AWS_EC2_METADATA_DISABLED=true AWS_REGION=eu-west-1

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost 2>/dev/null
cat "$work/key.pem" "$work/cert.pem" >"$work/store.pem"
mkdir "$work/broker"
KAFKA_CLASSES=$(bash "$kafka_sh" classes "$work/broker" MskLogin)
KAFKA_CONFIG="listeners=CLIENTS://127.0.0.1:$port,MSK://127.0.0.1:$((port + 3)),VOTES://127.0.0.1:$((port + 1))
advertised.listeners=CLIENTS://127.0.0.1:$port,MSK://127.0.0.1:$((port + 3))
listener.security.protocol.map=CLIENTS:PLAINTEXT,MSK:SASL_SSL,VOTES:PLAINTEXT
listener.name.msk.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.msk.oauthbearer.sasl.server.callback.handler.class=MskLogin
listener.name.msk.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\" region=\"eu-west-1\" key_AKIAONE=\"one/+=secret\" key_ASIATWO=\"two-secret\";
listener.name.msk.oauthbearer.connections.max.reauth.ms=4000
ssl.keystore.type=PEM
ssl.keystore.location=$work/store.pem"
export KAFKA_CLASSES KAFKA_CONFIG KAFKA_HEAP=${KAFKA_HEAP:-512m}
bash "$kafka_sh" up "$work/broker" "$port" >"$work/up.log" 2>&1 || { cat "$work/up.log"; exit 1; }
bash "$kafka_sh" topic "$work/broker" msk 1
printf 'r%d\n' 1 2 3 >"$work/records"
bash "$kafka_sh" produce "$work/broker" msk "$work/records"
"${CC:-gcc}" -std=c17 -D_GNU_SOURCE -O2 -g ${TEST_CFLAGS:-} -I"$root/src" -o "$work/reader" "$root/test/e2e/kafka_source/kafka_reader.c" \
    -Wl,--start-group "$build"/lib/*.a -Wl,--end-group ${TEST_LIBS:-} $(sed -n "s/^LIBS *:= *//p" "$root/Makefile") -lxxhash

iam=(properties.security.protocol=SASL_SSL properties.ssl.truststore.type=PEM "properties.ssl.truststore.location=$work/cert.pem" topic=msk scan.startup.mode=earliest-offset
    "properties.bootstrap.servers=127.0.0.1:$((port + 3))")
java_iam=(properties.sasl.mechanism=AWS_MSK_IAM properties.sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler)
login=software.amazon.msk.auth.iam.IAMLoginModule
read_table() { # ENVIRONMENT... -- OPTION...
    local env=("HOME=$work")
    while [ "$1" != -- ]; do env+=("$1"); shift; done
    shift
    code=0
    timeout 60 env "${env[@]}" "$work/reader" "${iam[@]}" "$@" >"$work/out" 2>"$work/err" || code=$?
    ! grep -qE 'secret|X-Amz-Signature' "$work/out" "$work/err" || { echo "   a secret is shown"; failed=1; }
}
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then echo "ok $name"; else
        echo "FAILED $name (exit code $code)"; tail -n 3 "$work/out" "$work/err"; grep MskLogin "$work/broker/kafka.log" | tail -n 3; failed=1
    fi
}
all_read() { [ "$code" = 0 ] && [ "$(grep -c '^record' "$work/out")" = 3 ]; }
says() { [ "$code" = 3 ] && grep -qE -- "$1" "$work/out"; }
logged() { grep -qE -- "$1" "$work/broker/kafka.log"; }
ok=(AWS_ACCESS_KEY_ID=AKIAONE 'AWS_SECRET_ACCESS_KEY=one/+=secret')

read_table "${ok[@]}" -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required;" scan.bounded.mode=latest-offset
check "environment, AWS_MSK_IAM" all_read
check "the broker took it" logged 'MskLogin: taken: AKIAONE 8[0-9][0-9]'
read_table "${ok[@]}" AWS_SESSION_TOKEN='a/b+c==' -- properties.sasl.mechanism=OAUTHBEARER \
    properties.sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler \
    'properties.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;' scan.bounded.mode=latest-offset
check "session token, OAUTHBEARER" all_read
mkdir -p "$work/.aws"
printf '[default]\naws_access_key_id = AKIAONE\naws_secret_access_key = wrong-secret\n[team]\naws_access_key_id = ASIATWO\naws_secret_access_key = two-secret\n' >"$work/.aws/credentials"
read_table A=b -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required awsProfileName=\"team\";" scan.bounded.mode=latest-offset
check "awsProfileName" all_read
check "whose it was" logged 'MskLogin: taken: ASIATWO'
read_table A=b -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required;" scan.bounded.mode=latest-offset
check "a wrong secret is refused" says '^error USER kafka.authentication .*kafka-cluster:Connect'
check "why, says the broker" logged 'MskLogin: refused: signature of AKIAONE'
read_table "${ok[@]}" AWS_REGION=us-east-1 -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required;" scan.bounded.mode=latest-offset
check "another region is refused" says '^error USER kafka.authentication'
check "why, says the broker" logged 'MskLogin: refused: host kafka.us-east-1.amazonaws.com'
read_table A=b -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required awsProfileName=\"nobody\";" scan.bounded.mode=latest-offset
check "a profile that is not there" says '^error USER aws.credentials .*nobody'

# A container's agent whose credentials live 5 s, and which is down for 9 s in the middle; the broker ends sessions after 4 s and refuses credentials that
# are over. Each record must come, once.
python3 - "$work" >"$work/agent.port" <<'PY' &
import datetime, http.server, json, sys, threading, time
begin = time.time()
class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        t = time.time() - begin
        down = 6 < t < 15
        until = int(time.time() + 5)
        ends = datetime.datetime.fromtimestamp(until, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = json.dumps({"AccessKeyId": "ASIATWO", "SecretAccessKey": "two-secret", "Token": "until-%d000" % until, "Expiration": ends}).encode()
        self.send_response(503 if down else 200)
        self.send_header("Content-Length", str(0 if down else len(body)))
        self.end_headers()
        if not down: self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(s.server_port, flush=True)
s.serve_forever()
PY
agent=$!
while [ ! -s "$work/agent.port" ]; do sleep 0.1; done
(for i in $(seq 4 22); do echo "r$i" >"$work/one" && bash "$kafka_sh" produce "$work/broker" msk "$work/one" && sleep 1; done) >/dev/null 2>&1 &
producer=$!
rm -rf "$work/.aws"
read_table "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:$(cat "$work/agent.port")/c" -- "${java_iam[@]}" "properties.sasl.jaas.config=$login required;" --ms 22000 --idle-ok
wait "$producer"
every_one() { [ "$code" = 0 ] && diff <(grep '^record' "$work/out" | awk '{ print $NF }') <(printf 'r%d\n' $(seq 22)); }
check "short-lived credentials, an outage, sessions that end" every_one
check "credentials that are over were refused" logged 'MskLogin: refused: expired credentials'
[ "$failed" = 0 ] && echo "kafka_msk: ok"
exit "$failed"
