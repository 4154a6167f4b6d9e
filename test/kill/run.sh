#!/usr/bin/env bash
# kill/run.sh [ROUNDS [SEED]]: the kill harness against a real broker that it starts and stops. 200 rounds and more also check the hits per point.
# Environment: FRAZIL_KAFKA_SH, FRAZIL_READERS_SH (default: test/peers), FRAZIL_KILL_PORT, FRAZIL_BIN; FRAZIL_KILL_CATALOG: glue or s3tables, with S3, on moto;
#              KEEP=1 leaves the directory.
set -uo pipefail
cd "$(dirname "$0")/../.."
export FRAZIL_KAFKA_SH=${FRAZIL_KAFKA_SH:-$PWD/test/peers/kafka.sh}
READERS=${FRAZIL_READERS_SH:-$PWD/test/peers/readers.sh}
PORT=${FRAZIL_KILL_PORT:-29392}
DIR=$(mktemp -d /tmp/frazil-kill.XXXXXX)
finish() {
    bash "$FRAZIL_KAFKA_SH" down "$DIR/kafka" >/dev/null 2>&1
    [ -z "${FRAZIL_KILL_CATALOG:-}" ] || bash test/peers/moto.sh down "$DIR/moto" >/dev/null 2>&1
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
bash "$FRAZIL_KAFKA_SH" up "$DIR/kafka" "$PORT" >"$DIR/kafka.log" 2>&1 || { tail "$DIR/kafka.log"; exit 1; }
catalog=()
if [ -n "${FRAZIL_KILL_CATALOG:-}" ]; then
    export S3_ENDPOINT=http://127.0.0.1:$((PORT + 4)) AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
    { bash test/peers/moto.sh up "$DIR/moto" $((PORT + 4)) && bash test/peers/moto.sh bucket "$DIR/moto" lake; } >"$DIR/moto.log" 2>&1 || { tail "$DIR/moto.log"; exit 1; }
    catalog=(--catalog "$FRAZIL_KILL_CATALOG")
fi
python=(python3)
[ -r "$READERS" ] && python=(bash "$READERS" python)
"${python[@]}" test/kill/kill.py --rounds "${1:-30}" --seed "${2:-$RANDOM}" --dir "$DIR" --broker "127.0.0.1:$PORT" "${catalog[@]}"
