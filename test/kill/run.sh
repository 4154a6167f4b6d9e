#!/usr/bin/env bash
# kill/run.sh [ROUNDS [SEED]]: the kill harness against a real broker that it starts and stops. 200 rounds and more also check the hits per point.
# Environment: FRAZIL_KAFKA_SH, FRAZIL_READERS_SH (default: test/peers), FRAZIL_KILL_PORT, FRAZIL_BIN; KEEP=1 leaves the directory.
set -uo pipefail
cd "$(dirname "$0")/../.."
export FRAZIL_KAFKA_SH=${FRAZIL_KAFKA_SH:-$PWD/test/peers/kafka.sh}
READERS=${FRAZIL_READERS_SH:-$PWD/test/peers/readers.sh}
PORT=${FRAZIL_KILL_PORT:-29392}
DIR=$(mktemp -d /tmp/frazil-kill.XXXXXX)
finish() {
    bash "$FRAZIL_KAFKA_SH" down "$DIR/kafka" >/dev/null 2>&1
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
bash "$FRAZIL_KAFKA_SH" up "$DIR/kafka" "$PORT" >"$DIR/kafka.log" 2>&1 || { tail "$DIR/kafka.log"; exit 1; }
python=(python3)
[ -r "$READERS" ] && python=(bash "$READERS" python)
"${python[@]}" test/kill/kill.py --rounds "${1:-30}" --seed "${2:-$RANDOM}" --dir "$DIR" --broker "127.0.0.1:$PORT"
