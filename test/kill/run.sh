#!/usr/bin/env bash
# kill/run.sh ROUNDS [SEED]: the kill harness against a real broker that it starts and stops.
set -uo pipefail
cd "$(dirname "$0")/../.."
K=${FRAZIL_KAFKA_SH:-test/peers/kafka.sh}
PORT=${FRAZIL_KILL_PORT:-29392}
DIR=$(mktemp -d)
trap 'bash "$K" down "$DIR/kafka" >/dev/null 2>&1; rm -rf "$DIR"' EXIT
bash "$K" up "$DIR/kafka" "$PORT" >"$DIR/kafka.log" 2>&1 || { tail "$DIR/kafka.log"; exit 1; }
PY=$(bash test/peers/readers.sh python 2>/dev/null || echo python3)
"$PY" test/kill/kill.py --rounds "${1:-30}" --seed "${2:-$RANDOM}" --dir "$DIR" --kafka-sh "$K" --broker "127.0.0.1:$PORT"
