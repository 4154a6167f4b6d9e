#!/usr/bin/env bash
# tsan.sh: jobs with two tables, three deliveries and many checkpoints, jobs that are scraped under load, and the threaded unit tests, under ThreadSanitizer. A report of a race ends it with 1.
# Environment: FRAZIL_KAFKA_SH (default: test/peers/kafka.sh), FRAZIL_BROKER and FRAZIL_BROKER_DIR (one that runs already), FRAZIL_TSAN_PORT.
set -uo pipefail
cd "$(dirname "$0")/.."
DIR=$(mktemp -d /tmp/frazil-tsan.XXXXXX)
KAFKA=${FRAZIL_KAFKA_SH:-$PWD/test/peers/kafka.sh}
own=
trap '[ -z "$own" ] || bash "$KAFKA" down "$DIR/kafka" >/dev/null 2>&1; rm -rf "$DIR"' EXIT
export TSAN_OPTIONS="exitcode=66 halt_on_error=0 second_deadlock_stack=1 suppressions=$PWD/test/tsan/suppressions"
UNITS="base/test_base fileio/test_s3_object fileio/test_s3_write catalog/test_threads catalog/test_race catalog/test_glue net/test_net net/test_server net/test_server_http source/test_http_in spool/test_room aws/test_send"
TARGETS=
for u in $UNITS; do [ -r "test/unit/$u.c" ] && TARGETS="$TARGETS build-thread/unit/$u"; done
make SAN=thread build-thread/frazil $TARGETS || exit 1
failed=0
for t in $TARGETS; do
    echo "-- tsan: $t"
    "$t" >"$DIR/log" 2>&1 || { tail -n 60 "$DIR/log"; failed=1; }
done

gcc -shared -fPIC -O1 -o "$DIR/c11_threads.so" test/tsan/c11_threads.c || exit 1
FRAZIL="env LD_PRELOAD=$(gcc -print-file-name=libtsan.so):$DIR/c11_threads.so $PWD/build-thread/frazil"
job() { # NAME, script on stdin
    cat >"$DIR/$1.sql"
    $FRAZIL run "$DIR/$1.sql" >"$DIR/$1.log" 2>&1
    local code=$?
    if [ $code != 0 ] || grep -q "WARNING: ThreadSanitizer" "$DIR/$1.log"; then
        echo "-- tsan: job $1: exit code $code"
        grep -v '^ts=' "$DIR/$1.log" | head -n 120
        grep '^ts=' "$DIR/$1.log" | tail -n 5
        failed=1
    else echo "-- tsan: job $1: ok, $(grep -c 'event=commit ' "$DIR/$1.log") commits"
    fi
}
tables() {
    cat <<SQL
CREATE CATALOG c WITH ('type'='iceberg','catalog-type'='sql','uri'='sqlite:///$DIR/$1.db','warehouse'='file://$DIR/$1-wh');
CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE IF NOT EXISTS c.db.t (id BIGINT, host STRING, num INT) PARTITIONED BY (host);
CREATE TABLE IF NOT EXISTS c.db.u (id BIGINT, host STRING, num INT) PARTITIONED BY (bucket(4, id));
CREATE TEMPORARY TABLE archive (id BIGINT, host STRING, kind STRING) WITH ('connector'='firehose-s3','path'='file://$DIR/$1-archive/','buffer.size'='64 kb','buffer.interval'='100 ms');
CREATE TEMPORARY TABLE hole (id BIGINT) WITH ('connector'='blackhole');
CREATE TEMPORARY TABLE printed (id BIGINT) WITH ('connector'='print');
SET 'parallelism.default' = '3';
SET 'execution.checkpointing.interval' = '100 ms';
SET 'frazil.state.dir' = '$DIR/$1-state';
SQL
}
inserts='STATEMENT SET BEGIN
INSERT INTO archive SELECT id, host, '"'kind'"' FROM src;
INSERT INTO hole SELECT id FROM src;
INSERT INTO printed SELECT id FROM src WHERE MOD(id, 50) = 0;
INSERT INTO c.db.t SELECT id, TRIM(host), CAST(num AS INT) FROM src WHERE TRIM(host) <> '"''"';
INSERT INTO c.db.u SELECT id, UPPER(host), CAST(num AS INT) FROM src;
END;'

mkdir -p "$DIR/in"
for f in 0 1 2 3; do
    awk -v f=$f 'BEGIN { for (i = 0; i < 30000; i++) printf "{\"id\":%d,\"host\":\"h%d\",\"num\":\"%s%d\"}\n", f * 100000 + i, i % 7, (i % 500 ? "" : "x"), i }' >"$DIR/in/$f.ndjson"
done
{ tables files; echo "CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num STRING) WITH ('connector'='filesystem','path'='$DIR/in','format'='json');"; echo "$inserts"; } | job files
printf '#!/bin/sh\nexec %s "$@"\n' "$FRAZIL" >"$DIR/frazil" && chmod +x "$DIR/frazil"
for part in complete balance cloudwatch; do # listeners, spools, deliveries and scrapes at once; a race ends the job with 66
    if FRAZIL_BIN=$DIR/frazil python3 test/e2e/metrics.py $part >"$DIR/log" 2>&1; then echo "-- tsan: $(tail -n 1 "$DIR/log")"
    else
        echo "-- tsan: metrics $part"
        tail -n 80 "$DIR/log"
        failed=1
    fi
done
if [ -z "${FRAZIL_BROKER:-}" ]; then
    own=1 FRAZIL_BROKER=127.0.0.1:${FRAZIL_TSAN_PORT:-29592} FRAZIL_BROKER_DIR=$DIR/kafka
    bash "$KAFKA" up "$FRAZIL_BROKER_DIR" "${FRAZIL_BROKER#*:}" >"$DIR/up.log" 2>&1 || { tail "$DIR/up.log"; exit 1; }
fi
topic=tsan-$$
bash "$KAFKA" topic "$FRAZIL_BROKER_DIR" $topic 4 >/dev/null
{ # more records come while the job runs
    for f in 0 1 2 3; do
        kcat -b "$FRAZIL_BROKER" -P -t $topic -p $f -l "$DIR/in/$f.ndjson"
        sleep 1
    done
    sleep 3
    touch "$DIR/fed"
} &
{ tables kafka; echo "CREATE TEMPORARY TABLE src (id BIGINT, host STRING, num STRING) WITH ('connector'='kafka','topic'='$topic','properties.bootstrap.servers'='$FRAZIL_BROKER',
    'properties.group.id'='tsan','scan.startup.mode'='earliest-offset','format'='json');"; echo "$inserts"; } >"$DIR/kafka.sql"
FRAZIL_FAULT=file.fsync:40:eio,commit.accepted:3:unknown,commit.swap:5:conflict $FRAZIL run "$DIR/kafka.sql" >"$DIR/kafka.log" 2>&1 &
pid=$!
while [ ! -e "$DIR/fed" ] && kill -0 $pid 2>/dev/null; do sleep 0.2; done
kill -TERM $pid 2>/dev/null
wait $pid
code=$?
if [ $code != 0 ] || grep -q "WARNING: ThreadSanitizer" "$DIR/kafka.log"; then
    echo "-- tsan: job kafka: exit code $code"
    grep -v '^ts=' "$DIR/kafka.log" | head -n 200
    grep '^ts=' "$DIR/kafka.log" | tail -n 5
    failed=1
else echo "-- tsan: job kafka: ok, $(grep -c 'event=commit ' "$DIR/kafka.log") commits, $(grep -c 'sink.waiting\|commit.retry' "$DIR/kafka.log") troubles"
fi
wait
exit $failed
