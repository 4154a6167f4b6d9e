#!/usr/bin/env bash
# oracle/run.sh: the two SQL scripts of test/data/sql over two Kafka topics with dirty records give the rows that the real Flink 2.0.1 gave, which
# test/data/oracle/flink_rows.json keeps (test/soak.sh runs Flink itself). The job is unbounded and ends by SIGTERM. Then: records whose CAST fails become
# dead letters when the job goes on; the checks of athena_checks.sql.
# Environment: FRAZIL_BIN, FRAZIL_KAFKA_SH, FRAZIL_READERS_SH (default: test/peers), FRAZIL_ORACLE_PORT, FRAZIL_ORACLE_READERS (pyiceberg,duckdb); KEEP=1 leaves the directory.
set -euo pipefail
cd "$(dirname "$0")/../.."
export FRAZIL_BIN=${FRAZIL_BIN:-$PWD/build/frazil}
KAFKA=${FRAZIL_KAFKA_SH:-$PWD/test/peers/kafka.sh}
PYTHON=$(bash "${FRAZIL_READERS_SH:-$PWD/test/peers/readers.sh}" python)
PORT=${FRAZIL_ORACLE_PORT:-29592}
WANT=$PWD/test/data/oracle/flink_rows.json
DIR=$(mktemp -d /tmp/frazil-oracle.XXXXXX)
JOB=
finish() {
    [ -z "$JOB" ] || kill -9 "$JOB" 2>/dev/null || true
    bash "$KAFKA" down "$DIR/kafka" >/dev/null 2>&1 || true
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
check() { "$PYTHON" test/oracle/check.py "$@"; }

start_job() {
    (cd "$DIR" && exec "$FRAZIL_BIN" run create_tables.sql kafka_to_iceberg.sql --config config.yaml) >>"$DIR/run.log" 2>&1 &
    JOB=$!
}
stop_job() {
    local code=0
    kill -TERM "$JOB" 2>/dev/null || true
    wait "$JOB" || code=$?
    JOB=
    [ $code = 0 ] || { tail -n 30 "$DIR/run.log"; echo "FAILED the job ended with $code after SIGTERM"; exit 1; }
}

bash "$KAFKA" up "$DIR/kafka" "$PORT" >"$DIR/kafka.log" 2>&1 || { tail "$DIR/kafka.log"; exit 1; }
for topic in syslog authlog; do
    read -r seed count < <(check generated "$WANT" $topic)
    python3 test/oracle/gen_dirty.py $topic "$seed" "$count" >"$DIR/$topic.records"
    bash "$KAFKA" topic "$DIR/kafka" $topic 3
    bash "$KAFKA" produce "$DIR/kafka" $topic "$DIR/$topic.records"
done
python3 test/oracle/fill.py frazil "$DIR" "127.0.0.1:$PORT"
printf '%s\n' 'execution.checkpointing.interval: 1 s' 'execution.checkpointing.min-pause: 0 s' 'execution.checkpointing.mode: EXACTLY_ONCE' "frazil.state.dir: $DIR/state" >"$DIR/config.yaml"

start_job
check wait "$DIR" "$WANT" 40 || { stop_job; check compare "$DIR" "$WANT"; exit 1; }
stop_job
check compare "$DIR" "$WANT" "${FRAZIL_ORACLE_READERS:-pyiceberg,duckdb}"

python3 -c '
import json, sys
sys.path.insert(0, "test/oracle")
import gen_dirty
for t in gen_dirty.failing(): print(json.dumps({"ts": t, "src_host": "h", "program": "bad", "message": "m"}))' >"$DIR/bad.records"
bash "$KAFKA" produce "$DIR/kafka" syslog "$DIR/bad.records"
start_job
for _ in $(seq 80); do
    [ "$(cat "$DIR"/state/dead-letter/* 2>/dev/null | wc -l)" -lt "$(wc -l <"$DIR/bad.records")" ] || break
    sleep 0.25
done
stop_job
check letters "$DIR"
check compare "$DIR" "$WANT" pyiceberg
check athena "$DIR"
[ "$("$FRAZIL_BIN" sql --format csv -f "$DIR/check_catalog.sql" | tail -n 1)" = logs ] || { echo "FAILED SHOW DATABASES of check_aws_glue.sql"; exit 1; }
for table in syslog_events authlog_events; do "$FRAZIL_BIN" audit "logs.$table" -i "$DIR/init.sql" --files >"$DIR/audit.txt" || { cat "$DIR/audit.txt"; exit 1; }; done
echo "oracle: same rows as Flink"
