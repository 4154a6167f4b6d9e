#!/usr/bin/env bash
# bench.sh [ARGS of bench.py]: speed and memory of the main job against the floor program, on a local broker that it starts and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
K=${FRAZIL_KAFKA_SH:-test/peers/kafka.sh}
PORT=${FRAZIL_BENCH_PORT:-29292}
DIR=${FRAZIL_BENCH_DIR:-$(mktemp -d)}
make -j"$(nproc)" build/frazil build/bench/floor
trap 'bash "$K" down "$DIR/kafka" >/dev/null 2>&1; [ -n "${FRAZIL_BENCH_DIR:-}" ] || rm -rf "$DIR"' EXIT
bash "$K" up "$DIR/kafka" "$PORT" >/dev/null
python3 bench/bench.py --dir "$DIR" --kafka-sh "$K" --broker "127.0.0.1:$PORT" "$@"
