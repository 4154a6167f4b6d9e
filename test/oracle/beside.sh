#!/usr/bin/env bash
# oracle/beside.sh [SEED [COUNT]]: the real Flink 2.0.1 beside frazil: the same two scripts over the same topics of one broker, compared row by row.
# Flink takes up to 7 GB of memory: each partition is an open file there. Environment: FRAZIL_BIN; FRAZIL_ORACLE_PORT, FRAZIL_FLINK_PORT; FRAZIL_FLINK_DIR, FRAZIL_BROKER_DIR: peers that run already;
# KEEP_ROWS=FILE: Flink's answer is written there, in the form of test/data/oracle/flink_rows.json; KEEP=1 leaves the directory.
set -euo pipefail
cd "$(dirname "$0")/../.."
export FRAZIL_BIN=${FRAZIL_BIN:-$PWD/build/frazil}
PEERS=$PWD/test/peers
PYTHON=$(bash "$PEERS/readers.sh" python)
PORT=${FRAZIL_ORACLE_PORT:-29692}
SEED=${1:-$RANDOM} COUNT=${2:-20000}
DIR=$(mktemp -d /tmp/frazil-beside.XXXXXX)
KAFKA=${FRAZIL_BROKER_DIR:-$DIR/kafka} FLINK=${FRAZIL_FLINK_DIR:-$DIR/flink-cluster}
JOB=
finish() {
    [ -z "$JOB" ] || kill -9 "$JOB" 2>/dev/null || true
    [ -n "${FRAZIL_FLINK_DIR:-}" ] || bash "$PEERS/flink.sh" down "$FLINK" >/dev/null 2>&1 || true
    [ -n "${FRAZIL_BROKER_DIR:-}" ] || bash "$PEERS/kafka.sh" down "$KAFKA" >/dev/null 2>&1 || true
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
mkdir -p "$DIR/frazil" "$DIR/flink"
[ -n "${FRAZIL_BROKER_DIR:-}" ] || bash "$PEERS/kafka.sh" up "$KAFKA" "$PORT" 2>"$DIR/kafka.log"
PORT=$(cat "$KAFKA/port")
[ -n "${FRAZIL_FLINK_DIR:-}" ] || TM_MEMORY=5500m bash "$PEERS/flink.sh" up "$FLINK" "${FRAZIL_FLINK_PORT:-28181}" 2>"$DIR/flink.log"

counts=()
for topic in syslog authlog; do
    seed=$SEED count=$COUNT
    [ $topic = syslog ] || { seed=$((SEED + 1)) count=$((COUNT / 2)); }
    counts+=("$topic:$seed:$count")
    python3 test/oracle/gen_dirty.py $topic "$seed" "$count" >"$DIR/$topic.records"
    bash "$PEERS/kafka.sh" topic "$KAFKA" $topic 3
    bash "$PEERS/kafka.sh" produce "$KAFKA" $topic "$DIR/$topic.records"
done
echo "seed $SEED: $(wc -l <"$DIR/syslog.records") syslog and $(wc -l <"$DIR/authlog.records") authlog records"
python3 test/oracle/fill.py frazil "$DIR/frazil" "127.0.0.1:$PORT"
python3 test/oracle/fill.py flink "$DIR/flink" "127.0.0.1:$PORT"
printf '%s\n' 'execution.checkpointing.interval: 2 s' 'execution.checkpointing.min-pause: 0 s' "frazil.state.dir: $DIR/state" >"$DIR/frazil/config.yaml"

bash "$PEERS/flink.sh" sql "$FLINK" "$DIR/flink/create_tables.sql" >"$DIR/flink.out" 2>&1 || { cat "$DIR/flink.out"; exit 1; }
timeout 900 bash "$PEERS/flink.sh" sql "$FLINK" "$DIR/flink/kafka_to_iceberg.sql" >"$DIR/flink.out" 2>&1 || { tail -n 20 "$DIR/flink.out"; echo "FAILED Flink did not end; a record whose CAST fails?"; exit 1; }
"$PYTHON" test/oracle/check.py keep "$DIR/flink" "${KEEP_ROWS:-$DIR/flink_rows.json}" "${counts[@]}"
(cd "$DIR/frazil" && exec "$FRAZIL_BIN" run create_tables.sql kafka_to_iceberg.sql --config config.yaml) >"$DIR/run.log" 2>&1 &
JOB=$!
"$PYTHON" test/oracle/check.py wait "$DIR/frazil" "${KEEP_ROWS:-$DIR/flink_rows.json}" 120 || true
code=0
kill -TERM "$JOB" || true
wait "$JOB" || code=$?
JOB=
tail -n 1 "$DIR/run.log"
[ $code = 0 ] || { echo "FAILED the job ended with $code"; exit 1; }
"$PYTHON" test/oracle/check.py beside "$DIR/frazil" "$DIR/flink" "$DIR/dump"
