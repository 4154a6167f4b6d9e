#!/usr/bin/env bash
# The Kafka source against a real broker.
#   run.sh [CASE...]     without arguments: all cases
# Environment: FRAZIL_KAFKA_SH  script that runs a broker: up DIR PORT, down DIR, topic, delete-records, group-offsets, tool (default: test/peers/kafka.sh)
#              B                build directory (default: build)     KEEP=1  leave the broker and its directory
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${B:-$root/build}
kafka_sh=${FRAZIL_KAFKA_SH:-$root/test/peers/kafka.sh}
work=$(mktemp -d)
port=$((20000 + RANDOM % 8000))
servers=127.0.0.1:$port
failed=0
passed=0

K() { bash "$kafka_sh" "$1" "$work/broker" "${@:2}" >"$work/kafka.out" 2>&1 || { cat "$work/kafka.out"; return 1; }; }
write() { "$work/writer" "$servers" "$@" 2>"$work/writer.err" || { cat "$work/writer.err"; return 1; }; }
# Output in $work/out, exit code in $code.
read_table() {
    code=0
    timeout 120 "$work/reader" "properties.bootstrap.servers=$servers" "$@" >"$work/out" 2>"$work/err" || code=$?
}
all="scan.startup.mode=earliest-offset scan.bounded.mode=latest-offset"
has() { grep -qE -- "$1" "$work/out" || { echo "   no line like: $1"; sed 's/^/   | /' "$work/out" | tail -20; tail -n 5 "$work/err"; return 1; }; }
count() { [ "$(grep -cE -- "$1" "$work/out")" = "$2" ] || { echo "   not $2 lines like: $1 ($(grep -cE -- "$1" "$work/out"))"; return 1; }; }
ends() { [ "$code" = "$1" ] || { echo "   exit code $code, not $1"; tail -n 3 "$work/out"; tail -n 3 "$work/err"; return 1; }; }

finish() {
    if [ -n "${secure_pid:-}" ]; then kill "$secure_pid" 2>/dev/null || true; fi
    if [ -z "${KEEP:-}" ]; then
        bash "$kafka_sh" down "$work/broker" >/dev/null 2>&1 || true
        rm -rf "$work"
    else echo "kept: $work (port $port)"; fi
}
trap finish EXIT

# --- cases; each makes topics of its own ---

kinds() { # tombstones, empty values, headers, keys
    K topic kinds 1 && write kinds 0 plain:1 null:1 empty:1 headers:1
    read_table $all topic=kinds --headers
    ends 0 && has '^record kinds/0 0 k1 r1$' && has '^record kinds/0 1 <null> <null>$' && has '^record kinds/0 2 k3 $' &&
        has '^record kinds/0 3 k4 r4 h1=x h2=<null>$' && has '^end kinds/0 4$'
}
transaction_marker_at_end() { # one transaction of 100 records: the log ends at 101, behind the marker
    K topic marker 1 && write marker 0 commit:100
    sleep 2 # the broker writes the marker after it has answered
    read_table $all topic=marker --quiet
    ends 0 && has '^total 100 584 0$' && has '^end marker/0 101$' || return 1
    read_table $all topic=marker --from marker/0=100 --quiet
    ends 0 && has '^total 0 0 0$' && has '^end marker/0 101$'
}
aborted_between_committed() {
    K topic aborted 1 && write aborted 0 commit:1 abort:1 commit:1
    read_table $all topic=aborted
    ends 0 && count '^record' 2 && has '^record aborted/0 0 k1 r1$' && has '^record aborted/0 4 k3 r3$' && has '^end aborted/0 6$' || return 1
    read_table $all topic=aborted properties.isolation.level=read_uncommitted
    ends 0 && count '^record' 3 && has '^end aborted/0 6$'
}
two_producers_interleaved() {
    K topic two 1 && write two 0 two:3 plain:1 abort:2
    read_table $all topic=two
    ends 0 && count '^record' 4 && has ' k1 r1$' && has ' k3 r3$' && has ' k5 r5$' && has ' k7 r7$' && has '^end two/0 12$'
}
open_transaction() { # the end is the high watermark: a bounded read waits for the transaction, and is never given its records before
    K topic opened 1 && write opened 0 plain:2 open:3
    read_table scan.startup.mode=earliest-offset topic=opened --ms 1500 --idle-ok
    ends 0 && count '^record' 2 && has '^end opened/0 2$' && has '^total 2 8 3$'
}
codecs() {
    local c
    K topic codecs 1
    for c in none gzip snappy lz4 zstd; do write codecs 0 compression.type=$c plain:2000; done
    read_table $all topic=codecs
    ends 0 && has '^total 10000 88930 0$' && count '^record codecs/0 [0-9]+ k1 r1$' 5 && count ' k2000 r2000$' 5
}
log_start_beyond_position() {
    K topic expired 1 && write expired 0 plain:1000 && K delete-records expired 0 500
    read_table scan.startup.mode=earliest-offset properties.auto.offset.reset=latest topic=expired --from expired/0=10 --quiet
    ends 3 && has '^error FATAL kafka.offset-gone .*topic expired, partition 0: wanted offset 10, but the log begins at 500 and ends at 1000: 490 offsets'
}
topic_made_anew() {
    local before
    K topic anew 1 && write anew 0 plain:100
    read_table scan.startup.mode=earliest-offset topic=anew --probe anew/0=3
    has '^probe ok 2 ' && before=$(grep ^probe "$work/out")
    K tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --delete --topic anew
    sleep 2
    K topic anew 1 && write anew 0 null:5
    read_table scan.startup.mode=earliest-offset topic=anew --from anew/0=100
    ends 3 && has '^error FATAL kafka.offset-beyond-end .*topic anew, partition 0: wanted offset 100, but the log begins at 0 and ends at 5' || return 1
    read_table scan.startup.mode=earliest-offset topic=anew --probe anew/0=100
    has '^probe beyond' || return 1
    read_table scan.startup.mode=earliest-offset topic=anew --probe anew/0=3
    has '^probe ok 2 ' && [ "$(grep ^probe "$work/out")" != "$before" ]
}
topic_deleted_while_read() {
    K topic deleted 1 && write deleted 0 plain:10
    "$work/reader" "properties.bootstrap.servers=$servers" scan.startup.mode=earliest-offset topic=deleted properties.metadata.max.age.ms=1000 --ms 60000 >"$work/out" 2>"$work/err" &
    local pid=$!
    sleep 2
    K tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --delete --topic deleted
    code=0
    wait $pid || code=$?
    ends 3 && has '^error FATAL kafka.topic-gone'
}
probing() {
    K topic probed 1 && write probed 0 commit:50 abort:200 && K delete-records probed 0 20
    read_table scan.startup.mode=earliest-offset topic=probed --probe probed/0=252
    has '^probe ok 49 ' || return 1
    read_table scan.startup.mode=earliest-offset topic=probed --probe probed/0=20
    has '^probe gone' || return 1
    K delete-records probed 0 60
    read_table scan.startup.mode=earliest-offset topic=probed --probe probed/0=252
    has '^probe gone'
}
latest_is_a_number() {
    K topic latest 3 && write latest 0 plain:5 && write latest 1 plain:5
    read_table scan.startup.mode=latest-offset topic=latest --ms 1000 --idle-ok
    has '^split latest/0 5 0 - 0 5 0$' && has '^split latest/2 0 1 - 0 0 0$' && has '^end latest/2 0$' || return 1
    write latest 2 plain:1
    read_table scan.startup.mode=latest-offset topic=latest --from latest/2=0 --from latest/0=5 --ms 1000 --idle-ok
    count '^record' 1 && has '^record latest/2 0 k1 r1$'
}
partitions_found_later() {
    K topic grown 1 && write grown 0 plain:2
    "$work/reader" "properties.bootstrap.servers=$servers" scan.startup.mode=latest-offset topic-pattern='grow[n]\w?' \
        'scan.topic-partition-discovery.interval=500 ms' --ms 8000 --idle-ok >"$work/out" 2>"$work/err" &
    local pid=$!
    sleep 1
    K tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --alter --topic grown --partitions 2
    write grown 1 plain:10
    K topic grown2 1 && write grown2 0 plain:3
    code=0
    wait $pid || code=$?
    ends 0 && has '^split grown/0 2 0' && has '^split grown/1 0 1 .* 1$' && has '^split grown2/0 0 1 .* 1$' && count '^record grown/1' 10 && count '^record grown2/0' 3
}
huge_record() {
    K topic huge 1 max.message.bytes=110000000 && write huge 0 plain:1 size:100000000 plain:1
    read_table $all topic=huge
    ends 0 && count '^record' 3 && has '^record huge/0 1 <null> <oversized>$' && has '^record huge/0 2 k3 r3$' && has '^end huge/0 3$'
}
group_offsets() {
    K topic grouped 1 && write grouped 0 plain:10
    read_table scan.startup.mode=group-offsets topic=grouped properties.group.id=g1
    ends 3 && has '^error USER kafka.no-committed-offset' || return 1
    read_table $all topic=grouped properties.group.id=g1 --report --quiet
    ends 0 || return 1
    write grouped 0 plain:3
    read_table scan.startup.mode=group-offsets scan.bounded.mode=latest-offset topic=grouped properties.group.id=g1
    ends 0 && has '^split grouped/0 10 0 13' && count '^record' 3 || return 1
    read_table scan.startup.mode=group-offsets scan.bounded.mode=latest-offset topic=grouped properties.group.id=g2 properties.auto.offset.reset=earliest
    ends 0 && count '^record' 13 || return 1
    read_table scan.startup.mode=earliest-offset scan.bounded.mode=group-offsets topic=grouped properties.group.id=g1
    ends 0 && count '^record' 10 && has '^end grouped/0 10$'
}
starts_and_stops() {
    K topic places 2 && write places 0 plain:10
    local now
    sleep 1
    now=$(date +%s%3N)
    sleep 1
    write places 0 plain:5
    read_table topic=places scan.startup.mode=timestamp scan.startup.timestamp-millis=$now scan.bounded.mode=latest-offset
    ends 0 && has '^split places/0 10 0 15' && has '^split places/1 0 1 0' && count '^record' 5 || return 1
    read_table topic=places scan.startup.mode=earliest-offset scan.bounded.mode=timestamp scan.bounded.timestamp-millis=$now
    ends 0 && count '^record' 10 && has '^end places/0 10$' || return 1
    read_table topic=places scan.startup.mode=specific-offsets 'scan.startup.specific-offsets=partition:0,offset:3' scan.bounded.mode=specific-offsets \
        'scan.bounded.specific-offsets=partition:0,offset:7;partition:1,offset:0'
    ends 0 && count '^record' 4 && has '^record places/0 3 ' && has '^record places/0 6 ' && has '^end places/0 7$'
}
rewinding() { # unassign and assign again; with many splits in turns, and little memory
    local p
    K topic turns 20
    for p in $(seq 0 19); do write turns "$p" plain:500; done
    read_table $all topic=turns --rewind --readers 2 --memory 4000000 --quiet
    ends 0 && has '^total 20000 ' && count '^end turns/[0-9]+ 500$' 20
}
away() { # the broker goes away in the middle
    K topic away 1 && write away 0 plain:10
    "$work/reader" "properties.bootstrap.servers=$servers" scan.startup.mode=earliest-offset scan.bounded.mode=specific-offsets \
        scan.bounded.specific-offsets=partition:0,offset:15 topic=away --ms 60000 >"$work/out" 2>"$work/err" &
    local pid=$!
    sleep 2
    K down && sleep 2 && { bash "$kafka_sh" up "$work/broker" "$port" >"$work/up.log" 2>&1 || { cat "$work/up.log"; return 1; }; }
    write away 0 plain:5
    code=0
    wait $pid || code=$?
    ends 0 && count '^record' 15 && has '^end away/0 15$' && grep -q 'event=kafka.connection' "$work/err"
}
wrong_options() {
    read_table topic=nosuch scan.startup.mode=earliest-offset
    ends 3 && has '^error USER kafka.unknown-topic' || return 1
    read_table topic=x properties.ssl.ca.location=/x
    ends 3 && has '^error USER option.refused .*ssl.truststore.location' || return 1
    read_table topic=x properties.isolation.leval=x
    ends 3 && has "^error USER option.unknown .*did you mean 'properties.isolation.level'" || return 1
    code=0
    "$work/reader" properties.bootstrap.servers=127.0.0.1:1 topic=x scan.startup.mode=earliest-offset >"$work/out" 2>"$work/err" || code=$?
    ends 3 && has '^error RETRY kafka.unreachable'
}

# A second broker with TLS and logins; it runs beside the first from the same jars.
secure_broker() {
    local d=$work/secure p=$((port + 10)) plain scram
    [ -z "${secure_pid:-}" ] || return 0
    mkdir -p "$d"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$d/key.pem" -out "$d/cert.pem" -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
    openssl pkcs8 -topk8 -nocrypt -in "$d/key.pem" -out "$d/key8.pem"
    cat "$d/key8.pem" "$d/cert.pem" >"$d/store.pem"
    openssl pkcs12 -export -in "$d/cert.pem" -inkey "$d/key.pem" -passout pass:store-secret -out "$d/store.p12"
    plain='org.apache.kafka.common.security.plain.PlainLoginModule required username=\"admin\" password=\"x\" user_reader=\"right; \\\\\"word\";'
    scram='org.apache.kafka.common.security.scram.ScramLoginModule required;'
    cat >"$d/server.properties" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((p + 3))
listeners=PLAINTEXT://127.0.0.1:$p,SASL_PLAINTEXT://127.0.0.1:$((p + 1)),SASL_SSL://127.0.0.1:$((p + 2)),CONTROLLER://127.0.0.1:$((p + 3)),SSL://127.0.0.1:$((p + 4))
advertised.listeners=PLAINTEXT://127.0.0.1:$p,SASL_PLAINTEXT://127.0.0.1:$((p + 1)),SASL_SSL://127.0.0.1:$((p + 2)),SSL://127.0.0.1:$((p + 4))
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT,SSL:SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config=$(printf %b "${plain//\\\"/\"}")
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=$scram
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=$scram
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=$scram
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="x" user_reader="secret";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=$scram
ssl.keystore.type=PEM
ssl.keystore.location=$d/store.pem
ssl.truststore.type=PEM
ssl.truststore.location=$d/cert.pem
listener.name.ssl.ssl.client.auth=required
log.dirs=$d/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
CONF
    K tool kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$d/server.properties" || return 1
    (exec bash "$kafka_sh" tool "$work/broker" kafka.Kafka "$d/server.properties") >"$d/log" 2>&1 &
    secure_pid=$!
    local up=
    for _ in $(seq 60); do
        if kcat -b "127.0.0.1:$p" -L -m 2 >/dev/null 2>&1; then up=1 && break; fi
        sleep 0.5
    done
    [ -n "$up" ] || { tail -n 5 "$d/log"; return 1; }
    local m
    for m in SCRAM-SHA-256 SCRAM-SHA-512; do
        K tool kafka.admin.ConfigCommand --bootstrap-server "127.0.0.1:$p" --alter --entity-type users --entity-name reader \
            --add-config "$m=[password=secret]" || return 1
    done
    K tool org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$p" --create --topic safe --partitions 1 --replication-factor 1
    "$work/writer" "127.0.0.1:$p" safe 0 plain:3
}
secure_read() { # PORT-OFFSET OPTION...
    code=0
    timeout 60 "$work/reader" "properties.bootstrap.servers=127.0.0.1:$((port + 10 + $1))" topic=safe $all "${@:2}" >"$work/out" 2>"$work/err" || code=$?
    ! grep -qE 'secret|right;' "$work/out" "$work/err" || { echo "   a secret is shown"; return 1; }
}
scram_ends() { # librdkafka before 2.6.1 cannot log in to this broker by SCRAM, and the error must say why
    if [ "$code" = 0 ]; then count '^record' 3; else ends 3 && has '^error USER kafka.authentication .*librdkafka before 2.6.1'; fi
}
jaas() { echo "properties.sasl.jaas.config=org.apache.kafka.common.security.$1LoginModule required username=\"reader\" password=\"$2\";"; }
logins() {
    secure_broker || return 1
    local m
    for m in SCRAM-SHA-256 SCRAM-SHA-512; do
        secure_read 1 properties.security.protocol=SASL_PLAINTEXT properties.sasl.mechanism=$m "$(jaas scram.Scram secret)" || return 1
        scram_ends || return 1
    done
    secure_read 1 properties.security.protocol=SASL_PLAINTEXT properties.sasl.mechanism=PLAIN "$(jaas plain.Plain 'right; \"word')" || return 1
    ends 0 && count '^record' 3 || return 1
    secure_read 1 properties.security.protocol=SASL_PLAINTEXT properties.sasl.mechanism=SCRAM-SHA-512 "$(jaas scram.Scram wrong-secret)" || return 1
    ends 3 && has '^error USER kafka.authentication' || return 1
    secure_read 1 properties.security.protocol=SASL_PLAINTEXT properties.sasl.mechanism=PLAIN "$(jaas plain.Plain wrong-secret)" || return 1
    ends 3 && has '^error USER kafka.authentication'
}
tls() {
    secure_broker || return 1
    local d=$work/secure
    secure_read 2 properties.security.protocol=SASL_SSL properties.sasl.mechanism=PLAIN "$(jaas plain.Plain secret)" properties.ssl.truststore.type=PEM \
        "properties.ssl.truststore.location=$d/cert.pem" || return 1
    ends 0 && count '^record' 3 || return 1
    secure_read 2 properties.security.protocol=SASL_SSL properties.sasl.mechanism=SCRAM-SHA-512 "$(jaas scram.Scram secret)" properties.ssl.truststore.type=PEM \
        "properties.ssl.truststore.certificates=$(cat "$d/cert.pem")" || return 1
    scram_ends || return 1
    secure_read 4 properties.security.protocol=SSL properties.ssl.truststore.type=PEM "properties.ssl.truststore.location=$d/cert.pem" \
        properties.ssl.keystore.type=PEM "properties.ssl.keystore.location=$d/store.pem" || return 1
    ends 0 && count '^record' 3 || return 1
    secure_read 4 properties.security.protocol=SSL properties.ssl.truststore.type=PEM "properties.ssl.truststore.location=$d/cert.pem" \
        properties.ssl.keystore.type=PKCS12 "properties.ssl.keystore.location=$d/store.p12" properties.ssl.keystore.password=store-secret || return 1
    ends 0 && count '^record' 3 || return 1
    secure_read 2 properties.security.protocol=SASL_SSL properties.sasl.mechanism=PLAIN "$(jaas plain.Plain secret)" || return 1 # not trusted
    ends 3 && has '^error USER kafka.tls'
}

CASES="kinds transaction_marker_at_end aborted_between_committed two_producers_interleaved open_transaction codecs log_start_beyond_position topic_made_anew
topic_deleted_while_read probing latest_is_a_number partitions_found_later huge_record group_offsets starts_and_stops rewinding wrong_options logins tls away"

# librdkafka 2.0.2 leaks what OpenSSL gives it for a PKCS12 key store.
echo leak:libcrypto >"$work/lsan"
export LSAN_OPTIONS="suppressions=$work/lsan:print_suppressions=0"
cc=${CC:-gcc}
"$cc" -O2 -Wall -Wextra -o "$work/writer" "$here/kafka_writer.c" -lrdkafka
"$cc" -std=c17 -D_GNU_SOURCE -O2 -g ${TEST_CFLAGS:-} -I"$root/src" -o "$work/reader" "$here/kafka_reader.c" -Wl,--start-group "$build"/lib/*.a -Wl,--end-group \
    ${TEST_LIBS:-} $(sed -n "s/^LIBS *:= *//p" "$root/Makefile") -lxxhash
bash "$kafka_sh" up "$work/broker" "$port" >"$work/up.log" 2>&1 || { cat "$work/up.log"; exit 1; }
for c in ${*:-$CASES}; do
    begin=$SECONDS
    if "$c"; then
        echo "ok $c ($((SECONDS - begin)) s)"
        passed=$((passed + 1))
    else
        echo "FAILED $c"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
